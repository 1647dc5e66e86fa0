/* SPDX-License-Identifier: Apache-2.0
   match_table: a stage whose value is a function of one byte and of constants, whatever stands in between
   (activations, scales, clamps, casts): 256 values say all of it. */
#ifndef HONE_LOOPS_MATCH_TABLE_H
#define HONE_LOOPS_MATCH_TABLE_H
#include "loops/match_affine.h"

/* Where the numbers of a tensor are, if they are constant and may be looked at; else NULL. `of` is given. */
typedef const void *hone_constant_seen(const void *of, int tensor);
/* Whether expression x is the byte that a table is of: called for every part of the stage's value, from its
   root on, until it says so. */
typedef bool hone_table_is(void *of, int32_t x);
/* Which of the instance's expressions are the byte. NULL: the value is no such function, or there is no
   memory. */
const bool *hone_match_table_of(hone_arena *, const hone_sized *, const hone_slots_of *, int stage,
                                hone_constant_seen *, const void *constants, hone_table_is *, void *of);
#endif
