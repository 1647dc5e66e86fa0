/* SPDX-License-Identifier: Apache-2.0
   dwconv_nhwc__bf16: channels-last depthwise convolution for NEON that rounds to bf16 itself. Empty on
   other architectures. */
#if defined(__ARM_FEATURE_BF16_VECTOR_ARITHMETIC)
#define VW 4
#define ISA bf16
#include "kernels/ref/dwconv_nhwc.inc"
#else
typedef int hone_dwconv_nhwc__bf16_not_here;
#endif
