/* SPDX-License-Identifier: Apache-2.0
   pool_i8__avx512: the largest of rows of bytes for AVX-512. Empty on other architectures. */
#if defined(__x86_64__)
#define BYTES 64
#define ISA avx512
#include "kernels/ref/pool_i8.inc"
#else
typedef int hone_pool_i8__avx512_not_here;
#endif
