/* SPDX-License-Identifier: Apache-2.0
   captured: segments whose launches a device has recorded (a CUDA graph), so that one call starts them all.
   It knows neither steps nor kernels: a run is known by a key, all numbers that decide what its launches are
   (the segment, the address of every base, scratch). Equal keys, equal launches: so memory may move and
   plans may go, and what was recorded of them is not found again, no more.

   The first two runs of a key launch plainly, the third records; HONE_CAPTURE=n makes it the n-th, 0 never.
   A queue has at most 16 graphs: the least recently used makes room, but not for one that comes round less
   often than it does. */
#ifndef HONE_DEVICE_CAPTURED_H
#define HONE_DEVICE_CAPTURED_H
#include "base/mem.h"

/* what a device must be able to do. Nothing that waits or allocates is asked of the queue between begin and
   end */
typedef struct {
    hone_status (*begin)(void *queue);             /* what comes now is recorded and not run */
    hone_status (*end)(void *queue, void **graph); /* recording is over, also where it failed */
    hone_status (*replay)(void *queue, void *graph);
    void (*free)(void *queue, void *graph);
} hone_capture;

enum {
    HONE_MOST_CAPTURED = 16,
    HONE_CAPTURE_LEAST = 3 /* launches: below that a graph costs more than it saves */
};
typedef hone_vec(uint64_t) hone_capture_key;
typedef struct hone_captured hone_captured;
hone_captured *hone_captured_create(const hone_capture *, void *queue); /* NULL: no memory */
void hone_captured_destroy(hone_captured *);                            /* NULL is fine */
/* Runs what `launch` launches, plainly or from what was recorded. What cannot be recorded is launched, now
   and from then on. */
hone_status hone_captured_run(hone_captured *, const hone_capture_key *, hone_status (*launch)(void *),
                              void *arg) HONE_CHECKED;
int hone_captured_graphs(const hone_captured *);
#endif
