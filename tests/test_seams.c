/* SPDX-License-Identifier: Apache-2.0
   Seams: what values meet between parts of a fused node, views and places in memory, where a mistake shows
   only for a rare number or shape. Each graph by the definition and fast, equal to the bit; the memory
   plan by itself, on blocks drawn by lot. */
#include "twin.h"

static void equal(const char *text) { twin_check(text, twin_input, 0, 0, NULL); }

/* A value as it comes back from storage, though it is never stored: a half is true, and bytes wrap. */
static void stored_between(void **state) {
    (void)state;
    EACH_LEVEL {
        equal("graph g (x: f32[9, 41]) -> y { h: f32[] = {4}; d = Div(x, h); b = Cast(d) {to: bool}; n = "
              "Not(b); "
              "y = Cast(n) {to: f32}; }");
        equal("graph g (x: f32[9, 41], z: f32[9, 41]) -> y { a = Cast(x) {to: bool}; b = Cast(z) {to: bool}; "
              "c = And(a, b); y = Where(c, x, z); }");
        equal("graph g (x: f32[9, 41]) -> y { k: f32[] = {300}; l = Mul(x, k); b = Cast(l) {to: i8}; "
              "n = Neg(b); y = Cast(n) {to: f32}; }");
        equal("graph g (x: f32[9, 41]) -> y { h = Cast(x) {to: f16}; n = Exp(h); m = Sqrt(n); y = Cast(m) "
              "{to: f32}; }");
    }
}
/* Slices from behind the end, backwards, and of what is a view already. */
static void slices(void **state) {
    (void)state;
    static const struct {
        int from, to, step;
    } rows[] = {{20, 0, -2},  {20, -99, -3}, {9, 2, -1},  {8, 0, -4},
                {-1, -9, -2}, {3, 99, 4},    {-99, 7, 3}, {6, 6, 1}};
    char text[512];
    EACH_LEVEL for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        snprintf(text, sizeof text,
                 "graph g (x: f32[4, 9, 3]) -> y, z { f: i64[] = {1}; s: i64[1] = {%d}; e: i64[1] = {%d}; a: "
                 "i64[1] = {1}; "
                 "t: i64[1] = {%d}; r = Neg(x); c = Slice(r, s, e, a, t); y = Abs(c); p = Transpose(r) "
                 "{perm: [2, 1, 0]}; "
                 "d = Slice(p, s, e, a, t); z = Exp(d); }",
                 rows[k].from, rows[k].to, rows[k].step);
        twin_check(text, twin_input, 0, 1e-6, NULL);
    }
}
/* Dims that are one now, and were not known before. */
static hone_value *free_input(const hone_graph *g, int k) {
    const hone_var *v = g->var.at + g->in.at[k];
    int64_t dim[HONE_MAX_RANK];
    hone_value *x;
    for (int d = 0; d < v->rank; d++) /* n of the first is one, m of the second is not */
        dim[d] = hone_dim_is_number(v->dim[d]) ? v->dim[d] : k ? 5 : 1;
    assert_int_equal(hone_value_tensor(v->dtype, dim, v->rank, &x), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++) ((float *)x->data)[q] = number();
    return x;
}
static void wider(void **state) {
    (void)state;
    EACH_LEVEL {
        twin_check("graph g (x: f32[n, 7], z: f32[m, 7]) -> y { a = Neg(x); b = Abs(a); c = Add(b, z); y = "
                   "Neg(c); }",
                   free_input, 0, 0, NULL);
        twin_check(
            "graph g (x: f32[n, 7], z: f32[m, 7]) -> y { w: f32[7, 7] = random(1, -1, 1); a = MatMul(x, w); "
            "b = Relu(a); c = Mul(z, b); y = Neg(c); }",
            free_input, 1e-5, 0, NULL);
    }
}
/* What an earlier stage of a node reads must not be written over by a later one before all of it was read. */
static void in_place(void **state) {
    (void)state;
    EACH_LEVEL {
        twin_check("graph g (x: f32[5, 3, 4, 40]) -> y { a = Neg(x); b = MeanVarianceNormalization(a) {axes: "
                   "[0]}; y = Abs(b); }",
                   twin_input, 1e-5, 1e-5, NULL);
        twin_check("graph g (x: f32[50, 70]) -> y { a = Neg(x); b = Softmax(a) {axis: 0}; y = Abs(b); }",
                   twin_input, 1e-6, 1e-5, NULL);
        twin_check(
            "graph g (x: f32[50, 70]) -> y { a = Neg(x); b = LpNormalization(a) {axis: 0}; y = Abs(b); }",
            twin_input, 1e-6, 1e-5, NULL);
        twin_check(
            "graph g (x: f32[50, 70]) -> y { k: i64[] = {0}; a = Neg(x); b = CumSum(a, k); y = Abs(b); }",
            twin_input, 1e-5, 1e-5, NULL);
    }
}
/* Bytes of sums behind an activation, of more columns than go at once, with a number of each column's own. */
static void columns(void **state) {
    (void)state;
    EACH_LEVEL {
        twin_check("graph g (x: f32[5, 40]) -> y { w: f32[40, 700] = random(1, -1, 1); b: f32[700] = "
                   "random(2, -4, 4); "
                   "s: f32[] = {0.004}; z: u8[] = {3}; h = MatMul(x, w); i = Add(h, b); a = Sigmoid(i); "
                   "q = QuantizeLinear(a, s, z); y = Cast(q) {to: f32}; }",
                   twin_input, 1, 0, NULL);
        twin_check("graph g (x: f32[1, 8, 30, 31], r: f32[1, 16, 30, 31]) -> y { w: f32[16, 8, 1, 1] = "
                   "random(1, -1, 1); "
                   "s: f32[] = {0.008}; z: i8[] = {-3}; h = Conv(x, w); i = Add(h, r); a = Tanh(i); "
                   "q = QuantizeLinear(a, s, z); y = Cast(q) {to: f32}; }",
                   twin_input, 1, 0, NULL);
    }
}
/* Filters of even sides, two pixels apart. */
static void even_sides(void **state) {
    (void)state;
    EACH_LEVEL {
        for (int side = 4; side <= (SLOW ? 4 : 6); side += 2) {
            char text[400];
            snprintf(text, sizeof text,
                     "graph g (x: f32[1, 40, 22, 23]) -> y { w: f32[48, 40, %d, %d] = random(1, -1, 1); "
                     "y = Conv(x, w) {strides: [2, 2], pads: [1, 1, 1, 1]}; }",
                     side, side);
            twin_check_terms(text, twin_input, 64 * 0x1p-24, NULL);
        }
    }
}
/* Blocks alive at one step lie apart; one that lies on another was made to, begins where that one ends, and
   is no larger. */
static void memory(void **state) {
    (void)state;
    for (int round = 0; round < 300; round++) {
        enum { MOST = 90 };
        hone_block block[MOST];
        const int n = draw(1, MOST), steps = draw(1, 120);
        int64_t lower, sum;
        for (int k = 0; k < n; k++) {
            int s = k && draw(0, 1) ? draw(0, k - 1) : -1;
            block[k] = (hone_block){.bytes = draw(1, 3000), .first = draw(0, steps - 1)};
            /* who may lie on it has read it: it is alive then */
            if (s >= 0) block[k].first = draw(0, 4) ? block[s].last : draw(block[s].first, block[s].last);
            /* a step has one result that may lie on an operand, and is not its only step */
            for (int q = 0; q < k; q++)
                if (block[q].shares >= 0 && block[q].first == block[k].first) s = -1;
            block[k].shares = s;
            block[k].last =
                draw(block[k].first, steps - 1 < block[k].first + 40 ? steps - 1 : block[k].first + 40);
        }
        hone_arena *a = hone_arena_create();
        assert_non_null(a);
        const int64_t need = hone_memory_plan(a, block, n, steps, 0, 64, &lower, &sum);
        assert_true(need >= lower);
        for (int k = 0; k < n; k++) {
            assert_true(block[k].at >= 0 && block[k].at % 64 == 0 && block[k].at + block[k].bytes <= need);
            for (int q = 0; q < k; q++) {
                const hone_block *p = block + q, *r = block + k;
                if (p->last < r->first || r->last < p->first || p->at + p->bytes <= r->at ||
                    r->at + r->bytes <= p->at)
                    continue;
                int over = k; /* along the chain of those it lies on */
                while (over >= 0 && over != q) over = block[over].shares;
                if (over != q || r->at != p->at || p->last != r->first)
                    fail_msg("blocks %d (steps %d to %d) and %d (%d to %d) overlap", q, p->first, p->last, k,
                             r->first, r->last);
                assert_true(r->bytes <= p->bytes || block[r->shares].at == r->at);
            }
        }
        hone_arena_destroy(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stored_between), cmocka_unit_test(slices),  cmocka_unit_test(wider),
        cmocka_unit_test(in_place),       cmocka_unit_test(columns), cmocka_unit_test(even_sides),
        cmocka_unit_test(memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
