/* SPDX-License-Identifier: Apache-2.0
   stats: what many times of the same thing say: their middle, their tail, how far they lie apart, whether
   they drift, and whether two lots of them differ. Pure arithmetic: it measures nothing and prints
   nothing. */
#ifndef HONE_APPS_STATS_H
#define HONE_APPS_STATS_H
#include <stdbool.h>

typedef struct {
    int n;
    double min, max, sum, median, p90, p99;
    double spread; /* the middle half's width, as a share of the median: 0.05 */
} hone_stats;
/* Of n numbers in any order, n at least 1. */
void hone_stats_of(const double *v, int n, hone_stats *out);
double hone_stats_median(const double *v, int n);
/* Of sorted numbers, p from 0 to 1; between two of them it is interpolated. */
double hone_stats_percentile(const double *sorted, int n, double p);

/* How much larger the numbers are at the end than at the start, in the order they came: 0.08 is 8 % more. 0
   where the way up or down is no more than chance, or where there are too few to tell. */
double hone_stats_trend(const double *v, int n);

/* Neighbours in time resemble each other, so single runs are not independent draws, but blocks of them nearly
   are. Cuts v into at most `most` blocks of neighbours, as equal as can be, and gives the median of each.
   Returns how many. */
int hone_stats_blocks(const double *v, int n, int most, double *out);

typedef struct {
    double ratio;     /* base / now: above 1, now is faster */
    double low, high; /* 95 of 100 such intervals hold the true one */
} hone_ratio;
/* Both lots as medians of blocks, drawn again and again with replacement (a bootstrap); the same numbers give
   the same interval. Rounds: base[k] and now[k] were measured next to each other, in turn, so what slows both
   cancels out; the ratio is the median of the rounds' ratios. The rounds come in `groups` equal parts, one a
   pair of processes, which are drawn first: two processes of the same program differ
   a little too. Apart: the lots are drawn each by itself, and the ratio is that of their medians. */
void hone_stats_rounds(const double *base, const double *now, int n, int groups, hone_ratio *out);
void hone_stats_apart(const double *base, int n_base, const double *now, int n_now, hone_ratio *out);

/* 1: now is faster, -1: slower, 0: no significant difference. The whole interval has to lie beyond
   HONE_STATS_LEAST: less than that is where code happened to lie in memory. */
#define HONE_STATS_LEAST 0.01
int hone_stats_verdict(const hone_ratio *);
#endif
