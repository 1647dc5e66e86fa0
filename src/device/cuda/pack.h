/* SPDX-License-Identifier: Apache-2.0
   pack: weights in the order a CUDA kernel wants them, made once on the CPU. */
#ifndef HONE_DEVICE_CUDA_PACK_H
#define HONE_DEVICE_CUDA_PACK_H
#include <stddef.h>

/* For first_layer: 16-bit weights [outputs][kernel_y][kernel_x][channels], 1 to 4 channels, to
   [outputs][pieces][8]: a piece is two taps of a line by four channels; what is too much is zero. `packed`
   NULL: only the size. Returns the elements of one output: pieces times 8. */
enum { HONE_CUDA_FIRST_MOST = 128 * 4 }; /* weights of an output that the kernel takes */
size_t hone_cuda_pack_first_layer(const unsigned short *weights, size_t outputs, size_t kernel_y,
                                  size_t kernel_x, size_t channels, unsigned short *packed);
#endif
