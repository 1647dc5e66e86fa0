/* SPDX-License-Identifier: Apache-2.0
   fold_at_bind: what constants and shapes alone decide (masks of the past, tables of positions) is computed
   when a plan is made, not in every run of it.

   The node's steps are there; they run here and now, their blocks memory of the plan's own, and are taken
   back. Results are those of the steps, to the bit. */
#include "plan/concat_alias.h"

enum { MOST = 1 << 22 /* bytes a plan */ };

static bool decided(const hone_binder *b, const hone_level *l, const hone_instance *in, hone_operands t,
                    const hone_vid *id, int step0) {
    if (b->options.interpret || step0 == b->steps.step.n) return false;
    for (int q = 0; q < in->n_tensor; q++) {
        if (id[q] < 0) continue;
        if (in->tensor[q].role == HONE_ROLE_IN && !hone_bind_is_known(b, t.ref[q])) return false;
        if (in->tensor[q].role == HONE_ROLE_OUT &&
            (t.ref[q].base != HONE_BASE_ARENA || (l->c->concat_alias && l->c->concat_alias[id[q]].in >= 0)))
            return false;
    }
    for (int k = step0; k < b->steps.step.n; k++)
        if (b->steps.step.at[k].host || b->steps.step.at[k].flush) return false;
    return true;
}
/* The bases of what is known while a plan is made. NULL: no memory. */
static void *const *bases(const hone_binder *b) {
    const int constants = hone_packs_count(b->packs), all = constants + hone_slot_base(b, b->n_slot);
    void **base = HONE_NEW_N(b->scratch, void *, all);
    if (!base) return NULL;
    base += constants, base[HONE_BASE_PLAN] = b->own.at;
    hone_packs_bases(b->packs, 0, constants, base);
    for (const hone_plan *p = b->after; p; p = p->before) base[hone_slot_base(b, p->own_slot)] = p->own;
    return base;
}
static hone_status run(const hone_binder *b, int step0) {
    hone_segment all = {
        .step = b->steps.step.at + step0, .n = b->steps.step.n - step0, .base = bases(b), .threads = 1};
    hone_queue *q = NULL;
    if (!all.base) return hone_fail(HONE_NO_MEMORY, "no memory to bind a plan");
    for (int k = 0; k < all.n; k++)
        if (all.step[k].scratch_bytes > all.scratch_bytes) all.scratch_bytes = all.step[k].scratch_bytes;
    /* whatever device wants the result: it goes there with the plan's own memory */
    const hone_unit *host = b->units->unit;
    HONE_TRY(host->row->open(host->row, host->number, &q));
    hone_status s = host->row->run(q, &all);
    host->row->close(q);
    return s;
}
hone_status hone_bind_fold(hone_binder *b, const hone_level *l, const hone_instance *in, hone_operands t,
                           const hone_vid *id, int step0, int patch0) {
    if (!decided(b, l, in, t, id, step0)) return HONE_OK;
    const int own0 = b->own.n;
    const int n = b->steps.patch.n - patch0;
    hone_ref **patch = b->steps.patch.at + patch0, *was = HONE_NEW_N(b->scratch, hone_ref, n + 1);
    if (!was) return hone_fail(HONE_NO_MEMORY, "no memory to bind a plan");
    int64_t bytes = b->folded_bytes;
    /* a block as often as it is named: more than there is, and no list of blocks */
    for (int k = 0; k < n; k++) {
        was[k] = *patch[k];
        bytes += b->steps.block.at[was[k].block].bytes;
        if (bytes > MOST) return HONE_OK;
    }
    for (int k = 0; k < n; k++) {
        int first = 0;
        while (was[first].block != was[k].block) first++;
        const int64_t at = first < k ? patch[first]->offset - was[first].offset
                                     : hone_bind_own(b, b->steps.block.at[was[k].block].bytes);
        if (at < 0) return hone_fail(HONE_NO_MEMORY, "no memory to bind a plan");
        *patch[k] = (hone_ref){HONE_BASE_PLAN, -1, was[k].offset + at};
    }
    hone_packs_fill(b->packs, b->options.threads);
    hone_status done = run(b, step0);
    for (int q = 0; q < in->n_tensor && !done; q++)
        for (int k = 0; k < n && id[q] >= 0 && in->tensor[q].role == HONE_ROLE_OUT; k++)
            if (was[k].block == t.ref[q].block && was[k].offset == t.ref[q].offset) {
                l->var[id[q]].ref = t.ref[q] = *patch[k];
                break;
            }
    for (int k = 0; k < n; k++) {
        if (!done) b->steps.block.at[was[k].block].bytes = 0;
        else *patch[k] = was[k], b->own.n = own0; /* an index that is outside: so says the run */
    }
    if (!done) b->steps.step.n = step0, b->steps.patch.n = patch0, b->folded_bytes = bytes;
    return HONE_OK;
}
