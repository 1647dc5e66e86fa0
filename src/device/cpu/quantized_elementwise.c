/* SPDX-License-Identifier: Apache-2.0
   quantized_elementwise: element-wise stages between floats and 8 bits (quantize, dequantize, a residual sum
   in between), and activations, by the kernels that finish sums. All operands lie in one row, in the same
   order; or in rows that a bias is the same of. Whatever does not is tile code, and so is all else that stays
   in floats. */
#include "base/round.h"
#include "base/thread.h"
#include "device/cpu/epilogue.h"

enum {
    AT_ONCE = 1024 /* what is read as floats stays in L1 */,
    LEAST = 4 * AT_ONCE,
    MOST = 16 * AT_ONCE,
    FEWEST = 64,
    MOST_ROWS = 1 << 16
};
typedef struct {
    const hone_cpu_epilogue *simple;
    int n_tensor;
    int64_t rows, elements, grain; /* of a row; elements a tile, or rows where there are several */
} row;
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const row *d = s->data;
    void *at[64];
    for (int t = 0; t < d->n_tensor; t++) at[t] = hone_ref_at(s->ref[t], base);
    const int64_t all = d->rows > 1 ? d->rows : d->elements, from = number * d->grain,
                  end = all - from < d->grain ? all : from + d->grain;
    const int64_t first = d->rows > 1 ? 0 : from, past = d->rows > 1 ? d->elements : end;
    for (int64_t r = d->rows > 1 ? from : 0; r < (d->rows > 1 ? end : 1); r++)
        for (int64_t i = first; i < past; i += AT_ONCE)
            hone_epilogue_read(d->simple, at, NULL, r, i, past - i < AT_ONCE ? past - i : AT_ONCE, NULL,
                               scratch);
    return HONE_OK;
}
hone_status hone_cpu_quantized_elementwise(hone_template_builder *m, const hone_cpu_call *c, int stage,
                                           int *end, bool *done) {
    const hone_stage *st = c->instance->stage + stage;
    hone_slots_of slots;
    (void)end;
    if (st->reduce || st->how || !st->identity || st->over >= 0 || st->skip ||
        !hone_affine_slots(&c->sized, stage, stage, &slots))
        return HONE_OK;
    row *d = HONE_NEW(m->arena, row);
    if (!d) return hone_steps_no_memory();
    d->n_tensor = c->instance->n_tensor, d->rows = d->elements = 1;
    for (int k = 0; k < slots.n_domain; k++) d->elements *= slots.extent[k];
    if (d->elements < FEWEST) return HONE_OK;
    const int64_t all = d->elements, last = slots.n_domain ? slots.extent[slots.n_domain - 1] : 0;
    if (!(d->simple = hone_epilogue_elements(m->arena, c, &slots, stage, 0)) && last >= FEWEST &&
        all / last > 1 && all / last <= MOST_ROWS) {
        d->elements = last, d->rows = all / last;
        d->simple = hone_epilogue_elements(m->arena, c, &slots, stage, slots.n_domain - 1);
    }
    if (!d->simple) return HONE_OK;
    /* no line of bytes for two threads */
    d->grain = hone_round_up(hone_share_of(all, LEAST, MOST, c->how.threads), 64);
    if (d->rows > 1) d->grain = hone_ceil_div(d->grain, last);
    hone_step step = {.tactic = "quantized elementwise",
                      .tiles = ((d->rows > 1 ? d->rows : d->elements) + d->grain - 1) / d->grain,
                      .scratch_bytes = 2 * AT_ONCE * sizeof(float),
                      .tile = tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
