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
void hone_winograd_filters(int size, bool line, int taps, const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u, ptrdiff_t apart) {
    const int down = line ? 1 : hone_winograd_tall(size), across = hone_winograd_edge(size);
    double row_y[HONE_WINOGRAD_EDGE][HONE_WINOGRAD_MOST] = {{1}}, row[HONE_WINOGRAD_EDGE][HONE_WINOGRAD_MOST];
    if (!line) points_of(down, taps, row_y);
    points_of(across, taps, row);
    for (int y = 0; y < down; y++) {
        double half[HONE_WINOGRAD_MOST][HONE_WINOGRAD_FILTERS] = {{0}}, whole[HONE_WINOGRAD_FILTERS];
        for (int k = 0; k < taps; k++)
            for (int t = 0; t < (line ? 1 : taps); t++)
                for (int j = 0; j < n; j++) half[k][j] += row_y[y][t] * (double)g[taps * t + k][j];
        for (int x = 0; x < across; x++) {
            for (int j = 0; j < n; j++) whole[j] = row[x][0] * half[0][j];
            for (int t = 1; t < taps; t++)
                for (int j = 0; j < n; j++) whole[j] += row[x][t] * half[t][j];
            for (int j = 0; j < n; j++) u[(y * across + x) * apart + j] = (float)whole[j];
        }
    }
}
