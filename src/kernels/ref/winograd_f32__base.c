/* SPDX-License-Identifier: Apache-2.0
   winograd_f32__base: the transforms of convolutions by tiles for what every CPU of the architecture has; and that of filters, which is done once a model. */
#if defined(__aarch64__) && \
    !defined(__clang__) /* gcc 12 puts so much of a transform ahead that registers run out: 110 cycles a vector instead of 90 */
#pragma GCC optimize("no-schedule-insns")
#endif
#define VW 4
#define ISA base
#include "kernels/ref/winograd_f32.inc"

/* row p: 1, p, p^2 … over the product of p - q, all other points q; the last one, infinity: the highest power only */
static void points_of(int edge, int taps, double row[HONE_WINOGRAD_EDGE][HONE_WINOGRAD_MOST]) {
    static const double all[][HONE_WINOGRAD_EDGE - 1] = {{0, 1, -1}, {0, 0.625, -0.625, 1.5, -1.5}, {0, 0.5, -0.5, 1, -1, 2, -2}};
    const double *point = all[edge / 2 - 2];
    for (int i = 0; i < edge - 1; i++) {
        double less = 1, power = 1;
        for (int k = 0; k < edge - 1; k++)
            if (k != i) less *= point[i] - point[k];
        for (int t = 0; t < taps; t++, power *= point[i]) row[i][t] = power / less;
    }
    for (int t = 0; t < taps; t++) row[edge - 1][t] = t == taps - 1;
}
hone_winograd_g hone_winograd_g_of(int size, bool line, int taps) {
    hone_winograd_g g = {.down = line ? 1 : hone_winograd_tall(size), .across = hone_winograd_edge(size), .taps = taps, .y = {{1}}};
    if (!line) points_of(g.down, taps, g.y);
    points_of(g.across, taps, g.x);
    return g;
}
/* `taps` is a constant at every call. */
INLINE void filters(int taps, const hone_winograd_g *w, const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u, ptrdiff_t apart) {
    double half[HONE_WINOGRAD_MOST][HONE_WINOGRAD_FILTERS];
    for (int y = 0; y < w->down; y++) {
        const double *down = w->y[y];
        for (int k = 0; k < taps; k++)
            for (int j = 0; j < n; j++) {
                double sum = down[0] * (double)g[k][j];
                FULL for (int t = 1; t < taps; t++) sum += down[t] * (double)g[taps * t + k][j];
                half[k][j] = sum;
            }
        for (int x = 0; x < w->across; x++)
            for (int j = 0; j < n; j++) {
                double sum = w->x[x][0] * half[0][j];
                FULL for (int t = 1; t < taps; t++) sum += w->x[x][t] * half[t][j];
                u[(y * w->across + x) * apart + j] = (float)sum;
            }
    }
}
static void filters_line(const hone_winograd_g *w, const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u, ptrdiff_t apart) {
    for (int x = 0; x < w->across; x++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int t = 0; t < w->taps; t++) sum += w->x[x][t] * (double)g[t][j];
            u[x * apart + j] = (float)sum;
        }
}
void hone_winograd_filters(const hone_winograd_g *w, const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u, ptrdiff_t apart) {
    if (w->down == 1) filters_line(w, g, n, u, apart);
    else if (w->taps == 3) filters(3, w, g, n, u, apart);
    else if (w->taps == 2) filters(2, w, g, n, u, apart);
    else if (w->taps == 4) filters(4, w, g, n, u, apart);
    else filters(5, w, g, n, u, apart);
}
