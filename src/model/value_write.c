/* SPDX-License-Identifier: Apache-2.0
   value_write: one value as the message that ONNX's test data has for it: TensorProto, SequenceProto,
   OptionalProto or MapProto. The way back from hone_onnx_read_value; weights of models are
   export_value.c's. */
#include "model/onnx.h"
#include "model/wire_write.h"

/* Of SequenceProto and OptionalProto: the field of a member, and what elem_type calls it. */
static const struct {
    uint8_t field, type;
} member[] = {[HONE_TAG_TENSOR] = {3, 1},
              [HONE_TAG_SEQUENCE] = {5, 3},
              [HONE_TAG_MAP] = {6, 4},
              [HONE_TAG_OPTIONAL] = {7, 5}};

/* Elements from..from + n of a tensor, of this shape. */
static void put_tensor(hone_wire_out *w, const hone_value *v, int64_t from, int64_t n, int rank) {
    for (int k = 0; k < rank; k++) hone_wire_put_number(w, 1, (uint64_t)v->dim[k]);
    hone_wire_put_number(w, 2, (uint64_t)v->dtype);
    for (int64_t k = from; v->dtype == HONE_DTYPE_STRING && k < from + n; k++) {
        const hone_string *s = hone_value_string(v, k);
        hone_wire_put_bytes(w, 6, s->text, (size_t)s->bytes);
    }
    if (v->dtype != HONE_DTYPE_STRING)
        hone_wire_put_elements(w, 9, v->dtype,
                               (const char *)v->data + (size_t)from * hone_dtypes[v->dtype].bytes, (size_t)n);
}

static void put_value(hone_wire_out *w, const hone_value *v);
static void put_list(hone_wire_out *w, const hone_value *v) {
    if (v->n_item) hone_wire_put_number(w, 2, member[v->item[0]->tag].type);
    for (int k = 0; k < v->n_item; k++) {
        hone_wire_mark m = hone_wire_open(w, member[v->item[k]->tag].field);
        put_value(w, v->item[k]);
        hone_wire_close(w, m);
    }
}

/* A vector of values is written as a sequence of scalars: there is no other form. */
static void put_map(hone_wire_out *w, const hone_value *keys, const hone_value *values) {
    const int64_t n = hone_value_count(keys);
    hone_wire_put_number(w, 2, (uint64_t)keys->dtype);
    for (int64_t k = 0; k < n; k++) {
        const hone_string *s = keys->dtype == HONE_DTYPE_STRING ? hone_value_string(keys, k) : NULL;
        if (s) hone_wire_put_bytes(w, 4, s->text, (size_t)s->bytes);
        else hone_wire_put_number(w, 3, (uint64_t)hone_value_i64(keys, k));
    }
    hone_wire_mark list = hone_wire_open(w, 5);
    if (values->tag == HONE_TAG_SEQUENCE) put_list(w, values);
    else {
        hone_wire_put_number(w, 2, member[HONE_TAG_TENSOR].type);
        for (int64_t k = 0; k < n; k++) {
            hone_wire_mark m = hone_wire_open(w, member[HONE_TAG_TENSOR].field);
            put_tensor(w, values, k, 1, 0);
            hone_wire_close(w, m);
        }
    }
    hone_wire_close(w, list);
}

static void put_value(hone_wire_out *w, const hone_value *v) {
    if (v->tag == HONE_TAG_TENSOR) put_tensor(w, v, 0, hone_value_count(v), v->rank);
    else if (v->tag == HONE_TAG_MAP) put_map(w, v->item[0], v->item[1]);
    else put_list(w, v);
}

hone_status hone_onnx_write_value(const hone_value *v, const hone_sink *to) {
    hone_wire_out w = {0};
    put_value(&w, v);
    hone_status s =
        w.failed ? hone_fail(HONE_NO_MEMORY, "no memory to write a value") : hone_wire_send(&w, to);
    hone_wire_out_free(&w);
    return s;
}
