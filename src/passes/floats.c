/* SPDX-License-Identifier: Apache-2.0
   floats: products of integers as products of floats, where the device's units take only the latter and the
   session asked for a precision (ir/target.h). What its units multiply as bytes stays as it is. The values
   stay those of the quantized model: factors are dequantized, exactly but for the precision's rounding, and
   sums are quantized behind as before.

        QLinearConv(x, w, b)    →   QuantizeLinear(Conv(DequantizeLinear(x), w as f32, b as f32))
        QLinearMatMul(a, w)     →   QuantizeLinear(MatMul(DequantizeLinear(a), w as f32) [+ b as f32])

   Weights that are not constants stay integers, and so does what has scales of more than one number but those
   of weights. */
#include <math.h>
#include <string.h>

#include "passes/match.h"

/* NULL: it is to stay as it is */
static const hone_target *wanted(hone_matching *m) {
    hone_dtype type;
    const hone_target *t = hone_match_target(m, &type);
    return t && hone_target_wants_floats(t, type) ? t : NULL;
}
/* (w - zero) * scale, where dim `axis` has a scale each, or all have one. */
static hone_value *dequantized(hone_matching *m, const hone_value *w, const hone_value *scale,
                               const hone_value *zero, int axis) {
    const int64_t n = hone_value_count(w), each = hone_value_count(scale);
    int64_t inner = 1;
    hone_value *v = NULL;
    if (hone_value_count(zero) != each || (each != 1 && each != w->dim[axis]) || !hone_match_spend(m, n))
        return NULL;
    for (int d = axis + 1; d < w->rank; d++) inner *= w->dim[d];
    if (hone_value_tensor(HONE_DTYPE_F32, w->dim, w->rank, &v)) {
        hone_match_no_memory(m);
        return NULL;
    }
    for (int64_t k = 0; k < n; k++) {
        const int64_t s = each == 1 ? 0 : k / inner % each;
        ((float *)v->data)[k] =
            (float)(hone_value_f64(w, k) - hone_value_f64(zero, s)) * (float)hone_value_f64(scale, s);
    }
    return v;
}
/* A bias counts in scales of the sum. */
static hone_value *bias_of(hone_matching *m, const hone_value *b, const hone_value *xs,
                           const hone_value *ws) {
    const int64_t n = hone_value_count(b), each = hone_value_count(ws);
    hone_value *v = NULL;
    if (b->rank != 1 || (each != 1 && each != n)) return NULL;
    if (hone_value_tensor(HONE_DTYPE_F32, &n, 1, &v)) {
        hone_match_no_memory(m);
        return NULL;
    }
    for (int64_t k = 0; k < n; k++)
        ((float *)v->data)[k] =
            (float)(hone_value_f64(b, k) * hone_value_f64(xs, 0) * hone_value_f64(ws, each == 1 ? 0 : k));
    return v;
}
/* Can the units for bytes take it? Windows that reach outside of an image see zeros there, which must be x's
   zero point; weights have one zero point, and without it are signed bytes. */
static bool stays(const hone_node *n, const hone_value *xz, const hone_value *w, const hone_value *wz,
                  bool conv) {
    enum { FEW = 4, TAPS = 49 };
    const double zero_x = hone_value_f64(xz, 0), zero_w = hone_value_f64(wz, 0);
    for (int64_t k = 1; k < hone_value_count(wz); k++)
        if (hone_value_f64(wz, k) != zero_w) return false;
    if (!conv && zero_x != 0 && w->rank > 2) return false;
    if (conv) {
        const int64_t groups = hone_attr_int(n->attr, n->n_attr, "group", 1);
        const hone_attr *pads = hone_attr_find(n->attr, n->n_attr, "pads");
        const char *automatic = hone_attr_text(n->attr, n->n_attr, "auto_pad", "NOTSET");
        int64_t taps = 1;
        bool padded = strcmp(automatic, "NOTSET") && strcmp(automatic, "VALID");
        for (int k = 0; pads && k < pads->n; k++) padded |= pads->i[k] != 0;
        for (int d = 2; d < w->rank; d++) taps *= w->dim[d];
        if (groups > 1 && w->dim[1] == 1 && w->dim[0] == groups) return w->rank == 4 && taps <= TAPS;
        /* an image of few channels is read as it lies by the kernel of floats */
        if (w->rank != 4 || w->dim[1] <= FEW || (zero_x != 0 && padded)) return false;
    }
    const double low = (w->dtype == HONE_DTYPE_I8 ? INT8_MIN : 0) - zero_w;
    bool fit = low >= INT8_MIN && low + UINT8_MAX <= INT8_MAX;
    if (fit) return true;
    fit = true;
    for (int64_t k = 0; k < hone_value_count(w); k++) {
        const double v = hone_value_f64(w, k) - zero_w;
        fit &= v >= INT8_MIN && v <= INT8_MAX;
    }
    return fit;
}
static bool is_number(const hone_value *v) { return v && hone_value_count(v) == 1 && v->rank <= 1; }
static hone_vid bare(hone_matching *m, const char *name, const hone_value *v) { /* without dims of one */
    hone_value *one = NULL;
    if (!v->rank) return hone_match_var(m, name);
    if (hone_value_tensor(v->dtype, NULL, 0, &one) == HONE_OK)
        memcpy(one->data, v->data, hone_dtypes[v->dtype].bytes);
    return hone_match_constant(m, name, one);
}
static bool make(hone_matching *m, bool conv) {
    const hone_node *n = hone_match_root(m);
    const hone_value *xs = hone_match_value(m, "xs"), *xz = hone_match_value(m, "xz"),
                     *w = hone_match_value(m, "w"), *ws = hone_match_value(m, "ws"),
                     *wz = hone_match_value(m, "wz"), *ys = hone_match_value(m, "ys"),
                     *yz = hone_match_value(m, "yz"), *b = hone_match_value(m, "b");
    const hone_target *target = wanted(m);
    if (!target || !is_number(xs) || !is_number(xz) || !is_number(ys) || !is_number(yz) || !w || !ws || !wz ||
        xs->dtype != HONE_DTYPE_F32 || ws->dtype != HONE_DTYPE_F32 || ys->dtype != HONE_DTYPE_F32 ||
        w->rank < 2)
        return false;
    const bool byte = (w->dtype == HONE_DTYPE_I8 || w->dtype == HONE_DTYPE_U8) &&
                      (xz->dtype == HONE_DTYPE_I8 || xz->dtype == HONE_DTYPE_U8);
    if (byte && hone_target_wants_bytes(target) && stays(n, xz, w, wz, conv)) return false;
    hone_value *floats = byte ? dequantized(m, w, ws, wz, conv ? 0 : w->rank - 1) : NULL,
               *bias = floats && b ? bias_of(m, b, xs, ws) : NULL;
    if (!floats || (b && !bias)) {
        hone_value_drop(floats);
        return false;
    }
    const hone_vid wf = hone_match_constant(m, "w", floats), bf = b ? hone_match_constant(m, "b", bias) : -1,
                   xd = hone_match_emit(
                       m, "DequantizeLinear", HONE_MATCH_NEW,
                       (const hone_vid[]){hone_match_var(m, "x"), bare(m, "xs", xs), bare(m, "xz", xz)}, 3,
                       NULL, 0);
    hone_vid sum = conv
                       ? hone_match_emit(m, "Conv", HONE_MATCH_NEW, (const hone_vid[]){xd, wf, bf}, 3,
                                         n->attr, n->n_attr)
                       : hone_match_emit(m, "MatMul", HONE_MATCH_NEW, (const hone_vid[]){xd, wf}, 2, NULL, 0);
    if (!conv && b) sum = hone_match_emit(m, "Add", HONE_MATCH_NEW, (const hone_vid[]){sum, bf}, 2, NULL, 0);
    return hone_match_emit(m, "QuantizeLinear", n->out[0],
                           (const hone_vid[]){sum, bare(m, "ys", ys), bare(m, "yz", yz)}, 3, NULL, 0) >= 0;
}
static bool convolution(hone_matching *m) { return make(m, true); }
static bool product(hone_matching *m) { return make(m, false); }

hone_status hone_pass_floats(hone_passing *p) {
    static const hone_rule rules[] = {
        {"QLinearConv(x, $xs, $xz, $w, $ws, $wz, $ys, $yz, $b)", convolution},
        {"QLinearConv(x, $xs, $xz, $w, $ws, $wz, $ys, $yz)", convolution},
        {"QLinearMatMul(x, $xs, $xz, $w, $ws, $wz, $ys, $yz)", product},
        {"hone.QLinearMatMul(x, $xs, $xz, $w, $ws, $wz, $ys, $yz, $b)", product},
    };
    bool any = false;
    for (int k = 0; p->target && k < p->graph->node.n; k++)
        any |= p->target[p->graph->node.at[k]->unit].floats != 0;
    if (!any) return HONE_OK;
    hone_graph_index(p->graph);
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
