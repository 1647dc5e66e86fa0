/* SPDX-License-Identifier: Apache-2.0
   accept: see accept.h. */
#include "serve/accept.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "serve/core.h"

enum { WAITING = 1024, AT_ONCE = 64, TICK = 5 /* ms, until somebody leaves */ };

hone_status hone_accept_at(const char *host, int port, hone_acceptor *out, int *got) {
    char service[16];
    struct addrinfo hints = {.ai_family = AF_UNSPEC,
                             .ai_socktype = SOCK_STREAM,
                             .ai_flags = AI_PASSIVE | AI_NUMERICSERV},
                    *list = NULL;
    *out = (hone_acceptor){.fd = -1, .stop = {-1, -1}};
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
    struct sockaddr_storage at;
    socklen_t n = sizeof at;
    *got = port;
    if (!getsockname(fd, (struct sockaddr *)&at, &n))
        *got = ntohs(at.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&at)->sin6_port
                                              : ((struct sockaddr_in *)&at)->sin_port);
    out->fd = fd;
    return HONE_OK;
}
static bool is_full(const hone_acceptor *a) {
    const union MHD_DaemonInfo *now = MHD_get_daemon_info(a->daemon, MHD_DAEMON_INFO_CURRENT_CONNECTIONS);
    return now && now->num_connections >= (unsigned)a->most;
}
static void hand_on(const hone_acceptor *a, int most) {
    for (int n = 0; n < most; n++) {
        struct sockaddr_storage from;
        socklen_t size = sizeof from;
        const int fd = accept4(a->fd, (struct sockaddr *)&from, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
        if (fd < 0) {
            if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM)
                usleep(TICK * 1000); /* until somebody leaves */
            return;
        }
        (void)MHD_add_connection(a->daemon, fd, (struct sockaddr *)&from, size); /* closes what it refuses */
    }
}
static void *take(void *acceptor) {
    const hone_acceptor *a = acceptor;
    for (;;) {
        const bool full = is_full(a);
        struct pollfd on[2] = {{a->stop[0], POLLIN, 0}, {a->fd, POLLIN, 0}};
        if (poll(on, full ? 1 : 2, full ? TICK : -1) < 0) continue;
        if (on[0].revents) return NULL;
        if (!full && on[1].revents) hand_on(a, AT_ONCE);
    }
}
hone_status hone_accept_begin(hone_acceptor *a, struct MHD_Daemon *daemon, int most) {
    a->daemon = daemon, a->most = most;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, a->stop) ||
        pthread_create(&a->thread, NULL, take, a))
        return hone_server_say(HONE_IO, "no thread for the server");
    a->runs = true;
    return HONE_OK;
}
void hone_accept_end(hone_acceptor *a) {
    if (a->runs) {
        shutdown(a->stop[1], SHUT_RDWR);
        pthread_join(a->thread, NULL);
        hand_on(a, WAITING); /* they would be reset */
        a->runs = false;
    }
    for (int k = 0; k < 2; k++)
        if (a->stop[k] >= 0) close(a->stop[k]), a->stop[k] = -1;
    if (a->fd >= 0) close(a->fd), a->fd = -1;
}
