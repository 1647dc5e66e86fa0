/* SPDX-License-Identifier: Apache-2.0
   ordered: NEON instructions that stay where they are written. What a core makes of a loop is decided by
   where its loads and its counting stand (gemm_f32.inc says how much), and compilers move both; each of
   these is a line of assembly instead. For kernels of aarch64. */
#ifndef HONE_KERNELS_ARM_ORDERED_H
#define HONE_KERNELS_ARM_ORDERED_H
#include <stdint.h>

typedef uint8_t hone_vector_anywhere __attribute__((vector_size(16), aligned(1), may_alias));
#define HONE_FETCH(v, p) \
    __asm__ volatile("ldr %q0, %1" : "=w"(v) : "m"(*(const hone_vector_anywhere *)(const void *)(p)))
#define HONE_TIMES_LANE(s, b, a, q) \
    __asm__ volatile("fmla %0.4s, %1.4s, %2.s[" #q "]" : "+w"(s) : "w"(b), "w"(a))
/* by: a constant, of bytes where x is a pointer */
#define HONE_ADVANCE(x, by) __asm__ volatile("add %0, %0, %1" : "+r"(x) : "i"(by))
#define HONE_PREFETCH(p, at) __asm__ volatile("prfm pldl1keep, [%0, %x1]" : : "r"(p), "rZ"((ptrdiff_t)(at)))
#endif
