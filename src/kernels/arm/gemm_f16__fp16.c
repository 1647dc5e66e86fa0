/* SPDX-License-Identifier: Apache-2.0
   gemm_f16, NEON with fp16: fmla has 8 products and sums, twice those of f32; sums of f16 are short, as gemm_half.h says. A value of A is a lane of its row:

        b, b'            16 columns
   a    s00 s01          32 registers: 16 sums (8 rows: as many as four units of latency 4 want), 8 of A (a row's 8 values of K), 2 of B
   ⋮
   a    s70 s71          8 values of K: 24 loads, 128 products of 8. Empty on other architectures. */
#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#include <arm_neon.h>

#include "base/thread.h"
#include "kernels/gemm_half.h"
#define VW 4
#include "kernels/ref/vec.inc"
#include "kernels/ref/half.inc"
#define MR 8
#define ROWS 1
enum { LANES = 8, NR = 16, NV = NR / LANES };
INLINE float16x8_t load_h(const uint16_t *p) { return vreinterpretq_f16_u16(vld1q_u16(p)); }
/* s + b * lane q of a. By its intrinsic gcc 12 copies a lane that it uses twice into a register of its own, and runs out of registers. Volatile keeps their order: one chain after
   another would wait for each sum. */
#define TIMES(s, b, a, q) __asm__ volatile("fmla %0.8h, %1.8h, %2.h[" #q "]" : "+w"(s) : "w"(b), "x"(a))
#define LANE(q) /* one of 8 values of K */                                          \
    {                                                                               \
        const float16x8_t b0 = load_h(b + (q)*NR), b1 = load_h(b + (q)*NR + LANES); \
        FULL for (int i = 0; i < m; i++) {                                          \
            TIMES(s[i][0], b0, av[i], q);                                           \
            TIMES(s[i][1], b1, av[i], q);                                           \
        }                                                                           \
    }
INLINE bool tile(int m, int64_t k, const uint16_t *a, ptrdiff_t a_step, const uint16_t *b, float *c, ptrdiff_t c_step, bool more) {
    float32x4_t zero = vdupq_n_f32(0); /* and NaN where a sum is not finite */
    int64_t k0 = 0;
    do {
        const int64_t end = k - k0 < HONE_HALF_SHORT ? k : k0 + HONE_HALF_SHORT;
        const bool add = more || k0;
        float16x8_t s[MR][NV];
        FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < NV; j++) s[i][j] = vdupq_n_f16(0);
        for (int64_t p = k0; p < end; p += LANES, b += LANES * NR) {
            float16x8_t av[MR];
            FULL for (int i = 0; i < m; i++) av[i] = load_h(a + i * a_step + p);
            LANE(0)
            LANE(1)
            LANE(2)
            LANE(3)
            LANE(4)
            LANE(5)
            LANE(6)
            LANE(7)
        }
        k0 = end;
        FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < NV; j++) {
            float *to = c + i * c_step + j * LANES;
            float32x4_t low = vcvt_f32_f16(vget_low_f16(s[i][j])), high = vcvt_high_f32_f16(s[i][j]);
            if (add) low = vaddq_f32(low, vld1q_f32(to)), high = vaddq_f32(high, vld1q_f32(to + VW));
            vst1q_f32(to, low), vst1q_f32(to + VW, high);
            if (k0 == k) zero = vfmaq_n_f32(vfmaq_n_f32(zero, low, 0), high, 0);
        }
    } while (k0 < k);
    return vaddvq_f32(zero) == 0;
}
#define TILE tile
#define RUN run
#include "kernels/ref/gemm_half.inc"
extern const hone_gemm_half hone_gemm_f16__fp16;
const hone_gemm_half hone_gemm_f16__fp16 = {"hone_gemm_f16__fp16",
                                            HONE_DTYPE_F16,
                                            HONE_CPU_FP16,
                                            ROWS,
                                            NR,
                                            1,
                                            LANES,
                                            2,
                                            HONE_DTYPE_F16,
                                            "by NEON, up to 32 products added in f16, these sums in f32",
                                            run,
                                            narrow_f16,
                                            NULL,
                                            NULL,
                                            NULL};
#else
typedef int hone_gemm_f16__fp16_not_here;
#endif
