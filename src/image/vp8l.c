/* SPDX-License-Identifier: Apache-2.0
   vp8l: a lossless WebP picture: five Huffman codes a group, copies from before, a cache of colours, and up to four transforms that are
   undone at the end. Pixels are 0xAARRGGBB here. */
#include <string.h>

#include "image/vp8.h"

enum {
    FAST = 7,
    LONGEST = 15,
    LITERALS = 256,
    LENGTHS = 24,
    DISTANCES = 40,
    CODES = 5,
    CACHE_MOST = 11,
    ALPHABET_MOST = LITERALS + LENGTHS + (1 << CACHE_MOST)
};
enum { PREDICT, COLOUR, GREEN, PALETTE };

typedef struct {
    uint16_t fast[1 << FAST]; /* symbol << 4 | bits; 0: longer */
    uint16_t count[LONGEST + 1], *symbol;
    int single; /* the only symbol, which needs no bit; -1: there are more */
} code;

typedef struct {
    int kind, bits, width; /* width: of the pixels it applies to */
    uint32_t *data;
} transform;

typedef struct {
    const uint8_t *at, *end;
    uint64_t bits;
    int have, past;
    hone_arena *arena; /* codes, small pictures */
    transform transform[4];
    int n_transform;
} vp8l;

static hone_status damaged(const char *what) { return hone_fail(HONE_BAD_INPUT, "the file is damaged: %s", what); }
static hone_status cut(void) { return hone_fail(HONE_BAD_INPUT, "the file is cut short"); }
static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory for a lossless WebP picture"); }

/* ---- bits: from the low end ---- */

static inline void fill(vp8l *v) {
    while (v->have <= 56) {
        if (v->at < v->end) v->bits |= (uint64_t)*v->at++ << v->have;
        else v->past += 8;
        v->have += 8;
    }
}
static inline uint32_t take(vp8l *v, int n) { /* up to 24 */
    if (v->have < 32) fill(v);
    uint32_t r = (uint32_t)(v->bits & ((1u << n) - 1));
    v->bits >>= n;
    v->have -= n;
    return r;
}
static inline bool short_of(const vp8l *v) { return v->past > v->have; }

/* ---- codes ---- */

static hone_status build(vp8l *v, code *c, const uint8_t *length, int n) {
    uint16_t next[LONGEST + 2] = {0}, at[LONGEST + 2];
    int left = 1, used = 0, first = 0;
    memset(c, 0, sizeof *c);
    for (int k = 0; k < n; k++) c->count[length[k]]++, used += length[k] > 0;
    c->count[0] = 0, c->single = -1;
    for (int k = 0; k < n && used == 1; k++)
        if (length[k]) c->single = k;
    if (used == 1) return HONE_OK;
    for (int b = 1; b <= LONGEST && left >= 0; b++) {
        left = left * 2 - c->count[b];
        next[b + 1] = (uint16_t)(next[b] + c->count[b]);
    }
    if (left) return damaged("a code that is not complete");
    c->symbol = HONE_NEW_N(v->arena, uint16_t, used);
    if (!c->symbol) return no_memory();
    memcpy(at, next, sizeof at);
    for (int k = 0; k < n; k++)
        if (length[k]) c->symbol[at[length[k]]++] = (uint16_t)k;
    for (int b = 1; b <= FAST; b++) {
        for (int k = 0; k < c->count[b]; k++) {
            int turned = 0;
            for (int i = 0; i < b; i++) turned |= ((first + k) >> i & 1) << (b - 1 - i);
            for (int i = turned; i < 1 << FAST; i += 1 << b) c->fast[i] = (uint16_t)(c->symbol[next[b] + k] << 4 | b);
        }
        first = (first + c->count[b]) << 1;
    }
    return HONE_OK;
}

static inline int symbol(vp8l *v, const code *c) {
    if (c->single >= 0) return c->single;
    if (v->have < 32) fill(v);
    uint16_t hit = c->fast[v->bits & ((1 << FAST) - 1)];
    if (hit) {
        take(v, hit & 15);
        return hit >> 4;
    }
    int value = 0, first = 0, index = 0;
    uint64_t bits = v->bits;
    for (int b = 1; b < LONGEST; b++, bits >>= 1) {
        value |= (int)(bits & 1);
        if (value - first < c->count[b]) {
            take(v, b);
            return c->symbol[index + value - first];
        }
        index += c->count[b];
        first = (first + c->count[b]) << 1;
        value <<= 1;
    }
    value |= (int)(bits & 1); /* the code is complete: the longest must fit */
    take(v, LONGEST);
    return c->symbol[index + value - first];
}

static hone_status read_lengths(vp8l *v, uint8_t *length, int n) {
    static const uint8_t order[19] = {17, 18, 0, 1, 2, 3, 4, 5, 16, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
    uint8_t small[19] = {0}, last = 8;
    code c;
    int smalls = 4 + (int)take(v, 4), most = n;
    for (int k = 0; k < smalls; k++) small[order[k]] = (uint8_t)take(v, 3);
    HONE_TRY(build(v, &c, small, 19));
    if (take(v, 1)) {
        int bits = 2 + 2 * (int)take(v, 3);
        most = 2 + (int)take(v, bits);
        if (most > n) return damaged("more codes than symbols");
    }
    for (int k = 0; k < n && most--;) {
        int s = symbol(v, &c), times = 1;
        uint8_t what = s < 16 ? (uint8_t)s : s == 16 ? last : 0;
        if (s >= 16) times = s == 16 ? 3 + (int)take(v, 2) : s == 17 ? 3 + (int)take(v, 3) : 11 + (int)take(v, 7);
        else if (s) last = (uint8_t)s;
        if (times > n - k) return damaged("the code lengths");
        while (times--) length[k++] = what;
    }
    return HONE_OK;
}

static hone_status read_code(vp8l *v, code *c, int n) {
    uint8_t length[ALPHABET_MOST] = {0};
    if (take(v, 1)) {
        bool two = take(v, 1);
        uint32_t a = take(v, take(v, 1) ? 8 : 1), b = two ? take(v, 8) : a;
        if (a >= (uint32_t)n || b >= (uint32_t)n) return damaged("a symbol that is not there");
        length[a] = length[b] = 1;
    } else {
        HONE_TRY(read_lengths(v, length, n));
    }
    if (short_of(v)) return cut();
    return build(v, c, length, n);
}

/* ---- pixels ---- */

/* Lengths and distances: short ones are said, of longer ones the upper bits. */
static inline uint32_t prefixed(vp8l *v, int s) {
    if (s < 4) return (uint32_t)s + 1;
    int more = (s - 2) >> 1;
    return ((2u + (uint32_t)(s & 1)) << more) + take(v, more) + 1;
}

/* The first 120 distances are places near by, in the order of how near: rows up, columns to the left (negative: to the right). */
static uint32_t distance(uint32_t code_, int width) {
    static const int8_t near[120][2] = {
        {0, 1},  {1, 0},  {1, 1},  {-1, 1}, {0, 2}, {2, 0},  {1, 2},  {-1, 2}, {2, 1},  {-2, 1}, {2, 2},  {-2, 2}, {0, 3}, {3, 0},
        {1, 3},  {-1, 3}, {3, 1},  {-3, 1}, {2, 3}, {-2, 3}, {3, 2},  {-3, 2}, {0, 4},  {4, 0},  {1, 4},  {-1, 4}, {4, 1}, {-4, 1},
        {3, 3},  {-3, 3}, {2, 4},  {-2, 4}, {4, 2}, {-4, 2}, {0, 5},  {3, 4},  {-3, 4}, {4, 3},  {-4, 3}, {5, 0},  {1, 5}, {-1, 5},
        {5, 1},  {-5, 1}, {2, 5},  {-2, 5}, {5, 2}, {-5, 2}, {4, 4},  {-4, 4}, {3, 5},  {-3, 5}, {5, 3},  {-5, 3}, {0, 6}, {6, 0},
        {1, 6},  {-1, 6}, {6, 1},  {-6, 1}, {2, 6}, {-2, 6}, {6, 2},  {-6, 2}, {4, 5},  {-4, 5}, {5, 4},  {-5, 4}, {3, 6}, {-3, 6},
        {6, 3},  {-6, 3}, {0, 7},  {7, 0},  {1, 7}, {-1, 7}, {5, 5},  {-5, 5}, {7, 1},  {-7, 1}, {4, 6},  {-4, 6}, {6, 4}, {-6, 4},
        {2, 7},  {-2, 7}, {7, 2},  {-7, 2}, {3, 7}, {-3, 7}, {7, 3},  {-7, 3}, {5, 6},  {-5, 6}, {6, 5},  {-6, 5}, {8, 0}, {4, 7},
        {-4, 7}, {7, 4},  {-7, 4}, {8, 1},  {8, 2}, {6, 6},  {-6, 6}, {8, 3},  {5, 7},  {-5, 7}, {7, 5},  {-7, 5}, {8, 4}, {6, 7},
        {-6, 7}, {7, 6},  {-7, 6}, {8, 5},  {7, 7}, {-7, 7}, {8, 6},  {8, 7}};
    if (code_ > 120) return code_ - 120;
    int d = near[code_ - 1][0] + near[code_ - 1][1] * width;
    return d < 1 ? 1 : (uint32_t)d;
}

static int shrunk(int size, int bits) { return (size + (1 << bits) - 1) >> bits; }

typedef struct {
    int width, height, cache_bits, group_bits, groups;
    const uint32_t *group; /* by place; NULL: one group */
    code (*codes)[CODES];
    uint32_t cache[1 << CACHE_MOST];
} layer;

static hone_status read_pixels(vp8l *v, layer *l, uint32_t *out) {
    size_t n = (size_t)l->width * (size_t)l->height, at = 0, cached = 0;
    int across = shrunk(l->width, l->group_bits), x = 0, y = 0;
    while (at < n) {
        const code *c = l->codes[l->group ? l->group[(size_t)(y >> l->group_bits) * (size_t)across + (size_t)(x >> l->group_bits)] : 0];
        int s = symbol(v, &c[0]);
        size_t run = 1;
        if (s < LITERALS) {
            uint32_t red = (uint32_t)symbol(v, &c[1]), blue = (uint32_t)symbol(v, &c[2]), alpha = (uint32_t)symbol(v, &c[3]);
            out[at] = alpha << 24 | red << 16 | (uint32_t)s << 8 | blue;
        } else if (s < LITERALS + LENGTHS) {
            run = prefixed(v, s - LITERALS);
            size_t back = distance(prefixed(v, symbol(v, &c[4])), l->width);
            if (back > at || run > n - at) return damaged("a copy from outside");
            for (size_t k = 0; k < run; k++) out[at + k] = out[at + k - back];
        } else { /* what was written since goes into the cache only now, when it is asked */
            for (; cached < at; cached++) l->cache[out[cached] * 0x1e35a7bdu >> (32 - l->cache_bits)] = out[cached];
            out[at] = l->cache[s - LITERALS - LENGTHS];
        }
        if (short_of(v)) return cut();
        at += run;
        for (x += (int)run; x >= l->width; y++) x -= l->width;
    }
    return HONE_OK;
}

static hone_status read_layer(vp8l *v, int width, int height, bool main, uint32_t *out);

static hone_status small_layer(vp8l *v, int width, int height, uint32_t **out) {
    *out = HONE_NEW_N(v->arena, uint32_t, (size_t)width * (size_t)height);
    return *out ? read_layer(v, width, height, false, *out) : no_memory();
}

static hone_status read_layer(vp8l *v, int width, int height, bool main, uint32_t *out) {
    layer *l = HONE_NEW(v->arena, layer);
    if (!l) return no_memory();
    *l = (layer){.width = width, .height = height, .groups = 1};
    if (take(v, 1)) {
        l->cache_bits = (int)take(v, 4);
        if (l->cache_bits < 1 || l->cache_bits > CACHE_MOST) return damaged("the size of its cache");
    }
    if (main && take(v, 1)) {
        uint32_t *group;
        l->group_bits = 2 + (int)take(v, 3);
        int w = shrunk(width, l->group_bits), h = shrunk(height, l->group_bits);
        HONE_TRY(small_layer(v, w, h, &group));
        for (size_t k = 0; k < (size_t)w * (size_t)h; k++) {
            group[k] = group[k] >> 8 & 0xffff;
            if ((int)group[k] >= l->groups) l->groups = (int)group[k] + 1;
        }
        l->group = group;
    }
    if ((size_t)l->groups * 2 > (size_t)(v->end - v->at) + 64) return cut(); /* five codes are at least 20 bits */
    l->codes = (code(*)[CODES])hone_arena_alloc(v->arena, sizeof *l->codes * (size_t)l->groups);
    if (!l->codes) return no_memory();
    const int alphabet[CODES] = {LITERALS + LENGTHS + (l->cache_bits ? 1 << l->cache_bits : 0), LITERALS, LITERALS, LITERALS, DISTANCES};
    for (int g = 0; g < l->groups; g++)
        for (int k = 0; k < CODES; k++) HONE_TRY(read_code(v, &l->codes[g][k], alphabet[k]));
    return read_pixels(v, l, out);
}

/* ---- transforms ---- */

/* Byte by byte. */
static inline uint32_t add(uint32_t a, uint32_t b) {
    return (((a & 0xff00ff00) + (b & 0xff00ff00)) & 0xff00ff00) | (((a & 0x00ff00ff) + (b & 0x00ff00ff)) & 0x00ff00ff);
}

static hone_status read_transform(vp8l *v, int *width, int height) {
    transform *t = &v->transform[v->n_transform];
    t->kind = (int)take(v, 2), t->width = *width;
    for (int k = 0; k < v->n_transform; k++)
        if (v->transform[k].kind == t->kind) return damaged("a transform comes twice");
    v->n_transform++;
    if (t->kind == PREDICT || t->kind == COLOUR) {
        t->bits = 2 + (int)take(v, 3);
        return small_layer(v, shrunk(*width, t->bits), shrunk(height, t->bits), &t->data);
    }
    if (t->kind == GREEN) return HONE_OK;
    int n = 1 + (int)take(v, 8);
    uint32_t *colours, *all = HONE_NEW_N(v->arena, uint32_t, 256);
    if (!all) return no_memory();
    HONE_TRY(small_layer(v, n, 1, &colours));
    for (int k = 0; k < n; k++) all[k] = add(colours[k], k ? all[k - 1] : 0); /* they were differences */
    t->data = all;
    t->bits = n > 16 ? 0 : n > 4 ? 1 : n > 2 ? 2 : 3;
    *width = shrunk(*width, t->bits);
    return HONE_OK;
}

static inline uint32_t mean(uint32_t a, uint32_t b) { return (((a ^ b) & 0xfefefefe) >> 1) + (a & b); }
static inline int byte(uint32_t v, int k) { return (int)(v >> (8 * k) & 255); }
static inline int far(int a, int b) { return a < b ? b - a : a - b; }

static uint32_t predicted(int mode, uint32_t l, const uint32_t *up) {
    uint32_t t = up[0], tl = up[-1], tr = up[1], r = 0;
    int nearer = 0;
    switch (mode) {
    case 1: return l;
    case 2: return t;
    case 3: return tr;
    case 4: return tl;
    case 5: return mean(mean(l, tr), t);
    case 6: return mean(l, tl);
    case 7: return mean(l, t);
    case 8: return mean(tl, t);
    case 9: return mean(t, tr);
    case 10: return mean(mean(l, tl), mean(t, tr));
    case 11:
        for (int k = 0; k < 4; k++) nearer += far(byte(l, k), byte(tl, k)) - far(byte(t, k), byte(tl, k));
        return nearer <= 0 ? t : l;
    case 12:
        for (int k = 0; k < 4; k++) r |= (uint32_t)hone_clip8(byte(l, k) + byte(t, k) - byte(tl, k)) << (8 * k);
        return r;
    case 13:
        for (int k = 0; k < 4; k++) {
            int a = byte(mean(l, t), k);
            r |= (uint32_t)hone_clip8(a + (a - byte(tl, k)) / 2) << (8 * k);
        }
        return r;
    default: return 0xff000000;
    }
}

/* The upper right of a row's last pixel is the first of the row itself, as they lie in memory: the format wants it so. */
static void undo_predict(const transform *t, int height, uint32_t *p) {
    size_t w = (size_t)t->width, across = (size_t)shrunk(t->width, t->bits);
    for (size_t y = 0; y < (size_t)height; y++)
        for (size_t x = 0; x < w; x++) {
            uint32_t *at = p + y * w + x, from;
            if (y == 0) from = x ? at[-1] : 0xff000000;
            else if (x == 0) from = at[-(ptrdiff_t)w];
            else from = predicted((int)(t->data[(y >> t->bits) * across + (x >> t->bits)] >> 8 & 15), at[-1], at - w);
            *at = add(*at, from);
        }
}

static inline int scaled(uint32_t by, int v) { return (int8_t)by * (int8_t)v >> 5; }

static void undo_colour(const transform *t, int height, uint32_t *p) {
    size_t across = (size_t)shrunk(t->width, t->bits);
    for (int y = 0; y < height; y++)
        for (int x = 0; x < t->width; x++, p++) {
            uint32_t m = t->data[(size_t)(y >> t->bits) * across + (size_t)(x >> t->bits)];
            int green = byte(*p, 1), red = byte(*p, 2) + scaled(m, green), blue = byte(*p, 0) + scaled(m >> 8, green);
            blue += scaled(m >> 16, red);
            *p = (*p & 0xff00ff00) | (uint32_t)(red & 255) << 16 | (uint32_t)(blue & 255);
        }
}

static void undo_green(size_t n, uint32_t *p) {
    for (size_t k = 0; k < n; k++) {
        uint32_t g = p[k] >> 8 & 255;
        p[k] = (p[k] & 0xff00ff00) | (((p[k] & 0x00ff00ff) + (g << 16 | g)) & 0x00ff00ff);
    }
}

/* From the end, as what was packed lies at the beginning of the same memory. */
static void undo_palette(const transform *t, int height, uint32_t *p) {
    size_t packed = (size_t)shrunk(t->width, t->bits);
    int depth = 8 >> t->bits, mask = (1 << depth) - 1, last = (1 << t->bits) - 1;
    for (size_t y = (size_t)height; y-- > 0;)
        for (size_t x = (size_t)t->width; x-- > 0;) {
            int place = byte(p[y * packed + (x >> t->bits)], 1) >> ((int)(x & (size_t)last) * depth) & mask;
            p[y * (size_t)t->width + x] = t->data[place];
        }
}

static hone_status read_all(vp8l *v, int width, int height, uint32_t *p) {
    int narrow = width;
    while (take(v, 1)) {
        if (v->n_transform == 4) return damaged("more than four transforms");
        HONE_TRY(read_transform(v, &narrow, height));
        if (short_of(v)) return cut();
    }
    HONE_TRY(read_layer(v, narrow, height, true, p));
    for (int k = v->n_transform - 1; k >= 0; k--) {
        const transform *t = &v->transform[k];
        if (t->kind == PREDICT) undo_predict(t, height, p);
        else if (t->kind == COLOUR) undo_colour(t, height, p);
        else if (t->kind == GREEN) undo_green((size_t)t->width * (size_t)height, p);
        else undo_palette(t, height, p);
    }
    return HONE_OK;
}

hone_status hone_vp8l_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    vp8l v = {.at = data + 1, .end = data + bytes};
    if (bytes < 5 || data[0] != 0x2f) return damaged("it does not begin as a lossless picture");
    int width = 1 + (int)take(&v, 14), height = 1 + (int)take(&v, 14);
    take(&v, 1); /* whether alpha means something */
    if (take(&v, 3)) return hone_fail(HONE_NOT_SUPPORTED, "another version of lossless WebP");
    HONE_TRY(hone_pixels_allowed(width, height));
    size_t n = (size_t)width * (size_t)height;
    uint32_t *p = hone_alloc(n * sizeof *p);
    v.arena = hone_arena_create();
    hone_status s = p && v.arena ? read_all(&v, width, height, p) : no_memory();
    if (!s) s = hone_pixels_create(width, height, 3, out);
    for (size_t k = 0; !s && k < n; k++)
        for (int c = 0; c < 3; c++) out->data[3 * k + (size_t)c] = (uint8_t)byte(p[k], 2 - c);
    if (v.arena) hone_arena_destroy(v.arena);
    hone_free(p);
    return s;
}
