/* SPDX-License-Identifier: Apache-2.0
   Classic models as converters write them: the forms that ONNX's own cases do not have, run as whole graphs,
   and maps as test data has them. */
#include "hone/hone.h"
#include "hone/tools.h"
#include "host/regex.h"
#include "host/tree_walk.h"
#include "model/onnx.h"
#include "twin.h"

static hone_value *floats(int rank, const int64_t *dims, const float *at) {
    hone_value *v;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, dims, rank, &v), HONE_OK);
    if (v->bytes) memcpy(v->data, at, v->bytes);
    return v;
}
#define FLOATS(rows, columns, ...) floats(2, (int64_t[]){rows, columns}, (float[]){__VA_ARGS__})
#define LINE(...) floats(1, (int64_t[]){sizeof((float[]){__VA_ARGS__}) / 4}, (float[]){__VA_ARGS__})

/* Output k of a graph with one input, by the definition and fast: these numbers. Takes x. */
static void gives(const char *text, hone_value *x, int k, const double *want, int64_t n, const char *shape) {
    hone_compiled *c = twin_compile(text);
    for (int how = 0; how < 3; how++) {
        hone_value *out[4] = {0};
        twin_run(c, &x, how == 2 ? 2 : 1, how == 0, out, NULL, text);
        hone_text got = {0};
        hone_value_describe(out[k], &got);
        if (strcmp(got.text, shape) != 0) fail_msg("got %s, want %s, in\n%s", got.text, shape, text);
        hone_text_free(&got);
        assert_int_equal(hone_value_count(out[k]), n);
        for (int64_t q = 0; q < n; q++)
            if (!(fabs(hone_value_number(out[k], q) - want[q]) <= 1e-6 * (1 + fabs(want[q]))) &&
                !(isnan(hone_value_number(out[k], q)) && isnan(want[q])))
                fail_msg("element %d: got %.9g, want %.9g, in\n%s", (int)q, hone_value_number(out[k], q),
                         want[q], text);
        for (int q = 0; q < c->graph->out.n; q++) hone_value_drop(out[q]);
    }
    hone_value_drop(x);
    hone_compiled_destroy(c);
}
#define GIVES(text, x, k, shape, ...)                                                                       \
    gives(text, x, k, (double[]){__VA_ARGS__}, (int64_t)(sizeof((double[]){__VA_ARGS__}) / sizeof(double)), \
          shape)

/* ---- indices, ranks, truth ----------------------------------------------------------------------------- */
/* indices of any shape, a scalar too; a vector of features gives one row */
static void features(void **state) {
    (void)state;
    GIVES("graph g (x: f32[2, 3]) -> y { k: i64[] = {2}; y = ai.onnx.ml.ArrayFeatureExtractor(x, k); }",
          FLOATS(2, 3, 1, 2, 3, 4, 5, 6), 0, "f32[2,1]", 3, 6);
    GIVES(
        "graph g (x: f32[2, 3]) -> y { k: i64[2, 1] = {2, 0}; y = ai.onnx.ml.ArrayFeatureExtractor(x, k); }",
        FLOATS(2, 3, 1, 2, 3, 4, 5, 6), 0, "f32[2,2]", 3, 1, 6, 4);
    GIVES("graph g (x: f32[2, 3]) -> y { c: f32[3] = {10, 20, 30}; k = ArgMax(x) {axis: 1}; y = "
          "ai.onnx.ml.ArrayFeatureExtractor(c, k); }",
          FLOATS(2, 3, 1, 2, 3, 6, 5, 4), 0, "f32[1,2]", 30, 10);
    hone_compiled *c = twin_compile(
        "graph g (x: f32[2, 3], k: i64[1]) -> y { y = ai.onnx.ml.ArrayFeatureExtractor(x, k); }");
    hone_value *in[2] = {FLOATS(2, 3, 1, 2, 3, 4, 5, 6)}, *out = NULL;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_I64, (int64_t[]){1}, 1, in + 1), HONE_OK);
    ((int64_t *)in[1]->data)[0] = 3;
    hone_exec *e;
    assert_int_equal(hone_exec_create(c, &(hone_exec_options){.threads = 1}, &e), HONE_OK);
    assert_int_not_equal(hone_exec_run(e, in, &out), HONE_OK); /* past the last feature */
    hone_exec_destroy(e);
    hone_value_drop(in[0]), hone_value_drop(in[1]), hone_value_drop(out); /* out: made before it failed */
    hone_compiled_destroy(c);
}
/* what a Scan stacks has a rank that only the run knows; the axis counts from its end */
static void open_rank(void **state) {
    (void)state;
    GIVES("graph g (x: f32[2, 3]) -> v, i { k: i64[1] = {2}; s0: f32[2, 3] = {0, 0, 0, 0, 0, 0}; s, t = "
          "Scan(s0, x) {num_scan_inputs: 1, "
          "body: graph b (n: f32, r: f32) -> m, o { m = Identity(n); d = Sub(n, r); a: i64[1] = {1}; o = "
          "ReduceSumSquare(d, a) {keepdims: "
          "0}; }}; "
          "u = Transpose(t) {perm: [1, 0]}; v, i = TopK(u, k) {largest: 0}; }",
          FLOATS(2, 3, 1, 2, 3, 0, 1, 1), 0, "f32[2,2]", 2, 14, 2, 14);
}
static void truth(void **state) { /* what is not 0 is true, in the middle of fused nodes too */
    (void)state;
    const char *text = "graph g (x: f32[5]) -> y { b = Cast(x) {to: bool}; n = Not(b); m = Cast(n) {to: "
                       "f32}; y = Add(x, m); }";
    GIVES(text, LINE(0, 0.25f, -0.5f, 1, NAN), 0, "f32[5]", 1, 0.25, -0.5, 1, NAN);
}

/* ---- trees --------------------------------------------------------------------------------------------- */
#define STUMP /* x[0] <= 1 ? node 1 : node 2 */                                                              \
    "nodes_treeids: [0, 0, 0], nodes_nodeids: [0, 1, 2], nodes_featureids: [0, 0, 0], nodes_truenodeids: "   \
    "[1, 0, 0], "                                                                                            \
    "nodes_falsenodeids: [2, 0, 0], nodes_modes: [\"BRANCH_LEQ\", \"LEAF\", \"LEAF\"], nodes_values: [1.0, " \
    "0.0, 0.0], "
static void leaves(void **state) {
    (void)state;
    /* skl2onnx's decision_leaf: the weight of a lone target, once a class */
    GIVES("graph g (x: f32[2, 1]) -> y { y = ai.onnx.ml.TreeEnsembleRegressor(x) {" STUMP
          "target_treeids: [0, 0, 0, 0, 0, 0], target_nodeids: [1, 1, 1, 2, 2, 2], target_ids: [0, 0, 0, 0, "
          "0, 0], "
          "target_weights: [1.0, 1.0, 1.0, 2.0, 2.0, 2.0]}; }",
          FLOATS(2, 1, 0, 3), 0, "f32[2,1]", 1, 2);
    /* base values that are not one a target are a regressor's mistake and left out */
    GIVES("graph g (x: f32[2, 1]) -> y { y = ai.onnx.ml.TreeEnsembleRegressor(x) {" STUMP
          "n_targets: 2, base_values: [100.0], "
          "target_treeids: [0, 0, 0, 0], target_nodeids: [1, 1, 2, 2], target_ids: [0, 1, 0, 1], "
          "target_weights: [1.0, 2.0, 3.0, 4.0]}; }",
          FLOATS(2, 1, 0, 3), 0, "f32[2,2]", 1, 2, 3, 4);
    /* two classes by one score: 1 - s and s; -s and s where a weight is negative */
    GIVES("graph g (x: f32[2, 1]) -> l, y { l, y = ai.onnx.ml.TreeEnsembleClassifier(x) {" STUMP
          "class_treeids: [0, 0], "
          "class_nodeids: [1, 2], class_ids: [0, 0], class_weights: [0.25, 0.75], classlabels_int64s: [5, "
          "7]}; }",
          FLOATS(2, 1, 0, 3), 1, "f32[2,2]", 0.75, 0.25, 0.25, 0.75);
    GIVES("graph g (x: f32[2, 1]) -> l, y { l, y = ai.onnx.ml.TreeEnsembleClassifier(x) {" STUMP
          "class_treeids: [0, 0], "
          "class_nodeids: [1, 2], class_ids: [0, 0], class_weights: [-0.25, 0.75], base_values: [0.5], "
          "classlabels_int64s: [5, 7]}; }",
          FLOATS(2, 1, 0, 3), 1, "f32[2,2]", -0.25, 0.25, -1.25, 1.25);
}
/* Walks of eight beside the definition, to the bit: every order, NaN, infinities, splits that x hits and such
   that no float is. */
static int64_t grow(hone_forest *f, int deep, int features) {
    static const double splits[] = {0, -0.0, 0.5, -1, 0.1, 1e300, -1e300, 1e-42, INFINITY, 3};
    const int64_t at = f->node.n;
    hone_tree_node n = {.mode = HONE_TREE_LEAF, .yes = f->weight.n};
    if (!deep || draw(0, 4) == 0) {
        for (int k = draw(f->targets == 1 ? 1 : 0, 3); k > 0; k--)
            assert_true(hone_push(
                &f->weight, ((hone_tree_weight){(double)draw(-99, 99) / 7, draw(0, (int)f->targets - 1)})));
        n.no = f->weight.n;
        assert_true(hone_push(&f->node, n));
        return at;
    }
    assert_true(hone_push(&f->node, n));
    n = (hone_tree_node){.mode = (uint8_t)draw(HONE_TREE_LEQ, HONE_TREE_GT),
                         .missing = draw(0, 1) != 0,
                         .feature = draw(0, features - 1)};
    n.split = splits[draw(0, (int)(sizeof splits / sizeof *splits) - 1)];
    n.yes = grow(f, deep - 1, features);
    n.no = grow(f, deep - 1, features);
    f->node.at[at] = n;
    return at;
}
static void walks(void **state) {
    (void)state;
    static const float numbers[] = {0, -0.0f, 0.5f, -1, 0.1f, 1e-42f, 3, -2.5f, INFINITY, -INFINITY, 1, NAN};
    hone_node node = {.name = "n"};
    const hone_host_call call = {.node = &node};
    for (int round = 0; round < 300; round++) {
        enum { F = 5, MOST = 21, TARGETS = 3 };
        hone_forest f = {.targets = draw(1, TARGETS), .how = draw(0, 1)};
        /* without NaN and infinity, or with them */
        const int rows = draw(0, MOST), kinds = round % 2 ? 12 : 8;
        for (int k = draw(0, 19); k > 0; k--) {
            int64_t root = grow(&f, draw(0, 6), F);
            assert_true(hone_push(&f.root, root));
        }
        assert_int_equal(hone_forest_check(&call, &f), HONE_OK);
        for (int wide = 0; wide < 2; wide++) {
            hone_value *x;
            assert_int_equal(
                hone_value_tensor(wide ? HONE_DTYPE_F64 : HONE_DTYPE_F32, (int64_t[]){rows, F}, 2, &x),
                HONE_OK);
            for (int k = 0; k < rows * F; k++) {
                float v = numbers[draw(0, kinds - 1)];
                if (wide) ((double *)x->data)[k] = v;
                else ((float *)x->data)[k] = v;
            }
            hone_walk w;
            assert_int_equal(hone_walk_create(&call, &f, wide, &w), HONE_OK);
            assert_true(w.nodes || !f.root.n);
            double got[MOST * TARGETS] = {0};
            if (w.nodes) hone_walk_rows(&w, x->data, F, rows, got);
            for (int r = 0; r < rows && w.nodes; r++) {
                double want[TARGETS];
                bool seen[TARGETS];
                hone_forest_ask(&f, x, r, F, want, seen);
                for (int64_t t = 0; t < f.targets; t++) {
                    double sum = got[r * f.targets + t];
                    if (f.how == 0) sum /= f.root.n;
                    if (memcmp(&sum, want + t, sizeof sum) && sum != want[t])
                        fail_msg("round %d, row %d of %d, target %d: %g, not %g", round, r, rows, (int)t, sum,
                                 want[t]);
                }
            }
            hone_walk_free(&w);
            hone_value_drop(x);
        }
        hone_forest_free(&f);
    }
    hone_forest f = {.targets = 1, .how = 1}; /* == is no order: asked row by row */
    assert_true(hone_push(&f.node, ((hone_tree_node){.mode = HONE_TREE_EQ, .yes = 1, .no = 1})));
    assert_true(hone_push(&f.node, ((hone_tree_node){.mode = HONE_TREE_LEAF})));
    assert_true(hone_push(&f.root, 0));
    hone_walk w;
    assert_int_equal(hone_walk_create(&call, &f, false, &w), HONE_OK);
    assert_int_equal(w.nodes, 0);
    hone_walk_free(&w);
    hone_forest_free(&f);
    for (int64_t fail = 0;; fail++) { /* allocations fail in turn */
        hone_forest g = {.targets = 2, .how = 1};
        for (int k = 0; k < 3; k++) {
            int64_t root = grow(&g, 3, 2);
            assert_true(hone_push(&g.root, root));
        }
        uint64_t before = hone_alloc_live_bytes();
        hone_alloc_fail_after(fail);
        hone_status s = hone_walk_create(&call, &g, false, &w);
        hone_alloc_fail_after(-1);
        if (!s) hone_walk_free(&w);
        assert_int_equal(hone_alloc_live_bytes(), before);
        hone_forest_free(&g);
        if (!s) break;
        assert_int_equal(s, HONE_NO_MEMORY);
    }
}
/* Many rows on many threads, between steps that are wide themselves; the second run finds the trees read. */
static void spread(void **state) {
    (void)state;
    draw_state = 99;
    twin_check(
        "graph g (x: f32[30001, 3]) -> y, l, p { a = Abs(x); y = ai.onnx.ml.TreeEnsembleRegressor(a) {" STUMP
        "target_treeids: [0, 0], target_nodeids: [1, 2], target_ids: [0, 0], target_weights: [1.0, 2.5]}; b "
        "= Neg(x); "
        "l, q = ai.onnx.ml.TreeEnsembleClassifier(b) {" STUMP
        "class_treeids: [0, 0], class_nodeids: [1, 2], class_ids: [0, 0], "
        "class_weights: [-0.25, 0.75], post_transform: \"LOGISTIC\", classlabels_int64s: [5, 7]}; p = "
        "Abs(q); }",
        twin_input, 0, 0, NULL);
}
static void scaler(void **state) { /* in floats: 0.1f - 0.3f rounds before it is multiplied */
    (void)state;
    volatile float x = 0.1f, offset = 0.3f, scale = 3.7f;
    float d = x - offset, want = d * scale;
    GIVES("graph g (x: f32[1, 1]) -> y { y = ai.onnx.ml.Scaler(x) {offset: [0.3], scale: [3.7]}; }",
          FLOATS(1, 1, 0.1f), 0, "f32[1,1]", want);
}

/* ---- maps ---------------------------------------------------------------------------------------------- */
static void put_float(uint8_t *at, float v) { memcpy(at, &v, 4); }
static void maps(void **state) { /* a file's map of scalars is one of a vector, and has no order */
    (void)state;
    /* in a sequence, field 3: a tensor, data_type 1, raw_data */
    uint8_t scalar[] = {0x1a, 8, 0x10, 1, 0x4a, 4, 0, 0, 0, 0};
    uint8_t file[64] = {0x10, 7, 0x18, 5, 0x18, 9, 0x2a, 22, 0x10, 1};
    size_t n = 10;
    for (int k = 0; k < 2; k++) {
        put_float(scalar + 6, k ? 2.5f : 1.5f);
        memcpy(file + n, scalar, sizeof scalar);
        n += sizeof scalar;
    }
    hone_value *read = NULL, *keys, *values, *map;
    if (hone_onnx_read_value(file, n, HONE_TAG_MAP, &read)) fail_msg("%s", hone_fail_text());
    assert_int_equal(read->item[1]->tag, HONE_TAG_TENSOR);
    assert_int_equal(hone_value_count(read->item[1]), 2);
    assert_int_equal(hone_value_tensor(HONE_DTYPE_I64, (int64_t[]){2}, 1, &keys), HONE_OK);
    ((int64_t *)keys->data)[0] = 9, ((int64_t *)keys->data)[1] = 5;
    values = LINE(2.5f, 1.5f);
    assert_int_equal(hone_value_list(HONE_TAG_MAP, (hone_value *[]){keys, values}, 2, &map), HONE_OK);
    hone_difference d;
    hone_compare(map, read, 0, 0, &d);
    if (!d.ok) fail_msg("%s", d.why);
    ((float *)values->data)[0] = 3;
    hone_compare(map, read, 0, 0, &d);
    assert_false(d.ok);
    ((float *)values->data)[0] = 2.5f, ((int64_t *)keys->data)[0] = 8;
    hone_compare(map, read, 0, 0, &d);
    assert_false(d.ok);
    hone_value_drop(read), hone_value_drop(keys), hone_value_drop(values), hone_value_drop(map);
}

/* A value of every kind comes back from its file as it was. */
typedef struct {
    uint8_t at[1024];
    size_t n;
} bytes;
static hone_status put(void *to, const void *data, size_t n) {
    bytes *b = to;
    assert_true(b->n + n <= sizeof b->at);
    if (n) memcpy(b->at + b->n, data, n);
    b->n += n;
    return HONE_OK;
}
static void there_and_back(hone_value *v) { /* takes it */
    bytes file = {.n = 0};
    hone_value *back = NULL;
    assert_int_equal(hone_onnx_write_value(v, &(hone_sink){put, &file}), HONE_OK);
    if (hone_onnx_read_value(file.at, file.n, v->tag, &back)) fail_msg("%s", hone_fail_text());
    hone_difference d;
    hone_compare(back, v, 0, 0, &d);
    if (!d.ok) fail_msg("%s", d.why);
    hone_value_drop(back), hone_value_drop(v);
}
static hone_value *words(int rank, const int64_t *dims, const char *const *at) {
    hone_value *v;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_STRING, dims, rank, &v), HONE_OK);
    v->strings = hone_strings_create();
    for (int64_t k = 0; k < hone_value_count(v); k++)
        ((const hone_string **)v->data)[k] = hone_strings_add(v->strings, at[k], (int64_t)strlen(at[k]));
    return v;
}
static hone_value *list(hone_tag tag, hone_value *a, hone_value *b) { /* takes both */
    hone_value *v;
    assert_int_equal(hone_value_list(tag, (hone_value *[]){a, b}, b ? 2 : a ? 1 : 0, &v), HONE_OK);
    hone_value_drop(a), hone_value_drop(b);
    return v;
}
static void files(void **state) {
    (void)state;
    there_and_back(FLOATS(2, 3, 1, 2, 3, 4, 5, INFINITY));
    there_and_back(floats(0, NULL, (float[]){7}));
    there_and_back(floats(2, (int64_t[]){0, 3}, (float[]){0}));
    there_and_back(words(2, (int64_t[]){1, 2},
                         (const char *const[]){"", "Gr\xc3\xb6\xc3\x9f"
                                                   "e"}));
    there_and_back(list(HONE_TAG_SEQUENCE, NULL, NULL));
    there_and_back(list(HONE_TAG_OPTIONAL, LINE(1, 2), NULL));
    there_and_back(list(HONE_TAG_SEQUENCE, LINE(1, 2), FLOATS(1, 1, 3)));
    hone_value *keys = words(1, (int64_t[]){2}, (const char *const[]){"ant", "bee"});
    there_and_back(list(HONE_TAG_SEQUENCE, list(HONE_TAG_MAP, keys, LINE(0.25f, 0.75f)), NULL));
    keys = words(1, (int64_t[]){2}, (const char *const[]){"ant", "bee"});
    there_and_back(list(HONE_TAG_MAP, keys, list(HONE_TAG_SEQUENCE, LINE(1, 2), LINE(3))));
}

/* ---- text ---------------------------------------------------------------------------------------------- */
static void finding(void **state) { /* the leftmost, of these the longest; ^ and \\b see what stands before */
    (void)state;
    static const struct {
        const char *pattern, *text;
        int from, at, length; /* at -1: nothing */
    } rows[] = {{"[a-z]+", "12 abc de", 0, 3, 3},
                {"[a-z]+", "12 abc de", 4, 4, 2},
                {"a|ab|abcd", "xabcde", 0, 1, 4},
                {"a*", "baa", 0, 0, 0},
                {"a*", "baa", 1, 1, 2},
                {"b", "aaa", 0, -1, 0},
                {"^a", "aa", 1, -1, 0},
                {"\\bb", "ab b", 1, 3, 1},
                {"xyz|y", "xy", 0, 1, 1},
                {"(ab)+c|b", "ababab", 0, 1, 1},
                {"a$", "aa", 0, 1, 1},
                {"", "", 0, 0, 0},
                {"\xc3\xa9+", "caf\xc3\xa9\xc3\xa9", 0, 3, 4},
                {"a+?", "aaa", 0, 0, 3},
                {"x", "x", 2, -1, 0}};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        hone_regex *r;
        size_t at = 99, length = 99;
        assert_int_equal(hone_regex_create(rows[k].pattern, strlen(rows[k].pattern), &r), HONE_OK);
        bool found =
            hone_regex_find(r, rows[k].text, strlen(rows[k].text), (size_t)rows[k].from, &at, &length);
        if (found != (rows[k].at >= 0) || (found && ((int)at != rows[k].at || (int)length != rows[k].length)))
            fail_msg("/%s/ in \"%s\" from %d: %s at %d, %d long", rows[k].pattern, rows[k].text, rows[k].from,
                     found ? "found" : "not found", (int)at, (int)length);
        hone_regex_destroy(r);
    }
}
/* All elements of the output, each followed by '|'. */
static void says(const char *text, const char *shape, const char *want, const char *const *in, int n) {
    hone_compiled *c = twin_compile(text);
    hone_value *x = words(1, (int64_t[]){n}, in), *y = NULL;
    twin_run(c, &x, 1, false, &y, NULL, text);
    hone_text got = {0};
    hone_value_describe(y, &got);
    assert_string_equal(got.text, shape);
    hone_text_free(&got);
    for (int64_t k = 0; k < hone_value_count(y); k++) {
        const hone_string *s = hone_value_string(y, k);
        hone_text_put(&got, "%.*s|", (int)s->bytes, s->text);
    }
    assert_string_equal(got.text ? got.text : "", want);
    hone_text_free(&got);
    hone_value_drop(x), hone_value_drop(y);
    hone_compiled_destroy(c);
}
#define SAYS(text, shape, want, ...)                            \
    says(text, shape, want, (const char *const[]){__VA_ARGS__}, \
         (int)(sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *)))
#define TOKENS(attributes) \
    "graph g (x: string[n]) -> y { y = com.microsoft.Tokenizer(x) {pad_value: \"#\", " attributes "}; }"
static void tokens(void **state) {
    (void)state;
    SAYS(TOKENS("mark: 0, mincharnum: 1, tokenexp: \"[a-z0-9]+\""), "string[3,3]", "ab|c1|d|#|#|#|e|#|#|",
         "ab, c1!d", "??", "e");
    SAYS(TOKENS("mark: 1, mincharnum: 2, tokenexp: \"[a-z]+\""), "string[2,3]", "\2|ab|\3|\2|\3|#|", "ab c",
         "d");
    SAYS(TOKENS("mark: 0, mincharnum: 1, tokenexp: \".\""), "string[2,3]", "a|\xc3\xa9|b|#|#|#|",
         "a\xc3\xa9"
         "b",
         "");
    SAYS(TOKENS("mark: 0, mincharnum: 1, separators: [\"\"]"), "string[1,2]", "a|b|", "ab");
    SAYS(TOKENS("mark: 0, mincharnum: 1, separators: [\" \", \"[.,]+\"]"), "string[2,3]", "a|b|c|#|#|#|",
         "a b,.c", " .");
    SAYS(TOKENS("mark: 1, mincharnum: 1, tokenexp: \"[a-z]+\""), "string[1,0]", "", "12");
    hone_graph *g;
    hone_compiled *c;
    const char *bad = TOKENS("mark: 0, mincharnum: 0, tokenexp: \"a(\"");
    assert_int_equal(hone_graph_parse(bad, strlen(bad), &g), HONE_OK);
    assert_int_equal(hone_compile(g, &c), HONE_OK);
    hone_exec *e;
    hone_value *x = words(1, (int64_t[]){1}, (const char *const[]){"a"}), *y = NULL;
    assert_int_equal(hone_exec_create(c, &(hone_exec_options){.threads = 1}, &e), HONE_OK);
    assert_int_equal(hone_exec_run(e, &x, &y), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "mincharnum"));
    hone_exec_destroy(e);
    hone_value_drop(x);
    hone_compiled_destroy(c);
}
static void hashes(void **state) { /* of ONNX Runtime */
    (void)state;
    const char *text = "graph g (x: string[n]) -> y { h = com.microsoft.MurmurHash3(x) {positive: 0}; y = "
                       "Cast(h) {to: f32}; }";
    hone_value *x = words(1, (int64_t[]){5}, (const char *const[]){"", "a", "ab", "abcd", "a longer word"});
    GIVES(text, x, 0, "f32[5]", 0, 1009084864, -1681926272, 1139632000, 1258525056);
    GIVES("graph g (x: f32[2]) -> y { h = com.microsoft.MurmurHash3(x) {seed: 7}; y = Cast(h) {to: f32}; }",
          LINE(1, -2), 0, "f32[2]", 3095100160, 4287096576);
}
static void distances(void **state) {
    (void)state;
    const char *end =
        "b: f32[3, 2] = {0, 0, 1, 1, -1, 0.5}; y = com.microsoft.CDist(x, b) {metric: \"%s\"}; }";
    char text[256];
    for (int root = 0; root < 2; root++) {
        size_t n = (size_t)snprintf(text, sizeof text, "graph g (x: f32[2, 2]) -> y { ");
        snprintf(text + n, sizeof text - n, end, root ? "euclidean" : "sqeuclidean");
        double want[] = {0, 2, 1.25, 5, 1, 6.25};
        for (int k = 0; k < 6 && root; k++) want[k] = sqrt(want[k]);
        gives(text, FLOATS(2, 2, 0, 0, 1, 2), 0, want, 6, "f32[2,3]");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(features), cmocka_unit_test(open_rank), cmocka_unit_test(truth),
        cmocka_unit_test(leaves),   cmocka_unit_test(walks),     cmocka_unit_test(spread),
        cmocka_unit_test(scaler),   cmocka_unit_test(maps),      cmocka_unit_test(files),
        cmocka_unit_test(finding),  cmocka_unit_test(tokens),    cmocka_unit_test(hashes),
        cmocka_unit_test(distances)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
