/* SPDX-License-Identifier: Apache-2.0
   webp_make: WebP files. A lossy one needs no encoder: behind its header any bytes are a picture. Lossless ones are written with codes that
   are simple to say, and between them use every transform, copies, the cache and groups. */
#ifndef HONE_TESTS_WEBP_MAKE_H
#define HONE_TESTS_WEBP_MAKE_H
#include "image_make.h"

static inline bytes webp_wrap(const char *type, const bytes *body) {
    bytes b = {0};
    unsigned odd = body->n & 1;
    put_all(&b, "RIFF", 4), put32(&b, (unsigned)(body->n + odd + 12), false), put_all(&b, "WEBP", 4);
    put_all(&b, type, 4), put32(&b, (unsigned)body->n, false), put_all(&b, body->at, body->n);
    if (odd) put8(&b, 0);
    return b;
}

/* Booleans of given odds, as VP8 codes them (RFC 6386, 7.3). */
typedef struct {
    bytes *to;
    uint32_t range, bottom;
    int left;
} odds_writer;
static inline void put_flag(odds_writer *w, int odds, bool bit) {
    uint32_t split = 1 + ((w->range - 1) * (uint32_t)odds >> 8);
    if (bit) w->bottom += split, w->range -= split;
    else w->range = split;
    for (; w->range < 128; w->range <<= 1) {
        if (w->bottom >> 31)
            for (size_t k = w->to->n; ++w->to->at[k - 1] == 0; k--) {}
        w->bottom <<= 1;
        if (--w->left == 0) put8(w->to, w->bottom >> 24), w->bottom &= 0xffffff, w->left = 8;
    }
}
static inline void put_number(odds_writer *w, unsigned v, int bits) {
    while (bits--) put_flag(w, 128, v >> bits & 1);
}

/* The header says fine steps, and what `kind` wants of segments, filters and parts; behind it any bytes are modes and coefficients. */
static inline bytes make_lossy(int w, int h, int kind, uint32_t seed) {
    bytes body = {0};
    put8(&body, 0), put16(&body, 0, false), put_all(&body, "\x9d\x01\x2a", 3), put16(&body, (unsigned)w, false),
        put16(&body, (unsigned)h, false);
    odds_writer o = {&body, 255, 0, 24};
    int parts = kind & 3;
    put_number(&o, 0, 2);
    put_number(&o, kind >> 2 & 1, 1); /* segments: a map, steps and levels as differences or as they are */
    if (kind >> 2 & 1) {
        put_number(&o, 3, 2), put_number(&o, kind >> 3 & 1, 1);
        for (unsigned k = 0; k < 4; k++) put_number(&o, 1, 1), put_number(&o, 2 + k, 7), put_number(&o, kind & 8 ? 0 : k & 1, 1);
        for (unsigned k = 0; k < 4; k++) put_number(&o, 1, 1), put_number(&o, 9 * k, 6), put_number(&o, 0, 1);
        for (unsigned k = 0; k < 3; k++) put_number(&o, 1, 1), put_number(&o, 100 + 20 * k, 8);
    }
    put_number(&o, kind >> 4 & 1, 1), put_number(&o, (unsigned)kind * 7 % 64, 6), put_number(&o, (unsigned)kind % 8, 3); /* filter */
    put_number(&o, 1, 1), put_number(&o, 1, 1);
    for (unsigned k = 0; k < 8; k++) put_number(&o, k % 4 == 0, 1), k % 4 == 0 ? put_number(&o, 6 + k, 7) : (void)0;
    put_number(&o, (unsigned)parts, 2), put_number(&o, 4, 7);
    for (int k = 0; k < 5; k++) put_number(&o, 0, 1);
    put_number(&o, 0, 1);
    for (int k = 0; k < 32; k++) put_flag(&o, 128, k & 1); /* pushes the last of it out */
    unsigned macros = (unsigned)((w + 15) / 16 * ((h + 15) / 16)), first = (unsigned)body.n - 10 + 200 + macros * 14;
    for (unsigned k = 0, n = first + (3u << parts) + (macros * 900 << parts); body.n < 10 + n; k++) {
        seed = seed * 1664525u + 1013904223u;
        put8(&body, seed >> 24);
        unsigned at = (unsigned)body.n - 11 - first; /* sizes of the parts */
        if (body.n > 10 + first && at < 3u * ((1u << parts) - 1)) body.at[body.n - 1] = (uint8_t)(macros * 900 >> 8 * (at % 3));
    }
    for (int k = 0; k < 3; k++) body.at[k] = (uint8_t)((first << 5 | 0x10) >> 8 * k);
    bytes b = webp_wrap("VP8 ", &body);
    free(body.at);
    return b;
}

/* ---- lossless ---- */

/* A code whose symbols below `full` have 8 bits; `extra` ones of 9 bits, which fill it up; all others none. */
typedef struct {
    int full, alphabet;
    uint16_t extra[8];
    int extras;
} lossless_code;

static inline void lossless_symbol(bit_writer *w, const lossless_code *c, int s) {
    for (int k = 0; k < c->extras; k++)
        if (c->extra[k] == s) return put_code(w, 2 * (unsigned)c->full + (unsigned)k, 9);
    put_code(w, (unsigned)s, 8);
}
static inline void lossless_head(bit_writer *w, const lossless_code *c) {
    put_bits(w, 0, 1), put_bits(w, 9, 4); /* 13 lengths of lengths: 17 18 0 1 2 3 4 5 16 6 7 8 9 */
    for (int k = 0; k < 13; k++) put_bits(w, k == 11 ? 1 : k == 2 || k == 12 ? 2 : 0, 3);
    put_bits(w, 0, 1);
    for (int s = 0; s < c->alphabet; s++) {
        bool nine = false;
        for (int k = 0; k < c->extras; k++) nine |= c->extra[k] == s;
        if (nine) put_code(w, 3, 2);
        else if (s < c->full) put_code(w, 0, 1);
        else put_code(w, 2, 2);
    }
}
static inline void lossless_one(bit_writer *w, unsigned symbol) {
    put_bits(w, 1, 1), put_bits(w, 0, 1), put_bits(w, 1, 1), put_bits(w, symbol, 8);
}
static inline void lossless_two(bit_writer *w, unsigned a, unsigned b) {
    put_bits(w, 1, 1), put_bits(w, 1, 1), put_bits(w, 1, 1), put_bits(w, a, 8), put_bits(w, b, 8);
}

/* A picture all of whose pixels are literals; `depth` bits of each channel are drawn, the rest 0. */
static inline void lossless_plain(bit_writer *w, int width, int height, const int depth[4], int salt) {
    lossless_code c = {.full = 256, .alphabet = 280};
    put_bits(w, 0, 1); /* no cache */
    if (salt == 0) put_bits(w, 0, 1);
    /* the code of lengths has 9 too, which none has here: a full code of 8 bits */
    lossless_head(w, &c);
    c.alphabet = 256;
    for (int k = 0; k < 3; k++) lossless_head(w, &c);
    lossless_one(w, 0);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < width; x++)
            for (int k = 0; k < 4; k++) /* green, red, blue, alpha */
                lossless_symbol(w, &c, depth[k] ? (int)drawn(x + salt, y, k, depth[k]) : 0);
}

/* Kind 0: predictor, colour and green transforms; 1: copies, the cache, two groups; 2 to 5: palettes of 2, 3, 5 and 40 colours. */
static inline bytes make_lossless(int w, int h, int kind) {
    bytes body = {0};
    bit_writer b = {.to = &body};
    int narrow = w;
    put8(&body, 0x2f), put_bits(&b, (unsigned)w - 1, 14), put_bits(&b, (unsigned)h - 1, 14), put_bits(&b, 0, 4);
    if (kind == 0) {
        put_bits(&b, 1, 1), put_bits(&b, 0, 2), put_bits(&b, 0, 3); /* predictor, blocks of 4 x 4; its modes */
        lossless_plain(&b, (w + 3) / 4, (h + 3) / 4, (int[]){4, 0, 0, 0}, 5);
        put_bits(&b, 1, 1), put_bits(&b, 1, 2), put_bits(&b, 1, 3); /* colour, 8 x 8 */
        lossless_plain(&b, (w + 7) / 8, (h + 7) / 8, (int[]){8, 8, 8, 0}, 9);
        put_bits(&b, 1, 1), put_bits(&b, 2, 2); /* green */
    } else if (kind >= 2) {
        int n = kind == 2 ? 2 : kind == 3 ? 3 : kind == 4 ? 5 : 40, bits = kind == 5 ? 0 : 5 - kind;
        put_bits(&b, 1, 1), put_bits(&b, 3, 2), put_bits(&b, (unsigned)n - 1, 8);
        lossless_plain(&b, n, 1, (int[]){8, 8, 8, 8}, 2);
        narrow = (w + (1 << bits) - 1) >> bits;
    }
    put_bits(&b, 0, 1);
    if (kind != 1) {
        lossless_plain(&b, narrow, h, (int[]){kind ? (kind == 5 ? 5 : 8) : 3, kind ? 0 : 3, kind ? 0 : 3, 0}, 0);
    } else {
        lossless_code c = {.full = 252, .alphabet = 282, .extra = {252, 253, 254, 255, 257, 262, 280, 281}, .extras = 8},
                      plain = {.full = 256, .alphabet = 256};
        put_bits(&b, 1, 1), put_bits(&b, 1, 4); /* a cache of two */
        put_bits(&b, 1, 1), put_bits(&b, 0, 3); /* groups by 4 x 4, chosen by a picture of its own: red and green, green 0 or 1 */
        put_bits(&b, 0, 1), lossless_two(&b, 0, 1), lossless_one(&b, 0), lossless_one(&b, 0), lossless_one(&b, 0), lossless_one(&b, 0);
        for (int k = 0; k < (w + 3) / 4 * ((h + 3) / 4); k++) put_bits(&b, (unsigned)k & 1, 1);
        for (int g = 0; g < 2; g++) {
            lossless_head(&b, &c);
            for (int k = 0; k < 3; k++) lossless_head(&b, &plain);
            lossless_two(&b, g ? 1 : 0, g ? 3 : 2); /* distances: near places */
        }
        for (int at = 0, n = w * h; at < n;) {
            int group = (at % w / 4 + at / w / 4 * ((w + 3) / 4)) & 1, turn = at * 7 % 11;
            if (at > 3 * w && turn == 3 && n - at >= 2) lossless_symbol(&b, &c, 257), put_bits(&b, (unsigned)at & 1, 1), at += 2;
            else if (at > 3 * w && turn == 5 && n - at >= 12)
                lossless_symbol(&b, &c, 262), put_bits(&b, 3, 2), put_bits(&b, (unsigned)group, 1), at += 12;
            else if (at && turn == 8) lossless_symbol(&b, &c, 280 + at % 2), at++;
            else {
                lossless_symbol(&b, &c, (int)drawn(at % w, at / w, 0, 8));
                for (int k = 1; k < 4; k++) lossless_symbol(&b, &plain, (int)drawn(at % w, at / w, k, 8));
                at++;
            }
        }
    }
    while (b.have) put_bits(&b, 0, 1);
    bytes file = webp_wrap("VP8L", &body);
    free(body.at);
    return file;
}
#endif
