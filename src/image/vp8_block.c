/* SPDX-License-Identifier: Apache-2.0
   vp8_block: samples of a VP8 picture: prediction, the two transforms, the loop filter. All integers, and all as RFC 6386 has them. */
#include <stdlib.h>
#include <string.h>

#include "image/vp8.h"

/* ---- transforms ---- */

void hone_vp8_spread(const int16_t in[16], int16_t *coefficient) {
    int t[16];
    for (int i = 0; i < 4; i++) {
        int a = in[i] + in[12 + i], b = in[4 + i] + in[8 + i], c = in[4 + i] - in[8 + i], d = in[i] - in[12 + i];
        t[i] = a + b, t[8 + i] = a - b, t[4 + i] = d + c, t[12 + i] = d - c;
    }
    for (int i = 0; i < 4; i++, coefficient += 64) {
        const int *r = t + 4 * i;
        int a = r[0] + 3 + r[3], b = r[1] + r[2], c = r[1] - r[2], d = r[0] + 3 - r[3];
        coefficient[0] = (int16_t)((a + b) >> 3), coefficient[16] = (int16_t)((d + c) >> 3);
        coefficient[32] = (int16_t)((a - b) >> 3), coefficient[48] = (int16_t)((d - c) >> 3);
    }
}

static inline int more(int v) { return v + (int)((int64_t)v * 20091 >> 16); } /* times √2 cos(π/8) */
static inline int less(int v) { return (int)((int64_t)v * 35468 >> 16); }     /* times √2 sin(π/8) */

static void add_block(const int16_t *in, uint8_t *to, ptrdiff_t stride) {
    int t[16];
    for (int i = 0; i < 4; i++) {
        int a = in[i] + in[8 + i], b = in[i] - in[8 + i], c = less(in[4 + i]) - more(in[12 + i]), d = more(in[4 + i]) + less(in[12 + i]);
        t[i] = a + d, t[4 + i] = b + c, t[8 + i] = b - c, t[12 + i] = a - d;
    }
    for (int i = 0; i < 4; i++, to += stride) {
        const int *r = t + 4 * i;
        int a = r[0] + 4 + r[2], b = r[0] + 4 - r[2], c = less(r[1]) - more(r[3]), d = more(r[1]) + less(r[3]);
        to[0] = hone_clip8(to[0] + ((a + d) >> 3)), to[1] = hone_clip8(to[1] + ((b + c) >> 3));
        to[2] = hone_clip8(to[2] + ((b - c) >> 3)), to[3] = hone_clip8(to[3] + ((a - d) >> 3));
    }
}

/* ---- prediction ---- */

static void flat(uint8_t *to, ptrdiff_t stride, int size, int v) {
    for (int y = 0; y < size; y++) memset(to + y * stride, v, (size_t)size);
}

/* A whole block of 16 or 8: DC without what lies outside; the rest takes the border's values as they are. */
static void predict(uint8_t *to, ptrdiff_t stride, int size, int mode, bool has_above, bool has_left) {
    const uint8_t *above = to - stride;
    int sum = 0, n = 0;
    switch (mode) {
    case HONE_VP8_DC:
        for (int k = 0; k < size && has_above; k++, n++) sum += above[k];
        for (int k = 0; k < size && has_left; k++, n++) sum += to[k * stride - 1];
        flat(to, stride, size, n ? (sum + n / 2) / n : 128);
        break;
    case HONE_VP8_V:
        for (int y = 0; y < size; y++) memcpy(to + y * stride, above, (size_t)size);
        break;
    case HONE_VP8_H:
        for (int y = 0; y < size; y++) memset(to + y * stride, to[y * stride - 1], (size_t)size);
        break;
    default: { /* TM */
        int corner = above[-1];
        for (int y = 0; y < size; y++) {
            uint8_t *row = to + y * stride;
            int left = row[-1];
            for (int x = 0; x < size; x++) row[x] = hone_clip8(left + above[x] - corner);
        }
    }
    }
}

/* A small block. e: its edge from the lower left over the corner (e[4]) to the upper right (e[12]). Diagonal modes walk along it, each sample the
   mean of two or three neighbours; `way` says for each mode and sample which: place in the edge, and 2 or 3 that are averaged. */
static inline int mean3(const uint8_t *e, int k) { return (e[k - 1] + 2 * e[k] + e[k + 1] + 2) >> 2; }
static inline int mean2(const uint8_t *e, int k) { return (e[k] + e[k + 1] + 1) >> 1; }

static void predict_small(uint8_t *to, ptrdiff_t stride, int mode, const uint8_t right[4]) {
    uint8_t e[15]; /* L K J I, corner, A … H, and both ends once more */
    const uint8_t *above = to - stride;
    uint8_t *edge = e + 1;
    for (int k = 0; k < 4; k++) edge[k] = to[(3 - k) * stride - 1];
    memcpy(edge + 4, above - 1, 5);
    memcpy(edge + 9, right, 4);
    e[0] = edge[0], edge[13] = edge[12];
    for (int y = 0; y < 4; y++)
        for (int x = 0; x < 4; x++) {
            int v = 0, d;
            switch (mode) {
            case HONE_VP8_DC:
                v = 4;
                for (int k = 0; k < 4; k++) v += edge[k] + edge[5 + k];
                v >>= 3;
                break;
            case HONE_VP8_TM: v = hone_clip8(edge[3 - y] + edge[5 + x] - edge[4]); break;
            case HONE_VP8_V: v = mean3(edge, 5 + x); break;
            case HONE_VP8_H: v = mean3(edge, 3 - y); break;
            case HONE_VP8_RD: v = mean3(edge, 4 + x - y); break;
            case HONE_VP8_LD: v = mean3(edge, 6 + x + y); break;
            case HONE_VP8_VR: /* along 2x - y */
                d = 2 * x - y;
                v = d < 0 ? mean3(edge, 4 + d + 1) : d & 1 ? mean3(edge, 4 + d / 2 + 1) : mean2(edge, 4 + d / 2);
                break;
            case HONE_VP8_VL:
                if (x == 3 && y >= 2) v = mean3(edge, y == 2 ? 10 : 11);
                else v = y & 1 ? mean3(edge, 6 + x + y / 2) : mean2(edge, 5 + x + y / 2);
                break;
            case HONE_VP8_HD: /* along 2y - x */
                d = 2 * y - x;
                v = d < 0 ? mean3(edge, 4 - d - 1) : d & 1 ? mean3(edge, 3 - d / 2) : mean2(edge, 3 - d / 2);
                break;
            default: /* HU */ d = 2 * y + x; v = d > 5 ? edge[0] : d & 1 ? mean3(edge, 2 - d / 2) : mean2(edge, 2 - d / 2);
            }
            to[y * stride + x] = (uint8_t)v;
        }
}

void hone_vp8_build(hone_vp8_plane plane[3], const hone_vp8_macro *m, int x, int y, int across, const int16_t *coefficient, uint32_t any) {
    ptrdiff_t stride = plane[0].stride;
    uint8_t *luma = plane[0].at + y * 16 * stride + x * 16, beyond[4];
    if (!m->small) {
        predict(luma, stride, 16, m->luma, y > 0, x > 0);
    } else { /* the last column's upper right is the macroblock above to the right, for all four */
        if (y > 0 && x + 1 == across) memset(beyond, luma[15 - stride], 4);
        else memcpy(beyond, luma + 16 - stride, 4);
        if (y == 0) memset(beyond, 127, 4);
    }
    for (int k = 0; k < 16; k++) {
        uint8_t *to = luma + (k / 4) * 4 * stride + (k % 4) * 4;
        if (m->small) predict_small(to, stride, m->mode[k], k % 4 == 3 ? beyond : to + 4 - stride);
        if (any >> k & 1) add_block(coefficient + 16 * k, to, stride);
    }
    for (int p = 1; p < 3; p++) {
        uint8_t *chroma = plane[p].at + y * 8 * plane[p].stride + x * 8;
        predict(chroma, plane[p].stride, 8, m->chroma, y > 0, x > 0);
        for (int k = 0; k < 4; k++)
            if (any >> (12 + 4 * p + k) & 1)
                add_block(coefficient + 16 * (12 + 4 * p + k), chroma + (k / 2) * 4 * plane[p].stride + (k % 2) * 4, plane[p].stride);
    }
}

/* ---- the loop filter: p[-1] and p[0] are the two samples at an edge, `s` apart ---- */

static inline int clip_to(int v, int low, int high) { return v < low ? low : v > high ? high : v; }
static inline int s8(int v) { return clip_to(v, -128, 127); }
static inline int s5(int v) { return clip_to(v, -16, 15); }

static inline bool uneven(const uint8_t *p, ptrdiff_t s, int limit) { return 4 * abs(p[-s] - p[0]) + abs(p[-2 * s] - p[s]) <= limit; }
static inline bool calm(const uint8_t *p, ptrdiff_t s, int inside) {
    return abs(p[-4 * s] - p[-3 * s]) <= inside && abs(p[-3 * s] - p[-2 * s]) <= inside && abs(p[-2 * s] - p[-s]) <= inside &&
           abs(p[3 * s] - p[2 * s]) <= inside && abs(p[2 * s] - p[s]) <= inside && abs(p[s] - p[0]) <= inside;
}
static inline bool sharp(const uint8_t *p, ptrdiff_t s, int limit) { return abs(p[-2 * s] - p[-s]) > limit || abs(p[s] - p[0]) > limit; }

static void mix2(uint8_t *p, ptrdiff_t s) {
    int a = 3 * (p[0] - p[-s]) + s8(p[-2 * s] - p[s]), a1 = s5((a + 4) >> 3), a2 = s5((a + 3) >> 3);
    p[-s] = hone_clip8(p[-s] + a2), p[0] = hone_clip8(p[0] - a1);
}
static void mix4(uint8_t *p, ptrdiff_t s) {
    int a = 3 * (p[0] - p[-s]), a1 = s5((a + 4) >> 3), a2 = s5((a + 3) >> 3), a3 = (a1 + 1) >> 1;
    p[-2 * s] = hone_clip8(p[-2 * s] + a3), p[-s] = hone_clip8(p[-s] + a2);
    p[0] = hone_clip8(p[0] - a1), p[s] = hone_clip8(p[s] - a3);
}
static void mix6(uint8_t *p, ptrdiff_t s) {
    int a = s8(3 * (p[0] - p[-s]) + s8(p[-2 * s] - p[s])), a1 = (27 * a + 63) >> 7, a2 = (18 * a + 63) >> 7, a3 = (9 * a + 63) >> 7;
    p[-3 * s] = hone_clip8(p[-3 * s] + a3), p[-2 * s] = hone_clip8(p[-2 * s] + a2), p[-s] = hone_clip8(p[-s] + a1);
    p[0] = hone_clip8(p[0] - a1), p[s] = hone_clip8(p[s] - a2), p[2 * s] = hone_clip8(p[2 * s] - a3);
}

/* An edge of n samples, `next` from one to the next, filtered across (`s`). Between macroblocks more is changed than inside. */
static void edge(uint8_t *p, ptrdiff_t s, ptrdiff_t next, int n, const hone_vp8_strength *f, bool border, bool simple) {
    int limit = 2 * (f->edge + (border ? 4 : 0)) + 1, high = f->level >= 40 ? 2 : f->level >= 15 ? 1 : 0;
    for (int k = 0; k < n; k++, p += next) {
        if (!uneven(p, s, limit) || (!simple && !calm(p, s, f->inside))) continue;
        if (simple || sharp(p, s, high)) mix2(p, s);
        else if (border) mix6(p, s);
        else mix4(p, s);
    }
}

void hone_vp8_smooth(hone_vp8_plane plane[3], int x, int y, bool simple, const hone_vp8_strength *f, bool inside) {
    if (!f->level) return;
    for (int p = 0; p < (simple ? 1 : 3); p++) {
        int side = p ? 8 : 16;
        ptrdiff_t stride = plane[p].stride;
        uint8_t *at = plane[p].at + y * side * stride + x * side;
        if (x) edge(at, 1, stride, side, f, true, simple);
        for (int k = 4; k < side && inside; k += 4) edge(at + k, 1, stride, side, f, false, simple);
        if (y) edge(at, stride, 1, side, f, true, simple);
        for (int k = 4; k < side && inside; k += 4) edge(at + k * stride, stride, 1, side, f, false, simple);
    }
}
