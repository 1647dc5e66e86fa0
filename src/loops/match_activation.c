/* SPDX-License-Identifier: Apache-2.0
   match_activation: which activation an expression is, and of what; and what may follow one. */
#include <string.h>

#include "loops/match_epilogue_form.h"

typedef hone_epilogue_matching matching;

static const hone_x *at(const matching *m, int32_t x) { return hone_epilogue_x(m, x); }
static bool is_fn(const matching *m, int32_t x, hone_fn fn) {
    return at(m, x)->kind == HONE_X_FN && at(m, x)->fn == fn;
}
/* The same value: the same expression, or one written twice, as far as some patience goes: what is shared
   inside is seen again and again. */
bool hone_epilogue_same(matching *m, int32_t x, int32_t y) {
    const hone_x *p = at(m, x), *q = at(m, y);
    if (x == y) return true;
    if (m->patience-- <= 0) return false;
    if (p->kind != q->kind || p->type != q->type || p->fn != q->fn || p->flat != q->flat) return false;
    switch ((hone_xkind)p->kind) {
    case HONE_X_CONST: return !memcmp(&p->k, &q->k, sizeof p->k);
    case HONE_X_INDEX:
    case HONE_X_PARAM: return p->a == q->a;
    case HONE_X_LOAD:
        if (p->a != q->a || p->c >= 0 || q->c >= 0) return false;
        for (int k = 0; k < (p->flat ? 1 : m->q->of->instance->tensor[p->a].rank); k++)
            if (!hone_epilogue_same(m, m->q->of->instance->list[p->b + k],
                                    m->q->of->instance->list[q->b + k]))
                return false;
        return true;
    case HONE_X_FN:
        if (!hone_epilogue_same(m, p->a, q->a)) return false;
        if (hone_fns[p->fn].arity > 1 && !hone_epilogue_same(m, p->b, q->b)) return false;
        return hone_fns[p->fn].arity < 3 || hone_epilogue_same(m, p->c, q->c);
    case HONE_X_CAST:
    case HONE_X_ROUND: return hone_epilogue_same(m, p->a, q->a);
    default: return false;
    }
}
static bool constant(const matching *m, int32_t x, float *k) {
    const hone_x *e = at(m, x);
    if (e->kind == HONE_X_CONST && e->type == HONE_F32) return *k = e->k.f32, true;
    if (e->kind != HONE_X_CAST || e->type != HONE_F32 || at(m, e->a)->kind != HONE_X_PARAM) return false;
    const int q = at(m, e->a)->a;
    return *k = m->q->of->instance->param_real[q] ? (float)m->q->of->param[q].f : (float)m->q->of->param[q].i,
           true;
}
/* One side of fn a constant; the other side is left. */
static bool by_constant(const matching *m, int32_t x, hone_fn fn, float *k, int32_t *rest) {
    const hone_x *e = at(m, x);
    if (!is_fn(m, x, fn)) return false;
    if (constant(m, e->b, k)) return *rest = e->a, true;
    return constant(m, e->a, k) && (*rest = e->b, true);
}
static bool with_constant(const matching *m, int32_t x, hone_fn fn, float k, int32_t *rest) {
    float have;
    return by_constant(m, x, fn, &have, rest) && have == k;
}
/* clamp(alpha * u + beta, 0, 1) */
static bool is_hard(matching *m, int32_t x, hone_match_epilogue *r, int32_t *u) {
    int32_t y;
    if (!with_constant(m, x, HONE_FN_max, 0, &y) || !with_constant(m, y, HONE_FN_min, 1, &y)) return false;
    if (!by_constant(m, y, HONE_FN_add, &r->beta, &y)) return false;
    if (by_constant(m, y, HONE_FN_mul, &r->alpha, u)) return true;
    if (!is_fn(m, y, HONE_FN_div) || !constant(m, at(m, y)->b, &r->alpha) || r->alpha == 0) return false;
    r->alpha = 1 / r->alpha, *u = at(m, y)->a;
    return true;
}
/* u times v, where v knows u: which activation of u */
static hone_activation gated(matching *m, int32_t u, int32_t v, hone_match_epilogue *r, int32_t *of) {
    int32_t w, y, z;
    float k;
    *of = u;
    if (is_fn(m, v, HONE_FN_sigmoid)) {
        w = at(m, v)->a, r->alpha = 1;
        if (hone_epilogue_same(m, w, u) ||
            (by_constant(m, w, HONE_FN_mul, &r->alpha, &w) && hone_epilogue_same(m, w, u)))
            return HONE_ACTIVATE_silu;
    }
    if (is_hard(m, v, r, &w) && hone_epilogue_same(m, w, u)) return HONE_ACTIVATE_hard_swish;
    /* 0.5 u (1 + erf(u / sqrt 2)), 0.5 u (1 + tanh(a (u + b u u u))) */
    if (!with_constant(m, u, HONE_FN_mul, 0.5f, &u) || !with_constant(m, v, HONE_FN_add, 1, &w))
        return HONE_ACTIVATE_COUNT;
    *of = u;
    if (is_fn(m, w, HONE_FN_erf) && with_constant(m, at(m, w)->a, HONE_FN_mul, 0x1.6a09e6p-1f, &y) &&
        hone_epilogue_same(m, y, u))
        return HONE_ACTIVATE_gelu;
    if (!is_fn(m, w, HONE_FN_tanh) || !by_constant(m, at(m, w)->a, HONE_FN_mul, &k, &y) ||
        !is_fn(m, y, HONE_FN_add) || !hone_epilogue_same(m, at(m, y)->a, u))
        return HONE_ACTIVATE_COUNT;
    y = at(m, y)->b;
    for (int q = 0; q < 2; q++, y = z) {
        if (!is_fn(m, y, HONE_FN_mul) || !hone_epilogue_same(m, at(m, y)->b, u)) return HONE_ACTIVATE_COUNT;
        z = at(m, y)->a;
    }
    if (!by_constant(m, y, HONE_FN_mul, &r->beta, &z) || !hone_epilogue_same(m, z, u))
        return HONE_ACTIVATE_COUNT;
    r->alpha = 2 * k, r->beta *= 2 * k;
    return HONE_ACTIVATE_gelu_tanh;
}
/* u < 0 ? alpha * u : u */
static bool is_leaky(matching *m, int32_t x, hone_match_epilogue *r, int32_t *u) {
    const hone_x *e = at(m, x);
    float zero;
    int32_t v;
    if (e->kind != HONE_X_SELECT || !is_fn(m, e->a, HONE_FN_lt) || !constant(m, at(m, e->a)->b, &zero) ||
        zero != 0)
        return false;
    *u = e->c;
    return hone_epilogue_same(m, at(m, e->a)->a, *u) && by_constant(m, e->b, HONE_FN_mul, &r->alpha, &v) &&
           hone_epilogue_same(m, v, *u);
}
/* What x is an activation of, and which; x itself: of hone_epilogue_none. */
int32_t hone_epilogue_activation(matching *m, int32_t x, hone_match_epilogue *r) {
    hone_activation which = HONE_ACTIVATE_COUNT;
    int32_t of = x;
    if (is_fn(m, x, HONE_FN_sigmoid)) which = HONE_ACTIVATE_sigmoid, of = at(m, x)->a;
    else if (is_fn(m, x, HONE_FN_tanh)) which = HONE_ACTIVATE_tanh, of = at(m, x)->a;
    else if (is_fn(m, x, HONE_FN_mul)) {
        which = gated(m, at(m, x)->a, at(m, x)->b, r, &of);
        if (which == HONE_ACTIVATE_COUNT) which = gated(m, at(m, x)->b, at(m, x)->a, r, &of);
    } else if (is_hard(m, x, r, &of)) which = HONE_ACTIVATE_hard_sigmoid;
    else if (is_leaky(m, x, r, &of)) which = HONE_ACTIVATE_leaky;
    if (which == HONE_ACTIVATE_COUNT) return x;
    r->activation = which;
    return of;
}

/* [times *] an activation [+ plus, or a row], an activation times a row, or an activation that a number is
   the least of: what that is of; x itself where it is no such thing. */
int32_t hone_epilogue_and_then(matching *m, int32_t x, hone_match_epilogue *r) {
    const hone_x *e = at(m, x);
    for (int side = 0; side < 2 && is_fn(m, x, HONE_FN_max); side++) {
        const int32_t y = side ? e->b : e->a, of = hone_epilogue_activation(m, y, r);
        r->times = r->later = hone_epilogue_none, r->times.k = 1;
        if (of != y && hone_epilogue_row_number(m, side ? e->a : e->b, &r->plus) && r->plus.same) {
            r->then = HONE_THEN_FLOOR;
            return of;
        }
        r->activation = HONE_ACTIVATE_COUNT;
    }
    for (int side = 0; side < 2 && is_fn(m, x, HONE_FN_mul); side++) {
        const int32_t y = side ? e->b : e->a, of = hone_epilogue_activation(m, y, r);
        r->times = r->plus = r->later = hone_epilogue_none, r->times.k = 1;
        if (of != y && hone_epilogue_load(m, side ? e->a : e->b, true, &r->later) &&
            r->later.dtype == HONE_DTYPE_F32) {
            r->then = HONE_THEN_GATE;
            return of;
        }
        r->activation = HONE_ACTIVATE_COUNT;
    }
    const bool sum = is_fn(m, x, HONE_FN_add);
    for (int side = 0; side < (sum ? 2 : 1); side++) {
        int32_t y = !sum ? x : side ? e->b : e->a, of;
        r->times = r->plus = r->later = hone_epilogue_none, r->times.k = 1;
        if (sum) {
            const int32_t other = side ? e->a : e->b;
            if (!(hone_epilogue_row_number(m, other, &r->plus) && r->plus.same)) {
                r->plus = hone_epilogue_none;
                if (!hone_epilogue_load(m, other, true, &r->later) || r->later.dtype != HONE_DTYPE_F32)
                    continue;
            }
        }
        if ((of = hone_epilogue_activation(m, y, r)) == y && is_fn(m, y, HONE_FN_mul))
            for (int right = 0; right < 2 && of == y; right++) {
                const int32_t inner = right ? at(m, y)->b : at(m, y)->a;
                if (!hone_epilogue_row_number(m, right ? at(m, y)->a : at(m, y)->b, &r->times) ||
                    !r->times.same)
                    continue;
                const int32_t found = hone_epilogue_activation(m, inner, r);
                if (found != inner) of = found;
            }
        if (of == y || (!sum && r->times.tensor < 0 && r->times.k == 1)) continue;
        r->then = HONE_THEN_LINEAR;
        return of;
    }
    r->times = r->plus = r->later = hone_epilogue_none, r->activation = HONE_ACTIVATE_COUNT;
    return x;
}