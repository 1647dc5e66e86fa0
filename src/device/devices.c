/* SPDX-License-Identifier: Apache-2.0
   devices: the rows of the table. */
#include <string.h>

#include "device/device.h"

extern const hone_device hone_device_cpu; /* cpu/team.c */
static const hone_device *const rows[] = {&hone_device_cpu, NULL};

const hone_device *hone_devices(int k) { return k < 0 || k >= (int)(sizeof rows / sizeof *rows) ? NULL : rows[k]; }
const hone_device *hone_device_find(const char *name) {
    for (int k = 0; rows[k]; k++)
        if (!strcmp(rows[k]->name, name)) return rows[k];
    return NULL;
}
