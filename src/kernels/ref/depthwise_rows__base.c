/* SPDX-License-Identifier: Apache-2.0
   depthwise_rows__base: channels-last depthwise convolution for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/depthwise_rows.inc"
