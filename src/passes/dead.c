/* SPDX-License-Identifier: Apache-2.0
   dead: what nobody reads goes: nodes, optional outputs, captures of bodies, constants. */
#include "passes/passes.h"

/* Captures that no body reads. */
static int drop_captures(hone_graph *g, hone_node *n) {
    int kept = 0, own = n->n_in - n->n_capture;
    for (int k = 0; k < n->n_capture; k++) {
        bool read = false;
        for (int b = 0; b < n->n_body; b++) {
            const hone_graph *body = n->body[b];
            read |= body->var.at[body->in.at[body->n_formal + k]].uses > 0;
        }
        if (!read) {
            g->var.at[n->in[own + k]].uses--;
            continue;
        }
        n->in[own + kept] = n->in[own + k];
        for (int b = 0; b < n->n_body; b++)
            n->body[b]->in.at[n->body[b]->n_formal + kept] = n->body[b]->in.at[n->body[b]->n_formal + k];
        kept++;
    }
    int gone = n->n_capture - kept;
    n->n_in -= gone, n->n_capture = kept;
    for (int b = 0; b < n->n_body; b++) n->body[b]->in.n -= gone;
    return gone;
}
/* From the end, so that a whole chain goes at once. `uses` is kept true on the way. */
static int sweep(hone_graph *g) {
    int changed = 0;
    for (int k = g->node.n - 1; k >= 0; k--) {
        hone_node *n = g->node.at[k];
        const hone_program *p = n->program;
        bool read = false;
        if (n->dead) continue;
        for (int q = 0; q < n->n_out; q++) read |= n->out[q] >= 0 && g->var.at[n->out[q]].uses > 0;
        if (!read) {
            for (int q = 0; q < n->n_in; q++)
                if (n->in[q] >= 0) g->var.at[n->in[q]].uses--;
            n->dead = true, changed++;
            continue;
        }
        for (int q = 0; q < n->n_out && q < p->n_out && !n->part; q++)
            if (p->operand[p->n_in + q].optional && n->out[q] >= 0 && g->var.at[n->out[q]].uses == 0)
                n->out[q] = -1, changed++;
        for (int b = 0; b < n->n_body; b++) changed += sweep(n->body[b]);
        if (n->n_capture) changed += drop_captures(g, n);
    }
    for (int v = 0; v < g->var.n; v++)
        if (g->var.at[v].value && g->var.at[v].uses == 0) {
            hone_value_drop(g->var.at[v].value);
            g->var.at[v].value = NULL, changed++;
        }
    return changed;
}
hone_status hone_pass_dead(hone_passing *p) {
    hone_graph_index(p->graph);
    p->changed += sweep(p->graph);
    hone_graph_compact(p->graph);
    return HONE_OK;
}
