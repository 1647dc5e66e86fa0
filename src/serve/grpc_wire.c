/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/grpc_wire.h"

#include <stdlib.h>
#include <string.h>

/* ---- reading ---- */

static bool varint(hone_serve_wire *w, uint64_t *out) {
    uint64_t v = 0;
    for (int shift = 0; w->at < w->end && shift < 64; shift += 7) {
        const uint8_t b = *w->at++;
        v |= (uint64_t)(b & 127) << shift;
        if (b < 128) return *out = v, true;
    }
    w->bad = true;
    return false;
}
static uint64_t fixed(const uint8_t *at, int bytes) {
    uint64_t v = 0;
    for (int k = 0; k < bytes; k++) v |= (uint64_t)at[k] << (8 * k);
    return v;
}

bool hone_serve_wire_next(hone_serve_wire *w, hone_serve_field *f) {
    uint64_t tag, n;
    if (w->bad || w->at >= w->end || !varint(w, &tag)) return false;
    *f = (hone_serve_field){.number = (uint32_t)(tag >> 3), .type = (int)(tag & 7)};
    const size_t left = (size_t)(w->end - w->at), width = f->type == HONE_SERVE_64 ? 8 : 4;
    w->bad = tag >> 32 || !f->number;
    if (!w->bad && f->type == HONE_SERVE_VARINT) return varint(w, &f->value);
    if (!w->bad && (f->type == HONE_SERVE_64 || f->type == HONE_SERVE_32) && left >= width) {
        f->value = fixed(w->at, (int)width), w->at += width;
        return true;
    }
    if (!w->bad && f->type == HONE_SERVE_BYTES && varint(w, &n) && n <= (uint64_t)(w->end - w->at)) {
        f->data = w->at, f->bytes = (size_t)n, w->at += n;
        return true;
    }
    w->bad = true; /* groups too, which proto3 has not */
    return false;
}

bool hone_serve_wire_numbers(const hone_serve_field *f, int width, bool (*each)(void *, uint64_t),
                             void *arg) {
    if (f->type != HONE_SERVE_BYTES) /* a single one */
        return f->type == (width == 8   ? HONE_SERVE_64
                           : width == 4 ? HONE_SERVE_32
                                        : HONE_SERVE_VARINT) &&
               each(arg, f->value);
    hone_serve_wire w = hone_serve_wire_of(f);
    if (width && f->bytes % (size_t)width) return false;
    while (w.at < w.end) {
        uint64_t v;
        if (width) v = fixed(w.at, width), w.at += width;
        else if (!varint(&w, &v)) return false;
        if (!each(arg, v)) return false;
    }
    return true;
}

/* ---- writing ---- */

uint8_t *hone_serve_put_room(hone_serve_out *o, size_t n) {
    if (o->failed) return NULL;
    if (n > o->room - o->n) {
        size_t room = o->room ? o->room : 256;
        while (room - o->n < n) room = room > SIZE_MAX / 4 ? SIZE_MAX : room * 2;
        uint8_t *more = realloc(o->at, room);
        if (!more) return o->failed = true, NULL;
        o->at = more, o->room = room;
    }
    o->n += n;
    return o->at + o->n - n;
}
void hone_serve_put(hone_serve_out *o, const void *from, size_t n) {
    uint8_t *to = hone_serve_put_room(o, n);
    if (to && n) memcpy(to, from, n);
}
static int code(uint64_t v, uint8_t out[10]) {
    int n = 0;
    for (; v > 127; v >>= 7) out[n++] = (uint8_t)(v | 128);
    out[n++] = (uint8_t)v;
    return n;
}
static void put_varint(hone_serve_out *o, uint64_t v) {
    uint8_t bytes[10];
    hone_serve_put(o, bytes, (size_t)code(v, bytes));
}
void hone_serve_put_number(hone_serve_out *o, uint32_t number, uint64_t value) {
    put_varint(o, (uint64_t)number << 3 | HONE_SERVE_VARINT);
    put_varint(o, value);
}
void hone_serve_put_head(hone_serve_out *o, uint32_t number, size_t bytes) {
    put_varint(o, (uint64_t)number << 3 | HONE_SERVE_BYTES);
    put_varint(o, bytes);
}
void hone_serve_put_bytes(hone_serve_out *o, uint32_t number, const void *from, size_t n) {
    hone_serve_put_head(o, number, n);
    hone_serve_put(o, from, n);
}
void hone_serve_put_text(hone_serve_out *o, uint32_t number, const char *text) {
    if (text && *text) hone_serve_put_bytes(o, number, text, strlen(text));
}
size_t hone_serve_put_begin(hone_serve_out *o, uint32_t number) {
    put_varint(o, (uint64_t)number << 3 | HONE_SERVE_BYTES);
    return o->n;
}
/* The length goes before what was written: that moves up, which for these small messages costs nothing. */
void hone_serve_put_end(hone_serve_out *o, size_t begun) {
    if (o->failed) return;
    uint8_t bytes[10];
    const size_t n = o->n - begun, head = (size_t)code(n, bytes);
    if (!hone_serve_put_room(o, head)) return;
    memmove(o->at + begun + head, o->at + begun, n);
    memcpy(o->at + begun, bytes, head);
}
void hone_serve_out_took(hone_serve_out *o, size_t *at) {
    enum { MUCH = 64 << 10 };
    if (*at == o->n) o->n = *at = 0;
    if (*at < MUCH || *at < o->n / 2) return;
    memmove(o->at, o->at + *at, o->n - *at);
    o->n -= *at, *at = 0;
}
void hone_serve_out_free(hone_serve_out *o) {
    free(o->at);
    *o = (hone_serve_out){0};
}

/* ---- JSON by table ---- */

static uint64_t number_of(const json_t *v) {
    return json_is_real(v)      ? (uint64_t)(int64_t)json_real_value(v)
           : json_is_boolean(v) ? json_is_true(v)
                                : (uint64_t)json_integer_value(v);
}
static void put_one(hone_serve_out *o, const hone_serve_row *row, const json_t *v) {
    switch (row->as) {
    case HONE_SERVE_AS_TEXT:
        hone_serve_put_bytes(o, (uint32_t)row->number, json_string_value(v), json_string_length(v));
        break;
    case HONE_SERVE_AS_NUMBER: hone_serve_put_number(o, (uint32_t)row->number, number_of(v)); break;
    case HONE_SERVE_AS_FLOAT: {
        const float x = (float)json_number_value(v);
        put_varint(o, (uint64_t)row->number << 3 | 5);
        hone_serve_put(o, &x, sizeof x);
        break;
    }
    case HONE_SERVE_AS_WORD:
        for (uint64_t k = 0; json_is_string(v) && row->words[k]; k++)
            if (!strcmp(row->words[k], json_string_value(v)))
                hone_serve_put_number(o, (uint32_t)row->number, k);
        break;
    case HONE_SERVE_AS_MESSAGE: {
        const size_t begun = hone_serve_put_begin(o, (uint32_t)row->number);
        hone_serve_put_json(o, row->fields, v);
        hone_serve_put_end(o, begun);
        break;
    }
    case HONE_SERVE_AS_MAP: {
        const char *key;
        json_t *member;
        json_object_foreach((json_t *)(uintptr_t)v, key, member) {
            const size_t begun = hone_serve_put_begin(o, (uint32_t)row->number);
            const hone_serve_row value = {"", 2, row->fields ? HONE_SERVE_AS_MESSAGE : HONE_SERVE_AS_TEXT,
                                          row->fields, NULL};
            hone_serve_put_text(o, 1, key);
            put_one(o, &value, member);
            hone_serve_put_end(o, begun);
        }
    }
    }
}

void hone_serve_put_json(hone_serve_out *o, const hone_serve_row *row, const json_t *object) {
    for (; row->key; row++) {
        const json_t *v = json_object_get(object, row->key);
        size_t k;
        json_t *item;
        if (!v || json_is_null(v)) continue;
        if (!json_is_array(v)) {
            put_one(o, row, v);
        } else if (row->as == HONE_SERVE_AS_NUMBER) {
            const size_t begun = hone_serve_put_begin(o, (uint32_t)row->number);
            json_array_foreach(v, k, item) put_varint(o, number_of(item));
            hone_serve_put_end(o, begun);
        } else {
            json_array_foreach(v, k, item) put_one(o, row, item);
        }
    }
}
