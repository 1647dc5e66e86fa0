/* SPDX-License-Identifier: Apache-2.0
   window: depthwise convolutions and pools on an NVIDIA GPU: the ways in which one can be done, what each
   would cost, how its kernel (src/kernels/cuda/window.cu) is printed and launched. */
#ifndef HONE_DEVICE_CUDA_WINDOW_H
#define HONE_DEVICE_CUDA_WINDOW_H
#include "device/cuda/driver.h"
#include "device/cuda/print.h"

typedef struct {
    hone_cuda_window_kind kind;
    hone_cuda_type type;
    int zero;             /* of bytes: which stands for 0 */
    const char *epilogue; /* an expression of v, see window.cu */
    hone_cuda_window p;   /* strides and dilations of both dims are equal; pitches are
                           multiples of what a thread loads and stores at once */
} hone_cuda_windowed;
typedef struct {
    int width, strip, lines; /* channels, outputs of a line, lines that a thread has */
    int ahead;               /* see window.cu */
} hone_cuda_window_way;

/* there is always one */
int hone_cuda_window_ways(const hone_cuda_windowed *v, hone_cuda_window_way *way, int most);
double hone_cuda_window_cost(const hone_cuda_windowed *v, const hone_cuda_facts *gpu,
                             const hone_cuda_window_way *way); /* microseconds, about */
hone_cuda_window_way hone_cuda_window_best(const hone_cuda_windowed *v, const hone_cuda_facts *gpu);
hone_status hone_cuda_window_print(hone_text *out, const hone_cuda_windowed *v,
                                   const hone_cuda_window_way *way); /* the kernel is hone_window */
hone_cuda_launch_shape hone_cuda_window_launch(const hone_cuda_windowed *v, const hone_cuda_window_way *way);
#endif
