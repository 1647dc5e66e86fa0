/* SPDX-License-Identifier: Apache-2.0
   A factor and an addend a column, and limits: against the definition, on every CPU level and any number of
   threads; NaN, infinities and both zeros among the numbers. What has other forms is left to tile code. */
#include "twin.h"

static hone_value *odd_input(const hone_graph *g, int k) {
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, 1e38f, -1e38f};
    hone_value *x = twin_input(g, k);
    for (int64_t q = 0; k == 0 && q < hone_value_count(x); q += draw(1, 40))
        ((float *)x->data)[q] = odd[draw(0, 7)];
    return x;
}
static char text[1024];
static void forms(void **state) {
    (void)state;
    static const char *const form[] = {
        "graph g (x: f32[%d, %d], s: f32[%d], b: f32[%d]) -> y { t = Mul(x, s); y = Add(t, b); }",
        "graph g (x: f32[%d, %d], s: f32[%d], b: f32[%d]) -> y { t = Mul(s, x); u = Add(b, t); y = Relu(u); "
        "}",
        "graph g (x: f32[3, %d, %d], s: f32[%d], b: f32[1, %d]) -> y { t = Mul(x, s); u = Add(t, b); y = "
        "Relu(u); }",
        /* no addend */
        "graph g (x: f32[%d, %d], s: f32[%d], b: f32[%d]) -> y, z { y = Mul(x, s); z = Relu(b); }",
        "graph g (x: f32[%d, %d], s: f32[%d], b: f32[%d]) -> y, z { t = Mul(s, x); y = Relu(t); z = Relu(b); "
        "}",
    };
    EACH_LEVEL for (int f = 0; f < 5; f++) for (int round = 0; round < 6; round++) {
        const int m = draw(2, 90), n = draw(16, 80);
        snprintf(text, sizeof text, form[f], m, n, n, n);
        if (!twin_check(text, odd_input, 1e-6, 0, "channel affine")) fail_msg("not scaled:\n%s", text);
    }
}
static void strided(void **state) { /* rows of something wider, and what a normalization becomes */
    (void)state;
    EACH_LEVEL {
        const int m = draw(2, 40), n = draw(16, 40);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d], s: f32[%d], b: f32[%d]) -> y { z: i64[1] = {3}; e: i64[1] = {%d}; "
                 "a: i64[1] = {1}; v = Slice(x, "
                 "z, e, a); t = Mul(v, s); u = "
                 "Add(t, b); y = Relu(u); }",
                 m, n + 9, n, n, n + 3);
        if (!twin_check(text, odd_input, 1e-6, 0, "channel affine")) fail_msg("not scaled:\n%s", text);
    }
}
static void left_alone(void **state) { /* a factor a row; few columns; limits that the run brings */
    (void)state;
    snprintf(text, sizeof text,
             "graph g (x: f32[30, 40], s: f32[30, 1], b: f32[40]) -> y { t = Mul(x, s); u = Add(t, b); y = "
             "Relu(u); }");
    assert_int_equal(twin_check(text, odd_input, 1e-6, 0, "channel affine"), 0);
    snprintf(
        text, sizeof text,
        "graph g (x: f32[30, 7], s: f32[7], b: f32[7]) -> y { t = Mul(x, s); u = Add(t, b); y = Relu(u); }");
    assert_int_equal(twin_check(text, odd_input, 1e-6, 0, "channel affine"), 0);
    snprintf(text, sizeof text,
             "graph g (x: f32[30, 40], s: f32[40], b: f32[40], l: f32[], h: f32[]) -> y { t = Mul(x, s); u = "
             "Add(t, b); y = Clip(u, l, h); }");
    assert_int_equal(twin_check(text, odd_input, 1e-6, 0, "channel affine"), 0);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(strided),
                                       cmocka_unit_test(left_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
