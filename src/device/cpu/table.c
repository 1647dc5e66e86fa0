/* SPDX-License-Identifier: Apache-2.0
   table: element-wise stages that look up what becomes of each byte, in a table of 256. Bytes and results lie in one piece, in the same order; whatever does not is
   tile code. */
#include "base/thread.h"
#include "device/cpu/affine.h"

enum { LEAST = 1 << 14, MOST = 1 << 18, ENTRIES = 256 };
typedef struct {
    int n_tensor, x, table, out;
    int64_t x_c, elements, grain;
} lookup;
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const lookup *d = s->data;
    (void)scratch;
    const uint8_t *x = (const uint8_t *)hone_ref_at(s->ref[d->x], base) + d->x_c, *t = (const uint8_t *)hone_ref_at(s->ref[d->table], base);
    uint8_t *y = (uint8_t *)hone_ref_at(s->ref[d->out], base);
    const int64_t end = d->elements - number * d->grain < d->grain ? d->elements : (number + 1) * d->grain;
    for (int64_t i = number * d->grain; i < end; i++) y[i] = t[x[i]];
    return HONE_OK;
}
/* t[x[…] & 255]: which load is x; -1: it is something else */
static int32_t byte_of(const hone_cpu_call *c, int32_t value, int *table) {
    const hone_instance *in = c->instance;
    const hone_x *e = in->x + value;
    if (e->kind != HONE_X_LOAD || e->flat || in->tensor[e->a].rank != 1 || c->param[in->tensor[e->a].dim[0]].i != ENTRIES ||
        c->tensor[e->a].stride[0] != 1)
        return -1;
    *table = e->a;
    int32_t at = in->list[e->b];
    while (in->x[at].kind == HONE_X_CAST) at = in->x[at].a;
    if (in->x[at].kind != HONE_X_FN || in->x[at].fn != HONE_FN_band) return -1;
    const hone_x *mask = in->x + in->x[at].b;
    if (mask->kind != HONE_X_CONST || (mask->type == HONE_I32 ? mask->k.i32 : mask->type == HONE_I64 ? mask->k.i64 : 0) != ENTRIES - 1)
        return -1;
    at = in->x[at].a;
    while (in->x[at].kind == HONE_X_CAST) at = in->x[at].a;
    return in->x[at].kind == HONE_X_LOAD && hone_dtypes[in->tensor[in->x[at].a].dtype].bytes == 1 ? at : -1;
}
hone_status hone_cpu_table(hone_recipe_maker *m, const hone_cpu_call *c, int stage, int *end, bool *done) {
    const hone_stage *st = c->instance->stage + stage;
    hone_slots_of slots;
    hone_affine x;
    (void)end;
    if (st->reduce || st->how || !st->identity || st->over >= 0 || st->skip || c->instance->n_tensor > 64 ||
        hone_dtypes[c->instance->tensor[st->tensor].dtype].bytes != 1 || st->saturate)
        return HONE_OK;
    lookup d = {.n_tensor = c->instance->n_tensor, .out = st->tensor, .elements = 1};
    const int32_t from = byte_of(c, st->value, &d.table);
    if (from < 0 || !hone_affine_slots(c, stage, stage, &slots) || !hone_affine_inside(c, &slots, from, &x)) return HONE_OK;
    for (int k = slots.n_domain - 1; k >= 0; k--) {
        if (slots.extent[k] > 1 && (x.k[k] != d.elements || c->tensor[st->tensor].stride[slots.dim[k]] != d.elements)) return HONE_OK;
        d.elements *= slots.extent[k];
    }
    d.x = c->instance->x[from].a, d.x_c = x.c;
    d.grain = (hone_share_of(d.elements, LEAST, MOST, c->how.threads) + 63) / 64 * 64; /* no line for two threads */
    const lookup *kept = hone_arena_copy(m->arena, &d, sizeof d);
    if (!kept) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    hone_step step = {.tactic = "table", .tiles = (d.elements + d.grain - 1) / d.grain, .tile = tile, .data = kept};
    step.serial = step.tiles <= 1, *done = true;
    return hone_cpu_add(m, (hone_part){.step = step, .uses = st->uses, .buffer = -1});
}
