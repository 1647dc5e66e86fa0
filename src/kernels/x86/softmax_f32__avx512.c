/* SPDX-License-Identifier: Apache-2.0
   softmax_f32__avx512: rows of softmax for AVX-512. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512
#include "kernels/ref/softmax_f32.inc"
#else
typedef int hone_softmax_f32__avx512_not_here;
#endif
