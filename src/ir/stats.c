/* SPDX-License-Identifier: Apache-2.0
   stats: how much work a graph is, by its rows: arithmetic from each instance, traffic from the operands
   (each read or written once; views are free), parameters from the constants. Sizes that are not known count
   as nothing, and `known` says so. A body counts once, whatever the number of trips. */
#include "ir/infer.h"

#include <string.h>

typedef struct {
    const hone_graph *graph;
    const int64_t *values;
    hone_instances *instances;
} counting;

static hone_dim number_of(const counting *c, hone_dim d) {
    return c->values && hone_dim_is_symbolic(d) ? hone_dim_value(d, c->values) : d;
}

static bool fact_of(const counting *c, hone_arena *a, const hone_var *v, hone_fact *f) {
    if (v->value) {
        *f = hone_fact_of_value(v->value);
        return true;
    }
    *f = (hone_fact){.tag = v->tag, .dtype = v->dtype, .rank = v->rank, .n_content = v->n_content};
    for (int k = 0; k < v->rank; k++) f->dim[k] = number_of(c, v->dim[k]);
    if (!v->contents) return true;
    hone_dim *d = HONE_NEW_N(a, hone_dim, v->n_content + 1);
    for (int k = 0; d && k < v->n_content; k++) d[k] = number_of(c, v->contents[k]);
    return (f->contents = d) != NULL;
}
static double bytes_of(const counting *c, hone_vid id, bool *known) {
    const hone_var *v = hone_var_of(c->graph, id);
    if (!v) return 0;
    double n = v->dtype ? hone_dtypes[v->dtype].bytes : 0;
    *known = *known && v->tag == HONE_TAG_TENSOR && v->dtype && v->rank >= 0;
    for (int k = 0; k < v->rank; k++) {
        hone_dim d = number_of(c, v->dim[k]);
        if (!hone_dim_is_number(d)) {
            *known = false;
            return 0;
        }
        n *= (double)d;
    }
    return v->rank < 0 ? 0 : n;
}

static bool numbers(const hone_instance *i, const hone_param *p) {
    for (int k = 0; k < i->n_param; k++)
        if (!i->param_real[k] && !hone_dim_is_number(p[k].i)) return false;
    return true;
}
/* Arithmetic of one node (not of a fused one). */
static void count_flops(const counting *c, const hone_node *n, hone_counts *out) {
    hone_arena *a = hone_arena_create();
    hone_fact *facts = a ? HONE_NEW_N(a, hone_fact, n->n_in + n->n_out + 1) : NULL;
    const hone_fact **in = a ? HONE_NEW_N(a, const hone_fact *, n->n_in + 1) : NULL;
    bool ok = facts && in;
    for (int k = 0; ok && k < n->n_in; k++) {
        facts[k] = hone_fact_unknown, in[k] = facts + k;
        if (n->in[k] >= 0) ok = fact_of(c, a, c->graph->var.at + n->in[k], facts + k);
    }
    hone_inferring w = {a, c->graph->dims, c->instances, NULL};
    const hone_instance *i = NULL;
    hone_call *call;
    hone_param *param;
    ok = ok && !hone_node_infer(&w, n, in, NULL, facts + n->n_in, &i, &call, &param);
    if (ok && i && numbers(i, param)) {
        double flops = 0, bytes = 0;
        hone_instance_counts(i, param, &flops, &bytes);
        out->flops += flops;
    } else if (!ok || i || n->program->runs == HONE_RUNS_PROGRAM) out->known = false;
    hone_arena_destroy(a);
}
static void add(hone_counts *to, const hone_counts *from) {
    to->flops += from->flops, to->bytes_read += from->bytes_read, to->bytes_written += from->bytes_written;
    to->parameters += from->parameters, to->parameter_bytes += from->parameter_bytes;
    to->known = to->known && from->known;
}
static void add_parameters(hone_counts *c, const hone_value *v) {
    if (!v || v->tag != HONE_TAG_TENSOR) return;
    c->parameters += hone_value_count(v), c->parameter_bytes += (int64_t)v->bytes;
}
static hone_counts count_graph(const counting *outer, const hone_graph *g);

static hone_counts count_node(const counting *c, const hone_node *n) {
    hone_counts total = {.known = true};
    for (int k = 0; k < n->n_body; k++) {
        hone_counts body = count_graph(c, n->body[k]);
        add(&total, &body);
    }
    if (n->n_body) {
        total.known = false; /* how often a body runs is not known here */
        return total;
    }
    for (int k = 0; k < n->n_part; k++) count_flops(c, n->part[k], &total);
    if (!n->part && n->program->runs == HONE_RUNS_PROGRAM) count_flops(c, n, &total);
    bool copies = n->part || n->program->runs != HONE_RUNS_VIEW || !strcmp(n->program->how, "concat");
    for (int k = 0; copies && k < n->n_in; k++) total.bytes_read += bytes_of(c, n->in[k], &total.known);
    for (int k = 0; copies && k < n->n_out; k++) total.bytes_written += bytes_of(c, n->out[k], &total.known);
    return total;
}
static hone_counts count_graph(const counting *outer, const hone_graph *g) {
    counting c = {g, outer->values, outer->instances};
    hone_counts total = {.known = true};
    for (int k = 0; k < g->node.n; k++) {
        if (g->node.at[k]->dead) continue;
        hone_counts node = count_node(&c, g->node.at[k]);
        add(&total, &node);
    }
    for (int k = 0; k < g->var.n; k++) add_parameters(&total, g->var.at[k].value);
    return total;
}

hone_counts hone_node_counts(const hone_graph *g, const hone_node *n, const int64_t *dim_values) {
    counting c = {g, dim_values, hone_instances_create()};
    if (!c.instances) return (hone_counts){0};
    hone_counts total = count_node(&c, n);
    for (int k = 0; k < n->n_in; k++)
        if (n->in[k] >= 0) add_parameters(&total, g->var.at[n->in[k]].value);
    hone_instances_destroy(c.instances);
    return total;
}
hone_counts hone_graph_counts(const hone_graph *g, const int64_t *dim_values) {
    counting c = {g, dim_values, hone_instances_create()};
    if (!c.instances) return (hone_counts){0};
    hone_counts total = count_graph(&c, g);
    hone_instances_destroy(c.instances);
    return total;
}
