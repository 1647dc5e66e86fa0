/* SPDX-License-Identifier: Apache-2.0
   server: what a protocol gives to the server: begin, the port it opened, stop taking requests, end. */
#ifndef HONE_SERVE_SERVER_H
#define HONE_SERVE_SERVER_H
#include "serve/core.h"

typedef struct {
    const char *name; /* "http" */
    /* may answer at once; models are still being loaded */
    hone_status (*begin)(hone_server *, int port, void **out);
    int (*port)(const void *);
    int (*busy)(const void *); /* calls that came and are not wholly answered */
    void (*quiet)(void *);     /* take no more; what was accepted goes on */
    void (*end)(void *);       /* after quiet, when nothing is under way, or time is up */
} hone_serve_protocol;
extern const hone_serve_protocol hone_serve_http, hone_serve_metrics;
#ifdef HONE_SERVE_GRPC
extern const hone_serve_protocol hone_serve_grpc;
#endif

const hone_server_options *hone_serve_options(const hone_server *);
/* NULL: it has models of its own, and a core. */
struct hone_front *hone_serve_front_of(const hone_server *);
struct hone_serve_trace *hone_serve_trace_of(const hone_server *); /* NULL: none is written */
/* Whether requests are told of when they are over: the access log, or a trace. */
bool hone_serve_logs(const hone_server *);
bool hone_serve_stopping(const hone_server *);
/* Whether a key (of "Authorization: Bearer KEY") is one of those that may ask; true where none are wanted. */
bool hone_serve_key_good(const hone_server *, const char *key);
/* A request of so many bytes, in and out, is over; and, now and then: after a load, the allocator's spare
   memory goes back to the system. */
void hone_serve_carried(hone_server *, uint64_t bytes);
void hone_serve_calm(hone_server *);
/* One request's line for the access log, and its spans; does nothing where there is neither. `trace` may be
   NULL. */
typedef struct {
    const char *peer, *protocol, *verb, *path, *trace;
    int code;
    uint64_t bytes_in, bytes_out;
    const hone_serve_times *times; /* NULL: it was no inference */
    const char *server;            /* behind a front: who answered, after so many tries; NULL: nobody */
    int tries;
    uint64_t sent, answered; /* to it, by it */
    const char *parent;      /* the span that asked, of a trace; may be NULL */
    uint64_t began, ended;
} hone_serve_access;
void hone_serve_log(hone_server *, const hone_serve_access *);
#endif
