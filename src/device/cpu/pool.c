/* SPDX-License-Identifier: Apache-2.0
   pool: the largest value of a window, over pictures that lie channels last. Found in the program as  y[domain] = max(reduced) x[affine] else -inf,  where the
   domain's last index runs along memory in both and moves no window: so a row of channels is the largest of a few rows. What is outside is left out, which is
   what -inf comes to. Everything else runs as tile code; so do sums, which are made in a temporary of its own order. */
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
} pool;
static bool inside(const pool *d, int64_t r, int64_t t) {
    for (int q = 0; q < d->x.n_bounded; q++) {
        const int64_t i = d->x.bounded[q].c + d->row_edge[q][r] + d->tap_edge[q][t];
        if (i < 0 || i >= d->x.size[q]) return false;
    }
    return true;
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const pool *d = s->data;
    const float *x = (const float *)(const void *)hone_ref_at(s->ref[d->x.tensor], base) + d->x.at.c, **list = scratch;
    float *y = (float *)(void *)hone_ref_at(s->ref[d->out], base);
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain;
    for (int64_t r = from; r < to; r++) {
        int64_t many = 0;
        for (int64_t t = 0; t < d->taps; t++)
            if (inside(d, r, t)) list[many++] = x + d->row_x[r] + d->tap_x[t];
        if (many) d->max(list, many, d->n, y + d->row_out[r]);
        else
            for (int64_t j = 0; j < d->n; j++) y[d->row_out[r] + j] = -INFINITY;
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
    const int taps = slots.n - last - 1;
    bool made = (d->row_x = hone_affine_table(m->arena, &slots, row, last, &d->x.at)) &&
                (d->row_out = hone_affine_table(m->arena, &slots, row, last, &out)) &&
                (d->tap_x = hone_affine_table(m->arena, &slots, tap, taps, &d->x.at));
    for (int q = 0; q < d->x.n_bounded && made; q++)
        made = (d->row_edge[q] = hone_affine_table(m->arena, &slots, row, last, d->x.bounded + q)) &&
               (d->tap_edge[q] = hone_affine_table(m->arena, &slots, tap, taps, d->x.bounded + q));
    if (!made) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    const int64_t each = d->n * d->taps;
    d->grain = hone_share_of(d->rows, LEAST / each + 1, MOST / each + 1, c->how.threads);
    hone_step step = {.tactic = "pool",
                      .tiles = (d->rows + d->grain - 1) / d->grain,
                      .scratch_bytes = sizeof(float *) * (size_t)d->taps,
                      .tile = tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true;
    return hone_cpu_add(m, (hone_part){.step = step, .uses = st->uses, .buffer = -1});
}
