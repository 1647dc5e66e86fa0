/* SPDX-License-Identifier: Apache-2.0
   Recorded launches (device/captured.h). First the book-keeping alone: which run records, sixteen graphs at
   most, which of them goes. Then sessions on a row that is OpenCL's but for its launches, which it can
   record: it keeps their arguments by value and launches them again when they are replayed, as a CUDA graph
   does. So what a replay does with memory that has moved, plans that have gone and runs that fail is seen
   without an NVIDIA GPU. Skipped where there is no OpenCL device. */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/printed.h"
#include "hone/hone.h"
#include "onnx_write.h"

/* ---- the book-keeping ---------------------------------------------------------------------------------- */
static int begun, ended, replayed, freed, launched;
static hone_status counted_begin(void *queue) {
    (void)queue;
    begun++;
    return HONE_OK;
}
static hone_status counted_end(void *queue, void **graph) {
    (void)queue;
    *graph = malloc(1);
    return ended++, HONE_OK;
}
static hone_status counted_replay(void *queue, void *graph) {
    (void)queue, (void)graph;
    return replayed++, HONE_OK;
}
static void counted_free(void *queue, void *graph) {
    (void)queue;
    free(graph);
    freed++;
}
static const hone_capture counted = {counted_begin, counted_end, counted_replay, counted_free};
static hone_status one_launch(void *arg) {
    (void)arg;
    return launched++, HONE_OK;
}
static void run_key(hone_captured *c, uint64_t k) {
    uint64_t at[3] = {k, 7, k * k};
    const hone_capture_key key = {.at = at, .n = 3, .room = 3};
    assert_int_equal(hone_captured_run(c, &key, one_launch, NULL), HONE_OK);
}
static void counts(void **state) {
    (void)state;
    hone_captured *c = hone_captured_create(&counted, NULL);
    begun = ended = replayed = freed = launched = 0;
    for (int k = 0; k < 5; k++) run_key(c, 1);
    assert_int_equal(begun, 1);
    assert_int_equal(replayed, 3); /* the third run and those after it */
    assert_int_equal(launched, 3); /* two plain ones, and the one that was recorded */
    for (int round = 0; round < 3; round++)
        for (uint64_t k = 2; k <= 17; k++) run_key(c, k); /* 17 in all */
    assert_int_equal(hone_captured_graphs(c), 16);
    /* 1 was the least recently used: it went, and comes back for another */
    for (int round = 0; round < 3; round++) run_key(c, 1);
    assert_int_equal(hone_captured_graphs(c), 16);
    assert_int_equal(freed, 2);
    hone_captured_destroy(c);
    assert_int_equal(freed, ended);

    /* a turn of twenty: sixteen are replayed every time, none is thrown out */
    c = hone_captured_create(&counted, NULL);
    begun = ended = replayed = freed = 0;
    for (int round = 0; round < 10; round++)
        for (uint64_t k = 0; k < 20; k++) run_key(c, k);
    assert_int_equal(begun, 16);
    assert_int_equal(freed, 0);
    assert_int_equal(replayed, 16 * 8);
    for (uint64_t k = 100; k < 1000; k++) run_key(c, k); /* keys that never come again do no harm */
    for (uint64_t k = 0; k < 16; k++) run_key(c, k);
    assert_int_equal(replayed, 16 * 9);
    hone_captured_destroy(c);
}

/* ---- a row that records -------------------------------------------------------------------------------- */
extern hone_printed hone_printed_opencl;
typedef struct recorded {
    void *kernel;
    int64_t groups;
    int threads, n;
    hone_printed_arg *arg;
    struct recorded *next;
} recorded;
typedef struct {
    void *inner;
    bool recording;
    recorded *first, **last;
} queue;
static atomic_int plain, records, replays, graphs_now;
static atomic_int begin_fails, end_fails; /* that so many fail */
static const hone_printed_driver *below(void) { return hone_printed_opencl.driver; }
static hone_status open_queue(void *gpu, int number, void **out) {
    queue *q = calloc(1, sizeof *q);
    *out = q;
    return below()->queue(gpu, number, &q->inner);
}
static void close_queue(void *at) {
    queue *q = at;
    assert_false(q->recording);
    below()->close(q->inner);
    free(q);
}
static hone_status launch(void *at, void *kernel, int64_t groups, int threads, const hone_printed_arg *arg,
                          int n) {
    queue *q = at;
    if (!q->recording) {
        plain++;
        return below()->launch(q->inner, kernel, groups, threads, arg, n);
    }
    recorded *r = malloc(sizeof *r);
    *r = (recorded){kernel, groups, threads, n, malloc(sizeof *arg * (size_t)(n + 1)), NULL};
    memcpy(r->arg, arg, sizeof *arg * (size_t)n);
    *q->last = r, q->last = &r->next;
    return HONE_OK;
}
static hone_status copy_in(void *at, void *to, int64_t offset, const void *from, size_t bytes) {
    assert_false(((queue *)at)->recording);
    return below()->copy_in(((queue *)at)->inner, to, offset, from, bytes);
}
static hone_status copy_out(void *at, void *to, void *from, int64_t offset, size_t bytes) {
    assert_false(((queue *)at)->recording);
    return below()->copy_out(((queue *)at)->inner, to, from, offset, bytes);
}
static hone_status wait_queue(void *at) {
    assert_false(((queue *)at)->recording);
    return below()->wait(((queue *)at)->inner);
}
static hone_status peek(void *at, void *from, uint32_t *to) { return copy_out(at, to, from, 0, sizeof *to); }
static hone_status begin(void *at) {
    queue *q = at;
    if (begin_fails > 0) {
        begin_fails--;
        return hone_fail(HONE_IO, "no recording today");
    }
    q->recording = true, q->first = NULL, q->last = &q->first;
    return HONE_OK;
}
static void forget(recorded *r) {
    for (recorded *next; r; r = next) next = r->next, free(r->arg), free(r);
}
static hone_status end(void *at, void **graph) {
    queue *q = at;
    q->recording = false;
    if (end_fails > 0) {
        forget(q->first);
        end_fails--;
        return hone_fail(HONE_IO, "the recording is spoilt");
    }
    *graph = q->first;
    records++;
    graphs_now++;
    return HONE_OK;
}
static hone_status replay(void *at, void *graph) {
    replays++;
    for (const recorded *r = graph; r; r = r->next)
        HONE_TRY(below()->launch(((queue *)at)->inner, r->kernel, r->groups, r->threads, r->arg, r->n));
    return HONE_OK;
}
static void graph_free(void *at, void *graph) {
    (void)at;
    forget(graph);
    graphs_now--;
}
static const hone_capture capture = {begin, end, replay, graph_free};
static hone_printed_driver driver;
static hone_printed row = {.row = HONE_PRINTED_ROW("recorder", false, "OpenCL", 0), .driver = &driver};
static bool there;
static int set_up(void **state) {
    (void)state;
    /* where each block has memory of its own, addresses change from run to run, and nothing is replayed */
    setenv("HONE_GUARD", "0", 1);
    driver = *below();
    driver.queue = open_queue, driver.close = close_queue, driver.launch = launch, driver.copy_in = copy_in,
    driver.copy_out = copy_out;
    driver.wait = wait_queue, driver.peek = peek, driver.capture = &capture;
    there = driver.count() > 0;
    return hone_devices_add(&row.row) != HONE_OK;
}
#define NEEDS_DEVICE                                           \
    if (!there) {                                              \
        print_message("SKIPPED: there is no OpenCL device\n"); \
        skip();                                                \
    }

/* y = Softmax(Gather(x, at) + x), z = TopK's places of the rows' sums: an index that may be wrong, several
   launches, a host step with launches after it. rows are free. */
static hone_model *model(bool host) {
    msg g = {0};
    const int64_t k = 2, axis = 1;
    add_input(&g, "x", 1, "N 5");
    add_input(&g, "at", 7, "N");
    sub(&g, 5, ints("k", "1", &k, 1)), sub(&g, 5, ints("axis", "1", &axis, 1));
    add_node(&g, with(node("Gather", "x at", "g"), attr_int("axis", 0)));
    add_node(&g, node("Add", "g x", "s"));
    add_node(&g, with(node("Softmax", "s", "p"), attr_int("axis", -1)));
    add_node(&g, with(node("Softmax", "p", "q"), attr_int("axis", 0)));
    add_node(&g, node("ReduceMax", "q axis", "m"));
    add_node(&g, node("Mul", "q m", "y"));
    if (host) { /* Det runs on the host */
        add_node(&g, node("Transpose", "y", "t"));
        add_node(&g, node("MatMul", "t y", "square"));
        add_node(&g, node("Det", "square", "d"));
        add_node(&g, node("Mul", "y d", "e"));
        add_node(&g, with(node("Softmax", "e", "f"), attr_int("axis", 0)));
        add_node(&g, with(node("Softmax", "f", "z"), attr_int("axis", 1)));
        add_output(&g, "z");
    } else add_output(&g, "y");
    msg m = model_of(g, 18);
    hone_model *out = NULL;
    if (hone_model_load_memory(m.at, m.n, &out)) fail_msg("%s", hone_error());
    free(m.at);
    return out;
}
static hone_session *session(const hone_model *m, const char *device, int plans, int stay) {
    hone_options o;
    hone_session *out = NULL;
    hone_options_default(&o);
    o.device = device, o.threads = 1, o.plans = plans, o.stay = stay;
    if (hone_session_create(m, &o, &out)) fail_msg("%s", hone_error());
    return out;
}
typedef struct {
    hone_value *x, *at;
} inputs;
static inputs drawn(int rows, unsigned seed) {
    inputs in = {0};
    assert_int_equal(hone_tensor_create(HONE_DTYPE_F32, (int64_t[]){rows, 5}, 2, &in.x), HONE_OK);
    assert_int_equal(hone_tensor_create(HONE_DTYPE_I64, (int64_t[]){rows}, 1, &in.at), HONE_OK);
    for (int k = 0; k < rows * 5; k++)
        ((float *)hone_value_data(in.x))[k] = (float)((k * 7 + (int)seed * 13) % 31) / 8;
    for (int k = 0; k < rows; k++) ((int64_t *)hone_value_data(in.at))[k] = (k * 5 + (int)seed) % rows;
    return in;
}
static void release(inputs in) { hone_value_free(in.x), hone_value_free(in.at); }
static bool same(hone_value *a, hone_value *b) {
    const float *p = hone_value_data(a), *q = hone_value_data(b);
    for (int64_t k = 0; k < hone_value_elements(a); k++)
        if (!(p[k] - q[k] < 1e-6f && q[k] - p[k] < 1e-6f)) return false;
    return true;
}
/* A run here and there; the number of wrong ones. */
static int both(hone_session *there_, hone_session *here, int rows, unsigned seed) {
    const inputs in = drawn(rows, seed);
    hone_value *a = NULL, *b = NULL;
    int wrong = hone_session_run(there_, (hone_value *[]){in.x, in.at}, &a) ||
                hone_session_run(here, (hone_value *[]){in.x, in.at}, &b) || !same(a, b);
    hone_value_free(a), hone_value_free(b);
    release(in);
    return wrong;
}
/* larger ones make arenas move; plans go where only two are kept; host steps cut segments */
static void shapes(void **state) {
    (void)state;
    NEEDS_DEVICE
    for (int how = 0; how < 4; how++) {
        hone_model *m = model(how & 1);
        hone_session *a = session(m, "recorder", how & 2 ? 2 : 0, 0), *b = session(m, NULL, 0, 0);
        replays = records = 0;
        unsigned seed = 1;
        for (int k = 0; k < 5; k++) assert_int_equal(both(a, b, 40, seed++), 0);
        assert_int_equal(replays, how & 1 ? 6 : 3);
        for (int k = 0; k < 5; k++) assert_int_equal(both(a, b, 700, seed++), 0);
        for (int k = 0; k < 5; k++) assert_int_equal(both(a, b, 40, seed++), 0);
        for (int k = 0; k < 60; k++)
            assert_int_equal(both(a, b, 20 + (int)(seed * 7 % 5), seed + 1), 0), seed++;
        for (int k = 0; k < 25; k++)
            for (int q = 0; q < 3; q++) assert_int_equal(both(a, b, 50 + k, seed++), 0);
        assert_true(graphs_now <= 16);
        assert_true(replays > 30 && records > 10);
        hone_session_free(a), hone_session_free(b), hone_model_free(m);
        assert_int_equal(graphs_now, 0);
    }
}
static void fails(void **state) { /* what fails says where, from a replay too, and the next run is right */
    (void)state;
    NEEDS_DEVICE
    hone_model *m = model(false);
    hone_session *a = session(m, "recorder", 0, 0), *b = session(m, NULL, 0, 0);
    for (int round = 0; round < 8; round++) {
        inputs bad = drawn(40, (unsigned)round);
        ((int64_t *)hone_value_data(bad.at))[round] = 40 + round;
        hone_value *y = NULL;
        assert_int_equal(hone_session_run(a, (hone_value *[]){bad.x, bad.at}, &y), HONE_BAD_INPUT);
        char said[300];
        snprintf(said, sizeof said, "%s", hone_error());
        assert_int_equal(hone_session_run(b, (hone_value *[]){bad.x, bad.at}, &y), HONE_BAD_INPUT);
        assert_int_equal(strncmp(said, hone_error(), strcspn(said, ":")), 0); /* the node is the CPU's */
        assert_non_null(strstr(said, "outside of"));
        hone_value_free(y);
        release(bad);
        assert_int_equal(both(a, b, 40, (unsigned)round + 50), 0);
    }
    begin_fails = 1; /* what cannot be recorded is launched */
    const int had = records;
    for (int k = 0; k < 6; k++) assert_int_equal(both(a, b, 41, 9), 0);
    assert_int_equal(records, had);
    end_fails = 1;
    for (int k = 0; k < 6; k++) assert_int_equal(both(a, b, 42, 9), 0);
    assert_int_equal(records, had);
    for (int k = 0; k < 6; k++) assert_int_equal(both(a, b, 43, 9), 0);
    assert_int_equal(records, had + 1);
    hone_session_free(a), hone_session_free(b), hone_model_free(m);
}
/* outputs in memory of the device: two tensors in turn, then a new one every time */
static void stay(void **state) {
    (void)state;
    NEEDS_DEVICE
    hone_model *m = model(false);
    hone_session *a = session(m, "recorder", 0, 1), *b = session(m, NULL, 0, 0);
    hone_value *kept[2] = {0};
    replays = 0;
    for (int k = 0; k < 24; k++) {
        const inputs in = drawn(40, (unsigned)k);
        hone_value *y = k < 12 ? kept[k % 2] : NULL, *want = NULL, *back = NULL;
        assert_int_equal(hone_session_run(a, (hone_value *[]){in.x, in.at}, &y), HONE_OK);
        assert_int_equal(hone_session_run(b, (hone_value *[]){in.x, in.at}, &want), HONE_OK);
        assert_int_equal(hone_value_bring(y, "cpu", &back), HONE_OK);
        assert_true(same(back, want));
        hone_value_free(want), hone_value_free(back);
        if (k < 12) kept[k % 2] = y;
        else hone_value_free(y);
        release(in);
    }
    assert_true(replays >= 8); /* each of the two from its third run on */
    hone_value_free(kept[0]), hone_value_free(kept[1]);
    hone_session_free(a), hone_session_free(b), hone_model_free(m);
}
typedef struct {
    const hone_model *m;
    int wrong;
    unsigned seed;
} worker;
static void *work(void *arg) {
    worker *w = arg;
    hone_session *a = session(w->m, "recorder", 3, 0), *b = session(w->m, NULL, 0, 0);
    for (int k = 0; k < 120; k++)
        w->wrong += both(a, b, 30 + (int)((w->seed + (unsigned)k / 3) % 5), w->seed + (unsigned)k);
    hone_session_free(a), hone_session_free(b);
    return NULL;
}
static void threads(void **state) {
    (void)state;
    NEEDS_DEVICE
    hone_model *m = model(true);
    pthread_t thread[2];
    worker w[2] = {{m, 0, 1}, {m, 0, 77}};
    for (int k = 0; k < 2; k++) assert_int_equal(pthread_create(thread + k, NULL, work, w + k), 0);
    for (int k = 0; k < 2; k++) pthread_join(thread[k], NULL);
    assert_int_equal(w[0].wrong + w[1].wrong, 0);
    hone_model_free(m);
    assert_int_equal(graphs_now, 0);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(counts), cmocka_unit_test(shapes),
                                       cmocka_unit_test(fails), cmocka_unit_test(stay),
                                       cmocka_unit_test(threads)};
    return cmocka_run_group_tests(tests, set_up, NULL);
}
