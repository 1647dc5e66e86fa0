/* SPDX-License-Identifier: Apache-2.0
   spaces: what a session keeps on its devices: a queue each, and, where a device has memory of its own, arenas, a table of bases, and copies to it, from it and between two. */
#ifndef HONE_RUN_SPACES_H
#define HONE_RUN_SPACES_H
#include "plan/plan.h"

typedef struct hone_spaces hone_spaces;
/* Queues are opened now, so that a device that cannot be had is an error now. */
hone_status hone_spaces_create(const hone_compiled *, const hone_units *, hone_spaces **out) HONE_CHECKED;
void hone_spaces_destroy(hone_spaces *); /* NULL is fine */
/* All that a stretch wants of other memories is there: its arenas, constants, what was computed when it was made. first_slot: the base of slot 0. */
hone_status hone_spaces_prepare(hone_spaces *, const hone_plan *, int first_slot) HONE_CHECKED;
void hone_spaces_set(hone_spaces *, int unit, int32_t base, void *handle); /* after hone_spaces_prepare */
hone_queue *hone_spaces_queue(const hone_spaces *, int unit);
/* The bases of a unit; host: those of the host's memory. */
void *const *hone_spaces_bases(const hone_spaces *, int unit, void **host);
/* A step that is a copy from one memory to another. */
hone_status hone_spaces_copy(hone_spaces *, const hone_step *, void *const *host) HONE_CHECKED;
/* All queues are done: the first message of what failed there. */
hone_status hone_spaces_wait(hone_spaces *) HONE_CHECKED;
#endif
