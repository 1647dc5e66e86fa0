/* SPDX-License-Identifier: Apache-2.0
   identity: nodes that hand on their input unchanged. One row a way to be one; a row that is not sure says
   no. */
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

typedef struct {
    const hone_graph *graph;
    const hone_node *node;
    const hone_var *x, *y;
} asking;

static bool given(const asking *a, int k) { return k < a->node->n_in && a->node->in[k] >= 0; }
static const hone_value *constant(const asking *a, int k) {
    return given(a, k) ? a->graph->var.at[a->node->in[k]].value : NULL;
}
static bool all(const hone_value *v, double what) {
    int64_t n = v && v->tag == HONE_TAG_TENSOR && v->dtype != HONE_DTYPE_STRING ? hone_value_count(v) : -1;
    for (int64_t k = 0; k < n; k++)
        if (hone_value_f64(v, k) != what) return false;
    return n >= 0;
}

static bool always(const asking *a) { return a->node->n_in > 0; }
static bool same_type(const asking *a) {
    return a->x->tag == HONE_TAG_TENSOR && a->x->dtype && a->x->dtype == a->y->dtype;
}
static bool same_shape(const asking *a) {
    if (!same_type(a) || a->x->rank < 0 || a->x->rank != a->y->rank) return false;
    for (int k = 0; k < a->x->rank; k++)
        if (a->x->dim[k] == HONE_DIM_UNKNOWN || a->x->dim[k] != a->y->dim[k]) return false;
    return true;
}
static bool not_training(const asking *a) {
    const hone_node *n = a->node;
    if (n->n_out > 1 && n->out[1] >= 0 && a->graph->var.at[n->out[1]].uses > 0) return false;
    return !given(a, 2) || all(constant(a, 2), 0) || (given(a, 1) && all(constant(a, 1), 0));
}
static bool in_order(const asking *a) {
    const hone_attr *perm = hone_attr_find(a->node->attr, a->node->n_attr, "perm");
    int rank = a->x->rank;
    if (rank == 0 || rank == 1) return true;
    if (rank < 0 || !perm || perm->kind != HONE_ATTR_INTS || perm->n != rank) return false;
    for (int k = 0; k < rank; k++)
        if (perm->i[k] != k) return false;
    return true;
}
/* A whole range, not turned round. */
static bool forward(const asking *a) { return same_shape(a) && (!given(a, 4) || all(constant(a, 4), 1)); }
static bool no_pads(const asking *a) { return same_shape(a) && given(a, 1) && all(constant(a, 1), 0); }
static bool one_input(const asking *a) { return a->node->n_in == 1; }
static bool one_output(const asking *a) { return a->node->n_out == 1 && same_shape(a); }

static const struct {
    const char *op;
    bool (*is)(const asking *);
} rows[] = {
    {"Identity", always},    {"Dropout", not_training}, {"Cast", same_type},     {"CastLike", same_type},
    {"BitCast", same_type},  {"Transpose", in_order},   {"Reshape", same_shape}, {"Flatten", same_shape},
    {"Squeeze", same_shape}, {"Unsqueeze", same_shape}, {"Expand", same_shape},  {"Tile", same_shape},
    {"Slice", forward},      {"Pad", no_pads},          {"Concat", one_input},   {"Split", one_output}};

static bool is_identity(const hone_graph *g, const hone_node *n, hone_vid x) {
    if (n->part || *n->program->domain || n->n_out < 1 || n->out[0] < 0) return false;
    asking a = {g, n, g->var.at + x, g->var.at + n->out[0]};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++)
        if (!strcmp(rows[k].op, n->program->name)) return rows[k].is(&a);
    return false;
}
static hone_status simplify(hone_graph *g, int *changed) {
    hone_renames r;
    if (!hone_renames_open(&r, g))
        return hone_fail(HONE_NO_MEMORY, "no memory to drop nodes that change nothing");
    hone_status s = HONE_OK;
    for (int k = 0; k < g->node.n && !s; k++) {
        hone_node *n = g->node.at[k];
        hone_vid x = n->n_in ? hone_renames_now(&r, n->in[0]) : -1;
        if (n->dead) continue;
        for (int b = 0; b < n->n_body && !s; b++) s = simplify(n->body[b], changed);
        if (x >= 0 && is_identity(g, n, x) && hone_rename(&r, n->out[0], x)) n->dead = true, (*changed)++;
    }
    hone_renames_close(&r);
    return s;
}
hone_status hone_pass_identity(hone_passing *p) {
    hone_graph_index(p->graph);
    hone_status s = simplify(p->graph, &p->changed);
    hone_graph_compact(p->graph);
    return s;
}
