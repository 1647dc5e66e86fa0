/* SPDX-License-Identifier: Apache-2.0
   epilogue: the common ends of a sum (bias, residual, clamp, activation, narrowing to 8 bits) as this CPU
   does them: what loops/match_epilogue.h found, with kernels and the places of each row's numbers. All else
   runs as tile code. */
#ifndef HONE_DEVICE_CPU_EPILOGUE_H
#define HONE_DEVICE_CPU_EPILOGUE_H
#include "device/cpu/cpu.h"
#include "device/cpu/table.h"
#include "kernels/activate.h"
#include "kernels/epilogue.h"
#include "loops/match_contraction.h"
#include "loops/match_epilogue.h"

typedef struct { /* one number a row (of M, in a batch): a constant, or loaded */
    int tensor;  /* -1: k */
    float k;
    hone_dtype dtype;
    int64_t c, *at_m, by_batch[HONE_MAX_BATCH]; /* moves with each index of the batch */
    bool same;                                  /* in every row and batch */
} hone_row_number;
typedef struct { /* rows of 8 bits, read as floats: (q - zero) * scale */
    hone_row_number at, zero, scale;
} hone_read_rows;
typedef struct hone_cpu_epilogue {
    const hone_epilogue *kernel;
    hone_epilogue_fn *run;
    hone_row_number bias, lo, hi, scale, zero, back_zero, back_scale;
    float low, high;          /* of the 8-bit type */
    hone_row_number residual; /* tensor -1: none; else where its row begins */
    hone_row_number out;
    bool bias_n;                /* the bias is one a column, the same in every row: where it begins */
    hone_activate_fn *activate; /* what the finished row then gets, in place; or NULL */
    hone_activation which;      /* the same by its name */
    hone_gate_fn *gate;         /* the same, of other rows and times this one */
    float alpha, beta;          /* its numbers */
    /* and what that gets: times * it + plus + a row, later; or NULL. Only matrix kernels' rows */
    hone_then_fn *then;
    hone_row_number times, plus, later;
    /* of a sum of floats that becomes bytes behind an activation: what makes floats of it first; or NULL */
    const struct hone_cpu_epilogue *before;
    int n_batch;
    /* of a sum of integers: round(f32(sum + bias) * (scale * scale_b / scale_y)) + zero; NULL otherwise */
    hone_requantize_by_row_fn *requantize;
    /* of a sum of integers that goes on as floats: f32(sum) * scale_b [+ bias], then all of the above in
       this order. NULL otherwise */
    hone_finish_fn *finish;
    bool alike; /* with finish, and behind an activation: all rows but for the residual's */
    hone_row_number scale_b, scale_y;
    bool scale_n;         /* scale_b is one a column: where it begins */
    hone_row_number each; /* a factor of each column behind all but limits and bytes; tensor -1: none */
    bool by_row; /* all of its numbers, but for columns', are the same in every row: hone_epilogue_columns */
    /* What comes in instead of a sum: floats in a row (reads false), or 8 bits (true): a tensor's, or what
       `inner` makes of a sum of integers. The residual may be 8 bits too. */
    const struct hone_cpu_epilogue *inner;
    bool reads, reads_more;
    hone_read_rows source, more;
    /* what its bytes, those of `whole` or of `inner`, become at last; or NULL. The result's dtype is that of
       the former */
    const hone_table *table;
    /* all of its numbers are the same in every row and batch, and rows of the result and of the residual
       follow on */
    bool one_piece;
} hone_cpu_epilogue;
/* What an element-wise stage makes of rows of 8 bits, or rows of 8 bits of floats, or an activation of
   floats, in that form. A row is all indices from first_n on; 0: all of its domain. NULL: it is another
   stage. */
hone_cpu_epilogue *hone_epilogue_elements(hone_arena *, const hone_cpu_call *, const hone_slots_of *,
                                          int stage, int first_n);
/* Elements n0 … n0+n-1 of row m. bytes: what stands in the place of `source`; NULL: its own. room: for 2 n
   floats. */
void hone_epilogue_read(const hone_cpu_epilogue *, void *const *at, const int64_t *batch, int64_t m,
                        int64_t n0, int64_t n, const uint8_t *bytes, float *room);
/* The stage behind a contraction whose sums are the tensor acc. columns: a bias may be one a column. then:
   something may follow an activation. NULL: not of this form, or its rows do not lie in a row. */
hone_cpu_epilogue *hone_epilogue_match(hone_arena *, const hone_cpu_call *, const hone_match_contraction *,
                                       int stage, int acc, bool columns, bool then);
/* Where a row's number (or row) is, in elements; and the number. */
int64_t hone_epilogue_at(const hone_row_number *, int n_batch, const int64_t *batch, int64_t m);
float hone_epilogue_number(const hone_row_number *, int n_batch, void *const *at, const int64_t *batch,
                           int64_t m);
/* Of a sum of integers: what columns n0 … n0+n-1 get, all rows alike; bias and scale have room for whole
   blocks of columns (requantize.h). */
void hone_epilogue_columns(const hone_cpu_epilogue *, void *const *at, const int64_t *batch, int64_t n0,
                           int64_t n, int32_t *bias, float *scale, hone_requantize *);
/* Rows m0 …, columns n0 … of sums of integers that go on as floats (finish): take is taken away from each
   column first, less from each row; NULL: nothing. */
void hone_epilogue_finish(const hone_cpu_epilogue *, void *const *at, const int64_t *batch, int64_t m0,
                          int64_t m, int64_t n0, int64_t n, const int32_t *sum, ptrdiff_t step,
                          const int32_t *take, const int32_t *less);
/* less: taken away from a sum of integers first. acc is scratch, and may be written. */
void hone_epilogue_run(const hone_cpu_epilogue *, void *const *at, const int64_t *batch /* its indices */,
                       int64_t m, int64_t n0, int64_t n, void *acc, int32_t less);
/* Rows m0 … of them, `stride` apart; less: one a row, or NULL. */
void hone_epilogue_rows(const hone_cpu_epilogue *, void *const *at, const int64_t *batch, int64_t m0,
                        int64_t m, int64_t n0, int64_t n, void *acc, int64_t stride, const int32_t *less);
#endif
