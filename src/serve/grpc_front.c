/* SPDX-License-Identifier: Apache-2.0
   grpc_front: gRPC's rules for calls that go to another server: what is repeated, and what is told when
   nobody answers. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/grpc_front.h"

/* PENDING: bytes of a stream that may wait for whoever is to take them */
enum { PREFIX = 5, TRIES = 8, PENDING = 4 << 20 };
static const uint64_t check_ns = 3000000000, second_ns = 1000000000;
#define SERVICE "/inference.GRPCInferenceService/"

/* ---- headers ---- */

static bool is(const char *at, size_t n, const char *word) {
    return n == strlen(word) && !memcmp(at, word, n);
}
bool hone_grpc_goes_on(const char *name, size_t n) { /* others belong to one connection, or are made anew */
    static const char *const own[] = {"te",          "content-type", "content-length", "grpc-timeout",
                                      "traceparent", "host",         "connection",     "transfer-encoding"};
    for (size_t k = 0; k < sizeof own / sizeof *own; k++)
        if (is(name, n, own[k])) return false;
    return n && *name != ':';
}
static void keep(hone_serve_out *o, const char *name, size_t n, const char *value, size_t m) {
    hone_serve_put(o, name, n), hone_serve_put(o, "", 1);
    hone_serve_put(o, value, m), hone_serve_put(o, "", 1);
}
nghttp2_nv *hone_grpc_headers(const hone_serve_out *given, size_t more, size_t *n) {
    size_t zeros = 0;
    for (size_t k = 0; k < given->n; k++) zeros += !given->at[k];
    nghttp2_nv *out = given->failed ? NULL : calloc(more + zeros / 2 + 1, sizeof *out);
    *n = more;
    if (!out) return NULL;
    for (size_t k = 0; k < given->n;) {
        const size_t name = k, value = name + strlen((const char *)given->at + name) + 1;
        k = value + strlen((const char *)given->at + value) + 1;
        out[(*n)++] = (nghttp2_nv){given->at + name, given->at + value, value - name - 1, k - value - 1,
                                   NGHTTP2_NV_FLAG_NONE};
    }
    return out;
}

/* ---- to a server ---- */

static void start(hone_grpc_relay *);

static void forget_answer(hone_grpc_relay *r) {
    hone_serve_out_free(&r->head), hone_serve_out_free(&r->tail), hone_serve_out_free(&r->answer);
    r->status = 0, r->code = -1, r->behind = r->flows = false, r->at = 0, r->prefix_n = 0;
    r->message_left = r->unread = 0;
}
static void free_check(hone_grpc_relay *r) {
    forget_answer(r);
    hone_serve_out_free(&r->body);
    free(r);
}
static void count_held(hone_grpc_relay *r) { /* what is kept of its body, by the limit of all */
    if (r->body.room > r->held) atomic_fetch_add(&r->loop->grpc->held, r->body.room - r->held);
    else atomic_fetch_sub(&r->loop->grpc->held, r->held - r->body.room);
    r->held = r->body.room;
}
static void settle(hone_grpc_relay *r) { /* messages of a stream that will not be answered */
    atomic_fetch_sub(&r->loop->grpc->busy, (int)r->owed);
    r->owed = 0;
}
/* Nothing will come of it. */
static void give_up(hone_grpc_relay *r, int code, const char *text) {
    hone_grpc_item *i = r->item;
    if (!r->call) return;
    r->item = NULL;
    if (i) hone_serve_fail(&i->error, code, "%s", text), hone_grpc_item_over(i);
    else hone_grpc_call_fail(r->call, hone_grpc_status_of(code), text);
}
static void start(hone_grpc_relay *r) {
    hone_front *f = r->loop->grpc->front;
    char text[400];
    hone_front_backend *b = hone_front_choose(f, &r->want);
    r->begun = true;
    if (b) {
        forget_answer(r);
        r->want.tries++;
        r->deadline = r->stream ? UINT64_MAX
                                : hone_serve_now() + (uint64_t)r->loop->grpc->o->answer_seconds * second_ns;
        if (!hone_grpc_link_carry(r, b)) hone_grpc_relay_failed(r, b, strerror(errno), true);
        return;
    }
    if (r->want.broken) snprintf(text, sizeof text, "%.300s (%d tries)", r->error.text, r->want.tries);
    else snprintf(text, sizeof text, "no server behind this front is ready");
    give_up(r, 503, text);
}
void hone_grpc_relay_failed(hone_grpc_relay *r, hone_front_backend *b, const char *why, bool unsent) {
    hone_front *f = r->loop->grpc->front;
    const uint64_t now = hone_serve_now();
    if (unsent) atomic_fetch_add(&b->at, 1); /* a name may have several addresses, and not all be right */
    if (!r->call) {
        if (!atomic_load(&r->loop->grpc->quit)) hone_front_checked(f, b, why, unsent);
        free_check(r);
        return;
    }
    atomic_fetch_add(&b->counts.failures, 1);
    r->want.tried |= (uint64_t)1 << (b - f->backend);
    if (atomic_load(&b->check_at) > now) atomic_store(&b->check_at, now);
    if (unsent) hone_front_up(f, b, why);
    r->want.broken |= !unsent;
    snprintf(r->error.text, sizeof r->error.text, "%s: %s", b->name, why);
    if ((r->want.repeatable || unsent) && !r->dropped && !r->call->begun && r->want.tries < TRIES) {
        atomic_fetch_add(&b->counts.repeats, 1);
        start(r);
        return;
    }
    snprintf(r->error.text, sizeof r->error.text, "%s: %s%s", b->name, why,
             r->stream            ? "; the stream went there, and is not repeated"
             : r->want.repeatable ? ""
                                  : "; a request that changes a server's state is not repeated");
    give_up(r, 503, r->error.text);
}
void hone_grpc_relay_late(hone_grpc_relay *r) {
    hone_front_backend *b = r->link->to;
    char text[400];
    hone_grpc_link_detach(r, true);
    if (!r->call) {
        hone_grpc_relay_failed(r, b, "it did not answer in time", false);
        return;
    }
    atomic_fetch_add(&b->counts.failures, 1);
    atomic_store(&b->check_at, 0);
    snprintf(text, sizeof text, "%s did not answer in %d s", b->name, r->loop->grpc->o->answer_seconds);
    give_up(r, 504, text);
}

/* ---- what a server answers ---- */

void hone_grpc_relay_header(hone_grpc_relay *r, const char *name, size_t n, const char *value, size_t m) {
    if (is(name, n, ":status")) {
        r->status = atoi(value); /* nghttp2 saw to it that it is a number */
        r->head.n = 0;
        return;
    }
    if (r->head.n + r->tail.n > (size_t)r->loop->grpc->o->max_header_bytes) return;
    if (is(name, n, "grpc-status")) r->code = atoi(value) < 0 ? -1 : atoi(value);
    if (hone_grpc_goes_on(name, n) || (is(name, n, "content-type") && !r->behind))
        keep(r->behind ? &r->tail : &r->head, name, n, value, m);
}
void hone_grpc_relay_headed(hone_grpc_relay *r) {
    if (r->status < 200) return; /* an interim answer */
    const bool first = !r->behind;
    r->behind = true;
    if (!first || !r->stream || r->status != 200 || r->code >= 0) return;
    r->call->heads = r->head, r->head = (hone_serve_out){0};
    r->flows = true;
    hone_grpc_call_send(r->call);
}
/* An answer of a stream settles a message, however the bytes come. */
static void count_answers(hone_grpc_relay *r, const uint8_t *at, size_t n) {
    while (n) {
        if (r->prefix_n < PREFIX) {
            r->prefix[r->prefix_n++] = *at++, n--;
            if (r->prefix_n < PREFIX) continue;
            r->message_left = (size_t)r->prefix[1] << 24 | (size_t)r->prefix[2] << 16 |
                              (size_t)r->prefix[3] << 8 | r->prefix[4];
        }
        const size_t here = n < r->message_left ? n : r->message_left;
        at += here, n -= here, r->message_left -= here;
        if (r->message_left) continue;
        r->prefix_n = 0;
        if (r->owed) r->owed--, atomic_fetch_sub(&r->loop->grpc->busy, 1);
    }
}
bool hone_grpc_relay_data(hone_grpc_relay *r, const uint8_t *at, size_t n) {
    r->bytes_in += n;
    if (r->flows) {
        count_answers(r, at, n);
        hone_serve_put(&r->call->out, at, n);
        hone_grpc_call_send(r->call);
        return r->call->out.n - r->call->out_at < PENDING;
    }
    const int64_t most = r->loop->grpc->o->max_body_bytes;
    hone_serve_put(&r->answer, at, n);
    if ((int64_t)r->answer.n > most + PREFIX && r->call) {
        snprintf(r->error.text, sizeof r->error.text, "the answer of %s is larger than %lld bytes",
                 r->link->to->name, (long long)most);
        hone_grpc_link_detach(r, true);
        give_up(r, 413, r->error.text);
    }
    return true;
}
void hone_grpc_relay_drained(hone_grpc_call *a) {
    hone_grpc_relay *r = a->relay;
    if (!r->link || !r->unread || a->out.n - a->out_at >= PENDING) return;
    nghttp2_session_consume_stream(r->link->pipe.session, r->id, r->unread);
    r->unread = 0, r->link->pipe.dirty = true;
}
static void hand_back(hone_grpc_relay *r) {
    hone_grpc_call *a = r->call;
    hone_grpc_item *i = r->item;
    r->item = NULL;
    if (r->head.n) a->heads = r->head, r->head = (hone_serve_out){0};
    a->tails = r->tail, r->tail = (hone_serve_out){0};
    if (!r->stream) a->out = r->answer, r->answer = (hone_serve_out){0};
    a->status = r->code, a->closed = true;
    if (!a->in_ended) a->refused = hone_serve_now(); /* it need not send on */
    if (i) hone_grpc_item_over(i);
    hone_grpc_call_send(a);
}
void hone_grpc_relay_over(hone_grpc_relay *r) {
    hone_front *f = r->loop->grpc->front;
    hone_front_backend *b = &f->backend[r->by - f->backend];
    char why[100];
    if (!r->call) {
        snprintf(why, sizeof why, "ServerReady ends with status %d", r->code);
        const bool ready = !r->code && r->answer.n == PREFIX + 2 && r->answer.at[PREFIX + 1] == 1;
        if (!r->code && !ready) snprintf(why, sizeof why, "ServerReady says no");
        hone_front_checked(f, b, ready ? NULL : why, true);
        free_check(r);
        return;
    }
    if (r->answer.failed || r->head.failed || r->tail.failed) {
        give_up(r, 503, "no memory for an answer");
        return;
    }
    hone_front_answered(b, r->answered - r->sent, r->bytes_out, r->bytes_in);
    r->want.tried |= (uint64_t)1 << (b - f->backend);
    const bool full = r->code == HONE_GRPC_UNAVAILABLE && r->want.repeatable && !r->want.everywhere;
    if (full) atomic_fetch_add(&b->counts.refused, 1);
    if (!r->call->begun && !r->dropped && r->want.tries < TRIES &&
        (full || (r->want.everywhere && !r->code)) && hone_front_choose(f, &r->want))
        start(r);
    else hand_back(r);
}

/* ---- from a client ---- */

bool hone_grpc_relay_hungry(const hone_grpc_relay *r) {
    return !r || !r->stream || r->body.n - r->at < PENDING;
}
void hone_grpc_relay_drop(hone_grpc_call *a) {
    hone_grpc_relay *r = a->relay;
    if (!r) return;
    hone_grpc_item *i = r->item;
    r->item = NULL;
    hone_grpc_link_detach(r, true);
    hone_serve_out_free(&r->body);
    count_held(r), settle(r);
    if (i) hone_grpc_item_over(i);
}
void hone_grpc_relay_free(hone_grpc_call *a) {
    hone_grpc_relay *r = a->relay;
    if (!r) return;
    a->closed = true; /* nothing is to be sent any more */
    hone_grpc_relay_drop(a);
    forget_answer(r);
    a->relay = NULL;
    free(r);
}

/* The sequence of a message, as a number; 0: none. */
static uint64_t sequence_of(const uint8_t *at, size_t n) {
    enum { PARAMETERS = 4 };
    hone_serve_wire w = {at, at + n, false};
    hone_serve_field f, v;
    while (hone_serve_wire_next(&w, &f)) {
        if (f.number != PARAMETERS || f.type != HONE_SERVE_BYTES) continue;
        hone_serve_wire entry = hone_serve_wire_of(&f);
        bool named = false;
        while (hone_serve_wire_next(&entry, &v)) {
            if (v.number == 1)
                named = v.type == HONE_SERVE_BYTES && is((const char *)v.data, v.bytes, "sequence_id");
            if (v.number != 2 || v.type != HONE_SERVE_BYTES || !named) continue;
            hone_serve_wire value = hone_serve_wire_of(&v);
            uint64_t hash = 14695981039346656037u;
            while (hone_serve_wire_next(&value, &v)) {
                if (v.type == HONE_SERVE_VARINT) return v.value;
                for (size_t k = 0; k < v.bytes; k++) hash = (hash ^ v.data[k]) * 1099511628211u;
                return v.bytes ? hash : 0;
            }
        }
    }
    return 0;
}
static bool ends(const char *text, const char *with) {
    const size_t n = strlen(text), m = strlen(with);
    return n >= m && !strcmp(text + n - m, with);
}
static hone_grpc_relay *relay_for(hone_grpc_call *a) { /* NULL: no memory */
    if (a->relay) return a->relay;
    hone_grpc_relay *r = a->relay = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->loop = a->loop, r->call = a, r->path = a->path, r->stream = a->method->stream, r->code = -1;
    r->want.grpc = true;
    return r;
}
/* A message with its frame. What is packed cannot be searched for a sequence. */
bool hone_grpc_forward(hone_grpc_item *i, const uint8_t *at, size_t n) {
    hone_grpc_call *a = i->call;
    hone_grpc_relay *r = relay_for(a);
    if (!r) {
        hone_serve_fail(&i->error, 503, "no memory for a call");
        return true;
    }
    if (!r->body.n && !r->stream)
        r->body = a->in, r->held = a->in.room, a->in = (hone_serve_out){0}; /* no copy */
    else hone_serve_put(&r->body, at, n), count_held(r);
    if (r->body.failed) {
        hone_serve_fail(&i->error, 503, "no memory for a message");
        return true;
    }
    const uint8_t *body = r->body.at;
    if (!r->begun) {
        static const char *const changes[] = {"ModelLoad",  "ModelUnload", "Register",
                                              "Unregister", "Setting",     "Settings"};
        for (size_t k = 0; k < sizeof changes / sizeof *changes; k++)
            r->want.everywhere |= ends(r->path, changes[k]);
        r->want.sequence = !ends(r->path, "Infer") || *body ? 0 : sequence_of(body + PREFIX, n - PREFIX);
        r->want.repeatable = r->want.everywhere || !(r->stream || r->want.sequence || *body);
    }
    if (r->stream) {
        r->owed++, atomic_fetch_add(&a->loop->grpc->busy, 1);
        if (r->begun) hone_grpc_link_more(r);
        else start(r);
        return true; /* its answers come by themselves */
    }
    r->item = i, r->ended = true;
    start(r);
    return false;
}
void hone_grpc_relay_ended(hone_grpc_call *a) {
    hone_grpc_relay *r = relay_for(a);
    if (!r) {
        hone_grpc_call_fail(a, HONE_GRPC_UNAVAILABLE, "no memory for a call");
        return;
    }
    r->ended = true;
    if (r->begun) hone_grpc_link_more(r);
    else start(r); /* a stream of none */
}
void hone_grpc_relay_check(hone_grpc_loop *l, hone_front_backend *b, uint64_t now) {
    hone_grpc_relay *r = calloc(1, sizeof *r);
    if (!r) return; /* another time */
    r->loop = l, r->path = SERVICE "ServerReady", r->code = -1, r->ended = true;
    r->deadline = now + check_ns;
    hone_serve_put(&r->body, "\0\0\0\0\0", PREFIX);
    b->checking = true;
    if (!hone_grpc_link_carry(r, b)) hone_grpc_relay_failed(r, b, strerror(errno), true);
}
