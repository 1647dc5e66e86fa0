/* SPDX-License-Identifier: Apache-2.0
   bits__dotprod: weights of few bits in blocks by sdot, four values of K of four columns an instruction;
   those of A are a lane. Empty on other architectures. */
#if defined(__aarch64__)
#define ISA dotprod
#include <arm_neon.h>
#include <stdint.h>

#define ALWAYS static inline __attribute__((always_inline))
/* Blocks are multiples of 16 and mostly short: loops without a beginning and an end of their own. NaN is the
   largest. */
ALWAYS uint32_t largest_of(const float *a, int64_t n) {
    float32x4_t most[4] = {vabsq_f32(vld1q_f32(a)), vabsq_f32(vld1q_f32(a + 4)), vabsq_f32(vld1q_f32(a + 8)),
                           vabsq_f32(vld1q_f32(a + 12))};
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
        for (int i = 0; i < 4; i++)
            v[i] = vreinterpretq_s16_f32(vfmaq_n_f32(whole, vld1q_f32(a + k + 4 * i), by));
        const int16x8_t low = vuzp1q_s16(v[0], v[1]), high = vuzp1q_s16(v[2], v[3]);
        const int8x16_t bytes = vuzp1q_s8(vreinterpretq_s8_s16(low), vreinterpretq_s8_s16(high));
        vst1q_s8(q + k, bytes), sum = vdotq_s32(sum, bytes, one);
    }
    return vaddvq_s32(sum);
}
#define BITS_LARGEST largest_of
#define BITS_ROUND round_all
#include "kernels/ref/bits.inc"

/* What lies in memory costs no vector unit; a copy of a register does. The compiler would keep such numbers
   in registers and copy them. */
ALWAYS int32x4_t numbers(const int32_t *at) {
    int32x4_t v;
    __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*(const int32_t(*)[4])at));
    return v;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */
/* 16 values of K: four lines of 16 columns, of which each of four values of K meets a lane of A. */
#define LANE(i)                                                                         \
    for (int q = 0; q < 4; q++) {                                                       \
        const int8x16_t w = vld1q_s8(b + 64 * (i) + 16 * q);                            \
        for (int r = 0; r < m; r++) sum[r][q] = vdotq_laneq_s32(sum[r][q], w, a[r], i); \
    }
/* Sums begin at the bits of 1.5 * 2^23 and, read as floats, end as that plus the sum: a subtraction instead
   of a conversion, which takes one unit two cycles. No sum of a block of 128 is beyond 2^22. */
enum { SMALL_BLOCK = 128 };
ALWAYS void rows(const hone_bits_part *p, const int m, const int small) {
    enum { N = HONE_BITS_COLUMNS };
    static const int32_t begin[2][4] = {{0, 0, 0, 0},
                                        {HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER}};
    const int8_t *from[HONE_BITS_ROWS];
    const float32x4_t whole = vdupq_n_f32(12582912.0F);
    for (int r = 0; r < m; r++) from[r] = p->a[r];
    for (int64_t g = 0; g < p->blocks; g++) {
        const int8_t *b = p->b + g * p->b_step;
        int32x4_t sum[HONE_BITS_ROWS][4];
        for (int r = 0; r < m; r++)
            for (int q = 0; q < 4; q++) sum[r][q] = numbers(begin[small]);
        if (p->zero) {
            const int16x8_t z0 = vmovl_s8(vld1_s8(p->zero + g * N)),
                            z1 = vmovl_s8(vld1_s8(p->zero + g * N + 8));
            for (int r = 0; r < m; r++) {
                const int16_t less = (int16_t)-p->a_sum[r][g];
                sum[r][0] = vmlal_n_s16(sum[r][0], vget_low_s16(z0), less),
                sum[r][1] = vmlal_n_s16(sum[r][1], vget_high_s16(z0), less);
                sum[r][2] = vmlal_n_s16(sum[r][2], vget_low_s16(z1), less),
                sum[r][3] = vmlal_n_s16(sum[r][3], vget_high_s16(z1), less);
            }
        }
        for (int64_t k = 0; k < p->block; k += 16, b += 256) {
            int8x16_t a[HONE_BITS_ROWS];
            for (int r = 0; r < m; r++) a[r] = vld1q_s8(from[r]), from[r] += 16;
            if (m == 1) /* weights that no cache has */
                __builtin_prefetch(b + 1024), __builtin_prefetch(b + 1088), __builtin_prefetch(b + 1152),
                    __builtin_prefetch(b + 1216);
            LANE(0) LANE(1) LANE(2) LANE(3)
        }
        for (int q = 0; q < 4; q++) {
            const float32x4_t s = vld1q_f32(p->scale + g * p->scale_step + 4 * q);
            for (int r = 0; r < m; r++) {
                float *c = p->c[r] + 4 * q;
                const float32x4_t v =
                    small ? vsubq_f32(vreinterpretq_f32_s32(sum[r][q]), whole) : vcvtq_f32_s32(sum[r][q]);
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

/* ---- several rows -------------------------------------------------------------------------------------- */
/* Eight columns at a time: up to 8 sums of integers and 8 of floats stay in registers over all blocks,
   so that a block ends with three operations for four sums and touches no memory.
   Four values of K of four rows are one load. Lines of assembly, which the compiler leaves where they are:
   sums in turn, none waits for its last product, and loads a step before their use,
   over the ends of blocks, too: products that wait for a load fill the queue before the vector units. */
ALWAYS int8x16_t bytes_at(const int8_t *at) {
    int8x16_t v;
    __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*(const int8_t(*)[16])at));
    return v;
}
#define DOT(r, q, w, x) \
    if (high > (r)) __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[" #r "]" : "+w"(sum[r][q]) : "w"(w), "w"(x));
/* clang-format off */
#define DOTS(w0, w1, x)                                                 \
    DOT(0, 0, w0, x) DOT(1, 0, w0, x) DOT(2, 0, w0, x) DOT(3, 0, w0, x) \
    DOT(0, 1, w1, x) DOT(1, 1, w1, x) DOT(2, 1, w1, x) DOT(3, 1, w1, x)
/* clang-format on */
/* what was loaded: four values of K of all rows and eight columns; 4 bits have eight values */
typedef struct {
    int8x16_t x[2], b[2];
} step;
ALWAYS step load_step(const int8_t *a, const int8_t *b, const int high, const bool packed) {
    step s;
    s.b[0] = bytes_at(b), s.x[0] = bytes_at(a), s.b[1] = bytes_at(b + 16);
    s.x[1] = packed ? bytes_at(a + 4 * high) : s.x[0];
    return s;
}
#define DO_STEP(s)                                                         \
    if (packed) {                                                          \
        DOTS(vandq_s8(s.b[0], fifteen), vandq_s8(s.b[1], fifteen), s.x[0]) \
        DOTS(vshrq_n_s8(s.b[0], 4), vshrq_n_s8(s.b[1], 4),                 \
             s.x[1]) /* less 8, for the flipped bit is their sign */       \
    } else {                                                               \
        DOTS(s.b[0], s.b[1], s.x[0])                                       \
    }
#define END(r)                                                                           \
    for (int q = 0; q < 2 && high > (r); q++)                                            \
        c[r][q] = vfmaq_f32(c[r][q], vsubq_f32(vreinterpretq_f32_s32(sum[r][q]), whole), \
                            vmulq_laneq_f32(scale[q], by, r));
#define SHIFT(r) \
    for (int q = 0; q < 2 && high > (r); q++) c[r][q] = vfmsq_laneq_f32(c[r][q], shift[q], less, r);
ALWAYS void several(const hone_bits_many *p, const int high, const bool packed) {
    enum { N = HONE_BITS_COLUMNS, UNIT = HONE_BITS_UNIT };
    static const int32_t begin[4] = {HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER, HONE_BITS_LOWER};
    const int8x16_t fifteen = vdupq_n_s8(15);
    const int64_t pairs = p->block / (packed ? 16 : 8), b_step = p->b_step;
    const ptrdiff_t a_unit = (packed ? 8 : 4) * high;
    for (int half = 0; half < 2; half++) {
        const float *b_scale = p->scale + 8 * half, *a_scale = p->a_scale;
        const int8_t *a = p->a, *block = p->b + 32 * half;
        float *to = p->c + 8 * half;
        float32x4_t c[HONE_BITS_HIGH][2];
        for (int r = 0; r < high; r++) c[r][0] = vld1q_f32(to + r * N), c[r][1] = vld1q_f32(to + r * N + 4);
        step even = load_step(a, block, high, packed), odd;
        for (int64_t g = 0; g < p->blocks; g++, b_scale += p->scale_step, a_scale += high) {
            const int8_t *b = block;
            if (g + 1 < p->blocks) block += b_step; /* the last one prefetches itself again */
            int32x4_t sum[HONE_BITS_HIGH][2];
            for (int r = 0; r < high; r++)
                for (int q = 0; q < 2; q++)
                    sum[r][q] = numbers(packed ? p->a_start + (g * high + r) * 4 : begin);
            for (int64_t k = pairs; k > 0; k--) {
                odd = load_step(a + a_unit, b + UNIT, high, packed);
                DO_STEP(even)
                a += 2 * a_unit, b = k > 1 ? b + 2 * UNIT : block;
                even = load_step(k > 1 || g + 1 < p->blocks ? a : p->a, b, high, packed);
                DO_STEP(odd)
            }
            const float32x4_t whole = vdupq_n_f32(12582912.0F),
                              scale[2] = {vld1q_f32(b_scale), vld1q_f32(b_scale + 4)},
                              by = vld1q_f32(a_scale);
            END(0) END(1) END(2) END(3) if (p->shift) {
                const float *of = p->shift + g * N + 8 * half;
                const float32x4_t shift[2] = {vld1q_f32(of), vld1q_f32(of + 4)},
                                  less = vld1q_f32(p->a_shift + g * high);
                SHIFT(0) SHIFT(1) SHIFT(2) SHIFT(3)
            }
        }
        for (int r = 0; r < high; r++) vst1q_f32(to + r * N, c[r][0]), vst1q_f32(to + r * N + 4, c[r][1]);
    }
}
hone_bits_many_fn hone_bits_many__dotprod;
void hone_bits_many__dotprod(const hone_bits_many *p) {
    switch (p->high * 2 + p->packed) {
    case 4: several(p, 2, false); break;
    case 5: several(p, 2, true); break;
    case 6: several(p, 3, false); break;
    case 7: several(p, 3, true); break;
    case 8: several(p, 4, false); break;
    case 9: several(p, 4, true); break;
    }
}

/* ---- one row, of 4 bits -------------------------------------------------------------------------------- */
#define NIBBLES(q, v, i, o)                                               \
    {                                                                     \
        const int8x16_t x = vld1q_s8(b + (o) + 16 * (q));                 \
        upper[q] = vdotq_laneq_s32(upper[q], x, v, (i) + 1),              \
        lower[q] = vdotq_laneq_s32(lower[q], vandq_s8(x, fifteen), v, i); \
    }
#define UNIT(v, i, o) NIBBLES(0, v, i, o) NIBBLES(1, v, i, o) NIBBLES(2, v, i, o) NIBBLES(3, v, i, o)
ALWAYS void one(const hone_bits_part *p, const int zeros) {
    enum { N = HONE_BITS_COLUMNS, AHEAD = 2048 };
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
            upper[q] = numbers(zeros ? begin : p->start + 8 * g),
            lower[q] = numbers(zeros ? begin + 4 : p->start + 8 * g + 4);
            if (!zeros) continue;
            const int16x4_t z = vget_low_s16(vmovl_s8(
                vreinterpret_s8_s32(vld1_dup_s32((const int32_t *)(const void *)(p->zero + g * N + 4 * q)))));
            upper[q] = vmlal_n_s16(upper[q], vmls_n_s16(vdup_n_s16(128), z, 17), (int16_t)p->a_sum[0][2 * g]);
            lower[q] = vmlal_n_s16(lower[q], z, (int16_t)-p->a_sum[0][2 * g + 1]);
        }
        int64_t k = 0;
        b = p->b + g * p->b_step;
        for (; k + 32 <= p->block; k += 32, b += 256, a += 32) {
            const int8x16_t v = vld1q_s8(a), w = vld1q_s8(a + 16);
            __builtin_prefetch(b + AHEAD), __builtin_prefetch(b + AHEAD + 64),
                __builtin_prefetch(b + AHEAD + 128), __builtin_prefetch(b + AHEAD + 192);
            UNIT(v, 0, 0) UNIT(v, 2, 64) UNIT(w, 0, 128) UNIT(w, 2, 192)
        }
        for (; k < p->block; k += 16, b += 128, a += 16) {
            const int8x16_t v = vld1q_s8(a);
            UNIT(v, 0, 0) UNIT(v, 2, 64)
        }
        __builtin_prefetch(b + AHEAD);
        const float32x4_t s = vld1q_dup_f32(p->a_scale[0] + g);
        const float *scale = p->scale + g * p->scale_step;
        /* the sum of lower values, less both numbers, plus the other sum: each step exact */
        for (int q = 0; q < 4; q++, scale += 4)
            c[q] = vfmaq_f32(
                c[q],
                vaddq_f32(vsubq_f32(vreinterpretq_f32_s32(lower[q]), both), vreinterpretq_f32_s32(upper[q])),
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
