/* SPDX-License-Identifier: Apache-2.0
   hone serve: a folder of models behind ports. The server is a library of its own, loaded here: the command
   needs none of what it stands on. */
#include <dlfcn.h>
#include <libgen.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "args.h"
#include "commands.h"
#include "hone/serve.h"
#include "term.h"
#include "where.h"

enum { PATHS = 4096 };
#ifdef HONE_SERVE_GRPC
enum { HAS_GRPC = 1 };
#else
enum { HAS_GRPC = 0 };
#endif
#define LIBRARY "libhone_serve.so.0"
#if defined(__x86_64__)
#define TRIPLET "x86_64-linux-gnu/" /* Debian's name of the folder */
#else
#define TRIPLET "aarch64-linux-gnu/"
#endif

typedef struct {
    void (*defaults)(hone_server_options *);
    const char *(*error)(void);
    hone_status (*start)(const hone_server_options *, hone_server **);
    int (*port)(const hone_server *, const char *);
    hone_status (*stop)(hone_server *, int64_t);
    void (*end)(hone_server *);
} library;

/* Beside the command, in the lib folder beside its bin, then wherever the system looks. */
static void *open_library(char *why, size_t room) {
    char self[PATHS], path[PATHS + 64];
    const ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    static const char *const places[] = {"%s/" LIBRARY, "%s/../lib/" LIBRARY, "%s/../lib64/" LIBRARY,
                                         "%s/../lib/" TRIPLET LIBRARY};
    self[n > 0 ? n : 0] = 0;
    const char *folder = n > 0 ? dirname(self) : ".";
    snprintf(why, room, "it is not there");
    for (size_t k = 0; k < sizeof places / sizeof *places; k++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        snprintf(path, sizeof path, places[k], folder);
#pragma GCC diagnostic pop
        if (access(path, R_OK)) continue;
        void *l = dlopen(path, RTLD_NOW | RTLD_LOCAL);
        if (l) return l;
        snprintf(why, room, "%s", dlerror());
    }
    return dlopen(LIBRARY, RTLD_NOW | RTLD_LOCAL);
}
static bool load(library *l, char *why, size_t room) {
    void *at = open_library(why, room);
    if (!at) return false;
    const struct {
        const char *name;
        void *to;
    } names[] = {{"hone_server_options_default", &l->defaults},
                 {"hone_server_error", &l->error},
                 {"hone_server_start", &l->start},
                 {"hone_server_port", &l->port},
                 {"hone_server_stop", &l->stop},
                 {"hone_server_free", &l->end}};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++) {
        void *function = dlsym(at, names[k].name);
        if (!function) {
            snprintf(why, room, "%s has no %s: it is of another version", LIBRARY, names[k].name);
            return false;
        }
        memcpy(names[k].to, &function, sizeof function);
    }
    return true;
}

static void tell(void *json, const char *line) {
    if (*(bool *)json) return;
    fprintf(stderr, "%s\n", line);
}
static int bytes_of(double mib, int64_t *out) {
    *out = (int64_t)(mib * 1048576);
    return 0;
}

/* The server's messages begin with its name, as the command's lines do. */
static const char *why_of(const library *l) {
    const char *why = l->error();
    return strncmp(why, "serve: ", 7) ? why : why + 7;
}
int hone_cmd_serve(int argc, char **argv) {
    library l;
    char why[1024];
    const char *host = NULL, *goal = NULL, *keys = NULL, *certificate = NULL, *key = NULL, *log = NULL,
               *precision = NULL, *front = NULL, *trace = NULL;
    int http = 8000, grpc = INT_MIN, metrics = 8002, threads = 0, http_threads = 0, queue = 0,
        connections = 0, per_ip = 0, idle = 0, request_s = 0, run_ms = 0, grace = 30, answer_s = 0,
        model_mib = 0;
    double body = 0, json_body = 0, rate = 0, files = 256;
    bool no_watch = false, explicit_load = false, json = false;
    hone_words load_names = {0}, operands = {0};
    hone_where where = {0};
    const hone_option options[] = {
        {"--host", "ADDRESS", "listen there; 0.0.0.0: everywhere (127.0.0.1)", HONE_ARG_TEXT, &host, 0},
        {"--http", "PORT", "KServe v2 over HTTP; 0: any free port, -1: none (8000)", HONE_ARG_PORT, &http,
         -1},
        {"--grpc", "PORT", "KServe v2 over gRPC (8001 where it was built in)", HONE_ARG_PORT, &grpc, -1},
        {"--metrics", "PORT", "/metrics for Prometheus, without keys or TLS (8002)", HONE_ARG_PORT, &metrics,
         -1},
        {"--front", "HOST:PORT,…",
         "no models: requests go to these servers (for gRPC grpc://HOST:PORT), the one with the least to do",
         HONE_ARG_TEXT, &front, 0},
        {"--answer-time", "SECONDS", "a server behind a front must have answered (60)", HONE_ARG_INT,
         &answer_s, 1},
        {"--goal", "GOAL", "latency=10ms or throughput: what batches are chosen for (throughput)",
         HONE_ARG_TEXT, &goal, 0},
        {"--threads", "N", "cores for models (all)", HONE_ARG_THREADS, &threads, 1},
        {"--http-threads", "N", "threads that read and write connections (one a core, at most 4)",
         HONE_ARG_INT, &http_threads, 1},
        {"--device", "NAME[:N],…", "where models run: cpu, cuda, cuda:0,cuda:1, opencl, a plugin's (cpu)",
         HONE_ARG_TEXT, &where.device, 0},
        {"--plugin", "FILE", "a file that adds devices or ops", HONE_ARG_LIST, &where.plugins, 0},
        HONE_OPS_OPTION(&where),
        {"--precision", "TYPE", "f32, bf16, f16 or tf32, as for run", HONE_ARG_TEXT, &precision, 0},
        {"--load", "NAME", "load only what is named; again for more, '*' for all", HONE_ARG_LIST, &load_names,
         0},
        {"--explicit", NULL, "load nothing until it is asked for", HONE_ARG_FLAG, &explicit_load, 0},
        {"--no-watch", NULL, "changes in the folder are not followed", HONE_ARG_FLAG, &no_watch, 0},
        {"--queue", "N", "requests that may wait for one model; more get 503 (256)", HONE_ARG_INT, &queue, 1},
        {"--run-limit", "MS", "a run that takes longer fails (no limit)", HONE_ARG_INT, &run_ms, 1},
        {"--max-body", "MIB", "of a request, unpacked (256)", HONE_ARG_NUMBER, &body, 0.001},
        {"--max-json", "MIB", "of that, JSON (16)", HONE_ARG_NUMBER, &json_body, 0.001},
        {"--max-files", "MIB", "of files in a request to load a model; 0: none are taken (256)",
         HONE_ARG_NUMBER, &files, 0},
        {"--model-memory", "MIB", "of one model's weights and tensors; its config may say less (no limit)",
         HONE_ARG_INT, &model_mib, 1},
        {"--connections", "N", "at once (1000)", HONE_ARG_INT, &connections, 1},
        {"--connections-per-ip", "N", "at once from one address (no limit)", HONE_ARG_INT, &per_ip, 1},
        {"--idle", "SECONDS", "a connection that does nothing is closed (60)", HONE_ARG_INT, &idle, 1},
        {"--request-time", "SECONDS", "a request must have come whole (120)", HONE_ARG_INT, &request_s, 1},
        {"--rate", "N", "requests a second from one address; more get 429 (no limit)", HONE_ARG_NUMBER, &rate,
         0.001},
        {"--api-keys", "FILE", "a key a line; requests then say Authorization: Bearer KEY", HONE_ARG_TEXT,
         &keys, 0},
        {"--tls-cert", "FILE", "certificate chain, PEM: HTTPS", HONE_ARG_TEXT, &certificate, 0},
        {"--tls-key", "FILE", "its private key, PEM", HONE_ARG_TEXT, &key, 0},
        {"--access-log", "FILE", "a line of JSON a request; -: standard output", HONE_ARG_TEXT, &log, 0},
        {"--trace", "FILE", "spans of requests, for ui.perfetto.dev", HONE_ARG_TEXT, &trace, 0},
        {"--grace", "SECONDS", "for running requests after SIGTERM (30)", HONE_ARG_INT, &grace, 0},
        {"--json", NULL, "one line of JSON when it is ready, and nothing else", HONE_ARG_FLAG, &json, 0},
        {NULL, NULL, NULL, HONE_ARG_FLAG, NULL, 0},
    };
    const hone_usage usage = {
        "serve",
        "[REPOSITORY]",
        0,
        1,
        "Serves the models of a folder over HTTP, as KServe v2 and Triton's clients speak it.",
        "hone serve models/\nhone serve zoo:resnet18 --http 9000\n"
        "hone serve --front a:8000,grpc://a:8001,b:8000,grpc://b:8001\n"
        "curl localhost:8000/v2/models/resnet18",
        options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    if (rc != HONE_ARGS_GO) goto out;
    if (!operands.n == !front) {
        rc = hone_args_wrong("say which models, or by --front which servers this one stands before");
        goto out;
    }
    if ((rc = hone_where_begin(&where))) goto out;
    rc = 1;
    if (!load(&l, why, sizeof why)) {
        hone_args_wrong("the server's library, " LIBRARY
                        ", cannot be loaded: %s. It is built where libmicrohttpd-dev, libjansson-dev and "
                        "zlib1g-dev are installed, and runs where libmicrohttpd12 and libjansson4 are",
                        why);
        goto out;
    }
    hone_server_options o;
    hone_server *server = NULL;
    l.defaults(&o);
    o.repository = operands.n ? operands.at[0] : NULL, o.front = front, o.trace = trace,
    o.answer_seconds = answer_s, o.host = host, o.http = http, o.metrics = metrics, o.goal = goal,
    o.threads = threads, o.http_threads = http_threads;
    o.grpc = grpc != INT_MIN ? grpc : (front ? strstr(front, "grpc://") != NULL : HAS_GRPC) ? 8001 : -1;
    o.device = where.device, o.precision = precision, o.watch = !no_watch,
    o.explicit_load = explicit_load || load_names.n, o.queue = queue, o.run_ms = run_ms;
    bytes_of(body, &o.max_body_bytes), bytes_of(json_body, &o.max_json_bytes);
    o.max_files_mib = files >= INT_MAX ? INT_MAX : files < 1 ? -1 : (int)files;
    o.max_model_mib = model_mib, o.max_connections = connections, o.max_connections_per_ip = per_ip,
    o.idle_seconds = idle, o.request_seconds = request_s, o.rate = rate;
    o.api_keys = keys, o.certificate = certificate, o.key = key, o.access_log = log, o.tell = tell,
    o.arg = &json;
    const char **names = hone_must_alloc(sizeof *names * ((size_t)load_names.n + 1));
    for (int k = 0; k < load_names.n; k++) names[k] = load_names.at[k];
    o.load = names;
    sigset_t stop;
    sigemptyset(&stop), sigaddset(&stop, SIGTERM), sigaddset(&stop, SIGINT);
    pthread_sigmask(SIG_BLOCK, &stop, NULL); /* before the server's threads: they inherit it */
    signal(SIGPIPE, SIG_IGN);
    if (l.start(&o, &server)) {
        hone_args_wrong("%s", why_of(&l));
        free(names);
        goto out;
    }
    const int at_http = l.port(server, "http"), at_grpc = l.port(server, "grpc"),
              at_metrics = l.port(server, "metrics");
    host = host ? host : "127.0.0.1";
    hone_args_answered();
    if (json)
        printf("{\"ready\": true, \"http\": %d, \"grpc\": %d, \"metrics\": %d}\n", at_http, at_grpc,
               at_metrics);
    else {
        printf("ready");
        if (at_http >= 0) printf("  http%s://%s:%d", certificate ? "s" : "", host, at_http);
        if (at_grpc >= 0) printf("  grpc %s:%d", host, at_grpc);
        if (at_metrics >= 0) printf("  http://%s:%d/metrics", host, at_metrics);
        printf("\n");
    }
    fflush(stdout);
    int got = 0;
    sigwait(&stop, &got);
    if (!json)
        fprintf(stderr, "%s: stopping; what runs is finished\n", got == SIGTERM ? "SIGTERM" : "SIGINT");
    rc = l.stop(server, (int64_t)grace * 1000) ? hone_args_wrong("%s", why_of(&l)) : 0;
    l.end(server);
    free(names);
out:
    hone_words_free(&operands), hone_words_free(&load_names), hone_where_free(&where);
    return rc;
}
