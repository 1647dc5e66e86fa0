/* SPDX-License-Identifier: Apache-2.0
   weights_kind: types of weights as a table of codes, the nearest level, and the scale of a block that loses
   least. No graph is here, and no data but the weights.

   A block's scale is searched: the range is shrunk step by step, with the zero point beside it, and each time
   the scale is what least squares give for the levels that came out. The best of all is kept, so
   clipping is a result, not a setting. */
#include "base/round.h"
#include "quant/weights.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/thread.h"

/* The 16 quantiles of a normal distribution that QLoRA (Dettmers and others, 2023) made a type. */
static const float nf4[] = {-1,
                            -0.6961928009986877F,
                            -0.5250730514526367F,
                            -0.39491748809814453F,
                            -0.28444138169288635F,
                            -0.18477343022823334F,
                            -0.09105003625154495F,
                            0,
                            0.07958029955625534F,
                            0.16093020141124725F,
                            0.24611230194568634F,
                            0.33791524171829224F,
                            0.44070982933044434F,
                            0.5626170039176941F,
                            0.7229568362236023F,
                            1};
/* f8E4M3 without its NaNs, both zeros as one: level 126 is 0, above it the positive numbers, below it the
   negative ones. */
enum { F8 = 253, F8_ZERO = 126 };
static float f8[F8];
static const hone_weights_kind kinds[] = {
    {"int8", 8, 256, true, 128, NULL, {HONE_DTYPE_U8, HONE_DTYPE_I8}},
    {"int4", 4, 16, true, 8, NULL, {HONE_DTYPE_U4, HONE_DTYPE_I4}},
    {"nf4", 4, 16, false, 0, nf4, {HONE_DTYPE_NONE, HONE_DTYPE_NONE}},
    {"f8", 8, F8, false, 0, f8, {HONE_DTYPE_NONE, HONE_DTYPE_F8E4M3FN}},
};
enum { KINDS = sizeof kinds / sizeof *kinds };
const hone_weights_kind *hone_weights_kind_find(const char *name) {
    static atomic_bool filled;
    /* by the definition of the type; every thread writes the same */
    for (int k = 0; k < F8 && !filled; k++) {
        const uint8_t byte = (uint8_t)(k < F8_ZERO ? 0x80 | (F8_ZERO - k) : k - F8_ZERO);
        f8[k] = hone_dtype_load(HONE_DTYPE_F8E4M3FN, &byte).f32;
    }
    filled = true;
    for (int k = 0; k < KINDS; k++)
        if (!strcmp(kinds[k].name, name)) return kinds + k;
    return NULL;
}
const char *hone_weights_kinds(void) { return "int8, int4, nf4 and f8"; }

bool hone_weights_make(hone_weights *q, const hone_weights_kind *kind, bool symmetric, int64_t n, int64_t k,
                       int64_t block) {
    *q = (hone_weights){.kind = kind,
                        .symmetric = symmetric || !kind->uniform,
                        .n = n,
                        .k = k,
                        .block = block,
                        .blocks = hone_ceil_div(k, block)};
    size_t levels, blocks, bytes;
    if (!hone_mul_size((size_t)n, (size_t)k, &levels) ||
        !hone_mul_size((size_t)n, (size_t)q->blocks, &blocks) ||
        !hone_mul_size(blocks, sizeof *q->scale, &bytes))
        return false;
    q->level = hone_alloc(levels), q->scale = hone_alloc(bytes), q->zero = hone_alloc(blocks);
    if (q->level && q->scale && q->zero) return true;
    hone_weights_free(q);
    return false;
}
void hone_weights_free(hone_weights *q) {
    hone_free(q->level), hone_free(q->scale), hone_free(q->zero);
    q->level = NULL, q->scale = NULL, q->zero = NULL;
}

int hone_weights_level(const hone_weights_kind *kind, float w, float scale, int zero) {
    if (kind->uniform) {
        const float v = w / scale + (float)zero, top = (float)(kind->levels - 1);
        return v >= top ? kind->levels - 1 : v > 0 ? (int)(v + 0.5F) : 0;
    }
    const float v = w / scale;
    int low = 0, high = kind->levels - 1;
    while (high - low > 1) {
        const int middle = (low + high) / 2;
        if (kind->code[middle] <= v) low = middle;
        else high = middle;
    }
    return v - kind->code[low] <= kind->code[high] - v ? low : high;
}

typedef struct {
    double loss;
    float scale;
    int zero;
} fit;
/* The levels of one scale and zero point, and the scale that least squares give for them; kept where it is
   better. */
static void try(const hone_weights_kind *kind, const float *w, const float *important, int64_t n, float scale,
                int zero, fit *best) {
    double wc = 0, cc = 0, ww = 0;
    for (int64_t i = 0; i < n; i++) {
        const double h = important ? (double)important[i] : 1,
                     c = (double)hone_weights_code(kind, hone_weights_level(kind, w[i], scale, zero), zero);
        wc += h * (double)w[i] * c, cc += h * c * c, ww += h * (double)w[i] * (double)w[i];
    }
    if (!(cc > 0) || !(wc > 0)) return;
    const float refit = (float)(wc / cc);
    /* of these levels; the nearest ones of the new scale lose no more */
    const double loss = ww - 2 * (double)refit * wc + (double)refit * (double)refit * cc;
    if (loss < best->loss && isfinite(refit) && refit >= 1e-30F) *best = (fit){loss, refit, zero};
}
void hone_weights_fit(const hone_weights_kind *kind, bool symmetric, const float *w, const float *important,
                      int64_t n, float *scale, uint8_t *zero) {
    float low = 0, high = 0;
    for (int64_t i = 0; i < n; i++) low = fminf(low, w[i]), high = fmaxf(high, w[i]);
    const float top = fmaxf(-low, high);
    *scale = 1, *zero = (uint8_t)kind->middle;
    if (!(top > 0)) return; /* all are zero: every level that says 0 is right */
    fit best = {.loss = HUGE_VAL, .scale = top, .zero = kind->middle};
    const int steps = kind->bits == 8 && kind->uniform ? 3 : 20;
    for (int s = 0; s < steps; s++) {
        const float share = 1 - (float)s * (steps == 3 ? 0.02F : 0.025F);
        if (!kind->uniform) {
            try(kind, w, important, n, top * share / kind->code[kind->levels - 1], 0, &best);
            continue;
        }
        if (symmetric) {
            try(kind, w, important, n, top * share / (float)(kind->middle - 1), kind->middle, &best);
            try(kind, w, important, n, top * share / (float)kind->middle, kind->middle, &best);
            continue;
        }
        const float step = (high - low) * share / (float)(kind->levels - 1);
        const int at = (int)(-low * share / step + 0.5F);
        for (int z = at - 1; z <= at + 1; z++)
            if (z >= 0 && z < kind->levels) try(kind, w, important, n, step, z, &best);
    }
    if (best.loss == HUGE_VAL)
        best.scale = kind->uniform ? top / (float)(kind->middle - 1) : top / kind->code[kind->levels - 1];
    *scale = best.scale, *zero = (uint8_t)best.zero;
}

/* ---- to the nearest ------------------------------------------------------------------------------------ */
typedef struct {
    hone_weights *q;
    const float *w;
    atomic_llong next;
} rounding;
static void rounds(void *arg, int member, int members) {
    rounding *r = arg;
    hone_weights *q = r->q;
    (void)member, (void)members;
    for (int64_t n; (n = atomic_fetch_add(&r->next, 1)) < q->n;)
        for (int64_t b = 0; b < q->blocks; b++) {
            const int64_t from = b * q->block, many = q->k - from < q->block ? q->k - from : q->block,
                          at = n * q->blocks + b;
            const float *w = r->w + n * q->k + from;
            hone_weights_fit(q->kind, q->symmetric, w, NULL, many, q->scale + at, q->zero + at);
            for (int64_t i = 0; i < many; i++)
                q->level[n * q->k + from + i] =
                    (uint8_t)hone_weights_level(q->kind, w[i], q->scale[at], q->zero[at]);
        }
}
void hone_weights_round(hone_weights *q, const float *w, int threads) {
    rounding r = {.q = q, .w = w};
    hone_team_run(threads, rounds, &r);
}
