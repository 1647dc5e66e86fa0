/* SPDX-License-Identifier: Apache-2.0
   Wisdom: what is printed is read back; what is damaged, foreign or does not fit is not used; and whatever
   fits, however odd, gives the definition's answers. */
#include "twin.h"

#include "device/wisdom.h"
#include "run/advice.h"
#include "run/cost.h"

#include <unistd.h>

static hone_wisdom *fresh(void) {
    hone_wisdom *w = hone_wisdom_create();
    assert_non_null(w);
    return w;
}
static hone_wisdom *read_back(const char *text, size_t n, hone_status want) {
    hone_wisdom *w = NULL;
    char *copy = malloc(n ? n : 1); /* just as long: a byte too far is seen */
    memcpy(copy, text, n);
    assert_int_equal(hone_wisdom_read(copy, n, &w), want);
    assert_true((w != NULL) == (want == HONE_OK));
    free(copy);
    return w;
}

/* ---- any choice that fits ------------------------------------------------------------------------------ */
static const char *const graphs[] = {
    /* constant columns, a bias, a clamp, a residual */
    "graph g (x: f32[2, 37, 90], r: f32[2, 37, 70]) -> y { w: f32[90, 70] = random(1, -1, 1); c: f32[70] = "
    "random(3, -1, 1); h = MatMul(x, "
    "w); i = Add(h, "
    "c); j = Relu(i); y = Add(j, r); }",
    /* nothing is constant, and something odd follows */
    "graph g (x: f32[2, 33, 50], w: f32[2, 50, 45]) -> y { h = MatMul(x, w); y = Tanh(h); }",
    /* K beyond one depth, rows as one piece; and an alpha, so that sums wait */
    "graph g (a: f32[19, 2500], c: f32[41]) -> y { b: f32[41, 2500] = random(5, -1, 1); y = Gemm(a, b, c) "
    "{transB: 1, alpha: 0.5}; }",
    /* three channels: rows are copied; then a window of pieces; then 3x3 that can go by tiles */
    "graph g (x: f32[1, 3, 17, 19]) -> y { v: f32[16, 3, 3, 3] = random(4, -1, 1); w: f32[24, 16, 5, 5] = "
    "random(6, -1, 1); u: f32[20, 24, "
    "3, 3] = "
    "random(7, -1, 1); s = Conv(x, v) {pads: [1, 1, 1, 1]}; a = Relu(s); b = Conv(a, w) {pads: [2, 2, 2, 2], "
    "strides: [2, 1]}; c = "
    "Sigmoid(b); d = "
    "Conv(c, u) {pads: [1, 1, 1, 1]}; z = Relu(d); y = Transpose(z) {perm: [0, 2, 3, 1]}; }",
    /* depthwise, channels last and not */
    "graph g (x: f32[1, 8, 14, 15]) -> y { v: f32[24, 8, 1, 1] = random(4, -1, 1); w: f32[24, 1, 3, 3] = "
    "random(6, -1, 1); s = Conv(x, v); "
    "y = Conv(s, w) "
    "{group: 24, pads: [1, 1, 1, 1]}; }",
    "graph g (x: f32[2, 5, 23, 21]) -> y { w: f32[5, 1, 3, 4] = random(4, -1, 1); y = Conv(x, w) {group: 5, "
    "strides: [2, 1], pads: [1, 1, "
    "1, 1]}; }",
    /* bytes */
    "graph g (x: u8[2, 9, 12, 17]) -> y { w: u8[30, 9, 3, 3] = random(1, 0, 255); z: u8[] = {7}; y = "
    "ConvInteger(x, w, z) {pads: [1, 1, 1, "
    "1]}; }",
    "graph g (x: u8[3, 40, 33], w: i8[3, 33, 50]) -> y { y = MatMulInteger(x, w); }",
    /* attention */
    "graph g (q: f32[1, 3, 29, 16], k: f32[1, 3, 41, 16], v: f32[1, 3, 41, 24]) -> y { y = Attention(q, k, "
    "v); }",
};
enum { GRAPHS = sizeof graphs / sizeof *graphs, MOST = 4096 };

static void another(const hone_problem *p, int knob, hone_choice *c) { /* number for that knob, if it fits */
    hone_choice odd = *c;
    odd.knob[knob] = draw(0, 3) ? draw(1, 64) : draw(1, 2600);
    if (hone_choice_fits(p, &odd)) *c = odd;
}
/* A choice by lot: of those that the tuner would try, or of all that fit. Each knob in its turn is tried for
   long, so that few rounds meet all of them. */
static hone_choice by_lot(const hone_problem *p) {
    static int turn;
    static hone_choice all[MOST];
    int n = hone_choices(p, 1, all, MOST);
    assert_true(n > 0);
    /* the first are tiles, where there are any */
    hone_choice c = all[draw(0, 3) || n < 2 ? draw(0, n - 1) : draw(0, 1)];
    for (int tries = 0; tries < 400 && draw(0, 3); tries++) another(p, draw(0, HONE_CHOICE_KNOBS - 1), &c);
    const int knob = turn++ % HONE_CHOICE_KNOBS;
    for (int tries = 0; tries < 400 && !c.knob[knob]; tries++) another(p, knob, &c);
    return c;
}
static int problems_of(const hone_compiled *c, hone_value **in, const hone_wisdom *w, hone_problem *out,
                       int *wise) {
    hone_exec *e;
    hone_exec_options o = {.threads = 1, .wisdom = w};
    hone_value *made[4] = {0};
    int n = 0;
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    assert_int_equal(hone_exec_run(e, in, made), HONE_OK);
    for (const hone_plan *p = hone_exec_last(e); p; p = p->next_cut)
        for (int k = 0; k < p->n_step; k++) {
            const hone_decision *d = p->step[k].decision;
            if (!d) continue;
            *wise += d->wise;
            bool known = false;
            for (int q = 0; q < n; q++) known |= hone_problem_same(out + q, &d->problem);
            if (!known && n < 16) out[n++] = d->problem;
        }
    hone_exec_destroy(e);
    for (int k = 0; k < 4; k++) hone_value_drop(made[k]);
    return n;
}
static void run_with(const hone_compiled *c, hone_value **in, int threads, const hone_wisdom *w,
                     hone_value **out, const char *text) {
    hone_exec *e;
    hone_exec_options o = {.threads = threads, .wisdom = w};
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    for (int again = 0; again < 2; again++)
        if (hone_exec_run(e, in, out)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    hone_exec_destroy(e);
}
static int met[HONE_PROBLEM_KINDS][HONE_CHOICE_KNOBS]; /* knobs that said something */
static void any_choice(const char *text, int rounds) {
    hone_compiled *c = twin_compile(text);
    const hone_graph *g = c->graph;
    hone_value *in[4] = {0}, *want[2] = {0}, *one[2] = {0}, *two[2] = {0};
    hone_problem problem[16];
    for (int k = 0; k < g->in.n; k++) in[k] = twin_input(g, k);
    twin_run(c, in, 1, true, want, NULL, text);
    int wise = 0, n = problems_of(c, in, NULL, problem, &wise);
    assert_int_equal(wise, 0);
    if (!n) fail_msg("nothing to choose in\n%s", text);
    for (int round = 0; round < rounds; round++) {
        hone_wisdom *w = fresh();
        hone_text t = {0};
        for (int k = 0; k < n; k++) {
            hone_choice odd = by_lot(problem + k);
            assert_int_equal(hone_wisdom_add(w, problem + k, &odd, 5), HONE_OK);
            hone_choice_print(problem + k, &odd, &t);
            hone_text_put(&t, "; ");
            for (int q = 0; q < HONE_CHOICE_KNOBS; q++) met[problem[k].kind][q] += odd.knob[q] != 0;
        }
        hone_text_put(&t, "\n%s", text);
        wise = 0;
        hone_problem again[16];
        assert_int_equal(problems_of(c, in, w, again, &wise), n);
        if (wise < n) fail_msg("%d of %d choices were used: %s", wise, n, t.text);
        run_with(c, in, 1, w, one, t.text), run_with(c, in, 2, w, two, t.text);
        for (int k = 0; k < g->out.n; k++) {
            const bool whole = want[k]->dtype != HONE_DTYPE_F32;
            twin_same_bits(one[k], two[k], "one thread and two", t.text);
            twin_close(one[k], want[k], whole ? 0 : 1e-3, whole ? 0 : 1e-4, t.text);
        }
        hone_wisdom_destroy(w);
        hone_text_free(&t);
    }
    for (int k = 0; k < 2; k++) hone_value_drop(want[k]), hone_value_drop(one[k]), hone_value_drop(two[k]);
    for (int k = 0; k < g->in.n; k++) hone_value_drop(in[k]);
    hone_compiled_destroy(c);
}
static void odd_choices(void **state) {
    (void)state;
    EACH_LEVEL for (int k = 0; k < GRAPHS; k++) any_choice(graphs[k], SLOW ? 4 : 25);
    for (int k = 0; k < HONE_CHOICE_KNOBS; k++) assert_true(met[HONE_PROBLEM_SUM][k] > 0);
    for (int k = 0; k < 2; k++) assert_true(met[HONE_PROBLEM_BYTES][k] > 0);
    assert_true(met[HONE_PROBLEM_PLANE][0] > 0 && met[HONE_PROBLEM_ATTENTION][0] > 0);
}

/* ---- text ---------------------------------------------------------------------------------------------- */
static hone_wisdom *sample(hone_problem *problem, int *n) { /* of real problems, with choices by lot */
    hone_wisdom *w = fresh();
    *n = 0;
    for (int k = 0; k < GRAPHS; k++) {
        hone_compiled *c = twin_compile(graphs[k]);
        hone_value *in[4] = {0};
        int wise = 0;
        for (int q = 0; q < c->graph->in.n; q++) in[q] = twin_input(c->graph, q);
        *n += problems_of(c, in, NULL, problem + *n, &wise);
        for (int q = 0; q < c->graph->in.n; q++) hone_value_drop(in[q]);
        hone_compiled_destroy(c);
    }
    for (int k = 0; k < *n; k++) {
        hone_choice c = by_lot(problem + k);
        assert_int_equal(hone_wisdom_add(w, problem + k, &c, 1000 + k), HONE_OK);
    }
    return w;
}
static void round_trip(void **state) {
    (void)state;
    hone_problem problem[16 * GRAPHS];
    int n;
    hone_wisdom *w = sample(problem, &n), *again, *none = fresh();
    hone_text t = {0}, u = {0};
    hone_wisdom_print(w, &t);
    again = read_back(t.text, t.n, HONE_OK);
    assert_int_equal(again->line.n, n);
    assert_true(again->id == w->id && w->id != 0);
    for (int k = 0; k < n; k++) {
        const hone_choice *c = hone_wisdom_find(again, problem + k);
        assert_non_null(c);
        assert_true(hone_choice_same(problem + k, c, hone_wisdom_find(w, problem + k)));
        assert_int_equal(again->line.at[k].ns, 1000 + k);
    }
    hone_wisdom_print(again, &u);
    assert_string_equal(t.text, u.text);
    hone_wisdom_remove(again, problem);
    assert_null(hone_wisdom_find(again, problem));
    assert_int_equal(again->line.n, n - 1);
    assert_true(again->id != w->id);
    hone_wisdom_destroy(again);
    hone_text_free(&u);
    hone_wisdom_print(none, &u);
    again = read_back(u.text, u.n, HONE_OK);
    assert_int_equal(again->line.n, 0);
    assert_null(hone_wisdom_find(again, problem));
    assert_null(hone_wisdom_find(NULL, problem));
    hone_wisdom_destroy(again), hone_wisdom_destroy(none), hone_wisdom_destroy(w);
    hone_text_free(&t), hone_text_free(&u);
}
static void foreign(void **state) {
    (void)state;
    hone_problem problem[16 * GRAPHS];
    int n;
    hone_wisdom *w = sample(problem, &n);
    hone_text t = {0};
    hone_wisdom_print(w, &t);
    static const char *const line[] = {"hone wisdom ", "\ncpu ", "\nlevel ", "\nkernels "};
    for (int k = 0; k < 4; k++) { /* another version, CPU, level, list */
        char *copy = strdup(t.text), *at = strstr(copy, line[k]) + strlen(line[k]);
        *at = *at == '7' ? '6' : '7';
        read_back(copy, t.n, HONE_NOT_SUPPORTED);
        free(copy);
    }
    if (hone_cpu()) { /* this very text, on a lesser machine */
        hone_cpu_mask(0);
        read_back(t.text, t.n, HONE_NOT_SUPPORTED);
        hone_cpu_mask(UINT32_MAX);
    }
    read_back("", 0, HONE_BAD_INPUT);
    for (size_t cut = 0; cut < t.n; cut += SLOW ? 37 : 5) { /* cut off anywhere */
        hone_wisdom *out = NULL;
        char *copy = malloc(cut + 1);
        memcpy(copy, t.text, cut);
        assert_int_not_equal(hone_wisdom_read(copy, cut, &out), HONE_OK);
        assert_null(out);
        free(copy);
    }
    hone_wisdom_destroy(w);
    hone_text_free(&t);
}
/* No memory at any place: a clean failure, and nothing left behind. */
static void no_memory(void **state) {
    (void)state;
    hone_problem problem[16 * GRAPHS];
    int n, failures = 0;
    hone_wisdom *w = sample(problem, &n), *out = NULL;
    hone_text t = {0};
    hone_wisdom_print(w, &t);
    const uint64_t held = hone_alloc_live_bytes();
    for (;; failures++) {
        hone_alloc_fail_after(failures);
        hone_status s = hone_wisdom_read(t.text, t.n, &out);
        hone_alloc_fail_after(-1);
        if (s == HONE_OK) break;
        assert_int_equal(s, HONE_NO_MEMORY);
        assert_null(out);
        assert_int_equal(hone_alloc_live_bytes(), held);
    }
    assert_true(failures > 1);
    hone_wisdom_destroy(out), hone_wisdom_destroy(w);
    hone_text_free(&t);
}
/* Any byte changed: refused, or read, and then whatever is found fits. */
static void damaged(void **state) {
    (void)state;
    hone_problem problem[16 * GRAPHS];
    int n, read = 0;
    hone_wisdom *w = sample(problem, &n);
    hone_text t = {0};
    hone_wisdom_print(w, &t);
    for (int round = 0; round < (SLOW ? 2000 : 20000); round++) {
        char *copy = malloc(t.n);
        hone_wisdom *out = NULL;
        memcpy(copy, t.text, t.n);
        for (int k = draw(1, 3); k > 0; k--)
            copy[draw(0, (int)t.n - 1)] = draw(0, 2) ? (char)('0' + draw(0, 9)) : (char)draw(0, 255);
        if (hone_wisdom_read(copy, t.n, &out) == HONE_OK) {
            read++;
            for (int k = 0; k < n; k++) {
                const hone_choice *c = hone_wisdom_find(out, problem + k);
                assert_true(!c || hone_choice_fits(problem + k, c));
            }
        }
        hone_wisdom_destroy(out);
        free(copy);
    }
    assert_true(read > 0);
    hone_wisdom_destroy(w);
    hone_text_free(&t);
}
/* Numbers that no tactic could follow: the answer is the estimate's. */
static void wrong_numbers(void **state) {
    (void)state;
    static const int64_t wrong[] = {0, 7, 13, 100000, 999999999999999, 3};
    for (int k = 0; k < GRAPHS; k++) {
        hone_compiled *c = twin_compile(graphs[k]);
        hone_value *in[4] = {0}, *want[2] = {0}, *got[2] = {0};
        hone_problem problem[16];
        int wise = 0;
        for (int q = 0; q < c->graph->in.n; q++) in[q] = twin_input(c->graph, q);
        int n = problems_of(c, in, NULL, problem, &wise);
        run_with(c, in, 1, NULL, want, graphs[k]);
        for (size_t x = 0; x < sizeof wrong / sizeof *wrong; x++) {
            hone_wisdom *w = fresh();
            for (int q = 0; q < n; q++) {
                hone_choice bad = {{wrong[x], wrong[(x + 1) % 6], wrong[(x + 2) % 6], wrong[(x + 3) % 6],
                                    wrong[(x + 4) % 6], 1}};
                if (!hone_choice_fits(problem + q, &bad))
                    assert_int_equal(hone_wisdom_add(w, problem + q, &bad, 1), HONE_OK);
            }
            run_with(c, in, 1, w, got, graphs[k]);
            for (int q = 0; q < c->graph->out.n; q++)
                twin_same_bits(want[q], got[q], "choices that do not fit", graphs[k]);
            hone_wisdom_destroy(w);
        }
        for (int q = 0; q < 2; q++) hone_value_drop(want[q]), hone_value_drop(got[q]);
        for (int q = 0; q < c->graph->in.n; q++) hone_value_drop(in[q]);
        hone_compiled_destroy(c);
    }
}

/* ---- files: which one a session follows ---------------------------------------------------------------- */
static void files(void **state) {
    (void)state;
    char folder[] = "/tmp/hone-wisdom-XXXXXX", path[128];
    assert_non_null(mkdtemp(folder));
    hone_problem problem[16 * GRAPHS];
    int n;
    hone_wisdom *w = sample(problem, &n);
    hone_advice a;
    hone_text where = {0};
    unsetenv("HONE_WISDOM");
    setenv("XDG_CACHE_HOME", folder, 1);
    assert_int_equal(hone_advice_open(NULL, &a), HONE_OK); /* nobody has tuned */
    assert_true(!a.wisdom && !a.path && !a.why[0]);
    hone_advice_path(&where);
    assert_int_equal(hone_advice_write(w, where.text), HONE_OK);
    assert_int_equal(hone_advice_open(NULL, &a), HONE_OK);
    assert_true(a.wisdom && a.wisdom->line.n == n && !strcmp(a.path, where.text) && !a.why[0]);
    hone_advice_close(&a);
    assert_int_equal(hone_advice_open("", &a), HONE_OK);
    assert_true(!a.wisdom && !a.path);
    setenv("HONE_WISDOM", "none", 1);
    assert_int_equal(hone_advice_open(NULL, &a), HONE_OK);
    assert_true(!a.wisdom && !a.path);
    snprintf(path, sizeof path, "%s/other.txt", folder);
    setenv("HONE_WISDOM", path, 1);
    assert_int_equal(hone_advice_open(NULL, &a), HONE_OK); /* it is not there: a word, no failure */
    assert_true(!a.wisdom && a.path && a.why[0]);
    hone_advice_close(&a);
    assert_int_equal(hone_advice_open(path, &a), HONE_IO); /* but not where it was named */
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs("hone wisdom 2\ncpu Another\n", f);
    fclose(f);
    assert_int_equal(hone_advice_open(path, &a), HONE_OK);
    assert_true(!a.wisdom && strstr(a.why, "another CPU"));
    hone_advice_close(&a);
    unsetenv("HONE_WISDOM");
    unlink(path), unlink(where.text);
    snprintf(path, sizeof path, "%s/hone", folder);
    rmdir(path), rmdir(folder);
    hone_text_free(&where);
    hone_wisdom_destroy(w);
}

/* ---- the cost model ------------------------------------------------------------------------------------ */
/* It learns a law that is linear in its features, from noisy times, and orders choices by it. */
static void learns(void **state) {
    (void)state;
    double prior[HONE_FEATURES], law[HONE_FEATURES];
    hone_cost c;
    for (int k = 0; k < HONE_FEATURES; k++) prior[k] = 1, law[k] = k % 3 ? 0.2 * (k + 1) : 4;
    hone_cost_begin(&c, prior);
    for (int row = 0; row < 400; row++) {
        double f[HONE_FEATURES], ns = 0;
        for (int k = 0; k < HONE_FEATURES; k++) f[k] = draw(0, 1) ? draw(1, 1000) : 0, ns += f[k] * law[k];
        hone_cost_learn(&c, f, ns * (1 + draw(-20, 20) / 1000.0));
    }
    hone_cost_learn(&c, prior, 0); /* nothing takes no time: left out */
    assert_int_equal(c.n, 400);
    hone_cost_fit(&c);
    for (int k = 0; k < HONE_FEATURES; k++)
        if (fabs(c.weight[k] / law[k] - 1) > 0.15)
            fail_msg("weight %d is %g, wanted %g", k, c.weight[k], law[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(round_trip),  cmocka_unit_test(foreign),       cmocka_unit_test(no_memory),
        cmocka_unit_test(damaged),     cmocka_unit_test(wrong_numbers), cmocka_unit_test(files),
        cmocka_unit_test(odd_choices), cmocka_unit_test(learns),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
