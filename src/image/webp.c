/* SPDX-License-Identifier: Apache-2.0
   webp: by libwebp, lossy and lossless. Alpha is dropped. Of an animation nothing is read. */
#include "image/library.h"

#if __has_include(<webp/decode.h>)
#include <webp/decode.h>

#define CALLS(X) X(WebPGetFeaturesInternal) X(WebPDecodeRGBInto)
HONE_LIBRARY(CALLS, "libwebp.so.7", "libwebp7")

hone_status hone_webp_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    WebPBitstreamFeatures f;
    HONE_TRY(hone_library_load(&library));
    if (lib.WebPGetFeaturesInternal(data, bytes, &f, WEBP_DECODER_ABI_VERSION) != VP8_STATUS_OK)
        return hone_fail(HONE_BAD_INPUT, "the file is damaged or cut short: its header");
    if (f.has_animation) return hone_fail(HONE_NOT_SUPPORTED, "an animation; save one of its pictures");
    HONE_TRY(hone_pixels_create(f.width, f.height, 3, out));
    if (!lib.WebPDecodeRGBInto(data, bytes, out->data, (size_t)f.width * (size_t)f.height * 3, f.width * 3))
        return hone_fail(HONE_BAD_INPUT, "the file is damaged or cut short: its pixels");
    return HONE_OK;
}
#else
hone_status hone_webp_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    return hone_library_unbuilt("libwebp-dev");
}
#endif
