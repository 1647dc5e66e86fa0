/* SPDX-License-Identifier: Apache-2.0
   term: what belongs to showing things to people. */
#include "term.h"

#include <math.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <time.h>
#include <unistd.h>

#include "hone/tools.h"

static const char codes[][8] = {[HONE_PLAIN] = "\033[0m",
                                [HONE_BOLD] = "\033[1m",
                                [HONE_DIM] = "\033[2m",
                                [HONE_RED] = "\033[31m",
                                [HONE_GREEN] = "\033[32m"};
/* A terminal that obeys escapes. */
static bool is_screen(FILE *to) {
    const char *term = getenv("TERM");
    return fileno(to) >= 0 && isatty(fileno(to)) && !(term && (!*term || !strcmp(term, "dumb")));
}
const char *hone_paint(FILE *to, hone_colour c) {
    const char *no = getenv("NO_COLOR");
    return is_screen(to) && !(no && *no) ? codes[c] : "";
}
int hone_columns(FILE *to) {
    const char *said = getenv("COLUMNS");
    struct winsize size;
    if (fileno(to) >= 0 && isatty(fileno(to)) && !ioctl(fileno(to), TIOCGWINSZ, &size) && size.ws_col > 0)
        return size.ws_col;
    int n = said ? atoi(said) : 0;
    return n > 0 && n < 1 << 16 ? n : 0;
}
size_t hone_text_columns(const char *text, size_t bytes) { /* UTF-8's continuation bytes take no room */
    size_t n = 0;
    for (size_t k = 0; k < bytes; k++) n += ((unsigned char)text[k] & 0xc0) != 0x80;
    return n;
}

/* ---- text out of models ---- */

static bool is_paint(const char *s) { return s >= codes[0] && s < codes[0] + sizeof codes; }
static void put_text(FILE *to, const char *s, int width, int precision, bool left, bool lines) {
    if (is_paint(s)) {
        fputs(s, to);
        return;
    }
    size_t n = precision < 0 ? strlen(s) : strnlen(s, (size_t)precision), room = n * 6 + 1;
    char small[512], *text = room <= sizeof small ? small : malloc(room);
    if (!text) text = small, room = sizeof small;
    size_t shown = hone_text_visible(text, room, s, n, lines);
    int pad = width > (int)shown ? width - (int)shown : 0;
    fprintf(to, "%*s%s%*s", left ? 0 : pad, "", text, left ? pad : 0, "");
    if (text != small) free(text);
}
void hone_print_lines(FILE *to, const char *text) { put_text(to, text, 0, -1, false, true); }

void hone_printv(FILE *to, const char *f, va_list args) {
    while (*f) {
        size_t plain = strcspn(f, "%"), n = 1;
        fwrite(f, 1, plain, to);
        f += plain;
        if (!*f) break;
        int width = 0, precision = -1, longs = 0;
        char spec[32];
        n += strspn(f + n, "-+ #0");
        bool left = memchr(f, '-', n) != NULL;
        size_t flags = n;
        if (f[n] == '*') width = va_arg(args, int), n++;
        else
            for (; f[n] >= '0' && f[n] <= '9'; n++) width = width * 10 + (f[n] - '0');
        if (f[n] == '.' && f[n + 1] == '*') precision = va_arg(args, int), n += 2;
        else if (f[n] == '.')
            for (n++, precision = 0; f[n] >= '0' && f[n] <= '9'; n++)
                precision = precision * 10 + (f[n] - '0');
        for (; f[n] == 'l' || f[n] == 'z'; n++) longs += f[n] == 'z' ? 2 : 1;
        char kind = f[n++];
        snprintf(spec, sizeof spec, "%.*s*.*%s%c", (int)(flags < 8 ? flags : 8), f, longs ? "ll" : "", kind);
        f += n;
        switch (kind) {
        case '%': fputc('%', to); break;
        case 's': put_text(to, va_arg(args, const char *), width, precision, left, false); break;
        case 'c': fputc(va_arg(args, int), to); break;
        case 'd':
        case 'i':
        case 'u':
        case 'x':
            if (longs)
                fprintf(to, spec, width, precision,
                        longs == 1 ? (long long)va_arg(args, long) : va_arg(args, long long));
            else fprintf(to, spec, width, precision, va_arg(args, int));
            break;
        default: fprintf(to, spec, width, precision, va_arg(args, double)); break;
        }
    }
}
void hone_print(FILE *to, const char *format, ...) {
    va_list args;
    va_start(args, format);
    hone_printv(to, format, args);
    va_end(args);
}

double hone_clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- progress ---- */

static struct {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    pthread_t thread;
    bool running, stop, shown; /* running: only its owner's; the others under the lock */
    double began, told;
    int done, all;
    char what[64];
} bar = {.lock = PTHREAD_MUTEX_INITIALIZER, .wake = PTHREAD_COND_INITIALIZER};
static bool silent;

static void draw_bar(double now) { /* under the lock */
    enum { WIDTH = 30, STUCK_MS = 1000 };
    if (now - bar.began < 1000) return;
    fputc('\r', stderr);
    if (bar.all > 0) {
        fputc('[', stderr);
        for (int i = 0; i < WIDTH; i++)
            fputc((int64_t)i * bar.all < (int64_t)bar.done * WIDTH ? '#' : ' ', stderr);
        hone_print(stderr, "] %d of %d  ", bar.done, bar.all);
    }
    hone_print(stderr, "%.40s", bar.what);
    if (now - bar.told >= STUCK_MS) hone_print(stderr, ", %.0f s", (now - bar.told) / 1000);
    fputs("\033[K", stderr);
    fflush(stderr);
    bar.shown = true;
}
static void *keep_drawing(void *arg) {
    enum { EVERY_MS = 100 };
    (void)arg;
    pthread_mutex_lock(&bar.lock);
    while (!bar.stop) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += EVERY_MS * 1000000L;
        if (until.tv_nsec >= 1000000000L) until.tv_nsec -= 1000000000L, until.tv_sec++;
        pthread_cond_timedwait(&bar.wake, &bar.lock, &until);
        if (!bar.stop) draw_bar(hone_clock_ms());
    }
    pthread_mutex_unlock(&bar.lock);
    return NULL;
}
void hone_progress_silence(void) { silent = true; }
static void set_bar(int done, int all, const char *what) {
    pthread_mutex_lock(&bar.lock);
    bar.done = done, bar.all = all, bar.told = hone_clock_ms();
    snprintf(bar.what, sizeof bar.what, "%s", what);
    pthread_mutex_unlock(&bar.lock);
}
void hone_progress_begin(hone_progress *p, const char *what) {
    *p = (hone_progress){false};
    if (silent || bar.running || !is_screen(stderr)) return;
    bar.began = hone_clock_ms(), bar.stop = bar.shown = false;
    set_bar(0, 0, what);
    p->on = bar.running = pthread_create(&bar.thread, NULL, keep_drawing, NULL) == 0;
}
void hone_progress_show(hone_progress *p, int done, int all, const char *what) {
    if (!p->on) hone_progress_begin(p, what);
    if (p->on && all > 0) set_bar(done, all, what);
}
void hone_progress_end(hone_progress *p) {
    if (!p->on) return;
    pthread_mutex_lock(&bar.lock);
    bar.stop = true;
    pthread_cond_signal(&bar.wake);
    pthread_mutex_unlock(&bar.lock);
    pthread_join(bar.thread, NULL);
    if (bar.shown) fprintf(stderr, "\r\033[K"), fflush(stderr);
    p->on = bar.running = false;
}

/* ---- units ---- */

static char *slot(size_t *room) {
    static char texts[8][32];
    static int next;
    *room = sizeof texts[0];
    return texts[next++ % 8];
}

static const char *scaled(double v, const char *const *units, int n, double step) {
    size_t room;
    char *out = slot(&room);
    int k = 0;
    while (k + 1 < n && fabs(v) >= step) v /= step, k++;
    int digits = k == 0 || fabs(v) >= 100 ? 0 : fabs(v) >= 10 ? 1 : 2;
    snprintf(out, room, "%.*f%s%s", digits, v, *units[k] ? " " : "", units[k]);
    return out;
}

const char *hone_text_bytes(double v) {
    return scaled(v, (const char *const[]){"B", "KB", "MB", "GB", "TB"}, 5, 1000);
}
const char *hone_text_binary(double v) {
    return scaled(v, (const char *const[]){"B", "KiB", "MiB", "GiB"}, 4, 1024);
}
const char *hone_text_flops(double v) {
    return scaled(v, (const char *const[]){"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP"}, 5, 1000);
}
const char *hone_text_count(double v) {
    return scaled(v, (const char *const[]){"", "K", "M", "G", "T"}, 5, 1000);
}

const char *hone_text_ms(double ms) {
    size_t room;
    char *out = slot(&room);
    if (ms >= 1000) snprintf(out, room, "%.2f s", ms / 1000);
    else snprintf(out, room, "%.*f ms", ms < 10 ? 3 : ms < 100 ? 2 : 1, ms);
    return out;
}
