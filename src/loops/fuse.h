/* SPDX-License-Identifier: Apache-2.0
   fuse: several instances as one. A first part of any kind, then element-wise parts over its result: their
   last value is stored, what lies between exists only in registers. What may be fused is a rule about
   domains, not a list of op names.

   The parts' parameters are concatenated in order. Where a part's result was stored in a narrower type, the
   value keeps that rounding, so that fused equals unfused bit for bit. */
#ifndef HONE_LOOPS_FUSE_H
#define HONE_LOOPS_FUSE_H
#include "loops/instance.h"

typedef struct {
    const hone_instance *instance;
    const int *source; /* one an operand of its program: the part that makes it, or -1: from outside */
} hone_fuse_part;
typedef struct {
    int part, tensor;
} hone_fused_from;
typedef struct hone_fused {
    const hone_instance *instance; /* its IN tensors: inputs from outside; one OUT: the last part's */
    const hone_instance **part;
    int n_part;
    const int *param0; /* first parameter of each part */
    /* one a tensor of `instance`: where it comes from; TEMP of a reduction included */
    const hone_fused_from *from;
} hone_fused;
bool hone_fuse_can_begin(const hone_instance *); /* ends in one plain store of its only output */
/* element-wise, and reads this operand at its own index */
bool hone_fuse_can_follow(const hone_instance *, int operand);
bool hone_fuse_must_end(const hone_instance *); /* a saturating store, or a table: nothing may follow */
/* a table of what becomes of bytes: fast by itself, or right behind */
bool hone_fuse_looks_up(const hone_instance *);
bool hone_fuse_sums_bytes(const hone_instance *); /* a sum of integers that is stored as bytes */
/* *out NULL: they do not fit together. */
hone_status hone_fuse(hone_arena *, const hone_fuse_part *, int n, hone_fused **out) HONE_CHECKED;
#endif
