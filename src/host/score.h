/* SPDX-License-Identifier: Apache-2.0
   score: what ai.onnx.ml's models share at their end: the transform of a row of scores, and the label that
   goes with the best. */
#ifndef HONE_HOST_SCORE_H
#define HONE_HOST_SCORE_H
#include "host/call.h"

typedef enum {
    HONE_SCORE_NONE,
    HONE_SCORE_SOFTMAX,
    HONE_SCORE_LOGISTIC,
    HONE_SCORE_SOFTMAX_ZERO,
    HONE_SCORE_PROBIT
} hone_score_kind; /* ONNX's numbers */
/* post_transform, by name */
hone_status hone_score_attr(const hone_host_call *, hone_score_kind *out) HONE_CHECKED;
void hone_score_apply(hone_score_kind, double *row, int64_t n);

/* The class labels: ints or strings under these names. n = 0 where neither is given: labels are then 0, 1, 2
   … */
typedef struct {
    hone_attr ints, strings;
    int n;
} hone_labels;
hone_status hone_labels_find(const hone_host_call *, const char *ints, const char *strings,
                             hone_labels *out) HONE_CHECKED;
/* output 0 */
hone_status hone_labels_out(const hone_host_call *, const hone_labels *, int64_t rows,
                            hone_value **out) HONE_CHECKED;
hone_status hone_labels_put(const hone_host_call *, const hone_labels *, hone_value *to, int64_t row,
                            int64_t class) HONE_CHECKED;

/* Rows and columns of input 0, a vector (one row) or matrix of numbers; then its numbers. */
hone_status hone_score_rows(const hone_host_call *, const hone_value **x, int64_t *rows,
                            int64_t *columns) HONE_CHECKED;
double hone_score_number(const hone_value *x, int64_t k);
#endif
