/* SPDX-License-Identifier: Apache-2.0
   depthwise_f32__base: depthwise convolution for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/depthwise_f32.inc"
