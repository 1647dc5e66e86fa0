/* SPDX-License-Identifier: Apache-2.0
   bits_many: many rows of A, as 8 bits, times weights of few bits in blocks: rows are quantized and stand in fours, value groups of four in turn; a piece of a panel is made bytes once and
   meets all fours of a tile while it lies in L1. Zero points of few bits leave the weights as they are made bytes; those of 8 bits, and floats, are `shift` to the kernel. */
#include <string.h>

#include "device/cpu/bits.h"

enum {
    N = HONE_BITS_COLUMNS,
    FOUR = 4,
    PIECE = 1024, /* values of K that are made bytes at a time: 16 KB */
    LEAST_BLOCK = 16,
    LINE = 64,      /* of a cache */
    SHARE = 1 << 14 /* values of A a tile quantizes, about */
};
static int64_t rows_of_four(const hone_bits_product *d) { return FOUR / d->digits; } /* a row is its digits */

void hone_bits_many_sizes(hone_bits_product *d) {
    const int64_t deep = hone_bits_deep(d), each = FOUR * d->blocks * (int64_t)sizeof(float), per = rows_of_four(d);
    d->four_scale = hone_up(FOUR * deep, 64), d->four_shift = d->four_scale + hone_up(each, 64);
    d->four_flag = d->four_shift + hone_up(each, 64), d->four_bytes = d->four_flag + 64;
    d->rows_at_once = hone_up(d->rows_at_once, per), d->row_tiles = hone_pieces(d->m, d->rows_at_once);
    d->grain = hone_up(SHARE / deep > 1 ? SHARE / deep : 1, per);
}

/* ---- rows of A ---------------------------------------------------------------------------------------------------------------------- */
static void put_digit(const hone_bits_product *d, const char *row, int digit, int place, char *four) {
    const int64_t deep = hone_bits_deep(d);
    const int32_t *q = (const int32_t *)(const void *)(row + digit * deep), *sum = (const int32_t *)(const void *)(row + d->at_sum);
    const float *scale = (const float *)(const void *)(row + d->at_scale) + digit * d->blocks;
    int32_t *to = (int32_t *)(void *)four + place;
    float *to_scale = (float *)(void *)(four + d->four_scale) + place, *to_shift = (float *)(void *)(four + d->four_shift) + place;
    for (int64_t k = 0; k < deep / 4; k++) to[FOUR * k] = q[k];
    for (int64_t g = 0; g < d->blocks; g++)
        to_scale[FOUR * g] = scale[g], to_shift[FOUR * g] = scale[g] * (float)sum[digit * d->blocks + g];
}
static hone_status quantize_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t per = rows_of_four(d), end = (number + 1) * d->grain < d->m ? (number + 1) * d->grain : d->m;
    const char *a = hone_ref_at(s->ref[d->a], base);
    char *to = hone_ref_at(s->ref[d->rows], base), *row = scratch;
    float *line = (float *)(void *)(row + d->row_bytes);
    for (int64_t r = number * d->grain; r < end; r += per) {
        char *four = to + r / per * d->four_bytes;
        if (end - r < per) memset(four, 0, (size_t)d->four_bytes);
        for (int64_t i = 0; i < per && r + i < end; i++) {
            hone_bits_quantize_row(d, hone_bits_row_of(d, a, r + i, line), row, line + hone_bits_deep(d));
            for (int k = 0; k < d->digits; k++) put_digit(d, row, k, (int)i * d->digits + k, four);
            memcpy(four + d->four_flag + 4 * i, row + d->at_flag, 4);
        }
    }
    return HONE_OK;
}

/* ---- products ----------------------------------------------------------------------------------------------------------------------- */
typedef struct {
    int8_t bytes[PIECE * N];
    float shift[PIECE / LEAST_BLOCK * N];
} room;
/* c: 16 sums for every digit of every row. */
static void multiply(const hone_bits_product *d, const hone_bits_panel *w, const char *fours, int64_t n_four, float *c, room *at) {
    const int64_t at_once = PIECE / d->block;
    memset(c, 0, sizeof *c * (size_t)(n_four * FOUR * N));
    for (int64_t g = 0; g < d->blocks; g += at_once) {
        hone_bits_four p = {.block = d->block, .blocks = d->blocks - g < at_once ? d->blocks - g : at_once, .scale_step = d->step / 4};
        p.b = hone_bits_bytes(d, w, g, p.blocks, at->bytes, &p.b_step), p.scale = hone_bits_scales(d, w, g);
        if (w->shift) p.shift = w->shift + g * N;
        else if (w->zero && d->bits == 8) {
            for (int64_t i = 0; i < p.blocks; i++)
                for (int j = 0; j < N; j++) at->shift[i * N + j] = (float)w->zero[(g + i) * N + j] * p.scale[i * p.scale_step + j];
            p.shift = at->shift;
        }
        /* what comes next, here or in the panel behind this one, is asked for meanwhile, a share with each four */
        const uint8_t *next = w->weights + (g + p.blocks) * d->step + (g + p.blocks == d->blocks ? d->panel_bytes - d->stream_bytes : 0);
        const int64_t share = hone_up(hone_pieces(at_once * d->step, n_four), LINE);
        for (int64_t f = 0; f < n_four; f++) {
            for (int64_t at_line = f * share; at_line < (f + 1) * share; at_line += LINE) __builtin_prefetch(next + at_line);
            const char *four = fours + f * d->four_bytes;
            p.a = (const int8_t *)four + FOUR * g * d->block, p.c = c + f * FOUR * N;
            p.a_scale = (const float *)(const void *)(four + d->four_scale) + FOUR * g;
            p.a_shift = (const float *)(const void *)(four + d->four_shift) + FOUR * g;
            d->kernel->four(&p);
        }
    }
}
static hone_status multiply_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t first = number / d->row_tiles * d->per_tile, row0 = number % d->row_tiles * d->rows_at_once, per = rows_of_four(d);
    const int64_t last = first + d->per_tile < d->panels ? first + d->per_tile : d->panels;
    const int64_t m = d->m - row0 < d->rows_at_once ? d->m - row0 : d->rows_at_once, n_four = hone_pieces(m, per);
    const uint8_t *panels = (const uint8_t *)hone_ref_at(s->ref[d->packed], base);
    const char *fours = hone_ref_at(s->ref[d->rows], base) + row0 / per * d->four_bytes, *a = hone_ref_at(s->ref[d->a], base);
    char *out = hone_ref_at(s->ref[d->out], base);
    room *at = scratch;
    float *c = (float *)(void *)(at + 1), *line = c + hone_pieces(d->rows_at_once, per) * FOUR * N;
    for (int64_t panel = first; panel < last; panel++) {
        const hone_bits_panel w = hone_bits_panel_at(d, panels + panel * d->panel_bytes);
        multiply(d, &w, fours, n_four, c, at);
        for (int64_t r = 0; r < m; r++) {
            float *v = c + r * d->digits * N;
            int32_t odd;
            memcpy(&odd, fours + r / per * d->four_bytes + d->four_flag + 4 * (r % per), 4);
            if (odd) hone_bits_by_definition(d, &w, hone_bits_row_of(d, a, row0 + r, line), N, v);
            else
                for (int j = 0; j < N && d->digits == 2; j++) v[j] += v[N + j];
            hone_bits_store(d, out, row0 + r, panel, v);
        }
    }
    return HONE_OK;
}
hone_status hone_bits_many_steps(hone_recipe_maker *m, hone_bits_product *d) {
    const uint64_t a = (uint64_t)1 << d->a, rows = (uint64_t)1 << d->rows, out = (uint64_t)1 << d->out;
    const int64_t per = rows_of_four(d);
    int64_t bytes;
    if (__builtin_mul_overflow(hone_pieces(d->m, per), d->four_bytes, &bytes)) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    if (!hone_push(&m->packed, ((hone_packed){.of = d, .ref = d->packed, .get = hone_bits_packed})))
        return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    m->n_ref += 2;
    const size_t line = sizeof(float) * (size_t)hone_bits_deep(d);
    hone_step first = {.tactic = "quantize",
                       .tiles = hone_pieces(d->m, d->grain),
                       .tile = quantize_tile,
                       .data = d,
                       .scratch_bytes = (size_t)d->row_bytes + 2 * line};
    first.serial = first.tiles == 1;
    HONE_TRY(hone_cpu_add(m, (hone_part){.step = first, .uses = a | rows, .buffer = d->rows, .bytes = bytes}));
    hone_step then = {.tactic = "bits",
                      .tiles = hone_pieces(d->panels, d->per_tile) * d->row_tiles,
                      .tile = multiply_tile,
                      .data = d,
                      .scratch_bytes = sizeof(room) + sizeof(float) * (size_t)(hone_pieces(d->rows_at_once, per) * FOUR * N) + line};
    then.serial = then.tiles == 1;
    return hone_cpu_add(m, (hone_part){.step = then, .uses = a | rows | out, .buffer = -1});
}
