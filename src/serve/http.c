/* SPDX-License-Identifier: Apache-2.0
   http: the front over libmicrohttpd: a few threads with epoll, calls, keys, rates, compression, answers.
   What is asked is routes.c's and http_infer.c's.

   A call that must wait (a model runs, a model is loaded) suspends its connection; whoever finishes it wakes
   it. One that is done before the handler is back, because a short model ran right there, never sleeps. */
#include "serve/http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/accept.h"
#include "serve/front.h"
#include "serve/trace.h"

/* POOL: beside a request's headers; libmicrohttpd clears all of a connection's memory after each request, so
   it is kept small. */
enum {
    POOL = 16 << 10,
    ADDRESSES = 1024,
    SWALLOW = 1 << 20,
    SMALL = 512,
    TOLD_MS = 200,
    PILED = 64,
    NEVER = 1 << 28,
    AWAY_NS = 1000000000
};

struct hone_http {
    hone_server *server;
    struct MHD_Daemon *daemon;
    bool metrics; /* the port for Prometheus alone */
    int port;
    hone_acceptor door;
    atomic_int calls;     /* begun, and not wholly answered */
    atomic_int suspended; /* of them, those that wait for a model */
    atomic_bool draining;
    char *certificate, *key;
    pthread_mutex_t rating;
    struct {
        uint32_t address;
        double left;
        uint64_t at;
    } bucket[ADDRESSES];
    /* connections, and when their present request began to come: whoever sends headers for ever is cut off */
    pthread_mutex_t connecting;
    struct connection {
        int fd;
        uint64_t since; /* 0: between requests, or it is whole */
        bool body;      /* it is a body that comes */
        int piled;      /* so many requests of it may be there already */
        bool ours;      /* its request is whole, and not answered yet */
        /* the sweeper's: bytes that went either way, when they last became more, when that was looked at */
        uint64_t moved, active, looked;
        hone_http_seen seen;
        struct connection *next, **back;
    } * connections;
    hone_http_line line;
    pthread_t sweeper;
    bool sweeping;
    int stop[2];
};
extern const hone_http_route *hone_http_find(hone_http_call *, const char *url, bool post, bool metrics);

/* ---- calls ---- */

hone_server *hone_http_server(const hone_http_call *c) { return c->front->server; }
hone_serve_core *hone_http_core(const hone_http_call *c) { return hone_serve_core_of(c->front->server); }
const char *hone_http_header(const hone_http_call *c, const char *name) {
    return MHD_lookup_connection_value(c->connection, MHD_HEADER_KIND, name);
}
static void call_free(hone_http_call *c) {
    hone_http_infer_free(c);
    hone_front_forget(c);
    if (c->unpack) inflateEnd(&c->stream);
    if (c->reply) MHD_destroy_response(c->reply);
    json_decref(c->document);
    free(c->text.at), free(c);
}
void hone_http_release(hone_http_call *c) {
    hone_http *f = c->front; /* the call may be gone when it goes on */
    if (atomic_exchange(&c->state, HONE_CALL_DONE) != HONE_CALL_SUSPENDED) return;
    MHD_resume_connection(c->connection);
    atomic_fetch_sub(&f->suspended, 1);
}

/* ---- answers ---- */

static void set(hone_http_call *c, const char *name, const char *value) {
    (void)MHD_add_response_header(c->reply, name, value);
}
static bool wants(const char *accepted, const char *coding) {
    const size_t n = strlen(coding);
    for (const char *p = accepted; p && *p; p += strcspn(p, ","), p += *p == ',') {
        while (*p == ' ') p++;
        if (!strncasecmp(p, coding, n) && (p[n] == 0 || strchr(" ,;", p[n])))
            return !strstr(p, ";q=0,") && strcmp(p + n, ";q=0") != 0;
    }
    return false;
}
static bool pack(hone_http_text *t, bool gzip) {
    z_stream z = {0};
    if (t->n > UINT32_MAX / 2 ||
        deflateInit2(&z, Z_BEST_SPEED, Z_DEFLATED, gzip ? 31 : 15, 8, Z_DEFAULT_STRATEGY))
        return false;
    const size_t room = deflateBound(&z, t->n);
    char *out = malloc(room);
    z.next_in = (Bytef *)t->at, z.avail_in = (uInt)t->n, z.next_out = (Bytef *)out, z.avail_out = (uInt)room;
    const bool good = out && deflate(&z, Z_FINISH) == Z_STREAM_END;
    const size_t n = z.total_out;
    deflateEnd(&z);
    if (!good) {
        free(out);
        return false;
    }
    free(t->at);
    *t = (hone_http_text){out, n, room};
    return true;
}
void hone_http_answer(hone_http_call *c, int code, const char *type, hone_http_text *t) {
    const char *accepted = t->n > SMALL ? hone_http_header(c, "Accept-Encoding") : NULL, *coding = NULL;
    if (wants(accepted, "gzip")) coding = pack(t, true) ? "gzip" : NULL;
    else if (wants(accepted, "deflate")) coding = pack(t, false) ? "deflate" : NULL;
    c->code = code, c->out = t->n;
    c->reply = MHD_create_response_from_buffer(t->n, t->at ? t->at : (char *)"",
                                               t->at ? MHD_RESPMEM_MUST_FREE : MHD_RESPMEM_PERSISTENT);
    if (!c->reply) free(t->at);
    else {
        set(c, "Content-Type", type);
        if (coding) set(c, "Content-Encoding", coding);
    }
    *t = (hone_http_text){0};
}
void hone_http_answer_json(hone_http_call *c, int code, json_t *j) {
    char *text = j ? json_dumps(j, JSON_COMPACT) : NULL;
    json_decref(j);
    if (!text) {
        hone_serve_fail(&c->error, 503, "no memory for an answer");
        hone_http_answer_error(c);
        return;
    }
    hone_http_text t = {text, strlen(text), 0};
    hone_http_answer(c, code, "application/json", &t);
}
void hone_http_answer_empty(hone_http_call *c, int code) {
    c->code = code;
    c->reply = MHD_create_response_from_buffer(0, (char *)"", MHD_RESPMEM_PERSISTENT);
}
void hone_http_answer_error(hone_http_call *c) {
    hone_http_text t = {0};
    char text[sizeof c->error.text];
    snprintf(text, sizeof text, "%s", c->error.text);
    json_t *j = json_pack("{s:s}", "error", text); /* NULL where it is no UTF-8 */
    if (j) hone_http_answer_json(c, c->error.code, j);
    else if (hone_http_printf(&t, "{\"error\":\"the request names something that is not UTF-8\"}"))
        hone_http_answer(c, c->error.code, "application/json", &t);
    if (c->reply && c->error.retry_after) {
        snprintf(text, sizeof text, "%d", c->error.retry_after);
        set(c, "Retry-After", text);
    }
    if (c->reply && c->error.code == 401) set(c, "WWW-Authenticate", "Bearer");
}
static enum MHD_Result send_reply(hone_http_call *c) {
    if (!c->reply) hone_serve_fail(&c->error, 500, "there was no answer"), hone_http_answer_error(c);
    if (!c->reply) return MHD_NO;
    if (*c->trace) set(c, "traceparent", c->trace);
    if (atomic_load(&c->front->draining)) set(c, "Connection", "close");
    const enum MHD_Result r = MHD_queue_response(c->connection, (unsigned)c->code, c->reply);
    MHD_destroy_response(c->reply);
    c->reply = NULL;
    return r;
}

/* ---- who may ask, and how often ---- */

static bool key_good(const hone_http_call *c) {
    if (!hone_serve_options(c->front->server)->api_keys) return true;
    const char *header = hone_http_header(c, "Authorization");
    if (header && !strncasecmp(header, "Bearer ", 7))
        return hone_serve_key_good(c->front->server, header + 7);
    return hone_serve_key_good(c->front->server, hone_http_header(c, "api-key"));
}
static const struct sockaddr *peer_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CLIENT_ADDRESS);
    return i ? i->client_addr : NULL;
}
static uint32_t address_hash(const struct sockaddr *a) {
    uint32_t h = 2166136261u;
    const uint8_t *p = NULL;
    int n = 0;
    if (a && a->sa_family == AF_INET) p = (const uint8_t *)&((const struct sockaddr_in *)a)->sin_addr, n = 4;
    /* a network's */
    else if (a && a->sa_family == AF_INET6)
        p = (const uint8_t *)&((const struct sockaddr_in6 *)a)->sin6_addr, n = 8;
    for (int k = 0; k < n; k++) h = (h ^ p[k]) * 16777619u;
    return h ? h : 1;
}
/* A bucket an address: so many requests a second, and as many at once. Two addresses of one bucket take
   turns. */
static bool too_often(hone_http_call *c) {
    const double rate = hone_serve_options(c->front->server)->rate, most = rate < 1 ? 1 : rate;
    if (rate <= 0) return false;
    const uint32_t h = address_hash(peer_of(c->connection));
    const uint64_t now = hone_serve_now();
    hone_http *f = c->front;
    pthread_mutex_lock(&f->rating);
    if (f->bucket[h % ADDRESSES].address != h)
        f->bucket[h % ADDRESSES].address = h, f->bucket[h % ADDRESSES].left = most,
                      f->bucket[h % ADDRESSES].at = now;
    double left = f->bucket[h % ADDRESSES].left + rate * (double)(now - f->bucket[h % ADDRESSES].at) * 1e-9;
    if (left > most) left = most;
    const bool over = left < 1;
    f->bucket[h % ADDRESSES].left = over ? left : left - 1, f->bucket[h % ADDRESSES].at = now;
    pthread_mutex_unlock(&f->rating);
    if (over)
        hone_serve_fail(&c->error, 429, "more than %g requests a second from this address", rate),
            c->error.retry_after = 1;
    return over;
}

/* ---- one call, step by step ---- */

static struct connection *connection_of(struct MHD_Connection *connection) {
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);
    return i ? i->socket_context : NULL;
}
static struct connection *note_since(struct MHD_Connection *connection, uint64_t since, bool body) {
    struct connection *at = connection_of(connection);
    if (!at) return NULL;
    __atomic_store_n(&at->body, body, __ATOMIC_RELAXED);
    __atomic_store_n(&at->since, since, __ATOMIC_RELAXED);
    return at;
}
static void copy(char *to, size_t room, const char *text) { /* as much as fits */
    const size_t n = strnlen(text, room - 1);
    memcpy(to, text, n), to[n] = 0;
}
static hone_http_call *begin(hone_http *f, struct MHD_Connection *connection, const char *url,
                             const char *verb) {
    hone_http_call *c = calloc(1, sizeof *c);
    if (!c) return NULL;
    const hone_server_options *o = hone_serve_options(f->server);
    c->front = f, c->connection = connection, c->json_bytes = c->length = -1, c->began = hone_serve_now();
    atomic_init(&c->state, HONE_CALL_BODY);
    atomic_fetch_add(&f->calls, 1);
    struct connection *mine = note_since(connection, strcmp(verb, "POST") ? 0 : c->began, true);
    c->seen = mine ? &mine->seen : NULL;
    copy(c->verb, sizeof c->verb, verb), copy(c->path, sizeof c->path, url);
    const bool post = !strcmp(verb, "POST"), get = !strcmp(verb, "GET") || !strcmp(verb, "HEAD");
    const char *length = hone_http_header(c, "Content-Length"), *trace = hone_http_header(c, "traceparent");
    hone_serve_trace_begin(hone_serve_trace_of(f->server), trace, trace ? strlen(trace) : 0, c->trace,
                           c->parent);
    if (length) c->length = strtoll(length, NULL, 10);
    const union MHD_ConnectionInfo *i =
        MHD_get_connection_info(connection, MHD_CONNECTION_INFO_REQUEST_HEADER_SIZE);
    if (i && i->header_size > (size_t)o->max_header_bytes)
        hone_serve_fail(&c->error, 431, "the request's headers have %zu bytes; at most %lld are taken",
                        i->header_size, (long long)o->max_header_bytes);
    else if (!post && !get)
        hone_serve_fail(&c->error, 405, "%.20s is not understood here; GET and POST are", verb);
    else if (hone_serve_front_of(f->server)) c->route = hone_front_find(c, url, post, f->metrics);
    else c->route = hone_http_find(c, url, post, f->metrics);
    if (c->route && !c->route->open && !c->error.code) {
        if (!key_good(c)) hone_serve_fail(&c->error, 401, "an API key is wanted: Authorization: Bearer KEY");
        else too_often(c);
    }
    if (!c->error.code && c->length > o->max_body_bytes)
        hone_serve_fail(&c->error, 413, "the body has %lld bytes; at most %lld are taken",
                        (long long)c->length, (long long)o->max_body_bytes);
    if (!c->error.code && post && !c->raw) hone_http_unpack(c);
    if (!c->error.code && c->route && c->route->body) c->route->body(c);
    return c;
}
/* The body is whole, the answer is not begun, and more has come: then libmicrohttpd has as much of it in its
   memory as fits, which is some forty requests at most. */
static bool piled(struct connection *c) {
    char byte;
    if (recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0) c->piled = PILED;
    else if (c->piled) c->piled--;
    return c->piled > 0;
}
static void call_in(hone_http_call *c) { /* it is its turn */
    hone_http *f = c->front;
    MHD_resume_connection(c->connection);
    atomic_fetch_sub(&f->suspended, 1);
}
static enum MHD_Result step(void *front, struct MHD_Connection *connection, const char *url, const char *verb,
                            const char *version, const char *bytes, size_t *n, void **at) {
    hone_http *f = front;
    hone_http_call *c = *at;
    if (!c) {
        if (!(c = *at = begin(f, connection, url, verb))) return MHD_NO;
        if (!c->error.code || (c->length >= 0 && c->length < SWALLOW)) return MHD_YES;
        hone_http_answer_error(c); /* a large body is not read to be refused */
        set(c, "Connection", "close");
        return send_reply(c);
    }
    if (*n) {
        if (c->reply) return MHD_NO;
        hone_http_take(c, bytes, *n);
        /* who goes on sending is not listening */
        if (c->error.code && (c->forgotten += *n) > SWALLOW) return MHD_NO;
        *n = 0;
        return MHD_YES;
    }
    if (atomic_load(&c->state) == HONE_CALL_BODY) {
        struct connection *mine = note_since(connection, 0, false);
        if (mine) __atomic_store_n(&mine->ours, true, __ATOMIC_RELAXED);
        if (!c->called && mine && piled(mine)) {
            c->called = true;
            atomic_fetch_add(&f->suspended, 1);
            MHD_suspend_connection(connection);
            hone_http_line_enter(&f->line, c, call_in);
            return MHD_YES;
        }
        if (c->unpack && !c->unpacked && !c->error.code)
            hone_serve_fail(&c->error, 400, "the body does not unpack: its end is missing");
        atomic_store(&c->state, HONE_CALL_SUBMITTED);
        if (!c->error.code) c->route->finish(c); /* answers, or hands it on */
        if (!c->waiting && c->error.code && !c->reply) hone_http_answer_error(c);
        if (c->reply) atomic_store(&c->state, HONE_CALL_DONE);
        else if (atomic_load(&c->state) != HONE_CALL_DONE) {
            int submitted = HONE_CALL_SUBMITTED;
            atomic_fetch_add(&f->suspended, 1);
            MHD_suspend_connection(connection);
            if (!atomic_compare_exchange_strong(&c->state, &submitted, HONE_CALL_SUSPENDED)) {
                MHD_resume_connection(connection);
                atomic_fetch_sub(&f->suspended, 1);
            }
            return MHD_YES;
        }
    }
    if (atomic_load(&c->state) != HONE_CALL_DONE) return MHD_YES;
    hone_http_line_leave(&f->line, c, call_in); /* who does not read its answer keeps nobody waiting */
    struct connection *mine = connection_of(connection);
    if (mine) __atomic_store_n(&mine->ours, false, __ATOMIC_RELAXED);
    if (!c->reply && c->forward && c->waiting) hone_front_reply(c);
    if (!c->reply && c->request && c->waiting) hone_http_infer_reply(c);
    if (!c->reply && c->error.code) hone_http_answer_error(c);
    else if (!c->reply) hone_http_answer_empty(c, 200);
    return send_reply(c);
}
static void tell_access(hone_http_call *c) {
    const struct sockaddr *a = peer_of(c->connection);
    char peer[INET6_ADDRSTRLEN + 8] = "";
    if (!hone_serve_logs(c->front->server) || !c->code) return;
    if (a)
        getnameinfo(a, a->sa_family == AF_INET6 ? sizeof(struct sockaddr_in6) : sizeof(struct sockaddr_in),
                    peer, sizeof peer, NULL, 0, NI_NUMERICHOST);
    hone_serve_log(c->front->server,
                   &(hone_serve_access){.peer = peer,
                                        .protocol = "http",
                                        .verb = c->verb,
                                        .path = c->path,
                                        .trace = *c->trace ? c->trace : NULL,
                                        .code = c->code,
                                        .bytes_in = c->in,
                                        .bytes_out = c->out,
                                        .times = c->request      ? &c->request->times
                                                 : c->times.done ? &c->times
                                                                 : NULL,
                                        .server = c->forward && c->forward->by ? c->forward->by->name : NULL,
                                        .tries = c->forward ? c->forward->want.tries : 0,
                                        .sent = c->forward ? c->forward->sent : 0,
                                        .answered = c->forward ? c->forward->answered : 0,
                                        .parent = c->parent,
                                        .began = c->began,
                                        .ended = hone_serve_now()});
}
static void ended(void *front, struct MHD_Connection *connection, void **at,
                  enum MHD_RequestTerminationCode how) {
    hone_http *f = front;
    hone_http_call *c = *at;
    if (!c) return;
    *at = NULL;
    hone_http_line_leave(&f->line, c, call_in);
    tell_access(c);
    hone_serve_carried(f->server, c->in + c->out);
    call_free(c);
    atomic_fetch_sub(&f->calls, 1);
    note_since(connection, 0, false);
}

/* ---- connections ---- */

static void connected(void *front, struct MHD_Connection *connection, void **at,
                      enum MHD_ConnectionNotificationCode what) {
    hone_http *f = front;
    struct connection *mine = *at;
    if (what == MHD_CONNECTION_NOTIFY_STARTED) {
        hone_accept_entered(&f->door);
        const union MHD_ConnectionInfo *i =
            MHD_get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
        if (!i || !(mine = calloc(1, sizeof *mine))) return;
        mine->fd = i->connect_fd, mine->since = mine->active = mine->looked = hone_serve_now();
        pthread_mutex_lock(&f->connecting);
        mine->next = f->connections, mine->back = &f->connections;
        if (mine->next) mine->next->back = &mine->next;
        f->connections = mine;
        pthread_mutex_unlock(&f->connecting);
        *at = mine;
    } else if (mine) {
        pthread_mutex_lock(&f->connecting);
        *mine->back = mine->next;
        if (mine->next) mine->next->back = mine->back;
        pthread_mutex_unlock(&f->connecting);
        hone_http_seen_free(&mine->seen);
        free(mine), *at = NULL;
    }
}
/* Called with a request's first line: its headers must be whole in time. */
static void *first_line(void *front, const char *uri, struct MHD_Connection *connection) {
    note_since(connection, hone_serve_now(), false);
    return NULL;
}
/* Whoever takes too long is cut off; and whoever left within a body is let go, which libmicrohttpd 0.9.75
   does not see where the end came together with the last bytes (its epoll is edge-triggered, and after a
   short read it waits for an edge that was there already). */
static bool gone(const struct connection *c) {
    char byte;
    return __atomic_load_n(&c->body, __ATOMIC_RELAXED) && recv(c->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 0;
}
/* Idle is who neither sends nor takes bytes. libmicrohttpd's own timeout would judge before it reads what
   came while this process was stopped. */
static bool idles(struct connection *c, uint64_t now, uint64_t away, uint64_t most) {
    c->active += away, c->looked += away;
    if (c->active > now) c->active = now;
    if (__atomic_load_n(&c->ours, __ATOMIC_RELAXED)) c->active = now;
    if (now <= c->looked || now - c->looked < most / 8) return false;
    struct tcp_info t;
    socklen_t n = sizeof t;
    memset(&t, 0, sizeof t);
    c->looked = now;
    if (getsockopt(c->fd, IPPROTO_TCP, TCP_INFO, &t, &n)) return false;
    const uint64_t moved = t.tcpi_bytes_acked + t.tcpi_bytes_received;
    if (moved != c->moved) c->moved = moved, c->active = now;
    return now - c->active > most;
}
static void *sweep(void *front) {
    hone_http *f = front;
    const uint64_t most = (uint64_t)hone_serve_options(f->server)->request_seconds * 1000000000u;
    const uint64_t idle = (uint64_t)hone_serve_options(f->server)->idle_seconds * 1000000000u;
    uint64_t swept = hone_serve_now();
    char byte;
    /* it has a timeout */
    while (recv(f->stop[0], &byte, 1, 0) < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR)) {
        const uint64_t now = hone_serve_now(), away = now - swept > AWAY_NS ? now - swept : 0;
        swept = now;
        hone_serve_calm(f->server);
        pthread_mutex_lock(&f->connecting);
        for (struct connection *c = f->connections; c; c = c->next) {
            uint64_t since = __atomic_load_n(&c->since, __ATOMIC_RELAXED);
            if (away && since) /* this process stood still: that was nobody else's time */
                since = __atomic_compare_exchange_n(&c->since, &since, since + away, false, __ATOMIC_RELAXED,
                                                    __ATOMIC_RELAXED)
                            ? since + away
                            : now;
            if ((since && now > since && (now - since > most || gone(c))) || idles(c, now, away, idle))
                shutdown(c->fd, SHUT_RDWR);
        }
        pthread_mutex_unlock(&f->connecting);
    }
    return NULL;
}

/* ---- the daemon ---- */

static size_t as_it_is(void *arg, struct MHD_Connection *connection, char *text) {
    return strlen(text);
} /* routes unescape piece by piece */

static char *file_text(const char *path) {
    FILE *f = fopen(path, "rb");
    char *text = f ? calloc(1, (1 << 20) + 1) : NULL;
    const size_t n = text ? fread(text, 1, 1 << 20, f) : 0;
    if (f) fclose(f);
    if (text && n) return text;
    free(text);
    return NULL;
}
static void front_free(hone_http *f) {
    if (f->sweeping) {
        shutdown(f->stop[1], SHUT_RDWR);
        pthread_join(f->sweeper, NULL);
    }
    for (int k = 0; k < 2; k++)
        if (f->stop[k] >= 0) close(f->stop[k]);
    hone_accept_end(&f->door);
    /* libmicrohttpd ends the process where a connection is still suspended: what runs comes to its end, and
       is given a moment to be told */
    const struct timespec moment = {0, 1000000};
    while (f->daemon && atomic_load(&f->suspended)) nanosleep(&moment, NULL);
    for (int k = 0; f->daemon && k < TOLD_MS && atomic_load(&f->calls); k++) nanosleep(&moment, NULL);
    if (f->daemon) MHD_stop_daemon(f->daemon);
    pthread_mutex_destroy(&f->connecting), pthread_mutex_destroy(&f->rating);
    pthread_mutex_destroy(&f->line.lock);
    free(f->certificate), free(f->key), free(f);
}
static hone_status start(hone_server *server, int port, bool metrics, void **out) {
    const hone_server_options *o = hone_serve_options(server);
    hone_status s = HONE_OK;
    hone_http *f = calloc(1, sizeof *f);
    if (!f) return hone_server_say(HONE_NO_MEMORY, "no memory for a server");
    *f = (hone_http){.server = server,
                     .metrics = metrics,
                     .door = {.fd = -1, .stop = {-1, -1}, .poll = -1},
                     .stop = {-1, -1}};
    pthread_mutex_init(&f->rating, NULL), pthread_mutex_init(&f->connecting, NULL);
    pthread_mutex_init(&f->line.lock, NULL);
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    const int threads = metrics               ? 1
                        : o->http_threads > 0 ? o->http_threads
                        : cores > 4           ? 4
                        : cores < 1           ? 1
                                              : (int)cores;
    if (o->certificate && !metrics &&
        (!(f->certificate = file_text(o->certificate)) || !(f->key = file_text(o->key))))
        s = hone_server_say(HONE_IO, "TLS: %s cannot be read", f->certificate ? o->key : o->certificate);
    if (!s) s = hone_accept_at(o->host, port, &f->door, &f->port);
    const struct timeval tick = {0, 250000};
    if (!s && (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, f->stop) ||
               setsockopt(f->stop[0], SOL_SOCKET, SO_RCVTIMEO, &tick, sizeof tick) ||
               pthread_create(&f->sweeper, NULL, sweep, f)))
        s = hone_server_say(HONE_IO, "no thread for the server");
    f->sweeping = !s;
    if (s) {
        front_free(f);
        return s;
    }
    struct MHD_OptionItem options[12];
    int n = 0;
    const int most = o->max_connections < threads ? threads : o->max_connections;
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_LIMIT, NEVER, NULL}; /* `door` has it */
    options[n++] =
        (struct MHD_OptionItem){MHD_OPTION_PER_IP_CONNECTION_LIMIT,
                                o->max_connections_per_ip > 0 ? o->max_connections_per_ip : 0, NULL};
    options[n++] = (struct MHD_OptionItem){MHD_OPTION_CONNECTION_MEMORY_LIMIT,
                                           (intptr_t)(POOL + o->max_header_bytes), NULL};
    if (threads > 1) options[n++] = (struct MHD_OptionItem){MHD_OPTION_THREAD_POOL_SIZE, threads, NULL};
    if (f->certificate) {
        options[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_CERT, 0, f->certificate};
        options[n++] = (struct MHD_OptionItem){MHD_OPTION_HTTPS_MEM_KEY, 0, f->key};
    }
    options[n] = (struct MHD_OptionItem){MHD_OPTION_END, 0, NULL};
    unsigned flags =
        MHD_USE_EPOLL_INTERNAL_THREAD | MHD_ALLOW_SUSPEND_RESUME | MHD_USE_ITC | MHD_USE_NO_LISTEN_SOCKET;
    if (f->certificate) flags |= MHD_USE_TLS;
    f->daemon = MHD_start_daemon(flags, 0, NULL, NULL, step, f, MHD_OPTION_ARRAY, options,
                                 MHD_OPTION_NOTIFY_COMPLETED, ended, f, MHD_OPTION_NOTIFY_CONNECTION,
                                 connected, f, MHD_OPTION_URI_LOG_CALLBACK, first_line, f,
                                 MHD_OPTION_UNESCAPE_CALLBACK, as_it_is, NULL, MHD_OPTION_END);
    if (!f->daemon) {
        const bool tls = f->certificate;
        front_free(f);
        return hone_server_say(HONE_IO, "the server did not start on port %d%s", port,
                               tls ? "; is the certificate one, and the key its own?" : "");
    }
    f->door.most = most, f->door.threads = threads, f->door.idle_s = o->idle_seconds;
    f->door.looks = !f->certificate && o->max_connections_per_ip <= 0; /* only libmicrohttpd counts those */
    if ((s = hone_accept_begin(&f->door, f->daemon))) {
        front_free(f);
        return s;
    }
    *out = f;
    return HONE_OK;
}
static hone_status start_http(hone_server *s, int port, void **out) { return start(s, port, false, out); }
static hone_status start_metrics(hone_server *s, int port, void **out) { return start(s, port, true, out); }
static int port_of(const void *f) { return ((const hone_http *)f)->port; }
static int busy(const void *f) { return atomic_load(&((hone_http *)f)->calls); }
static void quiet(void *front) {
    hone_http *f = front;
    atomic_store(&f->draining, true);
    hone_accept_end(&f->door);
}
static void end(void *f) { front_free(f); }
const hone_serve_protocol hone_serve_http = {"http", start_http, port_of, busy, quiet, end};
const hone_serve_protocol hone_serve_metrics = {"metrics", start_metrics, port_of, busy, quiet, end};
