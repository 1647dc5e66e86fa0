/* SPDX-License-Identifier: Apache-2.0
   bits: finds products with constant weights of 2, 4 or 8 bits in blocks (MatMulNBits, and any program of
   that form):

        y[rows, c] = sum(g, s) (a[rows, g * block + s] else 0) * (f32(((b[c, g, s / per] >> s % per * bits) &
        mask) - zero) * scales[c, g])

   Subscripts and shifts are compared with these by their values at some places of the loops. Where the scale
   stands before the number it scales, A may be rounded to 8 bits a block.
   Not found here: weights whose scales are picked by a table (g_idx), blocks above 256. */
#include "device/cpu/bits.h"

#include <string.h>

typedef struct {
    const hone_cpu_call *call;
    const hone_instance *in;
    int32_t column, group, place; /* the indices c, g, s */
    hone_bits_product *d;
} finding;
static int32_t without_casts(const hone_instance *in, int32_t x) {
    while (in->x[x].kind == HONE_X_CAST) x = in->x[x].a;
    return x;
}
static bool is(const hone_instance *in, int32_t x, hone_fn fn) {
    return in->x[x].kind == HONE_X_FN && in->x[x].fn == fn;
}
static bool constant(const hone_cpu_call *c, int t) { return hone_cpu_constant(c, t) != NULL; }
static bool whole(const hone_instance *in, int32_t x, int64_t *out) {
    const hone_x *e = in->x + x;
    *out = e->type == HONE_I32 ? e->k.i32 : e->k.i64;
    return e->kind == HONE_X_CONST && (e->type == HONE_I32 || e->type == HONE_I64);
}
/* An expression of c, g and s alone: no loads. */
static bool of_indices(const finding *f, int32_t x) {
    const hone_x *e = f->in->x + x;
    switch (e->kind) {
    case HONE_X_CONST: return e->type == HONE_I64 || e->type == HONE_I32;
    case HONE_X_PARAM: return !f->in->param_real[e->a];
    case HONE_X_INDEX: return e->a == f->column || e->a == f->group || e->a == f->place;
    case HONE_X_CAST: return (e->type == HONE_I64 || e->type == HONE_I32) && of_indices(f, e->a);
    case HONE_X_FN:
        return (e->type == HONE_I64 || e->type == HONE_I32) && of_indices(f, e->a) &&
               (hone_fns[e->fn].arity < 2 || of_indices(f, e->b)) && hone_fns[e->fn].arity < 3;
    default: return false;
    }
}
/* What an expression should be:  c * by_c + (g * by_g / over_g + s * by_s / over_s) % most. */
typedef struct {
    int64_t by_c, by_g, over_g, by_s, over_s, most;
} form;
static bool says(const finding *f, int32_t x, form w) {
    const hone_bits_product *d = f->d;
    if (!of_indices(f, x) || f->in->n_index > 64) return false;
    int64_t index[64] = {0};
    const int64_t c[] = {0, 1, d->n / 2, d->n - 1}, g[] = {0, 1, 2, 3, 4, 5, d->blocks / 2, d->blocks - 1},
                  s[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, d->block / 2, d->block - 1};
    for (size_t i = 0; i < 4; i++)
        for (size_t k = 0; k < 8; k++)
            for (size_t q = 0; q < 11; q++) {
                index[f->column] = c[i] < d->n ? c[i] : 0, index[f->group] = g[k] < d->blocks ? g[k] : 0,
                index[f->place] = s[q];
                const hone_scalar v = hone_interpret_x(f->in, f->call->param, index, x);
                const int64_t got = f->in->x[x].type == HONE_I32 ? v.i32 : v.i64;
                const int64_t inner =
                    index[f->group] * w.by_g / w.over_g + index[f->place] * w.by_s / w.over_s;
                if (got != index[f->column] * w.by_c + (w.most ? inner % w.most : inner)) return false;
            }
    return true;
}
/* (tensor[…] >> shift) & mask, of bytes; where mask says how many bits. */
static bool field(const finding *f, int32_t x, int32_t *load, int32_t *shift, int64_t *mask) {
    const hone_instance *in = f->in;
    x = without_casts(in, x);
    if (!is(in, x, HONE_FN_band) || !whole(in, in->x[x].b, mask) || !is(in, in->x[x].a, HONE_FN_shr))
        return false;
    const hone_x *e = in->x + in->x[x].a;
    *load = without_casts(in, e->a), *shift = e->b;
    return in->x[*load].kind == HONE_X_LOAD && in->x[*load].c < 0 &&
           in->tensor[in->x[*load].a].dtype == HONE_DTYPE_U8;
}
static bool find_weights(finding *f, int32_t x) {
    const hone_instance *in = f->in;
    hone_bits_product *d = f->d;
    int32_t load, shift;
    int64_t mask;
    if (!field(f, x, &load, &shift, &mask) || (mask != 3 && mask != 15 && mask != 255)) return false;
    const hone_x *e = in->x + load;
    d->bits = mask == 3 ? 2 : mask == 15 ? 4 : 8, d->b = e->a;
    const int64_t per = 8 / d->bits, *stride = f->call->stride[d->b];
    if (e->flat || in->tensor[d->b].rank != 3 || d->block % 16 || d->block > HONE_BITS_MOST_BLOCK)
        return false;
    return says(f, in->list[e->b], (form){1, 0, 1, 0, 1, 0}) &&
           says(f, in->list[e->b + 1], (form){0, 1, 1, 0, 1, 0}) &&
           says(f, in->list[e->b + 2], (form){0, 0, 1, 1, per, 0}) &&
           says(f, shift, (form){0, 0, 1, d->bits, 1, 8}) && stride[2] == 1 && stride[1] == d->block / per &&
           stride[0] == d->blocks * stride[1];
}
static bool is_float(hone_dtype t) {
    return t == HONE_DTYPE_F32 || t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16;
}
static bool find_zero(finding *f, int32_t x) {
    const hone_instance *in = f->in;
    hone_bits_product *d = f->d;
    int32_t load, shift;
    int64_t mask, k;
    x = without_casts(in, x), d->zero = -1;
    if (whole(in, x, &k)) return k == (int64_t)1 << (d->bits - 1);
    if (in->x[x].kind == HONE_X_LOAD) {
        d->zero = in->x[x].a, d->zero_dtype = in->tensor[d->zero].dtype;
        return in->x[x].flat && in->x[x].c < 0 && is_float(d->zero_dtype) &&
               says(f, in->list[in->x[x].b], (form){d->blocks, 1, 1, 0, 1, 0});
    }
    if (!field(f, x, &load, &shift, &mask) || mask != (1 << d->bits) - 1 || !in->x[load].flat) return false;
    d->zero = in->x[load].a, d->zero_dtype = HONE_DTYPE_U8;
    return says(f, in->list[in->x[load].b], (form){(d->blocks * d->bits + 7) / 8, d->bits, 8, 0, 1, 0}) &&
           says(f, shift, (form){0, d->bits, 1, 0, 1, 8});
}
/* A: rows of K values that follow on, of which the last block may lack some. */
static bool find_rows(finding *f, const hone_slots_of *slots, int32_t x, hone_affine *at) {
    const hone_instance *in = f->in;
    const hone_x *e = in->x + x;
    hone_bits_product *d = f->d;
    const int column = slots->n_domain - 1, group = slots->n_domain, place = group + 1;
    *at = (hone_affine){0};
    if (e->kind != HONE_X_LOAD || e->flat) return false;
    d->a = e->a, d->a_dtype = in->tensor[e->a].dtype, d->k = hone_bits_deep(d);
    if (!is_float(d->a_dtype)) return false;
    for (int k = 0; k < in->tensor[e->a].rank; k++) {
        hone_affine s;
        int64_t lo, hi;
        const int64_t size = f->call->param[in->tensor[e->a].dim[k]].i;
        if (!hone_affine_expr(&f->call->sized, slots, in->list[e->b + k], &s)) return false;
        hone_affine_range(slots, &s, &lo, &hi);
        if (!hone_affine_move(slots, &s, f->call->stride[e->a][k], at)) return false;
        if (s.k[place] == 1) d->k = size < d->k ? size : d->k;
        if (lo >= 0 && hi < size) continue;
        if (e->c < 0 || in->x[e->c].kind != HONE_X_CONST || in->x[e->c].k.f32 != 0 || s.c ||
            s.k[place] != 1 || s.k[group] != d->block)
            return false;
        for (int q = 0; q < slots->n_domain; q++)
            if (s.k[q]) return false;
    }
    return at->k[place] == 1 && at->k[group] == d->block && at->k[column] == 0 &&
           d->k > hone_bits_deep(d) - d->block;
}
/* Is the stage only a copy of what the one before makes, perhaps in halves? */
static bool copies(const hone_instance *in, const hone_stage *z, int32_t of) {
    const hone_x *e = in->x + z->value;
    if (!z->follows || z->reduce || z->how || !z->identity || z->over >= 0 || z->saturate ||
        e->kind != HONE_X_LOAD || e->a != of || e->flat || e->c >= 0 ||
        in->tensor[z->tensor].rank != in->tensor[of].rank || z->n_index != in->tensor[of].rank)
        return false;
    for (int k = 0; k < z->n_index; k++) {
        const hone_x *sub = in->x + in->list[e->b + k];
        if (sub->kind != HONE_X_INDEX || sub->a != in->list[z->index0 + k]) return false;
    }
    return true;
}
static bool find(finding *f, const hone_slots_of *slots, int32_t value, hone_affine *at) {
    const hone_instance *in = f->in;
    hone_bits_product *d = f->d;
    if (!is(in, value, HONE_FN_mul)) return false;
    const hone_x *product = in->x + value;
    const bool first = in->x[product->a].kind == HONE_X_LOAD;
    const int32_t rows = first ? product->a : product->b, weight = first ? product->b : product->a;
    if (!is(in, weight, HONE_FN_mul)) return false;
    const hone_x *w = in->x + weight;
    const bool rounds = in->x[w->a].kind == HONE_X_LOAD;
    const hone_x *scale = in->x + (rounds ? w->a : w->b);
    const int32_t number = without_casts(in, rounds ? w->b : w->a);
    if (scale->kind != HONE_X_LOAD || !scale->flat || scale->c >= 0 || !is(in, number, HONE_FN_sub))
        return false;
    d->scales = scale->a, d->scale_dtype = in->tensor[scale->a].dtype;
    if (!is_float(d->scale_dtype) || !says(f, in->list[scale->b], (form){d->blocks, 1, 1, 0, 1, 0}))
        return false;
    if (!find_weights(f, in->x[number].a) || !find_zero(f, in->x[number].b) || !find_rows(f, slots, rows, at))
        return false;
    d->digits = rounds ? 1 : d->a_dtype == HONE_DTYPE_F32 ? 3 : 2;
    return constant(f->call, d->b) && constant(f->call, d->scales) &&
           (d->zero < 0 || constant(f->call, d->zero));
}
hone_status hone_cpu_bits(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end, bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    if (st->reduce != HONE_REDUCE_SUM || st->how != HONE_STORE_SET || !st->identity || st->over >= 0 ||
        st->skip || st->saturate || st->n_reduce != 2 || st->n_index < 1 ||
        in->x[st->value].type != HONE_F32 || !c->constant || !c->packs || m->n_ref + 2 > HONE_MAX_REFS)
        return HONE_OK;
    const bool copy = stage + 1 < in->n_stage && copies(in, st + 1, st->tensor);
    const int last = stage + copy;
    hone_slots_of slots;
    hone_affine at, out = {0};
    if (!hone_affine_slots(&c->sized, stage, last, &slots)) return HONE_OK;
    hone_bits_product d = {
        .kernel = hone_bits_best(), .out = in->stage[last].tensor, .packed = m->n_ref, .rows = m->n_ref + 1};
    finding f = {.call = c, .in = in, .d = &d};
    const int column = slots.n_domain - 1;
    f.column = slots.id[column], f.group = slots.id[column + 1], f.place = slots.id[column + 2];
    d.n = slots.extent[column], d.blocks = slots.extent[column + 1], d.block = slots.extent[column + 2];
    d.out_dtype = in->tensor[d.out].dtype;
    if (d.n < 1 || d.blocks < 1 || !is_float(d.out_dtype) || !find(&f, &slots, st->value, &at))
        return HONE_OK;
    int before[HONE_MAX_SLOTS];
    d.m = 1;
    for (int k = 0; k < slots.n_domain; k++) {
        before[k] = k, out.k[k] = c->stride[d.out][slots.dim[k]];
        if (k < column && __builtin_mul_overflow(d.m, slots.extent[k], &d.m)) return HONE_OK;
    }
    if (out.k[column] != 1 && d.n > 1) return HONE_OK;
    hone_bits_product *made = hone_arena_copy(m->arena, &d, sizeof d);
    if (!made) return hone_steps_no_memory();
    made->first_a = at.c;
    made->row_a = hone_affine_table(m->arena, &slots, before, column, &at),
    made->row_out = hone_affine_table(m->arena, &slots, before, column, &out);
    if (!made->row_a || !made->row_out) return hone_steps_no_memory();
    hone_bits_sizes(made, c->how.threads);
    *done = true, *end = last + 1;
    return hone_bits_steps(m, made);
}
