/* SPDX-License-Identifier: Apache-2.0
   jpeg2000: by OpenJPEG: files (JP2) and bare code streams. Gray, RGB, YCC, with or without alpha, 1 to 16
   bits a sample, any sampling; no palette, no profile. */
#include "image/library.h"

#if __has_include(<openjpeg-2.5/openjpeg.h>)
#include <openjpeg-2.5/openjpeg.h>
#elif __has_include(<openjpeg-2.4/openjpeg.h>)
#include <openjpeg-2.4/openjpeg.h>
#endif
#ifdef OPENJPEG_H
#include <stdio.h>
#include <string.h>

/* clang-format off */
#define CALLS(X) \
    X(opj_create_decompress) X(opj_destroy_codec) X(opj_set_default_decoder_parameters) X(opj_setup_decoder) \
    X(opj_set_error_handler) X(opj_read_header) X(opj_decode) X(opj_image_destroy) X(opj_stream_create) \
    X(opj_stream_destroy) \
    X(opj_stream_set_read_function) X(opj_stream_set_skip_function) X(opj_stream_set_seek_function) \
    X(opj_stream_set_user_data) \
    X(opj_stream_set_user_data_length)
/* clang-format on */
HONE_LIBRARY(CALLS, "libopenjp2.so.7", "libopenjp2-7")

/* a byte of the file stands for at most so many pixels: more is a file made to fill memory */
enum { GROWS_MOST = 1 << 14 };

typedef struct {
    const uint8_t *data;
    size_t bytes, at;
    char message[200]; /* the first */
} reader;

static OPJ_SIZE_T take(void *to, OPJ_SIZE_T n, void *arg) {
    reader *r = arg;
    if (r->at == r->bytes) return (OPJ_SIZE_T)-1;
    if (n > r->bytes - r->at) n = r->bytes - r->at;
    memcpy(to, r->data + r->at, n);
    r->at += n;
    return n;
}
static OPJ_BOOL seek(OPJ_OFF_T to, void *arg) {
    reader *r = arg;
    if (to < 0 || (uint64_t)to > r->bytes) return OPJ_FALSE;
    r->at = (size_t)to;
    return OPJ_TRUE;
}
static OPJ_OFF_T skip(OPJ_OFF_T by, void *arg) {
    reader *r = arg;
    if (by < 0 || (uint64_t)by > r->bytes - r->at) return -1;
    r->at += (size_t)by;
    return by;
}
static void fail(const char *message, void *arg) {
    reader *r = arg;
    if (!r->message[0]) snprintf(r->message, sizeof r->message, "%.*s", (int)strcspn(message, "\n"), message);
}
static hone_status damaged(const reader *r) {
    return hone_fail(HONE_BAD_INPUT, "the file is damaged or cut short: %s",
                     r->message[0] ? r->message : "OpenJPEG says no more");
}

/* A sample of any size as 8 bits, rounded; a component that has fewer samples than the picture repeats
   them. */
static int sample(const opj_image_comp_t *c, uint32_t x, uint32_t y) {
    x /= c->dx, y /= c->dy;
    if (x >= c->w) x = c->w - 1;
    if (y >= c->h) y = c->h - 1;
    int64_t v = c->data[(size_t)y * c->w + x], most = ((int64_t)1 << c->prec) - 1;
    if (c->sgnd) v += (int64_t)1 << (c->prec - 1);
    return hone_clip8((int)((v < 0 ? 0 : v > most ? most : v) * 510 / most + 1) / 2);
}

static hone_status check(const reader *r, const opj_image_t *image, int64_t *width, int64_t *height) {
    *width = (int64_t)image->x1 - image->x0, *height = (int64_t)image->y1 - image->y0;
    HONE_TRY(hone_pixels_allowed(*width, *height));
    if (*width * *height / GROWS_MOST > (int64_t)r->bytes)
        return hone_fail(HONE_BAD_INPUT, "the file is cut short: too few bytes for %lld x %lld",
                         (long long)*width, (long long)*height);
    if (image->numcomps < 1 || image->numcomps > 4)
        return hone_fail(HONE_NOT_SUPPORTED, "%u components; convert it to RGB", image->numcomps);
    for (uint32_t k = 0; k < image->numcomps; k++)
        if (image->comps[k].prec < 1 || image->comps[k].prec > 16 || image->comps[k].dx < 1 ||
            image->comps[k].dy < 1)
            return hone_fail(HONE_NOT_SUPPORTED, "samples of %u bits; convert it to PNG",
                             image->comps[k].prec);
    if (image->color_space == OPJ_CLRSPC_CMYK || image->color_space == OPJ_CLRSPC_EYCC)
        return hone_fail(HONE_NOT_SUPPORTED, "its colours are neither gray, RGB nor YCC; convert it to RGB");
    return HONE_OK;
}

static hone_status pixels(const reader *r, const opj_image_t *image, int64_t width, int64_t height,
                          hone_pixels *out) {
    int n = (int)image->numcomps;
    bool ycc = image->color_space == OPJ_CLRSPC_SYCC && n >= 3;
    for (int c = 0; c < n; c++)
        if (!image->comps[c].data || !image->comps[c].w || !image->comps[c].h) return damaged(r);
    HONE_TRY(hone_pixels_create(width, height, n, out));
    uint8_t *to = out->data;
    for (uint32_t y = 0; y < (uint32_t)height; y++)
        for (uint32_t x = 0; x < (uint32_t)width; x++, to += n) {
            for (int c = 0; c < n; c++) to[c] = (uint8_t)sample(&image->comps[c], x, y);
            if (!ycc) continue;
            float l = to[0], cb = (float)to[1] - 128, cr = (float)to[2] - 128;
            to[0] = hone_clip8((int)(l + 1.402f * cr + 0.5f));
            to[1] = hone_clip8((int)(l - 0.344136f * cb - 0.714136f * cr + 0.5f));
            to[2] = hone_clip8((int)(l + 1.772f * cb + 0.5f));
        }
    return HONE_OK;
}

static hone_status read(reader *r, opj_codec_t *codec, opj_stream_t *stream, hone_pixels *out) {
    opj_dparameters_t parameters;
    opj_image_t *image = NULL;
    int64_t width = 0, height = 0;
    lib.opj_set_error_handler(codec, fail, r);
    lib.opj_set_default_decoder_parameters(&parameters);
    if (!lib.opj_setup_decoder(codec, &parameters)) return damaged(r);
    lib.opj_stream_set_read_function(stream, take);
    lib.opj_stream_set_skip_function(stream, skip);
    lib.opj_stream_set_seek_function(stream, seek);
    lib.opj_stream_set_user_data(stream, r, NULL);
    lib.opj_stream_set_user_data_length(stream, r->bytes);
    hone_status s =
        lib.opj_read_header(stream, codec, &image) ? check(r, image, &width, &height) : damaged(r);
    if (!s && !lib.opj_decode(codec, stream, image)) s = damaged(r);
    if (!s) s = pixels(r, image, width, height, out);
    if (image) lib.opj_image_destroy(image);
    return s;
}

hone_status hone_jpeg2000_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    HONE_TRY(hone_library_load(&library));
    reader r = {.data = data, .bytes = bytes};
    opj_codec_t *codec = lib.opj_create_decompress(data[0] == 0xff ? OPJ_CODEC_J2K : OPJ_CODEC_JP2);
    opj_stream_t *stream = lib.opj_stream_create(1 << 16, OPJ_TRUE);
    hone_status s =
        codec && stream ? read(&r, codec, stream, out) : hone_fail(HONE_NO_MEMORY, "no memory for OpenJPEG");
    if (stream) lib.opj_stream_destroy(stream);
    if (codec) lib.opj_destroy_codec(codec);
    return s;
}
#else
hone_status hone_jpeg2000_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    return hone_library_unbuilt("libopenjp2-7-dev");
}
#endif
