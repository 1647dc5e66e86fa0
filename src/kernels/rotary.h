/* SPDX-License-Identifier: Apache-2.0
   rotary: one token's heads, whose pairs of elements turn by the angles of its position. Pure arithmetic.

        y[first of pair k]   =  x[first] * cosine[k]  -  x[second] * sine[k]
        y[second of pair k]  =  x[second] * cosine[k]  +  x[first] * sine[k]        k < pairs, each head

   The angles are the same for all heads, which lie anywhere, evenly. y may be x where it lies as x does. */
#ifndef HONE_KERNELS_ROTARY_H
#define HONE_KERNELS_ROTARY_H
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t heads, pairs;
    ptrdiff_t x_head, y_head;   /* from one head to the next */
    ptrdiff_t x_apart, y_apart; /* halves: from the first of a pair to the second */
} hone_rotary_shape;
typedef void hone_rotary_fn(const hone_rotary_shape *, const float *x, const float *cosine, const float *sine,
                            float *y);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_rotary_fn *halves, *neighbours; /* the firsts in a row, and the seconds; or a pair side by side */
} hone_rotary;
extern const hone_rotary hone_rotary_list[]; /* slowest first; ends with a NULL name */
const hone_rotary *hone_rotary_best(void);
#endif
