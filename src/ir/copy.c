/* SPDX-License-Identifier: Apache-2.0
   copy: a graph that has been through the passes, made ready to be fused and laid out once more: for other
   devices than the first time. What the last passes did is undone: groups are opened, vars are row-major
   again. Constants are shared, so that a copy costs little. */
#include <string.h>

#include "ir/graph.h"

static hone_vid *copy_list(hone_arena *a, const hone_vid *list, int n) {
    hone_vid *to = HONE_NEW_N(a, hone_vid, n + 1);
    if (to && n) memcpy(to, list, sizeof *to * (size_t)n);
    return to;
}
static bool copy_graph(const hone_graph *from, hone_graph *to);
static bool copy_node(const hone_node *n, hone_graph *to) {
    for (int k = 0; k < n->n_part; k++)
        if (!copy_node(n->part[k], to)) return false;
    if (n->n_part) return true; /* the group itself is gone */
    hone_node *made = HONE_NEW(to->arena, hone_node);
    if (!made) return false;
    *made = *n;
    made->in = copy_list(to->arena, n->in, n->n_in), made->out = copy_list(to->arena, n->out, n->n_out);
    made->unit = 0, made->refused = NULL;
    if (!made->in || !made->out || !hone_push(&to->node, made)) return false;
    if (!n->n_body) return true;
    if (!(made->body = HONE_NEW_N(to->arena, hone_graph *, n->n_body))) return false;
    for (int b = 0; b < n->n_body; b++)
        if (!(made->body[b] = hone_graph_body(to, n->body[b]->name)) ||
            !copy_graph(n->body[b], made->body[b]))
            return false;
    return true;
}
static bool copy_graph(const hone_graph *from, hone_graph *to) {
    for (int k = 0; k < from->var.n; k++) {
        hone_var v = from->var.at[k];
        v.layout = (hone_layout){.kind = HONE_LAYOUT_ROWS};
        if (!hone_push(&to->var, v)) return false;
        if (v.value) hone_value_hold(v.value);
    }
    for (int k = 0; k < from->in.n; k++)
        if (!hone_push(&to->in, from->in.at[k])) return false;
    for (int k = 0; k < from->out.n; k++)
        if (!hone_push(&to->out, from->out.at[k])) return false;
    to->n_formal = from->n_formal, to->opset = from->opset, to->mixed = from->mixed, to->names = from->names,
    to->names.at = NULL;
    if (from->names.room && !(to->names.at = hone_alloc(sizeof *to->names.at * (size_t)from->names.room)))
        return false;
    if (from->names.room)
        memcpy(to->names.at, from->names.at, sizeof *to->names.at * (size_t)from->names.room);
    for (int k = 0; k < from->node.n; k++)
        if (!copy_node(from->node.at[k], to)) return false;
    return true;
}
hone_status hone_graph_copy(const hone_graph *from, hone_graph **out) {
    hone_graph *g = NULL;
    HONE_TRY(hone_graph_create(from->name, &g));
    hone_dims *dims = hone_dims_copy(from->dims);
    if (dims) hone_dims_destroy(g->dims), g->dims = dims;
    if (!dims || !copy_graph(from, g)) {
        hone_graph_destroy(g);
        return hone_fail(HONE_NO_MEMORY, "no memory for graph '%s'", from->name);
    }
    g->forgiven = from->forgiven;
    hone_graph_index(g);
    *out = g;
    return HONE_OK;
}
