/* SPDX-License-Identifier: Apache-2.0
   Quantization: observers against what they say they are, computed from all numbers at once; graphs before
   and after; whole models through hone_quantize, judged by running what was written; samples, wishes and
   files that are wrong; memory that ends. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/bins.h"
#include "base/mem.h"
#include "hone/quant.h"
#include "hone/tools.h"
#include "ir/graph.h"
#include "model/export.h"
#include "passes/passes.h"
#include "quant/calibrate.h"
#include "quant/judge.h"
#include "quant/observe.h"
#include "quant/plan.h"
#include "run/exec.h"
#include "random.h"

/* ---- observers ----------------------------------------------------------------------------------------- */
static uint32_t seed = 7;
static double draw(void) { /* 0 to 1 */
    next_linear(&seed);
    return (seed >> 8) / 16777216.0;
}
static double normal(void) { return sqrt(-2 * log(draw() + 1e-9)) * cos(6.283185307 * draw()); }
enum { MANY = 20000, PARTS = 8 };
static float numbers[MANY];
/* In parts of growing size, so that bins have to widen, on both sides. */
static void fill(hone_histogram *h) {
    memset(h, 0, sizeof *h);
    for (int k = 0; k < MANY; k++)
        numbers[k] = (float)(normal() * (1 + k * 8 / MANY) + (k % 5 == 0 ? 3 : 0)),
        numbers[k] = k % 7 == 0 ? 0 : numbers[k];
    for (int p = 0; p < PARTS; p++)
        assert_true(hone_histogram_see(h, numbers + p * (MANY / PARTS), MANY / PARTS));
}
static void histogram_sees_all(void **state) {
    (void)state;
    hone_histogram h;
    fill(&h);
    float least = 0, most = 0;
    double sum = 0, zeros = 0;
    for (int k = 0; k < MANY; k++)
        least = fminf(least, numbers[k]), most = fmaxf(most, numbers[k]), zeros += numbers[k] == 0;
    assert_true(h.least == least && h.most == most && h.zeros == zeros && h.seen == MANY &&
                h.samples == PARTS);
    for (int k = 0; k < HONE_QUANT_BINS; k++) sum += h.bin[k];
    assert_true(sum + zeros == MANY);
    /* each bin has what lies in it */
    for (int k = 0; k < HONE_QUANT_BINS; k += 37) {
        double n = 0;
        for (int i = 0; i < MANY; i++)
            n += numbers[i] != 0 && numbers[i] >= h.low + k * h.width &&
                 numbers[i] < h.low + (k + 1) * h.width;
        assert_true(fabs(n - h.bin[k]) <= 1); /* a number on an edge */
    }
    const float odd[] = {NAN, INFINITY, 1, -INFINITY};
    assert_true(hone_histogram_see(&h, odd, 4));
    assert_true(h.odd == 3 && h.most == most);
}
/* Of pieces, numbers that are none among them, and sizes far apart: what each number says by itself. */
enum {
    MANY_X = 10003,
    FIRST_X = 5001
}; /* more than a block is looked at once, and no whole number of lanes */
static void bins_count(void **state) {
    (void)state;
    static float x[MANY_X];
    static hone_bins b, part;
    static uint32_t count_of[2][HONE_BINS];
    for (int way = 0; way < 4; way++) {
        const double unit = way == 3 ? 1e-42 : pow(10, way * 6 - 6);
        double zeros = 0, odd = 0, least = 0, most = 0;
        for (int k = 0; k < MANY_X; k++) {
            x[k] = k % 7 == 0 ? 0 : (float)((way == 1 ? draw() : normal()) * unit);
            if (way == 2 && k % 5101 == 5) x[k] = k % 2 ? NAN : -INFINITY;
            if (!(x[k] - x[k] == 0)) odd++;
            else zeros += x[k] == 0, least = fmin(least, x[k]), most = fmax(most, x[k]);
        }
        memset(&b, 0, sizeof b), memset(&part, 0, sizeof part), memset(count_of, 0, sizeof count_of);
        hone_bins_look(&b, x, FIRST_X), hone_bins_look(&part, x + FIRST_X, MANY_X - FIRST_X),
            hone_bins_join(&b, &part);
        assert_true(b.n == MANY_X && b.zeros == zeros && b.odd == odd && b.least == least && b.most == most);
        hone_bins_grid(&b);
        hone_bins_count(&b, x, FIRST_X, count_of[0]),
            hone_bins_count(&b, x + FIRST_X, MANY_X - FIRST_X, count_of[1]);
        hone_bins_sum(&b, count_of[0], 2);
        for (int k = 0; k < MANY_X; k++)
            if (x[k] != 0 && x[k] - x[k] == 0) b.bin[(int)floor(((double)x[k] - b.low) / b.width)]--;
        for (int k = 0; k < HONE_BINS; k++) assert_true(b.bin[k] == 0);
    }
}
/* Bins and the extremes of channels as one number after the other says, wherever channels lie, with what is
   no number among them or not. */
static void channels_are_watched(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t dim[3];
        int axis;
    } of[] = {
        {"graph g (x: f32[3, 70, 66]) -> s, e { s, e = hone.ObserveChannels(x) {axis: 1}; }", {3, 70, 66}, 1},
        {"graph g (x: f32[3, 66, 70]) -> s, e { s, e = hone.ObserveChannels(x) {axis: -1}; }",
         {3, 66, 70},
         2},
        {"graph g (x: f32[3, 5, 7]) -> s, e { s, e = hone.ObserveChannels(x) {axis: 1}; }", {3, 5, 7}, 1}};
    for (size_t k = 0; k < 2 * sizeof of / sizeof *of; k++) {
        hone_graph *g = NULL;
        hone_compiled *c = NULL;
        hone_exec *e = NULL;
        hone_value *x = NULL, *out[2] = {0};
        const bool odd = k & 1;
        const int64_t *dim = of[k / 2].dim, n = dim[of[k / 2].axis], inner = of[k / 2].axis == 1 ? dim[2] : 1;
        if (hone_graph_parse(of[k / 2].text, strlen(of[k / 2].text), &g) || hone_graph_infer(g) ||
            hone_compile(g, &c) || hone_exec_create(c, &(hone_exec_options){.threads = 1}, &e) ||
            hone_value_tensor(HONE_DTYPE_F32, dim, 3, &x))
            fail_msg("%s: %s", of[k / 2].text, hone_error());
        double zeros = 0, odds = 0, least[70] = {0}, most[70] = {0}, low = 0, high = 0;
        for (int64_t i = 0; i < hone_value_count(x); i++) {
            float *v = (float *)x->data + i;
            *v = i % 5 == 0 ? 0 : (float)normal();
            if (odd && i % 47 == 3) *v = NAN;
            if (!(*v == *v)) {
                odds++;
                continue;
            }
            const int64_t at = i / inner % n;
            zeros += *v == 0, low = fmin(low, *v), high = fmax(high, *v);
            least[at] = fmin(least[at], *v), most[at] = fmax(most[at], *v);
        }
        if (hone_exec_run(e, &x, out)) fail_msg("%s", hone_error());
        const hone_bins *seen = out[0]->data;
        const float *extreme = out[1]->data;
        assert_true(seen->n == (double)hone_value_count(x) && seen->zeros == zeros && seen->odd == odds);
        assert_true(seen->least == low && seen->most == high);
        double sum = 0;
        for (int i = 0; i < HONE_BINS; i++) sum += seen->bin[i];
        assert_true(sum == seen->n - zeros - odds);
        for (int64_t i = 0; i < n; i++) assert_true(extreme[i] == least[i] && extreme[n + i] == most[i]);
        hone_value_drop(x), hone_value_drop(out[0]), hone_value_drop(out[1]);
        hone_exec_destroy(e), hone_compiled_destroy(c);
    }
}
static double error_of(hone_range r) { /* of all numbers, rounded one by one */
    const hone_grid g = hone_grid_of(r, 0, 255, false);
    double sum = 0;
    for (int k = 0; k < MANY; k++) {
        const double d = (hone_grid_round(&g, numbers[k]) - g.zero) * (double)g.scale - numbers[k];
        sum += d * d;
    }
    return sum / MANY;
}
static int upwards(const void *a, const void *b) {
    return (*(const float *)a > *(const float *)b) - (*(const float *)a < *(const float *)b);
}
static void ranges_are_what_they_say(void **state) {
    (void)state;
    hone_histogram h;
    fill(&h);
    const hone_range all = hone_observer_range(HONE_OBSERVE_MINMAX, &h, 256, false),
                     mse = hone_observer_range(HONE_OBSERVE_MSE, &h, 256, false),
                     tenth = hone_observer_range(HONE_OBSERVE_TENTH, &h, 256, false),
                     average = hone_observer_range(HONE_OBSERVE_AVERAGE, &h, 256, false),
                     entropy = hone_observer_range(HONE_OBSERVE_ENTROPY, &h, 256, false);
    assert_true(all.low == h.least && all.high == h.most);
    /* the estimate from bins is that of all numbers, but for zeros, which cost nothing, and bins */
    assert_true(fabs(hone_histogram_error(&h, all, 256, false) / error_of(all) - 1) < 0.1);
    /* no range that draws either side in is better than the one found by more than the estimate's error */
    double best = INFINITY;
    for (int a = 8; a <= 40; a += 2)
        for (int b = 8; b <= 40; b += 2)
            best = fmin(best, error_of((hone_range){all.low * a / 40, all.high * b / 40}));
    assert_true(error_of(mse) <= 1.1 * best && error_of(mse) <= error_of(all));
    qsort(numbers, MANY, sizeof *numbers, upwards);
    assert_true(fabs(tenth.low - numbers[MANY / 1000]) < 4 * h.width &&
                fabs(tenth.high - numbers[MANY - 1 - MANY / 1000]) < 4 * h.width);
    assert_true(fabs(average.high - h.sum_most / PARTS) < 1e-9 && average.high < all.high);
    assert_true(entropy.low >= all.low && entropy.high <= all.high && entropy.high > 0);
}
static void grids(void **state) {
    (void)state;
    for (int k = 0; k < 200; k++) {
        const hone_range r = {-draw() * pow(10, draw() * 8 - 4), draw() * pow(10, draw() * 8 - 4)};
        const hone_grid u = hone_grid_of(r, 0, 255, false), s = hone_grid_of(r, -128, 127, true);
        assert_int_equal(hone_grid_round(&u, 0), u.zero); /* 0 is exact */
        assert_int_equal(s.zero, 0);
        assert_true(u.zero >= 0 && u.zero <= 255);
        for (int i = 0; i <= 20; i++) {
            const double x = r.low + (r.high - r.low) * i / 20,
                         back = (hone_grid_round(&u, x) - u.zero) * (double)u.scale;
            /* half a step, and as much for where the zero lies */
            assert_true(fabs(back - x) <= 1.01 * u.scale);
        }
    }
    const hone_grid none = hone_grid_of((hone_range){0, 0}, 0, 255, false),
                    far = hone_grid_of((hone_range){-3e38, 3e38}, 0, 255, false);
    assert_true(none.scale > 0 && far.scale > 0 && isfinite(far.scale));
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
static int count(const hone_graph *g, const char *op) {
    int n = 0;
    for (int k = 0; k < g->node.n; k++) n += !strcmp(g->node.at[k]->program->name, op);
    return n;
}
static hone_graph *settled(const char *text) {
    hone_graph *g = NULL;
    hone_instances *i = hone_instances_create();
    if (hone_graph_parse(text, strlen(text), &g) || hone_passes_settle(g, i))
        fail_msg("%s: %s", text, hone_error());
    hone_instances_destroy(i);
    return g;
}
static const struct {
    const char *what, *text;
    int pairs, layers, constants; /* QuantizeLinear; layers; DequantizeLinear of constants */
    int portable;                 /* QuantizeLinear where a rounding stands behind each Conv */
} cases[] = {
    {"two convolutions",
     "graph g (x: f32[1, 3, 8, 8]) -> y { w: f32[4, 3, 3, 3] = random(1); b: f32[4] = random(2); u: f32[5, "
     "4, 1, 1] = random(3); a = "
     "Conv(x, w, b); r = Relu(a); y = Conv(r, u); }",
     2, 2, 3, 3},
    {"a residual",
     "graph g (x: f32[1, 4, 8, 8]) -> y { w: f32[4, 4, 1, 1] = random(1); a = Conv(x, w); s = Add(a, x); y = "
     "Conv(s, w); }",
     2, 2, 2, 4},
    {"what moves shares a grid",
     "graph g (x: f32[1, 4, 8, 8]) -> y { w: f32[4, 4, 1, 1] = random(1); a = Conv(x, w); m = MaxPool(a) "
     "{kernel_shape: [2, 2], strides: "
     "[2, 2]}; y = Conv(m, w); }",
     3, 2, 2, 4},
    {"two factors that are computed",
     "graph g (x: f32[2, 5, 5]) -> y { w: f32[5, 5] = random(1); a = MatMul(x, w); y = MatMul(a, x); }", 1, 1,
     1, 1},
};
static void rewrites(void **state) {
    (void)state;
    const hone_library *lib;
    assert_int_equal(hone_library_builtin(&lib), HONE_OK);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++)
        for (int portable = 0; portable < 2; portable++) {
            hone_graph *g = settled(cases[k].text), *q = NULL;
            hone_quant_plan p;
            assert_int_equal(hone_quant_plan_make(g, &(hone_quantizing){.portable = portable}, &p), HONE_OK);
            assert_int_equal(p.layer.n, cases[k].layers);
            for (int c = 0; c < p.class.n; c++) p.class.at[c].range = (hone_range){-1, 1};
            assert_int_equal(hone_quant_rewrite(&p, lib, &q), HONE_OK);
            if (hone_graph_infer(q) || hone_graph_verify(q)) fail_msg("%s: %s", cases[k].what, hone_error());
            const int pairs = count(q, "QuantizeLinear");
            if (pairs != (portable ? cases[k].portable : cases[k].pairs) ||
                count(q, "DequantizeLinear") != pairs + cases[k].constants)
                fail_msg("%s%s: %d roundings, %d of constants", cases[k].what, portable ? ", portable" : "",
                         pairs, count(q, "DequantizeLinear") - pairs);
            hone_graph_destroy(q);
            /* all layers in f32: the graph as it was */
            for (int l = 0; l < p.layer.n; l++) p.layer.at[l].stays = true;
            assert_int_equal(hone_quant_rewrite(&p, lib, &q), HONE_OK);
            assert_int_equal(q->node.n, g->node.n);
            hone_graph_destroy(q), hone_quant_plan_free(&p), hone_graph_destroy(g);
        }
}

/* ---- whole models -------------------------------------------------------------------------------------- */
/* Depthwise between convolutions, the channels between them of very different sizes: what units are for. */
static const char net[] =
    "graph g (x: f32[batch, 3, 10, 10]) -> y { w: f32[8, 3, 3, 3] = random(1, -0.4, 0.4); b: f32[8] = "
    "random(2, "
    "-0.2, 0.2); f: f32[1, 8, 1, 1] = {60, 0.02, 1, 9, 0.1, 0.4, 30, 2}; "
    "d: f32[8, 1, 3, 3] = random(3, -0.5, 0.5); i: f32[1, 8, 1, 1] = {0.02, 40, 1, 0.1, 9, 3, 0.03, 0.5}; u: "
    "f32[6, "
    "8, 1, 1] = random(4, -0.5, 0.5); n: i64[2] = {0, -1}; "
    "v: f32[384, 5] = random(5, -0.1, 0.1); a = Conv(x, w, b) {pads: [1, 1, 1, 1]}; m = Mul(a, f); r = "
    "Relu(m); e = "
    "Conv(r, d) {group: 8}; o = Mul(e, i); s = Sigmoid(o); t = Mul(o, s); c = Conv(t, u); "
    "k = Reshape(c, n); y = MatMul(k, v); }";
static char path[64], made[64];
/* Sanitizers take ten times as long: fewer samples, and longer steps, but all of it with HONE_TEST_ALL=1. */
#if defined(__SANITIZE_ADDRESS__)
#define SLOW (!getenv("HONE_TEST_ALL"))
#else
#define SLOW 0
#endif
#define SAMPLES (SLOW ? 12 : 24)
static hone_status sample(void *arg, int64_t k, hone_value **in) {
    const int64_t dim[] = {1, 3, 10, 10};
    /* of a rank that does not fit */
    if (arg && k == *(int64_t *)arg) return hone_tensor_create(HONE_DTYPE_F32, dim, 3, in);
    hone_status s = hone_tensor_create(HONE_DTYPE_F32, dim, 4, in);
    uint32_t state = (uint32_t)k * 77 + 5;
    for (int i = 0; !s && i < 300; i++) {
        next_linear(&state);
        ((float *)hone_value_data(*in))[i] = (float)(state >> 8) / 8388608.0f - 1;
    }
    return s;
}
static void write_text(const char *text) {
    hone_graph *g = NULL;
    snprintf(path, sizeof path, "/tmp/hone-quantize-%d.onnx", (int)getpid());
    snprintf(made, sizeof made, "/tmp/hone-quantize-%d-q.onnx", (int)getpid());
    if (hone_graph_parse(text, strlen(text), &g) || hone_graph_infer(g) ||
        hone_graph_export_file(g, path, NULL))
        fail_msg("%s", hone_error());
    hone_graph_destroy(g);
}
static void write_net(void) { write_text(net); }
/* Power of the difference over the outputs' own, on samples that nobody has seen. */
static double noise(void) {
    hone_model *m[2] = {0};
    hone_session *s[2] = {0};
    double off = 0, all = 0;
    for (int k = 0; k < 2; k++)
        if (hone_model_load(k ? made : path, m + k) ||
            hone_session_create(m[k], &(hone_options){.threads = 1}, s + k))
            fail_msg("%s", hone_error());
    for (int64_t k = 1000; k < 1020; k++) {
        hone_value *in = NULL, *out[2] = {0};
        assert_int_equal(sample(NULL, k, &in), HONE_OK);
        for (int i = 0; i < 2; i++) assert_int_equal(hone_session_run(s[i], &in, out + i), HONE_OK);
        for (int64_t i = 0; i < hone_value_elements(out[0]); i++) {
            const double a = hone_value_number(out[0], i), b = hone_value_number(out[1], i);
            off += (a - b) * (a - b), all += a * a;
        }
        hone_value_free(in), hone_value_free(out[0]), hone_value_free(out[1]);
    }
    for (int k = 0; k < 2; k++) hone_session_free(s[k]), hone_model_free(m[k]);
    return off / all;
}
static double quantized(hone_quantizing w) {
    char *report = NULL;
    /* what is in integers does not depend on how fast this machine is */
    w.data = (hone_samples){SAMPLES, sample, NULL}, w.threads = 1, w.target = "size";
    unlink(made);
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    assert_non_null(strstr(report, "\"layers\""));
    hone_text_release(report);
    return noise();
}
static void models(void **state) {
    (void)state;
    write_net();
    const double plain =
                     quantized((hone_quantizing){.no_repairs = 1, .float_share = 1e-9, .observer = "minmax"}),
                 repaired = quantized((hone_quantizing){.float_share = 1e-9}),
                 whole = quantized((hone_quantizing){0}),
                 portable = quantized((hone_quantizing){.portable = 1});
    if (!(plain < 0.5 && plain > 1e-9))
        fail_msg("plain %g, repaired %g, whole %g, portable %g", plain, repaired, whole,
                 portable); /* it is quantized, and it is the same model */
    if (!(repaired < plain / 2 && whole < 2e-3 && portable < 0.1))
        fail_msg("plain %g, repaired %g, whole %g, portable %g", plain, repaired, whole, portable);
    /* ops of integers in place of pairs say the same */
    const double integers = quantized((hone_quantizing){.format = "qoperator"});
    if (!(integers < 0.1 && integers < 4 * portable + 1e-9)) fail_msg("%g, portable %g", integers, portable);
    assert_true(quantized((hone_quantizing){.activations = "s8"}) < 0.05);
    assert_true(quantized((hone_quantizing){.per_tensor = 1}) < 0.1);
    /* mixed until it is good enough */
    assert_true(quantized((hone_quantizing){.metric = "sqnr", .max_drop = 40}) < 2e-4);
    unlink(made), unlink(path);
}
static double number_of(const char *report, const char *name) {
    const char *at = strstr(report, name);
    double x = NAN;
    if (!at || sscanf(at + strlen(name), "\": %lf", &x) != 1) fail_msg("no %s in %s", name, report);
    return x;
}
/* Channels of very different sizes that a product reads rounded and others as floats, as a transformer's
   norms make them: the product has its units, the others see none. */
static const char beside_floats[] = "graph g (x: f32[batch, 3, 10, 10]) -> y { f: f32[10] = {60, 0.02, 1, 9, "
                                    "0.1, 0.4, 30, 2, 0.05, 5}; i: f32[10, 1] = "
                                    "{0.02, 40, 1, 0.1, 9, 3, 0.03, 0.5, 20, 0.2}; w: f32[10, 12] = "
                                    "random(1, -0.4, 0.4); e: f32[1] = {0.001}; v: f32[12, 10] "
                                    "= random(2, -0.4, 0.4); t = Tanh(x); m = Mul(t, f); u = Mul(w, i); a = "
                                    "MatMul(m, u); r = Relu(a); o = MatMul(r, v); "
                                    "s = Mul(m, e); y = Add(o, s); }";
static void units_beside_floats(void **state) {
    (void)state;
    write_text(beside_floats);
    const double plain = quantized((hone_quantizing){.no_repairs = 1, .float_share = 1e-9}),
                 repaired = quantized((hone_quantizing){.float_share = 1e-9});
    if (!(plain > 1e-9 && repaired < plain / 4)) fail_msg("plain %g, repaired %g", plain, repaired);
    unlink(made), unlink(path);
}
/* Layers whose operand is far from zero on average, and whose weights have one scale: what they are off by
   when rounded shifts each sum, and the bias takes it back. Of windows and groups of all kinds: one read at
   the wrong place would make it worse. */
static void biases(void **state) {
    (void)state;
    static const struct {
        const char *what, *body;
    } layer[] = {
        {"strides, borders, groups",
         "w: f32[6, 1, 3, 3] = random(1, -0.4, 0.4); b: f32[6] = random(2, -0.2, 0.2); "
         "y = Conv(p, w, b) {strides: [2, 1], pads: [1, 0, 0, 1], group: 3}; "},
        {"depthwise, dilated", "w: f32[3, 1, 3, 2] = random(1, -0.4, 0.4); b: f32[3] = random(2, -0.2, 0.2); "
                               "y = Conv(p, w, b) {dilations: [2, 3], group: 3}; "},
        {"of one dim", "n: i64[3] = {0, 6, 50}; r = Reshape(p, n); w: f32[5, 6, 4] = random(1, -0.4, 0.4); "
                       "b: f32[5] = random(2, -0.2, 0.2); y = Conv(r, w, b) {strides: [3]}; "},
        {"a matrix", "n: i64[2] = {0, -1}; r = Reshape(p, n); w: f32[7, 300] = random(1, -0.4, 0.4); "
                     "b: f32[7] = random(2, -0.2, 0.2); y = Gemm(r, w, b) {transB: 1}; "},
    };
    for (size_t k = 0; k < sizeof layer / sizeof *layer; k++) {
        char text[1024], *report = NULL;
        snprintf(text, sizeof text,
                 "graph g (x: f32[batch, 3, 10, 10]) -> y { f: f32[1, 3, 1, 1] = {4, 7, 3}; "
                 "t: f32[1, 3, 1, 1] = {0.2, 0.1, 0.3}; s = Mul(x, t); a = Add(s, f); p = Relu(a); %s}",
                 layer[k].body);
        write_text(text);
        hone_quantizing w = {
            .data = {SAMPLES, sample, NULL}, .threads = 1, .target = "size", .per_tensor = 1};
        w.float_share = 1e-9, w.observer = "minmax", w.no_repairs = 1;
        const double plain = quantized(w);
        w.no_repairs = 0;
        if (hone_quantize(path, &w, made, &report)) fail_msg("%s: %s", layer[k].what, hone_error());
        const char *tried = strstr(report, "biases corrected\", \"kept\": true");
        const double now = noise();
        if (!tried || !(now < plain / 2)) fail_msg("%s: %g was %g\n%s", layer[k].what, now, plain, report);
        hone_text_release(report);
        unlink(made), unlink(path);
    }
}
/* What weights have in other units comes back with them, and goes when all is forgotten. */
static void units_aside(void **state) {
    (void)state;
    const int64_t one = 1;
    hone_quant_layer l = {.units = 0};
    hone_value *v[2];
    for (int k = 0; k < 2; k++) assert_int_equal(hone_value_tensor(HONE_DTYPE_I8, &one, 1, v + k), HONE_OK);
    l.bytes = v[0], l.fitted = true;
    hone_quant_layer_units(&l, 2);
    assert_true(!l.bytes && !l.fitted && l.units == 2);
    l.bytes = v[1];
    hone_quant_layer_units(&l, 0);
    assert_true(l.bytes == v[0] && l.fitted);
    hone_quant_layer_units(&l, 0);
    assert_true(l.bytes == v[0]);
    hone_quant_layer_units(&l, 2);
    assert_true(l.bytes == v[1] && !l.fitted);
    hone_quant_layer_forget(&l);
    hone_quant_layer_units(&l, 0);
    assert_null(l.bytes);
}
/* Weights are fitted before it is asked which layers hurt; ranges are looked at in the whole model; biases
   are asked once more where many layers of noise stand behind each other. */
static void in_the_whole(void **state) {
    (void)state;
    enum { LAYERS = 10 };
    char text[6000] = "graph g (x: f32[batch, 3, 10, 10]) -> y { w: f32[3, 3, 3, 3] = random(2, -0.5, 0.5); "
                      "b: f32[3] = random(7, -0.3, 0.3); v: f32[4, 3, 1, 1] = random(1, -1, 1); ",
         from[8] = "x", *report = NULL;
    for (int k = 0; k < LAYERS; k++) {
        char line[200];
        snprintf(line, sizeof line, "c%d = Conv(%s, w, b) {pads: [1, 1, 1, 1]}; r%d = Relu(c%d); ", k, from,
                 k, k);
        strcat(text, line), snprintf(from, sizeof from, "r%d", k);
    }
    snprintf(text + strlen(text), 100, "y = Conv(%s, v); }", from);
    write_text(text);
    hone_quantizing w = {.data = {24, sample, NULL}, .threads = 1, .target = "size"};
    w.metric = "sqnr", w.max_drop = 45;
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    const char *fitted = strstr(report, "weights rounded by what"),
               *hurt = strstr(report, "hurt most in f32");
    assert_true(fitted && hurt && fitted < hurt);
    assert_non_null(strstr(report, "model reads\", \"kept\": true"));
    assert_true(number_of(strstr(report, "\"macs_int8\""), "loss") <= -45); /* of what is written at last */
    hone_text_release(report), unlink(made), unlink(path);
    write_net();
    w.metric = NULL, w.float_share = 1e-9;
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    const char *ranges = strstr(report, "ranges, in the whole model, for ");
    if (!ranges || strncmp(strchr(ranges, '"'), "\", \"kept\": true", 15) != 0) fail_msg("%s", report);
    hone_text_release(report), unlink(made), unlink(path);
}
/* Many rows of shares a sample: those of a rarer class say how good it is; a budget may be set by them. */
static void rarer_classes(void **state) {
    (void)state;
    char *report = NULL;
    write_text("graph g (x: f32[batch, 3, 10, 10]) -> y { w: f32[2, 3, 3, 3] = random(2, -0.5, 0.5); "
               "b: f32[2] = {0.9, -0.9}; n: i64[3] = {0, 2, 64}; c = Conv(x, w, b); r = Reshape(c, n); "
               "t = Transpose(r) {perm: [0, 2, 1]}; y = Softmax(t) {axis: -1}; }");
    hone_quantizing w = {.data = {SAMPLES, sample, NULL}, .threads = 1, .target = "size"};
    w.metric = "top1", w.max_drop = 0.2;
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    const double top1 = number_of(report, "top1");
    if (!(top1 > 0.8 && top1 <= 1 && fabs(number_of(report, "loss") - 1 + top1) < 1e-4))
        fail_msg("%s", report);
    hone_text_release(report), unlink(made), unlink(path);
}
/* By default no model is made slower: whatever integers bring here, layers were timed, and a model that they
   slow down is left in floats. */
static void times_decide(void **state) {
    (void)state;
    char *report = NULL;
    write_net();
    const hone_quantizing w = {.data = {SAMPLES, sample, NULL}, .threads = 1};
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    assert_non_null(strstr(report, "\"target\": \"speed\""));
    assert_true(number_of(report, "float_us") > 0 && number_of(report, "int_us") > 0);
    assert_true(number_of(report, "int_ms") <= 1.03 * number_of(report, "float_ms"));
    if (number_of(report, "layers_int8") == 0) {
        assert_non_null(strstr(report, "not faster here"));
        assert_true(noise() < 1e-9);
    }
    hone_text_release(report);
    unlink(made), unlink(path);
}
/* What there is no time for is left out and named; what was asked for, and the last look at which model is
   faster, is not. */
static hone_status late_sample(void *arg, int64_t k, hone_value **in) {
    if (!(*(int *)arg)++) usleep(1100000); /* longer than the limit */
    return sample(NULL, k, in);
}
static void time_ends(void **state) {
    (void)state;
    char *report = NULL;
    int calls = 0;
    write_net();
    const hone_quantizing w = {.data = {4, late_sample, &calls}, .judge = 1, .threads = 1, .seconds = 1};
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    for (const char *const *left =
             (const char *const[]){"some samples' ranges", "ranges tried on some samples",
                                   "how long each layer takes", "biases corrected", NULL};
         *left; left++)
        if (!strstr(strstr(report, "\"left\": ["), *left)) fail_msg("no '%s' in %s", *left, report);
    assert_true(number_of(report, "calibrated") == 1 && number_of(report, "int_ms") > 0);
    assert_true(number_of(report, "int_ms") <= 1.03 * number_of(report, "float_ms"));
    hone_text_release(report);
    unlink(made), unlink(path);
}
static void cache(void **state) {
    (void)state;
    char file[80], *first = NULL, *second = NULL;
    write_net();
    snprintf(file, sizeof file, "%s.txt", made);
    const hone_quantizing w = {
        .data = {SAMPLES, sample, NULL}, .cache = file, .threads = 1, .target = "size"};
    if (hone_quantize(path, &w, made, &first)) fail_msg("%s", hone_error());
    const double a = noise();
    if (hone_quantize(path, &w, made, &second)) fail_msg("%s", hone_error());
    if (noise() != a) fail_msg("%g is not %g\n%s\n%s", noise(), a, first, second);
    hone_text_release(first), hone_text_release(second);
    /* cut off: made anew; of something else: refused, and left as it is */
    FILE *f = fopen(file, "r+");
    assert_non_null(f);
    assert_int_equal(ftruncate(fileno(f), 700), 0);
    fclose(f);
    if (hone_quantize(path, &w, made, &first)) fail_msg("%s", hone_error());
    assert_true(noise() == a);
    hone_text_release(first);
    f = fopen(file, "w");
    assert_non_null(f);
    fputs("a letter", f), fclose(f);
    assert_int_equal(hone_quantize(path, &w, made, &first), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_error(), "no cache"));
    unlink(file), unlink(made), unlink(path);
}

/* ---- what is wrong ------------------------------------------------------------------------------------- */
static int stop(void *arg, double done, const char *what) {
    (void)arg, (void)what;
    return done > 0.25;
}
static void refuses(void **state) {
    (void)state;
    char *report = NULL;
    int64_t bad = 3;
    write_net();
    unlink(made);
    const struct {
        hone_quantizing w;
        const char *says;
    } wrong[] = {
        {{.data = {0, NULL, NULL}}, "samples"},
        {{.data = {SAMPLES, sample, &bad}}, "sample"},
        {{.data = {SAMPLES, sample, NULL}, .form = "magic"}, "magic"},
        {{.data = {SAMPLES, sample, NULL}, .observer = "guess"}, "guess"},
        {{.data = {SAMPLES, sample, NULL}, .activations = "u9"}, "u9"},
        {{.data = {SAMPLES, sample, NULL}, .metric = "luck"}, "luck"},
        {{.data = {SAMPLES, sample, NULL}, .target = "beauty"}, "beauty"},
        {{.data = {SAMPLES, sample, NULL}, .metric = "top1", .max_drop = NAN}, "max_drop"},
        {{.data = {SAMPLES, sample, NULL}, .progress = stop}, "stopped"},
        {{.form = "f16", .observer = "mse"}, "form 'f16' has no use for observer: only form 'static' has"},
        {{.form = "weights", .target = "size", .seconds = 2}, "no use for target, limit"},
        {{.data = {SAMPLES, sample, NULL}, .seconds = -1}, "limit"},
    };
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        assert_int_not_equal(hone_quantize(path, &wrong[k].w, made, &report), HONE_OK);
        if (!strstr(hone_error(), wrong[k].says))
            fail_msg("'%s' says nothing of '%s'", hone_error(), wrong[k].says);
        assert_int_not_equal(access(made, F_OK), 0);
    }
    const hone_quantizing good = {.data = {SAMPLES, sample, NULL}, .threads = 1, .target = "size"};
    assert_int_equal(hone_quantize(path, &good, path, &report), HONE_BAD_INPUT); /* over itself */
    if (hone_quantize(path, &good, made, &report)) fail_msg("%s", hone_error());
    hone_text_release(report);
    assert_int_equal(hone_quantize(made, &good, path, &report), HONE_BAD_INPUT); /* twice */
    assert_non_null(strstr(hone_error(), "quantized already"));
    unlink(made), unlink(path);
}
/* Every call for memory fails once, in turn (with longer steps later on): an error, no leak, nothing
   written. */
static void memory_ends(void **state) {
    (void)state;
    char *report = NULL;
    write_net();
    unlink(made);
    const hone_quantizing wish[] = {
        {.data = {4, sample, NULL}, .threads = 1, .judge = 1},
        {.data = {4, sample, NULL}, .threads = 1, .judge = 1, .detail = 1, .format = "qoperator"},
        {.data = {4, sample, NULL}, .threads = 1, .form = "dynamic", .metric = "cosine", .max_drop = 1}};
    for (size_t w = 0; w < sizeof wish / sizeof *wish; w++) {
        bool whole = false;
        for (int64_t k = 0; !whole && k < 400000; k += 1 + (SLOW ? k : k / (w ? 3 : 5))) {
            hone_alloc_fail_after(k);
            const hone_status s = hone_quantize(path, wish + w, made, &report);
            hone_alloc_fail_after(-1);
            if (s == HONE_OK) hone_text_release(report);
            else if (s != HONE_NO_MEMORY && s != HONE_IO) fail_msg("%s", hone_error());
            assert_true((s == HONE_OK) == (access(made, F_OK) == 0));
            unlink(made);
            whole = s == HONE_OK && k > 200000;
        }
    }
    unlink(path);
}

/* Large answers of the float model wait in a file, ranges of many tensors are tried by turns. */
typedef struct {
    int calls, samples;
    double sum[8];
} answers;
static double remembers(void *arg, hone_value *const *want, hone_value *const *got, int n) {
    answers *a = arg;
    double sum = 0, off = 0;
    const int k = a->calls++ % a->samples;
    assert_int_equal(n, 1);
    for (int64_t i = 0; i < hone_value_count(want[0]); i++) {
        sum += hone_value_f64(want[0], i) * (double)(1 + i % 97);
        off += fabs(hone_value_f64(want[0], i) - hone_value_f64(got[0], i));
    }
    if (a->calls <= a->samples) a->sum[k] = sum;
    assert_true(sum == a->sum[k] && (!k || sum != a->sum[k - 1]));
    return -off;
}
static void answers_wait(void **state) {
    (void)state;
    enum { LAYERS = 24 };
    char text[6000] = "graph g (x: f32[batch, 3, 10, 10]) -> y { w: f32[200, 3, 1, 1] = random(1, -1, 1); "
                      "v: f32[3, 3, 3, 3] = random(2, -0.4, 0.4); ",
         from[8] = "x", *report = NULL;
    for (int k = 0; k < LAYERS; k++) {
        char line[200];
        snprintf(line, sizeof line, "c%d = Conv(%s, v) {pads: [1, 1, 1, 1]}; r%d = %s(c%d); ", k, from, k,
                 k % 2 ? "Tanh" : "Relu", k);
        strcat(text, line), snprintf(from, sizeof from, "r%d", k);
    }
    snprintf(text + strlen(text), 100, "y = Conv(%s, w); }", from);
    write_text(text);
    answers a = {.samples = 4};
    hone_quantizing w = {.data = {SAMPLES, sample, NULL}, .threads = 1, .target = "size"};
    w.measure = remembers, w.arg = &a, w.judge = a.samples, w.max_drop = 1e9;
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    assert_true(a.calls >= 2 * a.samples && number_of(report, "layers_int8") == LAYERS + 1);
    for (const char *c = report; (c = strstr(c, "\"observer\": \"")); c += 14) assert_true(c[13] != '"');
    hone_text_release(report), unlink(made), unlink(path);
}

/* Tables that rows are taken of get 8 bits, too; one that something else reads stays. */
static void tables(void **state) {
    (void)state;
    char *report = NULL;
    write_text(
        "graph g (x: f32[batch, 3, 10, 10]) -> y { t: f32[90, 16] = random(1, -1, 1); u: f32[90, 16] = "
        "random(2, -1, 1); w: f32[16, 8] = random(3, -1, 1); k: f32[] = {40}; a = Mul(x, k); i = Cast(a) "
        "{to: i64}; g = Gather(t, i); h = Gather(u, i); s = Add(g, h); z = MatMul(s, w); m = "
        "ReduceSum(x) {keepdims: 0}; n = Mul(u, m); q = ReduceMean(n) {keepdims: 0}; y = Add(z, q); }");
    const hone_quantizing w = {.data = {SAMPLES, sample, NULL}, .threads = 1, .target = "size"};
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    assert_non_null(strstr(report, "\"tables\": [\"t\"]"));
    assert_true(noise() < 1e-3);
    hone_text_release(report), unlink(made), unlink(path);
}

/* ---- metrics ------------------------------------------------------------------------------------------- */
typedef struct {
    int calls;
    char first[64];
    double floats, others; /* what it says of the float model, and of what is tried */
} scorer;
static double score_file(void *arg, const char *model) {
    scorer *s = arg;
    hone_model *m = NULL;
    assert_int_equal(hone_model_load(model, &m), HONE_OK); /* whole, while it is looked at */
    hone_model_free(m);
    if (!s->calls++) snprintf(s->first, sizeof s->first, "%s", model);
    return strcmp(model, path) ? s->others : s->floats;
}
static void callers_measure(void **state) {
    (void)state;
    char *report = NULL;
    scorer s = {.floats = 10, .others = 9.6};
    hone_quantizing w = {.data = {SAMPLES, sample, NULL}, .threads = 1, .target = "size"};
    w.measure_file = score_file, w.arg = &s, w.max_drop = 0.05;
    write_net();
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    assert_true(s.calls >= 2 && !strcmp(s.first, path));
    assert_true(number_of(report, "measure_f32") == 10 && number_of(report, "loss") > 0.039);
    assert_true(number_of(report, "layers_f32") == 0); /* enough at once */
    hone_text_release(report), unlink(made);
    w.max_drop = 0.03; /* no mixture is good enough */
    assert_int_equal(hone_quantize(path, &w, made, &report), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_error(), "loses more than allowed"));
    s.others = NAN, w.max_drop = 0.05;
    assert_int_equal(hone_quantize(path, &w, made, &report), HONE_BAD_INPUT);
    w.form = "dynamic", w.target = NULL, s.others = 9.6;
    if (hone_quantize(path, &w, made, &report)) fail_msg("%s", hone_error());
    assert_true(number_of(report, "measure_f32") == 10);
    hone_text_release(report), unlink(made);
    s.others = 1;
    assert_int_equal(hone_quantize(path, &w, made, &report), HONE_BAD_INPUT);
    assert_true(access(made, F_OK) != 0);
    w.metric = "top1";
    assert_int_equal(hone_quantize(path, &w, made, &report), HONE_BAD_INPUT);
    unlink(path);
}
static void perplexity(void **state) {
    (void)state;
    const int64_t t[2] = {1, 3}, l[3] = {1, 3, 4};
    hone_value *tokens = NULL, *logits = NULL;
    double sum = 0;
    int64_t n = 0;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_I64, t, 2, &tokens), HONE_OK);
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, l, 3, &logits), HONE_OK);
    memcpy(tokens->data, (int64_t[]){3, 0, 2}, 3 * sizeof(int64_t));
    assert_int_equal(hone_quant_tokens_loss(tokens, logits, &sum, &n), HONE_OK);
    assert_true(n == 2 && fabs(exp(sum / 2) - 4) < 1e-6); /* all words alike: as many as there are */
    float *at = logits->data;
    at[0] = 800, at[1] = -800, at[4 + 2] = 1, at[4] = 1; /* sure, without an overflow; one of two, nearly */
    sum = 0, n = 0;
    assert_int_equal(hone_quant_tokens_loss(tokens, logits, &sum, &n), HONE_OK);
    assert_true(fabs(sum - log(2 + 2 * exp(-1))) < 1e-6);
    ((int64_t *)tokens->data)[1] = 4;
    assert_int_equal(hone_quant_tokens_loss(tokens, logits, &sum, &n), HONE_BAD_INPUT);
    hone_value_drop(tokens), hone_value_drop(logits);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histogram_sees_all),
        cmocka_unit_test(bins_count),
        cmocka_unit_test(channels_are_watched),
        cmocka_unit_test(ranges_are_what_they_say),
        cmocka_unit_test(grids),
        cmocka_unit_test(rewrites),
        cmocka_unit_test(models),
        cmocka_unit_test(biases),
        cmocka_unit_test(units_beside_floats),
        cmocka_unit_test(units_aside),
        cmocka_unit_test(in_the_whole),
        cmocka_unit_test(rarer_classes),
        cmocka_unit_test(times_decide),
        cmocka_unit_test(time_ends),
        cmocka_unit_test(cache),
        cmocka_unit_test(refuses),
        cmocka_unit_test(memory_ends),
        cmocka_unit_test(answers_wait),
        cmocka_unit_test(tables),
        cmocka_unit_test(callers_measure),
        cmocka_unit_test(perplexity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
