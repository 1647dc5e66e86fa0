/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, any machine: one group of four at a time, in plain C. The slow twin of the others, and not meant
   to be fast. */
#include "kernels/gemm.h"

#define VW 4
#include "kernels/ref/vec.inc"
#define MR 4
#define NR 8
#define ISA base
#define UNSIGNED 1
typedef uint32_t ivec __attribute__((vector_size(16))); /* unsigned: sums wrap */
typedef struct {
    ivec q[4];
} bvec;
typedef bvec avec;
INLINE ivec zero_sums(void) { return (ivec){0}; }
INLINE uint32_t widened(uint8_t v, bool is_signed) { return is_signed ? (uint32_t)(int8_t)v : v; }
INLINE bvec load_b(const uint8_t *p, bool u) {
    bvec v;
    for (int q = 0; q < 4; q++)
        v.q[q] = (ivec){widened(p[q], u), widened(p[4 + q], u), widened(p[8 + q], u), widened(p[12 + q], u)};
    return v;
}
INLINE avec load_a(const int8_t *p, bool u) {
    avec v;
    for (int q = 0; q < 4; q++) v.q[q] = (ivec){0} + widened((uint8_t)p[q], !u);
    return v;
}
INLINE ivec dot(ivec s, bvec b, avec a, bool u) {
    (void)u;
    for (int q = 0; q < 4; q++) s += b.q[q] * a.q[q];
    return s;
}
INLINE void store_sums(int32_t *p, ivec s) { memcpy(p, &s, sizeof s); }
#include "kernels/ref/gemm_i8.inc"
