/* SPDX-License-Identifier: Apache-2.0
   gemm_i8_indirect__vnni, AVX-512 VNNI: rows of A are multiplied where they lie (gemm.h). Four bytes of a row
   go from memory into every lane, so to copy rows into panels first saves nothing: twelve rows, because as
   many pointers and those of the loop are the registers there are, and 32 columns are 24 sums; four values of
   K are 14 loads and 24 dot products, which take longer; so weights, which come from far where there are
   many, are prefetched. Bytes that are flipped cost an operation each on the ports that multiply. */
#if defined(__AVX512VNNI__)
#include <immintrin.h>

#include "kernels/gemm.h"
#define VW 16
#include "kernels/ref/vec.inc"

enum { MR = 12, NR = 32, NV = NR / VW, AHEAD = 12 };
hone_gemm_i8_indirect_fn hone_gemm_i8_indirect__vnni;

INLINE __m512i four(const uint8_t *p) {
    int32_t v;
    memcpy(&v, p, sizeof v);
    return _mm512_set1_epi32(v);
}
/* m rows from row `first` on; past the last one it is that one again. nv: of the panel's vectors */
INLINE void block(int m, int nv, bool flip, const hone_gemm_i8_indirect *g, int64_t first, const uint8_t *b,
                  int32_t *c, ptrdiff_t c_stride) {
    const __m512i over = _mm512_set1_epi8((char)g->flip);
    __m512i s[MR][NV];
    int64_t own[MR];
    FULL for (int i = 0; i < m; i++) own[i] = first + i < g->m ? first + i : g->m - 1;
    FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < nv; j++) s[i][j] = _mm512_setzero_si512();
    for (int64_t t = 0; t < g->taps; t++) {
        const uint8_t *p[MR];
        FULL for (int i = 0; i < m; i++) {
            const bool out = g->outside && g->outside[own[i]] >> t & 1;
            p[i] = out ? g->beyond : g->a + g->row[own[i]] + g->at[t];
        }
        for (int64_t k = 0; k < g->piece; k += 4, b += 4 * NR) {
            __m512i bv[NV];
            FULL for (int j = 0; j < nv; j++)
                _mm_prefetch((const char *)b + 4 * NR * AHEAD + 4 * VW * j, _MM_HINT_T0);
            FULL for (int j = 0; j < nv; j++) bv[j] = _mm512_loadu_si512(b + 4 * VW * j);
            FULL for (int i = 0; i < m; i++) {
                const __m512i av = flip ? _mm512_xor_si512(four(p[i] + k), over) : four(p[i] + k);
                FULL for (int j = 0; j < nv; j++) s[i][j] = _mm512_dpbusd_epi32(s[i][j], av, bv[j]);
            }
        }
    }
    FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < nv; j++)
        _mm512_storeu_si512(c + own[i] * c_stride + j * VW, s[i][j]);
}
#define CASE(m) \
    case m: block(m, nv, flip, g, i, b, c, c_stride); break;
INLINE void all(int nv, bool flip, const hone_gemm_i8_indirect *g, const uint8_t *b, int32_t *c,
                ptrdiff_t c_stride) {
    /* blocks of about as many rows: few rows wait for their own sums */
    for (int64_t i = 0, high; i < g->m; i += high) {
        const int64_t left = g->m - i, blocks = (left + MR - 1) / MR;
        high = ((left + blocks - 1) / blocks + 1) / 2 * 2;
        switch (high) {
            CASE(2)
            CASE(4)
            CASE(6)
            CASE(8)
            CASE(10)
        default: block(MR, nv, flip, g, i, b, c, c_stride);
        }
    }
}
#undef CASE
void hone_gemm_i8_indirect__vnni(const hone_gemm_i8_indirect *g, const uint8_t *b, int n, int32_t *c,
                                 ptrdiff_t c_stride) {
    if (n <= VW) g->flip ? all(1, true, g, b, c, c_stride) : all(1, false, g, b, c, c_stride);
    else if (g->flip) all(NV, true, g, b, c, c_stride);
    else all(NV, false, g, b, c, c_stride);
}
#else
typedef int hone_empty; /* another architecture */
#endif
