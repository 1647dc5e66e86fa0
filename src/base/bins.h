/* SPDX-License-Identifier: Apache-2.0
   bins: how the numbers of one tensor are spread, in 2048 bins of equal width. In two looks, each of which
   may be shared out in pieces: the extremes, then, on the grid that they suggest, the bins.

   Widths are powers of two and 0 lies on an edge, so that what several tensors show can be added up. Zeros
   and what is no number lie in no bin. */
#ifndef HONE_BASE_BINS_H
#define HONE_BASE_BINS_H
#include <stdbool.h>
#include <stdint.h>

enum { HONE_BINS = 2048 };
typedef struct {          /* doubles alone: it travels as a tensor of f64 */
    double n, zeros, odd; /* odd: NaN and infinite */
    double least, most;   /* of what is a number, and of 0 */
    double low, width;    /* of bin 0; width 0: nothing but zeros */
    double bin[HONE_BINS];
} hone_bins;

/* Adds n numbers to `n`, `zeros`, `odd`, `least` and `most`. */
void hone_bins_look(hone_bins *, const float *x, int64_t n);
/* Adds what another piece showed of those. */
void hone_bins_join(hone_bins *, const hone_bins *piece);
/* `low` and `width`, as narrow as fits. */
void hone_bins_grid(hone_bins *);
/* Adds n numbers to count[HONE_BINS], on that grid; zeros are among them. n < 2^32. */
void hone_bins_count(const hone_bins *, const float *x, int64_t n, uint32_t *count);
/* The bins, from what pieces counted: piece after piece, HONE_BINS each. */
void hone_bins_sum(hone_bins *, const uint32_t *count, int pieces);
#endif
