/* SPDX-License-Identifier: Apache-2.0
   Solving symbolically against solving in numbers: every node of the conformance cases is called again with a
   symbol for each dim. The instance must be the same one, and its parameters and shapes, evaluated, the same
   numbers, or not known. Also: memory that runs out. */
#include <dirent.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>

#include <cmocka.h>

#include "walk.h"

static struct { int calls, same, open, wrong; } seen;
static void complain(const char *what, const char *op, const char *format, ...) {
    va_list v;
    va_start(v, format);
    fprintf(stderr, "%s, %s: ", what, op);
    vfprintf(stderr, format, v);
    fputc('\n', stderr);
    va_end(v);
    seen.wrong++;
}
static bool same_number(hone_dim symbolic, hone_dim number, const int64_t *values) {
    if (symbolic == HONE_DIM_UNKNOWN) seen.open++;
    else if (hone_dim_value(symbolic, values) == number) seen.same++;
    else return false;
    return true;
}
static void compare(const char *what, const walk_call *w, const hone_call *c, hone_arena *a) {
    const hone_instance *i = NULL;
    const hone_program *p = c->program;
    const char *key = NULL, *want = NULL;
    if (hone_instance_make(a, c, &i) || hone_instance_key(a, c, &key) ||
        hone_instance_key(a, &w->call, &want)) {
        complain(what, p->name, "%s", hone_fail_text());
        return;
    }
    if (!i) { /* a rank that depends on a dim: Squeeze without axes, GatherND */
        seen.open++;
        return;
    }
    if (!key || !want || strcmp(key, want)) {
        complain(what, p->name, "its key is %s, in numbers %s", key ? key : "none", want ? want : "none");
        return;
    }
    hone_text symbolic = {0}, number = {0};
    hone_print_c(i, "f", &symbolic), hone_print_c(w->in, "f", &number);
    if (strcmp(symbolic.text, number.text))
        complain(what, p->name, "the instance is another one than in numbers");
    hone_text_free(&symbolic);
    hone_text_free(&number);
    hone_param *q = HONE_NEW_N(a, hone_param, i->n_param + 1);
    hone_dim dim[WALK_MAX][HONE_MAX_RANK];
    int rank[WALK_MAX];
    if (i->n_param != w->in->n_param || hone_instance_solve(i, c, q)) {
        complain(what, p->name, "%s", hone_fail_text());
        return;
    }
    for (int k = 0; k < p->n_out; k++)
        if (c->arg[p->n_in + k].present) hone_instance_out_shape(i, c, q, k, rank + k, dim[k]);
    int64_t *values = HONE_NEW_N(a, int64_t, hone_dims_count(c->dims) + 1);
    for (int k = 0; k < hone_dims_count(c->dims); k++) values[k] = HONE_DIM_UNKNOWN;
    for (int k = 0; k < p->n_in; k++)
        for (int d = 0; c->arg[k].present && d < c->arg[k].rank; d++)
            values[c->arg[k].dim[d] - HONE_DIM_BAND] = w->arg[k].dim[d];
    hone_dims_eval(c->dims, values);
    for (int k = 0; k < i->n_param; k++) {
        if (i->param_real[k] ? !isnan(q[k].f) && q[k].f != w->param[k].f
                             : !same_number(q[k].i, w->param[k].i, values))
            complain(what, p->name, "parameter %d '%s' differs", k, i->param_name[k]);
    }
    for (int k = 0; k < p->n_out; k++) {
        if (!c->arg[p->n_in + k].present) continue;
        int r;
        hone_dim d[HONE_MAX_RANK];
        hone_instance_out_shape(w->in, &w->call, w->param, k, &r, d);
        if (rank[k] != r) complain(what, p->name, "output %d has rank %d, in numbers %d", k, rank[k], r);
        for (int m = 0; m < r && rank[k] == r; m++)
            if (!same_number(dim[k][m], d[m], values))
                complain(what, p->name, "output %d: dim %d differs", k, m);
    }
}
static hone_status again(void *user, const hone_node *n, walk_call *w, hone_value *const *in) {
    (void)in;
    hone_dims *dims = hone_dims_create();
    hone_arena *a = hone_arena_create();
    hone_arg arg[WALK_MAX];
    hone_dim symbol[WALK_MAX][HONE_MAX_RANK];
    memcpy(arg, w->arg, sizeof arg);
    for (int k = 0; k < n->program->n_in; k++) {
        for (int d = 0; arg[k].present && d < arg[k].rank; d++) symbol[k][d] = hone_dim_symbol(dims, NULL);
        arg[k].dim = symbol[k];
    }
    hone_call c = w->call;
    c.arg = arg, c.dims = dims;
    seen.calls++;
    compare(user, w, &c, a);
    hone_arena_destroy(a);
    hone_dims_destroy(dims);
    return HONE_OK;
}
static void symbols_are_numbers(void **state) {
    (void)state;
    const char *shared = getenv("HONE_SHARED_DIR");
    char folder[512];
    snprintf(folder, sizeof folder, "%.480s/onnx/node", shared ? shared : "");
    DIR *d = shared ? opendir(folder) : NULL;
    if (!d) skip();
    const hone_library *library;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    /* a case that fails is another test's concern */
    for (struct dirent *e; (e = readdir(d));)
        if (*e->d_name != '.') (void)walk_case(folder, e->d_name, library, again);
    closedir(d);
    print_message("%d calls, %d numbers the same, %d open\n", seen.calls, seen.same, seen.open);
    assert_int_equal(seen.wrong, 0);
    assert_true(seen.same > 20 * seen.open);
}

/* Every allocation on the way from a call to printed C fails once: an error, or text that says it is
   incomplete, and nothing is left behind. */
static void memory_runs_out(void **state) {
    (void)state;
    const hone_library *library;
    assert_int_equal(hone_library_builtin(&library), HONE_OK);
    static const struct {
        const char *op;
        int n;
        int64_t dim[3][3];
        int rank[3];
    } calls[] = {{"Softmax", 1, {{2, 3, 4}}, {3}},
                 {"MatMul", 2, {{2, 3, 4}, {4, 5}}, {3, 2}},
                 {"RNN", 3, {{2, 1, 3}, {1, 4, 3}, {1, 4, 4}}, {3, 3, 3}}};
    for (size_t n = 0; n < sizeof calls / sizeof *calls; n++) {
        const hone_program *p = hone_library_find(library, "", calls[n].op);
        hone_arg arg[WALK_MAX] = {{0}};
        for (int k = 0; k < p->n_in + p->n_out; k++)
            arg[k] = (hone_arg){.present = k < calls[n].n || k == p->n_in,
                                .dtype = HONE_DTYPE_F32,
                                .rank = -1,
                                .n_content = -1};
        for (int k = 0; k < calls[n].n; k++)
            arg[k].rank = (int8_t)calls[n].rank[k], arg[k].dim = calls[n].dim[k];
        hone_call c = {.program = p, .arg = arg};
        uint64_t before = hone_alloc_live_bytes();
        bool done = false;
        for (int64_t after = 0; !done; after++) {
            const hone_instance *i = NULL;
            const char *key = NULL;
            hone_text text = {0};
            hone_alloc_fail_after(after);
            hone_arena *a = hone_arena_create();
            hone_status s = !a ? HONE_NO_MEMORY : hone_instance_make(a, &c, &i);
            if (!s) s = hone_instance_key(a, &c, &key);
            if (!s) {
                assert_non_null(i);
                hone_print_c(i, "f", &text);
                hone_instance_print(i, &text);
                done = !text.failed && key;
            } else assert_int_equal(s, HONE_NO_MEMORY);
            hone_alloc_fail_after(-1);
            hone_text_free(&text);
            hone_arena_destroy(a);
            assert_int_equal(hone_alloc_live_bytes(), before);
            assert_true(after < 100000);
        }
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(symbols_are_numbers),
                                       cmocka_unit_test(memory_runs_out)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
