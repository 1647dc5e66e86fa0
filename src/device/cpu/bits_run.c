/* SPDX-License-Identifier: Apache-2.0
   bits_run: products with weights of few bits in blocks: weights as panels of the kernel's, packed once a model and as small as they were; a step that quantizes rows of A, and one that multiplies.
   One row of A meets weights as they are packed; several meet a piece of a panel that was made bytes before, in L1. Rows that cannot be quantized (infinite or not a number, or tiny) are
   summed one by one. */
#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "device/cpu/bits.h"

enum {
    N = HONE_BITS_COLUMNS,
    PIECE = 1024,      /* values of K that are made bytes at a time: 16 KB */
    MOST_ROWS = 128,   /* of A a tile takes */
    TILE_COLUMNS = 64, /* about, of a tile */
    SHARE = 1 << 14    /* values of A a tile quantizes, about */
};
void hone_bits_sizes(hone_bits_product *d, int threads) {
    const int64_t deep = hone_bits_deep(d);
    d->coupled = d->m == 1 && d->digits == 1 && d->bits == 4 && d->kernel->one && (d->zero < 0 || d->zero_dtype == HONE_DTYPE_U8);
    d->panels = hone_pieces(d->n, N);
    d->block_bytes = d->block * N * d->bits / 8, d->step = d->block_bytes + N * (int64_t)sizeof(float);
    d->stream_bytes = d->panel_bytes = d->blocks * d->step;
    if (d->zero >= 0) /* zero points; times scales, where they are floats */
        d->panel_bytes = hone_up(d->panel_bytes + d->blocks * N * (d->zero_dtype == HONE_DTYPE_U8 ? 1 : (int64_t)sizeof(float)), 64);
    d->at_scale = hone_up(d->digits * deep, 64);
    d->at_sum = d->at_scale + hone_up(d->digits * d->blocks * (int64_t)sizeof(float), 64);
    d->at_start = d->at_sum + hone_up((d->coupled ? 2 : d->digits) * d->blocks * (int64_t)sizeof(int32_t), 64);
    d->at_flag = d->at_start + (d->coupled ? hone_up(8 * d->blocks * (int64_t)sizeof(int32_t), 64) : 0);
    d->row_bytes = d->at_flag + 64;
    d->rows_at_once = d->m < MOST_ROWS ? d->m : MOST_ROWS, d->row_tiles = hone_pieces(d->m, d->rows_at_once);
    const int64_t most = hone_pieces(d->panels, threads > 1 ? 4 * threads : 1);
    d->per_tile = most < TILE_COLUMNS / N ? most : TILE_COLUMNS / N;
    d->grain = SHARE / deep > 1 ? SHARE / deep : 1;
}

/* ---- weights ------------------------------------------------------------------------------------------------------------------------ */
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
    const uint32_t x = (uint32_t)from[0] | (uint32_t)from[1] << 8 | (uint32_t)from[2] << 16 | (uint32_t)from[3] << 24;
    if (bits == 8) return x ^ 0x80808080;
    if (bits == 4) return (spread(x & 0xffff) | spread(x >> 16) << 4) ^ 0x80808080; /* the top bits as `one` wants them */
    uint32_t y = 0;
    for (int f = 0; f < 4; f++)
        for (int i = 0; i < 4; i++) y |= (x >> (8 * f + 2 * i) & 3) << (8 * i + 2 * f);
    return y;
}
enum { FLIP_NIBBLES = 0x80 };
static bool float_zero(const hone_bits_product *d) { return d->zero >= 0 && d->zero_dtype != HONE_DTYPE_U8; }
static int zero_of(const hone_bits_product *d, const uint8_t *zero, int64_t column, int64_t g) { /* as the weights are stored */
    const int64_t bit = g * d->bits;
    const int z = zero[column * ((d->blocks * d->bits + 7) / 8) + bit / 8] >> bit % 8 & ((1 << d->bits) - 1);
    return d->bits == 8 ? z - 128 : z;
}
static void fill_column(const packing *w, int64_t column, int64_t j, uint8_t *to) {
    const hone_bits_product *d = w->d;
    const int64_t units = d->block_bytes / HONE_BITS_UNIT; /* of a block */
    const bool there = column < d->n;                      /* weights and scales of columns that are not there are 0 */
    for (int64_t g = 0; g < d->blocks; g++) {
        uint8_t *at = to + g * d->step, *end = to + d->stream_bytes;
        const int64_t place = column * d->blocks + g;
        for (int64_t u = 0; u < units; u++) {
            const uint32_t v = there ? unit_of(d->bits, w->b + (place * units + u) * 4) : 0;
            for (int i = 0; i < 4; i++) at[u * HONE_BITS_UNIT + 4 * j + i] = (uint8_t)(v >> 8 * i);
        }
        const float scale = there ? hone_dtype_load(d->scale_dtype, w->scales + place * hone_dtypes[d->scale_dtype].bytes).f32 : 0;
        memcpy(at + d->block_bytes + 4 * j, &scale, 4);
        if (float_zero(d)) { /* weights of 8 bits are stored less 128 */
            const float z = there ? hone_dtype_load(d->zero_dtype, w->zero + place * hone_dtypes[d->zero_dtype].bytes).f32 : 0;
            const float shift = (z - (d->bits == 8 ? 128.0F : 0.0F)) * scale;
            memcpy(end + (g * N + j) * 4, &shift, 4);
        } else if (d->zero >= 0) end[g * N + j] = (uint8_t)(there ? zero_of(d, (const uint8_t *)w->zero, column, g) : 0);
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
static hone_status packed(const hone_cpu_call *c, const hone_packed *p, hone_ref *out) {
    enum { PART = 1 << 18 };
    const hone_bits_product *d = p->of;
    const packing w = {d, hone_cpu_constant(c, d->b), hone_cpu_constant(c, d->scales), d->zero < 0 ? NULL : hone_cpu_constant(c, d->zero)};
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
    if (__builtin_mul_overflow(d->panels, d->panel_bytes, &bytes)) return hone_fail(HONE_NO_MEMORY, "no memory to pack weights");
    const int64_t parts = hone_pieces(bytes, PART) < d->panels ? hone_pieces(bytes, PART) : d->panels;
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

/* ---- rows of A ---------------------------------------------------------------------------------------------------------------------- */
static const float *row_of(const hone_bits_product *d, const char *a, int64_t row, float *line) { /* as floats, in whole blocks */
    const char *from = a + (d->first_a + d->row_a[row]) * hone_dtypes[d->a_dtype].bytes;
    if (d->a_dtype == HONE_DTYPE_F32 && d->k == hone_bits_deep(d)) return (const float *)(const void *)from;
    hone_dtype_load_n(d->a_dtype, line, from, (size_t)d->k);
    memset(line + d->k, 0, sizeof *line * (size_t)(hone_bits_deep(d) - d->k));
    return line;
}
/* False: a block has an infinity, NaN, or nothing but tiny numbers. */
static bool quantize_blocks(const hone_bits_product *d, const float *a, char *to, float *rest) {
    const int64_t deep = hone_bits_deep(d);
    int8_t *q = (int8_t *)to;
    float *scale = (float *)(void *)(to + d->at_scale);
    int32_t *sum = (int32_t *)(void *)(to + d->at_sum), *start = (int32_t *)(void *)(to + d->at_start);
    for (int64_t g = 0; g < d->blocks; g++) {
        const float *v = a + g * d->block;
        int8_t *to_q = q + g * d->block;
        if (d->coupled && !hone_bits_couple(v, d->block, to_q, scale + g, sum + 2 * g, start + 8 * g)) return false;
        for (int k = 0; k < d->digits && !d->coupled; k++, to_q += deep) {
            float *left = k + 1 < d->digits ? rest : NULL;
            const int64_t at = k * d->blocks + g;
            if (d->kernel->quantize(v, d->block, to_q, scale + at, sum + at, left)) v = rest;
            else if (k == 0) return false;
            else {
                memset(to_q, 0, (size_t)d->block), scale[at] = 0, sum[at] = 0; /* nothing that counts was left */
                if (left) memset(left, 0, sizeof *left * (size_t)d->block), v = rest;
            }
        }
    }
    return true;
}
static void quantize_row(const hone_bits_product *d, const float *a, char *to, float *rest) {
    const bool fits = quantize_blocks(d, a, to, rest);
    if (!fits) memset(to, 0, (size_t)d->at_flag); /* kernels pass over zeros; the row is summed one by one */
    *(int32_t *)(void *)(to + d->at_flag) = !fits;
}
static hone_status quantize_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t end = (number + 1) * d->grain < d->m ? (number + 1) * d->grain : d->m;
    char *to = hone_ref_at(s->ref[d->rows], base);
    const char *a = hone_ref_at(s->ref[d->a], base);
    for (int64_t r = number * d->grain; r < end; r++)
        quantize_row(d, row_of(d, a, r, scratch), to + r * d->row_bytes, (float *)scratch + hone_bits_deep(d));
    return HONE_OK;
}

/* ---- products ----------------------------------------------------------------------------------------------------------------------- */
typedef struct {
    const uint8_t *weights; /* of the first block; scales stand behind each */
    const float *shift;     /* zero points that are floats, times scales; or NULL */
    const int8_t *zero;     /* or NULL: all are `all` */
    int all;
} panel_of;
static panel_of panel_at(const hone_bits_product *d, const uint8_t *at) {
    const uint8_t *end = at + d->stream_bytes;
    const bool floats = float_zero(d);
    return (panel_of){.weights = at,
                      .shift = floats ? (const float *)(const void *)end : NULL,
                      .zero = d->zero >= 0 && !floats ? (const int8_t *)end : NULL,
                      .all = floats || d->bits == 8 ? 0 : 1 << (d->bits - 1)};
}
static void set_row(const hone_bits_product *d, hone_bits_part *p, int i, const char *row, int digit, int64_t g) {
    p->a[i] = (const int8_t *)row + digit * hone_bits_deep(d) + g * d->block;
    p->a_scale[i] = (const float *)(const void *)(row + d->at_scale) + digit * d->blocks + g;
    p->a_sum[i] = (const int32_t *)(const void *)(row + d->at_sum) + (d->coupled ? 2 : 1) * (digit * d->blocks + g);
}
/* Rows of A, each as its digits, times a panel: c has 16 sums for every digit of every row. */
static void multiply(const hone_bits_product *d, const panel_of *w, const char *rows, int64_t m, float *c, int8_t *bytes) {
    const int64_t all = m * d->digits, at_once = d->bits == 8 && all <= HONE_BITS_ROWS ? d->blocks : PIECE / d->block;
    memset(c, 0, sizeof *c * (size_t)(all * N));
    hone_bits_part p = {.block = d->block, .scale_step = d->step / 4, .all = w->all};
    if (d->coupled) {
        p.m = 1, p.blocks = d->blocks, p.b = (const int8_t *)w->weights, p.b_step = d->step, p.zero = w->zero, p.c[0] = c;
        p.scale = (const float *)(const void *)(w->weights + d->block_bytes);
        p.start = d->zero < 0 ? (const int32_t *)(const void *)(rows + d->at_start) : NULL;
        set_row(d, &p, 0, rows, 0, 0);
        d->kernel->one(&p);
        return;
    }
    for (int64_t g = 0; g < d->blocks; g += at_once) {
        const uint8_t *from = w->weights + g * d->step;
        p.blocks = d->blocks - g < at_once ? d->blocks - g : at_once;
        p.b = (const int8_t *)from, p.b_step = d->step, p.scale = (const float *)(const void *)(from + d->block_bytes);
        p.zero = w->zero ? w->zero + g * N : NULL;
        if (d->bits != 8) {
            d->kernel->unpack(d->bits, p.blocks, d->block_bytes / HONE_BITS_UNIT, d->step, d->bits == 4 ? FLIP_NIBBLES : 0, from, bytes);
            p.b = bytes, p.b_step = d->block * N;
        }
        for (int64_t r = 0; r < all; r += HONE_BITS_ROWS) {
            p.m = all - r < HONE_BITS_ROWS ? (int)(all - r) : HONE_BITS_ROWS;
            for (int i = 0; i < p.m; i++) {
                set_row(d, &p, i, rows + (r + i) / d->digits * d->row_bytes, (int)((r + i) % d->digits), g);
                p.c[i] = c + (r + i) * N;
            }
            d->kernel->rows(&p);
        }
    }
}
/* What zero points that are floats take away. */
static void shift_row(const hone_bits_product *d, const panel_of *w, const char *row, int digit, float *c) {
    hone_bits_part p;
    set_row(d, &p, 0, row, digit, 0);
    for (int64_t g = 0; g < d->blocks; g++) {
        const float by = p.a_scale[0][g] * (float)p.a_sum[0][g];
        for (int j = 0; j < N; j++) c[j] -= by * w->shift[g * N + j];
    }
}
static int value_of(const hone_bits_product *d, const panel_of *w, int64_t k, int64_t j) { /* of a weight, as it is stored */
    const int64_t of_unit = 32 / d->bits, in = k % of_unit;
    const uint8_t x = w->weights[k / d->block * d->step + k % d->block / of_unit * HONE_BITS_UNIT + 4 * j + in % 4] ^
                      (uint8_t)(d->bits == 4 ? FLIP_NIBBLES : 0);
    return d->bits == 8 ? (int8_t)x : x >> in / 4 * d->bits & ((1 << d->bits) - 1);
}
static void by_definition(const hone_bits_product *d, const panel_of *w, const float *a, int64_t n, float *out) {
    for (int64_t j = 0; j < n; j++) {
        double sum = 0;
        for (int64_t k = 0; k < d->k; k++) {
            const int64_t g = k / d->block;
            const float scale = ((const float *)(const void *)(w->weights + g * d->step + d->block_bytes))[j];
            const float v = (float)(value_of(d, w, k, j) - (w->zero ? w->zero[g * N + j] : w->all)) * scale;
            sum += (double)a[k] * (w->shift ? (double)(v - w->shift[g * N + j]) : (double)v);
        }
        out[j] = (float)sum;
    }
}
static hone_status multiply_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t first = number / d->row_tiles * d->per_tile, row0 = number % d->row_tiles * d->rows_at_once;
    const int64_t last = first + d->per_tile < d->panels ? first + d->per_tile : d->panels;
    const int64_t m = d->m - row0 < d->rows_at_once ? d->m - row0 : d->rows_at_once;
    const uint8_t *panels = (const uint8_t *)hone_ref_at(s->ref[d->packed], base);
    const char *rows = hone_ref_at(s->ref[d->rows], base) + row0 * d->row_bytes, *a = hone_ref_at(s->ref[d->a], base);
    char *out = hone_ref_at(s->ref[d->out], base);
    int8_t *bytes = scratch;
    float *c = (float *)(void *)(bytes + PIECE * N), *line = c + d->rows_at_once * d->digits * N;
    const int64_t size = hone_dtypes[d->out_dtype].bytes;
    for (int64_t panel = first; panel < last; panel++) {
        const panel_of w = panel_at(d, panels + panel * d->panel_bytes);
        const int64_t n = d->n - panel * N < N ? d->n - panel * N : N;
        multiply(d, &w, rows, m, c, bytes);
        for (int64_t r = 0; r < m; r++) {
            const char *row = rows + r * d->row_bytes;
            float *v = c + r * d->digits * N;
            if (*(const int32_t *)(const void *)(row + d->at_flag)) by_definition(d, &w, row_of(d, a, row0 + r, line), n, v);
            else
                for (int k = 0; k < d->digits; k++) {
                    if (w.shift) shift_row(d, &w, row, k, v + k * N);
                    for (int j = 0; j < N && k; j++) v[j] += v[k * N + j];
                }
            char *to = out + (d->row_out[row0 + r] + panel * N) * size;
            if (d->out_dtype == HONE_DTYPE_F32) memcpy(to, v, sizeof *v * (size_t)n);
            else hone_dtype_store_n(d->out_dtype, to, HONE_F32, v, (size_t)n, false);
        }
    }
    return HONE_OK;
}
hone_status hone_bits_steps(hone_recipe_maker *m, hone_bits_product *d) {
    const uint64_t a = (uint64_t)1 << d->a, rows = (uint64_t)1 << d->rows, out = (uint64_t)1 << d->out;
    int64_t bytes;
    if (__builtin_mul_overflow(d->m, d->row_bytes, &bytes)) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    if (!hone_push(&m->packed, ((hone_packed){.of = d, .ref = d->packed, .get = packed})))
        return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    m->n_ref += 2;
    const size_t line = sizeof(float) * (size_t)hone_bits_deep(d);
    hone_step first = {
        .tactic = "quantize", .tiles = hone_pieces(d->m, d->grain), .tile = quantize_tile, .data = d, .scratch_bytes = 2 * line};
    first.serial = first.tiles == 1;
    HONE_TRY(hone_cpu_add(m, (hone_part){.step = first, .uses = a | rows, .buffer = d->rows, .bytes = bytes}));
    hone_step then = {.tactic = "bits",
                      .tiles = hone_pieces(d->panels, d->per_tile) * d->row_tiles,
                      .tile = multiply_tile,
                      .data = d,
                      .scratch_bytes = (size_t)PIECE * N + sizeof(float) * (size_t)(d->rows_at_once * d->digits * N) + line};
    then.serial = then.tiles == 1;
    return hone_cpu_add(m, (hone_part){.step = then, .uses = a | rows | out, .buffer = -1});
}
