/* SPDX-License-Identifier: Apache-2.0
   match_product: a stage that is a sum of products, seen as C[b][m][n] = Σk A[b][m][k] B[b][n][k]: which of
   its indices are batch, rows, columns and depth, how far apart elements lie along each, and where rows of A
   are windows over images, the images and the windows. A pure function of a bound instance; says nothing
   about which kernel is good. */
#ifndef HONE_LOOPS_MATCH_PRODUCT_H
#define HONE_LOOPS_MATCH_PRODUCT_H
#include "loops/match_affine.h"

typedef struct { /* an index: how many, and elements from one to the next in A, B and C */
    int64_t extent, a, b, c;
} hone_axis;
typedef struct {
    hone_axis at[HONE_MAX_SLOTS];
    int n;
} hone_axes;     /* outermost first */
typedef struct { /* of A: elements from image to image, line to line, pixel to pixel, channel to channel */
    int64_t images, height, width, channels, image_step, line_step, pixel_step, channel_step;
    int64_t out_height, out_width, kernel_y, kernel_x, stride_y, stride_x, pad_y, pad_x, dilation_y,
        dilation_x;
    int64_t b_y, b_x, b_channel; /* steps of B along the window's lines, pixels and channels */
    /* groups of channels, each with batches of its own; channels are a group's */
    int64_t groups, group_step;
} hone_match_window;
typedef struct {
    int a, b, c;              /* tensors; b knows the last index of the result that is longer than 1 */
    int64_t at_a, at_b, at_c; /* first elements */
    int stages;               /* 1; 2: the stage after it is the epilogue, and c its target */
    double alpha;             /* numbers among the factors */
    bool integers;            /* factors are bytes less zero_a and zero_b, expressions, or -1; sums are i32 */
    int32_t zero_a, zero_b;
    hone_axes m, n, k, batch; /* neighbours that follow on in all of A, B and C are one */
    bool window;              /* m are its images, lines and pixels; k is lines, pixels and channels of it */
    hone_match_window w;
    hone_slots_of slots;       /* of the stage, in the order in which c lies */
    hone_affine store;         /* of c, in elements */
    char kind[HONE_MAX_SLOTS]; /* of each slot of the domain: 'm', 'n', 'b' for a batch, 0 where it is of
    one */
    bool shares_columns;       /* A knows the last index, too: depthwise, where window; batch has it */
} hone_match_product;
/* False: it is something else. */
bool hone_match_product_of(const hone_sized *, int stage, hone_match_product *out);

/* What an epilogue reads beside the sum: at the slots of the match. */
typedef enum {
    HONE_END_OTHER,
    HONE_END_NUMBER /* the same everywhere */,
    HONE_END_COLUMN /* b[n], and of batches in turn; f32 or i32 */,
    HONE_END_RESIDUAL /* as c */
} hone_end_kind;
hone_end_kind hone_match_end(const hone_sized *, const hone_match_product *, int32_t load, int64_t *at);
#endif
