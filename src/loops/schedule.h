/* SPDX-License-Identifier: Apache-2.0
   schedule: how a stage, or a few that run together, is laid over a device's threads: data, chosen by rules from sizes and strides, checked for
   legality whoever chose it. What is printed of it is print_kernel.c's matter. */
#ifndef HONE_LOOPS_SCHEDULE_H
#define HONE_LOOPS_SCHEDULE_H
#include "loops/instance.h"
#include "loops/tile_know.h"

typedef enum {
    HONE_EACH,   /* a thread a place of the domain; a reduction is serial in it */
    HONE_LANES,  /* `lanes` threads share each reduction; what they have meets in a tree */
    HONE_SLICES, /* two passes: work-groups reduce slices into scratch, then lanes reduce those */
    HONE_OWNERS, /* a scatter whose targets may collide: threads walk it in its own order, each storing only what it owns */
    HONE_ROWS    /* a work-group a place of the outer indices that several stages share; the rest is spread over its threads */
} hone_schedule_kind;
typedef struct {
    uint8_t kind;
    int n_stage;              /* how many stages run in the kernel, one after another */
    int threads, lanes;       /* of a work-group; that share a reduction */
    int64_t slices;           /* SLICES: of each reduction */
    int64_t owners;           /* OWNERS: threads a place of the grid's indices */
    int8_t order[HONE_SLOTS]; /* places in the (first) stage's domain that the grid walks, the last one fastest; never the over index */
    int n_order;
    bool narrow;  /* counts fit 32 bits */
    bool chunked; /* a thread's sum is long: every 64 terms are summed by themselves first */
    bool whole;   /* one thread does it all, in order: it reads what it writes */
    /* ROWS: of each of its stages, which index of its domain stands for outer place q. In the arena of whoever made it. */
    const int8_t *outer;
} hone_schedule;

/* The rule's choice for the stages from `stage` on. */
hone_status hone_schedule_choose(hone_arena *, const hone_instance *, int stage, const hone_param *, const int64_t *stride, int max_threads,
                                 int units, hone_schedule *out) HONE_CHECKED;
/* NULL, or why it cannot be run so. */
const char *hone_schedule_illegal(const hone_instance *, int stage, const hone_param *, const int64_t *stride, int max_threads,
                                  const hone_schedule *);
#endif
