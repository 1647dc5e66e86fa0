/* SPDX-License-Identifier: Apache-2.0
   driver: one OpenCL device through the ICD loader, which is opened at run time: memory, an in-order queue,
   programs, launches, times. No header or library of OpenCL is needed to build. Knows nothing about what
   kernels compute. */
#ifndef HONE_DEVICE_OPENCL_DRIVER_H
#define HONE_DEVICE_OPENCL_DRIVER_H
#include "base/mem.h"

typedef struct hone_opencl hone_opencl;
typedef struct {
    char name[128], platform[128], version[160], driver[96]; /* as the platform writes them */
    bool gpu, f64, f16;
    bool exact_division; /* f32 division and square roots can be asked to round correctly */
    bool little_endian;
    int units, max_threads, arg_bytes, alignment; /* alignment: of a buffer, in bytes */
    uint64_t memory_bytes, largest_bytes, shared_bytes;
} hone_opencl_facts;
typedef struct hone_opencl_memory hone_opencl_memory;   /* a buffer: an opaque handle, no address */
typedef struct hone_opencl_program hone_opencl_program; /* several kernels, compiled together */
typedef struct hone_opencl_kernel hone_opencl_kernel;

/* Devices of all platforms, in their order, are numbered from 0. HONE_NOT_SUPPORTED where there is no loader
   or no such device. */
int hone_opencl_count(void);
hone_status hone_opencl_open(int ordinal, hone_opencl **out) HONE_CHECKED;
void hone_opencl_close(hone_opencl *); /* NULL is fine */
const hone_opencl_facts *hone_opencl_facts_of(const hone_opencl *);

hone_status hone_opencl_memory_make(hone_opencl *, uint64_t bytes, hone_opencl_memory **out) HONE_CHECKED;
void hone_opencl_memory_free(hone_opencl *, hone_opencl_memory *);
hone_status hone_opencl_copy_in(hone_opencl *, hone_opencl_memory *to, uint64_t at, const void *from,
                                uint64_t bytes) HONE_CHECKED; /* waits */
/* waits */
hone_status hone_opencl_copy_out(hone_opencl *, void *to, hone_opencl_memory *from, uint64_t at,
                                 uint64_t bytes) HONE_CHECKED;
hone_status hone_opencl_copy(hone_opencl *, hone_opencl_memory *to, uint64_t to_at, hone_opencl_memory *from,
                             uint64_t at, uint64_t bytes) HONE_CHECKED; /* in the queue */

/* Compiled from its text, or taken from the cache on disk, whose key is text, device and driver; a damaged
   file is compiled anew. cache: a folder, or NULL: none. */
hone_status hone_opencl_build(hone_opencl *, const char *text, const char *cache,
                              hone_opencl_program **out) HONE_CHECKED;
void hone_opencl_program_free(hone_opencl_program *);
hone_status hone_opencl_kernel_make(hone_opencl_program *, const char *name,
                                    hone_opencl_kernel **out) HONE_CHECKED;
void hone_opencl_kernel_free(hone_opencl_kernel *);
/* of a buffer: its handle */
hone_status hone_opencl_set(hone_opencl_kernel *, int k, uint64_t bytes, const void *value) HONE_CHECKED;
hone_status hone_opencl_set_memory(hone_opencl_kernel *, int k, hone_opencl_memory *) HONE_CHECKED;
/* In the queue. seconds: NULL, or the launch's time, for which it waits. */
hone_status hone_opencl_launch(hone_opencl *, hone_opencl_kernel *, uint64_t groups, int threads,
                               double *seconds) HONE_CHECKED;
hone_status hone_opencl_wait(hone_opencl *) HONE_CHECKED; /* for all that was asked of the queue */
#endif
