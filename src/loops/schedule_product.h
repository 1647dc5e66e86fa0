/* SPDX-License-Identifier: Apache-2.0
   schedule_product: a sum of products (match_contraction.h) in blocks: a work-group computes a block of rows
   and columns, its operands a piece of K at a time in shared memory, each thread a smaller block of its own
   in registers (schedule_product.c; print_product.c prints it). */
#ifndef HONE_LOOPS_SCHEDULE_PRODUCT_H
#define HONE_LOOPS_SCHEDULE_PRODUCT_H
#include "loops/match_contraction.h"

/* What kind of device blocks are for: one whose neighbouring threads run together, or a CPU that runs a
   work-group's threads one after another. */
typedef enum { HONE_BLOCKS_NONE, HONE_BLOCKS_GPU, HONE_BLOCKS_CPU } hone_blocks_for;
typedef struct {
    int32_t m[HONE_MAX_SLOTS], n[HONE_MAX_SLOTS], k[HONE_MAX_SLOTS], batch[HONE_MAX_SLOTS];
    int n_m, n_n, n_k, n_batch;      /* indices of rows, columns, depth and batches */
    int32_t load_a, load_b;          /* expressions */
    int rows, columns, depth;        /* of a work-group's block, and how much of K at a time */
    int thread_rows, thread_columns; /* of a thread's */
    bool a_deep, b_deep; /* neighbours in memory are neighbours in K: threads that bring it walk K */
    bool beside;         /* a thread's columns lie side by side; else as many apart as threads are in a row */
} hone_product_blocks;
/* The blocks for a stage that is such a sum of floats. False: it is none, or (where it is not `wished`) it is
   too small to pay. stride: as in schedule.h. Tensors may be stored as halves. */
bool hone_product_choose(hone_arena *, const hone_instance *, int stage, const hone_param *,
                         const int64_t *stride, hone_blocks_for, bool wished, int max_threads, int units,
                         hone_product_blocks *out);
/* work-group's threads */
static inline int hone_product_threads(const hone_product_blocks *b) {
    return b->rows / b->thread_rows * (b->columns / b->thread_columns);
}
/* NULL, or why not. */
const char *hone_product_illegal(const hone_instance *, int stage, const hone_param *, const int64_t *stride,
                                 int threads, const hone_product_blocks *);
#endif
