/* SPDX-License-Identifier: Apache-2.0
   match_affine: a stage's loads as strides over its indices, once numbers are known: what all other matches
   are made of. Pure functions of an instance and its numbers; they say nothing about which kernel is good. */
#ifndef HONE_LOOPS_MATCH_AFFINE_H
#define HONE_LOOPS_MATCH_AFFINE_H
#include "base/cache.h"
#include "loops/instance.h"

/* All that is looked at: an instance, the numbers of a call, and how its tensors lie. */
typedef struct {
    const hone_instance *instance;
    const hone_param *param;
    hone_strides *stride; /* of each tensor, in elements */
    const bool *constant; /* of each tensor: its data is known and will not change; NULL: none is */
    hone_cache *cache;    /* where what is made of numbers alone is kept; NULL: nowhere */
} hone_sized;

enum {
    HONE_MAX_SLOTS = 12,
    HONE_MAX_BOUNDED = 3,
    HONE_MAX_BATCH = 6
}; /* indices of a stage; of a window; of what is neither row nor column */
typedef struct {
    int64_t c, k[HONE_MAX_SLOTS];
} hone_affine; /* c + sum of k[i] * index i, i a slot: the domain's indices, then the reduced ones */
typedef struct {
    int tensor;
    hone_affine at; /* in elements */
    int n_bounded;  /* subscripts that may be outside: there the value is 0, or the factor's zero point */
    hone_affine bounded[HONE_MAX_BOUNDED];
    int64_t size[HONE_MAX_BOUNDED]; /* inside: 0 <= bounded < size */
} hone_affine_load;
typedef struct {
    int n_domain, n, over; /* slot of the over index: its extent counts as 1, its value is given at run; -1 */
    int32_t id[HONE_MAX_SLOTS];
    int dim[HONE_MAX_SLOTS]; /* a domain slot's place in the stage's own order */
    int64_t extent[HONE_MAX_SLOTS];
    bool injective;    /* no two values meet in the target */
    bool begun;        /* what step 0 reads for h[t - 1] is the caller's business */
    hone_cache *cache; /* the call's, where tables are kept; or NULL */
} hone_slots_of;

/* The domain is walked as the target of stage `last` lies in memory: that of the stage itself, or of the one
 * that follows it. */
bool hone_affine_slots(const hone_sized *, int stage, int last, hone_slots_of *out);
bool hone_affine_expr(const hone_sized *, const hone_slots_of *, int32_t x, hone_affine *out);
/* A load with affine subscripts that goes into a sum: of f32, 0 outside if it can be outside; or of 8 bits,
   outside what `zero` (-1: 0) is; or into a largest value: of f32, -inf outside, or of 8 bits, the least of
   its type outside. In a recurrence, h[t - 1] else h0 is two loads: `first` is what step 0 reads (tensor -1:
   the same). */
typedef enum {
    HONE_AFFINE_SUM,
    HONE_AFFINE_BYTES,
    HONE_AFFINE_MAX,
    HONE_AFFINE_FACTOR, /* SUM; constants may be f16 or bf16 */
    HONE_AFFINE_WHOLE   /* BYTES; or of 16 bits */
} hone_affine_into;
bool hone_affine_of_load(const hone_sized *, const hone_slots_of *, int32_t x, hone_affine_into, int32_t zero,
                         hone_affine_load *out, hone_affine_load *first);
/* Is x what a load of `into` is outside, so that it adds nothing to a sum, or is never the largest? zero: the
   zero point of bytes; -1: there is none. */
bool hone_affine_is_nothing(const hone_instance *, int32_t x, hone_dtype, hone_affine_into, int32_t zero);
/* The offset of a load that is never outside; false: it is another kind of load. */
bool hone_affine_inside(const hone_sized *, const hone_slots_of *, int32_t x, hone_affine *out);
/* *to += step * by. False: too far for any memory. */
bool hone_affine_move(const hone_slots_of *, const hone_affine *by, int64_t step, hone_affine *to);
void hone_affine_range(const hone_slots_of *, const hone_affine *, int64_t *lo, int64_t *hi);
/* Offset of every flattened position of a group. NULL: no memory. Kept on the cache: other numbers of batches
 * need the same one. */
int64_t *hone_affine_table(hone_arena *, const hone_slots_of *, const int *slot, int n, const hone_affine *);
#endif
