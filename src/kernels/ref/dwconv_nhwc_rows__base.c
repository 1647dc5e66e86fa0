/* SPDX-License-Identifier: Apache-2.0
   dwconv_nhwc_rows__base: lines of depthwise convolution for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#if defined(__aarch64__)
#include "kernels/ref/dwconv_nhwc_rows_direct.inc"
#else
#include "kernels/ref/dwconv_nhwc_rows.inc"
#endif
