/* SPDX-License-Identifier: Apache-2.0
   function: host ops that the device on which they are placed has a function for. Results whose size only
   the data say are counted: in memory with room for the most there can be, beside a number that the host
   reads when it wants to know (a segment break). */
#include <string.h>

#include "plan/bind.h"

static hone_status place_counted(hone_binder *b, const hone_level *l, hone_vid id, const hone_fact *most,
                                 int dim, hone_ref count, hone_bound_var *v) {
    v->fact = *most;
    HONE_TRY(hone_bind_block(b, l, -1, v));
    b->steps.block.at[v->ref.block].name = l->c->graph->var.at[id].name;
    v->at = HONE_AT_COUNTED, v->slot = -1, v->count = count, v->most = most->dim[dim],
    v->counted = (int8_t)dim;
    v->fact.dim[dim] = HONE_DIM_UNKNOWN;
    return HONE_OK;
}
hone_status hone_bind_function(hone_binder *b, hone_level *l, int node, const hone_node *n,
                               const hone_fact *out, bool *done) {
    *done = false;
    if (b->units->n == 1 || n->n_body) return HONE_OK;
    HONE_TRY(hone_bind_choose(b, l, n, NULL, out));
    const hone_unit *u = b->units->unit + b->unit;
    if (!b->unit || !u->row->takes || !u->row->alloc) return HONE_OK;
    hone_fact *fact = HONE_NEW_N(b->scratch, hone_fact, n->n_in + n->n_out + 1);
    int8_t *counted = HONE_NEW_N(b->scratch, int8_t, n->n_out + 1);
    hone_ref *ref = HONE_NEW_N(b->steps.arena, hone_ref, n->n_in + n->n_out + 1);
    if (!fact || !counted || !ref) return hone_bind_no_memory();
    for (int q = 0; q < n->n_in; q++) {
        fact[q] = n->in[q] < 0 ? hone_fact_unknown : l->var[n->in[q]].fact;
        if (n->in[q] >= 0 && !fact[q].value) fact[q].value = l->c->graph->var.at[n->in[q]].value;
    }
    memset(counted, -1, (size_t)n->n_out + 1);
    memcpy(fact + n->n_in, out, sizeof *out * (size_t)n->n_out);
    hone_function_call call = {
        .of = n, .node = node, .unit = u, .in = fact, .out = fact + n->n_in, .counted = counted, .ref = ref};
    if (!u->row->takes(u->row, u->number, &call)) return HONE_OK;
    for (int q = 0; q < n->n_in; q++) { /* dense, and there */
        ref[q] = (hone_ref){HONE_BASE_NONE, -1, 0};
        /* it was read already */
        if (n->in[q] < 0 || (q < n->program->n_in && n->program->operand[q].contents)) continue;
        HONE_TRY(hone_bind_dense(b, l, node, l->var + n->in[q]));
        HONE_TRY(hone_bind_bring(b, l, node, n->in[q], ref + q));
    }
    const int block = hone_steps_block(&b->steps, (int64_t)sizeof(int64_t));
    if (block < 0) return hone_bind_no_memory();
    const hone_ref count = ref[n->n_in + n->n_out] = hone_block_ref(block, 0);
    for (int q = 0; q < n->n_out; q++) {
        ref[n->n_in + q] = (hone_ref){HONE_BASE_NONE, -1, 0};
        if (n->out[q] < 0) continue;
        hone_bound_var *v = l->var + n->out[q];
        v->fact = call.out[q];
        HONE_TRY(counted[q] >= 0 ? place_counted(b, l, n->out[q], call.out + q, counted[q], count, v)
                                 : hone_bind_place_rows(b, l, n->out[q], v));
        ref[n->n_in + q] = v->ref;
    }
    const int before = b->steps.step.n;
    HONE_TRY(u->row->function(&b->steps, &call));
    for (int q = before; q < b->steps.step.n; q++) b->steps.step.at[q].unit = (uint8_t)b->unit;
    *done = true;
    return HONE_OK;
}
hone_status hone_bind_count(hone_binder *b, hone_bound_var *v) {
    const int64_t bytes = (int64_t)sizeof(int64_t);
    hone_bind_on(b, 0);
    const int block = hone_steps_block(&b->steps, bytes);
    if (block < 0) return hone_bind_no_memory();
    const hone_ref here = hone_block_ref(block, 0);
    HONE_TRY(hone_bind_transfer(b, -1, NULL, v->count, here, bytes));
    v->count = here;
    return HONE_OK;
}
