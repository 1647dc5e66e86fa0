/* SPDX-License-Identifier: Apache-2.0
   winograd_f32__avx2: the transforms of 3x3 convolutions for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/winograd_f32.inc"
#else
typedef int hone_winograd_f32__avx2_not_here;
#endif
