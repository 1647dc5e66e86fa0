/* SPDX-License-Identifier: Apache-2.0
   contract_half: matrix multiplications whose factors are rounded to bf16 or f16, where the user asked for it and the columns are constant weights. Sums (but for
   the short ones of some f16 kernels, kernels/gemm_half.h), and all that follows them, stay f32.

   Weights are rounded once, when they are packed (half the memory); rows of A once a tile, as they are copied from wherever they lie: a tile's rows are all of
   K, so a window that lies in several pieces is a plain row here. A panel's sums grow in scratch, KC values of K at a time, so that this much of the
   panel stays in L1 while all rows pass; then the f32 kernel, with nothing left to multiply, adds them to bias and residual, clamps and stores.

   An f16 ends at 65504. Where a factor or a short sum is beyond it, the sums are not finite, the kernel says so, and these rows' sums with this panel are computed
   again in f32 from unrounded factors: what is finite in f32 is finite here. Each row and panel is judged by itself, so no value depends on how work was cut. */
#include <math.h>
#include <string.h>

#include "device/cpu/contract.h"

enum { KC = 512, LIGHT_ROWS = 128, SLICES = 64, WIDEST = 64 /* panels to be rounded: so much of K at a time, and the most columns */ };
static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by * by; }
static int64_t padded_k(const hone_contract *d) { return up(d->k, d->half->deep); }
static int64_t row_step(const hone_contract *d) { return padded_k(d) + 32; } /* rows a power of two apart would meet in the cache */

/* How rows of A lie: values in a row wherever K is, and those that are inside a window or outside it together. */
static void measure_rows(hone_contract *d) {
    const int64_t *at = d->at_k_a;
    int64_t run = 1, unit = 1;
    while (run < d->k && at[run] == run) run++;
    while (d->k % run) run--;
    for (; unit < run; unit++) {
        bool same = true;
        for (int q = 0; q < d->a.n_bounded; q++) same &= d->at_k_a_bounded[q][unit] == d->at_k_a_bounded[q][0];
        if (!same) break;
    }
    while (run % unit) unit--;
    for (int64_t p = 0; p < d->k; p += run) /* the first is as all others, or nothing is known of any */
        for (int64_t q = 0; q < run; q++)
            if (at[p + q] != at[p] + q) {
                d->run_a = d->unit_a = 1;
                return;
            }
    d->run_a = run, d->unit_a = unit;
}
/* Nanoseconds until the last tile is done, about: rows are rounded once a tile, panels read once a tile, and what is cut more often is more evenly shared. */
enum { TILE_NS = 300, MEET_NS = 2000, MACS_PER_NS = 4 /* a lane of f32 */, BYTES_PER_NS = 24, ENDS_PER_NS = 4 };
static double estimate(const hone_contract *d, int64_t mt, int64_t nt, double tiles, int threads) {
    const double rows = (double)up(mt < d->m ? mt : d->m, d->half->rows), columns = (double)nt, k = (double)padded_k(d);
    const double rounding = rows * k / (d->run_a < 16 ? 3 : 12),
                 products = rows * columns * k / (d->half->times * d->kernel->vector * MACS_PER_NS);
    const double bytes = columns * k * (double)sizeof(uint16_t) / BYTES_PER_NS;
    const double ns = TILE_NS + rounding + (products > bytes ? products : bytes) + rows * columns / ENDS_PER_NS;
    return tiles == 1 ? ns : MEET_NS + (ceil(tiles / threads) + 0.2) * ns; /* a little for those who wait at the end */
}
bool hone_contract_half_choose(hone_contract *d, const hone_how *how) {
    static const int8_t parts[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32, 48, 64};
    const hone_gemm_half *kernel = hone_gemm_half_best(how->precision);
    if (!kernel || !d->packed_b || d->each || d->bytes || d->plane) return false;
    const int64_t waste = kernel->times > 2 ? 4 : 2; /* columns that are computed for one that is wanted: more, and f32 is faster */
    if (up(d->n, kernel->nr) > waste * d->n || d->k < 8) return false;
    d->half = kernel, d->packed_a = 0, d->nr = kernel->nr, d->mr = kernel->rows, d->kc = d->k;
    measure_rows(d);
    const int64_t nr = d->nr, deep = padded_k(d), step = 32;
    const bool light = deep * up(d->n, nr) <= 1 << 19; /* all weights stay in L2 beside the rows: to read them once more is cheap */
    int64_t most = 393216 / deep / step * step;        /* three quarters of a megabyte of A */
    if (most < step) most = step;
    if (light && most > LIGHT_ROWS) most = LIGHT_ROWS; /* then sums of a panel stay in L1 until they are finished */
    const int64_t least = (d->m + most - 1) / most;
    double best = INFINITY;
    for (size_t i = 0; i < sizeof parts; i++)
        for (size_t j = 0; j < sizeof parts; j++) {
            int64_t mt = (d->m + least * parts[i] - 1) / (least * parts[i]), nt = up((d->n + parts[j] - 1) / parts[j], nr);
            mt = up(mt, mt > step ? step : kernel->rows);
            while (!d->direct && mt * nt > 131072 && nt > 4 * nr) nt = up(nt / 2, nr); /* sums wait in scratch */
            const double tiles = (double)(d->batch * ((d->m + mt - 1) / mt) * ((d->n + nt - 1) / nt)),
                         ns = estimate(d, mt, nt, tiles, how->threads);
            if (ns < best) best = ns, d->mt = mt, d->nt = nt;
            if (how->threads == 1) return true; /* nothing to share */
            if (tiles >= 8 * how->threads) break;
        }
    return true;
}

/* ---- weights ------------------------------------------------------------------------------------------------------------------------ */
size_t hone_contract_half_bytes(const hone_contract *d) { return sizeof(uint16_t) * (size_t)(padded_k(d) * up(d->n, d->nr) * d->batch_b); }
void hone_contract_half_fill(const hone_contract *d, const float *source, void *dst) {
    const int64_t nr = d->nr, group = d->half->group, vector = d->kernel->vector, deep = padded_k(d);
    uint16_t *panel = dst, line[WIDEST];
    float slices[SLICES * WIDEST];
    memset(dst, 0, hone_contract_half_bytes(d));
    for (int64_t b = 0; b < d->batch_b; b++)
        for (int64_t n0 = 0; n0 < d->n; n0 += nr, panel += deep * nr)
            for (int64_t k0 = 0; k0 < d->k; k0 += SLICES) {
                const int64_t kc = d->k - k0 < SLICES ? d->k - k0 : SLICES, have = d->n - n0 < nr ? d->n - n0 : nr, wide = up(have, vector);
                hone_contract_pack_b(d, source + hone_contract_own(d, b, false), n0, nr, k0, kc, kc, slices, NULL);
                for (int64_t p = 0; p < kc; p++) {
                    d->half->narrow(slices + p * wide, line, have);
                    uint16_t *to = panel + (k0 + p) / group * group * nr + (k0 + p) % group;
                    for (int64_t j = 0; j < have; j++) to[j * group] = line[j];
                }
            }
}

/* ---- a tile ------------------------------------------------------------------------------------------------------------------------- */
/* Rows m0 … m0+m-1 of A as halves, zeros behind K and, up to a whole number of the kernel's rows, below. */
static void narrow_rows(const hone_contract *d, const float *a, const hone_standing *w, int64_t m0, int64_t m, uint16_t *rows) {
    enum { FEW = 4, LINE = 256 };
    const int64_t *at = d->at_k_a, step = row_step(d), deep = padded_k(d);
    float line[LINE];
    for (int64_t r = 0; r < m; r++, rows += step) {
        const float *row = a + d->at_m_a[m0 + r];
        const bool whole = hone_contract_all_inside(d, w, m0 + r);
        const int64_t run = whole ? d->run_a : d->unit_a;
        if (run < FEW)
            for (int64_t p = 0; p < d->k; p += LINE) {
                const int64_t n = d->k - p < LINE ? d->k - p : LINE;
                for (int64_t q = 0; q < n; q++) line[q] = whole || hone_contract_inside(d, w, m0 + r, p + q) ? row[at[p + q]] : 0;
                d->half->narrow(line, rows + p, n);
            }
        else
            for (int64_t p = 0; p < d->k; p += run) {
                if (whole || hone_contract_inside(d, w, m0 + r, p)) d->half->narrow(row + at[p], rows + p, run);
                else memset(rows + p, 0, sizeof *rows * (size_t)run);
            }
        memset(rows + d->k, 0, sizeof *rows * (size_t)(deep - d->k));
    }
    for (; m % d->half->rows; m++, rows += step) memset(rows, 0, sizeof *rows * (size_t)deep);
}
/* Sums of rows m0 … with the panel at n0 that left f16's range, in f32. Slow, and rare. */
static void mend(const hone_contract *d, const float *a, const float *b, const hone_standing *w, int64_t m0, int64_t m, int64_t n0,
                 float *c, int64_t stride) {
    const int64_t have = d->n - n0 < d->nr ? d->n - n0 : d->nr, wide = up(have, d->kernel->vector);
    float slices[SLICES * WIDEST];
    for (int64_t i = 0; i < m; i++) {
        const float *row = a + d->at_m_a[m0 + i];
        float *to = c + i * stride;
        bool fine = true;
        for (int64_t j = 0; j < have; j++) fine &= isfinite(to[j]) != 0;
        if (fine) continue;
        memset(to, 0, sizeof *to * (size_t)have);
        for (int64_t k0 = 0; k0 < d->k; k0 += SLICES) {
            const int64_t kc = d->k - k0 < SLICES ? d->k - k0 : SLICES;
            hone_contract_pack_b(d, b, n0, d->nr, k0, kc, kc, slices, NULL);
            for (int64_t p = 0; p < kc; p++) {
                const float x = hone_contract_inside(d, w, m0 + i, k0 + p) ? row[d->at_k_a[k0 + p]] : 0;
                for (int64_t j = 0; j < have; j++) to[j] += x * slices[p * wide + j];
            }
        }
    }
}
/* The finished sums of a panel, n columns from n0, through the ends that the f32 kernel knows: it has nothing to multiply. */
static void end_panel(const hone_contract *d, const hone_gemm_part *whole, const hone_contract_lists *l, int64_t m, int64_t n0, int64_t n) {
    const int64_t vector = d->kernel->vector, widest = d->kernel->widths * vector;
    for (int64_t j = 0; j < n; j += widest) {
        const int64_t wide = n - j < widest ? n - j : widest;
        const int v = (int)((wide + vector - 1) / vector), mr = d->kernel->rows[v - 1];
        hone_gemm_part part = *whole;
        part.more = part.finish = true, part.n = (int)wide, part.c_from = n0 + j, part.sums_from = j;
        if (part.bias_n) part.bias_n += n0 + j;
        for (int64_t i = 0; i < m; i += mr) {
            part.m = m - i < mr ? (int)(m - i) : mr, part.c = l->c + i, part.sums = (const float *const *)l->sums + i;
            part.bias_m = whole->bias_m ? whole->bias_m + i : NULL, part.residual = whole->residual ? whole->residual + i : NULL;
            d->kernel->run[v - 1](&part);
            hone_contract_activate(d, &part);
        }
    }
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = s->data;
    const hone_gemm_half *kernel = d->half;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(s->ref[t], base);
    char *room = scratch;
    uint16_t *rows = scratch;
    float *c = (float *)(void *)(room + d->a_bytes);
    hone_contract_lists l = {.c = (float **)(void *)(room + d->a_bytes + d->c_bytes)};
    l.sums = l.c + d->mt, l.residual = (const float **)(l.sums + d->mt), l.bias_m = (float *)(l.residual + d->mt);
    void *rest = (char *)l.c + d->at_bytes;
    const int64_t nb = (d->n + d->nt - 1) / d->nt, mb = (d->m + d->mt - 1) / d->mt, nr = d->nr, deep = padded_k(d);
    const bool down = d->n > d->m; /* tiles that share the larger operand's part follow one another */
    const int64_t n0 = (down ? number / mb % nb : number % nb) * d->nt, m0 = (down ? number % mb : number / nb % mb) * d->mt;
    const int64_t n = d->n - n0 < d->nt ? d->n - n0 : d->nt, m = d->m - m0 < d->mt ? d->m - m0 : d->mt, whole_m = up(m, kernel->rows);
    const hone_standing w = hone_contract_stand(d, number / nb / mb);
    const float *a = (const float *)at[d->a.tensor] + d->a.at.c + w.a, *b = (const float *)at[d->b.tensor] + d->b.at.c + w.b;
    narrow_rows(d, a, &w, m0, m, rows);
    hone_gemm_part whole = {.m = 0};
    if (d->direct) hone_contract_ends(d, at, 0, &w, m0, m, &whole, &l);
    const int64_t stride = d->direct ? nr : up(n, nr);
    for (int64_t i = 0; d->direct && i < m; i++) l.sums[i] = c + i * nr;
    if (kernel->begin) kernel->begin();
    for (int64_t j = 0; j < n; j += nr) {
        const uint16_t *panel = (const uint16_t *)at[d->packed_b] + (w.own_b * up(d->n, nr) + n0 + j) * deep;
        float *to = d->direct ? c : c + j;
        bool fine = true;
        for (int64_t k0 = 0; k0 < deep; k0 += KC)
            fine = kernel->run(whole_m, deep - k0 < KC ? deep - k0 : KC, rows + k0, row_step(d), panel + k0 * nr, to, stride, k0 > 0);
        if (!fine) mend(d, a, b, &w, m0, m, n0 + j, to, stride);
        if (d->direct) end_panel(d, &whole, &l, m, n0 + j, n - j < nr ? n - j : nr);
    }
    if (kernel->end) kernel->end();
    return d->direct ? HONE_OK : hone_contract_finish(d, at, 0, &w, m0, m, n0, n, c, stride, NULL, rest);
}
static size_t round64(size_t n) { return (n + 63) / 64 * 64; }
void hone_contract_half_step(hone_contract *d, hone_step *s) {
    const int64_t tall = up(d->mt, d->half->rows);
    d->a_bytes = round64(sizeof(uint16_t) * (size_t)(tall * row_step(d)));
    d->c_bytes = round64(sizeof(float) * (size_t)(tall * (d->direct ? d->nr : d->nt)));
    d->at_bytes = round64(sizeof(float *) * (size_t)(4 * d->mt));
    s->tactic = d->half->dtype == HONE_DTYPE_F16 ? "contract f16" : "contract bf16", s->tile = tile;
    s->tiles = d->batch * ((d->m + d->mt - 1) / d->mt) * ((d->n + d->nt - 1) / d->nt);
    s->serial = s->tiles == 1;
    s->scratch_bytes = d->a_bytes + d->c_bytes + d->at_bytes + (d->epilogue ? hone_tilecode_scratch(d->epilogue) : 0);
}
