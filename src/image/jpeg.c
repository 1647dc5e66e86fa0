/* SPDX-License-Identifier: Apache-2.0
   jpeg: by libjpeg-turbo, with its own defaults (the accurate integer transform, the triangle filter for
   chroma), as Pillow and OpenCV have them. Gray stays gray, inks become RGB. What libjpeg only warns of (a
   file that is cut short, codes that do not exist) is an error here: half a gray picture is a wrong answer.
   */
#include <stdio.h>

#include "image/library.h"

#if __has_include(<jpeglib.h>) && __has_include(<jconfig.h>) /* the second is each architecture's own */
#include <jpeglib.h>

#include <jerror.h>
#include <setjmp.h>

/* clang-format off */
#define CALLS(X) \
    X(jpeg_std_error) X(jpeg_CreateDecompress) X(jpeg_destroy_decompress) X(jpeg_mem_src) \
    X(jpeg_read_header) \
    X(jpeg_start_decompress) X(jpeg_read_scanlines)
/* clang-format on */
#if JPEG_LIB_VERSION >= 80 /* two forms of the same library, as distributions built it */
HONE_LIBRARY(CALLS, "libjpeg.so.8", "libjpeg-turbo8")
#else
HONE_LIBRARY(CALLS, "libjpeg.so.62", "libjpeg62-turbo")
#endif

enum { SCANS_MOST = 256 }; /* a small file must not keep the decoder busy */

typedef struct {
    struct jpeg_decompress_struct jpeg;
    struct jpeg_error_mgr error;
    struct jpeg_progress_mgr progress;
    uint8_t *row; /* of inks */
    jmp_buf failed;
} reader;

static void fail(j_common_ptr jpeg) { longjmp(((reader *)jpeg->client_data)->failed, 1); }
static void say_nothing(j_common_ptr jpeg) {}
static void warn(j_common_ptr jpeg, int level) {
    if (level < 0 && jpeg->err->msg_code != JWRN_EXTRANEOUS_DATA) fail(jpeg);
}
static void step(j_common_ptr jpeg) {
    if (((j_decompress_ptr)jpeg)->input_scan_number > SCANS_MOST) {
        jpeg->err->msg_code = 0;
        fail(jpeg);
    }
}

/* Files store inks turned around: 255 is none. As Pillow: how much light is left under `ink` and a black of
   `light`. */
static uint8_t under(int ink, int light) {
    int t = (255 - ink) * light + 128;
    return hone_clip8(light - ((t + (t >> 8)) >> 8));
}

static hone_status read(reader *r, const uint8_t *data, size_t bytes, hone_pixels *out) {
    j_decompress_ptr j = &r->jpeg;
    if (setjmp(r->failed)) {
        char message[JMSG_LENGTH_MAX] = "too many scans";
        if (r->error.msg_code) r->error.format_message((j_common_ptr)j, message);
        if (r->error.msg_code == JERR_OUT_OF_MEMORY)
            return hone_fail(HONE_NO_MEMORY, "no memory for the picture");
        return hone_fail(HONE_BAD_INPUT, "the file is damaged or cut short: %s", message);
    }
    lib.jpeg_CreateDecompress(j, JPEG_LIB_VERSION, sizeof *j);
    j->client_data = r;
    r->progress.progress_monitor = step, j->progress = &r->progress;
    lib.jpeg_mem_src(j, (unsigned char *)data, bytes);
    lib.jpeg_read_header(j, TRUE);
    HONE_TRY(hone_pixels_allowed(j->image_width, j->image_height));
    /* a block has a bit; 16: of the largest sampling */
    if (!j->arith_code && (uint64_t)j->image_width * j->image_height / (64 * 16) / 8 > bytes)
        return hone_fail(HONE_BAD_INPUT, "the file is cut short: too few bytes for %u x %u", j->image_width,
                         j->image_height);
    bool inks = j->num_components == 4;
    j->out_color_space = j->num_components == 1 ? JCS_GRAYSCALE : inks ? JCS_CMYK : JCS_RGB;
    lib.jpeg_start_decompress(j);
    HONE_TRY(hone_pixels_create(j->output_width, j->output_height, inks ? 3 : j->output_components, out));
    if (inks && !(r->row = hone_alloc((size_t)out->width * 4)))
        return hone_fail(HONE_NO_MEMORY, "no memory for a row of the picture");
    while (j->output_scanline < j->output_height) {
        uint8_t *to = out->data + (size_t)j->output_scanline * (size_t)out->width * (size_t)out->channels,
                *row = inks ? r->row : to;
        lib.jpeg_read_scanlines(j, &row, 1);
        for (int x = 0; inks && x < out->width; x++)
            for (int c = 0; c < 3; c++) to[3 * x + c] = under(row[4 * x + c], row[4 * x + 3]);
    }
    return HONE_OK; /* what follows the pixels is nobody's business */
}

hone_status hone_jpeg_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    HONE_TRY(hone_library_load(&library));
    reader r = {0};
    r.jpeg.err = lib.jpeg_std_error(&r.error);
    r.jpeg.client_data = &r;
    r.error.error_exit = fail, r.error.emit_message = warn, r.error.output_message = say_nothing;
    hone_status s = read(&r, data, bytes, out);
    lib.jpeg_destroy_decompress(&r.jpeg);
    hone_free(r.row);
    return s;
}
#else
hone_status hone_jpeg_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    return hone_library_unbuilt("libjpeg-dev");
}
#endif
