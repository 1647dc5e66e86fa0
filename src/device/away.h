/* SPDX-License-Identifier: Apache-2.0
   away: tensors whose bytes lie in the memory of a device. The host sees their type and shape. */
#ifndef HONE_DEVICE_AWAY_H
#define HONE_DEVICE_AWAY_H
#include "base/value.h"
#include "device/device.h"

struct hone_away {
    hone_unit unit;
    void *handle;
    /* NULL: it was allocated here; else the memory is somebody else's, who is told */
    void (*release)(void *);
    void *owner;
};
hone_status hone_away_tensor(const hone_unit *, hone_dtype, const int64_t *dims, int rank,
                             hone_value **out) HONE_CHECKED; /* contents: anything */
/* A tensor over somebody's memory, who is told when it is no longer used; on failure he is not. */
hone_status hone_away_borrow(const hone_unit *, hone_dtype, const int64_t *dims, int rank, void *handle,
                             void (*release)(void *), void *owner, hone_value **out) HONE_CHECKED;
/* Dense bytes of a device's memory, from a byte on, as a tensor of its own. */
hone_status hone_away_copy(const hone_unit *, hone_dtype, const int64_t *dims, int rank, void *handle,
                           int64_t at, hone_value **out) HONE_CHECKED;
/* Does it lie there? unit NULL, or one with the host's memory: on the host. */
bool hone_away_is(const hone_value *, const hone_unit *);
/* A copy elsewhere, wherever it was. */
hone_status hone_away_bring(const hone_value *, const hone_unit *, hone_value **out) HONE_CHECKED;
#endif
