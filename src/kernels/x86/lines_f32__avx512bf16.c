/* SPDX-License-Identifier: Apache-2.0
   lines_f32__avx512bf16: lines of depthwise convolution for AVX-512 that rounds to bf16 itself. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512bf16
#include "kernels/ref/lines_f32.inc"
#else
typedef int hone_lines_f32__avx512bf16_not_here;
#endif
