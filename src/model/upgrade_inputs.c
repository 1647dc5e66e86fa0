/* SPDX-License-Identifier: Apache-2.0
   upgrade: ops whose attributes became inputs. */
#include <string.h>

#include "model/upgrade.h"

/* Attribute `name`, a list of integers, becomes constant input k; absent: nothing. */
static bool ints_to_input(hone_edit *e, const char *name, int k) {
    const hone_attr *a = hone_edit_attr(e, name);
    if (!a) return false;
    if (a->kind != HONE_ATTR_INTS && a->kind != HONE_ATTR_INT && a->n) {
        hone_edit_problem(e, HONE_BAD_INPUT, "attribute '%s' must be integers", name);
        return false;
    }
    hone_edit_set_in(e, k, hone_edit_i64s(e, a->i, a->i ? a->n : 0));
    hone_edit_drop(e, name);
    return true;
}

void hone_up_axes(hone_edit *e) { ints_to_input(e, "axes", 1); }
void hone_up_topk(hone_edit *e) { ints_to_input(e, "k", 1); }
void hone_up_reshape(hone_edit *e) { ints_to_input(e, "shape", 1); }

void hone_up_clip(hone_edit *e) {
    static const char *const bound[] = {"min", "max"};
    for (int k = 0; k < 2; k++) {
        const hone_attr *a = hone_edit_attr(e, bound[k]);
        if (!a) continue;
        hone_edit_set_in(e, k + 1,
                         hone_edit_like(e, hone_edit_float(e, bound[k], 0), hone_draft_in(e->node, 0)));
        hone_edit_drop(e, bound[k]);
    }
}

/* At inference the ratio means nothing, and every old form is at inference here: `training_mode` stays
   absent. A mask had the type of the data. */
void hone_up_dropout(hone_edit *e) {
    hone_draft *n = e->node;
    hone_vid mask = n->version < 10 ? hone_draft_out(n, 1) : -1;
    hone_edit_drop(e, "ratio");
    hone_edit_drop(e, "is_test");
    n->version = HONE_NEWEST;
    if (mask < 0) return;
    n->out.at[1] = hone_edit_var(e);
    hone_vid truth = n->out.at[1], data = hone_draft_in(n, 0);
    hone_draft_place(e);
    hone_edit_node(e, "CastLike", mask, HONE_IN(truth, data), HONE_PLAIN);
}

void hone_up_pad(hone_edit *e) {
    if (!ints_to_input(e, "pads", 1)) ints_to_input(e, "paddings", 1);
    double value = hone_edit_float(e, "value", 0);
    if (value != 0) hone_edit_set_in(e, 2, hone_edit_like(e, value, hone_draft_in(e->node, 0)));
    hone_edit_drop(e, "value");
}

void hone_up_slice(hone_edit *e) {
    ints_to_input(e, "starts", 1);
    ints_to_input(e, "ends", 2);
    ints_to_input(e, "axes", 3);
}

void hone_up_split(hone_edit *e) { ints_to_input(e, "split", 1); }

/* (input, tiles, axis), both scalars: repeats are 1 but at the axis. OneHot says just that, also where they
   are not constants. */
void hone_up_tile(hone_edit *e) {
    hone_draft *n = e->node;
    if (n->in.n != 3) return; /* written in the form of version 6, as many files are */
    hone_vid one = hone_edit_i64s(e, &(int64_t){1}, 1), flat = hone_edit_i64s(e, &(int64_t){-1}, 1);
    hone_attr i64 = hone_attr_of_int(e->im, "to", HONE_DTYPE_I64);
    hone_vid tiles = hone_edit_node(
        e, "Cast", -1, HONE_IN(hone_edit_node(e, "Reshape", -1, HONE_IN(n->in.at[1], flat), HONE_PLAIN)),
        HONE_WITH(i64));
    hone_vid axis = hone_edit_node(
        e, "Cast", -1, HONE_IN(hone_edit_node(e, "Reshape", -1, HONE_IN(n->in.at[2], flat), HONE_PLAIN)),
        HONE_WITH(i64));
    hone_vid rank = hone_edit_node(
        e, "Size", -1, HONE_IN(hone_edit_node(e, "Shape", -1, HONE_IN(n->in.at[0]), HONE_PLAIN)), HONE_PLAIN);
    hone_vid pair =
        hone_edit_node(e, "Concat", -1, HONE_IN(one, tiles), HONE_WITH(hone_attr_of_int(e->im, "axis", 0)));
    n->in.at[1] = hone_edit_node(
        e, "Reshape", -1,
        HONE_IN(hone_edit_node(e, "OneHot", -1, HONE_IN(axis, rank, pair), HONE_PLAIN), flat), HONE_PLAIN);
    n->in.n = 2;
}

static hone_vid scales_of(hone_edit *e, const double *scale, int n) {
    int64_t dim = n;
    hone_value *v;
    if (hone_value_tensor(HONE_DTYPE_F32, &dim, 1, &v)) v = NULL;
    for (int k = 0; v && k < n; k++) ((float *)v->data)[k] = (float)scale[k];
    return hone_edit_const(e, v);
}

/* In nearest mode Resize 10 took the place above where it shrank and the place below where it grew. Shrinking
   axes go first, in a node of their own if others grow. True: what is left shrinks (or nothing does
   either). */
static bool shrinks(hone_edit *e, hone_vid *scales) {
    const hone_value *v = hone_edit_value(e, *scales);
    int64_t n = v && v->dtype == HONE_DTYPE_F32 ? hone_value_count(v) : 0;
    double down[HONE_MAX_RANK], up[HONE_MAX_RANK];
    bool any_down = false, any_up = false;
    if (n > HONE_MAX_RANK) return false;
    for (int k = 0; k < n; k++) {
        double s = hone_value_f64(v, k);
        any_down |= s<1, any_up |= s> 1;
        down[k] = s < 1 ? s : 1, up[k] = s < 1 ? 1 : s;
    }
    if (!any_down || !any_up) return any_down;
    hone_attr how[] = {hone_attr_of_text(e->im, "mode", "nearest"),
                       hone_attr_of_text(e->im, "coordinate_transformation_mode", "asymmetric"),
                       hone_attr_of_text(e->im, "nearest_mode", "ceil")};
    e->node->in.at[0] =
        hone_edit_node(e, "Resize", -1, HONE_IN(e->node->in.at[0], -1, scales_of(e, down, (int)n)), how, 3);
    *scales = scales_of(e, up, (int)n);
    return false;
}

/* Upsample of any version and Resize 10: Resize with the coordinates of that time. */
void hone_up_upsample(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_attr *list = hone_edit_attr(e, "scales");
    hone_vid scales = hone_draft_in(n, 1);
    if (list && list->kind == HONE_ATTR_FLOATS) scales = scales_of(e, list->f, list->n);
    else if (hone_edit_attr(e, "height_scale"))
        scales = scales_of(e,
                           (const double[]){1, 1, hone_edit_float(e, "height_scale", 1),
                                            hone_edit_float(e, "width_scale", 1)},
                           4);
    hone_edit_drop(e, "scales");
    hone_edit_drop(e, "height_scale");
    hone_edit_drop(e, "width_scale");
    const char *mode = hone_edit_text(e, "mode", "nearest");
    bool ceil = strcmp(mode, "nearest") == 0 && n->in.n && shrinks(e, &scales);
    if (strcmp(mode, "bilinear") == 0) hone_edit_set(e, hone_attr_of_text(e->im, "mode", "linear"));
    hone_edit_set(e, hone_attr_of_text(e->im, "coordinate_transformation_mode", "asymmetric"));
    hone_edit_set(e, hone_attr_of_text(e->im, "nearest_mode", ceil ? "ceil" : "floor"));
    hone_edit_set_in(e, 1, -1);
    hone_edit_set_in(e, 2, scales);
    n->op = "Resize";
    n->version = HONE_NEWEST;
}

void hone_up_dft(hone_edit *e) {
    hone_edit_set_in(e, 2, hone_edit_i64(e, hone_edit_int(e, "axis", 1)));
    hone_edit_drop(e, "axis");
}
