/* SPDX-License-Identifier: Apache-2.0
   bench_model: one model, loaded once, timed on demand: for scripts that take turns with other runtimes (bench/models.py).
   Usage: bench_model MODEL DATA_SET_FOLDER THREADS. Prints "ready LOAD_MS FIRST_MS"; then each line "SECONDS" on standard input is answered by
   "MEDIAN_MS RUNS". The folder holds input_K.pb. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hone/hone.h"

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}
static int stop(const char *where) {
    fprintf(stderr, "%s: %s\n", where, hone_error());
    return 1;
}
int main(int argc, char **argv) {
    enum { MOST = 200000 };
    hone_model *m;
    hone_session *s;
    hone_options o;
    hone_value *in[64] = {0}, *out[256] = {0};
    if (argc != 4) return fprintf(stderr, "usage: bench_model MODEL DATA_SET_FOLDER THREADS\n"), 1;
    double begun = now_ms();
    if (hone_model_load(argv[1], &m)) return stop(argv[1]);
    double load = now_ms() - begun;
    hone_options_default(&o);
    o.threads = atoi(argv[3]);
    if (hone_session_create(m, &o, &s)) return stop("session");
    if (hone_model_inputs(m) > 64 || hone_model_outputs(m) > 256) return fprintf(stderr, "too many inputs or outputs\n"), 1;
    for (int k = 0; k < hone_model_inputs(m); k++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/input_%d.pb", argv[2], k);
        if (hone_value_read(path, hone_model_input(m, k)->kind, HONE_DTYPE_NONE, NULL, 0, &in[k])) return stop(path);
    }
    begun = now_ms();
    if (hone_session_run(s, in, out)) return stop("run");
    printf("ready %.3f %.3f\n", load, now_ms() - begun);
    fflush(stdout);
    double *ms = malloc(sizeof *ms * MOST), seconds;
    while (ms && scanf("%lf", &seconds) == 1) {
        int n = 0;
        for (double until = now_ms() + seconds * 1e3; n < MOST && (n < 3 || now_ms() < until); n++) {
            begun = now_ms();
            if (hone_session_run(s, in, out)) return stop("run");
            ms[n] = now_ms() - begun;
        }
        qsort(ms, (size_t)n, sizeof *ms, by_value);
        printf("%.5f %d\n", ms[n / 2], n);
        fflush(stdout);
    }
    free(ms);
    for (int k = 0; k < 64; k++) hone_value_free(in[k]);
    for (int k = 0; k < 256; k++) hone_value_free(out[k]);
    hone_session_free(s);
    hone_model_free(m);
    return 0;
}
