/* SPDX-License-Identifier: Apache-2.0
   gemm_f32__avx512: the micro-kernel for AVX-512. 32 registers: 28 sums, 2 of B, 2 of A. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512
#define MR 14
#define NR 32
#define LANES 0
#include "kernels/ref/gemm_f32.inc"
#else
typedef int hone_gemm_f32__avx512_not_here;
#endif
