/* SPDX-License-Identifier: Apache-2.0
   tree_walk: an ensemble as one flat array of nodes, for asking many rows at once. Made of a checked
   hone_forest, whose hone_forest_ask is the definition: every row gets the same bits from both.

   A node is a feature, a split and the place of two nodes side by side; a leaf leads to itself. The next node
   is a sum, not a choice, so a walk has no branch to mispredict: eight walks go down together, eight rows of
   one tree or eight trees of one row, and the loads of one hide the latency of another. */
#ifndef HONE_HOST_TREE_WALK_H
#define HONE_HOST_TREE_WALK_H
#include "host/tree.h"

typedef struct {
    float split; /* x <= split: on to `first`, else to first + 1. A leaf's is infinity, and `first` itself */
    int32_t feature, first;
} hone_walk_f32;
typedef struct {
    double split;
    int32_t feature, first;
} hone_walk_f64;
typedef struct {
    hone_walk_f32 *f32; /* one of the two, by the type of x */
    hone_walk_f64 *f64;
    uint8_t *missing; /* one a node: NaN goes to `first` */
    int32_t *root, *depth;
    int32_t *goal;   /* with `lone`: the target of all of a tree's leaves, as boosting makes them */
    double *lone;    /* one a node: a leaf's only weight; NULL: */
    int32_t *weight; /* one a node and one more: a leaf's weights begin here */
    double *value;   /* of weights */
    int32_t *target;
    int trees, nodes;
    int64_t targets;
    int64_t steps; /* of one row through all trees, at most */
} hone_walk;

/* *out has no nodes where the forest has something that is no comparison of order (sets, ==), or takes the
   least or largest of its weights: it is asked row by row then. */
hone_status hone_walk_create(const hone_host_call *, const hone_forest *, bool wide,
                             hone_walk *out) HONE_CHECKED;
void hone_walk_free(hone_walk *);
/* Adds the weights of rows to score [rows, targets]. x: floats, or doubles where wide. */
void hone_walk_rows(const hone_walk *, const void *x, int64_t columns, int64_t rows, double *score);
#endif
