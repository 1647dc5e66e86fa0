/* SPDX-License-Identifier: Apache-2.0
   pool_i8__base: the largest of rows of bytes for what every CPU of the architecture has: NEON, SSE2 or
   neither. */
#define BYTES 16
#define ISA base
#include "kernels/ref/pool_i8.inc"
