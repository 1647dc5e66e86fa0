/* SPDX-License-Identifier: Apache-2.0
   unpack: the two old packings of TIFF: LZW and PackBits. Both stop in good order when the room is full or the data ends; *made says how far
   they came. */
#ifndef HONE_IMAGE_UNPACK_H
#define HONE_IMAGE_UNPACK_H
#include "base/mem.h"

/* The largest factors by which data can grow. */
enum { HONE_LZW_MOST = 4096, HONE_PACKBITS_MOST = 128 };
hone_status hone_unlzw(const uint8_t *in, size_t n, uint8_t *out, size_t room, size_t *made) HONE_CHECKED;
hone_status hone_unpackbits(const uint8_t *in, size_t n, uint8_t *out, size_t room, size_t *made) HONE_CHECKED;
#endif
