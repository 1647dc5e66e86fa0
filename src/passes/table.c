/* SPDX-License-Identifier: Apache-2.0
   table: an element-wise chain from bytes to bytes becomes a table of its 256 results, which the definition
   of the chain computes here.

        Q(HardSwish(DQ(x)))   →   hone.Table(x, t)         and Sigmoid, Gelu by Erf with all that stands
                                                           around it, Clip of bytes, another scale …

   Any nodes that work element by element, on numbers and on one var of bytes; pairs of Q and DQ inside a
   chain are part of it. As far back as nothing inside is read outside. Which ops do so is asked of their
   programs, not of their names. */
#include <string.h>

#include "loops/fuse.h"
#include "passes/evaluate.h"
#include "passes/quant.h"

enum { MOST = 24, BYTES = 256 };
typedef struct {
    hone_passing *pass;
    hone_graph *g;
    hone_evaluating eval;
    hone_arena *arena; /* for facts */
    const hone_program *row;
} tabling;
typedef struct {
    int node[MOST], n; /* numbers, the last first */
    hone_vid open[MOST];
    int n_open;
} chain;

static bool is_byte(const hone_var *v) {
    return v->tag == HONE_TAG_TENSOR && (v->dtype == HONE_DTYPE_U8 || v->dtype == HONE_DTYPE_I8) &&
           v->rank >= 0;
}
static bool same_shape(const hone_var *p, const hone_var *q) {
    if (p->rank != q->rank) return false;
    for (int k = 0; k < p->rank; k++)
        if (p->dim[k] != q->dim[k] || p->dim[k] == HONE_DIM_UNKNOWN) return false;
    return true;
}
/* Element by element, of vars of one shape and numbers? */
static bool maps(tabling *w, const hone_node *n) {
    const hone_graph *g = w->g;
    if (n->part || n->n_body || n->n_capture || n->n_out != 1 || n->out[0] < 0 || !n->n_in || n->n_in > 8)
        return false;
    if (n->program->runs != HONE_RUNS_PROGRAM || n->program->random) return false;
    hone_fact facts[16];
    const hone_fact *in[8];
    bool fixed[8] = {0};
    for (int k = 0; k < n->n_in; k++) {
        facts[k] = hone_fact_unknown, in[k] = facts + k;
        if (n->in[k] < 0) continue;
        const hone_var *v = g->var.at + n->in[k];
        fixed[k] = v->value != NULL;
        if (v->tag != HONE_TAG_TENSOR || v->rank < 0 || !v->dtype || v->dtype == HONE_DTYPE_STRING)
            return false;
        if (fixed[k] ? v->value->tag != HONE_TAG_TENSOR || hone_value_count(v->value) != 1
                     : !same_shape(v, g->var.at + n->out[0]))
            return false;
        facts[k] = hone_fact_of_var(v);
    }
    hone_inferring inferring = {w->arena, g->dims, w->pass->instances, NULL};
    const hone_instance *instance;
    hone_call *call;
    hone_param *param;
    if (hone_node_infer(&inferring, n, in, NULL, facts + n->n_in, &instance, &call, &param) || !instance)
        return false;
    bool any = false;
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k] < 0 || fixed[k]) continue;
        if (n->program->operand[k].contents || !hone_fuse_can_follow(instance, k)) return false;
        any = true;
    }
    return any;
}
static void open_var(const tabling *w, chain *c, hone_vid v) {
    if (v < 0 || w->g->var.at[v].value) return;
    for (int k = 0; k < c->n_open; k++)
        if (c->open[k] == v) return;
    c->open[c->n_open++] = v;
}
/* The chain takes node k, whose result was open. */
static bool take(tabling *w, chain *c, int k) {
    const hone_node *n = w->g->node.at[k];
    if (c->n == MOST || c->n_open + n->n_in > MOST || !maps(w, n)) return false;
    for (int q = 0; q < c->n_open; q++)
        if (c->open[q] == n->out[0]) c->open[q--] = c->open[--c->n_open];
    c->node[c->n++] = k;
    for (int q = 0; q < n->n_in; q++) open_var(w, c, n->in[q]);
    return true;
}
/* Is nothing inside, but the last result, read outside? */
static bool closed(const tabling *w, const chain *c) {
    for (int k = 1; k < c->n; k++) {
        const hone_vid v = w->g->node.at[c->node[k]]->out[0];
        int inside = 0;
        for (int q = 0; q < c->n; q++) {
            const hone_node *n = w->g->node.at[c->node[q]];
            for (int i = 0; i < n->n_in; i++) inside += n->in[i] == v;
        }
        if (inside != w->g->var.at[v].uses) return false;
    }
    return true;
}
/* The longest chain that ends with node k. */
static bool find(tabling *w, int k, chain *best) {
    chain c = {.n = 0};
    best->n = 0;
    if (!take(w, &c, k)) return false;
    for (;;) {
        if (!c.n_open) break;
        const hone_var *v = w->g->var.at + c.open[0];
        if (c.n_open == 1 && is_byte(v) && same_shape(v, w->g->var.at + w->g->node.at[k]->out[0]) &&
            closed(w, &c))
            *best = c;
        int last = -1; /* who is made last is opened next: nobody inside reads it later */
        for (int q = 0; q < c.n_open; q++)
            last = w->g->var.at[c.open[q]].producer > last ? w->g->var.at[c.open[q]].producer : last;
        if (last < 0 || !take(w, &c, last)) break;
    }
    return best->n > 0;
}
/* The chain on all bytes; the result's value, or NULL. */
static hone_value *compute(tabling *w, const chain *c) {
    hone_graph *g = w->g;
    hone_value *x = NULL, *made = NULL;
    if (hone_value_tensor(g->var.at[c->open[0]].dtype, (const int64_t[]){BYTES}, 1, &x)) return NULL;
    for (int k = 0; k < BYTES; k++) ((uint8_t *)x->data)[k] = (uint8_t)k;
    g->var.at[c->open[0]].value = x; /* for now: nodes are evaluated on constants */
    bool ok = true;
    for (int k = c->n - 1; k >= 0 && ok; k--) {
        const hone_node *n = g->node.at[c->node[k]];
        hone_arena_reset(w->eval.arena);
        ok = hone_evaluate(&w->eval, g, n, &made);
        if (ok) g->var.at[n->out[0]].value = made;
    }
    hone_value *y = ok ? hone_value_hold(g->var.at[g->node.at[c->node[0]]->out[0]].value) : NULL;
    for (int k = 0; k < c->n; k++) {
        hone_var *v = g->var.at + g->node.at[c->node[k]]->out[0];
        if (v->value) hone_value_drop(v->value);
        v->value = NULL;
    }
    g->var.at[c->open[0]].value = NULL;
    hone_value_drop(x);
    if (y && hone_value_count(y) != BYTES) hone_value_drop(y), y = NULL;
    if (y) y->rank = 1, y->dim[0] = BYTES;
    return y;
}
static bool is_identity(const hone_value *t) {
    for (int k = 0; k < BYTES; k++)
        if (((const uint8_t *)t->data)[k] != k) return false;
    return true;
}
static hone_status table_graph(tabling *w, hone_graph *g) {
    hone_graph *outer = w->g;
    w->g = g;
    for (int k = g->node.n - 1; k >= 0; k--) { /* the longest end last */
        hone_node *n = g->node.at[k];
        chain c;
        for (int b = 0; b < n->n_body; b++) HONE_TRY(table_graph(w, n->body[b]));
        if (n->dead || n->n_out != 1 || n->out[0] < 0 || !is_byte(g->var.at + n->out[0]) ||
            !g->var.at[n->out[0]].uses)
            continue;
        hone_arena_reset(w->arena);
        hone_value *t = find(w, k, &c) ? compute(w, &c) : NULL;
        if (!t) continue;
        const hone_vid x = c.open[0];
        const bool same = is_identity(t) && g->var.at[x].dtype == t->dtype;
        const hone_library *library;
        hone_status s = hone_library_builtin(&library);
        hone_vid in[2] = {x, -1};
        if (!s && !same && (in[1] = hone_graph_const(g, "table", hone_value_hold(t))) < 0)
            s = hone_fail(HONE_NO_MEMORY, "no memory for a table");
        hone_value_drop(t);
        HONE_TRY(s);
        for (int q = 0; q < c.n; q++) { /* the last stays, as another op */
            hone_node *gone = g->node.at[c.node[q]];
            for (int i = 0; i < gone->n_in; i++)
                if (gone->in[i] >= 0) g->var.at[gone->in[i]].uses--;
            gone->dead = q > 0;
        }
        hone_vid *operands = hone_arena_copy(g->arena, in, sizeof in);
        if (!operands) return hone_fail(HONE_NO_MEMORY, "no memory for a table");
        n->program = same ? hone_library_find(library, "", "Identity") : w->row;
        n->in = operands, n->n_in = same ? 1 : 2, n->n_attr = 0;
        g->var.at[x].uses++;
        w->pass->changed++;
    }
    w->g = outer;
    return HONE_OK;
}
hone_status hone_pass_table(hone_passing *p) {
    const hone_library *library;
    HONE_TRY(hone_library_builtin(&library));
    tabling w = {.pass = p, .row = hone_library_find(library, "hone", "Table")};
    if (!w.row) return hone_fail(HONE_BUG, "the library has no hone.Table");
    w.eval =
        (hone_evaluating){.instances = p->instances, .work = 1e8, .most_work = 1e6, .most_bytes = 1 << 16};
    w.eval.arena = hone_arena_create(), w.arena = hone_arena_create();
    hone_graph_index(p->graph);
    hone_status s = w.eval.arena && w.arena ? table_graph(&w, p->graph)
                                            : hone_fail(HONE_NO_MEMORY, "no memory for tables");
    hone_graph_compact(p->graph);
    if (w.eval.arena) hone_arena_destroy(w.eval.arena);
    if (w.arena) hone_arena_destroy(w.arena);
    hone_graph_index(p->graph);
    return s;
}
