/* SPDX-License-Identifier: Apache-2.0
   lines: depthwise convolution over channels-last pictures, a line of results at a time. Neighbours share most of their window: a column of the picture is loaded once for
   all results that it is in. Pure arithmetic; which rows are inside, and where everything lies, is the caller's (device/cpu/contract_lines.c).

        column x of row r:  row[r] + x * pitch, `channels` floats; zeros unless lo <= x < hi, or where row[r] is NULL
        result i, channel c:  sum over r < rows, q < across of  column step*i + ahead*q of row r [c]  *  weight[r][q * weight_step + c]

   then + bias[c] + residual[i * residual_pitch + c], each where given, clamped, to to[i * to_pitch + c]. The residual may be what is written. */
#ifndef HONE_KERNELS_LINES_H
#define HONE_KERNELS_LINES_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { HONE_LINES_ROWS = 16, HONE_LINES_COLUMNS = 48 /* that four results reach over: 3 * step + ahead * (across - 1) + 1 */ };
typedef struct {
    int64_t results, channels;
    int rows, across, step, ahead;
    int64_t lo, hi;
    const float *const *row, *const *weight;
    ptrdiff_t pitch, weight_step;
    const float *zeros; /* `channels` of them */
    float *to;
    const float *bias, *residual;
    ptrdiff_t to_pitch, residual_pitch;
    bool clamp;
    float least, most;
} hone_lines_part;
typedef void hone_lines_fn(const hone_lines_part *);
typedef struct hone_lines {
    const char *name;
    uint32_t cpu;
    hone_lines_fn *run;
} hone_lines;
extern const hone_lines hone_lines_list[]; /* slowest first; ends with a NULL name */
const hone_lines *hone_lines_best(void);
#endif
