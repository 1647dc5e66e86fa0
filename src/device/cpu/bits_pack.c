/* SPDX-License-Identifier: Apache-2.0
   bits_pack: weights of few bits as panels of the kernel's, packed once a model and as small as they were:
   units of weights, behind each block its scales, behind all blocks zero points. */
#include <string.h>

#include "device/cpu/bits.h"

enum { N = HONE_BITS_COLUMNS };
typedef struct {
    const hone_bits_product *d;
    const uint8_t *b;
    const char *scales, *zero;
} packing;
static uint32_t spread(uint32_t v) { /* four nibbles as four bytes */
    v = (v | v << 8) & 0x00ff00ff;
    return (v | v << 4) & 0x0f0f0f0f;
}
/* Four bytes of a column's unit from the four that hold its values in order. */
static uint32_t unit_of(int bits, const uint8_t *from) {
    const uint32_t x =
        (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
    if (bits == 8) return x ^ 0x80808080;
    /* the top bits as `one` wants them */
    if (bits == 4) return (spread(x & 0xffff) | spread(x >> 16) << 4) ^ 0x80808080;
    uint32_t y = 0;
    for (int f = 0; f < 4; f++)
        for (int i = 0; i < 4; i++) y |= (x >> (8 * f + 2 * i) & 3) << (8 * i + 2 * f);
    return y;
}
/* as the weights are stored */
static int zero_of(const hone_bits_product *d, const uint8_t *zero, int64_t column, int64_t g) {
    const int64_t bit = g * d->bits;
    const int z = zero[column * ((d->blocks * d->bits + 7) / 8) + bit / 8] >> bit % 8 & ((1 << d->bits) - 1);
    return d->bits == 8 ? z - 128 : z;
}
static void fill_column(const packing *w, int64_t column, int64_t j, uint8_t *to) {
    const hone_bits_product *d = w->d;
    const int64_t units = d->block_bytes / HONE_BITS_UNIT; /* of a block */
    /* weights and scales of columns that are not there are 0 */
    const bool there = column < d->n;
    for (int64_t g = 0; g < d->blocks; g++) {
        uint8_t *at = to + g * d->step, *end = to + d->stream_bytes;
        const int64_t place = column * d->blocks + g;
        for (int64_t u = 0; u < units; u++) {
            const uint32_t v = there ? unit_of(d->bits, w->b + (place * units + u) * 4) : 0;
            for (int i = 0; i < 4; i++) at[u * HONE_BITS_UNIT + 4 * j + i] = (uint8_t)(v >> 8 * i);
        }
        const float scale =
            there ? hone_dtype_load(d->scale_dtype, w->scales + place * hone_dtypes[d->scale_dtype].bytes).f32
                  : 0;
        memcpy(at + d->block_bytes + 4 * j, &scale, 4);
        if (hone_bits_float_zero(d)) { /* weights of 8 bits are stored less 128 */
            const float z =
                there ? hone_dtype_load(d->zero_dtype, w->zero + place * hone_dtypes[d->zero_dtype].bytes).f32
                      : 0;
            const float shift = (z - (d->bits == 8 ? 128.0F : 0.0F)) * scale;
            memcpy(end + (g * N + j) * 4, &shift, 4);
        } else if (d->zero >= 0)
            end[g * N + j] = (uint8_t)(there ? zero_of(d, (const uint8_t *)w->zero, column, g) : 0);
    }
}
static void fill_panel(const packing *w, int64_t panel, uint8_t *to) {
    for (int64_t j = 0; j < N; j++) fill_column(w, panel * N + j, j, to);
}
static void fill(const void *arg, void *dst, int part, int parts) {
    const packing *w = arg;
    const int64_t from = w->d->panels * part / parts, to = w->d->panels * (part + 1) / parts;
    for (int64_t p = from; p < to; p++) fill_panel(w, p, (uint8_t *)dst + p * w->d->panel_bytes);
}
hone_status hone_bits_packed(const hone_cpu_call *c, const hone_packed *p, hone_ref *out) {
    enum { PART = 1 << 18 };
    const hone_bits_product *d = p->of;
    const packing w = {d, hone_cpu_constant(c, d->b), hone_cpu_constant(c, d->scales),
                       d->zero < 0 ? NULL : hone_cpu_constant(c, d->zero)};
    const int64_t key[] = {-26,
                           d->bits,
                           d->block,
                           d->blocks,
                           d->n,
                           (int64_t)d->scale_dtype,
                           (int64_t)d->zero_dtype,
                           (int64_t)(intptr_t)w.scales,
                           (int64_t)(intptr_t)w.zero};
    int64_t bytes;
    if (__builtin_mul_overflow(d->panels, d->panel_bytes, &bytes))
        return hone_fail(HONE_NO_MEMORY, "no memory to pack weights");
    const int64_t parts = hone_ceil_div(bytes, PART) < d->panels ? hone_ceil_div(bytes, PART) : d->panels;
    const hone_packing of = {.source = w.b,
                             .source_bytes = (size_t)(d->n * d->blocks * d->block * d->bits / 8),
                             .bytes = (size_t)bytes,
                             .parts = parts < 1024 ? (int)parts : 1024,
                             .fill = fill,
                             .arg = &w,
                             .arg_bytes = sizeof w};
    *out = (hone_ref){hone_packs_get(c->packs, key, sizeof key / sizeof *key, &of), -1, 0};
    return out->base ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory to pack weights");
}

hone_bits_panel hone_bits_panel_at(const hone_bits_product *d, const uint8_t *at) {
    const uint8_t *end = at + d->stream_bytes;
    const bool floats = hone_bits_float_zero(d);
    return (hone_bits_panel){.weights = at,
                             .shift = floats ? (const float *)(const void *)end : NULL,
                             .zero = d->zero >= 0 && !floats ? (const int8_t *)end : NULL,
                             .all = floats || d->bits == 8 ? 0 : 1 << (d->bits - 1)};
}
const int8_t *hone_bits_bytes(const hone_bits_product *d, const hone_bits_panel *w, int64_t g, int64_t blocks,
                              int8_t *bytes, ptrdiff_t *step) {
    const uint8_t *from = w->weights + g * d->step;
    *step = d->bits == 8 ? d->step : d->block * N;
    if (d->bits == 8) return (const int8_t *)from;
    d->kernel->unpack(d->bits, blocks, d->block_bytes / HONE_BITS_UNIT, d->step,
                      d->bits == 4 ? HONE_BITS_FLIP : 0, w->zero ? w->zero + g * N : NULL, w->all, from,
                      bytes);
    return bytes;
}
