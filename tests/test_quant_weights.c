/* SPDX-License-Identifier: Apache-2.0
   Weights in fewer bits (quant/weights*.c): types against brute force, factors and losses against their
   definitions, layouts against our own MatMulNBits, DequantizeLinear and kin; wishes that cannot be
   met, samples that do not fit, memory that is not there. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "quant/weights.h"
#include "quant_files.h"

static uint32_t seed = 1;
static float draw(void) { /* -1 to 1, more of it near 0 */
    next_linear(&seed);
    const float v = (float)(seed >> 8) / (1 << 23) - 1;
    return v * v * v + v * 0.2F;
}
static const char *const types[] = {"int8", "int4", "nf4", "f8"};

/* ---- types --------------------------------------------------------------------------------------------- */
static void nearest(void **state) {
    (void)state;
    assert_null(hone_weights_kind_find("int5"));
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        const hone_weights_kind *kind = hone_weights_kind_find(types[t]);
        assert_non_null(kind);
        for (int k = 1; kind->code && k < kind->levels; k++) assert_true(kind->code[k] > kind->code[k - 1]);
        for (int turn = 0; turn < 3000; turn++) {
            const float w = draw() * (turn % 7 ? 1 : 1e4F),
                        scale = 0.001F + fabsf(draw()) * (kind->code ? 1 : 0.1F);
            const int zero = kind->uniform ? turn % kind->levels : 0,
                      got = hone_weights_level(kind, w, scale, zero);
            double best = HUGE_VAL;
            for (int l = 0; l < kind->levels; l++)
                best = fmin(best, fabs((double)w - (double)hone_weights_code(kind, l, zero) * (double)scale));
            assert_true(got >= 0 && got < kind->levels);
            const double is = fabs((double)w - (double)hone_weights_code(kind, got, zero) * (double)scale);
            assert_true(is <= best * 1.0001 + 1e-6);
        }
    }
}
static double block_loss(const hone_weights_kind *kind, const float *w, const float *h, int n, float scale,
                         int zero) {
    double lost = 0;
    for (int i = 0; i < n; i++) {
        const double e = (double)w[i] -
                         (double)hone_weights_code(kind, hone_weights_level(kind, w[i], scale, zero), zero) *
                             (double)scale;
        lost += (h ? (double)h[i] : 1) * e * e;
    }
    return lost;
}
/* No worse than any of many scales and zero points that are tried here, but for a few in a hundred. */
static void fitted(void **state) {
    (void)state;
    enum { N = 32 };
    for (size_t t = 0; t < sizeof types / sizeof *types; t++)
        for (int symmetric = 0; symmetric < 2; symmetric++) {
            const hone_weights_kind *kind = hone_weights_kind_find(types[t]);
            for (int turn = 0; turn < 20; turn++) {
                float w[N], h[N], scale, top = 0, low = 0, high = 0;
                uint8_t zero;
                for (int i = 0; i < N; i++)
                    w[i] = draw() + (turn % 3 ? 0 : 0.3F), h[i] = 0.1F + fabsf(draw());
                for (int i = 0; i < N; i++)
                    top = fmaxf(top, fabsf(w[i])), low = fminf(low, w[i]), high = fmaxf(high, w[i]);
                hone_weights_fit(kind, symmetric, w, turn % 2 ? h : NULL, N, &scale, &zero);
                assert_true(scale > 0 && isfinite(scale));
                assert_true(!symmetric || zero == kind->middle);
                const double got = block_loss(kind, w, turn % 2 ? h : NULL, N, scale, zero);
                double best = HUGE_VAL;
                for (int s = 0; s < 120; s++) {
                    const float share = 0.4F + (float)s / 180,
                                full = kind->uniform ? (symmetric ? top / (float)(kind->middle - 1)
                                                                  : (high - low) / (float)(kind->levels - 1))
                                                     : top / kind->code[kind->levels - 1];
                    for (int z = kind->uniform && !symmetric ? 0 : kind->middle;
                         z < (kind->uniform && !symmetric ? kind->levels : kind->middle + 1);
                         z += 1 + kind->levels / 32)
                        best = fmin(best, block_loss(kind, w, turn % 2 ? h : NULL, N, full * share, z));
                }
                if (!(got <= best * (kind->bits == 8 ? 3 : 1.25) + 1e-9))
                    fail_msg("%s, symmetric %d, turn %d: %g and not %g", types[t], symmetric, turn, got,
                             best);
            }
        }
    float none[4] = {0}, scale = 0;
    uint8_t zero = 0;
    hone_weights_fit(hone_weights_kind_find("int4"), false, none, NULL, 4, &scale, &zero);
    assert_true(scale > 0);
}

/* ---- moments ------------------------------------------------------------------------------------------- */
enum { K = 70, N = 9, ROWS = 300 };
static void make_rows(float *x) {
    /* neighbours are alike */
    for (int r = 0; r < ROWS; r++)
        for (int i = 0; i < K; i++) x[r * K + i] = draw() + (i ? 0.7F * x[r * K + i - 1] : 0);
}
/* |f w - x q|^2 / |f w|^2 */
static double output_loss(const hone_weights *q, const float *w, const float *x, const float *f) {
    double lost = 0, all = 0;
    for (int r = 0; r < ROWS; r++)
        for (int n = 0; n < N; n++) {
            double want = 0, got = 0;
            for (int i = 0; i < K; i++)
                want += (double)f[r * K + i] * (double)w[n * K + i],
                    got += (double)x[r * K + i] * (double)hone_weights_value(q, n, i);
            lost += (want - got) * (want - got), all += want * want;
        }
    return lost / all;
}
static void solved(void **state) {
    (void)state;
    float *x = malloc(sizeof *x * ROWS * K), *f = malloc(sizeof *f * ROWS * K), w[N * K], moved[N * K];
    hone_weights q;
    make_rows(x);
    for (int i = 0; i < ROWS * K; i++) f[i] = x[i] + 0.05F * draw();
    for (int i = 0; i < N * K; i++) w[i] = draw();
    for (size_t t = 0; t < sizeof types / sizeof *types; t++) {
        hone_weights_moments m;
        assert_true(hone_weights_moments_make(&m, K, true));
        hone_weights_moments_add(&m, x, x, 100, 1),
            hone_weights_moments_add(&m, x + 100 * K, x + 100 * K, ROWS - 100, 0);
        for (int i = 0; i < K; i++) /* below the diagonal; factor mirrors it */
            for (int j = 0; j <= i; j++) {
                double sum = 0;
                for (int r = 0; r < ROWS; r++) sum += (double)x[r * K + i] * (double)x[r * K + j];
                assert_true(fabs(sum - m.h[i * K + j]) <= 1e-4 * (fabs(sum) + 1));
                assert_true(m.drift[i * K + j] == 0);
            }
        assert_int_equal(hone_weights_factor(&m, 1e-6, 0), HONE_OK);
        for (int i = 0; i < K; i++)
            for (int j = 0; j <= i; j++) { /* L D L^T is H */
                double sum = 0;
                for (int c = 0; c <= j; c++)
                    sum += (double)m.low[i * K + c] * (double)m.diag[c] * (double)m.low[j * K + c];
                assert_true(fabs(sum - (double)m.hf[i * K + j]) <= 1e-3 * (double)m.hf[i * K + i]);
            }
        assert_true(hone_weights_make(&q, hone_weights_kind_find(types[t]), false, N, K, 32));
        hone_weights_round(&q, w, 1);
        const double plain = output_loss(&q, w, x, x), by_moments = hone_weights_loss(&q, &m, w);
        assert_true(fabs(plain - by_moments) <= 0.02 * plain);
        assert_int_equal(hone_weights_solve(&q, &m, w, 0, 0), HONE_OK);
        const double handed = output_loss(&q, w, x, x);
        assert_int_equal(hone_weights_solve(&q, &m, w, 10, 0), HONE_OK);
        const double swept = output_loss(&q, w, x, x);
        assert_true(handed < plain && swept <= handed * 1.001);
        if (q.kind->bits == 4 && !(handed < 0.8 * plain && swept < 0.98 * handed))
            fail_msg("%s: %g, %g, %g", types[t], plain, handed, swept);
        for (int i = 0; i < N * K; i++) assert_true(q.level[i] < q.kind->levels);
        hone_weights_free(&q);
        hone_weights_moments_free(&m);
    }
    /* What drifted is followed: with 8 bits nearly all that a least square can give back comes back. */
    hone_weights_moments m;
    assert_true(hone_weights_moments_make(&m, K, true));
    hone_weights_moments_add(&m, x, f, ROWS, 0);
    assert_int_equal(hone_weights_factor(&m, 1e-6, 0), HONE_OK);
    memcpy(moved, w, sizeof w);
    assert_int_equal(hone_weights_follow(&m, moved, N, 0), HONE_OK);
    assert_true(hone_weights_make(&q, hone_weights_kind_find("int8"), false, N, K, 32));
    hone_weights_round(&q, w, 0);
    const double stayed = output_loss(&q, w, x, f);
    hone_weights_round(&q, moved, 0);
    for (int n = 0; n < N; n++) { /* the normal equations of each row */
        for (int i = 0; i < K; i++) {
            double sum = 0, size = 0;
            for (int r = 0; r < ROWS; r++) {
                double miss = 0;
                for (int j = 0; j < K; j++)
                    miss += (double)f[r * K + j] * (double)w[n * K + j] -
                            (double)x[r * K + j] * (double)moved[n * K + j];
                sum += (double)x[r * K + i] * miss, size += fabs((double)x[r * K + i] * miss);
            }
            assert_true(fabs(sum) <= 0.01 * size + 1e-3);
        }
    }
    assert_true(output_loss(&q, moved, x, x) < 1e-3 && stayed > output_loss(&q, w, x, f) * 0.99);
    hone_weights_free(&q);
    hone_weights_moments_free(&m);
    free(x), free(f);
}
/* Moments that say nothing, or nonsense, are no worse than rounding. */
static void singular(void **state) {
    (void)state;
    float w[2 * 20], x[20] = {0};
    for (int i = 0; i < 40; i++) w[i] = draw();
    for (int turn = 0; turn < 4; turn++) {
        hone_weights_moments m;
        hone_weights q;
        x[3] = turn == 1 ? 1e18F : turn == 2 ? NAN : turn == 3 ? 1 : 0;
        assert_true(hone_weights_moments_make(&m, 20, false));
        hone_weights_moments_add(&m, x, NULL, 1, 1);
        assert_int_equal(hone_weights_factor(&m, 0.01, 1), HONE_OK);
        assert_true(hone_weights_make(&q, hone_weights_kind_find("int4"), false, 2, 20, 16));
        assert_int_equal(hone_weights_solve(&q, &m, w, 5, 1), HONE_OK);
        for (int n = 0; n < 2; n++)
            for (int i = 0; i < 20; i++)
                assert_true(fabsf(hone_weights_value(&q, n, i) - w[n * 20 + i]) < 0.5F);
        hone_weights_free(&q), hone_weights_moments_free(&m);
    }
}

/* ---- files --------------------------------------------------------------------------------------------- */
static const char net[] = "graph g (i: i64[3], x: f32[3, 40]) -> y, z { t: f32[120, 40] = random(1, -1, 1); "
                          "w: f32[40, 50] = random(2, -1, 1); v: f32[30, 50] = "
                          "random(3, -1, 1); b: f32[30] = random(4, -1, 1); "
                          "e = Gather(t, i); s = Add(e, x); m = MatMul(s, w); r = Relu(m); y = Gemm(r, v, b) "
                          "{transB: 1}; z = MatMul(x, w); }";
static const struct {
    const char *type, *tables, *format;
    int block, symmetric;
    double within;
    const char *op;
} cases[] = {
    {"int8", "int8", "nbits", 0, 0, 0.01, "MatMulNBits"},
    {"int8", "int8", "qdq", 0, 0, 0.01, NULL},
    {"int8", "int8", "nbits", 16, 1, 0.01, "MatMulNBits"},
    {"int8", "int8", "qdq", -1, 1, 0.02, NULL},
    {"int4", "int4", "nbits", 0, 0, 0.2, "MatMulNBits"},
    {"int4", "int4", "qdq", 0, 0, 0.2, NULL},
    {"int4", "int8", "nbits", 16, 1, 0.2, "MatMulNBits"},
    {"int4", "none", "qdq", -1, 0, 0.25, NULL},
    {"int4", "int4", "nbits", -1, 0, 0.25, "MatMulNBits"},
    {"f8", "f8", "qdq", 0, 0, 0.06, NULL},
    {"nf4", "int8", "nbits", 0, 0, 0.2, NULL},
};
static void written(void **state) {
    (void)state;
    quant_files f = quant_files_open(net);
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        const hone_quantizing_weights w = {.type = cases[k].type,
                                           .tables = cases[k].tables,
                                           .format = cases[k].format,
                                           .block = cases[k].block,
                                           .symmetric = cases[k].symmetric};
        char *report = NULL;
        quantized(&f, &(hone_quantizing){.form = "weights", .more = &w}, &report);
        const double is = largest_difference(&f);
        if (!(is <= cases[k].within))
            fail_msg("%s %s in blocks of %d: %g of the largest value, more than %g", cases[k].type,
                     cases[k].format, cases[k].block, is, cases[k].within);
        if (cases[k].op) assert_int_equal(count_of(f.to, cases[k].op), 3);
        assert_non_null(strstr(report, "\"weights_db\""));
        hone_text_release(report);
    }
    quant_files_close(&f);
}
/* The same levels in two layouts: what both models say differs by rounding of sums. */
static void layouts_agree(void **state) {
    (void)state;
    quant_files a = quant_files_open(net), b = quant_files_open(net);
    for (int symmetric = 0; symmetric < 2; symmetric++)
        for (int k = 0; k < 2; k++) {
            hone_quantizing_weights w = {.type = k ? "int8" : "int4",
                                         .tables = "int4",
                                         .format = "nbits",
                                         .block = 16,
                                         .symmetric = symmetric};
            char *report = NULL;
            quantized(&a, &(hone_quantizing){.form = "weights", .more = &w}, &report);
            hone_text_release(report);
            w.format = "qdq";
            quantized(&b, &(hone_quantizing){.form = "weights", .more = &w}, &report);
            hone_text_release(report);
            quant_files both = a;
            memcpy(both.to, b.to, sizeof both.to);
            assert_int_equal(rename(a.to, a.from), 0);
            memcpy(both.from, a.from, sizeof both.from);
            assert_true(largest_difference(&both) <= 1e-5);
            quant_files again = quant_files_open(net); /* the float model back in its place */
            assert_int_equal(rename(again.from, a.from), 0);
            quant_files_close(&again);
        }
    quant_files_close(&a), quant_files_close(&b);
}

/* ---- samples ------------------------------------------------------------------------------------------- */
static hone_status sample(void *arg, int64_t k, hone_value **in) {
    const int64_t columns = arg ? *(int64_t *)arg : 40, dim[] = {3, columns}, ids[] = {3};
    uint32_t r = (uint32_t)k * 77 + 5;
    hone_status s = hone_value_tensor(HONE_DTYPE_I64, ids, 1, &in[0]);
    if (!s) s = hone_value_tensor(HONE_DTYPE_F32, dim, 2, &in[1]);
    for (int i = 0; !s && i < 3 * (int)columns; i++)
        next_linear(&r), ((float *)in[1]->data)[i] = (float)(r >> 8) / (1 << 24) + 0.3F;
    for (int i = 0; !s && i < 3; i++) ((int64_t *)in[0]->data)[i] = (k * 3 + i) % 120;
    return s;
}
static void learned(void **state) {
    (void)state;
    quant_files f = quant_files_open(net);
    hone_quantizing_weights w = {.method = "round"};
    hone_quantizing wish = {.form = "weights", .more = &w, .data = {.n = 60, .get = sample}};
    char *report = NULL;
    double mean[2] = {0};
    for (int learns = 0; learns < 2; learns++) {
        w.method = learns ? NULL : "round";
        quantized(&f, &wish, &report);
        assert_int_equal(learns, strstr(report, "\"output_db\"") != NULL);
        hone_text_release(report);
        for (int turn = 0; turn < 8; turn++) { /* inputs like those of the samples, which it did not see */
            hone_value *in[2] = {0}, *out[2][2] = {{0}};
            assert_int_equal(sample(NULL, 1000 + turn, in), HONE_OK);
            for (int k = 0; k < 2; k++) {
                hone_model *m = NULL;
                hone_session *s = NULL;
                if (hone_model_load(k ? f.to : f.from, &m) || hone_session_create(m, NULL, &s) ||
                    hone_session_run(s, in, out[k]))
                    fail_msg("%s", hone_error());
                hone_session_free(s), hone_model_free(m);
            }
            for (int64_t i = 0; i < hone_value_count(out[0][0]); i++) {
                const double d = hone_value_f64(out[0][0], i) - hone_value_f64(out[1][0], i);
                mean[learns] += d * d;
            }
            for (int k = 0; k < 2; k++)
                hone_value_drop(in[k]), hone_value_drop(out[0][k]), hone_value_drop(out[1][k]);
        }
    }
    assert_true(mean[1] < 0.6 * mean[0]);
    quant_files_close(&f);
}
/* Bytes during the run: near what floats say, nearer with samples that show which columns are large; the
   graph is of the standard's ops. */
static hone_status lopsided(void *arg, int64_t k, hone_value **in) {
    hone_status s = sample(arg, k, in);
    for (int i = 0; !s && i < 3; i++) ((float *)in[1]->data)[i * 40 + 7] *= 60;
    return s;
}
static void dynamic(void **state) {
    (void)state;
    quant_files f = quant_files_open("graph g (i: i64[3], x: f32[3, 40]) -> y { t: f32[120, 40] = random(1, "
                                     "-1, 1); w: f32[40, 50] = random(2, -1, 1); v: f32[50, 30] = "
                                     "random(3, -1, 1); "
                                     "b: f32[30] = random(4, -1, 1); e = Gather(t, i); s = Add(e, x); m = "
                                     "MatMul(s, w); r = Relu(m); y = Gemm(r, v, b); }");
    double mean[2] = {0};
    for (int learns = 0; learns < 2; learns++) {
        char *report = NULL;
        quantized(&f,
                  &(hone_quantizing){.form = "dynamic",
                                     .data = {.n = learns ? 20 : 0, .get = learns ? lopsided : NULL}},
                  &report);
        assert_int_equal(learns, strstr(report, "\"smoothed\": true") != NULL);
        hone_text_release(report);
        assert_int_equal(count_of(f.to, "MatMulInteger"), 2);
        hone_value *in[2] = {0}, *out[2][1] = {{0}};
        assert_int_equal(lopsided(NULL, 1000, in), HONE_OK);
        for (int k = 0; k < 2; k++) {
            hone_model *m = NULL;
            hone_session *s = NULL;
            if (hone_model_load(k ? f.to : f.from, &m) || hone_session_create(m, NULL, &s) ||
                hone_session_run(s, in, out[k]))
                fail_msg("%s", hone_error());
            hone_session_free(s), hone_model_free(m);
        }
        double size = 0;
        for (int64_t i = 0; i < hone_value_count(out[0][0]); i++) {
            const double d = hone_value_f64(out[0][0], i) - hone_value_f64(out[1][0], i);
            mean[learns] += d * d, size += hone_value_f64(out[0][0], i) * hone_value_f64(out[0][0], i);
        }
        assert_true(mean[learns] < 0.01 * size);
        for (int k = 0; k < 2; k++) hone_value_drop(in[k]), hone_value_drop(out[k][0]);
    }
    if (!(mean[1] < 0.9 * mean[0])) fail_msg("%g, and %g with samples", mean[0], mean[1]);
    fails_without_memory(
        &f, &(hone_quantizing){.form = "dynamic", .threads = 1, .data = {.n = 1, .get = lopsided}});
    quant_files_close(&f);
}
static int stop(void *arg, double done, const char *what) {
    assert_true(done >= 0 && done <= 1 && what);
    return ++*(int *)arg > 5;
}
static void refused(void **state) {
    (void)state;
    quant_files f = quant_files_open(net);
    static const struct {
        hone_quantizing_weights w;
        const char *says;
    } wishes[] = {
        {{.type = "int5"}, "int8, int4, nf4 and f8"},
        {{.tables = "int5"}, "tables of type"},
        {{.format = "gguf"}, "format 'gguf'"},
        {{.method = "hope"}, "method 'hope'"},
        {{.method = "gptq"}, "needs samples"},
        {{.block = 24}, "power of two"},
        {{.block = 8}, "power of two"},
        {{.type = "f8", .format = "nbits"}, "qdq only"},
        {{.type = "nf4", .format = "qdq"}, "nbits only"},
        {{.tables = "nf4"}, "no op gathers"},
        {{.tables = "f8"}, "qdq only"},
    };
    for (size_t k = 0; k < sizeof wishes / sizeof *wishes; k++) {
        const char *says = refused_quantized(&f, &(hone_quantizing){.form = "weights", .more = &wishes[k].w});
        if (!strstr(says, wishes[k].says)) fail_msg("'%s' does not say '%s'", says, wishes[k].says);
    }
    int64_t narrow = 39; /* a sample of another shape */
    refused_quantized(&f,
                      &(hone_quantizing){.form = "weights", .data = {.n = 2, .get = sample, .arg = &narrow}});
    int told = 0;
    assert_non_null(strstr(refused_quantized(&f, &(hone_quantizing){.form = "weights",
                                                                    .data = {.n = 20, .get = sample},
                                                                    .progress = stop,
                                                                    .arg = &told}),
                           "stopped"));
    quant_files_close(&f);
    f = quant_files_open("graph g (x: f32[2, 4]) -> y { y = Relu(x); }");
    assert_non_null(strstr(refused_quantized(&f, &(hone_quantizing){.form = "weights"}), "no weights"));
    quant_files_close(&f);
    f = quant_files_open("graph g (x: f32[2, 16]) -> y { w: f32[16, 1] = {1, 2, inf, 4, 1, 2, 3, 4, 1, 2, 3, "
                         "4, 1, 2, 3, 4}; y = MatMul(x, w); }");
    assert_non_null(strstr(refused_quantized(&f, &(hone_quantizing){.form = "weights"}), "infinite"));
    quant_files_close(&f);
}
/* Weights of convolutions and cells, and of all in bodies, also where they are captured: 8 bits a number. */
static const char rest[] =
    "graph g (c: bool[], x: f32[1, 8, 6, 6], s: f32[5, 1, 32]) -> y, z, o, b {"
    " k: f32[16, 8, 3, 3] = random(1); t: f32[16, 16, 2, 2] = random(2); m: f32[6, 200] = random(3);"
    " w: f32[1, 64, 32] = random(4); r: f32[1, 64, 16] = random(5);"
    " v: f32[2, 64, 32] = random(6); q: f32[2, 64, 16] = random(7); small: f32[16, 1, 3, 3] = random(8);"
    ""
    " h = Conv(x, k) {pads: [1, 1, 1, 1]}; d = Conv(h, small) {group: 16}; y = ConvTranspose(d, t);"
    " z = LSTM(s, w, r) {hidden_size: 16}; o = LSTM(s, v, q) {hidden_size: 16, direction: \"bidirectional\"};"
    " b = If(c; x, m) {then_branch: graph t (;p: f32[1, 8, 6, 6], q: f32[6, 200]) -> u { u = MatMul(p, q); },"
    " else_branch: graph e (;p: f32[1, 8, 6, 6], q: f32[6, 200]) -> u { w: f32[6, 200] = random(11);"
    " a = MatMul(p, w); c = MatMul(p, q); u = Add(a, c); }}; }";
static int64_t bytes_in(const char *path) {
    struct stat s;
    assert_int_equal(stat(path, &s), 0);
    return s.st_size;
}
static void other_weights(void **state) {
    (void)state;
    static const struct {
        hone_quantizing_weights w;
        double most, share;
    } forms[] = {
        {{.type = "int8"}, 0.012, 0.45},
        {{.type = "int8", .symmetric = 1}, 0.012, 0.45},
        {{.type = "int4", .format = "qdq"}, 0.012, 0.45},
        {{.type = "f8"}, 0.06, 0.45},
    };
    quant_files f = quant_files_open(rest);
    for (size_t k = 0; k < sizeof forms / sizeof *forms; k++) {
        char *report = NULL;
        quantized(&f, &(hone_quantizing){.form = "weights", .more = &forms[k].w}, &report);
        assert_int_equal(count_of(f.to, "DequantizeLinear"), 7); /* the eighth lies in the body */
        assert_null(strstr(report, "small")), assert_null(strstr(report, "bodies"));
        const double off = largest_difference(&f), size = (double)bytes_in(f.to) / (double)bytes_in(f.from);
        if (off > forms[k].most || !(off > 0) || size > forms[k].share)
            fail_msg("form %zu: off by %g, %g of the size", k, off, size);
        hone_text_release(report);
    }
    const hone_quantizing_weights w = {.type = "int8"};
    fails_without_memory(&f, &(hone_quantizing){.form = "weights", .threads = 1, .more = &w});
    quant_files_close(&f);
}
/* A constant that something else reads, too, is no weight; nor is an answer. */
static void weights_for_others(void **state) {
    (void)state;
    quant_files f = quant_files_open(
        "graph g (x: f32[1, 8, 6, 6]) -> y, a, n { k: f32[16, 8, 3, 3] = random(1); n: f32[16, 8, 3, 3] = "
        "random(2); l: f32[16, 8, 3, 3] = random(3); y = Conv(x, k); a = ReduceSum(k); u = Conv(x, n); "
        "v = Conv(x, l); }");
    char *report = NULL;
    quantized(&f, &(hone_quantizing){.form = "weights"}, &report);
    assert_int_equal(count_of(f.to, "DequantizeLinear"), 1);
    hone_text_release(report);
    quant_files_close(&f);
}
static void without_memory(void **state) {
    (void)state;
    quant_files f = quant_files_open(net);
    fails_without_memory(
        &f, &(hone_quantizing){.form = "weights", .threads = 1, .data = {.n = 1, .get = sample}});
    const hone_quantizing_weights w = {.format = "qdq"};
    fails_without_memory(&f, &(hone_quantizing){.form = "weights", .threads = 1, .more = &w});
    quant_files_close(&f);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nearest),       cmocka_unit_test(fitted),
        cmocka_unit_test(solved),        cmocka_unit_test(singular),
        cmocka_unit_test(written),       cmocka_unit_test(layouts_agree),
        cmocka_unit_test(learned),       cmocka_unit_test(dynamic),
        cmocka_unit_test(refused),       cmocka_unit_test(without_memory),
        cmocka_unit_test(other_weights), cmocka_unit_test(weights_for_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
