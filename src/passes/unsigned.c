/* SPDX-License-Identifier: Apache-2.0
   unsigned: signed bytes whose zero point is their least value, -128, become unsigned ones whose zero point
   is 0, for devices whose units see zeros around an image (ir/target.h).

        QuantizeLinear(x, s, -128: i8) ─▶ QLinearConv(·, s, -128: i8, w, …)
        QuantizeLinear(x, s, 0: u8)    ─▶ QLinearConv(·, s, 0: u8, w, …)

   Quantizers that give activations signed bytes write the first behind every Relu. The values are the same,
   and pads, which are the zero point, are zeros. A byte changes with all who make it, read it or hand it on;
   where one of them cannot, and in inputs and outputs of the graph, it stays. */
#include <string.h>

#include "passes/passes.h"
#include "passes/rewrite.h"

enum { LEAST = INT8_MIN, PAIRS = 2 };
static const struct { /* operands; -1: none */
    const char *domain, *op;
    int x[PAIRS], x_zero[PAIRS], y_zero;
} arithmetic[] = {
    {"", "QuantizeLinear", {-1, -1}, {-1, -1}, 2}, {"", "DequantizeLinear", {0, -1}, {2, -1}, -1},
    {"", "QLinearConv", {0, -1}, {2, -1}, 7},      {"", "QLinearMatMul", {0, 3}, {2, 5}, 7},
    {"hone", "QLinearMatMul", {0, 3}, {2, 5}, 7},  {"hone", "QLinearAveragePool", {0, -1}, {2, -1}, 4},
    {"hone", "QLinearMean", {0, -1}, {2, -1}, 4},  {"hone", "QLinearResize", {0, -1}, {2, -1}, 4},
};
static const struct { /* they hand bytes on, or the largest of them */
    const char *op;
    bool all; /* every operand is such bytes, not the first alone */
} moves[] = {{"MaxPool", false},   {"Reshape", false},   {"Flatten", false},
             {"Squeeze", false},   {"Unsqueeze", false}, {"Slice", false},
             {"Transpose", false}, {"Split", false},     {"Concat", true}};

typedef struct {
    hone_passing *pass;
    hone_graph *graph;
    uint8_t *is; /* a var may become unsigned */
} changing;
static int arithmetic_of(const hone_node *n) { /* -1: another op */
    for (int k = 0; k < (int)(sizeof arithmetic / sizeof *arithmetic); k++)
        if (!strcmp(n->program->domain, arithmetic[k].domain) && !strcmp(n->program->name, arithmetic[k].op))
            return k;
    return -1;
}
static int move_of(const hone_node *n) {
    for (int k = 0; k < (int)(sizeof moves / sizeof *moves) && !*n->program->domain; k++)
        if (!strcmp(n->program->name, moves[k].op)) return k;
    return -1;
}
static hone_vid operand(const hone_node *n, int k) { return k >= 0 && k < n->n_in ? n->in[k] : -1; }
static bool is_least(const hone_graph *g, hone_vid zero) { /* a constant number, -128 */
    const hone_value *v = zero < 0 ? NULL : g->var.at[zero].value;
    return v && v->dtype == HONE_DTYPE_I8 && hone_value_count(v) == 1 && v->rank <= 1 &&
           hone_value_f64(v, 0) == LEAST;
}
/* Is var v, which this node reads as operand `at`, or makes (at < 0), bytes that count from -128 to it? */
static bool agrees(const changing *c, const hone_node *n, int at, hone_vid v) {
    const hone_target *t = c->pass->target + n->unit;
    if (!hone_target_wants_bytes(t) || n->part) return false;
    const int a = arithmetic_of(n), m = move_of(n);
    if (a >= 0 && at < 0)
        return n->out[0] == v && arithmetic[a].y_zero >= 0 &&
               is_least(c->graph, operand(n, arithmetic[a].y_zero)) &&
               !hone_attr_int(n->attr, n->n_attr, "output_dtype", 0);
    for (int k = 0; a >= 0 && k < PAIRS; k++)
        if (at == arithmetic[a].x[k]) return is_least(c->graph, operand(n, arithmetic[a].x_zero[k]));
    if (m < 0 || (at > 0 && !moves[m].all)) return false;
    for (int k = 0; k < n->n_in && (moves[m].all || k < 1); k++)
        if (n->in[k] < 0 || !c->is[n->in[k]]) return false;
    /* MaxPool's second result is no bytes */
    for (int k = 0; k < n->n_out; k++)
        if (n->out[k] >= 0 && c->graph->var.at[n->out[k]].dtype == HONE_DTYPE_I8 && !c->is[n->out[k]])
            return false;
    return true;
}
/* Takes away what cannot be; was there any? Along the graph and, the next time, against it: a long way of
   bytes that are handed on takes two rounds. */
static bool narrowed(changing *c, bool back) {
    const hone_graph *g = c->graph;
    bool any = false;
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[back ? g->node.n - 1 - k : k];
        for (int q = 0; q < n->n_in; q++)
            if (n->in[q] >= 0 && c->is[n->in[q]] && !agrees(c, n, q, n->in[q]))
                c->is[n->in[q]] = false, any = true;
        for (int q = 0; q < n->n_out; q++)
            if (n->out[q] >= 0 && c->is[n->out[q]] && !agrees(c, n, -1, n->out[q]))
                c->is[n->out[q]] = false, any = true;
    }
    return any;
}
static void changed(changing *c, hone_node *n, int at, const hone_vid zero[2]) {
    n->in[at] = zero[c->graph->var.at[n->in[at]].value->rank > 0], c->pass->changed++;
}
static hone_status change(changing *c) {
    hone_graph *g = c->graph;
    const int n_var = g->var.n;
    hone_vid zero[2]; /* a number, and a list of one */
    for (int rank = 0; rank < 2; rank++) {
        hone_value *v = NULL;
        HONE_TRY(hone_value_tensor(HONE_DTYPE_U8, (const int64_t[]){1}, rank, &v));
        *(uint8_t *)v->data = 0;
        if ((zero[rank] = hone_graph_const(g, "zero", v)) < 0)
            return hone_fail(HONE_NO_MEMORY, "no memory to compile");
    }
    for (int k = 0; k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        const int a = arithmetic_of(n);
        for (int q = 0; a >= 0 && q < PAIRS; q++) {
            const hone_vid x = operand(n, arithmetic[a].x[q]);
            if (x >= 0 && c->is[x]) changed(c, n, arithmetic[a].x_zero[q], zero);
        }
        if (a >= 0 && arithmetic[a].y_zero >= 0 && c->is[n->out[0]])
            changed(c, n, arithmetic[a].y_zero, zero);
    }
    for (int v = 0; v < n_var; v++)
        if (c->is[v]) g->var.at[v].dtype = HONE_DTYPE_U8;
    return HONE_OK;
}
hone_status hone_pass_unsigned(hone_passing *p) {
    hone_graph *g = p->graph;
    bool any = false;
    if (!p->target) return HONE_OK;
    hone_graph_index(g);
    changing c = {p, g, hone_alloc((size_t)g->var.n + 1)};
    if (!c.is) return hone_fail(HONE_NO_MEMORY, "no memory to compile");
    for (int v = 0; v < g->var.n; v++)
        c.is[v] = g->var.at[v].dtype == HONE_DTYPE_I8 && g->var.at[v].producer >= 0;
    for (int k = 0; k < g->out.n; k++) c.is[g->out.at[k]] = false;
    for (bool news = true; news;) news = narrowed(&c, false), news |= narrowed(&c, true);
    for (int v = 0; v < g->var.n; v++) any |= c.is[v];
    const hone_status s = any ? change(&c) : HONE_OK;
    hone_free(c.is);
    hone_graph_index(g);
    return s;
}
