/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, NEON with bf16: bfmmla multiplies two rows of four values of A with two columns of four of B and
   adds to a 2 by 2 block of sums. 32 registers: 20 blocks of sums (10 rows, 8 columns), 4 of B, 5 of A. Empty
   on other architectures. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>

#include "base/thread.h"
#include "kernels/arm/ordered.h"
#include "kernels/gemm.h"
#include "kernels/gemm_half.h"
#define VW 4
#include "kernels/ref/vec.inc"

#define MR 10
#define ROWS 2
enum { NR = 8, GROUP = 4 };
#define EIGHT(x) (uint16x8_t) vcvtq_high_bf16_f32(vcvtq_low_bf16_f32(vld1q_f32(x)), vld1q_f32((x) + 4))
static void narrow(const float *x, uint16_t *y, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) vst1q_u16(y + i, EIGHT(x + i)), vst1q_u16(y + i + 8, EIGHT(x + i + 8));
    for (; i + 4 <= n; i += 4) vst1_u16(y + i, vreinterpret_u16_bf16(vcvt_bf16_f32(vld1q_f32(x + i))));
    for (; i < n; i++) vst1_lane_u16(y + i, vreinterpret_u16_bf16(vcvt_bf16_f32(vdupq_n_f32(x[i]))), 0);
}
/* Pairs of rows, four values of each in turn, so that one load brings both: to put them together in the loop
   takes the units that multiply. A step of all pairs lies together. */
static void lay(int64_t m, int64_t k, const uint16_t *from, ptrdiff_t step, uint16_t *to) {
    int64_t p = 0;
    for (; p + 2 * GROUP <= k; p += 2 * GROUP, to += m * 2 * GROUP)
        for (int64_t i = 0; i < m; i += 2) {
            const uint64x2_t up = (uint64x2_t)vld1q_u16(from + i * step + p),
                             down = (uint64x2_t)vld1q_u16(from + (i + 1) * step + p);
            vst1q_u16(to + i * GROUP, (uint16x8_t)vzip1q_u64(up, down)),
                vst1q_u16(to + (m + i) * GROUP, (uint16x8_t)vzip2q_u64(up, down));
        }
    for (int64_t i = 0; p < k && i < m; i += 2)
        vst1q_u16(to + i * GROUP,
                  vcombine_u16(vld1_u16(from + i * step + p), vld1_u16(from + (i + 1) * step + p)));
}
#define TIMES(s, a, b) __asm__ volatile("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(s) : "w"(a), "w"(b))
#define BESIDE(f, x, y) (vec) f((float64x2_t)(x), (float64x2_t)(y))
/* Eight columns of row i as gemm.h has it. A row after another, each with its own questions: all at once, gcc
   has registers for half of them. */
INLINE void finish_row(vec s[2], const hone_gemm_args *w, int64_t i) {
    const int64_t from = w->c_from;
    float *c = w->c[i];
    if (w->bias_n) s[0] += load(w->bias_n), s[1] += load(w->bias_n + VW);
    if (w->residual && w->residual_bf16) {
        /* a bf16 is the upper half of a float */
        const uint16x8_t more = vld1q_u16((const uint16_t *)(const void *)w->residual[i] + from);
        s[0] += (vec)vshll_n_u16(vget_low_u16(more), 16), s[1] += (vec)vshll_high_n_u16(more, 16);
    } else if (w->residual) s[0] += load(w->residual[i] + from), s[1] += load(w->residual[i] + from + VW);
    if (w->clamp) {
        const vec lo = splat(w->lo), hi = splat(w->hi);
        s[0] = at_most(at_least(s[0], lo), hi), s[1] = at_most(at_least(s[1], lo), hi);
    }
    if (w->c_bf16)
        vst1q_u16((uint16_t *)(void *)c + from,
                  (uint16x8_t)vcvtq_high_bf16_f32(vcvtq_low_bf16_f32((float32x4_t)s[0]), (float32x4_t)s[1]));
    else store(c + from, s[0]), store(c + from + VW, s[1]);
}
/* Each register is loaded again right behind its last use (loads: for the step after this one), as in
   gemm_f32.inc, which says why. */
INLINE void step(int m, bool loads, float32x4_t s[MR / 2][NR / 2], uint16x8_t av[MR / 2],
                 uint16x8_t bv[NR / 2], const uint16_t *a, const uint16_t *b) {
    FULL for (int j = 0; j < NR / 2; j++) {
        FULL for (int i = 0; i < m / 2; i++) {
            TIMES(s[i][j], av[i], bv[j]);
            if (loads && j == NR / 2 - 1) HONE_FETCH(av[i], a + 8 * i);
        }
        if (loads) HONE_FETCH(bv[j], b + 8 * j);
    }
}
INLINE void tile(int m, int64_t k, const uint16_t *a, const uint16_t *b, float *c, ptrdiff_t c_step,
                 bool more, const hone_gemm_args *ends, int64_t row) {
    /* [row][column] of two each: side by side they are four columns of a row, and of the other */
    float32x4_t s[MR / 2][NR / 2];
    FULL for (int i = 0; i < m / 2; i++) FULL for (int j = 0; j < NR / 2; j += 2) {
        const float *up = c + 2 * i * c_step + 2 * j;
        if (more) {
            const vec here = load(up), below = load(up + c_step);
            s[i][j] = (float32x4_t)BESIDE(vzip1q_f64, here, below),
            s[i][j + 1] = (float32x4_t)BESIDE(vzip2q_f64, here, below);
        } else s[i][j] = s[i][j + 1] = vdupq_n_f32(0);
    }
    uint16x8_t av[MR / 2], bv[NR / 2];
    FULL for (int j = 0; j < NR / 2; j++) HONE_FETCH(bv[j], b + 8 * j);
    FULL for (int i = 0; i < m / 2; i++) HONE_FETCH(av[i], a + 8 * i);
    for (int64_t left = k / GROUP - 1; left;) { /* NOLINT(bugprone-infinite-loop): it is counted by ADVANCE */
        HONE_ADVANCE(a, GROUP * m * sizeof *a);
        HONE_ADVANCE(b, GROUP * NR * sizeof *b);
        HONE_ADVANCE(left, -1);
        step(m, true, s, av, bv, a, b);
    }
    step(m, false, s, av, bv, a, b);
    FULL for (int i = 0; i < m / 2; i++) {
        vec up[2], down[2];
        FULL for (int j = 0; j < 2; j++) up[j] = BESIDE(vzip1q_f64, s[i][2 * j], s[i][2 * j + 1]),
                                         down[j] = BESIDE(vzip2q_f64, s[i][2 * j], s[i][2 * j + 1]);
        if (ends) {
            finish_row(up, ends, row + 2 * i);
            if (row + 2 * i + 1 < ends->m) finish_row(down, ends, row + 2 * i + 1);
        } else
            FULL for (int j = 0; j < 2; j++) store(c + 2 * i * c_step + j * VW, up[j]),
                store(c + (2 * i + 1) * c_step + j * VW, down[j]);
    }
}
INLINE void blocks(int64_t m, int64_t k, const uint16_t *a, const uint16_t *b, float *c, ptrdiff_t c_step,
                   bool more, const hone_gemm_args *ends) {
#define CASE(i) \
    case i: tile(i, k, a, b, c, c_step, more, ends, row); break;
    for (int64_t row = 0, high; row < m; row += high, a += high * k, c += high * c_step) {
        high = hone_gemm_half_high(MR, ROWS, m - row);
        switch (high) {
            CASE(2)
            CASE(4)
            CASE(6)
            CASE(8)
            CASE(10)
        }
    }
#undef CASE
}
static bool run(int64_t m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c,
                ptrdiff_t c_step, bool more) {
    (void)a_step;
    blocks(m, k, a, b, c, c_step, more, NULL);
    return true;
}
static void finish(int64_t m, int64_t k, const uint16_t *a, const uint16_t *b, float *c, ptrdiff_t c_step,
                   bool more, const hone_gemm_args *ends) {
    const hone_gemm_args own = *ends; /* so that no store can change it */
    blocks(m, k, a, b, c, c_step, more, &own);
}
extern const hone_gemm_half hone_gemm_bf16__bf16;
const hone_gemm_half hone_gemm_bf16__bf16 = {"hone_gemm_bf16__bf16",
                                             HONE_DTYPE_BF16,
                                             HONE_CPU_BF16,
                                             ROWS,
                                             NR,
                                             GROUP,
                                             GROUP,
                                             3,
                                             HONE_DTYPE_F32,
                                             "by bfmmla, sums f32",
                                             run,
                                             narrow,
                                             NULL,
                                             0,
                                             NULL,
                                             NULL,
                                             MR,
                                             lay,
                                             finish};
#else
typedef int hone_gemm_bf16__bf16_not_here;
#endif
