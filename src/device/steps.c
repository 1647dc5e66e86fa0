/* SPDX-License-Identifier: Apache-2.0
   steps: a plan in the making: steps, and the arena blocks their operands lie in. */
#include "device/step.h"

int hone_steps_block(hone_steps *s, int64_t bytes) {
    if (bytes < 0 || bytes > INT64_MAX / 4) return -1;
    hone_block b = {.bytes = hone_round_up(bytes, 64),
                    .exact = bytes,
                    .first = s->step.n,
                    .last = s->step.n,
                    .shares = -1,
                    .space = s->space};
    return hone_push(&s->block, b) ? s->block.n - 1 : -1;
}
hone_status hone_steps_add(hone_steps *s, hone_step step, hone_ref *refs, int n) {
    step.ref = refs;
    for (int k = 0; k < n; k++) {
        if (refs[k].base != HONE_BASE_ARENA) continue;
        hone_block *b = s->block.at + refs[k].block;
        b->last = s->step.n, b->plain |= k > 63 || !(step.half_able >> k & 1);
        if (!hone_push(&s->patch, refs + k)) return hone_steps_no_memory();
    }
    return hone_push(&s->step, step) ? HONE_OK : hone_steps_no_memory();
}

void hone_steps_halve(hone_steps *s) {
    for (int k = 0; k < s->step.n; k++) {
        hone_step *w = s->step.at + k;
        for (int t = 0; t < 64 && w->half_able >> t; t++) {
            if (!(w->half_able >> t & 1) || w->ref[t].base != HONE_BASE_ARENA) continue;
            hone_block *b = s->block.at + w->ref[t].block;
            if (!b->plain) w->half_stored |= (uint64_t)1 << t, b->half_stored = true;
        }
    }
    for (int k = 0; k < s->patch.n; k++)
        if (s->patch.at[k]->block >= 0 && s->block.at[s->patch.at[k]->block].half_stored)
            s->patch.at[k]->offset /= 2;
    for (int k = 0; k < s->block.n; k++) {
        hone_block *b = s->block.at + k;
        if (b->half_stored) b->bytes = hone_round_up(b->bytes / 2, 64), b->exact /= 2;
        /* elements no longer lie on each other */
        if (b->shares >= 0 && s->block.at[b->shares].half_stored != b->half_stored) b->shares = -1;
    }
}
