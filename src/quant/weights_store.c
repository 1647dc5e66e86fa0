/* SPDX-License-Identifier: Apache-2.0
   weights_store: a matrix of few bits as operands of the ops that take it: MatMulNBits, MatMulBnb4,
   GatherBlockQuantized, DequantizeLinear. Layouts only. */
#include <string.h>

#include "quant/weights.h"

/* c 0: of rank 2; b 0: of rank 1 */
static hone_value *tensor(hone_dtype t, int64_t a, int64_t b, int64_t c) {
    const int64_t dim[] = {a, b, c};
    hone_value *v = NULL;
    return hone_value_tensor(t, dim, c ? 3 : b ? 2 : 1, &v) ? NULL : v;
}
hone_value *hone_weights_packed(const hone_weights *q) {
    const int bits = q->kind->bits, per = 8 / bits;
    const int64_t bytes = q->block / per;
    hone_value *v = tensor(HONE_DTYPE_U8, q->n, q->blocks, bytes);
    uint8_t *to = v ? v->data : NULL;
    for (int64_t n = 0; v && n < q->n; n++, to += q->blocks * bytes)
        for (int64_t k = 0; k < q->k; k++)
            to[k / per] = (uint8_t)(to[k / per] | q->level[n * q->k + k] << k % per * bits);
    return v;
}
hone_value *hone_weights_packed_zeros(const hone_weights *q) {
    const int bits = q->kind->bits;
    const int64_t bytes = (q->blocks * bits + 7) / 8;
    hone_value *v = tensor(HONE_DTYPE_U8, q->n, bytes, 0);
    uint8_t *to = v ? v->data : NULL;
    for (int64_t n = 0; v && n < q->n; n++, to += bytes)
        for (int64_t b = 0; b < q->blocks; b++)
            to[b * bits / 8] = (uint8_t)(to[b * bits / 8] | q->zero[n * q->blocks + b] << b * bits % 8);
    return v;
}
hone_value *hone_weights_scales(const hone_weights *q, bool transposed, bool flat) {
    hone_value *v =
        flat ? tensor(HONE_DTYPE_F32, q->n * q->blocks, 0, 0)
             : tensor(HONE_DTYPE_F32, transposed ? q->blocks : q->n, transposed ? q->n : q->blocks, 0);
    for (int64_t n = 0; v && n < q->n; n++)
        for (int64_t b = 0; b < q->blocks; b++)
            ((float *)v->data)[transposed ? b * q->n + n : n * q->blocks + b] = q->scale[n * q->blocks + b];
    return v;
}
hone_value *hone_weights_bnb4(const hone_weights *q) {
    hone_value *v = tensor(HONE_DTYPE_U8, (q->n * q->k + 1) / 2, 0, 0);
    uint8_t *to = v ? v->data : NULL;
    for (int64_t i = 0; v && i < q->n * q->k; i++)
        to[i / 2] = (uint8_t)(to[i / 2] | q->level[i] << (i % 2 ? 0 : 4));
    return v;
}
/* A level as the type has it: unsigned with a zero point, signed around the middle without one, or a float's
   byte. */
void hone_weights_put(const hone_weights *q, hone_dtype t, uint8_t *to, int level) {
    if (!q->kind->uniform)
        hone_dtype_store(t, to, HONE_F32, (hone_scalar){.f32 = q->kind->code[level]}, false);
    else *to = (uint8_t)(t == q->kind->stored[1] ? level - q->kind->middle : level);
}
hone_value *hone_weights_levels(const hone_weights *q, bool transposed, bool unsigned_) {
    const hone_dtype t = q->kind->stored[q->symmetric && !unsigned_];
    hone_value *v = t ? tensor(t, transposed ? q->n : q->k, transposed ? q->k : q->n, 0) : NULL;
    for (int64_t n = 0; v && n < q->n; n++)
        for (int64_t k = 0; k < q->k; k++)
            hone_weights_put(q, t, (uint8_t *)v->data + (transposed ? n * q->k + k : k * q->n + n),
                             q->level[n * q->k + k]);
    return v;
}
hone_value *hone_weights_zeros(const hone_weights *q, bool transposed) {
    hone_value *v =
        tensor(q->kind->stored[0], transposed ? q->n : q->blocks, transposed ? q->blocks : q->n, 0);
    for (int64_t n = 0; v && n < q->n; n++)
        for (int64_t b = 0; b < q->blocks; b++)
            ((uint8_t *)v->data)[transposed ? n * q->blocks + b : b * q->n + n] = q->zero[n * q->blocks + b];
    return v;
}
static hone_value *line_of(hone_value *v) { /* one a column: of rank 1, as an axis wants it */
    if (!v) return NULL;
    v->dim[0] = v->dim[0] * v->dim[1], v->rank = 1;
    return v;
}
hone_value *hone_weights_floats(const hone_weights *q, bool transposed, bool noted) {
    hone_value *v = tensor(HONE_DTYPE_F32, transposed ? q->n : q->k, transposed ? q->k : q->n, 0);
    for (int64_t n = 0; v && n < q->n; n++)
        for (int64_t k = 0; k < q->k; k++)
            ((float *)v->data)[transposed ? n * q->k + k : k * q->n + n] = hone_weights_value(q, n, k);
    if (!v || !noted) return v;
    const bool whole = q->blocks == 1;
    hone_value *levels = hone_weights_levels(q, transposed, false),
               *scales = hone_weights_scales(q, !transposed, false),
               *zeros = q->symmetric ? NULL : hone_weights_zeros(q, transposed);
    if (levels && scales && (zeros || q->symmetric)) {
        if (whole) scales = line_of(scales), zeros = line_of(zeros);
        hone_value_note(v, levels, scales, zeros, whole ? !transposed : transposed, whole ? 0 : q->block);
    }
    hone_value_drop(levels), hone_value_drop(scales), hone_value_drop(zeros);
    if (v->from) return v;
    hone_value_drop(v);
    return NULL;
}
