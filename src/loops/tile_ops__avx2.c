/* SPDX-License-Identifier: Apache-2.0
   tile_ops__avx2: tile operations for x86-64 with AVX2, FMA and F16C. Empty elsewhere. */
#if defined(__x86_64__)
#define LEVEL avx2
#include "loops/tile_ops.inc"
#else
typedef int hone_tile_ops_none;
#endif
