/* SPDX-License-Identifier: Apache-2.0
   rewrite: what passes share. Private to passes. */
#ifndef HONE_PASSES_REWRITE_H
#define HONE_PASSES_REWRITE_H
#include "ir/graph.h"

/* Readers of one var made readers of another, gathered and done at the end. Needs the graph's index as it was
   at the start; nodes keep their numbers. */
typedef struct {
    hone_graph *graph;
    hone_vid *to;
    uint8_t *is_output;
} hone_renames;
bool hone_renames_open(hone_renames *, hone_graph *); /* false: no memory */
hone_vid hone_renames_now(hone_renames *, hone_vid);  /* what this var is by now; -1 stays -1 */
/* y is the same as x, and who makes y may go: true. A graph output keeps its name: then who makes x makes y
   instead; where that cannot be (x is a graph input, a constant, or an output too) the answer is false and
   nothing has changed. */
bool hone_rename(hone_renames *, hone_vid y, hone_vid x);
void hone_renames_close(hone_renames *); /* rewrites the operands of all nodes */

/* A constant's var from a value; takes the reference. */
void hone_var_fix(hone_var *, hone_value *take);
#endif
