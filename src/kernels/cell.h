/* SPDX-License-Identifier: Apache-2.0
   cell: the end of a step of a recurrent network, all of it in one pass over a row of n values. The sums
   before it are gemm's.

   s is the logistic function 1 / (1 + e^-x), h' and c' are the state before the step.

        lstm     c = s(f) c' + s(i) tanh(g)                   h = s(o) tanh(c)            c may be c'
        gru      h = (1 - s(z)) tanh(u) + s(z) h'             u = x + s(r) y, or y where there is no r
        reset    to = s(r) h'

   Each function is within 4 ulp, as in activate.h; not bit for bit what the ops' rows say. */
#ifndef HONE_KERNELS_CELL_H
#define HONE_KERNELS_CELL_H
#include <stdint.h>

typedef void hone_lstm_row_fn(int64_t n, const float *i, const float *o, const float *f, const float *g,
                              const float *before, float *c, float *h);
typedef void hone_gru_row_fn(int64_t n, const float *z, const float *r, const float *x, const float *y,
                             const float *before, float *h);
typedef void hone_reset_row_fn(int64_t n, const float *r, const float *before, float *to);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_lstm_row_fn *lstm;
    hone_gru_row_fn *gru;
    hone_reset_row_fn *reset;
} hone_cell;
extern const hone_cell hone_cell_list[]; /* slowest first; ends with a NULL name */
const hone_cell *hone_cell_best(void);
#endif
