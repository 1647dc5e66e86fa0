/* SPDX-License-Identifier: Apache-2.0
   epilogue: what most often follows a sum, in one pass over a finished row: bias, residual, clamp, and
   narrowing to 8 bits.

        v = acc[i] + bias;  v = v + residual[i] (if given);  v = min(max(v, lo), hi)
        f32:  out[i] = v
        u8, i8, u16, i16:  out[i] = q = clamp(round half even(v / scale) + zero, low, high)
        back: out[i] = (q - back_zero) * back_scale, in f32: quantized and read back at once

   A sum of integers:  v = f32(acc[i] + bias) * scale, then as u8, i8, u16, i16

   The same operations in the same order as the program's own, so the same bits. Nothing to add: bias is -0.0;
   no clamp: lo -inf, hi +inf. NaN stays NaN in f32 and becomes 0 in integers. */
#ifndef HONE_KERNELS_EPILOGUE_H
#define HONE_KERNELS_EPILOGUE_H
#include <stdint.h>

#include "kernels/activate.h"
#include "kernels/requantize.h"

typedef struct {
    float bias, lo, hi, scale, zero, low, high, back_zero, back_scale;
} hone_epilogue_row;
typedef void hone_epilogue_fn(const hone_epilogue_row *, const float *acc, const float *residual, void *out,
                              int64_t n);
typedef struct {
    int32_t bias;
    float scale, zero, low, high;
} hone_requantize_by_row;
typedef void hone_requantize_by_row_fn(const hone_requantize_by_row *, const int32_t *acc, void *out,
                                       int64_t n);
/* y[i] = ((x[i] ^ over) - zero) * scale, and integers in f32 as i32; y of settle may be x */
typedef void hone_widen_fn(const uint8_t *x, uint8_t over, float zero, float scale, float *y, int64_t n);
typedef void hone_settle_fn(const float *x, int32_t *y, int64_t n);
/* A row of bytes, seen as floats by widen; or, where bytes is NULL, floats. */
typedef struct {
    const uint8_t *bytes;
    uint8_t over;
    float zero, scale;
    const float *floats;
} hone_seen_row;
/* acc and residual so seen, nothing in between: out as f32, u8 or i8 make it of them, the bias is not read.
   False, and nothing was written: not these numbers. out may lie on the residual, element on element. */
typedef bool hone_joint_fn(const hone_epilogue_row *, const hone_seen_row *acc, const hone_seen_row *residual,
                           void *out, int64_t n);
/* Sums of integers that go on as floats, i < m, j < n:

        v = f32(sum[i*step + j] - take[j] - less[i]) * scale[j] + bias[j]
        v = f(v);  v = v * times + plus (if then);  v = v + residual[i][j];  v = v * each[j]
        out[i][j]  =  min(max(v, lo), hi) in f32, or q of that, as above, in 8 bits

   The same operations in the same order as the program's own, so the same bits, but for f, which is within
   what activate.h says. NULL: no take, no less, no residual, no each; scale `by` and the end's bias in all
   columns. Rows of the residual are floats or bytes, (b ^ over - zero) * scale; out may be these rows,
   element on element. */
typedef struct {
    const int32_t *take;
    const float *scale, *bias, *each;
    float by;
    hone_activation activate; /* COUNT: none */
    float alpha, beta;        /* its numbers */
    bool then;
    float times, plus;
    struct {
        bool bytes;
        uint8_t over;
        float zero, scale;
    } residual;
    bool bytes; /* u8, or i8 where low is below 0; else floats */
    hone_epilogue_row end;
} hone_finish;
typedef void hone_finish_fn(const hone_finish *, int64_t m, int64_t n, const int32_t *sum, ptrdiff_t step,
                            const int32_t *less, const void *const *residual, void *const *out);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_epilogue_fn *f32, *u8, *i8, *u16, *i16, *back;
    /* bytes: u8, or i8 where low is below 0. NULL but for NEON and AVX-512 */
    hone_joint_fn *joint_f32, *joint_bytes;
    hone_requantize_by_row_fn *requantize_u8, *requantize_i8, *requantize_u16, *requantize_i16;
    hone_widen_fn *dequantize;
    hone_settle_fn *settle;
    hone_finish_fn *finish;
    hone_requantize_fn *requantize;
    /* row[i][from + j] = row[i][from + j] * more[i * step + j]; the numbers are not read */
    hone_then_fn *gate;
} hone_epilogue;
extern const hone_epilogue hone_epilogue_list[]; /* slowest first; ends with a NULL name */
const hone_epilogue *hone_epilogue_best(void);
#endif
