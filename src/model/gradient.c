/* SPDX-License-Identifier: Apache-2.0
   gradient: Gradient of ai.onnx.preview.training, written out as nodes: reverse differentiation of what lies
   between `xs` and `y`.

   The nodes before it are in the graph already, in their newest form, so one rule an op is enough. Where the
   node's inputs are not the tensors that `xs` and `zs` name, the part between is first copied to run on those
   inputs. Every gradient has its tensor's shape: what broadcasting spread is summed again, for which shapes
   must be known here well enough. */
#include <string.h>

#include "model/upgrade.h"

typedef struct {
    hone_edit *e;
    int n_var, n_node; /* of the graph when it began */
    hone_vid *now;     /* the tensor that stands for each var */
    hone_vid *adj;     /* the gradient with respect to each var, so far; -1: none */
    uint8_t *leaf, *needed, *moved, *active;
} grad;
typedef struct {
    grad *w;
    hone_edit *e;
    const hone_node *n;
    const hone_vid *x; /* inputs, as they stand now */
    hone_vid y, g;     /* the output and its gradient */
} step;

/* ---- tools --------------------------------------------------------------------------------------------- */
static hone_vid one(step *s, const char *op, hone_vid a) {
    return hone_edit_node(s->e, op, -1, HONE_IN(a), HONE_PLAIN);
}
static hone_vid two(step *s, const char *op, hone_vid a, hone_vid b) {
    return hone_edit_node(s->e, op, -1, HONE_IN(a, b), HONE_PLAIN);
}
static hone_vid number(step *s, double v) { return hone_edit_like(s->e, v, s->x[0]); }
static hone_vid filled(hone_edit *e, double v, hone_vid like) {
    hone_vid shape = hone_edit_node(e, "Shape", -1, HONE_IN(like), HONE_PLAIN);
    return hone_edit_node(e, "Expand", -1, HONE_IN(hone_edit_like(e, v, like), shape), HONE_PLAIN);
}
static const hone_var *var(step *s, hone_vid v) { return s->e->g->var.at + v; }
static void unknown(step *s, const char *why) {
    hone_edit_problem(s->e, HONE_NOT_SUPPORTED, "cannot differentiate node '%.60s' (%.40s): %s", s->n->name,
                      s->n->program->name, why);
}

/* The sum of g, which has the shape of y, over what broadcasting added to x; the last `keep` dims are left
   alone. */
static hone_vid sum_to(step *s, hone_vid g, hone_vid x, int keep) {
    const hone_var *a = var(s, x), *b = var(s, s->y); /* until the first new node: vars move */
    bool ranks_equal = a->rank == b->rank;
    int64_t axes[HONE_MAX_RANK];
    int n = 0;
    if (a->rank < 0 || b->rank < 0 || a->rank > b->rank) {
        unknown(s, "the ranks of its operands are not known here");
        return g;
    }
    for (int k = 0; k < b->rank - keep; k++) {
        int at = k - (b->rank - a->rank);
        hone_dim mine = at < 0 ? 1 : a->dim[at];
        if (at >= 0 && mine == b->dim[k] && mine != HONE_DIM_UNKNOWN) continue;
        if (mine == 1) axes[n++] = k;
        else if (!hone_dim_is_number(mine) || !hone_dim_is_number(b->dim[k])) {
            unknown(s, "whether a dim is broadcast is not known here; give the model's inputs fixed shapes");
            return g;
        }
    }
    if (!n) return g;
    g = hone_edit_node(s->e, "ReduceSum", -1, HONE_IN(g, hone_edit_i64s(s->e, axes, n)),
                       HONE_WITH(hone_attr_of_int(s->e->im, "keepdims", 1)));
    return ranks_equal ? g : two(s, "Reshape", g, one(s, "Shape", x));
}
static void add_to(step *s, int k, hone_vid g) { /* g: already of input k's shape */
    hone_vid id = s->n->in[k], *adj = s->w->adj + id;
    if (id >= s->w->n_var || !s->w->active[id]) return;
    *adj = *adj < 0 ? g : two(s, "Add", *adj, g);
}
static void give(step *s, int k, hone_vid g) {
    if (s->w->active[s->n->in[k]]) add_to(s, k, sum_to(s, g, s->x[k], 0));
}

/* ---- rules --------------------------------------------------------------------------------------------- */
static void d_identity(step *s) { give(s, 0, s->g); }
static void d_cast(step *s) { give(s, 0, two(s, "CastLike", s->g, s->x[0])); }
static void d_add(step *s) { give(s, 0, s->g), give(s, 1, s->g); }
static void d_sub(step *s) { give(s, 0, s->g), give(s, 1, one(s, "Neg", s->g)); }
static void d_mul(step *s) {
    give(s, 0, two(s, "Mul", s->g, s->x[1])), give(s, 1, two(s, "Mul", s->g, s->x[0]));
}
static void d_div(step *s) {
    hone_vid q = two(s, "Div", s->g, s->x[1]);
    give(s, 0, q);
    give(s, 1, one(s, "Neg", two(s, "Mul", q, s->y)));
}
static void d_pow(step *s) {
    hone_vid less = two(s, "Sub", s->x[1], hone_edit_like(s->e, 1, s->x[1]));
    hone_vid times = two(s, "CastLike", s->x[1], s->x[0]);
    give(s, 0, two(s, "Mul", s->g, two(s, "Mul", times, two(s, "Pow", s->x[0], less))));
    if (s->w->active[s->n->in[1]])
        give(s, 1,
             two(s, "CastLike", two(s, "Mul", s->g, two(s, "Mul", s->y, one(s, "Log", s->x[0]))), s->x[1]));
}
static void d_neg(step *s) { give(s, 0, one(s, "Neg", s->g)); }
static void d_abs(step *s) { give(s, 0, two(s, "Mul", s->g, one(s, "Sign", s->x[0]))); }
static void d_exp(step *s) { give(s, 0, two(s, "Mul", s->g, s->y)); }
static void d_log(step *s) { give(s, 0, two(s, "Div", s->g, s->x[0])); }
static void d_sqrt(step *s) { give(s, 0, two(s, "Div", s->g, two(s, "Mul", number(s, 2), s->y))); }
static void d_reciprocal(step *s) {
    give(s, 0, one(s, "Neg", two(s, "Mul", s->g, two(s, "Mul", s->y, s->y))));
}
static void d_sin(step *s) { give(s, 0, two(s, "Mul", s->g, one(s, "Cos", s->x[0]))); }
static void d_cos(step *s) { give(s, 0, one(s, "Neg", two(s, "Mul", s->g, one(s, "Sin", s->x[0])))); }
static void d_tanh(step *s) {
    give(s, 0, two(s, "Mul", s->g, two(s, "Sub", number(s, 1), two(s, "Mul", s->y, s->y))));
}
static void d_sigmoid(step *s) {
    give(s, 0, two(s, "Mul", s->g, two(s, "Mul", s->y, two(s, "Sub", number(s, 1), s->y))));
}
static void d_erf(step *s) {
    hone_vid bell = one(s, "Exp", one(s, "Neg", two(s, "Mul", s->x[0], s->x[0])));
    give(s, 0, two(s, "Mul", s->g, two(s, "Mul", bell, number(s, 1.1283791670955126))));
}
static void d_relu(step *s) {
    hone_vid on = two(s, "CastLike", two(s, "Greater", s->x[0], number(s, 0)), s->x[0]);
    give(s, 0, two(s, "Mul", s->g, on));
}
static void d_reshape(step *s) { add_to(s, 0, two(s, "Reshape", s->g, one(s, "Shape", s->x[0]))); }
static void d_transpose(step *s) {
    const hone_attr *a = hone_attr_find(s->n->attr, s->n->n_attr, "perm");
    int64_t back[HONE_MAX_RANK] = {0};
    for (int k = 0; a && k < a->n && k < HONE_MAX_RANK; k++)
        if (a->i[k] >= 0 && a->i[k] < HONE_MAX_RANK) back[a->i[k]] = k;
    if (!a) add_to(s, 0, one(s, "Transpose", s->g));
    else
        add_to(s, 0,
               hone_edit_node(s->e, "Transpose", -1, HONE_IN(s->g),
                              HONE_WITH(hone_attr_of_ints(s->e->im, "perm", back, a->n))));
}
static hone_vid transposed(step *s, hone_vid x) { /* the last two dims swapped */
    int64_t perm[HONE_MAX_RANK];
    int r = var(s, x)->rank;
    for (int k = 0; k < r; k++) perm[k] = k < r - 2 ? k : 2 * r - 3 - k;
    return hone_edit_node(s->e, "Transpose", -1, HONE_IN(x),
                          HONE_WITH(hone_attr_of_ints(s->e->im, "perm", perm, r)));
}
static void d_matmul(step *s) {
    if (var(s, s->x[0])->rank < 2 || var(s, s->x[1])->rank < 2) {
        unknown(s, "its operands must be known to be matrices");
        return;
    }
    if (s->w->active[s->n->in[0]])
        add_to(s, 0, sum_to(s, two(s, "MatMul", s->g, transposed(s, s->x[1])), s->x[0], 2));
    if (s->w->active[s->n->in[1]])
        add_to(s, 1, sum_to(s, two(s, "MatMul", transposed(s, s->x[0]), s->g), s->x[1], 2));
}
/* g where dims were summed away: put back as ones, where the same sum with its dims kept has them, then
   spread */
static hone_vid spread(step *s) {
    hone_vid shape = one(s, "Shape", s->x[0]), g = s->g;
    if (!hone_attr_int(s->n->attr, s->n->n_attr, "keepdims", 1)) {
        hone_attr keep = hone_attr_of_int(s->e->im, "keepdims", 1);
        hone_attr noop = hone_attr_of_int(s->e->im, "noop_with_empty_axes",
                                          hone_attr_int(s->n->attr, s->n->n_attr, "noop_with_empty_axes", 0));
        hone_vid ones = hone_edit_node(s->e, "ReduceSum", -1, HONE_IN(s->x[0], s->n->n_in > 1 ? s->x[1] : -1),
                                       HONE_WITH(keep, noop));
        g = two(s, "Reshape", g, one(s, "Shape", ones));
    }
    return two(s, "Expand", g, shape);
}
static void d_reduce_sum(step *s) { add_to(s, 0, spread(s)); }
static void d_reduce_mean(step *s) {
    hone_vid of = one(s, "Size", s->x[0]), to = one(s, "Size", s->y);
    add_to(s, 0, two(s, "Div", spread(s), two(s, "CastLike", two(s, "Div", of, to), s->x[0])));
}
static void d_softmax(step *s) {
    int64_t axis = hone_attr_int(s->n->attr, s->n->n_attr, "axis", -1);
    hone_vid p = two(s, "Mul", s->g, s->y);
    hone_vid sum = hone_edit_node(s->e, "ReduceSum", -1, HONE_IN(p, hone_edit_i64s(s->e, &axis, 1)),
                                  HONE_WITH(hone_attr_of_int(s->e->im, "keepdims", 1)));
    add_to(s, 0, two(s, "Mul", s->y, two(s, "Sub", s->g, sum)));
}
static const struct {
    const char *op;
    void (*rule)(step *);
} rules[] = {
    {"Identity", d_identity},
    {"Cast", d_cast},
    {"CastLike", d_cast},
    {"Add", d_add},
    {"Sub", d_sub},
    {"Mul", d_mul},
    {"Div", d_div},
    {"Pow", d_pow},
    {"Neg", d_neg},
    {"Abs", d_abs},
    {"Exp", d_exp},
    {"Log", d_log},
    {"Sqrt", d_sqrt},
    {"Sin", d_sin},
    {"Cos", d_cos},
    {"Tanh", d_tanh},
    {"Sigmoid", d_sigmoid},
    {"Erf", d_erf},
    {"Relu", d_relu},
    {"Reciprocal", d_reciprocal},
    {"MatMul", d_matmul},
    {"Reshape", d_reshape},
    {"Flatten", d_reshape},
    {"Squeeze", d_reshape},
    {"Unsqueeze", d_reshape},
    {"Softmax", d_softmax},
    {"Transpose", d_transpose},
    {"ReduceSum", d_reduce_sum},
    {"ReduceMean", d_reduce_mean},
};

/* ---- the part between ---------------------------------------------------------------------------------- */
/* What leads to y, from the back; the named tensors are where it starts. */
static void find_needed(grad *w, hone_vid y) {
    const hone_graph *g = w->e->g;
    w->needed[y] = 1;
    for (int k = w->n_node - 1; k >= 0; k--) {
        const hone_node *n = g->node.at[k];
        bool any = false;
        for (int q = 0; q < n->n_out; q++)
            any |= n->out[q] >= 0 && w->needed[n->out[q]] && !w->leaf[n->out[q]];
        for (int q = 0; any && q < n->n_in; q++)
            if (n->in[q] >= 0) w->needed[n->in[q]] = 1;
    }
}
static bool makes_needed(const grad *w, const hone_node *n) {
    for (int q = 0; q < n->n_out; q++)
        if (n->out[q] >= 0 && w->needed[n->out[q]] && !w->leaf[n->out[q]]) return true;
    return false;
}
/* Forward: what depends on xs, and copies of what depends on an input that was replaced. */
static bool walk_forward(grad *w) {
    hone_graph *g = w->e->g;
    for (int k = 0; k < w->n_node; k++) {
        hone_node *n = g->node.at[k];
        bool active = false, moved = false;
        if (!makes_needed(w, n)) continue;
        for (int q = 0; q < n->n_in; q++)
            if (n->in[q] >= 0) active |= w->active[n->in[q]], moved |= w->moved[n->in[q]];
        for (int q = 0; q < n->n_out; q++)
            if (n->out[q] >= 0 && !w->leaf[n->out[q]])
                w->active[n->out[q]] = active, w->moved[n->out[q]] = moved;
        if (!moved) continue;
        if (n->n_body) {
            hone_edit_problem(w->e, HONE_NOT_SUPPORTED,
                              "cannot differentiate node '%.60s' (%.40s): it has bodies", n->name,
                              n->program->name);
            return false;
        }
        hone_vid *io = HONE_NEW_N(w->e->im->scratch, hone_vid, n->n_in + n->n_out + 1);
        if (!io) return false;
        for (int q = 0; q < n->n_in; q++) io[q] = n->in[q] < 0 ? -1 : w->now[n->in[q]];
        for (int q = 0; q < n->n_out; q++) {
            io[n->n_in + q] = n->out[q] < 0 ? -1 : hone_edit_var(w->e);
            if (n->out[q] >= 0 && !w->leaf[n->out[q]]) w->now[n->out[q]] = io[n->n_in + q];
        }
        hone_node *copy = hone_graph_node(g, n->program, n->name, io, n->n_in, io + n->n_in, n->n_out);
        if (!copy) return false;
        copy->attr = n->attr, copy->n_attr = n->n_attr;
    }
    return true;
}
static void walk_back(grad *w) {
    hone_graph *g = w->e->g;
    for (int k = w->n_node - 1; k >= 0 && !hone_import_stop(w->e->im); k--) {
        const hone_node *n = g->node.at[k];
        if (!makes_needed(w, n)) continue;
        bool active = false;
        for (int q = 0; q < n->n_in; q++) active |= n->in[q] >= 0 && w->active[n->in[q]];
        for (int q = 1; q < n->n_out; q++) active |= n->out[q] >= 0 && w->adj[n->out[q]] >= 0;
        if (!active || n->out[0] < 0 || w->adj[n->out[0]] < 0) continue;
        hone_vid *x = HONE_NEW_N(w->e->im->scratch, hone_vid, n->n_in + 2);
        if (!x) {
            hone_import_no_memory(w->e->im);
            return;
        }
        for (int q = 0; q < n->n_in; q++) x[q] = n->in[q] < 0 ? -1 : w->now[n->in[q]];
        step s = {w, w->e, n, x, w->now[n->out[0]], w->adj[n->out[0]]};
        bool whole = n->n_in > 0;
        for (int q = 0; q < n->program->n_in; q++)
            whole &= n->program->operand[q].optional || n->program->operand[q].variadic ||
                     (q < n->n_in && n->in[q] >= 0);
        size_t r = 0;
        while (r < sizeof rules / sizeof *rules &&
               (strcmp(rules[r].op, n->program->name) || n->program->domain[0]))
            r++;
        if (!whole) unknown(&s, "an operand is missing");
        else if (r < sizeof rules / sizeof *rules) rules[r].rule(&s);
        else unknown(&s, "there is no rule for its op");
    }
}

/* ---- the node ------------------------------------------------------------------------------------------ */
static hone_vid named(hone_edit *e, const char *name) {
    hone_vid id = hone_graph_find(e->g, name);
    if (id < 0)
        hone_edit_problem(e, HONE_BAD_INPUT, "names '%.100s', which nothing before it produces", name);
    return id;
}
static bool take_leaves(grad *w, const char *list, int first, bool active, int *count) {
    const hone_attr *a = hone_edit_attr(w->e, list);
    *count = a && a->kind == HONE_ATTR_STRINGS ? a->n : 0;
    for (int k = 0; k < *count; k++) {
        hone_vid id = named(w->e, a->s[k].text), given = hone_draft_in(w->e->node, first + k);
        if (id < 0 || id >= w->n_var) return false;
        if (given < 0) {
            hone_edit_problem(w->e, HONE_BAD_INPUT, "has no input for '%.100s'", a->s[k].text);
            return false;
        }
        w->leaf[id] = 1, w->now[id] = given, w->moved[id] = given != id, w->active[id] = active;
    }
    return true;
}
void hone_canon_gradient(hone_edit *e) {
    hone_draft *n = e->node;
    hone_arena *a = e->im->scratch;
    grad w = {.e = e, .n_var = e->g->var.n, .n_node = e->g->node.n};
    int nx, nz;
    n->placed = true;
    if (e->im->n_problem) return;
    size_t room = (size_t)w.n_var + 1;
    w.now = HONE_NEW_N(a, hone_vid, room), w.adj = HONE_NEW_N(a, hone_vid, room);
    w.leaf = hone_arena_alloc(a, room), w.needed = hone_arena_alloc(a, room),
    w.moved = hone_arena_alloc(a, room), w.active = hone_arena_alloc(a, room);
    if (!w.now || !w.adj || !w.leaf || !w.needed || !w.moved || !w.active) {
        hone_import_no_memory(e->im);
        return;
    }
    for (int k = 0; k < w.n_var; k++) w.now[k] = k, w.adj[k] = -1;
    hone_vid y = named(e, hone_edit_text(e, "y", ""));
    if (y < 0 || !take_leaves(&w, "xs", 0, true, &nx) || !take_leaves(&w, "zs", nx, false, &nz)) return;
    if (n->in.n != nx + nz || n->out.n > nx) {
        hone_edit_problem(e, HONE_BAD_INPUT, "has %d inputs and %d outputs for %d xs and %d zs", n->in.n,
                          n->out.n, nx, nz);
        return;
    }
    find_needed(&w, y);
    if (!walk_forward(&w)) {
        if (!e->im->n_problem) hone_import_no_memory(e->im);
        return;
    }
    hone_status s = hone_graph_infer(e->g); /* shapes, to tell what was broadcast */
    if (s) {
        hone_edit_problem(e, s, "%.300s", hone_fail_text());
        return;
    }
    w.adj[y] = filled(e, 1, w.now[y]);
    walk_back(&w);
    const hone_attr *xs = hone_edit_attr(e, "xs");
    for (int k = 0; k < n->out.n; k++) {
        if (n->out.at[k] < 0) continue;
        hone_vid x = hone_graph_find(e->g, xs->s[k].text), g = w.adj[x];
        hone_edit_node(e, "Identity", n->out.at[k], HONE_IN(g >= 0 ? g : filled(e, 0, w.now[x])), HONE_PLAIN);
    }
}
