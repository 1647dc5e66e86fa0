/* SPDX-License-Identifier: Apache-2.0
   image: which format it is, what size is allowed, and how pixels become the channels asked for. */
#include "image/image.h"

#include <string.h>

#include "base/file.h"
#include "base/value.h"

/* A format is known by its first bytes: `mask` has a space where any byte will do. */
typedef struct {
    const char *name, *magic, *mask;
    hone_pixels_reader *read; /* NULL: known by name only */
} format;
static const format formats[] = {
    {"PNG", "\x89PNG\r\n\x1a\n", "xxxxxxxx", hone_png_read},
    {"JPEG", "\xff\xd8\xff", "xxx", hone_jpeg_read},
    {"BMP", "BM", "xx", hone_bmp_read},
    {"PNM", "P1", "xx", hone_pnm_read},
    {"PNM", "P2", "xx", hone_pnm_read},
    {"PNM", "P3", "xx", hone_pnm_read},
    {"PNM", "P4", "xx", hone_pnm_read},
    {"PNM", "P5", "xx", hone_pnm_read},
    {"PNM", "P6", "xx", hone_pnm_read},
    {"TIFF", "II*\0", "xxxx", hone_tiff_read},
    {"TIFF", "MM\0*", "xxxx", hone_tiff_read},
    {"WebP", "RIFF    WEBP", "xxxx    xxxx", hone_webp_read},
    {"JPEG 2000", "\0\0\0\x0cjP  \r\n\x87\n", "xxxxxxxxxxxx", hone_jpeg2000_read},
    {"JPEG 2000", "\xff\x4f\xff\x51", "xxxx", hone_jpeg2000_read},
    {"GIF", "GIF8", "xxxx", NULL},
    {"AVIF or HEIF", "    ftyp", "    xxxx", NULL},
};

static const format *find(const uint8_t *data, size_t bytes) {
    for (size_t k = 0; k < sizeof formats / sizeof *formats; k++) {
        const format *f = &formats[k];
        size_t n = strlen(f->mask), i = 0;
        while (i < n && i < bytes && (f->mask[i] == ' ' || data[i] == (uint8_t)f->magic[i])) i++;
        if (i == n) return f;
    }
    return NULL;
}

const char *hone_image_format(const void *bytes, size_t n) {
    const format *f = bytes ? find(bytes, n) : NULL;
    return f ? f->name : NULL;
}

/* ---- pixels ---- */

hone_status hone_pixels_allowed(int64_t width, int64_t height) {
    if (width < 1 || height < 1)
        return hone_fail(HONE_BAD_INPUT, "the picture has no pixel (%lld x %lld)", (long long)width,
                         (long long)height);
    if (width > HONE_IMAGE_SIDE || height > HONE_IMAGE_SIDE || width * height > HONE_IMAGE_PIXELS)
        return hone_fail(HONE_NOT_SUPPORTED, "the picture is %lld x %lld; at most %d pixels are read",
                         (long long)width, (long long)height, HONE_IMAGE_PIXELS);
    return HONE_OK;
}

hone_status hone_pixels_create(int64_t width, int64_t height, int channels, hone_pixels *out) {
    HONE_TRY(hone_pixels_allowed(width, height));
    uint8_t *data = hone_alloc((size_t)width * (size_t)height * (size_t)channels);
    if (!data)
        return hone_fail(HONE_NO_MEMORY, "no memory for a picture of %lld x %lld", (long long)width,
                         (long long)height);
    *out = (hone_pixels){.width = (int)width, .height = (int)height, .channels = channels, .data = data};
    return HONE_OK;
}

hone_status hone_pixels_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    const format *f = find(data, bytes);
    if (!f)
        return hone_fail(HONE_BAD_INPUT, "no picture: the first bytes are those of no format that is known "
                                         "(PNG, JPEG, JPEG 2000, WebP, BMP, PNM, TIFF)");
    if (!f->read) return hone_fail(HONE_NOT_SUPPORTED, "a %s picture; convert it to PNG or JPEG", f->name);
    hone_pixels made = {0};
    hone_status s = f->read(data, bytes, &made);
    if (s) hone_free(made.data);
    else *out = made;
    return s ? hone_fail_at(s, "%s: ", f->name) : HONE_OK;
}

void hone_pixels_convert(const hone_pixels *p, hone_image_order order, uint8_t *to) {
    const uint8_t *from = p->data;
    int step = p->channels, g = step > 2, b = step > 2 ? 2 : 0; /* gray: all three are the first */
    size_t n = (size_t)p->width * (size_t)p->height;
    if (step == (order == HONE_IMAGE_GRAY ? 1 : 3) && order != HONE_IMAGE_BGR) {
        memcpy(to, from, n * (size_t)step);
        return;
    }
    for (size_t k = 0; k < n; k++, from += step) {
        switch (order) {
        case HONE_IMAGE_RGB: to[0] = from[0], to[1] = from[g], to[2] = from[b], to += 3; break;
        case HONE_IMAGE_BGR: to[0] = from[b], to[1] = from[g], to[2] = from[0], to += 3; break;
        case HONE_IMAGE_GRAY: /* 0.299, 0.587, 0.114 */
            *to++ = step < 3
                        ? from[0]
                        : (uint8_t)((from[0] * 19595u + from[1] * 38470u + from[2] * 7471u + 0x8000u) >> 16);
            break;
        }
    }
}

/* ---- the door ---- */

hone_status hone_image_decode(const void *bytes, size_t n, hone_image_order order, hone_value **out) {
    hone_pixels p;
    hone_value *made = NULL;
    if (!bytes || !out || order < HONE_IMAGE_RGB || order > HONE_IMAGE_GRAY)
        return hone_fail(
            HONE_BAD_INPUT,
            "hone_image_decode: bytes and out must not be NULL, the order must be one of the enum");
    HONE_TRY(hone_pixels_read(bytes, n, &p));
    hone_status s = hone_value_tensor(
        HONE_DTYPE_U8, (int64_t[]){p.height, p.width, order == HONE_IMAGE_GRAY ? 1 : 3}, 3, &made);
    if (!s) hone_pixels_convert(&p, order, made->data);
    hone_free(p.data);
    if (!s) *out = made;
    return s;
}

hone_status hone_image_read(const char *path, hone_image_order order, hone_value **out) {
    hone_file file;
    if (!path || !out) return hone_fail(HONE_BAD_INPUT, "hone_image_read: path and out must not be NULL");
    HONE_TRY(hone_file_open(path, &file));
    hone_status s = hone_image_decode(file.data, file.bytes, order, out);
    hone_file_close(&file);
    return s ? hone_fail_at(s, "%s: ", path) : HONE_OK;
}
