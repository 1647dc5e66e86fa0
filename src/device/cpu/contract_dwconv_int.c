/* SPDX-License-Identifier: Apache-2.0
   contract_dwconv_int: depthwise convolutions of 8 bits over channels-last images: a pixel is a row, a
   window's place a row of channels. Exact, as contract_int.c, whose words about zero points hold here too;
   the weights' own are nothing in most models, and are taken from the weights before the first pixel where
   they are not. */
#include <string.h>

#include "base/round.h"
#include "device/cpu/contract_int.h"

static int64_t wide_of(const hone_contract *d) { return 16 * d->dwconv_i8->kernel->lanes; }
static int64_t columns_of(const hone_contract *d) { return hone_round_up(d->of.n, HONE_REQUANTIZE_BLOCK); }
/* Groups of places: the window's columns where pixels share them, else places in a row. */
static int64_t groups_of(const hone_contract *d) {
    return d->dwconv_i8->stride ? d->of.k_run : hone_ceil_div(d->of.k, d->dwconv_i8->kernel->group);
}
static int64_t high_of(const hone_contract *d) {
    return d->dwconv_i8->stride ? d->of.k / d->of.k_run : d->dwconv_i8->kernel->group;
}
static int64_t place_of(const hone_contract *d, int64_t j) { /* of column j, among all */
    return j / wide_of(d) * wide_of(d) + hone_dwconv_i8_position(d->dwconv_i8->kernel->lanes, j % wide_of(d));
}
/* Columns of the window are shared where pixels of a row are as far apart as some of them; and so few
   channels that two pixels fit a block are taken in pairs. */
static bool fits_twice(const hone_contract *d) { return 2 * d->of.n <= wide_of(d); }
/* How far apart bytes of pixels are that follow on in a row of the image; 0: not equally. */
static int64_t out_apart(const hone_contract *d) {
    if (!d->epilogue || !d->epilogue->by_row) return 0;
    const int64_t *out = d->epilogue->out.at_m, step = out[1] - out[0];
    for (int64_t i = 0; i + 1 < d->of.m; i++)
        if ((i + 1) % d->of.m_run && out[i + 1] - out[i] != step) return 0;
    return step;
}
/* Has this pixel all of each row of its window inside, or none of it? */
static bool whole_pixel(const hone_contract *d, int64_t m) {
    const uint64_t row = ((uint64_t)1 << d->of.k_run) - 1, outside = d->outside ? d->outside[m] : 0;
    for (int64_t t = 0; t < d->of.k; t += d->of.k_run)
        if ((outside >> t & row) && (outside >> t & row) != row) return false;
    return true;
}
/* Are places of a pixel those of the pixel above, one row of the window further? Then the kernel may take
   both rows of the image at once. */
static bool share_rows(const hone_contract *d) {
    const int64_t high = d->of.k / d->of.k_run, *k = d->at_k_a, down = k[d->of.k_run] - k[0];
    if (!d->dwconv_i8->kernel->below || high + 1 > d->dwconv_i8->kernel->group) return false;
    for (int64_t q = 1; q < high; q++)
        if (k[q * d->of.k_run] - k[(q - 1) * d->of.k_run] != down) return false;
    const uint32_t upper = d->outside ? ((uint32_t)1 << (d->of.k - d->of.k_run)) - 1 : 0;
    for (int64_t i = 0; i + d->of.m_run < d->of.m; i++) {
        if (d->at_m_a[i + d->of.m_run] - d->at_m_a[i] != down) return false;
        if (d->outside && (d->outside[i + d->of.m_run] & upper) != d->outside[i] >> d->of.k_run) return false;
    }
    return true;
}
void hone_dwconv_int_choose(hone_arena *arena, hone_contract *d) {
    d->dwconv_i8->stride = d->i8->out_apart = 0, d->dwconv_i8->pairs = NULL, d->dwconv_i8->below = false;
    if (d->dwconv_i8->kernel->group < 4 || d->of.k_run < 2 || d->of.k / d->of.k_run > 4 || d->of.m_run < 2 ||
        (d->a.n_bounded && !d->outside))
        return;
    const int64_t pixel = d->at_m_a[1] - d->at_m_a[0], column = d->at_k_a[1] - d->at_k_a[0];
    if (column <= 0 || pixel <= 0 || pixel % column || pixel / column > d->of.k_run) return;
    d->dwconv_i8->stride = pixel / column;
    d->i8->out_apart = out_apart(d), d->dwconv_i8->below = d->of.k > d->of.k_run && share_rows(d);
    const bool twice = d->dwconv_i8->stride == 1 && fits_twice(d) && column == d->of.n &&
                       (d->i8->out_apart == d->of.n || (d->epilogue && d->epilogue->finish));
    uint8_t *pairs = twice ? hone_arena_alloc(arena, (size_t)d->of.m) : NULL;
    for (int64_t m = d->of.m - 1, run = 0; pairs && m >= 0; m--) {
        run = !whole_pixel(d, m) ? 0 : (m + 1) % d->of.m_run == 0 ? 1 : run + 1;
        pairs[m] = (uint8_t)(run < 255 ? run : 255);
    }
    d->dwconv_i8->pairs = pairs;
}
/* Weights as the kernel takes them, then the sum of each column. */
size_t hone_dwconv_int_bytes(const hone_contract *d) {
    return (size_t)(columns_of(d) * (groups_of(d) * d->dwconv_i8->kernel->group + (int64_t)sizeof(int32_t)));
}
static void put(const hone_contract *d, int8_t *to, int64_t t, int64_t j, int8_t v) {
    const int64_t group = d->dwconv_i8->kernel->group, wide = wide_of(d), block = j / wide,
                  groups = groups_of(d);
    const int64_t g = d->dwconv_i8->stride ? t % d->of.k_run : t / group,
                  q = d->dwconv_i8->stride ? t / d->of.k_run : t % group;
    to[((block * groups + g) * wide + place_of(d, j) - block * wide) * group + q] = v;
}
void hone_dwconv_int_fill(const hone_contract *d, const uint8_t *source, void *panels) {
    int32_t *sum =
        (int32_t *)(void *)((char *)panels + columns_of(d) * groups_of(d) * d->dwconv_i8->kernel->group);
    memset(panels, 0, hone_dwconv_int_bytes(d));
    for (int64_t j = 0; j < d->of.n; j++)
        for (int64_t t = 0; t < d->of.k; t++) {
            const int8_t v =
                (int8_t)(source[d->at_row_b[j / d->of.run] + j % d->of.run * d->of.run_step + d->at_k_b[t]] ^
                         d->i8->flip_b);
            put(d, panels, t, j, v), sum[j] += v;
            if (fits_twice(d)) put(d, panels, t, j + d->of.n, v);
        }
}
/* Weights less their zero points are of 9 bits: `own` is what 8 bits hold of them, `over` the rest, which in
   most blocks of columns is nothing; `spills` says in which it is not.
   Returns whether there are such. */
typedef struct {
    int8_t *own, *over;
    uint8_t *spills; /* a block */
} shifted;
enum { BLOCK_BYTES = 4 * 64 };
/* What is to be taken from a block's weights of group g, 0 where there is no place. */
static void minus_of(const hone_contract *d, void *const *at, const hone_standing *w, int64_t block,
                     int64_t g, int8_t *minus) {
    const int64_t group = d->dwconv_i8->kernel->group, wide = wide_of(d),
                  have = fits_twice(d) ? 2 * d->of.n : d->of.n;
    memset(minus, 0, BLOCK_BYTES);
    for (int64_t j = block * wide; j < have && j < (block + 1) * wide; j++) {
        int8_t *here = minus + (place_of(d, j) - block * wide) * group;
        const int8_t zero = (int8_t)hone_contract_int_zero(d, false, at, w, j < d->of.n ? j : j - d->of.n);
        for (int64_t q = 0; q < group; q++)
            if (d->dwconv_i8->stride ? q < high_of(d) : g * group + q < d->of.k) here[q] = zero;
    }
}
static bool shift(const hone_contract *d, void *const *at, const hone_standing *w, const int8_t *weights,
                  shifted to) {
    const int64_t groups = groups_of(d), bytes = wide_of(d) * d->dwconv_i8->kernel->group,
                  blocks = columns_of(d) / wide_of(d);
    int8_t minus[BLOCK_BYTES];
    bool any = false;
    for (int64_t b = 0, i = 0; b < blocks; b++) {
        uint8_t spills = 0;
        for (int64_t g = 0; g < groups; g++, i += bytes) {
            /* the same for all groups, but for the last where places are not columns; and for all whole
               blocks where the zero point is one */
            if (g == 0 ? b == 0 || d->i8->zero_b.at || !d->dwconv_i8->stride || b == blocks - 1
                       : g == groups - 1 && !d->dwconv_i8->stride)
                minus_of(d, at, w, b, g, minus);
            const int8_t *restrict from = weights + i;
            int8_t *restrict own = to.own + i, *restrict over = to.over + i;
            for (int64_t c = 0; c < bytes; c++) {
                const int v = from[c] - minus[c], held = v < -128 ? -128 : v > 127 ? 127 : v;
                own[c] = (int8_t)held, over[c] = (int8_t)(v - held), spills |= (uint8_t)over[c];
            }
        }
        to.spills[b] = spills != 0, any |= spills != 0;
    }
    return any;
}
/* Where each place of the window of pixels m0 …, m of them and of one row of the image, begins, `apart`
   pointers a place; those past the last place are any. With shared columns only those of rows of the window
   from `first` on. */
static int64_t run_of(const hone_contract *d) {
    return d->dwconv_i8->stride && d->of.m_run < d->mt ? d->of.m_run : d->mt;
}
static int64_t apart_of(const hone_contract *d) {
    return d->dwconv_i8->stride ? (run_of(d) - 1) * d->dwconv_i8->stride + d->of.k_run : d->mt;
}
static void point(const hone_contract *d, const uint8_t *a, const hone_standing *w, int64_t m0, int64_t m,
                  const uint8_t *outside, int64_t first, const uint8_t **at) {
    const int64_t places = high_of(d) * (d->dwconv_i8->stride ? 1 : groups_of(d)), apart = apart_of(d),
                  *from = d->at_m_a + m0, *k = d->at_k_a;
    if (d->dwconv_i8->stride) {
        const int64_t columns = (m - 1) * d->dwconv_i8->stride + d->of.k_run, step = k[1] - k[0];
        for (int64_t q = first; q < places; q++)
            hone_ladder(at + q * apart, a + from[0] + k[q * d->of.k_run], step, columns);
        for (int64_t i = 0; d->outside && i < m; i++) {
            const uint32_t *here = d->outside + m0 + i;
            uint32_t any = 0;
            for (int q = 0; i + 16 <= m && q < 16; q++) any |= here[q]; /* most pixels are inside */
            if (i + 16 <= m && !any) {
                i += 15;
                continue;
            }
            for (uint32_t bad = *here >> first * d->of.k_run << first * d->of.k_run; bad; bad &= bad - 1) {
                const int64_t t = __builtin_ctz(bad);
                at[t / d->of.k_run * apart + i * d->dwconv_i8->stride + t % d->of.k_run] = outside;
            }
        }
        return;
    }
    for (int64_t t = 0; t < places; t++) {
        const uint8_t *place = a + k[t < d->of.k ? t : 0];
        for (int64_t i = 0; i < m; i++) at[t * apart + i] = t < d->of.k ? place + from[i] : outside;
    }
    for (int64_t i = 0; d->outside && i < m; i++)
        for (uint32_t bad = d->outside[m0 + i]; bad; bad &= bad - 1)
            at[__builtin_ctz(bad) * apart + i] = outside;
    for (int64_t i = 0; d->a.n_bounded && !d->outside && i < m; i++) {
        if (hone_contract_all_inside(d, w, m0 + i)) continue;
        for (int64_t t = 0; t < d->of.k; t++)
            if (!hone_contract_inside(d, w, m0 + i, t)) at[t * apart + i] = outside;
    }
}
/* Sums as they are, of the part's columns. */
static void sum_up(const hone_contract *d, hone_dwconv_i8_args part, const shifted *over, int32_t *sums) {
    const int64_t columns = columns_of(d), wide = wide_of(d), n = part.n;
    int32_t *row[HONE_DWCONV_I8_ROWS], *more[HONE_DWCONV_I8_ROWS];
    for (int i = 0; i < part.m; i++)
        row[i] = sums + i * columns, more[i] = row[i] + HONE_DWCONV_I8_ROWS * columns;
    part.sums = row, part.requantize = NULL, part.c = part.below = NULL;
    d->dwconv_i8->kernel->run(&part);
    part.sums = more, part.b = over ? over->over : NULL;
    for (int64_t j = part.from; over && j < n; j += wide) {
        if (!over->spills[j / wide]) continue;
        part.from = j, part.n = n < j + wide ? n : j + wide;
        d->dwconv_i8->kernel->run(&part);
        for (int i = 0; i < part.m; i++)
            for (int64_t c = j; c < part.n; c++)
                row[i][c] = (int32_t)((uint32_t)row[i][c] + (uint32_t)more[i][c]);
    }
}
static void as_bytes(const hone_contract *d, const hone_dwconv_i8_args *part,
                     const hone_requantize *requantize, const int32_t *sums) {
    hone_requantize here = *requantize;
    uint8_t *to[HONE_DWCONV_I8_ROWS];
    for (int i = 0; i < part->m; i++) to[i] = part->c[i] + part->from;
    here.bias += part->from, here.scale += part->from;
    d->i8->requantize->requantize(&here, part->m, part->n - part->from, sums + part->from, columns_of(d),
                                  NULL, to);
}
/* Pixels that the kernel does not finish itself: sums for whatever follows, or bytes that are not tame. */
static hone_status settle(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0,
                          const hone_dwconv_i8_args *part, const shifted *over, const int32_t *take,
                          const hone_requantize *requantize, int32_t *sums, void *rest) {
    const int64_t columns = columns_of(d);
    sum_up(d, *part, over, sums);
    if (requantize) {
        as_bytes(d, part, requantize, sums);
        if (!d->epilogue->inner && d->epilogue->table)
            hone_table_rows(d->epilogue->table, part->c, part->m, d->of.n);
        return HONE_OK;
    }
    for (int i = 0; i < part->m; i++)
        for (int64_t j = 0; j < d->of.n; j++)
            sums[i * columns + j] = (int32_t)((uint32_t)sums[i * columns + j] - (uint32_t)take[j]);
    return hone_contract_epilogue(d, at, 0, w, m0, part->m, 0, d->of.n, sums, columns, NULL, rest);
}
/* The kernel made bytes of these pixels, but 8 bits do not hold the weights of some columns: those once
   more. */
static void mend(const hone_contract *d, const hone_dwconv_i8_args *given, const shifted *over,
                 const hone_requantize *requantize, int32_t *sums) {
    const int64_t wide = wide_of(d);
    for (int64_t j = 0; j < given->n; j += wide)
        for (int below = 0; over->spills[j / wide] && below < (given->below ? 2 : 1); below++)
            for (int i = 0; i < given->m; i += HONE_DWCONV_I8_ROWS) {
                hone_dwconv_i8_args part = *given;
                part.m = given->m - i < HONE_DWCONV_I8_ROWS ? given->m - i : HONE_DWCONV_I8_ROWS;
                part.a += i * part.a_pixel + below * part.a_place,
                    part.c = (below ? given->below : given->c) + i;
                part.from = j, part.n = given->n < j + wide ? given->n : j + wide;
                sum_up(d, part, over, sums);
                as_bytes(d, &part, requantize, sums);
            }
}
/* Pixels whose bytes are read back at once, in scratch: through a residual and what else follows, or a table
   of floats. */
enum { READ_PIXELS = 16, READ_AT_ONCE = 1024 };
static void read_back(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0, int64_t m,
                      const uint8_t *bytes, float *floats) {
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < d->of.n; j += READ_AT_ONCE)
            hone_epilogue_read(d->epilogue, at, w->index, m0 + i, j,
                               d->of.n - j < READ_AT_ONCE ? d->of.n - j : READ_AT_ONCE,
                               bytes + i * d->of.n + j, floats);
}
/* Pixels p0 …, of a run whose first is number m0, that go on as floats: the sums of some columns, which stay
   in L1, then these finished. Pixels in pairs leave their sums one behind another. */
enum { FLOAT_PIXELS = 64, FLOAT_COLUMNS = 256, FLOAT_SUMS = 4096, SUM_ROWS = 16 };
_Static_assert(SUM_ROWS >= 2 * HONE_DWCONV_I8_ROWS, "sums that wait");
/* Pixels whose sums wait together: of few channels more, so that what a call costs is shared. */
static int64_t rows_of(const hone_contract *d) {
    const int64_t rows = FLOAT_SUMS / columns_of(d);
    return rows < SUM_ROWS ? SUM_ROWS : rows > FLOAT_PIXELS ? FLOAT_PIXELS : rows;
}
static int64_t go_on(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0, int64_t p,
                     int64_t run, const hone_dwconv_i8_args *given, const int32_t *take, int32_t *sums) {
    const int64_t stride = d->dwconv_i8->stride ? d->dwconv_i8->stride : 1,
                  many = d->dwconv_i8->pairs ? d->dwconv_i8->pairs[m0 + p] : 0;
    int64_t some = run - p < rows_of(d) ? run - p : rows_of(d), each = 1;
    if (many > 1) each = 2, some = (many < some ? many : some) / 2 * 2;
    else if (d->dwconv_i8->pairs) some = 1;
    const int64_t n = d->of.n, step = each > 1 ? n : columns_of(d);
    int32_t *row[FLOAT_PIXELS];
    hone_dwconv_i8_args part = *given;
    part.m = (int)(some / each), part.a += p * stride, part.a_pixel = (ptrdiff_t)(stride * each);
    part.requantize = NULL, part.c = part.below = NULL, part.sums = row;
    for (int64_t i = 0; i < some / each; i++) row[i] = sums + i * each * step;
    for (int64_t j = 0; j < n; j += FLOAT_COLUMNS) {
        const int64_t end = n - j < FLOAT_COLUMNS ? n : j + FLOAT_COLUMNS;
        part.from = j, part.n = each > 1 ? 2 * n : end;
        d->dwconv_i8->kernel->run(&part);
        hone_epilogue_finish(d->epilogue, at, w->index, m0 + p, some, j, end - j, sums + j, step, take + j,
                             NULL);
    }
    return some;
}
static int64_t pointers_of(const hone_contract *d) {
    return (high_of(d) * (d->dwconv_i8->stride ? 1 : groups_of(d)) + d->dwconv_i8->below) * apart_of(d);
}
static hone_status tile(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(step->ref[t], base);
    const int64_t mb = hone_ceil_div(d->of.m, d->mt), m0 = number % mb * d->mt,
                  m = d->of.m - m0 < d->mt ? d->of.m - m0 : d->mt;
    const int64_t columns = columns_of(d), taps = groups_of(d) * d->dwconv_i8->kernel->group,
                  high = high_of(d);
    const hone_standing w = hone_contract_stand(d, number / mb);
    const int8_t *weights = at[d->packed_b];
    const int32_t *sum = (const int32_t *)(const void *)(weights + columns * taps);
    int32_t *bias = scratch, *take = bias + columns, *placed = take + columns, *sums = placed + 2 * columns;
    float *scale = (float *)(void *)(sums + rows_of(d) * columns),
          *placed_scale = (float *)(void *)(placed + columns);
    const uint8_t **rows = (const uint8_t **)(void *)(scale + columns);
    uint8_t **c = (uint8_t **)(void *)(rows + pointers_of(d)), *outside = (uint8_t *)(c + 2 * run_of(d));
    const shifted less = {(int8_t *)(outside + columns), (int8_t *)(outside + columns) + columns * taps,
                          outside + columns + 2 * columns * taps};
    void *rest = (char *)scratch + d->c_bytes;

    const hone_cpu_epilogue *inner = d->epilogue ? d->epilogue->inner : NULL,
                            *ends = inner ? inner : d->epilogue;
    float *floats = rest;
    uint8_t *read = (uint8_t *)(floats + 2 * READ_AT_ONCE);

    const uint32_t za = (uint32_t)hone_contract_int_zero(d, true, at, &w, 0);
    const bool plain = hone_contract_int_plain(d, at, &w, 0, d->of.n), bytes = ends && ends->by_row;
    memset(outside, hone_contract_int_outside(d, at, &w), (size_t)columns);
    for (int64_t j = 0; j < d->of.n; j++) take[j] = (int32_t)(za * (uint32_t)sum[j]);
    const shifted *over = !plain && shift(d, at, &w, weights, less) ? &less : NULL;
    for (int64_t j = 0; !plain && j < d->of.n; j++)
        take[j] = (int32_t)((uint32_t)take[j] -
                            za * (uint32_t)d->of.k * (uint32_t)hone_contract_int_zero(d, false, at, &w, j));
    if (!plain) weights = less.own;
    hone_requantize requantize = {0};
    if (bytes) {
        hone_epilogue_columns(ends, at, w.index, 0, d->of.n, bias, scale, &requantize);
        for (int64_t j = 0; j < d->of.n; j++) bias[j] = (int32_t)((uint32_t)bias[j] - (uint32_t)take[j]);
        hone_requantize_bound(&requantize, d->of.n, 255.0 * 128 * (double)d->of.k);
    }
    const bool fast = bytes && !requantize.nonfinite && requantize.tame && !(over && d->dwconv_i8->pairs);
    hone_requantize whole = requantize; /* of columns in their order, and of sums of 9 bits a weight */
    whole.mild &= !over;
    if (fast) { /* in the kernel's order */
        /* fours stay together */
        for (int64_t j = 0; d->dwconv_i8->kernel->lanes > 1 && j < columns; j += 4) {
            const int64_t to = place_of(d, j);
            memcpy(placed + to, bias + j, 4 * sizeof *bias),
                memcpy(placed_scale + to, scale + j, 4 * sizeof *scale);
        }
        if (d->dwconv_i8->kernel->lanes == 1) /* every one stays where it is */
            memcpy(placed, bias, (size_t)columns * sizeof *bias),
                memcpy(placed_scale, scale, (size_t)columns * sizeof *scale);
        for (int64_t j = 0; fits_twice(d) && j < d->of.n; j++) {
            const int64_t to = place_of(d, j + d->of.n);
            placed[to] = bias[j], placed_scale[to] = scale[j];
        }
        requantize.bias = placed, requantize.scale = placed_scale;
    }
    const uint8_t *pixels = (const uint8_t *)at[d->a.tensor] + d->a.at.c + w.a;
    const hone_row_number *out = bytes ? &d->epilogue->out : NULL;
    uint8_t *to = !bytes || inner
                      ? NULL
                      : (uint8_t *)at[out->tensor] +
                            hone_epilogue_at(out, d->epilogue->n_batch, w.index, m0) - out->at_m[m0];
    const bool pairs = fast && d->dwconv_i8->pairs, on = d->epilogue && d->epilogue->finish && !over;
    const ptrdiff_t group = (ptrdiff_t)(d->dwconv_i8->stride ? 1 : high * apart_of(d));
    /* what is of one row of the image, or of two */
    for (int64_t i = m0, run, rows_at_once; i < m0 + m; i += rows_at_once * run) {
        run = d->dwconv_i8->stride && d->of.m_run - i % d->of.m_run < m0 + m - i
                  ? d->of.m_run - i % d->of.m_run
                  : m0 + m - i;
        const bool two = fast && !inner && d->dwconv_i8->below && run == d->of.m_run && i + 2 * run <= m0 + m;
        rows_at_once = two ? 2 : 1;
        point(d, pixels, &w, i, run, outside, 0, rows);
        /* the others are the same */
        if (two) point(d, pixels, &w, i + run, run, outside, high - 1, rows + apart_of(d));
        for (int64_t p = 0, step; p < run; p += step) {
            if (on) {
                const hone_dwconv_i8_args part = {.high = (int)high,
                                                  .groups = groups_of(d),
                                                  .a = rows,
                                                  .a_group = group,
                                                  .a_place = (ptrdiff_t)apart_of(d),
                                                  .flip = d->i8->flip_a,
                                                  .b = weights};
                step = go_on(d, at, &w, i, p, run, &part, take, sums);
                continue;
            }
            const int64_t many = !pairs ? 0
                                 : two && d->dwconv_i8->pairs[i + run + p] < d->dwconv_i8->pairs[i + p]
                                     ? d->dwconv_i8->pairs[i + run + p]
                                     : d->dwconv_i8->pairs[i + p];
            const int64_t some = run - p < many ? run - p : many, each = some > 1 ? 2 : 1;
            step = pairs                                   ? (some > 1 ? some / 2 * 2 : 1)
                   : fast || run - p < HONE_DWCONV_I8_ROWS ? run - p
                                                           : HONE_DWCONV_I8_ROWS;
            if (inner && step > READ_PIXELS) step = READ_PIXELS;
            hone_dwconv_i8_args part = {
                .m = (int)(step / each),
                .high = (int)high,
                .n = each * d->of.n,
                .groups = groups_of(d),
                .a = rows + p * (d->dwconv_i8->stride ? d->dwconv_i8->stride : 1),
                .a_pixel = (ptrdiff_t)((d->dwconv_i8->stride ? d->dwconv_i8->stride : 1) * each),
                .a_group = group,
                .a_place = (ptrdiff_t)apart_of(d),
                .flip = d->i8->flip_a,
                .b = weights,
                .requantize = &requantize,
                .c = c};
            for (int64_t r = 0; bytes && r < rows_at_once; r++) {
                uint8_t **own = c + r * part.m;
                const int64_t first = i + r * run + p;
                if (inner) hone_ladder((const uint8_t **)own, read, d->of.n, part.m);
                else if (d->i8->out_apart)
                    hone_ladder((const uint8_t **)own, to + out->at_m[first], each * d->i8->out_apart,
                                part.m);
                for (int64_t q = 0; !inner && !d->i8->out_apart && q < step; q++)
                    own[q] = to + out->at_m[first + q];
                if (r) part.below = own;
            }
            if (fast) {
                d->dwconv_i8->kernel->run(&part);
                if (over) mend(d, &part, over, &whole, sums);
                if (!inner && d->epilogue->table)
                    hone_table_rows(d->epilogue->table, c, rows_at_once * part.m, part.n);
            } else HONE_TRY(settle(d, at, &w, i + p, &part, over, take, bytes ? &whole : NULL, sums, rest));
            if (inner) read_back(d, at, &w, i + p, step, read, floats);
        }
    }
    return HONE_OK;
}
void hone_dwconv_int_step(hone_contract *d, hone_step *s) {
    const int64_t columns = columns_of(d), taps = groups_of(d) * d->dwconv_i8->kernel->group;
    d->c_bytes = (size_t)hone_round_up((int64_t)sizeof(int32_t) * columns * (5 + rows_of(d)) +
                                           (int64_t)sizeof(uint8_t *) * (pointers_of(d) + 2 * run_of(d)) +
                                           columns * (2 + 2 * taps),
                                       64);
    s->tactic = "depthwise int8", s->tile = tile;
    s->tiles = d->of.batch * hone_ceil_div(d->of.m, d->mt);
    s->serial = s->tiles == 1 || d->of.batch * d->of.m * d->of.n * d->of.k < 200000;
    s->scratch_bytes = d->c_bytes + (d->epilogue_code ? hone_tilecode_scratch(d->epilogue_code) : 0);
    if (d->epilogue && d->epilogue->inner)
        s->scratch_bytes += 2 * READ_AT_ONCE * sizeof(float) + (size_t)(READ_PIXELS * d->of.n);
}
