/* SPDX-License-Identifier: Apache-2.0
   transpose: stages that only move floats so that what lies in a row before lies in a column after
   (Transpose, DepthToSpace, images to channels last). Found in the program as y[domain] = x[affine], where y
   runs on along one index and x along another: matrices transposed, block by block. Where both run on along
   the same one (parts of a Concat), rows are copied. */
#include <string.h>

#include "base/round.h"
#include "base/thread.h"
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"
#include "kernels/gemm.h"

enum { LEAST = 1 << 12, MOST = 1 << 15 /* values a tile moves */, FEWEST = 1 << 10, SHORTEST = 16 };
typedef struct {
    int x, y, n_outer;
    int64_t first, outer, rows, columns, chunk, chunks, many, from_step,
        to_step; /* a chunk: so many columns of a matrix; many: matrices a tile, if one is little */
    int64_t extent[HONE_MAX_SLOTS], by_x[HONE_MAX_SLOTS], by_y[HONE_MAX_SLOTS];
} moving;
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const moving *d = s->data;
    const float *x = (const float *)(const void *)hone_ref_at(s->ref[d->x], base) + d->first;
    float *y = (float *)(void *)hone_ref_at(s->ref[d->y], base);
    const int64_t from = number % d->chunks * d->chunk,
                  n = d->columns - from < d->chunk ? d->columns - from : d->chunk;
    const int64_t first = number / d->chunks * d->many,
                  past = first + d->many < d->outer ? first + d->many : d->outer;
    int64_t at[HONE_MAX_SLOTS], rest = first;
    (void)scratch;
    for (int k = d->n_outer - 1; k >= 0; k--) {
        at[k] = rest % d->extent[k], rest /= d->extent[k];
        x += at[k] * d->by_x[k], y += at[k] * d->by_y[k];
    }
    for (int64_t q = first; q < past; q++) {
        if (d->rows == 1) memcpy(y + from, x + from, sizeof *y * (size_t)n);
        else hone_transpose_floats(d->rows, n, x + from, d->from_step, y + from * d->to_step, d->to_step);
        for (int k = d->n_outer - 1; k >= 0; k--) { /* to the next one */
            x += d->by_x[k], y += d->by_y[k];
            if (++at[k] < d->extent[k]) break;
            at[k] = 0, x -= d->extent[k] * d->by_x[k], y -= d->extent[k] * d->by_y[k];
        }
    }
    return HONE_OK;
}
hone_status hone_cpu_transpose(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                               bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    const hone_x *load = in->x + st->value;
    hone_slots_of slots;
    hone_affine from;
    (void)end;
    if (st->reduce || st->how || !st->identity || st->over >= 0 || st->skip || load->kind != HONE_X_LOAD ||
        load->flat || in->tensor[st->tensor].dtype != HONE_DTYPE_F32 ||
        in->tensor[load->a].dtype != HONE_DTYPE_F32)
        return HONE_OK;
    if (!hone_affine_slots(&c->sized, stage, stage, &slots) || !slots.injective ||
        !hone_affine_inside(&c->sized, &slots, st->value, &from))
        return HONE_OK;
    int last = -1, along = -1;
    const int64_t *stride = c->stride[st->tensor];
    for (int k = 0; k < slots.n_domain; k++) {
        if (slots.extent[k] == 1) continue;
        if (stride[slots.dim[k]] == 1) last = k;
        if (from.k[k] == 1) along = k;
    }
    const bool same = last == along; /* rows stay rows, somewhere else */
    if (last < 0 || along < 0 || slots.extent[last] < (same ? SHORTEST : 2) || slots.extent[along] < 4 ||
        !from.k[last])
        return HONE_OK;
    moving *d = HONE_NEW(m->arena, moving);
    if (!d) return hone_steps_no_memory();
    d->x = load->a, d->y = st->tensor, d->first = from.c, d->outer = 1;
    d->rows = same ? 1 : slots.extent[last], d->columns = slots.extent[along], d->from_step = from.k[last];
    d->to_step = stride[slots.dim[along]];
    for (int k = 0; k < slots.n_domain; k++) {
        if (k == along || k == last || slots.extent[k] == 1) continue;
        d->extent[d->n_outer] = slots.extent[k], d->by_x[d->n_outer] = from.k[k],
        d->by_y[d->n_outer++] = stride[slots.dim[k]];
        d->outer *= slots.extent[k];
    }
    const int64_t all = d->outer * d->rows * d->columns,
                  each = hone_share_of(all, LEAST, MOST, c->how.threads);
    if (all < FEWEST) return HONE_OK;
    d->chunk = (each / d->rows + 15) / 16 * 16; /* whole lines of x */
    if (d->chunk < 16) d->chunk = 16;
    d->chunks = hone_ceil_div(d->columns, d->chunk);
    d->many = d->chunks > 1 || each <= d->rows * d->columns ? 1 : each / (d->rows * d->columns);
    hone_step step = {.tactic = "transpose",
                      .tiles = hone_ceil_div(d->outer, d->many) * d->chunks,
                      .tile = tile,
                      .data = d};
    step.serial = all <= each, *done = true;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
