/* SPDX-License-Identifier: Apache-2.0
   Sums of 8-bit products that go on as floats: the kernel against the steps of the program, one by one, with
   every activation, kind of residual and result, to the bit where no activation is; and convolutions and
   products that end so, as models of 8 bits have them, against the definition. Every CPU level, odd sizes. */
#include "kernels/epilogue.h"

#include "twin.h"

static double logistic(double x) { return 1 / (1 + exp(-x)); }
static double applied(hone_activation f, double x, double a, double b) {
    const double h = fmin(fmax(a * x + b, 0), 1);
    switch (f) {
    case HONE_ACTIVATE_sigmoid: return logistic(x);
    case HONE_ACTIVATE_tanh: return tanh(x);
    case HONE_ACTIVATE_silu: return x * logistic(a * x);
    case HONE_ACTIVATE_hard_sigmoid: return h;
    case HONE_ACTIVATE_hard_swish: return x * h;
    case HONE_ACTIVATE_gelu: return x / 2 * (1 + erf(x / sqrt(2)));
    case HONE_ACTIVATE_gelu_tanh: return x * logistic(a * x + b * x * x * x);
    case HONE_ACTIVATE_leaky: return x < 0 ? a * x : x;
    default: return x;
    }
}
enum { GUARD = 77 };
typedef struct {
    const hone_epilogue *row;
    hone_activation f;
    int m, n, residual, out; /* residual: none, floats, u8, i8; out: floats, u8, i8 */
    bool columns, then, clamps, less, each;
} finish_case;
static void run_case(const finish_case *k) {
    const int step = k->n + draw(0, 20), m = k->m, n = k->n;
    int32_t *sum = malloc(sizeof *sum * (size_t)(m * step)), *take = malloc(sizeof *take * (size_t)n),
            less[9];
    float *scale = malloc(sizeof *scale * (size_t)n), *bias = malloc(sizeof *bias * (size_t)n),
          *each = malloc(sizeof *each * (size_t)n);
    const void *more[9];
    void *out[9];
    assert_true(sum && take && scale && bias && each);
    const bool is_signed = k->out == 2;
    hone_finish w = {.take = k->columns ? take : NULL,
                     .scale = k->columns ? scale : NULL,
                     .bias = k->columns ? bias : NULL,
                     .each = k->each ? each : NULL,
                     .by = 0.00137f,
                     .activate = k->f,
                     .alpha = k->f == HONE_ACTIVATE_gelu_tanh ? 1.5957691f : 0.2f + 0.1f * (float)draw(0, 9),
                     .beta = k->f == HONE_ACTIVATE_gelu_tanh ? 0.071354814f : 0.5f,
                     .then = k->then,
                     .times = 1.25f,
                     .plus = -0.3f,
                     .residual = {k->residual > 1, k->residual == 3 ? 0x80 : 0,
                                  (float)draw(0, 255) + (k->residual == 3 ? 128.0f : 0), 0.013f},
                     .bytes = k->out,
                     .end = {k->columns ? -0.0f : 0.17f, -INFINITY, INFINITY, 0.0234f,
                             (float)draw(is_signed ? -128 : 0, is_signed ? 127 : 255), is_signed ? -128 : 0,
                             is_signed ? 127 : 255, 0, 1}};
    if (k->clamps) w.end.lo = -0.7f, w.end.hi = 2.1f;
    for (int i = 0; i < m * step; i++) sum[i] = draw(0, 30) ? draw(-5000, 5000) : draw(-1000000, 1000000);
    for (int j = 0; j < n; j++)
        each[j] = (float)draw(1, 30) / 13, take[j] = draw(-900, 900),
        scale[j] = (float)draw(1, 900) * 3.1e-6f, bias[j] = (float)draw(-9, 9) / 7;
    const size_t in = k->residual > 1 ? 1 : 4, to = k->out ? 1 : 4;
    for (int i = 0; i < m; i++) {
        less[i] = draw(-500, 500);
        uint8_t *r = malloc(in * (size_t)n), *y = malloc(to * (size_t)n + 1); /* no byte more */
        assert_true(r && y);
        for (int j = 0; j < n; j++)
            if (k->residual == 1) ((float *)(void *)r)[j] = draw(0, 60) ? (float)draw(-99, 99) / 37 : NAN;
            else if (k->residual) r[j] = (uint8_t)draw(0, 255);
        y[to * (size_t)n] = GUARD, more[i] = r, out[i] = y;
    }
    k->row->finish(&w, m, n, sum, step, k->less ? less : NULL, k->residual ? more : NULL, out);
    for (int i = 0; i < m; i++) {
        for (int j = 0; j < n; j++) {
            const int32_t s = sum[i * step + j] - (k->columns ? take[j] : 0) - (k->less ? less[i] : 0);
            volatile float v = (float)s * (k->columns ? scale[j] : w.by); /* rounded at every step */
            v = v + (k->columns ? bias[j] : w.end.bias);
            if (k->f != HONE_ACTIVATE_COUNT)
                v = (float)applied(k->f, (double)v, (double)w.alpha, (double)w.beta);
            if (k->then) v = v * w.times, v = v + w.plus;
            if (k->residual == 1) v = v + ((const float *)more[i])[j];
            if (k->residual > 1) {
                const int b = k->residual == 3 ? ((const int8_t *)more[i])[j] : ((const uint8_t *)more[i])[j];
                volatile float seen = (float)b - (w.residual.zero - (k->residual == 3 ? 128.0f : 0));
                seen = seen * w.residual.scale, v = v + seen;
            }
            if (k->each) v = v * each[j];
            v = v < w.end.lo ? w.end.lo : v, v = v > w.end.hi ? w.end.hi : v;
            if (!k->out) {
                const float got = ((const float *)out[i])[j];
                const double off =
                    k->f == HONE_ACTIVATE_COUNT ? 0 : 3e-6 * (fabs((double)v) + (k->each ? 3 : 1));
                if (isnan(v) ? !isnan(got) : !(fabs((double)got - (double)v) <= off))
                    fail_msg("%s: activation %d, %d columns: %g at %d, %d, not %g", k->row->name, (int)k->f,
                             n, (double)got, i, j, (double)v);
                continue;
            }
            const float t = v / w.end.scale;
            const double whole = nearbyint((double)t), middle = fabs(fabs((double)t - whole) - 0.5);
            double q = isnan(v) ? 0 : whole + (double)w.end.zero;
            q = fmin(fmax(q, (double)w.end.low), (double)w.end.high);
            const int got = is_signed ? ((const int8_t *)out[i])[j] : ((const uint8_t *)out[i])[j],
                      off = k->f != HONE_ACTIVATE_COUNT && middle < 2e-3;
            if (abs(got - (int)q) > off)
                fail_msg("%s: activation %d, residual %d, %d columns: %d at %d, %d, not %g (%g)",
                         k->row->name, (int)k->f, k->residual, n, got, i, j, q, (double)t);
        }
        assert_int_equal(((const uint8_t *)out[i])[to * (size_t)n], GUARD);
        free((void *)more[i]), free(out[i]);
    }
    free(sum), free(take), free(scale), free(bias), free(each);
}
static void kernels(void **state) {
    (void)state;
    for (const hone_epilogue *row = hone_epilogue_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int f = 0; f <= HONE_ACTIVATE_COUNT; f++)
            for (int n = 1; n < 90; n += n < 35 ? 1 : 13)
                for (int q = 0; q < 12; q++) {
                    const finish_case k = {row,       (hone_activation)f, draw(1, 9), n,           q / 3,
                                           q % 3,     draw(0, 2),         draw(0, 1), !draw(0, 3), draw(0, 1),
                                           draw(0, 1)};
                    run_case(&k);
                }
    }
}
/* ---- models -------------------------------------------------------------------------------------------- */
static char text[4096];
static const struct {
    const char *what, *nodes; /* from v, floats: y. R: a residual */
    bool bytes;
} ends[] = {
    {"nothing", "y = Identity(v); ", false},
    {"Relu", "y = Relu(v); ", false},
    {"SiLU", "s = Sigmoid(v); y = Mul(v, s); ", false},
    {"SiLU, bytes", "s = Sigmoid(v); t = Mul(v, s); y = QuantizeLinear(t, ys, yz); ", true},
    {"SiLU, bytes added, bytes",
     "s = Sigmoid(v); t = Mul(v, s); e = DequantizeLinear(r, rs, rz); u = Add(t, e); y = QuantizeLinear(u, "
     "ys, yz); ",
     true},
    {"SiLU, a factor a channel, bytes",
     "s = Sigmoid(v); t = Mul(v, s); u = Mul(t, a); y = QuantizeLinear(u, ys, yz); ", true},
    {"HardSwish, bytes", "t = HardSwish(v); y = QuantizeLinear(t, ys, yz); ", true},
    {"HardSwish, a factor, a number, bytes",
     "t = HardSwish(v); o = Mul(c, t); u = Add(o, d); y = QuantizeLinear(u, ys, yz); ", true},
    {"Gelu, bytes", "t = Gelu(v); y = QuantizeLinear(t, ys, yz); ", true},
    {"HardSigmoid", "y = HardSigmoid(v); ", false},
    {"floats added, Relu, bytes", "t = Add(f, v); u = Relu(t); y = QuantizeLinear(u, ys, yz); ", true},
    {"bytes added, limits", "e = DequantizeLinear(r, rs, rz); t = Add(v, e); y = Clip(t, lo, hi); ", false},
    {"Tanh, floats added", "t = Tanh(v); y = Add(t, f); ", false},
    {"SiLU, bytes added, a factor a channel",
     "s = Sigmoid(v); t = Mul(v, s); e = DequantizeLinear(r, rs, rz); u = Add(t, e); y = Mul(a, u); ", false},
    {"a factor a channel, bytes", "u = Mul(a, v); y = QuantizeLinear(u, ys, yz); ", true},
};
static const char *signed_byte(int *zero) {
    const bool is_signed = draw(0, 1);
    *zero = draw(is_signed ? -128 : 0, is_signed ? 127 : 255);
    return is_signed ? "i8" : "u8";
}
/* The constants, and v: f32(sum) * a scale [a column] [+ a bias a column]. shape: of a column's number */
static int heads(char *to, size_t room, const char *sum, const char *shape, const char *form) {
    int rz, yz;
    const char *tr = signed_byte(&rz), *ty = signed_byte(&yz);
    return snprintf(
        to, room,
        "graph g (%s, r: %s[%s], f: f32[%s]) -> y { xz: u8[] = {%d}; b: f32[%s] = random(2, -1, "
        "1); m: f32[%s] = random(3, 0.0001, 0.0006); rs: f32[] = {0.01}; rz: %s[] = {%d}; ys: "
        "f32[] = {0.021}; yz: %s[] = {%d}; c: f32[] = {0.75}; d: f32[] = {0.3}; lo: f32[] = {-1}; "
        "hi: f32[] = {1.5}; a: f32[%s] = random(4, 0.2, 3); ",
        sum, tr, form, form, draw(0, 1) ? draw(1, 255) : 0, shape, draw(0, 3) ? shape : "1", tr, rz, ty, yz,
        shape);
}
static void products(void **state) {
    (void)state;
    int met = 0;
    EACH_LEVEL for (size_t q = 0; q < sizeof ends / sizeof *ends; q++) for (int round = 0; round < 1;
                                                                            round++) {
        const int m = draw(2, 70), k = draw(2, 150), n = draw(2, 120);
        char x[64], each[16], form[32];
        snprintf(x, sizeof x, "x: u8[%d, %d]", m, k), snprintf(each, sizeof each, "%d", n);
        snprintf(form, sizeof form, "%d, %d", m, n);
        const int at = heads(text, sizeof text, x, each, form);
        snprintf(text + at, sizeof text - (size_t)at,
                 "w: i8[%d, %d] = random(1, -127, 127); i = MatMulInteger(x, w, xz); g = Cast(i) {to: "
                 "f32}; h = Mul(g, m); %s; %s}",
                 k, n, draw(0, 3) ? "v = Add(h, b)" : "v = Identity(h)", ends[q].nodes);
        met += twin_check(text, twin_input, ends[q].bytes ? 1.01 : 1e-5, 1e-5, "contract int8");
    }
    assert_true(met > 5);
}
static void pictures(void **state) {
    (void)state;
    static const int channels[] = {3, 8, 16, 17, 24, 64, 70, 130};
    int depthwise = 0, dense = 0;
    EACH_LEVEL for (size_t q = 0; q < sizeof ends / sizeof *ends; q++) for (int round = 0; round < 2;
                                                                            round++) {
        const bool apart = round % 2;
        const int c = channels[draw(0, 7)], o = apart ? c : draw(2, 70), size = draw(4, 14),
                  k = draw(0, 1) ? 3 : 5, stride = draw(1, 2), across = size + draw(0, 3),
                  h = (size + k / 2 * 2 - k) / stride + 1, wide = (across + k / 2 * 2 - k) / stride + 1;
        char x[64], each[16], form[48];
        snprintf(x, sizeof x, "x: u8[1, %d, %d, %d]", size, across, c);
        snprintf(each, sizeof each, "%d, 1, 1", o);
        snprintf(form, sizeof form, "1, %d, %d, %d", o, h, wide);
        const int at = heads(text, sizeof text, x, each, form);
        snprintf(text + at, sizeof text - (size_t)at,
                 "w: i8[%d, %d, %d, %d] = random(1, -127, 127); p = Transpose(x) {perm: [0, 3, 1, 2]}; i "
                 "= ConvInteger(p, w, xz) {group: %d, pads: [%d, %d, %d, %d], strides: [%d, %d]}; g = "
                 "Cast(i) {to: f32}; h = Mul(g, m); v = Add(h, b); %s}",
                 o, apart ? 1 : c, k, k, apart ? c : 1, k / 2, k / 2, k / 2, k / 2, stride, stride,
                 ends[q].nodes);
        const char *tactic = apart ? "depthwise int8" : "contract int8";
        *(apart ? &depthwise : &dense) +=
            twin_check(text, twin_input, ends[q].bytes ? 1.01 : 1e-5, 1e-5, tactic);
    }
    assert_true(depthwise > 5 && dense > 5);
}
/* Sums of floats that become bytes behind an activation and a factor of each column: short rows, of which
   several are taken at once, and long ones, with a bias or a residual. */
static void floats(void **state) {
    (void)state;
    static const char *const sums[] = {"v = MatMul(x, w);", "h = MatMul(x, w); v = Add(h, b);",
                                       "h = MatMul(x, w); v = Add(h, r);"},
                             *const acts[] = {"t = HardSwish(v);", "s = Sigmoid(v); t = Mul(v, s);",
                                              "s = Sigmoid(v); q = Mul(v, s); t = Mul(q, e);"};
    int met = 0;
    EACH_F32_LEVEL for (int round = 0; round < 18; round++) {
        const int m = draw(1, 70), c = draw(8, 40), o = draw(9, round % 2 ? 40 : 700);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d], r: f32[%d, %d]) -> y { w: f32[%d, %d] = random(1, -0.4, 0.4); b: "
                 "f32[%d] = "
                 "random(2, -1, 1); a: f32[%d] = random(4, 0.2, 3); e: f32[1] = {1.3}; ys: f32[] = {0.021}; "
                 "yz: u8[] = "
                 "{%d}; %s %s u = Mul(%s); y = QuantizeLinear(u, ys, yz); }",
                 m, c, m, o, c, o, o, o, draw(0, 255), sums[round / 2 % 3], acts[round / 6],
                 round % 4 < 2 ? "t, a" : "a, t");
        met += twin_check(text, twin_input, 1.01, 1e-5, "contract");
    }
    assert_true(met > 4);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(kernels), cmocka_unit_test(products),
                                       cmocka_unit_test(pictures), cmocka_unit_test(floats)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
