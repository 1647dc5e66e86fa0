/* SPDX-License-Identifier: Apache-2.0
   own_product: what the parts of the tactic for products share: its match (own_product.c), its epilogue
   (own_end.c) and its packed weights (own_weights.c). */
#ifndef HONE_DEVICE_CUDA_OWN_PRODUCT_H
#define HONE_DEVICE_CUDA_OWN_PRODUCT_H
#include "device/cuda/own.h"
#include "loops/match_product.h"

struct hone_own_product {
    hone_match_product m;
    bool depthwise, constant;       /* B is packed ahead */
    bool first;                     /* few channels of an image, which is read as it lies */
    bool copy_a, copy_b;            /* whatever they are stored as */
    hone_dtype half;                /* of factors; F32: tf32; of bytes: A's, and B is I8 */
    int piece;                      /* values of 16 bytes, as kernels read them */
    hone_axes rows, columns, batch; /* as the kernel walks them: at most one each */
    int64_t depth;                  /* of a row of B in memory, and of A where it is copied */
    int64_t channels;               /* window: with zeros behind, where A is copied */
    int zero_a, zero_b;             /* of bytes: zero points; B is packed without its own */
    const char *epilogue;
    int ref, bias, residual, whole; /* of packed weights; tensors, or -1 */
    int64_t bias_at, residual_at, whole_at;
    /* of bytes, in the place of the bias: a number a column that was computed ahead; `scales` of them one
       behind the other */
    const float *scale;
    int scales;
    bool beside; /* the residual is stored otherwise than C: the kernel reads it by itself */
    bool blas;   /* by cuBLASLt, with these ends; it has a choice at all */
    int ends;
    bool chooses;
    /* what is packed behind the weights, and where: a bias in halves, scales, whole numbers that sums begin
       with; 0: not there */
    int64_t packed_bias, packed_scale, packed_whole;
    hone_decision decision;
};
int64_t hone_own_count(const hone_axes *); /* the product of extents */
/* Columns that have numbers of their own: those of all groups of channels. */
int64_t hone_own_columns_of(const hone_match_product *);
/* The sum of a product of bytes begins with a whole number: a bias, or what A's zero point takes away. */
bool hone_own_begins(const hone_own_product *);
bool hone_own_is_byte(hone_dtype);
/* One number that a constant tensor has, all of it; false: it has several, or is no constant. */
bool hone_own_number(const hone_device_call *, int tensor, int *out);

/* ---- own_end.c: the stage behind the sum as an epilogue of the kernel's; p->epilogue NULL: it cannot be
   ---- */
hone_status hone_own_end(hone_arena *, const hone_device_call *, int stage, hone_own_product *) HONE_CHECKED;

/* ---- own_weights.c ---- */
/* Notes what is to be packed; *packed: where it will be. */
hone_status hone_own_weights(const hone_device_call *, hone_own_product *, hone_ref *packed,
                             int64_t *bytes) HONE_CHECKED;
/* Does a weight leave f16's range? What lies between the first and the last of them counts, too. */
bool hone_own_weights_leave_range(const hone_device_call *, const hone_own_product *);
/* Are all weights of bytes, less their zero point, bytes again? */
bool hone_own_weights_fit(const hone_device_call *, const hone_own_product *);
#endif
