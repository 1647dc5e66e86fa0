/* SPDX-License-Identifier: Apache-2.0
   units: the devices of a session, as a user names them. */
#ifndef HONE_RUN_UNITS_H
#define HONE_RUN_UNITS_H
#include "device/device.h"

/* device: "plain:1", or NULL: the CPU. place: lines "PATTERN=DEVICE", or NULL. *out NULL: the CPU alone. */
hone_status hone_units_make(const char *device, const char *place, hone_units **out) HONE_CHECKED;
/* "plain:1" alone. */
hone_status hone_unit_find(const char *device, hone_unit *out) HONE_CHECKED;
/* Whether these devices can be asked for a precision: never silently something else. units NULL: the CPU. */
hone_status hone_units_precision(const hone_units *, hone_dtype precision) HONE_CHECKED;
void hone_units_free(hone_units *); /* NULL is fine */
#endif
