/* SPDX-License-Identifier: Apache-2.0
   weights: matrices of few bits in blocks, between the files of that form. Private to quant.

   A matrix is held as the product sees it, a row an output column: w[n][k]. Along k it has blocks, each with
   a scale and, where the type has one, a zero point:
        value = (code[level] - zero) * scale
   weights_kind.c knows types, weights_solve.c what levels serve a layer's output best, weights_learn.c what
   the layer reads, weights_store.c how they are written. */
#ifndef HONE_QUANT_WEIGHTS_H
#define HONE_QUANT_WEIGHTS_H
#include "quant/quant.h"

typedef struct {
    const char *name; /* as an option has it */
    int bits, levels;
    bool uniform;         /* codes are 0, 1, 2 …: a zero point makes sense */
    int middle;           /* uniform: the zero point of the symmetric form */
    const float *code;    /* ascending; NULL: uniform */
    hone_dtype stored[2]; /* in a DequantizeLinear: with a zero point, symmetric; NONE: it has no such form */
} hone_weights_kind;
/* NULL: none; its message is set by hone_weights_kinds */
const hone_weights_kind *hone_weights_kind_find(const char *name);
const char *hone_weights_kinds(void); /* "int8, int4, …" */

typedef struct {
    const hone_weights_kind *kind;
    bool symmetric;
    int64_t n, k, block, blocks;
    uint8_t *level; /* [n][k] */
    float *scale;   /* [n][blocks] */
    uint8_t *zero;  /* [n][blocks] */
} hone_weights;
bool hone_weights_make(hone_weights *, const hone_weights_kind *, bool symmetric, int64_t n, int64_t k,
                       int64_t block); /* false: no memory */
void hone_weights_free(hone_weights *);
/* Scale and zero point of a block that lose least: the sum of important[i] * (w[i] - value)^2, `important`
   NULL: all the same. */
void hone_weights_fit(const hone_weights_kind *, bool symmetric, const float *w, const float *important,
                      int64_t n, float *scale, uint8_t *zero);
int hone_weights_level(const hone_weights_kind *, float w, float scale, int zero); /* the nearest */
static inline float hone_weights_code(const hone_weights_kind *kind, int level, int zero) {
    return kind->code ? kind->code[level] : (float)(level - zero);
}
static inline float hone_weights_value(const hone_weights *q, int64_t n, int64_t k) {
    const int64_t b = n * q->blocks + k / q->block;
    return hone_weights_code(q->kind, q->level[n * q->k + k], q->zero[b]) * q->scale[b];
}
/* Every block to the nearest: w[n][k]. */
void hone_weights_round(hone_weights *, const float *w, int threads);

/* ---- weights_solve.c ----------------------------------------------------------------------------------- */
typedef struct {
    int64_t k;
    double *h; /* [k][k]: sum over rows x of what the layer reads, x^T x */
    /* [k][k]: x^T (f - x), where f is what it reads in the float model; or NULL: nothing drifted */
    double *drift;
    int64_t rows;
    float *hf, *low, *diag; /* hone_weights_factor: h with damping; its factor L D L^T */
} hone_weights_moments;
bool hone_weights_moments_make(hone_weights_moments *, int64_t k, bool drift); /* false: no memory */
void hone_weights_moments_free(hone_weights_moments *);
void hone_weights_moments_add(hone_weights_moments *, const float *x, const float *f_or_null, int64_t rows,
                              int threads);
/* Adds `damping` of the mean to the diagonal and factors; grows it tenfold where the sums are too near
   singular. Fails: NO_MEMORY. */
hone_status hone_weights_factor(hone_weights_moments *, double damping, int threads) HONE_CHECKED;
/* w[n][k] moved to where a product of x comes nearest to that of f. Needs drift and factor; a scratch of its
   own. */
hone_status hone_weights_follow(const hone_weights_moments *, float *w, int64_t n, int threads) HONE_CHECKED;
/* Levels and scales that lose least of w · x: errors handed on from element to element (GPTQ), then sweeps
   that look at each again. Needs factor. */
hone_status hone_weights_solve(hone_weights *, const hone_weights_moments *, const float *w, int sweeps,
                               int threads) HONE_CHECKED;
/* Of the output's energy, the share that is lost. Needs factor. */
double hone_weights_loss(const hone_weights *, const hone_weights_moments *, const float *w);

/* ---- weights_store.c ----------------------------------------------------------------------------------- */
/* Operands of com.microsoft's ops and of DequantizeLinear; NULL: no memory. */
/* u8[n, blocks, block * bits / 8], low bits first */
hone_value *hone_weights_packed(const hone_weights *);
hone_value *hone_weights_packed_zeros(const hone_weights *); /* u8[n, bytes of blocks] */
/* f32[n, blocks], [blocks, n], or in one line */
hone_value *hone_weights_scales(const hone_weights *, bool transposed, bool flat);
hone_value *hone_weights_bnb4(const hone_weights *); /* u8[n * k / 2], high bits first */
/* A level as a byte of type t, one of the kind's `stored`. */
void hone_weights_put(const hone_weights *, hone_dtype t, uint8_t *to, int level);
/* `transposed`: a tensor [n, k], blocks along its last dim; else [k, n]. */
/* unsigned_: also where there is no zero point */
hone_value *hone_weights_levels(const hone_weights *, bool transposed, bool unsigned_);
hone_value *hone_weights_zeros(const hone_weights *, bool transposed);
/* f32; noted: what it was dequantized from, for export */
hone_value *hone_weights_floats(const hone_weights *, bool transposed, bool noted);
#endif
