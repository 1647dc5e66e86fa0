/* SPDX-License-Identifier: Apache-2.0
   contract_choose: sums of products (loops/match_contraction.h) as matrix multiplications: MatMul, Gemm,
   convolutions, attention, the input side of recurrent cells, and any user's op of that form. The tables of a
   contraction, what follows it, and by which of the contract_*, direct_conv and winograd files it goes.

   Operands are packed into panels (kernels/gemm.h) on the fly, constants once a model. Where B's subscripts
   may fall outside (a convolution's padding), packing writes zeros: an implicit im2col that never exists as a
   whole. Finished blocks go through the stage that reads t, as its epilogue. */
#include "device/cpu/contract_dwconv.h"
#include "device/cpu/contract_half.h"
#include "device/cpu/contract_int.h"
#include "device/cpu/direct_conv.h"
#include "device/cpu/transpose.h"
#include "device/cpu/winograd.h"
#include "device/wisdom.h"

#include <math.h>
#include <string.h>

/* rows in no pieces are found one by one (gathered), not copied, up to so many panels and so deep */
enum { GATHERED_PANELS = 4, GATHERED_DEPTH = 256 };
/* The numbers that a choice is made for, and the choice: wisdom's where there is one, else what stands there
   already. */
static hone_problem problem_of(const hone_contract *d) {
    hone_problem p = {.kind = d->dwconv_nchw   ? HONE_PROBLEM_PLANE
                              : d->of.integers ? HONE_PROBLEM_BYTES
                                               : HONE_PROBLEM_SUM};
    hone_problem_name(&p, d->dwconv_nchw   ? d->dwconv_nchw->kernel->name
                          : d->dwconv_i8   ? d->dwconv_i8->kernel->name
                          : d->of.integers ? d->i8->kernel->name
                          : d->dwconv_nhwc ? d->dwconv_nhwc->name
                                           : d->kernel->name);
    if (d->dwconv_nchw) {
        const int64_t number[] = {d->of.batch,
                                  d->dwconv_nchw->shape.oh,
                                  d->dwconv_nchw->shape.ow,
                                  d->dwconv_nchw->shape.kh,
                                  d->dwconv_nchw->shape.kw,
                                  d->of.integers};
        memcpy(p.number, number, sizeof number);
        return p;
    }
    const int64_t number[] = {d->of.m,
                              d->of.n,
                              d->of.k,
                              d->of.batch,
                              d->of.taps,
                              d->of.piece,
                              !!d->packed_a,
                              !!d->packed_b,
                              !!d->dwconv_nhwc,
                              d->direct,
                              d->of.integers ? 0 : hone_winograd_able(d)};
    memcpy(p.number, number, (d->of.integers ? 8 : 11) * sizeof *number);
    if (d->of.integers) p.mr = d->mr, p.nr = d->nr;
    else
        p.packs_a = d->kernel->pack_a != NULL, p.vector = d->kernel->vector, p.widths = d->kernel->widths,
        memcpy(p.rows, d->kernel->mr, sizeof p.rows);
    return p;
}
static void follow(hone_contract *d, const hone_choice *c, int threads) {
    const int64_t *knob = c->knob;
    if (d->dwconv_nchw) d->dwconv_nchw->rows = knob[0];
    else if (d->of.integers) d->mt = knob[HONE_BYTES_ROWS], d->nt = knob[HONE_BYTES_COLUMNS];
    else {
        const int v = (int)knob[HONE_KNOB_VECTORS];
        d->nr = v * d->kernel->vector, d->mr = d->kernel->mr[v - 1];
        if (knob[HONE_KNOB_THREADS] == threads) d->mt = knob[HONE_KNOB_ROWS], d->nt = knob[HONE_KNOB_COLUMNS];
        /* other numbers of threads are cut as estimated: the same bits come out */
        else hone_contract_blocks(d, threads);
        d->kc = knob[HONE_KNOB_DEPTH];
        d->way = knob[HONE_KNOB_TILE] ? (int)knob[HONE_KNOB_TILE] : 1;
    }
}
static void chose(const hone_contract *d, int threads, hone_decision *to) { /* what it came to */
    if (d->dwconv_nchw) to->choice = (hone_choice){{d->dwconv_nchw->rows}};
    else if (d->of.integers) to->choice = (hone_choice){{d->mt, d->nt}};
    else
        to->choice =
            (hone_choice){{d->nr / d->kernel->vector, d->mt, d->nt, d->kc, hone_winograd_tile(d), threads}};
}

/* A zero point moves with the rows (or columns) and batches of its own operand only. */
static bool zero_point(hone_template_builder *s, const hone_cpu_call *c, hone_contract *d, int32_t x,
                       const int *along, int n, hone_zero_point *out) {
    out->tensor = -1;
    if (x < 0) return true;
    hone_affine at;
    if (!hone_affine_inside(&c->sized, &d->of.slots, x, &at)) return false;
    out->tensor = c->instance->x[x].a,
    out->is_signed = c->instance->tensor[out->tensor].dtype == HONE_DTYPE_I8, out->c = at.c;
    bool moves = false;
    for (int k = 0; k < n; k++) moves |= at.k[along[k]] != 0;
    if (moves && !(out->at = hone_affine_table(s->arena, &d->of.slots, along, n, &at))) return false;
    int64_t many = moves ? 1 : 0;
    for (int k = 0; moves && k < n; k++) many *= d->of.slots.extent[along[k]];
    out->in_row = true;
    for (int64_t k = 0; k < many; k++) out->in_row &= out->at[k] == k;
    for (int k = 0; k < d->of.n_batch; k++)
        out->by_batch[k] = at.k[d->of.group_b[k]], at.k[d->of.group_b[k]] = 0;
    for (int k = 0; k < n; k++) at.k[along[k]] = 0;
    for (int k = 0; k < d->of.slots.n; k++)
        if (at.k[k] && d->of.slots.extent[k] > 1) return false;
    return true;
}
static bool integers(hone_template_builder *s, const hone_cpu_call *c, hone_contract *d) {
    const hone_tensor *t = c->instance->tensor;
    const hone_match_contraction *of = &d->of;
    struct hone_contract_int *i = d->i8;
    i->kernel = hone_gemm_i8_best(), i->requantize = hone_epilogue_best();
    /* constant weights are mostly i8 with a zero point of 0: taken as they are, rows need no sums */
    const bool other = of->columns_known && i->kernel->run_u;
    i->run = other ? i->kernel->run_u : i->kernel->run;
    i->a_signed = d->dwconv_i8 ? d->dwconv_i8->kernel->a_signed : !other,
    i->b_signed = d->dwconv_i8 || other || i->kernel->b_signed;
    i->flip_a = (t[d->a.tensor].dtype == HONE_DTYPE_I8) == i->a_signed ? 0 : 0x80;
    i->flip_b = (t[d->b.tensor].dtype == HONE_DTYPE_I8) == i->b_signed ? 0 : 0x80;
    if (!zero_point(s, c, d, of->zero_a, of->group_m, of->n_m, &i->zero_a) ||
        !zero_point(s, c, d, of->zero_b, of->group_n, of->n_n, &i->zero_b))
        return false;
    /* what is outside is one number */
    return !((d->a.n_bounded || d->dwconv_i8) && i->zero_a.at) && !(d->b.n_bounded && i->zero_b.at);
}
/* Tables of offsets for what the match says. */
static bool tables(hone_arena *a, hone_contract *d) {
    const hone_match_contraction *of = &d->of;
    const hone_slots_of *w = &of->slots;
    const int *m = of->group_m, *n = of->group_n, *k = of->group_k, nm = of->n_m, nk = of->n_k;
    hone_affine flat = {0}; /* strides of the flattened domain, which the epilogue counts in */
    int64_t step = 1;
    for (int q = w->n_domain - 1; q >= 0; q--) flat.k[q] = step, step *= w->extent[q];
    bool made = (d->at_m_a = hone_affine_table(a, w, m, nm, &d->a.at)) &&
                (d->at_m_domain = hone_affine_table(a, w, m, nm, &flat)) &&
                (d->at_k_a = hone_affine_table(a, w, k, nk, &d->a.at)) &&
                (d->at_k_b = hone_affine_table(a, w, k, nk, &d->b.at)) &&
                (d->at_row_b = hone_affine_table(a, w, n, of->outer, &d->b.at));
    for (int q = 0; q < of->n_batch; q++) {
        const int slot = of->group_b[q];
        d->by[q].a = d->a.at.k[slot], d->by[q].b = d->b.at.k[slot], d->by[q].domain = flat.k[slot];
        for (int e = 0; e < d->a.n_bounded; e++) d->by[q].edge[e] = d->a.bounded[e].k[slot];
    }
    for (int q = 0; q < d->a.n_bounded && made; q++)
        made = (d->at_m_a_bounded[q] = hone_affine_table(a, w, m, nm, &d->a.bounded[q])) &&
               (d->at_k_a_bounded[q] = hone_affine_table(a, w, k, nk, &d->a.bounded[q]));
    for (int q = 0; q < d->b.n_bounded && made; q++) {
        d->run_bounded[q] = d->b.bounded[q].k[n[of->n_n - 1]];
        made = (d->at_k_bounded[q] = hone_affine_table(a, w, k, nk, &d->b.bounded[q])) &&
               (d->at_row_bounded[q] = hone_affine_table(a, w, n, of->outer, &d->b.bounded[q]));
    }
    return made;
}
static hone_status analyse(hone_template_builder *s, const hone_cpu_call *c, int stage, bool epilogue,
                           bool begun, hone_contract *d, bool *is) {
    *is = false;
    if (!hone_match_contraction_of(&c->sized, stage, epilogue, begun, &d->of)) return HONE_OK;
    d->a = d->of.a, d->b = d->of.b;
    if (d->of.shares_n && d->of.n > HONE_CONTRACT_KC) return HONE_OK;
    if (d->of.integers && !(d->i8 = HONE_NEW(s->arena, struct hone_contract_int)))
        return hone_steps_no_memory();
    if (d->of.shares_n && d->of.integers) {
        if (!(d->dwconv_i8 = HONE_NEW(s->arena, struct hone_dwconv_int))) return hone_steps_no_memory();
        d->dwconv_i8->kernel = hone_dwconv_i8_best();
    } else if (d->of.shares_n) {
        if (!(d->dwconv_rows = HONE_NEW(s->arena, struct hone_contract_dwconv_rows)))
            return hone_steps_no_memory();
        d->dwconv_nhwc = hone_dwconv_nhwc_best();
    }
    if (d->of.integers && !integers(s, c, d)) return HONE_OK;
    if (!tables(s->arena, d)) return hone_steps_no_memory();
    *is = true;
    return HONE_OK;
}
/* Where rows of sums go when they are the result itself: plain floats in a row. */
static hone_status place_rows(hone_template_builder *s, const hone_cpu_call *c, int stage, hone_contract *d,
                              bool *fits) {
    const hone_stage *st = c->instance->stage + stage;
    const hone_tensor *t = c->instance->tensor + st->tensor;
    *fits = false;
    if (t->dtype != (d->of.integers ? HONE_DTYPE_I32 : HONE_DTYPE_F32)) return HONE_OK;
    int64_t step = 1;
    for (int k = d->of.slots.n_domain - 1; k >= 0; k--) {
        bool in_n = d->of.n_n && k >= d->of.group_n[0];
        if (in_n && d->of.slots.extent[k] > 1 && c->stride[st->tensor][d->of.slots.dim[k]] != step)
            return HONE_OK;
        if (in_n) step *= d->of.slots.extent[k];
    }
    hone_affine out = {0};
    for (int k = 0; k < d->of.slots.n_domain; k++) out.k[k] = c->stride[st->tensor][d->of.slots.dim[k]];
    for (int k = 0; k < d->of.n_batch; k++) d->by[k].out = out.k[d->of.group_b[k]];
    if (!(d->at_m_out = hone_affine_table(s->arena, &d->of.slots, d->of.group_m, d->of.n_m, &out)))
        return hone_steps_no_memory();
    *fits = true;
    return HONE_OK;
}
hone_status hone_contract_over(hone_template_builder *s, const hone_cpu_call *c, int stage, bool begun,
                               hone_contract **out, int64_t *tiles, size_t *scratch_bytes) {
    *out = NULL;
    if (c->instance->stage[stage].reduce != HONE_REDUCE_SUM) return HONE_OK;
    hone_contract *d = HONE_NEW(s->arena, hone_contract);
    bool is, fits = false;
    if (!d) return hone_steps_no_memory();
    HONE_TRY(analyse(s, c, stage, false, begun, d, &is));
    if (!is) return HONE_OK;
    d->kernel = hone_gemm_f32_best();
    hone_contract_panel(d, 1);
    if (begun && d->of.m == 1 && d->nr > 2 * d->kernel->vector &&
        c->how.threads >= (d->kernel->pack_a ? 2 : 8))
        d->nr = 2 * d->kernel->vector; /* more to share: one row has the same bits by any width */
    d->out = c->instance->stage[stage].tensor;
    HONE_TRY(place_rows(s, c, stage, d, &fits));
    if (!fits || !hone_contract_packable(c, d, false, s->n_ref) || d->of.over_b || d->of.stored_a)
        return HONE_OK; /* weights known ahead: the only case worth it */
    d->packed_b = s->n_ref;
    HONE_TRY(hone_contract_keep_packed(s, d));
    d->direct = d->of.alpha == 1;
    hone_contract_blocks(d, 1); /* pieces of a recurrence are too short to share */
    hone_step step = {0};
    hone_contract_step(d, &step);
    *tiles = step.tiles, *scratch_bytes = step.scratch_bytes, *out = d;
    return HONE_OK;
}
/* Few channels: pixels as columns, wherever the weights are. */
static hone_status find_planes(hone_template_builder *s, const hone_cpu_call *c, hone_contract *d) {
    if (d->of.integers || (!d->packed_b && !hone_contract_packable(c, d, true, s->n_ref))) return HONE_OK;
    if (d->packed_b) return hone_direct_conv_find(s, d, d->of.group_m, d->of.n_m, true);
    HONE_TRY(hone_direct_conv_find(s, d, d->of.group_n, d->of.n_n, false));
    if (d->direct_conv) d->packed_a = s->n_ref;
    return HONE_OK;
}
/* What may be stored as bf16: A, and where rows are finished by a kernel of this file's, the residual and the
   result; each if it is nothing else as well. */
static uint64_t halves_of(const hone_contract *d, uint64_t ends) {
    const hone_cpu_epilogue *s = d->epilogue;
    const int more = d->direct && s ? s->residual.tensor : -1;
    uint64_t may = 0;
    if (d->direct && d->out < 63) may |= (uint64_t)1 << d->out;
    if (more >= 0 && more < 63) may |= (uint64_t)1 << more;
    if (d->a.tensor >= 0 && d->a.tensor < 63 && (d->a.tensor == more || !(ends >> d->a.tensor & 1)))
        may |= (uint64_t)1 << d->a.tensor;
    if (!s) return may;
    const hone_row_number *const number[] = {&s->bias, &s->lo, &s->hi, &s->times, &s->plus, &s->later};
    for (int k = 0; k < (s->then ? 6 : 3); k++)
        if (number[k]->tensor >= 0) may &= ~((uint64_t)1 << number[k]->tensor);
    return may;
}
/* Bytes that lie channels first, where channels last are wanted: what is read, what is made, and the call as
   it would be. */
typedef struct {
    hone_transposed in, out;
    hone_cpu_call call;
    hone_strides stride[HONE_MAX_TENSORS];
} transposing;
static hone_status contract(hone_template_builder *s, const hone_cpu_call *c, const transposing *moved,
                            int stage, int *end, bool *done) {
    hone_contract *d = HONE_NEW(s->arena, hone_contract);
    bool is;
    if (!d) return hone_steps_no_memory();
    const hone_stage *st = c->instance->stage + stage;
    bool epilogue = stage + 1 < c->instance->n_stage && st[1].follows, fits = true;
    HONE_TRY(analyse(s, c, stage, epilogue, false, d, &is));
    if (!is) return HONE_OK;
    d->kernel = hone_gemm_f32_best();
    if (d->dwconv_i8) d->mr = HONE_DWCONV_I8_ROWS, d->nr = (int)d->of.n;
    else if (d->of.integers) d->mr = d->i8->kernel->mr, d->nr = d->i8->kernel->nr;
    else hone_contract_panel(d, c->how.threads);
    if (!epilogue) HONE_TRY(place_rows(s, c, stage, d, &fits));
    if (!fits) return HONE_OK;
    if (d->of.plane) {
        HONE_TRY(hone_contract_dwconv_nchw(s->arena, d, &is));
        if (d->of.stored_a || d->of.stored_b || !is || (d->of.integers && d->of.k > 256))
            return HONE_OK; /* 256 * 255 * 255 < 2^24: exact in f32 */
    } else if (d->dwconv_nhwc || d->dwconv_i8) {
        if (!hone_contract_packable(c, d, false, s->n_ref) || d->of.k > HONE_CONTRACT_KC || d->of.k < 2 ||
            (d->dwconv_i8 && d->of.batch_b != 1))
            return HONE_OK;
        d->packed_b = s->n_ref;
    } else {
        double work = (double)d->of.m * (double)d->of.n * (double)d->of.k * (double)d->of.batch;
        int next = s->n_ref;
        if (hone_contract_packable(c, d, false, next)) d->packed_b = next++;
        /* a kernel that reads A unpacked needs no copy */
        bool rows = d->of.integers ? !(d->packed_b && d->of.m < 2 * d->mr) : !d->of.piece || d->of.stored_a;
        if (rows && hone_contract_packable(c, d, true, next)) d->packed_a = next;
        HONE_TRY(find_planes(s, c, d));
        /* B's columns lie in a row: packing is copying */
        bool walks = d->of.run_step == 1 || d->b.n_bounded || d->direct_conv;
        if (work < 512 || (d->a.n_bounded && !d->packed_b && (d->of.integers || d->of.m < 4)) ||
            (d->of.m < 4 && !d->packed_b && !walks) || (d->of.m == 1 && !d->packed_b && d->of.n < 64) ||
            d->of.k < 2)
            return HONE_OK; /* packing would cost more than it saves */
        if ((d->of.stored_a && (!d->packed_a || d->packed_b)) || (d->of.stored_b && !d->packed_b))
            return HONE_OK; /* tile code widens them, too */
    }
    d->out = st->tensor;
    int acc = -1;
    if (epilogue) {
        acc = st->tensor, d->out = c->instance->stage[stage + 1].tensor;
        const hone_match_contraction *of = &d->of;
        const bool columns = !d->dwconv_nchw && d->of.alpha == 1; /* where ends are the matrix kernel's own */
        /* what follows an activation of a square tile is tile code */
        const int able = hone_winograd_able(d);
        const bool then = columns && !d->of.integers && !hone_gemm_half_best(c->how.precision) &&
                          (!able || able >= HONE_SUM_LINE);
        if (d->of.slots.injective)
            d->epilogue = hone_epilogue_match(s->arena, c, of, stage + 1, acc, columns, then);
        /* nobody reads its bytes back there */
        if (d->epilogue && d->epilogue->inner && d->i8 && d->i8->zero_a.at) d->epilogue = NULL;
        if (moved && !(d->of.integers && d->packed_b && d->of.piece &&
                       (moved->out.tensor < 0 || (d->epilogue && d->epilogue->by_row))))
            return HONE_OK;
        if (!d->epilogue) {
            hone_status made = hone_cpu_tilecode(s, c, stage + 1, acc, &d->epilogue_code);
            if (made == HONE_NOT_SUPPORTED) return HONE_OK;
            HONE_TRY(made);
            /* a store that may meet itself must run in order, in one piece */
            if (!d->of.slots.injective && hone_tilecode_whole(d->epilogue_code)) return HONE_OK;
        }
        *end = stage + 2;
    }
    d->direct = !d->of.integers && !d->dwconv_nchw && d->of.alpha == 1 &&
                (d->epilogue ? d->epilogue->run == d->epilogue->kernel->f32 && d->epilogue->lo.same &&
                                   d->epilogue->hi.same
                             : !d->epilogue_code);
    /* to copy rows takes about as long as to multiply them with one or two panels */
    d->gathered = !d->of.integers && !d->dwconv_nchw && !d->of.piece && !d->packed_a &&
                  d->of.m > HONE_GEMM_SMALL_M && (d->kernel->pack_a || d->of.n <= GATHERED_PANELS * d->nr) &&
                  d->of.k <= GATHERED_DEPTH;
    if ((d->of.integers && d->packed_b) || d->gathered) d->outside = hone_contract_outside(s->arena, d);
    if (d->dwconv_i8) hone_dwconv_int_choose(s->arena, d);
    else if (d->of.integers && d->packed_b && !d->packed_a &&
             !(hone_contract_int_dot4(s->arena, d) && hone_contract_int_indirect(s->arena, d)))
        return hone_steps_no_memory();
    if (d->of.integers) hone_contract_int_blocks(d, c->how.threads);
    else if (!d->dwconv_nchw) hone_contract_blocks(d, c->how.threads);
    const hone_choice *choice = NULL;
    s->decision = NULL;
    if (c->how.precision == HONE_DTYPE_BF16) d->bf16_able = halves_of(d, epilogue ? st[1].uses : 0);
    if (c->how.precision == HONE_DTYPE_F16)
        HONE_TRY(hone_winograd_choose(s, d, c->how.threads, hone_gemm_half_best(HONE_DTYPE_F16)));
    bool half = false;
    if (!d->winograd) HONE_TRY(hone_contract_half_choose(s->arena, d, &c->how, &half));
    if (!half && !d->winograd) {
        const hone_problem problem = problem_of(d);
        HONE_TRY(hone_cpu_decide(s, c, &problem, &choice));
        if (choice) follow(d, choice, c->how.threads);
        HONE_TRY(hone_winograd_choose(s, d, c->how.threads, NULL));
    }
    /* what was measured is followed */
    if (half || d->winograd || (d->packed_b && (choice || !hone_direct_conv_pays(d)))) d->direct_conv = NULL;
    if (d->direct_conv) {
        s->decision = NULL, d->packed_a = d->packed_b ? 0 : d->packed_a;
        hone_direct_conv_cut(d, c->how.threads);
    }
    HONE_TRY(hone_contract_keep_packed(s, d));
    if (s->decision) chose(d, c->how.threads, s->decision);
    uint64_t uses = epilogue ? (st->uses | st[1].uses) & ~((uint64_t)1 << acc) : st->uses;
    *done = true;
    if (moved && moved->in.tensor >= 0) {
        HONE_TRY(hone_transpose_step(s, &moved->in, s->n_ref, false));
        if (!(st[1].uses >> d->a.tensor & 1)) uses &= ~((uint64_t)1 << d->a.tensor);
        uses |= (uint64_t)1 << s->n_ref, d->a.tensor = s->n_ref++;
    }
    if (d->winograd) return hone_winograd_steps(s, d, uses);
    if (!d->dwconv_nchw && !d->direct_conv && !d->packed_b && d->of.m > d->mt &&
        s->n_ref < HONE_MAX_REFS) { /* several blocks of rows want the same columns: pack them once */
        int64_t bytes = (int64_t)hone_contract_packed_bytes(d, false);
        if (bytes <= (int64_t)64 << 20) {
            d->shared = s->n_ref++;
            if (!d->of.integers) hone_contract_blocks(d, c->how.threads);
            if (choice) follow(d, choice, c->how.threads);
            if (s->decision) chose(d, c->how.threads, s->decision);
            hone_step_template pack = {.uses = (uint64_t)1 << d->b.tensor | (uint64_t)1 << d->shared,
                                       .buffer = d->shared,
                                       .bytes = bytes};
            hone_contract_pack_step(d, &pack.step);
            HONE_TRY(hone_cpu_add(s, pack));
            uses |= (uint64_t)1 << d->shared;
        }
    }
    if (d->half) HONE_TRY(hone_contract_half_before(s, c, d, &uses));
    hone_step_template part = {.step.data = d, .uses = uses, .buffer = -1};
    if (moved && moved->out.tensor >= 0) {
        part.uses = (uses & ~((uint64_t)1 << d->out)) | (uint64_t)1 << s->n_ref,
        d->epilogue->out.tensor = part.buffer = s->n_ref++;
        part.bytes = moved->out.batches * moved->out.channels * moved->out.pixels;
    }
    d->n_ref = s->n_ref;
    hone_contract_step(d, &part.step);
    HONE_TRY(hone_cpu_add(s, part));
    return part.buffer < 0 ? HONE_OK : hone_transpose_step(s, &moved->out, part.buffer, true);
}
/* Is it a product of bytes with constant weights that would gather what it reads byte by byte, or have pixels
   as columns? Then it is worth transposing images. */
enum { TRANSPOSE_DEPTH = 64, TRANSPOSE_COLUMNS = 16 };
static hone_status to_transpose(const hone_cpu_call *c, int stage, transposing *t, bool *any) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    hone_transposed out = {.tensor = -1};
    const bool epilogue = stage + 1 < in->n_stage && st[1].follows;
    *any = false;
    if (in->x[st->value].type != HONE_I32 || !epilogue || !c->constant) return HONE_OK;
    const bool result = hone_transpose_able(c, st[1].tensor, &out);
    hone_transposed some;
    bool read = false;
    for (int k = 0; k < in->n_tensor; k++)
        read |= in->tensor[k].role == HONE_ROLE_IN && !c->constant[k] && hone_transpose_able(c, k, &some);
    if (!result && !read) return HONE_OK;
    hone_template_builder look = {.arena = hone_arena_create()};
    hone_contract *d = look.arena ? HONE_NEW(look.arena, hone_contract) : NULL;
    bool is = false;
    const hone_status looked = d ? analyse(&look, c, stage, epilogue, false, d, &is) : hone_steps_no_memory();
    if (is && !d->of.plane && !d->dwconv_i8 && d->of.k >= TRANSPOSE_DEPTH) {
        const bool plain = !d->b.n_bounded && d->of.run_step == 1; /* columns that are copied as they lie */
        const bool columns = c->constant[d->b.tensor], rows = !columns && c->constant[d->a.tensor] && !plain;
        const int picture = columns ? d->a.tensor : d->b.tensor;
        *t = (transposing){.in.tensor = -1, .out.tensor = -1, .call = *c};
        if ((columns ? !d->of.piece && d->of.n >= TRANSPOSE_COLUMNS : rows && d->of.m >= TRANSPOSE_COLUMNS) &&
            !c->constant[picture]) {
            if (hone_transpose_able(c, picture, &some)) t->in = some;
            if (result && rows) t->out = out;
        }
        *any = t->in.tensor >= 0 || t->out.tensor >= 0;
    }
    hone_arena_destroy(look.arena);
    HONE_TRY(looked);
    memcpy(t->stride, c->stride, sizeof *c->stride * (size_t)in->n_tensor);
    t->call.stride = t->stride;
    if (*any && t->in.tensor >= 0) hone_transpose_strides(c, &t->in, t->stride[t->in.tensor]);
    if (*any && t->out.tensor >= 0) hone_transpose_strides(c, &t->out, t->stride[t->out.tensor]);
    return HONE_OK;
}
hone_status hone_cpu_contract(hone_template_builder *s, const hone_cpu_call *c, int stage, int *end,
                              bool *done) {
    *done = false;
    if (c->instance->stage[stage].reduce != HONE_REDUCE_SUM) return HONE_OK;
    transposing t;
    bool any = false;
    if (s->n_ref + 4 <= HONE_MAX_REFS) HONE_TRY(to_transpose(c, stage, &t, &any));
    if (any) HONE_TRY(contract(s, &t.call, &t, stage, end, done));
    return *done ? HONE_OK : contract(s, c, NULL, stage, end, done);
}
