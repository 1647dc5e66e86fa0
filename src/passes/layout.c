/* SPDX-License-Identifier: Apache-2.0
   layout: in which order a var's dims lie in memory. Logical dims never change. Row-major is the rule; where a computed var is only turned around (a
   Transpose) and what comes out must be row-major (it is reshaped, or leaves the graph), the var is stored in the turned order to begin with: the
   Transpose is then a view of dense memory, and no copy is left. */
#include <string.h>

#include "loops/fuse.h"
#include "passes/passes.h"

static bool wants_rows(const hone_graph *g, hone_vid v) { /* a reader that would have to make it dense */
    for (int k = 0; k < g->out.n; k++)
        if (g->out.at[k] == v) return true;
    bool any = false;
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        for (int q = 0; q < n->n_in; q++) {
            if (n->in[q] != v) continue;
            if (n->program->runs != HONE_RUNS_VIEW || strcmp(n->program->how, "reshape")) return false;
            any = true;
        }
    }
    return any;
}
static void layout_graph(hone_passing *p, hone_graph *g) {
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        for (int b = 0; b < n->n_body; b++) layout_graph(p, n->body[b]);
        if (n->program->runs != HONE_RUNS_VIEW || strcmp(n->program->how, "transpose") || n->out[0] < 0) continue;
        hone_var *x = g->var.at + n->in[0];
        const hone_attr *perm = hone_attr_find(n->attr, n->n_attr, "perm");
        if (x->producer < 0 || x->uses != 1 || x->rank < 2 || (perm && perm->n != x->rank)) continue;
        const hone_node *maker = g->node.at[x->producer];
        /* element by element, so that storing in any order costs the same */
        bool plain = maker->n_part
                         ? maker->fused && maker->fused->instance->n_stage == 1
                         : maker->program->runs == HONE_RUNS_PROGRAM && !maker->n_body && maker->n_out == 1 && maker->program->lines &&
                               !maker->program->lines->next && maker->program->lines->kind == HONE_LINE_STAGE;
        /* or in rows: storing them in another order costs the same, as long as each stays a row */
        bool in_rows =
            maker->program->runs == HONE_RUNS_PROGRAM && !maker->n_body && maker->n_out == 1 && perm && perm->i[x->rank - 1] == x->rank - 1;
        if (!(plain || in_rows) || !wants_rows(g, n->out[0])) continue;
        x->layout.kind = HONE_LAYOUT_ORDER;
        for (int d = 0; d < x->rank; d++) x->layout.order[d] = (int8_t)(perm ? perm->i[d] : x->rank - 1 - d);
        p->changed++;
    }
}
hone_status hone_pass_layout(hone_passing *p) {
    hone_graph_index(p->graph);
    layout_graph(p, p->graph);
    return HONE_OK;
}
