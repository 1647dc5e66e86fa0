/* SPDX-License-Identifier: Apache-2.0
   interleave4: four rows of bytes as groups of four, which the 8-bit kernels read. */
#include <string.h>

#include "kernels/gemm.h"
#if defined(__SSE2__)
#include <emmintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

void hone_interleave4(const uint8_t *const row[4], int64_t n, uint8_t flip, uint8_t *to) {
    int64_t i = 0;
#if defined(__SSE2__)
    const __m128i over = _mm_set1_epi8((char)flip);
    for (; i + 16 <= n; i += 16) {
        __m128i r[4], pair[4];
        for (int q = 0; q < 4; q++)
            r[q] = _mm_xor_si128(_mm_loadu_si128((const __m128i *)(const void *)(row[q] + i)), over);
        pair[0] = _mm_unpacklo_epi8(r[0], r[1]), pair[1] = _mm_unpackhi_epi8(r[0], r[1]);
        pair[2] = _mm_unpacklo_epi8(r[2], r[3]), pair[3] = _mm_unpackhi_epi8(r[2], r[3]);
        __m128i *at = (__m128i *)(void *)(to + 4 * i);
        _mm_storeu_si128(at, _mm_unpacklo_epi16(pair[0], pair[2])),
            _mm_storeu_si128(at + 1, _mm_unpackhi_epi16(pair[0], pair[2]));
        _mm_storeu_si128(at + 2, _mm_unpacklo_epi16(pair[1], pair[3])),
            _mm_storeu_si128(at + 3, _mm_unpackhi_epi16(pair[1], pair[3]));
    }
#elif defined(__ARM_NEON)
    const uint8x16_t over = vdupq_n_u8(flip);
    for (; i + 16 <= n; i += 16) {
        uint8x16x4_t v;
        for (int q = 0; q < 4; q++) v.val[q] = veorq_u8(vld1q_u8(row[q] + i), over);
        vst4q_u8(to + 4 * i, v);
    }
#endif
    for (; i < n; i++)
        for (int q = 0; q < 4; q++) to[4 * i + q] = row[q][i] ^ flip;
}
