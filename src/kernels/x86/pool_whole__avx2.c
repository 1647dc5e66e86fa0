/* SPDX-License-Identifier: Apache-2.0
   pool_whole__avx2: sums and blends of integers for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define BYTES 32
#define ISA avx2
#include "kernels/ref/pool_whole.inc"
#else
typedef int hone_pool_whole__avx2_not_here;
#endif
