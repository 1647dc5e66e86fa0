/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, NEON with i8mm: usmmla multiplies two columns of eight u8 of B with two rows of eight i8 of A, and
   adds to a 2 by 2 block of sums. 32 registers: 16 blocks (8 rows, 8 columns), 4 of B, one of A. Empty on
   other architectures. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#include <arm_neon.h>

#include "kernels/gemm.h"
#define VW 4
#include "kernels/ref/requantize.inc"
#include "kernels/ref/vec.inc"

enum { MR = 8, NR = 8, DEEP = 8 };
hone_gemm_i8_fn hone_gemm_i8_8x8__i8mm, hone_gemm_u8_8x8__i8mm;

/* pairs: two rows each; a block of sums is [column][row], or [row][column] where A is the unsigned one (u) */
INLINE void tile(bool u, int pairs, int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                 ptrdiff_t c_stride) {
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
INLINE void heights(bool u, int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                    ptrdiff_t c_stride) {
    if (m <= 2) tile(u, 1, m, groups, a, b, c, c_stride);
    else if (m <= 4) tile(u, 2, m, groups, a, b, c, c_stride);
    else if (m <= 6) tile(u, 3, m, groups, a, b, c, c_stride);
    else tile(u, 4, m, groups, a, b, c, c_stride);
}
void hone_gemm_i8_8x8__i8mm(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                            ptrdiff_t c_stride) {
    heights(false, m, groups, a, b, c, c_stride);
}
void hone_gemm_u8_8x8__i8mm(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                            ptrdiff_t c_stride) {
    heights(true, m, groups, a, b, c, c_stride);
}
/* To bytes at once: a block of sums begins with its columns' bias, twice, and is scaled as it is; rows are
   told apart when they are bytes. One operation of all blocks after another (requantize.inc says why). Two
   panels are taken as one after another, and their bytes stored together. */
enum { BLOCKS = NR / 2 }; /* of a pair of rows and a panel */
typedef struct {
    int32_t bias[2 * BLOCKS][4];
    float scale[2 * BLOCKS][4];
} twice;
/* As they are written, and where: gcc would load all first, and the queue before the units fills with
   products that wait. */
#define MULTIPLY(s, x, y) __asm__ volatile("usmmla %0.4s, %1.16b, %2.16b" : "+w"(s) : "w"(x), "w"(y))
INLINE void put_row(uint8_t *to, uint8x16_t v, int panels, bool second, int64_t n) {
    if (panels == 1 && n == NR) {
        vst1_u8(to, second ? vget_high_u8(v) : vget_low_u8(v));
    } else if (n == 2 * NR) vst1q_u8(to, v);
    else {
        uint8_t some[2 * NR];
        vst1q_u8(some, v);
        memcpy(to, some + (second ? NR : 0), (size_t)n);
    }
}
/* Blocks of sums as bytes. pairs, panels, mild, small and even (the zero point is) are constants at every
   call. */
#define EACH(count) FULL for (int i = 0; i < pairs; i++) FULL for (int j = 0; j < (count); j++)
INLINE void narrow(int pairs, int panels, bool mild, bool small, bool even, const hone_requantize *l,
                   const twice *both, int first, int32x4_t s[MR / 2][2 * BLOCKS], uint8x16_t v[MR / 2][2]) {
    const float32x4_t magic = vdupq_n_f32(12582912.0f),
                      /* an even one moves no tie */
        last = vdupq_n_f32(12582912.0f + (even ? (float)l->zero : 0));
    const int blocks = panels * BLOCKS;
    float32x4_t t[MR / 2][2 * BLOCKS], scale[2 * BLOCKS];
    int16x8_t h[MR / 2][BLOCKS];
    /* else kept, and what the products need is not */
    FULL for (int j = 0; j < blocks; j++) LOAD_AGAIN(scale[j], both->scale[first + j]);
    EACH(blocks) {
        t[i][j] = small ? vsubq_f32(vreinterpretq_f32_s32(s[i][j]), magic) : vcvtq_f32_s32(s[i][j]);
        IN_ORDER(t[i][j]);
    }
    EACH(blocks) {
        t[i][j] = vmulq_f32(t[i][j], scale[j]);
        IN_ORDER(t[i][j]);
    }
    if (!mild) { /* beyond these it is the last byte anyway */
        EACH(blocks)
        t[i][j] = vminq_f32(vmaxq_f32(t[i][j], vdupq_n_f32(-HONE_REQUANTIZE_MILD)),
                            vdupq_n_f32(HONE_REQUANTIZE_MILD));
    }
    EACH(blocks) {
        t[i][j] = vaddq_f32(t[i][j], last);
        IN_ORDER(t[i][j]);
    }
    EACH(blocks / 2) {
        h[i][j] = vuzp1q_s16(vreinterpretq_s16_f32(t[i][2 * j]), vreinterpretq_s16_f32(t[i][2 * j + 1]));
        IN_ORDER(h[i][j]);
    }
    if (!even) {
        EACH(blocks / 2) {
            h[i][j] = vaddq_s16(h[i][j], vdupq_n_s16((int16_t)l->zero));
            IN_ORDER(h[i][j]);
        }
    }
    uint8x8_t low[MR / 2][2];
    EACH(panels) {
        low[i][j] = vqmovun_s16(h[i][2 * j]);
        IN_ORDER(low[i][j]);
    }
    EACH(panels) {
        v[i][j] = vqmovun_high_s16(low[i][j], h[i][2 * j + 1]);
        IN_ORDER(v[i][j]);
    }
    if (l->flip) { EACH(panels) v[i][j] = veorq_u8(v[i][j], vdupq_n_u8(l->flip)); }
}
/* Two columns of a row, two of the other: even and odd pairs of bytes are rows apart. */
INLINE void put_rows(uint8x16_t first, uint8x16_t second, int panels, bool upper, int64_t m, int64_t n,
                     uint8_t *const *out, int64_t j) {
    const uint16x8_t x = vreinterpretq_u16_u8(first), y = vreinterpretq_u16_u8(second);
    if (m > 0) put_row(out[0] + j, vreinterpretq_u8_u16(vuzp1q_u16(x, y)), panels, upper, n);
    if (m > 1) put_row(out[1] + j, vreinterpretq_u8_u16(vuzp2q_u16(x, y)), panels, upper, n);
}
/* A few rows; b_step: from a panel to the next */
INLINE void few(int pairs, int panels, bool mild, bool small, bool even, int64_t m, int64_t groups,
                const uint8_t *a, const uint8_t *b, int64_t b_step, const hone_requantize *l,
                const twice *both, int64_t n, uint8_t *const *out, int64_t j0) {
    const int blocks = panels * BLOCKS;
    int32x4_t s[MR / 2][2 * BLOCKS];
    uint8x16_t v[MR / 2][2];
    EACH(blocks) LOAD_AGAIN(s[i][j], both->bias[j]);
    for (int64_t p = 0; p < groups; p += 2, a += MR * DEEP, b += NR * DEEP) {
        uint8x16_t av[MR / 2];
        int8x16_t bv[2 * BLOCKS];
        FULL for (int i = 0; i < pairs; i++) av[i] = vld1q_u8(a + 2 * i * DEEP);
        FULL for (int j = 0; j < blocks; j++) bv[j] =
            vreinterpretq_s8_u8(vld1q_u8(b + j / BLOCKS * b_step + 2 * DEEP * (j % BLOCKS)));
        EACH(blocks) s[i][j] = vusmmlaq_s32(s[i][j], av[i], bv[j]);
    }
    narrow(pairs, panels, mild, small, even, l, both, 0, s, v);
    FULL for (int i = 0; i < pairs; i++)
        put_rows(v[i][0], v[i][panels - 1], panels, false, m - 2 * i, n, out + 2 * i, j0);
}
/* All rows of a panel of A by one of B: eight loads for sixteen products, each as soon as what it replaces is
   used. */
INLINE void whole(bool mild, bool small, bool even, int64_t groups, const uint8_t *a, const uint8_t *b,
                  const hone_requantize *l, const twice *both, int first, uint8x16_t v[MR / 2]) {
    enum { pairs = MR / 2 };
    int32x4_t s[MR / 2][2 * BLOCKS];
    uint8x16_t av[MR / 2], bv[BLOCKS], bytes[MR / 2][2];
    _Static_assert(MR / 2 == 4 && BLOCKS == 4, "fours");
    LOAD_FOUR(av, a);
    LOAD_FOUR(bv, b);
    FULL for (int i = 0; i < pairs; i++) LOAD_FOUR(s[i], both->bias[first]);
    for (int64_t p = 2; p < groups; p += 2) {
        a += MR * DEEP, b += NR * DEEP;
        FULL for (int j = 0; j < BLOCKS; j++) {
            FULL for (int i = 0; i < pairs; i++) MULTIPLY(s[i][j], av[i], bv[j]);
            LOAD_AGAIN(bv[j], *(const uint8x16_t *)(const void *)(b + 2 * j * DEEP));
        }
        LOAD_FOUR(av, a);
    }
    FULL for (int j = 0; j < BLOCKS; j++) FULL for (int i = 0; i < pairs; i++)
        MULTIPLY(s[i][j], av[i], bv[j]);
    narrow(pairs, 1, mild, small, even, l, both, first, s, bytes);
    FULL for (int i = 0; i < pairs; i++) v[i] = bytes[i][0];
}
#undef EACH
/* All rows of one panel or two. */
INLINE void down(int panels, bool mild, bool small, bool even, int64_t m, int64_t groups, const uint8_t *a,
                 const uint8_t *b, const hone_requantize *l, const twice *both, const uint8_t *next,
                 int64_t n, uint8_t *const *out, int64_t j) {
    const int64_t b_step = 4 * groups * NR, all = next && b_step >= 1024 ? 2 * b_step : 0,
                  share = all / ((m + MR - 1) / MR) + 64;
    int64_t asked = 0; /* of the next panels, which may be far: some while each rows are multiplied */
    for (; m > 0; m -= MR, out += MR, a += 4 * groups * MR) {
        for (const int64_t end = asked + share < all ? asked + share : all; asked < end; asked += 64)
            __builtin_prefetch(next + asked);
        if (m >= MR) {
            uint8x16_t v[2][MR / 2];
            FULL for (int k = 0; k < panels; k++)
                whole(mild, small, even, groups, a, b + k * b_step, l, both, k * BLOCKS, v[k]);
            FULL for (int i = 0; i < MR; i += 2) { /* of one panel two pairs of rows are put apart at once */
                if (panels == 2) put_rows(v[0][i / 2], v[1][i / 2], 2, false, 2, n, out + i, j);
                else put_rows(v[0][i / 4 * 2], v[0][i / 4 * 2 + 1], 1, i % 4 != 0, 2, n, out + i, j);
            }
        } else if (m <= 2) few(1, panels, mild, small, even, m, groups, a, b, b_step, l, both, n, out, j);
        else {
            few(2, panels, mild, small, even, m, groups, a, b, b_step, l, both, n, out, j);
            if (m > 4)
                few(2, panels, mild, small, even, m - 4, groups, a + 4 * DEEP, b, b_step, l, both, n, out + 4,
                    j);
        }
    }
}
INLINE void across(int panels, int64_t m, int64_t groups, const uint8_t *a, const uint8_t *b,
                   const uint8_t *next, const hone_requantize *l, int64_t n, uint8_t *const *out, int64_t j) {
    const bool small = l->mild && l->small, even = l->zero % 2 == 0;
    twice both;
    for (int k = 0; k < panels * NR; k += 4) {
        const int32x4_t bias = vaddq_s32(vld1q_s32(l->bias + j + k), vdupq_n_s32(small ? MILD_BITS : 0));
        const float32x4_t scale = vld1q_f32(l->scale + j + k);
        vst1q_s32(both.bias[k / 2], vcombine_s32(vget_low_s32(bias), vget_low_s32(bias)));
        vst1q_s32(both.bias[k / 2 + 1], vcombine_s32(vget_high_s32(bias), vget_high_s32(bias)));
        vst1q_f32(both.scale[k / 2], vcombine_f32(vget_low_f32(scale), vget_low_f32(scale)));
        vst1q_f32(both.scale[k / 2 + 1], vcombine_f32(vget_high_f32(scale), vget_high_f32(scale)));
    }
    if (!l->mild) down(panels, false, false, false, m, groups, a, b, l, &both, next, n, out, j);
    else if (!small) down(panels, true, false, false, m, groups, a, b, l, &both, next, n, out, j);
    else if (n < panels * NR) down(panels, true, true, false, m, groups, a, b, l, &both, next, n, out, j);
    else if (even) down(panels, true, true, true, m, groups, a, b, l, &both, next, panels * NR, out, j);
    else down(panels, true, true, false, m, groups, a, b, l, &both, next, panels * NR, out, j);
}
hone_gemm_i8_requantize_fn hone_gemm_i8_requantize__i8mm;
void hone_gemm_i8_requantize__i8mm(int64_t m, int64_t groups, const uint8_t *a, const uint8_t *b,
                                   const hone_requantize *requantize, int64_t j, int64_t n,
                                   uint8_t *const *out) {
    const hone_requantize own = *requantize; /* which bytes that are written cannot change */
    for (; n > NR; n -= 2 * NR, j += 2 * NR, b += 8 * groups * NR)
        across(2, m, groups, a, b, n > 3 * NR ? b + 8 * groups * NR : NULL, &own, n < 2 * NR ? n : 2 * NR,
               out, j);
    if (n > 0) across(1, m, groups, a, b, NULL, &own, n, out, j);
}
#else
typedef int hone_gemm_i8__i8mm_not_here;
#endif
