/* SPDX-License-Identifier: Apache-2.0
   The base room: dims against plain arithmetic, memory when it runs out, values, files, threads.
   Random cases come from a fixed seed, so a failure repeats. */
#define _GNU_SOURCE
#include <float.h>
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/dim.h"
#include "base/dtype.h"
#include "base/file.h"
#include "base/mem.h"
#include "base/thread.h"
#include "base/value.h"
#include "base/visible.h"
#include "random.h"

static uint64_t seed = 0x9e3779b97f4a7c15u;
static uint64_t draw(void) { return next_random_star(&seed); }
static int64_t draw_to(int64_t n) { return (int64_t)(draw() >> 1) % n; }

/* ---- status ---- */

static void test_status(void **state) {
    (void)state;
    assert_int_equal(hone_fail(HONE_BAD_INPUT, "bad %s\n%d", "name", 3), HONE_BAD_INPUT);
    assert_string_equal(hone_error(), "bad name\\n3");
    assert_int_equal(hone_fail_at(HONE_IO, "node '%s': ", "a"), HONE_IO);
    assert_string_equal(hone_fail_text(), "node 'a': bad name\\n3");
    char *text = malloc(3000);
    memset(text, 'x', 2999);
    text[2999] = 0;
    hone_fail(HONE_BUG, "%s", text);
    assert_int_equal(strlen(hone_error()), 1023);
    for (int i = 0; i < 50; i++) hone_fail_at(HONE_BUG, "%s", text);
    assert_true(strlen(hone_error()) < 1 << 14); /* context upon context stays bounded */
    hone_fail(HONE_BUG, "again: %.10s", hone_error());
    assert_string_equal(hone_error(), "again: xxxxxxxxxx");
    free(text);
}

/* ---- memory ---- */

static void test_alloc(void **state) {
    (void)state;
    uint64_t live = hone_alloc_live_bytes(), calls = hone_alloc_calls();
    size_t sizes[] = {0, 1, 63, 64, 65, 4096, (1 << 20) + 3};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        uint8_t *p = hone_alloc(sizes[i]);
        assert_non_null(p);
        assert_int_equal((uintptr_t)p % 64, 0);
        for (size_t k = 0; k < sizes[i]; k++) assert_int_equal(p[k], 0);
        if (sizes[i]) memset(p, 7, sizes[i]);
        p = hone_realloc(p, sizes[i], sizes[i] * 2 + 1);
        assert_non_null(p);
        if (sizes[i]) assert_int_equal(p[sizes[i] - 1], 7);
        assert_int_equal(p[sizes[i] * 2], 0);
        assert_int_equal(hone_alloc_live_bytes() - live, sizes[i] * 2 + 1);
        hone_free(p);
    }
    assert_int_equal(hone_alloc_live_bytes(), live);
    assert_int_equal(hone_alloc_calls() - calls, 2 * sizeof sizes / sizeof *sizes);
    assert_null(hone_alloc(SIZE_MAX));
    assert_null(hone_alloc_raw(SIZE_MAX - 100));
    hone_free(NULL);
}

static void test_sizes(void **state) {
    (void)state;
    size_t r = 5;
    assert_true(hone_mul_size(6, 7, &r));
    assert_int_equal(r, 42);
    assert_false(hone_mul_size(SIZE_MAX / 2, 3, &r));
    assert_false(hone_add_size(SIZE_MAX, 1, &r));
    assert_int_equal(r, 42);
    int64_t n = -1;
    assert_true(hone_count_of((int64_t[]){2, 3, 4}, 3, &n));
    assert_int_equal(n, 24);
    assert_true(hone_count_of(NULL, 0, &n));
    assert_int_equal(n, 1);
    assert_true(hone_count_of((int64_t[]){5, 0}, 2, &n));
    assert_int_equal(n, 0);
    assert_false(hone_count_of((int64_t[]){-1, 0}, 2, &n));
    assert_false(hone_count_of((int64_t[]){(int64_t)1 << 40, (int64_t)1 << 40}, 2, &n));
    assert_false(hone_count_of((int64_t[]){(int64_t)1 << 40, 0, (int64_t)1 << 40}, 3, &n));
    assert_true(hone_count_of((int64_t[]){(int64_t)1 << 62}, 1, &n));
    assert_false(hone_count_of((int64_t[]){((int64_t)1 << 62) + 1}, 1, &n));
}

static void test_arena(void **state) {
    (void)state;
    uint64_t live = hone_alloc_live_bytes();
    hone_arena *a = hone_arena_create();
    for (int round = 0; round < 3; round++) {
        for (int i = 0; i < 2000; i++) {
            size_t bytes = (size_t)draw_to(i % 100 == 0 ? 100000 : 200);
            uint8_t *p = hone_arena_alloc(a, bytes);
            assert_non_null(p);
            assert_int_equal((uintptr_t)p % 16, 0);
            for (size_t k = 0; k < bytes; k++) assert_int_equal(p[k], 0);
            memset(p, 0xff, bytes);
        }
        char *text = hone_arena_text(a, "%d-%s", 42, "x");
        assert_string_equal(text, "42-x");
        assert_string_equal(hone_arena_textn(a, "hello", 4), "hell");
        assert_memory_equal(hone_arena_copy(a, "abc", 4), "abc", 4);
        assert_true(hone_arena_bytes(a) > 0);
        hone_arena_reset(a);
        assert_int_equal(hone_arena_bytes(a), 0);
    }
    assert_null(hone_arena_alloc(a, SIZE_MAX));
    assert_null(hone_arena_textn(a, "", SIZE_MAX));
    hone_arena_destroy(a);
    hone_arena_destroy(NULL);
    assert_int_equal(hone_alloc_live_bytes(), live);
}

static void test_vec(void **state) {
    (void)state;
    hone_vec(int64_t) v = {0};
    for (int i = 0; i < 1000; i++) assert_true(hone_push(&v, i * 3));
    for (int i = 0; i < 1000; i++) assert_int_equal(v.at[i], i * 3);
    hone_vec_free(&v);
    assert_null(v.at);
    hone_alloc_fail_after(0);
    assert_false(hone_push(&v, 1));
    assert_int_equal(v.n, 0);
    assert_true(hone_push(&v, 1)); /* the failure was for once */
    hone_vec_free(&v);
}

static void test_text(void **state) {
    (void)state;
    hone_text t = {0};
    for (int i = 0; i < 500; i++) hone_text_put(&t, "%d,", i);
    assert_int_equal(t.n, strlen(t.text));
    assert_memory_equal(t.text + t.n - 8, "498,499,", 8);
    hone_text_free(&t);
    char shown[64];
    static const char evil[] = "a\x1b[2J\n\xc2\x9b\xff\xe2\x80\xae é";
    hone_visible(shown, sizeof shown, evil, sizeof evil - 1, false);
    assert_string_equal(shown, "a\\x1b[2J\\n\\u009b\\xff\\u202e é");
    assert_int_equal(hone_visible(shown, 5, evil, sizeof evil - 1, true), 1); /* no half of an escape */
    assert_string_equal(shown, "a");
    assert_int_equal(hone_visible(shown, 3, "\n\n\n", 3, true), 2);
    hone_text_json(&t, "a\"\\\n\t\x01\x7f é\xff\xc3\xed\xa0\x80\xf0\x9f\x98\x80");
    assert_string_equal(
        t.text, "\"a\\\"\\\\\\n\\t\\u0001\\u007f é\\ufffd\\ufffd\\ufffd\\ufffd\\ufffd\xf0\x9f\x98\x80\"");
    hone_text_free(&t);
    hone_alloc_fail_after(0);
    hone_text_put(&t, "lost");
    hone_text_put(&t, "also lost");
    assert_true(t.failed);
    assert_null(t.text);
    hone_text_free(&t);
    assert_false(t.failed);
}

/* ---- dims ---- */

static void test_dim_numbers(void **state) {
    (void)state;
    assert_int_equal(hone_dim_add(NULL, 2, 3), 5);
    assert_int_equal(hone_dim_sub(NULL, 2, 3), -1);
    assert_int_equal(hone_dim_mul(NULL, -2, 3), -6);
    assert_int_equal(hone_dim_div(NULL, -7, 2), -4);
    assert_int_equal(hone_dim_div(NULL, 7, -2), -4);
    assert_int_equal(hone_dim_mod(NULL, -7, 2), 1);
    assert_int_equal(hone_dim_mod(NULL, 7, -2), -1);
    assert_int_equal(hone_dim_div(NULL, 7, 0), 0);
    assert_int_equal(hone_dim_mod(NULL, 7, 0), 0);
    assert_int_equal(hone_dim_mod(NULL, INT64_MIN, -1), 0);
    assert_int_equal(hone_dim_div(NULL, INT64_MIN, -1), HONE_DIM_UNKNOWN);
    assert_int_equal(hone_dim_add(NULL, INT64_MAX, 1), HONE_DIM_UNKNOWN);
    assert_int_equal(hone_dim_mul(NULL, INT64_MAX, 2), HONE_DIM_UNKNOWN);
    /* never into the band */
    assert_int_equal(hone_dim_add(NULL, HONE_DIM_BAND + HONE_DIM_BAND_SIZE, -5), HONE_DIM_UNKNOWN);
    assert_int_equal(hone_dim_add(NULL, HONE_DIM_UNKNOWN, 1), HONE_DIM_UNKNOWN);
    assert_int_equal(hone_dim_min(NULL, 4, 3), 3);
    assert_int_equal(hone_dim_max(NULL, 4, 3), 4);
    assert_int_equal(hone_dim_eq(NULL, 4, 4), 1);
    assert_int_equal(hone_dim_lt(NULL, 4, 4), 0);
    assert_int_equal(hone_dim_select(NULL, 1, 5, HONE_DIM_UNKNOWN), 5);
    assert_int_equal(hone_dim_product(NULL, (hone_dim[]){2, 3, 4}, 3), 24);
}

static void same_text(hone_dims *t, hone_dim d, const char *want) {
    hone_text out = {0};
    hone_dim_print(t, d, &out);
    assert_string_equal(out.text, want);
    hone_text_free(&out);
}

static void test_dim_forms(void **state) {
    (void)state;
    hone_dims *t = hone_dims_create();
    hone_dim n = hone_dim_symbol(t, "n"), h = hone_dim_symbol(t, "h"), s = hone_dim_symbol(t, "s"),
             fresh = hone_dim_symbol(t, NULL);
#define ADD(a, b) hone_dim_add(t, a, b)
#define SUB(a, b) hone_dim_sub(t, a, b)
#define MUL(a, b) hone_dim_mul(t, a, b)
#define DIV(a, b) hone_dim_div(t, a, b)
#define MOD(a, b) hone_dim_mod(t, a, b)
    assert_int_equal(hone_dim_symbol(t, "n"), n);
    assert_int_not_equal(hone_dim_symbol(t, ""), fresh);
    /* equal polynomials, equal handles */
    assert_int_equal(MUL(ADD(n, 1), ADD(n, -1)), SUB(MUL(n, n), 1));
    assert_int_equal(ADD(ADD(n, h), ADD(s, 3)), ADD(ADD(s, ADD(3, n)), h));
    assert_int_equal(MUL(MUL(n, h), s), MUL(s, MUL(h, n)));
    assert_int_equal(SUB(ADD(n, h), n), h);
    assert_int_equal(SUB(n, n), 0);
    assert_int_equal(MUL(n, 0), 0);
    assert_int_equal(MUL(n, HONE_DIM_UNKNOWN), HONE_DIM_UNKNOWN);
    /* division */
    assert_int_equal(DIV(MUL(n, 6), 3), MUL(n, 2));
    assert_int_equal(DIV(MUL(MUL(n, h), MUL(s, 768)), MUL(MUL(n, h), 12)), MUL(s, 64));
    assert_int_equal(DIV(MUL(n, ADD(s, 1)), ADD(s, 1)), n);
    assert_int_equal(DIV(MUL(ADD(n, 2), ADD(s, 1)), ADD(s, 1)), ADD(n, 2));
    assert_int_equal(DIV(MUL(MUL(n, s), h), MUL(n, 3)), DIV(MUL(s, h), 3));
    assert_int_equal(DIV(ADD(MUL(n, 4), 7), 4), ADD(n, 1));
    assert_int_equal(ADD(DIV(SUB(h, 1), 2), 1), DIV(ADD(h, 1), 2));
    assert_int_equal(DIV(DIV(h, 2), 2), DIV(h, 4));
    assert_int_equal(DIV(ADD(DIV(ADD(h, 1), 2), 1), 2), DIV(ADD(h, 3), 4));
    assert_int_equal(DIV(ADD(MUL(h, 2), 1), 4), DIV(h, 2));
    assert_int_equal(DIV(n, 0), 0);
    assert_int_equal(MOD(MUL(n, 6), 3), 0);
    assert_int_equal(MOD(ADD(MUL(n, 6), 7), 3), 1);
    assert_int_equal(MOD(MUL(n, ADD(s, 1)), ADD(s, 1)), 0);
    assert_int_equal(MOD(MOD(n, 4), 8), MOD(n, 4));
    assert_int_equal(DIV(MOD(n, 4), 4), 0);
    /* comparisons */
    assert_int_equal(hone_dim_eq(t, ADD(n, 1), n), 0);
    assert_int_equal(hone_dim_eq(t, ADD(n, h), ADD(h, n)), 1);
    assert_int_equal(hone_dim_eq(t, ADD(n, 1), 0), 0);
    assert_true(hone_dim_is_symbolic(hone_dim_eq(t, n, 1)));
    assert_int_equal(hone_dim_eq(t, ADD(n, 1), ADD(h, 1)), hone_dim_eq(t, h, n));
    assert_int_equal(hone_dim_lt(t, n, ADD(n, h)), hone_dim_lt(t, 0, h));
    assert_int_equal(hone_dim_lt(t, n, ADD(ADD(n, h), 1)), 1);
    assert_int_equal(hone_dim_lt(t, n, 0), 0);
    assert_int_equal(hone_dim_min(t, n, INT64_MAX), n);
    assert_int_equal(hone_dim_max(t, 0, n), n);
    assert_int_equal(hone_dim_max(t, n, h), hone_dim_max(t, h, n));
    assert_int_equal(hone_dim_select(t, hone_dim_lt(t, n, 0), h, s), s);
    assert_int_equal(hone_dim_select(t, hone_dim_eq(t, n, 1), s, s), s);
    /* bounds */
    int64_t lo, hi;
    hone_dim_bounds(t, MOD(n, 8), &lo, &hi);
    assert_true(lo == 0 && hi == 7);
    hone_dim_bounds(t, SUB(hone_dim_min(t, n, 10), 3), &lo, &hi);
    assert_true(lo == -3 && hi == 7);
    hone_dim_bounds(t, HONE_DIM_UNKNOWN, &lo, &hi);
    assert_true(lo == INT64_MIN && hi == INT64_MAX);
    /* text */
    same_text(t, ADD(MUL(n, 2), 1), "2*n + 1");
    same_text(t, SUB(MUL(n, h), MUL(3, s)), "n*h - 3*s");
    same_text(t, DIV(ADD(h, 1), 2), "((h + 1) / 2)");
    same_text(t, HONE_DIM_UNKNOWN, "?");
    same_text(t, -7, "-7");
    assert_int_equal(hone_dim_handle_op(t, (int)(n - HONE_DIM_BAND)), HONE_DIM_SYMBOL);
    assert_string_equal(hone_dim_symbol_name(t, (int)(n - HONE_DIM_BAND)), "n");
    assert_string_equal(hone_dim_symbol_name(t, (int)(fresh - HONE_DIM_BAND)), "");
    hone_dims_destroy(t);
}

/* Random expressions over three symbols: the table, evaluated, equals plain arithmetic done beside it, and
   lies within its bounds. */
static void test_dim_random(void **state) {
    (void)state;
    typedef hone_dim two(hone_dims *, hone_dim, hone_dim);
    two *const ops[] = {hone_dim_add, hone_dim_sub, hone_dim_mul, hone_dim_div, hone_dim_mod,
                        hone_dim_min, hone_dim_max, hone_dim_eq,  hone_dim_lt};
    enum { STEPS = 24, POINTS = 12 };
    for (int trial = 0; trial < 3000; trial++) {
        hone_dims *t = hone_dims_create();
        hone_dim d[STEPS + 3];
        int64_t v[STEPS + 3][POINTS];
        for (int i = 0; i < 3; i++) {
            d[i] = hone_dim_symbol(t, (const char *[]){"a", "b", "c"}[i]);
            for (int p = 0; p < POINTS; p++) v[i][p] = 1 + draw_to(20); /* divisors count as nonzero */
        }
        for (int i = 3; i < STEPS + 3; i++) {
            int a = (int)draw_to(i), b = (int)draw_to(i), op = (int)draw_to(10);
            int64_t number = draw_to(9) - 2;
            bool with_number = draw_to(3) == 0;
            /* A symbolic divisor that may be zero means two things before and after simplification: use one
               that cannot. */
            if ((op == 3 || op == 4) && !with_number) b = (int)draw_to(3);
            hone_dim y = with_number ? number : d[b];
            d[i] = op < 9 ? ops[op](t, d[a], y) : hone_dim_select(t, d[a], y, d[(i * 7) % i]);
            for (int p = 0; p < POINTS; p++) {
                int64_t x = v[a][p], z = with_number ? number : v[b][p];
                v[i][p] = op < 9 ? ops[op](NULL, x, z) : hone_dim_select(NULL, x, z, v[(i * 7) % i][p]);
            }
        }
        int64_t *values = calloc((size_t)hone_dims_count(t), sizeof *values);
        for (int p = 0; p < POINTS; p++) {
            for (int h = 0; h < hone_dims_count(t); h++) values[h] = HONE_DIM_UNKNOWN;
            for (int i = 0; i < 3; i++) values[d[i] - HONE_DIM_BAND] = v[i][p];
            hone_dims_eval(t, values);
            for (int i = 0; i < STEPS + 3; i++) {
                int64_t got = hone_dim_value(d[i], values), lo, hi;
                /* an overflow on the way */
                if (got == HONE_DIM_UNKNOWN || v[i][p] == HONE_DIM_UNKNOWN) continue;
                assert_int_equal(got, v[i][p]);
                hone_dim_bounds(t, d[i], &lo, &hi);
                assert_true(lo <= got && got <= hi);
            }
        }
        hone_text text = {0};
        for (int i = 0; i < STEPS + 3; i++) hone_dim_print(t, d[i], &text);
        assert_false(text.failed);
        hone_text_free(&text);
        free(values);
        hone_dims_destroy(t);
    }
}

/* Many terms and many factors: larger than a polynomial may be, still right; and no memory gives UNKNOWN, not
   a crash. */
static void test_dim_large(void **state) {
    (void)state;
    enum { N = 200 };
    hone_dims *t = hone_dims_create();
    hone_dim sum = 0, product = 1, wide = 1, symbol[N];
    hone_dims_eval(t, NULL); /* an empty table, and one of symbols only */
    int64_t only = 5;
    same_text(t, hone_dim_symbol(t, "only"), "only");
    hone_dims_eval(t, &only);
    assert_int_equal(only, 5);
    for (int i = 0; i < N; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        symbol[i] = hone_dim_symbol(t, name);
        sum = hone_dim_add(t, hone_dim_add(t, sum, symbol[i]), 1);
        if (i < 40) product = hone_dim_mul(t, product, symbol[i]);
        if (i < 9) wide = hone_dim_mul(t, wide, hone_dim_add(t, symbol[i], 1));
    }
    int64_t *values = calloc((size_t)hone_dims_count(t), sizeof *values);
    for (int i = 0; i < N; i++) values[symbol[i] - HONE_DIM_BAND] = 2;
    hone_dims_eval(t, values);
    assert_int_equal(hone_dim_value(sum, values), 3 * N);
    assert_int_equal(hone_dim_value(product, values), (int64_t)1 << 40);
    assert_int_equal(hone_dim_value(wide, values), 19683);
    free(values);
    hone_text text = {0};
    hone_dim deep = symbol[0];
    for (int i = 0; i < 5000; i++)
        deep = hone_dim_max(t, hone_dim_mul(t, deep, symbol[i % N]), symbol[(i + 1) % N]);
    hone_dim_print(t, deep, &text);
    assert_true(text.n < 20000);
    hone_text_free(&text);
    hone_dims_destroy(t);
    for (int after = 0; after < 40; after++) {
        hone_alloc_fail_after(after);
        t = hone_dims_create();
        if (t) {
            hone_dim a = hone_dim_symbol(t, "a"), b = a;
            for (int i = 0; i < 300; i++)
                b = hone_dim_div(t, hone_dim_add(t, hone_dim_mul(t, a, i), hone_dim_symbol(t, NULL)), 7);
            assert_true(b == HONE_DIM_UNKNOWN || hone_dim_is_symbolic(b));
        }
        hone_dims_destroy(t);
    }
    hone_alloc_fail_after(-1);
}

/* ---- values ---- */

static void test_values(void **state) {
    (void)state;
    uint64_t live = hone_alloc_live_bytes();
    hone_value *v = NULL, *w = NULL, *list = NULL, *copy = NULL;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_I16, (int64_t[]){2, 3}, 2, &v), HONE_OK);
    assert_int_equal(hone_value_count(v), 6);
    assert_int_equal(v->bytes, 12);
    ((int16_t *)v->data)[4] = -7;
    assert_int_equal(hone_value_i64(v, 4), -7);
    assert_true(hone_value_f64(v, 4) == -7.0);
    float f[] = {1.5f, 2.5f};
    assert_int_equal(hone_value_view(HONE_DTYPE_F32, (int64_t[]){2}, 1, f, &w), HONE_OK);
    assert_true(hone_value_f64(w, 1) == 2.5);
    assert_int_equal(hone_value_list(HONE_TAG_SEQUENCE, (hone_value *[]){v, w}, 2, &list), HONE_OK);
    assert_int_equal(list->dtype, HONE_DTYPE_NONE);
    assert_int_equal(hone_value_copy(list, &copy), HONE_OK);
    hone_value_drop(list);
    hone_value_drop(v);
    hone_value_drop(w);
    assert_int_equal(hone_value_i64(copy->item[0], 4), -7);
    assert_true(copy->item[1]->data != f && hone_value_f64(copy->item[1], 0) == 1.5);
    hone_text text = {0};
    hone_value_describe(copy->item[0], &text);
    hone_value_describe(copy, &text);
    assert_string_equal(text.text, "i16[2,3]seq(2)");
    hone_text_free(&text);
    hone_value_drop(copy);
    hone_value_drop(NULL);

    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, (int64_t[]){-1}, 1, &v), HONE_BAD_INPUT);
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F64, (int64_t[]){(int64_t)1 << 61}, 1, &v), HONE_BAD_INPUT);
    assert_int_equal(hone_value_tensor(HONE_DTYPE_NONE, NULL, 0, &v), HONE_BAD_INPUT);
    assert_int_equal(hone_value_tensor(HONE_DTYPE_U8, NULL, HONE_MAX_RANK + 1, &v), HONE_NOT_SUPPORTED);
    assert_int_equal(hone_value_view(HONE_DTYPE_F32, (int64_t[]){2}, 1, NULL, &v), HONE_BAD_INPUT);
    assert_int_equal(hone_value_list(HONE_TAG_MAP, NULL, 0, &v), HONE_BAD_INPUT);
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, (int64_t[]){0, 5}, 2, &v), HONE_OK);
    assert_null(v->data);
    hone_value_drop(v);
    assert_int_equal(hone_alloc_live_bytes(), live);
}

static void test_value_strings(void **state) {
    (void)state;
    uint64_t live = hone_alloc_live_bytes();
    hone_value *v = NULL, *copy = NULL;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_STRING, (int64_t[]){3}, 1, &v), HONE_OK);
    assert_int_equal(hone_value_string(v, 2)->bytes, 0);
    v->strings = hone_strings_create();
    ((const hone_string **)v->data)[1] = hone_strings_add(v->strings, "a\0b", 3);
    hone_strings *pool = hone_strings_hold(v->strings);
    assert_int_equal(hone_value_copy(v, &copy), HONE_OK);
    hone_value_drop(v);
    hone_strings_drop(pool);
    assert_int_equal(hone_value_string(copy, 1)->bytes, 3);
    assert_memory_equal(hone_value_string(copy, 1)->text, "a\0b", 3);
    hone_value_drop(copy);
    /* every failure on the way is reported and leaves nothing behind */
    for (int after = 0; after < 12; after++) {
        copy = NULL;
        if (hone_value_tensor(HONE_DTYPE_STRING, (int64_t[]){2, 2}, 2, &v)) fail();
        hone_alloc_fail_after(after);
        hone_status s = hone_value_copy(v, &copy);
        hone_alloc_fail_after(-1);
        assert_true(s == HONE_NO_MEMORY ? copy == NULL : copy != NULL);
        hone_value_drop(copy);
        hone_value_drop(v);
    }
    assert_int_equal(hone_alloc_live_bytes(), live);
}

static void test_value_depth(void **state) {
    (void)state;
    uint64_t live = hone_alloc_live_bytes();
    hone_value *v = NULL, *next;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, NULL, 0, &v), HONE_OK);
    int depth = 0;
    for (hone_status s = HONE_OK; !s; depth++) {
        s = hone_value_list(HONE_TAG_OPTIONAL, &v, 1, &next);
        if (s) break;
        hone_value_drop(v);
        v = next;
    }
    assert_int_equal(depth, HONE_MAX_DEPTH);
    assert_non_null(strstr(hone_error(), "nested"));
    hone_text text = {0};
    hone_value_describe(v, &text);
    hone_text_free(&text);
    assert_int_equal(hone_value_copy(v, &next), HONE_OK);
    hone_value_drop(next);
    hone_value_drop(v);
    assert_int_equal(hone_alloc_live_bytes(), live);
}

/* ---- files ---- */

static void test_files(void **state) {
    (void)state;
    char folder[] = "/tmp/hone_base_XXXXXX";
    assert_non_null(mkdtemp(folder));
    hone_arena *a = hone_arena_create();
    char *path = hone_arena_text(a, "%s/file", folder), *beside = hone_path_beside(a, path, "sub/w.bin");
    assert_string_equal(beside, hone_arena_text(a, "%s/sub/w.bin", folder));
    assert_string_equal(hone_path_beside(a, "model.onnx", "w..bin"), "w..bin");
    static const char *const bad[] = {"", "/etc/passwd", "..", "../x", "a/../b", "a//../b", "a/.."};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) assert_null(hone_path_beside(a, path, bad[i]));

    hone_file f;
    size_t bytes = 3 * 4096 + 5;
    uint8_t *data = hone_alloc(bytes);
    for (size_t i = 0; i < bytes; i++) data[i] = (uint8_t)draw();
    for (int round = 0; round < 2; round++) assert_int_equal(hone_file_write(path, data, bytes), HONE_OK);
    assert_int_equal(hone_file_open(path, &f), HONE_OK);
    assert_int_equal(f.bytes, bytes);
    assert_memory_equal(f.data, data, bytes);
    hone_file_forget(f.data + 100, bytes - 200);
    hone_file_forget(f.data + bytes - 1, bytes); /* beyond the end: as far as it goes */
    uint8_t *heap = hone_alloc(1 << 20);
    assert_non_null(heap);
    memset(heap, 7, 1 << 20);
    hone_file_forget(heap, 1 << 20); /* of no file: stays as it is */
    for (int k = 0; k < 1 << 20; k++) assert_int_equal(heap[k], 7);
    hone_free(heap);
    assert_memory_equal(f.data, data, bytes);
    hone_file_close(&f);
    assert_int_equal(hone_file_write(path, "", 0), HONE_OK);
    assert_int_equal(hone_file_open(path, &f), HONE_OK);
    assert_int_equal(f.bytes, 0);
    hone_file_close(&f);
    assert_int_equal(hone_file_open(folder, &f), HONE_IO);
    assert_int_equal(hone_file_open("/nonexistent/file", &f), HONE_IO);
    assert_non_null(strstr(hone_error(), "/nonexistent/file"));
    assert_int_equal(hone_file_write("/nonexistent/file", "", 0), HONE_IO);
    assert_int_equal(hone_file_write("/dev/null", data, 10), HONE_OK);
    struct stat st;
    assert_true(stat("/dev/null", &st) == 0 && S_ISCHR(st.st_mode));
    char *pipe = hone_arena_text(a, "%s/pipe", folder);
    assert_int_equal(mkfifo(pipe, 0600), 0);
    assert_int_equal(hone_file_open(pipe, &f), HONE_IO);
    unlink(pipe);
    unlink(path);
    assert_int_equal(rmdir(folder), 0); /* no temporary file was left */
    hone_free(data);
    hone_arena_destroy(a);
}

/* ---- threads ---- */

enum { MEMBERS = 64 }; /* at most: a machine may have more cores */
typedef struct {
    hone_barrier barrier;
    int rounds, members;
    int64_t part[MEMBERS], total;
    atomic_int next, wrong;
} sums;

/* Each round every member adds its part; member 0 gathers between two barriers; nobody may see a half-done
   round. */
static void sum_rounds(sums *s, int member) {
    for (int r = 0; r < s->rounds; r++) {
        s->part[member] = (int64_t)r * (member + 1);
        hone_barrier_wait(&s->barrier);
        if (member == 0)
            for (int m = 0; m < s->members; m++) s->total += s->part[m];
        hone_barrier_wait(&s->barrier);
        int64_t want = (int64_t)r * (r + 1) / 2 * s->members * (s->members + 1) / 2;
        if (s->total != want) atomic_fetch_add(&s->wrong, 1);
    }
}

static void *sum_thread(void *arg) {
    sums *s = arg;
    sum_rounds(s, atomic_fetch_add(&s->next, 1));
    return NULL;
}

/* More members than cores too: threads of our own, since a team never is larger than the machine. */
static void test_barrier(void **state) {
    (void)state;
    for (int members = 1; members <= 4; members++) {
        sums s = {.rounds = 3000, .members = members};
        pthread_t thread[4];
        hone_barrier_init(&s.barrier, members);
        for (int i = 0; i < members; i++)
            assert_int_equal(pthread_create(&thread[i], NULL, sum_thread, &s), 0);
        for (int i = 0; i < members; i++) pthread_join(thread[i], NULL);
        assert_int_equal(s.wrong, 0);
    }
}

static void team_body(void *arg, int member, int members) {
    sums *s = arg;
    if (member == 0) s->members = members, hone_barrier_init(&s->barrier, members), atomic_store(&s->next, 1);
    while (!atomic_load(&s->next)) sched_yield();
    sum_rounds(s, member);
}

static void *many_teams(void *arg) {
    int *wrong = arg;
    for (int i = 0; i < 300; i++) {
        sums s = {.rounds = i % 10};
        hone_team_run(i % 5 ? i % 5 : MEMBERS, team_body, &s);
        *wrong += s.wrong;
        if (s.members < 1 || s.members > hone_cores()) ++*wrong;
    }
    return NULL;
}

static atomic_int inside, most;
static void count_body(void *arg, int member, int members) {
    (void)member, (void)members;
    int now = atomic_fetch_add(&inside, 1) + 1, seen = atomic_load(&most);
    while (now > seen && !atomic_compare_exchange_weak(&most, &seen, now)) {}
    if (arg) {
        atomic_fetch_sub(&inside, 1);
        hone_team_run(0, count_body, NULL); /* a team inside a team: its caller is counted once */
        atomic_fetch_add(&inside, 1);
    }
    atomic_fetch_sub(&inside, 1);
}

/* Workers are kept off their caller's core while they are woken; when they run, their cores are those of the
   process again. */
static void cores_body(void *arg, int member, int members) {
    cpu_set_t mine;
    (void)member, (void)members;
    if (sched_getaffinity(0, sizeof mine, &mine) || !CPU_EQUAL(&mine, (const cpu_set_t *)arg))
        atomic_fetch_add(&most, 1);
}
static void test_cores(void **state) {
    (void)state;
    cpu_set_t all;
    if (sched_getaffinity(0, sizeof all, &all)) skip();
    atomic_store(&most, 0);
    for (int i = 0; i < 20; i++) {
        hone_team_run(0, cores_body, &all);
        if (i % 4 == 0) nanosleep(&(struct timespec){0, 2000000}, NULL); /* they sleep */
        if (i == 10) hone_pool_shutdown();
    }
    assert_int_equal(atomic_load(&most), 0);
}

/* Work taken in turn: each piece once, whoever came. Workers that have not begun when nothing is left are
   called back, so that a team of next to no work mostly ends before they come; and they are free again. */
typedef struct {
    atomic_int next, helped, done[64];
    int n;
} taking;
static void take_body(void *arg, int member, int members) {
    taking *t = arg;
    (void)members;
    if (member) atomic_fetch_add(&t->helped, 1);
    for (int k; (k = atomic_fetch_add(&t->next, 1)) < t->n;) atomic_fetch_add(&t->done[k], 1);
}
static void *many_shares(void *arg) {
    int *wrong = arg;
    for (int i = 0; i < 1000; i++) {
        taking t = {.n = i % 64};
        hone_team_share(0, take_body, &t);
        for (int k = 0; k < 64; k++) *wrong += atomic_load(&t.done[k]) != (k < t.n);
        if (i % 50 == 0) nanosleep(&(struct timespec){0, 200000}, NULL); /* they sleep */
        if (i % 8 == 0) {
            sums s = {.rounds = i % 10}; /* one that meets, between */
            hone_team_run(0, team_body, &s);
            *wrong += s.wrong;
        }
    }
    return NULL;
}
static void members_body(void *arg, int member, int members) {
    (void)arg;
    if (!member) atomic_store(&most, members);
}
static void test_shares(void **state) {
    (void)state;
    int wrong[3] = {0}, helped = 0;
    pthread_t thread[3];
    for (int i = 0; i < 500; i++) {
        taking t = {.n = 1};
        hone_team_share(2, take_body, &t);
        helped += atomic_load(&t.helped);
    }
    assert_true(hone_cores() < 2 || helped < 500);
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, many_shares, &wrong[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 3; i++) assert_int_equal(wrong[i], 0);
    atomic_store(&most, 0);
    for (int i = 0; i < 200 && atomic_load(&most) < hone_cores(); i++) hone_team_run(0, members_body, NULL);
    assert_int_equal(atomic_load(&most), hone_cores()); /* none was lost */
    hone_pool_shutdown();
}

static void test_teams(void **state) {
    (void)state;
    int wrong[3] = {0};
    pthread_t thread[3];
    many_teams(&wrong[0]);
    hone_pool_shutdown();
    for (int i = 0; i < 3; i++) assert_int_equal(pthread_create(&thread[i], NULL, many_teams, &wrong[i]), 0);
    for (int i = 0; i < 3; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 3; i++) assert_int_equal(wrong[i], 0);
    atomic_store(&most, 0);
    for (int i = 0; i < 200; i++) hone_team_run(0, count_body, &most);
    assert_int_equal(inside, 0);
    assert_true(most >= 1 && most <= hone_cores());
#ifndef __SANITIZE_THREAD__ /* which cannot follow a fork of many threads */
    /* A child has no workers and must not wait for them. */
    pid_t child = fork();
    if (child == 0) {
        int bad = 0;
        many_teams(&bad);
        hone_pool_shutdown();
        _exit(bad != 0);
    }
    int status = 1;
    assert_true(child > 0 && waitpid(child, &status, 0) == child);
    assert_int_equal(status, 0);
#endif
    hone_pool_shutdown();
    hone_pool_shutdown();
}

static void test_cpu(void **state) {
    (void)state;
    assert_true(hone_cores() >= 1);
    uint64_t a = hone_clock_ns();
    assert_true(hone_clock_ns() >= a);
    hone_cpu_mask(0);
    assert_int_equal(hone_cpu(), 0);
    hone_cpu_mask(UINT32_MAX);
    assert_non_null(hone_cpu_name());
    if (hone_cpu() & HONE_CPU_AVX512) assert_true(hone_cpu() & HONE_CPU_AVX2);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status),      cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_arena),
        cmocka_unit_test(test_vec),         cmocka_unit_test(test_text),
        cmocka_unit_test(test_dim_numbers), cmocka_unit_test(test_dim_forms),
        cmocka_unit_test(test_dim_random),  cmocka_unit_test(test_dim_large),
        cmocka_unit_test(test_values),      cmocka_unit_test(test_value_strings),
        cmocka_unit_test(test_value_depth), cmocka_unit_test(test_files),
        cmocka_unit_test(test_barrier),     cmocka_unit_test(test_cores),
        cmocka_unit_test(test_teams),       cmocka_unit_test(test_shares),
        cmocka_unit_test(test_cpu)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
