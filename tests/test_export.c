/* SPDX-License-Identifier: Apache-2.0
   The exporter: graphs are written as ONNX and read again: the same text, the same bytes when written once
   more, the same answers. Models and ONNX's own cases where they are on this machine. What other runtimes
   make of it, scripts/compare_export.py asks. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>
#include <dirent.h>
#include <sys/stat.h>

#include "base/file.h"
#include "hone/tools.h"
#include "model/export.h"
#include "model/onnx.h"
#include "run/exec.h"

/* ---- tools --------------------------------------------------------------------------------------------- */
typedef struct {
    uint8_t *at;
    size_t n, space;
    int64_t room; /* puts until it refuses; -1: never */
} bytes;
static hone_status take(void *context, const void *data, size_t n) {
    bytes *b = context;
    if (b->room >= 0 && b->room-- == 0) return hone_fail(HONE_IO, "the sink is full");
    if (b->n + n > b->space) b->at = realloc(b->at, b->space = (b->n + n) * 2 + 64);
    assert_non_null(b->at);
    memcpy(b->at + b->n, data, n);
    b->n += n;
    return HONE_OK;
}
static bytes export(const hone_graph *g, hone_exported *e) {
    bytes b = {.room = -1};
    hone_export_to to = {.model = {take, &b}};
    if (hone_graph_export(g, &to, e)) fail_msg("%s", hone_fail_text());
    assert_non_null(b.at);
    if (e) assert_int_equal(e->model_bytes, b.n);
    return b;
}
static const hone_library *library(void) {
    const hone_library *rows;
    assert_int_equal(hone_library_builtin(&rows), HONE_OK);
    return rows;
}
static hone_graph *import(const bytes *b) {
    hone_graph *g;
    if (hone_onnx_load_memory(b->at, b->n, NULL, library(), &g)) fail_msg("%s", hone_fail_text());
    return g;
}
static char *text_of(const hone_graph *g) {
    hone_text t = {0};
    assert_int_equal(hone_graph_print(g, &t), HONE_OK);
    char *copy = strdup(t.text);
    hone_text_free(&t);
    return copy;
}
static hone_graph *parse(const char *text) {
    hone_graph *g;
    if (hone_graph_parse(text, strlen(text), &g)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    return g;
}
/* Written and read again and again: nothing changes any more after the second time (nodes have names by then,
   and no two the same). Returns what was read the first time. */
static hone_graph *settle(const hone_graph *g, const char *what) {
    hone_graph *read[3];
    bytes b[3];
    for (int k = 0; k < 3; k++) b[k] = export(k ? read[k - 1] : g, NULL), read[k] = import(b + k);
    char *x = text_of(read[1]), *y = text_of(read[2]);
    if (strcmp(x, y) != 0) fail_msg("%s: the third time it reads\n%s\nnot\n%s", what, y, x);
    free(x), free(y);
    for (int k = 0; k < 3; k++) free(b[k].at);
    hone_graph_destroy(read[1]), hone_graph_destroy(read[2]);
    return read[0];
}

/* ---- answers ------------------------------------------------------------------------------------------- */
enum { MOST = 8 };
static void run(hone_graph *take_it, hone_value **out) {
    hone_compiled *c;
    hone_exec *e;
    hone_value *in[MOST] = {0};
    if (hone_compile(take_it, &c)) fail_msg("%s", hone_fail_text());
    for (int k = 0; k < c->graph->in.n; k++) {
        const hone_var *v = c->graph->var.at + c->graph->in.at[k];
        assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, in + k), HONE_OK);
        for (int64_t i = 0; i < hone_value_count(in[k]); i++)
            hone_dtype_store(v->dtype, (char *)in[k]->data + i * hone_dtypes[v->dtype].bytes, HONE_F64,
                             (hone_scalar){.f64 = 1 + 0.25 * (double)(i + k)}, true);
    }
    assert_int_equal(hone_exec_create(c, &(hone_exec_options){.threads = 1}, &e), HONE_OK);
    if (hone_exec_run(e, in, out)) fail_msg("%s", hone_fail_text());
    for (int k = 0; k < MOST; k++) hone_value_drop(in[k]);
    hone_exec_destroy(e);
    hone_compiled_destroy(c);
}
static void same_answers(hone_graph *a, hone_graph *b, const char *what) {
    hone_value *x[MOST] = {0}, *y[MOST] = {0};
    assert_int_equal(a->out.n, b->out.n);
    run(a, x), run(b, y);
    for (int k = 0; k < MOST; k++) {
        if (!x[k] && !y[k]) continue;
        hone_difference d;
        assert_true(x[k] && y[k]);
        hone_compare(y[k], x[k], 1e-6, 1e-6, &d);
        if (!d.ok) fail_msg("%s: output %d: %s", what, k, d.why);
        hone_value_drop(x[k]), hone_value_drop(y[k]);
    }
}

/* ---- what a graph can hold ----------------------------------------------------------------------------- */
static const char *const texts[] = {
    "graph plain (x: f32[2, 3]) -> y { w: f32[3, 2] = {1, 2, 3, 4, 5, 6}; b: f32[2] = {-1, 0.5}; y = Gemm(x, "
    "w, b) {alpha: 0.5, transB: "
    "0}; }",
    "graph absent (x: f32[4]) -> y { hi: f32[] = {1.5}; y = Clip(x, _, hi); }",
    "graph unwanted (x: f32[5]) -> i { k: i64[1] = {2}; _, i = TopK(x, k); }",
    "graph pieces (x: f32[6]) -> a { a, _, _ = Split(x) {axis: 0, num_outputs: 3}; }",
    "graph fill (n: i64[2], x: f32[]) -> y, z { s: i64[2] = {2, 3}; v: f16[] = {7}; y = ConstantOfShape(s, "
    "v); z = ConstantOfShape(s, x); "
    "}",
    "graph fewer (x: f32[3], z: f32[3]) -> y { y = Sum(x, z); }",
    "graph lists (x: f32[3]) -> y, n { s = SequenceConstruct(x, x); p: i64[] = {1}; y = SequenceAt(s, p); n "
    "= SequenceLength(s); }",
    "graph words (x: f32[2]) -> y { s = ai.onnx.ml.LabelEncoder(x) {keys_floats: [1.0, 1.25], "
    "values_strings: [\"a\", \"b\"]}; "
    "y = ai.onnx.ml.LabelEncoder(s) {keys_tensor: tensor string[1] = {\"a\"}, values_tensor: tensor f32[1] = "
    "{0.5}, "
    "default_tensor: tensor f32[1] = {7}}; }",
    /* What import leaves in com.microsoft stays there */
    "graph contrib (x: f32[2, 4], w: f32[3, 4]) -> y { y = com.microsoft.FusedMatMul(x, w) {transB: 1, "
    "alpha: 0.5}; }",
    /* Names that stand inside and outside, a capture and an outer constant handed through, an output that
       stands twice */
    "graph bodies (c: bool[], x: f32[2]) -> y, z { k: f32[] = {2}; r = Neg(x); y, z = If(c; x, k, r) {"
    "then_branch: graph t (;x: f32[2], k: f32[], q: f32[2]) -> r, x { r = Mul(q, k); },"
    "else_branch: graph e (;x: f32[2], k: f32[], q: f32[2]) -> r, r { one: f32[1] = {1}; r = Add(x, one) "
    "\"more\"; }} \"choose\"; }",
    "graph loop (x: f32[2]) -> y, all { m: i64[] = {3}; c: bool[] = {1}; y, all = Loop(m, c, x; x) {"
    "body: graph body (i: i64[], go: bool[], v: f32[2]; by: f32[2]) -> go, w, w { w = Add(v, by); }}; }",
};
static void round_trips(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        hone_graph *g = parse(texts[k]), *back;
        if (hone_graph_infer(g)) fail_msg("%s", hone_fail_text());
        back = settle(g, texts[k]);
        same_answers(g, back, texts[k]);
    }
}

/* Fused groups are their parts, layouts say nothing: what was optimized is written as well as what was
   not. */
static void after_the_passes(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof texts / sizeof *texts; k++) {
        hone_compiled *c;
        assert_int_equal(hone_compile(parse(texts[k]), &c), HONE_OK);
        hone_graph *back = settle(c->graph, texts[k]);
        same_answers(parse(texts[k]), back, texts[k]);
        hone_compiled_destroy(c);
    }
}

static void every_dtype(void **state) {
    (void)state;
    const hone_program *identity = hone_library_find(library(), "", "Identity");
    hone_graph *g;
    assert_int_equal(hone_graph_create("all", &g), HONE_OK);
    int64_t dim = 70001; /* odd, and more than is packed at a time */
    for (int t = 1; t < HONE_DTYPE_COUNT; t++) {
        hone_value *v;
        char name[16];
        int64_t n = t == HONE_DTYPE_STRING ? 3 : dim;
        assert_int_equal(hone_value_tensor((hone_dtype)t, &n, 1, &v), HONE_OK);
        unsigned mask = t == HONE_DTYPE_BOOL      ? 1
                        : hone_dtypes[t].bits < 8 ? (1u << hone_dtypes[t].bits) - 1
                                                  : 255;
        /* sign, in memory */
        unsigned top = hone_dtypes[t].bits < 8 && hone_dtypes[t].kind == HONE_KIND_INT ? (mask + 1) / 2 : 0;
        for (size_t k = 0; t != HONE_DTYPE_STRING && k < v->bytes; k++)
            ((uint8_t *)v->data)[k] = (uint8_t)((((k * 37 + k / 99) & mask) ^ top) - top);
        if (t == HONE_DTYPE_STRING) {
            if (!v->strings) v->strings = hone_strings_create();
            ((const hone_string **)v->data)[1] = hone_strings_add(v->strings, "a\0b", 3);
        }
        snprintf(name, sizeof name, "c%d", t);
        hone_vid in = hone_graph_const(g, name, v), out = hone_graph_var(g, NULL);
        assert_non_null(hone_graph_node(g, identity, "", &in, 1, &out, 1));
        assert_true(hone_push(&g->out, out));
    }
    hone_exported e;
    bytes b = export(g, &e);
    hone_graph *back = import(&b);
    assert_int_equal(e.opset, 25); /* for numbers of two bits */
    assert_int_equal(e.nodes, HONE_DTYPE_COUNT - 1);
    for (int t = 1; t < HONE_DTYPE_COUNT; t++) {
        char name[16];
        snprintf(name, sizeof name, "c%d", t);
        const hone_value *x = g->var.at[hone_graph_find(g, name)].value,
                         *y = back->var.at[hone_graph_find(back, name)].value;
        hone_difference d;
        assert_true(y && (int)y->dtype == t);
        if (t != HONE_DTYPE_STRING) assert_memory_equal(x->data, y->data, x->bytes);
        hone_compare(y, x, 0, 0, &d);
        assert_true(t != HONE_DTYPE_STRING || d.ok);
    }
    free(b.at);
    hone_graph_destroy(g), hone_graph_destroy(back);
}

/* A constant that both branches have is written once; lists that are constants are made by nodes. */
static void constants(void **state) {
    (void)state;
    hone_graph *g = parse("graph g (c: bool[]) -> y { y = If(c) {then_branch: graph t () -> r { w: f32[1] = "
                          "{1}; r = Relu(w); },"
                          " else_branch: graph e () -> r { v: f32[1] = {1}; r = Exp(v); }}; }");
    int64_t dim = 5000;
    hone_value *w, *list, *items[2];
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, &dim, 1, &w), HONE_OK);
    for (int b = 0; b < 2; b++) {
        hone_graph *body = g->node.at[0]->body[b];
        hone_vid v = hone_graph_const(body, "big", hone_value_hold(w));
        body->node.at[0]->in[0] = v;
    }
    bytes b = export(g, NULL);
    assert_in_range(b.n, 20000, 22000);
    hone_graph *back = import(&b);
    items[0] = items[1] = w;
    assert_int_equal(hone_value_list(HONE_TAG_SEQUENCE, items, 2, &list), HONE_OK);
    hone_vid v = hone_graph_const(g, "list", list), n = hone_graph_var(g, "length");
    assert_non_null(hone_graph_node(g, hone_library_find(library(), "", "SequenceLength"), "", &v, 1, &n, 1));
    assert_true(hone_push(&g->out, n));
    hone_graph *more = settle(g, "a constant list");
    assert_int_equal(more->out.n, 2);
    hone_value_drop(w);
    free(b.at);
    hone_graph_destroy(g), hone_graph_destroy(back), hone_graph_destroy(more);
}

/* ---- opsets, and what is refused ----------------------------------------------------------------------- */
static int opset_of(const char *text) {
    hone_exported e;
    hone_graph *g = parse(text);
    bytes b = export(g, &e);
    free(b.at);
    hone_graph_destroy(g);
    return e.opset;
}
static void opsets(void **state) {
    (void)state;
    assert_int_equal(opset_of("graph g (x: f32[2]) -> y { y = Cast(x) {to: f16}; }"), 18);
    assert_int_equal(opset_of("graph g (x: f32[2]) -> y { y = Cast(x) {to: f16, saturate: 0}; }"), 19);
    assert_int_equal(opset_of("graph g (x: f32[2]) -> y { y = Gelu(x); }"), 20);
    assert_int_equal(opset_of("graph g (x: bf16[2]) -> y { y = Add(x, x); }"), 18);
    assert_int_equal(opset_of("graph g (x: bf16[2]) -> y { y = Sin(x); }"), 22);
    assert_int_equal(
        opset_of(
            "graph g (x: f32[1, 2, 4, 4]) -> y { y = MaxPool(x) {kernel_shape: [2, 2], ceil_mode: 0}; }"),
        18);
    assert_int_equal(
        opset_of(
            "graph g (x: f32[1, 2, 4, 4]) -> y { y = MaxPool(x) {kernel_shape: [2, 2], ceil_mode: 1}; }"),
        22);
    assert_int_equal(opset_of("graph g (x: f32[2]) -> y { y = Mod(x, x) {fmod: 1}; }"), 18);
    assert_int_equal(opset_of("graph g (x: f32[2]) -> y { y = Mod(x, x); }"), 28);
}
static void refused(void **state) {
    (void)state;
    static const char row[] = "op my.own.Twice 1 (x[I..]: T) -> y[I..]: T\n  T: f32\n  y[i..] = 2 * x[i..]\n";
    hone_library *mine;
    assert_int_equal(hone_library_create(&mine), HONE_OK);
    assert_int_equal(hone_library_add(mine, "mine", row, sizeof row - 1), HONE_OK);
    hone_graph *g = parse("graph g (x: f32[2]) -> y { y = Relu(x); }");
    g->node.at[0]->program = hone_library_find(mine, "my.own", "Twice");
    bytes b = {.room = -1};
    hone_export_to to = {.model = {take, &b}};
    assert_int_equal(hone_graph_export(g, &to, NULL), HONE_NOT_SUPPORTED);
    assert_non_null(strstr(hone_fail_text(), "my.own.Twice"));
    assert_int_equal(b.n, 0);
    hone_graph_destroy(g);
    hone_library_destroy(mine);
    g = parse("graph g (x: f32[2, 2]) -> y { w: f32[1000] = random(1, 0, 1); y = Concat(w, w) {axis: 0}; }");
    to.inline_max = 100; /* and nowhere to put the data */
    assert_int_equal(hone_graph_export(g, &to, NULL), HONE_NOT_SUPPORTED);
    to.inline_max = 0;
    for (int k = 0; k < 3; k++) { /* a sink that fails */
        b.room = k;
        assert_int_equal(hone_graph_export(g, &to, NULL), HONE_IO);
    }
    free(b.at);
    hone_graph_destroy(g);
}
static void without_memory(void **state) {
    (void)state;
    for (size_t t = 0; t < sizeof texts / sizeof *texts; t++) {
        hone_graph *g = parse(texts[t]);
        for (int calls = 0, done = 0; !done && calls < 200; calls++) {
            bytes b = {.room = -1};
            hone_export_to to = {.model = {take, &b}};
            hone_alloc_fail_after(calls);
            hone_status s = hone_graph_export(g, &to, NULL);
            hone_alloc_fail_after(-1);
            done = s == HONE_OK;
            assert_true(done || s == HONE_NO_MEMORY);
            free(b.at);
        }
        hone_graph_destroy(g);
    }
}

/* ---- files --------------------------------------------------------------------------------------------- */
static char folder[] = "/tmp/hone-export-XXXXXX";
static const char *in_folder(const char *name) {
    static char path[4][600];
    static int turn;
    snprintf(path[turn %= 4], sizeof path[0], "%s/%s", folder, name);
    return path[turn++];
}
static int make_folder(void **state) {
    (void)state;
    return mkdtemp(folder) ? 0 : -1;
}
static void wipe(const char *path) {
    DIR *d = opendir(path);
    for (struct dirent *e; d && (e = readdir(d));) {
        char inner[900];
        if (e->d_name[0] == '.') continue;
        snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        unlink(inner);
    }
    if (d) closedir(d);
}
static int drop_folder(void **state) {
    (void)state;
    wipe(folder);
    return rmdir(folder);
}

static void beside(void **state) { /* weights in a file of their own */
    (void)state;
    hone_graph *g = parse("graph g (x: f32[1]) -> y, z { a: f32[700, 700] = random(1, 0, 1); b: f32[300] = "
                          "random(2, 0, 1); s: f32[1] = {3};"
                          " i: i4[5001] = random(3, -8, 7); c = Cast(i) {to: f32}; y = Mul(a, s); d = Mul(b, "
                          "x); e = ReduceSum(c); z = Mul(d, e); }");
    bytes model = {.room = -1}, data = {.room = -1};
    hone_export_to to = {{take, &model}, {take, &data}, "w.data", 1};
    hone_exported e;
    assert_int_equal(hone_graph_export(g, &to, &e), HONE_OK);
    assert_true(e.data_bytes == data.n && data.n >= 700 * 700 * 4 + 300 * 4 + 2501 && model.n < 2000);
    assert_int_equal(hone_file_write(in_folder("w.onnx"), model.at, model.n), HONE_OK);
    assert_int_equal(hone_file_write(in_folder("w.data"), data.at, data.n), HONE_OK);
    hone_graph *back;
    if (hone_onnx_load(in_folder("w.onnx"), library(), &back)) fail_msg("%s", hone_fail_text());
    /* Not over what it is read from. */
    assert_int_equal(hone_graph_export_file(back, in_folder("w.onnx"), NULL), HONE_BAD_INPUT);
    assert_int_equal(hone_graph_export_file(back, in_folder("w.data"), NULL), HONE_BAD_INPUT);
    /* Nor does any other command, under whatever name; what is not there, and what is not read, is fine. */
    assert_int_equal(symlink("w.data", in_folder("soft")), 0);
    char own[512];
    snprintf(own, sizeof own, "%s", in_folder("w.onnx"));
    assert_int_equal(link(own, in_folder("hard")), 0);
    assert_int_equal(hone_file_write(in_folder("other"), "x", 1), HONE_OK);
    static const struct {
        const char *name;
        hone_status want;
    } outputs[] = {{"w.onnx", HONE_BAD_INPUT}, {"w.data", HONE_BAD_INPUT},   {"soft", HONE_BAD_INPUT},
                   {"hard", HONE_BAD_INPUT},   {"./w.data", HONE_BAD_INPUT}, {"other", HONE_OK},
                   {"none", HONE_OK}};
    for (size_t k = 0; k < sizeof outputs / sizeof *outputs; k++)
        assert_int_equal(hone_not_source(own, in_folder(outputs[k].name)), outputs[k].want);
    assert_int_equal(hone_not_source("zoo:resnet18", own), HONE_OK);
    assert_int_equal(hone_not_source("none.onnx", own), HONE_OK);
    same_answers(g, back, "data beside");
    free(model.at), free(data.at);
    wipe(folder);
}
static void to_files(void **state) {
    (void)state;
    hone_graph *g = parse(texts[0]);
    hone_exported e;
    struct stat st;
    assert_int_equal(hone_graph_export_file(g, in_folder("g.onnx"), &e), HONE_OK);
    assert_true(stat(in_folder("g.onnx"), &st) == 0 && (uint64_t)st.st_size == e.model_bytes &&
                !e.data_bytes);
    /* again: it was not read from there */
    assert_int_equal(hone_graph_export_file(g, in_folder("g.onnx"), &e), HONE_OK);
    assert_int_equal(hone_graph_export_file(g, in_folder("none/g.onnx"), NULL), HONE_IO);
    wipe(folder);
    hone_graph_destroy(g);
}

/* weights in the file lie at lines of cache, and are used where they are mapped; names of all lengths move
   them */
static void aligned(void **state) {
    (void)state;
    hone_text t = {0};
    hone_text_put(&t, "graph g (x: f32[1]) -> y { y = Neg(x); ");
    for (int k = 0; k < 70; k++)
        hone_text_put(&t, "w%.*s: f32[%d] = random(%d, 0, 1); u%d = Mul(w%.*s, x); ", k,
                      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg",
                      256 + 40 * k * k, k, k, k,
                      "aaaaaaaaaabbbbbbbbbbccccccccccddddddddddeeeeeeeeeeffffffffffgggggggggg");
    hone_text_put(&t, "}");
    hone_graph *g = parse(t.text), *back;
    assert_int_equal(hone_graph_export_file(g, in_folder("a.onnx"), NULL), HONE_OK);
    if (hone_onnx_load(in_folder("a.onnx"), library(), &back)) fail_msg("%s", hone_fail_text());
    int seen = 0;
    for (int v = 0; v < back->var.n; v++) {
        const hone_value *w = back->var.at[v].value;
        if (!w || w->bytes < 1024) continue;
        if (w->free_data || (uintptr_t)w->data % 64)
            fail_msg("'%s' was copied, or lies at %p", back->var.at[v].name, w->data);
        seen++;
    }
    assert_int_equal(seen, 70);
    hone_graph_destroy(g), hone_graph_destroy(back);
    hone_text_free(&t);
    wipe(folder);
}

/* ---- models -------------------------------------------------------------------------------------------- */
/* The model of a folder, written to ours, against the folder's data sets; `optimized` or as it was read. */
static void check_folder(const char *from, double rtol, double atol, bool optimized) {
    char path[700], link[900];
    hone_case result = {0};
    snprintf(path, sizeof path, "%s/model.onnx", from);
    if (optimized) {
        hone_model *m;
        if (hone_model_load(path, &m) || hone_model_save(m, in_folder("model.onnx")))
            fail_msg("%s: %s", from, hone_error());
        hone_model_free(m);
    } else {
        hone_graph *g;
        if (hone_onnx_load(path, library(), &g)) fail_msg("%s", hone_fail_text());
        if (hone_graph_export_file(g, in_folder("model.onnx"), NULL))
            fail_msg("%s: %s", from, hone_fail_text());
        hone_graph *back = settle(g, from);
        hone_graph_destroy(g), hone_graph_destroy(back);
    }
    DIR *d = opendir(from);
    for (struct dirent *e; d && (e = readdir(d));) {
        if (strncmp(e->d_name, "test_data_set_", 14) != 0 || strstr(e->d_name, "past")) continue;
        snprintf(link, sizeof link, "%s/%s", from, e->d_name);
        assert_int_equal(symlink(link, in_folder(e->d_name)), 0);
    }
    if (d) closedir(d);
    hone_conformance_case(folder, rtol, atol, &(hone_options){.threads = 1}, &result);
    if (!result.passed) fail_msg("%s: %s", from, result.why);
    wipe(folder);
}

static void digits(void **state) {
    (void)state;
    const char *source = getenv("HONE_SOURCE_DIR");
    char path[600];
    hone_graph *g;
    if (!source) skip();
    snprintf(path, sizeof path, "%s/examples/digits", source);
    check_folder(path, 1e-3, 1e-5, true);
    check_folder(path, 1e-3, 1e-5, false);
    snprintf(path, sizeof path, "%s/examples/digits/model.onnx", source);
    assert_int_equal(hone_onnx_load(path, library(), &g), HONE_OK);
    hone_graph *back = settle(g, path);
    char *x = text_of(g), *y = text_of(back);
    assert_string_equal(x, y);
    free(x), free(y);
    hone_graph_destroy(g), hone_graph_destroy(back);
}

static const char *shared(const char *what) {
    static char path[500];
    const char *dir = getenv("HONE_SHARED_DIR");
    snprintf(path, sizeof path, "%.300s/%s", dir ? dir : "", what);
    if (dir && access(path, R_OK) == 0) return path;
    print_message("skipped: no %s\n", what);
    return NULL;
}
/* Each `step`-th folder in the folder: its cases pass after the round trip as before. Those that fail anyway
   are not ours. */
static void cases(const char *what, int step, double rtol, double atol, off_t most_bytes) {
    const char *base = shared(what);
    if (!base) skip();
    struct dirent **list;
    int n = scandir(base, &list, NULL, alphasort), checked = 0;
    for (int k = 0; k < n; k++) {
        char path[800], model[820];
        struct stat st;
        hone_case before = {0};
        snprintf(path, sizeof path, "%s/%s", base, list[k]->d_name);
        snprintf(model, sizeof model, "%s/model.onnx", path);
        if (k % step == 0 && list[k]->d_name[0] != '.' && stat(model, &st) == 0 && st.st_size <= most_bytes) {
            hone_conformance_case(path, rtol, atol, &(hone_options){.threads = 1}, &before);
            for (int o = 0; o < 2 && before.passed == 1; o++) check_folder(path, rtol, atol, o), checked++;
        }
        free(list[k]);
    }
    free(list);
    assert_true(checked > 0);
}
static void simple(void **state) {
    (void)state;
    cases("onnx/simple", 1, 1e-3, 1e-5, 1 << 20);
}
static void nodes(void **state) {
    (void)state;
    cases("onnx/node", 12, 1e-3, 1e-5, 1 << 20);
}
/* Answers of those that are quick; of all of them, in ONNX Runtime: scripts/compare_export.py. */
static void models(void **state) {
    (void)state;
#if defined(__SANITIZE_ADDRESS__)
    enum { QUICK = 100000 };
#else
    enum { QUICK = 3000000 };
#endif
    cases("models", 1, 1e-3, 5e-4, QUICK);
}
static void texts_of_models(void **state) {
    (void)state;
    const char *base = shared("models");
    if (!base) skip();
    DIR *d = opendir(base);
    for (struct dirent *e; d && (e = readdir(d));) {
        char path[800];
        struct stat st;
        hone_graph *g;
        snprintf(path, sizeof path, "%s/%s/model.onnx", base, e->d_name);
        if (e->d_name[0] == '.' || stat(path, &st) != 0 || st.st_size > 4000000) continue;
        if (hone_onnx_load(path, library(), &g)) fail_msg("%s", hone_fail_text());
        hone_graph *back = settle(g, path);
        hone_graph_destroy(g), hone_graph_destroy(back);
    }
    if (d) closedir(d);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trips),     cmocka_unit_test(after_the_passes),
        cmocka_unit_test(every_dtype),     cmocka_unit_test(constants),
        cmocka_unit_test(opsets),          cmocka_unit_test(refused),
        cmocka_unit_test(without_memory),  cmocka_unit_test(beside),
        cmocka_unit_test(to_files),        cmocka_unit_test(aligned),
        cmocka_unit_test(digits),          cmocka_unit_test(simple),
        cmocka_unit_test(nodes),           cmocka_unit_test(models),
        cmocka_unit_test(texts_of_models),
    };
    return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
