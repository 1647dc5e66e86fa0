/* SPDX-License-Identifier: Apache-2.0
   Rules that a node breaks are told as broken, with the numbers that break them. Graphs as text, one node
   each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "run/exec.h"

static const struct {
    const char *graph, *say; /* after "graph g (" … "}"; "" where the run must succeed */
} cases[] = {
    {"x: f32[3, 4]) -> y { s: i64[2] = {5, 3}; y = Reshape(x, s) \"n\"; }",
     "node 'n' (Reshape): 12 elements cannot become [5, 3]"},
    {"x: f32[3, 4]) -> y { s: i64[2] = {5, -1}; y = Reshape(x, s) \"n\"; }",
     "12 elements cannot become [5, -1]"},
    {"x: f32[3, 4]) -> y { s: i64[3] = {3, 4, 0}; y = Reshape(x, s) \"n\"; }",
     "12 elements cannot become [3, 4, 0]"},
    {"x: f32[3, 4]) -> y { s: i64[2] = {-1, -1}; y = Reshape(x, s) \"n\"; }",
     "shape [-1, -1] has more than one -1"},
    {"x: f32[3, 4]) -> y { s: i64[2] = {-2, -6}; y = Reshape(x, s) \"n\"; }",
     "a dim of the result of Reshape would be -2"},
    /* computed in the run */
    {"x: f32[3, 4], s: i64[2]) -> y { y = Reshape(x, s) \"n\"; }", "12 elements cannot become [0, 1]"},
    {"x: f32[3, 4], w: f32[5, 6]) -> y { y = MatMul(x, w) \"n\"; }",
     "dim 0 of b is 5 and must be 4 (K): a [3, 4], b [5, 6]"},
    {"x: f32[2, 3, 4], w: f32[3, 4, 6]) -> y { y = MatMul(x, w) \"n\"; }",
     "dim 0 of a is 2 and must be 1 or 3 (B): a [2, 3, 4], b [3, 4, 6]"},
    {"x: f32[], w: f32[4, 6]) -> y { y = MatMul(x, w) \"n\"; }",
     "a has 0 dims, b has 2 dims: too few for MatMul"},
    {"x: f32[3, 4], w: f32[6, 5]) -> y { y = Gemm(x, w) {transB: 1} \"n\"; }",
     "a [3, 4] and b [6, 5] have different inner sizes"},
    {"x: f32[3, 4], w: f32[4, 5], c: f32[7]) -> y { y = Gemm(x, w, c) \"n\"; }",
     "dim 0 of c is 7 and must be 1 or 5 (N)"},
    {"x: f32[3, 4, 2], w: f32[4, 5]) -> y { y = Gemm(x, w) \"n\"; }", "input 'a' has 3 dims; Gemm wants 2"},
    {"x: f32[1, 3, 8, 8], w: f32[4, 5, 3, 3]) -> y { y = Conv(x, w) \"n\"; }",
     "dim 1 of x is 3 and must be 5 (G * C)"},
    {"x: f32[1, 6, 8, 8], w: f32[4, 2, 3, 3]) -> y { y = Conv(x, w) {group: 3} \"n\"; }",
     "dim 0 of w is 4 and must be 3 (G * M)"},
    {"x: f32[1, 3, 2, 2], w: f32[4, 3, 3, 3]) -> y { y = Conv(x, w) \"n\"; }",
     "the kernel of weights [4, 3, 3, 3] does not fit into the input [1, 3, 2, 2]"},
    {"x: f32[1, 3, 2, 2], w: f32[4, 3, 3, 3]) -> y { y = Conv(x, w) {pads: [1, 1, 0, 0]} \"n\"; }", ""},
    {"x: f32[1, 3, 8, 8], w: f32[4, 3, 3, 3]) -> y { y = Conv(x, w) {pads: [1, 1]} \"n\"; }",
     "pads [1, 1] must have two numbers for each spatial dim"},
    {"x: f32[1, 3, 8, 8], w: f32[4, 3, 3, 3]) -> y { y = Conv(x, w) {auto_pad: \"SAME\"} \"n\"; }",
     "auto_pad 'SAME' is none of"},
    {"x: f32[1, 3, 8, 8], w: f32[4, 3, 3, 3]) -> y { y = Conv(x, w) {kernel_shape: [5, 5]} \"n\"; }",
     "kernel_shape [5, 5] is not the size of the weights [4, 3, 3, 3]"},
    {"x: f32[1, 3, 8], w: f32[4, 3, 3, 3]) -> y { y = Conv(x, w) \"n\"; }",
     "do not have as many spatial dims as the input [1, 3, 8]"},
    {"x: f32[1, 3, 8, 8], w: f32[4, 3, 3, 3], b: f32[5]) -> y { y = Conv(x, w, b) \"n\"; }",
     "dim 0 of b is 5 and must be 4"},
    {"x: f32[1, 1, 2]) -> y { y = MaxPool(x) {kernel_shape: [3, 3]} \"n\"; }",
     "kernel_shape [3, 3] must have one number for each spatial dim of [1, 1, 2]"},
    {"x: f32[3, 4], w: f32[5, 6]) -> y { y = Concat(x, w) {axis: 1} \"n\"; }",
     "input 1 cannot be joined along axis 1: its dim 0 is 5, the ones before have 3"},
    {"x: f32[3, 4], w: f32[3, 4, 1]) -> y { y = Concat(x, w) {axis: 1} \"n\"; }",
     "input 1 has 3 dims, the ones before have 2"},
    {"x: f32[3, 4], w: f32[3, 4]) -> y { y = Concat(x, w) {axis: 2} \"n\"; }", "axis 2 is outside of 2 dims"},
    {"x: f32[3, 4], w: f32[5, 4]) -> y { y = Add(x, w) \"n\"; }",
     "dim 0 of a is 3 and must be 1 or 5 (I): a [3, 4], b [5, 4]"},
    {"x: f32[3, 4]) -> y { a: i64[1] = {0}; b: i64[1] = {1}; k: i64[1] = {2}; y = Slice(x, a, b, k) \"n\"; }",
     "axes [2], starts [0]: each must be one of the dims of [3, 4], and named once"},
    {"x: f32[3, 4]) -> y { a: i64[1] = {0}; b: i64[1] = {1}; k: i64[1] = {-3}; y = Slice(x, a, b, k) \"n\"; "
     "}",
     "axes [-3]"},
    {"x: f32[3, 4]) -> y { a: i64[1] = {0}; b: i64[1] = {1}; k: i64[1] = {-2}; y = Slice(x, a, b, k) \"n\"; "
     "}",
     ""},
    {"x: f32[3, 4]) -> y { a: i64[2] = {0, 0}; b: i64[2] = {1, 1}; k: i64[2] = {0, -2}; y = Slice(x, a, b, "
     "k) \"n\"; }",
     "axes [0, -2]"},
    {"x: f32[3, 4]) -> y { a: i64[3] = {0, 0, 0}; b: i64[3] = {1, 1, 1}; y = Slice(x, a, b) \"n\"; }",
     "starts [0, 0, 0]: each must be one of the dims of [3, 4]"},
    {"x: f32[3, 4]) -> y { a: i64[2] = {0, 0}; b: i64[1] = {1}; y = Slice(x, a, b) \"n\"; }",
     "starts [0, 0], ends [1], axes (absent) and steps (absent) are not equally long"},
    {"x: f32[3, 4]) -> y { a: i64[1] = {0}; b: i64[1] = {1}; k: i64[1] = {0}; s: i64[1] = {0}; y = Slice(x, "
     "a, b, k, s) \"n\"; }",
     "a step of 0"},
    {"x: f32[3, 4]) -> y { p: i64[2] = {1, 1}; k: i64[1] = {2}; y = Pad(x, p, _, k) \"n\"; }",
     "axes [2]: each must be one of the dims of [3, 4]"},
    {"x: f32[3, 4]) -> y { p: i64[2] = {1, 1}; k: i64[1] = {-3}; y = Pad(x, p, _, k) \"n\"; }", "axes [-3]"},
    {"x: f32[3, 4]) -> y { p: i64[4] = {1, 1, 1, 1}; k: i64[2] = {0, -2}; y = Pad(x, p, _, k) \"n\"; }",
     "axes [0, -2]"},
    {"x: f32[3, 4]) -> y { p: i64[2] = {1, 1}; k: i64[1] = {-1}; y = Pad(x, p, _, k) \"n\"; }", ""},
    {"x: f32[3, 4]) -> y { p: i64[2] = {1, 1}; y = Pad(x, p) \"n\"; }",
     "pads [1, 1] must have two numbers for each padded dim of [3, 4]"},
    {"x: f32[3, 4]) -> y { p: i64[4] = {-2, 0, -2, 0}; y = Pad(x, p) \"n\"; }",
     "a dim of the result of Pad would be -1"},
    {"x: f32[7, 4]) -> y, z { s: i64[2] = {3, 3}; y, z = Split(x, s) \"n\"; }",
     "the parts of 'split' add up to 6, and dim 0 is 7"},
    {"x: f32[7, 4]) -> y, z { s: i64[2] = {8, -1}; y, z = Split(x, s) \"n\"; }",
     "part 1 of 'split' is -1; it cannot be below 0"},
    {"x: f32[7, 4]) -> y, z { s: i64[3] = {3, 3, 1}; y, z = Split(x, s) \"n\"; }",
     "'split' has 3 numbers for 2 outputs"},
    {"x: f32[7, 4]) -> y, z { y, z = Split(x) {axis: 3, num_outputs: 2} \"n\"; }",
     "axis 3 is outside of 2 dims"},
    {"x: f32[3, 4]) -> y { s: i64[2] = {5, 4}; y = Expand(x, s) \"n\"; }",
     "dim 0 of x is 3 and must be 1 or 5"},
    {"x: f32[3, 4]) -> y { s: i64[1] = {0}; y = Squeeze(x, s) \"n\"; }",
     "axes [0] cannot go from [3, 4]: only dims of 1 go"},
    {"x: f32[1, 4]) -> y { s: i64[1] = {3}; y = Squeeze(x, s) \"n\"; }", "axes [3] cannot go from [1, 4]"},
    {"x: f32[1, 4]) -> y { s: i64[1] = {5}; y = Unsqueeze(x, s) \"n\"; }",
     "axes [5] cannot be put into [1, 4]"},
    {"x: f32[3, 4]) -> y { s: i64[1] = {1}; y = Gather(x, s) {axis: 4} \"n\"; }",
     "axis 4 is outside of 'x', which has 2 dims"},
    {"x: f32[3, 4]) -> y { s: i64[1] = {4}; y = ReduceSum(x, s) \"n\"; }",
     "axis 4 is outside of 'x', which has 2 dims"},
    {"x: f32[3, 4]) -> y { s: i64[1] = {-4}; y = ReduceSum(x, s) \"n\"; }",
     "axis -4 is outside of 'x', which has 2 dims"},
    {"x: f32[3, 4]) -> y { y = Softmax(x) {axis: 4} \"n\"; }", "axis 4 is outside of 'x', which has 2 dims"},
    {"x: f32[3, 4]) -> y { s: i64[1] = {2}; y = Tile(x, s) \"n\"; }",
     "repeats [2] must have one number for each dim of [3, 4]"},
};

/* Load, compile or run fails, and the message is what `say` says. Inputs are zeros, integers count up */
static hone_status attempt(const char *text, bool interpret) {
    hone_graph *g = NULL;
    hone_compiled *c = NULL;
    hone_exec *e = NULL;
    hone_value *in[4] = {0}, *out[4] = {0};
    if (hone_graph_parse(text, strlen(text), &g)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    hone_status s = hone_compile(g, &c);
    for (int k = 0; !s && k < c->graph->in.n; k++) {
        const hone_var *v = c->graph->var.at + c->graph->in.at[k];
        assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, in + k), HONE_OK);
        for (int64_t i = 0; v->dtype == HONE_DTYPE_I64 && i < hone_value_count(in[k]); i++)
            ((int64_t *)in[k]->data)[i] = i;
    }
    if (!s) s = hone_exec_create(c, &(hone_exec_options){.threads = 1, .interpret = interpret}, &e);
    if (!s) s = hone_exec_run(e, in, out);
    for (int k = 0; k < 4; k++) hone_value_drop(in[k]), hone_value_drop(out[k]);
    hone_exec_destroy(e);
    if (c) hone_compiled_destroy(c);
    return s;
}

static void broken(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int interpret = 0; interpret < 2; interpret++) {
            char text[512];
            snprintf(text, sizeof text, "graph g (%s", cases[k].graph);
            hone_status s = attempt(text, interpret);
            const char *said = s ? hone_fail_text() : "it ran";
            if (*cases[k].say ? s != HONE_BAD_INPUT || !strstr(said, cases[k].say) || !strstr(said, "'n'")
                              : s != HONE_OK)
                fail_msg("%s\nsaid: %s\nwanted: %s", text, said, *cases[k].say ? cases[k].say : "to run");
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(broken)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
