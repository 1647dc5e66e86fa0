/* SPDX-License-Identifier: Apache-2.0
   gemm_i8, AMX: tdpbsud adds products of 64 i8 of A and 64 u8 of B to each sum, tdpbusd of u8 and i8. Tiles
   as in gemm_bf16__amx.c: four of sums, two of A, two of B. A panel's rows past m are there, as zeros; sums
   of such rows go to a place of their own. Empty on other architectures. */
#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#include "kernels/gemm.h"

enum { MR = 32, NR = 32, DEEP = 64 };
hone_gemm_i8_fn hone_gemm_i8_32x32__amx, hone_gemm_u8_32x32__amx;
hone_gemm_u8_direct_fn hone_gemm_u8_direct__amx;

/* rows 0 … m-1 of a tile register, and not the others */
#define PUT(number, at)                                                                 \
    do {                                                                                \
        if (m >= 16) _tile_stored(number, at, c_stride * 4);                            \
        else {                                                                          \
            _tile_stored(number, some, 64);                                             \
            for (int i = 0; i < m; i++) memcpy((at) + i * c_stride, some + 16 * i, 64); \
        }                                                                               \
    } while (0)

#define DOT(to, a, b)                  \
    do {                               \
        if (u) _tile_dpbusd(to, a, b); \
        else _tile_dpbsud(to, a, b);   \
    } while (0)

/* two: more than 16 rows; wide: more than 16 columns. Constants at every call, as u is. */
static inline __attribute__((always_inline)) void block(bool u, bool two, bool wide, int m, int64_t groups,
                                                        const void *rows, ptrdiff_t a_step, ptrdiff_t a_next,
                                                        const uint8_t *b, int32_t *c, ptrdiff_t c_stride) {
    const int8_t *a = rows; /* rows a_step bytes apart, groups of DEEP a_next */
    int32_t some[16 * 16];
    _tile_zero(0);
    if (wide) _tile_zero(1);
    if (two) _tile_zero(2);
    if (two && wide) _tile_zero(3);
    for (int64_t p = 0; p < groups; p += DEEP / 4, a += a_next, b += NR * DEEP) {
        _tile_loadd(4, b, NR * 4);
        _tile_loadd(6, a, a_step);
        DOT(0, 6, 4);
        if (wide) _tile_loadd(5, b + 64, NR * 4);
        if (wide) DOT(1, 6, 5);
        if (!two) continue;
        _tile_loadd(7, a + 16 * a_step, a_step);
        DOT(2, 7, 4);
        if (wide) DOT(3, 7, 5);
    }
    PUT(0, c);
    if (wide) PUT(1, c + 16);
    if (!two) return;
    m -= 16, c += 16 * c_stride;
    PUT(2, c);
    if (wide) PUT(3, c + 16);
}
void hone_gemm_i8_32x32__amx(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                             ptrdiff_t c_stride) {
    if (m > 16) block(false, true, true, m, groups, a, DEEP, MR * DEEP, b, c, c_stride);
    else block(false, false, true, m, groups, a, DEEP, MR * DEEP, b, c, c_stride);
}
void hone_gemm_u8_32x32__amx(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                             ptrdiff_t c_stride) {
    if (m > 16) block(true, true, true, m, groups, a, DEEP, MR * DEEP, b, c, c_stride);
    else block(true, false, true, m, groups, a, DEEP, MR * DEEP, b, c, c_stride);
}
void hone_gemm_u8_direct__amx(int m, int64_t groups, const uint8_t *a, ptrdiff_t a_step, const uint8_t *b,
                              int n, int32_t *c, ptrdiff_t c_stride) {
    if (m > 16 && n > 16) block(true, true, true, m, groups, a, a_step, DEEP, b, c, c_stride);
    else if (m > 16) block(true, true, false, m, groups, a, a_step, DEEP, b, c, c_stride);
    else if (n > 16) block(true, false, true, m, groups, a, a_step, DEEP, b, c, c_stride);
    else block(true, false, false, m, groups, a, a_step, DEEP, b, c, c_stride);
}
#else
typedef int hone_gemm_i8__amx_not_here;
#endif
