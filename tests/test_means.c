/* SPDX-License-Identifier: Apache-2.0
   Averages and resized pictures of integers of 8 and 16 bits, between quantize and dequantize pairs, against
   the definition: windows that hang over, whole pictures, any axes, pictures that lie
   channels last and row-major, odd sizes, extremes of zero points; every CPU level, any number of threads.
   And the kernels alone. */
#include "kernels/epilogue.h"
#include "kernels/pool.h"

#include "twin.h"

static char text[4096];
static const struct {
    const char *name;
    int lowest, highest;
} types[] = {{"u8", 0, 255}, {"i8", -128, 127}, {"u16", 0, 65535}, {"i16", -32768, 32767}};
static int zero_of(int t) {
    return draw(0, 2)   ? draw(types[t].lowest, types[t].highest)
           : draw(0, 1) ? types[t].lowest
                        : types[t].highest;
}
static hone_value *input(const hone_graph *g, int k) { /* any numbers; now and then all the largest */
    hone_value *x = twin_input(g, k);
    const bool full = draw(0, 4) == 0, wide = hone_dtypes[x->dtype].bytes == 2;
    for (int64_t q = 0; q < hone_value_count(x) && wide; q++)
        ((uint16_t *)x->data)[q] = (uint16_t)draw(0, 65535);
    if (full) memset(x->data, x->dtype == HONE_DTYPE_I8 || x->dtype == HONE_DTYPE_U8 ? 0x7f : 0xff, x->bytes);
    return x;
}
/* x is of type a and q of type b; `nodes` make v from floats d. Convolutions around it that change nothing
   make pictures lie channels last. */
static int check(const char *shape, int channels, int rank, int a, int b, bool last, const char *nodes,
                 const char *tactic) {
    static const char *const ones[] = {"1, 1", "1, 1, 1", "1, 1, 1, 1"};
    const double reach = (types[a].highest - types[a].lowest) * 0.01;
    int room;
    if (last)
        room = snprintf(
            text, sizeof text,
            "graph g (x: %s[%s]) -> y { s: f32[] = {0.01}; z: %s[] = {%d}; w: i8[%d, %s] = random(1, 1, 1); "
            "o: i8[] = {0}; one: f32[] = "
            "{1}; "
            "ys: f32[] = {%g}; yz: %s[] = {%d}; t = QLinearConv(x, s, z, w, one, o, s, z) {group: %d}; d = "
            "DequantizeLinear(t, s, z); %s "
            "u = QuantizeLinear(v, ys, yz); y = QLinearConv(u, ys, yz, w, one, o, ys, yz) {group: %d}; }",
            types[a].name, shape, types[a].name, zero_of(a), channels, ones[rank - 1],
            reach / (types[b].highest - types[b].lowest) * draw(3, 12) / 8, types[b].name, zero_of(b),
            channels, nodes, channels);
    else
        room = snprintf(text, sizeof text,
                        "graph g (x: %s[%s]) -> y { s: f32[] = {0.01}; z: %s[] = {%d}; ys: f32[] = {%g}; yz: "
                        "%s[] = {%d}; d = "
                        "DequantizeLinear(x, s, z); %s "
                        "y = QuantizeLinear(v, ys, yz); }",
                        types[a].name, shape, types[a].name, zero_of(a),
                        reach / (types[b].highest - types[b].lowest) * draw(3, 12) / 8, types[b].name,
                        zero_of(b), nodes);
    assert_true(room < (int)sizeof text);
    return twin_check(text, input, !strcmp(tactic, "quantized mean") ? 0 : 1, 0, tactic);
}
static void one(int met) {
    if (met != 1) fail_msg("%d steps are of the tactic, not 1, in\n%s", met, text);
}
static void windows(void **state) {
    (void)state;
    char shape[64], how[512];
    EACH_LEVEL for (int round = 0; round < (SLOW ? 12 : 60); round++) {
        const int kh = draw(1, 5), kw = draw(1, 5), channels = draw(2, 150), a = draw(0, 3), b = draw(0, 3),
                  last = a < 2 && b < 2 && draw(0, 1);
        snprintf(shape, sizeof shape, "%d, %d, %d, %d", draw(1, 2), last ? channels : draw(1, 6), draw(9, 14),
                 last ? draw(9, 14) : draw(9, 70));
        snprintf(how, sizeof how,
                 "v = AveragePool(d) {kernel_shape: [%d, %d], strides: [%d, %d], dilations: [%d, %d], pads: "
                 "[%d, %d, %d, %d], ceil_mode: "
                 "%d, count_include_pad: %d};",
                 kh, kw, draw(1, 3), draw(1, 3), draw(1, 2), draw(1, 2), draw(0, kh - 1), draw(0, kw - 1),
                 draw(0, kh - 1), draw(0, kw - 1), draw(0, 1), draw(0, 1));
        one(check(shape, channels, 2, a, b, last, how, "quantized mean"));
    }
}
static void other_axes(void **state) {
    (void)state;
    EACH_LEVEL for (int a = 0; a < 4; a++) {
        const int b = a < 2 ? draw(0, 1) : draw(0, 3);
        one(check("2, 9, 21", 9, 1, a, b, false,
                  "v = AveragePool(d) {kernel_shape: [4], strides: [3], pads: [1, 2]};", "quantized mean"));
        one(check("2, 17, 5, 6, 7", 17, 3, a, b, a < 2,
                  "v = AveragePool(d) {kernel_shape: [2, 3, 3], pads: [1, 1, 0, 1, 1, 2]};",
                  "quantized mean"));
        one(check("1, 19, 13, 12", 19, 2, a, b, a < 2, "v = AveragePool(d) {kernel_shape: [13, 12]};",
                  "quantized mean"));
        one(check("1, 3, 30, 41", 3, 2, a, b, false,
                  "v = AveragePool(d) {kernel_shape: [17, 19], pads: [8, 9, 8, 9]};", "quantized mean"));
    }
}
static void whole(void **state) {
    (void)state;
    char shape[64], how[256];
    static const char *const axes[] = {"axes: i64[2] = {2, 3};", "axes: i64[1] = {1};",
                                       "axes: i64[1] = {-1};", "axes: i64[2] = {0, 2};",
                                       "axes: i64[3] = {1, 2, 3};"};
    EACH_LEVEL for (int round = 0; round < (SLOW ? 12 : 60); round++) {
        const int channels = draw(2, 150), a = draw(0, 3), which = draw(0, 5);
        const bool last = false;
        snprintf(shape, sizeof shape, "%d, %d, %d, %d", draw(1, 3), channels, draw(1, 20), draw(1, 40));
        if (which == 5) snprintf(how, sizeof how, "v = GlobalAveragePool(d);");
        else snprintf(how, sizeof how, "%s v = ReduceMean(d, axes) {keepdims: %d};", axes[which], draw(0, 1));
        const int met = check(shape, channels, 2, a, draw(0, 3), last, how, "quantized mean");
        assert_true(met <= 1);
    }
}
/* sums of 16 bits that 32 bits do not hold, and of as many bytes as they do */
static void large(void **state) {
    (void)state;
    assert_int_equal(
        check("1, 2, 200, 301", 2, 2, 2, 2, false, "v = GlobalAveragePool(d);", "quantized mean"), 0);
    one(check("1, 2, 200, 301", 2, 2, 0, 0, false, "v = GlobalAveragePool(d);", "quantized mean"));
}
static void pictures(void **state) {
    (void)state;
    char shape[64], how[512];
    static const char *const places[] = {"half_pixel", "align_corners", "asymmetric", "pytorch_half_pixel"};
    EACH_LEVEL for (int round = 0; round < (SLOW ? 10 : 40); round++) {
        const int channels = draw(4, 70), a = draw(0, 3), b = draw(0, 1) ? a : draw(0, 3),
                  last = a < 2 && b < 2 && draw(0, 1), h = draw(2, 12), w = draw(3, 20);
        snprintf(shape, sizeof shape, "%d, %d, %d, %d", draw(1, 2), last ? channels : draw(1, 5), h, w);
        snprintf(how, sizeof how,
                 "sizes: i64[2] = {%d, %d}; v = Resize(d, _, _, sizes) {mode: \"%s\", axes: [2, 3], "
                 "coordinate_transformation_mode: \"%s\"};",
                 draw(2, 25), draw(8, 40), draw(0, 3) ? "linear" : "cubic", places[draw(0, 3)]);
        one(check(shape, channels, 2, a, b, last, how, "resample"));
    }
}
/* The kernels alone: sums of as many rows as 16 bits hold of bytes, and of more, all the largest among them.
   */
static void sums(void **state) {
    (void)state;
    static const int64_t many[] = {1, 2, 3, 4, 5, 255, 256, 257, 258, 300, 515};
    enum { MOST = 515, MOST_N = 400 };
    uint8_t *room = malloc(2 * (size_t)MOST * MOST_N);
    int32_t *y = malloc(sizeof *y * (MOST_N + 1));
    assert_true(room && y);
    for (const hone_pool *row = hone_pool_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int t = 0; t < HONE_WHOLES; t++)
            for (size_t q = 0; q < sizeof many / sizeof *many; q++)
                for (int64_t n = 1; n <= MOST_N; n += n < 70 ? 3 : 61) {
                    const size_t bytes = t < HONE_WHOLE_u16 ? 1 : 2;
                    const int64_t taps = many[q];
                    const void *x[MOST];
                    const int fill = draw(0, 2);
                    for (int64_t k = 0; k < taps; k++) {
                        /* of exactly so many, so that a sanitizer sees what is read behind the last row */
                        uint8_t *at = room + 2 * MOST * MOST_N - (size_t)((taps - k) * n) * bytes;
                        for (int64_t j = 0; j < n; j++) {
                            const int v = fill == 0   ? types[t].highest
                                          : fill == 1 ? types[t].lowest
                                                      : draw(types[t].lowest, types[t].highest);
                            if (bytes == 1) at[j] = (uint8_t)v;
                            else ((uint16_t *)(void *)at)[j] = (uint16_t)v;
                        }
                        x[k] = at;
                    }
                    y[n] = 77;
                    row->sum[t](x, taps, n, y);
                    if (y[n] != 77) fail_msg("%s, %s: writes past the end", row->name, types[t].name);
                    for (int64_t j = 0; j < n; j++) {
                        int64_t want = 0;
                        for (int64_t k = 0; k < taps; k++)
                            want += t == HONE_WHOLE_u8    ? ((const uint8_t *)x[k])[j]
                                    : t == HONE_WHOLE_i8  ? ((const int8_t *)x[k])[j]
                                    : t == HONE_WHOLE_u16 ? ((const uint16_t *)x[k])[j]
                                                          : ((const int16_t *)x[k])[j];
                        if (y[j] != want)
                            fail_msg("%s, %s: column %d of %d, %d rows: %d where %d is due", row->name,
                                     types[t].name, (int)j, (int)n, (int)taps, y[j], (int)want);
                    }
                }
    }
    free(room), free(y);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows),  cmocka_unit_test(other_axes),
                                       cmocka_unit_test(whole),    cmocka_unit_test(large),
                                       cmocka_unit_test(pictures), cmocka_unit_test(sums)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
