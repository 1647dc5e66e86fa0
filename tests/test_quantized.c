/* SPDX-License-Identifier: Apache-2.0
   Products of quantized models in the forms that tools write: bytes or floats in, a bias a column, a
   residual, limits, scales one or one a column, rounded to 8 or 16 bits or left in floats. Each against the
   definition, on every CPU level, on odd sizes and extremes of zero points.

   Integers are the definition's. So is what is rounded from a sum of floats, save where the sum lies so near
   to the middle of two numbers that another order of its terms rounds it to the other one. */
#include "twin.h"

static char text[4096];
enum { ROUNDS = SLOW ? 2 : 5 };
typedef struct {
    /* x: bytes or floats; nodes make y, of type T, from x, w (bytes) or f (floats), and a residual r */
    const char *what, *x, *nodes;
    /* the sum of floats, NULL: of integers; what is rounded of it; how much larger a difference of the sum
       may become on its way there; whether that is rounded by qs, and by ys only then */
    const char *sum, *value;
    double by;
    bool twice;
} form;
/* X: one u8 or i8; W: i8 or u8, a scale a column or one; T: what comes out. D is x in floats, F the weights
   in floats. */
#define D "d = DequantizeLinear(x, xs, xz); "
#define F "f = DequantizeLinear(w, ws, wz) {axis: 1}; "
#define Q(v) "y = QuantizeLinear(" v ", ys, yz); "
static const form forms[] = {
    {"floats, a bias", "f32", "v = MatMul(x, g); u = Add(v, b); " Q("u"), "u", "u", 1, false},
    {"floats, a bias, limits", "f32", "v = MatMul(x, g); u = Add(b, v); t = Clip(u, lo, hi); " Q("t"), "t",
     "t", 1, false},
    {"floats, a bias, a residual", "f32", "v = MatMul(x, g); u = Add(v, b); t = Add(u, r); " Q("t"), "t", "t",
     1, false},
    {"floats, a bias, a residual, Relu", "f32",
     "v = MatMul(x, g); u = Add(v, b); t = Add(r, u); p = Relu(t); " Q("p"), "p", "p", 1, false},
    {"floats, Gemm", "f32", "v = Gemm(x, h, b) {transB: 1}; " Q("v"), "v", "v", 1, false},
    {"floats, a bias, quantized and read back", "f32",
     "v = MatMul(x, g); u = Add(v, b); " Q("u") "z = DequantizeLinear(y, ys, yz); ", "u", "u", 1, false},
    {"floats, a bias, SiLU", "f32", "v = MatMul(x, g); u = Add(v, b); s = Sigmoid(u); t = Mul(u, s); " Q("t"),
     "u", "t", 1.1, false},
    {"floats, a bias, HardSwish, a factor and a number", "f32",
     "v = MatMul(x, g); u = Add(v, b); s = HardSwish(u); t = Mul(lo, s); p = Add(t, hi); " Q("p"), "u", "p",
     1.5 * 1.5, false},
    {"floats, a residual, Gelu", "f32", "v = MatMul(x, g); u = Add(v, r); s = Gelu(u); " Q("s"), "u", "s",
     1.13, false},
    {"pairs, a bias", "byte", D F "v = MatMul(d, f); u = Add(v, b); " Q("u"), "u", "u", 1, false},
    {"pairs, a bias, Relu", "byte", D F "v = MatMul(d, f); u = Add(v, b); t = Relu(u); " Q("t"), "t", "t", 1,
     false},
    {"pairs, a bias, a residual", "byte", D F "v = MatMul(d, f); u = Add(v, b); t = Add(u, r); " Q("t"), "t",
     "t", 1, false},
    {"pairs, Gemm", "byte", D F "v = Gemm(d, f, b); " Q("v"), "v", "v", 1, false},
    {"pairs, a product, then quantized twice", "byte",
     D F
     "v = MatMul(d, f); i = QuantizeLinear(v, qs, qz); j = DequantizeLinear(i, qs, qz); u = Add(j, b); " Q(
         "u"),
     "v", "v", 1, true},
    {"integers, floats after", "byte",
     "v = MatMulInteger(x, w, xz, wz); c = Cast(v) {to: f32}; t = Mul(c, ws); u = Add(t, b); " Q("u"), NULL,
     NULL, 0, false},
    {"integers, floats after, a residual", "byte",
     "v = MatMulInteger(x, w, xz, wz); c = Cast(v) {to: f32}; t = Mul(c, ws); u = Add(t, b); p = Add(u, "
     "r); " Q("p"),
     NULL, NULL, 0, false},
    {"integers to bytes, then a bias", "byte",
     "v = QLinearMatMul(x, xs, xz, w, ws, wz, qs, qz); j = DequantizeLinear(v, qs, qz); u = Add(j, b); " Q(
         "u"),
     NULL, NULL, 0, false},
    {"integers to bytes, a bias, a residual, limits", "byte",
     "v = QLinearMatMul(x, xs, xz, w, ws, wz, qs, qz); j = DequantizeLinear(v, qs, qz); u = Add(j, b); t = "
     "Add(u, r); p = Clip(t, lo, "
     "hi); " Q("p"),
     NULL, NULL, 0, false},
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
    const int room = snprintf(
        text, sizeof text,
        "graph g (x: %s[%d, %d], r: f32[%d, %d]) -> y%s { g: f32[%d, %d] = random(1, -1, "
        "1); h: f32[%d, %d] = random(1, -1, 1); b: f32[%d] = "
        "random(2, -2, 2); lo: f32[] = {-1.5}; hi: f32[] = {%g}; xs: f32[] = {0.02}; "
        "xz: %s[] = {%d}; w: %s[%d, %d] = random(%d, %d, %d); "
        "ws: f32[%s] = random(4, 0.008, 0.012); wz: %s[%s] = random(5, %d, %d); qs: "
        "f32[] = {%g}; qz: %s[] = {%d}; ys: f32[] = {%g}; "
        "yz: %s[] = {%d}; %s}",
        floats ? "f32" : tx, m, k, m, n, strstr(f->nodes, "z = ") ? ", z" : "", k, n, n, k, n, size, tx,
        floats ? 0 : xz, tw, k, n, draw(1, 99), tw[0] == 'i' ? -128 : 0, tw[0] == 'i' ? 127 : 255, many, tw,
        many, each && !middle ? tw[0] == 'i' ? -128 : 0 : wz, each && !middle ? tw[0] == 'i' ? 127 : 255 : wz,
        size / 40, tq, qz, size / (out ? 9000 : 35), ty, yz, f->nodes);
    assert_true(room < (int)sizeof text);
}
/* What the definition makes of one of the values in between, and its sum of the terms' magnitudes. */
static const char *of_value(const char *of, const char *name) {
    static char room[sizeof text];
    const char *to = strstr(of, ") -> "), *body = strchr(of, '{');
    assert_true(to && body);
    snprintf(room, sizeof room, "%.*s) -> %s %s", (int)(to - of), of, name, body);
    return room;
}
static hone_value *defined(const char *of, const char *name, hone_value *const *in) {
    const char *now = of_value(of, name);
    hone_compiled *c = twin_compile(now);
    hone_value *out[1] = {0};
    twin_run(c, (hone_value **)in, 1, true, out, NULL, now);
    hone_compiled_destroy(c);
    return out[0];
}
static hone_value *terms(const char *of, const char *name, hone_value *const *in, int n_in) {
    hone_value *out[1] = {0};
    twin_terms(of_value(of, name), in, n_in, out);
    return out[0];
}
static double constant(const char *of, const char *name) {
    hone_graph *g;
    assert_int_equal(hone_graph_parse(of, strlen(of), &g), HONE_OK);
    const double x = hone_value_number(g->var.at[hone_graph_find(g, name)].value, 0);
    hone_graph_destroy(g);
    return x;
}
/* Whether x / scale may be rounded to either of two numbers: x is known to within `off`, and the quotient is
   a float before it is rounded. */
static const double ROUNDING = 16 * 0x1p-24; /* of sums, of the sum of the terms' magnitudes */
static bool either(double x, double off, double scale) {
    const double s = x / scale, e = off / scale + 0x1p-24 * fabs(s);
    assert_true(e < 0.5); /* else more than two are possible */
    return rint(s - e) != rint(s + e);
}
static const form *tested;
/* By how much each result may differ from the definition's. */
static void quanta(const char *of, hone_value *const *in, int n_in, hone_value **out) {
    const double qs = constant(of, "qs"), ys = constant(of, "ys");
    hone_value *y = defined(of, "y", in);
    hone_value *sum = tested->sum ? terms(of, tested->sum, in, n_in) : NULL,
               *value = tested->sum ? defined(of, tested->value, in) : NULL;
    for (int k = 0; k < (strstr(of, "-> y, z {") ? 2 : 1); k++) { /* z is y read back */
        assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, y->dim, y->rank, out + k), HONE_OK);
        for (int64_t q = 0; q < hone_value_count(y); q++) {
            const double x = value ? hone_value_number(value, q) : 0,
                         off = value ? ROUNDING * (tested->by * hone_value_number(sum, q) + fabs(x)) : 0;
            const bool may = value && either(x, off, tested->twice ? qs : ys);
            const double most = !may ? 0 : tested->twice ? 1 + qs / ys : 1;
            ((float *)out[k]->data)[q] = (float)(k ? most * ys * (1 + 0x1p-16) : most);
        }
    }
    hone_value_drop(y), hone_value_drop(sum), hone_value_drop(value);
}
static void products(void **state) {
    (void)state;
    static const char *const sixteen[] = {"u16", "i16"};
    for (size_t q = 0; q < sizeof forms / sizeof *forms; q++)
        EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
            const int m = draw(0, 3) ? draw(1, 70) : 1, k = draw(2, 200), n = draw(1, 150);
            write_form(forms + q, round ? NULL : sixteen[draw(0, 1)], m, k, n);
            tested = forms + q;
            const char *tactic = strcmp(tested->x, "f32") ? "contract int8" : "contract";
            if (twin_check_by(text, twin_input, quanta, 1, tactic) != 1)
                fail_msg("%s: not one step is \"%s\" in\n%s", tested->what, tactic, text);
        }
}
/* A convolution that is rounded, and read as bytes by the next, through what a training's export leaves in
   between. */
static void convolved(const char *of, hone_value *const *in, int n_in, hone_value **out) {
    const double s = constant(of, "s"), zero = constant(of, "z");
    hone_value *v = defined(of, "v", in), *d = defined(of, "d", in), *i = defined(of, "i", in),
               *q = defined(of, "q", in), *sum = terms(of, "i", in, n_in);
    const int64_t n = q->dim[0], o = q->dim[1], pixels = q->dim[2] * q->dim[3], p = v->dim[0];
    for (int k = 0; k < 2; k++) { /* y reads them as floats, t as whole numbers */
        const int64_t dims[] = {n, p, q->dim[2], q->dim[3]};
        assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, dims, 4, out + k), HONE_OK);
        for (int64_t r = 0; r < n * p * pixels; r++) {
            const int64_t row = r / (p * pixels), to = r / pixels % p, pixel = r % pixels;
            double most = ROUNDING * fabs(hone_value_number(d, to));
            for (int64_t c = 0; c < o; c++) {
                const int64_t at = (row * o + c) * pixels + pixel;
                const double x = fabs(k ? hone_value_number(q, at) : s * (hone_value_number(q, at) - zero)),
                             step = k ? 1 : s;
                const bool may = either(hone_value_number(i, at), ROUNDING * hone_value_number(sum, at), s);
                most += fabs(hone_value_number(v, to * o + c)) * (ROUNDING * x + (may ? step : 0));
            }
            ((float *)out[k]->data)[r] = (float)most;
        }
    }
    hone_value_drop(v), hone_value_drop(d), hone_value_drop(i), hone_value_drop(q), hone_value_drop(sum);
}
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
        if (!twin_check_by(text, twin_input, convolved, 1, "contract"))
            fail_msg("no step is \"contract\" in\n%s", text);
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
