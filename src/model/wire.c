/* SPDX-License-Identifier: Apache-2.0
   wire: the reader. Every length is compared with what is left before a pointer moves, so no byte outside the
   span is ever read. */
#include "model/wire.h"

#include <string.h>

bool hone_wire_varint(hone_wire *w, uint64_t *out) {
    uint64_t v = 0;
    for (int shift = 0; shift < 64 && w->at < w->end; shift += 7) {
        uint8_t b = *w->at++;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128) {
            *out = v;
            return true;
        }
    }
    w->bad = true;
    return false;
}

static uint64_t little(const uint8_t *at, int width) {
    uint64_t v = 0;
    for (int k = 0; k < width; k++) v |= (uint64_t)at[k] << 8 * k;
    return v;
}

bool hone_wire_next(hone_wire *w, hone_field *out) {
    uint64_t key, n;
    if (w->bad || w->at >= w->end || !hone_wire_varint(w, &key)) return false;
    *out = (hone_field){.number = (uint32_t)(key >> 3), .type = (hone_wire_type)(key & 7)};
    size_t left = (size_t)(w->end - w->at);
    int width = out->type == HONE_WIRE_64 ? 8 : 4;
    if (key >> 3 == 0 || key >> 3 > 536870911u) return !(w->bad = true);
    switch (out->type) {
    case HONE_WIRE_VARINT: return hone_wire_varint(w, &out->value);
    case HONE_WIRE_64:
    case HONE_WIRE_32:
        if (left < (size_t)width) break;
        out->value = little(w->at, width);
        w->at += width;
        return true;
    case HONE_WIRE_BYTES:
        if (!hone_wire_varint(w, &n) || n > (uint64_t)(w->end - w->at)) break;
        out->data = w->at;
        out->bytes = (size_t)n;
        w->at += n;
        return true;
    default: break;
    }
    w->bad = true;
    return false;
}

bool hone_wire_good(hone_wire w) {
    hone_field f;
    while (hone_wire_next(&w, &f)) continue;
    return !w.bad;
}

hone_status hone_wire_number(const hone_field *f, int width, hone_wire_numbers *out) {
    static const hone_wire_type single[] = {[0] = HONE_WIRE_VARINT, [4] = HONE_WIRE_32, [8] = HONE_WIRE_64};
    if (f->type == single[width]) return hone_push(out, f->value) ? HONE_OK : HONE_NO_MEMORY;
    if (f->type != HONE_WIRE_BYTES || (width && f->bytes % (size_t)width)) return HONE_BAD_INPUT;
    for (hone_wire w = hone_wire_of(f); w.at < w.end;) {
        uint64_t v;
        if (width) v = little(w.at, width), w.at += width;
        else if (!hone_wire_varint(&w, &v)) return HONE_BAD_INPUT;
        if (!hone_push(out, v)) return HONE_NO_MEMORY;
    }
    return HONE_OK;
}

char *hone_wire_text(hone_arena *a, const hone_field *f) {
    const uint8_t *zero = f->bytes ? memchr(f->data, 0, f->bytes) : NULL;
    return hone_arena_textn(a, f->bytes ? (const char *)f->data : "",
                            zero ? (size_t)(zero - f->data) : f->bytes);
}
