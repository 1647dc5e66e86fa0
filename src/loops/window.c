/* SPDX-License-Identifier: Apache-2.0
   window: see window.h. */
#include "loops/window.h"

typedef struct {
    const hone_instance *in;
    const hone_stage *stage;
} looking;
static bool has(const int32_t *list, int n, int32_t index) {
    for (int k = 0; k < n; k++)
        if (list[k] == index) return true;
    return false;
}
static bool is_domain(const looking *w, int32_t index) {
    return has(w->in->list + w->stage->index0, w->stage->n_index, index);
}
static bool is_summed(const looking *w, int32_t index) {
    return has(w->in->list + w->stage->index0 + w->stage->n_index, w->stage->n_reduce, index);
}
/* The indices that a subscript is made of, by sums, differences and multiples: some of the result's, some of
   the sum's. False: it is made of something else. */
static bool reads(const looking *w, int32_t x, int depth, bool *place, int32_t *tap) {
    const hone_x *e = w->in->x + x;
    if (depth > 16) return false;
    if (e->kind == HONE_X_CONST || e->kind == HONE_X_PARAM) return true;
    if (e->kind == HONE_X_INDEX) {
        *place |= is_domain(w, e->a);
        if (is_summed(w, e->a)) *tap = e->a;
        return true;
    }
    if (e->kind != HONE_X_FN || (e->fn != HONE_FN_add && e->fn != HONE_FN_sub && e->fn != HONE_FN_mul))
        return false;
    return reads(w, e->a, depth + 1, place, tap) && reads(w, e->b, depth + 1, place, tap);
}
/* The index of the sum by which a load's subscript moves besides the result's place; -1: no window. */
static int32_t tap_of(const looking *w, const hone_x *load) {
    for (int k = 0; k < w->in->tensor[load->a].rank; k++) {
        bool place = false;
        int32_t tap = -1;
        if (reads(w, w->in->list[load->b + k], 0, &place, &tap) && place && tap >= 0) return tap;
    }
    return -1;
}
static bool has_subscript(const looking *w, const hone_x *load, int32_t index) { /* alone */
    for (int k = 0; k < w->in->tensor[load->a].rank; k++) {
        const hone_x *e = w->in->x + w->in->list[load->b + k];
        if (e->kind == HONE_X_INDEX && e->a == index) return true;
    }
    return false;
}
static int arguments(const hone_x *e) {
    if (e->kind == HONE_X_FN) return hone_fns[e->fn].arity < 3 ? hone_fns[e->fn].arity : 3;
    return e->kind == HONE_X_SELECT ? 3 : e->kind == HONE_X_CAST || e->kind == HONE_X_ROUND ? 1 : 0;
}
/* All loads of an expression that are not inside subscripts: the one that a window moves over, and one with
   the tap for a subscript. */
typedef struct {
    const hone_x *moved, *weight;
    int32_t tap;
} pair;
static void find(const looking *w, int32_t x, int depth, bool weights, pair *p) {
    const hone_x *e = w->in->x + x;
    if (depth > 24) return;
    if (e->kind == HONE_X_LOAD && !e->flat && w->in->tensor[e->a].role == HONE_ROLE_IN) {
        const int32_t tap = tap_of(w, e);
        if (!weights && !p->moved && tap >= 0) p->moved = e, p->tap = tap;
        if (weights && tap < 0 && has_subscript(w, e, p->tap)) p->weight = e;
        return;
    }
    const int32_t arg[] = {e->a, e->b, e->c};
    for (int k = 0; k < arguments(e); k++) find(w, arg[k], depth + 1, weights, p);
}
bool hone_instance_is_convolution(const hone_instance *in) {
    int sums = 0, outs = 0;
    looking w = {.in = in};
    for (int k = 0; k < in->n_tensor; k++) outs += in->tensor[k].role == HONE_ROLE_OUT;
    for (int k = 0; k < in->n_stage; k++)
        if (in->stage[k].reduce != HONE_REDUCE_NONE) sums++, w.stage = in->stage + k;
    if (sums != 1 || outs != 1 || w.stage->reduce != HONE_REDUCE_SUM || !w.stage->identity ||
        w.stage->over >= 0)
        return false;
    const hone_x *value = in->x + w.stage->value;
    if (value->kind != HONE_X_FN || value->fn != HONE_FN_mul) return false;
    for (int side = 0; side < 2; side++) {
        pair p = {0};
        find(&w, side ? value->b : value->a, 0, false, &p);
        if (p.moved) find(&w, side ? value->a : value->b, 0, true, &p);
        if (p.moved && p.weight) return true;
    }
    return false;
}
