/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, AVX-512 without bf16: widened to f32. 32 registers: 24 sums, 4 of B, 2 of A. Empty on other architectures. */
#if defined(__AVX512F__)
#define VW 16
#define ISA avx512
#define CPU HONE_CPU_AVX512
#define MR 12
#define NR 32
#include "kernels/ref/gemm_bf16_wide.inc"
#else
typedef int hone_gemm_bf16__avx512_not_here;
#endif
