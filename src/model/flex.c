/* SPDX-License-Identifier: Apache-2.0
   flex: FlexAttention of ai.onnx.preview, in terms of other ops. Its bodies are not run, they are written out
   in place: so scores and probabilities can be fused with what the model does to them. */
#include "model/upgrade.h"

static hone_vid shape_part(hone_edit *e, hone_vid x, int64_t from, int64_t to) {
    return hone_edit_node(
        e, "Shape", -1, HONE_IN(x),
        HONE_WITH(hone_attr_of_int(e->im, "start", from), hone_attr_of_int(e->im, "end", to)));
}

/* k or v with each head repeated for the group of query heads that share it: [B, H, S, D] → [B, H * G, S,
   D] */
static hone_vid share_heads(hone_edit *e, hone_vid q, hone_vid x) {
    const hone_var *a = hone_var_of(e->g, q), *b = hone_var_of(e->g, x);
    if (a && b && a->rank == 4 && b->rank == 4 && a->dim[1] == b->dim[1]) return x;
    hone_attr axis = hone_attr_of_int(e->im, "axis", 0);
    hone_vid group =
        hone_edit_node(e, "Div", -1, HONE_IN(shape_part(e, q, 1, 2), shape_part(e, x, 1, 2)), HONE_PLAIN);
    hone_vid ones = hone_edit_i64s(e, (const int64_t[]){1, 1}, 2), two = hone_edit_i64s(e, &(int64_t){2}, 1);
    hone_vid wide = hone_edit_node(e, "Concat", -1, HONE_IN(ones, group, ones), HONE_WITH(axis));
    hone_vid whole = hone_edit_node(e, "Concat", -1, HONE_IN(shape_part(e, q, 0, 2), shape_part(e, x, 2, 4)),
                                    HONE_WITH(axis));
    hone_vid y = hone_edit_node(e, "Unsqueeze", -1, HONE_IN(x, two), HONE_PLAIN);
    y = hone_edit_node(e, "Expand", -1, HONE_IN(y, wide), HONE_PLAIN);
    return hone_edit_node(e, "Reshape", -1, HONE_IN(y, whole), HONE_PLAIN);
}

static hone_vid cast(hone_edit *e, hone_vid x, int64_t type) {
    return hone_edit_node(e, "Cast", -1, HONE_IN(x), HONE_WITH(hone_attr_of_int(e->im, "to", type)));
}

/* 1 / sqrt(head size), or as given; a scalar, in the type of q. */
static hone_vid scale_of(hone_edit *e, hone_vid q) {
    if (hone_edit_attr(e, "scale")) return hone_edit_like(e, hone_edit_float(e, "scale", 1), q);
    hone_vid none = hone_edit_i64s(e, NULL, 0);
    hone_vid size = hone_edit_node(
        e, "Reshape", -1, HONE_IN(cast(e, shape_part(e, q, 3, 4), HONE_DTYPE_F32), none), HONE_PLAIN);
    hone_vid scale = hone_edit_node(
        e, "Reciprocal", -1, HONE_IN(hone_edit_node(e, "Sqrt", -1, HONE_IN(size), HONE_PLAIN)), HONE_PLAIN);
    return hone_edit_node(e, "CastLike", -1, HONE_IN(scale, q), HONE_PLAIN);
}

void hone_onnx_flex_attention(hone_edit *e, hone_onnx_modify *modify, void *context) {
    static const int64_t swap[] = {0, 1, 3, 2};
    hone_draft *n = e->node;
    n->placed = true;
    if (n->in.n != 3 || n->out.n != 1 || n->out.at[0] < 0 || n->in.at[0] < 0 || n->in.at[1] < 0 ||
        n->in.at[2] < 0) {
        hone_edit_problem(e, HONE_BAD_INPUT, "must have three inputs and one output");
        return;
    }
    hone_vid q = n->in.at[0], k = share_heads(e, q, n->in.at[1]), v = share_heads(e, q, n->in.at[2]);
    int64_t type = hone_edit_int(e, "softmax_precision",
                                 hone_edit_dtype(e, q) == HONE_DTYPE_F64 ? HONE_DTYPE_F64 : HONE_DTYPE_F32);
    hone_vid scaled = hone_edit_node(e, "Mul", -1, HONE_IN(q, scale_of(e, q)), HONE_PLAIN);
    hone_vid transposed =
        hone_edit_node(e, "Transpose", -1, HONE_IN(k), HONE_WITH(hone_attr_of_ints(e->im, "perm", swap, 4)));
    hone_vid x = cast(e, hone_edit_node(e, "MatMul", -1, HONE_IN(scaled, transposed), HONE_PLAIN), type);
    x = modify(context, "score_mod", x);
    x = hone_edit_node(e, "Softmax", -1, HONE_IN(x), HONE_WITH(hone_attr_of_int(e->im, "axis", -1)));
    x = modify(context, "prob_mod", x);
    x = hone_edit_node(e, "MatMul", -1, HONE_IN(x, cast(e, v, type)), HONE_PLAIN);
    hone_edit_node(e, "CastLike", n->out.at[0], HONE_IN(x, q), HONE_PLAIN);
}
