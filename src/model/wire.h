/* SPDX-License-Identifier: Apache-2.0
   wire: protobuf's wire format, read in place. A span is a message that was not decoded yet; fields are taken
   from its front one by one. Knows nothing of ONNX.

       hone_wire w = {data, data + bytes};
       hone_field f;
       while (hone_wire_next(&w, &f)) if (f.number == 7) …
       if (w.bad) …                                       the bytes were no message */
#ifndef HONE_MODEL_WIRE_H
#define HONE_MODEL_WIRE_H
#include "base/mem.h"

typedef enum { HONE_WIRE_VARINT = 0, HONE_WIRE_64 = 1, HONE_WIRE_BYTES = 2, HONE_WIRE_32 = 5 } hone_wire_type;
typedef struct {
    const uint8_t *at, *end;
    bool bad;
} hone_wire;
typedef struct {
    uint32_t number;
    hone_wire_type type;
    uint64_t value;      /* VARINT, 64, 32 */
    const uint8_t *data; /* BYTES */
    size_t bytes;
} hone_field;

bool hone_wire_varint(hone_wire *, uint64_t *out); /* false: end, or bad */
/* The next field; false at the end, and where the bytes are wrong (then bad is set). Groups, which ONNX never
   used, are bad. */
bool hone_wire_next(hone_wire *, hone_field *out);
static inline hone_wire hone_wire_of(const hone_field *f) {
    return (hone_wire){f->data, f->data ? f->data + f->bytes : f->data, false};
}
/* The whole message is well formed at this level. */
bool hone_wire_good(hone_wire);

/* A repeated number, packed or not: appends what this field holds. `width` is 0 for varints, else 4 or 8
   bytes. HONE_BAD_INPUT or HONE_NO_MEMORY, without a message. */
typedef hone_vec(uint64_t) hone_wire_numbers;
hone_status hone_wire_number(const hone_field *, int width, hone_wire_numbers *out);
/* a string field, zero-terminated, cut at a zero byte; NULL: no memory */
char *hone_wire_text(hone_arena *, const hone_field *);
#endif
