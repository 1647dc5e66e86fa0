/* SPDX-License-Identifier: Apache-2.0
   rotary_f32__avx512: rotary positions for AVX-512. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512
#include "kernels/ref/rotary_f32.inc"
#else
typedef int hone_rotary_f32__avx512_not_here;
#endif
