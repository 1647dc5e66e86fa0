/* SPDX-License-Identifier: Apache-2.0
   softmax: a row of scores as what softmax divides by its sum, and a row times a number. Pure arithmetic on
   one row.

        row   w[i] = row[i] * alpha + mask[i] (where given);  m = max(max w, least);
              row[i] = e^(w[i] - m);  the sum of all is returned
        exps  the same sum of a row that stays as it is; *top is m, the largest of it
        columns  the same of `high` rows that lie transposed, row i at x[i], x[high + i], …, and so does
                 the mask, which begins with place `plain`; not scaled. Sums to sum[i]
        over  row[i][j] = row[i][j] / max(sum[i], floor), i < m, j < n; a sum that is NaN stays so

   e^x is within 1 ulp (1.2 without fused multiply-add, 1.3 on NEON), and 0 or subnormal where it would be
   below the smallest normal number (2^-126): beside a largest term of 1 that is nothing, and what a mask
   hides with -inf is 0 exactly. A row with a NaN has NaN in its place and as its sum. Sums go in lanes: an
   order that n alone decides. */
#ifndef HONE_KERNELS_SOFTMAX_H
#define HONE_KERNELS_SOFTMAX_H
#include <stdint.h>

typedef float hone_softmax_row_fn(float *row, const float *mask, int64_t n, float alpha, float least);
typedef float hone_exps_row_fn(const float *row, int64_t n, float *top);
typedef void hone_softmax_columns_fn(float *x, const float *mask, int64_t plain, int64_t n, int high,
                                     float least, float *sum);
typedef void hone_softmax_over_fn(float *const *row, int64_t m, int64_t n, const float *sum, float floor);
typedef void hone_times_row_fn(float *row, int64_t n, float by);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_softmax_row_fn *row;
    hone_times_row_fn *times;
    hone_exps_row_fn *exps;
    hone_softmax_columns_fn *columns;
    hone_softmax_over_fn *over;
} hone_softmax;
extern const hone_softmax hone_softmax_list[]; /* slowest first; ends with a NULL name */
const hone_softmax *hone_softmax_best(void);
#endif
