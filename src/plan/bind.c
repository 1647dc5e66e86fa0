/* SPDX-License-Identifier: Apache-2.0
   bind: concrete inference over the finished graph, and steps, node by node. Runs no pass. A node whose shape
   depends on data not yet computed breaks the plan off. Where a plan begins and how it is finished is
   segment.c's. */
#include <string.h>

#include "loops/fuse.h"
#include "plan/formula.h"
#include "plan/concat_alias.h"

/* ---- segment breaks ------------------------------------------------------------------------------------ */
/* What must be known before a node can be bound: values of unknown shape, and numbers that decide shapes. */
static bool wants(hone_binder *b, const hone_level *l, const hone_node *n) {
    b->n_wanted = 0;
    for (int q = 0; q < n->n_in; q++) {
        if (n->in[q] < 0) continue;
        const hone_bound_var *v = l->var + n->in[q];
        bool shape = v->at == HONE_AT_COUNTED || (v->at == HONE_AT_SLOT && v->fact.tag == HONE_TAG_TENSOR);
        bool numbers = q < n->program->n_in && n->program->operand[q].contents && v->at == HONE_AT_REF &&
                       !v->fact.value && !hone_fact_numbers(&v->fact);
        if ((shape || numbers) && b->n_wanted < HONE_MAX_WANTED) b->wanted[b->n_wanted++] = n->in[q];
    }
    return b->n_wanted > 0;
}

/* ---- nodes --------------------------------------------------------------------------------------------- */
static hone_status bind_view(hone_binder *b, hone_level *l, int k, const hone_node *n,
                             const hone_fact *const *in, hone_fact *out, bool *done) {
    *done = false;
    if (n->n_in == 0 || n->in[0] < 0 || l->var[n->in[0]].fact.tag != HONE_TAG_TENSOR) return HONE_OK;
    hone_bound_var *x = l->var + n->in[0];
    HONE_TRY(hone_bind_real(b, x));
    if (x->at != HONE_AT_REF) return HONE_OK;
    HONE_TRY(hone_bind_choose(b, l, n, NULL, out));
    const int space = hone_bind_space(b, x->ref);
    if (space >= 0) hone_bind_on(b, space); /* where it is, what is seen of it is too */
    if (n->program->runs == HONE_RUNS_VIEW && !strcmp(n->program->how, "bitcast"))
        HONE_TRY(hone_bind_dense(b, l, k, x));
    for (int q = 0; q < n->n_out; q++) {
        if (n->out[q] < 0) continue;
        hone_bound_var y = {.fact = out[q], .at = HONE_AT_REF, .slot = -1, .ref = x->ref};
        int64_t offset = 0;
        if (n->program->runs == HONE_RUNS_VIEW && !strcmp(n->program->how, "bitcast"))
            hone_dense_strides(&y.fact, y.stride);
        else if (!hone_view(n, in, x, out, q, y.stride, &offset)) {
            bool reshaping = !strcmp(n->program->how, "reshape");
            if (!reshaping)
                return n->n_out > 1 || !n->program->lines ? hone_fail(HONE_BUG, "a view could not be made")
                                                          : HONE_OK;
            if (l->c->graph->var.at[n->out[q]].layout.kind ==
                HONE_LAYOUT_ORDER) { /* it has an order of its own: that is seen as x, and written */
                hone_bound_var to = *x;
                HONE_TRY(hone_bind_place(b, l, n->out[q], &y));
                if (hone_view_reshaped(&y.fact, y.stride, &x->fact, to.stride)) {
                    to.ref = y.ref;
                    HONE_TRY(hone_bind_copy_apart(b, l, k, x, &to));
                    l->var[n->out[q]] = y;
                    continue;
                }
            }
            /* a reshape of strided memory: dense first, then it is a view */
            HONE_TRY(hone_bind_dense(b, l, k, x));
            y.ref = x->ref;
            hone_dense_strides(&y.fact, y.stride);
        }
        y.ref.offset += offset * hone_dtypes[x->fact.dtype].bytes;
        l->var[n->out[q]] = y;
    }
    *done = true;
    return HONE_OK;
}
/* Steps of an instance whose tensors are placed. `id`: the var of each tensor, -1 a temporary. `f`: its
   formula, or NULL. */
static hone_status bind_steps(hone_binder *b, hone_level *l, int k, const hone_node *n,
                              const hone_instance *in, const hone_param *p, hone_operands t,
                              const hone_vid *id, const hone_formula *f) {
    bool *known = f ? NULL : HONE_NEW_N(b->scratch, bool, in->n_tensor + 1);
    if (!f && !known) return hone_bind_no_memory();
    for (int q = 0; q < in->n_tensor && !f; q++)
        known[q] = id[q] >= 0 && hone_graph_known(l->c->graph, id[q]);
    const bool *constant = f ? f->constant : known;
    hone_device_call c = {.instance = in,
                          .param = p,
                          .stride = t.stride,
                          .ref = t.ref,
                          .constant = constant,
                          .batch_axis = f ? f->batch_axis : NULL,
                          .packs = b->packs,
                          .cache = b->cache,
                          .node = k,
                          .of = n,
                          .how = b->options,
                          .keep_f32 = hone_bind_keeps(b, l, n),
                          .unit = b->units->unit + b->unit};
    int before = b->steps.step.n, patches = b->steps.patch.n;
    HONE_TRY(c.unit->row->bind(&b->steps, &c));
    if (!b->unit) HONE_TRY(hone_bind_fold(b, l, in, t, id, before, patches));
    for (int q = before; b->unit && q < b->steps.step.n; q++) b->steps.step.at[q].unit = (uint8_t)b->unit;
    if (b->steps.step.n != before + 1 || b->options.interpret) return HONE_OK;
    const uint64_t in_place = f ? f->in_place : hone_formula_in_place(in);
    b->steps.step.at[before].in_place = in_place;
    int out = in->stage[in->n_stage - 1].tensor;
    if (id[out] < 0 || t.ref[out].base != HONE_BASE_ARENA) return HONE_OK;
    hone_block *mine = b->steps.block.at + t.ref[out].block;
    for (int q = 0; q < in->n_tensor && mine->shares < 0; q++) {
        if (id[q] < 0 || in->tensor[q].role != HONE_ROLE_IN || t.ref[q].base != HONE_BASE_ARENA) continue;
        if (t.ref[q].block == t.ref[out].block) continue; /* both are parts of one join */
        /* whatever of this instance lies in that block is read where it is written, and only there */
        bool fits = true;
        for (int w = 0; w < in->n_tensor && fits; w++) {
            if (w == out || t.ref[w].base != HONE_BASE_ARENA || t.ref[w].block != t.ref[q].block) continue;
            fits = id[w] >= 0 && in->tensor[w].role == HONE_ROLE_IN && t.ref[w].offset == t.ref[out].offset &&
                   in->tensor[w].dtype == in->tensor[out].dtype &&
                   in->tensor[w].rank == in->tensor[out].rank &&
                   b->steps.block.at[t.ref[w].block].bytes == mine->bytes && in_place >> w & 1;
            for (int d = 0; fits && d < in->tensor[w].rank; d++)
                fits = t.stride[w][d] == t.stride[out][d] || p[in->tensor[out].dim[d]].i == 1;
        }
        if (fits) mine->shares = t.ref[q].block;
    }
    return HONE_OK;
}
static hone_status bind_program(hone_binder *b, hone_level *l, int k, const hone_node *n,
                                const hone_instance *in, const hone_call *call, const hone_param *p,
                                hone_fact *out) {
    const hone_operands t = hone_operands_make(b->scratch, in->n_tensor);
    hone_vid *id = HONE_NEW_N(b->scratch, hone_vid, in->n_tensor + 1);
    if (!t.ref || !id) return hone_bind_no_memory();
    HONE_TRY(hone_bind_choose(b, l, n, in, out));
    for (int pass = 0; pass < 2; pass++) /* inputs first: making one dense adds a step */
        for (int q = 0; q < in->n_tensor; q++) {
            const hone_tensor *w = in->tensor + q;
            id[q] = w->role == HONE_ROLE_IN    ? n->in[w->operand]
                    : w->role == HONE_ROLE_OUT ? n->out[w->operand - n->program->n_in]
                                               : -1;
            if (id[q] < 0 || (w->role == HONE_ROLE_OUT) != (pass == 1)) continue;
            hone_bound_var *v = l->var + id[q];
            if (w->role == HONE_ROLE_OUT) {
                v->fact = out[w->operand - n->program->n_in];
                HONE_TRY(w->dense ? hone_bind_place_rows(b, l, id[q], v) : hone_bind_place(b, l, id[q], v));
                t.ref[q] = v->ref;
            } else {
                HONE_TRY(w->dense ? hone_bind_dense(b, l, k, v) : hone_bind_real(b, v));
                HONE_TRY(hone_bind_bring(b, l, k, id[q], &t.ref[q]));
            }
            hone_instance_strides(in, call, p, q, v->fact.dim, v->stride, t.stride[q]);
        }
    return bind_steps(b, l, k, n, in, p, t, id, NULL);
}
static hone_status bind_node(hone_binder *b, hone_level *l, int k, const hone_node *n,
                             const hone_instance *instance_known);
/* A fused group: its parts are solved one by one, then bound as one instance. *done false: something is not
   as fusion saw it; the parts run one by one. */
static hone_status bind_fused(hone_binder *b, hone_level *l, int k, const hone_node *f, bool *done) {
    const hone_fused *u = f->fused;
    const hone_instance *all = u->instance;
    hone_param *p = HONE_NEW_N(b->scratch, hone_param, all->n_param + 1);
    hone_call **call = HONE_NEW_N(b->scratch, hone_call *, u->n_part + 1);
    const hone_operands t = hone_operands_make(b->scratch, all->n_tensor);
    hone_vid *id = HONE_NEW_N(b->scratch, hone_vid, all->n_tensor + 1);
    hone_fact out = hone_fact_unknown;
    *done = false;
    if (!p || !call || !t.ref || !id) return hone_bind_no_memory();
    for (int q = 0; q < u->n_part; q++) {
        const hone_node *n = f->part[q];
        const hone_fact **in = HONE_NEW_N(b->scratch, const hone_fact *, n->n_in + 1);
        if (!in) return hone_bind_no_memory();
        for (int w = 0; w < n->n_in; w++) {
            in[w] = n->in[w] < 0 ? &hone_fact_unknown : &l->var[n->in[w]].fact;
            if (n->in[w] >= 0 && !hone_fact_shaped(in[w])) return HONE_OK;
        }
        const hone_instance *i;
        hone_param *mine;
        hone_inferring w = {b->scratch, NULL, l->c->instances, b->cache};
        hone_status s = hone_node_infer(&w, n, in, u->part[q], &out, &i, &call[q], &mine);
        if (s) return hone_fail_at(s, "%s '%s': ", n->program->name, n->name);
        if (i != u->part[q] || !hone_fact_shaped(&out) || hone_fact_numbers(&out)) return HONE_OK;
        for (int w2 = 0; w2 < i->n_param; w2++)
            if (!i->param_real[w2] && !hone_dim_is_number(mine[w2].i)) return HONE_OK;
        memcpy(p + u->param0[q], mine, sizeof *p * (size_t)i->n_param);
        l->var[n->out[0]].fact = out;
    }
    /* broadcasting may have widened a result since: every part must have the first one's shape */
    const hone_fact *first = &l->var[f->part[0]->out[0]].fact;
    for (int q = 1; q < u->n_part; q++) {
        const hone_fact *other = &l->var[f->part[q]->out[0]].fact;
        for (int d = 0; d < first->rank; d++)
            if (first->rank != other->rank || first->dim[d] != other->dim[d]) return HONE_OK;
    }
    hone_fact *made = HONE_NEW_N(b->scratch, hone_fact, f->n_out + 1);
    if (!made) return hone_bind_no_memory();
    for (int q = 0; q < f->n_out; q++)
        if (f->out[q] >= 0) made[q] = l->var[f->out[q]].fact;
    HONE_TRY(hone_bind_choose(b, l, f, all, made));
    for (int pass = 0; pass < 2; pass++)
        for (int q = 0; q < all->n_tensor; q++) {
            const hone_tensor *w = all->tensor + q;
            const hone_node *n = f->part[u->from[q].part];
            id[q] = w->role == HONE_ROLE_IN ? n->in[w->operand] : w->role == HONE_ROLE_OUT ? n->out[0] : -1;
            if (id[q] < 0 || (w->role == HONE_ROLE_OUT) != (pass == 1)) continue;
            hone_bound_var *v = l->var + id[q];
            if (w->role == HONE_ROLE_OUT) {
                HONE_TRY(hone_bind_place(b, l, id[q], v));
                t.ref[q] = v->ref;
            } else {
                HONE_TRY(w->dense ? hone_bind_dense(b, l, k, v) : hone_bind_real(b, v));
                HONE_TRY(hone_bind_bring(b, l, k, id[q], &t.ref[q]));
            }
            int part = u->from[q].part;
            hone_instance_strides(u->part[part], call[part], p + u->param0[part], u->from[q].tensor,
                                  v->fact.dim, v->stride, t.stride[q]);
        }
    *done = true;
    return bind_steps(b, l, k, f, all, p, t, id, NULL);
}
/* By formula: evaluated, placed, done. *done false: it does not hold here. */
static hone_status bind_formula(hone_binder *b, hone_level *l, int k, const hone_node *n,
                                const hone_formula *f, bool *done) {
    const hone_graph *g = l->c->graph;
    const hone_instance *all = f->instance;
    hone_param *p = NULL;
    *done = false;
    for (int q = 0; q < n->n_in; q++)
        if (n->in[q] >= 0 && !l->var[n->in[q]].as_compiled) return HONE_OK;
    for (int q = 0; q < f->n_must; q++) {
        int64_t v = hone_dim_value(f->must[q], l->values);
        if (v == 0 || !hone_dim_is_number(v)) return HONE_OK;
    }
    if (all) {
        if (!(p = hone_arena_copy(b->scratch, f->param, sizeof *p * (size_t)all->n_param)))
            return hone_bind_no_memory();
        for (int q = 0; q < f->n_open; q++)
            if (!hone_dim_is_number(p[f->open[q]].i = hone_dim_value(p[f->open[q]].i, l->values)))
                return HONE_OK;
    }
    hone_fact *out = HONE_NEW_N(b->scratch, hone_fact, n->n_out + 1);
    if (!out) return hone_bind_no_memory();
    for (int q = 0; q < n->n_out; q++) {
        if (n->out[q] < 0) continue;
        const hone_var *v = g->var.at + n->out[q];
        out[q].dtype = v->dtype, out[q].rank = v->rank;
        for (int d = 0; d < v->rank; d++)
            if (!hone_dim_is_number(out[q].dim[d] = hone_dim_value(v->dim[d], l->values)) ||
                out[q].dim[d] < 1) {
                /* expressions may have cancelled it: from here on, in numbers */
                l->empty |= out[q].dim[d] == 0;
                return HONE_OK;
            }
    }
    if (f->concat) {
        for (int q = 0; q < n->n_in; q++) HONE_TRY(hone_bind_see(b, l, n->in[q]));
        HONE_TRY(hone_bind_concat(b, l, k, out));
        *done = true;
    } else if (f->view) {
        const hone_fact **in = HONE_NEW_N(b->scratch, const hone_fact *, n->n_in + 1);
        if (!in) return hone_bind_no_memory();
        for (int q = 0; q < n->n_in; q++) {
            if (!q || f->view == HONE_VIEW_BY_NUMBERS) HONE_TRY(hone_bind_see(b, l, n->in[q]));
            in[q] = n->in[q] < 0 ? &hone_fact_unknown : &l->var[n->in[q]].fact;
        }
        HONE_TRY(bind_view(b, l, k, n, in, out, done));
    }
    if (!*done && !all) return HONE_OK;
    if (!*done) {
        const hone_operands t = hone_operands_make(b->scratch, all->n_tensor);
        if (!t.ref) return hone_bind_no_memory();
        HONE_TRY(hone_bind_choose(b, l, n, all, out));
        for (int pass = 0; pass < 2; pass++) /* inputs first: making one dense adds a step */
            for (int q = 0; q < all->n_tensor; q++) {
                const hone_tensor *w = all->tensor + q;
                if (f->id[q] < 0 || (w->role == HONE_ROLE_OUT) != (pass == 1)) continue;
                hone_bound_var *v = l->var + f->id[q];
                if (pass) {
                    int o = 0;
                    while (n->out[o] != f->id[q]) o++;
                    v->fact = out[o];
                    HONE_TRY(w->dense ? hone_bind_place_rows(b, l, f->id[q], v)
                                      : hone_bind_place(b, l, f->id[q], v));
                    t.ref[q] = v->ref;
                } else {
                    HONE_TRY(hone_bind_see(b, l, f->id[q]));
                    HONE_TRY(w->dense ? hone_bind_dense(b, l, k, v) : hone_bind_real(b, v));
                    HONE_TRY(hone_bind_bring(b, l, k, f->id[q], &t.ref[q]));
                }
                hone_walks_strides(f->walks[q], w, p, v->fact.dim, v->stride, t.stride[q]);
            }
        HONE_TRY(bind_steps(b, l, k, n, all, p, t, f->id, f));
    }
    for (int q = 0; q < n->n_out; q++)
        if (n->out[q] >= 0) l->var[n->out[q]].as_compiled = true;
    *done = true;
    return HONE_OK;
}
/* Control flow on a device: operands that only its bodies read, as tensors, go there and stay there. Not
   what decides (a condition, a trip count), nor what a body reads while it is bound (contents). */
static int first_for_bodies(const hone_program *p) {
    return !strcmp(p->how, "loop") ? 2 : !strcmp(p->how, "if") ? 1 : !strcmp(p->how, "scan") ? 0 : -1;
}
static bool goes_to_body(const hone_level *l, int k, const hone_node *n, int q) {
    const int first = first_for_bodies(n->program);
    if (first < 0 || q < first) return false;
    for (int w = 0; w < n->n_body; w++) {
        const hone_compiled *body = l->c->body[k][w];
        /* captures come behind the formal inputs, */
        const int at = q - (n->n_in - n->n_capture) + body->graph->n_formal;
        /* which Loop and Scan have as the node has them */
        const int in = q >= n->n_in - n->n_capture ? at : q;
        if (in < 0 || in >= body->graph->in.n || body->content_input[in]) return false;
    }
    return true;
}
static hone_status bind_host(hone_binder *b, hone_level *l, int k, hone_fact *out) {
    hone_node *n = l->c->graph->node.at[k];
    hone_host_step *h = HONE_NEW(b->steps.arena, hone_host_step);
    hone_host_operand *all = HONE_NEW_N(b->steps.arena, hone_host_operand, n->n_in + n->n_out + 1);
    hone_ref *refs = HONE_NEW_N(b->steps.arena, hone_ref, n->n_in + n->n_out + 1);
    if (!h || !all || !refs) return hone_bind_no_memory();
    hone_bind_on(b, 0);
    *h = (hone_host_step){.compiled = l->c,
                          .node = n,
                          .number = k,
                          .host = l->c->host[k],
                          .in = all,
                          .out = all + n->n_in,
                          .ref = refs};
    if (n->n_body && b->units->n > 1 && first_for_bodies(n->program) >= 0 &&
        hone_unit_space(b->units, n->unit))
        h->unit = n->unit;
    for (int q = 0; q < n->n_in; q++) {
        refs[q].base = HONE_BASE_NONE;
        if (n->in[q] < 0) {
            all[q].kind = HONE_OPERAND_ABSENT;
            continue;
        }
        hone_bound_var *v = l->var + n->in[q];
        const hone_bound_var was = *v;
        HONE_TRY(hone_bind_dense(b, l, k, v));
        if (v->at == HONE_AT_SLOT || (v->slot >= 0 && v->ref.base >= hone_slot_base(b, 0)))
            all[q] = (hone_host_operand){.kind = HONE_OPERAND_SLOT, .slot = v->slot};
        else if (v->at == HONE_AT_REF) {
            const int space = hone_bind_space(b, v->ref);
            const bool goes = h->unit && v->fact.dtype != HONE_DTYPE_STRING && goes_to_body(l, k, n, q);
            all[q] = (hone_host_operand){.kind = HONE_OPERAND_TENSOR,
                                         .fact = v->fact,
                                         .space = (uint8_t)(goes && space > 0 ? space : 0)};
            if (all[q].space) refs[q] = v->ref;
            else HONE_TRY(hone_bind_bring(b, l, k, n->in[q], refs + q));
            int in = v->ref.base - HONE_BASE_FIRST;
            if (in >= 0 && in < b->n_in && l->top && v->ref.offset == 0 &&
                l->c->graph->in.at[in] == n->in[q] && hone_bind_space(b, v->ref) == all[q].space)
                all[q].kind = HONE_OPERAND_INPUT, all[q].slot = in;
            else if (l->c->graph->var.at[n->in[q]].value)
                all[q].kind = HONE_OPERAND_CONST, all[q].constant = l->c->graph->var.at[n->in[q]].value;
        } else return hone_fail(HONE_BUG, "input %d was never computed", q);
        all[q].goes = h->unit && goes_to_body(l, k, n, q);
        /* a picture in rows is this function's alone: kernels go on with its channels last */
        if (was.at == HONE_AT_REF && l->c->graph->var.at[n->in[q]].layout.kind == HONE_LAYOUT_ORDER) *v = was;
    }
    for (int q = 0; q < n->n_out; q++) {
        refs[n->n_in + q].base = HONE_BASE_NONE;
        h->out[q].fact = out[q];
        if (n->out[q] < 0) {
            h->out[q].kind = HONE_OPERAND_ABSENT;
            continue;
        }
        hone_bound_var *v = l->var + n->out[q];
        v->fact = out[q];
        if (hone_fact_shaped(out + q) && !n->n_body && out[q].dtype != HONE_DTYPE_STRING) {
            HONE_TRY(hone_bind_place_rows(b, l, n->out[q], v));
            h->out[q].kind = HONE_OPERAND_TENSOR, refs[n->n_in + q] = v->ref;
        } else {
            v->at = HONE_AT_SLOT, v->slot = b->n_slot++;
            h->out[q].kind = HONE_OPERAND_SLOT, h->out[q].slot = v->slot;
        }
    }
    hone_step step = {.tactic = n->n_body ? "control" : "host",
                      .node = k,
                      .of = n,
                      .host = true,
                      .spreads = hone_host_spreads(h->host),
                      .serial = true,
                      .tiles = 1,
                      .data = h};
    return hone_steps_add(&b->steps, step, refs, n->n_in + n->n_out);
}
void hone_bind_begin(hone_level *l) {
    const hone_compiled *c = l->c;
    const hone_bound_var *constant = c->constant;
    l->whole = true;
    for (int k = 0; k < c->n_asked && l->whole; k++)
        l->whole = hone_dim_is_number(hone_dim_value(c->asked[k], l->values));
    for (int v = 0; v < c->graph->var.n; v++) { /* dims and strides of the others are written with them */
        hone_bound_var *w = l->var + v;
        if (c->begin[v] == HONE_AT_REF) {
            *w = *constant++;
            continue;
        }
        bool known = l->whole && c->begin[v] == HONE_AT_DIMS;
        w->at = known ? HONE_AT_DIMS : HONE_AT_NOWHERE, w->as_compiled = known, w->slot = -1;
        w->fact.tag = HONE_TAG_TENSOR, w->fact.dtype = HONE_DTYPE_NONE, w->fact.rank = -1;
        w->fact.contents = NULL, w->fact.n_content = 0, w->fact.value = NULL;
    }
}
/* If whose condition is known: the branch is bound in place. */
static hone_status bind_branch(hone_binder *b, hone_level *l, int k, const hone_fact *cond, bool *done) {
    hone_node *n = l->c->graph->node.at[k];
    *done = false;
    if (strcmp(n->program->how, "if") || n->n_body != 2 || b->inlined > 24) return HONE_OK;
    int64_t yes;
    if (cond->value) yes = hone_value_count(cond->value) > 0 && hone_value_i64(cond->value, 0);
    else if (cond->contents && cond->n_content == 1 && hone_dim_is_number(cond->contents[0]))
        yes = cond->contents[0];
    else return HONE_OK;
    hone_compiled *body = l->c->body[k][yes ? 0 : 1];
    hone_level inner = {.c = body,
                        .outer = l,
                        .var =
                            hone_arena_raw(b->scratch, sizeof *inner.var * (size_t)(body->graph->var.n + 1)),
                        .values = l->values,
                        .empty = l->empty};
    if (!inner.var) return hone_bind_no_memory();
    hone_bind_begin(&inner);
    for (int q = body->graph->n_formal; q < body->graph->in.n; q++) {
        hone_bound_var *w = inner.var + body->graph->in.at[q];
        *w = l->var[n->in[n->n_in - n->n_capture + q - body->graph->n_formal]];
        w->as_compiled = hone_bind_as_compiled(&inner, body->graph->in.at[q]);
    }
    int steps = b->steps.step.n, blocks = b->steps.block.n, patches = b->steps.patch.n, slots = b->n_slot;
    b->inlined++;
    hone_status s = hone_bind_nodes(b, &inner, 0);
    b->inlined--;
    if (s) return s;
    /* cannot be cut in the middle of a branch: the branch runs as a whole, as a host step */
    if (b->cut >= 0) {
        b->cut = -1, b->steps.step.n = steps, b->steps.block.n = blocks, b->steps.patch.n = patches,
        b->n_slot = slots;
        return HONE_OK;
    }
    for (int q = 0; q < n->n_out; q++)
        if (n->out[q] >= 0) l->var[n->out[q]] = inner.var[body->graph->out.at[q]];
    *done = true;
    return HONE_OK;
}
/* Where some input dim decides nothing yet (a body's, a segment break's): are the outputs numbers that the
   others say? */
static bool is_known(const hone_level *l, const hone_node *n) {
    if (!n->n_out) return false;
    for (int q = 0; q < n->n_out; q++) {
        if (n->out[q] < 0) continue;
        const hone_var *v = l->c->graph->var.at + n->out[q];
        if (!v->contents || v->rank < 0) return false;
        for (int k = 0; k < v->n_content; k++)
            if (!hone_dim_is_number(hone_dim_value(v->contents[k], l->values))) return false;
        for (int k = 0; k < v->rank; k++)
            if (!hone_dim_is_number(hone_dim_value(v->dim[k], l->values))) return false;
    }
    return true;
}
static hone_status bind_node(hone_binder *b, hone_level *l, int k, const hone_node *n,
                             const hone_instance *instance_known) {
    const hone_program *p = n->program;
    if (is_known(l, n)) {
        for (int q = 0; q < n->n_out; q++)
            if (n->out[q] >= 0) l->var[n->out[q]].at = HONE_AT_DIMS;
        for (int q = 0; q < n->n_out; q++) HONE_TRY(hone_bind_see(b, l, n->out[q]));
        return HONE_OK;
    }
    bool counted = false;
    for (int q = 0; q < n->n_in; q++) {
        HONE_TRY(hone_bind_see(b, l, n->in[q]));
        counted |= n->in[q] >= 0 && l->var[n->in[q]].at == HONE_AT_COUNTED;
    }
    if (counted && wants(b, l, n)) { /* how many there are must be read first */
        b->cut = k;
        return HONE_OK;
    }
    if (n->n_part) {
        bool fused;
        HONE_TRY(bind_fused(b, l, k, n, &fused));
        for (int q = 0; q < n->n_part && !fused && b->cut < 0; q++)
            HONE_TRY(bind_node(b, l, k, n->part[q], NULL));
        return HONE_OK;
    }
    const hone_fact **in = HONE_NEW_N(b->scratch, const hone_fact *, n->n_in + 1);
    hone_fact *out = HONE_NEW_N(b->scratch, hone_fact, n->n_out + 1);
    if (!in || !out) return hone_bind_no_memory();
    bool strings = false, ready = true, tensors = true;
    for (int q = 0; q < n->n_in; q++) {
        in[q] = n->in[q] < 0 ? &hone_fact_unknown : &l->var[n->in[q]].fact;
        strings |= n->in[q] >= 0 && in[q]->dtype == HONE_DTYPE_STRING;
        ready &= n->in[q] < 0 || l->var[n->in[q]].at != HONE_AT_SLOT;
        tensors &= n->in[q] < 0 || in[q]->tag == HONE_TAG_TENSOR;
    }
    bool done = false;
    if (p->runs == HONE_RUNS_CONTROL && ready && n->n_in && n->in[0] >= 0) {
        HONE_TRY(bind_branch(b, l, k, in[0], &done));
        if (done) return HONE_OK;
    }
    const hone_instance *instance = NULL;
    hone_call *call = NULL;
    hone_param *param = NULL;
    hone_inferring w = {b->scratch, NULL, l->c->instances, b->cache};
    bool host = p->runs == HONE_RUNS_HOST || p->runs == HONE_RUNS_CONTROL;
    if (!host && !ready) {
        if (!tensors && !strcmp(p->name, "Identity")) {
            l->var[n->out[0]] = l->var[n->in[0]];
            return HONE_OK;
        }
        if (!wants(b, l, n)) return hone_fail(HONE_NOT_SUPPORTED, "an input is no tensor");
        b->cut = k;
        return HONE_OK;
    }
    if (host && !ready)
        for (int q = 0; q < n->n_out; q++) out[q] = hone_fact_unknown;
    else HONE_TRY(hone_node_infer(&w, n, in, instance_known, out, &instance, &call, &param));
    if (p->how_strings && !host) { /* Cast and Equal of strings run on the host */
        for (int q = 0; q < n->n_out; q++) strings |= out[q].dtype == HONE_DTYPE_STRING;
        host = strings;
    }
    if (host) {
        if (ready) HONE_TRY(hone_bind_function(b, l, k, n, out, &done));
        return done ? HONE_OK : bind_host(b, l, k, out);
    }
    bool shaped = true, known = n->n_out > 0;
    for (int q = 0; q < n->n_out; q++) {
        if (n->out[q] < 0) continue;
        shaped &= hone_fact_shaped(out + q);
        known &= hone_fact_numbers(out + q) && hone_fact_shaped(out + q);
    }
    if (known) { /* numbers already: no step */
        for (int q = 0; q < n->n_out; q++) {
            if (n->out[q] < 0) continue;
            hone_bound_var *v = l->var + n->out[q];
            v->fact = out[q], v->at = HONE_AT_CONTENTS;
            v->fact.contents =
                hone_arena_copy(b->steps.arena, out[q].contents, sizeof(hone_dim) * (size_t)out[q].n_content);
            if (!v->fact.contents) return hone_bind_no_memory();
        }
        return HONE_OK;
    }
    if (!shaped) {
        if (!wants(b, l, n)) return hone_fail(HONE_NOT_SUPPORTED, "the shape of its output cannot be told");
        b->cut = k;
        return HONE_OK;
    }
    if (p->runs == HONE_RUNS_VIEW && !strcmp(p->how, "concat")) return hone_bind_concat(b, l, k, out);
    if (p->runs == HONE_RUNS_VIEW || !strcmp(p->name, "Identity")) {
        HONE_TRY(bind_view(b, l, k, n, in, out, &done));
        if (done) return HONE_OK;
    }
    if (!instance) {
        if (!wants(b, l, n)) return hone_fail(HONE_NOT_SUPPORTED, "%s cannot be bound", p->name);
        b->cut = k;
        return HONE_OK;
    }
    for (int q = 0; q < instance->n_param; q++) /* a number that only computed contents decide */
        if (instance->param_real[q] ? param[q].f != param[q].f && wants(b, l, n)
                                    : !hone_dim_is_number(param[q].i)) {
            if (!wants(b, l, n))
                return hone_fail(HONE_NOT_SUPPORTED, "%s cannot be bound: a number is not known", p->name);
            b->cut = k;
            return HONE_OK;
        }
    return bind_program(b, l, k, n, instance, call, param, out);
}
hone_status hone_bind_nodes(hone_binder *b, hone_level *l, int from) {
    for (int k = from; k < l->c->graph->node.n; k++) {
        hone_node *n = l->c->graph->node.at[k];
        const hone_formula *f = l->c->formula[k];
        bool done = l->whole && l->c->shape_only[k];
        if (done) continue;
        hone_status s = f && !l->empty ? bind_formula(b, l, k, n, f, &done) : HONE_OK;
        if (!s && !done) {
            s = bind_node(b, l, k, n, l->c->instance[k]);
            for (int q = 0; q < n->n_out && !s && b->cut < 0; q++)
                if (n->out[q] >= 0) l->var[n->out[q]].as_compiled = hone_bind_as_compiled(l, n->out[q]);
        }
        if (s) return hone_fail_at(s, "node '%s' (%s): ", n->name, n->program->name);
        if (b->cut >= 0) return HONE_OK;
    }
    return HONE_OK;
}
