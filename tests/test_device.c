/* SPDX-License-Identifier: Apache-2.0
   The table of devices: two more rows, made here, through which models run to the same bits. One runs the
   CPU's steps alone and in its own order, tiles backwards from one that is drawn, scratch full of ones; the
   other has no tactic but the definition. So plan/ and run/ go through the table and nothing else, and steps
   hold to what they promise: any order of tiles, no scratch that is trusted. Both have the host's memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/flush.h"
#include "base/thread.h"
#include "run/exec.h"
#include "random.h"

static uint64_t random_state = 7;
static uint64_t draw(uint64_t below) { return next_random(&random_state) % below; }

/* ---- two rows ------------------------------------------------------------------------------------------ */
struct hone_queue {
    void *scratch;
    size_t bytes;
};
static int opened, closed, bound, joined, segments, sealed;
static hone_status open_queue(const hone_device *d, int number, hone_queue **out) {
    (void)d, (void)number;
    *out = hone_alloc(sizeof **out);
    opened += *out != NULL;
    return *out ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a session");
}
static void close_queue(hone_queue *q) {
    if (!q) return;
    hone_free(q->scratch), hone_free(q);
    closed++;
}
/* All tiles of a round, backwards from a tile that is drawn. */
static hone_status run_round(hone_queue *q, const hone_segment *g, const hone_step *s, int64_t round) {
    const int64_t n = s->tiles, at = n > 1 ? (int64_t)draw((uint64_t)n) : 0;
    for (int64_t k = 0; k < n; k++) {
        memset(q->scratch, 0xff, s->scratch_bytes);
        HONE_TRY(s->tile(s, g->base, round * n + (at + n - k) % n, q->scratch));
    }
    return HONE_OK;
}
static hone_status run_step(hone_queue *q, const hone_segment *g, const hone_step *s) {
    if (s->host) return g->host(g->arg, s);
    if (q->bytes < s->scratch_bytes) {
        hone_free(q->scratch);
        if (!(q->scratch = hone_alloc_raw(s->scratch_bytes)))
            return hone_fail(HONE_NO_MEMORY, "no memory for a run");
        q->bytes = s->scratch_bytes;
    }
    const uint64_t mode = hone_float_mode();
    if (s->flush) hone_float_set(mode | HONE_FLUSH);
    hone_status done = HONE_OK;
    for (int64_t r = 0; r < (s->rounds ? s->rounds : 1) && !done; r++) done = run_round(q, g, s, r);
    hone_float_set(mode);
    return done ? hone_fail_at(done, "node '%s' (%s): ", s->of ? s->of->name : "",
                               s->of ? s->of->program->name : "")
                : HONE_OK;
}
static hone_status seal(hone_arena *a, const hone_step *s, int n, const void **sealed) {
    int *count = HONE_NEW(a, int);
    for (int k = 0; k < n; k++) /* memory is placed */
        for (int r = 0; s[k].access && r < s[k].access->n_ref; r++)
            if (s[k].ref[r].base == HONE_BASE_ARENA) assert_true(s[k].ref[r].block < -1);
    return (*sealed = count) ? *count = n, HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a plan");
}
static hone_status run_segment(hone_queue *q, const hone_segment *g) {
    segments++;
    if (g->sealed) assert_int_equal(*(const int *)g->sealed, g->n), sealed++;
    for (int k = 0; k < g->n; k++) {
        if (g->until && hone_clock_ns() > g->until) return hone_fail(HONE_BAD_INPUT, "too late");
        HONE_TRY(run_step(q, g, g->step + k));
    }
    return HONE_OK;
}
static hone_status bind_as_cpu(hone_steps *s, const hone_device_call *c) {
    bound++;
    return hone_devices(0)->bind(s, c);
}
static hone_status join_as_cpu(hone_steps *s) {
    joined++;
    return hone_devices(0)->join(s);
}
static hone_status bind_definition(hone_steps *s, const hone_device_call *c) {
    hone_device_call plain = *c;
    bound++;
    plain.how.interpret = true;
    return hone_devices(0)->bind(s, &plain);
}
static hone_status join_nothing(hone_steps *s) {
    (void)s;
    joined++;
    return HONE_OK;
}
static void describe(hone_text *t) { hone_text_put(t, ", \"kernels\": []"); }
static const hone_device by_lot = {.name = "lot",
                                   .describe = describe,
                                   .bind = bind_as_cpu,
                                   .join = join_as_cpu,
                                   .seal = seal,
                                   .open = open_queue,
                                   .close = close_queue,
                                   .run = run_segment},
                         definition = {.name = "definition",
                                       .describe = describe,
                                       .bind = bind_definition,
                                       .join = join_nothing,
                                       .open = open_queue,
                                       .close = close_queue,
                                       .run = run_segment};
static const hone_units lots = {.unit = {{&by_lot, 0}}, .n = 1},
                        definitions = {.unit = {{&definition, 0}}, .n = 1};

/* ---- models -------------------------------------------------------------------------------------------- */
static const struct {
    const char *text;
    int64_t dim[4];
    int rank;
} models[] = {
    {"graph rows opset 18 (x: f32[n, 8]) -> y, z { v: f32[8, 8] = random(1, -1, 1); u: f32[16, 8] = "
     "random(2, -1, 1); last: i64[1] = "
     "{-1};\n"
     "  a = MatMul(x, v); b = Softmax(a) {axis: -1}; j = Concat(a, b) {axis: 1}; c = MatMul(j, u); z = "
     "Add(c, a);\n"
     "  s = ReduceSum(c, last) {keepdims: 1}; y = Div(c, s); }\n",
     {37, 8},
     2},
    {"graph windows opset 18 (x: f32[n, 3, 20, 20]) -> y { w: f32[8, 3, 3, 3] = random(1, -1, 1); d: f32[8, "
     "1, 3, 3] = random(2, -1, 1);\n"
     "  e: f32[16, 8, 3, 3] = random(3, -1, 1); a = Conv(x, w) {pads: [1, 1, 1, 1]}; b = Relu(a);\n"
     "  c = Conv(b, d) {group: 8, pads: [1, 1, 1, 1]}; f = Relu(c); g = Conv(f, e); h = MaxPool(g) "
     "{kernel_shape: [2, 2], strides: [2, "
     "2]};\n"
     "  y = GlobalAveragePool(h); }\n",
     {3, 3, 20, 20},
     4},
    {"graph cut opset 18 (x: f32[n]) -> y, z { zero: f32[] = {0}; m1: i64[1] = {-1}; e = Exp(x); p = "
     "Greater(x, zero); at = NonZero(p);\n"
     "  i = Reshape(at, m1); g = Gather(e, i); k = Softmax(g) {axis: 0}; h = ReduceMax(e); c = Greater(h, "
     "zero);\n"
     "  y = Mul(k, h); z = If(c; g, e) {then_branch: graph t (; g: f32[], e: f32[]) -> r { r = Add(g, g); "
     "},\n"
     "  else_branch: graph f (; g: f32[], e: f32[]) -> r { r = Sub(e, e); }}; }\n",
     {23},
     1},
    {"graph loop opset 18 (x: f32[n, 4]) -> y, all { m: i64[] = {5}; c: bool[] = {1}; w: f32[4, 4] = "
     "random(1, -1, 1);\n"
     "  y, all = Loop(m, c, x; w) {body: graph b (i: i64[], go: bool[], v: f32[n, 4]; w: f32[4, 4]) -> go, "
     "r, s {\n"
     "    p = MatMul(v, w); r = Tanh(p); s = Softmax(r) {axis: -1}; }}; }\n",
     {6, 4},
     2},
};
enum { MOST_OUTPUTS = 4 };
static void run(const hone_compiled *c, hone_exec_options o, hone_value *in, hone_value **out) {
    hone_exec *e = NULL;
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    for (int again = 0; again < 2; again++) { /* a plan that is new, and one that is known */
        for (int k = 0; k < MOST_OUTPUTS; k++) hone_value_drop(out[k]), out[k] = NULL;
        if (hone_exec_run(e, &in, out)) fail_msg("%s", hone_fail_text());
    }
    hone_exec_destroy(e);
}
static void same(hone_value **a, hone_value **b, int n) {
    for (int k = 0; k < n; k++) {
        assert_int_equal(a[k]->rank, b[k]->rank);
        for (int d = 0; d < a[k]->rank; d++) assert_int_equal(a[k]->dim[d], b[k]->dim[d]);
        if (a[k]->bytes) assert_memory_equal(a[k]->data, b[k]->data, a[k]->bytes);
    }
    for (int k = 0; k < n; k++) hone_value_drop(a[k]), hone_value_drop(b[k]);
}
static void same_bits(void **state) {
    (void)state;
    for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
        hone_graph *g = NULL;
        hone_compiled *c = NULL;
        if (hone_graph_parse(models[m].text, strlen(models[m].text), &g) || hone_compile(g, &c))
            fail_msg("%s\n%s", hone_fail_text(), models[m].text);
        hone_value *x = NULL;
        assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, models[m].dim, models[m].rank, &x), HONE_OK);
        const int64_t n = hone_value_count(x);
        for (int64_t k = 0; k < n; k++) ((float *)x->data)[k] = (float)draw(2001) / 1000 - 1;
        opened = closed = bound = joined = segments = sealed = 0;
        for (int threads = 1; threads <= 2; threads++) {
            hone_value *a[MOST_OUTPUTS] = {0}, *b[MOST_OUTPUTS] = {0};
            run(c, (hone_exec_options){.threads = threads}, x, a);
            if (threads == 1) assert_int_equal(opened, 0); /* that was the first row */
            run(c, (hone_exec_options){.threads = threads, .units = &lots}, x, b);
            same(a, b, c->graph->out.n);
        }
        hone_value *a[MOST_OUTPUTS] = {0}, *b[MOST_OUTPUTS] = {0};
        run(c, (hone_exec_options){.threads = 1, .interpret = true}, x, a);
        run(c, (hone_exec_options){.threads = 1, .units = &definitions}, x, b);
        same(a, b, c->graph->out.n);
        assert_true(opened >= 3 && opened == closed && bound > 0 && joined > 0 && segments >= 6 &&
                    sealed >= 4);
        hone_value_drop(x);
        hone_compiled_destroy(c);
    }
}
static void rows(void **state) {
    (void)state;
    assert_string_equal(hone_devices(0)->name, "cpu");
    assert_ptr_equal(hone_device_find("cpu"), hone_devices(0));
    assert_null(hone_device_find("lot")); /* not of the library */
    assert_null(hone_devices(-1));
    int n = 0;
    while (hone_devices(n)) n++;
    assert_null(hone_devices(n + 1));
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(rows), cmocka_unit_test(same_bits)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
