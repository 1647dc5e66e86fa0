/* SPDX-License-Identifier: Apache-2.0
   The arithmetic of `hone bench` (apps/stats.c): order statistics by hand, and what a bootstrap must get
   right: intervals that hold the truth about as often as they say, and verdicts that chance alone does not
   bring about. */
#define _GNU_SOURCE
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "../apps/stats.h"
#include "random.h"

static uint64_t seed = 0x9e3779b97f4a7c15u;
static double uniform(void) { /* from 0 to 1 */
    return (double)(next_random_star(&seed) >> 11) / 9007199254740992.0;
}
/* As times are: a floor, a little above it, and now and then far above it. */
static double time_of(double floor) {
    return floor * (1 + 0.04 * uniform() + (uniform() < 0.05 ? 3 * uniform() : 0));
}

static void order(void **state) {
    (void)state;
    const double odd[] = {5, 1, 3}, even[] = {4, 1, 3, 2}, sorted[] = {0, 10, 20, 30, 40}, one[] = {7};
    assert_float_equal(hone_stats_median(odd, 3), 3, 0);
    assert_float_equal(hone_stats_median(even, 4), 2.5, 0);
    assert_float_equal(hone_stats_percentile(sorted, 5, 0), 0, 0);
    assert_float_equal(hone_stats_percentile(sorted, 5, 0.9), 36, 1e-12);
    assert_float_equal(hone_stats_percentile(sorted, 5, 1), 40, 0);
    hone_stats s;
    hone_stats_of(even, 4, &s);
    assert_int_equal(s.n, 4);
    assert_float_equal(s.min, 1, 0);
    assert_float_equal(s.max, 4, 0);
    assert_float_equal(s.sum, 10, 0);
    assert_float_equal(s.p90, 3.7, 1e-12);
    assert_float_equal(s.spread, (3.25 - 1.75) / 2.5, 1e-12);
    assert_float_equal(even[0], 4, 0); /* not sorted in place */
    hone_stats_of(one, 1, &s);
    assert_true(s.min == 7 && s.median == 7 && s.p99 == 7 && s.max == 7 && s.spread == 0);
    double many[1000];
    for (int k = 0; k < 1000; k++) many[k] = time_of(1);
    hone_stats_of(many, 1000, &s);
    assert_true(s.min <= s.median && s.median <= s.p90 && s.p90 <= s.p99 && s.p99 <= s.max);
}

static void blocks(void **state) {
    (void)state;
    const double v[] = {1, 2, 3, 10, 20, 30, 100};
    double out[8];
    assert_int_equal(hone_stats_blocks(v, 7, 2, out), 2);
    assert_float_equal(out[0], 2, 0);
    assert_float_equal(out[1], 25, 0);
    assert_int_equal(hone_stats_blocks(v, 7, 8, out), 7); /* never more than there are numbers */
    for (int k = 0; k < 7; k++) assert_float_equal(out[k], v[k], 0);
}

static void trend(void **state) {
    (void)state;
    enum { N = 600 };
    double v[N];
    int alarms = 0;
    for (int k = 0; k < N; k++) v[k] = time_of(1 + 0.2 * k / N);
    /* the thirds' middles lie two thirds of 20 % apart */
    assert_in_range((int)(hone_stats_trend(v, N) * 100), 8, 20);
    for (int k = 0; k < N; k++) v[k] = time_of(1.2 - 0.2 * k / N);
    assert_true(hone_stats_trend(v, N) < -0.06);
    assert_float_equal(hone_stats_trend(v, 10), 0, 0); /* too few */
    for (int t = 0; t < 200; t++) {
        for (int k = 0; k < N; k++) v[k] = time_of(1);
        alarms += hone_stats_trend(v, N) != 0;
    }
    assert_in_range(alarms, 0, 10); /* one in a hundred is expected */
}

static void ratio(void **state) {
    (void)state;
    enum { N = 30 };
    double base[N], now[N];
    hone_ratio r, again;
    for (int k = 0; k < N; k++) base[k] = time_of(2), now[k] = time_of(1);
    hone_stats_apart(base, N, now, N, &r);
    assert_true(r.low <= r.ratio && r.ratio <= r.high && r.low > 1.9 && r.high < 2.1);
    assert_int_equal(hone_stats_verdict(&r), 1);
    hone_stats_apart(base, N, now, N, &again);
    assert_true(again.low == r.low && again.high == r.high); /* the same numbers, the same interval */
    hone_stats_apart(now, N, base, N, &r);
    assert_int_equal(hone_stats_verdict(&r), -1);
    /* A drift that both sides see: rounds cancel it, apart it hides the difference of 5 %. */
    for (int k = 0; k < N; k++) base[k] = 1.05 * (1 + k) + 0.001 * uniform(), now[k] = 1 + k;
    hone_stats_rounds(base, now, N, 3, &r);
    assert_int_equal(hone_stats_verdict(&r), 1);
    assert_float_equal(r.ratio, 1.05, 0.002);
    hone_stats_apart(base, N, now, N, &r);
    assert_int_equal(hone_stats_verdict(&r), 0);
    /* sure, but too little to mean anything */
    assert_int_equal(hone_stats_verdict(&(hone_ratio){1.008, 1.006, 1.009}), 0);
}

/* Many times over: two lots of the same kind. The interval holds 1 about 95 times in 100, and a verdict is
   rare. */
static void chance(void **state) {
    (void)state;
    enum { N = 30, TIMES = 200 };
    double base[N], now[N];
    hone_ratio r;
    int held = 0, said = 0, held_rounds = 0, said_rounds = 0;
    for (int t = 0; t < TIMES; t++) {
        for (int k = 0; k < N; k++) base[k] = time_of(1), now[k] = time_of(1);
        hone_stats_apart(base, N, now, N, &r);
        held += r.low <= 1 && 1 <= r.high, said += hone_stats_verdict(&r) != 0;
        hone_stats_rounds(base, now, N, 1, &r);
        held_rounds += r.low <= 1 && 1 <= r.high, said_rounds += hone_stats_verdict(&r) != 0;
    }
    assert_in_range(held, TIMES * 89 / 100, TIMES);
    assert_in_range(held_rounds, TIMES * 89 / 100, TIMES);
    assert_in_range(said, 0, TIMES * 4 / 100);
    assert_in_range(said_rounds, 0, TIMES * 4 / 100);
}

/* A pair of processes that was lucky moves its rounds together: groups make the interval wide, where rounds
   alone would be sure. */
static void groups(void **state) {
    (void)state;
    enum { N = 30, PAIRS = 5 };
    static const double luck[PAIRS] = {0.95, 1.06, 0.97, 1.05, 1.04};
    double base[N], now[N];
    hone_ratio alone, grouped;
    for (int k = 0; k < N; k++) base[k] = luck[k / (N / PAIRS)] * (1 + 0.001 * uniform()), now[k] = 1;
    hone_stats_rounds(base, now, N, 1, &alone);
    hone_stats_rounds(base, now, N, PAIRS, &grouped);
    assert_float_equal(alone.ratio, grouped.ratio, 0);
    assert_true(grouped.high - grouped.low >= alone.high - alone.low);
    assert_true(grouped.low < 1);
    assert_int_equal(hone_stats_verdict(&grouped), 0);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(order), cmocka_unit_test(blocks), cmocka_unit_test(trend),
        cmocka_unit_test(ratio), cmocka_unit_test(chance), cmocka_unit_test(groups),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
