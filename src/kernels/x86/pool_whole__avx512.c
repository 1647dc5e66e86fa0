/* SPDX-License-Identifier: Apache-2.0
   pool_whole__avx512: sums and blends of integers for AVX-512. Empty on other architectures. */
#if defined(__x86_64__)
#define BYTES 64
#define ISA avx512
#include "kernels/ref/pool_whole.inc"
#else
typedef int hone_pool_whole__avx512_not_here;
#endif
