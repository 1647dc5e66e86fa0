/* SPDX-License-Identifier: Apache-2.0
   Layer norm, RMS norm and softmax as the CPU runs them, against the definition: as one step where the form
   is known, else not; odd rows, views, in place, every CPU level, one thread, two and many (equal bits),
   values that are no numbers. */
#include "twin.h"

#include "kernels/norm.h"

enum { ROUNDS = SLOW ? 2 : 6 };
static char text[2048];
static int check(void) { return twin_check(text, twin_input, 2e-5, 1e-5, "norm"); }

static void one_step(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        const int a = draw(1, 3), b = draw(1, 40), n = draw(0, 3) ? draw(2, 90) : draw(100, 900),
                  shift = draw(0, 1);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d]) -> y { g: f32[%d] = random(3, 0, 2); b: f32[%d] = random(4, "
                 "-1, 1); y = LayerNormalization(x, "
                 "g%s) {axis: -1, epsilon: 0.001}; }",
                 a, b, n, n, n, shift ? ", b" : "");
        assert_int_equal(check(), 1);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d]) -> y { g: f32[%d] = random(3, 0, 2); r = Relu(x); y = "
                 "RMSNormalization(r, g) {axis: -1}; }",
                 a, b, n, n);
        assert_int_equal(check(), 1);
    }
}
/* rows that lie apart; the result is stored otherwise, or where the input was */
static void views(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        const int a = draw(2, 5), b = draw(2, 9), n = draw(2, 70);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d]) -> y { g: f32[%d] = random(3, 0, 2); b: f32[%d] = random(4, "
                 "-1, 1); t = Transpose(x) {perm: "
                 "[1, 0, 2]}; u = LayerNormalization(t, g, b); v = Transpose(u) {perm: [1, 0, 2]}; y = "
                 "Add(v, x); }",
                 a, b, n, n, n);
        check();
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d]) -> y, z { g: f32[%d] = random(3, 0, 2); w: f32[%d, %d] = "
                 "random(5, -1, 1); h = MatMul(x, w); y = "
                 "RMSNormalization(h, g); z = Transpose(y) {perm: [2, 0, 1]}; }",
                 a, b, n, n, n, n);
        assert_int_equal(check(), 1);
    }
}
/* rows of one, huge numbers, rows with or of infinities, rows that are not the last index */
static void softmax(void **state) {
    (void)state;
    static const char *const big[] = {"1", "40", "3e38", "-3e38"};
    EACH_LEVEL for (int round = 0; round < 2 * ROUNDS; round++) {
        const int a = draw(1, 3), b = draw(1, 40), n = draw(0, 3) ? draw(1, 90) : draw(100, 900);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d]) -> y, z { k: f32[] = {%s}; h = Mul(x, k); t = Transpose(h) "
                 "{perm: [1, 0, 2]}; y = "
                 "Softmax(t) {axis: "
                 "2}; z = Softmax(x) {axis: 1}; }",
                 a, b, n, big[draw(0, 3)]);
        assert_int_equal(check(), n >= 16); /* short ones are tile code */
        for (int log = 0; log < 2; log++) {
            const char *op = log ? "LogSoftmax" : "Softmax";
            snprintf(text, sizeof text,
                     "graph g (x: f32[%d, %d]) -> y { r = Relu(x); l = Log(r); y = %s(l) {axis: -1}; }", b, n,
                     op);
            assert_int_equal(check(), n >= 16);
            snprintf(text, sizeof text,
                     "graph g (x: f32[%d, %d]) -> y { k: f32[] = {%s}; h = Mul(x, k); y = %s(h); }", b, n,
                     big[draw(0, 1)], op);
            assert_int_equal(check(), n >= 16);
        }
    }
}
static void others(void **state) { /* next to the form: tile code */
    (void)state;
    EACH_LEVEL {
        snprintf(text, sizeof text,
                 "graph g (x: f32[3, 7, 33]) -> y, m { g: f32[33] = random(3, 0, 2); b: f32[33] = random(4, "
                 "-1, 1); y, m = "
                 "LayerNormalization(x, g, b); }");
        assert_int_equal(check(), 0);
        snprintf(text, sizeof text,
                 "graph g (x: f32[3, 7, 33]) -> y { g: f32[7, 33] = random(3, 0, 2); y = "
                 "LayerNormalization(x, g) {axis: 1}; }");
        assert_int_equal(check(), 0);
        snprintf(text, sizeof text, /* rows do not lie in a row */
                 "graph g (x: f32[3, 33, 7]) -> y { g: f32[33] = random(3, 0, 2); t = Transpose(x) {perm: "
                 "[0, 2, 1]}; y = "
                 "LayerNormalization(t, g); }");
        assert_int_equal(check(), 0);
    }
}
/* The kernel in double, some rows at once; y beside x, and on it. */
static void rows(void **state) {
    (void)state;
    for (const hone_norm *row = hone_norm_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int n = 1; n < 150; n++)
            for (int how = 0; how < 8; how++) {
                const bool centred = how & 1, shifted = how & 2;
                const int m = draw(1, 9), step = n + draw(0, 3);
                const size_t all = (size_t)(m * step);
                float *x = malloc(sizeof *x * all), *y = malloc(sizeof *y * all),
                      *g = malloc(sizeof *g * (size_t)n), *b = malloc(sizeof *b * (size_t)n),
                      *copy = malloc(sizeof *x * all);
                for (size_t i = 0; i < all; i++) x[i] = number() + (float)(n % 3);
                for (int i = 0; i < n; i++) g[i] = number(), b[i] = number();
                if (n % 7 == 0) x[n / 2] = n % 2 ? INFINITY : NAN;
                memcpy(copy, x, sizeof *x * all);
                float *to = how & 4 ? x : y;
                row->rows(m, n, x, step, centred, 0.01f, g, shifted ? b : NULL, to, step);
                for (int r = 0; r < m; r++) {
                    const float *from = copy + r * step;
                    double sum = 0, square = 0;
                    for (int i = 0; i < n; i++) sum += (double)from[i];
                    const double mean = centred ? sum / n : 0;
                    for (int i = 0; i < n; i++) square += ((double)from[i] - mean) * ((double)from[i] - mean);
                    const double by = 1 / sqrt(square / n + 0.01);
                    for (int i = 0; i < n; i++) {
                        const double want =
                            ((double)from[i] - mean) * by * (double)g[i] + (shifted ? (double)b[i] : 0);
                        const float got = to[r * step + i];
                        if (isnan(want) ? !isnan(got) : !(fabs((double)got - want) <= 2e-5))
                            fail_msg("%s: %g, not %g", row->name, (double)got, want);
                    }
                }
                free(x), free(y), free(g), free(b), free(copy);
            }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_step), cmocka_unit_test(views),
                                       cmocka_unit_test(softmax), cmocka_unit_test(others),
                                       cmocka_unit_test(rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
