/* SPDX-License-Identifier: Apache-2.0
   jpeg_out: coefficients → samples → pixels, with the arithmetic that most decoders share, so that a picture has the same bits here as there:
   the accurate integer inverse DCT (Loeffler, Ligtenberg and Moschytz 1989, 13-bit constants), chroma enlarged by a triangle filter where it
   has half the size, and the 16-bit fixed-point colour conversion of JFIF. */
#include <string.h>

#include "image/jpeg.h"

/* ---- the inverse DCT ---- */

enum { CONST_BITS = 13, PASS_BITS = 2 };

/* One dimension: eight numbers in, eight out with CONST_BITS more. Unsigned, so that hostile numbers wrap around and break no rule. */
static inline void inverse8(const uint32_t in[8], uint32_t out[8]) {
    uint32_t z1 = (in[2] + in[6]) * 4433u;                      /* 0.541196100 */
    uint32_t t2 = z1 - in[6] * 15137u, t3 = z1 + in[2] * 6270u; /* 1.847759065, 0.765366865 */
    uint32_t t0 = (in[0] + in[4]) << CONST_BITS, t1 = (in[0] - in[4]) << CONST_BITS;
    uint32_t e0 = t0 + t3, e3 = t0 - t3, e1 = t1 + t2, e2 = t1 - t2;
    uint32_t a = in[7], b = in[5], c = in[3], d = in[1];
    uint32_t z5 = (a + c + b + d) * 9633u;                          /* 1.175875602 */
    uint32_t y1 = -((a + d) * 7373u), y2 = -((b + c) * 20995u);     /* 0.899976223, 2.562915447 */
    uint32_t y3 = z5 - (a + c) * 16069u, y4 = z5 - (b + d) * 3196u; /* 1.961570560, 0.390180644 */
    uint32_t o0 = a * 2446u + y1 + y3, o1 = b * 16819u + y2 + y4;   /* 0.298631336, 2.053119869 */
    uint32_t o2 = c * 25172u + y2 + y3, o3 = d * 12299u + y1 + y4;  /* 3.072711026, 1.501321110 */
    out[0] = e0 + o3, out[7] = e0 - o3;
    out[1] = e1 + o2, out[6] = e1 - o2;
    out[2] = e2 + o1, out[5] = e2 - o1;
    out[3] = e3 + o0, out[4] = e3 - o0;
}

static inline int32_t descale(uint32_t v, int bits) { return (int32_t)(v + (1u << (bits - 1))) >> bits; }

void hone_jpeg_inverse(const int16_t *coefficient, const uint16_t *step, uint8_t *to, size_t stride) {
    uint32_t work[64], in[8], out[8];
    for (int x = 0; x < 8; x++) { /* columns */
        uint32_t any = 0;
        for (int y = 0; y < 8; y++) {
            in[y] = (uint32_t)coefficient[8 * y + x] * step[8 * y + x];
            if (y) any |= in[y];
        }
        if (!any) { /* often; and equal to the general case */
            for (int y = 0; y < 8; y++) work[8 * y + x] = in[0] << PASS_BITS;
            continue;
        }
        inverse8(in, out);
        for (int y = 0; y < 8; y++) work[8 * y + x] = (uint32_t)descale(out[y], CONST_BITS - PASS_BITS);
    }
    for (int y = 0; y < 8; y++, to += stride) { /* rows; the 8 of the scale, and samples around 128 */
        inverse8(work + 8 * y, out);
        for (int x = 0; x < 8; x++) to[x] = hone_clip8(descale(out[x], CONST_BITS + PASS_BITS + 3) + 128);
    }
}

/* ---- samples of a row, at the picture's size ---- */

static const uint8_t *row_at(const hone_jpeg_part *c, int y) {
    int last = c->height - 1;
    return c->sample + (size_t)(y < 0 ? 0 : y > last ? last : y) * (size_t)c->across * 8;
}

typedef void enlarge(const hone_jpeg *, const hone_jpeg_part *, int y, uint8_t *to); /* `to` has room for two more than the width */

static void as_is(const hone_jpeg *j, const hone_jpeg_part *c, int y, uint8_t *to) { memcpy(to, row_at(c, y), (size_t)j->width); }

static void nearest(const hone_jpeg *j, const hone_jpeg_part *c, int y, uint8_t *to) {
    const uint8_t *from = row_at(c, y * c->v / j->v_max);
    for (int x = 0; x < j->width; x++) to[x] = from[x * c->h / j->h_max];
}

/* New samples lie a quarter away from the nearer old one; the last bit is rounded up and down in turn. */
static void wide(const hone_jpeg *j, const hone_jpeg_part *c, int y, uint8_t *to) {
    const uint8_t *f = row_at(c, y);
    int n = c->width;
    to[0] = f[0], to[1] = (uint8_t)((f[0] * 3 + f[1] + 2) >> 2);
    for (int x = 1; x < n - 1; x++) {
        to[2 * x] = (uint8_t)((f[x] * 3 + f[x - 1] + 1) >> 2);
        to[2 * x + 1] = (uint8_t)((f[x] * 3 + f[x + 1] + 2) >> 2);
    }
    to[2 * n - 2] = (uint8_t)((f[n - 1] * 3 + f[n - 2] + 1) >> 2), to[2 * n - 1] = f[n - 1];
}

static void tall(const hone_jpeg *j, const hone_jpeg_part *c, int y, uint8_t *to) {
    const uint8_t *near = row_at(c, y / 2), *far = row_at(c, y & 1 ? y / 2 + 1 : y / 2 - 1);
    int round = y & 1 ? 2 : 1;
    for (int x = 0; x < j->width; x++) to[x] = (uint8_t)((near[x] * 3 + far[x] + round) >> 2);
}

static void both(const hone_jpeg *j, const hone_jpeg_part *c, int y, uint8_t *to) {
    const uint8_t *near = row_at(c, y / 2), *far = row_at(c, y & 1 ? y / 2 + 1 : y / 2 - 1);
    int n = c->width, last = near[0] * 3 + far[0], this = last, next;
    for (int x = 0; x < n; x++, last = this, this = next) {
        next = x + 1 < n ? near[x + 1] * 3 + far[x + 1] : this;
        to[2 * x] = (uint8_t)((this * 3 + last + 8) >> 4);
        to[2 * x + 1] = (uint8_t)((this * 3 + next + 7) >> 4);
    }
}

static enlarge *choose(const hone_jpeg *j, const hone_jpeg_part *c) {
    bool w = c->h * 2 == j->h_max, t = c->v * 2 == j->v_max, wide_same = c->h == j->h_max, tall_same = c->v == j->v_max;
    if (wide_same && tall_same) return as_is;
    if (wide_same && t) return tall;
    if (c->width > 2 && w && tall_same) return wide;
    if (c->width > 2 && w && t) return both;
    return nearest;
}

/* ---- colours ---- */

typedef struct {
    int32_t cr_r[256], cb_b[256], cr_g[256], cb_g[256];
} tables;

static void make_tables(tables *t) {
    for (int k = 0; k < 256; k++) {
        int v = k - 128;
        t->cr_r[k] = (91881 * v + 32768) >> 16;  /* 1.40200 */
        t->cb_b[k] = (116130 * v + 32768) >> 16; /* 1.77200 */
        t->cr_g[k] = -46802 * v;                 /* 0.71414 */
        t->cb_g[k] = -22554 * v + 32768;         /* 0.34414 */
    }
}

typedef enum { GRAY, RGB, YCC, CMYK, YCCK } space;

static space space_of(const hone_jpeg *j) {
    const hone_jpeg_part *c = j->part;
    if (j->n_part == 1) return GRAY;
    if (j->n_part == 4) return j->adobe && j->transform == 2 ? YCCK : CMYK;
    if (j->jfif) return YCC;
    if (j->adobe) return j->transform ? YCC : RGB;
    return c[0].id == 'R' && c[1].id == 'G' && c[2].id == 'B' ? RGB : YCC;
}

/* How much of `ink` is left under a black of `light` (255: none). */
static uint8_t under(int ink, int light) {
    int t = ink * light + 128;
    return hone_clip8(light - ((t + (t >> 8)) >> 8));
}

static void put_row(space s, const tables *t, const uint8_t *const *row, int width, uint8_t *to) {
    for (int x = 0; x < width; x++, to += 3) {
        int a = row[0][x], b = row[1][x], c = row[2][x];
        if (s == YCC || s == YCCK) {
            int y = a, cb = b, cr = c;
            a = hone_clip8(y + t->cr_r[cr]), b = hone_clip8(y + ((t->cb_g[cb] + t->cr_g[cr]) >> 16)), c = hone_clip8(y + t->cb_b[cb]);
        }
        if (s == YCCK) a = 255 - a, b = 255 - b, c = 255 - c;
        if (s == CMYK || s == YCCK) { /* files store inks turned around: 255 is none */
            int light = row[3][x];
            a = under(255 - a, light), b = under(255 - b, light), c = under(255 - c, light);
        }
        to[0] = (uint8_t)a, to[1] = (uint8_t)b, to[2] = (uint8_t)c;
    }
}

hone_status hone_jpeg_pixels(const hone_jpeg *j, hone_pixels *out) {
    space s = space_of(j);
    tables t;
    enlarge *way[4] = {0};
    const uint8_t *row[4] = {0};
    size_t room = (size_t)j->width + 2;
    HONE_TRY(hone_pixels_create(j->width, j->height, s == GRAY ? 1 : 3, out));
    uint8_t *rows = hone_alloc_raw(room * (size_t)j->n_part);
    if (!rows) return hone_fail(HONE_NO_MEMORY, "no memory for a row of %d pixels", j->width);
    for (int k = 0; k < 4; k++) {
        bool there = k < j->n_part;
        if (there) way[k] = choose(j, &j->part[k]);
        row[k] = rows + (there ? room * (size_t)k : 0);
    }
    make_tables(&t);
    for (int y = 0; y < j->height; y++) {
        uint8_t *to = out->data + (size_t)y * (size_t)j->width * (size_t)out->channels;
        for (int k = 0; k < j->n_part; k++) way[k](j, &j->part[k], y, s == GRAY ? to : rows + room * (size_t)k);
        if (s != GRAY) put_row(s, &t, row, j->width, to);
    }
    hone_free(rows);
    return HONE_OK;
}
