/* SPDX-License-Identifier: Apache-2.0
   dwconv_nchw__avx2: depthwise convolution for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/dwconv_nchw.inc"
#else
typedef int hone_dwconv_nchw__avx2_not_here;
#endif
