/* SPDX-License-Identifier: Apache-2.0
   dwconv_nhwc_rows__avx2: lines of depthwise convolution for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/dwconv_nhwc_rows.inc"
#else
typedef int hone_dwconv_nhwc_rows__avx2_not_here;
#endif
