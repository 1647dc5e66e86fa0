/* SPDX-License-Identifier: Apache-2.0
   dwconv_nhwc__avx512bf16: channels-last depthwise convolution for AVX-512 that rounds to bf16 itself.
   Empty on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512bf16
#include "kernels/ref/dwconv_nhwc.inc"
#else
typedef int hone_dwconv_nhwc__avx512bf16_not_here;
#endif
