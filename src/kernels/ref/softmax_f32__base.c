/* SPDX-License-Identifier: Apache-2.0
   softmax_f32__base: rows of softmax for what every CPU of the architecture has. */
#define VW 4
#define ISA base
#include "kernels/ref/softmax_f32.inc"
