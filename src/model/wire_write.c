/* SPDX-License-Identifier: Apache-2.0
   wire_write: protobuf's wire format, written. */
#include "model/wire_write.h"

#include <string.h>

#include "model/wire.h"

enum { CHUNK = 1 << 16 /* elements packed at a time: a multiple of what a byte holds */ };

/* ---- the buffer ---------------------------------------------------------------------------------------- */
static bool grow(hone_wire_out *w, size_t more) {
    size_t need;
    if (w->failed || !hone_add_size(w->n, more, &need)) return w->failed = true, false;
    if (need <= w->room) return true;
    size_t room = need < 4096 ? 4096 : need;
    if (!hone_add_size(room, room / 2, &room)) return w->failed = true, false;
    uint8_t *bytes = hone_realloc(w->bytes, w->room, room);
    if (!bytes) return w->failed = true, false;
    w->bytes = bytes, w->room = room;
    return true;
}

static void put(hone_wire_out *w, const void *data, size_t bytes) {
    if (!grow(w, bytes)) return;
    if (bytes) memcpy(w->bytes + w->n, data, bytes);
    w->n += bytes;
}

static size_t varint(uint8_t out[10], uint64_t v) {
    size_t n = 0;
    for (; v > 127; v >>= 7) out[n++] = (uint8_t)(v | 128);
    out[n++] = (uint8_t)v;
    return n;
}

static void put_varint(hone_wire_out *w, uint64_t v) {
    uint8_t bytes[10];
    put(w, bytes, varint(bytes, v));
}

static void put_tag(hone_wire_out *w, uint32_t field, hone_wire_type type) {
    put_varint(w, (uint64_t)field << 3 | type);
}

/* ---- fields -------------------------------------------------------------------------------------------- */
void hone_wire_put_number(hone_wire_out *w, uint32_t field, uint64_t v) {
    put_tag(w, field, HONE_WIRE_VARINT);
    put_varint(w, v);
}

void hone_wire_put_float(hone_wire_out *w, uint32_t field, float v) {
    put_tag(w, field, HONE_WIRE_32);
    put(w, &v, sizeof v);
}

void hone_wire_put_bytes(hone_wire_out *w, uint32_t field, const void *data, size_t bytes) {
    put_tag(w, field, HONE_WIRE_BYTES);
    put_varint(w, bytes);
    put(w, data, bytes);
}

void hone_wire_put_text(hone_wire_out *w, uint32_t field, const char *text) {
    hone_wire_put_bytes(w, field, text, strlen(text));
}

void hone_wire_put_elements(hone_wire_out *w, uint32_t field, hone_dtype t, const void *data, size_t n) {
    size_t bytes = hone_dtype_file_bytes(t, n);
    if (bytes == SIZE_MAX) {
        w->failed = true;
        return;
    }
    put_tag(w, field, HONE_WIRE_BYTES);
    put_varint(w, bytes);
    if (!n || w->failed) return;
    if (hone_push(&w->piece, ((hone_wire_piece){w->n, t, data, n}))) w->piece_bytes += bytes;
    else w->failed = true;
}

void hone_wire_put_space(hone_wire_out *w, uint32_t filler, uint32_t field, size_t bytes, size_t unit) {
    static const char spaces[] = "                                                                ";
    uint8_t ahead[20];
    const size_t header = varint(ahead, (uint64_t)field << 3 | HONE_WIRE_BYTES) + varint(ahead + 10, bytes);
    const size_t own = varint(ahead, (uint64_t)filler << 3 | HONE_WIRE_BYTES) + 1,
                 past = (size_t)((hone_wire_size(w) + header) % unit);
    if (!past) return;
    size_t space = unit - past;
    if (space < own) space += unit;
    if (space - own > sizeof spaces - 1) w->failed = true;
    else hone_wire_put_bytes(w, filler, spaces, space - own);
}

/* ---- messages ------------------------------------------------------------------------------------------ */
hone_wire_mark hone_wire_open(hone_wire_out *w, uint32_t field) {
    put_tag(w, field, HONE_WIRE_BYTES);
    return (hone_wire_mark){w->n, w->piece_bytes, w->piece.n, false};
}
enum { WIDE = 5 };
hone_wire_mark hone_wire_open_wide(hone_wire_out *w, uint32_t field) {
    static const uint8_t later[WIDE];
    hone_wire_mark m = hone_wire_open(w, field);
    put(w, later, sizeof later);
    m.wide = true;
    return m;
}

/* What is inside moves up to make room for its length. A byte moves once for each message around it: a
   handful of times. */
void hone_wire_close(hone_wire_out *w, hone_wire_mark m) {
    if (w->failed) return;
    uint8_t length[10];
    if (m.wide) { /* leading zeros: every seven bits but the last say that more follow */
        uint64_t inside = w->n - m.at - WIDE + (w->piece_bytes - m.piece_bytes);
        for (int k = 0; k < WIDE; k++, inside >>= 7)
            w->bytes[m.at + (size_t)k] = (uint8_t)((inside & 127) | (k < WIDE - 1 ? 128 : 0));
        w->failed |= inside != 0;
        return;
    }
    size_t inside = w->n - m.at, bytes = varint(length, inside + (w->piece_bytes - m.piece_bytes));
    if (!grow(w, bytes)) return;
    memmove(w->bytes + m.at + bytes, w->bytes + m.at, inside);
    memcpy(w->bytes + m.at, length, bytes);
    w->n += bytes;
    for (int k = m.piece; k < w->piece.n; k++) w->piece.at[k].at += bytes;
}

/* ---- sending ------------------------------------------------------------------------------------------- */
hone_status hone_wire_send_elements(hone_dtype t, const void *data, size_t n, const hone_sink *to) {
    const uint8_t *from = data;
    uint8_t packed[CHUNK / 2];
    if (hone_dtypes[t].bits >= 8) return n ? to->put(to->context, data, n * hone_dtypes[t].bytes) : HONE_OK;
    for (size_t k = 0; k < n; k += CHUNK) {
        size_t m = n - k < CHUNK ? n - k : CHUNK;
        hone_dtype_pack(t, packed, from + k, m);
        HONE_TRY(to->put(to->context, packed, hone_dtype_file_bytes(t, m)));
    }
    return HONE_OK;
}

hone_status hone_wire_send(const hone_wire_out *w, const hone_sink *to) {
    size_t at = 0;
    for (int k = 0; k < w->piece.n; k++) {
        const hone_wire_piece *p = w->piece.at + k;
        if (p->at > at) HONE_TRY(to->put(to->context, w->bytes + at, p->at - at));
        at = p->at;
        HONE_TRY(hone_wire_send_elements(p->dtype, p->data, p->n, to));
    }
    return w->n > at ? to->put(to->context, w->bytes + at, w->n - at) : HONE_OK;
}

void hone_wire_out_free(hone_wire_out *w) {
    hone_free(w->bytes);
    hone_vec_free(&w->piece);
    *w = (hone_wire_out){0};
}
