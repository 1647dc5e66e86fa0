/* SPDX-License-Identifier: Apache-2.0
   traffic_http: HTTP/1.1 as a client speaks it that sends the same few requests for ever: whole requests are
   made before, answers are counted and thrown away. A connection has one request under way. Not a general
   client: no redirects, no TLS, no compression. Answers are read by net/answer.h. */
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "net/answer.h"
#include "term.h"
#include "traffic.h"

enum { TOLD_MAX = 200, CALL_MAX = 64 << 20, READ = 64 << 10 };

typedef struct {
    hone_answer answer;
    hone_octets *body; /* kept here, or NULL: only its first bytes, in `told` */
    size_t told_n;
    char told[TOLD_MAX];
} kept;

static bool keep(void *arg, const uint8_t *at, size_t n) {
    kept *a = arg;
    if (a->body && a->body->n + n > CALL_MAX) return false;
    if (a->body) hone_octets_add(a->body, at, n);
    for (size_t k = 0; k < n && a->told_n < TOLD_MAX - 1 && a->answer.status != 200; k++)
        a->told[a->told_n++] = (char)at[k];
    return true;
}
static void kept_reset(kept *a, hone_octets *body) {
    a->answer.body = keep, a->answer.arg = a, a->body = body, a->told_n = 0;
    hone_answer_reset(&a->answer);
}

/* ---- one connection under load ---- */

typedef struct {
    const hone_traffic_link *link;
    int fd, slot;
    bool busy, gone;
    const hone_octets *request;
    size_t sent;
    kept kept;
} connection;

static void *open_(const hone_traffic_link *link, int fd, int first_slot) {
    connection *c = hone_must_alloc(sizeof *c);
    c->link = link, c->fd = fd, c->slot = first_slot;
    return c;
}

static void told(connection *c, const char *why) {
    bool was = c->busy;
    c->busy = false;
    if (was) c->link->done(c->link->cookie, c->slot, why);
}
static bool broken(connection *c, const char *why) {
    c->gone = true;
    told(c, why);
    return false;
}

static bool push(connection *c) {
    while (c->busy && c->sent < c->request->n) {
        ssize_t n = send(c->fd, c->request->at + c->sent, c->request->n - c->sent, MSG_NOSIGNAL);
        if (n < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOTCONN)) return true;
        if (n < 0) return broken(c, strerror(errno));
        c->sent += (size_t)n;
    }
    return true;
}

static bool send_(void *self, int slot, int request) {
    connection *c = self;
    c->request = &c->link->request[request], c->sent = 0, c->busy = true, c->slot = slot;
    kept_reset(&c->kept, NULL);
    return push(c);
}

static bool finish(connection *c) {
    char why[TOLD_MAX + 32];
    const hone_answer *a = &c->kept.answer;
    c->gone |= a->closes;
    c->kept.told[c->kept.told_n] = 0;
    if (a->status != 200) snprintf(why, sizeof why, "HTTP %d: %s", a->status, c->kept.told);
    told(c, a->status == 200 ? NULL : why);
    return !c->gone;
}

static bool ready(void *self, bool readable, bool writable) {
    connection *c = self;
    static uint8_t room[READ]; /* one thread */
    if (writable && !push(c)) return false;
    while (readable) {
        ssize_t n = recv(c->fd, room, sizeof room, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return true;
        if (n < 0) return broken(c, strerror(errno));
        if (n == 0) {
            if (c->busy && hone_answer_end(&c->kept.answer)) return c->gone = true, finish(c);
            return broken(c, "the server closed the connection before it had answered");
        }
        if (!c->busy) return broken(c, "the server sent something that nobody had asked for");
        size_t used = hone_answer_take(&c->kept.answer, room, (size_t)n);
        if (c->kept.answer.stage == HONE_ANSWER_BROKEN) return broken(c, "the server's answer is not HTTP");
        if (c->kept.answer.stage != HONE_ANSWER_DONE) continue;
        if (used < (size_t)n) return broken(c, "the server's answer is longer than it says");
        return finish(c); /* what has come by now was all: its next answer needs a request */
    }
    return true;
}

static bool waits(void *self) {
    const connection *c = self;
    return c->busy && c->sent < c->request->n;
}

/* ---- asking the server about itself ---- */

static void put_headers(hone_octets *o, const hone_target *t) {
    hone_octets_print(o, strchr(t->host, ':') ? "Host: [%s]:%s\r\n" : "Host: %s:%s\r\n", t->host, t->port);
    for (int k = 0; t->headers && k < t->headers->n; k++) hone_octets_print(o, "%s\r\n", t->headers->at[k]);
}

static void put_escaped(hone_octets *o, const char *name) {
    static const char plain[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.~";
    for (; *name; name++) hone_octets_print(o, strchr(plain, *name) ? "%c" : "%%%02X", (unsigned char)*name);
}
static void put_path(hone_octets *o, const hone_traffic_model *m, const char *rest) {
    hone_octets_print(o, "/v2/models/");
    put_escaped(o, m->name);
    if (*m->version) hone_octets_print(o, "/versions/%s", m->version);
    hone_octets_print(o, "%s", rest);
}

/* GET path. 0: `body` is what it answered, ended by a zero; else why not, in `why`. */
static int call(const hone_target *t, const char *path, hone_octets *body, char *why, size_t room) {
    hone_octets ask = {0};
    kept *k = hone_must_alloc(sizeof *k);
    hone_answer *a = &k->answer;
    uint8_t *piece = hone_must_alloc(READ);
    double until = hone_clock_ms() + t->timeout_s * 1000;
    int fd = hone_target_connect(t, true);
    size_t sent = 0;
    hone_octets_print(&ask, "GET %s HTTP/1.1\r\n", path);
    put_headers(&ask, t);
    hone_octets_print(&ask, "Connection: close\r\n\r\n");
    kept_reset(k, body);
    while (fd >= 0 && a->stage < HONE_ANSWER_DONE) {
        struct pollfd p = {.fd = fd, .events = (short)(sent < ask.n ? POLLOUT : POLLIN)};
        double left = until - hone_clock_ms();
        if (left <= 0 || poll(&p, 1, (int)left + 1) == 0) {
            errno = ETIMEDOUT;
            break;
        }
        ssize_t n =
            sent < ask.n ? send(fd, ask.at + sent, ask.n - sent, MSG_NOSIGNAL) : recv(fd, piece, READ, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n < 0) break;
        if (sent < ask.n) sent += (size_t)n;
        else if (n) hone_answer_take(a, piece, (size_t)n);
        else {
            hone_answer_end(a);
            errno = ECONNRESET;
        }
    }
    bool whole = fd >= 0 && a->stage == HONE_ANSWER_DONE;
    k->told[k->told_n] = 0;
    if (!whole)
        snprintf(why, room, "%s",
                 a->stage == HONE_ANSWER_BROKEN ? "the answer is not HTTP" : strerror(errno));
    else if (a->status != 200) snprintf(why, room, "HTTP %d %s", a->status, k->told);
    int rc = whole && a->status == 200 ? 0 : whole ? a->status : -1;
    hone_octets_add(body, "", 1);
    hone_socket_close(fd);
    hone_octets_free(&ask);
    free(piece), free(k);
    return rc;
}

static hone_json *call_json(const hone_target *t, const hone_traffic_model *m, const char *rest, char *why,
                            size_t room) {
    hone_octets path = {0}, body = {0};
    hone_json *j = NULL;
    if (m) put_path(&path, m, rest);
    else hone_octets_print(&path, "%s", rest);
    hone_octets_add(&path, "", 1);
    if (!call(t, (const char *)path.at, &body, why, room) && !(j = hone_json_read((const char *)body.at)))
        snprintf(why, room, "the answer to GET %s is not JSON", (const char *)path.at);
    hone_octets_free(&path), hone_octets_free(&body);
    return j;
}

static int describe(const hone_target *t, hone_traffic_model *m) {
    char why[512] = "";
    hone_json *server = call_json(t, NULL, "/v2", why, sizeof why);
    if (!server) return hone_args_wrong("%s:%s does not speak KServe v2: GET /v2: %s", t->host, t->port, why);
    snprintf(m->server, sizeof m->server, "%s %s", hone_json_text(server, "name", "?"),
             hone_json_text(server, "version", ""));
    hone_json_free(server);
    hone_json *metadata = call_json(t, m, "", why, sizeof why);
    if (!metadata) return hone_args_wrong("--model %s: %s", m->name, why);
    hone_json *config = call_json(t, m, "/config", why, sizeof why); /* not every server has it */
    int rc = hone_traffic_describe(m, metadata, config);
    hone_json_free(metadata), hone_json_free(config);
    return rc;
}

static void served(const hone_target *t, const hone_traffic_model *m, hone_traffic_served *out) {
    char why[512];
    hone_json *j = call_json(t, m, "/stats", why, sizeof why);
    const hone_json *all = hone_json_get(j, "model_stats");
    *out = (hone_traffic_served){0};
    /* of all versions, where none was asked for */
    for (const hone_json *s = all ? all->first : NULL; s; s = s->next) {
        const hone_json *i = hone_json_get(s, "inference_stats");
        out->there = i != NULL;
        out->executions += hone_json_number(s, "execution_count", 0);
        out->inferences += hone_json_number(s, "inference_count", 0);
        out->requests += hone_json_number(hone_json_get(i, "success"), "count", 0);
        out->total += hone_json_number(hone_json_get(i, "success"), "ns", 0);
        out->queue += hone_json_number(hone_json_get(i, "queue"), "ns", 0);
        out->input += hone_json_number(hone_json_get(i, "compute_input"), "ns", 0);
        out->infer += hone_json_number(hone_json_get(i, "compute_infer"), "ns", 0);
        out->output += hone_json_number(hone_json_get(i, "compute_output"), "ns", 0);
    }
    hone_json_free(j);
}

static void body(const hone_traffic_model *m, const hone_target *t, int k, bool json, hone_octets *out) {
    hone_octets content = {0};
    size_t head = hone_traffic_json_body(m, k, json, &content);
    hone_octets_print(out, "POST ");
    put_path(out, m, "/infer");
    hone_octets_print(out, " HTTP/1.1\r\n");
    put_headers(out, t);
    if (json) hone_octets_print(out, "Content-Type: application/json\r\n");
    else
        hone_octets_print(
            out, "Content-Type: application/octet-stream\r\nInference-Header-Content-Length: %zu\r\n", head);
    hone_octets_print(out, "Content-Length: %zu\r\n\r\n", content.n);
    hone_octets_add(out, content.at, content.n);
    hone_octets_free(&content);
}

const hone_traffic_protocol hone_traffic_http = {
    .name = "HTTP",
    .streams = 1,
    .open = open_,
    .close = free,
    .send = send_,
    .ready = ready,
    .waits = waits,
    .describe = describe,
    .served = served,
    .body = body,
};
