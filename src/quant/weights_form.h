/* SPDX-License-Identifier: Apache-2.0
   weights_form: one call of the form "weights" under way: between weights.c, which finds matrices and writes them, and weights_learn.c, which sees what their layers read. Private to quant. */
#ifndef HONE_QUANT_WEIGHTS_FORM_H
#define HONE_QUANT_WEIGHTS_FORM_H
#include "quant/edit.h"
#include "quant/weights.h"

typedef struct {
    hone_vid var;
    bool turned; /* stored [n, k]: Gemm with transB, tables */
    bool table;  /* rows of it are gathered */
    int64_t n, k;
    hone_vec(int) reader; /* nodes that multiply by it, or gather from it */
    hone_weights q;
    double lost;      /* of the weights' energy */
    double lost_out;  /* of the output's, on samples; below 0: nobody looked */
    int64_t rows;     /* that samples showed */
} hone_weights_layer;
typedef struct {
    hone_quant_job *job;
    hone_quantizing_weights wish; /* defaults filled in */
    const hone_weights_kind *kind, *table_kind; /* table_kind NULL: tables stay */
    bool written; /* as DequantizeLinear, not com.microsoft's ops */
    hone_vec(hone_weights_layer) layer;
} hone_weights_job;

int64_t hone_weights_block(const hone_weights_job *, int64_t k); /* that a matrix of so many rows gets */
float *hone_weights_rows(const hone_weights_job *, const hone_weights_layer *); /* w[n][k], to be freed; NULL: no memory */
/* Quantizes every matrix by what samples show that its layer reads, first layers first. */
hone_status hone_weights_learn(hone_weights_job *) HONE_CHECKED;
#endif
