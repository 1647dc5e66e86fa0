/* SPDX-License-Identifier: Apache-2.0
   channel_affine: element-wise stages  clamp(x * s + b)  whose x lies in rows and whose s and b, if there is
   one, are
     one a column: a normalization that no product took, before its Relu; the
   last step of squeeze and excitation. By the kernel of depthwise convolutions, whose window is then one
   pixel; as tile code each of its steps is a pass of its own. */
#include <math.h>

#include "base/round.h"
#include "base/thread.h"
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"
#include "device/cpu/channel_affine.h"

enum {
    LEAST = 1 << 13,
    MOST = 1 << 16 /* values a tile */,
    FEWEST = 16 /* columns */,
    MOST_ROWS = 1 << 20,
    AT_ONCE = 64
};
typedef hone_channel_affine scaling;
hone_status hone_channel_affine_tile(const hone_step *step, void *const *base, int64_t number,
                                     void *scratch) {
    const scaling *d = step->data;
    (void)scratch;
    void *at[64];
    for (int t = 0; t < d->n_tensor; t++) at[t] = hone_ref_at(step->ref[t], base);
    const bool x_half = step->half_stored >> d->x & 1, out_half = step->half_stored >> d->out & 1;
    const float *a[AT_ONCE];
    float *c[AT_ONCE];
    hone_gemm_args part = {.n = (int)d->n,
                           .taps = 1,
                           .k = 1,
                           .a = a,
                           .c = c,
                           .b = (const float *)at[d->s] + d->s_c,
                           .bias_n = d->b < 0 ? NULL : (const float *)at[d->b] + d->b_c,
                           .epilogue = true,
                           .clamp = d->lo != -INFINITY || d->hi != INFINITY,
                           .lo = d->lo,
                           .hi = d->hi,
                           .a_bf16 = x_half,
                           .c_bf16 = out_half};
    const int64_t end = d->rows - number * d->grain < d->grain ? d->rows : (number + 1) * d->grain;
    for (int64_t r = number * d->grain; r < end; r += part.m) {
        part.m = end - r < AT_ONCE ? (int)(end - r) : AT_ONCE;
        for (int i = 0; i < part.m; i++)
            a[i] = hone_element(at[d->x], x_half, d->x_c + d->x_at[r + i]),
            c[i] = hone_element(at[d->out], out_half, d->out_at[r + i]);
        d->kernel->run(&part);
    }
    return HONE_OK;
}

/* ---- recognising --------------------------------------------------------------------------------------- */
typedef struct {
    const hone_cpu_call *c;
    const hone_slots_of *slots;
} matching;
static const hone_x *at(const matching *m, int32_t x) { return m->c->instance->x + x; }
static bool is_fn(const matching *m, int32_t x, hone_fn fn) {
    return at(m, x)->kind == HONE_X_FN && at(m, x)->fn == fn;
}
static bool is_number(const matching *m, int32_t x) {
    return at(m, x)->kind == HONE_X_CONST && at(m, x)->type == HONE_F32;
}
/* A load of floats along the last index; columns: of nothing else. */
static bool loads(const matching *m, int32_t x, bool columns, int *tensor, hone_affine *f) {
    const int last = m->slots->n_domain - 1;
    const hone_x *e = at(m, x);
    if (e->kind != HONE_X_LOAD || m->c->instance->tensor[e->a].dtype != HONE_DTYPE_F32 ||
        !hone_affine_inside(&m->c->sized, m->slots, x, f) || f->k[last] != 1)
        return false;
    for (int k = 0; k < last && columns; k++)
        if (m->slots->extent[k] > 1 && f->k[k]) return false;
    *tensor = e->a;
    return true;
}
static bool recognise(const matching *m, int32_t v, scaling *d, hone_affine *x) {
    hone_affine s, b;
    d->lo = -INFINITY, d->hi = INFINITY;
    for (int k = 0; k < 2; k++) { /* the outer limit wins: below lo first, or above hi */
        const bool max = is_fn(m, v, HONE_FN_max);
        if (!max && !is_fn(m, v, HONE_FN_min)) break;
        const bool right = is_number(m, at(m, v)->b);
        if (!right && !is_number(m, at(m, v)->a)) return false;
        float *limit = max ? &d->lo : &d->hi;
        if (*limit != (max ? -INFINITY : INFINITY)) return false;
        *limit = at(m, right ? at(m, v)->b : at(m, v)->a)->k.f32, v = right ? at(m, v)->a : at(m, v)->b;
    }
    const bool sum = is_fn(m, v, HONE_FN_add);
    if (!(d->lo <= d->hi)) return false;
    for (int side = 0; side < (sum ? 2 : 1); side++) {
        const int32_t product = !sum ? v : side ? at(m, v)->b : at(m, v)->a;
        d->b = -1, b.c = 0;
        if (!is_fn(m, product, HONE_FN_mul) ||
            (sum && !loads(m, side ? at(m, v)->a : at(m, v)->b, true, &d->b, &b)))
            continue;
        for (int other = 0; other < 2; other++) {
            const int32_t rows = other ? at(m, product)->b : at(m, product)->a,
                          scale = other ? at(m, product)->a : at(m, product)->b;
            if (!loads(m, scale, true, &d->s, &s) || !loads(m, rows, false, &d->x, x)) continue;
            d->x_c = x->c, d->s_c = s.c, d->b_c = b.c;
            return true;
        }
    }
    return false;
}
hone_status hone_cpu_channel_affine(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                                    bool *done) {
    const hone_stage *st = c->instance->stage + stage;
    const hone_tensor *to = c->instance->tensor + st->tensor;
    hone_slots_of slots;
    hone_affine x, out = {0};
    int before[HONE_MAX_SLOTS];
    (void)end;
    if (st->reduce || st->how || !st->identity || st->over >= 0 || st->skip || to->dtype != HONE_DTYPE_F32 ||
        c->instance->n_tensor > 64 || !hone_affine_slots(&c->sized, stage, stage, &slots) ||
        slots.n_domain < 2)
        return HONE_OK;
    scaling *d = HONE_NEW(m->arena, scaling);
    if (!d) return hone_steps_no_memory();
    const int last = slots.n_domain - 1;
    d->rows = 1, d->n = slots.extent[last], d->out = st->tensor, d->n_tensor = c->instance->n_tensor;
    for (int k = 0; k < slots.n_domain; k++) {
        before[k] = k, out.k[k] = c->stride[st->tensor][slots.dim[k]];
        if (k < last) d->rows *= slots.extent[k];
    }
    const matching in = {c, &slots};
    if (d->n < FEWEST || d->n > 1 << 24 || d->rows < 2 || d->rows > MOST_ROWS || out.k[last] != 1 ||
        !recognise(&in, st->value, d, &x))
        return HONE_OK;
    d->kernel = hone_dwconv_nhwc_best();
    d->x_at = hone_affine_table(m->arena, &slots, before, last, &x),
    d->out_at = hone_affine_table(m->arena, &slots, before, last, &out);
    if (!d->x_at || !d->out_at) return hone_steps_no_memory();
    d->grain = (hone_share_of(d->rows * d->n, LEAST, MOST, c->how.threads) + d->n - 1) / d->n;
    hone_step step = {.tactic = "channel affine",
                      .tiles = hone_ceil_div(d->rows, d->grain),
                      .tile = hone_channel_affine_tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true;
    if (c->how.precision == HONE_DTYPE_BF16 && d->x != d->s && d->x != d->b)
        step.half_able = (uint64_t)1 << d->x | (uint64_t)1 << d->out;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
