/* SPDX-License-Identifier: Apache-2.0
   activate: functions of one number that follow a sum in so many networks that rows of sums get them at once,
   while they lie in the first cache.

        row[i][from + j]  =  f(row[i][from + j]),     i < m, j < n

   Within 4 ulp of the true value for the sigmoid's argument as f32 holds it (GELU by erf, hard: 4 ulp of
   |x|), but 0 or subnormal where a sigmoid is below the smallest normal number. Not bit for bit what the op's
   row says, whose functions give every CPU the same bits: these use what the CPU has. */
#ifndef HONE_KERNELS_ACTIVATE_H
#define HONE_KERNELS_ACTIVATE_H
#include <stddef.h>
#include <stdint.h>

#include "base/activation.h"

typedef void hone_activate_fn(float *const *row, ptrdiff_t from, int m, int64_t n, float alpha, float beta);
/* The function of other rows times what is there: row[i][from + j] = row[i][from + j] * f(of[i * step +
   j]) */
typedef void hone_gate_fn(float *const *row, ptrdiff_t from, int m, int64_t n, float alpha, float beta,
                          const float *of, ptrdiff_t step);
/* What may follow: row[i][from + j] = row[i][from + j] * times + plus + more[i * step + j]. more NULL:
   nothing more. */
typedef void hone_then_fn(float *const *row, ptrdiff_t from, int m, int64_t n, float times, float plus,
                          const float *more, ptrdiff_t step);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_activate_fn *const *run; /* by activation, and so are gates */
    /* NULL but for NEON, whose products leave rows for it (device/cpu/contract_run.c) */
    hone_gate_fn *const *gate;
    /* floor: row[i][from + j] = max(row[i][from + j], plus), and a NaN stays one */
    hone_then_fn *then, *floor;
} hone_activate;
extern const hone_activate hone_activate_list[]; /* slowest first; ends with a NULL name */
const hone_activate *hone_activate_best(void);
#endif
