/* SPDX-License-Identifier: Apache-2.0
   tiff: the first picture of a file: strips or tiles, plain, LZW, deflate or PackBits; gray and palette of 1 to 16 bits, RGB of 8 or 16, other
   samples (alpha) dropped; samples together or in planes. Not JPEG or fax inside, not floats, not YCbCr, not BigTIFF. */
#include <string.h>

#include "image/image.h"
#include "image/inflate.h"
#include "image/unpack.h"

enum {
    WIDTH = 256,
    HEIGHT = 257,
    BITS = 258,
    PACKING = 259,
    PHOTOMETRIC = 262,
    FILL_ORDER = 266,
    STRIPS = 273,
    SAMPLES = 277,
    STRIP_ROWS = 278,
    STRIP_BYTES = 279,
    PLANAR = 284,
    PREDICTOR = 317,
    COLOURS = 320,
    TILE_WIDTH = 322,
    TILE_HEIGHT = 323,
    TILES = 324,
    TILE_BYTES = 325,
    SAMPLE_FORMAT = 339
};
enum { INK_IS_ONE = 0, LIGHT_IS_ONE = 1, RGB = 2, PALETTE = 3, SAMPLES_MOST = 8 };

typedef struct {
    const uint8_t *data;
    size_t bytes, directory; /* where its entries begin */
    uint32_t entries;
    bool big; /* endian */
    uint32_t width, height, depth, photometric, packing, samples, predictor;
    bool planes;
    uint32_t piece_width, piece_height; /* a strip or a tile */
    uint32_t places, sizes;             /* the tags that say where pieces are */
    uint8_t palette[256][3];
} tiff;

/* How a piece is packed: the factor by which it can grow, and who unpacks it. */
typedef struct {
    uint32_t number;
    size_t most;
    hone_status (*unpack)(const uint8_t *in, size_t n, uint8_t *out, size_t room, size_t *made);
} packing;
static hone_status copy(const uint8_t *in, size_t n, uint8_t *out, size_t room, size_t *made) {
    memcpy(out, in, *made = n < room ? n : room);
    return HONE_OK;
}
static const packing packings[] = {{1, 1, copy},
                                   {5, HONE_LZW_MOST, hone_unlzw},
                                   {8, HONE_INFLATE_MOST, hone_inflate},
                                   {32946, HONE_INFLATE_MOST, hone_inflate},
                                   {32773, HONE_PACKBITS_MOST, hone_unpackbits}};

static hone_status damaged(const char *what) { return hone_fail(HONE_BAD_INPUT, "the file is damaged: %s", what); }
static uint32_t u16(const tiff *t, const uint8_t *p) { return t->big ? hone_be16(p) : hone_le16(p); }
static uint32_t u32(const tiff *t, const uint8_t *p) { return t->big ? hone_be32(p) : hone_le32(p); }

/* Number k of a tag; false where it is not there. */
static bool tag(const tiff *t, uint32_t number, uint32_t k, uint32_t *out) {
    for (uint32_t i = 0; i < t->entries; i++) {
        const uint8_t *e = t->data + t->directory + 12 * (size_t)i;
        if (u16(t, e) != number) continue;
        uint32_t type = u16(t, e + 2), count = u32(t, e + 4);
        size_t width = type == 1 ? 1 : type == 3 ? 2 : type == 4 ? 4 : 0, at = (size_t)(e + 8 - t->data);
        if (!width || k >= count) return false;
        if (count > 4 / width) at = u32(t, e + 8);
        if (at > t->bytes || (t->bytes - at) / width <= k) return false;
        const uint8_t *p = t->data + at + width * k;
        *out = width == 1 ? *p : width == 2 ? u16(t, p) : u32(t, p);
        return true;
    }
    return false;
}
static uint32_t tag_or(const tiff *t, uint32_t number, uint32_t otherwise) {
    uint32_t v = otherwise;
    return tag(t, number, 0, &v) ? v : otherwise;
}

static hone_status read_header(tiff *t) {
    if (t->bytes < 8) return damaged("its header is cut short");
    t->big = t->data[0] == 'M';
    size_t at = u32(t, t->data + 4);
    if (at > t->bytes || t->bytes - at < 2) return hone_fail(HONE_BAD_INPUT, "the file is cut short: its directory is not there");
    t->entries = u16(t, t->data + at);
    t->directory = at + 2;
    if ((t->bytes - t->directory) / 12 < t->entries) return hone_fail(HONE_BAD_INPUT, "the file is cut short: its directory is not there");
    t->width = tag_or(t, WIDTH, 0), t->height = tag_or(t, HEIGHT, 0);
    t->depth = tag_or(t, BITS, 1), t->packing = tag_or(t, PACKING, 1), t->samples = tag_or(t, SAMPLES, 1);
    t->photometric = tag_or(t, PHOTOMETRIC, INK_IS_ONE), t->predictor = tag_or(t, PREDICTOR, 1), t->planes = tag_or(t, PLANAR, 1) == 2;
    if (tag_or(t, SAMPLE_FORMAT, 1) != 1) return hone_fail(HONE_NOT_SUPPORTED, "samples that are signed or floats");
    if (t->photometric > PALETTE) return hone_fail(HONE_NOT_SUPPORTED, "colours of kind %u; convert it to RGB", t->photometric);
    if (t->samples < (t->photometric == RGB ? 3u : 1u) || t->samples > SAMPLES_MOST)
        return hone_fail(HONE_NOT_SUPPORTED, "%u samples a pixel", t->samples);
    uint32_t least = t->photometric == RGB || t->samples > 1 ? 8 : 1, most = t->photometric == PALETTE ? 8 : 16;
    if (t->depth < least || t->depth > most || (t->depth & (t->depth - 1)))
        return hone_fail(HONE_NOT_SUPPORTED, "%u bits a sample", t->depth);
    for (uint32_t k = 1, v; k < t->samples; k++)
        if (tag(t, BITS, k, &v) && v != t->depth) return hone_fail(HONE_NOT_SUPPORTED, "samples of different sizes");
    if (t->predictor > 2 || (t->predictor == 2 && t->depth < 8)) return hone_fail(HONE_NOT_SUPPORTED, "predictor %u", t->predictor);
    if (tag_or(t, FILL_ORDER, 1) != 1) return hone_fail(HONE_NOT_SUPPORTED, "bits in turned order");
    return hone_pixels_allowed(t->width, t->height);
}

static hone_status read_layout(tiff *t) {
    uint32_t v;
    bool tiles = tag(t, TILES, 0, &v);
    t->places = tiles ? TILES : STRIPS, t->sizes = tiles ? TILE_BYTES : STRIP_BYTES;
    t->piece_width = tiles ? tag_or(t, TILE_WIDTH, 0) : t->width;
    t->piece_height = tiles ? tag_or(t, TILE_HEIGHT, 0) : tag_or(t, STRIP_ROWS, t->height);
    if (!tiles && t->piece_height > t->height) t->piece_height = t->height;
    if (t->piece_width < 1 || t->piece_height < 1 || t->piece_width > HONE_IMAGE_SIDE || t->piece_height > HONE_IMAGE_SIDE ||
        (uint64_t)t->piece_width * t->piece_height > HONE_IMAGE_PIXELS)
        return damaged("the size of its tiles");
    for (uint32_t k = 0, n = t->photometric == PALETTE ? 1u << t->depth : 0; k < n; k++)
        for (uint32_t c = 0; c < 3; c++) {
            if (!tag(t, COLOURS, c * n + k, &v)) return damaged("its palette");
            t->palette[k][c] = (uint8_t)(v >> 8);
        }
    return HONE_OK;
}

/* Differences along a row become samples again. */
static void undo(const tiff *t, uint8_t *row, uint32_t columns, uint32_t samples) {
    for (size_t k = samples; k < (size_t)columns * samples; k++) {
        if (t->depth == 8) {
            row[k] = (uint8_t)(row[k] + row[k - samples]);
        } else {
            uint8_t *p = row + 2 * k;
            uint32_t v = u16(t, p) + u16(t, p - 2 * samples);
            p[t->big] = (uint8_t)v, p[!t->big] = (uint8_t)(v >> 8);
        }
    }
}

static uint8_t sample(const tiff *t, const uint8_t *row, size_t k) {
    if (t->depth == 8) return row[k];
    if (t->depth == 16) return (uint8_t)(u16(t, row + 2 * k) >> 8);
    size_t bit = k * t->depth;
    return (uint8_t)(row[bit / 8] >> (8 - t->depth - (bit & 7)) & ((1u << t->depth) - 1));
}

/* A piece's row into the picture. `samples`: in the piece; `plane`: which one it is, where each has its own. */
static void put_row(const tiff *t, const uint8_t *row, uint32_t columns, uint32_t samples, int plane, int channels, uint8_t *to) {
    uint32_t scale = t->depth < 8 && t->photometric != PALETTE ? 255 / ((1u << t->depth) - 1) : 1;
    for (uint32_t x = 0; x < columns; x++, to += channels) {
        if (t->photometric == PALETTE) memcpy(to, t->palette[sample(t, row, (size_t)x * samples)], 3);
        else if (t->planes) to[plane] = (uint8_t)(sample(t, row, x) * scale);
        else
            for (int c = 0; c < channels; c++) to[c] = (uint8_t)(sample(t, row, (size_t)x * samples + (size_t)c) * scale);
        if (t->photometric == INK_IS_ONE) to[0] = (uint8_t)~to[0];
    }
}

static hone_status read_pieces(const tiff *t, const packing *p, uint8_t *piece, size_t row, hone_pixels *out) {
    uint32_t across = (t->width + t->piece_width - 1) / t->piece_width, down = (t->height + t->piece_height - 1) / t->piece_height,
             number = 0;
    int planes = t->planes ? out->channels : 1;
    uint32_t samples = t->planes ? 1 : t->samples;
    for (int plane = 0; plane < planes; plane++)
        for (uint32_t j = 0; j < down; j++)
            for (uint32_t i = 0; i < across; i++, number++) {
                uint32_t place, size, x = i * t->piece_width, y = j * t->piece_height;
                uint32_t rows = t->height - y < t->piece_height ? t->height - y : t->piece_height;
                uint32_t columns = t->width - x < t->piece_width ? t->width - x : t->piece_width;
                size_t need = row * rows, made = 0;
                if (!tag(t, t->places, number, &place) || place > t->bytes)
                    return hone_fail(HONE_BAD_INPUT, "the file is cut short: piece %u", number);
                if (!tag(t, t->sizes, number, &size) || size > t->bytes - place)
                    size = (uint32_t)(t->bytes - place < UINT32_MAX ? t->bytes - place : UINT32_MAX);
                if (need / p->most <= size) HONE_TRY(p->unpack(t->data + place, size, piece, need, &made));
                if (made < need)
                    return hone_fail(HONE_BAD_INPUT, "the file is cut short: piece %u has %zu of %zu bytes", number, made, need);
                for (uint32_t r = 0; r < rows; r++) {
                    if (t->predictor == 2) undo(t, piece + r * row, t->piece_width, samples);
                    put_row(t, piece + r * row, columns, samples, plane, out->channels,
                            out->data + ((size_t)(y + r) * t->width + x) * (size_t)out->channels);
                }
            }
    return HONE_OK;
}

hone_status hone_tiff_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    tiff t = {.data = data, .bytes = bytes};
    const packing *p = NULL;
    HONE_TRY(read_header(&t));
    HONE_TRY(read_layout(&t));
    for (size_t k = 0; k < sizeof packings / sizeof *packings; k++)
        if (packings[k].number == t.packing) p = &packings[k];
    if (!p) return hone_fail(HONE_NOT_SUPPORTED, "packing %u; save it with LZW or deflate", t.packing);
    size_t row = ((size_t)t.piece_width * (t.planes ? 1 : t.samples) * t.depth + 7) / 8, least = row;
    if (t.piece_height < t.height) least *= t.piece_height;
    else least *= t.height;
    if (least / p->most > bytes) return hone_fail(HONE_BAD_INPUT, "the file is cut short: too few bytes for its size");
    uint8_t *piece = hone_alloc_raw(row * t.piece_height);
    if (!piece) return hone_fail(HONE_NO_MEMORY, "no memory for a tile of %u x %u", t.piece_width, t.piece_height);
    hone_status s = hone_pixels_create(t.width, t.height, t.photometric == RGB || t.photometric == PALETTE ? 3 : 1, out);
    if (!s) s = read_pieces(&t, p, piece, row, out);
    hone_free(piece);
    return s;
}
