/* SPDX-License-Identifier: Apache-2.0
   vp8: a key frame of VP8 (RFC 6386): header, modes and coefficients, coded as booleans of known odds; then samples → pixels, with the
   arithmetic of libwebp, which is where most pictures were seen before. */
#include "image/vp8.h"

#include <string.h>

#include "image/vp8_tables.h"

/* ---- booleans ---- */

typedef struct {
    const uint8_t *at, *end;
    uint64_t value; /* the high 8 of its have + 8 bits are compared */
    int have, past; /* past: bits made up behind the end */
    uint32_t range;
} coder;

static void fill(coder *c) {
    while (c->have <= 40) {
        c->value <<= 8;
        if (c->at < c->end) c->value |= *c->at++;
        else c->past += 8;
        c->have += 8;
    }
}
static coder start(const uint8_t *at, size_t n) {
    coder c = {.at = at, .end = at + n, .have = -8, .range = 255};
    fill(&c);
    return c;
}
static bool overrun(const coder *c) { return c->past > c->have + 8; } /* all that is compared was made up */

static inline int flag(coder *c, int odds) { /* odds of 256 that it is 0 */
    uint32_t split = 1 + ((c->range - 1) * (uint32_t)odds >> 8);
    uint64_t limit = (uint64_t)split << c->have;
    int bit = c->value >= limit;
    if (bit) c->value -= limit, c->range -= split;
    else c->range = split;
    int shift = __builtin_clz(c->range) - 24;
    c->range <<= shift;
    c->have -= shift;
    if (c->have < 0) fill(c);
    return bit;
}
static int number(coder *c, int bits) {
    int v = 0;
    while (bits--) v = v << 1 | flag(c, 128);
    return v;
}
static int with_sign(coder *c, int bits) {
    int v = number(c, bits);
    return flag(c, 128) ? -v : v;
}
static int perhaps(coder *c, int bits) { return flag(c, 128) ? with_sign(c, bits) : 0; } /* 0 where it is not said */

/* ---- the picture ---- */

typedef struct {
    int step[3][2];                /* luma, its DCs, chroma; DC, AC */
    hone_vp8_strength strength[2]; /* whole, small */
} segment;

typedef struct {
    int width, height, across, down;
    coder head, part[8];
    int parts;
    bool segments, map, absolute, simple, skips;
    int segment_odds[3], segment_step[4], segment_level[4], level, sharpness, delta_whole, delta_small, skip_odds;
    uint8_t odds[4][8][3][11];
    segment segment[4];
    hone_vp8_macro *macro;
    uint8_t *above_mode; /* 4 a macroblock */
    uint8_t (*above)[9]; /* whether blocks above had coefficients: 4 luma, 2 + 2 chroma, DCs */
    hone_vp8_plane plane[3];
} vp8;

static hone_status damaged(const char *what) { return hone_fail(HONE_BAD_INPUT, "the file is damaged: %s", what); }
static hone_status cut(void) { return hone_fail(HONE_BAD_INPUT, "the file is cut short"); }
static int clip(int v, int most) { return v < 0 ? 0 : v > most ? most : v; }

static void read_segments(vp8 *v) {
    coder *c = &v->head;
    v->segments = flag(c, 128);
    if (!v->segments) return;
    v->map = flag(c, 128);
    if (flag(c, 128)) {
        v->absolute = flag(c, 128);
        for (int k = 0; k < 4; k++) v->segment_step[k] = perhaps(c, 7);
        for (int k = 0; k < 4; k++) v->segment_level[k] = perhaps(c, 6);
    }
    for (int k = 0; k < 3; k++) v->segment_odds[k] = v->map && flag(c, 128) ? number(c, 8) : 255;
}

static void read_filter(vp8 *v) {
    coder *c = &v->head;
    v->simple = flag(c, 128), v->level = number(c, 6), v->sharpness = number(c, 3);
    bool deltas = flag(c, 128);
    if (!deltas || !flag(c, 128)) return;
    for (int k = 0; k < 8;
         k++) { /* four kinds of reference, of which a picture has the first; four of modes, of which small blocks are the first */
        int delta = perhaps(c, 6);
        if (k == 0) v->delta_whole = delta;
        if (k == 4) v->delta_small = delta;
    }
}

static hone_status read_parts(vp8 *v, const uint8_t *at, const uint8_t *end) {
    v->parts = 1 << number(&v->head, 2);
    size_t sizes = 3 * (size_t)(v->parts - 1);
    if ((size_t)(end - at) < sizes) return cut();
    const uint8_t *from = at + sizes;
    for (int k = 0; k < v->parts; k++) {
        size_t left = (size_t)(end - from), n = left;
        if (k < v->parts - 1) n = hone_le16(at + 3 * k) | (size_t)at[3 * k + 2] << 16;
        if (n > left) n = left;
        v->part[k] = start(from, n);
        from += n;
    }
    return HONE_OK;
}

static void make_segment(vp8 *v, int k, const int step[6]) {
    segment *s = &v->segment[k];
    int base = step[0], level = v->level;
    if (v->segments) {
        base = v->absolute ? v->segment_step[k] : base + v->segment_step[k];
        level = v->absolute ? v->segment_level[k] : level + v->segment_level[k];
    }
    s->step[0][0] = dc_steps[clip(base + step[1], 127)], s->step[0][1] = ac_steps[clip(base, 127)];
    s->step[1][0] = dc_steps[clip(base + step[2], 127)] * 2, s->step[1][1] = ac_steps[clip(base + step[3], 127)] * 155 / 100;
    if (s->step[1][1] < 8) s->step[1][1] = 8;
    s->step[2][0] = dc_steps[clip(base + step[4], 117)], s->step[2][1] = ac_steps[clip(base + step[5], 127)];
    for (int small = 0; small < 2; small++) {
        int l = clip(level + v->delta_whole + (small ? v->delta_small : 0), 63), inside = l;
        if (v->sharpness) inside >>= v->sharpness > 4 ? 2 : 1;
        if (v->sharpness && inside > 9 - v->sharpness) inside = 9 - v->sharpness;
        if (inside < 1) inside = 1;
        s->strength[small] = (hone_vp8_strength){v->level ? l : 0, inside, 2 * l + inside};
    }
}

static hone_status read_header(vp8 *v, const uint8_t *data, size_t bytes) {
    int step[6];
    if (bytes < 10) return cut();
    uint32_t tag = hone_le16(data) | (uint32_t)data[2] << 16, first = tag >> 5;
    if (tag & 1 || memcmp(data + 3, "\x9d\x01\x2a", 3)) return damaged("it does not begin with a key frame");
    v->width = (int)(hone_le16(data + 6) & 0x3fff), v->height = (int)(hone_le16(data + 8) & 0x3fff);
    HONE_TRY(hone_pixels_allowed(v->width, v->height));
    if (first > bytes - 10) return cut();
    v->across = (v->width + 15) / 16, v->down = (v->height + 15) / 16;
    v->head = start(data + 10, first);
    number(&v->head, 2); /* colour space and clamping: there is one of each */
    read_segments(v);
    read_filter(v);
    HONE_TRY(read_parts(v, data + 10 + first, data + bytes));
    step[0] = number(&v->head, 7);
    for (int k = 1; k < 6; k++) step[k] = perhaps(&v->head, 4);
    for (int k = 0; k < 4; k++) make_segment(v, k, step);
    number(&v->head, 1);
    uint8_t *odds = &v->odds[0][0][0][0];
    for (size_t k = 0; k < sizeof change; k++) odds[k] = (uint8_t)(flag(&v->head, change[k]) ? number(&v->head, 8) : usual[k]);
    v->skips = flag(&v->head, 128);
    if (v->skips) v->skip_odds = number(&v->head, 8);
    return overrun(&v->head) ? cut() : HONE_OK;
}

/* ---- modes ---- */

static int small_mode(coder *c, const uint8_t *odds) {
    static const int8_t tree[18] = {
        -HONE_VP8_DC, 1, -HONE_VP8_TM, 2, -HONE_VP8_V,  3,           4, 6, -HONE_VP8_H, 5, -HONE_VP8_RD, -HONE_VP8_VR,
        -HONE_VP8_LD, 7, -HONE_VP8_VL, 8, -HONE_VP8_HD, -HONE_VP8_HU};
    int k = tree[flag(c, odds[0])];
    while (k > 0) k = tree[2 * k + flag(c, odds[k])];
    return -k;
}

static void read_modes(vp8 *v, hone_vp8_macro *m, uint8_t *above, uint8_t *left) {
    coder *c = &v->head;
    if (v->map) m->segment = (uint8_t)(flag(c, v->segment_odds[0]) ? 2 + flag(c, v->segment_odds[2]) : flag(c, v->segment_odds[1]));
    m->skip = v->skips && flag(c, v->skip_odds);
    m->small = !flag(c, 145);
    if (!m->small) {
        m->luma = (uint8_t)(flag(c, 156) ? (flag(c, 128) ? HONE_VP8_TM : HONE_VP8_H) : (flag(c, 163) ? HONE_VP8_V : HONE_VP8_DC));
        memset(above, m->luma, 4);
        memset(left, m->luma, 4);
    }
    for (int k = 0; k < 16 && m->small; k++)
        above[k % 4] = left[k / 4] = m->mode[k] = (uint8_t)small_mode(c, mode_odds + (above[k % 4] * 10 + left[k / 4]) * 9);
    m->chroma = (uint8_t)(!flag(c, 142) ? HONE_VP8_DC : !flag(c, 114) ? HONE_VP8_V : flag(c, 183) ? HONE_VP8_TM : HONE_VP8_H);
}

/* ---- coefficients ---- */

static int large(coder *c, const uint8_t *p) {
    static const uint8_t more[4][12] = {
        {173, 148, 140}, {176, 155, 140, 135}, {180, 157, 141, 134, 130}, {254, 254, 243, 230, 196, 177, 153, 140, 133, 130, 129}};
    int v = 0;
    if (!flag(c, p[3])) return flag(c, p[4]) ? 3 + flag(c, p[5]) : 2;
    if (!flag(c, p[6])) {
        if (!flag(c, p[7])) return 5 + flag(c, 159);
        v = 7 + 2 * flag(c, 165);
        return v + flag(c, 145);
    }
    int high = flag(c, p[8]), kind = 2 * high + flag(c, p[9 + high]);
    for (const uint8_t *q = more[kind]; *q; q++) v = 2 * v + flag(c, *q);
    return v + 3 + (8 << kind);
}

/* One block from coefficient `first` on. The place behind its last one. */
static int read_block(coder *c, const uint8_t odds[8][3][11], int context, const int step[2], int first, int16_t *out) {
    static const uint8_t zigzag[16] = {0, 1, 4, 8, 5, 2, 3, 6, 9, 12, 13, 10, 7, 11, 14, 15},
                         band[17] = {0, 1, 2, 3, 6, 4, 5, 6, 6, 6, 6, 6, 6, 6, 6, 7, 0};
    const uint8_t *p = odds[band[first]][context];
    for (int k = first; k < 16; k++) {
        if (!flag(c, p[0])) return k;
        while (!flag(c, p[1])) {
            if (++k == 16) return 16;
            p = odds[band[k]][0];
        }
        int v = 1;
        if (flag(c, p[2])) v = large(c, p), p = odds[band[k + 1]][2];
        else p = odds[band[k + 1]][1];
        out[zigzag[k]] = (int16_t)((flag(c, 128) ? -v : v) * step[k > 0]);
    }
    return 16;
}

/* All blocks of a macroblock; a bit for each that has something. */
static uint32_t read_residue(vp8 *v, coder *c, const hone_vp8_macro *m, uint8_t *above, uint8_t *left, int16_t *out) {
    const segment *s = &v->segment[m->segment];
    uint32_t any = 0;
    int first = 0, kind = 3;
    if (!m->small) {
        int16_t dc[16] = {0};
        above[8] = left[8] = read_block(c, v->odds[1], above[8] + left[8], s->step[1], 0, dc) > 0;
        hone_vp8_spread(dc, out);
        first = 1, kind = 0;
    }
    for (int k = 0; k < 24; k++) {
        int plane = k < 16   ? 0
                    : k < 20 ? 1
                             : 2,
            i = k < 16 ? k % 4 : 2 * plane + 2 + k % 2, j = k < 16 ? k / 4 : 2 * plane + 2 + (k & 3) / 2;
        int from = plane ? 0 : first,
            n = read_block(c, v->odds[plane ? 2 : kind], above[i] + left[j], s->step[plane ? 2 : 0], from, out + 16 * k);
        above[i] = left[j] = n > from;
        if (n > 1 || out[16 * k]) any |= 1u << k;
    }
    return any;
}

static hone_status read_rows(vp8 *v) {
    for (int y = 0; y < v->down; y++) {
        uint8_t left_mode[4] = {0}, left[9] = {0};
        coder *c = &v->part[y & (v->parts - 1)];
        for (int x = 0; x < v->across; x++) {
            hone_vp8_macro *m = &v->macro[(size_t)y * (size_t)v->across + (size_t)x];
            int16_t coefficient[24 * 16] = {0};
            uint32_t any = 0;
            read_modes(v, m, v->above_mode + 4 * (size_t)x, left_mode);
            if (!m->skip) {
                any = read_residue(v, c, m, v->above[x], left, coefficient);
            } else { /* the DCs of small blocks are no block of their own: what was said of them stays */
                memset(v->above[x], 0, m->small ? 8 : 9);
                memset(left, 0, m->small ? 8 : 9);
            }
            m->filter_inside = m->small || any;
            hone_vp8_build(v->plane, m, x, y, v->across, coefficient, any);
            if (overrun(c) || overrun(&v->head)) return cut();
        }
    }
    return HONE_OK;
}

/* ---- pixels ---- */

/* Chroma of a row at the picture's width: 9, 3, 3 and 1 sixteenths of the four nearest. */
static void enlarge(const uint8_t *near, const uint8_t *far, int width, uint8_t *to) {
    to[0] = (uint8_t)((3 * near[0] + far[0] + 2) >> 2);
    int pairs = (width - 1) / 2;
    for (int x = 1; x <= pairs; x++) {
        int a = near[x - 1], b = near[x], c = far[x - 1], d = far[x], sum = a + b + c + d + 8;
        to[2 * x - 1] = (uint8_t)((((sum + 2 * (b + c)) >> 3) + a) >> 1);
        to[2 * x] = (uint8_t)((((sum + 2 * (a + d)) >> 3) + b) >> 1);
    }
    if (!(width & 1)) to[width - 1] = (uint8_t)((3 * near[pairs] + far[pairs] + 2) >> 2);
}

static uint8_t clip6(int v) { return hone_clip8(v >> 6); }

static hone_status put_pixels(const vp8 *v, hone_pixels *out) {
    HONE_TRY(hone_pixels_create(v->width, v->height, 3, out));
    uint8_t *chroma = hone_alloc_raw(2 * (size_t)v->width), *to = out->data;
    if (!chroma) return hone_fail(HONE_NO_MEMORY, "no memory for a row of %d pixels", v->width);
    for (int y = 0; y < v->height; y++) {
        const uint8_t *luma = v->plane[0].at + y * v->plane[0].stride;
        int near = y / 2, far = y & 1 ? near + 1 : near - 1, last = (v->height + 1) / 2 - 1;
        far = far < 0 ? 0 : far > last ? last : far;
        for (int p = 0; p < 2; p++) {
            const hone_vp8_plane *q = &v->plane[1 + p];
            enlarge(q->at + near * q->stride, q->at + far * q->stride, v->width, chroma + (size_t)p * (size_t)v->width);
        }
        for (int x = 0; x < v->width; x++, to += 3) {
            int l = luma[x] * 19077 >> 8, cb = chroma[x], cr = chroma[v->width + x];
            to[0] = clip6(l + (cr * 26149 >> 8) - 14234);
            to[1] = clip6(l - (cb * 6419 >> 8) - (cr * 13320 >> 8) + 8708);
            to[2] = clip6(l + (cb * 33050 >> 8) - 17685);
        }
    }
    hone_free(chroma);
    return HONE_OK;
}

static hone_status make_room(vp8 *v) {
    bool good = true;
    v->macro = hone_alloc(sizeof *v->macro * (size_t)v->across * (size_t)v->down);
    v->above_mode = hone_alloc(4 * (size_t)v->across);
    v->above = hone_alloc(sizeof *v->above * (size_t)v->across);
    for (int p = 0; p < 3; p++) {
        hone_vp8_plane *q = &v->plane[p];
        ptrdiff_t side = p ? 8 : 16, rows = side * v->down;
        q->stride = side * v->across + 16;
        q->data = hone_alloc_raw((size_t)(q->stride * (rows + 1)));
        good &= q->data != NULL;
        if (!q->data) continue;
        q->at = q->data + q->stride + 16;
        memset(q->data, 127, (size_t)q->stride);
        for (ptrdiff_t y = 0; y < rows; y++) q->at[y * q->stride - 1] = 129;
    }
    return good && v->macro && v->above_mode && v->above
               ? HONE_OK
               : hone_fail(HONE_NO_MEMORY, "no memory for a picture of %d x %d", v->width, v->height);
}

hone_status hone_vp8_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    vp8 *v = hone_alloc(sizeof *v);
    if (!v) return hone_fail(HONE_NO_MEMORY, "no memory for a WebP decoder");
    hone_status s = read_header(v, data, bytes);
    if (!s) s = make_room(v);
    if (!s) s = read_rows(v);
    for (int k = 0; !s && v->level && k < v->across * v->down; k++) {
        const hone_vp8_macro *m = &v->macro[k];
        hone_vp8_smooth(v->plane, k % v->across, k / v->across, v->simple, &v->segment[m->segment].strength[m->small], m->filter_inside);
    }
    if (!s) s = put_pixels(v, out);
    for (int p = 0; p < 3; p++) hone_free(v->plane[p].data);
    hone_free(v->macro), hone_free(v->above_mode), hone_free(v->above), hone_free(v);
    return s;
}
