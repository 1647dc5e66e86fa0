/* SPDX-License-Identifier: Apache-2.0
   abreast: products of one tensor with constant matrices become one product with the matrices side by side,
   where the device wants it (ir/target.h): queries, keys and values are one kernel instead of three, which
   has three times the tiles to fill the GPU with and reads its left factor once. What each was is a part of
   the result, a view (Split), and so it is done only where views are all that reads it, and these can be
   views of rows that lie further apart. A bias of each goes along. Products whose results meet element by
   element stay: there the second one's epilogue does that. */
#include <string.h>

#include "passes/passes.h"

enum { MOST_ABREAST = 8, MOST_ELEMENTS = 1 << 28 /* of weights that are laid side by side */ };
typedef struct {
    hone_node *product, *last; /* last: the Add of its bias, or the product itself */
    hone_vid weights, bias;    /* bias: -1: none */
} one;
typedef struct {
    hone_passing *pass;
    hone_graph *graph;
    bool *leaves; /* of a var: a graph output */
} seeing;

static bool is(const hone_node *n, const char *op) {
    return !n->dead && !n->n_part && !*n->program->domain && !strcmp(n->program->name, op);
}
static const hone_value *matrix_of(const hone_graph *g, hone_vid v) {
    const hone_value *w = v < 0 ? NULL : g->var.at[v].value;
    return w && w->tag == HONE_TAG_TENSOR && w->rank == 2 && w->data && w->dim[0] > 0 && w->dim[1] > 0 &&
                   (w->dtype == HONE_DTYPE_F32 || w->dtype == HONE_DTYPE_F16 || w->dtype == HONE_DTYPE_BF16)
               ? w
               : NULL;
}
static bool transposed(const hone_node *n) { return hone_attr_int(n->attr, n->n_attr, "transB", 0) != 0; }
static int64_t columns_of(const hone_graph *g, const one *p) {
    return g->var.at[p->weights].value->dim[transposed(p->product) ? 0 : 1];
}
/* A constant of f32, a number a column? */
static bool is_bias(const hone_graph *g, hone_vid v, int64_t columns) {
    const hone_value *c = v < 0 ? NULL : g->var.at[v].value;
    if (!c || c->tag != HONE_TAG_TENSOR || c->dtype != HONE_DTYPE_F32 || c->rank < 1 || !c->data)
        return false;
    for (int d = 0; d + 1 < c->rank; d++)
        if (c->dim[d] != 1) return false;
    return c->dim[c->rank - 1] == columns;
}
static hone_node *only_reader(const seeing *s, hone_vid v) {
    const hone_graph *g = s->graph;
    hone_node *found = NULL;
    if (g->var.at[v].uses != 1 || s->leaves[v]) return NULL;
    for (int k = g->var.at[v].producer + 1; k < g->node.n && !found; k++)
        for (int q = 0; q < g->node.at[k]->n_in; q++)
            if (g->node.at[k]->in[q] == v) found = g->node.at[k];
    return found;
}
/* Would this view of rows that lie further apart still be one? A Reshape only where it keeps the rows. */
static bool stays_view(const hone_graph *g, const hone_node *n, hone_vid v) {
    if (n->n_part || n->program->runs != HONE_RUNS_VIEW || n->n_out < 1 || n->out[0] < 0) return false;
    if (!strcmp(n->program->how, "transpose") || !strcmp(n->program->how, "slice") ||
        !strcmp(n->program->how, "split"))
        return true;
    if (strcmp(n->program->how, "reshape") != 0 || n->in[0] != v) return false;
    const hone_var *x = g->var.at + v, *y = g->var.at + n->out[0];
    if (x->rank < 2 || y->rank < 2) return false;
    bool same = y->rank >= x->rank; /* dim by dim, or as many rows in numbers */
    for (int d = 0; d + 1 < x->rank && same; d++)
        same = x->dim[d] == y->dim[d] && x->dim[d] != HONE_DIM_UNKNOWN;
    int64_t rows = 1, there = 1;
    for (int d = 0; d + 1 < x->rank && !same; d++) {
        if (!hone_dim_is_number(x->dim[d]) || x->dim[d] < 1 || rows > INT64_MAX / x->dim[d]) return false;
        rows *= x->dim[d];
    }
    for (int d = 0; d < y->rank && !same; d++) {
        if (there == rows) return true;
        if (!hone_dim_is_number(y->dim[d]) || y->dim[d] < 1 || there > rows / y->dim[d]) return false;
        there *= y->dim[d];
    }
    return same;
}
static bool only_views(const seeing *s, hone_vid v) {
    const hone_graph *g = s->graph;
    int met = 0;
    if (s->leaves[v]) return false;
    for (int k = g->var.at[v].producer + 1; k < g->node.n && met < g->var.at[v].uses; k++)
        for (int q = 0; q < g->node.at[k]->n_in; q++) {
            const hone_node *n = g->node.at[k];
            if (n->in[q] != v) continue;
            if (!stays_view(g, n, v) || s->leaves[n->out[0]]) return false;
            met++;
        }
    return met > 0;
}
/* Is node n such a product? */
static bool is_one(const seeing *s, hone_node *n, one *out) {
    const hone_graph *g = s->graph;
    const bool gemm = is(n, "Gemm");
    if ((!gemm && !is(n, "MatMul")) || n->n_in < 2 || n->in[0] < 0 || n->n_out != 1 || n->out[0] < 0)
        return false;
    const hone_value *w = matrix_of(g, n->in[1]);
    const hone_var *x = g->var.at + n->in[0], *y = g->var.at + n->out[0];
    if (!w || x->value || x->dtype != HONE_DTYPE_F32 || x->rank < 2 || y->rank != x->rank) return false;
    *out = (one){n, n, n->in[1], -1};
    const int64_t columns = columns_of(g, out);
    if (gemm) {
        const hone_attr *alpha = hone_attr_find(n->attr, n->n_attr, "alpha"),
                        *beta = hone_attr_find(n->attr, n->n_attr, "beta");
        if (hone_attr_int(n->attr, n->n_attr, "transA", 0) || (alpha && (!alpha->f || *alpha->f != 1)) ||
            (beta && (!beta->f || *beta->f != 1)))
            return false;
        if (n->n_in > 2 && n->in[2] >= 0) {
            if (!is_bias(g, n->in[2], columns)) return false;
            out->bias = n->in[2];
        }
    } else {
        hone_node *add = only_reader(s, n->out[0]);
        for (int q = 0; add && is(add, "Add") && q < 2; q++)
            if (add->in[q] == n->out[0] && is_bias(g, add->in[1 - q], columns) &&
                g->var.at[add->out[0]].rank == y->rank && add->unit == n->unit)
                out->last = add, out->bias = add->in[1 - q];
    }
    return only_views(s, out->last->out[0]);
}

/* ---- what takes their place ---------------------------------------------------------------------------- */
static hone_value *beside(const hone_graph *g, const one *p, int n) { /* NULL: no memory */
    const hone_value *w = g->var.at[p->weights].value;
    const bool rows = transposed(p->product); /* columns are rows of what is stored */
    const int64_t depth = w->dim[rows ? 1 : 0];
    const size_t item = (size_t)hone_dtypes[w->dtype].bytes;
    int64_t all = 0;
    hone_value *v = NULL;
    for (int k = 0; k < n; k++) all += columns_of(g, p + k);
    if (hone_value_tensor(w->dtype, rows ? (const int64_t[]){all, depth} : (const int64_t[]){depth, all}, 2,
                          &v))
        return NULL;
    char *to = v->data;
    for (int64_t r = 0; r < (rows ? 1 : depth); r++)
        for (int k = 0; k < n; k++) {
            const size_t bytes = item * (size_t)(columns_of(g, p + k) * (rows ? depth : 1));
            memcpy(to, (const char *)g->var.at[p[k].weights].value->data + (size_t)r * bytes, bytes);
            to += bytes;
        }
    return v;
}
static hone_value *biases(const hone_graph *g, const one *p, int n, int64_t all) {
    hone_value *v = NULL;
    if (hone_value_tensor(HONE_DTYPE_F32, &all, 1, &v)) return NULL;
    float *to = v->data;
    for (int k = 0; k < n; k++) {
        const int64_t columns = columns_of(g, p + k);
        const float *from = p[k].bias < 0 ? NULL : g->var.at[p[k].bias].value->data;
        for (int64_t c = 0; c < columns; c++) *to++ = from ? from[c] : -0.0f; /* which changes no number */
    }
    return v;
}
static hone_node *emit(seeing *s, const hone_node *like, const char *op, const hone_vid *in, int n_in,
                       const hone_vid *out, int n_out) {
    const hone_library *library;
    const hone_program *row = hone_library_builtin(&library) ? NULL : hone_library_find(library, "", op);
    hone_node *n = row ? hone_graph_node(s->graph, row, like->name, in, n_in, out, n_out) : NULL;
    if (!n) return NULL;
    s->graph->node.n--; /* it goes where the first product stood */
    n->unit = like->unit;
    return n;
}
static hone_vid like(hone_graph *g, hone_vid v, int64_t columns) { /* a var as v is, with so many columns */
    const hone_vid made = hone_graph_var(g, g->var.at[v].name);
    if (made < 0) return -1;
    const hone_var *from = g->var.at + v;
    hone_var *y = g->var.at + made;
    y->tag = from->tag, y->dtype = from->dtype, y->rank = from->rank;
    memcpy(y->dim, from->dim, sizeof y->dim);
    y->dim[y->rank - 1] = columns;
    return made;
}
/* The product, its bias, the parts: in `made`. 0: no memory. */
static int together(seeing *s, const one *p, int n, hone_node **made) {
    hone_graph *g = s->graph;
    const hone_node *first = p->product;
    const bool gemm = is(first, "Gemm");
    bool biased = false;
    int64_t all = 0, size[MOST_ABREAST];
    hone_vid part[MOST_ABREAST];
    for (int k = 0; k < n; k++)
        all += size[k] = columns_of(g, p + k), part[k] = p[k].last->out[0], biased |= p[k].bias >= 0;
    hone_value *w = beside(g, p, n), *b = biased ? biases(g, p, n, all) : NULL, *sizes = NULL;
    if (w && (b || !biased) && !hone_value_tensor(HONE_DTYPE_I64, (const int64_t[]){n}, 1, &sizes))
        memcpy(sizes->data, size, sizeof *size * (size_t)n);
    if (!sizes) {
        hone_value_drop(w), hone_value_drop(b);
        return 0;
    }
    const char *name = g->var.at[p->weights].name;
    const hone_vid wv = hone_graph_const(g, name, w), bv = b ? hone_graph_const(g, name, b) : -1,
                   sv = hone_graph_const(g, "sizes", sizes), y = like(g, p->product->out[0], all),
                   z = b && !gemm ? like(g, p->last->out[0], all) : y;
    if (wv < 0 || (b && bv < 0) || sv < 0 || y < 0 || z < 0) return 0;
    int count = 0;
    hone_node *node = emit(s, first, first->program->name, (const hone_vid[]){first->in[0], wv, bv},
                           gemm && b ? 3 : 2, &y, 1);
    if (!node || !hone_node_attrs(g, node, first->attr, first->n_attr)) return 0;
    made[count++] = node;
    if (b && !gemm) {
        if (!(node = emit(s, p->last, "Add", (const hone_vid[]){y, bv}, 2, &z, 1))) return 0;
        made[count++] = node;
    }
    const hone_attr axis = {
        .name = "axis", .kind = HONE_ATTR_INT, .n = 1, .i = (const int64_t[]){g->var.at[z].rank - 1}};
    if (!(node = emit(s, first, "Split", (const hone_vid[]){z, sv}, 2, part, n)) ||
        !hone_node_attrs(g, node, &axis, 1))
        return 0;
    made[count++] = node;
    return count;
}
static bool alike(const seeing *s, const one *a, const one *b) {
    const hone_graph *g = s->graph;
    const hone_value *w = g->var.at[a->weights].value, *v = g->var.at[b->weights].value;
    return a->product->program == b->product->program && a->product->in[0] == b->product->in[0] &&
           a->product->unit == b->product->unit && transposed(a->product) == transposed(b->product) &&
           w->dtype == v->dtype &&
           w->dim[transposed(a->product) ? 1 : 0] == v->dim[transposed(b->product) ? 1 : 0];
}
static hone_status abreast_graph(hone_passing *pass, hone_graph *g) {
    seeing s = {.pass = pass, .graph = g};
    hone_vec(hone_node *) done = {0};
    const int n_node = g->node.n;
    bool failed = !(s.leaves = hone_alloc((size_t)g->var.n + 1));
    for (int k = 0; k < g->out.n && !failed; k++) s.leaves[g->out.at[k]] = true;
    for (int k = 0; k < n_node && !failed; k++) {
        hone_node *n = g->node.at[k];
        const hone_target *t = pass->target + n->unit;
        const hone_dtype type = pass->precision && n->unit ? pass->precision : HONE_DTYPE_F32;
        one p[MOST_ABREAST];
        int found = 0;
        for (int b = 0; b < n->n_body && !failed; b++) failed = abreast_graph(pass, n->body[b]) != HONE_OK;
        if (!n->dead && hone_target_wants_abreast(t, type) && is_one(&s, n, p)) {
            found = 1;
            for (int q = k + 1; q < n_node && found < MOST_ABREAST; q++)
                if (g->node.at[q]->n_in > 1 && g->node.at[q]->in[0] == n->in[0] &&
                    is_one(&s, g->node.at[q], p + found) && alike(&s, p, p + found))
                    found++;
        }
        int64_t elements = 0;
        for (int q = 0; q < found; q++) elements += hone_value_count(g->var.at[p[q].weights].value);
        if (found > 1 && elements <= MOST_ELEMENTS - pass->spent) {
            hone_node *made[3];
            const int count = together(&s, p, found, made);
            failed = !count;
            for (int q = 0; q < count && !failed; q++) failed = !hone_push(&done, made[q]);
            for (int q = 0; q < found; q++) p[q].product->dead = p[q].last->dead = true;
            pass->spent += elements, pass->changed++;
        }
        if (!failed && !n->dead) failed = !hone_push(&done, n);
    }
    hone_free(s.leaves);
    if (failed) {
        hone_vec_free(&done);
        return hone_fail(HONE_NO_MEMORY, "no memory to lay products side by side");
    }
    hone_free(g->node.at);
    g->node.at = done.at, g->node.n = done.n, g->node.room = done.room;
    return HONE_OK;
}
hone_status hone_pass_abreast(hone_passing *p) {
    bool wanted = false;
    for (int k = 0; p->target && k < p->graph->node.n; k++)
        wanted |= p->target[p->graph->node.at[k]->unit].abreast != 0;
    if (!wanted) return HONE_OK;
    hone_graph_index(p->graph);
    HONE_TRY(abreast_graph(p, p->graph));
    return p->changed ? hone_pass_dead(p) : HONE_OK;
}
