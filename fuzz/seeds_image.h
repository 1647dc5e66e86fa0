/* SPDX-License-Identifier: Apache-2.0
   seeds_image: a tiny picture in each format: BMP and PNM written byte by byte, the others as Pillow wrote
   them. */
#ifndef HONE_FUZZ_SEEDS_IMAGE_H
#define HONE_FUZZ_SEEDS_IMAGE_H
#include <stdio.h>

#include "../tests/image_files.h"
#include "../tests/onnx_write.h" /* for its growing bytes */

static inline void put_u8(msg *m, unsigned v) { put(m, &(uint8_t){(uint8_t)v}, 1); }
static inline void put_le(msg *m, uint32_t v, int n) {
    for (int k = 0; k < n; k++) put_u8(m, v >> 8 * k & 255);
}
static inline msg seed_bmp(int bits) {
    msg m = {0};
    int colours = bits <= 8 ? 1 << bits : 0, row = (5 * bits + 31) / 32 * 4, from = 54 + colours * 4;
    put(&m, "BM", 2), put_le(&m, (uint32_t)(from + row * 3), 4), put_le(&m, 0, 4),
        put_le(&m, (uint32_t)from, 4);
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
static inline msg seed_file(int k) {
    msg m = {0};
    for (const char *p = image_files[k].hex; *p; p += 2) {
        unsigned v = 0;
        sscanf(p, "%2x", &v);
        put_u8(&m, v);
    }
    return m;
}
#endif
