/* SPDX-License-Identifier: Apache-2.0
   jpeg_scan: the bits of a scan: Huffman codes, sequential blocks, the four kinds of progressive ones, restarts. */
#include <string.h>

#include "image/jpeg.h"

const uint8_t hone_jpeg_zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,  12, 19, 26, 33, 40, 48,
                                      41, 34, 27, 20, 13, 6,  7,  14, 21, 28, 35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23,
                                      30, 37, 44, 51, 58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

bool hone_jpeg_make_code(hone_jpeg_code *c, const uint8_t count[16], const uint8_t *symbols, int n) {
    int code = 0, place = 0;
    memset(c, 0, sizeof *c);
    memcpy(c->symbol, symbols, (size_t)n);
    for (int b = 1; b <= HONE_JPEG_LONGEST; b++, code <<= 1) {
        c->base[b] = place - code;
        for (int k = 0; k < count[b - 1]; k++, code++, place++)
            for (int i = 0; b <= HONE_JPEG_FAST && i < 1 << (HONE_JPEG_FAST - b); i++) {
                int at = (code << (HONE_JPEG_FAST - b)) + i;
                if (at >= 1 << HONE_JPEG_FAST) return false;
                c->fast[at] = (uint16_t)(c->symbol[place] << 4 | b);
            }
        if (code > 1 << b) return false; /* more codes than there are */
        c->past[b] = code << (HONE_JPEG_LONGEST - b);
    }
    return c->there = true;
}

typedef struct {
    const uint8_t *at, *end;
    uint64_t bits; /* the high `have` are the next */
    int have, past;
    uint32_t run; /* blocks still to come that have nothing more in this band */
} reader;

/* At least 57 bits; behind a marker or the end come zeros, counted in `past`. */
static void fill(reader *r) {
    while (r->have <= 56) {
        uint64_t byte = 0;
        if (r->at == r->end || (*r->at == 0xff && (r->end - r->at < 2 || r->at[1]))) {
            r->past += 8;
        } else {
            byte = *r->at;
            r->at += byte == 0xff ? 2 : 1;
        }
        r->bits |= byte << (56 - r->have);
        r->have += 8;
    }
}
static inline void need(reader *r) {
    if (r->have < 32) fill(r);
}
static inline uint32_t take(reader *r, int n) { /* 0 to 16 bits */
    uint32_t v = (uint32_t)(r->bits >> 32) >> (31 - n) >> 1;
    r->bits <<= n;
    r->have -= n;
    return v;
}
static inline int signed_bits(reader *r, int n) {
    int v = (int)take(r, n);
    return n && v < 1 << (n - 1) ? v - (1 << n) + 1 : v;
}

/* A symbol, with 16 bits behind it ready; -1: no code. */
static inline int symbol(reader *r, const hone_jpeg_code *c) {
    need(r);
    uint16_t hit = c->fast[r->bits >> (64 - HONE_JPEG_FAST)];
    if (hit) {
        take(r, hit & 15);
        return hit >> 4;
    }
    int32_t look = (int32_t)(r->bits >> 48);
    for (int b = HONE_JPEG_FAST + 1; b <= HONE_JPEG_LONGEST; b++)
        if (look < c->past[b]) {
            int place = (look >> (HONE_JPEG_LONGEST - b)) + c->base[b];
            take(r, b);
            return place >= 0 && place < 256 ? c->symbol[place] : -1;
        }
    return -1;
}

/* ---- blocks: each reads one, and returns false on a code that cannot be ---- */

typedef struct {
    hone_jpeg *j;
    hone_jpeg_part *part;
    const hone_jpeg_span *span;
    reader r;
} state;

/* DC differences add up; a hostile file's wrap around. */
static bool next_dc(state *s) {
    int n = symbol(&s->r, &s->j->dc[s->part->dc]);
    if (n < 0 || n > 15) return false;
    s->part->pred = (int16_t)(s->part->pred + signed_bits(&s->r, n));
    return true;
}

static bool sequential(state *s, int16_t *block) {
    const hone_jpeg_code *ac = &s->j->ac[s->part->ac];
    if (!next_dc(s)) return false;
    block[0] = (int16_t)s->part->pred;
    for (int k = 1; k < 64; k++) {
        int v = symbol(&s->r, ac), n = v & 15, zeros = v >> 4;
        if (v < 0) return false;
        if (!n && zeros != 15) break;
        k += zeros;
        if (k > 63) return false;
        if (n) block[hone_jpeg_zigzag[k]] = (int16_t)signed_bits(&s->r, n);
    }
    return true;
}

static bool dc_first(state *s, int16_t *block) {
    if (!next_dc(s)) return false;
    block[0] = (int16_t)(s->part->pred * (1 << s->span->low));
    return true;
}

static bool dc_refine(state *s, int16_t *block) {
    need(&s->r);
    if (take(&s->r, 1)) block[0] = (int16_t)(block[0] | 1 << s->span->low);
    return true;
}

/* "The next 2^n + … blocks have no more": this one counted. */
static void start_run(state *s, int n) { s->r.run = (1u << n) + take(&s->r, n); }

static bool ac_first(state *s, int16_t *block) {
    const hone_jpeg_code *ac = &s->j->ac[s->part->ac];
    if (s->r.run) return s->r.run--, true;
    for (int k = s->span->first; k <= s->span->last; k++) {
        int v = symbol(&s->r, ac), n = v & 15, zeros = v >> 4;
        if (v < 0) return false;
        if (!n && zeros != 15) {
            start_run(s, zeros);
            s->r.run--;
            break;
        }
        k += zeros;
        if (k > s->span->last && (n || k > 63)) return false;
        if (n) block[hone_jpeg_zigzag[k]] = (int16_t)(signed_bits(&s->r, n) * (1 << s->span->low));
    }
    return true;
}

/* One more bit for a coefficient that is not zero. */
static void refine(state *s, int16_t *c) {
    int bit = 1 << s->span->low;
    need(&s->r);
    if (take(&s->r, 1) && !(*c & bit)) *c = (int16_t)(*c < 0 ? *c - bit : *c + bit);
}

/* Between the codes stand bits for all coefficients passed over that were not zero before. */
static bool ac_refine(state *s, int16_t *block) {
    const hone_jpeg_code *ac = &s->j->ac[s->part->ac];
    int k = s->span->first, last = s->span->last, bit = 1 << s->span->low;
    for (; !s->r.run && k <= last; k++) {
        int v = symbol(&s->r, ac), n = v & 15, zeros = v >> 4, value = 0;
        if (v < 0 || n > 1) return false;
        if (n) {
            value = take(&s->r, 1) ? bit : -bit;
        } else if (zeros != 15) {
            start_run(s, zeros);
            break;
        }
        for (; k <= last; k++) { /* to the place after so many zeros */
            int16_t *c = &block[hone_jpeg_zigzag[k]];
            if (*c) refine(s, c);
            else if (zeros-- == 0) break;
        }
        if (value) {
            if (k > last) return false;
            block[hone_jpeg_zigzag[k]] = (int16_t)value;
        }
    }
    if (!s->r.run) return true;
    for (; k <= last; k++) {
        int16_t *c = &block[hone_jpeg_zigzag[k]];
        if (*c) refine(s, c);
    }
    s->r.run--;
    return true;
}

typedef bool block_reader(state *, int16_t *block);

static bool read_block(state *s, block_reader *read, int x, int y) {
    hone_jpeg_part *c = s->part;
    if (c->coefficient) return read(s, c->coefficient + ((size_t)y * (size_t)c->across + (size_t)x) * 64);
    int16_t block[64] = {0};
    if (!read(s, block)) return false;
    hone_jpeg_inverse(block, c->step, c->sample + ((size_t)y * (size_t)c->across * 8 + (size_t)x) * 8, (size_t)c->across * 8);
    return true;
}

/* Whole MCUs when several components come together; a component alone has only the blocks that its samples need. */
static bool read_mcu(state *s, block_reader *read, int x, int y) {
    for (int k = 0; k < s->span->n; k++) {
        hone_jpeg_part *c = s->part = &s->j->part[s->span->part[k]];
        if (s->span->n == 1) return read_block(s, read, x, y);
        for (int v = 0; v < c->v; v++)
            for (int h = 0; h < c->h; h++)
                if (!read_block(s, read, x * c->h + h, y * c->v + v)) return false;
    }
    return true;
}

/* At a restart the bits left over are dropped, a marker is passed, and prediction begins anew. */
static bool restart(state *s, int number) {
    reader *r = &s->r;
    if (r->past > r->have) return false;
    while (r->end - r->at >= 2 && !(r->at[0] == 0xff && r->at[1] && r->at[1] != 0xff)) r->at++;
    if (r->end - r->at < 2 || r->at[1] != 0xd0 + number % 8) return false;
    r->at += 2;
    r->bits = 0, r->have = r->past = 0, r->run = 0;
    for (int k = 0; k < s->span->n; k++) s->j->part[s->span->part[k]].pred = 0;
    return true;
}

hone_status hone_jpeg_scan(hone_jpeg *j, const hone_jpeg_span *span) {
    state s = {.j = j, .span = span, .r = {.at = j->at, .end = j->end}};
    const hone_jpeg_part *alone = &j->part[span->part[0]];
    int across = span->n == 1 ? (alone->width + 7) / 8 : j->across, down = span->n == 1 ? (alone->height + 7) / 8 : j->down, restarts = 0;
    block_reader *read = !j->progressive ? sequential
                         : span->first   ? (span->high ? ac_refine : ac_first)
                                         : (span->high ? dc_refine : dc_first);
    uint32_t left = j->restart;
    for (int k = 0; k < span->n; k++) j->part[span->part[k]].pred = 0;
    for (int y = 0; y < down; y++)
        for (int x = 0; x < across; x++) {
            if (j->restart && left-- == 0) {
                if (!restart(&s, restarts++))
                    return hone_fail(HONE_BAD_INPUT, "the file is cut short or damaged: a restart marker is missing");
                left = j->restart - 1;
            }
            if (!read_mcu(&s, read, x, y)) return hone_fail(HONE_BAD_INPUT, "the file is damaged: a code that cannot be");
            if (s.r.past > s.r.have) return hone_fail(HONE_BAD_INPUT, "the file is cut short in its pixels");
        }
    j->at = s.r.at;
    return HONE_OK;
}
