/* SPDX-License-Identifier: Apache-2.0
   first: the first layer of a network of images on an NVIDIA GPU: in which ways
   src/kernels/cuda/first_layer.cu can do it, what each would cost, how it is printed and launched. */
#ifndef HONE_DEVICE_CUDA_FIRST_H
#define HONE_DEVICE_CUDA_FIRST_H
#include "device/cuda/driver.h"
#include "device/cuda/print.h"

typedef struct {
    hone_cuda_type in, out; /* factors, of 16 bits; results */
    hone_cuda_type image;   /* as it is stored: in, or f32 */
    const char *epilogue;   /* an expression of v, see epilogue.cu */
    hone_cuda_first p;      /* both strides are equal, dilations 1; b as hone_cuda_pack_first_layer has it */
} hone_cuda_first_layer;
typedef struct {
    int tile_y, blocks_m, tile_n; /* lines of 16 outputs a block and a warp; output channels a block */
} hone_cuda_first_way;

/* How many ways there are on this GPU, at most `most` of them; 0: none, the window or its step is too
   large. */
int hone_cuda_first_ways(const hone_cuda_first_layer *, const hone_cuda_facts *gpu, hone_cuda_first_way *way,
                         int most);
double hone_cuda_first_cost(const hone_cuda_first_layer *, const hone_cuda_facts *gpu,
                            const hone_cuda_first_way *way); /* microseconds, about */
bool hone_cuda_first_best(const hone_cuda_first_layer *, const hone_cuda_facts *gpu,
                          hone_cuda_first_way *way); /* the cheapest; false: there is none */
hone_status hone_cuda_first_print(hone_text *out, const hone_cuda_first_layer *,
                                  const hone_cuda_first_way *way); /* the kernel is hone_first_layer */
hone_cuda_launch_shape hone_cuda_first_launch(const hone_cuda_first_layer *, const hone_cuda_facts *gpu,
                                              const hone_cuda_first_way *way);
#endif
