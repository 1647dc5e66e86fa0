/* SPDX-License-Identifier: Apache-2.0
   seeds_image: a tiny picture in each format that the decoders know, written byte by byte. */
#ifndef HONE_FUZZ_SEEDS_IMAGE_H
#define HONE_FUZZ_SEEDS_IMAGE_H
#include "../tests/onnx_write.h" /* for its growing bytes */

static inline void put_u8(msg *m, unsigned v) { put(m, &(uint8_t){(uint8_t)v}, 1); }
static inline void put_be(msg *m, uint32_t v, int n) {
    while (n--) put_u8(m, v >> 8 * n & 255);
}
static inline void put_le(msg *m, uint32_t v, int n) {
    for (int k = 0; k < n; k++) put_u8(m, v >> 8 * k & 255);
}
static inline uint32_t crc_of(const uint8_t *p, size_t n) {
    uint32_t c = ~0u;
    for (size_t k = 0; k < n; k++) {
        c ^= p[k];
        for (int b = 0; b < 8; b++) c = c >> 1 ^ (c & 1 ? 0xedb88320u : 0);
    }
    return ~c;
}
static inline void png_chunk(msg *m, const char *kind, msg data) { /* takes data */
    put_be(m, (uint32_t)data.n, 4);
    size_t from = m->n;
    put(m, kind, 4);
    put(m, data.at, data.n);
    put_be(m, crc_of(m->at + from, m->n - from), 4);
    free(data.at);
}
/* w x 3 pixels; the picture's bytes stand in one stored block of deflate. */
static inline msg seed_png(int bits, int colour, int interlaced) {
    static const int channels[] = {1, 0, 3, 1, 2, 0, 4};
    msg m = {0}, head = {0}, z = {0}, none = {0}, pixels = {0};
    int w = 5, row = (w * bits * channels[colour] + 7) / 8;
    put(&m, "\x89PNG\r\n\x1a\n", 8);
    put_be(&head, (uint32_t)w, 4), put_be(&head, 3, 4);
    put_u8(&head, (unsigned)bits), put_u8(&head, (unsigned)colour), put_u8(&head, 0), put_u8(&head, 0), put_u8(&head, (unsigned)interlaced);
    png_chunk(&m, "IHDR", head);
    if (colour == 3) {
        msg palette = {0};
        for (int k = 0; k < 12; k++) put_u8(&palette, (unsigned)k * 20);
        png_chunk(&m, "PLTE", palette);
    }
    for (int y = 0; y < 3; y++) {
        put_u8(&pixels, (unsigned)y + 1);
        for (int k = 0; k < row; k++) put_u8(&pixels, (unsigned)(y * 40 + k * 7) & (colour == 3 ? 0x11 : 255));
    }
    uint32_t a = 1, b = 0;
    for (size_t k = 0; k < pixels.n; k++) a = (a + pixels.at[k]) % 65521, b = (b + a) % 65521;
    put(&z, "\x78\x01\x01", 3), put_le(&z, (uint32_t)pixels.n, 2), put_le(&z, ~(uint32_t)pixels.n, 2), put(&z, pixels.at, pixels.n);
    put_be(&z, b << 16 | a, 4);
    free(pixels.at);
    png_chunk(&m, "IDAT", z);
    png_chunk(&m, "IEND", none);
    return m;
}
static inline msg seed_bmp(int bits) {
    msg m = {0};
    int colours = bits <= 8 ? 1 << bits : 0, row = (5 * bits + 31) / 32 * 4, from = 54 + colours * 4;
    put(&m, "BM", 2), put_le(&m, (uint32_t)(from + row * 3), 4), put_le(&m, 0, 4), put_le(&m, (uint32_t)from, 4);
    put_le(&m, 40, 4), put_le(&m, 5, 4), put_le(&m, 3, 4), put_le(&m, 1, 2), put_le(&m, (uint32_t)bits, 2);
    for (int k = 0; k < 6; k++) put_le(&m, 0, 4);
    for (int k = 0; k < colours; k++) put_le(&m, (uint32_t)k * 0x010203, 4);
    for (int k = 0; k < row * 3; k++) put_u8(&m, (unsigned)k * 5 & 255);
    return m;
}
static inline msg seed_pnm(const char *head, int bytes) {
    msg m = {0};
    put(&m, head, strlen(head));
    for (int k = 0; k < bytes; k++) put_u8(&m, (unsigned)k * 9 & 255);
    return m;
}
static inline msg seed_tiff(int compression) { /* 4 x 2 gray, one strip */
    static const uint8_t packed[] = {3, 1, 2, 3, 4, 0xfd, 9}, plain[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const bool is_packed = compression == 32773;
    const uint32_t n = is_packed ? sizeof packed : sizeof plain;
    const uint32_t entry[][4] = {{256, 3, 1, 4}, {257, 3, 1, 2}, {258, 3, 1, 8}, {259, 3, 1, (uint32_t)compression},
                                 {262, 3, 1, 1}, {273, 4, 1, 8}, {277, 3, 1, 1}, {278, 3, 1, 2},
                                 {279, 4, 1, n}};
    msg m = {0};
    put(&m, "II*\0", 4), put_le(&m, 16, 4), put(&m, is_packed ? packed : plain, n);
    while (m.n < 16) put_u8(&m, 0);
    put_le(&m, sizeof entry / sizeof *entry, 2);
    for (size_t k = 0; k < sizeof entry / sizeof *entry; k++)
        put_le(&m, entry[k][0], 2), put_le(&m, entry[k][1], 2), put_le(&m, entry[k][2], 4), put_le(&m, entry[k][3], 4);
    put_le(&m, 0, 4);
    return m;
}
/* 8 x 8, one or three components; tables with a code for "nothing" alone, so that any bits decode to something. */
static inline msg seed_jpeg(int components, int progressive) {
    msg m = {0};
    put(&m, "\xff\xd8\xff\xdb\x00\x43\x00", 7);
    for (int k = 0; k < 64; k++) put_u8(&m, 1 + (unsigned)k / 8);
    put(&m, progressive ? "\xff\xc2" : "\xff\xc0", 2), put_be(&m, 8 + 3 * (uint32_t)components, 2), put_u8(&m, 8), put_be(&m, 8, 2),
        put_be(&m, 8, 2);
    put_u8(&m, (unsigned)components);
    for (int k = 0; k < components; k++) put_u8(&m, (unsigned)k + 1), put_u8(&m, components == 3 && !k ? 0x22 : 0x11), put_u8(&m, 0);
    for (int table = 0; table < 2; table++) { /* two codes of one bit's length would leave none free: 0, 10, 110 */
        put(&m, "\xff\xc4", 2), put_be(&m, 19 + 3, 2), put_u8(&m, (unsigned)table << 4);
        for (int k = 1; k <= 16; k++) put_u8(&m, k <= 3);
        put(&m, table ? "\x00\x01\x11" : "\x00\x02\x03", 3);
    }
    put(&m, "\xff\xda", 2), put_be(&m, 6 + 2 * (uint32_t)components, 2), put_u8(&m, (unsigned)components);
    for (int k = 0; k < components; k++) put_u8(&m, (unsigned)k + 1), put_u8(&m, 0);
    put_u8(&m, 0), put_u8(&m, progressive ? 0 : 63), put_u8(&m, 0);
    for (int k = 0; k < 24; k++) put_u8(&m, (unsigned)k * 37 & 0x6d);
    put(&m, "\xff\xd9", 2);
    return m;
}
#endif
