/* SPDX-License-Identifier: Apache-2.0
   gemm_half: micro-kernels of matrix multiplication whose factors are bf16 or f16, with sums of f32. Pure
   arithmetic, as gemm.h: who rounds what to a half, and when, belongs to the tactic that calls
   (device/cpu/contract_half.c).

        A in rows:    a[i * a_step + p] = A[i, p]
        panel of B:   b[(p / group * nr + j) * group + p % group] = B[p, j]    group values of K side by side,
                                                                               as dot products take them
        c[i * c_step + j]  =  (more: c[i * c_step + j])  +  sum over p of A[i, p] * B[p, j],     i < m, j < nr

   k is a multiple of `deep` and m of `mr`, neither is 0: callers pad with zeros. Where a kernel has
   `pack_a`, rows of A do not lie as they are but in blocks, one after another, each of as many of the rows
   that are left as hone_gemm_half_high says and as `pack_a` brings it there; a_step then says nothing.

   bf16: products are exact in f32; sums are rounded as the machine likes (in pairs, to odd), and numbers
   below the smallest normal one (2^-126) may count as zero. NaN and infinity are what they are in f32.
   f16: either the same, or products are added in f16 over HONE_HALF_SHORT values of K at most, from p = 0 on,
   and these short sums in f32: `sums` says which. A short sum errs by at most SHORT * 2^-11 of its terms'
   magnitudes. What is beyond 65504 is infinite, a factor or a short sum: `run` returns false where any of
   the sums is not finite, and whoever calls computes such rows in f32. */
#ifndef HONE_KERNELS_GEMM_HALF_H
#define HONE_KERNELS_GEMM_HALF_H
#include "base/dtype.h"

enum { HONE_HALF_SHORT = 64 };
/* bf16: true, whatever the sums are */
typedef bool hone_gemm_half_fn(int64_t m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b,
                               float *c, ptrdiff_t c_step, bool more);
/* The same of a window over images: K is `taps` pieces of k values, piece t of row i begins at a[at[t] + i
   * a_step]. So rows that share pixels are stored once. */
typedef bool hone_gemm_half_window_fn(int64_t m, int64_t taps, const int64_t *at, int64_t k,
                                      const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c,
                                      ptrdiff_t c_step, bool more);
/* n floats to the nearest half, ties to even; NaN stays NaN; beyond the largest: infinity */
typedef void hone_narrow_fn(const float *x, uint16_t *y, int64_t n);
/* m rows of k values, `step` apart, to a block of m * k */
typedef void hone_lay_fn(int64_t m, int64_t k, const uint16_t *from, ptrdiff_t step, uint16_t *to);
/* As a run, the last one over K (c: sums of those before, where there are more), which finishes its rows
   itself: to ends->c, with bias_n, residual and clamp, as gemm.h has it. ends->m: how many
   rows there are; m is the next multiple of `rows`. */
struct hone_gemm_args;
typedef void hone_gemm_half_finish_fn(int64_t m, int64_t k, const uint16_t *a, const uint16_t *b, float *c,
                                      ptrdiff_t c_step, bool more, const struct hone_gemm_args *ends);
typedef struct {
    const char *name; /* "hone_gemm_bf16__amx" */
    hone_dtype dtype; /* of factors: BF16 or F16 */
    uint32_t cpu;     /* HONE_CPU_* bits it needs */
    int mr, nr, group, deep;
    int times;       /* products a second, about, times those of f32 */
    hone_dtype sums; /* F32; or F16: short ones */
    const char *how; /* for people: by what, and in what it adds */
    hone_gemm_half_fn *run;
    hone_narrow_fn *narrow;
    hone_gemm_half_window_fn *window; /* or NULL */
    /* with window: channels that pieces of an image best have, a multiple of deep */
    int channel_block;
    /* around runs, on the same thread: what the unit needs to be set up. NULL: nothing. Where k is less than
       `deep`, runs are of one step, and only the first k values of a row, in whole groups, are read. Where m
       is less than `rows`, runs are of that many rows, and only the first m are read and written */
    void (*begin)(int64_t m, int64_t k), (*end)(void);
    int m_block;                            /* with lay: the most rows of a block */
    hone_lay_fn *pack_a;                    /* or NULL: rows as they are */
    hone_gemm_half_finish_fn *run_epilogue; /* or NULL. Only with lay */
} hone_gemm_half;
/* The next block's rows, of m that are left: few cost as much as many, so all are about as high. */
static inline int64_t hone_gemm_half_high(int64_t most, int64_t rows, int64_t m) {
    const int64_t passes = (m + most - 1) / most;
    return (m / rows + passes - 1) / passes * rows;
}
extern const hone_gemm_half *const hone_gemm_half_list[]; /* slowest first of each dtype; ends with NULL */
/* the last row of that dtype that this CPU (as masked) can run */
const hone_gemm_half *hone_gemm_half_best(hone_dtype);
#endif
