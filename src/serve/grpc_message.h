/* SPDX-License-Identifier: Apache-2.0
   grpc_message: an inference as gRPC's messages say it: ModelInferRequest to a request of the core's, and its
   outputs to ModelInferResponse. Knows nothing of connections. */
#ifndef HONE_SERVE_GRPC_MESSAGE_H
#define HONE_SERVE_GRPC_MESSAGE_H
#include "serve/core.h"
#include "serve/grpc_wire.h"
#include "serve/shared.h"

typedef struct {
    int output, classes;    /* of the model; classes 0: its numbers */
    hone_serve_place place; /* where the client wants it; name "": in the answer */
} hone_serve_wanted;
typedef struct {
    hone_serve_request *request;
    hone_serve_wanted *wanted; /* so many outputs, as asked for; none asked for: all */
    int n_wanted;
    char *id; /* the client's, or NULL */
} hone_serve_inference;

/* 0, or the error's code; what was made is ended by hone_serve_inference_end either way. */
int hone_serve_inference_read(hone_serve_core *, const uint8_t *message, size_t, hone_serve_inference *,
                              hone_serve_error *);
/* The answer of one that ran well. In a stream it is wrapped, and says that it is the last of its request. */
int hone_serve_inference_write(const hone_serve_inference *, hone_serve_shared *, bool stream,
                               hone_serve_out *, hone_serve_error *);
void hone_serve_inference_end(hone_serve_inference *);

/* A field's text as C has it. False: too long, or a zero within. */
bool hone_serve_text_of(const hone_serve_field *, char *out, size_t room);
/* "" is 0, the server's choice. False: no number. */
bool hone_serve_version_of(const char *text, int64_t *out);
#endif
