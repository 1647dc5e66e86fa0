/* SPDX-License-Identifier: Apache-2.0
   interp: the simplest correct executor, and so the definition of what a program means. One element at a
   time, sums in double. Everything fast is compared with it. Not fast, not parallel. */
#include <math.h>
#include <string.h>

#include "loops/instance.h"

typedef struct {
    const hone_instance *in;
    const hone_param *p;
    const hone_tensor_view *at;
    int64_t *i; /* value of each index */
    bool absolute;
    const bool *given; /* of each expression, or NULL: it has the value that was given */
    hone_scalar value;
    hone_status status;
} run;

static int64_t extent(const run *r, int32_t index) { return r->p[r->in->index[index].extent].i; }
static hone_scalar eval(run *r, int32_t x);
static int64_t place(run *r, int32_t x) { /* subscripts are indices, mostly: no need to ask further */
    const hone_x *e = r->in->x + x;
    return e->kind == HONE_X_INDEX && !r->given ? r->i[e->a] : eval(r, x).i64;
}

/* Address of element (subs) of tensor t, or NULL when outside. */
static char *address(const run *r, int t, const int64_t *sub) {
    const hone_tensor *w = r->in->tensor + t;
    int64_t at = 0;
    for (int k = 0; k < w->rank; k++) {
        if (sub[k] < 0 || sub[k] >= r->p[w->dim[k]].i) return NULL;
        at += sub[k] * r->at[t].stride[k];
    }
    return (char *)r->at[t].at + at * hone_dtypes[w->dtype].bytes;
}
static void outside(run *r, int t, int n, const int64_t *sub) {
    const hone_tensor *w = r->in->tensor + t;
    if (r->status) return;
    int bad = 0;
    for (int k = 0; k < n; k++)
        if (sub[k] < 0 || sub[k] >= r->p[w->dim[k]].i) bad = k;
    r->status = hone_fail(HONE_BAD_INPUT, "index %lld is outside of '%s', whose dim %d is %lld",
                          (long long)sub[bad], w->name, bad, (long long)(w->rank ? r->p[w->dim[bad]].i : 1));
}
/* What has arrays on its stack stays out of eval, which calls itself for every leaf: a sanitizer marks such
   arrays at each call. */
#define OUTLINED static __attribute__((noinline))
OUTLINED hone_scalar load_outside(run *r, const hone_x *e) {
    if (e->c >= 0) return eval(r, e->c);
    int64_t sub[HONE_MAX_RANK] = {0};
    const int n = e->flat ? 1 : r->in->tensor[e->a].rank;
    for (int k = 0; k < n; k++) sub[k] = place(r, r->in->list[e->b + k]);
    outside(r, e->a, n, sub);
    return (hone_scalar){.u64 = 0};
}
OUTLINED hone_scalar load(run *r, const hone_x *e) {
    const hone_tensor *w = r->in->tensor + e->a;
    const hone_tensor_view *from = r->at + e->a;
    const int32_t *list = r->in->list + e->b;
    int64_t at = 0;
    bool inside = true;
    if (e->flat) { /* dense: one row-major position */
        int64_t n = 1;
        for (int k = 0; k < w->rank; k++) n *= r->p[w->dim[k]].i;
        at = place(r, list[0]);
        inside = at >= 0 && at < n;
    } else
        for (int k = 0; k < w->rank; k++) {
            const int64_t s = place(r, list[k]);
            if (s < 0 || s >= r->p[w->dim[k]].i) inside = false;
            else at += s * from->stride[k];
        }
    return inside ? hone_dtype_load(w->dtype, (const char *)from->at + at * hone_dtypes[w->dtype].bytes)
                  : load_outside(r, e);
}
OUTLINED hone_scalar call(run *r, const hone_x *e) {
    hone_scalar a[3];
    const int n = hone_fns[e->fn].arity;
    a[0] = eval(r, e->a);
    if (n > 1) a[1] = eval(r, e->b);
    if (n > 2) a[2] = eval(r, e->c);
    return hone_fn_eval((hone_fn)e->fn, (hone_ctype)r->in->x[e->a].type, a);
}
OUTLINED hone_scalar rounded(run *r, const hone_x *e) {
    uint64_t room[2] = {0};
    hone_dtype_store((hone_dtype)e->fn, room, (hone_ctype)e->type, eval(r, e->a), false);
    return hone_dtype_load((hone_dtype)e->fn, room);
}
static hone_scalar eval(run *r, int32_t x) {
    const hone_x *e = r->in->x + x;
    hone_scalar v = {.u64 = 0};
    if (r->given && r->given[x]) return r->value;
    switch (e->kind) {
    case HONE_X_CONST: return e->k;
    case HONE_X_INDEX: v.i64 = r->i[e->a]; return v;
    case HONE_X_PARAM:
        if (r->in->param_real[e->a]) v.f64 = r->p[e->a].f;
        else v.i64 = r->p[e->a].i;
        return v;
    case HONE_X_LOAD: return load(r, e);
    case HONE_X_FN: return call(r, e);
    case HONE_X_SELECT: return eval(r, eval(r, e->a).i32 ? e->b : e->c);
    case HONE_X_CAST:
        return hone_ctype_cast((hone_ctype)e->type, (hone_ctype)r->in->x[e->a].type, eval(r, e->a));
    case HONE_X_ROUND: return rounded(r, e);
    }
    return v;
}
hone_scalar hone_interpret_x(const hone_instance *in, const hone_param *p, int64_t *index, int32_t x) {
    run r = {.in = in, .p = p, .i = index};
    return eval(&r, x);
}
hone_status hone_interpret_given(const hone_instance *in, const hone_param *p, const hone_tensor_view *tensor,
                                 int stage, const bool *given, hone_scalar value, void *to) {
    const hone_stage *s = in->stage + stage;
    run r = {.in = in, .p = p, .at = tensor, .given = given, .value = value};
    r.i = hone_alloc(sizeof *r.i * (size_t)(in->n_index + 1));
    if (!r.i) return hone_fail(HONE_NO_MEMORY, "no memory for the interpreter");
    for (int k = 0; k < in->n_index; k++) r.i[k] = 0;
    const hone_scalar v = eval(&r, s->value);
    if (!r.status)
        hone_dtype_store(in->tensor[s->tensor].dtype, to, (hone_ctype)in->x[s->value].type, v, s->saturate);
    hone_free(r.i);
    return r.status;
}

/* ---- stages -------------------------------------------------------------------------------------------- */
/* Steps the indices ids[0 … n-1] like an odometer; false when all are done. `fixed` stays. */
static bool next(run *r, const int32_t *ids, int n, int32_t fixed) {
    for (int k = n - 1; k >= 0; k--) {
        if (ids[k] == fixed) continue;
        if (++r->i[ids[k]] < extent(r, ids[k])) return true;
        r->i[ids[k]] = 0;
    }
    return false;
}
static bool first(run *r, const int32_t *ids, int n, int32_t fixed) {
    for (int k = 0; k < n; k++) {
        if (ids[k] == fixed) continue;
        r->i[ids[k]] = 0;
        if (extent(r, ids[k]) <= 0) return false;
    }
    return true;
}
static hone_scalar lowest(hone_ctype c, bool highest) {
    hone_scalar v = {.u64 = 0};
    if (c == HONE_F32) v.f32 = highest ? INFINITY : -INFINITY;
    if (c == HONE_F64) v.f64 = highest ? (double)INFINITY : (double)-INFINITY;
    if (c == HONE_I32) v.i32 = highest ? INT32_MAX : INT32_MIN;
    if (c == HONE_I64) v.i64 = highest ? INT64_MAX : INT64_MIN;
    if (c == HONE_U64) v.u64 = highest ? UINT64_MAX : 0;
    return v;
}
static hone_scalar reduce(run *r, const hone_stage *s) {
    const int32_t *ids = r->in->list + s->index0 + s->n_index;
    hone_ctype c = (hone_ctype)r->in->x[s->value].type;
    bool arg = s->reduce == HONE_REDUCE_ARGMAX || s->reduce == HONE_REDUCE_ARGMIN,
         max = s->reduce == HONE_REDUCE_MAX || s->reduce == HONE_REDUCE_ARGMAX;
    hone_scalar acc = {.u64 = 0}, pick = {.u64 = 0};
    double sum = s->reduce == HONE_REDUCE_PROD ? 1 : 0;
    bool in_double = c == HONE_F32 || c == HONE_F64;
    if (s->reduce == HONE_REDUCE_PROD) {
        if (c == HONE_I32) acc.i32 = 1;
        else acc.u64 = 1;
    }
    if (s->reduce >= HONE_REDUCE_MAX) acc = lowest(c, !max);
    bool any = first(r, ids, s->n_reduce, -1), begun = false;
    while (any && !r->status) {
        hone_scalar v = eval(r, s->value), a[2] = {acc, v};
        if (s->reduce == HONE_REDUCE_SUM) {
            if (in_double) {
                double d = c == HONE_F32 ? (double)v.f32 : v.f64;
                sum += r->absolute ? fabs(d) : d;
            } else acc = hone_fn_eval(HONE_FN_add, c, a);
        } else if (s->reduce == HONE_REDUCE_PROD) {
            if (in_double) sum *= c == HONE_F32 ? (double)v.f32 : v.f64;
            else acc = hone_fn_eval(HONE_FN_mul, c, a);
        } else if (!arg) {
            acc = hone_fn_eval(max ? HONE_FN_max : HONE_FN_min, c, a);
        } else { /* the first largest; NaN counts as larger than all, as in max */
            hone_scalar b[2] = {max ? acc : v, max ? v : acc};
            bool nan = in_double && isnan(hone_scalar_f64(c, v)),
                 nan_before = in_double && begun && isnan(hone_scalar_f64(c, acc));
            if (!begun || (!nan_before && (nan || hone_fn_eval(HONE_FN_lt, c, b).i32)))
                acc = v, pick = eval(r, s->pick);
            begun = true;
        }
        any = next(r, ids, s->n_reduce, -1);
    }
    if (arg) return pick;
    if (in_double && s->reduce <= HONE_REDUCE_PROD) {
        if (c == HONE_F32) acc.f32 = (float)sum;
        else acc.f64 = sum;
    }
    return acc;
}
static void one_stage(run *r, const hone_stage *s) { /* the over index, if any, is set from outside */
    const int32_t *ids = r->in->list + s->index0;
    int32_t fixed = s->over >= 0 ? s->over_index : -1;
    const hone_tensor *w = r->in->tensor + s->tensor;
    static const hone_fn hows[] = {HONE_FN_add, HONE_FN_add, HONE_FN_mul, HONE_FN_max, HONE_FN_min};
    bool any = first(r, ids, s->n_index, fixed);
    while (any && !r->status) {
        hone_scalar v = s->reduce ? reduce(r, s) : eval(r, s->value);
        hone_ctype c = (hone_ctype)r->in->x[s->pick >= 0 ? s->pick : s->value].type;
        int64_t sub[HONE_MAX_RANK] = {0};
        for (int k = 0; k < w->rank; k++)
            sub[k] = s->identity ? r->i[ids[k]] : eval(r, r->in->list[s->sub0 + k]).i64;
        char *at = address(r, s->tensor, sub);
        if (!at) {
            if (!s->skip) outside(r, s->tensor, w->rank, sub);
        } else {
            if (s->how) {
                hone_ctype t = hone_dtypes[w->dtype].ctype;
                hone_scalar a[2] = {hone_dtype_load(w->dtype, at), hone_ctype_cast(t, c, v)};
                v = hone_fn_eval(hows[s->how], t, a), c = t;
            }
            hone_dtype_store(w->dtype, at, c, v, s->saturate);
        }
        any = next(r, ids, s->n_index, fixed);
    }
}
static hone_status go(run *r, int from, int to) {
    r->i = hone_alloc(sizeof *r->i * (size_t)(r->in->n_index + 1));
    if (!r->i) return hone_fail(HONE_NO_MEMORY, "no memory for the interpreter");
    for (int k = from; k < to && !r->status;) {
        const hone_stage *s = r->in->stage + k;
        if (s->over < 0) {
            one_stage(r, s), k++;
            continue;
        }
        int end = k;
        while (end < r->in->n_stage && r->in->stage[end].over == s->over) end++;
        int64_t n = extent(r, s->over_index);
        for (int64_t t = 0; t < n && !r->status; t++)
            for (int q = k; q < end; q++) r->i[s->over_index] = t, one_stage(r, r->in->stage + q);
        k = end;
    }
    hone_free(r->i);
    return r->status;
}
hone_status hone_interpret(const hone_instance *in, const hone_param *p, const hone_tensor_view *tensor) {
    run r = {.in = in, .p = p, .at = tensor};
    return go(&r, 0, in->n_stage);
}
hone_status hone_interpret_stage(const hone_instance *in, const hone_param *p, const hone_tensor_view *tensor,
                                 int stage, bool absolute) {
    run r = {.in = in, .p = p, .at = tensor, .absolute = absolute};
    return go(&r, stage, stage + 1);
}

/* ---- on dims ------------------------------------------------------------------------------------------- */
/* The same walk on expressions of symbols: how Shape → Gather → Concat → Reshape folds away at compile. */
typedef struct {
    const hone_instance *in;
    const hone_param *p;
    hone_dims *dims;
    hone_dim *const *at;
    int64_t *i;
    bool lost;
} folding;
static hone_dim fold(folding *f, int32_t x) {
    const hone_x *e = f->in->x + x;
    switch (e->kind) {
    case HONE_X_CONST:
        if (e->type == HONE_F32 || e->type == HONE_F64) break;
        return hone_dim_from_content(e->type == HONE_I32 ? e->k.i32 : e->k.i64);
    case HONE_X_INDEX: return f->i[e->a];
    case HONE_X_PARAM:
        if (f->in->param_real[e->a]) break;
        return f->p[e->a].i;
    case HONE_X_LOAD: {
        const hone_tensor *w = f->in->tensor + e->a;
        if (!f->at[e->a]) break;
        int64_t at = 0;
        bool out = false;
        for (int k = 0; k < (e->flat ? 1 : w->rank); k++) {
            hone_dim s = fold(f, f->in->list[e->b + k]), d = e->flat ? INT64_MAX : f->p[w->dim[k]].i;
            if (f->lost || !hone_dim_is_number(s) || !hone_dim_is_number(d)) {
                f->lost = true;
                return 0;
            }
            if (s < 0 || s >= d) out = true;
            at = e->flat ? s : at * d + (w->broadcast[k] && d == 1 ? 0 : s);
        }
        if (out && e->c >= 0) return fold(f, e->c);
        if (out) break;
        return f->at[e->a][at];
    }
    case HONE_X_FN: {
        int n = hone_fns[e->fn].arity;
        if (hone_fns[e->fn].types == 'F' || hone_fns[e->fn].types == 'R' || f->in->x[e->a].type == HONE_F32 ||
            f->in->x[e->a].type == HONE_F64)
            break;
        hone_dim p = fold(f, e->a), q = n > 1 ? fold(f, e->b) : 0;
        if (f->lost) return 0;
        switch (e->fn) {
        case HONE_FN_add: return hone_dim_add(f->dims, p, q);
        case HONE_FN_sub: return hone_dim_sub(f->dims, p, q);
        case HONE_FN_mul: return hone_dim_mul(f->dims, p, q);
        case HONE_FN_div: return hone_dim_div(f->dims, p, q);
        case HONE_FN_mod: return hone_dim_mod(f->dims, p, q);
        case HONE_FN_min: return hone_dim_min(f->dims, p, q);
        case HONE_FN_max: return hone_dim_max(f->dims, p, q);
        case HONE_FN_neg: return hone_dim_sub(f->dims, 0, p);
        case HONE_FN_eq: return hone_dim_eq(f->dims, p, q);
        case HONE_FN_ne: return hone_dim_sub(f->dims, 1, hone_dim_eq(f->dims, p, q));
        case HONE_FN_lt: return hone_dim_lt(f->dims, p, q);
        case HONE_FN_le: return hone_dim_sub(f->dims, 1, hone_dim_lt(f->dims, q, p));
        case HONE_FN_quot: { /* floors and truncates alike where nothing is negative */
            int64_t lo, hi, lo2, hi2;
            if (p == INT64_MIN || q == INT64_MIN) break; /* some number at the far end, not this one */
            if (hone_dim_is_number(p) && hone_dim_is_number(q)) return q ? hone_dim_from_result(p / q) : 0;
            hone_dim_bounds(f->dims, p, &lo, &hi), hone_dim_bounds(f->dims, q, &lo2, &hi2);
            if (lo >= 0 && lo2 > 0) return hone_dim_div(f->dims, p, q);
            break;
        }
        case HONE_FN_and: return p == 0 || q == 0 ? 0 : hone_dim_mul(f->dims, p, q);
        case HONE_FN_or: return p == 1 || q == 1 ? 1 : hone_dim_max(f->dims, p, q);
        case HONE_FN_not: return hone_dim_sub(f->dims, 1, p);
        default: break;
        }
        if (!hone_dim_is_number(p) || !hone_dim_is_number(q)) break;
        hone_scalar a[3] = {{0}};
        hone_ctype c = (hone_ctype)f->in->x[e->a].type;
        a[0] = hone_ctype_cast(c, HONE_I64, (hone_scalar){.i64 = p}),
        a[1] = hone_ctype_cast(c, HONE_I64, (hone_scalar){.i64 = q});
        hone_scalar v = hone_fn_eval((hone_fn)e->fn, c, a);
        return hone_dim_from_result(hone_ctype_cast(HONE_I64, (hone_ctype)e->type, v).i64);
    }
    case HONE_X_SELECT: {
        hone_dim c = fold(f, e->a);
        if (f->lost) return 0;
        if (hone_dim_is_number(c)) return fold(f, c ? e->b : e->c);
        hone_dim p = fold(f, e->b), q = fold(f, e->c);
        return f->lost ? 0 : hone_dim_select(f->dims, c, p, q);
    }
    case HONE_X_CAST: /* integers through a float and back are the same below 2^24 */
        if (e->type == HONE_F32 || e->type == HONE_F64) break;
        if (f->in->x[e->a].type == HONE_F32 || f->in->x[e->a].type == HONE_F64) break;
        return fold(f, e->a);
    default: break;
    }
    f->lost = true;
    return 0;
}
bool hone_interpret_dims(const hone_instance *in, const hone_param *p, hone_dims *dims,
                         hone_dim *const *tensor) {
    folding f = {.in = in,
                 .p = p,
                 .dims = dims,
                 .at = tensor,
                 .i = hone_alloc(sizeof(int64_t) * (size_t)(in->n_index + 1))};
    if (!f.i) return false;
    for (int k = 0; k < in->n_stage && !f.lost; k++) {
        const hone_stage *s = in->stage + k;
        const int32_t *ids = in->list + s->index0;
        const hone_tensor *w = in->tensor + s->tensor;
        if (s->over >= 0 || s->how || !s->identity || s->reduce > HONE_REDUCE_MIN || !tensor[s->tensor]) {
            f.lost = true;
            break;
        }
        int64_t count = 1, inner = 1;
        for (int q = 0; q < s->n_index + s->n_reduce; q++) {
            hone_dim d = p[in->index[ids[q]].extent].i;
            if (!hone_dim_is_number(d) || d > 4096) {
                f.lost = true;
                break;
            }
            if (q < s->n_index) count *= d;
            else inner *= d;
            if (count > 4096 || inner > 4096) {
                f.lost = true;
                break;
            }
        }
        (void)w;
        for (int64_t c = 0; c < count && !f.lost; c++) {
            int64_t rest = c;
            for (int q = s->n_index - 1; q >= 0; q--)
                f.i[ids[q]] = rest % p[in->index[ids[q]].extent].i, rest /= p[in->index[ids[q]].extent].i;
            hone_dim acc = s->reduce == HONE_REDUCE_PROD ? 1 : 0;
            for (int64_t m = 0; m < inner && !f.lost; m++) {
                rest = m;
                for (int q = s->n_index + s->n_reduce - 1; q >= s->n_index; q--)
                    f.i[ids[q]] = rest % p[in->index[ids[q]].extent].i, rest /= p[in->index[ids[q]].extent].i;
                hone_dim v = fold(&f, s->value);
                if (f.lost) break;
                if (s->reduce == HONE_REDUCE_NONE) acc = v;
                else if (s->reduce == HONE_REDUCE_SUM) acc = hone_dim_add(dims, acc, v);
                else if (s->reduce == HONE_REDUCE_PROD) acc = hone_dim_mul(dims, acc, v);
                else
                    acc = m == 0                         ? v
                          : s->reduce == HONE_REDUCE_MAX ? hone_dim_max(dims, acc, v)
                                                         : hone_dim_min(dims, acc, v);
            }
            tensor[s->tensor][c] = acc;
        }
    }
    hone_free(f.i);
    return !f.lost;
}
