/* SPDX-License-Identifier: Apache-2.0
   function: a model's functions, found by name and written out where they are called; and the opsets that
   models and functions import. */
#include "model/scope.h"

#include <stdlib.h>
#include <string.h>

#include "model/onnx.h"

/* ---- functions ----------------------------------------------------------------------------------------- */
static uint32_t hash_of(const char *name) {
    uint32_t h = 2166136261u;
    for (; *name; name++) h = (h ^ (unsigned char)*name) * 16777619u;
    return h;
}

static int by_hash(const void *a, const void *b) {
    uint32_t x = ((const hone_onnx_function *)a)->hash, y = ((const hone_onnx_function *)b)->hash;
    return (x > y) - (x < y);
}

const hone_onnx_function *hone_scope_function(hone_scope *s, const char *domain, const char *op,
                                              const char *overload) {
    uint32_t hash = hash_of(op);
    int lo = 0, hi = s->m->functions.n;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (s->m->functions.at[mid].hash < hash) lo = mid + 1;
        else hi = mid;
    }
    for (; lo < s->m->functions.n && s->m->functions.at[lo].hash == hash; lo++) {
        const hone_onnx_function *f = s->m->functions.at + lo;
        if (strcmp(f->name, op) == 0 && strcmp(f->domain, domain) == 0 && strcmp(f->overload, overload) == 0)
            return f;
    }
    return NULL;
}

static bool bind_formals(hone_scope *inner, hone_wire w, uint32_t number, const hone_vid *id, int n) {
    hone_field f;
    for (int k = 0; hone_wire_next(&w, &f);) {
        if (f.number != number || f.type != HONE_WIRE_BYTES) continue;
        const char *name = hone_scope_text(inner, &f);
        if (!hone_push(&inner->formals, ((hone_formal){name, k < n ? id[k] : HONE_ABSENT}))) return false;
        k++;
    }
    return true;
}

/* An output that no node of the function makes: one of its inputs, handed through. */
static void hand_through(hone_edit *e, hone_scope *inner, int n_in) {
    for (int k = n_in; k < inner->formals.n; k++)
        for (int j = 0; j < n_in; j++)
            if (inner->formals.at[k].id >= 0 &&
                strcmp(inner->formals.at[j].name, inner->formals.at[k].name) == 0)
                hone_edit_node(e, "Identity", inner->formals.at[k].id, HONE_IN(inner->formals.at[j].id),
                               HONE_PLAIN);
}

void hone_import_call(hone_scope *s, hone_edit *e, const hone_onnx_function *f) {
    const hone_draft *n = e->node;
    if (s->depth >= HONE_ONNX_MAX_DEPTH) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "functions are nested deeper than %d, or call themselves",
                          HONE_ONNX_MAX_DEPTH);
        return;
    }
    /* Short, and not a path of calls: names that grow with depth would grow without end. */
    const char *prefix = hone_arena_text(s->m->im.scratch, "%.40s#%d/", n->op, ++s->m->im.serial);
    hone_scope inner = {.m = s->m,
                        .up = s,
                        .g = s->g,
                        .opsets = &f->opsets,
                        .prefix = prefix,
                        .depth = s->depth + 1,
                        .inlined = true,
                        .call = true,
                        .caller = n,
                        .function = f};
    bool good = prefix && bind_formals(&inner, f->proto, 4, n->in.at, n->in.n);
    int n_in = inner.n_given = inner.formals.n;
    good = good && bind_formals(&inner, f->proto, 5, n->out.at, n->out.n);
    if (!good) hone_import_no_memory(&s->m->im);
    if (n->in.n > n_in || n->out.n > inner.formals.n - n_in)
        hone_edit_problem(e, HONE_BAD_INPUT, "the function has %d inputs and %d outputs", n_in,
                          inner.formals.n - n_in);
    else if (good) {
        hone_import_nodes(&inner, f->proto, 7);
        hand_through(e, &inner, n_in);
    }
    hone_vec_free(&inner.formals);
}

bool hone_import_opset(hone_onnx_model *m, hone_wire w, hone_onnx_opsets *list) {
    hone_field f;
    hone_onnx_opset o = {"", 0};
    int64_t version = 0;
    while (hone_wire_next(&w, &f)) {
        if (f.number == 1 && f.type == HONE_WIRE_BYTES) o.domain = hone_wire_text(m->im.scratch, &f);
        if (f.number == 2 && f.type == HONE_WIRE_VARINT) version = (int64_t)f.value;
    }
    if (!o.domain) return false;
    o.domain = hone_onnx_domain(o.domain);
    const char *name = o.domain[0] ? o.domain : "ai.onnx";
    if (version < 1) {
        hone_import_forgive(&m->im, "opset %lld of %.40s is none: as if it were not imported",
                            (long long)version, name);
        return true;
    }
    o.version = version < HONE_NEWEST ? (int)version : HONE_NEWEST - 1;
    if (!o.domain[0] && o.version > HONE_ONNX_MAX_OPSET) {
        hone_import_forgive(&m->im, "opset %d of ai.onnx is newer than what is known: read as opset %d",
                            o.version, HONE_ONNX_MAX_OPSET);
        o.version = HONE_ONNX_MAX_OPSET;
    }
    for (int k = 0; k < list->n; k++)
        if (strcmp(list->at[k].domain, o.domain) == 0) {
            if (list->at[k].version != o.version)
                hone_import_forgive(&m->im, "opset %d and opset %d of %.40s are both imported: the %s counts",
                                    list->at[k].version, o.version, name, "last");
            list->at[k].version = o.version;
            return true;
        }
    return hone_push(list, o);
}

/* A model that imports no opset of ai.onnx: the newest that files of its version of the format had. Before
   version 3 there was one only. */
bool hone_import_opset_missing(hone_onnx_model *m, int64_t ir_version) {
    static const uint8_t newest[] = {0, 1, 1, 8, 9, 10, 11, 14, 18, 20, 22, 23, 24};
    const int last = (int)(sizeof newest / sizeof *newest) - 1;
    for (int k = 0; k < m->opsets.n; k++)
        if (!m->opsets.at[k].domain[0]) return true;
    const int version = ir_version >= 1 && ir_version <= last ? newest[ir_version] : HONE_ONNX_MAX_OPSET;
    if (ir_version < 1 || ir_version > 2)
        hone_import_forgive(&m->im, "no opset of ai.onnx is imported: read as opset %d", version);
    return hone_push(&m->opsets, ((hone_onnx_opset){"", version}));
}

void hone_import_functions_sort(hone_onnx_model *m) {
    if (m->functions.n) qsort(m->functions.at, (size_t)m->functions.n, sizeof *m->functions.at, by_hash);
}

bool hone_import_function(hone_onnx_model *m, hone_wire w) {
    hone_onnx_function function = {.proto = w, .name = "", .domain = "", .overload = ""};
    hone_scope s = {.m = m, .g = m->im.root, .prefix = ""};
    hone_draft n = {.domain = "", .op = "", .name = "function"};
    hone_edit e = {&m->im, m->im.root, &n};
    hone_body_refs bodies = {0};
    hone_field f;
    bool good = hone_wire_good(w);
    if (!good) hone_import_problem(&m->im, HONE_BAD_INPUT, "a function's bytes are damaged");
    while (good && hone_wire_next(&w, &f)) {
        if (f.type != HONE_WIRE_BYTES) continue;
        if (f.number == 1) function.name = hone_scope_text(&s, &f);
        if (f.number == 10) function.domain = hone_onnx_domain(hone_scope_text(&s, &f));
        if (f.number == 13) function.overload = hone_scope_text(&s, &f);
        if (f.number == 9) good = hone_import_opset(m, hone_wire_of(&f), &function.opsets);
        if (f.number == 11) hone_import_attr(&s, &e, hone_wire_of(&f), &bodies);
    }
    function.defaults.at = n.attr.at, function.defaults.n = n.attr.n, function.defaults.room = n.attr.room;
    n.attr.at = NULL;
    hone_draft_free(&n);
    hone_vec_free(&bodies);
    function.hash = hash_of(function.name);
    if (hone_push(&m->functions, function)) return true;
    hone_vec_free(&function.defaults);
    hone_vec_free(&function.opsets);
    return false;
}
