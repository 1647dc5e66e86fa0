/* SPDX-License-Identifier: Apache-2.0
   pool_i8__avx2: the largest of rows of bytes for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define BYTES 32
#define ISA avx2
#include "kernels/ref/pool_i8.inc"
#else
typedef int hone_pool_i8__avx2_not_here;
#endif
