/* SPDX-License-Identifier: Apache-2.0
   plan: see plan.h. */
#include "quant/plan.h"

#include <math.h>
#include <string.h>

static bool is(const hone_node *n, const char *op) {
    return !*n->program->domain && !strcmp(n->program->name, op);
}

/* ---- what moves elements only -------------------------------------------------------------------------- */
static bool first_result(const hone_graph *g, const hone_node *n) {
    (void)g;
    return n->n_out < 2 || n->out[1] < 0;
}
static bool nearest(const hone_graph *g, const hone_node *n) {
    (void)g;
    return !strcmp(hone_attr_text(n->attr, n->n_attr, "mode", "nearest"), "nearest");
}
static bool pads_zeros(const hone_graph *g, const hone_node *n) {
    const hone_value *v = n->n_in > 2 && n->in[2] >= 0 ? g->var.at[n->in[2]].value : NULL;
    if (strcmp(hone_attr_text(n->attr, n->n_attr, "mode", "constant"), "constant") != 0) return true;
    return n->n_in < 3 || n->in[2] < 0 || (v && hone_value_count(v) == 1 && hone_value_f64(v, 0) == 0);
}
static const struct {
    const char *op;
    int operands; /* 0: all */
    bool (*if_so)(const hone_graph *, const hone_node *);
} movers[] = {
    {"Reshape", 1, NULL},   {"Flatten", 1, NULL}, {"Squeeze", 1, NULL},         {"Unsqueeze", 1, NULL},
    {"Transpose", 1, NULL}, {"Slice", 1, NULL},   {"Split", 1, NULL},           {"Gather", 1, NULL},
    {"Expand", 1, NULL},    {"Tile", 1, NULL},    {"DepthToSpace", 1, NULL},    {"SpaceToDepth", 1, NULL},
    {"Identity", 1, NULL},  {"Concat", 0, NULL},  {"MaxPool", 1, first_result}, {"Resize", 1, nearest},
    {"Pad", 1, pads_zeros},
};
static int moved_by(const hone_graph *g, const hone_node *n) {
    for (size_t k = 0; k < sizeof movers / sizeof *movers; k++)
        if (is(n, movers[k].op) && (!movers[k].if_so || movers[k].if_so(g, n)))
            return movers[k].operands ? movers[k].operands : n->n_in;
    return 0;
}

/* ---- layers -------------------------------------------------------------------------------------------- */
static bool all_finite(const hone_value *v) {
    const float *x = v->data;
    for (int64_t k = 0, n = hone_value_count(v); k < n; k++)
        if (!isfinite(x[k])) return false;
    return true;
}
/* A layer, or why it is none; NULL: it is no product at all. */
static bool layer_at(const hone_graph *g, int k, hone_quant_layer *out, const char **why) {
    const hone_node *n = g->node.at[k];
    const bool conv = is(n, "Conv"), mat = is(n, "MatMul"), gemm = is(n, "Gemm");
    *why = NULL;
    if (!conv && !mat && !gemm) return false;
    const hone_var *x = g->var.at + n->in[0], *w = g->var.at + n->in[1];
    const hone_value *v = w->value;
    *out = (hone_quant_layer){.node = k,
                              .x = n->in[0],
                              .w = n->in[1],
                              .b = n->n_in > 2 ? n->in[2] : -1,
                              .y = n->out[0],
                              .noise = -1,
                              .behind = -1};
    *why = "its weights are not constant";
    if (!v || x->value) return false;
    *why = "it is not f32";
    if (x->dtype != HONE_DTYPE_F32 || v->dtype != HONE_DTYPE_F32 || v->tag != HONE_TAG_TENSOR) return false;
    *why = "its shape is not that of a layer";
    if (x->rank < 2 || v->rank < 2 || hone_value_count(v) < 1 || (!conv && v->rank != 2) ||
        (conv && v->rank < 3))
        return false;
    *why = "alpha, beta or a transposed operand";
    if (gemm && (hone_attr_int(n->attr, n->n_attr, "transA", 0) ||
                 hone_attr_float(n->attr, n->n_attr, "alpha", 1) != 1 ||
                 (out->b >= 0 && hone_attr_float(n->attr, n->n_attr, "beta", 1) != 1)))
        return false;
    *why = "its weights are not finite";
    if (!all_finite(v)) return false;
    out->conv = conv;
    out->axis = conv ? 0 : gemm && hone_attr_int(n->attr, n->n_attr, "transB", 0) ? 0 : 1;
    out->depthwise = conv && v->dim[1] == 1 && hone_attr_int(n->attr, n->n_attr, "group", 1) > 1;
    *why = NULL;
    return true;
}
hone_vid hone_quant_result(const hone_quant_plan *p, const hone_quant_layer *l) {
    const hone_graph *g = p->graph;
    if (g->var.at[l->y].uses != 1) return l->y;
    for (int k = l->node + 1; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        if (n->n_in < 1 || n->in[0] != l->y) continue;
        if (is(n, "Relu")) return n->out[0];
        if (!is(n, "Clip")) return l->y;
        for (int i = 1; i < n->n_in; i++)
            if (n->in[i] >= 0 && !g->var.at[n->in[i]].value) return l->y;
        return n->out[0];
    }
    return l->y;
}

/* ---- which tensors are rounded ------------------------------------------------------------------------- */
static bool rounds(const hone_quant_plan *p, hone_vid v) {
    return v >= 0 && p->graph->var.at[v].dtype == HONE_DTYPE_F32 && !p->graph->var.at[v].value;
}
void hone_quant_plan_mark(const hone_quant_plan *p, uint8_t *on) {
    const hone_graph *g = p->graph;
    memset(on, 0, (size_t)p->n_var);
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        if (l->stays) continue;
        on[l->x] = 1;
        if (l->conv && p->rounds_sums) on[hone_quant_result(p, l)] = 1;
    }
    /* through what moves: forwards where all is rounded, backwards where the result is */
    for (bool news = true; news;) {
        news = false;
        for (int k = 0; k < p->n_node; k++) {
            const hone_node *n = g->node.at[k];
            bool all = p->moves[k] > 0, any = false, fits = true;
            for (int i = 0; i < p->moves[k]; i++)
                fits = fits && rounds(p, n->in[i]), all = all && n->in[i] >= 0 && on[n->in[i]];
            for (int i = 0; i < n->n_out; i++) any |= n->out[i] >= 0 && on[n->out[i]];
            if (!p->moves[k] || !fits || (!all && !any)) continue;
            for (int i = 0; i < p->moves[k]; i++)
                if (!on[n->in[i]]) on[n->in[i]] = 1, news = true;
            for (int i = 0; i < n->n_out; i++)
                if (n->out[i] >= 0 && !on[n->out[i]]) on[n->out[i]] = 1, news = true;
        }
    }
}

bool hone_quant_layers_alone(const hone_quant_plan *p, hone_vid v) {
    const hone_graph *g = p->graph;
    for (int k = 0; k < g->out.n; k++)
        if (g->out.at[k] == v) return false;
    for (int k = 0; k < p->n_node; k++)
        for (int i = 0; i < g->node.at[k]->n_in; i++)
            if (g->node.at[k]->in[i] == v &&
                (i > 0 || p->layer_of[k] < 0 || p->layer.at[p->layer_of[k]].stays))
                return false;
    return true;
}

bool hone_quant_goes_on(const hone_quant_plan *p, hone_vid v) {
    const hone_graph *g = p->graph;
    const int maker = g->var.at[v].producer;
    if (maker < 0 || p->moves[maker]) return false;
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        if (!p->sums_go_on && l->conv && !l->stays && (l->x == v || hone_quant_result(p, l) == v))
            return false;
    }
    for (int k = 0; k < p->n_node; k++)
        for (int i = 0; i < p->moves[k]; i++)
            if (g->node.at[k]->in[i] == v) return false;
    return true;
}

/* ---- grids that are shared ----------------------------------------------------------------------------- */
static int32_t top_of(int32_t *up, int32_t v) {
    while (up[v] != v) v = up[v] = up[up[v]];
    return v;
}
static hone_status find_classes(hone_quant_plan *p) {
    const hone_graph *g = p->graph;
    uint8_t *on = hone_alloc((size_t)p->n_var + 1);
    int32_t *up = hone_alloc(sizeof *up * (size_t)(p->n_var + 1));
    bool ok = on && up;
    if (ok) hone_quant_plan_mark(p, on);
    for (int v = 0; ok && v < p->n_var; v++) up[v] = v, p->class_of[v] = -1;
    for (int k = 0; ok && k < p->n_node; k++) {
        const hone_node *n = g->node.at[k];
        if (!p->moves[k] || n->out[0] < 0 || !on[n->out[0]]) continue;
        for (int i = 0; i < p->moves[k]; i++) up[top_of(up, n->in[i])] = top_of(up, n->out[0]);
        for (int i = 1; i < n->n_out; i++)
            if (n->out[i] >= 0) up[top_of(up, n->out[i])] = top_of(up, n->out[0]);
    }
    for (int v = 0; ok && v < p->n_var; v++) {
        if (!on[v]) continue;
        const int32_t top = top_of(up, v);
        if (p->class_of[top] < 0) {
            hone_quant_class c = {.var = v, .observer = -1};
            for (int k = 0; k < HONE_OBSERVERS; k++) c.error[k] = NAN;
            c.seen = hone_alloc(sizeof *c.seen);
            ok = c.seen && hone_push(&p->class, c);
            if (!ok) hone_free(c.seen);
            p->class_of[top] = p->class.n - 1;
        }
        p->class_of[v] = p->class_of[top];
    }
    for (int v = 0; ok && v < p->n_var; v++) /* a var that leads a class is not always rounded itself */
        if (!on[v]) p->class_of[v] = -1;
    hone_free(on), hone_free(up);
    return ok ? HONE_OK : hone_quant_no_memory();
}

/* ---- the plan ------------------------------------------------------------------------------------------ */
static const struct {
    const char *name;
    hone_dtype dtype;
    int32_t lowest, highest;
} kinds[] = {{"u8", HONE_DTYPE_U8, 0, 255},
             {"s8", HONE_DTYPE_I8, -128, 127},
             {"u16", HONE_DTYPE_U16, 0, 65535},
             {"s16", HONE_DTYPE_I16, -32768, 32767}};

hone_status hone_quant_plan_make(hone_graph *g, const hone_quantizing *wish, hone_quant_plan *out) {
    hone_quant_plan p = {.graph = g,
                         .n_var = g->var.n,
                         .n_node = g->node.n,
                         .per_tensor = wish->per_tensor != 0,
                         .rounds_sums = wish->portable != 0};
    if (wish->format && strcmp(wish->format, "qdq") != 0 && strcmp(wish->format, "qoperator") != 0)
        return hone_fail(HONE_BAD_INPUT, "format '%s': there are qdq and qoperator", wish->format);
    p.integer_ops = wish->format && !strcmp(wish->format, "qoperator");
    p.rounds_sums |= p.integer_ops;
    const char *kind = wish->activations ? wish->activations : "u8";
    for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++)
        if (!strcmp(kinds[k].name, kind))
            p.dtype = kinds[k].dtype, p.lowest = kinds[k].lowest, p.highest = kinds[k].highest;
    if (!p.dtype) return hone_fail(HONE_BAD_INPUT, "activations '%s': there are u8, s8, u16 and s16", kind);
    if (p.integer_ops && p.highest > 255)
        return hone_fail(HONE_BAD_INPUT, "format 'qoperator' has no ops of %s: say u8 or s8, or format qdq",
                         kind);
    p.symmetric = kind[0] == 's';
    hone_graph_index(g);
    p.class_of = hone_alloc(sizeof *p.class_of * (size_t)(p.n_var + 1));
    p.layer_of = hone_alloc(sizeof *p.layer_of * (size_t)(p.n_node + 1));
    p.moves = hone_alloc((size_t)p.n_node + 1);
    hone_status s = p.class_of && p.layer_of && p.moves ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < p.n_node && !s; k++) {
        hone_quant_layer l;
        const hone_node *n = g->node.at[k];
        if (is(n, "QuantizeLinear") || is(n, "DequantizeLinear") || is(n, "QLinearConv"))
            s = hone_fail(HONE_BAD_INPUT,
                          "node '%s' (%s): the model is quantized already; quantize the float model that it "
                          "was made of",
                          n->name, n->program->name);
        p.layer_of[k] = -1;
        const int moved = moved_by(g, n);
        p.moves[k] = (uint8_t)(moved > 255 ? 0 : moved);
        const char *why;
        if (s || !layer_at(g, k, &l, &why)) continue;
        p.layer_of[k] = p.layer.n;
        if (!hone_push(&p.layer, l)) s = hone_quant_no_memory();
    }
    if (!s && !p.layer.n)
        s = hone_quant_nothing(g, HONE_BAD_INPUT, g->name,
                               "layer that can be quantized: no Conv, MatMul or Gemm of f32 with constant "
                               "weights outside of bodies");
    if (!s) s = find_classes(&p);
    if (s) hone_quant_plan_free(&p);
    else *out = p;
    return s;
}
void hone_quant_plan_free(hone_quant_plan *p) {
    for (int k = 0; k < p->class.n; k++)
        hone_free(p->class.at[k].seen), hone_free(p->class.at[k].least), hone_free(p->class.at[k].most),
            hone_free(p->class.at[k].unit);
    for (int k = 0; k < p->layer.n; k++) hone_quant_layer_forget(p->layer.at + k);
    hone_vec_free(&p->class);
    hone_vec_free(&p->layer);
    hone_free(p->class_of), hone_free(p->layer_of), hone_free(p->moves);
    *p = (hone_quant_plan){0};
}
static void put_aside(hone_quant_layer *l, int units) {
    l->aside[units].bytes = l->bytes, l->aside[units].scales = l->scales;
    l->aside[units].shift = l->shift, l->aside[units].fitted = l->fitted;
    l->bytes = l->scales = NULL, l->shift = NULL, l->fitted = false;
}
void hone_quant_layer_units(hone_quant_layer *l, uint8_t units) {
    if (l->units == units) return;
    put_aside(l, l->units);
    l->bytes = l->aside[units].bytes, l->scales = l->aside[units].scales;
    l->shift = l->aside[units].shift, l->fitted = l->aside[units].fitted, l->units = units;
    memset(l->aside + units, 0, sizeof *l->aside);
}
void hone_quant_layer_forget(hone_quant_layer *l) {
    put_aside(l, l->units);
    for (int k = 0; k < 4; k++)
        hone_value_drop(l->aside[k].bytes), hone_value_drop(l->aside[k].scales), hone_free(l->aside[k].shift);
    memset(l->aside, 0, sizeof l->aside);
}
void hone_quant_plan_forget(hone_quant_plan *p, int class) {
    for (int k = 0; k < p->layer.n; k++) {
        hone_quant_layer *l = p->layer.at + k;
        if (p->class_of[l->x] != class && p->class_of[hone_quant_result(p, l)] != class) continue;
        hone_quant_layer_forget(l);
    }
}
hone_grid hone_quant_plan_grid(const hone_quant_plan *p, int class) {
    return hone_grid_of(p->class.at[class].range, p->lowest, p->highest, p->symmetric);
}
