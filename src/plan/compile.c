/* SPDX-License-Identifier: Apache-2.0
   compile: from an imported graph to one that can be bound, once a model. */
#include <string.h>

#include "device/resident.h"
#include "passes/passes.h"
#include "plan/formula.h"
#include "plan/concat_alias.h"

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory to compile"); }

/* Which inputs' numbers decide shapes or branches: walk back from `contents` operands and conditions through
   small tensors. Shape and Size end the walk: they read dims, not numbers. */
static void trace(hone_compiled *c, hone_vid id, uint8_t *met, int depth) {
    const hone_graph *g = c->graph;
    if (id < 0 || met[id] || depth > 200) return;
    met[id] = 1;
    const hone_var *v = g->var.at + id;
    if (v->value || v->rank > 1) return;
    for (int k = 0; k < g->in.n; k++)
        if (g->in.at[k] == id) c->content_input[k] = true;
    if (v->producer < 0) return;
    const hone_node *n = g->node.at[v->producer];
    hone_kind kind = v->dtype ? hone_dtypes[v->dtype].kind : HONE_KIND_NONE;
    if (n->program->runs == HONE_RUNS_VIEW &&
        (!strcmp(n->program->how, "shape") || !strcmp(n->program->how, "size")))
        return;
    if (n->program->runs == HONE_RUNS_HOST || n->program->runs == HONE_RUNS_CONTROL ||
        kind == HONE_KIND_FLOAT)
        return;
    for (int k = 0; k < n->n_in; k++) trace(c, n->in[k], met, depth + 1);
}
static void find_contents(hone_compiled *c) {
    const hone_graph *g = c->graph;
    uint8_t *met = hone_alloc((size_t)g->var.n + 1);
    if (!met) return; /* then such an input breaks the plan off: slower, not wrong */
    for (int k = 0; k < g->node.n; k++) {
        const hone_node *n = g->node.at[k];
        for (int q = 0; q < n->n_in - n->n_capture; q++)
            if ((q < n->program->n_in && n->program->operand[q].contents) ||
                (n->program->runs == HONE_RUNS_CONTROL && q < 2 && q < n->n_in))
                trace(c, n->in[q], met, 0);
        /* a body may read a captured scalar as a condition */
        for (int q = n->n_in - n->n_capture; q < n->n_in; q++)
            if (n->in[q] >= 0 && g->var.at[n->in[q]].rank == 0) trace(c, n->in[q], met, 0);
    }
    hone_free(met);
}
/* What each node is here, where ranks are known: bind then need not look it up, and where all is known as
   expressions it only evaluates. */
static hone_status find_instances(hone_compiled *c) {
    hone_graph *g = c->graph;
    hone_arena *scratch = hone_arena_create();
    hone_status s = scratch ? HONE_OK : no_memory();
    bool *shape_only = HONE_NEW_N(g->arena, bool, g->node.n + 1);
    if (!shape_only) s = no_memory();
    for (int k = 0; k < g->node.n && !s; k++) {
        hone_node *n = g->node.at[k];
        if (n->n_body) continue;
        hone_arena_reset(scratch);
        shape_only[k] = hone_formula_shape_only(g, n);
        c->formula[k] = hone_formula_make(c, scratch, n, &c->instance[k], &s);
        if (s) s = hone_fail_at(s, "node '%s' (%s): ", n->name, n->program->name);
    }
    c->shape_only = shape_only;
    hone_arena_destroy(scratch);
    return s;
}
static void ask(hone_compiled *c, bool *met, const hone_dim *d, int n) {
    for (int k = 0; k < n; k++) {
        if (!hone_dim_is_symbolic(d[k]) || met[d[k] - HONE_DIM_BAND]) continue;
        met[d[k] - HONE_DIM_BAND] = true, c->asked[c->n_asked++] = d[k];
    }
}
/* What is known of vars before anything is bound: constants, and numbers that the input dims will say. */
static hone_status find_begin(hone_compiled *c) {
    const hone_graph *g = c->graph;
    int n_dim = hone_dims_count(g->dims), n = 0;
    for (int v = 0; v < g->var.n; v++) n += g->var.at[v].value != NULL;
    bool *met = hone_alloc((size_t)n_dim + 1);
    uint8_t *begin = HONE_NEW_N(g->arena, uint8_t, g->var.n + 1);
    hone_bound_var *w = c->constant = HONE_NEW_N(g->arena, hone_bound_var, n + 1);
    c->asked = HONE_NEW_N(g->arena, hone_dim, n_dim + 1), c->begin = begin;
    if (!met || !begin || !w || !c->asked) {
        hone_free(met);
        return no_memory();
    }
    for (int v = 0; v < g->var.n; v++) {
        const hone_value *k = g->var.at[v].value;
        if (!k) continue;
        begin[v] = HONE_AT_REF;
        *w = (hone_bound_var){.fact = hone_fact_of_value(k),
                              .at = HONE_AT_REF,
                              .as_compiled = k->tag == HONE_TAG_TENSOR,
                              .slot = -1,
                              .ref = {hone_base_constant(c->constants->n), -1, 0}};
        if (!hone_push(c->constants, ((hone_constant){k->data, k->bytes}))) {
            hone_free(met);
            return no_memory();
        }
        if (k->tag == HONE_TAG_TENSOR) hone_dense_strides(&w->fact, w->stride);
        w++;
    }
    for (int k = 0; k < g->node.n; k++)
        for (int q = 0; c->shape_only[k] && q < g->node.at[k]->n_out; q++) {
            hone_vid id = g->node.at[k]->out[q];
            if (id < 0) continue;
            begin[id] = HONE_AT_DIMS;
            ask(c, met, g->var.at[id].contents, g->var.at[id].n_content);
            ask(c, met, g->var.at[id].dim, g->var.at[id].rank);
        }
    hone_free(met);
    return HONE_OK;
}
static hone_status compile_graph(hone_compiled *c, hone_compiled *outer, int depth) {
    hone_graph *g = c->graph;
    int n = g->node.n;
    if (depth > 40) return hone_fail(HONE_BAD_INPUT, "bodies are nested too deeply");
    c->outer = outer;
    if (outer)
        c->instances = outer->instances, c->constants = outer->constants, c->packs = outer->packs,
        c->residents = outer->residents, c->caches = outer->caches, c->workspace = outer->workspace;
    c->instance = hone_arena_alloc(g->arena, sizeof *c->instance * (size_t)(n + 1));
    c->formula = hone_arena_alloc(g->arena, sizeof *c->formula * (size_t)(n + 1));
    c->host = hone_arena_alloc(g->arena, sizeof *c->host * (size_t)(n + 1));
    c->body = hone_arena_alloc(g->arena, sizeof *c->body * (size_t)(n + 1));
    c->kept = hone_arena_alloc(g->arena, sizeof *c->kept * (size_t)(n + 1));
    c->content_input = hone_arena_alloc(g->arena, (size_t)g->in.n + 1);
    if (!outer) c->workspace = hone_arena_alloc(g->arena, sizeof *c->workspace);
    c->copies = hone_arena_alloc(g->arena, sizeof *c->copies * HONE_DTYPE_COUNT * (HONE_MAX_RANK + 1));
    const hone_library *lib;
    HONE_TRY(hone_library_builtin(&lib));
    if (!(c->identity = hone_library_find(lib, "", "Identity")))
        return hone_fail(HONE_BUG, "there is no Identity in ops/");
    if (!c->instance || !c->formula || !c->workspace || !c->copies || !c->host || !c->kept || !c->body ||
        !c->content_input)
        return no_memory();
    find_contents(c);
    HONE_TRY(find_instances(c));
    HONE_TRY(find_begin(c));
    HONE_TRY(hone_concat_aliases_find(c));
    for (int k = 0; k < n; k++) {
        hone_node *node = g->node.at[k];
        const hone_program *p = node->program;
        const char *how = p->runs == HONE_RUNS_HOST || p->runs == HONE_RUNS_CONTROL ? p->how : p->how_strings;
        if (how && !(c->host[k] = hone_host_find(how)) && p->runs != HONE_RUNS_PROGRAM &&
            p->runs != HONE_RUNS_VIEW)
            return hone_fail(HONE_NOT_SUPPORTED, "node '%s' (%s): there is no host function '%s'", node->name,
                             p->name, how);
        if (!node->n_body) continue;
        c->body[k] = HONE_NEW_N(g->arena, hone_compiled *, node->n_body);
        for (int b = 0; c->body[k] && b < node->n_body; b++) {
            hone_compiled *inner = HONE_NEW(g->arena, hone_compiled);
            if (!(c->body[k][b] = inner)) return no_memory();
            inner->graph = node->body[b];
            HONE_TRY(compile_graph(inner, c, depth + 1));
        }
        if (!c->body[k]) return no_memory();
    }
    return HONE_OK;
}
static int count_nodes(const hone_graph *g) { /* with those of bodies */
    int n = g->node.n;
    for (int k = 0; k < g->node.n; k++)
        for (int b = 0; b < g->node.at[k]->n_body; b++) n += count_nodes(g->node.at[k]->body[b]);
    return n;
}
/* ---- devices ------------------------------------------------------------------------------------------- */
static void ask_targets(const hone_units *u, hone_target *target) {
    for (int k = 0; k < u->n; k++) {
        target[k] = (hone_target){0};
        if (u->unit[k].row->target) u->unit[k].row->target(u->unit[k].row, u->unit[k].number, target + k);
    }
}
/* What a node is, where that is known already; *out NULL: it is not, or it is no program. */
static hone_status instance_of(hone_arena *scratch, hone_instances *instances, const hone_graph *g,
                               const hone_node *n, const hone_instance **out) {
    hone_fact *facts = HONE_NEW_N(scratch, hone_fact, n->n_in + n->n_out + 1);
    const hone_fact **in = HONE_NEW_N(scratch, const hone_fact *, n->n_in + 1);
    *out = NULL;
    if (!facts || !in) return no_memory();
    if (n->program->runs != HONE_RUNS_PROGRAM || n->n_body) return HONE_OK;
    for (int q = 0; q < n->n_in; q++) {
        facts[q] = n->in[q] < 0 ? hone_fact_unknown : hone_fact_of_var(g->var.at + n->in[q]),
        in[q] = facts + q;
        if (n->in[q] >= 0 && (facts[q].tag != HONE_TAG_TENSOR || facts[q].rank < 0 || !facts[q].dtype))
            return HONE_OK;
    }
    const hone_inferring w = {scratch, g->dims, instances, NULL};
    hone_call *call;
    hone_param *param;
    return hone_node_infer(&w, n, in, NULL, facts + n->n_in, out, &call, &param);
}
/* Each node to its device, before groups are made: what a device refuses stays on the first. */
static hone_status place_nodes(hone_arena *scratch, hone_instances *instances, hone_graph *g,
                               const hone_units *u) {
    for (int k = 0; k < g->node.n; k++) {
        hone_node *n = g->node.at[k];
        for (int b = 0; b < n->n_body; b++) HONE_TRY(place_nodes(scratch, instances, n->body[b], u));
        const int unit = hone_units_place(u, n->name);
        const hone_device *row = u->unit[unit].row;
        const hone_instance *instance = NULL;
        hone_arena_reset(scratch);
        if (unit && row->refuses) HONE_TRY(instance_of(scratch, instances, g, n, &instance));
        n->refused = instance ? row->refuses(row, instance) : NULL;
        n->unit = (uint8_t)(n->refused ? 0 : unit);
    }
    return HONE_OK;
}
static hone_status new_form(hone_graph *g, hone_instances *instances, hone_compiled **out) {
    hone_compiled *c = hone_alloc(sizeof *c);
    if (!c) {
        hone_graph_destroy(g);
        return no_memory();
    }
    c->graph = g, c->nodes_before = count_nodes(g), c->instances = instances, c->borrows = instances != NULL;
    if ((!c->instances && !(c->instances = hone_instances_create())) ||
        !(c->constants = hone_alloc(sizeof *c->constants)) || !(c->packs = hone_packs_create(c->constants)) ||
        !(c->residents = hone_residents_create()) || !(c->caches = hone_caches_create())) {
        hone_compiled_destroy(c);
        return no_memory();
    }
    *out = c;
    return HONE_OK;
}
hone_status hone_compile(hone_graph *g, hone_compiled **out) {
    hone_compiled *c = NULL;
    hone_target target[HONE_MOST_UNITS];
    HONE_TRY(new_form(g, NULL, &c));
    ask_targets(&hone_units_cpu, target);
    hone_status s = hone_passes_run(g, c->instances, target, &c->passes);
    if (!s) s = compile_graph(c, NULL, 0);
    if (s) hone_compiled_destroy(c);
    else *out = c;
    return s;
}
hone_status hone_compile_for(const hone_compiled *of, const hone_units *u, hone_dtype precision,
                             hone_compiled **out) {
    hone_graph *g = NULL;
    hone_compiled *c = NULL;
    hone_target target[HONE_MOST_UNITS];
    HONE_TRY(hone_graph_copy(of->graph, &g));
    HONE_TRY(new_form(g, of->instances, &c));
    ask_targets(u, target);
    hone_arena *scratch = hone_arena_create();
    hone_status s = scratch ? place_nodes(scratch, c->instances, g, u) : no_memory();
    hone_arena_destroy(scratch);
    if (!s) s = hone_passes_place(g, c->instances, target, precision, &c->passes);
    if (!s) s = compile_graph(c, NULL, 0);
    if (s) hone_compiled_destroy(c);
    else *out = c;
    return s;
}
static void drop_kept(hone_compiled *c) { /* a compiling that failed may have left some of it undone */
    for (int k = 0; k < c->graph->node.n && c->kept && c->body; k++) {
        hone_host_kept *kept = atomic_load(c->kept + k);
        if (kept) kept->destroy(kept);
        for (int b = 0; c->body[k] && b < c->graph->node.at[k]->n_body; b++)
            if (c->body[k][b]) drop_kept(c->body[k][b]);
    }
}
void hone_compiled_destroy(hone_compiled *c) {
    if (!c) return;
    drop_kept(c);
    hone_text_free(&c->passes);
    if (c->workspace) hone_bind_workspace_destroy(atomic_load(c->workspace));
    hone_caches_destroy(c->caches);
    hone_residents_destroy(c->residents);
    hone_packs_destroy(c->packs);
    if (c->constants) hone_vec_free(c->constants);
    hone_free(c->constants);
    if (!c->borrows) hone_instances_destroy(c->instances);
    hone_graph_destroy(c->graph);
    hone_free(c);
}
