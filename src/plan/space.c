/* SPDX-License-Identifier: Apache-2.0
   space: which device a node goes to, and how values come from one memory to another. A var lies where it
   was made; who wants it elsewhere gets a copy of its bytes, made once a plan segment. Constants, and what
   is computed while a plan is made, are in every memory that wants them: nobody copies these in a run. */
#include <stdatomic.h>
#include <string.h>

#include "plan/bind.h"

struct hone_there {
    hone_vid id;
    int space;
    hone_ref of, at; /* the var's own place when it was brought, and where it is there */
    struct hone_there *next;
};
static bool same_ref(hone_ref a, hone_ref b) {
    return a.base == b.base && a.block == b.block && a.offset == b.offset;
}

/* ---- where things are ---------------------------------------------------------------------------------- */
int hone_plan_space(const hone_plan *p, int first_slot, int32_t base) {
    if (hone_base_is_constant(base) || base == HONE_BASE_PLAN) return -1;
    const int slot = base - first_slot;
    if (slot < 0) return base >= HONE_BASE_FIRST && p && p->port ? p->port[base - HONE_BASE_FIRST] : 0;
    for (const hone_plan *q = p; q && slot >= 0; q = q->before) {
        if (slot == q->own_slot) return -1;
        if (q->guard_slot >= 0 && slot >= q->guard_slot && slot < q->guard_slot + q->n_block)
            return q->block[slot - q->guard_slot].space;
        for (int k = 1; q->space && k < q->units->n; k++)
            if (q->space[k].slot == slot) return k;
    }
    return p && slot < p->n_slot_space ? p->slot_space[slot] : 0;
}
int hone_bind_space(const hone_binder *b, hone_ref r) {
    if (b->units->n == 1) return hone_bind_is_known(b, r) ? -1 : 0;
    if (r.base == HONE_BASE_ARENA && r.block >= 0) return b->steps.block.at[r.block].space;
    if (r.base >= HONE_BASE_FIRST && r.base < hone_slot_base(b, 0)) return b->port[r.base - HONE_BASE_FIRST];
    const int slot = r.base - hone_slot_base(b, 0);
    if (slot >= 0 && slot < b->n_slot_space && b->slot_space[slot]) return b->slot_space[slot];
    return hone_plan_space(b->after, hone_slot_base(b, 0), r.base);
}
void hone_bind_on(hone_binder *b, int unit) {
    b->unit = unit, b->steps.space = (uint8_t)hone_unit_space(b->units, unit);
}

/* ---- placement ----------------------------------------------------------------------------------------- */
enum { SMALL = 1 << 20 /* bytes of results that constants alone decide */ };
static bool is_small(const hone_binder *b, const hone_level *l, const hone_node *n, const hone_fact *out) {
    int64_t all = 0, bytes;
    for (int q = 0; q < n->n_in; q++) {
        if (n->in[q] < 0) continue;
        const hone_bound_var *v = l->var + n->in[q];
        if (v->at != HONE_AT_DIMS && v->at != HONE_AT_CONTENTS &&
            (v->at != HONE_AT_REF || !hone_bind_is_known(b, v->ref)))
            return false;
    }
    for (int q = 0; q < n->n_out; q++) {
        if (n->out[q] < 0) continue;
        if (hone_bind_bytes(out + q, &bytes) || bytes > SMALL) return false;
        all += bytes;
    }
    return all <= SMALL;
}
hone_status hone_bind_choose(hone_binder *b, const hone_level *l, const hone_node *n, const hone_instance *in,
                             const hone_fact *out) {
    if (b->units->n == 1) return HONE_OK;
    int unit = n->unit < b->units->n ? n->unit : 0; /* as it was compiled */
    const hone_device *row = b->units->unit[unit].row;
    bool strings = false;
    for (int q = 0; q < n->n_in; q++)
        strings |= n->in[q] >= 0 && l->var[n->in[q]].fact.dtype == HONE_DTYPE_STRING;
    for (int q = 0; q < n->n_out; q++) strings |= n->out[q] >= 0 && out[q].dtype == HONE_DTYPE_STRING;
    if (unit && (strings || is_small(b, l, n, out))) unit = 0;
    const char *why = unit && in && row->refuses ? row->refuses(row, in) : NULL;
    if (why || n->refused) {
        unit = 0, why = why ? why : n->refused;
        if (!hone_push(&b->refused, ((hone_refusal){n, why}))) return hone_bind_no_memory();
    }
    hone_bind_on(b, unit);
    return HONE_OK;
}

/* ---- copies -------------------------------------------------------------------------------------------- */
hone_status hone_bind_transfer(hone_binder *b, int node, const hone_node *of, hone_ref from, hone_ref to,
                               int64_t bytes) {
    hone_transfer *t = HONE_NEW(b->steps.arena, hone_transfer);
    hone_ref *ref = HONE_NEW_N(b->steps.arena, hone_ref, 2);
    hone_access *access = HONE_NEW(b->steps.arena, hone_access);
    hone_box *box = HONE_NEW_N(b->steps.arena, hone_box, 2);
    if (!t || !ref || !access || !box) return hone_bind_no_memory();
    *t = (hone_transfer){hone_bind_space(b, from), hone_bind_space(b, to), bytes};
    ref[0] = from, ref[1] = to, box[0].bytes = box[1].bytes = bytes;
    *access = (hone_access){.reads = 1, .writes = 2, .box = box, .n_ref = 2};
    hone_step step = {.tactic = !t->from ? "copy in"
                                : !t->to ? "copy out"
                                         : "copy across",
                      .node = node,
                      .of = of,
                      .serial = true,
                      .unit = HONE_UNIT_COPY,
                      .tiles = 1,
                      .data = t,
                      .access = access};
    return hone_steps_add(&b->steps, step, ref, 2);
}
/* All its elements, in whatever order, without a gap: its bytes are a copy of it. */
static bool is_run(hone_binder *b, const hone_bound_var *v, int64_t bytes) {
    hone_box box;
    for (int d = 0; d < v->fact.rank; d++) /* an element twice, or backwards: its box would not say so */
        if (v->fact.dim[d] > 1 && v->stride[d] <= 0) return false;
    return hone_box_make(b->scratch, v->fact.dim, v->stride, v->fact.rank,
                         (int64_t)hone_dtypes[v->fact.dtype].bytes, &box) &&
           !box.n && box.bytes == bytes;
}
hone_status hone_bind_bring(hone_binder *b, hone_level *l, int node, hone_vid id, hone_ref *out) {
    hone_bound_var *v = l->var + id;
    const int to = b->steps.space;
    *out = v->ref;
    if (b->units->n == 1) return HONE_OK;
    const int from = hone_bind_space(b, v->ref);
    if (from < 0 || from == to) return HONE_OK;
    for (const struct hone_there *t = l->there; t; t = t->next)
        if (t->id == id && t->space == to && same_ref(t->of, v->ref)) {
            *out = t->at;
            return HONE_OK;
        }
    int64_t bytes = 0;
    HONE_TRY(hone_bind_bytes(&v->fact, &bytes));
    if (bytes && !is_run(b, v, bytes)) HONE_TRY(hone_bind_dense(b, l, node, v));
    int block = hone_steps_block(&b->steps, bytes);
    struct hone_there *t = HONE_NEW(b->scratch, struct hone_there);
    if (block < 0 || !t) return hone_bind_no_memory();
    *t = (struct hone_there){id, to, v->ref, hone_block_ref(block, 0), l->there};
    b->steps.block.at[block].name = l->c->graph->var.at[id].name;
    if (bytes)
        HONE_TRY(
            hone_bind_transfer(b, node, node >= 0 ? l->c->graph->node.at[node] : NULL, v->ref, t->at, bytes));
    l->there = t, *out = t->at;
    return HONE_OK;
}

/* ---- segments ------------------------------------------------------------------------------------------ */
typedef hone_vec(struct hone_need) needs;
static bool add_need(needs *all, struct hone_need n) {
    for (int k = 0; k < all->n; k++)
        if (all->at[k].unit == n.unit && all->at[k].base == n.base) return true;
    return hone_push(all, n);
}
static hone_status find_needs(const hone_binder *b, hone_plan *p) {
    needs all = {0};
    bool good = true;
    for (int k = 0; k < p->n_step && good; k++) {
        const hone_step *w = p->step + k;
        if (w->unit == HONE_UNIT_COPY || !hone_unit_space(b->units, w->unit)) continue;
        for (int q = 0; w->access && q < w->access->n_ref && good; q++)
            if ((w->access->reads >> q & 1) && hone_plan_space(p, hone_slot_base(b, 0), w->ref[q].base) < 0)
                good = add_need(&all, (struct hone_need){w->unit, w->ref[q].base});
    }
    if (good)
        p->n_need = all.n,
        good = (p->need = hone_arena_copy(p->arena, all.at, sizeof *all.at * (size_t)all.n)) != NULL;
    hone_vec_free(&all);
    return good ? HONE_OK : hone_bind_no_memory();
}
hone_status hone_bind_segments(const hone_binder *b, hone_plan *p) {
    static atomic_uint_fast64_t plans;
    int n = 0;
    for (int k = 0; k < p->n_step; k++) n += !k || p->step[k].unit != p->step[k - 1].unit;
    p->units = b->units, p->id = 1 + atomic_fetch_add(&plans, 1), p->n_segment = 0;
    if (!(p->segment = HONE_NEW_N(p->arena, struct hone_planned_segment, n + 1)))
        return hone_bind_no_memory();
    for (int k = 0; k < p->n_step; k++) {
        if (!k || p->step[k].unit != p->step[k - 1].unit)
            p->segment[p->n_segment++] = (struct hone_planned_segment){.unit = p->step[k].unit, .from = k};
        struct hone_planned_segment *g = p->segment + p->n_segment - 1;
        g->to = k + 1;
        if (p->step[k].scratch_bytes > g->scratch_bytes)
            g->scratch_bytes = hone_round_up64(p->step[k].scratch_bytes);
    }
    for (int k = 0; k < p->n_segment; k++) {
        struct hone_planned_segment *g = p->segment + k;
        if (g->unit == HONE_UNIT_COPY) continue;
        const hone_device *row = b->units->unit[g->unit].row;
        if (row->seal) HONE_TRY(row->seal(p->arena, p->step + g->from, g->to - g->from, &g->sealed));
    }
    if (b->units->n == 1) return HONE_OK;
    if (!(p->port = hone_arena_copy(p->arena, b->port, (size_t)b->n_in + (size_t)b->n_out)))
        return hone_bind_no_memory();
    p->n_slot_space = b->n_slot_space;
    if (b->n_slot_space &&
        !(p->slot_space = hone_arena_copy(p->arena, b->slot_space, (size_t)b->n_slot_space)))
        return hone_bind_no_memory();
    HONE_TRY(find_needs(b, p));
    p->n_refused = b->refused.n;
    p->refused = hone_arena_copy(p->arena, b->refused.at, sizeof *p->refused * (size_t)p->n_refused);
    return p->refused ? HONE_OK : hone_bind_no_memory();
}
