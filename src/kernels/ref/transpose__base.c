/* SPDX-License-Identifier: Apache-2.0
   transpose: bytes turned around, 16 x 16 at a time: four times every row is interleaved with the one eight further. */
#include <string.h>

#include "kernels/gemm.h"
#if defined(__SSE2__)
#include <emmintrin.h>
typedef __m128i bytes;
#define LOW(a, b) _mm_unpacklo_epi8(a, b)
#define HIGH(a, b) _mm_unpackhi_epi8(a, b)
#elif defined(__ARM_NEON)
#include <arm_neon.h>
typedef uint8x16_t bytes;
#define LOW(a, b) vzip1q_u8(a, b)
#define HIGH(a, b) vzip2q_u8(a, b)
#endif
enum { SIDE = 16 };
#if defined(LOW)
static void square(const uint8_t *from, ptrdiff_t from_step, uint8_t *to, ptrdiff_t to_step) {
    bytes r[SIDE], t[SIDE];
    for (int i = 0; i < SIDE; i++) memcpy(r + i, from + i * from_step, SIDE);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < SIDE / 2; i++) t[2 * i] = LOW(r[i], r[i + SIDE / 2]), t[2 * i + 1] = HIGH(r[i], r[i + SIDE / 2]);
        memcpy(r, t, sizeof r);
    }
    for (int i = 0; i < SIDE; i++) memcpy(to + i * to_step, r + i, SIDE);
}
#else
static void square(const uint8_t *from, ptrdiff_t from_step, uint8_t *to, ptrdiff_t to_step) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) to[j * to_step + i] = from[i * from_step + j];
}
#endif
void hone_transpose_bytes(int64_t m, int64_t n, const uint8_t *from, ptrdiff_t from_step, uint8_t *to, ptrdiff_t to_step) {
    for (int64_t j = 0; j < n; j += SIDE)
        for (int64_t i = 0; i < m; i += SIDE) {
            const uint8_t *a = from + i * from_step + j;
            uint8_t *b = to + j * to_step + i;
            if (i + SIDE <= m && j + SIDE <= n) square(a, from_step, b, to_step);
            else
                for (int64_t q = 0; q < SIDE && j + q < n; q++)
                    for (int64_t p = 0; p < SIDE && i + p < m; p++) b[q * to_step + p] = a[p * from_step + q];
        }
}
