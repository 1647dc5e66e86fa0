/* SPDX-License-Identifier: Apache-2.0
   The pass that makes integer ops of quantize and dequantize pairs: where it must and where it must not, and that answers stay within one step of the
   rounding. A graph whose sum is an output of its own cannot be rewritten: that is what the rewritten one is compared with. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "plan/plan.h"
#include "run/exec.h"

typedef struct {
    const char *what, *types, *body; /* body: constants, and nodes that make y from the u8 tensor x; the sum is v */
    const char *op;                  /* that must be there; NULL: none of the integer ops */
} row;
#define X "s: f32[] = {0.02}; z: u8[] = {117}; "
#define W "wq: i8[7, 3, 3, 3] = random(1, -127, 127); "
#define ONE "ws: f32[] = {0.004}; wz: i8[] = {0}; "
#define EACH "ws: f32[7] = random(2, 0.001, 0.006); wz: i8[7] = random(3, 0, 0); "
#define BIAS "bq: i32[7] = random(4, -9000, 9000); bs: f32[] = {8e-05}; bz: i32[] = {0}; "
#define CONV(w, rest) "x = DequantizeLinear(q, s, z); w = DequantizeLinear(wq, ws, wz) {axis: " w "}; " rest
#define SUM "v = Conv(x, w, b) {pads: [1, 1, 1, 1]}; "
static const row rows[] = {
    {"one scale", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; " W ONE BIAS CONV("1",
                                                                "b = DequantizeLinear(bq, bs, bz); " SUM "y = QuantizeLinear(v, ys, yz); "),
     "QLinearConv"},
    {"a scale for each channel, a bias in f32", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; " W EACH "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "y = QuantizeLinear(v, ys, yz); "),
     "QLinearConv"},
    {"no bias, strides, a signed result", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.13}; yz: i8[] = {-3}; " W EACH CONV("0", "v = Conv(x, w) {strides: [2, 2]}; y = QuantizeLinear(v, ys, yz); "),
     "QLinearConv"},
    {"Relu, where saturation does the same", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.05}; yz: u8[] = {0}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "r = Relu(v); y = QuantizeLinear(r, ys, yz); "),
     "QLinearConv"},
    {"Relu, where it does not", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.05}; yz: u8[] = {9}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "r = Relu(v); y = QuantizeLinear(r, ys, yz); "),
     NULL},
    {"Clip to 6 within the range", "u8[2, 3, 9, 11]",
     X "lo: f32[] = {0}; hi: f32[] = {6}; ys: f32[] = {0.05}; yz: u8[] = {0}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "r = Clip(v, lo, hi); y = QuantizeLinear(r, ys, yz); "),
     NULL},
    {"Clip to 6 beyond it", "u8[2, 3, 9, 11]",
     X "lo: f32[] = {0}; hi: f32[] = {6}; ys: f32[] = {0.0235}; yz: u8[] = {0}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "r = Clip(v, lo, hi); y = QuantizeLinear(r, ys, yz); "),
     "QLinearConv"},
    {"scales along the wrong axis", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; " W
       "ws: f32[3] = random(2, 0.001, 0.006); wz: i8[3] = random(3, 0, 0); b: f32[7] = random(5, -1, 1); " CONV(
           "1", SUM "y = QuantizeLinear(v, ys, yz); "),
     NULL},
    {"a scale that is not positive", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {-0.13}; yz: u8[] = {121}; " W EACH "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "y = QuantizeLinear(v, ys, yz); "),
     NULL},
    {"16 bits", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.13}; yz: u16[] = {121}; " W EACH "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "y = QuantizeLinear(v, ys, yz); "),
     NULL},
    {"matrices", "u8[5, 3]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; wq: i8[3, 8] = random(1, -127, 127); ws: f32[8] = random(2, 0.1, 0.6); x = "
       "DequantizeLinear(q, s, z); w = DequantizeLinear(wq, ws) "
       "{axis: -1}; v = MatMul(x, w); y = QuantizeLinear(v, ys, yz); ",
     "QLinearMatMul"},
    {"matrices, both computed", "u8[4, 4]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; x = DequantizeLinear(q, s, z); v = MatMul(x, x); y = QuantizeLinear(v, ys, yz); ",
     "QLinearMatMul"},
};
static hone_compiled *compile(const row *r, const char *outputs) {
    char text[2048];
    hone_graph *g;
    hone_compiled *c = NULL;
    snprintf(text, sizeof text, "graph g (q: %s) -> %s { %s }", r->types, outputs, r->body);
    if (hone_graph_parse(text, strlen(text), &g) || hone_compile(g, &c)) fail_msg("%s: %s\n%s", r->what, hone_fail_text(), text);
    return c;
}
static bool has(const hone_compiled *c, const char *op) {
    bool any = false;
    for (int k = 0; k < c->graph->node.n; k++) {
        const hone_node *n = c->graph->node.at[k];
        any |= !strcmp(n->program->name, op);
        for (int p = 0; p < n->n_part; p++) any |= !strcmp(n->part[p]->program->name, op);
    }
    return any;
}
static hone_value *run(const hone_compiled *c, hone_value *q) {
    hone_exec *e;
    hone_exec_options o = {.threads = 1};
    hone_value *in[] = {q}, *out[2] = {0};
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    if (hone_exec_run(e, in, out)) fail_msg("%s", hone_fail_text());
    hone_exec_destroy(e);
    hone_value_drop(out[1]);
    return out[0];
}
static void rewrites(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const row *r = rows + k;
        hone_compiled *c = compile(r, "y"), *apart = compile(r, "y, v");
        static const char *const integer[] = {"QLinearConv", "QLinearMatMul"};
        for (int q = 0; q < 2; q++) {
            bool want = r->op && !strcmp(r->op, integer[q]);
            if (has(c, integer[q]) != want) fail_msg("%s: %s is %s", r->what, integer[q], want ? "not there" : "there");
            assert_false(has(apart, integer[q]));
        }
        const hone_var *v = c->graph->var.at + c->graph->in.at[0];
        hone_value *q;
        assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, &q), HONE_OK);
        for (int64_t i = 0; i < hone_value_count(q); i++) ((uint8_t *)q->data)[i] = (uint8_t)(i * 97 % 256);
        hone_value *got = run(c, q), *want = run(apart, q);
        int64_t n = hone_value_count(want), moved = 0;
        assert_int_equal(hone_value_count(got), n);
        for (int64_t i = 0; i < n; i++) {
            double d = fabs(hone_value_f64(got, i) - hone_value_f64(want, i));
            moved += d > 0;
            if (d > 1) fail_msg("%s: element %d: %g, not %g", r->what, (int)i, hone_value_f64(got, i), hone_value_f64(want, i));
        }
        if (moved > n / 50) fail_msg("%s: %d of %d elements are a step away", r->what, (int)moved, (int)n);
        hone_value_drop(got), hone_value_drop(want), hone_value_drop(q);
        hone_compiled_destroy(c), hone_compiled_destroy(apart);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rewrites)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
