/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, NEON with i8mm: usmmla multiplies two columns of eight u8 of B with two rows of eight i8 of A, and adds to a 2 by 2 block of sums.
   32 registers: 16 blocks (8 rows, 8 columns), 4 of B, one of A. Empty on other architectures. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include <arm_neon.h>

#include "kernels/gemm.h"
#define VW 4
#include "kernels/ref/levels.inc"
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
/* To bytes at once: a block of sums begins with its columns' bias, twice, and is scaled as it is; rows are told apart when they are bytes. One operation of all blocks after
   another (levels.inc says why). */
typedef struct {
    int32_t bias[NR / 2][4];
    float scale[NR / 2][4];
} twice;
INLINE void bytes(int pairs, bool mild, bool small, int64_t m, int64_t groups, const uint8_t *a, const uint8_t *b, const hone_levels *l, const twice *both,
                  int64_t j0, int64_t n, uint8_t *const *out) {
    const float32x4_t magic = vdupq_n_f32(12582912.0f);
    const int16x8_t zero = vdupq_n_s16((int16_t)l->zero);
    int32x4_t s[MR / 2][NR / 2];
    FULL for (int j = 0; j < NR / 2; j++) {
        const int32x4_t bias = vld1q_s32(both->bias[j]);
        FULL for (int i = 0; i < pairs; i++) s[i][j] = bias;
    }
    for (int64_t p = 0; p < groups; p += 2, a += MR * DEEP, b += NR * DEEP) {
        uint8x16_t av[MR / 2];
        int8x16_t bv[NR / 2];
        FULL for (int i = 0; i < pairs; i++) av[i] = vld1q_u8(a + 2 * i * DEEP);
        FULL for (int j = 0; j < NR / 2; j++) bv[j] = vreinterpretq_s8_u8(vld1q_u8(b + 2 * DEEP * j));
        FULL for (int i = 0; i < pairs; i++) FULL for (int j = 0; j < NR / 2; j++) s[i][j] = vusmmlaq_s32(s[i][j], av[i], bv[j]);
    }
    float32x4_t t[MR / 2][NR / 2], scale[NR / 2];
    int16x8_t h[MR / 2][2];
    uint8x16_t v[MR / 2];
    FULL for (int j = 0; j < NR / 2; j++) scale[j] = vld1q_f32(both->scale[j]);
#define EACH(count) FULL for (int i = 0; i < pairs; i++) FULL for (int j = 0; j < (count); j++)
    EACH(NR / 2) {
        t[i][j] = small ? vsubq_f32(vreinterpretq_f32_s32(s[i][j]), magic) : vcvtq_f32_s32(s[i][j]);
        IN_ORDER(t[i][j]);
    }
    EACH(NR / 2) {
        t[i][j] = vmulq_f32(t[i][j], scale[j]);
        IN_ORDER(t[i][j]);
    }
    if (!mild) { /* beyond these it is the last byte anyway */
        EACH(NR / 2) t[i][j] = vminq_f32(vmaxq_f32(t[i][j], vdupq_n_f32(-HONE_LEVELS_MILD)), vdupq_n_f32(HONE_LEVELS_MILD));
    }
    EACH(NR / 2) {
        t[i][j] = vaddq_f32(t[i][j], magic);
        IN_ORDER(t[i][j]);
    }
    EACH(2) {
        h[i][j] = vuzp1q_s16(vreinterpretq_s16_f32(t[i][2 * j]), vreinterpretq_s16_f32(t[i][2 * j + 1]));
        IN_ORDER(h[i][j]);
    }
    EACH(2) {
        h[i][j] = vaddq_s16(h[i][j], zero);
        IN_ORDER(h[i][j]);
    }
    EACH(1) {
        v[i] = veorq_u8(vqmovun_high_s16(vqmovun_s16(h[i][0]), h[i][1]), vdupq_n_u8(l->flip));
        IN_ORDER(v[i]);
    }
#undef EACH
    FULL for (int i = 0; i < pairs; i++) {
        const uint16x8_t turns = vreinterpretq_u16_u8(v[i]); /* two columns of a row, two of the other */
        const uint8x8_t even = vreinterpret_u8_u16(vget_low_u16(vuzp1q_u16(turns, turns))),
                        odd = vreinterpret_u8_u16(vget_low_u16(vuzp2q_u16(turns, turns)));
        if (2 * i >= m) break;
        if (n == NR) {
            vst1_u8(out[2 * i] + j0, even);
            if (2 * i + 1 < m) vst1_u8(out[2 * i + 1] + j0, odd);
        } else {
            uint8_t some[2][NR];
            vst1_u8(some[0], even), vst1_u8(some[1], odd);
            for (int r = 0; r < 2 && 2 * i + r < m; r++) memcpy(out[2 * i + r] + j0, some[r], (size_t)n);
        }
    }
}
hone_gemm_bytes_fn hone_gemm_bytes__i8mm;
void hone_gemm_bytes__i8mm(int64_t m, int64_t groups, const uint8_t *a, const uint8_t *b, const hone_levels *levels, int64_t j, int64_t n,
                           uint8_t *const *out) {
    const hone_levels own = *levels; /* which bytes that are written cannot change */
    const bool small = own.mild && own.small && m > 6;
    twice both;
    for (int k = 0; k < 2 * NR; k++) {
        both.bias[k / 4][k % 4] = (int32_t)((uint32_t)own.bias[j + k / 4 * 2 + k % 2] + (small ? MILD_BITS : 0));
        both.scale[k / 4][k % 4] = own.scale[j + k / 4 * 2 + k % 2];
    }
    for (; m > 0; m -= MR, out += MR, a += 4 * groups * MR) {
        if (small) bytes(4, true, true, m, groups, a, b, &own, &both, j, n, out);
        else if (m <= 2) bytes(1, false, false, m, groups, a, b, &own, &both, j, n, out);
        else if (m <= 4) bytes(2, false, false, m, groups, a, b, &own, &both, j, n, out);
        else if (m <= 6) bytes(3, false, false, m, groups, a, b, &own, &both, j, n, out);
        else if (own.mild) bytes(4, true, false, m, groups, a, b, &own, &both, j, n, out);
        else bytes(4, false, false, m, groups, a, b, &own, &both, j, n, out);
    }
}
#else
typedef int hone_gemm_i8__i8mm_not_here;
#endif
