/* SPDX-License-Identifier: Apache-2.0
   dwconv_nchw__base: depthwise convolution for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/dwconv_nchw.inc"
