/* SPDX-License-Identifier: Apache-2.0
   stages: what a finished list of stages says of itself, found once an instance so that no bind looks for
   it. */
#include <stdlib.h>
#include <string.h>

#include "loops/instance.h"

/* Marks go down the pool: arguments stand before what uses them. */
static uint64_t uses(const hone_instance *in, const hone_stage *s) {
    uint64_t met = (uint64_t)1 << (s->tensor < 63 ? s->tensor : 63);
    uint8_t few[1024],
        *mark = in->n_x <= (int)sizeof few ? memset(few, 0, (size_t)in->n_x) : hone_alloc((size_t)in->n_x);
    if (!mark) return ~(uint64_t)0; /* too much does no harm */
    if (s->value >= 0) mark[s->value] = 1;
    if (s->pick >= 0) mark[s->pick] = 1;
    for (int k = 0; s->sub0 >= 0 && k < in->tensor[s->tensor].rank; k++) mark[in->list[s->sub0 + k]] = 1;
    for (int32_t x = in->n_x - 1; x >= 0; x--) {
        const hone_x *e = in->x + x;
        if (!mark[x] || e->kind < HONE_X_LOAD) continue;
        if (e->kind == HONE_X_LOAD) {
            met |= (uint64_t)1 << (e->a < 63 ? e->a : 63);
            for (int k = 0; k < (e->flat ? 1 : in->tensor[e->a].rank); k++) mark[in->list[e->b + k]] = 1;
        } else {
            if (e->a >= 0) mark[e->a] = 1;
            if (e->b >= 0) mark[e->b] = 1;
        }
        if (e->c >= 0) mark[e->c] = 1;
    }
    if (mark != few) hone_free(mark);
    return met;
}
static bool follows(const hone_instance *in, const hone_stage *n) {
    const hone_stage *s = n - 1;
    if (s->tensor >= 63 || in->tensor[s->tensor].role != HONE_ROLE_TEMP || n->reduce || n->over >= 0 ||
        n->how)
        return false;
    if (n->n_index != s->n_index ||
        memcmp(in->list + n->index0, in->list + s->index0, sizeof(int32_t) * (size_t)s->n_index))
        return false;
    if (!(n->uses >> s->tensor & 1)) return false;
    for (const hone_stage *k = n + 1; k < in->stage + in->n_stage; k++)
        if (k->uses >> s->tensor & 1) return false;
    for (int x = 0; x < in->n_x; x++) { /* every load of it is at the domain's own indices */
        const hone_x *e = in->x + x;
        if (e->kind != HONE_X_LOAD || e->a != s->tensor) continue;
        if (e->flat) return false;
        for (int k = 0; k < s->n_index; k++) {
            const hone_x *sub = in->x + in->list[e->b + k];
            if (sub->kind != HONE_X_INDEX || sub->a != in->list[s->index0 + k]) return false;
        }
    }
    return true;
}
/* How far `times` an affine expression moves with each index of a stage's domain; false: it is something
   else. */
static bool moves(const hone_instance *in, const hone_stage *s, const hone_param *p, int32_t x, int64_t times,
                  int64_t *far) {
    const hone_x *e = in->x + x, *by = NULL;
    if (e->kind == HONE_X_INDEX) {
        for (int k = 0; k < s->n_index; k++)
            if (in->list[s->index0 + k] == e->a) far[k] += times;
        return true;
    }
    if (e->kind == HONE_X_PARAM || e->kind == HONE_X_CONST) return true;
    if (e->kind != HONE_X_FN) return false;
    switch (e->fn) {
    case HONE_FN_add: return moves(in, s, p, e->a, times, far) && moves(in, s, p, e->b, times, far);
    case HONE_FN_sub: return moves(in, s, p, e->a, times, far) && moves(in, s, p, e->b, -times, far);
    case HONE_FN_mul: {
        int32_t other = e->a;
        by = in->x + e->b;
        if (by->kind != HONE_X_PARAM && by->kind != HONE_X_CONST) by = in->x + e->a, other = e->b;
        if (by->kind == HONE_X_PARAM && !in->param_real[by->a])
            return moves(in, s, p, other, times * p[by->a].i, far);
        return by->kind == HONE_X_CONST && by->type == HONE_I64 &&
               moves(in, s, p, other, times * by->k.i64, far);
    }
    default: return false;
    }
}
bool hone_is_injective(const int64_t *step, const int64_t *extent, int n) {
    uint64_t done = 0;
    __int128 reach = 0; /* of all that move less far */
    for (int turn = 0; turn < n; turn++) {
        int best = -1;
        for (int k = 0; k < n; k++)
            if (!(done >> k & 1) && extent[k] > 1 && (best < 0 || llabs(step[k]) < llabs(step[best])))
                best = k;
        if (best < 0) return true;
        done |= (uint64_t)1 << best;
        if (llabs(step[best]) <= reach) return false;
        reach += (__int128)llabs(step[best]) * (extent[best] - 1);
    }
    return true;
}
bool hone_stage_order(const hone_instance *in, const hone_stage *s, const hone_param *p,
                      const int64_t *stride, int *order) {
    int64_t far[HONE_MAX_RANK] = {0}, extent[HONE_MAX_RANK];
    const int n = s->n_index;
    int by_far[HONE_MAX_RANK];
    for (int k = 0; k < n; k++) order[k] = k;
    if (n > HONE_MAX_RANK) return s->distinct;
    for (int d = 0; d < in->tensor[s->tensor].rank; d++) {
        if (s->sub0 < 0) far[d] = stride[d];
        else if (!moves(in, s, p, in->list[s->sub0 + d], stride[d], far)) return s->distinct;
    }
    for (int k = 0; k < n; k++) {
        int32_t id = in->list[s->index0 + k];
        by_far[k] = k, extent[k] = s->over >= 0 && id == s->over_index ? 1 : p[in->index[id].extent].i;
        if (extent[k] == 1) far[k] = INT64_MAX;
        if (far[k] <= 0) return s->distinct; /* nowhere, or backwards: as it is written */
    }
    for (int k = 1; k < n; k++) /* stable: what is row-major stays as it is */
        for (int q = k; q > 0 && far[by_far[q - 1]] < far[by_far[q]]; q--) {
            int t = by_far[q];
            by_far[q] = by_far[q - 1], by_far[q - 1] = t;
        }
    if (!s->distinct && !hone_is_injective(far, extent, n)) return false;
    memcpy(order, by_far, sizeof *order * (size_t)n);
    return true;
}
void hone_stages_know(const hone_instance *in, hone_stage *s) {
    for (int k = 0; k < in->n_stage; k++) s[k].uses = uses(in, s + k);
    for (int k = 1; k < in->n_stage; k++) s[k].follows = follows(in, s + k);
}
