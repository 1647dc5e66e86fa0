/* SPDX-License-Identifier: Apache-2.0 */
#include "device/cuda/pack.h"

size_t hone_cuda_pack_first_layer(const unsigned short *weights, size_t outputs, size_t kernel_y,
                                  size_t kernel_x, size_t channels, unsigned short *packed) {
    const size_t line = (kernel_x + 1) / 2, pieces = (kernel_y * line + 1) / 2 * 2;
    for (size_t k = 0; packed && k < outputs * pieces * 8; k++) {
        const size_t n = k / 8 / pieces, piece = k / 8 % pieces, y = piece / line,
                     x = piece % line * 2 + k % 8 / 4, c = k % 4;
        packed[k] = y < kernel_y && x < kernel_x && c < channels
                        ? weights[((n * kernel_y + y) * kernel_x + x) * channels + c]
                        : 0;
    }
    return pieces * 8;
}
