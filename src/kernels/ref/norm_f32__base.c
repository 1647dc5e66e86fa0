/* SPDX-License-Identifier: Apache-2.0
   norm_f32__base: normalized rows for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/norm_f32.inc"
