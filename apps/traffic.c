/* SPDX-License-Identifier: Apache-2.0
   hone load: how much a server takes, and how long it lets its clients wait. Against any server that speaks
   KServe v2; ours is not known here. A sweep is a list of levels, or finds its levels itself: doubled until
   more clients bring no more answers, then closer around the knee. */
#include <errno.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "commands.h"
#include "output.h"
#include "term.h"
#include "traffic.h"

enum { LEVELS_MAX = 64, CLIENTS_MAX = 4096, SEEK_MAX = 1024 };
static const double gain = 1.05; /* less than that is no more */

typedef struct {
    hone_traffic traffic;
    hone_traffic_level level[LEVELS_MAX];
    int n;
    hone_progress bar;
    int levels; /* to be expected */
} sweep;

static void share(void *cookie, double part) {
    sweep *s = cookie;
    char what[64];
    const hone_traffic_level *l = &s->level[s->n];
    snprintf(what, sizeof what, l->clients ? "%.0f clients" : "%.0f requests/s",
             l->clients ? l->clients : l->rate);
    hone_progress_show(&s->bar, s->n * 100 + (int)(part * 100),
                       (s->levels > s->n ? s->levels : s->n + 1) * 100, what);
}

static int measure(sweep *s, int clients, double rate) {
    hone_traffic_level *l = &s->level[s->n];
    *l = (hone_traffic_level){.clients = clients, .rate = rate};
    int rc = hone_traffic_run(&s->traffic, l, share, s);
    if (!rc) s->n++;
    return rc;
}

static int by_load(const void *a, const void *b) {
    const hone_traffic_level *x = a, *y = b;
    double p = x->clients ? x->clients : x->rate, q = y->clients ? y->clients : y->rate;
    return (p > q) - (p < q);
}

/* 1, 2, 4 … until two doublings in a row brought less than 5 % more; then between the knee and its
   neighbours. */
static int seek_clients(sweep *s) {
    int rc = 0, flat = 0;
    double best = 0;
    s->levels = 7;
    for (int clients = 1; clients <= SEEK_MAX && flat < 2 && !rc; clients *= 2) {
        if ((rc = measure(s, clients, 0))) break;
        double per_s = s->level[s->n - 1].per_s;
        flat = per_s > best * gain ? 0 : flat + 1;
        best = fmax(best, per_s);
    }
    int knee = rc ? -1 : hone_traffic_knee(s->level, s->n);
    int at = knee >= 0 ? s->level[knee].clients : 0;
    if (at >= 4 && !rc) rc = measure(s, at * 3 / 4, 0);
    if (at >= 2 && !rc) rc = measure(s, at * 3 / 2, 0);
    return rc;
}

/* What the server can do at all, found as above; then rates from a tenth of it to a little more. */
static int seek_rates(sweep *s) {
    static const double part[] = {0.1, 0.3, 0.5, 0.7, 0.8, 0.9, 1.0};
    int rc = seek_clients(s);
    double most = 0;
    for (int k = 0; k < s->n; k++) most = fmax(most, s->level[k].per_s);
    s->n = 0, s->levels = sizeof part / sizeof *part;
    for (int k = 0; k < s->levels && !rc && !(s->n && s->level[s->n - 1].overloaded); k++)
        rc = measure(s, 0, most * part[k]);
    return rc;
}

static int read_list(const char *option, const char *text, bool whole, double most, double *out, int *n) {
    for (const char *p = text; p;) {
        char *end;
        errno = 0;
        double v = strtod(p, &end);
        if (end == p || (*end && *end != ',') || errno || !(v > 0) || v > most || (whole && v != floor(v)))
            return hone_args_wrong("%s %s: give %s up to %g, as in %s %s", option, text,
                                   whole ? "whole numbers" : "numbers", most, option,
                                   whole ? "1,8,32" : "100,500");
        if (*n == LEVELS_MAX) return hone_args_wrong("%s %s: at most %d of them", option, text, LEVELS_MAX);
        out[(*n)++] = v;
        p = *end ? end + 1 : NULL;
    }
    return 0;
}

/* Those that were said; none where they are found. */
static int read_levels(const char *clients, const char *rates, double *at, int *n) {
    const char *said = rates ? rates : clients;
    *n = 0;
    if (!said || !strcmp(said, "auto")) return 0;
    return rates ? read_list("--rate", rates, false, 1e7, at, n)
                 : read_list("--concurrency", clients, true, CLIENTS_MAX, at, n);
}
static int levels(sweep *s, const char *clients, const char *rates) {
    double at[LEVELS_MAX];
    int rc = read_levels(clients, rates, at, &s->levels);
    if (!rc && !s->levels) return rates ? seek_rates(s) : seek_clients(s);
    for (int k = 0; k < s->levels && !rc; k++) rc = measure(s, rates ? 0 : (int)at[k], rates ? at[k] : 0);
    return rc;
}

/* A file appears whole or not at all. */
static int save(const hone_traffic_report *r, const char *path) {
    hone_output o;
    int rc = hone_output_begin("--csv", path, &o);
    if (rc) return rc;
    hone_traffic_csv(r, o.to);
    return hone_output_end(&o, true);
}

static int prepare(hone_traffic *t, const hone_traffic_wish *wish, bool json) {
    int rc = t->protocol->describe(&t->target, &t->model);
    if (!rc) rc = hone_traffic_fill(&t->model, wish);
    for (int k = 0; k < t->model.n && json && !rc; k++)
        if (t->model.input[k].dtype == HONE_DTYPE_F16 || t->model.input[k].dtype == HONE_DTYPE_BF16)
            rc = hone_args_wrong("--json-tensors: input %s is %s, which JSON cannot carry",
                                 t->model.input[k].name, t->model.input[k].datatype);
    if (rc) return rc;
    t->requests = t->model.requests;
    t->request = hone_must_alloc(sizeof *t->request * (size_t)t->requests);
    for (int k = 0; k < t->requests; k++) t->protocol->body(&t->model, &t->target, k, json, &t->request[k]);
    return 0;
}

int hone_cmd_load(int argc, char **argv) {
    sweep *s = hone_must_alloc(sizeof *s);
    hone_traffic *t = &s->traffic;
    *t = (hone_traffic){.protocol = &hone_traffic_http,
                        .warmup_s = 0.5,
                        .window_s = 1,
                        .windows_most = 10,
                        .connections = 256,
                        .stable = 0.1};
    t->target.timeout_s = 30;
    hone_traffic_wish wish = {.distinct = 4};
    hone_words operands = {0}, headers = {0};
    const char *model = NULL, *version = "", *clients = NULL, *rates = NULL, *csv = NULL;
    bool json_tensors = false, grpc = false, stats = false;
    double within = 10;
    const hone_option options[] = {
        {"--model", "NAME", "the model; it must be loaded there", HONE_ARG_TEXT, &model, 0},
        {"--model-version", "V", "one version of it; else the server chooses", HONE_ARG_TEXT, &version, 0},
        {"--concurrency", "1,8,32",
         "so many requests under way at once, one level each; auto (the default): until more bring no more",
         HONE_ARG_TEXT, &clients, 0},
        {"--rate", "100,500",
         "requests a second instead, whether the server keeps up or not; auto: up to what it can do",
         HONE_ARG_TEXT, &rates, 0},
        {"--steady", NULL, "--rate at even distances; else they come by chance (Poisson)", HONE_ARG_FLAG,
         &t->steady, 0},
        {"--window", "SECONDS", "of one window; 1", HONE_ARG_NUMBER, &t->window_s, 0.01},
        {"--windows", "N", "at most so many a level; it ends when three in a row agree; 10", HONE_ARG_INT,
         &t->windows_most, 1},
        {"--stable", "PERCENT", "how far apart windows that agree may be, in requests/s and p50; 10",
         HONE_ARG_NUMBER, &within, 0.1},
        {"--warmup", "SECONDS", "before each level; 0.5", HONE_ARG_NUMBER, &t->warmup_s, 0},
        {"--requests", "N", "exactly so many a level, without windows or warm-up", HONE_ARG_INT, &t->exactly,
         1},
        {"--dim", "batch=N", "a free dim: batch, the first of every input, or INPUT.K", HONE_ARG_LIST,
         &wish.dims, 0},
        {"--shape", "NAME=1x3x8", "the shape of an input", HONE_ARG_LIST, &wish.shapes, 0},
        {"--input", "NAME=FILE", "an input's numbers: .npy, .pb or .bin; else random", HONE_ARG_LIST,
         &wish.inputs, 0},
        {"--seed", "N", "of the random inputs, and of chance", HONE_ARG_INT, &wish.seed, 0},
        {"--distinct", "N", "different requests, sent in turn; 4", HONE_ARG_INT, &wish.distinct, 1},
        {"--grpc", NULL, "over gRPC; the port is 8001 where none is said", HONE_ARG_FLAG, &grpc, 0},
        {"--json-tensors", NULL, "send tensors as JSON, not as bytes", HONE_ARG_FLAG, &json_tensors, 0},
        {"--connections", "N", "for --rate: at most so many; 256", HONE_ARG_INT, &t->connections, 1},
        {"--header", "'NAME: VALUE'", "sent with each request", HONE_ARG_LIST, &headers, 0},
        {"--timeout", "SECONDS", "without any answer, after which the server counts as gone; 30",
         HONE_ARG_NUMBER, &t->target.timeout_s, 0.01},
        {"--pid", "N", "the server's process on this machine: its CPU time a request and its memory",
         HONE_ARG_INT, &t->pid, 1},
        {"--csv", "FILE", "write a row a level", HONE_ARG_TEXT, &csv, 0},
        {"--json", NULL, "print JSON", HONE_ARG_FLAG, &stats, 0},
        {0},
    };
    const hone_usage usage = {
        "load",
        "URL",
        1,
        1,
        "Puts a server under load and says how many requests it answers and how long they take. Any server "
        "that speaks KServe v2.",
        "hone load http://127.0.0.1:8000 --model mnist-cnn\n"
        "hone load 127.0.0.1:8000 --model resnet --concurrency 1,8,32 --dim batch=4 --json\n"
        "hone load 127.0.0.1:8000 --model resnet --rate auto --csv rates.csv\n"
        "hone load 127.0.0.1:8001 --grpc --model resnet",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc == HONE_ARGS_GO) {
        t->stable = within / 100, t->seed = wish.seed, t->target.headers = &headers;
        t->model.name = (char *)model, t->model.version = (char *)version;
        rc = !model || !*model ? hone_args_wrong("--model is missing: hone load URL --model NAME")
             : strspn(version, "0123456789") != strlen(version)
                 ? hone_args_wrong("--model-version %s: versions are whole numbers", version)
             : clients && rates     ? hone_args_wrong("--concurrency or --rate: one of the two")
             : t->windows_most > 64 ? hone_args_wrong("--windows %d: at most 64", t->windows_most)
             : t->connections > CLIENTS_MAX
                 ? hone_args_wrong("--connections %d: at most %d", t->connections, CLIENTS_MAX)
             : wish.distinct > 1024 ? hone_args_wrong("--distinct %d: at most 1024", wish.distinct)
                                    : 0;
        if (!rc && t->steady && !rates) rc = hone_args_wrong("--steady goes with --rate");
        double at[LEVELS_MAX];
        int n = 0;
        if (!rc) rc = read_levels(clients, rates, at, &n);
        if (!rc && grpc && json_tensors) rc = hone_args_wrong("--json-tensors is for HTTP: gRPC sends bytes");
        if (!rc && grpc && !(t->protocol = hone_traffic_grpc()))
            rc = hone_args_wrong("--grpc: libnghttp2 is not here, or was not when this hone was built: "
                                 "install libnghttp2-dev (Debian, "
                                 "Ubuntu) and build again");
        for (int k = 0; k < headers.n && !rc; k++)
            if (!strchr(headers.at[k], ':') || strpbrk(headers.at[k], "\r\n"))
                rc = hone_args_wrong("--header '%s': write it as 'NAME: VALUE'", headers.at[k]);
        if (!rc && csv) rc = hone_output_check("--csv", csv, NULL, &wish.inputs);
        if (!rc && csv) rc = hone_output_try("--csv", csv); /* found out before the load, not after it */
        if (!rc) rc = hone_target_read(operands.at[0], grpc, &t->target);
        if (!rc) rc = prepare(t, &wish, json_tensors);
        if (!rc) {
            hone_progress_begin(&s->bar, "asking the server");
            rc = levels(s, clients, rates);
            hone_progress_end(&s->bar);
        }
        if (s->n) { /* what was measured before something failed is still told */
            qsort(s->level, (size_t)s->n, sizeof *s->level, by_load);
            hone_traffic_report r = {t, s->level, s->n, hone_traffic_knee(s->level, s->n), operands.at[0]};
            if (stats) hone_args_answered(), hone_traffic_json(&r, stdout);
            else hone_traffic_tell(&r);
            int saved = csv ? save(&r, csv) : 0;
            if (!rc) rc = saved;
            for (int k = 0; k < s->n && !rc; k++) rc = s->level[k].errors > 0;
        }
    }
    hone_traffic_model_free(&t->model);
    for (int k = 0; t->request && k < t->requests; k++) hone_octets_free(&t->request[k]);
    free(t->request), free(s);
    hone_words_free(&operands), hone_words_free(&headers);
    hone_words_free(&wish.dims), hone_words_free(&wish.shapes), hone_words_free(&wish.inputs);
    return rc;
}
