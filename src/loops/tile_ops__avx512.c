/* SPDX-License-Identifier: Apache-2.0
   tile_ops__avx512: tile operations for x86-64 with AVX-512 (F BW DQ VL). Empty elsewhere. */
#if defined(__x86_64__)
#define LEVEL avx512
#include "loops/tile_ops.inc"
#else
typedef int hone_tile_ops_none;
#endif
