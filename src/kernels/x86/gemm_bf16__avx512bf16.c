/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, AVX512-BF16: vdpbf16ps adds two products to each sum. 32 registers: 28 sums, 2 of B, one of A.
   Empty on other architectures. */
#if defined(__x86_64__)
#include "base/thread.h"
#include "kernels/gemm_half.h"

#define VW 16
#include "kernels/ref/vec.inc"
#include "kernels/x86/narrow_bf16.inc"
#define MR 14
#define ROWS 1
enum { NR = 32, NV = NR / VW, PAIR = 2 };
INLINE bool tile(int m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c,
                 ptrdiff_t c_step, bool more) {
    vec s[MR][NV];
    FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < NV; j++) s[i][j] =
        more ? load(c + i * c_step + j * VW) : (vec){0};
    for (int64_t p = 0; p < k; p += PAIR, b += PAIR * NR) {
        __m512i bv[NV];
        FULL for (int j = 0; j < NV; j++) bv[j] = _mm512_loadu_si512(b + PAIR * j * VW);
        FULL for (int i = 0; i < m; i++) {
            int32_t two;
            memcpy(&two, a + i * a_step + p, sizeof two);
            const __m512i av = _mm512_set1_epi32(two);
            FULL for (int j = 0; j < NV; j++) s[i][j] =
                (vec)_mm512_dpbf16_ps((__m512)s[i][j], (__m512bh)bv[j], (__m512bh)av);
        }
    }
    FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < NV; j++)
        store(c + i * c_step + j * VW, s[i][j]);
    return true;
}
#define TILE tile
#define RUN run
#include "kernels/ref/gemm_half.inc"
extern const hone_gemm_half hone_gemm_bf16__avx512bf16;
const hone_gemm_half hone_gemm_bf16__avx512bf16 = {"hone_gemm_bf16__avx512bf16",
                                                   HONE_DTYPE_BF16,
                                                   HONE_CPU_AVX512 | HONE_CPU_AVX512BF16,
                                                   ROWS,
                                                   NR,
                                                   PAIR,
                                                   PAIR,
                                                   1,
                                                   HONE_DTYPE_F32,
                                                   "by AVX512-BF16, sums f32",
                                                   run,
                                                   narrow,
                                                   NULL,
                                                   0,
                                                   NULL,
                                                   NULL,
                                                   0,
                                                   NULL,
                                                   NULL};
#else
typedef int hone_gemm_bf16__avx512bf16_not_here;
#endif
