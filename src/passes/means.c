/* SPDX-License-Identifier: Apache-2.0
   means: averages of what is quantized, 8 bits or 16, become ops on integers: bytes in, sums of integers, one
   rounding, bytes out.

        Q(AveragePool(DQ(x)))                     →   hone.QLinearAveragePool
        Q(GlobalAveragePool(DQ(x))), ReduceMean   →   hone.QLinearMean
        Q(Resize(DQ(x))), linear or cubic         →   hone.QLinearResize; nearest pixels are moved (moves.c)

   Every scale is one constant; nobody else reads what the average makes. */
#include <string.h>

#include "passes/quant.h"

enum { MOST_IN = 8 };
typedef struct {
    const hone_node *n; /* the average */
    hone_scaled x, y;
    hone_vid in[MOST_IN]; /* x, its scale and zero point, the result's */
} averaging;
static bool window(hone_matching *m, averaging *w) {
    return hone_match_emit(m, "hone.QLinearAveragePool", w->y.q, w->in, 5, w->n->attr, w->n->n_attr) >= 0;
}
static bool pictures(hone_matching *m, averaging *w) {
    int64_t axes[HONE_MAX_RANK];
    const int rank = hone_match_graph(m)->var.at[w->x.q].rank;
    for (int k = 2; k < rank; k++) axes[k - 2] = k;
    if (rank < 3) return false;
    w->in[5] = hone_match_ints(m, "axes", axes, rank - 2);
    return hone_match_emit(m, "hone.QLinearMean", w->y.q, w->in, 6, NULL, 0) >= 0;
}
static bool axes(hone_matching *m, averaging *w) {
    w->in[5] = w->n->n_in > 1 ? w->n->in[1] : -1;
    return hone_match_emit(m, "hone.QLinearMean", w->y.q, w->in, 6, w->n->attr, w->n->n_attr) >= 0;
}
static bool resized(hone_matching *m, averaging *w) {
    static const char *const says[] = {"mode",
                                       "coordinate_transformation_mode",
                                       "cubic_coeff_a",
                                       "antialias",
                                       "exclude_outside",
                                       "keep_aspect_ratio_policy",
                                       "axes"};
    hone_attr attr[sizeof says / sizeof *says];
    int n = 0;
    if (!strcmp(hone_attr_text(w->n->attr, w->n->n_attr, "mode", "nearest"), "nearest") ||
        !strcmp(hone_attr_text(w->n->attr, w->n->n_attr, "coordinate_transformation_mode", "half_pixel"),
                "tf_crop_and_resize"))
        return false;
    for (size_t k = 0; k < sizeof says / sizeof *says; k++) {
        const hone_attr *a = hone_attr_find(w->n->attr, w->n->n_attr, says[k]);
        if (a) attr[n++] = *a;
    }
    w->in[5] = -1; /* only a crop has a region */
    for (int k = 2; k < 4; k++) w->in[4 + k] = w->n->n_in > k ? w->n->in[k] : -1;
    return hone_match_emit(m, "hone.QLinearResize", w->y.q, w->in, 8, attr, n) >= 0;
}
static const struct {
    const char *op;
    bool (*make)(hone_matching *, averaging *);
} averages[] = {
    {"AveragePool", window}, {"GlobalAveragePool", pictures}, {"ReduceMean", axes}, {"Resize", resized}};
static bool average(hone_matching *m) {
    const hone_graph *g = hone_match_graph(m);
    const hone_node *root = hone_match_root(m);
    const hone_vid v = hone_match_var(m, "v");
    averaging w = {.n = hone_match_maker(m, v)};
    size_t k = 0;
    const size_t all = sizeof averages / sizeof *averages;
    while (k < all && !hone_node_is(w.n, averages[k].op)) k++;
    if (k == all || hone_match_uses(m, v) != 1 || w.n->n_in < 1 || g->var.at[v].dtype != HONE_DTYPE_F32)
        return false;
    const hone_node *d = hone_match_maker(m, w.n->in[0]);
    if (!hone_node_is(d, "DequantizeLinear") || g->var.at[w.n->in[0]].dtype != HONE_DTYPE_F32 ||
        g->var.at[d->in[0]].value || !hone_quant_scales_wide(g, d, d->in[0], -1, &w.x) ||
        !hone_quant_scales_wide(g, root, root->out[0], -1, &w.y))
        return false;
    const hone_vid in[] = {w.x.q, hone_quant_scale_of(m, &w.x), hone_quant_zero_of(m, &w.x),
                           hone_quant_scale_of(m, &w.y), hone_quant_zero_of(m, &w.y)};
    memcpy(w.in, in, sizeof in);
    return averages[k].make(m, &w);
}
static const hone_rule rules[] = {{"{QuantizeLinear(v, $s, $z)|QuantizeLinear(v, $s)}", average}};
hone_status hone_pass_means(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
