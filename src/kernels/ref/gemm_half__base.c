/* SPDX-License-Identifier: Apache-2.0
   gemm_half, any machine: the slow twin of the others. */
#define VW 4
#define ISA base
#define CPU 0
#define MR 4
#define NR 8
#include "kernels/ref/gemm_half_wide.inc"
