/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, NEON with dot products: sdot adds four products of i8 and i8 to each of four sums. */
#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

#include "kernels/gemm.h"

#define VW 4
#include "kernels/ref/vec.inc"
#define MR 8
#define NR 12
#define ISA dotprod
#define UNSIGNED 0
typedef int32x4_t ivec;
typedef int8x16_t bvec, avec;
INLINE ivec zero_sums(void) { return vdupq_n_s32(0); }
INLINE bvec load_b(const uint8_t *p, bool u) { return (void)u, vld1q_s8((const int8_t *)p); }
INLINE avec load_a(const int8_t *p, bool u) {
    (void)u;
    int32_t four;
    memcpy(&four, p, 4);
    return vreinterpretq_s8_s32(vdupq_n_s32(four));
}
INLINE ivec dot(ivec s, bvec b, avec a, bool u) { return (void)u, vdotq_s32(s, b, a); }
INLINE void store_sums(int32_t *p, ivec s) { vst1q_s32(p, s); }
#include "kernels/ref/gemm_i8.inc"
#else
typedef int hone_empty; /* another architecture */
#endif
