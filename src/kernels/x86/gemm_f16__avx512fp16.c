/* SPDX-License-Identifier: Apache-2.0
   gemm_f16, AVX512-FP16: vfmadd231ph has 32 products and sums, twice those of f32; sums of f16 are short, as
   gemm_half.h says. 32 registers: 24 sums (12 rows of 64 columns), 2 of B; A from memory. Empty on other
   architectures. */
#if defined(__AVX512FP16__)
#include "base/thread.h"
#include "kernels/gemm_half.h"

#define VW 16
#include "kernels/ref/vec.inc"
#include "kernels/ref/half.inc"
#define MR 12
#define ROWS 1
enum { LANES = 32, NR = 64, NV = NR / LANES };
INLINE __m512h load_h(const uint16_t *p) { return _mm512_castsi512_ph(_mm512_loadu_si512(p)); }
/* s + b * *a. The compiler would load *a into every lane by an instruction of its own, which for 16 bits
   takes a unit that multiplies: two thirds of the rate, measured on a Xeon with AMX. As part of the
   multiplication it costs nothing. */
INLINE __m512h times_each(__m512h s, __m512h b, const uint16_t *a) {
    __asm__("vfmadd231ph %2%{1to32%}, %1, %0" : "+v"(s) : "v"(b), "m"(*a));
    return s;
}
INLINE bool tile(int m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c,
                 ptrdiff_t c_step, bool more) {
    vec zero = {0}; /* and NaN where a sum is not finite */
    int64_t k0 = 0;
    do {
        const int64_t end = k - k0 < HONE_HALF_SHORT ? k : k0 + HONE_HALF_SHORT;
        const bool add = more || k0;
        __m512h s[MR][NV];
        FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < NV; j++) s[i][j] = _mm512_setzero_ph();
        for (int64_t p = k0; p < end; p++, b += NR) {
            __m512h bv[NV];
            FULL for (int j = 0; j < NV; j++) bv[j] = load_h(b + j * LANES);
            FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < NV; j++) s[i][j] =
                times_each(s[i][j], bv[j], a + i * a_step + p);
        }
        k0 = end;
        FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < NV; j++) {
            const __m512i h = _mm512_castph_si512(s[i][j]);
            float *to = c + i * c_step + j * LANES;
            FULL for (int half = 0; half < 2; half++) {
                const vec part = (vec)_mm512_cvtph_ps(half ? _mm512_extracti64x4_epi64(h, 1)
                                                           : _mm512_castsi512_si256(h)),
                          sum = add ? load(to + half * VW) + part : part;
                store(to + half * VW, sum);
                if (k0 == k) zero += sum * 0.0f;
            }
        }
    } while (k0 < k);
    return _mm512_reduce_add_ps((__m512)zero) == 0;
}
#define TILE tile
#define RUN run
#include "kernels/ref/gemm_half.inc"
extern const hone_gemm_half hone_gemm_f16__avx512fp16;
const hone_gemm_half hone_gemm_f16__avx512fp16 = {
    "hone_gemm_f16__avx512fp16",
    HONE_DTYPE_F16,
    HONE_CPU_AVX512 | HONE_CPU_AVX512FP16,
    ROWS,
    NR,
    1,
    1,
    2,
    HONE_DTYPE_F16,
    "by AVX512-FP16, up to 64 products added in f16, these sums in f32",
    run,
    narrow_f16,
    NULL,
    0,
    NULL,
    NULL,
    0,
    NULL,
    NULL};
#else
typedef int hone_gemm_f16__avx512fp16_not_here;
#endif
