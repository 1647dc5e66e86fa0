/* SPDX-License-Identifier: Apache-2.0
   grpc: the gRPC front: HTTP/2 by nghttp2, gRPC's framing, and the calls of inference.GRPCInferenceService
   and grpc.health.v1.Health, answered by the core.

       loop         a thread with an epoll, some connections, and a mailbox that other threads fill
       pipe         a socket and an nghttp2 session: bytes to and fro                            grpc_pipe.c
       connection   a client's pipe, and its calls                                         grpc_connection.c
       call         a stream: what came of its messages, and what is to be sent                  grpc_call.c
       item         one message of a call and its answer; at the core while it runs           grpc_methods.c
       relay        in a front: a call on its way to another server and back (grpc_front.h)

   A call belongs to its loop's thread alone. Only items cross over: the core's threads finish them by the
   mailbox. */
#ifndef HONE_SERVE_GRPC_H
#define HONE_SERVE_GRPC_H
#include <nghttp2/nghttp2.h>

#include "serve/core.h"
#include "serve/grpc_message.h"
#include "serve/grpc_wire.h"
#include "serve/server.h"
#include "serve/tls.h"
#include "serve/trace.h"

typedef struct hone_grpc hone_grpc;

/* Tables of the core's documents as messages. */
extern const hone_serve_row hone_serve_metadata_rows[], hone_serve_index_rows[], hone_serve_statistics_rows[],
    hone_serve_config_rows[], hone_serve_regions_rows[], hone_serve_cuda_regions_rows[];

/* ---- inside ---- */

enum { /* gRPC's codes */
       HONE_GRPC_OK = 0,
       HONE_GRPC_CANCELLED = 1,
       HONE_GRPC_INVALID = 3,
       HONE_GRPC_DEADLINE = 4,
       HONE_GRPC_NOT_FOUND = 5,
       HONE_GRPC_EXHAUSTED = 8,
       HONE_GRPC_UNIMPLEMENTED = 12,
       HONE_GRPC_INTERNAL = 13,
       HONE_GRPC_UNAVAILABLE = 14,
       HONE_GRPC_UNAUTHENTICATED = 16
};

typedef struct hone_grpc_loop hone_grpc_loop;
typedef struct hone_grpc_connection hone_grpc_connection;
typedef struct hone_grpc_call hone_grpc_call;
typedef struct hone_grpc_item hone_grpc_item;
typedef struct hone_grpc_link hone_grpc_link;
typedef struct hone_grpc_relay hone_grpc_relay;

/* In which order connections are heard: those that wait for their answers before they ask again; new ones,
   and those with many calls under way; those that have brought more than was taken from them at once. */
typedef enum { HONE_GRPC_TURN_KNOWN, HONE_GRPC_TURN_OTHER, HONE_GRPC_TURN_MORE } hone_grpc_turn;
typedef struct hone_grpc_pipe hone_grpc_pipe;
struct hone_grpc_pipe {
    void (*event)(hone_grpc_pipe *, uint32_t events); /* of epoll, which knows the pipe */
    hone_grpc_loop *loop;
    int fd;
    hone_serve_secured *secured; /* NULL: plain */
    nghttp2_session *session;
    uint8_t *out; /* of which out_at … out_n is still to be sent */
    size_t out_n, out_at;
    uint32_t asked; /* of epoll */
    bool added;     /* to it */
    uint64_t stuck; /* since when the other end does not take what it is sent, or 0 */
    bool dirty;     /* to be written when this turn ends */
    hone_grpc_turn turn;
    uint64_t heard;                      /* when it had its turn last, or came */
    size_t piece;                        /* bytes that are taken from it at once */
    hone_grpc_pipe *later, **later_back; /* in the loop's line; back is NULL where it is not in it */
};

typedef struct {
    hone_grpc_pipe *pipe;
    uint32_t events;
} hone_grpc_due;

struct hone_grpc_item {
    hone_grpc_call *call;
    hone_serve_inference inference;
    hone_serve_error error;
    bool over;             /* answered, or failed */
    hone_grpc_item *next;  /* of the call, as they came */
    hone_grpc_item *other; /* in the mailbox, or waiting to be submitted */
};

typedef struct hone_grpc_method {
    const char *path;
    bool stream; /* many messages, each answered */
    bool open;   /* without a key too: probes */
    bool raw;    /* a message is taken as it came, with its frame: it goes to another server */
    /* Begins what a message asks for: either answers at once (hone_grpc_answer and what it wrote, or
       item->error), or takes it to the core (returns false) and the item comes back by the mailbox. */
    bool (*run)(hone_grpc_item *, const uint8_t *, size_t);
    /* Of a stream that the server ends: now and then, for something new to tell. NULL: it ends with the
       client's messages. */
    void (*look)(hone_grpc_call *);
} hone_grpc_method;
/* Up to a NULL path; one that ends in '/' is all that begin with it. */
extern const hone_grpc_method hone_grpc_methods[], hone_grpc_front_methods[];

struct hone_grpc_call {
    hone_grpc_connection *connection; /* NULL: the stream is gone, and only items keep the call */
    hone_grpc_loop *loop;
    const hone_grpc_method *method;
    int32_t stream;
    char path[128], encoding;   /* 'g' gzip, 'd' deflate, 0 identity, '?' another */
    bool is_grpc, is_post, may; /* may: its key is good */
    size_t head;                /* bytes of headers */
    uint64_t began, deadline;   /* deadline 0: none */
    uint64_t away;              /* for so long this process stood still since */
    /* the message that is coming in */
    uint8_t prefix[5];
    int prefix_n;
    bool in_ended;
    size_t in_wanted;
    int in_messages;
    hone_serve_out in;
    /* those at work */
    hone_grpc_item *first, **last;
    int items;
    /* Too many items are at work: bytes that came nevertheless, and how many the client is not yet told were
       taken. */
    hone_serve_out later;
    size_t unread;
    /* what goes out */
    hone_serve_out out;
    size_t out_at;
    /* in `busy`; headers are sent; no more will come; nghttp2 waits for more */
    bool counted, begun, closed, waiting;
    uint64_t refused; /* when it ended before the client was done, or 0 */
    uint64_t told;    /* what its `look` told last, 0: nothing */
    int status;
    char message[512], trace[56], parent[17];
    hone_grpc_relay *relay; /* NULL: it is answered here */
    /* In a front, headers as names and values with a zero behind each: the client's that go on, and those
       that the other server answered with, before and behind its messages. */
    hone_serve_out given, heads, tails;
    uint64_t bytes_in, bytes_out;
    hone_serve_times times;         /* of its last inference */
    hone_grpc_call *before, *after; /* of the connection */
};

struct hone_grpc_connection {
    hone_grpc_pipe pipe;  /* first */
    hone_grpc_call *call; /* those that are open */
    int calls;
    uint64_t useful; /* when it last did something */
    char peer[64];   /* for the access log; "" where there is none */
    bool leaving;    /* GOAWAY was sent */
    bool left;       /* for good, after the notice */
    hone_grpc_connection *before, *after;
    hone_grpc_connection *to_write, **to_write_back; /* the loop's; back is NULL where it is not in it */
};

struct hone_grpc_loop {
    hone_grpc *grpc;
    pthread_t thread;
    bool started;
    int poll, wake, connections, timed; /* timed: calls with a deadline */
    hone_grpc_connection *connection, *to_write;
    hone_grpc_link *link;  /* to other servers, in a front */
    hone_grpc_item *ready; /* inferences that this turn brought, to be submitted when it ends */
    int at_work, n_ready;  /* items that the core has; that are ready */
    /* Of those that are new, and of those that bring more: epoll does not look at them meanwhile. */
    hone_grpc_pipe *line[2], **line_end[2];
    hone_grpc_due *due; /* what this turn is to hear; a pipe that closes is taken out */
    int n_due;
    uint64_t ticked;
    pthread_mutex_t lock;
    hone_grpc_item *posted;  /* by any thread; newest first */
    int *sockets, n_sockets; /* new ones */
    bool nudged;             /* `wake` was written since the mailbox was last emptied */
};

struct hone_grpc {
    hone_server *server;
    hone_serve_core *core;    /* or a front */
    struct hone_front *front; /* NULL: it has models of its own */
    const hone_server_options *o;
    hone_serve_tls *tls; /* NULL: plain */
    int listener, port, n_loops;
    unsigned turn;
    int ticks_left; /* since the server stops */
    int at_core;    /* items of a loop there, from which on those that bring more wait */
    int most;       /* connections at once since memory was last given back; the first loop's */
    hone_grpc_loop *loop;
    atomic_bool draining, quit;
    atomic_int connections, busy; /* busy: calls of one answer that are open, and messages of streams */
    atomic_size_t held;           /* bytes of messages that are coming in, or wait to go on */
};

/* grpc_call.c */
hone_grpc_call *hone_grpc_call_open(hone_grpc_connection *, int32_t stream);
/* false: too many */
bool hone_grpc_call_header(hone_grpc_call *, const char *name, size_t n, const char *value, size_t m);
void hone_grpc_call_headed(hone_grpc_call *); /* all headers are there */
void hone_grpc_call_data(hone_grpc_call *, const uint8_t *, size_t);
void hone_grpc_call_ended(hone_grpc_call *); /* the client sends no more */
void hone_grpc_call_gone(hone_grpc_call *);  /* the stream is closed */
void hone_grpc_call_fail(hone_grpc_call *, int status, const char *text);
void hone_grpc_call_tick(hone_grpc_call *, uint64_t now);
void hone_grpc_item_over(hone_grpc_item *);                        /* in the loop's thread */
hone_serve_out *hone_grpc_answer(hone_grpc_item *, size_t *begun); /* a message of the answer begins … */
void hone_grpc_answered(hone_grpc_item *, size_t begun);           /* … and is whole */
int hone_grpc_status_of(int code);
bool hone_grpc_call_hungry(const hone_grpc_call *); /* it takes more from the client */
void hone_grpc_call_resume(hone_grpc_call *);       /* it may do so again */
/* grpc_pipe.c */
void hone_grpc_pipe_begin(hone_grpc_pipe *);
void hone_grpc_pipe_wait(hone_grpc_pipe *); /* in line */
void hone_grpc_pipe_called(hone_grpc_pipe *);
bool hone_grpc_pipe_read(hone_grpc_pipe *); /* false: it is over */
bool hone_grpc_pipe_write(hone_grpc_pipe *);
bool hone_grpc_pipe_watch(hone_grpc_pipe *, uint32_t events);
void hone_grpc_pipe_close(hone_grpc_pipe *);
/* grpc_reflect.c */
bool hone_grpc_reflect(hone_grpc_item *, const uint8_t *, size_t);
/* grpc_connection.c */
hone_grpc_connection *hone_grpc_connection_open(hone_grpc_loop *, int fd);
void hone_grpc_connection_dirty(hone_grpc_connection *); /* it may have something to send */
void hone_grpc_connection_written(hone_grpc_connection *);
void hone_grpc_connection_leave(hone_grpc_connection *, bool last); /* GOAWAY */
void hone_grpc_connection_close(hone_grpc_connection *);
void hone_grpc_call_send(hone_grpc_call *); /* something to send, or the end */
/* grpc.c */
/* Whether those that bring much may bring more: not while the core has enough of this loop, for its queue
   would be full of what few connections bring. */
bool hone_grpc_has_room(const hone_grpc_loop *);
void hone_grpc_post(hone_grpc_item *); /* any thread: it is over, tell its loop */
#endif
