/* SPDX-License-Identifier: Apache-2.0
   match_affine: see match_affine.h. */
#include "loops/match_affine.h"

#include <math.h>
#include <string.h>

bool hone_affine_slots(const hone_sized *c, int stage, int last, hone_slots_of *out) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + stage, *z = in->stage + last;
    int n = s->n_index + s->n_reduce, order[HONE_MAX_RANK];
    if (n > HONE_MAX_SLOTS || s->n_index > HONE_MAX_RANK) return false;
    out->injective = hone_stage_order(in, z, c->param, c->stride[z->tensor], order);
    out->n_domain = s->n_index, out->n = n, out->over = -1, out->cache = c->cache;
    for (int k = 0; k < n; k++) {
        out->dim[k] = k < s->n_index ? order[k] : k;
        out->id[k] = in->list[s->index0 + out->dim[k]];
        out->extent[k] = c->param[in->index[out->id[k]].extent].i;
        if (out->extent[k] <= 0) return false;
        if (s->over >= 0 && out->id[k] == s->over_index) out->over = k, out->extent[k] = 1;
    }
    return true;
}
/* *to += a * b. False: there is no such place in any memory; hostile strides and pads say such numbers. */
static bool put(int64_t *to, int64_t a, int64_t b) {
    const int64_t far = (int64_t)1 << 48;
    int64_t p;
    return !__builtin_mul_overflow(a, b, &p) && !__builtin_add_overflow(*to, p, to) && *to<far && * to> - far;
}
/* A number that no index changes. */
static bool number(const hone_sized *c, int32_t x, int64_t *out) {
    const hone_x *e = c->instance->x + x;
    int64_t p, q = 0;
    switch (e->kind) {
    case HONE_X_CONST:
        *out = e->type == HONE_I32 ? e->k.i32 : e->k.i64;
        return e->type == HONE_I64 || e->type == HONE_I32;
    case HONE_X_PARAM: *out = c->param[e->a].i; return !c->instance->param_real[e->a];
    case HONE_X_FN:
        if (!number(c, e->a, &p) || (hone_fns[e->fn].arity > 1 && !number(c, e->b, &q))) return false;
        *out = 0;
        switch (e->fn) {
        case HONE_FN_add: return put(out, p, 1) && put(out, q, 1);
        case HONE_FN_sub: return put(out, p, 1) && put(out, q, -1);
        case HONE_FN_mul: return put(out, p, q);
        case HONE_FN_neg: return put(out, p, -1);
        default: return false;
        }
    default: return false;
    }
}
/* Adds `times` x to *out. */
static bool add(const hone_sized *c, const hone_slots_of *slots, int32_t x, int64_t times, hone_affine *out) {
    const hone_x *e = c->instance->x + x;
    int64_t by;
    if (e->kind == HONE_X_INDEX) {
        for (int k = 0; k < slots->n; k++)
            if (slots->id[k] == e->a) { return put(&out->k[k], times, 1); }
        return false;
    }
    if (e->kind != HONE_X_FN) return number(c, x, &by) && put(&out->c, times, by);
    int64_t product = 0;
    switch (e->fn) {
    case HONE_FN_add: return add(c, slots, e->a, times, out) && add(c, slots, e->b, times, out);
    case HONE_FN_sub: return add(c, slots, e->a, times, out) && add(c, slots, e->b, -times, out);
    case HONE_FN_neg: return add(c, slots, e->a, -times, out);
    case HONE_FN_mul:
        if (number(c, e->a, &by)) return put(&product, times, by) && add(c, slots, e->b, product, out);
        return number(c, e->b, &by) && put(&product, times, by) && add(c, slots, e->a, product, out);
    default: return false;
    }
}
bool hone_affine_expr(const hone_sized *c, const hone_slots_of *slots, int32_t x, hone_affine *out) {
    *out = (hone_affine){0};
    return add(c, slots, x, 1, out);
}
void hone_affine_range(const hone_slots_of *slots, const hone_affine *a, int64_t *lo, int64_t *hi) {
    *lo = *hi = a->c;
    for (int k = 0; k < slots->n; k++)
        if (!put(a->k[k] < 0 ? lo : hi, a->k[k], slots->extent[k] - 1)) {
            *lo = INT64_MIN, *hi = INT64_MAX;
            return;
        }
}
bool hone_affine_move(const hone_slots_of *slots, const hone_affine *by, int64_t step, hone_affine *to) {
    bool fits = put(&to->c, by->c, step);
    for (int q = 0; q < slots->n && fits; q++) fits = put(&to->k[q], by->k[q], step);
    return fits;
}
bool hone_affine_inside(const hone_sized *c, const hone_slots_of *slots, int32_t x, hone_affine *out) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + x;
    *out = (hone_affine){0};
    if (e->kind != HONE_X_LOAD || e->c >= 0) return false;
    if (e->flat) return hone_affine_expr(c, slots, in->list[e->b], out); /* flat(s)[0] */
    for (int k = 0; k < in->tensor[e->a].rank; k++) {
        hone_affine s;
        int64_t lo, hi, step = c->stride[e->a][k];
        if (!hone_affine_expr(c, slots, in->list[e->b + k], &s)) return false;
        hone_affine_range(slots, &s, &lo, &hi);
        if (lo < 0 || hi >= c->param[in->tensor[e->a].dim[k]].i) return false;
        if (!hone_affine_move(slots, &s, step, out)) return false;
    }
    return true;
}
bool hone_affine_is_nothing(const hone_instance *in, int32_t x, hone_dtype dtype, hone_affine_into into,
                            int32_t zero) {
    const hone_x *e = in->x + x;
    if (into == HONE_AFFINE_MAX && dtype != HONE_DTYPE_F32)
        return e->kind == HONE_X_CONST && e->type == HONE_I32 &&
               e->k.i32 == (dtype == HONE_DTYPE_I8 ? INT8_MIN : 0);
    if (into != HONE_AFFINE_BYTES && into != HONE_AFFINE_WHOLE)
        return e->kind == HONE_X_CONST && e->k.f32 == (into == HONE_AFFINE_MAX ? -INFINITY : 0);
    if (zero < 0) return e->kind == HONE_X_CONST && e->type == HONE_I32 && e->k.i32 == 0;
    return x == zero || (e->kind == HONE_X_LOAD && in->x[zero].kind == HONE_X_LOAD && e->a == in->x[zero].a &&
                         !in->tensor[e->a].rank);
}
bool hone_affine_of_load(const hone_sized *c, const hone_slots_of *slots, int32_t x, hone_affine_into into,
                         int32_t zero, hone_affine_load *out, hone_affine_load *first) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + x;
    const bool bytes = into == HONE_AFFINE_BYTES || into == HONE_AFFINE_WHOLE;
    first->tensor = -1;
    if (e->kind != HONE_X_LOAD || e->flat) return false;
    hone_dtype dtype = in->tensor[e->a].dtype;
    const bool half = into == HONE_AFFINE_FACTOR && c->constant && c->constant[e->a] &&
                      (dtype == HONE_DTYPE_F16 || dtype == HONE_DTYPE_BF16);
    const bool is_byte = dtype == HONE_DTYPE_U8 || dtype == HONE_DTYPE_I8;
    const bool is_short = dtype == HONE_DTYPE_U16 || dtype == HONE_DTYPE_I16;
    if (bytes ? !is_byte && !(is_short && into == HONE_AFFINE_WHOLE)
              : dtype != HONE_DTYPE_F32 && !half && !(into == HONE_AFFINE_MAX && is_byte))
        return false;
    *out = (hone_affine_load){.tensor = e->a};
    bool fits = e->c >= 0 && hone_affine_is_nothing(in, e->c, dtype, into, zero);
    for (int k = 0; k < in->tensor[e->a].rank; k++) {
        hone_affine s;
        if (!hone_affine_expr(c, slots, in->list[e->b + k], &s)) return false;
        int64_t lo, hi, size = c->param[in->tensor[e->a].dim[k]].i, step = c->stride[e->a][k];
        hone_affine_range(slots, &s, &lo, &hi);
        if (!hone_affine_move(slots, &s, step, &out->at)) return false;
        if (slots->over >= 0 && s.k[slots->over]) { /* t, or t - 1 with something else for step 0 */
            if (s.k[slots->over] != 1 || lo != hi) return false;
            if (s.c == 0 || (s.c == -1 && slots->begun)) continue;
            hone_affine_load none;
            if (s.c != -1 || e->c < 0 || (into != HONE_AFFINE_SUM && into != HONE_AFFINE_FACTOR) ||
                first->tensor >= 0 ||
                !hone_affine_of_load(c, slots, e->c, HONE_AFFINE_SUM, -1, first, &none) || none.tensor >= 0)
                return false;
            continue;
        }
        if (lo >= 0 && hi < size) continue;
        if (!fits || out->n_bounded == HONE_MAX_BOUNDED) return false;
        out->bounded[out->n_bounded] = s, out->size[out->n_bounded++] = size;
    }
    return true;
}

typedef struct {
    int n;
    int64_t count, of[2 * HONE_MAX_SLOTS]; /* extent and step of each index, innermost first */
} steps;
static hone_status fill(hone_arena *a, const void *arg, const void **out) {
    const steps *w = arg;
    int64_t *t = hone_arena_raw(a, sizeof *t * (size_t)w->count), have = 1;
    if (!t) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    t[0] = 0;
    for (int k = 0; k < w->n; k++) { /* each next index repeats what is there, shifted */
        int64_t extent = w->of[2 * k], step = w->of[2 * k + 1];
        for (int64_t i = 1; have == 1 && i < extent; i++) t[i] = i * step;
        for (int64_t i = 1; have > 1 && i < extent; i++)
            for (int64_t q = 0; q < have; q++) t[i * have + q] = t[q] + i * step;
        have *= extent;
    }
    *out = t;
    return HONE_OK;
}
int64_t *hone_affine_table(hone_arena *a, const hone_slots_of *s, const int *slot, int n,
                           const hone_affine *f) {
    steps w = {.count = 1};
    for (int k = n - 1; k >= 0; k--) {
        int64_t extent = s->extent[slot[k]], step = f->k[slot[k]], *inner = w.of + (w.n ? 2 * w.n - 2 : 0),
                end;
        if (extent == 1) continue;
        w.count *= extent;
        if (w.n && !__builtin_mul_overflow(inner[0], inner[1], &end) && end == step)
            inner[0] *= extent; /* follows on: one index */
        else w.of[2 * w.n] = extent, w.of[2 * w.n++ + 1] = step;
    }
    const void *t = NULL;
    hone_status got = s->cache ? hone_cache_get(s->cache, w.of, 2 * w.n, fill, &w, &t) : fill(a, &w, &t);
    return got ? NULL : (int64_t *)t;
}
