/* SPDX-License-Identifier: Apache-2.0
   gemm_f16, NEON with fp16 and fmlal. Empty on other architectures. */
#if defined(__ARM_FEATURE_FP16_FML)
#define ISA fhm
#define CPU (HONE_CPU_FP16 | HONE_CPU_FHM)
#define FHM 1
#include "kernels/arm/gemm_f16.inc"
#else
typedef int hone_gemm_f16__fhm_not_here;
#endif
