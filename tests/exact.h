/* SPDX-License-Identifier: Apache-2.0
   exact: what tests of kernels share: numbers from a seed, blocks of exactly so many floats, and the bound of
   a sum in f32.

   Bound: a sum of n products in float, in any order, fused or not, errs by at most about (n + 1) * eps * sum
   of |terms|. Outputs stand between guard values, and inputs in blocks of their exact size, so that a
   sanitizer sees a read past the end. */
#ifndef HONE_TESTS_EXACT_H
#define HONE_TESTS_EXACT_H
#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
/* after the four headers it needs */
#include <cmocka.h>

#include "random.h"

#define COUNT(a) (sizeof(a) / sizeof *(a))
static const float GUARD = 12345.678f;

static uint32_t seed = 20261115;
static uint32_t random_bits(void) { return next_linear(&seed) >> 8; }
static float random_value(void) { return (float)random_bits() / (float)(1 << 23) - 1.0f; }

/* exactly n floats, so that one too many is seen */
static float *exact_floats(size_t n) {
    float *p = malloc(n ? n * sizeof *p : 1);
    assert_non_null(p);
    for (size_t i = 0; i < n; i++) p[i] = random_value();
    return p;
}

/* got against the exact sum of n terms with the given sum of magnitudes; NaN and infinity must agree in
   kind */
static void check(const char *name, float got, double sum, double magnitude, int64_t n) {
    if (isnan(sum) || isinf(sum)) {
        if (isnan(sum) ? !isnan(got) : got != (float)sum)
            fail_msg("%s: %g where the plain loop has %g", name, (double)got, sum);
    } else if (!(fabs((double)got - sum) <= (double)(n + 1) * FLT_EPSILON * magnitude + FLT_MIN)) {
        fail_msg("%s: %.9g where the plain loop has %.9g", name, (double)got, sum);
    }
}
#endif
