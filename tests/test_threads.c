/* SPDX-License-Identifier: Apache-2.0
   Many threads, and many rounds, through the public interface. Four threads with a session each on one
   compiled model: plans are made, thrown away and run at the same time, and every answer is the one that a
   single thread got, bit for bit. Built with -DHONE_SANITIZE=thread this is the check for races; what a
   model fills once and then only reads (packed weights, instances, recipes) is filled at the start, so the
   threads start together, and on a fresh model again and again. Then load, run and unload: nothing may be
   left behind. */
#define _GNU_SOURCE
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/mem.h"
#include "hone/hone.h"
#include "random.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

enum { THREADS = 4, RUNS = 10000, SHAPES = 24, STARTS = 20, ROUNDS = 1000 };

static const char swish[] = "op my.ops.Swish 1 (x[I..]: T) -> y[I..]: T\n"
                            "  T: f16 bf16 f32 f64\n"
                            "  attr beta = 1.0\n"
                            "  y[i..] = x[i..] * sigmoid(beta * x[i..])\n";
static int add_op(void **state) {
    (void)state;
    return hone_ops_add("swish", swish, sizeof swish - 1) ? -1 : 0;
}
static const char *path_of(const char *name) {
    static char path[1024];
    const char *source = getenv("HONE_SOURCE_DIR");
    snprintf(path, sizeof path, "%s/examples/%s", source ? source : ".", name);
    return path;
}

/* ---- one model, many sessions ---- */

/* A model whose first dim is free, inputs of SHAPES sizes for it, and the answers of one thread alone. */
typedef struct {
    hone_model *model;
    int runs; /* of one thread */
    pthread_barrier_t start;
    hone_value *in[SHAPES], *want[SHAPES];
    atomic_int wrong;
    char why[256];
} shared;

static bool same(const hone_value *a, const hone_value *b) {
    return hone_value_bytes(a) == hone_value_bytes(b) && hone_value_rank(a) == hone_value_rank(b) &&
           !memcmp(hone_value_data((hone_value *)a), hone_value_data((hone_value *)b), hone_value_bytes(a));
}
static void *worker(void *arg) {
    static atomic_uint number;
    shared *w = arg;
    unsigned seed = atomic_fetch_add(&number, 1) * 2654435761u + 1;
    hone_session *session = NULL;
    hone_options o;
    hone_options_default(&o);
    /* few plans, so that they are made and thrown away all the time */
    o.plans = 5, o.threads = (int)(seed % 3);
    hone_status s = hone_session_create(w->model, &o, &session);
    hone_value *out = NULL;
    pthread_barrier_wait(&w->start);
    for (int k = 0; k < w->runs && !s; k++) {
        next_linear(&seed);
        int shape = (int)(seed >> 16) % SHAPES;
        if (shape > SHAPES - 4 && seed >> 30) shape = 0; /* the large ones less often */
        if (k % 3 == 0) hone_value_free(out), out = NULL;
        s = hone_session_run(session, &w->in[shape], &out);
        if (!s && !same(out, w->want[shape])) {
            atomic_fetch_add(&w->wrong, 1);
            break;
        }
    }
    if (s && !atomic_fetch_add(&w->wrong, 1)) snprintf(w->why, sizeof w->why, "%s", hone_error());
    hone_value_free(out);
    hone_session_free(session);
    return NULL;
}
static void together(const char *path, int runs, const int64_t *tail, int rank, int largest) {
    static shared w;
    memset(&w, 0, sizeof w);
    hone_model *model = NULL; /* of the answers: those of the threads are fresh */
    hone_session *alone = NULL;
    hone_options o;
    hone_options_default(&o);
    o.threads = 1;
    if (hone_model_load(path, &model)) fail_msg("%s", hone_error());
    assert_int_equal(hone_session_create(model, &o, &alone), HONE_OK);
    hone_model_free(model); /* the session holds it */
    for (int k = 0; k < SHAPES; k++) {
        int64_t dims[4] = {k < SHAPES - 4 ? k + 1 : largest - k, tail[0], tail[1], tail[2]};
        assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, dims, rank, &w.in[k]), HONE_OK);
        float *at = hone_value_data(w.in[k]);
        for (int64_t q = 0; q < hone_value_elements(w.in[k]); q++)
            at[q] = (float)((q * 37 + k * 11) % 101) / 50.0f - 1.0f;
        if (hone_session_run(alone, &w.in[k], &w.want[k])) fail_msg("%s", hone_error());
    }
    w.runs = runs / THREADS / STARTS;
    for (int round = 0; round < STARTS && !w.wrong; round++) {
        pthread_t thread[THREADS];
        if (hone_model_load(path, &w.model)) fail_msg("%s", hone_error());
        assert_int_equal(pthread_barrier_init(&w.start, NULL, THREADS), 0);
        for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_create(&thread[k], NULL, worker, &w), 0);
        for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
        pthread_barrier_destroy(&w.start);
        hone_model_free(w.model);
    }
    for (int k = 0; k < SHAPES; k++) hone_value_free(w.in[k]), hone_value_free(w.want[k]);
    hone_session_free(alone);
    if (w.wrong)
        fail_msg("%d threads went wrong: %s", w.wrong,
                 w.why[0] ? w.why : "another answer than a thread alone");
}
static void small_model(void **state) {
    (void)state;
    together(path_of("user_op/model.onnx"), RUNS, (int64_t[]){8, 0, 0}, 2, 3000);
}
static void convolutions(void **state) {
    (void)state;
    together(path_of("digits/model.onnx"), SANITIZED ? 160 : 1600, (int64_t[]){1, 28, 28}, 4, 60);
}

/* ---- a session is one thread's ---- */

typedef struct {
    hone_session *session;
    hone_value *in;
    atomic_int ran, refused, other;
} crowd;
static void *pusher(void *arg) {
    crowd *c = arg;
    for (int k = 0; k < 200; k++) {
        hone_value *out = NULL;
        hone_status s = hone_session_run(c->session, &c->in, &out);
        atomic_int *count = !s                                                               ? &c->ran
                            : s == HONE_BAD_INPUT && strstr(hone_error(), "running already") ? &c->refused
                                                                                             : &c->other;
        atomic_fetch_add(count, 1);
        hone_value_free(out);
    }
    return NULL;
}
static void one_session(void **state) {
    (void)state;
    crowd c = {0};
    hone_model *model = NULL;
    pthread_t thread[THREADS];
    assert_int_equal(hone_model_load(path_of("user_op/model.onnx"), &model), HONE_OK);
    assert_int_equal(hone_session_create(model, NULL, &c.session), HONE_OK);
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, (int64_t[]){500, 8}, 2, &c.in), HONE_OK);
    for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_create(&thread[k], NULL, pusher, &c), 0);
    for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
    assert_int_equal(c.ran + c.refused, THREADS * 200);
    assert_true(c.ran > 0 && c.other == 0);
    hone_value_free(c.in);
    hone_session_free(c.session);
    hone_model_free(model);
}

/* ---- loading, and adding ops, at once ---- */

static void *loader(void *arg) {
    atomic_int *wrong = arg;
    static atomic_int number;
    int me = atomic_fetch_add(&number, 1);
    for (int k = 0; k < 20; k++) {
        char row[160];
        hone_model *model = NULL;
        int n = snprintf(row, sizeof row,
                         "op threads.Op%d 1 (x[I..]: f32) -> y[I..]: f32\n  y[i..] = x[i..] + %d\n",
                         me * 100 + k, k);
        if (hone_ops_add("row", row, (size_t)n)) atomic_fetch_add(wrong, 1);
        if (hone_ops_add("swish", swish, sizeof swish - 1)) atomic_fetch_add(wrong, 1); /* the same again */
        char path[1024];
        const char *source = getenv("HONE_SOURCE_DIR");
        snprintf(path, sizeof path, "%s/examples/user_op/model.onnx", source ? source : ".");
        if (hone_model_load(path, &model)) atomic_fetch_add(wrong, 1);
        hone_model_free(model);
    }
    return NULL;
}
static void loading(void **state) {
    (void)state;
    atomic_int wrong = 0;
    pthread_t thread[THREADS];
    for (int k = 0; k < THREADS; k++) assert_int_equal(pthread_create(&thread[k], NULL, loader, &wrong), 0);
    for (int k = 0; k < THREADS; k++) pthread_join(thread[k], NULL);
    assert_int_equal(wrong, 0);
}

/* ---- rounds ---- */

static long resident_kb(void) {
    long pages = 0;
    FILE *f = fopen("/proc/self/statm", "r");
    if (!f || fscanf(f, "%*d %ld", &pages) != 1) pages = 0;
    if (f) fclose(f);
    return pages * (sysconf(_SC_PAGESIZE) / 1024);
}
static int mappings(void) {
    int n = 0, c;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && (c = fgetc(f)) != EOF) n += c == '\n';
    if (f) fclose(f);
    return n;
}
static void round_of(const char *path, hone_value *in) {
    hone_model *model = NULL;
    hone_session *session = NULL;
    hone_value *out = NULL;
    char *report = NULL;
    if (hone_model_load(path, &model)) fail_msg("%s", hone_error());
    assert_int_equal(hone_session_create(model, NULL, &session), HONE_OK);
    assert_int_equal(hone_session_run(session, &in, &out), HONE_OK);
    assert_int_equal(hone_session_report(session, "memory", &report), HONE_OK);
    hone_text_release(report);
    hone_value_free(out);
    hone_session_free(session);
    hone_model_free(model);
}
static void rounds(void **state) {
    (void)state;
    const char *path = path_of("digits/model.onnx");
    hone_value *in = NULL;
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, (int64_t[]){2, 1, 28, 28}, 4, &in), HONE_OK);
    uint64_t live = 0;
    long kb = 0;
    int maps = 0;
    for (int k = 0; k < (SANITIZED ? ROUNDS / 10 : ROUNDS); k++) {
        /* the heap has its size by then */
        if (k == 50) live = hone_alloc_live_bytes(), kb = resident_kb(), maps = mappings();
        round_of(path, in);
    }
    assert_int_equal(hone_alloc_live_bytes(), live);
    if (!SANITIZED) { /* theirs keep what is freed */
        long grown = resident_kb() - kb;
        if (grown > 1024) fail_msg("%ld KB more after %d rounds", grown, ROUNDS);
        assert_true(mappings() <= maps + 4);
    }
    hone_value_free(in);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_model), cmocka_unit_test(convolutions), cmocka_unit_test(one_session),
        cmocka_unit_test(loading),     cmocka_unit_test(rounds),
    };
    return cmocka_run_group_tests(tests, add_op, NULL);
}
