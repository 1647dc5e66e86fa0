/* SPDX-License-Identifier: Apache-2.0
   Pictures: PNG, BMP, PNM and TIFF of every kind that the encoders here can write, read back; files of
   Pillow's in the formats that libraries read for us; files cut short and flipped in every place;
   allocations that fail; limits; and what a model gets of a picture. A format whose library is not here is
   skipped, and said. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hone/image.h"
#include "image/resize.h"
#include "image_files.h"
#include "image_make.h"
#include "random.h"

static const int sizes[][2] = {{1, 1}, {2, 9}, {7, 5}, {16, 16}, {45, 37}};
#if defined(__SANITIZE_ADDRESS__)
enum { SIZES = 5, PACE = 4 }; /* of what is flipped, one in so many */
#else
enum { SIZES = 5, PACE = 1 };
#endif

static hone_value *decode(bytes b, hone_image_order order) {
    hone_value *v = NULL;
    if (hone_image_decode(b.at, b.n, order, &v)) fail_msg("%s", hone_error());
    free(b.at);
    return v;
}
static uint64_t digest(const void *p, size_t n) { /* FNV-1a */
    uint64_t d = 14695981039346656037u;
    for (size_t k = 0; k < n; k++) d = (d ^ ((const uint8_t *)p)[k]) * 1099511628211u;
    return d;
}
static uint64_t digest_of(hone_value *v) { return digest(hone_value_data(v), hone_value_bytes(v)); }

/* A library that is not here: said, and the format is skipped. */
static bool absent(bytes b) {
    hone_value *v = NULL;
    if (hone_image_decode(b.at, b.n, HONE_IMAGE_RGB, &v) != HONE_NOT_SUPPORTED ||
        !strstr(hone_error(), "install ")) {
        hone_value_free(v);
        return false;
    }
    print_message("SKIPPED: %s\n", hone_error());
    return true;
}

/* ---- formats without loss: pixels are what was drawn ---- */

typedef void want_fn(int x, int y, int bits, unsigned rgb[3]);
static void want_gray(int x, int y, int bits, unsigned rgb[3]) {
    rgb[0] = rgb[1] = rgb[2] = drawn8(x, y, 0, bits);
}
static void want_inverse(int x, int y, int bits, unsigned rgb[3]) {
    rgb[0] = rgb[1] = rgb[2] = 255 - drawn8(x, y, 0, bits);
}
static void want_rgb(int x, int y, int bits, unsigned rgb[3]) {
    for (int c = 0; c < 3; c++) rgb[c] = drawn8(x, y, c, bits);
}
static void want_rounded(int x, int y, int bits, unsigned rgb[3]) { /* as libtiff: not the upper 8 bits */
    for (int c = 0; c < 3; c++) rgb[c] = (drawn(x, y, c, 16) + 128) / 257;
}
static void want_palette(int x, int y, int bits, unsigned rgb[3]) {
    unsigned v = drawn(x, y, 0, bits);
    rgb[0] = v, rgb[1] = 255 - v, rgb[2] = v * 7 & 255;
}
static void want_555(int x, int y, int bits, unsigned rgb[3]) {
    for (int c = 0; c < 3; c++) rgb[c] = (drawn(x, y, c, 8) >> 3) * 255 / 31;
}
static void want_565(int x, int y, int bits, unsigned rgb[3]) {
    want_555(x, y, bits, rgb);
    rgb[1] = (drawn(x, y, 1, 8) >> 2) * 255 / 63;
}

static void same(bytes b, int w, int h, int bits, want_fn *want, const char *what) {
    hone_value *v = decode(b, HONE_IMAGE_RGB);
    const uint8_t *p = hone_value_data(v);
    assert_int_equal(hone_value_rank(v), 3);
    assert_int_equal(hone_value_dims(v)[0], h);
    assert_int_equal(hone_value_dims(v)[1], w);
    for (int k = 0; k < w * h; k++) {
        unsigned rgb[3];
        want(k % w, k / w, bits, rgb);
        for (int c = 0; c < 3; c++)
            if (p[3 * k + c] != rgb[c])
                fail_msg("%s, %dx%d: pixel %d,%d has %u, not %u", what, w, h, k % w, k / w, p[3 * k + c],
                         rgb[c]);
    }
    hone_value_free(v);
}

static void skip_if_absent(bytes probe) {
    bool is = absent(probe);
    free(probe.at);
    if (is) skip();
}

static void test_png(void **state) {
    static const struct {
        int colour, depth;
        want_fn *want;
    } kinds[] = {{0, 1, want_gray},    {0, 2, want_gray},    {0, 4, want_gray},    {0, 8, want_gray},
                 {0, 16, want_gray},   {2, 8, want_rgb},     {2, 16, want_rgb},    {3, 1, want_palette},
                 {3, 2, want_palette}, {3, 4, want_palette}, {3, 8, want_palette}, {4, 8, want_gray},
                 {4, 16, want_gray},   {6, 8, want_rgb},     {6, 16, want_rgb}};
    skip_if_absent(make_png(1, 1, 0, 8, false, STORED));
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int s = 0; s < SIZES; s++)
            for (int i = 0; i < 2; i++)
                for (int d = 0; d < DEFLATES; d++)
                    same(make_png(sizes[s][0], sizes[s][1], kinds[k].colour, kinds[k].depth, i, d),
                         sizes[s][0], sizes[s][1], kinds[k].depth, kinds[k].want, "PNG");
}

static void test_bmp(void **state) {
    static const struct {
        int depth, packing;
        want_fn *want;
    } kinds[] = {{1, 0, want_palette}, {4, 0, want_palette}, {8, 0, want_palette},
                 {8, 1, want_palette}, {4, 2, want_palette}, {16, 0, want_555},
                 {16, 3, want_565},    {24, 0, want_rgb},    {32, 0, want_rgb}};
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        for (int s = 0; s < SIZES; s++)
            for (int down = 0; down < 2; down++) {
                int w = sizes[s][0] + 2, h = sizes[s][1]; /* a string of plain bytes has at least three */
                same(make_bmp(w, h, kinds[k].depth, kinds[k].packing, down), w, h,
                     kinds[k].depth > 8 ? 8 : kinds[k].depth, kinds[k].want, "BMP");
            }
}

static void test_pnm(void **state) {
    for (int kind = 1; kind <= 6; kind++)
        for (int s = 0; s < SIZES; s++)
            for (int bits = kind % 3 == 1 ? 1 : 8; bits <= (kind % 3 == 1 ? 1 : 8); bits += 8)
                same(make_pnm(sizes[s][0], sizes[s][1], kind, bits), sizes[s][0], sizes[s][1], bits,
                     kind % 3 ? want_gray : want_rgb, "PNM");
    /* a largest value of its own */
    hone_value *v = decode((bytes){(uint8_t *)strdup("P2 3 1 1000 0 500 1000"), 22, 0}, HONE_IMAGE_GRAY);
    assert_memory_equal(hone_value_data(v), "\0\x80\xff", 3);
    hone_value_free(v);
}

static const int packings[] = {1, 5, 8, 32773};
static void test_tiff(void **state) {
    skip_if_absent(make_tiff(9, 7, &(tiff_kind){1, 8, 1, 1, 1, 0, false, false}));
    for (int s = 0; s < SIZES; s++)
        for (int k = 0; k < 4 * 2 * 2 * 2; k++) {
            int w = sizes[s][0], h = sizes[s][1], packing = packings[k % 4], tile = k / 4 % 2 * 16,
                predictor = k / 8 % 2 && (packing == 5 || packing == 8) ? 2 : 1; /* others have none */
            bool big = k / 16;
            for (int planes = 0; planes < 2; planes++) {
                same(make_tiff(w, h, &(tiff_kind){2, 8, 3, packing, predictor, tile, big, planes}), w, h, 8,
                     want_rgb, "TIFF of RGB");
                same(make_tiff(w, h, &(tiff_kind){2, 16, 4, packing, predictor, tile, big, planes}), w, h, 16,
                     want_rounded, "TIFF of RGBA, 16 bits");
            }
            same(make_tiff(w, h, &(tiff_kind){1, 8, 1, packing, predictor, tile, big, false}), w, h, 8,
                 want_gray, "TIFF of gray");
            for (int bits = 1; bits <= 4; bits *= 2) {
                same(make_tiff(w, h, &(tiff_kind){0, bits, 1, packing, 1, tile, big, false}), w, h, bits,
                     want_inverse, "TIFF of ink");
                same(make_tiff(w, h, &(tiff_kind){3, bits, 1, packing, 1, tile, big, false}), w, h, bits,
                     want_palette, "TIFF of a palette");
            }
        }
}

/* ---- files of Pillow's ---- */

static bytes file_of(int k) {
    bytes b = {0};
    for (const char *p = image_files[k].hex; *p; p += 2) {
        unsigned v;
        sscanf(p, "%2x", &v);
        put8(&b, v);
    }
    return b;
}

static void test_files(void **state) {
    for (int k = 0; k < IMAGE_FILES; k++) {
        bytes b = file_of(k);
        if (absent(b)) {
            free(b.at);
            continue;
        }
        hone_value *v = decode(b, HONE_IMAGE_RGB);
        const uint8_t *p = hone_value_data(v);
        assert_true(hone_value_dims(v)[0] == FILE_HEIGHT && hone_value_dims(v)[1] == FILE_WIDTH);
        double off = 0;
        for (int i = 0; i < FILE_WIDTH * FILE_HEIGHT * 3; i++)
            off += abs(p[i] - image_file_pixel(i / 3 % FILE_WIDTH, i / 3 / FILE_WIDTH, i % 3));
        if (!image_files[k].digest && off / (FILE_WIDTH * FILE_HEIGHT * 3) > 12)
            fail_msg("%s: %g a sample", image_files[k].what, off / (FILE_WIDTH * FILE_HEIGHT * 3));
        if (image_files[k].digest && digest_of(v) != image_files[k].digest)
            fail_msg("%s: digest 0x%016llx", image_files[k].what, (unsigned long long)digest_of(v));
        hone_value_free(v);
    }
}

static void test_orders(void **state) {
    enum { N = FILE_WIDTH * FILE_HEIGHT };
    bytes file = make_bmp(FILE_WIDTH, FILE_HEIGHT, 24, 0, false),
          again = make_bmp(FILE_WIDTH, FILE_HEIGHT, 24, 0, false),
          third = make_bmp(FILE_WIDTH, FILE_HEIGHT, 24, 0, false);
    hone_value *rgb = decode(file, HONE_IMAGE_RGB), *bgr = decode(again, HONE_IMAGE_BGR),
               *gray = decode(third, HONE_IMAGE_GRAY);
    const uint8_t *a = hone_value_data(rgb), *b = hone_value_data(bgr), *g = hone_value_data(gray);
    assert_int_equal(hone_value_dims(gray)[2], 1);
    for (int k = 0; k < N; k++) {
        assert_int_equal(a[3 * k], b[3 * k + 2]);
        assert_int_equal(a[3 * k + 1], b[3 * k + 1]);
        assert_true(fabs(0.299 * a[3 * k] + 0.587 * a[3 * k + 1] + 0.114 * a[3 * k + 2] - g[k]) < 0.51);
    }
    hone_value_free(rgb), hone_value_free(bgr), hone_value_free(gray);
}

/* ---- hostile files ---- */

/* One small file of each kind; {NULL} behind the last. */
static bytes sample_file(int k) {
    switch (k) {
    case 0: return make_png(11, 9, 6, 8, true, DYNAMIC);
    case 1: return make_png(13, 8, 3, 4, false, FIXED);
    case 2: return make_png(5, 4, 0, 16, false, STORED);
    case 3: return make_bmp(9, 7, 8, 1, false);
    case 4: return make_bmp(9, 7, 4, 2, false);
    case 5: return make_bmp(9, 7, 16, 3, true);
    case 6: return make_pnm(9, 7, 3, 8);
    case 7: return make_pnm(9, 7, 4, 1);
    case 8: return make_tiff(20, 18, &(tiff_kind){2, 8, 3, 5, 2, 16, false, false});
    case 9: return make_tiff(9, 7, &(tiff_kind){3, 4, 1, 32773, 1, 0, true, false});
    case 10: return make_tiff(9, 7, &(tiff_kind){2, 16, 3, 8, 2, 0, false, true});
    default: return k - 11 < IMAGE_FILES ? file_of(k - 11) : (bytes){0};
    }
}

/* In a block of just its size, so that a sanitizer sees the first byte beyond. */
static bool try_bytes(const uint8_t *p, size_t n) {
    uint8_t *exact = malloc(n ? n : 1);
    hone_value *v = NULL;
    memcpy(exact, p, n);
    hone_status s = hone_image_decode(exact, n, HONE_IMAGE_RGB, &v);
    if (s) assert_true(s != HONE_BUG && hone_error()[0]);
    else assert_int_equal(hone_value_rank(v), 3);
    hone_value_free(v);
    free(exact);
    return !s;
}

static void test_cut(void **state) {
    bytes b;
    for (int k = 0; (b = sample_file(k)).at; k++) {
        if (!absent(b)) assert_true(try_bytes(b.at, b.n));
        for (size_t n = 0; n < b.n; n++)
            if (try_bytes(b.at, n) && n < b.n / 2)
                fail_msg("file %d: %zu of %zu bytes make a picture", k, n, b.n);
        free(b.at);
    }
}

static void test_flipped(void **state) {
    bytes b;
    uint32_t seed = 1;
    uint64_t live = hone_alloc_live_bytes();
    for (int k = 0; (b = sample_file(k)).at; k++) {
        bool png = k <= 2;
        uint8_t *copy = malloc(b.n);
        /* every bit alone; of long files some */
        for (size_t bit = 0; bit<b.n * 8; bit += b.n> 1000 ? 7 * PACE : 2 * PACE - 1) {
            memcpy(copy, b.at, b.n);
            copy[bit / 8] ^= (uint8_t)(1 << bit % 8);
            if (png) png_mend(copy, b.n);
            try_bytes(copy, b.n);
        }
        for (int round = 0; round < 800 / PACE; round++) { /* several bytes at once, and cut */
            memcpy(copy, b.at, b.n);
            for (int i = 0; i < 1 + round % 5; i++) {
                next_linear(&seed);
                copy[(seed >> 8) % b.n] = (uint8_t)(seed & 64 ? 255 : seed & 128 ? 0 : seed >> 24);
            }
            if (png) png_mend(copy, b.n);
            try_bytes(copy, b.n - (round % 3 ? 0 : (seed >> 8) % b.n));
        }
        free(copy);
        free(b.at);
    }
    assert_true(hone_alloc_live_bytes() == live);
}

static void test_no_memory(void **state) {
    bytes b;
    for (int k = 0; (b = sample_file(k)).at; k++) {
        if (absent(b)) {
            free(b.at);
            continue;
        }
        hone_status s = HONE_NO_MEMORY;
        uint64_t live = hone_alloc_live_bytes();
        for (int n = 0; s; n++) {
            hone_value *v = NULL;
            hone_alloc_fail_after(n);
            s = hone_image_decode(b.at, b.n, HONE_IMAGE_RGB, &v);
            hone_alloc_fail_after(-1);
            assert_true(s == HONE_OK || s == HONE_NO_MEMORY);
            hone_value_free(v);
            assert_true(hone_alloc_live_bytes() == live);
        }
        free(b.at);
    }
}

/* Files of a few bytes that announce much: refused before anything large is asked for. */
static void test_limits(void **state) {
    hone_value *v = NULL;
    bytes big = make_png(9, 9, 2, 8, false, FIXED);
    static const uint32_t claims[][2] = {
        {1 << 21, 1}, {1, 1 << 21}, {1 << 14, 1 << 14}, {0x7fffffff, 0x7fffffff}, {0, 5}, {8000, 8000}};
    for (size_t k = 0; k < sizeof claims / sizeof *claims; k++) {
        for (int i = 0; i < 8; i++) big.at[16 + i] = (uint8_t)(claims[k][i / 4] >> (24 - i % 4 * 8));
        png_mend(big.at, big.n);
        assert_int_not_equal(hone_image_decode(big.at, big.n, HONE_IMAGE_RGB, &v), HONE_OK);
    }
    free(big.at);
    bytes wide = file_of(2);
    assert_non_null(strstr(image_files[2].what, "JPEG"));
    for (size_t k = 0; k < wide.n; k++)
        if (wide.at[k] == 0xff && wide.at[k + 1] == 0xc0)
            memset(wide.at + k + 5, 0x2d, 4); /* 11565 x 11565: allowed, but not in so few bytes */
    if (!absent(wide)) {
        assert_int_equal(hone_image_decode(wide.at, wide.n, HONE_IMAGE_RGB, &v), HONE_BAD_INPUT);
        assert_non_null(strstr(hone_error(), "cut short: too few"));
    }
    free(wide.at);
    assert_int_equal(hone_image_decode("P5 99999 1 255\nabc", 18, HONE_IMAGE_RGB, &v), HONE_BAD_INPUT);
    assert_int_equal(hone_image_decode("GIF89a", 6, HONE_IMAGE_RGB, &v), HONE_NOT_SUPPORTED);
    assert_int_equal(hone_image_decode("", 0, HONE_IMAGE_RGB, &v), HONE_BAD_INPUT);
    assert_null(v);
    assert_string_equal(hone_image_format("\xff\xd8\xff\xe0", 4), "JPEG");
    assert_null(hone_image_format("hello", 5));
}

/* ---- for a model ---- */

/* Digests of Pillow's resize(…, BILINEAR) of the same picture. */
static void test_resize(void **state) {
    static const struct {
        int w, h, channels;
        uint64_t digest;
    } cases[] = {{90, 80, 3, 0x3e182ca14eb61d13u}, {20, 11, 3, 0xc2aec0821a070232u},
                 {45, 11, 3, 0xd3eb34ad34544800u}, {80, 37, 3, 0x7af23aa097010b62u},
                 {1, 1, 3, 0x91717c1964e5d93du},   {30, 80, 1, 0xcdff26d615616251u},
                 {44, 36, 1, 0x9127793bced937ddu}};
    uint8_t from[45 * 37 * 3], to[90 * 80 * 3];
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        int n = cases[k].channels;
        for (int i = 0; i < 45 * 37 * n; i++) from[i] = (uint8_t)drawn(i / n % 45, i / n / 45, i % n, 8);
        assert_int_equal(hone_resize(from, 45, 37, n, cases[k].w, cases[k].h,
                                     &(hone_box){0, 0, cases[k].w, cases[k].h}, to),
                         HONE_OK);
        uint64_t d = digest(to, (size_t)(cases[k].w * cases[k].h * n));
        if (d != cases[k].digest)
            fail_msg("%dx%dx%d: digest 0x%016llx", cases[k].w, cases[k].h, n, (unsigned long long)d);
        const hone_box part = {cases[k].w / 3, cases[k].h / 2, cases[k].w - cases[k].w / 2,
                               cases[k].h - cases[k].h / 2}; /* and of a part of it */
        uint8_t some[90 * 80 * 3];
        assert_int_equal(hone_resize(from, 45, 37, n, cases[k].w, cases[k].h, &part, some), HONE_OK);
        for (int y = 0; y < part.height; y++)
            assert_memory_equal(some + y * part.width * n, to + ((part.y + y) * cases[k].w + part.x) * n,
                                (size_t)(part.width * n));
    }
}

static hone_value *square(int64_t h, int64_t w, int64_t c) {
    hone_value *v = NULL;
    assert_int_equal(hone_tensor_create(HONE_DTYPE_U8, (int64_t[]){h, w, c}, 3, &v), HONE_OK);
    uint8_t *p = hone_value_data(v);
    for (int64_t k = 0; k < h * w * c; k++)
        p[k] = (uint8_t)drawn((int)(k / c % w), (int)(k / c / w), (int)(k % c), 8);
    return v;
}

static hone_image_recipe recipe_for(hone_dtype t, const int64_t *dims, int rank) {
    hone_image_recipe r;
    hone_port port = {
        .name = "x", .kind = HONE_VALUE_TENSOR, .dtype = t, .rank = rank, .dims = dims, .shape = "[…]"};
    if (hone_image_recipe_for(&port, &r)) fail_msg("%s", hone_error());
    return r;
}

static void test_recipes(void **state) {
    char text[200];
    hone_image_recipe r = recipe_for(HONE_DTYPE_F32, (int64_t[]){-1, 3, 224, 320}, 4);
    assert_true(r.width == 320 && r.height == 224 && !r.last && r.batch && r.order == HONE_IMAGE_RGB &&
                r.range == 1);
    hone_image_recipe_text(&r, text, sizeof text);
    assert_string_equal(
        text,
        "resized to cover, centre 320x224, RGB, 0 to 1, mean 0.485 0.456 0.406, std 0.229 0.224 0.225, NCHW");
    hone_image_recipe_text(&r, text, 8);
    assert_string_equal(text, "resized");
    r = recipe_for(HONE_DTYPE_U8, (int64_t[]){1, 64, 48, 3}, 4);
    assert_true(r.width == 48 && r.height == 64 && r.last && r.range == 255);
    r = recipe_for(HONE_DTYPE_F16, (int64_t[]){1, 28, 28}, 3);
    assert_true(r.width == 28 && !r.last && !r.batch && r.order == HONE_IMAGE_GRAY);
    r = recipe_for(HONE_DTYPE_F32, (int64_t[]){-1, -1, -1, -1}, 4);
    assert_true(!r.width && !r.height && !r.last && r.order == HONE_IMAGE_RGB);
    hone_port wrong = {.name = "x",
                       .kind = HONE_VALUE_TENSOR,
                       .dtype = HONE_DTYPE_F32,
                       .rank = 4,
                       .dims = (int64_t[]){1, 5, 9, 9},
                       .shape = "f32[1, 5, 9, 9]"};
    assert_int_equal(hone_image_recipe_for(&wrong, &r), HONE_BAD_INPUT);
    wrong.rank = 2;
    assert_int_equal(hone_image_recipe_for(&wrong, &r), HONE_BAD_INPUT);
    wrong.rank = 4, wrong.dtype = HONE_DTYPE_I64;
    assert_int_equal(hone_image_recipe_for(&wrong, &r), HONE_BAD_INPUT);
    assert_int_equal(hone_image_recipe_name(&r, "imagenette"), 0);
}

/* Nothing to resize: every number can be said. */
static void test_prepare(void **state) {
    hone_value *picture[2] = {square(6, 9, 3), square(6, 9, 3)}, *out = NULL;
    hone_image_recipe r = recipe_for(HONE_DTYPE_F32, (int64_t[]){-1, 3, 6, 9}, 4);
    r.order = HONE_IMAGE_BGR;
    assert_int_equal(hone_image_prepare(picture, 2, &r, &out), HONE_OK);
    assert_int_equal(hone_value_elements(out), 2 * 3 * 6 * 9);
    const float *f = hone_value_data(out);
    for (int k = 0; k < 2 * 3 * 6 * 9; k++) {
        int c = k / 54 % 3, y = k / 9 % 6, x = k % 9;
        float want = ((float)drawn(x, y, 2 - c, 8) / 255.0f - r.mean[c]) / r.std[c];
        assert_true(f[k] == want);
    }
    hone_value_free(out);
    /* 9x6 into 8x10: 8x5, and gray above and below */
    r = recipe_for(HONE_DTYPE_U8, (int64_t[]){-1, 10, 8, 3}, 4);
    r.fit = HONE_IMAGE_PAD;
    assert_int_equal(hone_image_prepare(picture, 1, &r, &out), HONE_OK);
    const uint8_t *p = hone_value_data(out);
    for (int k = 0; k < 8 * 3; k++) assert_true(p[k] == 114 && p[9 * 24 + k] == 114);
    uint8_t sized[8 * 5 * 3];
    assert_int_equal(hone_resize(hone_value_data(picture[0]), 9, 6, 3, 8, 5, &(hone_box){0, 0, 8, 5}, sized),
                     HONE_OK);
    assert_memory_equal(p + 2 * 24, sized, sizeof sized);
    hone_value_free(out);
    r = recipe_for(HONE_DTYPE_F32, (int64_t[]){1, 4, 4}, 3); /* luma of the centre */
    hone_image_recipe_name(&r, "none");
    r.shorter = 6;
    assert_int_equal(hone_image_prepare(picture, 1, &r, &out), HONE_OK);
    f = hone_value_data(out);
    unsigned luma = drawn(2, 1, 0, 8) * 19595 + drawn(2, 1, 1, 8) * 38470 + drawn(2, 1, 2, 8) * 7471 + 32768;
    assert_true(f[0] == (float)(luma >> 16)); /* (9 - 4) / 2 is 2.5, which rounds to 2 */
    hone_value_free(out);
    out = NULL;
    r.shorter = 3;
    assert_int_equal(hone_image_prepare(picture, 1, &r, &out), HONE_BAD_INPUT);
    r.shorter = 0, r.std[0] = 0;
    assert_int_equal(hone_image_prepare(picture, 1, &r, &out), HONE_BAD_INPUT);
    r.std[0] = 1;
    assert_int_equal(hone_image_prepare(picture, 2, &r, &out), HONE_BAD_INPUT); /* no batch */
    hone_status s = HONE_NO_MEMORY;
    for (int n = 0; s; n++) {
        hone_alloc_fail_after(n);
        s = hone_image_prepare(picture, 1, &r, &out);
        hone_alloc_fail_after(-1);
        assert_true(s == HONE_OK || s == HONE_NO_MEMORY);
    }
    hone_value_free(out), hone_value_free(picture[0]), hone_value_free(picture[1]);
}

/* Photographs, where there are some: what Pillow 13 makes of them. */
static void test_photographs(void **state) {
    static const struct {
        const char *name;
        uint64_t digest;
    } photos[] = {{"astronaut.png", 0xfa4e6bff08e5e8fbu},
                  {"chelsea.png", 0xb2179687966157a8u},
                  {"coffee.png", 0xd261c1b91ef6ee1eu},
                  {"rocket.jpg", 0x34b9b35d9b0edb19u}};
    const char *shared = getenv("HONE_SHARED_DIR");
    char path[1024];
    int seen = 0;
    for (size_t k = 0; shared && k < sizeof photos / sizeof *photos; k++) {
        hone_value *v = NULL;
        snprintf(path, sizeof path, "%s/data/images/%s", shared, photos[k].name);
        hone_status s = hone_image_read(path, HONE_IMAGE_RGB, &v);
        if (s == HONE_IO || (s == HONE_NOT_SUPPORTED && strstr(hone_error(), "install "))) continue;
        assert_non_null(v);
        if (digest_of(v) != photos[k].digest)
            fail_msg("%s: digest 0x%016llx", photos[k].name, (unsigned long long)digest_of(v));
        hone_value_free(v);
        seen++;
    }
    if (!seen) {
        print_message("SKIPPED: no photographs at HONE_SHARED_DIR\n");
        skip();
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_png),     cmocka_unit_test(test_bmp),         cmocka_unit_test(test_pnm),
        cmocka_unit_test(test_tiff),    cmocka_unit_test(test_files),       cmocka_unit_test(test_orders),
        cmocka_unit_test(test_cut),     cmocka_unit_test(test_flipped),     cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_limits),  cmocka_unit_test(test_resize),      cmocka_unit_test(test_recipes),
        cmocka_unit_test(test_prepare), cmocka_unit_test(test_photographs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
