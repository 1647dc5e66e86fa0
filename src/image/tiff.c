/* SPDX-License-Identifier: Apache-2.0
   tiff: the first picture of a file, by libtiff's own way to RGB: strips and tiles, every packing and kind
   of colours that it knows. Gray comes out as RGB; 16 bits are rounded to 8; alpha is dropped. */
#include "image/library.h"

#if __has_include(<tiffio.h>) && !defined(HONE_STATIC) /* it would bring six more */
#include <tiffio.h>
#endif
/* 4.5: messages that go to the caller, a limit on memory */
#if defined TIFFLIB_VERSION && TIFFLIB_VERSION >= 20221213
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define CALLS(X) \
    X(TIFFOpenOptionsAlloc) X(TIFFOpenOptionsFree) X(TIFFOpenOptionsSetMaxSingleMemAlloc) \
    X(TIFFOpenOptionsSetErrorHandlerExtR) \
    X(TIFFOpenOptionsSetWarningHandlerExtR) X(TIFFClientOpenExt) X(TIFFClose) X(TIFFGetField) \
    X(TIFFGetFieldDefaulted) \
    X(TIFFSetField) X(TIFFRGBAImageOK) X(TIFFReadRGBAImageOriented)
/* clang-format on */
HONE_LIBRARY(CALLS, "libtiff.so.6", "libtiff6")

typedef struct {
    const uint8_t *data;
    size_t bytes, at;
    char message[200]; /* the first */
} reader;

static tmsize_t take(thandle_t h, void *to, tmsize_t n) {
    reader *r = (reader *)h;
    size_t left = r->bytes - r->at, some = n < 0 ? 0 : (size_t)n < left ? (size_t)n : left;
    memcpy(to, r->data + r->at, some);
    r->at += some;
    return (tmsize_t)some;
}
static tmsize_t put(thandle_t h, void *from, tmsize_t n) { return 0; }
static toff_t seek(thandle_t h, toff_t to, int whence) {
    reader *r = (reader *)h;
    toff_t at = whence == SEEK_SET ? to : (whence == SEEK_CUR ? r->at : r->bytes) + to;
    r->at = at < r->bytes ? (size_t)at : r->bytes;
    return at <= r->bytes ? at : (toff_t)-1;
}
static int done(thandle_t h) { return 0; }
static toff_t size(thandle_t h) { return ((reader *)h)->bytes; }
static int map(thandle_t h, void **base, toff_t *n) {
    reader *r = (reader *)h;
    *base = (void *)r->data, *n = r->bytes;
    return 1;
}
static void unmap(thandle_t h, void *base, toff_t n) {}
static int fail(TIFF *t, void *to, const char *module, const char *format, va_list args) {
    reader *r = to;
    if (!r->message[0]) vsnprintf(r->message, sizeof r->message, format, args);
    return 1;
}
static int ignore(TIFF *t, void *to, const char *module, const char *format, va_list args) { return 1; }
static hone_status damaged(const reader *r) {
    return hone_fail(HONE_BAD_INPUT, "the file is damaged or cut short: %s",
                     r->message[0] ? r->message : "libtiff says no more");
}

/* A packing, and how much a byte of it can grow; of the others nothing is known. */
static const struct {
    uint16_t packing, most;
} grows[] = {{COMPRESSION_NONE, 1},
             {COMPRESSION_LZW, 4096},
             {COMPRESSION_ADOBE_DEFLATE, 1032},
             {COMPRESSION_DEFLATE, 1032},
             {COMPRESSION_PACKBITS, 64}};

static hone_status read(reader *r, TIFF *t, hone_pixels *out) {
    uint32_t width = 0, height = 0;
    uint16_t packing = 0, bits = 1, orientation = ORIENTATION_TOPLEFT, extra = 0, *kinds = NULL;
    char why[1024] = "";
    if (!lib.TIFFGetField(t, TIFFTAG_IMAGEWIDTH, &width) ||
        !lib.TIFFGetField(t, TIFFTAG_IMAGELENGTH, &height))
        return damaged(r);
    HONE_TRY(hone_pixels_allowed(width, height));
    lib.TIFFGetFieldDefaulted(t, TIFFTAG_COMPRESSION, &packing);
    lib.TIFFGetFieldDefaulted(t, TIFFTAG_BITSPERSAMPLE, &bits);
    lib.TIFFGetFieldDefaulted(t, TIFFTAG_ORIENTATION, &orientation);
    for (size_t k = 0; k < sizeof grows / sizeof *grows; k++)
        if (grows[k].packing == packing && (uint64_t)width * height * bits / 8 / grows[k].most > r->bytes)
            return hone_fail(HONE_BAD_INPUT, "the file is cut short: too few bytes for %u x %u", width,
                             height);
    /* Alpha of no stated kind is left alone; colours would be multiplied by any other. */
    if (lib.TIFFGetField(t, TIFFTAG_EXTRASAMPLES, &extra, &kinds) && extra) {
        uint16_t none[16] = {EXTRASAMPLE_UNSPECIFIED};
        if (extra <= 16) lib.TIFFSetField(t, TIFFTAG_EXTRASAMPLES, extra, none);
    }
    if (!lib.TIFFRGBAImageOK(t, why)) return hone_fail(HONE_NOT_SUPPORTED, "%s; convert it to RGB", why);
    HONE_TRY(hone_pixels_create(width, height, 4, out));
    return lib.TIFFReadRGBAImageOriented(t, width, height, (uint32_t *)(void *)out->data, orientation, 1)
               ? HONE_OK
               : damaged(r);
}

hone_status hone_tiff_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    HONE_TRY(hone_library_load(&library));
    reader r = {.data = data, .bytes = bytes};
    TIFFOpenOptions *options = lib.TIFFOpenOptionsAlloc();
    if (!options) return hone_fail(HONE_NO_MEMORY, "no memory for libtiff");
    lib.TIFFOpenOptionsSetMaxSingleMemAlloc(options, (tmsize_t)HONE_IMAGE_PIXELS * 4);
    lib.TIFFOpenOptionsSetErrorHandlerExtR(options, fail, &r);
    lib.TIFFOpenOptionsSetWarningHandlerExtR(options, ignore, NULL);
    TIFF *t = lib.TIFFClientOpenExt("picture", "r", (thandle_t)&r, take, put, seek, done, size, map, unmap,
                                    options);
    lib.TIFFOpenOptionsFree(options);
    hone_status s = t ? read(&r, t, out) : damaged(&r);
    if (t) lib.TIFFClose(t);
    return s;
}
#else
hone_status hone_tiff_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    return hone_library_unbuilt("libtiff-dev (4.5 or later)");
}
#endif
