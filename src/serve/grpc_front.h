/* SPDX-License-Identifier: Apache-2.0
   grpc_front: calls that go to another server and come back: gRPC's side of a front (front.h).

       relay   a call on its way: what its client sent, what the server answers                grpc_front.c
       link    a connection to a server, over which relays go                                  grpc_link.c

   Each loop has links of its own, one a server, so a relay stays in the thread of its call. A call of one
   message is taken whole before a server gets it, and its answer whole before the client does: so what broke
   can be repeated. Of a stream, messages go on as they come; it stays with its server. */
#ifndef HONE_SERVE_GRPC_FRONT_H
#define HONE_SERVE_GRPC_FRONT_H
#include "serve/front.h"
#include "serve/grpc.h"

struct hone_grpc_relay {
    hone_grpc_loop *loop;
    hone_grpc_call *call; /* NULL: it is a check of ours */
    hone_grpc_item *item; /* the call's one message, until it is answered */
    const char *path;
    bool stream;
    hone_front_want want;
    hone_serve_error error; /* of the last server that did not answer well */
    /* what goes out: messages with their frames */
    hone_serve_out body;
    size_t at, held,
        owed; /* held: counted in grpc->held; owed: messages of a stream that no answer came to */
    bool begun, ended, dropped; /* it was given to a server; no more will come; some of it is gone already */
    bool waiting;               /* nghttp2 waits for more */
    /* on its way: */
    hone_grpc_link *link;
    int32_t id;
    bool left; /* its headers did */
    uint64_t deadline, sent, answered;
    const hone_front_backend *by; /* who answered */
    hone_grpc_relay *before, *after;
    /* what came */
    int status, code; /* HTTP's, 0: none yet; gRPC's, -1 */
    bool behind;      /* headers that come now stand behind the messages */
    bool flows;       /* of a stream: the client sees what comes */
    hone_serve_out head, tail, answer;
    uint8_t prefix[5];
    int prefix_n;
    size_t message_left, unread; /* of a stream's message; bytes that the server is not yet told were taken */
    uint64_t bytes_in, bytes_out;
};

struct hone_grpc_link {
    hone_grpc_pipe pipe; /* first */
    hone_front_backend *to;
    bool connecting, leaves; /* leaves: it takes no more, and is closed with its last */
    uint64_t since;          /* it was opened */
    hone_grpc_relay *relay;
    hone_grpc_link *before, *after;
};

/* ---- grpc_front.c: relays; where a call has none, nothing is done ---- */
bool hone_grpc_forward(hone_grpc_item *, const uint8_t *, size_t); /* a method: it goes to a server */
bool hone_grpc_goes_on(const char *name, size_t); /* a header that servers behind are to see */
/* `given` as nghttp2 wants it, behind room for `more`; the caller frees it. NULL: no memory */
nghttp2_nv *hone_grpc_headers(const hone_serve_out *given, size_t more, size_t *n);
void hone_grpc_relay_ended(hone_grpc_call *); /* the client sends no more */
void hone_grpc_relay_drop(hone_grpc_call *);  /* nobody waits for it any more */
void hone_grpc_relay_free(hone_grpc_call *);  /* nor is the call's client there */
bool hone_grpc_relay_hungry(const hone_grpc_relay *);
void hone_grpc_relay_drained(hone_grpc_call *); /* the client took some of the answer */
/* A server is asked whether it is ready. */
void hone_grpc_relay_check(hone_grpc_loop *, hone_front_backend *, uint64_t now);
/* What the link tells: */
void hone_grpc_relay_header(hone_grpc_relay *, const char *name, size_t, const char *value, size_t);
void hone_grpc_relay_headed(hone_grpc_relay *);
bool hone_grpc_relay_data(hone_grpc_relay *, const uint8_t *, size_t); /* false: no more for now */
void hone_grpc_relay_over(hone_grpc_relay *);                          /* the server's answer is at its end */
/* `unsent`: the server does not have it, nor has it begun it. */
void hone_grpc_relay_failed(hone_grpc_relay *, hone_front_backend *, const char *why, bool unsent);
void hone_grpc_relay_late(hone_grpc_relay *); /* its server took too long */

/* ---- grpc_link.c ---- */
/* Takes fd, a socket on its way to that server. NULL: errno */
hone_grpc_link *hone_grpc_link_open(hone_grpc_loop *, hone_front_backend *, int fd);
/* Sends it there; false: errno says why there is no way. */
bool hone_grpc_link_carry(hone_grpc_relay *, hone_front_backend *);
void hone_grpc_link_detach(hone_grpc_relay *, bool cancel);
void hone_grpc_link_more(hone_grpc_relay *); /* its body grew, or ended */
void hone_grpc_links_tick(hone_grpc_loop *, uint64_t now);
int hone_grpc_links_patience(const hone_grpc_loop *); /* ms */
bool hone_grpc_links_write(hone_grpc_loop *);         /* true: clients have something to be sent */
void hone_grpc_links_close(hone_grpc_loop *);
#endif
