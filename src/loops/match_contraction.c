/* SPDX-License-Identifier: Apache-2.0
   match_contraction: see match_contraction.h. */
#include "loops/match_contraction.h"

bool hone_match_factors_of(const hone_sized *c, int32_t x, hone_match_factors *p) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + x;
    const bool whole = e->type == HONE_I32;
    if (e->kind == HONE_X_FN && e->fn == HONE_FN_mul)
        return hone_match_factors_of(c, e->a, p) && hone_match_factors_of(c, e->b, p);
    int32_t zero = -1;
    if (whole && e->kind == HONE_X_FN && e->fn == HONE_FN_sub) {
        x = e->a, zero = e->b, e = in->x + x;
        if (e->kind != HONE_X_LOAD || in->x[zero].kind != HONE_X_LOAD) return false;
        if (in->tensor[in->x[zero].a].dtype != in->tensor[e->a].dtype) return false;
    }
    if (e->kind == HONE_X_LOAD) {
        if (p->n == 2) return false;
        p->zero[p->n] = zero, p->load[p->n++] = x;
        return true;
    }
    if (e->type != HONE_F32) return false;
    if (e->kind == HONE_X_CONST) {
        p->alpha *= (double)e->k.f32;
        return true;
    }
    if (e->kind == HONE_X_CAST && in->x[e->a].kind == HONE_X_PARAM) {
        const int q = in->x[e->a].a;
        p->alpha *= (double)(float)(in->param_real[q] ? c->param[q].f : (double)c->param[q].i);
        return true;
    }
    return false;
}
bool hone_match_depends(const hone_affine_load *l, int slot) {
    bool is = l->at.k[slot] != 0;
    for (int k = 0; k < l->n_bounded; k++) is |= l->bounded[k].k[slot] != 0;
    return is;
}
/* Which operand is B: the one that knows the last index that is longer than 1. Where both do it is the
   weights, which are constant, and the other lies in a row. -1: neither can be. */
static int columns_of(const hone_sized *c, const hone_affine_load *l, int last, bool *both) {
    const bool knows[] = {hone_match_depends(l, last), hone_match_depends(l + 1, last)};
    *both = false;
    if (knows[0] != knows[1]) return knows[1] ? 1 : 0;
    for (int k = 0; k < 2 && knows[0] && c->constant; k++)
        if (c->constant[l[k].tensor] && !l[k].n_bounded && l[1 - k].at.k[last] == 1) return *both = true, k;
    return -1;
}
/* With constant columns several images count as batches instead of rows, unless they are tiny: tables have
   an entry a row, and plans for other numbers of images share them. Rows begin at this slot. */
static int rows_from(const hone_match_contraction *d, int from) {
    enum { TINY = 32, MOST_ROWS = 1 << 16 };
    int64_t m = 1;
    if (!d->columns_known) return 0;
    for (int k = from - 1; k >= 0; k--) {
        const int64_t extent = d->slots.extent[k];
        if (!hone_match_depends(&d->a, k) || hone_match_depends(&d->b, k)) continue;
        const bool images = d->slots.dim[k] == 0;
        if (extent > 1 && m >= TINY && (images || m * extent > MOST_ROWS)) return k + 1;
        m *= extent;
    }
    return 0;
}
/* The slots of N from `from` on, those of M and of batches before it, and K in the order in which A lies. */
static bool sort(hone_match_contraction *d, int from) {
    const hone_slots_of *w = &d->slots;
    d->m = d->n = d->k = d->batch = 1;
    for (int k = from; k < w->n_domain; k++) d->group_n[d->n_n++] = k, d->n *= w->extent[k];
    const int first_m = rows_from(d, from);
    for (int k = 0; k < from; k++) {
        if (k >= first_m && hone_match_depends(&d->a, k) && !hone_match_depends(&d->b, k)) {
            d->group_m[d->n_m++] = k, d->m *= w->extent[k];
        } else if (w->extent[k] > 1) {
            if (d->n_batch == HONE_MAX_BATCH) return false;
            d->group_b[d->n_batch++] = k, d->batch *= w->extent[k];
        }
    }
    for (int k = w->n_domain; k < w->n; k++) {
        int q = d->n_k++;
        for (; q > 0 && d->a.at.k[d->group_k[q - 1]] < d->a.at.k[k]; q--) d->group_k[q] = d->group_k[q - 1];
        d->group_k[q] = k, d->k *= w->extent[k];
    }
    for (int q = 0; q < d->n_k; q++) d->k_order = d->k_order * HONE_MAX_SLOTS + d->group_k[q];
    return true;
}
static int64_t last_of(const hone_slots_of *w, const int *slot,
                       int n) { /* the last extent that is longer than 1 */
    int64_t run = 1;
    for (int q = 0; q < n; q++) run = w->extent[slot[q]] > 1 ? w->extent[slot[q]] : run;
    return run;
}
static void number_batches(hone_match_contraction *d) {
    d->batch_a = d->batch_b = 1;
    for (int k = d->n_batch - 1; k >= 0; k--) {
        const int q = d->group_b[k];
        d->batch_extent[k] = d->slots.extent[q];
        if (hone_match_depends(&d->a, q)) d->radix_a[k] = d->batch_a, d->batch_a *= d->slots.extent[q];
        if (hone_match_depends(&d->b, q)) d->radix_b[k] = d->batch_b, d->batch_b *= d->slots.extent[q];
    }
}
/* How rows of A lie: pieces of K, and how far K moves the places of A's window. */
static void find_pieces(hone_match_contraction *d) {
    enum { SHORTEST = 8 };
    const hone_slots_of *w = &d->slots;
    d->piece = 1, d->taps = d->k;
    for (int k = d->n_k - 1; k >= 0; k--) {
        bool moves = false;
        for (int q = 0; q < d->a.n_bounded; q++) moves |= d->a.bounded[q].k[d->group_k[k]] != 0;
        if (w->extent[d->group_k[k]] == 1) continue;
        if (moves || d->a.at.k[d->group_k[k]] != d->piece) break;
        d->piece *= w->extent[d->group_k[k]], d->taps /= w->extent[d->group_k[k]];
    }
    if (d->shares_n) d->piece = 1, d->taps = d->k;
    else if (d->taps > 1 && d->piece < SHORTEST) d->piece = 0;
    for (int q = 0; q < d->a.n_bounded; q++)
        for (int k = 0; k < d->n_k; k++) {
            const int64_t far = d->a.bounded[q].k[d->group_k[k]] * (w->extent[d->group_k[k]] - 1);
            *(far < 0 ? d->low_k + q : d->high_k + q) += far;
        }
}
/* Rows of N: the last index, and those before it that simply follow on in memory. */
static void find_runs(hone_match_contraction *d) {
    const hone_slots_of *w = &d->slots;
    const int *n = d->group_n, last = d->n_n - 1;
    d->run = w->extent[n[last]], d->run_step = d->b.at.k[n[last]], d->outer = last;
    while (d->outer > 0 && !d->b.n_bounded &&
           (w->extent[n[d->outer - 1]] == 1 || d->b.at.k[n[d->outer - 1]] == d->run * d->run_step))
        d->run *= w->extent[n[--d->outer]];
    d->rows = d->n / d->run;
}
bool hone_match_contraction_of(const hone_sized *c, int stage, bool follows, bool begun,
                               hone_match_contraction *d) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    hone_match_factors p = {.alpha = 1};
    hone_affine_load l[2], first[2];
    *d = (hone_match_contraction){.integers = in->x[st->value].type == HONE_I32, .slots.begun = begun};
    if (st->reduce != HONE_REDUCE_SUM || st->how || !st->identity) return false;
    if (in->x[st->value].type != HONE_F32 && !d->integers) return false;
    if (!hone_affine_slots(c, stage, follows ? stage + 1 : stage, &d->slots)) return false;
    if (!hone_match_factors_of(c, st->value, &p) || p.n != 2) return false;
    const hone_affine_into into = d->integers ? HONE_AFFINE_BYTES : HONE_AFFINE_FACTOR;
    for (int k = 0; k < 2; k++)
        if (!hone_affine_of_load(c, &d->slots, p.load[k], into, p.zero[k], l + k, first + k)) return false;
    const hone_slots_of *w = &d->slots;
    int last = w->n_domain - 1;
    while (last > 0 && w->extent[last] == 1) last--;
    if (last < 0) return false;
    const int b = columns_of(c, l, last, &d->shares_n);
    if (b < 0 || first[b].tensor >= 0 || (first[1 - b].tensor >= 0 && first[1 - b].n_bounded)) return false;
    const hone_affine_load *early = first + (1 - b);
    d->columns_known = c->constant && c->constant[l[b].tensor];
    for (int k = 0; k < 2; k++) {
        const hone_dtype t = in->tensor[l[k].tensor].dtype;
        if (t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16) *(k == b ? &d->stored_b : &d->stored_a) = t;
    }
    d->load_a = p.load[1 - b], d->load_b = p.load[b];
    d->a = l[1 - b], d->b = l[b], d->zero_a = p.zero[1 - b], d->zero_b = p.zero[b], d->alpha = (float)p.alpha;
    d->first_tensor = early->tensor, d->first_at = early->at.c;
    if (w->over >= 0) {
        if (d->integers || d->shares_n) return false;
        d->over_a = d->a.at.k[w->over], d->over_b = d->b.at.k[w->over];
        d->over_out = c->stride[st->tensor][w->dim[w->over]];
    }
    for (int k = 0; k < w->n && early->tensor >= 0; k++) /* the same walk over another tensor */
        if (k != w->over && w->extent[k] > 1 && early->at.k[k] != d->a.at.k[k]) return false;
    int from = last;
    while (from > 0 && !d->shares_n &&
           (w->extent[from - 1] == 1 ||
            (hone_match_depends(&d->b, from - 1) && !hone_match_depends(&d->a, from - 1))))
        from--;
    while (from < last && w->extent[from] == 1) from++;
    if (!sort(d, from)) return false;
    if (d->m > HONE_MATCH_MOST_M || d->n > HONE_MATCH_MOST_N || d->k > HONE_MATCH_MOST_K ||
        d->batch > HONE_MATCH_MOST_BATCH)
        return false;
    for (int q = 0; q < d->b.n_bounded; q++) /* a batch index inside a window: no convolution */
        for (int k = 0; k < d->n_batch; k++)
            if (d->b.bounded[q].k[d->group_b[k]]) return false;
    d->m_run = last_of(w, d->group_m, d->n_m), d->k_run = last_of(w, d->group_k, d->n_k);
    d->plane = !d->shares_n && d->m == 1 && d->batch > 1 && !d->a.n_bounded;
    number_batches(d), find_pieces(d), find_runs(d);
    return true;
}
