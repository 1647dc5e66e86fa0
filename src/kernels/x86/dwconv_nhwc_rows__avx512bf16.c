/* SPDX-License-Identifier: Apache-2.0
   dwconv_nhwc_rows__avx512bf16: lines of depthwise convolution for AVX-512 that rounds to bf16 itself. Empty
   on other architectures. */
#if defined(__x86_64__)
#define VW 16
#define ISA avx512bf16
#define FLOATS_BY hone_dwconv_nhwc_rows__avx512
#include "kernels/ref/dwconv_nhwc_rows.inc"
#else
typedef int hone_dwconv_nhwc_rows__avx512bf16_not_here;
#endif
