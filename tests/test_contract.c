/* SPDX-License-Identifier: Apache-2.0
   Matrix multiplications and convolutions as the CPU runs them, against the definition: random odd shapes,
   every CPU level, one thread and two (equal bits), constants packed ahead and not, epilogues, residuals that
   are the input itself. */
#include "twin.h"

/* What a test is about: the steps that its graphs had of that tactic. A test that met none has tested
   something else, and fails. */
static const char *tactic;
static int met;
static int begin(void **state) {
    (void)state;
    tactic = "contract", met = 0;
    return 0;
}
static int was_met(void **state) {
    (void)state;
    if (!met) print_error("no step was \"%s\"\n", tactic);
    return met ? 0 : -1;
}
#define MEETS(test) cmocka_unit_test_setup_teardown(test, begin, was_met)

/* Integers: the definition's own, to the bit. */
static void check_exact(const char *text) { met += twin_check(text, twin_input, 0, 0, tactic); }
/* Floats: within so many roundings of the sum of terms. */
static void terms(const char *text, int roundings) {
    met += twin_check_terms(text, twin_input, roundings * 0x1p-24, tactic);
}
static void check(const char *text) { terms(text, 16); }
/* Behind a softmax what scores are off by is relative: `size` is that of a score's sum of terms. */
static void check_softmax(const char *text, double size) {
    met += twin_check(text, twin_input, 1e-30, 16 * 0x1p-24 * size, tactic);
}
#define ROUNDS twin_rounds(2, 2, 5)
static char text[4096];

static void matmul(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int m = draw(1, 70), n = draw(1, 90), k = draw(1, 600), b = draw(1, 3);
        bool packed = draw(0, 1);
        if (packed)
            snprintf(text, sizeof text,
                     "graph g (x: f32[%d, %d, %d], r: f32[%d, %d, %d]) -> y { w: f32[%d, %d] = random(%d, "
                     "-1, 1); c: f32[%d] = random(3, "
                     "-1, 1); h = MatMul(x, w); i = Add(h, c); j = Relu(i); y = Add(j, r); }",
                     b, m, k, b, m, n, k, n, round, n);
        else
            snprintf(text, sizeof text,
                     "graph g (x: f32[%d, %d, %d], w: f32[%d, %d, %d]) -> y, z { y = MatMul(x, w); t = "
                     "Transpose(y) {perm: [0, 2, 1]}; z = "
                     "Tanh(t); }",
                     b, m, k, b, k, n);
        check(text);
    }
}
static void transposed(void **state) { /* keys of attention, Gemm's flags */
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int h = draw(1, 3), i = draw(1, 40), t = draw(1, 40), d = draw(1, 70);
        snprintf(text, sizeof text,
                 "graph g (q: f32[%d, %d, %d], k: f32[%d, %d, %d]) -> y { t = Transpose(k) {perm: [0, 2, "
                 "1]}; s = MatMul(q, t); y = "
                 "Softmax(s); }",
                 h, i, d, h, t, d);
        check_softmax(text, d);
        snprintf(text, sizeof text,
                 "graph g (a: f32[%d, %d], c: f32[%d]) -> y { b: f32[%d, %d] = random(5, -1, 1); y = Gemm(a, "
                 "b, c) {transA: 1, transB: 1, "
                 "alpha: 0.5, beta: 2.0}; }",
                 d, i, t, t, d);
        check(text);
    }
}
/* Of few channels, which some kernels multiply as their pixels lie, and of more than those take, which are
   contractions at every level: HONE_CPU may leave only one. */
static void conv(void **state) {
    (void)state;
    enum { MOST_CHANNELS = 64 /* of a direct convolution */ };
    EACH_F32_LEVEL for (int round = 0; round < 2 * ROUNDS; round++) {
        const bool many = round % 2;
        const int least = many ? 2 : 1, before = met;
        int g = draw(1, 3), c = g * draw(least, 9),
            m = g * (many ? draw(MOST_CHANNELS + 1, 80) : draw(1, 20)), kh = draw(least, 4),
            kw = draw(least, 5), sh = draw(least, 2), sw = draw(1, 3), dh = draw(1, 2), dw = draw(1, 2),
            h = draw(9, 20), w = draw(11, 33), n = draw(1, 2);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d]) -> y { w: f32[%d, %d, %d, %d] = random(%d, -1, 1); b: "
                 "f32[%d] = random(2, -1, 1); v = "
                 "Conv(x, w, b) {group: %d, strides: [%d, %d], dilations: [%d, %d], pads: [%d, %d, %d, %d]}; "
                 "s = Sigmoid(v); y = Mul(v, s); }",
                 n, c, h, w, m, c / g, kh, kw, round + 9, m, g, sh, sw, dh, dw, draw(0, 2), draw(0, 3),
                 draw(0, 2), draw(0, 1));
        check(text);
        if (many && met == before) fail_msg("no step is \"%s\" in\n%s", tactic, text);
    }
}
/* pixels as columns, whatever lies how: results channels last and not, groups, one way only, bands cut */
static void few_channels(void **state) {
    (void)state;
    tactic = "direct conv";
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int g = draw(1, 2), c = g * draw(1, 4), m = g * draw(1, draw(0, 1) ? 8 : 20), o = draw(1, 3),
            kh = draw(1, 5), kw = draw(2, 7), sh = draw(1, 2), sw = draw(1, 3), dh = draw(1, 2),
            dw = draw(1, 2), h = draw(11, 40), w = 16 * draw(3, 6) - draw(0, 3), n = draw(1, 2);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d]) -> y { w: f32[%d, %d, %d, %d] = random(%d, -1, 1); b: "
                 "f32[%d] = random(2, -1, 1); v: "
                 "f32[%d, %d, 3, %d] = random(3, -1, 1); a = Conv(x, w, b) {group: %d, strides: [%d, %d], "
                 "dilations: [%d, %d], pads: [%d, "
                 "%d, %d, %d]}; e = %s(a); f = Conv(e, v) {pads: [%d, 1, %d, 2]}; y = Sigmoid(f); }",
                 n, c, h, w, m, c / g, kh, kw, round + 9, m, o, m, kw, g, sh, sw, dh, dw, draw(0, 2),
                 draw(0, 5), draw(0, 2), draw(0, 1), draw(0, 1) ? "Relu" : "HardSwish", 2 * draw(0, 1),
                 draw(0, 1));
        terms(text, 8);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d]) -> y, z { w: f32[%d, %d, %d] = random(%d, -1, 1); y = Conv(x, "
                 "w) {strides: [%d], pads: [%d, "
                 "0]}; t = Transpose(y) {perm: [0, 2, 1]}; z = Relu(t); }",
                 n, c, 12 * w, o, c, 3 * kw, round + 9, sw, draw(0, 2));
        terms(text, 8);
    }
    static const char *plain[] = {/* which are to be found */
                                  "graph g (x: f32[1, 1, 28, 28]) -> y { w: f32[3, 1, 5, 5] = random(1, -1, "
                                  "1); b: f32[3] = random(2, -1, 1); "
                                  "v: f32[40, 3, 1, 1] = random(3, -1, 1); a = Conv(x, w, b) {pads: [2, 2, "
                                  "2, 2]}; e = Relu(a); y = Conv(e, v); }",
                                  "graph g (x: f32[1, 8, 20, 48]) -> y { w: f32[1, 8, 5, 3] = random(1, -1, "
                                  "1); y = Conv(x, w) {pads: [2, 1, 2, "
                                  "1]}; }",
                                  "graph g (x: f32[1, 6, 20, 48]) -> y { w: f32[13, 6, 5, 3] = random(1, -1, "
                                  "1); y = Conv(x, w) {pads: [2, 1, 2, "
                                  "1]}; }",
                                  "graph g (x: f32[1, 1, 4000]) -> y { w: f32[1, 1, 256] = random(1, -1, 1); "
                                  "y = Conv(x, w) {strides: [2]}; }"};
    for (size_t k = 0; k < sizeof plain / sizeof *plain; k++)
        assert_true(twin_check_terms(plain[k], twin_input, 8 * 0x1p-24, "direct conv"));
}
static void depthwise(void **state) {
    (void)state;
    tactic = "depthwise";
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int c = draw(2, 9), kh = draw(1, 5), kw = draw(1, 5), s = draw(1, 2), h = draw(6, 24),
            w = draw(6, 70), one = draw(0, 2);
        if (!one)
            snprintf(text, sizeof text,
                     "graph g (x: f32[2, %d, %d]) -> y { w: f32[%d, 1, %d] = random(4, -1, 1); v = Conv(x, "
                     "w) {group: %d, strides: [%d], "
                     "pads: [%d, %d]}; y = HardSwish(v); }",
                     c, w, c, kw, c, s, draw(0, 2), draw(0, 2));
        else
            snprintf(text, sizeof text,
                     "graph g (x: f32[2, %d, %d, %d]) -> y { w: f32[%d, 1, %d, %d] = random(4, -1, 1); b: "
                     "f32[%d] = random(6, -1, 1); v = "
                     "Conv(x, w, b) {group: %d, strides: [%d, %d], pads: [%d, %d, %d, %d]}; y = Clip(v, lo, "
                     "hi); lo: f32[] = {0}; hi: "
                     "f32[] = {6}; }",
                     c, h, w, c, kh, kw, c, c, s, draw(1, 2), draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2));
        char *late = strstr(text, " lo: f32"); /* constants stand before nodes */
        if (late) {
            char head[4096];
            char *at = strchr(text, '{') + 1;
            snprintf(head, sizeof head, "%.*s lo: f32[] = {0}; hi: f32[] = {6};%.*s }", (int)(at - text),
                     text, (int)(late - at), at);
            memcpy(text, head, strlen(head) + 1);
        }
        check(text);
    }
}
/* What follows the sum is a known function of it, or nearly one, and is then left to tile code. */
static void activations(void **state) {
    (void)state;
    static const char *const follow[] = {
        "y = Sigmoid(v);",
        "y = HardSwish(v);",
        "y = HardSigmoid(v);",
        "y = HardSigmoid(v) {alpha: 0.3, beta: 0.25};",
        "y = Gelu(v);",
        "y = Gelu(v) {approximate: \"tanh\"};",
        "y = Swish(v) {alpha: 1.5};",
        "s = Sigmoid(v); y = Mul(s, v);",
        "c = Relu(v); y = Swish(c);",
        "a = Add(v, r); y = HardSwish(a);",
        "a = Add(v, r); s = Sigmoid(v); y = Mul(a, s);", /* not of the same */
        "s = Sigmoid(v); t = Mul(k, s); y = Mul(v, t);",
        "h = Div(v, six); i = Add(h, k); j = Clip(i, zero, k); y = Mul(v, j);", /* cut at k, not at 1 */
        "h = Div(v, six); i = Add(h, k); j = Clip(i, zero, one); y = Mul(v, j);",
        "h = Mul(v, k); e = Erf(v); i = Add(e, one); y = Mul(h, i);", /* v, not v / sqrt 2 */
        "y = Sigmoid(v); z = Relu(y);",
        "s = Sigmoid(v); t = Mul(s, v); y = Add(t, r);", /* and what may follow it */
        "s = HardSwish(v); y = Add(r, s);",
        "h = HardSwish(v); t = Mul(k, h); y = Add(t, six);",
        "c = Relu(v); h = Tanh(c); y = Mul(h, six);",
        "s = Sigmoid(v); t = Mul(s, v); y = Mul(t, r);",
        "s = Tanh(v); y = Mul(r, s);",
        "s = Sigmoid(v); t = Add(s, r); y = Mul(t, k);", /* not this */
    };
    enum { FOLLOW = sizeof follow / sizeof *follow };
    EACH_F32_LEVEL for (int round = 0; round < (SLOW ? 1 : 3) * FOLLOW; round++) {
        const int kind = draw(0, 3),
                  c = kind == 2   ? draw(20, 40)
                      : kind == 3 ? draw(16, 40)
                                  : draw(1, 30),
                  m = kind == 2 ? c : draw(1, 70), k = kind == 0 ? 1 : 3, pad = k / 2,
                  h = kind == 3 ? draw(8, 15) : draw(3, 9), w = draw(3, 12);
        const char *f = follow[round % FOLLOW];
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, %d, %d, %d], r: f32[1, %d, %d, %d]) -> y { w: f32[%d, %d, %d, %d] = "
                 "random(%d, -1, 1); b: f32[%d] = "
                 "random(2, -1, 1); "
                 "k: f32[] = {0.5}; six: f32[] = {6}; zero: f32[] = {0}; one: f32[] = {1}; v = Conv(x, w, b) "
                 "{group: %d, pads: [%d, %d, "
                 "%d, %d]}; %s }",
                 c, h, w, m, h, w, m, kind == 2 ? 1 : c, k, k, round + 9, m, kind == 2 ? c : 1, pad, pad, pad,
                 pad, f);
        check(text);
    }
    for (int round = 0; round < FOLLOW; round++) { /* bias a column, K in several parts, several threads */
        const int m = draw(1, 40), k = draw(1, 700), n = draw(1, 90);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d], r: f32[%d, %d]) -> y { w: f32[%d, %d] = random(%d, -0.2, 0.2); b: "
                 "f32[%d] = random(2, -1, 1); "
                 "k: f32[] = {0.5}; six: f32[] = {6}; "
                 "zero: f32[] = {0}; one: f32[] = {1}; u = MatMul(x, w); v = Add(u, b); %s }",
                 m, k, m, n, k, n, round + 9, n, follow[round]);
        check(text);
    }
}
/* Few rows, and a last panel narrower than the others: a kernel takes more rows of it at a time, and each
   column is activated once. */
static void rows_and_panels(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int m = 1; m <= 17; m++) {
        const int k = draw(8, 40), vectors = draw(1, 13), n = 8 * vectors + draw(0, 1) * draw(1, 7);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d]) -> y { w: f32[%d, %d] = random(%d, -0.2, 0.2); b: f32[%d] = "
                 "random(2, -1, 1); u = MatMul(x, w); "
                 "v = Add(u, b); y = HardSigmoid(v) {alpha: 0.3, beta: 0.25}; }",
                 m, k, k, n, m, n);
        check(text);
    }
}
static void transposed_conv(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < 2 * ROUNDS; round++) {
        const int rank = draw(1, 3), g = draw(0, 3) ? 1 : 2, c = g * draw(1, 9), m = draw(1, 9);
        char size[32] = "", kernel[32] = "", shape[32] = "", stride[32] = "", low[32] = "", high[32] = "",
             more[32] = "", dilation[32] = "";
        const bool plain = draw(0, 2) == 0, dilated = !plain && draw(0, 5) == 0;
        for (int d = 0; d < rank; d++) {
            const int s = draw(1, 3), k = draw(0, 1) ? s : draw(1, 5), h = draw(1, rank == 3 ? 5 : 13),
                      e = dilated ? draw(1, 2) : 1, all = (h - 1) * s + (k - 1) * e + 1,
                      cut = plain ? 0 : draw(0, 2), p = cut < all ? cut : 0,
                      q = !plain && p + 1 < all ? draw(0, 1) : 0;
            sprintf(size + strlen(size), ", %d", h), sprintf(kernel + strlen(kernel), ", %d", k);
            sprintf(shape + strlen(shape), "%s%d", d ? ", " : "", k),
                sprintf(stride + strlen(stride), "%s%d", d ? ", " : "", s);
            sprintf(low + strlen(low), "%s%d", d ? ", " : "", p), sprintf(high + strlen(high), ", %d", q);
            sprintf(more + strlen(more), "%s%d", d ? ", " : "", !plain && s > 1 ? draw(0, 1) : 0);
            sprintf(dilation + strlen(dilation), "%s%d", d ? ", " : "", e);
        }
        const bool late = draw(0, 2) == 0; /* weights that come with the run */
        snprintf(text, sizeof text,
                 "graph g (x: f32[2, %d%s]%s w: f32[%d, %d%s]%s b: f32[%d] = random(6, -1, 1); v = "
                 "ConvTranspose(x, w, b) {group: %d, "
                 "kernel_shape: [%s], strides: [%s], pads: [%s%s], output_padding: [%s], dilations: [%s]}; y "
                 "= Relu(v); }",
                 c, size, late ? "," : ") -> y {", c, m, kernel, late ? ") -> y {" : " = random(4, -1, 1);",
                 g * m, g, shape, stride, low, high, more, dilation);
        terms(text, 8);
        if (!dilated) assert_int_equal(twin_check_terms(text, twin_input, 8 * 0x1p-24, "interpret"), 0);
    }
}
static void one_place(void **state) { /* a window that fits once */
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int c = draw(1, 30), m = draw(2, 60), k = draw(1, 5), pad = draw(0, 2);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d]) -> y { w: f32[%d, %d, %d] = random(4, -1, 1); b: f32[%d] = "
                 "random(6, -1, 1); v = Conv(x, w, "
                 "b) {pads: [%d, %d], strides: [%d]}; y = Relu(v); }",
                 draw(1, 2), c, k, m, c, k, m, pad, pad, 2 * pad + 1);
        check(text);
    }
}
/* narrowed at the end of the sum, and read back at once; whole numbers, whose sums are exact: else one may
   round to another byte */
static void quantized(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int c = draw(2, 9), m = draw(1, 30), h = draw(3, 12), w = draw(3, 40), depthwise = draw(0, 1);
        bool byte = draw(0, 1);
        tactic = depthwise ? "depthwise" : "direct conv"; /* products of floats, bytes behind them */
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, %d, %d, %d]) -> y { i: i8[%d, %d, 3, 3] = random(4, -3, 3); b: f32[%d] "
                 "= random(6, -1, 1); s: f32[] "
                 "= {0.12371}; z: %s[] = {%d}; w = Cast(i) {to: f32}; a = Round(x); v = Conv(a, w, b) "
                 "{group: %d, pads: [1, 1, 1, 1]}; r = "
                 "Relu(v); q = QuantizeLinear(r, s, z); y = DequantizeLinear(q, s, z); }",
                 c, h, w, depthwise ? c : m, depthwise ? 1 : c, depthwise ? c : m, byte ? "u8" : "i8",
                 byte ? 121 : -3, depthwise ? c : 1);
        check(text);
    }
}
static const char *byte(int *lo, int *hi) {
    bool is_signed = draw(0, 1);
    *lo = is_signed ? -128 : 0, *hi = is_signed ? 127 : 255;
    return is_signed ? "i8" : "u8";
}
static void integer_conv(void **state) {
    (void)state;
    tactic = "contract int8";
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int lo[3], hi[3], depthwise = draw(0, 2) == 0, g = depthwise ? draw(2, 9) : draw(1, 2),
                          c = depthwise ? g : g * draw(1, 12), m = depthwise ? g : g * draw(1, 18),
                          kh = draw(1, 3), kw = draw(1, 4), h = draw(5, 12), w = draw(5, 40);
        const char *x = byte(lo, hi), *k = byte(lo + 1, hi + 1), *y = byte(lo + 2, hi + 2);
        char tail[512];
        snprintf(tail, sizeof tail,
                 "{group: %d, strides: [%d, %d], dilations: [%d, 1], pads: [%d, %d, %d, %d]}", g, draw(1, 2),
                 draw(1, 3), draw(1, 2), draw(0, 2), draw(0, 2), draw(0, 2), draw(0, 2));
        /* weights that come with the run; a zero point for each channel */
        bool late = draw(0, 3) == 0, each = draw(0, 1);
        char weights[256] = "", many[16] = "";
        if (each) snprintf(many, sizeof many, "%d", m);
        if (!late)
            snprintf(weights, sizeof weights, "w: %s[%d, %d, %d, %d] = random(%d, %d, %d);", k, m, c / g, kh,
                     kw, round, lo[1], hi[1]);
        else snprintf(weights, sizeof weights, ", w: %s[%d, %d, %d, %d]", k, m, c / g, kh, kw);
        int xz = draw(lo[0], hi[0]), zero_lo = draw(0, 1) ? 0 : lo[1], zero_hi = zero_lo ? hi[1] : 0;
        char wz[128];
        if (each) snprintf(wz, sizeof wz, "wz: %s[%d] = random(8, %d, %d);", k, m, zero_lo, zero_hi);
        else snprintf(wz, sizeof wz, "wz: %s[] = {%d};", k, draw(zero_lo, zero_hi));
        snprintf(
            text, sizeof text,
            "graph g (x: %s[2, %d, %d, %d]%s) -> y, z { %s xs: f32[] = {0.02}; xz: %s[] = {%d}; ws: f32[%s] "
            "= %s; %s ys: f32[] = "
            "{1.31}; yz: %s[] = {%d}; b: i32[%d] = random(5, -9000, "
            "9000); y = QLinearConv(x, xs, xz, w, ws, wz, ys, yz, b) %s; z = ConvInteger(x, w, xz%s) %s; }",
            x, c, h, w, late ? weights : "", late ? "" : weights, x, xz, many,
            each ? "random(7, 0.01, 0.03)" : "{0.021}", wz, y, draw(lo[2], hi[2]), m, tail,
            each && draw(0, 1) ? "" : ", wz", tail);
        check_exact(text);
    }
}
static void integer_matmul(void **state) {
    (void)state;
    tactic = "contract int8";
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int lo[3], hi[3], m = draw(1, 70), n = draw(1, 90), k = draw(1, 300);
        const char *a = byte(lo, hi), *b = byte(lo + 1, hi + 1), *y = byte(lo + 2, hi + 2);
        bool late = draw(0, 1), each = draw(0, 1);
        char weights[128];
        if (late) snprintf(weights, sizeof weights, ", b: %s[%d, %d]", b, k, n);
        else
            snprintf(weights, sizeof weights, "b: %s[%d, %d] = random(%d, %d, %d);", b, k, n, round, lo[1],
                     hi[1]);
        char dim[16] = "";
        if (each) snprintf(dim, sizeof dim, "%d", n);
        snprintf(text, sizeof text,
                 "graph g (a: %s[2, %d, %d]%s) -> y, z { %s as: f32[] = {0.02}; az: %s[] = {%d}; bs: f32[%s] "
                 "= %s; bz: %s[%s] = random(8, "
                 "%d, %d); ys: f32[] = {2.1}; yz: %s[] = {%d}; y = "
                 "QLinearMatMul(a, as, az, b, bs, bz, ys, yz); z = MatMulInteger(a, b, az, bz); }",
                 a, m, k, late ? weights : "", late ? "" : weights, a, draw(lo[0], hi[0]), dim,
                 each ? "random(7, 0.01, 0.03)" : "{0.021}", b, dim, lo[1], hi[1], y, draw(lo[2], hi[2]));
        check_exact(text);
    }
}
/* the result may lie on the residual, but not where that is also what is convolved */
static void residual(void **state) {
    (void)state;
    for (int round = 0; round < ROUNDS; round++) {
        int c = draw(2, 20), h = draw(3, 40), w = draw(3, 40);
        snprintf(text, sizeof text,
                 "graph g (i: f32[1, %d, %d, %d]) -> y { w: f32[%d, %d, 3, 3] = random(4, -1, 1); x = "
                 "Tanh(i); v = Conv(x, w) {pads: [1, "
                 "1, 1, 1]}; s = Add(v, x); r = Relu(s); u = Conv(r, w) {pads: [1, 1, 1, 1]}; a = Add(u, i); "
                 "y = Neg(a); }",
                 c, h, w, c, c);
        check(text);
        int k = draw(1900, 5000); /* more of K than goes at once, and the result on the residual */
        snprintf(text, sizeof text,
                 "graph g (i: f32[%d, %d]) -> y { e: f32[%d, %d] = random(3, -0.1, 0.1); w: f32[%d, %d] = "
                 "random(4, -1, 1); b: f32[%d] = "
                 "random(5, -1, 1); o: f32[%d, 3] = random(6, -0.1, 0.1); q = Tanh(i); x = MatMul(q, e); v = "
                 "MatMul(x, w); s = Add(v, b); "
                 "%s; y = MatMul(a, o); }",
                 h, c, c, k, k, c, c, c, round % 2 ? "a = Add(s, q)" : "g = Gelu(s); a = Add(q, g)");
        check(text);
    }
}
/* What lies channels last between its first and its last node: windows, groups, one filter a channel, pools,
   joins, gates, residuals. */
static void pictures(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int n = draw(1, 2), c = draw(1, 5), g = draw(1, 2), m = g * draw(1, 40), h = draw(5, 19),
            w = draw(5, 23), k = draw(1, 5), d = draw(1, 2), o = draw(1, 90), s = draw(1, 2);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d]) -> y, z { wa: f32[%d, %d, %d, %d] = random(%d, -1, 1); "
                 "ba: f32[%d] = random(2, -1, 1); "
                 "wd: f32[%d, 1, 3, %d] = random(4, -1, 1); bd: f32[%d] = random(6, -1, 1); wg: f32[%d, %d, "
                 "3, 3] = random(7, -1, 1); wo: "
                 "f32[%d, %d, 1, 1] = random(5, -1, 1); bo: f32[%d] = random(3, -1, 1); lo: f32[] = {0}; hi: "
                 "f32[] = {6}; a = Conv(x, wa, "
                 "ba) {strides: [%d, 1], pads: [%d, %d, %d, %d]}; e = Clip(a, lo, hi); f = Conv(e, wd, bd) "
                 "{group: %d, dilations: [%d, 1], "
                 "pads: [%d, %d, %d, %d]}; i = HardSwish(f); j = Add(i, e); l = Conv(j, wg) {group: %d, "
                 "pads: [1, 1, 1, 1]}; p = MaxPool(l) "
                 "{kernel_shape: [3, 2], pads: [1, 0, 1, 1]}; q = AveragePool(l) {kernel_shape: [3, 3], "
                 "pads: [1, 1, 1, 1]}; r = Concat(p, "
                 "q) {axis: 1}; t = GlobalAveragePool(r); u = Sigmoid(t); v = Mul(r, u); aa = Conv(v, wo, "
                 "bo); y = Relu(aa); z = "
                 "ReduceMax(v); }",
                 n, c, h, w, m, c, k, k, round + 9, m, m, k, m, m, m / g, o, 2 * m, o, s, k / 2, k / 2, k / 2,
                 k - 1 - k / 2, m, d, d, (k - 1) / 2, d, k / 2, g);
        check(text);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d]) -> y { wa: f32[%d, %d, %d] = random(%d, -1, 1); ba: f32[%d] = "
                 "random(2, -1, 1); wd: f32[%d, "
                 "1, %d] = random(4, -1, 1); a = Conv(x, wa, ba) {strides: [%d], pads: [%d, 0]}; e = "
                 "Tanh(a); f = Conv(e, wd) {group: %d, "
                 "pads: [%d, 1]}; i = Relu(f); t = Transpose(i) {perm: [0, 2, 1]}; y = Softmax(t); }",
                 n, c, w + 9, m, c, k, round + 9, m, m, k, s, k, m, k);
        check_softmax(text, c * k * k);
    }
}
/* An activation of one product times another: on that one, which nobody else reads, or beside it; with and
   without a bias; few rows, many, K in parts. */
static void gated(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < 3 * ROUNDS; round++) {
        const int k = draw(0, 9) ? draw(1, 90) : 2100,
                  m = draw(0, 5) || k > 90 ? draw(1, 80) : draw(250, 300),
                  n = draw(0, 3) ? draw(30, 130) : draw(1, 29);
        static const char *const act[] = {"s = Sigmoid(h); a = Mul(h, s);", "a = Gelu(h);",
                                          "a = Sigmoid(h);"};
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d]) -> y%s { v: f32[%d, %d] = random(1, -1, 1); w: f32[%d, %d] = "
                 "random(2, -1, 1); c: f32[%d] = "
                 "random(3, "
                 "-1, 1); u = MatMul(x, v); p = MatMul(x, w); %s %s y = Mul(a, u); }",
                 m, k, draw(0, 1) ? ", u" : "", k, n, k, n, n,
                 draw(0, 1) ? "h = Add(p, c);" : "h = Identity(p);", act[draw(0, 2)]);
        check(text);
    }
}
/* Rows that are scaled by channel before a product: by it, where it turns rows and nobody else reads them
   (no step "scale" is left), else by a step of its own. Parts of a join, every second pixel, numbers that
   only the run knows. */
static void scaled(void **state) {
    (void)state;
    static const char *const how[] = {"i = Mul(e, s); j = Add(i, t); r = Relu(j);",
                                      "i = Mul(e, s); j = Add(i, t); r = Clip(j, lo, hi);",
                                      "i = GlobalAveragePool(e); j = Sigmoid(i); r = Mul(e, j);"};
    EACH_F32_LEVEL for (int round = 0; round < 3 * ROUNDS; round++) {
        const bool fixed = round < 6; /* which are to be found */
        const int c = fixed ? 40 : draw(1, 40), d = fixed ? 24 : draw(1, 40), o = fixed ? 72 : draw(1, 140),
                  h = fixed ? 9 : draw(1, 12), w = fixed ? 8 : draw(1, 12), n = fixed ? 1 : draw(1, 2),
                  other = round % 2;
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, 3, %d, %d]) -> y%s { wa: f32[%d, 3, 1, 1] = random(1, -1, 1); wb: "
                 "f32[%d, 3, 1, 1] = random(2, -1, 1); "
                 "wo: "
                 "f32[%d, %d, 1, 1] = random(3, -1, 1); s: f32[1, %d, 1, 1] = random(4, -1, 1); t: f32[1, "
                 "%d, 1, 1] = random(5, -1, 1); wq: "
                 "f32[5, %d, 3, 3] = random(6, -1, 1); lo: f32[] = {-0.25}; hi: f32[] = {0.5}; a = Conv(x, "
                 "wa); b = Conv(x, wb); e = Concat(a, "
                 "b) {axis: 1}; %s u = Conv(r, wo) "
                 "{strides: [%d, %d]}; v = Relu(u); y = Conv(v, wq) {pads: [1, 1, 1, 1]};%s }",
                 n, h, w, other ? ", z" : "", c, d, o, c + d, c + d, c + d, o, how[round % 3],
                 1 + round % 4 / 3, 1 + round % 4 / 3, other ? " z = ReduceMax(r);" : "");
        const bool step = twin_check_terms(text, twin_input, 16 * 0x1p-24, "channel affine");
        /* limits that are inputs are tile code's */
        if (fixed && round % 3 != 1) assert_int_equal(step, other || !hone_gemm_f32_best()->pack_a);
    }
}
/* The same where what is scaled is also added to the result, which would like to lie on it: but others' rows
   are still to be read there. */
static void scaled_residual(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        const int c = round ? 4 * draw(17, 40) : 512, h = round ? draw(5, 9) : 3;
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, 3, %d, %d]) -> y { wa: f32[%d, 3, 1, 1] = random(1, -1, 1); wo: f32[%d, "
                 "%d, 1, 1] = random(3, -0.1, 0.1); "
                 "s: "
                 "f32[1, %d, 1, 1] = random(4, -1, 1); t: f32[1, %d, 1, 1] = random(5, -1, 1); wq: f32[5, "
                 "%d, 3, 3] = random(6, -0.1, 0.1); a = "
                 "Conv(x, wa); e = HardSwish(a); i = Mul(e, s); j = Add(i, t); r = Relu(j); u = Conv(r, wo); "
                 "v = Add(u, e); y = Conv(v, wq) "
                 "{pads: [1, 1, 1, 1]}; }",
                 h, h, c, c, c, c, c, c);
        check(text);
    }
}
/* Weights so large that threads share their packing: the first who binds has many, or is alone. */
static void large_weights(void **state) {
    (void)state;
    snprintf(text, sizeof text,
             "graph g (x: f32[2, 3, 700], p: f32[1, 96, 9, 9]) -> y, z { w: f32[2, 700, 603] = random(1, -1, "
             "1); k: f32[148, 96, 3, 3] = "
             "random(2, -1, 1); y = MatMul(x, w); z = Conv(p, k); }");
    EACH_F32_LEVEL {
        hone_compiled *c = twin_compile(text), *again = twin_compile(text);
        hone_value *in[2], *want[2] = {0}, *terms_of[2] = {0}, *one[2] = {0}, *many[2] = {0};
        for (int k = 0; k < 2; k++) in[k] = twin_input(c->graph, k);
        twin_run(c, in, 24, false, many, NULL, text), twin_run(again, in, 1, false, one, NULL, text),
            twin_run(c, in, 1, true, want, NULL, text);
        twin_terms(text, in, 2, terms_of);
        for (int k = 0; k < 2; k++) {
            twin_same_bits(one[k], many[k], "packed by one thread and by many", text);
            twin_within(many[k], want[k], terms_of[k], 16 * 0x1p-24, text);
            hone_value_drop(in[k]), hone_value_drop(want[k]), hone_value_drop(terms_of[k]);
            hone_value_drop(one[k]), hone_value_drop(many[k]);
        }
        hone_compiled_destroy(c), hone_compiled_destroy(again);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(scaled),
                                       cmocka_unit_test(large_weights),
                                       MEETS(pictures),
                                       MEETS(matmul),
                                       MEETS(transposed),
                                       MEETS(conv),
                                       MEETS(depthwise),
                                       MEETS(transposed_conv),
                                       MEETS(residual),
                                       MEETS(one_place),
                                       MEETS(quantized),
                                       MEETS(integer_conv),
                                       MEETS(integer_matmul),
                                       MEETS(activations),
                                       MEETS(rows_and_panels),
                                       MEETS(few_channels),
                                       MEETS(gated),
                                       MEETS(scaled_residual)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
