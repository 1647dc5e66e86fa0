/* SPDX-License-Identifier: Apache-2.0
   channel_affine: rows that are scaled by column, as bound. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_CHANNEL_AFFINE_H
#define HONE_DEVICE_CPU_CHANNEL_AFFINE_H
#include "device/step.h"
#include "kernels/gemm.h"

typedef struct { /* clamp(x * s + b) */
    const hone_dwconv_nhwc *kernel;
    int x, s, b, out, n_tensor;            /* b: or -1 */
    int64_t x_c, s_c, b_c, *x_at, *out_at; /* where each begins, and its rows */
    int64_t rows, n, grain;
    float lo, hi;
} hone_channel_affine;
hone_tile_fn hone_channel_affine_tile;
#endif
