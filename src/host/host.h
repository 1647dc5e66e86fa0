/* SPDX-License-Identifier: Apache-2.0
   host: the ops that are not loops over indices, as plain C on values: control flow, sequences, optionals, strings, NonZero, TopK, …

   A row says `host NAME` or `control NAME`; NAME is looked up here once, when a model is compiled. A host function knows no plan and no
   thread; bodies run through a function handed in. */
#ifndef HONE_HOST_HOST_H
#define HONE_HOST_HOST_H
#include "ir/graph.h"

typedef struct hone_host_call hone_host_call;
struct hone_host_call {
    const hone_node *node;       /* attributes, operand counts, name */
    hone_value *const *in;       /* dense; NULL where absent. n = node->n_in, captures included. Borrowed */
    hone_value **out;            /* n = node->n_out. On entry NULL, or a tensor of the right shape to be filled. On success every wanted one
                                  is set. What stands here is the caller's, after a failure too; a function that replaces one drops it */
    const hone_dtype *out_dtype; /* by inference; NONE where unknown */
    hone_strings *strings;       /* where new strings go; values that use them hold it */
    /* Runs body b of the node: inputs are the body's formal inputs followed by its captures; outputs are new references. */
    hone_status (*run_body)(const hone_host_call *, int b, hone_value *const *in, int n_in, hone_value **out, int n_out);
    void *run;
};
typedef hone_status hone_host_fn(const hone_host_call *);
hone_host_fn *hone_host_find(const char *name); /* NULL: no such function */

/* Output k as a tensor of this dtype and shape: the one handed in where it fits, else a new one. */
hone_status hone_host_out(const hone_host_call *, int k, hone_dtype, const int64_t *dims, int rank, hone_value **out) HONE_CHECKED;
#endif
