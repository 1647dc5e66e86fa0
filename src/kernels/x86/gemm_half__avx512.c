/* SPDX-License-Identifier: Apache-2.0
   gemm_half, AVX-512 alone: halves widened to f32. 32 registers: 24 sums, 2 of B; A from memory. Empty on
   other architectures. */
#if defined(__AVX512F__)
#define VW 16
#define ISA avx512
#define CPU HONE_CPU_AVX512
#define MR 12
#define NR 32
#include "kernels/ref/gemm_half_wide.inc"
#else
typedef int hone_gemm_half__avx512_not_here;
#endif
