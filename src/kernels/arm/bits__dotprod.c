/* SPDX-License-Identifier: Apache-2.0
   bits__dotprod: weights of few bits in blocks by sdot, four values of K of four columns an instruction; those of A are a lane. Empty on other architectures. */
#if defined(__aarch64__)
#define ISA dotprod
#include <arm_neon.h>

#include "kernels/ref/bits.inc"

#define ALWAYS static inline __attribute__((always_inline))
/* What lies in memory costs no vector unit; a copy of a register does. The compiler would keep such numbers in registers and copy them. */
ALWAYS int32x4_t numbers(const int32_t *at) {
    int32x4_t v;
    __asm__("ldr %q0, %1" : "=w"(v) : "m"(*(const int32_t(*)[4])at));
    return v;
}

/* ---- rows ------------------------------------------------------------------------------------------------------------------------- */
/* 16 values of K: four lines of 16 columns, of which each of four values of K meets a lane of A. */
#define LANE(i)                                                                         \
    for (int q = 0; q < 4; q++) {                                                       \
        const int8x16_t w = vld1q_s8(b + 64 * (i) + 16 * q);                            \
        for (int r = 0; r < m; r++) sum[r][q] = vdotq_laneq_s32(sum[r][q], w, a[r], i); \
    }
/* Sums begin at the bits of 1.5 * 2^23 and, read as floats, end as that plus the sum: a subtraction instead of a conversion, which takes one unit two cycles. No sum of a block of 128
   is beyond 2^22. */
enum { SMALL_BLOCK = 128, AT_ONCE = 16 /* blocks */ };
ALWAYS void rows(const hone_bits_part *p, int64_t first, int64_t blocks, const int m, const int small) {
    enum { N = HONE_BITS_COLUMNS };
    const int32_t begin = small ? HONE_BITS_LOWER : 0;
    int32_t start[HONE_BITS_ROWS][AT_ONCE][4];
    const int8_t *from[HONE_BITS_ROWS];
    const float32x4_t whole = vdupq_n_f32(12582912.0F);
    for (int r = 0; r < m; r++) {
        from[r] = p->a[r] + first * p->block;
        for (int64_t g = 0; g < blocks; g++) vst1q_s32(start[r][g], vdupq_n_s32(begin - (p->zero ? 0 : p->all * p->a_sum[r][first + g])));
    }
    for (int64_t i = 0, g = first; i < blocks; i++, g++) {
        const int8_t *b = p->b + g * p->b_step;
        int32x4_t sum[HONE_BITS_ROWS][4];
        for (int r = 0; r < m; r++)
            for (int q = 0; q < 4; q++) sum[r][q] = numbers(start[r][i]);
        if (p->zero) {
            const int16x8_t z0 = vmovl_s8(vld1_s8(p->zero + g * N)), z1 = vmovl_s8(vld1_s8(p->zero + g * N + 8));
            for (int r = 0; r < m; r++) {
                const int16_t less = (int16_t)-p->a_sum[r][g];
                sum[r][0] = vmlal_n_s16(sum[r][0], vget_low_s16(z0), less), sum[r][1] = vmlal_n_s16(sum[r][1], vget_high_s16(z0), less);
                sum[r][2] = vmlal_n_s16(sum[r][2], vget_low_s16(z1), less), sum[r][3] = vmlal_n_s16(sum[r][3], vget_high_s16(z1), less);
            }
        }
        for (int64_t k = 0; k < p->block; k += 16, b += 256) {
            int8x16_t a[HONE_BITS_ROWS];
            for (int r = 0; r < m; r++) a[r] = vld1q_s8(from[r]), from[r] += 16;
            if (m == 1) /* weights that no cache has */
                __builtin_prefetch(b + 1024), __builtin_prefetch(b + 1088), __builtin_prefetch(b + 1152), __builtin_prefetch(b + 1216);
            LANE(0) LANE(1) LANE(2) LANE(3)
        }
        for (int q = 0; q < 4; q++) {
            const float32x4_t s = vld1q_f32(p->scale + g * p->scale_step + 4 * q);
            for (int r = 0; r < m; r++) {
                float *c = p->c[r] + 4 * q;
                const float32x4_t v = small ? vsubq_f32(vreinterpretq_f32_s32(sum[r][q]), whole) : vcvtq_f32_s32(sum[r][q]);
                vst1q_f32(c, vfmaq_f32(vld1q_f32(c), v, vmulq_n_f32(s, p->a_scale[r][g])));
            }
        }
    }
}
#define ROWS(m)                                                              \
    for (int64_t g = 0; g < p->blocks; g += AT_ONCE) {                       \
        const int64_t n = p->blocks - g < AT_ONCE ? p->blocks - g : AT_ONCE; \
        if (p->block <= SMALL_BLOCK) rows(p, g, n, m, 1);                    \
        else rows(p, g, n, m, 0);                                            \
    }
hone_bits_fn hone_bits_rows__dotprod;
void hone_bits_rows__dotprod(const hone_bits_part *p) {
    if (p->m == 4) ROWS(4)
    else if (p->m == 3) ROWS(3)
    else if (p->m == 2) ROWS(2)
    else ROWS(1)
}

/* ---- one row, of 4 bits ------------------------------------------------------------------------------------------------------------ */
#define NIBBLES(q, v, i, o)                                                                                                    \
    {                                                                                                                          \
        const int8x16_t x = vld1q_s8(b + (o) + 16 * (q));                                                                      \
        upper[q] = vdotq_laneq_s32(upper[q], x, v, (i) + 1), lower[q] = vdotq_laneq_s32(lower[q], vandq_s8(x, fifteen), v, i); \
    }
#define UNIT(v, i, o) NIBBLES(0, v, i, o) NIBBLES(1, v, i, o) NIBBLES(2, v, i, o) NIBBLES(3, v, i, o)
ALWAYS void one(const hone_bits_part *p, const int zeros) {
    enum { N = HONE_BITS_COLUMNS, AHEAD = 1024 };
    static const int32_t begin[8] = {HONE_BITS_UPPER, HONE_BITS_UPPER, HONE_BITS_UPPER, HONE_BITS_UPPER,
                                     HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER};
    const int8_t *b = p->b, *a = p->a[0];
    const int8x16_t fifteen = vdupq_n_s8(15);
    const float32x4_t both = vdupq_n_f32(12582912.0F + 786432.0F); /* 1.5 * 2^23 and 1.5 * 2^19 */
    float32x4_t c[4];
    for (int q = 0; q < 4; q++) c[q] = vld1q_f32(p->c[0] + 4 * q);
    for (int64_t g = 0; g < p->blocks; g++) {
        int32x4_t upper[4], lower[4];
        for (int q = 0; q < 4; q++) {
            upper[q] = numbers(zeros ? begin : p->start + 8 * g), lower[q] = numbers(zeros ? begin + 4 : p->start + 8 * g + 4);
            if (!zeros) continue;
            const int16x4_t z =
                vget_low_s16(vmovl_s8(vreinterpret_s8_s32(vld1_dup_s32((const int32_t *)(const void *)(p->zero + g * N + 4 * q)))));
            upper[q] = vmlal_n_s16(upper[q], vmls_n_s16(vdup_n_s16(128), z, 17), (int16_t)p->a_sum[0][2 * g]);
            lower[q] = vmlal_n_s16(lower[q], z, (int16_t)-p->a_sum[0][2 * g + 1]);
        }
        int64_t k = 0;
        b = p->b + g * p->b_step;
        for (; k + 32 <= p->block; k += 32, b += 256, a += 32) {
            const int8x16_t v = vld1q_s8(a), w = vld1q_s8(a + 16);
            __builtin_prefetch(b + AHEAD), __builtin_prefetch(b + AHEAD + 64), __builtin_prefetch(b + AHEAD + 128),
                __builtin_prefetch(b + AHEAD + 192);
            UNIT(v, 0, 0) UNIT(v, 2, 64) UNIT(w, 0, 128) UNIT(w, 2, 192)
        }
        for (; k < p->block; k += 16, b += 128, a += 16) {
            const int8x16_t v = vld1q_s8(a);
            UNIT(v, 0, 0) UNIT(v, 2, 64)
        }
        const float32x4_t s = vld1q_dup_f32(p->a_scale[0] + g);
        const float *scale = p->scale + g * p->scale_step;
        for (int q = 0; q < 4; q++, scale += 4) /* the sum of lower values, less both numbers, plus the other sum: each step exact */
            c[q] = vfmaq_f32(c[q], vaddq_f32(vsubq_f32(vreinterpretq_f32_s32(lower[q]), both), vreinterpretq_f32_s32(upper[q])),
                             vmulq_f32(s, vld1q_f32(scale)));
    }
    for (int q = 0; q < 4; q++) vst1q_f32(p->c[0] + 4 * q, c[q]);
}
hone_bits_fn hone_bits_one__dotprod;
void hone_bits_one__dotprod(const hone_bits_part *p) {
    if (p->start) one(p, 0);
    else one(p, 1);
}
#else
typedef int hone_bits__dotprod_not_here;
#endif
