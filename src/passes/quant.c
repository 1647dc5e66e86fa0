/* SPDX-License-Identifier: Apache-2.0
   quant: quantize and dequantize pairs around a convolution or a matrix product become the integer op: QLinearConv, QLinearMatMul. The pairs say which
   precision the model's maker chose; without this pass it would be computed in f32 and only rounded to it.

        Q(Conv(DQ(x), DQ(w), b))   →   QLinearConv(x, w, b as i32)      where x has one scale, w one or one a channel, and all scales are constants

   An activation between them goes where saturation does the same. Not here: sums, pools and whatever else reads DQ: element-wise, these fuse. */
#include <math.h>
#include <string.h>

#include "passes/match.h"

typedef struct { /* operands of a DequantizeLinear or QuantizeLinear */
    hone_vid q, scale, zero;
    const hone_value *s;
    hone_dtype dtype;
} scaled;

static hone_vid zeros(hone_matching *m, hone_dtype t, const hone_value *like) {
    hone_value *z = NULL;
    if (hone_value_tensor(t, like->dim, like->rank, &z)) z = NULL;
    return hone_match_constant(m, "zero_point", z);
}
static bool positive(const hone_value *s) {
    if (!s || s->tag != HONE_TAG_TENSOR || s->dtype != HONE_DTYPE_F32) return false;
    for (int64_t k = 0; k < hone_value_count(s); k++)
        if (!(hone_value_f64(s, k) > 0 && hone_value_f64(s, k) < 1e30)) return false;
    return hone_value_count(s) > 0;
}
/* y = scale * (q - zero), 8 bits to f32, one scale, or one for each place along `axis` (-1: one only) */
static bool scales(hone_matching *m, const hone_node *n, hone_vid q, int axis, scaled *out) {
    const hone_graph *g = hone_match_graph(m);
    out->q = q, out->scale = n->in[1], out->zero = n->n_in > 2 ? n->in[2] : -1;
    out->dtype = g->var.at[q].dtype, out->s = g->var.at[out->scale].value;
    if ((out->dtype != HONE_DTYPE_U8 && out->dtype != HONE_DTYPE_I8) || !positive(out->s)) return false;
    if (out->zero >= 0 && !g->var.at[out->zero].value) return false;
    if (hone_attr_int(n->attr, n->n_attr, "block_size", 0) || hone_attr_int(n->attr, n->n_attr, "precision", 0)) return false;
    if (out->s->rank == 0) return true;
    int rank = g->var.at[q].rank;
    int64_t along = hone_attr_int(n->attr, n->n_attr, "axis", 1);
    return axis >= 0 && out->s->rank == 1 && (along < 0 ? along + rank : along) == axis && g->var.at[q].dim[axis] == out->s->dim[0];
}
static bool dequantized(hone_matching *m, hone_vid v, int axis, scaled *out) {
    const hone_node *n = hone_match_maker(m, v);
    return hone_node_is(n, "DequantizeLinear") && hone_match_graph(m)->var.at[v].dtype == HONE_DTYPE_F32 &&
           scales(m, n, n->in[0], axis, out);
}
static hone_vid zero_of(hone_matching *m, const scaled *s) { return s->zero >= 0 ? s->zero : zeros(m, s->dtype, s->s); }

/* What is between the sum and its rounding: nothing, or a clamp that saturation does as well. */
static bool saturates(hone_matching *m, const scaled *y) {
    const hone_graph *g = hone_match_graph(m);
    const hone_node *n = hone_match_node(m, "act");
    if (!n) return true;
    double low = 0, high = INFINITY, zero = y->zero >= 0 ? hone_value_f64(g->var.at[y->zero].value, 0) : 0;
    if (hone_node_is(n, "Clip")) {
        low = -INFINITY;
        if (n->n_in > 1 && n->in[1] >= 0 && !hone_match_number(g->var.at[n->in[1]].value, &low)) return false;
        if (n->n_in > 2 && n->in[2] >= 0 && !hone_match_number(g->var.at[n->in[2]].value, &high)) return false;
    }
    double scale = hone_value_f64(y->s, 0), lowest = hone_dtypes[y->dtype].lowest, highest = hone_dtypes[y->dtype].highest;
    return low <= (lowest - zero) * scale && high >= (highest - zero) * scale;
}
/* The bias in units of the sum: f32 as it is, or itself quantized. */
static hone_value *whole_bias(hone_matching *m, hone_vid b, const scaled *x, const scaled *w, int64_t channels) {
    const hone_graph *g = hone_match_graph(m);
    const hone_node *n = hone_match_maker(m, b);
    const hone_value *q = g->var.at[b].value, *s = NULL, *z = NULL;
    if (!q && hone_node_is(n, "DequantizeLinear")) {
        q = g->var.at[n->in[0]].value, s = g->var.at[n->in[1]].value;
        if (!positive(s) || (n->n_in > 2 && n->in[2] >= 0 && !(z = g->var.at[n->in[2]].value))) return NULL;
        if (s->rank > 1 || (hone_value_count(s) != 1 && hone_value_count(s) != channels) ||
            (z && hone_value_count(z) != hone_value_count(s)))
            return NULL;
    }
    if (!q || q->tag != HONE_TAG_TENSOR || q->rank != 1 || q->dim[0] != channels || (!s && q->dtype != HONE_DTYPE_F32)) return NULL;
    hone_value *out = NULL;
    if (hone_value_tensor(HONE_DTYPE_I32, (const int64_t[]){channels}, 1, &out)) return NULL;
    for (int64_t k = 0; k < channels; k++) {
        int64_t one = s && hone_value_count(s) > 1 ? k : 0;
        double v = hone_value_f64(q, k);
        if (s) v = (v - (z ? hone_value_f64(z, one) : 0)) * hone_value_f64(s, one);
        v = nearbyint(v / (hone_value_f64(x->s, 0) * hone_value_f64(w->s, w->s->rank ? k : 0)));
        if (!(fabs(v) < 0x1p30)) {
            hone_value_drop(out);
            return NULL;
        }
        ((int32_t *)out->data)[k] = (int32_t)v;
    }
    return out;
}
static bool outcome(hone_matching *m, scaled *y) {
    return scales(m, hone_match_root(m), hone_match_root(m)->out[0], -1, y) && saturates(m, y);
}
static bool conv(hone_matching *m) {
    scaled x, w, y;
    if (!dequantized(m, hone_match_var(m, "x"), -1, &x) || !dequantized(m, hone_match_var(m, "w"), 0, &w) || !outcome(m, &y)) return false;
    const hone_var kernel = hone_match_graph(m)->var.at[w.q];
    hone_vid bias = hone_match_var(m, "b");
    if (!kernel.value || kernel.rank < 2) return false;
    if (bias >= 0) {
        hone_value *b = whole_bias(m, bias, &x, &w, kernel.dim[0]);
        if (!b || (bias = hone_match_constant(m, "bias", b)) < 0) return false;
    }
    const hone_node *n = hone_match_node(m, "sum");
    const hone_vid in[] = {x.q, x.scale, zero_of(m, &x), w.q, w.scale, zero_of(m, &w), y.scale, zero_of(m, &y), bias};
    return hone_match_emit(m, "QLinearConv", y.q, in, 9, n->attr, n->n_attr) >= 0;
}
static bool matmul(hone_matching *m) {
    scaled x, w, y;
    const hone_graph *g = hone_match_graph(m);
    hone_vid right = hone_match_var(m, "w");
    int rank = g->var.at[right].rank;
    if (rank < 2 || !dequantized(m, hone_match_var(m, "x"), -1, &x) || !dequantized(m, right, rank == 2 ? 1 : -1, &w) || !outcome(m, &y))
        return false;
    const hone_vid in[] = {x.q, x.scale, zero_of(m, &x), w.q, w.scale, zero_of(m, &w), y.scale, zero_of(m, &y)};
    return hone_match_emit(m, "QLinearMatMul", y.q, in, 8, NULL, 0) >= 0;
}

#define OUT(sum)                                                                                      \
    "{QuantizeLinear({sum=" sum "|act=Relu(sum=" sum ")|act=Clip(sum=" sum ", $lo)|act=Clip(sum=" sum \
    ", $lo, $hi)}, $s, $z)|QuantizeLinear(sum=" sum ", $s)}"
static const hone_rule rules[] = {{OUT("Conv(x, w, b)"), conv}, {OUT("Conv(x, w)"), conv}, {OUT("MatMul(x, w)"), matmul}};
hone_status hone_pass_quant(hone_passing *p) { return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules)); }
