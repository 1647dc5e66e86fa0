/* SPDX-License-Identifier: Apache-2.0
   Sessions on a device of printed kernels, through the public API: several in threads at a time, models that
   come and go, a run that fails and the next that is right; a Loop whose values stay there. On OpenCL, or
   what HONE_TEST_DEVICE names ("cuda"); skipped where there is none. HONE_TEST_RUNS and HONE_TEST_ROUNDS:
   how many runs a thread, how many models come and go; on CUDA the free memory of the GPU is the same after
   them. */
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "hone/hone.h"
#include "hone/tools.h"
#include "onnx_write.h"

static const char *device(void) { return getenv("HONE_TEST_DEVICE") ? getenv("HONE_TEST_DEVICE") : "opencl"; }
static int wanted(const char *name, int otherwise) { return getenv(name) ? atoi(getenv(name)) : otherwise; }
/* Of the GPU that this thread has been using; 0: it is no CUDA device. */
static size_t free_bytes(void) {
    int (*ask)(size_t *, size_t *) = NULL;
    void *library = !strncmp(device(), "cuda", 4) ? dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL) : NULL,
         *symbol = library ? dlsym(library, "cuMemGetInfo_v2") : NULL;
    size_t now = 0, all = 0;
    memcpy(&ask, &symbol, sizeof ask);
    if (ask && ask(&now, &all)) now = 0;
    if (library) dlclose(library);
    return now;
}
enum { ROWS = 64, COLUMNS = 5 };

/* y = Softmax(Gather(x, at) + x's first rows): an index that may be wrong, and a row of two stages. */
static hone_model *model(void) {
    msg g = {0};
    add_input(&g, "x", 1, "64 5");
    add_input(&g, "at", 7, "64");
    add_node(&g, with(node("Gather", "x at", "g"), attr_int("axis", 0)));
    add_node(&g, node("Add", "g x", "s"));
    add_node(&g, with(node("Softmax", "s", "y"), attr_int("axis", -1)));
    add_output(&g, "y");
    msg m = model_of(g, 18);
    hone_model *out = NULL;
    if (hone_model_load_memory(m.at, m.n, &out)) fail_msg("%s", hone_error());
    free(m.at);
    return out;
}

static hone_session *session(const hone_model *m, const char *where) {
    hone_options o;
    hone_session *out = NULL;
    hone_options_default(&o);
    o.device = where, o.threads = 1;
    if (hone_session_create(m, &o, &out)) {
        assert_non_null(strstr(hone_error(), "on this machine")); /* nothing else is a reason to skip */
        return NULL;
    }
    return out;
}
typedef struct {
    hone_value *x, *at;
} inputs;
static inputs drawn(unsigned seed) {
    inputs in = {0};
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, (int64_t[]){ROWS, COLUMNS}, 2, &in.x), HONE_OK);
    assert_int_equal(hone_tensor_create(HONE_DTYPE_I64, (int64_t[]){ROWS}, 1, &in.at), HONE_OK);
    for (int k = 0; k < ROWS * COLUMNS; k++)
        ((float *)hone_value_data(in.x))[k] = (float)((k * 7 + (int)seed) % 31) / 8;
    for (int k = 0; k < ROWS; k++) ((int64_t *)hone_value_data(in.at))[k] = (k * 5 + (int)seed) % ROWS;
    return in;
}
static void release(inputs in) { hone_value_free(in.x), hone_value_free(in.at); }
static bool close_enough(hone_value *a, hone_value *b) {
    const float *p = hone_value_data(a), *q = hone_value_data(b);
    for (int k = 0; k < ROWS * COLUMNS; k++)
        if (!(p[k] - q[k] < 1e-6f && q[k] - p[k] < 1e-6f)) return false;
    return true;
}

/* ---- threads ---- */
typedef struct {
    const hone_model *m;
    unsigned seed;
    int wrong;
} worker;
static void *work(void *arg) {
    worker *w = arg;
    hone_session *there = session(w->m, device()), *here = session(w->m, NULL);
    const int runs = wanted("HONE_TEST_RUNS", 100);
    for (int k = 0; k < runs && there && here; k++) {
        const inputs in = drawn(w->seed + (unsigned)k);
        hone_value *a = NULL, *b = NULL;
        if (hone_session_run(there, (hone_value *[]){in.x, in.at}, &a) ||
            hone_session_run(here, (hone_value *[]){in.x, in.at}, &b) || !close_enough(a, b))
            w->wrong++;
        hone_value_free(a), hone_value_free(b);
        release(in);
    }
    hone_session_free(there), hone_session_free(here);
    return NULL;
}
static void several(void **state) {
    (void)state;
    hone_model *m = model();
    hone_session *try = session(m, device());
    if (!try) {
        hone_model_free(m);
        print_message("SKIPPED: there is no device '%s'\n", device());
        skip();
    }
    hone_session_free(try);
    pthread_t thread[3];
    worker w[3] = {{m, 1, 0}, {m, 500, 0}, {m, 900, 0}};
    for (int k = 0; k < 3; k++) assert_int_equal(pthread_create(thread + k, NULL, work, w + k), 0);
    for (int k = 0; k < 3; k++) pthread_join(thread[k], NULL);
    for (int k = 0; k < 3; k++) assert_int_equal(w[k].wrong, 0);
    hone_model_free(m);
}
/* ---- models come and go; what fails says where, and the next run is right ---- */
/* node and tensor; which index was wrong only the CPU says */
static void same_place(const char *a, const char *b) {
    const char *p = strstr(a, "outside of '"), *q = strstr(b, "outside of '");
    const size_t node = strcspn(a, ":");
    if (!p || !q || strncmp(a, b, node) || strncmp(p, q, strcspn(q + 12, "'") + 13))
        fail_msg("'%s' and '%s'", a, b);
}
static void again(void **state) {
    (void)state;
    const int rounds = wanted("HONE_TEST_ROUNDS", 50);
    size_t before = 0;
    for (int round = 0; round < rounds; round++) {
        hone_model *m = model();
        hone_session *there = session(m, device()), *here = there ? session(m, NULL) : NULL;
        if (!there) {
            hone_model_free(m);
            skip();
        }
        inputs in = drawn((unsigned)round), bad = drawn((unsigned)round);
        ((int64_t *)hone_value_data(bad.at))[round % ROWS] = ROWS + round;
        hone_value *a = NULL, *b = NULL, *c = NULL;
        assert_int_equal(hone_session_run(there, (hone_value *[]){bad.x, bad.at}, &a), HONE_BAD_INPUT);
        char said[200];
        snprintf(said, sizeof said, "%s", hone_error());
        hone_value_free(a), a = NULL;
        assert_int_equal(hone_session_run(here, (hone_value *[]){bad.x, bad.at}, &a), HONE_BAD_INPUT);
        same_place(said, hone_error());
        assert_int_equal(hone_session_run(there, (hone_value *[]){in.x, in.at}, &b), HONE_OK);
        assert_int_equal(hone_session_run(here, (hone_value *[]){in.x, in.at}, &c), HONE_OK);
        assert_true(close_enough(b, c));
        hone_value_free(a), hone_value_free(b), hone_value_free(c);
        release(in), release(bad);
        hone_session_free(there), hone_session_free(here), hone_model_free(m);
        if (round == 9) before = free_bytes();
    }
    const size_t after = free_bytes();
    if (before)
        print_message("%d rounds: %zu bytes of the GPU free before, %zu after\n", rounds, before, after);
    assert_true(after >= before || before - after < (size_t)4 << 20);
}
/* ---- a Loop whose values stay on the device: y = 2 * tanh(x), again and again; all of them gathered ---- */
static hone_model *loop_model(int64_t trips) {
    msg b = {0}, g = {0};
    text(&b, 2, "body");
    add_node(&b, node("Identity", "go", "more")), add_node(&b, node("Tanh", "v", "t"));
    add_node(&b, node("Add", "t t", "r")), add_node(&b, node("Exp", "r", "s"));
    add_input(&b, "i", 7, ""), add_input(&b, "go", 9, ""), add_input(&b, "v", 1, "64 5");
    sub(&b, 12, value_info("more", 9, "")), add_output(&b, "r"), add_output(&b, "s");
    sub(&g, 5, ints("m", "", &trips, 1)), sub(&g, 5, tensor_raw("c", 9, "", &(char){1}, 1));
    add_input(&g, "x", 1, "64 5");
    add_node(&g, with(node("Loop", "m c x", "y all"), attr_sub("body", 5, 6, b)));
    add_output(&g, "y"), add_output(&g, "all");
    msg m = model_of(g, 18);
    hone_model *out = NULL;
    if (hone_model_load_memory(m.at, m.n, &out)) fail_msg("%s", hone_error());
    free(m.at);
    return out;
}
static void loop_stays(void **state) {
    (void)state;
    enum { BYTES = ROWS * COLUMNS * 4 };
    for (int trips = 2; trips < 60; trips += 50) {
        hone_model *m = loop_model(trips);
        hone_session *there = session(m, device()), *here = there ? session(m, NULL) : NULL;
        if (!there) {
            hone_model_free(m);
            skip();
        }
        const inputs in = drawn(3);
        hone_value *a[2] = {0}, *b[2] = {0};
        if (hone_session_run(there, (hone_value *[]){in.x}, a)) fail_msg("%s", hone_error());
        if (hone_session_run(here, (hone_value *[]){in.x}, b)) fail_msg("%s", hone_error());
        assert_true(close_enough(a[0], b[0]));
        for (int64_t k = 0; k < (int64_t)trips * ROWS * COLUMNS; k += 7)
            assert_float_equal(hone_value_number(a[1], k), hone_value_number(b[1], k), 1e-5);
        char *report = NULL, want[200];
        assert_int_equal(hone_session_report(there, "copies", &report), HONE_OK);
        snprintf(want, sizeof want,
                 "\"in_bytes\": %d, \"out_bytes\": %d, \"across_bytes\": 0, \"within_bytes\": %d", BYTES,
                 BYTES * (1 + trips), BYTES * trips);
        if (!strstr(report, want)) fail_msg("%d iterations: %s", trips, report);
        hone_text_release(report);
        for (int k = 0; k < 2; k++) hone_value_free(a[k]), hone_value_free(b[k]);
        release(in);
        hone_session_free(there), hone_session_free(here), hone_model_free(m);
    }
}
/* What is missing or impossible is an answer, as everywhere in hone.h, and no crash. */
static void nothing_and_nonsense(void **state) {
    char *text = NULL;
    hone_model *m = NULL;
    hone_session *s = NULL;
    hone_value *v = NULL, *cast = NULL;
    assert_int_equal(hone_session_run(NULL, NULL, NULL), HONE_BAD_INPUT);
    assert_int_equal(hone_session_report(NULL, "steps", &text), HONE_BAD_INPUT);
    assert_int_equal(hone_model_report(NULL, "summary", &text), HONE_BAD_INPUT);
    assert_int_equal(hone_model_explain(NULL, "0", 0, &text), HONE_BAD_INPUT);
    assert_int_equal(hone_model_save(NULL, "x.onnx"), HONE_BAD_INPUT);
    assert_int_equal(hone_model_inputs(NULL), 0);
    assert_null(hone_model_output(NULL, 0));
    assert_int_equal(hone_model_load("zoo:squeezenet1_1?image=32&classes=10", &m), HONE_OK);
    const hone_options wrong[] = {{.threads = -5},  {.threads = 9999},   {.plans = -1},
                                  {.limit_ms = -1}, {.limit_bytes = -1}, {.profile = 4}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        assert_int_equal(hone_session_create(m, &wrong[k], &s), HONE_BAD_INPUT);
    assert_null(s);
    setenv("HONE_CPU", "bogus", 1);
    assert_int_equal(hone_session_create(m, NULL, &s), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_error(), "baseline"));
    unsetenv("HONE_CPU");
    /* Bare, a model says what goes in and out, and no more. */
    assert_int_equal(hone_session_create(m, NULL, &s), HONE_OK);
    assert_int_equal(hone_model_bare(NULL), HONE_BAD_INPUT);
    assert_int_equal(hone_model_bare(m), HONE_BAD_INPUT); /* a session holds it */
    hone_session_free(s), s = NULL;
    assert_int_equal(hone_model_bare(m), HONE_OK);
    assert_int_equal(hone_model_input(m, 0)->rank, 4);
    assert_int_equal(hone_session_create(m, NULL, &s), HONE_BAD_INPUT);
    assert_int_equal(hone_model_report(m, "summary", &text), HONE_BAD_INPUT);
    assert_int_equal(hone_model_explain(m, "0", 0, &text), HONE_BAD_INPUT);
    assert_int_equal(hone_model_save(m, "x.onnx"), HONE_BAD_INPUT);
    hone_model_free(m);
    /* A conversion keeps every number, or says which it cannot keep. */
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F64, (int64_t[]){3}, 1, &v), HONE_OK);
    double *x = hone_value_data(v);
    x[0] = -1, x[1] = 255, x[2] = 0.5;
    assert_int_equal(hone_value_cast(v, HONE_DTYPE_I64, &cast), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_error(), "element 2 is 0.5"));
    x[2] = 0;
    assert_int_equal(hone_value_cast(v, HONE_DTYPE_U8, &cast), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_error(), "element 0 is -1"));
    assert_int_equal(hone_value_cast(v, HONE_DTYPE_U64, &cast), HONE_BAD_INPUT);
    assert_int_equal(hone_value_cast(v, HONE_DTYPE_I16, &cast), HONE_OK);
    assert_float_equal(hone_value_number(cast, 1), 255, 0);
    hone_value_free(cast);
    x[1] = 1e9;
    assert_int_equal(hone_value_cast(v, HONE_DTYPE_F16, &cast), HONE_BAD_INPUT);
    hone_value_free(v);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(several), cmocka_unit_test(again),
                                       cmocka_unit_test(loop_stays), cmocka_unit_test(nothing_and_nonsense)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
