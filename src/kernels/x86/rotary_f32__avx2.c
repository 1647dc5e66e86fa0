/* SPDX-License-Identifier: Apache-2.0
   rotary_f32__avx2: rotary positions for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/rotary_f32.inc"
#else
typedef int hone_rotary_f32__avx2_not_here;
#endif
