/* SPDX-License-Identifier: Apache-2.0
   Functions of one byte, looked up: the kernel against plain loops, steps and what follows integer products
   against the definition, to the bit, where bytes lie in one piece and where they do not. */
#include "twin.h"

#include "kernels/table.h"

static char text[8192];
enum { ROUNDS = SLOW ? 2 : 5 };
static void kernel(void **state) {
    (void)state;
    uint8_t table[256];
    float floats[256];
    for (int k = 0; k < 256; k++) table[k] = (uint8_t)draw(0, 255), floats[k] = number();
    for (int n = 0; n < 400; n += n < 140 ? 1 : draw(1, 40)) {
        uint8_t *x = malloc((size_t)n + 1), *y = malloc((size_t)n + 1);
        float *z = malloc(sizeof *z * (size_t)(n + 1));
        assert_true(x && y && z);
        for (int k = 0; k < n; k++) x[k] = (uint8_t)(n < 300 ? draw(0, 255) : k);
        y[n] = 77, z[n] = 77;
        hone_table_bytes(table, x, y, n), hone_table_floats(floats, x, z, n);
        for (int k = 0; k < n; k++) assert_true(y[k] == table[x[k]] && z[k] == floats[x[k]]);
        hone_table_bytes(table, x, x, n);
        for (int k = 0; k < n; k++) assert_int_equal(x[k], y[k]);
        assert_true(y[n] == 77 && z[n] == 77);
        free(x), free(y), free(z);
    }
}
static const char *byte(int *zero) {
    const bool is_signed = draw(0, 1);
    *zero = draw(0, 2)   ? draw(is_signed ? -128 : 0, is_signed ? 127 : 255)
            : draw(0, 1) ? is_signed ? -128 : 0
            : is_signed  ? 127
                         : 255;
    return is_signed ? "i8" : "u8";
}
/* What stands between: each makes v of u. */
static const char *const chains[] = {
    "v = HardSwish(u); ",
    "v = Sigmoid(u); ",
    "v = LeakyRelu(u) {alpha: 0.3}; ",
    "a = HardSigmoid(u); v = Mul(u, a); ",
    "a = Erf(u); b = Add(a, one); c = Mul(u, b); v = Mul(c, half); ",
    "v = Clip(u, half, one); ",
    "q = QuantizeLinear(u, qs, qz); a = DequantizeLinear(q, qs, qz); v = Tanh(a); ",
};
static void steps(void **state) {
    (void)state;
    int met = 0;
    EACH_LEVEL for (int round = 0; round < 3 * ROUNDS; round++) {
        int xz, yz, qz;
        const char *tx = byte(&xz), *ty = byte(&yz), *tq = byte(&qz);
        const bool floats = round % 3 == 0, moved = round % 3 == 1;
        snprintf(text, sizeof text,
                 "graph g (x: %s[%d, %d, %d]) -> y { one: f32[] = {1}; half: f32[] = {0.5}; qs: f32[] = "
                 "{0.03}; qz: %s[] = {%d}; xs: f32[] = "
                 "{%g}; xz: %s[] = {%d}; ys: f32[] = {0.0173}; yz: %s[] = {%d}; %s u = DequantizeLinear(%s, "
                 "xs, xz); %s %s }",
                 tx, draw(1, 3), draw(1, 40), draw(1, 80), tq, qz, 0.001 * draw(1, 90), tx, xz, ty, yz,
                 moved ? "t = Transpose(x) {perm: [1, 0, 2]}; " : "", moved ? "t" : "x", chains[draw(0, 6)],
                 floats ? "y = Neg(v); " : "y = QuantizeLinear(v, ys, yz); ");
        met += twin_check(text, twin_input, 0, 0, "table");
    }
    assert_true(met > ROUNDS); /* some are too small */
}
/* Behind a convolution, a depthwise one and a product with a matrix; in bytes, and in floats. */
static void ends(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < 4 * ROUNDS; round++) {
        int xz, yz, cz;
        const char *tx = byte(&xz), *ty = byte(&yz), *tc = byte(&cz);
        const int c = draw(1, 40), m = round % 4 == 1 ? c : draw(1, 90), k = draw(1, 3),
                  wz = draw(0, 2) ? 0 : draw(-9, 9);
        const bool plain = round % 4 == 2;
        char shape[64], weights[64], sum[256];
        if (plain) {
            snprintf(shape, sizeof shape, "%d, %d", draw(1, 40), c),
                snprintf(weights, sizeof weights, "%d, %d", c, m);
            snprintf(sum, sizeof sum, "s = QLinearMatMul(x, xs, xz, w, ws, wz, cs, cz); ");
        } else {
            snprintf(shape, sizeof shape, "%d, %d, %d, %d", draw(1, 2), c, draw(4, 12), draw(4, 12));
            snprintf(weights, sizeof weights, "%d, %d, %d, %d", m, round % 4 == 1 ? 1 : c, k, k);
            snprintf(sum, sizeof sum,
                     "s = QLinearConv(x, xs, xz, w, ws, wz, cs, cz, bias) {group: %d, pads: [1, 1, 1, 1]}; ",
                     round % 4 == 1 ? c : 1);
        }
        snprintf(text, sizeof text,
                 "graph g (x: %s[%s]) -> y { one: f32[] = {1}; half: f32[] = {0.5}; qs: f32[] = {0.03}; qz: "
                 "u8[] = {100}; xs: f32[] = {0.02}; "
                 "xz: %s[] = {%d}; w: i8[%s] = random(%d, -127, 127); ws: f32[] = {0.01}; wz: i8[] = {%d}; "
                 "bias: i32[%d] = random(5, -900, "
                 "900); "
                 "cs: f32[] = {%g}; cz: %s[] = {%d}; ys: f32[] = {0.0173}; yz: %s[] = {%d}; %s u = "
                 "DequantizeLinear(s, cs, cz); %s %s }",
                 tx, shape, tx, xz, weights, draw(1, 99), wz, m, 0.02 * sqrt(1.0 * c * k * k), tc, cz, ty, yz,
                 sum, chains[draw(0, 6)], draw(0, 2) ? "y = QuantizeLinear(v, ys, yz); " : "y = Neg(v); ");
        /* activations of floats may be off by some ulp where they are no table */
        twin_check(text, twin_input, 2e-6, 2e-6, NULL);
    }
}
/* a convolution and a depthwise one, with what follows them, are a step each */
static void met(void **state) {
    (void)state;
    static const char *const net = "graph g (x: u8[1, 24, 9, 9]) -> y { s: f32[] = {0.02}; z: u8[] = {114}; "
                                   "t: f32[] = {0.05}; aw: i8[40, 24, 1, 1] = random(1, -127, "
                                   "127); ws: f32[] = {0.003}; wz: i8[] = {0}; ab: i32[40] = random(2, -900, "
                                   "900); dw: i8[40, 1, 3, 3] = random(3, -127, 127); "
                                   "a = QLinearConv(x, s, z, aw, ws, wz, t, z, ab); b = DequantizeLinear(a, "
                                   "t, z); c = HardSwish(b); d = QuantizeLinear(c, t, z); "
                                   "e = QLinearConv(d, t, z, dw, ws, wz, t, z, ab) {group: 40, pads: [1, 1, "
                                   "1, 1]}; f = DequantizeLinear(e, t, z); h = Sigmoid(f); "
                                   "i = QuantizeLinear(h, s, z); y = Transpose(i) {perm: [0, 2, 3, 1]}; }";
    EACH_LEVEL {
        assert_int_equal(twin_check(net, twin_input, 0, 0, "contract int8"), 1);
        assert_int_equal(twin_check(net, twin_input, 0, 0, "depthwise int8"), 1);
        assert_int_equal(twin_check(net, twin_input, 0, 0, "table"), 0);
        assert_int_equal(twin_check(net, twin_input, 0, 0, "tile"), 0);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernel), cmocka_unit_test(steps),
                                       cmocka_unit_test(ends), cmocka_unit_test(met)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
