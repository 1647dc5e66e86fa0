/* SPDX-License-Identifier: Apache-2.0
   row_reduction: long sums of rows, column by column: averages of whole images that lie channels last. Found
   in the
     program as  y[rows, c] = sum(reduced) x[affine],  where c runs along memory in
   both and the rows that are added lie evenly. A tile is some columns; rows go some hundred at a time, so
   that a sum is of few sums. Short ones are pool.c's; the rest is tile code. */
#include <string.h>

#include "base/round.h"
#include "base/thread.h"
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"
#include "kernels/pool.h"

enum {
    FEWEST = 16 /* columns, and rows */,
    LINE = 16,
    AT_ONCE = 256 /* rows */,
    LEAST = 1 << 13,
    MOST = 1 << 17 /* values a tile reads */,
    MOST_SUMS = 1 << 20
};
typedef struct {
    const hone_pool *kernel;
    int x, out;
    int64_t x_c, sums, n, rows, step, wide, parts; /* wide: columns a tile */
    const int64_t *sum_x, *sum_out;                /* where each sum begins */
} summing;
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const summing *d = s->data;
    const int64_t sum = number / d->parts, from = number % d->parts * d->wide,
                  n = d->n - from < d->wide ? d->n - from : d->wide;
    const float *x =
        (const float *)(const void *)hone_ref_at(s->ref[d->x], base) + d->x_c + d->sum_x[sum] + from;
    float *y = (float *)(void *)hone_ref_at(s->ref[d->out], base) + d->sum_out[sum] + from;
    (void)scratch;
    memset(y, 0, sizeof *y * (size_t)n);
    for (int64_t r = 0; r < d->rows; r += AT_ONCE)
        d->kernel->add(x + r * d->step, d->rows - r < AT_ONCE ? d->rows - r : AT_ONCE, (ptrdiff_t)d->step, n,
                       y);
    return HONE_OK;
}
/* The rows of a sum, however many indices they have, as one that moves by `step`. */
static bool one_index(const hone_slots_of *slots, int first, const hone_affine *f, int64_t *rows,
                      int64_t *step) {
    *rows = 1, *step = 0;
    for (int k = slots->n - 1; k >= first; k--) {
        if (slots->extent[k] == 1) continue;
        if (*rows == 1) *step = f->k[k];
        else if (f->k[k] != *rows * *step) return false;
        *rows *= slots->extent[k];
    }
    return true;
}
hone_status hone_cpu_row_reduction(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                                   bool *done) {
    const hone_stage *st = c->instance->stage + stage;
    const hone_x *load = c->instance->x + st->value;
    hone_slots_of slots;
    hone_affine x, out = {0};
    int before[HONE_MAX_SLOTS];
    (void)end;
    if (st->reduce != HONE_REDUCE_SUM || st->how != HONE_STORE_SET || !st->identity || st->over >= 0 ||
        st->skip || load->kind != HONE_X_LOAD || c->instance->tensor[st->tensor].dtype != HONE_DTYPE_F32 ||
        c->instance->tensor[load->a].dtype != HONE_DTYPE_F32 ||
        !hone_affine_slots(&c->sized, stage, stage, &slots) || slots.n_domain < 1 ||
        !hone_affine_inside(&c->sized, &slots, st->value, &x))
        return HONE_OK;
    summing *d = HONE_NEW(m->arena, summing);
    if (!d) return hone_steps_no_memory();
    int last = slots.n_domain - 1;
    while (last > 0 && slots.extent[last] == 1) last--;
    d->sums = 1, d->n = slots.extent[last], d->x = load->a, d->out = st->tensor, d->x_c = x.c,
    d->kernel = hone_pool_best();
    for (int k = 0; k < slots.n_domain; k++) {
        before[k] = k, out.k[k] = c->stride[st->tensor][slots.dim[k]];
        if (k < last) d->sums *= slots.extent[k];
    }
    if (x.k[last] != 1 || out.k[last] != 1 || d->n < FEWEST || d->sums > MOST_SUMS ||
        !one_index(&slots, slots.n_domain, &x, &d->rows, &d->step) || d->rows < FEWEST)
        return HONE_OK;
    d->sum_x = hone_affine_table(m->arena, &slots, before, last, &x),
    d->sum_out = hone_affine_table(m->arena, &slots, before, last, &out);
    if (!d->sum_x || !d->sum_out) return hone_steps_no_memory();
    const int64_t share = hone_share_of(d->sums * d->n * d->rows, LEAST, MOST, c->how.threads) / d->rows;
    d->wide = share >= d->n ? d->n : (share + LINE) / LINE * LINE, d->parts = hone_ceil_div(d->n, d->wide);
    hone_step step = {.tactic = "row reduction", .tiles = d->sums * d->parts, .tile = tile, .data = d};
    step.serial = step.tiles == 1, *done = true;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
