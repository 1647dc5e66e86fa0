/* SPDX-License-Identifier: Apache-2.0
   depthwise_rows__avx2: channels-last depthwise convolution for AVX2. Empty on other architectures. */
#if defined(__x86_64__)
#define VW 8
#define ISA avx2
#include "kernels/ref/depthwise_rows.inc"
#else
typedef int hone_depthwise_rows__avx2_not_here;
#endif
