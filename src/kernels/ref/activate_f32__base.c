/* SPDX-License-Identifier: Apache-2.0
   activate_f32__base: activations for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/activate_f32.inc"
