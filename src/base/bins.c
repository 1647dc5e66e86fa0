/* SPDX-License-Identifier: Apache-2.0
   bins: see bins.h. */
#include "base/bins.h"

#include <math.h>
#include <string.h>

enum { LANES = 16, TABLES = 4, WIDE = 64, BLOCK = 64 * WIDE };

static bool odd(float v) { return !(v - v == 0); }
/* Extremes and zeros of numbers that are all finite, BLOCK or fewer, a multiple of WIDE; false: some are not,
   and nothing was added. Lanes lie in the cache and not in registers: in rows so long every compiler makes
   vectors of them. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__aarch64__)
__attribute__((optimize("no-tree-vectorize"))) /* GCC 12 fails on its loops there */
#endif
static bool
look_at_finite(hone_bins *b, const float *x, int64_t n) {
    float least[WIDE] = {0}, most[WIDE] = {0}, off[WIDE] = {0}; /* off: NaN where one was no number */
    int32_t zeros[WIDE] = {0};
    for (int64_t k = 0; k < n; k += WIDE)
        for (int l = 0; l < WIDE; l++) {
            const float v = x[k + l];
            least[l] = v < least[l] ? v : least[l], most[l] = v > most[l] ? v : most[l];
            off[l] += v - v, zeros[l] += v == 0;
        }
    int64_t none = 0;
    for (int l = 1; l < WIDE; l++) {
        least[0] = least[l] < least[0] ? least[l] : least[0], most[0] = most[l] > most[0] ? most[l] : most[0];
        off[0] += off[l], none += zeros[l];
    }
    if (off[0] != 0) return false;
    b->least = fmin(b->least, (double)least[0]), b->most = fmax(b->most, (double)most[0]);
    b->zeros += (double)(none + zeros[0]);
    return true;
}
void hone_bins_look(hone_bins *b, const float *x, int64_t n) {
    b->n += (double)n;
    for (int64_t k = 0; k < n;) {
        const int64_t rest = n - k, block = rest < WIDE ? rest : rest < BLOCK ? rest / WIDE * WIDE : BLOCK;
        if (block < WIDE || !look_at_finite(b, x + k, block))
            for (int64_t i = k; i < k + block; i++) {
                if (odd(x[i])) {
                    b->odd++;
                    continue;
                }
                b->least = fmin(b->least, (double)x[i]), b->most = fmax(b->most, (double)x[i]);
                b->zeros += x[i] == 0;
            }
        k += block;
    }
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
    const float unit = (float)per;
    int64_t k = 0;
    if (per == 0) return;
    if (b->odd == 0 && isfinite(unit))
        for (; n - k >= LANES; k += LANES) {
            int32_t at[LANES];
            if (first)
                for (int l = 0; l < LANES; l++) at[l] = (int32_t)((double)x[k + l] * per + first);
            else /* a power of two's product is exact in floats, too */
                for (int l = 0; l < LANES; l++) at[l] = (int32_t)(x[k + l] * unit);
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
