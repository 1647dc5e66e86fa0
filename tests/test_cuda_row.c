/* SPDX-License-Identifier: Apache-2.0
   The CUDA device as a whole, without a GPU: emulated_gpu.c stands in the place of the driver and of NVRTC
   and runs the very texts that a GPU would. Graphs that want each tactic, in f16 and bf16, on a GPU with and
   without wgmma, with many multiprocessors and few, two runs each, or four (the third is recorded as a
   graph), beside the definition. Each says how many of its steps go to tensor cores, and fails when others
   do. Skipped where the system's C compiler makes nothing that can be loaded. */
#include <dlfcn.h>

#include "compile_c.h"
#include "twin.h"

#include "hone/quant.h"
#include "run/model.h"

typedef struct {
    const char *what;
    int own; /* steps by kernels of our own in f16 and bf16 */
    double f16,
        /* errors allowed, of the largest value: 3 roundings of the factors and one of each stored value,
           adding up over layers */
        bf16;
    const char *text;
} row;
/* clang-format off */
static const row rows[] = {
    {"constant weights, a bias, a clamp, a residual", 1, 2e-3, 1.6e-2,
     "graph g (x: f32[2, 37, 96], r: f32[2, 37, 72]) -> y { w: f32[96, 72] = random(1, -1, 1); c: f32[72] "
     "= random(3, -1, 1); h = MatMul(x, w); i = Add(h, c); "
     "j = Relu(i); y = Add(j, r); }"},
    {"K and N that no piece of 16 bytes divides", 1, 2e-3, 1.6e-2,
     "graph g (x: f32[35, 91]) -> y { w: f32[91, 67] = random(1, -1, 1); y = MatMul(x, w); }"},
    {"one row", 1, 2e-3, 1.6e-2,
     "graph g (x: f32[1, 256]) -> y { w: f32[256, 200] = random(1, -1, 1); c: f32[200] = random(2, -1, 1); "
     "y = Gemm(x, w, c); }"},
    {"K that is worth splitting, and an alpha", 1, 2e-3, 1.6e-2,
     "graph g (a: f32[19, 2560]) -> y { c: f32[48] = random(4, -1, 1); b: f32[48, 2560] = random(5, -1, "
     "1); y = Gemm(a, b, c) {transB: 1, alpha: 0.5}; }"},
    {"nothing is constant; batches; Tanh, whose slope is 1 where sums are small", 1, 1.5e-2, 1e-1,
     "graph g (x: f32[3, 33, 64], w: f32[3, 64, 40]) -> y { h = MatMul(x, w); y = Tanh(h); }"},
    {"first layer, 1x1, 3x3 with a stride, a residual", 3, 3e-3, 2.4e-2,
     "graph g (x: f32[2, 3, 18, 17]) -> y { v: f32[32, 3, 3, 3] = random(4, -1, 1); w: f32[48, 32, 1, 1] = "
     "random(6, -1, 1); u: f32[32, 48, 3, 3] = "
     "random(7, -0.2, 0.2); b: f32[48] = random(8, -1, 1); s = Conv(x, v) {pads: [1, 1, 1, 1]}; a = "
     "Relu(s); e = Conv(a, w, b); f = Relu(e); "
     "y = Conv(f, u) {pads: [1, 1, 1, 1], strides: [2, 2]}; }"},
    {"an image as planes of f32, SiLU", 1, 3e-3, 2.4e-2,
     "graph g (x: f32[2, 3, 37, 34]) -> y { v: f32[24, 3, 7, 7] = random(4, -0.3, 0.3); b: f32[24] = "
     "random(8, -1, 1); s = Conv(x, v, b) {pads: [3, 3, 3, 3], strides: [2, 2]}; g2 = Sigmoid(s); y = Mul(s, "
     "g2); }"},
    {"an image that is a part of another, a clamp", 2, 3e-3, 2.4e-2,
     "graph g (x: f32[2, 3, 37, 34]) -> y { z: i64[3] = {1, 2, 3}; i: i64[3] = {0, 1, 3}; e: i64[3] = "
     "{3, 34, "
     "34}; q = Slice(x, i, e, z); u: f32[24, 3, 3, 3] = random(7, -0.5, 0.5); k = Conv(q, u) {pads: [1, "
     "1, 1, "
     "1], strides: [2, 2]}; lo: f32[] = {0}; hi: f32[] = {6}; r = Clip(k, lo, hi); n: f32[24, 24, 1, 1] = "
     "random(9, -0.3, 0.3); y = Conv(r, n); }"},
    {"an image on its side; more outputs than a block has", 1, 3e-3, 2.4e-2,
     "graph g (x: f32[1, 40, 36, 3]) -> y { t = Transpose(x) {perm: [0, 3, 2, 1]}; w: f32[70, 3, 4, 4] = "
     "random(6, -0.5, 0.5); s = Conv(t, w) {strides: [4, 4]}; y = Tanh(s); }"},
    {"groups, a dilation, odd channels", 2, 3e-3, 2.4e-2,
     "graph g (x: f32[1, 16, 15, 14]) -> y { v: f32[32, 8, 3, 3] = random(4, -1, 1); w: f32[21, 32, 3, 3] "
     "= random(6, -0.3, 0.3); s = Conv(x, v) {group: 2, pads: "
     "[1, 1, 1, 1]}; a = Relu(s); y = Conv(a, w) {dilations: [2, 2], pads: [2, 2, 2, 2]}; }"},
    {"depthwise, with a clamp", 2, 3e-3, 2.4e-2,
     "graph g (x: f32[1, 8, 14, 15]) -> y { v: f32[32, 8, 1, 1] = random(4, -1, 1); w: f32[32, 1, 3, 3] = "
     "random(6, -1, 1); b: f32[32] = random(9, -1, 1); "
     "s = Conv(x, v); a = Relu(s); d = Conv(a, w, b) {group: 32, pads: [1, 1, 1, 1]}; lo: f32[] = {0}; hi: "
     "f32[] = {6}; y = Clip(d, lo, hi); }"},
    {"attention: three projections are one product", 3, 4e-3, 3e-2,
     "graph g (x: f32[1, 41, 64]) -> y { a: f32[64, 128] = random(3, -0.3, 0.3); b: f32[64, 128] = "
     "random(4, -0.3, 0.3); c: f32[64, 128] = random(5, -0.3, 0.3); "
     "o: f32[128, 64] = random(6, -0.3, 0.3); q = MatMul(x, a); k = MatMul(x, b); v = MatMul(x, c); e: "
     "i64[4] = {1, 41, 4, 32}; f: i64[4] = {1, 41, 4, 32}; l: i64[3] = {1, 41, 128}; "
     "q4 = Reshape(q, e); k4 = Reshape(k, f); v4 = Reshape(v, f); qt = Transpose(q4) {perm: [0, 2, 1, 3]}; "
     "kt = Transpose(k4) {perm: [0, 2, 1, 3]}; vt = Transpose(v4) {perm: [0, 2, 1, 3]}; "
     "t = Attention(qt, kt, vt); tt = Transpose(t) {perm: [0, 2, 1, 3]}; t3 = Reshape(tt, l); y = "
     "MatMul(t3, o); }"},
    {"attention, causal, fewer heads of keys", 3, 4e-3, 3e-2,
     "graph g (x: f32[1, 33, 64]) -> y { a: f32[64, 128] = random(3, -0.3, 0.3); b: f32[64, 64] = "
     "random(4, -0.3, 0.3); c: f32[64, 64] = random(5, -0.3, 0.3); "
     "o: f32[128, 64] = random(6, -0.3, 0.3); q = MatMul(x, a); k = MatMul(x, b); v = MatMul(x, c); e: "
     "i64[4] = {1, 33, 4, 32}; f: i64[4] = {1, 33, 2, 32}; l: i64[3] = {1, 33, 128}; "
     "q4 = Reshape(q, e); k4 = Reshape(k, f); v4 = Reshape(v, f); qt = Transpose(q4) {perm: [0, 2, 1, 3]}; "
     "kt = Transpose(k4) {perm: [0, 2, 1, 3]}; vt = Transpose(v4) {perm: [0, 2, 1, 3]}; "
     "t = Attention(qt, kt, vt) {is_causal: 1}; tt = Transpose(t) {perm: [0, 2, 1, 3]}; t3 = Reshape(tt, "
     "l); y = MatMul(t3, o); }"},
    {"attention with a mask that is added", 3, 4e-3, 3e-2,
     "graph g (x: f32[1, 29, 64], m: f32[1, 1, 29, 29]) -> y { a: f32[64, 128] = random(3, -0.3, 0.3); b: "
     "f32[64, 128] = random(4, -0.3, 0.3); c: f32[64, 128] = random(5, -0.3, 0.3); "
     "o: f32[128, 64] = random(6, -0.3, 0.3); q = MatMul(x, a); k = MatMul(x, b); v = MatMul(x, c); e: "
     "i64[4] = {1, 29, 4, 32}; f: i64[4] = {1, 29, 4, 32}; l: i64[3] = {1, 29, 128}; "
     "q4 = Reshape(q, e); k4 = Reshape(k, f); v4 = Reshape(v, f); qt = Transpose(q4) {perm: [0, 2, 1, 3]}; "
     "kt = Transpose(k4) {perm: [0, 2, 1, 3]}; vt = Transpose(v4) {perm: [0, 2, 1, 3]}; "
     "t = Attention(qt, kt, vt, m); tt = Transpose(t) {perm: [0, 2, 1, 3]}; t3 = Reshape(tt, l); y = "
     "MatMul(t3, o); }"},
    {"attention, causal, with a mask of each batch that is stored as halves; some projections have a bias",
     3, 4e-3, 3e-2,
     "graph g (x: f32[2, 35, 64], m: f32[2, 1, 1, 35]) -> y { a: f32[64, 128] = random(3, -0.3, 0.3); b: "
     "f32[64, 64] = random(4, -0.3, 0.3); c: f32[64, 64] = random(5, -0.3, 0.3); p: f32[128] = random(8, "
     "-1, 1); "
     "r: f32[64] = random(9, -1, 1); z: f32[] = {-40}; n = Sigmoid(m); mm = Mul(n, z); "
     "o: f32[128, 64] = random(6, -0.3, 0.3); q0 = MatMul(x, a); q = Add(q0, p); k = MatMul(x, b); v0 = "
     "MatMul(x, c); v = Add(r, v0); e: "
     "i64[4] = {2, 35, 4, 32}; f: i64[4] = {2, 35, 2, 32}; l: i64[3] = {2, 35, 128}; "
     "q4 = Reshape(q, e); k4 = Reshape(k, f); v4 = Reshape(v, f); qt = Transpose(q4) {perm: [0, 2, 1, 3]}; "
     "kt = Transpose(k4) {perm: [0, 2, 1, 3]}; vt = Transpose(v4) {perm: [0, 2, 1, 3]}; "
     "t = Attention(qt, kt, vt, mm) {is_causal: 1}; tt = Transpose(t) {perm: [0, 2, 1, 3]}; t3 = "
     "Reshape(tt, l); y = "
     "MatMul(t3, o); }"},
    {"averages of each channel, side by side in eights and not, many rows and few", 5, 4e-3, 3e-2,
     "graph g (x: f32[2, 8, 83, 61]) -> y { v: f32[40, 8, 1, 1] = random(4, -1, 1); s = Conv(x, v); r = "
     "Relu(s); "
     "a = GlobalAveragePool(r); w: f32[21, 40, 1, 1] = random(5, -0.5, 0.5); t = Conv(r, w) {strides: "
     "[9, 9]}; "
     "i: i64[2] = {2, 3}; b = ReduceMean(t, i) {keepdims: 1}; c = ReduceSum(t, i) {keepdims: 1}; "
     "y = Concat(a, b, c) {axis: 1}; }"},
    {"averages over tokens", 2, 4e-3, 3e-2,
     "graph g (x: f32[3, 70, 32]) -> y { w: f32[32, 48] = random(4, -1, 1); h = MatMul(x, w); a: i64[1] "
     "= {1}; "
     "y = ReduceMean(h, a) {keepdims: 0}; }"},
    {"a layer of a transformer", 5, 4e-3, 3e-2,
     "graph g (x: f32[1, 24, 64]) -> y { n: f32[64] = random(1, 0.5, 1.5); z: f32[64] = random(2, -1, 1); "
     "a = LayerNormalization(x, n, z); wq: f32[64, 64] = "
     "random(3, -0.2, 0.2); wv: f32[64, 64] = random(5, -0.2, 0.2); q = MatMul(a, wq); v = MatMul(a, wv); "
     "s = Add(q, v); g2 = Gelu(s); wo: f32[64, 256] = "
     "random(6, -0.2, 0.2); wp: f32[256, 64] = random(7, -0.1, 0.1); h = MatMul(g2, wo); r = Relu(h); o = "
     "MatMul(r, wp); y = Add(o, x); }"},
    {"Gelu by tanh behind a product, and a tanh that is added to another number", 2, 4e-3, 3e-2,
     "graph g (x: f32[40, 64]) -> y { w: f32[64, 48] = random(3, -1, 1); b: f32[48] = random(4, -3, 1); h = "
     "MatMul(x, w); s = Add(h, b); g2 = Gelu(s) {approximate: \"tanh\"}; v: f32[48, 56] = random(5, -0.2, "
     "0.2); two: f32[] = {2}; k = MatMul(g2, v); t = Tanh(k); y = Add(t, two); }"},
    {"norms and softmax between products: rows of odd lengths, a long one, f32 in and out", 7, 4e-3, 3e-2,
     "graph g (x: f32[3, 5, 91]) -> y { n: f32[91] = random(1, 0.5, 1.5); z: f32[91] = random(2, -1, 1); a "
     "= LayerNormalization(x, n, z); w: f32[91, 96] = random(3, -0.2, 0.2); "
     "h = MatMul(a, w); m: f32[96] = random(4, 0.5, 1.5); r = RMSNormalization(h, m); v: f32[96, 300] = "
     "random(5, -0.2, 0.2); s = MatMul(r, v); t = Softmax(s); "
     "u: f32[300, 9100] = random(6, -1, 1); l = MatMul(t, u); y = LogSoftmax(l); }"},
    {"sums that lie on what they add", 1, 4e-3, 3e-2,
     "graph g (x: f32[3, 40, 64], z: f32[64]) -> y { w: f32[64, 64] = random(3, -0.2, 0.2); h = MatMul(x, "
     "w); s = Softmax(h); t = Add(s, z); u = "
     "ReduceMax(t) {keepdims: 1}; y = Mul(t, u); }"},
    {"pools of every kind between convolutions, one into a part of a Concat", 7, 4e-3, 3e-2,
     "graph g (x: f32[2, 8, 19, 17]) -> y { v: f32[24, 8, 1, 1] = random(4, -1, 1); s = Conv(x, v); a = "
     "MaxPool(s) {kernel_shape: [3, 3], strides: [2, 2]}; "
     "b = AveragePool(s) {kernel_shape: [3, 3], pads: [1, 1, 1, 1]}; c = AveragePool(s) {kernel_shape: [3, "
     "3], pads: [1, 1, 1, 1], count_include_pad: 1}; "
     "w: f32[24, 24, 3, 3] = random(5, -0.2, 0.2); f = Conv(c, w) {strides: [2, 2]}; g2 = MaxPool(b) "
     "{kernel_shape: [3, 3], strides: [2, 2]}; "
     "k = Concat(a, f, g2) {axis: 1}; "
     "u: f32[16, 72, 1, 1] = random(6, -0.2, 0.2); y = Conv(k, u); }"},
    /* a sum that is rounded the other way is a step of a byte off, and so is all that is made of it */
    {"quantized convolutions are products of floats: a padded one, a residual in bytes, one that floats "
     "read",
     3, 2.5e-2, 1e-1,
     "graph g (x: f32[2, 16, 13, 14]) -> y { s: f32[] = {0.03}; z: u8[] = {120}; t: f32[] = {0.05}; u: u8[] "
     "= {0}; o: f32[] = {0.06}; oz: i8[] = {3}; e: i8[] = {0}; xq = QuantizeLinear(x, s, z); xd = "
     "DequantizeLinear(xq, s, z); "
     "w: i8[32, 16, 3, 3] = random(1, -127, 127); ws: f32[32] = random(2, 0.0005, 0.001); wz: i8[32] = "
     "random(3, 0, 0); wd = DequantizeLinear(w, ws, wz) {axis: 0}; b: f32[32] = random(4, -0.3, 0.3); "
     "c = Conv(xd, wd, b) {pads: [1, 1, 1, 1]}; r = Relu(c); q = QuantizeLinear(r, t, u); d = "
     "DequantizeLinear(q, t, u); "
     "v: i8[32, 32, 1, 1] = random(5, -127, 127); vs: f32[] = {0.001}; vd = DequantizeLinear(v, vs, e); k = "
     "Conv(d, vd); kq = QuantizeLinear(k, o, oz); kd = DequantizeLinear(kq, o, oz); h = Add(kd, d); hr = "
     "Relu(h); hq = QuantizeLinear(hr, t, u); hd = DequantizeLinear(hq, t, u); "
     "m: i8[24, 16, 3, 3] = random(6, -127, 127); md = DequantizeLinear(m, vs, e); n = Conv(hd, md) {group: "
     "2, strides: [2, 2]}; nq = QuantizeLinear(n, o, oz); nd = DequantizeLinear(nq, o, oz); a = "
     "GlobalAveragePool(nd); y = Tanh(a); }"},
    {"quantized products with a bias and without", 2, 0, 0,
     "graph g (x: f32[37, 96]) -> y { s: f32[] = {0.02}; z: i8[] = {5}; t: f32[] = {0.0125}; e: i8[] = {0}; "
     "xq = QuantizeLinear(x, s, z); xd = DequantizeLinear(xq, s, z); w: i8[96, 64] = random(1, -127, 127); "
     "ws: f32[64] = random(2, 0.0005, 0.001); wz: i8[64] = random(3, 0, 0); wd = DequantizeLinear(w, ws, wz) "
     "{axis: 1}; b: f32[64] = random(4, -0.3, 0.3); c = MatMul(xd, wd); p = Add(c, b); q = "
     "QuantizeLinear(p, t, z); d = DequantizeLinear(q, t, z); v: i8[64, 72] = random(5, -127, 127); vs: "
     "f32[] = {0.001}; vd = DequantizeLinear(v, vs, e); k = MatMul(d, vd); kq = QuantizeLinear(k, t, z); y = "
     "DequantizeLinear(kq, t, z); }"},
    {"quantized convolutions: zero points, pads of zero, strides, a depthwise one, a residual, a "
     "largest of bytes", 6, 0, 0,
     "graph g (x: f32[2, 16, 19, 21]) -> y { s: f32[] = {0.03}; z: u8[] = {120}; t: f32[] = {0.05}; u: u8[] "
     "= {0}; o: f32[] = {0.06}; oz: i8[] = {3}; e: i8[] = {0}; xq = QuantizeLinear(x, s, z); xd = "
     "DequantizeLinear(xq, s, z); "
     "w: i8[32, 16, 1, 1] = random(1, -127, 127); ws: f32[32] = random(2, 0.001, 0.003); wz: i8[32] = "
     "random(3, 0, 0); wd = DequantizeLinear(w, ws, wz) {axis: 0}; bi: i32[32] = random(4, -900, 900); "
     "bs: f32[32] = random(12, 0.0001, 0.0002); "
     "bz: i32[32] = random(13, 0, 0); b = DequantizeLinear(bi, bs, bz) {axis: 0}; "
     "c = Conv(xd, wd, b); r = Relu(c); q = QuantizeLinear(r, t, u); d = "
     "DequantizeLinear(q, t, u); "
     "p = MaxPool(d) {kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1]}; pq = QuantizeLinear(p, "
     "t, u); pd = DequantizeLinear(pq, t, u); "
     "v: i8[32, 32, 3, 3] = random(5, -127, 127); vs: f32[] = {0.001}; vd = DequantizeLinear(v, vs, e); k = "
     "Conv(pd, vd) {pads: [1, 1, 1, 1]}; kq = QuantizeLinear(k, o, oz); kd = DequantizeLinear(kq, o, oz); "
     "h = Add(kd, pd); hr = "
     "Relu(h); hq = QuantizeLinear(hr, t, u); hd = DequantizeLinear(hq, t, u); "
     "m: i8[32, 1, 3, 3] = random(6, -127, 127); md = DequantizeLinear(m, ws, wz) {axis: 0}; n = Conv(hd, "
     "md) {group: "
     "32, pads: [1, 1, 1, 1]}; nr = Relu(n); nq = QuantizeLinear(nr, t, u); nd = DequantizeLinear(nq, t, u); "
     "f: i8[40, 32, 3, 3] = random(7, -127, 127); fd = DequantizeLinear(f, vs, e); a = Conv(nd, fd) "
     "{strides: [2, 2], pads: [1, 1, 1, 1]}; "
     "aq = QuantizeLinear(a, o, oz); ad = DequantizeLinear(aq, o, oz); "
     "g2: i8[24, 40, 1, 1] = random(8, -127, 127); gd = DequantizeLinear(g2, vs, e); ag = Conv(ad, gd); y "
     "= QuantizeLinear(ag, o, oz); }"},
    {"sums of bytes as floats: a scale, a bias and a factor a channel, groups, a residual of bytes", 4, 0, 0,
     "graph g (x: f32[2, 32, 9, 11]) -> y { s: f32[] = {0.03}; z: u8[] = {120}; t: f32[] = {0.05}; u: "
     "u8[] = {0}; vs: f32[32] = random(4, 0.0005, 0.002); b: f32[32] = random(5, -1, 1); xq = "
     "QuantizeLinear(x, s, z); xd = DequantizeLinear(xq, s, z); w: i8[32, 32, 1, 1] = random(1, -127, "
     "127); wd = DequantizeLinear(w, vs) {axis: 0}; c = Conv(xd, wd, b); r = Relu(c); cq = "
     "QuantizeLinear(r, t, u); cd = DequantizeLinear(cq, t, u); n: i8[32, 16, 3, 3] = random(3, -127, "
     "127); nd = DequantizeLinear(n, vs) {axis: 0}; g = Conv(cd, nd, b) {pads: [1, 1, 1, 1], group: 2}; "
     "gr = Relu(g); gq = QuantizeLinear(gr, t, u); gd = DequantizeLinear(gq, t, u); m: i8[32, 32, 1, 1] = "
     "random(6, -127, 127); md = DequantizeLinear(m, vs) {axis: 0}; h = Conv(gd, md, b); i = Relu(h); o = "
     "Add(i, cd); oq = QuantizeLinear(o, t, u); od = DequantizeLinear(oq, t, u); p: i8[32, 32, 1, 1] = "
     "random(7, -127, 127); pd = DequantizeLinear(p, vs) {axis: 0}; q = Conv(od, pd, b); qr = Relu(q); "
     "e: f32[32, 1, 1] = random(8, 0.5, 2); qe = Mul(qr, e); y = QuantizeLinear(qe, t, u); }"},
    {"sums of bytes as floats that are stored, beside bytes", 1, 4e-3, 3e-2,
     "graph g (x: f32[2, 32, 9, 11]) -> y { s: f32[] = {0.03}; z: i8[] = {20}; vs: f32[32] = random(4, "
     "0.0005, 0.002); b: f32[32] = random(5, -1, 1); xq = QuantizeLinear(x, s, z); xd = "
     "DequantizeLinear(xq, s, z); w: i8[32, 32, 1, 1] = random(1, -127, 127); wd = DequantizeLinear(w, "
     "vs) {axis: 0}; c = Conv(xd, wd, b); a = Add(c, xd); y = MaxPool(a) {kernel_shape: [2, 2]}; }"},
    {"a residual of floats behind integers", 3, 1.6e-2, 6e-2,
     "graph g (x: f32[2, 32, 9, 11]) -> y { s: f32[] = {0.03}; z: u8[] = {120}; t: f32[] = {0.05}; u: u8[] "
     "= {110}; e: i8[] = {0}; vs: f32[] = {0.001}; xq = QuantizeLinear(x, s, z); xd = DequantizeLinear(xq, "
     "s, z); w: i8[32, 32, 1, 1] = random(1, -127, 127); wd = DequantizeLinear(w, vs, e); c = Conv(xd, wd); "
     "cq = QuantizeLinear(c, t, u); cd = DequantizeLinear(cq, t, u); v: i8[32, 32, 3, 3] = random(2, -127, "
     "127); vd = DequantizeLinear(v, vs, e); k = Conv(cd, vd) {pads: [1, 1, 1, 1]}; kq = QuantizeLinear(k, "
     "t, u); kd = DequantizeLinear(kq, t, u); a = Add(cd, kd); aq = QuantizeLinear(a, t, u); ad = "
     "DequantizeLinear(aq, t, u); m: i8[32, 32, 1, 1] = random(3, -127, 127); md = DequantizeLinear(m, vs, "
     "e); n = Conv(ad, md); nq = QuantizeLinear(n, t, u); nd = DequantizeLinear(nq, t, u); h = Add(a, nd); "
     "y = QuantizeLinear(h, t, u); }"},
    {"signed bytes that count from -128 and are padded: a Relu's, through a largest, a Concat and a Reshape",
     6, 0, 0,
     "graph g (x: f32[2, 16, 19, 21]) -> y { s: f32[] = {0.03}; z: i8[] = {7}; t: f32[] = {0.05}; u: i8[] "
     "= {-128}; e: i8[] = {0}; q = QuantizeLinear(x, s, z); d = DequantizeLinear(q, s, z); w: i8[32, 16, "
     "1, 1] = random(1, -127, 127); vs: f32[] = {0.001}; wd = DequantizeLinear(w, vs, e); c = Conv(d, "
     "wd); r = Relu(c); rq = QuantizeLinear(r, t, u); rd = DequantizeLinear(rq, t, u); p = MaxPool(rd) "
     "{kernel_shape: [3, 3], strides: [2, 2], pads: [1, 1, 1, 1]}; pq = QuantizeLinear(p, t, u); pd = "
     "DequantizeLinear(pq, t, u); v: i8[32, 32, 3, 3] = random(5, -127, 127); vd = DequantizeLinear(v, "
     "vs, e); k = Conv(pd, vd) {pads: [1, 1, 1, 1]}; kr = Relu(k); kq = QuantizeLinear(kr, t, u); kd = "
     "DequantizeLinear(kq, t, u); h = Concat(pd, kd) {axis: 1}; hq = QuantizeLinear(h, t, u); hd = "
     "DequantizeLinear(hq, t, u); n: i8[24, 64, 3, 3] = random(6, -127, 127); nd = DequantizeLinear(n, "
     "vs, e); m = Conv(hd, nd) {pads: [1, 1, 1, 1]}; mq = QuantizeLinear(m, s, z); md = "
     "DequantizeLinear(mq, s, z); o: i8[24, 64, 1, 1] = random(8, -127, 127); od = DequantizeLinear(o, "
     "vs, e); l = Conv(hd, od); lq = QuantizeLinear(l, s, z); ld = DequantizeLinear(lq, s, z); a = "
     "Add(ld, md); ar = Relu(a); aq = QuantizeLinear(ar, t, u); ad = DequantizeLinear(aq, t, u); f: "
     "i8[40, 24, 1, 1] = random(9, -127, 127); fd = DequantizeLinear(f, vs, e); b = Conv(ad, fd); y = "
     "QuantizeLinear(b, s, z); }"},
    {"LSTM: a state at the beginning, some rows, the last cell", 1, 4e-3, 3e-2,
     "graph g (x: f32[4, 3, 20], h: f32[1, 3, 36], c: f32[1, 3, 36]) -> y { w: f32[1, 144, 20] = random(1, "
     "-0.3, 0.3); r: f32[1, 144, 36] = random(2, -0.3, 0.3); b: f32[1, 288] = random(3, -1, 1); "
     "a, l, e = LSTM(x, w, r, b, _, h, c) {hidden_size: 36}; t = Squeeze(a); y = Concat(t, l, e) {axis: "
     "0}; }"},
    {"LSTM both ways, more rows than a cluster takes at once", 1, 4e-3, 3e-2,
     "graph g (x: f32[2, 20, 24]) -> y { w: f32[2, 256, 24] = random(1, -0.3, 0.3); r: f32[2, 256, 64] = "
     "random(2, -0.2, 0.2); y = LSTM(x, w, r) {hidden_size: 64, direction: \"bidirectional\"}; }"},
    {"GRU as torch has it, backwards", 1, 4e-3, 3e-2,
     "graph g (x: f32[3, 9, 24]) -> y { w: f32[1, 204, 24] = random(1, -0.3, 0.3); r: f32[1, 204, 68] = "
     "random(2, -0.2, 0.2); b: f32[1, 408] = random(3, -1, 1); y, l = GRU(x, w, r, b) {hidden_size: 68, "
     "direction: \"reverse\", linear_before_reset: 1}; }"},
    {"whole numbers as ONNX's and a converter's older ops say them", 2, 0, 0,
     "graph g (x: u8[37, 96]) -> y { a: u8[] = {77}; w: i8[96, 64] = random(1, -127, 127); c = "
     "MatMulInteger(x, w, a); "
     "t: f32[] = {40}; cf = Cast(c) {to: 1}; e: u8[] = {128}; d = QuantizeLinear(cf, t, e); v: u8[64, 33] "
     "= random(3, 2, 254); vz: u8[] = {128}; y = MatMulInteger(d, v, e, vz); }"},
    {"a pool whose last windows hang over: what is inside counts, and what pads add", 5, 4e-3, 3e-2,
     "graph g (x: f32[1, 16, 22, 25]) -> y { v: f32[32, 16, 1, 1] = random(4, -1, 1); s = Conv(x, v); b = "
     "AveragePool(s) {kernel_shape: [3, 3], strides: [2, 2], "
     "ceil_mode: 1}; w: f32[40, 32, 1, 1] = random(5, -0.5, 0.5); e = Conv(b, w); p = AveragePool(e) "
     "{kernel_shape: [2, 2], count_include_pad: 1, pads: [0, 0, 1, 1]}; "
     "m: f32[24, 40, 1, 1] = random(6, -0.5, 0.5); y = Conv(p, m); }"},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };
static const struct {
    const char *arch, *sms;
    hone_dtype precision;
} gpus[] = {{"90", "132", HONE_DTYPE_F16},
            {"90", "3", HONE_DTYPE_BF16},
            {"80", "108", HONE_DTYPE_F16},
            {"90", "132", HONE_PRECISION_TF32},
            {"80", "3", HONE_PRECISION_TF32}};
static bool works;
static int gpu; /* which of them this process has */

/* Steps replayed by themselves, many times each, leave what one run of them leaves; and each says how long it
   took in how many launches. */
static void replayed(const row *r, const hone_compiled *c, const hone_units *units, hone_dtype precision,
                     hone_value **in) {
    hone_value *out[2][1] = {{0}};
    for (int k = 0; k < 2; k++) {
        const hone_exec_options o = {
            .threads = 1, .precision = precision, .units = units, .profile = k ? HONE_PROFILE_REPLAYED : 0};
        hone_exec *e;
        assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
        if (hone_exec_run(e, in, out[k])) fail_msg("%s: %s", r->what, hone_fail_text());
        for (const hone_plan *p = k ? hone_exec_last(e) : NULL; p; p = p->next_cut)
            for (int q = 0; q < p->n_step; q++)
                if (p->step[q].unit == 1 && (!p->step[q].launches || !p->step[q].ns || p->step[q].runs != 1))
                    fail_msg("%s: step %d was not timed", r->what, q);
        hone_exec_destroy(e);
    }
    twin_same_bits(out[0][0], out[1][0], "a run and one whose steps are replayed", r->text);
    for (int k = 0; k < 2; k++) hone_value_drop(out[k][0]);
}
static void compare(const row *r, const hone_compiled *c, hone_dtype precision, hone_value **in,
                    hone_value *want) {
    hone_units *units;
    hone_compiled *there;
    hone_exec *e;
    if (hone_units_make("cuda", NULL, &units)) fail_msg("%s", hone_fail_text());
    if (hone_compile_for(c, units, precision, &there)) fail_msg("%s: %s", r->what, hone_fail_text());
    const hone_exec_options o = {.threads = 1, .precision = precision, .units = units};
    assert_int_equal(hone_exec_create(there, &o, &e), HONE_OK);
    hone_value *out[2] = {0}, *before[2] = {0};
    /* the third run is recorded, the fourth is what was recorded: of some, as what is recorded is not a
       tactic's matter */
    const int runs = (r - rows) % 4 == 0 || getenv("HONE_TEST_ALL") ? 4 : 2;
    for (int k = 0; k < runs; k++) {
        if (hone_exec_run(e, in, out)) fail_msg("%s: %s", r->what, hone_fail_text());
        if (k) twin_same_bits(out[0], before[0], "two runs on the GPU", r->text), hone_value_drop(before[0]);
        before[0] = out[0], out[0] = NULL;
    }
    int own = 0;
    for (const hone_plan *p = hone_exec_last(e); p; p = p->next_cut)
        for (int k = 0; k < p->n_step; k++)
            own += !strcmp(p->step[k].tactic, "tensor cores") || !strcmp(p->step[k].tactic, "kernel");
    /* attention kernels, and products side by side, are of halves: other steps in tf32 */
    const int wanted = precision == HONE_PRECISION_TF32 && own > 0 ? own : r->own;
    if (own != wanted)
        fail_msg("%s: %d steps by kernels of our own, not %d, in %s", r->what, own, wanted,
                 hone_dtype_name(precision));
    double largest = 0, error = 0;
    for (int64_t k = 0; k < hone_value_count(want); k++) {
        const double a = hone_value_number(want, k), b = hone_value_number(before[0], k);
        if (isnan(a) != isnan(b)) fail_msg("%s: [%lld] is %g, not %g", r->what, (long long)k, b, a);
        if (!isnan(a)) largest = fmax(largest, fabs(a)), error = fmax(error, fabs(a - b));
    }
    /* tf32 cuts what it reads of values between nodes, where f16 rounds it */
    const double allowed = precision == HONE_DTYPE_BF16  ? r->bf16
                           : precision == HONE_DTYPE_F16 ? r->f16
                                                         : 2 * r->f16;
    if (error > allowed * largest)
        fail_msg("%s in %s: off by %g of the largest value, %g allowed", r->what, hone_dtype_name(precision),
                 error / largest, allowed);
    if (error == 0 && allowed > 0 && precision != HONE_PRECISION_TF32)
        fail_msg("%s in %s: no rounding at all", r->what, hone_dtype_name(precision));
    hone_value_drop(before[0]);
    hone_exec_destroy(e);
    if (r == rows || r == rows + ROWS - 1) replayed(r, there, units, precision, in);
    hone_compiled_destroy(there);
    hone_units_free(units);
}
/* A row has the same inputs each time, so that the definition is asked once. */
static void each(hone_dtype precision, int by) {
    twin_begin();
    for (int k = 0; k < ROWS; k += by) {
        draw_state = 88172645463325252u + (uint64_t)k;
        hone_compiled *c = twin_compile(rows[k].text);
        hone_value *in[3] = {0}, *want[1] = {0};
        for (int q = 0; q < c->graph->in.n; q++) in[q] = twin_input(c->graph, q);
        twin_run(c, in, 1, true, want, NULL, rows[k].text);
        compare(rows + k, c, precision, in, want[0]);
        if (rows[k].f16 == 0) compare(rows + k, c, HONE_DTYPE_NONE, in, want[0]);
        for (int q = 0; q < 3; q++) hone_value_drop(in[q]);
        hone_value_drop(want[0]);
        hone_compiled_destroy(c);
    }
}

static void tactics(void **state) {
    (void)state;
    if (!works) skip();
    each(gpus[gpu].precision, 1);
}
static void some_tf32(void **state) { /* all of them in make test-all */
    (void)state;
    if (!works) skip();
    each(HONE_PRECISION_TF32, 5);
}

/* What leaves f16's range. Samples name it, and it stays f32; a weight beyond it is seen without samples. */
static const char
    beyond[] = "graph g (x: f32[8, 64]) -> y { a: f32[64, 96] = random(3, -40000, 40000); h = MatMul(x, "
               "a); n = Neg(h); b: f32[96, 64] = random(4, -0.0001, 0.0001); z = MatMul(n, b); c: f32[64, "
               "64] = random(5, -1, 1); y = MatMul(z, c); }",
    heavy[] = "graph g (x: f32[8, 64]) -> y { a: f32[64, 96] = random(3, -200000, 200000); y = MatMul(x, "
              "a); }";
static hone_status sample(void *arg, int64_t k, hone_value **in) {
    return (void)k, hone_value_hold(in[0] = *(hone_value **)arg), HONE_OK;
}
static double off_by(const hone_value *got,
                     const hone_value *want) { /* of the largest value; infinite: NaN */
    double largest = 0, error = 0;
    for (int64_t k = 0; k < hone_value_count(want); k++) {
        const double a = hone_value_number(want, k), b = hone_value_number(got, k);
        largest = fmax(largest, fabs(a)), error = isnan(b) ? INFINITY : fmax(error, fabs(a - b));
    }
    return error / largest;
}
/* Products of many floats that leave f32's range on the way: neighbours, or every other one, of 64. */
static void many_factors(void **state) {
    static const char text[] = "graph g (x: f32[2, 64]) -> y { k: i64[64] = {%s}; r: f32[] = {10}; a: f32[] "
                               "= {4}; f = Cast(k) {to: 1}; e = "
                               "Mul(f, a); w = Pow(r, e); b: i64[2] = {2, 64}; v = Abs(x); h: f32[] = {0.5}; "
                               "u = Add(v, h); m = Mul(u, w); d: "
                               "i64[1] = {1}; y = ReduceProd(m, d) {keepdims: 0}; }";
    (void)state;
    if (!works) skip();
    for (int by = 1; by <= 32; by *= 2) { /* so many of 10000, so many of 0.0001 */
        char signs[64 * 4] = "", whole[1000];
        for (int k = 0; k < 64; k++)
            strcat(signs, k / by % 2 ? "-1" : "1"), strcat(signs, k < 63 ? ", " : "");
        snprintf(whole, sizeof whole, text, signs);
        hone_compiled *c = twin_compile(whole), *there;
        hone_value *in[1] = {twin_input(c->graph, 0)}, *want[1] = {0}, *out[1] = {0};
        twin_run(c, in, 1, true, want, NULL, whole);
        hone_units *units;
        hone_exec *e;
        assert_int_equal(hone_units_make("cuda", NULL, &units), HONE_OK);
        assert_int_equal(hone_compile_for(c, units, HONE_DTYPE_NONE, &there), HONE_OK);
        const hone_exec_options o = {.threads = 1, .units = units};
        assert_int_equal(hone_exec_create(there, &o, &e), HONE_OK);
        if (hone_exec_run(e, in, out)) fail_msg("%s", hone_fail_text());
        const double error = off_by(out[0], want[0]);
        if (!(error < 1e-5)) fail_msg("%d and %d: off by %g of the largest value", by, by, error);
        hone_value_drop(in[0]), hone_value_drop(want[0]), hone_value_drop(out[0]);
        hone_exec_destroy(e);
        hone_compiled_destroy(there), hone_compiled_destroy(c);
        hone_units_free(units);
    }
}
static double run_kept(const hone_compiled *c, hone_value **in, const hone_value *want, const char *keep,
                       int tf32) {
    hone_units *units;
    hone_compiled *there;
    hone_exec *e;
    hone_value *out[1] = {0};
    assert_int_equal(hone_units_make("cuda", NULL, &units), HONE_OK);
    assert_int_equal(hone_compile_for(c, units, HONE_DTYPE_F16, &there), HONE_OK);
    const hone_exec_options o = {.threads = 1, .precision = HONE_DTYPE_F16, .units = units, .keep_f32 = keep};
    assert_int_equal(hone_exec_create(there, &o, &e), HONE_OK);
    if (hone_exec_run(e, in, out)) fail_msg("%s", hone_fail_text());
    int n = 0;
    for (const hone_plan *p = hone_exec_last(e); p; p = p->next_cut)
        for (int k = 0; k < p->n_step; k++) n += !strcmp(p->step[k].tactic, "tensor cores tf32");
    assert_int_equal(n, tf32);
    const double error = off_by(out[0], want);
    hone_value_drop(out[0]);
    hone_exec_destroy(e);
    hone_compiled_destroy(there);
    hone_units_free(units);
    return error;
}
static void ranges(void **state) {
    (void)state;
    if (!works) skip();
    for (int k = 0; k < 2; k++) {
        const char *text = k ? heavy : beyond;
        hone_compiled *c = twin_compile(text);
        hone_value *in[1] = {twin_input(c->graph, 0)}, *want[1] = {0};
        twin_run(c, in, 1, true, want, NULL, text);
        hone_model m = {.compiled = c};
        const hone_samples data = {2, sample, &in[0]};
        char *keep = NULL, *report = NULL;
        if (hone_model_ranges(&m, &data, 0, 1, &keep, &report)) fail_msg("%s", hone_fail_text());
        assert_non_null(strstr(report, "\"samples\": 2"));
        if (k) assert_string_equal(keep, "y\n");
        else
            assert_non_null(strstr(keep, "n\n")), assert_null(strstr(keep, "z\n")),
                assert_null(strstr(keep, "y\n"));
        if (!k) assert_true(isinf(run_kept(c, in, want[0], NULL, 0)));
        assert_true(run_kept(c, in, want[0], k ? NULL : keep, k ? 1 : 2) < 4e-3);
        hone_text_release(keep), hone_text_release(report);
        hone_value_drop(in[0]), hone_value_drop(want[0]);
        hone_compiled_destroy(c);
    }
}

/* Products by cuBLASLt, which stands in the emulated driver: what has an epilogue that it knows. Their
   launches are recorded as others are. */
static void library(void **state) {
    (void)state;
    if (!works) skip();
    setenv("HONE_CUBLASLT", getenv("HONE_EMULATED_GPU"), 1);
    setenv("HONE_CUBLASLT_ALWAYS", "1", 1);
    for (int k = 0; k < 2; k++) each(k ? HONE_PRECISION_TF32 : HONE_DTYPE_F16, k ? 7 : 4);
    setenv("HONE_CUBLASLT_ALWAYS", "0", 1);
    int (*products)(void) = NULL;
    void *symbol = dlsym(RTLD_DEFAULT, "hone_emulated_products");
    memcpy(&products, &symbol, sizeof products);
    if (!products || products() < 20) fail_msg("%d products by cuBLASLt", products ? products() : -1);
}

/* A GPU is opened once a process, so each is tested by a process of its own: in make test-all. */
static void others(void **state) {
    char command[700];
    (void)state;
    if (!works || !getenv("HONE_TEST_ALL")) skip();
    for (int k = 1; k < (int)(sizeof gpus / sizeof *gpus); k++) {
        snprintf(command, sizeof command, "HONE_EMULATED_ARCH=%s HONE_EMULATED_SMS=%s '%s' %d", gpus[k].arch,
                 gpus[k].sms, getenv("HONE_TEST_SELF"), k);
        if (system(command)) fail_msg("sm_%s with %s multiprocessors: see above", gpus[k].arch, gpus[k].sms);
    }
}
static int forget(void **state) { return (void)state, (int)twin_end(); }
#ifndef __SANITIZE_ADDRESS__
/* The emulated driver compiles kernels by the machine's compiler: what that makes must load here, which it
   does not where an emulator runs this for another architecture. */
static bool compiles(void) {
    char folder[] = "/tmp/hone-row-XXXXXX", command[64];
    void *library = NULL;
    if (!mkdtemp(folder)) return false;
    const bool can =
        compile_c(folder, "probe", "int probe(void);\nint probe(void) { return 1; }\n", "", &library);
    if (library) dlclose(library);
    snprintf(command, sizeof command, "rm -rf '%s'", folder);
    return system(command) == 0 && can;
}
#endif
int main(int n, char **argument) {
    gpu = n > 1 ? atoi(argument[1]) : 0;
    setenv("HONE_TEST_SELF", argument[0], 1);
    setenv("HONE_KERNELS", "none", 1);
/* what is emulated has fibers of its own, and is not instrumented: once is enough */
#ifndef __SANITIZE_ADDRESS__
    const char *driver = getenv("HONE_EMULATED_GPU");
    /* from here on it is what dlopen("libcuda.so.1") finds */
    if (driver && dlopen(driver, RTLD_NOW | RTLD_GLOBAL)) {
        setenv("HONE_NVRTC", driver, 1);
        works = compiles();
    }
#endif
    const struct CMUnitTest one[] = {cmocka_unit_test(tactics)},
                            all[] = {cmocka_unit_test(many_factors), cmocka_unit_test(ranges),
                                     cmocka_unit_test(tactics),      cmocka_unit_test(some_tf32),
                                     cmocka_unit_test(library),      cmocka_unit_test(others)};
    return n > 1 ? cmocka_run_group_tests(one, NULL, forget) : cmocka_run_group_tests(all, NULL, forget);
}
