/* SPDX-License-Identifier: Apache-2.0
   twin: a graph written as text, run by the definition and fast, so that the two can be compared: on every
   CPU level, on one thread and two. For tests. */
#ifndef HONE_TESTS_TWIN_H
#define HONE_TESTS_TWIN_H
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/thread.h"
#include "kernels/gemm.h"
#include "plan/plan.h"
#include "random.h"
#include "run/exec.h"

static uint64_t draw_state = 88172645463325252u;
static int draw(int from, int to) { /* from … to */
    return from + (int)(next_random(&draw_state) % (uint64_t)(to - from + 1));
}
static inline float number(void) { return (float)draw(-1000, 1000) / 500.0f; }

/* What a machine may have; those above this one's are this one's. */
static const uint32_t twin_levels[] = {0,
                                       HONE_CPU_NEON,
                                       HONE_CPU_AVX2,
                                       HONE_CPU_AVX2 | HONE_CPU_AVX512,
                                       ~(uint32_t)(HONE_CPU_AMX | HONE_CPU_I8MM | HONE_CPU_BF16),
                                       UINT32_MAX};
static hone_dtype twin_precision; /* of fast runs; NONE: f32 */
static int twin_halved;           /* blocks that the last run, of those asked for a tactic, stored as bf16 */
/* Every level draws the same cases, so that the definition, which is slow, is asked once for all of them:
   what it said is known by the text and the inputs. */
static uint64_t twin_start;
static hone_vec(struct {
    uint64_t key;
    int n;
    hone_value *out[4];
}) twin_known;
static inline size_t twin_begin(void) {
    twin_start = draw_state;
    return 0;
}
static inline bool twin_end(void) {
    for (int k = 0; k < twin_known.n; k++)
        for (int q = 0; q < twin_known.at[k].n; q++) hone_value_drop(twin_known.at[k].out[q]);
    hone_vec_free(&twin_known);
    twin_start = 0;
    return false;
}
static inline uint64_t twin_mix(uint64_t h, const void *bytes, size_t n) {
    for (size_t k = 0; k < n; k++) h = (h ^ ((const uint8_t *)bytes)[k]) * 0x100000001b3u;
    return h;
}
static inline uint64_t twin_key(const hone_graph *g, hone_value *const *in, const char *text) {
    uint64_t h = twin_mix(0xcbf29ce484222325u, text, strlen(text));
    for (int k = 0; k < g->in.n; k++) {
        h = twin_mix(h, in[k]->dim, sizeof *in[k]->dim * (size_t)in[k]->rank);
        h = twin_mix(h, in[k]->data, in[k]->bytes);
    }
    return h;
}
static inline bool twin_level(size_t k) { /* false: to this machine it is the same as one before */
    hone_cpu_mask(UINT32_MAX);
    const uint32_t all = hone_cpu();
    bool other = true;
    for (size_t q = 0; q < k; q++) other &= (twin_levels[q] & all) != (twin_levels[k] & all);
    hone_cpu_mask(other ? twin_levels[k] : UINT32_MAX);
    draw_state = twin_start;
    return other;
}
#define EACH_LEVEL                                                                                    \
    for (size_t level = twin_begin(); level < sizeof twin_levels / sizeof *twin_levels || twin_end(); \
         hone_cpu_mask(UINT32_MAX), level++)                                                          \
        if (twin_level(level))
/* Only those whose kernel of this kind is another than at the one before: to the others nothing is new. */
static const void *twin_before;
static inline size_t twin_first(void) {
    twin_before = NULL;
    return twin_begin();
}
static inline bool twin_other(const void *kernel) {
    const bool is = kernel != twin_before;
    twin_before = kernel;
    return is;
}
#define EACH_LEVEL_OF(kernel)                                                                         \
    for (size_t level = twin_first(); level < sizeof twin_levels / sizeof *twin_levels || twin_end(); \
         hone_cpu_mask(UINT32_MAX), level++)                                                          \
        if (twin_level(level) && twin_other(kernel))
#define EACH_F32_LEVEL EACH_LEVEL_OF(hone_gemm_f32_best())
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__) || !defined(NDEBUG) || \
    defined(HONE_EMULATED)
#define SLOW 1 /* the definition is slow, and slower here */
#else
#define SLOW 0
#endif

/* So many cases by lot; with HONE_TEST_ALL, which `make test-all` sets, all. */
static inline int twin_rounds(int slow, int some, int all) {
    return SLOW ? slow : getenv("HONE_TEST_ALL") ? all : some;
}

/* random: floats from -2 to 2, any bytes */
static inline hone_value *twin_input(const hone_graph *g, int k) {
    const hone_var *v = g->var.at + g->in.at[k];
    hone_value *x;
    assert_int_equal(hone_value_tensor(v->dtype, v->dim, v->rank, &x), HONE_OK);
    for (int64_t q = 0; q < hone_value_count(x); q++) {
        if (v->dtype == HONE_DTYPE_F32) ((float *)x->data)[q] = number();
        else ((uint8_t *)x->data)[q] = (uint8_t)draw(0, 255);
    }
    return x;
}
static hone_compiled *twin_compile(const char *text) {
    hone_graph *g;
    hone_compiled *c = NULL;
    if (hone_graph_parse(text, strlen(text), &g) || hone_compile(g, &c))
        fail_msg("%s\nin\n%s", hone_fail_text(), text);
    return c;
}
/* How many steps had this tactic (NULL: not asked). Fast, it runs twice: the second run finds what the first
   one left in memory. */
static int twin_run(const hone_compiled *c, hone_value **in, int threads, bool interpret, hone_value **out,
                    const char *tactic, const char *text) {
    hone_exec *e;
    hone_exec_options o = {
        .threads = threads, .interpret = interpret, .precision = interpret ? HONE_DTYPE_F32 : twin_precision};
    int n = 0;
    const bool keep = interpret && twin_start && c->graph->out.n <= 4;
    const uint64_t key = keep ? twin_key(c->graph, in, text) : 0;
    for (int k = 0; keep && k < twin_known.n; k++)
        if (twin_known.at[k].key == key) {
            for (int q = 0; q < twin_known.at[k].n; q++) out[q] = hone_value_hold(twin_known.at[k].out[q]);
            return 0;
        }
    assert_int_equal(hone_exec_create(c, &o, &e), HONE_OK);
    for (int again = interpret; again < 2; again++)
        if (hone_exec_run(e, in, out)) fail_msg("%s\nin\n%s", hone_fail_text(), text);
    for (const hone_plan *p = tactic ? hone_exec_last(e) : NULL; p; p = p->next_cut)
        for (int k = 0; k < p->n_step; k++) n += !strcmp(p->step[k].tactic, tactic);
    twin_halved = 0;
    for (const hone_plan *p = tactic ? hone_exec_last(e) : NULL; p; p = p->next_cut)
        for (int k = 0; k < p->n_block; k++) twin_halved += p->block[k].half_stored;
    hone_exec_destroy(e);
    if (keep) {
        assert_true(hone_vec_grow((void **)&twin_known.at, &twin_known.room, twin_known.n + 1,
                                  sizeof *twin_known.at));
        twin_known.at[twin_known.n].key = key, twin_known.at[twin_known.n].n = c->graph->out.n;
        for (int q = 0; q < c->graph->out.n; q++)
            twin_known.at[twin_known.n].out[q] = hone_value_hold(out[q]);
        twin_known.n++;
    }
    return n;
}
static void twin_same_bits(const hone_value *a, const hone_value *b, const char *what, const char *text) {
    assert_int_equal(a->rank, b->rank);
    for (int d = 0; d < a->rank; d++) assert_int_equal(a->dim[d], b->dim[d]);
    if (!a->bytes || !memcmp(a->data, b->data, a->bytes)) return;
    /* which NaN it is, the CPU decides by the order of operands */
    for (int64_t q = 0; q < hone_value_count(a); q++) {
        const size_t size = hone_dtypes[a->dtype].bytes;
        if (memcmp((const char *)a->data + q * (int64_t)size, (const char *)b->data + q * (int64_t)size,
                   size) &&
            !(isnan(hone_value_number(a, q)) && isnan(hone_value_number(b, q))))
            fail_msg("%s give other bits in\n%s", what, text);
    }
}
/* NaN where NaN is due; nothing else than the definition's where atol and rtol are 0. */
static void twin_close(const hone_value *got, const hone_value *want, double atol, double rtol,
                       const char *text) {
    assert_int_equal(hone_value_count(got), hone_value_count(want));
    for (int64_t q = 0; q < hone_value_count(want); q++) {
        double x = hone_value_number(got, q), w = hone_value_number(want, q);
        if (!(isfinite(w) && fabs(x - w) <= atol + rtol * fabs(w)) && x != w && !(isnan(x) && isnan(w)))
            fail_msg("element %lld: got %g, want %g, in\n%s", (long long)q, x, w, text);
    }
}
/* On two threads and on many; where that is slow, on either in turn. */
static void twin_others(const hone_compiled *c, hone_value **in, hone_value **two, hone_value **many,
                        const char *text) {
    static unsigned turn;
    const bool all = twin_rounds(0, 1, 1), odd = turn++ % 2;
    if (all || odd) twin_run(c, in, 2, false, two, NULL, text);
    if (all || !odd) twin_run(c, in, 24, false, many, NULL, text);
}
/* By the definition and fast; cut for one thread, two and many, alike to the bit. How many of the fast steps
   had the tactic. */
static inline int twin_check(const char *text, hone_value *(*input)(const hone_graph *, int), double atol,
                             double rtol, const char *tactic) {
    hone_compiled *c = twin_compile(text);
    const hone_graph *g = c->graph;
    hone_value *in[8] = {0}, *want[4] = {0}, *one[4] = {0}, *two[4] = {0}, *many[4] = {0};
    for (int k = 0; k < g->in.n; k++) in[k] = input(g, k);
    twin_run(c, in, 1, true, want, NULL, text);
    int met = twin_run(c, in, 1, false, one, tactic, text), halved = twin_halved;
    twin_others(c, in, two, many, text);
    for (int k = 0; k < g->out.n; k++) {
        if (two[k]) twin_same_bits(one[k], two[k], "one thread and two", text);
        if (many[k]) twin_same_bits(one[k], many[k], "one thread and many", text);
        twin_close(one[k], want[k], atol, rtol, text);
        hone_value_drop(want[k]), hone_value_drop(one[k]), hone_value_drop(two[k]), hone_value_drop(many[k]);
    }
    for (int k = 0; k < g->in.n; k++) hone_value_drop(in[k]);
    hone_compiled_destroy(c);
    twin_halved = halved;
    return met;
}
/* What a sum of products can be off by: c roundings of the sum of the magnitudes of its terms, which is what
   the same graph makes of magnitudes, where functions that make no difference larger (HardSwish: by 1.5) are
   left out; what goes from 0 to 1 counts as more than that, for it may be a factor. Weights that are
   quantized have their magnitude behind the zero point. */
static const char *const twin_functions[] = {"Sigmoid(", "HardSwish(", "HardSigmoid(", "Tanh(",
                                             "Relu(",    "Clip(",      "Neg("};
static void twin_magnitudes(hone_value *x) {
    const int64_t n = x && x->tag == HONE_TAG_TENSOR ? hone_value_count(x) : 0;
    for (int64_t q = 0; q < n && x->dtype == HONE_DTYPE_F32; q++)
        ((float *)x->data)[q] = fabsf(((float *)x->data)[q]);
    for (int64_t q = 0; q < n && (x->dtype == HONE_DTYPE_F16 || x->dtype == HONE_DTYPE_BF16); q++)
        ((uint16_t *)x->data)[q] &= 0x7fff;
}
static void twin_terms(const char *text, hone_value *const *in, int n_in, hone_value **out) {
    static char plain[8192];
    static const char *const weights[] = {"DequantizeLinear(", "Cast("};
    size_t n = 0;
    for (const char *p = text; *p && n + 16 < sizeof plain;) {
        size_t skip = 0, f = 0;
        if (!strncmp(p, weights[0], strlen(weights[0])) || !strncmp(p, weights[1], strlen(weights[1]))) {
            /* d = …; becomes d_ = …; d = Abs(d_); */
            size_t name = n - 3, length = 0;
            assert_true(!strncmp(plain + name, " = ", 3));
            while (plain[name - 1] != ' ') name--, length++;
            char var[32], tail[80];
            assert_true(length < sizeof var);
            snprintf(var, sizeof var, "%.*s", (int)length, plain + name);
            plain[name + length] = '_', memcpy(plain + name + length + 1, " = ", 3), n++;
            const size_t rest = strcspn(p, ";");
            assert_true(n + rest + sizeof tail < sizeof plain);
            memcpy(plain + n, p, rest), n += rest, p += rest;
            n += (size_t)snprintf(plain + n, sizeof tail, "; %s = Abs(%s_)", var, var);
            continue;
        }
        if (!strncmp(p, "Sub(", 4)) memcpy(plain + n, "Add(", 4), n += 4, p += 4;
        for (; f < sizeof twin_functions / sizeof *twin_functions && !skip; f++)
            if (!strncmp(p, twin_functions[f], strlen(twin_functions[f]))) skip = strlen(twin_functions[f]);
        if (skip) { /* of its first operand */
            const bool gate = strstr(twin_functions[f - 1], "Sigmoid(") != NULL;
            memcpy(plain + n, gate ? "Softplus(" : "Identity(", 9), n += 9, p += skip;
            while (*p != ',' && *p != ')' && n + 16 < sizeof plain) plain[n++] = *p++;
            p += strcspn(p, ")");
        } else plain[n++] = *p++;
    }
    plain[n] = 0;
    hone_graph *g;
    hone_compiled *c = NULL;
    hone_value *mine[8] = {0};
    if (hone_graph_parse(plain, strlen(plain), &g)) fail_msg("%s\nin\n%s", hone_fail_text(), plain);
    for (int k = 0; k < g->var.n; k++) twin_magnitudes(g->var.at[k].value);
    if (hone_compile(g, &c)) fail_msg("%s\nin\n%s", hone_fail_text(), plain);
    for (int k = 0; k < n_in; k++) {
        assert_int_equal(hone_value_tensor(in[k]->dtype, in[k]->dim, in[k]->rank, mine + k), HONE_OK);
        memcpy(mine[k]->data, in[k]->data, in[k]->bytes);
        twin_magnitudes(mine[k]);
    }
    twin_run(c, mine, 1, true, out, NULL, plain);
    for (int k = 0; k < n_in; k++) hone_value_drop(mine[k]);
    hone_compiled_destroy(c);
}
static void twin_within(const hone_value *got, const hone_value *want, const hone_value *terms, double eps,
                        const char *text) {
    assert_int_equal(hone_value_count(got), hone_value_count(want));
    assert_int_equal(hone_value_count(terms), hone_value_count(want));
    for (int64_t q = 0; q < hone_value_count(want); q++) {
        const double x = hone_value_number(got, q), w = hone_value_number(want, q),
                     t = hone_value_number(terms, q);
        if (!(isfinite(w) && fabs(x - w) <= eps * t) && x != w && !(isnan(x) && isnan(w)))
            fail_msg("element %lld: got %.9g, want %.9g, off by %.3g of a sum of terms of %g, in\n%s",
                     (long long)q, x, w, fabs(x - w) / t, t, text);
    }
}
/* As twin_check, within eps of what `terms` says of each value. */
typedef void twin_terms_fn(const char *text, hone_value *const *in, int n_in, hone_value **out);
static inline int twin_check_by(const char *text, hone_value *(*input)(const hone_graph *, int),
                                twin_terms_fn *terms_of, double eps, const char *tactic) {
    hone_compiled *c = twin_compile(text);
    const hone_graph *g = c->graph;
    hone_value *in[8] = {0}, *want[4] = {0}, *terms[4] = {0}, *one[4] = {0}, *two[4] = {0}, *many[4] = {0};
    for (int k = 0; k < g->in.n; k++) in[k] = input(g, k);
    twin_run(c, in, 1, true, want, NULL, text);
    terms_of(text, in, g->in.n, terms);
    const int met = twin_run(c, in, 1, false, one, tactic, text);
    twin_others(c, in, two, many, text);
    for (int k = 0; k < g->out.n; k++) {
        if (two[k]) twin_same_bits(one[k], two[k], "one thread and two", text);
        if (many[k]) twin_same_bits(one[k], many[k], "one thread and many", text);
        twin_within(one[k], want[k], terms[k], eps, text);
        hone_value_drop(want[k]), hone_value_drop(terms[k]);
        hone_value_drop(one[k]), hone_value_drop(two[k]), hone_value_drop(many[k]);
    }
    for (int k = 0; k < g->in.n; k++) hone_value_drop(in[k]);
    hone_compiled_destroy(c);
    return met;
}
static inline int twin_check_terms(const char *text, hone_value *(*input)(const hone_graph *, int),
                                   double eps, const char *tactic) {
    return twin_check_by(text, input, twin_terms, eps, tactic);
}
#endif
