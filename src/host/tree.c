/* SPDX-License-Identifier: Apache-2.0
   tree: asking an ensemble, and the ops TreeEnsemble, TreeEnsembleRegressor and TreeEnsembleClassifier. */
#include "host/tree.h"

#include <math.h>

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
            s = hone_call_fail(c, HONE_BAD_INPUT, "the root of tree %d is node %lld; there are %d nodes", k, (long long)r, f->node.n);
        else if (reached[r]++) s = hone_call_fail(c, HONE_BAD_INPUT, "node %lld is the root of two trees", (long long)r);
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
                s = hone_call_fail(c, HONE_BAD_INPUT, "node %d leads to node %lld; there are %d", k, (long long)to, f->node.n);
            else if (f->node.at[to].mode != HONE_TREE_LEAF && reached[to]++)
                s = hone_call_fail(c, HONE_BAD_INPUT, "node %lld is reached from two places", (long long)to);
        }
    }
    for (int k = 0; k < f->weight.n && !s; k++)
        if (f->weight.at[k].target < 0 || f->weight.at[k].target >= f->targets)
            s = hone_call_fail(c, HONE_BAD_INPUT, "weight %d goes to target %lld; there are %lld", k, (long long)f->weight.at[k].target,
                               (long long)f->targets);
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

void hone_forest_ask(const hone_forest *f, const hone_value *x, int64_t row, int64_t columns, double *score, bool *seen) {
    for (int64_t t = 0; t < f->targets; t++) score[t] = 0, seen[t] = false;
    for (int k = 0; k < f->root.n; k++) {
        const hone_tree_node *n = f->node.at + f->root.at[k];
        while (n->mode != HONE_TREE_LEAF) n = f->node.at + (takes(f, n, hone_score_number(x, row * columns + n->feature)) ? n->yes : n->no);
        const int64_t end = f->targets == 1 && n->no > n->yes ? n->yes + 1 : n->no; /* converters repeat a lone target's weight */
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

/* What every row's scores start from. Models often have fewer than they have targets; then what ONNX Runtime does: of two classes one alone
   is for both, of more classes the first have theirs, and a regressor's are left out. */
static hone_status base_values(const hone_host_call *c, int64_t targets, bool classes, double *out) {
    const hone_attr *tensor = hone_call_attr(c, "base_values_as_tensor");
    const hone_value *v = tensor && tensor->kind == HONE_ATTR_TENSOR ? tensor->tensor[0] : NULL;
    hone_attr a;
    HONE_TRY(hone_call_list(c, "base_values", HONE_ATTR_FLOATS, &a));
    int64_t n = v ? hone_value_count(v) : a.n;
    if (v && hone_dtypes[v->dtype].kind != HONE_KIND_FLOAT)
        return hone_call_fail(c, HONE_BAD_INPUT, "base_values_as_tensor must hold floats");
    if (n > targets)
        return hone_call_fail(c, HONE_BAD_INPUT, "there are %lld base values for %lld targets", (long long)n, (long long)targets);
    bool all = n == 1 && classes && targets <= 2;
    for (int64_t k = 0; k < targets && (all || classes || n == targets); k++)
        out[k] = k >= n && !all ? 0 : v ? hone_value_f64(v, all ? 0 : k) : a.f[all ? 0 : k];
    return HONE_OK;
}

typedef struct {
    const hone_value *x;
    int64_t rows, columns;
    double *score, *base;
    bool *seen;
} asked; /* score has room for 2 more than there are targets */

static hone_status open_asked(const hone_host_call *c, const hone_forest *f, bool classes, asked *a) {
    *a = (asked){0};
    HONE_TRY(hone_score_rows(c, &a->x, &a->rows, &a->columns));
    if (f->features > a->columns)
        return hone_call_fail(c, HONE_BAD_INPUT, "the trees ask for feature %lld, x has %lld", (long long)f->features - 1,
                              (long long)a->columns);
    size_t bytes;
    if (!hone_mul_size((size_t)f->targets + 2, 2 * sizeof(double) + 1, &bytes) || !(a->score = hone_alloc(bytes)))
        return hone_call_no_memory(c);
    a->base = a->score + f->targets + 2;
    a->seen = (bool *)(a->base + f->targets + 2);
    hone_status s = base_values(c, f->targets, classes, a->base);
    if (s) hone_free(a->score);
    return s;
}

static hone_status regress(const hone_host_call *c, const hone_forest *f, hone_score_kind kind, hone_dtype t) {
    asked a;
    HONE_TRY(open_asked(c, f, false, &a));
    hone_value *y;
    hone_status s = hone_host_out(c, 0, t ? t : a.x->dtype, (int64_t[]){a.rows, f->targets}, 2, &y);
    for (int64_t r = 0; r < a.rows && !s && f->targets; r++) {
        hone_forest_ask(f, a.x, r, a.columns, a.score, a.seen);
        for (int64_t k = 0; k < f->targets; k++) a.score[k] += a.base[k];
        hone_score_apply(kind, a.score, f->targets);
        for (int64_t k = 0; k < f->targets; k++)
            hone_dtype_store(y->dtype, (char *)y->data + (size_t)(r * f->targets + k) * hone_call_bytes(y->dtype), HONE_F64,
                             (hone_scalar){.f64 = a.score[k]}, false);
    }
    hone_free(a.score);
    return s;
}

hone_status hone_host_tree_ensemble(const hone_host_call *c) {
    hone_forest f = {.how = (int)hone_call_int(c, "aggregate_function", 1), .targets = hone_call_int(c, "n_targets", 1)};
    int64_t kind = hone_call_int(c, "post_transform", 0);
    if (f.how < 0 || f.how > 3 || kind < 0 || kind > 4)
        return hone_call_fail(c, HONE_BAD_INPUT, "aggregate_function %d or post_transform %lld is none there is", f.how, (long long)kind);
    if (f.targets < 1 || f.targets > INT32_MAX) return hone_call_fail(c, HONE_BAD_INPUT, "n_targets is %lld", (long long)f.targets);
    hone_status s = hone_forest_from_v5(c, &f);
    if (!s) s = hone_forest_check(c, &f);
    if (!s) s = regress(c, &f, (hone_score_kind)kind, HONE_DTYPE_NONE);
    hone_forest_free(&f);
    return s;
}

hone_status hone_host_tree_ensemble_regressor(const hone_host_call *c) {
    static const char *const hows[] = {"AVERAGE", "SUM", "MIN", "MAX", NULL};
    hone_forest f = {.targets = hone_call_int(c, "n_targets", 1)};
    hone_score_kind kind;
    HONE_TRY(hone_call_choice(c, "aggregate_function", hows, 1, &f.how));
    HONE_TRY(hone_score_attr(c, &kind));
    if (f.targets < 1 || f.targets > INT32_MAX) return hone_call_fail(c, HONE_BAD_INPUT, "n_targets is %lld", (long long)f.targets);
    hone_status s = hone_forest_from_v3(c, "target_", &f);
    if (!s) s = hone_forest_check(c, &f);
    if (!s) s = regress(c, &f, kind, HONE_DTYPE_F32);
    hone_forest_free(&f);
    return s;
}

/* Where all weights go to one class of at most two, its score s stands for both: 1 - s and s, or -s and s where a transform follows or a
   weight is below 0. */
static hone_status classify(const hone_host_call *c, const hone_forest *f, const hone_labels *l, hone_score_kind kind) {
    bool binary = l->n <= 2;
    for (int k = 1; k < f->weight.n && binary; k++) binary = f->weight.at[k].target == f->weight.at[0].target;
    bool signs = kind != HONE_SCORE_NONE && kind != HONE_SCORE_PROBIT;
    for (int k = 0; k < f->weight.n; k++) signs |= f->weight.at[k].weight < 0;
    int64_t only = f->weight.n ? f->weight.at[0].target : 0, width = binary ? 2 : f->targets;
    asked a;
    HONE_TRY(open_asked(c, f, true, &a));
    hone_value *labels = NULL, *y = NULL;
    hone_status s = hone_call_wants(c, 0) ? hone_labels_out(c, l, a.rows, &labels) : HONE_OK;
    if (!s && hone_call_wants(c, 1)) s = hone_host_out(c, 1, HONE_DTYPE_F32, (int64_t[]){a.rows, width}, 2, &y);
    for (int64_t r = 0; r < a.rows && !s; r++) {
        hone_forest_ask(f, a.x, r, a.columns, a.score, a.seen);
        for (int64_t k = 0; k < f->targets; k++) a.score[k] += a.base[k];
        if (binary) {
            double v = a.score[only];
            a.score[1] = v;
            a.score[0] = signs ? -v : 1 - v;
        }
        hone_score_apply(kind, a.score, width);
        int64_t best = 0;
        for (int64_t k = 1; k < width; k++)
            if (a.score[k] > a.score[best]) best = k;
        for (int64_t k = 0; k < width && y; k++) ((float *)y->data)[r * width + k] = (float)a.score[k];
        if (labels) { /* one label alone names the positive class; 0 or "" is the other */
            if (l->n != 1) s = hone_labels_put(c, l, labels, r, best);
            else if (best) s = hone_labels_put(c, l, labels, r, 0);
            else if (l->strings.n) ((const hone_string **)labels->data)[r] = &hone_string_empty;
            else ((int64_t *)labels->data)[r] = 0;
        }
    }
    hone_free(a.score);
    return s;
}

hone_status hone_host_tree_ensemble_classifier(const hone_host_call *c) {
    hone_forest f = {.how = 1};
    hone_labels labels;
    hone_score_kind kind;
    HONE_TRY(hone_score_attr(c, &kind));
    HONE_TRY(hone_labels_find(c, "classlabels_int64s", "classlabels_strings", &labels));
    if (!labels.n) return hone_call_fail(c, HONE_BAD_INPUT, "neither classlabels_int64s nor classlabels_strings is given");
    f.targets = labels.n;
    hone_status s = hone_forest_from_v3(c, "class_", &f);
    if (!s) s = hone_forest_check(c, &f);
    if (!s) s = classify(c, &f, &labels, kind);
    hone_forest_free(&f);
    return s;
}
