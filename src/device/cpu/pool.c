/* SPDX-License-Identifier: Apache-2.0
   pool: the largest value of a window, over pictures that lie channels last. Found in the program as  y[domain] = max(reduced) x[affine] else -inf,  where the
   domain's last index runs along memory in both and moves no window: so a row of channels is the largest of a few rows. What is outside is left out, which is
   what -inf comes to. Large windows go in two ways: all of a row of pixels is the largest of a few rows, in scratch, and there each window's places along the row
   are compared: kh + kw values instead of kh * kw. Everything else runs as tile code; so do sums, which are made in a temporary of its own order. */
#include "kernels/pool.h"

#include <math.h>
#include <string.h>

#include "base/thread.h"
#include "device/cpu/affine.h"

enum { MAX_TAPS = 1024, LEAST = 1 << 13, MOST = 1 << 16 /* values a tile reads */ };
typedef struct {
    hone_affine_load x;
    int out;
    int64_t rows, n, taps, grain;
    const int64_t *row_x, *row_out, *tap_x; /* in elements */
    const int64_t *row_edge[MAX_BOUNDED], *tap_edge[MAX_BOUNDED];
    hone_pool_fn *max;
    /* two ways: rows are then rows of pixels, and taps the window's without its places along them. Place p of pixel i is at step * i + ahead * p, inside from lo up to hi */
    bool ways;
    int64_t run, places, pitch, step, ahead, lo, hi, out_step;
} pool;
static bool inside(const pool *d, int64_t r, int64_t t) {
    for (int q = 0; q < d->x.n_bounded; q++) {
        const int64_t i = d->x.bounded[q].c + d->row_edge[q][r] + d->tap_edge[q][t];
        if (i < 0 || i >= d->x.size[q]) return false;
    }
    return true;
}
static int64_t list_taps(const pool *d, const float *x, int64_t r, const float **list) {
    int64_t many = 0;
    for (int64_t t = 0; t < d->taps; t++)
        if (inside(d, r, t)) list[many++] = x + d->row_x[r] + d->tap_x[t];
    return many;
}
static void largest(const pool *d, const float **list, int64_t many, float *y) {
    if (many) d->max(list, many, d->n, y);
    else
        for (int64_t j = 0; j < d->n; j++) y[j] = -INFINITY;
}
static hone_status tile_ways(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const pool *d = s->data;
    const float *x = (const float *)(const void *)hone_ref_at(s->ref[d->x.tensor], base) + d->x.at.c + d->lo * d->pitch;
    float *row = scratch, *y = (float *)(void *)hone_ref_at(s->ref[d->out], base);
    const float **list = (const float **)(void *)(row + ((d->hi - d->lo) * d->n + 1) / 2 * 2);
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain;
    for (int64_t r = from; r < to; r++) {
        const int64_t many = list_taps(d, x, r, list);
        const int64_t pixels = !many ? 0 : d->hi - d->lo, once = d->pitch == d->n ? pixels : 1; /* they may follow on */
        for (int64_t i = 0; i < pixels; i += once) {
            d->max(list, many, once * d->n, row + i * d->n);
            for (int64_t t = 0; t < many; t++) list[t] += d->pitch;
        }
        for (int64_t i = 0; i < d->run; i++) {
            int64_t seen = 0;
            for (int64_t p = 0; p < d->places && many; p++) {
                const int64_t at = d->step * i + d->ahead * p;
                if (at >= d->lo && at < d->hi) list[seen++] = row + (at - d->lo) * d->n;
            }
            largest(d, list, seen, y + d->row_out[r] + i * d->out_step);
        }
    }
    return HONE_OK;
}
/* Does the window go two ways, and is that less work? Takes the last index of rows and of the window out of them. */
static void two_ways(pool *d, const hone_slots_of *slots, const hone_affine *out, int rows, int taps) {
    const int ox = rows - 1, kx = slots->n - 1;
    if (rows < 2 || taps < 2 || d->n < 1) return;
    const int64_t own = d->x.at.k[ox], its = d->x.at.k[kx];
    int64_t pitch = own < its ? own : its;
    for (int q = 0; q < d->x.n_bounded; q++)
        if (d->x.bounded[q].k[ox] > 0) pitch = own / d->x.bounded[q].k[ox];
    if (own <= 0 || its <= 0 || pitch < d->n || own % pitch || its % pitch) return;
    pool w = {.run = slots->extent[ox], .places = slots->extent[kx], .step = own / pitch, .ahead = its / pitch, .out_step = out->k[ox]};
    const int64_t reach = w.step * (w.run - 1) + w.ahead * (w.places - 1) + 1, others = d->taps / w.places;
    w.hi = reach;
    int bound = -1;
    for (int q = 0; q < d->x.n_bounded; q++) {
        const hone_affine *f = d->x.bounded + q;
        if (!f->k[ox] && !f->k[kx]) continue;
        if (bound >= 0 || f->k[ox] != w.step || f->k[kx] != w.ahead) return;
        for (int k = 0; k < slots->n; k++)
            if (k != ox && k != kx && f->k[k] && slots->extent[k] > 1) return;
        bound = q, w.lo = f->c < 0 ? -f->c : 0, w.hi = d->x.size[q] - f->c < reach ? d->x.size[q] - f->c : reach;
    }
    if (w.hi <= w.lo || w.ahead > 16 || 4 * (others * reach + w.places * w.run) > 3 * d->taps * w.run) return;
    if (bound >= 0) d->x.n_bounded--, d->x.bounded[bound] = d->x.bounded[d->x.n_bounded], d->x.size[bound] = d->x.size[d->x.n_bounded];
    d->ways = true, d->pitch = pitch, d->run = w.run, d->places = w.places, d->step = w.step, d->ahead = w.ahead, d->lo = w.lo,
    d->hi = w.hi, d->out_step = w.out_step, d->taps = others, d->rows /= w.run;
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const pool *d = s->data;
    const float *x = (const float *)(const void *)hone_ref_at(s->ref[d->x.tensor], base) + d->x.at.c, **list = scratch;
    float *y = (float *)(void *)hone_ref_at(s->ref[d->out], base);
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain;
    for (int64_t r = from; r < to; r++) {
        const int64_t many = list_taps(d, x, r, list);
        largest(d, list, many, y + d->row_out[r]);
    }
    return HONE_OK;
}
hone_status hone_cpu_pool(hone_recipe_maker *m, const hone_cpu_call *c, int stage, int *end, bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    (void)end;
    if (st->reduce != HONE_REDUCE_MAX || st->how != HONE_STORE_SET || !st->identity || in->tensor[st->tensor].dtype != HONE_DTYPE_F32)
        return HONE_OK;
    hone_slots_of slots;
    hone_affine_load first; /* of a recurrence, which this is not */
    pool *d = HONE_NEW(m->arena, pool);
    if (!d) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    if (!hone_affine_slots(c, stage, stage, &slots) || slots.n_domain < 2 ||
        !hone_affine_of_load(c, &slots, st->value, HONE_AFFINE_MAX, -1, &d->x, &first))
        return HONE_OK;
    const int last = slots.n_domain - 1;
    hone_affine out = {0};
    for (int k = 0; k <= last; k++) out.k[k] = c->tensor[st->tensor].stride[slots.dim[k]];
    if (d->x.at.k[last] != 1 || out.k[last] != 1 || slots.extent[last] < 4) return HONE_OK;
    for (int q = 0; q < d->x.n_bounded; q++)
        if (d->x.bounded[q].k[last]) return HONE_OK;
    int row[MAX_SLOTS], tap[MAX_SLOTS];
    d->rows = d->taps = 1, d->n = slots.extent[last], d->out = st->tensor, d->max = hone_pool_best()->max;
    for (int k = 0; k < last; k++) row[k] = k, d->rows *= slots.extent[k];
    for (int k = last + 1; k < slots.n; k++) tap[k - last - 1] = k, d->taps *= slots.extent[k];
    if (d->taps > MAX_TAPS || d->rows > 1 << 24) return HONE_OK;
    two_ways(d, &slots, &out, last, slots.n - last - 1);
    const int rows = last - d->ways, taps = slots.n - last - 1 - d->ways;
    bool made = (d->row_x = hone_affine_table(m->arena, &slots, row, rows, &d->x.at)) &&
                (d->row_out = hone_affine_table(m->arena, &slots, row, rows, &out)) &&
                (d->tap_x = hone_affine_table(m->arena, &slots, tap, taps, &d->x.at));
    for (int q = 0; q < d->x.n_bounded && made; q++)
        made = (d->row_edge[q] = hone_affine_table(m->arena, &slots, row, rows, d->x.bounded + q)) &&
               (d->tap_edge[q] = hone_affine_table(m->arena, &slots, tap, taps, d->x.bounded + q));
    if (!made) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    const int64_t wide = d->hi - d->lo, each = d->n * (d->ways ? d->taps * wide + d->places * d->run : d->taps);
    d->grain = hone_share_of(d->rows, LEAST / each + 1, MOST / each + 1, c->how.threads);
    hone_step step = {.tactic = "pool",
                      .tiles = (d->rows + d->grain - 1) / d->grain,
                      .scratch_bytes = sizeof(float *) * (size_t)(d->taps + d->places) + sizeof(float) * (size_t)(wide * d->n + 2),
                      .tile = d->ways ? tile_ways : tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true;
    return hone_cpu_add(m, (hone_part){.step = step, .uses = st->uses, .buffer = -1});
}
