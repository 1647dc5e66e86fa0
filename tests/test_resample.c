/* SPDX-License-Identifier: Apache-2.0
   Resampling by tables, against the definition: Resize of all modes and places, mirrored Pad, on pictures
   that lie channels last and row-major, odd sizes, one and three axes; every CPU level, any number of
   threads; integers too, of plain numbers. What depends on data, or lies outside, is left to others. And its
   kernels alone. */
#include "kernels/pool.h"

#include "twin.h"

static char text[2048];
/* Between convolutions pictures lie channels last; alone they are row-major. How many steps resampled. */
static int run(bool last, int channels, const char *dims, const char *ones, const char *constants,
               const char *op, double tolerance) {
    if (last)
        snprintf(text, sizeof text,
                 "graph g (x: f32[2, %d, %s], w: f32[%d, 1, %s]) -> y { %s; t = Conv(x, w) {group: %d}; p = "
                 "%s; y = Conv(p, w) {group: %d}; }",
                 channels, dims, channels, ones, constants, channels, op, channels);
    else
        snprintf(text, sizeof text, "graph g (t: f32[2, %d, %s]) -> p { %s; p = %s; }", channels, dims,
                 constants, op);
    return twin_check(text, twin_input, tolerance, tolerance, "resample");
}
static void check(int channels, const char *dims, const char *ones, const char *constants, const char *op,
                  double tolerance) {
    for (int last = 0; last < 2; last++)
        if (run(last, channels, dims, ones, constants, op, tolerance) != 1)
            fail_msg("not one step resamples in\n%s", text);
}
static void modes(void **state) {
    (void)state;
    static const char *const mode[] = {"linear", "cubic", "nearest"},
                             *const near[] = {"floor", "ceil", "round_prefer_floor", "round_prefer_ceil"},
                             *const places[] = {"half_pixel", "asymmetric", "align_corners",
                                                "pytorch_half_pixel", "half_pixel_symmetric"};
    char dims[32], op[512], sizes[64];
    EACH_LEVEL for (int round = 0; round < twin_rounds(9, 24, 45); round++) {
        snprintf(dims, sizeof dims, "%d, %d", draw(3, 9), draw(3, 12));
        snprintf(sizes, sizeof sizes, "s: i64[2] = {%d, %d}", draw(13, 20), draw(13, 40));
        snprintf(op, sizeof op,
                 "Resize(t, _, _, s) {mode: \"%s\", coordinate_transformation_mode: \"%s\", nearest_mode: "
                 "\"%s\", axes: [2, 3], "
                 "cubic_coeff_a: %g}",
                 mode[round % 3], places[draw(0, 4)], near[draw(0, 3)], draw(0, 1) ? -0.5 : -0.75);
        check(draw(4, 40), dims, "1, 1", sizes, op, 1e-4);
    }
}
static void smaller(void **state) { /* y has fewer pixels than x: places far apart */
    (void)state;
    EACH_LEVEL {
        check(19, "31, 40", "1, 1", "s: i64[2] = {7, 11}",
              "Resize(t, _, _, s) {mode: \"linear\", axes: [2, 3]}", 1e-4);
        check(5, "31, 40", "1, 1", "s: i64[2] = {30, 9}",
              "Resize(t, _, _, s) {mode: \"cubic\", axes: [2, 3]}", 1e-4);
        run(false, 3, "31, 900", "1, 1", "s: i64[2] = {30, 3}",
            "Resize(t, _, _, s) {mode: \"nearest\", axes: [2, 3]}", 0);
    }
}
static void other_axes(void **state) {
    (void)state;
    EACH_LEVEL {
        check(9, "21", "1", "s: i64[1] = {50}", "Resize(t, _, _, s) {mode: \"linear\", axes: [2]}", 1e-4);
        check(6, "5, 6, 7", "1, 1, 1", "s: i64[3] = {9, 7, 15}",
              "Resize(t, _, _, s) {mode: \"linear\", axes: [2, 3, 4]}", 1e-4);
        /* one axis of two */
        check(8, "9, 7", "1, 1", "s: i64[1] = {30}", "Resize(t, _, _, s) {mode: \"cubic\", axes: [2]}", 1e-4);
        check(8, "9, 7", "1, 1", "s: f32[4] = {1, 1, 2, 3}",
              "Resize(t, _, s) {mode: \"nearest\", coordinate_transformation_mode: \"asymmetric\", "
              "nearest_mode: \"floor\"}",
              0);
        check(8, "9, 7", "1, 1", "k: i64[8] = {0, 0, 3, 2, 0, 0, 4, 6}", "Pad(t, k) {mode: \"reflect\"}", 0);
        check(8, "9, 7", "1, 1", "k: i64[8] = {0, 0, 3, 2, 0, 0, 4, 6}", "Pad(t, k) {mode: \"edge\"}", 0);
    }
}
/* any integers, all of their bytes */
static hone_value *any_integers(const hone_graph *g, int k) {
    hone_value *x = twin_input(g, k);
    for (size_t q = 0; q < x->bytes && x->dtype != HONE_DTYPE_F32; q++)
        ((uint8_t *)x->data)[q] = (uint8_t)draw(0, 255);
    return x;
}
static void takes(const char *op, int tolerance) {
    if (twin_check(text, any_integers, tolerance, 0, "resample") != 1)
        fail_msg("not one step resamples by %s in\n%s", op, text);
}
/* Plain integers, one rounding: pictures row-major, channels last, and tokens that are seen as a picture,
   whose values lie far apart; of floats too. */
static void integers(void **state) {
    (void)state;
    static const char *const types[] = {"u8", "i8", "u16", "i16", "f32"},
                             *const wide[] = {"i32", "i64", "u32", "f64", "f16"},
                             *const places[] = {"half_pixel", "asymmetric", "align_corners"};
    EACH_LEVEL for (int round = 0; round < twin_rounds(6, 14, 24); round++) {
        const int c = draw(9, 24), h = draw(3, 7), w = draw(3, 8), oh = draw(3, 8), ow = draw(13, 24);
        const bool nearest = draw(0, 3) == 0, cubic = draw(0, 1), all = draw(0, 1) && (nearest || !cubic);
        const char *type = types[draw(0, 4)], *mode = nearest ? "nearest" : cubic ? "cubic" : "linear";
        char op[256];
        snprintf(op, sizeof op, "Resize(t, _, _, s) {mode: \"%s\", coordinate_transformation_mode: \"%s\"%s}",
                 mode, places[draw(0, 2)], all ? "" : ", axes: [2, 3]");
        char sizes[64];
        if (all) snprintf(sizes, sizeof sizes, "s: i64[4] = {1, %d, %d, %d}", c, oh, ow);
        else snprintf(sizes, sizeof sizes, "s: i64[2] = {%d, %d}", oh, ow);
        const int much = nearest ? 0 : 1;
        snprintf(text, sizeof text, "graph g (t: %s[1, %d, %d, %d]) -> y { %s; y = %s; }", type, c, h, w,
                 sizes, op);
        if (strcmp(type, "f32")) takes("rows", much);
        snprintf(text, sizeof text,
                 "graph g (x: %s[1, %d, %d]) -> y { %s; r: i64[4] = {1, %d, %d, %d}; u = Transpose(x) {perm: "
                 "[0, 2, 1]}; t = Reshape(u, r); y = %s; }",
                 type, h * w, c, sizes, c, h, w, op);
        if (strcmp(type, "f32")) takes("values that lie apart", much);
        else if (twin_check(text, twin_input, 1e-4, 1e-4, "resample") != 1) fail_msg("floats:\n%s", text);
        if (strcmp(type, "u8") && strcmp(type, "i8")) type = "u8";
        snprintf(
            text, sizeof text,
            "graph g (x: %s[1, %d, %d, %d]) -> y { %s; k: f32[] = {1}; z: %s[] = {0}; o: i8[] = {0}; w: "
            "i8[%d, 1, 1, 1] = random(1, 1, 1); t = QLinearConv(x, k, z, w, k, o, k, z) {group: %d}; v = "
            "%s; y = QLinearConv(v, k, z, w, k, o, k, z) {group: %d}; }",
            type, c, h, w, sizes, type, c, c, op, c);
        takes("pixels", much);
        type = wide[draw(0, 4)];
        snprintf(text, sizeof text,
                 "graph g (t: %s[1, %d, %d, %d]) -> y { s: i64[2] = {%d, %d}; y = Resize(t, _, _, s) {mode: "
                 "\"nearest\", axes: [2, 3]}; }",
                 type, c, h, w, oh, ow);
        takes("other types", 0);
    }
}
static void left_alone(void **state) { /* weights that are sums of others; what lies outside; other types */
    (void)state;
    assert_int_equal(run(false, 3, "31, 40", "1, 1", "s: i64[2] = {7, 11}",
                         "Resize(t, _, _, s) {mode: \"linear\", axes: [2, 3], antialias: 1}", 1e-4),
                     0);
    assert_int_equal(run(false, 3, "8, 9", "1, 1", "s: i64[2] = {17, 11}",
                         "Resize(t, _, _, s) {mode: \"cubic\", axes: [2, 3], exclude_outside: 1}", 1e-4),
                     0);
    assert_int_equal(run(false, 3, "8, 9", "1, 1", "k: i64[8] = {0, 0, 3, 2, 0, 0, 4, 6}", "Pad(t, k)", 0),
                     0);
}
/* A user's op on bytes less their zero point: by tables where weights add up to 1, for the zero point is
   taken off once there; else by tile code, with the same answers. */
static void sums(void **state) {
    (void)state;
    static const struct {
        const char *name, *weights;
        int steps;
    } ops[] = {{"Mean", "0.5, 0.25", 1}, {"More", "1.0, 0.75", 0}, {"Less", "0.5, -0.125", 0}};
    for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
        char row[512];
        snprintf(row, sizeof row,
                 "op my.blur.%s 1 (x[I, N]: A, xs[]: f32, xz[]: A, ys[]: f32, yz[]: A) -> y[I, N]: A\n"
                 "  A: i8 u8 i16 u16\n  h[n, k : 3] = f32(select(k == 1, %s))\n"
                 "  total = sum(k : 3) h[n, k] * f32(x[i, clamp(n + k - 1, 0, N - 1)] - xz[])\n"
                 "  y[i, n] = sat(round(total * (xs[] / ys[])) + yz[])\n",
                 ops[k].name, ops[k].weights);
        if (hone_library_extend(ops[k].name, row, strlen(row))) fail_msg("%s", hone_fail_text());
        EACH_LEVEL for (int type = 0; type < 2; type++) {
            const char *const t = type ? "i8" : "u8";
            snprintf(text, sizeof text,
                     "graph g (x: %s[7, 45]) -> y { s: f32[] = {0.02}; z: %s[] = {%d}; r: f32[] = {0.05}; o: "
                     "%s[] = {3}; y = my.blur.%s(x, s, z, r, o); }",
                     t, t, type ? -90 : 200, t, ops[k].name);
            const int met = twin_check(text, any_integers, 1, 0, "resample");
            if (met != ops[k].steps) fail_msg("%d steps resample, not %d, in\n%s", met, ops[k].steps, text);
        }
    }
}
/* One place a value, and a weight that is not 1. */
static void one_place(void **state) {
    (void)state;
    static const char row[] =
        "op my.pick.Half 1 (x[I, N]: f32) -> y[I, N]: f32\n"
        "  h[i, n, l : 1, k : 1] = select(i < 3, 0.5, 0.125) * select(n < 5, 0.5, 0.25)\n"
        "  y[i, n] = sum(l : 1, k : 1) h[i, n, l, k] * "
        "x[clamp(I - 1 - i - l, 0, I - 1), clamp(N - 1 - n - k, 0, N - 1)]\n";
    if (hone_library_extend("Half", row, strlen(row))) fail_msg("%s", hone_fail_text());
    snprintf(text, sizeof text, "graph g (x: f32[7, 45]) -> y { y = my.pick.Half(x); }");
    EACH_LEVEL if (twin_check(text, twin_input, 0, 0, "resample") != 1)
        fail_msg("not one step resamples in\n%s", text);
}
static void kernels(void **state) {
    (void)state;
    enum { ROOM = 100, TAPS = 5 };
    float x[TAPS][ROOM], w[TAPS * ROOM], y[ROOM + 1], want;
    const float *rows[TAPS];
    int32_t at[TAPS * ROOM];
    for (const hone_pool *k = hone_pool_list; k->name; k++) {
        if (k->cpu & ~hone_cpu()) continue;
        for (int n = 1; n < ROOM; n++) {
            const int taps = draw(1, TAPS);
            for (int t = 0; t < TAPS; t++)
                for (int j = 0; j < ROOM; j++)
                    x[t][j] = number(), w[t * ROOM + j] = number(), at[t * ROOM + j] = draw(0, ROOM - 1),
                    rows[t] = x[t];
            y[n] = 7;
            k->blend(rows, w, taps, n, y);
            for (int j = 0; j < n; j++) {
                want = 0;
                for (int t = 0; t < taps; t++) want += w[t] * x[t][j];
                assert_float_equal(y[j], want, 1e-4);
            }
            k->pick(x[0], at, w, taps, n, y);
            for (int j = 0; j < n; j++) {
                want = 0;
                for (int t = 0; t < taps; t++) want += w[t * n + j] * x[0][at[t * n + j]];
                assert_float_equal(y[j], want, 1e-4);
            }
            k->pick(x[0], at, NULL, 1, n, y);
            for (int j = 0; j < n; j++) assert_true(y[j] == x[0][at[j]]);
            assert_true(y[n] == 7); /* nothing behind */
        }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(modes),      cmocka_unit_test(smaller),
                                       cmocka_unit_test(other_axes), cmocka_unit_test(integers),
                                       cmocka_unit_test(left_alone), cmocka_unit_test(sums),
                                       cmocka_unit_test(one_place),  cmocka_unit_test(kernels)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
