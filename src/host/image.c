/* SPDX-License-Identifier: Apache-2.0
   image: ImageDecoder: the bytes of a picture's file in, its pixels out. The decoders are src/image's. */
#include "host/call.h"
#include "image/image.h"

hone_status hone_host_image_decoder(const hone_host_call *c) {
    static const char *const formats[] = {
        [HONE_IMAGE_RGB] = "RGB", [HONE_IMAGE_BGR] = "BGR", [HONE_IMAGE_GRAY] = "Grayscale", NULL};
    const hone_value *x;
    hone_value *y;
    hone_pixels p;
    int order;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_U8, &x));
    HONE_TRY(hone_call_choice(c, "pixel_format", formats, HONE_IMAGE_RGB, &order));
    HONE_TRY(hone_pixels_read(x->data, x->bytes, &p));
    hone_status s = hone_host_out(c, 0, HONE_DTYPE_U8,
                                  (int64_t[]){p.height, p.width, order == HONE_IMAGE_GRAY ? 1 : 3}, 3, &y);
    if (!s) hone_pixels_convert(&p, (hone_image_order)order, y->data);
    hone_free(p.data);
    return s;
}
