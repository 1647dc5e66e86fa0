/* SPDX-License-Identifier: Apache-2.0
   gemm_bf16, AVX512-BF16: vdpbf16ps adds two products to each sum. 32 registers: 28 sums, 2 of B, one of A. Empty on other architectures. */
#if defined(__x86_64__)
#include "base/thread.h"
#include "kernels/gemm_bf16.h"

#define VW 16
#include "kernels/ref/vec.inc"
#include "kernels/x86/narrow_bf16.inc"
#define ISA avx512bf16
#define CPU (HONE_CPU_AVX512 | HONE_CPU_AVX512BF16)
#define MR 14
#define NR 32
typedef __m512i bvec, avec;
INLINE bvec load_b(const uint16_t *p) { return _mm512_loadu_si512(p); }
INLINE avec load_a(const uint16_t *p) {
    int32_t two;
    memcpy(&two, p, sizeof two);
    return _mm512_set1_epi32(two);
}
INLINE vec dot(vec s, bvec b, avec a) { return (vec)_mm512_dpbf16_ps((__m512)s, (__m512bh)b, (__m512bh)a); }
#include "kernels/ref/gemm_bf16.inc"
#else
typedef int hone_gemm_bf16__avx512bf16_not_here;
#endif
