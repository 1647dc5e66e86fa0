/* SPDX-License-Identifier: Apache-2.0
   pool: the largest of several rows, column by column. Pure arithmetic: which rows, and where windows hang over, is the caller's (device/cpu/pool.c).

        y[j] = max over t < taps of x[t][j],    j < n, taps > 0,    as the language's max: a NaN wins, and 0 is larger than -0 */
#ifndef HONE_KERNELS_POOL_H
#define HONE_KERNELS_POOL_H
#include <stdint.h>

typedef void hone_pool_fn(const float *const *x, int64_t taps, int64_t n, float *y);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_pool_fn *max;
} hone_pool;
extern const hone_pool hone_pool_list[]; /* slowest first; ends with a NULL name */
const hone_pool *hone_pool_best(void);
#endif
