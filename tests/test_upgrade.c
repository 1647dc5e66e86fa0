/* SPDX-License-Identifier: Apache-2.0
   Old forms made new: up-converters from version to version, canonical forms, Einsum and FlexAttention
   written out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "onnx_load.h"

static void test_upgrade_broadcast(void **state) {
    (void)state;
    msg w[] = {floats("w", "3", (float[]){1, 2, 3}, 3)};
    hone_graph *r =
        one_node(with(with(node("Add", "x w", "y"), attr_int("broadcast", 1)), attr_int("axis", 1)), 6, 1,
                 "2 3 4 5", w, 1);
    assert_string_equal(ops(r), "Unsqueeze Add");
    assert_ints(input_of(r, r->node.at[0], 1), 2, 1, 2);
    hone_graph_destroy(r);
    msg v[] = {floats("w", "3", (float[]){1, 2, 3}, 3)};
    r = one_node(with(with(node("Mul", "x w", "y"), attr_int("broadcast", 1)), attr_int("axis", 1)), 6, 1,
                 NULL, v, 1); /* a rank that nobody knows yet */
    assert_string_equal(r->node.at[r->node.n - 1]->program->name, "Mul");
    assert_string_equal(r->node.at[r->node.n - 2]->program->name, "Reshape");
    hone_graph_destroy(r);
    msg u[] = {floats("w", "5", (float[]){1, 2, 3, 4, 5}, 5)};
    r = one_node(with(node("Sub", "x w", "y"), attr_int("broadcast", 1)), 6, 1, "2 3 4 5", u, 1);
    assert_string_equal(ops(r), "Sub");
    assert_int_equal(r->node.at[0]->n_attr, 0);
    hone_graph_destroy(r);
    msg s[] = {floats("w", "3", (float[]){1, 2, 3}, 3)};
    r = one_node(node("PRelu", "x w", "y"), 6, 1, "2 3 4 5", s, 1);
    assert_string_equal(ops(r), "Unsqueeze PRelu");
    hone_graph_destroy(r);
}

static void test_upgrade_inputs(void **state) {
    (void)state;
    hone_graph *r = one_node(with(with(node("Clip", "x", "y"), attr_float("min", -1)), attr_float("max", 6)),
                             6, 10, "2", NULL, 0);
    assert_string_equal(ops(r), "Clip");
    assert_int_equal(input_of(r, r->node.at[0], 1)->dtype, HONE_DTYPE_F16);
    assert_true(hone_value_f64(input_of(r, r->node.at[0], 1), 0) == -1 &&
                hone_value_f64(input_of(r, r->node.at[0], 2), 0) == 6);
    hone_graph_destroy(r);

    static const struct {
        const char *op, *attr, *list;
        int version, in, n, first;
    } lists[] = {
        {"Squeeze", "axes", "0", 11, 1, 1, 0},     {"Unsqueeze", "axes", "1 2", 11, 1, 2, 1},
        {"ReduceSum", "axes", "-1", 11, 1, 1, -1}, {"ReduceMean", "axes", "0 1", 13, 1, 2, 0},
        {"ReduceMax", "axes", "1", 17, 1, 1, 1},   {"Reshape", "shape", "4 -1", 1, 1, 2, 4},
        {"Pad", "pads", "1 2 3 4", 2, 1, 4, 1},    {"Pad", "paddings", "1 2 3 4", 1, 1, 4, 1},
        {"Split", "split", "2", 11, 1, 1, 2},
    };
    for (size_t k = 0; k < sizeof lists / sizeof *lists; k++) {
        r = one_node(with(node(lists[k].op, "x", "y"), attr_ints(lists[k].attr, lists[k].list)),
                     lists[k].version, 1, "1 2", NULL, 0);
        assert_string_equal(ops(r), lists[k].op);
        const hone_value *v = input_of(r, r->node.at[0], lists[k].in);
        assert_int_equal(v->dtype, HONE_DTYPE_I64);
        assert_int_equal(hone_value_count(v), lists[k].n);
        assert_int_equal(hone_value_i64(v, 0), lists[k].first);
        hone_graph_destroy(r);
    }
    r = one_node(with(with(with(node("Slice", "x", "y"), attr_ints("starts", "1")), attr_ints("ends", "3")),
                      attr_ints("axes", "1")),
                 9, 1, "4 4", NULL, 0);
    assert_ints(input_of(r, r->node.at[0], 1), 1, 1);
    assert_ints(input_of(r, r->node.at[0], 2), 1, 3);
    assert_ints(input_of(r, r->node.at[0], 3), 1, 1);
    hone_graph_destroy(r);
    r = one_node(with(node("TopK", "x", "y i"), attr_int("k", 3)), 1, 1, "4 4", NULL, 0);
    assert_ints(input_of(r, r->node.at[0], 1), 1, 3);
    hone_graph_destroy(r);
    r = one_node(node("Split", "x", "y z w"), 13, 1, "6", NULL, 0);
    assert_int_equal(hone_attr_int(r->node.at[0]->attr, r->node.at[0]->n_attr, "num_outputs", 0), 3);
    hone_graph_destroy(r);
    r = one_node(with(node("Dropout", "x", "y"), attr_float("ratio", 0.3f)), 10, 1, "4", NULL, 0);
    assert_int_equal(r->node.at[0]->n_in, 1);
    hone_graph_destroy(r);
    r = one_node(with(node("DFT", "x", "y"), attr_int("axis", 1)), 17, 1, "1 4 1", NULL, 0);
    assert_ints(input_of(r, r->node.at[0], 2), 1, 1);
    hone_graph_destroy(r);
    r = one_node(with(node("Cast", "x", "y"), attr_text("to", "INT64")), 1, 1, "4", NULL, 0);
    assert_int_equal(var(r, "y")->dtype, HONE_DTYPE_I64);
    hone_graph_destroy(r);
}

static void test_upgrade_forms(void **state) {
    (void)state;
    hone_graph *r = one_node(node("Softmax", "x", "y"), 11, 1, "2 3", NULL, 0);
    assert_string_equal(ops(r), "Softmax");
    assert_int_equal(hone_attr_int(r->node.at[0]->attr, r->node.at[0]->n_attr, "axis", 0), -1);
    hone_graph_destroy(r);
    r = one_node(with(node("LogSoftmax", "x", "y"), attr_int("axis", 1)), 11, 1, "2 3 4", NULL, 0);
    assert_string_equal(ops(r), "Flatten LogSoftmax Shape Reshape");
    assert_string_equal(r->var.at[r->out.at[0]].name, "y");
    hone_graph_destroy(r);
    r = one_node(node("Softmax", "x", "y"), 13, 1, "2 3 4", NULL, 0);
    assert_string_equal(ops(r), "Softmax");
    assert_int_equal(r->node.at[0]->n_attr, 0);
    hone_graph_destroy(r);
    msg bn[] = {floats("s", "2", (float[]){1, 1}, 2), floats("b", "2", (float[]){1, 1}, 2),
                floats("m", "2", (float[]){1, 1}, 2), floats("v", "2", (float[]){1, 1}, 2)};
    r = one_node(with(node("BatchNormalization", "x s b m v", "y q1 q2 q3 q4"), attr_int("is_test", 1)), 6, 1,
                 "1 2 3", bn, 4);
    assert_string_equal(ops(r), "BatchNormalization");
    assert_int_equal(r->node.at[0]->n_out, 1);
    hone_graph_destroy(r);
    msg up[] = {floats("s", "4", (float[]){1, 1, 2, 2}, 4)};
    r = one_node(node("Upsample", "x s", "y"), 9, 1, "1 2 3 4", up, 1);
    const hone_node *n = r->node.at[0];
    assert_string_equal(ops(r), "Resize");
    assert_int_equal(hone_value_count(input_of(r, n, 2)), 2);
    assert_int_equal(hone_attr_find(n->attr, n->n_attr, "axes")->i[0], 2);
    assert_string_equal(hone_attr_text(n->attr, n->n_attr, "coordinate_transformation_mode", ""),
                        "asymmetric");
    assert_string_equal(hone_attr_text(n->attr, n->n_attr, "nearest_mode", ""), "floor");
    hone_graph_destroy(r);
    msg gn[] = {floats("s", "2", (float[]){1, 2}, 2), floats("b", "2", (float[]){1, 1}, 2)};
    r = one_node(with(node("GroupNormalization", "x s b", "y"), attr_int("num_groups", 2)), 18, 1, "1 4 3",
                 gn, 2);
    assert_string_equal(r->node.at[r->node.n - 1]->program->name, "GroupNormalization");
    assert_int_equal(r->node.n, 10);
    hone_graph_destroy(r);
    msg sc[] = {ints("i", "1", (int64_t[]){0}, 1), floats("u", "1", (float[]){1}, 1)};
    r = one_node(node("Scatter", "x i u", "y"), 9, 1, "4", sc, 2);
    assert_string_equal(ops(r), "ScatterElements");
    hone_graph_destroy(r);
}

static void test_scan_8(void **state) {
    (void)state;
    msg body = {0}, g = {0};
    add_input(&body, "s", 1, "2");
    add_input(&body, "e", 1, "2");
    add_node(&body, node("Add", "s e", "s2"));
    add_node(&body, node("Mul", "s2 k", "o"));
    add_output(&body, "s2");
    add_output(&body, "o");
    add_input(&g, "h", 1, "1 2");
    add_input(&g, "x", 1, "1 3 2");
    add_input(&g, "k", 1, "2");
    add_node(&g, with(with(node("Scan", "- h x", "y z"), attr_sub("body", 5, 6, body)),
                      attr_int("num_scan_inputs", 1)));
    add_output(&g, "y");
    hone_graph *r = load(model_of(g, 8));
    const hone_node *outer = r->node.at[0], *inner = outer->body[0]->node.at[0];
    assert_string_equal(inner->program->name, "Scan");
    assert_int_equal(outer->n_in, 3);
    assert_int_equal(outer->n_capture, 1);
    assert_int_equal(hone_attr_int(outer->attr, outer->n_attr, "num_scan_inputs", 0), 2);
    assert_int_equal(hone_attr_int(inner->attr, inner->n_attr, "num_scan_inputs", 0), 1);
    assert_string_equal(ops(inner->body[0]), "Add Mul");
    hone_graph_destroy(r);
}

static void test_canonical(void **state) {
    (void)state;
    static const struct {
        const char *op, *in, *want;
    } chains[] = {
        {"Sum", "x", "Identity"},          {"Sum", "x x", "Add"},
        {"Sum", "x x x", "Add Add"},       {"Max", "x", "Identity"},
        {"Max", "x x x x", "Max Max Max"}, {"Min", "x x", "Min"},
        {"Mean", "x x x", "Add Add Div"},
    };
    hone_graph *r;
    for (size_t k = 0; k < sizeof chains / sizeof *chains; k++) {
        r = one_node(node(chains[k].op, chains[k].in, "y"), 13, 11, "2", NULL, 0);
        assert_string_equal(ops(r), chains[k].want);
        assert_int_equal(var(r, "y")->producer, r->node.n - 1);
        hone_graph_destroy(r);
    }
    msg none[] = {floats("e", "0", NULL, 0), ints("sz", "4", (int64_t[]){1, 2, 6, 8}, 4)};
    r = one_node(node("Resize", "x e e sz", "y"), 13, 1, "1 2 3 4", none, 2);
    assert_int_equal(r->node.at[0]->in[1], -1);
    assert_int_equal(r->node.at[0]->in[2], -1);
    assert_int_equal(r->node.at[0]->n_in, 4);
    hone_graph_destroy(r);
    r = one_node(node("ConstantOfShape", "x", "y"), 13, 7, "2", NULL, 0);
    assert_true(input_of(r, r->node.at[0], 1)->dtype == HONE_DTYPE_F32 &&
                input_of(r, r->node.at[0], 1)->rank == 0);
    hone_graph_destroy(r);
    r = one_node(
        with(node("ConstantOfShape", "x", "y"), attr_sub("value", 4, 5, ints("", "1", (int64_t[]){7}, 1))),
        13, 7, "2", NULL, 0);
    assert_ints(input_of(r, r->node.at[0], 1), 1, 7);
    assert_int_equal(var(r, "y")->dtype, HONE_DTYPE_I64);
    hone_graph_destroy(r);
    msg w[] = {floats("w", "1 2 1", (float[]){1, 1}, 2), floats("r", "1 2 2", (float[]){1, 1, 1, 1}, 4)};
    r = one_node(with(with(node("RNN", "x w r", "y h"), attr_int("layout", 1)), attr_int("hidden_size", 2)),
                 14, 1, "3 4 1", w, 2);
    assert_string_equal(ops(r), "Transpose RNN Transpose Transpose");
    hone_graph_destroy(r);
    r = one_node(
        with(with(node("Attention", "x x x", "y"), attr_int("q_num_heads", 2)), attr_int("kv_num_heads", 2)),
        23, 1, "1 3 8", NULL, 0);
    assert_string_equal(ops(r),
                        "Reshape Transpose Reshape Transpose Reshape Transpose Attention Transpose Reshape");
    hone_graph_destroy(r);
}

static void test_einsum(void **state) {
    (void)state;
    static const struct {
        const char *equation, *in, *want;
    } cases[] = {
        {"bij,bjk->bik", "x x", "MatMul Identity"},
        {"bij,bkj->bik", "x x", "Transpose MatMul Identity"},
        {"abc->ca", "x", "ReduceSum Transpose Identity"},
        {"bij,bij->", "x x", "Mul ReduceSum Identity"},
        {"...ij,...jk", "x x", "MatMul Identity"},
        {"bii->b", "x", "Transpose Shape Add Reshape Slice ReduceSum Identity"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        hone_graph *r =
            one_node(with(node("Einsum", cases[k].in, "y"), attr_text("equation", cases[k].equation)), 12, 1,
                     "2 3 3", NULL, 0);
        assert_string_equal(ops(r), cases[k].want);
        hone_graph_destroy(r);
    }
    static const char *const wrong[] = {"",        "ij->ij",       "abc->abd", "abc->aa", "abcd",  "a,b->ab",
                                        "ab->ab,", "...abcd->...", "a1c->a",   "abc-",    "abc,->"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        msg g = {0};
        add_input(&g, "x", 1, "2 3 3");
        add_node(&g, with(node("Einsum", "x", "y"), attr_text("equation", wrong[k])));
        refused(model_of(g, 12));
    }
}

static void test_flex_attention(void **state) {
    (void)state;
    msg body = {0}, g = {0};
    add_input(&body, "s", 1, NULL);
    sub(&body, 5, floats("half", "", (float[]){0.5f}, 1));
    add_node(&body, node("Mul", "s half", "t"));
    add_node(&body, node("Add", "t outside", "o"));
    add_output(&body, "o");
    add_input(&g, "q", 1, "1 2 3 4");
    add_input(&g, "outside", 1, "");
    add_node(&g, in_domain(with(node("FlexAttention", "q q q", "y"), attr_sub("score_mod", 5, 6, body)),
                           "ai.onnx.preview"));
    add_output(&g, "y");
    hone_graph *r = load(model_of(g, 26));
    assert_non_null(strstr(ops(r), "MatMul Cast Mul Add Softmax Cast MatMul CastLike"));
    hone_graph_destroy(r);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_upgrade_broadcast), cmocka_unit_test(test_upgrade_inputs),
        cmocka_unit_test(test_upgrade_forms),     cmocka_unit_test(test_scan_8),
        cmocka_unit_test(test_canonical),         cmocka_unit_test(test_einsum),
        cmocka_unit_test(test_flex_attention)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
