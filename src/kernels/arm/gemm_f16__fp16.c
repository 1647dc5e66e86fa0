/* SPDX-License-Identifier: Apache-2.0
   gemm_f16, NEON with fp16. Empty on other architectures. */
#if defined(__ARM_FEATURE_FP16_VECTOR_ARITHMETIC)
#define ISA fp16
#define CPU HONE_CPU_FP16
#define FHM 0
#include "kernels/arm/gemm_f16.inc"
#else
typedef int hone_gemm_f16__fp16_not_here;
#endif
