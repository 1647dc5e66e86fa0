/* SPDX-License-Identifier: Apache-2.0
   bmp: 1, 4, 8, 16, 24 and 32 bits, masks, runs (RLE4, RLE8), rows from either end, headers from OS/2's to
   version 5. Always RGB out: what a 32-bit file has in its fourth byte is seldom alpha. */
#include <string.h>

#include "image/image.h"

enum { PLAIN = 0, RLE8 = 1, RLE4 = 2, MASKS = 3, MASKS4 = 6 };

typedef struct {
    const uint8_t *data;
    size_t bytes, pixels; /* where the pixels begin */
    int64_t width, height;
    bool down; /* the first row is the top one */
    uint32_t depth, packing;
    uint32_t mask[3]; /* R, G, B of 16 and 32 bits */
    uint8_t palette[256][3];
} bmp;

static hone_status damaged(const char *what) {
    return hone_fail(HONE_BAD_INPUT, "the file is damaged: %s", what);
}

static hone_status read_header(bmp *b) {
    const uint8_t *h = b->data + 14;
    if (b->bytes < 26) return damaged("its header is cut short");
    uint32_t size = hone_le32(h), colours = 0, entry = 4;
    if (size > b->bytes - 14 || (size != 12 && size < 16)) return damaged("its header");
    b->pixels = hone_le32(b->data + 10);
    if (size == 12) { /* OS/2's first: 16-bit sizes, colours of 3 bytes */
        b->width = hone_le16(h + 4), b->height = hone_le16(h + 6), b->depth = hone_le16(h + 10), entry = 3;
    } else {
        b->width = (int32_t)hone_le32(h + 4), b->height = (int32_t)hone_le32(h + 8),
        b->depth = hone_le16(h + 14);
        b->packing = size >= 20 ? hone_le32(h + 16) : PLAIN;
        colours = size >= 36 ? hone_le32(h + 32) : 0;
        b->down = b->height < 0;
        if (b->down) b->height = -b->height;
    }
    if (b->depth != 1 && b->depth != 4 && b->depth != 8 && b->depth != 16 && b->depth != 24 && b->depth != 32)
        return hone_fail(HONE_NOT_SUPPORTED, "%u bits a pixel", b->depth);
    bool masks = b->packing == MASKS || b->packing == MASKS4,
         runs = (b->packing == RLE8 && b->depth == 8) || (b->packing == RLE4 && b->depth == 4);
    if (b->packing != PLAIN && !runs && !(masks && b->depth >= 16 && b->depth != 24))
        return hone_fail(HONE_NOT_SUPPORTED, "packing %u with %u bits a pixel", b->packing, b->depth);
    size_t behind = 14 + (size_t)size;
    /* the three words stand behind the old header and inside the newer ones: at the same place */
    if (masks) {
        if (b->bytes < 14 + 40 + 12) return damaged("its masks are cut short");
        for (int c = 0; c < 3; c++) b->mask[c] = hone_le32(h + 40 + 4 * c);
        if (size == 40) behind += 12;
    } else if (b->depth >= 16) {
        static const uint32_t five[3] = {0x7c00, 0x3e0, 0x1f}, eight[3] = {0xff0000, 0xff00, 0xff};
        memcpy(b->mask, b->depth == 16 ? five : eight, sizeof b->mask);
    }
    if (b->depth <= 8) {
        uint32_t n = 1u << b->depth;
        if (colours && colours < n) n = colours;
        for (uint32_t k = 0; k < n && behind + (size_t)entry * (k + 1) <= b->bytes; k++)
            for (int c = 0; c < 3; c++)
                b->palette[k][c] = b->data[behind + (size_t)entry * k + 2 - (size_t)c];
    }
    if (b->pixels > b->bytes) return damaged("its pixels lie outside");
    return hone_pixels_allowed(b->width, b->height);
}

static uint8_t *row_of(const bmp *b, hone_pixels *out, int64_t y) {
    return out->data + (size_t)((b->down ? y : b->height - 1 - y) * b->width) * 3;
}

static hone_status plain(const bmp *b, hone_pixels *out) {
    size_t row = ((size_t)b->width * b->depth + 31) / 32 * 4, have = b->bytes - b->pixels;
    size_t last = ((size_t)b->width * b->depth + 7) / 8; /* some leave out what fills up the last row */
    if (have < row * (size_t)(b->height - 1) + last)
        return hone_fail(HONE_BAD_INPUT, "the file is cut short: too few bytes for its size");
    HONE_TRY(hone_pixels_create(b->width, b->height, 3, out));
    int shift[3] = {0};
    uint32_t most[3] = {0};
    for (int c = 0; c < 3; c++) {
        while (b->mask[c] && !(b->mask[c] >> shift[c] & 1)) shift[c]++;
        most[c] = b->mask[c] >> shift[c];
        if (most[c] & (most[c] + 1)) return damaged("a mask with gaps");
    }
    for (int64_t y = 0; y < b->height; y++) {
        const uint8_t *from = b->data + b->pixels + row * (size_t)y;
        uint8_t *to = row_of(b, out, y);
        for (int64_t x = 0; x < b->width; x++, to += 3) {
            if (b->depth <= 8) {
                size_t bit = (size_t)x * b->depth;
                memcpy(to, b->palette[from[bit / 8] >> (8 - b->depth - (bit & 7)) & ((1u << b->depth) - 1)],
                       3);
            } else if (b->depth == 24) {
                to[0] = from[3 * x + 2], to[1] = from[3 * x + 1], to[2] = from[3 * x];
            } else {
                uint32_t v = b->depth == 16 ? hone_le16(from + 2 * x) : hone_le32(from + 4 * x);
                for (int c = 0; c < 3; c++)
                    to[c] = most[c] ? (uint8_t)((uint64_t)((v & b->mask[c]) >> shift[c]) * 255 / most[c]) : 0;
            }
        }
    }
    return HONE_OK;
}

/* Runs of one colour (or of two, in turn), strings of plain ones, jumps. What no run reaches is colour 0. */
static hone_status runs(const bmp *b, hone_pixels *out) {
    const uint8_t *p = b->data + b->pixels, *end = b->data + b->bytes;
    int64_t x = 0, y = 0;
    bool four = b->packing == RLE4;
    HONE_TRY(hone_pixels_create(b->width, b->height, 3, out));
    memcpy(out->data, b->palette[0], 3);
    /* twice as much each time */
    for (size_t have = 3, all = (size_t)b->width * (size_t)b->height * 3, n; have < all; have += n)
        n = have < all - have ? have : all - have, memcpy(out->data + have, out->data, n);
    while (y < b->height) {
        if (end - p < 2) return hone_fail(HONE_BAD_INPUT, "the file is cut short in its runs");
        int n = p[0], v = p[1];
        p += 2;
        bool literal = !n && v > 2;
        if (!n && v == 0) x = 0, y++; /* the row ends */
        if (!n && v == 1) break;      /* all ends */
        if (!n && v == 2) {           /* a jump */
            if (end - p < 2) return hone_fail(HONE_BAD_INPUT, "the file is cut short in its runs");
            x += p[0], y += p[1];
            p += 2;
        }
        if (!n && !literal) continue;
        int count = literal ? v : n, need = literal ? (four ? (v + 3) / 4 * 2 : (v + 1) / 2 * 2) : 0;
        if (end - p < need) return hone_fail(HONE_BAD_INPUT, "the file is cut short in its runs");
        for (int k = 0; k < count; k++, x++) {
            int byte = literal ? p[four ? k / 2 : k] : v;
            if (x < b->width && y < b->height)
                memcpy(row_of(b, out, y) + 3 * x, b->palette[four ? (k & 1 ? byte & 15 : byte >> 4) : byte],
                       3);
        }
        p += need;
    }
    return HONE_OK;
}

hone_status hone_bmp_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    bmp b = {.data = data, .bytes = bytes};
    HONE_TRY(read_header(&b));
    return b.packing == RLE8 || b.packing == RLE4 ? runs(&b, out) : plain(&b, out);
}
