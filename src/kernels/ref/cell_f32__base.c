/* SPDX-License-Identifier: Apache-2.0
   cell_f32__base: ends of recurrent steps for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/cell_f32.inc"
