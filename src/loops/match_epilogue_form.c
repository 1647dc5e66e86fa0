/* SPDX-License-Identifier: Apache-2.0
   match_epilogue_form: see match_epilogue.h. The expression is taken apart from its root: [[times] activation
   [+ a number or a row] | narrowing] [clamp] [+ residual] [+ bias] accumulator, in this order of operations;
   any other order would round differently and is of no form. */
#include "loops/match_epilogue_form.h"

#include <math.h>
#include <string.h>

typedef hone_epilogue_matching matching;

static const hone_x *at(const matching *m, int32_t x) { return hone_epilogue_x(m, x); }
static bool is_fn(const matching *m, int32_t x, hone_fn fn) {
    return at(m, x)->kind == HONE_X_FN && at(m, x)->fn == fn;
}
static bool is_sum(const matching *m, int32_t x) {
    return at(m, x)->kind == HONE_X_LOAD && at(m, x)->a == m->q->acc;
}
static bool comes_in(matching *m, int32_t x);
static bool is_acc(matching *m, int32_t x) {
    return !m->r ? is_sum(m, x) : m->read >= 0 ? x == m->read : comes_in(m, x);
}

/* An address that moves along N as its elements lie (along_n), or not at all. */
static bool placed(const matching *m, const hone_affine *f, bool along_n, hone_match_number *out) {
    const hone_slots_of *w = m->q->slots;
    int64_t step = 1;
    for (int k = w->n_domain - 1; k >= m->q->first_n; k--) {
        if (w->extent[k] > 1 && f->k[k] != (along_n ? step : 0)) return false;
        step *= w->extent[k];
    }
    out->at = *f, out->same = !along_n;
    for (int k = 0; k < m->q->n_batch; k++) out->same &= !f->k[m->q->group_b[k]];
    for (int k = 0; k < m->q->n_m; k++)
        out->same &= w->extent[m->q->group_m[k]] == 1 || !f->k[m->q->group_m[k]];
    return true;
}
bool hone_epilogue_load(matching *m, int32_t x, bool along_n, hone_match_number *out) {
    const hone_instance *in = m->q->of->instance;
    const hone_x *e = at(m, x);
    if (e->kind != HONE_X_LOAD || e->a == m->q->acc) return false;
    hone_affine all;
    if (!hone_affine_inside(m->q->of, m->q->slots, x, &all)) return false;
    out->tensor = e->a, out->dtype = in->tensor[e->a].dtype;
    return placed(m, &all, along_n, out);
}
/* One a column, whatever the row. */
static bool column_number(matching *m, int32_t x, hone_dtype dtype, hone_match_number *out) {
    if (!m->q->columns || !hone_epilogue_load(m, x, true, out) || out->dtype != dtype) return false;
    hone_affine f;
    if (!hone_affine_inside(m->q->of, m->q->slots, x, &f)) return false;
    for (int k = 0; k < m->q->n_m; k++)
        if (m->q->slots->extent[m->q->group_m[k]] > 1 && f.k[m->q->group_m[k]]) return false;
    return true;
}
/* A number that stays the same along a row: a constant, or a load of f32 (or of 8 bits, widened). */
bool hone_epilogue_row_number(matching *m, int32_t x, hone_match_number *out) {
    const hone_x *e = at(m, x);
    out->tensor = -1;
    if (e->kind == HONE_X_CONST && e->type == HONE_F32) {
        out->k = e->k.f32, out->same = true;
        return true;
    }
    if (e->kind == HONE_X_CAST && e->type == HONE_F32 && at(m, e->a)->kind == HONE_X_LOAD) x = e->a;
    if (!hone_epilogue_load(m, x, false, out)) return false;
    return out->dtype == HONE_DTYPE_F32 || out->dtype == HONE_DTYPE_U8 || out->dtype == HONE_DTYPE_I8;
}
const hone_match_number hone_epilogue_none = {.tensor = -1, .k = -0.0f, .same = true};

static bool place_out(matching *m, hone_match_epilogue *r) {
    const hone_instance *in = m->q->of->instance;
    const hone_stage *s = in->stage + m->q->stage;
    hone_affine out = {0};
    for (int k = 0; k < in->tensor[s->tensor].rank; k++) {
        hone_affine sub = {0};
        int64_t lo, hi;
        if (!s->identity || s->sub0 >= 0) {
            if (!hone_affine_expr(m->q->of, m->q->slots, in->list[s->sub0 + k], &sub)) return false;
        } else
            for (int q = 0; q < m->q->slots->n_domain; q++) sub.k[q] = m->q->slots->dim[q] == k;
        hone_affine_range(m->q->slots, &sub, &lo, &hi);
        if (lo < 0 || hi >= m->q->of->param[in->tensor[s->tensor].dim[k]].i) return false;
        out.c += sub.c * m->q->of->stride[s->tensor][k];
        for (int q = 0; q < m->q->slots->n; q++) out.k[q] += sub.k[q] * m->q->of->stride[s->tensor][k];
    }
    r->out.tensor = s->tensor, r->out.dtype = in->tensor[s->tensor].dtype;
    return placed(m, &out, true, &r->out);
}
/* round(f32([bias +] sum) * (a scale * a scale / a scale)) [+ zero], narrowed to 8 bits */
static bool whole(matching *m, hone_match_epilogue *r, int32_t x) {
    hone_dtype to = r->out.dtype;
    if (to != HONE_DTYPE_U8 && to != HONE_DTYPE_I8) return false;
    r->form = HONE_EPILOGUE_REQUANTIZE;
    r->zero.k = 0;
    if (is_fn(m, x, HONE_FN_add)) {
        if (!hone_epilogue_row_number(m, at(m, x)->b, &r->zero)) return false;
        x = at(m, x)->a;
    }
    if (!is_fn(m, x, HONE_FN_round) || !is_fn(m, at(m, x)->a, HONE_FN_mul)) return false;
    const hone_x *times = at(m, at(m, x)->a), *over = at(m, times->b);
    if (over->kind != HONE_X_FN || over->fn != HONE_FN_div || !is_fn(m, over->a, HONE_FN_mul)) return false;
    if (!hone_epilogue_row_number(m, at(m, over->a)->a, &r->scale) ||
        !hone_epilogue_row_number(m, over->b, &r->scale_y))
        return false;
    if (!hone_epilogue_row_number(m, at(m, over->a)->b, &r->scale_b) &&
        !(r->scale_n = column_number(m, at(m, over->a)->b, HONE_DTYPE_F32, &r->scale_b)))
        return false;
    if (at(m, times->a)->kind != HONE_X_CAST || at(m, times->a)->type != HONE_F32) return false;
    x = at(m, times->a)->a;
    if (is_fn(m, x, HONE_FN_add)) {
        const hone_x *e = at(m, x);
        int32_t bias = is_sum(m, e->a) ? e->b : e->a;
        x = is_sum(m, e->a) ? e->a : e->b;
        if ((!hone_epilogue_load(m, bias, false, &r->bias) || r->bias.dtype != HONE_DTYPE_I32) &&
            !(r->bias_n = column_number(m, bias, HONE_DTYPE_I32, &r->bias)))
            return false;
    } else r->bias.k = 0;
    const bool zero = r->zero.tensor >= 0 ? r->zero.dtype != HONE_DTYPE_F32 : r->zero.k == 0;
    r->by_row = m->q->columns && zero && r->zero.same && r->scale.same && r->scale_y.same &&
                (r->scale_n || r->scale_b.same) && (r->bias_n || r->bias.same);
    if ((r->bias_n || r->scale_n) && !r->by_row) return false;
    return is_sum(m, x);
}
static hone_match_epilogue *fresh(matching *m, hone_dtype to) {
    hone_match_epilogue *r = HONE_NEW(m->arena, hone_match_epilogue);
    if (!r) return NULL;
    r->activation = HONE_ACTIVATE_COUNT;
    hone_match_number *const all[] = {&r->bias, &r->residual,  &r->scale,      &r->zero,    &r->lo,
                                      &r->hi,   &r->back_zero, &r->back_scale, &r->each,    &r->times,
                                      &r->plus, &r->later,     &r->scale_b,    &r->scale_y, &r->out};
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) *all[k] = hone_epilogue_none;
    r->source = r->more = (hone_match_bytes){hone_epilogue_none, hone_epilogue_none, hone_epilogue_none};
    r->lo.k = -INFINITY, r->hi.k = INFINITY, r->scale.k = 1;
    r->low = (float)hone_dtypes[to].lowest, r->high = (float)hone_dtypes[to].highest, r->out.dtype = to;
    return r;
}
/* f32(q [- zero]) * scale: which q */
static bool read_back(matching *m, int32_t x, hone_match_bytes *out, int32_t *q) {
    if (!is_fn(m, x, HONE_FN_mul)) return false;
    const hone_x *e = at(m, x), *f = at(m, e->a);
    if (f->kind != HONE_X_CAST || f->type != HONE_F32 || !hone_epilogue_row_number(m, e->b, &out->scale) ||
        (out->scale.tensor >= 0 && out->scale.dtype != HONE_DTYPE_F32))
        return false;
    *q = f->a, out->zero = hone_epilogue_none, out->zero.k = 0;
    if (is_fn(m, *q, HONE_FN_sub)) {
        if (!hone_epilogue_load(m, at(m, *q)->b, false, &out->zero) ||
            (out->zero.dtype != HONE_DTYPE_U8 && out->zero.dtype != HONE_DTYPE_I8))
            return false;
        *q = at(m, *q)->a;
    }
    return true;
}
static bool read_rows(matching *m, int32_t x, hone_match_bytes *out) { /* of a tensor */
    int32_t q;
    return read_back(m, x, out, &q) && hone_epilogue_load(m, q, true, &out->at) &&
           (out->at.dtype == HONE_DTYPE_U8 || out->at.dtype == HONE_DTYPE_I8);
}
/* i32(a sum of integers as 8 bits): what makes these; NULL: it is something else. */
static hone_match_epilogue *narrowed(matching *m, int32_t q) {
    if (at(m, q)->kind != HONE_X_CAST || at(m, q)->type != HONE_I32) return NULL;
    q = at(m, q)->a;
    if (!is_fn(m, q, HONE_FN_min) || !is_fn(m, at(m, q)->a, HONE_FN_max)) return NULL;
    const hone_x *high = at(m, at(m, q)->b), *low = at(m, at(m, at(m, q)->a)->b);
    if (high->kind != HONE_X_CONST || low->kind != HONE_X_CONST) return NULL;
    const hone_dtype dtype = low->k.f32 == 0 ? HONE_DTYPE_U8 : HONE_DTYPE_I8;
    if (low->k.f32 != (float)hone_dtypes[dtype].lowest || high->k.f32 != (float)hone_dtypes[dtype].highest)
        return NULL;
    hone_match_epilogue *inner = fresh(m, dtype);
    return inner && whole(m, inner, at(m, at(m, q)->a)->a) ? inner : NULL;
}
/* Is x what comes in: of an element-wise stage, rows of floats or of 8 bits; of a sum of integers, its bytes
   read back? */
static bool comes_in(matching *m, int32_t x) {
    hone_match_epilogue *r = m->r;
    const hone_x *e = at(m, x);
    int32_t q;
    if (m->q->acc < 0) {
        r->reads = e->kind != HONE_X_LOAD;
        if (!(r->reads
                  ? read_rows(m, x, &r->source)
                  : hone_epilogue_load(m, x, true, &r->source.at) && r->source.at.dtype == HONE_DTYPE_F32))
            return false;
        m->read = x;
        return true;
    }
    hone_match_epilogue *inner = read_back(m, x, &r->source, &q) ? narrowed(m, q) : NULL;
    if (!inner || !inner->by_row) return false;
    r->inner = inner, r->reads = true, r->source.at.dtype = inner->out.dtype, m->read = x;
    return true;
}
/* Of a sum of integers: all that is made of its bytes and of constants is a look-up. */
static bool is_narrowed(void *of, int32_t x) {
    matching *m = of;
    if (m->narrow)
        return x == m->narrows || (at(m, x)->kind == HONE_X_CAST && hone_epilogue_same(m, x, m->narrows));
    if (at(m, x)->kind != HONE_X_CAST) return false;
    m->narrow = narrowed(m, x), m->narrows = x;
    return m->narrow != NULL;
}
static hone_match_epilogue *looked_up(matching *m, hone_dtype to) {
    const hone_epilogue_query *q = m->q;
    const bool *given =
        hone_match_table_of(m->arena, q->of, q->slots, q->stage, q->constant, q->constants, is_narrowed, m);
    hone_match_epilogue *r = !given || (to == HONE_DTYPE_F32 && !m->narrow->by_row) ? NULL
                             : to == HONE_DTYPE_F32                                 ? fresh(m, to)
                                                    : hone_arena_copy(m->arena, m->narrow, sizeof *r);
    if (!r || !place_out(m, r)) return NULL;
    r->given = given;
    if (to == HONE_DTYPE_F32)
        r->inner = m->narrow, r->reads = true, r->source.at.dtype = m->narrow->out.dtype;
    else r->out.dtype = m->narrow->out.dtype;
    return r;
}
static bool steady(const hone_match_epilogue *r) {
    const hone_match_number *all[] = {&r->bias,         &r->lo,        &r->hi,         &r->scale,
                                      &r->zero,         &r->back_zero, &r->back_scale, &r->source.zero,
                                      &r->source.scale, &r->more.zero, &r->more.scale};
    bool same = true;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) same &= all[k]->same;
    return same;
}
/* Rows of m, n elements each, follow on in the result and in the residual. */
static bool one_piece(const matching *m, const hone_match_epilogue *r) {
    const hone_slots_of *w = m->q->slots;
    int64_t step = 1;
    for (int k = m->q->first_n; k < w->n_domain; k++) step *= w->extent[k];
    for (int k = m->q->n_m - 1; k >= 0; k--) {
        const int slot = m->q->group_m[k];
        if (w->extent[slot] == 1) continue;
        if (r->out.at.k[slot] != step || (r->residual.tensor >= 0 && r->residual.at.k[slot] != step))
            return false;
        step *= w->extent[slot];
    }
    return true;
}
/* round(v / scale) [+ zero], */
static bool divided(matching *m, hone_match_epilogue *r, int32_t *v) {
    int32_t x = *v;
    if (is_fn(m, x, HONE_FN_add)) {
        if (!hone_epilogue_row_number(m, at(m, x)->b, &r->zero)) return false;
        x = at(m, x)->a;
    }
    if (!is_fn(m, x, HONE_FN_round) || !is_fn(m, at(m, x)->a, HONE_FN_div)) return false;
    x = at(m, x)->a;
    if (!hone_epilogue_row_number(m, at(m, x)->b, &r->scale)) return false;
    *v = at(m, x)->a;
    return true;
}
/* and a v within limits, where there are any: which v */
static bool limited(matching *m, hone_match_epilogue *r, int32_t *v) {
    const hone_instance *in = m->q->of->instance;
    const bool *constant = m->q->of->constant;
    int32_t x = *v;
    bool low = false, high = false;
    while ((!low && is_fn(m, x, HONE_FN_max)) || (!high && is_fn(m, x, HONE_FN_min))) {
        const hone_x *e = at(m, x);
        bool max = e->fn == HONE_FN_max, right = true;
        hone_match_number *limit = max ? &r->lo : &r->hi;
        if (!hone_epilogue_row_number(m, e->b, limit)) right = false;
        if (!right && !hone_epilogue_row_number(m, e->a, limit)) return false;
        *(max ? &low : &high) = true, x = right ? e->a : e->b;
    }
    /* in which order two limits apply does not matter as long as they are in order themselves */
    if (low && high &&
        (r->lo.tensor >= 0 || r->hi.tensor >= 0
             ? !(constant && (r->lo.tensor < 0 || constant[r->lo.tensor]) &&
                 (r->hi.tensor < 0 || constant[r->hi.tensor]))
             : r->lo.k > r->hi.k))
        return false;
    if (low && high && (r->lo.tensor >= 0 || r->hi.tensor >= 0)) { /* constants: look at them */
        float bound[2];
        const hone_match_number *n[2] = {&r->lo, &r->hi};
        for (int k = 0; k < 2; k++) {
            bound[k] = n[k]->k;
            if (n[k]->tensor < 0) continue;
            const float *at = m->q->constant(m->q->constants, n[k]->tensor);
            if (in->tensor[n[k]->tensor].rank || n[k]->dtype != HONE_DTYPE_F32 || !at)
                return false; /* single numbers only */
            bound[k] = at[n[k]->at.c];
        }
        if (bound[0] > bound[1]) return false;
    }
    *v = x;
    return true;
}
/* [narrowing, perhaps read back at once | activation] [clamp] [+ residual] [+ bias] what comes in */
static bool simple(matching *m, hone_match_epilogue *r, int32_t x) {
    const hone_dtype to = r->out.dtype;
    bool narrows = to != HONE_DTYPE_F32;
    if (!narrows && m->r && is_acc(m, x)) return true;
    if (!narrows && m->then) x = hone_epilogue_and_then(m, x, r);
    if (!narrows && (!m->r || m->q->acc < 0) && !r->then) x = hone_epilogue_activation(m, x, r);
    /* quantized, and read back at once: f32(i32(clamp(…)) - zero) * scale */
    if (!narrows && is_fn(m, x, HONE_FN_mul)) {
        const hone_x *e = at(m, x), *f = at(m, e->a);
        hone_match_number scale, zero = hone_epilogue_none;
        zero.k = 0;
        int32_t q = -1;
        if (f->kind == HONE_X_CAST && f->type == HONE_F32 && hone_epilogue_row_number(m, e->b, &scale))
            q = f->a;
        if (q >= 0 && is_fn(m, q, HONE_FN_sub)) {
            if (!hone_epilogue_load(m, at(m, q)->b, false, &zero) ||
                (zero.dtype != HONE_DTYPE_U8 && zero.dtype != HONE_DTYPE_I8))
                return false;
            q = at(m, q)->a;
        }
        if (q >= 0 && at(m, q)->kind == HONE_X_CAST && at(m, q)->type == HONE_I32 &&
            is_fn(m, at(m, q)->a, HONE_FN_min)) {
            const hone_x *high = at(m, at(m, q)->a), *low = at(m, high->a);
            if (!is_fn(m, high->a, HONE_FN_max) || at(m, high->b)->kind != HONE_X_CONST ||
                at(m, low->b)->kind != HONE_X_CONST)
                return false;
            r->low = at(m, low->b)->k.f32, r->high = at(m, high->b)->k.f32, r->back_scale = scale,
            r->back_zero = zero;
            narrows = true, x = low->a, r->form = HONE_EPILOGUE_BACK;
            if (r->low < -1e5f || r->high > 1e5f) return false;
        }
    }
    if (narrows && !divided(m, r, &x)) return false;
    if (!limited(m, r, &x)) return false;
    if (is_fn(m, x, HONE_FN_add) && !is_acc(m, x)) { /* (acc + bias) + residual */
        const hone_x *e = at(m, x);
        hone_match_number more;
        int32_t inner = e->a, other = e->b;
        if (!is_fn(m, inner, HONE_FN_add) && !is_acc(m, inner)) inner = e->b, other = e->a;
        if (is_acc(m, inner) && !hone_epilogue_row_number(m, other, &more) && (!m->r || m->q->acc < 0) &&
            column_number(m, other, HONE_DTYPE_F32, &more)) {
            r->bias = more, r->bias_n = true, x = inner;
        } else if (!hone_epilogue_row_number(m, other, &more)) {
            if (!hone_epilogue_load(m, other, true, &r->residual) || r->residual.dtype != HONE_DTYPE_F32) {
                if (!m->r || !read_rows(m, other, &r->more)) return false;
                r->residual = r->more.at, r->reads_more = true;
            }
            x = inner;
            if (is_fn(m, x, HONE_FN_add)) {
                e = at(m, x);
                other = is_acc(m, e->a) ? e->b : e->a, inner = is_acc(m, e->a) ? e->a : e->b;
                if (!hone_epilogue_row_number(m, other, &r->bias) &&
                    !(r->bias_n = !m->r && column_number(m, other, HONE_DTYPE_F32, &r->bias)))
                    return false;
                x = inner;
            }
        } else r->bias = more, x = inner;
    }
    return is_acc(m, x) && !(r->then && !(r->lo.same && r->hi.same));
}
/* Bytes of an activation [, a factor and a number] [, a factor of each column] of a sum of floats */
static bool behind(matching *m, hone_match_epilogue *r, int32_t x) {
    if (!divided(m, r, &x)) return false;
    for (int side = 0; side < 2 && is_fn(m, x, HONE_FN_mul) && r->each.tensor < 0; side++) {
        const hone_x *e = at(m, x);
        if (!column_number(m, side ? e->a : e->b, HONE_DTYPE_F32, &r->each)) r->each = hone_epilogue_none;
        else x = side ? e->b : e->a;
    }
    hone_match_epilogue *before = fresh(m, HONE_DTYPE_F32);
    if (!before) return false;
    int32_t of = hone_epilogue_and_then(m, x, before);
    if (of != x && (before->then != HONE_THEN_LINEAR || before->later.tensor >= 0)) return false;
    if (of == x) of = hone_epilogue_activation(m, x, before);
    hone_match_epilogue *sum = of != x ? fresh(m, HONE_DTYPE_F32) : NULL;
    const bool then = m->then;
    m->then = false; /* what is left is a sum, within limits */
    const bool is = sum && simple(m, sum, of) && sum->activation == HONE_ACTIVATE_COUNT;
    m->then = then;
    if (!is) return false;
    before->bias = sum->bias, before->bias_n = sum->bias_n, before->residual = sum->residual,
    before->lo = sum->lo, before->hi = sum->hi, r->before = before;
    r->alike = steady(r) && (before->bias_n || before->bias.same) && before->lo.same && before->hi.same &&
               (!before->then || (before->times.same && before->plus.same));
    return sum->form == HONE_EPILOGUE_STORED;
}
/* ---- sums of integers that go on as floats ------------------------------------------------------------- */
static bool each_or_all(matching *m, int32_t x, hone_match_number *out, bool *by_column) {
    *by_column = column_number(m, x, HONE_DTYPE_F32, out);
    return *by_column ||
           (hone_epilogue_row_number(m, x, out) && (out->tensor < 0 || out->dtype == HONE_DTYPE_F32));
}
/* f32(sum) * a scale [+ a bias] */
static bool based(matching *m, hone_match_epilogue *r, int32_t x) {
    const hone_x *e = at(m, x);
    const bool sum = is_fn(m, x, HONE_FN_add);
    for (int side = 0; side < (sum ? 2 : 1); side++) {
        const int32_t inner = !sum ? x : side ? e->b : e->a, bias = side ? e->a : e->b;
        if (!is_fn(m, inner, HONE_FN_mul)) continue;
        for (int right = 0; right < 2; right++) {
            const int32_t scale = right ? at(m, inner)->a : at(m, inner)->b;
            const hone_x *acc = at(m, right ? at(m, inner)->b : at(m, inner)->a);
            if (acc->kind == HONE_X_CAST && acc->type == HONE_F32 && is_sum(m, acc->a) &&
                each_or_all(m, scale, &r->scale_b, &r->scale_n))
                return !sum || each_or_all(m, bias, &r->bias, &r->bias_n);
        }
    }
    return false;
}
/* That, or [times] an activation of it [+ a number, or a row] */
static bool acted(matching *m, hone_match_epilogue *r, int32_t x) {
    const hone_match_epilogue saved = *r;
    int32_t of = hone_epilogue_and_then(m, x, r);
    if (of != x && r->then == HONE_THEN_LINEAR && (r->later.tensor < 0 || r->residual.tensor < 0) &&
        based(m, r, of)) {
        if (r->later.tensor >= 0) r->residual = r->later;
        return true;
    }
    *r = saved, of = hone_epilogue_activation(m, x, r);
    if (based(m, r, of)) return true;
    *r = saved;
    return false;
}
static bool with_residual(matching *m, hone_match_epilogue *r, int32_t x) {
    const hone_x *e = at(m, x);
    if (acted(m, r, x)) return true;
    for (int side = 0; side < 2 && is_fn(m, x, HONE_FN_add); side++) {
        const int32_t more = side ? e->a : e->b;
        r->reads_more = read_rows(m, more, &r->more) && r->more.zero.same && r->more.scale.same;
        if (r->reads_more) r->residual = r->more.at;
        else if (!hone_epilogue_load(m, more, true, &r->residual) || r->residual.dtype != HONE_DTYPE_F32)
            continue;
        if (acted(m, r, side ? e->b : e->a)) return true;
    }
    r->residual = hone_epilogue_none, r->reads_more = false;
    return false;
}
/* That times a number of each column: what the next layer's channels are divided by (quant/repair.c) */
static bool by_columns(matching *m, hone_match_epilogue *r, int32_t x) {
    const hone_match_epilogue saved = *r;
    for (int side = 0; side < 2 && is_fn(m, x, HONE_FN_mul); side++) {
        const hone_x *e = at(m, x);
        if (column_number(m, side ? e->a : e->b, HONE_DTYPE_F32, &r->each) &&
            with_residual(m, r, side ? e->b : e->a))
            return true;
        *r = saved;
    }
    return false;
}
/* [narrowing] [clamp] [times a column's] [+ residual] that */
static bool onward(matching *m, hone_match_epilogue *r, int32_t x) {
    if (r->out.dtype != HONE_DTYPE_F32 &&
        (!divided(m, r, &x) || (r->zero.tensor >= 0 ? r->zero.dtype == HONE_DTYPE_F32 : r->zero.k != 0) ||
         !r->zero.same || !r->scale.same))
        return false;
    const hone_match_epilogue saved = *r;
    if (!with_residual(m, r, x)) {
        *r = saved;
        if (!by_columns(m, r, x)) {
            *r = saved;
            if (!limited(m, r, &x) || !r->lo.same || !r->hi.same || !with_residual(m, r, x)) return false;
        }
    }
    r->form = HONE_EPILOGUE_FINISH;
    r->alike = (r->scale_n || r->scale_b.same) && (r->bias_n || r->bias.same);
    return true;
}
static hone_match_epilogue *found(matching *m) {
    const hone_instance *in = m->q->of->instance;
    const hone_stage *s = in->stage + m->q->stage;
    const hone_dtype to = in->tensor[s->tensor].dtype;
    const bool integers = m->q->acc >= 0 && in->tensor[m->q->acc].dtype == HONE_DTYPE_I32;
    const bool bytes = to == HONE_DTYPE_U8 || to == HONE_DTYPE_I8;
    /* out of a table of the model's own */
    if (integers && bytes && at(m, s->value)->type != HONE_F32) return looked_up(m, to);
    if (to != HONE_DTYPE_F32 && !(s->saturate && (to == HONE_DTYPE_U8 || to == HONE_DTYPE_I8))) return NULL;
    if (at(m, s->value)->type != HONE_F32) return NULL;
    hone_match_epilogue *r = fresh(m, to);
    if (!r) return NULL;
    if (integers && whole(m, r, s->value)) return place_out(m, r) ? r : NULL;
    if (integers && to != HONE_DTYPE_F32) {
        hone_match_epilogue *look = looked_up(m, to);
        if (look) return look;
    }
    if (integers) {
        if (!(r = fresh(m, to))) return NULL;
        if (onward(m, r, s->value)) return place_out(m, r) ? r : NULL;
    }
    if (integers || m->q->acc < 0) m->r = r = fresh(m, to);
    else if (to != HONE_DTYPE_F32) {
        if (simple(m, r, s->value)) return place_out(m, r) ? r : NULL;
        return (r = fresh(m, to)) && behind(m, r, s->value) && place_out(m, r) ? r : NULL;
    }
    if (!r || !simple(m, r, s->value) || !place_out(m, r))
        return integers && to == HONE_DTYPE_F32 ? looked_up(m, to) : NULL;
    if (m->q->acc < 0 && r->bias_n) r->bias.same = true; /* it is read as a row */
    r->steady = steady(r);
    if (m->r) r->one_piece = r->steady && one_piece(m, r);
    if (m->q->acc >= 0) return r;
    /* an element-wise stage on floats alone is tile code's, unless it is an activation; rows that are not all
       alike are for activations only */
    if (r->activation == HONE_ACTIVATE_COUNT && (m->q->first_n || (to == HONE_DTYPE_F32 && !r->reads)))
        return NULL;
    return (!m->q->first_n && !r->steady) || (r->bias_n && r->residual.tensor >= 0) ? NULL : r;
}
const hone_match_epilogue *hone_match_epilogue_of(hone_arena *a, const hone_epilogue_query *q) {
    matching m = {.arena = a, .q = q, .then = q->then, .patience = 1000, .read = -1};
    return found(&m);
}
const hone_match_epilogue *hone_match_epilogue_behind(hone_arena *a, const hone_sized *c,
                                                      const hone_match_product *m, int stage, bool then,
                                                      hone_constant_seen *constant, const void *constants) {
    const hone_instance *in = c->instance;
    const int acc = in->stage[stage].tensor;
    int rows[HONE_MAX_SLOTS], batch[HONE_MAX_BATCH];
    hone_slots_of own = m->slots;
    own.n = own.n_domain;
    hone_epilogue_query q = {.of = c,
                             .slots = &own,
                             .stage = stage + 1,
                             .acc = acc,
                             .group_m = rows,
                             .group_b = batch,
                             .first_n = own.n_domain,
                             .columns = true,
                             .then = then,
                             .constant = constant,
                             .constants = constants};
    if (m->stages != 2) return NULL;
    for (int k = 0; k < own.n; k++) own.id[k] = in->list[in->stage[stage + 1].index0 + own.dim[k]];
    while (q.first_n > 0 && (own.extent[q.first_n - 1] == 1 || m->kind[q.first_n - 1] == 'n')) q.first_n--;
    for (int k = 0; k < q.first_n; k++) {
        if (own.extent[k] == 1) continue;
        if (m->kind[k] == 'n' || (m->kind[k] == 'b' && q.n_batch == HONE_MAX_BATCH)) return NULL;
        if (m->kind[k] == 'b') batch[q.n_batch++] = k;
        else rows[q.n_m++] = k;
    }
    return hone_match_epilogue_of(a, &q);
}
