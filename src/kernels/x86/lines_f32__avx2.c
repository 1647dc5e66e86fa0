/* SPDX-License-Identifier: Apache-2.0
   lines_f32__avx2: lines of depthwise convolution for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/lines_f32.inc"
#else
typedef int hone_lines_f32__avx2_not_here;
#endif
