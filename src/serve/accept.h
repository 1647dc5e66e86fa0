/* SPDX-License-Identifier: Apache-2.0
   accept: a listening socket, and a thread that takes connections from it and hands them to libmicrohttpd,
   at most so many at a time; the others wait.

   libmicrohttpd could listen by itself. But how it stops (MHD_quiesce_daemon, 0.9.75) is not safe: it takes
   the socket out of each thread's epoll set, which that thread may do at the same moment, and whoever comes
   second finds nothing there and aborts the process. */
#ifndef HONE_SERVE_ACCEPT_H
#define HONE_SERVE_ACCEPT_H
#include <microhttpd.h>
#include <pthread.h>
#include <stdbool.h>

#include "hone/hone.h"

typedef struct {
    struct MHD_Daemon *daemon;
    int fd, stop[2], most;
    pthread_t thread;
    bool runs;
} hone_acceptor;
/* Listens at host and port (0: a free one); *got: which one it is. */
hone_status hone_accept_at(const char *host, int port, hone_acceptor *out, int *got);
hone_status hone_accept_begin(hone_acceptor *, struct MHD_Daemon *, int most);
/* Takes no more. Who is connected by now, and was to be taken, still is. */
void hone_accept_end(hone_acceptor *);
#endif
