/* SPDX-License-Identifier: Apache-2.0
   match_cell: the steps of a recurrent network in the stages of an over group, whatever op they come from:
   LSTM, GRU (the state reset before its product, or after) and RNN with the usual functions. A pure function
   of a bound instance; says nothing about which kernel is good, nor how the weights lie. */
#ifndef HONE_LOOPS_MATCH_CELL_H
#define HONE_LOOPS_MATCH_CELL_H
#include "loops/match_affine.h"

enum { HONE_CELL_BIASES = 2, HONE_CELL_PRODUCTS = 2, HONE_CELL_WAYS = 64 };
typedef enum { HONE_CELL_LSTM, HONE_CELL_GRU, HONE_CELL_GRU_RESET, HONE_CELL_RNN } hone_cell_kind;
typedef struct {
    int64_t c, k;
} hone_cell_line; /* c + k t */
typedef struct {  /* elements: the first, and from one direction, row or place to the next */
    int tensor;   /* -1: zeros */
    int64_t c, way, row, each;
} hone_cell_walk;
typedef struct {   /* constant or not, of [ways, gates, width, width]: elements from one to the next */
    int tensor;    /* -1: they lie in another way */
    int64_t first; /* gate */
    int64_t way, gate, each, k;
} hone_cell_weights;
typedef struct {
    hone_cell_kind kind;
    int stages; /* so many, from the first on; those with a sum are the products of the state, in order */
    int gates;
    int64_t steps, ways, rows, width; /* ways: directions; width: of the state */
    /* tensors of [steps, ways, rows, (gates,) width]: what comes from the input, the states that are made.
       c: -1: there is none */
    int x, h, c;
    bool c_read;                                   /* by others than the group */
    hone_cell_walk h0, c0;                         /* before the first step */
    hone_cell_weights weights[HONE_CELL_PRODUCTS]; /* of the products of the state, in order */
    int n_weights;
    hone_cell_walk bias[HONE_CELL_BIASES];
    hone_cell_line when[HONE_CELL_WAYS]; /* a direction: the step of x that step t reads; there may be none */
    uint64_t uses, own; /* tensors of the group; those of them that nobody else reads, x, h and c apart */
} hone_match_cell;
/* The stages from `first` up to `end` are all of a group. */
bool hone_match_cell_of(const hone_sized *, int first, int end, hone_match_cell *out);
#endif
