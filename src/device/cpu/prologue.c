/* SPDX-License-Identifier: Apache-2.0
   prologue: a product whose rows the step before scales by column (a normalization and its Relu, what
   squeeze and excitation gives a channel) scales them itself while it packs them (kernels/gemm.h), where
   each value is in a register anyway. Nobody else may read what that step makes: it is then never stored. */
#include "device/cpu/contract.h"
#include "device/cpu/channel_affine.h"

enum { MOST_REFS = 64 };
static int64_t floats(hone_ref from, hone_ref to) {
    return (to.offset - from.offset) / (int64_t)sizeof(float);
}
/* Does step k + 1 read what step k scales, by rows of one piece, and nobody else? */
static bool fits(const hone_steps *s, int k, const hone_channel_affine *x, const hone_contract *d) {
    const hone_step *from = s->step.at + k, *to = from + 1;
    if (!d->blocks || !d->packed_b || d->packed_a || d->dwconv_nhwc || d->gathered ||
        d->of.piece != d->of.k || d->of.k != x->n || d->of.batch != 1 || d->a.n_bounded ||
        d->of.first_tensor >= 0 || d->of.m <= HONE_GEMM_SMALL_M || d->prologue || d->n_ref + 3 > MOST_REFS)
        return false;
    const hone_ref made = from->ref[x->out], read = to->ref[d->a.tensor];
    if (made.base != HONE_BASE_ARENA || read.base != HONE_BASE_ARENA || made.block != read.block)
        return false;
    const hone_block *b = s->block.at + made.block;
    if (b->first != k || b->last != k + 1 || from->ref[x->x].block == made.block) return false;
    for (int q = 0; q < d->n_ref; q++)
        if (q != d->a.tensor && to->ref[q].base == HONE_BASE_ARENA && to->ref[q].block == made.block)
            return false;
    return true;
}
/* Where the rows of the product begin in what is scaled; false: they are not its rows. */
static bool find_rows(const hone_channel_affine *x, const hone_contract *d, hone_ref made, hone_ref read,
                      int64_t *at) {
    for (int64_t m = 0; m < d->of.m; m++) {
        const int64_t place = floats(made, read) + d->a.at.c + d->at_m_a[m], row = place / x->n;
        if (place < 0 || place % x->n || row >= x->rows || x->out_at[row] != place) return false;
        at[m] = x->x_at[row];
    }
    return true;
}
static hone_status join(hone_steps *s, int k, bool *done) {
    const hone_step *from = s->step.at + k;
    hone_step *to = s->step.at + k + 1;
    const hone_contract *was = k + 1 < s->step.n ? hone_contract_plain(to) : NULL;
    const hone_channel_affine *x = from->data;
    if (from->tile != hone_channel_affine_tile || !was || !fits(s, k, x, was)) return HONE_OK;
    const hone_ref made = from->ref[x->out];
    const int n = was->n_ref, own[] = {x->x, x->s, x->b};
    int64_t *rows = hone_arena_raw(s->arena, sizeof *rows * (size_t)was->of.m);
    hone_contract *d = hone_arena_copy(s->arena, was, sizeof *was);
    hone_ref *ref = hone_arena_raw(s->arena, sizeof *ref * (size_t)(n + 3));
    hone_box *box = hone_arena_raw(s->arena, sizeof *box * (size_t)(n + 3));
    hone_access *access = HONE_NEW(s->arena, hone_access);
    struct hone_contract_prologue *ahead = HONE_NEW(s->arena, struct hone_contract_prologue);
    const hone_access *was_access = to->access;
    if (!rows || !d || !ref || !box || !access || !ahead) return hone_steps_no_memory();
    if (!find_rows(x, was, made, to->ref[was->a.tensor], rows)) return HONE_OK;
    memcpy(ref, to->ref, sizeof *ref * (size_t)n), memcpy(box, to->access->box, sizeof *box * (size_t)n);
    for (int q = 0; q < 3; q++)
        ref[n + q] = from->ref[own[q] < 0 ? x->s : own[q]],
                box[n + q] = from->access->box[own[q] < 0 ? x->s : own[q]];
    ref[was->a.tensor] = ref[n], box[was->a.tensor] = box[n];
    for (int q = 0; q < n + 3; q++) {
        if (ref[q].base != HONE_BASE_ARENA) continue;
        hone_block *b = s->block.at + ref[q].block;
        b->plain = true, b->last = b->last > k + 1 ? b->last : k + 1;
        if (!hone_push(&s->patch, ref + q)) return hone_steps_no_memory();
    }
    /* what the product makes must not lie on what it reads now: rows are read by every tile of columns */
    for (int q = 0; q < s->block.n; q++) {
        hone_block *b = s->block.at + q;
        if (b->shares == made.block || (b->shares >= 0 && b->first == k + 1 && b->shares == ref[n].block))
            b->shares = -1;
    }
    s->block.at[made.block].bytes = 0;
    d->n_ref = n + 3, d->a.tensor = n, d->a.at.c = x->x_c, d->at_m_a = rows;
    *ahead = (struct hone_contract_prologue){
        .s = n + 1, .b = x->b < 0 ? -1 : n + 2, .s_c = x->s_c, .b_c = x->b_c, .lo = x->lo, .hi = x->hi};
    d->prologue = ahead;
    to->ref = ref, to->data = d, to->access = access;
    *access = (hone_access){was_access->reads | (uint64_t)7 << (n & 63), was_access->writes, box, n + 3};
    hone_contract_step(d, to);
    *done = true;
    return HONE_OK;
}
hone_status hone_cpu_prologue(hone_steps *s) {
    /* a step's number, when some are gone */
    int n = 0, *now = hone_arena_raw(s->arena, sizeof *now * (size_t)(s->step.n + 1));
    if (!now) return hone_steps_no_memory();
    for (int k = 0; k < s->step.n; k++) {
        bool gone = false;
        HONE_TRY(join(s, k, &gone));
        now[k] = n;
        if (!gone) s->step.at[n++] = s->step.at[k];
    }
    now[s->step.n] = n;
    for (int q = 0; q < s->block.n; q++)
        s->block.at[q].first = now[s->block.at[q].first], s->block.at[q].last = now[s->block.at[q].last];
    s->step.n = n;
    return HONE_OK;
}
