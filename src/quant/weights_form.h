/* SPDX-License-Identifier: Apache-2.0
   weights_form: one call of the form "weights" under way: between weights.c, which finds matrices and writes
   them, and weights_learn.c, which sees what their layers read. Private to quant. */
#ifndef HONE_QUANT_WEIGHTS_FORM_H
#define HONE_QUANT_WEIGHTS_FORM_H
#include "quant/edit.h"
#include "quant/weights.h"

enum {
    HONE_WEIGHTS_SAMPLES = 128, /* of the caller's, where he does not say how many */
    HONE_WEIGHTS_REST =
        1024, /* numbers that weights of no product have at least: below, a file hardly shrinks */
};
typedef struct {
    hone_vid var;
    bool transposed; /* stored [n, k]: Gemm with transB, tables */
    bool table;      /* rows of it are gathered */
    int64_t n, k;
    hone_vec(int) reader; /* nodes that multiply by it, or gather from it */
    hone_weights q;
    double lost;     /* of the weights' energy */
    double lost_out; /* of the output's, on samples; below 0: nobody looked */
    int64_t rows;    /* that samples showed */
    float *by;       /* dynamic: [k], what it reads is multiplied by before it is rounded; NULL: nothing */
} hone_weights_layer;
typedef struct { /* weights of what is no product, or lies in a body (weights_rest.c) */
    hone_graph *graph;
    hone_vid var;
    const hone_node *reader; /* the first */
    int axis;                /* along which each index has a scale */
    bool other;              /* something reads it that takes no weights */
    const hone_weights_kind *kind;
    int64_t n, k;
    double lost;
} hone_weights_rest;
typedef struct {
    hone_quant_job *job;
    hone_quantizing_weights wish;               /* defaults filled in */
    const hone_weights_kind *kind, *table_kind; /* table_kind NULL: tables stay */
    bool dynamic;                               /* what is read is rounded too */
    bool written;                               /* as DequantizeLinear, not com.microsoft's ops */
    bool tables;                                /* `rest` is those that Gather takes rows of, alone */
    hone_vec(hone_weights_layer) layer;
    hone_vec(hone_weights_rest) rest;
} hone_weights_job;

/* w[n][k], to be freed; NULL: no memory */
float *hone_weights_rows(const hone_weights_job *, const hone_weights_layer *);
/* Quantizes every matrix by what samples show that its layer reads, first layers first. */
hone_status hone_weights_learn(hone_weights_job *) HONE_CHECKED;
/* weights_rest.c: all other weights, after those of `layer` are found; their constants become what they are
   dequantized to. */
hone_status hone_weights_rest_find(hone_weights_job *) HONE_CHECKED;
hone_status hone_weights_rest_round(hone_weights_job *) HONE_CHECKED;
/* weights_dynamic.c: what each layer's inputs are multiplied by; products in bytes, whose inputs are rounded
   once for all that read them. */
typedef struct {
    hone_vid x, q, scale, zero;
    bool smoothed;
} hone_weights_bytes;
typedef hone_vec(hone_weights_bytes) hone_weights_rounded;
hone_status hone_weights_smooth(hone_weights_job *) HONE_CHECKED;
void hone_weights_put_dynamic(hone_quant_edit *, const hone_weights_layer *, const hone_node *,
                              hone_vid levels, hone_vid scales, hone_weights_rounded *);
#endif
