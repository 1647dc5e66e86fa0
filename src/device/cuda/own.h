/* SPDX-License-Identifier: Apache-2.0
   own: Hone's hand-written CUDA kernels (src/kernels/cuda) as tactics of the CUDA device: which stages of an
   instance they do, with which packed weights, and how they are launched. What no tactic takes is printed
   (loops/kernel.h). */
#ifndef HONE_DEVICE_CUDA_OWN_H
#define HONE_DEVICE_CUDA_OWN_H
#include "device/cuda/attention.h"
#include "device/cuda/blas.h"
#include "device/cuda/contract.h"
#include "device/cuda/first.h"
#include "device/cuda/rows.h"
#include "device/cuda/window.h"
#include "device/printed.h"
#include "device/wisdom.h"
#include "loops/match_product.h"

/* Where an operand is: a ref of the step, or scratch; and its first byte there. which: -1: there is none. */
typedef struct {
    int which;
    bool scratch;
    int64_t at;
} hone_own_place;
/* Where it stands in its base, as if that began at 0: how it is aligned. */
static inline hone_cuda_address hone_own_stands(const hone_ref *ref, hone_own_place p) {
    return (hone_cuda_address)ref[p.which].offset + (hone_cuda_address)p.at;
}
typedef enum {
    HONE_OWN_PRODUCT,
    HONE_OWN_WINDOW, /* depthwise convolutions and pools */
    HONE_OWN_FIRST,
    HONE_OWN_ATTENTION,
    HONE_OWN_ROWS,
    HONE_OWN_COLUMNS,
    HONE_OWN_CELL,
    HONE_OWN_BLAS
} hone_own_kind;
typedef struct { /* of a launch: everything but addresses */
    hone_own_kind kind;
    hone_cuda_launch_shape shape;
    union {
        struct {
            hone_cuda_product product;
            hone_cuda_window window;
            hone_cuda_way way;
        };
        hone_cuda_windowed windowed;
        hone_cuda_first_layer first;
        hone_cuda_rowwise rowwise;
        hone_cuda_columns columns;
        hone_cuda_cell cell;
        struct {
            hone_cuda_attended attended;
            hone_cuda_attention_way attention_way;
        };
    };
    /* Where the kernel's addresses are. Attention has q, k and v in a, b and v, y in c, the mask in residual;
       rows x, weight, y and bias in a, b, c and bias; a cell x, r, h and bias likewise, h0 in residual, c in
       workspace, c0 in v */
    hone_own_place a, b, c, bias, whole, residual, workspace, v;
    const hone_blas_plan *blas;
    int aligned; /* bytes that every address was taken to be a multiple of, when the kernel was chosen */
} hone_own_launch;

/* ---- copies that put an operand in the form that a kernel reads: printed, so that they compile with the
   others --- */
enum { HONE_OWN_COPY_AXES = 6 };
typedef struct {
    /* of the source; outermost first */
    int64_t extent[HONE_OWN_COPY_AXES], stride[HONE_OWN_COPY_AXES];
    int64_t padded; /* the last extent in the copy, zeros behind the source's */
    hone_dtype from, to;
} hone_own_copy;

/* ---- products and convolutions (own_product.c) ---- */
typedef struct hone_own_product hone_own_product;
/* NULL in *out: the stage is not theirs; *beyond: because its weights leave f16's range. Its packed weights
   get the ref `ref`, if it has any: then *packed is where they are. */
hone_status hone_own_product_match(hone_arena *, const hone_cuda_facts *, const hone_device_call *, int stage,
                                   int ref, hone_own_product **out, hone_ref *packed, int64_t *bytes,
                                   bool *beyond) HONE_CHECKED;
int hone_own_product_stages(const hone_own_product *);
uint64_t hone_own_product_unread(const hone_own_product *); /* the weights that it has packed */
/* What a tuner may choose of it; NULL: nothing. */
hone_decision *hone_own_product_decision(hone_own_product *);
hone_status hone_own_product_take(hone_arena *, hone_cuda *, const hone_own_product *, const hone_instance *,
                                  const hone_ref *, hone_taken *) HONE_CHECKED;

/* cuBLASLt in place of our kernel (own_blas.c). wanted: it could do this product, whose sizes are m, n, k
   and batches, and measured choices (decision) say that it should; own_product asks at its match. take: the
   launch in place of the kernel's; not *taken: it cannot after all. */
bool hone_own_blas_wanted(const hone_device_call *, const hone_cuda_facts *, const hone_match_product *,
                          int stage, int bias, int residual, const int64_t *size, hone_decision *decision,
                          int *ends);
hone_status hone_own_blas_take(hone_arena *, hone_cuda *, int ends, hone_own_launch *, hone_taken *,
                               bool *taken) HONE_CHECKED;

/* A copy of an operand, as a launch and scratch of its own: *place is there then. */
hone_status hone_own_copied(hone_arena *, const hone_own_copy *, hone_own_place *place,
                            hone_taken *out) HONE_CHECKED;

/* ---- attention (own_attention.c) ---- */
typedef struct hone_own_attention hone_own_attention;
hone_status hone_own_attention_match(hone_arena *, const hone_device_call *, int stage,
                                     hone_own_attention **out) HONE_CHECKED;
/* Takes nothing where what is stored does not suit it: then its stages are as others. */
hone_status hone_own_attention_take(hone_arena *, const hone_cuda_facts *, const hone_own_attention *,
                                    const hone_instance *, const hone_ref *, hone_taken *) HONE_CHECKED;

/* ---- norms and softmax along rows (own_rows.c) ---- */
typedef struct hone_own_rows hone_own_rows;
hone_status hone_own_rows_match(hone_arena *, const hone_device_call *, int stage,
                                hone_own_rows **out) HONE_CHECKED;
/* Takes nothing where what is stored does not suit it. */
hone_status hone_own_rows_take(hone_arena *, const hone_cuda_facts *, const hone_own_rows *,
                               const hone_instance *, const hone_ref *, hone_taken *) HONE_CHECKED;

/* ---- sums and averages of columns (own_columns.c) ---- */
typedef struct hone_own_columns hone_own_columns;
hone_status hone_own_columns_match(hone_arena *, const hone_device_call *, int stage,
                                   hone_own_columns **out) HONE_CHECKED;
/* Takes nothing where what is stored does not suit it. */
hone_status hone_own_columns_take(hone_arena *, const hone_cuda_facts *, const hone_own_columns *,
                                  const hone_instance *, const hone_ref *, hone_taken *) HONE_CHECKED;

hone_cuda_type hone_own_type(hone_dtype); /* f16, bf16, bytes; f32 for others */

/* ---- pools (own_pool.c) ---- */
typedef struct hone_own_pool hone_own_pool;
hone_status hone_own_pool_match(hone_arena *, const hone_device_call *, int stage,
                                hone_own_pool **out) HONE_CHECKED;
/* Takes nothing where what is stored does not suit it. */
hone_status hone_own_pool_take(hone_arena *, const hone_cuda_facts *, const hone_own_pool *,
                               const hone_instance *, const hone_ref *, hone_taken *) HONE_CHECKED;

/* ---- recurrent layers (own_cell.c) ---- */
typedef struct hone_own_cell hone_own_cell;
/* As hone_own_product_match; the stages are a whole group's. */
hone_status hone_own_cell_match(hone_arena *, const hone_cuda_facts *, const hone_device_call *, int stage,
                                int ref, hone_own_cell **out, hone_ref *packed, int64_t *bytes) HONE_CHECKED;
/* Takes nothing where what is stored does not suit it. */
hone_status hone_own_cell_take(hone_arena *, const hone_own_cell *, const hone_instance *,
                               hone_taken *) HONE_CHECKED;

/* Name, text and entry of a kernel of ours, behind words that epilogues use. */
hone_status hone_own_finish(hone_arena *, hone_text *text, const char *entry, hone_own_launch *,
                            hone_launch *out) HONE_CHECKED;

/* How many operations a second the best kernel does of a large product in this precision, in `queue`
   (own_speed.c). */
hone_status hone_own_speed(hone_cuda *gpu, hone_cuda *queue, hone_dtype precision, double *rate) HONE_CHECKED;

/* ---- the driver's functions (own.c) ---- */
hone_status hone_own_match(void *gpu, hone_arena *, const hone_device_call *,
                           hone_printed_own *out) HONE_CHECKED;
hone_status hone_own_take(void *gpu, hone_arena *, const hone_printed_own *, const hone_instance *,
                          const hone_ref *, int stage, hone_taken *) HONE_CHECKED;
hone_status hone_own_compile(void *gpu, const hone_launch *, const char *cache, void **kernel) HONE_CHECKED;
hone_status hone_own_run(hone_cuda *, void *kernel, const hone_launch *,
                         const hone_printed_memory *) HONE_CHECKED;
#endif
