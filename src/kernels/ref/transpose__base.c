/* SPDX-License-Identifier: Apache-2.0
   transpose: bytes transposed, 16 x 16 at a time, and floats, 4 x 4: so many times as that has bits, every
   row is interleaved with the one half as many further. */
#include <string.h>

#include "kernels/gemm.h"
#if defined(__SSE2__)
#include <emmintrin.h>
typedef __m128i bytes;
#define LOW(a, b) _mm_unpacklo_epi8(a, b)
#define HIGH(a, b) _mm_unpackhi_epi8(a, b)
#define LOW_F(a, b) (bytes) _mm_unpacklo_ps((__m128)(a), (__m128)(b))
#define HIGH_F(a, b) (bytes) _mm_unpackhi_ps((__m128)(a), (__m128)(b))
#elif defined(__ARM_NEON)
#include <arm_neon.h>
typedef uint8x16_t bytes;
#define LOW(a, b) vzip1q_u8(a, b)
#define HIGH(a, b) vzip2q_u8(a, b)
#define LOW_F(a, b) (bytes) vzip1q_f32((float32x4_t)(a), (float32x4_t)(b))
#define HIGH_F(a, b) (bytes) vzip2q_f32((float32x4_t)(a), (float32x4_t)(b))
#endif
enum { SIDE = 16, SIDE_F = 4 };
#if defined(LOW)
static void square(const uint8_t *from, ptrdiff_t from_step, uint8_t *to, ptrdiff_t to_step) {
    bytes r[SIDE], t[SIDE];
    for (int i = 0; i < SIDE; i++) memcpy(r + i, from + i * from_step, SIDE);
    for (int round = 0; round < 4; round++) {
        for (int i = 0; i < SIDE / 2; i++)
            t[2 * i] = LOW(r[i], r[i + SIDE / 2]), t[2 * i + 1] = HIGH(r[i], r[i + SIDE / 2]);
        memcpy(r, t, sizeof r);
    }
    for (int i = 0; i < SIDE; i++) memcpy(to + i * to_step, r + i, SIDE);
}
static inline void square_f(const float *from, ptrdiff_t from_step, float *to, ptrdiff_t to_step) {
    bytes a, b, c, d;
    memcpy(&a, from, sizeof a), memcpy(&b, from + from_step, sizeof b);
    memcpy(&c, from + 2 * from_step, sizeof c), memcpy(&d, from + 3 * from_step, sizeof d);
    const bytes low = LOW_F(a, c), high = HIGH_F(a, c), low2 = LOW_F(b, d), high2 = HIGH_F(b, d);
    a = LOW_F(low, low2), b = HIGH_F(low, low2), c = LOW_F(high, high2), d = HIGH_F(high, high2);
    memcpy(to, &a, sizeof a), memcpy(to + to_step, &b, sizeof b);
    memcpy(to + 2 * to_step, &c, sizeof c), memcpy(to + 3 * to_step, &d, sizeof d);
}
static inline void mix(const float *x, const float *y, float *to) {
    bytes a, b;
    memcpy(&a, x, sizeof a), memcpy(&b, y, sizeof b);
    const bytes low = LOW_F(a, b), high = HIGH_F(a, b);
    memcpy(to, &low, sizeof low), memcpy(to + SIDE_F, &high, sizeof high);
}
#else
static void square_f(const float *from, ptrdiff_t from_step, float *to, ptrdiff_t to_step) {
    for (int i = 0; i < SIDE_F; i++)
        for (int j = 0; j < SIDE_F; j++) to[j * to_step + i] = from[i * from_step + j];
}
static void square(const uint8_t *from, ptrdiff_t from_step, uint8_t *to, ptrdiff_t to_step) {
    for (int i = 0; i < SIDE; i++)
        for (int j = 0; j < SIDE; j++) to[j * to_step + i] = from[i * from_step + j];
}
#endif
void hone_transpose_bytes(int64_t m, int64_t n, const uint8_t *from, ptrdiff_t from_step, uint8_t *to,
                          ptrdiff_t to_step) {
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
/* 16 x 16 at a time, lines of cache on both sides; the columns of all rows before the next ones, so that what
   is written follows on. */
void hone_transpose_floats(int64_t m, int64_t n, const float *from, ptrdiff_t from_step, float *to,
                           ptrdiff_t to_step) {
    enum { LINE = 16 };
#if defined(LOW)
    /* two rows become one; the last four overlap their neighbours */
    if (m == 2 && to_step == 2 && n >= SIDE_F) {
        int64_t j = 0;
        for (; j + 4 * SIDE_F <= n; j += 4 * SIDE_F)
            for (int k = 0; k < 4; k++)
                mix(from + j + k * SIDE_F, from + from_step + j + k * SIDE_F, to + 2 * (j + k * SIDE_F));
        for (; j < n; j += SIDE_F) {
            const int64_t i = j + SIDE_F <= n ? j : n - SIDE_F;
            mix(from + i, from + from_step + i, to + 2 * i);
        }
        return;
    }
#endif
    for (int64_t j0 = 0; j0 < n; j0 += LINE)
        for (int64_t i0 = 0; i0 < m; i0 += LINE) {
            const int64_t i1 = i0 + LINE < m ? i0 + LINE : m, j1 = j0 + LINE < n ? j0 + LINE : n;
            for (int64_t j = j0; j < j1; j += SIDE_F)
                for (int64_t i = i0; i < i1; i += SIDE_F) {
                    const float *a = from + i * from_step + j;
                    float *b = to + j * to_step + i;
                    if (i + SIDE_F <= m && j + SIDE_F <= n) square_f(a, from_step, b, to_step);
                    else
                        for (int64_t q = 0; q < SIDE_F && j + q < n; q++)
                            for (int64_t p = 0; p < SIDE_F && i + p < m; p++)
                                b[q * to_step + p] = a[p * from_step + q];
                }
        }
}
