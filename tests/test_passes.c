/* SPDX-License-Identifier: Apache-2.0
   Graphs as text, and passes on them. Each row is a graph before some passes and the graph that must come
   out; then the graph is run, compiled with all passes, and compared with the definition, node by node
   without any pass (walk.h), on random data. Then all shared models go through text and back. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <sys/stat.h>

#include <cmocka.h>

#include "passes/passes.h"
#include "run/exec.h"
#include "rows.h"
#include "random.h"
#include "walk.h"

static uint64_t random_state = 1;
static uint64_t draw(void) { return next_random(&random_state); }
static hone_graph *parse(const char *text) {
    hone_graph *g = NULL;
    if (hone_graph_parse(text, strlen(text), &g)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    return g;
}
static char *print(const hone_graph *g) {
    hone_text t = {0};
    assert_int_equal(hone_graph_print(g, &t), HONE_OK);
    char *copy = malloc(t.n + 1);
    memcpy(copy, t.text, t.n + 1);
    hone_text_free(&t);
    return copy;
}
static void assert_texts(const char *what, const char *got, const char *want) {
    if (strcmp(got, want) != 0) fail_msg("%s: got\n%s\nwant\n%s", what, got, want);
}

/* ---- text ---------------------------------------------------------------------------------------------- */
/* Each prints as it stands. */
static const char *const texts[] = {
    "graph g opset 17 (x: f32[batch, 3], \"odd name\": i64[?, 2]) -> y, \"odd name\" {\n"
    "  w: f32[2, 2] = {1, -2.5, nan, -inf};\n"
    "  \"a:0\": i64[] = {-9223372036854775807};\n"
    "  /model/none: f32[0, 4] = {};\n"
    "  b: bool[2] = {1, 0};\n"
    "  u: u64[1] = {18446744073709551615};\n"
    "  d: f64[2] = {0.1, 1e-300};\n"
    "  h: f16[2] = {0.5, 65504};\n"
    "  s: string[3] = {\"\", \"a \\\"b\\\" \\\\ \\n\", \"\\x00\\x01é\"};\n"
    "  c: c64[2] = {1, 2, 3.5, -4};\n"
    "  y = Relu(x) \"first\";\n"
    "}\n",
    "graph attributes (x: f32[4, 4], t: bool[]) -> y, v, q {\n"
    "  y, _ = Dropout(x, _, t) {seed: 3};\n"
    "  v = LeakyRelu(x) {alpha: 0.25};\n"
    "  z = Cast(x) {to: i64};\n"
    "  q = Transpose(z) {perm: [1, 0]} \"turn \\\"it\\\"\";\n"
    "}\n",
    "graph lists (x: string[3]) -> y, z {\n"
    "  y = ai.onnx.ml.LabelEncoder(x) {keys_strings: [\"a\", \"b\"], values_int64s: [1, 2], default_int64: "
    "-1};\n"
    "  z = ai.onnx.ml.LabelEncoder(x) {keys_tensor: tensor string[2] = {\"a\", \"b\"}, values_tensor: tensor "
    "f32[2] = {0.5, 1}, "
    "default_tensor: tensor f32[1] = {7}};\n"
    "}\n",
    "graph control (c: bool[], x: f32[n], s: seq f32, o: opt i64, m: map ?) -> y {\n"
    "  k: f32[] = {2};\n"
    "  y = If(c; x, k) {then_branch: graph yes (;x: f32[n], k: f32[]) -> r {\n"
    "      r = Mul(x, k);\n"
    "    }, else_branch: graph no (;x: f32[n], k: f32[]) -> r {\n"
    "      one: f32[1] = {1};\n"
    "      r = Add(x, one) \"more\";\n"
    "    }} \"choose\";\n"
    "}\n",
    "graph loop (x: f32[2]) -> y, all {\n"
    "  m: i64[] = {3};\n"
    "  c: bool[] = {1};\n"
    "  y, all = Loop(m, c, x; x) {body: graph body (i: i64[], go: bool[], v: f32[2]; by: f32[2]) -> go, w, w "
    "{\n"
    "      w = Add(v, by);\n"
    "    }};\n"
    "}\n",
    "graph \"\" (x: f32[1, 2, 3] order(0, 2, 1)) -> x {\n}\n",
};
static void text_round(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        hone_graph *g = parse(texts[k]);
        char *got = print(g);
        assert_texts("round trip", got, texts[k]);
        hone_graph_destroy(g);
        free(got);
    }
}
/* large constants keep type, shape and range; a fused group is its parts */
static void text_random(void **state) {
    (void)state;
    hone_graph *g =
        parse("graph g (x: f32[3]) -> y { w: i64[100] = random(7, -3, 4); r: f32[65] = random(8, 0.5, 2);\n"
              "t: string[70] = random(9);\n"
              "y = fused(x) [ a = Relu(x); y = Neg(a) \"n\"; ] \"f\"; # all\n}");
    const hone_value *w = g->var.at[hone_graph_find(g, "w")].value,
                     *r = g->var.at[hone_graph_find(g, "r")].value;
    int64_t lo = 9, hi = -9;
    for (int k = 0; k < 100; k++) {
        int64_t v = hone_value_i64(w, k);
        lo = v < lo ? v : lo, hi = v > hi ? v : hi;
    }
    assert_int_equal(lo, -3);
    assert_int_equal(hi, 4);
    for (int k = 0; k < 65; k++) assert_true(hone_value_f64(r, k) >= 0.5 && hone_value_f64(r, k) <= 2);
    assert_int_equal(g->node.n, 2);
    hone_graph_destroy(g);
}
static void text_wrong(void **state) {
    (void)state;
    static const char *const wrong[] = {"",
                                        "graf",
                                        "graph g",
                                        "graph g (",
                                        "graph g () ->",
                                        "graph g () -> {",
                                        "graph g () -> y {}",
                                        "graph g (x: f33[1]) -> x {}",
                                        "graph g (x: f32[1]) -> x {} more",
                                        "graph g (x: f32[1]) -> y { y = Nothing(x); }",
                                        "graph g (x: f32[1]) -> y { y = Relu(z); }",
                                        "graph g (x: f32[1]) -> y { x = Relu(x); }",
                                        "graph g (x: f32[1]) -> y { y = Relu(x) }",
                                        "graph g (x: f32[1]) -> y { y = Relu(x, x); }",
                                        "graph g (x: f32[1]) -> y { y = Transpose(x) {perm: []}; }",
                                        "graph g () -> w { w: f32[2] = {1}; }",
                                        "graph g () -> w { w: f32[1] = {1, 2}; }",
                                        "graph g () -> w { w: f32[-1] = {}; }",
                                        "graph g () -> w { w: f32[n] = {}; }",
                                        "graph g () -> w { w: f32[99999999999, 99999999999] = random(1); }",
                                        "graph g () -> w { w: f32[9999999999] = random(1); }",
                                        "graph g () -> w { w: i32[1] = {1.5}; }",
                                        "graph g () -> w { w: string[1] = {\"\\xg0\"}; }",
                                        "graph g () -> w { w: string[1] = {\"open}; }",
                                        "graph g () -> \"a\\x00b\" {}",
                                        "graph g (x: f32[1]; y: f32[1]) -> x {}",
                                        "graph g (x: f32[1, 1] order(0, 0)) -> x {}",
                                        "graph g (x: f32[1]) -> y { y = Cast(x) {to: [1, \"a\"]}; }"};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        hone_graph *g = NULL;
        hone_status s = hone_graph_parse(wrong[k], strlen(wrong[k]), &g);
        if (s != HONE_BAD_INPUT) fail_msg("status %d for: %s", (int)s, wrong[k]);
        assert_true(strlen(hone_fail_text()) > 0);
    }
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) { /* every beginning, and bytes changed */
        size_t n = strlen(texts[k]);
        char *copy = malloc(n + 1);
        for (size_t cut = 0; cut + 1 < 2 * n; cut++) {
            hone_graph *g = NULL;
            memcpy(copy, texts[k], n);
            if (cut >= n) copy[draw() % n] = (char)draw(), copy[draw() % n] = texts[k][draw() % n];
            if (!hone_graph_parse(copy, cut < n ? cut : n, &g)) hone_graph_destroy(g);
        }
        free(copy);
    }
}
static void text_memory(void **state) { /* each allocation fails in turn */
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++)
        for (int64_t at = 0;; at++) {
            hone_graph *g = NULL;
            uint64_t before = hone_alloc_live_bytes();
            hone_alloc_fail_after(at);
            hone_status s = hone_graph_parse(texts[k], strlen(texts[k]), &g);
            hone_alloc_fail_after(-1);
            if (!s) {
                hone_graph_destroy(g);
                break;
            }
            assert_int_equal(s, HONE_NO_MEMORY);
            assert_int_equal(hone_alloc_live_bytes(), before);
        }
}

/* ---- running ------------------------------------------------------------------------------------------- */
static bool far_numbers;                             /* all bits of integers; floats from 2^-20 to 2^20 */
static hone_value *random_value(const hone_var *v) { /* symbols are 3 */
    int64_t dim[HONE_MAX_RANK];
    hone_value *x;
    for (int k = 0; k < v->rank; k++) dim[k] = hone_dim_is_number(v->dim[k]) ? v->dim[k] : 3;
    assert_int_equal(hone_value_tensor(v->dtype, dim, v->rank, &x), HONE_OK);
    int64_t n = hone_value_count(x);
    for (int64_t k = 0; k < n; k++) {
        char *at = (char *)x->data + (size_t)k * hone_dtypes[v->dtype].bytes;
        hone_scalar real = {.f64 = (double)(draw() % 2001) / 500 - 2}, whole = {.i64 = (int64_t)(draw() % 3)};
        if (far_numbers) real.f64 = ldexp(real.f64, (int)(draw() % 41) - 20), whole.i64 = (int64_t)draw();
        if (hone_dtypes[v->dtype].kind == HONE_KIND_FLOAT)
            hone_dtype_store(v->dtype, at, HONE_F64, real, false);
        else if (v->dtype != HONE_DTYPE_STRING) hone_dtype_store(v->dtype, at, HONE_I64, whole, false);
    }
    return x;
}
static void assert_values(const char *what, const hone_value *a, const hone_value *b) {
    if (a->tag != b->tag || a->dtype != b->dtype || a->rank != b->rank) fail_msg("%s: another type", what);
    for (int d = 0; d < a->rank; d++)
        if (a->dim[d] != b->dim[d])
            fail_msg("%s: dim %d is %lld, not %lld", what, d, (long long)a->dim[d], (long long)b->dim[d]);
    int64_t n = hone_value_count(a);
    for (int64_t k = 0; k < n; k++) {
        if (a->dtype == HONE_DTYPE_STRING) {
            const hone_string *s = hone_value_string(a, k), *t = hone_value_string(b, k);
            bool same = s->bytes == t->bytes && !memcmp(s->text, t->text, (size_t)s->bytes);
            if (!same) fail_msg("%s: string %lld differs", what, (long long)k);
            continue;
        }
        double x = hone_value_f64(a, k), y = hone_value_f64(b, k);
        /* halves are rounded once instead of at every node */
        double bound = a->dtype == HONE_DTYPE_F16 ? 0x1p-8 : a->dtype == HONE_DTYPE_BF16 ? 0x1p-5 : 1e-5;
        if (far_numbers) bound = 0; /* casts: nothing else */
        bool same =
            (isfinite(y) && fabs(x - y) <= bound + bound * fabs(y)) || (isnan(x) && isnan(y)) || x == y;
        if (!same) fail_msg("%s: element %lld is %g, must be %g", what, (long long)k, x, y);
    }
}
/* All passes and the executor against the definition without any. */
static void run_both(const char *text) {
    hone_graph *plain = parse(text), *g = parse(text);
    hone_compiled *compiled;
    hone_exec *exec;
    hone_value *in[16] = {0}, *got[16] = {0}, *want[16] = {0};
    hone_exec_options options = {.threads = 1};
    int n_in = g->in.n, n_out = g->out.n;
    assert_true(n_in <= 16 && n_out <= 16);
    for (int k = 0; k < n_in; k++) in[k] = random_value(plain->var.at + plain->in.at[k]);
    if (hone_compile(g, &compiled)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    assert_int_equal(hone_exec_create(compiled, &options, &exec), HONE_OK);
    for (int round = 0; round < 2; round++) { /* the second time the plan is there */
        if (hone_exec_run(exec, in, got)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
        walker walk = {.strings = hone_strings_create()};
        if (walk_graph(&walk, plain, in, n_in, want, n_out)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
        for (int k = 0; k < n_out; k++) {
            assert_values(text, got[k], want[k]);
            hone_value_drop(got[k]), hone_value_drop(want[k]);
            got[k] = want[k] = NULL;
        }
        hone_strings_drop(walk.strings);
    }
    for (int k = 0; k < n_in; k++) hone_value_drop(in[k]);
    hone_exec_destroy(exec);
    hone_compiled_destroy(compiled);
    hone_graph_destroy(plain);
}

/* ---- passes -------------------------------------------------------------------------------------------- */
#define FOLD \
    { hone_pass_infer, hone_pass_fold, hone_pass_dead }
#define ALL                                                                                   \
    {                                                                                         \
        hone_pass_infer, hone_pass_fold, hone_pass_dead, hone_pass_identity, hone_pass_infer, \
            hone_pass_fold, hone_pass_identity, hone_pass_same, hone_pass_dead                \
    }
#define VIEWS \
    { hone_pass_infer, hone_pass_fold, hone_pass_views, hone_pass_identity, hone_pass_dead }
#define PATTERN(pass) \
    { hone_pass_infer, hone_pass_same, pass, hone_pass_dead }
#define ATTENTION \
    { hone_pass_infer, hone_pass_attention, hone_pass_views, hone_pass_identity, hone_pass_dead }
#define LOOKUP \
    { hone_pass_infer, hone_pass_same, hone_pass_lookup, hone_pass_fold, hone_pass_dead }
#define ROTARY \
    { hone_pass_infer, hone_pass_same, hone_pass_rotary, hone_pass_same, hone_pass_dead }
#define HALF \
    { hone_pass_infer, hone_pass_half, hone_pass_identity, hone_pass_dead }
typedef struct {
    const char *what;
    hone_pass_fn *pass[10];
    const char *before, *after; /* NULL: as before */
} row;
static const row rows[] = {
    {"dead: chains, optional outputs, constants",
     {hone_pass_dead},
     "graph g (x: f32[2], t: bool[]) -> y { w: f32[1] = {1}; v: f32[1] = {2}; a = Add(x, w); b = Relu(a); y, "
     "m = Dropout(x, _, t); }",
     "graph g (x: f32[2], t: bool[]) -> y { y, _ = Dropout(x, _, t); }"},
    {"dead: captures that no body reads",
     {hone_pass_dead},
     "graph g (c: bool[], x: f32[2]) -> y { a = Relu(x); b = Neg(x); y = If(c; a, b) {then_branch: graph t "
     "(;p: f32[2], "
     "q: f32[2]) -> r { d = Abs(q); r = Exp(p); },"
     " else_branch: graph e (;p: f32[2], q: f32[2]) -> r { r = Sqrt(p); }}; }",
     "graph g (c: bool[], x: f32[2]) -> y { a = Relu(x); y = If(c; a) {then_branch: graph t (;p: f32[2]) -> "
     "r { r = Exp(p); },"
     " else_branch: graph e (;p: f32[2]) -> r { r = Sqrt(p); }}; }"},
    {"identity: each kind",
     {hone_pass_infer, hone_pass_identity, hone_pass_dead},
     "graph g (x: f32[n, 4]) -> y { no: bool[] = {0}; s: i64[2] = {0, 4}; z: i64[4] = {0, 0, 0, 0}; b: "
     "i64[2] = {0, 0}; e: i64[2] = {"
     "9223372036854775807, 4}; one: i64[1] = {1}; r: i64[2] = {-1, 4};"
     " a = Identity(x); b1 = Dropout(a, _, no); c = Cast(b1) {to: f32}; d = Transpose(c) {perm: [0, 1]}; f = "
     "Reshape(d, s); "
     "f2 = Reshape(f, r); h = Slice(f2, b, e); i = Pad(h, z); j = Expand(i, one);"
     " k = Concat(j) {axis: 1}; l = Split(k) {axis: 0, num_outputs: 1}; m = Flatten(l); y = Relu(m); }",
     "graph g (x: f32[n, 4]) -> y { y = Relu(x); }"},
    {"identity: what only looks like one",
     {hone_pass_infer, hone_pass_identity, hone_pass_dead},
     "graph g (x: f32[2, 2]) -> y { b: i64[1] = {-1}; e: i64[1] = {-9}; a: i64[1] = {0}; p: i64[4] = {1, 0, "
     "-1, 0}; r = Slice(x, b, "
     "e, a, b); t = Transpose(r); q = Pad(t, p); c = Cast(q) {to: i64}; y = Neg(c); }",
     "graph g (x: f32[2, 2]) -> y { b: i64[1] = {-1}; e: i64[1] = {-9}; a: i64[1] = {0}; p: i64[4] = {1, 0, "
     "-1, 0}; r = Slice(x, b, "
     "e, a, b); t = Transpose(r); q = Pad(t, p); c = Cast(q) {to: i64}; y = Neg(c); }"},
    {"identity: outputs keep their names",
     {hone_pass_infer, hone_pass_identity, hone_pass_dead},
     "graph g (x: f32[2]) -> y, z, w, v { y = Identity(x); a = Relu(x); z = Identity(a); b = Neg(a); w = "
     "Identity(b); v = Identity(b); }",
     "graph g (x: f32[2]) -> y, z, w, v { y = Identity(x); z = Relu(x); w = Neg(z); v = Identity(w); }"},
    {"sink: a Squeeze goes behind the bias and the activation",
     {hone_pass_infer, hone_pass_sink, hone_pass_dead},
     "graph g (x: f32[1, 3, 9, 1]) -> y { w: f32[4, 3, 3, 1] = random(1, -1, 1); b: f32[4, 1] = {1, 2, 3, "
     "4}; a: i64[1] = {-1}; "
     "c = Conv(x, w); s = Squeeze(c, a); d = Add(b, s); y = Relu(d); }",
     "graph g (x: f32[1, 3, 9, 1]) -> y { w: f32[4, 3, 3, 1] = random(1, -1, 1); a: i64[1] = {-1}; spread: "
     "f32[1, 4, 1, 1] = {1, 2, 3, 4}; "
     "c = Conv(x, w); \"d#0\" = Add(c, spread); \"y#1\" = Relu(\"d#0\"); y = Squeeze(\"y#1\", a); }"},
    {"sink: not behind what has more dims, what others read, or what is no convolution's",
     {hone_pass_infer, hone_pass_sink, hone_pass_dead},
     "graph g (x: f32[1, 3, 9, 1]) -> y, z, v { w: f32[4, 3, 3, 1] = random(1, -1, 1); b: f32[2, 1, 1, 1] = "
     "{1, 2}; a: i64[1] = {3}; c = "
     "Conv(x, w); s = Squeeze(c, a); y = Add(s, "
     "b); d = Conv(x, w); t = Squeeze(d, a); z = Relu(t); v = Neg(d); }",
     NULL},
    {"same: nodes, their followers, constants",
     {hone_pass_infer, hone_pass_same, hone_pass_dead},
     "graph g (x: f32[2]) -> y { p: f32[1] = {1}; q: f32[1] = {1}; a = Add(x, p); b = Add(x, q); c = "
     "Relu(a); d = Relu(b); "
     "e = LeakyRelu(d) {alpha: 0.5}; f = LeakyRelu(c) {alpha: 0.25}; h = Mul(c, d); i = Sub(e, f); y = "
     "Add(h, i); }",
     "graph g (x: f32[2]) -> y { p: f32[1] = {1}; a = Add(x, p); c = Relu(a); e = LeakyRelu(c) {alpha: 0.5}; "
     "f = LeakyRelu(c) {"
     "alpha: 0.25}; h = Mul(c, c); i = Sub(e, f); y = Add(h, i); }"},
    {"same: graph outputs stay, outputs wanted by one of two",
     {hone_pass_infer, hone_pass_same, hone_pass_dead},
     "graph g (x: f32[4]) -> y, z, w { k: i64[1] = {2}; y = Relu(x); z = Relu(x); a = Exp(x); b = Neg(a); w "
     "= Exp(x); v, _ = TopK(x, "
     "k); _, i = TopK(x, k); j = Cast(i) {to: f32}; c = Add(v, j); }",
     "graph g (x: f32[4]) -> y, z, w { y = Relu(x); z = Relu(x); w = Exp(x); }"},
    {"same: what differs in one attribute only, of text, floats or integers",
     {hone_pass_infer, hone_pass_same, hone_pass_dead},
     "graph g (x: f32[1, 4, 1, 1]) -> y, z, u, v, s, t { y = DepthToSpace(x) {blocksize: 2, mode: \"DCR\"}; "
     "z = "
     "DepthToSpace(x) {blocksize: 2, mode: \"CRD\"}; u = Elu(x) {alpha: 1.5}; v = Elu(x) {alpha: 1.25}; s = "
     "Transpose(x) {perm: [0, 2, 1, 3]}; t = Transpose(x) {perm: [0, 2, 3, 1]}; }",
     NULL},
    {"same: of two outputs the second leaves the graph twice",
     {hone_pass_infer, hone_pass_same, hone_pass_dead},
     "graph g (x: f32[4]) -> y, b, d { a, b = Split(x) {num_outputs: 2}; c, d = Split(x) {num_outputs: 2}; y "
     "= "
     "Add(a, c); }",
     NULL},
    {"same: chance is never the same",
     {hone_pass_infer, hone_pass_same},
     "graph g (x: f32[4]) -> y { a = RandomUniformLike(x); b = RandomUniformLike(x); y = Sub(a, b); }",
     "graph g (x: f32[4]) -> y { a = RandomUniformLike(x); b = RandomUniformLike(x); y = Sub(a, b); }"},
    {"fold: programs, views, host functions", FOLD,
     "graph g (x: f32[2]) -> y, p, q { a: f32[2, 3] = {1, 2, 3, 4, 5, 6}; s: i64[1] = {6}; b: i64[1] = {1}; "
     "e: i64[1] = {5}; "
     "sp: i64[2] = {1, 5};"
     " u = Transpose(a); m = MatMul(a, u); d = ReduceSum(m) {keepdims: 0}; f = Reshape(u, s); z = Slice(f, "
     "b, e, _, _); "
     "c = Concat(z, f) {axis: 0}; p, h = Split(f, sp); q = NonZero(h); l = Size(c); k = Cast(l) {to: f32};"
     " r = Mul(d, k); y = Add(x, r); }",
     "graph g (x: f32[2]) -> y, p, q { p: f32[1] = {1}; q: i64[1, 5] = {0, 1, 2, 3, 4}; r: f32[] = {1550}; y "
     "= Add(x, r); }"},
    {"fold: shapes of inputs", ALL,
     "graph g (x: f32[2, 3, n]) -> y { i: i64[1] = {1}; m: i64[1] = {-1}; s = Shape(x); d = Gather(s, i) "
     "{axis: 0}; t = Concat(d, "
     "m) {axis: 0}; y = Reshape(x, t); }",
     "graph g (x: f32[2, 3, n]) -> y { t: i64[2] = {3, -1}; y = Reshape(x, t); }"},
    {"fold: what is random or only spread out stays", FOLD,
     "graph g (x: f32[1]) -> y, z { o: f32[1] = {1}; s: i64[2] = {20, 1000}; r = RandomUniform() {shape: "
     "[1], seed: 1.0}; "
     "z = Expand(o, s); y = Add(x, r); }",
     "graph g (x: f32[1]) -> y, z { o: f32[1] = {1}; s: i64[2] = {20, 1000}; r = RandomUniform() {shape: "
     "[1], seed: 1.0}; "
     "z = Expand(o, s); y = Add(x, r); }"},
    {"fold: a known branch", ALL,
     "graph g (x: f32[2], c: bool[]) -> y, z { t: bool[] = {1}; k: f32[1] = {3}; y, z = If(t; x, k, c) {"
     "then_branch: graph t (;x: f32[2], k: f32[1], d: bool[]) -> r, x { t: f32[1] = {2}; a = Mul(x, t); r0 = "
     "If(d; a, k) {"
     "then_branch: graph tt (;p: f32[2], q: f32[1]) -> a { a = Add(p, q); }, else_branch: graph te (;p: "
     "f32[2], q: f32[1]) -> a {"
     " a = Sub(p, q); }}; r = Relu(r0); },"
     " else_branch: graph e (;x: f32[2], k: f32[1], d: bool[]) -> r, r { r = Neg(x); }} \"choose\"; }",
     "graph g (x: f32[2], c: bool[]) -> y, z { \"t#0\": f32[1] = {2}; a = Mul(x, \"t#0\"); r0 = If(c; a) {"
     "then_branch: graph tt (;p: f32[2]) -> a { \"q#0\": f32[1] = {3}; a = Add(p, \"q#0\"); }, "
     "else_branch: graph te (;p: f32[2]) -> a { \"q#0\": f32[1] = {3}; a = Sub(p, \"q#0\"); }}; y = "
     "Relu(r0); "
     "z = Identity(x) \"choose\"; }"},
    {"fold: a branch decided by a body's captured constant", ALL,
     "graph g (x: f32[2], n: i64[]) -> y { k: i64[] = {5}; c: bool[] = {1}; y = Loop(n, c, x; k) {body: "
     "graph b (i: i64[], "
     "go: bool[], v: f32[2]; k: i64[]) -> go, w { four: i64[] = {4}; l = Less(four, k); w = If(l; v) {"
     "then_branch: graph t (;v: f32[2]) -> r { h: f32[1] = {0.5}; r = Mul(v, h); }, else_branch: graph e "
     "(;v: f32[2]) -> r {"
     " r = Neg(v); }}; }}; }",
     "graph g (x: f32[2], n: i64[]) -> y { c: bool[] = {1}; y = Loop(n, c, x) {body: graph b (i: i64[], go: "
     "bool[], "
     "v: f32[2]) -> go, w { h: f32[1] = {0.5}; w = Mul(v, h); }}; }"},
    {"carried: weights that a Loop hands on, through Identity and an inner Loop, are constants of its body",
     {hone_pass_carried, hone_pass_infer, hone_pass_fold, hone_pass_fold, hone_pass_dead, NULL},
     "graph g (x: f32[3], n: i64[]) -> y { c: bool[] = {1}; k: f32[3] = {1, 2, 3}; h: f32[3] = {5, 6, 7}; y, "
     "u, v = Loop(n, c, x, k, h) {"
     "body: graph b (i: i64[], go: bool[], s: f32[3], w: f32[3], z: f32[3]) -> go, t2, w1, z1 { w1 = "
     "Identity(w); t = Mul(s, w); "
     "t2, z0 = Loop(i, go, t, z) {body: graph bb (j: i64[], go: bool[], p: f32[3], z: f32[3]) -> go, q, zz { "
     "q = Sub(p, z); "
     "zz = Identity(z); }}; z1 = Identity(z0); }}; }",
     "graph g (x: f32[3], n: i64[]) -> y { c: bool[] = {1}; y = Loop(n, c, x) {"
     "body: graph b (i: i64[], go: bool[], s: f32[3]) -> go, t2 { \"w#1\": f32[3] = {1, 2, 3}; t = Mul(s, "
     "\"w#1\"); t2 = Loop(i, go, t) {"
     "body: graph bb (j: i64[], go: bool[], p: f32[3]) -> go, q { \"z#0\": f32[3] = {5, 6, 7}; q = Sub(p, "
     "\"z#0\"); }}; }}; }"},
    {"carried: what is read behind a Scan is what it was before it",
     {hone_pass_infer, hone_pass_carried, NULL},
     "graph g (x: f32[3, 2], a: f32[2], w: f32[2]) -> y, z { y, v, all = Scan(a, w, x) {num_scan_inputs: 1, "
     "body: graph b (s: f32[2], "
     "w: f32[2], e: f32[2]) -> t, w, t { m = Mul(s, w); t = Add(m, e); }}; z = Neg(v); }",
     "graph g (x: f32[3, 2], a: f32[2], w: f32[2]) -> y, z { y, all = Scan(a, x; w) {num_scan_inputs: 1, "
     "body: graph b (s: f32[2], "
     "e: f32[2]; w: f32[2]) -> t, t { m = Mul(s, w); t = Add(m, e); }}; z = Neg(w); }"},
    {"carried: an output of the graph stays a Loop's, and what changes places is not unchanged",
     {hone_pass_infer, hone_pass_carried, NULL},
     "graph g (x: f32[3], w: f32[3], n: i64[]) -> y, v { c: bool[] = {1}; y, v, u, o = Loop(n, c, x, w, x, "
     "w) {body: graph b (i: i64[], "
     "go: bool[], s: f32[3], w: f32[3], p: f32[3], q: f32[3]) -> go, t, w, q, p { r = Mul(s, w); t = Add(r, "
     "p); }}; }",
     NULL},
    {"floats: a convolution with a scale a channel and a bias; its attributes stay",
     {hone_pass_infer, hone_pass_floats},
     "graph g (x: u8[1, 2, 3, 3]) -> y { s: f32[] = {0.5}; z: u8[] = {3}; w: i8[2, 1, 1, 1] = {4, -5}; ws: "
     "f32[2] = {0.25, 2}; wz: i8[2] = {0, 1}; t: f32[] = {0.125}; u: i8[] = {-7}; b: i32[2] = {16, 3}; y = "
     "QLinearConv(x, s, z, w, ws, wz, t, u, b) {group: 2, strides: [2, 2]}; }",
     "graph g (x: u8[1, 2, 3, 3]) -> y { s: f32[] = {0.5}; z: u8[] = {3}; t: f32[] = {0.125}; u: i8[] = "
     "{-7}; "
     "\"w#0\": f32[2, 1, 1, 1] = {1, -12}; \"b#1\": f32[2] = {2, 3}; \"y#2\" = DequantizeLinear(x, s, z); "
     "\"y#3\" = Conv(\"y#2\", \"w#0\", \"b#1\") {group: 2, strides: [2, 2]}; y = QuantizeLinear(\"y#3\", t, "
     "u); }"},
    {"floats: a product with a bias, scales in a list of one",
     {hone_pass_infer, hone_pass_floats},
     "graph g (x: i8[n, 2]) -> y { s: f32[] = {0.5}; z: i8[] = {3}; w: u8[2, 3] = {4, 5, 6, 7, 8, 9}; ws: "
     "f32[3] = {0.25, 2, 1}; wz: u8[3] = {4, 1, 0}; t: f32[] = {0.125}; u: i8[] = {-7}; c: i32[3] = {16, 3, "
     "-1}; y = hone.QLinearMatMul(x, s, z, w, ws, wz, t, u, c); }",
     "graph g (x: i8[n, 2]) -> y { s: f32[] = {0.5}; z: i8[] = {3}; t: f32[] = {0.125}; u: i8[] = {-7}; "
     "\"w#0\": f32[2, 3] = {0, 8, 6, 0.75, 14, 9}; b: f32[3] = {2, 3, -0.5}; \"y#1\" = "
     "DequantizeLinear(x, s, z); \"y#2\" = MatMul(\"y#1\", \"w#0\"); \"y#3\" = Add(\"y#2\", b); y = "
     "QuantizeLinear(\"y#3\", t, u); }"},
    {"floats: not where weights or scales are computed",
     {hone_pass_infer, hone_pass_floats},
     "graph g (x: i8[2, 2], w: i8[2, 2], s: f32[]) -> y, v { z: i8[] = {3}; t: f32[] = {0.125}; k: i8[2, 2] "
     "= "
     "{1, 2, 3, 4}; y = QLinearMatMul(x, t, z, w, t, z, t, z); v = QLinearMatMul(x, s, z, k, t, z, t, z); }",
     NULL},
    {"abreast: products that only views read, of which one has a bias",
     {hone_pass_infer, hone_pass_abreast},
     "graph g (x: f32[2, 3]) -> y, z { a: f32[3, 2] = {1, 2, 3, 4, 5, 6}; b: f32[3, 4] = {11, 12, 13, 14, "
     "21, 22, "
     "23, 24, 31, 32, 33, 34}; c: f32[2] = {7, 8}; s: i64[3] = {2, 1, 2}; t: i64[3] = {2, 2, 2}; p = "
     "MatMul(x, a); "
     "q = Add(c, p); u = MatMul(x, b); v = Reshape(q, s); w = Reshape(u, t); y = Neg(v); z = Neg(w); }",
     "graph g (x: f32[2, 3]) -> y, z { s: i64[3] = {2, 1, 2}; t: i64[3] = {2, 2, 2}; \"a#0\": f32[3, 6] = "
     "{1, 2, 11, "
     "12, 13, 14, 3, 4, 21, 22, 23, 24, 5, 6, 31, 32, 33, 34}; \"a#1\": f32[6] = {7, 8, -0, -0, -0, -0}; "
     "sizes: "
     "i64[2] = {2, 4}; \"p#2\" = MatMul(x, \"a#0\"); \"q#3\" = Add(\"p#2\", \"a#1\"); q, u = Split(\"q#3\", "
     "sizes) "
     "{axis: 1}; v = Reshape(q, s); w = Reshape(u, t); y = Neg(v); z = Neg(w); }"},
    {"abreast: Gemm, its matrices turned around",
     {hone_pass_infer, hone_pass_abreast},
     "graph g (x: f32[n, 3]) -> y, z { a: f32[2, 3] = {1, 2, 3, 4, 5, 6}; b: f32[1, 3] = {11, 12, 13}; c: "
     "f32[2] = "
     "{7, 8}; d: f32[1] = {9}; p = Gemm(x, a, c) {transB: 1}; u = Gemm(x, b, d) {transB: 1}; v = "
     "Transpose(p) "
     "{perm: [1, 0]}; w = Transpose(u) {perm: [1, 0]}; y = Neg(v); z = Neg(w); }",
     "graph g (x: f32[n, 3]) -> y, z { \"a#0\": f32[3, 3] = {1, 2, 3, 4, 5, 6, 11, 12, 13}; \"a#1\": f32[3] "
     "= {7, 8, 9}; "
     "sizes: i64[2] = {2, 1}; \"p#2\" = Gemm(x, \"a#0\", \"a#1\") {transB: 1}; p, u = Split(\"p#2\", sizes) "
     "{axis: 1}; "
     "v = Transpose(p) {perm: [1, 0]}; w = Transpose(u) {perm: [1, 0]}; y = Neg(v); z = Neg(w); }"},
    {"abreast: not Gemm whose product or bias is scaled",
     {hone_pass_infer, hone_pass_abreast},
     "graph g (x: f32[n, 3]) -> y, z { a: f32[3, 2] = {1, 2, 3, 4, 5, 6}; b: f32[3, 1] = {11, 12, 13}; c: "
     "f32[2] = {7, 8}; d: f32[1] = {9}; p = Gemm(x, a, c) {beta: 0.5}; u = Gemm(x, b, d) {beta: 0.5}; v = "
     "Transpose(p) {perm: [1, 0]}; w = Transpose(u) {perm: [1, 0]}; y = Neg(v); z = Neg(w); }",
     NULL},
    {"bytes: 128 more than the zero point is no byte: floats",
     {hone_pass_infer, hone_pass_floats},
     "graph g (x: i8[n, 2]) -> y { s: f32[] = {0.5}; z: i8[] = {3}; w: u8[2, 2] = {0, 127, 129, 255}; wz: "
     "u8[] = {127}; t: f32[] = {0.125}; u: i8[] = {-7}; y = QLinearMatMul(x, s, z, w, s, wz, t, u); }",
     "graph g (x: i8[n, 2]) -> y { s: f32[] = {0.5}; z: i8[] = {3}; t: f32[] = {0.125}; u: i8[] = {-7}; "
     "\"w#0\": f32[2, 2] = {-63.5, 0, 1, 64}; \"y#1\" = DequantizeLinear(x, s, z); \"y#2\" = "
     "MatMul(\"y#1\", \"w#0\"); y = QuantizeLinear(\"y#2\", t, u); }"},
    {"bytes: 127 more is one",
     {hone_pass_infer, hone_pass_floats},
     "graph g (x: i8[n, 2]) -> y { s: f32[] = {0.5}; z: i8[] = {3}; w: u8[2, 2] = {0, 127, 129, 254}; wz: "
     "u8[] = {127}; t: f32[] = {0.125}; u: i8[] = {-7}; y = QLinearMatMul(x, s, z, w, s, wz, t, u); }",
     NULL},
    {"bytes: signed ones stay so where a reader counts from another zero point than -128",
     {hone_pass_infer, hone_pass_unsigned},
     "graph g (x: f32[n, 2]) -> y { s: f32[] = {0.5}; z: i8[] = {-128}; o: i8[] = {-127}; q = "
     "QuantizeLinear(x, s, z); y = DequantizeLinear(q, s, o); }",
     NULL},
    {"bytes: signed ones from -128 become unsigned",
     {hone_pass_infer, hone_pass_unsigned, hone_pass_dead},
     "graph g (x: f32[n, 2]) -> y { s: f32[] = {0.5}; z: i8[] = {-128}; q = QuantizeLinear(x, s, z); y = "
     "DequantizeLinear(q, s, z); }",
     "graph g (x: f32[n, 2]) -> y { s: f32[] = {0.5}; zero: u8[] = {0}; q = QuantizeLinear(x, s, zero); y = "
     "DequantizeLinear(q, s, zero); }"},
    {"abreast: not where results meet element by element, are outputs, or are reshaped across rows",
     {hone_pass_infer, hone_pass_abreast},
     "graph g (x: f32[2, 4]) -> y, o, z { a: f32[4, 2] = {1, 2, 3, 4, 5, 6, 7, 8}; b: f32[4, 2] = {8, 7, 6, "
     "5, 4, 3, "
     "2, 1}; c: f32[4, 2] = {1, 1, 1, 1, 2, 2, 2, 2}; d: f32[4, 2] = {3, 3, 3, 3, 2, 2, 2, 2}; s: i64[2] = "
     "{1, 4}; "
     "p = MatMul(x, a); q = MatMul(x, b); y = Mul(p, q); o = MatMul(x, c); r = MatMul(x, d); v = Reshape(r, "
     "s); "
     "z = Neg(v); }",
     NULL},
#include "half_rows.inc"
#include "pattern_rows.inc"
};
/* of a device that wishes what no row forbids; rows of "bytes": of one that multiplies these, too */
static const hone_target wishes = {.abreast = (uint64_t)1 << HONE_DTYPE_F32,
                                   .floats = (uint64_t)1 << HONE_DTYPE_F32};
static char *after_passes(const row *r) {
    hone_target target = wishes;
    target.bytes = !strncmp(r->what, "bytes:", 6);
    hone_graph *g = parse(r->before);
    hone_instances *all = hone_instances_create();
    for (int k = 0; k < 10 && r->pass[k]; k++) {
        hone_passing p = {.graph = g, .instances = all, .target = &target};
        if (r->pass[k](&p) || (hone_graph_index(g), hone_graph_verify(g)))
            fail_msg("%s: pass %d: %s", r->what, k, hone_fail_text());
    }
    if (hone_graph_infer(g)) fail_msg("%s: %s", r->what, hone_fail_text());
    char *text = print(g);
    hone_graph_destroy(g);
    hone_instances_destroy(all);
    return text;
}
static void passes_rows(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        char *got = after_passes(rows + k);
        hone_graph *g = parse(rows[k].after ? rows[k].after : rows[k].before);
        if (hone_graph_infer(g)) fail_msg("%s: %s", rows[k].what, hone_fail_text());
        /* constants that the row does not use */
        if (!rows[k].after) assert_int_equal(hone_pass_dead(&(hone_passing){.graph = g}), HONE_OK);
        char *want = print(g);
        assert_texts(rows[k].what, got, want);
        hone_graph_destroy(g);
        free(got), free(want);
    }
}
/* What they become is longer than a row should be; it must compute the same. */
static const char *const run_only[] = {
    /* stride: kernels lengthened along both axes, of several channels */
    "graph g (x: f32[1, 2, 3, 4]) -> y { w: f32[2, 3, 3, 5] = random(1, -1, 1); b: f32[3] = {1, 2, 3}; y = "
    "ConvTranspose(x, w, b) {strides: [2, 3], pads: [1, 0, 0, 1]}; }",
};
static void passes_run(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof run_only / sizeof *run_only; k++) run_both(run_only[k]);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) run_both(rows[k].before);
}
/* A scale or a shift by each of the four ops, with the constant on either side, one number or one a channel,
   before and after each product, with pads and without. */
static void affine_run(void **state) {
    static const char *const ops[] = {"Add", "Sub", "Mul", "Div"};
    static const struct {
        const char *op, *attr, *x, *w;
        int ins, outs, inner; /* channels of x and of y, dims behind them */
    } products[] = {
        {"Conv", "{group: 2}", "2, 4, 5", "6, 2, 3", 4, 6, 1},
        {"Conv", "{group: 2, pads: [1, 0]}", "2, 4, 5", "6, 2, 3", 4, 6, 1},
        {"ConvTranspose", "{group: 2, strides: [2]}", "2, 4, 5", "4, 3, 2", 4, 6, 1},
        {"Gemm", "{transB: 1}", "2, 4", "6, 4", 4, 6, 0},
        {"Gemm", "{alpha: 0.5}", "2, 4", "4, 6", 4, 6, 0},
        {"MatMul", "", "2, 3, 4", "4, 6", 4, 6, 0},
    };
    (void)state;
    for (size_t k = 0; k < sizeof products / sizeof *products; k++)
        for (int form = 0; form < 4 * 2 * 2 * 2; form++) {
            const bool first = form & 1, one = form & 2, before = form & 4;
            const char *op = ops[form / 8], *of = before ? "x" : "a";
            char text[600], c[32] = "1", by[80];
            if (!one)
                snprintf(c, sizeof c, products[k].inner ? "%d, 1" : "%d",
                         before ? products[k].ins : products[k].outs);
            snprintf(by, sizeof by, "%s(%s, %s)", op, first ? "c" : of, first ? of : "c");
            if (before)
                snprintf(
                    text, sizeof text,
                    "graph g (x: f32[%s]) -> y { w: f32[%s] = random(1, -1, 1); c: f32[%s] = random(2, 1, "
                    "2); a = %s; y = %s(a, w) %s; }",
                    products[k].x, products[k].w, c, by, products[k].op, products[k].attr);
            else
                snprintf(
                    text, sizeof text,
                    "graph g (x: f32[%s]) -> y { w: f32[%s] = random(1, -1, 1); c: f32[%s] = random(2, 1, "
                    "2); a = %s(x, w) %s; y = %s; }",
                    products[k].x, products[k].w, c, products[k].op, products[k].attr, by);
            run_both(text);
        }
}
/* A Cast through each type, from each: what the type between loses is lost. */
static void casts_run(void **state) {
    static const char *const types[] = {"bool", "u8",  "u16", "u32",  "u64", "i8", "i16",
                                        "i32",  "i64", "f16", "bf16", "f32", "f64"};
    enum { TYPES = sizeof types / sizeof *types, FLOATS = 9 };
    (void)state;
    far_numbers = true;
    for (int from = 0; from < TYPES; from++)
        for (int through = 0; through < TYPES; through++) {
            char text[200];
            if (from >= FLOATS && through < FLOATS)
                continue; /* beyond an integer's range, each may do its own */
            snprintf(text, sizeof text,
                     "graph g (x: %s[17]) -> y { a = Cast(x) {to: %s}; y = Cast(a) {to: %s}; }", types[from],
                     types[through], through < FLOATS ? "i64" : "f64");
            run_both(text);
        }
    far_numbers = false;
}
/* What passes and fusion make of values that are narrow in between, without the definition's passes: a
   half is true, bytes wrap, and a clamp's limits that are no whole steps of the bytes behind it are rounded
   as those. */
static void between_run(void **state) {
    static const char *const texts[] = {
        "graph g (x: f32[9, 41]) -> y { h: f32[] = {4}; d = Div(x, h); b = Cast(d) {to: bool}; n = Not(b); y "
        "= "
        "Cast(n) {to: f32}; }",
        "graph g (x: f32[9, 41]) -> y { k: f32[] = {300}; l = Mul(x, k); c = Cast(l) {to: i32}; b = Cast(c) "
        "{to: i8}; "
        "n = Neg(b); y = Cast(n) {to: f32}; }",
        "graph g (x: f32[n, 7], z: f32[m, 7]) -> y { a = Neg(x); b = Abs(a); c = Add(b, z); y = Neg(c); }",
        "graph g (x: u8[2, 8, 9, 9]) -> y { k: u8[] = {97}; s: u8[2, 8, 9, 9] = random(3, 0, 255); x0 = "
        "Mul(x, k); x1 = "
        "Add(x0, s); xs: f32[] = {0.25}; xz: u8[] = {7}; w: i8[24, 8, 1, 1] = random(1, -9, 9); ws: f32[] = "
        "{0.125}; wz: i8[] "
        "= {0}; ys: f32[] = {0.11}; yz: u8[] = {9}; lo: f32[] = {-0.61}; hi: f32[] = {6}; d = "
        "DequantizeLinear(x1, xs, "
        "xz); v = DequantizeLinear(w, ws, wz); c = Conv(d, v); l = Clip(c, lo, hi); y = QuantizeLinear(l, "
        "ys, yz); }",
    };
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) run_both(texts[k]);
}
/* Each allocation of a pass fails in turn: an error, or a graph that is still right. */
static void passes_memory(void **state) {
    (void)state;
    parse_rows();
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        bool all_ran = false;
        for (int64_t at = 0; !all_ran; at += 1 + at / 16) {
            uint64_t before = hone_alloc_live_bytes();
            hone_graph *g = parse(rows[k].before);
            hone_instances *all = hone_instances_create(); /* they point to the graph's attributes */
            hone_status s = HONE_OK;
            all_ran = true;
            for (int q = 0; q < 10 && rows[k].pass[q] && !s; q++) {
                uint64_t calls = hone_alloc_calls();
                hone_alloc_fail_after(rows[k].pass[q] == hone_pass_infer ? -1 : at);
                s = rows[k].pass[q](&(hone_passing){.graph = g, .instances = all, .target = &wishes});
                hone_alloc_fail_after(-1);
                all_ran &= rows[k].pass[q] == hone_pass_infer || hone_alloc_calls() - calls <= (uint64_t)at;
            }
            if (s) assert_int_equal(s, HONE_NO_MEMORY);
            else if (hone_graph_verify(g))
                fail_msg("%s: after failed allocation %d: %s", rows[k].what, (int)at, hone_fail_text());
            hone_instances_destroy(all);
            hone_graph_destroy(g);
            if (hone_alloc_live_bytes() != before)
                fail_msg("%s: a leak after failed allocation %d", rows[k].what, (int)at);
        }
    }
}

/* ---- models -------------------------------------------------------------------------------------------- */
/* data that was made up has another digest; types that the file states are comments, and lost */
static void blank(char *text) {
    char *to = text;
    for (char *p = text; *p; p++) {
        bool made = !strncmp(p, "= random(", 9), comment = !strncmp(p, "; # ", 4);
        *to++ = *p;
        if (made)
            while (*p != ')') p++;
        if (comment)
            while (p[1] != '\n') p++;
    }
    *to = 0;
}
static void through_text(const char *path) {
    const hone_library *library;
    hone_graph *g, *again;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    if (hone_onnx_load(path, library, &g)) fail_msg("%s: %s", path, hone_fail_text());
    char *first = print(g);
    if (hone_graph_parse(first, strlen(first), &again)) fail_msg("%s: %s", path, hone_fail_text());
    char *second = print(again);
    blank(first), blank(second);
    if (strcmp(first, second) != 0) {
        size_t k = 0;
        while (first[k] == second[k]) k++;
        fail_msg("%s: text changes at\n%.200s\nand is\n%.200s", path, first + k, second + k);
    }
    hone_graph_destroy(g);
    hone_graph_destroy(again);
    free(first), free(second);
}
static void models(void **state) {
    (void)state;
    const char *shared = getenv("HONE_SHARED_DIR");
    char path[1200];
    snprintf(path, sizeof path, "%s/models", shared ? shared : "");
    DIR *d = shared ? opendir(path) : NULL;
    if (!d) skip();
    for (struct dirent *e; (e = readdir(d));) {
        struct stat st;
        snprintf(path, sizeof path, "%s/models/%.200s/model.onnx", shared, e->d_name);
        if (!stat(path, &st)) through_text(path);
    }
    closedir(d);
}

int main(void) {
    (void)walk_case; /* no files here */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(text_round),    cmocka_unit_test(text_random), cmocka_unit_test(text_wrong),
        cmocka_unit_test(text_memory),   cmocka_unit_test(passes_rows), cmocka_unit_test(passes_run),
        cmocka_unit_test(affine_run),    cmocka_unit_test(casts_run),   cmocka_unit_test(between_run),
        cmocka_unit_test(passes_memory), cmocka_unit_test(models)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
