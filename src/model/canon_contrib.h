/* SPDX-License-Identifier: Apache-2.0
   canon_contrib: ops of com.microsoft, which ONNX Runtime's optimizers and quantizers write, said in ONNX's
   own ops. canon_contrib.c has the table that names them; the files beside it are one family each. An op that
   no row below serves has a row of its own in ops/contrib*.hop, or none:
   then the model is refused and the op named. */
#ifndef HONE_MODEL_CANON_CONTRIB_H
#define HONE_MODEL_CANON_CONTRIB_H
#include <string.h>

#include "model/upgrade.h"

/* canon_contrib_fused.c: products with something behind them, activations, biases */
hone_upgrade_fn hone_contrib_fused_conv, hone_contrib_fused_gemm, hone_contrib_fused_matmul,
    hone_contrib_gelu, hone_contrib_fast_gelu, hone_contrib_quick_gelu, hone_contrib_bias_add,
    hone_contrib_bias_split_gelu, hone_contrib_bias_dropout, hone_contrib_bias_softmax,
    hone_contrib_gemm_fast_gelu;
/* canon_contrib_norm.c */
hone_upgrade_fn hone_contrib_simplified_norm, hone_contrib_skip_norm, hone_contrib_skip_simplified_norm,
    hone_contrib_group_norm, hone_contrib_skip_group_norm, hone_contrib_embed_norm;
/* canon_contrib_attention.c, canon_contrib_group.c: heads in the last dim, masks of several forms, caches */
hone_upgrade_fn hone_contrib_attention, hone_contrib_multi_head, hone_contrib_rotary,
    hone_contrib_group_query;
/* canon_contrib_quant.c: bytes with a scale, made floats, computed and made bytes again */
hone_upgrade_fn hone_contrib_q_binary, hone_contrib_q_leaky_relu, hone_contrib_q_sigmoid,
    hone_contrib_q_where, hone_contrib_q_concat, hone_contrib_q_softmax, hone_contrib_q_mean,
    hone_contrib_q_pool, hone_contrib_q_conv, hone_contrib_q_linear, hone_contrib_nhwc_max_pool;
/* canon_contrib_integer.c: sums of products of bytes */
hone_upgrade_fn hone_contrib_matmul_to_float, hone_contrib_dynamic_matmul, hone_contrib_q_gemm,
    hone_contrib_q_attention, hone_contrib_dynamic_lstm, hone_contrib_q_embed_norm,
    hone_contrib_matmul_integer16, hone_contrib_mul_integer, hone_contrib_sum_integer;
/* canon_contrib_experts.c: tokens through the experts that a router picks */
hone_upgrade_fn hone_contrib_moe, hone_contrib_q_moe;
/* canon_contrib_misc.c: ops that ONNX got later, and those of its first years */
hone_upgrade_fn hone_contrib_renamed, hone_contrib_grid_sample, hone_contrib_range_op,
    hone_contrib_dynamic_slice, hone_contrib_expand_dims, hone_contrib_unique, hone_contrib_conv_transpose,
    hone_contrib_affine, hone_contrib_scale, hone_contrib_parametric_softplus, hone_contrib_scaled_tanh,
    hone_contrib_image_scaler, hone_contrib_crop, hone_contrib_gated_add;
hone_upgrade_fn hone_contrib_decoder_masked; /* canon_contrib_group.c */

/* ---- writing nodes ------------------------------------------------------------------------------------- */
#define HONE_NODE(e, op, ...) hone_edit_node(e, op, -1, HONE_IN(__VA_ARGS__), HONE_PLAIN)
#define HONE_NODE_AS(e, op, out, ...) hone_edit_node(e, op, out, HONE_IN(__VA_ARGS__), HONE_PLAIN)

static inline hone_attr hone_contrib_float(hone_edit *e, const char *name, double v) {
    hone_attr a = hone_attr_of_floats(e->im, name, &v, 1);
    a.kind = HONE_ATTR_FLOAT;
    return a;
}
/* x where it is there, else 0: x is whatever `like` is. */
static inline hone_vid hone_contrib_add(hone_edit *e, hone_vid a, hone_vid b) {
    return b < 0 ? a : a < 0 ? b : HONE_NODE(e, "Add", a, b);
}
static inline hone_vid hone_contrib_transpose(hone_edit *e, hone_vid x, hone_vid out, const int64_t *perm,
                                              int n) {
    return hone_edit_node(e, "Transpose", out, HONE_IN(x),
                          HONE_WITH(hone_attr_of_ints(e->im, "perm", perm, n)));
}
static inline hone_vid hone_contrib_cast(hone_edit *e, hone_vid x, hone_dtype to) {
    return hone_edit_node(e, "Cast", -1, HONE_IN(x), HONE_WITH(hone_attr_of_int(e->im, "to", to)));
}
/* One dim of x, as a vector of one number. */
static inline hone_vid hone_contrib_dim(hone_edit *e, hone_vid x, int64_t dim) {
    return hone_edit_node(
        e, "Shape", -1, HONE_IN(x),
        HONE_WITH(hone_attr_of_int(e->im, "start", dim), hone_attr_of_int(e->im, "end", dim + 1)));
}
/* x from `from` to before `to` along its last dim (-1) or another; both are vectors of one number. */
static inline hone_vid hone_contrib_slice(hone_edit *e, hone_vid x, hone_vid from, hone_vid to,
                                          int64_t axis) {
    return HONE_NODE(e, "Slice", x, from, to, hone_edit_i64s(e, &axis, 1));
}
/* a vector of one */
static inline hone_vid hone_contrib_number(hone_edit *e, int64_t v) { return hone_edit_i64s(e, &v, 1); }
/* 0, 1, … below `end`, a vector of one i64 */
static inline hone_vid hone_contrib_range(hone_edit *e, hone_vid end) {
    return HONE_NODE(e, "Range", hone_edit_i64(e, 0), HONE_NODE(e, "Squeeze", end), hone_edit_i64(e, 1));
}
static inline hone_vid hone_contrib_unsqueeze(hone_edit *e, hone_vid x, const int64_t *axes, int n) {
    return HONE_NODE(e, "Unsqueeze", x, hone_edit_i64s(e, axes, n));
}
/* A node with several outputs; those that are -1 are not wanted. `domain` "" is ONNX's. */
void hone_contrib_node(hone_edit *, const char *domain, const char *op, const hone_vid *out, int n_out,
                       const hone_vid *in, int n_in, const hone_attr *attr, int n_attr);
/* [B, S, heads * D] → [B, heads, S, D], and back */
hone_vid hone_contrib_split_heads(hone_edit *, hone_vid x, int64_t heads);
hone_vid hone_contrib_join_heads(hone_edit *, hone_vid x, hone_vid out);

/* x - zero, times scale; and back to bytes: of the type of zero, or where that is -1 of `like` */
hone_vid hone_contrib_dequantize(hone_edit *, hone_vid x, hone_vid scale, hone_vid zero);
void hone_contrib_quantize(hone_edit *, hone_vid v, hone_vid scale, hone_vid zero, hone_vid like,
                           hone_vid out);
/* Attention behind its projections [B, S, q and k and v side by side], to the draft's outputs; -1: no mask,
   past, nothing added */
void hone_contrib_attention_of(hone_edit *, hone_vid projected, hone_vid mask, hone_vid past, hone_vid added);
/* A padding mask of any form as numbers to add to scores, in the type of x; `total`: how many keys, a vector
   of one. -1: there is none */
hone_vid hone_contrib_added_mask(hone_edit *, hone_vid mask, hone_vid x, hone_vid total);
/* Over the last dim; `mean` and `inverse` (of the deviation) may be -1. */
void hone_contrib_layer_norm(hone_edit *, hone_vid x, hone_vid gamma, hone_vid beta, double epsilon,
                             hone_vid y, hone_vid mean, hone_vid inverse);
/* How many places of each row of a mask are 1, as i32; 0 where there is no mask */
void hone_contrib_count_mask(hone_edit *, hone_vid ids, hone_vid mask, hone_vid out);

/* The draft becomes an op of ONNX in its newest form, with the inputs and attributes it has. */
static inline void hone_contrib_becomes(hone_edit *e, const char *op) {
    e->node->domain = "", e->node->op = op, e->node->version = HONE_NEWEST;
}
/* Its first output is a new var, which is returned; what was wanted there goes to *wanted. The draft is
   placed. */
static inline hone_vid hone_contrib_place_before(hone_edit *e, hone_vid *wanted) {
    *wanted = e->node->out.at[0];
    hone_vid made = e->node->out.at[0] = hone_edit_var(e);
    hone_draft_place(e);
    return made;
}
/* An activation by name: `param` has up to n numbers for it. out -1: a new var. */
hone_vid hone_contrib_activate(hone_edit *, const char *name, const double *param, int n, hone_vid x,
                               hone_vid out);
#endif
