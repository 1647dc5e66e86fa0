/* SPDX-License-Identifier: Apache-2.0
   schedule: how a stage, or a few that run together, is laid over a device's threads: data, chosen by rules
   from sizes and strides, checked for legality whoever chose it. What is printed of it is print_kernel.c's
   matter. */
#ifndef HONE_LOOPS_SCHEDULE_H
#define HONE_LOOPS_SCHEDULE_H
#include "loops/schedule_product.h"
#include "loops/schedule_rows.h"
#include "loops/schedule_vector.h"

enum { HONE_GRID_INDICES = 40 /* of one stage, at most */, HONE_TILED = 2 /* loads through shared memory */ };
typedef enum {
    HONE_EACH,   /* a thread a place of the domain; a reduction is serial in it */
    HONE_LANES,  /* `lanes` threads share each reduction; what they have meets in a tree */
    HONE_SLICES, /* two passes: work-groups reduce slices into scratch, then lanes reduce those */
    /* a scatter whose targets may collide: threads walk it in its own order, each storing only what it
       owns */
    HONE_OWNERS,
    HONE_TILES, /* read along one index, written along another: tiles of 32 x 32 go through shared memory */
    /* `lanes` threads a place of the outer indices that several stages share; the rest is spread over
       them */
    HONE_ROWS,
    HONE_BLOCKS /* a sum of products in blocks, through shared memory and registers */
} hone_schedule_kind;
typedef struct {
    uint8_t kind;
    int n_stage;        /* how many stages run in the kernel, one after another */
    int threads, lanes; /* of a work-group; that share a reduction */
    int unroll;         /* EACH: places a thread, a work-group's width apart */
    /* EACH: places a thread, side by side along the last of `order`; the loads that are one access then */
    int vector;
    int32_t vectored[HONE_VECTORED];
    int n_vectored;
    int64_t slices; /* SLICES: of each reduction */
    int64_t owners; /* OWNERS: threads a place of the grid's indices */
    /* places in the (first) stage's domain that the grid walks, the last one fastest; never the over index */
    int8_t order[HONE_GRID_INDICES];
    int n_order;
    bool narrow;                /* counts fit 32 bits */
    bool chunked;               /* a thread's sum is long: every 64 terms are summed by themselves first */
    bool whole;                 /* one thread does it all, in order: it reads what it writes */
    hone_rows rows;             /* ROWS */
    hone_product_blocks blocks; /* BLOCKS */
    /* TILES: the index along which the loads `tiled` lie in memory; the target lies along the last of
       `order` */
    int8_t across;
    int32_t tiled[HONE_TILED];
    int n_tiled;
} hone_schedule;

/* What a device, or a tuner, wants of the choice. A wish that is not possible for a stage is not heard. */
typedef struct {
    int max_threads; /* of a work-group */
    int units;       /* work-groups that run at a time, about: how far long sums are cut */
    int kind;        /* 1 + hone_schedule_kind that is wished; 0: by rule */
    int lanes;       /* with LANES, SLICES, ROWS; 0: by rule */
    int64_t slices;
    int unroll;             /* EACH; 0: by rule */
    int vector;             /* likewise */
    hone_blocks_for blocks; /* by rule, and of which shape; NONE: only where its kind is wished */
} hone_schedule_wish;
/* The choice for the stages from `stage` on, by rule where nothing is wished. */
hone_status hone_schedule_choose(hone_arena *, const hone_instance *, int stage, const hone_param *,
                                 const int64_t *stride, const hone_schedule_wish *,
                                 hone_schedule *out) HONE_CHECKED;
/* NULL, or why it cannot be run so. */
const char *hone_schedule_illegal(const hone_instance *, int stage, const hone_param *, const int64_t *stride,
                                  int max_threads, const hone_schedule *);
#endif
