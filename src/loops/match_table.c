/* SPDX-License-Identifier: Apache-2.0
   match_table: see match_table.h. */
#include "loops/match_table.h"

typedef struct {
    const hone_sized *c;
    const hone_slots_of *slots;
    hone_constant_seen *constant;
    const void *constants;
    hone_table_is *is;
    void *of;
    bool *given; /* of each expression: it is the byte */
    int patience, met;
} walking;
static bool only(walking *w, int32_t x);
/* A constant that is the same at all indices, or a small one that a byte picks from. */
static bool steady(walking *w, int32_t x) {
    const hone_sized *c = w->c;
    const hone_x *e = c->instance->x + x;
    hone_affine at;
    if (!w->constant(w->constants, e->a)) return false;
    if (!hone_affine_inside(c, w->slots, x, &at))
        return !e->flat && e->c < 0 && c->instance->tensor[e->a].rank == 1 &&
               only(w, c->instance->list[e->b]);
    for (int k = 0; k < w->slots->n; k++)
        if (at.k[k] && w->slots->extent[k] > 1) return false;
    return true;
}
static bool only(walking *w, int32_t x) {
    const hone_x *e = w->c->instance->x + x;
    if (w->given[x]) return true;
    if (w->patience-- <= 0) return false;
    if (w->is(w->of, x)) return w->given[x] = true, w->met++, true;
    switch ((hone_xkind)e->kind) {
    case HONE_X_CONST:
    case HONE_X_PARAM: return true;
    case HONE_X_LOAD: return steady(w, x);
    case HONE_X_FN:
        return only(w, e->a) && (hone_fns[e->fn].arity < 2 || only(w, e->b)) &&
               (hone_fns[e->fn].arity < 3 || only(w, e->c));
    case HONE_X_SELECT: return only(w, e->a) && only(w, e->b) && only(w, e->c);
    case HONE_X_CAST:
    case HONE_X_ROUND: return only(w, e->a);
    default: return false;
    }
}
/* parts of a value, those that are used twice counted twice, as often as it is computed */
enum { PATIENCE = 400 };
const bool *hone_match_table_of(hone_arena *a, const hone_sized *c, const hone_slots_of *slots, int stage,
                                hone_constant_seen *constant, const void *constants, hone_table_is *is,
                                void *of) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + stage;
    const hone_dtype to = in->tensor[s->tensor].dtype;
    if (s->reduce || s->how || s->pick >= 0 ||
        (to != HONE_DTYPE_U8 && to != HONE_DTYPE_I8 && to != HONE_DTYPE_F32))
        return NULL;
    bool *given = HONE_NEW_N(a, bool, in->n_x + 1);
    walking w = {c, slots, constant, constants, is, of, given, PATIENCE, 0};
    return given && only(&w, s->value) && w.met && !given[s->value] ? given : NULL;
}
