/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, NEON with bf16: bfmmla multiplies two rows of four values of A with two columns of four of B and adds to a 2 by 2 block of sums. Pairs of rows lie so
   that one load brings both: to put them together in the loop takes the units that multiply.
   32 registers: 20 blocks of sums (10 rows, 8 columns), 4 of B, 5 of A. Empty on other architectures. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>

#include "base/thread.h"
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
INLINE bool tile(int m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c, ptrdiff_t c_step, bool more) {
    float32x4_t s[MR / 2][NR / 2];
    FULL for (int i = 0; i < m / 2; i++) FULL for (int j = 0; j < NR / 2; j++) {
        const float *up = c + 2 * i * c_step + 2 * j;
        s[i][j] = more ? vcombine_f32(vld1_f32(up), vld1_f32(up + c_step)) : vdupq_n_f32(0);
    }
    const char *next = (const char *)(a + m * a_step); /* the rows after these: asked for meanwhile */
    for (int64_t p = 0; p < k; p += GROUP, a += GROUP * ROWS, b += GROUP * NR, next += 2 * GROUP * m) {
        __builtin_prefetch(next);
        bfloat16x8_t av[MR / 2], bv[NR / 2];
        FULL for (int i = 0; i < m / 2; i++) av[i] = vreinterpretq_bf16_u16(vld1q_u16(a + 2 * i * a_step));
        FULL for (int j = 0; j < NR / 2; j++) bv[j] = vreinterpretq_bf16_u16(vld1q_u16(b + 8 * j));
        FULL for (int i = 0; i < m / 2; i++) FULL for (int j = 0; j < NR / 2; j++) s[i][j] = vbfmmlaq_f32(s[i][j], av[i], bv[j]);
    }
    FULL for (int i = 0; i < m / 2; i++) FULL for (int j = 0; j < NR / 2; j++) {
        float *up = c + 2 * i * c_step + 2 * j;
        vst1_f32(up, vget_low_f32(s[i][j])), vst1_f32(up + c_step, vget_high_f32(s[i][j]));
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
