/* SPDX-License-Identifier: Apache-2.0
   norm: rows normalized over their last index, as one step: layer norm, RMS norm, softmax and its logarithm,
   whatever op they come from (loops/match_rows.h). What is made on the way is never stored. */
#include "kernels/norm.h"

#include <math.h>
#include <string.h>

#include "base/round.h"
#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "kernels/softmax.h"
#include "loops/match_rows.h"

enum { LEAST = 4096, MOST = 16384 /* elements a tile, about */, SHORT = 16 };
typedef struct {
    const hone_norm *kernel;
    const hone_softmax *softmax;
    hone_match_norm of;
    int64_t block;
} norm;
static void softmax(const norm *d, const float *x, float *y) {
    if (x != y) memcpy(y, x, sizeof *y * (size_t)d->of.n);
    d->softmax->times(y, d->of.n, 1 / d->softmax->row(y, NULL, d->of.n, 1, -INFINITY));
}
static void log_softmax(const norm *d, const float *x, float *y) {
    float top;
    const float sum = logf(d->softmax->exps(x, d->of.n, &top));
    for (int64_t i = 0; i < d->of.n; i++) y[i] = x[i] - top - sum;
}
static hone_status run(const hone_step *s, void *const *base, int64_t tile, void *scratch) {
    const norm *d = s->data;
    const float *x = (const float *)(const void *)hone_ref_at(s->ref[d->of.x], base),
                *p[HONE_NORM_PARAMETERS] = {NULL, NULL};
    float *y = (float *)(void *)hone_ref_at(s->ref[d->of.y], base);
    (void)scratch;
    for (int k = 0; k < d->of.n_p; k++)
        p[k] = (const float *)(const void *)hone_ref_at(s->ref[d->of.p[k]], base);
    const int64_t r0 = tile * d->block, r1 = d->of.rows - r0 < d->block ? d->of.rows : r0 + d->block;
    const int last = d->of.lead - 1;
    for (int64_t r = r0, some = 1; r < r1; r += some) {
        int64_t at_x = 0, at_y = 0, rest = r;
        for (int k = last; k >= 0; k--) {
            const int64_t i = k ? rest % d->of.extent[k] : rest;
            at_x += i * d->of.by_x[k], at_y += i * d->of.by_y[k], rest = k ? rest / d->of.extent[k] : 0;
        }
        if (d->of.kind < HONE_NORM_SOFTMAX) { /* rows that go on evenly at once */
            some = d->of.extent[last] - r % d->of.extent[last];
            if (some > r1 - r) some = r1 - r;
            d->kernel->rows(some, d->of.n, x + at_x, d->of.by_x[last], d->of.kind == HONE_NORM_CENTRED,
                            d->of.epsilon, p[0], p[1], y + at_y, d->of.by_y[last]);
        } else if (d->of.kind == HONE_NORM_SOFTMAX) softmax(d, x + at_x, y + at_y);
        else log_softmax(d, x + at_x, y + at_y);
    }
    return HONE_OK;
}

hone_status hone_cpu_norm(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end, bool *done) {
    norm d = {.kernel = hone_norm_best(), .softmax = hone_softmax_best()};
    if (!hone_match_norm_of(&c->sized, stage, &d.of)) return HONE_OK;
    /* a call a row is more than tile code takes for so few (ultraface's pairs: 0.47 ms, not 0.1) */
    if (d.of.kind >= HONE_NORM_SOFTMAX && d.of.n < SHORT) return HONE_OK;
    d.block = hone_share_of(d.of.rows, LEAST / d.of.n + 1, MOST / d.of.n + 1, c->how.threads);
    norm *kept = hone_arena_copy(m->arena, &d, sizeof d);
    if (!kept) return hone_steps_no_memory();
    hone_step step = {
        .tactic = "norm", .tiles = hone_ceil_div(d.of.rows, d.block), .tile = run, .data = kept};
    step.serial = step.tiles == 1;
    *done = true, *end = stage + d.of.stages;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = d.of.uses & ~d.of.own, .buffer = -1});
}
