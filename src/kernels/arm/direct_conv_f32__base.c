/* SPDX-License-Identifier: Apache-2.0
   direct_conv_f32, NEON: 24 sums, 3 registers of pixels, 2 of weights, each loaded again behind its last use
   (gemm_f32.inc says why). Empty on other architectures. */
#if defined(__aarch64__)
#include "kernels/arm/ordered.h"
#include "kernels/direct_conv.h"
#define VW 4
#include "kernels/ref/vec.inc"

enum { MOST = HONE_DIRECT_CONV_ROWS, WIDE = HONE_DIRECT_CONV_COLUMNS / VW };
#define ROW_LANE(i, q) \
    if ((i) < m) HONE_TIMES_LANE(s[i][j], b[j], a[(i) / VW], q);
/* One value of K; more: those of the next one are loaded. m and nv are constants at every call. */
INLINE void step(int m, int nv, bool more, vec s[MOST][WIDE], vec a[2], vec b[WIDE], const float *next_a,
                 const float *next_b) {
    FULL for (int j = 0; j < nv; j++) {
        ROW_LANE(0, 0)
        ROW_LANE(1, 1) ROW_LANE(2, 2) ROW_LANE(3, 3) if (more && j == nv - 1) HONE_FETCH(a[0], next_a);
        ROW_LANE(4, 0)
        ROW_LANE(5, 1)
        ROW_LANE(6, 2) ROW_LANE(7, 3) if (more && j == nv - 1 && m > VW) HONE_FETCH(a[1], next_a + VW);
        if (more) HONE_FETCH(b[j], next_b + j * VW);
    }
}
INLINE void tile(int m, int nv, const hone_gemm_args *w) {
    enum { AHEAD = 4 };
    vec s[MOST][WIDE], a[2], b[WIDE];
    const int64_t *at = w->at_b;
    const float *from = w->packed_a, *pixels = w->b;
    const int high = HONE_GEMM_PACKED_M(m);
    int64_t k = w->k;
    FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < nv; j++) s[i][j] = nothing();
    FULL for (int j = 0; j < nv; j++) HONE_FETCH(b[j], pixels + at[0] + j * VW);
    FULL for (int i = 0; i < high / VW; i++) HONE_FETCH(a[i], from + i * VW);
    for (; k > AHEAD; k -= AHEAD, at += AHEAD, from += AHEAD * high)
        FULL for (int u = 1; u <= AHEAD; u++) step(m, nv, true, s, a, b, from + u * high, pixels + at[u]);
    for (; k > 1; k--, at++, from += high) step(m, nv, true, s, a, b, from + high, pixels + at[1]);
    step(m, nv, false, s, a, b, from, pixels);

    /* else the last vector is stored in part */
    const int whole = w->n == nv * VW, rest = w->n - (nv - 1) * VW;
#define AT(p, j) (whole || (j) < nv - 1 ? load((p) + (j)*VW) : load_some((p) + (j)*VW, rest))
    if (w->epilogue && w->bias_m) {
        FULL for (int i = 0; i < m; i++) {
            const vec x = splat(w->bias_m[i]);
            FULL for (int j = 0; j < nv; j++) s[i][j] += x;
        }
    }
    if (w->epilogue && w->bias_n) {
        FULL for (int j = 0; j < nv; j++) {
            const vec x = AT(w->bias_n, j);
            FULL for (int i = 0; i < m; i++) s[i][j] += x;
        }
    }
    if (w->epilogue && w->residual) {
        FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < nv; j++) s[i][j] +=
            AT(w->residual[i] + w->c_from, j);
    }
    if (w->epilogue && w->clamp) {
        const vec lo = splat(w->lo), hi = splat(w->hi);
        FULL for (int i = 0; i < m; i++) FULL for (int j = 0; j < nv; j++) s[i][j] =
            at_most(at_least(s[i][j], lo), hi);
    }
#undef AT
    FULL for (int i = 0; i < m; i++) {
        float *c = w->c[i] + w->c_from;
        FULL for (int j = 0; j < nv - 1; j++) store(c + j * VW, s[i][j]);
        if (whole) store(c + (nv - 1) * VW, s[i][nv - 1]);
        else store_some(c + (nv - 1) * VW, s[i][nv - 1], rest);
    }
}
#define CASE(m) \
    case m: tile(m, nv, w); break;
INLINE void rows(int nv, const hone_gemm_args *w) {
    switch (w->m) { CASE(1) CASE(2) CASE(3) CASE(4) CASE(5) CASE(6) CASE(7) CASE(8) }
}
hone_gemm_f32_fn hone_direct_conv_f32__base;
void hone_direct_conv_f32__base(const hone_gemm_args *w) {
    if (w->n > 2 * VW) rows(3, w);
    else if (w->n > VW) rows(2, w);
    else rows(1, w);
}
#else
typedef int hone_direct_conv_f32__base_not_here;
#endif
