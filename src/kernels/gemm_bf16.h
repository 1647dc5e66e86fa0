/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16: micro-kernels of matrix multiplication whose factors are bf16 and whose sums are f32. Pure arithmetic, as gemm.h: who rounds what to bf16, and when,
   belongs to the tactic that calls (device/cpu/contract_half.c).

        A in rows:    a[i * a_step + p] = A[i, p]
        panel of B:   b[(p / group * nr + j) * group + p % group] = B[p, j]      group values of K side by side, as dot-product instructions take them
        c[i * c_step + j]  =  (more: c[i * c_step + j])  +  sum over p of A[i, p] * B[p, j],     i < m, j < nr

   k is a multiple of `deep` and m of `rows`: callers pad with zeros. Products are exact in f32; sums are rounded as the machine likes (in pairs, to odd), and
   numbers below the smallest normal one (2^-126) may count as zero. NaN and infinity are what they are in f32. */
#ifndef HONE_KERNELS_GEMM_BF16_H
#define HONE_KERNELS_GEMM_BF16_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef void hone_gemm_bf16_fn(int64_t m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c, ptrdiff_t c_step,
                               bool more);
/* n floats to the nearest bf16, ties to even; NaN stays NaN */
typedef void hone_narrow_bf16_fn(const float *x, uint16_t *y, int64_t n);
typedef struct {
    const char *name; /* "hone_gemm_bf16__amx" */
    uint32_t cpu;     /* HONE_CPU_* bits it needs */
    int rows, nr, group, deep;
    hone_gemm_bf16_fn *run;
    hone_narrow_bf16_fn *narrow;
    void (*begin)(void), (*end)(void); /* around runs, on the same thread: what the unit needs to be set up. NULL: nothing */
} hone_gemm_bf16;
extern const hone_gemm_bf16 *const hone_gemm_bf16_list[]; /* slowest first; ends with NULL */
const hone_gemm_bf16 *hone_gemm_bf16_best(void);
#endif
