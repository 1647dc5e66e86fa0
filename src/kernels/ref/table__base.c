/* SPDX-License-Identifier: Apache-2.0
   table: a function of one byte, as the 256 values that it has. NEON looks up 64 of them with one
   instruction, and takes four; elsewhere a load a byte. */
#include "kernels/table.h"
#if defined(__aarch64__)
#include <arm_neon.h>
#endif

void hone_table_bytes(const uint8_t table[256], const uint8_t *x, uint8_t *y, int64_t n) {
    int64_t i = 0;
#if defined(__aarch64__)
    if (n >= 64) {
        const uint8x16x4_t a = vld1q_u8_x4(table), b = vld1q_u8_x4(table + 64), c = vld1q_u8_x4(table + 128),
                           d = vld1q_u8_x4(table + 192);
        const uint8x16_t quarter = vdupq_n_u8(64);
        for (; i + 32 <= n; i += 32) { /* what is outside of a quarter is 0, or left as it is */
            uint8x16_t p = vld1q_u8(x + i), q = vld1q_u8(x + i + 16);
            uint8x16_t u = vqtbl4q_u8(a, p), v = vqtbl4q_u8(a, q);
            p = vsubq_u8(p, quarter), q = vsubq_u8(q, quarter);
            u = vqtbx4q_u8(u, b, p), v = vqtbx4q_u8(v, b, q);
            p = vsubq_u8(p, quarter), q = vsubq_u8(q, quarter);
            u = vqtbx4q_u8(u, c, p), v = vqtbx4q_u8(v, c, q);
            p = vsubq_u8(p, quarter), q = vsubq_u8(q, quarter);
            u = vqtbx4q_u8(u, d, p), v = vqtbx4q_u8(v, d, q);
            vst1q_u8(y + i, u), vst1q_u8(y + i + 16, v);
        }
    }
#endif
    for (; i + 4 <= n; i += 4) {
        const uint8_t p = x[i], q = x[i + 1], r = x[i + 2], s = x[i + 3];
        y[i] = table[p], y[i + 1] = table[q], y[i + 2] = table[r], y[i + 3] = table[s];
    }
    for (; i < n; i++) y[i] = table[x[i]];
}
void hone_table_floats(const float table[256], const uint8_t *x, float *y, int64_t n) {
    int64_t i = 0;
    for (; i + 4 <= n; i += 4) {
        const float p = table[x[i]], q = table[x[i + 1]], r = table[x[i + 2]], s = table[x[i + 3]];
        y[i] = p, y[i + 1] = q, y[i + 2] = r, y[i + 3] = s;
    }
    for (; i < n; i++) y[i] = table[x[i]];
}
