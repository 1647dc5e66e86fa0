/* SPDX-License-Identifier: Apache-2.0
   server: options, protocols, the order in which all begins and ends; keys and the access log, which all
   protocols share. */
#include <errno.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>

#include "serve/front.h"
#include "serve/inside.h"
#include "serve/server.h"
#include "serve/trace.h"

enum { PROTOCOLS = 3, CALM = 25, KEYS_BYTES = 1 << 20, SPARE = 16 << 20, SPAN_S = 5 };

struct hone_server {
    hone_server_options o;
    char *text[16]; /* copies of the options' */
    int texts;
    char **load;
    hone_serve_core *core; /* or a front */
    hone_front *front;
    void *open[PROTOCOLS];
    bool quiet;
    atomic_bool stopping;
    atomic_ullong carried, kept_at;      /* bytes since memory was given back; when the last came */
    atomic_ullong span_from, span_bytes; /* the span under way */
    atomic_ullong most_bytes;            /* of a span, since memory was given back */
    atomic_ullong changed;               /* versions of models, when it was looked at last */
    char *keys;                          /* a line each */
    FILE *log;
    hone_serve_trace *trace;
};
#ifndef HONE_SERVE_GRPC
static const hone_serve_protocol no_grpc = {.name = "grpc"};
#endif
static const hone_serve_protocol *protocol(int k) {
    switch (k) {
    case 0: return &hone_serve_http;
#ifdef HONE_SERVE_GRPC
    case 1: return &hone_serve_grpc;
#else
    case 1: return &no_grpc;
#endif
    default: return &hone_serve_metrics;
    }
}

hone_serve_core *hone_serve_core_of(hone_server *s) { return s->core; }
hone_front *hone_serve_front_of(const hone_server *s) { return s->front; }
hone_serve_trace *hone_serve_trace_of(const hone_server *s) { return s->trace; }
bool hone_serve_logs(const hone_server *s) { return s->log || s->trace; }
bool hone_serve_stopping(const hone_server *s) { return atomic_load(&s->stopping); }
const hone_server_options *hone_serve_options(const hone_server *s) { return &s->o; }

void hone_server_options_default(hone_server_options *o) {
    *o = (hone_server_options){.http = 8000, .grpc = -1, .metrics = -1, .watch = 1};
}

/* ---- options ---- */

static bool keep_text(hone_server *s, const char **at) {
    if (!*at) return true;
    char *copy = strdup(*at);
    if (!copy) return false;
    s->text[s->texts++] = copy, *at = copy;
    return true;
}
static hone_status take(hone_server *s, const hone_server_options *given) {
    hone_server_options *o = &s->o;
    *o = *given;
    if (o->front && o->repository)
        return hone_server_say(HONE_BAD_INPUT, "a front has no models: give it a repository or servers");
    if (o->front && o->grpc >= 0 && !strstr(o->front, "grpc://"))
        return hone_server_say(HONE_BAD_INPUT,
                               "a front for gRPC needs servers of gRPC: --front grpc://HOST:PORT");
    if (!o->front && (!o->repository || !*o->repository))
        return hone_server_say(HONE_BAD_INPUT,
                               "name a repository: a folder of models, an .onnx file, or zoo:NAME");
    struct stat st;
    if (!o->front && strncmp(o->repository, "zoo:", 4) && stat(o->repository, &st))
        return hone_server_say(HONE_IO, "%s: %s", o->repository, strerror(errno));
    if (!o->certificate != !o->key)
        return hone_server_say(HONE_BAD_INPUT, "TLS wants both a certificate and its key");
    if (o->precision && strcmp(o->precision, "f32") && strcmp(o->precision, "bf16") &&
        strcmp(o->precision, "f16") && strcmp(o->precision, "tf32"))
        return hone_server_say(HONE_BAD_INPUT, "precision '%.20s': say f32, bf16 or f16, on cuda tf32",
                               o->precision);
    if (!o->host) o->host = "127.0.0.1";
    if (o->poll_ms <= 0) o->poll_ms = 1000;
    if (o->max_body_bytes <= 0) o->max_body_bytes = 256 << 20;
    if (o->max_json_bytes <= 0) o->max_json_bytes = 16 << 20;
    if (o->max_json_bytes > o->max_body_bytes) o->max_json_bytes = o->max_body_bytes;
    if (o->max_header_bytes <= 0) o->max_header_bytes = 32 << 10;
    if (o->max_connections <= 0) o->max_connections = 1000;
    if (o->idle_seconds <= 0) o->idle_seconds = 60;
    if (o->request_seconds <= 0) o->request_seconds = 120;
    if (o->queue <= 0) o->queue = 256;
    if (!o->max_files_mib) o->max_files_mib = 256;
    if (o->answer_seconds <= 0) o->answer_seconds = 60;
    const char **texts[] = {&o->repository, &o->host,      &o->goal,  &o->api_keys, &o->certificate, &o->key,
                            &o->access_log, &o->precision, &o->front, &o->trace,    &o->device};
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        if (!keep_text(s, texts[k])) return hone_server_say(HONE_NO_MEMORY, "no memory for a server");
    int n = 0;
    while (o->load && o->load[n]) n++;
    if (!(s->load = calloc((size_t)n + 1, sizeof *s->load)))
        return hone_server_say(HONE_NO_MEMORY, "no memory for a server");
    for (int k = 0; k < n; k++)
        if (!(s->load[k] = strdup(o->load[k])))
            return hone_server_say(HONE_NO_MEMORY, "no memory for a server");
    o->load = (const char *const *)s->load;
    return HONE_OK;
}
static hone_status read_keys(hone_server *s) {
    const char *path = s->o.api_keys;
    if (!path) return HONE_OK;
    FILE *f = fopen(path, "rb");
    if (!f) return hone_server_say(HONE_IO, "API keys: %s: %s", path, strerror(errno));
    s->keys = calloc(1, KEYS_BYTES + 2);
    const size_t n = s->keys ? fread(s->keys, 1, KEYS_BYTES + 1, f) : 0;
    fclose(f);
    if (!s->keys) return hone_server_say(HONE_NO_MEMORY, "no memory for API keys");
    if (n > KEYS_BYTES)
        return hone_server_say(HONE_BAD_INPUT, "API keys: %s is larger than %d KiB", path, KEYS_BYTES >> 10);
    if (strspn(s->keys, " \t\r\n") == n)
        return hone_server_say(HONE_BAD_INPUT, "API keys: %s has none; a key a line", path);
    return HONE_OK;
}
/* All of the text is looked at whatever comes first, so that time tells nothing. */
bool hone_serve_key_good(const hone_server *s, const char *key) {
    if (!s->keys) return true;
    const size_t n = key ? strlen(key) : 0;
    bool good = false;
    for (const char *line = s->keys; *line;) {
        const size_t length = strcspn(line, "\r\n");
        unsigned char differs = length != n || !n;
        for (size_t k = 0; k < length; k++) differs |= (unsigned char)(line[k] ^ (n ? key[k % n] : 0));
        good |= !differs;
        line += length + strspn(line + length, "\r\n");
    }
    return good;
}

/* ---- memory ---- */

void hone_serve_carried(hone_server *s, uint64_t bytes) {
    atomic_fetch_add_explicit(&s->carried, bytes, memory_order_relaxed);
    atomic_fetch_add_explicit(&s->span_bytes, bytes, memory_order_relaxed);
    atomic_store_explicit(&s->kept_at, hone_serve_now(), memory_order_relaxed);
}
/* True where a crowd has left, though requests go on: a span carried a quarter of the busiest one; or a model
   has left, or has come and was measured. */
static bool ebbed(hone_server *s, uint64_t now) {
    unsigned long long from = atomic_load(&s->span_from);
    if (now - from < SPAN_S * 1000000000ull || !atomic_compare_exchange_strong(&s->span_from, &from, now))
        return false;
    const uint64_t bytes = atomic_exchange(&s->span_bytes, 0), most = atomic_load(&s->most_bytes);
    const bool less = most >= SPARE && bytes < most / 4;
    if (less || bytes > most) atomic_store(&s->most_bytes, bytes);
    const uint64_t changed = s->core ? atomic_load(&s->core->changed) : 0;
    return (atomic_exchange(&s->changed, changed) != changed) | less;
}
/* Bodies of many sizes leave holes in the heaps of all threads. Two seconds without a request are the time to
   give them back, or the first span with few: it takes milliseconds, and the next request pays for fresh
   pages. */
void hone_serve_calm(hone_server *s) {
    const uint64_t now = hone_serve_now();
    const bool still = atomic_load(&s->carried) >= SPARE && now - atomic_load(&s->kept_at) >= 2000000000u;
    if (!ebbed(s, now) && !still) return;
    atomic_store(&s->carried, 0);
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

/* ---- the access log ---- */

void hone_serve_log(hone_server *s, const hone_serve_access *a) {
    hone_serve_trace_end(s->trace, a);
    if (!s->log) return;
    struct timespec now;
    struct tm tm;
    char when[64];
    clock_gettime(CLOCK_REALTIME, &now);
    gmtime_r(&now.tv_sec, &tm);
    const size_t n = strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%S", &tm);
    snprintf(when + n, sizeof when - n, ".%06ldZ", now.tv_nsec / 1000);
    json_t *line =
        json_pack("{s:s, s:s, s:s, s:s, s:s, s:i, s:I, s:I, s:f}", "time", when, "peer",
                  a->peer ? a->peer : "", "protocol", a->protocol, "verb", a->verb ? a->verb : "", "path",
                  a->path ? a->path : "", "status", a->code, "bytes_in", (json_int_t)a->bytes_in, "bytes_out",
                  (json_int_t)a->bytes_out, "ms", (double)(a->ended - a->began) * 1e-6);
    if (line && a->trace) json_object_set_new(line, "traceparent", json_string(a->trace));
    if (line && a->times && a->times->ran && a->times->ran > a->times->ready &&
        a->times->begun > a->times->queued) {
        json_object_set_new(line, "queue_us",
                            json_integer((json_int_t)((a->times->begun - a->times->queued) / 1000)));
        json_object_set_new(line, "run_us",
                            json_integer((json_int_t)((a->times->ran - a->times->ready) / 1000)));
        json_object_set_new(line, "batch", json_integer(a->times->batch));
    }
    if (line && a->server) {
        json_object_set_new(line, "server", json_string(a->server));
        json_object_set_new(line, "tries", json_integer(a->tries));
    }
    char *text = line ? json_dumps(line, JSON_COMPACT) : NULL;
    if (text) fprintf(s->log, "%s\n", text); /* one call: lines of threads do not mix */
    if (text && s->log == stdout) fflush(s->log);
    free(text), json_decref(line);
}

/* ---- begin and end ---- */

static hone_status open_all(hone_server *s) {
    const int ports[PROTOCOLS] = {s->o.http, s->o.grpc, s->o.metrics};
    for (int k = 0; k < PROTOCOLS; k++) {
        if (ports[k] < 0) continue;
        if (ports[k] > 65535)
            return hone_server_say(HONE_BAD_INPUT, "%s port %d: ports go to 65535", protocol(k)->name,
                                   ports[k]);
        if (!protocol(k)->begin)
            return hone_server_say(HONE_NOT_SUPPORTED, "this server was built without %s", protocol(k)->name);
        const hone_status st = protocol(k)->begin(s, ports[k], &s->open[k]);
        if (st) return st;
    }
    return HONE_OK;
}
hone_status hone_server_start(const hone_server_options *o, hone_server **out) {
    hone_server *s = calloc(1, sizeof *s);
    if (!s) return hone_server_say(HONE_NO_MEMORY, "no memory for a server");
    hone_status st = take(s, o);
    if (!st) st = read_keys(s);
    if (!st && s->o.access_log &&
        !(s->log = !strcmp(s->o.access_log, "-") ? stdout : fopen(s->o.access_log, "ae")))
        st = hone_server_say(HONE_IO, "access log: %s: %s", s->o.access_log, strerror(errno));
    if (s->log && s->log != stdout) setvbuf(s->log, NULL, _IOLBF, 1 << 16);
    if (!st && s->o.trace) st = hone_serve_trace_open(&s->o, &s->trace);
    if (!st) st = s->o.front ? hone_front_open(&s->o, &s->front) : hone_serve_core_start(&s->o, &s->core);
    if (!st) st = open_all(s);
    if (st) {
        hone_server_free(s);
        return st;
    }
    if (s->core) hone_serve_core_go(s->core);
    if (s->core && (st = hone_serve_core_named(s->core))) {
        hone_server_free(s);
        return st;
    }
    *out = s;
    return HONE_OK;
}
int hone_server_port(const hone_server *s, const char *what) {
    for (int k = 0; k < PROTOCOLS; k++)
        if (!strcmp(protocol(k)->name, what)) return s->open[k] ? protocol(k)->port(s->open[k]) : -1;
    return -1;
}
hone_status hone_server_stop(hone_server *s, int64_t most_ms) {
    const uint64_t until = hone_serve_now() + (uint64_t)(most_ms > 0 ? most_ms : 0) * 1000000u;
    atomic_store(&s->stopping, true);
    if (s->core) hone_serve_core_drain(s->core);
    for (int k = 0; k < PROTOCOLS; k++)
        if (s->open[k] && !s->quiet) protocol(k)->quiet(s->open[k]);
    s->quiet = true;
    int left = 0;
    for (int calm = 0; calm < CALM && (!calm || most_ms > 0);
         calm++) { /* what is on its way through the machine's sockets comes in a moment */
        left = s->core ? atomic_load(&s->core->under_way) : 0;
        for (int k = 0; k < PROTOCOLS; k++) left += s->open[k] ? protocol(k)->busy(s->open[k]) : 0;
        if (left) calm = 0;
        if (hone_serve_now() >= until) break;
        nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    if (s->core && left) hone_serve_core_cut(s->core);
    if (s->front) hone_front_end(s->front);
    for (int k = 0; k < PROTOCOLS; k++)
        if (s->open[k]) protocol(k)->end(s->open[k]), s->open[k] = NULL;
    return left ? hone_server_say(HONE_IO, "%d requests were still running after %lld ms", left,
                                  (long long)most_ms)
                : HONE_OK;
}
void hone_server_free(hone_server *s) {
    if (!s) return;
    if (s->core || s->front) (void)hone_server_stop(s, 0);
    hone_serve_core_free(s->core);
    hone_front_free(s->front);
    hone_serve_trace_free(s->trace);
    if (s->log && s->log != stdout) fclose(s->log);
    for (int k = 0; k < s->texts; k++) free(s->text[k]);
    for (int k = 0; s->load && s->load[k]; k++) free(s->load[k]);
    free(s->load), free(s->keys), free(s);
}
