/* SPDX-License-Identifier: Apache-2.0
   bits_float: many rows of A times weights of few bits in blocks where A may not be rounded: pieces of some
   columns are made floats, as panels of the f32 kernel, and meet all rows of a tile while
   they lie in a cache. Sums are those of f32 products, so rows that are infinite or not a number need nothing
   else. Where the kernel takes packed rows, a step before packs them. */
#include <string.h>

#include "device/cpu/bits.h"

enum {
    N = HONE_BITS_COLUMNS,
    /* fewer are as fast as digits of 8 bits, and their weights are not made floats for so little; */
    LEAST_ROWS = 12,
    LEAST_BANDS = 28, /* where those have kernels for bands */
    MOST_ROWS = 256,
    PIECE = 512, /* values of K at a time, whole blocks: with 12 columns 24 KB */
    QUAD = 4,
    SHARE = 1 << 14 /* values of A a tile packs, about */
};
static int64_t least_common(int64_t a, int64_t b) {
    int64_t x = a;
    while (x % b) x += a;
    return x;
}
bool hone_bits_float_sizes(hone_bits_product *d, int threads) {
    if (d->m < (d->kernel->many ? LEAST_BANDS : LEAST_ROWS) || d->a_dtype != HONE_DTYPE_F32 ||
        d->out_dtype != HONE_DTYPE_F32)
        return false;
    const hone_gemm_f32 *gemm = hone_gemm_f32_best();
    d->columns = gemm->packed_widths * gemm->vector, d->across = (int)least_common(d->columns, N),
    d->gemm = gemm;
    const int64_t most = gemm->mr[gemm->packed_widths - 1];
    d->at_once = d->m < MOST_ROWS ? d->m : MOST_ROWS;
    if (threads > 1 && hone_ceil_div(d->n, d->across) < 2 * threads)
        d->at_once = hone_ceil_div(d->at_once, threads);
    /* all about as high: a low block costs as much */
    d->high = (int)hone_ceil_div(d->at_once, hone_ceil_div(d->at_once, most));
    d->at_once = hone_round_up(d->at_once, d->high), d->row_tiles = hone_ceil_div(d->m, d->at_once);
    d->packed_rows = hone_ceil_div(d->m, d->high) * HONE_GEMM_PACKED_M(d->high);
    d->piece = PIECE / d->block * d->block, d->pieces = hone_ceil_div(d->k, d->piece);
    d->grain = hone_round_up(SHARE / d->piece > 1 ? SHARE / d->piece : 1, d->high);
    return true;
}
static int64_t of_piece(const hone_bits_product *d, int64_t p) {
    return d->k - p * d->piece < d->piece ? d->k - p * d->piece : d->piece;
}

/* ---- rows of A ----------------------------------------------------------------------------------------- */
/* Piece by piece of K; in a piece block by block of rows. */
static float *packed_at(const hone_bits_product *d, float *packed, int64_t p, int64_t row) {
    return packed + p * d->piece * d->packed_rows +
           row / d->high * HONE_GEMM_PACKED_M(d->high) * of_piece(d, p);
}
static void point(const hone_bits_product *d, const char *a, int64_t row, int64_t m, int64_t p,
                  const float **rows) {
    for (int64_t i = 0; i < m; i++)
        rows[i] = (const float *)(const void *)a + d->first_a + d->row_a[row + i] + p * d->piece;
}
static hone_status pack_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t p = number % d->pieces, row = number / d->pieces * d->grain,
                  m = d->m - row < d->grain ? d->m - row : d->grain;
    const float **rows = scratch;
    point(d, hone_ref_at(s->ref[d->a], base), row, m, p, rows);
    const hone_gemm_args part = {.m = (int)m, .m_block = d->high, .taps = 1, .k = of_piece(d, p), .a = rows};
    d->gemm->pack_a(&part, packed_at(d, (float *)(void *)hone_ref_at(s->ref[d->rows], base), p, row));
    return HONE_OK;
}

/* ---- weights ------------------------------------------------------------------------------------------- */
/* Of n columns those of the panel that begins at column `from`, in whole vectors: the last one may be
   narrow. */
static int wide(const hone_bits_product *d, int64_t n, int64_t from) {
    const int64_t left = hone_round_up(n - from, d->gemm->vector);
    return left < d->columns ? (int)left : d->columns;
}
/* Blocks of a panel of 16 columns, of which the first is column `from` of those n that are made floats, into
   panels of the kernel's. */
static void make_floats(const hone_bits_product *d, const hone_bits_panel *w, int64_t g, int64_t blocks,
                        int64_t n, int64_t from, int8_t *bytes, float *to) {
    ptrdiff_t step, apart[N / QUAD];
    const int8_t *b = hone_bits_bytes(d, w, g, blocks, bytes, &step);
    float *quad[N / QUAD];
    for (int q = 0; q < N / QUAD; q++) {
        const int64_t column = from + q * QUAD, panel = column / d->columns * d->columns;
        const bool there = column < hone_round_up(n, d->gemm->vector);
        quad[q] = there ? to + panel * d->piece + column % d->columns : to + d->across * d->piece;
        apart[q] = there ? wide(d, n, panel) : 0; /* columns that no panel has go to the end of the room */
    }
    for (int64_t i = 0; i < blocks; i++, b += step) {
        d->kernel->floats(d->block, b, hone_bits_scales(d, w, g + i),
                          w->zero && d->bits == 8 ? w->zero + (g + i) * N : NULL,
                          w->shift ? w->shift + (g + i) * N : NULL, quad, apart);
        for (int q = 0; q < N / QUAD; q++) quad[q] += d->block * apart[q];
    }
}
typedef struct {
    const float **a, **sums;
    float **c, *floats;
    int8_t *bytes;
} room;
static size_t pointers(const hone_bits_product *d) {
    return hone_round_up64(sizeof(void *) * (size_t)d->at_once);
}
static room room_at(const hone_bits_product *d, void *scratch) {
    char *at = scratch;
    const size_t each = pointers(d);
    return (room){(const float **)scratch, (const float **)(void *)(at + each), (float **)(void *)(at + each),
                  (float *)(void *)(at + 2 * each),
                  (int8_t *)at + 2 * each + sizeof(float) * (size_t)(d->piece * d->across + QUAD)};
}
static size_t room_bytes(const hone_bits_product *d) {
    return 2 * pointers(d) + sizeof(float) * (size_t)(d->piece * d->across + QUAD) + (size_t)(d->piece * N);
}
static hone_status multiply_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_bits_product *d = s->data;
    const int64_t c0 = number / d->row_tiles * d->across, row0 = number % d->row_tiles * d->at_once;
    const int64_t m = d->m - row0 < d->at_once ? d->m - row0 : d->at_once,
                  n = d->n - c0 < d->across ? d->n - c0 : d->across;
    const uint8_t *panels = (const uint8_t *)hone_ref_at(s->ref[d->packed], base) + c0 / N * d->panel_bytes;
    float *out = (float *)(void *)hone_ref_at(s->ref[d->out], base);
    const char *a = hone_ref_at(s->ref[d->a], base);
    const room at = room_at(d, scratch);
    for (int64_t i = 0; i < m; i++) at.c[i] = out + d->row_out[row0 + i] + c0;
    for (int64_t p = 0; p < d->pieces; p++) {
        const int64_t g = p * d->piece / d->block, k = of_piece(d, p);
        for (int64_t j = 0; j < n; j += N) {
            const hone_bits_panel w = hone_bits_panel_at(d, panels + j / N * d->panel_bytes);
            make_floats(d, &w, g, hone_ceil_div(k, d->block), n, j, at.bytes, at.floats);
        }
        if (!d->gemm->pack_a) point(d, a, row0, m, p, at.a);
        for (int64_t j = 0; j < n; j += d->columns) {
            hone_gemm_args part = {.n = (int)(n - j < d->columns ? n - j : d->columns),
                                   .taps = 1,
                                   .k = k,
                                   .b = at.floats + j * d->piece,
                                   .b_step = wide(d, n, j)};
            part.c_from = part.sums_from = j, part.more = p > 0, part.epilogue = p + 1 == d->pieces;
            hone_gemm_f32_fn *run = d->gemm->run[part.b_step / d->gemm->vector - 1];
            const int64_t step = d->gemm->pack_a ? m : d->high;
            for (int64_t i = 0; i < m; i += step) {
                part.m = (int)(m - i < step ? m - i : step), part.a = at.a + i, part.c = at.c + i,
                part.sums = at.sums + i;
                if (d->gemm->pack_a) {
                    part.m_block = d->high, part.a = NULL;
                    part.packed_a =
                        packed_at(d, (float *)(void *)hone_ref_at(s->ref[d->rows], base), p, row0);
                }
                run(&part);
            }
        }
    }
    return HONE_OK;
}
hone_status hone_bits_float_steps(hone_template_builder *m, hone_bits_product *d) {
    const bool packs = d->gemm->pack_a;
    const uint64_t a = (uint64_t)1 << d->a, rows = packs ? (uint64_t)1 << d->rows : 0,
                   out = (uint64_t)1 << d->out;
    int64_t bytes;
    if (__builtin_mul_overflow(d->packed_rows, d->k * (int64_t)sizeof(float), &bytes))
        return hone_steps_no_memory();
    if (!hone_push(&m->packed, ((hone_packed){.of = d, .ref = d->packed, .get = hone_bits_packed})))
        return hone_steps_no_memory();
    m->n_ref += 1 + packs;
    if (packs) {
        hone_step first = {.tactic = "pack",
                           .tiles = hone_ceil_div(d->m, d->grain) * d->pieces,
                           .tile = pack_tile,
                           .data = d,
                           .scratch_bytes = sizeof(void *) * (size_t)d->grain};
        first.serial = first.tiles == 1;
        HONE_TRY(hone_cpu_add(
            m, (hone_step_template){.step = first, .uses = a | rows, .buffer = d->rows, .bytes = bytes}));
    }
    hone_step then = {.tactic = "bits",
                      .tiles = hone_ceil_div(d->n, d->across) * d->row_tiles,
                      .tile = multiply_tile,
                      .data = d,
                      .scratch_bytes = room_bytes(d)};
    then.serial = then.tiles == 1;
    return hone_cpu_add(m, (hone_step_template){.step = then, .uses = a | rows | out, .buffer = -1});
}
