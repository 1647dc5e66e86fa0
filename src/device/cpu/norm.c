/* SPDX-License-Identifier: Apache-2.0
   norm: rows normalized over their last index, as one step: layer norm, RMS norm, softmax and its logarithm, whatever op they come from. What is made on the way is never stored.

   The stages' values are written as text and compared with a table, as in cell.c. In the text

        A, B, …   what the first, second, … of these stages makes, at the row's own indices, and at the place where it has one
        x, p      the row, at its place; a parameter by place alone
        n, e      how many places there are; a number

   Norms over several indices, of other types, or whose mean somebody else wants, are tile code. */
#include "kernels/norm.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "kernels/softmax.h"

enum { STAGES = 6, FORM = 40, PARAMETERS = 2, LEAST = 4096, MOST = 16384 /* elements a tile, about */, SHORT = 16 };
typedef enum { CENTRED, SQUARES, SOFTMAX, LOG_SOFTMAX } kind;
static const struct {
    int n;
    kind kind;
    const char *stage[STAGES];
} forms[] = {{6, CENTRED, {"x", "div(A,n)", "mul(sub(x,B),sub(x,B))", "div(C,n)", "rsqrt(add(D,e))", "add(mul(mul(sub(x,B),E),p),p)"}},
             {6, CENTRED, {"x", "div(A,n)", "mul(sub(x,B),sub(x,B))", "div(C,n)", "rsqrt(add(D,e))", "mul(mul(sub(x,B),E),p)"}},
             {3, SQUARES, {"mul(x,x)", "div(A,n)", "mul(mul(x,rsqrt(add(B,e))),p)"}},
             {4, SOFTMAX, {"x", "exp(sub(x,A))", "B", "div(B,C)"}},
             {3, LOG_SOFTMAX, {"x", "exp(sub(x,A))", "sub(sub(x,A),log(B))"}}};

typedef struct {
    const hone_norm *kernel;
    const hone_softmax *softmax;
    int x, y, p[PARAMETERS], n_p, lead;
    int64_t extent[HONE_MAX_RANK], by_x[HONE_MAX_RANK], by_y[HONE_MAX_RANK], rows, n, block;
    float epsilon;
    kind kind;
} norm;
static void softmax(const norm *d, const float *x, float *y) {
    if (x != y) memcpy(y, x, sizeof *y * (size_t)d->n);
    d->softmax->times(y, d->n, 1 / d->softmax->row(y, NULL, d->n, 1, -INFINITY));
}
static void log_softmax(const norm *d, const float *x, float *y) {
    float top;
    const float sum = logf(d->softmax->exps(x, d->n, &top));
    for (int64_t i = 0; i < d->n; i++) y[i] = x[i] - top - sum;
}
static hone_status run(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const norm *d = s->data;
    const float *x = (const float *)(const void *)hone_ref_at(s->ref[d->x], base), *p[PARAMETERS] = {NULL, NULL};
    float *y = (float *)(void *)hone_ref_at(s->ref[d->y], base);
    (void)scratch;
    for (int k = 0; k < d->n_p; k++) p[k] = (const float *)(const void *)hone_ref_at(s->ref[d->p[k]], base);
    const int64_t r0 = tile * d->block, r1 = d->rows - r0 < d->block ? d->rows : r0 + d->block;
    const int last = d->lead - 1;
    for (int64_t r = r0, some = 1; r < r1; r += some) {
        int64_t at_x = 0, at_y = 0, rest = r;
        for (int k = last; k >= 0; k--) {
            const int64_t i = k ? rest % d->extent[k] : rest;
            at_x += i * d->by_x[k], at_y += i * d->by_y[k], rest = k ? rest / d->extent[k] : 0;
        }
        if (d->kind < SOFTMAX) { /* rows that go on evenly at once */
            some = d->extent[last] - r % d->extent[last];
            if (some > r1 - r) some = r1 - r;
            d->kernel->rows(some, d->n, x + at_x, d->by_x[last], d->kind == CENTRED, d->epsilon, p[0], p[1], y + at_y, d->by_y[last]);
        } else if (d->kind == SOFTMAX) softmax(d, x + at_x, y + at_y);
        else log_softmax(d, x + at_x, y + at_y);
    }
    return HONE_OK;
}

/* ---- what it is ----------------------------------------------------------------------------------------------------------------------- */
typedef struct {
    const hone_cpu_call *c;
    const hone_stage *first, *s; /* of all; the one that is written */
    int lead, count;             /* indices of a row; stages */
    char text[FORM];
    int length;
    norm *d;
    bool known; /* epsilon */
} reading;
static const hone_x *at(const reading *r, int32_t x) { return r->c->instance->x + x; }
static bool put(reading *r, const char *word) {
    const int n = snprintf(r->text + r->length, (size_t)(FORM - r->length), "%s", word);
    return n >= 0 && (r->length += n) < FORM;
}
static bool is_own(const reading *r, int32_t x, int place) { /* the stage's own index, the domain's and then the reduced one */
    return at(r, x)->kind == HONE_X_INDEX && at(r, x)->a == r->c->instance->list[r->s->index0 + place];
}
static bool write_load(reading *r, const hone_x *e) {
    const hone_instance *in = r->c->instance;
    const hone_tensor *t = in->tensor + e->a;
    const int32_t *sub = in->list + e->b;
    const int64_t *stride = r->c->stride[e->a];
    const bool wide = r->s->n_index + r->s->n_reduce > r->lead; /* it knows places */
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
    if (t->rank != 1 || !is_own(r, sub[0], r->lead) || stride[0] != 1 || r->d->n_p == PARAMETERS) return false;
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
        if (hone_fns[e->fn].arity > 2 || !put(r, hone_fns[e->fn].name) || !put(r, "(") || !write_x(r, e->a)) return false;
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
/* Stages over the same rows; those that reduce know one index more, and so do some others, the last one among them. */
static bool shaped(const reading *r, int f) {
    for (int k = 0; k < r->count; k++) {
        const hone_stage *s = r->first + k;
        const bool reduces = s->n_reduce == 1, last = k == r->count - 1, wide = last || (forms[f].kind == SOFTMAX && k == 1);
        const hone_reduce reduce = !reduces ? HONE_REDUCE_NONE : forms[f].kind >= SOFTMAX && k == 0 ? HONE_REDUCE_MAX : HONE_REDUCE_SUM;
        if (!s->identity || s->how || s->over >= 0 || s->pick >= 0 || s->n_reduce > 1 || s->tensor >= 63 || s->reduce != reduce ||
            s->n_index != r->lead + wide || (reduces && wide) || r->c->instance->tensor[s->tensor].dtype != HONE_DTYPE_F32 ||
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
hone_status hone_cpu_norm(hone_recipe_maker *m, const hone_cpu_call *c, int stage, int *end, bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + stage;
    norm d = {.kernel = hone_norm_best(), .softmax = hone_softmax_best()};
    reading r = {.c = c, .first = s, .lead = s->n_index, .d = &d};
    if ((s->reduce != HONE_REDUCE_SUM && s->reduce != HONE_REDUCE_MAX) || s->n_reduce != 1 || s->n_index < 1 || s->n_index >= HONE_MAX_RANK)
        return HONE_OK;
    d.lead = r.lead, d.n = extent(&r, s, r.lead), d.rows = 1;
    int f = 0;
    for (; f < (int)(sizeof forms / sizeof *forms); f++) {
        d.x = -1, d.n_p = 0;
        if (is_form(&r, f)) break;
    }
    if (f == (int)(sizeof forms / sizeof *forms)) return HONE_OK;
    uint64_t own = 0, uses = 0, others = 0; /* what is made on the way is nobody else's */
    for (int k = 0; k < in->n_stage; k++) {
        const bool here = k >= stage && k < stage + forms[f].n;
        *(here ? &uses : &others) |= in->stage[k].uses;
        if (here && k < stage + forms[f].n - 1) own |= (uint64_t)1 << in->stage[k].tensor;
    }
    d.y = s[forms[f].n - 1].tensor, d.kind = forms[f].kind;
    const int64_t *by_x = c->stride[d.x], *by_y = c->stride[d.y];
    if (own & others || by_x[r.lead] != 1 || by_y[r.lead] != 1) return HONE_OK;
    d.lead = 0;
    for (int k = 0; k < r.lead; k++) {
        const int64_t many = extent(&r, s, k);
        if (__builtin_mul_overflow(d.rows, many, &d.rows)) return HONE_OK;
        if (many == 1 && d.lead) continue;
        const int q = d.lead - 1; /* rows that go on evenly are one index: fewer divisions a row */
        if (q >= 0 && (d.extent[q] == 1 || (d.by_x[q] == many * by_x[k] && d.by_y[q] == many * by_y[k]))) d.lead--, d.extent[q] *= many;
        else d.extent[d.lead] = many;
        d.by_x[d.lead] = by_x[k], d.by_y[d.lead++] = by_y[k];
    }
    if (d.rows < 1 || d.n < 1) return HONE_OK;
    if (d.kind >= SOFTMAX && d.n < SHORT)
        return HONE_OK; /* a call a row is more than tile code takes for so few (ultraface's pairs: 0.47 ms, not 0.1) */
    d.block = hone_share_of(d.rows, LEAST / d.n + 1, MOST / d.n + 1, c->how.threads);
    norm *kept = hone_arena_copy(m->arena, &d, sizeof d);
    if (!kept) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    hone_step step = {.tactic = "norm", .tiles = (d.rows + d.block - 1) / d.block, .tile = run, .data = kept};
    step.serial = step.tiles == 1;
    *done = true, *end = stage + forms[f].n;
    return hone_cpu_add(m, (hone_part){.step = step, .uses = uses & ~own, .buffer = -1});
}
