/* SPDX-License-Identifier: Apache-2.0
   rotary: positions as rotations, written out, become RotaryEmbedding. Exporters turn all of x at once, x·cos
   + turned·sin, with tables as wide as x that hold every number twice; or one half of each pair after the
   other, with tables as wide as that. The pairs are the two halves of the last dim, or neighbours. The op's
   tables are of the second kind, with a batch: so a first kind must be seen to hold every number twice, and
   is then looked at in part. Slice, Squeeze and Expand in front of the op are views. Heads stand before the
   sequence: [B, H, S, D]. */
#include <string.h>

#include "passes/match.h"

typedef struct {
    hone_matching *m;
    hone_graph *g;
    hone_dim x[4]; /* of what is turned; vars themselves move when others are made */
    int64_t half;
    bool neighbours; /* pairs are elements 2k and 2k + 1, not k and half + k */
} turning;

static const hone_var *var(const turning *t, hone_vid v) { return t->g->var.at + v; }
static hone_dim last_dim(const hone_var *v) { return v->rank > 0 ? v->dim[v->rank - 1] : HONE_DIM_UNKNOWN; }
static bool is_last(int64_t axis, int rank) { return axis == -1 || axis == rank - 1; }
static bool along_last(const hone_node *n, int rank) {
    return is_last(hone_attr_int(n->attr, n->n_attr, "axis", 0), rank);
}
static bool is_any(const hone_node *n, const char *const *ops, int count) {
    for (int k = 0; k < count; k++)
        if (hone_node_is(n, ops[k])) return true;
    return false;
}
#define IS_ANY(n, ...) \
    is_any(n, (const char *const[]){__VA_ARGS__}, (int)(sizeof(const char *[]){__VA_ARGS__} / sizeof(char *)))

/* ---- the two of a pair --------------------------------------------------------------------------------- */
/* `part` is every first (0) or second (1) of x's pairs; -1: of nothing. */
static hone_vid source_of(const turning *t, hone_vid part, int which, bool *neighbours) {
    const hone_node *n = hone_match_maker(t->m, part);
    const hone_var *x = n && n->n_in && n->in[0] >= 0 ? var(t, n->in[0]) : NULL;
    if (!x || !hone_dim_is_number(last_dim(x)) || !hone_dim_is_number(last_dim(var(t, part)))) return -1;
    if (last_dim(x) < 2 || last_dim(var(t, part)) != last_dim(x) / 2 || last_dim(x) % 2) return -1;
    if (hone_node_is(n, "Split")) {
        *neighbours = false;
        return along_last(n, x->rank) && n->n_out == 2 && n->out[which] == part ? n->in[0] : -1;
    }
    double start, axis, step = 1;
    if (!hone_node_is(n, "Slice") || n->n_in < 4) return -1;
    for (int k = 1; k < n->n_in; k++)
        if (n->in[k] >= 0 && !var(t, n->in[k])->value) return -1;
    if (n->in[3] < 0 || !hone_match_number(var(t, n->in[1])->value, &start) ||
        !hone_match_number(var(t, n->in[3])->value, &axis))
        return -1;
    if (n->n_in > 4 && n->in[4] >= 0 && !hone_match_number(var(t, n->in[4])->value, &step)) return -1;
    if (start < 0) start += (double)last_dim(x);
    *neighbours = step == 2; /* where it ends, the size says */
    if (!is_last((int64_t)axis, x->rank) || (step != 1 && step != 2)) return -1;
    return start == (step == 2 ? which : which * (double)(last_dim(x) / 2)) ? n->in[0] : -1;
}
/* Both are of one x of four dims, the same way. */
static hone_vid find_x(turning *t, hone_vid first, hone_vid second) {
    bool a = false, b = false;
    hone_vid x = source_of(t, first, 0, &a);
    if (x < 0 || source_of(t, second, 1, &b) != x || a != b || a != t->neighbours || var(t, x)->rank != 4)
        return -1;
    memcpy(t->x, var(t, x)->dim, sizeof t->x);
    for (int d = 0; d < 4; d++)
        if (t->x[d] == HONE_DIM_UNKNOWN) return -1;
    t->half = t->x[3] / 2;
    return x;
}

/* ---- tables that hold every number twice --------------------------------------------------------------- */
static bool numbers_twice(const turning *t, const hone_value *v) {
    size_t bytes = hone_dtypes[v->dtype].bytes, half = (size_t)t->half;
    int64_t n = hone_value_count(v);
    if (v->bytes != (size_t)n * bytes || n % (2 * t->half) || !hone_match_spend(t->m, n)) return false;
    for (int64_t row = 0; row < n / (2 * t->half); row++) {
        const char *at = (const char *)v->data + (size_t)row * 2 * half * bytes;
        if (!t->neighbours && memcmp(at, at + half * bytes, half * bytes)) return false;
        for (size_t k = 0; t->neighbours && k < half; k++)
            if (memcmp(at + 2 * k * bytes, at + (2 * k + 1) * bytes, bytes)) return false;
    }
    return true;
}
/* [.., half] → [.., half, 2] by repeating → [.., 2 half] */
static bool stacked_twice(const turning *t, const hone_node *n) {
    const hone_node *wide = hone_match_maker(t->m, n->in[0]);
    const hone_var *w = var(t, n->in[0]);
    if (!t->neighbours || !wide || w->rank < 2 || last_dim(w) != 2 || w->dim[w->rank - 2] != t->half)
        return false;
    if (hone_node_is(wide, "Concat"))
        return wide->n_in == 2 && wide->in[0] == wide->in[1] && along_last(wide, w->rank);
    return IS_ANY(wide, "Expand", "Tile") && last_dim(var(t, wide->in[0])) == 1;
}
static bool holds_twice(const turning *t, hone_vid v) {
    for (int steps = 0; steps < 16; steps++) {
        const hone_var *at = var(t, v);
        const hone_node *n = hone_match_maker(t->m, v);
        if (last_dim(at) != 2 * t->half) return false;
        if (at->value) return at->value->tag == HONE_TAG_TENSOR && numbers_twice(t, at->value);
        if (!n || !n->n_in || n->in[0] < 0) return false;
        const hone_var *from = var(t, n->in[0]);
        const hone_attr *perm = hone_attr_find(n->attr, n->n_attr, "perm");
        if (IS_ANY(n, "Cos", "Sin", "Cast", "Neg")) v = n->in[0]; /* each number by itself */
        else if (IS_ANY(n, "Mul", "Add", "Div") && n->in[1] >= 0) {
            double by;
            bool second = hone_match_number(var(t, n->in[0])->value, &by);
            if (!second && !hone_match_number(var(t, n->in[1])->value, &by)) return false;
            v = n->in[second];
        } else if (IS_ANY(n, "Reshape", "Unsqueeze", "Squeeze")) {
            if (stacked_twice(t, n)) return true;
            v = n->in[0];                                      /* rows stay rows, or the size will tell */
        } else if (IS_ANY(n, "Slice", "Expand")) v = n->in[0]; /* along a row all or, backwards, all */
        else if (hone_node_is(n, "Transpose") && perm && perm->n == from->rank && perm->n &&
                 perm->i[perm->n - 1] == perm->n - 1)
            v = n->in[0];
        else if (hone_node_is(n, "Gather") && from->rank > 1 && !along_last(n, from->rank)) v = n->in[0];
        else
            return hone_node_is(n, "Concat") && !t->neighbours && n->n_in == 2 && n->in[1] == n->in[0] &&
                   along_last(n, at->rank);
    }
    return false;
}

/* ---- tables as the op wants them ----------------------------------------------------------------------- */
static hone_vid emit(turning *t, const char *op, hone_vid a, hone_vid b) {
    return hone_match_emit(t->m, op, HONE_MATCH_NEW, (const hone_vid[]){a, b}, 2, NULL, 0);
}
static hone_vid ints(turning *t, const char *name, int64_t a) { return hone_match_ints(t->m, name, &a, 1); }
/* Every first of a pair. */
static hone_vid one_of_two(turning *t, hone_vid v) {
    hone_vid from = ints(t, "starts", 0), to = ints(t, "ends", t->neighbours ? INT64_MAX : t->half),
             axis = ints(t, "axes", -1);
    hone_vid step = t->neighbours ? ints(t, "steps", 2) : -1;
    return hone_match_emit(t->m, "Slice", HONE_MATCH_NEW, (const hone_vid[]){v, from, to, axis, step}, 5,
                           NULL, 0);
}
/* [B, 1, 1] as a tensor. A symbol's size is read from an input of the graph, if one has it: so it is one node
   for all. */
static hone_vid batch_shape(turning *t, hone_vid x) {
    hone_dim b = t->x[0];
    int64_t at = 0;
    if (hone_dim_is_number(b)) return hone_match_ints(t->m, "shape", (const int64_t[]){b, 1, 1}, 3);
    for (int k = t->g->in.n - 1; k >= 0; k--)
        for (int d = 0; d < var(t, t->g->in.at[k])->rank; d++)
            if (var(t, t->g->in.at[k])->dim[d] == b) x = t->g->in.at[k], at = d;
    const hone_attr part[] = {HONE_ATTR_I("start", at), HONE_ATTR_I("end", at + 1)},
                    axis = HONE_ATTR_I("axis", 0);
    hone_vid size = hone_match_emit(t->m, "Shape", HONE_MATCH_NEW, &x, 1, part, 2);
    hone_vid ones = hone_match_ints(t->m, "ones", (const int64_t[]){1, 1}, 2);
    return hone_match_emit(t->m, "Concat", HONE_MATCH_NEW, (const hone_vid[]){size, ones}, 2, &axis, 1);
}
/* It goes with x by numpy's rule, the same for all heads, and along the sequence and the last dim as long as
   x. */
static bool fits(const turning *t, hone_vid v, int64_t wide) {
    const hone_var *c = var(t, v);
    int r = c->rank;
    if (r < 2 || r > 4 || c->dim[r - 1] != wide || c->dim[r - 2] != t->x[2] || (r > 2 && c->dim[r - 3] != 1))
        return false;
    return r < 4 || c->dim[0] == 1 || c->dim[0] == t->x[0];
}
/* [B, S, half] */
static hone_vid table(turning *t, hone_vid v, hone_vid x, hone_vid *shape) {
    hone_dim batch = t->x[0];
    if (last_dim(var(t, v)) != t->half) v = one_of_two(t, v);
    if (v >= 0 && var(t, v)->rank == 4) v = emit(t, "Squeeze", v, ints(t, "axes", 1));
    if (v >= 0 && var(t, v)->rank == 2 && batch == 1) v = emit(t, "Unsqueeze", v, ints(t, "axes", 0));
    if (v < 0 || (var(t, v)->rank == 3 && var(t, v)->dim[0] == batch)) return v;
    if (*shape < 0) *shape = batch_shape(t, x);
    return *shape < 0 ? -1 : emit(t, "Expand", v, *shape);
}
static bool put(turning *t, hone_vid x, hone_vid cosine, hone_vid sine) {
    hone_vid shape = -1, c = table(t, cosine, x, &shape), s = c < 0 ? -1 : table(t, sine, x, &shape);
    if (c < 0 || s < 0) return false;
    const hone_attr attr = HONE_ATTR_I("interleaved", 1);
    return hone_match_emit(t->m, "RotaryEmbedding", hone_match_root(t->m)->out[0],
                           (const hone_vid[]){x, c, s}, 3, &attr, t->neighbours) >= 0;
}

/* ---- the spellings ------------------------------------------------------------------------------------- */
/* The two side by side are y, which is as x: along the last dim or, neighbours, as a last dim of 2 that is
   then joined with it. */
static bool is_joined(const turning *t, hone_vid both, hone_vid y) {
    const hone_var *w = var(t, both), *z = var(t, y);
    if (!along_last(hone_match_maker(t->m, both), w->rank) || z->rank != 4 ||
        memcmp(z->dim, t->x, sizeof t->x) != 0)
        return false;
    return !t->neighbours || (w->rank == 5 && !memcmp(w->dim, t->x, 3 * sizeof *t->x) &&
                              w->dim[3] == t->half && w->dim[4] == 2);
}
/* x·cos + turned·sin */
static bool at_once(hone_matching *m, bool neighbours) {
    turning t = {.m = m, .g = hone_match_graph(m), .neighbours = neighbours};
    hone_vid x = find_x(&t, hone_match_var(m, "a"), hone_match_var(m, "b")), w = hone_match_var(m, "w");
    hone_vid c = hone_match_var(m, "c"), s = hone_match_var(m, "s"), by = hone_match_var(m, "x");
    if (x < 0 || (by != x && c != x) || hone_match_uses(m, w) != 1 ||
        !is_joined(&t, w, neighbours ? hone_match_var(m, "r") : w))
        return false;
    if (by != x) c = by; /* the product in the other order */
    return fits(&t, c, 2 * t.half) && fits(&t, s, 2 * t.half) && holds_twice(&t, c) && holds_twice(&t, s) &&
           put(&t, x, c, s);
}
/* a·cos - b·sin beside b·cos + a·sin */
static bool apart(hone_matching *m, bool neighbours) {
    turning t = {.m = m, .g = hone_match_graph(m), .neighbours = neighbours};
    hone_vid a = hone_match_var(m, "a"), b = hone_match_var(m, "b"), c = hone_match_var(m, "c"),
             s = hone_match_var(m, "s");
    hone_vid x = find_x(&t, a, b);
    if (x < 0) { /* the products in the other order: each name has the other one's var */
        x = find_x(&t, c, s);
        c = a, s = b;
    }
    if (x < 0 || !is_joined(&t, hone_match_var(m, "w"), hone_match_root(m)->out[0])) return false;
    return fits(&t, c, t.half) && fits(&t, s, t.half) && put(&t, x, c, s);
}
static bool halves_at_once(hone_matching *m) { return at_once(m, false); }
static bool neighbours_at_once(hone_matching *m) { return at_once(m, true); }
static bool halves_apart(hone_matching *m) { return apart(m, false); }
static bool neighbours_apart(hone_matching *m) { return apart(m, true); }

#define NEGATED "{Neg(b)|Mul(b, -1)}"
#define TURNED(r) "Add(Mul(x, c), Mul(" r ", s))"
#define FIRST "Sub(Mul(a, c), Mul(b, s))"
#define SECOND "Add(Mul(b, c), Mul(a, s))"
#define STACKED(p, q) "Reshape(w=Concat(Unsqueeze(" p ", $i), Unsqueeze(" q ", $j)), k)"
static const hone_rule rules[] = {
    {TURNED("w=Concat(" NEGATED ", a)"), halves_at_once},
    {TURNED("r=" STACKED(NEGATED, "a")), neighbours_at_once},
    {"w=Concat(" FIRST ", " SECOND ")", halves_apart},
    {STACKED(FIRST, SECOND), neighbours_apart},
};
hone_status hone_pass_rotary(hone_passing *p) {
    return hone_match_rules(p, rules, (int)(sizeof rules / sizeof *rules));
}
