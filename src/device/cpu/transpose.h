/* SPDX-License-Identifier: Apache-2.0
   transpose: bytes of images that lie channels first, transposed for a product that wants them channels last,
   or back. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_TRANSPOSE_H
#define HONE_DEVICE_CPU_TRANSPOSE_H
#include "device/cpu/cpu.h"

typedef struct {
    int tensor; /* -1: none */
    int64_t batches, channels, pixels;
} hone_transposed;
/* Does this tensor of bytes lie channels first, dense, with some channels and some pixels? */
bool hone_transpose_able(const hone_cpu_call *, int tensor, hone_transposed *);
/* those of channels last */
void hone_transpose_strides(const hone_cpu_call *, const hone_transposed *, int64_t *stride);
/* A step between the tensor and a buffer (a ref): to the buffer, channels last, or back. */
hone_status hone_transpose_step(hone_template_builder *, const hone_transposed *, int buffer,
                                bool back) HONE_CHECKED;
#endif
