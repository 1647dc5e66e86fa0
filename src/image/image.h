/* SPDX-License-Identifier: Apache-2.0
   image: pictures in. Bytes of a file → rows of 8-bit pixels, by the libraries that everybody uses
   (library.h); BMP and PNM, which have none, by ourselves. One file a format; each format is a row of the
   table in image.c. include/hone/image.h is the door for others.

   Files are hostile. No picture above HONE_IMAGE_SIDE or HONE_IMAGE_PIXELS is made, and before anything is
   allocated it is asked whether so short a file can hold so large a picture, where the format lets one know.
   */
#ifndef HONE_IMAGE_IMAGE_H
#define HONE_IMAGE_IMAGE_H
#include "base/mem.h"
#include "hone/image.h"

#define HONE_IMAGE_SIDE (1 << 20)
#define HONE_IMAGE_PIXELS (1 << 27)

typedef struct {
    int width, height;
    int channels;  /* 1 gray, 2 gray and alpha, 3 RGB, 4 RGBA */
    uint8_t *data; /* [height][width][channels]; hone_free */
} hone_pixels;

/* Room for a picture, zeroed; fails outside the limits. */
hone_status hone_pixels_create(int64_t width, int64_t height, int channels, hone_pixels *out) HONE_CHECKED;
/* The limits alone, for decoders that need other memory first. */
hone_status hone_pixels_allowed(int64_t width, int64_t height) HONE_CHECKED;
/* Any known format, found by its first bytes. On success the caller frees out->data. */
hone_status hone_pixels_read(const uint8_t *data, size_t bytes, hone_pixels *out) HONE_CHECKED;
/* Pixel by pixel into `to`, of 1 or 3 channels. Alpha is dropped; gray is Rec. 601 luma in 16-bit fixed
   point. */
void hone_pixels_convert(const hone_pixels *, hone_image_order, uint8_t *to);

/* ---- the formats; each is called with bytes that begin as its own do ---- */
typedef hone_status hone_pixels_reader(const uint8_t *data, size_t bytes, hone_pixels *out);
hone_pixels_reader hone_png_read, hone_jpeg_read, hone_bmp_read, hone_pnm_read, hone_tiff_read,
    hone_webp_read, hone_jpeg2000_read;

/* Numbers inside files. The caller has checked that the bytes are there. */
static inline uint32_t hone_be16(const uint8_t *p) { return (uint32_t)p[0] << 8 | p[1]; }
static inline uint32_t hone_le16(const uint8_t *p) { return (uint32_t)p[1] << 8 | p[0]; }
static inline uint32_t hone_le32(const uint8_t *p) { return hone_le16(p + 2) << 16 | hone_le16(p); }
static inline uint8_t hone_clip8(int v) { return (uint8_t)(v < 0 ? 0 : v > 255 ? 255 : v); }
#endif
