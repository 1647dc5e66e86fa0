/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, NEON with i8mm: usmmla multiplies two columns of eight u8 of B with two rows of eight i8 of A, and adds to a 2 by 2 block of sums.
   32 registers: 16 blocks (8 rows, 8 columns), 4 of B, one of A. Empty on other architectures. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include <arm_neon.h>

#include "kernels/gemm.h"
#define VW 4
#include "kernels/ref/vec.inc"

enum { MR = 8, NR = 8, DEEP = 8 };
hone_gemm_i8_fn hone_gemm_i8_8x8__i8mm, hone_gemm_u8_8x8__i8mm;

/* pairs: two rows each; a block of sums is [column][row], or [row][column] where A is the unsigned one (u) */
INLINE void tile(bool u, int pairs, int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c, ptrdiff_t c_stride) {
    int32x4_t s[MR / 2][NR / 2];
    FULL for (int i = 0; i < pairs; i++) FULL for (int j = 0; j < NR / 2; j++) s[i][j] = vdupq_n_s32(0);
    for (int64_t p = 0; p < groups; p += 2, a += MR * DEEP, b += NR * DEEP) {
        uint8x16_t bv[NR / 2];
        FULL for (int j = 0; j < NR / 2; j++) bv[j] = vld1q_u8(b + 2 * DEEP * j);
        FULL for (int i = 0; i < pairs; i++) {
            const int8x16_t av = vld1q_s8(a + 2 * i * DEEP);
            FULL for (int j = 0; j < NR / 2; j++) {
                if (u) s[i][j] = vusmmlaq_s32(s[i][j], vreinterpretq_u8_s8(av), vreinterpretq_s8_u8(bv[j]));
                else s[i][j] = vusmmlaq_s32(s[i][j], bv[j], av);
            }
        }
    }
    FULL for (int i = 0; i < pairs; i++) FULL for (int j = 0; j < NR / 4; j++) {
        const int32x4_t x = s[i][2 * j], y = s[i][2 * j + 1];
        const int32x4_t even = u ? vcombine_s32(vget_low_s32(x), vget_low_s32(y)) : vuzp1q_s32(x, y),
                        odd = u ? vcombine_s32(vget_high_s32(x), vget_high_s32(y)) : vuzp2q_s32(x, y);
        vst1q_s32(c + 2 * i * c_stride + 4 * j, even);
        if (2 * i + 1 < m) vst1q_s32(c + (2 * i + 1) * c_stride + 4 * j, odd);
    }
}
INLINE void heights(bool u, int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c, ptrdiff_t c_stride) {
    if (m <= 2) tile(u, 1, m, groups, a, b, c, c_stride);
    else if (m <= 4) tile(u, 2, m, groups, a, b, c, c_stride);
    else if (m <= 6) tile(u, 3, m, groups, a, b, c, c_stride);
    else tile(u, 4, m, groups, a, b, c, c_stride);
}
void hone_gemm_i8_8x8__i8mm(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c, ptrdiff_t c_stride) {
    heights(false, m, groups, a, b, c, c_stride);
}
void hone_gemm_u8_8x8__i8mm(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c, ptrdiff_t c_stride) {
    heights(true, m, groups, a, b, c, c_stride);
}
#else
typedef int hone_gemm_i8__i8mm_not_here;
#endif
