/* SPDX-License-Identifier: Apache-2.0
   place: where vars lie while a plan is made: in the caller's tensors, in blocks of the arena, in the room of
   a join; and copies from one place to another. What a node becomes is bind.c's. */
#include <fnmatch.h>
#include <string.h>

#include "plan/concat_alias.h"

void hone_dense_strides(const hone_fact *f, int64_t *stride) {
    int64_t n = 1;
    /* what is too large for any memory is refused when it is placed */
    for (int k = f->rank - 1; k >= 0; k--) {
        stride[k] = n;
        if (f->dim[k] > 0 && __builtin_mul_overflow(n, f->dim[k], &n)) n = 0;
    }
}
bool hone_bind_is_dense(const hone_bound_var *v) {
    int64_t n = 1;
    for (int k = v->fact.rank - 1; k >= 0; k--) {
        if (v->fact.dim[k] == 0) return true;
        if (v->fact.dim[k] != 1 && v->stride[k] != n) return false;
        if (__builtin_mul_overflow(n, v->fact.dim[k], &n)) return false;
    }
    return true;
}
hone_status hone_bind_bytes(const hone_fact *f, int64_t *out) {
    int64_t n;
    if (!hone_count_of(f->dim, f->rank, &n) ||
        __builtin_mul_overflow(n, (int64_t)hone_dtypes[f->dtype].bytes, out))
        return hone_fail(HONE_BAD_INPUT, "a tensor's size overflows");
    return HONE_OK;
}
hone_status hone_bind_see(hone_binder *b, const hone_level *l, hone_vid id) {
    if (id < 0 || l->var[id].at != HONE_AT_DIMS) return HONE_OK;
    const hone_var *v = l->c->graph->var.at + id;
    hone_bound_var *w = l->var + id;
    hone_dim *d = HONE_NEW_N(b->steps.arena, hone_dim, v->n_content + 1);
    if (!d) return hone_bind_no_memory();
    for (int k = 0; k < v->n_content; k++) d[k] = hone_dim_value(v->contents[k], l->values);
    w->at = HONE_AT_CONTENTS, w->as_compiled = true;
    w->fact = (hone_fact){.dtype = v->dtype, .rank = v->rank, .contents = d, .n_content = v->n_content};
    for (int k = 0; k < v->rank; k++) w->fact.dim[k] = hone_dim_value(v->dim[k], l->values);
    return HONE_OK;
}
bool hone_bind_as_compiled(const hone_level *l, hone_vid id) {
    const hone_var *v = l->c->graph->var.at + id;
    const hone_bound_var *w = l->var + id;
    const hone_fact *f = &w->fact;
    if (w->at == HONE_AT_NOWHERE || w->at == HONE_AT_SLOT || w->at == HONE_AT_COUNTED || v->tag != f->tag ||
        v->dtype != f->dtype || v->rank != f->rank)
        return false;
    for (int k = 0; k < v->rank; k++)
        if (hone_dim_value(v->dim[k], l->values) != f->dim[k]) return false;
    if (v->value || f->value) return v->value == f->value;
    if (!v->contents || !f->contents) return !v->contents && !f->contents;
    for (int k = 0; k < v->n_content; k++)
        if (v->n_content != f->n_content || hone_dim_value(v->contents[k], l->values) != f->contents[k])
            return false;
    return true;
}
int64_t hone_bind_own(hone_binder *b, int64_t bytes) {
    const int64_t at = b->own.n;
    if (bytes < 0 || bytes > INT32_MAX / 2 - at) return -1;
    const int n = (int)((at + bytes + 63) / 64 * 64);
    if (!hone_vec_grow((void **)&b->own.at, &b->own.room, n, 1)) return -1;
    /* nothing yet, and nothing wanted: there is no memory at all */
    if (n > at) memset(b->own.at + at, 0, (size_t)(n - at));
    b->own.n = n;
    return at;
}
bool hone_bind_is_known(const hone_binder *b, hone_ref r) {
    if (hone_base_is_constant(r.base) || r.base == HONE_BASE_PLAN) return true;
    for (const hone_plan *p = b->after; p; p = p->before)
        if (r.base == hone_slot_base(b, p->own_slot)) return true;
    return false;
}
hone_status hone_bind_real(hone_binder *b, hone_bound_var *v) {
    if (v->at != HONE_AT_CONTENTS) return HONE_OK;
    size_t item = hone_dtypes[v->fact.dtype].bytes;
    int64_t at = hone_bind_own(b, (int64_t)item * v->fact.n_content);
    if (at < 0) return hone_bind_no_memory();
    for (int k = 0; k < v->fact.n_content; k++)
        hone_dtype_store(v->fact.dtype, b->own.at + at + item * (size_t)k, HONE_I64,
                         (hone_scalar){.i64 = v->fact.contents[k]}, false);
    v->at = HONE_AT_REF, v->ref = (hone_ref){HONE_BASE_PLAN, -1, at};
    hone_dense_strides(&v->fact, v->stride);
    return HONE_OK;
}
hone_status hone_bind_block(hone_binder *b, const hone_level *l, hone_vid id, hone_bound_var *v) {
    int64_t bytes = 0;
    HONE_TRY(hone_bind_bytes(&v->fact, &bytes));
    int block = hone_steps_block(&b->steps, bytes);
    if (block < 0) return hone_bind_no_memory();
    v->at = HONE_AT_REF, v->ref = hone_block_ref(block, 0);
    hone_dense_strides(&v->fact, v->stride);
    if (id < 0) return HONE_OK;
    const hone_var *w = l->c->graph->var.at + id;
    b->steps.block.at[block].name = w->name;
    if (w->layout.kind == HONE_LAYOUT_ORDER && w->rank == v->fact.rank) { /* dims lie in another order */
        int64_t step = 1;
        for (int k = w->rank - 1; k >= 0; k--) {
            int d = w->layout.order[k];
            v->stride[d] = step, step *= v->fact.dim[d] > 0 ? v->fact.dim[d] : 1;
        }
    }
    return HONE_OK;
}
static bool place_out(hone_binder *b, const hone_level *l, hone_vid id, hone_bound_var *v) {
    for (int k = 0; l->top && k < l->c->graph->out.n; k++)
        if (l->c->graph->out.at[k] == id && !b->out_taken[k] && (!b->steps.space || hone_bind_stays(b, k))) {
            b->out_taken[k] = true;
            if (b->port) b->port[b->n_in + k] = b->steps.space;
            v->at = HONE_AT_REF, v->ref = (hone_ref){HONE_BASE_FIRST + b->n_in + k, -1, 0};
            hone_dense_strides(&v->fact, v->stride);
            return true;
        }
    return false;
}
hone_status hone_bind_place(hone_binder *b, hone_level *l, hone_vid id, hone_bound_var *v) {
    int64_t bytes;
    /* before anything multiplies its dims: an output is made by the run only */
    HONE_TRY(hone_bind_bytes(&v->fact, &bytes));
    bool done = place_out(b, l, id, v);
    if (!done) HONE_TRY(hone_concat_alias_place(b, l, id, v, &done));
    v->at = HONE_AT_REF;
    return done ? HONE_OK : hone_bind_block(b, l, id, v);
}
hone_status hone_bind_place_rows(hone_binder *b, hone_level *l, hone_vid id, hone_bound_var *v) {
    int64_t bytes;
    HONE_TRY(hone_bind_bytes(&v->fact, &bytes));
    if (place_out(b, l, id, v)) return HONE_OK;
    HONE_TRY(hone_bind_block(b, l, id, v));
    hone_dense_strides(&v->fact, v->stride);
    return HONE_OK;
}
/* A pattern of how.keep_f32 names something that the node reads or makes. */
bool hone_bind_keeps(const hone_binder *b, const hone_level *l, const hone_node *n) {
    const hone_graph *g = l->c->graph;
    char pattern[512];
    for (const char *line = b->options.keep_f32, *end; line && *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const size_t length = (size_t)(end - line);
        if (!length || length >= sizeof pattern) continue;
        memcpy(pattern, line, length), pattern[length] = 0;
        for (int k = 0; k < n->n_in + n->n_out; k++) {
            const hone_vid v = k < n->n_in ? n->in[k] : n->out[k - n->n_in];
            if (v >= 0 && !fnmatch(pattern, g->var.at[v].name, 0)) return true;
        }
    }
    return false;
}
hone_status hone_bind_copy(hone_binder *b, const hone_level *l, int node, const hone_bound_var *from,
                           const hone_bound_var *to) {
    _Atomic(const hone_instance *) *known =
        l->c->copies + from->fact.dtype * (HONE_MAX_RANK + 1) + from->fact.rank;
    const hone_instance *in = atomic_load(known);
    hone_arg arg[2] = {{.present = true,
                        .dtype = from->fact.dtype,
                        .rank = from->fact.rank,
                        .dim = from->fact.dim,
                        .n_content = -1},
                       {.present = true, .rank = -1}};
    hone_call call = {.program = l->c->identity, .arg = arg};
    if (!in) HONE_TRY(hone_instances_get(l->c->instances, &call, &in));
    if (!in) return hone_fail(HONE_BUG, "a copy could not be bound");
    atomic_store(known, in);
    hone_param *p = HONE_NEW_N(b->scratch, hone_param, in->n_param + 1);
    const hone_operands t = hone_operands_make(b->scratch, in->n_tensor);
    if (!p || !t.ref) return hone_bind_no_memory();
    HONE_TRY(hone_instance_solve(in, &call, p));
    for (int k = 0; k < in->n_tensor; k++) {
        const hone_bound_var *v = in->tensor[k].role == HONE_ROLE_IN ? from : to;
        t.ref[k] = v->ref;
        hone_instance_strides(in, &call, p, k, v->fact.dim, v->stride, t.stride[k]);
    }
    hone_device_call c = {.instance = in,
                          .param = p,
                          .stride = t.stride,
                          .ref = t.ref,
                          .node = node,
                          .of = node >= 0 ? l->c->graph->node.at[node] : NULL,
                          .packs = b->packs,
                          .cache = b->cache,
                          .keep_f32 = node >= 0 && hone_bind_keeps(b, l, l->c->graph->node.at[node]),
                          .how = b->options};
    const int before = b->steps.step.n, was = b->unit, space = hone_bind_space(b, to->ref);
    hone_bind_on(b, space < 0 ? 0 : space);
    c.unit = b->units->unit + b->unit;
    HONE_TRY(c.unit->row->bind(&b->steps, &c));
    for (int k = before; k < b->steps.step.n; k++)
        b->steps.step.at[k].tactic = "copy", b->steps.step.at[k].unit = (uint8_t)b->unit;
    hone_bind_on(b, was);
    return HONE_OK;
}
hone_status hone_bind_copy_apart(hone_binder *b, const hone_level *l, int node, const hone_bound_var *from,
                                 const hone_bound_var *to) {
    int d = -1, row = -1; /* d: where `to` runs on; row: where `from` does */
    for (int k = 0; k < from->fact.rank; k++) {
        if (from->fact.dim[k] < 2) continue;
        if (d < 0 || to->stride[k] < to->stride[d]) d = k;
        if (from->stride[k] == 1) row = k;
    }
    if (d < 0 || row < 0 || row == d || from->fact.dim[d] > 8 || from->fact.dim[row] <= from->fact.dim[d])
        return hone_bind_copy(b, l, node, from, to);
    if (from->fact.dtype == HONE_DTYPE_F32 && from->fact.dim[d] == 2 && to->stride[d] == 1 &&
        to->stride[row] == 2)
        return hone_bind_copy(b, l, node, from, to); /* two rows become one: transpose.c */
    hone_bound_var x = *from, y = *to;
    int64_t bytes = hone_dtypes[x.fact.dtype].bytes;
    x.fact.dim[d] = y.fact.dim[d] = 1;
    for (int64_t k = 0; k < from->fact.dim[d]; k++) {
        x.ref.offset = from->ref.offset + k * from->stride[d] * bytes,
        y.ref.offset = to->ref.offset + k * to->stride[d] * bytes;
        HONE_TRY(hone_bind_copy(b, l, node, &x, &y));
    }
    return HONE_OK;
}
hone_status hone_bind_dense(hone_binder *b, const hone_level *l, int node, hone_bound_var *v) {
    HONE_TRY(hone_bind_real(b, v));
    if (v->at != HONE_AT_REF || hone_bind_is_dense(v)) return HONE_OK;
    hone_bound_var dense = *v;
    const int was = b->unit, space = hone_bind_space(b, v->ref);
    if (space >= 0) hone_bind_on(b, space); /* where it is */
    HONE_TRY(hone_bind_block(b, l, -1, &dense));
    HONE_TRY(hone_bind_copy(b, l, node, v, &dense));
    hone_bind_on(b, was);
    *v = dense;
    return HONE_OK;
}
