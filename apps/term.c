/* SPDX-License-Identifier: Apache-2.0
   term: what belongs to showing things to people. */
#include "term.h"

#include <math.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

const char *hone_paint(FILE *to, hone_colour c) {
    static const char *const codes[] = {
        [HONE_PLAIN] = "\033[0m", [HONE_BOLD] = "\033[1m", [HONE_DIM] = "\033[2m", [HONE_RED] = "\033[31m", [HONE_GREEN] = "\033[32m"};
    const char *no = getenv("NO_COLOR");
    return isatty(fileno(to)) && !(no && *no) ? codes[c] : "";
}

double hone_clock_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec * 1e-6;
}

/* ---- progress ---- */

void hone_progress_begin(hone_progress *p) { *p = (hone_progress){.began = hone_clock_ms()}; }

void hone_progress_show(hone_progress *p, int done, int all, const char *what) {
    enum { WIDTH = 30 };
    double now = hone_clock_ms();
    if (all <= 0 || now - p->began < 1000 || now - p->drawn < 100 || !isatty(STDERR_FILENO)) return;
    p->drawn = now;
    p->shown = true;
    fprintf(stderr, "\r[");
    for (int i = 0; i < WIDTH; i++) fputc((int64_t)i * all < (int64_t)done * WIDTH ? '#' : ' ', stderr);
    fprintf(stderr, "] %d of %d  %.40s\033[K", done, all, what);
    fflush(stderr);
}

void hone_progress_end(hone_progress *p) {
    if (p->shown) fprintf(stderr, "\r\033[K");
    p->shown = false;
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

const char *hone_text_bytes(double v) { return scaled(v, (const char *const[]){"B", "KB", "MB", "GB", "TB"}, 5, 1000); }
const char *hone_text_binary(double v) { return scaled(v, (const char *const[]){"B", "KiB", "MiB", "GiB"}, 4, 1024); }
const char *hone_text_flops(double v) { return scaled(v, (const char *const[]){"FLOP", "KFLOP", "MFLOP", "GFLOP", "TFLOP"}, 5, 1000); }
const char *hone_text_count(double v) { return scaled(v, (const char *const[]){"", "K", "M", "G", "T"}, 5, 1000); }

const char *hone_text_ms(double ms) {
    size_t room;
    char *out = slot(&room);
    if (ms >= 1000) snprintf(out, room, "%.2f s", ms / 1000);
    else snprintf(out, room, "%.*f ms", ms < 10 ? 3 : ms < 100 ? 2 : 1, ms);
    return out;
}
