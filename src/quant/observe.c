/* SPDX-License-Identifier: Apache-2.0
   observe: see observe.h. */
#include "quant/observe.h"

#include <math.h>
#include <string.h>

enum { BINS = HONE_QUANT_BINS };
const char *const hone_observer_names[HONE_OBSERVERS] = {"minmax",         "average", "percentile",
                                                         "percentile99.9", "entropy", "mse"};

/* ---- histograms ---------------------------------------------------------------------------------------- */
/* Bins twice as wide, the new half of them on the side of x. */
static void widen(hone_histogram *h, bool down) {
    for (int k = 0; k < BINS / 2; k++) h->bin[k] = h->bin[2 * k] + h->bin[2 * k + 1];
    memset(h->bin + BINS / 2, 0, sizeof *h->bin * (BINS / 2));
    if (down) {
        memcpy(h->bin + BINS / 2, h->bin, sizeof *h->bin * (BINS / 2));
        memset(h->bin, 0, sizeof *h->bin * (BINS / 2));
        h->low -= h->width * BINS;
    }
    h->width *= 2;
}
void hone_histogram_add(hone_histogram *h, const hone_bins *b) {
    h->seen += b->n, h->odd += b->odd, h->zeros += b->zeros, h->samples++;
    h->sum_least += b->least, h->sum_most += b->most;
    h->least = fmin(h->least, b->least), h->most = fmax(h->most, b->most);
    if (!(b->width > 0)) return;
    if (h->width == 0) h->low = b->low, h->width = b->width;
    for (int k = 0; k < 2200 && b->least < h->low; k++) widen(h, true);
    for (int k = 0; k < 2200 && (b->most >= h->low + h->width * BINS || h->width < b->width); k++)
        widen(h, false);
    const double per = 1 / h->width;
    for (int k = 0; k < BINS; k++) {
        if (!(b->bin[k] > 0)) continue;
        const double at = floor((b->low + (k + 0.5) * b->width - h->low) * per);
        h->bin[at < 0 ? 0 : at >= BINS ? BINS - 1 : (int)at] += b->bin[k];
    }
}
bool hone_histogram_see(hone_histogram *h, const float *x, int64_t n) {
    hone_bins *b = hone_alloc(sizeof *b);
    uint32_t *count = hone_alloc(sizeof *count * BINS);
    const bool room = b && count;
    if (room) {
        hone_bins_look(b, x, n), hone_bins_grid(b);
        hone_bins_count(b, x, n, count), hone_bins_sum(b, count, 1);
        hone_histogram_add(h, b);
    }
    hone_free(b), hone_free(count);
    return room;
}

/* ---- grids --------------------------------------------------------------------------------------------- */
hone_grid hone_grid_of(hone_range r, int32_t lowest, int32_t highest, bool symmetric) {
    double low = fmin(r.low, 0), high = fmax(r.high, 0);
    hone_grid g = {.lowest = lowest, .highest = highest};
    if (symmetric) {
        const double middle = lowest < 0 ? 0 : ((double)lowest + highest + 1) / 2, far = fmax(-low, high);
        g.zero = (int32_t)middle, g.scale = (float)(far / (highest - middle));
    } else {
        g.scale = (float)((high - low) / ((double)highest - lowest));
    }
    if (!(g.scale > 1e-12f)) g.scale = 1e-12f; /* a tensor of nothing */
    if (g.scale > 1e12f) g.scale = 1e12f;
    if (!symmetric) {
        const double z = nearbyint(lowest - low / g.scale);
        g.zero = z < lowest ? lowest : z > highest ? highest : (int32_t)z;
    }
    return g;
}
int32_t hone_grid_round(const hone_grid *g, double x) {
    const double q = nearbyint(x / (double)g->scale) + g->zero;
    return q <= g->lowest ? g->lowest : q >= g->highest ? g->highest : (int32_t)q;
}

/* ---- ranges -------------------------------------------------------------------------------------------- */
static double middle(const hone_histogram *h, int k) { return h->low + (k + 0.5) * h->width; }
static double step_of(hone_range r, int levels, bool symmetric) {
    return symmetric ? 2 * fmax(-r.low, r.high) / (levels - 1) : (r.high - r.low) / (levels - 1);
}
double hone_histogram_error(const hone_histogram *h, hone_range r, int levels, bool symmetric) {
    const double step = step_of(r, levels, symmetric), noise = step * step / 12;
    if (symmetric) r.high = fmax(-r.low, r.high), r.low = -r.high;
    double sum = 0, n = h->seen - h->odd;
    for (int k = 0; k < BINS; k++) {
        const double v = middle(h, k), off = v < r.low ? r.low - v : v > r.high ? v - r.high : 0;
        if (h->bin[k] > 0) sum += h->bin[k] * (off > 0 ? off * off + h->width * h->width / 12 : noise);
    }
    return n > 0 ? sum / n : 0;
}
static hone_range percentile(const hone_histogram *h, double share) {
    hone_range r = {h->least, h->most};
    const double cut = (h->seen - h->odd) * share;
    double sum = 0;
    for (int k = 0; k < BINS && middle(h, k) < 0 && (sum += h->bin[k]) <= cut; k++)
        r.low = h->low + (k + 1) * h->width;
    sum = 0;
    for (int k = BINS - 1; k >= 0 && middle(h, k) > 0 && (sum += h->bin[k]) <= cut; k--)
        r.high = h->low + k * h->width;
    return (hone_range){fmax(r.low, h->least), fmin(r.high, h->most)};
}
/* Each side by itself, in turns: the error falls and then rises as a side is drawn in, but for small bumps,
   so all places of a coarse walk are looked at. */
static hone_range mse(const hone_histogram *h, int levels, bool symmetric) {
    hone_range best = {h->least, h->most};
    double error = hone_histogram_error(h, best, levels, symmetric);
    for (int round = 0; round < 2; round++)
        for (int side = 0; side < 2; side++)
            for (int k = 39; k >= 2; k--) {
                hone_range r = best;
                if (side) r.high = h->most * k / 40;
                else r.low = h->least * k / 40;
                const double e = hone_histogram_error(h, r, levels, symmetric);
                if (e < error) error = e, best = r;
            }
    return best;
}
/* How much is lost (in nats) of the distribution when its numbers are cut to a range and rounded to so many
   levels: what one step holds is spread over those of its bins that held something, and what is cut off is
   counted at the edge in the first and missing in the second. */
static double divergence(const hone_histogram *h, int from, int to, int levels) {
    const int n = to - from;
    double p_all = 0, q_all = 0, sum = 0, below = 0, above = 0;
    for (int k = 0; k < BINS; k++) {
        p_all += h->bin[k];
        if (k < from) below += h->bin[k];
        else if (k >= to) above += h->bin[k];
        else q_all += h->bin[k];
    }
    if (q_all <= 0) return INFINITY;
    for (int level = 0; level < levels; level++) {
        const int a = from + (int)((int64_t)level * n / levels),
                  b = from + (int)((int64_t)(level + 1) * n / levels);
        double mass = 0;
        int held = 0;
        for (int k = a; k < b; k++) mass += h->bin[k], held += h->bin[k] > 0;
        for (int k = a; k < b; k++) {
            double p = h->bin[k];
            if (p <= 0) continue;
            if (k == from) p += below;
            if (k == to - 1) p += above;
            sum += p / p_all * log(p / p_all / (mass / held / q_all));
        }
    }
    return sum;
}
static hone_range entropy(const hone_histogram *h, int levels) {
    hone_range best = {h->least, h->most};
    double least = INFINITY;
    if (levels > 256) return best; /* more steps than bins: nothing is gained by cutting */
    for (int k = 40; k >= 8; k--) {
        const hone_range r = {h->least * k / 40, h->most * k / 40};
        int from = (int)floor((r.low - h->low) / h->width), to = (int)ceil((r.high - h->low) / h->width);
        from = from < 0 ? 0 : from, to = to > BINS ? BINS : to;
        if (to - from < levels) break;
        const double d = divergence(h, from, to, levels);
        if (d < least) least = d, best = r;
    }
    return best;
}
hone_range hone_observer_range(hone_observer o, const hone_histogram *h, int levels, bool symmetric) {
    const hone_range all = {h->least, h->most};
    if (h->width == 0 || h->samples < 1) return all;
    switch (o) {
    case HONE_OBSERVE_AVERAGE: return (hone_range){h->sum_least / h->samples, h->sum_most / h->samples};
    case HONE_OBSERVE_PERCENTILE: return percentile(h, 1e-5);
    case HONE_OBSERVE_TENTH: return percentile(h, 1e-3);
    case HONE_OBSERVE_ENTROPY: return entropy(h, levels);
    case HONE_OBSERVE_MSE: return mse(h, levels, symmetric);
    default: return all;
    }
}
