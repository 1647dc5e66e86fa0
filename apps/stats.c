/* SPDX-License-Identifier: Apache-2.0
   stats: see stats.h. Order statistics only: times have a long tail, and one of them may be a hundred times
   the others. */
#include "stats.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "net/random.h"

enum { DRAWS = 2000, TREND_BLOCKS = 12 };

static int by_number(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

double hone_stats_percentile(const double *sorted, int n, double p) {
    double at = p * (n - 1);
    int below = (int)at;
    if (below >= n - 1) return sorted[n - 1];
    return sorted[below] + (at - below) * (sorted[below + 1] - sorted[below]);
}

static double *sorted_copy(const double *v, int n) {
    double *s = hone_must_alloc(sizeof *s * (size_t)n);
    memcpy(s, v, sizeof *s * (size_t)n);
    qsort(s, (size_t)n, sizeof *s, by_number);
    return s;
}

double hone_stats_median(const double *v, int n) {
    double *s = sorted_copy(v, n), m = hone_stats_percentile(s, n, 0.5);
    free(s);
    return m;
}

void hone_stats_of(const double *v, int n, hone_stats *out) {
    double *s = sorted_copy(v, n);
    *out = (hone_stats){.n = n, .min = s[0], .max = s[n - 1]};
    for (int k = 0; k < n; k++) out->sum += s[k];
    out->median = hone_stats_percentile(s, n, 0.5);
    out->p90 = hone_stats_percentile(s, n, 0.9);
    out->p99 = hone_stats_percentile(s, n, 0.99);
    if (out->median > 0)
        out->spread = (hone_stats_percentile(s, n, 0.75) - hone_stats_percentile(s, n, 0.25)) / out->median;
    free(s);
}

int hone_stats_blocks(const double *v, int n, int most, double *out) {
    int blocks = n < most ? n : most;
    for (int b = 0; b < blocks; b++) {
        int from = (int)((int64_t)n * b / blocks), to = (int)((int64_t)n * (b + 1) / blocks);
        out[b] = hone_stats_median(v + from, to - from);
    }
    return blocks;
}

double hone_stats_trend(const double *v, int n) {
    enum { THIRD = TREND_BLOCKS / 3 };
    /* Kendall's tau of 12 in random order is above it once in a hundred times */
    static const double sure = 0.57;
    double block[TREND_BLOCKS];
    int up = 0;
    if (n < 2 * TREND_BLOCKS) return 0;
    hone_stats_blocks(v, n, TREND_BLOCKS, block);
    for (int i = 0; i < TREND_BLOCKS; i++)
        for (int j = i + 1; j < TREND_BLOCKS; j++) up += (block[j] > block[i]) - (block[j] < block[i]);
    double tau = (double)up / (TREND_BLOCKS * (TREND_BLOCKS - 1) / 2.0),
           first = hone_stats_median(block, THIRD);
    if (fabs(tau) < sure || first <= 0) return 0;
    return hone_stats_median(block + TREND_BLOCKS - THIRD, THIRD) / first - 1;
}

/* ---- drawing again ---- */

static uint32_t draw(uint64_t *state, int below) {
    return (uint32_t)((hone_net_random(state) >> 32) * (uint64_t)below >> 32);
}

static void interval(double *drawn, hone_ratio *out) { /* sorts it */
    qsort(drawn, DRAWS, sizeof *drawn, by_number);
    out->low = hone_stats_percentile(drawn, DRAWS, 0.025);
    out->high = hone_stats_percentile(drawn, DRAWS, 0.975);
}

void hone_stats_rounds(const double *base, const double *now, int n, int groups, hone_ratio *out) {
    double *ratio = hone_must_alloc(sizeof *ratio * (size_t)n),
           *again = hone_must_alloc(sizeof *again * (size_t)n),
           *drawn = hone_must_alloc(sizeof *drawn * DRAWS);
    uint64_t state = 1;
    int each = n / groups;
    for (int k = 0; k < n; k++) ratio[k] = base[k] / now[k];
    out->ratio = hone_stats_median(ratio, n);
    for (int d = 0; d < DRAWS; d++) {
        for (int g = 0; g < groups; g++) {
            const double *from = ratio + (size_t)each * draw(&state, groups);
            for (int k = 0; k < each; k++) again[g * each + k] = from[draw(&state, each)];
        }
        drawn[d] = hone_stats_median(again, each * groups);
    }
    interval(drawn, out);
    free(ratio), free(again), free(drawn);
}

static double drawn_median(const double *v, int n, double *room, uint64_t *state) {
    for (int k = 0; k < n; k++) room[k] = v[draw(state, n)];
    return hone_stats_median(room, n);
}

void hone_stats_apart(const double *base, int n_base, const double *now, int n_now, hone_ratio *out) {
    double *room = hone_must_alloc(sizeof *room * (size_t)(n_base > n_now ? n_base : n_now)),
           *drawn = hone_must_alloc(sizeof *drawn * DRAWS);
    uint64_t state = 1;
    out->ratio = hone_stats_median(base, n_base) / hone_stats_median(now, n_now);
    for (int d = 0; d < DRAWS; d++) {
        double b = drawn_median(base, n_base, room, &state);
        drawn[d] = b / drawn_median(now, n_now, room, &state);
    }
    interval(drawn, out);
    free(room), free(drawn);
}

int hone_stats_verdict(const hone_ratio *r) {
    if (r->low > 1 + HONE_STATS_LEAST) return 1;
    return r->high < 1 / (1 + HONE_STATS_LEAST) ? -1 : 0;
}
