/* SPDX-License-Identifier: Apache-2.0
   rewrite: a float graph and a plan become a graph in QDQ form: QuantizeLinear and DequantizeLinear around
   every layer that is to be integers, as other runtimes read it too.

        x ─ Q ─ DQ ─┐
        w(s8) ─ DQ ─┼─ Conv ─ Relu ─ Q ─ DQ ─        weights: s8, zero 0, a scale an output channel; bias:
                                                     i32, its scale that of the sum
        b(i32) ─ DQ ┘
   A channel whose bias is far beyond its weights has a larger scale, so that the bias fits i32. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quant/plan.h"

typedef struct {
    hone_quant_plan *p; /* whose layers keep their weights */
    const hone_library *lib;
    hone_graph *g;     /* the new one; its vars have the plan's numbers, and more */
    uint8_t *on;       /* one a var of the plan */
    hone_vid *rounded; /* likewise: DequantizeLinear's result */
    bool failed;
} rewriting;

hone_vid hone_quant_emit(hone_graph *g, const hone_library *lib, const char *op, const char *name,
                         const hone_vid *in, int n_in, const hone_attr *attr, int n_attr) {
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
hone_vid hone_quant_pair(hone_graph *g, const hone_library *lib, hone_vid x, const hone_grid *grid,
                         hone_dtype t) {
    const hone_vid s = hone_quant_number(g, "scale", HONE_DTYPE_F32, grid->scale),
                   z = hone_quant_number(g, "zero", t, grid->zero);
    if (x < 0 || s < 0 || z < 0) return -1;
    const char *of = g->var.at[x].name;
    char name[256];
    snprintf(name, sizeof name, "%.200s_q", of);
    const hone_vid q =
        hone_quant_emit(g, lib, "QuantizeLinear", name, (const hone_vid[]){x, s, z}, 3, NULL, 0);
    snprintf(name, sizeof name, "%.200s_dq", of);
    return q < 0 ? -1
                 : hone_quant_emit(g, lib, "DequantizeLinear", name, (const hone_vid[]){q, s, z}, 3, NULL, 0);
}

/* ---- weights ------------------------------------------------------------------------------------------- */
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
/* How much a channel's weights lose at a scale. */
static double lost(const float *x, const channels_of *c, int64_t m, float scale) {
    double sum = 0;
    for (int64_t o = 0; o < c->outer; o++) {
        const float *row = x + (o * c->channels + m) * c->inner;
        float part = 0;
        for (int64_t i = 0; i < c->inner; i++) {
            float v = nearbyintf(row[i] / scale);
            v = (v < -MOST_WEIGHT ? -MOST_WEIGHT : v > MOST_WEIGHT ? MOST_WEIGHT : v) * scale - row[i];
            part += v * v;
        }
        sum += part;
    }
    return sum;
}
/* Of each channel: its extreme as the largest byte, the tensor's extreme (weights that were on a grid once
   are exact then), or a little less than its extreme, whichever loses least. */
static hone_value *weight_scales(const hone_quant_layer *l, const hone_value *w, bool per_tensor) {
    const channels_of c = channels_at(w, l->axis);
    hone_value *scales = NULL;
    float whole = 0;
    if (hone_value_tensor(HONE_DTYPE_F32, &c.channels, per_tensor ? 0 : 1, &scales)) return NULL;
    float *s = scales->data;
    const float *x = w->data;
    for (int64_t o = 0, k = 0; o < c.outer; o++)
        for (int64_t m = 0; m < c.channels; m++)
            for (int64_t i = 0; i < c.inner; i++, k++) {
                float *to = s + (per_tensor ? 0 : m);
                *to = fmaxf(*to, fabsf(x[k])), whole = fmaxf(whole, fabsf(x[k]));
            }
    for (int64_t m = 0; m < (per_tensor ? 1 : c.channels); m++) {
        const float most = s[m] / MOST_WEIGHT;
        s[m] = most > 1e-12f ? most : 1e-12f; /* a channel of nothing */
        if (per_tensor || most <= 1e-12f) continue;
        double least = lost(x, &c, m, s[m]);
        for (int k = 0; k < 8 && least > 0; k++) {
            const float at = k ? most * (float)(40 - k) / 40 : whole / MOST_WEIGHT;
            const double now = lost(x, &c, m, at);
            if (now < least) least = now, s[m] = at;
        }
    }
    return scales;
}
/* Scales with which a bias fits i32; NULL: no memory. Takes `scales`. */
static hone_value *with_bias(hone_value *scales, const hone_value *bias, double unit) {
    hone_value *copy = NULL;
    const int64_t n = hone_value_count(bias), each = hone_value_count(scales) == n && scales->rank ? 1 : 0;
    for (int64_t k = 0; k < n; k++) {
        const float least = (float)(fabs(((const float *)bias->data)[k]) / unit / 0x1p29);
        if (!(least > ((const float *)(copy ? copy : scales)->data)[k * each])) continue;
        if (!copy && hone_value_copy(scales, &copy)) copy = NULL;
        if (!copy) break;
        ((float *)copy->data)[k * each] = least;
    }
    if (!copy) return scales;
    hone_value_drop(scales);
    return copy;
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
                ((int8_t *)q->data)[k] = (int8_t)(v < -MOST_WEIGHT  ? -MOST_WEIGHT
                                                  : v > MOST_WEIGHT ? MOST_WEIGHT
                                                                    : v);
            }
        }
    return q;
}
/* DequantizeLinear of a constant of s8 or i32. */
static hone_vid constant(rewriting *r, const char *name, hone_value *q, hone_value *scales, hone_dtype t,
                         int axis) {
    hone_value *zeros = NULL;
    char text[256];
    if (!q || !scales || hone_value_tensor(t, scales->dim, scales->rank, &zeros)) {
        hone_value_drop(q), hone_value_drop(scales);
        return -1;
    }
    const hone_attr at = {.name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]){axis}};
    snprintf(text, sizeof text, "%.200s_q", name);
    const hone_vid in[3] = {hone_graph_const(r->g, text, q), hone_graph_const(r->g, "scale", scales),
                            hone_graph_const(r->g, "zero", zeros)};
    snprintf(text, sizeof text, "%.200s_dq", name);
    return in[0] < 0 || in[1] < 0 || in[2] < 0
               ? -1
               : hone_quant_emit(r->g, r->lib, "DequantizeLinear", text, in, 3, &at, scales->rank ? 1 : 0);
}
/* A bias that can be i32: one number an output channel. */
static const hone_value *bias_of(const hone_value *b, int64_t channels) {
    if (!b || b->dtype != HONE_DTYPE_F32 || b->rank != 1 || b->dim[0] != channels) return NULL;
    for (int64_t k = 0; k < channels; k++)
        if (!isfinite(((const float *)b->data)[k])) return NULL;
    return b;
}
/* ---- units --------------------------------------------------------------------------------------------- */
/* The class whose operand a layer reads in units of its channels; NULL: as it is. */
static const hone_quant_class *units_of(const rewriting *r, const hone_quant_layer *l) {
    const hone_quant_class *c = r->p->class_of[l->x] < 0 ? NULL : r->p->class.at + r->p->class_of[l->x];
    return c && c->unit && r->on[l->x] && !(l->stays && hone_quant_goes_on(r->p, l->x)) ? c : NULL;
}
/* The layer that makes tensor v and can make it in units at once: v is its result, for others who all read it
   in units. */
static const hone_quant_layer *maker_in_units(const rewriting *r, hone_vid v) {
    const hone_quant_plan *p = r->p;
    if (p->class_of[v] < 0 || !p->class.at[p->class_of[v]].unit || !r->on[v]) return NULL;
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        const hone_value *w = p->graph->var.at[l->w].value;
        if (!l->conv || l->stays || hone_quant_result(p, l) != v ||
            w->dim[0] != p->class.at[p->class_of[v]].channels)
            continue;
        if (l->b >= 0 &&
            (!p->graph->var.at[l->b].value || p->graph->var.at[l->b].value->dtype != HONE_DTYPE_F32))
            continue;
        if (l->y != v) { /* a Clip from 0 becomes Relu: what it cuts above, the grid cuts */
            const hone_node *act = p->graph->node.at[p->graph->var.at[v].producer];
            const hone_value *low =
                act->n_in > 1 && act->in[1] >= 0 ? p->graph->var.at[act->in[1]].value : NULL;
            if (strcmp(act->program->name, "Relu") != 0 &&
                !(low && hone_value_count(low) == 1 && hone_value_f64(low, 0) == 0))
                continue;
        }
        return l;
    }
    return NULL;
}
static hone_value *times_units(const hone_value *w, const float *in, int64_t in_step, int64_t in_n,
                               const float *out, int64_t out_step, int64_t out_n) {
    hone_value *v = NULL;
    if (hone_value_tensor(HONE_DTYPE_F32, w->dim, w->rank, &v)) return NULL;
    for (int64_t k = 0, n = hone_value_count(w); k < n; k++)
        ((float *)v->data)[k] = ((const float *)w->data)[k] * (in ? in[k / in_step % in_n] : 1) /
                                (out ? out[k / out_step % out_n] : 1);
    return v;
}
/* A layer's weights with the units of its operand in them, and those of its result taken out; a new
   reference. */
static hone_value *weights_in_units(const rewriting *r, const hone_quant_layer *l, hone_value **bias) {
    const hone_quant_plan *p = r->p;
    hone_value *w = p->graph->var.at[l->w].value, *b = l->b >= 0 ? p->graph->var.at[l->b].value : NULL;
    const hone_quant_class *in = units_of(r, l);
    const hone_vid y = hone_quant_result(p, l);
    const float *out = maker_in_units(r, y) == l ? p->class.at[p->class_of[y]].unit : NULL;
    int64_t step[2] = {1, 1}; /* between input channels, between output channels */
    for (int d = l->conv ? l->depthwise ? 1 : 2 : l->axis ? 1 : 2; d < w->rank; d++) step[0] *= w->dim[d];
    for (int d = l->axis + 1; d < w->rank; d++) step[1] *= w->dim[d];
    if (l->conv && l->depthwise && in) step[0] *= w->dim[0] / in->channels;
    *bias = b && out ? times_units(b, NULL, 1, 1, out, 1, hone_value_count(b)) : hone_value_hold(b);
    hone_value *v = in || out ? times_units(w, in ? in->unit : NULL, step[0], in ? in->channels : 1, out,
                                            step[1], w->dim[l->axis])
                              : hone_value_hold(w);
    if (v && (*bias || !b)) return v;
    hone_value_drop(v), hone_value_drop(*bias);
    *bias = NULL;
    return NULL;
}

/* The layer's bytes and scales are there. w: its weights in units. */
static bool bytes_of(rewriting *r, hone_quant_layer *l, const hone_value *w) {
    /* Whether units are in weights depends on which of their neighbours are integers, and that changes from
       one rewriting to the next. */
    const uint8_t units =
        (uint8_t)((units_of(r, l) ? 1 : 0) | (maker_in_units(r, hone_quant_result(r->p, l)) == l ? 2 : 0));
    hone_quant_layer_units(l, units);
    if (l->scales) return true;
    l->scales = weight_scales(l, w, r->p->per_tensor);
    l->bytes = l->scales ? weight_bytes(l, w, l->scales) : NULL;
    if (l->bytes) return true;
    hone_quant_layer_forget(l);
    return false;
}
/* b and what refit.c says of it; a new reference. */
static hone_value *shifted(const hone_quant_layer *l, const hone_value *b) {
    hone_value *sum = NULL;
    if (hone_value_copy(b, &sum)) return NULL;
    for (int64_t k = 0; l->shift && k < b->dim[0]; k++) ((float *)sum->data)[k] += l->shift[k];
    return sum;
}
static bool weights_of(rewriting *r, hone_quant_layer *l, const hone_value *w, const hone_value *plain,
                       hone_vid *in) {
    const double unit = hone_quant_plan_grid(r->p, r->p->class_of[l->x]).scale;
    if (!bytes_of(r, l, w)) return false;
    hone_value *b = plain ? shifted(l, plain) : NULL;
    if (plain && !b) return false;
    hone_value *scales = hone_value_hold(l->scales);
    if (b) scales = with_bias(scales, b, unit);
    hone_value *sums = NULL, *whole = NULL;
    const int64_t n = w->dim[l->axis];
    bool ok = true;
    if (b) {
        ok = hone_value_tensor(HONE_DTYPE_F32, &n, scales->rank, &sums) == HONE_OK &&
             hone_value_tensor(HONE_DTYPE_I32, &n, 1, &whole) == HONE_OK;
        for (int64_t k = 0; ok && k < n; k++) {
            const float s = (float)unit * ((const float *)scales->data)[scales->rank ? k : 0];
            ((float *)sums->data)[scales->rank ? k : 0] = s;
            ((int32_t *)whole->data)[k] = (int32_t)nearbyint(((const float *)b->data)[k] / (double)s);
        }
    }
    const bool has_bias = b != NULL;
    hone_value_drop(b);
    if (!ok) {
        hone_value_drop(scales), hone_value_drop(sums), hone_value_drop(whole);
        return false;
    }
    hone_value *bytes = scales == l->scales ? hone_value_hold(l->bytes) : weight_bytes(l, w, scales);
    in[1] = constant(r, r->p->graph->var.at[l->w].name, bytes, scales, HONE_DTYPE_I8, l->axis);
    if (has_bias) in[2] = constant(r, r->p->graph->var.at[l->b].name, whole, sums, HONE_DTYPE_I32, 0);
    return in[1] >= 0 && (!has_bias || in[2] >= 0);
}

/* Whether a layer that stays f32 stands between roundings. ONNX Runtime would round its weights by itself
   then, with one scale for all channels, unless the bias is no plain constant. */
static bool between_roundings(const rewriting *r, const hone_quant_layer *l) {
    return l->stays && l->b >= 0 && l->b < r->p->n_var && r->on[l->x] && r->on[hone_quant_result(r->p, l)];
}
/* A bias as i32 with one scale so fine that nothing is lost. */
static hone_vid fine_bias(rewriting *r, const char *name, const hone_value *b) {
    hone_value *whole = NULL, *scale = NULL;
    float most = 0;
    for (int64_t k = 0; k < b->dim[0]; k++) most = fmaxf(most, fabsf(((const float *)b->data)[k]));
    if (hone_value_tensor(HONE_DTYPE_I32, b->dim, 1, &whole) ||
        hone_value_tensor(HONE_DTYPE_F32, NULL, 0, &scale)) {
        hone_value_drop(whole);
        return -1;
    }
    const float s = fmaxf(most / 0x1p30f, 1e-30f);
    *(float *)scale->data = s;
    for (int64_t k = 0; k < b->dim[0]; k++)
        ((int32_t *)whole->data)[k] = (int32_t)nearbyint(((const float *)b->data)[k] / (double)s);
    return constant(r, name, whole, scale, HONE_DTYPE_I32, 0);
}

/* A layer's constants: of integers, or, where it stays f32 and its result is in units, floats once more. */
static bool weights(rewriting *r, hone_quant_layer *l, hone_vid *in) {
    const bool units = units_of(r, l) || maker_in_units(r, hone_quant_result(r->p, l)) == l,
               between = between_roundings(r, l);
    hone_value *b = NULL, *w = NULL;
    bool ok = true;
    if (l->stays && !units && !between) return true;
    if (!(w = weights_in_units(r, l, &b))) return false;
    if (!l->stays) {
        ok = weights_of(r, l, w, bias_of(b, w->dim[l->axis]), in);
    } else {
        const hone_value *fine = between ? bias_of(b, w->dim[l->axis]) : NULL;
        in[1] = units ? hone_graph_const(r->g, r->p->graph->var.at[l->w].name, hone_value_hold(w)) : in[1];
        if (fine) in[2] = fine_bias(r, r->p->graph->var.at[l->b].name, fine);
        else if (b && units)
            in[2] = hone_graph_const(r->g, r->p->graph->var.at[l->b].name, hone_value_hold(b));
        ok = in[1] >= 0 && (!b || in[2] >= 0);
    }
    hone_value_drop(w), hone_value_drop(b);
    return ok;
}
/* v divided by its units. */
static hone_vid in_units(rewriting *r, hone_vid v) {
    const hone_quant_class *c = r->p->class.at + r->p->class_of[v];
    const int rank = r->p->graph->var.at[v].rank;
    int64_t dim[HONE_MAX_RANK];
    hone_value *by = NULL;
    for (int d = 0; d < rank; d++) dim[d] = d == c->axis ? c->channels : 1;
    if (hone_value_tensor(HONE_DTYPE_F32, dim, rank, &by)) return -1;
    for (int64_t k = 0; k < c->channels; k++) ((float *)by->data)[k] = 1 / c->unit[k];
    char name[256];
    snprintf(name, sizeof name, "%.200s_units", r->p->graph->var.at[v].name);
    const hone_vid in[2] = {v, hone_graph_const(r->g, "units", by)};
    return in[1] < 0 ? -1 : hone_quant_emit(r->g, r->lib, "Mul", name, in, 2, NULL, 0);
}

/* ---- the graph ----------------------------------------------------------------------------------------- */
static hone_vid read_by(const rewriting *r, int node, hone_vid v) {
    if (v < 0 || v >= r->p->n_var || r->rounded[v] < 0) return v;
    const int layer = r->p->layer_of[node];
    const bool integer = layer >= 0 && !r->p->layer.at[layer].stays;
    if (!integer && !r->p->moves[node] && hone_quant_goes_on(r->p, v)) return v;
    return r->rounded[v];
}
static bool round_var(rewriting *r, hone_vid v) {
    if (v < 0 || !r->on[v]) return true;
    const hone_grid grid = hone_quant_plan_grid(r->p, r->p->class_of[v]);
    hone_vid x = v;
    if (r->p->class.at[r->p->class_of[v]].unit && !maker_in_units(r, v) && (x = in_units(r, v)) < 0)
        return false;
    r->rounded[v] = hone_quant_pair(r->g, r->lib, x, &grid, r->p->dtype);
    return r->rounded[v] >= 0;
}
/* Resize with factors for some axes becomes one with factors for all: ONNX Runtime's layouts stumble over the
   first form. */
static bool all_axes(rewriting *r, hone_node *n) {
    const hone_attr *axes = hone_attr_find(n->attr, n->n_attr, "axes");
    const hone_value *some = n->n_in > 2 && n->in[2] >= 0 ? r->g->var.at[n->in[2]].value : NULL;
    const int64_t rank = n->in[0] >= 0 ? r->g->var.at[n->in[0]].rank : -1;
    hone_value *scales = NULL;
    hone_attr kept[16];
    int n_kept = 0;
    if (strcmp(n->program->name, "Resize") != 0 || !axes || axes->kind != HONE_ATTR_INTS || rank < 1 ||
        n->n_attr > 16 || !some || some->dtype != HONE_DTYPE_F32 || hone_value_count(some) != axes->n ||
        (n->n_in > 1 && n->in[1] >= 0))
        return true;
    if (hone_value_tensor(HONE_DTYPE_F32, &rank, 1, &scales)) return false;
    for (int64_t k = 0; k < rank; k++) ((float *)scales->data)[k] = 1;
    for (int k = 0; k < axes->n; k++) {
        const int64_t axis = axes->i[k] < 0 ? axes->i[k] + rank : axes->i[k];
        if (axis >= 0 && axis < rank) ((float *)scales->data)[axis] = ((const float *)some->data)[k];
    }
    for (int k = 0; k < n->n_attr; k++)
        if (n->attr + k != axes) kept[n_kept++] = n->attr[k];
    n->in[2] = hone_graph_const(r->g, "factors", scales);
    return n->in[2] >= 0 && hone_node_attrs(r->g, n, kept, n_kept);
}
static hone_status rebuild(rewriting *r) {
    const hone_graph *from = r->p->graph;
    hone_graph *g = r->g;
    hone_node **old = hone_alloc(sizeof *old * (size_t)(g->node.n + 1));
    const int n_old = g->node.n;
    if (!old) return hone_quant_no_memory();
    if (n_old) memcpy(old, g->node.at, sizeof *old * (size_t)n_old);
    g->node.n = 0;
    bool ok = true;
    for (int k = 0; ok && k < from->in.n; k++) ok = round_var(r, from->in.at[k]);
    for (int k = 0; ok && k < n_old; k++) {
        hone_node *n = old[k];
        const int layer = r->p->layer_of[k];
        hone_vid in[3] = {n->n_in > 0 ? n->in[0] : -1, n->n_in > 1 ? n->in[1] : -1,
                          n->n_in > 2 ? n->in[2] : -1};
        if (layer >= 0) {
            ok = weights(r, r->p->layer.at + layer, in);
            for (int i = 1; i < n->n_in && i < 3; i++) n->in[i] = in[i];
        }
        const hone_quant_layer *before =
            n->n_out == 1 && n->out[0] >= 0 ? maker_in_units(r, n->out[0]) : NULL;
        if (before && before->node != k && !strcmp(n->program->name, "Clip")) {
            n->program = hone_library_find(r->lib, "", "Relu"), n->n_in = 1;
            ok = ok && n->program;
        }
        for (int i = 0; i < n->n_in; i++) n->in[i] = read_by(r, k, n->in[i]);
        ok = ok && all_axes(r, n) && hone_push(&g->node, n);
        for (int i = 0; ok && i < n->n_out; i++) ok = round_var(r, n->out[i]);
    }
    hone_free(old);
    return ok ? HONE_OK : hone_quant_no_memory();
}
/* An output of the graph that is rounded keeps its name: what was its maker's result is another var. */
static bool split_output(rewriting *r, int k) {
    hone_graph *g = r->g;
    const hone_vid v = g->out.at[k];
    if (v >= r->p->n_var || r->rounded[v] < 0) return true;
    const int maker = r->p->graph->var.at[v].producer, layer = maker >= 0 ? r->p->layer_of[maker] : -1;
    bool needed = r->p->rounds_sums && layer >= 0 && r->p->layer.at[layer].conv &&
                  !r->p->layer.at[layer].stays; /* without it the sum would be one of floats */
    for (int l = 0; r->p->rounds_sums && l < r->p->layer.n && !needed; l++)
        needed = r->p->layer.at[l].conv && !r->p->layer.at[l].stays &&
                 hone_quant_result(r->p, r->p->layer.at + l) == v;
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
hone_status hone_quant_weights_now(hone_quant_plan *p, const hone_library *lib, hone_quant_layer *l,
                                   hone_value **w, hone_value **b, const float **unit) {
    rewriting r = {.p = p, .lib = lib, .on = hone_alloc((size_t)p->n_var + 1)};
    *w = *b = NULL, *unit = NULL;
    if (!r.on) return hone_quant_no_memory();
    hone_quant_plan_mark(p, r.on);
    *w = weights_in_units(&r, l, b);
    const bool ok = *w && bytes_of(&r, l, *w);
    if (ok && units_of(&r, l)) *unit = units_of(&r, l)->unit;
    if (!ok || !bias_of(*b, p->graph->var.at[l->w].value->dim[l->axis])) hone_value_drop(*b), *b = NULL;
    hone_free(r.on);
    if (ok) return HONE_OK;
    hone_value_drop(*w);
    *w = NULL;
    return hone_quant_no_memory();
}
hone_status hone_quant_rewrite(hone_quant_plan *p, const hone_library *lib, hone_graph **out) {
    rewriting r = {.p = p, .lib = lib};
    HONE_TRY(hone_graph_copy(p->graph, &r.g));
    r.on = hone_alloc((size_t)p->n_var + 1);
    r.rounded = hone_alloc(sizeof *r.rounded * (size_t)(p->n_var + 1));
    hone_status s = r.on && r.rounded ? HONE_OK : hone_quant_no_memory();
    if (!s) {
        hone_quant_plan_mark(p, r.on);
        for (int v = 0; v < p->n_var; v++) r.rounded[v] = -1;
        s = rebuild(&r);
    }
    for (int k = 0; !s && k < r.g->out.n; k++)
        if (!split_output(&r, k)) s = hone_quant_no_memory();
    hone_free(r.on), hone_free(r.rounded);
    if (s) {
        hone_graph_destroy(r.g);
        return s;
    }
    hone_graph_index(r.g);
    *out = r.g;
    return HONE_OK;
}
