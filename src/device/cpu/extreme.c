/* SPDX-License-Identifier: Apache-2.0
   extreme: the largest or the least of all values of a tensor of floats, as dynamic quantization asks of
   every activation. Values lie in one piece, in whatever order.
   Windows are pool.c's; what leaves indices over is tile code. */
#include <string.h>

#include "loops/match_affine.h"
#include "device/cpu/cpu.h"

typedef float floats __attribute__((vector_size(16)));
typedef int32_t masks __attribute__((vector_size(16)));
static inline masks unlike(floats a, floats b) { return a != b; } /* NaN is unlike itself */
enum { LANES = 4, SIDE = 8, FEWEST = 64 };
typedef struct {
    int in, out;
    int64_t c, n;
    bool least;
} extreme;
/* NaN where there is one. Zeros of both signs are equal: of the largest the sign bits are and-ed, of the
   least or-ed, as the function of two values does. */
static inline float most_of(const float *x, int64_t n, bool least) {
    const float begin = least ? __builtin_inff() : -__builtin_inff();
    floats m[SIDE];
    masks odd = {0};
    float best = begin;
    int64_t i = 0;
    for (int q = 0; q < SIDE; q++) m[q] = (floats){begin, begin, begin, begin};
    for (; i + LANES * SIDE <= n; i += LANES * SIDE)
        for (int q = 0; q < SIDE; q++) {
            floats v;
            memcpy(&v, x + i + LANES * q, sizeof v);
            const masks better = least ? v < m[q] : v > m[q];
            m[q] = (floats)(((masks)v & better) | ((masks)m[q] & ~better)), odd |= unlike(v, v);
        }
    bool nan = odd[0] | odd[1] | odd[2] | odd[3];
    for (int q = 0; q < LANES * SIDE; q++) {
        const float v = m[q / LANES][q % LANES];
        if (least ? v < best : v > best) best = v;
    }
    for (; i < n; i++) {
        nan |= x[i] != x[i];
        if (least ? x[i] < best : x[i] > best) best = x[i];
    }
    if (nan) return __builtin_nanf("");
    if (best != 0) return best;
    uint32_t sign = least ? 0 : UINT32_MAX;
    for (i = 0; i < n; i++) {
        uint32_t bits;
        memcpy(&bits, x + i, sizeof bits);
        if (x[i] == 0) sign = least ? sign | bits : sign & bits;
    }
    memcpy(&best, &sign, sizeof best);
    return best;
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const extreme *d = s->data;
    const float *x = (const float *)(const void *)hone_ref_at(s->ref[d->in], base) + d->c;
    (void)number, (void)scratch;
    *(float *)(void *)hone_ref_at(s->ref[d->out], base) =
        d->least ? most_of(x, d->n, true) : most_of(x, d->n, false);
    return HONE_OK;
}
hone_status hone_cpu_extreme(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                             bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    const hone_x *e = in->x + st->value;
    hone_slots_of slots;
    hone_affine at;
    (void)end;
    if ((st->reduce != HONE_REDUCE_MAX && st->reduce != HONE_REDUCE_MIN) || st->how || !st->identity ||
        st->over >= 0 || st->skip || e->kind != HONE_X_LOAD || in->tensor[e->a].dtype != HONE_DTYPE_F32 ||
        in->tensor[st->tensor].dtype != HONE_DTYPE_F32 ||
        !hone_affine_slots(&c->sized, stage, stage, &slots) ||
        !hone_affine_inside(&c->sized, &slots, st->value, &at))
        return HONE_OK;
    extreme d = {.in = e->a, .out = st->tensor, .c = at.c, .n = 1, .least = st->reduce == HONE_REDUCE_MIN};
    int left = 0;
    for (int k = 0; k < slots.n; k++) left += slots.extent[k] != 1;
    for (int k = 0; k < slots.n_domain; k++)
        if (slots.extent[k] != 1) return HONE_OK;
    for (bool more = true; left && more;) { /* which index comes next, from the innermost on */
        more = false;
        for (int k = slots.n_domain; k < slots.n && !more; k++)
            if (slots.extent[k] > 1 && at.k[k] == d.n) d.n *= slots.extent[k], left--, more = true;
    }
    if (left || d.n < FEWEST) return HONE_OK;
    const extreme *kept = hone_arena_copy(m->arena, &d, sizeof d);
    if (!kept) return hone_steps_no_memory();
    *done = true;
    const hone_step step = {
        .tactic = "full reduction", .serial = true, .tiles = 1, .tile = tile, .data = kept};
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
