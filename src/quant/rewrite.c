/* SPDX-License-Identifier: Apache-2.0
   rewrite: a float graph and a plan become a graph in QDQ form: QuantizeLinear and DequantizeLinear around every layer that is to be integers, as other runtimes read it too.

        x ─ Q ─ DQ ─┐
        w(s8) ─ DQ ─┼─ Conv ─ Relu ─ Q ─ DQ ─        weights: s8, zero 0, a scale an output channel; bias: i32, its scale that of the sum
        b(i32) ─ DQ ┘
   A channel whose bias is far beyond its weights has a larger scale, so that the bias fits i32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quant/plan.h"

typedef struct {
    const hone_quant_plan *p;
    const hone_library *lib;
    hone_graph *g;     /* the new one; its vars have the plan's numbers, and more */
    uint8_t *on;       /* one a var of the plan */
    hone_vid *rounded; /* likewise: DequantizeLinear's result */
    bool failed;
} rewriting;

hone_vid hone_quant_emit(hone_graph *g, const hone_library *lib, const char *op, const char *name, const hone_vid *in, int n_in, const hone_attr *attr,
                         int n_attr) {
    const hone_program *row = hone_library_find(lib, "", op);
    const hone_vid y = row ? hone_graph_var(g, name) : -1;
    hone_node *n = y >= 0 ? hone_graph_node(g, row, name, in, n_in, &y, 1) : NULL;
    return n && (!n_attr || hone_node_attrs(g, n, attr, n_attr)) ? y : -1;
}
hone_vid hone_quant_number(hone_graph *g, const char *name, hone_dtype t, double x) {
    hone_value *v = NULL;
    if (hone_value_tensor(t, NULL, 0, &v)) return -1;
    if (t == HONE_DTYPE_F32) *(float *)v->data = (float)x;
    else hone_dtype_store(t, v->data, HONE_I64, (hone_scalar){.i64 = (int64_t)x}, false);
    return hone_graph_const(g, name, v);
}
hone_vid hone_quant_pair(hone_graph *g, const hone_library *lib, hone_vid x, const hone_grid *grid, hone_dtype t) {
    const hone_vid s = hone_quant_number(g, "scale", HONE_DTYPE_F32, grid->scale), z = hone_quant_number(g, "zero", t, grid->zero);
    if (x < 0 || s < 0 || z < 0) return -1;
    const char *of = g->var.at[x].name;
    char name[256];
    snprintf(name, sizeof name, "%.200s_q", of);
    const hone_vid q = hone_quant_emit(g, lib, "QuantizeLinear", name, (const hone_vid[]){x, s, z}, 3, NULL, 0);
    snprintf(name, sizeof name, "%.200s_dq", of);
    return q < 0 ? -1 : hone_quant_emit(g, lib, "DequantizeLinear", name, (const hone_vid[]){q, s, z}, 3, NULL, 0);
}

/* ---- weights -------------------------------------------------------------------------------------------------------------------------------- */
enum { MOST_WEIGHT = 127 };
/* How many elements apart those of one channel are, and how many channels. */
typedef struct {
    int64_t outer, channels, inner;
} channels_of;
static channels_of channels_at(const hone_value *w, int axis) {
    channels_of c = {1, w->dim[axis], 1};
    for (int d = 0; d < axis; d++) c.outer *= w->dim[d];
    for (int d = axis + 1; d < w->rank; d++) c.inner *= w->dim[d];
    return c;
}
static hone_value *weight_scales(const hone_quant_layer *l, const hone_value *w, const hone_value *bias, double unit, bool per_tensor) {
    const channels_of c = channels_at(w, l->axis);
    hone_value *scales = NULL;
    if (hone_value_tensor(HONE_DTYPE_F32, &c.channels, per_tensor ? 0 : 1, &scales)) return NULL;
    float *s = scales->data;
    const float *x = w->data;
    for (int64_t o = 0, k = 0; o < c.outer; o++)
        for (int64_t m = 0; m < c.channels; m++)
            for (int64_t i = 0; i < c.inner; i++, k++) s[per_tensor ? 0 : m] = fmaxf(s[per_tensor ? 0 : m], fabsf(x[k]));
    for (int64_t m = 0; m < (per_tensor ? 1 : c.channels); m++) {
        s[m] = s[m] / MOST_WEIGHT;
        for (int64_t b = m; bias && b < (per_tensor ? c.channels : m + 1); b++) s[m] = fmaxf(s[m], (float)(fabs(((const float *)bias->data)[b]) / unit / 0x1p29));
        if (!(s[m] > 1e-12f)) s[m] = 1e-12f; /* a channel of nothing */
    }
    return scales;
}
static hone_value *weight_bytes(const hone_quant_layer *l, const hone_value *w, const hone_value *scales) {
    const channels_of c = channels_at(w, l->axis);
    hone_value *q = NULL;
    if (hone_value_tensor(HONE_DTYPE_I8, w->dim, w->rank, &q)) return NULL;
    for (int64_t o = 0, k = 0; o < c.outer; o++)
        for (int64_t m = 0; m < c.channels; m++) {
            const float s = ((const float *)scales->data)[scales->rank ? m : 0];
            for (int64_t i = 0; i < c.inner; i++, k++) {
                const float v = nearbyintf(((const float *)w->data)[k] / s);
                ((int8_t *)q->data)[k] = (int8_t)(v < -MOST_WEIGHT ? -MOST_WEIGHT : v > MOST_WEIGHT ? MOST_WEIGHT : v);
            }
        }
    return q;
}
/* DequantizeLinear of a constant of s8 or i32. */
static hone_vid constant(rewriting *r, const char *name, hone_value *q, hone_value *scales, hone_dtype t, int axis) {
    hone_value *zeros = NULL;
    char text[256];
    if (!q || !scales || hone_value_tensor(t, scales->dim, scales->rank, &zeros)) {
        hone_value_drop(q), hone_value_drop(scales);
        return -1;
    }
    const hone_attr at = {.name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]){axis}};
    snprintf(text, sizeof text, "%.200s_q", name);
    const hone_vid in[3] = {hone_graph_const(r->g, text, q), hone_graph_const(r->g, "scale", scales), hone_graph_const(r->g, "zero", zeros)};
    snprintf(text, sizeof text, "%.200s_dq", name);
    return in[0] < 0 || in[1] < 0 || in[2] < 0 ? -1 : hone_quant_emit(r->g, r->lib, "DequantizeLinear", text, in, 3, &at, scales->rank ? 1 : 0);
}
/* A bias that can be i32: one number an output channel. */
static const hone_value *bias_of(const rewriting *r, const hone_quant_layer *l, int64_t channels) {
    const hone_value *b = l->b >= 0 ? r->p->graph->var.at[l->b].value : NULL;
    if (!b || b->dtype != HONE_DTYPE_F32 || b->rank != 1 || b->dim[0] != channels) return NULL;
    for (int64_t k = 0; k < channels; k++)
        if (!isfinite(((const float *)b->data)[k])) return NULL;
    return b;
}
static bool weights(rewriting *r, const hone_quant_layer *l, hone_vid *in) {
    const hone_value *w = r->p->graph->var.at[l->w].value, *b = bias_of(r, l, w->dim[l->axis]);
    const double unit = hone_quant_plan_grid(r->p, r->p->class_of[l->x]).scale;
    hone_value *scales = weight_scales(l, w, b, unit, r->p->per_tensor);
    if (!scales) return false;
    hone_value *sums = NULL, *whole = NULL;
    const int64_t n = w->dim[l->axis];
    bool ok = true;
    if (b) {
        ok = hone_value_tensor(HONE_DTYPE_F32, &n, scales->rank, &sums) == HONE_OK && hone_value_tensor(HONE_DTYPE_I32, &n, 1, &whole) == HONE_OK;
        for (int64_t k = 0; ok && k < n; k++) {
            const float s = (float)unit * ((const float *)scales->data)[scales->rank ? k : 0];
            ((float *)sums->data)[scales->rank ? k : 0] = s;
            ((int32_t *)whole->data)[k] = (int32_t)nearbyint(((const float *)b->data)[k] / (double)s);
        }
    }
    if (!ok) {
        hone_value_drop(scales), hone_value_drop(sums), hone_value_drop(whole);
        return false;
    }
    hone_value *bytes = weight_bytes(l, w, scales);
    in[1] = constant(r, r->p->graph->var.at[l->w].name, bytes, scales, HONE_DTYPE_I8, l->axis);
    if (b) in[2] = constant(r, r->p->graph->var.at[l->b].name, whole, sums, HONE_DTYPE_I32, 0);
    return in[1] >= 0 && (!b || in[2] >= 0);
}

/* ---- the graph -------------------------------------------------------------------------------------------------------------------------------- */
/* Whether tensor v goes on as floats to those who compute with them: it feeds MatMul and Gemm alone, and a float op made it. */
static bool goes_on(const rewriting *r, hone_vid v) {
    const hone_quant_plan *p = r->p;
    const hone_graph *g = p->graph;
    const int maker = g->var.at[v].producer;
    if (maker < 0 || p->moves[maker]) return false;
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        if (l->conv && !l->stays && (l->x == v || hone_quant_result(p, l) == v)) return false;
    }
    for (int k = 0; k < p->n_node; k++)
        for (int i = 0; i < p->moves[k]; i++)
            if (g->node.at[k]->in[i] == v) return false;
    return true;
}
static hone_vid read_by(const rewriting *r, int node, hone_vid v) {
    if (v < 0 || v >= r->p->n_var || r->rounded[v] < 0) return v;
    const int layer = r->p->layer_of[node];
    const bool integer = layer >= 0 && !r->p->layer.at[layer].stays;
    if (!integer && !r->p->moves[node] && goes_on(r, v)) return v;
    return r->rounded[v];
}
static bool round_var(rewriting *r, hone_vid v) {
    if (v < 0 || !r->on[v]) return true;
    const hone_grid grid = hone_quant_plan_grid(r->p, r->p->class_of[v]);
    r->rounded[v] = hone_quant_pair(r->g, r->lib, v, &grid, r->p->dtype);
    return r->rounded[v] >= 0;
}
static hone_status rebuild(rewriting *r) {
    const hone_graph *from = r->p->graph;
    hone_graph *g = r->g;
    hone_node **old = hone_alloc(sizeof *old * (size_t)(g->node.n + 1));
    const int n_old = g->node.n;
    if (!old) return hone_fail(HONE_NO_MEMORY, "no memory to quantize a model");
    if (n_old) memcpy(old, g->node.at, sizeof *old * (size_t)n_old);
    g->node.n = 0;
    bool ok = true;
    for (int k = 0; ok && k < from->in.n; k++) ok = round_var(r, from->in.at[k]);
    for (int k = 0; ok && k < n_old; k++) {
        hone_node *n = old[k];
        const int layer = r->p->layer_of[k];
        hone_vid in[3] = {n->n_in > 0 ? n->in[0] : -1, n->n_in > 1 ? n->in[1] : -1, n->n_in > 2 ? n->in[2] : -1};
        if (layer >= 0 && !r->p->layer.at[layer].stays) {
            ok = weights(r, r->p->layer.at + layer, in);
            for (int i = 1; i < n->n_in && i < 3; i++) n->in[i] = in[i];
        }
        for (int i = 0; i < n->n_in; i++) n->in[i] = read_by(r, k, n->in[i]);
        ok = ok && hone_push(&g->node, n);
        for (int i = 0; ok && i < n->n_out; i++) ok = round_var(r, n->out[i]);
    }
    hone_free(old);
    return ok ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to quantize a model");
}
/* An output of the graph that is rounded keeps its name: what was its maker's result is another var. */
static bool split_output(rewriting *r, int k) {
    hone_graph *g = r->g;
    const hone_vid v = g->out.at[k];
    if (v >= r->p->n_var || r->rounded[v] < 0) return true;
    const int maker = r->p->graph->var.at[v].producer, layer = maker >= 0 ? r->p->layer_of[maker] : -1;
    bool needed = layer >= 0 && r->p->layer.at[layer].conv && !r->p->layer.at[layer].stays; /* without it the sum would be one of floats */
    for (int l = 0; l < r->p->layer.n && !needed; l++)
        needed = r->p->layer.at[l].conv && !r->p->layer.at[l].stays && hone_quant_result(r->p, r->p->layer.at + l) == v;
    if (!needed) return true;
    const hone_vid to = r->rounded[v]; /* names change places */
    const char *name = g->var.at[v].name;
    const hone_vid inner = hone_graph_var(g, name);
    if (inner < 0) return false;
    hone_var made = g->var.at[v];
    made.name = g->var.at[inner].name, g->var.at[inner] = made;
    for (int n = 0; n < g->node.n; n++) {
        hone_node *at = g->node.at[n];
        for (int i = 0; i < at->n_in; i++)
            if (at->in[i] == v) at->in[i] = inner;
            else if (at->in[i] == to) at->in[i] = v;
        for (int i = 0; i < at->n_out; i++)
            if (at->out[i] == v) at->out[i] = inner;
            else if (at->out[i] == to) at->out[i] = v;
    }
    return true;
}
hone_status hone_quant_rewrite(const hone_quant_plan *p, const hone_library *lib, hone_graph **out) {
    rewriting r = {.p = p, .lib = lib};
    HONE_TRY(hone_graph_copy(p->graph, &r.g));
    r.on = hone_alloc((size_t)p->n_var + 1);
    r.rounded = hone_alloc(sizeof *r.rounded * (size_t)(p->n_var + 1));
    hone_status s = r.on && r.rounded ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to quantize a model");
    if (!s) {
        hone_quant_plan_mark(p, r.on);
        for (int v = 0; v < p->n_var; v++) r.rounded[v] = -1;
        s = rebuild(&r);
    }
    for (int k = 0; !s && k < r.g->out.n; k++)
        if (!split_output(&r, k)) s = hone_fail(HONE_NO_MEMORY, "no memory to quantize a model");
    hone_free(r.on), hone_free(r.rounded);
    if (s) {
        hone_graph_destroy(r.g);
        return s;
    }
    hone_graph_index(r.g);
    *out = r.g;
    return HONE_OK;
}
