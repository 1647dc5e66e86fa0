/* SPDX-License-Identifier: Apache-2.0
   winograd_f32__avx512: the transforms of 3x3 convolutions for AVX-512. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512
#include "kernels/ref/winograd_f32.inc"
#else
typedef int hone_winograd_f32__avx512_not_here;
#endif
