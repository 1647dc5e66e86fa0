/* SPDX-License-Identifier: Apache-2.0
   Rotary positions as the CPU runs them, against the definition: as one step where pairs lie in halves or
   side by side, in parts of a head, in views; every CPU level, one thread and many (equal bits), values that
   are no numbers. And its kernels in double. */
#include "twin.h"

#include "kernels/rotary.h"

enum { ROUNDS = SLOW ? 3 : 10 };
static char text[1024];
static int check(void) { return twin_check(text, twin_input, 2e-6, 1e-6, "rotary"); }

static void one_step(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        const int b = draw(1, 3), h = draw(1, 5), s = draw(1, 40),
                  k = draw(0, 2) ? draw(1, 12) : draw(13, 70), rest = draw(0, 1) * draw(1, 5);
        for (int neighbours = 0; neighbours < 2; neighbours++) {
            char part[48] = "";
            if (rest) snprintf(part, sizeof part, ", rotary_embedding_dim: %d", 2 * k);
            snprintf(text, sizeof text,
                     "graph g (x: f32[%d, %d, %d, %d], c: f32[%d, %d, %d], s: f32[%d, %d, %d]) -> y { y = "
                     "RotaryEmbedding(x, c, s) "
                     "{interleaved: %d%s}; }",
                     b, h, s, 2 * k + rest, b, s, k, b, s, k, neighbours, part);
            assert_int_equal(check(), 1);
        }
    }
}
/* heads after the tokens, as a product leaves them; tables that are the same for all of a batch;
   infinities */
static void views(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) {
        const int b = draw(1, 3), h = draw(1, 5), s = draw(1, 40), k = draw(1, 40);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, %d, %d, %d], c: f32[1, %d, %d]) -> y, z { n: i64[3] = {%d, 1, 1}; e = "
                 "Expand(c, n); l = Log(e); t = "
                 "Transpose(x) {perm: [0, 2, 1, 3]}; y = RotaryEmbedding(t, l, e) {interleaved: %d}; z = "
                 "Transpose(y) {perm: [0, 2, 1, 3]}; }",
                 b, s, h, 2 * k, s, k, b, draw(0, 1));
        assert_int_equal(check(), 1);
    }
}
static void others(void **state) { /* rows that data pick: tile code */
    (void)state;
    EACH_LEVEL {
        snprintf(text, sizeof text,
                 "graph g (x: f32[1, 2, 3, 8], c: f32[5, 4], s: f32[5, 4]) -> y { at: i64[1, 3] = {4, 0, 2}; "
                 "y = RotaryEmbedding(x, c, s, "
                 "at); }");
        assert_int_equal(check(), 0);
    }
}
enum { HEADS = 3, MOST = 40, GAP = 5 };
static void rows(void **state) {
    (void)state;
    for (const hone_rotary *row = hone_rotary_list; row->name; row++) {
        if (row->cpu & ~hone_cpu()) continue;
        for (int pairs = 1; pairs <= MOST; pairs++)
            for (int neighbours = 0; neighbours < 2; neighbours++) {
                const ptrdiff_t head = 2 * pairs + GAP, apart = neighbours ? 1 : pairs,
                                step = neighbours ? 2 : 1;
                const size_t n = (size_t)(HEADS * head);
                float *x = malloc(sizeof *x * n), *y = malloc(sizeof *y * n),
                      *c = malloc(sizeof *c * (size_t)pairs), *s = malloc(sizeof *s * (size_t)pairs);
                for (size_t i = 0; i < n; i++) x[i] = number(), y[i] = 77;
                for (int i = 0; i < pairs; i++) c[i] = number(), s[i] = number();
                if (pairs % 5 == 0) x[draw(0, (int)n - 1)] = NAN, c[draw(0, pairs - 1)] = INFINITY;
                const hone_rotary_shape d = {HEADS, pairs, head, head, apart, apart};
                (neighbours ? row->neighbours : row->halves)(&d, x, c, s, y);
                for (int h = 0; h < HEADS; h++) {
                    for (int i = 0; i < pairs; i++) {
                        const ptrdiff_t a = h * head + i * step, b = a + apart;
                        const double want[] = {(double)x[a] * (double)c[i] - (double)x[b] * (double)s[i],
                                               (double)x[b] * (double)c[i] + (double)x[a] * (double)s[i]};
                        for (int q = 0; q < 2; q++) {
                            const double got = (double)y[q ? b : a];
                            if (isnan(want[q]) ? !isnan(got)
                                               : got != want[q] && !(fabs(got - want[q]) <= 2e-6))
                                fail_msg("%s: %g, not %g", row->name, got, want[q]);
                        }
                    }
                    for (int i = 0; i < GAP; i++) assert_true(y[h * head + 2 * pairs + i] == 77);
                }
                float *copy = malloc(sizeof *x * n); /* on x itself */
                memcpy(copy, y, sizeof *y * n);
                (neighbours ? row->neighbours : row->halves)(&d, x, c, s, x);
                for (int h = 0; h < HEADS; h++)
                    assert_memory_equal(x + h * head, copy + h * head, sizeof *x * 2 * (size_t)pairs);
                free(x), free(y), free(c), free(s), free(copy);
            }
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(one_step), cmocka_unit_test(views),
                                       cmocka_unit_test(others), cmocka_unit_test(rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
