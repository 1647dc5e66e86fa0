/* SPDX-License-Identifier: Apache-2.0
   dwconv_i8, NEON with i8mm: usdot has u8 of pixels, which are mostly that. */
#if defined(__ARM_FEATURE_MATMUL_INT8)
#define ISA i8mm
#define DOT "usdot"
#include "kernels/arm/dwconv_i8.inc"
#else
typedef int hone_empty; /* another architecture */
#endif
