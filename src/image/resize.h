/* SPDX-License-Identifier: Apache-2.0
   resize: another size for 8-bit pixels. */
#ifndef HONE_IMAGE_RESIZE_H
#define HONE_IMAGE_RESIZE_H
#include "base/mem.h"

/* Bilinear; where a picture shrinks, every new pixel is a weighted mean of all that it covers. The bits are Pillow's: weights of 22 bits, rows
   first, 8 bits in between. `to` has room for new_width * new_height * channels; the sizes are at least 1. */
hone_status hone_resize(const uint8_t *from, int width, int height, int channels, int new_width, int new_height, uint8_t *to) HONE_CHECKED;
#endif
