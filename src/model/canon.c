/* SPDX-License-Identifier: Apache-2.0
   canon: where the newest version still has several ways to say the same, all but one are rewritten here:
   rows and passes know one. */
#include <string.h>

#include "model/upgrade.h"

/* ---- Sum, Mean, Max, Min of any number of inputs: two at a time ---------------------------------------- */
void hone_canon_chain(hone_edit *e) {
    hone_draft *n = e->node;
    bool mean = strcmp(n->op, "Mean") == 0, sum = strcmp(n->op, "Sum") == 0;
    const char *op = mean || sum ? "Add" : n->op;
    if (n->in.n < 1 || n->out.n != 1) return; /* the row, or its absence, will say what is wrong */
    if (n->in.n == 2 && !mean && !sum) return;
    hone_vid y = n->out.at[0], v = n->in.at[0];
    n->placed = true;
    if (n->in.n == 1) {
        hone_edit_node(e, "Identity", y, HONE_IN(v), HONE_PLAIN);
        return;
    }
    for (int k = 1; k < n->in.n; k++)
        v = hone_edit_node(e, op, k == n->in.n - 1 && !mean ? y : -1, HONE_IN(v, n->in.at[k]), HONE_PLAIN);
    if (mean) hone_edit_node(e, "Div", y, HONE_IN(v, hone_edit_like(e, n->in.n, n->in.at[0])), HONE_PLAIN);
}

/* ---- MeanVarianceNormalization: its axes written out, all but the channels' ---------------------------- */
void hone_canon_mvn(hone_edit *e) {
    static const int64_t axes[] = {0, 2, 3};
    if (!hone_edit_attr(e, "axes")) hone_edit_set(e, hone_attr_of_ints(e->im, "axes", axes, 3));
}

/* ---- ConstantOfShape: the value as a scalar input ------------------------------------------------------ */
void hone_canon_fill(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_attr *a = hone_edit_attr(e, "value");
    if (n->in.n != 1) return;
    if (!a) {
        hone_edit_set_in(e, 1, hone_edit_scalar(e, HONE_DTYPE_F32, 0));
        return;
    }
    const hone_value *v = a->kind == HONE_ATTR_TENSOR ? a->tensor[0] : NULL;
    hone_value *scalar = NULL;
    if (!v || hone_value_count(v) != 1 || v->dtype == HONE_DTYPE_STRING) {
        hone_edit_problem(e, HONE_BAD_INPUT, "attribute 'value' must be a tensor of one number");
        return;
    }
    if (hone_value_tensor(v->dtype, NULL, 0, &scalar)) scalar = NULL;
    else memcpy(scalar->data, v->data, v->bytes);
    hone_edit_set_in(e, 1, hone_edit_const(e, scalar));
    hone_edit_drop(e, "value");
}

/* ---- Split: how many pieces is always said, for unwanted ones at the end are not listed ---------------- */
void hone_canon_split(hone_edit *e) {
    if (hone_draft_in(e->node, 1) < 0 && !hone_edit_attr(e, "num_outputs"))
        hone_edit_set(e, hone_attr_of_int(e->im, "num_outputs", e->node->out.n));
}

/* ---- recurrent cells with the batch first -------------------------------------------------------------- */
static hone_vid turn(hone_edit *e, hone_vid x, hone_vid out, const int64_t *perm, int n) {
    return hone_edit_node(e, "Transpose", out, HONE_IN(x),
                          HONE_WITH(hone_attr_of_ints(e->im, "perm", perm, n)));
}

void hone_canon_layout(hone_edit *e) {
    static const int64_t swap[] = {1, 0, 2}, batch_first[] = {2, 0, 1, 3};
    static const int inputs[] = {0, 5, 6}; /* x, initial_h, initial_c */
    hone_draft *n = e->node;
    bool transposed = hone_edit_int(e, "layout", 0) == 1;
    hone_vid wanted[3] = {-1, -1, -1}, made[3];
    hone_edit_drop(e, "layout");
    if (!transposed) return;
    for (int k = 0; k < 3; k++)
        if (hone_draft_in(n, inputs[k]) >= 0) n->in.at[inputs[k]] = turn(e, n->in.at[inputs[k]], -1, swap, 3);
    for (int k = 0; k < 3 && k < n->out.n; k++) {
        wanted[k] = n->out.at[k];
        if (wanted[k] >= 0) made[k] = n->out.at[k] = hone_edit_var(e);
    }
    hone_draft_place(e);
    for (int k = 0; k < 3; k++)
        if (wanted[k] >= 0) turn(e, made[k], wanted[k], k ? swap : batch_first, k ? 3 : 4);
}

/* ---- heads packed into the last dim -------------------------------------------------------------------- */
static const int64_t heads_first[] = {0, 2, 1, 3};

/* [B, S, heads * D] → [B, heads, S, D] */
static hone_vid unpack_heads(hone_edit *e, hone_vid x, int64_t heads) {
    hone_vid shape = hone_edit_i64s(e, (const int64_t[]){0, 0, heads, -1}, 4);
    return turn(e, hone_edit_node(e, "Reshape", -1, HONE_IN(x, shape), HONE_PLAIN), -1, heads_first, 4);
}

static void pack_heads(hone_edit *e, hone_vid x, hone_vid out) {
    hone_vid shape = hone_edit_i64s(e, (const int64_t[]){0, 0, -1}, 3);
    hone_edit_node(e, "Reshape", out, HONE_IN(turn(e, x, -1, heads_first, 4), shape), HONE_PLAIN);
}

void hone_canon_attention(hone_edit *e) {
    hone_draft *n = e->node;
    int64_t q = hone_edit_int(e, "q_num_heads", 0), kv = hone_edit_int(e, "kv_num_heads", 0);
    hone_edit_drop(e, "q_num_heads");
    hone_edit_drop(e, "kv_num_heads");
    if (q <= 0 || kv <= 0 || n->in.n < 3 || n->out.n < 1 || hone_edit_rank(e, n->in.at[0]) == 4) return;
    for (int k = 0; k < 3; k++) n->in.at[k] = unpack_heads(e, n->in.at[k], k ? kv : q);
    hone_vid y = n->out.at[0], made = y < 0 ? -1 : hone_edit_var(e);
    n->out.at[0] = made;
    hone_draft_place(e);
    if (y >= 0) pack_heads(e, made, y);
}

void hone_canon_rotary(hone_edit *e) {
    hone_draft *n = e->node;
    int64_t heads = hone_edit_int(e, "num_heads", 0);
    hone_edit_drop(e, "num_heads");
    if (heads <= 0 || n->in.n < 1 || n->out.n < 1 || hone_edit_rank(e, n->in.at[0]) == 4) return;
    n->in.at[0] = unpack_heads(e, n->in.at[0], heads);
    hone_vid y = n->out.at[0], made = hone_edit_var(e);
    n->out.at[0] = made;
    hone_draft_place(e);
    pack_heads(e, made, y);
}

/* ---- Resize: only the axes that change, only the inputs that say something ----------------------------- */
/* Scales of exactly 1 go, and `axes` names the rest: an image is resized in two dims, not four. */
static void drop_ones(hone_edit *e, const hone_value *scales) {
    const hone_attr *given = hone_edit_attr(e, "axes");
    int64_t n = hone_value_count(scales), axes[HONE_MAX_RANK];
    double kept[HONE_MAX_RANK] = {0};
    int m = 0;
    if (scales->dtype != HONE_DTYPE_F32 || n > HONE_MAX_RANK ||
        (given && (given->kind != HONE_ATTR_INTS || given->n != n)))
        return;
    for (int k = 0; k < n; k++) {
        kept[m] = hone_value_f64(scales, k);
        axes[m] = given ? given->i[k] : k;
        m += kept[m] != 1;
    }
    if (m == n) return;
    if (m == 0) { /* nothing changes */
        hone_edit_node(e, "Identity", hone_draft_out(e->node, 0), HONE_IN(e->node->in.at[0]), HONE_PLAIN);
        e->node->placed = true;
        return;
    }
    int64_t dim = m;
    hone_value *v;
    if (hone_value_tensor(HONE_DTYPE_F32, &dim, 1, &v)) v = NULL;
    for (int k = 0; v && k < m; k++) ((float *)v->data)[k] = (float)kept[k];
    hone_edit_set_in(e, 2, hone_edit_const(e, v));
    hone_edit_set(e, hone_attr_of_ints(e->im, "axes", axes, m));
}

void hone_canon_resize(hone_edit *e) {
    hone_draft *n = e->node;
    for (int k = 1; k < 4 && k < n->in.n; k++) {
        const hone_value *v = hone_edit_value(e, n->in.at[k]);
        if (v && hone_value_count(v) == 0) n->in.at[k] = -1;
    }
    if (strcmp(hone_edit_text(e, "coordinate_transformation_mode", "half_pixel"), "tf_crop_and_resize") == 0)
        return; /* a region moves every axis */
    if (n->in.n > 1) n->in.at[1] = -1;
    const hone_value *scales = hone_edit_value(e, hone_draft_in(n, 2));
    if (scales && hone_draft_in(n, 3) < 0 && n->out.n == 1) drop_ones(e, scales);
}

/* ---- training steps of several tensors: one node a tensor ---------------------------------------------- */
/* (R, T, all x, all gradients, all states…) → (all new x, all new states…) */
void hone_canon_optimizer(hone_edit *e) {
    hone_draft *n = e->node;
    int kinds = strcmp(n->op, "Adam") == 0 ? 4 : 3, many = (n->in.n - 2) / kinds;
    if (n->in.n < 2 || many < 2 || (n->in.n - 2) % kinds || n->out.n != many * (kinds - 1)) return;
    n->placed = true;
    for (int k = 0; k < many; k++) {
        hone_draft one = {.domain = n->domain, .op = n->op, .name = n->name, .version = n->version};
        bool good = hone_push(&one.in, n->in.at[0]) && hone_push(&one.in, n->in.at[1]);
        for (int j = 0; good && j < kinds; j++) good = hone_push(&one.in, n->in.at[2 + j * many + k]);
        for (int j = 0; good && j < kinds - 1; j++) good = hone_push(&one.out, n->out.at[j * many + k]);
        for (int j = 0; good && j < n->attr.n; j++) good = hone_push(&one.attr, n->attr.at[j]);
        if (good) hone_draft_place(&(hone_edit){e->im, e->g, &one});
        else hone_import_no_memory(e->im);
        hone_draft_free(&one);
    }
}
