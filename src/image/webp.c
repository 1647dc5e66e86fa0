/* SPDX-License-Identifier: Apache-2.0
   webp: the container of lossy (VP8) and lossless (VP8L) pictures. Alpha is dropped. Of an animation nothing is read. */
#include <string.h>

#include "image/vp8.h"

hone_status hone_webp_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    for (size_t at = 12; bytes - at >= 8;) {
        uint32_t n = hone_le32(data + at + 4);
        const uint8_t *body = data + at + 8;
        if (n > bytes - at - 8) return hone_fail(HONE_BAD_INPUT, "the file is cut short inside a chunk");
        if (!memcmp(data + at, "VP8 ", 4)) return hone_vp8_read(body, n, out);
        if (!memcmp(data + at, "VP8L", 4)) return hone_vp8l_read(body, n, out);
        if (!memcmp(data + at, "ANIM", 4)) return hone_fail(HONE_NOT_SUPPORTED, "an animation; save one of its pictures");
        n += n & 1;
        if (n > bytes - at - 8) break;
        at += 8 + n;
    }
    return hone_fail(HONE_BAD_INPUT, "the file is cut short: it has no picture");
}
