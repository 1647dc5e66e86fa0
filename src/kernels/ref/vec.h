/* SPDX-License-Identifier: Apache-2.0
   vec: the few words of vector arithmetic that the portable kernels are written in. One source, compiled once an ISA level.

   The including file sets VW, the floats in a vector, to what its compile flags make one register. Sums and products are the operators
   of the language; the kernels are compiled with contraction on, so a * b + c is one fused instruction where the ISA has it. Only here
   does a line name an instruction set: where it can load and store part of a register, which the language cannot say. */
#ifndef HONE_KERNELS_REF_VEC_H
#define HONE_KERNELS_REF_VEC_H
#include <stdbool.h>
#include <stdint.h>
#include <string.h>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

typedef float vec __attribute__((vector_size(VW * 4)));

#define INLINE static inline __attribute__((always_inline))

/* Before a loop of constant bounds over an array of registers: it must vanish, or the registers live in memory. Not under sanitizers,
   whose checks in thousands of unrolled lines take clang 14 minutes to compile. */
#if defined(__SANITIZE_ADDRESS__)
#define FULL
#elif defined(__clang__)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define FULL
#else
#define FULL _Pragma("clang loop unroll(full)")
#endif
#else
#define FULL _Pragma("GCC unroll 64")
#endif

/* No alignment asked: memcpy of a whole register is one unaligned move. */
INLINE vec load(const float *p) {
    vec v;
    memcpy(&v, p, sizeof v);
    return v;
}
INLINE void store(float *p, vec v) { memcpy(p, &v, sizeof v); }
INLINE vec splat(float x) { return x * ((vec){0} + 1.0f); }

/* The value, held in a register: gcc 12 else repeats a load in every instruction that uses it, and loads are what depthwise is short of. */
INLINE vec keep(vec v) {
#if defined(__AVX512F__)
    __asm__("" : "+v"(v));
#elif defined(__x86_64__)
    __asm__("" : "+x"(v));
#elif defined(__aarch64__)
    __asm__("" : "+w"(v));
#endif
    return v;
}

/* load_some: the first n floats, 0 <= n <= VW, zeros behind them. store_some: the first n floats. Nothing else is touched. */
#if VW == 16 && defined(__AVX512F__)
INLINE vec load_some(const float *p, int64_t n) { return (vec)_mm512_maskz_loadu_ps((__mmask16)((1u << n) - 1), p); }
INLINE void store_some(float *p, vec v, int64_t n) { _mm512_mask_storeu_ps(p, (__mmask16)((1u << n) - 1), (__m512)v); }
#elif VW == 8 && defined(__AVX2__)
INLINE __m256i first(int64_t n) { return _mm256_cmpgt_epi32(_mm256_set1_epi32((int)n), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7)); }
INLINE vec load_some(const float *p, int64_t n) { return (vec)_mm256_maskload_ps(p, first(n)); }
INLINE void store_some(float *p, vec v, int64_t n) { _mm256_maskstore_ps(p, first(n), (__m256)v); }
#else
INLINE vec load_some(const float *p, int64_t n) {
    float t[VW] = {0};
    for (int64_t i = 0; i < VW; i++)
        if (i < n) t[i] = p[i];
    return load(t);
}
INLINE void store_some(float *p, vec v, int64_t n) {
    for (int64_t i = 0; i < VW; i++)
        if (i < n) p[i] = v[i];
}
#endif

/* every second float: of s[0 … 2n-2], the first n at even places, n <= VW; no float behind the last is read */
#if VW == 16
#define EVEN_ODD 0, 2, 4, 6, 8, 10, 12, 14, 17, 19, 21, 23, 25, 27, 29, 31
#elif VW == 8
#define EVEN_ODD 0, 2, 4, 6, 9, 11, 13, 15
#else
#define EVEN_ODD 0, 2, 5, 7
#endif
INLINE vec even_odd(vec a, vec b) { /* the even places of a, then the odd ones of b */
#if defined(__clang__)
    return __builtin_shufflevector(a, b, EVEN_ODD);
#else
    typedef int32_t ivec __attribute__((vector_size(VW * 4)));
    return __builtin_shuffle(a, b, (ivec){EVEN_ODD});
#endif
}
INLINE vec load_even(const float *s) { return even_odd(load(s), load(s + VW - 1)); }
INLINE vec load_even_some(const float *s, int64_t n) {
    const int64_t m = 2 * n - 1;
    return m <= VW ? even_odd(load_some(s, m), (vec){0}) : even_odd(load(s), load_some(s + VW - 1, m - VW + 1));
}
#endif
