/* SPDX-License-Identifier: Apache-2.0
   cell_f32__avx2: ends of recurrent steps for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/cell_f32.inc"
#else
typedef int hone_cell_f32__avx2_not_here;
#endif
