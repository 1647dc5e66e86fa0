/* SPDX-License-Identifier: Apache-2.0
   compare_worker: Hone's own process of a contest. It says the same lines as compare.py, and does no more for Hone than that does for others:
   load, run, write what came out. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "compare.h"
#include "where.h"
#include "load.h"

typedef struct {
    hone_model *model;
    hone_session *session;
    hone_value **in, **out;
    int n_in, n_out;
    const char *folder;
    hone_where where; /* of Hone: other runtimes have the CPU */
} worker;

static long long now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (long long)t.tv_sec * 1000000000 + t.tv_nsec;
}

/* Bytes, of a field of the kernel's account of this process; 0 where there is none. */
static long long memory(const char *field) {
    char line[256];
    long long kb = 0;
    FILE *f = fopen("/proc/self/status", "re");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, field, strlen(field))) kb = atoll(line + strlen(field) + 1);
    if (f) fclose(f);
    return kb * 1024;
}
static void forget_peak(void) {
    FILE *f = fopen("/proc/self/clear_refs", "we");
    if (f) fputs("5", f), fclose(f);
}

static void say_failed(void) { /* messages may have several lines; the first says enough */
    const char *why = hone_error();
    printf("cannot %.*s\n", (int)strcspn(why, "\n"), why);
}

static hone_status read_inputs(worker *w, const char *feed) {
    char path[4096];
    hone_status s = HONE_OK;
    for (int k = 0; k < w->n_in && !s; k++) {
        snprintf(path, sizeof path, "%s/input_%d.npy", feed, k);
        if (access(path, F_OK) == 0) s = hone_value_read(path, HONE_VALUE_TENSOR, HONE_DTYPE_NONE, NULL, 0, &w->in[k]);
    }
    return s;
}

static hone_status open_all(worker *w, const char *model, const char *feed, int threads, const char *precision) {
    hone_options options;
    hone_options_default(&options);
    options.threads = threads, options.precision = hone_precision(precision, strlen(precision));
    hone_where_set(&w->where, &options);
    forget_peak();
    long long before = memory("VmRSS:"), began = now();
    hone_status s = hone_model_load(model, &w->model);
    if (!s) s = hone_session_create(w->model, &options, &w->session);
    long long took = now() - began;
    if (s) return s;
    w->n_in = hone_model_inputs(w->model), w->n_out = hone_model_outputs(w->model);
    w->in = hone_must_alloc(sizeof *w->in * (size_t)w->n_in);
    w->out = hone_must_alloc(sizeof *w->out * (size_t)w->n_out);
    s = read_inputs(w, feed);
    if (!s) printf("ready load_ns=%lld before=%lld\n", took, before);
    return s;
}

static hone_status run(worker *w, int count, int warm) {
    hone_status s = HONE_OK;
    long long *took = hone_must_alloc(sizeof *took * (size_t)count);
    for (int k = -warm; k < count && !s; k++) {
        long long began = now();
        s = hone_session_run(w->session, w->in, w->out);
        if (k >= 0) took[k] = now() - began;
    }
    if (!s) printf("times");
    for (int k = 0; k < count && !s; k++) printf(" %lld", took[k]);
    if (!s) putchar('\n');
    free(took);
    return s;
}

static hone_status write_all(const worker *w) {
    char path[4096];
    hone_status s = HONE_OK;
    for (int k = 0; k < w->n_out && !s; k++) {
        snprintf(path, sizeof path, "%s/out_%d.npy", w->folder, k);
        s = hone_value_write(w->out[k], path);
    }
    if (!s) printf("wrote %d\n", w->n_out);
    return s;
}

int hone_compare_worker(int argc, char **argv) {
    enum { MODEL = 2, FEED, FOLDER, THREADS, PRECISION, WORDS };
    worker w = {.folder = argc == WORDS ? argv[FOLDER] : NULL};
    char line[128];
    int count, warm;
    if (!w.folder) return hone_args_wrong("--worker is for 'hone compare' itself");
    if (hone_where_import(&w.where)) return 1;
    puts("here");
    fflush(stdout);
    if (!fgets(line, sizeof line, stdin)) return 0;
    hone_status s = open_all(&w, argv[MODEL], argv[FEED], atoi(argv[THREADS]), argv[PRECISION]);
    fflush(stdout);
    while (!s && fgets(line, sizeof line, stdin)) {
        if (sscanf(line, "run %d %d", &count, &warm) == 2) s = run(&w, count, warm);
        else if (!strncmp(line, "out", 3)) s = write_all(&w);
        else if (!strncmp(line, "peak", 4)) printf("peak %lld\n", memory("VmHWM:"));
        else break;
        fflush(stdout);
    }
    if (s) say_failed();
    fflush(stdout);
    for (int k = 0; k < w.n_in; k++) hone_value_free(w.in[k]);
    for (int k = 0; k < w.n_out; k++) hone_value_free(w.out[k]);
    free(w.in), free(w.out);
    hone_session_free(w.session);
    hone_model_free(w.model);
    hone_where_free(&w.where);
    return 0;
}
