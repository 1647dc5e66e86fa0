/* SPDX-License-Identifier: Apache-2.0
   png: every colour type, every depth, Adam7. Chunks are checked by their CRC, so the stream's own checksum is not looked at. Transparency,
   gamma and profiles play no part; 16 bits keep their upper 8. */
#include <string.h>

#include "image/image.h"
#include "image/inflate.h"

typedef struct {
    uint32_t width, height;
    int depth, colour, samples, interlaced;
    const uint8_t *palette; /* RGB */
    uint32_t colours;
    uint8_t *packed; /* all IDAT, one behind the other */
    size_t packed_bytes;
    uint8_t *raw; /* rows with their filter bytes */
    size_t raw_bytes;
} png;

/* The passes of Adam7; a picture without it is one pass with all pixels. */
typedef struct {
    uint8_t x, y, dx, dy;
} pass;
static const pass adam7[] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4}, {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}},
                  whole = {0, 0, 1, 1};

static uint32_t crc(const uint8_t *p, size_t n) {
    static const uint32_t nibble[16] = {0x00000000, 0x1db71064, 0x3b6e20c8, 0x26d930ac, 0x76dc4190, 0x6b6b51f4, 0x4db26158, 0x5005713c,
                                        0xedb88320, 0xf00f9344, 0xd6d6a3e8, 0xcb61b38c, 0x9b64c2b0, 0x86d3d2d4, 0xa00ae278, 0xbdbdf21c};
    uint32_t c = 0xffffffff;
    for (; n; n--, p++) {
        c = nibble[(c ^ *p) & 15] ^ c >> 4;
        c = nibble[(c ^ *p >> 4) & 15] ^ c >> 4;
    }
    return ~c;
}

static hone_status damaged(const char *what) { return hone_fail(HONE_BAD_INPUT, "the file is damaged: %s", what); }

static hone_status read_header(png *p, const uint8_t *at, uint32_t n) {
    static const uint8_t samples[] = {1, 0, 3, 1, 2, 0, 4}, /* by colour type; 0: none such */
        depths[] = {1 | 2 | 4 | 8 | 16, 0, 8 | 16, 1 | 2 | 4 | 8, 8 | 16, 0, 8 | 16};
    if (n != 13) return damaged("its header");
    p->width = hone_be32(at), p->height = hone_be32(at + 4);
    p->depth = at[8], p->colour = at[9], p->interlaced = at[12];
    if (p->colour > 6 || !samples[p->colour] || !(p->depth & depths[p->colour]) || (p->depth & (p->depth - 1)))
        return hone_fail(HONE_BAD_INPUT, "no such colour type: %d with %d bits", p->colour, p->depth);
    if (at[10] || at[11] || p->interlaced > 1) return damaged("its methods");
    p->samples = samples[p->colour];
    return hone_pixels_allowed(p->width, p->height);
}

/* Two walks over the chunks: the first counts the bytes of IDAT, the second gathers them. */
static hone_status read_chunks(png *p, const uint8_t *data, size_t bytes, bool gather) {
    size_t at = 8, total = 0;
    bool header = false;
    for (;;) {
        if (bytes - at < 12) break; /* no IEND: what there is may still be enough */
        uint32_t n = hone_be32(data + at);
        const uint8_t *type = data + at + 4, *body = type + 4;
        if (n > bytes - at - 12) return hone_fail(HONE_BAD_INPUT, "the file is cut short inside a chunk");
        bool critical = !(type[0] & 32);
        if (critical && !gather && crc(type, n + 4) != hone_be32(body + n)) return damaged("a chunk has another checksum");
        if (!memcmp(type, "IHDR", 4)) {
            if (header) return damaged("two headers");
            HONE_TRY(read_header(p, body, n));
            header = true;
        } else if (!header) {
            return damaged("it does not begin with a header");
        } else if (!memcmp(type, "PLTE", 4)) {
            if (n % 3 || n > 768) return damaged("its palette");
            p->palette = body;
            p->colours = n / 3;
        } else if (!memcmp(type, "IDAT", 4)) {
            if (gather) memcpy(p->packed + total, body, n);
            total += n;
        } else if (!memcmp(type, "IEND", 4)) {
            break;
        } else if (critical) {
            return hone_fail(HONE_NOT_SUPPORTED, "a chunk that must be understood and is not: %02x%02x%02x%02x", type[0], type[1], type[2],
                             type[3]);
        }
        at += 12 + n;
    }
    p->packed_bytes = total;
    if (!header || !total) return hone_fail(HONE_BAD_INPUT, "the file is cut short: it has no pixels");
    if (p->colour == 3 && !p->palette) return damaged("it has no palette");
    return HONE_OK;
}

static uint32_t across(uint32_t size, int first, int step) {
    return size > (uint32_t)first ? (size - (uint32_t)first + (uint32_t)step - 1) / (uint32_t)step : 0;
}
static size_t row_bytes(const png *p, uint32_t columns) { return ((size_t)columns * (size_t)(p->depth * p->samples) + 7) / 8; }

/* Undoes a row's filter in place. `above`: the row before, or NULL; `step`: bytes a pixel, at least 1. */
static bool unfilter(int kind, uint8_t *row, const uint8_t *above, size_t n, size_t step) {
    switch (kind) {
    case 0: return true;
    case 1:
        for (size_t k = step; k < n; k++) row[k] = (uint8_t)(row[k] + row[k - step]);
        return true;
    case 2:
        for (size_t k = 0; above && k < n; k++) row[k] = (uint8_t)(row[k] + above[k]);
        return true;
    case 3:
        for (size_t k = 0; k < n; k++) row[k] = (uint8_t)(row[k] + ((k >= step ? row[k - step] : 0) + (above ? above[k] : 0)) / 2);
        return true;
    case 4:
        for (size_t k = 0; k < n; k++) {
            int a = k >= step ? row[k - step] : 0, b = above ? above[k] : 0, c = above && k >= step ? above[k - step] : 0;
            int pa = b > c ? b - c : c - b, pb = a > c ? a - c : c - a, pc = a + b - 2 * c;
            if (pc < 0) pc = -pc;
            row[k] = (uint8_t)(row[k] + (pa <= pb && pa <= pc ? a : pb <= pc ? b : c));
        }
        return true;
    }
    return false;
}

/* One row of a pass into its places of the picture; false: a colour that the palette does not have. */
static bool put_row(const png *p, const uint8_t *row, uint32_t columns, uint8_t *to, size_t step) {
    int mask = (1 << p->depth) - 1;
    for (uint32_t x = 0; x < columns; x++, to += step) {
        if (p->depth >= 8) {
            const uint8_t *from = row + (size_t)x * (size_t)(p->samples * p->depth / 8);
            if (p->colour != 3) {
                for (int c = 0; c < p->samples; c++) to[c] = from[c * (p->depth / 8)];
                continue;
            }
        }
        size_t bit = (size_t)x * (size_t)p->depth; /* one sample a pixel, of 8 bits or fewer */
        int v = row[bit / 8] >> (8 - p->depth - (int)(bit & 7)) & mask;
        if (p->colour != 3) {
            to[0] = (uint8_t)(v * 255 / mask);
        } else {
            if ((uint32_t)v >= p->colours) return false;
            memcpy(to, p->palette + 3 * v, 3);
        }
    }
    return true;
}

static hone_status read_pixels(png *p, hone_pixels *out) {
    const pass *passes = p->interlaced ? adam7 : &whole;
    int n_pass = p->interlaced ? 7 : 1, channels = p->colour == 3 ? 3 : p->samples;
    size_t step = (size_t)(p->depth * p->samples + 7) / 8, made = 0;
    for (int k = 0; k < n_pass; k++) {
        uint32_t w = across(p->width, passes[k].x, passes[k].dx), h = across(p->height, passes[k].y, passes[k].dy);
        if (w && h) p->raw_bytes += (row_bytes(p, w) + 1) * h;
    }
    if (p->raw_bytes / HONE_INFLATE_MOST > p->packed_bytes)
        return hone_fail(HONE_BAD_INPUT, "the file is cut short: too few bytes for its size");
    p->raw = hone_alloc_raw(p->raw_bytes);
    if (!p->raw) return hone_fail(HONE_NO_MEMORY, "no memory for %zu bytes of pixels", p->raw_bytes);
    HONE_TRY(hone_inflate(p->packed, p->packed_bytes, p->raw, p->raw_bytes, &made));
    if (made < p->raw_bytes)
        return hone_fail(HONE_BAD_INPUT, "the file is cut short: it has %zu of %zu bytes of pixels", made, p->raw_bytes);
    HONE_TRY(hone_pixels_create(p->width, p->height, channels, out));
    uint8_t *row = p->raw;
    for (int k = 0; k < n_pass; k++) {
        const pass *q = &passes[k];
        uint32_t w = across(p->width, q->x, q->dx), h = across(p->height, q->y, q->dy);
        const uint8_t *above = NULL;
        size_t n = row_bytes(p, w);
        for (uint32_t y = 0; w && y < h; y++, above = row + 1, row += n + 1) {
            size_t place = ((size_t)(q->y + y * q->dy) * p->width + q->x) * (size_t)channels;
            if (!unfilter(row[0], row + 1, above, n, step)) return damaged("no such filter");
            if (!put_row(p, row + 1, w, out->data + place, (size_t)q->dx * (size_t)channels))
                return damaged("a colour that is not in its palette");
        }
    }
    return HONE_OK;
}

hone_status hone_png_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    png p = {0};
    HONE_TRY(read_chunks(&p, data, bytes, false));
    p.packed = hone_alloc_raw(p.packed_bytes);
    hone_status s =
        p.packed ? read_chunks(&p, data, bytes, true) : hone_fail(HONE_NO_MEMORY, "no memory for %zu packed bytes", p.packed_bytes);
    if (!s) s = read_pixels(&p, out);
    hone_free(p.packed);
    hone_free(p.raw);
    return s;
}
