/* SPDX-License-Identifier: Apache-2.0
   canon_contrib_experts: MoE and QMoE: a token goes through the experts that its router finds best, two or
   three products each, and what they say is mixed. Which ones is TopK; products with the
   picked weights are the rows hone.Experts and hone.ExpertsNBits (ops/contrib_experts.hop); the rest is
   ONNX's own ops. Not here: the sparse mixer, weights of fp4 and fp8. */
#include "model/canon_contrib.h"

typedef struct {
    hone_vid weights, scales, bias, zero; /* -1: not there; scales: floats have none */
    int64_t bits;
} layer;
typedef struct {
    hone_edit *e;
    hone_vid at;   /* [tokens, k]: the experts */
    int64_t block; /* 0: a scale a column */
    bool quantized;
} experts;
/* x [tokens, 1 or k, in] times the picked weights, [tokens, k, out] */
static hone_vid product(const experts *m, hone_vid x, const layer *l) {
    hone_edit *e = m->e;
    const hone_vid made = hone_edit_var(e), in[] = {x, l->weights, m->at, l->scales, l->zero};
    const hone_attr attr[] = {hone_attr_of_int(e->im, "bits", l->bits),
                              hone_attr_of_int(e->im, "block_size", m->block)};
    hone_contrib_node(e, "hone", m->quantized ? "ExpertsNBits" : "Experts", &made, 1, in,
                      m->quantized ? 5 : 3, attr, m->quantized ? 2 : 0);
    return l->bias < 0 ? made : HONE_NODE(e, "Add", made, HONE_NODE(e, "Gather", l->bias, m->at));
}

/* ---- activations --------------------------------------------------------------------------------------- */
static hone_vid every_second(hone_edit *e, hone_vid x, int64_t from) {
    return HONE_NODE(e, "Slice", x, hone_contrib_number(e, from), hone_contrib_number(e, INT64_MAX),
                     hone_contrib_number(e, -1), hone_contrib_number(e, 2));
}
static void halves(hone_edit *e, hone_vid x, hone_vid out[2]) {
    const hone_attr attr[] = {hone_attr_of_int(e->im, "axis", -1), hone_attr_of_int(e->im, "num_outputs", 2)};
    out[0] = hone_edit_var(e), out[1] = hone_edit_var(e);
    hone_contrib_node(e, "", "Split", out, 2, &x, 1, attr, 2);
}
static hone_vid swish(hone_edit *e, hone_vid x, double alpha) {
    const hone_vid by = alpha == 1 ? x : HONE_NODE(e, "Mul", x, hone_edit_like(e, alpha, x));
    return HONE_NODE(e, "Mul", x, HONE_NODE(e, "Sigmoid", by));
}
static hone_vid gated(hone_edit *e, hone_vid gate, hone_vid linear) {
    const double alpha = hone_edit_float(e, "activation_alpha", 1),
                 beta = hone_edit_float(e, "activation_beta", 0);
    if (hone_edit_attr(e, "swiglu_limit")) {
        const double limit = hone_edit_float(e, "swiglu_limit", 0);
        gate = HONE_NODE(e, "Min", gate, hone_edit_like(e, limit, gate));
        linear =
            HONE_NODE(e, "Clip", linear, hone_edit_like(e, -limit, linear), hone_edit_like(e, limit, linear));
    }
    if (beta != 0) linear = HONE_NODE(e, "Add", linear, hone_edit_like(e, beta, linear));
    return HONE_NODE(e, "Mul", swish(e, gate, alpha), linear);
}
static hone_vid activated(const experts *m, hone_vid x, hone_vid h, const layer *third) {
    hone_edit *e = m->e;
    const char *name = hone_edit_text(e, "activation_type", "relu");
    const int64_t fusion = hone_edit_int(e, "swiglu_fusion", 0);
    if (strcmp(name, "swiglu") == 0) {
        hone_vid part[2];
        if (fusion == 0) return gated(e, h, product(m, x, third));
        if (fusion == 1) return gated(e, every_second(e, h, 0), every_second(e, h, 1));
        halves(e, h, part);
        return gated(e, part[0], part[1]);
    }
    if (strcmp(name, "relu") == 0) return HONE_NODE(e, "Relu", h);
    if (strcmp(name, "silu") == 0) return swish(e, h, 1);
    if (strcmp(name, "gelu") == 0)
        return hone_edit_node(e, "Gelu", -1, HONE_IN(h),
                              HONE_WITH(hone_attr_of_text(e->im, "approximate", "tanh")));
    return h; /* identity */
}
static const char *refused(hone_edit *e, bool third) {
    static const char *const known[] = {"relu", "silu", "gelu", "identity", "swiglu"};
    const char *name = hone_edit_text(e, "activation_type", "relu");
    const int64_t fusion = hone_edit_int(e, "swiglu_fusion", 0),
                  prepacked = hone_edit_int(e, "weights_prepacked", -1);
    const bool swiglu = strcmp(name, "swiglu") == 0;
    size_t k = 0;
    while (k < sizeof known / sizeof *known && strcmp(known[k], name) != 0) k++;
    if (k == sizeof known / sizeof *known)
        return "an activation_type other than relu, silu, gelu, identity and swiglu";
    if (hone_edit_int(e, "use_sparse_mixer", 0)) return "use_sparse_mixer";
    if (hone_edit_int(e, "k", 1) < 1) return "k below 1";
    if (fusion < 0 || fusion > 2) return "a swiglu_fusion other than 0, 1 and 2";
    if (swiglu && fusion == 0 && !third)
        return "swiglu without swiglu_fusion and without fc3_experts_weights";
    if (third && (!swiglu || fusion)) return "fc3_experts_weights where the activation has no use for them";
    if (strcmp(hone_edit_text(e, "quant_type", "int"), "int") != 0) return "a quant_type other than int";
    if (prepacked > 0) return "weights in another program's order (weights_prepacked)";
    return NULL;
}

/* ---- the mixture --------------------------------------------------------------------------------------- */
static hone_vid last_softmax(hone_edit *e, hone_vid x) {
    return hone_edit_node(e, "Softmax", -1, HONE_IN(x), HONE_WITH(hone_attr_of_int(e->im, "axis", -1)));
}
/* Experts by what the router says, to m->at; how much each counts, [tokens, k]. MoE takes the best of all
   probabilities, QMoE makes probabilities of the best. */
static hone_vid routed(experts *m, hone_vid router, hone_vid weights) {
    hone_edit *e = m->e;
    const hone_vid top[] = {hone_edit_var(e), hone_edit_var(e)},
                   in[] = {m->quantized ? router : last_softmax(e, router),
                           hone_contrib_number(e, hone_edit_int(e, "k", 1))};
    hone_contrib_node(e, "", "TopK", top, 2, in, 2, NULL, 0);
    hone_vid share = m->quantized ? last_softmax(e, top[0]) : top[0];
    m->at = top[1];
    if (weights >= 0)
        share = hone_edit_node(e, "GatherElements", -1, HONE_IN(weights, m->at),
                               HONE_WITH(hone_attr_of_int(e->im, "axis", -1)));
    if (!hone_edit_int(e, "normalize_routing_weights", 0)) return share;
    return HONE_NODE(e, "Div", share, HONE_NODE(e, "ReduceSum", share, hone_contrib_number(e, -1)));
}
static void mixture(experts *m, const layer l[3], hone_vid router_weights) {
    hone_edit *e = m->e;
    hone_draft *n = e->node;
    const hone_vid x = n->in.at[0], y = n->out.at[0];
    n->placed = true;
    const char *why = refused(e, l[2].weights >= 0);
    if (why) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "%s", why);
        return;
    }
    const hone_vid share = routed(m, n->in.at[1], router_weights);
    const hone_attr axis = hone_attr_of_int(e->im, "axis", 0), flat = hone_attr_of_int(e->im, "keepdims", 0);
    const hone_vid hidden =
        hone_edit_node(e, "Shape", -1, HONE_IN(x), HONE_WITH(hone_attr_of_int(e->im, "start", -1)));
    const hone_vid dims = hone_edit_node(
        e, "Concat", -1, HONE_IN(hone_contrib_number(e, -1), hone_contrib_number(e, 1), hidden), &axis, 1);
    const hone_vid rows = HONE_NODE(e, "Reshape", x, dims),
                   h = activated(m, rows, product(m, rows, l), l + 2);
    const hone_vid each =
        HONE_NODE(e, "Mul", product(m, h, l + 1), hone_contrib_unsqueeze(e, share, (const int64_t[]){-1}, 1));
    const hone_vid sum =
        hone_edit_node(e, "ReduceSum", -1, HONE_IN(each, hone_contrib_number(e, 1)), &flat, 1);
    HONE_NODE_AS(e, "Reshape", y, sum, HONE_NODE(e, "Shape", x));
}
void hone_contrib_moe(hone_edit *e) {
    const hone_draft *n = e->node;
    experts m = {.e = e};
    const layer l[3] = {{n->in.at[2], -1, hone_draft_in(n, 3), -1, 0},
                        {n->in.at[4], -1, hone_draft_in(n, 5), -1, 0},
                        {hone_draft_in(n, 6), -1, hone_draft_in(n, 7), -1, 0}};
    mixture(&m, l, -1);
}
void hone_contrib_q_moe(hone_edit *e) {
    static const char *const own[] = {"fc1_expert_weight_bits", "fc2_expert_weight_bits",
                                      "fc3_expert_weight_bits"};
    const hone_draft *n = e->node;
    const int64_t bits = hone_edit_int(e, "expert_weight_bits", 4);
    experts m = {.e = e, .block = hone_edit_int(e, "block_size", 0), .quantized = true};
    layer l[3];
    for (int k = 0; k < 3; k++)
        l[k] = (layer){hone_draft_in(n, 2 + 3 * k), hone_draft_in(n, 3 + 3 * k), hone_draft_in(n, 4 + 3 * k),
                       hone_draft_in(n, 11 + k), hone_edit_int(e, own[k], bits)};
    mixture(&m, l, hone_draft_in(n, 14));
}
