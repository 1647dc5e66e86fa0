/* SPDX-License-Identifier: Apache-2.0
   finish_i32__avx512: sums of 8-bit products as floats, for AVX-512. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512
#include "kernels/ref/finish_i32.inc"
#else
typedef int hone_finish_i32__avx512_not_here;
#endif
