/* SPDX-License-Identifier: Apache-2.0
   match_contraction: a stage  t[domain] = sum(reduced) L * R  with affine loads, as C = A B: which of its
   indices are columns, rows, batches and depth, whatever op it comes from.

        N      the last indices of the domain, as far as only one operand (then called B) knows them: columns
        M      those that only the other operand (A) knows: rows
        batch  the rest of the domain          K  the reduced ones

   Factors are floats, or 8 bits less a zero point each. A pure function of an instance and its numbers; says
   nothing about which kernel is good. match_product.h sees a stage as windows over images, for kernels that
   want these. */
#ifndef HONE_LOOPS_MATCH_CONTRACTION_H
#define HONE_LOOPS_MATCH_CONTRACTION_H
#include "loops/match_affine.h"

/* The factors of a product: loads, and numbers that no index changes. Integers: loads of 8 bits. */
typedef struct {
    int32_t load[2], zero[2]; /* zero: the load that is taken away from it; -1: none */
    int n;
    double alpha;
} hone_match_factors;
bool hone_match_factors_of(const hone_sized *, int32_t x, hone_match_factors *);

/* More is nobody's: tables have an entry for each. */
enum {
    HONE_MATCH_MOST_M = 1 << 24,
    HONE_MATCH_MOST_N = 1 << 26,
    HONE_MATCH_MOST_K = 1 << 24,
    HONE_MATCH_MOST_BATCH = 1 << 22
};
typedef struct {
    hone_slots_of slots;
    hone_affine_load a, b;
    int32_t load_a, load_b;           /* expressions of the operands, */
    int32_t zero_a, zero_b;           /* and of zero points; -1: none */
    int first_tensor;                 /* in a recurrence: what step 0 reads instead of A; -1: nothing else */
    int64_t first_at;                 /* and from where */
    int64_t over_a, over_b, over_out; /* how addresses move with the over index */
    hone_dtype stored_a, stored_b;    /* constants that are f16 or bf16; 0: f32 */
    float alpha;
    bool integers;      /* factors of 8 bits, sums in i32 */
    bool shares_n;      /* both operands know N: depthwise, channels last */
    bool columns_known; /* B is constant */
    int64_t m, n, k, batch;
    int group_m[HONE_MAX_SLOTS], group_n[HONE_MAX_SLOTS], group_k[HONE_MAX_SLOTS],
        group_b[HONE_MAX_BATCH]; /* slots of each */
    int n_m, n_n, n_k, n_batch;
    int64_t batch_extent[HONE_MAX_BATCH], batch_a, batch_b; /* of all, A's own, B's own */
    int64_t radix_a[HONE_MAX_BATCH],
        radix_b[HONE_MAX_BATCH]; /* an operand's own number of a batch; 0: it does not know the index */
    int64_t k_order;             /* the order of K's indices: that in which A lies */
    int64_t m_run, k_run;        /* how long the last index of rows is, and of K */
    int64_t rows, run, run_step; /* N as rows * run: along a run B's address moves by run_step; */
    int outer;                   /* the rows are so many of its slots */
    /* rows of A as pieces of K: `taps` pieces of `piece` values that lie in a row; piece 0: they lie in no
       such order */
    int64_t taps, piece;
    /* A's window: how far K moves its places */
    int64_t low_k[HONE_MAX_BOUNDED], high_k[HONE_MAX_BOUNDED];
    bool plane; /* one row of A a batch and columns in a window: depthwise, plane by plane */
} hone_match_contraction;
/* `follows`: the stage after it runs on its finished blocks; `begun`: whoever runs it says where rows of A
   are. False: it is something else. */
bool hone_match_contraction_of(const hone_sized *, int stage, bool follows, bool begun,
                               hone_match_contraction *out);
bool hone_match_depends(const hone_affine_load *,
                        int slot); /* does an index move a load, or decide whether it is inside? */
#endif
