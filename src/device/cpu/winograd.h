/* SPDX-License-Identifier: Apache-2.0
   winograd: contractions that are 3x3 convolutions over channels-last pictures, by tiles (kernels/winograd.h). Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_WINOGRAD_H
#define HONE_DEVICE_CPU_WINOGRAD_H
#include "device/cpu/contract.h"

/* Sets d->winograd where it is such a convolution and this is the faster way; d is analysed, its weights are to be packed, its epilogue is known. */
hone_status hone_winograd_choose(hone_recipe_maker *, hone_contract *d, int threads,
                                 const hone_gemm_half *) HONE_CHECKED; /* whose products; NULL: f32 */
bool hone_winograd_able(const hone_contract *);                        /* it is one; d as above */
int hone_winograd_tile(const hone_contract *);                         /* results a side of a tile; 0: not by tiles */
/* Filters at their places, in panels: how many bytes, and their filling from the weights. */
size_t hone_winograd_bytes(const hone_contract *);
void hone_winograd_fill(const hone_contract *, const float *source, void *panels);
/* Adds its steps; uses: what the contraction reads and writes. */
hone_status hone_winograd_steps(hone_recipe_maker *, hone_contract *, uint64_t uses) HONE_CHECKED;
#endif
