/* SPDX-License-Identifier: Apache-2.0
   norm: layer norm and RMS norm, written out, become LayerNormalization and RMSNormalization. Over the last
   dims, with constant weights; the spellings are those of PyTorch, TensorFlow and Keras. */
#include <string.h>

#include "passes/match.h"

#define SQUARE(d) "{Pow(" d ", 2)|Mul(" d ", " d ")}"
#define MEAN "ReduceMean(x, $a)"
#define APART "d=Sub(x, m=" MEAN ")"
#define SPREAD "Add(v=ReduceMean(" SQUARE("d") ", $a), $e)"
#define SIZE "Add(v=ReduceMean(" SQUARE("x") ", $a), $e)"
#define ROOT(v) "{Sqrt(" v ")|Pow(" v ", 0.5)}"
#define INVERSE(v) "{Reciprocal(" ROOT(v) ")|Div(1, " ROOT(v) ")|Pow(" v ", -0.5)}"
/* x over its root mean square, scaled or not */
#define OVER(x, v) "{Div(" x ", " ROOT(v) ")|Mul(" x ", " INVERSE(v) ")}"
#define SCALED(x, v) "{Mul(" OVER(x, v) ", $g)|Mul(" x ", Mul(" INVERSE(v) ", $g))}"

typedef struct {
    hone_vid x, g, b;
    double epsilon;
    int axis;
} found;

/* The dims that are summed over are the last ones of x, the same in every mean, and 1 is left in their
   place. */
static bool last_dims(hone_matching *m, const hone_var *x, found *f) {
    static const char *const means[] = {"m", "v"};
    uint32_t bits = hone_match_axes(hone_match_value(m, "a"), x->rank),
             all = x->rank > 0 ? ((uint32_t)1 << x->rank) - 1 : 0;
    f->axis = x->rank;
    while (f->axis > 0 && bits >> (f->axis - 1) & 1) f->axis--;
    if (!bits || bits != (all >> f->axis << f->axis)) return false;
    for (int k = 0; k < 2; k++) {
        const hone_node *n = hone_match_node(m, means[k]);
        if (n && !hone_attr_int(n->attr, n->n_attr, "keepdims", 1)) return false;
    }
    return true;
}
/* A constant that varies over the last dims only, without the ones before them. */
static hone_vid over_last(hone_matching *m, const char *name, const hone_var *x, int axis) {
    const hone_value *v = hone_match_value(m, name);
    hone_value *cut = NULL;
    int keep = x->rank - axis, drop = v->rank > keep ? v->rank - keep : 0;
    for (int d = 0; d < drop; d++)
        if (v->dim[d] != 1) return -1;
    for (int d = 0; d < v->rank - drop; d++) {
        hone_dim want = x->dim[x->rank - (v->rank - drop) + d];
        if (v->dim[drop + d] != 1 && v->dim[drop + d] != want) return -1;
    }
    if (!drop) return hone_match_var(m, name);
    if (hone_value_copy(v, &cut)) return hone_match_constant(m, "", NULL);
    cut->rank = (int8_t)(v->rank - drop);
    memmove(cut->dim, cut->dim + drop, sizeof *cut->dim * (size_t)cut->rank);
    return hone_match_constant(m, "weights", cut);
}
static hone_vid ones(hone_matching *m, const hone_var *x) {
    hone_value *one = NULL;
    if (hone_value_tensor(x->dtype, (const int64_t[]){1}, 1, &one) == HONE_OK)
        hone_dtype_store(x->dtype, one->data, HONE_F64, (hone_scalar){.f64 = 1}, false);
    return hone_match_constant(m, "one", one);
}
static bool understand(hone_matching *m, found *f) {
    f->x = hone_match_var(m, "x"), f->g = f->b = -1;
    const hone_var x = hone_match_graph(m)->var.at[f->x];
    if (!hone_match_number(hone_match_value(m, "e"), &f->epsilon) || !(f->epsilon >= 0) ||
        !last_dims(m, &x, f))
        return false;
    if (hone_match_value(m, "b") && (f->b = over_last(m, "b", &x, f->axis)) < 0) return false;
    f->g = hone_match_value(m, "g") ? over_last(m, "g", &x, f->axis) : ones(m, &x);
    return f->g >= 0;
}
static bool emit(hone_matching *m, const char *op) {
    found f;
    if (!understand(m, &f)) return false;
    int rank = hone_match_graph(m)->var.at[f.x].rank;
    const hone_attr attr[] = {HONE_ATTR_I("axis", f.axis - rank), HONE_ATTR_F("epsilon", f.epsilon)};
    return hone_match_emit(m, op, hone_match_root(m)->out[0], (const hone_vid[]){f.x, f.g, f.b}, 3, attr,
                           2) >= 0;
}
static bool layer_norm(hone_matching *m) { return emit(m, "LayerNormalization"); }
static bool rms_norm(hone_matching *m) { return emit(m, "RMSNormalization"); }

static const hone_rule rules[] = {
    /* k is what x and its mean are both scaled by */
    {"Add(Mul(x, k=Mul(" INVERSE(
         "Add(v=ReduceMean(" SQUARE("Sub(x, m)") ", $a), $e)") ", $g)), Sub($b, Mul(m=" MEAN ", k)))",
     layer_norm},
    {"Add(" SCALED(APART, SPREAD) ", $b)", layer_norm},
    {SCALED(APART, SPREAD), layer_norm},
    {OVER(APART, SPREAD), layer_norm},
    {SCALED("x", SIZE), rms_norm},
    {OVER("x", SIZE), rms_norm},
};
hone_status hone_pass_norm(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
