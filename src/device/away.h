/* SPDX-License-Identifier: Apache-2.0
   away: tensors whose bytes lie in the memory of a device. The host sees their type and shape. */
#ifndef HONE_DEVICE_AWAY_H
#define HONE_DEVICE_AWAY_H
#include "base/value.h"
#include "device/device.h"

struct hone_away {
    hone_unit unit;
    void *handle;
};
hone_status hone_away_tensor(const hone_unit *, hone_dtype, const int64_t *dims, int rank,
                             hone_value **out) HONE_CHECKED; /* contents: anything */
/* Does it lie there? unit NULL, or one with the host's memory: on the host. */
bool hone_away_is(const hone_value *, const hone_unit *);
/* A copy elsewhere, wherever it was. */
hone_status hone_away_bring(const hone_value *, const hone_unit *, hone_value **out) HONE_CHECKED;
#endif
