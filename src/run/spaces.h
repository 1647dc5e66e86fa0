/* SPDX-License-Identifier: Apache-2.0
   spaces: what a session keeps on its devices: a queue each, and, where a device has memory of its own,
   arenas, a table of bases, and copies to it, from it and between two. */
#ifndef HONE_RUN_SPACES_H
#define HONE_RUN_SPACES_H
#include "plan/plan.h"

static inline hone_status hone_run_no_memory(void) {
    return hone_fail(HONE_NO_MEMORY, "no memory for a run");
}
typedef struct hone_spaces hone_spaces;
/* bytes that runs have copied: from the host to devices and back, from one device to another, inside of one;
   constants, which are brought once a model */
typedef struct hone_copied {
    int64_t in, out, across, within, constants;
} hone_copied;
/* Queues are opened now, so that a device that cannot be had is an error now. */
hone_status hone_spaces_create(const hone_compiled *, const hone_units *, hone_copied *,
                               hone_spaces **out) HONE_CHECKED; /* adds to the count, which outlives it */
void hone_spaces_destroy(hone_spaces *);                        /* NULL is fine */
/* All that a plan segment wants of other memories is there: its arenas, constants, what was computed when it
   was made. first_slot: the base of slot 0. */
hone_status hone_spaces_prepare(hone_spaces *, const hone_plan *, int first_slot) HONE_CHECKED;
void hone_spaces_set(hone_spaces *, int unit, int32_t base, void *handle); /* after hone_spaces_prepare */
hone_queue *hone_spaces_queue(const hone_spaces *, int unit);
/* The bases of a unit; host: those of the host's memory. */
void *const *hone_spaces_bases(const hone_spaces *, int unit, void **host);
/* A step that is a copy from one memory to another. */
hone_status hone_spaces_copy(hone_spaces *, const hone_step *, void *const *host) HONE_CHECKED;
/* A tensor as a value of its own in the memory of a unit with memory of its own: what lies at a ref there; or
   what the host has. */
hone_status hone_spaces_take(hone_spaces *, int unit, hone_ref, const hone_fact *,
                             hone_value **out) HONE_CHECKED;
hone_status hone_spaces_bring(hone_spaces *, int unit, const hone_value *host, hone_value **out) HONE_CHECKED;
/* a copy on the host */
hone_status hone_spaces_fetch(hone_spaces *, const hone_value *there, hone_value **host) HONE_CHECKED;
/* Pieces of tensors, each on the host or on a device of the session. It is done when this returns. */
hone_status hone_spaces_move(hone_spaces *, const hone_pieces_move *) HONE_CHECKED;
/* where it lies: 0, the host's memory; -1: on no device of the session */
int hone_spaces_unit(const hone_spaces *, const hone_value *);
/* All queues are done: the first message of what failed there. */
hone_status hone_spaces_wait(hone_spaces *) HONE_CHECKED;
#endif
