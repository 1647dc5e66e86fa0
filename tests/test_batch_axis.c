/* SPDX-License-Identifier: Apache-2.0
   test_batch_axis: windows over several images are the steps of one, so many times. Any number of them must
   come out as each does alone, to the bit, and near the definition. */
#include "twin.h"

static void fill(hone_value *x) {
    for (int64_t q = 0; q < hone_value_count(x); q++) {
        if (x->dtype == HONE_DTYPE_F32) ((float *)x->data)[q] = number();
        else ((uint8_t *)x->data)[q] = (uint8_t)draw(0, 255);
    }
}
/* An input's value for n pictures; where its first dim is no number, that is their number. */
static hone_value *several(const hone_graph *g, int k, int64_t n) {
    const hone_var *v = g->var.at + g->in.at[k];
    int64_t dim[HONE_MAX_RANK];
    hone_value *x;
    for (int d = 0; d < v->rank; d++) dim[d] = hone_dim_is_number(v->dim[d]) ? v->dim[d] : n;
    assert_int_equal(hone_value_tensor(v->dtype, dim, v->rank, &x), HONE_OK);
    fill(x);
    return x;
}
/* number k of n; what has not that many is the same for each */
static hone_value *picture(const hone_value *all, int64_t n, int64_t k) {
    hone_value *x;
    int64_t dim[HONE_MAX_RANK];
    memcpy(dim, all->dim, sizeof *dim * (size_t)all->rank);
    const bool own = dim[0] == n;
    if (own) dim[0] = 1;
    assert_int_equal(hone_value_tensor(all->dtype, dim, all->rank, &x), HONE_OK);
    memcpy(x->data, (const char *)all->data + (own ? (size_t)k * x->bytes : 0), x->bytes);
    return x;
}
/* roundings: of the sum of terms, of f32 or of bf16; the definition's bits where it is 0. */
static void check(const char *text, int roundings) {
    static const int64_t numbers[] = {2, 3, 7, 20};
    hone_compiled *c = twin_compile(text);
    const hone_graph *g = c->graph;
    for (size_t q = 0; q < sizeof numbers / sizeof *numbers; q++) {
        const int64_t n = numbers[q];
        hone_value *in[4] = {0}, *all[4] = {0}, *cut[4] = {0}, *want[4] = {0}, *terms[4] = {0};
        for (int k = 0; k < g->in.n; k++) in[k] = several(g, k, n);
        twin_run(c, in, 1, false, all, NULL, text);
        twin_run(c, in, 5, false, cut, NULL, text);
        if (q == 1) twin_run(c, in, 1, true, want, NULL, text), twin_terms(text, in, g->in.n, terms);
        for (int k = 0; k < g->out.n; k++) {
            twin_same_bits(all[k], cut[k], "one thread and five", text);
            if (q == 1)
                twin_within(all[k], want[k], terms[k], roundings * (twin_precision ? 0x1p-9 : 0x1p-24), text);
        }
        for (int64_t p = 0; p < n; p++) {
            hone_value *one[4] = {0}, *made[4] = {0};
            for (int k = 0; k < g->in.n; k++) one[k] = picture(in[k], n, p);
            twin_run(c, one, 1, false, made, NULL, text);
            for (int k = 0; k < g->out.n; k++) {
                const size_t bytes = made[k]->bytes;
                assert_int_equal(all[k]->bytes, bytes * (size_t)n);
                if (memcmp((const char *)all[k]->data + (size_t)p * bytes, made[k]->data, bytes))
                    fail_msg("picture %lld of %lld is another than alone, in\n%s", (long long)p, (long long)n,
                             text);
                hone_value_drop(made[k]);
            }
            for (int k = 0; k < g->in.n; k++) hone_value_drop(one[k]);
        }
        for (int k = 0; k < g->in.n; k++) hone_value_drop(in[k]);
        for (int k = 0; k < g->out.n; k++)
            hone_value_drop(all[k]), hone_value_drop(cut[k]), hone_value_drop(want[k]),
                hone_value_drop(terms[k]);
    }
    hone_compiled_destroy(c);
}
#define X "graph g (x: f32[N, 8, 9, 11]"
#define W                                                                                                   \
    "w1: f32[16, 8, 1, 1] = random(1, -1, 1); w3: f32[16, 16, 3, 3] = random(2, -1, 1); wd: f32[16, 1, 3, " \
    "3] = random(3, -1, 1); "                                                                               \
    "b: f32[16] = random(4, -1, 1); p = Conv(x, w1, b); a = Relu(p); "
static const char *const nets[] = {
    X ") -> y { " W "q = Conv(a, wd) {pads: [1, 1, 1, 1], group: 16}; r = Clip(q); s = Conv(r, w3) {pads: "
      "[1, 1, 1, 1]}; t = Add(s, a); "
      "y = Relu(t); }",
    X ") -> y { " W "q = Conv(a, w3) {pads: [1, 0, 2, 1], strides: [2, 2]}; y = HardSwish(q); }",
    /* u: something for each picture, and the same for all */
    X ", m: f32[N, 16, 1, 1], k: f32[1, 16, 9, 11]) -> y, u { " W
      "q = Conv(a, w3) {pads: [1, 1, 1, 1]}; s = Mul(q, m); y = Add(s, k); v = Conv(y, wd) {pads: [1, 1, 1, "
      "1], group: 16}; u = Add(v, k); }",
    X ") -> y { " W "q = MaxPool(a) {kernel_shape: [3, 3], strides: [2, 2]}; s = AveragePool(q) "
      "{kernel_shape: [2, 2], pads: [0, 0, 1, 1]}; "
      "y = Conv(s, w3) {pads: [1, 1, 1, 1]}; }",
    X ") -> y { " W "q = Conv(a, w3) {pads: [1, 1, 1, 1]}; c = Concat(a, q) {axis: 1}; w2: f32[4, 32, 3, 3] "
      "= random(7, -1, 1); "
      "y = Conv(c, w2); }",
    "graph g (x: f32[N, 3, 23, 17]) -> y { w: f32[8, 3, 5, 5] = random(1, -1, 1); q = Conv(x, w) {strides: "
    "[2, 2], pads: [2, 2, 2, 2]}; "
    "y = Sigmoid(q); }",
    "graph g (x: f32[N, 4, 40]) -> y { w: f32[6, 4, 3] = random(1, -1, 1); q = Conv(x, w) {pads: [1, 1]}; y "
    "= Tanh(q); }",
    "graph g (x: f32[N, 4, 6, 7]) -> y { w: f32[4, 4, 4, 4] = random(1, -1, 1); q = ConvTranspose(x, w) "
    "{strides: [2, 2], pads: [1, 1, 1, "
    "1]}; "
    "y = Relu(q); }",
};
static void floats(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof nets / sizeof *nets; k++) EACH_LEVEL check(nets[k], 8);
}
/* what follows wants the pictures' number innermost: strides of all else are other ones for each number */
static void turned(void **state) {
    (void)state;
    const char *text = "graph g (x: f32[6, 8, 9, 11]) -> y { w: f32[16, 8, 3, 3] = random(2, -1, 1); q = "
                       "Conv(x, w) {pads: [1, 1, 1, 1]}; "
                       "t = Transpose(q) {perm: [1, 2, 3, 0]}; y = Relu(t); }";
    twin_check(text, twin_input, 1e-4, 1e-4, NULL);
    /* pictures that are joined */
    text =
        "graph g (x: f32[6, 8, 9, 11], z: f32[2, 16, 9, 11]) -> y { w: f32[16, 8, 3, 3] = random(2, -1, 1); "
        "q = Conv(x, w) {pads: [1, 1, 1, 1]}; r = Relu(q); c = Concat(r, z) {axis: 0}; v: f32[3, 16, 3, 3] = "
        "random(3, -1, 1); y = Conv(c, "
        "v); }";
    twin_check(text, twin_input, 1e-4, 1e-4, NULL);
}
static void bytes(void **state) {
    (void)state;
    const char *text = "graph g (x: u8[N, 8, 9, 11]) -> y { w: i8[16, 8, 3, 3] = random(1, -90, 90); d: "
                       "i8[16, 1, 3, 3] = random(2, -90, "
                       "90); s: f32[] = {0.02}; "
                       "t: f32[] = {0.5}; z: u8[] = {128}; o: i8[] = {0}; p = QLinearConv(x, s, z, w, s, o, "
                       "t, z) {pads: [1, 1, 1, 1]}; "
                       "y = QLinearConv(p, s, z, d, s, o, t, z) {pads: [1, 1, 1, 1], group: 16}; }";
    EACH_LEVEL check(text, 0);
}
static void halves(void **state) {
    (void)state;
    twin_precision = HONE_DTYPE_BF16;
    EACH_LEVEL check(nets[0], 2);
    twin_precision = HONE_DTYPE_NONE;
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(floats), cmocka_unit_test(turned),
                                       cmocka_unit_test(bytes), cmocka_unit_test(halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
