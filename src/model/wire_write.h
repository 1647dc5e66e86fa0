/* SPDX-License-Identifier: Apache-2.0
   wire_write: protobuf's wire format, written. The other side of wire.h; knows nothing of ONNX.

   A message stands in front of its bytes with their number, which is known only when it is closed. So small
   things are gathered in one buffer, and large ones (weights) only noted: where they go, and where they lie.
   Sending walks the buffer and the notes in order, so no second copy of the large ones is ever held.

       hone_wire_mark m = hone_wire_open(w, 7);      field 7, a message …
       hone_wire_put_number(w, 1, 3);
       hone_wire_close(w, m);                        … ends here
       if (w->failed) …                              out of memory, once, at the end */
#ifndef HONE_MODEL_WIRE_WRITE_H
#define HONE_MODEL_WIRE_WRITE_H
#include "base/dtype.h"
#include "base/mem.h"
#include "model/export.h"

typedef struct { /* elements that lie elsewhere */
    size_t at;   /* behind this many bytes of the buffer */
    hone_dtype dtype;
    const void *data;
    size_t n;
} hone_wire_piece;
typedef struct {
    uint8_t *bytes;
    size_t n, room;
    hone_vec(hone_wire_piece) piece;
    uint64_t piece_bytes; /* of all pieces, as they will be sent */
    bool failed;
} hone_wire_out;
typedef struct {
    size_t at;
    uint64_t piece_bytes;
    int piece;
    bool wide;
} hone_wire_mark;

void hone_wire_put_number(hone_wire_out *, uint32_t field, uint64_t);
void hone_wire_put_float(hone_wire_out *, uint32_t field, float);
void hone_wire_put_bytes(hone_wire_out *, uint32_t field, const void *, size_t bytes);
void hone_wire_put_text(hone_wire_out *, uint32_t field, const char *);
/* A field of bytes that are n elements, packed as files have them; they must stay where they are until
   sent. */
void hone_wire_put_elements(hone_wire_out *, uint32_t field, hone_dtype, const void *, size_t n);
/* Spaces as the field `filler`, so many (none, perhaps) that the content of the bytes put next, as `field`,
   lies at a multiple of unit (at most 64). */
void hone_wire_put_space(hone_wire_out *, uint32_t filler, uint32_t field, size_t bytes, size_t unit);
hone_wire_mark hone_wire_open(hone_wire_out *, uint32_t field);
/* Its length takes five bytes, however small: what is put inside lies at hone_wire_size from now on, if all
   messages around it are such. */
hone_wire_mark hone_wire_open_wide(hone_wire_out *, uint32_t field);
void hone_wire_close(hone_wire_out *, hone_wire_mark);
static inline uint64_t hone_wire_size(const hone_wire_out *w) { return w->n + w->piece_bytes; }

hone_status hone_wire_send(const hone_wire_out *, const hone_sink *) HONE_CHECKED;
hone_status hone_wire_send_elements(hone_dtype, const void *, size_t n, const hone_sink *) HONE_CHECKED;
void hone_wire_out_free(hone_wire_out *);
#endif
