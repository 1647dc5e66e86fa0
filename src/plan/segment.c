/* SPDX-License-Identifier: Apache-2.0
   segment: a plan from its begin, the inputs or the segment break before it, to its end: outputs, memory,
   what lives on past a segment break. What its nodes become is bind.c's. */
#include <string.h>

#include "plan/bind.h"
#include "plan/verify.h"

static void take_inputs(hone_level *l, const hone_fact *input) {
    const hone_graph *g = l->c->graph;
    for (int k = 0; k < g->in.n; k++) {
        hone_bound_var *w = l->var + g->in.at[k];
        w->fact = input[k];
        if (hone_fact_shaped(input + k)) {
            w->at = HONE_AT_REF, w->ref = (hone_ref){HONE_BASE_FIRST + k, -1, 0};
            hone_dense_strides(&w->fact, w->stride);
        } else w->at = HONE_AT_SLOT, w->slot = k; /* the first slots are the inputs */
        w->as_compiled = hone_bind_as_compiled(l, g->in.at[k]);
    }
}
/* what the symbols of the input dims are */
static void take_values(const hone_compiled *c, const hone_fact *input, int64_t *values) {
    const hone_graph *g = c->graph;
    int n = hone_dims_count(g->dims);
    for (int k = 0; k < n; k++) values[k] = HONE_DIM_UNKNOWN;
    for (int k = 0; k < g->in.n; k++) {
        const hone_var *v = g->var.at + g->in.at[k];
        for (int d = 0; d < v->rank && v->rank == input[k].rank; d++)
            if (hone_dim_is_symbolic(v->dim[d])) {
                int h = (int)(v->dim[d] - HONE_DIM_BAND);
                if (h < n && hone_dim_handle_op(g->dims, h) == HONE_DIM_SYMBOL) values[h] = input[k].dim[d];
            }
    }
    hone_dims_eval(g->dims, values);
}
/* Blocks are placed: so is what lies in them. */
static void settle(const hone_binder *b, const hone_plan *p, hone_ref *r) {
    if (r->base != HONE_BASE_ARENA || r->block < 0) return;
    const int space = b->steps.block.at[r->block].space;
    if (p->guard_slot < 0) r->offset += b->steps.block.at[r->block].at;
    if (p->guard_slot < 0 && space) r->base = hone_slot_base(b, p->space[space].slot);
    if (p->guard_slot >= 0) r->base = hone_slot_base(b, p->guard_slot + r->block);
    r->block = hone_block_placed(r->block);
}
enum { LINE = 64 }; /* what blocks are aligned to, on the host and wherever it is not said otherwise */
/* Blocks in memories of other devices: an arena each. */
static hone_status place_spaces(hone_binder *b, hone_plan *p) {
    if (!(p->space = hone_arena_alloc(p->arena, sizeof *p->space * (size_t)b->units->n)))
        return hone_bind_no_memory();
    for (int k = 0; k < b->units->n; k++) {
        const hone_unit *u = b->units->unit + k;
        bool any = false;
        p->space[k].slot = -1;
        for (int q = 0; q < b->steps.block.n; q++) any |= b->steps.block.at[q].space == k;
        if (!k || !any) continue;
        hone_target t = {0};
        int64_t lower, sum;
        if (u->row->target) u->row->target(u->row, u->number, &t);
        const int64_t bytes =
            hone_memory_plan(b->scratch, b->steps.block.at, b->steps.block.n, p->n_step, k,
                             t.alignment > LINE ? (int64_t)t.alignment : LINE, &lower, &sum);
        if (bytes < 0) return hone_bind_no_memory();
        p->space[k].slot = b->n_slot++;
        if (p->guard_slot >= 0) continue;
        p->space[k].bytes = bytes;
        if (t.largest && (uint64_t)bytes > t.largest)
            return hone_fail(HONE_NO_MEMORY,
                             "the tensors of a run need %lld bytes on %s:%d, which gives at most %zu at once",
                             (long long)bytes, u->row->name, u->number, t.largest);
    }
    return HONE_OK;
}
static void live_on(hone_binder *b, hone_ref r) { /* past a segment break: it keeps its block */
    if (r.base != HONE_BASE_ARENA || r.block < 0) return;
    b->steps.block.at[r.block].last = b->steps.step.n, b->steps.block.at[r.block].plain = true;
}
static hone_status finish(hone_binder *b, hone_level *l, hone_plan *p) {
    hone_graph *g = l->c->graph;
    for (int k = 0; k < g->out.n; k++) HONE_TRY(hone_bind_see(b, l, g->out.at[k]));
    for (int k = 0; b->cut >= 0 && k < g->var.n; k++) HONE_TRY(hone_bind_see(b, l, k));
    hone_bind_on(b, 0);
    for (int k = 0; b->cut >= 0 && k < b->n_wanted; k++) { /* it will be read as a value, by the host */
        hone_bound_var *v = l->var + b->wanted[k];
        if (v->at == HONE_AT_COUNTED) {
            HONE_TRY(hone_bind_count(b, v));
            continue;
        }
        HONE_TRY(hone_bind_dense(b, l, -1, v));
        if (v->at == HONE_AT_REF) HONE_TRY(hone_bind_bring(b, l, -1, b->wanted[k], &v->ref));
    }
    p->out = hone_arena_alloc(p->arena, sizeof *p->out * (size_t)(g->out.n + 1));
    if (!p->out) return hone_bind_no_memory();
    for (int k = 0; k < g->out.n; k++) {
        hone_bound_var *v = l->var + g->out.at[k];
        if (b->cut >= 0 && v->at == HONE_AT_NOWHERE) {
            p->out[k].how = HONE_OUT_LATER;
            continue;
        }
        if (v->at == HONE_AT_NOWHERE)
            return hone_fail(HONE_BAD_INPUT, "output '%s' is never computed", g->var.at[g->out.at[k]].name);
        bool mine = v->at == HONE_AT_REF && v->ref.base == HONE_BASE_FIRST + b->n_in + k &&
                    v->ref.offset == 0 && hone_bind_is_dense(v);
        if (b->cut >= 0 && !mine) {
            p->out[k].how = HONE_OUT_LATER;
            continue;
        }
        p->out[k].fact = v->fact;
        p->out[k].fact.value = NULL, p->out[k].fact.contents = NULL;
        if (v->at == HONE_AT_SLOT || (v->slot >= 0 && v->ref.base >= hone_slot_base(b, 0) &&
                                      hone_bind_is_dense(v) && v->ref.offset == 0)) {
            p->out[k].how = HONE_OUT_SLOT, p->out[k].slot = v->slot;
            continue;
        }
        p->out[k].how = HONE_OUT_WRITTEN;
        if (mine) continue;
        HONE_TRY(hone_bind_real(b, v));
        hone_bound_var to = *v;
        to.ref = (hone_ref){HONE_BASE_FIRST + b->n_in + k, -1, 0};
        hone_dense_strides(&to.fact, to.stride);
        int64_t bytes = 0;
        HONE_TRY(hone_bind_bytes(&v->fact, &bytes));
        if (!bytes) continue;
        const int space = hone_bind_space(b, v->ref);
        if (space > 0 && hone_bind_stays(b, k)) b->port[b->n_in + k] = (uint8_t)space;
        else if (space > 0) HONE_TRY(hone_bind_dense(b, l, -1, v));
        if (space > 0 && !hone_bind_stays(b, k))
            HONE_TRY(hone_bind_transfer(b, -1, NULL, v->ref, to.ref, bytes));
        else HONE_TRY(hone_bind_copy(b, l, -1, v, &to));
    }
    if (b->cut >= 0) { /* what lives on keeps its block to the end; the state is kept for the next plan
                          segment */
        for (int k = 0; k < g->var.n; k++) {
            const hone_bound_var *v = l->var + k;
            if (v->at == HONE_AT_REF || v->at == HONE_AT_COUNTED) live_on(b, v->ref);
            if (v->at == HONE_AT_COUNTED) live_on(b, v->count);
        }
    }
    for (int k = 0; k < b->steps.block.n; k++) { /* steps that were taken back may have made or read it */
        hone_block *w = b->steps.block.at + k;
        if (w->first > b->steps.step.n) w->first = b->steps.step.n;
        if (w->last > b->steps.step.n) w->last = b->steps.step.n;
    }
    for (int k = 0; k < b->units->n; k++) {
        const hone_device *row = b->units->unit[k].row;
        bool again = false;
        for (int q = 0; q < k; q++) again |= b->units->unit[q].row == row;
        if (row->join && !again) HONE_TRY(row->join(&b->steps));
    }
    p->n_step = b->steps.step.n;
    p->arena_bytes = hone_memory_plan(b->scratch, b->steps.block.at, b->steps.block.n, p->n_step, 0, LINE,
                                      &p->lower_bound_bytes, &p->sum_bytes);
    if (p->arena_bytes < 0) return hone_bind_no_memory();
    if (hone_guard_wanted()) p->arena_bytes = 0, p->guard_slot = b->n_slot, b->n_slot += b->steps.block.n;
    if (b->units->n > 1) HONE_TRY(place_spaces(b, p));
    for (int k = 0; k < b->steps.patch.n; k++) settle(b, p, b->steps.patch.at[k]);
    if (b->cut >= 0) {
        p->arena_slot = b->n_slot++, p->own_slot = b->n_slot++;
        p->cut_node = b->cut, p->n_wanted = b->n_wanted;
        p->wanted = hone_arena_copy(p->arena, b->wanted, sizeof *b->wanted * (size_t)b->n_wanted);
        p->var = hone_arena_copy(p->arena, l->var, sizeof *l->var * (size_t)g->var.n);
        if (!p->wanted || !p->var) return hone_bind_no_memory();
        for (int k = 0; k < g->var.n; k++) {
            hone_bound_var *v = p->var + k;
            if (!g->var.at[k].value) v->fact.value = NULL;
            if (v->fact.contents &&
                !(v->fact.contents = hone_arena_copy(p->arena, v->fact.contents,
                                                     sizeof(hone_dim) * (size_t)v->fact.n_content)))
                return hone_bind_no_memory();
            if (v->at != HONE_AT_REF && v->at != HONE_AT_COUNTED)
                continue; /* the next plan segment has memory of its own: this one's is a slot's to it */
            if (v->ref.base == HONE_BASE_PLAN) v->ref.base = hone_slot_base(b, p->own_slot);
            settle(b, p, &v->ref);
            if (v->ref.base == HONE_BASE_ARENA) v->ref.base = hone_slot_base(b, p->arena_slot);
            if (v->at != HONE_AT_COUNTED) continue;
            settle(b, p, &v->count);
            if (v->count.base == HONE_BASE_ARENA) v->count.base = hone_slot_base(b, p->arena_slot);
        }
    }
    p->step = hone_arena_copy(p->arena, b->steps.step.at, sizeof *p->step * (size_t)p->n_step);
    p->n_block = b->steps.block.n;
    p->block = hone_arena_copy(p->arena, b->steps.block.at, sizeof *p->block * (size_t)p->n_block);
    if (!p->step || !p->block) return hone_bind_no_memory();
    for (int k = 0; k < p->n_step; k++)
        if (p->step[k].scratch_bytes > p->scratch_bytes)
            p->scratch_bytes = hone_round_up64(p->step[k].scratch_bytes);
    p->n_slot = b->n_slot, p->n_base = hone_slot_base(b, b->n_slot),
    p->n_constant = hone_packs_count(b->packs);
    p->own_bytes = b->own.n;
    if (p->own_bytes && !(p->own = hone_alloc_raw((size_t)p->own_bytes))) return hone_bind_no_memory();
    if (p->own_bytes) memcpy(p->own, b->own.at, (size_t)p->own_bytes);
    return hone_bind_segments(b, p);
}
/* Where the tensors in slots lie: what earlier plan segments knew, and what was waited for. */
static hone_status take_slots(hone_binder *b, const hone_plan *after) {
    b->n_slot_space = after->n_slot;
    if (!(b->slot_space = HONE_NEW_N(b->scratch, uint8_t, after->n_slot + 1))) return hone_bind_no_memory();
    if (after->n_slot_space) memcpy(b->slot_space, after->slot_space, (size_t)after->n_slot_space);
    for (int k = 0; k < after->n_wanted && b->options.wanted_space; k++) {
        const hone_bound_var *v = after->var + after->wanted[k];
        if (v->at == HONE_AT_SLOT && v->slot >= b->n_in) b->slot_space[v->slot] = b->options.wanted_space[k];
    }
    return HONE_OK;
}
enum { MOST_KEPT = 1 << 16 }; /* bytes of a plan's own memory, for the next bind */
hone_status hone_bind(const hone_compiled *c, const hone_fact *input, const hone_plan *after,
                      const hone_fact *wanted, hone_bind_options how, hone_plan **out) {
    const hone_graph *g = c->graph;
    if (after && after->depth + 1 >= HONE_MAX_CUTS)
        return hone_fail(HONE_NOT_SUPPORTED, "more than %d shapes depend on computed data", HONE_MAX_CUTS);
    hone_plan *p = hone_alloc(sizeof *p);
    hone_binder b = {.options = how,
                     .cut = -1,
                     .after = after,
                     .packs = c->packs,
                     .units = how.units ? how.units : &hone_units_cpu,
                     .n_in = g->in.n,
                     .n_out = g->out.n};
    hone_status s = HONE_OK;
    hone_bind_workspace *bench = atomic_exchange(c->workspace, NULL);
    if (!bench) bench = hone_alloc(sizeof *bench);
    if (!p || !bench || !(p->arena = hone_arena_create()) ||
        (!bench->scratch && !(bench->scratch = hone_arena_create()))) {
        s = hone_bind_no_memory();
        goto done;
    }
    b.steps = bench->steps, b.scratch = bench->scratch, b.own = bench->own;
    hone_bind_on(&b, 0);
    if (b.units->n > 1) { /* inputs and outputs may lie in other memories */
        if (!(b.port = HONE_NEW_N(b.scratch, uint8_t, g->in.n + g->out.n + 1))) {
            s = hone_bind_no_memory();
            goto done;
        }
        if (how.in_space) memcpy(b.port, how.in_space, (size_t)g->in.n);
        if (after && after->port) memcpy(b.port, after->port, (size_t)g->in.n + (size_t)g->out.n);
    }
    p->cut_node = p->arena_slot = p->own_slot = p->guard_slot = -1, p->before = after,
    p->depth = after ? after->depth + 1 : 0;
    b.steps.arena = p->arena, b.cache = p->cache = hone_caches_hold(c->caches);
    /* slots: inputs that are no plain tensors, then what host ops make, and the memory of earlier
       plan segments */
    b.n_slot = after ? after->n_slot : g->in.n;
    if (after && b.units->n > 1 && (s = take_slots(&b, after))) goto done;
    hone_level l = {.c = c, .top = true};
    int64_t *values = hone_arena_raw(b.scratch, sizeof *values * (size_t)(hone_dims_count(g->dims) + 1));
    l.var = hone_arena_raw(b.scratch, sizeof *l.var * (size_t)(g->var.n + 1)), l.values = values;
    b.out_taken = hone_arena_alloc(b.scratch, (size_t)g->out.n + 1);
    if (!l.var || !l.values || !b.out_taken) {
        s = hone_bind_no_memory();
        goto done;
    }
    take_values(c, input, values);
    for (int k = 0; k < g->in.n; k++)
        for (int d = 0; d < input[k].rank; d++) l.empty |= input[k].dim[d] == 0;
    int from = 0;
    hone_bind_begin(&l);
    if (!after) take_inputs(&l, input);
    else {
        from = after->cut_node;
        memcpy(l.var, after->var, sizeof *l.var * (size_t)g->var.n);
        for (int k = 0; k < g->in.n; k++)
            if (!l.var[g->in.at[k]].fact.value) l.var[g->in.at[k]].fact.value = input[k].value;
        for (int k = 0; k < g->out.n; k++) b.out_taken[k] = after->out[k].how != HONE_OUT_LATER;
        for (int k = 0; k < after->n_wanted; k++) {
            hone_bound_var *v = l.var + after->wanted[k];
            v->as_compiled = false; /* more is known now */
            if (v->at == HONE_AT_SLOT) {
                v->fact = wanted[k];
                if (hone_fact_shaped(&v->fact)) {
                    v->at = HONE_AT_REF, v->ref = (hone_ref){hone_slot_base(&b, v->slot), -1, 0};
                    hone_dense_strides(&v->fact, v->stride);
                }
            } else if (v->at == HONE_AT_COUNTED) v->fact = wanted[k], v->at = HONE_AT_REF;
            else v->fact.value = wanted[k].value, v->fact.contents = NULL;
        }
    }
    if (!s) s = hone_bind_nodes(&b, &l, from);
    /* the results' own sizes are the last that is read */
    for (int k = 0; k < g->out.n && !s && (b.cut < 0 || b.cut == g->node.n) && b.n_wanted < HONE_MAX_WANTED;
         k++)
        if (l.var[g->out.at[k]].at == HONE_AT_COUNTED) {
            if (b.cut < 0) b.n_wanted = 0;
            b.cut = g->node.n, b.wanted[b.n_wanted++] = g->out.at[k];
        }
    if (!s) s = finish(&b, &l, p);
    if (!s && hone_verify_wanted()) s = hone_plan_verify(c, input, p);
    /* whatever came of it: what they are made by goes with the plan */
    hone_packs_fill(c->packs, how.threads);
done:
    hone_vec_free(&b.refused);
    if (b.scratch) {
        b.steps.step.n = b.steps.block.n = b.steps.patch.n = b.own.n = 0;
        if (b.own.room > MOST_KEPT) hone_vec_free(&b.own);
        bench->steps = b.steps, bench->own = b.own;
        hone_arena_reset(b.scratch);
    }
    hone_bind_workspace_destroy(atomic_exchange(c->workspace, bench));
    if (s) hone_plan_destroy(p);
    else *out = p;
    return s;
}
void hone_bind_workspace_destroy(hone_bind_workspace *w) {
    if (!w) return;
    hone_vec_free(&w->steps.step);
    hone_vec_free(&w->steps.block);
    hone_vec_free(&w->steps.patch);
    hone_vec_free(&w->own);
    hone_arena_destroy(w->scratch);
    hone_free(w);
}
void hone_plan_destroy(hone_plan *p) {
    while (p) {
        hone_plan *next = p->sibling;
        hone_plan_destroy(p->next_cut);
        hone_free(p->key);
        hone_free(p->own);
        hone_arena_destroy(p->arena);
        hone_cache_drop(p->cache);
        hone_free(p);
        p = next;
    }
}
