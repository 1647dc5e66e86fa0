/* SPDX-License-Identifier: Apache-2.0
   grpc_call: gRPC's rules for one call: its headers, messages in frames of their own (a byte that says
   whether they are compressed, four of length), the deadline, answers in the order of the messages, the
   status at the end. */
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <zlib.h>

#include "serve/grpc_front.h"

/* AT_WORK: messages of one stream that may be at the core at a time; beyond that the client's window stays
   closed. */
enum { PREFIX = 5, AT_WORK = 64, HELD_MOST = 4 };

int hone_grpc_status_of(int code) {
    static const struct {
        int code, status;
    } table[] = {{400, HONE_GRPC_INVALID},         {401, HONE_GRPC_UNAUTHENTICATED},
                 {403, HONE_GRPC_UNAUTHENTICATED}, {404, HONE_GRPC_NOT_FOUND},
                 {413, HONE_GRPC_EXHAUSTED},       {429, HONE_GRPC_EXHAUSTED},
                 {501, HONE_GRPC_UNIMPLEMENTED},   {503, HONE_GRPC_UNAVAILABLE},
                 {504, HONE_GRPC_DEADLINE},        {499, HONE_GRPC_CANCELLED}};
    for (size_t k = 0; k < sizeof table / sizeof *table; k++)
        if (table[k].code == code) return table[k].status;
    return code ? HONE_GRPC_INTERNAL : HONE_GRPC_OK;
}

/* ---- begin and end ---- */

hone_grpc_call *hone_grpc_call_open(hone_grpc_connection *c, int32_t stream) {
    hone_grpc_call *a = calloc(1, sizeof *a);
    if (!a) return NULL;
    a->connection = c, a->loop = c->pipe.loop, a->stream = stream, a->last = &a->first;
    a->began = hone_serve_now();
    a->after = c->call;
    if (c->call) c->call->before = a;
    c->call = a, c->calls++;
    a->counted = true;
    atomic_fetch_add(&c->pipe.loop->grpc->busy, 1);
    return a;
}

static void let_go(hone_grpc_call *a, hone_serve_out *o) { /* of what came in */
    atomic_fetch_sub(&a->loop->grpc->held, o->room);
    hone_serve_out_free(o);
}
/* More of what came in; false: that is too much, and it is over. */
static bool keep(hone_grpc_call *a, hone_serve_out *o, const uint8_t *at, size_t n) {
    const hone_grpc *g = a->loop->grpc;
    const size_t before = o->room;
    hone_serve_put(o, at, n);
    const size_t held = atomic_fetch_add(&a->loop->grpc->held, o->room - before) + o->room - before;
    if (!o->failed && held <= (size_t)g->o->max_body_bytes * HELD_MOST) return true;
    hone_grpc_call_fail(a, HONE_GRPC_EXHAUSTED,
                        "too many large requests are coming in at once; try again later");
    return false;
}
static void cancel(hone_grpc_call *a) { /* what is at the core still */
    for (hone_grpc_item *i = a->first; i; i = i->next)
        if (!i->over && i->inference.request) atomic_store(&i->inference.request->cancelled, true);
}
static void item_free(hone_grpc_item *i) {
    hone_serve_inference_end(&i->inference);
    atomic_fetch_sub(&i->call->loop->grpc->busy, 1);
    free(i);
}
static void call_free(hone_grpc_call *a) {
    hone_serve_out_free(&a->out);
    hone_serve_out_free(&a->given), hone_serve_out_free(&a->heads), hone_serve_out_free(&a->tails);
    free(a);
}

void hone_grpc_call_gone(hone_grpc_call *a) {
    hone_grpc_connection *c = a->connection;
    hone_serve_carried(c->pipe.loop->grpc->server, a->bytes_in + a->bytes_out);
    const hone_grpc_relay *r = a->relay;
    if (*c->peer && *a->path) /* `code` is gRPC's status */
        hone_serve_log(c->pipe.loop->grpc->server,
                       &(hone_serve_access){.peer = c->peer,
                                            .protocol = "grpc",
                                            .verb = "POST",
                                            .path = a->path,
                                            .code = a->closed ? a->status : HONE_GRPC_CANCELLED,
                                            .bytes_in = a->bytes_in,
                                            .bytes_out = a->bytes_out,
                                            .times = a->times.done ? &a->times : NULL,
                                            .trace = *a->trace ? a->trace : NULL,
                                            .parent = a->parent,
                                            .server = r && r->by ? r->by->name : NULL,
                                            .tries = r ? r->want.tries : 0,
                                            .sent = r ? r->sent : 0,
                                            .answered = r ? r->answered : 0,
                                            .began = a->began,
                                            .ended = hone_serve_now()});
    hone_grpc_relay_free(a);
    if (a->before) a->before->after = a->after;
    else c->call = a->after;
    if (a->after) a->after->before = a->before;
    a->connection = NULL, c->calls--;
    a->loop->timed -= a->deadline != 0;
    if (a->counted) atomic_fetch_sub(&a->loop->grpc->busy, 1);
    c->useful = hone_serve_now();
    let_go(a, &a->in), let_go(a, &a->later);
    cancel(a);
    while (a->first && a->first->over) { /* answers that nobody wants any more */
        hone_grpc_item *i = a->first;
        a->first = i->next, a->items--;
        item_free(i);
    }
    if (!a->first) call_free(a); /* else the last item does */
}

/* Ends it with a status, once; what was answered before still goes out. */
void hone_grpc_call_fail(hone_grpc_call *a, int status, const char *text) {
    if (a->closed) return;
    a->closed = true, a->status = status, a->refused = hone_serve_now();
    strncpy(a->message, text, sizeof a->message - 1);
    let_go(a, &a->in), let_go(a, &a->later);
    cancel(a);
    hone_grpc_relay_drop(a);
    if (a->connection) hone_grpc_call_send(a);
}

/* ---- headers ---- */

static uint64_t timeout_ns(const char *text, size_t n) { /* "250m"; 0: none that can be read */
    static const struct {
        char unit;
        uint64_t ns;
    } units[] = {{'n', 1},           {'u', 1000},         {'m', 1000000},
                 {'S', 1000000000u}, {'M', 60000000000u}, {'H', 3600000000000u}};
    uint64_t v = 0;
    if (n < 2 || n > 9) return 0;
    for (size_t k = 0; k + 1 < n; k++) {
        if (text[k] < '0' || text[k] > '9') return 0;
        v = v * 10 + (uint64_t)(text[k] - '0');
    }
    for (size_t k = 0; k < sizeof units / sizeof *units; k++)
        if (units[k].unit == text[n - 1])
            return v > UINT64_MAX / 4 / units[k].ns ? UINT64_MAX / 4 : v ? v * units[k].ns : 1;
    return 0;
}

static bool is(const char *at, size_t n, const char *word) {
    return n == strlen(word) && !memcmp(at, word, n);
}
static bool key_good(const hone_grpc_call *a, const char *value, size_t n) { /* "Bearer KEY" */
    char key[512];
    if (n < 7 || n - 7 >= sizeof key || strncasecmp(value, "Bearer ", 7) != 0) return false;
    memcpy(key, value + 7, n - 7), key[n - 7] = 0;
    return hone_serve_key_good(a->loop->grpc->server, key);
}
bool hone_grpc_call_header(hone_grpc_call *a, const char *name, size_t n, const char *value, size_t m) {
    if ((a->head += n + m + 32) > (size_t)a->loop->grpc->o->max_header_bytes) return false;
    if (is(name, n, ":path")) {
        if (m < sizeof a->path) memcpy(a->path, value, m), a->path[m] = 0;
    } else if (is(name, n, ":method")) a->is_post = is(value, m, "POST");
    else if (is(name, n, "content-type")) a->is_grpc = m >= 16 && !memcmp(value, "application/grpc", 16);
    else if (is(name, n, "grpc-timeout")) {
        const uint64_t ns = timeout_ns(value, m);
        if (ns && !a->deadline) a->deadline = a->began + ns, a->loop->timed++;
    } else if (is(name, n, "traceparent"))
        hone_serve_trace_begin(hone_serve_trace_of(a->loop->grpc->server), value, m, a->trace, a->parent);
    else if (is(name, n, "authorization")) a->may = key_good(a, value, m);
    else if (is(name, n, "grpc-encoding"))
        a->encoding = is(value, m, "identity")  ? 0
                      : is(value, m, "gzip")    ? 'g'
                      : is(value, m, "deflate") ? 'd'
                                                : '?';
    if (a->loop->grpc->front && hone_grpc_goes_on(name, n)) {
        hone_serve_put(&a->given, name, n), hone_serve_put(&a->given, "", 1);
        hone_serve_put(&a->given, value, m), hone_serve_put(&a->given, "", 1);
        return !a->given.failed;
    }
    return true;
}

static const hone_grpc_method *method_of(const hone_grpc_call *a) {
    const hone_grpc_method *m = a->loop->grpc->front ? hone_grpc_front_methods : hone_grpc_methods;
    for (size_t n; m->path; m++) {
        n = strlen(m->path);
        if (m->path[n - 1] == '/' ? !strncmp(m->path, a->path, n) : !strcmp(m->path, a->path)) return m;
    }
    return NULL;
}

void hone_grpc_call_headed(hone_grpc_call *a) {
    char text[256];
    if (!*a->trace)
        hone_serve_trace_begin(hone_serve_trace_of(a->loop->grpc->server), NULL, 0, a->trace, a->parent);
    a->method = method_of(a);
    if (a->method && a->method->stream) { /* it may stay open for ever: its messages count */
        a->counted = false;
        atomic_fetch_sub(&a->loop->grpc->busy, 1);
    }
    if (!a->is_post || !a->is_grpc) {
        hone_grpc_call_fail(a, HONE_GRPC_INTERNAL,
                            "this port speaks gRPC: POST with content-type application/grpc");
    } else if (!a->method) {
        snprintf(text, sizeof text, "there is no method '%.120s'", a->path);
        hone_grpc_call_fail(a, HONE_GRPC_UNIMPLEMENTED, text);
    } else if (!a->may && !a->method->open && !hone_serve_key_good(a->loop->grpc->server, "")) {
        hone_grpc_call_fail(a, HONE_GRPC_UNAUTHENTICATED,
                            "this server wants a key: authorization: Bearer KEY");
    } else if (a->encoding == '?' && !a->method->raw) {
        hone_grpc_call_fail(a, HONE_GRPC_UNIMPLEMENTED, "grpc-encoding is none of identity, gzip, deflate");
    } else if (atomic_load(&a->loop->grpc->draining) && a->connection->leaving) {
        hone_grpc_call_fail(a, HONE_GRPC_UNAVAILABLE, "the server is stopping");
    }
}

/* ---- messages in ---- */

/* NULL: it is not what its encoding says (or too large: then *code is 413). */
static uint8_t *unpacked(const hone_grpc_call *a, size_t most, size_t *n, int *code) {
    z_stream z = {.next_in = a->in.at, .avail_in = (uInt)a->in.n};
    hone_serve_out out = {0};
    int rc = inflateInit2(&z, a->encoding == 'g' ? 15 + 16 : 15);
    *code = 400;
    while (rc == Z_OK) {
        enum { PIECE = 64 << 10 };
        uint8_t *to = hone_serve_put_room(&out, PIECE);
        if (!to || out.n - PIECE > most) {
            *code = to ? 413 : 503;
            break;
        }
        z.next_out = to, z.avail_out = PIECE;
        rc = inflate(&z, Z_NO_FLUSH);
        out.n -= z.avail_out;
        if (rc == Z_OK && z.avail_out && !z.avail_in) rc = Z_BUF_ERROR; /* it ends early */
    }
    inflateEnd(&z);
    if (rc == Z_STREAM_END && out.n <= most && (out.at || hone_serve_put_room(&out, 1)))
        return *code = 0, *n = out.n, out.at;
    if (rc == Z_STREAM_END) *code = 413;
    hone_serve_out_free(&out);
    return NULL;
}

/* A message is whole. */
static void take_message(hone_grpc_call *a) {
    const size_t most = (size_t)a->loop->grpc->o->max_body_bytes;
    hone_grpc_item *i = calloc(1, sizeof *i);
    const uint8_t *at = a->in.at;
    uint8_t *plain = NULL;
    size_t n = a->in.n;
    int code = 0;
    if (a->method->raw) code = 0;
    else if (a->prefix[0] && a->encoding) at = plain = unpacked(a, most, &n, &code);
    else if (a->prefix[0]) code = 400;
    a->in_messages++, a->prefix_n = 0;
    if (!i || code) {
        free(i);
        hone_grpc_call_fail(a, i ? hone_grpc_status_of(code) : HONE_GRPC_UNAVAILABLE,
                            !i            ? "no memory for a message"
                            : code == 413 ? "a message is larger than this server takes"
                                          : "a compressed message is not what grpc-encoding says");
        return;
    }
    i->call = a;
    *a->last = i, a->last = &i->next, a->items++;
    atomic_fetch_add(&a->loop->grpc->busy, 1);
    const bool now = a->method->run(i, at ? at : (const uint8_t *)"", n);
    free(plain);
    let_go(a, &a->in);
    if (now) hone_grpc_item_over(i);
}

static void take(hone_grpc_call *a, const uint8_t *at, size_t n) {
    const hone_grpc *g = a->loop->grpc;
    while (n && !a->closed && a->method) {
        if (!hone_grpc_call_hungry(a)) {
            (void)keep(a, &a->later, at, n);
            return;
        }
        if (a->prefix_n < PREFIX) {
            a->prefix[a->prefix_n++] = *at++, n--;
            if (a->prefix_n < PREFIX) continue;
            a->in_wanted = (size_t)a->prefix[1] << 24 | (size_t)a->prefix[2] << 16 |
                           (size_t)a->prefix[3] << 8 | a->prefix[4];
            if (a->prefix[0] > 1) {
                hone_grpc_call_fail(a, HONE_GRPC_INTERNAL,
                                    "the bytes of the request are no messages of gRPC");
            } else if ((int64_t)a->in_wanted > g->o->max_body_bytes) {
                char text[128];
                snprintf(text, sizeof text, "a message has %zu bytes, and this server takes at most %lld",
                         a->in_wanted, (long long)g->o->max_body_bytes);
                hone_grpc_call_fail(a, HONE_GRPC_EXHAUSTED, text);
            } else if (!a->method->stream && a->in_messages) {
                hone_grpc_call_fail(a, HONE_GRPC_INTERNAL, "this method takes one message");
            }
        }
        if (a->closed) return;
        if (a->method->raw && !a->in.n) {
            hone_serve_put(&a->in, a->prefix, PREFIX), a->in_wanted += PREFIX;
            atomic_fetch_add(&a->loop->grpc->held, a->in.room);
        }
        const size_t left = a->in_wanted - a->in.n, here = n < left ? n : left;
        /* Memory is taken as bytes come, not as they are announced; a large message gets its size at once
           when a part is there. */
        if (here && a->in.n + here > a->in.room && a->in.n >= a->in_wanted / 8) {
            const size_t had = a->in.n, before = a->in.room;
            if (hone_serve_put_room(&a->in, a->in_wanted - had)) a->in.n = had;
            atomic_fetch_add(&a->loop->grpc->held, a->in.room - before);
        }
        if (here && !keep(a, &a->in, at, here)) return;
        at += here, n -= here;
        if (a->in.n == a->in_wanted) take_message(a);
    }
}

void hone_grpc_call_data(hone_grpc_call *a, const uint8_t *at, size_t n) {
    a->bytes_in += n;
    if (!a->later.n) take(a, at, n);
    else if (!a->closed) (void)keep(a, &a->later, at, n);
}

void hone_grpc_call_ended(hone_grpc_call *a) {
    a->in_ended = true;
    if (a->closed || a->later.n) return; /* hone_grpc_call_resume looks again */
    if (a->prefix_n) hone_grpc_call_fail(a, HONE_GRPC_INTERNAL, "the request ends within a message");
    else if (!a->method->stream && !a->in_messages)
        hone_grpc_call_fail(a, HONE_GRPC_INTERNAL, "the request has no message");
    else if (a->method->raw) hone_grpc_relay_ended(a);
    else if (!a->items && !a->method->look)
        a->closed = true, hone_grpc_call_send(a); /* a stream of none, or all are answered */
}

/* ---- answers out ---- */

hone_serve_out *hone_grpc_answer(hone_grpc_item *i, size_t *begun) {
    *begun = i->call->out.n;
    hone_serve_put(&i->call->out, "\0\0\0\0\0", PREFIX);
    return &i->call->out;
}
void hone_grpc_answered(hone_grpc_item *i, size_t begun) {
    hone_serve_out *o = &i->call->out;
    if (o->failed || o->n - begun - PREFIX > UINT32_MAX) {
        o->n = begun < o->n ? begun : o->n;
        hone_serve_fail(&i->error, 503, "no memory for the answer");
        return;
    }
    const size_t n = o->n - begun - PREFIX;
    for (int k = 0; k < 4; k++) o->at[begun + 1 + (size_t)k] = (uint8_t)(n >> (24 - 8 * k));
}

/* A stream goes on after an error: it is told in the answer's place. */
static void answer(hone_grpc_call *a, hone_grpc_item *i) {
    enum { ERROR_MESSAGE = 1 };
    if (i->inference.request) a->times = i->inference.request->times;
    if (i->inference.request && !i->error.code) {
        size_t begun, was = a->out.n;
        hone_serve_out *o = hone_grpc_answer(i, &begun);
        if (!hone_serve_inference_write(&i->inference, hone_serve_shared_of(a->loop->grpc->core),
                                        a->method->stream, o, &i->error))
            hone_grpc_answered(i, begun);
        if (i->error.code && was <= o->n) o->n = was;
    }
    if (!i->error.code) return;
    if (!a->method->stream || a->out.failed) {
        hone_grpc_call_fail(a, hone_grpc_status_of(i->error.code), i->error.text);
        return;
    }
    size_t begun;
    hone_serve_out *o = hone_grpc_answer(i, &begun);
    hone_serve_put_text(o, ERROR_MESSAGE, i->error.text);
    if (i->inference.id) { /* so that the client knows which it was */
        const size_t response = hone_serve_put_begin(o, 2);
        hone_serve_put_text(o, 3, i->inference.id);
        hone_serve_put_end(o, response);
    }
    i->error.code = 0;
    hone_grpc_answered(i, begun);
}

void hone_grpc_item_over(hone_grpc_item *done) {
    hone_grpc_call *a = done->call;
    done->over = true;
    bool sent = false;
    while (a->first && a->first->over) { /* in the order that they came */
        hone_grpc_item *i = a->first;
        if (a->connection && !a->closed) answer(a, i), sent = true;
        if (!(a->first = i->next)) a->last = &a->first;
        a->items--;
        item_free(i);
    }
    if (!a->connection) {
        if (!a->first) call_free(a);
        return;
    }
    hone_grpc_call_resume(a);
    if (!a->items && !a->closed && !a->method->raw && !a->method->look && (a->in_ended || !a->method->stream))
        a->closed = true;
    if (sent) hone_grpc_call_send(a);
}

bool hone_grpc_call_hungry(const hone_grpc_call *a) {
    return a->items < AT_WORK && hone_grpc_relay_hungry(a->relay);
}
void hone_grpc_call_resume(hone_grpc_call *a) {
    if (a->later.n && hone_grpc_call_hungry(a) && !a->closed) {
        hone_serve_out o = a->later;
        a->later = (hone_serve_out){0};
        take(a, o.at, o.n);
        let_go(a, &o);
        if (a->in_ended && !a->later.n) hone_grpc_call_ended(a);
    }
    if (!a->unread || !hone_grpc_call_hungry(a)) return;
    nghttp2_session_consume_stream(a->connection->pipe.session, a->stream, a->unread);
    a->unread = 0, hone_grpc_connection_dirty(a->connection);
}

void hone_grpc_call_tick(hone_grpc_call *a, uint64_t now) {
    const uint64_t whole = (uint64_t)a->loop->grpc->o->request_seconds * 1000000000u;
    if (a->refused && !a->in_ended && now - a->refused > whole / 8) { /* it was told, and sends on */
        nghttp2_submit_rst_stream(a->connection->pipe.session, NGHTTP2_FLAG_NONE, a->stream, NGHTTP2_CANCEL);
        a->refused = now, hone_grpc_connection_dirty(a->connection);
    }
    if (a->closed) return;
    if (a->method && a->method->look) a->method->look(a);
    if (a->deadline && now >= a->deadline) hone_grpc_call_fail(a, HONE_GRPC_DEADLINE, "Deadline Exceeded");
    else if (!a->in_ended && now - a->began > whole + a->away &&
             !(a->method && a->method->stream && !a->prefix_n))
        hone_grpc_call_fail(a, HONE_GRPC_DEADLINE, "the request did not come whole in time");
}
