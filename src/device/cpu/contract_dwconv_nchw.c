/* SPDX-License-Identifier: Apache-2.0
   contract_dwconv_nchw: depthwise convolution of images that lie plane by plane (kernels/gemm.h), found in
   the subscripts of a contraction. Those whose channels are last are contract_dwconv_rows.c's and
   contract_run.c's. */
#include "base/round.h"
#include "device/cpu/contract_dwconv.h"

/* One row of A a batch, and B a window over a plane: N is (oy, ox) or (ox), K is (1, ky, kx) or (1, kx). */
static bool find(hone_contract *d) {
    const hone_slots_of *w = &d->of.slots;
    int in_n[2] = {-1, -1}, in_k[2] = {-1, -1}, nn = 0, nk = 0;
    for (int k = 0; k < d->of.n_n; k++)
        if (w->extent[d->of.group_n[k]] > 1 || k == d->of.n_n - 1) {
            if (nn == 2) return false;
            in_n[nn++] = d->of.group_n[k];
        }
    for (int k = w->n_domain; k < w->n; k++)
        if (w->extent[k] > 1) {
            if (nk == 2) return false;
            in_k[nk++] = k;
        }
    int oy = nn == 2 ? in_n[0] : -1, ox = d->of.group_n[d->of.n_n - 1], ky = -1, kx = -1;
    if (nk == 2) ky = in_k[0], kx = in_k[1];
    else if (nk == 1) { /* along which way does it go? */ bool along_x = false;
        for (int q = 0; q < d->b.n_bounded; q++)
            along_x |= d->b.bounded[q].k[in_k[0]] && d->b.bounded[q].k[ox];
        if (!d->b.n_bounded) return false;
        *(along_x ? &kx : &ky) = in_k[0];
    } else return false;
    hone_dwconv_nchw_shape *s = &d->dwconv_nchw->shape;
    *s = (hone_dwconv_nchw_shape){.h = 1,
                                  .w = 1,
                                  .oh = oy < 0 ? 1 : w->extent[oy],
                                  .ow = w->extent[ox],
                                  .kh = ky < 0 ? 1 : w->extent[ky],
                                  .kw = kx < 0 ? 1 : w->extent[kx],
                                  .sh = 1,
                                  .sw = 1,
                                  .dh = 1,
                                  .dw = 1};
    /* strides and pads follow from the bounded subscripts; an unbounded direction has no window to see */
    d->dwconv_nchw->step = 1; /* floats: unit stride along x */
    bool seen_x = false, seen_y = oy < 0 && ky < 0;
    int64_t start = d->b.at.c, row_pitch = 0;
    for (int q = 0; q < d->b.n_bounded; q++) {
        const hone_affine *f = d->b.bounded + q;
        bool x = f->k[ox] != 0, y = (oy >= 0 && f->k[oy] != 0) || (ky >= 0 && f->k[ky] != 0 && !x);
        if (x && !y) {
            if ((ky >= 0 && f->k[ky]) || f->k[ox] <= 0 || (kx >= 0 && f->k[kx] <= 0)) return false;
            s->w = d->b.size[q], s->sw = f->k[ox], s->dw = kx < 0 ? 1 : f->k[kx], s->pw = -f->c,
            seen_x = true;
        } else if (y && !x) {
            if ((kx >= 0 && f->k[kx]) || (oy >= 0 && f->k[oy] <= 0) || (ky >= 0 && f->k[ky] <= 0))
                return false;
            s->h = d->b.size[q], s->sh = oy < 0 ? 1 : f->k[oy], s->dh = ky < 0 ? 1 : f->k[ky], s->ph = -f->c,
            seen_y = true;
        } else return false;
    }
    if (!seen_x) { /* never outside along x: a window whose steps the addresses tell */
        s->sw = d->b.at.k[ox], s->dw = kx < 0 ? 1 : d->b.at.k[kx], s->pw = 0;
        if (s->sw <= 0 || s->dw <= 0) return false;
        if (d->of.integers && kx >= 0 && (s->sw % s->dw == 0 || s->dw % s->sw == 0))
            d->dwconv_nchw->step = s->sw < s->dw ? s->sw : s->dw, s->sw /= d->dwconv_nchw->step,
            s->dw /= d->dwconv_nchw->step;
        s->w = (s->ow - 1) * s->sw + (s->kw - 1) * s->dw + 1;
    } else {
        if (d->of.integers && d->b.at.k[ox] > 0 && d->b.at.k[ox] % s->sw == 0)
            d->dwconv_nchw->step = d->b.at.k[ox] / s->sw;
        if (d->b.at.k[ox] != s->sw * d->dwconv_nchw->step ||
            (kx >= 0 && d->b.at.k[kx] != s->dw * d->dwconv_nchw->step))
            return false;
        start += s->pw * d->dwconv_nchw->step;
    }
    if (!seen_y) {
        int64_t by = oy >= 0 ? d->b.at.k[oy] : 0, bk = ky >= 0 ? d->b.at.k[ky] : 0,
                g = by && bk ? (by % bk == 0   ? bk
                                : bk % by == 0 ? by
                                               : 0)
                    : by     ? by
                             : bk;
        if (g <= 0) return false;
        s->sh = by ? by / g : 1, s->dh = bk ? bk / g : 1,
        s->h = (s->oh - 1) * s->sh + (s->kh - 1) * s->dh + 1, row_pitch = g;
    } else if (oy >= 0 || ky >= 0) {
        int64_t by = oy >= 0 ? d->b.at.k[oy] / s->sh : 0, bk = ky >= 0 ? d->b.at.k[ky] / s->dh : 0;
        row_pitch = by ? by : bk;
        if (row_pitch <= 0 || (oy >= 0 && d->b.at.k[oy] != row_pitch * s->sh) ||
            (ky >= 0 && d->b.at.k[ky] != row_pitch * s->dh))
            return false;
        start += s->ph * row_pitch;
    }
    /* the kernel's own weights in a row */
    if (kx >= 0 && d->a.at.k[kx] != 1) return false;
    if (ky >= 0 && d->a.at.k[ky] != s->kw) return false;
    s->xs = (ptrdiff_t)row_pitch, s->ys = (ptrdiff_t)s->ow;
    d->b.at.c = start;
    d->dwconv_nchw->kernel = hone_dwconv_nchw_best();
    d->dwconv_nchw->rows = s->oh;
    while (d->dwconv_nchw->rows > 4 && d->dwconv_nchw->rows * s->ow > 16384)
        d->dwconv_nchw->rows = (d->dwconv_nchw->rows + 1) / 2;
    return true;
}
hone_status hone_contract_dwconv_nchw(hone_arena *arena, hone_contract *d, bool *is) {
    if (!(d->dwconv_nchw = HONE_NEW(arena, struct hone_contract_dwconv_nchw))) return hone_steps_no_memory();
    if (!(*is = find(d))) d->dwconv_nchw = NULL;
    return HONE_OK;
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = s->data;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(s->ref[t], base);
    int64_t parts = hone_ceil_div(d->dwconv_nchw->shape.oh, d->dwconv_nchw->rows), batch = number / parts,
            y0 = number % parts * d->dwconv_nchw->rows;
    int64_t y1 = y0 + d->dwconv_nchw->rows < d->dwconv_nchw->shape.oh ? y0 + d->dwconv_nchw->rows
                                                                      : d->dwconv_nchw->shape.oh;
    const hone_standing here = hone_contract_stand(d, batch);
    const float *w = (const float *)at[d->a.tensor] + d->a.at.c + here.a,
                *x = (const float *)at[d->b.tensor] + d->b.at.c + here.b;
    float *c = scratch;
    int64_t n0 = y0 * d->dwconv_nchw->shape.ow, n = (y1 - y0) * d->dwconv_nchw->shape.ow;
    d->dwconv_nchw->kernel->run(&d->dwconv_nchw->shape, x, w, c - n0, y0, y1);
    return hone_contract_epilogue(d, at, 0, &here, 0, 1, n0, n, c, n, NULL, (char *)scratch + d->c_bytes);
}
void hone_contract_dwconv_nchw_step(hone_contract *d, hone_step *s) {
    d->c_bytes = hone_round_up64(sizeof(float) * (size_t)(d->dwconv_nchw->rows * d->dwconv_nchw->shape.ow));
    s->tactic = "depthwise", s->flush = true, s->tile = tile;
    s->tiles = d->of.batch * hone_ceil_div(d->dwconv_nchw->shape.oh, d->dwconv_nchw->rows);
    s->serial = d->of.batch * d->of.n * d->of.k < 200000;
    s->scratch_bytes = d->c_bytes + (d->epilogue_code ? hone_tilecode_scratch(d->epilogue_code) : 0);
}
