/* SPDX-License-Identifier: Apache-2.0
   tree_attr: ensembles from attributes: parallel lists, one entry a node. Names of nodes become places,
   leaves nodes of their own. */
#include <math.h>
#include <stdio.h>

#include "host/order.h"
#include "host/tree.h"

/* A list of numbers as floats, or as a tensor; `as_tensor`: under name + "_as_tensor" too. */
typedef struct {
    hone_attr a;
    const hone_value *v;
    int64_t n;
} numbers;
static hone_status find_numbers(const hone_host_call *c, const char *name, bool as_tensor, numbers *out) {
    char other[64];
    snprintf(other, sizeof other, "%s_as_tensor", name);
    const hone_attr *t = hone_call_attr(c, as_tensor ? other : name);
    *out = (numbers){0};
    if (t && t->kind == HONE_ATTR_TENSOR) {
        out->v = t->tensor[0];
        out->n = hone_value_count(out->v);
        hone_kind kind = hone_dtypes[out->v->dtype].kind;
        if (kind != HONE_KIND_FLOAT && kind != HONE_KIND_INT && kind != HONE_KIND_UINT)
            return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s must hold numbers", t->name);
        return HONE_OK;
    }
    HONE_TRY(hone_call_list(c, name, HONE_ATTR_FLOATS, &out->a));
    out->n = out->a.n;
    return HONE_OK;
}
static double number(const numbers *l, int64_t k) { return l->v ? hone_score_number(l->v, k) : l->a.f[k]; }

static hone_status wrong_length(const hone_host_call *c, const char *name, int64_t n, int64_t want) {
    return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s has %lld entries; %lld are needed", name,
                          (long long)n, (long long)want);
}
/* An ints attribute that must have n entries, or may be absent. */
static hone_status find_ints(const hone_host_call *c, const char *name, int64_t n, bool may_lack,
                             hone_attr *out) {
    HONE_TRY(hone_call_list(c, name, HONE_ATTR_INTS, out));
    if (out->n != n && !(may_lack && !out->n)) return wrong_length(c, name, out->n, n);
    return HONE_OK;
}

/* ---- TreeEnsemble: nodes and leaves apart; leaf k becomes node n + k ----------------------------------- */
hone_status hone_forest_from_v5(const hone_host_call *c, hone_forest *f) {
    hone_attr features, yes, no, yes_leaf, no_leaf, missing, targets, roots;
    numbers modes, splits, weights, members;
    HONE_TRY(find_numbers(c, "nodes_modes", false, &modes));
    HONE_TRY(find_numbers(c, "nodes_splits", false, &splits));
    HONE_TRY(find_numbers(c, "leaf_weights", false, &weights));
    HONE_TRY(find_numbers(c, "membership_values", false, &members));
    int64_t n = modes.n, m = weights.n;
    if (splits.n != n) return wrong_length(c, "nodes_splits", splits.n, n);
    HONE_TRY(find_ints(c, "nodes_featureids", n, false, &features));
    HONE_TRY(find_ints(c, "nodes_truenodeids", n, false, &yes));
    HONE_TRY(find_ints(c, "nodes_falsenodeids", n, false, &no));
    HONE_TRY(find_ints(c, "nodes_trueleafs", n, false, &yes_leaf));
    HONE_TRY(find_ints(c, "nodes_falseleafs", n, false, &no_leaf));
    HONE_TRY(find_ints(c, "nodes_missing_value_tracks_true", n, true, &missing));
    HONE_TRY(find_ints(c, "leaf_targetids", m, false, &targets));
    HONE_TRY(hone_call_list(c, "tree_roots", HONE_ATTR_INTS, &roots));
    for (int k = 0; k < roots.n; k++)
        if (roots.i[k] < 0 || roots.i[k] >= n)
            return hone_call_fail(c, HONE_BAD_INPUT, "tree_roots[%d] is %lld; there are %lld nodes", k,
                                  (long long)roots.i[k], (long long)n);
        else if (!hone_push(&f->root, roots.i[k])) return hone_call_no_memory(c);
    /* sets of members stand one after the other, each ended by NaN, in the order of their nodes */
    int64_t at = 0;
    for (int64_t k = 0; k < n; k++) {
        double mode = number(&modes, k);
        int64_t way[2] = {yes.i[k], no.i[k]}, leaf[2] = {yes_leaf.i[k], no_leaf.i[k]};
        for (int w = 0; w < 2; w++) {
            if (way[w] < 0 || way[w] >= (leaf[w] ? m : n))
                return hone_call_fail(c, HONE_BAD_INPUT, "node %lld leads to %s %lld", (long long)k,
                                      leaf[w] ? "leaf" : "node", (long long)way[w]);
            if (leaf[w]) way[w] += n;
        }
        if (!(mode >= HONE_TREE_LEQ && mode <= HONE_TREE_MEMBER))
            return hone_call_fail(c, HONE_BAD_INPUT, "nodes_modes[%lld] is %g", (long long)k, mode);
        hone_tree_node node = {.mode = (uint8_t)mode,
                               .missing = missing.n && missing.i[k],
                               .feature = features.i[k],
                               .split = number(&splits, k),
                               .yes = way[0],
                               .no = way[1]};
        if (node.mode == HONE_TREE_MEMBER) {
            node.set = f->member.n;
            for (; at < members.n && !isnan(number(&members, at)); at++)
                if (!hone_push(&f->member, number(&members, at))) return hone_call_no_memory(c);
            if (at++ >= members.n)
                return hone_call_fail(c, HONE_BAD_INPUT, "membership_values has no set for node %lld",
                                      (long long)k);
            node.n_set = f->member.n - node.set;
        }
        if (!hone_push(&f->node, node)) return hone_call_no_memory(c);
    }
    for (int64_t k = 0; k < m; k++)
        if (!hone_push(&f->weight, ((hone_tree_weight){number(&weights, k), targets.i[k]})) ||
            !hone_push(&f->node, ((hone_tree_node){.mode = HONE_TREE_LEAF, .yes = k, .no = k + 1})))
            return hone_call_no_memory(c);
    return HONE_OK;
}

/* ---- TreeEnsembleRegressor, TreeEnsembleClassifier: everything by (tree, node) ------------------------- */
typedef struct {
    const int64_t *tree, *node;
    int64_t n, *order;
} names;
static int compare_names(const void *with, int64_t a, int64_t b) {
    const names *l = with;
    if (l->tree[a] != l->tree[b]) return l->tree[a] < l->tree[b] ? -1 : 1;
    return (l->node[a] > l->node[b]) - (l->node[a] < l->node[b]);
}
/* The first place in the order that is not before (tree, node). */
static int64_t find_name(const names *l, int64_t tree, int64_t node) {
    int64_t lo = 0, hi = l->n;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2, at = l->order[mid];
        if (l->tree[at] < tree || (l->tree[at] == tree && l->node[at] < node)) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}
static bool is_name(const names *l, int64_t at, int64_t tree, int64_t node) {
    return at < l->n && l->tree[l->order[at]] == tree && l->node[l->order[at]] == node;
}

static int mode_of(const hone_string *s) {
    static const char *const modes[] = {"BRANCH_LEQ", "BRANCH_LT",  "BRANCH_GTE", "BRANCH_GT",
                                        "BRANCH_EQ",  "BRANCH_NEQ", "",           "LEAF"};
    for (int k = 0; k < 8; k++)
        if (s->bytes && (size_t)s->bytes == strlen(modes[k]) && !memcmp(modes[k], s->text, (size_t)s->bytes))
            return k;
    return -1;
}

typedef struct {
    hone_attr yes, no, features, missing, modes;
    numbers values;
} node_lists;

static hone_status add_nodes(const hone_host_call *c, const node_lists *l, const names *nodes,
                             const names *leaves, hone_forest *f) {
    for (int64_t k = 0; k < nodes->n; k++) {
        int mode = mode_of(l->modes.s + k);
        int64_t tree = nodes->tree[k], way[2] = {l->yes.i[k], l->no.i[k]};
        if (mode < 0)
            return hone_call_fail(c, HONE_BAD_INPUT, "nodes_modes[%lld] is \"%.*s\"", (long long)k,
                                  (int)l->modes.s[k].bytes, l->modes.s[k].text);
        hone_tree_node node = {.mode = (uint8_t)mode,
                               .missing = l->missing.n && l->missing.i[k],
                               .feature = l->features.i[k],
                               .split = number(&l->values, k)};
        if (mode == HONE_TREE_LEAF) {
            node.yes = node.no = find_name(leaves, tree, nodes->node[k]);
            while (is_name(leaves, node.no, tree, nodes->node[k])) node.no++;
        } else {
            int64_t to[2];
            for (int w = 0; w < 2; w++) {
                to[w] = find_name(nodes, tree, way[w]);
                if (!is_name(nodes, to[w], tree, way[w]))
                    return hone_call_fail(c, HONE_BAD_INPUT,
                                          "tree %lld has no node %lld, to which node %lld leads",
                                          (long long)tree, (long long)way[w], (long long)nodes->node[k]);
                to[w] = nodes->order[to[w]];
            }
            node.yes = to[0];
            node.no = to[1];
        }
        if (!hone_push(&f->node, node)) return hone_call_no_memory(c);
    }
    return HONE_OK;
}

/* A root is a node to which none leads. */
static hone_status add_roots(const hone_host_call *c, hone_forest *f) {
    uint8_t *led = hone_alloc((size_t)f->node.n);
    bool good = led != NULL;
    for (int k = 0; k < f->node.n && good; k++)
        if (f->node.at[k].mode != HONE_TREE_LEAF) led[f->node.at[k].yes] = led[f->node.at[k].no] = 1;
    for (int k = 0; k < f->node.n && good; k++)
        if (!led[k]) good = hone_push(&f->root, k);
    hone_free(led);
    return good ? HONE_OK : hone_call_no_memory(c);
}

hone_status hone_forest_from_v3(const hone_host_call *c, const char *prefix, hone_forest *f) {
    hone_attr trees, ids, leaf_trees, leaf_ids, targets;
    node_lists l;
    numbers weights;
    char name[4][32];
    static const char *const ends[] = {"treeids", "nodeids", "ids", "weights"};
    for (int k = 0; k < 4; k++) snprintf(name[k], sizeof name[k], "%s%s", prefix, ends[k]);
    HONE_TRY(hone_call_list(c, "nodes_modes", HONE_ATTR_STRINGS, &l.modes));
    HONE_TRY(find_numbers(c, "nodes_values", true, &l.values));
    HONE_TRY(find_numbers(c, name[3], true, &weights));
    int64_t n = l.modes.n, m = weights.n;
    if (l.values.n != n) return wrong_length(c, "nodes_values", l.values.n, n);
    HONE_TRY(find_ints(c, "nodes_treeids", n, false, &trees));
    HONE_TRY(find_ints(c, "nodes_nodeids", n, false, &ids));
    HONE_TRY(find_ints(c, "nodes_featureids", n, false, &l.features));
    HONE_TRY(find_ints(c, "nodes_truenodeids", n, false, &l.yes));
    HONE_TRY(find_ints(c, "nodes_falsenodeids", n, false, &l.no));
    HONE_TRY(find_ints(c, "nodes_missing_value_tracks_true", n, true, &l.missing));
    HONE_TRY(find_ints(c, name[0], m, false, &leaf_trees));
    HONE_TRY(find_ints(c, name[1], m, false, &leaf_ids));
    HONE_TRY(find_ints(c, name[2], m, false, &targets));
    int64_t *order = hone_alloc(sizeof *order * (size_t)(n + m));
    if (!order) return hone_call_no_memory(c);
    names nodes = {trees.i, ids.i, n, order}, leaves = {leaf_trees.i, leaf_ids.i, m, order + n};
    for (int64_t k = 0; k < n; k++) nodes.order[k] = k;
    for (int64_t k = 0; k < m; k++) leaves.order[k] = k;
    hone_status s = hone_order_sort(nodes.order, n, compare_names, &nodes) &&
                            hone_order_sort(leaves.order, m, compare_names, &leaves)
                        ? HONE_OK
                        : hone_call_no_memory(c);
    /* weights in the order of their leaves, so that a leaf has a run of them */
    for (int64_t k = 0; k < m && !s; k++)
        if (!hone_push(&f->weight,
                       ((hone_tree_weight){number(&weights, leaves.order[k]), targets.i[leaves.order[k]]})))
            s = hone_call_no_memory(c);
    if (!s) s = add_nodes(c, &l, &nodes, &leaves, f);
    if (!s) s = add_roots(c, f);
    hone_free(order);
    return s;
}
