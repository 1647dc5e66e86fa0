/* SPDX-License-Identifier: Apache-2.0
   winograd_f32__base: the transforms of 3x3 convolutions for what every CPU of the architecture has; and that of filters, which is done once a model. */
#if defined(__aarch64__) && \
    !defined(__clang__) /* gcc 12 puts so much of a transform ahead that registers run out: 110 cycles a vector instead of 90 */
#pragma GCC optimize("no-schedule-insns")
#endif
#define VW 4
#define ISA base
#include "kernels/ref/winograd_f32.inc"

void hone_winograd_filters(int size, const float (*g)[HONE_WINOGRAD_FILTERS], int n, float *u, ptrdiff_t apart) {
    /* row p: 1, p, p^2 over the product of p - q, all other points q; the last one, infinity: the highest power only */
    static const double points[HONE_WINOGRAD_SIZES][HONE_WINOGRAD_EDGE - 1] = {
        {0, 1, -1}, {0, 0.625, -0.625, 1.5, -1.5}, {0, 0.5, -0.5, 1, -1, 2, -2}};
    const int e = hone_winograd_out(size) + 2;
    double row[HONE_WINOGRAD_EDGE][3] = {{0}};
    for (int i = 0; i < e - 1; i++) {
        const double p = points[size][i];
        double less = 1;
        for (int k = 0; k < e - 1; k++)
            if (k != i) less *= p - points[size][k];
        row[i][0] = 1 / less, row[i][1] = p / less, row[i][2] = p * p / less;
    }
    row[e - 1][2] = 1;
    for (int y = 0; y < e; y++) {
        double half[3][HONE_WINOGRAD_FILTERS];
        for (int k = 0; k < 3; k++)
            for (int j = 0; j < n; j++)
                half[k][j] = row[y][0] * (double)g[k][j] + row[y][1] * (double)g[3 + k][j] + row[y][2] * (double)g[6 + k][j];
        for (int x = 0; x < e; x++)
            for (int j = 0; j < n; j++)
                u[(y * e + x) * apart + j] = (float)(row[x][0] * half[0][j] + row[x][1] * half[1][j] + row[x][2] * half[2][j]);
    }
}
