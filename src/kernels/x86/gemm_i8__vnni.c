/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, AVX-512 VNNI: vpdpbusd adds four products of u8 (B) and i8 (A, read from memory into every lane)
   to each sum. */
#if defined(__AVX512VNNI__)
#include "kernels/gemm.h"

#define VW 16
#include "kernels/ref/vec.inc"
#define MR 14
#define NR 32
#define ISA vnni
#define UNSIGNED 1
typedef __m512i ivec, bvec, avec;
INLINE ivec zero_sums(void) { return _mm512_setzero_si512(); }
INLINE bvec load_b(const uint8_t *p, bool u) { return (void)u, _mm512_loadu_si512(p); }
INLINE avec load_a(const int8_t *p, bool u) {
    (void)u;
    int32_t four;
    memcpy(&four, p, 4);
    return _mm512_set1_epi32(four);
}
INLINE ivec dot(ivec s, bvec b, avec a, bool u) {
    return u ? _mm512_dpbusd_epi32(s, a, b) : _mm512_dpbusd_epi32(s, b, a);
}
INLINE void store_sums(int32_t *p, ivec s) { _mm512_storeu_si512(p, s); }
#include "kernels/ref/gemm_i8.inc"
#else
typedef int hone_empty; /* another architecture */
#endif
