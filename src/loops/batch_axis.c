/* SPDX-License-Identifier: Apache-2.0
   batch_axis: is an instance a window that moves over images, each by itself? Then shapes that differ in
   their number only need to be understood once. */
#include <string.h>

#include "loops/instance.h"

typedef struct {
    const hone_instance *in;
    int8_t *dim;             /* of a tensor: the one that counts images */
    bool *number, *counting; /* a parameter is their number; an index counts them */
    bool *moving;            /* an index is part of a window's place */
    bool *live;              /* an expression is some stage's: fusing leaves others behind */
} looking;
static bool is_counting(const looking *w, int32_t x) {
    return w->in->x[x].kind == HONE_X_INDEX && w->counting[w->in->x[x].a];
}
/* It is a plain subscript, of the same dim in all loads of a tensor, or it is not there at all. */
static bool loads_by_it(looking *w, const hone_x *e) {
    for (int k = 0; k < w->in->tensor[e->a].rank; k++) {
        if (!is_counting(w, w->in->list[e->b + k])) continue;
        if (w->dim[e->a] >= 0 && w->dim[e->a] != k) return false;
        w->dim[e->a] = (int8_t)k;
    }
    return true;
}
static bool stores_by_it(looking *w, const hone_stage *s) {
    int found = s->identity;
    w->dim[s->tensor] = 0;
    for (int k = 0; !s->identity && k < w->in->tensor[s->tensor].rank; k++)
        if (is_counting(w, w->in->list[s->sub0 + k])) w->dim[s->tensor] = (int8_t)k, found++;
    return found == 1;
}
static int arguments(const hone_x *e) {
    if (e->kind == HONE_X_FN) return hone_fns[e->fn].arity < 3 ? hone_fns[e->fn].arity : 3;
    return e->kind == HONE_X_SELECT ? 3 : e->kind >= HONE_X_CAST ? 1 : 0;
}
static bool used_otherwise(const looking *w, const hone_x *e) {
    const int32_t arg[] = {e->a, e->b, e->c};
    for (int k = 0; k < arguments(e); k++)
        if (is_counting(w, arg[k])) return true;
    if (e->kind == HONE_X_PARAM) return w->number[e->a];
    if (e->kind != HONE_X_LOAD) return false;
    const int d = w->dim[e->a];
    return (e->c >= 0 && is_counting(w, e->c)) ||
           (e->flat ? d >= 0 || is_counting(w, w->in->list[e->b])
                    : d >= 0 && !is_counting(w, w->in->list[e->b + d]));
}
static void find_live(looking *w) {
    const hone_instance *in = w->in;
    for (int k = 0; k < in->n_stage; k++) {
        w->live[in->stage[k].value] = true;
        if (in->stage[k].pick >= 0) w->live[in->stage[k].pick] = true;
        for (int q = 0; !in->stage[k].identity && q < in->tensor[in->stage[k].tensor].rank; q++)
            w->live[in->list[in->stage[k].sub0 + q]] = true;
    }
    for (int x = in->n_x - 1; x >= 0; x--) {
        const hone_x *e = in->x + x;
        const int32_t arg[] = {e->a, e->b, e->c};
        for (int k = 0; k < 3 && w->live[x] && k < arguments(e); k++) w->live[arg[k]] = true;
        if (!w->live[x] || e->kind != HONE_X_LOAD) continue;
        for (int k = 0; k < (e->flat ? 1 : in->tensor[e->a].rank); k++) w->live[in->list[e->b + k]] = true;
        if (e->c >= 0) w->live[e->c] = true;
    }
}
static void mark(const looking *w, int32_t x) { /* the indices of an expression */
    const hone_x *e = w->in->x + x;
    if (e->kind == HONE_X_INDEX) w->moving[e->a] = true;
    if (e->kind != HONE_X_FN) return;
    const int32_t arg[] = {e->a, e->b, e->c};
    for (int k = 0; k < hone_fns[e->fn].arity; k++) mark(w, arg[k]);
}
static bool look(looking *w) {
    const hone_instance *in = w->in;
    memset(w->dim, -1, (size_t)in->n_tensor);
    find_live(w);
    for (int k = 0; k < in->n_stage; k++) {
        const hone_stage *s = in->stage + k;
        if (!s->distinct || s->over >= 0 || s->n_index < 2) return false;
        w->counting[in->list[s->index0]] = true;
        if (!stores_by_it(w, s) || is_counting(w, s->value) || (s->pick >= 0 && is_counting(w, s->pick)))
            return false;
    }
    for (int x = 0; x < in->n_x; x++)
        if (w->live[x] && in->x[x].kind == HONE_X_LOAD && !in->x[x].flat && !loads_by_it(w, in->x + x))
            return false;
    for (int k = 0; k < in->n_index; k++)
        if (w->counting[k]) w->number[in->index[k].extent] = true;
    for (int t = 0; t < in->n_tensor; t++)
        if (w->dim[t] >= 0) w->number[in->tensor[t].dim[w->dim[t]]] = true;
    for (int k = 0; k < in->n_index; k++)
        if (!w->counting[k] && w->number[in->index[k].extent]) return false;
    for (int t = 0; t < in->n_tensor; t++)
        for (int k = 0; k < in->tensor[t].rank; k++)
            if (k != w->dim[t] && w->number[in->tensor[t].dim[k]]) return false;
    for (int x = 0; x < in->n_x; x++) {
        const hone_x *e = in->x + x;
        if (!w->live[x]) continue;
        if (used_otherwise(w, e)) return false;
        if (e->kind != HONE_X_LOAD || e->flat || e->c < 0 || w->dim[e->a] < 0) continue;
        for (int k = 0; k < in->tensor[e->a].rank; k++)
            if (in->x[in->list[e->b + k]].kind == HONE_X_FN) mark(w, in->list[e->b + k]);
    }
    return true;
}
bool hone_instance_batch_axis(hone_arena *a, const hone_instance *in, hone_batch_axis *out) {
    bool *flags = HONE_NEW_N(a, bool, in->n_param + 2 * in->n_index + in->n_x + 1);
    int8_t *dim = HONE_NEW_N(a, int8_t, in->n_tensor + 1);
    int32_t *list = HONE_NEW_N(a, int32_t, in->n_param + in->n_index + 1);
    if (!flags || !dim || !list) return false;
    looking w = {in,
                 dim,
                 flags,
                 flags + in->n_param,
                 flags + in->n_param + in->n_index,
                 flags + in->n_param + 2 * in->n_index};
    if (!in->n_stage || !look(&w)) return false;
    *out = (hone_batch_axis){.dim = dim, .param = list};
    for (int k = 0; k < in->n_param; k++)
        if (w.number[k]) list[out->n_param++] = k;
    out->pixel = list += out->n_param;
    /* of the domain of what sums, or seeks in, the windows: not what is summed over */
    for (int k = 0; k < in->n_stage; k++)
        for (int q = 1; in->stage[k].reduce && q < in->stage[k].n_index; q++)
            if (w.moving[in->list[in->stage[k].index0 + q]])
                list[out->n_pixel++] = in->index[in->list[in->stage[k].index0 + q]].extent;
    return out->n_pixel > 0;
}
