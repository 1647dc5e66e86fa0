/* SPDX-License-Identifier: Apache-2.0
   dwconv_i8, AVX2: bytes are widened to 16 bits, even places and odd places apart, and added in pairs, as
   in gemm_i8__avx2.c. */
#if defined(__AVX2__)
#define VW 8
#include "kernels/ref/vec.inc"
#define ISA avx2
#define ROWS 1
typedef __m256i bvec;
typedef struct {
    __m256i even, odd;
} kvec;
INLINE bvec no_bytes(void) { return _mm256_setzero_si256(); }
INLINE bvec over(uint8_t flip) { return _mm256_set1_epi8((char)flip); }
INLINE bvec flipped(bvec v, bvec flip) { return _mm256_xor_si256(v, flip); }
INLINE bvec load_bytes(const void *p) { return _mm256_loadu_si256(p); }
INLINE bvec load_some_bytes(const uint8_t *p, int64_t n) {
    uint8_t some[32] = {0};
    memcpy(some, p, (size_t)n);
    return load_bytes(some);
}
INLINE bvec low8(bvec a, bvec b) { return _mm256_unpacklo_epi8(a, b); }
INLINE bvec high8(bvec a, bvec b) { return _mm256_unpackhi_epi8(a, b); }
INLINE bvec low16(bvec a, bvec b) { return _mm256_unpacklo_epi16(a, b); }
INLINE bvec high16(bvec a, bvec b) { return _mm256_unpackhi_epi16(a, b); }
INLINE kvec load_k(const int8_t *p) {
    const bvec v = load_bytes(p);
    return (kvec){_mm256_srai_epi16(_mm256_slli_epi16(v, 8), 8), _mm256_srai_epi16(v, 8)};
}
INLINE __m256i no_sums(void) { return _mm256_setzero_si256(); }
INLINE __m256i dot(__m256i s, bvec x, kvec k) {
    const __m256i even = _mm256_and_si256(x, _mm256_set1_epi16(255)), odd = _mm256_srli_epi16(x, 8);
    return _mm256_add_epi32(s,
                            _mm256_add_epi32(_mm256_madd_epi16(even, k.even), _mm256_madd_epi16(odd, k.odd)));
}
#include "kernels/ref/dwconv_i8.inc"
#else
typedef int hone_empty; /* another architecture */
#endif
