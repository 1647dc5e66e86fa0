/* SPDX-License-Identifier: Apache-2.0
   Pools of pictures that lie channels last, against the definition and to the bit: windows that hang over, or
   are wholly outside, strides, dilations, one and three spatial axes, NaN, infinities and both zeros; every
   CPU level, any number of threads. What the step must leave to others it leaves. And its kernel alone. */
#include "kernels/pool.h"

#include "twin.h"

static float strange(void) {
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, -1e-42f};
    const int k = draw(0, 29);
    return k < 7 ? odd[k] : number();
}
static hone_value *strange_input(const hone_graph *g, int k) {
    hone_value *x = twin_input(g, k);
    for (int64_t q = 0; q < hone_value_count(x); q++) ((float *)x->data)[q] = strange();
    return x;
}
static char text[1024];
/* Convolutions of one product a value (exact, whoever computes them) before and after: they make pictures lie
   channels last. */
static void check(int rank, int channels, const char *dims, const char *how, int pools) {
    static const char *const ones[] = {"1, 1", "1, 1, 1", "1, 1, 1, 1"};
    snprintf(text, sizeof text,
             "graph g (x: f32[2, %d, %s], w: f32[%d, %s]) -> y { t = Conv(x, w) {group: %d}; p = MaxPool(t) "
             "{%s}; y = Conv(p, w) {group: %d}; }",
             channels, dims, channels, ones[rank - 1], channels, how, channels);
    const int met = twin_check(text, strange_input, 0, 0, "pool");
    if (met != pools) fail_msg("%d steps are pools, not %d, in\n%s", met, pools, text);
}
static void windows(void **state) {
    (void)state;
    char dims[32], how[256];
    EACH_LEVEL for (int round = 0; round < (SLOW ? 8 : 30); round++) {
        const int kh = draw(1, 5), kw = draw(1, 5), channels = draw(4, 70);
        snprintf(dims, sizeof dims, "%d, %d", draw(9, 14), draw(9, 14));
        snprintf(how, sizeof how,
                 "kernel_shape: [%d, %d], strides: [%d, %d], dilations: [%d, %d], pads: [%d, %d, %d, %d], "
                 "ceil_mode: %d",
                 kh, kw, draw(1, 3), draw(1, 3), draw(1, 2), draw(1, 2), draw(0, kh - 1), draw(0, kw - 1),
                 draw(0, kh - 1), draw(0, kw - 1), draw(0, 1));
        check(2, channels, dims, how, 1);
    }
}
static void other_axes(void **state) {
    (void)state;
    EACH_LEVEL {
        check(1, 9, "21", "kernel_shape: [4], strides: [3], pads: [1, 2]", 1);
        check(3, 17, "5, 6, 7", "kernel_shape: [2, 3, 3], pads: [1, 1, 0, 1, 1, 2]", 1);
        check(2, 19, "13, 12", "kernel_shape: [9, 13], pads: [4, 6, 4, 6]", 1); /* large ones, in two ways */
        /* windows that are mostly outside */
        check(2, 5, "3, 40", "kernel_shape: [2, 32], pads: [1, 31, 1, 31], dilations: [2, 1]", 1);
    }
}
/* pixels further apart than they are long: pooled from and into one Concat */
static void joined(void **state) {
    (void)state;
    EACH_LEVEL {
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, 20, 9, 11], w: f32[20, 1, 1, 1], v: f32[60, 1, 1, 1]) -> y { t = "
                 "Conv(x, w) {group: 20}; p = MaxPool(t) "
                 "{kernel_shape: [5, 5], pads: [2, 2, 2, 2]}; q = MaxPool(t) {kernel_shape: [9, 9], pads: "
                 "[4, 4, 4, 4]}; c = Concat(q, t, p) "
                 "{axis: 1}; y = Conv(c, v) {group: 60}; }");
        assert_int_equal(twin_check(text, strange_input, 0, 0, "pool"), 2);
    }
}
static void averages(void **state) { /* sums of windows, divided by a step after */
    (void)state;
    static const char *const how[] = {"kernel_shape: [3, 3], pads: [1, 1, 1, 1]",
                                      "kernel_shape: [2, 2], strides: [2, 2]",
                                      "kernel_shape: [5, 7], pads: [2, 3, 2, 3], count_include_pad: 1",
                                      "kernel_shape: [3, 2], strides: [2, 1], ceil_mode: 1"};
    EACH_LEVEL for (int k = 0; k < 4; k++) {
        snprintf(text, sizeof text,
                 "graph g (x: f32[2, %d, 13, 11], w: f32[%d, 1, 1, 1]) -> y { t = Conv(x, w) {group: %d}; p "
                 "= AveragePool(t) {%s}; "
                 "y = Conv(p, w) {group: %d}; }",
                 17 + k, 17 + k, 17 + k, how[k], 17 + k);
        if (twin_check(text, twin_input, 1e-5, 1e-5, "pool") != 1)
            fail_msg("not one step is a pool in\n%s", text);
    }
}
static void row_major(void **state) { /* a pool by itself; x is what the caller has */
    (void)state;
    static const char *const what[] = {"MaxPool", "AveragePool"};
    char how[256];
    EACH_LEVEL for (int round = 0; round < (SLOW ? 12 : 60); round++) {
        const int kh = draw(1, 5), kw = draw(1, 6), average = draw(0, 1);
        snprintf(how, sizeof how,
                 "kernel_shape: [%d, %d], strides: [%d, %d], dilations: [%d, %d], pads: [%d, %d, %d, %d], "
                 "ceil_mode: %d",
                 kh, kw, draw(1, 3), draw(1, 4), draw(1, 2), draw(1, 2), draw(0, kh - 1), draw(0, kw - 1),
                 draw(0, kh - 1), draw(0, kw - 1), draw(0, 1));
        snprintf(text, sizeof text, "graph g (x: f32[2, %d, %d, %d]) -> y { y = %s(x) {%s}; }", draw(4, 6),
                 draw(9, 14), draw(32, 60), what[average], how);
        const int met = twin_check(text, average ? twin_input : strange_input, average ? 1e-5 : 0,
                                   average ? 1e-5 : 0, "pool");
        if (met != 1 && !(average && kh * kw == 1)) fail_msg("%d steps are pools in\n%s", met, text);
    }
    snprintf(text, sizeof text,
             "graph g (x: f32[2, 3, 40]) -> y { y = MaxPool(x) {kernel_shape: [4], strides: [3], pads: [1, "
             "2]}; }");
    assert_int_equal(twin_check(text, strange_input, 0, 0, "pool"), 1);
}
static void left_alone(void **state) {
    (void)state;
    check(2, 3, "9, 9", "kernel_shape: [3, 3]", 0); /* few channels */
}
static float larger(float a, float b) { /* as fn.h has it */
    if (a == b) return signbit(a) ? b : a;
    return isnan(a) || a > b ? a : b;
}
static void kernel(void **state) {
    (void)state;
    for (const hone_pool *row = hone_pool_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int64_t n = 1; n < 150; n += n < 70 ? 1 : 13)
            for (int64_t taps = 1; taps < 13; taps = taps * 2 + 1) {
                float *x[13], *y = malloc(sizeof(float) * (size_t)(n + 1));
                assert_non_null(y);
                for (int64_t t = 0; t < taps; t++) {
                    assert_non_null(x[t] = malloc(sizeof(float) * (size_t)n));
                    for (int64_t j = 0; j < n; j++) x[t][j] = strange();
                }
                y[n] = 1234.5f;
                row->max((const float *const *)x, taps, n, 1, 0, 0, y);
                if (y[n] != 1234.5f) fail_msg("%s writes past %lld columns", row->name, (long long)n);
                for (int64_t j = 0; j < n; j++) {
                    float want = x[0][j];
                    for (int64_t t = 1; t < taps; t++) want = larger(want, x[t][j]);
                    if (isnan(want) ? !isnan(y[j]) : memcmp(&want, y + j, sizeof want))
                        fail_msg("%s: column %lld of %lld, %lld rows: %g where %g is due", row->name,
                                 (long long)j, (long long)n, (long long)taps, (double)y[j], (double)want);
                }
                for (int64_t t = 0; t < taps; t++) free(x[t]);
                free(y);
            }
    }
}
/* every pair of numbers that bf16 has, and rows of all lengths, to the bit */
static void kernel_bf16(void **state) {
    (void)state;
    for (const hone_pool *row = hone_pool_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int64_t n = 1; n < 300; n += n < 70 ? 1 : 13)
            for (int64_t taps = 1; taps < 13; taps = taps * 2 + 1) {
                enum { MANY = 3 };
                const int64_t apart = n + draw(0, 3);
                uint16_t *x[13], *y = malloc(sizeof *y * (size_t)(MANY * apart + 1));
                assert_non_null(y);
                for (int64_t t = 0; t < taps; t++) {
                    assert_non_null(x[t] = malloc(sizeof **x * (size_t)((MANY - 1) * apart + n)));
                    for (int64_t j = 0; j < (MANY - 1) * apart + n; j++) {
                        const float v = strange();
                        uint32_t bits;
                        memcpy(&bits, &v, sizeof bits);
                        /* a negative NaN, too */
                        x[t][j] = draw(0, 3) ? (uint16_t)(bits >> 16) : (uint16_t)draw(0, 65535);
                    }
                }
                memset(y, 0x77, sizeof *y * (size_t)(MANY * apart + 1));
                row->max_bf16((const uint16_t *const *)x, taps, n, MANY, apart, apart, y);
                for (int64_t j = 0; j <= MANY * apart; j++) {
                    if (j == MANY * apart || j % apart >= n) {
                        assert_int_equal(y[j], 0x7777);
                        continue;
                    }
                    float want = 0;
                    for (int64_t t = 0; t < taps; t++) {
                        const float v = hone_dtype_load(HONE_DTYPE_BF16, x[t] + j).f32;
                        want = t ? larger(want, v) : v;
                    }
                    const float is = hone_dtype_load(HONE_DTYPE_BF16, y + j).f32;
                    if (isnan(want) ? !isnan(is) : memcmp(&want, &is, sizeof want))
                        fail_msg("%s: column %lld of %lld, %lld rows: %g where %g is due", row->name,
                                 (long long)j, (long long)n, (long long)taps, (double)is, (double)want);
                }
                for (int64_t t = 0; t < taps; t++) free(x[t]);
                free(y);
            }
    }
}
/* Sums of many rows: whole pictures, and matrices down their columns. */
static void long_sums(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < (SLOW ? 4 : 12); round++) {
        const int channels = draw(16, 90), h = draw(4, 33), w = draw(4, 33);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d], w: f32[%d, 1, 1, 1]) -> y { t = Conv(x, w) {group: %d}; p "
                 "= GlobalAveragePool(t); y = "
                 "Conv(p, w) {group: %d}; }",
                 draw(1, 3), channels, h, w, channels, channels, channels);
        const int met = twin_check(text, twin_input, 1e-4, 1e-5, "row reduction");
        if (met != 1) fail_msg("%d steps are sums, not 1, in\n%s", met, text);
        snprintf(text, sizeof text, "graph g (x: f32[%d, %d]) -> y { a: i64[1] = {0}; y = ReduceSum(x, a); }",
                 draw(16, 1100), draw(16, 200));
        assert_int_equal(twin_check(text, twin_input, 1e-3, 1e-5, "row reduction"), 1);
    }
}
static void kernel_add(void **state) {
    (void)state;
    for (const hone_pool *row = hone_pool_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int64_t n = 1; n < 90; n += n < 70 ? 1 : 13)
            for (int64_t rows = 0; rows < 14; rows++) {
                const int64_t step = n + draw(0, 3), all = rows ? (rows - 1) * step + n : 0;
                float *x = malloc(sizeof *x * (size_t)(all + !all)), *y = malloc(sizeof *y * (size_t)(n + 1));
                assert_true(x && y);
                /* whole numbers: every order has the same sum */
                for (int64_t k = 0; k < all; k++) x[k] = (float)draw(-1000, 1000);
                for (int64_t j = 0; j <= n; j++) y[j] = (float)j;
                row->add(x, rows, (ptrdiff_t)step, n, y);
                if (y[n] != (float)n) fail_msg("%s writes past %lld columns", row->name, (long long)n);
                for (int64_t j = 0; j < n; j++) {
                    float want = (float)j;
                    for (int64_t t = 0; t < rows; t++) want += x[t * step + j];
                    if (y[j] != want)
                        fail_msg("%s: column %lld of %lld, %lld rows: %g where %g is due", row->name,
                                 (long long)j, (long long)n, (long long)rows, (double)y[j], (double)want);
                }
                free(x), free(y);
            }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_sums), cmocka_unit_test(kernel_add),
                                       cmocka_unit_test(windows),   cmocka_unit_test(other_axes),
                                       cmocka_unit_test(joined),    cmocka_unit_test(averages),
                                       cmocka_unit_test(row_major), cmocka_unit_test(left_alone),
                                       cmocka_unit_test(kernel),    cmocka_unit_test(kernel_bf16)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
