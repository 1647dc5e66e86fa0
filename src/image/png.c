/* SPDX-License-Identifier: Apache-2.0
   png: by libpng. Every colour type and depth, interlaced or not. Transparency, gamma and profiles play no
   part; 16 bits keep their upper 8. */
#include "image/library.h"

#if __has_include(<png.h>)
#include <png.h>
#include <setjmp.h>
#include <string.h>

/* clang-format off */
#define CALLS(X) \
    X(png_create_read_struct_2) X(png_create_info_struct) X(png_destroy_read_struct) X(png_set_read_fn) \
    X(png_get_io_ptr) \
    X(png_get_error_ptr) X(png_get_mem_ptr) X(png_set_user_limits) X(png_read_info) X(png_get_IHDR) \
    X(png_set_expand) \
    X(png_set_strip_16) X(png_set_interlace_handling) X(png_read_update_info) X(png_get_channels) \
    X(png_get_rowbytes) \
    X(png_read_row)
/* clang-format on */
HONE_LIBRARY(CALLS, "libpng16.so.16", "libpng16-16")

enum { DEFLATE_MOST = 1032 }; /* a byte of deflate says at most so many */

typedef struct {
    const uint8_t *data;
    size_t left;
    bool no_memory;
    char message[120];
    jmp_buf failed;
} reader;

static void fail(png_structp png, const char *message) {
    reader *r = lib.png_get_error_ptr(png);
    snprintf(r->message, sizeof r->message, "%s", message);
    longjmp(r->failed, 1);
}
static void ignore(png_structp png, const char *message) {}
static void take(png_structp png, uint8_t *to, size_t n) {
    reader *r = lib.png_get_io_ptr(png);
    if (n > r->left) fail(png, "the file is cut short");
    memcpy(to, r->data, n);
    r->data += n, r->left -= n;
}
static void *take_memory(png_structp png, size_t n) {
    reader *r = lib.png_get_mem_ptr(png);
    void *p = hone_alloc(n);
    r->no_memory |= !p;
    return p;
}
static void give_memory(png_structp png, void *p) { hone_free(p); }

/* Where libpng jumps to must stand in a frame of its own, with nothing in it that changes. */
static hone_status read(reader *r, png_structp png, png_infop info, hone_pixels *out) {
    png_uint_32 width, height;
    int depth, colour, interlaced;
    if (setjmp(r->failed)) {
        if (r->no_memory) return hone_fail(HONE_NO_MEMORY, "no memory for the picture");
        return hone_fail(HONE_BAD_INPUT, "the file is damaged or cut short: %s", r->message);
    }
    lib.png_set_read_fn(png, r, take);
    lib.png_set_user_limits(png, HONE_IMAGE_SIDE, HONE_IMAGE_SIDE);
    lib.png_read_info(png, info);
    lib.png_get_IHDR(png, info, &width, &height, &depth, &colour, &interlaced, NULL, NULL);
    HONE_TRY(hone_pixels_allowed(width, height));
    if (lib.png_get_rowbytes(png, info) * (uint64_t)height / DEFLATE_MOST > r->left)
        return hone_fail(HONE_BAD_INPUT, "the file is cut short: too few bytes for %u x %u", width, height);
    lib.png_set_expand(png); /* a palette's colours, and fewer than 8 bits */
    lib.png_set_strip_16(png);
    int passes = lib.png_set_interlace_handling(png);
    lib.png_read_update_info(png, info);
    HONE_TRY(hone_pixels_create(width, height, lib.png_get_channels(png, info), out));
    size_t row = (size_t)width * (size_t)out->channels;
    if (lib.png_get_rowbytes(png, info) != row)
        return hone_fail(HONE_BUG, "rows of %zu bytes", lib.png_get_rowbytes(png, info));
    for (int pass = 0; pass < passes; pass++)
        for (png_uint_32 y = 0; y < height; y++) lib.png_read_row(png, out->data + y * row, NULL);
    return HONE_OK; /* what follows the pixels is nobody's business */
}

hone_status hone_png_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    HONE_TRY(hone_library_load(&library));
    reader r = {.data = data, .left = bytes};
    png_structp png =
        lib.png_create_read_struct_2(PNG_LIBPNG_VER_STRING, &r, fail, ignore, &r, take_memory, give_memory);
    if (!png) return hone_fail(HONE_NO_MEMORY, "no memory for libpng");
    png_infop info = lib.png_create_info_struct(png);
    hone_status s = info ? read(&r, png, info, out) : hone_fail(HONE_NO_MEMORY, "no memory for libpng");
    lib.png_destroy_read_struct(&png, &info, NULL);
    return s;
}
#else
hone_status hone_png_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    return hone_library_unbuilt("libpng-dev");
}
#endif
