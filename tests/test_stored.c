/* SPDX-License-Identifier: Apache-2.0
   Constant factors that stay f16 or bf16 until they are packed (passes/half.c): the same graph with these
   constants as f32 must give the same bits, by every way in which products are computed, at every CPU level,
   in f32, bf16 and f16, and be what the definition says. */
#include "kernels/gemm.h"
#include "twin.h"

/* %s: the type of constants. Products are cast from and to f32, so that nothing is rounded but by the
   kernels. Every large constant has 8192 elements or more. */
static const char *const rows[] = {
    "graph g (x: f32[7, 65]) -> y { w: %s[65, 131] = random(1, -1, 1); h = Cast(x) {to: %s}; m = MatMul(h, "
    "w); y = Cast(m) {to: f32}; }",
    "graph g (x: f32[1, 130]) -> y { w: %s[130, 67] = random(1, -1, 1); h = Cast(x) {to: %s}; m = MatMul(h, "
    "w); y = Cast(m) {to: f32}; }",
    "graph g (x: f32[37, 99]) -> y { w: %s[117, 99] = random(2, -1, 1); c: %s[117] = random(3, -1, 1); h = "
    "Cast(x) {to: %s}; m = Gemm(h, "
    "w, c) {transB: 1}; "
    "r = Relu(m); y = Cast(r) {to: f32}; }",
    "graph g (x: f32[65, 9]) -> y { w: %s[131, 65] = random(4, -1, 1); h = Cast(x) {to: %s}; m = MatMul(w, "
    "h); y = Cast(m) {to: f32}; }",
    "graph g (x: f32[2, 5, 96], i: i64[3]) -> y, z { t: %s[700, 96] = random(5, -1, 1); u = Transpose(t) "
    "{perm: [1, 0]}; h = Cast(x) {to: "
    "%s}; m = MatMul(h, "
    "u); y = Cast(m) {to: f32}; g0 = Gather(t, i); g1 = Neg(g0); z = Cast(g1) {to: f32}; }",
    "graph g (x: f32[3, 4, 33]) -> y { w: %s[3, 33, 101] = random(6, -1, 1); h = Cast(x) {to: %s}; m = "
    "MatMul(h, w); y = Cast(m) {to: "
    "f32}; }",
    "graph g (x: f32[1, 31, 9, 11]) -> y { w: %s[33, 31, 3, 3] = random(7, -1, 1); c: %s[33] = random(8, -1, "
    "1); h = Cast(x) {to: %s}; m = "
    "Conv(h, w, c) {pads: "
    "[1, 1, 1, 1]}; r = Relu(m); y = Cast(r) {to: f32}; }",
    "graph g (x: f32[2, 64, 28, 27]) -> y { w: %s[64, 64, 3, 3] = random(9, -1, 1); h = Cast(x) {to: %s}; m "
    "= Conv(h, w) {pads: [1, 1, 1, "
    "1]}; n = Conv(m, w) {"
    "pads: [1, 1, 1, 1], strides: [2, 2]}; y = Cast(n) {to: f32}; }",
    "graph g (x: f32[1, 65, 7, 6]) -> y { w: %s[130, 65, 1, 1] = random(10, -1, 1); h = Cast(x) {to: %s}; m "
    "= Conv(h, w); r = Sigmoid(m); "
    "y = Cast(r) {to: f32}; "
    "}",
    "graph g (x: f32[1, 3, 40, 41]) -> y { w: %s[64, 3, 7, 7] = random(11, -1, 1); h = Cast(x) {to: %s}; m = "
    "Conv(h, w) {pads: [3, 3, 3, "
    "3], strides: [2, 2]}; "
    "y = Cast(m) {to: f32}; }",
    "graph g (x: f32[1, 33, 60, 70]) -> y { w: %s[2, 33, 5, 25] = random(12, -1, 1); h = Cast(x) {to: %s}; m "
    "= Conv(h, w) {pads: [2, 12, "
    "2, 12]}; y = Cast(m) {to: "
    "f32}; }",
    "graph g (x: f32[1, 64, 50]) -> y { w: %s[32, 64, 5] = random(13, -1, 1); h = Cast(x) {to: %s}; m = "
    "Conv(h, w) {pads: [2, 2]}; y = "
    "Cast(m) {to: f32}; }",
    "graph g (x: f32[5, 2, 40]) -> y { w: %s[1, 208, 40] = random(14, -0.5, 0.5); r: %s[1, 208, 52] = "
    "random(15, -0.5, 0.5); c: %s[1, 416] "
    "= random(16, -1, 1); h = Cast("
    "x) {to: %s}; s, _, _ = LSTM(h, w, r, c) {hidden_size: 52}; y = Cast(s) {to: f32}; }",
    "graph g (x: f32[5, 3, 40]) -> y { w: %s[2, 156, 40] = random(17, -0.5, 0.5); r: %s[2, 156, 52] = "
    "random(18, -0.5, 0.5); h = Cast(x) "
    "{to: %s}; s, _ = GRU(h, w, r) {"
    "hidden_size: 52, direction: \"bidirectional\"}; y = Cast(s) {to: f32}; }",
    "graph g (x: f32[1, 64, 14, 13]) -> y { w: %s[48, 64, 3, 3] = random(19, -1, 1); s: %s[48] = random(20, "
    "0.5, 1); v: %s[48] = "
    "random(21, 0.5, 1); h = Cast(x) {to: "
    "%s}; m = Conv(h, w) {pads: [1, 1, 1, 1]}; b = BatchNormalization(m, s, s, s, v); r = Relu(b); y = "
    "Cast(r) {to: f32}; }",
};
static char text[4096];
static void put_type(const char *row, const char *type) { /* all %s are one type */
    size_t n = 0;
    for (; *row; row++) {
        const bool here = row[0] == '%' && row[1] == 's';
        n += (size_t)snprintf(text + n, sizeof text - n, "%.*s", here ? (int)strlen(type) : 1,
                              here ? type : row);
        row += here;
    }
}
/* The graph with its constants in f32: the same numbers. */
static hone_compiled *in_f32(const char *row, const hone_graph *halves) {
    hone_graph *g = NULL;
    hone_compiled *c = NULL;
    put_type(row, "f32");
    if (hone_graph_parse(text, strlen(text), &g)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    for (int v = 0; v < g->var.n; v++) {
        hone_value *to = g->var.at[v].value;
        if (!to || to->dtype != HONE_DTYPE_F32) continue;
        const hone_value *from = halves->var.at[hone_graph_find(halves, g->var.at[v].name)].value;
        hone_dtype_load_n(from->dtype, to->data, from->data, (size_t)hone_value_count(from));
    }
    if (hone_compile(g, &c)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    return c;
}
static void check(const char *row, const char *type) {
    hone_graph *halves = NULL;
    put_type(row, type);
    if (hone_graph_parse(text, strlen(text), &halves)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    hone_compiled *wide = in_f32(row, halves);
    put_type(row, type);
    hone_compiled *c = twin_compile(text);
    int kept = 0;
    for (int v = 0; v < c->graph->var.n; v++) {
        const hone_value *x = c->graph->var.at[v].value;
        kept += x && x->tag == HONE_TAG_TENSOR && (x->dtype == HONE_DTYPE_F16 || x->dtype == HONE_DTYPE_BF16);
    }
    if (!kept && !strstr(text, "BatchNormalization")) fail_msg("no constant stayed %s in\n%s", type, text);
    static const hone_dtype precisions[] = {HONE_DTYPE_NONE, HONE_DTYPE_BF16, HONE_DTYPE_F16};
    for (int p = 0; p < 3; p++)
        for (int threads = SLOW && p ? 2 : 1; threads <= 2; threads++)
            for (int large = 0; large < (precisions[p] == HONE_DTYPE_F16 ? 2 : 1); large++) {
                hone_value *in[2] = {0}, *got[2] = {0}, *want[2] = {0}, *exact[2] = {0};
                for (int k = 0; k < c->graph->in.n; k++) in[k] = twin_input(c->graph, k);
                if (large) ((float *)in[0]->data)[1] = 3e5f; /* what f16 cannot hold */
                for (int k = 1; k < c->graph->in.n; k++)
                    for (int64_t q = 0; q < hone_value_count(in[k]); q++)
                        ((int64_t *)in[k]->data)[q] = draw(0, 90);
                twin_precision = precisions[p];
                twin_run(c, in, threads, false, got, NULL, text);
                twin_run(wide, in, threads, false, want, NULL, text);
                twin_precision = HONE_DTYPE_NONE;
                for (int k = 0; k < c->graph->out.n; k++)
                    twin_same_bits(got[k], want[k], "constants in f32 and in halves", text);
                if (!p && threads == 1 && hone_value_count(got[0]) < 4000) { /* the definition is slow */
                    /* mixed types as the definition has them */
                    twin_run(c, in, 1, true, exact, NULL, text);
                    for (int k = 0; k < c->graph->out.n; k++) twin_close(got[k], exact[k], 5e-5, 1e-5, text);
                }
                for (int k = 0; k < 2; k++)
                    hone_value_drop(in[k]), hone_value_drop(got[k]), hone_value_drop(want[k]),
                        hone_value_drop(exact[k]);
            }
    hone_compiled_destroy(c), hone_compiled_destroy(wide);
    hone_graph_destroy(halves);
}
static void stored(void **state) {
    (void)state;
    EACH_F32_LEVEL for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        if (!SLOW || level % 2 == k % 2) check(rows[k], "f16");
        if (!SLOW || level % 2 != k % 2) check(rows[k], "bf16");
    }
}
/* A mix of types that no pass has made is an error as before. */
static void mixed(void **state) {
    (void)state;
    static const char *const wrong =
        "graph g (x: f32[2, 3]) -> y { w: f16[3, 4] = random(1, -1, 1); y = MatMul(x, w); }";
    hone_graph *g = NULL;
    hone_status s = hone_graph_parse(wrong, strlen(wrong), &g);
    if (!s) s = hone_graph_verify(g);
    assert_int_equal(s, HONE_BAD_INPUT);
    hone_graph_destroy(g);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(stored), cmocka_unit_test(mixed)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
