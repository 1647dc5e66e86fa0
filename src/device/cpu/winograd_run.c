/* SPDX-License-Identifier: Apache-2.0
   winograd_run: convolutions by tiles, computed (winograd.h).

   Pixels get to the transform domain, [place][tile][channel]; every place is one matrix product with the
   filters at that place; what they give, [place][tile][column], is transformed back, finished and written:

        pixels ──in──▶ v ──64 (36, 16) products──▶ m ──out──▶ results

   Large images go by blocks of tiles: v stays in L2, and m, a panel of columns at a time, too; but every
   block reads all filters. Small images have many channels, so that filters are what costs: then all tiles
   are one block, and the three parts are three steps. Filters are transformed once a
   model. What follows the sum is done as contract_epilogue.c does it. */
#include "device/cpu/winograd.h"

#include <math.h>

static float zeros[HONE_CONTRACT_KC]; /* what lies outside the image; never written */

static void places_of(const hone_contract *d, const hone_step *s, void *const *base, void **at) {
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(s->ref[t], base);
}
typedef struct {
    int64_t picture, y, x; /* of a tile: which, and its first result */
} spot;
static spot stand(const struct hone_winograd *w, int64_t tile) {
    const int64_t each = w->down * w->across, in = tile % each;
    return (spot){tile / each, in / w->across * w->out_y, in % w->across * w->out};
}
/* Where pixels lie: as a step before has spread them, or as they came. */
typedef struct {
    const float *at;
    int64_t h, w, pad_y, pad_x, pitch_y, pitch_x;
    int stride;
} picture;
static picture picture_of(const hone_contract *d, void *const *at, int64_t number) {
    const struct hone_winograd *w = d->winograd;
    if (!w->spread.is)
        return (picture){(const float *)at[d->a.tensor] + d->a.at.c + d->at_m_a[number * w->oh * w->ow],
                         w->h,
                         w->w,
                         w->pad_y,
                         w->pad_x,
                         w->pitch_y,
                         w->pitch_x,
                         w->stride};
    const int64_t pitch = w->spread.w * w->channels;
    return (picture){(const float *)at[w->spread.ref] + number * w->spread.h * pitch,
                     w->spread.h,
                     w->spread.w,
                     0,
                     0,
                     pitch,
                     w->channels,
                     1};
}
/* The pixels of a phase that a tile sees. */
static void look(const hone_contract *d, void *const *at, int64_t tile, int phase, const float **pixel) {
    const struct hone_winograd *w = d->winograd;
    const spot s = stand(w, tile);
    const picture p = picture_of(d, at, s.picture);
    const int64_t down = w->oh + (w->line && !w->is_down ? 0 : w->taps - 1),
                  across = w->ow + (w->is_down ? 0 : w->taps - 1); /* all that any result sees */
    for (int y = 0; y < w->places / w->edge; y++) {
        const int64_t iy = p.stride * (s.y + y) + phase / 2;
        const bool in = iy >= p.pad_y && iy - p.pad_y < p.h && s.y + y < down;
        for (int x = 0; x < w->edge; x++) {
            const int64_t ix = p.stride * (s.x + x) + phase % 2;
            pixel[y * w->edge + x] = in && ix >= p.pad_x && ix - p.pad_x < p.w && s.x + x < across
                                         ? p.at + iy * p.pitch_y + ix * p.pitch_x
                                         : zeros;
        }
    }
}
/* Few channels: line `number` of all phases, a pixel of each beside one another. */
static hone_status step_spread(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const struct hone_winograd *w = d->winograd;
    void *at[HONE_MAX_REFS];
    (void)scratch;
    places_of(d, step, base, at);
    const float *from =
        (const float *)at[d->a.tensor] + d->a.at.c + d->at_m_a[number / w->spread.h * w->oh * w->ow];
    float *to = (float *)at[w->spread.ref] + number * w->spread.w * w->channels;
    for (int64_t k = 0; k < w->channels; k++) {
        const int64_t phase = k / w->own, c = k % w->own, y = w->stride * (number % w->spread.h) + phase / 2;
        const bool in = y >= w->pad_y && y - w->pad_y < w->h;
        const float *row = from + y * w->pitch_y + phase % 2 * w->pitch_x + c * w->pitch_c;
        /* inside */
        int64_t x0 = hone_ceil_div(w->pad_x - phase % 2, w->stride),
                x1 = hone_ceil_div(w->w + w->pad_x - phase % 2, w->stride);
        if (x0 < 0) x0 = 0;
        if (x1 > w->spread.w) x1 = w->spread.w;
        if (!in || x0 > x1) x0 = x1 = 0;
        for (int64_t x = 0; x < x0; x++) to[x * w->channels + k] = 0;
        for (int64_t x = x0; x < x1; x++) to[x * w->channels + k] = row[w->stride * x * w->pitch_x];
        for (int64_t x = x1; x < w->spread.w; x++) to[x * w->channels + k] = 0;
    }
    return HONE_OK;
}
static hone_winograd_input_fn *input_of(const struct hone_winograd *w) {
    return w->line ? w->kernel->in_line : w->kernel->in[w->size];
}
/* Tiles from t0 on to their places: floats or halves, as tiles v0 … of v. Of one phase: others are
   transposed. */
enum { SOME = 64 /* channels */, MOST_NEAR = 32 /* of tiles that are transposed */ };
static const hone_winograd_less whole = {0, 0};
static void input(const hone_contract *d, void *const *at, int64_t t0, int64_t many, void *v, int64_t v0) {
    const struct hone_winograd *w = d->winograd;
    const float *pixel[HONE_WINOGRAD_POINTS];
    float some[HONE_WINOGRAD_POINTS * SOME];
    for (int64_t t = 0; t < many; t++) {
        const int64_t to = (v0 + t) * w->channels;
        look(d, at, t0 + t, 0, pixel);
        if (!w->half) input_of(w)(pixel, w->channels, (float *)v + to, w->v_at[1], whole);
        for (int64_t c = 0; w->half && c < w->channels; c += SOME) {
            const int64_t n = w->channels - c < SOME ? w->channels - c : SOME;
            input_of(w)(pixel, n, some, SOME, whole);
            for (int place = 0; place < w->places; place++) {
                w->half->narrow(some + place * SOME, (uint16_t *)v + to + c + w->v_at[place], n);
                pixel[place] += SOME;
            }
        }
    }
}
/* How a block's packed tiles go (winograd.h). */
static struct hone_winograd_cut cut_of(const struct hone_winograd *w, int64_t t0, int64_t many) {
    return w->cut ? w->cut[t0 / w->block] : (struct hone_winograd_cut){(int32_t)many, 0, 0};
}
static int64_t packed_parts(const struct hone_winograd *w, struct hone_winograd_cut cut) {
    return hone_ceil_div(cut.even, w->high) + cut.batches;
}
static int64_t tile_at(const struct hone_winograd *w, int64_t t0, int64_t k) {
    return w->order ? w->order[t0 + k] : k;
}
/* The same, packed for the product (kernels/gemm.h), part by part: a few channels after another, which
   stay near between. A place's phases lie together. */
static void input_packed(const hone_contract *d, void *const *at, int64_t t0, int64_t many, int64_t number,
                         float *v, float *some) {
    const struct hone_winograd *w = d->winograd;
    const float *pixel[HONE_WINOGRAD_BATCH][HONE_WINOGRAD_POINTS], *row[HONE_GEMM_ROWS];
    const struct hone_winograd_cut cut = cut_of(w, t0, many);
    const int64_t c = w->channels, groups = hone_ceil_div(cut.even, w->high), from = number * w->high,
                  left = cut.even - from;
    const hone_winograd_batch *b = number < groups ? NULL : w->batch + cut.first + (number - groups);
    const int64_t first = b ? b->first : from, before = b ? b->before : number * HONE_GEMM_PACKED_M(w->high);
    const int64_t n = b                ? b->n
                      : left < w->high ? left
                                       : w->high,
                  deepest = (w->near_apart - 16) / n,
                  most = deepest < MOST_NEAR ? deepest / 8 * 8 : MOST_NEAR;
    hone_winograd_less less[HONE_WINOGRAD_BATCH] = {{0, 0}};
    for (int i = 0; b && i < n; i++) less[i] = hone_winograd_less_of(w, t0 + tile_at(w, t0, first + i));
    for (int phase = 0; phase < w->phases; phase++) {
        for (int i = 0; i < n; i++) look(d, at, t0 + tile_at(w, t0, first + i), phase, pixel[i]);
        hone_gemm_args part = {.taps = 1, .a = row};
        for (int64_t c0 = 0; c0 < c; c0 += part.k) {
            part.k = c - c0 < most ? c - c0 : most;
            for (int i = 0; i < n; i++) {
                input_of(w)(pixel[i], part.k, some + i * most, w->near_apart, less[i]);
                for (int p = 0; p < w->places; p++) pixel[i][p] += part.k;
            }
            for (int p = 0; p < w->places; p++) {
                const int slot = w->slot[phase][p], have = b ? b->have[w->kind[p]].n : (int)n,
                          high = b ? b->have[w->kind[p]].high : have;
                const int64_t deep = hone_winograd_depth(w, p);
                float *to = v + w->v_at[p] + before * deep;
                for (int i = 0; slot >= 0 && i < have; i += part.m, to += HONE_GEMM_PACKED_M(high) * deep) {
                    part.m = have - i < high ? have - i : high;
                    for (int r = 0; r < part.m; r++)
                        row[r] = some + p * w->near_apart + (b ? b->have[w->kind[p]].which[i + r] : r) * most;
                    d->kernel->pack_a(&part, to + (slot * c + c0) * HONE_GEMM_PACKED_M(part.m));
                }
            }
        }
    }
}
/* Where the results of a block go; pixel numbers as kernels count them, a tile after another. */
static void aim(const hone_contract *d, void *const *at, const hone_standing *here, int64_t t0, int64_t many,
                float **to, const float **residual) {
    const struct hone_winograd *w = d->winograd;
    const hone_cpu_epilogue *e = d->epilogue;
    for (int64_t t = 0; t < many; t++) {
        const spot s = stand(w, t0 + t);
        for (int y = 0; y < w->out_y; y++)
            for (int x = 0; x < w->out; x++) {
                const int64_t k = (t * w->out_y + y) * w->out + x,
                              m = (s.picture * w->oh + s.y + y) * w->ow + s.x + x;
                to[k] = NULL, residual[k] = NULL;
                if (s.y + y >= w->oh || s.x + x >= w->ow) continue;
                if (!e) to[k] = (float *)at[d->out] + here->out + d->at_m_out[m];
                else {
                    to[k] =
                        (float *)at[e->out.tensor] + hone_epilogue_at(&e->out, e->n_batch, here->index, m);
                    if (e->residual.tensor >= 0)
                        residual[k] = (const float *)at[e->residual.tensor] +
                                      hone_epilogue_at(&e->residual, e->n_batch, here->index, m);
                }
            }
    }
}
/* Tiles of a block that lie side by side. */
static int64_t side_by_side(const struct hone_winograd *w, int64_t tile, int64_t left) {
    const int64_t row = w->across - tile % w->across;
    return row < left ? row : left;
}
/* The same, where something else follows: rows of results one after another in scratch, as the next stage
   wants them. */
static void aim_sums(const struct hone_winograd *w, int64_t t0, int64_t many, float *sums, int64_t stride,
                     float **to) {
    for (int64_t i = 0; i < many;) {
        const int64_t row = side_by_side(w, t0 + i, many - i), pixels = w->out_y * w->out;
        for (int64_t t = 0; t < row; t++)
            for (int y = 0; y < w->out_y; y++)
                for (int x = 0; x < w->out; x++)
                    to[(i + t) * pixels + y * w->out + x] =
                        sums + (i * pixels + (y * row + t) * w->out + x) * stride;
        i += row;
    }
}
static hone_status finish(const hone_contract *d, void *const *at, const hone_standing *here, int64_t t0,
                          int64_t many, float *sums, void *scratch) {
    const struct hone_winograd *w = d->winograd;
    for (int64_t i = 0; i < many;) {
        const int64_t row = side_by_side(w, t0 + i, many - i);
        const spot s = stand(w, t0 + i);
        const int64_t wide = w->ow - s.x < row * w->out ? w->ow - s.x : row * w->out;
        for (int y = 0; y < w->out_y && s.y + y < w->oh; y++)
            HONE_TRY(hone_contract_epilogue(d, at, 0, here, (s.picture * w->oh + s.y + y) * w->ow + s.x, wide,
                                            0, d->of.n, sums + (i * w->out_y + y * row) * w->out * d->of.n,
                                            d->of.n, NULL, scratch));
        i += row;
    }
    return HONE_OK;
}
/* A place's sums of tiles from t0 on with a panel, those beyond f16, in f32. Slow, and rare. */
static void mend(const hone_contract *d, void *const *at, int64_t t0, int64_t many, int place, int64_t n0,
                 float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    const float *pixel[HONE_WINOGRAD_POINTS];
    float v[HONE_WINOGRAD_POINTS], u[HONE_WINOGRAD_POINTS * HONE_WINOGRAD_FILTERS];
    for (int64_t t = 0; t < many; t++, m += stride) {
        bool fine = true;
        for (int j = 0; j < w->nr; j++) fine &= isfinite(m[j]) != 0;
        if (fine) continue;
        for (int j = 0; j < w->nr; j++) m[j] = 0;
        look(d, at, t0 + t, 0, pixel);
        for (int64_t c = 0; c < w->channels; c++) {
            input_of(w)(pixel, 1, v, 1, whole);
            hone_winograd_filters_of(d, hone_element(at[d->b.tensor], d->of.stored_b, d->b.at.c), 0, c, n0,
                                     w->nr, u, w->nr);
            for (int j = 0; j < w->nr; j++) m[j] += v[place] * u[place * w->nr + j];
            for (int k = 0; k < w->places; k++) pixel[k]++;
        }
    }
}
static void multiply_half(const hone_contract *d, void *const *at, const uint16_t *v, int64_t t0,
                          int64_t many, int p0, int p1, int64_t n0, int64_t n, float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    const int64_t c = w->channels;
    for (int place = p0; place < p1; place++)
        for (int64_t j = 0; j < n; j += w->nr) {
            const uint16_t *panel =
                (const uint16_t *)at[d->packed_b] + ((n0 + j) * w->places + place * w->nr) * c;
            float *to = m + place * w->apart_m + j;
            if (!w->half->run(many, c, v + w->v_at[place], (ptrdiff_t)c, panel, to, (ptrdiff_t)stride, false))
                mend(d, at, t0, many, place, n0 + j, to, stride);
        }
}
enum { AT_ONCE = 32 * HONE_GEMM_ROWS, LINE = 64, FEW_PASSES = 2, SHORT = 128 /* channels */ };
/* Rows that are packed, in calls: of those that go by themselves as many as there are pointers for, of
   the others a batch. While tiles pass a panel the one that follows is prefetched, a line with each four
   channels; where a place has all tiles, so much less that it is there by the last of them. Where tiles are
   few and panels long the core itself foresees them better. */
static void multiply_packed(const hone_contract *d, void *const *at, const float *v, int64_t t0, int64_t many,
                            int p0, int p1, int64_t n0, int64_t n, float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    const float *filters = at[d->packed_b];
    const struct hone_winograd_cut cut = cut_of(w, t0, many);
    const hone_winograd_batch *batch = cut.batches ? w->batch + cut.first : NULL;
    const int64_t at_once = AT_ONCE / w->high * w->high;
    float *sums[AT_ONCE], *others[HONE_WINOGRAD_KINDS][HONE_WINOGRAD_BATCH];
    int64_t filled = -1, aimed[HONE_WINOGRAD_KINDS] = {-1, -1, -1, -1}, passes[HONE_WINOGRAD_KINDS];
    for (int kind = 0; kind < HONE_WINOGRAD_KINDS; kind++) {
        passes[kind] = hone_ceil_div(cut.even, w->high);
        for (int k = 0; k < cut.batches; k++)
            passes[kind] += hone_ceil_div(batch[k].have[kind].n, batch[k].have[kind].high);
    }
    hone_gemm_args part = {.taps = 1};
    for (int place = p0; place < p1; place++)
        for (int64_t j = 0, wide; j < n; j += wide) {
            wide = hone_winograd_panel(d, w, n0 + j), part.k = hone_winograd_depth(w, place);
            const int kind = w->kind[place];
            const int64_t ask = w->nr * 4 * (int64_t)sizeof(float) / (passes[kind] + !passes[kind]) + 1,
                          line = w->steps && ask < LINE ? ask : LINE;
            const float *panel = filters + hone_winograd_filters_at(w, place, n0 + j, wide),
                        *next = panel + part.k * wide /* as they are read */,
                        *const rows = v + w->v_at[place];
            const bool asks = passes[kind] > FEW_PASSES || (passes[kind] > 1 && part.k <= SHORT);
            part.n = (int)wide, part.b = panel, part.b_step = wide, part.c_from = place * w->apart_m + j,
            part.prefetch_step = asks ? line : 0;
            for (int64_t i = 0, k = 0, passed = 0; i < cut.even || k < cut.batches;
                 passed += hone_ceil_div(part.m, part.m_block)) {
                if (i < cut.even) {
                    part.m = (int)(cut.even - i < at_once ? cut.even - i : at_once), part.m_block = w->high,
                    part.c = sums;
                    part.packed_a = rows + i / w->high * HONE_GEMM_PACKED_M(w->high) * part.k;
                    for (int r = 0; r < part.m && filled != i; r++)
                        sums[r] = m + tile_at(w, t0, i + r) * stride;
                    filled = i, i += at_once;
                } else {
                    const hone_winograd_batch *b = batch + k;
                    part.m = b->have[kind].n, part.m_block = b->have[kind].high, part.c = others[kind],
                    part.packed_a = rows + b->before * part.k;
                    for (int r = 0; r < part.m && aimed[kind] != k; r++)
                        others[kind][r] = m + tile_at(w, t0, b->first + b->have[kind].which[r]) * stride;
                    aimed[kind] = k++;
                }
                part.prefetch =
                    asks ? (const float *)(const void *)((const char *)next + passed * (part.k / 4) * line)
                         : NULL;
                if (part.m) d->kernel->run[wide / d->kernel->vector - 1](&part);
            }
        }
}
/* Places from p0 on of `many` tiles with columns n0 … n0+n-1 of the filters; m: the first of these columns,
   rows `stride` apart. */
static void multiply(const hone_contract *d, void *const *at, const void *factors, int64_t t0, int64_t many,
                     int p0, int p1, int64_t n0, int64_t n, float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    const float *v = factors, *filters = at[d->packed_b];
    const int64_t c = w->channels;
    if (w->half) {
        multiply_half(d, at, factors, t0, many, p0, p1, n0, n, m, stride);
        return;
    }
    if (hone_winograd_packs_a(d, w)) {
        multiply_packed(d, at, v, t0, many, p0, p1, n0, n, m, stride);
        return;
    }
    for (int place = p0; place < p1; place++)
        for (int64_t j = 0; j < n; j += w->nr) {
            const int64_t wide = hone_winograd_panel(d, w, n0 + j);
            const int vectors = (int)(wide / d->kernel->vector), mr = d->kernel->mr[vectors - 1];
            const float *rows[HONE_GEMM_ROWS], *panel = filters + ((n0 + j) * w->places + place * wide) * c;
            float *sum[HONE_GEMM_ROWS];
            hone_gemm_args part = {
                .n = (int)wide, .taps = 1, .k = c, .a = rows, .b = panel, .b_step = wide, .c = sum};
            for (int64_t i = 0; i < many; i += mr) {
                part.m = many - i < mr ? (int)(many - i) : mr;
                for (int r = 0; r < part.m; r++)
                    rows[r] = v + w->v_at[place] + (i + r) * c,
                    sum[r] = m + place * w->apart_m + (i + r) * stride + j;
                d->kernel->run[vectors - 1](&part);
            }
        }
}
/* How a tile's results end, and where they go. */
typedef struct {
    hone_winograd_end end;
    float **to, *sums;
    const float **residual, *bias;
    float times, plus; /* what an activation then gets */
    void *room;        /* of the next stage */
} ending;
static ending ready(const hone_contract *d, void *const *at, const hone_standing *here, int64_t t0,
                    int64_t many, char *room) {
    const struct hone_winograd *w = d->winograd;
    const hone_cpu_epilogue *s = d->epilogue;
    const int64_t pixels = (w->steps ? w->some : w->block) * w->out_y * w->out;
    ending e = {.sums = (float *)(void *)room,
                .to = (float **)(void *)(room + w->sum_bytes),
                .room = room + w->sum_bytes + w->at_bytes};
    e.residual = (const float **)(e.to + pixels);
    e.end.apart = w->apart_m;
    if (!w->direct) aim_sums(w, t0, many, e.sums, d->of.n, e.to);
    else aim(d, at, here, t0, many, e.to, e.residual);
    if (!w->direct || !s) return e;
    e.end.lo = hone_epilogue_number(&s->lo, s->n_batch, at, here->index, 0),
    e.end.hi = hone_epilogue_number(&s->hi, s->n_batch, at, here->index, 0);
    e.end.clamp = e.end.lo != -INFINITY || e.end.hi != INFINITY;
    if (s->then)
        e.times = hone_epilogue_number(&s->times, s->n_batch, at, here->index, 0),
        e.plus = hone_epilogue_number(&s->plus, s->n_batch, at, here->index, 0);
    if (s->bias_n)
        e.bias = (const float *)at[s->bias.tensor] + hone_epilogue_at(&s->bias, s->n_batch, here->index, 0);
    return e;
}
/* Columns n0 … n0+n-1 of tiles that `ready` knows, from m. */
static void bring_back(const hone_contract *d, ending *e, int64_t t0, int64_t many, int64_t n0, int64_t n,
                       const float *m, int64_t stride) {
    const struct hone_winograd *w = d->winograd;
    hone_activate_fn *activate = w->direct && d->epilogue ? d->epilogue->activate : NULL;
    hone_winograd_output_fn *back =
        (w->line ? w->kernel->out_line : w->kernel->out[w->size])[w->taps - HONE_WINOGRAD_LEAST];
    const bool adds = w->direct && d->epilogue && d->epilogue->residual.tensor >= 0;
    e->end.n = (ptrdiff_t)n, e->end.from = (ptrdiff_t)n0, e->end.bias = e->bias ? e->bias + n0 : NULL;
    for (int64_t t = 0; t < many; t++) {
        e->end.m = m + t * stride, e->end.y = e->to + t * w->out_y * w->out,
        e->end.less = hone_winograd_less_of(w, t0 + t);
        e->end.residual = adds ? e->residual + t * w->out_y * w->out : NULL;
        back(&e->end);
        for (int k = 0; activate && k < w->out_y * w->out; k++) {
            if (!e->end.y[k]) continue;
            activate(e->end.y + k, n0, 1, n, d->epilogue->alpha, d->epilogue->beta);
            if (d->epilogue->then) d->epilogue->then(e->end.y + k, n0, 1, n, e->times, e->plus, NULL, 0);
        }
    }
}
/* A block, from pixels to results. */
static hone_status block(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const struct hone_winograd *w = d->winograd;
    void *at[HONE_MAX_REFS];
    places_of(d, step, base, at);
    const int64_t t0 = number * w->block, many = w->tiles - t0 < w->block ? w->tiles - t0 : w->block;
    float *some = scratch, *v = some + w->places * w->near_apart,
          *m = (float *)(void *)((char *)v + w->v_bytes);
    const hone_standing here = hone_contract_stand(d, 0);
    if (hone_winograd_packs_a(d, w)) {
        for (int64_t k = 0; k < packed_parts(w, cut_of(w, t0, many)); k++)
            input_packed(d, at, t0, many, k, v, some);
    } else input(d, at, t0, many, v, 0);
    ending e = ready(d, at, &here, t0, many, (char *)m + w->m_bytes);
    for (int64_t k = 0; k * w->nt < d->of.n; k++) {
        const int64_t n0 = hone_winograd_part(d, k), n = hone_winograd_part(d, k + 1) - n0;
        multiply(d, at, v, t0, many, 0, w->places, n0, n, m, w->nt);
        bring_back(d, &e, t0, many, n0, n, m, w->nt);
    }
    return w->direct ? HONE_OK : finish(d, at, &here, t0, many, e.sums, e.room);
}
/* The three steps. */
static hone_status step_in(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const struct hone_winograd *w = d->winograd;
    void *at[HONE_MAX_REFS];
    places_of(d, step, base, at);
    const int64_t t0 = number * w->some;
    if (hone_winograd_packs_a(d, w)) input_packed(d, at, 0, w->tiles, number, at[w->v], scratch);
    else input(d, at, t0, w->tiles - t0 < w->some ? w->tiles - t0 : w->some, at[w->v], t0);
    return HONE_OK;
}
static hone_status step_multiply(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const struct hone_winograd *w = d->winograd;
    (void)scratch;
    void *at[HONE_MAX_REFS];
    places_of(d, step, base, at);
    const int64_t wide = hone_ceil_div(d->of.n, w->nt), groups = hone_ceil_div(w->places, w->each),
                  part = w->panels ? number / groups : number % wide;
    const int64_t n0 = hone_winograd_part(d, part), n = hone_winograd_part(d, part + 1) - n0;
    const int p0 = (int)(w->panels ? number % groups : number / wide) * w->each,
              p1 = p0 + w->each < w->places ? p0 + w->each : w->places;
    multiply(d, at, at[w->v], 0, w->tiles, p0, p1, n0, n, (float *)at[w->m] + n0, w->columns);
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
    bring_back(d, &e, t0, many, 0, d->of.n, (const float *)at[w->m] + t0 * w->columns, w->columns);
    return w->direct ? HONE_OK : finish(d, at, &here, t0, many, e.sums, e.room);
}
hone_status hone_winograd_steps(hone_template_builder *s, hone_contract *d, uint64_t uses) {
    struct hone_winograd *w = d->winograd;
    const size_t epilogue = d->epilogue_code ? hone_tilecode_scratch(d->epilogue_code) : 0;
    hone_step_template part = {
        .uses = uses,
        .buffer = -1,
        .step = {.tactic = w->half ? "winograd f16" : "winograd", .flush = true, .data = d}};
    hone_step *step = &part.step;
    uint64_t pixels = (uint64_t)1 << d->a.tensor;
    if (w->spread.is) {
        w->spread.ref = s->n_ref++, d->n_ref = s->n_ref;
        part.uses = pixels | (uint64_t)1 << w->spread.ref, part.buffer = w->spread.ref;
        part.bytes = (int64_t)sizeof(float) * w->images * w->spread.h * w->spread.w * w->channels;
        step->tile = step_spread, step->tiles = w->images * w->spread.h;
        HONE_TRY(hone_cpu_add(s, part));
        pixels = (uint64_t)1 << w->spread.ref, uses |= pixels, part.uses = uses, part.buffer = -1,
        part.bytes = 0;
    }
    if (!w->steps) {
        d->n_ref = s->n_ref;
        step->tile = block, step->tiles = w->blocks, step->serial = w->blocks == 1;
        step->scratch_bytes = w->near_bytes + w->v_bytes + w->m_bytes + w->sum_bytes + w->at_bytes + epilogue;
        return hone_cpu_add(s, part);
    }
    w->v = s->n_ref++, w->m = s->n_ref++, d->n_ref = s->n_ref;
    const uint64_t v = (uint64_t)1 << w->v, m = (uint64_t)1 << w->m;
    step->serial = (double)w->tiles * (double)w->places * (double)w->channels * (double)d->of.n < 200000;
    part.uses = pixels | v, part.buffer = w->v, part.bytes = (int64_t)w->v_bytes;
    step->tile = step_in, step->scratch_bytes = w->near_bytes;
    step->tiles = hone_winograd_packs_a(d, w) ? packed_parts(w, cut_of(w, 0, w->tiles))
                                              : hone_ceil_div(w->tiles, w->some);
    HONE_TRY(hone_cpu_add(s, part));
    part.uses = v | m | (w->half ? pixels : 0), part.buffer = w->m, part.bytes = (int64_t)w->m_bytes;
    step->tile = step_multiply, step->scratch_bytes = 0,
    step->tiles = hone_ceil_div(w->places, w->each) * hone_ceil_div(d->of.n, w->nt);
    HONE_TRY(hone_cpu_add(s, part));
    part.uses = uses | m, part.buffer = -1;
    step->tile = step_out, step->tiles = hone_ceil_div(w->tiles, w->some),
    step->scratch_bytes = w->sum_bytes + w->at_bytes + epilogue;
    return hone_cpu_add(s, part);
}
