/* SPDX-License-Identifier: Apache-2.0
   contract: sums of products as matrix multiplications: MatMul, Gemm, convolutions, attention, the input side of recurrent cells, and any user's op of that form.

   A stage  t[domain] = sum(reduced) L * R  with affine loads is C = A B once its indices are sorted:
        N      the last indices of the domain, as far as only one operand (then called B) knows them: columns, contiguous in the result
        M      those that only the other operand (A) knows: rows
        batch  the rest of the domain          K  the reduced ones
   Operands are packed into panels (kernels/gemm.h) on the fly, constants once a model. Where B's subscripts may fall outside (a convolution's padding), packing
   writes zeros: an implicit im2col that never exists as a whole. Finished blocks go through the stage that reads t, as its epilogue. */
#include "device/cpu/contract.h"
#include "device/cpu/planes.h"
#include "device/cpu/turn.h"
#include "device/cpu/winograd.h"
#include "device/wisdom.h"

#include <math.h>
#include <string.h>

/* Factors of a product: loads, and numbers that no index changes. Integers: loads of 8 bits, each less its zero point. */
typedef struct {
    int32_t load[2], zero[2]; /* zero: -1, none */
    int n;
    double alpha;
} product;
static bool factors(const hone_cpu_call *c, int32_t x, product *p) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + x;
    bool whole = e->type == HONE_I32;
    if (e->kind == HONE_X_FN && e->fn == HONE_FN_mul) return factors(c, e->a, p) && factors(c, e->b, p);
    int32_t zero = -1;
    if (whole && e->kind == HONE_X_FN && e->fn == HONE_FN_sub) {
        x = e->a, zero = e->b, e = in->x + x;
        if (e->kind != HONE_X_LOAD || in->x[zero].kind != HONE_X_LOAD || in->tensor[in->x[zero].a].dtype != in->tensor[e->a].dtype)
            return false;
    }
    if (e->kind == HONE_X_LOAD) {
        if (p->n == 2) return false;
        p->zero[p->n] = zero, p->load[p->n++] = x;
        return true;
    }
    if (whole) return false;
    if (e->kind == HONE_X_CONST) {
        p->alpha *= (double)e->k.f32;
        return true;
    }
    if (e->kind == HONE_X_CAST && in->x[e->a].kind == HONE_X_PARAM) {
        int q = in->x[e->a].a;
        p->alpha *= (double)(float)(in->param_real[q] ? c->param[q].f : (double)c->param[q].i);
        return true;
    }
    return false;
}
enum { STREWN_PANELS = 4, STREWN_DEPTH = 256 };
/* The numbers that a choice is made for, and the choice: wisdom's where there is one, else what stands there already. */
static hone_problem problem_of(const hone_contract *d) {
    hone_problem p = {.kind = d->plane ? HONE_PROBLEM_PLANE : d->bytes ? HONE_PROBLEM_BYTES : HONE_PROBLEM_SUM};
    hone_problem_name(&p, d->plane     ? d->plane->name
                          : d->each_i8 ? d->each_i8->name
                          : d->bytes   ? d->kernel_i8->name
                          : d->each    ? d->each->name
                                       : d->kernel->name);
    if (d->plane) {
        const int64_t number[] = {d->batch, d->shape.oh, d->shape.ow, d->shape.kh, d->shape.kw, d->bytes};
        memcpy(p.number, number, sizeof number);
        return p;
    }
    const int64_t number[] = {d->m,
                              d->n,
                              d->k,
                              d->batch,
                              d->taps,
                              d->piece,
                              !!d->packed_a,
                              !!d->packed_b,
                              !!d->each,
                              d->direct,
                              d->bytes ? 0 : hone_winograd_able(d)};
    memcpy(p.number, number, (d->bytes ? 8 : 11) * sizeof *number);
    if (d->bytes) p.mr = d->mr, p.nr = d->nr;
    else
        p.turns = d->kernel->turn != NULL, p.vector = d->kernel->vector, p.widths = d->kernel->widths,
        memcpy(p.rows, d->kernel->rows, sizeof p.rows);
    return p;
}
static void follow(hone_contract *d, const hone_choice *c, int threads) {
    const int64_t *knob = c->knob;
    if (d->plane) d->plane_rows = knob[0];
    else if (d->bytes) d->mt = knob[HONE_BYTES_ROWS], d->nt = knob[HONE_BYTES_COLUMNS];
    else {
        const int v = (int)knob[HONE_KNOB_VECTORS];
        d->nr = v * d->kernel->vector, d->mr = d->kernel->rows[v - 1];
        if (knob[HONE_KNOB_THREADS] == threads) d->mt = knob[HONE_KNOB_ROWS], d->nt = knob[HONE_KNOB_COLUMNS];
        else hone_contract_blocks(d, threads); /* other numbers of threads are cut as estimated: the same bits come out */
        d->kc = knob[HONE_KNOB_DEPTH];
        d->way = knob[HONE_KNOB_TILE] ? (int)knob[HONE_KNOB_TILE] : 1;
    }
}
static void chose(const hone_contract *d, int threads, hone_decision *to) { /* what it came to */
    if (d->plane) to->choice = (hone_choice){{d->plane_rows}};
    else if (d->bytes) to->choice = (hone_choice){{d->mt, d->nt}};
    else to->choice = (hone_choice){{d->nr / d->kernel->vector, d->mt, d->nt, d->kc, hone_winograd_tile(d), threads}};
}

/* A zero point moves with the rows (or columns) and batches of its own operand only. */
static bool zero_point(hone_recipe_maker *s, const hone_cpu_call *c, hone_contract *d, int32_t x, const int *along, int n,
                       const int *group_b, int nb, hone_zero_point *out) {
    out->tensor = -1;
    if (x < 0) return true;
    hone_affine at;
    if (!hone_affine_inside(&c->sized, &d->slots, x, &at)) return false;
    out->tensor = c->instance->x[x].a, out->is_signed = c->instance->tensor[out->tensor].dtype == HONE_DTYPE_I8, out->c = at.c;
    bool moves = false;
    for (int k = 0; k < n; k++) moves |= at.k[along[k]] != 0;
    if (moves && !(out->at = hone_affine_table(s->arena, &d->slots, along, n, &at))) return false;
    int64_t many = moves ? 1 : 0;
    for (int k = 0; moves && k < n; k++) many *= d->slots.extent[along[k]];
    out->in_row = true;
    for (int64_t k = 0; k < many; k++) out->in_row &= out->at[k] == k;
    for (int k = 0; k < nb; k++) out->by_batch[k] = at.k[group_b[k]], at.k[group_b[k]] = 0;
    for (int k = 0; k < n; k++) at.k[along[k]] = 0;
    for (int k = 0; k < d->slots.n; k++)
        if (at.k[k] && d->slots.extent[k] > 1) return false;
    return true;
}
static bool integers(hone_recipe_maker *s, const hone_cpu_call *c, hone_contract *d, int32_t zero_a, int32_t zero_b, const int *group_m,
                     int nm, const int *group_b, int nb) {
    const hone_tensor *t = c->instance->tensor;
    d->kernel_i8 = hone_gemm_i8_best(), d->levels = hone_epilogue_best();
    /* constant weights are mostly i8 with a zero point of 0: taken as they are, rows need no sums */
    const bool other = d->columns_known && d->kernel_i8->run_u;
    d->run_i8 = other ? d->kernel_i8->run_u : d->kernel_i8->run;
    d->a_signed = d->each_i8 ? d->each_i8->a_signed : !other, d->b_signed = d->each_i8 || other || d->kernel_i8->b_signed;
    d->flip_a = (t[d->a.tensor].dtype == HONE_DTYPE_I8) == d->a_signed ? 0 : 0x80;
    d->flip_b = (t[d->b.tensor].dtype == HONE_DTYPE_I8) == d->b_signed ? 0 : 0x80;
    if (!zero_point(s, c, d, zero_a, group_m, nm, group_b, nb, &d->zero_a) ||
        !zero_point(s, c, d, zero_b, d->group_n, d->n_n, group_b, nb, &d->zero_b))
        return false;
    return !((d->a.n_bounded || d->each_i8) && d->zero_a.at) && !(d->b.n_bounded && d->zero_b.at); /* what is outside is one number */
}
/* Rows: what only A knows. With constant columns several pictures count as batches instead, unless they are tiny: tables have an entry a row, and plans for
   other numbers of pictures share them. */
static bool is_row(const hone_contract *d, int k) {
    return k >= d->first_m && hone_contract_knows(&d->a, k) && !hone_contract_knows(&d->b, k);
}
static int rows_from(const hone_contract *d, int from) {
    int64_t m = 1;
    if (!d->columns_known) return 0;
    for (int k = from - 1; k >= 0; k--) {
        int64_t extent = d->slots.extent[k];
        if (!hone_contract_knows(&d->a, k) || hone_contract_knows(&d->b, k)) continue;
        if (extent > 1 && m >= 32 && (d->slots.dim[k] == 0 || m * extent > 1 << 16)) return k + 1; /* dim 0: the pictures */
        m *= extent;
    }
    return 0;
}
static bool analyse(hone_recipe_maker *s, const hone_cpu_call *c, int stage, bool epilogue, hone_contract *d, bool *depthwise) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    product p = {.n = 0, .alpha = 1};
    hone_affine_load l[2], first[2];
    d->bytes = in->x[st->value].type == HONE_I32;
    if (st->reduce != HONE_REDUCE_SUM || st->how || !st->identity || (in->x[st->value].type != HONE_F32 && !d->bytes)) return false;
    if (!hone_affine_slots(&c->sized, stage, epilogue ? stage + 1 : stage, &d->slots) || !factors(c, st->value, &p) || p.n != 2)
        return false;
    for (int k = 0; k < 2; k++)
        if (!hone_affine_of_load(&c->sized, &d->slots, p.load[k], d->bytes ? HONE_AFFINE_BYTES : HONE_AFFINE_FACTOR, p.zero[k], l + k,
                                 first + k))
            return false;
    const hone_slots_of *w = &d->slots;
    /* B knows the last index that is longer than 1 */
    int last = w->n_domain - 1, b = -1;
    while (last > 0 && w->extent[last] == 1) last--;
    if (last < 0) return false;
    if (hone_contract_knows(l, last) != hone_contract_knows(l + 1, last)) b = hone_contract_knows(l + 1, last) ? 1 : 0;
    bool each = false; /* both know it: the weights are those that are constant, the other lies in a row */
    for (int k = 0; k < 2 && b < 0 && hone_contract_knows(l, last) && c->constant; k++)
        if (c->constant[l[k].tensor] && !l[k].n_bounded && l[1 - k].at.k[last] == 1) b = k, each = true;
    if (b < 0 || first[b].tensor >= 0 || (first[1 - b].tensor >= 0 && first[1 - b].n_bounded)) return false;
    const hone_affine_load *early = first + (1 - b);
    d->columns_known = c->constant && c->constant[l[b].tensor];
    for (int k = 0; k < 2; k++) { /* a factor of halves must be packed, which widens it */
        const hone_dtype t = in->tensor[l[k].tensor].dtype;
        if (t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16) *(k == b ? &d->stored_b : &d->stored_a) = t;
    }
    d->a = l[1 - b], d->b = l[b], d->first_tensor = early->tensor, d->first_at = early->at.c, d->alpha = (float)p.alpha;
    if (d->bytes && w->over >= 0) return false;
    if (w->over >= 0) d->over_a = d->a.at.k[w->over], d->over_b = d->b.at.k[w->over], d->over_out = c->stride[st->tensor][w->dim[w->over]];
    if (early->tensor >= 0) /* the same walk over another tensor */
        for (int k = 0; k < w->n; k++)
            if (k != w->over && w->extent[k] > 1 && early->at.k[k] != d->a.at.k[k]) return false;
    int from = last;
    while (from > 0 && !each &&
           (w->extent[from - 1] == 1 || (hone_contract_knows(&d->b, from - 1) && !hone_contract_knows(&d->a, from - 1))))
        from--;
    while (from < last && w->extent[from] == 1) from++;
    int group_m[MAX_SLOTS], group_b[MAX_SLOTS], group_k[MAX_SLOTS], nm = 0, nb = 0, nk = 0;
    d->n_n = 0, d->m = d->n = d->k = d->batch = 1;
    for (int k = from; k < w->n_domain; k++) d->group_n[d->n_n++] = k, d->n *= w->extent[k];
    d->first_m = rows_from(d, from);
    for (int k = 0; k < from; k++) {
        if (is_row(d, k)) group_m[nm++] = k, d->m *= w->extent[k];
        else if (w->extent[k] > 1) group_b[nb++] = k, d->batch *= w->extent[k];
    }
    if (nb > MAX_BATCH || (each && (w->over >= 0 || d->n > HONE_CONTRACT_KC))) return false;
    if (each && d->bytes) d->each_i8 = hone_depthwise_i8_best();
    else if (each) d->each = hone_depthwise_rows_best();
    for (int k = w->n_domain; k < w->n; k++) { /* K in the order in which A lies */
        int q = nk++;
        for (; q > 0 && d->a.at.k[group_k[q - 1]] < d->a.at.k[k]; q--) group_k[q] = group_k[q - 1];
        group_k[q] = k, d->k *= w->extent[k];
    }
    for (int q = 0; q < nk; q++) d->k_order = d->k_order * MAX_SLOTS + group_k[q];
    d->m_run = d->k_run = 1; /* the last index that is longer than 1 */
    for (int q = 0; q < nm; q++) d->m_run = w->extent[group_m[q]] > 1 ? w->extent[group_m[q]] : d->m_run;
    for (int q = 0; q < nk; q++) d->k_run = w->extent[group_k[q]] > 1 ? w->extent[group_k[q]] : d->k_run;
    if (d->m > (1 << 24) || d->n > (1 << 26) || d->k > (1 << 24) || d->batch > (1 << 22)) return false;
    *depthwise = !each && d->m == 1 && d->batch > 1 && d->b.n_bounded + d->n_n >= 1 && !d->a.n_bounded;
    hone_arena *a = s->arena;
    if (d->bytes && !integers(s, c, d, p.zero[1 - b], p.zero[b], group_m, nm, group_b, nb)) return false;
    /* strides of the flattened domain, which the epilogue counts in */
    hone_affine flat = {0};
    int64_t step = 1;
    for (int k = w->n_domain - 1; k >= 0; k--) flat.k[k] = step, step *= w->extent[k];
    d->at_m_a = hone_affine_table(a, w, group_m, nm, &d->a.at), d->at_m_domain = hone_affine_table(a, w, group_m, nm, &flat),
    d->at_k_a = hone_affine_table(a, w, group_k, nk, &d->a.at);
    d->at_k_b = hone_affine_table(a, w, group_k, nk, &d->b.at);
    if (!d->at_m_a || !d->at_m_domain || !d->at_k_a || !d->at_k_b) return false;
    d->n_batch = nb, d->batch_a = d->batch_b = 1;
    for (int k = nb - 1; k >= 0; k--) {
        int q = group_b[k];
        d->batch_extent[k] = w->extent[q], d->by[k].a = d->a.at.k[q], d->by[k].b = d->b.at.k[q], d->by[k].domain = flat.k[q];
        if (hone_contract_knows(&d->a, q)) d->by[k].radix_a = d->batch_a, d->batch_a *= w->extent[q];
        if (hone_contract_knows(&d->b, q)) d->by[k].radix_b = d->batch_b, d->batch_b *= w->extent[q];
    }
    d->piece = 1, d->taps = d->k;
    for (int k = nk - 1; k >= 0; k--) {
        bool moves = false;
        for (int q = 0; q < d->a.n_bounded; q++) moves |= d->a.bounded[q].k[group_k[k]] != 0;
        if (w->extent[group_k[k]] == 1) continue;
        if (moves || d->a.at.k[group_k[k]] != d->piece) break;
        d->piece *= w->extent[group_k[k]], d->taps /= w->extent[group_k[k]];
    }
    if (each) d->piece = 1, d->taps = d->k;
    else if (d->taps > 1 && d->piece < 8) d->piece = 0;
    for (int q = 0; q < d->a.n_bounded; q++) {
        d->low_k[q] = d->high_k[q] = 0;
        for (int k = 0; k < nk; k++) {
            int64_t far = d->a.bounded[q].k[group_k[k]] * (w->extent[group_k[k]] - 1);
            *(far < 0 ? d->low_k + q : d->high_k + q) += far;
        }
    }
    for (int q = 0; q < d->a.n_bounded; q++) { /* a window with hardly any place to be: the columns are then the weights' */
        for (int k = 0; k < nb; k++) d->by[k].edge[q] = d->a.bounded[q].k[group_b[k]];
        d->at_m_a_bounded[q] = hone_affine_table(a, w, group_m, nm, &d->a.bounded[q]),
        d->at_k_a_bounded[q] = hone_affine_table(a, w, group_k, nk, &d->a.bounded[q]);
        if (!d->at_m_a_bounded[q] || !d->at_k_a_bounded[q]) return false;
    }
    for (int q = 0; q < d->b.n_bounded; q++) {
        for (int k = 0; k < nb; k++)
            if (d->b.bounded[q].k[group_b[k]]) return false; /* a batch index inside a window: no convolution */
        if (!(d->at_k_bounded[q] = hone_affine_table(a, w, group_k, nk, &d->b.bounded[q]))) return false;
    }
    /* rows of N: the last index, and those before it that simply follow on in memory */
    d->run = w->extent[d->group_n[d->n_n - 1]], d->run_step = d->b.at.k[d->group_n[d->n_n - 1]];
    int outer = d->n_n - 1;
    while (outer > 0 && !d->b.n_bounded &&
           (w->extent[d->group_n[outer - 1]] == 1 || d->b.at.k[d->group_n[outer - 1]] == d->run * d->run_step))
        d->run *= w->extent[d->group_n[--outer]];
    d->rows = d->n / d->run;
    d->at_row_b = hone_affine_table(a, w, d->group_n, outer, &d->b.at);
    for (int q = 0; q < d->b.n_bounded; q++) {
        d->run_bounded[q] = d->b.bounded[q].k[d->group_n[d->n_n - 1]];
        if (!(d->at_row_bounded[q] = hone_affine_table(a, w, d->group_n, outer, &d->b.bounded[q]))) return false;
    }
    return d->at_row_b != NULL;
}
static void groups(const hone_contract *d, int *m, int *nm, int *b, int *nb) { /* slots of rows, and of batches */
    for (int k = 0; k < d->slots.n_domain && !(d->n_n && k >= d->group_n[0]); k++) {
        if (is_row(d, k)) m[(*nm)++] = k;
        else if (d->slots.extent[k] > 1) b[(*nb)++] = k;
    }
}
/* Where rows of sums go when they are the result itself: plain floats in a row. */
static hone_status place_rows(hone_recipe_maker *s, const hone_cpu_call *c, int stage, hone_contract *d, bool *fits) {
    const hone_stage *st = c->instance->stage + stage;
    const hone_tensor *t = c->instance->tensor + st->tensor;
    *fits = false;
    if (t->dtype != (d->bytes ? HONE_DTYPE_I32 : HONE_DTYPE_F32)) return HONE_OK;
    int64_t step = 1;
    for (int k = d->slots.n_domain - 1; k >= 0; k--) {
        bool in_n = d->n_n && k >= d->group_n[0];
        if (in_n && d->slots.extent[k] > 1 && c->stride[st->tensor][d->slots.dim[k]] != step) return HONE_OK;
        if (in_n) step *= d->slots.extent[k];
    }
    hone_affine out = {0};
    for (int k = 0; k < d->slots.n_domain; k++) out.k[k] = c->stride[st->tensor][d->slots.dim[k]];
    int group_m[MAX_SLOTS], group_b[MAX_SLOTS], nm = 0, nb = 0;
    groups(d, group_m, &nm, group_b, &nb);
    for (int k = 0; k < nb; k++) d->by[k].out = out.k[group_b[k]];
    if (!(d->at_m_out = hone_affine_table(s->arena, &d->slots, group_m, nm, &out)))
        return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    *fits = true;
    return HONE_OK;
}
hone_status hone_contract_over(hone_recipe_maker *s, const hone_cpu_call *c, int stage, bool begun, hone_contract **out, int64_t *tiles,
                               size_t *scratch_bytes) {
    *out = NULL;
    if (c->instance->stage[stage].reduce != HONE_REDUCE_SUM) return HONE_OK;
    hone_contract *d = HONE_NEW(s->arena, hone_contract);
    bool depthwise = false, fits = false;
    if (!d) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    d->slots.begun = begun;
    if (!analyse(s, c, stage, false, d, &depthwise)) return HONE_OK;
    d->kernel = hone_gemm_f32_best();
    hone_contract_panel(d, 1);
    if (begun && d->m == 1 && d->nr > 2 * d->kernel->vector && c->how.threads >= (d->kernel->turn ? 2 : 8))
        d->nr = 2 * d->kernel->vector; /* more to share: one row has the same bits by any width */
    d->out = c->instance->stage[stage].tensor;
    HONE_TRY(place_rows(s, c, stage, d, &fits));
    if (!fits || !hone_contract_packable(c, d, false, s->n_ref) || d->over_b || d->stored_a)
        return HONE_OK; /* weights known ahead: the only case worth it */
    d->packed_b = s->n_ref;
    HONE_TRY(hone_contract_keep_packed(s, d));
    d->direct = d->alpha == 1;
    hone_contract_blocks(d, 1); /* pieces of a recurrence are too short to share */
    hone_step step = {0};
    hone_contract_step(d, &step);
    *tiles = step.tiles, *scratch_bytes = step.scratch_bytes, *out = d;
    return HONE_OK;
}
/* Few channels: pixels as columns, wherever the weights are. */
static hone_status find_planes(hone_recipe_maker *s, const hone_cpu_call *c, hone_contract *d) {
    int pixel[MAX_SLOTS], other[MAX_SLOTS], n = 0, n_other = 0;
    if (d->bytes || (!d->packed_b && !hone_contract_packable(c, d, true, s->n_ref))) return HONE_OK;
    groups(d, pixel, &n, other, &n_other);
    if (d->packed_b) return hone_planes_find(s, d, pixel, n, true);
    HONE_TRY(hone_planes_find(s, d, d->group_n, d->n_n, false));
    if (d->planes) d->packed_a = s->n_ref;
    return HONE_OK;
}
/* What may be stored as bf16: A, and where rows are finished by a kernel of this file's, the residual and the result; each if it is nothing else as well. */
static uint64_t halves_of(const hone_contract *d, uint64_t ends) {
    const hone_simple *s = d->simple;
    const int more = d->direct && s ? s->residual.tensor : -1;
    uint64_t may = 0;
    if (d->direct && d->out < 63) may |= (uint64_t)1 << d->out;
    if (more >= 0 && more < 63) may |= (uint64_t)1 << more;
    if (d->a.tensor >= 0 && d->a.tensor < 63 && (d->a.tensor == more || !(ends >> d->a.tensor & 1))) may |= (uint64_t)1 << d->a.tensor;
    if (!s) return may;
    const hone_row_number *const number[] = {&s->bias, &s->lo, &s->hi, &s->times, &s->plus, &s->later};
    for (int k = 0; k < (s->then ? 6 : 3); k++)
        if (number[k]->tensor >= 0) may &= ~((uint64_t)1 << number[k]->tensor);
    return may;
}
/* Bytes that lie channels first, where channels last are wanted: what is read, what is made, and the call as it would be. */
typedef struct {
    hone_turn in, out;
    hone_cpu_call call;
    hone_strides stride[HONE_MAX_TENSORS];
} turned;
static hone_status contract(hone_recipe_maker *s, const hone_cpu_call *c, const turned *turn, int stage, int *end, bool *done) {
    hone_contract *d = HONE_NEW(s->arena, hone_contract);
    bool depthwise = false;
    if (!d) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    const hone_stage *st = c->instance->stage + stage;
    bool epilogue = stage + 1 < c->instance->n_stage && st[1].follows, fits = true;
    if (!analyse(s, c, stage, epilogue, d, &depthwise)) return HONE_OK;
    d->kernel = hone_gemm_f32_best();
    if (d->each_i8) d->mr = HONE_DEPTHWISE_I8_ROWS, d->nr = (int)d->n;
    else if (d->bytes) d->mr = d->kernel_i8->mr, d->nr = d->kernel_i8->nr;
    else hone_contract_panel(d, c->how.threads);
    if (!epilogue) HONE_TRY(place_rows(s, c, stage, d, &fits));
    if (!fits) return HONE_OK;
    if (depthwise) {
        if (d->stored_a || d->stored_b || !hone_contract_plane(d) || (d->bytes && d->k > 256))
            return HONE_OK; /* 256 * 255 * 255 < 2^24: exact in f32 */
    } else if (d->each || d->each_i8) {
        if (!hone_contract_packable(c, d, false, s->n_ref) || d->k > HONE_CONTRACT_KC || d->k < 2 || (d->each_i8 && d->batch_b != 1))
            return HONE_OK;
        d->packed_b = s->n_ref;
    } else {
        double work = (double)d->m * (double)d->n * (double)d->k * (double)d->batch;
        int next = s->n_ref;
        if (hone_contract_packable(c, d, false, next)) d->packed_b = next++;
        bool rows =
            d->bytes ? !(d->packed_b && d->m < 2 * d->mr) : !d->piece || d->stored_a; /* a kernel that walks A as it lies needs no copy */
        if (rows && hone_contract_packable(c, d, true, next)) d->packed_a = next;
        HONE_TRY(find_planes(s, c, d));
        bool walks = d->run_step == 1 || d->b.n_bounded || d->planes; /* B's columns lie in a row: packing is copying */
        if (work < 512 || (d->a.n_bounded && !d->packed_b && (d->bytes || d->m < 4)) || (d->m < 4 && !d->packed_b && !walks) ||
            (d->m == 1 && !d->packed_b && d->n < 64) || d->k < 2)
            return HONE_OK; /* packing would cost more than it saves */
        if ((d->stored_a && (!d->packed_a || d->packed_b)) || (d->stored_b && !d->packed_b))
            return HONE_OK; /* tile code widens them, too */
    }
    d->out = st->tensor;
    int acc = -1;
    if (epilogue) {
        acc = st->tensor, d->out = c->instance->stage[stage + 1].tensor;
        int group_m[MAX_SLOTS], group_b[MAX_SLOTS], nm = 0, nb = 0;
        groups(d, group_m, &nm, group_b, &nb);
        const bool columns = !d->plane && d->alpha == 1; /* where ends are the matrix kernel's own */
        const int able = hone_winograd_able(d);          /* what follows an activation of a square tile is tile code */
        const bool then = columns && !d->bytes && !hone_gemm_half_best(c->how.precision) && (!able || able >= HONE_SUM_LINE);
        if (d->slots.apart)
            d->simple = hone_epilogue_match(s->arena, c, &d->slots, stage + 1, acc, group_m, nm, group_b, nb, d->group_n[0], columns, then);
        if (d->simple && d->simple->inner && d->zero_a.at) d->simple = NULL; /* nobody reads its bytes back there */
        if (turn && !(d->bytes && d->packed_b && d->piece && (turn->out.tensor < 0 || (d->simple && d->simple->by_row)))) return HONE_OK;
        if (!d->simple) {
            hone_status made = hone_cpu_tilecode(s, c, stage + 1, acc, &d->epilogue);
            if (made == HONE_NOT_SUPPORTED) return HONE_OK;
            HONE_TRY(made);
            /* a store that may meet itself must run in order, in one piece */
            if (!d->slots.apart && hone_tilecode_whole(d->epilogue)) return HONE_OK;
        }
        *end = stage + 2;
    }
    d->direct = !d->bytes && !d->plane && d->alpha == 1 &&
                (d->simple ? d->simple->run == d->simple->kernel->f32 && d->simple->lo.same && d->simple->hi.same : !d->epilogue);
    /* to copy rows takes about as long as to multiply them with one or two panels */
    d->strewn = !d->bytes && !d->plane && !d->piece && !d->packed_a && d->m > HONE_GEMM_FEW &&
                (d->kernel->turn || d->n <= STREWN_PANELS * d->nr) && d->k <= STREWN_DEPTH;
    if ((d->bytes && d->packed_b) || d->strewn) d->outside = hone_contract_outside(s->arena, d);
    if (d->each_i8) hone_depthwise_int_choose(s->arena, d);
    else if (d->bytes && d->packed_b && !d->packed_a && !(hone_contract_int_fours(s->arena, d) && hone_contract_int_taps(s->arena, d)))
        return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    if (d->bytes) hone_contract_int_blocks(d, c->how.threads);
    else if (!d->plane) hone_contract_blocks(d, c->how.threads);
    const hone_choice *choice = NULL;
    s->decision = NULL;
    if (c->how.precision == HONE_DTYPE_BF16) d->halves = halves_of(d, epilogue ? st[1].uses : 0);
    if (c->how.precision == HONE_DTYPE_F16) HONE_TRY(hone_winograd_choose(s, d, c->how.threads, hone_gemm_half_best(HONE_DTYPE_F16)));
    const bool half = !d->winograd && hone_contract_half_choose(s->arena, d, &c->how);
    if (!half && !d->winograd) {
        const hone_problem problem = problem_of(d);
        HONE_TRY(hone_cpu_decide(s, c, &problem, &choice));
        if (choice) follow(d, choice, c->how.threads);
        HONE_TRY(hone_winograd_choose(s, d, c->how.threads, NULL));
    }
    if (half || d->winograd || (d->packed_b && (choice || !hone_planes_pays(d)))) d->planes = NULL; /* what was measured is followed */
    if (d->planes) {
        s->decision = NULL, d->packed_a = d->packed_b ? 0 : d->packed_a;
        hone_planes_cut(d, c->how.threads);
    }
    HONE_TRY(hone_contract_keep_packed(s, d));
    if (s->decision) chose(d, c->how.threads, s->decision);
    uint64_t uses = epilogue ? (st->uses | st[1].uses) & ~((uint64_t)1 << acc) : st->uses;
    *done = true;
    if (turn && turn->in.tensor >= 0) {
        HONE_TRY(hone_turn_step(s, &turn->in, s->n_ref, false));
        if (!(st[1].uses >> d->a.tensor & 1)) uses &= ~((uint64_t)1 << d->a.tensor);
        uses |= (uint64_t)1 << s->n_ref, d->a.tensor = s->n_ref++;
    }
    if (d->winograd) return hone_winograd_steps(s, d, uses);
    if (!d->plane && !d->planes && !d->packed_b && d->m > d->mt &&
        s->n_ref < HONE_MAX_REFS) { /* several blocks of rows want the same columns: pack them once */
        int64_t bytes = (int64_t)hone_contract_packed_bytes(d, false);
        if (bytes <= (int64_t)64 << 20) {
            d->shared = s->n_ref++;
            if (!d->bytes) hone_contract_blocks(d, c->how.threads);
            if (choice) follow(d, choice, c->how.threads);
            if (s->decision) chose(d, c->how.threads, s->decision);
            hone_part pack = {.uses = (uint64_t)1 << d->b.tensor | (uint64_t)1 << d->shared, .buffer = d->shared, .bytes = bytes};
            hone_contract_pack_step(d, &pack.step);
            HONE_TRY(hone_cpu_add(s, pack));
            uses |= (uint64_t)1 << d->shared;
        }
    }
    if (d->half) HONE_TRY(hone_contract_half_before(s, c, d, &uses));
    hone_part part = {.step.data = d, .uses = uses, .buffer = -1};
    if (turn && turn->out.tensor >= 0) {
        part.uses = (uses & ~((uint64_t)1 << d->out)) | (uint64_t)1 << s->n_ref, d->simple->out.tensor = part.buffer = s->n_ref++;
        part.bytes = turn->out.batches * turn->out.channels * turn->out.pixels;
    }
    d->n_ref = s->n_ref;
    hone_contract_step(d, &part.step);
    HONE_TRY(hone_cpu_add(s, part));
    return part.buffer < 0 ? HONE_OK : hone_turn_step(s, &turn->out, part.buffer, true);
}
/* Is it a product of bytes with constant weights that would gather what it reads byte by byte, or have pixels as columns? Then it is worth to turn pictures around. */
enum { TURN_DEPTH = 64, TURN_COLUMNS = 16 };
static hone_status turns(const hone_cpu_call *c, int stage, turned *t, bool *any) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    hone_turn out = {.tensor = -1};
    const bool epilogue = stage + 1 < in->n_stage && st[1].follows;
    *any = false;
    if (in->x[st->value].type != HONE_I32 || !epilogue || !c->constant) return HONE_OK;
    const bool result = hone_turn_able(c, st[1].tensor, &out);
    hone_turn some;
    bool read = false;
    for (int k = 0; k < in->n_tensor; k++) read |= in->tensor[k].role == HONE_ROLE_IN && !c->constant[k] && hone_turn_able(c, k, &some);
    if (!result && !read) return HONE_OK;
    hone_recipe_maker look = {.arena = hone_arena_create()};
    hone_contract *d = look.arena ? HONE_NEW(look.arena, hone_contract) : NULL;
    bool depthwise = false;
    if (d && analyse(&look, c, stage, epilogue, d, &depthwise) && !depthwise && !d->each_i8 && d->k >= TURN_DEPTH) {
        const bool plain = !d->b.n_bounded && d->run_step == 1; /* columns that are copied as they lie */
        const bool columns = c->constant[d->b.tensor], rows = !columns && c->constant[d->a.tensor] && !plain;
        const int picture = columns ? d->a.tensor : d->b.tensor;
        *t = (turned){.in.tensor = -1, .out.tensor = -1, .call = *c};
        if ((columns ? !d->piece && d->n >= TURN_COLUMNS : rows && d->m >= TURN_COLUMNS) && !c->constant[picture]) {
            if (hone_turn_able(c, picture, &some)) t->in = some;
            if (result && rows) t->out = out;
        }
        *any = t->in.tensor >= 0 || t->out.tensor >= 0;
    }
    hone_arena_destroy(look.arena);
    if (!d) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    memcpy(t->stride, c->stride, sizeof *c->stride * (size_t)in->n_tensor);
    t->call.stride = t->stride;
    if (*any && t->in.tensor >= 0) hone_turn_strides(c, &t->in, t->stride[t->in.tensor]);
    if (*any && t->out.tensor >= 0) hone_turn_strides(c, &t->out, t->stride[t->out.tensor]);
    return HONE_OK;
}
hone_status hone_cpu_contract(hone_recipe_maker *s, const hone_cpu_call *c, int stage, int *end, bool *done) {
    *done = false;
    if (c->instance->stage[stage].reduce != HONE_REDUCE_SUM) return HONE_OK;
    turned t;
    bool any = false;
    if (s->n_ref + 4 <= HONE_MAX_REFS) HONE_TRY(turns(c, stage, &t, &any));
    if (any) HONE_TRY(contract(s, &t.call, &t, stage, end, done));
    return *done ? HONE_OK : contract(s, c, NULL, stage, end, done);
}
