/* SPDX-License-Identifier: Apache-2.0
   Products with constant weights computed in bf16, as a session may be asked to: against the definition in f32.

   Numbers that bf16 can hold, inputs and weights, must come out as f32 would have them, within the rounding of sums. Others lose at most 2^-8 of each factor, so
   a sum errs by at most 2^-7 of its terms' magnitudes, which the same graph computes as a second output. What was not asked for does not change. */
#include "twin.h"

static char text[4096];
enum { ROUNDS = SLOW ? 2 : 4 };
static hone_value *input(const hone_graph *g, int k, bool exact) {
    const hone_var *v = g->var.at + g->in.at[k];
    hone_value *x;
    assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, &x), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++) ((float *)x->data)[q] = exact ? (float)draw(-128, 128) / 64.0f : number();
    return x;
}
static hone_value *exact_input(const hone_graph *g, int k) { return input(g, k, true); }
/* Weights of the graph are f32(bf16): exact factors. */
static void check_exact(double depth) {
    twin_precision = HONE_DTYPE_BF16;
    int met = twin_check(text, exact_input, 1e-6 * depth, 1e-5, "contract bf16");
    twin_precision = HONE_DTYPE_NONE;
    if (!met) fail_msg("nothing ran in bf16 in\n%s", text);
}
static void matmul(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int m = draw(1, 50), n = draw(8, 80), k = round ? draw(8, 150) : draw(500, 700), b = draw(1, 2); /* more than goes at once */
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d], r: f32[%d, %d, %d]) -> y, z { wb: bf16[%d, %d] = random(%d, -1, 1); vb: bf16[%d, 40] = "
                 "random(5, -1, 1); c: f32[%d] = random(3, -1, 1); f: f32[40] = random(7, -1, 1); w = Cast(wb) {to: 1}; v = Cast(vb) {to: "
                 "1}; h = MatMul(x, w); i = Add(h, "
                 "c); j = Relu(i); y = Add(j, r); l = MatMul(r, v); o = Add(l, f); z = %s(o); }",
                 b, m, k, b, m, n, k, n, round, n, n, round % 2 ? "Tanh" : "HardSwish");
        check_exact(k + n);
        snprintf(text, sizeof text,
                 "graph g (a: f32[%d, %d], c: f32[%d]) -> y { bb: bf16[%d, %d] = random(5, -1, 1); b = Cast(bb) {to: 1}; y = Gemm(a, b, c) "
                 "{transA: 1, transB: 1, alpha: 0.5, beta: 2.0}; }",
                 k, m, n, n, k);
        check_exact(k);
    }
}
static void pictures(void **state) { /* windows, edges, groups, strides, several pictures, ends of all kinds */
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int g = draw(1, 2), c = g * draw(1, 20), m = g * draw(8, 30), kh = draw(1, 4), kw = draw(1, 5), h = draw(5, 11), w = draw(5, 15),
            n = draw(1, 2), dh = draw(1, 2), k = c / g * kh * kw;
        if (k < 8) continue;
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d]) -> y, q { wb: bf16[%d, %d, %d, %d] = random(%d, -1, 1); b: f32[%d] = random(2, -1, 1); "
                 "lo: f32[] = {0}; hi: f32[] = {6}; w = Cast(wb) {to: 1}; v = Conv(x, w, b) {group: %d, strides: [%d, %d], dilations: [%d, "
                 "1], pads: [%d, %d, %d, %d]}; s = Sigmoid(v); y = Mul(v, s); a = Clip(v, lo, hi); q = MaxPool(a) {kernel_shape: [1, 1]}; "
                 "}",
                 n, c, h, w, m, c / g, kh, kw, round + 9, m, g, draw(1, 2), draw(1, 3), dh, draw(0, 2), draw(0, 2), draw(2, 4), draw(0, 3));
        check_exact(k);
        snprintf(
            text, sizeof text, /* between the two it lies channels last, and the signs are numbers that bf16 can hold */
            "graph g (x: f32[1, %d, %d, %d]) -> y { ub: bf16[%d, %d, 1, 1] = random(7, -1, 1); wb: bf16[%d, %d, 3, 3] = random(%d, -1, "
            "1); b: f32[%d] = random(2, -1, 1); u = Cast(ub) {to: 1}; w = Cast(wb) {to: 1}; e = Conv(x, u); f = Sign(e); v = Conv(f, w, "
            "b) {pads: [1, 1, 1, 1]}; a = Add(v, f); r = Relu(a); y = MaxPool(r) {kernel_shape: [2, 2]}; }",
            m, h, w, m, m, m, m, round, m);
        check_exact(9 * m);
    }
}
/* Any numbers: within what rounding both factors allows, and not the numbers of f32. */
static void rounded(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int m = draw(1, 60), n = draw(8, 90), k = draw(8, 300);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d]) -> y, z { w: f32[%d, %d] = random(%d, -1, 1); p = Abs(x); u = Abs(w); y = MatMul(x, w); z = "
                 "MatMul(p, u); }",
                 m, k, k, n, round);
        hone_compiled *c = twin_compile(text);
        hone_value *in[1] = {input(c->graph, 0, false)}, *want[2] = {0}, *before[2] = {0}, *got[2] = {0}, *after[2] = {0};
        twin_run(c, in, 1, true, want, NULL, text);
        assert_int_equal(twin_run(c, in, 1, false, before, "contract bf16", text), 0);
        twin_precision = HONE_DTYPE_BF16;
        assert_int_equal(twin_run(c, in, 1, false, got, "contract bf16", text), 2);
        twin_precision = HONE_DTYPE_NONE;
        assert_int_equal(twin_run(c, in, 1, false, after, "contract bf16", text), 0); /* one model, sessions of both kinds */
        twin_same_bits(before[0], after[0], "f32 before and after bf16", text);
        assert_memory_not_equal(before[0]->data, got[0]->data, before[0]->bytes);
        for (int64_t q = 0; q < hone_value_count(want[0]); q++) {
            const double bound = hone_value_number(want[1], q) / 128 * (1 + 1e-4 * k),
                         d = hone_value_number(got[0], q) - hone_value_number(want[0], q);
            if (!(fabs(d) <= bound)) fail_msg("element %d is %g away, at most %g is allowed in\n%s", (int)q, d, bound, text);
        }
        for (int q = 0; q < 2; q++)
            hone_value_drop(want[q]), hone_value_drop(before[q]), hone_value_drop(got[q]), hone_value_drop(after[q]);
        hone_value_drop(in[0]);
        hone_compiled_destroy(c);
    }
}
static hone_value *special_input(const hone_graph *g, int k) {
    static const float odd[] = {NAN, INFINITY, -INFINITY, -0.0f, 1e-40f, 1e38f};
    hone_value *x = input(g, k, true);
    for (int q = 0; q < 6; q++) ((float *)x->data)[draw(0, (int)hone_value_count(x) - 1)] = odd[q];
    return x;
}
static void special(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int m = draw(3, 60), n = draw(8, 70), k = draw(8, 100);
        snprintf(
            text, sizeof text,
            "graph g (x: f32[%d, %d]) -> y { wb: bf16[%d, %d] = random(%d, -1, 1); w = Cast(wb) {to: 1}; h = MatMul(x, w); y = Neg(h); }",
            m, k, k, n, round);
        twin_precision = HONE_DTYPE_BF16;
        twin_check(text, special_input, 1e-6 * k, 0.01, NULL); /* 1e38 is no bf16: that far off where it is */
        twin_precision = HONE_DTYPE_NONE;
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(matmul), cmocka_unit_test(pictures), cmocka_unit_test(rounded),
                                       cmocka_unit_test(special)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
