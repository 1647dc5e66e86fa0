/* SPDX-License-Identifier: Apache-2.0
   layout: in which order a var's dims lie in memory. Logical dims never change. Row-major is the rule; where
   a computed var is only transposed and what comes out must be row-major (it is reshaped, or leaves the
   graph), the var is stored in the transposed order to begin with: the Transpose is then a view of dense
   memory, and no copy is left.

   Images: where the device wants it so (ir/target.h), what a convolution makes has its channels last in
   memory, and so has everything made of it, element by element, by pools, sums and joins, up to where dims
   are merged or the caller wants his own order. Kernels then walk whole pixels: a window's place is a row of
   channels, no gathering. A picture whose channels were only split, transposed and merged again (a shuffle)
   is one too: where that needs a copy, the copy has its channels last. */
#include <string.h>

#include "loops/fuse.h"
#include "loops/window.h"
#include "passes/passes.h"

static bool wants_rows(const hone_graph *g, hone_vid v) { /* a reader that would have to make it dense */
    for (int k = 0; k < g->out.n; k++)
        if (g->out.at[k] == v) return true;
    bool any = false;
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        for (int q = 0; q < n->n_in; q++) {
            if (n->in[q] != v) continue;
            if (n->program->runs != HONE_RUNS_VIEW || strcmp(n->program->how, "reshape")) return false;
            any = true;
        }
    }
    return any;
}
/* ---- channels last ------------------------------------------------------------------------------------- */
/* Of every var: is it a picture whose channels are the last in memory? Views of one are, as long as they keep
   its dims. */
static bool is_view(const hone_node *n, const char *how) {
    return n->program->runs == HONE_RUNS_VIEW && !n->n_part && !strcmp(n->program->how, how);
}
/* A convolution, alone or in a group, by the form of its program. */
static hone_status has_conv(const hone_passing *p, hone_arena *scratch, const hone_graph *g,
                            const hone_node *n, bool *out) {
    *out = false;
    for (int k = 0; k < n->n_part && n->fused && !*out; k++)
        *out = hone_instance_is_convolution(n->fused->part[k]);
    int large = 0;
    for (int k = 0; k < n->n_in; k++) large += n->in[k] >= 0 && g->var.at[n->in[k]].rank >= 3;
    if (n->n_part || n->program->runs != HONE_RUNS_PROGRAM || n->n_body || large < 2) return HONE_OK;
    hone_arena_reset(scratch);
    hone_fact *facts = HONE_NEW_N(scratch, hone_fact, n->n_in + n->n_out + 1);
    const hone_fact **in = HONE_NEW_N(scratch, const hone_fact *, n->n_in + 1);
    if (!facts || !in) return hone_fail(HONE_NO_MEMORY, "no memory for layouts");
    for (int q = 0; q < n->n_in; q++) {
        facts[q] = n->in[q] < 0 ? hone_fact_unknown : hone_fact_of_var(g->var.at + n->in[q]),
        in[q] = facts + q;
        if (n->in[q] >= 0 && (facts[q].tag != HONE_TAG_TENSOR || facts[q].rank < 0 || !facts[q].dtype))
            return HONE_OK;
    }
    const hone_inferring w = {scratch, g->dims, p->instances, NULL};
    const hone_instance *instance = NULL;
    hone_call *call;
    hone_param *param;
    HONE_TRY(hone_node_infer(&w, n, in, NULL, facts + n->n_in, &instance, &call, &param));
    *out = instance && hone_instance_is_convolution(instance);
    return HONE_OK;
}
static bool keeps_dims(const hone_node *n) {
    const char *how = n->program->how;
    return n->program->runs == HONE_RUNS_VIEW ? !strcmp(how, "slice") || !strcmp(how, "split") ||
                                                    !strcmp(how, "concat") || !strcmp(how, "expand")
                                              : n->program->runs == HONE_RUNS_PROGRAM;
}
/* Does the device of node n want this var with its channels last, where it is an image? */
static bool wants_last(const hone_passing *p, const hone_node *n, const hone_var *v) {
    const bool counts = v->dtype == HONE_DTYPE_F32 || v->dtype == HONE_DTYPE_U8 || v->dtype == HONE_DTYPE_I8;
    const hone_dtype type = counts && p->precision && n->unit ? p->precision : v->dtype;
    return v->tag == HONE_TAG_TENSOR && v->rank >= 3 && v->rank <= 5 &&
           hone_target_wants_last(p->target + n->unit, type);
}
static void put_last(hone_passing *p, hone_var *v) {
    if (v->layout.kind == HONE_LAYOUT_ORDER) return;
    v->layout.kind = HONE_LAYOUT_ORDER;
    v->layout.order[0] = 0, v->layout.order[v->rank - 1] = 1;
    for (int d = 1; d + 1 < v->rank; d++) v->layout.order[d] = (int8_t)(d + 1);
    p->changed++;
}
static bool has_readers(const hone_graph *g, hone_vid v) { /* that want pixels */
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        for (int q = 0; q < n->n_in; q++)
            if (n->in[q] == v && keeps_dims(n)) return true;
    }
    return false;
}
/* Is it the picture x with other channels, or as many in another order? */
static bool same_pixels(const hone_var *x, const hone_var *v) {
    if (x->rank != v->rank || x->dim[0] != v->dim[0]) return false;
    for (int d = 2; d < x->rank; d++)
        if (x->dim[d] == HONE_DIM_UNKNOWN || x->dim[d] != v->dim[d]) return false;
    return true;
}
static hone_status channels_last(hone_passing *p, hone_graph *g) {
    if (!p->target) return HONE_OK;
    hone_arena *scratch = hone_arena_create();
    hone_status s = scratch ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for layouts");
    bool *last = hone_alloc((size_t)g->var.n + 1);
    /* the picture that it is a view of, + 1 */
    hone_vid *from = hone_alloc(sizeof *from * (size_t)(g->var.n + 1));
    for (int k = 0; last && from && k < g->node.n && !s; k++) {
        const hone_node *n = g->node.at[k];
        if (is_view(n, "reshape") || is_view(n, "transpose")) {
            hone_vid x = n->in[0], y = n->out[0];
            if (x < 0 || y < 0 || !(from[y] = last[x] ? x + 1 : from[x]) || is_view(n, "transpose") ||
                last[x])
                continue;
            if (!wants_last(p, n, g->var.at + y) || !same_pixels(g->var.at + from[y] - 1, g->var.at + y) ||
                !has_readers(g, y))
                continue;
            last[y] = true, put_last(p, g->var.at + y);
            continue;
        }
        bool conv = false;
        if (n->n_body || !keeps_dims(n)) continue;
        s = has_conv(p, scratch, g, n, &conv);
        bool any = conv;
        for (int q = 0; q < n->n_in && !any; q++) any = n->in[q] >= 0 && last[n->in[q]];
        for (int q = 0; any && q < n->n_out; q++) {
            if (n->out[q] < 0) continue;
            hone_var *v = g->var.at + n->out[q];
            bool same = conv; /* made of a picture of the same rank */
            for (int i = 0; i < n->n_in && !same; i++)
                same = n->in[i] >= 0 && last[n->in[i]] && g->var.at[n->in[i]].rank == v->rank;
            if (!same || !wants_last(p, n, v)) continue;
            last[n->out[q]] = true;
            bool view = n->program->runs == HONE_RUNS_VIEW && !is_view(n, "concat");
            if (!view) put_last(p, v);
        }
    }
    hone_free(last), hone_free(from);
    hone_arena_destroy(scratch);
    return s;
}

static hone_status layout_graph(hone_passing *p, hone_graph *g) {
    HONE_TRY(channels_last(p, g));
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        for (int b = 0; b < n->n_body; b++) HONE_TRY(layout_graph(p, n->body[b]));
        if (n->program->runs != HONE_RUNS_VIEW || strcmp(n->program->how, "transpose") || n->out[0] < 0)
            continue;
        hone_var *x = g->var.at + n->in[0];
        const hone_attr *perm = hone_attr_find(n->attr, n->n_attr, "perm");
        if (x->producer < 0 || x->uses != 1 || x->rank < 2 || (perm && perm->n != x->rank)) continue;
        const hone_node *maker = g->node.at[x->producer];
        /* element by element, so that storing in any order costs the same */
        bool plain = maker->n_part
                         ? maker->fused && maker->fused->instance->n_stage == 1
                         : maker->program->runs == HONE_RUNS_PROGRAM && !maker->n_body && maker->n_out == 1 &&
                               maker->program->lines && !maker->program->lines->next &&
                               maker->program->lines->kind == HONE_LINE_STAGE;
        plain |= is_view(maker, "concat"); /* parts are written there anyway */
        /* or in rows: storing them in another order costs the same, as long as each stays a row */
        bool in_rows = maker->program->runs == HONE_RUNS_PROGRAM && !maker->n_body && maker->n_out == 1 &&
                       perm && perm->i[x->rank - 1] == x->rank - 1;
        if (!(plain || in_rows) || !wants_rows(g, n->out[0])) continue;
        if (x->layout.kind == HONE_LAYOUT_ORDER) continue;
        x->layout.kind = HONE_LAYOUT_ORDER;
        for (int d = 0; d < x->rank; d++) x->layout.order[d] = (int8_t)(perm ? perm->i[d] : x->rank - 1 - d);
        p->changed++;
    }
    return HONE_OK;
}
hone_status hone_pass_layout(hone_passing *p) {
    hone_graph_index(p->graph);
    return layout_graph(p, p->graph);
}
