/* SPDX-License-Identifier: Apache-2.0
   direct_conv: convolutions of few channels. A vector of channels is mostly empty there, so pixels that
   follow on are the lanes, and channels the rows:

        c[channel][pixel]  =  sum over k of  w[channel][k] * x[pixel + at[k]]

   A tile brings its part of the image into planes, one a channel, zeros around it; along x a stride of s
   makes s planes of every s-th pixel. So whatever place of the window k is, its pixels follow on, and the
   matrix kernel takes them as slices of B where they lie: nothing is copied for each place, and nothing is
   asked whether it is inside. Rows of an image are computed by themselves; the last vector of each is stored
   in part. Where the result lies channels last, finished rows are transposed on their way out. */
#include "device/cpu/direct_conv.h"
#include "base/columns.h"
#include "kernels/direct_conv.h"
#include "base/round.h"

#include <string.h>

enum {
    MOST_CHANNELS = 64,
    BAND = 1 << 16 /* floats of a tile's planes, about */,
    SPARE = 16 /* read past a line, never used: a vector */
};
/* One way of the image: coordinate r = step * pixel + ahead * place of the window, 0 <= edge + r < size
   where it is inside. */
typedef struct {
    int64_t pitch, step, ahead, edge, size, reach; /* reach: of a window */
    int pixel, place, bound;                       /* slots, and which bound it has; or -1 */
} way;
typedef struct hone_direct_conv {
    /* results are transposed on their way out; pixels on their way in, since planes' lie side by side */
    bool transpose, beside;
    way y, x;
    int64_t channels, rows, run, many; /* many: planes, */
    /* where each is in the image; where each slice of K is in the planes of a tile */
    const int64_t *from, *at;
    /* rows whose pixels are taken as one stretch, with what lies between them */
    int64_t tile_rows, tile_run, together;
    int64_t phase, line, plane; /* floats */
    int vectors;
    const hone_direct_conv_f32 *slices; /* the kernel, or NULL: gemm's */
    int64_t high;                       /* rows that it takes at once */
    int64_t *own_at;                    /* at, while it is made */
    const int64_t *k_plane, *k_y, *k_x; /* of each value of K */
} hone_direct_conv;

/* ---- finding it ---------------------------------------------------------------------------------------- */
/* The window's index along a way: where bounds say it, the other one in them; else the one whose places
   overlap with those of the pixel. */
static bool find_way(const hone_contract *d, const hone_affine_load *x, int pixel, const way *other, way *w) {
    const hone_slots_of *s = &d->of.slots;
    int bound = -1, place = -1;
    for (int q = 0; q < x->n_bounded; q++) {
        bool other_way = (other && other->pixel >= 0 && x->bounded[q].k[other->pixel]) ||
                         (other && other->place >= 0 && x->bounded[q].k[other->place]);
        bool this_way = pixel >= 0 ? x->bounded[q].k[pixel] != 0 : !other_way;
        if (this_way && (other_way || bound >= 0)) return false;
        if (this_way) bound = q;
    }
    *w = (way){.pitch = 1,
               .step = 1,
               .ahead = 1,
               .size = INT64_MAX / 4,
               .reach = 1,
               .pixel = pixel,
               .place = -1,
               .bound = -1};
    const hone_affine *f = bound < 0 ? NULL : x->bounded + bound;
    for (int k = 0; k < s->n; k++) {
        if (s->extent[k] == 1 || k == pixel) continue;
        if (f && !f->k[k]) continue;
        if (k < s->n_domain || (other && k == other->place)) {
            if (f) return false;
            continue;
        }
        if (!f) {
            if (pixel < 0) continue;
            const int64_t own = x->at.k[pixel], its = x->at.k[k];
            if (own <= 0 || its <= 0 || (own % its && its % own) ||
                its * (s->extent[k] - 1) >= own * s->extent[pixel] || own >= its * s->extent[k] ||
                (place >= 0 && its < x->at.k[place]))
                continue;
        } else if (place >= 0) return false;
        place = k;
    }
    const int one = pixel >= 0 ? pixel : place;
    if (one < 0) return true; /* no such way */
    w->place = place, w->bound = bound;
    if (f) {
        if (f->k[one] <= 0 || x->at.k[one] % f->k[one]) return false;
        w->pitch = x->at.k[one] / f->k[one], w->edge = f->c, w->size = x->size[bound];
    } else {
        w->pitch = x->at.k[one];
        if (place >= 0 && x->at.k[place] < w->pitch) w->pitch = x->at.k[place];
    }
    if (w->pitch <= 0) return false;
    if (pixel >= 0) w->step = x->at.k[pixel] / w->pitch;
    if (place >= 0) w->ahead = x->at.k[place] / w->pitch, w->reach = w->ahead * (s->extent[place] - 1) + 1;
    for (int k = 0; f && k < s->n; k++) /* addresses move as coordinates do */
        if (f->k[k] && s->extent[k] > 1 && x->at.k[k] != f->k[k] * w->pitch) return false;
    return w->step > 0 && w->ahead > 0 && w->step <= 16;
}
hone_status hone_direct_conv_find(hone_template_builder *m, hone_contract *d, const int *pixel, int n,
                                  bool transpose) {
    const hone_slots_of *s = &d->of.slots;
    const hone_affine_load *x = transpose ? &d->a : &d->b, *weights = transpose ? &d->b : &d->a;
    const int64_t channels = transpose ? d->of.n : d->of.m;
    int own[2] = {-1, -1}, n_own = 0, order[HONE_MAX_SLOTS], rest[HONE_MAX_SLOTS], n_rest = 0;
    for (int k = n - 1; k >= 0; k--)
        if (s->extent[pixel[k]] > 1) {
            if (n_own == 2) return HONE_OK;
            own[n_own++] = pixel[k];
        }
    if (!n_own || weights->n_bounded || channels > MOST_CHANNELS || d->of.k > HONE_CONTRACT_KC ||
        d->of.k < 8 || s->over >= 0)
        return HONE_OK;
    for (int k = 0; transpose && k < d->of.n_batch; k++)
        for (int q = 0; q < x->n_bounded; q++)
            if (d->by[k].edge[q]) return HONE_OK;
    hone_direct_conv g = {.transpose = transpose,
                          .channels = channels,
                          .slices = channels > HONE_GEMM_SMALL_M ? hone_direct_conv_f32_best() : NULL};
    const int64_t blocks = hone_ceil_div(channels, HONE_DIRECT_CONV_ROWS);
    g.high = hone_ceil_div(channels, blocks);
    if (!find_way(d, x, own[0], NULL, &g.x) || !find_way(d, x, own[1], &g.x, &g.y)) return HONE_OK;
    if (g.x.place < 0 && g.y.place < 0) return HONE_OK; /* no window */
    g.run = s->extent[own[0]], g.rows = own[1] < 0 ? 1 : s->extent[own[1]], g.many = 1;
    const int64_t vector = d->kernel->vector;
    if (g.run * 4 < hone_round_up(g.run, vector) * 3)
        return HONE_OK; /* much of the last vector would be empty */
    int nk = s->n - s->n_domain;
    int64_t word = d->of.k_order;
    for (int k = nk - 1; k >= 0; k--) order[k] = (int)(word % HONE_MAX_SLOTS), word /= HONE_MAX_SLOTS;
    hone_affine one_plane = {0}, one_y = {0}, one_x = {0};
    for (int k = 0; k < nk; k++) {
        const int q = order[k];
        if (q == g.x.place) one_x.k[q] = g.x.ahead;
        else if (q == g.y.place) one_y.k[q] = g.y.ahead;
        else if (s->extent[q] > 1) rest[n_rest++] = q;
    }
    for (int k = n_rest - 1; k >= 0; k--) one_plane.k[rest[k]] = g.many, g.many *= s->extent[rest[k]];
    /* the panel whose tile has most sums: they are what hides the latency of a multiply-add */
    int64_t most = 0;
    for (int v = 1; v <= d->kernel->packed_widths; v++) {
        const int64_t rows = d->kernel->mr[v - 1],
                      high = hone_ceil_div(channels, hone_ceil_div(channels, rows));
        if (high * v > most) most = high * v, g.vectors = v;
    }
    if ((g.x.bound >= 0) + (g.y.bound >= 0) != x->n_bounded) return HONE_OK; /* there are others */
    const double least =
        (double)g.many * (double)g.y.reach * (double)(g.x.step * g.vectors * vector + g.x.reach);
    if (least > 8.0 * BAND) return HONE_OK; /* windows that reach far */
    hone_arena *a = m->arena;
    hone_direct_conv *out = HONE_NEW(a, hone_direct_conv);
    g.from = hone_affine_table(a, s, rest, n_rest, &x->at),
    g.k_plane = hone_affine_table(a, s, order, nk, &one_plane),
    g.k_y = hone_affine_table(a, s, order, nk, &one_y), g.k_x = hone_affine_table(a, s, order, nk, &one_x);
    g.own_at = hone_arena_raw(a, sizeof *g.own_at * (size_t)d->of.k);
    if (!out || !g.from || !g.k_plane || !g.k_y || !g.k_x || !g.own_at) return hone_steps_no_memory();
    g.at = g.own_at, g.beside = g.many > 1;
    for (int64_t k = 0; k < g.many; k++) g.beside &= g.from[k] == k;
    *out = g, d->direct_conv = out;
    return HONE_OK;
}
/* Multiply-adds and loads that a place of the window costs 8 pixels, here and where pixels are rows;
   transposing costs too, and NEON would pack rows for one panel. */
bool hone_direct_conv_pays(const hone_contract *d) {
    const hone_direct_conv *g = d->direct_conv;
    const hone_cpu_epilogue *s = d->epilogue;
    if (!g || !d->direct ||
        (s && (s->residual.tensor >= 0 || (s->then && s->later.tensor >= 0) ||
               !(s->bias_n || (s->bias.tensor < 0 && s->bias.k == 0)))))
        return false;
    const int64_t *at = s ? s->out.at_m : d->at_m_out;
    for (int64_t i = 1; i < g->run; i++)
        if (at[i] - at[0] != i * (at[1] - at[0])) return false;
    const double vector = (double)d->kernel->vector,
                 v = (double)hone_round_up(d->of.n, d->kernel->vector) / vector, n = (double)d->of.n;
    const double rows = 8 * v / 2 > (8 + v + 2) / 2 ? 8 * v / 2 : (8 + v + 2) / 2;
    const double here =
        8 * n / 2 / vector * ((double)hone_round_up(g->run, d->kernel->vector) / (double)g->run) +
        4 * n / (double)d->of.k;
    /* Vectors multiplied, or about as long, of a pixel: timed on a Neoverse-V1. Rows are transposed, which
       takes longer where pieces are short. */
    if (g->slices && d->of.n > 8) {
        const double k = (double)d->of.k,
                     waste = (double)hone_round_up(g->run, d->kernel->vector) / (double)g->run;
        const double brought = (double)(g->many * g->x.step * g->y.step);
        return 1.05 * k * n / vector * waste + 1.5 * n + 0.75 * brought <
               0.97 * k * (v + (d->of.piece >= 16 ? 1 : 2));
    }
    return here < rows || (d->kernel->pack_a && d->of.n <= 8);
}
static void lay_out(hone_direct_conv *g, int64_t k) {
    g->phase = (g->x.step * (g->tile_run - 1) + g->x.reach + g->x.step - 1) / g->x.step,
    g->line = g->x.step * g->phase;
    g->plane = hone_round_up((g->y.step * (g->tile_rows - 1) + g->y.reach) * g->line + SPARE, 16);
    if (g->plane / 16 % 8 == 0) g->plane += 48; /* planes a power of two apart would meet in the cache */
    for (int64_t p = 0; p < k; p++)
        g->own_at[p] = g->k_plane[p] * g->plane + g->k_y[p] * g->line + g->k_x[p] % g->x.step * g->phase +
                       g->k_x[p] / g->x.step;
}
/* Rows shorter than a panel keep few sums, which waits for multiply-adds and loads; several in one stretch
   cost what lies between them. Bits of few channels depend on the panel, so they stay row by row. */
static int64_t join_rows(const hone_contract *d, const hone_direct_conv *g) {
    const int64_t vector = d->kernel->vector, nr = g->vectors * vector,
                  short_row = hone_round_up(g->run, vector) / vector;
    if (!g->transpose || g->x.step > 1 || g->y.step > 1 || g->channels <= HONE_GEMM_SMALL_M ||
        g->tile_run < g->run || g->run >= nr)
        return 1;
    int64_t many = 1 + (4 * nr - g->run) / g->line;
    if (many > g->tile_rows) many = g->tile_rows;
    many = hone_ceil_div(g->tile_rows, hone_ceil_div(g->tile_rows, many));
    const double m = (double)(g->channels < d->kernel->mr[0] ? g->channels : d->kernel->mr[0]),
                 v = (double)short_row;
    const double apart = m > (m + 2 * v + 1) / v ? m : (m + 2 * v + 1) / v;
    return (double)(hone_round_up((many - 1) * g->line + g->run, vector) / vector) * m <=
                   (double)(many * short_row) * apart
               ? many
               : 1;
}
void hone_direct_conv_cut(const hone_contract *d, int threads) {
    hone_direct_conv *g = d->direct_conv;
    const int64_t nr = g->vectors * d->kernel->vector;
    const double work = (double)(g->rows * g->run * g->channels) * (double)d->of.k;
    g->tile_rows = g->rows, g->tile_run = g->run;
    for (;;) {
        lay_out(g, d->of.k);
        const int64_t tiles =
            d->of.batch * hone_ceil_div(g->rows, g->tile_rows) * hone_ceil_div(g->run, g->tile_run);
        const bool large = g->plane * g->many > BAND, few = threads > 1 && work > 1e6 && tiles < 2 * threads;
        if (!large && !few) break;
        /* rows first; they share what a window reaches over */
        if (g->tile_rows > 1 && (g->tile_rows > g->y.reach || g->tile_run <= nr))
            g->tile_rows = (g->tile_rows + 1) / 2;
        else if (g->tile_run > nr) g->tile_run = hone_round_up(g->tile_run / 2, nr);
        else break;
    }
    g->together = join_rows(d, g);
}
/* Rows in blocks of `high`, the last of them perhaps lower; each value of K of a block is an integer of
   vectors. */
static int64_t block_rows(const hone_direct_conv *g, int64_t first) {
    return HONE_GEMM_PACKED_M(g->channels - first < g->high ? g->channels - first : g->high);
}
int64_t hone_direct_conv_rows(const hone_contract *d) {
    const hone_direct_conv *g = d->direct_conv;
    int64_t all = 0;
    for (int64_t i = 0; i < g->channels; i += g->high) all += block_rows(g, i);
    return g->slices ? all : g->channels;
}
void hone_direct_conv_fill(const hone_contract *d, bool a, const void *source, float *to) {
    const hone_direct_conv *g = d->direct_conv;
    memset(to, 0,
           sizeof *to * (size_t)((a ? d->of.batch_a : d->of.batch_b) * hone_direct_conv_rows(d) * d->of.k));
    for (int64_t b = 0; b < (a ? d->of.batch_a : d->of.batch_b);
         b++, to += hone_direct_conv_rows(d) * d->of.k)
        for (int64_t i = 0; i < g->channels; i++) {
            const int64_t row =
                hone_contract_own(d, b, a) +
                (a ? d->at_m_a[i] : d->at_row_b[i / d->of.run] + i % d->of.run * d->of.run_step);
            const int64_t *at = a ? d->at_k_a : d->at_k_b, first = g->slices ? i / g->high * g->high : i,
                          wide = g->slices ? block_rows(g, first) : 1;
            float *own =
                to + (g->slices ? i / g->high * HONE_GEMM_PACKED_M(g->high) : i) * d->of.k + i - first;
            for (int64_t p = 0; p < d->of.k; p++)
                own[p * wide] =
                    hone_contract_widened(a ? d->of.stored_a : d->of.stored_b, source, row + at[p]);
        }
}

/* ---- a tile -------------------------------------------------------------------------------------------- */
/* n pixels, `step` apart, of each plane's line; where planes' pixels lie side by side they are transposed. */
static void bring_pixels(const hone_direct_conv *g, const float *x, int64_t step, int64_t n, float *to) {
    if (g->beside) {
        hone_columns(x, step, n, g->many, to, g->plane);
        return;
    }
    for (int64_t c = 0; c < g->many; c++, to += g->plane) {
        const float *from = x + g->from[c];
        if (step == 1) memcpy(to, from, sizeof *to * (size_t)n);
        else if (step == 2) /* a constant, which a compiler makes vectors of */
            for (int64_t i = 0; i < n; i++) to[i] = from[2 * i];
        else
            for (int64_t i = 0; i < n; i++) to[i] = from[i * step];
    }
}
static void bring(const hone_direct_conv *g, const float *x, int64_t y0, int64_t rows, int64_t x0,
                  int64_t run, float *to) {
    const int64_t lines = g->y.step * (rows - 1) + g->y.reach, wide = g->x.step * (run - 1) + g->x.reach;
    /* what is read past a line is zeros too: some of the numbers that old ones may be take a hundred times as
       long to multiply */
    memset(to, 0, sizeof *to * (size_t)(g->many * g->plane));
    const int64_t left = g->x.edge + g->x.step * x0; /* coordinate r is inside where 0 <= left + r < size */
    for (int64_t l = 0; l < lines; l++, to += g->line) {
        const int64_t y = g->y.step * y0 + l;
        const bool inside = g->y.edge + y >= 0 && g->y.edge + y < g->y.size;
        for (int64_t s = 0; s < g->x.step; s++) { /* r = s + i * step */
            const int64_t all = (wide - s + g->x.step - 1) / g->x.step;
            int64_t lo = left + s >= 0 ? 0 : (-left - s + g->x.step - 1) / g->x.step;
            int64_t hi = g->x.size <= left + s ? 0 : (g->x.size - 1 - left - s) / g->x.step + 1;
            hi = hi < all ? hi : all, lo = lo < all ? lo : all;
            if (!inside || hi < lo) hi = lo = 0;
            if (hi > lo)
                bring_pixels(g, x + g->y.pitch * y + g->x.pitch * (g->x.step * (x0 + lo) + s),
                             g->x.pitch * g->x.step, hi - lo, to + s * g->phase + lo);
        }
    }
}
static hone_status tile(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    const hone_direct_conv *g = d->direct_conv;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(step->ref[t], base);
    const int64_t down = hone_ceil_div(g->rows, g->tile_rows), across = hone_ceil_div(g->run, g->tile_run);
    const int64_t x0 = number % across * g->tile_run, y0 = number / across % down * g->tile_rows;
    const int64_t run = g->run - x0 < g->tile_run ? g->run - x0 : g->tile_run,
                  rows = g->rows - y0 < g->tile_rows ? g->rows - y0 : g->tile_rows;
    const hone_standing w = hone_contract_stand(d, number / across / down);
    const hone_affine_load *load = g->transpose ? &d->a : &d->b;
    const int64_t vector = d->kernel->vector, nr = g->vectors * vector,
                  stride = hone_round_up((g->together - 1) * g->line + run, vector);
    const bool apart = g->transpose || !d->direct; /* sums wait in scratch */
    float *sums = scratch, *band = sums + d->c_bytes / sizeof *sums;
    void *rest = (char *)scratch + d->c_bytes + d->b_bytes;
    bring(g, (const float *)at[load->tensor] + load->at.c + (g->transpose ? w.a : w.b), y0, rows, x0, run,
          band);

    const float *weights = (const float *)at[g->transpose ? d->packed_b : d->packed_a] +
                           (g->transpose ? w.own_b : w.own_a) * hone_direct_conv_rows(d) * d->of.k;
    const float *a[MOST_CHANNELS], *residual[MOST_CHANNELS];
    float *c[MOST_CHANNELS], bias[MOST_CHANNELS], kept[HONE_GEMM_ROWS * HONE_CONTRACT_KEPT];
    const bool then = d->epilogue && d->epilogue->then, keeps = then && d->epilogue->later.tensor >= 0;
    const hone_contract_lists l = {.residual = residual, .c = c, .bias_m = bias};
    hone_gemm_args whole = {.taps = 1,
                            .k = d->of.k,
                            .at_b = g->at,
                            .small_m = g->channels <= HONE_GEMM_SMALL_M,
                            .epilogue = d->direct};
    float *out = NULL;
    int64_t out_step = 0;
    if (g->transpose) {
        hone_contract_epilogue_args(d, at, 0, &w, 0, 2, &whole, &l); /* of two pixels, to see how they lie */
        out = c[0], out_step = c[1] - c[0], whole.bias_m = whole.bias_n, whole.bias_n = NULL;
    } else if (d->direct) hone_contract_epilogue_args(d, at, 0, &w, 0, d->of.m, &whole, &l);
    for (int64_t i = 0; i < g->channels; i++) {
        a[i] = weights + i * d->of.k;
        if (apart) c[i] = sums + i * stride;
    }
    const int64_t *pixel = d->epilogue ? d->epilogue->out.at_m : d->at_m_out;
    for (int64_t y = 0; y < rows; y += g->together) {
        const int64_t n0 = (y0 + y) * g->run + x0, high = rows - y < g->together ? rows - y : g->together,
                      all = (high - 1) * g->line + run;
        for (int64_t j = 0; j < all; j += nr) {
            const int64_t wide = all - j < nr ? all - j : nr;
            const int v = (int)hone_ceil_div(wide, vector);
            const int64_t most = d->kernel->mr[v - 1], passes = hone_ceil_div(g->channels, most),
                          mr = g->slices ? g->high : hone_ceil_div(g->channels, passes);
            hone_gemm_args part = whole;
            part.n = (int)wide, part.b = band + y * g->y.step * g->line + j, part.c_from = apart ? j : n0 + j;
            for (int64_t i = 0; i < g->channels; i += mr) {
                part.m = (int)(g->channels - i < mr ? g->channels - i : mr), part.a = a + i, part.c = c + i;
                if (g->slices) part.packed_a = weights + i / mr * HONE_GEMM_PACKED_M(mr) * d->of.k;
                part.bias_m = whole.bias_m ? whole.bias_m + i : NULL,
                part.residual = whole.residual ? residual + i : NULL;
                if (keeps) hone_contract_keep(d, at, &w, i, n0 + j, &part, kept);
                (g->slices ? g->slices->run : d->kernel->run[v - 1])(&part);
                if (d->direct) hone_contract_activate(d, &part);
                if (then) hone_contract_then(d, at, &w, &part, kept);
            }
        }
        for (int64_t q = 0; g->transpose && q < high; q++)
            hone_columns(sums + q * g->line, stride, g->channels, run,
                         out + pixel[n0 + q * g->run] - pixel[0], out_step);
        if (!g->transpose && !d->direct)
            HONE_TRY(hone_contract_epilogue(d, at, 0, &w, 0, d->of.m, n0, run, sums, stride, NULL, rest));
    }
    return HONE_OK;
}
void hone_direct_conv_step(hone_contract *d, hone_step *s) {
    const hone_direct_conv *g = d->direct_conv;
    s->tactic = "direct conv", s->flush = true, s->tile = tile;
    s->tiles = d->of.batch * hone_ceil_div(g->rows, g->tile_rows) * hone_ceil_div(g->run, g->tile_run);
    s->serial = s->tiles == 1;
    d->c_bytes =
        g->transpose || !d->direct
            ? hone_round_up64(sizeof(float) *
                              (size_t)(g->channels * hone_round_up((g->together - 1) * g->line + g->tile_run,
                                                                   d->kernel->vector)))
            : 0;
    d->b_bytes = hone_round_up64(sizeof(float) * (size_t)(g->many * g->plane));
    s->scratch_bytes =
        d->c_bytes + d->b_bytes + (d->epilogue_code ? hone_tilecode_scratch(d->epilogue_code) : 0);
}
