/* SPDX-License-Identifier: Apache-2.0
   table: see table.h; and the tactic "table": element-wise stages from one tensor of 8 bits to 8 bits or
   floats. What reads other tensors is "rows" or tile code. */
#include <string.h>

#include "base/round.h"
#include "base/thread.h"
#include "device/cpu/table.h"

const hone_table *hone_table_of(hone_arena *a, const hone_cpu_call *c, int stage, const bool *given,
                                bool is_signed) {
    const hone_instance *in = c->instance;
    hone_table *t = HONE_NEW(a, hone_table);
    if (!t) return NULL;
    hone_tensor_view place[HONE_MAX_TENSORS];
    for (int k = 0; k < in->n_tensor; k++) {
        memcpy(place[k].stride, c->stride[k], sizeof place[k].stride);
        place[k].at = (void *)hone_cpu_constant(c, k);
    }
    const bool floats = in->tensor[in->stage[stage].tensor].dtype == HONE_DTYPE_F32;
    for (int k = 0; k < 256; k++) {
        const hone_scalar v = {.i32 = is_signed ? (int8_t)k : k};
        void *at = floats ? (void *)(t->floats + k) : (void *)(t->bytes + k);
        if (hone_interpret_given(in, c->param, place, stage, given, v, at)) return NULL;
    }
    return t;
}
const hone_table *hone_table_make(hone_arena *a, const hone_cpu_call *c, const hone_slots_of *slots,
                                  int stage, hone_table_is *is, void *of, const bool *is_signed) {
    const bool *given = hone_match_table_of(a, &c->sized, slots, stage, hone_cpu_seen, c, is, of);
    return given ? hone_table_of(a, c, stage, given, *is_signed) : NULL;
}
void hone_table_rows(const hone_table *t, uint8_t *const *row, int64_t m, int64_t n) {
    for (int64_t i = 0, many; i < m; i += many) {
        /* rows that follow on are one */
        for (many = 1; i + many < m && row[i + many] == row[i] + many * n;) many++;
        hone_table_bytes(t->bytes, row[i], row[i], many * n);
    }
}

/* ---- the tactic ---------------------------------------------------------------------------------------- */
enum { FEWEST = 64, LEAST = 1 << 13, MOST = 1 << 15 };
typedef struct {
    const hone_table *table;
    bool floats;
    int in, out, n_tensor, n; /* n: indices of rows, outermost first */
    /* a row has so many elements, a tile so many rows, or elements where there is one row */
    int64_t rows, run, grain;
    int64_t in_c, out_c, extent[HONE_MAX_SLOTS], in_k[HONE_MAX_SLOTS], out_k[HONE_MAX_SLOTS];
} looked;
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const looked *d = s->data;
    const uint8_t *x = (const uint8_t *)hone_ref_at(s->ref[d->in], base) + d->in_c;
    char *y = hone_ref_at(s->ref[d->out], base);
    const int64_t all = d->rows > 1 ? d->rows : d->run, from = number * d->grain,
                  end = all - from < d->grain ? all : from + d->grain;
    const int64_t first = d->rows > 1 ? 0 : from, n = d->rows > 1 ? d->run : end - from;
    (void)scratch;
    for (int64_t r = d->rows > 1 ? from : 0; r < (d->rows > 1 ? end : 1); r++) {
        int64_t in = first, out = d->out_c + first, rest = r;
        for (int k = d->n - 1; k >= 0; k--)
            in += rest % d->extent[k] * d->in_k[k], out += rest % d->extent[k] * d->out_k[k],
                rest /= d->extent[k];
        if (d->floats) hone_table_floats(d->table->floats, x + in, (float *)(void *)y + out, n);
        else hone_table_bytes(d->table->bytes, x + in, (uint8_t *)y + out, n);
    }
    return HONE_OK;
}
typedef struct {
    const hone_cpu_call *c;
    const hone_slots_of *slots;
    int tensor; /* that was met first; -1 */
    bool is_signed;
    hone_affine at;
} reading;
static bool is_byte(void *of, int32_t x) { /* the same element of the same tensor, which is no constant */
    reading *r = of;
    const hone_x *e = r->c->instance->x + x;
    hone_affine at;
    if (e->kind != HONE_X_LOAD || (r->tensor >= 0 && r->tensor != e->a) ||
        (r->c->constant && r->c->constant[e->a]))
        return false;
    const hone_dtype dtype = r->c->instance->tensor[e->a].dtype;
    if ((dtype != HONE_DTYPE_U8 && dtype != HONE_DTYPE_I8) ||
        !hone_affine_inside(&r->c->sized, r->slots, x, &at))
        return false;
    if (r->tensor >= 0) return !memcmp(&at, &r->at, sizeof at);
    r->tensor = e->a, r->is_signed = dtype == HONE_DTYPE_I8, r->at = at;
    return true;
}
/* Bytes that are only scaled to floats are widened faster than looked up. */
static bool is_plain(const hone_cpu_call *c, const hone_stage *s) {
    const hone_x *e = c->instance->x + s->value;
    if (c->instance->tensor[s->tensor].dtype != HONE_DTYPE_F32) return false;
    if (e->kind == HONE_X_FN && e->fn == HONE_FN_mul) e = c->instance->x + e->a;
    return e->kind == HONE_X_CAST || e->kind == HONE_X_LOAD;
}
hone_status hone_cpu_table(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                           bool *done) {
    const hone_stage *st = c->instance->stage + stage;
    hone_slots_of slots;
    (void)end;
    if (st->reduce || st->how || !st->identity || st->over >= 0 || st->skip ||
        !hone_affine_slots(&c->sized, stage, stage, &slots) || !slots.injective || is_plain(c, st))
        return HONE_OK;
    looked *d = HONE_NEW(m->arena, looked);
    if (!d) return hone_steps_no_memory();
    reading r = {.c = c, .slots = &slots, .tensor = -1};
    int64_t all = 1;
    for (int k = 0; k < slots.n_domain; k++) all *= slots.extent[k];
    if (all < FEWEST || !(d->table = hone_table_make(m->arena, c, &slots, stage, is_byte, &r, &r.is_signed)))
        return HONE_OK;
    d->in = r.tensor, d->out = st->tensor, d->n_tensor = c->instance->n_tensor, d->in_c = r.at.c, d->run = 1;
    d->floats = c->instance->tensor[st->tensor].dtype == HONE_DTYPE_F32;
    const int64_t *stride = c->stride[st->tensor];
    int last = slots.n_domain - 1; /* the inner indices that follow on in both are a row */
    for (; last >= 0; last--) {
        if (slots.extent[last] == 1) continue;
        if (stride[slots.dim[last]] != d->run || r.at.k[last] != d->run) break;
        d->run *= slots.extent[last];
    }
    for (int k = 0; k <= last; k++)
        if (slots.extent[k] > 1)
            d->extent[d->n] = slots.extent[k], d->in_k[d->n] = r.at.k[k],
            d->out_k[d->n++] = stride[slots.dim[k]];
    d->rows = all / d->run;
    if (d->rows > 1 && d->run < FEWEST / 4) return HONE_OK; /* rows too short to be worth it */
    /* no line of bytes for two threads */
    d->grain = hone_round_up(hone_share_of(all, LEAST, MOST, c->how.threads), 64);
    if (d->rows > 1) d->grain = hone_ceil_div(d->grain, d->run);
    hone_step step = {.tactic = "table",
                      .tiles = ((d->rows > 1 ? d->rows : d->run) + d->grain - 1) / d->grain,
                      .tile = tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
