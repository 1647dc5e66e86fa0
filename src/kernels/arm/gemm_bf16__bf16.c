/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, NEON with bf16: bfmmla multiplies two rows of four values of A with two columns of four of B and adds to a 2 by 2 block of sums. Pairs of rows lie so
   that one load brings both: to put them together in the loop takes the units that multiply.
   32 registers: 20 blocks of sums (10 rows, 8 columns), 4 of B, 5 of A. Empty on other architectures. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>

#include "base/thread.h"
#include "kernels/arm/ordered.h"
#include "kernels/gemm_half.h"
#define VW 4
#include "kernels/ref/vec.inc"

#define MR 10
#define ROWS 2
enum { NR = 8, GROUP = 4 };
static void narrow(const float *x, uint16_t *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) vst1_u16(y + i, vreinterpret_u16_bf16(vcvt_bf16_f32(vld1q_f32(x + i))));
    for (; i < n; i++) vst1_lane_u16(y + i, vreinterpret_u16_bf16(vcvt_bf16_f32(vdupq_n_f32(x[i]))), 0);
}
static void lay(int64_t k, const uint16_t *from, ptrdiff_t step, uint16_t *to) { /* pairs of rows, four values of each in turn */
    for (int64_t p = 0; p < k; p += GROUP, to += 2 * GROUP)
        vst1_u16(to, vld1_u16(from + p)), vst1_u16(to + GROUP, vld1_u16(from + step + p));
}
/* Each register is loaded again right behind its last use, and what is no product stands at the begin of a step: gcc's order, all loads first, has 229 GFLOP/s where this has 242
   (96 rows of K 512; 258 where rows are in L1, too). Why places matter on a Neoverse-V1: gemm_f32.inc. */
#define TIMES(s, a, b) __asm__ volatile("bfmmla %0.4s, %1.8h, %2.8h" : "+w"(s) : "w"(a), "w"(b))
INLINE bool tile(int m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c, ptrdiff_t c_step, bool more) {
    float32x4_t s[MR / 2][NR / 2]; /* [row][column] of two each: side by side they are four columns of a row, and of the other */
#define BESIDE(f, x, y) vreinterpretq_f32_f64(f(vreinterpretq_f64_f32(x), vreinterpretq_f64_f32(y)))
    FULL for (int i = 0; i < m / 2; i++) FULL for (int j = 0; j < NR / 2; j += 2) {
        const float *up = c + 2 * i * c_step + 2 * j;
        if (more) {
            const float32x4_t row = vld1q_f32(up), below = vld1q_f32(up + c_step);
            s[i][j] = BESIDE(vzip1q_f64, row, below), s[i][j + 1] = BESIDE(vzip2q_f64, row, below);
        } else s[i][j] = s[i][j + 1] = vdupq_n_f32(0);
    }
    if (k) {
        const char *next = (const char *)(a + m * a_step); /* the rows after these: asked for meanwhile */
        uint16x8_t av[MR / 2], bv[NR / 2];
        const uint16_t *pair[MR / 2];
        ptrdiff_t at = 0;
        FULL for (int i = 0; i < m / 2; i++) pair[i] = a + 2 * i * a_step;
        FULL for (int j = 0; j < NR / 2; j++) FETCH(bv[j], b + 8 * j);
        FULL for (int i = 0; i < m / 2; i++) FETCH(av[i], pair[i]);
        for (int64_t left = k / GROUP - 1; left; next += 2 * GROUP * m) { /* NOLINT(bugprone-infinite-loop): it is counted by ADVANCE */
            ADVANCE(at, GROUP * ROWS * sizeof *a);
            ADVANCE(b, GROUP * NR * sizeof *b);
            ADVANCE(left, -1);
            FULL for (int j = 0; j < NR / 2; j++) {
                FULL for (int i = 0; i < m / 2; i++) {
                    TIMES(s[i][j], av[i], bv[j]);
                    if (j == NR / 2 - 1) FETCH(av[i], (const char *)pair[i] + at);
                }
                if (j == 0) ASK(next, 0);
                FETCH(bv[j], b + 8 * j);
            }
        }
        FULL for (int j = 0; j < NR / 2; j++) FULL for (int i = 0; i < m / 2; i++) TIMES(s[i][j], av[i], bv[j]);
    }
    FULL for (int i = 0; i < m / 2; i++) FULL for (int j = 0; j < NR / 2; j += 2) {
        float *up = c + 2 * i * c_step + 2 * j;
        vst1q_f32(up, BESIDE(vzip1q_f64, s[i][j], s[i][j + 1])), vst1q_f32(up + c_step, BESIDE(vzip2q_f64, s[i][j], s[i][j + 1]));
    }
    return true;
}
#define TILE tile
#define RUN run
#include "kernels/ref/gemm_half.inc"
extern const hone_gemm_half hone_gemm_bf16__bf16;
const hone_gemm_half hone_gemm_bf16__bf16 = {"hone_gemm_bf16__bf16", HONE_DTYPE_BF16,       HONE_CPU_BF16, ROWS,   NR,   GROUP, GROUP, 3,
                                             HONE_DTYPE_F32,         "by bfmmla, sums f32", run,           narrow, NULL, NULL,  NULL,  lay};
#else
typedef int hone_gemm_bf16__bf16_not_here;
#endif
