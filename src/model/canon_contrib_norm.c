/* SPDX-License-Identifier: Apache-2.0
   canon_contrib_norm: norms that carry the sums before them, written as Add and the norm of ONNX, which the
   norm kernels serve. */
#include "model/canon_contrib.h"

void hone_contrib_layer_norm(hone_edit *e, hone_vid x, hone_vid gamma, hone_vid beta, double epsilon,
                             hone_vid y, hone_vid mean, hone_vid inverse) {
    const hone_vid out[] = {y, mean, inverse};
    hone_contrib_node(
        e, "", "LayerNormalization", out, 3, HONE_IN(x, gamma, beta),
        HONE_WITH(hone_contrib_float(e, "epsilon", epsilon), hone_attr_of_int(e->im, "axis", -1)));
}

/* One over the root of the mean square: what RMSNormalization has inside and does not hand out. */
static void inverse_rms(hone_edit *e, hone_vid x, double epsilon, int64_t axis, hone_vid out) {
    int rank = hone_edit_rank(e, x);
    int64_t axes[HONE_MAX_RANK], n = 0;
    if (axis < 0 && rank >= 0) axis += rank;
    if (rank < 0 || axis < 0 || axis >= rank) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "inv_std_var of an input whose rank is not known");
        return;
    }
    for (int64_t k = axis; k < rank; k++) axes[n++] = k;
    hone_vid f = hone_contrib_cast(e, x, HONE_DTYPE_F32);
    hone_vid v = HONE_NODE(e, "ReduceMean", HONE_NODE(e, "Mul", f, f), hone_edit_i64s(e, axes, (int)n));
    v = HONE_NODE(e, "Sqrt", HONE_NODE(e, "Add", v, hone_edit_scalar(e, HONE_DTYPE_F32, epsilon)));
    HONE_NODE_AS(e, "Reciprocal", out, v);
}

static void rms_norm(hone_edit *e, hone_vid x, hone_vid gamma, double epsilon, int64_t axis, hone_vid y,
                     hone_vid inv) {
    hone_edit_node(
        e, "RMSNormalization", y, HONE_IN(x, gamma),
        HONE_WITH(hone_contrib_float(e, "epsilon", epsilon), hone_attr_of_int(e->im, "axis", axis)));
    if (inv >= 0) inverse_rms(e, x, epsilon, axis, inv);
}

void hone_contrib_simplified_norm(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    rms_norm(e, n->in.at[0], n->in.at[1], hone_edit_float(e, "epsilon", 1e-5), hone_edit_int(e, "axis", -1),
             n->out.at[0], hone_draft_out(n, 1));
}

/* x + skip + bias, which is an output too if it is wanted. */
static hone_vid summed(hone_edit *e, hone_vid bias) {
    const hone_draft *n = e->node;
    hone_vid sum = hone_draft_out(n, 3);
    if (bias < 0) return HONE_NODE_AS(e, "Add", sum, n->in.at[0], n->in.at[1]);
    return HONE_NODE_AS(e, "Add", sum, HONE_NODE(e, "Add", n->in.at[0], n->in.at[1]), bias);
}

/* (x, skip, gamma, beta, bias) → y, mean, 1 / deviation, the sum */
void hone_contrib_skip_norm(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    hone_contrib_layer_norm(e, summed(e, hone_draft_in(n, 4)), n->in.at[2], hone_draft_in(n, 3),
                            hone_edit_float(e, "epsilon", 1e-12), n->out.at[0], hone_draft_out(n, 1),
                            hone_draft_out(n, 2));
}

/* (x, skip, gamma, bias) → y, mean, 1 / root mean square, the sum */
void hone_contrib_skip_simplified_norm(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    if (hone_draft_out(n, 1) >= 0) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "output 'mean': the simplified norm has none");
        return;
    }
    rms_norm(e, summed(e, hone_draft_in(n, 3)), n->in.at[2], hone_edit_float(e, "epsilon", 1e-12), -1,
             n->out.at[0], hone_draft_out(n, 2));
}

/* ---- groups of channels -------------------------------------------------------------------------------- */
static const int64_t channels_first[] = {0, 3, 1, 2}, channels_last[] = {0, 2, 3, 1};

/* x has its channels first. SiLU is x * sigmoid(x). Gamma and beta may be f32 beside an x of f16. */
static void group_norm(hone_edit *e, hone_vid x) {
    const hone_draft *n = e->node;
    bool last = hone_edit_int(e, "channels_last", 1) != 0, silu = hone_edit_int(e, "activation", 0) == 1;
    hone_vid y = n->out.at[0];
    hone_vid g = HONE_NODE(e, "CastLike", n->in.at[1], x), b = HONE_NODE(e, "CastLike", n->in.at[2], x);
    hone_vid v =
        hone_edit_node(e, "GroupNormalization", last || silu ? -1 : y, HONE_IN(x, g, b),
                       HONE_WITH(hone_attr_of_int(e->im, "num_groups", hone_edit_int(e, "groups", 1)),
                                 hone_contrib_float(e, "epsilon", hone_edit_float(e, "epsilon", 1e-5))));
    if (silu) v = HONE_NODE_AS(e, "Mul", last ? -1 : y, v, HONE_NODE(e, "Sigmoid", v));
    if (last) hone_contrib_transpose(e, v, y, channels_last, 4);
}

void hone_contrib_group_norm(hone_edit *e) {
    hone_vid x = e->node->in.at[0];
    e->node->placed = true;
    if (hone_edit_int(e, "channels_last", 1)) x = hone_contrib_transpose(e, x, -1, channels_first, 4);
    group_norm(e, x);
}

/* (x, gamma, beta, skip, bias) → y, the sum. A skip of two dims is one row a picture. */
void hone_contrib_skip_group_norm(hone_edit *e) {
    hone_draft *n = e->node;
    bool last = hone_edit_int(e, "channels_last", 1) != 0;
    hone_vid x = n->in.at[0], skip = n->in.at[3], bias = hone_draft_in(n, 4);
    static const int64_t row[] = {0, 1, 1, -1}, column[] = {0, -1, 1, 1}, vector[] = {-1, 1, 1};
    n->placed = true;
    if (hone_edit_rank(e, skip) == 2)
        skip = HONE_NODE(e, "Reshape", skip, hone_edit_i64s(e, last ? row : column, 4));
    if (bias >= 0 && !last) bias = HONE_NODE(e, "Reshape", bias, hone_edit_i64s(e, vector, 3));
    if (bias >= 0) x = HONE_NODE(e, "Add", x, bias);
    x = HONE_NODE_AS(e, "Add", hone_draft_out(n, 1), x, skip);
    group_norm(e, last ? hone_contrib_transpose(e, x, -1, channels_first, 4) : x);
}

/* ---- the first layer of a BERT ------------------------------------------------------------------------- */
/* (ids, segments, words, positions, segment words, gamma, beta, mask, position ids) → y, how many of each row
   count, the sum */
void hone_contrib_embed_norm(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid ids = n->in.at[0], segments = hone_draft_in(n, 1), at = hone_draft_in(n, 8),
             mask = hone_draft_in(n, 7);
    hone_vid count = hone_draft_out(n, 1), y = n->out.at[0], sum = hone_draft_out(n, 2);
    hone_vid words = HONE_NODE(e, "Gather", n->in.at[2], ids), zero = hone_edit_i64s(e, &(int64_t){0}, 1);
    hone_vid places;
    n->placed = true;
    if (at >= 0) { /* chosen rows of the table */
        places = HONE_NODE(e, "Gather", n->in.at[3], at);
    } else { /* its first rows, as many as a sequence has places */
        hone_vid length =
            hone_edit_node(e, "Shape", -1, HONE_IN(ids),
                           HONE_WITH(hone_attr_of_int(e->im, "start", 1), hone_attr_of_int(e->im, "end", 2)));
        places = HONE_NODE(e, "Slice", n->in.at[3], zero, length, zero);
    }
    bool more = segments >= 0 && hone_draft_in(n, 4) >= 0;
    hone_vid x = HONE_NODE_AS(e, "Add", more ? -1 : sum, words, places);
    if (more) x = HONE_NODE_AS(e, "Add", sum, x, HONE_NODE(e, "Gather", n->in.at[4], segments));
    hone_contrib_layer_norm(e, x, n->in.at[5], n->in.at[6], hone_edit_float(e, "epsilon", 1e-12), y, -1, -1);
    hone_contrib_count_mask(e, ids, mask, count);
}

void hone_contrib_count_mask(hone_edit *e, hone_vid ids, hone_vid mask, hone_vid out) {
    if (out < 0) return;
    /* nowhere */
    hone_vid counted =
        mask >= 0 ? HONE_NODE(e, "Equal", mask, hone_edit_like(e, 1, mask)) : HONE_NODE(e, "Less", ids, ids);
    hone_edit_node(e, "ReduceSum", out,
                   HONE_IN(hone_contrib_cast(e, counted, HONE_DTYPE_I32), hone_contrib_number(e, 1)),
                   HONE_WITH(hone_attr_of_int(e->im, "keepdims", 0)));
}
