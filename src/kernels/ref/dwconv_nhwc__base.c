/* SPDX-License-Identifier: Apache-2.0
   dwconv_nhwc__base: channels-last depthwise convolution for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/dwconv_nhwc.inc"
