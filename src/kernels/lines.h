/* SPDX-License-Identifier: Apache-2.0
   lines: depthwise convolution over channels-last pictures, a line of results at a time, or two. Neighbours share most of their window: a column of the picture is loaded once for
   all results that it is in. Pure arithmetic; which rows are inside, and where everything lies, is the caller's (device/cpu/contract_lines.c).

        column x of row r:  row[r] + x * pitch, `channels` floats; outside unless lo <= x < hi, or where row[r] is NULL
        line l, result i, channel c:  sum over r < rows, q < across of  column step*i + ahead*q of row l*down + r [c]  *  weight[r][q * weight_step + c]

   then + bias[c] + residual[l * residual_down + i * residual_pitch + c], each where given, clamped, to to[l * to_down + i * to_pitch + c]. What is outside is zeros or left out: of
   weights that are no numbers nothing is said there. The residual may be what is written. */
#ifndef HONE_KERNELS_LINES_H
#define HONE_KERNELS_LINES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HONE_LINES_MANY = 2,
    HONE_LINES_ROWS = 16,
    HONE_LINES_COLUMNS = 48 /* that four results reach over: 3 * step + ahead * (across - 1) + 1 */
};
typedef struct {
    int64_t results, channels;
    int rows, across, step, ahead, lines, down;
    int64_t lo, hi;
    const float *const *row, *const *weight; /* (lines - 1) * down + rows of them, and rows */
    ptrdiff_t pitch, weight_step;
    const float *zeros; /* `channels` of them */
    float *to;
    const float *bias, *residual;
    ptrdiff_t to_pitch, residual_pitch, to_down, residual_down;
    bool clamp;
    float least, most;
    bool row_half, to_half,
        residual_half; /* these are bf16, whatever the pointers say: for kernels with `halves`, and results only where rows are */
} hone_lines_part;
typedef void hone_lines_fn(const hone_lines_part *);
typedef struct hone_lines {
    const char *name;
    uint32_t cpu;
    bool halves;
    hone_lines_fn *run;
} hone_lines;
extern const hone_lines hone_lines_list[]; /* slowest first; ends with a NULL name */
const hone_lines *hone_lines_best(void);
#endif
