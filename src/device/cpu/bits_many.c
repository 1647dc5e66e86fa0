/* SPDX-License-Identifier: Apache-2.0
   bits_many: several rows of A, as 8 bits, times weights of few bits in blocks. Quantized rows stand in bands
   of a few rows, four values of K of each in turn. Few bands meet 4-bit weights as
   they are packed; for many a piece of a panel is made bytes once and meets all bands of a tile while it lies
   in L1. Zero points of few bits leave the weights as they are made bytes; others are
   `shift` to the kernel. */
#include <string.h>

#include "device/cpu/bits.h"

enum {
    N = HONE_BITS_COLUMNS,
    PIECE = 1024, /* values of K that are made bytes at a time: 16 KB */
    LEAST_BLOCK = 16,
    LINE = 64,      /* of a cache */
    FEW_BANDS = 3,  /* that meet weights as they are packed */
    SHARE = 1 << 14 /* values of A a tile quantizes, about */
};
/* Rows of a band: four keep the multipliers busy; fewer take longer, each, and are for where fours would be
   of nothing. */
static int rows_of_band(int64_t rows) {
    const int64_t by_four = 100 * 4 * hone_ceil_div(rows, 4), by_three = 120 * 3 * hone_ceil_div(rows, 3),
                  by_two = 160 * 2 * hone_ceil_div(rows, 2);
    return by_four <= by_three && by_four <= by_two ? 4 : by_three <= by_two ? 3 : 2;
}
void hone_bits_many_sizes(hone_bits_product *d) {
    const int64_t deep = hone_bits_deep(d), rows = d->m * d->digits, share = SHARE / deep;
    d->high = rows_of_band(rows);
    d->as_packed = d->bits == 4 && hone_ceil_div(rows, d->high) <= FEW_BANDS;
    /* kernels may read 16 bytes more */
    const int64_t each = hone_round_up(d->high * d->blocks * (int64_t)sizeof(float) + 16, 64);
    d->band_scale = hone_round_up(d->high * deep + 16, 64), d->band_shift = d->band_scale + each,
    d->band_start = d->band_shift + each;
    d->band_bytes = d->band_start + (d->as_packed ? 4 * d->high * d->blocks * (int64_t)sizeof(int32_t) : 0);
    d->flags = hone_ceil_div(rows, d->high) * d->band_bytes;
    d->rows_at_once = hone_round_up(d->rows_at_once, d->high),
    d->row_tiles = hone_ceil_div(d->m, d->rows_at_once);
    d->grain = share > 1 ? share : 1;
}

/* ---- rows of A ----------------------------------------------------------------------------------------- */
/* A digit of a quantized row into its place of a band; or zeros. */
static void put(const hone_bits_product *d, const char *row, bool there, int digit, int place, char *band) {
    const int64_t deep = hone_bits_deep(d), high = d->high;
    const int8_t *q = (const int8_t *)row + digit * deep;
    const int32_t *sum = (const int32_t *)(const void *)(row + d->at_sum) + digit * d->blocks;
    const float *scale = (const float *)(const void *)(row + d->at_scale) + digit * d->blocks;
    float *to_scale = (float *)(void *)(band + d->band_scale) + place,
          *to_shift = (float *)(void *)(band + d->band_shift) + place;
    int32_t *start = (int32_t *)(void *)(band + d->band_start) + 4 * place,
            *to = (int32_t *)(void *)band + place;
    for (int64_t k = 0; k < deep / 4; k++) {
        int32_t four = 0;
        if (there) memcpy(&four, q + 4 * k, 4);
        to[high * k] = four;
    }
    for (int64_t g = 0; g < d->blocks; g++)
        to_scale[high * g] = there ? scale[g] : 0, to_shift[high * g] = there ? scale[g] * (float)sum[g] : 0;
    for (int64_t g = 0; g < d->blocks && d->as_packed; g++) {
        int32_t lower = 0;
        for (int64_t k = 0; k < d->block && there; k += 8)
            for (int i = 0; i < 4; i++) lower += q[g * d->block + k + i];
        for (int i = 0; i < 4; i++) start[4 * high * g + i] = HONE_BITS_LOWER - 8 * lower;
    }
}
static hone_status quantize_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t end = (number + 1) * d->grain < d->m ? (number + 1) * d->grain : d->m;
    const char *a = hone_ref_at(s->ref[d->a], base);
    char *to = hone_ref_at(s->ref[d->rows], base), *row = scratch;
    float *line = (float *)(void *)(row + d->row_bytes);
    for (int64_t r = number * d->grain; r < end; r++) {
        hone_bits_quantize_row(d, hone_bits_row_of(d, a, r, line), row, line + hone_bits_deep(d));
        for (int k = 0; k < d->digits; k++) {
            const int64_t v = r * d->digits + k;
            put(d, row, true, k, (int)(v % d->high), to + v / d->high * d->band_bytes);
        }
        memcpy(to + d->flags + 4 * r, row + d->at_flag, 4);
    }
    for (int64_t v = d->m * d->digits; end == d->m && v % d->high; v++)
        put(d, row, false, 0, (int)(v % d->high), to + v / d->high * d->band_bytes);
    return HONE_OK;
}

/* ---- products ------------------------------------------------------------------------------------------ */
typedef struct {
    int8_t bytes[PIECE * N];
    float shift[PIECE / LEAST_BLOCK * N];
} room;
/* Zero points of a piece, times scales: those that the weights have still. */
static const float *shift_of(const hone_bits_product *d, const hone_bits_panel *w, int64_t g,
                             const hone_bits_many *p, float *room_for) {
    const int8_t *zero = w->zero && (d->bits == 8 || d->as_packed) ? w->zero + g * N : NULL;
    const float less = d->as_packed ? 8 : 0; /* the kernel's own */
    if (!zero && (!w->shift || less == 0)) return w->shift ? w->shift + g * N : NULL;
    for (int64_t i = 0; i < p->blocks; i++)
        for (int j = 0; j < N; j++) {
            const float scale = p->scale[i * p->scale_step + j];
            room_for[i * N + j] =
                zero ? ((float)zero[i * N + j] - less) * scale : w->shift[(g + i) * N + j] - less * scale;
        }
    return room_for;
}
/* c: 16 sums for every digit of every row. */
static void multiply(const hone_bits_product *d, const hone_bits_panel *w, const char *bands, int64_t n,
                     float *c, room *at) {
    const int64_t at_once = PIECE / d->block;
    memset(c, 0, sizeof *c * (size_t)(n * d->high * N));
    for (int64_t g = 0; g < d->blocks; g += at_once) {
        hone_bits_many p = {
            .high = d->high, .packed = d->as_packed, .block = d->block, .scale_step = d->step / 4};
        p.blocks = d->blocks - g < at_once ? d->blocks - g : at_once, p.scale = hone_bits_scales(d, w, g);
        if (d->as_packed) p.b = (const int8_t *)w->weights + g * d->step, p.b_step = d->step;
        else p.b = hone_bits_bytes(d, w, g, p.blocks, at->bytes, &p.b_step);
        p.shift = shift_of(d, w, g, &p, at->shift);
        /* what comes next, here or in the panel behind this one, is prefetched meanwhile, a share with each
           band */
        const uint8_t *next = w->weights + (g + p.blocks) * d->step +
                              (g + p.blocks == d->blocks ? d->panel_bytes - d->stream_bytes : 0);
        const int64_t share = hone_round_up(hone_ceil_div(at_once * d->step, n), LINE);
        for (int64_t k = 0; k < n; k++) {
            for (int64_t line = k * share; line < (k + 1) * share; line += LINE)
                __builtin_prefetch(next + line);
            const char *band = bands + k * d->band_bytes;
            p.a = (const int8_t *)band + d->high * g * d->block, p.c = c + k * d->high * N;
            p.a_scale = (const float *)(const void *)(band + d->band_scale) + d->high * g;
            p.a_shift = (const float *)(const void *)(band + d->band_shift) + d->high * g;
            p.a_start = (const int32_t *)(const void *)(band + d->band_start) + 4 * d->high * g;
            d->kernel->many(&p);
        }
    }
}
static hone_status multiply_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t first = number / d->row_tiles * d->per_tile, row0 = number % d->row_tiles * d->rows_at_once;
    const int64_t last = first + d->per_tile < d->panels ? first + d->per_tile : d->panels;
    const int64_t m = d->m - row0 < d->rows_at_once ? d->m - row0 : d->rows_at_once,
                  n = hone_ceil_div(m * d->digits, d->high);
    const uint8_t *panels = (const uint8_t *)hone_ref_at(s->ref[d->packed], base);
    const char *bands = hone_ref_at(s->ref[d->rows], base), *flags = bands + d->flags + 4 * row0,
               *a = hone_ref_at(s->ref[d->a], base);
    char *out = hone_ref_at(s->ref[d->out], base);
    room *at = scratch;
    float *c = (float *)(void *)(at + 1), *line = c + hone_round_up(d->rows_at_once * d->digits, d->high) * N;
    for (int64_t panel = first; panel < last; panel++) {
        const hone_bits_panel w = hone_bits_panel_at(d, panels + panel * d->panel_bytes);
        multiply(d, &w, bands + row0 * d->digits / d->high * d->band_bytes, n, c, at);
        for (int64_t r = 0; r < m; r++) {
            float *v = c + r * d->digits * N;
            int32_t odd;
            memcpy(&odd, flags + 4 * r, 4);
            if (odd) hone_bits_by_definition(d, &w, hone_bits_row_of(d, a, row0 + r, line), N, v);
            else
                for (int k = 1; k < d->digits; k++)
                    for (int j = 0; j < N; j++) v[j] += v[k * N + j];
            hone_bits_store(d, out, row0 + r, panel, v);
        }
    }
    return HONE_OK;
}
hone_status hone_bits_many_steps(hone_template_builder *m, hone_bits_product *d) {
    const uint64_t a = (uint64_t)1 << d->a, rows = (uint64_t)1 << d->rows, out = (uint64_t)1 << d->out;
    int64_t bytes;
    if (__builtin_mul_overflow(d->m * d->digits, d->band_bytes, &bytes)) return hone_steps_no_memory();
    bytes = d->flags + 4 * d->m;
    if (!hone_push(&m->packed, ((hone_packed){.of = d, .ref = d->packed, .get = hone_bits_packed})))
        return hone_steps_no_memory();
    m->n_ref += 2;
    const size_t line = sizeof(float) * (size_t)hone_bits_deep(d);
    hone_step first = {.tactic = "quantize",
                       .tiles = hone_ceil_div(d->m, d->grain),
                       .tile = quantize_tile,
                       .data = d,
                       .scratch_bytes = (size_t)d->row_bytes + 2 * line};
    first.serial = first.tiles == 1;
    HONE_TRY(hone_cpu_add(
        m, (hone_step_template){.step = first, .uses = a | rows, .buffer = d->rows, .bytes = bytes}));
    hone_step then = {.tactic = "bits",
                      .tiles = hone_ceil_div(d->panels, d->per_tile) * d->row_tiles,
                      .tile = multiply_tile,
                      .data = d,
                      .scratch_bytes =
                          sizeof(room) +
                          sizeof(float) * (size_t)(hone_round_up(d->rows_at_once * d->digits, d->high) * N) +
                          line};
    then.serial = then.tiles == 1;
    return hone_cpu_add(m, (hone_step_template){.step = then, .uses = a | rows | out, .buffer = -1});
}
