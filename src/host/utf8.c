/* SPDX-License-Identifier: Apache-2.0
   utf8: see utf8.h. */
#include "host/utf8.h"

#include <stdbool.h>

int hone_utf8_read(const char *at, const char *end, uint32_t *out) {
    const uint8_t *b = (const uint8_t *)at;
    int n = b[0] < 0x80                   ? 1
            : b[0] >= 0xC2 && b[0] < 0xE0 ? 2
            : (b[0] & 0xF0) == 0xE0       ? 3
            : b[0] >= 0xF0 && b[0] < 0xF5 ? 4
                                          : 0;
    bool good = n && n <= end - at;
    uint32_t c = n == 1 ? b[0] : b[0] & (0x7Fu >> (n ? n : 1));
    for (int k = 1; k < n && good; k++) {
        good = (b[k] & 0xC0) == 0x80;
        c = c << 6 | (b[k] & 0x3Fu);
    }
    if (good &&
        ((n == 3 && (c < 0x800 || (c >= 0xD800 && c < 0xE000))) || (n == 4 && (c < 0x10000 || c > 0x10FFFF))))
        good = false;
    *out = good ? c : 0xFFFD;
    return good ? n : 1;
}

int hone_utf8_write(char *to, uint32_t c) {
    int n = c < 0x80 ? 1 : c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (int k = n - 1; k > 0; k--, c >>= 6) to[k] = (char)(0x80 | (c & 0x3F));
    to[0] = (char)(n == 1 ? c : (0xF00u >> n & 0xFF) | c);
    return n;
}

/* Capitals first … last, every `step`th; the small letter is `apart` further. */
static const struct {
    uint32_t first, last, step;
    int32_t apart;
} cases[] = {
    /* ASCII, Latin-1 */
    {'A', 'Z', 1, 32},
    {0xC0, 0xD6, 1, 32},
    {0xD8, 0xDE, 1, 32},
    {0x178, 0x178, 1, -121},
    /* Latin A */
    {0x100, 0x12E, 2, 1},
    {0x132, 0x136, 2, 1},
    {0x139, 0x147, 2, 1},
    {0x14A, 0x176, 2, 1},
    {0x179, 0x17D, 2, 1},
    /* Greek */
    {0x386, 0x386, 1, 38},
    {0x388, 0x38A, 1, 37},
    {0x38C, 0x38C, 1, 64},
    {0x38E, 0x38F, 1, 63},
    /* Cyrillic */
    {0x391, 0x3A1, 1, 32},
    {0x3A3, 0x3AB, 1, 32},
    {0x400, 0x40F, 1, 80},
    {0x410, 0x42F, 1, 32},
    /* Armenian */
    {0x460, 0x480, 2, 1},
    {0x48A, 0x4BE, 2, 1},
    {0x4D0, 0x52E, 2, 1},
    {0x531, 0x556, 1, 48},
    {0x2160, 0x216F, 1, 16}, /* Roman numbers, letters in circles */
    {0x24B6, 0x24CF, 1, 26},
    {0x1E00, 0x1E94, 2, 1},
    {0x1EA0, 0x1EFE, 2, 1},
    {0xFF21, 0xFF3A, 1, 32}, /* Latin additions, full width */
};

uint32_t hone_utf8_lower(uint32_t c) {
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        if (c >= cases[k].first && c <= cases[k].last && (c - cases[k].first) % cases[k].step == 0)
            return c + (uint32_t)cases[k].apart;
    return c;
}

uint32_t hone_utf8_upper(uint32_t c) {
    if (c == 0x3C2) return 0x3A3; /* the sigma at the end of a word */
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        uint32_t big = c - (uint32_t)cases[k].apart;
        if (big >= cases[k].first && big <= cases[k].last && (big - cases[k].first) % cases[k].step == 0)
            return big;
    }
    return c;
}
