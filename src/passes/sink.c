/* SPDX-License-Identifier: Apache-2.0
   sink: a Squeeze behind a convolution goes behind the bias and the activation that follow it, so that these
   become the convolution's own. One-dimensional convolutions are often written so: two dims for Conv, one
   for all else. */
#include <string.h>

#include "passes/match.h"

enum { DEEPEST = 8 };
/* Does x come from a convolution, by nothing but what this pass has moved? */
static bool of_conv(const hone_matching *m, hone_vid x) {
    for (int deep = 0; deep < DEEPEST; deep++) {
        const hone_node *n = hone_match_maker(m, x);
        if (!n || n->n_out != 1 || hone_match_uses(m, x) != 1) return false;
        if (hone_node_is(n, "Conv") || hone_node_is(n, "ConvTranspose")) return true;
        if (n->n_in < 1 || n->in[0] < 0) return false;
        x = n->in[0];
    }
    return false;
}
/* The constant with dims of one where the Squeeze takes some away: NULL: it has more dims than that leaves,
   or no memory. */
static hone_value *spread(hone_matching *m, const hone_value *c, int rank, uint32_t axes) {
    int64_t dim[HONE_MAX_RANK];
    int left = c->rank;
    for (int k = rank - 1; k >= 0; k--) dim[k] = axes >> k & 1 || !left ? 1 : c->dim[--left];
    hone_value *v = NULL;
    if (left || !c->data) return NULL;
    if (hone_value_tensor(c->dtype, dim, rank, &v)) {
        hone_match_no_memory(m);
        return NULL;
    }
    memcpy(v->data, c->data, c->bytes);
    return v;
}
static bool below(hone_matching *m) {
    enum { MOST_IN = 3 };
    const hone_node *root = hone_match_root(m);
    const hone_vid x = hone_match_var(m, "x"), squeezed = hone_match_var(m, "s");
    const hone_value *axes = hone_match_value(m, "a"), *c = hone_match_value(m, "c");
    const int rank = hone_match_graph(m)->var.at[x].rank;
    const uint32_t dropped = rank < 1 ? 0 : hone_match_axes(axes, rank);
    if (!dropped || hone_match_uses(m, squeezed) != 1 || root->n_in > MOST_IN || !of_conv(m, x) ||
        (c && (c->tag != HONE_TAG_TENSOR || c->dtype == HONE_DTYPE_STRING)))
        return false;
    hone_vid in[MOST_IN];
    for (int k = 0; k < root->n_in; k++) in[k] = root->in[k] == squeezed ? x : root->in[k];
    if (c) {
        hone_value *value = spread(m, c, rank, dropped);
        const hone_vid wide = value ? hone_match_constant(m, "spread", value) : -1;
        if (wide < 0) return false;
        in[0] = x, in[1] = wide; /* sums and products, in either order */
    }
    const hone_vid made =
        hone_match_emit(m, root->program->name, HONE_MATCH_NEW, in, root->n_in, root->attr, root->n_attr);
    const hone_vid then[2] = {made, hone_match_var(m, "a")};
    return made >= 0 && hone_match_emit(m, "Squeeze", root->out[0], then, 2, NULL, 0) >= 0;
}
#define S "s=Squeeze(x, $a)"
static const hone_rule rules[] = {
    {"{Add(" S ", $c)|Mul(" S ", $c)|Relu(" S ")|Clip(" S ", $l, $h)|Gelu(" S ")|Sigmoid(" S ")}", below},
    {"{Tanh(" S ")|LeakyRelu(" S ")|HardSwish(" S ")|HardSigmoid(" S ")|Swish(" S ")|Elu(" S ")}", below},
};
hone_status hone_pass_sink(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
