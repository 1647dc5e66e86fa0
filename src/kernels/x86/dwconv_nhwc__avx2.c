/* SPDX-License-Identifier: Apache-2.0
   dwconv_nhwc__avx2: channels-last depthwise convolution for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/dwconv_nhwc.inc"
#else
typedef int hone_dwconv_nhwc__avx2_not_here;
#endif
