/* SPDX-License-Identifier: Apache-2.0
   report_plan: a model bound to dims and not run: its steps, how its arena is used step by step, and the work
   that the dims make known. */
#include <string.h>

#include "base/thread.h"
#include "hone/tools.h"
#include "run/model.h"

static hone_status facts_of(const hone_model *m, const hone_shape *in, hone_fact *out) {
    const hone_graph *g = m->compiled->graph;
    for (int k = 0; k < g->in.n; k++) {
        const hone_var *v = g->var.at + g->in.at[k];
        out[k] = (hone_fact){.tag = v->tag, .dtype = v->dtype, .rank = -1};
        if (v->tag != HONE_TAG_TENSOR) continue;
        if (in[k].rank < 0 || in[k].rank > HONE_MAX_RANK || (v->rank >= 0 && in[k].rank != v->rank))
            return hone_fail(HONE_BAD_INPUT, "input '%s' has %d dims, %d were given", v->name, v->rank,
                             in[k].rank);
        out[k].rank = (int8_t)in[k].rank;
        for (int d = 0; d < in[k].rank; d++) {
            out[k].dim[d] = in[k].dims[d];
            if (in[k].dims[d] < 0 ||
                (v->rank >= 0 && hone_dim_is_number(v->dim[d]) && v->dim[d] != in[k].dims[d]))
                return hone_fail(HONE_BAD_INPUT, "input '%s': dim %d cannot be %lld", v->name, d,
                                 (long long)in[k].dims[d]);
        }
    }
    return HONE_OK;
}
/* What every expression of the dims is worth. NULL: no memory. */
static int64_t *values_of(const hone_graph *g, const hone_fact *in) {
    int n = hone_dims_count(g->dims);
    int64_t *values = hone_alloc(sizeof *values * (size_t)(n + 1));
    for (int k = 0; values && k < n; k++) values[k] = HONE_DIM_UNKNOWN;
    for (int k = 0; values && k < g->in.n; k++) {
        const hone_var *v = g->var.at + g->in.at[k];
        for (int d = 0; d < v->rank && v->rank == in[k].rank; d++) {
            int64_t h = hone_dim_is_symbolic(v->dim[d]) ? v->dim[d] - HONE_DIM_BAND : n;
            if (h < n && hone_dim_handle_op(g->dims, (int)h) == HONE_DIM_SYMBOL) values[h] = in[k].dim[d];
        }
    }
    if (values) hone_dims_eval(g->dims, values);
    return values;
}
static int64_t bytes_of(const hone_fact *f) {
    int64_t n = hone_fact_shaped(f) ? hone_dtypes[f->dtype].bytes : 0;
    for (int k = 0; k < f->rank; k++)
        if (__builtin_mul_overflow(n, f->dim[k], &n)) return 0;
    return n;
}
static void put_work(const hone_graph *g, const int64_t *values, hone_text *t) {
    hone_counts all = hone_graph_counts(g, values);
    hone_text_put(t, ", \"flops\": %.0f, \"bytes\": %.0f, \"known\": %s, \"nodes\": [", all.flops,
                  all.bytes_read + all.bytes_written, all.known ? "true" : "false");
    for (int k = 0; k < g->node.n; k++) {
        hone_counts c = hone_node_counts(g, g->node.at[k], values);
        hone_text_put(t, "%s{\"flops\": %.0f, \"bytes\": %.0f, \"known\": %s}", k ? ", " : "", c.flops,
                      c.bytes_read + c.bytes_written, c.known ? "true" : "false");
    }
    hone_text_put(t, "]");
}
/* The step from which a block takes room of its own: after the life of the one on whose place it lies. */
static int takes_from(const hone_plan *p, const hone_block *b) {
    const hone_block *on = b->shares >= 0 && b->shares < p->n_block ? p->block + b->shares : NULL;
    return on && on->at == b->at && on->last >= b->first ? on->last + 1 : b->first;
}
static void put_memory(const hone_plan *p, hone_text *t) {
    int64_t *used = hone_alloc(sizeof *used * (size_t)(p->n_step + 2)), now = 0;
    if (!used) {
        t->failed = true;
        return;
    }
    hone_text_put(t, ", \"blocks\": [");
    for (int k = 0; k < p->n_block; k++) {
        const hone_block *b = p->block + k;
        int from = takes_from(p, b);
        if (from <= b->last) used[from] += b->bytes, used[b->last + 1] -= b->bytes;
        hone_text_put(t, "%s{\"name\": ", k ? ", " : "");
        hone_text_json(t, b->name ? b->name : "");
        hone_text_put(t, ", \"bytes\": %lld, \"at\": %lld, \"first\": %d, \"last\": %d, \"in_place\": %s}",
                      (long long)b->bytes, (long long)b->at, b->first, b->last,
                      from > b->first ? "true" : "false");
    }
    hone_text_put(t, "], \"used\": [");
    for (int k = 0; k < p->n_step; k++) hone_text_put(t, k ? ", %lld" : "%lld", (long long)(now += used[k]));
    hone_text_put(t, "]");
    hone_free(used);
}
static void put_steps(const hone_plan *p, hone_text *t) {
    hone_text_put(t, ", \"steps\": [");
    for (int k = 0; k < p->n_step; k++) {
        const hone_step *s = p->step + k;
        hone_text_put(t, "%s{\"number\": %d, \"node\": ", k ? ", " : "", s->node);
        hone_text_json(t, s->of ? s->of->name : "");
        hone_text_put(t, ", \"op\": ");
        hone_text_json(t, s->of ? s->of->program->name : "");
        hone_text_put(t, ", \"tactic\": \"%s\", \"tiles\": %lld", s->tactic, (long long)s->tiles);
        if (s->unit == HONE_UNIT_COPY)
            hone_text_put(t, ", \"copied_bytes\": %lld", (long long)((const hone_transfer *)s->data)->bytes);
        else if (p->units->n > 1)
            hone_text_put(t, ", \"device\": \"%s:%d\"", p->units->unit[s->unit].row->name,
                          p->units->unit[s->unit].number);
        hone_text_put(t, "}");
    }
    hone_text_put(t, "]");
}
/* ---- devices ------------------------------------------------------------------------------------------- */
/* Why a step of the host's is there, though its node was sent elsewhere; NULL: it was not. */
static const char *why_host(const hone_plan *p, const hone_step *s) {
    if (s->unit || !s->of || !hone_units_place(p->units, s->of->name)) return NULL;
    for (int k = 0; k < p->n_refused; k++)
        if (p->refused[k].node == s->of) return p->refused[k].why;
    if (s->host)
        return s->of->n_body ? "control flow is the host's; its bodies go where it was sent"
                             : "it is no tensor program";
    return "constants alone decide it, or it moves strings";
}
static void put_devices(const hone_plan *p, hone_text *t) {
    int64_t copied = 0;
    int copies = 0, told = 0;
    const hone_node *last = NULL;
    hone_text_put(t, ", \"devices\": [");
    for (int u = 0; u < p->units->n; u++) {
        int steps = 0;
        for (int k = 0; k < p->n_step; k++) steps += p->step[k].unit == u;
        hone_text_put(t, "%s{\"name\": \"%s:%d\", \"steps\": %d, \"arena_bytes\": %lld}", u ? ", " : "",
                      p->units->unit[u].row->name, p->units->unit[u].number, steps,
                      (long long)(u && p->space ? p->space[u].bytes
                                  : u           ? 0
                                                : p->arena_bytes));
    }
    for (int k = 0; k < p->n_step; k++)
        if (p->step[k].unit == HONE_UNIT_COPY)
            copies++, copied += ((const hone_transfer *)p->step[k].data)->bytes;
    hone_text_put(t, "], \"copies\": %d, \"copied_bytes\": %lld, \"host\": [", copies, (long long)copied);
    for (int k = 0; k < p->n_step; k++) {
        const char *why = why_host(p, p->step + k);
        if (!why || p->step[k].of == last) continue;
        last = p->step[k].of;
        hone_text_put(t, "%s{\"node\": ", told++ ? ", " : "");
        hone_text_json(t, last->name);
        hone_text_put(t, ", \"op\": ");
        hone_text_json(t, last->program->name);
        hone_text_put(t, ", \"why\": ");
        hone_text_json(t, why);
        hone_text_put(t, "}");
    }
    hone_text_put(t, "]");
}
static void put_plan(const hone_compiled *form, const hone_fact *in, const hone_plan *p,
                     const int64_t *values, hone_text *t) {
    const hone_graph *g = form->graph;
    int64_t ins = 0, outs = 0;
    for (int k = 0; k < g->in.n; k++) ins += bytes_of(in + k);
    for (int k = 0; k < g->out.n; k++)
        outs += p->out[k].how == HONE_OUT_WRITTEN ? bytes_of(&p->out[k].fact) : 0;
    hone_text_put(t, "{\"whole\": %s", p->cut_node < 0 ? "true" : "false");
    if (p->cut_node >= 0) {
        hone_text_put(t, ", \"cut_at\": ");
        hone_text_json(t, p->cut_node < g->node.n ? g->node.at[p->cut_node]->name : "");
        hone_text_put(t, ", \"waits_for\": [");
        for (int k = 0; k < p->n_wanted; k++) {
            if (k) hone_text_put(t, ", ");
            hone_text_json(t, g->var.at[p->wanted[k]].name);
        }
        hone_text_put(t, "]");
    }
    hone_text_put(t,
                  ", \"arena_bytes\": %lld, \"lower_bound_bytes\": %lld, \"sum_bytes\": %lld, "
                  "\"scratch_bytes\": %zu, \"packed_bytes\": %zu, "
                  "\"input_bytes\": %lld, \"output_bytes\": %lld, \"parameter_bytes\": %lld",
                  (long long)p->arena_bytes, (long long)p->lower_bound_bytes, (long long)p->sum_bytes,
                  p->scratch_bytes, hone_packs_bytes(form->packs), (long long)ins, (long long)outs,
                  (long long)hone_graph_counts(g, NULL).parameter_bytes);
    put_work(g, values, t);
    put_memory(p, t);
    put_steps(p, t);
    if (p->units->n > 1) put_devices(p, t);
    hone_text_put(t, "}");
}
hone_status hone_model_plan(const hone_model *m, const hone_shape *in, char **out) {
    return hone_model_plan_with(m, NULL, in, out);
}
hone_status hone_model_plan_with(const hone_model *m, const hone_options *o, const hone_shape *in,
                                 char **out) {
    if (!m || !in || !out)
        return hone_fail(HONE_BAD_INPUT, "hone_model_plan: model, shapes and out must not be NULL");
    HONE_TRY(hone_model_whole(m));
    const hone_graph *g = m->compiled->graph;
    hone_fact *facts = hone_alloc(sizeof *facts * (size_t)(g->in.n + 1));
    hone_plan *p = NULL;
    hone_text t = {0};
    hone_advice advice = {0};
    hone_units *units = NULL;
    hone_status s = facts ? facts_of(m, in, facts) : hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    if (!s) s = hone_advice_open(NULL, &advice);
    if (!s && o) s = hone_units_make(o->device, o->place, &units);
    const hone_bind_options how = {.threads = o && o->threads > 0 ? o->threads : hone_cores(),
                                   .wisdom = advice.wisdom,
                                   .precision = o && o->precision ? o->precision : HONE_DTYPE_F32,
                                   .units = units};
    const hone_compiled *form = NULL;
    hone_forms *forms = &((hone_model *)m)->forms; /* it grows, nothing else changes */
    if (!s) s = hone_forms_get(forms, m->compiled, units, how.precision, &form);
    if (!s) s = hone_bind(form, facts, NULL, NULL, how, &p);
    int64_t *values = s ? NULL : values_of(form->graph, facts);
    if (!s && !values) s = hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    if (!s) put_plan(form, facts, p, values, &t);
    hone_free(values);
    hone_plan_destroy(p);
    hone_forms_drop(forms, form);
    hone_units_free(units);
    hone_advice_close(&advice);
    hone_free(facts);
    return s ? s : hone_text_give(&t, out);
}
