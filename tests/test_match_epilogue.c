/* SPDX-License-Identifier: Apache-2.0
   What match_epilogue says of the stage behind a sum of products: rows as text, the form that each has in a
   line of words, and that form computed from the sums, beside what the interpreter makes of the whole row. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <math.h>

#include <cmocka.h>

#include "random.h"
#include "walk.h"

#include "loops/match_contraction.h"
#include "loops/match_epilogue.h"

enum { M = 5, N = 7, K = 3, BATCH = 2, MOST_INPUTS = 8 };
enum { BUT_COLUMNS = 1, BUT_THEN };
typedef struct {
    const char *row;  /* after its name: operands of m, n, k and batch are M, N, K and B */
    const char *in;   /* a type and dims an input: f32MK */
    const char *says; /* what is found; "": nothing */
    int but;          /* what the query is without */
} sample;
#define FLOATS \
    "op P 1 (a[M, K]: f32, b[K, N]: f32, c[N]: f32, d[M]: f32, r[M, N]: f32, s[]: f32) -> y[M, N]: "
#define FLOATS_IN "f32MK f32KN f32N f32M f32MN f32"
#define SUM "sum(k) a[m, k] * b[k, n]"
#define BYTES \
    "op P 1 (a[M, K]: u8, b[K, N]: i8, c[N]: i32, d[N]: f32, r[M, N]: f32, s[]: f32, t[]: f32) -> y[M, N]: "
#define BYTES_IN "u8MK i8KN i32N f32N f32MN f32 f32"
#define BATCHED \
    "op P 1 (a[B, M, K]: f32, b[B, K, N]: f32, r[B, M, N]: f32) -> y[B, M, N]: f32\n  y[e, m, n] = "
static const sample samples[] = {
    {FLOATS "f32\n  y[m, n] = max(" SUM " + c[n], 0)", FLOATS_IN, "stored, bias c a column, from 0", 0},
    {FLOATS "f32\n  y[m, n] = max(" SUM " + d[m], 0)", FLOATS_IN, "stored, bias d, from 0", 0},
    {FLOATS "f32\n  y[m, n] = " SUM " + r[m, n]", FLOATS_IN, "stored, residual r", 0},
    {FLOATS "f32\n  y[m, n] = min(max(" SUM " + c[n] + r[m, n], 0), 6)", FLOATS_IN,
     "stored, bias c a column, residual r, from 0, to 6", 0},
    {FLOATS "f32\n  v = " SUM "\n  y[m, n] = 1 / (1 + exp(-(v + c[n])))", FLOATS_IN, "", 0},
    {FLOATS "f32\n  y[m, n] = tanh(" SUM " + c[n])", FLOATS_IN, "stored, bias c a column, tanh", 0},
    {FLOATS "f32\n  y[m, n] = tanh(" SUM ") + r[m, n]", FLOATS_IN, "stored, tanh, then times 1 plus a row r",
     0},
    {FLOATS "f32\n  y[m, n] = tanh(" SUM ") + r[m, n]", FLOATS_IN, "", BUT_THEN},
    {FLOATS "f32\n  y[m, n] = r[m, n] * tanh(" SUM ")", FLOATS_IN, "stored, tanh, then times a row r", 0},
    {FLOATS "f32\n  y[m, n] = max(tanh(" SUM "), s[])", FLOATS_IN, "stored, tanh, then at least s", 0},
    {FLOATS "f32\n  y[m, n] = tanh(" SUM ") * 2 + 1", FLOATS_IN, "stored, tanh, then times 2 plus 1", 0},
    /* in another order of operations, or beside something that does not lie as rows do: another form */
    {FLOATS "f32\n  y[m, n] = max(" SUM ", 0) + c[n]", FLOATS_IN, "", 0},
    {FLOATS "f32\n  y[m, n] = min(max(" SUM ", 6), 0)", FLOATS_IN, "", 0}, /* limits out of order */
    {FLOATS "f32\n  y[m, n] = " SUM " + c[n]", FLOATS_IN, "stored, residual c", BUT_COLUMNS},
    {"op P 1 (a[M, K]: f32, b[K, N]: f32, r[N, M]: f32) -> y[M, N]: f32\n  y[m, n] = " SUM " + r[n, m]",
     "f32MK f32KN f32NM", "", 0},
    {FLOATS "u8\n  y[m, n] = sat(round((" SUM ") / s[]) + 3)", FLOATS_IN, "stored u8, over s, plus 3", 0},
    {BATCHED "max(sum(k) a[e, m, k] * b[e, k, n] + r[e, m, n], 0)", "f32BMK f32BKN f32BMN",
     "stored, residual r, from 0", 0},
    {BYTES "u8\n  y[m, n] = sat(round(f32(" SUM " + c[n]) * (s[] * d[n] / t[])))", BYTES_IN,
     "requantized u8, bias c a column, by s d a column over t", 0},
    {BYTES "i8\n  y[m, n] = sat(round(f32(" SUM ") * (s[] * s[] / t[])))", BYTES_IN,
     "requantized i8, by s s over t", 0},
    {BYTES "f32\n  y[m, n] = f32(" SUM ") * d[n] + r[m, n]", BYTES_IN, "finished, by d a column, residual r",
     0},
    {BYTES "u8\n  y[m, n] = sat(round(max(f32(" SUM ") * d[n] + s[], 0) / t[]))", BYTES_IN,
     "finished u8, bias s, by d a column, from 0, over t", 0},
    {BYTES "f32\n  y[m, n] = tanh(f32(" SUM ") * s[])", BYTES_IN, "finished, by s, tanh", 0},
};

/* ---- the form in words ---- */
static const hone_instance *named;
static void put_number(hone_text *t, const char *before, const hone_match_number *n, const char *behind) {
    if (n->tensor >= 0) hone_text_put(t, "%s%s%s", before, named->tensor[n->tensor].name, behind);
    else hone_text_put(t, "%s%g", before, (double)n->k);
}
static void describe(const hone_match_epilogue *e, hone_text *t) {
    static const char *const forms[] = {"stored", "read back", "requantized", "finished"};
#define NAME(name) #name,
    static const char *const activations[] = {HONE_ACTIVATIONS(NAME)};
    const bool whole = e->form == HONE_EPILOGUE_REQUANTIZE;
    hone_text_put(t, "%s", forms[e->form]);
    if (e->out.dtype != HONE_DTYPE_F32) hone_text_put(t, " %s", hone_dtypes[e->out.dtype].name);
    if (e->bias.tensor >= 0 || (e->bias.k != 0 && !whole))
        put_number(t, ", bias ", &e->bias, e->bias_n ? " a column" : "");
    if (whole) put_number(t, ", by ", &e->scale, "");
    if (whole || e->form == HONE_EPILOGUE_FINISH)
        put_number(t, whole ? " " : ", by ", &e->scale_b, e->scale_n ? " a column" : "");
    if (whole) put_number(t, " over ", &e->scale_y, "");
    if (e->residual.tensor >= 0) put_number(t, ", residual ", &e->residual, "");
    if (e->lo.tensor >= 0 || e->lo.k > -INFINITY) put_number(t, ", from ", &e->lo, "");
    if (e->hi.tensor >= 0 || e->hi.k < INFINITY) put_number(t, ", to ", &e->hi, "");
    if (e->out.dtype != HONE_DTYPE_F32 && !whole) {
        put_number(t, ", over ", &e->scale, "");
        if (e->zero.tensor >= 0 || e->zero.k != 0) put_number(t, ", plus ", &e->zero, "");
    }
    if (e->activation != HONE_ACTIVATE_COUNT) hone_text_put(t, ", %s", activations[e->activation]);
    if (e->then == HONE_THEN_LINEAR) {
        put_number(t, ", then times ", &e->times, "");
        if (e->later.tensor >= 0) put_number(t, " plus a row ", &e->later, "");
        else put_number(t, " plus ", &e->plus, "");
    }
    if (e->then == HONE_THEN_FLOOR) put_number(t, ", then at least ", &e->plus, "");
    if (e->then == HONE_THEN_GATE) put_number(t, ", then times a row ", &e->later, "");
}

/* ---- and computed ---- */
static const walk_call *called;
static int64_t where(const hone_affine *f, const int64_t *index, int n) {
    int64_t at = f->c;
    for (int k = 0; k < n; k++) at += f->k[k] * index[k];
    return at;
}
static double load(int tensor, int64_t at) {
    const hone_dtype t = called->in->tensor[tensor].dtype;
    return hone_scalar_f64(hone_dtypes[t].ctype, hone_dtype_load(t, (const char *)called->place[tensor].at +
                                                                        at * (int64_t)hone_dtypes[t].bytes));
}
static double value(const hone_match_number *n, const int64_t *index, const hone_slots_of *w) {
    return n->tensor < 0 ? (double)n->k : load(n->tensor, where(&n->at, index, w->n_domain));
}
static double element(const hone_match_epilogue *e, double sum, const int64_t *i, const hone_slots_of *w) {
    double v = sum;
    if (e->form == HONE_EPILOGUE_REQUANTIZE) {
        v += e->bias.tensor >= 0 ? value(&e->bias, i, w) : 0;
        v = rint((double)((float)v * ((float)value(&e->scale, i, w) * (float)value(&e->scale_b, i, w) /
                                      (float)value(&e->scale_y, i, w)))) +
            value(&e->zero, i, w);
        return fmin(fmax(v, (double)e->low), (double)e->high);
    }
    const bool goes_on = e->form == HONE_EPILOGUE_FINISH;
    if (goes_on) v *= value(&e->scale_b, i, w);
    v += value(&e->bias, i, w);
    if (!goes_on && e->residual.tensor >= 0) v += value(&e->residual, i, w);
    if (!goes_on) v = fmin(fmax(v, value(&e->lo, i, w)), value(&e->hi, i, w));
    if (e->activation == HONE_ACTIVATE_tanh) v = tanh(v);
    else assert_int_equal(e->activation, HONE_ACTIVATE_COUNT);
    if (e->then == HONE_THEN_FLOOR) v = fmax(v, value(&e->plus, i, w));
    if (e->then == HONE_THEN_GATE) v *= value(&e->later, i, w);
    if (e->then == HONE_THEN_LINEAR)
        v = v * value(&e->times, i, w) + value(&e->plus, i, w) +
            (e->later.tensor >= 0 ? value(&e->later, i, w) : 0);
    if (goes_on && e->residual.tensor >= 0) v += value(&e->residual, i, w);
    if (goes_on) v = fmin(fmax(v, value(&e->lo, i, w)), value(&e->hi, i, w));
    if (e->out.dtype == HONE_DTYPE_F32) return v;
    v = rint((double)((float)v / (float)value(&e->scale, i, w))) + value(&e->zero, i, w);
    return fmin(fmax(v, (double)e->low), (double)e->high);
}
static void compare(const hone_match_epilogue *e, const hone_slots_of *w, int acc, const char *row) {
    int64_t points = 1, index[HONE_MAX_SLOTS];
    for (int k = 0; k < w->n_domain; k++) points *= w->extent[k];
    for (int64_t p = 0; p < points; p++) {
        int64_t rest = p, at = 0;
        for (int k = w->n_domain - 1; k >= 0; k--) index[k] = rest % w->extent[k], rest /= w->extent[k];
        for (int k = 0; k < w->n_domain; k++) at += index[k] * called->place[acc].stride[w->dim[k]];
        const double got = element(e, load(acc, at), index, w),
                     want = load(e->out.tensor, where(&e->out.at, index, w->n_domain));
        if (fabs(got - want) > 1e-5 * fmax(1, fabs(want)))
            fail_msg("%s\nthe form gives %g at %lld, the interpreter %g", row, got, (long long)p, want);
    }
}

/* ---- samples ---- */
static uint64_t seed = 88172645463325252u;
static hone_value *input(const char *says) {
    const size_t n = strcspn(says, "MNKB ");
    const hone_dtype t = hone_dtype_named(says, n);
    int64_t dim[4];
    int rank = 0;
    for (const char *d = says + n; *d && *d != ' '; d++)
        dim[rank++] = *d == 'M' ? M : *d == 'N' ? N : *d == 'K' ? K : BATCH;
    hone_value *v = NULL;
    assert_int_equal(hone_value_tensor(t, dim, rank, &v), HONE_OK);
    const bool real = hone_dtypes[t].kind == HONE_KIND_FLOAT, sign = t != HONE_DTYPE_U8;
    for (int64_t k = 0; k < hone_value_count(v); k++) {
        const int64_t i = (int64_t)(next_random(&seed) >> 40) % 100 - (sign ? 50 : 0);
        /* numbers by which others are divided, above 0 */
        const hone_scalar s =
            real ? (hone_scalar){.f64 = rank ? (double)i / 32 : 0.75} : (hone_scalar){.i64 = i};
        hone_dtype_store(t, (char *)v->data + k * (int64_t)hone_dtypes[t].bytes, real ? HONE_F64 : HONE_I64,
                         s, false);
    }
    return v;
}
static const void *constant(const void *of, int tensor) { /* single numbers */
    const walk_call *c = of;
    const hone_tensor *t = c->in->tensor + tensor;
    return t->role == HONE_ROLE_IN && !t->rank ? c->place[tensor].at : NULL;
}
static void one(const sample *s) {
    hone_library *library;
    if (hone_library_create(&library) || hone_library_add(library, "sample", s->row, strlen(s->row)))
        fail_msg("%s\n%s", s->row, hone_fail_text());
    hone_value *in[MOST_INPUTS] = {0};
    int n = 0;
    for (const char *at = s->in; *at; at += strcspn(at, " "), at += *at == ' ') in[n++] = input(at);
    walk_call c;
    const bool want[] = {true};
    if (walk_call_make(&c, hone_library_find(library, "", "P"), NULL, 0, in, n, want, 1) ||
        hone_interpret(c.in, c.param, c.place))
        fail_msg("%s\n%s", s->row, hone_fail_text());
    called = &c, named = c.in;
    hone_strides *stride = HONE_NEW_N(c.arena, hone_strides, c.in->n_tensor + 1);
    bool *constants = HONE_NEW_N(c.arena, bool, c.in->n_tensor + 1);
    for (int t = 0; t < c.in->n_tensor; t++) {
        memcpy(stride[t], c.place[t].stride, sizeof *stride);
        constants[t] = c.in->tensor[t].role == HONE_ROLE_IN && !c.in->tensor[t].rank;
    }
    const hone_sized sized = {.instance = c.in, .param = c.param, .stride = stride, .constant = constants};
    hone_match_contraction m;
    if (c.in->n_stage != 2 || !hone_match_contraction_of(&sized, 0, true, false, &m))
        fail_msg("%s\nis no sum of products with a stage behind it", s->row);
    const int acc = c.in->stage[0].tensor;
    const hone_epilogue_query q = {.of = &sized,
                                   .slots = &m.slots,
                                   .stage = 1,
                                   .acc = acc,
                                   .group_m = m.group_m,
                                   .group_b = m.group_b,
                                   .n_m = m.n_m,
                                   .n_batch = m.n_batch,
                                   .first_n = m.group_n[0],
                                   .columns = s->but != BUT_COLUMNS,
                                   .then = s->but != BUT_THEN,
                                   .constant = constant,
                                   .constants = &c};
    const hone_match_epilogue *e = hone_match_epilogue_of(c.arena, &q);
    hone_text t = {0};
    hone_text_put(&t, "%s", "");
    if (e) describe(e, &t);
    if (strcmp(t.text, s->says)) fail_msg("%s\nis '%s', not '%s'", s->row, t.text, s->says);
    if (e) compare(e, &m.slots, acc, s->row);
    hone_text_free(&t);
    walk_call_free(&c);
    for (int k = 0; k < n; k++) hone_value_drop(in[k]);
    hone_library_destroy(library);
}
static void forms(void **state) {
    (void)state;
    for (size_t k = 0; k < sizeof samples / sizeof *samples; k++) one(samples + k);
}
int main(void) {
    (void)walk_case; /* of whole folders */
    const struct CMUnitTest tests[] = {cmocka_unit_test(forms)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
