/* SPDX-License-Identifier: Apache-2.0
   Joins: parts of a Concat that are written where the Concat wants them, and shuffled channels, against the
   definition; to the bit with and without aliases; how many copies are left; and that memory stays near what
   is alive at once. */
#include "twin.h"

/* `free`: what dims that are not numbers are, in order of inputs. */
static hone_value *random_input(const hone_graph *g, int k, const int64_t **free) {
    const hone_var *v = g->var.at + g->in.at[k];
    hone_value *x;
    int64_t dim[HONE_MAX_RANK];
    for (int d = 0; d < v->rank; d++) dim[d] = hone_dim_is_number(v->dim[d]) ? v->dim[d] : *(*free)++;
    assert_int_equal(hone_value_tensor(v->dtype, dim, v->rank, &x), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++) {
        if (v->dtype == HONE_DTYPE_F32) ((float *)x->data)[q] = number();
        else if (v->dtype == HONE_DTYPE_I64) ((int64_t *)x->data)[q] = draw(0, 5);
        else ((uint8_t *)x->data)[q] = (uint8_t)draw(0, 1);
    }
    return x;
}
static int count_copies(const hone_plan *p, int *steps) {
    int n = 0;
    for (int k = 0; k < p->n_step; k++) n += !strcmp(p->step[k].tactic, "copy");
    *steps = p->n_step;
    return n;
}
enum { ANY = -1 };
/* copies: how many steps of the plan copy. */
static void check_with(const char *text, const int64_t *free, int copies) {
    hone_compiled *c = twin_compile(text), *apart = twin_compile(text);
    const hone_graph *g = c->graph;
    hone_value *in[8] = {0}, *want[4] = {0}, *one[4] = {0}, *two[4] = {0}, *alone[4] = {0};
    hone_fact fact[8];
    apart->concat_alias = NULL; /* the same, every part by itself */
    for (int k = 0; k < g->in.n; k++) {
        in[k] = random_input(g, k, &free), fact[k] = hone_fact_of_value(in[k]);
        if (!c->content_input[k]) fact[k].value = NULL;
    }
    hone_plan *p = NULL;
    if (hone_bind(c, fact, NULL, NULL, (hone_bind_options){.threads = 2}, &p))
        fail_msg("%s\nin\n%s", hone_fail_text(), text);
    int steps, n = count_copies(p, &steps);
    if (copies != ANY && n != copies) fail_msg("%d of %d steps copy, not %d, in\n%s", n, steps, copies, text);
    if (p->arena_bytes > p->lower_bound_bytes + p->lower_bound_bytes / 10 + 4096)
        fail_msg("%lld bytes, where %lld are alive, in\n%s", (long long)p->arena_bytes,
                 (long long)p->lower_bound_bytes, text);
    hone_plan_destroy(p);
    twin_run(c, in, 1, true, want, NULL, text);
    twin_run(c, in, 1, false, one, NULL, text);
    twin_run(c, in, 2, false, two, NULL, text);
    twin_run(apart, in, 1, false, alone, NULL, text);
    for (int k = 0; k < g->out.n; k++) {
        twin_same_bits(one[k], two[k], "two threads", text);
        twin_same_bits(one[k], alone[k], "parts by themselves", text);
        twin_close(one[k], want[k], 1e-4, 1e-4, text);
        hone_value_drop(want[k]), hone_value_drop(one[k]), hone_value_drop(two[k]), hone_value_drop(alone[k]);
    }
    for (int k = 0; k < g->in.n; k++) hone_value_drop(in[k]);
    hone_compiled_destroy(c), hone_compiled_destroy(apart);
}
static void check(const char *text, int copies) { check_with(text, NULL, copies); }
static char text[8192];

/* w1: 8 to 5 channels, w2: 8 to 16, w3: 13 to 4, 3 x 3 */
#define WEIGHTS                                                                         \
    "w1: f32[5, 8, 1, 1] = random(1, -1, 1); w2: f32[16, 8, 3, 3] = random(2, -1, 1); " \
    "a = Relu(x); "
static void fire(void **state) { /* two convolutions of one picture, side by side; a third reads both */
    (void)state;
    check("graph g (x: f32[2, 8, 9, 7]) -> y { " WEIGHTS
          "w3: f32[4, 21, 3, 3] = random(3, -1, 1); p = Conv(a, w1); r = Relu(p); "
          "q = Conv(a, w2) {pads: [1, 1, 1, 1]}; s = LeakyRelu(q); c = Concat(r, s) {axis: 1}; y = Conv(c, "
          "w3); }",
          0);
    /* a part that leaves the graph */
    check("graph g (x: f32[1, 8, 9, 7]) -> y, r { " WEIGHTS "p = Conv(a, w1); r = Relu(p); "
          "q = Conv(a, w2) {pads: [1, 1, 1, 1]}; s = LeakyRelu(q); c = Concat(r, s) {axis: 1}; y = Neg(c); }",
          1);
    /* parts that are an input and a constant */
    check("graph g (x: f32[1, 8, 9, 7]) -> y { " WEIGHTS "p = Conv(a, w1); r = Relu(p); "
          "k: f32[1, 2, 9, 7] = random(9, -1, 1); c = Concat(x, r, k) {axis: -3}; y = Neg(c); }",
          2);
    /* the whole leaves the graph */
    check("graph g (x: f32[1, 8, 9, 7]) -> c { " WEIGHTS "p = Conv(a, w1); r = Relu(p); "
          "q = Conv(a, w2) {pads: [1, 1, 1, 1]}; c = Concat(r, q) {axis: 1}; }",
          ANY);
}
static void twice(void **state) { /* a part that is there twice, is read elsewhere, is in two joins */
    (void)state;
    check("graph g (x: f32[1, 8, 9, 7]) -> y { " WEIGHTS
          "p = Conv(a, w1); c = Concat(p, a, p) {axis: 1}; y = Neg(c); }",
          2);
    check("graph g (x: f32[1, 8, 9, 7]) -> y, z { " WEIGHTS
          "v: f32[6, 5, 3, 3] = random(4, -1, 1); p = Conv(a, w1); "
          "q = Conv(p, v) {pads: [1, 1, 1, 1]}; m = MaxPool(p) {kernel_shape: [3, 3], pads: [1, 1, 1, 1]}; "
          "z = GlobalAveragePool(p); c = Concat(m, p, q) {axis: 1}; y = Neg(c); }",
          1);
    check("graph g (x: f32[1, 8, 9, 7]) -> y, z { " WEIGHTS
          "p = Conv(a, w1); q = Conv(a, w2) {pads: [1, 1, 1, 1]}; "
          "c = Concat(p, q) {axis: 1}; d = Concat(q, p) {axis: 1}; y = Neg(c); z = LeakyRelu(d); }",
          2);
    /* a part that is added to another where it stores: both lie in one block, and neither may take the
       other's place */
    check("graph g (x: f32[1, 8, 9, 7]) -> y { " WEIGHTS
          "k: f32[5, 5, 3, 3] = random(4, -1, 1); p = Conv(a, w1); "
          "s = Conv(p, k) {pads: [1, 1, 1, 1]}; q = Add(s, p); t = Conv(q, k) {pads: [1, 1, 1, 1]}; m = "
          "Add(t, q); "
          "c = Concat(p, q, m, p) {axis: 1}; y = Neg(c); }",
          1);
    check("graph g (x: f32[1, 8, 9, 7]) -> y { " WEIGHTS
          "p = Conv(a, w1); q = Exp(p); m = Mul(q, p); c = Concat(p, q, m, p) {axis: 1}; "
          "y = Neg(c); }",
          3);
    check("graph g (x: f32[2, 3, 4]) -> y { p = Relu(x); q = LeakyRelu(p); r = Elu(q); c = Concat(q, r) "
          "{axis: 0}; y = Mul(c, c); }",
          ANY);
}
static void nested(void **state) {
    (void)state;
    check("graph g (x: f32[1, 8, 9, 7]) -> y { " WEIGHTS
          "v: f32[3, 13, 3, 3] = random(4, -1, 1); u: f32[2, 16, 1, 1] = random(5, -1, 1); "
          "c0 = Conv(a, w1); x1 = Concat(a, c0) {axis: 1}; t1 = Conv(x1, v) {pads: [1, 1, 1, 1]}; c1 = "
          "Relu(t1); "
          "x2 = Concat(x1, c1) {axis: 1}; c2 = Conv(x2, u); x3 = Concat(x2, c2) {axis: 1}; y = Neg(x3); }",
          ANY);
    /* every layer names all before it, as exporters write it: the first is an element-wise node behind a
       convolution, so a picture too */
    check("graph g (x: f32[2, 8, 9, 7]) -> y { " WEIGHTS
          "v: f32[3, 21, 3, 3] = random(4, -1, 1); u: f32[2, 24, 1, 1] = random(5, -1, 1); "
          "k: f32[16, 8, 1, 1] = random(6, -1, 1); b = Conv(a, k); c0 = Conv(a, w1); x1 = Concat(b, c0) "
          "{axis: 1}; "
          "t1 = Conv(x1, v) {pads: [1, 1, 1, 1]}; c1 = Relu(t1); x2 = Concat(b, c0, c1) {axis: 1}; n2 = "
          "LeakyRelu(x2); c2 = Conv(n2, u); "
          "x3 = Concat(b, c0, c1, c2) {axis: 1}; y = Neg(x3); }",
          0);
    /* joins in joins along other dims */
    check("graph g (x: f32[2, 8, 9, 7]) -> y { " WEIGHTS
          "p = Conv(a, w1); q = Relu(p); r = Concat(p, q) {axis: 2}; s = LeakyRelu(r); "
          "t = Concat(s, r) {axis: 3}; u = Concat(t, t) {axis: 0}; v = Neg(t); w = Concat(v, t) {axis: 1}; y "
          "= Concat(w, w) {axis: 1}; "
          "}",
          ANY);
}
static void split(void **state) { /* halves, one of them worked on, and all of it joined again */
    (void)state;
    check("graph g (x: f32[1, 8, 9, 7]) -> y { " WEIGHTS
          "v: f32[8, 8, 3, 3] = random(4, -1, 1); h: i64[2] = {8, 8}; "
          "q = Conv(a, w2) {pads: [1, 1, 1, 1]}; l, r = Split(q, h) {axis: 1}; m = Conv(r, v) {pads: [1, 1, "
          "1, 1]}; n = Add(m, r); "
          "c = Concat(l, r, n) {axis: 1}; y = Neg(c); }",
          0);
}
static void axes(void **state) {
    (void)state;
    for (int axis = 0; axis < 4; axis++) {
        snprintf(text, sizeof text,
                 "graph g (x: f32[2, 8, 9, 7]) -> y { " WEIGHTS
                 "p = Conv(a, w1); q = LeakyRelu(p); c = Concat(q, p, q) {axis: %d}; "
                 "d = Concat(c, c) {axis: %d}; y = Neg(d); }",
                 axis, 3 - axis);
        check(text, ANY);
        snprintf(text, sizeof text, /* rows */
                 "graph g (x: f32[2, 3, 5, 4]) -> y { w: f32[4, 4] = random(1, -1, 1); v: f32[4, 4] = "
                 "random(2, -1, 1); p = MatMul(x, w); "
                 "q = MatMul(p, v); r = MatMul(q, w); t = Elu(r); c = Concat(t, q, p) {axis: %d}; y = Mul(c, "
                 "c); }",
                 axis - 4);
        check(text, 0);
    }
    check("graph g (x: f32[3, 20]) -> y { w: f32[20, 9] = random(1, -1, 1); v: f32[20, 1] = random(2, -1, "
          "1); p = MatMul(x, w); q = "
          "MatMul(x, v); r = LeakyRelu(q); c = Concat(r, p, r) {axis: 1}; y = Neg(c); }",
          1);
    /* by tile code */
    check(
        "graph g (x: i64[4]) -> y { p = Neg(x); q = Add(x, x); c = Concat(p, q) {axis: 0}; y = Mul(c, c); }",
        2);
    check("graph g (x: i64[3, 4], z: i64[4, 5]) -> y { p = MatMul(x, z); q = Add(p, p); c = Concat(q, p) "
          "{axis: 1}; y = Mul(c, c); }",
          ANY);
}
/* a part that some reader wants in rows lies by itself: one copy, as ever */
static void strict_readers(void **state) {
    (void)state;
    check("graph g (x: f32[6, 5, 8]) -> y, z { w: f32[8, 4] = random(1, -1, 1); v: f32[8, 4] = random(2, -1, "
          "1); f: i64[2] = {6, -1}; "
          "p = MatMul(x, w); q = MatMul(x, v); c = Concat(p, q) {axis: 2}; y = Neg(c); r = Reshape(p, f); z "
          "= LeakyRelu(r); }",
          1);
    check("graph g (x: f32[4, 6]) -> y, z { w: f32[6, 7] = random(1, -1, 1); v: f32[6, 5] = random(2, -1, "
          "1); p = MatMul(x, w); "
          "q = MatMul(x, v); c = Concat(p, q) {axis: 1}; y = Neg(c); n = NonZero(p); z = Cast(n) {to: 1}; }",
          1);
}
/* a bridge that waits: the room is not kept for it; most of the whole does wait */
static void memory(void **state) {
    (void)state;
    for (int most = 0; most < 2; most++) {
        int c = most ? 12 : 4;
        snprintf(
            text, sizeof text,
            "graph g (x: f32[1, 3, 8, 8]) -> y { w0: f32[%d, 3, 1, 1] = random(1, -1, 1); w1: f32[4, %d, 3, "
            "3] = random(2, -1, 1); "
            "w2: f32[4, 4, 3, 3] = random(3, -1, 1); a = Conv(x, w0); b = Conv(a, w1) {pads: [1, 1, 1, 1]}; "
            "c = Conv(b, w2) {pads: [1, 1, 1, 1]}; d = Conv(c, w2) {pads: [1, 1, 1, 1]}; e = Conv(d, w2) "
            "{pads: [1, 1, 1, 1]}; "
            "f = Conv(e, w2) {pads: [1, 1, 1, 1]}; g = Conv(f, w2) {pads: [1, 1, 1, 1]}; h = Conv(g, w2) "
            "{pads: [1, 1, 1, 1]}; "
            "i = Conv(h, w2) {pads: [1, 1, 1, 1]}; j = Conv(i, w2) {pads: [1, 1, 1, 1]}; k = Conv(j, w2) "
            "{pads: [1, 1, 1, 1]}; "
            "l = Concat(a, k) {axis: 1}; y = Relu(l); }",
            c, c);
        check(text, !most);
    }
}
static void free_dims(void **state) {
    (void)state;
    const char *picture =
        "graph g (x: f32[n, 8, h, w]) -> y { " WEIGHTS
        "v: f32[3, 13, 3, 3] = random(4, -1, 1); k: f32[8, 8, 1, 1] = random(6, -1, 1); b = Conv(a, k); "
        "c0 = Conv(a, w1); x1 = Concat(b, c0) {axis: 1}; t1 = Conv(x1, v) {pads: [1, 1, 1, 1]}; c1 = "
        "Relu(t1); "
        "x2 = Concat(b, c0, c1) {axis: 1}; y = Neg(x2); }";
    for (int k = 0; k < 4; k++) check_with(picture, (int64_t[]){draw(1, 3), draw(3, 9), draw(3, 9)}, 0);
    const char *rows =
        "graph g (x: f32[n, a], u: f32[a, k], z: f32[n, b], v: f32[b, m]) -> y { p = MatMul(x, u); q = "
        "MatMul(z, v); "
        "c = Concat(p, q, p) {axis: 1}; d = Neg(c); e = Concat(d, c) {axis: 0}; y = LeakyRelu(e); }";
    for (int k = 0; k < 4; k++) {
        int64_t n = draw(1, 5), a = draw(1, 9), b = draw(1, 9);
        check_with(rows, (int64_t[]){n, a, a, draw(1, 20), n, b, b, draw(1, 20)}, 2);
    }
    /* nothing in one of them, or in all */
    check_with(rows, (int64_t[]){3, 0, 0, 5, 3, 4, 4, 2}, ANY);
    check_with(rows, (int64_t[]){3, 5, 5, 0, 3, 4, 4, 2}, ANY);
    check_with(rows, (int64_t[]){3, 5, 5, 2, 3, 4, 4, 0}, ANY);
    check_with(rows, (int64_t[]){0, 5, 5, 2, 0, 4, 4, 2}, ANY);
    /* a size that only data say: the plan is cut between the parts */
    const char *data =
        "graph g (x: f32[a, 4], m: bool[a]) -> y { w: f32[4, 4] = random(1, -1, 1); p = MatMul(x, w); k = "
        "Compress(p, m) {axis: 0}; "
        "q = MatMul(k, w); "
        "s = Concat(p, q, p) {axis: 0}; t = Neg(s); u = Concat(t, s) {axis: 1}; y = LeakyRelu(u); }";
    for (int k = 0; k < 3; k++) {
        int64_t a = draw(1, 9);
        check_with(data, (int64_t[]){a, a}, ANY);
    }
    const char *shape = "graph g (x: f32[a, 4], n: i64[1]) -> y { w: f32[4, 4] = random(1, -1, 1); p = "
                        "MatMul(x, w); r: i64[1] = {4}; "
                        "d = Concat(n, r) {axis: 0}; q = Expand(x, d); z = MatMul(q, w); c = Concat(p, z, p) "
                        "{axis: 0}; e = Concat(c, c) "
                        "{axis: 1}; y = Neg(e); }";
    check_with(shape, (int64_t[]){1}, ANY);
}
static void shuffle(void **state) {
    (void)state;
    for (int round = 0; round < 6; round++) {
        int g = draw(2, round < 4 ? 3 : 11), c = draw(1, 9), h = draw(1, 6), w = draw(1, 7), n = draw(1, 2);
        snprintf(text, sizeof text,
                 "graph g (x: f32[%d, 4, %d, %d]) -> y, z { w1: f32[%d, 4, 1, 1] = random(1, -1, 1); w2: "
                 "f32[3, %d, 1, 1] = random(2, -1, 1); "
                 "s5: i64[5] = {%d, %d, %d, %d, %d}; s4: i64[4] = {%d, %d, %d, %d}; a = Conv(x, w1); r = "
                 "Reshape(a, s5); "
                 "t = Transpose(r) {perm: [0, 2, 1, 3, 4]}; b = Reshape(t, s4); y = Conv(b, w2); u = "
                 "Relu(b); z = LeakyRelu(u); }",
                 n, h, w, g * c, g * c, n, g, c, h, w, n, g * c, h, w);
        check(text, ANY);
    }
    /* as ShuffleNet has it: a copy of the half that passes by, one that takes both groups in turns, and
       nothing else */
    check("graph g (x: f32[1, 8, 9, 7]) -> y { w0: f32[10, 8, 1, 1] = random(1, -1, 1); v: f32[5, 5, 3, 3] = "
          "random(2, -1, 1); "
          "s5: i64[5] = {1, 2, 5, 9, 7}; s4: i64[4] = {1, 10, 9, 7}; h: i64[2] = {5, 5}; a = Conv(x, w0); l, "
          "r = Split(a, h) {axis: 1}; "
          "m = Conv(r, v) {pads: [1, 1, 1, 1]}; c = Concat(l, m) {axis: 1}; d = Reshape(c, s5); "
          "t = Transpose(d) {perm: [0, 2, 1, 3, 4]}; b = Reshape(t, s4); o, p = Split(b, h) {axis: 1}; q = "
          "Conv(p, v); y = Neg(q); }",
          2);
    /* one dim of pixels; what leaves the graph is in the caller's order; free dims */
    check("graph g (x: f32[2, 6, 11]) -> b, y { w0: f32[6, 6, 3] = random(1, -1, 1); s4: i64[4] = {2, 3, 2, "
          "9}; s3: i64[3] = {2, 6, 9}; "
          "a = Conv(x, w0); r = Reshape(a, s4); t = Transpose(r) {perm: [0, 2, 1, 3]}; b = Reshape(t, s3); y "
          "= Conv(b, w0); }",
          ANY);
    check_with("graph g (x: f32[n, 6, h, w]) -> y { w0: f32[6, 6, 1, 1] = random(1, -1, 1); s5: i64[5] = {0, "
               "3, 2, 5, 4}; "
               "s4: i64[4] = {0, 6, 5, 4}; a = Conv(x, w0); r = Reshape(a, s5); t = Transpose(r) {perm: [0, "
               "2, 1, 3, 4]}; "
               "b = Reshape(t, s4); y = Conv(b, w0); }",
               (int64_t[]){2, 5, 4}, ANY);
}
/* joins inside a body, which is bound in place; parts that are captured, and what a body gives back */
static void branches(void **state) {
    (void)state;
    check("graph g (b: bool[], x: f32[1, 8, 9, 7]) -> y { " WEIGHTS "p = Conv(a, w1); q = LeakyRelu(p); "
          "z = If(b; p, q) {then_branch: graph t (; p: f32[1, 5, 9, 7], q: f32[1, 5, 9, 7]) -> r { m = "
          "Neg(p); n = Exp(q); "
          "c = Concat(m, p, n) {axis: 1}; r = Relu(c); }, else_branch: graph e (; p: f32[1, 5, 9, 7], q: "
          "f32[1, 5, 9, 7]) -> r { "
          "m = Exp(p); c = Concat(m, q) {axis: 1}; r = Concat(c, m) {axis: 1}; }}; "
          "d = Concat(q, p, z) {axis: 1}; y = Neg(d); }",
          ANY);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(fire),     cmocka_unit_test(twice),     cmocka_unit_test(nested),
        cmocka_unit_test(split),    cmocka_unit_test(axes),      cmocka_unit_test(strict_readers),
        cmocka_unit_test(memory),   cmocka_unit_test(free_dims), cmocka_unit_test(shuffle),
        cmocka_unit_test(branches),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
