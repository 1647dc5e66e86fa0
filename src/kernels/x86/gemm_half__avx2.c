/* SPDX-License-Identifier: Apache-2.0
   gemm_half, AVX2 and F16C: halves widened to f32. 16 registers: 12 sums, 2 of B, one of A. Empty on other
   architectures. */
#if defined(__AVX2__)
#define VW 8
#define ISA avx2
#define CPU HONE_CPU_AVX2
#define MR 6
#define NR 16
#include "kernels/ref/gemm_half_wide.inc"
#else
typedef int hone_gemm_half__avx2_not_here;
#endif
