/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, NEON with dot products: sdot adds four products of i8 and i8 to each of four sums. It takes the
   four values of A by lane, so a step of 8 rows and 12 columns is five loads and 24 dot products: 24 sums,
   three registers of B and two of A. A row of A broadcast by a load of its own took a vector unit besides. */
#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

#include "kernels/gemm.h"
#define VW 4
#include "kernels/ref/vec.inc"

enum { MR = 8, NR = 12, NV = NR / VW };
hone_gemm_i8_fn hone_gemm_i8_8x12__dotprod;
hone_gemm_i8_some_fn hone_gemm_some__dotprod;

/* s[i][j] += four values of row i, which is lane i % 4 of av, times four rows of column block j */
#define ROW(i, lane, av)                                                                            \
    if ((i) < m) {                                                                                  \
        FULL for (int j = 0; j < nv; j++) __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : \
                                                           "+w"(s[i][j]) : "w"(bv[j]), "w"(av));    \
    }
#define STEP                                                                                          \
    do {                                                                                              \
        ROW(0, 0, low)                                                                                \
        ROW(1, 1, low)                                                                                \
        ROW(2, 2, low) ROW(3, 3, low) ROW(4, 0, high) ROW(5, 1, high) ROW(6, 2, high) ROW(7, 3, high) \
    } while (0)
INLINE void tile(int m, int nv, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                 ptrdiff_t c_stride) {
    int32x4_t s[MR][NV];
    FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < nv; j++) s[i][j] = vdupq_n_s32(0);
    for (int64_t p = 0; p < groups; p++, a += 4 * MR, b += 4 * NR) {
        int8x16_t bv[NV], low = vld1q_s8(a), high = m > 4 ? vld1q_s8(a + 16) : low;
        FULL for (int j = 0; j < nv; j++) bv[j] = vreinterpretq_s8_u8(vld1q_u8(b + 16 * j));
        STEP;
    }
    FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < nv; j++)
        vst1q_s32(c + i * c_stride + j * VW, s[i][j]);
}
void hone_gemm_i8_8x12__dotprod(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                                ptrdiff_t c_stride) {
    switch (m) {
    case 1: tile(1, NV, groups, a, b, c, c_stride); break;
    case 2: tile(2, NV, groups, a, b, c, c_stride); break;
    case 3: tile(3, NV, groups, a, b, c, c_stride); break;
    case 4: tile(4, NV, groups, a, b, c, c_stride); break;
    case 5: tile(5, NV, groups, a, b, c, c_stride); break;
    case 6: tile(6, NV, groups, a, b, c, c_stride); break;
    case 7: tile(7, NV, groups, a, b, c, c_stride); break;
    case 8: tile(8, NV, groups, a, b, c, c_stride); break;
    }
}
/* Eight rows of one or two vectors; fewer rows, or all three, as above. */
void hone_gemm_some__dotprod(int m, int64_t groups, const int8_t *a, const uint8_t *b, int n, int32_t *c,
                             ptrdiff_t c_stride) {
    if (m == MR && n <= VW) tile(MR, 1, groups, a, b, c, c_stride);
    else if (m == MR && n <= 2 * VW) tile(MR, 2, groups, a, b, c, c_stride);
    else hone_gemm_i8_8x12__dotprod(m, groups, a, b, c, c_stride);
}
#else
typedef int hone_empty; /* another architecture */
#endif
