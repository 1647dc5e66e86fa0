/* SPDX-License-Identifier: Apache-2.0
   bits: a bound product with weights of few bits in blocks. bits.c finds it in a program, bits_run.c packs the weights and computes it. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_BITS_H
#define HONE_DEVICE_CPU_BITS_H
#include "device/cpu/affine.h"
#include "kernels/bits.h"

typedef struct {
    const hone_bits *kernel;
    int a, b, scales, zero, out; /* tensors; zero -1: none, all are 2^(bits-1) */
    hone_dtype a_dtype, scale_dtype, zero_dtype, out_dtype;
    int bits;
    int64_t block, blocks, k, m, n;
    const int64_t *row_a, *row_out; /* where each row begins */
    int64_t first_a;
    int digits; /* A as so many rows of 8 bits, each what the ones before it left: 1 where A may be rounded, else 3, which is as fine as f32 beside a block's largest value */
    bool coupled;     /* one row by the kernel that takes 4 bits as they are packed */
    int packed, rows; /* refs: panels of weights; quantized rows */
    int64_t panels, per_tile, rows_at_once, row_tiles;
    /* bytes: of a block's weights, with its scales behind them; of all blocks of a panel; of the panel, with zero points; of a quantized row, and where its parts begin */
    int64_t block_bytes, step, stream_bytes, panel_bytes, row_bytes, at_scale, at_sum, at_start, at_flag;
    int64_t grain; /* rows a tile quantizes */
} hone_bits_product;
static inline int64_t hone_bits_deep(const hone_bits_product *d) { return d->blocks * d->block; } /* K in whole blocks */
/* Sizes, when all above them is known; the steps and their packed weights. */
void hone_bits_sizes(hone_bits_product *, int threads);
hone_status hone_bits_steps(hone_recipe_maker *, hone_bits_product *) HONE_CHECKED;
#endif
