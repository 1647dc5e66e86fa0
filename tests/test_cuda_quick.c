/* SPDX-License-Identifier: Apache-2.0
   The functions of CUDA epilogues for 16-bit results (quick.cu) beside libm: as exact as the file says, and
   right at the ends: NaN, infinities, zeros, numbers beyond their range. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>

#define DEVICE static inline
static inline float exp2_fast(float x) { return exp2f(x); }
static inline float inverse_fast(float x) { return 1.0f / x; }
#define IN_TYPE 3 /* the names of fn.h are nobody's here */
#include "kernels/cuda/quick.cu"

static double sigmoid(double x) { return 1 / (1 + exp(-x)); }
static double one_tanh(double x) { return 2 / (1 + exp(-2 * x)); }
static const struct {
    const char *name;
    float (*quick)(float);
    double (*exact)(double);
    double from, to, bound; /* of the relative error between from and to */
    float below, above;     /* what it is at minus and plus infinity */
} functions[] = {
    {"exp", quick_exp, exp, -87, 88, 0x1p-16, 0, INFINITY},
    {"sigmoid", quick_sigmoid, sigmoid, -87, 100, 0x1p-16, 0, 1},
    {"tanh", quick_tanh, tanh, -100, 100, 0x1p-19, -1, 1},
    {"1 + tanh", quick_one_tanh, one_tanh, -43, 100, 0x1p-16, 0, 2},
    {"erf", quick_erf, erf, -100, 100, 0x1p-14, -1, 1},
};
static void quick(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof functions / sizeof *functions; k++) {
        double worst = 0, at = 0;
        for (int i = 0; i <= 400000; i++) {
            /* evenly along the range, and finely around 0 */
            const double t = i % 2 ? i / 4e5 : 0.5 + (i / 4e5 - 0.5) * 0.01;
            const float x = (float)(functions[k].from + t * (functions[k].to - functions[k].from));
            const double want = functions[k].exact((double)x), error = fabs(functions[k].quick(x) - want);
            if (error > worst * fabs(want)) worst = error / fabs(want), at = (double)x;
        }
        if (!(worst < functions[k].bound))
            fail_msg("%s is off by %g of its value at %g, allowed is %g", functions[k].name, worst, at,
                     functions[k].bound);
        assert_true(isnan(functions[k].quick(NAN)));
        assert_true(functions[k].quick(-INFINITY) == functions[k].below);
        assert_true(functions[k].quick(INFINITY) == functions[k].above);
        assert_true(functions[k].quick(-3e4f) == functions[k].below);
        assert_true(functions[k].quick(3e4f) == functions[k].above);
    }
    assert_true(quick_exp(0) == 1 && quick_sigmoid(0) == 0.5f && quick_tanh(0) == 0 && quick_erf(0) == 0);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(quick)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
