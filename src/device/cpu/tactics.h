/* SPDX-License-Identifier: Apache-2.0
   tactics: the ways in which the CPU can do stages of an instance, as a table: what each may take, what it
   would cost by estimate, and how it is bound. Private to device/cpu. */
#ifndef HONE_DEVICE_CPU_TACTICS_H
#define HONE_DEVICE_CPU_TACTICS_H
#include "device/cpu/cpu.h"

typedef struct {
    const char *name;
    /* How many stages it may do from this one on, seen at a glance; 0: they are not of its form. Binding has
       the last word: what is declined there goes to the next one. */
    int (*applies)(const hone_cpu_call *, int stage);
    hone_tactic_bind *bind;
    /* What it costs, in nanoseconds of one core: so much at all, for each point of a stage's loops and for
       each value of its results; the latter two of one lane, where vectors have several. */
    double once, point, result;
} hone_tactic;
typedef struct {
    const hone_tactic *tactic;
    double ns;
} hone_candidate;
enum { HONE_MOST_CANDIDATES = 24 };
/* The tactics that may do stages from this one on, the cheapest first. What one does fewer stages than
   another is compared with what the rest would cost besides. */
int hone_tactics_for(const hone_cpu_call *, int stage, hone_candidate *out /* HONE_MOST_CANDIDATES */);
/* For each stage which tactic does it, and which others could, with their estimates: as text. */
hone_status hone_tactics_tell(const hone_cpu_call *, hone_text *) HONE_CHECKED;
#endif
