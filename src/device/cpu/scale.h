/* SPDX-License-Identifier: Apache-2.0
   scale: rows that are scaled by column, as bound. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_SCALE_H
#define HONE_DEVICE_CPU_SCALE_H
#include "device/step.h"
#include "kernels/gemm.h"

typedef struct { /* clamp(x * s + b) */
    const hone_depthwise_rows *kernel;
    int x, s, b, out, n_tensor;            /* b: or -1 */
    int64_t x_c, s_c, b_c, *x_at, *out_at; /* where each begins, and its rows */
    int64_t rows, n, grain;
    float lo, hi;
} hone_scaling;
hone_tile_fn hone_scale_tile;
#endif
