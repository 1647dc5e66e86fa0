/* SPDX-License-Identifier: Apache-2.0
   accept: see accept.h. */
#include "serve/accept.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/filter.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/core.h"

enum {
    WAITING = 1024,
    AT_ONCE = 64,
    EVENTS = 64,
    TICK = 5 /* ms, until somebody leaves */,
    LOOK = 500 /* ms */
};
enum { LINE = 8 << 10, LINGER = 2000 /* us: a handshake that is under way */ };
static const uint64_t second_ns = 1000000000;

struct guest {
    int fd;
    socklen_t size;
    struct sockaddr_storage from;
    uint64_t since;
    struct guest *next, **back;
};

hone_status hone_accept_at(const char *host, int port, hone_acceptor *out, int *got) {
    char service[16];
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *list = NULL;
    *out = (hone_acceptor){.fd = -1, .stop = {-1, -1}, .poll = -1};
    snprintf(service, sizeof service, "%d", port);
    const int rc = getaddrinfo(host, service, &hints, &list), on = 1;
    if (rc) return hone_server_say(HONE_BAD_INPUT, "host '%.100s': %s", host, gai_strerror(rc));
    int fd = -1, why = 0;
    for (struct addrinfo *a = list; a && fd < 0; a = a->ai_next) {
        if ((fd = socket(a->ai_family, a->ai_socktype | SOCK_CLOEXEC | SOCK_NONBLOCK, a->ai_protocol)) < 0)
            continue;
        setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
        if (!bind(fd, a->ai_addr, a->ai_addrlen) && !listen(fd, WAITING)) break;
        why = errno, close(fd), fd = -1;
    }
    freeaddrinfo(list);
    if (fd < 0) return hone_server_say(HONE_IO, "%s port %d: %s", host, port, strerror(why));
    struct sockaddr_storage at = {.ss_family = AF_UNSPEC};
    socklen_t n = sizeof at;
    *got = port;
    if (!getsockname(fd, (struct sockaddr *)&at, &n))
        *got = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                              : ((struct sockaddr_in *)&at)->sin_port);
    out->fd = fd;
    return HONE_OK;
}

bool hone_accept_shut(int fd) {
    struct sock_filter no_syn[] = {BPF_STMT(BPF_LD | BPF_B | BPF_ABS, 13), /* TCP's flags */
                                   BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0x12),
                                   BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0x02, 0, 1),
                                   BPF_STMT(BPF_RET | BPF_K, 0), BPF_STMT(BPF_RET | BPF_K, UINT32_MAX)};
    const struct sock_fprog program = {sizeof no_syn / sizeof *no_syn, no_syn};
    return !setsockopt(fd, SOL_SOCKET, SO_ATTACH_FILTER, &program, sizeof program);
}

static bool is_full(const hone_acceptor *a) {
    const union MHD_DaemonInfo *now = MHD_get_daemon_info(a->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    const unsigned due = a->handed - atomic_load(&a->entered);
    return now && now->num_connections + due + (unsigned)a->guests >= (unsigned)a->most;
}
/* libmicrohttpd gives a connection to the thread of its number, modulo their count. Numbers alternate where
   another port has as many new connections, and one thread would get all of this one's. */
static int dealt(hone_acceptor *a, int fd) {
    const unsigned n = (unsigned)a->threads, want = a->turn++ % n, off = (want + n - (unsigned)fd % n) % n;
    if (!off) return fd;
    const int other = fcntl(fd, F_DUPFD_CLOEXEC, fd + (int)off);
    if (other < 0) return fd;
    close(fd);
    return other;
}
static void hand_on(hone_acceptor *a, int fd, const struct sockaddr_storage *from, socklen_t size) {
    a->handed++;
    /* closes what it refuses */
    if (!MHD_add_connection(a->daemon, dealt(a, fd), (const struct sockaddr *)from, size)) a->handed--;
}

/* ---- at the door ---- */

static void leave(hone_acceptor *a, struct guest *g) {
    *g->back = g->next;
    if (g->next) g->next->back = g->back;
    a->guests--;
    free(g);
}
static void let_in(hone_acceptor *a, struct guest *g) {
    epoll_ctl(a->poll, EPOLL_CTL_DEL, g->fd, NULL);
    hand_on(a, g->fd, &g->from, g->size);
    leave(a, g);
}
static void turn_away(hone_acceptor *a, struct guest *g) {
    close(g->fd);
    leave(a, g);
}
static void look_at(hone_acceptor *a, struct guest *g) {
    char line[LINE];
    ssize_t n;
    do n = recv(g->fd, line, sizeof line, MSG_PEEK | MSG_DONTWAIT);
    while (n < 0 && errno == EINTR);
    if (n < 0 && errno == EAGAIN) return;
    if (n <= 0) {
        turn_away(a, g);
        return;
    }
    ssize_t from = 0; /* empty lines before it are skipped by libmicrohttpd, too */
    while (from < n && (line[from] == '\r' || line[from] == '\n')) from++;
    if (from == (ssize_t)sizeof line || memchr(line + from, '\n', (size_t)(n - from))) let_in(a, g);
    else if (n == (ssize_t)sizeof line) {
        static const char answer[] =
            "HTTP/1.1 414 URI Too Long\r\nContent-Length: 0\r\nConnection: close\r\n\r\n";
        (void)!send(g->fd, answer, sizeof answer - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
        shutdown(g->fd, SHUT_WR);
        turn_away(a, g);
    }
}
static bool welcome(hone_acceptor *a, int fd, const struct sockaddr_storage *from, socklen_t size) {
    struct guest *g = malloc(sizeof *g);
    if (!g) return false;
    *g = (struct guest){.fd = fd, .size = size, .from = *from, .since = hone_serve_now()};
    struct epoll_event on = {.events = EPOLLIN | EPOLLRDHUP | EPOLLET, .data.ptr = g};
    if (epoll_ctl(a->poll, EPOLL_CTL_ADD, fd, &on)) {
        free(g);
        return false;
    }
    if ((g->next = a->guest)) g->next->back = &g->next;
    g->back = &a->guest, a->guest = g, a->guests++;
    return true;
}
static void take_all(hone_acceptor *a, int most, bool look) {
    for (int n = 0; n < most; n++) {
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        const int fd = accept4(a->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                usleep(TICK * 1000); /* until somebody leaves */
            return;
        }
        if (!look || !welcome(a, fd, &from, size)) hand_on(a, fd, &from, size);
    }
}
static void *take(void *acceptor) {
    hone_acceptor *a = acceptor;
    struct epoll_event ev[EVENTS];
    uint64_t looked = hone_serve_now();
    unsigned due = 0, entered = 0; /* when it was looked last */
    for (bool listens = true;;) {
        const bool full = is_full(a);
        if (full == listens) { /* the others wait */
            struct epoll_event door = {.events = full ? 0 : EPOLLIN, .data.ptr = a};
            epoll_ctl(a->poll, EPOLL_CTL_MOD, a->fd, &door);
            listens = !full;
        }
        const int n = epoll_wait(a->poll, ev, EVENTS, full ? TICK : a->guests ? LOOK : -1);
        bool door = false;
        for (int k = 0; k < n; k++) {
            if (!ev[k].data.ptr) return NULL;
            if (ev[k].data.ptr == a) door = listens;
            else look_at(a, ev[k].data.ptr);
        }
        if (door) take_all(a, AT_ONCE, a->looks);
        const uint64_t now = hone_serve_now(), away = now - looked;
        if (away < LOOK * 1000000ull) continue;
        looked = now;
        /* what it lost for want of memory is not told */
        if (due && due == a->handed - atomic_load(&a->entered) && entered == atomic_load(&a->entered))
            a->handed = entered;
        entered = atomic_load(&a->entered), due = a->handed - entered;
        for (struct guest *g = a->guest, *next; g; g = next) {
            next = g->next;
            if (away > second_ns) g->since += away; /* this process stood still: nobody else's time */
            if (now > g->since && now - g->since > (uint64_t)a->idle_s * second_ns) turn_away(a, g);
        }
    }
}
hone_status hone_accept_begin(hone_acceptor *a, struct MHD_Daemon *daemon) {
    struct epoll_event door = {.events = EPOLLIN, .data.ptr = a},
                       stop = {.events = EPOLLIN, .data.ptr = NULL};
    a->daemon = daemon;
    a->poll = epoll_create1(EPOLL_CLOEXEC);
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a->stop) || a->poll < 0 ||
        epoll_ctl(a->poll, EPOLL_CTL_ADD, a->fd, &door) ||
        epoll_ctl(a->poll, EPOLL_CTL_ADD, a->stop[0], &stop) || pthread_create(&a->thread, NULL, take, a))
        return hone_server_say(HONE_IO, "no thread for the server");
    a->runs = true;
    return HONE_OK;
}
void hone_accept_entered(hone_acceptor *a) { atomic_fetch_add(&a->entered, 1); }
void hone_accept_end(hone_acceptor *a) {
    if (a->runs) {
        if (hone_accept_shut(a->fd)) usleep(LINGER);
        shutdown(a->stop[1], SHUT_RDWR);
        pthread_join(a->thread, NULL);
        for (struct guest *g = a->guest, *next; g; g = next) {
            next = g->next;
            let_in(a, g);
        }
        take_all(a, WAITING, false); /* they would be reset */
        a->runs = false;
    }
    for (int k = 0; k < 2; k++)
        if (a->stop[k] >= 0) close(a->stop[k]), a->stop[k] = -1;
    if (a->poll >= 0) close(a->poll), a->poll = -1;
    if (a->fd >= 0) close(a->fd), a->fd = -1;
}
