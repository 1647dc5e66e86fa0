/* SPDX-License-Identifier: Apache-2.0
   direct_conv: rows of weights times slices of pixels, which lie anywhere and may overlap
   (device/cpu/direct_conv.c). Where an ISA multiplies by one lane of a register, weights that are stored
   value by value of K are two loads for eight rows; gemm's own form, a broadcast a row, is twice as slow
   there. Pure arithmetic.

        c[i][c_from + j]  =  sum over p < k of  packed_a[p * HONE_GEMM_PACKED_M(m) + i] * b[at_b[p] + j]
                                                                                                 i < m, j < n

   then as gemm.h says where `epilogue` is set. The same order of sums as gemm's, so the same bits. Of a part
   m (1 … 8), n (1 … 12), k, packed_a, at_b, b, c, c_from and what the epilogue takes count. Slices are read
   in whole vectors. */
#ifndef HONE_KERNELS_DIRECT_CONV_H
#define HONE_KERNELS_DIRECT_CONV_H
#include "kernels/gemm.h"

enum { HONE_DIRECT_CONV_ROWS = 8, HONE_DIRECT_CONV_COLUMNS = 12 };
typedef struct hone_direct_conv_f32 {
    const char *name;
    uint32_t cpu;
    hone_gemm_f32_fn *run;
} hone_direct_conv_f32;
const hone_direct_conv_f32 *hone_direct_conv_f32_best(void); /* NULL where no lane multiplies */
#endif
