/* SPDX-License-Identifier: Apache-2.0
   resident: constants, and their packed forms, in the memories of devices: one copy a model and device,
   whatever sessions use it. Thread-safe. */
#ifndef HONE_DEVICE_RESIDENT_H
#define HONE_DEVICE_RESIDENT_H
#include "device/device.h"

typedef struct hone_residents hone_residents;  /* one a compiled model */
hone_residents *hone_residents_create(void);   /* NULL: no memory */
void hone_residents_destroy(hone_residents *); /* NULL is fine; no queue may be left that reads them */
void hone_residents_empty(hone_residents *);
/* The handle of a constant (a base below 0) on a device, copied there by this queue the first time, and there
   when it returns. */
hone_status hone_resident_get(hone_residents *, const hone_unit *, hone_queue *, hone_packs *, int32_t base,
                              void **handle) HONE_CHECKED;
#endif
