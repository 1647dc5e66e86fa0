/* SPDX-License-Identifier: Apache-2.0
   A user's ops from text: what they compute, beside ops of ONNX and fused with them; what is refused, with
   its place; and values of all kinds that go into a model and come out. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hone/hone.h"
#include "onnx_write.h"
#include "rows.h"

static hone_status add(const char *text) { return hone_ops_add("mine", text, strlen(text)); }
static hone_status load(msg graph, const char *domain, hone_model **out) { /* takes the graph */
    msg m = model_of(graph, 17);
    if (domain) sub(&m, 8, opset(domain, 1));
    hone_status s = hone_model_load_memory(m.at, m.n, out);
    free(m.at);
    return s;
}
static hone_value *vector(int n, const float *at) {
    hone_value *v = NULL;
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, (int64_t[]){n}, 1, &v), HONE_OK);
    memcpy(hone_value_data(v), at, sizeof *at * (size_t)n);
    return v;
}
static void run(hone_model *m, int interpret, hone_value *const *in, hone_value **out) {
    hone_session *s = NULL;
    hone_options o;
    hone_options_default(&o);
    o.interpret = interpret;
    assert_int_equal(hone_session_create(m, &o, &s), HONE_OK);
    if (hone_session_run(s, in, out)) fail_msg("%s", hone_error());
    hone_session_free(s);
}

/* ---- what they do ---- */

/* Numbers below the smallest normal one count as zero in sums of products, and only there: not in the steps
   after them, not in the caller. */
static void subnormal(void **state) {
    (void)state;
    enum { N = 16 };
    msg g = {0};
    add_node(&g, node("MatMul", "x w", "p")), add_node(&g, node("Add", "w w", "s"));
    add_input(&g, "x", 1, "16 16"), add_input(&g, "w", 1, "16 16"), add_output(&g, "p"), add_output(&g, "s");
    hone_model *m = NULL;
    if (load(g, NULL, &m)) fail_msg("%s", hone_error());
    hone_value *in[2], *out[2] = {0};
    for (int k = 0; k < 2; k++) {
        assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, (int64_t[]){N, N}, 2, in + k), HONE_OK);
        for (int q = 0; q < N * N; q++) ((float *)hone_value_data(in[k]))[q] = k ? 1e-40f : 1.0f;
    }
    volatile float tiny = 1e-40f, once = 1;
    run(m, 0, in, out);
    assert_true(tiny * once == 1e-40f);
    for (int q = 0; q < N * N; q++) {
        const double p = hone_value_number(out[0], q);
#if defined(__x86_64__) || defined(__aarch64__)
        assert_true(p == 0);
#else
        assert_true(p == 0 || fabs(p - N * 1e-40) < 1e-42);
#endif
        assert_true(hone_value_number(out[1], q) == (double)(2 * tiny));
    }
    for (int k = 0; k < 2; k++) hone_value_free(in[k]), hone_value_free(out[k]);
    hone_model_free(m);
}

static void chain(void **state) { /* between ops of ONNX, with an attribute, fast and interpreted */
    (void)state;
    assert_int_equal(add("op test.ops.Bend 1 (x[I..]: T, y[~I..]: T) -> z[I..]: T\n"
                         "  T: f32 f64\n"
                         "  attr by = 2.0\n"
                         "  z[i..] = select(x[i..] < 0, by * x[i..], x[i..] * y[i..])\n"),
                     HONE_OK);
    msg g = {0};
    add_node(&g, node("Neg", "x", "a"));
    add_node(&g, with(in_domain(node("Bend", "a y", "b"), "test.ops"), attr_float("by", 3)));
    add_node(&g, node("Abs", "b", "z"));
    add_input(&g, "x", 1, "n"), add_input(&g, "y", 1, "1"), add_output(&g, "z");
    hone_model *m = NULL;
    if (load(g, "test.ops", &m)) fail_msg("%s", hone_error());
    hone_value *in[] = {vector(4, (float[]){1, -2, 0.5f, -4}), vector(1, (float[]){10})};
    static const double want[] = {3, 20, 1.5, 40};
    for (int interpret = 0; interpret < 2; interpret++) {
        hone_value *out = NULL;
        run(m, interpret, in, &out);
        for (int k = 0; k < 4; k++) assert_float_equal(hone_value_number(out, k), want[k], 1e-6);
        hone_value_free(out);
    }
    hone_value_free(in[0]), hone_value_free(in[1]);
    hone_model_free(m);
}
static void reductions(void **state) { /* two rows in a text, shared lines, a matrix product of one's own */
    (void)state;
    assert_int_equal(add("# rows of mine\n"
                         "lines norm\n"
                         "  s[n]    = sum(k) sq(x[n, k])\n"
                         "\n"
                         "op test.ops.RowNorm 1 (x[N, K]: f32) -> y[N]: f32\n"
                         "  use norm\n"
                         "  y[n] = sqrt(s[n])\n"
                         "\n"
                         "op test.ops.Product 1 (a[N, K]: f32, b[K, M]: f32) -> y[N, M]: f32\n"
                         "  y[n, m] = sum(k) a[n, k] * b[k, m]\n"),
                     HONE_OK);
    msg g = {0};
    float w[64 * 48];
    for (int k = 0; k < 64 * 48; k++) w[k] = (float)(k % 17) - 8;
    add_node(&g, in_domain(node("Product", "x w", "p"), "test.ops"));
    add_node(&g, in_domain(node("RowNorm", "p", "y"), "test.ops"));
    sub(&g, 5, floats("w", "64 48", w, 64 * 48));
    add_input(&g, "x", 1, "n 64"), add_output(&g, "y");
    hone_model *m = NULL;
    if (load(g, "test.ops", &m)) fail_msg("%s", hone_error());
    hone_value *x = NULL, *y = NULL;
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, (int64_t[]){7, 64}, 2, &x), HONE_OK);
    float *at = hone_value_data(x);
    for (int k = 0; k < 7 * 64; k++) at[k] = (float)(k % 5) - 2;
    run(m, 0, &x, &y);
    for (int n = 0; n < 7; n++) {
        double sum = 0;
        for (int c = 0; c < 48; c++) {
            double p = 0;
            for (int k = 0; k < 64; k++) p += at[n * 64 + k] * w[k * 48 + c];
            sum += p * p;
        }
        assert_float_equal(hone_value_number(y, n), sqrt(sum), 1e-3);
    }
    hone_value_free(x), hone_value_free(y);
    hone_model_free(m);
}

/* ---- what is refused ---- */

static void refused(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
    } cases[] = {
        {"op test.ops.A 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..] +\n", "mine:2:"},
        {"op test.ops.A 1 (x[I..]: f32) -> y[I..]: f32\n\n  y[i..] = x[i..] @ 2\n",
         "mine:3:19: unexpected character '@'"},
        {"op test.ops.A 1 (x[I..] f32) -> y[I..]: f32\n  y[i..] = x[i..]\n", "mine:1:25: "},
        {"op test.ops.A 1 (x[I..]: f32) -> y[I..]: f32\n  need 1, \"open\n",
         "mine:2:11: a string does not end"},
        {"  hello\n", "mine:1:3: a row begins with"},
        {"op test.ops.A 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = "
         "55555555555555555555555555555555555555555555555555555555555555e5\n",
         "mine:2:12: a number is too long"},
        {"op test.ops.A 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = "
         "0.00000000000000000000000000000000000000000000000000000000000000000000001\n",
         "a number is too long"},
        {"", "there is no op in this text"},
        {"lines \n\n \nop test.ops.A 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..]\n",
         "mine:1:6: 'lines' needs a name"},
        {"lines l\n  s[n] = x[n]\n", "there is no op in this text"},
        {"op Mine 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..]\n",
         "mine:1:1: op Mine is in ONNX's domain"},
        {"op ai.onnx.ml.Mine 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..]\n", "is in ONNX's domain"},
        {"op com.microsoft.FusedMatMul 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..]\n",
         "is there already, with other text"},
        {"op test.ops.A 1 (x[I..]: f32) -> y[I..]: f32, z[I..]: f32\n  y[i..] = x[i..]\n",
         "has an output that no line stores"},
        {"op test.ops.Mine 1 (x: any) -> y: any\n  host identity\n", "must be a program"},
        {"op test.ops.A 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..]\nop test.ops.A 2 (x[I..]: f32) -> "
         "y[I..]: f32\n  y[i..] = 2\n",
         "mine:3:1: op test.ops.A is defined twice"},
    };
    parse_rows();
    uint64_t before = hone_alloc_live_bytes();
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(add(cases[k].text), HONE_BAD_INPUT);
        if (!strstr(hone_error(), cases[k].says)) fail_msg("case %zu says: %s", k, hone_error());
    }
    assert_int_equal(hone_ops_add(NULL, "", 0), HONE_BAD_INPUT);
    assert_int_equal(hone_ops_add("mine", NULL, 0), HONE_BAD_INPUT);
    assert_int_equal(hone_alloc_live_bytes(), before); /* nothing stays of a text that was refused */

    const char *good = "op test.ops.Twice 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = 2 * x[i..]\n";
    assert_int_equal(add(good), HONE_OK);
    assert_int_equal(add(good), HONE_OK);
    assert_int_equal(add("op test.ops.Twice 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..] + x[i..]\n"),
                     HONE_BAD_INPUT);
    /* one wrong row, and the good one before it is not added either */
    assert_int_equal(add("op test.ops.New 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..]\nop "
                         "test.ops.Twice 1 (x[I..]: f32) -> y[I..]: f32\n"
                         "  y[i..] = 0\n"),
                     HONE_BAD_INPUT);
    msg g = {0};
    add_node(&g, in_domain(node("New", "x", "y"), "test.ops"));
    add_input(&g, "x", 1, "n"), add_output(&g, "y");
    hone_model *m = NULL;
    assert_int_equal(load(g, "test.ops", &m), HONE_NOT_SUPPORTED);
    assert_non_null(strstr(hone_error(), "unknown op"));
}
/* names are looked up when a model uses the op: the message has node and row */
static void wrong_use(void **state) {
    (void)state;
    assert_int_equal(add("op test.ops.Lost 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..] * nowhere\n"),
                     HONE_OK);
    msg g = {0};
    msg n = in_domain(node("Lost", "x", "y"), "test.ops");
    text(&n, 3, "here");
    add_node(&g, n);
    add_input(&g, "x", 1, "n"), add_output(&g, "y");
    hone_model *m = NULL;
    assert_int_not_equal(load(g, "test.ops", &m), HONE_OK);
    if (!strstr(hone_error(), "here") || !strstr(hone_error(), "nowhere") || !strstr(hone_error(), "line 2"))
        fail_msg("%s", hone_error());
    assert_null(m);
}
/* groups of other ranks: what is not there was read; and a rule of the row speaks first */
static void too_far(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *says;
    } cases[] = {
        {"Far",
         "op test.ops.Far 1 (x[X..]: f32) -> y[O..]: f32\n  rank O.. = 3\n  O.. = X..\n  y[o..] = 0.0\n",
         "'x' has no dim 1 of Far"},
        {"Farther",
         "op test.ops.Farther 1 (x[X.., C]: f32) -> y[O..]: f32\n  rank O.. = 2\n  O.. = X..\n  y[o..] = "
         "0.0\n",
         "'x' has no dim 0 of"},
        {"Rule",
         "op test.ops.Rule 1 (x[X..]: f32) -> y[O..]: f32\n  rank O.. = 3\n  need rank(X..) == 3, \"x has "
         "three axes\"\n  O.. = X..\n  "
         "y[o..] = 0.0\n",
         "x has three axes"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        assert_int_equal(add(cases[k].text), HONE_OK);
        msg g = {0};
        add_node(&g, in_domain(node(cases[k].name, "x", "y"), "test.ops"));
        add_input(&g, "x", 1, "5"), add_output(&g, "y");
        hone_model *m = NULL;
        assert_int_not_equal(load(g, "test.ops", &m), HONE_OK);
        if (!strstr(hone_error(), cases[k].says)) fail_msg("%s", hone_error());
        assert_null(m);
    }
}
static void no_memory(void **state) {
    (void)state;
    uint64_t before = hone_alloc_live_bytes();
    int k = 0;
    for (;; k++) {
        hone_alloc_fail_after(k);
        hone_status s = add("lines l\n  t[i..] = x[i..]\nop test.ops.Late 1 (x[I..]: f32) -> y[I..]: f32\n  "
                            "use l\n  y[i..] = t[i..]\n");
        hone_alloc_fail_after(-1);
        if (!s) break;
        assert_int_equal(s, HONE_NO_MEMORY);
        assert_int_equal(hone_alloc_live_bytes(), before);
    }
    assert_true(k > 3);
}

/* ---- all kinds of value, through models ---- */

static void maps(void **state) { /* a map goes in (DictVectorizer), maps come out (ZipMap) */
    (void)state;
    msg elem = {0}, tensor = {0}, map = {0}, type = {0}, in = {0}, vocabulary = attr("string_vocabulary", 8),
        labels;
    number(&elem, 1, 1); /* map(string, tensor(float)) */
    sub(&tensor, 1, elem);
    number(&map, 1, 8);
    sub(&map, 2, tensor);
    sub(&type, 5, map);
    text(&in, 1, "x");
    sub(&in, 2, type);
    text(&vocabulary, 9, "red"), text(&vocabulary, 9, "green"), text(&vocabulary, 9, "blue");
    labels = attr_ints("classlabels_int64s", "5 6 7");
    msg g = {0};
    add_node(&g, with(in_domain(node("DictVectorizer", "x", "v"), "ai.onnx.ml"), vocabulary));
    add_node(&g, with(in_domain(node("ZipMap", "v", "y"), "ai.onnx.ml"), labels));
    sub(&g, 11, in);
    add_output(&g, "v");
    msg out_type = {0}, out_info = {0}, seq = {0}, out_map = {0}, out_tensor = {0}, out_elem = {0},
        inner = {0};
    number(&out_elem, 1, 1);
    sub(&out_tensor, 1, out_elem);
    number(&out_map, 1, 7);
    sub(&out_map, 2, out_tensor);
    sub(&inner, 5, out_map);
    sub(&seq, 1, inner);
    sub(&out_type, 4, seq);
    text(&out_info, 1, "y");
    sub(&out_info, 2, out_type);
    sub(&g, 12, out_info);
    hone_model *m = NULL;
    if (load(g, "ai.onnx.ml", &m)) fail_msg("%s", hone_error());
    assert_int_equal(hone_model_input(m, 0)->kind, HONE_VALUE_MAP);
    assert_null(hone_model_input(m, 1));
    hone_value *keys = NULL, *values = vector(2, (float[]){1.5f, 2.5f}), *x = NULL, *out[2] = {0};
    assert_int_equal(hone_tensor_create(HONE_DTYPE_STRING, (int64_t[]){2}, 1, &keys), HONE_OK);
    assert_int_equal(hone_value_set_text(keys, 0, "blue", 4), HONE_OK);
    assert_int_equal(hone_value_set_text(keys, 1, "red", 3), HONE_OK);
    assert_int_equal(hone_map_create(keys, values, &x), HONE_OK);
    run(m, 0, &x, out);
    assert_float_equal(hone_value_number(out[0], 0), 2.5, 0);
    assert_float_equal(hone_value_number(out[0], 1), 0, 0);
    assert_float_equal(hone_value_number(out[0], 2), 1.5, 0);
    assert_int_equal(hone_value_kind_of(out[1]), HONE_VALUE_SEQUENCE);
    const hone_value *first = hone_value_item(out[1], 0);
    assert_int_equal(hone_value_kind_of(first), HONE_VALUE_MAP);
    assert_float_equal(hone_value_number(hone_value_item(first, 0), 2), 7, 0);
    assert_float_equal(hone_value_number(hone_value_item(first, 1), 2), 1.5, 0);
    hone_session *s = NULL;
    assert_int_equal(hone_session_create(m, NULL, &s), HONE_OK);
    assert_int_equal(hone_session_run(s, &values, out), HONE_BAD_INPUT); /* a tensor is no map */
    assert_non_null(strstr(hone_error(), "'x'"));
    hone_session_free(s);
    hone_value_free(keys), hone_value_free(values), hone_value_free(x), hone_value_free(out[0]),
        hone_value_free(out[1]);
    hone_model_free(m);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(subnormal), cmocka_unit_test(chain),   cmocka_unit_test(reductions),
        cmocka_unit_test(refused),   cmocka_unit_test(too_far), cmocka_unit_test(wrong_use),
        cmocka_unit_test(no_memory), cmocka_unit_test(maps),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
