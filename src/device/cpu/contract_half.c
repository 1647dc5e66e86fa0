/* SPDX-License-Identifier: Apache-2.0
   contract_half: matrix multiplications whose factors are rounded to bf16 or f16, where the user asked for it
   and the columns are constant weights. Sums (but for the short ones of some f16 kernels,
   kernels/gemm_half.h), and all that follows them, stay f32.

   Weights are rounded once, when they are packed (half the memory). Rows of A are rounded once a tile, as
   they are copied from wherever they lie, all of K of them: a window that lies in several pieces is a plain
   row then. They need no copy where they are stored as bf16 and lie as the kernel takes them; a window that
   moves pixel by pixel needs its pixels only (contract_implicit_gemm.c); of short pieces all of A is rounded
   by a step before, and of few channels it is copied (contract_first_layer.c). A panel's sums grow in
   scratch, some values of K at a time, so that this much of the panel stays in L1 while all rows pass; then
   the kernel of depthwise convolutions, with nothing left to multiply, adds them to bias and residual,
   clamps and stores, as floats or as bf16, unless the kernel finishes its rows itself.

   An f16 ends at 65504. Where a factor or a short sum is beyond it, the sums are not finite, the kernel says
   so, and these rows' sums with this panel are computed again in f32 from unrounded factors: what is finite
   in f32 is finite here. Each row and panel is judged by itself, so no value depends on how work was cut. */
#include <math.h>
#include <string.h>

#include "device/cpu/contract_half.h"
#include "base/round.h"

enum { LIGHT_ROWS = 128, WINDOW_ROWS = 512 /* whose pixels and sums stay in L2 */, LINE = 256 };
/* panels to be rounded: so much of K at a time, and the most columns */
enum { SLICES = 64, WIDEST = 64 };
/* by AMX: rows pass faster, and its CPUs have large caches */
static bool tiles(const hone_contract *d) { return d->half->kernel->begin; }
static int64_t some_k(const hone_contract *d) { /* the panel's part stays in L1, if it is wanted twice */
    return tiles(d) && d->of.m <= d->half->kernel->mr ? INT64_MAX
           : tiles(d)                                 ? 256
           : d->half->kernel->nr < 16                 ? 1024
                                                      : 512;
}
static int64_t padded_k(const hone_contract *d) {
    return d->half->first_layer.lines     ? d->half->first_layer.deep
           : d->half->implicit_gemm.lines ? d->half->implicit_gemm.deep
                                          : hone_round_up(d->of.k, d->half->kernel->deep);
}
/* rows a power of two apart would meet in the cache */
static int64_t row_step(const hone_contract *d) { return padded_k(d) + 32; }

/* How rows of A lie: values in a row wherever K is, and those that are inside a window or outside it
   together. */
static void measure_rows(hone_contract *d) {
    const int64_t *at = d->at_k_a;
    int64_t run = 1, unit = 1;
    while (run < d->of.k && at[run] == run) run++;
    while (d->of.k % run) run--;
    for (; unit < run; unit++) {
        bool same = true;
        for (int q = 0; q < d->a.n_bounded; q++)
            same &= d->at_k_a_bounded[q][unit] == d->at_k_a_bounded[q][0];
        if (!same) break;
    }
    while (run % unit) unit--;
    for (int64_t p = 0; p < d->of.k; p += run) /* the first is as all others, or nothing is known of any */
        for (int64_t q = 0; q < run; q++)
            if (at[p + q] != at[p] + q) {
                d->half->run_a = d->half->unit_a = 1;
                return;
            }
    d->half->run_a = run, d->half->unit_a = unit;
    const bool steps =
        d->of.k % d->half->kernel->deep == 0 ||
        (d->half->kernel->begin && d->of.k < d->half->kernel->deep && d->of.k % d->half->kernel->group == 0);
    if (run < d->of.k || d->a.n_bounded || !steps) return;
    d->half->row_stride_a = d->of.m > 1 ? d->at_m_a[1] : d->of.k;
    for (int64_t i = 0; i < d->of.m; i++)
        if (d->at_m_a[i] != i * d->half->row_stride_a) d->half->row_stride_a = 0;
}
/* Nanoseconds until the last tile is done, about: rows are rounded once a tile, panels read once a tile, and
   what is cut more often is more evenly shared. */
enum { TILE_NS = 300, MEET_NS = 2000, BYTES_PER_NS = 24, ENDS_PER_NS = 4 };
static double estimate(const hone_contract *d, int64_t mt, int64_t nt, double tiles, int threads) {
    const double rows = (double)hone_round_up(mt < d->of.m ? mt : d->of.m, d->half->kernel->mr),
                 columns = (double)nt, k = (double)padded_k(d);
    const double rounding = rows * k /
                            (d->half->run_a < 16      ? 3
                             : d->kernel->vector == 4 ? 3
                                                      : 12),
                 products = rows * columns * k /
                            (d->half->kernel->times * d->kernel->vector * hone_contract_lane(d));
    const double bytes = columns * k * (double)sizeof(uint16_t) / BYTES_PER_NS;
    const double ns =
        TILE_NS + rounding + (products > bytes ? products : bytes) + rows * columns / ENDS_PER_NS;
    /* a little for those who wait at the end */
    return tiles == 1 ? ns : MEET_NS + (ceil(tiles / threads) + 0.2) * ns;
}
hone_status hone_contract_half_choose(hone_arena *arena, hone_contract *d, const hone_bind_options *how,
                                      bool *chosen) {
    static const int8_t parts[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64};
    *chosen = false;
    const hone_gemm_half *kernel = hone_gemm_half_best(how->precision);
    if (!kernel || !d->packed_b || d->dwconv_nhwc || d->of.integers || d->dwconv_nchw) return HONE_OK;
    /* columns that are computed for one that is wanted: more, and f32 is faster */
    const int64_t waste = kernel->times > 2 ? 4 : 2;
    if (hone_round_up(d->of.n, kernel->nr) > waste * d->of.n || d->of.k < 8) return HONE_OK;
    if (!(d->half = HONE_NEW(arena, struct hone_contract_half))) return hone_steps_no_memory();
    d->half->kernel = kernel, d->half->epilogue = hone_dwconv_nhwc_best(), d->packed_a = 0,
    d->nr = kernel->nr, d->mr = kernel->mr, d->kc = d->of.k;
    measure_rows(d);
    *chosen = true;
    if (hone_contract_first_layer_choose(arena, d)) return HONE_OK;
    const int64_t nr = d->nr, deep = padded_k(d), step = kernel->pack_a ? kernel->m_block : 32;
    /* all weights stay in L2 beside the rows: to read them once more is cheap */
    const bool light = deep * hone_round_up(d->of.n, nr) <= 1 << 19;
    /* that much of A */
    int64_t most = (tiles(d) ? 655360 : d->half->kernel->nr < 16 ? 262144 : 393216) / deep / step * step;
    if (most < step) most = step;
    /* then sums of a panel stay in L1 until they are finished */
    if (light && most > LIGHT_ROWS) most = LIGHT_ROWS;
    const int64_t least = hone_ceil_div(d->of.m, most);
    double best = INFINITY;
    for (size_t i = 0; i < (how->threads == 1 ? 1 : sizeof parts); i++) /* one has nothing to share */
        for (size_t j = 0; j < sizeof parts; j++) {
            int64_t mt = (d->of.m + least * parts[i] - 1) / (least * parts[i]),
                    nt = hone_round_up((d->of.n + parts[j] - 1) / parts[j], nr);
            mt = hone_round_up(mt, mt > step ? step : kernel->mr);
            /* sums wait in scratch */
            while (!d->direct && mt * nt > 131072 && nt > 4 * nr) nt = hone_round_up(nt / 2, nr);
            const double many =
                             (double)(d->of.batch * hone_ceil_div(d->of.m, mt) * hone_ceil_div(d->of.n, nt)),
                         ns = estimate(d, mt, nt, many, how->threads);
            if (ns < best) best = ns, d->mt = mt, d->nt = nt;
            if (how->threads == 1 || many >= 8 * how->threads) break;
        }
    hone_implicit_gemm_choose(arena, d, how->threads == 1 ? WINDOW_ROWS : d->mt);
    return HONE_OK;
}

/* ---- weights ------------------------------------------------------------------------------------------- */
size_t hone_contract_half_bytes(const hone_contract *d) {
    return sizeof(uint16_t) * (size_t)(padded_k(d) * hone_round_up(d->of.n, d->nr) * d->of.batch_b);
}
void hone_contract_half_fill(const hone_contract *d, const void *source, void *dst) {
    const int64_t nr = d->nr, group = d->half->kernel->group, vector = d->kernel->vector, deep = padded_k(d);
    uint16_t *panel = dst, line[WIDEST];
    float slices[SLICES * WIDEST];
    memset(dst, 0, hone_contract_half_bytes(d));
    for (int64_t b = 0; b < d->of.batch_b; b++)
        for (int64_t n0 = 0; n0 < d->of.n; n0 += nr, panel += deep * nr)
            for (int64_t k0 = 0; k0 < d->of.k; k0 += SLICES) {
                const int64_t kc = d->of.k - k0 < SLICES ? d->of.k - k0 : SLICES,
                              have = d->of.n - n0 < nr ? d->of.n - n0 : nr,
                              wide = hone_round_up(have, vector);
                hone_contract_pack_b(d, hone_element(source, d->of.stored_b, hone_contract_own(d, b, false)),
                                     n0, nr, k0, kc, kc, slices, NULL);
                for (int64_t p = 0; p < kc; p++) {
                    d->half->kernel->narrow(slices + p * wide, line, have);
                    const int64_t place = d->half->place ? d->half->place[k0 + p] : k0 + p;
                    uint16_t *to = panel + place / group * group * nr + place % group;
                    for (int64_t j = 0; j < have; j++) to[j * group] = line[j];
                }
            }
}

/* ---- A, all of it at once ------------------------------------------------------------------------------ */
enum { SHORT_RUN = 8, BEFORE = 1 << 14 /* values a tile */ };
static hone_status round_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = s->data;
    const int64_t from = number * BEFORE, n = d->half->all_a - from < BEFORE ? d->half->all_a - from : BEFORE;
    (void)scratch;
    d->half->kernel->narrow((const float *)(const void *)hone_ref_at(s->ref[d->a.tensor], base) + from,
                            (uint16_t *)(void *)hone_ref_at(s->ref[d->half->rounded], base) + from, n);
    return HONE_OK;
}
hone_status hone_contract_half_before(hone_template_builder *s, const hone_cpu_call *c, hone_contract *d,
                                      uint64_t *uses) {
    const hone_tensor *t = c->instance->tensor + d->a.tensor;
    const int64_t *stride = c->stride[d->a.tensor];
    int64_t count = 1, span = 1;
    for (int k = 0; k < t->rank; k++) {
        const int64_t extent = c->param[t->dim[k]].i;
        if (stride[k] < 0 && !d->half->first_layer.lines) return HONE_OK;
        if (stride[k]) count *= extent, span += (extent - 1) * stride[k];
    }
    const bool worth = d->half->run_a <= SHORT_RUN && d->of.taps > 1 && span <= 2 * count &&
                       d->of.m * d->of.k * d->of.batch >= 2 * span;
    if (s->n_ref >= HONE_MAX_REFS || (!worth && !d->half->first_layer.lines)) return HONE_OK;
    d->half->rounded = s->n_ref++, d->half->all_a = span, d->bf16_able &= ~((uint64_t)1 << d->a.tensor);
    hone_step_template part = {
        .uses = (uint64_t)1 << d->a.tensor | (uint64_t)1 << d->half->rounded,
        .buffer = d->half->rounded,
        /* short pieces are copied as if they were not */
        .bytes = (int64_t)sizeof(uint16_t) * (span + SHORT_RUN),
        .step = {.tactic = "pack", .tile = round_tile, .data = d, .tiles = hone_ceil_div(span, BEFORE)}};
    part.step.serial = part.step.tiles == 1;
    if (d->half->first_layer.lines) hone_contract_first_layer_copy(d, &part);
    *uses |= (uint64_t)1 << d->half->rounded;
    return hone_cpu_add(s, part);
}

/* ---- a tile -------------------------------------------------------------------------------------------- */
/* n values of row m, one by one, from value k0 of K on; zeros outside the window. Images have two indices
   that may be outside. */
static void gather(const hone_contract *d, const float *a, bool half, const hone_standing *w, bool whole,
                   int64_t m, int64_t k0, int64_t n, void *line) {
    const int64_t *at = d->at_k_a + k0, row = d->at_m_a[m], last = d->a.n_bounded - 1;
    const uint16_t *h = (const uint16_t *)(const void *)a + row;
    bool in[LINE];
    for (int64_t p = 0; !whole && p < n; p++) in[p] = true;
    for (int64_t q = 0; !whole && q <= last; q++) {
        const int64_t *edge = d->at_k_a_bounded[q] + k0,
                      from = d->a.bounded[q].c + w->edge[q] + d->at_m_a_bounded[q][m];
        for (int64_t p = 0; p < n; p++) in[p] &= (uint64_t)(from + edge[p]) < (uint64_t)d->a.size[q];
    }
    if (half)
        for (int64_t p = 0; p < n; p++) ((uint16_t *)line)[p] = whole || in[p] ? h[at[p]] : 0;
    else
        for (int64_t p = 0; p < n; p++) ((float *)line)[p] = whole || in[p] ? a[row + at[p]] : 0;
}
/* Rows m0 … m0+m-1 of A as halves, zeros behind K and, up to an integer of the kernel's rows, below. They
   may be halves already. */
static void take_plain(const hone_contract *d, const float *a, bool half, const hone_standing *w, int64_t m0,
                       int64_t m, uint16_t *rows) {
    enum { FEW = 4 };
    const int64_t *at = d->at_k_a, step = row_step(d), deep = padded_k(d);
    float line[LINE];
    for (int64_t r = 0; r < m; r++, rows += step) {
        const int64_t row = d->at_m_a[m0 + r];
        const bool whole = !d->a.n_bounded || hone_contract_all_inside(d, w, m0 + r);
        const int64_t run = whole ? d->half->run_a : d->half->unit_a;
        /* a copy of some more values is one instruction; what is too much is written over */
        if (d->half->rounded && whole && run > 1) {
            const uint16_t *from = (const uint16_t *)(const void *)a + row;
            if (run > SHORT_RUN / 2)
                for (int64_t p = 0; p < d->of.k; p += run)
                    memcpy(rows + p, from + at[p], sizeof *rows * SHORT_RUN);
            else
                for (int64_t p = 0; p < d->of.k; p += run)
                    memcpy(rows + p, from + at[p], sizeof *rows * SHORT_RUN / 2);
        } else if (run < FEW)
            for (int64_t p = 0; p < d->of.k; p += LINE) {
                const int64_t n = d->of.k - p < LINE ? d->of.k - p : LINE;
                gather(d, a, half, w, whole, m0 + r, p, n, half ? (void *)(rows + p) : line);
                if (!half) d->half->kernel->narrow(line, rows + p, n);
            }
        else
            for (int64_t p = 0; p < d->of.k; p += run) {
                const void *from = hone_element(a, half, row + at[p]);
                if (!whole && !hone_contract_inside(d, w, m0 + r, p))
                    memset(rows + p, 0, sizeof *rows * (size_t)run);
                else if (half) memcpy(rows + p, from, sizeof *rows * (size_t)run);
                else d->half->kernel->narrow(from, rows + p, run);
            }
        if (deep > d->of.k) memset(rows + d->of.k, 0, sizeof *rows * (size_t)(deep - d->of.k));
    }
    for (; m % d->half->kernel->mr; m++, rows += step) memset(rows, 0, sizeof *rows * (size_t)deep);
}
/* The same as the kernel takes them. There is room for a block of its rows behind the last. */
static void take_rows(const hone_contract *d, const float *a, bool half, const hone_standing *w, int64_t m0,
                      int64_t m, uint16_t *rows) {
    const int64_t step = row_step(d), deep = padded_k(d), all = hone_round_up(m, d->half->kernel->mr);
    uint16_t *block = rows + all * step;
    if (!d->half->kernel->pack_a) take_plain(d, a, half, w, m0, m, rows);
    for (int64_t r = 0, high; d->half->kernel->pack_a && r < m; r += high) {
        high = hone_gemm_half_high(d->half->kernel->m_block, d->half->kernel->mr, all - r);
        take_plain(d, a, half, w, m0 + r, m - r < high ? m - r : high, block);
        for (int64_t k0 = 0, kc; k0 < deep; k0 += kc) { /* parts of K lie one after another */
            kc = deep - k0 < some_k(d) ? deep - k0 : some_k(d);
            d->half->kernel->pack_a(high, kc, block + k0, (ptrdiff_t)step, rows + all * k0 + r * kc);
        }
    }
}
/* Sums of rows m0 … with the panel at n0 that left f16's range, in f32. Slow, and rare. */
static void mend(const hone_contract *d, const float *a, const void *b, const hone_standing *w, int64_t m0,
                 int64_t m, int64_t n0, float *c, int64_t stride) {
    const int64_t have = d->of.n - n0 < d->nr ? d->of.n - n0 : d->nr,
                  wide = hone_round_up(have, d->kernel->vector);
    float slices[SLICES * WIDEST];
    for (int64_t i = 0; i < m; i++) {
        const float *row = a + d->at_m_a[m0 + i];
        float *to = c + i * stride;
        bool fine = true;
        for (int64_t j = 0; j < have; j++) fine &= isfinite(to[j]) != 0;
        if (fine) continue;
        memset(to, 0, sizeof *to * (size_t)have);
        for (int64_t k0 = 0; k0 < d->of.k; k0 += SLICES) {
            const int64_t kc = d->of.k - k0 < SLICES ? d->of.k - k0 : SLICES;
            hone_contract_pack_b(d, b, n0, d->nr, k0, kc, kc, slices, NULL);
            for (int64_t p = 0; p < kc; p++) {
                const float x = hone_contract_inside(d, w, m0 + i, k0 + p) ? row[d->at_k_a[k0 + p]] : 0;
                for (int64_t j = 0; j < have; j++) to[j] += x * slices[p * wide + j];
            }
        }
    }
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = s->data;
    const hone_gemm_half *kernel = d->half->kernel;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(s->ref[t], base);
    char *room = scratch;
    uint16_t *copy = scratch;
    float *c = (float *)(void *)(room + d->a_bytes);
    hone_contract_lists l = {.c = (float **)(void *)(room + d->a_bytes + d->c_bytes)};
    l.sums = l.c + d->mt, l.residual = (const float **)(l.sums + d->mt),
    l.bias_m = (float *)(l.residual + d->mt);
    void *rest = (char *)l.c + d->at_bytes;
    const int64_t nb = hone_ceil_div(d->of.n, d->nt), mb = hone_ceil_div(d->of.m, d->mt), nr = d->nr,
                  deep = padded_k(d);
    const bool down = d->of.n > d->of.m; /* tiles that share the larger operand's part follow one another */
    const int64_t n0 = (down ? number / mb % nb : number % nb) * d->nt,
                  m0 = (down ? number % mb : number / nb % mb) * d->mt;
    const int64_t n = d->of.n - n0 < d->nt ? d->of.n - n0 : d->nt,
                  m = d->of.m - m0 < d->mt ? d->of.m - m0 : d->mt;
    const hone_standing w = hone_contract_stand(d, number / nb / mb);
    hone_gemm_args whole = {.m = 0};
    hone_contract_halves(d, s->half_stored, &whole);
    const bool half = whole.a_bf16 || d->half->rounded;
    const float *a =
        hone_element(at[d->half->rounded ? d->half->rounded : d->a.tensor], half, d->a.at.c + w.a);
    /* rows that are halves and lie as the kernel wants them are left there; the last ones, too few for it,
       are not */
    const int64_t window = d->half->implicit_gemm.lines, stem = d->half->first_layer.lines,
                  there = half && d->half->row_stride_a && !kernel->pack_a ? m / kernel->mr * kernel->mr : 0,
                  others = hone_round_up(m - there, kernel->mr);
    const uint16_t *lying = hone_element(a, true, d->at_m_a[m0]);
    if (window) hone_implicit_gemm_take(d, a, half, m0, copy);
    else if (!stem) take_rows(d, a, half, &w, m0 + there, m - there, copy);
    if (d->direct) hone_contract_epilogue_args(d, at, 0, &w, m0, m, &whole, &l);
    /* how sums of a panel end; an activation is computed on floats, where the sums are, and they are rounded
       later */
    hone_gemm_args ends = whole;
    const bool later = whole.c_bf16 && d->epilogue && d->epilogue->activate;
    ends.more = ends.epilogue = true, ends.m = (int)m, ends.sums = (const float *const *)l.sums;
    ends.c = later ? l.sums : l.c, ends.c_bf16 &= !later;
    const int64_t stride = d->direct ? nr : hone_round_up(n, nr);
    const int64_t run = window ? d->half->implicit_gemm.run
                        : stem ? d->half->first_layer.run
                               : m,
                  pitch = window ? d->half->implicit_gemm.pitch
                          : stem ? d->half->first_layer.tall
                                 : m;
    for (int64_t y = 0, i = 0; d->direct && i < m; y++) /* results are so many of so many rows of sums */
        for (int64_t x = 0; x < run && i < m; x++) l.sums[i++] = c + (y * pitch + x) * nr;
    if (kernel->begin)
        kernel->begin(stem || window ? kernel->mr : m, stem ? d->half->first_layer.wide : d->of.k);
    for (int64_t j = 0; j < n; j += nr) {
        const uint16_t *panel =
            (const uint16_t *)at[d->packed_b] + (w.own_b * hone_round_up(d->of.n, nr) + n0 + j) * deep;
        float *to = d->direct ? c : c + j, *more = to + there * stride;
        bool fine = true;
        ends.n = (int)(n - j < nr ? n - j : nr), ends.c_from = later ? 0 : n0 + j,
        ends.bias_n = whole.bias_n ? whole.bias_n + n0 + j : NULL;
        const bool finished =
            d->direct && kernel->run_epilogue && ends.n == nr && !ends.bias_m; /* by the kernel */
        /* all of K, whose pixels come from L1: to go on with sums takes more than to bring the panel for each
           block of rows */
        if (window)
            kernel->window(d->half->implicit_gemm.rows, d->of.taps * d->half->implicit_gemm.channel_blocks,
                           d->half->implicit_gemm.at, d->half->implicit_gemm.channel_block, copy,
                           d->half->implicit_gemm.channel_block, panel, to, stride, false);
        for (int64_t y = 0; stem && y < m / d->half->first_layer.run; y++)
            kernel->window(d->half->first_layer.tall, d->half->first_layer.taps, d->half->first_layer.at,
                           d->half->first_layer.wide,
                           (const uint16_t *)(const void *)hone_ref_at(s->ref[d->half->rounded], base) +
                               (m0 / d->half->first_layer.run + y) * d->half->first_layer.down *
                                   d->half->first_layer.pitch,
                           (ptrdiff_t)(d->half->first_layer.right * d->half->first_layer.channels), panel,
                           to + y * d->half->first_layer.tall * stride, stride, false);
        for (int64_t k0 = 0, kc; !window && !stem && k0 < deep; k0 += kc) {
            kc = deep - k0 < some_k(d) ? deep - k0 : some_k(d);
            fine = !there || kernel->run(there, kc, lying + k0, d->half->row_stride_a, panel + k0 * nr, to,
                                         stride, k0 > 0);
            const uint16_t *rows = copy + (kernel->pack_a ? others : 1) * k0;
            if (k0 + kc == deep && finished)
                kernel->run_epilogue(others, kc, rows, panel + k0 * nr, to, stride, k0 > 0, &ends);
            else if (others)
                fine &= kernel->run(others, kc, rows, row_step(d), panel + k0 * nr, more, stride, k0 > 0);
        }
        if (!fine)
            mend(d, (const float *)at[d->a.tensor] + d->a.at.c + w.a,
                 hone_element(at[d->b.tensor], d->of.stored_b, d->b.at.c + w.b), &w, m0, m, n0 + j, to,
                 stride);
        if (!d->direct) continue;
        /* the kernel of depthwise convolutions, which has no taps to add */
        if (!finished) d->half->epilogue->run(&ends);
        hone_contract_activate(d, &ends);
        for (int64_t i = 0; later && i < m; i++)
            kernel->narrow(l.sums[i], (uint16_t *)(void *)l.c[i] + n0 + j, ends.n);
    }
    if (kernel->end) kernel->end();
    return d->direct ? HONE_OK : hone_contract_epilogue(d, at, 0, &w, m0, m, n0, n, c, stride, NULL, rest);
}
void hone_contract_half_step(hone_contract *d, hone_step *s) {
    const bool window = d->half->implicit_gemm.lines;
    const int64_t tall = window                       ? d->half->implicit_gemm.rows
                         : d->half->first_layer.lines ? d->half->first_layer.lines * d->half->first_layer.tall
                                                      : hone_round_up(d->mt, d->half->kernel->mr);
    d->a_bytes = hone_round_up64(
        sizeof(uint16_t) *
        (size_t)(window ? d->half->implicit_gemm.pixels * d->half->implicit_gemm.channel_blocks *
                              d->half->implicit_gemm.channel_block
                 : d->half->first_layer.lines ? 0
                                              : (tall + d->half->kernel->m_block) * row_step(d)));
    d->c_bytes = hone_round_up64(sizeof(float) * (size_t)(tall * (d->direct ? d->nr : d->nt)));
    d->at_bytes = hone_round_up64(sizeof(float *) * (size_t)(4 * d->mt));
    s->tactic = d->half->kernel->dtype == HONE_DTYPE_F16 ? "contract f16" : "contract bf16", s->flush = true,
    s->tile = tile;
    s->tiles = d->of.batch * hone_ceil_div(d->of.m, d->mt) * hone_ceil_div(d->of.n, d->nt);
    s->serial = s->tiles == 1, s->half_able = d->bf16_able;
    s->scratch_bytes = d->a_bytes + d->c_bytes + d->at_bytes +
                       (d->epilogue_code ? hone_tilecode_scratch(d->epilogue_code) : 0);
}
