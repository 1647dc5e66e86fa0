/* SPDX-License-Identifier: Apache-2.0
   bench_load: what it costs until a model is ready, once, in a process of its own (bench/load.py takes turns
   with ONNX Runtime). Usage: bench_load MODEL THREADS. Prints one JSON line: load_ms (hone_model_load and the
   session), first_ms (the first run, with planning and the packing of weights), resident memory in KB before
   the load, after it and at its peak, and what of that is known: the file, weights
   packed for the kernels, the arena. Inputs are zeros; free dims are 1. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "hone/hone.h"

static double now_ms(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec * 1e3 + (double)t.tv_nsec / 1e6;
}
static long status_kb(const char *field) { /* VmRSS, VmHWM */
    char line[256];
    long kb = 0;
    FILE *f = fopen("/proc/self/status", "r");
    while (f && fgets(line, sizeof line, f))
        if (!strncmp(line, field, strlen(field))) kb = atol(line + strlen(field) + 1);
    if (f) fclose(f);
    return kb;
}
static long long number_of(const char *json, const char *key) {
    const char *at = strstr(json, key);
    return at ? atoll(at + strlen(key) + 3) : 0; /* key": */
}
static int stop(const char *where) {
    fprintf(stderr, "%s: %s\n", where, hone_error());
    return 1;
}
int main(int argc, char **argv) {
    hone_model *m = NULL;
    hone_session *s = NULL;
    hone_options o;
    struct stat file;
    if (argc != 3) return fprintf(stderr, "usage: bench_load MODEL THREADS\n"), 1;
    if (stat(argv[1], &file)) return perror(argv[1]), 1;
    hone_options_default(&o);
    o.threads = atoi(argv[2]);
    long before = status_kb("VmRSS");
    double begun = now_ms();
    if (hone_model_load(argv[1], &m) || hone_session_create(m, &o, &s)) return stop(argv[1]);
    double load = now_ms() - begun;
    long loaded = status_kb("VmRSS");

    int n_in = hone_model_inputs(m);
    hone_value **in = calloc((size_t)n_in + 1, sizeof *in),
               **out = calloc((size_t)hone_model_outputs(m) + 1, sizeof *out);
    if (!in || !out) return 1;
    for (int k = 0; k < n_in; k++) {
        const hone_port *p = hone_model_input(m, k);
        int64_t dims[16];
        if (p->kind != HONE_VALUE_TENSOR || p->rank < 0)
            return fprintf(stderr, "input '%s' is no tensor of known rank\n", p->name), 1;
        for (int d = 0; d < p->rank; d++) dims[d] = p->dims[d] < 0 ? 1 : p->dims[d];
        if (hone_tensor_create(p->dtype, dims, p->rank, &in[k])) return stop(p->name);
    }
    begun = now_ms();
    if (hone_session_run(s, in, out)) return stop("run");
    double first = now_ms() - begun;
    char *memory = NULL;
    if (hone_session_report(s, "memory", &memory)) return stop("report");
    printf("{\"load_ms\": %.3f, \"first_ms\": %.3f, \"before_kb\": %ld, \"loaded_kb\": %ld, \"peak_kb\": "
           "%ld, \"file_kb\": %lld, "
           "\"packed_kb\": "
           "%lld, \"arena_kb\": %lld}\n",
           load, first, before, loaded, status_kb("VmHWM"), (long long)file.st_size / 1024,
           number_of(memory, "packed_bytes") / 1024, number_of(memory, "arena_bytes") / 1024);
    hone_text_release(memory);
    for (int k = 0; k < n_in; k++) hone_value_free(in[k]);
    for (int k = 0; k < hone_model_outputs(m); k++) hone_value_free(out[k]);
    free(in);
    free(out);
    hone_session_free(s);
    hone_model_free(m);
    return 0;
}
