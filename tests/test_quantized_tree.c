/* SPDX-License-Identifier: Apache-2.0
   Element-wise stages between floats and 8 bits whose operands are broadcast, or that round twice, against
   the definition and to the bit: sums and products of bytes, floats and numbers, one a channel, a row, a
   column or all; u8 and i8; scales from tiny to huge, NaN and infinities; odd sizes, long and prime periods;
   every CPU level, any number of threads. */
#include "twin.h"

static char text[4096];
static float strange(void) {
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, 3e38f, -3e38f};
    const int k = draw(0, 39);
    return k < 8 ? odd[k] : number();
}
static bool tame;
static hone_value *input(const hone_graph *g, int k) {
    hone_value *x = twin_input(g, k);
    for (int64_t q = 0; !tame && x->dtype == HONE_DTYPE_F32 && q < hone_value_count(x); q++)
        ((float *)x->data)[q] = strange();
    return x;
}
static void check(int others) { /* so many small steps may be tile code */
    const int met = twin_check(text, input, 0, 0, "quantized elementwise"),
              left = twin_check(text, input, 0, 0, "tile");
    if (!met || left > others) fail_msg("%d steps are rows and %d are tile code in\n%s", met, left, text);
}
static const char *const types[] = {"u8", "i8"};
/* Pictures that a convolution which changes nothing makes lie channels last, times something a channel. */
static void factors(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < (SLOW ? 6 : 24); round++) {
        const int c = round == 3 ? 600 : draw(8, 90), h = draw(3, 11), w = draw(3, 11);
        const char *t = types[round % 2];
        static const char *const between[] = {"", "m = Relu(p);",
                                              "lo: f32[] = {-0.3}; hi: f32[] = {1.7}; m = Clip(p, lo, hi);"};
        const char *clamp = between[round % 3];
        tame = round % 4 != 0;
        snprintf(text, sizeof text,
                 "graph g (x: %s[1, %d, %d, %d], a: f32[1, %d, 1, 1]) -> y { s: f32[] = {0.02}; z: %s[] = "
                 "{%d}; r: f32[] = {%g}; w: i8[%d, "
                 "1, 1, 1] = random(1, 1, 1); "
                 "o: i8[] = {0}; one: f32[] = {1}; q = QLinearConv(x, one, z, w, one, o, one, z) {group: "
                 "%d}; d = DequantizeLinear(q, s, "
                 "z); p = Mul(%s); %s "
                 "b = QuantizeLinear(%s, r, z); y = QLinearConv(b, one, z, w, one, o, one, z) {group: %d}; }",
                 t, c, h, w, c, t, draw(0, 100), (double)draw(1, 50) / 700, c, c, round & 1 ? "a, d" : "d, a",
                 clamp, *clamp ? "m" : "p", c);
        check(4);
    }
}
/* Row-major tensors of all kinds of broadcast. */
static void broadcasts(void **state) {
    (void)state;
    static const char *const shapes[] = {"2, 3, 5, 33", "1, 3, 5, 33", "2, 1, 1, 33", "2, 3, 1, 33",
                                         "1, 1, 5, 33", "2, 3, 5, 1",  "1, 3, 1, 1",  "1, 1, 1, 1"};
    EACH_LEVEL for (int k = 0; k < 8; k++) for (int form = 0; form < 4; form++) {
        const char *t = types[(k + form) % 2], *op = k % 3 == 1 ? "Mul" : "Add";
        tame = k % 2;
        if (form < 2) /* bytes and bytes */
            snprintf(text, sizeof text,
                     "graph g (x: %s[2, 3, 5, 33], v: %s[%s]) -> y { s: f32[] = {0.02}; z: %s[] = {%d}; r: "
                     "f32[] = {0.013}; u: %s[] = "
                     "{%d}; a = DequantizeLinear(x, s, z); b = "
                     "DequantizeLinear(v, r, u); p = %s(%s); y = QuantizeLinear(p, s, u); }",
                     t, t, shapes[k], t, draw(0, 100), t, draw(0, 100), op, form ? "a, b" : "b, a");
        else if (form == 2) /* floats and floats, as a mask is added to scores */
            snprintf(text, sizeof text,
                     "graph g (x: f32[2, 3, 5, 33], v: f32[%s]) -> y { s: f32[] = {%g}; z: %s[] = {%d}; p = "
                     "%s(x, v); y = "
                     "QuantizeLinear(p, s, z); }",
                     shapes[k], k % 2 ? 0.011 : 1.3e36, t, draw(0, 100), op);
        else /* bytes and floats, stays floats */
            snprintf(text, sizeof text,
                     "graph g (x: %s[2, 3, 5, 33], v: f32[%s]) -> y { s: f32[] = {0.02}; z: %s[] = {%d}; a = "
                     "DequantizeLinear(x, s, z); y "
                     "= %s(v, a); }",
                     t, shapes[k], t, draw(0, 100), op);
        check(1);
    }
}
static void periods(void **state) { /* long ones, and such as have no parts */
    (void)state;
    static const int wide[] = {16, 31, 511, 512, 513, 769, 1024, 1543};
    EACH_LEVEL for (size_t k = 0; k < sizeof wide / sizeof *wide; k++) for (int form = 0; form < 2; form++) {
        tame = true;
        snprintf(text, sizeof text,
                 "graph g (x: u8[7, %d], v: %s[%d]) -> y { s: f32[] = {0.02}; z: u8[] = {9}; r: f32[] = "
                 "{0.7}; a = DequantizeLinear(x, s, "
                 "z); %s p = Mul(a, %s); q = Add(p, r); "
                 "y = QuantizeLinear(q, s, z); }",
                 wide[k], form ? "u8" : "f32", wide[k], form ? "b = DequantizeLinear(v, s, z);" : "",
                 form ? "b" : "v");
        check(1);
    }
}
static void twice(void **state) { /* rounded, read back, and rounded again or not */
    (void)state;
    EACH_LEVEL for (int round = 0; round < (SLOW ? 6 : 20); round++) {
        const char *t = types[round % 2], *u = types[round / 2 % 2];
        tame = round % 3 == 0;
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d]) -> y, w { s: f32[] = {%g}; z: %s[] = {%d}; r: f32[] = {%g}; v: "
                 "%s[] = {%d}; a = "
                 "QuantizeLinear(x, s, z); b = DequantizeLinear(a, s, z); "
                 "y = QuantizeLinear(b, r, v); e = Neg(x); c = QuantizeLinear(e, s, z); w = "
                 "DequantizeLinear(c, s, z); }",
                 draw(3, 40), draw(30, 200), round % 5 == 4 ? 1e-30 : (double)draw(1, 30) / 900, t,
                 draw(0, 100), (double)draw(1, 30) / 900, u, draw(0, 100));
        twin_check(text, input, 0, 0, "quantized elementwise");
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d]) -> y { s: f32[] = {%g}; z: %s[] = {%d}; r: f32[] = {%g}; v: %s[] "
                 "= {%d}; a = QuantizeLinear(x, "
                 "s, z); b = DequantizeLinear(a, s, z); "
                 "y = QuantizeLinear(b, r, v); }",
                 draw(3, 40), draw(30, 200), (double)draw(1, 30) / 900, t, draw(0, 100),
                 (double)draw(1, 30) / 900, u, draw(0, 100));
        check(0);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(factors), cmocka_unit_test(broadcasts),
                                       cmocka_unit_test(periods), cmocka_unit_test(twice)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
