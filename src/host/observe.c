/* SPDX-License-Identifier: Apache-2.0
   observe: what numbers a tensor has, in the place where it is made: so a graph can be watched without
   keeping its tensors. Quantization puts it there. */
#include "base/bins.h"
#include "base/mem.h"
#include "host/call.h"

enum { LEAST_PIECE = 1 << 15, MOST_PIECES = 64 };

/* ---- bins ---------------------------------------------------------------------------------------------- */
typedef struct {
    const float *x;
    int64_t n;
    int pieces;
    hone_bins *all, *of; /* of: one a piece */
    uint32_t *count;     /* likewise, HONE_BINS each */
} watched;
static int64_t start_of(const watched *w, int64_t k) {
    return w->n / w->pieces * k + w->n % w->pieces * k / w->pieces;
}
static void look(void *arg, int64_t k) {
    const watched *w = arg;
    hone_bins_look(w->of + k, w->x + start_of(w, k), start_of(w, k + 1) - start_of(w, k));
}
static void count(void *arg, int64_t k) {
    const watched *w = arg;
    hone_bins_count(w->all, w->x + start_of(w, k), start_of(w, k + 1) - start_of(w, k),
                    w->count + k * HONE_BINS);
}
/* ---- channels ------------------------------------------------------------------------------------------ */
enum { LANES = 64 };
typedef struct {
    const float *x;
    hone_around a;
    float *least, *most;
    double *zeros; /* a piece of channels that lie last; NaN: it has what is no number */
} channels;
/* Lanes lie in the cache: in rows so long compilers make vectors of them. */
static void wider(const float *x, int64_t n, float *least, float *most) {
    for (int64_t k = 0; k < n; k++)
        least[k] = x[k] < least[k] ? x[k] : least[k], most[k] = x[k] > most[k] ? x[k] : most[k];
}
static void extremes(const float *x, int64_t n, float *least, float *most) {
    float low[LANES] = {0}, high[LANES] = {0};
    int64_t k = 0;
    for (; n - k >= LANES; k += LANES) wider(x + k, LANES, low, high);
    wider(x + k, n - k, low, high);
    for (int l = 0; l < LANES; l++)
        *least = low[l] < *least ? low[l] : *least, *most = high[l] > *most ? high[l] : *most;
}
static void channel(void *arg, int64_t k) {
    const channels *w = arg;
    for (int64_t o = 0; o < w->a.outer; o++)
        extremes(w->x + (o * w->a.n + k) * w->a.inner, w->a.inner, w->least + k, w->most + k);
}
/* Channels lie last: some beside each other at once, and their zeros, too. */
static void channels_beside(void *arg, int64_t piece) {
    const channels *w = arg;
    const int64_t from = piece * LANES, n = w->a.n - from < LANES ? w->a.n - from : LANES;
    float low[LANES] = {0}, high[LANES] = {0}, off[LANES] = {0};
    int32_t none[LANES];
    double zeros = 0;
    for (int64_t o = 0; o < w->a.outer;) {
        const int64_t end = w->a.outer - o > 1 << 30 ? o + (1 << 30) : w->a.outer; /* zeros are in 32 bits */
        memset(none, 0, sizeof none);
        for (; o < end; o++) {
            const float *x = w->x + o * w->a.n + from;
            for (int64_t k = 0; k < n; k++) {
                low[k] = x[k] < low[k] ? x[k] : low[k], high[k] = x[k] > high[k] ? x[k] : high[k];
                off[k] += x[k] - x[k], none[k] += x[k] == 0;
            }
        }
        for (int64_t k = 0; k < n; k++) zeros += none[k];
    }
    for (int64_t k = 0; k < n; k++) zeros += (double)off[k]; /* 0 or NaN */
    memcpy(w->least + from, low, sizeof *low * (size_t)n);
    memcpy(w->most + from, high, sizeof *high * (size_t)n);
    w->zeros[piece] = zeros;
}
/* What hone_bins_look says of all of it; false: it is to be asked, because some is no number. */
static bool look_beside(const hone_host_call *c, channels *w, hone_bins *all) {
    const int64_t pieces = (w->a.n + LANES - 1) / LANES;
    double zeros = 0;
    w->zeros = hone_alloc(sizeof *w->zeros * (size_t)(pieces + 1));
    if (!w->zeros) return false;
    hone_call_spread(c, pieces, channels_beside, w);
    for (int64_t k = 0; k < pieces; k++) zeros += w->zeros[k];
    hone_free(w->zeros);
    if (!(zeros == zeros)) return false;
    all->n = (double)(w->a.outer * w->a.n), all->zeros = zeros;
    float least = 0, most = 0;
    for (int64_t k = 0; k < w->a.n; k++)
        least = w->least[k] < least ? w->least[k] : least, most = w->most[k] > most ? w->most[k] : most;
    all->least = (double)least, all->most = (double)most;
    return true;
}

/* ---- both ---------------------------------------------------------------------------------------------- */
/* ch: what is wanted of channels, or NULL. */
static hone_status observe(const hone_host_call *c, const hone_value *x, channels *ch) {
    hone_value *seen;
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_F64, (int64_t[]){sizeof(hone_bins) / sizeof(double)}, 1, &seen));
    memset(seen->data, 0, sizeof(hone_bins));
    const int64_t n = hone_value_count(x), fit = n / LEAST_PIECE + 1;
    watched w = {.x = x->data, .n = n, .pieces = c->threads > 1 ? c->threads : 1, .all = seen->data};
    w.pieces = (int)(w.pieces < fit ? w.pieces : fit);
    /* pieces are counted in 32 bits */
    w.pieces = w.pieces > MOST_PIECES ? MOST_PIECES : w.pieces;
    if (n / w.pieces >= UINT32_MAX) return hone_call_fail(c, HONE_NOT_SUPPORTED, "x has too many elements");
    w.of = hone_alloc(sizeof *w.of * (size_t)w.pieces);
    w.count = hone_alloc(sizeof *w.count * HONE_BINS * (size_t)w.pieces);
    const bool room = w.of && w.count;
    if (room) {
        const bool beside = ch && ch->a.inner == 1;
        if (ch && !beside) hone_call_spread(c, ch->a.n, channel, ch);
        if (!beside || !look_beside(c, ch, w.all)) {
            hone_call_spread(c, w.pieces, look, &w);
            for (int k = 0; k < w.pieces; k++) hone_bins_join(w.all, w.of + k);
        }
        hone_bins_grid(w.all);
        hone_call_spread(c, w.pieces, count, &w);
        hone_bins_sum(w.all, w.count, w.pieces);
    }
    hone_free(w.of), hone_free(w.count);
    return room ? HONE_OK : hone_call_no_memory(c);
}
hone_status hone_host_observe(const hone_host_call *c) {
    const hone_value *x;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_F32, &x));
    return observe(c, x, NULL);
}
hone_status hone_host_observe_channels(const hone_host_call *c) {
    const hone_value *x;
    hone_value *y;
    int at;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_F32, &x));
    HONE_TRY(hone_call_axis(c, hone_call_int(c, "axis", 1), x->rank, &at));
    const int64_t n = x->dim[at];
    HONE_TRY(hone_host_out(c, 1, HONE_DTYPE_F32, (int64_t[]){2, n}, 2, &y));
    memset(y->data, 0, sizeof(float) * 2 * (size_t)n);
    return observe(c, x,
                   &(channels){.x = x->data,
                               .a = hone_call_around(x->dim, x->rank, at),
                               .least = y->data,
                               .most = (float *)y->data + n});
}
