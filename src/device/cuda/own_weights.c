/* SPDX-License-Identifier: Apache-2.0
   own_weights: the constant factor of a product as its kernel reads it: rows of K in the type of the unit,
   padded to pieces of 16 bytes, once for a model; behind them what is read a number a column. */
#include <math.h>
#include <string.h>

#include "device/cuda/own_product.h"
#include "device/cuda/pack.h"

typedef struct {
    const char *source;
    hone_dtype from, to;
    int64_t outer, batch_step;                                    /* batches */
    hone_axes n, k;                                               /* b: steps in the source */
    int64_t taps[2], tap_step[2], channels, channel_step, padded; /* window */
    int64_t depth;
    bool window, depthwise, first;
    int zero;         /* of bytes: a weight's zero point */
    const char *bias; /* f32, behind the weights; NULL: none */
    int64_t n_bias, bias_at;
    int64_t each;       /* so many columns have numbers of their own */
    const float *scale; /* likewise, scale_bytes of them */
    size_t scale_bytes;
    int64_t scale_at, whole_at;
    const char *whole; /* i32: what the sums of whole numbers begin with; NULL: 0 */
    bool begins;       /* with something, at whole_at */
    int zero_a;        /* and A's zero point, which is taken away from each row's sum here */
} packing;
static float value_at(const packing *p, int64_t at) {
    switch (p->from) {
    case HONE_DTYPE_F32: return ((const float *)(const void *)p->source)[at];
    case HONE_DTYPE_I8: return (float)(((const int8_t *)p->source)[at] - p->zero);
    case HONE_DTYPE_U8: return (float)(((const uint8_t *)p->source)[at] - p->zero);
    default: return hone_dtype_load(p->from, p->source + at * hone_dtypes[p->from].bytes).f32;
    }
}
static int64_t offset(const hone_axes *a, int64_t i) {
    int64_t at = 0;
    for (int k = a->n - 1; k >= 0; k--) at += i % a->at[k].extent * a->at[k].b, i /= a->at[k].extent;
    return at;
}
enum { LINE = 512 }; /* values that are gathered, then narrowed */
typedef struct {
    const packing *p;
    float value[LINE];
    int n;
    char *to;
} line;
static float tf32_of(float v) { /* the nearest; what is exactly between goes to the even one */
    uint32_t bits;
    memcpy(&bits, &v, 4);
    if ((bits & 0x7f800000u) == 0x7f800000u) return v;
    bits = (bits + 0xfffu + (bits >> 13 & 1)) & ~0x1fffu;
    memcpy(&v, &bits, 4);
    return v;
}
static void flush(line *l) {
    const hone_dtype to = l->p->to;
    for (int k = 0; k < l->n && to == HONE_DTYPE_F32; k++) l->value[k] = tf32_of(l->value[k]);
    hone_dtype_store_n(to, l->to, HONE_F32, l->value, (size_t)l->n, false);
    l->to += l->n * (int)hone_dtypes[to].bytes, l->n = 0;
}
static inline void put(line *l, float v) {
    l->value[l->n++] = v;
    if (l->n == LINE) flush(l);
}
static void pack_row(const packing *p, int64_t at, char *to) {
    line l = {.p = p, .n = 0, .to = to};
    if (!p->window && p->k.n == 1)
        for (int64_t q = 0; q < p->k.at[0].extent; q++) put(&l, value_at(p, at + q * p->k.at[0].b));
    else if (!p->window)
        for (int64_t q = 0; q < hone_own_count(&p->k); q++) put(&l, value_at(p, at + offset(&p->k, q)));
    for (int64_t y = 0; p->window && y < p->taps[0]; y++)
        for (int64_t x = 0; x < p->taps[1]; x++) {
            const int64_t tap = at + y * p->tap_step[0] + x * p->tap_step[1];
            for (int64_t c = 0; c < p->channels; c++) put(&l, value_at(p, tap + c * p->channel_step));
            for (int64_t c = p->channels; c < p->padded; c++) put(&l, 0);
        }
    flush(&l);
    const int64_t left = to + p->depth * hone_dtypes[p->to].bytes - l.to;
    if (left > 0) memset(l.to, 0, (size_t)left);
}
/* b - zero * the sum of a row of B: with it the sum is that of (a - zero) b. Sums wrap around, as kernels'
   do. */
static void begin(const packing *p, const int8_t *row, int64_t r, char *to) {
    uint32_t all = 0, first = 0;
    for (int64_t k = 0; k < p->depth && p->zero_a; k++) all += (uint32_t)row[k];
    if (p->whole) memcpy(&first, p->whole + r * 4, 4);
    first -= (uint32_t)p->zero_a * all;
    memcpy(to, &first, 4);
}
static void pack(const void *arg, void *dst, int part, int parts) {
    const packing *p = arg;
    if (!part && p->scale) memcpy((char *)dst + p->scale_at, p->scale, p->scale_bytes);
    if (p->depthwise) { /* f32, taps outermost */
        float *to = dst;
        if (p->begins && !part) memcpy((char *)dst + p->whole_at, p->whole, (size_t)p->each * 4);
        for (int64_t y = 0; y < p->taps[0] && !part; y++)
            for (int64_t x = 0; x < p->taps[1]; x++)
                for (int64_t g = 0; g < p->outer; g++)
                    *to++ = value_at(p, y * p->tap_step[0] + x * p->tap_step[1] + g * p->batch_step);
        return;
    }
    const int64_t columns = hone_own_count(&p->n), rows = p->outer * columns;
    uint16_t taps[HONE_CUDA_FIRST_MOST]; /* one output's weights, before they go into pieces */
    for (int64_t n = columns * part / parts; p->first && n < columns * (part + 1) / parts; n++) {
        packing plain = *p;
        plain.depth = p->taps[0] * p->taps[1] * p->channels;
        pack_row(&plain, offset(&p->n, n), (char *)taps);
        hone_cuda_pack_first_layer(taps, 1, (size_t)p->taps[0], (size_t)p->taps[1], (size_t)p->channels,
                                   (uint16_t *)dst + n * p->depth);
    }
    if (p->first) return;
    if (p->bias && !part)
        hone_dtype_store_n(p->to, (char *)dst + p->bias_at, HONE_F32, p->bias, (size_t)p->n_bias, false);
    for (int64_t r = rows * part / parts; r < rows * (part + 1) / parts; r++) {
        const char *row = (char *)dst + r * p->depth * hone_dtypes[p->to].bytes;
        pack_row(p, r / columns * p->batch_step + offset(&p->n, r % columns), (char *)(uintptr_t)row);
        if (p->begins && r < p->each) begin(p, (const int8_t *)row, r, (char *)dst + p->whole_at + r * 4);
    }
}
static int64_t hash(const void *at, size_t bytes) {
    uint64_t h = 0xcbf29ce484222325u;
    for (size_t k = 0; at && k < bytes; k++) h = (h ^ ((const unsigned char *)at)[k]) * 0x100000001b3u;
    return (int64_t)h;
}
hone_status hone_own_weights(const hone_device_call *c, hone_own_product *p, hone_ref *packed,
                             int64_t *bytes) {
    const hone_match_product *m = &p->m;
    const hone_ref r = c->ref[m->b];
    packing k = {.from = c->instance->tensor[m->b].dtype,
                 .to = m->integers ? HONE_DTYPE_I8 : p->half,
                 .zero = p->zero_b,
                 .outer = p->batch.n && p->batch.at[0].b ? p->batch.at[0].extent : 1,
                 .batch_step = p->batch.n ? p->batch.at[0].b : 0,
                 .n = m->n,
                 .k = m->k,
                 .taps = {m->w.kernel_y, m->w.kernel_x},
                 .tap_step = {m->w.b_y, m->w.b_x},
                 .channels = m->w.channels,
                 .channel_step = m->w.b_channel,
                 .padded = p->channels,
                 .depth = p->depth,
                 .window = m->window,
                 .depthwise = p->depthwise,
                 .first = p->first,
                 .scale = p->scale,
                 .begins = hone_own_begins(p),
                 .zero_a = p->depthwise ? 0 : p->zero_a};
    k.each = hone_own_columns_of(m);
    k.scale_bytes = (size_t)p->scales * (size_t)k.each * 4;
    if (p->whole >= 0) {
        const hone_ref r_whole = c->ref[p->whole];
        k.whole =
            (const char *)hone_packs_constant(c->packs, r_whole.base) + r_whole.offset + p->whole_at * 4;
    }
    const int64_t key[] = {101 + p->depthwise + 2 * p->first,
                           k.to,
                           k.from,
                           r.offset + m->at_b,
                           k.outer,
                           k.batch_step,
                           k.depth,
                           k.padded,
                           k.tap_step[0],
                           k.tap_step[1],
                           k.channel_step,
                           k.n.n ? k.n.at[k.n.n - 1].b : 0,
                           k.k.n ? k.k.at[k.k.n - 1].b : 0,
                           k.k.n ? k.k.at[0].b : 0,
                           k.n.n ? k.n.at[0].b : 0,
                           hone_own_count(&k.n),
                           p->packed_bias,
                           p->packed_bias ? c->ref[p->bias].base : 0,
                           p->packed_bias ? c->ref[p->bias].offset + p->bias_at * 4 : 0,
                           k.zero,
                           k.zero_a,
                           k.begins,
                           hash(k.scale, k.scale_bytes),
                           hash(k.whole, (size_t)k.each * 4)};
    k.source =
        (const char *)hone_packs_constant(c->packs, r.base) + r.offset + m->at_b * hone_dtypes[k.from].bytes;
    *bytes = p->depthwise ? k.taps[0] * k.taps[1] * k.outer * 4
                          : k.outer * hone_own_count(&k.n) * p->depth * hone_dtypes[k.to].bytes;
    if (p->packed_bias) {
        const hone_ref e = c->ref[p->bias];
        k.n_bias = hone_own_count(&m->n), k.bias_at = p->packed_bias = hone_round_up(*bytes, 256);
        k.bias = (const char *)hone_packs_constant(c->packs, e.base) + e.offset + p->bias_at * 4;
        *bytes = k.bias_at + k.n_bias * hone_dtypes[k.to].bytes;
    }
    if (p->scale)
        k.scale_at = p->packed_scale = hone_round_up(*bytes, 256),
        *bytes = k.scale_at + (int64_t)k.scale_bytes;
    if (k.begins) k.whole_at = p->packed_whole = hone_round_up(*bytes, 256), *bytes = k.whole_at + k.each * 4;
    const hone_packing of = {.source = k.source,
                             .source_bytes = 0,
                             .bytes = (size_t)*bytes,
                             .parts = *bytes > 1 << 18 ? 32 : 1,
                             .fill = pack,
                             .arg = &k,
                             .arg_bytes = sizeof k};
    *packed = (hone_ref){hone_packs_get(c->packs, key, (int)(sizeof key / sizeof *key), &of), -1, 0};
    return packed->base == HONE_BASE_NONE ? hone_steps_no_memory() : HONE_OK;
}

/* Weights from the first to the last: those between them that are nobody's count, too. */
static int64_t last_of(const hone_match_product *m) {
    const hone_axes *const all[] = {&m->n, &m->k, &m->batch};
    int64_t last = 0;
    for (int q = 0; q < 3; q++)
        for (int k = 0; k < all[q]->n; k++)
            if (all[q]->at[k].b > 0) last += (all[q]->at[k].extent - 1) * all[q]->at[k].b;
    return last;
}
static const char *first_of(const hone_device_call *c, const hone_match_product *m) {
    const hone_ref r = c->ref[m->b];
    return (const char *)hone_packs_constant(c->packs, r.base) + r.offset +
           m->at_b * hone_dtypes[c->instance->tensor[m->b].dtype].bytes;
}
bool hone_own_weights_leave_range(const hone_device_call *c, const hone_own_product *p) {
    const float most = 65504;
    if (c->instance->tensor[p->m.b].dtype != HONE_DTYPE_F32) return false;
    const float *w = (const float *)(const void *)first_of(c, &p->m);
    const int64_t last = last_of(&p->m);
    bool fit = true;
    for (int64_t k = 0; k <= last; k++) fit &= fabsf(w[k]) <= most;
    return !fit;
}
bool hone_own_weights_fit(const hone_device_call *c, const hone_own_product *p) {
    const bool is_signed = c->instance->tensor[p->m.b].dtype == HONE_DTYPE_I8;
    const int low = (is_signed ? INT8_MIN : 0) - p->zero_b, high = low + UINT8_MAX;
    if (low >= INT8_MIN && high <= INT8_MAX) return true;
    const uint8_t *w = (const uint8_t *)first_of(c, &p->m);
    const int64_t last = last_of(&p->m);
    bool fit = true;
    for (int64_t k = 0; k <= last; k++) {
        const int v = (is_signed ? (int8_t)w[k] : w[k]) - p->zero_b;
        fit &= v >= INT8_MIN && v <= INT8_MAX;
    }
    return fit;
}
