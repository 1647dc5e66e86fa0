/* SPDX-License-Identifier: Apache-2.0
   devices: the rows of the table, ours and those that were added. Rows are never taken away, so who has found
   one needs no lock. */
#include <fnmatch.h>
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "device/printed.h"

enum { MOST_ROWS = 32 };
extern const hone_device hone_device_cpu;                   /* cpu/team.c */
extern hone_printed hone_printed_cuda, hone_printed_opencl; /* cuda/row.c, opencl/row.c */
static _Atomic(const hone_device *) rows[MOST_ROWS + 1] = {&hone_device_cpu, &hone_printed_cuda.row,
                                                           &hone_printed_opencl.row};
static pthread_mutex_t adding = PTHREAD_MUTEX_INITIALIZER;
const hone_units hone_units_cpu = {.unit = {{&hone_device_cpu, 0}}, .n = 1};

const hone_device *hone_devices(int k) { return k < 0 || k >= MOST_ROWS ? NULL : atomic_load(rows + k); }
const hone_device *hone_device_find(const char *name) {
    for (int k = 0; hone_devices(k); k++)
        if (!strcmp(hone_devices(k)->name, name)) return hone_devices(k);
    return NULL;
}
static bool is_name(const char *name) { /* letters, digits and _ */
    if (!name || !*name || strlen(name) > 32) return false;
    return strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(name);
}
hone_status hone_devices_add(const hone_device *d) {
    const int own = !!d->alloc + !!d->free + !!d->copy_in + !!d->copy_out + !!d->wait;
    if (!is_name(d->name)) return hone_fail(HONE_BAD_INPUT, "a device's name is up to 32 of a-z, 0-9 and _");
    if (!d->bind || !d->open || !d->close || !d->run || (own && own != 5))
        return hone_fail(HONE_BAD_INPUT, "device '%s' lacks functions that every device has", d->name);
    pthread_mutex_lock(&adding);
    int n = 0;
    while (n < MOST_ROWS && hone_devices(n)) n++;
    hone_status s =
        hone_device_find(d->name) ? hone_fail(HONE_BAD_INPUT, "there is a device '%s' already", d->name)
        : n == MOST_ROWS
            ? hone_fail(HONE_NOT_SUPPORTED, "there are %d devices already: no room for '%s'", n, d->name)
            : HONE_OK;
    if (!s) atomic_store(rows + n, d);
    pthread_mutex_unlock(&adding);
    return s;
}
int hone_units_place(const hone_units *u, const char *node) {
    for (int k = u->n_rule - 1; k >= 0; k--)
        if (!fnmatch(u->rule[k].nodes, node, 0)) return u->rule[k].unit;
    return u->rest;
}
