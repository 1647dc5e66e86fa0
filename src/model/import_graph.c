/* SPDX-License-Identifier: Apache-2.0
   import_graph: a GraphProto becomes a graph: its initializers, inputs with their types, nodes and
   outputs. */
#include "model/scope.h"

#include <string.h>

#include "model/onnx.h"

/* ---- types of inputs ----------------------------------------------------------------------------------- */
/* Some exporters name every dim that they do not know alike: "?", "-1", "None". Such a name says nothing
   about equal sizes. */
static bool says_nothing(const char *name) {
    if (!strcmp(name, "None") || !strcmp(name, "null") || !strcmp(name, "unknown")) return true;
    for (; *name; name++)
        if ((*name >= 'a' && *name <= 'z') || (*name >= 'A' && *name <= 'Z') || (*name & 0x80)) return false;
    return true;
}
static hone_dim read_dim(hone_scope *s, hone_wire w) {
    hone_field f;
    hone_dim d = 0;
    const char *name = NULL;
    while (hone_wire_next(&w, &f)) {
        if (f.number == 1 && f.type == HONE_WIRE_VARINT) d = (hone_dim)f.value, name = NULL;
        if (f.number == 2 && f.type == HONE_WIRE_BYTES) d = 0, name = hone_scope_text(s, &f);
    }
    return d > 0 ? d : hone_dim_symbol(s->g->dims, name && !says_nothing(name) ? name : NULL);
}

static void read_tensor_type(hone_scope *s, hone_wire w, hone_vid id, bool shaped) {
    hone_field f, dim;
    while (hone_wire_next(&w, &f)) {
        hone_var *v = s->g->var.at + id;
        if (f.number == 1 && f.type == HONE_WIRE_VARINT) {
            if (hone_dtype_valid((int64_t)f.value)) v->dtype = (hone_dtype)f.value;
            else if (f.value)
                hone_import_problem(&s->m->im, HONE_NOT_SUPPORTED,
                                    "input '%.100s' has unknown element type %llu", v->name,
                                    (unsigned long long)f.value);
        }
        if (f.number != 2 || f.type != HONE_WIRE_BYTES || !shaped) continue;
        int rank = 0;
        for (hone_wire shape = hone_wire_of(&f); hone_wire_next(&shape, &dim);) {
            if (dim.number != 1 || dim.type != HONE_WIRE_BYTES) continue;
            if (rank == HONE_MAX_RANK) {
                hone_import_problem(&s->m->im, HONE_NOT_SUPPORTED, "input '%.100s' has more than %d dims",
                                    v->name, HONE_MAX_RANK);
                return;
            }
            v->dim[rank++] = read_dim(s, hone_wire_of(&dim));
        }
        v->rank = (int8_t)rank;
    }
}

/* TypeProto. In sequences, optionals and maps the type of the tensors inside is what the var's dtype says. */
static void read_type(hone_scope *s, hone_wire w, hone_vid id, bool shaped, int depth) {
    static const hone_tag tags[] = {[4] = HONE_TAG_SEQUENCE, [5] = HONE_TAG_MAP, [9] = HONE_TAG_OPTIONAL};
    hone_field f, inner;
    if (depth > HONE_ONNX_MAX_DEPTH) return;
    while (hone_wire_next(&w, &f)) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 1 || f.number == 8)
            read_tensor_type(s, hone_wire_of(&f), id, shaped && depth == 0 && f.number == 1);
        if (f.number != 4 && f.number != 5 && f.number != 9) continue;
        if (depth == 0) s->g->var.at[id].tag = tags[f.number];
        /* a map's value type is field 2 */
        for (hone_wire of = hone_wire_of(&f); hone_wire_next(&of, &inner);)
            if (inner.type == HONE_WIRE_BYTES && inner.number == (f.number == 5 ? 2u : 1u))
                read_type(s, hone_wire_of(&inner), id, false, depth + 1);
    }
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
/* Is it one of the defaults that a caller wants to give? */
static bool is_open(hone_scope *s, const hone_field *name) {
    const hone_import *im = &s->m->im;
    for (int k = 0; k < im->n_open; k++)
        if (strlen(im->open[k]) == name->bytes && name->bytes &&
            memcmp(im->open[k], name->data, name->bytes) == 0)
            return true;
    return false;
}

void hone_import_initializer(hone_scope *s, const hone_field *f, bool sparse) {
    hone_import *im = &s->m->im;
    hone_wire w = hone_wire_of(f);
    hone_field name = hone_onnx_name_field(w, 8);
    if (sparse) { /* the name is that of its values */
        hone_field values = hone_onnx_name_field(w, 1);
        name = hone_onnx_name_field(hone_wire_of(&values), 8);
    }
    if (!s->up && is_open(s, &name)) return;
    hone_value *v;
    hone_status st = (sparse ? hone_onnx_sparse : hone_onnx_tensor)(w, im->files, &v);
    if (st) {
        if (st == HONE_NO_MEMORY) hone_import_no_memory(im);
        else hone_import_problem(im, st, "%s", hone_fail_text());
        v = NULL;
    }
    const char *full = hone_scope_full(s, hone_scope_text(s, &name));
    if (!name.bytes) {
        hone_import_forgive(im, "graph '%.60s': an initializer has no name, and nothing can read it",
                            s->g->name);
        hone_value_drop(v);
        return;
    }
    hone_vid before = hone_graph_find(s->g, full);
    if (before >= 0) { /* nothing was made yet but initializers */
        hone_var *var = s->g->var.at + before;
        hone_import_forgive(im, "initializer '%.100s' is there twice: the last one counts", full);
        if (!v) return;
        hone_value_drop(var->value);
        var->value = v, var->dtype = v->dtype, var->rank = v->rank;
        for (int k = 0; k < v->rank; k++) var->dim[k] = v->dim[k];
        return;
    }
    /* One that could not be read still has its name, so that its readers are not reported too. */
    if ((v ? hone_graph_const(s->g, full, v) : hone_graph_var(s->g, full)) < 0) hone_import_no_memory(im);
}

/* The TypeProto of an input or output of the model, for whoever writes the model again. */
static bool keep_stated(hone_scope *s, hone_stated_types *list, const hone_field *type) {
    return s->up || hone_push_in(s->g->arena, list, ((hone_stated){type->data, type->bytes}));
}

static void import_input(hone_scope *s, const hone_field *f) {
    hone_import *im = &s->m->im;
    hone_wire w = hone_wire_of(f);
    hone_field name = hone_onnx_name_field(w, 1), type = hone_onnx_name_field(w, 2);
    const char *text = hone_scope_text(s, &name);
    hone_vid known = hone_graph_find(s->g, hone_scope_full(s, text));
    /* an initializer's default */
    if (known >= 0 && !s->up && (s->g->var.at[known].value || im->n_problem)) return;
    if (!text[0] && !s->up) {
        hone_import_forgive(im, "an input has no name: it is left out");
        return;
    }
    if (!text[0])
        hone_import_problem(im, HONE_BAD_INPUT, "graph '%.60s' has an input without a name", s->g->name);
    hone_vid id = hone_scope_define(s, text, "input");
    if (id < 0) return;
    read_type(s, hone_wire_of(&type), id, !s->up, 0);
    if (!hone_push(&s->g->in, id) || !keep_stated(s, &s->g->in_stated, &type)) hone_import_no_memory(im);
}

/* False: the bytes are damaged. Captures are left to the caller. */
bool hone_import_graph(hone_scope *s, hone_wire w) {
    hone_import *im = &s->m->im;
    hone_field f;
    if (!hone_wire_good(w)) return false;
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if ((f.number == 5 || f.number == 15) && f.type == HONE_WIRE_BYTES)
            hone_import_initializer(s, &f, f.number == 15);
    for (hone_wire c = w; hone_wire_next(&c, &f);)
        if (f.number == 11 && f.type == HONE_WIRE_BYTES) import_input(s, &f);
    for (int k = 0; !s->up && k < im->n_open; k++)
        if (hone_graph_find(s->g, im->open[k]) < 0)
            hone_import_problem(im, HONE_BAD_INPUT,
                                "'%.100s' is not listed as an input: no value can be given for it",
                                im->open[k]);
    hone_import_nodes(s, w, 1);
    for (hone_wire c = w; !hone_import_stop(im) && hone_wire_next(&c, &f);) {
        if (f.number != 12 || f.type != HONE_WIRE_BYTES) continue;
        hone_field name = hone_onnx_name_field(hone_wire_of(&f), 1);
        const char *text = hone_scope_text(s, &name);
        hone_vid id = hone_scope_lookup(s, text);
        hone_field type = hone_onnx_name_field(hone_wire_of(&f), 2);
        if (id >= 0 && !s->up && !s->g->var.at[id].dtype)
            read_type(s, hone_wire_of(&type), id, false, 0); /* stands where inference cannot tell */
        if (id < 0)
            hone_import_problem(im, HONE_BAD_INPUT, "graph '%.60s': output '%.100s' is not produced",
                                s->g->name, text);
        else if (!hone_push(&s->g->out, id) || !keep_stated(s, &s->g->out_stated, &type))
            hone_import_no_memory(im);
    }
    if (!s->up && !s->g->out.n) hone_import_forgive(im, "the model has no outputs");
    return true;
}
