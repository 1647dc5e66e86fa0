/* SPDX-License-Identifier: Apache-2.0
   The plan verifier: silent on plans as they are bound, random ones too, and every kind of fault, planted
   into a good plan, is found and named. Guard mode: the same bits, and a value that nobody wrote is not a
   number. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "plan/bind.h"
#include "plan/verify.h"
#include "run/exec.h"
#include "random.h"

static uint64_t random_state = 1;
static uint64_t draw(uint64_t below) { return next_random(&random_state) % below; }
static hone_compiled *compile(const char *text) {
    hone_graph *g = NULL;
    hone_compiled *c = NULL;
    if (hone_graph_parse(text, strlen(text), &g) || hone_compile(g, &c))
        fail_msg("%s\nin\n%s", hone_fail_text(), text);
    return c;
}
static hone_fact floats(int64_t rows, int64_t columns) {
    hone_fact f = hone_fact_unknown;
    f.tag = HONE_TAG_TENSOR, f.dtype = HONE_DTYPE_F32, f.rank = columns ? 2 : 1, f.dim[0] = rows,
    f.dim[1] = columns;
    return f;
}
static const hone_bind_options how = {.threads = 2};
static hone_plan *bind(const hone_compiled *c, const hone_fact *in, const hone_plan *after,
                       const hone_fact *wanted) {
    hone_plan *p = NULL;
    if (hone_bind(c, in, after, wanted, how, &p)) fail_msg("%s", hone_fail_text());
    return p;
}
static void silent(const hone_compiled *c, const hone_fact *in, const hone_plan *p) {
    if (hone_plan_verify(c, in, p)) fail_msg("%s", hone_fail_text());
}
static void found(const hone_compiled *c, const hone_fact *in, const hone_plan *p, const char *says) {
    if (hone_plan_verify(c, in, p) != HONE_BUG) fail_msg("not found: %s", says);
    if (!strstr(hone_fail_text(), says) || strchr(hone_fail_text(), '\n'))
        fail_msg("'%s' does not say: %s", hone_fail_text(), says);
}

/* ---- what faults are planted with ---------------------------------------------------------------------- */
/* the plan is ours */
static hone_ref *ref_of(const hone_plan *p, int step, int k) { return (hone_ref *)p->step[step].ref + k; }
/* A ref that the step touches so, in the arena. */
static int operand(const hone_step *s, bool writes) {
    for (int k = 0; k < s->access->n_ref; k++)
        if ((writes ? s->access->writes : s->access->reads) >> k & 1 && s->ref[k].base == HONE_BASE_ARENA)
            return k;
    return -1;
}
/* The first step, from `from` on, that reads or writes something in the arena. */
static int step_that(const hone_plan *p, bool writes, int from) {
    for (int k = from; k < p->n_step; k++)
        if (p->step[k].access && operand(p->step + k, writes) >= 0) return k;
    fail_msg("the plan has no such step");
    return -1;
}
/* Moves a block, wherever it is touched. Steps of one node share their refs. */
static void move(const hone_plan *p, int block, int64_t by) {
    for (int k = 0; k < p->n_step; k++) {
        bool seen = false;
        for (int q = 0; q < k; q++) seen |= p->step[q].ref == p->step[k].ref;
        for (int q = 0; !seen && p->step[k].access && q < p->step[k].access->n_ref; q++)
            if (p->step[k].ref[q].block == block) ref_of(p, k, q)->offset += by;
    }
}
/* From the first write of a block to its last read. */
static void life_of(const hone_plan *p, int block, int *first, int *last) {
    *first = p->n_step, *last = -1;
    for (int k = p->n_step - 1; k >= 0; k--)
        for (int q = 0; p->step[k].access && q < p->step[k].access->n_ref; q++) {
            if (p->step[k].ref[q].block != hone_block_placed(block)) continue;
            if (p->step[k].access->writes >> q & 1) *first = k;
            if (p->step[k].access->reads >> q & 1 && k > *last) *last = k;
        }
}
static void swap(const hone_plan *p, int k) {
    hone_step s = p->step[k];
    p->step[k] = p->step[k + 1], p->step[k + 1] = s;
}

static const char chain[] =
    "graph chain opset 18 (x: f32[n, 8]) -> y {\n"
    "  v: f32[8, 8] = random(1, -1, 1);\n  w: f32[8, 8] = random(2, -1, 1);\n  last: i64[1] = {-1};\n"
    "  a = MatMul(x, v);\n  b = Softmax(a) {axis: -1};\n  c = MatMul(b, w);\n  d = Softmax(c) {axis: -1};\n"
    "  e = MatMul(d, v);\n  f = Mul(e, a);\n  g = ReduceSum(f, last) {keepdims: 1};\n  h = Div(f, g);\n  y = "
    "MatMul(h, w);\n"
    "}\n";
static void planted(void **state) {
    (void)state;
    hone_compiled *c = compile(chain);
    const hone_fact in = floats(6, 8);
    hone_plan *p = bind(c, &in, NULL, NULL);
    silent(c, &in, p);
    assert_true(p->n_step >= 6 && p->n_block >= 4);
    /* order: what step k writes, step k + 1 reads */
    int k = step_that(p, true, 0);
    swap(p, k);
    found(c, &in, p, "which nobody wrote");
    swap(p, k);
    /* bounds: the last byte is one too far; the first before the arena */
    int q = operand(p->step + k, true);
    const hone_ref was = *ref_of(p, k, q);
    ref_of(p, k, q)->offset = p->arena_bytes - (int64_t)sizeof(float) * 6 * 8 + 4;
    found(c, &in, p, "of base 1, which has");
    ref_of(p, k, q)->offset = -64;
    found(c, &in, p, "of base 1, which has");
    /* where nobody may write: constants, inputs, what the plan computed */
    *ref_of(p, k, q) = (hone_ref){-1, -1, 0};
    found(c, &in, p, "only there to be read");
    *ref_of(p, k, q) = (hone_ref){HONE_BASE_FIRST, -1, 0};
    found(c, &in, p, "only there to be read");
    *ref_of(p, k, q) = (hone_ref){HONE_BASE_NONE, -1, 0};
    found(c, &in, p, "never placed");
    *ref_of(p, k, q) = (hone_ref){p->n_base, -1, 0};
    found(c, &in, p, "there is no base");
    *ref_of(p, k, q) = was;
    silent(c, &in, p);
    /* a constant that is not there, and one that is too small */
    for (k = 0; k < p->n_step; k++)
        for (q = 0; q < p->step[k].access->n_ref; q++)
            if (p->step[k].access->reads >> q & 1 && hone_base_is_constant(p->step[k].ref[q].base))
                goto reads;
reads:
    assert_true(k < p->n_step);
    const hone_ref constant = *ref_of(p, k, q);
    ref_of(p, k, q)->base = -1 - p->n_constant;
    found(c, &in, p, "there is no constant");
    *ref_of(p, k, q) = constant;
    /* a step that does not say what it does */
    const hone_access *access = p->step[k].access;
    p->step[k].access = NULL;
    found(c, &in, p, "does not say");
    p->step[k].access = access;
    /* the last step is missing */
    p->n_step--;
    found(c, &in, p, "after its last step, output 0");
    p->n_step++;
    silent(c, &in, p);
    hone_plan_destroy(p);
    hone_compiled_destroy(c);
}
static void overlapping(void **state) {
    (void)state;
    hone_compiled *c = compile(chain);
    const hone_fact in = floats(6, 8);
    hone_plan *p = bind(c, &in, NULL, NULL);
    int met = 0;
    for (int a = 0; a < p->n_block; a++) /* b begins while a is needed: one on the other */
        for (int b = 0; b < p->n_block; b++) {
            int begins, ends, from, to;
            life_of(p, a, &begins, &ends), life_of(p, b, &from, &to);
            if (a == b || from <= begins || from >= ends || to <= from) continue;
            const int64_t by = p->block[a].at - p->block[b].at;
            move(p, hone_block_placed(b), by);
            found(c, &in, p, "it reads byte");
            move(p, hone_block_placed(b), -by);
            met++;
        }
    assert_true(met > 0);
    silent(c, &in, p);
    /* in place, where the step does not say that it may */
    int in_place = 0;
    for (int k = 0; k < p->n_step; k++) {
        hone_step *s = p->step + k;
        const uint64_t was = s->in_place;
        const int to = operand(s, true), from = operand(s, false);
        if (to < 0 || from < 0 || s->ref[to].offset != s->ref[from].offset) continue;
        s->in_place = 0;
        found(c, &in, p, "where its own operand");
        s->in_place = was, in_place++;
    }
    assert_true(in_place > 0);
    hone_plan_destroy(p);
    hone_compiled_destroy(c);
}
static void parts_of_a_join(void **state) {
    (void)state;
    hone_compiled *c = compile(
        "graph joins opset 18 (x: f32[n, 8]) -> y {\n"
        "  v: f32[8, 8] = random(1, -1, 1);\n  w: f32[8, 8] = random(2, -1, 1);\n  u: f32[16, 8] = random(3, "
        "-1, 1);\n"
        "  a = MatMul(x, v);\n  b = MatMul(x, w);\n  j = Concat(a, b) {axis: 1};\n  y = MatMul(j, u);\n}\n");
    const hone_fact in = floats(6, 8);
    hone_plan *p = bind(c, &in, NULL, NULL);
    silent(c, &in, p);
    const int first = step_that(p, true, 0), second = step_that(p, true, first + 1);
    hone_ref *a = ref_of(p, first, operand(p->step + first, true)),
             *b = ref_of(p, second, operand(p->step + second, true));
    assert_int_equal(a->block, b->block); /* their rows interleave */
    assert_int_equal(b->offset - a->offset, 8 * (int64_t)sizeof(float));
    b->offset -= 4;
    found(c, &in, p, "another part of the same block");
    b->offset += 4, a->offset += 4;
    found(c, &in, p, "another part of the same block");
    a->offset -= 4;
    silent(c, &in, p);
    hone_plan_destroy(p);
    hone_compiled_destroy(c);
}
static void values_in_slots(void **state) {
    (void)state;
    hone_compiled *c =
        compile("graph slots opset 18 (x: f32[n]) -> y {\n  at: i64[] = {1};\n"
                "  e = Exp(x);\n  s = SequenceConstruct(x, e);\n  y = SequenceAt(s, at);\n}\n");
    const hone_fact in = floats(5, 0);
    hone_plan *p = bind(c, &in, NULL, NULL);
    silent(c, &in, p);
    int made = -1, read = -1;
    for (int k = 0; k < p->n_step; k++) {
        const hone_host_step *h = p->step[k].data;
        if (!p->step[k].host) continue;
        if (h->out[0].kind == HONE_OPERAND_SLOT && made < 0) made = k;
        else if (h->in[0].kind == HONE_OPERAND_SLOT) read = k;
    }
    assert_true(made >= 0 && read > made);
    const hone_host_step *maker = p->step[made].data, *reader = p->step[read].data;
    const int slot = reader->in[0].slot;
    assert_int_equal(maker->out[0].slot, slot);
    reader->in[0].slot = slot + 1 < p->n_slot ? slot + 1 : p->n_slot;
    found(c, &in, p, "nobody has made the value in slot");
    reader->in[0].slot = slot;
    swap(p, read - 1);
    assert_int_equal(read - 1, made);
    found(c, &in, p, "nobody has made the value in slot");
    swap(p, read - 1);
    hone_ref *e = (hone_ref *)p->step[made].ref + 1; /* what Exp made, read by the host */
    assert_int_equal(e->base, HONE_BASE_ARENA);
    e->offset += 64;
    assert_int_equal(hone_plan_verify(c, &in, p), HONE_BUG);
    e->offset -= 64;
    silent(c, &in, p);
    hone_plan_destroy(p);
    hone_compiled_destroy(c);
}
static void past_a_cut(void **state) {
    (void)state;
    hone_compiled *c = compile(
        "graph cut opset 18 (x: f32[n]) -> y {\n  zero: f32[] = {0};\n  m1: i64[1] = {-1};\n"
        "  e = Exp(x);\n  p = Greater(x, zero);\n  at = NonZero(p);\n  i = Reshape(at, m1);\n"
        "  g = Gather(e, i);\n  h = ReduceSum(e);\n  k = Softmax(g) {axis: 0};\n  y = Mul(k, h);\n}\n");
    const hone_fact in = floats(9, 0);
    hone_plan *first = bind(c, &in, NULL, NULL);
    silent(c, &in, first);
    assert_true(first->cut_node >= 0);
    assert_int_equal(first->n_wanted, 1);
    hone_value *at = NULL;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_I64, (const int64_t[]){1, 4}, 2, &at), HONE_OK);
    hone_fact wanted = hone_fact_of_value(at);
    hone_plan *then = bind(c, &in, first, &wanted);
    silent(c, &in, then);
    assert_int_equal(then->cut_node, -1);
    /* what lives on is not where it should be */
    const int old = HONE_BASE_FIRST + 2 + first->arena_slot;
    hone_bound_var *e = NULL;
    for (int k = 0; k < c->graph->var.n; k++)
        if (first->var[k].at == HONE_AT_REF && first->var[k].ref.base == old &&
            first->var[k].fact.dtype == HONE_DTYPE_F32)
            e = first->var + k;
    assert_non_null(e);
    const hone_ref was = e->ref;
    e->ref.block--;
    found(c, &in, first, "past the cut");
    e->ref = was, e->ref.offset += first->arena_bytes;
    found(c, &in, first, "past the cut");
    e->ref = was;
    /* the next stretch reads of the old arena what is nothing, or writes there */
    hone_ref *read = NULL, *write = NULL;
    for (int k = 0; k < then->n_step; k++)
        for (int q = 0; then->step[k].access && q < then->step[k].access->n_ref; q++) {
            if (then->step[k].access->reads >> q & 1 && then->step[k].ref[q].base == old)
                read = ref_of(then, k, q);
            if (then->step[k].access->writes >> q & 1 && then->step[k].ref[q].base == HONE_BASE_ARENA)
                write = ref_of(then, k, q);
        }
    assert_true(read && write);
    read->offset += 4;
    assert_int_equal(hone_plan_verify(c, &in, then), HONE_BUG);
    read->offset -= 4;
    const hone_ref mine = *write;
    *write = (hone_ref){old, -1, 0};
    found(c, &in, then, "only there to be read");
    *write = mine;
    /* a stretch that is taken for the first one */
    then->before = NULL;
    assert_int_equal(hone_plan_verify(c, &in, then), HONE_BUG);
    then->before = first;
    silent(c, &in, then);
    hone_value_drop(at);
    hone_plan_destroy(then);
    hone_plan_destroy(first);
    hone_compiled_destroy(c);
}
/* Bodies are plans of their own. */
static void in_a_body(void **state) {
    (void)state;
    hone_compiled *c = compile(
        "graph outer opset 18 (x: f32[n, 8], c: bool[]) -> y {\n"
        "  y = If(c; x) {then_branch: graph t (; x: f32[n, 8]) -> r { w: f32[8, 8] = random(2, -1, 1);\n"
        "    a = MatMul(x, w);\n    b = Softmax(a) {axis: -1};\n    r = MatMul(b, w); },\n"
        "  else_branch: graph e (; x: f32[n, 8]) -> r { r = Add(x, x); }};\n}\n");
    const hone_fact in[2] = {floats(6, 8), {.dtype = HONE_DTYPE_BOOL}};
    hone_plan *outer = bind(c, in, NULL, NULL);
    silent(c, in, outer);
    const hone_compiled *body = c->body[0][0];
    hone_plan *p = bind(body, in, NULL, NULL);
    silent(body, in, p);
    swap(p, step_that(p, true, 0));
    found(body, in, p, "which nobody wrote");
    hone_plan_destroy(p);
    hone_plan_destroy(outer);
    hone_compiled_destroy(c);
}

/* ---- random plans -------------------------------------------------------------------------------------- */
/* Graphs over [n, 8]: products, sums, rows, joins that nest, halves, transposes, in any order. */
static void put_random(hone_text *t, int nodes) {
    hone_text_put(t,
                  "graph r opset 18 (x0: f32[n, 8]) -> y, x%d {\n  w: f32[8, 8] = random(1, -1, 1);\n  u: "
                  "f32[16, 8] = random(2, -1, 1);\n",
                  nodes / 2);
    hone_text_put(t, "  one: i64[1] = {1};\n  four: i64[1] = {4};\n  zero: i64[1] = {0};\n  last: i64[1] = "
                     "{-1};\n  wide: i64[2] = {-1, "
                     "8};\n  eight: i64[1] = {8};\n");
    for (int k = 1; k <= nodes; k++) {
        const int near = k > 6 ? k - 6 : 0, a = near + (int)draw((uint64_t)(k - near)),
                  b = (int)draw((uint64_t)k), q = k;
        switch (draw(10)) {
        case 0:
        case 1: hone_text_put(t, "  x%d = MatMul(x%d, w);\n", q, a); break;
        case 2: hone_text_put(t, "  x%d = Add(x%d, x%d);\n", q, a, b); break;
        case 3: hone_text_put(t, "  x%d = Softmax(x%d) {axis: -1};\n", q, a); break;
        case 4:
            hone_text_put(t, "  j%d = Concat(x%d, x%d) {axis: 1};\n  x%d = MatMul(j%d, u);\n", q, a, b, q, q);
            break;
        case 5:
            hone_text_put(t,
                          "  s%d = Slice(x%d, zero, four, one);\n  z%d = Slice(x%d, four, eight, one);\n  "
                          "x%d = Concat(z%d, s%d) {axis: 1};\n",
                          q, a, q, b, q, q, q);
            break;
        case 6:
            hone_text_put(t, "  r%d = ReduceSum(x%d, last) {keepdims: 1};\n  x%d = Mul(x%d, r%d);\n", q, a, q,
                          b, q);
            break;
        case 7:
            hone_text_put(t,
                          "  t%d = Transpose(x%d);\n  v%d = MatMul(x%d, t%d);\n  x%d = MatMul(v%d, x%d);\n",
                          q, a, q, b, q, q, q, a);
            break;
        case 8: hone_text_put(t, "  t%d = Transpose(x%d);\n  x%d = Reshape(t%d, wide);\n", q, a, q, q); break;
        default:
            hone_text_put(t,
                          "  j%d = Concat(x%d, x%d, x%d) {axis: 0};\n  h%d = Relu(j%d);\n  m%d = "
                          "ReduceMax(h%d, zero) {keepdims: 1};\n  "
                          "x%d = Sub(x%d, m%d);\n",
                          q, a, b, a, q, q, q, q, q, b, q);
        }
    }
    hone_text_put(t, "  y = Concat(x%d, x%d) {axis: 1};\n}\n", nodes, nodes - 1);
}
static void random_plans(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__ /* all 10,000 are bound in release */
    enum { GRAPHS = 50, SHAPES = 40 };
#else
    enum { GRAPHS = 250, SHAPES = 40 };
#endif
    int64_t steps = 0;
    for (int g = 0; g < GRAPHS; g++) {
        hone_text t = {0};
        put_random(&t, 3 + (int)draw(14));
        hone_compiled *c = compile(t.text);
        for (int k = 0; k < SHAPES; k++) {
            const hone_fact in = floats(1 + k + (int64_t)draw(3), 8);
            hone_plan *p = bind(c, &in, NULL, NULL);
            if (hone_plan_verify(c, &in, p)) fail_msg("%s\nin\n%s", hone_fail_text(), t.text);
            steps += p->n_step;
            hone_plan_destroy(p);
        }
        hone_compiled_destroy(c);
        hone_text_free(&t);
    }
    assert_true(steps > 10 * GRAPHS * SHAPES / 4);
}

/* ---- guard mode ---------------------------------------------------------------------------------------- */
/* The mode is the process's: in a child. 0: fine; else the number of what was not. */
static int guarded(void) {
    setenv("HONE_GUARD", "1", 1);
    hone_compiled *c = compile(chain);
    hone_exec *e = NULL;
    hone_value *x = NULL, *y = NULL, *again = NULL;
    const int64_t dims[] = {6, 8};
    if (hone_value_tensor(HONE_DTYPE_F32, dims, 2, &x) ||
        hone_exec_create(c, &(hone_exec_options){.threads = 1}, &e))
        return 1;
    for (int k = 0; k < 48; k++) ((float *)x->data)[k] = (float)k / 48;
    if (hone_exec_run(e, &x, &y)) return 2;
    hone_plan *p = (hone_plan *)hone_exec_last(e);
    if (p->guard_slot < 0 || p->arena_bytes || p->n_block < 4) return 3;
    for (int k = 0; k < 48; k++)
        if (!isfinite(((float *)y->data)[k])) return 4;
    const hone_fact in = floats(6, 8);
    if (hone_plan_verify(c, &in, p)) return 5;
    /* nobody writes what the next one reads */
    memmove(p->step, p->step + 1, sizeof *p->step * (size_t)--p->n_step);
    if (hone_plan_verify(c, &in, p) != HONE_BUG || !strstr(hone_fail_text(), "which nobody wrote")) return 6;
    if (hone_exec_run(e, &x, &again)) return 7;
    bool seen = false;
    for (int k = 0; k < 48; k++) seen |= isnan(((float *)again->data)[k]);
    if (!seen) return 8;
    hone_value_drop(x), hone_value_drop(y), hone_value_drop(again);
    hone_exec_destroy(e);
    hone_compiled_destroy(c);
    return 0;
}
static void guard(void **state) {
    (void)state;
    fflush(NULL);
    const pid_t child = fork();
    assert_true(child >= 0);
    if (!child) _exit(guarded());
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void) {
    unsetenv("HONE_GUARD"); /* faults are planted in arenas; the child has it */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(guard), /* before the mode was asked for */
        cmocka_unit_test(planted),         cmocka_unit_test(overlapping), cmocka_unit_test(parts_of_a_join),
        cmocka_unit_test(values_in_slots), cmocka_unit_test(past_a_cut),  cmocka_unit_test(in_a_body),
        cmocka_unit_test(random_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
