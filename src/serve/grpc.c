/* SPDX-License-Identifier: Apache-2.0
   grpc: the gRPC front's threads. Each has an epoll with some of the connections; the first one has the
   listener too, and deals new connections out. A turn reads what has come, submits the inferences in it
   together, takes answers from the mailbox, and writes. */
#include <errno.h>
#include <malloc.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/accept.h"
#include "serve/grpc_front.h"

enum { EVENTS = 512, ACCEPTS = 16, LOOPS_MAX = 4, BACKLOG = 512, CROWD = 256, AT_CORE = 8 };
enum { TICK_MS = 10, IDLE_MS = 500, TURN_NS = 500000, AWAY_NS = 1000000000 };
static const uint64_t ms_ns = 1000000, second_ns = 1000000000;
static _Thread_local hone_grpc_loop *here; /* the loop whose thread this is */

/* ---- the mailbox ---- */

static void nudge(hone_grpc_loop *l) {
    const uint64_t one = 1;
    (void)!write(l->wake, &one, sizeof one);
}
void hone_grpc_post(hone_grpc_item *i) {
    hone_grpc_loop *l = i->call->loop;
    pthread_mutex_lock(&l->lock);
    const bool wake = here != l && !l->nudged;
    l->nudged |= wake;
    i->other = l->posted, l->posted = i;
    pthread_mutex_unlock(&l->lock);
    if (wake) nudge(l); /* the loop lives until its items are all back */
}
static void hand_over(hone_grpc_loop *l, int fd) {
    pthread_mutex_lock(&l->lock);
    int *more = realloc(l->sockets, sizeof *more * (size_t)(l->n_sockets + 1));
    if (more) l->sockets = more, l->sockets[l->n_sockets++] = fd;
    pthread_mutex_unlock(&l->lock);
    if (more) nudge(l);
    else close(fd), atomic_fetch_sub(&l->grpc->connections, 1);
}
static void adopt(hone_grpc_loop *l, int fd) {
    atomic_fetch_sub(&l->grpc->connections, 1); /* it was counted when it was accepted */
    if (!hone_grpc_connection_open(l, fd)) close(fd);
}
static void empty_mailbox(hone_grpc_loop *l) {
    hone_grpc_item *list, *turned = NULL;
    int *sockets, n;
    pthread_mutex_lock(&l->lock);
    list = l->posted, l->posted = NULL, l->nudged = false;
    sockets = l->sockets, n = l->n_sockets, l->sockets = NULL, l->n_sockets = 0;
    pthread_mutex_unlock(&l->lock);
    /* oldest first */
    for (hone_grpc_item *next; list; list = next) next = list->other, list->other = turned, turned = list;
    for (hone_grpc_item *next; turned; turned = next) {
        next = turned->other;
        l->at_work--;
        hone_grpc_item_over(turned);
    }
    for (int k = 0; k < n; k++) adopt(l, sockets[k]);
    free(sockets);
}

/* ---- a turn ---- */

static void finished(hone_serve_request *r) { /* any thread */
    hone_grpc_item *i = r->arg;
    i->error = r->error;
    hone_grpc_post(i);
}
static void submit(hone_grpc_loop *l) {
    hone_grpc_item *list = l->ready, *turned = NULL;
    l->ready = NULL, l->n_ready = 0;
    for (hone_grpc_item *next; list; list = next) next = list->other, list->other = turned, turned = list;
    const bool alone = turned && !turned->other;
    for (hone_grpc_item *next; turned; turned = next) {
        next = turned->other;
        hone_grpc_call *a = turned->call;
        if (!a->connection || a->closed) { /* nobody waits for it any more */
            hone_grpc_item_over(turned);
            continue;
        }
        hone_serve_request *r = turned->inference.request;
        if (a->deadline) {
            const uint64_t now = hone_serve_now(),
                           left = a->deadline > now ? (a->deadline - now) / 1000 + 1 : 1;
            if (!r->timeout_us || r->timeout_us > left) r->timeout_us = left;
        }
        r->done = finished, r->arg = turned, r->inline_ok = alone;
        l->at_work++;
        hone_serve_submit(r);
    }
}

/* False: nobody waits at the port. */
static bool accept_some(hone_grpc_loop *l) {
    hone_grpc *g = l->grpc;
    for (int k = 0; k < ACCEPTS; k++) {
        const int one = 1, fd = accept4(g->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
        /* until somebody leaves */
        if (fd < 0 && (errno == EMFILE || errno == ENFILE || errno == ENOMEM)) usleep(1000);
        if (fd < 0 && errno == EINVAL) epoll_ctl(l->poll, EPOLL_CTL_DEL, g->listener, NULL); /* it was shut */
        if (fd < 0) return false;
        if (atomic_fetch_add(&g->connections, 1) >= g->o->max_connections) {
            atomic_fetch_sub(&g->connections, 1);
            close(fd);
            continue;
        }
        setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
        hone_grpc_loop *to = &g->loop[g->turn++ % (unsigned)g->n_loops];
        if (to == l) adopt(l, fd);
        else hand_over(to, fd);
    }
    return true;
}
/* The server stops, and handshakes are refused since the last tick: when those that had come are accepted,
   the port is closed. */
static void accept_last(hone_grpc_loop *l) {
    hone_grpc *g = l->grpc;
    if (++g->ticks_left != 2) return;
    while (accept_some(l)) continue;
    epoll_ctl(l->poll, EPOLL_CTL_DEL, g->listener, NULL);
    shutdown(g->listener, SHUT_RD);
}

/* After a crowd has left, the allocator keeps what it used; the system can have it back. */
static void give_back(hone_grpc *g) {
    const int now = atomic_load(&g->connections);
    if (now > g->most) g->most = now;
    if (g->most < CROWD || now > g->most / 4) return;
    g->most = now;
#ifdef __GLIBC__
    malloc_trim(0);
#endif
}

static uint64_t soon(uint64_t at, uint64_t now) { return at < now ? at : now; }
/* Deadlines, those who do not read, those who do nothing, and the end of the server. */
static void tick(hone_grpc_loop *l, uint64_t now) {
    const uint64_t idle = (uint64_t)l->grpc->o->idle_seconds * second_ns;
    const bool draining = atomic_load(&l->grpc->draining);
    const uint64_t away = l->connections && now - l->ticked > AWAY_NS ? now - l->ticked : 0;
    l->ticked = now;
    if (l->grpc->front) hone_grpc_links_tick(l, now);
    if (draining && l == l->grpc->loop) accept_last(l);
    if (l == l->grpc->loop) give_back(l->grpc), hone_serve_calm(l->grpc->server);
    for (hone_grpc_connection *c = l->connection, *next; c; c = next) {
        next = c->after;
        if (away) { /* this process stood still: that was nobody else's time */
            c->useful = soon(c->useful + away, now);
            if (c->pipe.stuck) c->pipe.stuck = soon(c->pipe.stuck + away, now);
            for (hone_grpc_call *a = c->call; a; a = a->after) a->away += away;
        }
        for (hone_grpc_call *a = c->call, *after; a; a = after) after = a->after, hone_grpc_call_tick(a, now);
        const bool out_of_time = idle && !c->calls && now - c->useful > idle;
        if (c->pipe.stuck && idle && now - c->pipe.stuck > idle) {
            hone_grpc_connection_close(c);
            continue;
        }
        if (out_of_time && now - c->useful > 2 * idle) {
            hone_grpc_connection_close(c); /* it was told to go, and did not */
            continue;
        }
        if ((draining || out_of_time) && !c->leaving)
            hone_grpc_connection_leave(c, false), c->useful = out_of_time ? c->useful : now;
        else if (c->leaving && !c->left && now - c->useful > 100 * ms_ns) hone_grpc_connection_leave(c, true);
    }
}

/* What one connection has to say may be for another: until nobody has anything. */
static void write_all(hone_grpc_loop *l) {
    bool more = true;
    while (more) {
        for (hone_grpc_connection *c; (c = l->to_write);) {
            hone_grpc_connection_written(c);
            if (!hone_grpc_pipe_write(&c->pipe)) hone_grpc_connection_close(c);
        }
        more = l->grpc->front && hone_grpc_links_write(l);
    }
}
/* How long a turn waits, in ms; -1: until something comes. */
static int patience(const hone_grpc_loop *l) {
    const hone_grpc *g = l->grpc;
    const bool first = l == g->loop;
    if (l->timed || atomic_load(&g->quit) || atomic_load(&g->draining)) return TICK_MS;
    if (g->front && (first || l->link)) return hone_grpc_links_patience(l);
    return l->connections || (first && g->most >= CROWD) ? IDLE_MS : -1;
}

static int in_turn(const void *left, const void *right) {
    const hone_grpc_pipe *a = ((const hone_grpc_due *)left)->pipe, *b = ((const hone_grpc_due *)right)->pipe;
    return a->turn != b->turn ? (a->turn > b->turn) - (a->turn < b->turn)
                              : (a->heard > b->heard) - (a->heard < b->heard);
}
/* epoll looks at it unless it is in line. */
static void watch(hone_grpc_pipe *p) {
    const uint32_t in = EPOLLIN;
    (void)hone_grpc_pipe_watch(p, p->later_back ? p->asked & ~in : p->asked | in);
}
static void hear_one(hone_grpc_loop *l, hone_grpc_due *one, uint64_t now) {
    hone_grpc_pipe *p = one->pipe;
    p->heard = now;
    p->event(p, one->events);
    if (one->pipe != p) return; /* it was closed */
    if (p->turn != HONE_GRPC_TURN_MORE) hone_grpc_pipe_called(p);
    else if (!p->later_back) hone_grpc_pipe_wait(p);
    watch(p);
}
bool hone_grpc_has_room(const hone_grpc_loop *l) { return l->at_work + l->n_ready < l->grpc->at_core; }
static bool goes_on(const hone_grpc_loop *l) { return (l->line[0] || l->line[1]) && hone_grpc_has_room(l); }
/* Those first that ask now and then, so that they do not wait for a crowd; then others as hone_grpc_turn has
   them, one after another. What TURN_NS is too short for is there in the next turn. */
static void hear(hone_grpc_loop *l, hone_grpc_due *list, int n) {
    const uint64_t began = hone_serve_now();
    uint64_t now = began;
    if (n > 1) qsort(list, (size_t)n, sizeof *list, in_turn);
    l->due = list, l->n_due = n;
    for (int k = 0; k < n; k++) {
        hone_grpc_pipe *p = list[k].pipe;
        if (!p) continue;
        if (p->turn != HONE_GRPC_TURN_KNOWN && !(list[k].events & ~(uint32_t)EPOLLIN) &&
            (!hone_grpc_has_room(l) || now - began > TURN_NS)) {
            if (!p->later_back) hone_grpc_pipe_wait(p);
            watch(p);
            continue;
        }
        hear_one(l, &list[k], now);
        now = hone_serve_now();
    }
    for (bool first = true; goes_on(l) && (first || now - began < TURN_NS); first = false) {
        hone_grpc_due next = {l->line[0] ? l->line[0] : l->line[1], EPOLLIN};
        l->due = &next, l->n_due = 1;
        hone_grpc_pipe_called(next.pipe);
        hear_one(l, &next, now);
        now = hone_serve_now();
    }
    l->n_due = 0;
}

static void *turn(void *arg) {
    hone_grpc_loop *l = arg;
    struct epoll_event ev[EVENTS];
    hone_grpc_due list[EVENTS];
    here = l;
    while (!atomic_load(&l->grpc->quit) || l->at_work) {
        const int n = epoll_wait(l->poll, ev, EVENTS, goes_on(l) ? 0 : patience(l));
        int heard = 0;
        bool door = false;
        for (int k = 0; k < n; k++) {
            if (ev[k].data.ptr == l) { /* the mailbox, or the server's end */
                uint64_t count;
                (void)!read(l->wake, &count, sizeof count);
            } else if (ev[k].data.ptr == l->grpc) {
                door = true;
            } else list[heard++] = (hone_grpc_due){ev[k].data.ptr, ev[k].events};
        }
        hear(l, list, heard);
        if (door) (void)accept_some(l);
        do submit(l), empty_mailbox(l);
        while (l->ready); /* answers let streams go on */
        const uint64_t now = hone_serve_now();
        if (now - l->ticked >= TICK_MS * ms_ns) tick(l, now);
        write_all(l);
    }
    while (l->connection) hone_grpc_connection_close(l->connection);
    hone_grpc_links_close(l);
    return NULL;
}

/* ---- begin and end ---- */

static int listen_at(const char *host, int port, int *fd) {
    struct addrinfo *found = NULL, hint = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE};
    char number[16];
    int why = 0, one = 1;
    snprintf(number, sizeof number, "%d", port);
    if (getaddrinfo(host, number, &hint, &found)) return EADDRNOTAVAIL;
    *fd = socket(found->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (*fd < 0 || setsockopt(*fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one) ||
        bind(*fd, found->ai_addr, found->ai_addrlen) || listen(*fd, BACKLOG))
        why = errno ? errno : EINVAL;
    freeaddrinfo(found);
    return why;
}
static int port_of(const void *self) {
    const hone_grpc *g = self;
    return g->port;
}

static int busy_with(const void *self) {
    const hone_grpc *g = self;
    return atomic_load(&g->busy);
}

static void quiet(void *self) {
    hone_grpc *g = self;
    /* who is connected by now is still accepted */
    if (g->listener >= 0 && !hone_accept_shut(g->listener)) shutdown(g->listener, SHUT_RD);
    atomic_store(&g->draining, true);
    for (int k = 0; k < g->n_loops; k++) nudge(&g->loop[k]);
}
static void end(void *self) {
    hone_grpc *g = self;
    if (!g) return;
    quiet(g);
    /* Answers that are ready get a moment to reach their clients. */
    for (int k = 0; k < 200 && atomic_load(&g->busy); k++) usleep(10000);
    atomic_store(&g->quit, true);
    for (int k = 0; k < g->n_loops; k++) {
        hone_grpc_loop *l = &g->loop[k];
        nudge(l);
        if (l->started) pthread_join(l->thread, NULL);
        for (int s = 0; s < l->n_sockets; s++) close(l->sockets[s]);
        free(l->sockets);
        if (l->poll >= 0) close(l->poll);
        if (l->wake >= 0) close(l->wake);
        pthread_mutex_destroy(&l->lock);
    }
    if (g->listener >= 0) close(g->listener);
    hone_serve_tls_free(g->tls);
    free(g->loop), free(g);
}

static bool loop_begin(hone_grpc *g, hone_grpc_loop *l) {
    struct epoll_event wake = {.events = EPOLLIN, .data.ptr = l}, door = {.events = EPOLLIN, .data.ptr = g};
    l->grpc = g;
    pthread_mutex_init(&l->lock, NULL);
    l->poll = epoll_create1(EPOLL_CLOEXEC), l->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (l->poll < 0 || l->wake < 0 || epoll_ctl(l->poll, EPOLL_CTL_ADD, l->wake, &wake)) return false;
    return l != g->loop || !epoll_ctl(l->poll, EPOLL_CTL_ADD, g->listener, &door);
}
static hone_status begin(hone_server *server, int port, void **out) {
    const hone_server_options *o = hone_serve_options(server);
    const long cores = sysconf(_SC_NPROCESSORS_ONLN);
    hone_grpc *g = calloc(1, sizeof *g);
    if (!g) return hone_server_say(HONE_NO_MEMORY, "no memory for the gRPC front");
    g->server = server, g->core = hone_serve_core_of(server), g->o = o, g->listener = -1;
    g->front = hone_serve_front_of(server);
    const hone_status secure =
        o->certificate ? hone_serve_tls_open(o->certificate, o->key, &g->tls) : HONE_OK;
    if (secure) {
        end(g);
        return secure;
    }
    const int loops = o->http_threads > 0 ? o->http_threads : cores < LOOPS_MAX ? (int)cores : LOOPS_MAX;
    g->at_core = o->queue / (2 * loops) > AT_CORE ? o->queue / (2 * loops) : AT_CORE;
    const int why = listen_at(o->host ? o->host : "127.0.0.1", port, &g->listener);
    if (why) {
        end(g);
        return hone_server_say(HONE_IO, "gRPC cannot listen at %s:%d: %s", o->host ? o->host : "127.0.0.1",
                               port, strerror(why));
    }
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t size = sizeof at;
    if (!getsockname(g->listener, (struct sockaddr *)&at, &size))
        g->port = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                                 : ((struct sockaddr_in *)&at)->sin_port);
    g->loop = calloc((size_t)loops, sizeof *g->loop);
    bool good = g->loop != NULL;
    for (int k = 0; good && k < loops; k++) g->n_loops++, good = loop_begin(g, &g->loop[k]);
    for (int k = 0; good && k < loops; k++)
        good = g->loop[k].started = !pthread_create(&g->loop[k].thread, NULL, turn, &g->loop[k]);
    if (!good) {
        end(g);
        return hone_server_say(HONE_NO_MEMORY, "no memory or thread for the gRPC front");
    }
    *out = g;
    return HONE_OK;
}

const hone_serve_protocol hone_serve_grpc = {
    .name = "grpc", .begin = begin, .port = port_of, .busy = busy_with, .quiet = quiet, .end = end};
