/* SPDX-License-Identifier: Apache-2.0
   bits__base: the family in plain C, for every architecture, and the coupled rows that its one-row kernels
   take. */
#define ISA base
#include "kernels/ref/bits.inc"

hone_bits_fn hone_bits_rows__base;
void hone_bits_rows__base(const hone_bits_part *p) {
    enum { N = HONE_BITS_COLUMNS };
    for (int r = 0; r < p->m; r++) {
        const int8_t *a = p->a[r];
        for (int64_t g = 0; g < p->blocks; g++) {
            const int8_t *b = p->b + g * p->b_step;
            int32_t sum[N] = {0};
            for (int64_t k = 0; k < p->block; k += 4, b += 4 * N, a += 4)
                for (int j = 0; j < N; j++)
                    sum[j] +=
                        b[4 * j] * a[0] + b[4 * j + 1] * a[1] + b[4 * j + 2] * a[2] + b[4 * j + 3] * a[3];
            for (int j = 0; j < N; j++) {
                const int32_t less = (p->zero ? p->zero[g * N + j] : 0) * p->a_sum[r][g];
                p->c[r][j] += (float)(sum[j] - less) * (p->a_scale[r][g] * p->scale[g * p->scale_step + j]);
            }
        }
    }
}

int hone_bits_couple(const float *a, int64_t n, int8_t *q, float *scale, int32_t *sums, int32_t *start) {
    const uint32_t bits = bits_largest__base(a, n);
    float largest;
    memcpy(&largest, &bits, 4);
    if (!(largest <= 3e38f) || (largest > 0 && largest < 1e-28f)) return 0;
    const float by = largest > 0 ? HONE_BITS_COUPLED / largest : 0;
    int32_t upper = 0, lower = 0;
    for (int64_t k = 0; k < n; k += 8)
        for (int64_t i = k; i < k + 4; i++) { /* the first four stand in lower halves */
            const float h = a[i + 4] * by + 12582912;
            int32_t u, v;
            memcpy(&u, &h, 4), u -= HONE_BITS_LOWER;
            const float l = (a[i] * by - (float)u * 0.0625f) + 12582912;
            memcpy(&v, &l, 4), v -= HONE_BITS_LOWER;
            q[i] = (int8_t)v, q[i + 4] = (int8_t)u, upper += u, lower += v;
        }
    *scale = largest / HONE_BITS_COUPLED, sums[0] = upper, sums[1] = lower;
    for (int k = 0; k < 4; k++)
        start[k] = HONE_BITS_UPPER - 8 * upper, start[4 + k] = HONE_BITS_LOWER - 8 * lower;
    return 1;
}
