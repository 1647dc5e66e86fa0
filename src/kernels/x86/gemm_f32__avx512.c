/* SPDX-License-Identifier: Apache-2.0
   gemm_f32__avx512: the micro-kernel for AVX-512. 32 registers: 24 sums, 3 or 4 of B, one of A. Empty on
   other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512
#define CPU HONE_CPU_AVX512
#define ROWS1 8
#define ROWS2 8
#define ROWS3 8
#define ROWS4 6
#define LANES 0
#include "kernels/ref/gemm_f32.inc"
#else
typedef int hone_gemm_f32__avx512_not_here;
#endif
