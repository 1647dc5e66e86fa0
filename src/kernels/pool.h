/* SPDX-License-Identifier: Apache-2.0
   pool: one row of several, column by column: the largest; a weighted sum; the sum of many; and the sum of
   some places of one row. Pure arithmetic: which rows, and where windows hang over, is the caller's
   (device/cpu/pool.c, resample_run.c). Taps are more than none.

        max    y[i*y_step + j] = max over t < taps of x[t][i*step + j],    j < n, i < many
               (as the language's max: a NaN wins, and 0 is larger than -0)
        max_bf16  the same of bf16
        max_u8, max_i8  the same of bytes
        blend  y[j] = sum over t < taps of w[t] * x[t][j]
        pick   y[j] = sum over t < taps of w[t * n + j] * x[at[t * n + j]];    w NULL: of one tap, as it is
        add    y[j] += sum over t < rows of x[t * step + j]
        sum    y[j] = sum over t < taps of x[t][j],    of integers, in i32 (it wraps)
        blend  of integers: of f32(x[t][j])
        spread y[i*n + j] = sum over t < taps of w[t*many + i] * x[at[t*many + i] + j],    i < many, j < n
        settle y[j] = clamp(round half even(x[j] * times + plus) + zero, low, high) as integers; between low
        and high are less than 2^18 */
#ifndef HONE_KERNELS_POOL_H
#define HONE_KERNELS_POOL_H
#include <stddef.h>
#include <stdint.h>

typedef void hone_pool_fn(const float *const *x, int64_t taps, int64_t n, int64_t many, ptrdiff_t step,
                          ptrdiff_t y_step, float *y);
typedef void hone_pool_bf16_fn(const uint16_t *const *x, int64_t taps, int64_t n, int64_t many,
                               ptrdiff_t step, ptrdiff_t y_step, uint16_t *y);
typedef void hone_pool_bytes_fn(const uint8_t *const *x, int64_t taps, int64_t n, int64_t many,
                                ptrdiff_t step, ptrdiff_t y_step, uint8_t *y);
typedef void hone_blend_fn(const float *const *x, const float *w, int64_t taps, int64_t n, float *y);
typedef void hone_add_fn(const float *x, int64_t rows, ptrdiff_t step, int64_t n, float *y);
typedef void hone_sum_fn(const void *const *x, int64_t taps, int64_t n, int32_t *y);
typedef void hone_blend_whole_fn(const void *const *x, const float *w, int64_t taps, int64_t n, float *y);
typedef void hone_pick_fn(const float *x, const int32_t *at, const float *w, int64_t taps, int64_t n,
                          float *y);
typedef void hone_spread_fn(const float *x, const int32_t *at, const float *w, int64_t taps, int64_t many,
                            int64_t n, float *y);
typedef struct {
    float times, plus, zero, low, high;
} hone_settle_row;
typedef void hone_settle_whole_fn(const hone_settle_row *, const float *x, int64_t n, void *y);
/* what integers are there */
typedef enum { HONE_WHOLE_u8, HONE_WHOLE_i8, HONE_WHOLE_u16, HONE_WHOLE_i16, HONE_WHOLES } hone_whole;
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_pool_fn *max;
    hone_pool_bf16_fn *max_bf16;
    hone_pool_bytes_fn *max_u8, *max_i8;
    hone_blend_fn *blend;
    hone_pick_fn *pick;
    hone_add_fn *add;
    hone_sum_fn *const *sum; /* by hone_whole */
    hone_blend_whole_fn *const *blend_whole;
    hone_settle_whole_fn *const *settle;
    hone_spread_fn *spread;
} hone_pool;
extern const hone_pool hone_pool_list[]; /* slowest first; ends with a NULL name */
const hone_pool *hone_pool_best(void);
#endif
