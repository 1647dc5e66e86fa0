/* SPDX-License-Identifier: Apache-2.0
   slices: rows of weights times slices of pixels, which lie anywhere and may overlap (device/cpu/planes.c). Where an ISA multiplies by one lane
   of a register, weights that are stored value by value of K are two loads for eight rows; gemm's own form, a broadcast a row, is twice as slow
   there. Pure arithmetic.

        c[i][c_from + j]  =  sum over p < k of  turned[p * HONE_GEMM_TURNED(m) + i] * b[at_b[p] + j],     i < m, j < n

   then as gemm.h says where `finish` is set. The same order of sums as gemm's, so the same bits. Of a part m (1 … 8), n (1 … 12), k, turned, at_b,
   b, c, c_from and what finishing takes count. Slices are read in whole vectors. */
#ifndef HONE_KERNELS_SLICES_H
#define HONE_KERNELS_SLICES_H
#include "kernels/gemm.h"

enum { HONE_SLICES_ROWS = 8, HONE_SLICES_COLUMNS = 12 };
typedef struct hone_slices {
    const char *name;
    uint32_t cpu;
    hone_gemm_f32_fn *run;
} hone_slices;
extern const hone_slices hone_slices_list[]; /* slowest first; ends with a NULL name. Empty where no lane multiplies */
const hone_slices *hone_slices_best(void);   /* or NULL */
#endif
