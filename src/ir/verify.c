/* SPDX-License-Identifier: Apache-2.0
   verify: every rule that graph.h states, and each node against its row. A broken rule here is a wrong model
   or a wrong pass; the message names the graph, the node and the var. Shapes are not looked at: infer.c finds
   those. */
#include "ir/graph.h"

#include <string.h>

static const char *const tag_names[] = {"tensor", "sequence", "optional", "map"};

static hone_status wrong(const hone_graph *g, const hone_node *n, const char *what, int k, const char *var) {
    if (n)
        return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s' (%s): operand %d '%s' %s", g->name, n->name,
                         n->program ? n->program->name : "?", k, var, what);
    return hone_fail(HONE_BAD_INPUT, "graph '%s', var '%s': %s", g->name, var, what);
}

static const char *name_of(const hone_graph *g, hone_vid v) { return v < 0 ? "" : g->var.at[v].name; }

/* ---- vars ---------------------------------------------------------------------------------------------- */
static hone_status verify_var(const hone_graph *g, hone_vid id) {
    const hone_var *v = g->var.at + id;
    if (!v->name || !v->name[0]) return wrong(g, NULL, "has no name", 0, "");
    if (hone_graph_find(g, v->name) != id)
        return wrong(g, NULL, "its name is not its own: two vars share it, or it was changed by hand", 0,
                     v->name);
    if ((unsigned)v->tag > HONE_TAG_MAP) return wrong(g, NULL, "is of no known kind", 0, v->name);
    if (v->dtype != HONE_DTYPE_NONE && !hone_dtype_valid(v->dtype))
        return wrong(g, NULL, "has no valid element type", 0, v->name);
    if (v->rank < -1 || v->rank > HONE_MAX_RANK)
        return wrong(g, NULL, "has a rank outside 0 to 16", 0, v->name);
    uint32_t seen = 0;
    for (int k = 0; k < v->rank; k++) {
        if (hone_dim_is_number(v->dim[k]) && v->dim[k] < 0)
            return wrong(g, NULL, "has a dim below 0", 0, v->name);
        if (v->layout.kind == HONE_LAYOUT_ORDER && v->layout.order[k] >= 0 && v->layout.order[k] < v->rank)
            seen |= 1u << v->layout.order[k];
    }
    if (v->rank > 0 && v->layout.kind == HONE_LAYOUT_ORDER && seen != (1u << v->rank) - 1)
        return wrong(g, NULL, "its layout is not an order of its dims", 0, v->name);
    if (v->value) {
        if (v->value->tag != v->tag || v->value->dtype != v->dtype)
            return wrong(g, NULL, "is a constant of another type than its var", 0, v->name);
        bool same = v->tag != HONE_TAG_TENSOR || v->value->rank == v->rank;
        for (int k = 0; same && v->tag == HONE_TAG_TENSOR && k < v->rank; k++)
            same = v->value->dim[k] == v->dim[k];
        if (!same) return wrong(g, NULL, "is a constant of another shape than its var", 0, v->name);
    }
    return HONE_OK;
}

/* ---- a node and its row -------------------------------------------------------------------------------- */
static bool is_half(hone_dtype t) { return t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16; }
static hone_status verify_type(const hone_graph *g, const hone_node *n, const hone_operand *o, hone_vid id,
                               hone_dtype *bound) {
    const hone_program *p = n->program;
    const hone_var *v = g->var.at + id;
    bool list = o->of == HONE_OF_SEQ || o->of == HONE_OF_OPT || o->of == HONE_OF_MAP;
    if (v->tag == HONE_TAG_TENSOR && v->dtype == HONE_DTYPE_NONE) return HONE_OK; /* nothing known yet */
    hone_tag want = o->of == HONE_OF_SEQ   ? HONE_TAG_SEQUENCE
                    : o->of == HONE_OF_OPT ? HONE_TAG_OPTIONAL
                    : o->of == HONE_OF_MAP ? HONE_TAG_MAP
                                           : HONE_TAG_TENSOR;
    /* its row says what it does to a tensor; lists pass through */
    bool passes = !strcmp(p->name, "Identity") && !p->domain[0];
    if ((list || (o->shaped && !passes)) && v->tag != want)
        return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s' (%s): %s '%s' is a %s, must be a %s", g->name,
                         n->name, p->name, o->name, v->name, tag_names[v->tag], tag_names[want]);
    if (v->tag != HONE_TAG_TENSOR || v->dtype == HONE_DTYPE_NONE) return HONE_OK;
    if (o->of == HONE_OF_DTYPE && v->dtype != o->dtype)
        return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s' (%s): %s '%s' is %s, must be %s", g->name,
                         n->name, p->name, o->name, v->name, hone_dtypes[v->dtype].name,
                         hone_dtypes[o->dtype].name);
    if (o->of != HONE_OF_VAR) return HONE_OK;
    for (int t = 0; t < p->n_type && t < 32; t++) {
        if (strcmp(p->type[t].name, o->type) != 0) continue;
        if (!(p->type[t].allowed >> v->dtype & 1))
            return hone_fail(HONE_BAD_INPUT,
                             "graph '%s', node '%s' (%s): %s '%s' is %s, which the op does not take", g->name,
                             n->name, p->name, o->name, v->name, hone_dtypes[v->dtype].name);
        const hone_graph *top = g;
        while (top->outer) top = top->outer;
        const bool f32 = bound[t] == HONE_DTYPE_F32 || v->dtype == HONE_DTYPE_F32;
        if (top->mixed && f32 && (is_half(bound[t]) || is_half(v->dtype))) {
            bound[t] = HONE_DTYPE_F32;
            continue;
        }
        if (bound[t] != HONE_DTYPE_NONE && bound[t] != v->dtype)
            return hone_fail(HONE_BAD_INPUT,
                             "graph '%s', node '%s' (%s): %s '%s' is %s, others of its type are %s", g->name,
                             n->name, p->name, o->name, v->name, hone_dtypes[v->dtype].name,
                             hone_dtypes[bound[t]].name);
        bound[t] = v->dtype;
    }
    return HONE_OK;
}

/* `own` operands of the node against `n_row` of the row. */
static hone_status verify_operands(const hone_graph *g, const hone_node *n, const hone_operand *row,
                                   int n_row, const hone_vid *id, int own, bool output, hone_dtype *bound) {
    const hone_program *p = n->program;
    const hone_operand *last = n_row ? row + n_row - 1 : NULL;
    if (own > n_row && !(last && last->variadic))
        return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s' (%s): %d %s, the op has at most %d", g->name,
                         n->name, p->name, own, output ? "outputs" : "inputs", n_row);
    for (int k = 0; k < own || k < n_row; k++) {
        const hone_operand *o = k < n_row ? row + k : last;
        if (k < own && id[k] >= 0) {
            HONE_TRY(verify_type(g, n, o, id[k], bound));
        } else if (!output && !o->optional && !o->variadic && !o->otherwise) {
            return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s' (%s): input %d (%s) is missing", g->name,
                             n->name, p->name, k, o->name);
        }
    }
    return HONE_OK;
}

static hone_status verify_row(const hone_graph *g, const hone_node *n) {
    const hone_program *p = n->program;
    hone_dtype bound[32] = {0};
    HONE_TRY(verify_operands(g, n, p->operand, p->n_in, n->in, n->n_in - n->n_capture, false, bound));
    HONE_TRY(verify_operands(g, n, p->operand + p->n_in, p->n_out, n->out, n->n_out, true, bound));
    for (int k = 0; k < p->n_attr; k++)
        if (p->attr[k].required && !hone_attr_find(n->attr, n->n_attr, p->attr[k].name))
            return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s' (%s): attribute '%s' is missing", g->name,
                             n->name, p->name, p->attr[k].name);
    return HONE_OK;
}

static hone_status verify_bodies(const hone_graph *g, const hone_node *n) {
    for (int k = 0; k < n->n_body; k++) {
        const hone_graph *b = n->body[k];
        if (!b || b->arena != g->arena || b->dims != g->dims)
            return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s': body %d is not of this graph", g->name,
                             n->name, k);
        if (b->outer != g)
            return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s': body '%s' belongs to another graph",
                             g->name, n->name, b->name);
        if (b->n_formal < 0 || b->in.n - b->n_formal != n->n_capture)
            return hone_fail(HONE_BAD_INPUT,
                             "graph '%s', node '%s': body '%s' takes %d captures, the node gives %d", g->name,
                             n->name, b->name, b->in.n - b->n_formal, n->n_capture);
        HONE_TRY(hone_graph_verify(b));
    }
    for (int k = 0; k < n->n_attr; k++)
        if (n->attr[k].kind == HONE_ATTR_BODY && (n->attr[k].body < 0 || n->attr[k].body >= n->n_body))
            return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s': attribute '%s' names body %d of %d",
                             g->name, n->name, n->attr[k].name, n->attr[k].body, n->n_body);
    return HONE_OK;
}

/* ---- the whole ----------------------------------------------------------------------------------------- */
/* `ready[v]`: the var is a constant, a graph input, or produced by a node already passed. */
static hone_status verify_node(const hone_graph *g, const hone_node *n, uint8_t *ready) {
    if (!n->program) return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s' has no op", g->name, n->name);
    if (n->n_capture < 0 || n->n_capture > n->n_in)
        return hone_fail(HONE_BAD_INPUT, "graph '%s', node '%s': %d captures among %d inputs", g->name,
                         n->name, n->n_capture, n->n_in);
    for (int k = 0; k < n->n_in; k++) {
        if (n->in[k] < -1 || n->in[k] >= g->var.n) return wrong(g, n, "is no var", k, "");
        if (n->in[k] >= 0 && !ready[n->in[k]])
            return wrong(g, n, "is read before it is produced", k, name_of(g, n->in[k]));
        if (n->in[k] < 0 && k >= n->n_in - n->n_capture) return wrong(g, n, "is a capture and absent", k, "");
    }
    for (int k = 0; k < n->n_out; k++) {
        if (n->out[k] < -1 || n->out[k] >= g->var.n) return wrong(g, n, "is no var", k, "");
        if (n->out[k] >= 0 && ready[n->out[k]])
            return wrong(g, n, "is produced twice", k, name_of(g, n->out[k]));
        if (n->out[k] >= 0) ready[n->out[k]] = 1;
    }
    if (!n->part) HONE_TRY(verify_row(g, n));
    return verify_bodies(g, n);
}

hone_status hone_graph_verify(const hone_graph *g) {
    if (!g->arena || !g->dims || !g->name)
        return hone_fail(HONE_BAD_INPUT, "a graph without arena, dims or name");
    if (!g->outer ? g->n_formal != g->in.n : g->n_formal > g->in.n)
        return hone_fail(HONE_BAD_INPUT, "graph '%s': %d formal inputs, %d inputs", g->name, g->n_formal,
                         g->in.n);
    for (hone_vid v = 0; v < g->var.n; v++) HONE_TRY(verify_var(g, v));
    uint8_t *ready = hone_alloc((size_t)g->var.n + 1);
    if (!ready) return hone_fail(HONE_NO_MEMORY, "no memory to check graph '%s'", g->name);
    hone_status s = HONE_OK;
    for (int v = 0; v < g->var.n; v++) ready[v] = g->var.at[v].value != NULL;
    for (int k = 0; !s && k < g->in.n; k++) {
        hone_vid v = g->in.at[k];
        if (v < 0 || v >= g->var.n)
            s = hone_fail(HONE_BAD_INPUT, "graph '%s': input %d is no var", g->name, k);
        else if (ready[v]) s = wrong(g, NULL, "is an input twice, or input and constant", 0, name_of(g, v));
        else ready[v] = 1;
    }
    for (int k = 0; !s && k < g->node.n; k++)
        if (!g->node.at[k]->dead) s = verify_node(g, g->node.at[k], ready);
    for (int k = 0; !s && k < g->out.n; k++) {
        hone_vid v = g->out.at[k];
        if (v < 0 || v >= g->var.n)
            s = hone_fail(HONE_BAD_INPUT, "graph '%s': output %d is no var", g->name, k);
        else if (!ready[v]) s = wrong(g, NULL, "is an output that nothing produces", 0, name_of(g, v));
    }
    hone_free(ready);
    return s;
}
