/* SPDX-License-Identifier: Apache-2.0
   grpc_connection: a client's connection: what nghttp2 tells handed on to calls, and their answers to it.
   Windows are opened as bytes are taken, so that a client cannot send more than is wanted; who does not read
   is closed when idle_seconds are over. */
#include <errno.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/grpc_front.h"

enum { STREAMS = 1000, WINDOW = 4 << 20, WINDOW_ALL = 32 << 20, FRAME = 256 << 10, BUSY = 8 };

void hone_grpc_connection_dirty(hone_grpc_connection *c) {
    hone_grpc_loop *l = c->pipe.loop;
    c->pipe.dirty = true;
    if (c->to_write_back) return;
    c->to_write = l->to_write, c->to_write_back = &l->to_write;
    if (c->to_write) c->to_write->to_write_back = &c->to_write;
    l->to_write = c;
}
void hone_grpc_connection_written(hone_grpc_connection *c) {
    if (!c->to_write_back) return;
    *c->to_write_back = c->to_write;
    if (c->to_write) c->to_write->to_write_back = c->to_write_back;
    c->to_write = NULL, c->to_write_back = NULL;
}

/* ---- sending ---- */

static nghttp2_nv nv(const char *name, const char *value, size_t n) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), n,
                        NGHTTP2_NV_FLAG_NO_COPY_NAME};
}
/* grpc-message: what is no plain ASCII as %XX; nor a space at an end, with which HTTP/2 has no value. */
static size_t escape(const char *text, char *out, size_t room) {
    static const char hex[] = "0123456789ABCDEF";
    size_t n = 0;
    for (; *text && n + 4 < room; text++) {
        const unsigned char b = (unsigned char)*text;
        if (b >= ' ' && b < 127 && b != '%' && (b != ' ' || (n && text[1]))) out[n++] = (char)b;
        else out[n++] = '%', out[n++] = hex[b >> 4], out[n++] = hex[b & 15];
    }
    return n;
}
static size_t status(const hone_grpc_call *a, nghttp2_nv out[2], char number[8], char text[1600]) {
    const size_t n = (size_t)snprintf(number, 8, "%d", a->status);
    out[0] = nv("grpc-status", number, n);
    if (!*a->message) return 1;
    out[1] = nv("grpc-message", text, escape(a->message, text, 1600));
    return 2;
}

static void end_with(nghttp2_session *session, const hone_grpc_call *a) {
    char number[8], text[1600];
    nghttp2_nv own[2], *theirs;
    size_t n;
    if (a->tails.n && (theirs = hone_grpc_headers(&a->tails, 0, &n))) {
        nghttp2_submit_trailer(session, a->stream, theirs, n);
        free(theirs);
    } else nghttp2_submit_trailer(session, a->stream, own, status(a, own, number, text));
}
static ssize_t give(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room, uint32_t *flags,
                    nghttp2_data_source *source, void *arg) {
    hone_grpc_call *a = source->ptr;
    size_t n = a->out.n - a->out_at;
    if (n > room) n = room;
    if (n) memcpy(to, a->out.at + a->out_at, n);
    a->out_at += n, a->bytes_out += n;
    hone_serve_out_took(&a->out, &a->out_at);
    if (a->relay) hone_grpc_relay_drained(a);
    if (!a->out.n) {
        if (a->closed) {
            *flags |= NGHTTP2_DATA_FLAG_EOF | NGHTTP2_DATA_FLAG_NO_END_STREAM;
            end_with(session, a);
        } else if (!n) {
            a->waiting = true;
            return NGHTTP2_ERR_DEFERRED;
        }
    }
    return (ssize_t)n;
}

void hone_grpc_call_send(hone_grpc_call *a) {
    nghttp2_session *s = a->connection->pipe.session;
    hone_grpc_connection_dirty(a->connection);
    if (a->begun) {
        if (a->waiting) a->waiting = false, nghttp2_session_resume_data(s, a->stream);
        return;
    }
    nghttp2_data_provider provider = {{.ptr = a}, give};
    size_t n;
    nghttp2_nv *theirs = a->heads.n ? hone_grpc_headers(&a->heads, 2, &n) : NULL;
    if (theirs) { /* as another server has it */
        const size_t first = *a->trace ? 0 : 1;
        theirs[first] = nv(":status", "200", 3);
        if (*a->trace) theirs[1] = nv("traceparent", a->trace, HONE_TRACEPARENT);
        nghttp2_submit_response(s, a->stream, theirs + first, n - first,
                                a->closed && !a->out.n && !a->tails.n ? NULL : &provider);
        free(theirs);
        a->begun = true;
        return;
    }
    char number[8], text[1600];
    nghttp2_nv head[5] = {nv(":status", a->is_grpc ? "200" : "415", 3),
                          nv("content-type", "application/grpc", 16)};
    a->begun = true;
    const size_t heads = *a->trace ? 3 : 2;
    if (*a->trace) head[2] = nv("traceparent", a->trace, HONE_TRACEPARENT);
    if (!a->closed || a->out.n) {
        nghttp2_submit_response(s, a->stream, head, heads, &provider);
    } else { /* nothing but how it ended */
        nghttp2_submit_response(s, a->stream, head, heads + status(a, head + heads, number, text), NULL);
    }
}

/* ---- what nghttp2 tells ---- */

static hone_grpc_call *call_of(nghttp2_session *s, int32_t stream) {
    return nghttp2_session_get_stream_user_data(s, stream);
}

static int on_begin(nghttp2_session *s, const nghttp2_frame *f, void *arg) {
    if (f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    hone_grpc_call *a = hone_grpc_call_open(arg, f->hd.stream_id);
    if (!a) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
    nghttp2_session_set_stream_user_data(s, f->hd.stream_id, a);
    return 0;
}
static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n,
                     const uint8_t *value, size_t m, uint8_t flags, void *arg) {
    hone_grpc_call *a = call_of(s, f->hd.stream_id);
    if (!a || f->hd.type != NGHTTP2_HEADERS || f->headers.cat != NGHTTP2_HCAT_REQUEST) return 0;
    return hone_grpc_call_header(a, (const char *)name, n, (const char *)value, m)
               ? 0
               : NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE;
}
static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg) {
    hone_grpc_call *a =
        f->hd.type == NGHTTP2_HEADERS || f->hd.type == NGHTTP2_DATA ? call_of(s, f->hd.stream_id) : NULL;
    if (!a) return 0;
    if (f->hd.type == NGHTTP2_HEADERS && f->headers.cat == NGHTTP2_HCAT_REQUEST) hone_grpc_call_headed(a);
    if (f->hd.flags & NGHTTP2_FLAG_END_STREAM) hone_grpc_call_ended(a);
    return 0;
}
static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *at, size_t n,
                   void *arg) {
    hone_grpc_call *a = call_of(s, stream);
    nghttp2_session_consume_connection(s, n);
    if (!a) return 0;
    hone_grpc_call_data(a, at, n);
    if (hone_grpc_call_hungry(a)) nghttp2_session_consume_stream(s, stream, n);
    else a->unread += n;
    return 0;
}
static int on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *arg) {
    hone_grpc_call *a = call_of(s, stream);
    if (a) nghttp2_session_set_stream_user_data(s, stream, NULL), hone_grpc_call_gone(a);
    return 0;
}

/* ---- begin and end ---- */

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *option;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void prepare(void) {
    if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option)) return;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_no_closed_streams(option, 1);
    nghttp2_option_set_max_settings(option, 32);
    nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, on_begin);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
}

static void event(hone_grpc_pipe *p, uint32_t events) {
    hone_grpc_connection *c = (hone_grpc_connection *)p;
    if (events & (EPOLLERR | EPOLLHUP)) { /* nobody is there: what it sent before is not worth a run */
        hone_grpc_connection_close(c);
    } else if (!(events & EPOLLIN) || hone_grpc_pipe_read(p)) {
        if (p->turn == HONE_GRPC_TURN_KNOWN && c->calls > BUSY) p->turn = HONE_GRPC_TURN_OTHER;
        hone_grpc_connection_dirty(c);
    } else {
        (void)hone_grpc_pipe_write(p); /* why, where it can still be told */
        hone_grpc_connection_close(c);
    }
}
/* Takes fd, on success only. */
hone_grpc_connection *hone_grpc_connection_open(hone_grpc_loop *l, int fd) {
    const nghttp2_settings_entry settings[] = {
        {NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, STREAMS},
        {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
        {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME},
        {NGHTTP2_SETTINGS_MAX_HEADER_LIST_SIZE, (uint32_t)l->grpc->o->max_header_bytes}};
    hone_grpc_connection *c = calloc(1, sizeof *c);
    pthread_once(&once, prepare);
    if (!c || !callbacks || !option || nghttp2_session_server_new2(&c->pipe.session, callbacks, c, option)) {
        free(c);
        return NULL;
    }
    struct sockaddr_storage at;
    socklen_t size = sizeof at;
    if (hone_serve_logs(l->grpc->server) && !getpeername(fd, (struct sockaddr *)&at, &size))
        (void)getnameinfo((struct sockaddr *)&at, size, c->peer, sizeof c->peer, NULL, 0, NI_NUMERICHOST);
    c->pipe.loop = l, c->pipe.fd = fd, c->pipe.event = event, c->useful = hone_serve_now();
    hone_grpc_pipe_begin(&c->pipe);
    if ((l->grpc->tls && !(c->pipe.secured = hone_serve_secured_open(l->grpc->tls, fd))) ||
        nghttp2_submit_settings(c->pipe.session, NGHTTP2_FLAG_NONE, settings,
                                sizeof settings / sizeof *settings) ||
        nghttp2_session_set_local_window_size(c->pipe.session, NGHTTP2_FLAG_NONE, 0, WINDOW_ALL) ||
        !hone_grpc_pipe_watch(&c->pipe, EPOLLIN)) {
        nghttp2_session_del(c->pipe.session);
        hone_serve_secured_free(c->pipe.secured);
        free(c);
        return NULL;
    }
    c->after = l->connection;
    if (l->connection) l->connection->before = c;
    l->connection = c, l->connections++;
    atomic_fetch_add(&l->grpc->connections, 1);
    hone_grpc_connection_dirty(c);
    return c;
}

/* First a notice, that no call on its way is lost; then, `last`, which call was the last. */
void hone_grpc_connection_leave(hone_grpc_connection *c, bool last) {
    if (!last && !c->leaving) nghttp2_submit_shutdown_notice(c->pipe.session);
    if (last && !c->left)
        nghttp2_submit_goaway(c->pipe.session, NGHTTP2_FLAG_NONE,
                              nghttp2_session_get_last_proc_stream_id(c->pipe.session), NGHTTP2_NO_ERROR,
                              NULL, 0);
    c->leaving = true, c->left |= last;
    hone_grpc_connection_dirty(c);
}

void hone_grpc_connection_close(hone_grpc_connection *c) {
    hone_grpc_loop *l = c->pipe.loop;
    while (c->call) hone_grpc_call_gone(c->call);
    hone_grpc_connection_written(c);
    hone_grpc_pipe_close(&c->pipe);
    if (c->before) c->before->after = c->after;
    else l->connection = c->after;
    if (c->after) c->after->before = c->before;
    l->connections--;
    atomic_fetch_sub(&l->grpc->connections, 1);
    free(c);
}
