/* SPDX-License-Identifier: Apache-2.0
   front_http: what a front does with a call: its own health, metrics and page; everything else is handed on
   as it came, body and all, and so is the answer. A body is taken whole before a server gets it: a slow
   client holds nobody, and what broke can be repeated. */
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/front.h"
#include "serve/http.h"

static hone_front *front_of(const hone_http_call *c) { return hone_serve_front_of(hone_http_server(c)); }

/* ---- what is told of the front itself ---- */

static void live(hone_http_call *c) { hone_http_answer_json(c, 200, json_pack("{s:b}", "live", 1)); }
static void ready(hone_http_call *c) {
    const bool yes = !hone_serve_stopping(hone_http_server(c)) && hone_front_ready(front_of(c), false);
    hone_http_answer_json(c, yes ? 200 : 400, json_pack("{s:b}", "ready", yes));
}

static const struct {
    const char *key, *type, *help;
    double by;
} numbers[] = {
    {"ready", "gauge", "Whether the server is ready", 1},
    {"under_way", "gauge", "Requests that the server has now", 1},
    {"connections", "gauge", "Connections to the server", 1},
    {"requests", "counter", "Answers of the server", 1},
    {"failed", "counter", "Requests that the server did not answer", 1},
    {"repeated", "counter", "Requests that were repeated after it failed", 1},
    {"refused", "counter", "Requests that it answered with 503 and another one might take", 1},
    {"bytes_in", "counter", "Bytes of answers", 1},
    {"bytes_out", "counter", "Bytes of requests", 1},
    {"seconds", "counter", "Time from a request to its whole answer, all together", 1},
    {"p50_us", "gauge", "Half of all answers took less, in microseconds", 1},
    {"p99_us", "gauge", "99 of 100 answers took less, in microseconds", 1},
};
static void metrics(hone_http_call *c) {
    json_t *list = hone_front_status(front_of(c)), *one;
    hone_http_text t = {0};
    bool good = list != NULL;
    size_t at;
    for (size_t k = 0; good && k < sizeof numbers / sizeof *numbers; k++) {
        good = hone_http_printf(&t, "# HELP hone_front_%s %s\n# TYPE hone_front_%s %s\n", numbers[k].key,
                                numbers[k].help, numbers[k].key, numbers[k].type);
        json_array_foreach(list, at, one) {
            const json_t *v = json_object_get(one, numbers[k].key);
            good = good && hone_http_printf(&t, "hone_front_%s{server=", numbers[k].key) &&
                   hone_http_quoted(&t, json_string_value(json_object_get(one, "server"))) &&
                   hone_http_printf(&t, "} %.17g\n", json_is_true(v) ? 1 : json_number_value(v));
        }
    }
    good = good && hone_serve_metrics_process(&t);
    json_decref(list);
    if (good) hone_http_answer(c, 200, "text/plain; version=0.0.4; charset=utf-8", &t);
    else hone_serve_fail(&c->error, 503, "no memory for metrics"), free(t.at);
}
static void status(hone_http_call *c) {
    hone_front *f = front_of(c);
    json_t *j = hone_serve_status_process();
    int busy = 0;
    for (int k = 0; k < f->n; k++) busy += atomic_load(&f->backend[k].counts.under_way);
    if (j) {
        json_object_set_new(j, "health",
                            json_string(hone_serve_stopping(hone_http_server(c)) ? "draining"
                                        : hone_front_ready(f, false)             ? "ready"
                                                                                 : "no server is ready"));
        json_object_set_new(j, "uptime_s", json_real((double)(hone_serve_now() - f->began) * 1e-9));
        json_object_set_new(j, "under_way", json_integer(busy));
        json_object_set_new(j, "models", json_array());
        json_object_set_new(j, "index", json_array());
        json_object_set_new(j, "servers", hone_front_status(f));
    }
    hone_http_answer_json(c, 200, j);
}

/* ---- handing on ---- */

/* Of one connection, or made anew. */
static bool own(const char *name) {
    static const char *const names[] = {"Connection", "Keep-Alive", "Proxy-Connection", "Transfer-Encoding",
                                        "TE",         "Trailer",    "Upgrade",          "Content-Length",
                                        "Host",       "Expect",     "X-Forwarded-For",  "traceparent",
                                        "Date"};
    for (size_t k = 0; k < sizeof names / sizeof *names; k++)
        if (!strcasecmp(name, names[k])) return true;
    return false;
}
static bool plain(const char *text) { /* nothing that ends a line, or that servers might take for it */
    for (; *text; text++)
        if ((unsigned char)*text < ' ' && *text != '\t') return false;
    return true;
}
/* A name as HTTP has them. Others are left out: "Content-Length " is one to some servers. */
static bool token(const char *name) {
    static const char letters[] =
        "!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
    return *name && strspn(name, letters) == strlen(name);
}
static enum MHD_Result add_header(void *text, enum MHD_ValueKind kind, const char *name, const char *value) {
    hone_http_text *t = text;
    if (own(name) || !token(name) || !value || !plain(value)) return MHD_YES;
    const bool good = hone_http_append(t, name, strlen(name)) && hone_http_append(t, ": ", 2) &&
                      hone_http_append(t, value, strlen(value)) && hone_http_append(t, "\r\n", 2);
    return good ? MHD_YES : MHD_NO;
}
static enum MHD_Result add_argument(void *text, enum MHD_ValueKind kind, const char *name,
                                    const char *value) {
    hone_http_text *t = text;
    const bool first = !memchr(t->at, '?', t->n);
    return hone_http_append(t, first ? "?" : "&", 1) && hone_http_append(t, name, strlen(name)) &&
                   (!value || (hone_http_append(t, "=", 1) && hone_http_append(t, value, strlen(value))))
               ? MHD_YES
               : MHD_NO;
}
static void add_peer(hone_http_call *c, hone_http_text *t) {
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(c->connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    const struct sockaddr *a = i ? i->client_addr : NULL;
    const char *before = hone_http_header(c, "X-Forwarded-For");
    char peer[INET6_ADDRSTRLEN + 8] = "";
    if (!a ||
        getnameinfo(a, a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
                    peer, sizeof peer, NULL, 0, NI_NUMERICHOST))
        return;
    if (before && plain(before) && strlen(before) < 500)
        (void)hone_http_printf(t, "X-Forwarded-For: %s, %s\r\n", before, peer);
    else (void)hone_http_printf(t, "X-Forwarded-For: %s\r\n", peer);
}

/* The sequence that an inference belongs to, as a number; 0: none. Its JSON is searched, not read: who writes
   the name elsewhere in it gets one server, and no repetition. */
static uint64_t sequence_of(const hone_http_call *c, const hone_http_text *body) {
    static const char name[] = "\"sequence_id\"";
    const char *length = hone_http_header(c, "Inference-Header-Content-Length");
    const long long json = length ? atoll(length) : (long long)body->n;
    const size_t n = json < 0 ? 0 : (size_t)json < body->n ? (size_t)json : body->n;
    const char *at = n ? memmem(body->at, n, name, sizeof name - 1) : NULL, *end = at ? body->at + n : NULL;
    uint64_t hash = 14695981039346656037u;
    if (!at) return 0;
    at += sizeof name - 1;
    while (at < end && strchr(" \t\r\n:", *at)) at++;
    if (at < end && *at == '0') return 0;
    if (end - at >= 2 && at[0] == '"' && at[1] == '"') return 0;
    for (; at < end && !strchr(",} \t\r\n", *at); at++) hash = (hash ^ (uint8_t)*at) * 1099511628211u;
    return hash ? hash : 1;
}
static bool begins(const char *text, const char *with) { return !strncmp(text, with, strlen(with)); }
static bool ends(const char *text, const char *with) {
    const size_t n = strlen(text), m = strlen(with);
    return n >= m && !strcmp(text + n - m, with);
}

/* An answer as it came, but for what belongs to its connection. */
void hone_front_reply(hone_http_call *c) {
    hone_front_job *j = c->forward;
    if (!j->error.code && (j->status < 200 || j->status > 599))
        hone_serve_fail(&j->error, 502, "%s answers with status %d", j->by->name, j->status);
    if (j->error.code) {
        c->error = j->error;
        hone_http_answer_error(c);
        return;
    }
    c->reply = MHD_create_response_from_buffer(j->answer_n, j->answer ? (char *)j->answer : (char *)"",
                                               j->answer ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!c->reply) {
        hone_serve_fail(&c->error, 503, "no memory for an answer");
        return;
    }
    c->code = j->status, c->out = j->answer_n;
    j->answer = NULL;
    for (char *line = strstr(j->answer_head, "\r\n"), *end; line; line = end) {
        char *name = line + 2, *value = strchr(name, ':');
        if (!(end = strstr(name, "\r\n"))) break;
        if (!value || value > end) continue;
        *end = *value++ = 0;
        value += strspn(value, " \t");
        if (!own(name) && token(name) && plain(value)) (void)MHD_add_response_header(c->reply, name, value);
        *end = '\r';
    }
}
static void done(hone_front_job *j) { hone_http_release(j->arg); }
static void forward(hone_http_call *c) {
    hone_http_text head = {0};
    hone_front_job *j = c->forward = calloc(1, sizeof *j);
    const bool post = c->route->post;
    bool good = j && hone_http_printf(&head, "%s ", post ? "POST" : "GET") &&
                hone_http_append(&head, c->url, strlen(c->url));
    if (good) MHD_get_connection_values(c->connection, MHD_GET_ARGUMENT_KIND, add_argument, &head);
    for (size_t k = 5; good && k < head.n; k++) /* libmicrohttpd takes a plus in a query for a blank */
        if (head.at[k] == ' ' && memchr(head.at, '?', k)) head.at[k] = '+';
    if (good && strcspn(head.at + 5, " \t\r\n") + 5 != head.n) {
        hone_serve_fail(&c->error, 400, "a path has no blanks");
        free(head.at);
        return;
    }
    good = good && hone_http_printf(&head, " HTTP/1.1\r\n");
    if (good)
        MHD_get_connection_values(c->connection, MHD_HEADER_KIND, add_header, &head), add_peer(c, &head);
    if (good && *c->trace) good = hone_http_printf(&head, "traceparent: %s\r\n", c->trace);
    if (good && post) good = hone_http_printf(&head, "Content-Length: %zu\r\n", c->text.n);
    if (!good) {
        free(head.at);
        hone_serve_fail(&c->error, 503, "no memory for a request");
        return;
    }
    j->head = head.at, j->head_n = head.n, j->body = c->text.at ? c->text.at : "", j->body_n = c->text.n;
    j->want.everywhere =
        post && (begins(c->url, "/v2/repository/models/") || begins(c->url, "/v2/systemsharedmemory/") ||
                 begins(c->url, "/v2/cudasharedmemory/"));
    j->want.sequence = post && !j->want.everywhere && c->text.n ? sequence_of(c, &c->text) : 0;
    /* what is packed cannot be searched for a sequence */
    j->want.repeatable =
        j->want.everywhere || !(j->want.sequence || (post && hone_http_header(c, "Content-Encoding")));
    j->done = done, j->arg = c, c->waiting = true;
    hone_front_post(front_of(c), j);
}
void hone_front_forget(hone_http_call *c) {
    free(c->url);
    if (!c->forward) return;
    free((char *)(uintptr_t)c->forward->head), free(c->forward->answer_head), free(c->forward->answer);
    free(c->forward);
}

const hone_http_route *hone_front_find(hone_http_call *c, const char *url, bool post, bool metrics_only) {
    static const struct {
        const char *path;
        hone_http_route route;
    } routes[] = {
        {"/v2/health/live", {"live", false, true, NULL, live}},
        {"/v2/health/ready", {"ready", false, true, NULL, ready}},
        {"/metrics", {"metrics", false, false, NULL, metrics}},
        {"/status", {"status", false, false, NULL, status}},
        {"/", {"page", false, true, NULL, hone_http_page}},
    };
    static const hone_http_route get = {"forward", false, false, NULL, forward},
                                 probe = {"forward", false, true, NULL, forward},
                                 with_body = {"forward", true, false, NULL, forward};
    for (size_t k = 0; k < sizeof routes / sizeof *routes; k++)
        if (!post && !strcmp(url, routes[k].path) && (k <= 2 || !metrics_only)) return &routes[k].route;
    if (metrics_only) {
        hone_serve_fail(&c->error, 404, "there is nothing at %.200s", url);
        return NULL;
    }
    if (!(c->url = strdup(url))) {
        hone_serve_fail(&c->error, 503, "no memory for a request");
        return NULL;
    }
    c->raw = true;
    return post ? &with_body : ends(url, "/ready") ? &probe : &get;
}
