/* SPDX-License-Identifier: Apache-2.0
   ensemble.h: the graph of an ensemble, for ensemble.c, which makes it, and ensemble_run.c. */
#ifndef HONE_SERVE_ENSEMBLE_H
#define HONE_SERVE_ENSEMBLE_H
#include <stdio.h>

#include "serve/inside.h"

enum { HONE_SERVE_NOBODY = -1, HONE_SERVE_CLIENT = -2 }; /* who makes a tensor, else a step's number */
typedef struct {
    char *name;
    int maker, readers; /* readers: links of steps */
    bool kept;          /* an output of the ensemble */
    bool said;          /* the rest was said by some port */
    hone_dtype dtype;
    int rank;
    int64_t *dims;
    char *shape; /* in words, of inputs and outputs */
} hone_serve_tensor;
typedef struct {
    char *port;
    int number, tensor; /* of the member's inputs or outputs; of the ensemble */
} hone_serve_link;
typedef struct {
    char *model;
    int64_t number;              /* of its version; < 1: the newest */
    hone_serve_version *version; /* held */
    hone_serve_link *in, *out;
    int ins, outs;
} hone_serve_step;
struct hone_serve_ensemble {
    char *name;
    hone_serve_step *step;
    hone_serve_tensor *tensor;
    int *input, *output; /* tensors */
    int steps, tensors, inputs, outputs;
    bool stateful; /* a member has sequences */
};
#endif
