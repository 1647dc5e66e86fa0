/* SPDX-License-Identifier: Apache-2.0
   winograd: 3x3 convolutions of stride 1 over channels-last pictures, by tiles of 6x6, 4x4 or 2x2 results (kernels/winograd.h), where that is faster than the sum
   itself.

   Pixels are brought to their places, [place][tile][channel]; every place is one matrix product with the filters at that place; what they give,
   [place][tile][column], is brought back, finished and written:

        pixels ──in──▶ v ──64 (36, 16) products──▶ m ──out──▶ results

   Large pictures go by blocks of tiles: v stays in L2, and m, a panel of columns at a time, too; but every block reads all filters. Small pictures have many
   channels, so that filters are what costs: then all tiles are one block, and the three parts are three steps. Filters are brought to their places once a
   model. What follows the sum is done as contract_run.c does it.

   Where f16 was asked for, v and the filters are rounded to it and the products are those of kernels/gemm_half.h; to bring pixels there and back stays f32. By tiles
   of 4x4 that errs about five times as much as the sum itself in f16, and as much as one that is added in f16 throughout: half a percent of what results are (of their
   root mean square, and a single one by ten times that), where random pixels and weights were tried. A row of a place whose sums with a panel are beyond f16 is computed again in f32, as in contract_half.c. */
#include "device/cpu/winograd.h"
#include "kernels/winograd.h"

#include <math.h>

struct hone_winograd {
    const hone_winograd_f32 *kernel;
    const hone_gemm_half *half;                                               /* factors of f16; or NULL */
    int size, out, edge, places, mr, nr, high;                                /* of the product: its K is the channels only */
    int64_t channels, pictures, oh, ow, h, w, pad_y, pad_x, pitch_y, pitch_x; /* pitches in elements */
    int64_t down, across, tiles;                                              /* tiles: of a picture, and in all */
    bool steps;                                                               /* three steps; else all three for one block after another */
    int64_t block, blocks;                                                    /* tiles a block */
    int64_t nt, some;           /* columns that are multiplied, then brought back; three steps: that, and tiles, of a tile of the grid */
    ptrdiff_t apart_v, apart_m; /* places: a line more than they need, or all would fall on the same sets of the cache */
    bool ends;                  /* the kernel finishes its pixels itself */
    int v, m;                   /* three steps: refs of the buffers between them */
    size_t v_bytes, m_bytes, sum_bytes, at_bytes;
};
static float zeros[HONE_CONTRACT_KC]; /* what lies outside the picture; never written */
static int64_t pieces(int64_t n, int64_t by) { return (n + by - 1) / by; }
static int64_t all_columns(const hone_contract *d, const struct hone_winograd *w) { /* in whole panels, or vectors */
    return w->half ? pieces(d->n, w->nr) * w->nr : hone_contract_columns(d);
}
static size_t factor_bytes(const struct hone_winograd *w) { return w->half ? sizeof(uint16_t) : sizeof(float); }

/* ---- recognising ---------------------------------------------------------------------------------------------------------------------- */
/* One way of the window: result `o` and tap `k` move alike, over a size with zeros before and behind. */
static bool way(const hone_contract *d, int o, int k, int64_t *size, int64_t *pad) {
    const hone_affine_load *a = &d->a;
    int seen = -1;
    if (a->at.k[o] != a->at.k[k] || d->slots.extent[k] != 3) return false;
    *size = d->slots.extent[o] + 2, *pad = 0;
    for (int q = 0; q < a->n_bounded; q++) {
        if (!a->bounded[q].k[o] && !a->bounded[q].k[k]) continue;
        if (seen >= 0 || a->bounded[q].k[o] != 1 || a->bounded[q].k[k] != 1) return false;
        seen = q, *size = a->size[q], *pad = -a->bounded[q].c;
        for (int s = 0; s < d->slots.n; s++)
            if (s != o && s != k && d->slots.extent[s] > 1 && a->bounded[q].k[s]) return false;
    }
    return true;
}
static bool recognise(const hone_contract *d, struct hone_winograd *w) {
    const hone_slots_of *s = &d->slots;
    int tap[2] = {0, 0}, taps = 0, at[MAX_SLOTS], n = 0;
    if (d->bytes || d->each || d->plane || !d->packed_b || d->packed_a || d->batch != 1 || d->first_tensor >= 0 || s->over >= 0 ||
        d->taps != 9 || d->piece < 8 || d->piece > HONE_CONTRACT_KC || d->kernel->widths * d->kernel->vector > HONE_WINOGRAD_FILTERS)
        return false;
    for (int k = s->n_domain; k < s->n; k++) {
        if (s->extent[k] == 1 || d->a.at.k[k] < d->piece) continue; /* of the channels */
        if (taps == 2) return false;
        tap[taps++] = k;
    }
    for (int k = 0; k < d->group_n[0]; k++)
        if (s->extent[k] > 1) at[n++] = k;
    if (taps != 2 || n < 2) return false;
    const int y = at[n - 2], x = at[n - 1], down = d->a.at.k[tap[0]] > d->a.at.k[tap[1]] ? 0 : 1;
    const int ky = tap[down], kx = tap[1 - down];
    if (d->a.at.k[ky] <= d->a.at.k[kx] || !way(d, y, ky, &w->h, &w->pad_y) || !way(d, x, kx, &w->w, &w->pad_x)) return false;
    for (int q = 0; q < d->a.n_bounded; q++) /* no other window */
        if (!d->a.bounded[q].k[y] && !d->a.bounded[q].k[x]) return false;
    w->channels = d->piece, w->oh = s->extent[y], w->ow = s->extent[x], w->pictures = d->m / (w->oh * w->ow);
    w->pitch_y = d->a.at.k[y], w->pitch_x = d->a.at.k[x];
    return true;
}

/* ---- choosing ------------------------------------------------------------------------------------------------------------------------- */
/* What a way costs, in multiply-adds, on one machine with AVX-512: bringing a value to its place was measured as about a dozen of them, bringing it back as
   about eight; of 6x6, on Neoverse-V1, it took so much longer than of 4x4. A byte from beyond L2 was six in single layers; four chose better in whole networks,
   whose weights partly stay near. */
enum { L2_FLOATS = 262144, BLOCKS = 32, HALF_ROWS = 8, MOST_BETWEEN = 1 << 22 /* floats */ };
static const struct { double in, out; } brings[HONE_WINOGRAD_SIZES] = {{12, 8}, {12, 8}, {13, 12}};
static double byte_costs(const hone_contract *d, const struct hone_winograd *w) { /* memory is as fast for narrow vectors */
    return w->half ? 1 : d->kernel->vector / 4.0;
}
static bool is_turned(const hone_contract *d, const struct hone_winograd *w) { return d->kernel->turn && !w->half; }
static void cut_blocks(const hone_contract *d, struct hone_winograd *w, int threads) {
    const int64_t mr = w->mr;
    int64_t most = (w->half ? 2 : 1) * L2_FLOATS / (w->places * w->channels) / mr * mr;
    if (most > 8 * mr) most = 8 * mr;
    if (most < 4 * mr) most = 4 * mr;
    if (!w->ends && most > L2_FLOATS / (w->out * w->out * d->n)) most = L2_FLOATS / (w->out * w->out * d->n); /* results wait in scratch */
    const int64_t share = pieces(w->tiles, threads);
    if (most > share && most > 2 * mr) most = share > 2 * mr ? share : 2 * mr;
    if (most < mr) most = mr;
    w->block = pieces(w->tiles, pieces(w->tiles, most));
    if (w->block > mr) w->block = pieces(w->block, mr) * mr;
    w->blocks = pieces(w->tiles, w->block);
}
/* Rows that the kernel takes at a time: few at the end would leave its units waiting for sums that are not there yet, so that all may better take fewer. In rows' time: fewer than five
   take as long as these, and to begin takes about half a row's. */
static int rows_at_once(int64_t tiles, int mr) {
    int best = mr;
    double least = INFINITY;
    for (int high = mr; high > mr / 2; high--) {
        const double rest = (double)(tiles % high), time = (double)(tiles / high) * (high + 0.5) + (rest > 0 ? fmax(rest, 5) + 0.5 : 0);
        if (time < least) least = time, best = high;
    }
    return best;
}
static double cut(const hone_contract *d, struct hone_winograd *w, int size) {
    w->size = size, w->out = hone_winograd_out(size), w->edge = w->out + 2, w->places = hone_winograd_places(size);
    w->down = pieces(w->oh, w->out), w->across = pieces(w->ow, w->out), w->tiles = w->pictures * w->down * w->across;
    cut_blocks(d, w, 8);
    const double c = (double)w->channels, n = (double)d->n, tiles = (double)w->tiles, places = w->places;
    const double filters = (double)factor_bytes(w) * places * c * n, between = 2 * 4 * places * tiles * (c + n);
    const double again = filters > 4.0 * L2_FLOATS ? (double)w->blocks * filters : filters;
    w->steps = between <= (32 << 20) && filters + between < again;
    return places * tiles * (c * n / (w->half ? 2 : 1) + brings[size].in * c + brings[size].out * n) +
           byte_costs(d, w) * (!w->steps                   ? again
                               : between > 4.0 * L2_FLOATS ? filters + between
                                                           : filters);
}
/* Whether a way is taken that is estimated to be so many times as fast as the best yet. 6x6 errs five times as much as 4x4 and takes nearly twice the memory, so it
   must gain clearly; that was measured on ARM alone, and elsewhere it is not taken; nor in f16, where it would err too much. */
static bool taken(const hone_contract *d, const struct hone_winograd *w, double gain) {
    return w->size < 2 ? gain > 1 : is_turned(d, w) && gain > 1.05;
}
bool hone_winograd_able(const hone_contract *d) {
    struct hone_winograd w = {0};
    return recognise(d, &w);
}
int hone_winograd_tile(const hone_contract *d) { return d->winograd ? d->winograd->out : 0; }
hone_status hone_winograd_choose(hone_recipe_maker *s, hone_contract *d, int threads, const hone_gemm_half *half) {
    struct hone_winograd w = {.kernel = hone_winograd_f32_best(), .half = half}, by[HONE_WINOGRAD_SIZES];
    if (!recognise(d, &w)) return HONE_OK;
    if (half &&
        (half->dtype != HONE_DTYPE_F16 || half->times < 2 || half->rows > 1 || half->group > 1 || half->begin || w.channels % half->deep))
        return HONE_OK;
    w.ends = d->direct && !(d->simple && !d->simple->bias_n && (d->simple->bias.tensor >= 0 || d->simple->bias.k != 0));
    w.nr = d->kernel->widths * d->kernel->vector, w.mr = d->kernel->rows[d->kernel->widths - 1];
    if (half) w.nr = half->nr, w.mr = HALF_ROWS;
    /* the sum itself reads all weights again for each of its blocks of rows, unless these follow one another */
    const int64_t rows = pieces(d->m, d->mr), blocks = d->n > d->m ? 1 : rows < BLOCKS ? rows : BLOCKS;
    const double sum = (double)d->n * (double)d->k * ((double)d->m / (half ? 2 : 1) + byte_costs(d, &w) * 4.0 * (double)blocks);
    double cost[HONE_WINOGRAD_SIZES];
    int best = 0;
    for (int k = 0; k < HONE_WINOGRAD_SIZES; k++)
        by[k] = w, cost[k] = cut(d, by + k, k), best = taken(d, by + k, cost[best] / cost[k]) ? k : best;
    if (d->way ? d->way == 1 : !(cost[best] < sum)) return HONE_OK;
    w = by[d->way ? d->way / 2 - 1 : best];
    if (threads > 1 && w.blocks < 2 * threads && s->n_ref + 3 <= HONE_MAX_REFS && w.tiles * w.places < MOST_BETWEEN / (w.channels + d->n))
        w.steps = true;                                          /* too few blocks to share; the same bits come out */
    if (w.steps && s->n_ref + 3 > HONE_MAX_REFS) return HONE_OK; /* filters and two buffers */
    const int64_t nr = w.nr, columns = all_columns(d, &w);
    if (w.steps) w.block = w.tiles, w.blocks = 1;
    else if (threads > 8) cut_blocks(d, &w, threads); /* the way itself is chosen whatever they are: other bits would come out */
    const bool turned = is_turned(d, &w);
    w.high = turned ? rows_at_once(w.block, w.mr) : w.mr;
    /* two panels for the same tiles in L1, unless these are few: then filters are what costs, and best read from one end to the other */
    w.nt = w.steps ? 4 * nr : turned && w.block >= 4 * w.mr ? 2 * nr : nr, w.some = turned ? w.high : 4; /* turned tiles go together */
    const int64_t rows_v = turned ? pieces(w.block, w.high) * HONE_GEMM_TURNED(w.high) : pieces(w.block, HONE_GEMM_ROWS) * HONE_GEMM_ROWS;
    w.apart_v = (ptrdiff_t)(pieces(rows_v * w.channels, 16) * 16 + 16);
    w.apart_m = (ptrdiff_t)(pieces(w.block * (w.steps ? columns : w.nt), 16) * 16 + 16);
    w.v_bytes = factor_bytes(&w) * (size_t)(w.places * w.apart_v), w.m_bytes = sizeof(float) * (size_t)(w.places * w.apart_m);
    const size_t pixels = (size_t)((w.steps ? w.some : w.block) * w.out * w.out);
    w.sum_bytes = w.ends ? 0 : (sizeof(float) * pixels * (size_t)d->n + 63) / 64 * 64;
    w.at_bytes = 2 * sizeof(float *) * pixels;
    struct hone_winograd *kept = HONE_NEW(s->arena, struct hone_winograd);
    if (!kept) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    *kept = w, d->winograd = kept;
    return HONE_OK;
}

/* Columns of the panel that begins at n0. Where a last one would be of one vector, whose sums are too few to keep the units of a core busy, the one before gives it one of its own. */
static bool gives(const hone_contract *d, const struct hone_winograd *w, int64_t left) {
    return is_turned(d, w) && d->kernel->widths > 2 && left == w->nr + d->kernel->vector;
}
static int64_t panel_wide(const hone_contract *d, const struct hone_winograd *w, int64_t n0) {
    const int64_t left = all_columns(d, w) - n0;
    return left < w->nr ? left : gives(d, w, left) ? w->nr - d->kernel->vector : w->nr;
}
/* Where part k of the columns begins, of `nt` each, in whole panels. */
static int64_t part_at(const hone_contract *d, const struct hone_winograd *w, int64_t k) {
    const int64_t n0 = k * w->nt;
    if (n0 >= d->n) return d->n;
    return n0 && gives(d, w, all_columns(d, w) - n0 + w->nr) ? n0 - d->kernel->vector : n0;
}

/* ---- filters -------------------------------------------------------------------------------------------------------------------------- */
size_t hone_winograd_bytes(const hone_contract *d) {
    return factor_bytes(d->winograd) * (size_t)(d->winograd->places * all_columns(d, d->winograd) * d->winograd->channels);
}
/* [panel][place][channel][column] */
static void filters_of(const hone_contract *d, const float *source, int64_t c, int64_t n0, int64_t wide, float *u, ptrdiff_t apart) {
    const int64_t have = d->n - n0 < wide ? d->n - n0 : wide;
    float g[9][HONE_WINOGRAD_FILTERS] = {{0}};
    for (int64_t t = 0; t < 9; t++) hone_contract_gather(d, source, t * d->winograd->channels + c, n0, have, sizeof(float), 0, g[t]);
    hone_winograd_filters(d->winograd->size, g, (int)wide, u, apart);
}
static void fill_half(const hone_contract *d, const float *source, uint16_t *to) {
    const struct hone_winograd *w = d->winograd;
    float u[HONE_WINOGRAD_PLACES * HONE_WINOGRAD_FILTERS];
    for (int64_t n0 = 0; n0 < d->n; n0 += w->nr, to += w->places * w->channels * w->nr)
        for (int64_t c = 0; c < w->channels; c++) {
            filters_of(d, source, c, n0, w->nr, u, w->nr);
            for (int place = 0; place < w->places; place++)
                w->half->narrow(u + place * w->nr, to + (place * w->channels + c) * w->nr, w->nr);
        }
}
void hone_winograd_fill(const hone_contract *d, const float *source, void *panels) {
    const struct hone_winograd *w = d->winograd;
    const int64_t columns = all_columns(d, w);
    float *to = panels;
    if (w->half) {
        fill_half(d, source, panels);
        return;
    }
    for (int64_t n0 = 0, wide; n0 < columns; n0 += wide) {
        wide = panel_wide(d, w, n0);
        for (int64_t c = 0; c < w->channels; c++) filters_of(d, source, c, n0, wide, to + c * wide, (ptrdiff_t)(w->channels * wide));
        to += w->places * w->channels * wide;
    }
}

/* ---- running -------------------------------------------------------------------------------------------------------------------------- */
typedef struct {
    int64_t picture, y, x; /* of a tile: which, and its first result */
} spot;
static spot stand(const struct hone_winograd *w, int64_t tile) {
    const int64_t each = w->down * w->across, in = tile % each;
    return (spot){tile / each, in / w->across * w->out, in % w->across * w->out};
}
/* The pixels that a tile sees. */
static void look(const hone_contract *d, const float *a, int64_t tile, const float **pixel) {
    const struct hone_winograd *w = d->winograd;
    const spot s = stand(w, tile);
    const float *from = a + d->at_m_a[s.picture * w->oh * w->ow];
    for (int y = 0; y < w->edge; y++) {
        const int64_t iy = s.y + y;
        const bool in = iy >= w->pad_y && iy - w->pad_y < w->h && iy < w->oh + 2;
        for (int x = 0; x < w->edge; x++) {
            const int64_t ix = s.x + x;
            pixel[y * w->edge + x] =
                in && ix >= w->pad_x && ix - w->pad_x < w->w && ix < w->ow + 2 ? from + iy * w->pitch_y + ix * w->pitch_x : zeros;
        }
    }
}
/* Where a tile begins in v; of turned ones, those that others come before in whole. */
static int64_t tile_at(const hone_contract *d, int64_t tile) {
    const struct hone_winograd *w = d->winograd;
    return (is_turned(d, w) ? tile / w->high * HONE_GEMM_TURNED(w->high) : tile) * w->channels;
}
/* Tiles from t0 on to their places: floats or halves, v_from elements behind v. */
enum { SOME = 64, SOME_TURNED = 32 /* channels */, SOME_APART = HONE_GEMM_ROWS * SOME_TURNED + 16 /* places on other sets of the cache */ };
static void bring(const hone_contract *d, const float *a, int64_t t0, int64_t many, void *v, int64_t v_from) {
    const struct hone_winograd *w = d->winograd;
    const float *pixel[HONE_WINOGRAD_PLACES];
    float some[HONE_WINOGRAD_PLACES * SOME];
    for (int64_t t = 0; t < many; t++) {
        look(d, a, t0 + t, pixel);
        if (!w->half) w->kernel->in[w->size](pixel, w->channels, (float *)v + v_from + t * w->channels, w->apart_v);
        for (int64_t c = 0; w->half && c < w->channels; c += SOME) {
            const int64_t n = w->channels - c < SOME ? w->channels - c : SOME;
            uint16_t *to = (uint16_t *)v + v_from + t * w->channels + c;
            w->kernel->in[w->size](pixel, n, some, SOME);
            for (int place = 0; place < w->places; place++) {
                w->half->narrow(some + place * SOME, to + place * w->apart_v, n);
                pixel[place] += SOME;
            }
        }
    }
}
/* The same, turned for the product (kernels/gemm.h): as many tiles as it takes at a time, a few channels of them after another, which stay near between. */
static void bring_turned(const hone_contract *d, const float *a, int64_t t0, int64_t many, void *v, int64_t v_from) {
    const struct hone_winograd *w = d->winograd;
    const float *pixel[HONE_GEMM_ROWS][HONE_WINOGRAD_PLACES], *row[HONE_GEMM_ROWS];
    float some[HONE_WINOGRAD_PLACES * SOME_APART];
    const int64_t c = w->channels;
    for (int64_t t = 0; t < many; t += w->high) {
        hone_gemm_part part = {.m = (int)(many - t < w->high ? many - t : w->high), .taps = 1, .a = row};
        for (int i = 0; i < part.m; i++) look(d, a, t0 + t + i, pixel[i]);
        for (int64_t c0 = 0; c0 < c; c0 += part.k) {
            part.k = c - c0 < SOME_TURNED ? c - c0 : SOME_TURNED;
            for (int i = 0; i < part.m; i++) {
                w->kernel->in[w->size](pixel[i], part.k, some + i * SOME_TURNED, SOME_APART);
                for (int p = 0; p < w->places; p++) pixel[i][p] += part.k;
            }
            for (int p = 0; p < w->places; p++) {
                for (int i = 0; i < part.m; i++) row[i] = some + p * SOME_APART + i * SOME_TURNED;
                d->kernel->turn(&part, (float *)v + v_from + p * w->apart_v + tile_at(d, t) + c0 * HONE_GEMM_TURNED(part.m));
            }
        }
    }
}
static const float *pixels_of(const hone_contract *d, void *const *at) { return (const float *)at[d->a.tensor] + d->a.at.c; }
/* Where the results of a block go; pixel numbers as kernels count them, a tile after another. */
static void aim(const hone_contract *d, void *const *at, const hone_standing *here, int64_t t0, int64_t many, float **to,
                const float **residual) {
    const struct hone_winograd *w = d->winograd;
    const hone_simple *e = d->simple;
    for (int64_t t = 0; t < many; t++) {
        const spot s = stand(w, t0 + t);
        for (int y = 0; y < w->out; y++)
            for (int x = 0; x < w->out; x++) {
                const int64_t k = (t * w->out + y) * w->out + x, m = (s.picture * w->oh + s.y + y) * w->ow + s.x + x;
                to[k] = NULL, residual[k] = NULL;
                if (s.y + y >= w->oh || s.x + x >= w->ow) continue;
                if (!e) to[k] = (float *)at[d->out] + here->out + d->at_m_out[m];
                else {
                    to[k] = (float *)at[e->out.tensor] + hone_epilogue_at(&e->out, e->n_batch, here->index, m);
                    if (e->residual.tensor >= 0)
                        residual[k] = (const float *)at[e->residual.tensor] + hone_epilogue_at(&e->residual, e->n_batch, here->index, m);
                }
            }
    }
}
/* Tiles of a block that lie side by side. */
static int64_t side_by_side(const struct hone_winograd *w, int64_t tile, int64_t left) {
    const int64_t row = w->across - tile % w->across;
    return row < left ? row : left;
}
/* The same, where something else follows: rows of results one after another in scratch, as the next stage wants them. */
static void aim_sums(const struct hone_winograd *w, int64_t t0, int64_t many, float *sums, int64_t stride, float **to) {
    for (int64_t i = 0; i < many;) {
        const int64_t row = side_by_side(w, t0 + i, many - i), pixels = w->out * w->out;
        for (int64_t t = 0; t < row; t++)
            for (int y = 0; y < w->out; y++)
                for (int x = 0; x < w->out; x++)
                    to[(i + t) * pixels + y * w->out + x] = sums + (i * pixels + (y * row + t) * w->out + x) * stride;
        i += row;
    }
}
static hone_status finish(const hone_contract *d, void *const *at, const hone_standing *here, int64_t t0, int64_t many, float *sums,
                          void *scratch) {
    const struct hone_winograd *w = d->winograd;
    for (int64_t i = 0; i < many;) {
        const int64_t row = side_by_side(w, t0 + i, many - i);
        const spot s = stand(w, t0 + i);
        const int64_t wide = w->ow - s.x < row * w->out ? w->ow - s.x : row * w->out;
        for (int y = 0; y < w->out && s.y + y < w->oh; y++)
            HONE_TRY(hone_contract_finish(d, at, 0, here, (s.picture * w->oh + s.y + y) * w->ow + s.x, wide, 0, d->n,
                                          sums + (i * w->out + y * row) * w->out * d->n, d->n, NULL, scratch));
        i += row;
    }
    return HONE_OK;
}
/* A place's sums of tiles from t0 on with a panel, those beyond f16, in f32. Slow, and rare. */
static void mend(const hone_contract *d, void *const *at, int64_t t0, int64_t many, int place, int64_t n0, float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    const float *pixel[HONE_WINOGRAD_PLACES];
    float v[HONE_WINOGRAD_PLACES], u[HONE_WINOGRAD_PLACES * HONE_WINOGRAD_FILTERS];
    for (int64_t t = 0; t < many; t++, m += stride) {
        bool fine = true;
        for (int j = 0; j < w->nr; j++) fine &= isfinite(m[j]) != 0;
        if (fine) continue;
        for (int j = 0; j < w->nr; j++) m[j] = 0;
        look(d, pixels_of(d, at), t0 + t, pixel);
        for (int64_t c = 0; c < w->channels; c++) {
            w->kernel->in[w->size](pixel, 1, v, 1);
            filters_of(d, (const float *)at[d->b.tensor] + d->b.at.c, c, n0, w->nr, u, w->nr);
            for (int j = 0; j < w->nr; j++) m[j] += v[place] * u[place * w->nr + j];
            for (int k = 0; k < w->places; k++) pixel[k]++;
        }
    }
}
static void multiply_half(const hone_contract *d, void *const *at, const uint16_t *v, int64_t t0, int64_t many, int p0, int p1, int64_t n0,
                          int64_t n, float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    const int64_t c = w->channels;
    for (int place = p0; place < p1; place++)
        for (int64_t j = 0; j < n; j += w->nr) {
            const uint16_t *panel = (const uint16_t *)at[d->packed_b] + ((n0 + j) * w->places + place * w->nr) * c;
            float *to = m + place * w->apart_m + j;
            if (!w->half->run(many, c, v + place * w->apart_v, (ptrdiff_t)c, panel, to, (ptrdiff_t)stride, false))
                mend(d, at, t0, many, place, n0 + j, to, stride);
        }
}
enum { AT_ONCE = 8 * HONE_GEMM_ROWS, LINE = 64, FEW_PASSES = 2 };
/* Rows that are turned: as many in a call as there are pointers for. While tiles pass a panel the one that follows is asked for, a line with each four channels; where a place has all
   tiles, so much less that it is there by the last of them. Where tiles are few the core itself foresees panels better. */
static void multiply_turned(const hone_contract *d, void *const *at, const float *v, int64_t many, int p0, int p1, int64_t n0, int64_t n,
                            float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    const float *filters = at[d->packed_b];
    float *sum[AT_ONCE];
    const int64_t columns = hone_contract_columns(d), c = w->channels, passes = pieces(many, w->high),
                  at_once = AT_ONCE / w->high * w->high, ask = pieces(w->nr * 4 * (int64_t)sizeof(float), passes),
                  step = w->steps && ask < LINE ? ask : LINE;
    hone_gemm_part part = {.taps = 1, .k = c, .high = w->high, .c = sum};
    int64_t filled = -1;
    for (int place = p0; place < p1; place++)
        for (int64_t j = 0, wide; j < n; j += wide) {
            wide = panel_wide(d, w, n0 + j);
            const int64_t far = n0 + j + wide < columns && w->steps ? w->places : 1;
            const float *panel = filters + (n0 + j) * w->places * c + place * c * wide, *next = panel + far * c * wide;
            part.n = (int)wide, part.b = panel, part.b_step = wide, part.c_from = place * w->apart_m + j;
            for (int64_t i = 0; i < many; i += at_once) {
                part.m = many - i < at_once ? (int)(many - i) : (int)at_once;
                for (int r = 0; r < part.m && filled != i; r++) sum[r] = m + (i + r) * stride;
                filled = i, part.turned = v + place * w->apart_v + tile_at(d, i);
                if (passes > FEW_PASSES)
                    part.next_step = step, part.next = (const float *)(const void *)((const char *)next + i / w->high * (c / 4) * step);
                d->kernel->run[wide / d->kernel->vector - 1](&part);
            }
        }
}
/* Places from p0 on of `many` tiles with columns n0 … n0+n-1 of the filters; m: the first of these columns, rows `stride` apart. */
static void multiply(const hone_contract *d, void *const *at, const void *factors, int64_t t0, int64_t many, int p0, int p1, int64_t n0,
                     int64_t n, float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    const float *v = factors, *filters = at[d->packed_b];
    const int64_t columns = hone_contract_columns(d), c = w->channels;
    if (w->half) {
        multiply_half(d, at, factors, t0, many, p0, p1, n0, n, m, stride);
        return;
    }
    if (is_turned(d, w)) {
        multiply_turned(d, at, v, many, p0, p1, n0, n, m, stride);
        return;
    }
    for (int place = p0; place < p1; place++)
        for (int64_t j = 0; j < n; j += w->nr) {
            const int64_t wide = columns - n0 - j < w->nr ? columns - n0 - j : w->nr;
            const int vectors = (int)(wide / d->kernel->vector), mr = d->kernel->rows[vectors - 1];
            const float *rows[HONE_GEMM_ROWS], *panel = filters + (n0 + j) * w->places * c + place * c * wide;
            float *sum[HONE_GEMM_ROWS];
            hone_gemm_part part = {.n = (int)wide, .taps = 1, .k = c, .a = rows, .b = panel, .b_step = wide, .c = sum};
            for (int64_t i = 0; i < many; i += mr) {
                part.m = many - i < mr ? (int)(many - i) : mr;
                for (int r = 0; r < part.m; r++) rows[r] = v + place * w->apart_v + (i + r) * c;
                for (int r = 0; r < part.m; r++) sum[r] = m + place * w->apart_m + (i + r) * stride + j;
                d->kernel->run[vectors - 1](&part);
            }
        }
}
/* How a tile's results end, and where they go. */
typedef struct {
    hone_winograd_end end;
    float **to, *sums;
    const float **residual, *bias;
    void *room; /* of the next stage */
} ending;
static ending ready(const hone_contract *d, void *const *at, const hone_standing *here, int64_t t0, int64_t many, char *room) {
    const struct hone_winograd *w = d->winograd;
    const hone_simple *s = d->simple;
    const int64_t pixels = (w->steps ? w->some : w->block) * w->out * w->out;
    ending e = {.sums = (float *)(void *)room, .to = (float **)(void *)(room + w->sum_bytes), .room = room + w->sum_bytes + w->at_bytes};
    e.residual = (const float **)(e.to + pixels);
    e.end.apart = w->apart_m;
    if (!w->ends) aim_sums(w, t0, many, e.sums, d->n, e.to);
    else aim(d, at, here, t0, many, e.to, e.residual);
    if (!w->ends || !s) return e;
    e.end.lo = hone_epilogue_number(&s->lo, s->n_batch, at, here->index, 0),
    e.end.hi = hone_epilogue_number(&s->hi, s->n_batch, at, here->index, 0);
    e.end.clamp = e.end.lo != -INFINITY || e.end.hi != INFINITY;
    if (s->bias_n) e.bias = (const float *)at[s->bias.tensor] + hone_epilogue_at(&s->bias, s->n_batch, here->index, 0);
    return e;
}
/* Columns n0 … n0+n-1 of tiles that `ready` knows, from m. */
static void bring_back(const hone_contract *d, ending *e, int64_t many, int64_t n0, int64_t n, const float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    hone_activate_fn *activate = w->ends && d->simple ? d->simple->activate : NULL;
    const bool adds = w->ends && d->simple && d->simple->residual.tensor >= 0;
    e->end.n = (ptrdiff_t)n, e->end.from = (ptrdiff_t)n0, e->end.bias = e->bias ? e->bias + n0 : NULL;
    for (int64_t t = 0; t < many; t++) {
        e->end.m = m + t * stride, e->end.y = e->to + t * w->out * w->out;
        e->end.residual = adds ? e->residual + t * w->out * w->out : NULL;
        w->kernel->out[w->size](&e->end);
        for (int k = 0; activate && k < w->out * w->out; k++)
            if (e->end.y[k]) activate(e->end.y + k, n0, 1, n, d->simple->alpha, d->simple->beta);
    }
}
static void places_of(const hone_contract *d, const hone_step *s, void *const *base, void **at) {
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(s->ref[t], base);
}
/* A block, from pixels to results. */
static hone_status block(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const struct hone_winograd *w = d->winograd;
    void *at[HONE_MAX_REFS];
    places_of(d, step, base, at);
    const int64_t t0 = number * w->block, many = w->tiles - t0 < w->block ? w->tiles - t0 : w->block;
    float *m = (float *)(void *)((char *)scratch + w->v_bytes);
    const hone_standing here = hone_contract_stand(d, 0);
    (is_turned(d, w) ? bring_turned : bring)(d, pixels_of(d, at), t0, many, scratch, 0);
    ending e = ready(d, at, &here, t0, many, (char *)scratch + w->v_bytes + w->m_bytes);
    for (int64_t k = 0; k * w->nt < d->n; k++) {
        const int64_t n0 = part_at(d, w, k), n = part_at(d, w, k + 1) - n0;
        multiply(d, at, scratch, t0, many, 0, w->places, n0, n, m, w->nt);
        bring_back(d, &e, many, n0, n, m, w->nt);
    }
    return w->ends ? HONE_OK : finish(d, at, &here, t0, many, e.sums, e.room);
}
/* The three steps. */
static hone_status step_in(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const struct hone_winograd *w = d->winograd;
    (void)scratch;
    void *at[HONE_MAX_REFS];
    places_of(d, step, base, at);
    const int64_t t0 = number * w->some, many = w->tiles - t0 < w->some ? w->tiles - t0 : w->some;
    (is_turned(d, w) ? bring_turned : bring)(d, pixels_of(d, at), t0, many, at[w->v], tile_at(d, t0));
    return HONE_OK;
}
static hone_status step_multiply(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const struct hone_winograd *w = d->winograd;
    (void)scratch;
    void *at[HONE_MAX_REFS];
    places_of(d, step, base, at);
    const int64_t wide = pieces(d->n, w->nt), n0 = part_at(d, w, number % wide), n = part_at(d, w, number % wide + 1) - n0;
    const int place = (int)(number / wide);
    multiply(d, at, at[w->v], 0, w->tiles, place, place + 1, n0, n, (float *)at[w->m] + n0, all_columns(d, w));
    return HONE_OK;
}
static hone_status step_out(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const struct hone_winograd *w = d->winograd;
    void *at[HONE_MAX_REFS];
    places_of(d, step, base, at);
    const int64_t t0 = number * w->some, many = w->tiles - t0 < w->some ? w->tiles - t0 : w->some;
    const hone_standing here = hone_contract_stand(d, 0);
    ending e = ready(d, at, &here, t0, many, scratch);
    bring_back(d, &e, many, 0, d->n, (const float *)at[w->m] + t0 * all_columns(d, w), all_columns(d, w));
    return w->ends ? HONE_OK : finish(d, at, &here, t0, many, e.sums, e.room);
}
hone_status hone_winograd_steps(hone_recipe_maker *s, hone_contract *d, uint64_t uses) {
    struct hone_winograd *w = d->winograd;
    const size_t epilogue = d->epilogue ? hone_tilecode_scratch(d->epilogue) : 0;
    hone_part part = {.uses = uses, .buffer = -1, .step = {.tactic = w->half ? "winograd f16" : "winograd", .flush = true, .data = d}};
    hone_step *step = &part.step;
    if (!w->steps) {
        d->n_ref = s->n_ref;
        step->tile = block, step->tiles = w->blocks, step->serial = w->blocks == 1;
        step->scratch_bytes = w->v_bytes + w->m_bytes + w->sum_bytes + w->at_bytes + epilogue;
        return hone_cpu_add(s, part);
    }
    w->v = s->n_ref++, w->m = s->n_ref++, d->n_ref = s->n_ref;
    const uint64_t v = (uint64_t)1 << w->v, m = (uint64_t)1 << w->m;
    step->serial = (double)w->tiles * (double)w->places * (double)w->channels * (double)d->n < 200000;
    part.uses = (uint64_t)1 << d->a.tensor | v, part.buffer = w->v, part.bytes = (int64_t)w->v_bytes;
    step->tile = step_in, step->tiles = pieces(w->tiles, w->some);
    HONE_TRY(hone_cpu_add(s, part));
    part.uses = v | m | (w->half ? (uint64_t)1 << d->a.tensor : 0), part.buffer = w->m, part.bytes = (int64_t)w->m_bytes;
    step->tile = step_multiply, step->tiles = w->places * pieces(d->n, w->nt);
    HONE_TRY(hone_cpu_add(s, part));
    part.uses = uses | m, part.buffer = -1;
    step->tile = step_out, step->tiles = pieces(w->tiles, w->some), step->scratch_bytes = w->sum_bytes + w->at_bytes + epilogue;
    return hone_cpu_add(s, part);
}
