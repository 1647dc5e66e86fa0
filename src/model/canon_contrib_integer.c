/* SPDX-License-Identifier: Apache-2.0
   canon_contrib_integer: products of quantized matrices that come out as floats or bytes, and what is built
   on them: QGemm, MatMulIntegerToFloat, DynamicQuantizeMatMul, QAttention; DynamicQuantizeLSTM and
   QEmbedLayerNormalization, whose weights are bytes. Written as quantizers write them before
   ONNX Runtime joins them: MatMulInteger, Cast, Mul, Add. */
#include "model/canon_contrib.h"

/* a * b * alpha, of scales: a constant where both are, since passes look for constant scales. */
static hone_vid scales_product(hone_edit *e, hone_vid a, hone_vid b, double alpha) {
    const hone_value *p = hone_edit_value(e, a), *q = hone_edit_value(e, b);
    if (p && q && p->dtype == HONE_DTYPE_F32 && q->dtype == HONE_DTYPE_F32 &&
        (hone_value_count(p) == 1 || hone_value_count(q) == 1)) {
        const hone_value *many = hone_value_count(p) == 1 ? q : p, *one = many == p ? q : p;
        hone_value *v = NULL;
        if (hone_value_tensor(HONE_DTYPE_F32, many->dim, many->rank, &v)) v = NULL;
        for (int64_t k = 0; v && k < hone_value_count(v); k++)
            ((float *)v->data)[k] =
                (float)alpha * (float)hone_value_f64(one, 0) * (float)hone_value_f64(many, k);
        return hone_edit_const(e, v);
    }
    hone_vid both = HONE_NODE(e, "Mul", a, b);
    return alpha == 1 ? both : HONE_NODE(e, "Mul", both, hone_edit_like(e, alpha, both));
}

/* sum of (a - az)(b - bz), times both scales, plus a bias */
static hone_vid scaled_product(hone_edit *e, hone_vid a, hone_vid b, hone_vid as, hone_vid bs, hone_vid az,
                               hone_vid bz, hone_vid bias, hone_vid out) {
    hone_vid acc = HONE_NODE(e, "MatMulInteger", a, b, az, bz);
    hone_vid v = HONE_NODE_AS(e, "Mul", bias < 0 ? out : -1, HONE_NODE(e, "CastLike", acc, as),
                              scales_product(e, as, bs, 1));
    return bias < 0 ? v : HONE_NODE_AS(e, "Add", out, v, bias);
}

/* (a, b, scale of a, scale of b, zero of a, zero of b, bias) */
void hone_contrib_matmul_to_float(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    scaled_product(e, n->in.at[0], n->in.at[1], n->in.at[2], n->in.at[3], hone_draft_in(n, 4),
                   hone_draft_in(n, 5), hone_draft_in(n, 6), n->out.at[0]);
}

/* (a of floats, b, scale of b, zero of b, bias) */
void hone_contrib_dynamic_matmul(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid q[] = {hone_edit_var(e), hone_edit_var(e), hone_edit_var(e)}; /* bytes, scale, zero */
    n->placed = true;
    hone_contrib_node(e, "", "DynamicQuantizeLinear", q, 3, HONE_IN(n->in.at[0]), HONE_PLAIN);
    scaled_product(e, q[0], n->in.at[1], q[1], n->in.at[2], q[2], hone_draft_in(n, 3), hone_draft_in(n, 4),
                   n->out.at[0]);
}

/* (a, scale, zero, b, scale, zero, bias as i32, scale, zero): without the last two the result is floats. The
   bias has the scale of the product. */
void hone_contrib_q_gemm(hone_edit *e) {
    hone_draft *n = e->node;
    bool columns = hone_edit_rank(e, n->in.at[4]) == 1, tb = hone_edit_int(e, "transB", 0) != 0;
    double alpha = hone_edit_float(e, "alpha", 1);
    hone_vid bias = hone_draft_in(n, 6), ys = hone_draft_in(n, 7);
    hone_attr at = hone_attr_of_int(e->im, "axis", tb ? 0 : 1), first = hone_attr_of_int(e->im, "axis", 0);
    n->placed = true;
    hone_vid a = hone_contrib_dequantize(e, n->in.at[0], n->in.at[1], n->in.at[2]);
    hone_vid b = hone_edit_node(e, "DequantizeLinear", -1, HONE_IN(n->in.at[3], n->in.at[4], n->in.at[5]),
                                &at, columns);
    if (bias >= 0) {
        hone_vid scale = scales_product(e, n->in.at[1], n->in.at[4], alpha);
        if (hone_edit_rank(e, bias) == 1)
            bias = hone_edit_node(e, "DequantizeLinear", -1, HONE_IN(bias, scale), &first, columns);
        else bias = HONE_NODE(e, "Mul", hone_contrib_cast(e, bias, HONE_DTYPE_F32), scale);
    }
    hone_attr attr[] = {hone_attr_of_int(e->im, "transA", hone_edit_int(e, "transA", 0) != 0),
                        hone_attr_of_int(e->im, "transB", tb), hone_contrib_float(e, "alpha", alpha)};
    hone_vid y = hone_edit_node(e, "Gemm", ys < 0 ? n->out.at[0] : -1, HONE_IN(a, b, bias), attr, 3);
    if (ys >= 0) hone_contrib_quantize(e, y, ys, hone_draft_in(n, 8), n->in.at[0], n->out.at[0]);
}

/* (x, weights, bias, scale of x, scale of weights, mask, zero of x, zero of weights, past): the product, then
   Attention without one */
void hone_contrib_q_attention(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid all = scaled_product(e, n->in.at[0], n->in.at[1], n->in.at[3], n->in.at[4], hone_draft_in(n, 6),
                                  hone_draft_in(n, 7), n->in.at[2], -1);
    n->placed = true;
    hone_contrib_attention_of(e, all, hone_draft_in(n, 5), hone_draft_in(n, 8), -1);
}

/* ---- weights of bytes ---------------------------------------------------------------------------------- */
/* [directions, in, 4 * hidden] of bytes, with scales of [directions] or [directions, 4 * hidden] →
   [directions, 4 * hidden, in] of floats */
static hone_vid lstm_weights(hone_edit *e, hone_vid w, hone_vid scale, hone_vid zero) {
    static const int64_t swap[] = {0, 2, 1};
    hone_vid shape = hone_edit_i64s(e, (const int64_t[]){0, 1, -1}, 3);
    hone_vid v = hone_contrib_cast(e, w, HONE_DTYPE_F32);
    if (zero >= 0)
        v = HONE_NODE(e, "Sub", v,
                      hone_contrib_cast(e, HONE_NODE(e, "Reshape", zero, shape), HONE_DTYPE_F32));
    return hone_contrib_transpose(e, HONE_NODE(e, "Mul", v, HONE_NODE(e, "Reshape", scale, shape)), -1, swap,
                                  3);
}
/* LSTM's eight inputs, then (scale, zero) of both weights. States are not rounded to bytes at every step, as
   ONNX Runtime does: nothing is lost by that. */
void hone_contrib_dynamic_lstm(hone_edit *e) {
    hone_draft *n = e->node;
    n->in.at[1] = lstm_weights(e, n->in.at[1], n->in.at[8], hone_draft_in(n, 9));
    n->in.at[2] = lstm_weights(e, n->in.at[2], n->in.at[10], hone_draft_in(n, 11));
    n->in.n = 8;
    hone_contrib_becomes(e, "LSTM");
}

/* EmbedLayerNormalization whose tables and weights are bytes: rows are picked, then made floats. */
void hone_contrib_q_embed_norm(hone_edit *e) {
    enum { IDS, SEGMENTS, WORDS, PLACES, SEGMENT_WORDS, GAMMA, BETA, MASK, SCALES, ZEROS = 13 };
    hone_draft *n = e->node;
    hone_vid gamma = hone_contrib_dequantize(e, n->in.at[GAMMA], n->in.at[SCALES + 3], n->in.at[ZEROS + 3]);
    hone_vid beta = hone_contrib_dequantize(e, n->in.at[BETA], n->in.at[SCALES + 4], n->in.at[ZEROS + 4]);
    hone_vid zero = hone_contrib_number(e, 0), length = hone_contrib_dim(e, n->in.at[IDS], 1);
    hone_vid words = hone_contrib_dequantize(e, HONE_NODE(e, "Gather", n->in.at[WORDS], n->in.at[IDS]),
                                             n->in.at[SCALES], n->in.at[ZEROS]);
    hone_vid places = hone_contrib_dequantize(e, hone_contrib_slice(e, n->in.at[PLACES], zero, length, 0),
                                              n->in.at[SCALES + 1], n->in.at[ZEROS + 1]);
    hone_vid x = HONE_NODE(e, "Add", words, places);
    n->placed = true;
    if (hone_draft_in(n, SEGMENTS) >= 0 && hone_draft_in(n, SEGMENT_WORDS) >= 0) {
        hone_vid rows = HONE_NODE(e, "Gather", n->in.at[SEGMENT_WORDS], n->in.at[SEGMENTS]);
        x = HONE_NODE(
            e, "Add", x,
            hone_contrib_dequantize(e, rows, hone_draft_in(n, SCALES + 2), hone_draft_in(n, ZEROS + 2)));
    }
    hone_contrib_layer_norm(e, x, gamma, beta, hone_edit_float(e, "epsilon", 1e-12), n->out.at[0], -1, -1);
    hone_contrib_count_mask(e, n->in.at[IDS], hone_draft_in(n, MASK), hone_draft_out(n, 1));
}

/* ---- sums and products of small integers --------------------------------------------------------------- */
void hone_contrib_matmul_integer16(hone_edit *e) {
    hone_draft *n = e->node;
    hone_dtype t =
        hone_edit_dtype(e, n->in.at[0]) == HONE_DTYPE_U16 && hone_edit_dtype(e, n->in.at[1]) == HONE_DTYPE_U16
            ? HONE_DTYPE_U32
            : HONE_DTYPE_I32;
    n->placed = true;
    HONE_NODE_AS(e, "MatMul", n->out.at[0], hone_contrib_cast(e, n->in.at[0], t),
                 hone_contrib_cast(e, n->in.at[1], t));
}
/* (a, zero, b, zero) */
void hone_contrib_mul_integer(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid v[2];
    n->placed = true;
    for (int k = 0; k < 2; k++) {
        v[k] = hone_contrib_cast(e, n->in.at[2 * k], HONE_DTYPE_I32);
        if (hone_draft_in(n, 2 * k + 1) >= 0)
            v[k] = HONE_NODE(e, "Sub", v[k], hone_contrib_cast(e, n->in.at[2 * k + 1], HONE_DTYPE_I32));
    }
    HONE_NODE_AS(e, "Mul", n->out.at[0], v[0], v[1]);
}
void hone_contrib_sum_integer(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_attr *axes = hone_edit_attr(e, "axes");
    hone_vid at = axes && axes->kind == HONE_ATTR_INTS ? hone_edit_i64s(e, axes->i, axes->n) : -1;
    hone_dtype t = hone_edit_dtype(e, n->in.at[0]) == HONE_DTYPE_U8 ? HONE_DTYPE_U32 : HONE_DTYPE_I32;
    n->placed = true;
    hone_edit_node(e, "ReduceSum", n->out.at[0], HONE_IN(hone_contrib_cast(e, n->in.at[0], t), at),
                   HONE_WITH(hone_attr_of_int(e->im, "keepdims", hone_edit_int(e, "keepdims", 1))));
}
