/* SPDX-License-Identifier: Apache-2.0
   bits__vnni: weights of few bits in blocks by vpdpbusd, four values of K of all sixteen columns an
   instruction. It takes one factor unsigned: weights plus 128, which zero points get too.
   Empty on other architectures. */
#if defined(__x86_64__)
#define ISA vnni
#include <immintrin.h>

#include "kernels/ref/bits.inc"

static inline __attribute__((always_inline)) void rows(const hone_bits_part *p, const int m) {
    enum { N = HONE_BITS_COLUMNS };
    const __m512i flip = _mm512_set1_epi8((char)0x80);
    for (int64_t g = 0; g < p->blocks; g++) {
        const int8_t *b = p->b + g * p->b_step;
        const __m128i own =
            p->zero ? _mm_loadu_si128((const __m128i *)(const void *)(p->zero + g * N)) : _mm_setzero_si128();
        const __m512i z = _mm512_add_epi32(_mm512_cvtepi8_epi32(own), _mm512_set1_epi32(128));
        __m512i sum[HONE_BITS_ROWS];
        for (int r = 0; r < m; r++) sum[r] = _mm512_mullo_epi32(z, _mm512_set1_epi32(-p->a_sum[r][g]));
        for (int64_t k = g * p->block; k < (g + 1) * p->block; k += 4, b += HONE_BITS_UNIT) {
            const __m512i w = _mm512_xor_si512(_mm512_loadu_si512(b), flip);
            for (int r = 0; r < m; r++) {
                int32_t four;
                memcpy(&four, p->a[r] + k, 4);
                sum[r] = _mm512_dpbusd_epi32(sum[r], w, _mm512_set1_epi32(four));
            }
        }
        const __m512 s = _mm512_loadu_ps(p->scale + g * p->scale_step);
        for (int r = 0; r < m; r++) {
            const __m512 by = _mm512_mul_ps(s, _mm512_set1_ps(p->a_scale[r][g]));
            _mm512_storeu_ps(p->c[r],
                             _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]), by, _mm512_loadu_ps(p->c[r])));
        }
    }
}
hone_bits_fn hone_bits_rows__vnni;
void hone_bits_rows__vnni(const hone_bits_part *p) {
    if (p->m == 4) rows(p, 4);
    else if (p->m == 3) rows(p, 3);
    else if (p->m == 2) rows(p, 2);
    else rows(p, 1);
}
/* A unit of 64 bytes becomes two vectors of numbers from 0 to 15 (a mask; a shift, then mask and flipped bit
   at once), which are unsigned as they are; what zero points take away is where sums begin. */
static inline __attribute__((always_inline)) void packed(const hone_bits_part *p, const int m) {
    enum { N = HONE_BITS_COLUMNS, AHEAD = 4096 };
    const __m512i low = _mm512_set1_epi8(15), flip = _mm512_set1_epi8(8);
    __m512 c[HONE_BITS_ROWS];
    for (int r = 0; r < m; r++) c[r] = _mm512_loadu_ps(p->c[r]);
    for (int64_t g = 0; g < p->blocks; g++) {
        const int8_t *b = p->b + g * p->b_step;
        __m512i z = _mm512_set1_epi32(p->all), sum[HONE_BITS_ROWS];
        if (p->zero)
            z = _mm512_cvtepi8_epi32(_mm_loadu_si128((const __m128i *)(const void *)(p->zero + g * N)));
        for (int r = 0; r < m; r++) sum[r] = _mm512_mullo_epi32(z, _mm512_set1_epi32(-p->a_sum[r][g]));
        for (int64_t k = g * p->block; k < (g + 1) * p->block; k += 8, b += HONE_BITS_UNIT) {
            const __m512i x = _mm512_loadu_si512(b), first = _mm512_and_si512(x, low),
                          /* (x >> 4 & low) ^ flip */
                then = _mm512_ternarylogic_epi32(_mm512_srli_epi16(x, 4), low, flip, 0x6a);
            _mm_prefetch((const char *)b + AHEAD, _MM_HINT_T0);
            for (int r = 0; r < m; r++) {
                int32_t four[2];
                memcpy(four, p->a[r] + k, 8);
                sum[r] = _mm512_dpbusd_epi32(sum[r], first, _mm512_set1_epi32(four[0]));
                sum[r] = _mm512_dpbusd_epi32(sum[r], then, _mm512_set1_epi32(four[1]));
            }
        }
        const __m512 s = _mm512_loadu_ps(p->scale + g * p->scale_step);
        for (int r = 0; r < m; r++)
            c[r] = _mm512_fmadd_ps(_mm512_cvtepi32_ps(sum[r]),
                                   _mm512_mul_ps(s, _mm512_set1_ps(p->a_scale[r][g])), c[r]);
    }
    for (int r = 0; r < m; r++) _mm512_storeu_ps(p->c[r], c[r]);
}
hone_bits_fn hone_bits_packed__vnni;
void hone_bits_packed__vnni(const hone_bits_part *p) {
    if (p->m == 4) packed(p, 4);
    else if (p->m == 3) packed(p, 3);
    else if (p->m == 2) packed(p, 2);
    else packed(p, 1);
}
#else
typedef int hone_bits__vnni_not_here;
#endif
