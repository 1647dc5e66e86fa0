/* SPDX-License-Identifier: Apache-2.0
   finish_i32__avx2: sums of 8-bit products as floats, for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/finish_i32.inc"
#else
typedef int hone_finish_i32__avx2_not_here;
#endif
