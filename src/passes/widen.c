/* SPDX-License-Identifier: Apache-2.0
   widen: every element-wise reader of a DequantizeLinear gets one of its own, so that it can be fused with it
   and reads bytes. Otherwise what two read would be stored as floats, four times as large. */
#include <string.h>

#include "passes/passes.h"

static bool widens(const hone_graph *g, const hone_node *n) {
    if (n->part || *n->program->domain || strcmp(n->program->name, "DequantizeLinear") || n->in[0] < 0)
        return false;
    const hone_var *x = g->var.at + n->in[0];
    return !x->value && x->dtype && hone_dtypes[x->dtype].bytes == 1 && g->var.at[n->out[0]].uses > 1;
}
static bool one_line(const hone_node *n) { /* element by element, mostly */
    const hone_program *p = n->program;
    return p->runs == HONE_RUNS_PROGRAM && !n->n_body && !n->part && n->n_out == 1 && p->lines &&
           !p->lines->next && p->lines->kind == HONE_LINE_STAGE;
}
static hone_status widen_graph(hone_passing *p, hone_graph *g) {
    hone_vec(hone_node *) done = {0};
    bool ok = true;
    const int n_node = g->node.n;
    for (int k = 0; k < n_node && ok; k++) {
        hone_node *n = g->node.at[k];
        for (int b = 0; b < n->n_body; b++) HONE_TRY(widen_graph(p, n->body[b]));
        for (int q = 0; ok && one_line(n) && q < n->n_in; q++) {
            const hone_vid v = n->in[q];
            const int from = v < 0 ? -1 : g->var.at[v].producer;
            const hone_node *d = from < 0 ? NULL : g->node.at[from];
            if (!d || !widens(g, d)) continue;
            hone_vid own = hone_graph_var(g, g->var.at[v].name);
            hone_node *copy =
                own < 0 ? NULL : hone_graph_node(g, d->program, d->name, d->in, d->n_in, &own, 1);
            if (!(ok = copy != NULL)) break;
            const hone_var *was = g->var.at + v;
            hone_var *is = g->var.at + own;
            g->node.n--; /* it stands in `done` */
            is->tag = was->tag, is->dtype = was->dtype, is->rank = was->rank, is->producer = -1, is->uses = 1;
            memcpy(is->dim, was->dim, sizeof is->dim);
            copy->attr = d->attr, copy->n_attr = d->n_attr;
            ok = hone_push(&done, copy);
            n->in[q] = own, g->var.at[v].uses--, p->changed++;
        }
        ok = ok && hone_push(&done, n);
    }
    if (!ok) {
        hone_vec_free(&done);
        return hone_fail(HONE_NO_MEMORY, "no memory to compile");
    }
    hone_free(g->node.at);
    g->node.at = done.at, g->node.n = done.n, g->node.room = done.room;
    return HONE_OK;
}
hone_status hone_pass_widen(hone_passing *p) {
    hone_graph_index(p->graph);
    HONE_TRY(widen_graph(p, p->graph));
    hone_graph_index(p->graph);
    return HONE_OK;
}
