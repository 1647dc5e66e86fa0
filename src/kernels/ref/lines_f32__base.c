/* SPDX-License-Identifier: Apache-2.0
   lines_f32__base: lines of depthwise convolution for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#if defined(__aarch64__)
#include "kernels/ref/lines_direct.inc"
#else
#include "kernels/ref/lines_f32.inc"
#endif
