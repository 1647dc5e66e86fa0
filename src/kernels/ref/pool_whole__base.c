/* SPDX-License-Identifier: Apache-2.0
   pool_whole__base: sums and blends of integers for what every CPU of the architecture has. */
#define BYTES 16
#define ISA base
#include "kernels/ref/pool_whole.inc"
