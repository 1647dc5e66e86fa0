/* SPDX-License-Identifier: Apache-2.0
   match_rows: see match_rows.h. The stages' values are written as text and compared with a table. In the text

        A, B, …   what the first, second, … of these stages makes, at the row's own indices, and at the place
                  where it has one
        x, p      the row, at its place; a parameter by place alone
        n, e      how many places there are; a number */
#include "loops/match_rows.h"

#include <stdio.h>
#include <string.h>

enum { STAGES = 6, FORM = 40 };
static const struct {
    int n;
    hone_norm_kind kind;
    const char *stage[STAGES];
} forms[] = {
    {6,
     HONE_NORM_CENTRED,
     {"x", "div(A,n)", "mul(sub(x,B),sub(x,B))", "div(C,n)", "rsqrt(add(D,e))",
      "add(mul(mul(sub(x,B),E),p),p)"}},
    {6,
     HONE_NORM_CENTRED,
     {"x", "div(A,n)", "mul(sub(x,B),sub(x,B))", "div(C,n)", "rsqrt(add(D,e))", "mul(mul(sub(x,B),E),p)"}},
    {3, HONE_NORM_SQUARES, {"mul(x,x)", "div(A,n)", "mul(mul(x,rsqrt(add(B,e))),p)"}},
    {4, HONE_NORM_SOFTMAX, {"x", "exp(sub(x,A))", "B", "div(B,C)"}},
    {3, HONE_NORM_LOG_SOFTMAX, {"x", "exp(sub(x,A))", "sub(sub(x,A),log(B))"}}};

typedef struct {
    const hone_sized *c;
    const hone_stage *first, *s; /* of all; the one that is written */
    int lead, count;             /* indices that say which row; stages */
    char text[FORM];
    int length;
    hone_match_norm *d;
    bool known; /* epsilon was read: there is one number in a form, no more */
} reading;
static const hone_x *at(const reading *r, int32_t x) { return r->c->instance->x + x; }
static bool put(reading *r, const char *word) {
    const int n = snprintf(r->text + r->length, (size_t)(FORM - r->length), "%s", word);
    return n >= 0 && (r->length += n) < FORM;
}
/* the stage's own index at that place: the domain's, and behind them the reduced one */
static bool is_own(const reading *r, int32_t x, int place) {
    return at(r, x)->kind == HONE_X_INDEX && at(r, x)->a == r->c->instance->list[r->s->index0 + place];
}
static bool write_load(reading *r, const hone_x *e) {
    const hone_instance *in = r->c->instance;
    const hone_tensor *t = in->tensor + e->a;
    const int32_t *sub = in->list + e->b;
    const int64_t *stride = r->c->stride[e->a];
    const bool wide = r->s->n_index + r->s->n_reduce > r->lead; /* it goes along the row, too */
    if (e->flat || e->c >= 0 || t->dtype != HONE_DTYPE_F32 || e->a >= 63) return false;
    for (int k = 0; k < r->count; k++)
        if (r->first[k].tensor == e->a) {
            bool fits = r->first + k < r->s && (t->rank == r->lead || wide);
            for (int q = 0; q < t->rank && fits; q++) fits = is_own(r, sub[q], q);
            return fits && put(r, (const char[]){(char)('A' + k), 0});
        }
    if (t->role == HONE_ROLE_TEMP || !wide) return false;
    if (t->rank == r->lead + 1) {
        for (int q = 0; q <= r->lead; q++)
            if (!is_own(r, sub[q], q)) return false;
        if (r->d->x >= 0 && r->d->x != e->a) return false;
        r->d->x = e->a;
        return put(r, "x");
    }
    if (t->rank != 1 || !is_own(r, sub[0], r->lead) || stride[0] != 1 || r->d->n_p == HONE_NORM_PARAMETERS)
        return false;
    r->d->p[r->d->n_p++] = e->a;
    return put(r, "p");
}
static bool write_x(reading *r, int32_t x) {
    const hone_x *e = at(r, x);
    if (e->type != HONE_F32) return false;
    switch ((hone_xkind)e->kind) {
    case HONE_X_LOAD: return write_load(r, e);
    case HONE_X_CONST:
        if (r->known) return false;
        r->known = true, r->d->epsilon = e->k.f32;
        return put(r, "e");
    case HONE_X_CAST: /* the number of places, as a float */
        return at(r, e->a)->kind == HONE_X_PARAM && !r->c->instance->param_real[at(r, e->a)->a] &&
               r->c->param[at(r, e->a)->a].i == r->d->n && put(r, "n");
    case HONE_X_FN:
        if (hone_fns[e->fn].arity > 2 || !put(r, hone_fns[e->fn].name) || !put(r, "(") || !write_x(r, e->a))
            return false;
        return (hone_fns[e->fn].arity < 2 || (put(r, ",") && write_x(r, e->b))) && put(r, ")");
    case HONE_X_INDEX:
    case HONE_X_PARAM:
    case HONE_X_SELECT:
    case HONE_X_ROUND: return false;
    }
    return false;
}
static int64_t extent(const reading *r, const hone_stage *s, int place) {
    return r->c->param[r->c->instance->index[r->c->instance->list[s->index0 + place]].extent].i;
}
/* Are they stages over the same rows? Those that reduce have one index more, along the row, and so have some
   others (`wide`), the last one among them. */
static bool shaped(const reading *r, int f) {
    for (int k = 0; k < r->count; k++) {
        const hone_stage *s = r->first + k;
        const bool reduces = s->n_reduce == 1, last = k == r->count - 1,
                   wide = last || (forms[f].kind == HONE_NORM_SOFTMAX && k == 1);
        const hone_reduce reduce = !reduces                                       ? HONE_REDUCE_NONE
                                   : forms[f].kind >= HONE_NORM_SOFTMAX && k == 0 ? HONE_REDUCE_MAX
                                                                                  : HONE_REDUCE_SUM;
        if (!s->identity || s->how || s->over >= 0 || s->pick >= 0 || s->n_reduce > 1 || s->tensor >= 63 ||
            s->reduce != reduce || s->n_index != r->lead + wide || (reduces && wide) ||
            r->c->instance->tensor[s->tensor].dtype != HONE_DTYPE_F32 ||
            (!last && r->c->instance->tensor[s->tensor].role != HONE_ROLE_TEMP))
            return false;
        for (int q = 0; q < r->lead + (reduces || wide); q++)
            if (extent(r, s, q) != extent(r, r->first, q)) return false;
    }
    return true;
}
static bool is_form(reading *r, int f) {
    if (r->first + forms[f].n > r->c->instance->stage + r->c->instance->n_stage) return false;
    r->count = forms[f].n, r->known = false;
    if (!shaped(r, f)) return false;
    for (int k = 0; k < r->count; k++) {
        r->s = r->first + k, r->length = 0;
        if (!write_x(r, r->s->value) || strcmp(r->text, forms[f].stage[k])) return false;
    }
    return true;
}
/* Rows that go on evenly are one index: fewer divisions a row. False: there are too many, or none. */
static bool number_rows(const reading *r, hone_match_norm *d) {
    const int64_t *by_x = r->c->stride[d->x], *by_y = r->c->stride[d->y];
    d->rows = 1;
    for (int k = 0; k < r->lead; k++) {
        const int64_t many = extent(r, r->first, k);
        if (__builtin_mul_overflow(d->rows, many, &d->rows)) return false;
        if (many == 1 && d->lead) continue;
        const int q = d->lead - 1;
        if (q >= 0 && (d->extent[q] == 1 || (d->by_x[q] == many * by_x[k] && d->by_y[q] == many * by_y[k])))
            d->lead--, d->extent[q] *= many;
        else d->extent[d->lead] = many;
        d->by_x[d->lead] = by_x[k], d->by_y[d->lead++] = by_y[k];
    }
    return d->rows >= 1 && d->n >= 1;
}
bool hone_match_norm_of(const hone_sized *c, int stage, hone_match_norm *d) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + stage;
    reading r = {.c = c, .first = s, .lead = s->n_index, .d = d};
    *d = (hone_match_norm){.x = -1};
    if (s->reduce != HONE_REDUCE_SUM && s->reduce != HONE_REDUCE_MAX) return false;
    if (s->n_reduce != 1 || s->n_index < 1 || s->n_index >= HONE_MAX_RANK) return false;
    d->n = extent(&r, s, r.lead);
    int f = 0;
    for (; f < (int)(sizeof forms / sizeof *forms); f++) {
        d->x = -1, d->n_p = 0;
        if (is_form(&r, f)) break;
    }
    if (f == (int)(sizeof forms / sizeof *forms)) return false;
    uint64_t others = 0; /* what is made on the way is nobody else's */
    for (int k = 0; k < in->n_stage; k++) {
        const bool here = k >= stage && k < stage + forms[f].n;
        *(here ? &d->uses : &others) |= in->stage[k].uses;
        if (here && k < stage + forms[f].n - 1) d->own |= (uint64_t)1 << in->stage[k].tensor;
    }
    d->y = s[forms[f].n - 1].tensor, d->kind = forms[f].kind, d->stages = forms[f].n;
    if (d->own & others || c->stride[d->x][r.lead] != 1 || c->stride[d->y][r.lead] != 1) return false;
    return number_rows(&r, d);
}
