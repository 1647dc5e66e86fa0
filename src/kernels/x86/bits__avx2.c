/* SPDX-License-Identifier: Apache-2.0
   bits__avx2: weights of few bits in blocks: four values of K of eight columns a vector. Magnitudes of
   weights are at most 128 and A's at most 127, so that pairs of products fit 16 bits.
   Empty on other architectures. */
#if defined(__x86_64__)
#define ISA avx2
#include <immintrin.h>

#include "kernels/ref/bits.inc"

static inline __attribute__((always_inline)) void rows(const hone_bits_part *p, const int m) {
    enum { N = HONE_BITS_COLUMNS };
    const __m256i ones = _mm256_set1_epi16(1);
    for (int64_t g = 0; g < p->blocks; g++) {
        const int8_t *b = p->b + g * p->b_step;
        __m256i sum[HONE_BITS_ROWS][2];
        for (int q = 0; q < 2; q++) {
            const __m128i own =
                p->zero ? _mm_loadl_epi64((const __m128i *)(const void *)(p->zero + g * N + 8 * q))
                        : _mm_setzero_si128();
            const __m256i z = _mm256_cvtepi8_epi32(own);
            for (int r = 0; r < m; r++) sum[r][q] = _mm256_mullo_epi32(z, _mm256_set1_epi32(-p->a_sum[r][g]));
        }
        for (int64_t k = g * p->block; k < (g + 1) * p->block; k += 4, b += HONE_BITS_UNIT)
            for (int q = 0; q < 2; q++) {
                const __m256i w = _mm256_loadu_si256((const __m256i *)(const void *)(b + 32 * q)),
                              size = _mm256_abs_epi8(w);
                for (int r = 0; r < m; r++) {
                    int32_t four;
                    memcpy(&four, p->a[r] + k, 4);
                    const __m256i pairs =
                        _mm256_maddubs_epi16(size, _mm256_sign_epi8(_mm256_set1_epi32(four), w));
                    sum[r][q] = _mm256_add_epi32(sum[r][q], _mm256_madd_epi16(pairs, ones));
                }
            }
        for (int q = 0; q < 2; q++) {
            const __m256 s = _mm256_loadu_ps(p->scale + g * p->scale_step + 8 * q);
            for (int r = 0; r < m; r++) {
                float *c = p->c[r] + 8 * q;
                const __m256 by = _mm256_mul_ps(s, _mm256_set1_ps(p->a_scale[r][g]));
                _mm256_storeu_ps(c, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r][q]), by, _mm256_loadu_ps(c)));
            }
        }
    }
}
hone_bits_fn hone_bits_rows__avx2;
void hone_bits_rows__avx2(const hone_bits_part *p) {
    if (p->m == 4) rows(p, 4);
    else if (p->m == 3) rows(p, 3);
    else if (p->m == 2) rows(p, 2);
    else rows(p, 1);
}
/* A unit's bytes become two vectors of numbers from 0 to 15 for each half of the columns. A pair of products
   is at most 2 * 15 * 127, so that eight of them fit 16 bits: four units are summed there first. */
static inline __attribute__((always_inline)) void packed(const hone_bits_part *p, const int m) {
    enum { N = HONE_BITS_COLUMNS, AHEAD = 4096, NARROW = 32 };
    const __m256i ones = _mm256_set1_epi16(1), low = _mm256_set1_epi8(15), flip = _mm256_set1_epi8(8);
    for (int64_t g = 0; g < p->blocks; g++)
        for (int q = 0; q < 2; q++) { /* sums of both halves would not fit the registers */
            const int8_t *b = p->b + g * p->b_step + 32 * q;
            __m256i z = _mm256_set1_epi32(p->all), sum[HONE_BITS_ROWS];
            if (p->zero)
                z = _mm256_cvtepi8_epi32(
                    _mm_loadl_epi64((const __m128i *)(const void *)(p->zero + g * N + 8 * q)));
            for (int r = 0; r < m; r++) sum[r] = _mm256_mullo_epi32(z, _mm256_set1_epi32(-p->a_sum[r][g]));
            const int64_t last = (g + 1) * p->block;
            for (int64_t k = g * p->block; k < last;) {
                const int64_t end = k + NARROW < last ? k + NARROW : last;
                __m256i pairs[HONE_BITS_ROWS];
                for (int r = 0; r < m; r++) pairs[r] = _mm256_setzero_si256();
                for (; k < end; k += 8, b += HONE_BITS_UNIT) {
                    const __m256i x = _mm256_loadu_si256((const __m256i *)(const void *)b),
                                  first = _mm256_and_si256(x, low),
                                  high = _mm256_and_si256(_mm256_srli_epi16(x, 4), low),
                                  then = _mm256_xor_si256(high, flip);
                    if (q == 0) _mm_prefetch((const char *)b + AHEAD, _MM_HINT_T0);
                    for (int r = 0; r < m; r++) {
                        int32_t four[2];
                        memcpy(four, p->a[r] + k, 8);
                        const __m256i by = _mm256_set1_epi32(four[0]), next = _mm256_set1_epi32(four[1]);
                        pairs[r] = _mm256_add_epi16(pairs[r], _mm256_maddubs_epi16(first, by));
                        pairs[r] = _mm256_add_epi16(pairs[r], _mm256_maddubs_epi16(then, next));
                    }
                }
                for (int r = 0; r < m; r++)
                    sum[r] = _mm256_add_epi32(sum[r], _mm256_madd_epi16(pairs[r], ones));
            }
            const __m256 s = _mm256_loadu_ps(p->scale + g * p->scale_step + 8 * q);
            for (int r = 0; r < m; r++) {
                float *c = p->c[r] + 8 * q;
                const __m256 by = _mm256_mul_ps(s, _mm256_set1_ps(p->a_scale[r][g]));
                _mm256_storeu_ps(c, _mm256_fmadd_ps(_mm256_cvtepi32_ps(sum[r]), by, _mm256_loadu_ps(c)));
            }
        }
}
hone_bits_fn hone_bits_packed__avx2;
void hone_bits_packed__avx2(const hone_bits_part *p) {
    if (p->m == 4) packed(p, 4);
    else if (p->m == 3) packed(p, 3);
    else if (p->m == 2) packed(p, 2);
    else packed(p, 1);
}
#else
typedef int hone_bits__avx2_not_here;
#endif
