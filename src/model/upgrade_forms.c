/* SPDX-License-Identifier: Apache-2.0
   upgrade: ops that kept their name and changed their meaning. */
#include <ctype.h>
#include <string.h>

#include "model/upgrade.h"

/* ---- broadcasting before version 7 --------------------------------------------------------------------- */
static hone_vid rank_var(hone_edit *e, hone_vid x) { /* [rank] */
    hone_vid shape = hone_edit_node(e, "Shape", -1, HONE_IN(x), HONE_PLAIN);
    return hone_edit_node(e, "Shape", -1, HONE_IN(shape), HONE_PLAIN);
}

/* b with dims of 1 behind, so that its first dim meets a's dim `axis` under numpy's rule. */
static hone_vid line_up(hone_edit *e, hone_vid a, hone_vid b, int64_t axis) {
    int ra = hone_edit_rank(e, a), rb = hone_edit_rank(e, b);
    if (rb == 0) return b;
    if (ra >= 0 && rb >= 0) {
        int64_t ones = ra - rb - (axis < 0 ? axis + ra : axis), axes[HONE_MAX_RANK];
        if (ones <= 0 || ones > HONE_MAX_RANK) return b;
        for (int k = 0; k < ones; k++) axes[k] = rb + k;
        return hone_edit_node(e, "Unsqueeze", -1, HONE_IN(b, hone_edit_i64s(e, axes, (int)ones)), HONE_PLAIN);
    }
    /* A rank that only the run knows: as many ones as a - b - axis says. */
    hone_vid n = hone_edit_node(e, "Sub", -1, HONE_IN(rank_var(e, a), rank_var(e, b)), HONE_PLAIN);
    if (axis >= 0) n = hone_edit_node(e, "Sub", -1, HONE_IN(n, hone_edit_i64s(e, &axis, 1)), HONE_PLAIN);
    else
        n = hone_edit_node(e, "Sub", -1, HONE_IN(hone_edit_i64s(e, &(int64_t){-axis}, 1), rank_var(e, b)),
                           HONE_PLAIN);
    hone_vid ones =
        hone_edit_node(e, "Expand", -1, HONE_IN(hone_edit_i64s(e, &(int64_t){1}, 1), n), HONE_PLAIN);
    hone_vid shape = hone_edit_node(e, "Shape", -1, HONE_IN(b), HONE_PLAIN);
    shape =
        hone_edit_node(e, "Concat", -1, HONE_IN(shape, ones), HONE_WITH(hone_attr_of_int(e->im, "axis", 0)));
    return hone_edit_node(e, "Reshape", -1, HONE_IN(b, shape), HONE_PLAIN);
}

void hone_up_broadcast(hone_edit *e) {
    hone_draft *n = e->node;
    bool given = hone_edit_attr(e, "axis") != NULL;
    int64_t axis = hone_edit_int(e, "axis", 0);
    const hone_value *b = hone_edit_value(e, hone_draft_in(n, 1));
    bool single = b && hone_value_count(b) == 1;
    if (hone_edit_int(e, "broadcast", 0) && given && !single && n->in.n == 2)
        n->in.at[1] = line_up(e, n->in.at[0], n->in.at[1], axis);
    hone_edit_drop(e, "broadcast");
    hone_edit_drop(e, "axis");
}

/* A slope a channel stood at axis 1. */
void hone_up_prelu(hone_edit *e) {
    hone_draft *n = e->node;
    const hone_value *slope = hone_edit_value(e, hone_draft_in(n, 1));
    if (n->in.n != 2 || (slope && hone_value_count(slope) == 1) || hone_edit_rank(e, n->in.at[1]) != 1)
        return;
    n->in.at[1] = line_up(e, n->in.at[0], n->in.at[1], 1);
}

void hone_up_gemm(hone_edit *e) { hone_edit_drop(e, "broadcast"); }

/* ---- small ones ---------------------------------------------------------------------------------------- */
/* The type was a word: "FLOAT". */
void hone_up_cast(hone_edit *e) {
    const hone_attr *a = hone_edit_attr(e, "to");
    char word[24] = "";
    if (!a || a->kind != HONE_ATTR_STRING) return;
    for (int k = 0; k < 23 && k < a->s[0].bytes; k++) word[k] = (char)tolower((unsigned char)a->s[0].text[k]);
    hone_dtype t = hone_dtype_named(word, strlen(word));
    if (t == HONE_DTYPE_NONE) hone_edit_problem(e, HONE_BAD_INPUT, "casts to the unknown type '%s'", word);
    else hone_edit_set(e, hone_attr_of_int(e->im, "to", t));
}

static void default_float(hone_edit *e, const char *name, double v) {
    hone_attr a = hone_attr_of_floats(e->im, name, &v, 1);
    a.kind = HONE_ATTR_FLOAT;
    if (!hone_edit_attr(e, name)) hone_edit_set(e, a);
}

void hone_up_selu(hone_edit *e) {
    default_float(e, "alpha", 1.6732);
    default_float(e, "gamma", 1.0507);
}

void hone_up_concat(hone_edit *e) {
    if (!hone_edit_attr(e, "axis")) hone_edit_set(e, hone_attr_of_int(e->im, "axis", 1));
}

void hone_up_scatter(hone_edit *e) { e->node->op = "ScatterElements"; }

/* The norm's order was a float. */
void hone_up_lp_pool(hone_edit *e) {
    double p = hone_edit_float(e, "p", 2);
    if (!(p >= 1 && p < 1e6) || p != (double)(int)p)
        hone_edit_problem(e, HONE_NOT_SUPPORTED, "a norm of order %g", p);
    else if (hone_edit_attr(e, "p")) hone_edit_set(e, hone_attr_of_int(e->im, "p", (int64_t)p));
}

/* `output_sequence` said whether Y is wanted; now the presence of the output says it. */
void hone_up_recurrent(hone_edit *e) { hone_edit_drop(e, "output_sequence"); }

void hone_up_roi_align(hone_edit *e) {
    if (!hone_edit_attr(e, "coordinate_transformation_mode"))
        hone_edit_set(e, hone_attr_of_text(e->im, "coordinate_transformation_mode", "output_half_pixel"));
}

void hone_up_grid_sample(hone_edit *e) {
    const char *mode = hone_edit_text(e, "mode", "bilinear");
    if (strcmp(mode, "bilinear") == 0) hone_edit_set(e, hone_attr_of_text(e->im, "mode", "linear"));
    if (strcmp(mode, "bicubic") == 0) hone_edit_set(e, hone_attr_of_text(e->im, "mode", "cubic"));
}

/* ---- normalization ------------------------------------------------------------------------------------- */
/* spatial = 0: statistics for each place of a sample, so they broadcast over the batch as they are. */
static void normalize_each(hone_edit *e) {
    const hone_draft *n = e->node;
    hone_vid x = n->in.at[0], eps = hone_edit_like(e, hone_edit_float(e, "epsilon", 1e-5), x);
    hone_vid deviation = hone_edit_node(
        e, "Sqrt", -1, HONE_IN(hone_edit_node(e, "Add", -1, HONE_IN(n->in.at[4], eps), HONE_PLAIN)),
        HONE_PLAIN);
    hone_vid y = hone_edit_node(e, "Sub", -1, HONE_IN(x, n->in.at[3]), HONE_PLAIN);
    y = hone_edit_node(e, "Div", -1, HONE_IN(y, deviation), HONE_PLAIN);
    y = hone_edit_node(e, "Mul", -1, HONE_IN(y, n->in.at[1]), HONE_PLAIN);
    hone_edit_node(e, "Add", n->out.at[0], HONE_IN(y, n->in.at[2]), HONE_PLAIN);
    e->node->placed = true;
}

/* Models are run here, not trained: the statistics that a training step gave out are not made. */
void hone_up_batch_norm(hone_edit *e) {
    hone_draft *n = e->node;
    bool each = hone_edit_int(e, "spatial", 1) == 0;
    hone_edit_drop(e, "spatial");
    hone_edit_drop(e, "is_test");
    if (n->out.n > 1) n->out.n = 1;
    if (each && n->in.n == 5 && n->out.n == 1) normalize_each(e);
}

/* Scale and bias were a group's; now they are a channel's: each repeated C / G times. */
void hone_up_group_norm(hone_edit *e) {
    hone_draft *n = e->node;
    int64_t groups = hone_edit_int(e, "num_groups", 1);
    if (n->in.n != 3) return;
    hone_vid g = hone_edit_i64s(e, &groups, 1), one = hone_edit_i64s(e, &(int64_t){1}, 1),
             flat = hone_edit_i64s(e, &(int64_t){-1}, 1);
    hone_vid c =
        hone_edit_node(e, "Shape", -1, HONE_IN(n->in.at[0]),
                       HONE_WITH(hone_attr_of_int(e->im, "start", 1), hone_attr_of_int(e->im, "end", 2)));
    hone_vid each = hone_edit_node(e, "Div", -1, HONE_IN(c, g), HONE_PLAIN);
    hone_vid shape =
        hone_edit_node(e, "Concat", -1, HONE_IN(g, each), HONE_WITH(hone_attr_of_int(e->im, "axis", 0)));
    for (int k = 1; k < 3; k++) {
        hone_vid column = hone_edit_node(e, "Unsqueeze", -1, HONE_IN(n->in.at[k], one), HONE_PLAIN);
        n->in.at[k] = hone_edit_node(
            e, "Reshape", -1,
            HONE_IN(hone_edit_node(e, "Expand", -1, HONE_IN(column, shape), HONE_PLAIN), flat), HONE_PLAIN);
    }
}

/* The input was seen as a matrix: dims before the axis, dims from it on, normalized together. */
void hone_up_softmax(hone_edit *e) {
    hone_draft *n = e->node;
    if (n->in.n != 1 || n->out.n != 1) return;
    hone_vid x = n->in.at[0], y = n->out.at[0];
    int64_t axis = hone_edit_int(e, "axis", 1);
    int rank = hone_edit_rank(e, x);
    hone_edit_set(e, hone_attr_of_int(e->im, "axis", -1));
    n->version = HONE_NEWEST;
    if (axis == -1 || (rank > 0 && axis == rank - 1)) return;
    n->in.at[0] =
        hone_edit_node(e, "Flatten", -1, HONE_IN(x), HONE_WITH(hone_attr_of_int(e->im, "axis", axis)));
    hone_vid flat = n->out.at[0] = hone_edit_var(e);
    hone_draft_place(e);
    hone_edit_node(e, "Reshape", y, HONE_IN(flat, hone_edit_node(e, "Shape", -1, HONE_IN(x), HONE_PLAIN)),
                   HONE_PLAIN);
}

/* ---- Scan 8 -------------------------------------------------------------------------------------------- */
static bool copy_vars(hone_graph *g, int n, hone_vid *first) {
    *first = g->var.n;
    for (int k = 0; k < n; k++) {
        hone_vid v = hone_graph_var(g, NULL);
        if (v < 0 || !hone_push(&g->in, v)) return false;
    }
    return true;
}

/* It ran once a sample of a batch, axis 0 of everything. That is a Scan over the batch, without states,
   around one of today's. */
void hone_up_scan(hone_edit *e) {
    hone_draft *n = e->node,
               inner = {.domain = "", .op = "Scan", .name = n->name, .version = HONE_NEWEST, .n_body = 1};
    if (hone_draft_in(n, 0) >= 0)
        hone_edit_problem(e, HONE_NOT_SUPPORTED,
                          "sequence_lens of Scan 8: export the model with opset 9 or later");
    n->version = HONE_NEWEST;
    if (hone_draft_in(n, 0) >= 0 || n->n_body != 1 || n->in.n < 1) return;
    memmove(n->in.at, n->in.at + 1, (size_t)--n->in.n * sizeof *n->in.at); /* without sequence_lens */
    hone_graph *over = hone_graph_body(e->g, "batch"), *body = n->body[0];
    hone_vid formal = 0, captured = 0;
    bool good = over && copy_vars(over, n->in.n, &formal) && copy_vars(over, n->capture.n, &captured);
    for (int k = 0; good && k < n->in.n; k++) good = hone_push(&inner.in, formal + k);
    for (int k = 0; good && k < n->capture.n; k++) good = hone_push(&inner.capture, captured + k);
    for (int k = 0; good && k < n->out.n; k++) {
        hone_vid v = hone_graph_var(over, NULL);
        good = v >= 0 && hone_push(&inner.out, v) && hone_push(&over->out, v);
    }
    if (!good) {
        hone_import_no_memory(e->im);
        hone_draft_free(&inner);
        return;
    }
    over->n_formal = n->in.n;
    body->outer = over;
    inner.body[0] = body;
    n->body[0] = over;
    hone_edit in = {e->im, over, &inner};
    const hone_attr *directions = hone_edit_attr(e, "directions");
    hone_edit_set(&in, (hone_attr){.name = "body", .kind = HONE_ATTR_BODY, .n = 1, .body = 0});
    hone_edit_set(&in, hone_attr_of_int(e->im, "num_scan_inputs", hone_edit_int(e, "num_scan_inputs", 0)));
    if (directions && directions->kind == HONE_ATTR_INTS)
        hone_edit_set(&in, hone_attr_of_ints(e->im, "scan_input_directions", directions->i, directions->n));
    hone_draft_place(&in);
    hone_draft_free(&inner);
    hone_edit_drop(e, "directions");
    hone_edit_set(e, hone_attr_of_int(e->im, "num_scan_inputs", n->in.n));
}

/* ---- ai.onnx.ml ---------------------------------------------------------------------------------------- */
/* One list of words, numbered; the default that is given says which way. */
void hone_up_label_encoder(hone_edit *e) {
    const hone_attr *words = hone_edit_attr(e, "classes_strings");
    if (!words || words->kind != HONE_ATTR_STRINGS) return;
    bool to_words = hone_edit_attr(e, "default_string") ||
                    hone_edit_dtype(e, hone_draft_in(e->node, 0)) == HONE_DTYPE_I64;
    int64_t *number = HONE_NEW_N(e->im->scratch, int64_t, words->n ? words->n : 1);
    for (int k = 0; number && k < words->n; k++) number[k] = k;
    if (!number) {
        hone_import_no_memory(e->im);
        return;
    }
    hone_attr w = *words, i = {.kind = HONE_ATTR_INTS, .n = words->n, .i = number};
    w.name = to_words ? "values_strings" : "keys_strings";
    i.name = to_words ? "keys_int64s" : "values_int64s";
    hone_edit_drop(e, "classes_strings");
    hone_edit_set(e, w);
    hone_edit_set(e, i);
}
