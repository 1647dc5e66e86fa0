/* SPDX-License-Identifier: Apache-2.0
   winograd_f32__base: the transforms of convolutions by tiles for what every CPU of the architecture has; and
   that of filters, which is done once a model. */
/* gcc 12 puts so much of a transform ahead that registers run out: 110 cycles a vector instead of 90 */
#if defined(__aarch64__) && !defined(__clang__)
#pragma GCC optimize("no-schedule-insns")
#endif
#define VW 4
#define ISA base
#include "kernels/ref/winograd_f32.inc"

#include <string.h>

/* row p: 1, p, p^2 … over the product of p - q, all other points q; the last one, infinity: the highest power
   only */
static void points_of(int edge, int taps, double row[HONE_WINOGRAD_EDGE][HONE_WINOGRAD_MOST]) {
    static const double all[][HONE_WINOGRAD_EDGE - 1] = {
        {0, 1, -1}, {0, 0.625, -0.625, 1.5, -1.5}, {0, 0.5, -0.5, 1, -1, 2, -2}};
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
    hone_winograd_g g = {.down = line ? 1 : hone_winograd_tall(size),
                         .across = hone_winograd_edge(size),
                         .taps = taps,
                         .y = {{1}}};
    if (!line) points_of(g.down, taps, g.y);
    points_of(g.across, taps, g.x);
    return g;
}
/* One way of four filters: point 0 sees the first tap only, infinity the last one, and p and -p differ in the
   sign of odd ones. taps and edge: constants at every call. */
enum { FOUR = 4 };
typedef double numbers __attribute__((vector_size(FOUR * 8)));
typedef float floats __attribute__((vector_size(FOUR * 4)));
INLINE void along(int taps, int edge, const double row[HONE_WINOGRAD_EDGE][HONE_WINOGRAD_MOST],
                  const numbers *g, numbers *u) {
    u[0] = row[0][0] * g[0], u[edge - 1] = g[taps - 1];
    FULL for (int i = 1; i + 1 < edge; i += 2) {
        numbers even = row[i][0] * g[0], odd = row[i][1] * g[1];
        if (taps > 2) even += row[i][2] * g[2];
        if (taps > 3) odd += row[i][3] * g[3];
        if (taps > 4) even += row[i][4] * g[4];
        u[i] = even + odd, u[i + 1] = even - odd;
    }
}
INLINE void filters(int taps, int down, int across, const hone_winograd_g *w,
                    const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u, ptrdiff_t apart) {
    for (int j = 0; j < n; j += FOUR) { /* columns behind the last one are there, and come to nothing */
        const size_t bytes = sizeof(float) * (size_t)(n - j < FOUR ? n - j : FOUR);
        numbers half[HONE_WINOGRAD_EDGE][HONE_WINOGRAD_MOST], in[HONE_WINOGRAD_MOST], out[HONE_WINOGRAD_EDGE];
        FULL for (int k = 0; k < taps; k++) {
            FULL for (int t = 0; t < taps; t++) {
                floats x;
                memcpy(&x, g[taps * t + k] + j, sizeof x);
                in[t] = __builtin_convertvector(x, numbers);
            }
            along(taps, down, w->y, in, out);
            FULL for (int y = 0; y < down; y++) half[y][k] = out[y];
        }
        for (int y = 0; y < down; y++) {
            along(taps, across, w->x, half[y], out);
            FULL for (int x = 0; x < across; x++) {
                const floats v = __builtin_convertvector(out[x], floats);
                if (bytes == sizeof v) memcpy(u + (y * across + x) * apart + j, &v, sizeof v);
                else memcpy(u + (y * across + x) * apart + j, &v, bytes);
            }
        }
    }
}
static void filters_line(const hone_winograd_g *w, const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u,
                         ptrdiff_t apart) {
    for (int x = 0; x < w->across; x++)
        for (int j = 0; j < n; j++) {
            double sum = 0;
            for (int t = 0; t < w->taps; t++) sum += w->x[x][t] * (double)g[t][j];
            u[x * apart + j] = (float)sum;
        }
}
void hone_winograd_filters(const hone_winograd_g *w, const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u,
                           ptrdiff_t apart) {
    if (w->down == 1) filters_line(w, g, n, u, apart);
        /* those that hone_winograd_has: with sizes as constants a filter takes half of the time */
#define TILE(y, x, t) \
    else if (w->down == (y) && w->across == (x) && w->taps == (t)) filters(t, y, x, w, g, n, u, apart);
    TILE(6, 6, 3)
    TILE(8, 8, 3)
    TILE(4, 6, 3)
    TILE(4, 4, 3) TILE(4, 4, 2) TILE(6, 6, 2) TILE(6, 6, 4) TILE(6, 6, 5) TILE(8, 8, 4) TILE(8, 8, 5)
#undef TILE
}
