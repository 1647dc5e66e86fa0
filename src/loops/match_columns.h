/* SPDX-License-Identifier: Apache-2.0
   match_columns: sums of columns, or their averages, in the stages of an instance, whatever op they come
   from: y[b][c] = scale * sum(r) x[b][r][c]. An average of each channel over images whose channels lie last
   is one. A pure function of a bound instance; says nothing about which kernel is good. */
#ifndef HONE_LOOPS_MATCH_COLUMNS_H
#define HONE_LOOPS_MATCH_COLUMNS_H
#include "loops/match_affine.h"

typedef struct {
    int stages;                           /* so many, from the first on */
    int x, y;                             /* tensors */
    int64_t at_x;                         /* the first element */
    int64_t matrices, matrix_x, matrix_y; /* how many; elements from one to the next in x and y */
    int64_t rows, row_x;                  /* likewise; columns lie side by side in both */
    int64_t columns;
    float scale;
} hone_match_columns;
bool hone_match_columns_of(const hone_sized *, int stage, hone_match_columns *out);
#endif
