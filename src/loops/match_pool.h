/* SPDX-License-Identifier: Apache-2.0
   match_pool: the largest value of each window over images, or their average, in the stages of an instance,
   whatever op they come from. Averages divide by the window's size, or by how many of its places are inside
   of the image. A pure function of a bound instance; says nothing about which kernel is good. */
#ifndef HONE_LOOPS_MATCH_POOL_H
#define HONE_LOOPS_MATCH_POOL_H
#include "loops/match_affine.h"

typedef enum { HONE_POOL_LARGEST, HONE_POOL_AVERAGE_INSIDE, HONE_POOL_AVERAGE_ALL } hone_pool_kind;
enum { HONE_POOL_Y, HONE_POOL_X, HONE_POOL_SIDES };
typedef struct { /* lines, or pixels of a line */
    int64_t size, out, kernel, stride, dilation;
    int64_t pad;            /* places before the first: the window of the first output begins there */
    int64_t step_x, step_y; /* elements of x from one to the next, and of y */
} hone_pool_side;
typedef struct {
    hone_pool_kind kind;
    int stages;                             /* so many, from the first on */
    int x, y;                               /* tensors */
    int64_t images, image_x, image_y;       /* how many; elements from one to the next in x and y */
    int64_t channels, channel_x, channel_y; /* likewise */
    hone_pool_side side[HONE_POOL_SIDES];
} hone_match_pool;
/* False: it is something else, or its images have more or fewer than two sides. */
bool hone_match_pool_of(const hone_sized *, int stage, hone_match_pool *out);
#endif
