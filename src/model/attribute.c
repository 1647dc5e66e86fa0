/* SPDX-License-Identifier: Apache-2.0
   attribute: AttributeProto becomes a hone_attr. Bodies and references are left to the importer, which knows
   names. */
#include "model/attribute.h"

#include <string.h>

#include "model/onnx.h"

enum { GRAPH = 5 }; /* AttributeProto.AttributeType */

typedef struct { /* AttributeProto, one of each field */
    hone_field name, ref, one[24];
    bool has[24];
    hone_wire_numbers ints, floats;
    hone_vec(hone_field) strings, tensors;
    uint64_t type;
} attr_parts;

static hone_status take_parts(hone_wire w, attr_parts *p) {
    hone_field f;
    bool good = true, memory = true;
    hone_status s = HONE_OK;
    while (good && memory && !s && hone_wire_next(&w, &f)) {
        bool bytes = f.type == HONE_WIRE_BYTES;
        switch (f.number) {
        case 1: p->name = f, good = bytes; break;
        case 7: s = hone_wire_number(&f, 4, &p->floats), p->has[7] = true; break;
        case 8: s = hone_wire_number(&f, 0, &p->ints), p->has[8] = true; break;
        case 9: good = bytes, memory = !bytes || hone_push(&p->strings, f), p->has[9] = true; break;
        case 10: good = bytes, memory = !bytes || hone_push(&p->tensors, f), p->has[10] = true; break;
        case 20: p->type = f.value; break;
        case 21: p->ref = f, good = bytes; break;
        default:
            if (f.number < 24) p->one[f.number] = f, p->has[f.number] = true;
        }
    }
    return !memory ? HONE_NO_MEMORY : !good || w.bad ? HONE_BAD_INPUT : s;
}

static void free_parts(attr_parts *p) {
    hone_vec_free(&p->ints);
    hone_vec_free(&p->floats);
    hone_vec_free(&p->strings);
    hone_vec_free(&p->tensors);
}

static double float_of(uint64_t bits) {
    uint32_t b = (uint32_t)bits;
    float f;
    memcpy(&f, &b, sizeof f);
    return (double)f;
}

static bool strings_of(hone_import *im, const hone_field *f, int n, hone_attr *a) {
    hone_string *list = HONE_NEW_N(im->scratch, hone_string, n ? n : 1);
    for (int k = 0; list && k < n; k++) {
        list[k] = (hone_string){
            (int64_t)f[k].bytes,
            hone_arena_textn(im->scratch, f[k].bytes ? (const char *)f[k].data : "", f[k].bytes)};
        if (!list[k].text) return false;
    }
    a->s = list;
    return list != NULL;
}

static hone_status tensors_of(hone_import *im, const hone_field *f, int n, bool sparse, hone_attr *a) {
    hone_value **list = HONE_NEW_N(im->scratch, hone_value *, n ? n : 1);
    for (int k = 0; list && k < n; k++) {
        HONE_TRY((sparse ? hone_onnx_sparse : hone_onnx_tensor)(hone_wire_of(f + k), im->files, list + k));
        if (!hone_push(&im->loose, list[k])) {
            hone_value_drop(list[k]);
            return HONE_NO_MEMORY;
        }
    }
    a->tensor = list;
    return list ? HONE_OK : HONE_NO_MEMORY;
}

/* The element type inside a TypeProto, or 0. */
static int64_t elem_type(hone_wire w, int depth) {
    hone_field f;
    int64_t t = 0;
    while (depth < HONE_ONNX_MAX_DEPTH && hone_wire_next(&w, &f)) {
        if (depth % 2 && f.number == 1 && f.type == HONE_WIRE_VARINT) t = (int64_t)f.value;
        else if (f.type == HONE_WIRE_BYTES && (f.number == 1 || f.number == 4 || f.number == 9))
            t = elem_type(hone_wire_of(&f), depth + 1);
    }
    return hone_dtype_valid(t) ? t : 0;
}

/* Old files leave `type` out: then the one field that is there says it. */
static uint64_t guess_type(const attr_parts *p) {
    static const uint8_t of[24] = {[2] = 1, [3] = 2, [4] = 3,  [5] = 4,   [6] = 5,   [7] = 6,
                                   [8] = 7, [9] = 8, [10] = 9, [11] = 10, [14] = 13, [22] = 11};
    for (int k = 0; k < 24; k++)
        if (of[k] && p->has[k]) return of[k];
    return 0;
}

static hone_status make_attr(hone_import *im, const attr_parts *p, hone_attr *a) {
    const char *name = a->name;
    int64_t i = (int64_t)p->one[3].value;
    double f = float_of(p->one[2].value);
    const hone_field *one = p->one;
    switch (p->type ? p->type : guess_type(p)) {
    case 1: *a = hone_attr_of_floats(im, name, &f, 1), a->kind = HONE_ATTR_FLOAT; return HONE_OK;
    case 2: *a = hone_attr_of_int(im, name, i); return HONE_OK;
    case 3:
        a->kind = HONE_ATTR_STRING, a->n = 1;
        return strings_of(im, one + 4, 1, a) ? HONE_OK : HONE_NO_MEMORY;
    case 4: a->kind = HONE_ATTR_TENSOR, a->n = 1; return tensors_of(im, one + 5, 1, false, a);
    case 6: {
        double *list = HONE_NEW_N(im->scratch, double, p->floats.n ? p->floats.n : 1);
        for (int k = 0; list && k < p->floats.n; k++) list[k] = float_of(p->floats.at[k]);
        *a = (hone_attr){.name = name, .kind = HONE_ATTR_FLOATS, .n = p->floats.n, .f = list};
        return list ? HONE_OK : HONE_NO_MEMORY;
    }
    case 7: *a = hone_attr_of_ints(im, name, (const int64_t *)p->ints.at, p->ints.n); return HONE_OK;
    case 8:
        a->kind = HONE_ATTR_STRINGS, a->n = p->strings.n;
        return strings_of(im, p->strings.at, p->strings.n, a) ? HONE_OK : HONE_NO_MEMORY;
    case 9:
        a->kind = HONE_ATTR_TENSORS, a->n = p->tensors.n;
        return tensors_of(im, p->tensors.at, p->tensors.n, false, a);
    case 11: a->kind = HONE_ATTR_TENSOR, a->n = 1; return tensors_of(im, one + 22, 1, true, a);
    case 13:
        *a = hone_attr_of_int(im, name, elem_type(hone_wire_of(one + 14), 0)), a->kind = HONE_ATTR_TYPE;
        return HONE_OK;
    default: return hone_fail(HONE_NOT_SUPPORTED, "is of an unknown type");
    }
}

hone_status hone_onnx_read_attr(hone_import *im, hone_wire w, hone_onnx_attr *out) {
    attr_parts p = {0};
    hone_status s = take_parts(w, &p);
    *out = (hone_onnx_attr){.attr = {.name = hone_wire_text(im->scratch, &p.name)}};
    if (p.ref.bytes) out->ref = hone_wire_text(im->scratch, &p.ref);
    if (!out->attr.name || (p.ref.bytes && !out->ref)) s = HONE_NO_MEMORY, out->attr.name = "";
    else if (s == HONE_BAD_INPUT) hone_fail(s, "is damaged");
    out->untyped = !p.type && !out->ref;
    if (s) {
        free_parts(&p);
        return s;
    }
    if (!s && !out->ref && (p.type ? p.type : guess_type(&p)) == GRAPH) {
        out->attr.kind = HONE_ATTR_BODY;
        out->graph = p.one[6];
        if (!p.one[6].data) s = hone_fail(HONE_BAD_INPUT, "has no graph");
    } else if (!s && !out->ref) {
        s = make_attr(im, &p, &out->attr);
    }
    free_parts(&p);
    return s;
}
