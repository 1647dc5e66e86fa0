/* SPDX-License-Identifier: Apache-2.0
   gemm_i8_indirect__dotprod, NEON with dot products: rows of A are multiplied where they lie (gemm.h).
   Sixteen bytes of a row are four groups, each a lane of one register, so nothing is copied or transposed
   first: four rows and sixteen columns are sixteen sums, and a step of 16 values of K is 20 loads, 4 flips
   and 64 dot products. Of a last panel only the vectors that have columns are computed. */
#if defined(__ARM_FEATURE_DOTPROD)
#include <arm_neon.h>

#include "kernels/gemm.h"
#define VW 4
#include "kernels/ref/vec.inc"

enum { MR = 4, NR = 16, NV = NR / VW };
hone_gemm_i8_fn hone_gemm_i8_4x16__dotprod;
hone_gemm_i8_indirect_fn hone_gemm_i8_indirect__dotprod;

/* s[i][j] += four values of row i, which are lane `lane` of r[i], times four rows of column block j */
#define ONE(i, lane)                                                                            \
    FULL for (int j = 0; j < nv; j++) __asm__ volatile("sdot %0.4s, %1.16b, %2.4b[" #lane "]" : \
                                                       "+w"(s[i][j]) : "w"(bv[j]), "w"(r[i]));
#define GROUP(lane)                                                                     \
    do {                                                                                \
        int8x16_t bv[NV];                                                               \
        FULL for (int j = 0; j < nv; j++) bv[j] = vld1q_s8((const int8_t *)b + 16 * j); \
        ONE(0, lane) ONE(1, lane) ONE(2, lane) ONE(3, lane) b += 4 * NR;                \
    } while (0)
#define ROWS(load) FULL for (int i = 0; i < MR; i++) r[i] = vreinterpretq_s8_u8(veorq_u8(load, over))
INLINE uint8x16_t four(const uint8_t *p) {
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return vreinterpretq_u8_u32(vdupq_n_u32(v));
}
INLINE void quad(int nv, const hone_gemm_i8_indirect *g, const int64_t *row, const uint32_t *outside,
                 const uint8_t *b, int32_t *const *c) {
    const int64_t piece = g->piece;
    const uint8x16_t over = vdupq_n_u8(g->flip);
    int32x4_t s[MR][NV];
    int8x16_t r[MR];
    FULL for (int i = 0; i < MR; i++) FULL for (int j = 0; j < nv; j++) s[i][j] = vdupq_n_s32(0);
    for (int64_t t = 0; t < g->taps; t++) {
        const uint8_t *p[MR];
        FULL for (int i = 0; i < MR; i++) p[i] = outside[i] >> t & 1 ? g->beyond : g->a + row[i] + g->at[t];
        int64_t k = 0;
        for (; k + 16 <= piece; k += 16) {
            ROWS(vld1q_u8(p[i] + k));
            GROUP(0);
            GROUP(1);
            GROUP(2);
            GROUP(3);
        }
        if (piece & 8) {
            ROWS(vcombine_u8(vld1_u8(p[i] + k), vdup_n_u8(0)));
            GROUP(0);
            GROUP(1);
            k += 8;
        }
        if (piece & 4) {
            ROWS(four(p[i] + k));
            GROUP(0);
        }
    }
    FULL for (int i = 0; i < MR; i++) FULL for (int j = 0; j < nv; j++) vst1q_s32(c[i] + j * VW, s[i][j]);
}
void hone_gemm_i8_indirect__dotprod(const hone_gemm_i8_indirect *g, const uint8_t *b, int n, int32_t *c,
                                    ptrdiff_t c_stride) {
    for (int64_t i = 0; i < g->m; i += MR) {
        int64_t row[MR];
        uint32_t outside[MR];
        int32_t *to[MR];
        for (int q = 0; q < MR; q++) { /* past the last row: that one again */
            const int64_t own = i + q < g->m ? i + q : g->m - 1;
            row[q] = g->row[own], outside[q] = g->outside ? g->outside[own] : 0, to[q] = c + own * c_stride;
        }
        switch ((n + VW - 1) / VW) {
        case 1: quad(1, g, row, outside, b, to); break;
        case 2: quad(2, g, row, outside, b, to); break;
        case 3: quad(3, g, row, outside, b, to); break;
        default: quad(4, g, row, outside, b, to); break;
        }
    }
}
#undef ROWS
#undef GROUP
#undef ONE
/* Rows in panels, as other kernels take them: for factors whose rows must be summed besides. */
void hone_gemm_i8_4x16__dotprod(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                                ptrdiff_t c_stride) {
    int32x4_t s[MR][NV];
    FULL for (int i = 0; i < MR; i++) FULL for (int j = 0; j < NV; j++) s[i][j] = vdupq_n_s32(0);
    for (int64_t p = 0; p < groups; p++, a += 4 * MR, b += 4 * NR) {
        const int8x16_t r = vld1q_s8(a);
        int8x16_t bv[NV];
        FULL for (int j = 0; j < NV; j++) bv[j] = vld1q_s8((const int8_t *)b + 16 * j);
#define ONE(i) FULL for (int j = 0; j < NV; j++) s[i][j] = vdotq_laneq_s32(s[i][j], bv[j], r, i);
        ONE(0) ONE(1) ONE(2) ONE(3)
#undef ONE
    }
    for (int i = 0; i < m; i++)
        for (int j = 0; j < NV; j++)
            vst1q_s32(c + i * c_stride + j * VW, i == 0   ? s[0][j]
                                                 : i == 1 ? s[1][j]
                                                 : i == 2 ? s[2][j]
                                                          : s[3][j]);
}
#else
typedef int hone_empty; /* another architecture */
#endif
