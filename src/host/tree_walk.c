/* SPDX-License-Identifier: Apache-2.0
   tree_walk: see tree_walk.h. */
#include "host/tree_walk.h"

#include <math.h>

enum { LANES = 8 };

#define T float
#define NODE hone_walk_f32
#define AT f32
#define NAME(x) x##_f32
#include "host/tree_walk.inc"
#define T double
#define NODE hone_walk_f64
#define AT f64
#define NAME(x) x##_f64
#include "host/tree_walk.inc"

void hone_walk_rows(const hone_walk *w, const void *x, int64_t columns, int64_t rows, double *score) {
    if (w->f64) all_f64(w, x, columns, rows, score);
    else all_f32(w, x, columns, rows, score);
}

void hone_walk_free(hone_walk *w) {
    hone_free(w->f32);
    hone_free(w->f64);
    hone_free(w->missing);
    hone_free(w->root);
    hone_free(w->depth);
    hone_free(w->goal);
    hone_free(w->lone);
    hone_free(w->weight);
    hone_free(w->value);
    hone_free(w->target);
    *w = (hone_walk){0};
}

/* ---- making ---- */

/* The largest number of x's type that is not above v; what lies between is no x's. */
static double not_above(double v, bool wide) {
    if (wide || isnan(v)) return v;
    float f = (float)v;
    return (double)f > v ? nextafterf(f, -INFINITY) : f;
}
static double below(double v, bool wide) { /* the largest that is less than v > -infinity */
    if (wide) return nextafter(v, -INFINITY);
    double f = not_above(v, false);
    return f < v ? f : nextafterf((float)f, -INFINITY);
}

static bool exchanged(const hone_tree_node *n) { return n->mode == HONE_TREE_GTE || n->mode == HONE_TREE_GT; }

/* Any comparison of order as x <= split, its ways exchanged where need be; false: it is none. */
static bool as_leq(const hone_tree_node *n, bool wide, hone_walk_f64 *out, uint8_t *missing) {
    bool strict = n->mode == HONE_TREE_LT || n->mode == HONE_TREE_GTE;
    if (n->mode > HONE_TREE_GT || isnan(n->split) || (strict && n->split == -INFINITY) ||
        n->feature > INT32_MAX)
        return false;
    out->split = strict ? below(n->split, wide) : not_above(n->split, wide);
    out->feature = (int32_t)n->feature;
    *missing = n->missing != exchanged(n); /* NaN takes the other way too */
    return true;
}

typedef struct {
    int64_t node; /* of the forest */
    int32_t at;   /* its place here */
    int32_t deep;
} pending;

typedef struct {
    const hone_forest *f;
    hone_walk *w;
    bool wide;
    hone_vec(pending) stack;
    hone_vec(hone_walk_f64) node;
    hone_vec(uint8_t) missing;
    hone_vec(int64_t) leaf; /* one a node: the forest's leaf, or -1 */
} making;

static bool push_place(making *m, int64_t node, int32_t deep) {
    pending p = {node, m->node.n, deep};
    return hone_push(&m->node, (hone_walk_f64){0}) && hone_push(&m->missing, 1) && hone_push(&m->leaf, -1) &&
           hone_push(&m->stack, p);
}
/* Fills the place of one node and makes places for those it leads to. *good: all so far can be walked. False:
   no memory. */
static bool fill_place(making *m, pending p, bool *good) {
    const hone_tree_node *n = m->f->node.at + p.node;
    int32_t *depth = m->w->depth + m->w->trees - 1;
    if (n->mode == HONE_TREE_LEAF) {
        m->node.at[p.at] = (hone_walk_f64){.split = INFINITY, .first = p.at};
        m->leaf.at[p.at] = p.node;
        if (p.deep > *depth) *depth = p.deep;
        return true;
    }
    if (!(*good = as_leq(n, m->wide, m->node.at + p.at, m->missing.at + p.at))) return true;
    m->node.at[p.at].first = m->node.n;
    return push_place(m, exchanged(n) ? n->no : n->yes, p.deep + 1) &&
           push_place(m, exchanged(n) ? n->yes : n->no, p.deep + 1);
}

/* Each leaf has one weight, and a tree's all go to one target: *alone, and then w->lone and w->goal. */
static bool put_alone(making *m, bool *alone) {
    hone_walk *w = m->w;
    w->lone = hone_alloc(sizeof *w->lone * ((size_t)m->node.n + 1));
    w->goal = hone_alloc(sizeof *w->goal * ((size_t)w->trees + 1));
    if (!w->lone || !w->goal) return false;
    *alone = m->leaf.at != NULL;
    for (int t = 0; t < w->trees && *alone; t++) {
        w->goal[t] = -1;
        for (int k = w->root[t]; k < (t + 1 < w->trees ? w->root[t + 1] : m->node.n) && *alone; k++) {
            if (m->leaf.at[k] < 0) continue;
            const hone_tree_node *leaf = m->f->node.at + m->leaf.at[k];
            const hone_tree_weight *v = m->f->weight.at + leaf->yes;
            *alone = hone_tree_weights_end(m->f, leaf) == leaf->yes + 1 &&
                     (w->goal[t] < 0 || w->goal[t] == v->target);
            if (*alone) w->lone[k] = v->weight, w->goal[t] = (int32_t)v->target;
        }
    }
    if (*alone) return true;
    hone_free(w->lone), hone_free(w->goal);
    w->lone = NULL, w->goal = NULL;
    return true;
}

static bool put_weights(making *m) {
    hone_walk *w = m->w;
    bool alone;
    if (!put_alone(m, &alone)) return false;
    if (alone) return true;
    int64_t n = 0;
    for (int pass = 0; pass < 2; pass++, n = 0) { /* counted, then written */
        for (int k = 0; k < m->node.n; k++) {
            if (pass) w->weight[k] = (int32_t)n;
            if (m->leaf.at[k] < 0) continue;
            const hone_tree_node *leaf = m->f->node.at + m->leaf.at[k];
            for (int64_t q = leaf->yes; q < hone_tree_weights_end(m->f, leaf); q++, n++)
                if (pass)
                    w->value[n] = m->f->weight.at[q].weight,
                    w->target[n] = (int32_t)m->f->weight.at[q].target;
        }
        if (pass) {
            w->weight[m->node.n] = (int32_t)n;
            break;
        }
        if (n > INT32_MAX / 8) return false;
        w->weight = hone_alloc(sizeof *w->weight * ((size_t)m->node.n + 1));
        w->value = hone_alloc(sizeof *w->value * (size_t)(n + 1));
        w->target = hone_alloc(sizeof *w->target * (size_t)(n + 1));
        if (!w->weight || !w->value || !w->target) return false;
    }
    return true;
}

static bool put_nodes(making *m) {
    hone_walk *w = m->w;
    const size_t n = (size_t)m->node.n;
    w->nodes = m->node.n;
    if (m->wide ? !(w->f64 = hone_alloc(sizeof *w->f64 * (n + 1)))
                : !(w->f32 = hone_alloc(sizeof *w->f32 * (n + 1))))
        return false;
    if (!(w->missing = hone_alloc(n + 1))) return false;
    for (size_t k = 0; k < n; k++) {
        const hone_walk_f64 *from = m->node.at + k;
        if (m->wide) w->f64[k] = *from;
        else w->f32[k] = (hone_walk_f32){(float)from->split, from->feature, from->first};
        w->missing[k] = m->missing.at[k];
    }
    return true;
}

hone_status hone_walk_create(const hone_host_call *c, const hone_forest *f, bool wide, hone_walk *out) {
    *out = (hone_walk){.targets = f->targets};
    making m = {.f = f, .w = out, .wide = wide};
    bool good = f->how < 2 && f->node.n < INT32_MAX / 4, room = true;
    if (good) {
        out->root = hone_alloc(sizeof *out->root * ((size_t)f->root.n + 1));
        out->depth = hone_alloc(sizeof *out->depth * ((size_t)f->root.n + 1));
        room = out->root && out->depth;
    }
    for (int k = 0; k < f->root.n && good && room; k++) {
        out->root[out->trees++] = m.node.n;
        room = push_place(&m, f->root.at[k], 0);
        while (m.stack.n && room && good) {
            pending next = m.stack.at[--m.stack.n];
            room = fill_place(&m, next, &good);
        }
        out->steps += out->depth[k];
    }
    if (good && room) room = put_weights(&m) && put_nodes(&m);
    hone_vec_free(&m.stack);
    hone_vec_free(&m.node);
    hone_vec_free(&m.missing);
    hone_vec_free(&m.leaf);
    if (!good || !room) hone_walk_free(out);
    return room ? HONE_OK : hone_call_no_memory(c);
}
