/* SPDX-License-Identifier: Apache-2.0
   attention: queries times keys, scaled, masked, through Softmax, times values, become Attention. The scale
   may stand on the scores, the queries or the keys; heads may be a dim of their own or part of the batch;
   keys and values that were repeated for groups of query heads are taken as they were before. Where windows
   of an image are batches, each with a mask of its own, a window's heads become heads: the mask is then the
   same for all images. Transposes and Reshapes around it stay: they are views. */
#include <math.h>
#include <string.h>

#include "passes/match.h"

typedef struct {
    hone_matching *m;
    hone_graph *g;
    double scale;
    int rank;
} attending;

static const hone_var *var(const attending *a, hone_vid v) { return a->g->var.at + v; }

/* Multiplication by one number, made for us alone: its operand instead, and the number goes into the
   scale. */
static bool unscale(attending *a, hone_vid *v) {
    hone_node *n = hone_match_maker(a->m, *v);
    bool mul = hone_node_is(n, "Mul"), div = hone_node_is(n, "Div");
    double by;
    if (!(mul || div) || hone_match_uses(a->m, *v) != 1) return false;
    bool first = mul && a->g->var.at[n->in[0]].value != NULL;
    const hone_var *x = var(a, n->in[first]);
    if (!hone_match_number(a->g->var.at[n->in[!first]].value, &by) || x->rank != var(a, *v)->rank || by == 0)
        return false;
    a->scale *= mul ? by : 1 / by;
    *v = n->in[first];
    return true;
}
/* Through Transposes and scales to where it comes from; `order`: which dim of that is where. */
static void unturn(attending *a, hone_vid *v, int64_t *order) {
    for (int steps = 0; steps < 8; steps++) {
        const hone_node *n = hone_match_maker(a->m, *v);
        const hone_attr *perm = n ? hone_attr_find(n->attr, n->n_attr, "perm") : NULL;
        if (unscale(a, v)) continue;
        if (!hone_node_is(n, "Transpose") || !perm || perm->kind != HONE_ATTR_INTS || perm->n != a->rank)
            return;
        for (int d = 0; d < a->rank; d++)
            if (perm->i[order[d]] < 0 || perm->i[order[d]] >= a->rank) return;
        for (int d = 0; d < a->rank; d++) order[d] = perm->i[order[d]];
        *v = n->in[0];
    }
}
static hone_vid transposed(attending *a, hone_vid v, const int64_t *order) {
    bool same = true;
    for (int d = 0; d < a->rank; d++) same &= order[d] == d;
    const hone_attr perm = HONE_ATTR_L("perm", order, a->rank);
    return same ? v : hone_match_emit(a->m, "Transpose", HONE_MATCH_NEW, &v, 1, &perm, 1);
}
/* Heads that were repeated, [B, H, 1, S, D] → [B, H, G, S, D] → [B, H*G, S, D]: what stood before, still with
   its 1; -1: they were not. */
static hone_vid before_repeat(const attending *a, hone_vid v, hone_dim *groups) {
    const hone_node *merge = hone_match_maker(a->m, v),
                    *spread = merge && merge->n_in ? hone_match_maker(a->m, merge->in[0]) : NULL;
    if (!merge || merge->program->runs != HONE_RUNS_VIEW || strcmp(merge->program->how, "reshape") != 0)
        return -1;
    if (!spread || (!hone_node_is(spread, "Expand") && !hone_node_is(spread, "Tile"))) return -1;
    const hone_var *y = var(a, v), *wide = var(a, merge->in[0]), *x = var(a, spread->in[0]);
    if (y->rank != 4 || wide->rank != 5 || x->rank != 5 || x->dim[2] != 1 ||
        !hone_dim_is_number(wide->dim[2]))
        return -1;
    for (int d = 0; d < 5; d++)
        if (d != 2 && (x->dim[d] != wide->dim[d] || x->dim[d] == HONE_DIM_UNKNOWN)) return -1;
    if (y->dim[0] != wide->dim[0] || y->dim[2] != wide->dim[3] || y->dim[3] != wide->dim[4]) return -1;
    *groups = wide->dim[2];
    return spread->in[0];
}
static hone_vid with_axis(attending *a, const char *op, hone_vid v, int64_t axis, hone_vid out) {
    hone_vid axes = hone_match_ints(a->m, "axes", &axis, 1);
    return hone_match_emit(a->m, op, out, (const hone_vid[]){v, axes}, 2, NULL, 0);
}
/* Nothing is broadcast that Attention would not: equal batches, keys as many as values, and as many heads, or
   one. */
static bool fits(const attending *a, hone_vid q, hone_vid scores, hone_vid v, hone_vid mask) {
    const hone_var *x = var(a, q), *s = var(a, scores), *z = var(a, v);
    int r = a->rank;
    for (int d = 0; d < r; d++)
        if (x->dim[d] == HONE_DIM_UNKNOWN || s->dim[d] == HONE_DIM_UNKNOWN || z->dim[d] == HONE_DIM_UNKNOWN)
            return false;
    for (int d = 0; d < r - 1; d++)
        if (x->dim[d] != s->dim[d]) return false;
    for (int d = 0; d < r - 2; d++)
        if (z->dim[d] != x->dim[d]) return false;
    if (z->dim[r - 2] != s->dim[r - 1]) return false;
    if (mask < 0) return true;
    const hone_var *w = var(a, mask);
    if (w->rank < 1 || w->rank > r || w->dtype != x->dtype) return false;
    return w->dim[w->rank - 1] == s->dim[r - 1]; /* a shorter mask would hide the rest */
}
/* Where(h, scores, -3.4e38): a mask to add, 0 and -inf. What it hides must hide for sure, and leave something
   in every row. */
static hone_vid hiding(attending *a, const hone_value *seen, const hone_value *instead) {
    double low;
    if (!hone_match_number(instead, &low) || !(low <= -1e30) || seen->dtype != HONE_DTYPE_BOOL ||
        seen->rank < 1)
        return -1;
    const int64_t n = hone_value_count(seen), row = seen->dim[seen->rank - 1];
    const uint8_t *from = seen->data;
    hone_value *mask = NULL;
    if (hone_value_tensor(HONE_DTYPE_F32, seen->dim, seen->rank, &mask))
        return hone_match_constant(a->m, "", NULL);
    bool some = true;
    for (int64_t r = 0; r < n && some; r += row) {
        some = false;
        for (int64_t k = r; k < r + row; k++)
            ((float *)mask->data)[k] = from[k] ? 0 : -INFINITY, some |= from[k];
    }
    if (!some) hone_value_drop(mask);
    return some ? hone_match_constant(a->m, "mask", mask) : -1;
}
/* The masks of heads and of windows, both constant, in one: [1, windows * heads, queries, keys]. wide: the
   scores as [images, windows, heads, queries, keys]. -1: they are not such masks. */
static hone_vid of_windows(attending *a, const hone_value *heads, const hone_value *windows,
                           const hone_var *wide) {
    const hone_dim *d = wide->dim;
    int64_t step[2][4], dim[4] = {1}; /* of each mask: windows, heads, queries, keys */
    const hone_value *const mask[2] = {heads, windows};
    hone_value *all = NULL;
    if (wide->rank != 5 || wide->dtype != HONE_DTYPE_F32) return -1;
    for (int k = 1; k < 5; k++)
        if (!hone_dim_is_number(d[k])) return -1;
    for (int q = 0; q < 2; q++) {
        int64_t inner = 1;
        if (mask[q]->rank > 4 + q || mask[q]->dtype != HONE_DTYPE_F32) return -1;
        for (int k = 4; k > 0; k--) { /* the first mask has no dim of windows */
            const int at = mask[q]->rank - 5 + k;
            const bool is = at >= 0 && (q || k > 1);
            const int64_t n = is ? mask[q]->dim[at] : 1;
            if (n != 1 && n != d[k]) return -1;
            step[q][k - 1] = n == 1 ? 0 : inner, inner *= n;
        }
        if (hone_value_count(mask[q]) != inner) return -1;
    }
    if (hone_value_count(heads) <= 0 || hone_value_count(windows) <= 0) return -1;
    dim[1] = d[1] * d[2], dim[2] = d[3], dim[3] = d[4];
    if (!hone_match_spend(a->m, dim[1] * dim[2] * dim[3])) return -1;
    if (hone_value_tensor(HONE_DTYPE_F32, dim, 4, &all)) return hone_match_constant(a->m, "", NULL);
    float *to = all->data;
    for (int64_t k = 0; k < hone_value_count(all); k++) {
        const int64_t index[4] = {k / d[4] / d[3] / d[2], k / d[4] / d[3] % d[2], k / d[4] % d[3], k % d[4]};
        float sum = 0;
        for (int q = 0; q < 2; q++) {
            int64_t at = 0;
            for (int i = 0; i < 4; i++) at += index[i] * step[q][i];
            sum += ((const float *)mask[q]->data)[at];
        }
        to[k] = sum;
    }
    return hone_match_constant(a->m, "mask", all);
}
/* [images * windows, heads, tokens, size] with the windows' heads as heads, or back: heads of them */
static hone_vid with_heads(attending *a, hone_vid v, int64_t heads, int64_t tokens, int64_t size,
                           hone_vid out) {
    const int64_t shape[4] = {-1, heads, tokens, size};
    return hone_match_emit(a->m, "Reshape", out,
                           (const hone_vid[]){v, hone_match_ints(a->m, "shape", shape, 4)}, 2, NULL, 0);
}
static bool attention(hone_matching *m) {
    attending a = {.m = m, .g = hone_match_graph(m), .scale = 1};
    hone_vid q = hone_match_var(m, "q"), k = hone_match_var(m, "k"), v = hone_match_var(m, "v"),
             mask = hone_match_var(m, "m");
    hone_vid scores = hone_match_var(m, "s"), y = hone_match_root(m)->out[0];
    const hone_node *softmax = hone_match_node(m, "p");
    double by;
    int r = a.rank = var(&a, q)->rank;
    if ((r != 3 && r != 4) || var(&a, k)->rank != r || var(&a, v)->rank != r || var(&a, scores)->rank != r)
        return false;
    int64_t axis = hone_attr_int(softmax->attr, softmax->n_attr, "axis", -1), order[4] = {0};
    if ((axis != -1 && axis != r - 1) || !fits(&a, q, scores, v, mask)) return false;
    if (var(&a, k)->dim[0] != var(&a, q)->dim[0] || (r == 4 && var(&a, k)->dim[1] != var(&a, q)->dim[1]))
        return false;
    if (hone_match_value(m, "h")) {
        if (var(&a, q)->dtype != HONE_DTYPE_F32 ||
            (mask = hiding(&a, hone_match_value(m, "h"), hone_match_value(m, "l"))) < 0)
            return false;
        if (!fits(&a, q, scores, v, mask)) return false;
    }
    if (hone_match_value(m, "c")) {
        if (!hone_match_number(hone_match_value(m, "c"), &by)) return false;
        a.scale *= by;
    }
    if (hone_match_value(m, "n")) {
        if (!hone_match_number(hone_match_value(m, "n"), &by)) return false;
        a.scale /= by;
    }
    const hone_value *of_window = hone_match_value(m, "x");
    int64_t windows = 0, heads = 0, queries = 0, keys = 0, size = 0, of_value = 0;
    if (of_window) {
        const hone_var *const all[] = {var(&a, q), var(&a, scores), var(&a, v)};
        for (int d = 1; d < 4; d++)
            for (int z = 0; z < 3; z++)
                if (r != 4 || !hone_dim_is_number(all[z]->dim[d])) return false;
        if (!hone_match_value(m, "m") || var(&a, hone_match_var(m, "p"))->rank != 4 ||
            var(&a, hone_match_var(m, "p"))->dim[1] != all[1]->dim[1] ||
            (mask = of_windows(&a, hone_match_value(m, "m"), of_window, var(&a, hone_match_var(m, "e")))) < 0)
            return false;
        windows = var(&a, hone_match_var(m, "e"))->dim[1], heads = var(&a, scores)->dim[1];
        queries = var(&a, scores)->dim[2], keys = var(&a, scores)->dim[3];
        size = var(&a, q)->dim[3], of_value = var(&a, v)->dim[3];
    }
    while (unscale(&a, &q)) continue;
    /* keys stand with their last two dims transposed */
    for (int d = 0; d < r; d++) order[d] = d < r - 2 ? d : 2 * r - 3 - d;
    unturn(&a, &k, order);
    if (!(a.scale > 0)) return false; /* 0 would ask for the usual scale */
    hone_dim of_keys = 0, of_values = 0;
    k = transposed(&a, k, order);
    hone_vid few_k = r == 4 && k >= 0 ? before_repeat(&a, k, &of_keys) : -1,
             few_v = r == 4 ? before_repeat(&a, v, &of_values) : -1;
    if (few_k >= 0 && few_v >= 0 && of_keys == of_values)
        k = with_axis(&a, "Squeeze", few_k, 2, HONE_MATCH_NEW),
        v = with_axis(&a, "Squeeze", few_v, 2, HONE_MATCH_NEW);
    if (of_window) {
        q = with_heads(&a, q, windows * heads, queries, size, HONE_MATCH_NEW),
        k = with_heads(&a, k, windows * heads, keys, size, HONE_MATCH_NEW);
        v = with_heads(&a, v, windows * heads, keys, of_value, HONE_MATCH_NEW);
    }
    if (r == 3) {
        q = with_axis(&a, "Unsqueeze", q, 0, HONE_MATCH_NEW),
        k = with_axis(&a, "Unsqueeze", k, 0, HONE_MATCH_NEW);
        v = with_axis(&a, "Unsqueeze", v, 0, HONE_MATCH_NEW);
    }
    const hone_attr attr = HONE_ATTR_F("scale", a.scale);
    hone_vid done = hone_match_emit(m, "Attention", r == 3 || of_window ? HONE_MATCH_NEW : y,
                                    (const hone_vid[]){q, k, v, mask}, 4, &attr, 1);
    if (r == 3) done = with_axis(&a, "Squeeze", done, 0, y);
    if (of_window) done = with_heads(&a, done, heads, queries, of_value, y);
    return done >= 0;
}

#define SCORES "s={MatMul(q, k)|Mul(MatMul(q, k), $c)|Div(MatMul(q, k), $n)}"
static const hone_rule rules[] = {
    {"MatMul(p=Softmax(Reshape(Add(e=Reshape(Add(" SCORES ", $m), $b), $x), $z)), v)", attention},
    /* torch's for rows that are masked throughout, which Attention makes 0 itself */
    {"MatMul(Where(IsNaN(p=Softmax(Add(" SCORES ", m))), 0, p), v)", attention},
    {"MatMul(p=Softmax(Add(" SCORES ", m)), v)", attention},
    {"MatMul(p=Softmax(Where($h, " SCORES ", $l)), v)", attention},
    {"MatMul(p=Softmax(" SCORES "), v)", attention},
};
hone_status hone_pass_attention(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
