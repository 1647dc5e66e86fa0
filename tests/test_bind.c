/* SPDX-License-Identifier: Apache-2.0
   Binding: many shapes on one model, plans that end where a shape is computed, inputs that do not fit, memory
   that runs out, and runs that allocate nothing. Small graphs as text; real models too where HONE_SHARED_DIR
   names them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hone/hone.h"
#include "plan/verify.h"
#include "run/exec.h"
#include "random.h"

static uint64_t random_state = 1;
static uint64_t draw(uint64_t below) { return next_random(&random_state) % below; }
static hone_value *tensor(hone_dtype t, const int64_t *dims, int rank) {
    hone_value *v = NULL;
    assert_int_equal(hone_value_tensor(t, dims, rank, &v), HONE_OK);
    int64_t n = hone_value_count(v);
    for (int64_t k = 0; k < n; k++) {
        if (t == HONE_DTYPE_F32) ((float *)v->data)[k] = (float)draw(2000) / 1000 - 1;
        else if (t == HONE_DTYPE_I64) ((int64_t *)v->data)[k] = (int64_t)draw(8);
        else if (t == HONE_DTYPE_BOOL) ((uint8_t *)v->data)[k] = draw(2) != 0;
    }
    return v;
}
#define TENSOR(type, ...)                                     \
    tensor(HONE_DTYPE_##type, (const int64_t[]){__VA_ARGS__}, \
           (int)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
static hone_compiled *compile(const char *text) {
    hone_graph *g = NULL;
    hone_compiled *c = NULL;
    if (hone_graph_parse(text, strlen(text), &g) || hone_compile(g, &c))
        fail_msg("%s\nin\n%s", hone_fail_text(), text);
    return c;
}
static hone_exec *executor(const hone_compiled *c, int threads, int plans, bool interpret) {
    hone_exec *e = NULL;
    hone_exec_options o = {.threads = threads, .plans = plans, .interpret = interpret};
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    return e;
}
static void run(hone_exec *e, hone_value *const *in, hone_value **out) {
    if (hone_exec_run(e, in, out)) fail_msg("%s", hone_fail_text());
}
static void assert_same(const hone_value *a, const hone_value *b) { /* the same bits */
    assert_int_equal(a->dtype, b->dtype);
    assert_int_equal(a->rank, b->rank);
    for (int k = 0; k < a->rank; k++) assert_int_equal(a->dim[k], b->dim[k]);
    if (a->bytes) assert_memory_equal(a->data, b->data, a->bytes);
}
static void assert_near(const hone_value *a, const hone_value *b) {
    assert_int_equal(a->rank, b->rank);
    for (int k = 0; k < a->rank; k++) assert_int_equal(a->dim[k], b->dim[k]);
    int64_t n = hone_value_count(a);
    for (int64_t k = 0; k < n; k++) {
        double x = hone_value_number(a, k), y = hone_value_number(b, k);
        if (!(x - y < 1e-4 && y - x < 1e-4)) fail_msg("element %lld: %.9g, %.9g", (long long)k, x, y);
    }
}

/* Dims computed from dims, views of views, sums and products: what a transformer does to shapes. */
static const char mixed[] = "graph mixed opset 18 (x: f32[batch, seq, 8], m: f32[batch, seq]) -> y, z {\n"
                            "  w: f32[8, 12] = random(7, -0.5, 0.5);\n"
                            "  zero: i64[] = {0};\n  one: i64[] = {1};\n  heads: i64[4] = {0, 0, 3, 4};\n  "
                            "last: i64[1] = {-1};\n  flat: i64[2] = {-1, 12};\n"
                            "  a2: i64[1] = {2};\n  n1: i64[1] = {1};\n  n9: i64[1] = {99};\n"
                            "  p = MatMul(x, w);\n"
                            "  q = Reshape(p, heads);\n"
                            "  t = Transpose(q) {perm: [0, 2, 1, 3]};\n"
                            "  u = Transpose(q) {perm: [0, 2, 3, 1]};\n"
                            "  s = MatMul(t, u);\n"
                            "  mm = Unsqueeze(m, n1);\n  m4 = Unsqueeze(mm, n1);\n"
                            "  b = Add(s, m4);\n"
                            "  f = Softmax(b) {axis: -1};\n"
                            "  o = MatMul(f, t);\n"
                            "  r = Transpose(o) {perm: [0, 2, 1, 3]};\n"
                            "  y = Reshape(r, flat);\n"
                            "  sh = Shape(x);\n  n = Gather(sh, one);\n"
                            "  i = Range(zero, n, one);\n  c = Cast(i) {to: f32};\n"
                            "  k = Slice(p, n1, n9, n1);\n"
                            "  d = ReduceMean(p, last) {keepdims: 0};\n"
                            "  e = Add(d, c);\n"
                            "  v = ReduceSum(k, n1) {keepdims: 1};\n"
                            "  z = Concat(v, p) {axis: 1};\n"
                            "}\n";
static void random_shapes(void **state) {
    (void)state;
    hone_compiled *c = compile(mixed);
    hone_exec *e = executor(c, 1, 8, false);
    uint64_t early = 0;
#ifdef __SANITIZE_ADDRESS__
    enum { TURNS = 2500 };
#else
    enum { TURNS = 10000 };
#endif
    for (int turn = 0; turn < TURNS; turn++) {
        int64_t batch = 1 + (int64_t)draw(4), seq = 1 + (int64_t)draw(24);
        hone_value *in[2] = {TENSOR(F32, batch, seq, 8), TENSOR(F32, batch, seq)}, *out[2] = {0},
                   *want[2] = {0};
        run(e, in, out);
        assert_true(hone_exec_plans(e) <= 8);
        if (turn % 250 == 0) { /* a fresh one, and the definition */
            hone_exec *fresh = executor(c, 1, 0, false), *slow = executor(c, 1, 0, true);
            run(fresh, in, want);
            for (int k = 0; k < 2; k++)
                assert_same(out[k], want[k]), hone_value_drop(want[k]), want[k] = NULL;
            run(slow, in, want);
            for (int k = 0; k < 2; k++) assert_near(out[k], want[k]), hone_value_drop(want[k]);
            hone_exec_destroy(fresh), hone_exec_destroy(slow);
        }
        for (int k = 0; k < 2; k++) hone_value_drop(in[k]), hone_value_drop(out[k]);
        if (turn == 1000) early = hone_alloc_live_bytes();
    }
    assert_true(hone_alloc_live_bytes() <= early + early / 2); /* eight plans of other shapes */
    hone_exec_destroy(e);
    hone_compiled_destroy(c);
}
static void no_allocation(void **state) {
    (void)state;
    if (hone_guard_wanted()) skip(); /* every block is allocated in every run */
    hone_compiled *c = compile(mixed);
    for (int threads = 1; threads <= 2; threads++) {
        hone_exec *e = executor(c, threads, 0, false);
        hone_value *in[2] = {TENSOR(F32, 2, 9, 8), TENSOR(F32, 2, 9)}, *out[2] = {0};
        run(e, in, out); /* makes the plan and the outputs */
        uint64_t calls = hone_alloc_calls();
        for (int k = 0; k < 5; k++) run(e, in, out);
        assert_int_equal(hone_alloc_calls(), calls);
        for (int k = 0; k < 2; k++) hone_value_drop(in[k]), hone_value_drop(out[k]);
        hone_exec_destroy(e);
    }
    hone_compiled_destroy(c);
}
static void threads_agree(void **state) {
    (void)state;
    hone_compiled *c = compile(mixed);
    hone_exec *one = executor(c, 1, 0, false), *two = executor(c, 2, 0, false);
    for (int turn = 0; turn < 20; turn++) {
        int64_t batch = 1 + (int64_t)draw(3), seq = 1 + (int64_t)draw(150);
        hone_value *in[2] = {TENSOR(F32, batch, seq, 8), TENSOR(F32, batch, seq)}, *a[2] = {0}, *b[2] = {0};
        run(one, in, a), run(two, in, b);
        for (int k = 0; k < 2; k++)
            assert_same(a[k], b[k]), hone_value_drop(a[k]), hone_value_drop(b[k]), hone_value_drop(in[k]);
    }
    hone_exec_destroy(one), hone_exec_destroy(two);
    hone_compiled_destroy(c);
}

/* A mask and a table's rows that the shape alone decides are there when the first run begins; rows past the
   table's end are refused as ever. */
static void once(void **state) {
    (void)state;
    hone_compiled *c =
        compile("graph once opset 18 (x: f32[n, 6]) -> y, m {\n"
                "  zero: i64[] = {0};\n  one: i64[] = {1};\n  a0: i64[1] = {0};\n  a1: i64[1] = {1};\n"
                "  on: f32[] = {0};\n  off: f32[] = {-9};\n  w: f32[20, 6] = random(3, -1, 1);\n"
                "  sh = Shape(x);\n  n = Gather(sh, zero);\n  i = Range(zero, n, one);\n"
                "  r = Unsqueeze(i, a0);\n  q = Unsqueeze(i, a1);\n  p = LessOrEqual(r, q);\n"
                "  k = Where(p, on, off);\n  t = Gather(w, i);\n  m = Neg(k);\n"
                "  h = Mul(x, t);\n  y = MatMul(k, h);\n"
                "}\n");
    hone_exec *fast = executor(c, 1, 4, false), *slow = executor(c, 1, 4, true);
    for (int64_t n = 1; n <= 21; n++) {
        hone_value *in[1] = {TENSOR(F32, n, 6)}, *a[2] = {0}, *b[2] = {0};
        if (n > 20) {
            assert_int_not_equal(hone_exec_run(fast, in, a), HONE_OK);
            /* what was made before it failed */
            hone_value_drop(in[0]), hone_value_drop(a[0]), hone_value_drop(a[1]);
            break;
        }
        run(slow, in, b);
        for (int again = 0; again < 2; again++) {
            run(fast, in, a);
            for (int k = 0; k < 2; k++) assert_near(a[k], b[k]);
        }
        for (int k = 0; k < hone_exec_last(fast)->n_step; k++) {
            const char *op = hone_exec_last(fast)->step[k].of->program->name;
            assert_true(strcmp(op, "Where") && strcmp(op, "LessOrEqual") && strcmp(op, "Gather"));
        }
        for (int k = 0; k < 2; k++) hone_value_drop(a[k]), hone_value_drop(b[k]);
        hone_value_drop(in[0]);
    }
    hone_exec_destroy(fast), hone_exec_destroy(slow);
    hone_compiled_destroy(c);
}

/* ---- shapes that are computed -------------------------------------------------------------------------- */
static const char computed[] = "graph computed opset 18 (x: f32[n], c: bool[]) -> y, s, z {\n"
                               "  zero: f32[] = {0};\n  m1: i64[1] = {-1};\n  two: f32[] = {2};\n"
                               "  p = Greater(x, zero);\n"
                               "  at = NonZero(p);\n"
                               "  i = Reshape(at, m1);\n"
                               "  g = Gather(x, i);\n"
                               "  y = Mul(g, two);\n"
                               "  s = Shape(y);\n"
                               "  q = NonZero(g);\n  j = Reshape(q, m1);\n  h = Gather(y, j);\n"
                               "  z = If(c; h, x) {then_branch: graph t (; h: f32[], x: f32[]) -> r { k = "
                               "NonZero(h); r = Cast(k) {to: f32}; },"
                               " else_branch: graph e (; h: f32[], x: f32[]) -> r { r = Add(x, x); }};\n"
                               "}\n";
static void cuts(void **state) {
    (void)state;
    hone_compiled *c = compile(computed);
    hone_exec *e = executor(c, 2, 4, false);
    for (int turn = 0; turn < 300; turn++) {
        hone_value *in[2] = {TENSOR(F32, (int64_t)draw(12)), tensor(HONE_DTYPE_BOOL, NULL, 0)}, *out[3] = {0};
        run(e, in, out);
        const float *x = in[0]->data, *y = out[0]->data;
        int64_t n = 0;
        for (int64_t k = 0; k < in[0]->dim[0]; k++)
            if (x[k] > 0) assert_true(n < out[0]->dim[0] && y[n] == 2 * x[k]), n++;
        assert_int_equal(out[0]->dim[0], n);
        assert_int_equal(*(int64_t *)out[1]->data, n);
        bool yes = *(uint8_t *)in[1]->data;
        assert_int_equal(hone_value_count(out[2]), yes ? n : in[0]->dim[0]);
        for (int64_t k = 0; k < hone_value_count(out[2]); k++)
            assert_true(((float *)out[2]->data)[k] == (yes ? (float)k : 2 * x[k]));
        for (int k = 0; k < 2; k++) hone_value_drop(in[k]);
        for (int k = 0; k < 3; k++) hone_value_drop(out[k]);
    }
    hone_exec_destroy(e);
    hone_compiled_destroy(c);
}

/* A host op that wants a picture in rows, between what makes it and what reads it: the reader computes the
   same, and as fast: it still sees channels last. */
static int slow_steps(const hone_exec *e) {
    int n = 0;
    for (const hone_plan *p = hone_exec_last(e); p; p = p->next_cut)
        for (int k = 0; k < p->n_step; k++) n += !strcmp(p->step[k].tactic, "tile");
    return n;
}
static void rows_of_a_picture(void **state) {
    (void)state;
#define DEPTHWISE                                                                      \
    "w: f32[32, 8, 1, 1] = random(1, -1, 1); d: f32[32, 1, 3, 3] = random(2, -1, 1); " \
    "v: f32[8, 32, 1, 1] = random(3, -1, 1); a = Conv(x, w); r = Relu(a); "
    static const char *const texts[] = {"graph g opset 18 (x: f32[n, 8, 20, 20]) -> y { " DEPTHWISE
                                        "b = Conv(r, d) {group: 32}; y = Conv(b, v); }",
                                        "graph g opset 18 (x: f32[n, 8, 20, 20]) -> y, z { " DEPTHWISE
                                        "z = NonZero(r); b = Conv(r, d) {group: 32}; y = Conv(b, v); }"};
    hone_value *in[1] = {TENSOR(F32, 2, 8, 20, 20)}, *out[3][2] = {{0}};
    int slow[2] = {0};
    for (int k = 0; k < 3; k++) { /* the last: what it means */
        hone_compiled *c = compile(texts[k > 0]);
        hone_exec *e = executor(c, 1, 4, k == 2);
        run(e, in, out[k]);
        if (k < 2) slow[k] = slow_steps(e);
        hone_exec_destroy(e), hone_compiled_destroy(c);
    }
    assert_int_equal(slow[1], slow[0]);
    for (int64_t i = 0; i < hone_value_count(out[0][0]); i++)
        for (int k = 0; k < 2; k++)
            assert_float_equal(((float *)out[k][0]->data)[i], ((float *)out[2][0]->data)[i], 1e-4);
    assert_int_equal(hone_value_count(out[1][1]), hone_value_count(out[2][1]));
    assert_memory_equal(out[1][1]->data, out[2][1]->data, out[1][1]->bytes);
    for (int k = 0; k < 3; k++) hone_value_drop(out[k][0]), hone_value_drop(out[k][1]);
    hone_value_drop(in[0]);
}

/* ---- what does not fit --------------------------------------------------------------------------------- */
static void refused(void **state) {
    (void)state;
    hone_compiled *c = compile(mixed);
    hone_exec *e = executor(c, 1, 0, false);
    struct {
        hone_value *x, *m;
        const char *says;
    } rows[] = {
        {TENSOR(F32, 2, 3, 8), NULL, "'m' is missing"},
        {TENSOR(I64, 2, 3, 8), TENSOR(F32, 2, 3), "'x' is i64, the model wants f32"},
        {TENSOR(F32, 2, 3), TENSOR(F32, 2, 3), "'x' has 2 dims, the model wants 3"},
        {TENSOR(F32, 2, 3, 9), TENSOR(F32, 2, 3), "dim 2 is 9, the model wants 8"},
        {TENSOR(F32, 2, 3, 8), TENSOR(F32, 2, 4), "'seq' is 3 in input 'x' and 4 in input 'm'"},
    };
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hone_value *in[2] = {rows[k].x, rows[k].m}, *out[2] = {0};
        assert_int_equal(hone_exec_run(e, in, out), HONE_BAD_INPUT);
        if (!strstr(hone_fail_text(), rows[k].says) || strchr(hone_fail_text(), '\n'))
            fail_msg("'%s' does not say: %s", hone_fail_text(), rows[k].says);
        assert_null(out[0]);
        hone_value_drop(rows[k].x), hone_value_drop(rows[k].m);
    }
    hone_value *in[2] = {TENSOR(F32, 2, 3, 8), TENSOR(F32, 2, 3)}, *out[2] = {TENSOR(F32, 7), NULL};
    run(e, in, out); /* a tensor of another shape is let go, not filled */
    assert_int_equal(out[0]->dim[0], 6);
    hone_value *twice[2] = {hone_value_hold(in[0]), NULL}; /* no output has this shape: replaced as well */
    run(e, in, twice);
    for (int k = 0; k < 2; k++) hone_value_drop(in[k]), hone_value_drop(out[k]), hone_value_drop(twice[k]);
    hone_exec_destroy(e);
    hone_compiled_destroy(c);
    c = compile("graph g opset 18 (x: f32[n]) -> y { y = Exp(x); }\n");
    e = executor(c, 1, 0, false);
    hone_value *x = TENSOR(F32, 5), *y = hone_value_hold(x);
    assert_int_equal(hone_exec_run(e, &x, &y), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "also an input"));
    hone_value_drop(x), hone_value_drop(y);
    hone_exec_destroy(e);
    hone_compiled_destroy(c);
}
/* Dims that compile knows by different names may be equal, or 1, or 0, or not fit: what its formulas take for
   granted is asked at each bind. */
static void conditions(void **state) {
    (void)state;
    hone_compiled *c = compile("graph g opset 18 (x: f32[a, b], y: f32[c, d]) -> sum, both, turned {\n"
                               "  back: i64[2] = {-1, 3};\n"
                               "  s = Add(x, y);\n  sum = Exp(s);\n  both = Concat(x, y) {axis: 0};\n"
                               "  t = Transpose(s);\n  turned = Reshape(t, back);\n}\n");
    const struct {
        int64_t x[2], y[2];
        const char *says;
    } rows[] = {
        {{2, 3}, {2, 3}, NULL},        {{6, 3}, {1, 3}, NULL},       {{1, 3}, {5, 3}, NULL},
        {{4, 6}, {4, 6}, NULL},        {{1, 3}, {1, 3}, NULL},       {{2, 3}, {4, 3}, "(Add)"},
        {{3, 2}, {3, 6}, "(Add)"},     {{3, 2}, {3, 1}, "(Concat)"}, {{0, 3}, {1, 3}, NULL},
        {{2, 4}, {2, 4}, "(Reshape)"},
    };
    hone_exec *e = executor(c, 1, 0, false), *slow = executor(c, 1, 0, true);
    for (int turn = 0; turn < 2; turn++)
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            hone_value *in[2] = {tensor(HONE_DTYPE_F32, rows[k].x, 2), tensor(HONE_DTYPE_F32, rows[k].y, 2)},
                       *out[3] = {0}, *want[3] = {0};
            hone_status s = hone_exec_run(e, in, out);
            if (rows[k].says) {
                assert_int_equal(s, HONE_BAD_INPUT);
                if (!strstr(hone_fail_text(), rows[k].says))
                    fail_msg("'%s' does not say: %s", hone_fail_text(), rows[k].says);
            } else {
                if (s) fail_msg("row %zu: %s", k, hone_fail_text());
                run(slow, in, want);
                for (int q = 0; q < 3; q++) assert_near(out[q], want[q]), hone_value_drop(want[q]);
                for (int d = 0; d < 2; d++)
                    assert_int_equal(out[0]->dim[d], rows[k].x[d] == 1 ? rows[k].y[d] : rows[k].x[d]);
            }
            for (int q = 0; q < 3; q++) hone_value_drop(out[q]);
            for (int q = 0; q < 2; q++) hone_value_drop(in[q]);
        }
    hone_exec_destroy(e), hone_exec_destroy(slow);
    hone_compiled_destroy(c);
}
/* Allocations of compile, bind and run fail in turn (the first ones each, later ones ever fewer: there are
   thousands): an error, nothing lost. */
static void memory_runs_out(void **state) {
    (void)state;
    const char *texts[] = {mixed, computed};
    for (int t = 0; t < 2; t++) {
        hone_value *in[2], *out[3] = {0};
        in[0] = t ? TENSOR(F32, 6) : TENSOR(F32, 2, 3, 8);
        in[1] = t ? tensor(HONE_DTYPE_BOOL, NULL, 0) : TENSOR(F32, 2, 3);
        const hone_library *lib;
        assert_int_equal(hone_library_builtin(&lib), HONE_OK); /* parsed once, kept */
        hone_value *want[3] = {0};
        hone_compiled *right = compile(texts[t]);
        hone_exec *good = executor(right, 1, 0, false);
        run(good, in, want);
        hone_exec_destroy(good);
        hone_compiled_destroy(right);
        uint64_t live = hone_alloc_live_bytes(), made = 1;
        for (uint64_t calls = 0, next = 0; made > calls;
             next = calls + 1 + calls / 12) { /* until none is left to fail; a failure may also be got over */
            calls = next;
            hone_graph *g = NULL;
            hone_compiled *c = NULL;
            hone_exec *e = NULL;
            assert_int_equal(hone_graph_parse(texts[t], strlen(texts[t]), &g), HONE_OK);
            made = hone_alloc_calls();
            hone_alloc_fail_after((int64_t)calls);
            hone_status s = hone_compile(g, &c);
            if (!s) s = hone_exec_create(c, &(hone_exec_options){.threads = 1}, &e);
            if (!s) s = hone_exec_run(e, in, out);
            hone_alloc_fail_after(-1);
            made = hone_alloc_calls() - made;
            if (s && s != HONE_NO_MEMORY)
                fail_msg("call %llu: %s", (unsigned long long)calls, hone_fail_text());
            for (int k = 0; k < 3; k++) {
                if (!s && want[k]) assert_same(out[k], want[k]);
                hone_value_drop(out[k]), out[k] = NULL;
            }
            hone_exec_destroy(e);
            if (c) hone_compiled_destroy(c);
            if (hone_alloc_live_bytes() != live)
                fail_msg("call %llu: %lld bytes are lost", (unsigned long long)calls,
                         (long long)(hone_alloc_live_bytes() - live));
        }
        for (int k = 0; k < 3; k++) hone_value_drop(want[k]);
        for (int k = 0; k < 2; k++) hone_value_drop(in[k]);
    }
}

/* ---- real models --------------------------------------------------------------------------------------- */
static hone_model *shared(const char *name) {
    const char *dir = getenv("HONE_SHARED_DIR");
    char path[1024];
    snprintf(path, sizeof path, "%s/models/%s/model.onnx", dir ? dir : "", name);
    FILE *f = dir ? fopen(path, "rb") : NULL;
    if (!f) return NULL;
    fclose(f);
    hone_model *m = NULL;
    if (hone_model_load(path, &m)) fail_msg("%s", hone_error());
    return m;
}
static void many_shapes(const char *name, int turns, hone_value *(*make)(void)) {
    hone_model *m = shared(name);
    if (!m) skip();
    hone_options one = {.threads = 1, .plans = 4}, two = {.threads = 2, .plans = 4};
    hone_session *a = NULL, *b = NULL;
    assert_int_equal(hone_session_create(m, &one, &a), HONE_OK);
    assert_int_equal(hone_session_create(m, &two, &b), HONE_OK);
    int n = hone_model_outputs(m);
    hone_value **x = calloc((size_t)n, sizeof *x), **y = calloc((size_t)n, sizeof *y),
               **z = calloc((size_t)n, sizeof *z);
    for (int turn = 0; turn < turns; turn++) {
        hone_value *in = make();
        hone_session *fresh = NULL;
        assert_int_equal(hone_session_create(m, &one, &fresh), HONE_OK);
        if (hone_session_run(a, &in, x) || hone_session_run(b, &in, y) || hone_session_run(fresh, &in, z))
            fail_msg("%s", hone_error());
        for (int k = 0; k < n; k++) assert_same(x[k], y[k]), assert_same(x[k], z[k]);
        for (int k = 0; k < n; k++)
            hone_value_free(x[k]), hone_value_free(y[k]), hone_value_free(z[k]), x[k] = y[k] = z[k] = NULL;
        hone_session_free(fresh);
        hone_value_free(in);
    }
    free(x), free(y), free(z);
    hone_session_free(a), hone_session_free(b);
    hone_model_free(m);
}
static hone_value *tokens(void) { return TENSOR(I64, 1 + (int64_t)draw(3), 1 + (int64_t)draw(32)); }
static hone_value *picture(void) {
    return TENSOR(F32, 1, 3, 32 * (1 + (int64_t)draw(3)), 32 * (1 + (int64_t)draw(3)));
}
static void stories(void **state) { (void)state, many_shapes("stories260K", 40, tokens); }
static void detector(void **state) { (void)state, many_shapes("ppocrv4-det", 6, picture); }

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_shapes),
        cmocka_unit_test(no_allocation),
        cmocka_unit_test(threads_agree),
        cmocka_unit_test(cuts),
        cmocka_unit_test(rows_of_a_picture),
        cmocka_unit_test(refused),
        cmocka_unit_test(conditions),
        cmocka_unit_test(memory_runs_out),
        cmocka_unit_test(stories),
        cmocka_unit_test(detector),
        cmocka_unit_test(once),
    };
    return cmocka_run_group_tests_name("bind", tests, NULL, NULL);
}
