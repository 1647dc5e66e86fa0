/* SPDX-License-Identifier: Apache-2.0
   traffic_sum: what the latencies of a level say, and which of several levels is the knee. Pure
   arithmetic. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "stats.h"
#include "traffic.h"

enum { BLOCKS = 12 };
static const double student = 2.201; /* of 11 degrees of freedom, two sides, 95 of 100 */

static int by_number(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}

/* Neighbours in time are alike (a stall slows all that wait), so the interval is not that of independent
   draws: the time is cut into blocks, and the blocks' own quantiles say how far it may be off. Where a block
   has too few numbers for its quantile, order statistics of all have to do. */
static hone_traffic_quantile quantile(const double *sorted, const double *blocks, const int *at, int n,
                                      double p) {
    hone_traffic_quantile q = {.at = hone_stats_percentile(sorted, n, p)};
    if (at[1] * (1 - p) >= 2) {
        double v[BLOCKS], mean = 0, square = 0;
        for (int b = 0; b < BLOCKS; b++) {
            v[b] = hone_stats_percentile(blocks + at[b], at[b + 1] - at[b], p), mean += v[b] / BLOCKS;
        }
        for (int b = 0; b < BLOCKS; b++) square += (v[b] - mean) * (v[b] - mean);
        double half = student * sqrt(square / (BLOCKS - 1) / BLOCKS);
        q.low = fmax(q.at - half, sorted[0]), q.high = fmin(q.at + half, sorted[n - 1]);
        return q;
    }
    double middle = p * n, half = 1.96 * sqrt(n * p * (1 - p));
    int low = (int)floor(middle - half), high = (int)ceil(middle + half);
    q.low = sorted[low < 0 ? 0 : low], q.high = sorted[high > n - 1 ? n - 1 : high];
    return q;
}

void hone_traffic_sum(double *ms, int n, hone_traffic_level *l) {
    double *blocks = hone_must_alloc(sizeof *blocks * (size_t)n), sum = 0;
    int at[BLOCKS + 1];
    memcpy(blocks, ms, sizeof *blocks * (size_t)n);
    for (int b = 0; b <= BLOCKS; b++) at[b] = (int)((int64_t)n * b / BLOCKS);
    for (int b = 0; b < BLOCKS; b++)
        qsort(blocks + at[b], (size_t)(at[b + 1] - at[b]), sizeof *blocks, by_number);
    for (int k = 0; k < n; k++) sum += ms[k];
    qsort(ms, (size_t)n, sizeof *ms, by_number);
    l->mean_ms = sum / n, l->max_ms = ms[n - 1];
    l->p50 = quantile(ms, blocks, at, n, 0.5);
    l->p90 = quantile(ms, blocks, at, n, 0.9);
    l->p95 = quantile(ms, blocks, at, n, 0.95);
    l->p99 = quantile(ms, blocks, at, n, 0.99);
    free(blocks);
}

/* Kleinrock's power: throughput for the latency it costs. Below the knee more load brings more answers, above
   it only longer waits. */
int hone_traffic_knee(const hone_traffic_level *l, int n) {
    int best = -1;
    double most = 0;
    for (int k = 0; k < n; k++) {
        double power = l[k].n > 0 && !l[k].overloaded && l[k].mean_ms > 0 ? l[k].per_s / l[k].mean_ms : 0;
        if (power > most * 1.02) most = power, best = k; /* equal ones: the lower load */
    }
    return n > 1 ? best : -1;
}
