/* SPDX-License-Identifier: Apache-2.0
   walk: a node's program made into an instance, solved and interpreted on real values; and a whole graph,
   node by node. For tests: it is the shortest way from a model file to numbers, and knows no plan, no pass
   and no fast path. */
#ifndef HONE_TESTS_WALK_H
#define HONE_TESTS_WALK_H
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "host/host.h"
#include "loops/instance.h"
#include "model/onnx.h"

enum { WALK_MAX = 64 /* operands of a node */, WALK_LARGEST = 1 << 22 /* elements of a tensor */ };

/* ---- one call: everything that stands between values and an executor ----------------------------------- */
typedef struct {
    hone_arena *arena;
    hone_call call;
    hone_arg arg[WALK_MAX];
    const hone_instance *in;
    hone_param *param;
    hone_tensor_view *place;   /* one a tensor */
    size_t *bytes;             /* of each place's memory; 0 where it is an input's */
    hone_value *out[WALK_MAX]; /* outputs, by number in the program */
} walk_call;

static void walk_call_free(walk_call *w) {
    for (int t = 0; w->in && w->place && t < w->in->n_tensor; t++)
        if (w->in->tensor[t].role == HONE_ROLE_TEMP) hone_free(w->place[t].at);
    for (int k = 0; k < WALK_MAX; k++) hone_value_drop(w->out[k]);
    hone_arena_destroy(w->arena);
    memset(w, 0, sizeof *w);
}
static void walk_arg(walk_call *w, const hone_operand *o, const hone_value *v, hone_arg *a) {
    *a = (hone_arg){.present = true, .dtype = v->dtype, .rank = v->rank, .n_content = -1};
    hone_dim *dim = HONE_NEW_N(w->arena, hone_dim, HONE_MAX_RANK);
    for (int d = 0; d < v->rank; d++) dim[d] = v->dim[d];
    a->dim = dim;
    if (!o->contents) return;
    int64_t n = hone_value_count(v);
    hone_kind kind = hone_dtypes[v->dtype].kind;
    a->n_content = n;
    if (kind == HONE_KIND_FLOAT) {
        double *f = HONE_NEW_N(w->arena, double, n + 1);
        for (int64_t k = 0; k < n; k++) f[k] = hone_value_f64(v, k);
        a->content_f = f;
    } else {
        hone_dim *i = HONE_NEW_N(w->arena, hone_dim, n + 1);
        for (int64_t k = 0; k < n; k++) i[k] = hone_dim_from_content(hone_value_i64(v, k));
        a->content = i;
    }
}
/* Makes and solves the instance, allocates outputs (filled with a pattern, so that what is not written shows)
   and temporaries. */
static hone_status walk_call_make(walk_call *w, const hone_program *p, const hone_attr *attr, int n_attr,
                                  hone_value *const *in, int n_in, const bool *want, int n_out) {
    memset(w, 0, sizeof *w);
    w->arena = hone_arena_create();
    if (p->n_in + p->n_out > WALK_MAX || n_in > p->n_in || n_out > p->n_out)
        return hone_fail(HONE_BAD_INPUT, "%s: %d inputs and %d outputs do not fit its row", p->name, n_in,
                         n_out);
    for (int k = 0; k < p->n_in + p->n_out; k++) w->arg[k] = (hone_arg){.rank = -1, .n_content = -1};
    for (int k = 0; k < n_in; k++)
        if (in[k] && in[k]->tag != HONE_TAG_TENSOR)
            return hone_fail(HONE_BAD_INPUT, "%s: input %d is no tensor", p->name, k);
    for (int k = 0; k < n_in; k++)
        if (in[k]) walk_arg(w, p->operand + k, in[k], w->arg + k);
    for (int k = 0; k < n_out; k++) w->arg[p->n_in + k].present = want ? want[k] : true;
    w->call = (hone_call){.program = p, .attr = attr, .n_attr = n_attr, .arg = w->arg};
    HONE_TRY(hone_instance_make(w->arena, &w->call, &w->in));
    if (!w->in) return hone_fail(HONE_BAD_INPUT, "%s: the instance cannot be made yet", p->name);
    w->param = HONE_NEW_N(w->arena, hone_param, w->in->n_param + 1);
    HONE_TRY(hone_instance_solve(w->in, &w->call, w->param));
    for (int k = 0; k < w->in->n_param; k++)
        if (!w->in->param_real[k] && !hone_dim_is_number(w->param[k].i))
            return hone_fail(HONE_BAD_INPUT, "%s: parameter %d '%s' is not known", p->name, k,
                             w->in->param_name[k]);
    w->place = HONE_NEW_N(w->arena, hone_tensor_view, w->in->n_tensor + 1);
    w->bytes = HONE_NEW_N(w->arena, size_t, w->in->n_tensor + 1);
    for (int t = 0; t < w->in->n_tensor; t++) {
        const hone_tensor *x = w->in->tensor + t;
        int64_t dim[HONE_MAX_RANK] = {0}, stride[HONE_MAX_RANK] = {0};
        int rank = x->rank;
        if (x->role == HONE_ROLE_TEMP) {
            int64_t n = 1;
            for (int d = rank - 1; d >= 0 && n >= 0 && n <= WALK_LARGEST; d--)
                if (w->param[x->dim[d]].i > WALK_LARGEST) n = -1;
                else w->place[t].stride[d] = n, n *= w->param[x->dim[d]].i;
            w->bytes[t] = (size_t)n * hone_dtypes[x->dtype].bytes;
            if (n < 0 || n > WALK_LARGEST)
                return hone_fail(HONE_BAD_INPUT, "%s: temporary '%s' has %lld elements", p->name, x->name,
                                 (long long)n);
            if (!(w->place[t].at = hone_alloc(w->bytes[t] + 1)))
                return hone_fail(HONE_NO_MEMORY, "no memory");
            continue;
        }
        hone_value *v;
        if (x->role == HONE_ROLE_OUT) {
            int k = x->operand - p->n_in;
            hone_instance_out_shape(w->in, &w->call, w->param, k, &rank, dim);
            for (int d = 0; d < rank; d++)
                if (!hone_dim_is_number(dim[d]) || dim[d] < 0)
                    return hone_fail(HONE_BAD_INPUT, "%s: dim %d of output '%s' is not known", p->name, d,
                                     x->name);
            int64_t n;
            if (!hone_count_of(dim, rank, &n) || n > WALK_LARGEST)
                return hone_fail(HONE_BAD_INPUT, "%s: output '%s' is too large for a test", p->name, x->name);
            HONE_TRY(hone_value_tensor(x->dtype, dim, rank, &v));
            w->out[k] = v;
            if (x->dtype != HONE_DTYPE_STRING && v->data) memset(v->data, 0xa5, v->bytes);
            w->bytes[t] = v->bytes;
        } else v = in[x->operand];
        int64_t n = 1;
        for (int d = v->rank - 1; d >= 0; d--) stride[d] = n, n *= v->dim[d];
        hone_instance_strides(w->in, &w->call, w->param, t, v->dim, stride, w->place[t].stride);
        w->place[t].at = v->data;
    }
    for (int k = 0; k < n_out; k++) /* strings are handles: their owner goes along */
        if (w->out[k] && w->out[k]->dtype == HONE_DTYPE_STRING)
            for (int i = 0; i < n_in; i++)
                if (in[i] && in[i]->strings && !w->out[k]->strings)
                    w->out[k]->strings = hone_strings_hold(in[i]->strings);
    return HONE_OK;
}

/* ---- views that have no program, as copies ------------------------------------------------------------- */
static hone_status walk_copy_box(hone_value *to, const hone_value *from, int axis, int64_t to_at,
                                 int64_t from_at, int64_t n) {
    int64_t outer = 1, inner = hone_dtypes[from->dtype].bytes;
    for (int d = 0; d < axis; d++) outer *= from->dim[d];
    for (int d = axis + 1; d < from->rank; d++) inner *= from->dim[d];
    for (int64_t o = 0; o < outer && inner * n > 0; o++)
        memcpy((char *)to->data + (o * to->dim[axis] + to_at) * inner,
               (const char *)from->data + (o * from->dim[axis] + from_at) * inner, (size_t)(n * inner));
    if (from->strings && !to->strings) to->strings = hone_strings_hold(from->strings);
    return HONE_OK;
}
static hone_status walk_view(const hone_node *n, hone_value *const *in, hone_value **out) {
    const hone_program *p = n->program;
    if (!in[0]) return hone_fail(HONE_BAD_INPUT, "%s: no input", p->name);
    int rank = in[0]->rank;
    int64_t axis = hone_attr_int(n->attr, n->n_attr, "axis", 0), dim[HONE_MAX_RANK];
    memcpy(dim, in[0]->dim, sizeof dim);
    axis += axis < 0 ? rank : 0;
    if (!strcmp(p->how, "bitcast")) {
        HONE_TRY(hone_value_tensor((hone_dtype)hone_attr_int(n->attr, n->n_attr, "to", 1), dim, rank, out));
        if (out[0]->bytes != in[0]->bytes) return hone_fail(HONE_BAD_INPUT, "BitCast: sizes differ");
        if (out[0]->bytes) memcpy(out[0]->data, in[0]->data, out[0]->bytes);
        return HONE_OK;
    }
    if (!strcmp(p->how, "shape") || !strcmp(p->how, "size")) {
        bool size = p->how[1] == 'i';
        int64_t from = hone_attr_int(n->attr, n->n_attr, "start", 0),
                to = hone_attr_int(n->attr, n->n_attr, "end", rank), count = hone_value_count(in[0]);
        from += from < 0 ? rank : 0, to += to < 0 ? rank : 0;
        from = from < 0 ? 0 : from > rank ? rank : from, to = to < from ? from : to > rank ? rank : to;
        int64_t len = size ? 1 : to - from;
        HONE_TRY(hone_value_tensor(HONE_DTYPE_I64, &len, size ? 0 : 1, out));
        if (len) memcpy(out[0]->data, size ? &count : dim + from, (size_t)len * 8);
        return HONE_OK;
    }
    if (axis < 0 || axis >= rank)
        return hone_fail(HONE_BAD_INPUT, "%s: axis %lld is outside", p->name, (long long)axis);
    if (!strcmp(p->how, "concat")) {
        dim[axis] = 0;
        for (int k = 0; k < n->n_in; k++) dim[axis] += in[k]->dim[axis];
        HONE_TRY(hone_value_tensor(in[0]->dtype, dim, rank, out));
        for (int64_t k = 0, at = 0; k < n->n_in; at += in[k++]->dim[axis])
            HONE_TRY(walk_copy_box(out[0], in[k], (int)axis, at, 0, in[k]->dim[axis]));
        return HONE_OK;
    }
    if (!strcmp(p->how, "split")) {
        int64_t total = dim[axis], each = (total + n->n_out - 1) / n->n_out;
        for (int64_t k = 0, at = 0; k < n->n_out; at += dim[axis], k++) {
            dim[axis] = n->n_in > 1 && in[1] ? hone_value_i64(in[1], k)
                        : at + each > total  ? total - at
                                             : each;
            if (at + dim[axis] > total)
                return hone_fail(HONE_BAD_INPUT, "Split: parts are longer than the whole");
            HONE_TRY(hone_value_tensor(in[0]->dtype, dim, rank, out + k));
            HONE_TRY(walk_copy_box(out[k], in[0], (int)axis, 0, at, dim[axis]));
        }
        return HONE_OK;
    }
    return hone_fail(HONE_NOT_SUPPORTED, "%s: view '%s' has no program", p->name, p->how);
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
/* Called for every node that runs as a program, after it was interpreted; may be NULL. */
typedef hone_status walk_hook(void *user, const hone_node *, walk_call *, hone_value *const *in);
typedef struct {
    walk_hook *hook;
    void *user;
    hone_strings *strings;
} walker;
static hone_status walk_graph(const walker *, const hone_graph *, hone_value *const *in, int n_in,
                              hone_value **out, int n_out);

typedef struct {
    const walker *walk;
    const hone_node *node;
} walk_body_of;
static hone_status walk_body(const hone_host_call *c, int b, hone_value *const *in, int n_in,
                             hone_value **out, int n_out) {
    const walk_body_of *w = c->run;
    if (b < 0 || b >= w->node->n_body) return hone_fail(HONE_BUG, "no body %d", b);
    /* tensors that it might have filled */
    for (int k = 0; k < n_out; k++) hone_value_drop(out[k]), out[k] = NULL;
    return walk_graph(w->walk, w->node->body[b], in, n_in, out, n_out);
}
static bool has_stage(const hone_line *l) {
    for (; l; l = l->next)
        if (l->kind == HONE_LINE_STAGE || has_stage(l->block) || has_stage(l->other)) return true;
    return false;
}
static hone_status walk_node(const walker *walk, const hone_node *n, hone_value *const *in,
                             hone_value **out) {
    const hone_program *p = n->program;
    bool strings = false, want[WALK_MAX] = {false};
    for (int k = 0; k < n->n_in; k++) strings |= in[k] && in[k]->dtype == HONE_DTYPE_STRING;
    /* of a sequence, say */
    if (n->n_in == 1 && n->n_out == 1 && in[0] && in[0]->tag != HONE_TAG_TENSOR &&
        !strcmp(p->name, "Identity")) {
        out[0] = hone_value_hold(in[0]);
        return HONE_OK;
    }
    const hone_attr *to = hone_attr_find(n->attr, n->n_attr, "to");
    strings |= to && to->kind == HONE_ATTR_TYPE && to->i[0] == HONE_DTYPE_STRING;
    const char *host = p->runs == HONE_RUNS_HOST || p->runs == HONE_RUNS_CONTROL ? p->how
                       : strings                                                 ? p->how_strings
                                                                                 : NULL;
    if (host) {
        hone_host_fn *fn = hone_host_find(host);
        if (!fn) return hone_fail(HONE_NOT_SUPPORTED, "%s: host function '%s' does not exist", p->name, host);
        walk_body_of body = {walk, n};
        hone_dtype dtype[WALK_MAX] = {HONE_DTYPE_NONE};
        hone_arg arg[2 * WALK_MAX];
        memset(arg, 0, sizeof arg);
        bool plain = p->n_in + p->n_out <= WALK_MAX && p->runs == HONE_RUNS_HOST && n->n_in <= p->n_in;
        for (int k = 0; plain && k < n->n_in; k++)
            if (in[k])
                arg[k] = (hone_arg){.present = true,
                                    .dtype = in[k]->dtype,
                                    .rank = in[k]->rank,
                                    .dim = in[k]->dim,
                                    .n_content = -1};
        for (int k = 0; plain && k < n->n_out && k < p->n_out; k++) arg[p->n_in + k].present = n->out[k] >= 0;
        hone_call call = {.program = p, .attr = n->attr, .n_attr = n->n_attr, .arg = arg};
        if (plain) HONE_TRY(hone_call_dtypes(&call, dtype));
        hone_host_call c = {.node = n,
                            .in = in,
                            .out = out,
                            .out_dtype = dtype,
                            .strings = walk->strings,
                            .run_body = walk_body,
                            .run = &body};
        return fn(&c);
    }
    if (p->runs == HONE_RUNS_VIEW && !has_stage(p->lines)) return walk_view(n, in, out);
    if (n->n_out > WALK_MAX) return hone_fail(HONE_BAD_INPUT, "too many outputs");
    for (int k = 0; k < n->n_out; k++) want[k] = n->out[k] >= 0;
    walk_call w;
    hone_status s = walk_call_make(&w, p, n->attr, n->n_attr, in, n->n_in, want, n->n_out);
    if (!s) s = hone_interpret(w.in, w.param, w.place);
    if (!s && walk->hook) s = walk->hook(walk->user, n, &w, in);
    for (int k = 0; !s && k < n->n_out; k++) out[k] = w.out[k], w.out[k] = NULL;
    walk_call_free(&w);
    return s;
}
static hone_status walk_graph(const walker *walk, const hone_graph *g, hone_value *const *in, int n_in,
                              hone_value **out, int n_out) {
    hone_value **v = hone_alloc(sizeof *v * (size_t)(g->var.n + 1));
    hone_status s = HONE_OK;
    for (int k = 0; k < g->var.n; k++)
        if (g->var.at[k].value) v[k] = hone_value_hold(g->var.at[k].value);
    for (int k = 0; k < g->in.n && k < n_in; k++)
        if (in[k]) v[g->in.at[k]] = hone_value_hold(in[k]);
    for (int k = 0; k < g->node.n && !s; k++) {
        const hone_node *n = g->node.at[k];
        if (n->dead) continue;
        hone_value **a = hone_alloc(sizeof *a * (size_t)(n->n_in + n->n_out + 1)), **b = a + n->n_in;
        for (int i = 0; i < n->n_in; i++) a[i] = n->in[i] < 0 ? NULL : v[n->in[i]];
        s = walk_node(walk, n, a, b);
        if (s) s = hone_fail_at(s, "node '%s' (%s): ", n->name, n->program->name);
        for (int o = 0; o < n->n_out; o++) {
            if (n->out[o] >= 0) v[n->out[o]] = b[o];
            else hone_value_drop(b[o]);
        }
        hone_free(a);
    }
    for (int k = 0; k < n_out && !s; k++) {
        hone_value *r = k < g->out.n ? v[g->out.at[k]] : NULL;
        if (!r) s = hone_fail(HONE_BUG, "output %d has no value", k);
        else out[k] = hone_value_hold(r);
    }
    for (int k = 0; k < g->var.n; k++) hone_value_drop(v[k]);
    hone_free(v);
    return s;
}

/* ---- conformance cases: DIR/model.onnx, DIR/test_data_set_0/input_K.pb, output_K.pb -------------------- */
static void *walk_file(const char *path, size_t *bytes) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    size_t room = 1 << 16, n = 0, got;
    char *b = malloc(room);
    while (b && (got = fread(b + n, 1, room - n, f)) > 0)
        if ((n += got) == room) b = realloc(b, room *= 2);
    fclose(f);
    *bytes = n;
    return b;
}
static hone_status walk_value(const char *path, hone_tag tag, hone_value **out) {
    size_t n;
    void *b = walk_file(path, &n);
    if (!b) return hone_fail(HONE_BAD_INPUT, "cannot read %s", path);
    hone_status s = hone_onnx_read_value(b, n, tag, out);
    free(b);
    return s;
}
/* Walks the case FOLDER/NAME; the hook gets the name. What it gives out is not compared: other tests do
   that. */
static hone_status walk_case(const char *folder, const char *name, const hone_library *library,
                             walk_hook *hook) {
    char path[700];
    hone_graph *g = NULL;
    hone_value *in[WALK_MAX] = {NULL}, *out[WALK_MAX] = {NULL};
    snprintf(path, sizeof path, "%.400s/%.200s/model.onnx", folder, name);
    HONE_TRY(hone_onnx_load(path, library, &g));
    walker w = {.hook = hook, .user = (void *)name, .strings = hone_strings_create()};
    hone_status s = g->in.n > WALK_MAX || g->out.n > WALK_MAX
                        ? hone_fail(HONE_BAD_INPUT, "too many inputs or outputs")
                        : HONE_OK;
    for (int k = 0; k < g->in.n && !s; k++) {
        snprintf(path, sizeof path, "%.400s/%.200s/test_data_set_0/input_%d.pb", folder, name, k);
        if (!access(path, R_OK)) s = walk_value(path, hone_var_of(g, g->in.at[k])->tag, in + k);
    }
    if (!s) s = walk_graph(&w, g, in, g->in.n, out, g->out.n);
    for (int k = 0; k < WALK_MAX; k++) hone_value_drop(in[k]), hone_value_drop(out[k]);
    hone_strings_drop(w.strings);
    hone_graph_destroy(g);
    return s;
}
#endif
