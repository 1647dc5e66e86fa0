/* SPDX-License-Identifier: Apache-2.0
   winograd: convolutions of images by tiles (kernels/winograd.h), where that is faster than the sum itself:
   which are so, how they are cut, and their filters. winograd_run.c runs them.

   Windows of 3x3 or 5x5 that move pixel by pixel over channels-last images are taken as they are. One that
   moves two pixels at a time sees four images, its phases: of even or odd rows, and even or odd columns.
   Each is seen pixel by pixel through a window of half the side, and all four add up:

        3x3:  # . #        2x2 of even rows and columns, 2x1, 1x2, 1x1          7x7:  4x4, 4x3, 3x4, 3x3
              . + .
              # . #        a tap less counts as zero, and then all of the last places of that phase are zero,
                           and left out

   So 3x3 by two takes 121 products for 25 results instead of 225 (by tiles of 5x5), or 49 for 9 instead of
   81. Where channels are few (a first layer's three), phases are brought together as channels by a step
   before, and nothing is left out: 7x7 of three channels by two takes 768 products for 25 results instead of
   3675.

   Windows along one way (samples, text, 1x3 and 1x5) go by tiles that are lines of results, across or down.

   Where f16 was asked for, v and the filters are rounded to it and the products are those of
   kernels/gemm_half.h; to bring pixels there and back stays f32. By tiles of 4x4 that errs about five times
   as much as the sum itself in f16, and as much as one that is added in f16 throughout: half a percent of
   what results are (of their root mean square, and a single one by ten times that), where random pixels and
   weights were tried. A row of a place whose sums with a panel are beyond f16 is computed again in f32, as
   in contract_half.c. */
#include "device/cpu/winograd.h"
#include "device/wisdom.h"

#include <math.h>

static size_t factor_bytes(const struct hone_winograd *w) {
    return w->half ? sizeof(uint16_t) : sizeof(float);
}

/* ---- recognising --------------------------------------------------------------------------------------- */
/* One way of the window: result `o` moves once or twice as far as tap `k`, over a size with zeros before and
   behind. */
typedef struct {
    int64_t size, pad;
    int stride;
} line;
static bool way(const hone_contract *d, int o, int k, line *l) {
    const hone_affine_load *a = &d->a;
    int seen = -1;
    if (a->at.k[k] <= 0 || (a->at.k[o] != a->at.k[k] && a->at.k[o] != 2 * a->at.k[k])) return false;
    const int stride = a->at.k[o] == a->at.k[k] ? 1 : 2;
    *l = (line){stride * (d->of.slots.extent[o] - 1) + d->of.slots.extent[k], 0, stride};
    for (int q = 0; q < a->n_bounded; q++) {
        if (!a->bounded[q].k[o] && !a->bounded[q].k[k]) continue;
        if (seen >= 0 || a->bounded[q].k[o] != stride || a->bounded[q].k[k] != 1) return false;
        seen = q, l->size = a->size[q], l->pad = -a->bounded[q].c;
        for (int s = 0; s < d->of.slots.n; s++)
            if (s != o && s != k && d->of.slots.extent[s] > 1 && a->bounded[q].k[s]) return false;
    }
    return true;
}
/* How far apart in K two values of a slot are: K lies as A does. */
static int64_t apart_in_k(const hone_contract *d, int slot) {
    int64_t apart = 1;
    for (int k = d->of.slots.n_domain; k < d->of.slots.n; k++)
        if (k != slot && d->a.at.k[k] < d->a.at.k[slot]) apart *= d->of.slots.extent[k];
    return apart;
}
/* A window along one index of the rows, y or behind it x; where x is none, the one pixel that a line of
   results is across. Taken where it was measured, and where it may pay. */
enum { LINE_CHANNELS = 32, LINE_RESULTS = 8 };
static bool one_way(const hone_contract *d, int y, int x, bool down, struct hone_winograd *w) {
    const hone_slots_of *s = &d->of.slots;
    const int o = down ? y : x;
    int tap = -1;
    line along;
    if (!d->kernel->pack_a || s->extent[o] < LINE_RESULTS || d->of.n < LINE_CHANNELS ||
        (d->epilogue && d->epilogue->then && d->epilogue->later.tensor >= 0))
        return false;
    for (int k = s->n_domain; k < s->n; k++)
        if (s->extent[k] > 1 && d->a.at.k[k] == d->a.at.k[o]) tap = k;
    if (tap < 0 || !way(d, o, tap, &along) || !hone_winograd_has(HONE_WINOGRAD_LINES, (int)s->extent[tap]))
        return false;
    const int64_t c = d->of.k / s->extent[tap];
    if (c < LINE_CHANNELS || c > HONE_CONTRACT_KC) return false;
    for (int64_t k = 0; k < d->of.k; k++) /* pixels, each with its channels in a row */
        if (d->at_k_a[k] != k / c * d->a.at.k[o] + k % c) return false;
    for (int q = 0; q < d->a.n_bounded; q++)
        if (!d->a.bounded[q].k[o]) return false;
    w->line = true, w->is_down = down, w->side = w->taps = (int)s->extent[tap], w->stride = w->phases = 1,
    w->own = w->channels = c;
    w->oh = down ? s->extent[y] : 1, w->ow = s->extent[x], w->images = d->of.m / (w->oh * w->ow);
    w->h = down ? along.size : 1, w->w = down ? w->ow : along.size, w->pad_y = down ? along.pad : 0,
    w->pad_x = down ? 0 : along.pad;
    w->pitch_y = down ? d->a.at.k[y] : 0, w->pitch_x = d->a.at.k[x], w->at_x = c, w->at_c = 1;
    return true;
}
enum {
    MANY = 8 /* channels that are taken as they lie */,
    FEW = 16 /* those of an image that is spread, */,
    MOST_SPREAD = 1 << 23 /* and its floats */,
    MOST_SIDE = 2 * HONE_WINOGRAD_MOST
};
static bool recognise(const hone_contract *d, struct hone_winograd *w) {
    const hone_slots_of *s = &d->of.slots;
    int at[HONE_MAX_SLOTS], n = 0, ky = -1, kx = -1, c = -1;
    line down = {0}, across = {0}, some;
    if (d->of.integers || d->dwconv_nhwc || d->dwconv_nchw || !d->packed_b || d->packed_a ||
        d->of.batch != 1 || d->of.first_tensor >= 0 || s->over >= 0 ||
        d->kernel->packed_widths * d->kernel->vector > HONE_WINOGRAD_FILTERS)
        return false;
    for (int k = 0; k < d->of.group_n[0]; k++)
        if (s->extent[k] > 1) at[n++] = k;
    if ((n && one_way(d, -1, at[n - 1], false, w)) || (n > 1 && one_way(d, at[n - 2], at[n - 1], true, w)))
        return true;
    if (n < 2) return false;
    const int y = at[n - 2], x = at[n - 1];
    for (int k = s->n_domain; k < s->n; k++) {
        if (s->extent[k] == 1) continue;
        if (ky < 0 && way(d, y, k, &some)) ky = k, down = some;
        else if (kx < 0 && way(d, x, k, &some)) kx = k, across = some;
        else if (c < 0) c = k;
        else return false;
    }
    if (ky < 0 || kx < 0 || c < 0 || d->a.at.k[ky] <= d->a.at.k[kx] || s->extent[ky] != s->extent[kx] ||
        down.stride != across.stride)
        return false;
    for (int q = 0; q < d->a.n_bounded; q++) /* no other window */
        if (!d->a.bounded[q].k[y] && !d->a.bounded[q].k[x]) return false;
    /* with AVX-512 it lost: resnet50 on 16 threads took a sixth longer */
    if (down.stride > 1 && !d->kernel->pack_a) return false;
    w->side = (int)s->extent[ky], w->stride = down.stride, w->taps = (int)hone_ceil_div(w->side, w->stride);
    w->own = w->channels = s->extent[c], w->phases = w->stride * w->stride;
    w->pitch_y = d->a.at.k[ky], w->pitch_x = d->a.at.k[kx], w->pitch_c = d->a.at.k[c];
    w->spread.is = w->pitch_c != 1 || w->own < MANY;
    if (s->extent[ky] > MOST_SIDE || w->taps < HONE_WINOGRAD_LEAST || w->taps > HONE_WINOGRAD_MOST)
        return false;
    if (w->spread.is ? w->stride == 1 || w->own > FEW : w->own > HONE_CONTRACT_KC) return false;
    w->oh = s->extent[y], w->ow = s->extent[x], w->images = d->of.m / (w->oh * w->ow);
    w->h = down.size, w->w = across.size, w->pad_y = down.pad, w->pad_x = across.pad;
    w->at_y = apart_in_k(d, ky), w->at_x = apart_in_k(d, kx), w->at_c = apart_in_k(d, c);
    if (w->spread.is)
        w->channels *= w->phases, w->phases = 1, w->spread.h = w->oh + w->taps - 1,
                                  w->spread.w = w->ow + w->taps - 1;
    return !w->spread.is ||
           (double)w->images * (double)w->spread.h * (double)w->spread.w * (double)w->channels <= MOST_SPREAD;
}
/* Which phases a place has. One of odd rows or columns that lacks the last tap has no filters at infinity. */
static void place_phases(struct hone_winograd *w) {
    const bool lacks = w->phases > 1 && w->side % 2;
    w->before[0] = 0;
    for (int place = 0; place < w->places; place++) {
        int8_t many = 0;
        for (int phase = 0; phase < w->phases; phase++) {
            const bool none = lacks && ((phase / 2 && place / w->edge == w->places / w->edge - 1) ||
                                        (phase % 2 && place % w->edge == w->edge - 1));
            w->slot[phase][place] = none ? -1 : many++;
        }
        w->before[place + 1] = (int16_t)(w->before[place] + many);
    }
}

/* ---- choosing ------------------------------------------------------------------------------------------ */
/* What a way costs, in multiply-adds, on one machine with AVX-512: bringing a value to its place was measured
   as about a dozen of them, bringing it back as about eight; of 6x6, on Neoverse-V1, it took so much longer
   than of 4x4. A byte from beyond L2 was six in single layers; four chose better in whole networks,
   whose weights partly stay near. */
enum { L2_FLOATS = 262144, BLOCKS = 32, HALF_ROWS = 8, MOST_BETWEEN = 1 << 22 /* floats */ };
static const struct bring {
    double in, out;
} brings[HONE_WINOGRAD_SIZES + 1] = {{12, 8}, {12, 8}, {13, 12}, {12, 8}, {16, 10} /* lines */};
/* memory is as fast for narrow vectors */
static double byte_costs(const hone_contract *d, const struct hone_winograd *w) {
    return w->half ? 1 : d->kernel->vector / 4.0;
}
/* Rows that the kernel takes at a time: few at the end leave its units waiting for sums that are not there
   yet, so that all may better take fewer. In rows' time, of three vectors (Neoverse-V1,
   K of 128): */
static double rows_time(int64_t tiles, int high) {
    static const double few[] = {0, 3, 3.5, 4.1, 4.9};
    const int64_t rest = tiles % high;
    return (double)(tiles / high) * (high + 0.6) +
           (rest < (int64_t)(sizeof few / sizeof *few) ? few[rest] : (double)rest + 0.6);
}
static int rows_at_once(int64_t tiles, int mr) {
    int best = mr;
    for (int high = mr - 1; high > mr / 2 && hone_ceil_div(tiles, high) == hone_ceil_div(tiles, mr); high--)
        if (rows_time(tiles, high) < rows_time(tiles, best)) best = high;
    return best;
}
/* Last tiles that lack places: an image's, or 0. */
static int64_t lacking(const struct hone_winograd *w, int place) {
    const int64_t down = hone_winograd_lacks(w->less.y, place / w->edge) ? w->across : 0,
                  across = hone_winograd_lacks(w->less.x, place % w->edge) ? w->down : 0;
    return down + across - (down && across);
}
/* Whole tiles of a block that go by themselves: all that fill the kernel's rows, or less, where those with
   others among them then fill them better. many: of each kind. */
static int64_t even_of(const struct hone_winograd *w, const int64_t many[HONE_WINOGRAD_KINDS]) {
    const int64_t most = many[0] / w->high * w->high, all = many[0] + many[1] + many[2] + many[3];
    int64_t best = most;
    double least = INFINITY;
    for (int64_t even = most; even == most || (even >= 0 && all - even <= HONE_WINOGRAD_BATCH);
         even -= w->high) {
        double time = rows_time(even, w->high) * w->places;
        for (int place = 0; place < w->places; place++) {
            int64_t have = many[0] - even;
            for (int kind = 1; kind < HONE_WINOGRAD_KINDS; kind++)
                have += kind & w->kind[place] ? 0 : many[kind];
            time += rows_time(have, rows_at_once(have, w->mr));
        }
        time += 0.02 * w->places * (double)(all - even > w->high ? all - even : 0); /* they stay less near */
        if (time < least) least = time, best = even;
    }
    return best;
}
static int kind_of(hone_winograd_less l) { return (l.y > 0) + 2 * (l.x > 0); }
static hone_winograd_batch make_batch(const struct hone_winograd *w, int64_t t0, int64_t first, int64_t n,
                                      int64_t before) {
    hone_winograd_batch b = {.first = first, .before = before, .n = (int)n};
    for (int kind = 0; kind < HONE_WINOGRAD_KINDS; kind++) {
        int have = 0;
        for (int i = 0; i < n; i++)
            if (!(kind_of(hone_winograd_less_of(w, t0 + w->order[t0 + first + i])) & kind))
                b.have[kind].which[have++] = (int8_t)i;
        b.have[kind].n = have, b.have[kind].high = rows_at_once(have, w->mr);
    }
    return b;
}
/* The blocks of an image whose last tiles lack places. */
static hone_status put_in_order(hone_arena *arena, struct hone_winograd *w) {
    if (!w->less.y && !w->less.x) return HONE_OK;
    const int64_t most = w->blocks * (hone_ceil_div(w->block, HONE_WINOGRAD_BATCH) + 1);
    int32_t *order = HONE_NEW_N(arena, int32_t, w->tiles);
    struct hone_winograd_cut *cut = HONE_NEW_N(arena, struct hone_winograd_cut, w->blocks);
    hone_winograd_batch *batch = HONE_NEW_N(arena, hone_winograd_batch, most);
    if (!order || !cut || !batch) return hone_steps_no_memory();
    w->order = order, w->cut = cut, w->batch = batch;
    for (int place = 0; place < w->places; place++)
        w->kind[place] = (int8_t)(hone_winograd_lacks(w->less.y, place / w->edge) +
                                  2 * hone_winograd_lacks(w->less.x, place % w->edge));
    for (int64_t t0 = 0; t0 < w->tiles; t0 += w->block, cut++) {
        const int64_t all = w->tiles - t0 < w->block ? w->tiles - t0 : w->block;
        int64_t n = t0, many[HONE_WINOGRAD_KINDS] = {0};
        /* whole ones, then as few kinds in a batch as can be */
        for (int kind = 0; kind < HONE_WINOGRAD_KINDS; kind++)
            for (int64_t t = 0; t < all; t++)
                if (kind_of(hone_winograd_less_of(w, t0 + t)) == kind) order[n++] = (int32_t)t, many[kind]++;
        const int64_t even = many[0] == all ? all : even_of(w, many), left = all - even,
                      batches = hone_ceil_div(left, HONE_WINOGRAD_BATCH),
                      before = hone_ceil_div(even, w->high) * HONE_GEMM_PACKED_M(w->high);
        *cut = (struct hone_winograd_cut){(int32_t)even, (int32_t)batches, (int32_t)(batch - w->batch)};
        for (int64_t k = 0, each = batches ? hone_ceil_div(left, batches) : 0; k < batches; k++)
            *batch++ = make_batch(w, t0, even + k * each, left - k * each < each ? left - k * each : each,
                                  before + k * HONE_WINOGRAD_BATCH);
    }
    return HONE_OK;
}
/* Rows that v has for a place: of the block that has most. */
static int64_t rows_of(const struct hone_winograd *w, int place, bool packs_a) {
    int64_t most = 0;
    if (!packs_a) return hone_ceil_div(w->block, HONE_GEMM_ROWS) * HONE_GEMM_ROWS;
    if (!w->cut) return hone_ceil_div(w->block, w->high) * HONE_GEMM_PACKED_M(w->high);
    for (int64_t k = 0; k < w->blocks; k++) {
        const struct hone_winograd_cut *cut = w->cut + k;
        int64_t rows = hone_ceil_div(cut->even, w->high) * HONE_GEMM_PACKED_M(w->high);
        if (cut->batches) {
            const hone_winograd_batch *last = w->batch + cut->first + cut->batches - 1;
            const int n = last->have[w->kind[place]].n, high = last->have[w->kind[place]].high;
            rows = last->before + n / high * HONE_GEMM_PACKED_M(high) + HONE_GEMM_PACKED_M(n % high);
        }
        most = rows > most ? rows : most;
    }
    return most;
}
static double filters_of(const hone_contract *d, const struct hone_winograd *w) { /* bytes */
    return (double)factor_bytes(w) * (double)w->channels * w->before[w->places] * (double)d->of.n;
}
static void cut_blocks(const hone_contract *d, struct hone_winograd *w, int threads) {
    const int64_t mr = w->mr;
    int64_t most = (w->half ? 2 : 1) * L2_FLOATS / (w->before[w->places] * w->channels) / mr * mr;
    if (most > 8 * mr) most = 8 * mr;
    if (most < 4 * mr) most = 4 * mr;
    if (!w->direct && most > L2_FLOATS / (w->out_y * w->out * d->of.n))
        most = L2_FLOATS / (w->out_y * w->out * d->of.n); /* results wait in scratch */
    const int64_t share = hone_ceil_div(w->tiles, threads);
    if (most > share && most > 2 * mr) most = share > 2 * mr ? share : 2 * mr;
    if (most < mr) most = mr;
    w->block = hone_ceil_div(w->tiles, hone_ceil_div(w->tiles, most));
    if (w->block > mr) w->block = hone_ceil_div(w->block, mr) * mr;
    w->blocks = hone_ceil_div(w->tiles, w->block);
}
/* The same, so that so many threads are done soonest. A block more reads filters once more: two rows' time,
   or so. */
static void share_blocks(struct hone_winograd *w, int threads) {
    const int64_t most = w->block;
    double best = INFINITY;
    for (int64_t blocks = hone_ceil_div(w->tiles, most), end = blocks + 2 * threads; blocks <= end;
         blocks++) {
        const int64_t block = hone_ceil_div(w->tiles, blocks), many = hone_ceil_div(w->tiles, block);
        const double time =
            (double)hone_ceil_div(many, threads) * (rows_time(block, rows_at_once(block, w->mr)) + 2);
        if (time < best) best = time, w->block = block, w->blocks = many;
    }
}
static const double ORDERED = 1.05; /* more calls, of fewer rows */
static double cut(const hone_contract *d, struct hone_winograd *w, int size) {
    w->size = size, w->edge = hone_winograd_edge(size), w->out = hone_winograd_out(size, w->taps);
    w->out_y = w->line ? 1 : hone_winograd_tall(size) - w->taps + 1,
    w->places = w->edge * (w->line ? 1 : hone_winograd_tall(size));
    if (!hone_winograd_has(size, w->taps) || (w->line && size != HONE_WINOGRAD_LINES)) return INFINITY;
    if (w->is_down) w->out_y = w->out, w->out = w->edge = 1;
    w->down = hone_ceil_div(w->oh, w->out_y), w->across = hone_ceil_div(w->ow, w->out),
    w->tiles = w->images * w->down * w->across;
    place_phases(w), cut_blocks(d, w, 8);
    if (w->kernel->lacks && hone_winograd_packs_a(d, w) && !w->line && size != HONE_WINOGRAD_FLAT)
        w->less =
            (hone_winograd_less){hone_winograd_spare(w->edge, w->out_y, w->oh - (w->down - 1) * w->out_y),
                                 hone_winograd_spare(w->edge, w->out, w->ow - (w->across - 1) * w->out)};
    int64_t spared = 0; /* products of an image: those of few would not pay for an order of their own */
    for (int place = 0; place < w->places; place++) spared += lacking(w, place);
    if (spared < w->down * w->across * w->places / 25) w->less = (hone_winograd_less){0, 0};
    const double c = (double)w->channels, n = (double)d->of.n, tiles = (double)w->tiles, places = w->places,
                 all = c * w->phases, deep = c * w->before[w->places];
    const double filters = filters_of(d, w), between = 2 * 4 * places * tiles * (all + n);
    const double again = filters > 4.0 * L2_FLOATS ? (double)w->blocks * filters : filters;
    /* one block whose v is too large to stay in L2 beside filters that pass goes place by place too, if v and
       m together may stay: 14x14 pixels of 256 channels take 3 % less */
    const double v = 4 * places * tiles * all, m = 4 * places * tiles * n;
    const bool parts =
        hone_winograd_packs_a(d, w) && w->blocks == 1 && v > 1.5 * L2_FLOATS && v + m < 5 * L2_FLOATS;
    w->steps = between <= (32 << 20) && (parts || filters + between < again);
    double rows = tiles * deep; /* times their K */
    if (hone_winograd_packs_a(d, w)) {
        rows = 0;
        for (int place = 0; place < w->places; place++) {
            const int64_t have = w->tiles - w->images * lacking(w, place);
            rows += rows_time(have, rows_at_once(have, w->mr)) * w->mr /
                    (w->mr + 0.6) /* of a whole block */ * (double)hone_winograd_depth(w, place);
        }
        if (w->less.y || w->less.x) rows *= ORDERED;
    }
    const struct bring *bring = brings + (w->line ? HONE_WINOGRAD_SIZES : size);
    return rows * n / (w->half ? 2 : 1) + tiles * places * (bring->in * all + bring->out * n) +
           byte_costs(d, w) * (!w->steps                   ? again
                               : between > 4.0 * L2_FLOATS ? filters + between
                                                           : filters);
}
static const double CLEARLY = 1.05;
/* Whether a way is taken that is estimated to be so many times as fast as the best yet. 6x6 errs five times
   as much as 4x4 and takes nearly twice the memory, so it must gain clearly; that was measured on ARM alone,
   and elsewhere it is not taken; nor in f16, where it would err too much. */
static bool taken(const hone_contract *d, const struct hone_winograd *w, double gain) {
    return w->size < 2                     ? gain > 1
           : w->size == HONE_WINOGRAD_FLAT ? hone_winograd_packs_a(d, w) && gain > 1
                                           : hone_winograd_packs_a(d, w) && gain > CLEARLY;
}
int hone_winograd_able(const hone_contract *d) {
    struct hone_winograd w = {0};
    return recognise(d, &w) ? w.taps + (w.line ? HONE_SUM_LINE : 0) : 0;
}
int hone_winograd_tile(const hone_contract *d) {
    return d->winograd ? hone_winograd_side(d->winograd->size, d->winograd->taps) : 0;
}
hone_status hone_winograd_choose(hone_template_builder *s, hone_contract *d, int threads,
                                 const hone_gemm_half *half) {
    struct hone_winograd w = {.kernel = hone_winograd_f32_best(), .half = half}, by[HONE_WINOGRAD_SIZES];
    if (!recognise(d, &w)) return HONE_OK;
    if (half && (w.line || w.phases > 1 || w.spread.is || w.taps != 3)) return HONE_OK;
    if (half && (half->dtype != HONE_DTYPE_F16 || half->times < 2 || half->mr > 1 || half->group > 1 ||
                 half->begin || w.channels % half->deep))
        return HONE_OK;
    w.direct = d->direct && !(d->epilogue && !d->epilogue->bias_n &&
                              (d->epilogue->bias.tensor >= 0 || d->epilogue->bias.k != 0));
    w.nr = d->kernel->packed_widths * d->kernel->vector, w.mr = d->kernel->mr[d->kernel->packed_widths - 1];
    if (half) w.nr = half->nr, w.mr = HALF_ROWS;
    /* the sum itself reads all weights again for each of its blocks of rows, unless these follow one
       another */
    const int64_t rows = hone_ceil_div(d->of.m, d->mr), blocks = d->of.n > d->of.m ? 1
                                                                 : rows < BLOCKS   ? rows
                                                                                   : BLOCKS;
    const double sum = (double)d->of.n * (double)d->of.k *
                       ((double)d->of.m / (half ? 2 : 1) + byte_costs(d, &w) * 4.0 * (double)blocks);
    double cost[HONE_WINOGRAD_SIZES];
    int best = 0;
    for (int k = 0; k < HONE_WINOGRAD_SIZES; k++)
        by[k] = w, cost[k] = cut(d, by + k, k), best = taken(d, by + k, cost[best] / cost[k]) ? k : best;
    if (d->way ? d->way == 1 : !(cost[best] * (w.line ? CLEARLY : 1) < sum)) return HONE_OK;
    for (int k = 0; d->way && k < HONE_WINOGRAD_SIZES; k++)
        if (hone_winograd_has(k, w.taps) && hone_winograd_side(k, w.taps) == d->way) best = k;
    w = by[best];
    const int refs = s->n_ref + 3 + w.spread.is; /* filters and two buffers, or three */
    if (refs > HONE_MAX_REFS && w.spread.is) return HONE_OK;
    const bool packs_a = hone_winograd_packs_a(d, &w);
    const bool few =
        packs_a && filters_of(d, &w) <= 4.0 * L2_FLOATS ? w.tiles < threads * w.mr : w.blocks < 2 * threads;
    /* too few blocks to share; the same bits come out */
    if (threads > 1 && few && refs <= HONE_MAX_REFS &&
        w.tiles * w.places < MOST_BETWEEN / (w.channels + d->of.n))
        w.panels = !w.steps && w.blocks == 1, w.steps = true;
    if (w.steps && refs > HONE_MAX_REFS) return HONE_OK;
    w.by_place = packs_a && w.steps && !w.panels;
    const int64_t nr = w.nr,
                  columns = w.columns = half ? hone_ceil_div(d->of.n, nr) * nr : hone_contract_columns(d);
    if (w.steps) w.block = w.tiles, w.blocks = 1;
    else {
        /* the way itself is chosen whatever they are: other bits would come out */
        cut_blocks(d, &w, threads);
        if (threads > 1 && packs_a) share_blocks(&w, threads);
    }
    w.high = packs_a && !w.less.y && !w.less.x ? rows_at_once(w.block, w.mr) : w.mr;
    HONE_TRY(put_in_order(s->arena, &w));
    /* two panels for the same tiles in L1, unless these are few: then filters are what costs, and best read
       from one end to the other */
    w.nt = w.steps && !w.panels             ? 4 * nr
           : packs_a && w.block >= 4 * w.mr ? 2 * nr
                                            : nr,
    w.some = packs_a ? w.high : 4; /* packed tiles go together */
    for (int place = 0; place < w.places; place++)
        w.v_at[place + 1] =
            w.v_at[place] +
            (ptrdiff_t)(hone_ceil_div(rows_of(&w, place, packs_a) * hone_winograd_depth(&w, place), 16) * 16 +
                        16);
    /* on other sets of the cache */
    if (packs_a)
        w.near = (w.order ? 2 * HONE_WINOGRAD_BATCH : 4 * HONE_GEMM_ROWS) * 8, w.near_apart = w.near + 16;
    w.near_bytes = sizeof(float) * (size_t)(w.places * w.near_apart);
    w.each =
        w.panels ? (int)hone_ceil_div(w.places, hone_ceil_div(4 * threads, hone_ceil_div(d->of.n, w.nt))) : 1;
    w.apart_m = (ptrdiff_t)(hone_ceil_div(w.block * (w.steps ? columns : w.nt), 16) * 16 + 16);
    w.v_bytes = factor_bytes(&w) * (size_t)w.v_at[w.places];
    w.m_bytes = sizeof(float) * (size_t)(w.places * w.apart_m);
    const size_t pixels = (size_t)((w.steps ? w.some : w.block) * w.out_y * w.out);
    w.sum_bytes = w.direct ? 0 : hone_round_up64(sizeof(float) * pixels * (size_t)d->of.n);
    w.at_bytes = 2 * sizeof(float *) * pixels;
    struct hone_winograd *kept = HONE_NEW(s->arena, struct hone_winograd);
    if (!kept) return hone_steps_no_memory();
    w.g = hone_winograd_g_of(w.size, w.line, w.taps);
    *kept = w, d->winograd = kept;
    return HONE_OK;
}

int64_t hone_winograd_part(const hone_contract *d, int64_t k) {
    const struct hone_winograd *w = d->winograd;
    const int64_t n0 = k * w->nt;
    if (n0 >= d->of.n) return d->of.n;
    return n0 && hone_winograd_gives(d, w, w->columns - n0 + w->nr) ? n0 - d->kernel->vector : n0;
}

/* ---- filters ------------------------------------------------------------------------------------------- */
size_t hone_winograd_bytes(const hone_contract *d) {
    const struct hone_winograd *w = d->winograd;
    return factor_bytes(w) * (size_t)(w->before[w->places] * w->channels * w->columns);
}
void hone_winograd_filters_of(const hone_contract *d, const void *source, int phase, int64_t c, int64_t n0,
                              int64_t wide, float *u, ptrdiff_t apart) {
    const struct hone_winograd *w = d->winograd;
    const int64_t have = d->of.n - n0 < wide ? d->of.n - n0 : wide;
    float g[HONE_WINOGRAD_MOST * HONE_WINOGRAD_MOST][HONE_WINOGRAD_FILTERS];
    if (w->spread.is) phase = (int)(c / w->own), c %= w->own;
    for (int t = 0; t < w->taps * (w->line ? 1 : w->taps); t++) {
        const int y = t / w->taps * w->stride + phase / 2, x = t % w->taps * w->stride + phase % 2;
        const int64_t there = y < w->side && x < w->side ? have : 0;
        uint16_t line[HONE_WINOGRAD_FILTERS];
        const size_t size = d->of.stored_b ? sizeof *line : sizeof(float);
        if (there)
            hone_contract_gather(d, source, y * w->at_y + x * w->at_x + c * w->at_c, n0, have, size, 0,
                                 d->of.stored_b ? (void *)line : g[t]);
        if (there && d->of.stored_b) hone_dtype_load_n(d->of.stored_b, g[t], line, (size_t)have);
        memset(g[t] + there, 0, sizeof(float) * (size_t)(wide - there));
    }
    hone_winograd_filters(&w->g, g, (int)wide, u, apart);
}
/* Most weights lie filter by filter, tap by tap: then some channels of a panel's columns are transposed at
   once. */
static bool by_taps(const hone_contract *d) {
    const struct hone_winograd *w = d->winograd;
    if (w->phases > 1 || w->stride > 1 || w->line || w->spread.is || d->b.n_bounded || d->of.run_step < 2)
        return false;
    for (int64_t c = 0; c < w->channels; c++)
        for (int t = 0; t < w->taps * w->taps; t++)
            if (d->at_k_b[t / w->taps * w->at_y + t % w->taps * w->at_x + c * w->at_c] !=
                d->at_k_b[0] + c * w->taps * w->taps + t)
                return false;
    return true;
}
/* Filters of a panel, of all channels. */
static void fill_panel(const hone_contract *d, const void *source, bool transposes, int64_t n0, int64_t wide,
                       float *to, ptrdiff_t apart) {
    const struct hone_winograd *w = d->winograd;
    enum { FEW = 64 }; /* taps */
    const int64_t have = d->of.n - n0 < wide ? d->of.n - n0 : wide, taps = w->taps * w->taps,
                  some = FEW / taps;
    float g[FEW][HONE_WINOGRAD_FILTERS];
    if (!transposes || n0 % d->of.run + have > d->of.run) {
        for (int64_t c = 0; c < w->channels; c++)
            hone_winograd_filters_of(d, source, 0, c, n0, wide, to + c * wide, apart);
        return;
    }
    const int64_t from = d->at_row_b[n0 / d->of.run] + n0 % d->of.run * d->of.run_step + d->at_k_b[0];
    float wide_room[HONE_WINOGRAD_FILTERS * FEW]; /* of halves: a column's taps after another's */
    if (have < wide) memset(g, 0, sizeof g);
    for (int64_t c = 0; c < w->channels; c += some) {
        const int64_t many = w->channels - c < some ? w->channels - c : some;
        for (int64_t j = 0; d->of.stored_b && j < have; j++)
            hone_dtype_load_n(d->of.stored_b, wide_room + j * FEW,
                              hone_element(source, true, from + c * taps + j * d->of.run_step),
                              (size_t)(many * taps));
        hone_transpose_floats(have, many * taps,
                              d->of.stored_b ? wide_room : (const float *)source + from + c * taps,
                              d->of.stored_b ? FEW : d->of.run_step, g[0], HONE_WINOGRAD_FILTERS);
        for (int64_t k = 0; k < many; k++)
            hone_winograd_filters(&w->g, (const float(*)[HONE_WINOGRAD_FILTERS])g + k * taps, (int)wide,
                                  to + (c + k) * wide, apart);
    }
}
static void fill_half(const hone_contract *d, const void *source, uint16_t *to) {
    const struct hone_winograd *w = d->winograd;
    float u[HONE_WINOGRAD_POINTS * HONE_WINOGRAD_FILTERS];
    for (int64_t n0 = 0; n0 < d->of.n; n0 += w->nr, to += w->places * w->channels * w->nr)
        for (int64_t c = 0; c < w->channels; c++) {
            hone_winograd_filters_of(d, source, 0, c, n0, w->nr, u, w->nr);
            for (int place = 0; place < w->places; place++)
                w->half->narrow(u + place * w->nr, to + (place * w->channels + c) * w->nr, w->nr);
        }
}
/* [panel][place][phase][channel][column], or places first */
void hone_winograd_fill(const hone_contract *d, const void *source, void *panels, int part, int parts) {
    const struct hone_winograd *w = d->winograd;
    float *to = panels, u[HONE_WINOGRAD_POINTS * HONE_WINOGRAD_FILTERS];
    if (w->half) {
        fill_half(d, source, panels);
        return;
    }
    /* panels that begin there */
    const int64_t first = w->columns * part / parts, end = w->columns * (part + 1) / parts;
    const bool transposes = by_taps(d);
    for (int64_t n0 = 0, wide; n0 < end; n0 += wide) {
        wide = hone_winograd_panel(d, w, n0);
        if (n0 < first) continue;
        const ptrdiff_t apart =
            (ptrdiff_t)(hone_winograd_filters_at(w, 1, n0, wide) - hone_winograd_filters_at(w, 0, n0, wide));
        if (w->phases == 1)
            fill_panel(d, source, transposes, n0, wide, to + hone_winograd_filters_at(w, 0, n0, wide), apart);
        for (int64_t c = 0; c < w->channels * w->phases && w->phases > 1; c++) {
            const int phase = (int)(c / w->channels);
            hone_winograd_filters_of(d, source, phase, c % w->channels, n0, wide, u, (ptrdiff_t)wide);
            for (int place = 0; place < w->places; place++) {
                const int slot = w->slot[phase][place];
                if (slot >= 0)
                    memcpy(to + hone_winograd_filters_at(w, place, n0, wide) +
                               (slot * w->channels + c % w->channels) * wide,
                           u + place * wide, sizeof(float) * (size_t)wide);
            }
        }
    }
}
