/* SPDX-License-Identifier: Apache-2.0
   gemm_f32__avx2: the micro-kernel for AVX2 with FMA. 16 registers: 12 sums, 2 of B, one of A. Empty on other
   architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#define CPU HONE_CPU_AVX2
#define ROWS1 8
#define ROWS2 6
#define LANES 0
#include "kernels/ref/gemm_f32.inc"
#else
typedef int hone_gemm_f32__avx2_not_here;
#endif
