/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, AVX2: bf16 widened to f32. 16 registers: 8 sums, 4 of B, 2 of A. Empty on other architectures. */
#if defined(__AVX2__)
#define VW 8
#define ISA avx2
#define CPU HONE_CPU_AVX2
#define MR 4
#define NR 16
#include "kernels/ref/gemm_bf16_wide.inc"
#else
typedef int hone_gemm_bf16__avx2_not_here;
#endif
