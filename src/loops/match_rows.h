/* SPDX-License-Identifier: Apache-2.0
   match_rows: rows normalized over their last index, which lies along memory: layer norm, RMS norm, softmax
   and its logarithm ("norms", all four), in the stages of an instance, whatever op they come from. Those over
   several indices, of other types, or whose mean somebody else wants, are something else. */
#ifndef HONE_LOOPS_MATCH_ROWS_H
#define HONE_LOOPS_MATCH_ROWS_H
#include "loops/match_affine.h"

typedef enum {
    HONE_NORM_CENTRED,
    HONE_NORM_SQUARES,
    HONE_NORM_SOFTMAX,
    HONE_NORM_LOG_SOFTMAX
} hone_norm_kind;
enum { HONE_NORM_PARAMETERS = 2 };
typedef struct {
    hone_norm_kind kind;
    int stages;                             /* so many, from the first on */
    int x, y, p[HONE_NORM_PARAMETERS], n_p; /* tensors: rows, results, and parameters by place */
    float epsilon;
    int64_t rows, n;
    /* where rows begin: by so many indices, outermost first, and elements from one to the next; one index
       where they follow each other evenly */
    int lead;
    int64_t extent[HONE_MAX_RANK], by_x[HONE_MAX_RANK], by_y[HONE_MAX_RANK];
    uint64_t uses, own; /* tensors that the stages touch; those that they make only for themselves */
} hone_match_norm;
bool hone_match_norm_of(const hone_sized *, int stage, hone_match_norm *out);
#endif
