/* SPDX-License-Identifier: Apache-2.0
   exec: runs a compiled graph: plans by shape, arenas, values between host steps. One at a time; a session
   has one, and one for each body it has run. */
#ifndef HONE_RUN_EXEC_H
#define HONE_RUN_EXEC_H
#include "plan/plan.h"

typedef struct hone_exec hone_exec;
enum { HONE_BUSY = HONE_PROFILE_BUSY };
typedef struct {
    int threads, plans;
    bool interpret;
    /* 1: each step is timed, on one thread; 2: on as many as a run has; HONE_BUSY: so too, but what the
       busiest member had of a core, which other work on the machine does not spoil; HONE_PROFILE_REPLAYED
       (device.h) */
    int profile;
    /* a run that takes longer fails at its next step or tile; 0: no limit */
    int64_t limit_ms;
    int64_t limit_bytes;              /* a run whose tensors need more is refused; 0: no limit */
    const struct hone_wisdom *wisdom; /* outlives it; or NULL */
    hone_dtype precision;             /* as in hone_bind_options */
    const char *keep_f32;             /* likewise; it outlives it */
    const hone_units *units;          /* as in hone_bind_options; they outlive it, and bodies run there too */
    bool stay;                        /* outputs are left on the device that made them, */
    int read;                         /* but for the first so many */
    struct hone_copied *copied;       /* of a body: where its outermost run counts; NULL: here */
} hone_exec_options;
hone_status hone_exec_create(const hone_compiled *, const hone_exec_options *, hone_exec **out) HONE_CHECKED;
void hone_exec_destroy(hone_exec *);
/* in[k]: dense values, NULL where an optional one is left out. out[k]: NULL, or a tensor to be filled;
   receives references. */
hone_status hone_exec_run(hone_exec *, hone_value *const *in, hone_value **out) HONE_CHECKED;
const hone_plan *hone_exec_last(
    const hone_exec *); /* the first plan segment of the last run; NULL before any */
int hone_exec_plans(const hone_exec *);
/* by the last run, with its bodies (spaces.h) */
const struct hone_copied *hone_exec_copied(const hone_exec *);
#endif
