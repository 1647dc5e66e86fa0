/* SPDX-License-Identifier: Apache-2.0
   image.h: pictures as inputs. A file's bytes → a u8 tensor; u8 tensors → the tensor a model wants.

   PNG, JPEG, JPEG 2000, WebP, BMP, PNM and TIFF, found by their first bytes; all but BMP and PNM by
   libraries that are loaded when they are first wanted (the error names the package of one that is not
   there). A picture has at most 2^20 columns, 2^20 rows and 2^27 pixels in all. Samples become 8 bits; alpha
   is dropped; no orientation tag and no colour profile is applied. All functions may be called from any
   thread. */
#ifndef HONE_IMAGE_H
#define HONE_IMAGE_H
#include "hone/hone.h"
#ifdef __cplusplus
extern "C" {
#endif

typedef enum { HONE_IMAGE_RGB, HONE_IMAGE_BGR, HONE_IMAGE_GRAY } hone_image_order;

/* "PNG", "JPEG", …: what these bytes begin as; NULL when nothing known. 16 bytes are enough. */
HONE_API const char *hone_image_format(const void *bytes, size_t n);
/* u8[height, width, 3], or u8[height, width, 1] for gray. The caller owns *out. */
HONE_API hone_status hone_image_decode(const void *bytes, size_t n, hone_image_order, hone_value **out);
HONE_API hone_status hone_image_read(const char *path, hone_image_order, hone_value **out);

/* What is done to a picture before a model sees it, in this order. */
typedef enum {
    HONE_IMAGE_COVER,   /* keep the proportions, fill width x height, cut what stands out on both sides */
    HONE_IMAGE_STRETCH, /* width x height whatever the proportions */
    /* keep the proportions, all inside width x height, the rest gray (114) on both sides */
    HONE_IMAGE_PAD
} hone_image_fit;
typedef struct {
    int width, height; /* of the result; 0: the first picture's own (after `shorter`) */
    /* COVER: the shorter side is first brought to this size; 0: just so that the result is covered */
    int shorter;
    /* bilinear, over all pixels that a new one covers (Pillow's and torchvision's antialias, bit for bit) */
    hone_image_fit fit;
    hone_image_order order; /* of the channels */
    float range;            /* pixels become 0 to range: 1, or 255 */
    float mean[3], std[3];  /* then (x - mean) / std, by channel in the result's order */
    int last;               /* 1: channels are the last dim (NHWC), 0: the second (NCHW) */
    hone_dtype dtype;       /* F32; or U8, then range, mean and std play no part */
    int batch;              /* 1: the result has a dim for the pictures in front; 0: one picture, rank 3 */
} hone_image_recipe;

/* The recipe of a model's input: layout, channels, size and type from its declared shape, range, mean and std
   as most networks want them (3 channels: ImageNet's; gray: 0 to 1). Fails where the input cannot be a
   picture; the message says why. */
HONE_API hone_status hone_image_recipe_for(const hone_port *, hone_image_recipe *out);
/* range, mean and std by name: "imagenet", "0-1", "-1-1" or "none" (0 to 255). 0 when there is no such
   name. */
HONE_API int hone_image_recipe_name(hone_image_recipe *, const char *name);
/* The recipe in words, in at most `room` bytes: "shorter side 256, centre 224x224, RGB, 0 to 1, mean 0.485
   …". */
HONE_API void hone_image_recipe_text(const hone_image_recipe *, char *out, size_t room);
/* u8[height, width, 3] or u8[height, width, 1] in RGB order, as hone_image_decode makes them, each of its own
   size → one tensor. */
HONE_API hone_status hone_image_prepare(hone_value *const *pictures, int n, const hone_image_recipe *,
                                        hone_value **out);

#ifdef __cplusplus
}
#endif
#endif
