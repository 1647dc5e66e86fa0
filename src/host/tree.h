/* SPDX-License-Identifier: Apache-2.0
   tree: an ensemble of decision trees, checked, ready to be asked. The three ops that describe one differ
   only in how (tree_attr.c). */
#ifndef HONE_HOST_TREE_H
#define HONE_HOST_TREE_H
#include "host/score.h"

typedef enum {
    HONE_TREE_LEQ,
    HONE_TREE_LT,
    HONE_TREE_GTE,
    HONE_TREE_GT,
    HONE_TREE_EQ,
    HONE_TREE_NEQ,
    HONE_TREE_MEMBER,
    HONE_TREE_LEAF
} hone_tree_mode;
typedef struct {
    uint8_t mode;
    bool missing; /* NaN takes the true way */
    int64_t feature;
    double split;
    int64_t yes, no;    /* nodes; LEAF: weights yes … no */
    int64_t set, n_set; /* MEMBER: these members */
} hone_tree_node;
typedef struct {
    double weight;
    int64_t target;
} hone_tree_weight;
typedef struct {
    hone_vec(hone_tree_node) node;
    hone_vec(hone_tree_weight) weight;
    hone_vec(int64_t) root;
    hone_vec(double) member;
    int64_t targets, features; /* features: one more than the largest asked for */
    int how;                   /* 0 average, 1 sum, 2 min, 3 max */
} hone_forest;
void hone_forest_free(hone_forest *);
/* every number in range; no way round in circles */
hone_status hone_forest_check(const hone_host_call *, hone_forest *) HONE_CHECKED;
/* targets each */
void hone_forest_ask(const hone_forest *, const hone_value *x, int64_t row, int64_t columns, double *score,
                     bool *seen);

/* From attributes: TreeEnsemble's, and those of TreeEnsembleRegressor ("target_") and TreeEnsembleClassifier
   ("class_"). */
hone_status hone_forest_from_v5(const hone_host_call *, hone_forest *) HONE_CHECKED;
hone_status hone_forest_from_v3(const hone_host_call *, const char *prefix, hone_forest *) HONE_CHECKED;

/* Where the weights of a leaf that count end: converters repeat a lone target's. */
static inline int64_t hone_tree_weights_end(const hone_forest *f, const hone_tree_node *leaf) {
    return f->targets == 1 && leaf->no > leaf->yes ? leaf->yes + 1 : leaf->no;
}
#endif
