/* SPDX-License-Identifier: Apache-2.0
   masks: what attention adds to its scores, where that is the same whatever the sizes are, is a constant, and
   a constant that hides nothing is no mask.

   Exporters compute masks in the graph: ones in the shape of the ids, picked by positions, and with a
   triangle of constants. With an open batch no shape is known there, and so nothing is constant; but ones
   picked by anything are ones. So each var on the way to a mask is asked for a value that it is when
   broadcast: a constant is itself, ConstantOfShape its number, moves of one number that number, and what
   works element by element on such values is computed on them. (What is picked by a place that does not exist
   is an error of the model that is not told then, as with anything that nobody needs.) */
#include <string.h>

#include "passes/evaluate.h"
#include "passes/match.h"

enum { MOST_STEPS = 64 /* from a mask back to what it is made of */, MASK = 3, KEYS = 1 };
static const double most_work = 1e8;
static const int64_t most_bytes = 16 << 20;

typedef struct {
    hone_passing *pass;
    hone_graph *graph;
    hone_evaluating eval;
    int steps;
    hone_vid was, is; /* the last mask that was replaced: all layers have the same one */
    bool no_memory;
} masking;

static bool is_one_of(const hone_node *n, const char *const *names) {
    for (; *names; names++)
        if (hone_node_is(n, *names)) return true;
    return false;
}
static hone_value *broadcast(masking *w, hone_vid v);

/* One number of a value, without dims. */
static hone_value *number(masking *w, const hone_value *of) {
    hone_value *one = NULL;
    if (hone_value_count(of) != 1 || of->dtype == HONE_DTYPE_STRING) return NULL;
    if (hone_value_tensor(of->dtype, NULL, 0, &one)) return w->no_memory = true, NULL;
    memcpy(one->data, of->data, one->bytes);
    return one;
}
/* n on the values that its operands are when broadcast. */
static hone_value *computed(masking *w, const hone_node *n) {
    enum { MOST_IN = 3 };
    hone_graph *g = w->graph;
    hone_vid in[MOST_IN], out;
    hone_value *made = NULL;
    bool whole = n->n_in <= MOST_IN && n->n_out == 1;
    for (int k = 0; whole && k < n->n_in; k++) {
        hone_value *x = n->in[k] < 0 ? NULL : broadcast(w, n->in[k]);
        whole = x && (in[k] = hone_graph_const(g, "part of a mask", x)) >= 0;
        w->no_memory |= x && !whole;
    }
    if (!whole) return NULL;
    if ((out = hone_graph_var(g, "mask")) < 0) return w->no_memory = true, NULL;
    hone_node alone = *n;
    alone.in = in, alone.out = &out;
    return hone_evaluate(&w->eval, g, &alone, &made) ? made : NULL;
}
/* A value that v is when it is broadcast to v's shape, as a new reference; NULL: there is none, or none that
   is found with little work. */
static hone_value *broadcast(masking *w, hone_vid v) {
    static const char *const moves[] = {"Reshape", "Flatten", "Squeeze", "Unsqueeze", "Transpose", "Expand",
                                        "Slice",   "Gather",  "Tile",    "GatherND",  "Identity",  NULL},
                             *const maps[] = {"Cast",           "Not",         "And", "Or",  "Xor",
                                              "Where",          "Add",         "Sub", "Mul", "Equal",
                                              "Less",           "LessOrEqual", "Min", "Max", "Greater",
                                              "GreaterOrEqual", NULL};
    const hone_value *own = w->graph->var.at[v].value;
    const int producer = w->graph->var.at[v].producer;
    if (own) return own->tag == HONE_TAG_TENSOR ? hone_value_hold(w->graph->var.at[v].value) : NULL;
    const hone_node *n = producer < 0 ? NULL : w->graph->node.at[producer];
    if (!n || n->part || n->n_body || ++w->steps > MOST_STEPS) return NULL;
    if (hone_node_is(n, "ConstantOfShape")) { /* import has made the number an operand */
        const hone_value *of = n->n_in > 1 && n->in[1] >= 0 ? w->graph->var.at[n->in[1]].value : NULL;
        return of && of->tag == HONE_TAG_TENSOR ? number(w, of) : NULL;
    }
    if (is_one_of(n, maps)) return computed(w, n);
    if (!is_one_of(n, moves) || !n->n_in || n->in[0] < 0) return NULL;
    hone_value *x = broadcast(w, n->in[0]), *one = x ? number(w, x) : NULL;
    if (x && !one && hone_node_is(n, "Expand")) return x;
    hone_value_drop(x);
    return one;
}

/* Adds nothing to any score, or lets each be seen. */
static bool hides_nothing(const hone_value *v) {
    const int64_t n = hone_value_count(v);
    if (v->dtype != HONE_DTYPE_F32 && v->dtype != HONE_DTYPE_BOOL) return false;
    for (int64_t k = 0; k < n; k++)
        if (v->dtype == HONE_DTYPE_F32 ? ((const float *)v->data)[k] != 0 : !((const uint8_t *)v->data)[k])
            return false;
    return true;
}
static void of_attention(masking *w, hone_node *n) {
    hone_graph *g = w->graph;
    if (n->n_in <= MASK || n->in[MASK] < 0 || n->in[KEYS] < 0) return;
    const hone_vid was = n->in[MASK];
    hone_dim last = HONE_DIM_UNKNOWN, keys = HONE_DIM_UNKNOWN;
    if (g->var.at[was].rank > 0) last = g->var.at[was].dim[g->var.at[was].rank - 1];
    if (g->var.at[n->in[KEYS]].rank == 4) keys = g->var.at[n->in[KEYS]].dim[2];
    if (last == HONE_DIM_UNKNOWN) return;
    if (was == w->was) {
        n->in[MASK] = w->is, w->pass->changed++;
        return;
    }
    w->steps = 0;
    hone_value *v = broadcast(w, was);
    if (!v) return;
    /* what is shorter than the keys hides the rest */
    if (last == keys && hides_nothing(v)) {
        n->in[MASK] = -1, w->pass->changed++;
        if (n->n_in == MASK + 1) n->n_in = MASK;
    } else if (!g->var.at[was].value && v->rank > 0 && v->dim[v->rank - 1] == last &&
               v->dtype == g->var.at[was].dtype) {
        const hone_vid made = hone_graph_const(g, "mask", hone_value_hold(v));
        if (made >= 0) n->in[MASK] = w->is = made, w->was = was, w->pass->changed++;
        else w->no_memory = true;
    }
    hone_value_drop(v);
}
static void of_graph(masking *w, hone_graph *g) {
    for (int k = 0; k < g->node.n && !w->no_memory; k++) {
        hone_node *n = g->node.at[k];
        for (int b = 0; b < n->n_body; b++) of_graph(w, n->body[b]);
        if (w->graph != g) w->graph = g, w->was = -1;
        if (hone_node_is(n, "Attention")) of_attention(w, n);
    }
}
hone_status hone_pass_masks(hone_passing *p) {
    hone_graph_index(p->graph);
    masking w = {.pass = p,
                 .was = -1,
                 .eval = {.arena = hone_arena_create(),
                          .instances = p->instances,
                          .work = most_work,
                          .most_work = most_work,
                          .most_bytes = most_bytes}};
    w.no_memory = !w.eval.arena;
    of_graph(&w, p->graph);
    hone_arena_destroy(w.eval.arena);
    return w.no_memory ? hone_fail(HONE_NO_MEMORY, "no memory to look at masks") : HONE_OK;
}
