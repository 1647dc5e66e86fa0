/* SPDX-License-Identifier: Apache-2.0
   epilogue_f32__avx512: what follows a sum, at the CPU level in the name. */
#if defined(__x86_64__)
#define ISA avx512
#include "kernels/ref/epilogue_f32.inc"
#else
typedef int hone_epilogue_f32__avx512_not_here;
#endif
