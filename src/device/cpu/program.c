/* SPDX-License-Identifier: Apache-2.0
   program: an instance's stages as CPU steps, each by the tactic that the table (tactics.h) says is the
   cheapest of those that take it; where none does, all by the interpreter. */
#include <string.h>

#include "base/round.h"
#include "device/cpu/contract.h"
#include "device/cpu/tactics.h"

hone_status hone_cpu_add(hone_template_builder *m, hone_step_template part) {
    part.step.decision = m->decision;
    return hone_push(&m->part, part) ? HONE_OK : hone_steps_no_memory();
}
hone_status hone_cpu_decide(hone_template_builder *m, const hone_cpu_call *c, const hone_problem *p,
                            const hone_choice **choice) {
    hone_decision *d = HONE_NEW(m->arena, hone_decision);
    if (!d) return hone_steps_no_memory();
    *choice = hone_wisdom_find(c->how.wisdom, p);
    d->problem = *p, d->wise = *choice != NULL, m->decision = d;
    return HONE_OK;
}

/* ---- the definition ------------------------------------------------------------------------------------ */
static const uint64_t EVERYTHING = ~(uint64_t)0; /* refs: all tensors, and no buffer */
typedef struct {
    const hone_instance *in;
    const hone_param *param;
    hone_tensor_view *place;
} interpreted;
static hone_status interpret_tile(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const interpreted *d = s->data;
    hone_tensor_view *p = scratch;
    (void)tile;
    memcpy(p, d->place, sizeof *p * (size_t)d->in->n_tensor);
    for (int t = 0; t < d->in->n_tensor; t++) p[t].at = hone_ref_at(s->ref[t], base);
    return hone_interpret(d->in, d->param, p);
}
static hone_status interpret_all(hone_template_builder *m, const hone_cpu_call *c) {
    int n = c->instance->n_tensor;
    interpreted *d = HONE_NEW(m->arena, interpreted);
    hone_tensor_view *place = HONE_NEW_N(m->arena, hone_tensor_view, n + 1);
    hone_param *param = hone_arena_copy(m->arena, c->param, sizeof *param * (size_t)c->instance->n_param);
    if (!d || !place || !param) return hone_steps_no_memory();
    for (int t = 0; t < n; t++) memcpy(place[t].stride, c->stride[t], sizeof place[t].stride);
    *d = (interpreted){c->instance, param, place};
    hone_step step = {.tactic = "interpret",
                      .serial = true,
                      .tiles = 1,
                      .scratch_bytes = sizeof(hone_tensor_view) * (size_t)(n + 1),
                      .tile = interpret_tile,
                      .data = d};
    m->part.n = m->packed.n = 0, m->decision = NULL;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = EVERYTHING, .buffer = -1});
}

/* ---- keys ---------------------------------------------------------------------------------------------- */
bool hone_cpu_known(const hone_cpu_call *c, int tensor) {
    const hone_tensor *w = c->instance->tensor + tensor;
    bool single = true;
    for (int k = 0; k < w->rank; k++) single &= c->param[w->dim[k]].i == 1;
    return single || (w->rank == 1 && c->param[w->dim[0]].i == 256 && c->stride[tensor][0] == 1);
}
const void *hone_cpu_seen(const void *of, int tensor) {
    const hone_cpu_call *c = of;
    return hone_cpu_known(c, tensor) ? hone_cpu_constant(c, tensor) : NULL;
}
/* All that steps follow from: the instance, its parameters, strides and, where weights may be packed or
   bytes looked up, which are constant; of a single number it may be looked at. 0: it is not to be kept. */
enum { MAX_KEY = 512 };
static int key_of(const hone_cpu_call *c, bool weights, int64_t *key) {
    const hone_instance *in = c->instance;
    int n = 0;
    if (!c->cache || 1 + in->n_param + in->n_tensor * (1 + HONE_MAX_RANK) > MAX_KEY - 3) return 0;
    key[n++] = (int64_t)(intptr_t)in;
    for (int k = 0; k < in->n_param; k++) key[n++] = c->param[k].i;
    for (int t = 0; t < in->n_tensor; t++) {
        const hone_tensor *w = in->tensor + t;
        if (w->role == HONE_ROLE_TEMP) continue; /* parameters and the others say how it lies */
        memcpy(key + n, c->stride[t], sizeof *key * (size_t)w->rank), n += w->rank;
        const void *known = weights ? hone_cpu_constant(c, t) : NULL;
        if (weights) key[n++] = !known ? 0 : hone_cpu_known(c, t) ? (int64_t)(intptr_t)known : 1;
    }
    return n;
}

/* ---- tile code ----------------------------------------------------------------------------------------- */
typedef struct {
    const hone_tilecode *code;
    int n_tensor;
    int64_t elements, grain;
} tiled;
static hone_status tiled_tile(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const tiled *d = s->data;
    void *at[64];
    for (int t = 0; t < d->n_tensor; t++) at[t] = hone_ref_at(s->ref[t], base);
    int64_t first = tile * d->grain, n = d->elements - first < d->grain ? d->elements - first : d->grain;
    return hone_tilecode_run(d->code, at, first, n, 0, NULL, scratch);
}
typedef struct {
    const hone_cpu_call *call;
    int stage, acc;
} coding;
static hone_status code_of(hone_arena *a, const void *arg, const void **out) {
    const coding *g = arg;
    const hone_cpu_call *c = g->call;
    hone_tensor_view place[HONE_MAX_TENSORS];
    for (int t = 0; t < c->instance->n_tensor; t++)
        memcpy(place[t].stride, c->stride[t], sizeof place[t].stride);
    hone_tilecode *code = NULL;
    hone_status s = hone_tilecode_make(a, c->instance, g->stage, c->param, place, g->acc, &code);
    *out = code;
    return s;
}
hone_status hone_cpu_tilecode(hone_template_builder *m, const hone_cpu_call *c, int stage, int acc,
                              const hone_tilecode **out) {
    int64_t key[MAX_KEY];
    int n = key_of(c, false, key);
    coding g = {c, stage, acc};
    const void *made = NULL;
    if (n) key[n++] = stage, key[n++] = acc;
    HONE_TRY(n ? hone_cache_get(c->cache, key, n, code_of, &g, &made) : code_of(m->arena, &g, &made));
    *out = made;
    return HONE_OK;
}
hone_status hone_cpu_tile(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end, bool *done) {
    const hone_tilecode *code;
    hone_status st = hone_cpu_tilecode(m, c, stage, -1, &code);
    (void)end;
    if (st == HONE_NOT_SUPPORTED) return HONE_OK;
    HONE_TRY(st);
    *done = true;
    tiled *d = HONE_NEW(m->arena, tiled);
    if (!d) return hone_steps_no_memory();
    int64_t n = hone_tilecode_elements(code), grain = hone_tilecode_grain(code, c->how.threads);
    if (n <= 0) return HONE_OK;
    *d = (tiled){code, c->instance->n_tensor, n, grain};
    hone_step step = {.tactic = "tile",
                      .serial = n <= grain,
                      .tiles = hone_ceil_div(n, grain),
                      .scratch_bytes = hone_tilecode_scratch(code),
                      .tile = tiled_tile,
                      .data = d};
    return hone_cpu_add(
        m, (hone_step_template){.step = step, .uses = c->instance->stage[stage].uses, .buffer = -1});
}

/* ---- over ---------------------------------------------------------------------------------------------- */
/* A recurrence: its stages in turn for t = 0, 1, … as one piece on one thread; products with constant weights
   by the matrix kernel. What never meets on the way (the two directions of a cell) are pieces of their own:
   each keeps its own weights in the cache, and runs where it likes. */
typedef struct {
    const hone_tilecode *code;
    hone_contract *product;
    int64_t tiles;
} recurring;
typedef struct {
    recurring *stage;
    int n, n_ref;
    int64_t count, apart; /* steps; pieces that never meet */
} recurrence;
static hone_status recurrence_tile(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const recurrence *d = s->data;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(s->ref[t], base);
    for (int64_t t = 0; t < d->count; t++)
        for (int k = 0; k < d->n; k++) {
            const recurring *r = d->stage + k;
            const int64_t all = r->code ? hone_tilecode_elements(r->code) : r->tiles, mine = all / d->apart;
            if (r->code) HONE_TRY(hone_tilecode_run(r->code, at, tile * mine, mine, t, NULL, scratch));
            else
                for (int64_t q = tile * mine; q < (tile + 1) * mine; q++)
                    HONE_TRY(hone_contract_tile(r->product, at, 0, q, t, scratch));
        }
    return HONE_OK;
}
/* How many pieces of stages from … to never meet: the extent of the index after the over index, if whatever
   one stage makes the others read at it only. */
static int64_t apart(const hone_cpu_call *c, int from, int to, const recurring *r) {
    const hone_instance *in = c->instance;
    int64_t n = 0;
    for (int k = from; k < to; k++) {
        const hone_stage *s = in->stage + k;
        if (!s->identity || s->n_index < 3 || in->list[s->index0] != s->over_index || s->pick >= 0) return 1;
        int32_t own = in->list[s->index0 + 1];
        int64_t extent = c->param[in->index[own].extent].i;
        if (n && n != extent) return 1;
        n = extent;
        const hone_contract *d = r[k - from].product;
        if (d && (d->of.n_batch != 1 || d->of.batch != n)) return 1;
        for (int x = 0; x < in->n_x; x++) {
            const hone_x *e = in->x + x;
            bool here = false;
            for (int q = from; q < to && e->kind == HONE_X_LOAD; q++) here |= in->stage[q].tensor == e->a;
            if (!here) continue;
            if (e->flat) return 1;
            const hone_x *sub = in->x + in->list[e->b + 1];
            if (sub->kind != HONE_X_INDEX) return 1;
            bool there = sub->a == own; /* or it is another stage's load: then not an index of this one */
            for (int q = 0; q < s->n_index + s->n_reduce && !there; q++)
                if (in->list[s->index0 + q] == sub->a) return 1;
        }
    }
    return n > 1 ? n : 1;
}
hone_status hone_cpu_over(hone_template_builder *m, const hone_cpu_call *c, int from, int *end, bool *done) {
    const int to = *end;
    recurrence *d = HONE_NEW(m->arena, recurrence);
    if (!d || !(d->stage = HONE_NEW_N(m->arena, recurring, to - from + 1))) return hone_steps_no_memory();
    size_t scratch = 0;
    uint64_t uses = 0;
    for (int k = from; k < to; k++) {
        recurring *r = d->stage + (k - from);
        size_t b = 0;
        HONE_TRY(hone_contract_over(m, c, k, false, &r->product, &r->tiles, &b));
        if (!r->product) {
            hone_status st = hone_cpu_tilecode(m, c, k, -1, &r->code);
            if (st == HONE_NOT_SUPPORTED) return HONE_OK;
            HONE_TRY(st);
            b = hone_tilecode_scratch(r->code);
        }
        scratch = b > scratch ? b : scratch, uses |= c->instance->stage[k].uses;
    }
    *done = true;
    d->n = to - from, d->n_ref = m->n_ref,
    d->count = c->param[c->instance->index[c->instance->stage[from].over_index].extent].i;
    d->apart = apart(c, from, to, d->stage);
    hone_step step = {.tactic = "over",
                      .serial = d->apart == 1,
                      .tiles = d->apart,
                      .scratch_bytes = scratch,
                      .tile = recurrence_tile,
                      .data = d};
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = uses, .buffer = -1});
}

/* ---- what steps read and write ------------------------------------------------------------------------- */
/* Parts from part0 on do stages from … to - 1. What one of these makes is not read from outside by the
   others; a stage that stores only here and there, or adds to what an earlier stage made, leaves the rest of
   that as it was: it reads it. Buffers are written by the part that brings them, and read by those after it.
   */
static hone_status state_access(hone_template_builder *m, const hone_instance *in, int from, int to,
                                int part0, int packed0) {
    uint64_t made = 0, reads = 0, packed = 0, all = 0, before = 0;
    for (int k = from; k < to; k++) all |= (uint64_t)1 << in->stage[k].tensor;
    for (int k = 0; k < from; k++) before |= (uint64_t)1 << in->stage[k].tensor;
    for (int k = from; k < to; k++) {
        const hone_stage *s = in->stage + k;
        const uint64_t target = (uint64_t)1 << s->tensor;
        reads |= s->uses & ~target & ~(s->over >= 0 ? all : made);
        if (s->how != HONE_STORE_SET || !s->identity) reads |= target & before & ~made;
        made |= target;
    }
    const uint64_t tensors = ((uint64_t)1 << in->n_tensor) - 1;
    for (int k = packed0; k < m->packed.n; k++) packed |= (uint64_t)1 << m->packed.at[k].ref;
    for (int k = part0; k < m->part.n; k++) {
        hone_step_template *p = m->part.at + k;
        hone_access *a = HONE_NEW(m->arena, hone_access);
        if (!a) return hone_steps_no_memory();
        const uint64_t buffer = p->buffer < 0 ? 0 : (uint64_t)1 << p->buffer;
        a->writes = (p->uses & made & tensors) | buffer;
        a->reads = (p->uses & reads & tensors) | packed;
        if (p->uses != EVERYTHING) a->reads |= p->uses & ~tensors & ~buffer;
        p->access = a, p->step.access = a;
    }
    return HONE_OK;
}
/* How much of each ref: tensors as they lie, buffers and packed forms as a whole. */
static hone_status state_boxes(hone_template_builder *m, const hone_cpu_call *c) {
    const hone_instance *in = c->instance;
    hone_box *box = HONE_NEW_N(m->arena, hone_box, m->n_ref + 1);
    bool good = box != NULL;
    for (int t = 0; t < in->n_tensor && good; t++) {
        int64_t extent[HONE_MAX_RANK];
        for (int k = 0; k < in->tensor[t].rank; k++) extent[k] = c->param[in->tensor[t].dim[k]].i;
        good = hone_box_make(m->arena, extent, c->stride[t], in->tensor[t].rank,
                             (int64_t)hone_dtypes[in->tensor[t].dtype].bytes, box + t);
    }
    for (int k = 0; k < m->part.n && good; k++)
        if (m->part.at[k].buffer >= 0) box[m->part.at[k].buffer] = (hone_box){.bytes = m->part.at[k].bytes};
    for (int k = 0; k < m->packed.n && good; k++)
        box[m->packed.at[k].ref] = (hone_box){.bytes = HONE_BOX_WHOLE};
    for (int k = 0; k < m->part.n && good; k++)
        m->part.at[k].access->box = box, m->part.at[k].access->n_ref = m->n_ref;
    return good ? HONE_OK : hone_steps_no_memory();
}

/* ---- everything ---------------------------------------------------------------------------------------- */
typedef struct {
    const hone_step_template *part;
    const hone_packed *packed;
    int n, n_packed, n_ref;
} lowered;
static hone_status lower(hone_template_builder *m, const hone_cpu_call *c, lowered *r) {
    const hone_instance *in = c->instance;
    bool fast = !c->how.interpret;
    for (int k = 0; k < in->n_stage && fast;) {
        const bool over = in->stage[k].over >= 0;
        int end = k + 1;
        while (over && end < in->n_stage && in->stage[end].over == in->stage[k].over) end++;
        const int part0 = m->part.n, packed0 = m->packed.n;
        fast = false, m->decision = NULL;
        hone_candidate candidate[HONE_MOST_CANDIDATES];
        const int n = hone_tactics_for(c, k, candidate);
        for (int t = 0; t < n && !fast; t++) HONE_TRY(candidate[t].tactic->bind(m, c, k, &end, &fast));
        if (fast) HONE_TRY(state_access(m, in, k, end, part0, packed0));
        k = end;
    }
    if (!fast) {
        HONE_TRY(interpret_all(m, c)); /* all of it, from the start */
        HONE_TRY(state_access(m, in, 0, in->n_stage, 0, 0));
    }
    HONE_TRY(state_boxes(m, c));
    r->part = hone_arena_copy(m->arena, m->part.at, sizeof *m->part.at * (size_t)m->part.n), r->n = m->part.n,
    r->n_ref = m->n_ref;
    r->packed = hone_arena_copy(m->arena, m->packed.at, sizeof *m->packed.at * (size_t)m->packed.n),
    r->n_packed = m->packed.n;
    return r->part && r->packed ? HONE_OK : hone_steps_no_memory();
}
static hone_status make(hone_arena *a, const void *call, const void **out) {
    const hone_cpu_call *c = call;
    hone_template_builder m = {.arena = a, .n_ref = c->instance->n_tensor};
    lowered *r = HONE_NEW(a, lowered);
    hone_status s = r ? lower(&m, c, r) : hone_steps_no_memory();
    hone_vec_free(&m.part);
    hone_vec_free(&m.packed);
    *out = r;
    return s;
}
static hone_status find(hone_steps *s, const hone_cpu_call *c, const lowered **out) {
    const hone_instance *in = c->instance;
    int64_t key[MAX_KEY];
    bool sums = false, bytes = false;
    for (int k = 0; k < in->n_stage; k++) sums |= in->stage[k].reduce == HONE_REDUCE_SUM;
    for (int t = 0; t < in->n_tensor; t++)
        bytes |= in->tensor[t].dtype == HONE_DTYPE_U8 || in->tensor[t].dtype == HONE_DTYPE_I8;
    int n = key_of(c, sums || bytes, key);
    const void *made = NULL;
    if (n) key[n++] = c->how.interpret ? 0 : c->how.threads; /* steps are cut for so many, */
    if (n) key[n++] = sums ? (int64_t)c->how.precision : 0;  /* and sums rounded so */
    if (n) key[n++] = sums && c->how.wisdom ? (int64_t)c->how.wisdom->id : 0;
    HONE_TRY(n ? hone_cache_get(c->cache, key, n, make, c, &made) : make(s->arena, c, &made));
    *out = made;
    return HONE_OK;
}
/* A temporary lies in the arena without gaps: row-major, or, where it has the shape of a result, in the order
   of that one, so that what makes the result of it walks both as they lie. Recurrences count on the first.
   False: too large. */
static bool lay(const hone_cpu_call *c, int t, int64_t *bytes) {
    const hone_instance *in = c->instance;
    const hone_tensor *w = in->tensor + t;
    int as = -1;
    bool over = false;
    for (int k = 0; k < in->n_stage; k++) over |= in->stage[k].over >= 0;
    for (int q = 0; q < in->n_tensor && as < 0 && !over; q++) {
        bool same = in->tensor[q].role == HONE_ROLE_OUT && in->tensor[q].rank == w->rank;
        for (int k = 0; k < w->rank && same; k++)
            same = c->param[w->dim[k]].i == c->param[in->tensor[q].dim[k]].i;
        if (same) as = q;
    }
    int order[HONE_MAX_RANK] = {0};
    for (int k = 0; k < w->rank; k++) {
        int q = k;
        for (; as >= 0 && q > 0 && c->stride[as][order[q - 1]] < c->stride[as][k]; q--)
            order[q] = order[q - 1];
        order[q] = k;
    }
    int64_t n = 1;
    for (int k = w->rank - 1; k >= 0; k--) {
        c->stride[t][order[k]] = n;
        if (__builtin_mul_overflow(n, c->param[w->dim[order[k]]].i, &n)) return false;
    }
    return !__builtin_mul_overflow(n, (int64_t)hone_dtypes[w->dtype].bytes, bytes);
}
static hone_status lay_all(const hone_cpu_call *c, int64_t *bytes, uint64_t *open) {
    const hone_instance *in = c->instance;
    for (int t = 0; t < in->n_tensor; t++) {
        if (in->tensor[t].role != HONE_ROLE_TEMP) continue;
        if (!lay(c, t, bytes + t))
            return hone_fail(HONE_NO_MEMORY, "a temporary of %s is too large", in->program->name);
        *open |= (uint64_t)1 << t;
    }
    return HONE_OK;
}
/* A block for something of each image. *by: from one to the next; NULL: there is one only. */
static int room(hone_steps *s, int64_t bytes, int64_t images, int64_t *by) {
    if (!by) return hone_steps_block(s, bytes);
    int64_t all;
    if (__builtin_add_overflow(bytes, 63, by) || __builtin_mul_overflow(*by -= *by % 64, images, &all))
        return -1;
    return hone_steps_block(s, all);
}
/* of a buffer for all images: where steps of one need more, all are one product */
enum { MOST_BETWEEN = 64 << 20 };
hone_status hone_cpu_bind(hone_steps *s, const hone_cpu_call *c) {
    const hone_instance *in = c->instance;
    int64_t bytes[HONE_MAX_TENSORS];
    if (in->n_tensor > HONE_MAX_TENSORS)
        return hone_fail(HONE_NOT_SUPPORTED, "%s has more than %d tensors in one program", in->program->name,
                         HONE_MAX_TENSORS);
    hone_cpu_call one; /* image, of so many */
    hone_param param[MAX_KEY];
    int64_t images = 1, *by = NULL;
    uint64_t open = 0; /* temporaries without a place yet */
    const lowered *r = NULL;
    if (in->n_param <= MAX_KEY && hone_batch_axis_one(c, param, &one, &images)) {
        HONE_TRY(lay_all(&one, bytes, &open));
        HONE_TRY(find(s, &one, &r));
        for (int k = 0; r && k < r->n; k++)
            if (r->part[k].buffer >= 0 && r->part[k].bytes > MOST_BETWEEN / images) r = NULL;
    }
    if (!r) {
        images = 1;
        HONE_TRY(lay_all(c, bytes, &open));
        HONE_TRY(find(s, c, &r));
    }
    if (c->how.tell && c->how.tell->of == c->of && !c->how.interpret)
        HONE_TRY(hone_tactics_tell(images > 1 ? &one : c, c->how.tell->to));
    int n_ref = r->n_ref;
    hone_ref *ref = HONE_NEW_N(s->arena, hone_ref, n_ref + 1);
    if (!ref) return hone_steps_no_memory();
    for (int t = 0; t < in->n_tensor; t++) ref[t] = c->ref[t];
    if (images > 1 && !(by = hone_batch_axis_strides(s->arena, c, n_ref))) return hone_steps_no_memory();
    for (int k = 0; k < r->n_packed; k++)
        HONE_TRY((r->packed[k].get ? r->packed[k].get : hone_contract_packed)(c, r->packed + k,
                                                                              ref + r->packed[k].ref));
    for (int k = 0; k < r->n; k++) {
        const hone_step_template *p = r->part + k;
        uint64_t fresh = open & p->uses; /* a block from the first step that touches it */
        open &= ~fresh;
        for (int t = 0; t < in->n_tensor && fresh >> t; t++) {
            if (!(fresh >> t & 1)) continue;
            int block = room(s, bytes[t], images, by ? by + t : NULL);
            if (block < 0)
                return hone_fail(HONE_NO_MEMORY, "a temporary of %s is too large", in->program->name);
            ref[t] = hone_block_ref(block, 0);
        }
        if (p->buffer >= 0) {
            int block = room(s, p->bytes, images, by ? by + p->buffer : NULL);
            if (block < 0) return hone_fail(HONE_NO_MEMORY, "a buffer of %s is too large", in->program->name);
            ref[p->buffer] = hone_block_ref(block, 0);
        }
        for (int t = 0; t < n_ref; t++)
            if (p->uses >> t & 1 && ref[t].base == HONE_BASE_ARENA) {
                hone_block *b = s->block.at + ref[t].block;
                b->last = s->step.n, b->plain |= !(p->step.half_able >> t & 1);
            }
        hone_step step = p->step;
        step.node = c->node, step.of = c->of, step.ref = ref;
        if (by) HONE_TRY(hone_batch_axis_all(s->arena, by, images, n_ref, &step));
        if (!hone_push(&s->step, step)) return hone_steps_no_memory();
    }
    for (int t = 0; t < n_ref; t++)
        if (ref[t].base == HONE_BASE_ARENA && !hone_push(&s->patch, ref + t)) return hone_steps_no_memory();
    return HONE_OK;
}
