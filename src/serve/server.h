/* SPDX-License-Identifier: Apache-2.0
   server: what a protocol gives to the server: begin, the port it opened, stop taking requests, end. */
#ifndef HONE_SERVE_SERVER_H
#define HONE_SERVE_SERVER_H
#include "serve/core.h"

typedef struct {
    const char *name;                                          /* "http" */
    hone_status (*begin)(hone_server *, int port, void **out); /* may answer at once; models are still being loaded */
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
/* Whether a key (of "Authorization: Bearer KEY") is one of those that may ask; true where none are wanted. */
bool hone_serve_key_good(const hone_server *, const char *key);
/* One request's line for the access log; does nothing where there is none. `trace` may be NULL. */
typedef struct {
    const char *peer, *protocol, *verb, *path, *trace;
    int code;
    uint64_t bytes_in, bytes_out;
    const hone_serve_times *times; /* NULL: it was no inference */
    uint64_t began, ended;
} hone_serve_access;
void hone_serve_log(hone_server *, const hone_serve_access *);
#endif
