/* SPDX-License-Identifier: Apache-2.0
   solve: an instance's parameters from a call, symbolically or in numbers by the same code; shapes of
   outputs; strides as the program sees them. */
#include <math.h>
#include <string.h>

#include "loops/build.h"

static hone_number whole(hone_dim d) { return (hone_number){false, d, 0}; }
static hone_number broken(double f) { return (hone_number){true, 0, f}; }
static double as_real(hone_number n) { return n.real ? n.f : hone_dim_is_number(n.i) ? (double)n.i : NAN; }

/* ---- vectors ------------------------------------------------------------------------------------------- */
int64_t hone_vector_length(const hone_vector *all, int v, const hone_call *c) {
    const hone_vector *w = all + v;
    switch (w->kind) {
    case HONE_VECTOR_ATTR: return w->attr ? w->attr->n : 0;
    case HONE_VECTOR_CONTENT: return c->arg[w->operand].present ? c->arg[w->operand].n_content : 0;
    case HONE_VECTOR_DIMS: return c->arg[w->operand].rank;
    case HONE_VECTOR_RESHAPE: return hone_vector_length(all, w->arg0, c);
    case HONE_VECTOR_UNSQUEEZE: {
        int64_t n = hone_vector_length(all, w->arg0, c), r = hone_vector_length(all, w->arg1, c);
        return n < 0 || r < 0 ? -1 : n + r;
    }
    case HONE_VECTOR_SQUEEZE: { /* axes, dims: without axes every dim of 1 goes */
        int64_t n = hone_vector_length(all, w->arg0, c), r = hone_vector_length(all, w->arg1, c);
        bool given = all[w->arg0].kind != HONE_VECTOR_CONTENT || c->arg[all[w->arg0].operand].present;
        if (n < 0 || r < 0) return -1;
        if (given) return r >= n ? r - n : 0;
        int64_t left = 0;
        for (int64_t k = 0; k < r; k++) {
            hone_dim d = hone_vector_at(all, w->arg1, c, k).i;
            if (!hone_dim_is_number(d)) return -1;
            left += d != 1;
        }
        return left;
    }
    case HONE_VECTOR_BROADCAST: {
        int64_t n = hone_vector_length(all, w->arg0, c), r = hone_vector_length(all, w->arg1, c);
        return n < 0 || r < 0 ? -1 : n > r ? n : r;
    }
    }
    return -1;
}
/* Is number k (0 … r-1) in the vector, counting negatives from r? The place, -1 for no, -2 for not known. */
static int64_t find(const hone_vector *all, int v, const hone_call *c, int64_t k, int64_t r) {
    int64_t n = hone_vector_length(all, v, c);
    bool absent = all[v].kind == HONE_VECTOR_CONTENT ? !c->arg[all[v].operand].present
                  : all[v].kind == HONE_VECTOR_ATTR  ? !all[v].attr
                                                     : false;
    if (absent) return all[v].flag ? r - 1 - k : k;
    if (n < 0) return -2;
    const hone_dim *known = all[v].kind == HONE_VECTOR_CONTENT ? c->arg[all[v].operand].content : NULL;
    for (int64_t q = 0; q < n; q++) {
        hone_dim d = known ? known[q] : hone_vector_at(all, v, c, q).i;
        if (!hone_dim_is_number(d)) return -2;
        if (d == k || (uint64_t)d + (uint64_t)r == (uint64_t)k) return q; /* any number may stand there */
    }
    return -1;
}
/* numpy's rule; a mismatch is found by the check of the operand */
static hone_dim broadcast(hone_dims *t, hone_dim a, hone_dim b) {
    if (a == 1 || a == b) return b;
    if (b == 1) return a;
    if (hone_dim_is_number(a) && hone_dim_is_number(b)) return a > b ? a : b;
    if (hone_dim_is_number(a)) return a; /* not 1: the other must be 1 or equal */
    if (hone_dim_is_number(b)) return b;
    if (a == HONE_DIM_UNKNOWN || b == HONE_DIM_UNKNOWN) return HONE_DIM_UNKNOWN;
    return hone_dim_select(t, hone_dim_eq(t, a, 1), b, a);
}
hone_number hone_vector_at(const hone_vector *all, int v, const hone_call *c, int64_t k) {
    const hone_vector *w = all + v;
    int64_t n = hone_vector_length(all, v, c);
    hone_dims *t = c->dims;
    if (n >= 0 && (k < 0 || k >= n)) return w->real ? broken(w->fallback_f) : whole(w->fallback_i);
    switch (w->kind) {
    case HONE_VECTOR_ATTR:
        return w->real
                   ? broken(w->attr->f ? w->attr->f[k] : (double)w->attr->i[k])
                   : whole(w->attr->i
                               ? hone_dim_from_content(w->attr->i[k])
                               : hone_dim_from_content(
                                     hone_ctype_cast(HONE_I64, HONE_F64, (hone_scalar){.f64 = w->attr->f[k]})
                                         .i64));
    case HONE_VECTOR_CONTENT: {
        const hone_arg *a = c->arg + w->operand;
        if (n < 0 || (w->real ? !a->content_f : !a->content))
            return w->real ? broken(NAN) : whole(HONE_DIM_UNKNOWN);
        return w->real ? broken(a->content_f[k]) : whole(a->content[k]);
    }
    case HONE_VECTOR_DIMS: return whole(n < 0 ? HONE_DIM_UNKNOWN : c->arg[w->operand].dim[k]);
    case HONE_VECTOR_RESHAPE: {
        hone_dim d = hone_vector_at(all, w->arg0, c, k).i;
        int64_t r = hone_vector_length(all, w->arg1, c);
        if (d == 0 && !w->flag)
            return whole(k < r ? hone_vector_at(all, w->arg1, c, k).i : r < 0 ? HONE_DIM_UNKNOWN : 0);
        if (d != -1) return whole(d);
        hone_dim total = 1, others = 1;
        for (int64_t q = 0; q < r; q++) total = hone_dim_mul(t, total, hone_vector_at(all, w->arg1, c, q).i);
        if (r < 0) return whole(HONE_DIM_UNKNOWN);
        for (int64_t q = 0; q < n; q++)
            if (q != k) {
                hone_dim o = hone_vector_at(all, w->arg0, c, q).i;
                if (o == -1) return whole(HONE_DIM_UNKNOWN);
                others = hone_dim_mul(t, others,
                                      o == 0 && !w->flag && q < r ? hone_vector_at(all, w->arg1, c, q).i : o);
            }
        return whole(hone_dim_div(t, total, others));
    }
    case HONE_VECTOR_SQUEEZE: {
        int64_t r = hone_vector_length(all, w->arg1, c);
        bool given = all[w->arg0].kind != HONE_VECTOR_CONTENT || c->arg[all[w->arg0].operand].present;
        for (int64_t q = 0; q < r; q++) {
            hone_dim d = hone_vector_at(all, w->arg1, c, q).i;
            int64_t f = given ? find(all, w->arg0, c, q, r) : d == 1 ? 0 : -1;
            if (f == -2) return whole(HONE_DIM_UNKNOWN);
            if (f < 0 && k-- == 0) return whole(d);
        }
        return whole(HONE_DIM_UNKNOWN);
    }
    case HONE_VECTOR_UNSQUEEZE: {
        int64_t from = 0;
        for (int64_t q = 0; q < n; q++) {
            int64_t f = find(all, w->arg0, c, q, n);
            if (f == -2) return whole(HONE_DIM_UNKNOWN);
            if (q == k) return f >= 0 ? whole(1) : hone_vector_at(all, w->arg1, c, from);
            from += f < 0;
        }
        return whole(HONE_DIM_UNKNOWN);
    }
    case HONE_VECTOR_BROADCAST: {
        int64_t p = hone_vector_length(all, w->arg0, c), q = hone_vector_length(all, w->arg1, c);
        hone_dim a = k - (n - p) >= 0 ? hone_vector_at(all, w->arg0, c, k - (n - p)).i : 1,
                 b = k - (n - q) >= 0 ? hone_vector_at(all, w->arg1, c, k - (n - q)).i : 1;
        return whole(broadcast(t, a, b));
    }
    }
    return whole(HONE_DIM_UNKNOWN);
}

/* ---- slots --------------------------------------------------------------------------------------------- */
enum { OUTSIDE = 127 }; /* no such axis, whatever the rank */
/* The actual axis of a slot that a vector names; -1 missing, -2 not known yet, OUTSIDE. `rank`: how many
   actual dims there are. */
static int named_axis(const hone_solver *s, const hone_call *c, const hone_slot *slot, int rank) {
    int64_t n = hone_vector_length(s->vector, slot->at, c);
    if (n < 0) return -2;
    if (n == 0 && s->vector[slot->at].kind == HONE_VECTOR_ATTR && !s->vector[slot->at].attr &&
        s->vector[slot->at].flag)
        return slot->nth >= 0 ? rank - 1 - slot->nth : -2;
    if (n == 0) return slot->nth >= 0 ? slot->nth : -1 - slot->nth; /* all of them, or none */
    if (slot->nth >= 0) {
        hone_dim d = hone_vector_at(s->vector, slot->at, c, slot->nth).i;
        return !hone_dim_is_number(d) ? -2 : d < -rank || d >= rank ? OUTSIDE : (int)(d < 0 ? d + rank : d);
    }
    int rest = -1 - slot->nth;
    for (int a = 0; a < rank; a++) {
        int64_t f = find(s->vector, slot->at, c, a, rank);
        if (f == -2) return -2;
        if (f < 0 && rest-- == 0) return a;
    }
    return -2;
}
static inline int slot_axis(const hone_solver *s, const hone_call *c, const hone_slot *slot, int rank) {
    return slot->at < 0 ? slot->axis : named_axis(s, c, slot, rank);
}
static inline hone_dim slot_dim(const hone_solver *s, const hone_call *c, int operand, int slot) {
    const hone_arg *a = c->arg + operand;
    int axis = slot_axis(s, c, s->slots[operand].slot + slot, a->rank);
    if (axis == -1) return 1;
    return axis < 0 || axis >= a->rank ? HONE_DIM_UNKNOWN : a->dim[axis];
}

/* ---- expressions --------------------------------------------------------------------------------------- */
enum { MEMO = 512 };
typedef struct {
    const hone_solver *s;
    const hone_call *c;
    const hone_param *p;
    const bool *is_real;
    hone_number value[MEMO]; /* of the first expressions, */
    bool have[MEMO];         /* where it was asked for before: what parameters share is worked out once */
} solving;
static hone_number eval(solving *v, int32_t x);
static hone_number real_fn(hone_fn fn, const hone_number *a, int n) {
    hone_scalar k[3] = {{0}};
    for (int q = 0; q < n; q++) k[q].f64 = as_real(a[q]);
    hone_scalar r = hone_fn_eval(fn, HONE_F64, k);
    return hone_fns[fn].result == 'B' ? whole(r.i32) : broken(r.f64);
}
static hone_number dim_fn(hone_dims *t, hone_fn fn, const hone_number *a, int n) {
    hone_dim p = a[0].i, q = n > 1 ? a[1].i : 0;
    switch (fn) {
    case HONE_FN_add: return whole(hone_dim_add(t, p, q));
    case HONE_FN_sub: return whole(hone_dim_sub(t, p, q));
    case HONE_FN_mul: return whole(hone_dim_mul(t, p, q));
    case HONE_FN_div: return whole(hone_dim_div(t, p, q));
    case HONE_FN_mod: return whole(hone_dim_mod(t, p, q));
    case HONE_FN_min: return whole(hone_dim_min(t, p, q));
    case HONE_FN_max: return whole(hone_dim_max(t, p, q));
    case HONE_FN_neg: return whole(hone_dim_sub(t, 0, p));
    case HONE_FN_abs: return whole(hone_dim_max(t, p, hone_dim_sub(t, 0, p)));
    case HONE_FN_eq: return whole(hone_dim_eq(t, p, q));
    case HONE_FN_ne: return whole(hone_dim_sub(t, 1, hone_dim_eq(t, p, q)));
    case HONE_FN_lt: return whole(hone_dim_lt(t, p, q));
    case HONE_FN_le: return whole(hone_dim_sub(t, 1, hone_dim_lt(t, q, p)));
    case HONE_FN_and: return whole(p == 0 || q == 0 ? 0 : hone_dim_mul(t, p, q));
    case HONE_FN_or: return whole((p == 1 || q == 1) ? 1 : hone_dim_max(t, p, q));
    case HONE_FN_not: return whole(hone_dim_sub(t, 1, p));
    default: break;
    }
    hone_scalar k[3] = {{0}};
    for (int m = 0; m < n; m++) {
        if (!hone_dim_is_number(a[m].i)) return whole(HONE_DIM_UNKNOWN);
        k[m].i64 = a[m].i;
    }
    if (hone_fns[fn].types == 'F') return real_fn(fn, a, n);
    hone_scalar r = hone_fn_eval(fn, HONE_I64, k);
    return whole(hone_fns[fn].result == 'B' ? r.i32 : hone_dim_from_result(r.i64));
}
static hone_number work_out(solving *v, int32_t x) {
    const hone_x *e = v->s->x + x;
    switch (e->kind) {
    case HONE_X_CONST:
        if (e->type == HONE_WEAK_REAL || e->type == HONE_F64) return broken(e->k.f64);
        return e->type == HONE_F32 ? broken((double)e->k.f32)
                                   : whole(e->type == HONE_I32 ? e->k.i32 : e->k.i64);
    case HONE_X_PARAM: return v->is_real[e->a] ? broken(v->p[e->a].f) : whole(v->p[e->a].i);
    case HONE_X_FN: {
        hone_number a[3] = {{0}};
        int n = hone_fns[e->fn].arity;
        bool any = false;
        for (int k = 0; k < n; k++) a[k] = eval(v, k == 0 ? e->a : k == 1 ? e->b : e->c), any |= a[k].real;
        if (any) {
            /* floor(X * 2.0) of a symbolic X: whole factors stay exact */
            if (e->fn == HONE_FN_mul || e->fn == HONE_FN_div) {
                int r = a[0].real ? 0 : 1;
                if (a[r].real && !a[1 - r].real && hone_dim_is_symbolic(a[1 - r].i) &&
                    (e->fn == HONE_FN_mul || r == 1) && a[r].f == floor(a[r].f) && fabs(a[r].f) < 1e9 &&
                    a[r].f > 0)
                    return whole(e->fn == HONE_FN_mul ? hone_dim_mul(v->c->dims, a[1 - r].i, (hone_dim)a[r].f)
                                                      : HONE_DIM_UNKNOWN);
            }
            /* symbolically, NaN is what is not known yet, and so is what it is compared with */
            bool open = false;
            for (int k = 0; k < n; k++) open |= isnan(as_real(a[k]));
            if (open && v->c->dims && hone_fns[e->fn].result == 'B') return whole(HONE_DIM_UNKNOWN);
            return real_fn((hone_fn)e->fn, a, n);
        }
        if (hone_fns[e->fn].types == 'F' && (e->fn == HONE_FN_floor || e->fn == HONE_FN_ceil ||
                                             e->fn == HONE_FN_round || e->fn == HONE_FN_trunc))
            return a[0];
        if (e->type == HONE_WEAK_REAL && e->fn == HONE_FN_div) { /* a real quotient of integers */
            if (hone_dim_is_number(a[0].i) && hone_dim_is_number(a[1].i)) return real_fn(HONE_FN_div, a, n);
            return broken(NAN);
        }
        return dim_fn(v->c->dims, (hone_fn)e->fn, a, n);
    }
    case HONE_X_SELECT: {
        hone_number c = eval(v, e->a);
        if (hone_dim_is_number(c.i)) return eval(v, c.i ? e->b : e->c);
        hone_number p = eval(v, e->b), q = eval(v, e->c);
        if (p.real || q.real) return broken(as_real(p) == as_real(q) ? as_real(p) : NAN);
        return whole(hone_dim_select(v->c->dims, c.i, p.i, q.i));
    }
    case HONE_X_CAST: {
        hone_number a = eval(v, e->a);
        bool to_real = e->type == HONE_WEAK_REAL || e->type == HONE_F64 || e->type == HONE_F32;
        if (to_real || !a.real) return a; /* an integer stays exact until it meets a real one */
        hone_scalar k = {.f64 = a.f};
        return whole(isnan(a.f) ? HONE_DIM_UNKNOWN : hone_ctype_cast(HONE_I64, HONE_F64, k).i64);
    }
    case HONE_XS_SLOT: return whole(slot_dim(v->s, v->c, e->a, e->b));
    case HONE_XS_WIDEST: {
        hone_dim d = 1;
        for (int k = 0; k < e->b; k++)
            d = broadcast(v->c->dims, d,
                          slot_dim(v->s, v->c, v->s->list[e->a + 2 * k], v->s->list[e->a + 2 * k + 1]));
        return whole(d);
    }
    case HONE_XS_EXACT: return whole(hone_dim_div(v->c->dims, eval(v, e->a).i, eval(v, e->b).i));
    case HONE_XS_VECTOR: {
        hone_dim k = eval(v, e->b).i;
        if (!hone_dim_is_number(k)) return v->s->vector[e->a].real ? broken(NAN) : whole(HONE_DIM_UNKNOWN);
        return hone_vector_at(v->s->vector, e->a, v->c, k);
    }
    case HONE_XS_FIND: {
        hone_dim k = eval(v, e->b).i, r = eval(v, e->c).i;
        if (!hone_dim_is_number(k) || !hone_dim_is_number(r)) return whole(HONE_DIM_UNKNOWN);
        int64_t f = find(v->s->vector, e->a, v->c, k, r);
        return whole(f == -2 ? HONE_DIM_UNKNOWN : f);
    }
    default: return whole(HONE_DIM_UNKNOWN);
    }
}
static hone_number eval(solving *v, int32_t x) {
    if (x >= MEMO) return work_out(v, x);
    if (!v->have[x]) v->value[x] = work_out(v, x), v->have[x] = true;
    return v->value[x];
}
static hone_status check_axes(const hone_instance *in, const hone_call *c) { /* each named once, and there */
    const hone_solver *s = in->solver;
    for (int k = 0; k < in->program->n_in; k++) {
        if (s->operand_tensor[k] < 0) continue;
        uint32_t met = 0;
        for (int m = 0; m < s->slots[k].n; m++) {
            const hone_slot *slot = s->slots[k].slot + m;
            if (slot->at < 0) continue;
            int axis = slot_axis(s, c, slot, c->arg[k].rank);
            if (axis == -2) continue;
            if (axis < 0 || axis >= c->arg[k].rank)
                return hone_fail(
                    HONE_BAD_INPUT, "axis %lld is outside of '%s', which has %d dims",
                    (long long)(slot->nth >= 0 ? hone_vector_at(s->vector, slot->at, c, slot->nth).i : axis),
                    in->program->operand[k].name, c->arg[k].rank);
            if (met >> axis & 1)
                return hone_fail(HONE_BAD_INPUT, "axis %d of '%s' is named twice", axis,
                                 in->program->operand[k].name);
            met |= 1u << axis;
        }
    }
    return HONE_OK;
}
hone_status hone_instance_solve(const hone_instance *in, const hone_call *c, hone_param *p) {
    const hone_solver *s = in->solver;
    solving v;
    v.s = s, v.c = c, v.p = p, v.is_real = in->param_real;
    memset(v.have, 0, (size_t)(s->n_x < MEMO ? s->n_x : MEMO));
    HONE_TRY(check_axes(in, c));
    for (int k = 0; k < in->n_param; k++) {
        hone_number n = eval(&v, s->param[k]);
        if (in->param_real[k]) p[k].f = as_real(n);
        else p[k].i = n.real ? (isnan(n.f) ? HONE_DIM_UNKNOWN : (hone_dim)n.f) : n.i;
    }
    for (int k = 0; k < s->n_check; k++) {
        const hone_check *q = s->check + k;
        hone_dim actual = slot_dim(s, c, q->operand, q->slot), want = eval(&v, q->size).i;
        if (!hone_dim_is_number(actual) || !hone_dim_is_number(want) || actual == want ||
            (q->broadcast && actual == 1))
            continue;
        return hone_broken_size(c, q,
                                slot_axis(s, c, s->slots[q->operand].slot + q->slot, c->arg[q->operand].rank),
                                actual, want);
    }
    for (int k = 0; k < in->program->n_in; k++) { /* an operand of rank 0 also takes one element */
        const hone_arg *a = c->arg + k;
        if (s->operand_tensor[k] < 0 || s->slots[k].n || a->rank <= 0) continue;
        for (int d = 0; d < a->rank; d++)
            if (hone_dim_is_number(a->dim[d]) && a->dim[d] != 1)
                return hone_fail(HONE_BAD_INPUT, "input '%s' must have one element; dim %d is %lld",
                                 in->program->operand[k].name, d, (long long)a->dim[d]);
    }
    for (int k = 0; k < s->n_need; k++) {
        hone_number n = eval(&v, s->need[k].x);
        if (!n.real && n.i == 0) return hone_broken_need(c, s->need[k].text);
    }
    for (int k = 0; k < in->n_index; k++) {
        hone_dim d = p[in->index[k].extent].i;
        if (hone_dim_is_number(d) && d < 0)
            return hone_fail(HONE_BAD_INPUT, "a dim of the result of %s would be %lld", in->program->name,
                             (long long)d);
    }
    return HONE_OK;
}
void hone_instance_out_shape(const hone_instance *in, const hone_call *c, const hone_param *p, int k,
                             int *rank, hone_dim *dim) {
    const hone_solver *s = in->solver;
    int operand = in->program->n_in + k, t = s->operand_tensor[operand];
    const hone_slots *slots = s->slots + operand;
    *rank = t < 0 ? -1 : slots->n;
    if (t < 0) return;
    for (int m = 0; m < slots->n; m++) dim[m] = HONE_DIM_UNKNOWN;
    bool lost = false;
    for (int m = 0; m < slots->n; m++) {
        const hone_slot *slot = slots->slot + m;
        int axis = slot_axis(s, c, slot, slots->n);
        if (axis < 0 || axis >= slots->n) {
            lost = true;
            continue;
        }
        hone_dim size = 1;
        for (int q = 0; q < slot->n_part; q++)
            size = hone_dim_mul(c->dims, size, p[in->tensor[t].dim[slot->part0 + q]].i);
        dim[axis] = slot->free_dim ? HONE_DIM_UNKNOWN : size;
    }
    if (lost)
        for (int m = 0; m < slots->n; m++) dim[m] = HONE_DIM_UNKNOWN;
}
bool hone_instance_walks(const hone_instance *in, const hone_call *c, int t, hone_walks *out) {
    const hone_solver *s = in->solver;
    const hone_tensor *w = in->tensor + t;
    const hone_slots *slots = s->slots + w->operand;
    bool known = true;
    for (int d = 0; d < w->rank; d++) out[d] = (hone_walks){.axis = -1};
    for (int m = 0; m < slots->n; m++) {
        const hone_slot *slot = slots->slot + m;
        int rank = w->role == HONE_ROLE_OUT ? slots->n : c->arg[w->operand].rank,
            axis = slot_axis(s, c, slot, rank);
        known &= axis >= -1 && axis < rank;
        for (int q = 0; q < slot->n_part; q++)
            out[slot->part0 + q] = (hone_walks){.axis = (int8_t)(axis < 0 ? -1 : axis),
                                                .broadcast = slot->broadcast,
                                                .splits = q + 1 < slot->n_part};
    }
    return known;
}
void hone_walks_strides(const hone_walks *walks, const hone_tensor *w, const hone_param *p,
                        const int64_t *dim, const int64_t *stride, int64_t *out) {
    for (int d = w->rank - 1; d >= 0; d--) {
        int axis = walks[d].axis;
        if (walks[d].splits && d + 1 < w->rank) out[d] = out[d + 1] * p[w->dim[d + 1]].i;
        else out[d] = axis < 0 || (walks[d].broadcast && dim[axis] == 1) ? 0 : stride[axis];
    }
}
void hone_instance_strides(const hone_instance *in, const hone_call *c, const hone_param *p, int t,
                           const int64_t *dim, const int64_t *stride, int64_t *out) {
    hone_walks walks[HONE_MAX_RANK] = {{0}};
    hone_instance_walks(in, c, t, walks);
    hone_walks_strides(walks, in->tensor + t, p, dim, stride, out);
}

/* ---- conditions ---------------------------------------------------------------------------------------- */
bool hone_conditions_add(hone_arena *a, hone_conditions *all, hone_dim d) {
    if (!hone_dim_is_symbolic(d)) return hone_dim_is_number(d) && d != 0;
    for (int k = 0; k < all->n; k++)
        if (all->at[k] == d) return true;
    return hone_push_in(a, all, d);
}
bool hone_instance_conditions(hone_arena *a, const hone_instance *in, const hone_call *c, const hone_param *p,
                              hone_conditions *all) {
    const hone_solver *s = in->solver;
    hone_dims *t = c->dims;
    solving v;
    v.s = s, v.c = c, v.p = p, v.is_real = in->param_real;
    memset(v.have, 0, (size_t)(s->n_x < MEMO ? s->n_x : MEMO));
    for (int k = 0; k < in->n_param; k++)
        if (in->param_real[k] ? isnan(p[k].f) : p[k].i == HONE_DIM_UNKNOWN) return false;
    for (int k = 0; k < s->n_check; k++) {
        const hone_check *q = s->check + k;
        hone_dim actual = slot_dim(s, c, q->operand, q->slot),
                 same = hone_dim_eq(t, actual, eval(&v, q->size).i);
        if (q->broadcast) same = hone_dim_select(t, hone_dim_eq(t, actual, 1), 1, same);
        if (!hone_conditions_add(a, all, same)) return false;
    }
    for (int k = 0; k < in->program->n_in; k++) {
        const hone_arg *x = c->arg + k;
        if (s->operand_tensor[k] < 0 || s->slots[k].n) continue;
        for (int d = 0; d < x->rank; d++)
            if (!hone_conditions_add(a, all, hone_dim_eq(t, x->dim[d], 1))) return false;
    }
    for (int k = 0; k < s->n_need; k++) {
        hone_number n = eval(&v, s->need[k].x);
        if (n.real ? isnan(n.f) : !hone_conditions_add(a, all, n.i)) return false;
    }
    for (int k = 0; k < in->n_index; k++)
        if (!hone_conditions_add(a, all, hone_dim_sub(t, 1, hone_dim_lt(t, p[in->index[k].extent].i, 0))))
            return false;
    return true;
}
