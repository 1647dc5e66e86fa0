/* SPDX-License-Identifier: Apache-2.0
   canon_contrib_misc: ops that ONNX has under another form or got later, and the experimental ones of ONNX's
   first years that ONNX Runtime still reads. */
#include "model/canon_contrib.h"

/* ---- the same op, in a version of ONNX ----------------------------------------------------------------- */
void hone_contrib_renamed(hone_edit *e) { hone_contrib_becomes(e, e->node->op); }
void hone_contrib_grid_sample(hone_edit *e) {
    hone_contrib_becomes(e, "GridSample");
    e->node->version = 16; /* its words for modes */
}
/* (start, limit, delta): a step of 1 may be left out */
void hone_contrib_range_op(hone_edit *e) {
    if (hone_draft_in(e->node, 2) < 0) hone_edit_set_in(e, 2, hone_edit_like(e, 1, e->node->in.at[0]));
    hone_contrib_becomes(e, "Range");
}
void hone_contrib_dynamic_slice(hone_edit *e) { hone_contrib_becomes(e, "Slice"); }

/* (x, the place of the new dim, a scalar) */
void hone_contrib_expand_dims(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid axis =
        HONE_NODE(e, "Reshape", hone_contrib_cast(e, n->in.at[1], HONE_DTYPE_I64), hone_contrib_number(e, 1));
    n->placed = true;
    HONE_NODE_AS(e, "Unsqueeze", n->out.at[0], n->in.at[0], axis);
}

/* y, where each element is in y, how often each of y is there: in the order in which they come */
void hone_contrib_unique(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_vid out[] = {n->out.at[0], -1, hone_draft_out(n, 1), hone_draft_out(n, 2)};
    hone_attr unsorted = hone_attr_of_int(e->im, "sorted", 0);
    n->placed = true;
    hone_contrib_node(e, "", "Unique", out, 4, HONE_IN(n->in.at[0]), &unsorted, 1);
}

/* (x, weights, pads, bias): pads that are known are an attribute */
void hone_contrib_conv_transpose(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_value *pads = hone_edit_value(e, hone_draft_in(n, 2));
    int64_t v[2 * HONE_MAX_RANK], count = pads ? hone_value_count(pads) : 0;
    if (hone_draft_in(n, 2) >= 0 && (!pads || count > 2 * HONE_MAX_RANK)) {
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "pads that are not constant");
        n->placed = true;
        return;
    }
    for (int k = 0; k < count; k++) v[k] = hone_value_i64(pads, k);
    if (count) hone_edit_set(e, hone_attr_of_ints(e->im, "pads", v, (int)count));
    if (n->in.n > 2) n->in.at[2] = hone_draft_in(n, 3), n->in.n = 3;
    hone_contrib_becomes(e, "ConvTranspose");
}

/* ---- experimental: numbers are attributes -------------------------------------------------------------- */
static hone_vid times(hone_edit *e, hone_vid x, double by, hone_vid out) {
    return HONE_NODE_AS(e, "Mul", out, x, hone_edit_like(e, by, e->node->in.at[0]));
}

/* alpha * x + beta */
void hone_contrib_affine(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid x = n->in.at[0], v = times(e, x, hone_edit_float(e, "alpha", 1), -1);
    n->placed = true;
    HONE_NODE_AS(e, "Add", n->out.at[0], v, hone_edit_like(e, hone_edit_float(e, "beta", 0), x));
}
void hone_contrib_scale(hone_edit *e) {
    e->node->placed = true;
    times(e, e->node->in.at[0], hone_edit_float(e, "scale", 1), e->node->out.at[0]);
}
/* alpha * f(beta * x) */
static void around(hone_edit *e, const char *f) {
    hone_draft *n = e->node;
    hone_vid v = times(e, n->in.at[0], hone_edit_float(e, "beta", 0), -1);
    n->placed = true;
    times(e, HONE_NODE(e, f, v), hone_edit_float(e, "alpha", 0), n->out.at[0]);
}
void hone_contrib_parametric_softplus(hone_edit *e) { around(e, "Softplus"); }
void hone_contrib_scaled_tanh(hone_edit *e) { around(e, "Tanh"); }

/* x * scale + a number a channel */
void hone_contrib_image_scaler(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_attr *bias = hone_edit_attr(e, "bias");
    hone_value *v = NULL;
    n->placed = true;
    if (!bias || bias->kind != HONE_ATTR_FLOATS || bias->n < 1) {
        hone_edit_problem(e, HONE_BAD_INPUT, "attribute 'bias' is missing");
        return;
    }
    if (hone_value_tensor(HONE_DTYPE_F32, (const int64_t[]){bias->n, 1, 1}, 3, &v)) v = NULL;
    for (int k = 0; v && k < bias->n; k++) ((float *)v->data)[k] = (float)bias->f[k];
    hone_vid b = HONE_NODE(e, "CastLike", hone_edit_const(e, v), n->in.at[0]);
    HONE_NODE_AS(e, "Add", n->out.at[0], times(e, n->in.at[0], hone_edit_float(e, "scale", 1), -1), b);
}

/* Borders (left, top, right, bottom) are cut off a picture; with `scale`, (height, width), what remains is so
   large, from left and top on. */
void hone_contrib_crop(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_attr *border = hone_edit_attr(e, "border"), *size = hone_edit_attr(e, "scale");
    n->placed = true;
    if (!border || border->kind != HONE_ATTR_INTS || border->n != 4 ||
        (size && (size->kind != HONE_ATTR_INTS || size->n != 2))) {
        hone_edit_problem(e, HONE_BAD_INPUT, "attribute 'border' has four numbers, 'scale' two");
        return;
    }
    const int64_t axes[] = {2, 3}, from[] = {border->i[1], border->i[0]},
                  cut[] = {border->i[3], border->i[2]};
    hone_vid end,
        shape =
            hone_edit_node(e, "Shape", -1, HONE_IN(n->in.at[0]),
                           HONE_WITH(hone_attr_of_int(e->im, "start", 2), hone_attr_of_int(e->im, "end", 4)));
    if (size) end = HONE_NODE(e, "Add", hone_edit_i64s(e, from, 2), hone_edit_i64s(e, size->i, 2));
    else end = HONE_NODE(e, "Sub", shape, hone_edit_i64s(e, cut, 2));
    HONE_NODE_AS(e, "Slice", n->out.at[0], n->in.at[0], hone_edit_i64s(e, from, 2), end,
                 hone_edit_i64s(e, axes, 2));
}

/* ---- a few more that are sums and products ------------------------------------------------------------- */
/* x + y * gate */
void hone_contrib_gated_add(hone_edit *e) {
    hone_draft *n = e->node;
    n->placed = true;
    HONE_NODE_AS(e, "Add", n->out.at[0], n->in.at[0], HONE_NODE(e, "Mul", n->in.at[1], n->in.at[2]));
}
