/* SPDX-License-Identifier: Apache-2.0
   activate_f32__avx2: activations for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/activate_f32.inc"
#else
typedef int hone_activate_f32__avx2_not_here;
#endif
