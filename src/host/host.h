/* SPDX-License-Identifier: Apache-2.0
   host: the ops that are not loops over indices, as plain C on values: control flow, sequences, optionals,
   strings, NonZero, TopK, …

   A row says `host NAME` or `control NAME`; NAME is looked up here once, when a model is compiled. A host
   function knows no plan and no thread; bodies run, and work is spread over threads, through functions handed
   in. */
#ifndef HONE_HOST_HOST_H
#define HONE_HOST_HOST_H
#include "ir/graph.h"

/* What a function made of a node's attributes and keeps, as the first member of a struct of its own. It may
   be read by several threads. */
typedef struct hone_host_kept {
    void (*destroy)(struct hone_host_kept *);
} hone_host_kept;

typedef struct { /* n pieces of tensors; places and steps from one piece to the next in bytes */
    hone_value *to;
    const hone_value *from;
    size_t at, step, from_at, from_step, bytes;
    int64_t n;
} hone_pieces_move;
typedef struct hone_host_call hone_host_call;
struct hone_host_call {
    const hone_node *node; /* attributes, operand counts, name */
    hone_value *const *in; /* dense; NULL where absent. n = node->n_in, captures included. Borrowed */
    /* n = node->n_out. On entry NULL, or a tensor of the right shape to be filled. On success every wanted
       one is set. What stands here is the caller's, after a failure too; a function that replaces one drops
       it */
    hone_value **out;
    const hone_dtype *out_dtype; /* by inference; NONE where unknown */
    hone_strings *strings;       /* where new strings go; values that use them hold it */
    /* Runs body b of the node: inputs are the body's formal inputs followed by its captures; outputs are new
       references, which replace what stands there: NULL, or a tensor that may be filled where it fits. */
    hone_status (*run_body)(const hone_host_call *, int b, hone_value *const *in, int n_in, hone_value **out,
                            int n_out);
    /* Runs piece(arg, k) for every k below n, on as many threads as the run has. NULL: there are none but the
       caller's. */
    void (*spread)(const hone_host_call *, int64_t n, void (*piece)(void *arg, int64_t k), void *arg);
    /* Control flow, whose values may lie on a device. A tensor in the memory where `like` lies; and n pieces
       of so many bytes from one tensor to another, wherever both lie, done when it
       returns. NULL: all values are the host's. */
    hone_status (*make)(const hone_host_call *, const hone_value *like, hone_dtype, const int64_t *dims,
                        int rank, hone_value **out);
    hone_status (*move)(const hone_host_call *, const hone_pieces_move *);
    void *run;
    int threads;                     /* that pieces may be for; 0 or 1: one */
    _Atomic(hone_host_kept *) *kept; /* of this node in this model, or NULL: nothing can be kept */
};
typedef hone_status hone_host_fn(const hone_host_call *);
hone_host_fn *hone_host_find(const char *name); /* NULL: no such function */
/* it may ask for other threads: they should be free when it runs */
bool hone_host_spreads(hone_host_fn *);

/* Output k as a tensor of this dtype and shape: the one handed in where it fits, else a new one. */
hone_status hone_host_out(const hone_host_call *, int k, hone_dtype, const int64_t *dims, int rank,
                          hone_value **out) HONE_CHECKED;
#endif
