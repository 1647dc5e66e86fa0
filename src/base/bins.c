/* SPDX-License-Identifier: Apache-2.0
   bins: see bins.h. */
#include "base/bins.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, TABLES = 4 };

static bool odd(float v) { return !(v - v == 0); }
#if defined(__GNUC__) && !defined(__clang__) && defined(__aarch64__)
__attribute__((optimize("no-tree-vectorize"))) /* GCC 12 fails on its loops there */
#endif
void hone_bins_look(hone_bins *b, const float *x, int64_t n) {
    float least[LANES] = {0}, most[LANES] = {0};
    uint32_t zeros[LANES] = {0}, odds[LANES] = {0};
    int64_t k = 0, rest = 0, none = 0;
    b->n += (double)n;
    while (n - k >= LANES) { /* in vectors, short enough for 32 bits */
        const int64_t end = n - k > 1 << 30 ? k + (1 << 30) : k + (n - k) / LANES * LANES;
        memset(zeros, 0, sizeof zeros), memset(odds, 0, sizeof odds);
        for (; k < end; k += LANES) {
            float finite[LANES];
            for (int l = 0; l < LANES; l++) finite[l] = x[k + l] - x[k + l] == 0 ? x[k + l] : 0;
            for (int l = 0; l < LANES; l++) least[l] = finite[l] < least[l] ? finite[l] : least[l];
            for (int l = 0; l < LANES; l++) most[l] = finite[l] > most[l] ? finite[l] : most[l];
            for (int l = 0; l < LANES; l++) zeros[l] += x[k + l] == 0;
            for (int l = 0; l < LANES; l++) odds[l] += !(x[k + l] - x[k + l] == 0);
        }
        for (int l = 0; l < LANES; l++) none += zeros[l];
        for (int l = 0; l < LANES; l++) rest += odds[l];
    }
    for (int l = 0; k < n; k++, l++) { /* fewer than lanes */
        const bool is = !odd(x[k]);
        least[l] = is ? fminf(least[l], x[k]) : least[l], most[l] = is ? fmaxf(most[l], x[k]) : most[l];
        none += x[k] == 0, rest += !is;
    }
    for (int l = 0; l < LANES; l++)
        b->least = fmin(b->least, (double)least[l]), b->most = fmax(b->most, (double)most[l]);
    b->zeros += (double)none, b->odd += (double)rest;
}
void hone_bins_join(hone_bins *b, const hone_bins *piece) {
    b->n += piece->n, b->zeros += piece->zeros, b->odd += piece->odd;
    b->least = fmin(b->least, piece->least), b->most = fmax(b->most, piece->most);
}
void hone_bins_grid(hone_bins *b) {
    const double far = fmax(-b->least, b->most);
    b->low = b->width = 0;
    if (!(far > 0)) return;
    b->width = ldexp(1, ilogb(far) - (b->least < 0 ? 9 : 10));
    if (b->least < 0) b->low = -b->width * (HONE_BINS / 2);
}
void hone_bins_count(const hone_bins *b, const float *x, int64_t n, uint32_t *count) {
    uint32_t table[TABLES][HONE_BINS] = {{0}}; /* numbers that follow each other are often the same */
    const double per = b->width > 0 ? 1 / b->width : 0;
    const int32_t first = b->low < 0 ? HONE_BINS / 2 : 0;
    int64_t k = 0;
    if (per == 0) return;
    if (b->odd == 0)
        for (; n - k >= LANES; k += LANES) {
            int32_t at[LANES];
            for (int l = 0; l < LANES; l++) at[l] = (int32_t)((double)x[k + l] * per + first);
            for (int l = 0; l < LANES; l++) table[l % TABLES][at[l] & (HONE_BINS - 1)]++;
        }
    for (; k < n; k++) {
        if (odd(x[k])) continue;
        const int i = first + (int)floor((double)x[k] * per);
        table[0][i < 0 ? 0 : i >= HONE_BINS ? HONE_BINS - 1 : i]++;
    }
    for (int i = 0; i < HONE_BINS; i++)
        for (int t = 0; t < TABLES; t++) count[i] += table[t][i];
}
void hone_bins_sum(hone_bins *b, const uint32_t *count, int pieces) {
    memset(b->bin, 0, sizeof b->bin);
    if (!(b->width > 0)) return;
    for (int p = 0; p < pieces; p++)
        for (int i = 0; i < HONE_BINS; i++) b->bin[i] += count[(int64_t)p * HONE_BINS + i];
    b->bin[b->low < 0 ? HONE_BINS / 2 : 0] -= b->zeros;
}
