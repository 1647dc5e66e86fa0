/* SPDX-License-Identifier: Apache-2.0
   vp8: what the files of the WebP decoder share. webp.c reads the container, vp8.c a lossy picture's bits, vp8_block.c makes samples of them,
   vp8l.c reads a lossless picture. */
#ifndef HONE_IMAGE_VP8_H
#define HONE_IMAGE_VP8_H
#include "image/image.h"

/* How a block is predicted: small ones (4x4) in all ten ways, whole ones (16x16, chroma 8x8) in the first four. */
typedef enum {
    HONE_VP8_DC,
    HONE_VP8_TM,
    HONE_VP8_V,
    HONE_VP8_H,
    HONE_VP8_RD,
    HONE_VP8_VR,
    HONE_VP8_LD,
    HONE_VP8_VL,
    HONE_VP8_HD,
    HONE_VP8_HU
} hone_vp8_mode;

typedef struct {                             /* a macroblock */
    uint8_t segment, luma, chroma, mode[16]; /* luma: where not small */
    bool small, skip, filter_inside;
} hone_vp8_macro;

typedef struct {             /* limits of the loop filter */
    int level, inside, edge; /* level 0: none */
} hone_vp8_strength;

/* Planes have a row above (127) and a column to the left (129) of the picture, as prediction wants them. */
typedef struct {
    uint8_t *data, *at; /* at: the first sample */
    ptrdiff_t stride;
} hone_vp8_plane;

/* Macroblock (x, y): prediction, and residues of 25 blocks (16 luma, 4 + 4 chroma) of 16 coefficients; `any` has a bit for each that is not 0. */
void hone_vp8_build(hone_vp8_plane plane[3], const hone_vp8_macro *, int x, int y, int across, const int16_t *coefficient, uint32_t any);
/* The DCs of 16 luma blocks from their own transform. */
void hone_vp8_spread(const int16_t in[16], int16_t *coefficient);
void hone_vp8_smooth(hone_vp8_plane plane[3], int x, int y, bool simple, const hone_vp8_strength *, bool inside);

hone_status hone_vp8_read(const uint8_t *data, size_t bytes, hone_pixels *out) HONE_CHECKED;  /* the body of a "VP8 " chunk */
hone_status hone_vp8l_read(const uint8_t *data, size_t bytes, hone_pixels *out) HONE_CHECKED; /* … of a "VP8L" one */
#endif
