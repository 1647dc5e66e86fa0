/* SPDX-License-Identifier: Apache-2.0
   contract_int_indirect: 8-bit products whose rows are multiplied where they lie, piece by piece
   (kernels/gemm.h, taps): convolutions with few columns, where to pack rows takes as long as to multiply
   them; any at all where the kernel takes bytes as they are, and to pack them brings nothing. Pieces outside
   of the image are read from a row of zero points. */
#include "base/round.h"
#include "device/cpu/contract_int.h"

/* Where bytes are flipped or loads are many, more columns pay for packed rows (Neoverse-N1: resnet18 loses by
   48, and gains nothing by 96); fewer bytes a piece are not worth a load. */
enum { MOST_COLUMNS = 64, LEAST_PIECE = 8, MOST_TAPS = 32 };

/* A matrix unit multiplies eight times as fast, but wants rows in panels: pieces shorter than its steps are
   copied one by one, twelve cycles each, where there is more than one. Cycles a row, about, of both. */
static bool unit_pays(const hone_contract *d, const hone_gemm_i8 *unit) {
    const double columns = (double)hone_ceil_div(d->of.n, unit->nr),
                 steps = (double)hone_ceil_div(d->of.k, unit->deep),
                 copies = d->of.piece % unit->deep ? 12.0 * (double)d->of.taps : (double)d->of.taps;
    return d->of.taps == 1 ||
           copies + 3 * columns * (steps + 1) < (double)d->of.k / 8 * (double)((d->of.n + 15) / 16);
}
bool hone_contract_int_indirect(hone_arena *arena, hone_contract *d) {
    const hone_gemm_i8 *kernel = hone_gemm_i8_indirect_best();
    const bool as_is = kernel && kernel->run_u && !d->i8->flip_a;
    if (!kernel || (d->i8->kernel->deep > kernel->deep && (!as_is || unit_pays(d, d->i8->kernel))) ||
        !d->packed_b || d->packed_a || d->of.m < kernel->mr || (!as_is && d->of.n > MOST_COLUMNS) ||
        d->of.piece < LEAST_PIECE || d->of.piece % 4 || d->of.taps > MOST_TAPS || d->of.m > 1 << 20)
        return true;
    for (int k = 0; k < d->of.n_batch; k++)
        for (int q = 0; q < d->a.n_bounded; q++)
            if (d->by[k].edge[q]) return true; /* other batches would be outside elsewhere */
    int64_t *at = HONE_NEW_N(arena, int64_t, (size_t)d->of.taps);
    uint32_t *outside = d->a.n_bounded ? hone_arena_raw(arena, sizeof *outside * (size_t)d->of.m) : NULL;
    if (!at || (d->a.n_bounded && !outside)) return false;
    const hone_standing w = {{0}, 0, 0, 0, 0, 0, 0, {0}};
    for (int64_t t = 0; t < d->of.taps; t++) at[t] = d->at_k_a[t * d->of.piece];
    for (int64_t i = 0; outside && i < d->of.m; i++) {
        outside[i] = 0;
        for (int64_t t = 0; t < d->of.taps && !hone_contract_all_inside(d, &w, i); t++)
            outside[i] |= (uint32_t)!hone_contract_inside(d, &w, i, t * d->of.piece) << t;
    }
    d->i8->indirect_at = at, d->i8->indirect_outside = outside;
    d->i8->kernel = kernel, d->i8->run = kernel->run_u ? kernel->run_u : kernel->run, d->mr = kernel->mr,
    d->nr = kernel->nr;
    return true;
}
/* Rows m0 … times n columns of the panels at b. beyond: a piece of zero points. */
void hone_contract_int_indirect_run(const hone_contract *d, const uint8_t *a, int64_t m0, int64_t m,
                                    const uint8_t *beyond, const uint8_t *b, int64_t n, int32_t *c,
                                    ptrdiff_t stride) {
    const hone_gemm_i8_indirect rows = {.m = m,
                                        .taps = d->of.taps,
                                        .piece = d->of.piece,
                                        .a = a,
                                        .row = d->at_m_a + m0,
                                        .at = d->i8->indirect_at,
                                        .outside =
                                            d->i8->indirect_outside ? d->i8->indirect_outside + m0 : NULL,
                                        .beyond = beyond,
                                        .flip = d->i8->flip_a};
    for (int64_t j = 0; j < n; j += d->nr, b += d->nr * hone_contract_int_groups(d) * 4)
        d->i8->kernel->run_indirect(&rows, b, n - j < d->nr ? (int)(n - j) : d->nr, c + j, stride);
}
