/* SPDX-License-Identifier: Apache-2.0
   Attention as one step against the definition: random odd sizes, groups of heads, masks of every kind,
   causal and windows, softcap, a past, few queries and more than a block of them, operands that lie any way,
   NaN and rows where all is hidden; every CPU level, one thread and two (equal bits). What the step must
   leave to others it leaves. And the kernel of its rows against doubles. */
#include "kernels/softmax.h"

#include "twin.h"

/* Inputs by their name's first letter: h: a mask of f32, of which `hide` in 100 are -inf; n: lengths, 0 … 3;
   others random, `odd` in 10000 of them NaN. */
static int hide = 30, odd = 0;
static hone_value *random_input(const hone_graph *g, int k) {
    const hone_var *v = g->var.at + g->in.at[k];
    hone_value *x;
    assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, &x), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++) {
        if (v->dtype == HONE_DTYPE_BOOL) ((uint8_t *)x->data)[q] = draw(1, 100) > hide;
        else if (v->dtype == HONE_DTYPE_I64) ((int64_t *)x->data)[q] = draw(0, 3);
        else if (v->name[0] == 'h') ((float *)x->data)[q] = draw(1, 100) > hide ? number() : -INFINITY;
        else ((float *)x->data)[q] = draw(1, 10000) > odd ? number() : NAN;
    }
    return x;
}
static void check(const char *text, int steps) {
    int met = twin_check(text, random_input, 2e-5, 1e-5, "attention");
    if (met != steps) fail_msg("%d steps are attention, not %d, in\n%s", met, steps, text);
}
enum { ROUNDS = SLOW ? 2 : 5 };
static char text[4096];

/* The op with what it may have around it. */
static void forms(void **state) {
    (void)state;
    static const char *const given[] = {
        "", "h: f32[%d, %d, %d, %d]", "h: f32[%d, %d, %d, %d]", "a: bool[%d, %d, %d, %d]", "", ""};
    static const char *const attr[] = {"",
                                       "",
                                       ", is_causal: 1",
                                       ", softcap: 1.5",
                                       ", is_causal: 1, softcap: 3.0",
                                       ", left_window_size: 5, right_window_size: 2"};
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int b = draw(1, 2), h = draw(1, 3), gr = draw(1, 3), i = draw(1, 30), s = draw(1, 60),
            d = draw(1, 40), e = draw(1, 70);
        for (int form = 0; form < 6; form++) {
            char mask[100];
            snprintf(mask, sizeof mask, given[form], draw(0, 1) ? b : 1, draw(0, 1) ? h * gr : 1,
                     draw(0, 1) ? i : 1, s);
            snprintf(text, sizeof text,
                     "graph g (q: f32[%d, %d, %d, %d], k: f32[%d, %d, %d, %d], v: f32[%d, %d, %d, %d]%s%s) "
                     "-> y { y = Attention(q, k, v%s) "
                     "{scale: "
                     "%g%s}; }",
                     b, h * gr, i, d, b, h, s, d, b, h, s, e, *mask ? ", " : "", mask,
                     *mask == 'h' ? ", h"
                     : *mask      ? ", a"
                                  : "",
                     draw(0, 1) ? 0.0 : 0.4, attr[form]);
            check(text, 1);
        }
    }
}
/* A mask that is shorter than the keys; keys and values with a past; what must be left alone: lengths, wanted
   scores, other types. */
static void more_forms(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int h = draw(1, 3), i = draw(1, 20), s = draw(4, 30), d = draw(2, 40), e = draw(1, 70),
            p = draw(1, 20);
        snprintf(text, sizeof text,
                 "graph g (q: f32[1, %d, %d, %d], k: f32[1, %d, %d, %d], v: f32[1, %d, %d, %d], h: f32[%d, "
                 "%d]) -> y { y = Attention(q, k, "
                 "v, h); }",
                 h, i, d, h, s, d, h, s, e, i, draw(1, s));
        check(text, 1);
        for (int wanted = 0; wanted < 2; wanted++) {
            snprintf(text, sizeof text,
                     "graph g (q: f32[2, %d, %d, %d], k: f32[2, %d, %d, %d], v: f32[2, %d, %d, %d], pk: "
                     "f32[2, %d, %d, %d], pv: f32[2, %d, %d, "
                     "%d]) -> %s { y%s = Attention(q, k, v, _, pk, pv) {is_causal: 1}; }",
                     h, i, d, h, s, d, h, s, e, h, p, d, h, p, e, wanted ? "y, ck, cv" : "y",
                     wanted ? ", ck, cv" : "");
            check(text, 1);
        }
        snprintf(text, sizeof text,
                 "graph g (q: f32[1, %d, %d, %d], k: f32[1, %d, %d, %d], v: f32[1, %d, %d, %d], n: i64[1]) "
                 "-> y { y = Attention(q, k, v, "
                 "_, _, _, n); }",
                 h, i, d, h, s, d, h, s, e);
        check(text, 0);
        snprintf(text, sizeof text,
                 "graph g (q: f32[1, %d, %d, %d], k: f32[1, %d, %d, %d], v: f32[1, %d, %d, %d]) -> y, w { y, "
                 "_, _, w = Attention(q, k, v) "
                 "{qk_matmul_output_mode: %d}; }",
                 h, i, d, h, s, d, h, s, e, round % 4);
        check(text, round % 4 < 2); /* sums are made again; weights are not */
    }
}
/* Operands that are views: heads split off a row of all of them, keys that lie turned, results written
   between those of other heads. */
static void views(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int h = draw(1, 4), i = draw(1, 40), s = draw(1, 40), d = draw(1, 40), e = draw(1, 40);
        snprintf(text, sizeof text,
                 "graph g (q: f32[2, %d, %d, %d], k: f32[2, %d, %d, %d], v: f32[2, %d, %d, %d], h: f32[2, 1, "
                 "1, %d]) -> y { c: f32[] = "
                 "{0.3}; t = "
                 "Transpose(q) {perm: [0, 2, 1, 3]}; u = Transpose(k) {perm: [0, 2, 3, 1]}; w = Transpose(v) "
                 "{perm: [0, 2, 1, 3]}; s = "
                 "MatMul(t, "
                 "u); r = Mul(s, c); m = Add(r, h); p = Softmax(m) {axis: -1}; o = MatMul(p, w); y = "
                 "Transpose(o) {perm: [0, 2, 1, 3]}; }",
                 i, h, d, s, h, d, s, h, e, s);
        check(text, 1);
        snprintf(text, sizeof text,
                 "graph g (q: f32[%d, %d, %d], k: f32[%d, %d, %d], v: f32[%d, %d, %d]) -> y { s = MatMul(q, "
                 "k); p = Softmax(s) {axis: -1}; y = "
                 "MatMul(p, v); }",
                 h, i, d, h, d, s, h, s, e);
        check(text, 1);
    }
}
/* More rows than a block, more tiles than one a batch, and rows so long that a block is a kernel's. */
/* Scores have the shape of the result where there are as many keys as elements of a value, and the result
   lies with heads inside: scores must not. */
static void same_shape(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int k = 3; k < 9; k++) for (int again = 0; again < 3; again++) {
        const int heads = draw(2, 4), queries = draw(2, 7);
        snprintf(text, sizeof text,
                 "graph g (q: f32[1, %d, %d, 5], k: f32[1, %d, %d, 5], v: f32[1, %d, %d, %d]) -> y { r: "
                 "i64[3] = {0, 0, -1}; a = "
                 "Attention(q, k, v) {%s}; t = "
                 "Transpose(a) {perm: [0, 2, 1, 3]}; y = Reshape(t, r); }",
                 heads, queries, heads, k, heads, k, k,
                 again ? again > 1 ? "left_window_size: 2" : "softcap: 1.5" : "is_causal: 1");
        check(text, 1);
    }
}
static void blocks(void **state) {
    (void)state;
    static const int size[][4] = {{1, 150, 530, 33}, {2, 70, 1300, 16}, {1, 9, 12000, 4}, {3, 131, 64, 64}};
    EACH_F32_LEVEL for (int k = 0; k < 4; k++) {
        if (SLOW && k != 1) continue;
        int h = size[k][0], i = size[k][1], s = size[k][2], d = size[k][3];
        snprintf(text, sizeof text,
                 "graph g (q: f32[1, %d, %d, %d], k: f32[1, %d, %d, %d], v: f32[1, %d, %d, %d]) -> y { y = "
                 "Attention(q, k, v) {is_causal: "
                 "%d}; }",
                 h, i, d, h, s, d, h, s, d, k & 1);
        check(text, 1);
    }
}
/* Rows where all is hidden are 0; NaN spreads as far as it does by the definition. */
static void special(void **state) {
    (void)state;
    EACH_F32_LEVEL for (int round = 0; round < ROUNDS; round++) {
        int i = draw(1, 20), s = draw(1, 40), d = draw(1, 20), e = draw(1, 40);
        hide = draw(0, 1) ? 100 : 90, odd = round % 2 ? 100 : 0;
        for (int form = 0; form < 2; form++) {
            snprintf(text, sizeof text,
                     "graph g (q: f32[1, 2, %d, %d], k: f32[1, 2, %d, %d], v: f32[1, 2, %d, %d], %s[%d, %d]) "
                     "-> y { y = Attention(q, k, v, "
                     "%s); }",
                     i, d, s, d, s, e, form ? "a: bool" : "h: f32", i, s, form ? "a" : "h");
            check(text, 1);
        }
        hide = 30, odd = 0;
    }
}
/* Masks that hide what comes after, by whatever number; and numbers that are too small to hide: e^-6 counts
   where scores themselves are next to nothing. */
static void past(void **state) {
    (void)state;
    static const char *const low[] = {"-2e9, -1e9", "-3e38, -1e38", "-200, -100", "-3, -1", "-7, -5"};
    EACH_F32_LEVEL for (int round = 0; round < 5 * ROUNDS; round++) {
        int i = draw(16, 70), s = i + draw(0, 30), d = draw(1, 20), e = draw(1, 40), h = draw(1, 3);
        odd = round % 8 == 7 ? 3 : 0;
        snprintf(text, sizeof text,
                 "graph g (q: f32[1, %d, %d, %d], k: f32[1, %d, %d, %d], v: f32[1, %d, %d, %d]) -> y { f: "
                 "f32[%d, %d] = random(%d, %s); "
                 "one: i64[] = {%d}; m = Trilu(f, one); "
                 "y = Attention(q, k, v, m)%s; }",
                 h, i, d, h, s, d, h, s, e, i, s, round + 3, low[round % 5], draw(0, s - i + 1),
                 round % 5 == 4 ? " {scale: 0.001}" : "");
        check(text, 1);
        odd = 0;
    }
}

/* ---- the kernel ---------------------------------------------------------------------------------------- */
/* e^x for every x that a row can meet: within 2 ulp where it is a normal number, 0 below. */
static void rows(void **state) {
    (void)state;
    enum { N = 4099, GUARD = 8 };
    static float row[N + 2 * GUARD], was[N + 2 * GUARD];
    for (const hone_softmax *level = hone_softmax_list; level->name; level++) {
        if (level->cpu & ~hone_cpu()) continue;
        double worst = 0;
        for (int turn = 0; turn < 60; turn++) {
            int n = turn < 40 ? turn : draw(40, N);
            for (int k = 0; k < N + 2 * GUARD; k++) row[k] = was[k] = 7;
            for (int k = 0; k < n; k++)
                row[k + GUARD] = was[k + GUARD] = -(float)draw(0, 90000) / (turn % 2 ? 1000.0f : 87000.0f);
            if (n) row[GUARD + n / 2] = was[GUARD + n / 2] = 0;
            double sum = 0, total = level->row(row + GUARD, NULL, n, 1, -3e38f);
            for (int k = 0; k < N + 2 * GUARD; k++) {
                if (k < GUARD || k >= n + GUARD) {
                    assert_true(row[k] == 7); /* nothing else is touched */
                    continue;
                }
                double want = exp((double)was[k]), got = (double)row[k];
                sum += got;
                if (want < 0x1p-126) assert_true(got >= 0 && got <= 0x1p-125);
                else {
                    double ulp = fabs(got - want) / ldexp(1, ilogb(want) - 23);
                    worst = ulp > worst ? ulp : worst;
                }
            }
            assert_true(fabs(sum - total) <= 1e-6 * sum + (n ? 0 : 1e-30));
        }
#if defined(__aarch64__)
        const double most = 1.3;
#elif defined(__SANITIZE_ADDRESS__) /* that build fuses no products with sums */
        const double most = 1.2;
#else
        const double most = level->cpu ? 1 : 1.2;
#endif
        if (worst > most) fail_msg("%s: e^x is off by %g ulp", level->name, worst);
        /* scaled and masked, every length up to some vectors: each place by itself, and the sum; the row that
           is left as it is has the same sum, to the bit, and its largest value */
        for (int n = 1; n <= 5 * 16 + 3; n++) {
            float mask[5 * 16 + 3];
            const float alpha = n % 2 ? 0.5f : 1; /* a product is exact, fused or not */
            double top = -INFINITY, sum = 0;
            for (int k = 0; k < n; k++) {
                row[k] = was[k] = 4 * number(), mask[k] = (k + n) % 7 ? number() : -INFINITY;
                was[k] = was[k] * alpha + (n % 3 ? mask[k] : 0);
                top = fmax(top, (double)was[k]);
            }
            float own[5 * 16 + 3], high;
            for (int k = 0; k < n; k++) own[k] = was[k];
            row[n] = 7;
            const double got = (double)level->row(row, n % 3 ? mask : NULL, n, alpha, -3e38f);
            assert_true(row[n] == 7);
            for (int k = 0; k < n && isfinite(top); k++) {
                const double want = exp((double)(was[k] - (float)top));
                sum += want;
                if (fabs((double)row[k] - want) > 4 * 0x1p-23 * want)
                    fail_msg("%s: place %d of %d is %g, not %g", level->name, k, n, (double)row[k], want);
            }
            assert_true(fabs(got - sum) <= n * 0x1p-23 * sum);
            const double same = (double)level->exps(own, n, &high);
            if (isfinite(top)) assert_true(same == got && (double)high == top);
            for (int k = 0; k < n; k++) assert_true(own[k] == was[k]);
        }
        /* scaled and masked; hidden is 0, all hidden is all 0, NaN stays */
        float mask[5] = {1, -INFINITY, 0, -INFINITY, 2}, x[5] = {4, 100, 2, INFINITY, -2},
              none[5] = {-INFINITY, -INFINITY, -INFINITY};
        x[3] = 1e30f;
        float sum = level->row(x, mask, 5, 0.5f, -3e38f);
        assert_true(x[0] == 1 && x[1] == 0 && x[3] == 0 && fabsf(x[2] - expf(-2)) < 1e-7f &&
                    fabsf(x[4] - expf(-2)) < 1e-7f);
        assert_true(fabsf(sum - 1 - 2 * expf(-2)) < 1e-6f);
        assert_true(level->row(none, NULL, 3, 2, -3e38f) == 0 && none[0] == 0 && none[2] == 0 &&
                    none[3] == 0);
        float bad[20] = {[7] = NAN};
        assert_true(isnan(level->row(bad, NULL, 20, 1, -3e38f)) && isnan(bad[7]));
        level->times(bad + 8, 11, 3);
        assert_true(isnan(bad[7]) && bad[19] != 3 * bad[18]);
        for (int m = 1; m <= 21; m++) /* divided by sums, which have a least; a NaN stays in its row */
            for (int n = 0; n <= 19; n++) {
                float wide[21][20], *at[21], z[22];
                for (int i = 0; i < 21; i++) {
                    at[i] = wide[i], z[i] = i == 5 ? NAN : i == 3 ? 0 : (float)i + 1;
                    for (int j = 0; j < 20; j++) wide[i][j] = (float)(8 * i + j);
                }
                level->over(at, m, n, z, 0.5f);
                for (int i = 0; i < 21; i++)
                    for (int j = 0; j < 20; j++) {
                        const double from = 8 * i + j, want = i >= m || j >= n ? from
                                                              : i == 3         ? from * 2
                                                                               : from / (i + 1);
                        if (i == 5 && i < m && j < n) assert_true(isnan(wide[i][j]));
                        else assert_true(fabs((double)wide[i][j] - want) <= 1.2e-7 * want);
                    }
            }
    }
}
/* Rows that lie turned, any number of them: against those that do not. A mask, of all places or the last of
   them, rows where all is hidden, a NaN; nothing else is touched. */
static void columns(void **state) {
    (void)state;
    enum { N = 70, HIGH = 37, GUARD = 8 };
    static float x[N * HIGH + 2 * GUARD], mask[N * HIGH], row[N], of_row[N], sum[HIGH + GUARD];
    for (const hone_softmax *level = hone_softmax_list; level->name; level++) {
        if (level->cpu & ~hone_cpu()) continue;
        for (int turn = 0; turn < 4 * HIGH; turn++) {
            const int high = turn % HIGH + 1, n = draw(1, N), gone = draw(0, high - 1),
                      bad = draw(0, 3) ? -1 : draw(0, high - 1), masked = turn % 2,
                      plain = draw(0, 1) * draw(0, n - 1);
            float was[N * HIGH];
            for (int k = 0; k < N * HIGH + 2 * GUARD; k++) x[k] = 7;
            for (int k = 0; k < HIGH + GUARD; k++) sum[k] = 7;
            for (int k = 0; k < n * high; k++) {
                mask[k] = k < plain * high ? 0 : k % high == gone || draw(0, 9) == 0 ? -INFINITY : number();
                was[k] = x[k + GUARD] = (float)draw(-90000, 90000) / (turn % 3 ? 1000.0f : 30000.0f);
            }
            if (bad >= 0) was[n / 2 * high + bad] = x[n / 2 * high + bad + GUARD] = NAN;
            level->columns(x + GUARD, masked ? mask + plain * high : NULL, plain, n, high, -3e38f, sum);
            for (int k = 0; k < GUARD; k++)
                assert_true(x[k] == 7 && x[GUARD + n * high + k] == 7 && sum[high + k] == 7);
            for (int i = 0; i < high; i++) {
                for (int t = 0; t < n; t++) row[t] = was[t * high + i], of_row[t] = mask[t * high + i];
                const double want = (double)level->row(row, masked ? of_row : NULL, n, 1, -3e38f);
                if (i == bad) {
                    assert_true(isnan(sum[i]) && isnan(want) && isnan(x[n / 2 * high + i + GUARD]));
                    continue;
                }
                if (masked && i == gone && !plain) assert_true(sum[i] == 0);
                if (fabs((double)sum[i] - want) > 2e-6 * want)
                    fail_msg("%s: %d rows of %d: a sum is %g, not %g", level->name, high, n, (double)sum[i],
                             want);
                for (int t = 0; t < n; t++) assert_true(x[t * high + i + GUARD] == row[t]);
            }
        }
    }
}

/* Caches: new keys and values behind as many as a batch has, which may be any number. */
static int longest;
static hone_value *cache_input(const hone_graph *g, int k) {
    hone_value *x = NULL;
    const hone_var *v = g->var.at + g->in.at[k];
    if (v->dtype != HONE_DTYPE_I32) return twin_input(g, k);
    assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, &x), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++)
        ((int32_t *)x->data)[q] = draw(0, 9) ? draw(-3, longest + 3) : draw(0, 1) ? INT32_MAX : INT32_MIN;
    return x;
}
static void caches(void **state) {
    (void)state;
    for (int turn = 0; turn < (SLOW ? 12 : 60); turn++) {
        const int past_of = draw(1, 40), news = draw(1, 4), heads = draw(1, 3), each = draw(1, 3),
                  d = draw(1, 3) * draw(1, 5) + 1;
        const int all = draw(0, 1) ? past_of + news : past_of - draw(0, past_of < 5 ? past_of - 1 : 4);
        char text[1024];
        longest = past_of + news;
        snprintf(text, sizeof text,
                 "graph g (q: f32[2, %d, %d, %d], k: f32[2, %d, %d, %d], v: f32[2, %d, %d, %d], pk: f32[2, "
                 "%d, %d, %d], pv: f32[2, %d, %d, %d], "
                 "l: i32[2]) -> y, a, b { t: i32[] = {%d}; y, a, b = hone.CachedAttention(q, k, v, pk, pv, "
                 "l, t) {num_heads: %d, kv_num_heads: "
                 "%d}; }",
                 heads * each, news, d, heads, news, d, heads, news, d, heads, past_of, d, heads, past_of, d,
                 all, heads * each, heads);
        if (twin_check(text, cache_input, 1e-4, 1e-4, "splice") != 2) fail_msg("not by its step: %s", text);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(caches),  cmocka_unit_test(forms),      cmocka_unit_test(more_forms),
        cmocka_unit_test(views),   cmocka_unit_test(same_shape), cmocka_unit_test(blocks),
        cmocka_unit_test(special), cmocka_unit_test(past),       cmocka_unit_test(rows),
        cmocka_unit_test(columns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
