/* SPDX-License-Identifier: Apache-2.0
   flush: whether numbers below the smallest normal one count as zero, in the calling thread. A multiply-add
   that meets one takes a hundred times as long on many CPUs, and trained weights do have some: one layer of
   a text reader took two thirds of its time for 3530 of them. Steps that are sums of products run so
   (step.h). */
#ifndef HONE_BASE_FLUSH_H
#define HONE_BASE_FLUSH_H
#include <stdint.h>
#if defined(__x86_64__)
#include <xmmintrin.h>
static inline uint64_t hone_float_mode(void) { return _mm_getcsr(); }
static inline void hone_float_set(uint64_t mode) { _mm_setcsr((unsigned)mode); }
#define HONE_FLUSH 0x8040u /* results, and operands */
#elif defined(__aarch64__)
static inline uint64_t hone_float_mode(void) {
    uint64_t mode;
    __asm__ volatile("mrs %0, fpcr" : "=r"(mode));
    return mode;
}
static inline void hone_float_set(uint64_t mode) {
    __asm__ volatile("msr fpcr, %0" : : "r"(mode) : "memory");
}
#define HONE_FLUSH (1u << 24) /* not of halves: theirs begin at 6e-5, and are no slower */
#else
static inline uint64_t hone_float_mode(void) { return 0; }
static inline void hone_float_set(uint64_t mode) { (void)mode; }
#define HONE_FLUSH 0u
#endif
#endif
