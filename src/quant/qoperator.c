/* SPDX-License-Identifier: Apache-2.0
   qoperator: a graph of pairs becomes one whose products are ops of integers, for runtimes and tools that
   want these: standard ONNX alone.

        Q(Relu?(Conv(DQ(x), DQ(w), DQ(b))))   →   QLinearConv
        Q(MatMul(DQ(x), DQ(w)))               →   QLinearMatMul
        MatMul or Gemm(DQ(x), DQ(w), b?)      →   MatMulInteger, Cast, Mul, Add?
        Q(move(DQ(x)…)) with one grid         →   move(x…), of bytes
   What is left keeps its pairs: sums, averages and activations are floats between two roundings, as the
   standard has no integers for them. A Conv that floats read keeps them too: ConvInteger wants one zero point
   for its weights and u8, which few runtimes go beyond. */
#include <math.h>
#include <string.h>

#include "quant/edit.h"
#include "quant/plan.h"

typedef struct {
    hone_quant_edit e;
    const hone_graph *g;
    int *uses;      /* one a var: readers, and outputs of the graph */
    hone_node **at; /* nodes as they stood */
    uint8_t *gone;  /* one a node */
    int n;
} rewriting;

static const hone_node *maker(const rewriting *r, hone_vid v) {
    const int k = v >= 0 ? r->g->var.at[v].producer : -1;
    return k >= 0 && k < r->n ? r->at[k] : NULL;
}
static const hone_node *dequantized(const rewriting *r, hone_vid v) {
    const hone_node *n = maker(r, v);
    return n && hone_quant_is(n, "DequantizeLinear") && n->n_in == 3 ? n : NULL;
}
static const hone_value *value(const rewriting *r, hone_vid v) {
    return v >= 0 ? r->g->var.at[v].value : NULL;
}
static bool same(const rewriting *r, hone_vid a, hone_vid b) { /* numbers */
    const hone_value *x = value(r, a), *y = value(r, b);
    return a == b || (x && y && hone_value_count(x) == 1 && hone_value_count(y) == 1 &&
                      x->dtype == y->dtype && hone_value_f64(x, 0) == hone_value_f64(y, 0));
}
static void drop(rewriting *r, const hone_node *n) {
    for (int k = 0; k < r->n; k++)
        if (r->at[k] == n) r->gone[k] = 1;
}

/* ---- products that are rounded behind ------------------------------------------------------------------ */
/* Whether the rounding `q` does what this activation does: it cuts at 0, and above where the other would. */
static bool cuts(const rewriting *r, const hone_node *act, const hone_node *q) {
    const hone_value *scale = value(r, q->in[1]), *zero = value(r, q->in[2]);
    if (!scale || !zero || hone_value_count(scale) != 1) return false;
    const double lowest = zero->dtype == HONE_DTYPE_U8   ? 0
                          : zero->dtype == HONE_DTYPE_I8 ? -128
                                                         : NAN,
                 z = hone_value_f64(zero, 0);
    if (z != lowest) return false;
    if (hone_quant_is(act, "Relu")) return true;
    const hone_value *low = act->n_in > 1 ? value(r, act->in[1]) : NULL,
                     *high = act->n_in > 2 ? value(r, act->in[2]) : NULL;
    if (!low || hone_value_count(low) != 1 || hone_value_f64(low, 0) != 0) return false;
    return act->n_in < 3 || act->in[2] < 0 ||
           (high && hone_value_count(high) == 1 &&
            (lowest + 255 - z) * hone_value_f64(scale, 0) <= hone_value_f64(high, 0) * (1 + 1e-5));
}
static bool product_rounded(rewriting *r, const hone_node *q) {
    const hone_node *n = maker(r, q->in[0]), *act = NULL;
    if (n && (hone_quant_is(n, "Relu") || hone_quant_is(n, "Clip")) && r->uses[n->out[0]] == 1)
        act = n, n = maker(r, n->in[0]);
    const bool conv = n && hone_quant_is(n, "Conv"), mat = n && hone_quant_is(n, "MatMul");
    if ((!conv && !mat) || r->uses[n->out[0]] != 1 || (act && !cuts(r, act, q))) return false;
    const hone_node *x = dequantized(r, n->in[0]), *w = dequantized(r, n->in[1]);
    const hone_node *b = n->n_in > 2 && n->in[2] >= 0 ? dequantized(r, n->in[2]) : NULL;
    const bool whole = b && r->g->var.at[b->in[0]].dtype == HONE_DTYPE_I32;
    if (!x || !w || (n->n_in > 2 && n->in[2] >= 0 && !whole) || !value(r, w->in[0])) return false;
    const hone_vid in[9] = {x->in[0], x->in[1], x->in[2], w->in[0],         w->in[1],
                            w->in[2], q->in[1], q->in[2], b ? b->in[0] : -1};
    hone_quant_put(&r->e, conv ? "QLinearConv" : "QLinearMatMul", n->name, in, b ? 9 : 8, q->out[0],
                   conv ? n->attr : NULL, conv ? n->n_attr : 0);
    drop(r, n), drop(r, q);
    if (act) drop(r, act);
    return true;
}

/* ---- products that floats read ------------------------------------------------------------------------- */
/* The weights of a Gemm as MatMul takes them. */
static hone_value *transposed(const hone_value *w) {
    const int64_t n = w->dim[0], k = w->dim[1], dim[2] = {k, n};
    hone_value *t = NULL;
    if (hone_value_tensor(w->dtype, dim, 2, &t)) return NULL;
    for (int64_t i = 0; i < n; i++)
        for (int64_t j = 0; j < k; j++) ((int8_t *)t->data)[j * n + i] = ((const int8_t *)w->data)[i * k + j];
    return t;
}
/* scale of x times those of w; what is an i32 bias in floats; NULL: no memory. */
static hone_value *products(const hone_value *a, const hone_value *b) {
    const int64_t n = hone_value_count(b);
    hone_value *v = NULL;
    if (hone_value_tensor(HONE_DTYPE_F32, &n, b->rank == 0 ? 0 : 1, &v)) return NULL;
    for (int64_t k = 0; k < n; k++)
        ((float *)v->data)[k] =
            (float)(hone_value_f64(a, hone_value_count(a) == 1 ? 0 : k) * hone_value_f64(b, k));
    return v;
}
static bool product_floats(rewriting *r, const hone_node *n) {
    const bool gemm = hone_quant_is(n, "Gemm");
    if (!gemm && !hone_quant_is(n, "MatMul")) return false;
    const hone_node *x = dequantized(r, n->in[0]), *w = dequantized(r, n->in[1]);
    const hone_value *m = w ? value(r, w->in[0]) : NULL, *s = w ? value(r, w->in[1]) : NULL,
                     *xs = x ? value(r, x->in[1]) : NULL;
    if (!x || !m || !s || !xs || hone_value_count(xs) != 1 || m->dtype != HONE_DTYPE_I8 || m->rank != 2)
        return false;
    if (gemm && (hone_attr_int(n->attr, n->n_attr, "transA", 0) ||
                 hone_attr_float(n->attr, n->n_attr, "alpha", 1) != 1 ||
                 hone_attr_float(n->attr, n->n_attr, "beta", 1) != 1))
        return false;
    const bool turn = gemm && hone_attr_int(n->attr, n->n_attr, "transB", 0),
               biased = n->n_in > 2 && n->in[2] >= 0;
    hone_vid right = w->in[0];
    if (turn) right = hone_quant_constant(&r->e, r->g->var.at[right].name, transposed(m));
    const hone_vid zero = hone_quant_number(r->e.graph, "zero", HONE_DTYPE_I8, 0),
                   in[4] = {x->in[0], right, x->in[2], zero};
    const hone_vid sum = hone_quant_put(&r->e, "MatMulInteger", n->name, in, 4,
                                        hone_quant_like(&r->e, n->out[0], HONE_DTYPE_I32), NULL, 0);
    const hone_vid real = hone_quant_cast(&r->e, sum, -1, HONE_DTYPE_F32);
    const hone_vid by[2] = {real, hone_quant_constant(&r->e, "unit", products(xs, s))};
    const hone_vid scaled =
        hone_quant_put(&r->e, "Mul", n->name, by, 2,
                       biased ? hone_quant_like(&r->e, n->out[0], HONE_DTYPE_F32) : n->out[0], NULL, 0);
    const hone_vid with[2] = {scaled, biased ? n->in[2] : -1};
    if (biased) hone_quant_put(&r->e, "Add", n->name, with, 2, n->out[0], NULL, 0);
    drop(r, n);
    return true;
}

/* ---- what moves bytes ---------------------------------------------------------------------------------- */
static bool moves(const hone_node *n) {
    static const char *const ops[] = {"Reshape", "Flatten",      "Squeeze",     "Unsqueeze", "Transpose",
                                      "Slice",   "Gather",       "Concat",      "MaxPool",   "Expand",
                                      "Tile",    "DepthToSpace", "SpaceToDepth"};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++)
        if (hone_quant_is(n, ops[k])) return n->n_out == 1;
    return hone_quant_is(n, "Resize") &&
           !strcmp(hone_attr_text(n->attr, n->n_attr, "mode", "nearest"), "nearest");
}
static bool moved(rewriting *r, const hone_node *q) {
    const hone_node *n = maker(r, q->in[0]);
    hone_vid in[64];
    if (!n || !moves(n) || n->n_in > 64 || r->uses[n->out[0]] != 1) return false;
    const int operands = hone_quant_is(n, "Concat") ? n->n_in : 1;
    for (int k = 0; k < n->n_in; k++) {
        const hone_node *dq = k < operands ? dequantized(r, n->in[k]) : NULL;
        if (k < operands && (!dq || !same(r, dq->in[1], q->in[1]) || !same(r, dq->in[2], q->in[2])))
            return false;
        in[k] = dq ? dq->in[0] : n->in[k];
    }
    hone_quant_put(&r->e, n->program->name, n->name, in, n->n_in, q->out[0], n->attr, n->n_attr);
    drop(r, n), drop(r, q);
    return true;
}

/* ---- the graph ----------------------------------------------------------------------------------------- */
/* Pairs that nobody reads any longer; from the end, so that a chain goes as a whole. */
static void forget_unread(hone_graph *g, int *uses) {
    memset(uses, 0, sizeof *uses * (size_t)g->var.n);
    for (int k = 0; k < g->out.n; k++) uses[g->out.at[k]]++;
    for (int k = 0; k < g->node.n; k++)
        for (int i = 0; i < g->node.at[k]->n_in; i++)
            if (g->node.at[k]->in[i] >= 0) uses[g->node.at[k]->in[i]]++;
    int n = g->node.n;
    for (int k = g->node.n - 1; k >= 0; k--) {
        hone_node *at = g->node.at[k];
        const bool pair = hone_quant_is(at, "DequantizeLinear") || hone_quant_is(at, "QuantizeLinear");
        if (!pair || uses[at->out[0]]) continue;
        for (int i = 0; i < at->n_in; i++)
            if (at->in[i] >= 0) uses[at->in[i]]--;
        g->node.at[k] = NULL, n--;
    }
    int to = 0;
    for (int k = 0; k < g->node.n; k++)
        if (g->node.at[k]) g->node.at[to++] = g->node.at[k];
    g->node.n = n;
}
hone_status hone_quant_qoperator(const hone_quant_job *job, hone_graph *g) {
    hone_quant_job of = *job;
    of.graph = g;
    rewriting r = {.e = hone_quant_edit_open(&of), .g = g, .n = g->node.n};
    r.at = hone_alloc(sizeof *r.at * (size_t)(r.n + 1));
    r.gone = hone_alloc((size_t)r.n + 1);
    r.uses = hone_alloc(sizeof *r.uses * (size_t)(g->var.n + 1));
    hone_status s = r.at && r.gone && r.uses ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < r.n && !s; k++) r.at[k] = g->node.at[k];
    for (int k = 0; k < r.n && !s; k++)
        for (int i = 0; i < r.at[k]->n_in; i++)
            if (r.at[k]->in[i] >= 0) r.uses[r.at[k]->in[i]]++;
    for (int k = 0; k < g->out.n && !s; k++) r.uses[g->out.at[k]]++;
    /* A rounding says what becomes of the product before it: first those, then products that floats read. */
    for (int k = 0; k < r.n && !s; k++) {
        const hone_node *n = r.at[k];
        const bool rounds = hone_quant_is(n, "QuantizeLinear") && n->n_in == 3;
        if (!rounds || !(product_rounded(&r, n) || moved(&r, n))) hone_quant_keep(&r.e, r.at[k]);
    }
    hone_node **list = r.e.done.at; /* walked while another is written */
    const int kept = r.e.done.n;
    r.e.done.at = NULL, r.e.done.n = r.e.done.room = 0;
    for (int k = 0; k < kept && !s; k++) {
        bool gone = false;
        for (int i = 0; i < r.n && !gone; i++) gone = r.gone[i] && r.at[i] == list[k];
        if (!gone && !product_floats(&r, list[k])) hone_quant_keep(&r.e, list[k]);
    }
    hone_free(list), hone_free(r.uses);
    if (s && !r.e.status) r.e.status = s;
    s = hone_quant_edit_close(&r.e);
    if (!s) {
        int *uses = hone_alloc(sizeof *uses * (size_t)(g->var.n + 1));
        if (uses) forget_unread(g, uses), hone_graph_index(g);
        else s = hone_quant_no_memory();
        hone_free(uses);
    }
    hone_free(r.at), hone_free(r.gone);
    return s;
}
