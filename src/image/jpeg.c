/* SPDX-License-Identifier: Apache-2.0
   jpeg: markers. Baseline, extended and progressive, Huffman codes, 8 bits, 1, 3 or 4 components, any sampling. Not arithmetic coding, not 12
   bits, not lossless, not hierarchical. */
#include "image/jpeg.h"

#include <string.h>

enum { SCANS = 256 /* more have no use, and would make a small file slow */ };

static hone_status damaged(const char *what) { return hone_fail(HONE_BAD_INPUT, "the file is damaged: %s", what); }
static hone_status cut(void) { return hone_fail(HONE_BAD_INPUT, "the file is cut short"); }

/* ---- one function a kind of segment: its bytes without marker and length ---- */

static hone_status read_quant(hone_jpeg *j, const uint8_t *p, size_t n) {
    while (n) {
        int wide = p[0] >> 4, to = p[0] & 15;
        size_t need = wide ? 129 : 65;
        if (wide > 1 || to > 3 || n < need) return damaged("a quantization table");
        for (int k = 0; k < 64; k++) j->quant[to][hone_jpeg_zigzag[k]] = (uint16_t)(wide ? hone_be16(p + 1 + 2 * k) : p[1 + k]);
        j->quant_there[to] = true;
        p += need, n -= need;
    }
    return HONE_OK;
}

static hone_status read_codes(hone_jpeg *j, const uint8_t *p, size_t n) {
    while (n) {
        size_t symbols = 0;
        if (n < 17 || (p[0] >> 4) > 1 || (p[0] & 15) > 3) return damaged("a Huffman code");
        for (int k = 1; k <= 16; k++) symbols += p[k];
        hone_jpeg_code *code = p[0] >> 4 ? &j->ac[p[0] & 15] : &j->dc[p[0] & 15];
        if (symbols > 256 || n - 17 < symbols || !hone_jpeg_make_code(code, p + 1, p + 17, (int)symbols)) return damaged("a Huffman code");
        p += 17 + symbols, n -= 17 + symbols;
    }
    return HONE_OK;
}

static int above(int a, int b) { return (a + b - 1) / b; }

static hone_status read_frame(hone_jpeg *j, const uint8_t *p, size_t n) {
    if (j->frame) return damaged("two frames");
    if (n < 6 || n < 6 + 3 * (size_t)p[5]) return damaged("its frame header");
    if (p[0] != 8) return hone_fail(HONE_NOT_SUPPORTED, "%d bits a sample; convert it to 8", p[0]);
    j->height = (int)hone_be16(p + 1), j->width = (int)hone_be16(p + 3), j->n_part = p[5];
    if (!j->height) return hone_fail(HONE_NOT_SUPPORTED, "its height is said behind its pixels (DNL)");
    if (j->n_part != 1 && j->n_part != 3 && j->n_part != 4) return hone_fail(HONE_NOT_SUPPORTED, "%d components", j->n_part);
    HONE_TRY(hone_pixels_allowed(j->width, j->height));
    for (int k = 0; k < j->n_part; k++) {
        const uint8_t *q = p + 6 + 3 * k;
        hone_jpeg_part *c = &j->part[k];
        c->id = q[0], c->h = q[1] >> 4, c->v = q[1] & 15, c->quant = q[2];
        if (c->h < 1 || c->h > 4 || c->v < 1 || c->v > 4 || c->quant > 3) return damaged("a component");
        if (c->h > j->h_max) j->h_max = c->h;
        if (c->v > j->v_max) j->v_max = c->v;
    }
    j->across = above(j->width, 8 * j->h_max), j->down = above(j->height, 8 * j->v_max);
    size_t blocks = 0;
    for (int k = 0; k < j->n_part; k++) {
        hone_jpeg_part *c = &j->part[k];
        c->across = j->across * c->h, c->down = j->down * c->v;
        c->width = above(j->width * c->h, j->h_max), c->height = above(j->height * c->v, j->v_max);
        blocks += (size_t)above(c->width, 8) * (size_t)above(c->height, 8);
        memset(c->bit, -1, sizeof c->bit);
    }
    /* A block is at least one bit, and one more where its end is said with it: so short a file cannot hold so many. */
    if (blocks / (j->progressive ? 8 : 4) > (size_t)(j->end - j->at)) return cut();
    for (int k = 0; k < j->n_part; k++) {
        hone_jpeg_part *c = &j->part[k];
        size_t samples = (size_t)c->across * (size_t)c->down * 64;
        c->sample = hone_alloc_raw(samples);
        if (j->progressive) c->coefficient = hone_alloc(samples * sizeof *c->coefficient);
        if (!c->sample || (j->progressive && !c->coefficient))
            return hone_fail(HONE_NO_MEMORY, "no memory for a picture of %d x %d", j->width, j->height);
    }
    j->frame = true;
    return HONE_OK;
}

/* What a progressive scan adds must be new, and follow on what is there: so scans end, and every bit comes once. */
static hone_status progress(hone_jpeg *j, const hone_jpeg_span *s) {
    if (s->first > 63 || s->last > 63 || s->first > s->last || s->low > 13 || (s->first == 0) != (s->last == 0) || (s->first && s->n > 1) ||
        (s->high && s->high != s->low + 1))
        return damaged("the range of a scan");
    for (int k = 0; k < s->n; k++) {
        hone_jpeg_part *c = &j->part[s->part[k]];
        if (s->first && c->bit[0] < 0) return damaged("a scan before its first");
        for (int i = s->first; i <= s->last; i++) {
            if (c->bit[i] != (s->high ? s->high : -1)) return damaged("a scan out of order");
            c->bit[i] = (int8_t)s->low;
        }
    }
    return HONE_OK;
}

static hone_status read_scan(hone_jpeg *j, const uint8_t *p, size_t n) {
    hone_jpeg_span s = {.n = n ? p[0] : 0};
    if (!j->frame) return damaged("a scan before its frame");
    if (s.n < 1 || s.n > j->n_part || n < 4 + 2 * (size_t)s.n) return damaged("a scan's header");
    if (++j->scans > SCANS) return hone_fail(HONE_NOT_SUPPORTED, "more than %d scans", SCANS);
    for (int k = 0; k < s.n; k++) {
        int found = 0;
        while (found < j->n_part && j->part[found].id != p[1 + 2 * k]) found++;
        if (found == j->n_part) return damaged("a scan of a component that is not there");
        for (int i = 0; i < k; i++)
            if (s.part[i] == found) return damaged("a scan with a component twice");
        s.part[k] = found;
        hone_jpeg_part *c = &j->part[found];
        c->dc = p[2 + 2 * k] >> 4, c->ac = p[2 + 2 * k] & 15;
        if (c->dc > 3 || c->ac > 3) return damaged("a scan's codes");
    }
    p += 1 + 2 * s.n;
    s.first = p[0], s.last = p[1], s.high = p[2] >> 4, s.low = p[2] & 15;
    if (j->progressive) HONE_TRY(progress(j, &s));
    for (int k = 0; k < s.n; k++) {
        hone_jpeg_part *c = &j->part[s.part[k]];
        bool dc = !j->progressive || (s.first == 0 && !s.high), ac = !j->progressive || s.first;
        if ((dc && !j->dc[c->dc].there) || (ac && !j->ac[c->ac].there)) return damaged("a scan without its Huffman code");
        if (!j->progressive && c->seen) return damaged("a component comes twice");
        if (!c->seen) {
            if (!j->quant_there[c->quant]) return damaged("a scan without its quantization table");
            memcpy(c->step, j->quant[c->quant], sizeof c->step);
        }
        c->seen = true;
    }
    return hone_jpeg_scan(j, &s);
}

static hone_status read_app(hone_jpeg *j, int marker, const uint8_t *p, size_t n) {
    if (marker == 0xe0 && n >= 5 && !memcmp(p, "JFIF", 5)) j->jfif = true;
    if (marker == 0xee && n >= 12 && !memcmp(p, "Adobe", 5)) j->adobe = true, j->transform = p[11];
    return HONE_OK;
}

/* ---- the walk ---- */

/* The next marker; 0 at the end of the bytes. */
static int next_marker(hone_jpeg *j) {
    while (j->end - j->at >= 2) {
        if (j->at[0] != 0xff || j->at[1] == 0 || j->at[1] == 0xff) j->at++;
        else return j->at += 2, j->at[-1];
    }
    return 0;
}

static bool complete(const hone_jpeg *j) {
    for (int k = 0; k < j->n_part; k++)
        if (!j->part[k].seen) return false;
    return j->frame;
}

static hone_status walk(hone_jpeg *j) {
    for (;;) {
        if (!j->progressive && complete(j)) return HONE_OK;
        int marker = next_marker(j);
        if (marker == 0 || marker == 0xd9) return complete(j) ? HONE_OK : cut();
        if (marker == 1 || (marker >= 0xd0 && marker <= 0xd8)) continue; /* without a body */
        if (j->end - j->at < 2) return cut();
        size_t n = hone_be16(j->at);
        if (n < 2 || n > (size_t)(j->end - j->at)) return cut();
        const uint8_t *body = j->at + 2;
        j->at += n;
        n -= 2;
        switch (marker) {
        case 0xdb: HONE_TRY(read_quant(j, body, n)); break;
        case 0xc4: HONE_TRY(read_codes(j, body, n)); break;
        case 0xc0:
        case 0xc1:
        case 0xc2:
            j->progressive = marker == 0xc2;
            HONE_TRY(read_frame(j, body, n));
            break;
        case 0xda: HONE_TRY(read_scan(j, body, n)); break;
        case 0xdd:
            if (n < 2) return damaged("its restart interval");
            j->restart = hone_be16(body);
            break;
        case 0xe0:
        case 0xee: HONE_TRY(read_app(j, marker, body, n)); break;
        default:
            if (marker >= 0xc3 && marker <= 0xcf)
                return hone_fail(HONE_NOT_SUPPORTED, "a lossless, hierarchical or arithmetic-coded picture (SOF%d); convert it",
                                 marker - 0xc0);
        }
    }
}

hone_status hone_jpeg_read(const uint8_t *data, size_t bytes, hone_pixels *out) {
    hone_jpeg *j = hone_alloc(sizeof *j);
    if (!j) return hone_fail(HONE_NO_MEMORY, "no memory for a JPEG decoder");
    j->at = data + 2, j->end = data + bytes;
    hone_status s = walk(j);
    for (int k = 0; k < j->n_part && !s && j->progressive; k++) {
        hone_jpeg_part *c = &j->part[k];
        for (int y = 0; y < c->down; y++)
            for (int x = 0; x < c->across; x++)
                hone_jpeg_inverse(c->coefficient + ((size_t)y * (size_t)c->across + (size_t)x) * 64, c->step,
                                  c->sample + ((size_t)y * (size_t)c->across * 8 + (size_t)x) * 8, (size_t)c->across * 8);
        hone_free(c->coefficient);
        c->coefficient = NULL;
    }
    if (!s) s = hone_jpeg_pixels(j, out);
    for (int k = 0; k < 4; k++) {
        hone_free(j->part[k].coefficient);
        hone_free(j->part[k].sample);
    }
    hone_free(j);
    return s;
}
