/* SPDX-License-Identifier: Apache-2.0
   tree: asking an ensemble, and the ops TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier. What
   the attributes say is read and checked by a node's first run, and kept. */
#include "host/tree.h"

#include <math.h>

#include "base/round.h"
#include "base/thread.h"
#include "host/tree_walk.h"

void hone_forest_free(hone_forest *f) {
    hone_vec_free(&f->node);
    hone_vec_free(&f->weight);
    hone_vec_free(&f->root);
    hone_vec_free(&f->member);
}

/* No node may be reached from two places: then no way is longer than the number of nodes, and asking ends. */
hone_status hone_forest_check(const hone_host_call *c, hone_forest *f) {
    uint8_t *reached = hone_alloc((size_t)f->node.n);
    if (!reached) return hone_call_no_memory(c);
    hone_status s = HONE_OK;
    for (int k = 0; k < f->root.n && !s; k++) {
        int64_t r = f->root.at[k];
        if (r < 0 || r >= f->node.n)
            s = hone_call_fail(c, HONE_BAD_INPUT, "the root of tree %d is node %lld; there are %d nodes", k,
                               (long long)r, f->node.n);
        else if (reached[r]++)
            s = hone_call_fail(c, HONE_BAD_INPUT, "node %lld is the root of two trees", (long long)r);
    }
    for (int k = 0; k < f->node.n && !s; k++) {
        const hone_tree_node *n = f->node.at + k;
        if (n->mode == HONE_TREE_LEAF) continue;
        if (n->feature < 0 || n->feature == INT64_MAX)
            s = hone_call_fail(c, HONE_BAD_INPUT, "node %d asks for feature %lld", k, (long long)n->feature);
        else if (n->feature >= f->features) f->features = n->feature + 1;
        for (int way = 0; way < 2 && !s; way++) {
            int64_t to = way ? n->no : n->yes;
            if (to < 0 || to >= f->node.n)
                s = hone_call_fail(c, HONE_BAD_INPUT, "node %d leads to node %lld; there are %d", k,
                                   (long long)to, f->node.n);
            else if (f->node.at[to].mode != HONE_TREE_LEAF && reached[to]++)
                s = hone_call_fail(c, HONE_BAD_INPUT, "node %lld is reached from two places", (long long)to);
        }
    }
    for (int k = 0; k < f->weight.n && !s; k++)
        if (f->weight.at[k].target < 0 || f->weight.at[k].target >= f->targets)
            s = hone_call_fail(c, HONE_BAD_INPUT, "weight %d goes to target %lld; there are %lld", k,
                               (long long)f->weight.at[k].target, (long long)f->targets);
    hone_free(reached);
    return s;
}

static bool takes(const hone_forest *f, const hone_tree_node *n, double v) {
    if (isnan(v)) return n->missing || n->mode == HONE_TREE_NEQ;
    switch (n->mode) {
    case HONE_TREE_LEQ: return v <= n->split;
    case HONE_TREE_LT: return v < n->split;
    case HONE_TREE_GTE: return v >= n->split;
    case HONE_TREE_GT: return v > n->split;
    case HONE_TREE_EQ: return v == n->split;
    case HONE_TREE_NEQ: return v != n->split;
    default:
        for (int64_t k = 0; k < n->n_set; k++)
            if (f->member.at[n->set + k] == v) return true;
        return false;
    }
}

void hone_forest_ask(const hone_forest *f, const hone_value *x, int64_t row, int64_t columns, double *score,
                     bool *seen) {
    for (int64_t t = 0; t < f->targets; t++) score[t] = 0, seen[t] = false;
    for (int k = 0; k < f->root.n; k++) {
        const hone_tree_node *n = f->node.at + f->root.at[k];
        while (n->mode != HONE_TREE_LEAF)
            n = f->node.at + (takes(f, n, hone_score_number(x, row * columns + n->feature)) ? n->yes : n->no);
        const int64_t end = hone_tree_weights_end(f, n);
        for (int64_t w = n->yes; w < end; w++) {
            hone_tree_weight v = f->weight.at[w];
            double *to = score + v.target;
            if (f->how < 2 || !seen[v.target]) *to += v.weight;
            else *to = f->how == 2 ? fmin(*to, v.weight) : fmax(*to, v.weight);
            seen[v.target] = true;
        }
    }
    for (int64_t t = 0; t < f->targets && f->how == 0 && f->root.n; t++) score[t] /= f->root.n;
}

/* What every row's scores start from. Models often have fewer than they have targets; then what ONNX Runtime
   does: of two classes one alone is for both, of more classes the first have theirs, and a regressor's are
   left out. */
static hone_status base_values(const hone_host_call *c, int64_t targets, bool classes, double *out) {
    const hone_attr *tensor = hone_call_attr(c, "base_values_as_tensor");
    const hone_value *v = tensor && tensor->kind == HONE_ATTR_TENSOR ? tensor->tensor[0] : NULL;
    hone_attr a;
    HONE_TRY(hone_call_list(c, "base_values", HONE_ATTR_FLOATS, &a));
    int64_t n = v ? hone_value_count(v) : a.n;
    if (v && hone_dtypes[v->dtype].kind != HONE_KIND_FLOAT)
        return hone_call_fail(c, HONE_BAD_INPUT, "base_values_as_tensor must hold floats");
    if (n > targets)
        return hone_call_fail(c, HONE_BAD_INPUT, "there are %lld base values for %lld targets", (long long)n,
                              (long long)targets);
    bool all = n == 1 && classes && targets <= 2;
    for (int64_t k = 0; k < targets && (all || classes || n == targets); k++)
        out[k] = k >= n && !all ? 0 : v ? hone_value_f64(v, all ? 0 : k) : a.f[all ? 0 : k];
    return HONE_OK;
}

/* ---- an ensemble, kept --------------------------------------------------------------------------------- */
typedef struct {
    hone_host_kept kept;
    hone_forest forest;
    hone_walk walk; /* no nodes: row by row by the definition */
    bool wide;      /* the walk is for doubles */
    double *base;   /* one a target */
    hone_score_kind kind;
    hone_labels labels;  /* of a classifier; n = 0: a regressor */
    bool binary, signs;  /* one score s for two classes: -s and s, else 1 - s and s */
    int64_t only, width; /* the class that has the score; columns of the output */
    hone_dtype out;      /* NONE: as x */
} ensemble;

static void destroy(hone_host_kept *k) {
    ensemble *e = (ensemble *)k;
    hone_forest_free(&e->forest);
    hone_walk_free(&e->walk);
    hone_free(e->base);
    hone_free(e);
}

static hone_status targets_of(const hone_host_call *c, hone_forest *f) {
    f->targets = hone_call_int(c, "n_targets", 1);
    return f->targets >= 1 && f->targets <= INT32_MAX
               ? HONE_OK
               : hone_call_fail(c, HONE_BAD_INPUT, "n_targets is %lld", (long long)f->targets);
}
static hone_status read_v5(const hone_host_call *c, ensemble *e) {
    int64_t kind = hone_call_int(c, "post_transform", 0);
    e->forest.how = (int)hone_call_int(c, "aggregate_function", 1);
    e->kind = (hone_score_kind)kind;
    if (e->forest.how < 0 || e->forest.how > 3 || kind < 0 || kind > 4)
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "aggregate_function %d or post_transform %lld is none there is", e->forest.how,
                              (long long)kind);
    HONE_TRY(targets_of(c, &e->forest));
    return hone_forest_from_v5(c, &e->forest);
}
static hone_status read_regressor(const hone_host_call *c, ensemble *e) {
    static const char *const hows[] = {"AVERAGE", "SUM", "MIN", "MAX", NULL};
    e->out = HONE_DTYPE_F32;
    HONE_TRY(hone_call_choice(c, "aggregate_function", hows, 1, &e->forest.how));
    HONE_TRY(hone_score_attr(c, &e->kind));
    HONE_TRY(targets_of(c, &e->forest));
    return hone_forest_from_v3(c, "target_", &e->forest);
}
static hone_status read_classifier(const hone_host_call *c, ensemble *e) {
    e->out = HONE_DTYPE_F32;
    e->forest.how = 1;
    HONE_TRY(hone_score_attr(c, &e->kind));
    HONE_TRY(hone_labels_find(c, "classlabels_int64s", "classlabels_strings", &e->labels));
    if (!e->labels.n)
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "neither classlabels_int64s nor classlabels_strings is given");
    e->forest.targets = e->labels.n;
    return hone_forest_from_v3(c, "class_", &e->forest);
}

/* Where all weights go to one class of at most two, its score s stands for both: 1 - s and s, or -s and s
   where a transform follows or a weight is below 0. */
static void find_classes(ensemble *e) {
    const hone_forest *f = &e->forest;
    e->width = f->targets;
    if (!e->labels.n) return;
    e->binary = e->labels.n <= 2;
    e->signs = e->kind != HONE_SCORE_NONE && e->kind != HONE_SCORE_PROBIT;
    for (int k = 0; k < f->weight.n; k++) {
        e->binary = e->binary && f->weight.at[k].target == f->weight.at[0].target;
        e->signs |= f->weight.at[k].weight < 0;
    }
    e->only = f->weight.n ? f->weight.at[0].target : 0;
    if (e->binary) e->width = 2;
}

static hone_status find_ensemble(const hone_host_call *c,
                                 hone_status (*read)(const hone_host_call *, ensemble *), bool wide,
                                 ensemble **out) {
    if ((*out = (ensemble *)hone_call_kept(c))) return HONE_OK;
    ensemble *e = hone_alloc(sizeof *e);
    if (!e) return hone_call_no_memory(c);
    *e = (ensemble){.kept = {destroy}, .wide = wide};
    hone_status s = read(c, e);
    if (!s) s = hone_forest_check(c, &e->forest);
    if (!s) find_classes(e);
    if (!s && !(e->base = hone_alloc(sizeof *e->base * (size_t)e->forest.targets)))
        s = hone_call_no_memory(c);
    if (!s) s = base_values(c, e->forest.targets, e->labels.n > 0, e->base);
    if (!s) s = hone_walk_create(c, &e->forest, wide, &e->walk);
    if (s) destroy(&e->kept);
    else *out = (ensemble *)hone_call_keep_made(c, &e->kept);
    return s;
}

/* ---- rows ---------------------------------------------------------------------------------------------- */
typedef struct {
    const ensemble *e;
    const hone_value *x;
    int64_t rows, columns, block; /* rows of a piece */
    hone_value *y, *labels;       /* either may be NULL */
    const hone_string **word;     /* one a class, in the call's pool, then "" */
    _Atomic bool no_memory;
} asking;

/* The scores of rows from..from + n: [n, targets]. */
static bool ask_rows(const asking *a, int64_t from, int64_t n, double *score) {
    const hone_forest *f = &a->e->forest;
    const hone_walk *w = &a->e->walk;
    const bool wide = a->x->dtype != HONE_DTYPE_F32, walks = w->nodes && wide == a->e->wide;
    if (!walks) {
        bool *seen = hone_alloc(sizeof *seen * ((size_t)f->targets + 1));
        if (!seen) return false;
        for (int64_t r = 0; r < n; r++)
            hone_forest_ask(f, a->x, from + r, a->columns, score + r * f->targets, seen);
        hone_free(seen);
    } else if (!wide) hone_walk_rows(w, (const float *)a->x->data + from * a->columns, a->columns, n, score);
    else {
        double *number = hone_alloc(sizeof *number * ((size_t)(n * a->columns) + 1));
        if (!number) return false;
        for (int64_t k = 0; k < n * a->columns; k++)
            number[k] = hone_score_number(a->x, from * a->columns + k);
        hone_walk_rows(w, number, a->columns, n, score);
        hone_free(number);
    }
    if (walks && f->how == 0 && f->root.n)
        for (int64_t k = 0; k < n * f->targets; k++) score[k] /= f->root.n;
    return true;
}

static void put_label(const asking *a, int64_t r, int64_t best) {
    const hone_labels *l = &a->e->labels;
    bool none = l->n == 1 && !best; /* one label alone names the positive class; 0 or "" is the other */
    int64_t at = none ? l->n : l->n == 1 ? 0 : best;
    if (l->strings.n) ((const hone_string **)a->labels->data)[r] = a->word[at < l->n ? at : l->n];
    else ((int64_t *)a->labels->data)[r] = none ? 0 : at < l->n ? l->ints.i[at] : at;
}

static void put_row(const asking *a, int64_t r, double *row) { /* row: targets, with room for 2 */
    const ensemble *e = a->e;
    for (int64_t k = 0; k < e->forest.targets; k++) row[k] += e->base[k];
    if (e->binary) {
        double v = row[e->only];
        row[1] = v;
        row[0] = e->signs ? -v : 1 - v;
    }
    hone_score_apply(e->kind, row, e->width);
    if (a->labels) {
        int64_t best = 0;
        for (int64_t k = 1; k < e->width; k++)
            if (row[k] > row[best]) best = k;
        put_label(a, r, best);
    }
    if (!a->y) return;
    if (a->y->dtype == HONE_DTYPE_F32)
        for (int64_t k = 0; k < e->width; k++) ((float *)a->y->data)[r * e->width + k] = (float)row[k];
    else
        for (int64_t k = 0; k < e->width; k++)
            hone_dtype_store(a->y->dtype,
                             (char *)a->y->data + (size_t)(r * e->width + k) * hone_call_bytes(a->y->dtype),
                             HONE_F64, (hone_scalar){.f64 = row[k]}, false);
}

static void piece(void *arg, int64_t number) {
    asking *a = arg;
    const int64_t targets = a->e->forest.targets, from = number * a->block,
                  n = a->rows - from < a->block ? a->rows - from : a->block;
    double few[64], *score = few, *line;
    const size_t need = (size_t)((n + 1) * targets + 2);
    if (need <= 64) memset(few, 0, sizeof few);
    else if (!(score = hone_alloc(sizeof *score * need))) {
        a->no_memory = true;
        return;
    }
    line = score + n * targets;
    if (!ask_rows(a, from, n, score)) a->no_memory = true;
    else
        for (int64_t r = 0; r < n; r++) {
            memcpy(line, score + r * targets, sizeof *line * (size_t)targets);
            put_row(a, from + r, line);
        }
    if (score != few) hone_free(score);
}

/* Labels in the call's pool, once each: rows are many, and pieces run on other threads. */
static hone_status find_words(const hone_host_call *c, asking *a) {
    const hone_attr *s = &a->e->labels.strings;
    if (!s->n || !a->labels) return HONE_OK;
    if (!(a->word = hone_alloc(sizeof *a->word * ((size_t)s->n + 1)))) return hone_call_no_memory(c);
    for (int k = 0; k < s->n; k++) {
        const hone_string *from = s->s + k;
        HONE_TRY(hone_call_copy_strings(c, a->word + k, &from, 1));
    }
    a->word[s->n] = &hone_string_empty;
    return HONE_OK;
}

enum {
    ROWS_LEAST = 16,
    ROWS_MOST = 256 /* a piece: its x and scores stay in a cache */,
    STEPS_ALONE = 20000 /* below: not worth waking a thread */
};

static hone_status run(const hone_host_call *c, hone_status (*read)(const hone_host_call *, ensemble *)) {
    asking a = {0};
    ensemble *e;
    HONE_TRY(hone_score_rows(c, &a.x, &a.rows, &a.columns));
    HONE_TRY(find_ensemble(c, read, a.x->dtype != HONE_DTYPE_F32, &e));
    a.e = e;
    hone_status s = HONE_OK;
    int scores = e->labels.n ? 1 : 0;
    int64_t dims[] = {a.rows, e->width}, room;
    if (e->forest.features > a.columns)
        s = hone_call_fail(c, HONE_BAD_INPUT, "the trees ask for feature %lld, x has %lld",
                           (long long)e->forest.features - 1, (long long)a.columns);
    if (!s && e->labels.n && hone_call_wants(c, 0)) s = hone_labels_out(c, &e->labels, a.rows, &a.labels);
    if (!s && hone_call_wants(c, scores))
        s = hone_host_out(c, scores, e->out ? e->out : a.x->dtype, dims, 2, &a.y);
    if (!s) s = find_words(c, &a);
    a.block = hone_share_of(a.rows, ROWS_LEAST, ROWS_MOST, c->threads > 1 ? c->threads : 1);
    if (!s && __builtin_mul_overflow(a.block + 1, e->forest.targets + a.columns + 2, &room))
        s = hone_call_no_memory(c);
    if (!s) {
        const int64_t n = hone_ceil_div(a.rows, a.block);
        if (a.rows > STEPS_ALONE ||
            a.rows * (e->walk.nodes ? e->walk.steps : 16 * (int64_t)e->forest.root.n) > STEPS_ALONE)
            hone_call_spread(c, n, piece, &a);
        else
            for (int64_t k = 0; k < n; k++) piece(&a, k);
        if (a.no_memory) s = hone_call_no_memory(c);
    }
    hone_free(a.word);
    hone_call_done(c, &e->kept);
    return s;
}

hone_status hone_host_tree_ensemble(const hone_host_call *c) { return run(c, read_v5); }
hone_status hone_host_tree_ensemble_regressor(const hone_host_call *c) { return run(c, read_regressor); }
hone_status hone_host_tree_ensemble_classifier(const hone_host_call *c) { return run(c, read_classifier); }
