/* SPDX-License-Identifier: Apache-2.0
   cell_f32__avx512: ends of recurrent steps for AVX-512. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512
#include "kernels/ref/cell_f32.inc"
#else
typedef int hone_cell_f32__avx512_not_here;
#endif
