/* SPDX-License-Identifier: Apache-2.0
   splice: stages that copy rows of one tensor and, from a place on that data decides, rows of another: caches
   of keys and values that get new ones behind the old.

        y[outer.., t, d] = select(t < n, a[…, t, d] else 0, b[…, t - n, d] else 0)        n = a number of an
          i32 tensor, which does not know t and d, plus a constant

   As tile code both are loaded and one is selected; here rows are copied. Not found here: other conditions,
   types that change on the way. */
#include <string.h>

#include "base/thread.h"
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"

enum { MOST = 1 << 15 /* elements a tile copies */, LEAST = 1 << 10 };
typedef struct {
    int64_t c;
    int32_t load; /* expression, or -1 */
} border;
typedef struct {
    int tensor;
    hone_affine at;     /* without the rows' own step */
    int64_t step, size; /* elements from row to row; rows */
} part;
typedef struct {
    part a, b;
    int y, lens; /* tensors; lens -1: the border is a constant */
    hone_affine lens_at;
    int64_t border, outer, rows, row, y_step, chunk, chunks;
    int n_outer;
    int slot[HONE_MAX_SLOTS];
    int64_t extent[HONE_MAX_SLOTS], by_y[HONE_MAX_SLOTS];
    size_t bytes; /* of an element */
} splice;

/* ---- what it is ---------------------------------------------------------------------------------------- */
static bool settled(const hone_instance *in, int32_t x) { /* knows no index and loads nothing */
    const hone_x *e = in->x + x;
    switch (e->kind) {
    case HONE_X_CONST:
    case HONE_X_PARAM: return true;
    case HONE_X_CAST: return settled(in, e->a);
    case HONE_X_FN:
        return settled(in, e->a) && (hone_fns[e->fn].arity < 2 || settled(in, e->b)) &&
               (hone_fns[e->fn].arity < 3 || settled(in, e->c));
    case HONE_X_SELECT: return settled(in, e->a) && settled(in, e->b) && settled(in, e->c);
    default: return false;
    }
}
static bool whole(hone_ctype t) { return t == HONE_I32 || t == HONE_I64; }
static int64_t number(const hone_cpu_call *c, int32_t x) {
    int64_t none[1] = {0};
    const hone_scalar v = hone_interpret_x(c->instance, c->param, none, x);
    return c->instance->x[x].type == HONE_I32 ? v.i32 : v.i64;
}
/* x as a constant and one load. */
static bool split(const hone_cpu_call *c, int32_t x, int sign, border *out) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + x;
    if (!whole((hone_ctype)e->type)) return false;
    if (settled(in, x)) {
        const int64_t v = number(c, x);
        if (v < -((int64_t)1 << 40) || v > (int64_t)1 << 40) return false;
        out->c += sign * v;
        return true;
    }
    switch (e->kind) {
    case HONE_X_CAST: return e->type == HONE_I64 && split(c, e->a, sign, out);
    case HONE_X_SELECT:
        return settled(in, e->a) &&
               split(c, hone_interpret_x(in, c->param, (int64_t[]){0}, e->a).i32 ? e->b : e->c, sign, out);
    case HONE_X_FN:
        if (e->type != HONE_I64 || (e->fn != HONE_FN_add && e->fn != HONE_FN_sub)) return false;
        return split(c, e->a, sign, out) && split(c, e->b, e->fn == HONE_FN_sub ? -sign : sign, out);
    case HONE_X_LOAD:
        if (out->load >= 0 || sign < 0) return false;
        out->load = x;
        return true;
    default: return false;
    }
}
/* A load whose rows follow t, or t less the border (`from`); its other subscripts are inside. */
static bool find_part(const hone_cpu_call *c, const hone_slots_of *slots, int32_t x, int time,
                      const border *from, part *out) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + x;
    if (e->kind != HONE_X_LOAD || e->flat || e->c < 0 || in->x[e->c].kind != HONE_X_CONST ||
        in->x[e->c].type != HONE_F32 || in->x[e->c].k.f32 != 0)
        return false;
    *out = (part){.tensor = e->a};
    for (int k = 0; k < in->tensor[e->a].rank; k++) {
        const int32_t sub = in->list[e->b + k];
        const int64_t size = c->param[in->tensor[e->a].dim[k]].i, stride = c->stride[e->a][k];
        const hone_x *s = in->x + sub;
        hone_affine at;
        int64_t lo, hi;
        if (from && s->kind == HONE_X_FN && s->fn == HONE_FN_sub && in->x[s->a].kind == HONE_X_INDEX &&
            in->x[s->a].a == slots->id[time]) {
            border again = {.load = -1};
            if (out->size || !split(c, s->b, 1, &again) || again.c != from->c || again.load != from->load)
                return false;
            out->step = stride, out->size = size;
            continue;
        }
        if (!hone_affine_expr(&c->sized, slots, sub, &at)) return false;
        if (!from && at.k[time] == 1 && !out->size) {
            for (int q = 0; q < slots->n; q++)
                if (q != time && at.k[q]) return false;
            if (at.c) return false;
            out->step = stride, out->size = size;
            continue;
        }
        hone_affine_range(slots, &at, &lo, &hi);
        if (at.k[time] || lo < 0 || hi >= size || !hone_affine_move(slots, &at, stride, &out->at))
            return false;
    }
    return out->size > 0;
}

/* ---- the step ------------------------------------------------------------------------------------------ */
static void copy_rows(const splice *d, char *to, const char *from, int64_t step, int64_t rows) {
    if (step == d->row && d->y_step == d->row) memcpy(to, from, (size_t)(rows * d->row) * d->bytes);
    else
        for (int64_t t = 0; t < rows;
             t++, to += d->y_step * (int64_t)d->bytes, from += step * (int64_t)d->bytes)
            memcpy(to, from, (size_t)d->row * d->bytes);
}
static void clear_rows(const splice *d, char *to, int64_t rows) {
    for (int64_t t = 0; t < rows; t++)
        memset(to + t * d->y_step * (int64_t)d->bytes, 0, (size_t)d->row * d->bytes);
}
/* Rows first … last-1 of y from rows of a part that begin at `first - less` there; what the part does not
   have is zeros. */
static void put_rows(const splice *d, const part *p, const char *from, char *y, int64_t first, int64_t last,
                     int64_t less) {
    const int64_t unit = (int64_t)d->bytes;
    int64_t begin = less > first ? less : first, end = p->size + less < last ? p->size + less : last;
    if (begin > last) begin = last;
    if (end < begin) end = begin;
    clear_rows(d, y + first * d->y_step * unit, begin - first);
    if (end > begin)
        copy_rows(d, y + begin * d->y_step * unit, from + (begin - less) * p->step * unit, p->step,
                  end - begin);
    clear_rows(d, y + end * d->y_step * unit, last - end);
}
static hone_status tile(const hone_step *s, void *const *base, int64_t tile_number, void *scratch) {
    const splice *d = s->data;
    const int64_t first = tile_number % d->chunks * d->chunk,
                  last = first + d->chunk < d->rows ? first + d->chunk : d->rows;
    int64_t rest = tile_number / d->chunks, a = d->a.at.c, b = d->b.at.c, lens = d->lens_at.c, y = 0,
            border_at = d->border;
    (void)scratch;
    for (int k = d->n_outer - 1; k >= 0; k--) {
        const int64_t i = rest % d->extent[k];
        rest /= d->extent[k], y += i * d->by_y[k];
        a += i * d->a.at.k[d->slot[k]], b += i * d->b.at.k[d->slot[k]], lens += i * d->lens_at.k[d->slot[k]];
    }
    const int64_t unit = (int64_t)d->bytes;
    if (d->lens >= 0) border_at += ((const int32_t *)(const void *)hone_ref_at(s->ref[d->lens], base))[lens];
    /* it may be anywhere, far outside too */
    const int64_t middle = border_at < first ? first : border_at > last ? last : border_at;
    char *to = hone_ref_at(s->ref[d->y], base) + y * unit;
    put_rows(d, &d->a, hone_ref_at(s->ref[d->a.tensor], base) + a * unit, to, first, middle, 0);
    put_rows(d, &d->b, hone_ref_at(s->ref[d->b.tensor], base) + b * unit, to, middle, last, border_at);
    return HONE_OK;
}
hone_status hone_cpu_splice(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                            bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    const hone_x *e = in->x + st->value, *cond = e->kind == HONE_X_SELECT ? in->x + e->a : NULL;
    const hone_dtype type = in->tensor[st->tensor].dtype;
    hone_slots_of slots;
    (void)end;
    if (!cond || st->reduce || st->how || !st->identity || st->over >= 0 || st->skip || st->saturate ||
        cond->kind != HONE_X_FN || cond->fn != HONE_FN_lt || in->x[cond->a].kind != HONE_X_INDEX ||
        (type != HONE_DTYPE_F32 && type != HONE_DTYPE_F16 && type != HONE_DTYPE_BF16))
        return HONE_OK;
    if (!hone_affine_slots(&c->sized, stage, stage, &slots) || !slots.injective || slots.n_domain < 2)
        return HONE_OK;
    splice d = {.y = st->tensor, .lens = -1, .outer = 1, .bytes = hone_dtypes[type].bytes};
    border from = {.load = -1};
    const int inner = slots.n_domain - 1;
    const int64_t *stride = c->stride[st->tensor];
    int time = -1;
    for (int k = 0; k < slots.n_domain; k++)
        if (slots.id[k] == in->x[cond->a].a) time = k;
    if (time < 0 || time == inner || stride[slots.dim[inner]] != 1 || !split(c, cond->b, 1, &from))
        return HONE_OK;
    if (!find_part(c, &slots, e->b, time, NULL, &d.a) || !find_part(c, &slots, e->c, time, &from, &d.b) ||
        d.a.at.k[inner] != 1 || d.b.at.k[inner] != 1 || in->tensor[d.a.tensor].dtype != type ||
        in->tensor[d.b.tensor].dtype != type)
        return HONE_OK;
    if (from.load >= 0) {
        d.lens = in->x[from.load].a;
        if (in->tensor[d.lens].dtype != HONE_DTYPE_I32 ||
            !hone_affine_inside(&c->sized, &slots, from.load, &d.lens_at) || d.lens_at.k[time] ||
            d.lens_at.k[inner])
            return HONE_OK;
    }
    d.border = from.c, d.rows = slots.extent[time], d.row = slots.extent[inner],
    d.y_step = stride[slots.dim[time]];
    for (int k = 0; k < inner; k++) {
        if (k == time) continue;
        d.slot[d.n_outer] = k, d.extent[d.n_outer] = slots.extent[k],
        d.by_y[d.n_outer++] = stride[slots.dim[k]];
        d.outer *= slots.extent[k];
    }
    const int64_t all = d.outer * d.rows * d.row, each = hone_share_of(all, LEAST, MOST, c->how.threads);
    d.chunk = each / d.row > 1 ? each / d.row : 1, d.chunks = hone_ceil_div(d.rows, d.chunk);
    const splice *kept = hone_arena_copy(m->arena, &d, sizeof d);
    if (!kept) return hone_steps_no_memory();
    hone_step step = {.tactic = "splice", .tiles = d.outer * d.chunks, .tile = tile, .data = kept};
    step.serial = all <= each, *done = true;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
