/* SPDX-License-Identifier: Apache-2.0
   box: what a step touches of one operand, as memory: runs of bytes without gaps, at nested counts and
   steps. Parts of a Concat interleave in one block, so first and last byte alone would say that they
   overlap. */
#ifndef HONE_DEVICE_BOX_H
#define HONE_DEVICE_BOX_H
#include "base/mem.h"

typedef struct {
    int64_t count, step; /* step in bytes, of either sign */
} hone_box_dim;
typedef struct {
    /* of a run; 0: nothing is touched; HONE_BOX_WHOLE: all that lies behind the base */
    int64_t bytes;
    const hone_box_dim *dim; /* n of them, the largest step first */
    int32_t n;
} hone_box;
enum { HONE_BOX_WHOLE = -1 };

/* The box of a tensor; dims that do not move and those without gaps between them are folded into the run.
   False: no memory. */
bool hone_box_make(hone_arena *, const int64_t *extent, const int64_t *stride /* in elements */, int rank,
                   int64_t item, hone_box *out);
/* The first byte, and the one after the last, from the ref's own place on. False: they do not fit 64 bits, or
   there is none. */
bool hone_box_span(const hone_box *, int64_t *first, int64_t *end);
#endif
