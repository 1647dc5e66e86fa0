/* SPDX-License-Identifier: Apache-2.0
   staging: copies between a caller's memory, which may be anywhere and change at any time, and the GPU, by
   way of a little host memory that is pinned. Copies in come back as soon as their bytes are in that memory,
   so a run waits once, for its results. Larger ones go in pieces: one is on its way while the host copies
   the next; the largest results are left to the driver.

   Two halves take turns. The marks of the stream say when a half has been sent. */
#ifndef HONE_DEVICE_CUDA_STAGING_H
#define HONE_DEVICE_CUDA_STAGING_H
#include "device/cuda/driver.h"

typedef struct {
    hone_cuda *gpu;
    char *at;        /* both halves, then a word */
    size_t used;     /* bytes of the half at hand that are on their way */
    int half;        /* the one at hand */
    bool away;       /* the other one may still be on its way */
    uint32_t *asked; /* where the word goes after the next wait; NULL: nobody asked */
} hone_staging;
/* The calling thread has entered the GPU, here and below. */
hone_status hone_staging_begin(hone_cuda *, hone_staging *) HONE_CHECKED;
void hone_staging_end(hone_staging *); /* nothing is on its way */
hone_status hone_staging_send(hone_staging *, hone_cuda_address to, const void *from,
                              size_t bytes) HONE_CHECKED;
/* waits for all */
hone_status hone_staging_fetch(hone_staging *, void *to, hone_cuda_address from, size_t bytes) HONE_CHECKED;
/* *to: after the next wait, or fetch */
hone_status hone_staging_peek(hone_staging *, hone_cuda_address from, uint32_t *to) HONE_CHECKED;
hone_status hone_staging_wait(hone_staging *) HONE_CHECKED;
#endif
