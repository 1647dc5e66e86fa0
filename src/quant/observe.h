/* SPDX-License-Identifier: Apache-2.0
   observe: what numbers a tensor takes, sample by sample, in the memory of one histogram; and the ranges that
   this suggests.

   A histogram has 2048 bins of equal width. A number outside makes the bins twice as wide, two becoming one,
   as often as it takes: so nothing is seen twice and no range is asked for beforehand. Zeros are counted
   apart: every grid has one, so they cost nothing. */
#ifndef HONE_QUANT_OBSERVE_H
#define HONE_QUANT_OBSERVE_H
#include "base/bins.h"
#include "base/mem.h"

enum { HONE_QUANT_BINS = HONE_BINS };
typedef struct {
    double low, width; /* of bin 0; width 0: nothing but zeros was seen */
    double bin[HONE_QUANT_BINS];
    double zeros, seen, odd; /* odd: NaN and infinite */
    double least, most;      /* exactly, over all samples */
    double sum_least, sum_most;
    int samples;
} hone_histogram;
/* One sample, as it was counted where it was made. */
void hone_histogram_add(hone_histogram *, const hone_bins *);
/* One sample of n numbers, dense. False: no memory. */
bool hone_histogram_see(hone_histogram *, const float *x, int64_t n) HONE_CHECKED;

typedef struct {
    double low, high;
} hone_range;
/* What is made of a range: whole numbers from `lowest` to `highest` stand for (q - zero) * scale. 0 is always
   among them. */
typedef struct {
    float scale;
    int32_t zero, lowest, highest;
} hone_grid;
typedef enum {
    HONE_OBSERVE_MINMAX,
    HONE_OBSERVE_AVERAGE,
    HONE_OBSERVE_PERCENTILE, /* a hundred-thousandth is cut off on either side … */
    HONE_OBSERVE_TENTH,      /* … or a thousandth */
    HONE_OBSERVE_ENTROPY,
    HONE_OBSERVE_MSE,
    HONE_OBSERVERS
} hone_observer;
extern const char *const hone_observer_names[HONE_OBSERVERS];
/* levels: 256 or 65536, of the grid that is to be made of it; symmetric: with its zero in the middle. */
hone_range hone_observer_range(hone_observer, const hone_histogram *, int levels, bool symmetric);
/* The mean square by which numbers of this histogram are off on the grid of a range: what is cut off by how
   far, what is rounded by a twelfth of a step's square. */
double hone_histogram_error(const hone_histogram *, hone_range, int levels, bool symmetric);

hone_grid hone_grid_of(hone_range, int32_t lowest, int32_t highest, bool symmetric);
int32_t hone_grid_round(const hone_grid *, double x);
#endif
