/* SPDX-License-Identifier: Apache-2.0
   image_make: small encoders for the tests of src/image: PNG, BMP, PNM and TIFF files of a picture that a
   formula draws. Each returns the bytes; what they mean is known without a decoder. */
#ifndef HONE_TESTS_IMAGE_MAKE_H
#define HONE_TESTS_IMAGE_MAKE_H
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    uint8_t *at;
    size_t n, room;
} bytes;

static inline void put8(bytes *b, unsigned v) {
    if (b->n == b->room) b->at = realloc(b->at, b->room = b->room * 2 + 256);
    b->at[b->n++] = (uint8_t)v;
}
static inline void put16(bytes *b, unsigned v, bool big) {
    put8(b, big ? v >> 8 : v), put8(b, big ? v : v >> 8);
}
static inline void put32(bytes *b, unsigned v, bool big) {
    put16(b, big ? v >> 16 : v, big), put16(b, big ? v : v >> 16, big);
}
static inline void put_all(bytes *b, const void *p, size_t n) {
    for (size_t k = 0; k < n; k++) put8(b, ((const uint8_t *)p)[k]);
}

/* The picture: sample c of the pixel at (x, y), of so many bits. Areas of one colour, so that there is
   something to pack. */
static inline unsigned drawn(int x, int y, int c, int bits) {
    unsigned v = (unsigned)((x / 3 * 37 + y / 2 * 91 + c * 53) ^ (x * y / 7));
    return v * 2654435761u >> 7 & ((1u << bits) - 1);
}
/* The same as 8 bits, as a decoder should give it. */
static inline unsigned drawn8(int x, int y, int c, int bits) {
    unsigned v = drawn(x, y, c, bits);
    return bits > 8 ? v >> (bits - 8) : v * 255 / ((1u << bits) - 1);
}

/* ---- zlib streams, three kinds of block ---- */

typedef struct {
    bytes *to;
    uint32_t bits;
    int have;
} bit_writer;
static inline void put_bits(bit_writer *w, unsigned v, int n) { /* low bits first */
    for (int k = 0; k < n; k++) {
        w->bits |= (v >> k & 1) << w->have;
        if (++w->have == 8) put8(w->to, w->bits), w->bits = 0, w->have = 0;
    }
}
static inline void put_code(bit_writer *w, unsigned v, int n) { /* a Huffman code: high bit first */
    for (int k = n - 1; k >= 0; k--) put_bits(w, v >> k, 1);
}

enum { STORED, FIXED, DYNAMIC, DEFLATES };

static inline void put_fixed(bit_writer *w, int symbol) {
    if (symbol < 144) put_code(w, 0x30 + (unsigned)symbol, 8);
    else if (symbol < 256) put_code(w, 0x190 + (unsigned)symbol - 144, 9);
    else if (symbol < 280) put_code(w, (unsigned)symbol - 256, 7);
    else put_code(w, 0xc0 + (unsigned)symbol - 280, 8);
}
/* The code of our dynamic blocks: 0 to 253 have 8 bits, 254 to 257 have 9: that is all codes there can be. */
static inline void put_dynamic(bit_writer *w, int symbol) {
    if (symbol < 254) put_code(w, (unsigned)symbol, 8);
    else put_code(w, 508 + (unsigned)symbol - 254, 9);
}
static inline void dynamic_head(bit_writer *w) {
    static const uint8_t order[18] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1};
    /* 258 literals, 1 distance, 18 lengths of lengths */
    put_bits(w, 1, 5), put_bits(w, 0, 5), put_bits(w, 14, 4);
    for (int k = 0; k < 18; k++)
        put_bits(w, order[k] == 8 ? 1 : order[k] == 9 ? 2 : order[k] == 1 || order[k] == 16 ? 3 : 0, 3);
    put_code(w, 0, 1);                    /* 8 */
    for (int k = 1; k + 6 <= 254; k += 6) /* and six times the same: 1 + 42 * 6 = 253 */
        put_code(w, 7, 3), put_bits(w, 3, 2);
    put_code(w, 0, 1);
    for (int k = 0; k < 4; k++) put_code(w, 2, 2); /* 9 */
    put_code(w, 6, 3);                             /* 1: the distance */
}

static inline void zlib(bytes *to, const uint8_t *p, size_t n, int kind) {
    bit_writer w = {.to = to};
    uint32_t a = 1, b = 0;
    put8(to, 0x78), put8(to, 0x01);
    for (size_t k = 0, step; k < n || !n; k += step) {
        step = n - k < 700 ? n - k : 700;
        put_bits(&w, k + step == n, 1), put_bits(&w, (unsigned)kind, 2);
        if (kind == STORED) {
            while (w.have) put_bits(&w, 0, 1);
            put16(to, (unsigned)step, false), put16(to, ~(unsigned)step & 0xffff, false);
            put_all(to, p + k, step);
            if (k + step == n) break;
            continue;
        }
        if (kind == DYNAMIC) dynamic_head(&w);
        for (size_t i = k; i < k + step; i++) {
            void (*put)(bit_writer *, int) = kind == FIXED ? put_fixed : put_dynamic;
            size_t run = 0;
            while (i && i + run < k + step && run < 200 && p[i + run] == p[i - 1]) run++;
            /* three more of the last byte */
            if (run >= 3 && kind == DYNAMIC) put(&w, 257), put_code(&w, 0, 1), i += 2;
            else if (run >= 35 && kind == FIXED)
                put(&w, 273), put_bits(&w, (unsigned)(run > 42 ? 7 : run - 35), 3), put_code(&w, 0, 5),
                    i += (run > 42 ? 42 : run) - 1;
            else put(&w, p[i]);
        }
        put_code(&w, kind == FIXED ? 0 : 510, kind == FIXED ? 7 : 9); /* 256: the end */
        if (k + step == n) break;
    }
    while (w.have) put_bits(&w, 0, 1);
    for (size_t k = 0; k < n; k++) a = (a + p[k]) % 65521, b = (b + a) % 65521;
    put32(to, b << 16 | a, true);
}

/* ---- PNG ---- */

static inline uint32_t crc32_of(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
    for (size_t k = 0; k < n; k++) {
        c ^= p[k];
        for (int i = 0; i < 8; i++) c = c & 1 ? c >> 1 ^ 0xedb88320 : c >> 1;
    }
    return ~c;
}
static inline void png_chunk(bytes *b, const char *type, const bytes *body) {
    put32(b, (unsigned)body->n, true);
    size_t from = b->n;
    put_all(b, type, 4), put_all(b, body->at, body->n);
    put32(b, crc32_of(b->at + from, b->n - from), true);
}
/* After a change inside: the checksums made right again, so that what is behind them is reached. */
static inline void png_mend(uint8_t *p, size_t n) {
    for (size_t at = 8; n - at >= 12 && at < n;) {
        uint32_t size =
            (uint32_t)p[at] << 24 | (uint32_t)p[at + 1] << 16 | (uint32_t)p[at + 2] << 8 | p[at + 3];
        if (size > n - at - 12) return;
        uint32_t c = crc32_of(p + at + 4, size + 4);
        for (int k = 0; k < 4; k++) p[at + 8 + size + (size_t)k] = (uint8_t)(c >> (24 - 8 * k));
        at += 12 + size;
    }
}

static inline int png_samples(int colour) { return colour == 2 ? 3 : colour == 4 ? 2 : colour == 6 ? 4 : 1; }

/* One pass: rows of every dy-th line from y, every dx-th pixel from x, filtered by each kind in turn. */
static inline void png_pass(bytes *raw, int w, int h, int colour, int depth, int x0, int y0, int dx, int dy) {
    int samples = png_samples(colour), columns = (w - x0 + dx - 1) / dx;
    size_t row = ((size_t)(columns * samples * depth) + 7) / 8, step = (size_t)(samples * depth + 7) / 8;
    uint8_t *now = calloc(1, row + 1), *above = calloc(1, row + 1);
    for (int y = y0, kind = 0; y < h && columns > 0; y += dy, kind = (kind + 1) % 5) {
        memset(now, 0, row);
        for (int k = 0; k < columns * samples; k++) {
            unsigned v = drawn(x0 + k / samples * dx, y, k % samples, depth);
            if (depth == 16) now[2 * k] = (uint8_t)(v >> 8), now[2 * k + 1] = (uint8_t)v;
            else now[k * depth / 8] |= (uint8_t)(v << (8 - depth - k * depth % 8));
        }
        put8(raw, (unsigned)kind);
        for (size_t k = 0; k < row; k++) {
            int a = k >= step ? now[k - step] : 0, b = above[k], c = k >= step ? above[k - step] : 0,
                p = a + b - c;
            int near = abs(p - a) <= abs(p - b) && abs(p - a) <= abs(p - c) ? a
                       : abs(p - b) <= abs(p - c)                           ? b
                                                                            : c;
            put8(raw, (unsigned)(now[k] - (kind == 1   ? a
                                           : kind == 2 ? b
                                           : kind == 3 ? (a + b) / 2
                                           : kind == 4 ? near
                                                       : 0)) &
                          255);
        }
        uint8_t *swap = above;
        above = now, now = swap;
    }
    free(now), free(above);
}

static inline bytes make_png(int w, int h, int colour, int depth, bool interlaced, int deflate) {
    static const uint8_t passes[7][4] = {{0, 0, 8, 8}, {4, 0, 8, 8}, {0, 4, 4, 8}, {2, 0, 4, 4},
                                         {0, 2, 2, 4}, {1, 0, 2, 2}, {0, 1, 1, 2}};
    bytes b = {0}, head = {0}, raw = {0}, packed = {0}, palette = {0}, none = {0};
    put_all(&b, "\x89PNG\r\n\x1a\n", 8);
    put32(&head, (unsigned)w, true), put32(&head, (unsigned)h, true);
    put8(&head, (unsigned)depth), put8(&head, (unsigned)colour), put8(&head, 0), put8(&head, 0),
        put8(&head, interlaced);
    png_chunk(&b, "IHDR", &head);
    for (int k = 0; colour == 3 && k < 1 << depth; k++)
        put8(&palette, (unsigned)k), put8(&palette, 255u - (unsigned)k), put8(&palette, (unsigned)k * 7);
    if (colour == 3) png_chunk(&b, "PLTE", &palette);
    png_chunk(&b, "tEXt", &none);
    if (interlaced)
        for (int k = 0; k < 7; k++)
            png_pass(&raw, w, h, colour, depth, passes[k][0], passes[k][1], passes[k][2], passes[k][3]);
    else png_pass(&raw, w, h, colour, depth, 0, 0, 1, 1);
    zlib(&packed, raw.at, raw.n, deflate);
    bytes first = {packed.at, packed.n / 2, 0},
          second = {packed.at + packed.n / 2, packed.n - packed.n / 2, 0};
    png_chunk(&b, "IDAT", &first), png_chunk(&b, "IDAT", &second), png_chunk(&b, "IEND", &none);
    free(head.at), free(raw.at), free(packed.at), free(palette.at);
    return b;
}

/* ---- BMP: packing 1 and 2 are runs, 3 has masks ---- */

static inline bytes make_bmp(int w, int h, int depth, int packing, bool down) {
    bytes b = {0}, rows = {0};
    size_t row = ((size_t)(w * depth) + 31) / 32 * 4;
    unsigned colours = depth <= 8 ? 1u << depth : 0, begin = 54 + 4 * colours + (packing == 3 ? 12 : 0);
    for (int k = 0; k < h; k++) {
        int y = down ? k : h - 1 - k;
        size_t from = rows.n;
        /* runs of one … */
        for (int x = 0; x < w && packing == 1; x++) put8(&rows, 1), put8(&rows, drawn(x, y, 0, 8));
        for (int x = 0; x < w && packing == 2; x += 2)
            put8(&rows, x + 1 < w ? 2 : 1), put8(&rows, drawn(x, y, 0, 4) << 4 | drawn(x + 1, y, 0, 4));
        if (packing == 1 || packing == 2) {
            if (k == 0) rows.n = from; /* … but one row as plain bytes, with its padding */
            if (k == 0) put8(&rows, 0), put8(&rows, (unsigned)w);
            for (int x = 0; x < w && k == 0; x += packing)
                put8(&rows, packing == 1 ? drawn(x, y, 0, 8)
                                         : drawn(x, y, 0, 4) << 4 | (x + 1 < w ? drawn(x + 1, y, 0, 4) : 0));
            if (rows.n % 2) put8(&rows, 0);
            put8(&rows, 0), put8(&rows, k == h - 1);
            continue;
        }
        for (size_t i = 0; i < row; i++) put8(&rows, 0);
        for (int x = 0; x < w; x++) {
            uint8_t *to = rows.at + from + x * depth / 8;
            unsigned r = drawn(x, y, 0, 8), g = drawn(x, y, 1, 8), bl = drawn(x, y, 2, 8);
            unsigned v = packing == 3 ? (r >> 3) << 11 | (g >> 2) << 5 | bl >> 3
                                      : (r >> 3) << 10 | (g >> 3) << 5 | bl >> 3;
            if (depth <= 8) to[0] |= (uint8_t)(drawn(x, y, 0, depth) << (8 - depth - x * depth % 8));
            else if (depth == 16) to[0] = (uint8_t)v, to[1] = (uint8_t)(v >> 8);
            else to[0] = (uint8_t)bl, to[1] = (uint8_t)g, to[2] = (uint8_t)r;
        }
    }
    put_all(&b, "BM", 2), put32(&b, begin + (unsigned)rows.n, false), put32(&b, 0, false),
        put32(&b, begin, false);
    put32(&b, 40, false), put32(&b, (unsigned)w, false), put32(&b, (unsigned)(down ? -h : h), false),
        put16(&b, 1, false);
    put16(&b, (unsigned)depth, false), put32(&b, (unsigned)packing, false);
    for (int k = 0; k < 5; k++) put32(&b, 0, false);
    if (packing == 3) put32(&b, 0xf800, false), put32(&b, 0x7e0, false), put32(&b, 0x1f, false);
    for (unsigned k = 0; k < colours; k++) put8(&b, k * 7), put8(&b, 255 - k), put8(&b, k), put8(&b, 0);
    put_all(&b, rows.at, rows.n);
    free(rows.at);
    return b;
}

/* ---- PNM ---- */

static inline void put_text(bytes *b, unsigned v) {
    char digits[12], *p = digits + 11;
    *p = 0;
    do *--p = (char)('0' + v % 10), v /= 10;
    while (v);
    put_all(b, p, strlen(p)), put8(b, ' ');
}
static inline bytes make_pnm(int w, int h, int kind, int bits) {
    bytes b = {0};
    int samples = kind % 3 == 0 ? 3 : 1;
    put8(&b, 'P'), put8(&b, '0' + (unsigned)kind), put_all(&b, "\n# drawn\n", 9), put_text(&b, (unsigned)w),
        put_text(&b, (unsigned)h);
    if (kind % 3 != 1) put_text(&b, (1u << bits) - 1);
    if (kind <= 3) put8(&b, '\n');
    for (int y = 0; y < h; y++)
        for (int x = 0; x < w; x++)
            for (int c = 0; c < samples; c++) {
                unsigned v = drawn(x, y, c, bits);
                if (kind == 4 && x % 8 == 0) put8(&b, 0);
                if (kind == 1) put8(&b, '0' + !v);
                else if (kind == 4) b.at[b.n - 1] |= (uint8_t)(!v << (7 - x % 8));
                else if (kind < 4) put_text(&b, v);
                else if (bits > 8) put16(&b, v, true);
                else put8(&b, v);
            }
    return b;
}

/* ---- TIFF ---- */

static inline void pack_lzw(bytes *to, const uint8_t *p, size_t n) {
    struct {
        int before, last;
    } code[4096];
    uint32_t bits = 0;
    int have = 0, width = 9, next = 258, now = -1;
#define EMIT(c)                                                          \
    do {                                                                 \
        bits = bits << width | (uint32_t)(c), have += width;             \
        while (have >= 8) put8(to, bits >> (have - 8) & 255), have -= 8; \
    } while (0)
    EMIT(256);
    for (size_t k = 0; k < n; k++) {
        int found = now < 0 ? p[k] : -1;
        for (int c = 258; now >= 0 && c < next; c++)
            if (code[c].before == now && code[c].last == p[k]) found = c;
        if (found >= 0) {
            now = found;
            continue;
        }
        EMIT(now);
        code[next].before = now, code[next].last = p[k];
        if (++next == (1 << width)) width++;
        if (next == 4095) {
            EMIT(256);
            width = 9, next = 258;
        }
        now = p[k];
    }
    EMIT(now);
    if (next + 1 == 1 << width && width < 12) width++; /* the reader has made one more by then */
    EMIT(257);
    if (have) put8(to, bits << (8 - have) & 255);
#undef EMIT
}
static inline void pack_bits(bytes *to, const uint8_t *p, size_t n) {
    for (size_t k = 0, run; k < n; k += run) {
        for (run = 1; k + run < n && run < 100 && p[k + run] == p[k];) run++;
        if (run > 1) put8(to, 257 - (unsigned)run), put8(to, p[k]);
        else put8(to, 0), put8(to, p[k]);
    }
}

typedef struct {
    int photometric, depth, samples, packing, predictor, tile; /* tile 0: strips of 5 rows */
    bool big, planes;
} tiff_kind;

static inline bytes make_tiff(int w, int h, const tiff_kind *t) {
    bytes b = {0}, places = {0}, sizes = {0}, entries = {0};
    int pw = t->tile ? t->tile : w, ph = t->tile ? t->tile : 5, planes = t->planes ? t->samples : 1,
        in = t->planes ? 1 : t->samples;
    unsigned n = 0, tags = 0;
    size_t row = ((size_t)(pw * in * t->depth) + 7) / 8;
    put_all(&b, t->big ? "MM" : "II", 2), put16(&b, 42, t->big), put32(&b, 0, t->big);
    for (int plane = 0; plane < planes; plane++)
        for (int y0 = 0; y0 < h; y0 += ph)
            for (int x0 = 0; x0 < w; x0 += pw, n++) {
                int rows = t->tile || h - y0 > ph ? ph : h - y0;
                uint8_t *raw = calloc(1, row * (size_t)rows);
                for (int k = rows * pw * in - 1; k >= 0; k--) {
                    int x = x0 + k / in % pw, y = y0 + k / in / pw, c = t->planes ? plane : k % in;
                    unsigned v = drawn(x, y, c, t->depth);
                    if (t->predictor == 2 && k / in % pw)
                        v = (v - drawn(x - 1, y, c, t->depth)) & ((1u << t->depth) - 1);
                    uint8_t *to = raw + (size_t)(k / in / pw) * row;
                    int i = k % (in * pw);
                    if (t->depth == 16)
                        to[2 * i + !t->big] = (uint8_t)(v >> 8), to[2 * i + t->big] = (uint8_t)v;
                    else to[i * t->depth / 8] |= (uint8_t)(v << (8 - t->depth - i * t->depth % 8));
                }
                size_t from = b.n;
                put32(&places, (unsigned)b.n, t->big);
                if (t->packing == 5) pack_lzw(&b, raw, row * (size_t)rows);
                else if (t->packing == 8) zlib(&b, raw, row * (size_t)rows, FIXED);
                else if (t->packing == 32773) pack_bits(&b, raw, row * (size_t)rows);
                else put_all(&b, raw, row * (size_t)rows);
                put32(&sizes, (unsigned)(b.n - from), t->big);
                free(raw);
            }
    unsigned at_places = (unsigned)b.n, at_sizes = at_places + 4 * n, at_colours = at_sizes + 4 * n,
             colours = t->photometric == 3 ? 3u << t->depth : 0;
    put_all(&b, places.at, places.n), put_all(&b, sizes.at, sizes.n);
    for (unsigned k = 0; k < colours; k++) {
        unsigned each = colours / 3, i = k % each, v = k / each == 0 ? i : k / each == 1 ? 255 - i : i * 7;
        put16(&b, (v & 255) * 257, t->big);
    }
#define ENTRY(tag, count, v)                                                                   \
    (put16(&entries, tag, t->big), put16(&entries, 4, t->big), put32(&entries, count, t->big), \
     put32(&entries, v, t->big), tags++)
    ENTRY(256, 1, (unsigned)w), ENTRY(257, 1, (unsigned)h), ENTRY(258, 1, (unsigned)t->depth),
        ENTRY(259, 1, (unsigned)t->packing);
    ENTRY(262, 1, (unsigned)t->photometric), ENTRY(277, 1, (unsigned)t->samples),
        ENTRY(284, 1, t->planes ? 2u : 1u);
    ENTRY(317, 1, (unsigned)t->predictor);
    ENTRY(t->tile ? 324 : 273, n, n == 1 ? 8 : at_places),
        ENTRY(t->tile ? 325 : 279, n, n == 1 ? at_places - 8 : at_sizes);
    if (t->tile) ENTRY(322, 1, (unsigned)pw), ENTRY(323, 1, (unsigned)ph);
    else ENTRY(278, 1, (unsigned)ph);
#undef ENTRY
    if (colours)
        put16(&entries, 320, t->big), put16(&entries, 3, t->big), put32(&entries, colours, t->big),
            put32(&entries, at_colours, t->big), tags++;
    for (int k = 0; k < 4; k++) b.at[4 + k] = (uint8_t)(b.n >> (t->big ? 24 - 8 * k : 8 * k));
    put16(&b, tags, t->big), put_all(&b, entries.at, entries.n), put32(&b, 0, t->big);
    free(places.at), free(sizes.at), free(entries.at);
    return b;
}
#endif
