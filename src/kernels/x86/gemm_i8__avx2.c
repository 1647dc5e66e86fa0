/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, AVX2: no instruction adds four byte products without saturating on the way, so bytes are widened
   to 16 bits, even places and odd places apart, and added in pairs. */
#if defined(__AVX2__)
#include "kernels/gemm.h"

#define VW 8
#include "kernels/ref/vec.inc"
#define MR 4
#define NR 16
#define ISA avx2
#define UNSIGNED 1
typedef __m256i ivec;
typedef struct {
    __m256i even, odd;
} bvec;
typedef bvec avec;
INLINE ivec zero_sums(void) { return _mm256_setzero_si256(); }
INLINE bvec widened(__m256i v, bool is_signed) {
    return is_signed ? (bvec){_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)}
                     : (bvec){_mm256_and_si256(v, _mm256_set1_epi16(255)), _mm256_srli_epi16(v, 8)};
}
INLINE bvec load_b(const uint8_t *p, bool u) {
    return widened(_mm256_loadu_si256((const __m256i *)(const void *)p), u);
}
INLINE avec load_a(const int8_t *p, bool u) {
    int32_t four;
    memcpy(&four, p, 4);
    return widened(_mm256_set1_epi32(four), !u);
}
INLINE ivec dot(ivec s, bvec b, avec a, bool u) {
    (void)u;
    return _mm256_add_epi32(
        s, _mm256_add_epi32(_mm256_madd_epi16(b.even, a.even), _mm256_madd_epi16(b.odd, a.odd)));
}
INLINE void store_sums(int32_t *p, ivec s) { _mm256_storeu_si256((__m256i *)(void *)p, s); }
#include "kernels/ref/gemm_i8.inc"
#else
typedef int hone_empty; /* another architecture */
#endif
