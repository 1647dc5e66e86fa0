/* SPDX-License-Identifier: Apache-2.0
   finish_i32__base: sums of 8-bit products as floats, for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/finish_i32.inc"
