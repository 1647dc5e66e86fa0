/* SPDX-License-Identifier: Apache-2.0
   epilogue_f32__base: what follows a sum, at the CPU level in the name. */
#define ISA base
#include "kernels/ref/epilogue_f32.inc"
