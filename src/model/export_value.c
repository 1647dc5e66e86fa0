/* SPDX-License-Identifier: Apache-2.0
   export_value: tensors, attributes and types as TensorProto, AttributeProto and TypeProto. */
#include <stdio.h>
#include <string.h>

#include "base/round.h"
#include "model/export_write.h"
#include "model/wire.h"

enum {
    SMALL = 1024 /* bytes: stays in the model when weights go beside it */,
    PAGE = 4096,
    LINE = 64,
    LARGE = 1 << 20
};

/* ---- tensors ------------------------------------------------------------------------------------------- */
static void put_entry(hone_wire_out *w, const char *key, const char *value) {
    hone_wire_mark m = hone_wire_open(w, 13);
    hone_wire_put_text(w, 1, key);
    hone_wire_put_text(w, 2, value);
    hone_wire_close(w, m);
}

/* Large ones begin at a page, so that a reader may map them; all at a line of cache. */
static void put_outside(hone_exporter *x, const hone_value *v, size_t bytes) {
    uint64_t unit = bytes >= LARGE ? PAGE : LINE, offset = hone_round_up(x->outside_bytes, unit);
    char text[24];
    if (!hone_push(&x->outside, ((hone_export_outside){v, offset}))) {
        hone_export_no_memory(x);
        return;
    }
    x->outside_bytes = offset + bytes;
    put_entry(&x->w, "location", x->data_name);
    snprintf(text, sizeof text, "%llu", (unsigned long long)offset);
    put_entry(&x->w, "offset", text);
    snprintf(text, sizeof text, "%llu", (unsigned long long)bytes);
    put_entry(&x->w, "length", text);
    hone_wire_put_number(&x->w, 14, 1);
}

void hone_export_tensor(hone_exporter *x, uint32_t field, const char *name, const hone_value *v) {
    hone_wire_out *w = &x->w;
    size_t n = (size_t)hone_value_count(v), bytes = hone_dtype_file_bytes(v->dtype, n);
    const bool aligned = x->placed && !x->data_name && bytes >= SMALL && v->dtype != HONE_DTYPE_STRING;
    hone_wire_mark m = aligned ? hone_wire_open_wide(w, field) : hone_wire_open(w, field);
    for (int k = 0; k < v->rank; k++) hone_wire_put_number(w, 1, (uint64_t)v->dim[k]);
    hone_wire_put_number(w, 2, (uint64_t)v->dtype);
    for (size_t k = 0; v->dtype == HONE_DTYPE_STRING && k < n; k++) {
        const hone_string *s = hone_value_string(v, (int64_t)k);
        hone_wire_put_bytes(w, 6, s->text, (size_t)s->bytes);
    }
    if (name) hone_wire_put_text(w, 8, name);
    if (v->dtype != HONE_DTYPE_STRING) {
        bool initializer = field == 5 && name;
        if (initializer && x->data_name && bytes >= SMALL) put_outside(x, v, bytes);
        else {
            /* a comment, so that a reader may use them where the file is mapped */
            if (aligned) hone_wire_put_space(w, 12, 9, bytes, LINE);
            hone_wire_put_elements(w, 9, v->dtype, v->data, n);
        }
    }
    hone_wire_close(w, m);
}

/* ---- types --------------------------------------------------------------------------------------------- */
static void put_tensor_type(hone_wire_out *w, hone_dtype t, const hone_graph *g, const hone_var *shape) {
    hone_wire_mark m = hone_wire_open(w, 1);
    hone_wire_put_number(w, 1, (uint64_t)t);
    if (shape && shape->rank >= 0) {
        hone_wire_mark s = hone_wire_open(w, 2);
        for (int k = 0; k < shape->rank; k++) {
            hone_dim d = shape->dim[k];
            hone_wire_mark one = hone_wire_open(w, 1);
            if (hone_dim_is_number(d)) hone_wire_put_number(w, 1, (uint64_t)d);
            else if (hone_dim_is_symbolic(d)) {
                int handle = (int)(d - HONE_DIM_BAND);
                bool symbol = hone_dim_handle_op(g->dims, handle) == HONE_DIM_SYMBOL;
                const char *name = symbol ? hone_dim_symbol_name(g->dims, handle) : "";
                hone_text t2 = {0};
                /* an expression: for people, and for whoever can read it */
                if (!symbol) hone_dim_print(g->dims, d, &t2);
                if (t2.text && !t2.failed) name = t2.text;
                if (name[0]) hone_wire_put_text(w, 2, name);
                hone_text_free(&t2);
            }
            hone_wire_close(w, one);
        }
        hone_wire_close(w, s);
    }
    hone_wire_close(w, m);
}

static void put_elem_type(hone_wire_out *w, uint32_t field, hone_dtype t) {
    hone_wire_mark m = hone_wire_open(w, field);
    put_tensor_type(w, t, NULL, NULL);
    hone_wire_close(w, m);
}

static bool is_tensor(const hone_stated *t) {
    hone_wire w = {t->data, (const uint8_t *)t->data + t->bytes, false};
    hone_field f;
    return hone_wire_next(&w, &f) && f.number == 1;
}

/* A tensor of known rank says its own type. For the rest what the model stated is better: a var does not know
   what its members are made of. Nothing is written where nothing is known: a reader then infers it. */
void hone_export_type(hone_exporter *x, uint32_t field, const hone_export_scope *s, hone_vid v,
                      const hone_stated *stated) {
    static const uint32_t kinds[] = {
        [HONE_TAG_TENSOR] = 1, [HONE_TAG_SEQUENCE] = 4, [HONE_TAG_MAP] = 5, [HONE_TAG_OPTIONAL] = 9};
    const hone_var *var = s->g->var.at + v;
    hone_wire_out *w = &x->w;
    bool tensor = var->tag == HONE_TAG_TENSOR;
    if (stated && stated->bytes && !(tensor && var->dtype && var->rank >= 0 && is_tensor(stated))) {
        hone_wire_put_bytes(w, field, stated->data, stated->bytes);
        return;
    }
    if (!var->dtype || (s->up && !tensor)) return;
    hone_wire_mark m = hone_wire_open(w, field);
    if (tensor) {
        put_tensor_type(w, var->dtype, s->g, s->up ? NULL : var);
    } else {
        hone_wire_mark list = hone_wire_open(w, kinds[var->tag]);
        if (var->tag == HONE_TAG_MAP) hone_wire_put_number(w, 1, HONE_DTYPE_I64);
        put_elem_type(w, var->tag == HONE_TAG_MAP ? 2 : 1, var->dtype);
        hone_wire_close(w, list);
    }
    hone_wire_close(w, m);
}

/* What a Loop gives its body has no dims, and some readers want to see it said. */
void hone_export_scalar_type(hone_exporter *x, uint32_t field, hone_dtype t) {
    hone_wire_mark m = hone_wire_open(&x->w, field);
    put_tensor_type(&x->w, t, NULL, &(hone_var){.rank = 0});
    hone_wire_close(&x->w, m);
}

/* ---- attributes ---------------------------------------------------------------------------------------- */
void hone_export_attr(hone_exporter *x, hone_export_scope *s, const hone_onnx_node *n, const hone_attr *a) {
    /* AttributeProto.AttributeType */
    enum { FLOAT = 1, INT, STRING, TENSOR, GRAPH, FLOATS, INTS, STRINGS, TENSORS, TYPE = 13 };
    static const uint8_t types[] = {
        [HONE_ATTR_INT] = INT,        [HONE_ATTR_FLOAT] = FLOAT,   [HONE_ATTR_STRING] = STRING,
        [HONE_ATTR_INTS] = INTS,      [HONE_ATTR_FLOATS] = FLOATS, [HONE_ATTR_STRINGS] = STRINGS,
        [HONE_ATTR_TENSOR] = TENSOR,  [HONE_ATTR_BODY] = GRAPH,    [HONE_ATTR_TYPE] = INT,
        [HONE_ATTR_TENSORS] = TENSORS};
    hone_wire_out *w = &x->w;
    uint8_t type = types[a->kind];
    /* the one op that says it by a TypeProto */
    if (a->kind == HONE_ATTR_TYPE && strcmp(n->op, "Optional") == 0) type = TYPE;
    hone_wire_mark m = hone_wire_open(w, 5);
    hone_wire_put_text(w, 1, a->name);
    switch (type) {
    case FLOAT: hone_wire_put_float(w, 2, (float)a->f[0]); break;
    case INT: hone_wire_put_number(w, 3, (uint64_t)a->i[0]); break;
    case STRING: hone_wire_put_bytes(w, 4, a->s[0].text, (size_t)a->s[0].bytes); break;
    case TENSOR: hone_export_tensor(x, 5, NULL, a->tensor[0]); break;
    case GRAPH: hone_export_graph(x, 6, n->of->body[a->body], s, n->of); break;
    case TYPE: {
        hone_wire_mark t = hone_wire_open(w, 14);
        put_tensor_type(w, (hone_dtype)a->i[0], NULL, NULL);
        hone_wire_close(w, t);
        break;
    }
    default:
        for (int k = 0; k < a->n; k++) {
            if (type == FLOATS) hone_wire_put_float(w, 7, (float)a->f[k]);
            else if (type == INTS) hone_wire_put_number(w, 8, (uint64_t)a->i[k]);
            else if (type == STRINGS) hone_wire_put_bytes(w, 9, a->s[k].text, (size_t)a->s[k].bytes);
            else hone_export_tensor(x, 10, NULL, a->tensor[k]);
        }
    }
    hone_wire_put_number(w, 20, type);
    hone_wire_close(w, m);
}

/* ---- constants that are no tensors --------------------------------------------------------------------- */
void hone_export_list(hone_exporter *x, hone_export_scope *s, const char *name, const hone_value *v) {
    hone_onnx_node node = {.out = &name, .n_out = 1};
    hone_value *tensor[] = {(hone_value *)v};
    int64_t type = v->dtype ? v->dtype : HONE_DTYPE_F32;
    hone_attr value = {.name = "value", .kind = HONE_ATTR_TENSOR, .n = 1, .tensor = tensor};
    hone_attr dtype = {
        .name = v->tag == HONE_TAG_OPTIONAL ? "type" : "dtype", .kind = HONE_ATTR_TYPE, .n = 1, .i = &type};
    const char **in = HONE_NEW_N(x->arena, const char *, v->n_item + 1);
    if (!in) {
        hone_export_no_memory(x);
        return;
    }
    if (v->tag == HONE_TAG_MAP) {
        hone_export_fail(x,
                         hone_fail(HONE_NOT_SUPPORTED,
                                   "cannot export constant '%.100s': ONNX has no op that makes a map", name));
        return;
    }
    for (int k = 0; k < v->n_item && v->tag != HONE_TAG_TENSOR; k++)
        hone_export_list(x, s, in[k] = hone_export_fresh(x, name), v->item[k]);
    node.in = in, node.n_in = v->tag == HONE_TAG_TENSOR ? 0 : v->n_item;
    node.attr = v->tag == HONE_TAG_TENSOR ? &value : &dtype;
    node.n_attr = v->tag == HONE_TAG_TENSOR || !v->n_item;
    node.op = v->tag == HONE_TAG_TENSOR     ? "Constant"
              : v->tag == HONE_TAG_OPTIONAL ? "Optional"
              : v->n_item                   ? "SequenceConstruct"
                                            : "SequenceEmpty";
    if (!x->status) hone_export_put_node(x, s, &node);
}
