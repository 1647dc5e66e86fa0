/* SPDX-License-Identifier: Apache-2.0
   Host functions called directly on values: odd sizes, special numbers, errors that name what is wrong,
   allocations that fail. */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "host/host.h"
#include "host/order.h"
#include "host/regex.h"

/* ---- a call, put together piece by piece --------------------------------------------------------------- */
enum { MANY = 16 };
typedef hone_status body_fn(hone_value *const *in, int n_in, hone_value **out, int n_out);
typedef struct {
    hone_node node;
    hone_attr attr[MANY];
    int64_t ints[MANY];
    hone_string strings[MANY];
    hone_value *in[MANY], *out[MANY];
    hone_vid vid[MANY];
    hone_graph graph, *body[1];
    body_fn *run;
    hone_strings *pool;
} rig;

static void rig_open(rig *r, int n_out) {
    memset(r, 0, sizeof *r);
    r->pool = hone_strings_create();
    r->node = (hone_node){
        .name = "n", .attr = r->attr, .n_out = n_out, .out = r->vid, .body = r->body, .n_body = 1};
}
static void rig_close(rig *r) {
    for (int k = 0; k < MANY; k++) {
        hone_value_drop(r->in[k]);
        hone_value_drop(r->out[k]);
    }
    hone_strings_drop(r->pool);
}
static hone_attr *add_attr(rig *r, const char *name, hone_attr_kind kind, int n) {
    hone_attr *a = r->attr + r->node.n_attr++;
    *a = (hone_attr){.name = name, .kind = kind, .n = n};
    return a;
}
static void with_int(rig *r, const char *name, int64_t v) {
    int64_t *i = r->ints + r->node.n_attr;
    *i = v;
    add_attr(r, name, HONE_ATTR_INT, 1)->i = i;
}
static void with_text(rig *r, const char *name, const char *v) {
    r->strings[r->node.n_attr] = (hone_string){(int64_t)strlen(v), v};
    const hone_string *s = r->strings + r->node.n_attr;
    add_attr(r, name, HONE_ATTR_STRING, 1)->s = s;
}
static void with_ints(rig *r, const char *name, const int64_t *v, int n) {
    add_attr(r, name, HONE_ATTR_INTS, n)->i = v;
}
static void with_floats(rig *r, const char *name, const double *v, int n) {
    add_attr(r, name, HONE_ATTR_FLOATS, n)->f = v;
}
static void with_strings(rig *r, const char *name, const hone_string *v, int n) {
    add_attr(r, name, HONE_ATTR_STRINGS, n)->s = v;
}
static void with_body(rig *r, const char *name, int n_formal, int n_out, body_fn *run) {
    static hone_vid none[MANY] = {-1, -1, -1, -1, -1, -1, -1, -1};
    r->graph = (hone_graph){.n_formal = n_formal};
    r->graph.in.n = n_formal;
    r->graph.out.at = none;
    r->graph.out.n = n_out;
    r->body[0] = &r->graph;
    r->run = run;
    add_attr(r, name, HONE_ATTR_BODY, 1);
}
static void give(rig *r, hone_value *take) { r->in[r->node.n_in++] = take; }

static hone_status run_body(const hone_host_call *c, int b, hone_value *const *in, int n_in, hone_value **out,
                            int n_out) {
    (void)b;
    /* tensors that it might have filled */
    for (int k = 0; k < n_out; k++) hone_value_drop(out[k]), out[k] = NULL;
    return ((rig *)c->run)->run(in, n_in, out, n_out);
}
static hone_status run(rig *r, const char *name) {
    hone_host_call c = {
        .node = &r->node, .in = r->in, .out = r->out, .strings = r->pool, .run_body = run_body, .run = r};
    hone_host_fn *f = hone_host_find(name);
    assert_non_null(f);
    return f(&c);
}
static void assert_error(rig *r, const char *name, const char *part) {
    assert_int_not_equal(run(r, name), HONE_OK);
    if (!strstr(hone_fail_text(), part) || !strstr(hone_fail_text(), "'n'"))
        fail_msg("message is: %s", hone_fail_text());
}

static hone_value *tensor(hone_dtype t, const int64_t *dims, int rank, const void *data) {
    hone_value *v;
    assert_int_equal(hone_value_tensor(t, dims, rank, &v), HONE_OK);
    if (v->bytes && data) memcpy(v->data, data, v->bytes);
    return v;
}
#define VEC(t, type, ...) \
    tensor(t, (int64_t[]){sizeof((type[]){__VA_ARGS__}) / sizeof(type)}, 1, (type[]){__VA_ARGS__})
#define F32(...) VEC(HONE_DTYPE_F32, float, __VA_ARGS__)
#define I64(...) VEC(HONE_DTYPE_I64, int64_t, __VA_ARGS__)
#define BOOL(...) VEC(HONE_DTYPE_BOOL, uint8_t, __VA_ARGS__)
static hone_value *scalar(int64_t v) { return tensor(HONE_DTYPE_I64, NULL, 0, &v); }
static hone_value *truth(bool v) { return tensor(HONE_DTYPE_BOOL, NULL, 0, &v); }
static hone_value *words(const char *const *s, int n) { /* of static text */
    hone_value *v;
    int64_t dim = n;
    assert_int_equal(hone_value_tensor(HONE_DTYPE_STRING, &dim, 1, &v), HONE_OK);
    v->strings = hone_strings_create();
    for (int k = 0; k < n; k++)
        ((const hone_string **)v->data)[k] = hone_strings_add(v->strings, s[k], (int64_t)strlen(s[k]));
    return v;
}
#define WORDS(...) \
    words((const char *const[]){__VA_ARGS__}, sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))
static void assert_i64(const hone_value *v, const int64_t *want, int64_t n) {
    assert_non_null(v);
    assert_int_equal(v->dtype, HONE_DTYPE_I64);
    assert_int_equal(hone_value_count(v), n);
    for (int64_t k = 0; k < n; k++) assert_int_equal(((int64_t *)v->data)[k], want[k]);
}
#define ASSERT_I64(v, ...) assert_i64(v, (int64_t[]){__VA_ARGS__}, sizeof((int64_t[]){__VA_ARGS__}) / 8)
static void assert_word(const hone_value *v, int64_t k, const char *want) {
    const hone_string *s = hone_value_string(v, k);
    if ((size_t)s->bytes != strlen(want) || memcmp(s->text, want, (size_t)s->bytes))
        fail_msg("element %d is \"%.*s\", not \"%s\"", (int)k, (int)s->bytes, s->text, want);
}

/* ---- the table ----------------------------------------------------------------------------------------- */
static void every_row_has_its_function(void **state) {
    (void)state;
    const hone_library *l;
    assert_int_equal(hone_library_builtin(&l), HONE_OK);
    for (int k = 0; k < hone_library_count(l); k++) {
        const hone_program *p = hone_library_at(l, k);
        if (p->runs == HONE_RUNS_HOST || p->runs == HONE_RUNS_CONTROL)
            if (!hone_host_find(p->how)) fail_msg("%s: no host function %s", p->name, p->how);
    }
    assert_null(hone_host_find("no such thing"));
    assert_non_null(hone_host_find("cast_string"));
    assert_non_null(hone_host_find("equal_string"));
}

/* ---- sequences, optionals ------------------------------------------------------------------------------ */
static void sequences(void **state) {
    (void)state;
    rig r;
    hone_value *a = F32(1, 2), *b = F32(3), *list;
    assert_int_equal(hone_value_list(HONE_TAG_SEQUENCE, (hone_value *[]){a}, 1, &list), HONE_OK);
    rig_open(&r, 1);
    give(&r, list);
    give(&r, b);
    give(&r, scalar(-1));
    assert_int_equal(run(&r, "sequence_insert"), HONE_OK);
    assert_int_equal(r.out[0]->n_item, 2);
    assert_ptr_equal(r.out[0]->item[0], b); /* shared, not copied */
    assert_int_equal(list->n_item, 1);
    *(int64_t *)r.in[2]->data = 2;
    assert_error(&r, "sequence_insert", "position 2 is outside [-1, 1]");
    rig_close(&r);

    hone_value *other = I64(1), *view;
    float borrowed[2] = {5, 6};
    assert_int_equal(hone_value_list(HONE_TAG_SEQUENCE, (hone_value *[]){a}, 1, &list), HONE_OK);
    rig_open(&r, 1);
    give(&r, list);
    give(&r, other);
    assert_error(&r, "sequence_insert", "i64");
    assert_int_equal(hone_value_view(HONE_DTYPE_F32, (int64_t[]){2}, 1, borrowed, &view), HONE_OK);
    hone_value_drop(r.in[1]);
    r.in[1] = view; /* lent bytes must not outlive the call */
    assert_int_equal(run(&r, "sequence_insert"), HONE_OK);
    borrowed[0] = 0;
    assert_true(((float *)r.out[0]->item[1]->data)[0] == 5);
    rig_close(&r);

    rig_open(&r, 1);
    give(&r, I64(1));
    assert_error(&r, "sequence_at", "must be a sequence");
    rig_close(&r);
    rig_open(&r, 1);
    assert_int_equal(hone_value_list(HONE_TAG_SEQUENCE, NULL, 0, &list), HONE_OK);
    give(&r, list);
    assert_error(&r, "sequence_erase", "empty");
    assert_int_equal(run(&r, "sequence_length"), HONE_OK);
    ASSERT_I64(r.out[0], 0);
    with_int(&r, "axis", 0);
    assert_error(&r, "concat_from_sequence", "empty");
    rig_close(&r);
    hone_value_drop(a);
}

static void split_and_join(void **state) {
    (void)state;
    int64_t data[30];
    for (int k = 0; k < 30; k++) data[k] = k;
    for (int axis = -3; axis < 3; axis++)
        for (int form = 0; form < 3; form++) { /* chunks of 2, given parts, one by one without the axis */
            rig r;
            rig_open(&r, 1);
            give(&r, tensor(HONE_DTYPE_I64, (int64_t[]){2, 5, 3}, 3, data));
            int64_t size = r.in[0]->dim[(axis + 3) % 3];
            if (form == 0) give(&r, scalar(2));
            if (form == 1) give(&r, I64(1, size - 1));
            if (form == 2) with_int(&r, "keepdims", 0);
            with_int(&r, "axis", axis);
            assert_int_equal(run(&r, "split_to_sequence"), HONE_OK);
            assert_int_equal(r.out[0]->n_item, form == 0 ? (size + 1) / 2 : form == 1 ? 2 : size);
            rig back;
            rig_open(&back, 1);
            give(&back, hone_value_hold(r.out[0]));
            with_int(&back, "axis", axis);
            with_int(&back, "new_axis", form == 2);
            assert_int_equal(run(&back, "concat_from_sequence"), HONE_OK);
            assert_i64(back.out[0], data, 30);
            rig_close(&back);
            rig_close(&r);
        }
    rig r;
    rig_open(&r, 1);
    give(&r, I64(1, 2, 3));
    give(&r, I64(1, 3));
    assert_error(&r, "split_to_sequence", "split[1] is 3");
    with_int(&r, "axis", 1);
    assert_error(&r, "split_to_sequence", "axis 1 is outside [-1, 0]");
    rig_close(&r);
}

static void optionals(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    r.node.n_in = 1; /* absent */
    assert_int_equal(run(&r, "optional_has_element"), HONE_OK);
    assert_int_equal(hone_value_i64(r.out[0], 0), 0);
    assert_int_equal(run(&r, "optional"), HONE_OK);
    assert_int_equal(r.out[0]->tag, HONE_TAG_OPTIONAL);
    r.in[0] = hone_value_hold(r.out[0]);
    assert_error(&r, "optional_get_element", "empty");
    hone_value_drop(r.in[0]);
    r.in[0] = F32(2);
    assert_int_equal(run(&r, "optional"), HONE_OK);
    assert_int_equal(r.out[0]->n_item, 1);
    assert_int_equal(run(&r, "optional_get_element"), HONE_OK); /* a plain tensor is its own element */
    assert_ptr_equal(r.out[0], r.in[0]);
    rig_close(&r);
}

/* ---- control ------------------------------------------------------------------------------------------- */
/* (i, cond, sum) -> (i < 6, sum + i, [i, i]) */
static hone_status add_up(hone_value *const *in, int n_in, hone_value **out, int n_out) {
    assert_int_equal(n_in, 3);
    assert_int_equal(n_out, 3);
    int64_t i = hone_value_i64(in[0], 0), sum = hone_value_i64(in[2], 0) + i;
    HONE_TRY(hone_value_tensor(HONE_DTYPE_BOOL, NULL, 0, &out[0]));
    *(uint8_t *)out[0]->data = i < 6;
    HONE_TRY(hone_value_tensor(HONE_DTYPE_I64, NULL, 0, &out[1]));
    *(int64_t *)out[1]->data = sum;
    HONE_TRY(hone_value_tensor(HONE_DTYPE_I64, (int64_t[]){2}, 1, &out[2]));
    ((int64_t *)out[2]->data)[0] = ((int64_t *)out[2]->data)[1] = i;
    return HONE_OK;
}
static hone_status loop_once(rig *r, hone_value *m, hone_value *cond) {
    rig_open(r, 2);
    give(r, m);
    give(r, cond);
    give(r, scalar(100));
    with_body(r, "body", 3, 3, add_up);
    return run(r, "loop");
}
static void loops(void **state) {
    (void)state;
    rig r;
    assert_int_equal(loop_once(&r, scalar(3), NULL), HONE_OK);
    ASSERT_I64(r.out[0], 103);
    ASSERT_I64(r.out[1], 0, 0, 1, 1, 2, 2);
    assert_int_equal(r.out[1]->dim[0], 3);
    rig_close(&r);
    assert_int_equal(loop_once(&r, NULL, truth(true)), HONE_OK); /* the body ends it */
    ASSERT_I64(r.out[0], 121);
    assert_int_equal(r.out[1]->dim[0], 7);
    rig_close(&r);
    for (int k = 0; k < 3; k++) { /* no iteration at all */
        assert_int_equal(loop_once(&r, k == 1 ? NULL : scalar(k == 0 ? 0 : -5), k == 1 ? truth(false) : NULL),
                         HONE_OK);
        ASSERT_I64(r.out[0], 100);
        assert_int_equal(hone_value_count(r.out[1]), 0);
        rig_close(&r);
    }
    assert_int_equal(loop_once(&r, scalar(3), I64(1)), HONE_BAD_INPUT); /* cond is no bool */
    rig_close(&r);
    rig_open(&r, 1);
    give(&r, scalar(1));
    assert_error(&r, "loop", "body");
    with_body(&r, "body", 5, 3, add_up);
    assert_error(&r, "loop", "takes 5 inputs");
    rig_close(&r);
}

/* (sum, x) -> (sum + x, x) */
static hone_status running_sum(hone_value *const *in, int n_in, hone_value **out, int n_out) {
    (void)n_in;
    (void)n_out;
    HONE_TRY(hone_value_copy(in[1], &out[0]));
    for (int64_t k = 0, n = hone_value_count(in[1]); k < n; k++)
        ((int64_t *)out[0]->data)[k] += ((int64_t *)in[0]->data)[k];
    out[1] = hone_value_hold(in[1]);
    return HONE_OK;
}
static void scans(void **state) {
    (void)state;
    int64_t x[] = {1, 2, 3, 4, 5, 6}, zero[] = {0, 0};
    rig r;
    rig_open(&r, 2);
    give(&r, tensor(HONE_DTYPE_I64, (int64_t[]){2}, 1, zero));
    give(&r, tensor(HONE_DTYPE_I64, (int64_t[]){2, 3}, 2, x)); /* three steps along axis 1 */
    with_int(&r, "num_scan_inputs", 1);
    with_ints(&r, "scan_input_axes", (int64_t[]){1}, 1);
    with_body(&r, "body", 2, 2, running_sum);
    assert_int_equal(run(&r, "scan"), HONE_OK);
    ASSERT_I64(r.out[0], 6, 15);
    ASSERT_I64(r.out[1], 1, 4, 2, 5, 3, 6);
    with_ints(&r, "scan_output_axes", (int64_t[]){-1}, 1);
    assert_int_equal(run(&r, "scan"), HONE_OK);
    ASSERT_I64(r.out[1], 1, 2, 3, 4, 5, 6);
    with_ints(&r, "scan_input_directions", (int64_t[]){1}, 1);
    assert_int_equal(run(&r, "scan"), HONE_OK);
    ASSERT_I64(r.out[1], 3, 2, 1, 6, 5, 4);
    with_ints(&r, "scan_output_directions", (int64_t[]){1}, 1);
    assert_int_equal(run(&r, "scan"), HONE_OK);
    ASSERT_I64(r.out[1], 1, 2, 3, 4, 5, 6);
    r.attr[3].i = (int64_t[]){7};
    assert_error(&r, "scan", "axis 7");
    rig_close(&r);
}

static hone_status hand_back(hone_value *const *in, int n_in, hone_value **out, int n_out) {
    for (int k = 0; k < n_out; k++) out[k] = hone_value_hold(in[k % n_in]);
    return HONE_OK;
}
static void maps_over_sequences(void **state) {
    (void)state;
    rig r;
    hone_value *a = F32(1), *b = F32(2, 3), *list;
    assert_int_equal(hone_value_list(HONE_TAG_SEQUENCE, (hone_value *[]){a, b}, 2, &list), HONE_OK);
    rig_open(&r, 2);
    give(&r, list);
    give(&r, I64(7));
    with_body(&r, "body", 2, 2, hand_back);
    assert_int_equal(run(&r, "sequence_map"), HONE_OK);
    assert_ptr_equal(r.out[0]->item[1], b);
    assert_int_equal(r.out[1]->n_item, 2);
    hone_value *empty;
    assert_int_equal(hone_value_list(HONE_TAG_SEQUENCE, NULL, 0, &empty), HONE_OK);
    hone_value_drop(r.in[1]);
    r.in[1] = empty;
    assert_error(&r, "sequence_map", "input 1 has 0 members");
    rig_close(&r);
    hone_value_drop(a);
    hone_value_drop(b);
}

/* ---- a choice of elements ------------------------------------------------------------------------------ */
static void topk(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 2);
    give(&r, F32(1, NAN, -INFINITY, 3, 3, INFINITY, -0.0f, 0.0f));
    give(&r, I64(8));
    assert_int_equal(run(&r, "topk"), HONE_OK);
    ASSERT_I64(r.out[1], 1, 5, 3, 4, 0, 6, 7, 2); /* NaN is the largest; equal ones in order */
    assert_true(isnan(((float *)r.out[0]->data)[0]));
    with_int(&r, "largest", 0);
    assert_int_equal(run(&r, "topk"), HONE_OK);
    ASSERT_I64(r.out[1], 2, 6, 7, 0, 3, 4, 5, 1);
    *(int64_t *)r.in[1]->data = 9;
    assert_error(&r, "topk", "k is 9");
    *(int64_t *)r.in[1]->data = 0;
    assert_int_equal(run(&r, "topk"), HONE_OK);
    assert_int_equal(hone_value_count(r.out[0]), 0);
    rig_close(&r);
    rig_open(&r, 2); /* big unsigned numbers, a middle axis */
    uint64_t x[] = {1, UINT64_MAX, (uint64_t)1 << 63, 4, 5, 6, 7, 8, 9, 10, 11, 12};
    give(&r, tensor(HONE_DTYPE_U64, (int64_t[]){2, 3, 2}, 3, x));
    give(&r, I64(2));
    with_int(&r, "axis", -2);
    assert_int_equal(run(&r, "topk"), HONE_OK);
    ASSERT_I64(r.out[1], 1, 0, 2, 2, 2, 2, 1, 1);
    assert_true(((uint64_t *)r.out[0]->data)[1] == UINT64_MAX);
    rig_close(&r);
    for (int n = 1; n < 70; n += 7) /* against a plain sort, with many equal keys */
        for (int k = 1; k <= n; k += 3) {
            rig_open(&r, 2);
            float v[70];
            for (int j = 0; j < n; j++) v[j] = (float)(j * 37 % 11);
            give(&r, tensor(HONE_DTYPE_F32, (int64_t[]){n}, 1, v));
            give(&r, scalar(k));
            assert_int_equal(run(&r, "topk"), HONE_OK);
            const int64_t *at = r.out[1]->data;
            for (int j = 1; j < k; j++)
                assert_true(v[at[j - 1]] > v[at[j]] || (v[at[j - 1]] == v[at[j]] && at[j - 1] < at[j]));
            for (int j = 0; j < n; j++) { /* nothing left out is better than the last */
                bool in = false;
                for (int q = 0; q < k; q++) in |= at[q] == j;
                assert_true(in || v[j] < v[at[k - 1]] || (v[j] == v[at[k - 1]] && j > at[k - 1]));
            }
            rig_close(&r);
        }
}

static void uniques(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 4);
    give(&r, F32(2, 1, NAN, 1, 3, NAN, 2));
    assert_int_equal(run(&r, "unique"), HONE_OK);
    ASSERT_I64(r.out[1], 1, 0, 4, 2);
    ASSERT_I64(r.out[2], 1, 0, 3, 0, 2, 3, 1);
    ASSERT_I64(r.out[3], 2, 2, 1, 2);
    with_int(&r, "sorted", 0);
    assert_int_equal(run(&r, "unique"), HONE_OK);
    ASSERT_I64(r.out[1], 0, 1, 2, 4);
    ASSERT_I64(r.out[2], 0, 1, 2, 1, 3, 2, 0);
    ASSERT_I64(r.out[3], 2, 2, 2, 1);
    rig_close(&r);
    rig_open(&r, 4);
    give(&r, WORDS("b", "a", "", "b", "ab"));
    assert_int_equal(run(&r, "unique"), HONE_OK);
    assert_int_equal(hone_value_count(r.out[0]), 4);
    assert_word(r.out[0], 0, "");
    assert_word(r.out[0], 2, "ab");
    ASSERT_I64(r.out[3], 1, 1, 1, 2);
    rig_close(&r);
    rig_open(&r, 4);
    int64_t x[] = {1, 0, 1, 0, 2, 0};
    give(&r, tensor(HONE_DTYPE_I64, (int64_t[]){2, 3}, 2, x)); /* columns (1 0) (0 2) (1 0) */
    with_int(&r, "axis", -1);
    assert_int_equal(run(&r, "unique"), HONE_OK);
    ASSERT_I64(r.out[0], 0, 1, 2, 0);
    ASSERT_I64(r.out[2], 1, 0, 1);
    with_int(&r, "sorted", 1);
    r.ints[0] = 2;
    assert_error(&r, "unique", "axis 2 is outside [-2, 1]");
    rig_close(&r);
    rig_open(&r, 2); /* empty, but long: must not be walked through */
    give(&r, tensor(HONE_DTYPE_I8, (int64_t[]){(int64_t)1 << 50, 0}, 2, NULL));
    with_int(&r, "axis", 1);
    assert_int_equal(run(&r, "unique"), HONE_OK);
    give(&r, scalar(0));
    assert_int_equal(run(&r, "topk"), HONE_OK);
    rig_close(&r);
}

static void nonzero_and_compress(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    give(&r, tensor(HONE_DTYPE_F32, (int64_t[]){2, 2}, 2, (float[]){0, -0.0f, NAN, 2}));
    assert_int_equal(run(&r, "nonzero"), HONE_OK);
    ASSERT_I64(r.out[0], 1, 1, 0, 1);
    hone_value_drop(r.in[0]);
    r.in[0] = scalar(3);
    assert_int_equal(run(&r, "nonzero"), HONE_OK);
    assert_int_equal(r.out[0]->dim[0], 0);
    assert_int_equal(r.out[0]->dim[1], 1);
    rig_close(&r);
    rig_open(&r, 1);
    give(&r, tensor(HONE_DTYPE_I64, (int64_t[]){3, 2}, 2, (int64_t[]){1, 2, 3, 4, 5, 6}));
    give(&r, BOOL(0, 1));
    assert_int_equal(run(&r, "compress"), HONE_OK); /* flat; what the condition does not reach is left out */
    ASSERT_I64(r.out[0], 2);
    with_int(&r, "axis", -1);
    assert_int_equal(run(&r, "compress"), HONE_OK);
    ASSERT_I64(r.out[0], 2, 4, 6);
    hone_value_drop(r.in[1]);
    r.in[1] = BOOL(0, 1, 1);
    assert_error(&r, "compress", "condition[2]");
    rig_close(&r);
}

static void boxes(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    give(&r, tensor(HONE_DTYPE_F32, (int64_t[]){1, 4, 4}, 3,
                    (float[]){0, 0, 1, 1, 1, 1.1f, 0, 0.1f, 0, 2, 1, 3, NAN, 0, 1, 1}));
    give(&r, tensor(HONE_DTYPE_F32, (int64_t[]){1, 1, 4}, 3, (float[]){0.5f, 0.9f, 0.7f, NAN}));
    assert_int_equal(run(&r, "nms"), HONE_OK); /* no count given: none */
    assert_int_equal(r.out[0]->dim[0], 0);
    give(&r, scalar(9));
    give(&r, F32(0.5f));
    assert_int_equal(run(&r, "nms"), HONE_OK);
    ASSERT_I64(r.out[0], 0, 0, 1, 0, 0, 2);
    *(float *)r.in[3]->data = 1.5f;
    assert_error(&r, "nms", "iou_threshold");
    rig_close(&r);
}

static void determinants(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    give(&r, tensor(HONE_DTYPE_F64, (int64_t[]){2, 3, 3}, 3,
                    (double[]){0, 1, 0, 1, 0, 0, 0, 0, 5, 1, 2, 3, 4, 5, 6, 7, 8, 9}));
    assert_int_equal(run(&r, "det"), HONE_OK);
    assert_true(((double *)r.out[0]->data)[0] == -5);
    assert_true(fabs(((double *)r.out[0]->data)[1]) < 1e-12);
    hone_value_drop(r.in[0]);
    r.in[0] = F32(1, 2);
    assert_error(&r, "det", "square");
    rig_close(&r);
}

/* ---- strings ------------------------------------------------------------------------------------------- */
static void strings(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    give(&r, WORDS("a", "", "é"));
    give(&r, WORDS("x"));
    assert_int_equal(run(&r, "string_concat"), HONE_OK);
    assert_word(r.out[0], 1, "x");
    assert_word(r.out[0], 2, "éx");
    assert_int_equal(run(&r, "equal_string"), HONE_OK);
    assert_int_equal(r.out[0]->dtype, HONE_DTYPE_BOOL);
    hone_value_drop(r.in[1]);
    r.in[1] = WORDS("x", "y");
    assert_error(&r, "string_concat", "do not broadcast");
    rig_close(&r);

    rig_open(&r, 2);
    give(&r, WORDS("a,b,,c", "", ","));
    with_text(&r, "delimiter", ",");
    assert_int_equal(run(&r, "string_split"), HONE_OK);
    ASSERT_I64(r.out[1], 4, 1, 2);
    assert_word(r.out[0], 2, "");
    assert_word(r.out[0], 3, "c");
    with_int(&r, "maxsplit", 1);
    assert_int_equal(run(&r, "string_split"), HONE_OK);
    assert_word(r.out[0], 1, "b,,c");
    rig_close(&r);
    rig_open(&r, 2);
    give(&r, WORDS("  a \t b ", " "));
    assert_int_equal(run(&r, "string_split"), HONE_OK);
    ASSERT_I64(r.out[1], 2, 0);
    assert_word(r.out[0], 1, "b");
    rig_close(&r);

    static const hone_string stop[] = {{3, "THE"}, {5, "über"}};
    rig_open(&r, 1);
    give(&r, WORDS("the", "Cat", "ÜBER", "Äpfel"));
    with_strings(&r, "stopwords", stop, 2);
    with_text(&r, "case_change_action", "UPPER");
    assert_int_equal(run(&r, "string_normalizer"), HONE_OK);
    assert_int_equal(hone_value_count(r.out[0]), 2);
    assert_word(r.out[0], 0, "CAT");
    assert_word(r.out[0], 1, "ÄPFEL");
    with_int(&r, "is_case_sensitive", 1);
    assert_int_equal(run(&r, "string_normalizer"), HONE_OK);
    assert_int_equal(hone_value_count(r.out[0]), 4);
    rig_close(&r);
}

static bool matches(const char *pattern, const char *text) {
    hone_regex *re;
    assert_int_equal(hone_regex_create(pattern, strlen(pattern), &re), HONE_OK);
    bool m = hone_regex_matches(re, text, strlen(text));
    hone_regex_destroy(re);
    return m;
}
static void regexes(void **state) {
    (void)state;
    static const struct {
        const char *pattern, *yes, *no;
    } cases[] = {
        {"", "", "a"},
        {"a*b", "aaab", "aaabc"},
        {"(ab|a)(c|bcd)d*", "abcd", "abd"},
        {"[^a-c]+", "xyz", "xbz"},
        {"\\d{2,3}", "123", "1234"},
        {"a{,2}", "a{,2}", "aa"},
        {"(?i)straße|x", "STRAßE", "strasse"},
        {".", "é", "\n"},
        {"(?s:.)", "\n", ""},
        {"a.*\\bb", "a b", "ab"},
        {"[[:^alpha:]]", "1", "a"},
        {"[]-]+", "]-]", "a"},
        {"^(a|)$", "", "b"},
        {"\\x{e9}\\x41", "éA", "eA"},
        {"(?P<n>a)+?", "aa", ""},
        {"[\\W]", "-", "_"},
        {"(a?){20}a{20}", "aaaaaaaaaaaaaaaaaaaaaaa", "aaa"},
    };
    for (size_t k = 0; k < sizeof cases / sizeof *cases; k++) {
        if (!matches(cases[k].pattern, cases[k].yes))
            fail_msg("%s does not match %s", cases[k].pattern, cases[k].yes);
        if (matches(cases[k].pattern, cases[k].no)) fail_msg("%s matches %s", cases[k].pattern, cases[k].no);
    }
    static const char *const wrong[] = {
        "(",         ")",       "*",     "a**",    "[a",   "[b-a]", "\\",
        "a{3,2}",    "a{1001}", "(?=a)", "(?<=a)", "\\pL", "\\1",   "((a{999}){999}){999}",
        "[[:nope:]]"};
    hone_regex *re;
    for (size_t k = 0; k < sizeof wrong / sizeof *wrong; k++)
        if (!hone_regex_create(wrong[k], strlen(wrong[k]), &re)) fail_msg("%s was taken", wrong[k]);
    char deep[4000], slow[30001];
    memset(deep, '(', sizeof deep);
    assert_int_equal(hone_regex_create(deep, sizeof deep, &re), HONE_NOT_SUPPORTED);
    memset(slow, 'a', 30000);
    slow[30000] = 0;
    assert_false(matches("(a*)*b", slow)); /* many a matcher never comes back from this one */
}

static void casts(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    give(&r, F32(0, -0.0f, 1, 0.1f, 1e-5f, 1e16f, 16777216, NAN, -INFINITY, 1e-45f));
    with_int(&r, "to", HONE_DTYPE_STRING);
    assert_int_equal(run(&r, "cast_string"), HONE_OK);
    static const char *const want[] = {"0.0",   "-0.0",       "1.0", "0.1",  "1e-05",
                                       "1e+16", "16777216.0", "nan", "-inf", "1e-45"};
    for (int k = 0; k < 10; k++) assert_word(r.out[0], k, want[k]);
    hone_value *back = r.out[0];
    r.out[0] = NULL;
    hone_value *first = r.in[0];
    r.in[0] = back;
    r.ints[0] = HONE_DTYPE_F32;
    assert_int_equal(run(&r, "cast_string"), HONE_OK);
    for (int k = 0; k < 10; k++)
        if (k != 7) assert_memory_equal((float *)r.out[0]->data + k, (float *)first->data + k, 4);
    hone_value_drop(first);
    hone_value_drop(r.in[0]);
    r.in[0] = WORDS("12", " -7 ", "1e2", "3.9");
    r.ints[0] = HONE_DTYPE_I8;
    assert_int_equal(run(&r, "cast_string"), HONE_OK);
    assert_memory_equal(r.out[0]->data, ((int8_t[]){12, -7, 100, 3}), 4);
    static const char *const bad[] = {
        "", "x", "128", "1e9", "0x1", "nan", "1 2", "--1", "9999999999999999999999"};
    for (int k = 0; k < 9; k++) {
        hone_value_drop(r.in[0]);
        r.in[0] = words(bad + k, 1);
        assert_error(&r, "cast_string", "is no number");
    }
    rig_close(&r);
}

/* ---- ai.onnx.ml ---------------------------------------------------------------------------------------- */
static void labels(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    give(&r, F32(1, NAN, 7, -0.0f));
    with_floats(&r, "keys_floats", (double[]){1, NAN, 1, 0}, 4); /* the last of equal keys counts */
    with_ints(&r, "values_int64s", (int64_t[]){10, 20, 30, 40}, 4);
    assert_int_equal(run(&r, "label_encoder"), HONE_OK);
    ASSERT_I64(r.out[0], 30, 20, -1, 40);
    r.attr[1].n = 3;
    assert_error(&r, "label_encoder", "4 keys and 3 values");
    hone_value_drop(r.in[0]);
    r.in[0] = WORDS("1");
    r.attr[1].n = 4;
    assert_error(&r, "label_encoder", "type string");
    rig_close(&r);
}

static void grams(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    give(&r, I64(1, 1, 3, 3, 3, 7, 8, 6, 7, 5, 6, 8));
    with_int(&r, "min_gram_length", 1);
    with_int(&r, "max_gram_length", 2);
    with_int(&r, "max_skip_count", 5);
    with_text(&r, "mode", "TF");
    with_ints(&r, "ngram_counts", (int64_t[]){0, 4}, 2);
    with_ints(&r, "ngram_indexes", (int64_t[]){0, 1, 2, 3, 4, 5, 6}, 7);
    with_ints(&r, "pool_int64s", (int64_t[]){2, 3, 5, 4, 5, 6, 7, 8, 6, 7}, 10);
    assert_int_equal(run(&r, "tfidf"), HONE_OK);
    static const float want[] = {0, 3, 1, 0, 1, 3, 1};
    assert_memory_equal(r.out[0]->data, want, sizeof want);
    r.attr[4].i = (int64_t[]){0, 5};
    assert_error(&r, "tfidf", "2-grams do not fit");
    r.attr[4].i = (int64_t[]){0, -4};
    assert_error(&r, "tfidf", "ngram_counts[0]");
    rig_close(&r);
}

static void trees(void **state) {
    (void)state;
    rig r;
    rig_open(&r, 1);
    hone_value *modes = VEC(HONE_DTYPE_U8, uint8_t, 0, 4), *splits = F32(0.5f, 2), *weights = F32(1, 10, 100);
    give(&r, tensor(HONE_DTYPE_F32, (int64_t[]){3, 2}, 2, (float[]){0, 9, 1, 2, NAN, 3}));
    int64_t yes[] = {0, 1}, no[] = {1, 2};
    with_ints(&r, "tree_roots", (int64_t[]){0}, 1);
    with_ints(&r, "nodes_featureids", (int64_t[]){0, 1}, 2);
    with_ints(&r, "nodes_truenodeids", yes, 2);
    with_ints(&r, "nodes_falsenodeids", no, 2);
    with_ints(&r, "nodes_trueleafs", (int64_t[]){1, 1}, 2);
    with_ints(&r, "nodes_falseleafs", (int64_t[]){0, 1}, 2);
    with_ints(&r, "leaf_targetids", (int64_t[]){0, 0, 0}, 3);
    add_attr(&r, "nodes_modes", HONE_ATTR_TENSOR, 1)->tensor = &modes;
    add_attr(&r, "nodes_splits", HONE_ATTR_TENSOR, 1)->tensor = &splits;
    add_attr(&r, "leaf_weights", HONE_ATTR_TENSOR, 1)->tensor = &weights;
    assert_int_equal(run(&r, "tree_ensemble"), HONE_OK);
    assert_memory_equal(r.out[0]->data, ((float[]){1, 10, 100}), 12);
    no[0] = 0; /* round in circles */
    assert_error(&r, "tree_ensemble", "two places");
    no[0] = 5;
    assert_error(&r, "tree_ensemble", "leads to node 5");
    no[0] = 1;
    r.attr[1].i = (int64_t[]){0, 2};
    assert_error(&r, "tree_ensemble", "feature 2");
    hone_value_drop(modes);
    hone_value_drop(splits);
    hone_value_drop(weights);
    rig_close(&r);
}

/* ---- allocations that fail ----------------------------------------------------------------------------- */
static hone_status scene_loop(rig *r) { return loop_once(r, scalar(5), NULL); }
static hone_status scene_unique(rig *r) {
    rig_open(r, 4);
    give(r, I64(3, 1, 2, 3, 1));
    with_int(r, "sorted", 0);
    return run(r, "unique");
}
static hone_status scene_split(rig *r) {
    rig_open(r, 2);
    give(r, WORDS("a b c", "d"));
    return run(r, "string_split");
}
static hone_status scene_regex(rig *r) {
    rig_open(r, 1);
    give(r, WORDS("abab"));
    with_text(r, "pattern", "(a|[b-d]){1,5}x*");
    return run(r, "regex_full_match");
}
static hone_status scene_sequence(rig *r) {
    rig_open(r, 1);
    give(r, I64(1, 2, 3));
    return run(r, "split_to_sequence");
}
/* Operands are made while nothing fails: the failing begins with the call. So a scene is run in two parts. */
static void failing_allocations(void **state) {
    (void)state;
    static hone_status (*const scenes[])(rig *) = {scene_loop, scene_unique, scene_split, scene_regex,
                                                   scene_sequence};
    static const char *const names[] = {"loop", "unique", "string_split", "regex_full_match",
                                        "split_to_sequence"};
    for (size_t k = 0; k < sizeof scenes / sizeof *scenes; k++) {
        rig r;
        assert_int_equal(scenes[k](&r), HONE_OK);
        for (int n = 0;; n++) {
            for (int q = 0; q < MANY; q++) {
                hone_value_drop(r.out[q]);
                r.out[q] = NULL;
            }
            hone_alloc_fail_after(n);
            hone_status s = run(&r, names[k]);
            hone_alloc_fail_after(-1);
            if (s == HONE_OK) break;
            assert_int_equal(s, HONE_NO_MEMORY);
            assert_true(n < 500);
        }
        rig_close(&r);
    }
}

static void sorting(void **state) {
    (void)state;
    int64_t f[3] = {INT64_MIN, -1, INT64_MAX};
    uint64_t key[3];
    hone_order_keys(HONE_DTYPE_I64, key, f, 3);
    assert_true(key[0] < key[1] && key[1] < key[2]);
    double d[5] = {-INFINITY, -1e-320, 0, 1e-320, NAN};
    uint64_t keys[5];
    hone_order_keys(HONE_DTYPE_F64, keys, d, 5);
    for (int k = 1; k < 5; k++) assert_true(keys[k - 1] < keys[k]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_row_has_its_function),
        cmocka_unit_test(sequences),
        cmocka_unit_test(split_and_join),
        cmocka_unit_test(optionals),
        cmocka_unit_test(loops),
        cmocka_unit_test(scans),
        cmocka_unit_test(maps_over_sequences),
        cmocka_unit_test(topk),
        cmocka_unit_test(uniques),
        cmocka_unit_test(nonzero_and_compress),
        cmocka_unit_test(boxes),
        cmocka_unit_test(determinants),
        cmocka_unit_test(strings),
        cmocka_unit_test(regexes),
        cmocka_unit_test(casts),
        cmocka_unit_test(labels),
        cmocka_unit_test(grams),
        cmocka_unit_test(trees),
        cmocka_unit_test(failing_allocations),
        cmocka_unit_test(sorting),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
