/* SPDX-License-Identifier: Apache-2.0
   front: a server that stands before others and has no models: each request goes to the one of them that is
   ready and has the least under way. Any server of KServe v2 will do.

       backends   the servers behind, each of HTTP or of gRPC: ready or not, counted               front.c
       jobs       a request over HTTP and its answer, whole: who has both can repeat what broke. front_http.c
                  makes them of calls, and answers of jobs
       lines      connections that carry jobs, kept; one thread with an epoll has them all    front_line.c
       relays     calls of gRPC, by the threads of its protocol                               grpc_front.h

   A request is repeated elsewhere where that is safe: always when the connection could not be made; when an
   answer did not come whole (nobody has seen a part of it), unless the request belongs to a sequence; when it
   was refused with 503. One that takes too long is not: it would take as long again. */
#ifndef HONE_SERVE_FRONT_H
#define HONE_SERVE_FRONT_H
#include <netdb.h>
#include <sys/socket.h>

#include "net/answer.h"
#include "serve/inside.h"
#include "serve/server.h"

enum { HONE_FRONT_MOST = 64, HONE_FRONT_ADDRESSES = 4 }; /* servers behind; of one name */

typedef struct hone_front hone_front;
typedef struct hone_front_job hone_front_job;
typedef struct hone_front_line hone_front_line;
typedef struct hone_front_backend hone_front_backend;

typedef struct {       /* how a request finds its server */
    bool grpc;         /* one of gRPC, else of HTTP */
    bool repeatable;   /* asking twice does no harm */
    bool everywhere;   /* every server is to do it; the answer is the first that is an error, or the last */
    uint64_t sequence; /* not 0: all of one number go to one server */
    uint64_t tried;    /* a bit a server */
    int tries;
    bool broken; /* a server took it, and did not answer well */
} hone_front_want;

struct hone_front_job {
    /* what is asked: first line and headers, without Host and the empty line; and the body */
    const char *head, *body;
    size_t head_n, body_n;
    hone_front_want want;
    void (*done)(hone_front_job *); /* once, from any thread */
    void *arg;
    /* the answer; error.code: there was none */
    hone_serve_error error;
    int status;
    char *answer_head;
    uint8_t *answer;
    size_t answer_n, answer_room;
    const hone_front_backend *by;
    uint64_t posted, sent, answered; /* ns; the last two: of the server that answered */
    /* the front's own: */
    uint64_t deadline;
    bool check, refused; /* refused: nobody was there */
    hone_front_job *next;
};

typedef struct { /* written by threads that carry, read by any */
    atomic_bool up;
    atomic_int under_way, lines;
    atomic_ullong requests, failures, repeats, refused, bytes_in, bytes_out, ns;
    atomic_ullong took[HONE_SERVE_BUCKETS];
} hone_front_counts;

struct hone_front_backend {
    bool grpc;
    char name[310]; /* "HOST:PORT", "grpc://HOST:PORT"; without the scheme: */
    const char *authority;
    char host[320]; /* HTTP's header, and the empty line behind it */
    size_t host_n;
    struct sockaddr_storage address[HONE_FRONT_ADDRESSES]; /* of the name; the one that was reached */
    socklen_t address_bytes[HONE_FRONT_ADDRESSES];
    int addresses;
    atomic_uint at;
    hone_front_counts counts;
    atomic_ullong check_at; /* any thread that finds it broken asks for a check */
    /* of the thread that checks, which of HTTP is that of the lines: */
    hone_front_line *idle;
    int idle_n, misses;
    hone_front_job check;
    bool checking;
    char why[200]; /* it is not ready; this and what follows: under front->lock */
    bool told;
};

struct hone_front {
    const hone_server_options *o;
    hone_front_backend *backend;
    int n;
    bool grpc, http; /* servers of these are among them */
    atomic_uint turn;
    int poll, wake;
    pthread_t thread;
    bool started, draining;
    uint64_t began;
    hone_front_line *line, *dead; /* all that are open; those to be freed when this turn ends */
    pthread_mutex_t lock;
    hone_front_job *posted, **last;
    bool quit;
};

/* front.c */
hone_status hone_front_open(const hone_server_options *, hone_front **out);
void hone_front_end(hone_front *); /* what is under way is answered with 503 */
void hone_front_free(hone_front *);
bool hone_front_ready(const hone_front *, bool grpc); /* a server behind it is */
/* Which server gets it; NULL: none that is ready is left. */
hone_front_backend *hone_front_choose(hone_front *, const hone_front_want *);
int hone_front_connect(hone_front_backend *); /* a socket on its way there; -1: errno */
void hone_front_answered(hone_front_backend *, uint64_t ns, uint64_t bytes_out, uint64_t bytes_in);
/* A check came to its end; `why` NULL: well. When the next one is due is in check_at. */
void hone_front_checked(hone_front *, hone_front_backend *, const char *why, bool certain);
void hone_front_up(hone_front *, hone_front_backend *, const char *why /* NULL: it is ready */);
json_t *hone_front_status(hone_front *); /* a list, for the status page */
/* front_line.c */
void hone_front_post(hone_front *, hone_front_job *);
void *hone_front_run(void *front); /* the thread */
#endif
