/* SPDX-License-Identifier: Apache-2.0
   grpc_link: connections of a front to servers of gRPC: HTTP/2 by nghttp2, as a client. A loop has one a
   server, opened when it is first wanted; all its calls to that server are streams of it. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/grpc_front.h"

enum { WINDOW = 4 << 20, WINDOW_ALL = 32 << 20, FRAME = 64 << 10, TICK_MS = 20, SLEEP_MS = 100 };
static const uint64_t connect_ns = 2000000000;

/* ---- relays on a link ---- */

void hone_grpc_link_detach(hone_grpc_relay *r, bool cancel) {
    hone_grpc_link *l = r->link;
    if (!l) return;
    nghttp2_session_set_stream_user_data(l->pipe.session, r->id, NULL);
    if (cancel)
        nghttp2_submit_rst_stream(l->pipe.session, NGHTTP2_FLAG_NONE, r->id, NGHTTP2_CANCEL),
            l->pipe.dirty = true;
    if (r->before) r->before->after = r->after;
    else l->relay = r->after;
    if (r->after) r->after->before = r->before;
    r->link = NULL, r->before = r->after = NULL;
    if (r->call) atomic_fetch_sub(&l->to->counts.under_way, 1);
    if (l->leaves && !l->relay) l->pipe.dirty = true; /* it can go */
}
void hone_grpc_link_more(hone_grpc_relay *r) {
    if (!r->link) return;
    if (r->waiting) r->waiting = false, nghttp2_session_resume_data(r->link->pipe.session, r->id);
    r->link->pipe.dirty = true;
}

static ssize_t give(nghttp2_session *session, int32_t stream, uint8_t *to, size_t room, uint32_t *flags,
                    nghttp2_data_source *source, void *arg) {
    hone_grpc_relay *r = nghttp2_session_get_stream_user_data(session, stream);
    if (!r) return NGHTTP2_ERR_TEMPORAL_CALLBACK_FAILURE; /* it was cancelled */
    size_t n = r->body.n - r->at;
    if (n > room) n = room;
    if (n) memcpy(to, r->body.at + r->at, n);
    r->at += n, r->bytes_out += n;
    if (r->stream && n) {
        r->dropped = true;
        hone_serve_out_took(&r->body, &r->at);
        hone_grpc_call_resume(r->call);
    }
    if (r->at < r->body.n) return (ssize_t)n;
    if (r->ended) *flags |= NGHTTP2_DATA_FLAG_EOF;
    else if (!n) {
        r->waiting = true;
        return NGHTTP2_ERR_DEFERRED;
    }
    return (ssize_t)n;
}
static nghttp2_nv nv(const char *name, const char *value) {
    return (nghttp2_nv){(uint8_t *)(uintptr_t)name, (uint8_t *)(uintptr_t)value, strlen(name), strlen(value),
                        NGHTTP2_NV_FLAG_NONE};
}
/* What is left of the client's patience, as gRPC writes it: eight digits at most. */
static const char *timeout(const hone_grpc_call *a, char text[24]) {
    const uint64_t now = hone_serve_now(), us = a->deadline > now ? (a->deadline - now) / 1000 + 1 : 1;
    if (us < 100000000) snprintf(text, 24, "%lluu", (unsigned long long)us);
    else if (us / 1000 < 100000000) snprintf(text, 24, "%llum", (unsigned long long)(us / 1000));
    else snprintf(text, 24, "%lluS", (unsigned long long)(us / 1000000 > 99999999 ? 99999999 : us / 1000000));
    return text;
}
static bool submit(hone_grpc_link *l, hone_grpc_relay *r) {
    static const hone_serve_out none;
    enum { OWN = 8 };
    const hone_grpc_call *a = r->call;
    size_t all, n = 0;
    char left[24];
    nghttp2_nv *head = hone_grpc_headers(a ? &a->given : &none, OWN, &all), own[OWN];
    if (!head) return false;
    own[n++] = nv(":method", "POST"), own[n++] = nv(":scheme", "http");
    own[n++] = nv(":path", r->path), own[n++] = nv(":authority", l->to->authority);
    own[n++] = nv("te", "trailers"), own[n++] = nv("content-type", "application/grpc");
    if (a && a->deadline) own[n++] = nv("grpc-timeout", timeout(a, left));
    if (a && *a->trace) own[n++] = nv("traceparent", a->trace);
    memcpy(head + OWN - n, own, n * sizeof *own);
    const nghttp2_data_provider from = {{.ptr = r}, give};
    r->id = nghttp2_submit_request(l->pipe.session, NULL, head + OWN - n, all - OWN + n, &from, r);
    free(head);
    return r->id > 0;
}

/* ---- what nghttp2 tells ---- */

static hone_grpc_relay *relay_of(nghttp2_session *s, int32_t stream) {
    return nghttp2_session_get_stream_user_data(s, stream);
}
static int on_header(nghttp2_session *s, const nghttp2_frame *f, const uint8_t *name, size_t n,
                     const uint8_t *value, size_t m, uint8_t flags, void *arg) {
    hone_grpc_relay *r = relay_of(s, f->hd.stream_id);
    if (r && f->hd.type == NGHTTP2_HEADERS)
        hone_grpc_relay_header(r, (const char *)name, n, (const char *)value, m);
    return 0;
}
static int on_frame(nghttp2_session *s, const nghttp2_frame *f, void *arg) {
    hone_grpc_link *l = arg;
    if (f->hd.type == NGHTTP2_GOAWAY) l->leaves = true;
    hone_grpc_relay *r = f->hd.type == NGHTTP2_HEADERS ? relay_of(s, f->hd.stream_id) : NULL;
    if (r) hone_grpc_relay_headed(r);
    return 0;
}
static int on_sent(nghttp2_session *s, const nghttp2_frame *f, void *arg) {
    hone_grpc_relay *r = f->hd.type == NGHTTP2_HEADERS ? relay_of(s, f->hd.stream_id) : NULL;
    if (r) r->left = true;
    return 0;
}
static int on_data(nghttp2_session *s, uint8_t flags, int32_t stream, const uint8_t *at, size_t n,
                   void *arg) {
    hone_grpc_relay *r = relay_of(s, stream);
    nghttp2_session_consume_connection(s, n);
    if (!r) return 0;
    if (hone_grpc_relay_data(r, at, n)) nghttp2_session_consume_stream(s, stream, n);
    else r->unread += n;
    return 0;
}
static int on_close(nghttp2_session *s, int32_t stream, uint32_t code, void *arg) {
    hone_grpc_link *l = arg;
    hone_grpc_relay *r = relay_of(s, stream);
    char why[100];
    if (!r) return 0;
    const bool unsent = !r->left || code == NGHTTP2_REFUSED_STREAM;
    hone_grpc_link_detach(r, false);
    /* who has told how it ended may end the stream without having read all of it */
    if (r->code >= 0 && r->status == 200) {
        r->by = l->to, r->answered = hone_serve_now();
        hone_grpc_relay_over(r);
        return 0;
    }
    if (r->status && r->status != 200)
        snprintf(why, sizeof why, "it answers with HTTP's status %d", r->status);
    else snprintf(why, sizeof why, "it ended the call without a status (%s)", nghttp2_http2_strerror(code));
    hone_grpc_relay_failed(r, l->to, why, unsent);
    return 0;
}

static nghttp2_session_callbacks *callbacks;
static nghttp2_option *option;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static void prepare(void) {
    if (nghttp2_session_callbacks_new(&callbacks) || nghttp2_option_new(&option)) return;
    nghttp2_option_set_no_auto_window_update(option, 1);
    nghttp2_option_set_max_settings(option, 32);
    nghttp2_session_callbacks_set_on_header_callback(callbacks, on_header);
    nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, on_frame);
    nghttp2_session_callbacks_set_on_frame_send_callback(callbacks, on_sent);
    nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, on_data);
    nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, on_close);
}

/* ---- links ---- */

/* It ends; so do its relays, each as far as it came. */
static void shut(hone_grpc_loop *loop, hone_grpc_link *l, const char *why) {
    hone_grpc_relay *r;
    l->leaves = true; /* none of them comes back to it */
    if (l->before) l->before->after = l->after;
    else loop->link = l->after;
    if (l->after) l->after->before = l->before;
    while ((r = l->relay)) {
        const bool unsent = l->connecting || !r->left;
        hone_grpc_link_detach(r, false);
        hone_grpc_relay_failed(r, l->to, why, unsent);
    }
    atomic_fetch_sub(&l->to->counts.lines, 1);
    hone_grpc_pipe_close(&l->pipe);
    free(l);
}
static void event(hone_grpc_pipe *p, uint32_t events) {
    hone_grpc_link *l = (hone_grpc_link *)p;
    if (l->connecting) {
        int why = 0;
        socklen_t n = sizeof why;
        if (getsockopt(p->fd, SOL_SOCKET, SO_ERROR, &why, &n) || why) {
            shut(p->loop, l, strerror(why ? why : errno));
            return;
        }
        if (!(events & EPOLLOUT)) return;
        l->connecting = false;
    }
    if (events & (EPOLLIN | EPOLLERR | EPOLLHUP)) {
        errno = 0;
        if (!hone_grpc_pipe_read(p))
            shut(p->loop, l, errno && errno != EAGAIN ? strerror(errno) : "it closed the connection");
        else p->dirty = true;
    } else p->dirty = true;
}
hone_grpc_link *hone_grpc_link_open(hone_grpc_loop *loop, hone_front_backend *b, int fd) {
    static const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_ENABLE_PUSH, 0},
                                                      {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, WINDOW},
                                                      {NGHTTP2_SETTINGS_MAX_FRAME_SIZE, FRAME}};
    hone_grpc_link *l = calloc(1, sizeof *l);
    pthread_once(&once, prepare);
    if (!l || !callbacks || !option || nghttp2_session_client_new2(&l->pipe.session, callbacks, l, option)) {
        free(l), close(fd), errno = ENOMEM;
        return NULL;
    }
    l->pipe.loop = loop, l->pipe.fd = fd, l->pipe.event = event;
    hone_grpc_pipe_begin(&l->pipe);
    l->to = b, l->connecting = true, l->since = hone_serve_now();
    if (nghttp2_submit_settings(l->pipe.session, NGHTTP2_FLAG_NONE, settings,
                                sizeof settings / sizeof *settings) ||
        nghttp2_session_set_local_window_size(l->pipe.session, NGHTTP2_FLAG_NONE, 0, WINDOW_ALL) ||
        !hone_grpc_pipe_watch(&l->pipe, EPOLLOUT)) {
        hone_grpc_pipe_close(&l->pipe);
        free(l), errno = ENOMEM;
        return NULL;
    }
    if ((l->after = loop->link)) l->after->before = l;
    loop->link = l;
    atomic_fetch_add(&b->counts.lines, 1);
    return l;
}
static hone_grpc_link *link_to(hone_grpc_loop *loop, hone_front_backend *b) { /* NULL: errno */
    for (hone_grpc_link *l = loop->link; l; l = l->after)
        if (l->to == b && !l->leaves) return l;
    const int fd = hone_front_connect(b);
    return fd < 0 ? NULL : hone_grpc_link_open(loop, b, fd);
}
bool hone_grpc_link_carry(hone_grpc_relay *r, hone_front_backend *b) {
    hone_grpc_link *l = link_to(r->loop, b);
    r->sent = hone_serve_now(), r->left = r->waiting = false;
    if (!l || !submit(l, r)) {
        if (l) errno = ENOMEM;
        return false;
    }
    r->link = l, r->before = NULL;
    if ((r->after = l->relay)) r->after->before = r;
    l->relay = r, l->pipe.dirty = true;
    if (r->call) atomic_fetch_add(&b->counts.under_way, 1);
    return true;
}

bool hone_grpc_links_write(hone_grpc_loop *loop) {
    for (hone_grpc_link *l = loop->link, *next; l; l = next) {
        next = l->after;
        if (!l->pipe.dirty || l->connecting) continue;
        if (!hone_grpc_pipe_write(&l->pipe)) shut(loop, l, "it closed the connection");
        else if (l->leaves && !l->relay && !l->pipe.out_n) shut(loop, l, ""); /* nobody is there to be told */
        else continue;
        next = loop->link; /* what was repeated may have changed the list; written ones are not dirty */
    }
    return loop->to_write != NULL;
}
/* Checks that are due are the first loop's. */
void hone_grpc_links_tick(hone_grpc_loop *loop, uint64_t now) {
    hone_front *f = loop->grpc->front;
    for (int k = 0; k < f->n && loop == loop->grpc->loop; k++) {
        hone_front_backend *b = &f->backend[k];
        if (b->grpc && !b->checking && now >= atomic_load(&b->check_at)) hone_grpc_relay_check(loop, b, now);
    }
    for (hone_grpc_link *l = loop->link, *next; l; l = next) {
        next = l->after;
        if (l->connecting && now > l->since + connect_ns) {
            shut(loop, l, "it cannot be reached in time");
            next = loop->link;
            continue;
        }
        for (hone_grpc_relay *r = l->relay, *after; r; r = after) {
            after = r->after;
            if (now <= r->deadline) continue;
            l->leaves = true; /* others are better off on a new connection */
            hone_grpc_relay_late(r);
            after = l->relay;
        }
    }
}
int hone_grpc_links_patience(const hone_grpc_loop *loop) {
    for (const hone_grpc_link *l = loop->link; l; l = l->after)
        if (l->relay || l->connecting) return TICK_MS;
    return SLEEP_MS;
}
void hone_grpc_links_close(hone_grpc_loop *loop) { /* calls are gone: what is left are checks */
    for (hone_grpc_link *l; (l = loop->link);) {
        l->before = NULL; /* the first of them */
        shut(loop, l, "the server is stopping");
    }
}
