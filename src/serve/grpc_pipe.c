/* SPDX-License-Identifier: Apache-2.0
   grpc_pipe: a socket and an nghttp2 session: what comes goes to the session, what it has goes out. Clients'
   connections and links to other servers are pipes. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/grpc.h"

enum { PIECE = 128 << 10, PIECE_LEAST = 2 << 10, READS = 4, RECORDS = 32, FEW = 8, SLICE_NS = 200000 };
static _Thread_local uint8_t scratch[PIECE]; /* one turn's bytes, in or out */

void hone_grpc_pipe_begin(hone_grpc_pipe *p) {
    p->turn = HONE_GRPC_TURN_OTHER, p->heard = hone_serve_now(), p->piece = PIECE_LEAST;
}
bool hone_grpc_pipe_watch(hone_grpc_pipe *p, uint32_t want) {
    struct epoll_event ev = {.events = want, .data.ptr = p};
    if (p->added && want == p->asked) return true;
    const int rc = epoll_ctl(p->loop->poll, p->added ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, p->fd, &ev);
    p->asked = want, p->added |= !rc;
    return !rc;
}

/* n bytes, as many as the socket takes; the rest is kept. False: the connection is broken. */
static bool push(hone_grpc_pipe *p, const uint8_t *at, size_t n) {
    while (n) {
        const ssize_t sent =
            p->secured ? hone_serve_secured_send(p->secured, at, n) : send(p->fd, at, n, MSG_NOSIGNAL);
        if (sent < 0 && errno == EINTR) continue;
        if (sent < 0 && errno != EAGAIN) return false;
        if (sent < 0) break;
        at += sent, n -= (size_t)sent;
    }
    if (!n) return true;
    if (!p->out && !(p->out = malloc(PIECE))) return false;
    memmove(p->out, at, n); /* of at most PIECE: `at` is the scratch, or lies in p->out */
    p->out_at = 0, p->out_n = n;
    return true;
}

bool hone_grpc_pipe_write(hone_grpc_pipe *p) {
    size_t n = 0;
    p->dirty = false;
    if (p->out && p->out_n) {
        const size_t left = p->out_n;
        p->out_n = 0;
        if (!push(p, p->out + p->out_at, left)) return false;
        if (p->out_n && p->out_n < left) p->stuck = hone_serve_now(); /* it takes some */
    }
    while (!p->out_n) {
        const uint8_t *at;
        const ssize_t more = nghttp2_session_mem_send(p->session, &at);
        if (more < 0) return false;
        if (more > PIECE) return false; /* a frame is smaller */
        if (n + (size_t)more > PIECE || (!more && n)) {
            if (!push(p, scratch, n)) return false;
            n = 0;
            if (p->out_n && more) { /* kept behind what is kept already, if it fits: a frame of 16 KB does */
                if (p->out_n + (size_t)more > PIECE) {
                    uint8_t *larger = realloc(p->out, p->out_n + (size_t)more);
                    if (!larger) return false;
                    p->out = larger;
                }
                memcpy(p->out + p->out_n, at, (size_t)more), p->out_n += (size_t)more;
                break;
            }
        }
        if (!more) break;
        memcpy(scratch + n, at, (size_t)more), n += (size_t)more;
    }
    if (n && !push(p, scratch, n)) return false;
    if (!p->out_n) free(p->out), p->out = NULL, p->stuck = 0;
    else if (!p->stuck) p->stuck = hone_serve_now();
    if (!p->out_n && !nghttp2_session_want_read(p->session) && !nghttp2_session_want_write(p->session))
        return false;
    const bool room = p->out_n && (!p->secured || hone_serve_secured_agreed(p->secured));
    return hone_grpc_pipe_watch(
        p, (p->later_back ? 0 : (uint32_t)EPOLLIN) |
               (room || (p->secured && hone_serve_secured_wants_write(p->secured)) ? (uint32_t)EPOLLOUT : 0));
}

void hone_grpc_pipe_wait(hone_grpc_pipe *p) {
    hone_grpc_loop *l = p->loop;
    const int k = p->turn == HONE_GRPC_TURN_MORE;
    p->later = NULL, p->later_back = l->line[k] ? l->line_end[k] : &l->line[k];
    *p->later_back = p, l->line_end[k] = &p->later;
}
void hone_grpc_pipe_called(hone_grpc_pipe *p) {
    hone_grpc_loop *l = p->loop;
    if (!p->later_back) return;
    *p->later_back = p->later;
    if (p->later) p->later->later_back = p->later_back;
    for (int k = 0; k < 2; k++)
        if (l->line_end[k] == &p->later) l->line_end[k] = p->later_back;
    p->later = NULL, p->later_back = NULL;
}

/* As much as takes SLICE_NS, by what the last piece took: a connection that brings hundreds of small requests
   at once has its turn again when others had theirs. */
bool hone_grpc_pipe_read(hone_grpc_pipe *p) {
    const hone_grpc_loop *l = p->loop;
    const uint64_t began = hone_serve_now();
    const int before = l->n_ready;
    uint64_t last = began;
    /* of those little, that others behind them are seen soon */
    const int most = p->secured ? RECORDS : p->turn == HONE_GRPC_TURN_OTHER ? 1 : READS;
    p->turn = HONE_GRPC_TURN_MORE;
    for (int k = 0; k < most; k++) {
        const ssize_t n = p->secured ? hone_serve_secured_receive(p->secured, scratch, sizeof scratch)
                                     : recv(p->fd, scratch, p->piece, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) {
            p->turn = l->n_ready - before > FEW ? HONE_GRPC_TURN_OTHER : HONE_GRPC_TURN_KNOWN;
            return true;
        }
        if (n <= 0) return false;
        /* what is wrong was told by GOAWAY, if at all */
        if (nghttp2_session_mem_recv(p->session, scratch, (size_t)n) != n) return false;
        const bool full = (size_t)n == p->piece, many = l->n_ready - before > FEW;
        if (!full && !p->secured) { /* a record of TLS is smaller */
            p->turn = many ? HONE_GRPC_TURN_OTHER : HONE_GRPC_TURN_KNOWN;
            return true;
        }
        const uint64_t now = hone_serve_now();
        if ((many || now - last > SLICE_NS / 2) && p->piece > PIECE_LEAST) p->piece /= 2;
        else if (full && now - last < SLICE_NS / 8 && p->piece < PIECE) p->piece *= 2;
        if (now - began > SLICE_NS || (many && !hone_grpc_has_room(l))) return true;
        last = now;
    }
    return true;
}

void hone_grpc_pipe_close(hone_grpc_pipe *p) {
    for (int k = 0; k < p->loop->n_due; k++)
        if (p->loop->due[k].pipe == p) p->loop->due[k].pipe = NULL;
    hone_grpc_pipe_called(p);
    nghttp2_session_del(p->session);
    hone_serve_secured_free(p->secured);
    close(p->fd);
    free(p->out);
}
