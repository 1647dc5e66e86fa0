/* SPDX-License-Identifier: Apache-2.0
   rotary: positions as rotations, as one step. Three stages, whatever op they come from:

        c[b, s, p, k]  =  cosine[…]
        n[b, s, p, k]  =  select(p == 0, 0 - sine[…], sine[…])
        y[…]           =  x[…] * c[b, s, p, k]  +  x[…] * n[b, s, p, k]         over b, h, s, p, k; the second
                                                                                x is the other one of the pair

   c and n, every number twice, are never made: a token's row of each table meets all heads. Pairs whose
   elements lie neither in two rows nor side by side, and tables whose rows data pick, are tile code. */
#include "kernels/rotary.h"

#include <string.h>

#include "base/round.h"
#include "base/thread.h"
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"

enum { STAGES = 3, LEAST = 4096, MOST = 16384 /* values a tile, about */ };
enum { BATCH, HEAD, TOKEN, PAIR, K, INDICES }; /* of the last stage; the others have no head */
typedef struct {
    hone_rotary_shape shape;
    hone_rotary_fn *run;
    int x, y, cosine, sine;
    hone_affine at_x, at_y, at_cosine, at_sine; /* by batch and token */
    int64_t tokens, all, block;
} rotary;
static const float *row(const hone_step *s, void *const *base, int tensor, const hone_affine *f, int64_t b,
                        int64_t t) {
    return (const float *)(const void *)hone_ref_at(s->ref[tensor], base) + f->c + b * f->k[BATCH] +
           t * f->k[TOKEN];
}
static hone_status run(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const rotary *d = s->data;
    float *y = (float *)(void *)hone_ref_at(s->ref[d->y], base) + d->at_y.c;
    (void)scratch;
    const int64_t end = d->all - tile * d->block < d->block ? d->all : (tile + 1) * d->block;
    for (int64_t r = tile * d->block; r < end; r++) {
        const int64_t b = r / d->tokens, t = r % d->tokens;
        d->run(&d->shape, row(s, base, d->x, &d->at_x, b, t), row(s, base, d->cosine, &d->at_cosine, b, t),
               row(s, base, d->sine, &d->at_sine, b, t), y + b * d->at_y.k[BATCH] + t * d->at_y.k[TOKEN]);
    }
    return HONE_OK;
}

/* ---- recognising --------------------------------------------------------------------------------------- */
typedef struct {
    const hone_cpu_call *c;
    const hone_stage *s; /* the first */
    hone_slots_of slots[STAGES];
} reading;
static const hone_x *at(const reading *r, int32_t x) { return r->c->instance->x + x; }
static const hone_x *fn_of(const reading *r, int32_t x, hone_fn fn) {
    return at(r, x)->kind == HONE_X_FN && at(r, x)->fn == fn ? at(r, x) : NULL;
}
static bool zero(const reading *r, int32_t x) {
    const hone_x *e = at(r, x);
    if (e->kind != HONE_X_CONST) return false;
    return e->type == HONE_F32   ? e->k.f32 == 0
           : e->type == HONE_I64 ? e->k.i64 == 0
                                 : e->type == HONE_I32 && e->k.i32 == 0;
}
/* Which place in the stage's domain an index of the last stage's has; the head has none. */
static int place(int stage, int index) { return stage == STAGES - 1 || index < HEAD ? index : index - 1; }
/* A load of floats that is never outside, by the indices of the last stage. */
static bool loads(const reading *r, int stage, int32_t x, int *tensor, hone_affine *out) {
    const hone_x *e = at(r, x);
    hone_affine f;
    if (e->kind != HONE_X_LOAD || e->flat || r->c->instance->tensor[e->a].dtype != HONE_DTYPE_F32 ||
        r->c->instance->tensor[e->a].role == HONE_ROLE_TEMP ||
        !hone_affine_inside(&r->c->sized, r->slots + stage, x, &f))
        return false;
    *tensor = e->a, *out = (hone_affine){.c = f.c};
    for (int k = 0; k < INDICES; k++)
        if (stage == STAGES - 1 || k != HEAD) out->k[k] = f.k[place(stage, k)];
    return true;
}
/* A load of what the first or the second stage makes, at the last one's own indices. */
static bool is_made(const reading *r, int32_t x, int stage) {
    const hone_instance *in = r->c->instance;
    const hone_x *e = at(r, x);
    if (e->kind != HONE_X_LOAD || e->flat || e->a != r->s[stage].tensor) return false;
    for (int k = 0; k < INDICES; k++) {
        if (k == HEAD) continue;
        const hone_x *sub = at(r, in->list[e->b + place(stage, k)]);
        if (sub->kind != HONE_X_INDEX || sub->a != in->list[r->s[STAGES - 1].index0 + k]) return false;
    }
    return true;
}
static bool same(const hone_affine *f, const hone_affine *g) { return !memcmp(f, g, sizeof *f); }
/* The table that a stage reads, as a row a token. */
static bool table(const reading *r, int stage, int *tensor, hone_affine *f) {
    const hone_x *e = at(r, r->s[stage].value);
    if (stage == 0) {
        if (!loads(r, 0, r->s->value, tensor, f)) return false;
    } else { /* taken away where p is 0 */
        const hone_x *is = e->kind == HONE_X_SELECT ? fn_of(r, e->a, HONE_FN_eq) : NULL,
                     *less = is ? fn_of(r, e->b, HONE_FN_sub) : NULL;
        hone_affine g;
        int again;
        if (!less || at(r, is->a)->kind != HONE_X_INDEX ||
            at(r, is->a)->a != r->slots[1].id[place(1, PAIR)] || !zero(r, is->b) || !zero(r, less->a) ||
            !loads(r, 1, less->b, tensor, f) || !loads(r, 1, e->c, &again, &g) || again != *tensor ||
            !same(f, &g))
            return false;
    }
    return !f->k[PAIR] && (f->k[K] == 1 || r->slots[2].extent[K] == 1);
}
static bool shaped(reading *r) {
    const hone_instance *in = r->c->instance;
    for (int q = 0; q < STAGES; q++) {
        const hone_stage *s = r->s + q;
        const bool last = q == STAGES - 1;
        hone_slots_of *w = r->slots + q;
        if (s->reduce || s->how || s->over >= 0 || s->pick >= 0 || s->skip || s->n_index != INDICES - !last ||
            s->tensor >= 63 || in->tensor[s->tensor].dtype != HONE_DTYPE_F32 ||
            at(r, s->value)->type != HONE_F32 ||
            (!last && (!s->identity || in->tensor[s->tensor].role != HONE_ROLE_TEMP)))
            return false;
        *w = (hone_slots_of){.n_domain = s->n_index, .n = s->n_index, .over = -1, .cache = r->c->cache};
        for (int k = 0; k < w->n; k++) {
            w->dim[k] = k, w->id[k] = in->list[s->index0 + k],
            w->extent[k] = r->c->param[in->index[w->id[k]].extent].i;
            if (w->extent[k] < 1) return false;
        }
    }
    for (int q = 0; q < STAGES - 1; q++)
        for (int k = 0; k < INDICES; k++)
            if (k != HEAD && r->slots[q].extent[place(q, k)] != r->slots[2].extent[k]) return false;
    return r->slots[2].extent[PAIR] == 2;
}
/* Where the last stage stores. */
static bool stores(const reading *r, hone_affine *out) {
    const hone_instance *in = r->c->instance;
    const hone_stage *s = r->s + STAGES - 1;
    *out = (hone_affine){0};
    if (s->identity || s->sub0 < 0) return false;
    for (int k = 0; k < in->tensor[s->tensor].rank; k++) {
        hone_affine sub;
        int64_t lo, hi;
        if (!hone_affine_expr(&r->c->sized, r->slots + 2, in->list[s->sub0 + k], &sub)) return false;
        hone_affine_range(r->slots + 2, &sub, &lo, &hi);
        if (lo < 0 || hi >= r->c->param[in->tensor[s->tensor].dim[k]].i) return false;
        if (!hone_affine_move(r->slots + 2, &sub, r->c->stride[s->tensor][k], out)) return false;
    }
    return true;
}
static bool recognise(const reading *r, rotary *d) {
    const hone_stage *s = r->s + STAGES - 1;
    const hone_x *sum = fn_of(r, s->value, HONE_FN_add), *p = sum ? fn_of(r, sum->a, HONE_FN_mul) : NULL,
                 *q = p ? fn_of(r, sum->b, HONE_FN_mul) : NULL;
    hone_affine other;
    int again;
    if (!q || !is_made(r, p->b, 0) || !is_made(r, q->b, 1) || !table(r, 0, &d->cosine, &d->at_cosine) ||
        !table(r, 1, &d->sine, &d->at_sine) || !loads(r, 2, p->a, &d->x, &d->at_x) ||
        !loads(r, 2, q->a, &again, &other) || again != d->x || !stores(r, &d->at_y))
        return false;
    const hone_affine *x = &d->at_x, *y = &d->at_y;
    other.c -= x->k[PAIR], other.k[PAIR] = -other.k[PAIR];
    if (!same(x, &other)) return false;
    const int64_t *extent = r->slots[2].extent;
    d->shape = (hone_rotary_shape){extent[HEAD], extent[K], x->k[HEAD], y->k[HEAD], x->k[PAIR], y->k[PAIR]};
    d->y = s->tensor, d->tokens = extent[TOKEN];
    const bool one = extent[K] == 1, halves = one || (x->k[K] == 1 && y->k[K] == 1),
               neighbours = x->k[K] == 2 && y->k[K] == 2 && x->k[PAIR] == 1 && y->k[PAIR] == 1;
    d->run = halves ? hone_rotary_best()->halves : hone_rotary_best()->neighbours;
    return (halves || neighbours) && !__builtin_mul_overflow(extent[BATCH], d->tokens, &d->all);
}
hone_status hone_cpu_rotary(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                            bool *done) {
    const hone_instance *in = c->instance;
    reading r = {.c = c, .s = in->stage + stage};
    rotary d = {0};
    if (stage + STAGES > in->n_stage || !shaped(&r) || !recognise(&r, &d)) return HONE_OK;
    uint64_t own = (uint64_t)1 << r.s[0].tensor | (uint64_t)1 << r.s[1].tensor, uses = 0, others = 0;
    for (int k = 0; k < in->n_stage; k++)
        *(k >= stage && k < stage + STAGES ? &uses : &others) |= in->stage[k].uses;
    if (own & others) return HONE_OK;
    const int64_t values = 2 * d.shape.heads * d.shape.pairs;
    d.block = hone_share_of(d.all, LEAST / values + 1, MOST / values + 1, c->how.threads);
    rotary *kept = hone_arena_copy(m->arena, &d, sizeof d);
    if (!kept) return hone_steps_no_memory();
    hone_step step = {.tactic = "rotary", .tiles = hone_ceil_div(d.all, d.block), .tile = run, .data = kept};
    step.serial = step.tiles == 1;
    *done = true, *end = stage + STAGES;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = uses & ~own, .buffer = -1});
}
