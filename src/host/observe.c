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
hone_status hone_host_observe(const hone_host_call *c) {
    const hone_value *x;
    hone_value *seen;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_F32, &x));
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
        hone_call_spread(c, w.pieces, look, &w);
        for (int k = 0; k < w.pieces; k++) hone_bins_join(w.all, w.of + k);
        hone_bins_grid(w.all);
        hone_call_spread(c, w.pieces, count, &w);
        hone_bins_sum(w.all, w.count, w.pieces);
    }
    hone_free(w.of), hone_free(w.count);
    return room ? HONE_OK : hone_call_no_memory(c);
}

/* ---- channels ------------------------------------------------------------------------------------------ */
enum { LANES = 16 };
typedef struct {
    const float *x;
    hone_around a;
    float *least, *most;
} channels;
static void extremes(const float *x, int64_t n, float *least, float *most) {
    float low[LANES], high[LANES];
    int64_t k = 0;
    for (int l = 0; l < LANES; l++) low[l] = *least, high[l] = *most;
    for (; n - k >= LANES; k += LANES)
        for (int l = 0; l < LANES; l++) {
            const float v = x[k + l];
            low[l] = v < low[l] ? v : low[l], high[l] = v > high[l] ? v : high[l];
        }
    for (; k < n; k++) low[0] = x[k] < low[0] ? x[k] : low[0], high[0] = x[k] > high[0] ? x[k] : high[0];
    for (int l = 0; l < LANES; l++)
        *least = low[l] < *least ? low[l] : *least, *most = high[l] > *most ? high[l] : *most;
}
static void channel(void *arg, int64_t k) {
    const channels *w = arg;
    for (int64_t o = 0; o < w->a.outer; o++)
        extremes(w->x + (o * w->a.n + k) * w->a.inner, w->a.inner, w->least + k, w->most + k);
}
hone_status hone_host_observe_channels(const hone_host_call *c) {
    const hone_value *x;
    hone_value *y;
    int at;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_F32, &x));
    HONE_TRY(hone_call_axis(c, hone_call_int(c, "axis", 1), x->rank, &at));
    const int64_t n = x->dim[at];
    HONE_TRY(hone_host_observe(c));
    HONE_TRY(hone_host_out(c, 1, HONE_DTYPE_F32, (int64_t[]){2, n}, 2, &y));
    channels w = {x->data, hone_call_around(x->dim, x->rank, at), y->data, (float *)y->data + n};
    memset(y->data, 0, sizeof(float) * 2 * (size_t)n);
    if (w.a.inner >= LANES) {
        hone_call_spread(c, w.a.n, channel, &w);
        return HONE_OK;
    }
    const float *v = w.x;
    for (int64_t o = 0; o < w.a.outer; o++)
        for (int64_t k = 0; k < w.a.n; k++)
            for (int64_t i = 0; i < w.a.inner; i++, v++)
                w.least[k] = *v < w.least[k] ? *v : w.least[k], w.most[k] = *v > w.most[k] ? *v : w.most[k];
    return HONE_OK;
}
