/* SPDX-License-Identifier: Apache-2.0
   evaluate: one node on constants, now. Private to passes. */
#ifndef HONE_PASSES_EVALUATE_H
#define HONE_PASSES_EVALUATE_H
#include "ir/infer.h"

typedef struct {
    hone_arena *arena; /* for the call's own needs */
    hone_instances *instances;
    double work;        /* scalar operations that may still be spent; what is spent is taken off */
    double most_work;   /* for one node */
    int64_t most_bytes; /* of one output, or of one temporary */
} hone_evaluating;
/* All wanted outputs, as new references, from inputs that are all there as tensors. False, and nothing in
   `out`: it is too much work, or something is not as it should be; then the node stays, and whoever runs it
   will say what is wrong. Not for control flow. */
bool hone_evaluate(hone_evaluating *, const hone_graph *, const hone_node *, hone_value **out /* n_out */);
/* The small whole numbers that infer.c found, as a tensor; NULL where they are not all numbers, or the type
   is one in which they could have wrapped. */
hone_value *hone_evaluate_contents(const hone_fact *);
#endif
