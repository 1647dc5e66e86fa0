/* SPDX-License-Identifier: Apache-2.0
   transposes: a Transpose that leaves rows whole goes to the other side of a product with a constant matrix,
   where it meets another one or a view; and a chain of Reshapes and Transposes becomes the shortest one that
   does the same. So a transformer that was written with its tokens outermost, or with batch and heads as one
   dim, walks its tensors as they lie, as one that was not. Shapes must be known, but for one symbol, an open
   batch, and numbers times it. */
#include <string.h>

#include "passes/match.h"

static bool is_reshape(const hone_node *n) {
    return n && n->program->runs == HONE_RUNS_VIEW && !strcmp(n->program->how, "reshape");
}
static bool is_transpose(const hone_node *n) { return n && hone_node_is(n, "Transpose"); }
static bool order_of(const hone_node *n, int rank, int64_t *order) {
    const hone_attr *perm = hone_attr_find(n->attr, n->n_attr, "perm");
    if (rank < 1 || (perm && (perm->kind != HONE_ATTR_INTS || perm->n != rank))) return false;
    for (int d = 0; d < rank; d++) {
        order[d] = perm ? perm->i[d] : rank - 1 - d;
        if (order[d] < 0 || order[d] >= rank) return false;
    }
    return true;
}

/* ---- chains -------------------------------------------------------------------------------------------- */
/* A symbol counts as a prime that is no dim of a model: a multiple of it is that many times the symbol. */
enum { MOST_PIECES = 2 * HONE_MAX_RANK, LONGEST = 8, PRIME = 1000003 };
typedef struct {
    hone_matching *m;
    hone_dims *dims;
    hone_dim symbol; /* a number: there is none */
} sizing;
static bool size_of(const sizing *s, hone_dim d, int64_t *out) {
    if (hone_dim_is_number(d)) return *out = d, d >= 1 && d % PRIME;
    if (!hone_dim_is_symbolic(d) || hone_dim_is_number(s->symbol)) return false;
    if (d == s->symbol) return *out = PRIME, true;
    const int n = hone_dims_count(s->dims);
    int64_t *value = hone_alloc(sizeof *value * (size_t)n);
    if (!value) return hone_match_no_memory(s->m);
    for (int k = 0; k < n; k++) value[k] = HONE_DIM_UNKNOWN;
    value[s->symbol - HONE_DIM_BAND] = PRIME;
    hone_dims_eval(s->dims, value);
    *out = hone_dim_value(d, value);
    hone_free(value);
    return hone_dim_is_number(*out) && *out > 0 && *out % PRIME == 0 && *out / PRIME % PRIME &&
           hone_dim_mul(s->dims, s->symbol, *out / PRIME) == d;
}
typedef struct {
    int rank;
    int64_t dim[HONE_MAX_RANK];
} sizes;
static bool sizes_of(const sizing *s, const hone_var *v, sizes *out) {
    int64_t count;
    if (v->tag != HONE_TAG_TENSOR || v->rank < 1) return false;
    out->rank = v->rank;
    for (int d = 0; d < v->rank; d++)
        if (!size_of(s, v->dim[d], out->dim + d)) return false;
    return hone_count_of(out->dim, out->rank, &count);
}
/* a dim, or part of one: how long, and how many elements of the dense source lie between two of its places */
typedef struct {
    int64_t extent, step;
} piece;
typedef struct {
    piece at[MOST_PIECES];
    int n, first[HONE_MAX_RANK + 1], rank; /* dim d is pieces first[d] to first[d + 1], outermost first */
} pieces;
static void begin(pieces *p, const sizes *v) {
    int64_t step = 1;
    *p = (pieces){.rank = v->rank};
    for (int d = v->rank - 1; d >= 0; d--) p->at[d] = (piece){v->dim[d], step}, step *= v->dim[d];
    p->n = v->rank;
    for (int d = 0; d <= v->rank; d++) p->first[d] = d;
}
static void transpose(pieces *p, const int64_t *order) {
    const pieces was = *p;
    p->n = 0;
    for (int d = 0; d < was.rank; d++) {
        p->first[d] = p->n;
        for (int k = was.first[order[d]]; k < was.first[order[d] + 1]; k++) p->at[p->n++] = was.at[k];
    }
    p->first[p->rank] = p->n;
}
static bool shape(pieces *p, const sizes *v) {
    pieces out = {.rank = v->rank};
    int k = 0;
    for (int d = 0; d < v->rank; d++) {
        int64_t left = v->dim[d];
        out.first[d] = out.n;
        for (; left > 1; k++) {
            if (k == p->n || out.n == MOST_PIECES) return false;
            piece *a = p->at + k;
            if (left % a->extent == 0) {
                left /= a->extent;
                if (a->extent > 1) out.at[out.n++] = *a;
            } else if (a->extent % left == 0) { /* only its outer part */
                a->extent /= left;
                out.at[out.n++] = (piece){left, a->step * a->extent};
                break;
            } else return false;
        }
    }
    for (; k < p->n; k++)
        if (p->at[k].extent > 1) return false;
    out.first[v->rank] = out.n;
    *p = out;
    return true;
}
/* Pieces of a dim that follow on in the source are one. */
static void join(pieces *p) {
    pieces out = {.rank = p->rank};
    for (int d = 0; d < p->rank; d++) {
        out.first[d] = out.n;
        for (int k = p->first[d]; k < p->first[d + 1]; k++) {
            piece *last = out.n > out.first[d] ? out.at + out.n - 1 : NULL;
            if (p->at[k].extent == 1) continue;
            if (last && last->step == p->at[k].step * p->at[k].extent)
                *last = (piece){last->extent * p->at[k].extent, p->at[k].step};
            else out.at[out.n++] = p->at[k];
        }
    }
    out.first[p->rank] = out.n;
    *p = out;
}
static bool same_dims(const sizes *v, const int64_t *dim, int n) {
    bool same = v->rank == n;
    for (int d = 0; same && d < n; d++) same = v->dim[d] == dim[d];
    return same;
}
static int symbols_in(const int64_t *dim, int n) {
    int some = 0;
    for (int d = 0; d < n; d++) some += dim[d] % PRIME == 0;
    return some;
}
static hone_vid reshaped(hone_matching *m, hone_vid x, const int64_t *dim, int n, hone_vid to) {
    int64_t with[HONE_MAX_RANK];
    for (int d = 0; d < n; d++) with[d] = dim[d] % PRIME ? dim[d] : -1;
    hone_vid shape = hone_match_ints(m, "shape", with, n);
    return hone_match_emit(m, "Reshape", to, (const hone_vid[]){x, shape}, 2, NULL, 0);
}
static hone_dim symbol_of(const hone_graph *g, const hone_var *v) { /* the first one that stands alone */
    for (int d = 0; d < v->rank; d++)
        if (hone_dim_is_symbolic(v->dim[d]) &&
            hone_dim_handle_op(g->dims, (int)(v->dim[d] - HONE_DIM_BAND)) == HONE_DIM_SYMBOL)
            return v->dim[d];
    return 0;
}
/* What the root's chain does, by Reshape, Transpose, Reshape, where that is shorter. */
static bool chain(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_node *root = hone_match_root(m), *step[LONGEST], *n = root;
    const hone_vid y = root->out[0];
    int steps = 0, transposes = 0;
    hone_vid x = y;
    sizing s = {m, g->dims, symbol_of(g, g->var.at + y)};
    for (int k = 0; n && k < LONGEST && hone_dim_is_number(s.symbol) && (is_reshape(n) || is_transpose(n));
         k++)
        s.symbol = symbol_of(g, g->var.at + n->in[0]), n = hone_match_maker(m, n->in[0]);
    n = root;
    sizes at[LONGEST + 1]; /* what a step makes; behind the last one, what they begin with */
    for (; n && steps < LONGEST && (is_reshape(n) || is_transpose(n)) &&
           (steps || sizes_of(&s, g->var.at + y, at)) && sizes_of(&s, g->var.at + n->in[0], at + steps + 1);
         n = hone_match_maker(m, x))
        step[steps++] = n, x = n->in[0], transposes += is_transpose(n);
    if (steps < 3 || !transposes) return false;
    pieces p;
    begin(&p, at + steps);
    for (int k = steps - 1; k >= 0; k--) {
        int64_t order[HONE_MAX_RANK];
        if (is_reshape(step[k])) {
            if (!shape(&p, at + k)) return false;
        } else if (!order_of(step[k], p.rank, order)) return false;
        else transpose(&p, order);
    }
    join(&p);
    /* pieces as they lie in the source, and where the target has each */
    const sizes *to = at;
    int64_t dim[MOST_PIECES], order[MOST_PIECES];
    bool whole = true, still = true; /* each dim of the target is a piece; nothing is transposed */
    for (int d = 0; d < p.rank; d++) whole &= p.first[d + 1] == p.first[d] + 1;
    for (int k = 0; k < p.n; k++) {
        int place = 0;
        for (int q = 0; q < p.n; q++) place += p.at[q].step > p.at[k].step;
        dim[place] = p.at[k].extent, order[k] = place, still &= place == k;
    }
    if (p.n > HONE_MAX_RANK || p.n < 1) return false;
    const bool before = !same_dims(at + steps, dim, p.n), after = !whole;
    const int many = still ? 1 : before + 1 + after;
    if (many >= steps || symbols_in(dim, p.n) > 1 || symbols_in(to->dim, to->rank) > 1) return false;
    if (still) return reshaped(m, x, to->dim, to->rank, y) >= 0;
    if (before) x = reshaped(m, x, dim, p.n, HONE_MATCH_NEW);
    const hone_attr perm = HONE_ATTR_L("perm", order, p.n);
    x = hone_match_emit(m, "Transpose", after ? HONE_MATCH_NEW : y, &x, 1, &perm, 1);
    return after ? reshaped(m, x, to->dim, to->rank, y) >= 0 : x >= 0;
}

/* ---- products ------------------------------------------------------------------------------------------ */
/* x times a matrix, and a number a column added, from new nodes. */
static hone_vid product(hone_matching *m, hone_vid x, hone_vid w, hone_vid b, hone_vid to) {
    x = hone_match_emit(m, "MatMul", b < 0 ? to : HONE_MATCH_NEW, (const hone_vid[]){x, w}, 2, NULL, 0);
    return b < 0 ? x : hone_match_emit(m, "Add", to, (const hone_vid[]){x, b}, 2, NULL, 0);
}
static bool by_columns(const hone_graph *g, hone_vid w, hone_vid b) {
    return g->var.at[w].rank == 2 && (b < 0 || g->var.at[b].rank == 1);
}
/* Rows that were transposed, multiplied, and looked at in another way: multiplied as they are. Where what
   comes out is read as it is, a Transpose behind the product would cost what the one before it does. */
static bool turn_later(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    const hone_vid x = hone_match_var(m, "x"), w = hone_match_var(m, "w"), b = hone_match_var(m, "b"),
                   y = hone_match_root(m)->out[0];
    const hone_node *t = hone_match_node(m, "t"), *maker = hone_match_maker(m, x);
    const int rank = g->var.at[x].rank;
    int64_t order[HONE_MAX_RANK];
    if (is_reshape(maker) || is_transpose(maker) || !by_columns(g, w, b) || !order_of(t, rank, order) ||
        order[rank - 1] != rank - 1)
        return false;
    bool viewed = false;
    for (int k = 0; k < g->node.n; k++)
        for (int q = 0; q < g->node.at[k]->n_in; q++) {
            if (g->node.at[k]->in[q] != y) continue;
            if (!is_reshape(g->node.at[k]) && !is_transpose(g->node.at[k])) return false;
            viewed = true;
        }
    for (int k = 0; k < g->out.n; k++) viewed &= g->out.at[k] != y;
    if (!viewed) return false;
    const hone_vid sums = product(m, x, w, b, HONE_MATCH_NEW);
    const hone_attr perm = HONE_ATTR_L("perm", order, rank);
    return hone_match_emit(m, "Transpose", y, &sums, 1, &perm, 1) >= 0;
}
/* The other way round: a product that is transposed, of rows that are a view anyway. */
static bool turn_sooner(hone_matching *m) {
    hone_graph *g = hone_match_graph(m);
    hone_vid x = hone_match_var(m, "x"), w = hone_match_var(m, "w"), b = hone_match_var(m, "b"),
             y = hone_match_root(m)->out[0];
    const hone_node *maker = hone_match_maker(m, x);
    const int rank = g->var.at[x].rank;
    int64_t order[HONE_MAX_RANK];
    if (!(is_reshape(maker) || is_transpose(maker)) || !by_columns(g, w, b) ||
        !order_of(hone_match_root(m), rank, order) || order[rank - 1] != rank - 1)
        return false;
    const hone_attr perm = HONE_ATTR_L("perm", order, rank);
    x = hone_match_emit(m, "Transpose", HONE_MATCH_NEW, &x, 1, &perm, 1);
    return product(m, x, w, b, y) >= 0;
}

static const hone_rule rules[] = {
    {"{Transpose(Add(MatMul(x, $w), $b))|Transpose(MatMul(x, $w))}", turn_sooner},
    {"{Add(MatMul(t=Transpose(x), $w), $b)|MatMul(t=Transpose(x), $w)}", turn_later},
    {"{Transpose(x)|Reshape(x, s)|Squeeze(x, s)|Squeeze(x)|Unsqueeze(x, s)|Flatten(x)}", chain},
};
hone_status hone_pass_transposes(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
