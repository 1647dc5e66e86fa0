/* SPDX-License-Identifier: Apache-2.0
   traffic_grpc: gRPC as a client speaks it that sends the same few requests for ever: HTTP/2 by nghttp2,
   messages of inference.GRPCInferenceService made before and sent as they are, answers counted and thrown
   away. A connection has up to STREAMS requests under way. Without nghttp2, when this was built or now,
   --grpc says so. */
#include "traffic.h"

#ifdef HONE_NGHTTP2
#include <dlfcn.h>
#include <errno.h>
#include <nghttp2/nghttp2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "term.h"

enum { STREAMS = 8, PIECE = 64 << 10, WINDOW = 16 << 20, REPLY_MAX = 64 << 20 };
#define SERVICE "/inference.GRPCInferenceService/"

/* nghttp2 is opened when it is wanted: the command starts without it. */
#define FUNCTIONS(F)                                     \
    F(session_callbacks_del)                             \
    F(session_callbacks_new)                             \
    F(session_callbacks_set_on_data_chunk_recv_callback) \
    F(session_callbacks_set_on_frame_recv_callback)      \
    F(session_callbacks_set_on_header_callback)          \
    F(session_callbacks_set_on_stream_close_callback)    \
    F(session_client_new)                                \
    F(session_del)                                       \
    F(session_get_stream_user_data)                      \
    F(session_mem_recv)                                  \
    F(session_mem_send)                                  \
    F(session_set_local_window_size)                     \
    F(submit_request)                                    \
    F(submit_settings)
#define SLOT(name) __typeof__(&nghttp2_##name) name;
#define LOAD(name) \
    memcpy(&http2.name, &(void *){dlsym(file, "nghttp2_" #name)}, sizeof(void *)), good &= http2.name != NULL;
static struct { FUNCTIONS(SLOT) } http2;
static bool load(void) {
    void *file = dlopen("libnghttp2.so.14", RTLD_NOW | RTLD_LOCAL);
    bool good = file != NULL;
    if (file) { FUNCTIONS(LOAD) }
    return good;
}

/* ---- protobuf, what little is wanted of it ---- */

typedef struct {
    const uint8_t *at, *end;
} message;
typedef struct {
    uint64_t number, value;
    message in;
} field;

static bool varint(message *m, uint64_t *out) {
    *out = 0;
    for (int shift = 0; m->at < m->end && shift < 64; shift += 7) {
        *out |= (uint64_t)(*m->at & 127) << shift;
        if (*m->at++ < 128) return true;
    }
    return false;
}
static bool next(message *m, field *f) {
    uint64_t tag, n = 0;
    if (m->at >= m->end || !varint(m, &tag)) return false;
    *f = (field){.number = tag >> 3};
    if ((tag & 7) == 0) return varint(m, &f->value);
    if ((tag & 7) == 1) n = 8;
    else if ((tag & 7) == 5) n = 4;
    else if ((tag & 7) != 2 || !varint(m, &n)) return false;
    if (n > (uint64_t)(m->end - m->at)) return false;
    f->in = (message){m->at, m->at + n};
    m->at += n;
    return true;
}
static bool find(message m, uint64_t number, field *f) {
    while (next(&m, f))
        if (f->number == number) return true;
    *f = (field){0};
    return false;
}

static void put_varint(hone_octets *o, uint64_t v) {
    uint8_t b[10];
    size_t n = 0;
    for (; v > 127; v >>= 7) b[n++] = (uint8_t)(v | 128);
    b[n++] = (uint8_t)v;
    hone_octets_add(o, b, n);
}
static void put(hone_octets *o, int number, const void *at, size_t n) {
    put_varint(o, (uint64_t)number << 3 | 2);
    put_varint(o, n);
    hone_octets_add(o, at, n);
}
static void put_text(hone_octets *o, int number, const char *text) {
    if (*text) put(o, number, text, strlen(text));
}

/* ---- a connection ---- */

typedef struct {
    int32_t id; /* 0: idle */
    int slot;
    const hone_octets *request;
    size_t sent;
    int status; /* -1: none came */
    char why[160];
} stream;
typedef struct {
    const hone_traffic_link *link;
    int fd, first;
    nghttp2_session *session;
    uint8_t *out;
    size_t out_n, out_at;
    bool goes; /* GOAWAY came */
    hone_octets *body;
    stream stream[STREAMS];
} connection;

static ssize_t give(nghttp2_session *session, int32_t id, uint8_t *to, size_t room, uint32_t *flags,
                    nghttp2_data_source *source, void *arg) {
    stream *s = source->ptr;
    size_t n = s->request->n - s->sent;
    if (n > room) n = room;
    memcpy(to, s->request->at + s->sent, n);
    s->sent += n;
    if (s->sent == s->request->n) *flags |= NGHTTP2_DATA_FLAG_EOF;
    return (ssize_t)n;
}
static int on_header(nghttp2_session *session, const nghttp2_frame *f, const uint8_t *name, size_t n,
                     const uint8_t *value, size_t m, uint8_t flags, void *arg) {
    stream *s = http2.session_get_stream_user_data(session, f->hd.stream_id);
    if (!s) return 0;
    if (n == 11 && !memcmp(name, "grpc-status", n)) s->status = atoi((const char *)value);
    else if (n == 12 && !memcmp(name, "grpc-message", n))
        snprintf(s->why, sizeof s->why, "%.*s", (int)m, (const char *)value);
    else if (n == 7 && !memcmp(name, ":status", n) && (m != 3 || memcmp(value, "200", 3) != 0))
        snprintf(s->why, sizeof s->why, "HTTP %.*s", (int)m, (const char *)value);
    return 0;
}
static int on_data(nghttp2_session *session, uint8_t flags, int32_t id, const uint8_t *at, size_t n,
                   void *arg) {
    connection *c = arg;
    if (c->body && c->body->n + n <= REPLY_MAX) hone_octets_add(c->body, at, n);
    return 0;
}
static int on_close(nghttp2_session *session, int32_t id, uint32_t code, void *arg) {
    connection *c = arg;
    stream *s = http2.session_get_stream_user_data(session, id);
    char why[256];
    if (!s) return 0;
    s->id = 0;
    if (s->status < 0) snprintf(why, sizeof why, "no grpc-status came%s%s", *s->why ? ": " : "", s->why);
    else snprintf(why, sizeof why, "grpc-status %d: %s", s->status, s->why);
    c->link->done(c->link->cookie, s->slot, s->status ? why : NULL);
    return 0;
}
static int on_frame(nghttp2_session *session, const nghttp2_frame *f, void *arg) {
    if (f->hd.type == NGHTTP2_GOAWAY) ((connection *)arg)->goes = true;
    return 0;
}

static void *open_(const hone_traffic_link *link, int fd, int first_slot) {
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
                                                      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, 1 << 20}};
    connection *c = hone_must_alloc(sizeof *c);
    nghttp2_session_callbacks *call = NULL;
    c->link = link, c->fd = fd, c->first = first_slot, c->out = hone_must_alloc(PIECE);
    bool good = !http2.session_callbacks_new(&call);
    if (good) {
        http2.session_callbacks_set_on_header_callback(call, on_header);
        http2.session_callbacks_set_on_data_chunk_recv_callback(call, on_data);
        http2.session_callbacks_set_on_stream_close_callback(call, on_close);
        http2.session_callbacks_set_on_frame_recv_callback(call, on_frame);
        good = !http2.session_client_new(&c->session, call, c);
    }
    http2.session_callbacks_del(call);
    if (good &&
        !http2.submit_settings(c->session, NGHTTP2_FLAG_NONE, settings, sizeof settings / sizeof *settings) &&
        !http2.session_set_local_window_size(c->session, NGHTTP2_FLAG_NONE, 0, WINDOW))
        return c;
    http2.session_del(c->session);
    free(c->out), free(c);
    return NULL;
}
static void close_(void *self) {
    connection *c = self;
    http2.session_del(c->session);
    free(c->out), free(c);
}

static bool push(connection *c) {
    for (;;) {
        while (c->out_at < c->out_n) {
            ssize_t n = send(c->fd, c->out + c->out_at, c->out_n - c->out_at, MSG_NOSIGNAL);
            if (n < 0 && errno == EINTR) continue;
            if (n < 0 && (errno == EAGAIN || errno == ENOTCONN)) return true;
            if (n < 0) return false;
            c->out_at += (size_t)n;
        }
        c->out_n = c->out_at = 0;
        const uint8_t *at;
        ssize_t n = 0;
        while (c->out_n < PIECE / 2 && (n = http2.session_mem_send(c->session, &at)) > 0 && n <= PIECE / 2)
            memcpy(c->out + c->out_n, at, (size_t)n), c->out_n += (size_t)n;
        if (!c->out_n) return n >= 0;
    }
}

/* All that are under way have failed; they are told so as the connection is closed. */
static bool broken(connection *c, const char *why) {
    for (int k = 0; k < STREAMS; k++) {
        stream *s = &c->stream[k];
        if (s->id) s->id = 0, c->link->done(c->link->cookie, s->slot, why);
    }
    return false;
}

static nghttp2_nv nv(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}
static bool begin(connection *c, stream *s, const char *path) {
    const hone_target *t = c->link->target;
    enum { OWN = 6, MORE = 32 };
    nghttp2_nv head[OWN + MORE] = {nv(":method", "POST"), nv(":scheme", "http"),
                                   nv(":path", path),     nv(":authority", t->host),
                                   nv("te", "trailers"),  nv("content-type", "application/grpc")};
    char names[MORE][128];
    size_t n = OWN;
    /* names are in small letters here */
    for (int k = 0; t->headers && k < t->headers->n && n < OWN + MORE; k++) {
        const char *colon = strchr(t->headers->at[k], ':');
        char *name = names[n - OWN];
        size_t m = 0;
        for (const char *p = t->headers->at[k]; p < colon && m < sizeof names[0] - 1; p++)
            name[m++] = (char)(*p >= 'A' && *p <= 'Z' ? *p + 32 : *p);
        name[m] = 0;
        head[n++] = nv(name, colon + 1 + strspn(colon + 1, " "));
    }
    nghttp2_data_provider from = {{.ptr = s}, give};
    s->sent = 0, s->status = -1, *s->why = 0;
    s->id = http2.submit_request(c->session, NULL, head, n, &from, s);
    return s->id > 0;
}

static bool send_(void *self, int slot, int request) {
    connection *c = self;
    stream *s = &c->stream[slot - c->first];
    s->slot = slot, s->request = &c->link->request[request];
    if (c->goes || !begin(c, s, SERVICE "ModelInfer")) {
        s->id = 1;
        return broken(c, "the server closes the connection");
    }
    return push(c) || broken(c, strerror(errno));
}

static bool ready(void *self, bool readable, bool writable) {
    connection *c = self;
    static uint8_t room[PIECE]; /* one thread */
    while (readable) {
        ssize_t n = recv(c->fd, room, sizeof room, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        if (n < 0) return broken(c, strerror(errno));
        if (n == 0) return broken(c, "the server closed the connection before it had answered");
        if (http2.session_mem_recv(c->session, room, (size_t)n) < 0)
            return broken(c, "the server's answer is not HTTP/2");
        if (n < (ssize_t)sizeof room) break;
    }
    if (!push(c)) return broken(c, strerror(errno));
    bool busy = false;
    for (int k = 0; k < STREAMS; k++) busy |= c->stream[k].id > 0;
    return busy || !c->goes;
}
static bool waits(void *self) { return ((connection *)self)->out_n > ((connection *)self)->out_at; }

/* ---- asking the server about itself ---- */

typedef struct {
    bool over;
    char why[256];
} outcome;
static void answered(void *cookie, int slot, const char *why) {
    outcome *o = cookie;
    o->over = true;
    if (why) snprintf(o->why, sizeof o->why, "%s", why);
}
/* 0: `reply` is the answer's message, after its frame of 5 bytes; else why not. */
static int call(const hone_target *t, const char *path, const hone_octets *ask, hone_octets *reply, char *why,
                size_t room) {
    outcome o = {0};
    hone_octets framed = {0};
    const hone_traffic_link link = {answered, &o, &framed, 1, t};
    double until = hone_clock_ms() + t->timeout_s * 1000;
    uint8_t prefix[5] = {0, (uint8_t)(ask->n >> 24), (uint8_t)(ask->n >> 16), (uint8_t)(ask->n >> 8),
                         (uint8_t)ask->n};
    hone_octets_add(&framed, prefix, sizeof prefix), hone_octets_add(&framed, ask->at, ask->n);
    int fd = hone_target_connect(t, true);
    connection *c = fd >= 0 ? open_(&link, fd, 0) : NULL;
    if (!c) snprintf(o.why, sizeof o.why, "%s", strerror(errno));
    if (c) {
        c->body = reply, c->stream[0].request = &framed;
        if (!begin(c, &c->stream[0], path) || !push(c)) snprintf(o.why, sizeof o.why, "%s", strerror(errno));
        while (!o.over && !*o.why) {
            struct pollfd p = {.fd = fd, .events = (short)(POLLIN | (waits(c) ? POLLOUT : 0))};
            double left = until - hone_clock_ms();
            if (left <= 0 || poll(&p, 1, (int)left + 1) == 0)
                snprintf(o.why, sizeof o.why, "%s", strerror(ETIMEDOUT));
            else if (!ready(c, p.revents & (POLLIN | POLLERR | POLLHUP), p.revents & POLLOUT) && !o.over)
                snprintf(o.why, sizeof o.why, "the connection was closed");
        }
        close_(c);
    }
    hone_socket_close(fd);
    hone_octets_free(&framed);
    if (!*o.why && reply->n < 5) snprintf(o.why, sizeof o.why, "the answer has no message");
    snprintf(why, room, "%s", o.why);
    return *o.why ? -1 : 0;
}
static message message_of(const hone_octets *reply) { return (message){reply->at + 5, reply->at + reply->n}; }

static int ask_model(const hone_target *t, const hone_traffic_model *m, const char *path, hone_octets *reply,
                     char *why, size_t room) {
    hone_octets ask = {0};
    put_text(&ask, 1, m->name), put_text(&ask, 2, m->version);
    int rc = call(t, path, &ask, reply, why, room);
    hone_octets_free(&ask);
    return rc;
}

static void json_text(FILE *to, const char *key, message m) {
    fprintf(to, "\"%s\": ", key);
    hone_json_put_text(to, (const char *)m.at, (size_t)(m.end - m.at));
}
/* ModelMetadataResponse's inputs as the JSON that HTTP has. */
static hone_json *metadata_of(message m) {
    char *text = NULL;
    size_t n = 0;
    field f, g;
    FILE *to = open_memstream(&text, &n);
    if (!to) return NULL;
    fputs("{\"inputs\": [", to);
    for (const char *comma = ""; next(&m, &f);) {
        if (f.number != 4) continue;
        message shape;
        uint64_t d;
        fprintf(to, "%s{", comma), comma = ", ";
        find(f.in, 1, &g), json_text(to, "name", g.in);
        fputs(", ", to);
        find(f.in, 2, &g), json_text(to, "datatype", g.in);
        fputs(", \"shape\": [", to);
        const char *sep = "";
        for (message in = f.in; next(&in, &g);) {
            if (g.number != 3) continue;
            if (!g.in.at) fprintf(to, "%s%lld", sep, (long long)g.value), sep = ", ";
            for (shape = g.in; shape.at < shape.end && varint(&shape, &d); sep = ", ")
                fprintf(to, "%s%lld", sep, (long long)d);
        }
        fputs("]}", to);
    }
    fputs("]}", to);
    fclose(to);
    hone_json *j = text ? hone_json_read(text) : NULL;
    free(text);
    return j;
}

static int describe(const hone_target *t, hone_traffic_model *m) {
    char why[512] = "", text[64];
    hone_octets server = {0}, metadata = {0}, config = {0}, none = {0};
    hone_json *j = NULL, *batch = NULL;
    field name, version;
    int rc = 0;
    if (call(t, SERVICE "ServerMetadata", &none, &server, why, sizeof why))
        rc = hone_args_wrong("%s:%s does not speak KServe v2 over gRPC: %s", t->host, t->port, why);
    if (!rc && ask_model(t, m, SERVICE "ModelMetadata", &metadata, why, sizeof why))
        rc = hone_args_wrong("--model %s: %s", m->name, why);
    if (!rc && (j = metadata_of(message_of(&metadata)))) {
        find(message_of(&server), 1, &name), find(message_of(&server), 2, &version);
        snprintf(m->server, sizeof m->server, "%.*s %.*s", (int)(name.in.end - name.in.at),
                 (const char *)name.in.at, (int)(version.in.end - version.in.at),
                 (const char *)version.in.at);
        field f = {0}, g = {0};
        if (!ask_model(t, m, SERVICE "ModelConfig", &config, why, sizeof why) &&
            find(message_of(&config), 1, &f))
            find(f.in, 4, &g);
        snprintf(text, sizeof text, "{\"max_batch_size\": %lld}", (long long)g.value);
        batch = hone_json_read(text);
        rc = hone_traffic_describe(m, j, batch);
    } else if (!rc) rc = hone_args_wrong("--model %s: the server's metadata cannot be read", m->name);
    hone_json_free(j), hone_json_free(batch);
    hone_octets_free(&server), hone_octets_free(&metadata), hone_octets_free(&config);
    return rc;
}

static void duration(message of, uint64_t number, double *count, double *ns) {
    field f, g;
    if (!find(of, number, &f)) return;
    if (count && find(f.in, 1, &g)) *count += (double)g.value;
    if (find(f.in, 2, &g)) *ns += (double)g.value;
}
static void served(const hone_target *t, const hone_traffic_model *m, hone_traffic_served *out) {
    char why[512];
    hone_octets reply = {0};
    field f, g;
    *out = (hone_traffic_served){0};
    if (!ask_model(t, m, SERVICE "ModelStatistics", &reply, why, sizeof why)) {
        message all = message_of(&reply);
        while (next(&all, &f)) { /* of all versions, where none was asked for */
            if (f.number != 1) continue;
            if (find(f.in, 4, &g)) out->inferences += (double)g.value;
            if (find(f.in, 5, &g)) out->executions += (double)g.value;
            if (!find(f.in, 6, &g)) continue;
            out->there = true;
            duration(g.in, 1, &out->requests, &out->total);
            duration(g.in, 3, NULL, &out->queue), duration(g.in, 4, NULL, &out->input);
            duration(g.in, 5, NULL, &out->infer), duration(g.in, 6, NULL, &out->output);
        }
    }
    hone_octets_free(&reply);
}

/* ModelInferRequest, in the frame that gRPC sends it in. JSON has no place here. */
static void body(const hone_traffic_model *m, const hone_target *t, int k, bool json, hone_octets *out) {
    hone_octets all = {0}, in = {0}, shape = {0};
    put_text(&all, 1, m->name), put_text(&all, 2, m->version);
    for (int i = 0; i < m->n; i++) {
        const hone_traffic_input *x = &m->input[i];
        in.n = shape.n = 0;
        for (int d = 0; d < x->rank; d++) put_varint(&shape, (uint64_t)x->dims[d]);
        put_text(&in, 1, x->name), put_text(&in, 2, x->datatype);
        put(&in, 3, shape.at, shape.n);
        put(&all, 5, in.at, in.n);
    }
    for (int i = 0; i < m->n; i++) put(&all, 7, m->input[i].data[k].at, m->input[i].data[k].n);
    uint8_t prefix[5] = {0, (uint8_t)(all.n >> 24), (uint8_t)(all.n >> 16), (uint8_t)(all.n >> 8),
                         (uint8_t)all.n};
    hone_octets_add(out, prefix, sizeof prefix), hone_octets_add(out, all.at, all.n);
    hone_octets_free(&all), hone_octets_free(&in), hone_octets_free(&shape);
}

static const hone_traffic_protocol grpc = {
    .name = "gRPC",
    .streams = STREAMS,
    .open = open_,
    .close = close_,
    .send = send_,
    .ready = ready,
    .waits = waits,
    .describe = describe,
    .served = served,
    .body = body,
};
const hone_traffic_protocol *hone_traffic_grpc(void) { return load() ? &grpc : NULL; }

#else
const hone_traffic_protocol *hone_traffic_grpc(void) { return NULL; }
#endif
