/* SPDX-License-Identifier: Apache-2.0
   match_attention: see match_attention.h. */
#include "loops/match_attention.h"

#include <math.h>

enum { STAGES = HONE_ATTENTION_STAGES, TEMPS = HONE_ATTENTION_TEMPS };
const hone_x *hone_match_at(const hone_sized *c, int32_t x) { return c->instance->x + x; }
const hone_x *hone_match_fn(const hone_sized *c, int32_t x, hone_fn fn) {
    return hone_match_at(c, x)->kind == HONE_X_FN && hone_match_at(c, x)->fn == fn &&
                   hone_match_at(c, x)->type == HONE_F32
               ? hone_match_at(c, x)
               : NULL;
}
static bool loads_nothing(const hone_sized *c,
                          int32_t x) { /* and knows no index: the numbers of the call alone say it */
    const hone_x *e = hone_match_at(c, x);
    switch ((hone_xkind)e->kind) {
    case HONE_X_CONST:
    case HONE_X_PARAM: return true;
    case HONE_X_FN:
        for (int k = 0; k < hone_fns[e->fn].arity; k++)
            if (!loads_nothing(c, k == 0 ? e->a : k == 1 ? e->b : e->c)) return false;
        return true;
    case HONE_X_SELECT: return loads_nothing(c, e->a) && loads_nothing(c, e->b) && loads_nothing(c, e->c);
    case HONE_X_CAST:
    case HONE_X_ROUND: return loads_nothing(c, e->a);
    default: return false;
    }
}
bool hone_match_f32(const hone_sized *c, int32_t x, float *out) {
    const hone_x *e = hone_match_at(c, x);
    if (e->type != HONE_F32 || !loads_nothing(c, x)) return false;
    int64_t none = 0;
    *out = e->kind == HONE_X_CONST ? e->k.f32 : hone_interpret_x(c->instance, c->param, &none, x).f32;
    return true;
}
/* What is left of an expression when conditions that the numbers of a call decide are decided. */
static int32_t settled(const hone_sized *c, int32_t x) {
    for (;;) {
        const hone_x *e = hone_match_at(c, x);
        const bool both = e->kind == HONE_X_FN && e->fn == HONE_FN_and,
                   either = e->kind == HONE_X_FN && e->fn == HONE_FN_or;
        int64_t none = 0;
        if (e->kind == HONE_X_SELECT && loads_nothing(c, e->a))
            x = hone_interpret_x(c->instance, c->param, &none, e->a).i32 ? e->b : e->c;
        else if ((both || either) && loads_nothing(c, e->a) &&
                 (hone_interpret_x(c->instance, c->param, &none, e->a).i32 != 0) == both)
            x = e->b;
        else if ((both || either) && loads_nothing(c, e->b) &&
                 (hone_interpret_x(c->instance, c->param, &none, e->b).i32 != 0) == both)
            x = e->a;
        else return x;
    }
}
/* w = seen ? s' : -inf, where what is seen is all up to some place: t <= i + after. *x becomes s'. False: it
 * is a select of another kind. */
static bool causal_of(const hone_sized *c, const hone_slots_of *w, int32_t *x, int64_t *after) {
    *x = settled(c, *x);
    const hone_x *e = hone_match_at(c, *x);
    const int last = w->n_domain - 1;
    float hidden;
    hone_affine t, i;
    *after = INT64_MAX;
    if (e->kind != HONE_X_SELECT) return true;
    const hone_x *seen = hone_match_at(c, settled(c, e->a));
    if (!hone_match_f32(c, e->c, &hidden) || hidden != -INFINITY || seen->kind != HONE_X_FN ||
        (seen->fn != HONE_FN_le && seen->fn != HONE_FN_lt))
        return false;
    if (last < 1 || !hone_affine_expr(c, w, seen->a, &t) || !hone_affine_expr(c, w, seen->b, &i))
        return false;
    for (int k = 0; k < w->n; k++)
        if (w->extent[k] != 1 && t.k[k] - i.k[k] != (k == last) - (k == last - 1)) return false;
    *after = i.c - t.c - (seen->fn == HONE_FN_lt), *x = settled(c, e->b);
    return true;
}
/* A load of a temporary at the stage's own first indices, reduced ones after the domain's; `skip`: without
 * the domain's last. */
bool hone_match_reads(const hone_sized *c, const hone_stage *s, int32_t x, int tensor, int skip) {
    const hone_instance *in = c->instance;
    const hone_x *e = hone_match_at(c, x);
    if (e->kind != HONE_X_LOAD || e->a != tensor || e->flat) return false;
    for (int k = 0; k < in->tensor[tensor].rank; k++) {
        int own = skip && k >= s->n_index - 1 ? k + 1 : k;
        const hone_x *sub = hone_match_at(c, in->list[e->b + k]);
        if (own >= s->n_index + s->n_reduce || sub->kind != HONE_X_INDEX ||
            sub->a != in->list[s->index0 + own])
            return false;
    }
    return true;
}
void hone_match_slots(const hone_sized *c, const hone_stage *s,
                      hone_slots_of *out) { /* as they are written */
    out->n_domain = s->n_index, out->n = s->n_index + s->n_reduce, out->over = -1, out->cache = c->cache;
    for (int k = 0; k < out->n; k++) {
        out->dim[k] = k, out->id[k] = c->instance->list[s->index0 + k];
        out->extent[k] = c->param[c->instance->index[out->id[k]].extent].i;
    }
}
/* A load of f32 that is never outside, whatever it would be there, and none of a temporary that is never
 * made. */
bool hone_match_inside(const hone_sized *c, const hone_slots_of *w, int32_t x, const int *temp,
                       hone_affine *out) {
    const hone_instance *in = c->instance;
    const hone_x *e = hone_match_at(c, x);
    *out = (hone_affine){0};
    if (e->kind != HONE_X_LOAD || e->flat || in->tensor[e->a].dtype != HONE_DTYPE_F32) return false;
    for (int k = 0; k < TEMPS; k++)
        if (e->a == temp[k]) return false;
    for (int k = 0; k < in->tensor[e->a].rank; k++) {
        hone_affine s;
        int64_t lo, hi, step = c->stride[e->a][k];
        if (!hone_affine_expr(c, w, in->list[e->b + k], &s)) return false;
        hone_affine_range(w, &s, &lo, &hi);
        if (lo < 0 || hi >= c->param[in->tensor[e->a].dim[k]].i) return false;
        out->c += s.c * step;
        for (int q = 0; q < w->n; q++) out->k[q] += s.k[q] * step;
    }
    for (int k = 0; k < w->n; k++)
        if (w->extent[k] == 1) out->k[k] = 0;
    return true;
}
/* Stages from k on, but for what loads and strides are like: temporaries in the order of stages. */
bool hone_match_attention_shaped(const hone_sized *c, int k, int *temp) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + k;
    if (k + STAGES > in->n_stage) return false;
    static const uint8_t reduce[STAGES] = {HONE_REDUCE_SUM, 0, HONE_REDUCE_MAX, 0, 0,
                                           HONE_REDUCE_SUM, 0, HONE_REDUCE_SUM, 0};
    const int n = s->n_index;
    if (n < 2 || n > HONE_MAX_RANK || n >= HONE_MAX_SLOTS) return false;
    for (int q = 0; q < STAGES; q++) {
        bool rows = q == 2 || q == 3 || q == 5 || q == 6;
        if (s[q].reduce != reduce[q] || s[q].n_reduce != (reduce[q] != 0) || s[q].how || !s[q].identity ||
            s[q].over >= 0)
            return false;
        if (s[q].n_index != n - rows || hone_match_at(c, s[q].value)->type != HONE_F32 ||
            in->tensor[s[q].tensor].dtype != HONE_DTYPE_F32)
            return false;
        for (int d = 0; d < n - 1; d++) /* one domain of rows */
            if (in->index[in->list[s[q].index0 + d]].extent != in->index[in->list[s->index0 + d]].extent)
                return false;
        if (q == TEMPS) break;
        temp[q] = s[q].tensor;
        if (temp[q] >= 63 || in->tensor[temp[q]].role != HONE_ROLE_TEMP ||
            in->tensor[temp[q]].rank != n - rows)
            return false;
        for (int z = 0; z < in->n_stage; z++) /* ours alone */
            if ((z < k || z >= k + STAGES) && in->stage[z].uses >> temp[q] & 1) return false;
    }
    const int32_t keys = in->index[in->list[s->index0 + n - 1]].extent;
    for (int q = 1; q < TEMPS; q++) /* t as long wherever it stands: last in the domain, or reduced */
        if (q != 3 && q != 6 && in->index[in->list[s[q].index0 + (q == 7 ? n : n - 1)]].extent != keys)
            return false;
    if (in->tensor[s[8].tensor].rank != n || in->tensor[s[8].tensor].role != HONE_ROLE_OUT) return false;
    return s[1].follows && s[3].follows && s[6].follows && s[8].follows;
}
bool hone_match_softmax(const hone_sized *c, int k, const int *temp, float *least, float *floor) {
    const hone_stage *s = c->instance->stage + k;
    const hone_x *e;
    if (!hone_match_reads(c, s + 2, s[2].value, temp[1], 0)) return false;
    if (!(e = hone_match_fn(c, s[3].value, HONE_FN_max)) || !hone_match_reads(c, s + 3, e->a, temp[2], 0) ||
        !hone_match_f32(c, e->b, least))
        return false;
    if (!(e = hone_match_fn(c, s[4].value, HONE_FN_exp)) || !(e = hone_match_fn(c, e->a, HONE_FN_sub)))
        return false;
    if (!hone_match_reads(c, s + 4, e->a, temp[1], 0) || !hone_match_reads(c, s + 4, e->b, temp[3], 0))
        return false;
    if (!hone_match_reads(c, s + 5, s[5].value, temp[4], 0)) return false;
    if (!(e = hone_match_fn(c, s[6].value, HONE_FN_max)) || !hone_match_reads(c, s + 6, e->a, temp[5], 0) ||
        !hone_match_f32(c, e->b, floor))
        return false;
    if (!(e = hone_match_fn(c, s[8].value, HONE_FN_div)) || !hone_match_reads(c, s + 8, e->a, temp[7], 0) ||
        !hone_match_reads(c, s + 8, e->b, temp[6], 0))
        return false;
    return *least > -INFINITY && *floor >= 1; /* finite differences; a sum that can be divided by */
}

/* ---- the plain form ---- */
typedef struct { /* slots of the domain; -1: none that is longer than 1 */
    int batch, head, group, query;
} places;
static bool rows_of(const places *p, const hone_affine *f, int64_t groups, bool grouped, int token, int one,
                    int tensor, hone_match_rows *out) {
    *out = (hone_match_rows){.tensor = tensor,
                             .at = f->c,
                             .batch = p->batch < 0 ? 0 : f->k[p->batch],
                             .token = token < 0 ? 0 : f->k[token],
                             .one = f->k[one]};
    const int64_t head = p->head < 0 ? 0 : f->k[p->head], group = p->group < 0 ? 0 : f->k[p->group];
    out->head = grouped ? (p->group < 0 ? head : group) : head;
    return !grouped || p->head < 0 || p->group < 0 ||
           head == group * groups; /* heads of queries: one index */
}
bool hone_match_attention_of(const hone_sized *c, int stage, hone_match_attention *m) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + stage;
    int temp[TEMPS];
    float least, floor;
    if (s->reduce != HONE_REDUCE_SUM || !hone_match_attention_shaped(c, stage, temp) ||
        !hone_match_softmax(c, stage, temp, &least, &floor))
        return false;
    if (least > -1e38f || floor != 1) return false;
    hone_slots_of w, u;
    hone_match_slots(c, s, &w), hone_match_slots(c, s + 7, &u);
    const int last = w.n_domain - 1, deep = w.n_domain;
    const hone_x *e = hone_match_fn(c, s->value, HONE_FN_mul), *f = hone_match_fn(c, s[7].value, HONE_FN_mul);
    hone_affine q, key, v, y = {0}, mask;
    if (!e || !f || last < 1 || !hone_match_inside(c, &w, e->a, temp, &q) ||
        !hone_match_inside(c, &w, e->b, temp, &key))
        return false;
    int tq = hone_match_at(c, e->a)->a, tk = hone_match_at(c, e->b)->a;
    if (q.k[last]) { /* the other way round */
        const hone_affine t = q;
        q = key, key = t, tq = hone_match_at(c, e->b)->a, tk = hone_match_at(c, e->a)->a;
    }
    const bool first = hone_match_reads(c, s + 7, f->a, temp[4], 1);
    const int32_t value = first ? f->b : f->a;
    if ((!first && !hone_match_reads(c, s + 7, f->b, temp[4], 1)) ||
        !hone_match_inside(c, &u, value, temp, &v))
        return false;
    for (int x = 0; x <= last; x++) y.k[x] = c->stride[s[8].tensor][x];
    /* w = s * alpha + mask */
    int32_t x = s[1].value, given = -1;
    hone_slots_of own;
    hone_match_slots(c, s + 1, &own);
    if (!causal_of(c, &own, &x, &m->after)) return false;
    const hone_x *sum = hone_match_fn(c, x, HONE_FN_add);
    if (sum) x = sum->a, given = sum->b;
    m->alpha = 1, m->mask.tensor = -1;
    if ((e = hone_match_fn(c, x, HONE_FN_mul))) {
        const bool left = hone_match_f32(c, e->a, &m->alpha);
        if (left || hone_match_f32(c, e->b, &m->alpha)) x = left ? e->b : e->a;
    }
    if (!hone_match_reads(c, s + 1, x, temp[0], 0)) return false;
    if (given >= 0 && !hone_match_inside(c, &own, given, temp, &mask)) return false;
    /* who is who */
    places p = {-1, -1, -1, last - 1};
    if (key.k[last - 1] || v.k[last - 1] || q.k[last]) return false;
    for (int k = last - 2; k >= 0; k--) {
        if (w.extent[k] == 1) continue;
        const bool shared = key.k[k] || v.k[k];
        if (!shared && p.group < 0 && p.head < 0) p.group = k;
        else if (p.head < 0) p.head = k;
        else if (p.batch < 0) p.batch = k;
        else return false;
    }
    const int64_t groups = p.group < 0 ? 1 : w.extent[p.group];
    m->batches = p.batch < 0 ? 1 : w.extent[p.batch], m->kv_heads = p.head < 0 ? 1 : w.extent[p.head],
    m->heads = m->kv_heads * groups;
    m->queries = w.extent[last - 1], m->keys = w.extent[last], m->head_size = w.extent[deep];
    if (u.extent[last] != m->head_size) return false;
    if (given >= 0 && !rows_of(&p, &mask, groups, true, last - 1, last, hone_match_at(c, given)->a, &m->mask))
        return false;
    return rows_of(&p, &q, groups, true, last - 1, deep, tq, &m->q) &&
           rows_of(&p, &key, groups, false, last, deep, tk, &m->k) &&
           rows_of(&p, &v, groups, false, u.n_domain, last, hone_match_at(c, value)->a, &m->v) &&
           rows_of(&p, &y, groups, true, last - 1, last, s[8].tensor, &m->y);
}
