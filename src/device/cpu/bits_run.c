/* SPDX-License-Identifier: Apache-2.0
   bits_run: products with weights of few bits in blocks: a step that quantizes rows of A, and one that
   multiplies. Few rows of A meet weights as they are packed; several meet a piece of a panel that was made
   bytes before, in L1. Rows that cannot be quantized (infinite or not a number, or tiny) are
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
    d->coupled = d->m == 1 && d->digits == 1 && d->bits == 4 && d->kernel->one &&
                 (d->zero < 0 || d->zero_dtype == HONE_DTYPE_U8);
    d->panels = hone_ceil_div(d->n, N);
    d->block_bytes = d->block * N * d->bits / 8, d->step = d->block_bytes + N * (int64_t)sizeof(float);
    d->stream_bytes = d->panel_bytes = d->blocks * d->step;
    if (d->zero >= 0) /* zero points; times scales, where they are floats */
        d->panel_bytes = hone_round_up(
            d->panel_bytes + d->blocks * N * (d->zero_dtype == HONE_DTYPE_U8 ? 1 : (int64_t)sizeof(float)),
            64);
    d->at_scale = hone_round_up(d->digits * deep, 64);
    d->at_sum = d->at_scale + hone_round_up(d->digits * d->blocks * (int64_t)sizeof(float), 64);
    d->at_start =
        d->at_sum + hone_round_up((d->coupled ? 2 : d->digits) * d->blocks * (int64_t)sizeof(int32_t), 64);
    d->at_flag = d->at_start + (d->coupled ? hone_round_up(8 * d->blocks * (int64_t)sizeof(int32_t), 64) : 0);
    d->row_bytes = d->at_flag + 64;
    d->rows_at_once = d->m < MOST_ROWS ? d->m : MOST_ROWS,
    d->row_tiles = hone_ceil_div(d->m, d->rows_at_once);
    const int64_t most = hone_ceil_div(d->panels, threads > 1 ? 4 * threads : 1);
    d->per_tile = most < TILE_COLUMNS / N ? most : TILE_COLUMNS / N;
    d->grain = SHARE / deep > 1 ? SHARE / deep : 1;
    const bool floats = d->digits == 3 && hone_bits_float_sizes(d, threads);
    /* a few rows read bytes once by `rows` */
    d->many = !floats && d->kernel->many && d->m * d->digits > (d->bits == 8 ? HONE_BITS_ROWS : 1);
    if (d->many) hone_bits_many_sizes(d);
}

/* ---- rows of A ----------------------------------------------------------------------------------------- */
/* as floats, in whole blocks */
const float *hone_bits_row_of(const hone_bits_product *d, const char *a, int64_t row, float *line) {
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
        if (d->coupled && !hone_bits_couple(v, d->block, to_q, scale + g, sum + 2 * g, start + 8 * g))
            return false;
        for (int k = 0; k < d->digits && !d->coupled; k++, to_q += deep) {
            float *left = k + 1 < d->digits ? rest : NULL;
            const int64_t at = k * d->blocks + g;
            if (d->kernel->quantize(v, d->block, to_q, scale + at, sum + at, left)) v = rest;
            else if (k == 0) return false;
            else {
                /* nothing that counts was left */
                memset(to_q, 0, (size_t)d->block), scale[at] = 0, sum[at] = 0;
                if (left) memset(left, 0, sizeof *left * (size_t)d->block), v = rest;
            }
        }
    }
    return true;
}
void hone_bits_quantize_row(const hone_bits_product *d, const float *a, char *to, float *rest) {
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
        hone_bits_quantize_row(d, hone_bits_row_of(d, a, r, scratch), to + r * d->row_bytes,
                               (float *)scratch + hone_bits_deep(d));
    return HONE_OK;
}

/* ---- products ------------------------------------------------------------------------------------------ */
static void set_row(const hone_bits_product *d, hone_bits_part *p, int i, const char *row, int digit,
                    int64_t g) {
    p->a[i] = (const int8_t *)row + digit * hone_bits_deep(d) + g * d->block;
    p->a_scale[i] = (const float *)(const void *)(row + d->at_scale) + digit * d->blocks + g;
    p->a_sum[i] =
        (const int32_t *)(const void *)(row + d->at_sum) + (d->coupled ? 2 : 1) * (digit * d->blocks + g);
}
/* Rows of A, each as its digits, times a panel: c has 16 sums for every digit of every row. */
static void multiply(const hone_bits_product *d, const hone_bits_panel *w, const char *rows, int64_t m,
                     float *c, int8_t *bytes) {
    const int64_t all = m * d->digits;
    const bool packed = d->bits == 4 && d->kernel->packed && all <= d->kernel->few;
    const int64_t at_once = packed || (d->bits == 8 && all <= HONE_BITS_ROWS) ? d->blocks : PIECE / d->block;
    memset(c, 0, sizeof *c * (size_t)(all * N));
    hone_bits_part p = {.block = d->block, .scale_step = d->step / 4};
    if (d->coupled) {
        p.m = 1, p.blocks = d->blocks, p.b = (const int8_t *)w->weights, p.b_step = d->step, p.zero = w->zero,
        p.c[0] = c;
        p.scale = (const float *)(const void *)(w->weights + d->block_bytes);
        p.start = d->zero < 0 ? (const int32_t *)(const void *)(rows + d->at_start) : NULL;
        set_row(d, &p, 0, rows, 0, 0);
        d->kernel->one(&p);
        return;
    }
    for (int64_t g = 0; g < d->blocks; g += at_once) {
        p.blocks = d->blocks - g < at_once ? d->blocks - g : at_once;
        if (packed) p.b = (const int8_t *)w->weights, p.b_step = d->step, p.all = w->all;
        else p.b = hone_bits_bytes(d, w, g, p.blocks, bytes, &p.b_step);
        p.scale = hone_bits_scales(d, w, g);
        p.zero = w->zero && (packed || d->bits == 8) ? w->zero + g * N : NULL;
        for (int64_t r = 0; r < all; r += HONE_BITS_ROWS) {
            p.m = all - r < HONE_BITS_ROWS ? (int)(all - r) : HONE_BITS_ROWS;
            for (int i = 0; i < p.m; i++) {
                set_row(d, &p, i, rows + (r + i) / d->digits * d->row_bytes, (int)((r + i) % d->digits), g);
                p.c[i] = c + (r + i) * N;
            }
            if (packed) d->kernel->packed(&p);
            else d->kernel->rows(&p);
        }
    }
}
/* What zero points that are floats take away. */
static void shift_row(const hone_bits_product *d, const hone_bits_panel *w, const char *row, int digit,
                      float *c) {
    hone_bits_part p;
    set_row(d, &p, 0, row, digit, 0);
    for (int64_t g = 0; g < d->blocks; g++) {
        const float by = p.a_scale[0][g] * (float)p.a_sum[0][g];
        for (int j = 0; j < N; j++) c[j] -= by * w->shift[g * N + j];
    }
}
/* of a weight, as it is stored */
static int value_of(const hone_bits_product *d, const hone_bits_panel *w, int64_t k, int64_t j) {
    const int64_t of_unit = 32 / d->bits, in = k % of_unit;
    const uint8_t x =
        w->weights[k / d->block * d->step + k % d->block / of_unit * HONE_BITS_UNIT + 4 * j + in % 4] ^
        (uint8_t)(d->bits == 4 ? HONE_BITS_FLIP : 0);
    return d->bits == 8 ? (int8_t)x : x >> in / 4 * d->bits & ((1 << d->bits) - 1);
}
void hone_bits_by_definition(const hone_bits_product *d, const hone_bits_panel *w, const float *a, int64_t n,
                             float *out) {
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
void hone_bits_store(const hone_bits_product *d, char *out, int64_t row, int64_t panel, const float *v) {
    const int64_t n = d->n - panel * N < N ? d->n - panel * N : N;
    char *to = out + (d->row_out[row] + panel * N) * hone_dtypes[d->out_dtype].bytes;
    if (d->out_dtype == HONE_DTYPE_F32) memcpy(to, v, sizeof *v * (size_t)n);
    else hone_dtype_store_n(d->out_dtype, to, HONE_F32, v, (size_t)n, false);
}
static hone_status multiply_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t first = number / d->row_tiles * d->per_tile, row0 = number % d->row_tiles * d->rows_at_once;
    const int64_t last = first + d->per_tile < d->panels ? first + d->per_tile : d->panels;
    const int64_t m = d->m - row0 < d->rows_at_once ? d->m - row0 : d->rows_at_once;
    const uint8_t *panels = (const uint8_t *)hone_ref_at(s->ref[d->packed], base);
    const char *rows = hone_ref_at(s->ref[d->rows], base) + row0 * d->row_bytes,
               *a = hone_ref_at(s->ref[d->a], base);
    char *out = hone_ref_at(s->ref[d->out], base);
    int8_t *bytes = scratch;
    float *c = (float *)(void *)(bytes + PIECE * N), *line = c + d->rows_at_once * d->digits * N;
    for (int64_t panel = first; panel < last; panel++) {
        const hone_bits_panel w = hone_bits_panel_at(d, panels + panel * d->panel_bytes);
        const int64_t n = d->n - panel * N < N ? d->n - panel * N : N;
        multiply(d, &w, rows, m, c, bytes);
        for (int64_t r = 0; r < m; r++) {
            const char *row = rows + r * d->row_bytes;
            float *v = c + r * d->digits * N;
            if (*(const int32_t *)(const void *)(row + d->at_flag))
                hone_bits_by_definition(d, &w, hone_bits_row_of(d, a, row0 + r, line), n, v);
            else
                for (int k = 0; k < d->digits; k++) {
                    if (w.shift) shift_row(d, &w, row, k, v + k * N);
                    for (int j = 0; j < N && k; j++) v[j] += v[k * N + j];
                }
            hone_bits_store(d, out, row0 + r, panel, v);
        }
    }
    return HONE_OK;
}
hone_status hone_bits_steps(hone_template_builder *m, hone_bits_product *d) {
    if (d->many) return hone_bits_many_steps(m, d);
    if (d->gemm) return hone_bits_float_steps(m, d);
    const uint64_t a = (uint64_t)1 << d->a, rows = (uint64_t)1 << d->rows, out = (uint64_t)1 << d->out;
    int64_t bytes;
    if (__builtin_mul_overflow(d->m, d->row_bytes, &bytes)) return hone_steps_no_memory();
    if (!hone_push(&m->packed, ((hone_packed){.of = d, .ref = d->packed, .get = hone_bits_packed})))
        return hone_steps_no_memory();
    m->n_ref += 2;
    const size_t line = sizeof(float) * (size_t)hone_bits_deep(d);
    hone_step first = {.tactic = "quantize",
                       .tiles = hone_ceil_div(d->m, d->grain),
                       .tile = quantize_tile,
                       .data = d,
                       .scratch_bytes = 2 * line};
    first.serial = first.tiles == 1;
    HONE_TRY(hone_cpu_add(
        m, (hone_step_template){.step = first, .uses = a | rows, .buffer = d->rows, .bytes = bytes}));
    hone_step then = {.tactic = "bits",
                      .tiles = hone_ceil_div(d->panels, d->per_tile) * d->row_tiles,
                      .tile = multiply_tile,
                      .data = d,
                      .scratch_bytes = (size_t)PIECE * N +
                                       sizeof(float) * (size_t)(d->rows_at_once * d->digits * N) + line};
    then.serial = then.tiles == 1;
    return hone_cpu_add(m, (hone_step_template){.step = then, .uses = a | rows | out, .buffer = -1});
}
