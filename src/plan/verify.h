/* SPDX-License-Identifier: Apache-2.0
   verify: see verify.c. */
#ifndef HONE_PLAN_VERIFY_H
#define HONE_PLAN_VERIFY_H
#include "plan/plan.h"

/* HONE_OK, or HONE_BUG and the first thing that is wrong: a step's access outside of its memory, a read of
   what nobody wrote or of what was overwritten, results that overlap while both are needed, a write where
   none may be, an output or a value past a segment break that is not there. `input`: the facts that the plan
   was bound for. */
hone_status hone_plan_verify(const hone_compiled *, const hone_fact *input, const hone_plan *) HONE_CHECKED;
/* Are plans to be verified when they are made? $HONE_VERIFY is 1; or the library was built without NDEBUG,
   and it is not 0. */
bool hone_verify_wanted(void);
/* Guard mode, $HONE_GUARD is 1: every block has an allocation of its own, just as large as what is used of
   it and filled with ones (NaN, to floats) before each run, because an arena hides from sanitizers who reads
   or writes past the end of a block, or what nobody wrote. */
bool hone_guard_wanted(void);
enum { HONE_GUARD_FILL = 0xff };
#endif
