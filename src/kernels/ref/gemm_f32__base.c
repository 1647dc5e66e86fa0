/* SPDX-License-Identifier: Apache-2.0
   gemm_f32__base: the micro-kernel for what every CPU of the architecture has: SSE2 on x86-64, NEON on
   aarch64. */
#define VW 4
#define ISA base
#define CPU 0
#define ROWS1 8
#if defined(__aarch64__)
/* 32 registers: transposed rows have 24 sums and what two steps have of A and B. By four vectors rows are
   taken as they lie. */
#define ROWS2 8
#define ROWS3 8
#define DIRECT3 6
#define ROWS4 5
#define WIDEST 3
#define LANES 1
#else
/* 16 registers: 12 sums, 2 of B, one of A, one for the product, which is not fused here */
#define ROWS2 6
#define LANES 0
#endif
#include "kernels/ref/gemm_f32.inc"
