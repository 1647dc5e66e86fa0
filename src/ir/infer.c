/* SPDX-License-Identifier: Apache-2.0
   infer: see infer.h. The row of an op is its shape rule; only what has no row of its own kind (Shape, Size,
   Concat, Split) is said here. */
#include "ir/infer.h"

#include <string.h>

enum {
    MAX_CONTENT = 256 /* numbers kept of an output */,
    MAX_FOLD = 4096 /* read to find them */,
    MAX_CONTENTS_OPERAND = 1 << 16
};
const hone_fact hone_fact_unknown = {.rank = -1};

hone_fact hone_fact_of_value(const hone_value *v) {
    hone_fact f = {.tag = v->tag, .dtype = v->dtype, .rank = -1};
    if (v->tag != HONE_TAG_TENSOR) return f;
    f.rank = v->rank, f.value = v;
    for (int k = 0; k < v->rank; k++) f.dim[k] = v->dim[k];
    return f;
}
bool hone_fact_shaped(const hone_fact *f) {
    if (f->tag != HONE_TAG_TENSOR || !f->dtype || f->rank < 0) return false;
    for (int k = 0; k < f->rank; k++)
        if (!hone_dim_is_number(f->dim[k])) return false;
    return true;
}
bool hone_fact_numbers(const hone_fact *f) {
    if (!f->contents) return false;
    for (int k = 0; k < f->n_content; k++)
        if (!hone_dim_is_number(f->contents[k])) return false;
    return true;
}

/* ---- calls --------------------------------------------------------------------------------------------- */
static int64_t count_known(const hone_fact *f) { /* elements, -1: not a number */
    int64_t n = 1;
    if (f->rank < 0) return -1;
    for (int k = 0; k < f->rank; k++) {
        if (!hone_dim_is_number(f->dim[k]) || f->dim[k] < 0) return -1;
        if (__builtin_mul_overflow(n, f->dim[k], &n)) return -1;
    }
    return n;
}
/* Whole numbers of a small constant, as contents. */
static bool contents_of(hone_arena *a, const hone_fact *f, int64_t most, const hone_dim **out, int64_t *n) {
    if (f->contents) {
        *out = f->contents, *n = f->n_content;
        return true;
    }
    if (!f->value || f->value->tag != HONE_TAG_TENSOR) return false;
    hone_kind kind = hone_dtypes[f->value->dtype].kind;
    *n = hone_value_count(f->value);
    if (*n > most || (kind != HONE_KIND_INT && kind != HONE_KIND_UINT && kind != HONE_KIND_BOOL))
        return false;
    hone_dim *d = HONE_NEW_N(a, hone_dim, *n + 1);
    if (!d) return false;
    for (int64_t k = 0; k < *n; k++) d[k] = hone_dim_from_content(hone_value_i64(f->value, k));
    *out = d;
    return true;
}
hone_status hone_node_call(const hone_inferring *w, const hone_node *n, const hone_fact *const *in,
                           hone_call **out) {
    const hone_program *p = n->program;
    hone_call *c = HONE_NEW(w->arena, hone_call);
    hone_arg *arg = HONE_NEW_N(w->arena, hone_arg, p->n_in + p->n_out + 1);
    if (!c || !arg) return hone_infer_no_memory();
    *c = (hone_call){.program = p,
                     .attr = n->attr,
                     .n_attr = n->n_attr,
                     .arg = arg,
                     .dims = w->dims,
                     .mixed = hone_instances_mixed(w->instances)};
    for (int k = 0; k < p->n_in; k++) {
        arg[k].rank = -1, arg[k].n_content = -1;
        if (k >= n->n_in - n->n_capture || n->in[k] < 0) continue;
        const hone_fact *f = in[k];
        arg[k].present = true, arg[k].dtype = f->dtype, arg[k].rank = f->rank, arg[k].dim = f->dim;
        if (!p->operand[k].contents) continue;
        arg[k].n_content = count_known(f);
        if (f->dtype && hone_dtypes[f->dtype].kind == HONE_KIND_FLOAT) {
            if (!f->value || arg[k].n_content > MAX_CONTENTS_OPERAND) continue;
            double *d = HONE_NEW_N(w->arena, double, arg[k].n_content + 1);
            if (!d) return hone_infer_no_memory();
            for (int64_t q = 0; q < arg[k].n_content; q++) d[q] = hone_value_f64(f->value, q);
            arg[k].content_f = d;
        } else {
            int64_t count;
            if (contents_of(w->arena, f, MAX_CONTENTS_OPERAND, &arg[k].content, &count))
                arg[k].n_content = count;
        }
    }
    for (int k = 0; k < p->n_out; k++)
        arg[p->n_in + k] = (hone_arg){.present = k < n->n_out && n->out[k] >= 0, .rank = -1, .n_content = -1};
    *out = c;
    return HONE_OK;
}

/* ---- what has no program ------------------------------------------------------------------------------- */
static bool axis_of(const hone_node *n, int rank, int64_t otherwise, int *out) {
    int64_t a = hone_attr_int(n->attr, n->n_attr, "axis", otherwise);
    if (a < 0) a += rank;
    *out = (int)a;
    return a >= 0 && a < rank;
}
static hone_status infer_shape(const hone_inferring *w, const hone_node *n, const hone_fact *const *in,
                               hone_fact *out) {
    out[0] = (hone_fact){.dtype = HONE_DTYPE_I64, .rank = 1, .dim = {HONE_DIM_UNKNOWN}};
    int r = in[0]->rank;
    if (r < 0) return HONE_OK;
    int64_t from = hone_attr_int(n->attr, n->n_attr, "start", 0),
            to = hone_attr_int(n->attr, n->n_attr, "end", INT64_MAX);
    from += from < 0 ? r : 0, to += to < 0 ? r : 0;
    from = from < 0 ? 0 : from > r ? r : from, to = to < from ? from : to > r ? r : to;
    hone_dim *d = HONE_NEW_N(w->arena, hone_dim, to - from + 1);
    if (!d) return hone_infer_no_memory();
    for (int64_t k = from; k < to; k++) d[k - from] = in[0]->dim[k];
    out[0].dim[0] = to - from, out[0].contents = d, out[0].n_content = (int)(to - from);
    return HONE_OK;
}
static hone_status infer_size(const hone_inferring *w, const hone_node *n, const hone_fact *const *in,
                              hone_fact *out) {
    (void)n;
    out[0] = (hone_fact){.dtype = HONE_DTYPE_I64};
    if (in[0]->rank < 0) return HONE_OK;
    hone_dim *d = HONE_NEW_N(w->arena, hone_dim, 1);
    if (!d) return hone_infer_no_memory();
    *d = hone_dim_product(w->dims, in[0]->dim, in[0]->rank);
    if (*d != HONE_DIM_UNKNOWN) out[0].contents = d, out[0].n_content = 1;
    return HONE_OK;
}
static hone_status infer_concat(const hone_inferring *w, const hone_node *n, const hone_fact *const *in,
                                hone_fact *out) {
    int rank = -1, axis;
    for (int k = 0; k < n->n_in; k++) {
        if (in[k]->dtype) {
            if (out[0].dtype && out[0].dtype != in[k]->dtype)
                return hone_fail(HONE_BAD_INPUT, "input %d is %s, the ones before are %s", k,
                                 hone_dtypes[in[k]->dtype].name, hone_dtypes[out[0].dtype].name);
            out[0].dtype = in[k]->dtype;
        }
        if (in[k]->rank < 0) continue;
        if (rank >= 0 && in[k]->rank != rank)
            return hone_fail(HONE_BAD_INPUT, "input %d has %d dims, the ones before have %d", k, in[k]->rank,
                             rank);
        rank = in[k]->rank;
    }
    if (rank < 0) return HONE_OK;
    if (!axis_of(n, rank, 0, &axis))
        return hone_fail(HONE_BAD_INPUT, "axis %lld is outside of %d dims",
                         (long long)hone_attr_int(n->attr, n->n_attr, "axis", 0), rank);
    out[0].rank = (int8_t)rank;
    for (int d = 0; d < rank; d++) out[0].dim[d] = d == axis ? 0 : HONE_DIM_UNKNOWN;
    int64_t total = 0;
    bool known = rank == 1;
    for (int k = 0; k < n->n_in; k++) {
        if (in[k]->rank < 0) {
            out[0].dim[axis] = HONE_DIM_UNKNOWN, known = false;
            continue;
        }
        for (int d = 0; d < rank; d++) {
            hone_dim v = in[k]->dim[d], *o = out[0].dim + d;
            if (d == axis) {
                *o = hone_dim_add(w->dims, *o, v);
                continue;
            }
            if (hone_dim_is_number(*o) && hone_dim_is_number(v) && *o != v)
                return hone_fail(
                    HONE_BAD_INPUT,
                    "input %d cannot be joined along axis %d: its dim %d is %lld, the ones before have %lld",
                    k, axis, d, (long long)v, (long long)*o);
            if (!hone_dim_is_number(*o) && v != HONE_DIM_UNKNOWN) *o = v;
        }
        const hone_dim *c;
        int64_t count;
        known = known && contents_of(w->arena, in[k], MAX_CONTENT, &c, &count);
        if (known) total += count;
    }
    if (!known || total > MAX_CONTENT) return HONE_OK;
    hone_dim *all = HONE_NEW_N(w->arena, hone_dim, total + 1);
    if (!all) return hone_infer_no_memory();
    for (int k = 0, at = 0; k < n->n_in; k++) {
        const hone_dim *c = NULL;
        int64_t count = 0;
        contents_of(w->arena, in[k], MAX_CONTENT, &c, &count);
        for (int64_t q = 0; q < count; q++) all[at++] = c[q];
    }
    out[0].contents = all, out[0].n_content = (int)total;
    return HONE_OK;
}
static hone_status infer_split(const hone_inferring *w, const hone_node *n, const hone_fact *const *in,
                               hone_fact *out) {
    int axis, rank = in[0]->rank;
    for (int k = 0; k < n->n_out; k++) out[k].dtype = in[0]->dtype;
    if (rank < 0) return HONE_OK;
    if (!axis_of(n, rank, 0, &axis))
        return hone_fail(HONE_BAD_INPUT, "axis %lld is outside of %d dims",
                         (long long)hone_attr_int(n->attr, n->n_attr, "axis", 0), rank);
    bool given = n->n_in > 1 && n->in[1] >= 0;
    const hone_dim *sizes = NULL, *data = NULL;
    int64_t count = 0, numbers = 0, parts = hone_attr_int(n->attr, n->n_attr, "num_outputs", n->n_out);
    if (given && contents_of(w->arena, in[1], 4096, &sizes, &count) && count != n->n_out)
        return hone_fail(HONE_BAD_INPUT, "'split' has %lld numbers for %d outputs", (long long)count,
                         n->n_out);
    if (parts <= 0) return hone_fail(HONE_BAD_INPUT, "num_outputs is %lld", (long long)parts);
    bool whole = rank == 1 && contents_of(w->arena, in[0], MAX_CONTENT, &data, &numbers);
    hone_dim total = in[0]->dim[axis],
             chunk = hone_dim_div(w->dims, hone_dim_add(w->dims, total, parts - 1), parts), used = 0;
    for (int k = 0; k < n->n_out; k++) {
        out[k].rank = (int8_t)rank;
        memcpy(out[k].dim, in[0]->dim, sizeof out[k].dim);
        hone_dim d =
            given ? (sizes ? sizes[k] : HONE_DIM_UNKNOWN)
            : k + 1 < parts
                ? hone_dim_min(w->dims, chunk, hone_dim_max(w->dims, hone_dim_sub(w->dims, total, used), 0))
                : hone_dim_max(w->dims, hone_dim_sub(w->dims, total, used), 0);
        if (!given && hone_dim_is_symbolic(total))
            d = k + 1 < parts ? chunk : hone_dim_sub(w->dims, total, used);
        out[k].dim[axis] = d;
        if (hone_dim_is_number(d) && d < 0)
            return hone_fail(HONE_BAD_INPUT, "part %d of 'split' is %lld; it cannot be below 0", k,
                             (long long)d);
        if (whole && hone_dim_is_number(used) && hone_dim_is_number(d) && used + d <= numbers)
            out[k].contents = data + used, out[k].n_content = (int)d;
        used = hone_dim_add(w->dims, used, d);
    }
    if (hone_dim_is_number(used) && hone_dim_is_number(total) && used != total)
        return hone_fail(HONE_BAD_INPUT, "the parts of 'split' add up to %lld, and dim %d is %lld",
                         (long long)used, axis, (long long)total);
    return HONE_OK;
}
static const struct {
    const char *how;
    hone_status (*infer)(const hone_inferring *, const hone_node *, const hone_fact *const *, hone_fact *);
} rules[] = {{"shape", infer_shape}, {"size", infer_size}, {"concat", infer_concat}, {"split", infer_split}};

/* ---- everything ---------------------------------------------------------------------------------------- */
static bool small_ints(const hone_fact *f) {
    hone_kind k = f->dtype ? hone_dtypes[f->dtype].kind : HONE_KIND_NONE;
    int64_t n = count_known(f);
    return (k == HONE_KIND_INT || k == HONE_KIND_UINT || k == HONE_KIND_BOOL) && n >= 0 && n <= MAX_CONTENT;
}
/* Numbers between an actual tensor (`flat`, row-major) and the same tensor as the program sees it: permuted,
   split, broadcast. */
static bool reorder(const hone_instance *i, const hone_call *call, const hone_param *p, int t,
                    const hone_fact *f, hone_dim *flat, hone_dim *seen, int64_t n, bool out) {
    const hone_tensor *x = i->tensor + t;
    int64_t dense[HONE_MAX_RANK], stride[HONE_MAX_RANK] = {0}, size = 1, count = count_known(f);
    for (int k = f->rank - 1; k >= 0; k--) dense[k] = size, size *= f->dim[k];
    hone_instance_strides(i, call, p, t, f->dim, dense, stride);
    for (int64_t k = 0; k < n; k++) {
        int64_t rest = k, at = 0;
        for (int d = x->rank - 1; d >= 0; d--)
            at += rest % p[x->dim[d]].i * stride[d], rest /= p[x->dim[d]].i;
        if (at < 0 || at >= count) return false;
        if (out) flat[at] = seen[k];
        else seen[k] = flat[at];
    }
    return true;
}
/* A number as a tensor of this type would hold it; false where an expression might not fit. */
static bool stored(hone_dtype t, hone_dim *d) {
    if (t == HONE_DTYPE_I64 || t == HONE_DTYPE_I32) { /* sizes fit; a constant above may not */
        if (t == HONE_DTYPE_I32 && hone_dim_is_number(*d)) *d = (int32_t)(uint32_t)(uint64_t)*d;
        return true;
    }
    if (t == HONE_DTYPE_BOOL && !hone_dim_is_number(*d)) return true;
    if (!hone_dim_is_number(*d)) return false;
    _Alignas(16) char room[16] = {0};
    hone_dtype_store(t, room, HONE_I64, (hone_scalar){.i64 = *d}, false);
    hone_value v = {.tag = HONE_TAG_TENSOR, .dtype = t, .data = room};
    *d = hone_dim_from_content(hone_value_i64(&v, 0));
    return true;
}
/* Contents of the outputs, where all inputs are known as expressions. */
static void fold(const hone_inferring *w, const hone_node *n, const hone_fact *const *in,
                 const hone_instance *i, const hone_call *call, const hone_param *p, hone_fact *out) {
    hone_dim **at = HONE_NEW_N(w->arena, hone_dim *, i->n_tensor + 1);
    int64_t *sizes = HONE_NEW_N(w->arena, int64_t, i->n_tensor + 1);
    if (!at || !sizes || !i->solver) return;
    for (int t = 0; t < i->n_tensor; t++) {
        const hone_tensor *x = i->tensor + t;
        int64_t size = 1;
        for (int k = 0; k < x->rank; k++) {
            hone_dim d = p[x->dim[k]].i;
            if (!hone_dim_is_number(d) || d < 0 || d > MAX_FOLD || (size *= d) > MAX_FOLD) return;
        }
        sizes[t] = size;
        if (x->role == HONE_ROLE_IN) {
            const hone_dim *c;
            int64_t count;
            if (!contents_of(w->arena, in[x->operand], MAX_FOLD, &c, &count) ||
                count != count_known(in[x->operand]))
                return;
            if (!(at[t] = HONE_NEW_N(w->arena, hone_dim, size + 1))) return;
            if (!reorder(i, call, p, t, in[x->operand], (hone_dim *)c, at[t], size, false)) return;
        } else {
            if (x->role == HONE_ROLE_OUT && !small_ints(out + (x->operand - n->program->n_in))) return;
            if (!(at[t] = HONE_NEW_N(w->arena, hone_dim, size + 1))) return;
        }
    }
    if (!hone_interpret_dims(i, p, w->dims, at)) return;
    for (int t = 0; t < i->n_tensor; t++) {
        const hone_tensor *x = i->tensor + t;
        if (x->role != HONE_ROLE_OUT) continue;
        hone_fact *f = out + (x->operand - n->program->n_in);
        int64_t count = count_known(f);
        hone_dim *flat = HONE_NEW_N(w->arena, hone_dim, count + 1);
        if (!flat) return;
        for (int64_t k = 0; k < count; k++) flat[k] = HONE_DIM_UNKNOWN;
        if (!reorder(i, call, p, t, f, flat, at[t], sizes[t], true)) return;
        bool any = false;
        for (int64_t k = 0; k < count; k++) any |= flat[k] == HONE_DIM_UNKNOWN || !stored(f->dtype, flat + k);
        if (!any) f->contents = flat, f->n_content = (int)count;
    }
}
/* Parameters and shapes of outputs; at bind they are kept by what they follow from: dims and contents of the
   inputs. */
typedef struct {
    int rank;
    hone_dim dim[HONE_MAX_RANK];
} shape;
typedef struct {
    hone_param *param;
    shape *out;
} solved;
typedef struct {
    const hone_instance *instance;
    const hone_call *call;
} question;
static hone_status answer(hone_arena *a, const void *arg, const void **out) {
    const question *q = arg;
    const hone_program *p = q->call->program;
    solved *v = HONE_NEW(a, solved);
    if (!v || !(v->param = HONE_NEW_N(a, hone_param, q->instance->n_param + 1)) ||
        !(v->out = HONE_NEW_N(a, shape, p->n_out)))
        return hone_infer_no_memory();
    HONE_TRY(hone_instance_solve(q->instance, q->call, v->param));
    for (int k = 0; k < p->n_out; k++)
        if (q->call->arg[p->n_in + k].present && p->operand[p->n_in + k].shaped)
            hone_instance_out_shape(q->instance, q->call, v->param, k, &v->out[k].rank, v->out[k].dim);
    *out = v;
    return HONE_OK;
}
static hone_status solve(const hone_inferring *w, const hone_instance *i, const hone_call *c,
                         const solved **out) {
    int64_t key[256];
    int n = 0, room = w->cache ? (int)(sizeof key / sizeof *key) - 1 : -1;
    key[n++] = (int64_t)(intptr_t)i;
    for (int k = 0; k < c->program->n_in; k++) {
        const hone_arg *a = c->arg + k;
        if (!a->present) continue; /* so it is for the instance, too */
        int rank = a->rank < 0 ? 0 : a->rank;
        const void *numbers = a->content ? (const void *)a->content : a->content_f;
        int64_t count = numbers ? a->n_content : 0;
        if (n + rank + 3 > room || count > room - n - rank - 3) {
            room = -1;
            break;
        }
        key[n++] = a->rank, key[n++] = a->n_content, key[n++] = numbers != NULL;
        if (rank) memcpy(key + n, a->dim, sizeof *key * (size_t)rank), n += rank;
        if (count > 0) memcpy(key + n, numbers, sizeof *key * (size_t)count), n += (int)count;
    }
    question q = {i, c};
    const void *found = NULL;
    HONE_TRY(room < 0 ? answer(w->arena, &q, &found) : hone_cache_get(w->cache, key, n, answer, &q, &found));
    *out = found;
    return HONE_OK;
}
/* sequences and optionals */
static void facts_of_kinds(const hone_node *n, const hone_fact *const *in, hone_fact *out) {
    const hone_program *p = n->program;
    for (int k = 0; k < n->n_out; k++) {
        int o = p->n_in + (k < p->n_out ? k : p->n_out - 1);
        hone_of of = p->operand[o].of;
        out[k].tag = of == HONE_OF_SEQ   ? HONE_TAG_SEQUENCE
                     : of == HONE_OF_OPT ? HONE_TAG_OPTIONAL
                     : of == HONE_OF_MAP ? HONE_TAG_MAP
                                         : HONE_TAG_TENSOR;
        out[k].rank = -1;
    }
    if (!strcmp(p->name, "Identity") && in[0]->tag != HONE_TAG_TENSOR) out[0] = *in[0];
}
static bool lacks_input(const hone_node *n) { /* import asks before the verifier has seen the node */
    const hone_program *p = n->program;
    for (int k = 0; k < p->n_in; k++)
        if (!p->operand[k].optional && !p->operand[k].variadic && k >= n->n_in - n->n_capture) return true;
    return false;
}
hone_status hone_node_infer(const hone_inferring *w, const hone_node *n, const hone_fact *const *in,
                            const hone_instance *known, hone_fact *out, const hone_instance **instance,
                            hone_call **call, hone_param **param) {
    const hone_program *p = n->program;
    *instance = NULL, *call = NULL, *param = NULL;
    for (int k = 0; k < n->n_out; k++) out[k] = hone_fact_unknown;
    if (lacks_input(n)) return HONE_OK;
    facts_of_kinds(n, in, out);
    for (size_t k = 0; k < sizeof rules / sizeof *rules; k++)
        if (p->runs == HONE_RUNS_VIEW && !strcmp(p->how, rules[k].how)) return rules[k].infer(w, n, in, out);
    if (p->runs == HONE_RUNS_CONTROL) return HONE_OK;
    bool variadic = false, tensors = true;
    for (int k = 0; k < p->n_in + p->n_out; k++) variadic |= p->operand[k].variadic;
    for (int k = 0; k < n->n_in; k++) tensors &= n->in[k] < 0 || in[k]->tag == HONE_TAG_TENSOR;
    HONE_TRY(hone_node_call(w, n, in, call));
    hone_dtype types[64] = {0};
    if (known) { /* then they are what they were when it was made */
        for (int t = 0; t < known->n_tensor; t++)
            if (known->tensor[t].role == HONE_ROLE_OUT)
                types[known->tensor[t].operand - p->n_in] = known->tensor[t].dtype;
    } else if (p->n_out <= 64 && tensors) HONE_TRY(hone_call_dtypes(*call, types));
    for (int k = 0; k < n->n_out; k++) {
        int q = k < p->n_out ? k : p->n_out - 1;
        if (out[k].tag == HONE_TAG_TENSOR && types[q]) out[k].dtype = types[q];
    }
    if (p->runs == HONE_RUNS_VIEW && !strcmp(p->how, "bitcast") && in[0]->dtype && out[0].dtype &&
        (hone_dtypes[in[0]->dtype].bytes != hone_dtypes[out[0].dtype].bytes ||
         in[0]->dtype == HONE_DTYPE_STRING || out[0].dtype == HONE_DTYPE_STRING))
        return hone_fail(HONE_BAD_INPUT, "%s has not as many bits as %s", hone_dtypes[out[0].dtype].name,
                         hone_dtypes[in[0]->dtype].name);
    for (int k = 0; k < p->n_out; k++) /* only the function itself knows */
        variadic |= p->runs == HONE_RUNS_HOST && p->operand[p->n_in + k].of == HONE_OF_ANY;
    if (variadic || !tensors) return HONE_OK;
    const hone_instance *i = known;
    if (!i) HONE_TRY(hone_instances_get(w->instances, *call, &i));
    if (!i) return HONE_OK;
    const solved *v;
    HONE_TRY(solve(w, i, *call, &v));
    for (int k = 0; k < n->n_out && k < p->n_out; k++) {
        if (n->out[k] < 0 || !p->operand[p->n_in + k].shaped) continue;
        out[k].rank = (int8_t)v->out[k].rank;
        for (int d = 0; d < v->out[k].rank; d++) {
            hone_dim dim = out[k].dim[d] = v->out[k].dim[d];
            if (hone_dim_is_number(dim) && dim < 0)
                return hone_fail(HONE_BAD_INPUT, "dim %d of output %d would be %lld", d, k, (long long)dim);
        }
    }
    bool fresh = p->runs != HONE_RUNS_HOST;
    for (int k = 0; k < n->n_out; k++) fresh &= n->out[k] < 0 || small_ints(out + k);
    if (fresh) fold(w, n, in, i, *call, v->param, out);
    *instance = i, *param = v->param;
    return HONE_OK;
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
hone_fact hone_fact_of_var(const hone_var *v) {
    if (v->value) return hone_fact_of_value(v->value);
    hone_fact f = {.tag = v->tag,
                   .dtype = v->dtype,
                   .rank = v->rank,
                   .contents = v->contents,
                   .n_content = v->n_content};
    memcpy(f.dim, v->dim, sizeof f.dim);
    return f;
}
static void set_var(hone_var *v, const hone_fact *f) {
    if (v->value) return;
    if (f->dtype || f->rank >= 0 || f->tag) v->tag = f->tag; /* else what the model states stands */
    v->rank = f->rank;
    if (f->dtype) v->dtype = f->dtype;
    memcpy(v->dim, f->dim, sizeof v->dim);
    v->contents = f->contents, v->n_content = f->n_content;
}
static hone_status infer_graph(hone_graph *g, const hone_inferring *w, int depth);
static void join(hone_fact *f, const hone_fact *o) { /* what two branches agree on */
    if (f->tag != o->tag) {
        *f = hone_fact_unknown;
        return;
    }
    if (f->dtype != o->dtype) f->dtype = HONE_DTYPE_NONE;
    if (f->rank != o->rank) f->rank = -1;
    for (int k = 0; k < f->rank; k++)
        if (f->dim[k] != o->dim[k]) f->dim[k] = HONE_DIM_UNKNOWN;
    f->contents = NULL, f->value = NULL;
}
/* Bodies: captures bring their facts, formal inputs what the op promises (for loops: nothing but dtypes,
   since shapes may change). */
static void enter_body(const hone_node *n, const hone_graph *body, const hone_fact *const *in) {
    bool loop = !strcmp(n->program->how, "loop"), scan = !strcmp(n->program->how, "scan");
    for (int k = 0; k < body->in.n; k++) {
        hone_fact f = hone_fact_unknown;
        if (k >= body->n_formal) { /* a capture */
            int at = n->n_in - n->n_capture + (k - body->n_formal);
            if (at < n->n_in) f = *in[at];
        } else if (loop && k < 2) {
            f = (hone_fact){.dtype = k ? HONE_DTYPE_BOOL : HONE_DTYPE_I64};
        } else if ((loop || scan) && k < n->n_in - n->n_capture && n->in[k] >= 0) {
            f.tag = in[k]->tag, f.dtype = in[k]->dtype;
        }
        if (f.tag != HONE_TAG_TENSOR || f.dtype || f.rank >= 0) set_var(body->var.at + body->in.at[k], &f);
    }
}
static int branch_taken(const hone_fact *cond) { /* -1: not known */
    if (cond->value && cond->value->tag == HONE_TAG_TENSOR && hone_value_count(cond->value) == 1)
        return hone_value_i64(cond->value, 0) ? 0 : 1;
    return cond->n_content == 1 && hone_fact_numbers(cond) ? (cond->contents[0] ? 0 : 1) : -1;
}
static hone_status infer_bodies(hone_node *n, const hone_inferring *w, const hone_fact *const *in,
                                hone_fact *out, int depth) {
    bool is_if = !strcmp(n->program->how, "if"), loop = !strcmp(n->program->how, "loop"), seen = false;
    int taken = is_if && n->n_in && n->n_body == 2 ? branch_taken(in[0]) : -1;
    for (int b = 0; b < n->n_body; b++) {
        hone_graph *body = n->body[b];
        enter_body(n, body, in);
        hone_status s = infer_graph(body, w, depth + 1);
        /* what is wrong in a branch matters only if it is taken */
        if (s && (!is_if || b == taken || s == HONE_NO_MEMORY)) return s;
        if (body->out.n < n->n_out + (loop ? 1 : 0))
            return hone_fail(HONE_BAD_INPUT, "a body has %d outputs, the node %d", body->out.n, n->n_out);
        for (int k = 0; k < n->n_out; k++) {
            hone_fact f = hone_fact_of_var(body->var.at + body->out.at[k + (loop ? 1 : 0)]);
            if (!is_if) { /* shapes may change from one turn to the next */
                if (strcmp(n->program->how, "sequence_map")) out[k].tag = f.tag;
                out[k].dtype = f.dtype;
                continue;
            }
            if (taken >= 0 && b != taken) continue;
            if (s) f = hone_fact_unknown;
            if (!seen) out[k] = f;
            else join(out + k, &f);
            if (taken >= 0 && f.value) {
                int64_t count;
                if (small_ints(&f) && contents_of(w->arena, &f, MAX_CONTENT, &out[k].contents, &count))
                    out[k].n_content = (int)count;
            }
            out[k].value = NULL;
        }
        seen |= taken < 0 || b == taken;
    }
    return HONE_OK;
}
static hone_status infer_one(hone_graph *g, hone_node *n, const hone_inferring *w, int depth) {
    hone_fact *facts = HONE_NEW_N(w->arena, hone_fact, n->n_in + n->n_out + 1);
    const hone_fact **in = HONE_NEW_N(w->arena, const hone_fact *, n->n_in + 1);
    if (!facts || !in) return hone_infer_no_memory();
    for (int q = 0; q < n->n_in; q++) {
        facts[q] = n->in[q] < 0 ? hone_fact_unknown : hone_fact_of_var(g->var.at + n->in[q]);
        in[q] = facts + q;
    }
    hone_fact *out = facts + n->n_in;
    const hone_instance *i;
    hone_call *c;
    hone_param *p;
    hone_status s = hone_node_infer(w, n, in, NULL, out, &i, &c, &p);
    if (!s && n->n_body && !n->program->how)
        s = hone_fail(HONE_BAD_INPUT, "it has a graph as an attribute, and takes none");
    if (!s && n->n_body) s = infer_bodies(n, w, in, out, depth);
    if (s) return hone_fail_at(s, "node '%s' (%s): ", n->name, n->program->name);
    for (int q = 0; q < n->n_out; q++)
        if (n->out[q] >= 0) set_var(g->var.at + n->out[q], out + q);
    return HONE_OK;
}
static hone_status infer_graph(hone_graph *g, const hone_inferring *w, int depth) {
    if (depth > 40) return hone_fail(HONE_BAD_INPUT, "bodies are nested too deeply");
    for (int k = 0; k < g->node.n; k++) {
        hone_status s = infer_one(g, g->node.at[k], w, depth);
        if (s) return s;
    }
    return HONE_OK;
}
hone_status hone_graph_infer_from(hone_graph *g, hone_instances *all, int from) {
    hone_inferring w = {g->arena, g->dims, all, NULL};
    for (int k = from; k < g->node.n; k++)
        if (infer_one(g, g->node.at[k], &w, 0) == HONE_NO_MEMORY) return HONE_NO_MEMORY;
    return HONE_OK;
}
hone_status hone_graph_infer_by(hone_graph *g, hone_instances *all) {
    hone_inferring w = {g->arena, g->dims, all, NULL};
    return infer_graph(g, &w, 0);
}
hone_status hone_graph_infer(hone_graph *g) {
    hone_instances *all = hone_instances_create();
    if (!all) return hone_infer_no_memory();
    hone_status s = hone_graph_infer_by(g, all);
    hone_instances_destroy(all);
    return s;
}
