/* SPDX-License-Identifier: Apache-2.0
   jpeg_make: JPEG files whose coefficients are drawn by a formula, so that the file is the same on every machine and no DCT is needed to
   make it: baseline or progressive (every kind of scan), any sampling, restarts. */
#ifndef HONE_TESTS_JPEG_MAKE_H
#define HONE_TESTS_JPEG_MAKE_H
#include "image_make.h"

typedef struct {
    int width, height, parts, h[4], v[4];
    bool progressive, apart; /* apart: a scan a component */
    int restart;             /* MCUs, or 0 */
    int adobe;               /* -1: JFIF; 0, 1, 2: Adobe's transform */
    int keep;                /* coefficients beyond are zero; 64: all are drawn */
} jpeg_kind;

static const uint8_t jpeg_order[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
                                       41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
                                       30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

/* Coefficient k (in zigzag order) of a block: DC wanders, AC gets rarer and smaller. */
static inline int jpeg_coefficient(const jpeg_kind *j, int c, int bx, int by, int k) {
    uint32_t v = (uint32_t)(bx * 7919 + by * 104729 + k * 31 + c * 1299709 + 12345) * 2654435761u;
    v ^= v >> 15, v *= 2246822519u, v ^= v >> 13;
    if (k >= j->keep) return 0;
    if (k == 0) return (int)(v % 120) - 60;
    if (v >> 8 & (k < 6 ? 1 : k < 20 ? 3 : 15)) return 0;
    return (int)(v % (k < 6 ? 41u : k < 20 ? 11u : 3u)) - (k < 6 ? 20 : k < 20 ? 5 : 1);
}
static inline int jpeg_step(int k) { return 3 + k / 2; } /* quantization, in zigzag order */

typedef struct {
    bytes *to;
    uint32_t bits;
    int have;
    unsigned waiting;    /* blocks of an end-of-band run not written yet */
    uint8_t later[4096]; /* correction bits that stand behind that run's code */
    int n_later;
} jpeg_writer;

static inline void jpeg_bits(jpeg_writer *w, unsigned v, int n) {
    for (int k = n - 1; k >= 0; k--) {
        w->bits = w->bits << 1 | (v >> k & 1);
        if (++w->have < 8) continue;
        put8(w->to, w->bits & 255);
        if ((w->bits & 255) == 255) put8(w->to, 0);
        w->have = 0;
    }
}
static inline void jpeg_align(jpeg_writer *w) {
    while (w->have) jpeg_bits(w, 1, 1);
}
/* Symbols 0 to 127 have 8 bits, 128 to 255 have 9; none is all ones. */
static inline void jpeg_symbol(jpeg_writer *w, int s) {
    s < 128 ? jpeg_bits(w, (unsigned)s, 8) : jpeg_bits(w, 256u + (unsigned)s - 128, 9);
}
static inline int jpeg_size(int v) {
    int n = 0;
    for (v = abs(v); v; v >>= 1) n++;
    return n;
}
static inline void jpeg_value(jpeg_writer *w, int v, int n) { jpeg_bits(w, (unsigned)(v < 0 ? v + (1 << n) - 1 : v), n); }

static inline void jpeg_flush_run(jpeg_writer *w) {
    if (w->waiting) {
        int n = jpeg_size((int)w->waiting) - 1;
        jpeg_symbol(w, n << 4), jpeg_bits(w, w->waiting - (1u << n), n);
        w->waiting = 0;
    }
    for (int k = 0; k < w->n_later; k++) jpeg_bits(w, w->later[k], 1);
    w->n_later = 0;
}

typedef struct {
    int first, last, high, low;
} jpeg_band;

static inline int jpeg_cut(int v, int low) { return v < 0 ? -(-v >> low) : v >> low; }

static inline void jpeg_ac_refine(jpeg_writer *w, const int *v, const jpeg_band *s) {
    int end = s->first - 1, zeros = 0, n = 0;
    uint8_t bits[64];
    for (int k = s->first; k <= s->last; k++)
        if (abs(jpeg_cut(v[k], s->low)) == 1) end = k; /* the last that is new */
    for (int k = s->first; k <= s->last; k++) {
        int a = abs(jpeg_cut(v[k], s->low));
        if (k > end) { /* what is behind waits for the run's code */
            if (a > 1) bits[n++] = a & 1;
            continue;
        }
        if (!a) {
            zeros++;
            continue;
        }
        while (zeros > 15) {
            jpeg_flush_run(w), jpeg_symbol(w, 0xf0), zeros -= 16;
            for (int i = 0; i < n; i++) jpeg_bits(w, bits[i], 1);
            n = 0;
        }
        if (a > 1) {
            bits[n++] = a & 1;
            continue;
        }
        jpeg_flush_run(w), jpeg_symbol(w, zeros << 4 | 1), jpeg_bits(w, v[k] > 0, 1), zeros = 0;
        for (int i = 0; i < n; i++) jpeg_bits(w, bits[i], 1);
        n = 0;
    }
    if (end == s->last) return;
    w->waiting++;
    for (int i = 0; i < n; i++) w->later[w->n_later++] = bits[i];
    if (w->waiting == 0x7fff || w->n_later > 3900) jpeg_flush_run(w);
}

static inline void jpeg_block(jpeg_writer *w, const jpeg_kind *j, const jpeg_band *s, int c, int x, int y, int *pred) {
    int v[64], zeros = 0, last = s->last;
    for (int k = 0; k < 64; k++) v[k] = jpeg_coefficient(j, c, x, y, k);
    if (s->first == 0 && s->high) return jpeg_bits(w, (unsigned)(v[0] >> s->low) & 1, 1);
    if (s->first == 0) {
        int dc = v[0] >> s->low, n = jpeg_size(dc - *pred);
        jpeg_symbol(w, n), jpeg_value(w, dc - *pred, n);
        *pred = dc;
        if (j->progressive) return;
    }
    if (s->high) return jpeg_ac_refine(w, v, s);
    for (int k = s->first ? s->first : 1; k <= last; k++) {
        int a = jpeg_cut(v[k], s->low), n = jpeg_size(a);
        if (!a) {
            zeros++;
            continue;
        }
        jpeg_flush_run(w);
        for (; zeros > 15; zeros -= 16) jpeg_symbol(w, 0xf0);
        jpeg_symbol(w, zeros << 4 | n), jpeg_value(w, a, n);
        zeros = 0;
    }
    if (!zeros) return;
    if (j->progressive) {
        if (++w->waiting == 0x7fff) jpeg_flush_run(w);
    } else jpeg_symbol(w, 0);
}

/* A scan of component `only`, or of all when it is -1. */
static inline void jpeg_scan(bytes *b, const jpeg_kind *j, int only, jpeg_band s) {
    int h_max = 1, v_max = 1, pred[4] = {0}, count = 0, marker = 0;
    jpeg_writer w = {.to = b};
    for (int c = 0; c < j->parts; c++) {
        if (j->h[c] > h_max) h_max = j->h[c];
        if (j->v[c] > v_max) v_max = j->v[c];
    }
    if (j->parts == 1) only = 0;
    int n = only < 0 ? j->parts : 1, wide = 8 * h_max, tall = 8 * v_max, across = (j->width + wide - 1) / wide,
        down = (j->height + tall - 1) / tall;
    if (only >= 0) {
        across = ((j->width * j->h[only] + h_max - 1) / h_max + 7) / 8;
        down = ((j->height * j->v[only] + v_max - 1) / v_max + 7) / 8;
    }
    put16(b, 0xffda, true), put16(b, 6 + 2 * (unsigned)n, true), put8(b, (unsigned)n);
    for (int k = 0; k < n; k++) put8(b, (unsigned)(only < 0 ? k : only) + 1), put8(b, 0x00);
    put8(b, (unsigned)s.first), put8(b, (unsigned)s.last), put8(b, (unsigned)(s.high << 4 | s.low));
    for (int y = 0; y < down; y++)
        for (int x = 0; x < across; x++) {
            if (j->restart && count && count % j->restart == 0) {
                jpeg_flush_run(&w), jpeg_align(&w);
                put8(b, 0xff), put8(b, 0xd0 + (unsigned)marker++ % 8);
                memset(pred, 0, sizeof pred);
            }
            count++;
            if (only >= 0) {
                jpeg_block(&w, j, &s, only, x, y, &pred[only]);
                continue;
            }
            for (int c = 0; c < n; c++)
                for (int k = 0; k < j->h[c] * j->v[c]; k++)
                    jpeg_block(&w, j, &s, c, x * j->h[c] + k % j->h[c], y * j->v[c] + k / j->h[c], &pred[c]);
        }
    jpeg_flush_run(&w), jpeg_align(&w);
}

static inline bytes make_jpeg(const jpeg_kind *j) {
    bytes b = {0};
    put16(&b, 0xffd8, true);
    if (j->adobe < 0) put16(&b, 0xffe0, true), put16(&b, 16, true), put_all(&b, "JFIF\0\1\1\0\0\1\0\1\0\0", 14);
    else put16(&b, 0xffee, true), put16(&b, 14, true), put_all(&b, "Adobe\0\x64\0\0\0\0", 11), put8(&b, (unsigned)j->adobe);
    put16(&b, 0xffdb, true), put16(&b, 67, true), put8(&b, 0);
    for (int k = 0; k < 64; k++) put8(&b, (unsigned)jpeg_step(k));
    put16(&b, j->progressive ? 0xffc2 : 0xffc0, true), put16(&b, 8 + 3 * (unsigned)j->parts, true), put8(&b, 8);
    put16(&b, (unsigned)j->height, true), put16(&b, (unsigned)j->width, true), put8(&b, (unsigned)j->parts);
    for (int c = 0; c < j->parts; c++) put8(&b, (unsigned)c + 1), put8(&b, (unsigned)(j->h[c] << 4 | j->v[c])), put8(&b, 0);
    for (int kind = 0; kind < 2; kind++) { /* DC needs 12 symbols only, and may have no others */
        put16(&b, 0xffc4, true), put16(&b, kind ? 19 + 256 : 19 + 12, true), put8(&b, (unsigned)kind << 4);
        for (int k = 1; k <= 16; k++) put8(&b, kind ? (k == 8 || k == 9 ? 128 : 0) : (k == 8 ? 12 : 0));
        for (unsigned k = 0; k < (kind ? 256u : 12u); k++) put8(&b, k);
    }
    if (j->restart) put16(&b, 0xffdd, true), put16(&b, 4, true), put16(&b, (unsigned)j->restart, true);
    if (!j->progressive) {
        for (int c = 0; c < (j->apart ? j->parts : 1); c++) jpeg_scan(&b, j, j->apart ? c : -1, (jpeg_band){0, 63, 0, 0});
    } else {
        jpeg_scan(&b, j, -1, (jpeg_band){0, 0, 0, 1});
        for (int c = 0; c < j->parts; c++) {
            jpeg_scan(&b, j, c, (jpeg_band){1, 5, 0, 2}), jpeg_scan(&b, j, c, (jpeg_band){6, 63, 0, 2});
            jpeg_scan(&b, j, c, (jpeg_band){1, 63, 2, 1});
        }
        jpeg_scan(&b, j, -1, (jpeg_band){0, 0, 1, 0});
        for (int c = j->parts - 1; c >= 0; c--) jpeg_scan(&b, j, c, (jpeg_band){1, 63, 1, 0});
    }
    put16(&b, 0xffd9, true);
    return b;
}
#endif
