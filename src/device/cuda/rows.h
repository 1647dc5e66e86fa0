/* SPDX-License-Identifier: Apache-2.0
   rows: norms, softmax and reductions along rows on an NVIDIA GPU: the ways in which one can be done, what
   each would cost, how its kernel (src/kernels/cuda/rows.cu) is printed and launched. */
#ifndef HONE_DEVICE_CUDA_ROWS_H
#define HONE_DEVICE_CUDA_ROWS_H
#include "device/cuda/driver.h"
#include "device/cuda/print.h"

typedef struct {
    hone_cuda_row_kind kind;
    hone_cuda_type in, out;
    const char *before, *after; /* expressions of v, see rows.cu */
    hone_cuda_rows p;           /* addresses and pitches too: alignment decides how wide a load is */
} hone_cuda_rowwise;
typedef struct {
    int width, vectors;   /* elements of a load; loads that a thread keeps in registers */
    int threads, at_once; /* of a row; rows of a block */
    int is_long;          /* a row is more than its threads keep: it is read for every pass */
    int blocks;           /* on a multiprocessor at least */
} hone_cuda_rows_way;

/* there is always one */
int hone_cuda_rows_ways(const hone_cuda_rowwise *r, hone_cuda_rows_way *way, int most);
/* microseconds, about */
double hone_cuda_rows_cost(const hone_cuda_rowwise *r, const hone_cuda_facts *gpu,
                           const hone_cuda_rows_way *way);
hone_cuda_rows_way hone_cuda_rows_best(const hone_cuda_rowwise *r, const hone_cuda_facts *gpu);
/* the kernel is hone_rows */
hone_status hone_cuda_rows_print(hone_text *out, const hone_cuda_rowwise *r, const hone_cuda_rows_way *way);
hone_cuda_launch_shape hone_cuda_rows_launch(const hone_cuda_rowwise *r, const hone_cuda_rows_way *way);
#endif
