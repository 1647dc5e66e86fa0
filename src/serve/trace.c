/* SPDX-License-Identifier: Apache-2.0
   trace: spans are written when a request is over, so that a request costs one lock and one write. Requests
   that were under way at once get rows of their own. Times are the machine's since it began, so that files of
   servers on one machine fit together. */
#include "serve/trace.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "net/random.h"

enum { ROWS = 4096, ROOM = 4096 };
static const uint64_t most = (uint64_t)1 << 30; /* bytes of the file */

struct hone_serve_trace {
    const hone_server_options *o;
    FILE *file;
    uint64_t seed, written;
    atomic_ullong turn;
    pthread_mutex_t lock;
    uint64_t row[ROWS]; /* until when each is taken */
    bool full;
};

hone_status hone_serve_trace_open(const hone_server_options *o, hone_serve_trace **out) {
    hone_serve_trace *t = calloc(1, sizeof *t);
    if (!t) return hone_server_say(HONE_NO_MEMORY, "no memory for a trace");
    if (!(t->file = fopen(o->trace, "we"))) {
        free(t);
        return hone_server_say(HONE_IO, "trace: %s: %s", o->trace, strerror(errno));
    }
    t->o = o;
    if (getrandom(&t->seed, sizeof t->seed, 0) != sizeof t->seed)
        t->seed = hone_serve_now() ^ (uint64_t)getpid() << 32;
    setvbuf(t->file, NULL, _IOFBF, 1 << 16);
    pthread_mutex_init(&t->lock, NULL);
    /* a list may end without its bracket: what was written before a crash can be read */
    const int n =
        fprintf(t->file,
                "[\n{\"ph\": \"M\", \"pid\": %d, \"name\": \"process_name\", \"args\": {\"name\": \"hone "
                "serve%s\"}}",
                (int)getpid(), o->front ? " --front" : "");
    t->written = n > 0 ? (uint64_t)n : 0;
    *out = t;
    return HONE_OK;
}
void hone_serve_trace_free(hone_serve_trace *t) {
    if (!t) return;
    fputs("\n]\n", t->file);
    fclose(t->file);
    pthread_mutex_destroy(&t->lock);
    free(t);
}

static uint64_t some(hone_serve_trace *t) { /* a number that is not 0, each time another */
    uint64_t x = t->seed + (atomic_fetch_add(&t->turn, 1) + 1) * 0x9e3779b97f4a7c15u;
    x = hone_net_mix64(x);
    return x ? x : 1;
}
static bool digits(const char *at, size_t n, bool not_all_zero) {
    bool zero = true;
    for (size_t k = 0; k < n; k++) {
        if (!at[k] || !strchr("0123456789abcdef", at[k])) return false;
        zero &= at[k] == '0';
    }
    return !not_all_zero || !zero;
}
static bool good(const char *t, size_t n) {
    return n == HONE_TRACEPARENT && t[2] == '-' && t[35] == '-' && t[52] == '-' && digits(t, 2, false) &&
           memcmp(t, "ff", 2) != 0 && digits(t + 3, 32, true) && digits(t + 36, 16, true) &&
           digits(t + 53, 2, false);
}
void hone_serve_trace_begin(hone_serve_trace *t, const char *came, size_t n,
                            char context[HONE_TRACEPARENT + 1], char parent[17]) {
    const bool known = came && good(came, n);
    *context = *parent = 0;
    if (known) memcpy(context, came, HONE_TRACEPARENT), context[HONE_TRACEPARENT] = 0;
    if (!t) return;
    if (known) memcpy(parent, came + 36, 16), parent[16] = 0;
    char span[17];
    snprintf(span, sizeof span, "%016llx", (unsigned long long)some(t));
    if (!known)
        snprintf(context, HONE_TRACEPARENT + 1, "00-%016llx%016llx-%s-01", (unsigned long long)some(t),
                 (unsigned long long)some(t), span);
    else memcpy(context + 36, span, 16);
}

/* ---- what is written ---- */

typedef struct {
    char text[ROOM];
    size_t n;
} page;
static void put(page *p, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void put(page *p, const char *format, ...) {
    va_list args;
    va_start(args, format);
    const int n = vsnprintf(p->text + p->n, sizeof p->text - p->n, format, args);
    va_end(args);
    if (n > 0) p->n += (size_t)n < sizeof p->text - p->n ? (size_t)n : sizeof p->text - p->n - 1;
}
static void put_text(page *p, const char *text) { /* a path: what is not plain ASCII does not matter */
    for (int k = 0; *text && k < 300; text++, k++)
        put(p, *text < ' ' || *text > '~' || *text == '"' || *text == '\\' ? "?" : "%c", *text);
}
static void put_span(page *p, int row, uint64_t from, uint64_t to) {
    put(p,
        ",\n{\"ph\": \"X\", \"pid\": %d, \"tid\": %d, \"ts\": %llu.%03llu, \"dur\": %llu.%03llu, \"name\": "
        "\"",
        (int)getpid(), row + 1, (unsigned long long)(from / 1000), (unsigned long long)(from % 1000),
        (unsigned long long)((to - from) / 1000), (unsigned long long)((to - from) % 1000));
}
/* Parts of a request, one behind the other; each begins where the last one ended. */
static void put_part(page *p, int row, const char *name, const char *more, uint64_t *at, uint64_t to,
                     int batch) {
    if (!*at || to < *at) return;
    put_span(p, row, *at, to);
    put_text(p, name), put_text(p, more), put(p, "\"");
    if (batch) put(p, ", \"args\": {\"batch\": %d}", batch);
    put(p, "}");
    *at = to;
}
void hone_serve_trace_end(hone_serve_trace *t, const hone_serve_access *a) {
    const char *c = a->trace;
    if (!t || !c || a->ended < a->began || !(strtoul(c + 53, NULL, 16) & 1)) return;
    page p = {.n = 0};
    int row = 0;
    pthread_mutex_lock(&t->lock);
    while (row < ROWS - 1 && t->row[row] > a->began) row++;
    t->row[row] = a->ended;
    pthread_mutex_unlock(&t->lock);
    put_span(&p, row, a->began, a->ended);
    put_text(&p, a->verb ? a->verb : ""), put(&p, " "), put_text(&p, a->path ? a->path : "");
    put(&p, "\", \"cat\": \"%s\", \"args\": {\"trace\": \"%.32s\", \"span\": \"%.16s\"", a->protocol, c + 3,
        c + 36);
    if (a->parent && *a->parent) put(&p, ", \"parent\": \"%s\"", a->parent);
    put(&p, ", \"status\": %d, \"bytes_in\": %llu, \"bytes_out\": %llu}}", a->code,
        (unsigned long long)a->bytes_in, (unsigned long long)a->bytes_out);
    const hone_serve_times *r = a->times;
    uint64_t at = a->began;
    if (r && r->ran) {
        put_part(&p, row, "receive", "", &at, r->queued, 0);
        put_part(&p, row, "queue", "", &at, r->begun, 0);
        put_part(&p, row, "batch", "", &at, r->ready, 0);
        put_part(&p, row, "compute", "", &at, r->ran, r->batch);
        put_part(&p, row, "answer", "", &at, r->done, 0);
        put_part(&p, row, "send", "", &at, a->ended, 0);
    } else if (a->server) {
        put_part(&p, row, "receive", "", &at, a->sent, 0);
        put_part(&p, row, a->tries > 1 ? "repeated at " : "at ", a->server, &at, a->answered, 0);
        put_part(&p, row, "send", "", &at, a->ended, 0);
    }
    if (p.n + 1 >= sizeof p.text) return; /* cannot be: all texts are bounded */
    pthread_mutex_lock(&t->lock);
    const bool stop = !t->full && t->written + p.n > most;
    t->full |= stop;
    if (!t->full) fwrite(p.text, 1, p.n, t->file), t->written += p.n;
    pthread_mutex_unlock(&t->lock);
    if (stop && t->o->tell) t->o->tell(t->o->arg, "the trace has a gigabyte, and ends here");
}
