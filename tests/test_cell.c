/* SPDX-License-Identifier: Apache-2.0
   Recurrent networks as the CPU runs them, against the definition: every form that has a step of its own, and
   those next to it that have none; random odd shapes, every CPU level, one thread, two and many (equal bits),
   states that come with the run, from a constant, or not at all. */
#include "twin.h"

enum { ROUNDS = SLOW ? 1 : 3 };
static char text[4096];
static double slack; /* of rounded factors */
static const char *const directions[] = {"forward", "reverse", "bidirectional"};
typedef struct {
    const char *op;
    int gates, states, biases;
    const char *attributes; /* after hidden_size and direction */
    bool own;               /* a step of its own is due */
} form;
static const form forms[] = {
    {"LSTM", 4, 2, 8, "", true},
    {"GRU", 3, 1, 6, ", linear_before_reset: 1", true},
    {"GRU", 3, 1, 6, ", linear_before_reset: 0", true},
    {"RNN", 1, 1, 2, "", true},
    {"LSTM", 4, 2, 8, ", clip: 0.7", false},
    {"LSTM", 4, 2, 8, ", input_forget: 1", false},
    {"GRU", 3, 1, 6, ", clip: 0.7, linear_before_reset: 1", false},
};
/* lens: 0 none, 1 as many as there are steps, 2 fewer for some; peep: peepholes, of an LSTM */
static int try_form(const form *f, int t, int b, int i, int h, int way, int lens, bool peep) {
    const int d = way == 2 ? 2 : 1, first = draw(0, 2), bias = draw(0, 1), outputs = draw(0, 3);
    const bool lstm = f->states == 2;
    char in[256], before[256] = "", state[32] = "";
    snprintf(in, sizeof in, "x: f32[%d, %d, %d]", t, b, i);
    for (int k = 0; k < f->states && first == 1; k++)
        snprintf(in + strlen(in), sizeof in - strlen(in), ", s%d: f32[%d, %d, %d]", k, d, b, h);
    if (first == 2) { /* one number seen as many */
        sprintf(before, "n: f32[1, 1, 1] = {0.3}; dims: i64[3] = {%d, %d, %d}; ", d, b, h);
        for (int k = 0; k < f->states; k++) sprintf(before + strlen(before), "s%d = Expand(n, dims); ", k);
    }
    if (first) snprintf(state, sizeof state, lstm ? ", s0, s1" : ", s0");
    else if (peep) snprintf(state, sizeof state, ", _, _");
    char numbers[256] = "";
    if (lens) {
        char *s = numbers + sprintf(numbers, "lens: i32[%d] = {", b);
        for (int k = 0; k < b; k++) s += sprintf(s, "%s%d", k ? ", " : "", lens == 1 ? t : draw(1, t));
        sprintf(s, "}; ");
    }
    if (peep) sprintf(numbers + strlen(numbers), "p: f32[%d, %d] = random(8, -1, 1); ", d, 3 * h);
    if (bias) sprintf(numbers + strlen(numbers), "b: f32[%d, %d] = random(6, -1, 1); ", d, f->biases * h);
    static const char *const wanted[] = {"y, yh", "y", "yh", "y, yh, yc"};
    snprintf(text, sizeof text,
             "graph g (%s) -> %s { w: f32[%d, %d, %d] = random(4, -0.4, 0.4); r: f32[%d, %d, %d] = random(5, "
             "-0.4, 0.4); %s%sy, yh%s = %s(x, w, "
             "r, %s, %s%s%s) {hidden_size: %d, direction: \"%s\"%s}; }",
             in, wanted[outputs == 3 && !lstm ? 0 : outputs], d, f->gates * h, i, d, f->gates * h, h, numbers,
             before, lstm ? ", yc" : "", f->op, bias ? "b" : "_", lens ? "lens" : "_", state,
             peep ? ", p" : "", h, directions[way], f->attributes);
    /* no trailing gaps */
    for (char *c; !first && !peep && (c = strstr(text, ", _)"));) memmove(c, c + 3, strlen(c + 3) + 1);
    return twin_check(text, twin_input, slack + 2e-5 + 5e-8 * h, 1e-5, "cell"); /* a long sum rounds more */
}
static void own_steps(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < ROUNDS; round++) for (size_t k = 0;
                                                                 k < sizeof forms / sizeof *forms; k++) {
        const int h = draw(0, 9) ? draw(2, 40) : draw(60, 80), b = draw(0, 2) ? draw(1, 3) : draw(4, 11);
        assert_int_equal(try_form(forms + k, draw(1, 5), b, draw(1, 9), h, draw(0, 2), 0, false),
                         forms[k].own);
    }
}
static void lengths_and_peepholes(void **state) {
    (void)state;
    EACH_LEVEL for (int round = 0; round < 1; round++) {
        /* where a sequence ends, its way back begins: data, which no step of its own looks at */
        for (int k = 0; k < 4; k++) {
            const int way = draw(0, 2);
            assert_int_equal(
                try_form(forms + k, draw(1, 7), draw(1, 3), draw(1, 9), draw(2, 40), way, draw(1, 2), false),
                way == 0);
        }
        assert_int_equal(
            try_form(forms, draw(1, 7), draw(1, 3), draw(1, 9), draw(2, 40), draw(0, 2), 0, true), 0);
    }
}
/* a state longer than the most of K at a time, and columns that are no whole vectors */
static void long_rows(void **state) {
    (void)state;
    for (int k = 0; k < 4 && !SLOW; k++)
        assert_int_equal(try_form(forms + k, 2, 1, 1, k < 3 ? 203 : 2051, 0, 0, false), 1);
}
/* Weights and states rounded to bf16, where it is asked for and pays: whole panels of whole steps, one row
   and several. States are below 1, weights below 0.4. */
static void in_halves(void **state) {
    (void)state;
    twin_precision = HONE_DTYPE_BF16, slack = 0.06;
    EACH_LEVEL for (int k = 0; k < 4; k++) for (int round = 0; round < ROUNDS; round++) {
        const int b = round == 0 ? draw(0, 1) ? 1 : draw(2, 12) : round == 1 ? 1 : draw(17, 36);
        assert_int_equal(
            try_form(forms + k, draw(1, 4), b, draw(1, 9), 32 * draw(1, 3), draw(0, 2), 0, false), 1);
    }
    twin_precision = HONE_DTYPE_NONE, slack = 0;
}
/* Threads that share the weights' columns and meet after every step. */
static int rounds_of(const char *graph, int threads) {
    hone_compiled *c = twin_compile(graph);
    hone_value *in[8] = {0}, *out[4] = {0};
    hone_exec_options o = {.threads = threads};
    hone_exec *e;
    int n = 0;
    for (int k = 0; k < c->graph->in.n; k++) in[k] = twin_input(c->graph, k);
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    assert_int_equal(hone_exec_run(e, in, out), HONE_OK);
    for (int k = 0; k < hone_exec_last(e)->n_step; k++) n += (int)hone_exec_last(e)->step[k].rounds;
    hone_exec_destroy(e);
    for (int k = 0; k < 8; k++) hone_value_drop(in[k]);
    for (int k = 0; k < 4; k++) hone_value_drop(out[k]);
    hone_compiled_destroy(c);
    return n;
}
static void shared_columns(void **state) {
    (void)state;
    EACH_LEVEL for (int k = 0; k < 4; k++) {
        const int h = k == 3 ? 512 : 256, t = 3;
        assert_int_equal(try_form(forms + k, t, draw(1, 2), 2, h, k == 1 ? 2 : 0, 0, false), 1);
        /* what is reset must be there before it is multiplied */
        assert_int_equal(rounds_of(text, 24), k == 2 ? 0 : t);
        assert_int_equal(rounds_of(text, 1), 0);
    }
}
static void infinite(void **state) { /* states and inputs that are no numbers */
    (void)state;
    EACH_LEVEL for (int k = 0; k < 4; k++) {
        snprintf(text, sizeof text,
                 "graph g (x: f32[3, 1, 2]) -> y, yh { w: f32[1, %d, 2] = random(4, -0.4, 0.4); r: f32[1, "
                 "%d, 19] = random(5, -0.4, 0.4); m: "
                 "f32[3, 1, 1] = {1, %s, 2}; z = Mul(x, m); y, yh%s = %s(z, w, r) {hidden_size: 19%s}; }",
                 19 * forms[k].gates, 19 * forms[k].gates, k % 2 ? "inf" : "nan", k ? "" : ", yc",
                 forms[k].op, forms[k].attributes);
        assert_int_equal(twin_check(text, twin_input, 2e-5, 1e-5, "cell"), 1);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(own_steps), cmocka_unit_test(lengths_and_peepholes),
                                       cmocka_unit_test(long_rows), cmocka_unit_test(shared_columns),
                                       cmocka_unit_test(infinite),  cmocka_unit_test(in_halves)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
