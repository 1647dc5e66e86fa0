/* SPDX-License-Identifier: Apache-2.0
   gemm_f32__base: the micro-kernel for what every CPU of the architecture has: SSE2 on x86-64, NEON on aarch64. */
#define VW 4
#define ISA base
#if defined(__aarch64__)
/* 32 registers: 24 sums, 3 of B, 2 of A */
#define MR 8
#define NR 12
#define LANES 1
#else
/* 16 registers: 12 sums, 2 of B, one of A, one for the product, which is not fused here */
#define MR 6
#define NR 8
#define LANES 0
#endif
#include "kernels/ref/gemm_f32.inc"
