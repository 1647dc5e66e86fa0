/* SPDX-License-Identifier: Apache-2.0
   rotary_f32__base: rotary positions for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/rotary_f32.inc"
