/* SPDX-License-Identifier: Apache-2.0
   dwconv_i8, NEON with dotprod: sdot adds four products of i8 and i8 to each of four sums. */
#if defined(__ARM_FEATURE_DOTPROD)
#define ISA dotprod
#define DOT "sdot"
#include "kernels/arm/dwconv_i8.inc"
#else
typedef int hone_empty; /* another architecture */
#endif
