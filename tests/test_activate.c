/* SPDX-License-Identifier: Apache-2.0
   Activations that stand by themselves, or behind a sum: against the definition, within a few ulp, on every CPU level and any number of threads; NaN, infinities and both
   zeros among the numbers. What lies in no rows is left to tile code. */
#include "twin.h"

static hone_value *odd_input(const hone_graph *g, int k) {
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, 90, -90, 200, -200};
    hone_value *x = twin_input(g, k);
    for (int64_t q = 0; q < hone_value_count(x); q += draw(1, 40)) ((float *)x->data)[q] = odd[draw(0, 9)];
    return x;
}
static char text[1024];
static const struct {
    const char *op, *how;
} acts[] = {{"Sigmoid", ""},   {"Tanh", ""},        {"Gelu", ""},  {"Gelu", " {approximate: \"tanh\"}"},
            {"HardSwish", ""}, {"HardSigmoid", ""}, {"Swish", ""}, {"LeakyRelu", ""}};
static void forms(void **state) {
    (void)state;
    static const char *const form[] = {
        "graph g (x: f32[%d, %d]) -> y { y = %s(x)%s; }",
        "graph g (x: f32[%d, %d], b: f32[%d]) -> y { s = Add(x, b); y = %s(s)%s; }",     /* a bias a column */
        "graph g (x: f32[%d, %d], b: f32[%d, 1]) -> y { s = Add(x, b); y = %s(s)%s; }",  /* a row */
        "graph g (x: f32[%d, %d], b: f32[%d, %d]) -> y { s = Add(b, x); y = %s(s)%s; }", /* an element */
    };
    EACH_LEVEL for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) for (int f = 0; f < 4; f++) {
        const int m = draw(2, 40), n = draw(64, 300);
        const char *op = acts[a].op, *how = acts[a].how;
        if (f == 0) snprintf(text, sizeof text, form[f], m, n, op, how);
        else if (f == 3) snprintf(text, sizeof text, form[f], m, n, m, n, op, how);
        else snprintf(text, sizeof text, form[f], m, n, f == 1 ? n : m, op, how);
        if (!twin_check(text, odd_input, 1e-6, 2e-6, "rows")) fail_msg("no rows in\n%s", text);
    }
}
static void left_alone(void **state) { /* turned around, or a few numbers */
    (void)state;
    snprintf(text, sizeof text, "graph g (x: f32[7, 5]) -> y { y = Sigmoid(x); }");
    assert_int_equal(twin_check(text, odd_input, 1e-6, 2e-6, "rows"), 0);
    snprintf(text, sizeof text, "graph g (x: f32[70, 90], z: f32[90, 70]) -> y { t = Transpose(x); s = Add(t, z); y = Tanh(s); }");
    assert_int_equal(twin_check(text, odd_input, 1e-6, 2e-6, "rows"), 0);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(left_alone)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
