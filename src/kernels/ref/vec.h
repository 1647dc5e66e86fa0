/* SPDX-License-Identifier: Apache-2.0
   vec: the few words of vector arithmetic that the portable kernels are written in. One source, compiled once an ISA level.

   The including file sets VW, the floats in a vector, to what its compile flags make one register. Sums and products are the operators
   of the language; the kernels are compiled with contraction on, so a * b + c is one fused instruction where the ISA has it. */
#ifndef HONE_KERNELS_REF_VEC_H
#define HONE_KERNELS_REF_VEC_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

typedef float vec __attribute__((vector_size(VW * 4)));

#define INLINE static inline __attribute__((always_inline))

/* before a loop of constant bounds over an array of registers: it must vanish, or the registers live in memory */
#if defined(__clang__)
#define FULL _Pragma("clang loop unroll(full)")
#else
#define FULL _Pragma("GCC unroll 32")
#endif

/* No alignment asked: memcpy of a whole register is one unaligned move. */
INLINE vec load(const float *p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void store(float *p, vec v) { memcpy(p, &v, sizeof v); }
#endif
