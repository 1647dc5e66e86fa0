/* SPDX-License-Identifier: Apache-2.0
   Activations that stand by themselves, or behind a sum: against the definition, within a few ulp, on every
   CPU level and any number of threads; NaN, infinities and both zeros among the numbers. What lies in no
   rows is left to tile code. And the kernel of rows against doubles, as far as it promises. */
#include "kernels/activate.h"

#include "twin.h"

static hone_value *odd_input(const hone_graph *g, int k) {
    static const float odd[] = {0.0f, -0.0f, INFINITY, -INFINITY, NAN, 1e-42f, 90, -90, 200, -200};
    hone_value *x = twin_input(g, k);
    for (int64_t q = 0; q < hone_value_count(x); q += draw(1, 40)) ((float *)x->data)[q] = odd[draw(0, 9)];
    return x;
}
static char text[1024];
static const struct {
    const char *op, *how;
} acts[] = {{"Sigmoid", ""},   {"Tanh", ""},        {"Gelu", ""},  {"Gelu", " {approximate: \"tanh\"}"},
            {"HardSwish", ""}, {"HardSigmoid", ""}, {"Swish", ""}, {"LeakyRelu", ""}};
static void forms(void **state) {
    (void)state;
    static const char *const form[] = {
        "graph g (x: f32[%d, %d]) -> y { y = %s(x)%s; }",
        "graph g (x: f32[%d, %d], b: f32[%d]) -> y { s = Add(x, b); y = %s(s)%s; }",     /* a bias a column */
        "graph g (x: f32[%d, %d], b: f32[%d, 1]) -> y { s = Add(x, b); y = %s(s)%s; }",  /* a row */
        "graph g (x: f32[%d, %d], b: f32[%d, %d]) -> y { s = Add(b, x); y = %s(s)%s; }", /* an element */
    };
    EACH_LEVEL for (size_t a = 0; a < sizeof acts / sizeof *acts; a++) for (int f = 0; f < 4; f++) {
        const int m = draw(2, 40), n = draw(64, 300);
        const char *op = acts[a].op, *how = acts[a].how;
        if (f == 0) snprintf(text, sizeof text, form[f], m, n, op, how);
        else if (f == 3) snprintf(text, sizeof text, form[f], m, n, m, n, op, how);
        else snprintf(text, sizeof text, form[f], m, n, f == 1 ? n : m, op, how);
        if (!twin_check(text, odd_input, 1e-6, 2e-6, "quantized elementwise"))
            fail_msg("no rows in\n%s", text);
    }
}
static void left_alone(void **state) { /* turned around, or a few numbers */
    (void)state;
    snprintf(text, sizeof text, "graph g (x: f32[7, 5]) -> y { y = Sigmoid(x); }");
    assert_int_equal(twin_check(text, odd_input, 1e-6, 2e-6, "quantized elementwise"), 0);
    snprintf(
        text, sizeof text,
        "graph g (x: f32[70, 90], z: f32[90, 70]) -> y { t = Transpose(x); s = Add(t, z); y = Tanh(s); }");
    assert_int_equal(twin_check(text, odd_input, 1e-6, 2e-6, "quantized elementwise"), 0);
}
/* ---- the kernel ---------------------------------------------------------------------------------------- */
static double ulp(double x) { return x != 0 ? ldexp(1, ilogb(x) - 23) : 0; }
static double logistic(double x) { return 1 / (1 + exp(-x)); }
/* what f(x) is, and how far it may be off */
static double wanted(hone_activation f, double x, double *off) {
    const double below = erfc(fabs(x) / sqrt(2)) / 2, normal = 0x1p-126;
    double y = 0;
    switch (f) {
    case HONE_ACTIVATE_sigmoid: y = logistic(x); break;
    case HONE_ACTIVATE_tanh: y = tanh(x); break;
    case HONE_ACTIVATE_silu: y = x * logistic(x); break;
    case HONE_ACTIVATE_gelu: y = x < 0 ? x * below : x - x * below; break;
    case HONE_ACTIVATE_gelu_tanh: y = x * logistic(x + 0.05f * x * x * x); break;
    default: fail_msg("no function"); break;
    }
    /* the argument of a sigmoid is f32, and so is its sum: e^x of it has as much more error */
    *off = f == HONE_ACTIVATE_gelu        ? 2e-2 * fabs(y) + 1e-11
           : f == HONE_ACTIVATE_gelu_tanh ? (4 + fabs(x) * x * x) * ulp(y)
                                          : 4 * ulp(y);
    if (f == HONE_ACTIVATE_gelu && *off > 0x1p-23 * fabs(x))
        *off = 0x1p-23 * fabs(x); /* 2 ulp of |x|, but a small result is right in its first digits */
    if (fabs(y) < 2 * fabs(x) * normal || fabs(y) < 2 * normal) *off += 4 * (1 + fabs(x)) * normal;
    return y;
}
static void rows(void **state) {
    (void)state;
    enum { M = 9, N = 131, GUARD = 4 };
    static const hone_activation f[] = {HONE_ACTIVATE_sigmoid, HONE_ACTIVATE_tanh, HONE_ACTIVATE_silu,
                                        HONE_ACTIVATE_gelu, HONE_ACTIVATE_gelu_tanh};
    static float x[M][N + 2 * GUARD], was[M][N + 2 * GUARD], gates[M][N];
    for (const hone_activate *level = hone_activate_list; level->name; level++) {
        if (level->cpu & ~hone_cpu()) continue;
        for (size_t k = 0; k < sizeof f / sizeof *f; k++)
            for (int turn = 0; turn < (SLOW ? 40 : 400); turn++) {
                const int m = draw(1, M), n = turn < N ? turn : draw(1, N);
                float *row[M];
                for (int i = 0; i < M; i++) {
                    row[i] = x[i];
                    /* every size of number, or those where most happens */
                    for (int j = 0; j < N + 2 * GUARD; j++) {
                        const float size = turn % 2 ? 6 : ldexpf(1, draw(-30, 6));
                        x[i][j] = was[i][j] = (float)draw(-1000000, 1000000) * 1e-6f * size;
                    }
                }
                level->run[f[k]](row, GUARD, m, n, 1, 0.05f);
                for (int i = 0; i < M; i++)
                    for (int j = 0; j < N + 2 * GUARD; j++) {
                        const double from = (double)was[i][j], got = (double)x[i][j];
                        if (i >= m || j < GUARD || j >= n + GUARD) {
                            assert_true(got == from); /* nothing else is touched */
                            continue;
                        }
                        double off, want = wanted(f[k], from, &off);
                        if (!(fabs(got - want) <= off))
                            fail_msg("%s: function %d of %.9g is %.9g, not %.9g", level->name, (int)f[k],
                                     from, got, want);
                    }
                /* of other rows, times what is there: the same values, and one product more */
                if (!level->gate) continue;
                for (int i = 0; i < M; i++) {
                    for (int j = 0; j < N; j++) gates[i][j] = was[i][j + GUARD];
                    for (int j = 0; j < N + 2 * GUARD; j++)
                        was[i][j] = i < m && j >= GUARD && j < n + GUARD ? x[i][j] * 3 : 3, x[i][j] = 3;
                }
                level->gate[f[k]](row, GUARD, m, n, 1, 0.05f, gates[0], N);
                for (int i = 0; i < M; i++)
                    for (int j = 0; j < N + 2 * GUARD; j++)
                        if (fabsf(x[i][j] - was[i][j]) > 2e-7f * fabsf(was[i][j]))
                            fail_msg("%s: 3 times function %d is %.9g, not %.9g", level->name, (int)f[k],
                                     (double)x[i][j], (double)was[i][j]);
            }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms), cmocka_unit_test(left_alone),
                                       cmocka_unit_test(rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
