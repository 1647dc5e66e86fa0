/* SPDX-License-Identifier: Apache-2.0
   Several devices: models split at random between the CPU and two devices with memory of their own
   (plugin_plain.c) give the bits that one device gives; the verifier finds every kind of fault at their
   borders; what fails on a device says so as the CPU does. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "device/away.h"
#include "hone/device.h"
#include "plan/bind.h"
#include "plan/verify.h"
#include "run/dlpack.h"
#include "run/exec.h"
#include "run/spaces.h"
#include "run/units.h"
#include "random.h"

static uint64_t random_state = 11;
static uint64_t draw(uint64_t below) { return next_random(&random_state) % below; }

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
     {5, 8},
     2},
    {"graph windows opset 18 (x: f32[n, 3, 9, 9]) -> y { w: f32[8, 3, 3, 3] = random(1, -1, 1); d: f32[8, 1, "
     "3, 3] = random(2, -1, 1);\n"
     "  e: f32[16, 8, 3, 3] = random(3, -1, 1); a = Conv(x, w) {pads: [1, 1, 1, 1]}; b = Relu(a);\n"
     "  c = Conv(b, d) {group: 8, pads: [1, 1, 1, 1]}; f = Relu(c); j = Concat(b, f) {axis: 1}; s, t = "
     "Split(j) {axis: 1, num_outputs: "
     "2};\n"
     "  q = Add(s, t); g = Conv(q, e); h = MaxPool(g) {kernel_shape: [2, 2], strides: [2, 2]}; p = "
     "Transpose(h) {perm: [0, 2, 3, 1]};\n"
     "  y = Relu(p); }\n",
     {2, 3, 9, 9},
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
    {"graph doubles opset 18 (x: f32[n]) -> y { d = Cast(x) {to: 11}; e = Exp(d); f = Cast(e) {to: 1}; k: "
     "i64[1] = {2};\n"
     "  v, i = TopK(f, k) {axis: 0}; s = Relu(v); y = Add(s, s); }\n",
     {7},
     1},
    {"graph scan opset 18 (x: f32[n, 4]) -> y, all, more { w: f32[4, 4] = random(1, -1, 1); s0: f32[4, 1] = "
     "random(2, -1, 1); a = Exp(x); "
     "t = Tanh(w);\n"
     "  y, all, back = Scan(s0, a; t) {num_scan_inputs: 1, scan_input_axes: [0], scan_input_directions: [1], "
     "scan_output_axes: [1, 0],\n"
     "    scan_output_directions: [0, 1], body: graph b (s: f32[4, 1], v: f32[4]; t: f32[4, 4]) -> r, o, q "
     "{\n"
     "    p = MatMul(t, s); r = Tanh(p); o = Add(v, v); q = Softmax(r) {axis: 0}; }}; more = Mul(back, y); "
     "}\n",
     {6, 4},
     2},
    {"graph until opset 18 (x: f32[n]) -> y, all { m: i64[] = {40}; c: bool[] = {1}; limit: f32[] = {9}; "
     "one: f32[] = {1}; a = Abs(x); b = "
     "Add(a, one);\n"
     "  z, all = Loop(m, c, b; limit, b) {body: graph g (i: i64[], go: bool[], v: f32[n]; limit: f32[], b: "
     "f32[n]) -> more, r, s {\n"
     "    r = Add(v, b); f = Cast(i) {to: 1}; s = Mul(r, f); h = ReduceMax(r) {keepdims: 0}; more = Less(h, "
     "limit); }}; y = Relu(z); }\n",
     {5},
     1},
};
enum { MODELS = sizeof models / sizeof *models, MOST_OUTPUTS = 4, MOST_NODES = 64 };
static void name_nodes(hone_graph *g, const char *before) { /* by op and number: patterns go by names */
    for (int k = 0; k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        n->name = hone_arena_text(g->arena, "%s%s%d", before, n->program->name, k);
        for (int b = 0; b < n->n_body; b++) name_nodes(n->body[b], n->name);
    }
}
static hone_compiled *compile(const char *text) {
    hone_graph *g = NULL;
    hone_compiled *c = NULL;
    if (hone_graph_parse(text, strlen(text), &g)) fail_msg("%s\n%s", hone_fail_text(), text);
    name_nodes(g, "");
    if (hone_compile(g, &c)) fail_msg("%s\n%s", hone_fail_text(), text);
    return c;
}
static hone_value *input_of(int m) {
    hone_value *x = NULL;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, models[m].dim, models[m].rank, &x), HONE_OK);
    for (int64_t k = 0; k < hone_value_count(x); k++) ((float *)x->data)[k] = (float)draw(2001) / 1000 - 1;
    return x;
}

/* ---- splits -------------------------------------------------------------------------------------------- */
static hone_placing rules[MOST_NODES];
static hone_units three(void) { /* the CPU, plain:0, plain:1 */
    const hone_device *plain = hone_device_find("plain");
    return (hone_units){.unit = {{hone_devices(0), 0}, {plain, 0}, {plain, 1}}, .n = 3, .rule = rules};
}
static void place_nodes(hone_units *u, const hone_graph *g) {
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        assert_true(u->n_rule < MOST_NODES);
        for (int q = 0; q < (n->n_part ? n->n_part : 1); q++) /* parts of groups too: groups are made anew */
            rules[u->n_rule++] = (hone_placing){n->n_part ? n->part[q]->name : n->name, (int)draw(3)};
        for (int b = 0; b < n->n_body; b++) place_nodes(u, n->body[b]);
    }
}
static hone_compiled *compile_for(const hone_compiled *c, const hone_units *u) {
    hone_compiled *form = NULL;
    if (hone_compile_for(c, u, HONE_DTYPE_NONE, &form)) fail_msg("%s", hone_fail_text());
    return form;
}
static hone_status run(const hone_compiled *c, hone_exec_options o, hone_value *in, hone_value **out) {
    hone_exec *e = NULL;
    hone_compiled *form = o.units ? compile_for(c, o.units) : NULL;
    if (form) c = form;
    if (hone_exec_create(c, &o, &e)) fail_msg("%s", hone_fail_text());
    hone_status s = HONE_OK;
    for (int again = 0; again < 2 && !s; again++) { /* a plan that is new, and one that is known */
        for (int k = 0; k < MOST_OUTPUTS; k++) hone_value_drop(out[k]), out[k] = NULL;
        s = hone_exec_run(e, &in, out);
    }
    hone_exec_destroy(e);
    hone_compiled_destroy(form);
    return s;
}
static void splits(void **state) {
    (void)state;
    for (int m = 0; m < MODELS; m++) {
        hone_compiled *c = compile(models[m].text);
        hone_value *x = input_of(m), *want[MOST_OUTPUTS] = {0};
        if (run(c, (hone_exec_options){.threads = 1, .interpret = true}, x, want))
            fail_msg("%s", hone_fail_text());
        for (int round = 0; round < 20; round++) {
            hone_units u = three();
            hone_value *got[MOST_OUTPUTS] = {0};
            u.rest = round < 3 ? round : (int)draw(3);
            if (round >= 3) place_nodes(&u, c->graph);
            if (run(c, (hone_exec_options){.threads = 2, .interpret = true, .units = &u}, x, got))
                fail_msg("%s\n%s", hone_fail_text(), models[m].text);
            for (int k = 0; k < c->graph->out.n; k++) {
                assert_int_equal(got[k]->bytes, want[k]->bytes);
                assert_int_equal(got[k]->rank, want[k]->rank);
                if (got[k]->bytes) assert_memory_equal(got[k]->data, want[k]->data, got[k]->bytes);
            }
            for (int k = 0; k < MOST_OUTPUTS; k++) hone_value_drop(got[k]), got[k] = NULL;
            if (run(c, (hone_exec_options){.threads = 2, .units = &u}, x, got))
                fail_msg("%s\n%s", hone_fail_text(), models[m].text); /* kernels beside it */
            for (int k = 0; k < MOST_OUTPUTS; k++) hone_value_drop(got[k]);
        }
        for (int k = 0; k < MOST_OUTPUTS; k++) hone_value_drop(want[k]);
        hone_value_drop(x);
        hone_compiled_destroy(c);
    }
}

/* Many more, bound and verified only. */
static void random_plans(void **state) {
    (void)state;
#ifdef __SANITIZE_ADDRESS__ /* all 10,000 are bound in release */
    enum { EACH = 250 };
#else
    enum { EACH = 1500 };
#endif
    int across = 0;
    for (int m = 0; m < MODELS; m++) {
        hone_compiled *c = compile(models[m].text);
        hone_fact in = hone_fact_unknown;
        in.tag = HONE_TAG_TENSOR, in.dtype = HONE_DTYPE_F32, in.rank = (int8_t)models[m].rank;
        for (int round = 0; round < EACH; round++) {
            hone_units u = three();
            hone_plan *p = NULL;
            for (int d = 0; d < in.rank; d++) in.dim[d] = models[m].dim[d];
            in.dim[0] = 2 + (int64_t)draw(8); /* TopK takes two */
            u.rest = (int)draw(3);
            place_nodes(&u, c->graph);
            const hone_bind_options how = {.threads = 1 + (int)draw(2), .units = &u, .stay = draw(2)};
            hone_compiled *form = compile_for(c, &u);
            if (hone_bind(form, &in, NULL, NULL, how, &p) || hone_plan_verify(form, &in, p))
                fail_msg("%s\n%s", hone_fail_text(), models[m].text);
            for (int k = 0; k < p->n_step; k++) across += p->step[k].unit == HONE_UNIT_COPY;
            hone_plan_destroy(p);
            hone_compiled_destroy(form);
        }
        hone_compiled_destroy(c);
    }
    assert_true(across > EACH * MODELS);
}

/* ---- faults -------------------------------------------------------------------------------------------- */
static void found(const hone_compiled *c, const hone_fact *in, const hone_plan *p, const char *says) {
    if (hone_plan_verify(c, in, p) != HONE_BUG) fail_msg("not found: %s", says);
    if (!strstr(hone_fail_text(), says) || strchr(hone_fail_text(), '\n'))
        fail_msg("'%s' does not say: %s", hone_fail_text(), says);
}
static void silent(const hone_compiled *c, const hone_fact *in, const hone_plan *p) {
    if (hone_plan_verify(c, in, p)) fail_msg("%s", hone_fail_text());
}
static void planted(void **state) {
    (void)state;
    hone_compiled *cpu = compile(
        "graph border opset 18 (x: f32[n, 8]) -> y { v: f32[8, 8] = random(1, -1, 1); k: i64[1] = {3};\n"
        "  a = MatMul(x, v); b = Softmax(a) {axis: -1}; t, i = TopK(b, k) {axis: 1}; y = Relu(t); }\n");
    hone_units u = three();
    u.rest = 1, u.n_rule = 1, rules[0] = (hone_placing){"Softmax*", 2};
    hone_compiled *c = compile_for(cpu, &u);
    hone_fact in = hone_fact_unknown;
    in.tag = HONE_TAG_TENSOR, in.dtype = HONE_DTYPE_F32, in.rank = 2, in.dim[0] = 6, in.dim[1] = 8;
    hone_plan *p = NULL;
    if (hone_bind(c, &in, NULL, NULL, (hone_bind_options){.threads = 1, .units = &u}, &p))
        fail_msg("%s", hone_fail_text());
    silent(c, &in, p);
    int copy = -1, work = -1, host = -1, across = -1;
    for (int k = 0; k < p->n_step; k++) {
        if (p->step[k].unit == HONE_UNIT_COPY && copy < 0) copy = k;
        if (p->step[k].unit == HONE_UNIT_COPY && !strcmp(p->step[k].tactic, "copy across")) across = k;
        if (p->step[k].unit == 1 && work < 0) work = k;
        if (p->step[k].host) host = k;
    }
    assert_true(copy >= 0 && work == copy + 1 && host > work && across > work);
    hone_ref *ref = (hone_ref *)p->step[work].ref; /* the plan is ours */
    hone_transfer *t = (hone_transfer *)p->step[copy].data;
    /* a border without a copy: the device reads what the host has; the host reads what a device has; a device
       what another one has */
    int q = 0;
    while (!(p->step[work].access->reads >> q & 1) || hone_base_is_constant(ref[q].base)) q++;
    const hone_ref was = ref[q];
    ref[q] = p->step[copy].ref[0];
    found(c, &in, p, "a copy is missing");
    ref[q] = was;
    hone_host_step *h = (hone_host_step *)p->step[host].data;
    const hone_ref operand = h->ref[0];
    for (int k = 0; k < host; k++)
        if (p->step[k].unit == HONE_UNIT_COPY && !strcmp(p->step[k].tactic, "copy out"))
            h->ref[0] = p->step[k].ref[0];
    found(c, &in, p, "a copy is missing");
    h->ref[0] = operand;
    hone_ref *softmax = (hone_ref *)p->step[across + 1].ref;
    const hone_ref theirs = softmax[0];
    softmax[0] = p->step[across].ref[0];
    found(c, &in, p, "a copy is missing");
    softmax[0] = theirs;
    silent(c, &in, p);
    /* the copy itself is missing: nobody wrote what it should have brought */
    hone_step kept = p->step[copy];
    p->step[copy] = p->step[work];
    found(c, &in, p, "which nobody wrote");
    p->step[copy] = kept;
    /* a copy from the wrong memory, within one, of other bytes than it states */
    t->from = 2;
    found(c, &in, p, "a copy is missing");
    t->from = t->to;
    found(c, &in, p, "no copy from one memory to another");
    t->from = 0, t->bytes += 4;
    found(c, &in, p, "states others");
    t->bytes -= 4;
    silent(c, &in, p);
    /* a constant that nobody brings */
    assert_true(p->n_need > 0);
    p->n_need--;
    found(c, &in, p, "nobody brings constant");
    p->n_need++;
    /* segments: a step of another device, a host step on a device, steps in none */
    const int n = p->n_segment;
    p->segment[0].unit = 2;
    found(c, &in, p, "is another device's");
    p->segment[0].unit = p->step[0].unit;
    int at = 0;
    while (p->segment[at].from > host || p->segment[at].to <= host) at++;
    p->step[host].unit = 1, p->segment[at].unit = 1;
    found(c, &in, p, "step");
    p->step[host].unit = 0, p->segment[at].unit = 0;
    p->n_segment--;
    found(c, &in, p, "are in no segment");
    p->n_segment = n;
    silent(c, &in, p);
    hone_plan_destroy(p);
    hone_compiled_destroy(c), hone_compiled_destroy(cpu);
}

/* ---- a form for each set of devices -------------------------------------------------------------------- */
static void sixteen_target(const hone_device *d, int number, hone_target *out) {
    (void)d, (void)number;
    *out = (hone_target){.channels_last = 1ull << HONE_DTYPE_F16};
}
static const char *sixteen_refuses(const hone_device *d, const hone_instance *in) {
    (void)d;
    return strcmp(in->program->name, "MaxPool") ? NULL : "no pools";
}
static int ordered(const hone_compiled *c) { /* vars that are not row-major */
    int n = 0;
    for (int k = 0; k < c->graph->var.n; k++) n += c->graph->var.at[k].layout.kind == HONE_LAYOUT_ORDER;
    return n;
}
static int groups(const hone_compiled *c) { /* none crosses devices */
    int n = 0;
    for (int k = 0; k < c->graph->node.n; k++) {
        const hone_node *w = c->graph->node.at[k];
        for (int q = 0; q < w->n_part; q++) assert_int_equal(w->part[q]->unit, w->unit);
        n += w->n_part > 0;
    }
    return n;
}
static void forms(void **state) {
    (void)state;
    static const hone_device sixteen = {
        .name = "sixteen", .target = sixteen_target, .refuses = sixteen_refuses};
    hone_compiled *c = compile(models[1].text), *form; /* windows */
    assert_true(ordered(c) > 4 && groups(c) > 1);      /* the CPU wants channels last */
    hone_units u = three();
    u.rest = 1;
    form = compile_for(c, &u); /* nobody asks: row-major */
    assert_int_equal(ordered(form), 0);
    assert_int_equal(groups(form), groups(c));
    hone_compiled_destroy(form);
    u.rest = 0; /* all on the CPU once more: as it was */
    form = compile_for(c, &u);
    assert_int_equal(ordered(form), ordered(c));
    assert_int_equal(groups(form), groups(c));
    assert_int_equal(form->graph->node.n, c->graph->node.n);
    hone_compiled_destroy(form);
    /* each Relu elsewhere: no group is left */
    u.rest = 1, u.n_rule = 1, rules[0] = (hone_placing){"Relu*", 2};
    form = compile_for(c, &u);
    assert_int_equal(groups(form), 0);
    hone_compiled_destroy(form);
    /* channels last where products are of f16 */
    u = (hone_units){.unit = {{hone_devices(0), 0}, {&sixteen, 0}}, .n = 2, .rest = 1};
    assert_int_equal(hone_compile_for(c, &u, HONE_DTYPE_F32, &form), HONE_OK);
    assert_int_equal(ordered(form), 0);
    hone_compiled_destroy(form);
    assert_int_equal(hone_compile_for(c, &u, HONE_DTYPE_F16, &form), HONE_OK);
    assert_true(ordered(form) > 4);
    int refused = 0;
    for (int k = 0; k < form->graph->node.n; k++) {
        const hone_node *n = form->graph->node.at[k];
        assert_int_equal(n->unit, !n->refused);
        refused += n->refused && !strcmp(n->refused, "no pools") && !strcmp(n->program->name, "MaxPool");
    }
    assert_int_equal(refused, 1);
    hone_compiled_destroy(form);
    hone_compiled_destroy(c);
}

/* ---- values on devices --------------------------------------------------------------------------------- */
static int copies(const hone_exec *e) {
    const hone_plan *p = hone_exec_last(e);
    int n = 0;
    for (int k = 0; k < p->n_step; k++) n += p->step[k].unit == HONE_UNIT_COPY;
    return n;
}
static void stays(void **state) { /* a state that goes round: nothing is copied but what the host asks for */
    (void)state;
    hone_compiled *cpu = compile(
        "graph round opset 18 (x: f32[n, 4], s: f32[n, 4]) -> y, t { w: f32[4, 4] = random(1, -1, 1);\n"
        "  a = MatMul(s, w); t = Tanh(a); y = Add(t, x); }\n");
    const int64_t dim[] = {3, 4};
    hone_value *x = NULL, *there = NULL, *host[2] = {0}, *out[2] = {0}, *back = NULL;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, dim, 2, &x), HONE_OK);
    for (int k = 0; k < 12; k++) ((float *)x->data)[k] = (float)draw(2001) / 1000 - 1;
    hone_units u = three();
    u.rest = 2;
    hone_compiled *c = compile_for(cpu, &u);
    hone_exec *e = NULL, *one = NULL;
    assert_int_equal(hone_exec_create(c, &(hone_exec_options){.threads = 1, .units = &u, .stay = true}, &e),
                     HONE_OK);
    assert_int_equal(hone_exec_create(cpu, &(hone_exec_options){.threads = 1, .interpret = true}, &one),
                     HONE_OK);
    if (hone_value_bring(x, "plain:1", &there)) fail_msg("%s", hone_error());
    char where[32];
    hone_value_where(there, where, sizeof where);
    assert_string_equal(where, "plain:1");
    hone_value *now = hone_value_hold(there), *host_now = hone_value_hold(x);
    for (int round = 0; round < 4; round++) {
        if (hone_exec_run(e, (hone_value *[]){there, now}, out)) fail_msg("%s", hone_fail_text());
        if (hone_exec_run(one, (hone_value *[]){x, host_now}, host)) fail_msg("%s", hone_fail_text());
        assert_int_equal(copies(e), 0);
        hone_value_drop(now), hone_value_drop(host_now);
        /* what was given for y is filled again, t is new */
        now = out[1], host_now = host[1], out[1] = host[1] = NULL;
        for (int k = 0; k < 2; k++) {
            if (hone_value_bring(k ? now : out[0], "cpu", &back)) fail_msg("%s", hone_error());
            assert_memory_equal(back->data, (k ? host_now : host[0])->data, back->bytes);
            hone_value_drop(back), back = NULL;
        }
    }
    /* from the host again: one copy in; in a session of another device, and where the host would look at it:
       a line */
    if (hone_exec_run(e, (hone_value *[]){x, now}, out)) fail_msg("%s", hone_fail_text());
    assert_int_equal(copies(e), 1);
    assert_int_equal(hone_exec_run(one, (hone_value *[]){there, x}, host), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "lies on plain:1, which is no device of this session"));
    hone_value *given[] = {hone_value_hold(there), NULL};
    assert_int_equal(hone_exec_run(e, (hone_value *[]){there, now}, given), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "is also an input"));
    assert_null(hone_value_data(there));
    assert_true(hone_value_number(there, 0) != hone_value_number(there, 0)); /* NaN */
    assert_int_equal(hone_value_write(there, "/nowhere/x.npy"), HONE_BAD_INPUT);
    assert_int_equal(hone_list_create(HONE_VALUE_SEQUENCE, &there, 1, &back), HONE_BAD_INPUT);
    if (hone_value_bring(there, "plain:0", &back)) fail_msg("%s", hone_error()); /* across */
    hone_value_drop(back);
    hone_exec_destroy(e), hone_exec_destroy(one);
    hone_value *all[] = {x, there, now, host_now, out[0], out[1], host[0], host[1], given[0], given[1]};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) hone_value_drop(all[k]);
    hone_compiled_destroy(c), hone_compiled_destroy(cpu);
}

/* DLPack: memory of a device goes out with its device's type and number, and comes in as a value there,
   whoever made it. */
static int told; /* times that a tensor's maker was told that it is no longer used */
typedef struct {
    struct DLManagedTensorVersioned tensor;
    struct DLManagedTensorVersioned *of;
} passed_on;
static void on_delete(struct DLManagedTensorVersioned *m) {
    passed_on *p = m->context;
    told++;
    if (p->of) p->of->deleter(p->of);
    p->of = NULL;
}
static void shared(void **state) {
    (void)state;
    hone_compiled *cpu =
        compile("graph twice opset 18 (x: f32[n, 4]) -> y { t = Tanh(x); y = Add(t, t); }\n");
    hone_units u = three();
    u.rest = 2;
    hone_compiled *c = compile_for(cpu, &u);
    hone_value *x = NULL, *there = NULL, *again = NULL, *back = NULL, *out[1] = {0};
    const int64_t dim[] = {3, 4};
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, dim, 2, &x), HONE_OK);
    for (int k = 0; k < 12; k++) ((float *)x->data)[k] = (float)draw(2001) / 1000 - 1;
    assert_int_equal(hone_value_bring(x, "plain:1", &there), HONE_OK);
    passed_on p = {0};
    if (hone_value_to_dlpack_versioned(there, &p.of)) fail_msg("%s", hone_error());
    hone_dl_tensor *t = &p.of->tensor;
    assert_int_equal(t->device.type, 12); /* kDLExtDev, as its table says */
    assert_int_equal(t->device.id, 1);
    assert_ptr_equal(t->data, there->away->handle);
    assert_int_equal(t->ndim, 2);
    assert_int_equal(t->strides[0], 4);
    assert_int_equal(p.of->flags, 0);
    hone_value_drop(there); /* the view holds it */
    p.tensor = *p.of, p.tensor.context = &p, p.tensor.deleter = on_delete, told = 0;
    /* what is refused stays the caller's: a device that is not here, strides, a stream that nobody knows, no
       data */
    struct DLManagedTensorVersioned wrong = p.tensor;
    int64_t columns[] = {1, 3};
    wrong.tensor.device.id = 2;
    assert_int_equal(hone_value_from_dlpack_versioned(&wrong, &again), HONE_NOT_SUPPORTED);
    wrong = p.tensor, wrong.tensor.device.type = 7;
    assert_int_equal(hone_value_from_dlpack_versioned(&wrong, &again), HONE_NOT_SUPPORTED);
    wrong = p.tensor, wrong.tensor.strides = columns;
    assert_int_equal(hone_value_from_dlpack_versioned(&wrong, &again), HONE_NOT_SUPPORTED);
    assert_int_equal(hone_value_from_dlpack_stream(&p.tensor, 8, &again), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_error(), "no such stream"));
    wrong = p.tensor, wrong.tensor.data = NULL;
    assert_int_equal(hone_value_from_dlpack_versioned(&wrong, &again), HONE_BAD_INPUT);
    assert_int_equal(told, 0);
    /* taken, after its maker's stream: the same memory, an input without a copy, and the same as an output is
       found out */
    if (hone_value_from_dlpack_stream(&p.tensor, 7, &again)) fail_msg("%s", hone_error());
    char where[32];
    hone_value_where(again, where, sizeof where);
    assert_string_equal(where, "plain:1");
    assert_ptr_equal(again->away->handle, p.of->tensor.data);
    hone_exec *e = NULL, *one = NULL;
    assert_int_equal(
        hone_exec_create(c, &(hone_exec_options){.threads = 1, .interpret = true, .units = &u, .stay = true},
                         &e),
        HONE_OK);
    assert_int_equal(hone_exec_create(cpu, &(hone_exec_options){.threads = 1, .interpret = true}, &one),
                     HONE_OK);
    if (hone_exec_run(e, &again, out)) fail_msg("%s", hone_fail_text());
    assert_int_equal(hone_exec_copied(e)->in + hone_exec_copied(e)->out, 0);
    assert_int_equal(hone_value_bring(out[0], "cpu", &back), HONE_OK);
    hone_value *want[1] = {0};
    if (hone_exec_run(one, &x, want)) fail_msg("%s", hone_fail_text());
    assert_memory_equal(back->data, want[0]->data, back->bytes);
    hone_value_drop(back), hone_value_drop(out[0]), hone_value_drop(want[0]);
    hone_value *same = NULL; /* a second value over the same memory */
    passed_on twice = {.tensor = p.tensor};
    twice.tensor.context = &twice;
    assert_int_equal(hone_value_from_dlpack_versioned(&twice.tensor, &same), HONE_OK);
    assert_int_equal(hone_exec_run(e, &again, &same), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "is also an input"));
    hone_value_drop(same);
    assert_int_equal(told, 1);
    /* from a byte on: a copy on the device, and its maker is told at once */
    passed_on part = {.tensor = p.tensor};
    const int64_t row[] = {4};
    part.tensor.context = &part, part.tensor.tensor.ndim = 1, part.tensor.tensor.shape = (int64_t *)row,
    part.tensor.tensor.strides = NULL;
    part.tensor.tensor.byte_offset = 16;
    assert_int_equal(hone_value_from_dlpack_versioned(&part.tensor, &same), HONE_OK);
    assert_int_equal(told, 2);
    assert_int_equal(hone_value_bring(same, "cpu", &back), HONE_OK);
    assert_memory_equal(back->data, (float *)x->data + 4, 16);
    hone_value_drop(back), hone_value_drop(same);
    assert_int_equal(told, 2);
    hone_value_drop(again); /* the last: the first value's memory goes back */
    assert_int_equal(told, 3);
    assert_null(p.of);
    hone_exec_destroy(e), hone_exec_destroy(one);
    hone_value_drop(x);
    hone_compiled_destroy(c), hone_compiled_destroy(cpu);
}

/* A Loop of n iterations on a device: what does it copy? */
static hone_copied loop_copies(const char *text, int trips, const hone_units *u, hone_value *x) {
    char with[2000];
    snprintf(with, sizeof with, text, trips);
    hone_compiled *c = compile(with), *form = compile_for(c, u);
    hone_value *out[2] = {0}, *want[2] = {0};
    hone_exec *e = NULL, *one = NULL;
    assert_int_equal(
        hone_exec_create(form, &(hone_exec_options){.threads = 1, .interpret = true, .units = u}, &e),
        HONE_OK);
    assert_int_equal(hone_exec_create(c, &(hone_exec_options){.threads = 1, .interpret = true}, &one),
                     HONE_OK);
    for (int again = 0; again < 2; again++)
        if (hone_exec_run(e, &x, out)) fail_msg("%s\n%s", hone_fail_text(), with);
    if (hone_exec_run(one, &x, want)) fail_msg("%s\n%s", hone_fail_text(), with);
    for (int k = 0; k < c->graph->out.n; k++) {
        assert_int_equal(out[k]->bytes, want[k]->bytes);
        assert_memory_equal(out[k]->data, want[k]->data, out[k]->bytes);
        hone_value_drop(out[k]), hone_value_drop(want[k]);
    }
    const hone_copied copied = *hone_exec_copied(e);
    hone_exec_destroy(e), hone_exec_destroy(one);
    hone_compiled_destroy(form), hone_compiled_destroy(c);
    return copied;
}
static void loops_stay(void **state) {
    (void)state;
    enum { ROWS = 6, BYTES = ROWS * 4 * 4 };
    static const char *const counted = /* a carried tensor, a scan output, a capture that the host has */
        "graph loop opset 18 (x: f32[n, 4]) -> y, all { m: i64[] = {%d}; c: bool[] = {1}; w: f32[4, 4] = "
        "random(1, -1, 1);\n"
        "  y, all = Loop(m, c, x; w, x) {body: graph b (i: i64[], go: bool[], v: f32[n, 4]; w: f32[4, 4], x: "
        "f32[n, 4]) -> go, r, s {\n"
        "    p = MatMul(v, w); q = Add(p, x); r = Tanh(q); s = Softmax(r) {axis: -1}; }}; }\n";
    static const char *const asked = /* the condition is computed there: a byte an iteration is read */
        "graph loop opset 18 (x: f32[n, 4]) -> y { m: i64[] = {%d}; c: bool[] = {1}; most: f32[] = {1000}; "
        "one: f32[] = {1};\n"
        "  y = Loop(m, c, x; most, one) {body: graph b (i: i64[], go: bool[], v: f32[n, 4]; most: f32[], "
        "one: f32[]) -> more, r {\n"
        "    r = Add(v, one); h = ReduceMax(r) {keepdims: 0}; more = Less(h, most); }}; }\n";
    hone_value *x = NULL;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, (int64_t[]){ROWS, 4}, 2, &x), HONE_OK);
    for (int k = 0; k < ROWS * 4; k++) ((float *)x->data)[k] = (float)draw(2001) / 1000 - 1;
    hone_units u = three();
    u.rest = 1;
    for (int trips = 1; trips < 100; trips += 49) {
        hone_copied n = loop_copies(counted, trips, &u, x);
        assert_int_equal(n.in, 2 * BYTES);              /* x, as what is carried and as what is captured */
        assert_int_equal(n.out, BYTES + trips * BYTES); /* y and all, once */
        assert_int_equal(n.across, 0);
        assert_int_equal(n.within, trips * BYTES); /* scan outputs to where they are gathered */
        n = loop_copies(asked, trips, &u, x);
        assert_int_equal(n.in, BYTES);
        assert_int_equal(n.out, BYTES + trips);
        assert_int_equal(n.within, 0);
    }
    hone_value_drop(x);
}

/* ---- what fails, and what is asked for wrongly --------------------------------------------------------- */
static void failing(void **state) {
    (void)state;
    hone_compiled *c = compile("graph outside opset 18 (x: f32[n]) -> y { i = Cast(x) {to: 7}; t: f32[3] = "
                               "{1, 2, 3}; g = Gather(t, i); y = Relu(g); }\n");
    const int64_t dim[] = {2};
    hone_value *x = NULL, *out[MOST_OUTPUTS] = {0};
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, dim, 1, &x), HONE_OK);
    ((float *)x->data)[1] = 7;
    char cpu[512];
    assert_int_equal(run(c, (hone_exec_options){.threads = 1, .interpret = true}, x, out), HONE_BAD_INPUT);
    snprintf(cpu, sizeof cpu, "%s", hone_fail_text());
    hone_units u = three();
    u.rest = 1;
    assert_int_equal(run(c, (hone_exec_options){.threads = 1, .units = &u}, x, out), HONE_BAD_INPUT);
    assert_string_equal(hone_fail_text(), cpu); /* node and tensor */
    hone_exec *e = NULL;                        /* the session stays usable */
    hone_compiled *form = compile_for(c, &u);
    assert_int_equal(hone_exec_create(form, &(hone_exec_options){.threads = 1, .units = &u}, &e), HONE_OK);
    assert_int_equal(hone_exec_run(e, &x, out), HONE_BAD_INPUT);
    ((float *)x->data)[1] = 2;
    if (hone_exec_run(e, &x, out)) fail_msg("%s", hone_fail_text());
    assert_true(((float *)out[0]->data)[0] == 1 && ((float *)out[0]->data)[1] == 3);
    hone_exec_destroy(e);
    hone_value_drop(x), hone_value_drop(out[0]);
    hone_compiled_destroy(form), hone_compiled_destroy(c);
}
static void failing_body(void **state) { /* in the fourth of five iterations, and the session stays usable */
    (void)state;
    hone_compiled *c = compile("graph outside opset 18 (x: f32[n]) -> y { m: i64[] = {5}; c: bool[] = {1}; "
                               "one: f32[] = {1}; t: f32[6] = {1, 2, 3, 4, 5, 6};\n"
                               "  y = Loop(m, c, x; t, one) {body: graph b (i: i64[], go: bool[], v: f32[n]; "
                               "t: f32[6], one: f32[]) -> go, r {\n"
                               "    at = Cast(v) {to: 7}; g = Gather(t, at); h = Sub(g, g); k = Add(v, one); "
                               "r = Add(k, h); }}; }\n");
    const int64_t dim[] = {2};
    hone_value *x = NULL, *out[MOST_OUTPUTS] = {0};
    assert_int_equal(hone_value_tensor(HONE_DTYPE_F32, dim, 1, &x), HONE_OK);
    ((float *)x->data)[1] = 3;
    char cpu[512];
    assert_int_equal(run(c, (hone_exec_options){.threads = 1, .interpret = true}, x, out), HONE_BAD_INPUT);
    snprintf(cpu, sizeof cpu, "%s", hone_fail_text());
    hone_units u = three();
    u.rest = 1;
    hone_compiled *form = compile_for(c, &u);
    hone_exec *e = NULL;
    assert_int_equal(hone_exec_create(form, &(hone_exec_options){.threads = 1, .units = &u}, &e), HONE_OK);
    for (int round = 0; round < 3; round++) {
        ((float *)x->data)[1] = 3;
        assert_int_equal(hone_exec_run(e, &x, out), HONE_BAD_INPUT);
        assert_string_equal(hone_fail_text(), cpu);
        ((float *)x->data)[1] = 1;
        if (hone_exec_run(e, &x, out)) fail_msg("%s", hone_fail_text());
        assert_true(((float *)out[0]->data)[0] == 5 && ((float *)out[0]->data)[1] == 6);
    }
    hone_exec_destroy(e);
    hone_value_drop(x), hone_value_drop(out[0]);
    hone_compiled_destroy(form), hone_compiled_destroy(c);
}
static void words(void **state) {
    (void)state;
    static const struct {
        const char *device, *place, *says;
    } wrong[] = {{"plan", NULL, "there is no device 'plan': there is cpu"},
                 {"plain:2", NULL, "there are 2 of 'plain'"},
                 {"plain:x", NULL, "stands a number"},
                 {"plain:", NULL, "stands a number"},
                 {"cpu:1", NULL, "there is 1 of 'cpu'"},
                 {"", NULL, "there is no device ''"},
                 {NULL, "a*", "does not say what goes where"},
                 {NULL, "a*=b\n", "there is no device 'b'"},
                 {NULL, "=cpu", "does not say what goes where"}};
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++) {
        hone_units *u = NULL;
        assert_int_equal(hone_units_make(wrong[k].device, wrong[k].place, &u), HONE_BAD_INPUT);
        if (!strstr(hone_fail_text(), wrong[k].says))
            fail_msg("'%s' does not say: %s", hone_fail_text(), wrong[k].says);
        assert_null(u);
    }
    hone_units *u = NULL;
    assert_int_equal(hone_units_make("plain:1", "a.*=cpu\nb=c=plain\na.x=plain:1\n", &u), HONE_OK);
    assert_int_equal(u->n, 3);
    assert_int_equal(hone_units_place(u, "z"), 1);
    assert_int_equal(hone_units_place(u, "a.b"), 0);
    assert_int_equal(hone_units_place(u, "a.x"), 1);
    assert_int_equal(hone_units_place(u, "b=c"), 2);
    hone_units_free(u);
    assert_int_equal(hone_units_make("cpu", "a*=cpu", &u), HONE_OK);
    assert_null(u); /* the CPU alone */
    assert_int_equal(hone_plugin_load("no/such/file.so"), HONE_IO);
    assert_int_equal(hone_plugin_load(getenv("HONE_PLUGIN_PLAIN")), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "there is a device 'plain' already"));
    hone_device_table t = {.abi = HONE_DEVICE_ABI + 1, .name = "other", .count = 1};
    assert_int_equal(hone_device_add(&t), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "ABI"));
    t.abi = HONE_DEVICE_ABI;
    assert_int_equal(hone_device_add(&t), HONE_BAD_INPUT);
    assert_non_null(strstr(hone_fail_text(), "lacks functions"));
}

int main(void) {
    const char *plugin = getenv("HONE_PLUGIN_PLAIN");
    if (!plugin || hone_plugin_load(plugin)) {
        fprintf(stderr, "HONE_PLUGIN_PLAIN=%s: %s\n", plugin ? plugin : "", hone_fail_text());
        return 1;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(words),        cmocka_unit_test(splits),
                                       cmocka_unit_test(random_plans), cmocka_unit_test(planted),
                                       cmocka_unit_test(forms),        cmocka_unit_test(stays),
                                       cmocka_unit_test(shared),       cmocka_unit_test(loops_stay),
                                       cmocka_unit_test(failing),      cmocka_unit_test(failing_body)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
