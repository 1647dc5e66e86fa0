/* SPDX-License-Identifier: Apache-2.0
   The CUDA device as a whole, without a GPU: emulated_gpu.c stands in the place of the driver and of NVRTC and runs the very texts that a GPU would. Graphs that want
   each tactic, in f16 and bf16, on a GPU with and without wgmma, with many multiprocessors and few, four runs each (the third is recorded as a graph), beside the
   definition. Each says how many of its steps go to tensor cores, and fails when others do. Skipped where the system's C compiler makes nothing that can be loaded. */
#include <dlfcn.h>

#include "twin.h"

#include "run/units.h"

typedef struct {
    const char *what;
    int own; /* steps by kernels of our own in f16 and bf16 */
    double f16,
        bf16; /* errors allowed, of the largest value: 3 roundings of the factors and one of each stored value, adding up over layers */
    const char *text;
} row;
/* clang-format off */
static const row rows[] = {
    {"constant weights, a bias, a clamp, a residual", 1, 2e-3, 1.6e-2,
     "graph g (x: f32[2, 37, 96], r: f32[2, 37, 72]) -> y { w: f32[96, 72] = random(1, -1, 1); c: f32[72] = random(3, -1, 1); h = MatMul(x, w); i = Add(h, c); "
     "j = Relu(i); y = Add(j, r); }"},
    {"K and N that no piece of 16 bytes divides", 1, 2e-3, 1.6e-2,
     "graph g (x: f32[35, 91]) -> y { w: f32[91, 67] = random(1, -1, 1); y = MatMul(x, w); }"},
    {"one row", 1, 2e-3, 1.6e-2,
     "graph g (x: f32[1, 256]) -> y { w: f32[256, 200] = random(1, -1, 1); c: f32[200] = random(2, -1, 1); y = Gemm(x, w, c); }"},
    {"K that is worth splitting, and an alpha", 1, 2e-3, 1.6e-2,
     "graph g (a: f32[19, 2560]) -> y { c: f32[48] = random(4, -1, 1); b: f32[48, 2560] = random(5, -1, 1); y = Gemm(a, b, c) {transB: 1, alpha: 0.5}; }"},
    {"nothing is constant; batches; Tanh, whose slope is 1 where sums are small", 1, 1.5e-2, 1e-1,
     "graph g (x: f32[3, 33, 64], w: f32[3, 64, 40]) -> y { h = MatMul(x, w); y = Tanh(h); }"},
    {"first layer, 1x1, 3x3 with a stride, a residual", 3, 3e-3, 2.4e-2,
     "graph g (x: f32[2, 3, 18, 17]) -> y { v: f32[32, 3, 3, 3] = random(4, -1, 1); w: f32[48, 32, 1, 1] = random(6, -1, 1); u: f32[32, 48, 3, 3] = "
     "random(7, -0.2, 0.2); b: f32[48] = random(8, -1, 1); s = Conv(x, v) {pads: [1, 1, 1, 1]}; a = Relu(s); e = Conv(a, w, b); f = Relu(e); "
     "y = Conv(f, u) {pads: [1, 1, 1, 1], strides: [2, 2]}; }"},
    {"groups, a dilation, odd channels", 2, 3e-3, 2.4e-2,
     "graph g (x: f32[1, 16, 15, 14]) -> y { v: f32[32, 8, 3, 3] = random(4, -1, 1); w: f32[21, 32, 3, 3] = random(6, -0.3, 0.3); s = Conv(x, v) {group: 2, pads: "
     "[1, 1, 1, 1]}; a = Relu(s); y = Conv(a, w) {dilations: [2, 2], pads: [2, 2, 2, 2]}; }"},
    {"depthwise, with a clamp", 2, 3e-3, 2.4e-2,
     "graph g (x: f32[1, 8, 14, 15]) -> y { v: f32[32, 8, 1, 1] = random(4, -1, 1); w: f32[32, 1, 3, 3] = random(6, -1, 1); b: f32[32] = random(9, -1, 1); "
     "s = Conv(x, v); a = Relu(s); d = Conv(a, w, b) {group: 32, pads: [1, 1, 1, 1]}; lo: f32[] = {0}; hi: f32[] = {6}; y = Clip(d, lo, hi); }"},
    {"attention", 5, 4e-3, 3e-2,
     "graph g (x: f32[1, 41, 64]) -> y { a: f32[64, 128] = random(3, -0.3, 0.3); b: f32[64, 128] = random(4, -0.3, 0.3); c: f32[64, 128] = random(5, -0.3, 0.3); "
     "o: f32[128, 64] = random(6, -0.3, 0.3); q = MatMul(x, a); k = MatMul(x, b); v = MatMul(x, c); e: i64[4] = {1, 41, 4, 32}; f: i64[4] = {1, 41, 4, 32}; l: i64[3] = {1, 41, 128}; "
     "q4 = Reshape(q, e); k4 = Reshape(k, f); v4 = Reshape(v, f); qt = Transpose(q4) {perm: [0, 2, 1, 3]}; kt = Transpose(k4) {perm: [0, 2, 1, 3]}; vt = Transpose(v4) {perm: [0, 2, 1, 3]}; "
     "t = Attention(qt, kt, vt); tt = Transpose(t) {perm: [0, 2, 1, 3]}; t3 = Reshape(tt, l); y = MatMul(t3, o); }"},
    {"attention, causal, fewer heads of keys", 5, 4e-3, 3e-2,
     "graph g (x: f32[1, 33, 64]) -> y { a: f32[64, 128] = random(3, -0.3, 0.3); b: f32[64, 64] = random(4, -0.3, 0.3); c: f32[64, 64] = random(5, -0.3, 0.3); "
     "o: f32[128, 64] = random(6, -0.3, 0.3); q = MatMul(x, a); k = MatMul(x, b); v = MatMul(x, c); e: i64[4] = {1, 33, 4, 32}; f: i64[4] = {1, 33, 2, 32}; l: i64[3] = {1, 33, 128}; "
     "q4 = Reshape(q, e); k4 = Reshape(k, f); v4 = Reshape(v, f); qt = Transpose(q4) {perm: [0, 2, 1, 3]}; kt = Transpose(k4) {perm: [0, 2, 1, 3]}; vt = Transpose(v4) {perm: [0, 2, 1, 3]}; "
     "t = Attention(qt, kt, vt) {is_causal: 1}; tt = Transpose(t) {perm: [0, 2, 1, 3]}; t3 = Reshape(tt, l); y = MatMul(t3, o); }"},
    {"attention with a mask that is added", 5, 4e-3, 3e-2,
     "graph g (x: f32[1, 29, 64], m: f32[1, 1, 29, 29]) -> y { a: f32[64, 128] = random(3, -0.3, 0.3); b: f32[64, 128] = random(4, -0.3, 0.3); c: f32[64, 128] = random(5, -0.3, 0.3); "
     "o: f32[128, 64] = random(6, -0.3, 0.3); q = MatMul(x, a); k = MatMul(x, b); v = MatMul(x, c); e: i64[4] = {1, 29, 4, 32}; f: i64[4] = {1, 29, 4, 32}; l: i64[3] = {1, 29, 128}; "
     "q4 = Reshape(q, e); k4 = Reshape(k, f); v4 = Reshape(v, f); qt = Transpose(q4) {perm: [0, 2, 1, 3]}; kt = Transpose(k4) {perm: [0, 2, 1, 3]}; vt = Transpose(v4) {perm: [0, 2, 1, 3]}; "
     "t = Attention(qt, kt, vt, m); tt = Transpose(t) {perm: [0, 2, 1, 3]}; t3 = Reshape(tt, l); y = MatMul(t3, o); }"},
    {"a layer of a transformer", 4, 4e-3, 3e-2,
     "graph g (x: f32[1, 24, 64]) -> y { n: f32[64] = random(1, 0.5, 1.5); z: f32[64] = random(2, -1, 1); a = LayerNormalization(x, n, z); wq: f32[64, 64] = "
     "random(3, -0.2, 0.2); wv: f32[64, 64] = random(5, -0.2, 0.2); q = MatMul(a, wq); v = MatMul(a, wv); s = Add(q, v); g2 = Gelu(s); wo: f32[64, 256] = "
     "random(6, -0.2, 0.2); wp: f32[256, 64] = random(7, -0.1, 0.1); h = MatMul(g2, wo); r = Relu(h); o = MatMul(r, wp); y = Add(o, x); }"},
};
/* clang-format on */
enum { ROWS = sizeof rows / sizeof *rows };
static const struct {
    const char *arch, *sms;
    hone_dtype precision;
} gpus[] = {{"90", "132", HONE_DTYPE_F16}, {"90", "3", HONE_DTYPE_BF16}, {"80", "108", HONE_DTYPE_F16}};
static bool works;
static int gpu; /* which of them this process has */

static void compare(const row *r, const hone_compiled *c, hone_dtype precision, hone_value **in, hone_value *want) {
    hone_units *units;
    hone_compiled *there;
    hone_exec *e;
    if (hone_units_make("cuda", NULL, &units)) fail_msg("%s", hone_fail_text());
    if (hone_compile_for(c, units, precision, &there)) fail_msg("%s: %s", r->what, hone_fail_text());
    const hone_exec_options o = {.threads = 1, .precision = precision, .units = units};
    assert_int_equal(hone_exec_create(there, &o, &e), HONE_OK);
    hone_value *out[2] = {0}, *before[2] = {0};
    for (int k = 0; k < 4; k++) {
        if (hone_exec_run(e, in, out)) fail_msg("%s: %s", r->what, hone_fail_text());
        if (k) twin_same_bits(out[0], before[0], "two runs on the GPU", r->text), hone_value_drop(before[0]);
        before[0] = out[0], out[0] = NULL;
    }
    int own = 0;
    for (const hone_plan *p = hone_exec_last(e); p; p = p->next_cut)
        for (int k = 0; k < p->n_step; k++) own += !strcmp(p->step[k].tactic, "tensor cores");
    if (own != r->own) fail_msg("%s: %d steps by tensor cores, not %d, in %s", r->what, own, r->own, hone_dtypes[precision].name);
    double largest = 0, error = 0;
    for (int64_t k = 0; k < hone_value_count(want); k++) {
        const double a = hone_value_number(want, k), b = hone_value_number(before[0], k);
        if (isnan(a) != isnan(b)) fail_msg("%s: [%lld] is %g, not %g", r->what, (long long)k, b, a);
        if (!isnan(a)) largest = fmax(largest, fabs(a)), error = fmax(error, fabs(a - b));
    }
    const double allowed = precision == HONE_DTYPE_F16 ? r->f16 : r->bf16;
    if (error > allowed * largest)
        fail_msg("%s in %s: off by %g of the largest value, %g allowed", r->what, hone_dtypes[precision].name, error / largest, allowed);
    if (error == 0) fail_msg("%s in %s: no rounding at all", r->what, hone_dtypes[precision].name);
    hone_value_drop(before[0]);
    hone_exec_destroy(e);
    hone_compiled_destroy(there);
    hone_units_free(units);
}
static void tactics(void **state) {
    (void)state;
    if (!works) skip();
    for (int k = 0; k < ROWS; k++) {
        hone_compiled *c = twin_compile(rows[k].text);
        hone_value *in[3] = {0}, *want[1] = {0};
        for (int q = 0; q < c->graph->in.n; q++) in[q] = twin_input(c->graph, q);
        twin_run(c, in, 1, true, want, NULL, rows[k].text);
        compare(rows + k, c, gpus[gpu].precision, in, want[0]);
        for (int q = 0; q < 3; q++) hone_value_drop(in[q]);
        hone_value_drop(want[0]);
        hone_compiled_destroy(c);
    }
}

/* A GPU is opened once a process, so each is tested by a process of its own: in make test-all. */
static void others(void **state) {
    char command[700];
    (void)state;
    if (!works || !getenv("HONE_TEST_ALL")) skip();
    for (int k = 1; k < (int)(sizeof gpus / sizeof *gpus); k++) {
        snprintf(command, sizeof command, "HONE_EMULATED_ARCH=%s HONE_EMULATED_SMS=%s '%s' %d", gpus[k].arch, gpus[k].sms,
                 getenv("HONE_TEST_SELF"), k);
        if (system(command)) fail_msg("sm_%s with %s multiprocessors: see above", gpus[k].arch, gpus[k].sms);
    }
}
int main(int n, char **argument) {
    gpu = n > 1 ? atoi(argument[1]) : 0;
    setenv("HONE_TEST_SELF", argument[0], 1);
    setenv("HONE_KERNELS", "none", 1);
#ifndef __SANITIZE_ADDRESS__ /* what is emulated has fibers of its own, and is not instrumented: once is enough */
    const char *driver = getenv("HONE_EMULATED_GPU");
    if (driver && dlopen(driver, RTLD_NOW | RTLD_GLOBAL)) { /* from here on it is what dlopen("libcuda.so.1") finds */
        setenv("HONE_NVRTC", driver, 1);
        works = !system("cc --version > /dev/null 2>&1");
    }
#endif
    const struct CMUnitTest one[] = {cmocka_unit_test(tactics)}, all[] = {cmocka_unit_test(tactics), cmocka_unit_test(others)};
    return n > 1 ? cmocka_run_group_tests(one, NULL, NULL) : cmocka_run_group_tests(all, NULL, NULL);
}
