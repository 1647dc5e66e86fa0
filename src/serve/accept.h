/* SPDX-License-Identifier: Apache-2.0
   accept: a listening socket, and a thread that takes connections from it and hands them to libmicrohttpd,
   at most so many at a time; the others wait. A connection is handed on when its first line is there, so that
   those that never ask cost little, and a line without end is not searched anew for each piece of it, as
   libmicrohttpd does: a megabyte of it took 25 ms of its thread. Connections are counted here: libmicrohttpd
   0.9.75 keeps a lock for ever when a thread of its has one connection too many, and the server hangs.

   libmicrohttpd could listen by itself. But how it stops (MHD_quiesce_daemon, 0.9.75) is not safe: it takes
   the socket out of each thread's epoll set, which that thread may do at the same moment, and whoever comes
   second finds nothing there and aborts the process. */
#ifndef HONE_SERVE_ACCEPT_H
#define HONE_SERVE_ACCEPT_H
#include <microhttpd.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "hone/hone.h"

typedef struct {
    struct MHD_Daemon *daemon;
    int fd, stop[2], poll, guests;
    unsigned handed;           /* to libmicrohttpd, which takes them when its threads come to it */
    atomic_uint entered;       /* those that it took: told by hone_accept_entered */
    int most, threads, idle_s; /* connections at once; libmicrohttpd's; for a first line */
    bool looks;                /* at first lines, which TLS would hide */
    unsigned turn;
    struct guest *guest; /* whose first line is not there */
    pthread_t thread;
    bool runs;
} hone_acceptor;
/* Listens at host and port (0: a free one); *got: which one it is. */
hone_status hone_accept_at(const char *host, int port, hone_acceptor *out, int *got);
hone_status hone_accept_begin(hone_acceptor *, struct MHD_Daemon *);
/* From now on nobody can connect to this listening socket, and those who have can still be accepted: closing
   it would reset them. False: this kernel cannot do that. */
bool hone_accept_shut(int fd);
/* libmicrohttpd has taken one. */
void hone_accept_entered(hone_acceptor *);
/* Takes no more. Who is connected by now, and was to be taken, still is. */
void hone_accept_end(hone_acceptor *);
#endif
