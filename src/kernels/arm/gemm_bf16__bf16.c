/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, NEON with bf16: bfmmla multiplies two rows of four values of A with two columns of four of B and adds to a 2 by 2 block of sums.
   32 registers: 16 blocks of sums (8 rows, 8 columns), 4 of B, one of A. Empty on other architectures. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#include <arm_neon.h>

#include "base/thread.h"
#include "kernels/gemm_half.h"
#define VW 4
#include "kernels/ref/vec.inc"

#define MR 8
#define ROWS 2
enum { NR = 8, GROUP = 4 };
static void narrow(const float *x, uint16_t *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) vst1_u16(y + i, vreinterpret_u16_bf16(vcvt_bf16_f32(vld1q_f32(x + i))));
    for (; i < n; i++) vst1_lane_u16(y + i, vreinterpret_u16_bf16(vcvt_bf16_f32(vdupq_n_f32(x[i]))), 0);
}
INLINE bool tile(int m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c, ptrdiff_t c_step, bool more) {
    float32x4_t s[MR / 2][NR / 2];
    FULL for (int i = 0; i < m / 2; i++) FULL for (int j = 0; j < NR / 2; j++) {
        const float *up = c + 2 * i * c_step + 2 * j;
        s[i][j] = more ? vcombine_f32(vld1_f32(up), vld1_f32(up + c_step)) : vdupq_n_f32(0);
    }
    for (int64_t p = 0; p < k; p += GROUP, b += GROUP * NR) {
        bfloat16x8_t bv[NR / 2];
        FULL for (int j = 0; j < NR / 2; j++) bv[j] = vreinterpretq_bf16_u16(vld1q_u16(b + 8 * j));
        FULL for (int i = 0; i < m / 2; i++) {
            const uint16_t *up = a + 2 * i * a_step + p;
            const bfloat16x8_t av = vreinterpretq_bf16_u16(vcombine_u16(vld1_u16(up), vld1_u16(up + a_step)));
            FULL for (int j = 0; j < NR / 2; j++) s[i][j] = vbfmmlaq_f32(s[i][j], av, bv[j]);
        }
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
                                             HONE_DTYPE_F32,         "by bfmmla, sums f32", run,           narrow, NULL, NULL,  NULL};
#else
typedef int hone_gemm_bf16__bf16_not_here;
#endif
