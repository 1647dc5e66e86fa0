/* SPDX-License-Identifier: Apache-2.0
   resample: values of other places, which indices alone decide, perhaps several of them weighted: Resize,
   mirrored Pad, any user's op of that form. In the program
        y[domain] = sum(reduced) h[…] * x[places]      h made before of indices alone; or no sum and no h
   Places and weights are numbers that never change, so they are tables here and not computed for every value.
   An index, or some that stand in one expression, is an *axis* of its own: its places and weights are one
   small table, and a place is one of each axis.
        rows    the last index of the domain runs along memory in both and is no axis (channels last): a row
                of y is a weighted sum of rows of x
        lanes   it is an axis itself (row-major): rows of x are blended by the other axes, and the row that
                gives is picked from. Where x's values lie far apart (tokens seen as a picture) only those are
                blended
   Other types than f32 are moved only, where nothing is weighted.
   Of integers of 8 or 16 bits (x as it is, or less its zero point above, and a second stage  round(y)  or
   round(y * (xs / ys)) + yz  that saturates) x is read and y written as such: floats are one
   line in scratch, which is first blended, then, channels last, spread: pixels of it are blended along the
   line. Where the program sums plain integers in f64, f32 is enough for all but how a half is rounded that
   no float holds. What is outside, or depends on data, runs as tile code. */
#include "device/cpu/resample.h"

#include <string.h>

#include "base/round.h"
#include "base/thread.h"

typedef hone_resample_axis axis;
typedef hone_resample resample;
enum {
    MAX_ROW = 1 << 24,
    MAX_AXES = HONE_RESAMPLE_AXES,
    MAX_TERMS = 12,
    MOST_PLACES = 1 << 16,
    MAX_TAPS = HONE_RESAMPLE_TAPS,
    FAR = 8,
    LEAST = 1 << 13,
    MOST = 1 << 16 /* values a tile reads */
};
typedef struct { /* what is to be known at each position of an axis */
    int32_t x;
    bool place; /* of x, in a dim of this stride and size; else a weight, */
    bool below; /* by which is divided */
    int64_t stride, size;
    uint32_t slots; /* that it knows, a bit each */
} term;
typedef struct {
    hone_template_builder *m;
    const hone_cpu_call *c;
    hone_slots_of slots;
    const hone_stage *made; /* what makes the weights, or NULL */
    const hone_x *load;     /* and how they are read */
    term term[MAX_TERMS];
    int n_term;
    int64_t *index;
} finding;

/* ---- finding it ---------------------------------------------------------------------------------------- */
static int slot_of(const finding *f, int32_t index) { /* -1: none */
    const hone_instance *in = f->c->instance;
    /* an index of the weights' own stage stands for what it is read by */
    for (int k = 0; f->made && k < f->made->n_index; k++)
        if (in->list[f->made->index0 + k] == index) index = in->x[in->list[f->load->b + k]].a;
    for (int k = 0; k < f->slots.n; k++)
        if (f->slots.id[k] == index) return k;
    return -1;
}
/* false: it loads something, or knows what is no index here */
static bool knows(const finding *f, int32_t x, uint32_t *slots) {
    const hone_x *e = f->c->instance->x + x;
    const int32_t arg[] = {e->a, e->b, e->c};
    int n = 0;
    switch (e->kind) {
    case HONE_X_CONST:
    case HONE_X_PARAM: return true;
    case HONE_X_INDEX: {
        const int k = slot_of(f, e->a);
        if (k >= 0) *slots |= 1u << k;
        return k >= 0;
    }
    case HONE_X_FN: n = hone_fns[e->fn].arity; break;
    case HONE_X_SELECT: n = 3; break;
    case HONE_X_CAST:
    case HONE_X_ROUND: n = 1; break;
    default: return false;
    }
    for (int k = 0; k < n; k++)
        if (!knows(f, arg[k], slots)) return false;
    return true;
}
static bool add(finding *f, term t) {
    if (f->n_term == MAX_TERMS || !knows(f, t.x, &t.slots)) return false;
    f->term[f->n_term++] = t;
    return true;
}
static bool factors(finding *f, int32_t x, bool below) {
    const hone_x *e = f->c->instance->x + x;
    const bool real = e->type == HONE_F32 || e->type == HONE_F64;
    if (e->kind == HONE_X_CAST && real &&
        (f->c->instance->x[e->a].type == HONE_F64 || f->c->instance->x[e->a].type == HONE_F32))
        return factors(f, e->a, below);
    if (e->kind == HONE_X_FN && real && e->fn == HONE_FN_mul)
        return factors(f, e->a, below) && factors(f, e->b, below);
    if (e->kind == HONE_X_FN && real && e->fn == HONE_FN_div)
        return factors(f, e->a, below) && factors(f, e->b, !below);
    return real && add(f, (term){.x = x, .below = below});
}
/* Places of x: what is affine and never outside goes to `base`. */
static bool places(finding *f, const hone_x *e, hone_dtype dtype, hone_affine *base) {
    const hone_instance *in = f->c->instance;
    if (e->kind != HONE_X_LOAD || e->flat || e->c >= 0 || in->tensor[e->a].dtype != dtype) return false;
    *base = (hone_affine){0};
    for (int k = 0; k < in->tensor[e->a].rank; k++) {
        const int64_t size = f->c->param[in->tensor[e->a].dim[k]].i, stride = f->c->stride[e->a][k];
        const int32_t x = in->list[e->b + k];
        hone_affine s;
        int64_t lo = -1, hi = -1;
        bool reduced = false;
        if (hone_affine_expr(&f->c->sized, &f->slots, x, &s)) hone_affine_range(&f->slots, &s, &lo, &hi);
        for (int q = f->slots.n_domain; q < f->slots.n && lo >= 0; q++) reduced |= s.k[q] != 0;
        if (lo >= 0 && hi < size && !reduced) {
            if (!hone_affine_move(&f->slots, &s, stride, base)) return false;
        } else if (!add(f, (term){.x = x, .place = true, .stride = stride, .size = size})) return false;
    }
    return true;
}
static void set(finding *f, uint32_t slots, int from, int to,
                int64_t number) { /* the numbered combination of some slots, the last the fastest */
    const hone_instance *in = f->c->instance;
    for (int k = to - 1; k >= from; k--) {
        if (!(slots >> k & 1)) continue;
        f->index[f->slots.id[k]] = number % f->slots.extent[k], number /= f->slots.extent[k];
    }
    for (int k = 0; f->made && k < f->made->n_index; k++)
        f->index[in->list[f->made->index0 + k]] = f->index[in->x[in->list[f->load->b + k]].a];
}
static bool fill(finding *f, axis *a) { /* false: some place is outside, or there are too many */
    const hone_slots_of *w = &f->slots;
    a->positions = a->taps = 1;
    for (int k = 0; k < w->n; k++) {
        if (!(a->slots >> k & 1)) continue;
        *(k < w->n_domain ? &a->positions : &a->taps) *= w->extent[k];
        if (a->positions > MOST_PLACES || a->taps > MAX_TAPS || a->positions * a->taps > MOST_PLACES)
            return false;
    }
    a->at = HONE_NEW_N(f->m->arena, int64_t, a->positions * a->taps + 1);
    a->weight = HONE_NEW_N(f->m->arena, float, a->positions * a->taps + 1);
    if (!a->at || !a->weight) return false;
    for (int64_t p = 0; p < a->positions; p++)
        for (int64_t t = 0; t < a->taps; t++) {
            double weight = 1;
            set(f, a->slots, 0, w->n_domain, p), set(f, a->slots, w->n_domain, w->n, t);
            for (int k = 0; k < f->n_term; k++) {
                const term *q = f->term + k;
                if (!(q->slots & a->slots)) continue;
                const hone_scalar v = hone_interpret_x(f->c->instance, f->c->param, f->index, q->x);
                if (q->place) {
                    if (v.i64 < 0 || v.i64 >= q->size) return false;
                    a->at[p * a->taps + t] += v.i64 * q->stride;
                } else {
                    const double number = hone_scalar_f64((hone_ctype)f->c->instance->x[q->x].type, v);
                    weight = q->below ? weight / number : weight * number, a->weighted = true;
                }
            }
            a->weight[p * a->taps + t] = (float)weight;
        }
    return true;
}
/* Taps that weigh nothing anywhere, as of an axis that keeps its size: no integer times 0 is anything
   else. */
static void drop_nothing(axis *a) {
    int64_t kept = 0;
    bool ones = true;
    for (int64_t t = 0; t < a->taps; t++) {
        bool weighs = false;
        for (int64_t p = 0; p < a->positions; p++) weighs |= a->weight[p * a->taps + t] != 0;
        for (int64_t p = 0; p < a->positions && weighs; p++)
            a->at[p * a->taps + kept] = a->at[p * a->taps + t],
                                a->weight[p * a->taps + kept] = a->weight[p * a->taps + t];
        kept += weighs;
    }
    if (kept == a->taps || !kept) return;
    for (int64_t p = 0; p < a->positions; p++)
        for (int64_t t = 0; t < kept; t++) {
            a->at[p * kept + t] = a->at[p * a->taps + t];
            a->weight[p * kept + t] = a->weight[p * a->taps + t];
            ones &= a->weight[p * kept + t] == 1;
        }
    a->taps = kept, a->weighted &= !(kept == 1 && ones);
}
/* Terms that know an index in common are of one axis. What knows none is a factor of all: only 1 is
   expected. */
static bool sort_axes(finding *f, resample *d) {
    uint32_t reduced = 0;
    for (int k = 0; k < f->n_term; k++) {
        if (!f->term[k].slots) {
            if (f->term[k].place ||
                hone_scalar_f64((hone_ctype)f->c->instance->x[f->term[k].x].type,
                                hone_interpret_x(f->c->instance, f->c->param, f->index, f->term[k].x)) != 1)
                return false;
            continue;
        }
        axis mine = {.slots = f->term[k].slots};
        for (int q = 0; q < d->n_axis;) {
            if (!(d->axis[q].slots & mine.slots)) {
                q++;
                continue;
            }
            mine.slots |= d->axis[q].slots, d->axis[q] = d->axis[--d->n_axis];
            q = 0;
        }
        if (d->n_axis == MAX_AXES) return false;
        d->axis[d->n_axis++] = mine;
    }
    for (int q = 0; q < d->n_axis; q++) reduced |= d->axis[q].slots;
    for (int k = f->slots.n_domain; k < f->slots.n; k++)
        if (f->slots.extent[k] > 1 && !(reduced >> k & 1)) return false;
    d->taps = 1;
    for (int q = 0; q < d->n_axis;) {
        axis *a = d->axis + q;
        if (!fill(f, a)) return false;
        if (d->whole) drop_nothing(a);
        int own = 0;
        while (!(a->slots >> own & 1)) own++;
        bool even = a->taps == 1 && !a->weighted && a->slots == 1u << own;
        const int64_t step = a->positions > 1 ? a->at[1] - a->at[0] : 0;
        for (int64_t p = 0; p < a->positions && even; p++) even = a->at[p] == a->at[0] + p * step;
        /* no axis after all */
        if (even) d->base.c += a->at[0], d->base.k[own] += step, *a = d->axis[--d->n_axis];
        else d->taps *= a->taps, q++;
        if (d->taps > MAX_TAPS) return false;
    }
    return true;
}
static int64_t greatest(int64_t a, int64_t b) { /* common divisor */
    while (b) {
        const int64_t rest = a % b;
        a = b, b = rest;
    }
    return a;
}
/* The axis of index `last`, where it is the one along memory (or, before a row of n, the one of pixels): its
   table tap by tap, from the first place on. */
static bool find_lanes(finding *f, resample *d, int last, int64_t n) {
    int own = -1;
    for (int q = 0; q < d->n_axis; q++)
        if (d->axis[q].slots >> last & 1) own = q;
    if (own < 0 || d->base.k[last]) return false;
    axis a = d->axis[own];
    for (int k = 0; k < f->slots.n_domain; k++)
        if (k != last && a.slots >> k & 1) return false;
    int64_t hi = d->lo = a.at[0];
    for (int64_t k = 0; k < a.positions * a.taps; k++) {
        if (a.at[k] < d->lo) d->lo = a.at[k];
        if (a.at[k] > hi) hi = a.at[k];
    }
    int64_t apart = 0;
    for (int64_t k = 0; k < a.positions * a.taps && n == 1; k++) apart = greatest(apart, a.at[k] - d->lo);
    d->apart = apart >= FAR ? apart : 1;
    d->reach = (hi - d->lo) / d->apart + n, d->lane_taps = a.taps;
    if (d->reach > (2 * a.positions * a.taps + 64) * n) return false; /* too little of it is used */
    d->lane_at = HONE_NEW_N(f->m->arena, int32_t, a.positions * a.taps);
    d->lane_weight = HONE_NEW_N(f->m->arena, float, a.positions *a.taps);
    if (!d->lane_at || !d->lane_weight) return false;
    for (int64_t p = 0; p < a.positions; p++)
        for (int64_t t = 0; t < a.taps; t++)
            d->lane_at[t * a.positions + p] = (int32_t)((a.at[p * a.taps + t] - d->lo) / d->apart),
                                         d->lane_weight[t * a.positions + p] = a.weight[p * a.taps + t];
    d->axis[own] = d->axis[--d->n_axis], d->taps /= a.taps;
    if (n > 1) return d->spread = true, d->run = a.positions, true;
    d->lanes = true;
    if (a.taps > 1 || a.weighted) return true;
    d->lane_weight = NULL;
    for (int64_t from = 0, to; from < d->n; from = to) {
        for (to = from + 1; to < d->n && d->lane_at[to] == d->lane_at[to - 1] + 1;) to++;
        if (to - from > d->run_to - d->run_from) d->run_from = from, d->run_to = to;
    }
    if (d->run_to - d->run_from < 8) d->run_to = d->run_from = 0;
    return true;
}
/* Is the stage only a copy of what the one before makes? */
static bool copies(const hone_instance *in, const hone_stage *z, int32_t of) {
    const hone_x *e = in->x + z->value;
    if (!z->follows || z->reduce || z->how || !z->identity || z->over >= 0 || e->kind != HONE_X_LOAD ||
        e->a != of || e->flat || e->c >= 0 || in->tensor[z->tensor].dtype != in->tensor[of].dtype ||
        in->tensor[z->tensor].rank != in->tensor[of].rank)
        return false;
    for (int k = 0; k < z->n_index; k++) {
        const hone_x *sub = in->x + in->list[e->b + k];
        if (sub->kind != HONE_X_INDEX || sub->a != in->list[z->index0 + k]) return false;
    }
    return true;
}
static bool is_whole(hone_dtype t) {
    return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8 || t == HONE_DTYPE_U16 || t == HONE_DTYPE_I16;
}
/* Elements that may be moved without a look at them. */
static bool movable(hone_dtype t) {
    return is_whole(t) || t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16 || t == HONE_DTYPE_F64 ||
           t == HONE_DTYPE_I32 || t == HONE_DTYPE_I64 || t == HONE_DTYPE_U32 || t == HONE_DTYPE_U64;
}
static bool one_number(const hone_instance *in, int32_t x, hone_dtype dtype, int *tensor) {
    if (in->x[x].kind == HONE_X_CAST) x = in->x[x].a;
    const hone_x *e = in->x + x;
    *tensor = e->a;
    return e->kind == HONE_X_LOAD && !e->flat && e->c < 0 && !in->tensor[e->a].rank &&
           in->tensor[e->a].dtype == dtype;
}
static hone_whole whole_of(hone_dtype t) {
    return t == HONE_DTYPE_U8    ? HONE_WHOLE_u8
           : t == HONE_DTYPE_I8  ? HONE_WHOLE_i8
           : t == HONE_DTYPE_U16 ? HONE_WHOLE_u16
                                 : HONE_WHOLE_i16;
}
/* f32(x [- zero]) or f64(x), of integers: the load of x. NULL: it is something else. */
static const hone_x *less_zero(const hone_instance *in, const hone_x *e, resample *d) {
    d->xz = -1;
    if (e->kind != HONE_X_CAST || (e->type != HONE_F32 && e->type != HONE_F64)) return NULL;
    const hone_x *x = in->x + e->a, *whole = x;
    if (x->kind == HONE_X_FN && x->fn == HONE_FN_sub && e->type == HONE_F32) whole = in->x + x->a;
    if (whole->kind != HONE_X_LOAD || !is_whole(d->x_type = in->tensor[whole->a].dtype)) return NULL;
    return whole == x || one_number(in, x->b, d->x_type, &d->xz) ? whole : NULL;
}
/* round(what the stage before makes), or round(that * (xs / ys)) [+ zero], saturated */
static bool settles(const hone_instance *in, const hone_stage *z, int32_t of, resample *d) {
    const hone_x *e = in->x + z->value;
    d->xs = d->ys = d->yz = -1, d->y_type = in->tensor[z->tensor].dtype;
    if (!z->follows || z->reduce || z->how || !z->identity || z->over >= 0 || z->skip || !z->saturate ||
        !is_whole(d->y_type))
        return false;
    if (e->kind == HONE_X_FN && e->fn == HONE_FN_add) {
        if (!one_number(in, e->b, d->y_type, &d->yz)) return false;
        e = in->x + e->a;
    }
    if (e->kind != HONE_X_FN || e->fn != HONE_FN_round) return false;
    const hone_x *plain = in->x + e->a;
    if (plain->kind == HONE_X_LOAD) return plain->a == of && d->xz < 0 && d->yz < 0;
    if (in->tensor[of].dtype != HONE_DTYPE_F32 || plain->kind != HONE_X_FN || plain->fn != HONE_FN_mul)
        return false;
    const hone_x *sum = in->x + in->x[e->a].a, *over = in->x + in->x[e->a].b;
    return sum->kind == HONE_X_LOAD && sum->a == of && over->kind == HONE_X_FN && over->fn == HONE_FN_div &&
           one_number(in, over->a, HONE_DTYPE_F32, &d->xs) && one_number(in, over->b, HONE_DTYPE_F32, &d->ys);
}
/* The zero point is taken off once: weights are to add up to 1. */
static bool ones(const resample *d) {
    for (int q = 0; q < d->n_axis; q++)
        for (int64_t p = 0; p < d->axis[q].positions; p++) {
            double sum = 0;
            for (int64_t t = 0; t < d->axis[q].taps; t++)
                sum += (double)d->axis[q].weight[p * d->axis[q].taps + t];
            if (!(sum > 1 - 1e-6 && sum < 1 + 1e-6)) return false;
        }
    return true;
}
static bool weights_by_index(const hone_instance *in, const hone_x *e) {
    for (int k = 0; k < in->tensor[e->a].rank; k++)
        if (in->x[in->list[e->b + k]].kind != HONE_X_INDEX) return false;
    return !e->flat;
}
hone_status hone_cpu_resample(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                              bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    finding f = {.m = m, .c = c};
    if (in->tensor[st->tensor].role == HONE_ROLE_TEMP && !st->reduce && stage + 1 < in->n_stage &&
        st[1].reduce == HONE_REDUCE_SUM &&
        st[1].uses >> st->tensor & 1) { /* weights, for the stage after it alone */
        f.made = st++;
        for (int k = 0; k < in->n_stage; k++)
            if (k != stage && k != stage + 1 && in->stage[k].uses >> f.made->tensor & 1) return HONE_OK;
        if (!f.made->identity || f.made->how || f.made->over >= 0) return HONE_OK;
    }
    const hone_x *e = in->x + st->value;
    const hone_dtype summed = in->tensor[st->tensor].dtype; /* in f64: only integers */
    const bool moved = !f.made && summed != HONE_DTYPE_F32 && e->kind == HONE_X_LOAD && movable(summed);
    if (st->how || !st->identity || st->over >= 0 || st->skip ||
        !(moved || (summed == HONE_DTYPE_F32 && e->type == HONE_F32) ||
          (summed == HONE_DTYPE_F64 && e->type == HONE_F64)) ||
        (f.made ? e->kind != HONE_X_FN || e->fn != HONE_FN_mul : st->reduce))
        return HONE_OK;
    const hone_x *source = e;
    if (f.made) {
        const hone_x *a = in->x + e->a, *b = in->x + e->b;
        const bool first = a->kind == HONE_X_LOAD && a->a == f.made->tensor;
        f.load = first ? a : b, source = first ? b : a;
        if (f.load->kind != HONE_X_LOAD || f.load->a != f.made->tensor || !weights_by_index(in, f.load))
            return HONE_OK;
    }
    const int at = (int)(st - in->stage);
    resample *d = HONE_NEW(m->arena, resample);
    f.index = HONE_NEW_N(m->arena, int64_t, in->n_index + 1);
    if (!d || !f.index) return hone_steps_no_memory();
    const hone_x *integers = moved ? NULL : less_zero(in, source, d);
    d->whole = integers != NULL, d->apart = 1;
    if (moved) d->x_type = summed;
    const bool copied = !moved && at + 1 < in->n_stage &&
                        (d->whole ? settles(in, st + 1, st->tensor, d) : copies(in, st + 1, st->tensor));
    const hone_stage *z = copied ? st + 1 : st;
    if (d->whole ? !copied : !moved && summed != HONE_DTYPE_F32) return HONE_OK;
    if (d->whole) source = integers;
    if (!hone_affine_slots(&c->sized, at, copied ? at + 1 : at, &f.slots) || !f.slots.injective ||
        !places(&f, source, d->whole ? d->x_type : summed, &d->base) ||
        (f.made && !factors(&f, f.made->value, false)) || !f.n_term || !sort_axes(&f, d) ||
        (!d->n_axis && f.slots.n > f.slots.n_domain) || (d->whole && !ones(d)))
        return HONE_OK;
    for (int q = 0; q < d->n_axis && moved; q++)
        if (d->axis[q].taps > 1 || d->axis[q].weighted) return HONE_OK;
    int last = f.slots.n_domain - 1;
    while (last > 0 && f.slots.extent[last] == 1) last--;
    const int64_t *stride = c->stride[z->tensor];
    if (last < 0 || stride[f.slots.dim[last]] != 1) return HONE_OK;
    bool moves = false;
    if ((d->n = f.slots.extent[last]) > MAX_ROW) return HONE_OK; /* products below must not overflow */
    for (int q = 0; q < d->n_axis; q++) moves |= d->axis[q].slots >> last & 1;
    if (moves ? !find_lanes(&f, d, last, 1) : d->base.k[last] != 1 || f.slots.extent[last] < 4)
        return HONE_OK;
    if (d->whole && !moves && last > 0 && stride[f.slots.dim[last - 1]] == d->n &&
        d->n <= MAX_ROW / f.slots.extent[last - 1] && find_lanes(&f, d, last - 1, d->n))
        last--;
    else if (!moves) d->lo = 0;
    d->x = source->a, d->out = z->tensor, d->n_outer = last, d->rows = 1, d->kernel = hone_pool_best();
    for (int k = last - 1; k >= 0; k--) {
        d->extent[k] = f.slots.extent[k], d->out_step[k] = stride[f.slots.dim[k]], d->rows *= d->extent[k];
        for (int q = 0; q < d->n_axis; q++) {
            if (!(d->axis[q].slots >> k & 1)) continue;
            d->by[q][k] = 1;
            for (int w = k + 1; w < last; w++)
                if (d->axis[q].slots >> w & 1) d->by[q][k] *= f.slots.extent[w];
        }
    }
    const int64_t each = d->spread  ? d->taps * d->reach + d->lane_taps * d->n * d->run
                         : d->lanes ? d->taps * d->reach + d->lane_taps * d->n
                                    : d->taps * d->n;
    size_t room = d->lanes && !moved ? (size_t)d->reach : 0;
    uint64_t uses = (uint64_t)1 << d->x | (uint64_t)1 << d->out;
    if (d->whole) {
        const int number[] = {d->xs, d->xz, d->ys, d->yz};
        for (int k = 0; k < 4; k++) uses |= number[k] < 0 ? 0 : (uint64_t)1 << number[k];
        d->blend = d->kernel->blend_whole[whole_of(d->x_type)],
        d->settle = d->kernel->settle[whole_of(d->y_type)];
        room = (size_t)(d->lanes || d->spread ? d->reach : 0) + (size_t)(d->spread ? d->run * d->n : d->n);
    }
    d->grain = hone_share_of(d->rows, LEAST / each + 1, MOST / each + 1, c->how.threads);
    hone_step step = {.tactic = "resample",
                      .tiles = hone_ceil_div(d->rows, d->grain),
                      .scratch_bytes = sizeof(float) * room,
                      .tile = moved      ? hone_resample_tile_moved
                              : d->whole ? hone_resample_tile_whole
                                         : hone_resample_tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true, *end = at + 1 + copied;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = uses, .buffer = -1});
}
