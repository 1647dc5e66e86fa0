/* SPDX-License-Identifier: Apache-2.0
   replayed: how long a step's kernels take on a device that records launches: they are recorded many times
   over and replayed behind themselves, so that no launch is seen and each finds the one before it ending, as
   in a run. What they write over is put back before each, and the time of that taken off. */
#ifndef HONE_DEVICE_REPLAYED_H
#define HONE_DEVICE_REPLAYED_H
#include "device/printed.h"

typedef struct { /* bytes that a step both reads and writes */
    void *memory;
    int64_t at, bytes;
} hone_replayed_range;
typedef struct {
    const hone_printed_driver *driver;
    void *queue;
    const hone_replayed_range *range; /* n of them, kept one after another in `kept` */
    int n;
    void *kept;
    int64_t launches; /* of one repeat */
    hone_status (*launch)(void *arg);
    void *arg;
} hone_replayed;
/* Ranges of a step that are read and written, into room for `most`; more than that: -1. */
int hone_replayed_ranges(const hone_step *, void *const *base, hone_replayed_range *, int most);
/* They were just launched once, with results that stay as they are. *seconds: of one repeat, once `about` it
 * is known to take so long. */
hone_status hone_replayed_time(const hone_replayed *, double about, double *seconds) HONE_CHECKED;
#endif
