/* SPDX-License-Identifier: Apache-2.0
   scope: names become vars. */
#include "model/scope.h"

#include <string.h>

const char *hone_scope_text(hone_scope *s, const hone_field *f) {
    const char *t = hone_wire_text(s->m->im.scratch, f);
    if (!t) hone_import_no_memory(&s->m->im);
    return t ? t : "";
}

const char *hone_scope_full(hone_scope *s, const char *name) {
    if (!s->prefix[0]) return name;
    const char *t = hone_arena_text(s->m->im.scratch, "%s%s", s->prefix, name);
    if (!t) hone_import_no_memory(&s->m->im);
    return t ? t : name;
}

hone_vid hone_scope_lookup(hone_scope *s, const char *name) {
    for (int k = 0; k < s->formals.n; k++)
        if (strcmp(s->formals.at[k].name, name) == 0) return s->formals.at[k].id;
    const char *full = hone_scope_full(s, name);
    hone_vid id = hone_graph_find(s->g, full);
    if (id >= 0) return id;
    if (s->call || !s->up) return HONE_NOT_FOUND;
    hone_vid outer = hone_scope_lookup(s->up, name);
    if (outer < 0 || s->up->g == s->g) return outer; /* absent, or a body that is written out in place */
    const hone_var *from = s->up->g->var.at + outer;
    if (from->value) {
        id = hone_graph_const(s->g, full, hone_value_hold(from->value));
    } else {
        id = hone_graph_var(s->g, full);
        hone_var *to = hone_var_of(s->g, id);
        from = s->up->g->var.at + outer;
        if (to) {
            to->tag = from->tag, to->dtype = from->dtype, to->rank = from->rank;
            memcpy(to->dim, from->dim, sizeof to->dim);
            if (!hone_push(&s->captured, ((hone_capture){outer, id}))) id = -1;
        }
    }
    if (id < 0) hone_import_no_memory(&s->m->im);
    return id;
}

bool hone_scope_knows(hone_scope *s, const char *name) {
    for (; s; s = s->up) {
        for (int k = 0; k < s->n_given; k++)
            if (strcmp(s->formals.at[k].name, name) == 0) return true;
        if (hone_graph_find(s->g, hone_scope_full(s, name)) >= 0) return true;
        if (s->call) return false;
    }
    return false;
}

/* A var that a node will produce, an input or an initializer of that name. */
hone_vid hone_scope_define(hone_scope *s, const char *name, const char *what) {
    for (int k = 0; k < s->formals.n; k++)
        if (strcmp(s->formals.at[k].name, name) == 0) return s->formals.at[k].id;
    const char *full = hone_scope_full(s, name);
    if (hone_graph_find(s->g, full) >= 0) {
        hone_import_problem(&s->m->im, HONE_BAD_INPUT, "graph '%.60s': %s '%.100s' has a name that is taken",
                            s->g->name, what, full);
        return -1;
    }
    hone_vid id = hone_graph_var(s->g, full);
    if (id < 0) hone_import_no_memory(&s->m->im);
    return id;
}

int hone_scope_version(hone_scope *s, const char *domain) {
    const hone_onnx_opsets *lists[] = {s->opsets, &s->m->opsets};
    for (int q = 0; q < 2; q++)
        for (int k = 0; k < lists[q]->n; k++)
            if (strcmp(lists[q]->at[k].domain, domain) == 0) {
                if (q)
                    hone_import_forgive(&s->m->im,
                                        "a function imports no opset of %.40s: the model's, %d, is taken",
                                        domain[0] ? domain : "ai.onnx", lists[q]->at[k].version);
                return lists[q]->at[k].version;
            }
    return HONE_NEWEST;
}

const char *hone_onnx_domain(const char *d) { return strcmp(d, "ai.onnx") == 0 ? "" : d; }
