/* SPDX-License-Identifier: Apache-2.0
   pool_f32__base: pools of rows for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/pool_f32.inc"
