/* SPDX-License-Identifier: Apache-2.0
   rewrite: see rewrite.h. */
#include "passes/rewrite.h"

#include <string.h>

/* ---- renames ------------------------------------------------------------------------------------------- */
bool hone_renames_open(hone_renames *r, hone_graph *g) {
    size_t n = (size_t)g->var.n;
    *r = (hone_renames){g, hone_alloc(sizeof *r->to * (n + 1)), hone_alloc(n + 1)};
    if (!r->to || !r->is_output) {
        hone_free(r->to);
        hone_free(r->is_output);
        return false;
    }
    for (hone_vid v = 0; v < g->var.n; v++) r->to[v] = v;
    for (int k = 0; k < g->out.n; k++) r->is_output[g->out.at[k]] = 1;
    return true;
}
hone_vid hone_renames_now(hone_renames *r, hone_vid v) {
    hone_vid end = v;
    if (v < 0) return v;
    while (r->to[end] != end) end = r->to[end];
    while (r->to[v] != end) { /* so that long chains are walked once */
        hone_vid next = r->to[v];
        r->to[v] = end, v = next;
    }
    return end;
}
static void learn(hone_var *v, const hone_var *from) {
    v->tag = from->tag;
    if (!v->dtype) v->dtype = from->dtype;
    if (v->rank < 0) v->rank = from->rank, memcpy(v->dim, from->dim, sizeof v->dim);
    if (!v->contents) v->contents = from->contents, v->n_content = from->n_content;
}
bool hone_rename(hone_renames *r, hone_vid y, hone_vid x) {
    hone_graph *g = r->graph;
    x = hone_renames_now(r, x);
    if (x == y) return false;
    if (!r->is_output[y]) {
        r->to[y] = x;
        return true;
    }
    hone_var *from = g->var.at + x;
    if (from->producer < 0 || r->is_output[x]) return false;
    hone_node *maker = g->node.at[from->producer];
    for (int k = 0; k < maker->n_out; k++)
        if (maker->out[k] == x) {
            maker->out[k] = y;
            g->var.at[y].producer = from->producer, from->producer = -1;
            learn(g->var.at + y, from);
            r->to[x] = y;
            return true;
        }
    return false;
}
void hone_renames_close(hone_renames *r) {
    for (int k = 0; k < r->graph->node.n; k++) {
        hone_node *n = r->graph->node.at[k];
        for (int q = 0; q < n->n_in; q++) n->in[q] = hone_renames_now(r, n->in[q]);
    }
    hone_free(r->to);
    hone_free(r->is_output);
}

/* ---- constants ----------------------------------------------------------------------------------------- */
void hone_var_fix(hone_var *v, hone_value *take) {
    hone_value_drop(v->value);
    v->value = take, v->tag = take->tag, v->dtype = take->dtype, v->rank = take->rank;
    v->contents = NULL, v->n_content = 0;
    v->layout = (hone_layout){0};
    for (int k = 0; k < take->rank; k++) v->dim[k] = take->dim[k];
}
