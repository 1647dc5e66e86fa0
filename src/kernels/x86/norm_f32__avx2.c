/* SPDX-License-Identifier: Apache-2.0
   norm_f32__avx2: normalized rows for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/norm_f32.inc"
#else
typedef int hone_norm_f32__avx2_not_here;
#endif
