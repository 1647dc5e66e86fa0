/* SPDX-License-Identifier: Apache-2.0
   epilogue_match: see epilogue.h. The expression is taken apart from its root: [[times] activation [+ a
   number or a row] | narrowing] [clamp] [+ residual] [+ bias] accumulator, in this order of operations;
   any other order would round differently and is left to tile code. */
#include "device/cpu/epilogue_match.h"

#include <math.h>
#include <string.h>

typedef hone_epilogue_matching matching;

static const hone_x *at(const matching *m, int32_t x) { return hone_epilogue_x(m, x); }
static bool is_fn(const matching *m, int32_t x, hone_fn fn) {
    return at(m, x)->kind == HONE_X_FN && at(m, x)->fn == fn;
}
static bool is_sum(const matching *m, int32_t x) {
    return at(m, x)->kind == HONE_X_LOAD && at(m, x)->a == m->acc;
}
static bool comes_in(matching *m, int32_t x);
static bool is_acc(matching *m, int32_t x) {
    return !m->r ? is_sum(m, x) : m->read >= 0 ? x == m->read : comes_in(m, x);
}

/* Address of a load over M and the batch, from an affine function; N must not move it. */
static bool placed(matching *m, const hone_affine *f, bool along_n, hone_row_number *out) {
    int64_t step = 1;
    for (int k = m->slots->n_domain - 1; k >= m->first_n; k--) {
        if (m->slots->extent[k] > 1 && f->k[k] != (along_n ? step : 0)) return false;
        step *= m->slots->extent[k];
    }
    out->c = f->c;
    out->at_m = hone_affine_table(m->arena, m->slots, m->group_m, m->nm, f);
    out->same = !along_n;
    for (int k = 0; k < m->nb; k++) out->by_batch[k] = f->k[m->group_b[k]], out->same &= !out->by_batch[k];
    for (int k = 0; k < m->nm; k++) out->same &= m->slots->extent[m->group_m[k]] == 1 || !f->k[m->group_m[k]];
    return out->at_m != NULL;
}
bool hone_epilogue_load(matching *m, int32_t x, bool along_n, hone_row_number *out) {
    const hone_instance *in = m->c->instance;
    const hone_x *e = at(m, x);
    if (e->kind != HONE_X_LOAD || e->a == m->acc) return false;
    hone_affine all;
    if (!hone_affine_inside(&m->c->sized, m->slots, x, &all)) return false;
    out->tensor = e->a, out->dtype = in->tensor[e->a].dtype;
    return placed(m, &all, along_n, out);
}
/* One a column, whatever the row. */
static bool column_number(matching *m, int32_t x, hone_dtype dtype, hone_row_number *out) {
    if (!m->columns || !hone_epilogue_load(m, x, true, out) || out->dtype != dtype) return false;
    hone_affine f;
    if (!hone_affine_inside(&m->c->sized, m->slots, x, &f)) return false;
    for (int k = 0; k < m->nm; k++)
        if (m->slots->extent[m->group_m[k]] > 1 && f.k[m->group_m[k]]) return false;
    return true;
}
/* A number that stays the same along a row: a constant, or a load of f32 (or of 8 bits, widened). */
bool hone_epilogue_row_number(matching *m, int32_t x, hone_row_number *out) {
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
const hone_row_number hone_epilogue_none = {.tensor = -1, .k = -0.0f, .same = true};

static bool place_out(matching *m, hone_cpu_epilogue *r) {
    const hone_instance *in = m->c->instance;
    const hone_stage *s = in->stage + m->stage;
    hone_affine out = {0};
    for (int k = 0; k < in->tensor[s->tensor].rank; k++) {
        hone_affine sub = {0};
        int64_t lo, hi;
        if (!s->identity || s->sub0 >= 0) {
            if (!hone_affine_expr(&m->c->sized, m->slots, in->list[s->sub0 + k], &sub)) return false;
        } else
            for (int q = 0; q < m->slots->n_domain; q++) sub.k[q] = m->slots->dim[q] == k;
        hone_affine_range(m->slots, &sub, &lo, &hi);
        if (lo < 0 || hi >= m->c->param[in->tensor[s->tensor].dim[k]].i) return false;
        out.c += sub.c * m->c->stride[s->tensor][k];
        for (int q = 0; q < m->slots->n; q++) out.k[q] += sub.k[q] * m->c->stride[s->tensor][k];
    }
    r->out.tensor = s->tensor, r->out.dtype = in->tensor[s->tensor].dtype;
    return placed(m, &out, true, &r->out);
}
/* round(f32([bias +] sum) * (a scale * a scale / a scale)) [+ zero], narrowed to 8 bits */
static bool whole(matching *m, hone_cpu_epilogue *r, int32_t x) {
    hone_dtype to = r->out.dtype;
    r->requantize = to == HONE_DTYPE_U8   ? r->kernel->requantize_u8
                    : to == HONE_DTYPE_I8 ? r->kernel->requantize_i8
                                          : NULL;
    if (!r->requantize) return false;
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
    r->by_row = m->columns && zero && r->zero.same && r->scale.same && r->scale_y.same &&
                (r->scale_n || r->scale_b.same) && (r->bias_n || r->bias.same);
    if ((r->bias_n || r->scale_n) && !r->by_row) return false;
    return is_sum(m, x);
}
static hone_cpu_epilogue *fresh(matching *m, hone_dtype to) {
    hone_cpu_epilogue *r = HONE_NEW(m->arena, hone_cpu_epilogue);
    if (!r) return NULL;
    r->kernel = hone_epilogue_best(), r->n_batch = m->nb;
    r->run = to == HONE_DTYPE_F32 ? r->kernel->f32 : to == HONE_DTYPE_U8 ? r->kernel->u8 : r->kernel->i8;
    r->bias = r->residual = r->scale = r->zero = r->lo = r->hi = r->back_zero = r->back_scale = r->each =
        hone_epilogue_none;
    r->source = r->more = (hone_read_rows){hone_epilogue_none, hone_epilogue_none, hone_epilogue_none};
    r->lo.k = -INFINITY, r->hi.k = INFINITY, r->scale.k = 1;
    r->low = (float)hone_dtypes[to].lowest, r->high = (float)hone_dtypes[to].highest, r->out.dtype = to;
    return r;
}
/* f32(q [- zero]) * scale: which q */
static bool read_back(matching *m, int32_t x, hone_read_rows *out, int32_t *q) {
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
static bool read_rows(matching *m, int32_t x, hone_read_rows *out) { /* of a tensor */
    int32_t q;
    return read_back(m, x, out, &q) && hone_epilogue_load(m, q, true, &out->at) &&
           (out->at.dtype == HONE_DTYPE_U8 || out->at.dtype == HONE_DTYPE_I8);
}
/* i32(a sum of integers as 8 bits): what makes these; NULL: it is something else. */
static hone_cpu_epilogue *narrowed(matching *m, int32_t q) {
    if (at(m, q)->kind != HONE_X_CAST || at(m, q)->type != HONE_I32) return NULL;
    q = at(m, q)->a;
    if (!is_fn(m, q, HONE_FN_min) || !is_fn(m, at(m, q)->a, HONE_FN_max)) return NULL;
    const hone_x *high = at(m, at(m, q)->b), *low = at(m, at(m, at(m, q)->a)->b);
    if (high->kind != HONE_X_CONST || low->kind != HONE_X_CONST) return NULL;
    const hone_dtype dtype = low->k.f32 == 0 ? HONE_DTYPE_U8 : HONE_DTYPE_I8;
    if (low->k.f32 != (float)hone_dtypes[dtype].lowest || high->k.f32 != (float)hone_dtypes[dtype].highest)
        return NULL;
    hone_cpu_epilogue *inner = fresh(m, dtype);
    return inner && whole(m, inner, at(m, at(m, q)->a)->a) ? inner : NULL;
}
/* Is x what comes in: of an element-wise stage, rows of floats or of 8 bits; of a sum of integers, its bytes
   read back? */
static bool comes_in(matching *m, int32_t x) {
    hone_cpu_epilogue *r = m->r;
    const hone_x *e = at(m, x);
    int32_t q;
    if (m->acc < 0) {
        r->reads = e->kind != HONE_X_LOAD;
        if (!(r->reads
                  ? read_rows(m, x, &r->source)
                  : hone_epilogue_load(m, x, true, &r->source.at) && r->source.at.dtype == HONE_DTYPE_F32))
            return false;
        m->read = x;
        return true;
    }
    hone_cpu_epilogue *inner = read_back(m, x, &r->source, &q) ? narrowed(m, q) : NULL;
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
    m->narrow_signed = m->narrow && m->narrow->out.dtype == HONE_DTYPE_I8;
    return m->narrow != NULL;
}
static hone_cpu_epilogue *looked_up(matching *m, hone_dtype to) {
    const hone_table *t =
        hone_table_make(m->arena, m->c, m->slots, m->stage, is_narrowed, m, &m->narrow_signed);
    hone_cpu_epilogue *r = !t || (to == HONE_DTYPE_F32 && !m->narrow->by_row) ? NULL
                           : to == HONE_DTYPE_F32                             ? fresh(m, to)
                                                  : hone_arena_copy(m->arena, m->narrow, sizeof *r);
    if (!r || !place_out(m, r)) return NULL;
    r->table = t;
    if (to == HONE_DTYPE_F32)
        r->inner = m->narrow, r->reads = true, r->source.at.dtype = m->narrow->out.dtype;
    else r->out.dtype = m->narrow->out.dtype;
    return r;
}
static bool steady(const hone_cpu_epilogue *r) {
    const hone_row_number *all[] = {&r->bias,         &r->lo,        &r->hi,         &r->scale,
                                    &r->zero,         &r->back_zero, &r->back_scale, &r->source.zero,
                                    &r->source.scale, &r->more.zero, &r->more.scale};
    bool same = true;
    for (size_t k = 0; k < sizeof all / sizeof *all; k++) same &= all[k]->same;
    return same;
}
/* Rows of m, n elements each, follow on in the result and in the residual. */
static bool one_piece(const matching *m, const hone_cpu_epilogue *r) {
    int64_t rows = 1, n = 1;
    for (int k = 0; k < m->nm; k++) rows *= m->slots->extent[m->group_m[k]];
    for (int k = m->first_n; k < m->slots->n_domain; k++) n *= m->slots->extent[k];
    for (int64_t i = 0; i < rows; i++) {
        if (r->out.at_m[i] != r->out.at_m[0] + i * n) return false;
        if (r->residual.tensor >= 0 && r->residual.at_m[i] != r->residual.at_m[0] + i * n) return false;
    }
    return true;
}
/* round(v / scale) [+ zero], */
static bool divided(matching *m, hone_cpu_epilogue *r, int32_t *v) {
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
static bool limited(matching *m, hone_cpu_epilogue *r, int32_t *v) {
    const hone_cpu_call *c = m->c;
    const hone_instance *in = c->instance;
    int32_t x = *v;
    bool low = false, high = false;
    while ((!low && is_fn(m, x, HONE_FN_max)) || (!high && is_fn(m, x, HONE_FN_min))) {
        const hone_x *e = at(m, x);
        bool max = e->fn == HONE_FN_max, right = true;
        hone_row_number *limit = max ? &r->lo : &r->hi;
        if (!hone_epilogue_row_number(m, e->b, limit)) right = false;
        if (!right && !hone_epilogue_row_number(m, e->a, limit)) return false;
        *(max ? &low : &high) = true, x = right ? e->a : e->b;
    }
    /* in which order two limits apply does not matter as long as they are in order themselves */
    if (low && high &&
        (r->lo.tensor >= 0 || r->hi.tensor >= 0
             ? !(c->constant && (r->lo.tensor < 0 || c->constant[r->lo.tensor]) &&
                 (r->hi.tensor < 0 || c->constant[r->hi.tensor]))
             : r->lo.k > r->hi.k))
        return false;
    if (low && high && (r->lo.tensor >= 0 || r->hi.tensor >= 0)) { /* constants: look at them */
        float bound[2];
        const hone_row_number *n[2] = {&r->lo, &r->hi};
        for (int k = 0; k < 2; k++) {
            bound[k] = n[k]->k;
            if (n[k]->tensor < 0) continue;
            const float *at = hone_cpu_constant(c, n[k]->tensor);
            if (in->tensor[n[k]->tensor].rank || n[k]->dtype != HONE_DTYPE_F32 || !at)
                return false; /* only single numbers are told apart when step templates are kept */
            bound[k] = at[n[k]->c];
        }
        if (bound[0] > bound[1]) return false;
    }
    *v = x;
    return true;
}
/* [narrowing, perhaps read back at once | activation] [clamp] [+ residual] [+ bias] what comes in */
static bool simple(matching *m, hone_cpu_epilogue *r, int32_t x) {
    const hone_dtype to = r->out.dtype;
    bool narrows = to != HONE_DTYPE_F32;
    if (!narrows && m->r && is_acc(m, x)) return true;
    if (!narrows && m->then) x = hone_epilogue_and_then(m, x, r);
    if (!narrows && (!m->r || m->acc < 0) && !r->then) x = hone_epilogue_activation(m, x, r);
    /* quantized, and read back at once: f32(i32(clamp(…)) - zero) * scale */
    if (!narrows && is_fn(m, x, HONE_FN_mul)) {
        const hone_x *e = at(m, x), *f = at(m, e->a);
        hone_row_number scale, zero = hone_epilogue_none;
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
            narrows = true, x = low->a, r->run = r->kernel->back;
            if (r->low < -1e5f || r->high > 1e5f) return false;
        }
    }
    if (narrows && !divided(m, r, &x)) return false;
    if (!limited(m, r, &x)) return false;
    if (is_fn(m, x, HONE_FN_add) && !is_acc(m, x)) { /* (acc + bias) + residual */
        const hone_x *e = at(m, x);
        hone_row_number more;
        int32_t inner = e->a, other = e->b;
        if (!is_fn(m, inner, HONE_FN_add) && !is_acc(m, inner)) inner = e->b, other = e->a;
        if (is_acc(m, inner) && !hone_epilogue_row_number(m, other, &more) && (!m->r || m->acc < 0) &&
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
static bool behind(matching *m, hone_cpu_epilogue *r, int32_t x) {
    if (!divided(m, r, &x)) return false;
    for (int side = 0; side < 2 && is_fn(m, x, HONE_FN_mul) && r->each.tensor < 0; side++) {
        const hone_x *e = at(m, x);
        if (!column_number(m, side ? e->a : e->b, HONE_DTYPE_F32, &r->each)) r->each = hone_epilogue_none;
        else x = side ? e->b : e->a;
    }
    hone_cpu_epilogue *before = fresh(m, HONE_DTYPE_F32);
    if (!before) return false;
    int32_t of = hone_epilogue_and_then(m, x, before);
    if (of != x && (before->then != hone_activate_best()->then || before->later.tensor >= 0)) return false;
    if (of == x) of = hone_epilogue_activation(m, x, before);
    hone_cpu_epilogue *sum = of != x ? fresh(m, HONE_DTYPE_F32) : NULL;
    const bool then = m->then;
    m->then = false; /* what is left is a sum, within limits */
    const bool is = sum && simple(m, sum, of) && !sum->activate;
    m->then = then;
    if (!is) return false;
    before->bias = sum->bias, before->bias_n = sum->bias_n, before->residual = sum->residual,
    before->lo = sum->lo, before->hi = sum->hi, r->before = before;
    return before->run == sum->run;
}
/* ---- sums of integers that go on as floats ------------------------------------------------------------- */
static bool each_or_all(matching *m, int32_t x, hone_row_number *out, bool *by_column) {
    *by_column = column_number(m, x, HONE_DTYPE_F32, out);
    return *by_column ||
           (hone_epilogue_row_number(m, x, out) && (out->tensor < 0 || out->dtype == HONE_DTYPE_F32));
}
/* f32(sum) * a scale [+ a bias] */
static bool based(matching *m, hone_cpu_epilogue *r, int32_t x) {
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
static bool acted(matching *m, hone_cpu_epilogue *r, int32_t x) {
    const hone_cpu_epilogue saved = *r;
    int32_t of = hone_epilogue_and_then(m, x, r);
    if (of != x && r->then == hone_activate_best()->then && (r->later.tensor < 0 || r->residual.tensor < 0) &&
        based(m, r, of)) {
        if (r->later.tensor >= 0) r->residual = r->later;
        return true;
    }
    *r = saved, of = hone_epilogue_activation(m, x, r);
    if (based(m, r, of)) return true;
    *r = saved;
    return false;
}
static bool with_residual(matching *m, hone_cpu_epilogue *r, int32_t x) {
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
static bool by_columns(matching *m, hone_cpu_epilogue *r, int32_t x) {
    const hone_cpu_epilogue saved = *r;
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
static bool onward(matching *m, hone_cpu_epilogue *r, int32_t x) {
    if (r->out.dtype != HONE_DTYPE_F32 &&
        (!divided(m, r, &x) || (r->zero.tensor >= 0 ? r->zero.dtype == HONE_DTYPE_F32 : r->zero.k != 0) ||
         !r->zero.same || !r->scale.same))
        return false;
    const hone_cpu_epilogue saved = *r;
    if (!with_residual(m, r, x)) {
        *r = saved;
        if (!by_columns(m, r, x)) {
            *r = saved;
            if (!limited(m, r, &x) || !r->lo.same || !r->hi.same || !with_residual(m, r, x)) return false;
        }
    }
    r->finish = r->kernel->finish;
    r->alike = (r->scale_n || r->scale_b.same) && (r->bias_n || r->bias.same);
    return true;
}
static hone_cpu_epilogue *found(matching *m) {
    const hone_instance *in = m->c->instance;
    const hone_stage *s = in->stage + m->stage;
    const hone_dtype to = in->tensor[s->tensor].dtype;
    const bool integers = m->acc >= 0 && in->tensor[m->acc].dtype == HONE_DTYPE_I32;
    const bool bytes = to == HONE_DTYPE_U8 || to == HONE_DTYPE_I8;
    /* out of a table of the model's own */
    if (integers && bytes && at(m, s->value)->type != HONE_F32) return looked_up(m, to);
    if (to != HONE_DTYPE_F32 && !(s->saturate && (to == HONE_DTYPE_U8 || to == HONE_DTYPE_I8))) return NULL;
    if (at(m, s->value)->type != HONE_F32) return NULL;
    hone_cpu_epilogue *r = fresh(m, to);
    if (!r) return NULL;
    if (integers && whole(m, r, s->value)) return place_out(m, r) ? r : NULL;
    if (integers && to != HONE_DTYPE_F32) {
        hone_cpu_epilogue *look = looked_up(m, to);
        if (look) return look;
    }
    if (integers) {
        if (!(r = fresh(m, to))) return NULL;
        if (onward(m, r, s->value)) return place_out(m, r) ? r : NULL;
    }
    if (integers || m->acc < 0) m->r = r = fresh(m, to);
    else if (to != HONE_DTYPE_F32) {
        if (simple(m, r, s->value)) return place_out(m, r) ? r : NULL;
        return (r = fresh(m, to)) && behind(m, r, s->value) && place_out(m, r) ? r : NULL;
    }
    if (!r || !simple(m, r, s->value) || !place_out(m, r))
        return integers && to == HONE_DTYPE_F32 ? looked_up(m, to) : NULL;
    if (m->acc < 0 && r->bias_n) r->bias.same = true; /* it is read as a row */
    r->steady = steady(r);
    if (m->r) r->one_piece = r->steady && one_piece(m, r);
    if (m->acc >= 0) return r;
    /* an element-wise stage on floats alone is tile code's, unless it is an activation; rows that are not all
       alike are for activations only */
    if (!r->activate && (m->first_n || (to == HONE_DTYPE_F32 && !r->reads))) return NULL;
    return (!m->first_n && !r->steady) || (r->bias_n && r->residual.tensor >= 0) ? NULL : r;
}
hone_cpu_epilogue *hone_epilogue_match(hone_arena *a, const hone_cpu_call *c, const hone_slots_of *slots,
                                       int stage, int acc, const int *group_m, int nm, const int *group_b,
                                       int nb, int first_n, bool columns, bool then) {
    matching m = {.arena = a,
                  .c = c,
                  .slots = slots,
                  .stage = stage,
                  .acc = acc,
                  .first_n = first_n,
                  .group_m = group_m,
                  .nm = nm,
                  .group_b = group_b,
                  .nb = nb,
                  .columns = columns,
                  .then = then,
                  .patience = 1000,
                  .read = -1};
    return found(&m);
}
hone_cpu_epilogue *hone_epilogue_elements(hone_arena *a, const hone_cpu_call *c, const hone_slots_of *slots,
                                          int stage, int first_n) {
    int rows[HONE_MAX_SLOTS];
    for (int k = 0; k < first_n; k++) rows[k] = k;
    matching m = {.arena = a,
                  .c = c,
                  .slots = slots,
                  .stage = stage,
                  .acc = -1,
                  .first_n = first_n,
                  .group_m = rows,
                  .nm = first_n,
                  .columns = first_n > 0,
                  .patience = 1000,
                  .read = -1};
    return found(&m);
}
