/* SPDX-License-Identifier: Apache-2.0
   formula: see formula.h. */
#include "plan/formula.h"

#include <string.h>

#include "loops/fuse.h"

static bool reads_in_place(const hone_instance *in, int q) {
    const hone_stage *s = in->stage + in->n_stage - 1;
    if (in->tensor[q].dense || in->tensor[q].rank != in->tensor[s->tensor].rank || s->over >= 0 ||
        !s->distinct || s->how || s->reduce)
        return false;
    for (int x = 0; x < in->n_x; x++) {
        const hone_x *e = in->x + x;
        if (e->kind != HONE_X_LOAD || e->a != q) continue;
        for (int k = 0; k < in->tensor[q].rank; k++) {
            const hone_x *sub = in->x + in->list[e->b + k];
            bool same = s->sub0 >= 0 && in->list[e->b + k] == in->list[s->sub0 + k];
            if (!same && !(s->identity && sub->kind == HONE_X_INDEX && sub->a == in->list[s->index0 + k]))
                return false;
        }
    }
    return true;
}
uint64_t hone_formula_in_place(const hone_instance *in) {
    uint64_t before = 0, out = 0;
    if (!in->n_stage) return 0;
    for (int k = 0; k < in->n_stage - 1; k++) before |= in->stage[k].uses;
    for (int q = 0; q < in->n_tensor && q < 64; q++)
        if (in->tensor[q].role == HONE_ROLE_IN && !(before >> q & 1) && reads_in_place(in, q))
            out |= (uint64_t)1 << q;
    return out;
}
bool hone_formula_shape_only(const hone_graph *g, const hone_node *n) {
    bool any = false;
    for (int q = 0; q < n->n_out; q++) {
        if (n->out[q] < 0) continue;
        const hone_var *v = g->var.at + n->out[q];
        if (!v->contents || v->rank < 0 || v->tag != HONE_TAG_TENSOR || !v->dtype) return false;
        for (int k = 0; k < v->n_content; k++)
            if (v->contents[k] == HONE_DIM_UNKNOWN) return false;
        for (int k = 0; k < v->rank; k++)
            if (v->dim[k] == HONE_DIM_UNKNOWN) return false;
        any = true;
    }
    return any;
}

typedef struct {
    const hone_compiled *c;
    hone_arena *scratch;
    hone_conditions must;
} making;
static bool shaped(const hone_fact *f) { /* as an expression at least */
    if (f->tag != HONE_TAG_TENSOR || !f->dtype || f->dtype == HONE_DTYPE_STRING || f->rank < 0) return false;
    for (int k = 0; k < f->rank; k++)
        if (f->dim[k] == HONE_DIM_UNKNOWN) return false;
    return true;
}
static bool is_open(const hone_fact *f) { return !f->value && !f->contents; }
/* The node once more on symbols, and all that must hold for the result. */
static bool understand(making *m, const hone_node *n, const hone_instance **instance, hone_call **call,
                       hone_param **param, hone_status *s) {
    const hone_graph *g = m->c->graph;
    hone_fact *facts = HONE_NEW_N(m->scratch, hone_fact, n->n_in + n->n_out + 1), *out = facts + n->n_in;
    const hone_fact **in = HONE_NEW_N(m->scratch, const hone_fact *, n->n_in + 1);
    if (!facts || !in) {
        *s = hone_fail(HONE_NO_MEMORY, "no memory to compile");
        return false;
    }
    bool ready = true, good = true, open = false;
    for (int q = 0; q < n->n_in; q++) {
        facts[q] = n->in[q] < 0 ? hone_fact_unknown : hone_fact_of_var(g->var.at + n->in[q]);
        in[q] = facts + q, ready &= n->in[q] < 0 || (facts[q].rank >= 0 && facts[q].dtype);
        good &= n->in[q] < 0 || shaped(facts + q);
    }
    hone_inferring w = {m->scratch, g->dims, m->c->instances, NULL};
    if (!ready || (*s = hone_node_infer(&w, n, in, *instance, out, instance, call, param))) return false;
    for (int q = 0; q < n->n_out && good; q++) {
        if (n->out[q] < 0) continue;
        const hone_var *v = g->var.at + n->out[q];
        good = shaped(out + q) && !out[q].contents && v->tag == HONE_TAG_TENSOR && v->dtype == out[q].dtype &&
               v->rank == out[q].rank &&
               !memcmp(v->dim, out[q].dim, sizeof *v->dim * (size_t)(v->rank > 0 ? v->rank : 0));
    }
    for (int t = 0; *instance && t < (*instance)->n_tensor; t++)
        if ((*instance)->tensor[t].role == HONE_ROLE_IN) open |= is_open(in[(*instance)->tensor[t].operand]);
    for (int q = 0; !*instance && n->program->runs == HONE_RUNS_VIEW && q < n->n_in; q++)
        open |= is_open(in[q]) && (q == 0 || strcmp(n->program->how, "split") != 0);
    if (!good || !open) return false; /* not open: bind may fold it to numbers */
    if (*instance) return hone_instance_conditions(m->scratch, *instance, *call, *param, &m->must);
    if (n->program->runs != HONE_RUNS_VIEW || !n->n_out) return false;
    int rank = out[0].rank, axis = hone_attr_axis(n->attr, n->n_attr, rank);
    if (!strcmp(n->program->how, "concat")) { /* all dims but one are equal */
        for (int q = 0; q < n->n_in; q++)
            for (int d = 0; d < rank; d++)
                if (d != axis && !hone_conditions_add(m->scratch, &m->must,
                                                      hone_dim_eq(g->dims, in[q]->dim[d], out[0].dim[d])))
                    return false;
        return true;
    }
    if (strcmp(n->program->how, "split")) return false;
    hone_dim sum = 0; /* the parts are all of it */
    for (int q = 0; q < n->n_out; q++) sum = hone_dim_add(g->dims, sum, out[q].dim[axis]);
    return hone_conditions_add(m->scratch, &m->must, hone_dim_eq(g->dims, sum, in[0]->dim[axis]));
}
static bool take_param(hone_arena *a, hone_formula *f, const hone_param *p) {
    const hone_instance *in = f->instance;
    int32_t *open = HONE_NEW_N(a, int32_t, in->n_param + 1);
    f->param = hone_arena_copy(a, p, sizeof *p * (size_t)in->n_param);
    if (!open || !f->param) return false;
    for (int k = 0; k < in->n_param; k++)
        if (!in->param_real[k] && hone_dim_is_symbolic(p[k].i)) open[f->n_open++] = k;
    f->open = open;
    return true;
}
/* A part of a fused group, or a node by itself: `from[q]` is tensor q's part and number there; NULL: its
   own. */
static bool take_tensors(const hone_compiled *c, hone_formula *f, const hone_node *const *part,
                         const hone_instance *const *instance, hone_call *const *call,
                         const hone_fused_from *from) {
    const hone_instance *in = f->instance;
    const hone_graph *g = c->graph;
    hone_vid *id = HONE_NEW_N(g->arena, hone_vid, in->n_tensor + 1);
    bool *constant = HONE_NEW_N(g->arena, bool, in->n_tensor + 1);
    f->walks = HONE_NEW_N(g->arena, const hone_walks *, in->n_tensor + 1);
    if (!id || !constant || !f->walks) return false;
    for (int q = 0; q < in->n_tensor; q++) {
        const hone_tensor *w = in->tensor + q;
        id[q] = -1;
        if (w->role == HONE_ROLE_TEMP) continue;
        int p = from ? from[q].part : 0, t = from ? from[q].tensor : q;
        const hone_tensor *own = instance[p]->tensor + t;
        const hone_node *n = part[p];
        id[q] = own->role == HONE_ROLE_IN ? n->in[own->operand] : n->out[own->operand - n->program->n_in];
        hone_walks *walks = HONE_NEW_N(g->arena, hone_walks, own->rank + 1);
        if (id[q] < 0 || !walks || own->rank != w->rank ||
            !hone_instance_walks(instance[p], call[p], t, walks))
            return false;
        constant[q] = hone_graph_known(g, id[q]), f->walks[q] = walks;
    }
    f->id = id, f->constant = constant, f->in_place = hone_formula_in_place(in);
    hone_batch_axis batch_axis;
    if (hone_instance_batch_axis(g->arena, in, &batch_axis))
        f->batch_axis = hone_arena_copy(g->arena, &batch_axis, sizeof batch_axis);
    return true;
}
static bool fused(making *m, hone_formula *f, const hone_node *n, hone_status *s) {
    const hone_fused *u = n->fused;
    const hone_graph *g = m->c->graph;
    hone_param *all = HONE_NEW_N(m->scratch, hone_param, u->instance->n_param + 1);
    hone_call **call = HONE_NEW_N(m->scratch, hone_call *, u->n_part + 1);
    if (!all || !call) return false;
    for (int q = 0; q < u->n_part; q++) {
        const hone_instance *i = u->part[q];
        hone_param *p = NULL;
        if (!understand(m, n->part[q], &i, &call[q], &p, s) || i != u->part[q]) {
            *s = HONE_OK;
            return false;
        }
        memcpy(all + u->param0[q], p, sizeof *p * (size_t)i->n_param);
        const hone_var *first = g->var.at + n->part[0]->out[0], *mine = g->var.at + n->part[q]->out[0];
        for (int d = 0; d < first->rank; d++) /* no part may be wider than the first */
            if (mine->rank != first->rank ||
                !hone_conditions_add(m->scratch, &m->must, hone_dim_eq(g->dims, mine->dim[d], first->dim[d])))
                return false;
    }
    f->instance = u->instance;
    return take_param(g->arena, f, all) &&
           take_tensors(m->c, f, (const hone_node *const *)n->part, u->part, call, u->from);
}
const hone_formula *hone_formula_make(const hone_compiled *c, hone_arena *scratch, const hone_node *n,
                                      const hone_instance **instance, hone_status *s) {
    hone_arena *a = c->graph->arena;
    making m = {.c = c, .scratch = scratch};
    hone_formula *f = HONE_NEW(scratch, hone_formula);
    hone_call *call = NULL;
    hone_param *param = NULL;
    bool good = f != NULL, view = n->program->runs == HONE_RUNS_VIEW;
    *s = HONE_OK;
    if (n->n_part) good = good && n->fused && fused(&m, f, n, s);
    else {
        good = understand(&m, n, instance, &call, &param, s) && good && n->program->runs != HONE_RUNS_HOST;
        if (good && *instance && (*instance)->n_stage) {
            f->instance = *instance;
            good = take_param(a, f, param) && take_tensors(c, f, &n, instance, &call, NULL);
        }
        if (good && view) { /* what has no stages can only be seen */
            f->concat = !strcmp(n->program->how, "concat");
            f->view = f->concat                           ? HONE_VIEW_NONE
                      : !strcmp(n->program->how, "slice") ? HONE_VIEW_BY_NUMBERS
                                                          : HONE_VIEW_PLAIN;
        } else if (good && !strcmp(n->program->name, "Identity")) f->view = HONE_VIEW_PLAIN;
        good = good && (f->instance || view);
    }
    if (!good || *s) return NULL;
    f->must = hone_arena_copy(a, m.must.at, sizeof *m.must.at * (size_t)m.must.n), f->n_must = m.must.n;
    return f->must ? hone_arena_copy(a, f, sizeof *f) : NULL;
}
