/* SPDX-License-Identifier: Apache-2.0
   match_attention: scores, softmax and the weighted sum of values in the stages of an instance, whatever op
   they come from (the last index is t, a key, unless said):

        s     = sum(d) q * k                         two plain loads
        w     = anything of s at its own indices
        top   = max(t) w          m = max(top, number)
        x     = exp(w - m)
        sum   = sum(t) x          z = max(sum, number)
        o     = sum(t) x * v      y = o / z          in the domain of queries and e */
#ifndef HONE_LOOPS_MATCH_ATTENTION_H
#define HONE_LOOPS_MATCH_ATTENTION_H
#include "loops/match_affine.h"

enum { HONE_ATTENTION_STAGES = 9, HONE_ATTENTION_TEMPS = 8 };
/* Pieces of it, for tactics that take more forms than the plain one. */
const hone_x *hone_match_at(const hone_sized *, int32_t x);
const hone_x *hone_match_fn(const hone_sized *, int32_t x, hone_fn); /* a function of f32, or NULL */
/* A number of f32, constant or said by the call: 1 / sqrt(D). */
bool hone_match_f32(const hone_sized *, int32_t x, float *out);
/* A load of a temporary at the stage's own first indices, reduced ones after the domain's; `skip`: without
   the domain's last. */
bool hone_match_reads(const hone_sized *, const hone_stage *, int32_t x, int tensor, int skip);
void hone_match_slots(const hone_sized *, const hone_stage *, hone_slots_of *out); /* as they are written */
/* A load of f32 that is never outside, whatever it would be there, and none of a temporary that is never
 * made. */
bool hone_match_inside(const hone_sized *, const hone_slots_of *, int32_t x, const int *temp,
                       hone_affine *out);
/* Stages from k on, but for what loads and strides are like: temporaries in the order of stages. */
bool hone_match_attention_shaped(const hone_sized *, int k, int *temp);
bool hone_match_softmax(const hone_sized *, int k, const int *temp, float *least, float *floor);

/* The plain form: w = s * alpha (+ mask), and -inf where keys stand behind a query's place; batches, heads
 * and queries as indices of their own. */
typedef struct {
    int tensor;
    int64_t at, batch, head, token,
        one; /* in elements; one: along the head. A mask's token is a query, and its one a key */
} hone_match_rows;
typedef struct {
    hone_match_rows q, k, v, y, mask; /* mask.tensor -1: none */
    int64_t batches, heads, kv_heads, queries, keys, head_size;
    int64_t after; /* query i sees the keys t <= i + after; INT64_MAX: all */
    float alpha;
} hone_match_attention;
bool hone_match_attention_of(const hone_sized *, int stage, hone_match_attention *out);
#endif
