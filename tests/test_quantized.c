/* SPDX-License-Identifier: Apache-2.0
   Products of quantized models in the forms that tools write: bytes or floats in, a bias a column, a
   residual, limits, scales one or one a column, rounded to 8 or 16 bits or left in floats. Each against the
   definition, on every CPU level, on odd sizes and extremes of zero points. */
#include "twin.h"

static char text[4096];
enum { ROUNDS = SLOW ? 2 : 5 };
typedef struct {
    /* x: bytes or floats; nodes make y, of type T, from x, w (bytes) or f (floats), and a residual r */
    const char *what, *x, *nodes;
    int quanta; /* that it may differ by: sums of floats are taken in another order */
} form;
/* X: one u8 or i8; W: i8 or u8, a scale a column or one; T: what comes out. D is x in floats, F the weights
   in floats. */
#define D "d = DequantizeLinear(x, xs, xz); "
#define F "f = DequantizeLinear(w, ws, wz) {axis: 1}; "
#define Q(v) "y = QuantizeLinear(" v ", ys, yz); "
static const form forms[] = {
    {"floats, a bias", "f32", "v = MatMul(x, g); u = Add(v, b); " Q("u"), 1},
    {"floats, a bias, limits", "f32", "v = MatMul(x, g); u = Add(b, v); t = Clip(u, lo, hi); " Q("t"), 1},
    {"floats, a bias, a residual", "f32", "v = MatMul(x, g); u = Add(v, b); t = Add(u, r); " Q("t"), 1},
    {"floats, a bias, a residual, Relu", "f32",
     "v = MatMul(x, g); u = Add(v, b); t = Add(r, u); p = Relu(t); " Q("p"), 1},
    {"floats, Gemm", "f32", "v = Gemm(x, h, b) {transB: 1}; " Q("v"), 1},
    {"floats, a bias, quantized and read back", "f32",
     "v = MatMul(x, g); u = Add(v, b); " Q("u") "z = DequantizeLinear(y, ys, yz); ", 1},
    {"floats, a bias, SiLU", "f32", "v = MatMul(x, g); u = Add(v, b); s = Sigmoid(u); t = Mul(u, s); " Q("t"),
     1},
    {"floats, a bias, HardSwish, a factor and a number", "f32",
     "v = MatMul(x, g); u = Add(v, b); s = HardSwish(u); t = Mul(lo, s); p = Add(t, hi); " Q("p"), 1},
    {"floats, a residual, Gelu", "f32", "v = MatMul(x, g); u = Add(v, r); s = Gelu(u); " Q("s"), 1},
    {"pairs, a bias", "byte", D F "v = MatMul(d, f); u = Add(v, b); " Q("u"), 1},
    {"pairs, a bias, Relu", "byte", D F "v = MatMul(d, f); u = Add(v, b); t = Relu(u); " Q("t"), 1},
    {"pairs, a bias, a residual", "byte", D F "v = MatMul(d, f); u = Add(v, b); t = Add(u, r); " Q("t"), 1},
    {"pairs, Gemm", "byte", D F "v = Gemm(d, f, b); " Q("v"), 1},
    {"pairs, a product, then quantized twice", "byte",
     D F
     "v = MatMul(d, f); i = QuantizeLinear(v, qs, qz); j = DequantizeLinear(i, qs, qz); u = Add(j, b); " Q(
         "u"),
     1},
    {"integers, floats after", "byte",
     "v = MatMulInteger(x, w, xz, wz); c = Cast(v) {to: f32}; t = Mul(c, ws); u = Add(t, b); " Q("u"), 0},
    {"integers, floats after, a residual", "byte",
     "v = MatMulInteger(x, w, xz, wz); c = Cast(v) {to: f32}; t = Mul(c, ws); u = Add(t, b); p = Add(u, "
     "r); " Q("p"),
     0},
    {"integers to bytes, then a bias", "byte",
     "v = QLinearMatMul(x, xs, xz, w, ws, wz, qs, qz); j = DequantizeLinear(v, qs, qz); u = Add(j, b); " Q(
         "u"),
     0},
    {"integers to bytes, a bias, a residual, limits", "byte",
     "v = QLinearMatMul(x, xs, xz, w, ws, wz, qs, qz); j = DequantizeLinear(v, qs, qz); u = Add(j, b); t = "
     "Add(u, r); p = Clip(t, lo, "
     "hi); " Q("p"),
     0},
};
static const char *byte(int *zero, bool middle) {
    const bool is_signed = draw(0, 1);
    *zero = middle       ? is_signed ? 0 : 128
            : draw(0, 2) ? draw(is_signed ? -128 : 0, is_signed ? 127 : 255)
            : draw(0, 1) ? is_signed ? -128 : 0
            : is_signed  ? 127
                         : 255;
    return is_signed ? "i8" : "u8";
}
/* What stands before the nodes: constants of every form, of which each uses some. */
static void write_form(const form *f, const char *out, int m, int k, int n) {
    int xz, wz, qz, yz;
    const bool floats = !strcmp(f->x, "f32"), each = draw(0, 1), middle = draw(0, 1);
    const char *tx = byte(&xz, false), *tw = byte(&wz, middle), *tq = byte(&qz, true),
               *ty = byte(&yz, draw(0, 1));
    if (out) ty = out, yz = !strcmp(out, "u16") ? 32768 : draw(-99, 99);
    const double size = (floats ? 1.2 : 100 * 0.02) * 0.8 * sqrt((double)k); /* of a sum, about */
    char many[16] = "";
    if (each) snprintf(many, sizeof many, "%d", n);
    const int room = snprintf(text, sizeof text,
                              "graph g (x: %s[%d, %d], r: f32[%d, %d]) -> y { g: f32[%d, %d] = random(1, -1, "
                              "1); h: f32[%d, %d] = random(1, -1, 1); b: f32[%d] = "
                              "random(2, -2, 2); lo: f32[] = {-1.5}; hi: f32[] = {%g}; xs: f32[] = {0.02}; "
                              "xz: %s[] = {%d}; w: %s[%d, %d] = random(%d, %d, %d); "
                              "ws: f32[%s] = random(4, 0.008, 0.012); wz: %s[%s] = random(5, %d, %d); qs: "
                              "f32[] = {%g}; qz: %s[] = {%d}; ys: f32[] = {%g}; "
                              "yz: %s[] = {%d}; %s}",
                              floats ? "f32" : tx, m, k, m, n, k, n, n, k, n, size, tx, floats ? 0 : xz, tw,
                              k, n, draw(1, 99), tw[0] == 'i' ? -128 : 0, tw[0] == 'i' ? 127 : 255, many, tw,
                              many, each && !middle ? tw[0] == 'i' ? -128 : 0 : wz,
                              each && !middle ? tw[0] == 'i' ? 127 : 255 : wz, size / 40, tq, qz,
                              size / (out ? 9000 : 35), ty, yz, f->nodes);
    assert_true(room < (int)sizeof text);
}
static void products(void **state) {
    (void)state;
    static const char *const sixteen[] = {"u16", "i16"};
    for (size_t q = 0; q < sizeof forms / sizeof *forms; q++)
        EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
            const int m = draw(0, 3) ? draw(1, 70) : 1, k = draw(2, 200), n = draw(1, 150);
            write_form(forms + q, round ? NULL : sixteen[draw(0, 1)], m, k, n);
            twin_check(text, twin_input, round ? forms[q].quanta : 20, 0, NULL);
        }
}
/* A convolution that is rounded, and read as bytes by the next, through what a training's export leaves in
   between. */
static void convolutions(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        const int c = draw(1, 20), o = draw(1, 40), p = draw(1, 30), k = draw(1, 3);
        snprintf(
            text, sizeof text,
            "graph g (x: f32[%d, %d, %d, %d]) -> y, t { w: f32[%d, %d, %d, %d] = random(1, -1, 1); b: "
            "f32[%d] = random(2, -1, 1); "
            "s: f32[] = {%g}; z: u8[] = {%d}; v: f32[%d, %d, 1, 1] = random(3, -1, 1); d: f32[%d] = "
            "random(2, -1, 1); "
            "h = Conv(x, w, b) {pads: [1, 1, 1, 1]}; i = Relu(h); q = QuantizeLinear(i, s, z); "
            "e = DequantizeLinear(q, s, z); y = Conv(e, v, d); j = Cast(q) {to: f32}; t = Conv(j, v, d); }",
            draw(1, 2), c, draw(4, 12), draw(4, 12), o, c, k, k, o, 0.05 * sqrt((double)(c * k * k)),
            draw(0, 1) ? 0 : draw(1, 255), p, o, p);
        twin_check(text, twin_input, 2.01, 1e-5, NULL); /* a quantum or two of the sums before */
    }
}
/* Quantization by what an activation turns out to be: least and largest values, of any sign, zeros of both,
   and NaN. */
static int special;
static hone_value *extremes_input(const hone_graph *g, int k) {
    hone_value *x = twin_input(g, k);
    float *v = x->data;
    const int64_t n = hone_value_count(x);
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-40f};
    for (int64_t q = 0; special == 1 && q < n; q++) v[q] = draw(0, 1) ? 0.0f : -0.0f;
    for (int64_t q = 0; special == 2 && q < n; q++) v[q] = fabsf(v[q]);
    if (special == 3) v[draw(0, (int)n - 1)] = odd[draw(0, 5)];
    return x;
}
static void dynamic(void **state) {
    (void)state;
    int met = 0;
    EACH_LEVEL for (int round = 0; round < 3 * ROUNDS; round++) {
        const int m = draw(1, 40), k = draw(2, 90), n = draw(1, 100);
        special = round % 4;
        static const char *const ends[] = {"y = Mul(f, t); ", "u = Mul(f, t); y = Add(u, c); ",
                                           "u = Mul(t, f); o = Add(c, u); y = Add(o, r); ",
                                           "u = Mul(t, f); y = Add(r, u); "};
        char many[16] = "";
        if (draw(0, 1)) snprintf(many, sizeof many, "%d", n);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d], r: f32[%d, %d]) -> y, a, b { w: i8[%d, %d] = random(1, -127, "
                 "127); wz: i8[%s] = random(4, 0, %d); "
                 "ws: f32[%s] = random(3, 0.01, 0.02); c: f32[%d] = random(2, -1, 1); q, s, z = "
                 "DynamicQuantizeLinear(x); "
                 "v = MatMulInteger(q, w, z, wz); f = Cast(v) {to: f32}; t = Mul(s, ws); %s a = ReduceMax(x) "
                 "{keepdims: 0}; "
                 "b = ReduceMin(x) {keepdims: 1}; }",
                 m, k, m, n, k, n, many, draw(0, 1) ? 3 : 0, many, n, ends[draw(0, 3)]);
        met += twin_check(text, extremes_input, 0, 0, "full reduction");
    }
    assert_true(met > 20);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(products), cmocka_unit_test(convolutions),
                                       cmocka_unit_test(dynamic)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
