/* SPDX-License-Identifier: Apache-2.0
   activate_f32__avx512: activations for AVX-512. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512
#include "kernels/ref/activate_f32.inc"
#else
typedef int hone_activate_f32__avx512_not_here;
#endif
