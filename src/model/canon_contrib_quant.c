/* SPDX-License-Identifier: Apache-2.0
   canon_contrib_quant: QLinear… of com.microsoft as DequantizeLinear, the op in floats, QuantizeLinear. That
   is what each of them means, and the form in which quantizers write everything else: the passes that find
   integer arithmetic in such pairs serve both. Products of integers are in canon_contrib_integer.c. */
#include "model/canon_contrib.h"

/* ---- to floats and back -------------------------------------------------------------------------------- */
hone_vid hone_contrib_dequantize(hone_edit *e, hone_vid x, hone_vid scale, hone_vid zero) {
    return hone_edit_node(e, "DequantizeLinear", -1, HONE_IN(x, scale, zero), HONE_PLAIN);
}
/* Without a zero point the result would be u8: it is of x's type, with a zero point of 0. */
void hone_contrib_quantize(hone_edit *e, hone_vid v, hone_vid scale, hone_vid zero, hone_vid like,
                           hone_vid out) {
    if (zero < 0) zero = hone_edit_like(e, 0, like);
    HONE_NODE_AS(e, "QuantizeLinear", out, v, scale, zero);
}

/* (x, scale, zero) from input k on, as floats */
static hone_vid floats(hone_edit *e, int k) {
    const hone_draft *n = e->node;
    return hone_contrib_dequantize(e, n->in.at[k], n->in.at[k + 1], hone_draft_in(n, k + 2));
}
/* To the node's output, by scale and zero from input k on. */
static void bytes(hone_edit *e, hone_vid v, int k, hone_vid like) {
    const hone_draft *n = e->node;
    hone_contrib_quantize(e, v, n->in.at[k], hone_draft_in(n, k + 1), like, n->out.at[0]);
}

/* ---- element by element -------------------------------------------------------------------------------- */
/* (a, scale, zero, b, scale, zero, scale, zero) */
void hone_contrib_q_binary(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    bytes(e, HONE_NODE(e, n->op + strlen("QLinear"), floats(e, 0), floats(e, 3)), 6, n->in.at[0]);
}

/* (x, scale, zero, scale, zero) */
void hone_contrib_q_leaky_relu(hone_edit *e) {
    hone_attr alpha = hone_contrib_float(e, "alpha", hone_edit_float(e, "alpha", 0.01));
    e->node->placed = true;
    bytes(e, hone_edit_node(e, "LeakyRelu", -1, HONE_IN(floats(e, 0)), &alpha, 1), 3, e->node->in.at[0]);
}
void hone_contrib_q_sigmoid(hone_edit *e) {
    e->node->placed = true;
    bytes(e, HONE_NODE(e, "Sigmoid", floats(e, 0)), 3, e->node->in.at[0]);
}

/* (condition, x, scale, zero, y, scale, zero, scale, zero) */
void hone_contrib_q_where(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    bytes(e, HONE_NODE(e, "Where", n->in.at[0], floats(e, 1), floats(e, 4)), 7, n->in.at[1]);
}

/* (scale, zero, then x, scale, zero for each part) */
void hone_contrib_q_concat(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid *part = HONE_NEW_N(e->im->scratch, hone_vid, n->in.n), all = hone_edit_var(e);
    int parts = (n->in.n - 2) / 3;
    hone_attr axis = hone_attr_of_int(e->im, "axis", hone_edit_int(e, "axis", 0));
    n->placed = true;
    if (!part) {
        hone_import_no_memory(e->im);
        return;
    }
    if ((n->in.n - 2) % 3 != 0) {
        hone_edit_problem(e, HONE_BAD_INPUT, "inputs come in threes behind the first two");
        return;
    }
    for (int k = 0; k < parts; k++)
        part[k] = hone_contrib_dequantize(e, n->in.at[2 + 3 * k], hone_draft_in(n, 3 + 3 * k),
                                          hone_draft_in(n, 4 + 3 * k));
    hone_contrib_node(e, "", "Concat", &all, 1, part, parts, &axis, 1);
    hone_contrib_quantize(e, all, n->in.at[0], n->in.at[1], n->in.at[2], n->out.at[0]);
}

/* (x, scale, zero, scale, zero); `opset` is that of the Softmax it was */
void hone_contrib_q_softmax(hone_edit *e) {
    hone_draft *n = e->node, soft = {.domain = "", .op = "Softmax", .name = n->name};
    hone_edit inner = {e->im, e->g, &soft};
    bool flat = hone_edit_int(e, "opset", 13) < 13;
    hone_vid v = hone_edit_var(e);
    n->placed = true;
    soft.version = flat ? 12 : HONE_NEWEST;
    if (hone_push(&soft.in, floats(e, 0)) && hone_push(&soft.out, v)) {
        hone_edit_set(&inner, hone_attr_of_int(e->im, "axis", hone_edit_int(e, "axis", flat ? 1 : -1)));
        hone_draft_place(&inner);
    } else {
        hone_import_no_memory(e->im);
    }
    hone_draft_free(&soft);
    /* ONNX Runtime, whose op it is, multiplies by the whole part of 1 / scale: by 254 where the scale is
       0.00392157 */
    const hone_vid scale =
        HONE_NODE(e, "Reciprocal", HONE_NODE(e, "Floor", HONE_NODE(e, "Reciprocal", n->in.at[3])));
    hone_contrib_quantize(e, v, scale, hone_draft_in(n, 4), n->in.at[0], n->out.at[0]);
}

void hone_contrib_q_mean(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_attr *axes = hone_edit_attr(e, "axes");
    hone_attr keep = hone_attr_of_int(e->im, "keepdims", hone_edit_int(e, "keepdims", 1));
    n->placed = true;
    hone_vid at = axes && axes->kind == HONE_ATTR_INTS ? hone_edit_i64s(e, axes->i, axes->n) : -1;
    bytes(e, hone_edit_node(e, "ReduceMean", -1, HONE_IN(floats(e, 0), at), &keep, 1), 3, n->in.at[0]);
}

/* ---- pictures ------------------------------------------------------------------------------------------ */
/* How many dims x has; an attribute that has a number for each spatial one helps. 0: a problem is noted. */
static int picture_rank(hone_edit *e, hone_vid x) {
    const hone_attr *kernel = hone_edit_attr(e, "kernel_shape");
    int rank = kernel && kernel->kind == HONE_ATTR_INTS ? kernel->n + 2 : hone_edit_rank(e, x);
    if (rank >= 3 && rank <= HONE_MAX_RANK) return rank;
    hone_edit_problem(e, HONE_NOT_SUPPORTED, "a picture of %d dims (-1: not known)", rank);
    return 0;
}
static hone_vid channels_first(hone_edit *e, hone_vid x, int rank) {
    int64_t perm[HONE_MAX_RANK] = {0, rank - 1};
    for (int k = 2; k < rank; k++) perm[k] = k - 1;
    return hone_contrib_transpose(e, x, -1, perm, rank);
}
static void channels_last(hone_edit *e, hone_vid x, int rank, hone_vid out) {
    int64_t perm[HONE_MAX_RANK] = {0};
    for (int k = 1; k < rank - 1; k++) perm[k] = k + 1;
    perm[rank - 1] = 1;
    hone_contrib_transpose(e, x, out, perm, rank);
}
/* The draft, its domain and `channels_last` dropped, with its input 0 and its output channels last. */
static void between_transposes(hone_edit *e, const char *op, bool last) {
    hone_draft *n = e->node;
    int rank = last ? picture_rank(e, n->in.at[0]) : 0;
    hone_vid wanted;
    hone_edit_drop(e, "channels_last");
    if (last && !rank) {
        n->placed = true;
        return;
    }
    hone_contrib_becomes(e, op);
    if (!last) return;
    n->in.at[0] = channels_first(e, n->in.at[0], rank);
    hone_vid made = hone_contrib_place_before(e, &wanted);
    channels_last(e, made, rank, wanted);
}
void hone_contrib_nhwc_max_pool(hone_edit *e) { between_transposes(e, "MaxPool", true); }
void hone_contrib_q_conv(hone_edit *e) {
    between_transposes(e, "QLinearConv", hone_edit_int(e, "channels_last", 0) != 0);
}

/* (x, scale, zero, scale, zero): AveragePool or GlobalAveragePool of floats, with the node's attributes */
void hone_contrib_q_pool(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_vid out = n->out.at[0], x = n->in.at[0], scale = n->in.at[3], zero = hone_draft_in(n, 4);
    bool last = hone_edit_int(e, "channels_last", 0) != 0;
    int rank = last ? picture_rank(e, x) : 0;
    const char *op = n->op + strlen("QLinear");
    hone_edit_drop(e, "channels_last");
    if (last && !rank) {
        n->placed = true;
        return;
    }
    n->in.at[0] = floats(e, 0), n->in.n = 1;
    if (last) n->in.at[0] = channels_first(e, n->in.at[0], rank);
    hone_contrib_becomes(e, op);
    hone_vid wanted, v = hone_contrib_place_before(e, &wanted);
    if (last) {
        hone_vid first = v;
        channels_last(e, first, rank, v = hone_edit_var(e));
    }
    hone_contrib_quantize(e, v, scale, zero, x, out);
}

/* ---- QuantizeLinear and DequantizeLinear: ONNX's, which came later ------------------------------------- */
void hone_contrib_q_linear(hone_edit *e) { hone_contrib_becomes(e, e->node->op); }
