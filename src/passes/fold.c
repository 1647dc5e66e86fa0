/* SPDX-License-Identifier: Apache-2.0
   fold: what depends on constants alone is computed now. Constants go into the bodies that capture them; an
   If whose condition is known becomes its branch.

   What is random stays, so does what would make the model much larger, or take long to compute. */
#include <string.h>

#include "passes/evaluate.h"
#include "passes/passes.h"
#include "passes/rewrite.h"

/* scalar operations: tile code takes about one ns each */
static const double most_work = 5e8, all_work = 2e9;
static const int64_t most_bytes = 64 << 20, most_growth = 8 << 20 /* the pass runs twice: 16 MB in all */,
                     most_spread = 1 << 16;

typedef struct {
    hone_passing *pass;
    hone_evaluating eval;
    const hone_program *identity;
    int64_t growth;
    bool keeps; /* quantized numbers as they are */
} folding;
typedef hone_vec(hone_node *) nodes;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory to fold constants"); }
static hone_status fold_graph(folding *f, hone_graph *g);
static hone_status fold_nodes(folding *f, hone_graph *g, hone_node *const *node, int n, nodes *done);

/* ---- one node ------------------------------------------------------------------------------------------ */
static int64_t bytes_of_var(const hone_var *v) { /* -1: not known */
    int64_t dim[HONE_MAX_RANK], n;
    if (v->tag != HONE_TAG_TENSOR || !v->dtype || v->rank < 0) return -1;
    for (int k = 0; k < v->rank; k++) dim[k] = hone_dim_is_number(v->dim[k]) ? v->dim[k] : -1;
    if (!hone_count_of(dim, v->rank, &n) || n > INT64_MAX / 16) return -1;
    return n * hone_dtypes[v->dtype].bytes;
}
static bool dequantizes(const hone_node *n) {
    return !*n->program->domain && !strcmp(n->program->name, "DequantizeLinear");
}
/* Whether its results may become constants: known inputs, no chance, and not much larger than what they
   replace. */
static bool worth(const folding *f, const hone_graph *g, const hone_node *n, int64_t *freed) {
    int64_t in = 0, out = 0;
    if (n->part || n->n_body || n->program->runs == HONE_RUNS_CONTROL) return false;
    if (f->keeps && dequantizes(n)) { /* but a number is a number */
        const hone_value *q = g->var.at[n->in[0]].value;
        if (!q || q->tag != HONE_TAG_TENSOR || hone_value_count(q) != 1) return false;
    }
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k] < 0) continue;
        const hone_value *v = g->var.at[n->in[k]].value;
        if (!v || v->tag != HONE_TAG_TENSOR) return false;
        if (g->var.at[n->in[k]].uses <= 1) in += (int64_t)v->bytes;
    }
    for (int k = 0; k < n->n_out; k++) {
        if (n->out[k] < 0) continue;
        const hone_var *v = g->var.at + n->out[k];
        int64_t bytes = bytes_of_var(v);
        if (v->tag != HONE_TAG_TENSOR || bytes > most_bytes) return false;
        out += bytes > 0 ? bytes : 0;
    }
    if (n->program->random) return false;
    *freed = in;
    bool view = n->program->runs == HONE_RUNS_VIEW,
         spread = view && !strcmp(n->program->how, "expand") && out > most_spread && out > in;
    /* weights once, not in every run */
    return !spread && (dequantizes(n) || out - in <= most_growth - f->growth);
}
/* Numbers that infer.c found out, though not all inputs are constants (the shape of an input). */
static bool settle(folding *f, hone_graph *g, hone_node *n) {
    bool any = false;
    if (n->n_body || n->part) return false;
    for (int k = 0; k < n->n_out; k++) {
        const hone_var *v = hone_var_of(g, n->out[k]);
        if (!v) continue;
        if (!v->contents) return false;
        any = true;
    }
    hone_value **made = any ? HONE_NEW_N(f->eval.arena, hone_value *, n->n_out) : NULL;
    bool ok = made != NULL;
    for (int k = 0; ok && k < n->n_out; k++) {
        const hone_var *v = hone_var_of(g, n->out[k]);
        if (!v) continue;
        hone_fact fact = {.tag = v->tag,
                          .dtype = v->dtype,
                          .rank = v->rank,
                          .contents = v->contents,
                          .n_content = v->n_content};
        memcpy(fact.dim, v->dim, sizeof fact.dim);
        ok = (made[k] = hone_evaluate_contents(&fact)) != NULL;
    }
    for (int k = 0; made && k < n->n_out; k++) {
        if (ok && made[k]) hone_var_fix(g->var.at + n->out[k], made[k]);
        else hone_value_drop(made[k]);
    }
    return ok;
}
/* Weights are computed with as floats, but a file keeps them as they were. */
static void note(const hone_graph *g, const hone_node *n, hone_value *made) {
    enum { FEW = 16 };
    if (!dequantizes(n) || hone_value_count(made) < FEW || hone_attr_find(n->attr, n->n_attr, "output_dtype"))
        return;
    hone_value *zero = n->n_in > 2 && n->in[2] >= 0 ? g->var.at[n->in[2]].value : NULL;
    hone_value_note(made, g->var.at[n->in[0]].value, g->var.at[n->in[1]].value, zero,
                    hone_attr_int(n->attr, n->n_attr, "axis", 1),
                    hone_attr_int(n->attr, n->n_attr, "block_size", 0));
}
static bool compute(folding *f, hone_graph *g, hone_node *n) {
    int64_t freed, growth = 0;
    if (!worth(f, g, n, &freed)) return false;
    hone_value **out = HONE_NEW_N(f->eval.arena, hone_value *, n->n_out + 1);
    if (!out || !hone_evaluate(&f->eval, g, n, out)) return false;
    for (int k = 0; k < n->n_out; k++) growth += out[k] ? (int64_t)out[k]->bytes : 0;
    growth = growth > freed ? growth - freed : 0;
    bool fits = dequantizes(n) || growth <= most_growth - f->growth; /* sizes were perhaps not known before */
    for (int k = 0; k < n->n_out; k++) {
        if (out[k] && fits) note(g, n, out[k]), hone_var_fix(g->var.at + n->out[k], out[k]);
        else hone_value_drop(out[k]);
    }
    f->growth += fits && !dequantizes(n) ? growth : 0;
    return fits;
}

/* ---- bodies -------------------------------------------------------------------------------------------- */
/* Captured constants become the body's own; who reads the capture reads those. */
static hone_status bring_in(const hone_graph *g, const hone_node *n, hone_graph *body) {
    hone_renames r;
    hone_status s = HONE_OK;
    int before = body->var.n;
    hone_vid *made = n->n_capture ? hone_alloc(sizeof *made * (size_t)n->n_capture) : NULL;
    if (n->n_capture && !made) return no_memory();
    for (int k = 0; k < n->n_capture && !s; k++) {
        const hone_var *v = g->var.at + n->in[n->n_in - n->n_capture + k];
        hone_vid capture = body->in.at[body->n_formal + k];
        made[k] = -1;
        if (!v->value || !body->var.at[capture].uses) continue;
        made[k] = hone_graph_const(body, body->var.at[capture].name, hone_value_hold(v->value));
        if (made[k] < 0) s = no_memory();
    }
    if (!s && body->var.n > before) {
        if (!hone_renames_open(&r, body)) s = no_memory();
        else {
            for (int k = 0; k < n->n_capture; k++)
                if (made[k] >= 0) r.to[body->in.at[body->n_formal + k]] = made[k];
            hone_renames_close(&r);
            hone_graph_index(body);
        }
    }
    hone_free(made);
    return s;
}
/* One node of a branch, with the outer graph's vars. */
static void adopt(hone_graph *g, hone_node *n, const hone_vid *to) {
    for (int k = 0; k < n->n_in; k++) n->in[k] = n->in[k] < 0 ? -1 : to[n->in[k]];
    for (int k = 0; k < n->n_out; k++) n->out[k] = n->out[k] < 0 ? -1 : to[n->out[k]];
    for (int k = 0; k < n->n_body; k++) n->body[k]->outer = g;
    for (int k = 0; k < n->n_part; k++) adopt(g, n->part[k], to);
}
/* Vars of the branch in the outer graph: captures are there already; an output takes the If's own var if a
   node of the branch makes it. */
static hone_status map_vars(hone_graph *g, const hone_node *n, hone_graph *body, hone_vid *to) {
    for (int v = 0; v < body->var.n; v++) to[v] = -1;
    for (int k = 0; k < n->n_capture; k++)
        to[body->in.at[body->n_formal + k]] = n->in[n->n_in - n->n_capture + k];
    for (int k = 0; k < n->n_out && k < body->out.n; k++) {
        hone_vid o = body->out.at[k];
        if (n->out[k] >= 0 && to[o] < 0 && body->var.at[o].producer >= 0) to[o] = n->out[k];
    }
    for (int v = 0; v < body->var.n; v++) {
        hone_var from = body->var.at[v];
        if (to[v] >= 0) continue;
        if ((to[v] = hone_graph_var(g, from.name)) < 0) return no_memory();
        hone_var *made = g->var.at + to[v];
        from.name = made->name, from.producer = -1;
        *made = from;
        hone_value_hold(made->value);
    }
    return HONE_OK;
}
static hone_status inline_branch(folding *f, hone_graph *g, hone_node *n, hone_graph *body, nodes *done) {
    nodes list = {0};
    hone_vid *to = hone_alloc(sizeof *to * (size_t)(body->var.n + 1));
    hone_status s = to ? map_vars(g, n, body, to) : no_memory();
    for (int k = 0; k < body->node.n && !s; k++) {
        if (body->node.at[k]->dead) continue;
        adopt(g, body->node.at[k], to);
        if (!hone_push(&list, body->node.at[k])) s = no_memory();
    }
    body->node.n = s ? body->node.n : 0; /* they are the outer graph's now */
    if (!s) s = fold_nodes(f, g, list.at, list.n, done);
    for (int k = 0; k < n->n_out && !s; k++) {
        if (n->out[k] < 0 || k >= body->out.n || to[body->out.at[k]] == n->out[k]) continue;
        hone_vid x = to[body->out.at[k]];
        hone_node *copy = hone_graph_node(g, f->identity, n->name, &x, 1, n->out + k, 1);
        if (!copy || !hone_push(done, copy)) s = no_memory();
        else g->node.n--; /* it stands in `done` */
    }
    hone_vec_free(&list);
    hone_free(to);
    return s;
}
/* The branch that an If with a known condition takes; NULL: not known. */
static hone_graph *branch_of(const hone_graph *g, const hone_node *n) {
    const hone_value *c = n->n_in && n->in[0] >= 0 ? g->var.at[n->in[0]].value : NULL;
    if (n->program->runs != HONE_RUNS_CONTROL || strcmp(n->program->how, "if") != 0) return NULL;
    if (!c || c->tag != HONE_TAG_TENSOR || c->dtype != HONE_DTYPE_BOOL || hone_value_count(c) != 1)
        return NULL;
    const hone_attr *a =
        hone_attr_find(n->attr, n->n_attr, hone_value_i64(c, 0) ? "then_branch" : "else_branch");
    if (!a || a->kind != HONE_ATTR_BODY || a->body < 0 || a->body >= n->n_body) return NULL;
    hone_graph *body = n->body[a->body];
    return body->n_formal == 0 && body->out.n >= n->n_out ? body : NULL;
}

/* ---- graphs -------------------------------------------------------------------------------------------- */
static hone_status fold_nodes(folding *f, hone_graph *g, hone_node *const *node, int n, nodes *done) {
    for (int k = 0; k < n; k++) {
        hone_node *at = node[k];
        if (at->dead) continue;
        hone_arena_reset(f->eval.arena);
        if (settle(f, g, at) || compute(f, g, at)) {
            at->dead = true, f->pass->changed++;
            continue;
        }
        hone_graph *branch = branch_of(g, at);
        if (branch) {
            f->pass->changed++;
            HONE_TRY(inline_branch(f, g, at, branch, done));
            continue;
        }
        for (int b = 0; b < at->n_body; b++) {
            HONE_TRY(bring_in(g, at, at->body[b]));
            HONE_TRY(fold_graph(f, at->body[b]));
        }
        if (!hone_push(done, at)) return no_memory();
    }
    return HONE_OK;
}
static hone_status fold_graph(folding *f, hone_graph *g) {
    nodes done = {0};
    hone_status s = fold_nodes(f, g, g->node.at, g->node.n, &done);
    if (s) {
        hone_vec_free(&done);
        return s;
    }
    hone_free(g->node.at);
    g->node.at = done.at, g->node.n = done.n, g->node.room = done.room;
    return HONE_OK;
}
static hone_status fold(hone_passing *p, bool keeps) {
    const hone_library *library;
    HONE_TRY(hone_library_builtin(&library));
    hone_graph_index(p->graph);
    folding f = {.pass = p, .keeps = keeps, .identity = hone_library_find(library, "", "Identity")};
    f.eval = (hone_evaluating){
        .instances = p->instances, .work = all_work, .most_work = most_work, .most_bytes = most_bytes};
    f.eval.arena = hone_arena_create();
    hone_status s = f.eval.arena ? HONE_OK : no_memory();
    if (!s && !f.identity) s = hone_fail(HONE_BUG, "the library has no Identity");
    if (!s) s = fold_graph(&f, p->graph);
    hone_arena_destroy(f.eval.arena);
    if (!s) hone_graph_compact(p->graph);
    return s;
}
hone_status hone_pass_fold(hone_passing *p) { return fold(p, false); }
hone_status hone_pass_settle(hone_passing *p) { return fold(p, true); }
