/* SPDX-License-Identifier: Apache-2.0
   The largest of bytes, unsigned and signed, against the definition: pictures that lie channels last and
   row-major, windows that hang over or are wholly outside, strides, dilations, one and three spatial axes;
   every CPU level, any number of threads. And the kernel alone. */
#include "kernels/pool.h"

#include "twin.h"

static const char *const types[] = {"u8", "i8"};
static char text[2048];
/* Convolutions that change nothing before and after: they make pictures lie channels last. */
static void check(int rank, int channels, const char *dims, const char *how, int is_signed) {
    static const char *const ones[] = {"1, 1", "1, 1, 1", "1, 1, 1, 1"};
    const char *t = types[is_signed];
    snprintf(text, sizeof text,
             "graph g (x: %s[2, %d, %s]) -> y { s: f32[] = {1}; z: %s[] = {%d}; w: i8[%d, %s] = random(1, 1, "
             "1); o: i8[] = {0}; "
             "a = QLinearConv(x, s, z, w, s, o, s, z) {group: %d}; p = MaxPool(a) {%s}; y = QLinearConv(p, "
             "s, z, w, s, o, s, z) {group: %d}; }",
             t, channels, dims, t, draw(0, 100), channels, ones[rank - 1], channels, how, channels);
    const int met = twin_check(text, twin_input, 0, 0, "pool");
    if (met != 1) fail_msg("%d steps are pools, not 1, in\n%s", met, text);
}
static void windows(void **state) {
    (void)state;
    char dims[32], how[256];
    EACH_LEVEL for (int round = 0; round < (SLOW ? 8 : 40); round++) {
        const int kh = draw(1, 5), kw = draw(1, 5), channels = draw(4, 150);
        snprintf(dims, sizeof dims, "%d, %d", draw(9, 14), draw(9, 14));
        snprintf(how, sizeof how,
                 "kernel_shape: [%d, %d], strides: [%d, %d], dilations: [%d, %d], pads: [%d, %d, %d, %d], "
                 "ceil_mode: %d",
                 kh, kw, draw(1, 3), draw(1, 3), draw(1, 2), draw(1, 2), draw(0, kh - 1), draw(0, kw - 1),
                 draw(0, kh - 1), draw(0, kw - 1), draw(0, 1));
        check(2, channels, dims, how, round % 2);
    }
}
static void other_axes(void **state) {
    (void)state;
    EACH_LEVEL for (int is_signed = 0; is_signed < 2; is_signed++) {
        check(1, 9, "21", "kernel_shape: [4], strides: [3], pads: [1, 2]", is_signed);
        check(3, 17, "5, 6, 7", "kernel_shape: [2, 3, 3], pads: [1, 1, 0, 1, 1, 2]", is_signed);
        /* large ones, in two ways */
        check(2, 19, "13, 12", "kernel_shape: [9, 13], pads: [4, 6, 4, 6]", is_signed);
        /* windows mostly outside */
        check(2, 5, "3, 40", "kernel_shape: [2, 32], pads: [1, 31, 1, 31], dilations: [2, 1]", is_signed);
    }
}
static void row_major(void **state) { /* a pool by itself; x is what the caller has */
    (void)state;
    char how[256];
    EACH_LEVEL for (int round = 0; round < (SLOW ? 12 : 60); round++) {
        const int kh = draw(1, 5), kw = draw(1, 6);
        snprintf(how, sizeof how,
                 "kernel_shape: [%d, %d], strides: [%d, %d], dilations: [%d, %d], pads: [%d, %d, %d, %d], "
                 "ceil_mode: %d",
                 kh, kw, draw(1, 3), draw(1, 4), draw(1, 2), draw(1, 2), draw(0, kh - 1), draw(0, kw - 1),
                 draw(0, kh - 1), draw(0, kw - 1), draw(0, 1));
        snprintf(text, sizeof text, "graph g (x: %s[2, %d, %d, %d]) -> y { y = MaxPool(x) {%s}; }",
                 types[round % 2], draw(4, 6), draw(9, 14), draw(32, 60), how);
        const int met = twin_check(text, twin_input, 0, 0, "pool");
        if (met != 1) fail_msg("%d steps are pools in\n%s", met, text);
    }
}
static void kernel(void **state) { /* rows of all lengths, several at once; nothing beyond them is written */
    (void)state;
    enum { MANY = 3, MOST = 13 };
    for (const hone_pool *row = hone_pool_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int64_t n = 1; n < 600; n += n < 150 ? 1 : 37)
            for (int64_t taps = 1; taps < MOST; taps = taps * 2 + 1)
                for (int is_signed = 0; is_signed < 2; is_signed++) {
                    const int64_t apart = n + draw(0, 3), all = (MANY - 1) * apart + n;
                    uint8_t *x[MOST], *y = malloc((size_t)(MANY * apart + 1));
                    assert_non_null(y);
                    for (int64_t t = 0; t < taps; t++) {
                        assert_non_null(x[t] = malloc((size_t)all));
                        for (int64_t j = 0; j < all; j++) x[t][j] = (uint8_t)draw(0, 255);
                    }
                    memset(y, 0x77, (size_t)(MANY * apart + 1));
                    (is_signed ? row->max_i8 : row->max_u8)((const uint8_t *const *)x, taps, n, MANY, apart,
                                                            apart, y);
                    for (int64_t j = 0; j <= MANY * apart; j++) {
                        const bool gap = j == MANY * apart || j % apart >= n;
                        int want = gap ? 0x77 : -1000;
                        for (int64_t t = 0; t < taps && !gap; t++) {
                            const int v = is_signed ? (int8_t)x[t][j] : x[t][j];
                            want = v > want ? v : want;
                        }
                        if (y[j] != (uint8_t)want)
                            fail_msg("%s: column %lld of %lld, %lld rows: %d where %d is due", row->name,
                                     (long long)j, (long long)n, (long long)taps, y[j], want);
                    }
                    for (int64_t t = 0; t < taps; t++) free(x[t]);
                    free(y);
                }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(windows), cmocka_unit_test(other_axes),
                                       cmocka_unit_test(row_major), cmocka_unit_test(kernel)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
