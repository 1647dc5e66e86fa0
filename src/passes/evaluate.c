/* SPDX-License-Identifier: Apache-2.0
   evaluate: see evaluate.h. Rows with a program run as tile code; views that only move bytes are moved here,
   at the speed of memory, because models transpose whole weights. */
#include "passes/evaluate.h"

#include <string.h>

#include "host/host.h"
#include "loops/tile.h"

typedef struct {
    hone_evaluating *e;
    const hone_node *node;
    hone_value **in;        /* NULL where absent */
    const hone_fact **fact; /* of the inputs */
    hone_fact *want;        /* of the outputs */
    hone_value **out;
    const hone_instance *instance;
    hone_call *call;
    hone_param *param;
} work;

/* ---- outputs ------------------------------------------------------------------------------------------- */
static bool make(work *w, int k) {
    const hone_fact *f = w->want + k;
    int64_t dim[HONE_MAX_RANK] = {0}, count;
    if (!hone_fact_shaped(f)) return false;
    for (int d = 0; d < f->rank; d++) dim[d] = f->dim[d];
    if (!hone_count_of(dim, f->rank, &count) || count > w->e->most_bytes / hone_dtypes[f->dtype].bytes)
        return false;
    return hone_value_tensor(f->dtype, dim, f->rank, w->out + k) == HONE_OK;
}
/* Strings are handles: the one pool they come from goes along. With several pools a program could mix
   them. */
static bool share_strings(work *w) {
    hone_strings *pool = NULL;
    int pools = 0;
    for (int k = 0; k < w->node->n_in; k++)
        if (w->in[k] && w->in[k]->strings) pool = w->in[k]->strings, pools++;
    for (int k = 0; k < w->node->n_out; k++)
        if (w->out[k] && w->out[k]->dtype == HONE_DTYPE_STRING) {
            if (pools > 1) return false;
            if (pool && !w->out[k]->strings) w->out[k]->strings = hone_strings_hold(pool);
        }
    return true;
}

/* ---- views --------------------------------------------------------------------------------------------- */
static bool move_all(work *w) { /* Reshape and its kind, BitCast */
    if (!make(w, 0) || w->out[0]->bytes != w->in[0]->bytes) return false;
    if (w->out[0]->bytes) memcpy(w->out[0]->data, w->in[0]->data, w->out[0]->bytes);
    return true;
}
static bool move_transposed(work *w) { /* Transpose */
    const hone_value *x = w->in[0];
    const hone_attr *perm = hone_attr_find(w->node->attr, w->node->n_attr, "perm");
    int64_t stride[HONE_MAX_RANK], from[HONE_MAX_RANK], at[HONE_MAX_RANK] = {0},
                                                        step = (int64_t)hone_dtypes[x->dtype].bytes;
    int rank = x->rank;
    if (!make(w, 0) || w->out[0]->bytes != x->bytes || w->out[0]->rank != rank) return false;
    if (perm && (perm->kind != HONE_ATTR_INTS || perm->n != rank)) return false;
    size_t size = (size_t)step;
    for (int d = rank - 1; d >= 0; d--) stride[d] = step, step *= x->dim[d];
    for (int d = 0; d < rank; d++) {
        int64_t source = perm ? perm->i[d] : rank - 1 - d;
        if (source < 0 || source >= rank || w->out[0]->dim[d] != x->dim[source]) return false;
        from[d] = stride[source];
    }
    const char *src = x->data;
    char *dst = w->out[0]->data;
    int64_t n = hone_value_count(x), inner = rank ? w->out[0]->dim[rank - 1] : 1,
            hop = rank ? from[rank - 1] : 0;
    for (int64_t done = 0; done < n; done += inner) {
        const char *p = src;
        for (int64_t k = 0; k < inner; k++, p += hop, dst += size) memcpy(dst, p, size);
        for (int d = rank - 2; d >= 0; d--) { /* the next row */
            src += from[d];
            if (++at[d] < w->out[0]->dim[d]) break;
            src -= from[d] * at[d], at[d] = 0;
        }
    }
    return true;
}
/* n members around an axis. */
static void copy_box(hone_value *to, const hone_value *from, int axis, int64_t to_at, int64_t from_at,
                     int64_t n) {
    int64_t outer = 1, inner = hone_dtypes[from->dtype].bytes;
    for (int d = 0; d < axis; d++) outer *= from->dim[d];
    for (int d = axis + 1; d < from->rank; d++) inner *= from->dim[d];
    for (int64_t o = 0; o < outer && inner * n > 0; o++) {
        const char *src = (const char *)from->data + (o * from->dim[axis] + from_at) * inner;
        memcpy((char *)to->data + (o * to->dim[axis] + to_at) * inner, src, (size_t)(n * inner));
    }
}
static bool axis_of(const work *w, int *axis) {
    *axis = hone_attr_axis(w->node->attr, w->node->n_attr, w->in[0]->rank);
    return *axis >= 0;
}
static bool move_concat(work *w) {
    int axis;
    int64_t at = 0;
    if (!axis_of(w, &axis) || !make(w, 0)) return false;
    for (int k = 0; k < w->node->n_in; k++) { /* infer.c has seen that they fit together */
        const hone_value *x = w->in[k], *y = w->out[0];
        if (!x || x->rank != y->rank || x->dtype != y->dtype || at + x->dim[axis] > y->dim[axis])
            return false;
        copy_box(w->out[0], x, axis, at, 0, x->dim[axis]);
        at += x->dim[axis];
    }
    return true;
}
static bool move_split(work *w) {
    int axis;
    if (!axis_of(w, &axis)) return false;
    int64_t at = 0;
    for (int k = 0; k < w->node->n_out; k++) {
        hone_dim part = w->want[k].rank == w->in[0]->rank ? w->want[k].dim[axis] : -1;
        if (!hone_dim_is_number(part) || part < 0 || at + part > w->in[0]->dim[axis]) return false;
        if (w->node->out[k] >= 0) {
            if (!make(w, k)) return false;
            copy_box(w->out[k], w->in[0], axis, 0, at, part);
        }
        at += part;
    }
    return true;
}
static bool move_contents(work *w) { /* Shape, Size */
    w->out[0] = hone_evaluate_contents(w->want);
    return w->out[0] != NULL;
}
static const struct {
    const char *how;
    bool (*move)(work *);
} views[] = {{"reshape", move_all},   {"bitcast", move_all}, {"transpose", move_transposed},
             {"concat", move_concat}, {"split", move_split}, {"shape", move_contents},
             {"size", move_contents}};

/* ---- programs ------------------------------------------------------------------------------------------ */
static double work_of(const hone_instance *i, const hone_param *p) {
    double total = 0, each = 1 + (double)i->n_x / (i->n_stage ? i->n_stage : 1);
    for (int s = 0; s < i->n_stage; s++) {
        const hone_stage *st = i->stage + s;
        double n = each;
        for (int k = 0; k < st->n_index + st->n_reduce; k++)
            n *= (double)p[i->index[i->list[st->index0 + k]].extent].i;
        total += n;
    }
    return total;
}
static bool place_temporary(work *w, int t, hone_tensor_view *place) {
    const hone_tensor *x = w->instance->tensor + t;
    int64_t dim[HONE_MAX_RANK] = {0}, count, n = 1;
    for (int d = 0; d < x->rank; d++) dim[d] = w->param[x->dim[d]].i;
    if (!hone_count_of(dim, x->rank, &count) || count > w->e->most_bytes / hone_dtypes[x->dtype].bytes)
        return false;
    for (int d = x->rank - 1; d >= 0; d--) place->stride[d] = n, n *= dim[d];
    return (place->at = hone_alloc((size_t)count * hone_dtypes[x->dtype].bytes + 1)) != NULL;
}
static bool place_value(work *w, int t, hone_tensor_view *place) {
    const hone_tensor *x = w->instance->tensor + t;
    int own = w->node->program->n_in, k = x->operand;
    if (x->role == HONE_ROLE_OUT && (k < own || k - own >= w->node->n_out || !make(w, k - own))) return false;
    if (x->role == HONE_ROLE_IN && (k >= w->node->n_in || !w->in[k])) return false;
    const hone_value *v = x->role == HONE_ROLE_OUT ? w->out[k - own] : w->in[k];
    int64_t stride[HONE_MAX_RANK], n = 1;
    for (int d = v->rank - 1; d >= 0; d--) stride[d] = n, n *= v->dim[d];
    hone_instance_strides(w->instance, w->call, w->param, t, v->dim, stride, place->stride);
    place->at = v->data;
    return true;
}
static bool run_program(work *w) {
    const hone_instance *i = w->instance;
    if (!i || !i->n_stage) return false;
    for (int k = 0; k < i->n_param; k++)
        if (!i->param_real[k] && !hone_dim_is_number(w->param[k].i)) return false;
    double cost = work_of(i, w->param);
    if (cost > w->e->most_work || cost > w->e->work) return false;
    w->e->work -= cost;
    hone_tensor_view *place = HONE_NEW_N(w->e->arena, hone_tensor_view, i->n_tensor + 1);
    bool ok = place != NULL;
    for (int t = 0; ok && t < i->n_tensor; t++)
        ok = i->tensor[t].role == HONE_ROLE_TEMP ? place_temporary(w, t, place + t)
                                                 : place_value(w, t, place + t);
    ok = ok && hone_tile_all(i, w->param, place) == HONE_OK;
    for (int t = 0; place && t < i->n_tensor; t++)
        if (i->tensor[t].role == HONE_ROLE_TEMP) hone_free(place[t].at);
    return ok;
}
static bool call_host(work *w, const char *name) {
    hone_host_fn *fn = hone_host_find(name);
    size_t bytes = 0;
    for (int k = 0; k < w->node->n_in; k++) bytes += w->in[k] ? w->in[k]->bytes : 0;
    /* such functions are near linear */
    if (!fn || (double)bytes > w->e->most_work || (double)bytes > w->e->work) return false;
    w->e->work -= (double)bytes;
    hone_dtype *type = HONE_NEW_N(w->e->arena, hone_dtype, w->node->n_out + 1);
    hone_strings *strings = hone_strings_create();
    for (int k = 0; type && k < w->node->n_out; k++) type[k] = w->want[k].dtype;
    hone_host_call c = {.node = w->node, .in = w->in, .out = w->out, .out_dtype = type, .strings = strings};
    bool ok = type && strings && fn(&c) == HONE_OK;
    hone_strings_drop(strings);
    for (int k = 0; ok && k < w->node->n_out; k++)
        if (w->node->out[k] >= 0)
            ok = w->out[k] && w->out[k]->tag == HONE_TAG_TENSOR &&
                 (int64_t)w->out[k]->bytes <= w->e->most_bytes;
    return ok;
}

/* ---- a node -------------------------------------------------------------------------------------------- */
hone_value *hone_evaluate_contents(const hone_fact *f) {
    int64_t dim[HONE_MAX_RANK] = {0}, count;
    if (!hone_fact_shaped(f) || !hone_fact_numbers(f)) return NULL;
    if (f->dtype != HONE_DTYPE_I64 && f->dtype != HONE_DTYPE_I32 && f->dtype != HONE_DTYPE_BOOL) return NULL;
    for (int d = 0; d < f->rank; d++) dim[d] = f->dim[d];
    if (!hone_count_of(dim, f->rank, &count) || count != f->n_content) return NULL;
    for (int k = 0; k < f->n_content; k++) {
        int64_t c = f->contents[k];
        if (c == INT64_MIN || (f->dtype == HONE_DTYPE_I32 && (c < INT32_MIN || c > INT32_MAX))) return NULL;
    }
    hone_value *v;
    if (hone_value_tensor(f->dtype, dim, f->rank, &v)) return NULL;
    size_t size = hone_dtypes[f->dtype].bytes;
    for (int64_t k = 0; k < count; k++)
        hone_dtype_store(f->dtype, (char *)v->data + (size_t)k * size, HONE_I64,
                         (hone_scalar){.i64 = f->contents[k]}, false);
    return v;
}
static bool run(work *w) {
    const hone_program *p = w->node->program;
    bool strings = false;
    for (int k = 0; k < w->node->n_in; k++) strings |= w->in[k] && w->in[k]->dtype == HONE_DTYPE_STRING;
    for (int k = 0; k < w->node->n_out; k++) strings |= w->want[k].dtype == HONE_DTYPE_STRING;
    if (p->runs == HONE_RUNS_HOST) return call_host(w, p->how);
    if (strings && p->how_strings) return call_host(w, p->how_strings);
    for (size_t k = 0; p->runs == HONE_RUNS_VIEW && w->in[0] && k < sizeof views / sizeof *views; k++)
        if (!strcmp(p->how, views[k].how)) return views[k].move(w) && share_strings(w);
    return run_program(w) && share_strings(w);
}
bool hone_evaluate(hone_evaluating *e, const hone_graph *g, const hone_node *n, hone_value **out) {
    hone_fact *facts = HONE_NEW_N(e->arena, hone_fact, n->n_in + n->n_out + 1);
    work w = {.e = e, .node = n, .out = out};
    w.in = HONE_NEW_N(e->arena, hone_value *, n->n_in + 1),
    w.fact = HONE_NEW_N(e->arena, const hone_fact *, n->n_in + 1);
    /* a host function has one output at least */
    if (!facts || !w.in || !w.fact || n->n_body || n->part || !n->n_out) return false;
    for (int k = 0; k < n->n_in; k++) {
        facts[k] = hone_fact_unknown, w.fact[k] = facts + k;
        if (n->in[k] < 0) continue;
        w.in[k] = g->var.at[n->in[k]].value;
        if (!w.in[k] || w.in[k]->tag != HONE_TAG_TENSOR) return false;
        facts[k] = hone_fact_of_value(w.in[k]);
    }
    w.want = facts + n->n_in;
    hone_inferring inferring = {e->arena, NULL, e->instances, NULL};
    bool ok = hone_node_infer(&inferring, n, w.fact, NULL, w.want, &w.instance, &w.call, &w.param) == HONE_OK;
    for (int k = 0; k < n->n_out; k++) out[k] = NULL;
    ok = ok && run(&w);
    for (int k = 0; ok && k < n->n_out; k++) ok = n->out[k] < 0 || out[k];
    for (int k = 0; k < n->n_out; k++)
        if (out[k] && (!ok || n->out[k] < 0)) hone_value_drop(out[k]), out[k] = NULL;
    return ok;
}
