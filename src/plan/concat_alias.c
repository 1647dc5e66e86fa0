/* SPDX-License-Identifier: Apache-2.0
   concat_alias: the parts of a Concat are written where the Concat will want them, so that nothing is left to
   copy.

   At compile each var that may lie inside a Concat's output gets an alias: that output, and how far along its
   axis. Aliases nest: a Concat of a Concat lies in the last one's block. At bind the first part that is
   placed makes the room, a block for the whole; what does not fit there after all, because a dim transposed
   out otherwise or is not known, lies by itself and is copied as if it had no alias. */
#include "plan/concat_alias.h"

#include <string.h>

#include "loops/fuse.h"

enum {
    MAX_DEPTH = 200 /* of aliases in aliases: rooms are made by recursion */,
    SOON = 8 /* nodes */,
    MAX_EARLY = 16
};

/* ---- compile ------------------------------------------------------------------------------------------- */
static bool is_view(const hone_node *n, const char *how) {
    return n->program->runs == HONE_RUNS_VIEW && !strcmp(n->program->how, how);
}
static bool hands_on(const hone_node *n) { /* a view for any strides of its input */
    return is_view(n, "transpose") || is_view(n, "slice") || is_view(n, "split") || is_view(n, "expand") ||
           (n->program->runs != HONE_RUNS_VIEW && !strcmp(n->program->name, "Identity"));
}
typedef struct {
    const hone_compiled *c;
    hone_concat_alias *alias;
    bool *leaves; /* the graph: an output */
    /* some reader would make it dense: lying among others would cost a copy instead of saving one */
    bool *rows;
    int *last;      /* node that reads it last, or its block */
    uint8_t *depth; /* of aliases in aliases */
} finding;
static void find_readers(finding *f) {
    const hone_graph *g = f->c->graph;
    for (int k = g->node.n - 1; k >= 0; k--) { /* readers first */
        const hone_node *n = g->node.at[k];
        const hone_instance *in = n->fused ? n->fused->instance : f->c->instance[k];
        bool joins = !n->n_part && is_view(n, "concat"); /* copies from anywhere */
        bool view = !n->n_part && hands_on(n),
             loads = n->program->runs == HONE_RUNS_PROGRAM && !n->n_body && in;
        for (int q = 0; q < n->n_in; q++) {
            hone_vid x = n->in[q];
            if (x < 0) continue;
            if (f->last[x] < k) f->last[x] = k;
            if (!view && !loads && !joins) f->rows[x] = true;
            for (int o = 0; o < n->n_out && q == 0 && !joins && n->program->runs == HONE_RUNS_VIEW; o++) {
                hone_vid y = n->out[o];
                if (y >= 0 && f->last[x] < f->last[y]) f->last[x] = f->last[y];
                if (y >= 0 && view) f->rows[x] |= f->rows[y];
            }
        }
        for (int t = 0; loads && !view && t < in->n_tensor; t++) {
            const hone_tensor *w = in->tensor + t;
            const hone_node *part = n->n_part && n->fused ? n->part[n->fused->from[t].part] : n;
            if (w->role == HONE_ROLE_IN && w->dense && part->in[w->operand] >= 0)
                f->rows[part->in[w->operand]] = true;
        }
    }
}
static bool has_product(const hone_instance *in) { /* a sum of products: its kernels store rows anywhere */
    for (int k = 0; k < in->n_stage; k++) {
        const hone_x *x = in->x + in->stage[k].value;
        if (in->stage[k].reduce == HONE_REDUCE_SUM && x->kind == HONE_X_FN && x->fn == HONE_FN_mul)
            return true;
    }
    return false;
}
/* By something that stores with any strides for nothing. Tile code does not: it computes whole tiles of a
   dense tensor where it lies, but brings rows among others there one by one, which costs what the copy
   would. */
static bool is_made(const hone_compiled *c, const hone_var *x) {
    if (x->producer < 0) return false;
    const hone_node *n = c->graph->node.at[x->producer];
    if (!n->n_part && is_view(n, "concat")) return true;
    const hone_instance *in = n->fused ? n->fused->instance : c->instance[x->producer];
    return n->program->runs == HONE_RUNS_PROGRAM && !n->n_body && in && has_product(in);
}
static bool is_shaped(const hone_var *v) {
    if (v->tag != HONE_TAG_TENSOR || !v->dtype || v->dtype == HONE_DTYPE_STRING || v->rank < 1 || v->value ||
        v->contents)
        return false;
    for (int d = 0; d < v->rank; d++)
        if (v->dim[d] == HONE_DIM_UNKNOWN) return false;
    return true;
}
static bool same_layout(const hone_var *a, const hone_var *b) {
    return a->rank == b->rank && a->dtype == b->dtype && a->layout.kind == b->layout.kind &&
           (a->layout.kind != HONE_LAYOUT_ORDER ||
            !memcmp(a->layout.order, b->layout.order, (size_t)a->rank));
}
static bool is_most(hone_dim part, hone_dim whole) {
    return !hone_dim_is_number(part) || !hone_dim_is_number(whole) || part > whole / 2;
}
/* The room is there from its first part on, to the last reader of any. What is not most of it, and comes long
   before the others or is needed longer, would keep memory for nothing: it is copied. */
static void leave_early(finding *f, const hone_node *n, int node, int axis) {
    const hone_graph *g = f->c->graph;
    hone_vid y = n->out[0];
    for (int tries = 0; tries < MAX_EARLY; tries++) {
        hone_vid first = -1, next = -1;
        for (int q = 0; q < n->n_in; q++) {
            hone_vid x = n->in[q];
            if (x < 0 || f->alias[x].in != y || x == first || x == next) continue;
            if (first < 0 || g->var.at[x].producer < g->var.at[first].producer) next = first, first = x;
            else if (next < 0 || g->var.at[x].producer < g->var.at[next].producer) next = x;
        }
        if (first < 0) return;
        int then = next < 0 ? node : g->var.at[next].producer;
        if (then - g->var.at[first].producer <= SOON ||
            is_most(g->var.at[first].dim[axis], g->var.at[y].dim[axis]))
            return;
        f->alias[first].in = -1, f->depth[first] = 0;
    }
}
static void find_parts(finding *f, int node) {
    const hone_graph *g = f->c->graph;
    const hone_node *n = g->node.at[node];
    if (n->n_part || !is_view(n, "concat") || n->out[0] < 0) return;
    hone_vid out = n->out[0];
    const hone_var *y = g->var.at + out;
    int axis = hone_attr_axis(n->attr, n->n_attr, y->rank);
    if (!is_shaped(y) || f->leaves[out] || axis < 0 || f->depth[out] >= MAX_DEPTH) return;
    hone_dim at = 0;
    for (int q = 0; q < n->n_in && at != HONE_DIM_UNKNOWN; q++) {
        hone_vid id = n->in[q];
        if (id < 0) return; /* whoever binds it will say so */
        const hone_var *x = g->var.at + id;
        bool may = f->alias[id].in < 0 && !f->leaves[id] && !f->rows[id] && is_shaped(x) &&
                   is_made(f->c, x) && same_layout(x, y);
        if (may && (f->last[id] <= f->last[out] || is_most(x->dim[axis], y->dim[axis]))) {
            f->alias[id] = (hone_concat_alias){.in = out, .axis = axis, .at = at},
            f->depth[id] = (uint8_t)(f->depth[out] + 1);
            if (f->last[id] < f->last[out]) f->last[id] = f->last[out]; /* with the whole */
        }
        at = x->rank == y->rank ? hone_dim_add(g->dims, at, x->dim[axis]) : HONE_DIM_UNKNOWN;
    }
    leave_early(f, n, node, axis);
}
hone_status hone_concat_aliases_find(hone_compiled *c) {
    const hone_graph *g = c->graph;
    bool any = false;
    for (int k = 0; k < g->node.n && !any; k++)
        any = !g->node.at[k]->n_part && is_view(g->node.at[k], "concat");
    if (!any) return HONE_OK;
    size_t n = (size_t)g->var.n + 1;
    finding f = {c,
                 HONE_NEW_N(g->arena, hone_concat_alias, n),
                 hone_alloc(n),
                 hone_alloc(n),
                 hone_alloc(sizeof *f.last * n),
                 hone_alloc(n)};
    bool good = f.alias && f.leaves && f.rows && f.last && f.depth;
    if (good) {
        for (int v = 0; v < g->var.n; v++) f.alias[v].in = -1;
        for (int k = 0; k < g->out.n; k++) f.leaves[g->out.at[k]] = true;
        find_readers(&f);
        /* the last first: what it takes in, others may lie in */
        for (int k = g->node.n - 1; k >= 0; k--) find_parts(&f, k);
        any = false;
        for (int v = 0; v < g->var.n; v++) any |= f.alias[v].in >= 0;
    }
    hone_free(f.leaves), hone_free(f.rows), hone_free(f.last), hone_free(f.depth);
    if (!good) return hone_fail(HONE_NO_MEMORY, "no memory to compile");
    c->concat_alias = any ? f.alias : NULL;
    return HONE_OK;
}

/* ---- bind ---------------------------------------------------------------------------------------------- */
struct hone_concat_buffer {
    bool tried, joined; /* joined: the var itself lies in its alias */
    hone_bound_var *of; /* where a Concat's output will lie; NULL: not made, or it cannot be */
};
static bool same_dims(const hone_fact *a, const hone_fact *b) {
    if (a->rank != b->rank || a->dtype != b->dtype) return false;
    for (int d = 0; d < a->rank; d++)
        if (a->dim[d] != b->dim[d]) return false;
    return true;
}
static hone_status lie_in_alias(hone_binder *b, const hone_level *l, hone_vid id, hone_bound_var *v,
                                bool *done);
static hone_status make_room(hone_binder *b, const hone_level *l, hone_vid id) {
    hone_concat_buffer *r = l->concat_buffer + id;
    const hone_var *v = l->c->graph->var.at + id;
    if (r->tried) return HONE_OK;
    r->tried = true;
    hone_bound_var *of = HONE_NEW(b->scratch, hone_bound_var);
    if (!of) return hone_fail(HONE_NO_MEMORY, "no memory to bind a plan");
    of->at = HONE_AT_REF, of->slot = -1;
    of->fact = (hone_fact){.dtype = v->dtype, .rank = v->rank};
    for (int d = 0; d < v->rank; d++)
        if (!hone_dim_is_number(of->fact.dim[d] = hone_dim_value(v->dim[d], l->values)) ||
            of->fact.dim[d] < 1)
            return HONE_OK;
    int64_t n;
    if (!hone_count_of(of->fact.dim, of->fact.rank, &n)) return HONE_OK;
    bool inside = false;
    const int was = b->unit;
    /* where the Concat will be */
    if (b->units->n > 1) hone_bind_on(b, hone_units_place(b->units, l->c->graph->node.at[v->producer]->name));
    HONE_TRY(lie_in_alias(b, l, id, of, &inside));
    if (!inside) HONE_TRY(hone_bind_block(b, l, id, of));
    hone_bind_on(b, was);
    r->of = of, r->joined = inside;
    return HONE_OK;
}
static hone_status lie_in_alias(hone_binder *b, const hone_level *l, hone_vid id, hone_bound_var *v,
                                bool *done) {
    const hone_concat_alias *h = l->c->concat_alias + id;
    *done = false;
    if (h->in < 0) return HONE_OK;
    HONE_TRY(make_room(b, l, h->in));
    const hone_bound_var *in = l->concat_buffer[h->in].of;
    int64_t at = hone_dim_value(h->at, l->values);
    if (!in || hone_bind_space(b, in->ref) != b->steps.space || in->fact.rank != v->fact.rank ||
        in->fact.dtype != v->fact.dtype || !hone_dim_is_number(at) || at < 0)
        return HONE_OK;
    for (int d = 0; d < v->fact.rank; d++) {
        int64_t most = in->fact.dim[d], mine = v->fact.dim[d];
        if (d == h->axis ? mine < 1 || mine > most || at > most - mine : mine != most) return HONE_OK;
    }
    v->ref = in->ref, v->ref.offset += at * in->stride[h->axis] * hone_dtypes[v->fact.dtype].bytes;
    memcpy(v->stride, in->stride, sizeof v->stride);
    *done = true;
    return HONE_OK;
}
hone_status hone_concat_alias_place(hone_binder *b, hone_level *l, hone_vid id, hone_bound_var *v,
                                    bool *done) {
    *done = false;
    /* empty: expressions may not be what dims are */
    if (!l->c->concat_alias || b->options.interpret || l->empty) return HONE_OK;
    if (!l->concat_buffer &&
        !(l->concat_buffer = HONE_NEW_N(b->scratch, hone_concat_buffer, l->c->graph->var.n)))
        return hone_fail(HONE_NO_MEMORY, "no memory to bind a plan");
    hone_concat_buffer *r = l->concat_buffer + id;
    if (r->of && same_dims(&r->of->fact, &v->fact) && hone_bind_space(b, r->of->ref) == b->steps.space) {
        v->ref = r->of->ref, memcpy(v->stride, r->of->stride, sizeof v->stride);
        *done = true;
        return HONE_OK;
    }
    HONE_TRY(lie_in_alias(b, l, id, v, done));
    r->joined = *done;
    return HONE_OK;
}
hone_status hone_bind_concat(hone_binder *b, hone_level *l, int k, hone_fact *out) {
    const hone_node *n = l->c->graph->node.at[k];
    hone_bound_var *y = l->var + n->out[0];
    int axis = hone_attr_axis(n->attr, n->n_attr, out[0].rank);
    y->fact = out[0];
    if (axis < 0) return hone_fail(HONE_BAD_INPUT, "axis is none of the %d dims", out[0].rank);
    HONE_TRY(hone_bind_choose(b, l, n, NULL, out));
    HONE_TRY(hone_bind_place(b, l, n->out[0], y));
    const hone_bound_var *room = l->concat_buffer ? l->concat_buffer[n->out[0]].of : NULL;
    bool here = room && room->ref.base == y->ref.base && room->ref.block == y->ref.block &&
                room->ref.offset == y->ref.offset && same_dims(&room->fact, &y->fact);
    int64_t at = 0;
    for (int q = 0; q < n->n_in; q++) {
        hone_bound_var *x = l->var + n->in[q], part = *y;
        const hone_concat_alias *h = l->c->concat_alias ? l->c->concat_alias + n->in[q] : NULL;
        HONE_TRY(hone_bind_real(b, x));
        part.fact.dim[axis] = x->fact.dim[axis];
        part.ref.offset += at * y->stride[axis] * hone_dtypes[out[0].dtype].bytes;
        bool there = here && h && h->in == n->out[0] && l->concat_buffer[n->in[q]].joined &&
                     hone_dim_value(h->at, l->values) == at,
             empty = false;
        at += x->fact.dim[axis];
        for (int d = 0; d < x->fact.rank; d++) empty |= x->fact.dim[d] == 0;
        if (there || empty) continue;
        hone_ref from;
        HONE_TRY(hone_bind_bring(b, l, k, n->in[q], &from));
        hone_bound_var here_now = *x;
        here_now.ref = from;
        HONE_TRY(hone_bind_copy(b, l, k, &here_now, &part));
    }
    return HONE_OK;
}
