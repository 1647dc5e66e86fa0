/* SPDX-License-Identifier: Apache-2.0
   bits__dotprod: weights of few bits in blocks by sdot, four values of K of four columns an instruction; those of A are a lane. Empty on other architectures. */
#if defined(__aarch64__)
#define ISA dotprod
#include <arm_neon.h>
#include <stdint.h>

#define ALWAYS static inline __attribute__((always_inline))
/* Blocks are multiples of 16 and mostly short: loops without a beginning and an end of their own. NaN is the largest. */
ALWAYS uint32_t largest_of(const float *a, int64_t n) {
    float32x4_t most[4] = {vabsq_f32(vld1q_f32(a)), vabsq_f32(vld1q_f32(a + 4)), vabsq_f32(vld1q_f32(a + 8)), vabsq_f32(vld1q_f32(a + 12))};
    for (int64_t k = 16; k < n; k += 16)
        for (int i = 0; i < 4; i++) most[i] = vmaxq_f32(most[i], vabsq_f32(vld1q_f32(a + k + 4 * i)));
    const float all = vmaxvq_f32(vmaxq_f32(vmaxq_f32(most[0], most[1]), vmaxq_f32(most[2], most[3])));
    return vget_lane_u32(vreinterpret_u32_f32(vdup_n_f32(all)), 0);
}
/* 1.5 * 2^23 has no bits among the last eight: what was added to it is there. */
ALWAYS int32_t round_all(const float *a, int64_t n, float by, int8_t *q) {
    const float32x4_t whole = vdupq_n_f32(12582912.0F);
    const int8x16_t one = vdupq_n_s8(1);
    int32x4_t sum = vdupq_n_s32(0);
    for (int64_t k = 0; k < n; k += 16) {
        int16x8_t v[4];
        for (int i = 0; i < 4; i++) v[i] = vreinterpretq_s16_f32(vfmaq_n_f32(whole, vld1q_f32(a + k + 4 * i), by));
        const int16x8_t low = vuzp1q_s16(v[0], v[1]), high = vuzp1q_s16(v[2], v[3]);
        const int8x16_t bytes = vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high));
        vst1q_s8(q + k, bytes), sum = vdotq_s32(sum, bytes, one);
    }
    return vaddvq_s32(sum);
}
#define BITS_LARGEST largest_of
#define BITS_ROUND round_all
#include "kernels/ref/bits.inc"

/* What lies in memory costs no vector unit; a copy of a register does. The compiler would keep such numbers in registers and copy them. */
ALWAYS int32x4_t numbers(const int32_t *at) {
    int32x4_t v;
    __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*(const int32_t(*)[4])at));
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
enum { SMALL_BLOCK = 128 };
ALWAYS void rows(const hone_bits_part *p, const int m, const int small) {
    enum { N = HONE_BITS_COLUMNS };
    static const int32_t begin[2][4] = {{0, 0, 0, 0}, {HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER}};
    const int8_t *from[HONE_BITS_ROWS];
    const float32x4_t whole = vdupq_n_f32(12582912.0F);
    for (int r = 0; r < m; r++) from[r] = p->a[r];
    for (int64_t g = 0; g < p->blocks; g++) {
        const int8_t *b = p->b + g * p->b_step;
        int32x4_t sum[HONE_BITS_ROWS][4];
        for (int r = 0; r < m; r++)
            for (int q = 0; q < 4; q++) sum[r][q] = numbers(begin[small]);
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
#define ROWS(m)                                     \
    {                                               \
        if (p->block <= SMALL_BLOCK) rows(p, m, 1); \
        else rows(p, m, 0);                         \
    }
hone_bits_fn hone_bits_rows__dotprod;
void hone_bits_rows__dotprod(const hone_bits_part *p) {
    if (p->m == 4) ROWS(4)
    else if (p->m == 3) ROWS(3)
    else if (p->m == 2) ROWS(2)
    else ROWS(1)
}

/* ---- four rows of many ------------------------------------------------------------------------------------------------------------ */
/* Eight columns at a time: 8 sums of whole numbers and 8 of floats stay in registers over all blocks, so that a block ends with three operations for four sums and touches no memory.
   Four values of K of the four rows are one load. */
/* Lines of assembly, which the compiler leaves where they are: sums in turn, none waits for its last product. */
#define DOT(r, q) __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[" #r "]" : "+w"(sum[r][q]) : "w"(w##q), "w"(x));
#define DOTS(i)                                                                                                    \
    {                                                                                                              \
        const int8x16_t x = vld1q_s8(a + 16 * (i)), w0 = vld1q_s8(b + 64 * (i)), w1 = vld1q_s8(b + 64 * (i) + 16); \
        DOT(0, 0) DOT(1, 0) DOT(2, 0) DOT(3, 0) DOT(0, 1) DOT(1, 1) DOT(2, 1) DOT(3, 1)                            \
    }
#define END(r)                                                                                                                            \
    for (int q = 0; q < 2; q++) {                                                                                                         \
        const float32x4_t v = vsubq_f32(vreinterpretq_f32_s32(sum[r][q]), whole);                                                         \
        c[r][q] = vfmaq_f32(c[r][q], v, vmulq_laneq_f32(scale[q], by, r));                                                                \
        if (shifts) c[r][q] = vfmsq_laneq_f32(c[r][q], vld1q_f32(p->shift + g * N + 8 * half + 4 * q), vld1q_f32(p->a_shift + 4 * g), r); \
    }
ALWAYS void four(const hone_bits_four *p, const int64_t block, const int shifts) {
    enum { N = HONE_BITS_COLUMNS };
    static const int32_t begin[4] = {HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER};
    const float32x4_t whole = vdupq_n_f32(12582912.0F);
    for (int half = 0; half < 2; half++) {
        const int8_t *a = p->a;
        const float *a_scale = p->a_scale, *b_scale = p->scale + 8 * half;
        float *to = p->c + 8 * half;
        float32x4_t c[4][2];
        for (int r = 0; r < 4; r++) c[r][0] = vld1q_f32(to + r * N), c[r][1] = vld1q_f32(to + r * N + 4);
        for (int64_t g = 0; g < p->blocks; g++, a_scale += 4, b_scale += p->scale_step) {
            const int8_t *b = p->b + g * p->b_step + 32 * half;
            int32x4_t sum[4][2];
            for (int r = 0; r < 4; r++) sum[r][0] = numbers(begin), sum[r][1] = numbers(begin);
            for (int64_t k = 0; k < block; k += 16, a += 64, b += 256) { DOTS(0) DOTS(1) DOTS(2) DOTS(3) }
            const float32x4_t by = vld1q_f32(a_scale), scale[2] = {vld1q_f32(b_scale), vld1q_f32(b_scale + 4)};
            END(0) END(1) END(2) END(3)
        }
        for (int r = 0; r < 4; r++) vst1q_f32(to + r * N, c[r][0]), vst1q_f32(to + r * N + 4, c[r][1]);
    }
}
hone_bits_four_fn hone_bits_four__dotprod;
void hone_bits_four__dotprod(const hone_bits_four *p) {
    if (p->shift) four(p, p->block, 1);
    else if (p->block == 32) four(p, 32, 0);
    else four(p, p->block, 0);
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
