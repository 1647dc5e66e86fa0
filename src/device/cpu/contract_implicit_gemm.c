/* SPDX-License-Identifier: Apache-2.0
   contract_implicit_gemm: a window of stride 1 over images that lie channels last, in bf16. A tile's pixels
   are copied once, so that its results are rows of that copy: lines of pixels follow on, zeros around them,
   and a place of the window is so many pixels away from the first. Channels go by slices, of 32 for AMX, all
   pixels of one before those of the next, and K goes slice by slice, in each of them place by place: a tile
   of A is 16 lines of cache in a row, and those of one slice serve all places of the window from L1.
   Otherwise every step would bring both factors from L2, whose 48 bytes a cycle are less than the unit takes.
   Which contractions are so, and the copy; contract_half.c multiplies. */
#include <string.h>

#include "device/cpu/contract_half.h"

static hone_implicit_gemm *window(const hone_contract *d) { return &d->half->implicit_gemm; }
/* Fills what the form says of d->half->window; returns how many lines of results an image has, 0: it is not
   of that form. */
static int64_t measure(hone_contract *d) {
    const int64_t run = d->of.m_run, piece = d->of.piece, lines = run ? d->of.m / run : 0,
                  slice = d->half->kernel->channel_block;
    if (!d->half->kernel->window || !d->direct || d->a.n_bounded != 2 || d->of.taps < 2 || !piece ||
        lines < 2 || d->of.m % run || hone_round_up(piece, slice) > 2 * piece)
        return 0;
    for (int k = 0; k < d->of.n_batch; k++)
        if (d->by[k].edge[0] || d->by[k].edge[1]) return 0;
    const int64_t *y = d->at_m_a_bounded[0], *x = d->at_m_a_bounded[1], line = d->at_m_a[run];
    int64_t high = 0, wide = 0, all = 1;
    while (all < lines && y[all * run] == all) all++;
    if (lines % all) return 0;
    for (int64_t m = 0; m < d->of.m; m++) {
        const int64_t here = m / run % all, picture = m / run / all * all * run;
        if (x[m] != m % run || y[m] != here ||
            d->at_m_a[m] != d->at_m_a[picture] + here * line + x[m] * piece)
            return 0;
    }
    for (int64_t t = 0; t < d->of.taps; t++) {
        const int64_t ky = d->at_k_a_bounded[0][t * piece], kx = d->at_k_a_bounded[1][t * piece];
        if (ky < 0 || kx < 0 || d->at_k_a[t * piece] != ky * line + kx * piece) return 0;
        high = ky > high ? ky : high, wide = kx > wide ? kx : wide;
    }
    window(d)->run = run, window(d)->pitch = run + wide, window(d)->high = high, window(d)->line = line;
    window(d)->channel_block = slice, window(d)->channel_blocks = hone_round_up(piece, slice) / slice;
    return all;
}
void hone_implicit_gemm_choose(hone_arena *arena, hone_contract *d, int64_t most) {
    const int64_t all = measure(d), piece = d->of.piece, slice = window(d)->channel_block;
    window(d)->lines = 0;
    if (!all) return;
    /* as many lines of results as there are in about `most` rows, in equal parts of an image */
    int64_t lines = most / window(d)->run;
    if (lines > all) lines = all;
    while (lines > 1 && all % lines) lines--;
    /* that would be too little at once */
    if (lines < 1 || 4 * lines * window(d)->run < 3 * (d->mt < d->of.m ? d->mt : d->of.m)) return;
    const int64_t rows = hone_round_up((lines - 1) * window(d)->pitch + window(d)->run, d->half->kernel->mr),
                  pixels = rows + window(d)->high * window(d)->pitch + window(d)->pitch - window(d)->run,
                  parts = d->of.taps * window(d)->channel_blocks;
    int64_t *at = hone_arena_raw(arena, sizeof *at * (size_t)parts),
            *place = hone_arena_raw(arena, sizeof *place * (size_t)d->of.k);
    if (!at || !place) return; /* there is another way */
    for (int64_t t = 0; t < parts; t++) {
        const int64_t k = t % d->of.taps * piece,
                      pixel = d->at_k_a_bounded[0][k] * window(d)->pitch + d->at_k_a_bounded[1][k];
        at[t] = (t / d->of.taps * pixels + pixel) * slice;
    }
    for (int64_t k = 0; k < d->of.k; k++)
        place[k] = (k % piece / slice * d->of.taps + k / piece) * slice + k % piece % slice;
    window(d)->lines = lines, d->mt = lines * window(d)->run, window(d)->rows = rows,
    window(d)->pixels = pixels;
    window(d)->at = at, window(d)->deep = parts * slice, d->half->place = place;
}

/* ---- the copy ------------------------------------------------------------------------------------------ */
/* n pixels, one after another, to their slices; what a last slice has more is zeros. */
static void deal(const hone_contract *d, const void *from, bool half, int64_t n, uint16_t *to) {
    enum { MOST = 32 };
    const int64_t piece = d->of.piece, slice = window(d)->channel_block;
    for (int64_t c = 0; c < piece; c += slice, to += window(d)->pixels * slice) {
        const int64_t have = piece - c < slice ? piece - c : slice;
        if (half && have == MOST && slice == MOST) { /* a line of cache, without a call */
            for (int64_t i = 0; i < n; i++)
                memcpy(to + i * MOST, (const uint16_t *)from + i * piece + c, sizeof *to * MOST);
            continue;
        }
        for (int64_t i = 0; i < n; i++) {
            const void *pixel = hone_element(from, half, i * piece + c);
            if (half) memcpy(to + i * slice, pixel, sizeof *to * (size_t)have);
            else d->half->kernel->narrow(pixel, to + i * slice, have);
            memset(to + i * slice + have, 0, sizeof *to * (size_t)(slice - have));
        }
    }
}
static void clear(const hone_contract *d, int64_t n, uint16_t *to) { /* n pixels */
    for (int64_t s = 0; s < window(d)->channel_blocks; s++)
        memset(to + s * window(d)->pixels * window(d)->channel_block, 0,
               sizeof *to * (size_t)(n * window(d)->channel_block));
}
void hone_implicit_gemm_take(const hone_contract *d, const float *a, bool half, int64_t m0, uint16_t *to) {
    const int64_t piece = d->of.piece, slice = window(d)->channel_block, pitch = window(d)->pitch,
                  lines = window(d)->lines + window(d)->high, x0 = d->a.bounded[1].c,
                  y0 = d->a.bounded[0].c + d->at_m_a_bounded[0][m0];
    const int64_t first = x0 < 0 ? -x0 : 0, past = d->a.size[1] - x0 < pitch ? d->a.size[1] - x0 : pitch;
    for (int64_t s = 0; s < lines; s++, to += pitch * slice) {
        if (y0 + s < 0 || y0 + s >= d->a.size[0] || first >= past) {
            clear(d, pitch, to);
            continue;
        }
        clear(d, first, to), clear(d, pitch - past, to + past * slice);
        deal(d, hone_element(a, half, d->at_m_a[m0] + s * window(d)->line + first * piece), half,
             past - first, to + first * slice);
    }
    clear(d, window(d)->pixels - lines * pitch, to);
}
