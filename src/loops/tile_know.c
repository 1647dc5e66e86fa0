/* SPDX-License-Identifier: Apache-2.0
   tile_know: constants, affine functions and ranges of a stage's expressions (tile_know.h). One pass up the
   pool, one pass down. */
#include "loops/tile_know.h"

#include <string.h>

typedef struct {
    int64_t lo, hi;
} range;
static const range anything = {INT64_MIN, INT64_MAX}, bit = {0, 1};

static bool is_int(int type) { return type == HONE_I32 || type == HONE_I64; }

/* A range that the type cannot hold has wrapped: nothing is known. */
static range fit(range r, int type) {
    if (type == HONE_I32 && (r.lo < INT32_MIN || r.hi > INT32_MAX)) return (range){INT32_MIN, INT32_MAX};
    return r;
}
static range spanning(__int128 a, __int128 b, __int128 c, __int128 d) {
    __int128 lo = a, hi = a;
    const __int128 v[3] = {b, c, d};
    for (int k = 0; k < 3; k++) {
        if (v[k] < lo) lo = v[k];
        if (v[k] > hi) hi = v[k];
    }
    return lo < INT64_MIN || hi > INT64_MAX ? anything : (range){(int64_t)lo, (int64_t)hi};
}
static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); } /* b > 0 */

static range fn_range(hone_fn fn, range a, range b) {
    const __int128 al = a.lo, ah = a.hi, bl = b.lo, bh = b.hi;
    switch (fn) {
    case HONE_FN_add: return spanning(al + bl, ah + bh, al + bl, ah + bh);
    case HONE_FN_sub: return spanning(al - bh, ah - bl, al - bh, ah - bl);
    case HONE_FN_mul: return spanning(al * bl, al * bh, ah * bl, ah * bh);
    case HONE_FN_neg: return spanning(-al, -ah, -al, -ah);
    case HONE_FN_min: return (range){a.lo < b.lo ? a.lo : b.lo, a.hi < b.hi ? a.hi : b.hi};
    case HONE_FN_max: return (range){a.lo > b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
    case HONE_FN_abs:
        if (a.lo == INT64_MIN) return anything;
        return a.lo >= 0 ? a : a.hi <= 0 ? (range){-a.hi, -a.lo} : (range){0, -a.lo > a.hi ? -a.lo : a.hi};
    case HONE_FN_sign: return (range){-1, 1};
    case HONE_FN_quot:
        if (a.lo < 0) return anything;
        /* fall through */
    case HONE_FN_div:
        return b.lo == b.hi && b.lo > 0 ? (range){floor_div(a.lo, b.lo), floor_div(a.hi, b.lo)} : anything;
    case HONE_FN_rem:
        if (a.lo < 0) return anything;
        /* fall through */
    case HONE_FN_mod: return b.lo > 0 ? (range){0, b.hi - 1} : anything; /* by 0 it is 0 */
    case HONE_FN_band:
        return b.lo >= 0 && b.lo == b.hi   ? (range){0, b.lo}
               : a.lo >= 0 && a.lo == a.hi ? (range){0, a.lo}
                                           : anything;
    case HONE_FN_shr:
        return a.lo >= 0 && b.lo == b.hi && b.lo >= 0 && b.lo < 32 ? (range){a.lo >> b.lo, a.hi >> b.lo}
                                                                   : anything;
    case HONE_FN_lt:
    case HONE_FN_le:
    case HONE_FN_eq:
    case HONE_FN_ne:
    case HONE_FN_and:
    case HONE_FN_or:
    case HONE_FN_not: return bit;
    default: return anything;
    }
}

/* A comparison of integers that their ranges decide: 0 or 1, else -1. */
static int decided(hone_fn fn, range a, range b) {
    switch (fn) {
    case HONE_FN_lt: return a.hi < b.lo ? 1 : a.lo >= b.hi ? 0 : -1;
    case HONE_FN_le: return a.hi <= b.lo ? 1 : a.lo > b.hi ? 0 : -1;
    case HONE_FN_eq: return a.hi < b.lo || a.lo > b.hi ? 0 : -1;
    case HONE_FN_ne: return a.hi < b.lo || a.lo > b.hi ? 1 : -1;
    default: return -1;
    }
}

static range type_range(hone_dtype t) {
    const hone_dtype_row *row = hone_dtypes + t;
    if (row->kind == HONE_KIND_BOOL) return bit;
    if ((row->kind == HONE_KIND_INT || row->kind == HONE_KIND_UINT) && row->bits <= 32)
        return (range){(int64_t)row->lowest, (int64_t)row->highest};
    return row->ctype == HONE_I32 ? (range){INT32_MIN, INT32_MAX} : anything;
}

bool hone_know_add(const hone_knows *w, int64_t *d, const hone_know *s, int64_t f) {
    int64_t t;
    if (s->kind == HONE_KNOW_CONST)
        return !__builtin_mul_overflow(s->k.i64, f, &t) &&
               !__builtin_add_overflow(d[w->n_slot], t, &d[w->n_slot]);
    for (int k = 0; k <= w->n_slot; k++)
        if (__builtin_mul_overflow(s->affine[k], f, &t) || __builtin_add_overflow(d[k], t, &d[k]))
            return false;
    return true;
}

static void set_const(hone_know *o, int type, hone_scalar k) {
    o->kind = HONE_KNOW_CONST;
    o->k = k;
    if (is_int(type)) o->lo = o->hi = type == HONE_I32 ? k.i32 : k.i64;
}
static void set_alias(const hone_knows *w, hone_know *o, int32_t to) { *o = w->x[w->x[to].is]; }

/* An affine function's range is exact, unless a number in it does not fit: then it is no affine function for
   us. */
static bool affine_range(const hone_knows *w, hone_know *o) {
    __int128 lo = o->affine[w->n_slot], hi = lo;
    bool constant = true;
    for (int k = 0; k < w->n_slot; k++) {
        const __int128 far = (__int128)o->affine[k] * (w->extent[k] > 0 ? w->extent[k] - 1 : 0);
        if (far < 0) lo += far;
        else hi += far;
        constant = constant && !o->affine[k];
    }
    if (lo < INT64_MIN / 4 || hi > INT64_MAX / 4) return false;
    o->lo = (int64_t)lo, o->hi = (int64_t)hi;
    o->kind = HONE_KNOW_AFFINE;
    if (constant) set_const(o, HONE_I64, (hone_scalar){.i64 = (int64_t)lo});
    return true;
}

static bool affine_fn(const hone_knows *w, hone_know *o, const hone_x *x, const hone_know *a,
                      const hone_know *b) {
    const bool sum = x->fn == HONE_FN_add || x->fn == HONE_FN_sub,
               scaled = x->fn == HONE_FN_mul || x->fn == HONE_FN_neg;
    if (x->type != HONE_I64 || (!sum && !scaled) || a->kind == HONE_KNOW_VALUE || b->kind == HONE_KNOW_VALUE)
        return false;
    if (x->fn == HONE_FN_mul && a->kind != HONE_KNOW_CONST && b->kind != HONE_KNOW_CONST) return false;
    int64_t *d = HONE_NEW_N(w->arena, int64_t, w->n_slot + 1);
    if (!d) return false;
    bool ok;
    if (sum) ok = hone_know_add(w, d, a, 1) && hone_know_add(w, d, b, x->fn == HONE_FN_add ? 1 : -1);
    else if (x->fn == HONE_FN_neg) ok = hone_know_add(w, d, a, -1);
    else if (a->kind == HONE_KNOW_CONST) ok = hone_know_add(w, d, b, a->k.i64);
    else ok = hone_know_add(w, d, a, b->k.i64);
    o->affine = d;
    return ok && affine_range(w, o);
}

static void know_fn(const hone_knows *w, hone_know *o, const hone_x *x) {
    const int arity = hone_fns[x->fn].arity, type = w->in->x[x->a].type;
    const int32_t args[3] = {x->a, x->b, x->c};
    const hone_know *a = hone_know_of(w, x->a), *b = arity > 1 ? hone_know_of(w, x->b) : a;
    bool constant = true;
    for (int k = 0; k < arity; k++) {
        const hone_know *g = hone_know_of(w, args[k]);
        constant = constant && g->kind == HONE_KNOW_CONST;
        o->fails = o->fails || g->fails;
    }
    if (constant) {
        hone_scalar v[3];
        for (int k = 0; k < arity; k++) v[k] = hone_know_of(w, args[k])->k;
        set_const(o, x->type, hone_fn_eval((hone_fn)x->fn, (hone_ctype)type, v));
        return;
    }
    if (!is_int(type)) {
        if (x->type == HONE_I32) o->lo = 0, o->hi = 1; /* a comparison */
        return;
    }
    const range ra = {a->lo, a->hi}, rb = arity > 1 ? (range){b->lo, b->hi} : anything;
    const int truth = arity > 1 ? decided((hone_fn)x->fn, ra, rb) : -1;
    if (truth >= 0 && !o->fails) {
        set_const(o, HONE_I32, (hone_scalar){.i32 = truth});
        return;
    }
    switch (x->fn) { /* what one argument decides */
    case HONE_FN_min:
        if (ra.hi <= rb.lo && !b->fails) {
            set_alias(w, o, x->a);
            return;
        }
        if (rb.hi <= ra.lo && !a->fails) {
            set_alias(w, o, x->b);
            return;
        }
        break;
    case HONE_FN_max:
        if (ra.lo >= rb.hi && !b->fails) {
            set_alias(w, o, x->a);
            return;
        }
        if (rb.lo >= ra.hi && !a->fails) {
            set_alias(w, o, x->b);
            return;
        }
        break;
    case HONE_FN_mod:
    case HONE_FN_rem:
        if (ra.lo >= 0 && ra.hi < rb.lo && !b->fails) {
            set_alias(w, o, x->a);
            return;
        }
        break;
    case HONE_FN_div:
    case HONE_FN_quot:
        if (rb.lo == 1 && rb.hi == 1) {
            set_alias(w, o, x->a);
            return;
        }
        break;
    case HONE_FN_and:
    case HONE_FN_or:
        for (int k = 0; k < 2; k++) {
            const hone_know *c = k ? b : a, *v = k ? a : b;
            if (c->kind != HONE_KNOW_CONST) continue;
            if ((c->k.i32 != 0) == (x->fn == HONE_FN_or)) {
                if (!v->fails) {
                    set_const(o, HONE_I32, (hone_scalar){.i32 = x->fn == HONE_FN_or});
                    return;
                }
            } else if (v->lo >= 0 && v->hi <= 1) {
                set_alias(w, o, k ? x->a : x->b);
                return;
            }
        }
        break;
    }
    if (affine_fn(w, o, x, a, b)) return;
    const range r = fit(fn_range((hone_fn)x->fn, ra, rb), type);
    o->lo = r.lo, o->hi = r.hi;
    if (r.lo == r.hi && !o->fails)
        set_const(o, x->type,
                  x->type == HONE_I32 ? (hone_scalar){.i32 = (int32_t)r.lo} : (hone_scalar){.i64 = r.lo});
}

static void know_cast(const hone_knows *w, hone_know *o, const hone_x *x) {
    const hone_know *a = hone_know_of(w, x->a);
    const int from = w->in->x[x->a].type;
    o->fails = a->fails;
    if (from == x->type) set_alias(w, o, x->a);
    else if (a->kind == HONE_KNOW_CONST)
        set_const(o, x->type, hone_ctype_cast((hone_ctype)x->type, (hone_ctype)from, a->k));
    else if (is_int(from) && is_int(x->type)) {
        const range r = fit((range){a->lo, a->hi}, x->type);
        o->lo = r.lo, o->hi = r.hi;
    }
}

static void know_round(const hone_knows *w, hone_know *o, const hone_x *x) {
    const hone_know *a = hone_know_of(w, x->a);
    const hone_dtype t = (hone_dtype)x->fn;
    o->fails = a->fails;
    if (t == hone_ctype_dtype((hone_ctype)x->type)) set_alias(w, o, x->a);
    else if (a->kind == HONE_KNOW_CONST) {
        uint64_t cell[2] = {0, 0};
        hone_dtype_store(t, cell, (hone_ctype)x->type, a->k, false);
        set_const(o, x->type,
                  hone_ctype_cast((hone_ctype)x->type, hone_dtypes[t].ctype, hone_dtype_load(t, cell)));
    }
}

static void know_load(const hone_knows *w, hone_know *o, const hone_x *x) {
    const range r = type_range(w->in->tensor[x->a].dtype);
    o->lo = r.lo, o->hi = r.hi;
    bool inside = true;
    for (int k = 0; k < hone_know_subs(w, x); k++) {
        const hone_know *s = hone_know_of(w, hone_know_sub(w, x, k));
        inside = inside && hone_know_inside(s, hone_know_dim(w, x, x->a, k));
        o->fails = o->fails || s->fails;
    }
    if (inside) return;
    if (x->c < 0) {
        o->fails = true;
        return;
    }
    const hone_know *e = hone_know_of(w, x->c);
    o->fails = o->fails || e->fails;
    if (is_int(x->type)) {
        if (e->lo < o->lo) o->lo = e->lo;
        if (e->hi > o->hi) o->hi = e->hi;
    }
}

int hone_know_subs(const hone_knows *w, const hone_x *x) {
    return x ? (x->flat ? 1 : w->in->tensor[x->a].rank) : w->in->tensor[w->stage->tensor].rank;
}
int32_t hone_know_sub(const hone_knows *w, const hone_x *x, int k) {
    return w->in->list[(x ? x->b : w->stage->sub0) + k];
}
int64_t hone_know_dim(const hone_knows *w, const hone_x *x, int tensor, int k) {
    const hone_tensor *t = w->in->tensor + tensor;
    if (!x || !x->flat) return w->param[t->dim[k]].i;
    int64_t dims[HONE_MAX_RANK], n;
    for (int d = 0; d < t->rank; d++) dims[d] = w->param[t->dim[d]].i;
    return hone_count_of(dims, t->rank, &n) ? n : 0;
}

static hone_status know(const hone_knows *w, int32_t at, const int8_t *slot_of) {
    const hone_x *x = w->in->x + at;
    hone_know *o = w->x + at;
    *o = (hone_know){.is = at, .kind = HONE_KNOW_VALUE, .lo = INT64_MIN, .hi = INT64_MAX};
    if (x->type == HONE_I32) o->lo = INT32_MIN, o->hi = INT32_MAX;
    switch (x->kind) {
    case HONE_X_CONST: set_const(o, x->type, x->k); break;
    case HONE_X_PARAM:
        if (w->in->param_real[x->a]) set_const(o, x->type, (hone_scalar){.f64 = w->param[x->a].f});
        else set_const(o, x->type, (hone_scalar){.i64 = w->param[x->a].i});
        break;
    case HONE_X_INDEX:
        if (slot_of[x->a] < 0)
            return hone_fail(HONE_BUG, "stage of %s: an index of another stage",
                             w->in->tensor[w->stage->tensor].name);
        if (!(o->affine = HONE_NEW_N(w->arena, int64_t, w->n_slot + 1)))
            return hone_fail(HONE_NO_MEMORY, "out of memory");
        o->affine[slot_of[x->a]] = w->extent[slot_of[x->a]] > 1; /* of an extent of 1: always 0 */
        affine_range(w, o);
        break;
    case HONE_X_FN: know_fn(w, o, x); break;
    case HONE_X_CAST: know_cast(w, o, x); break;
    case HONE_X_ROUND: know_round(w, o, x); break;
    case HONE_X_LOAD: know_load(w, o, x); break;
    case HONE_X_SELECT: {
        const hone_know *c = hone_know_of(w, x->a), *a = hone_know_of(w, x->b), *b = hone_know_of(w, x->c);
        if (c->kind == HONE_KNOW_CONST ||
            (is_int(w->in->x[x->a].type) && (c->lo > 0 || c->hi < 0) && !c->fails)) {
            const bool taken = c->kind != HONE_KNOW_CONST || c->k.i32 != 0;
            set_alias(w, o, taken ? x->b : x->c);
            break;
        }
        o->fails = c->fails || a->fails || b->fails;
        if (is_int(x->type)) o->lo = a->lo < b->lo ? a->lo : b->lo, o->hi = a->hi > b->hi ? a->hi : b->hi;
        break;
    }
    default: return hone_fail(HONE_BUG, "unknown kind of expression %d", x->kind);
    }
    return HONE_OK;
}

/* Marks what x uses directly; `folded`: what stands for it. */
static void mark_args(const hone_knows *w, const hone_x *x, bool *mark, bool folded) {
    int32_t args[3 + HONE_MAX_RANK];
    int n = 0;
    if (x->kind == HONE_X_FN)
        for (int k = 0; k < hone_fns[x->fn].arity; k++) args[n++] = k == 0 ? x->a : k == 1 ? x->b : x->c;
    if (x->kind == HONE_X_CAST || x->kind == HONE_X_ROUND) args[n++] = x->a;
    if (x->kind == HONE_X_SELECT) args[n++] = x->a, args[n++] = x->b, args[n++] = x->c;
    if (x->kind == HONE_X_LOAD) {
        for (int k = 0; k < hone_know_subs(w, x); k++) args[n++] = hone_know_sub(w, x, k);
        if (x->c >= 0) args[n++] = x->c;
    }
    for (int k = 0; k < n; k++) mark[folded ? w->x[args[k]].is : args[k]] = true;
}

hone_status hone_know_stage(hone_arena *arena, const hone_instance *in, int stage, const hone_param *param,
                            hone_knows *w) {
    const hone_stage *st = in->stage + stage;
    *w = (hone_knows){.arena = arena,
                      .in = in,
                      .stage = st,
                      .param = param,
                      .n_slot = st->n_index + st->n_reduce,
                      .over = -1};
    if (w->n_slot > HONE_SLOTS)
        return hone_fail(HONE_NOT_SUPPORTED, "a stage of %d indices: at most %d", w->n_slot, HONE_SLOTS);
    int8_t *slot_of = hone_arena_alloc(arena, (size_t)in->n_index + 1);
    bool *mark = hone_arena_alloc(arena, (size_t)in->n_x + 1);
    w->x = HONE_NEW_N(arena, hone_know, in->n_x + 1);
    if (!slot_of || !mark || !w->x) return hone_fail(HONE_NO_MEMORY, "out of memory");
    memset(slot_of, -1, (size_t)in->n_index + 1);
    for (int k = 0; k < w->n_slot; k++) {
        const int32_t index = in->list[st->index0 + k];
        slot_of[index] = (int8_t)k;
        w->extent[k] = param[in->index[index].extent].i;
        if (st->over >= 0 && index == st->over_index) w->over = k;
        if (!hone_dim_is_number(w->extent[k]))
            return hone_fail(HONE_BUG, "index %s has no extent yet", in->index[index].name);
    }
    int32_t root[2 + HONE_MAX_RANK];
    int n_root = 0;
    root[n_root++] = st->value;
    if (st->reduce == HONE_REDUCE_ARGMAX || st->reduce == HONE_REDUCE_ARGMIN) root[n_root++] = st->pick;
    for (int k = 0; !st->identity && k < hone_know_subs(w, NULL); k++)
        root[n_root++] = hone_know_sub(w, NULL, k);
    for (int k = 0; k < n_root; k++) mark[root[k]] = true;
    for (int32_t k = in->n_x - 1; k >= 0; k--)
        if (mark[k]) mark_args(w, in->x + k, mark, false);
    for (int32_t k = 0; k < in->n_x; k++)
        if (mark[k]) HONE_TRY(know(w, k, slot_of));
    for (int32_t k = 0; k < in->n_x; k++) mark[k] = false;
    for (int k = 0; k < n_root; k++) mark[w->x[root[k]].is] = true;
    for (int32_t k = in->n_x - 1; k >= 0; k--) {
        if (!mark[k]) continue;
        w->x[k].live = true;
        if (w->x[k].kind == HONE_KNOW_VALUE) mark_args(w, in->x + k, mark, true);
    }
    return HONE_OK;
}
