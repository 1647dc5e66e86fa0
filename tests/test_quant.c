/* SPDX-License-Identifier: Apache-2.0
   Passes on quantized graphs (settle, moves, quant, table): which ops come out, and that answers are those of
   the definition, which walks the graph as it is written, node by node without any pass: bytes within one
   step of the rounding, and few of them; floats as sums of floats are. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "model/export.h"
#include "plan/plan.h"
#include "run/exec.h"
#include "walk.h"

typedef struct {
    /* body: constants, and nodes that make y from the tensor q of bytes; the sum is v */
    const char *what, *types, *body;
    const char *op; /* ops that must be there, and no other of the list; NULL: none of them */
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
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; " W ONE BIAS CONV("1", "b = DequantizeLinear(bq, bs, bz); " SUM
                                                                     "y = QuantizeLinear(v, ys, yz); "),
     "QLinearConv"},
    {"a scale for each channel, a bias in f32", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "y = QuantizeLinear(v, ys, yz); "),
     "QLinearConv"},
    {"no bias, strides, a signed result", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.13}; yz: i8[] = {-3}; " W EACH CONV(
         "0", "v = Conv(x, w) {strides: [2, 2]}; y = QuantizeLinear(v, ys, yz); "),
     "QLinearConv"},
    {"Relu, where saturation does the same", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.05}; yz: u8[] = {0}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "r = Relu(v); y = QuantizeLinear(r, ys, yz); "),
     "QLinearConv"},
    {"Relu, where it does not", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.05}; yz: u8[] = {9}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "r = Relu(v); y = QuantizeLinear(r, ys, yz); "),
     "QLinearConv Table"},
    {"Clip to 6 within the range", "u8[2, 3, 9, 11]",
     X "lo: f32[] = {0}; hi: f32[] = {6}; ys: f32[] = {0.05}; yz: u8[] = {0}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "r = Clip(v, lo, hi); y = QuantizeLinear(r, ys, yz); "),
     "QLinearConv Table"},
    {"Clip to 6 beyond it", "u8[2, 3, 9, 11]",
     X "lo: f32[] = {0}; hi: f32[] = {6}; ys: f32[] = {0.0235}; yz: u8[] = {0}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "r = Clip(v, lo, hi); y = QuantizeLinear(r, ys, yz); "),
     "QLinearConv"},
    {"scales along the wrong axis", "u8[2, 3, 9, 11]",
     X
     "ys: f32[] = {0.13}; yz: u8[] = {121}; wq: i8[3, 3, 3, 3] = random(1, -127, 127); "
     "ws: f32[3] = random(2, 0.001, 0.006); wz: i8[3] = random(3, 0, 0); b: f32[3] = random(5, -1, 1); " CONV(
         "1", SUM "y = QuantizeLinear(v, ys, yz); "),
     NULL},
    {"a scale that is not positive", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {-0.13}; yz: u8[] = {121}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "y = QuantizeLinear(v, ys, yz); "),
     "ConvInteger"},
    {"16 bits", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.13}; yz: u16[] = {121}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "y = QuantizeLinear(v, ys, yz); "),
     "ConvInteger"},
    {"matrices", "u8[5, 3]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; wq: i8[3, 8] = random(1, -127, 127); ws: f32[8] = random(2, "
       "0.1, 0.6); x = "
       "DequantizeLinear(q, s, z); w = DequantizeLinear(wq, ws) "
       "{axis: -1}; v = MatMul(x, w); y = QuantizeLinear(v, ys, yz); ",
     "QLinearMatMul"},
    {"matrices, both computed", "u8[4, 4]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; x = DequantizeLinear(q, s, z); v = MatMul(x, x); y = "
       "QuantizeLinear(v, ys, yz); ",
     "QLinearMatMul"},
    {"scales of one element", "u8[2, 3, 9, 11]",
     "s: f32[1] = {0.02}; z: u8[1] = {117}; ys: f32[1] = {0.13}; yz: u8[1] = {121}; wq: i8[7, 3, 3, 3] = "
     "random(1, -127, 127); ws: f32[1] "
     "= "
     "{0.004}; wz: i8[1] = {3}; " CONV("0", "v = Conv(x, w); y = QuantizeLinear(v, ys, yz); "),
     "QLinearConv"},
    {"weights quantized in the graph, clipped, zero points absent", "i8[2, 3, 9, 11]",
     "s: f32[] = {0.02}; ys: f32[] = {0.13}; wf: f32[7, 3, 3, 3] = random(1, -0.5, 0.5); ws: f32[] = "
     "{0.004}; wz: i8[] = {0}; lo: i8[] = "
     "{-100}; hi: i8[] = {100}; wr = QuantizeLinear(wf, ws, wz); wq = Clip(wr, lo, hi); x = "
     "DequantizeLinear(q, s); w = "
     "DequantizeLinear(wq, "
     "ws, wz); v = Conv(x, w); y = QuantizeLinear(v, ys) {output_dtype: i8}; ",
     "QLinearConv"},
    {"a bias that a unit of the sum is too coarse for", "u8[2, 3, 9, 11]",
     "s: f32[] = {20}; z: u8[] = {117}; ys: f32[] = {0.13}; yz: u8[] = {121}; " W ONE
     "b: f32[7] = random(5, -1, 1); " CONV("1", SUM "y = QuantizeLinear(v, ys, yz); "),
     "ConvInteger"},
    {"a convolution that is read as floats, with a scale a channel", "u8[2, 3, 9, 11]",
     X W EACH "b: f32[7] = random(5, -1, 1); " CONV("0", SUM "y = Sigmoid(v); "), "ConvInteger"},
    {"Gemm, a bias, weights turned around", "u8[5, 33]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; wq: i8[9, 33] = random(1, -127, 127); ws: f32[9] = random(2, "
       "0.01, 0.06); bq: i32[9] = "
       "random(4, "
       "-900, 900); bs: f32[9] = random(6, 0.0002, 0.0012); x = DequantizeLinear(q, s, z); w = "
       "DequantizeLinear(wq, ws) {axis: 0}; b = "
       "DequantizeLinear(bq, bs) {axis: 0}; v = Gemm(x, w, b) {transB: 1}; y = QuantizeLinear(v, ys, yz); ",
     "hone.QLinearMatMul"},
    {"Gemm without a bias, unsigned weights", "u8[5, 33]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; wq: u8[33, 9] = random(1, 0, 255); ws: f32[] = {0.01}; wz: "
       "u8[] = {131}; x = "
       "DequantizeLinear(q, s, z); w = DequantizeLinear(wq, ws, wz); v = Gemm(x, w); y = QuantizeLinear(v, "
       "ys, yz); ",
     "QLinearMatMul"},
    {"Gemm with another alpha", "u8[5, 33]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; wq: u8[33, 9] = random(1, 0, 255); ws: f32[] = {0.01}; wz: "
       "u8[] = {131}; x = "
       "DequantizeLinear(q, s, z); w = DequantizeLinear(wq, ws, wz); v = Gemm(x, w) {alpha: 0.5}; y = "
       "QuantizeLinear(v, ys, yz); ",
     NULL},
    {"a MatMul's bias behind it, Relu, batches", "u8[2, 5, 33]",
     X "ys: f32[] = {0.13}; yz: u8[] = {0}; wq: i8[33, 9] = random(1, -127, 127); ws: f32[9] = random(2, "
       "0.01, 0.06); b: f32[9] = "
       "random(5, -1, "
       "1); x = DequantizeLinear(q, s, z); w = DequantizeLinear(wq, ws) {axis: 1}; t = MatMul(x, w); v = "
       "Add(b, t); r = Relu(v); y = "
       "QuantizeLinear(r, ys, yz); ",
     "hone.QLinearMatMul"},
    {"a product that is read as floats", "u8[2, 5, 33]",
     X "wq: i8[33, 9] = random(1, -127, 127); ws: f32[9] = random(2, 0.01, 0.06); b: f32[9] = random(5, -1, "
       "1); x = DequantizeLinear(q, s, "
       "z); w = DequantizeLinear(wq, ws) {axis: -1}; t = MatMul(x, w); v = Add(t, b); y = Sigmoid(v); ",
     "MatMulInteger"},
    {"Gemm that is read as floats", "i8[5, 33]",
     "s: f32[] = {0.02}; z: i8[] = {-7}; wq: i8[33, 9] = random(1, -127, 127); ws: f32[] = {0.01}; b: f32[1, "
     "9] = random(5, -1, 1); x = "
     "DequantizeLinear(q, s, z); w = DequantizeLinear(wq, ws); v = Gemm(x, w, b); y = Tanh(v); ",
     "MatMulInteger"},
    {"weights of 16 bits", "u8[5, 33]",
     X "wq: i16[33, 9] = random(1, -1270, 1270); ws: f32[] = {0.001}; x = DequantizeLinear(q, s, z); w = "
       "DequantizeLinear(wq, ws); v = "
       "MatMul(x, w); y = Tanh(v); ",
     NULL},
    {"weights in blocks", "u8[5, 32]",
     X "wq: i8[32, 9] = random(1, -127, 127); ws: f32[2, 9] = random(2, 0.01, 0.06); x = DequantizeLinear(q, "
       "s, z); w = "
       "DequantizeLinear(wq, ws) "
       "{axis: 0, block_size: 16}; v = MatMul(x, w); y = Tanh(v); ",
     NULL},
    {"moves between a pair and its product", "u8[2, 5, 3, 11]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; wq: i8[9, 33] = random(1, -127, 127); ws: f32[9] = random(2, "
       "0.01, 0.06); to: i64[3] = {2, 5, "
       "33}; x = DequantizeLinear(q, s, z); r = Reshape(x, to); w = DequantizeLinear(wq, ws) {axis: 0}; wt = "
       "Transpose(w) {perm: [1, 0]}; "
       "v = MatMul(r, wt); vt = Transpose(v) {perm: [0, 2, 1]}; y = QuantizeLinear(vt, ys, yz); ",
     "QLinearMatMul"},
    {"the largest of windows, between convolution and rounding", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.05}; yz: u8[] = {3}; " W EACH "b: f32[7] = random(5, -1, 1); " CONV(
         "0", SUM "r = Relu(v); p = MaxPool(r) {kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1]}; "
                  "y = QuantizeLinear(p, ys, yz); "),
     "QLinearConv Table"},
    {"nearest pixels before a convolution", "u8[2, 3, 5, 7]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; sc: f32[4] = {1, 1, 2, 1.5}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", "r = Resize(x, _, sc) {mode: \"nearest\"}; v = Conv(r, w, "
                                                  "b) {pads: [1, 1, 1, 1]}; y = QuantizeLinear(v, ys, yz); "),
     "QLinearConv"},
    {"averages of windows", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.02}; yz: u8[] = {110}; x = DequantizeLinear(q, s, z); v = AveragePool(x) "
       "{kernel_shape: [3, 3], pads: [1, 1, 1, "
       "1]}; y = QuantizeLinear(v, ys, yz); ",
     "hone.QLinearAveragePool"},
    {"averages of windows that count what is outside, of 16 bits", "u16[2, 3, 9, 11]",
     "s: f32[] = {0.0002}; z: u16[] = {30000}; ys: f32[] = {0.0001}; yz: i16[] = {-110}; x = "
     "DequantizeLinear(q, s, z); v = AveragePool(x) "
     "{kernel_shape: [3, 2], strides: [2, 2], "
     "pads: [1, 1, 1, 0], count_include_pad: 1, ceil_mode: 1}; y = QuantizeLinear(v, ys, yz); ",
     "hone.QLinearAveragePool"},
    {"averages of whole pictures, a zero point absent", "i8[2, 3, 9, 11]",
     "s: f32[1] = {0.02}; ys: f32[] = {0.004}; yz: u8[] = {110}; x = DequantizeLinear(q, s); v = "
     "GlobalAveragePool(x); y = "
     "QuantizeLinear(v, ys, yz); ",
     "hone.QLinearMean"},
    {"means along axes, a view before the rounding", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.004}; yz: u8[] = {110}; to: i64[2] = {2, 11}; axes: i64[2] = {1, -2}; x = "
       "DequantizeLinear(q, s, z); m = "
       "ReduceMean(x, axes) {keepdims: 0}; "
       "v = Reshape(m, to); y = QuantizeLinear(v, ys, yz); ",
     "hone.QLinearMean"},
    {"a mean of 16 bits", "i16[2, 3, 9, 11]",
     "s: f32[] = {0.0002}; z: i16[] = {-300}; ys: f32[] = {0.00002}; yz: u16[] = {30110}; axes: i64[1] = "
     "{2}; x = DequantizeLinear(q, s, "
     "z); v = ReduceMean(x, axes); y = QuantizeLinear(v, ys, yz); ",
     "hone.QLinearMean"},
    {"a mean that is read as floats", "u8[2, 3, 9, 11]",
     X "x = DequantizeLinear(q, s, z); v = GlobalAveragePool(x); y = Sigmoid(v); ", NULL},
    {"a mean that is read twice", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.004}; yz: u8[] = {110}; x = DequantizeLinear(q, s, z); v = GlobalAveragePool(x); t = "
       "QuantizeLinear(v, ys, yz); f = "
       "DequantizeLinear(t, ys, yz); y = Add(f, v); ",
     NULL},
    {"pixels between pixels", "u8[2, 3, 5, 7]",
     X "ys: f32[] = {0.019}; yz: i8[] = {-21}; sc: f32[4] = {1, 1, 2, 1.7}; x = DequantizeLinear(q, s, z); v "
       "= Resize(x, _, sc) {mode: "
       "\"linear\"}; y = QuantizeLinear(v, ys, yz); ",
     "hone.QLinearResize"},
    {"pixels between pixels of 16 bits, cubic, smaller", "i16[2, 3, 15, 17]",
     "s: f32[] = {0.0002}; z: i16[] = {-300}; ys: f32[] = {0.0002}; yz: i16[] = {-300}; sc: f32[4] = {1, 1, "
     "0.6, 0.5}; x = "
     "DequantizeLinear(q, s, z); v = Resize(x, _, sc) "
     "{mode: \"cubic\", antialias: 1}; y = QuantizeLinear(v, ys, yz); ",
     "hone.QLinearResize"},
    {"pixels between pixels stay floats, where no rounding is behind them", "u8[2, 3, 5, 7]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; sc: f32[4] = {1, 1, 2, 2}; " W EACH
       "b: f32[7] = random(5, -1, 1); " CONV("0", "r = Resize(x, _, sc) {mode: \"linear\"}; v = Conv(r, w, "
                                                  "b) {pads: [1, 1, 1, 1]}; y = QuantizeLinear(v, ys, yz); "),
     NULL},
    {"nearest pixels, some from outside of a crop", "u8[2, 3, 5, 7]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; roi: f32[8] = {0, 0, -0.5, 0, 1, 1, 1.5, 1}; sc: f32[4] = {1, "
       "1, 2, 2}; " W EACH "b: f32[7] = random(5, -1, 1); " CONV(
           "0", "r = Resize(x, roi, sc) {mode: \"nearest\", coordinate_transformation_mode: "
                "\"tf_crop_and_resize\", extrapolation_value: "
                "1.5}; v = Conv(r, w, b) {pads: [1, 1, 1, 1]}; y = "
                "QuantizeLinear(v, ys, yz); "),
     NULL},
    {"HardSwish between pairs", "u8[2, 3, 9, 11]",
     X "ys: f32[] = {0.01}; yz: u8[] = {9}; x = DequantizeLinear(q, s, z); v = HardSwish(x); y = "
       "QuantizeLinear(v, ys, yz); ",
     "Table"},
    {"Gelu by Erf, with pairs in between, as one", "i8[3, 40]",
     "s: f32[] = {0.03}; z: i8[] = {-7}; es: f32[] = {0.0079}; ez: u8[] = {126}; ys: f32[] = {0.015}; yz: "
     "u8[] = {11}; r: f32[] = "
     "{1.41421}; "
     "one: f32[] = {1}; half: f32[1] = {0.5}; x = DequantizeLinear(q, s, z); d = Div(x, r); e = Erf(d); eq = "
     "QuantizeLinear(e, es, ez); f "
     "= "
     "DequantizeLinear(eq, es, ez); a = Add(f, one); v = Mul(x, a); h = Mul(v, half); y = QuantizeLinear(h, "
     "ys, yz); ",
     "Table"},
    {"a chain that is read inside", "u8[4, 50]",
     X "ys: f32[] = {0.004}; x = DequantizeLinear(q, s, z); e = Sigmoid(x); y = QuantizeLinear(e, ys); v = "
       "ReduceSum(e) {keepdims: 0}; ",
     NULL},
    {"parts of other scales, joined", "u8[2, 6, 9, 11]",
     X "as: f32[] = {0.04}; az: u8[] = {100}; two: i64[2] = {2, 4}; ys: f32[] = {0.02}; yz: u8[] = {117}; x "
       "= DequantizeLinear(q, s, z); "
       "a, b = "
       "Split(x, two) {axis: 1}; c = Sigmoid(b); cq = QuantizeLinear(c, as, az); d = DequantizeLinear(cq, "
       "as, az); v = Concat(a, d) {axis: "
       "1}; y = QuantizeLinear(v, ys, yz); ",
     "Table"},
    {"parts of other zero points, joined", "u8[2, 6, 9, 11]",
     X "as: f32[] = {0.02}; az: u8[] = {100}; two: i64[2] = {2, 4}; x = DequantizeLinear(q, s, z); a, b = "
       "Split(x, two) {axis: 1}; c = Sigmoid(b); cq = QuantizeLinear(c, as, az); d = DequantizeLinear(cq, "
       "as, az); v = Concat(a, d) {axis: 1}; y = QuantizeLinear(v, as, az); ",
     "Table"},
    {"a pair of the same numbers in another type", "u8[5, 33]",
     X "yz: i8[] = {117}; x = DequantizeLinear(q, s, z); v = Identity(x); y = QuantizeLinear(v, s, yz); ",
     "Table"},
    {"bytes cast and clipped before they are read", "u8[5, 33]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; lo: u8[] = {0}; hi: u8[] = {127}; wq: i8[33, 9] = random(1, "
       "-127, 127); ws: f32[] = {0.01}; "
       "p = "
       "Clip(q, lo, hi); c = Cast(p) {to: u8}; x = DequantizeLinear(c, s, z); w = DequantizeLinear(wq, ws); "
       "v = MatMul(x, w); y = "
       "QuantizeLinear(v, ys, yz); ",
     "QLinearMatMul Table"},
    {"one pair with several readers", "u8[4, 4]",
     X "ys: f32[] = {0.13}; yz: u8[] = {121}; x = DequantizeLinear(q, s, z); xt = Transpose(x); t = "
       "MatMul(x, xt); v = Add(t, x); y = "
       "QuantizeLinear(v, ys, yz); ",
     "MatMulInteger"},
};
static hone_graph *parse(const row *r) {
    char text[4096];
    hone_graph *g;
    snprintf(text, sizeof text, "graph g (q: %s) -> y { %s }", r->types, r->body);
    if (hone_graph_parse(text, strlen(text), &g)) fail_msg("%s: %s\n%s", r->what, hone_fail_text(), text);
    return g;
}
static bool is_op(const hone_node *n, const char *op) {
    const bool own = !strncmp(op, "hone.", 5);
    return !strcmp(n->program->name, own ? op + 5 : op) &&
           !strcmp(n->program->domain, own || !strcmp(op, "Table") ? "hone" : "");
}
static bool has(const hone_compiled *c, const char *op) {
    bool any = false;
    for (int k = 0; k < c->graph->node.n; k++) {
        const hone_node *n = c->graph->node.at[k];
        any |= !n->n_part && is_op(n, op);
        for (int p = 0; p < n->n_part; p++) any |= is_op(n->part[p], op);
    }
    return any;
}
static bool says(const char *list, const char *word) { /* one of its words */
    const size_t n = strlen(word);
    for (const char *at = list; at && (at = strstr(at, word)); at += n)
        if ((at == list || at[-1] == ' ') && (!at[n] || at[n] == ' ')) return true;
    return false;
}
static hone_value *fast(const hone_compiled *c, hone_value *q) {
    hone_exec *e;
    hone_exec_options o = {.threads = 1};
    hone_value *out[1] = {0};
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    if (hone_exec_run(e, &q, out)) fail_msg("%s", hone_fail_text());
    hone_exec_destroy(e);
    return out[0];
}
static hone_value *defined(const row *r, hone_value *q) {
    hone_graph *g = parse(r);
    hone_value *out[1] = {0};
    walker walk = {.strings = hone_strings_create()};
    assert_int_equal(hone_graph_infer(g), HONE_OK);
    if (walk_graph(&walk, g, &q, 1, out, 1)) fail_msg("%s: %s", r->what, hone_fail_text());
    hone_strings_drop(walk.strings);
    hone_graph_destroy(g);
    return out[0];
}
static void compare(const row *r, const hone_value *got, const hone_value *want) {
    const int64_t n = hone_value_count(want);
    const bool bytes = hone_dtypes[want->dtype].bytes <= 2 && want->dtype != HONE_DTYPE_F16;
    int64_t moved = 0;
    assert_int_equal(got->dtype, want->dtype);
    assert_int_equal(hone_value_count(got), n);
    for (int64_t i = 0; i < n; i++) {
        const double x = hone_value_f64(got, i), w = hone_value_f64(want, i), d = fabs(x - w);
        moved += d > 0;
        /* what is infinite is near nothing else */
        if (!(isfinite(w) && d <= (bytes ? 1 : 1e-5 + 1e-5 * fabs(w))) && x != w && !(isnan(x) && isnan(w)))
            fail_msg("%s: element %d: %g, not %g", r->what, (int)i, x, w);
    }
    /* many lie in the middle of two */
    const bool mean = r->op && strstr(r->op, "hone.QLinear") && !strstr(r->op, "MatMul");
    /* a table is the definition */
    if (bytes && moved > (r->op && !strcmp(r->op, "Table") ? 0 : n / (mean ? 12 : 50) + 1))
        fail_msg("%s: %d of %d elements are a step away", r->what, (int)moved, (int)n);
}
/* What is written of a graph is read again, and says the same. */
typedef struct {
    char at[16384];
    size_t n;
} file;
static hone_status gather(void *to, const void *data, size_t bytes) {
    file *f = to;
    if (bytes > sizeof f->at - f->n) return hone_fail(HONE_NO_MEMORY, "the file is larger than it should be");
    memcpy(f->at + f->n, data, bytes), f->n += bytes;
    return HONE_OK;
}
static void written_again(const row *r, const hone_compiled *c, hone_value *q, const hone_value *want) {
    static file out;
    const hone_library *library;
    hone_compiled *again = NULL;
    hone_graph *g = NULL;
    const hone_export_to to = {.model = {gather, &out}};
    out.n = 0;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    if (hone_graph_export(c->graph, &to, NULL)) fail_msg("%s: %s", r->what, hone_fail_text());
    if (hone_onnx_load_memory(out.at, out.n, NULL, library, &g) || hone_compile(g, &again))
        fail_msg("%s: %s", r->what, hone_fail_text());
    if (!has(again, r->op)) fail_msg("%s: %s is not there when it is read again", r->what, r->op);
    hone_value *got = fast(again, q);
    compare(r, got, want);
    hone_value_drop(got);
    hone_compiled_destroy(again);
}
static void rewrites(void **state) {
    (void)state;
    (void)walk_case; /* no files here */
    static const char *const inner[] = {
        "QLinearConv", "QLinearMatMul",           "hone.QLinearMatMul", "MatMulInteger",     "ConvInteger",
        "Table",       "hone.QLinearAveragePool", "hone.QLinearMean",   "hone.QLinearResize"};
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const row *r = rows + k;
        hone_compiled *c = NULL;
        if (hone_compile(parse(r), &c)) fail_msg("%s: %s", r->what, hone_fail_text());
        for (size_t q = 0; q < sizeof inner / sizeof *inner; q++) {
            const bool want = says(r->op, inner[q]);
            if (has(c, inner[q]) != want)
                fail_msg("%s: %s is %s", r->what, inner[q], want ? "not there" : "there");
        }
        const hone_var *v = c->graph->var.at + c->graph->in.at[0];
        hone_value *q;
        assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, &q), HONE_OK);
        for (size_t i = 0; i < q->bytes; i++) ((uint8_t *)q->data)[i] = (uint8_t)(i * 97 % 256);
        hone_value *got = fast(c, q), *want = defined(r, q);
        compare(r, got, want);
        if (r->op && strstr(r->op, "hone.QLinear") && !strstr(r->op, "MatMul")) written_again(r, c, q, got);
        hone_value_drop(got), hone_value_drop(want), hone_value_drop(q);
        hone_compiled_destroy(c);
    }
}
/* Weights whose factor is no bytes are computed with as floats, but written as they were. */
static void keeps(void **state) {
    (void)state;
    static const row r = {
        "weights of 16 bits and in blocks", "u8[3, 32]",
        "s: f32[] = {0.02}; aq: i16[32, 64] = random(1, -1000, 1000); as: f32[64] = random(2, 0.001, 0.002); "
        "wq: i8[64, 40] = random(3, "
        "-127, 127); ws: f32[4, 40] = random(4, 0.01, 0.02); x = DequantizeLinear(q, s); a = "
        "DequantizeLinear(aq, as) {axis: 1}; w = "
        "DequantizeLinear(wq, ws) {axis: 0, block_size: 16}; v = MatMul(x, a); y = MatMul(v, w); ",
        NULL};
    hone_compiled *c = NULL, *again = NULL;
    hone_graph *g = NULL;
    static file out;
    const hone_library *library;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    hone_value *q;
    assert_int_equal(hone_compile(parse(&r), &c), HONE_OK);
    const hone_export_to to = {.model = {gather, &out}};
    if (hone_graph_export(c->graph, &to, NULL)) fail_msg("%s", hone_fail_text());
    assert_true(out.n < 32 * 64 * 2 + 64 * 40 + 64 * 4 + 160 * 4 + 2000); /* floats would be 18432 bytes */
    if (hone_onnx_load_memory(out.at, out.n, NULL, library, &g) || hone_compile(g, &again))
        fail_msg("%s", hone_fail_text());
    assert_int_equal(hone_value_tensor(HONE_DTYPE_U8, (const int64_t[]){3, 32}, 2, &q), HONE_OK);
    for (int64_t i = 0; i < 96; i++) ((uint8_t *)q->data)[i] = (uint8_t)(i * 97 % 256);
    hone_value *got = fast(again, q), *want = fast(c, q);
    compare(&r, got, want);
    hone_value_drop(got), hone_value_drop(want), hone_value_drop(q);
    hone_compiled_destroy(c), hone_compiled_destroy(again);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rewrites), cmocka_unit_test(keeps)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
