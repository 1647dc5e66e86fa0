/* SPDX-License-Identifier: Apache-2.0
   match_epilogue: the stage behind a sum, where it is of the form that networks have:

        [[times] activation [+ a number or a row] | narrowing to 8 bits] [clamp] [+ residual] [+ bias] sum

   and what follows sums of integers: requantized to 8 bits, or going on as floats. Element-wise stages of
   rows of bytes are of this form, too. Rows are those of M; the indices from `first_n` on are N's, along
   which results lie one after another. A pure function of an instance and its numbers; says nothing about
   which kernel is good. */
#ifndef HONE_LOOPS_MATCH_EPILOGUE_H
#define HONE_LOOPS_MATCH_EPILOGUE_H
#include "base/activation.h"
#include "loops/match_product.h"
#include "loops/match_table.h"

typedef struct { /* one number a row, or where a row of them begins: a constant, or loaded */
    int tensor;  /* -1: k */
    float k;
    hone_dtype dtype;
    hone_affine at; /* in elements, over the slots */
    bool same;      /* in every row and batch */
} hone_match_number;
typedef struct { /* rows of 8 bits, read as floats: (q - zero) * scale */
    hone_match_number at, zero, scale;
} hone_match_bytes;
typedef enum {
    HONE_EPILOGUE_STORED,     /* as floats, or rounded to 8 bits: out.dtype */
    HONE_EPILOGUE_BACK,       /* rounded to 8 bits and read back at once */
    HONE_EPILOGUE_REQUANTIZE, /* of integers: round(f32(sum + bias) * (scale * scale_b / scale_y)) + zero */
    /* of integers: f32(sum) * scale_b [+ bias], then activation, times and plus, residual, `each`, limits and
       rounding, in this order */
    HONE_EPILOGUE_FINISH
} hone_epilogue_form;
typedef enum {
    HONE_THEN_NOTHING,
    HONE_THEN_LINEAR, /* times * it + plus, + a row, later */
    HONE_THEN_FLOOR,  /* max(it, plus) */
    HONE_THEN_GATE    /* times a row, later */
} hone_epilogue_then;
typedef struct hone_match_epilogue hone_match_epilogue;
struct hone_match_epilogue {
    hone_epilogue_form form;
    /* no bias: -0, which changes no sum; no limits: infinities; of 8 bits v / scale + zero is rounded */
    hone_match_number bias, lo, hi, scale, zero, back_zero, back_scale;
    float low, high;            /* of the 8-bit type */
    hone_match_number residual; /* tensor -1: none; else where its row begins */
    hone_match_number out;
    bool bias_n;                /* the bias is one a column, the same in every row: where it begins */
    hone_activation activation; /* what the finished row then gets; COUNT: none */
    float alpha, beta;          /* its numbers */
    hone_epilogue_then then;    /* and what that gets */
    hone_match_number times, plus, later;
    /* of a sum of floats that becomes bytes behind an activation: what makes floats of it first; or NULL */
    const hone_match_epilogue *before;
    bool alike; /* FINISH, and behind an activation: rows but for the residual's */
    hone_match_number scale_b, scale_y;
    bool scale_n;           /* scale_b is one a column: where it begins */
    hone_match_number each; /* a factor of each column behind all but limits and bytes; tensor -1: none */
    bool by_row;            /* all of its numbers, but for columns', are the same in every row */
    /* What comes in instead of a sum: floats in a row (reads false), or 8 bits (true): a tensor's, or what
       `inner` makes of a sum of integers. The residual may be 8 bits too. */
    const hone_match_epilogue *inner;
    bool reads, reads_more;
    hone_match_bytes source, more;
    /* of each expression: it is the byte that REQUANTIZE, or `inner`, makes, and the value is a function of
       that and of constants (match_table.h); out.dtype is that of the bytes, or f32. NULL: another form */
    const bool *given;
    bool steady;    /* all of its numbers are the same in every row and batch, */
    bool one_piece; /* and rows of the result and of the residual follow on */
};
typedef struct {
    const hone_sized *of;
    const hone_slots_of *slots;
    int stage, acc;               /* acc: the tensor that has the sums; -1: an element-wise stage */
    const int *group_m, *group_b; /* slots of M, and of the batch */
    int n_m, n_batch, first_n;
    bool columns; /* a bias may be one a column */
    bool then;    /* something may follow an activation */
    hone_constant_seen *constant;
    const void *constants; /* which it is given */
} hone_epilogue_query;
/* NULL: not of this form, or its rows do not lie in a row; or there is no memory. */
const hone_match_epilogue *hone_match_epilogue_of(hone_arena *, const hone_epilogue_query *);
/* The stage behind a product (stages is 2) as its columns, rows and batches have it. NULL: as above, or
   columns are not the last indices of the result. */
const hone_match_epilogue *hone_match_epilogue_behind(hone_arena *, const hone_sized *,
                                                      const hone_match_product *, int stage, bool then,
                                                      hone_constant_seen *, const void *constants);
#endif
