/* SPDX-License-Identifier: Apache-2.0
   dwconv_i8, AVX-512 VNNI: vpdpbusd adds four products of u8 (pixels) and i8 (weights) to each sum. */
#if defined(__AVX512VNNI__)
#define VW 16
#include "kernels/ref/vec.inc"
#define ISA vnni
#define ROWS 4
typedef __m512i bvec, kvec;
INLINE bvec no_bytes(void) { return _mm512_setzero_si512(); }
INLINE bvec over(uint8_t flip) { return _mm512_set1_epi8((char)flip); }
INLINE bvec flipped(bvec v, bvec flip) { return _mm512_xor_si512(v, flip); }
INLINE bvec load_bytes(const void *p) { return _mm512_loadu_si512(p); }
INLINE bvec load_some_bytes(const void *p, int64_t n) {
    return _mm512_maskz_loadu_epi8(((uint64_t)1 << n) - 1, p);
}
INLINE bvec low8(bvec a, bvec b) { return _mm512_unpacklo_epi8(a, b); }
INLINE bvec high8(bvec a, bvec b) { return _mm512_unpackhi_epi8(a, b); }
INLINE bvec low16(bvec a, bvec b) { return _mm512_unpacklo_epi16(a, b); }
INLINE bvec high16(bvec a, bvec b) { return _mm512_unpackhi_epi16(a, b); }
INLINE kvec load_k(const void *p) { return _mm512_loadu_si512(p); }
INLINE __m512i no_sums(void) { return _mm512_setzero_si512(); }
INLINE __m512i dot(__m512i s, bvec x, kvec k) { return _mm512_dpbusd_epi32(s, x, k); }
#include "kernels/ref/dwconv_i8.inc"
#else
typedef int hone_empty; /* another architecture */
#endif
