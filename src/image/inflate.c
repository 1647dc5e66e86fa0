/* SPDX-License-Identifier: Apache-2.0
   inflate: bits from the low end, two Huffman codes a block, copies from what was written before. */
#include "image/inflate.h"

#include <string.h>

enum { FAST = 10, LONGEST = 15, LITERALS = 288, DISTANCES = 32, LENGTHS = 19 };

/* A canonical code. Codes of up to FAST bits are looked up in one step; longer ones bit by bit through the counts. */
typedef struct {
    uint16_t fast[1 << FAST]; /* symbol << 4 | bits; 0: longer, or none */
    uint16_t count[LONGEST + 1], symbol[LITERALS];
} code;

typedef struct {
    const uint8_t *in, *end;
    uint64_t bits; /* the low `have` are the next of the stream */
    int have;
    int past; /* zeros made up behind the end */
    uint8_t *out;
    size_t at, room;
    code literal, distance;
} state;

/* At least 32 bits. Behind the end come zeros; who uses them is found out by `short_of`. */
static inline void refill(state *s) {
    while (s->have <= 56) {
        if (s->in < s->end) s->bits |= (uint64_t)*s->in++ << s->have;
        else s->past += 8;
        s->have += 8;
    }
}
static inline bool short_of(const state *s) { return s->past > s->have; } /* bits that were never there have been taken */
static inline uint32_t take(state *s, int n) {
    uint32_t v = (uint32_t)(s->bits & ((1ull << n) - 1));
    s->bits >>= n;
    s->have -= n;
    return v;
}

/* False: more codes than fit, or fewer than all (one code alone may leave the rest unused). */
static bool build(code *c, const uint8_t *length, int n) {
    uint16_t next[LONGEST + 2] = {0};
    int left = 1, used = 0, first = 0;
    memset(c, 0, sizeof *c);
    for (int k = 0; k < n; k++) c->count[length[k]]++;
    c->count[0] = 0;
    for (int b = 1; b <= LONGEST; b++) {
        left = left * 2 - c->count[b];
        if (left < 0) return false;
        used += c->count[b];
        next[b + 1] = (uint16_t)(next[b] + c->count[b]);
    }
    if (left > 0 && used > 1) return false;
    uint16_t at[LONGEST + 2];
    memcpy(at, next, sizeof at);
    for (int k = 0; k < n; k++)
        if (length[k]) c->symbol[at[length[k]]++] = (uint16_t)k;
    for (int b = 1; b <= FAST; b++) { /* codes of b bits, in order; their bits come in turned around */
        for (int k = 0; k < c->count[b]; k++) {
            int value = first + k, turned = 0;
            for (int i = 0; i < b; i++) turned |= (value >> i & 1) << (b - 1 - i);
            for (int i = turned; i < 1 << FAST; i += 1 << b) c->fast[i] = (uint16_t)(c->symbol[next[b] + k] << 4 | b);
        }
        first = (first + c->count[b]) << 1;
    }
    return true;
}

/* A symbol; -1: bits that are no code. The caller has refilled. */
static inline int symbol(state *s, const code *c) {
    uint16_t hit = c->fast[s->bits & ((1 << FAST) - 1)];
    if (hit) {
        take(s, hit & 15);
        return hit >> 4;
    }
    int value = 0, first = 0, index = 0;
    uint64_t bits = s->bits;
    for (int b = 1; b <= LONGEST; b++, bits >>= 1) {
        value |= (int)(bits & 1);
        if (value - first < c->count[b]) {
            take(s, b);
            return c->symbol[index + value - first];
        }
        index += c->count[b];
        first = (first + c->count[b]) << 1;
        value <<= 1;
    }
    return -1;
}

static hone_status damaged(const char *what) { return hone_fail(HONE_BAD_INPUT, "the packed data is damaged: %s", what); }
static hone_status cut(void) { return hone_fail(HONE_BAD_INPUT, "the packed data is cut short"); }

static hone_status stored(state *s) {
    take(s, s->have & 7);
    refill(s);
    uint32_t n = take(s, 16), check = take(s, 16);
    if (short_of(s)) return cut();
    if ((n ^ check) != 0xffff) return damaged("a stored block's length");
    for (; n && s->at < s->room; n--) {
        refill(s);
        s->out[s->at++] = (uint8_t)take(s, 8);
        if (short_of(s)) return cut();
    }
    return HONE_OK;
}

static hone_status read_codes(state *s) {
    static const uint8_t order[LENGTHS] = {16, 17, 18, 0, 8, 7, 9, 6, 10, 5, 11, 4, 12, 3, 13, 2, 14, 1, 15};
    uint8_t length[LITERALS + DISTANCES] = {0}, small[LENGTHS] = {0};
    refill(s);
    int literals = (int)take(s, 5) + 257, distances = (int)take(s, 5) + 1, smalls = (int)take(s, 4) + 4;
    if (literals > 286 || distances > 30) return damaged("too many codes");
    for (int k = 0; k < smalls; k++) {
        refill(s);
        small[order[k]] = (uint8_t)take(s, 3);
    }
    if (!build(&s->literal, small, LENGTHS)) return damaged("the code of code lengths");
    for (int k = 0; k < literals + distances;) {
        refill(s);
        int v = symbol(s, &s->literal), times = 1;
        uint8_t what = (uint8_t)v;
        if (v < 0 || (v == 16 && k == 0)) return damaged("the code lengths");
        if (v == 16) what = length[k - 1], times = 3 + (int)take(s, 2);
        else if (v == 17) what = 0, times = 3 + (int)take(s, 3);
        else if (v == 18) what = 0, times = 11 + (int)take(s, 7);
        if (k + times > literals + distances) return damaged("the code lengths");
        while (times--) length[k++] = what;
    }
    if (short_of(s)) return cut();
    if (!length[256]) return damaged("a block without an end");
    if (!build(&s->literal, length, literals) || !build(&s->distance, length + literals, distances)) return damaged("the codes");
    return HONE_OK;
}

static hone_status fixed_codes(state *s) {
    uint8_t length[LITERALS];
    for (int k = 0; k < LITERALS; k++) length[k] = k < 144 ? 8 : k < 256 ? 9 : k < 280 ? 7 : 8;
    build(&s->literal, length, LITERALS);
    memset(length, 5, DISTANCES);
    build(&s->distance, length, DISTANCES);
    return HONE_OK;
}

static hone_status packed(state *s) {
    static const uint16_t base[] = {3,  4,  5,  6,  7,  8,  9,  10, 11,  13,  15,  17,  19,  23, 27,
                                    31, 35, 43, 51, 59, 67, 83, 99, 115, 131, 163, 195, 227, 258};
    static const uint8_t more[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2, 2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5, 5, 5, 5, 0};
    while (s->at < s->room) {
        refill(s);
        int v = symbol(s, &s->literal);
        if (short_of(s)) return cut();
        if (v < 0) return damaged("no such code");
        if (v < 256) {
            s->out[s->at++] = (uint8_t)v;
            continue;
        }
        if (v == 256) return HONE_OK;
        if (v > 285) return damaged("no such length");
        size_t n = base[v - 257] + take(s, more[v - 257]);
        refill(s);
        int d = symbol(s, &s->distance);
        if (d < 0 || d > 29) return damaged("no such distance");
        size_t back = d < 4 ? (size_t)d + 1 : ((2 + (size_t)(d & 1)) << (d / 2 - 1)) + 1 + take(s, d / 2 - 1);
        if (short_of(s)) return cut();
        if (back > s->at) return damaged("a distance before the beginning");
        if (n > s->room - s->at) n = s->room - s->at;
        for (; n; n--, s->at++) s->out[s->at] = s->out[s->at - back];
    }
    return HONE_OK;
}

static hone_status blocks(state *s) {
    for (bool last = false; !last && s->at < s->room;) {
        refill(s);
        last = take(s, 1);
        uint32_t kind = take(s, 2);
        if (short_of(s)) return cut();
        if (kind == 3) return damaged("no such kind of block");
        if (kind == 0) HONE_TRY(stored(s));
        else {
            HONE_TRY(kind == 1 ? fixed_codes(s) : read_codes(s));
            HONE_TRY(packed(s));
        }
    }
    return HONE_OK;
}

hone_status hone_inflate(const uint8_t *in, size_t n, uint8_t *out, size_t room, size_t *made) {
    if (n < 2) return cut();
    if ((in[0] & 15) != 8 || (in[0] >> 4) > 7 || (in[1] & 32) || (in[0] * 256 + in[1]) % 31) return damaged("no zlib stream");
    state *s = hone_alloc_raw(sizeof *s);
    if (!s) return hone_fail(HONE_NO_MEMORY, "no memory to unpack");
    s->in = in + 2, s->end = in + n, s->bits = 0, s->have = s->past = 0, s->out = out, s->at = 0, s->room = room;
    hone_status status = blocks(s);
    *made = s->at;
    hone_free(s);
    return status;
}
