/* SPDX-License-Identifier: Apache-2.0
   bind: a plan in the making. Private to plan/, but for host steps, which run/ executes. */
#ifndef HONE_PLAN_BIND_H
#define HONE_PLAN_BIND_H
#include "plan/plan.h"

enum { MAX_WANTED = 64, MAX_CUTS = 256 };
#define ARENA_SLOT(depth) (b->n_in + (depth)) /* slot whose base is the arena of that stretch */

typedef enum { HONE_OPERAND_ABSENT, HONE_OPERAND_TENSOR, HONE_OPERAND_SLOT, HONE_OPERAND_INPUT, HONE_OPERAND_CONST } hone_operand_kind;
typedef struct {
    hone_operand_kind kind;
    int slot;
    hone_fact fact;
    const hone_value *constant;
} hone_host_operand;
typedef struct {
    const hone_compiled *compiled;
    const hone_node *node;
    int number;
    hone_host_fn *host;
    hone_host_operand *in, *out;
    hone_ref *ref; /* in, then out */
} hone_host_step;

typedef struct level level;
struct level { /* a graph being bound: the outermost, or a branch bound in place */
    const hone_compiled *c;
    level *outer;
    bool top;
    hone_bound_var *var;
    const int64_t *values; /* of the dims table */
    bool whole;            /* all that quiet nodes ask for are numbers */
    bool empty;            /* an input has no elements: expressions divide by dims as if they were not 0, so nothing goes by formula */
};
typedef struct {
    hone_steps steps;
    hone_arena *scratch;
    hone_shelf *shelf;
    const hone_plan *after;
    bool interpret, *out_taken;
    int n_in, n_out, n_slot, inlined;
    int cut; /* node where the plan ends, -1 */
    hone_vid wanted[MAX_WANTED];
    int n_wanted;
} binder;
#endif
