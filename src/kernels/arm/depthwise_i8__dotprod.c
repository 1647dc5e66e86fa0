/* SPDX-License-Identifier: Apache-2.0
   depthwise_i8, NEON with dot products: sdot adds four products of i8 and i8 to each of four sums. */
#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

#define VW 4
#include "kernels/ref/vec.inc"
#define ISA dotprod
#define ROWS 4
typedef int8x16_t bvec, kvec;
INLINE bvec no_bytes(void) { return vdupq_n_s8(0); }
INLINE bvec over(uint8_t flip) { return vdupq_n_s8((int8_t)flip); }
INLINE bvec flipped(bvec v, bvec flip) { return veorq_s8(v, flip); }
INLINE bvec load_bytes(const void *p) { return vld1q_s8(p); }
INLINE bvec load_some_bytes(const void *p, int64_t n) {
    int8_t some[16] = {0};
    memcpy(some, p, (size_t)n);
    return vld1q_s8(some);
}
INLINE bvec low8(bvec a, bvec b) { return vzip1q_s8(a, b); }
INLINE bvec high8(bvec a, bvec b) { return vzip2q_s8(a, b); }
#define PAIRS(f, a, b) vreinterpretq_s8_s16(f(vreinterpretq_s16_s8(a), vreinterpretq_s16_s8(b)))
INLINE bvec low16(bvec a, bvec b) { return PAIRS(vzip1q_s16, a, b); }
INLINE bvec high16(bvec a, bvec b) { return PAIRS(vzip2q_s16, a, b); }
INLINE kvec load_k(const int8_t *p) { return vld1q_s8(p); }
typedef int32_t sums_of_four __attribute__((vector_size(16)));
INLINE sums_of_four no_sums(void) { return (sums_of_four){0}; }
INLINE sums_of_four dot(sums_of_four s, bvec x, kvec k) { return (sums_of_four)vdotq_s32((int32x4_t)s, x, k); }
#include "kernels/ref/depthwise_i8.inc"
#else
typedef int hone_empty; /* another architecture */
#endif
