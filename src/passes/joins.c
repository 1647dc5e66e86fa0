/* SPDX-License-Identifier: Apache-2.0
   joins: a Concat that takes again what another Concat or a Split already has in one piece takes that piece.
   Fewer things are moved, and where one join is the beginning of the next, all of them can lie in one place
   (plan/concat_alias.c). */
#include <string.h>

#include "passes/passes.h"

enum { WINDOW = 64 }; /* earlier Concats that are looked at */

static bool is(const hone_node *n, const char *how) {
    return !n->n_part && !n->dead && n->program->runs == HONE_RUNS_VIEW && !strcmp(n->program->how, how);
}
static int axis_of(const hone_graph *g, const hone_node *n, hone_vid of) {
    int rank = of < 0 ? -1 : g->var.at[of].rank;
    /* short lists of numbers are shapes: left alone */
    return rank < 2 ? -1 : hone_attr_axis(n->attr, n->n_attr, rank);
}
static bool begins(const hone_node *n, int at, const hone_vid *list, int count) {
    return count > 1 && n->n_in - at >= count && n->n_in > count &&
           !memcmp(n->in + at, list, sizeof *list * (size_t)count);
}
static void take(hone_passing *p, hone_node *n, int at, int count, hone_vid whole) {
    n->in[at] = whole;
    memmove(n->in + at + 1, n->in + at + count, sizeof *n->in * (size_t)(n->n_in - at - count));
    n->n_in -= count - 1, p->changed++;
}
/* The inputs from `at` on: is there something that has them in one piece? */
static bool piece(hone_passing *p, const hone_graph *g, hone_node *n, int at, int axis,
                  const hone_node *const *met, int n_met) {
    const hone_node *best = NULL;
    for (int q = n_met > WINDOW ? n_met - WINDOW : 0; q < n_met; q++) {
        const hone_node *o = met[q % WINDOW];
        if (o->in[0] == n->in[at] && (!best || o->n_in > best->n_in) && begins(n, at, o->in, o->n_in) &&
            axis_of(g, o, o->out[0]) == axis)
            best = o;
    }
    if (best) {
        take(p, n, at, best->n_in, best->out[0]);
        return true;
    }
    int maker = g->var.at[n->in[at]].producer;
    const hone_node *s = maker < 0 ? NULL : g->node.at[maker];
    if (!s || !is(s, "split") || axis_of(g, s, s->in[0]) != axis || !begins(n, at, s->out, s->n_out))
        return false;
    take(p, n, at, s->n_out, s->in[0]);
    return true;
}
static void joins_graph(hone_passing *p, hone_graph *g) {
    const hone_node *met[WINDOW]; /* the last Concats, in a ring */
    int n_met = 0;
    for (int k = 0; k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        for (int b = 0; b < n->n_body; b++) joins_graph(p, n->body[b]);
        int axis = is(n, "concat") ? axis_of(g, n, n->out[0]) : -1;
        bool whole = axis >= 0 && n->n_in > 0 && !g->var.at[n->out[0]].contents;
        for (int q = 0; whole && q < n->n_in; q++) whole = n->in[q] >= 0;
        if (!whole) continue;
        for (int at = 0; at < n->n_in; at++) {
            while (piece(p, g, n, at, axis, met, n_met)) {}
        }
        met[n_met++ % WINDOW] = n;
    }
}
hone_status hone_pass_joins(hone_passing *p) {
    hone_graph_index(p->graph);
    joins_graph(p, p->graph);
    return HONE_OK;
}
