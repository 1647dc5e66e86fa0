/* SPDX-License-Identifier: Apache-2.0
   dwconv_i8, any machine: one place of the window at a time, in plain C. The slow twin of the others. */
#include "kernels/ref/requantize.inc"

enum { WIDE = 16 };
_Static_assert(WIDE == 4 * LW, "a block");
static void add(int32_t *restrict sum, const uint8_t *restrict a, uint8_t flip, const int8_t *restrict b) {
    for (int c = 0; c < WIDE; c++) sum[c] += (int16_t)(uint8_t)(a[c] ^ flip) * (int16_t)b[c];
}
hone_dwconv_i8_fn hone_dwconv_i8__base;
void hone_dwconv_i8__base(const hone_dwconv_i8_args *w) {
    for (int64_t j = w->from; j < w->n; j += WIDE) {
        const int64_t rest = w->n - j < WIDE ? w->n - j : WIDE;
        for (int i = 0; i < w->m; i++) {
            int32_t sum[WIDE] = {0};
            if (w->requantize) memcpy(sum, w->requantize->bias + j, sizeof sum);
            for (int64_t g = 0; g < w->groups; g++) {
                const uint8_t *a = w->a[i * w->a_pixel + g * w->a_group] + j;
                uint8_t some[WIDE] = {0};
                if (rest < WIDE) a = memcpy(some, a, (size_t)rest);
                add(sum, a, w->flip, w->b + j * w->groups + g * WIDE);
            }
            lvec s[4];
            memcpy(s, sum, sizeof s);
            if (w->requantize) put_requantized(w->requantize, s, j, true, w->c[i] + j, rest);
            else memcpy(w->sums[i] + j, sum, sizeof *sum * (size_t)rest);
        }
    }
}
