/* SPDX-License-Identifier: Apache-2.0
   tile_ops__base: tile operations for the plain architecture. */
#define LEVEL base
#include "loops/tile_ops.inc"
