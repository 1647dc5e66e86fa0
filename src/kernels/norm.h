/* SPDX-License-Identifier: Apache-2.0
   norm: rows brought to mean 0 (or left where they are) and variance 1, scaled and shifted. Pure arithmetic
   on rows, each by itself.

        m     =  sum x[i] / n, or 0
        v     =  sum (x[i] - m)^2 / n
        y[i]  =  (x[i] - m) / sqrt(v + epsilon) * scale[i]  +  shift[i] (where given)

   A row is read three times (twice where m is 0), the first time from wherever it lies. Sums go in lanes: an
   order that n alone decides. y may be x. Row i of m begins at x[i * x_step], and goes to y[i * y_step]. */
#ifndef HONE_KERNELS_NORM_H
#define HONE_KERNELS_NORM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void hone_norm_rows_fn(int64_t m, int64_t n, const float *x, ptrdiff_t x_step, bool centred,
                               float epsilon, const float *scale, const float *shift, float *y,
                               ptrdiff_t y_step);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_norm_rows_fn *rows;
} hone_norm;
extern const hone_norm hone_norm_list[]; /* slowest first; ends with a NULL name */
const hone_norm *hone_norm_best(void);
#endif
