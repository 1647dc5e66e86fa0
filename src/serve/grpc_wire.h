/* SPDX-License-Identifier: Apache-2.0
   grpc_wire: protobuf's wire format: fields read in place, messages written, and documents of JSON written as
   messages by tables of their fields. Knows no message by name; those are in grpc_message.c and
   grpc_documents.c. */
#ifndef HONE_SERVE_GRPC_WIRE_H
#define HONE_SERVE_GRPC_WIRE_H
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* ---- reading ---- */
typedef struct {
    const uint8_t *at, *end;
    bool bad; /* the bytes were no message */
} hone_serve_wire;
enum { HONE_SERVE_VARINT = 0, HONE_SERVE_64 = 1, HONE_SERVE_BYTES = 2, HONE_SERVE_32 = 5 };
typedef struct {
    uint32_t number;
    int type;
    uint64_t value;      /* VARINT, 64, 32 */
    const uint8_t *data; /* BYTES */
    size_t bytes;
} hone_serve_field;
bool hone_serve_wire_next(hone_serve_wire *, hone_serve_field *); /* false: the end, or bad */
static inline hone_serve_wire hone_serve_wire_of(const hone_serve_field *f) {
    return (hone_serve_wire){f->data, f->data ? f->data + f->bytes : NULL, false}; /* NULL: it is a number */
}
/* The numbers of a repeated field, one call a field, packed or not. Calls `each` for every one; false: bad,
   or `each` said so. width 0: varints, else 4 or 8 bytes. */
bool hone_serve_wire_numbers(const hone_serve_field *, int width, bool (*each)(void *, uint64_t), void *arg);

/* ---- writing ---- */
typedef struct {
    uint8_t *at;
    size_t n, room;
    bool failed; /* no memory: what was written is not whole */
} hone_serve_out;
void hone_serve_put(hone_serve_out *, const void *, size_t);
/* so many bytes more, to be filled; NULL: no memory */
uint8_t *hone_serve_put_room(hone_serve_out *, size_t);
void hone_serve_put_number(hone_serve_out *, uint32_t number, uint64_t value); /* varint; zero too */
void hone_serve_put_bytes(hone_serve_out *, uint32_t number, const void *, size_t);
void hone_serve_put_text(hone_serve_out *, uint32_t number, const char *text); /* "" is left out */
/* Head of a field of so many bytes, which the caller adds. */
void hone_serve_put_head(hone_serve_out *, uint32_t number, size_t bytes);
/* A message within: what is written between the two is its contents. */
size_t hone_serve_put_begin(hone_serve_out *, uint32_t number);
void hone_serve_put_end(hone_serve_out *, size_t begun);
/* What lies before `at` has been taken: now and then the rest moves up. */
void hone_serve_out_took(hone_serve_out *, size_t *at);
void hone_serve_out_free(hone_serve_out *);

/* ---- JSON by table ---- */
typedef enum {
    HONE_SERVE_AS_TEXT,
    HONE_SERVE_AS_NUMBER, /* integers and bools; lists are packed */
    HONE_SERVE_AS_FLOAT,
    HONE_SERVE_AS_WORD,    /* an enum's name; `words` are its values from 0, up to a NULL */
    HONE_SERVE_AS_MESSAGE, /* of `fields` */
    /* an object's members: key 1, value 2: of `fields`, or a text where that is NULL */
    HONE_SERVE_AS_MAP
} hone_serve_as;
typedef struct hone_serve_row {
    const char *key; /* NULL: the end */
    int number;
    hone_serve_as as;
    const struct hone_serve_row *fields;
    const char *const *words;
} hone_serve_row;
/* Members that no row names are left out. A list's items are written each. */
void hone_serve_put_json(hone_serve_out *, const hone_serve_row *, const json_t *object);
#endif
