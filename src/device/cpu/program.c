/* SPDX-License-Identifier: Apache-2.0
   program: an instance's stages as CPU steps: by a hand-written kernel where one applies, else by tile code, else by the interpreter. */
#include <string.h>

#include "device/cpu/contract.h"

/* ---- the definition ------------------------------------------------------------------------------------------------------------------- */
typedef struct { const hone_instance *in; const hone_param *param; hone_ref *ref; hone_place *place; } interpreted;
static hone_status interpret_tile(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const interpreted *d = s->data;
    hone_place *p = scratch;
    (void)tile;
    memcpy(p, d->place, sizeof *p * (size_t)d->in->n_tensor);
    for (int t = 0; t < d->in->n_tensor; t++) p[t].at = hone_ref_at(d->ref[t], base);
    return hone_interpret(d->in, d->param, p);
}
static hone_status interpret_all(hone_steps *s, const hone_cpu_call *c) {
    int n = c->instance->n_tensor;
    interpreted *d = HONE_NEW(s->arena, interpreted);
    hone_ref *ref = HONE_NEW_N(s->arena, hone_ref, n + 1);
    hone_place *place = HONE_NEW_N(s->arena, hone_place, n + 1);
    hone_param *param = hone_arena_copy(s->arena, c->param, sizeof *param * (size_t)c->instance->n_param);
    if (!d || !ref || !place || !param) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    for (int t = 0; t < n; t++) ref[t] = c->tensor[t].ref, memcpy(place[t].stride, c->tensor[t].stride, sizeof place[t].stride);
    *d = (interpreted){c->instance, param, ref, place};
    hone_step step = {.tactic = "interpret", .node = c->node, .of = c->of, .serial = true, .tiles = 1, .scratch_bytes = sizeof(hone_place) * (size_t)(n + 1), .tile = interpret_tile, .data = d};
    return hone_steps_add(s, step, ref, n);
}

/* ---- tile code ------------------------------------------------------------------------------------------------------------------------ */
typedef struct { const hone_tilecode *code; const hone_ref *ref; int n_tensor; int64_t elements, grain; } tiled;
static hone_status tiled_tile(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const tiled *d = s->data;
    void *at[64];
    for (int t = 0; t < d->n_tensor; t++) at[t] = hone_ref_at(d->ref[t], base);
    int64_t first = tile * d->grain, n = d->elements - first < d->grain ? d->elements - first : d->grain;
    return hone_tilecode_run(d->code, at, first, n, 0, NULL, scratch);
}
hone_status hone_cpu_tilecode(hone_steps *s, const hone_cpu_call *c, int stage, int acc, hone_tilecode **out) {
    int n = c->instance->n_tensor;
    hone_place *place = HONE_NEW_N(s->arena, hone_place, n + 1);
    if (!place) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    for (int t = 0; t < n; t++) memcpy(place[t].stride, c->tensor[t].stride, sizeof place[t].stride);
    return hone_tilecode_make(s->arena, c->instance, stage, c->param, place, acc, out);
}
hone_ref *hone_cpu_refs(hone_steps *s, const hone_cpu_call *c) {
    hone_ref *ref = HONE_NEW_N(s->arena, hone_ref, c->instance->n_tensor + 1);
    for (int t = 0; ref && t < c->instance->n_tensor; t++) ref[t] = c->tensor[t].ref;
    return ref;
}
/* Only the tensors a stage touches keep their blocks alive. */
static void used_by(const hone_instance *in, int32_t x, uint64_t *met) {
    if (x < 0) return;
    const hone_x *e = in->x + x;
    switch (e->kind) {
    case HONE_X_LOAD:
        *met |= (uint64_t)1 << e->a;
        for (int k = 0; k < (e->flat ? 1 : in->tensor[e->a].rank); k++) used_by(in, in->list[e->b + k], met);
        used_by(in, e->c, met);
        break;
    case HONE_X_FN:
    case HONE_X_SELECT:
    case HONE_X_CAST:
    case HONE_X_ROUND: used_by(in, e->a, met), used_by(in, e->b, met), used_by(in, e->c, met); break;
    default: break;
    }
}
uint64_t hone_cpu_uses(const hone_instance *in, int stage) {
    const hone_stage *s = in->stage + stage;
    uint64_t met = (uint64_t)1 << s->tensor;
    used_by(in, s->value, &met), used_by(in, s->pick, &met);
    for (int k = 0; s->sub0 >= 0 && k < in->tensor[s->tensor].rank; k++) used_by(in, in->list[s->sub0 + k], &met);
    return met;
}
hone_status hone_cpu_add(hone_steps *s, const hone_cpu_call *c, hone_step step, hone_ref *ref, uint64_t uses) {
    int n = c->instance->n_tensor;
    int last = s->step.n;
    for (int t = 0; t < n; t++) {
        if (!(uses >> t & 1) || ref[t].base != HONE_BASE_ARENA) continue;
        s->block.at[ref[t].block].last = last;
        if (!hone_push(&s->patch, ref + t)) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    }
    return hone_push(&s->step, step) ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a plan");
}
static hone_status tile_stage(hone_steps *s, const hone_cpu_call *c, int stage, bool *done) {
    hone_tilecode *code;
    hone_status st = hone_cpu_tilecode(s, c, stage, -1, &code);
    if (st == HONE_NOT_SUPPORTED) { *done = false; return HONE_OK; }
    HONE_TRY(st);
    *done = true;
    tiled *d = HONE_NEW(s->arena, tiled);
    hone_ref *ref = hone_cpu_refs(s, c);
    if (!d || !ref) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    int64_t n = hone_tilecode_elements(code), grain = hone_tilecode_grain(code);
    if (n <= 0) return HONE_OK;
    if (grain < 1) grain = 1;
    *d = (tiled){code, ref, c->instance->n_tensor, n, grain};
    hone_step step = {.tactic = "tile", .node = c->node, .of = c->of, .serial = n <= grain, .tiles = (n + grain - 1) / grain, .scratch_bytes = hone_tilecode_scratch(code), .tile = tiled_tile, .data = d};
    return hone_cpu_add(s, c, step, ref, hone_cpu_uses(c->instance, stage));
}

/* ---- over --------------------------------------------------------------------------------------------------------------------------- */
/* A recurrence: its stages in turn for t = 0, 1, … as one piece on one thread; products with constant weights by the matrix kernel. */
typedef struct { hone_tilecode *code; hone_contract *product; int64_t tiles; } recurring;
typedef struct { recurring *stage; int n; const hone_ref *ref; int n_tensor; int64_t count; } recurrence;
static hone_status recurrence_tile(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const recurrence *d = s->data;
    void *at[64];
    (void)tile;
    for (int t = 0; t < d->n_tensor; t++) at[t] = hone_ref_at(d->ref[t], base);
    for (int64_t t = 0; t < d->count; t++)
        for (int k = 0; k < d->n; k++) {
            const recurring *r = d->stage + k;
            if (r->code) HONE_TRY(hone_tilecode_run(r->code, at, 0, hone_tilecode_elements(r->code), t, NULL, scratch));
            else
                for (int64_t q = 0; q < r->tiles; q++) HONE_TRY(hone_contract_tile(r->product, at, NULL, q, t, scratch));
        }
    return HONE_OK;
}
static hone_status over_stages(hone_steps *s, const hone_cpu_call *c, int from, int to, bool *done) {
    recurrence *d = HONE_NEW(s->arena, recurrence);
    hone_ref *ref = hone_cpu_refs(s, c);
    if (!d || !ref || !(d->stage = HONE_NEW_N(s->arena, recurring, to - from + 1))) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    size_t scratch = 0;
    uint64_t uses = 0;
    for (int k = from; k < to; k++) {
        recurring *r = d->stage + (k - from);
        size_t b = 0;
        HONE_TRY(hone_contract_over(s, c, k, &r->product, &r->tiles, &b));
        if (!r->product) {
            hone_status st = hone_cpu_tilecode(s, c, k, -1, &r->code);
            if (st == HONE_NOT_SUPPORTED) { *done = false; return HONE_OK; }
            HONE_TRY(st);
            b = hone_tilecode_scratch(r->code);
        }
        scratch = b > scratch ? b : scratch, uses |= hone_cpu_uses(c->instance, k);
    }
    *done = true;
    d->n = to - from, d->ref = ref, d->n_tensor = c->instance->n_tensor, d->count = c->param[c->instance->index[c->instance->stage[from].over_index].extent].i;
    hone_step step = {.tactic = "over", .node = c->node, .of = c->of, .serial = true, .tiles = 1, .scratch_bytes = scratch, .tile = recurrence_tile, .data = d};
    return hone_cpu_add(s, c, step, ref, uses);
}

/* ---- everything ----------------------------------------------------------------------------------------------------------------------- */
hone_status hone_cpu_bind(hone_steps *s, const hone_cpu_call *c) {
    const hone_instance *in = c->instance;
    if (in->n_tensor > 60) return hone_fail(HONE_NOT_SUPPORTED, "%s has more than 60 tensors in one program", in->program->name);
    for (int t = 0; t < in->n_tensor; t++) { /* temporaries lie row-major in the arena */
        const hone_tensor *w = in->tensor + t;
        if (w->role != HONE_ROLE_TEMP) continue;
        int64_t n = 1;
        for (int k = w->rank - 1; k >= 0; k--) {
            c->tensor[t].stride[k] = n;
            if (__builtin_mul_overflow(n, c->param[w->dim[k]].i, &n)) return hone_fail(HONE_NO_MEMORY, "a temporary of %s is too large", in->program->name);
        }
        int64_t bytes;
        int block = __builtin_mul_overflow(n, (int64_t)hone_dtypes[w->dtype].bytes, &bytes) ? -1 : hone_steps_block(s, bytes);
        if (block < 0) return hone_fail(HONE_NO_MEMORY, "a temporary of %s is too large", in->program->name);
        c->tensor[t].ref = hone_block_ref(block, 0);
    }
    if (c->interpret) return interpret_all(s, c);
    int steps = s->step.n;
    for (int k = 0; k < in->n_stage;) {
        bool done = false;
        int end = k + 1;
        if (in->stage[k].over >= 0) {
            while (end < in->n_stage && in->stage[end].over == in->stage[k].over) end++;
            HONE_TRY(over_stages(s, c, k, end, &done));
        } else {
            HONE_TRY(hone_cpu_contract(s, c, k, &end, &done));
            if (!done) HONE_TRY(tile_stage(s, c, k, &done));
        }
        if (!done) { /* the interpreter does all of it, from the start */
            s->step.n = steps;
            return interpret_all(s, c);
        }
        k = end;
    }
    return HONE_OK;
}
