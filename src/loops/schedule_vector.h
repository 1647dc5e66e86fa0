/* SPDX-License-Identifier: Apache-2.0
   schedule_vector: which loads of stages that run in one kernel, and whether what they store, lie side by
   side along the fastest index: then a thread may have several neighbouring places. */
#ifndef HONE_LOOPS_SCHEDULE_VECTOR_H
#define HONE_LOOPS_SCHEDULE_VECTOR_H
#include "base/mem.h"
#include "loops/instance.h"

enum { HONE_VECTORED = 6 }; /* loads at most; others are read one by one */
typedef struct {
    int32_t load[HONE_VECTORED];
    int n, most; /* places that an access of 16 bytes has; 8 at most */
    bool even;   /* rows begin at multiples of an access */
    bool across; /* all other loads read one element for all of these places */
} hone_vectors;
/* fastest: its place in the domain. vector: places that a thread shall have, or 0. False: none, or not so
   many. */
bool hone_vector_find(hone_arena *, const hone_instance *, int stage, int n_stage, const hone_param *,
                      const int64_t *stride, int fastest, int vector, hone_vectors *out);
#endif
