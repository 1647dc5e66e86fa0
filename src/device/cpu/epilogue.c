/* SPDX-License-Identifier: Apache-2.0
   epilogue: how this CPU does what loops/match_epilogue.h found: its kernels, and where each row's numbers
   are. */
#include "device/cpu/epilogue.h"

typedef struct {
    hone_arena *arena;
    const hone_epilogue_query *q;
    bool fits; /* there was memory */
} lowering;
static hone_row_number number(lowering *l, const hone_match_number *from) {
    hone_row_number to = {.tensor = from->tensor, .k = from->k, .dtype = from->dtype, .same = from->same};
    if (from->tensor < 0) return to;
    to.c = from->at.c;
    to.at_m = hone_affine_table(l->arena, l->q->slots, l->q->group_m, l->q->n_m, &from->at);
    l->fits &= to.at_m != NULL;
    for (int k = 0; k < l->q->n_batch; k++) to.by_batch[k] = from->at.k[l->q->group_b[k]];
    return to;
}
static hone_read_rows bytes(lowering *l, const hone_match_bytes *from) {
    return (hone_read_rows){number(l, &from->at), number(l, &from->zero), number(l, &from->scale)};
}
static hone_cpu_epilogue *lower(lowering *l, const hone_cpu_call *c, const hone_match_epilogue *of) {
    const hone_activate *act = hone_activate_best();
    hone_cpu_epilogue *r = HONE_NEW(l->arena, hone_cpu_epilogue);
    if (!r) return NULL;
    const hone_epilogue *kernel = r->kernel = hone_epilogue_best();
    const bool is_signed = of->out.dtype == HONE_DTYPE_I8, floats = of->out.dtype == HONE_DTYPE_F32;
    r->n_batch = l->q->n_batch;
#define NUMBER(which) r->which = number(l, &of->which)
    NUMBER(bias), NUMBER(lo), NUMBER(hi), NUMBER(scale), NUMBER(zero), NUMBER(back_zero), NUMBER(back_scale);
    NUMBER(residual), NUMBER(out), NUMBER(times), NUMBER(plus), NUMBER(later);
    NUMBER(scale_b), NUMBER(scale_y), NUMBER(each);
#undef NUMBER
    r->source = bytes(l, &of->source), r->more = bytes(l, &of->more);
    r->low = of->low, r->high = of->high, r->bias_n = of->bias_n, r->scale_n = of->scale_n;
    r->alike = of->alike, r->by_row = of->by_row, r->reads = of->reads, r->reads_more = of->reads_more;
    r->one_piece = of->one_piece;
    r->run = of->form == HONE_EPILOGUE_BACK ? kernel->back
             : floats                       ? kernel->f32
             : is_signed                    ? kernel->i8
                                            : kernel->u8;
    if (of->form == HONE_EPILOGUE_REQUANTIZE)
        r->requantize = is_signed ? kernel->requantize_i8 : kernel->requantize_u8;
    if (of->form == HONE_EPILOGUE_FINISH) r->finish = kernel->finish;
    if (of->activation != HONE_ACTIVATE_COUNT) {
        r->which = of->activation, r->alpha = of->alpha, r->beta = of->beta;
        r->activate = act->run[r->which], r->gate = act->gate ? act->gate[r->which] : NULL;
    }
    hone_then_fn *const then[] = {[HONE_THEN_NOTHING] = NULL,
                                  [HONE_THEN_LINEAR] = act->then,
                                  [HONE_THEN_FLOOR] = act->floor,
                                  [HONE_THEN_GATE] = kernel->gate};
    r->then = then[of->then];
    if (of->before && !(r->before = lower(l, c, of->before))) return NULL;
    if (of->inner && !(r->inner = lower(l, c, of->inner))) return NULL;
    if (of->given) {
        const hone_match_epilogue *byte = of->inner ? of->inner : of;
        r->table = hone_table_of(l->arena, c, l->q->stage, of->given, byte->out.dtype == HONE_DTYPE_I8);
        if (!r->table) return NULL;
    }
    return l->fits ? r : NULL;
}
static hone_cpu_epilogue *make(hone_arena *a, const hone_cpu_call *c, hone_epilogue_query *q) {
    q->of = &c->sized, q->constant = hone_cpu_seen, q->constants = c;
    lowering l = {a, q, true};
    const hone_match_epilogue *of = hone_match_epilogue_of(a, q);
    return of ? lower(&l, c, of) : NULL;
}
hone_cpu_epilogue *hone_epilogue_match(hone_arena *a, const hone_cpu_call *c, const hone_match_contraction *m,
                                       int stage, int acc, bool columns, bool then) {
    hone_epilogue_query q = {.slots = &m->slots,
                             .stage = stage,
                             .acc = acc,
                             .group_m = m->group_m,
                             .group_b = m->group_b,
                             .n_m = m->n_m,
                             .n_batch = m->n_batch,
                             .first_n = m->group_n[0],
                             .columns = columns,
                             .then = then};
    return make(a, c, &q);
}
hone_cpu_epilogue *hone_epilogue_elements(hone_arena *a, const hone_cpu_call *c, const hone_slots_of *slots,
                                          int stage, int first_n) {
    int rows[HONE_MAX_SLOTS];
    for (int k = 0; k < first_n; k++) rows[k] = k;
    hone_epilogue_query q = {.slots = slots,
                             .stage = stage,
                             .acc = -1,
                             .group_m = rows,
                             .n_m = first_n,
                             .first_n = first_n,
                             .columns = first_n > 0};
    return make(a, c, &q);
}
