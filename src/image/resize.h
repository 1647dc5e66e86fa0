/* SPDX-License-Identifier: Apache-2.0
   resize: another size for 8-bit pixels. */
#ifndef HONE_IMAGE_RESIZE_H
#define HONE_IMAGE_RESIZE_H
#include "base/mem.h"

typedef struct {
    int x, y, width, height;
} hone_box;
/* Bilinear; where a picture shrinks, every new pixel is a weighted mean of all that it covers. The bits are
   Pillow's: weights of 22 bits, rows first, 8 bits in between. Only `part` of the new picture is made, from
   those old rows that it needs; `to` has room for it. The sizes are at least 1. */
hone_status hone_resize(const uint8_t *from, int width, int height, int channels, int new_width,
                        int new_height, const hone_box *part, uint8_t *to) HONE_CHECKED;
#endif
