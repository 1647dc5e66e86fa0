/* SPDX-License-Identifier: Apache-2.0
   dwconv_nhwc_rows: depthwise convolution over channels-last images, a line of results at a time, or two.
   Neighbours share most of their window: a column of the image is loaded once for all results that it is in.
   Pure arithmetic; which rows are inside, and where everything lies, is the caller's
   (device/cpu/contract_dwconv_rows.c).

        column x of row r:  row[r] + x * pitch, `channels` floats; outside unless lo <= x < hi, or where
                            row[r] is NULL
        line l, result i, channel c:  sum over r < rows, q < across of
              (column stride*i + dilation*q of row l*down + r)[c]  *  weight[r][q * weight_step + c]

   then + bias[c] + residual[l * residual_down + i * residual_pitch + c], each where given, clamped, to to[l
   * to_down + i * to_pitch + c]. What is outside is zeros or left out: of weights that are no numbers
   nothing is said there. The residual may be what is written. */
#ifndef HONE_KERNELS_DWCONV_NHWC_ROWS_H
#define HONE_KERNELS_DWCONV_NHWC_ROWS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HONE_DWCONV_ROWS_MANY = 2,
    HONE_DWCONV_ROWS_ROWS = 16,
    HONE_DWCONV_ROWS_COLUMNS = 48 /* that four results reach over: 3 * stride + dilation * (across - 1) + 1 */
};
typedef struct {
    int64_t results, channels;
    int rows, across, stride, dilation, lines, down;
    int64_t lo, hi;
    const float *const *row, *const *weight; /* (lines - 1) * down + rows of them, and rows */
    ptrdiff_t pitch, weight_step;
    const float *zeros; /* `channels` of them */
    float *to;
    const float *bias, *residual;
    ptrdiff_t to_pitch, residual_pitch, to_down, residual_down;
    bool clamp;
    float least, most;
    bool row_bf16, to_bf16,
        /* these are bf16, whatever the pointers say: for kernels with `halves`, and results only where rows
           are */
        residual_bf16;
} hone_dwconv_rows_args;
typedef void hone_dwconv_nhwc_rows_fn(const hone_dwconv_rows_args *);
typedef struct hone_dwconv_nhwc_rows {
    const char *name;
    uint32_t cpu;
    bool bf16_able;
    hone_dwconv_nhwc_rows_fn *run;
} hone_dwconv_nhwc_rows;
extern const hone_dwconv_nhwc_rows hone_dwconv_nhwc_rows_list[]; /* slowest first; ends with a NULL name */
const hone_dwconv_nhwc_rows *hone_dwconv_nhwc_rows_best(void);
#endif
