/* SPDX-License-Identifier: Apache-2.0
   contract_dwconv_rows: depthwise convolution over channels-last images by lines of results
   (kernels/dwconv_nhwc_rows.h), where rows of A are pixels that lie evenly in lines, windows too, and what
   follows is a bias a channel, a residual, a clamp, an activation. Found in the tables of a contraction; all
   other depthwise is contract_run.c's and contract_dwconv_nchw.c's. */
#include <math.h>

#include "base/round.h"
#include "device/cpu/contract_dwconv.h"

/* Does a table move evenly by *step along runs of `run`? */
static bool even(const int64_t *at, int64_t n, int64_t run, int64_t *step) {
    *step = run > 1 ? at[1] - at[0] : 0;
    for (int64_t k = 0; k < n; k++)
        if (at[k] != at[k - k % run] + k % run * *step) return false;
    return true;
}
static bool ends_even(const hone_row_number *r, const hone_contract *d, int64_t *pitch) {
    return r->tensor >= 0 && even(r->at_m, d->of.m, d->dwconv_rows->run, pitch);
}
/* Is a line of results so many rows of the image below the one before it, whose first result is m? Then
   both may be asked for at once. */
static bool follows(const hone_contract *d, int64_t m, int64_t down) {
    const int64_t below = m + d->dwconv_rows->run, next = d->of.k_run;
    bool same = d->at_m_a[below] - d->at_m_a[m] == down * d->at_k_a[next];
    for (int q = 0; q < d->a.n_bounded; q++)
        same &= d->at_m_a_bounded[q][below] - d->at_m_a_bounded[q][m] == down * d->at_k_a_bounded[q][next];
    return same;
}
/* How many rows that is, where rows of windows lie evenly; the first line is asked. */
static int64_t find_down(const hone_contract *d) {
    const int64_t next = d->of.k_run, run = d->dwconv_rows->run;
    if (d->of.k <= next || d->of.m < 2 * run) return 0;
    const int64_t row = d->at_k_a[next], line = d->at_m_a[run] - d->at_m_a[0];
    bool same = row > 0 && line > 0 && line % row == 0 && line / row < HONE_DWCONV_ROWS_ROWS;
    for (int64_t k = next; k < d->of.k && same; k += next) {
        same = d->at_k_a[k] == k / next * row;
        for (int q = 0; q < d->a.n_bounded; q++)
            same &= d->at_k_a_bounded[q][k] == k / next * d->at_k_a_bounded[q][next];
    }
    return same && follows(d, 0, line / row) ? line / row : 0;
}
static bool find_lines(hone_contract *d) {
    const hone_cpu_epilogue *s = d->epilogue;
    if (!d->dwconv_nhwc || !d->direct || !d->packed_b || d->of.k > d->kc || d->of.alpha != 1 ||
        (s && (s->then || (!s->bias_n && (s->bias.tensor >= 0 || s->bias.k != 0)))))
        return false;
    const int64_t across = d->of.k_run, run = d->of.m_run;
    int64_t step, ahead, along[HONE_MAX_BOUNDED], within[HONE_MAX_BOUNDED];
    d->dwconv_rows->run = run;
    if (run < 2 || across < 2 || !even(d->at_m_a, d->of.m, run, &step) ||
        !even(d->at_k_a, d->of.k, across, &ahead) || step < 1 || ahead < 1)
        return false;
    d->dwconv_rows->bound = -1;
    /* at most one bound is about columns; all others stay along a line */
    for (int q = 0; q < d->a.n_bounded; q++) {
        if (!even(d->at_m_a_bounded[q], d->of.m, run, along + q) ||
            !even(d->at_k_a_bounded[q], d->of.k, across, within + q))
            return false;
        if (!along[q] && !within[q]) continue;
        if (d->dwconv_rows->bound >= 0 || along[q] < 1 || within[q] < 1) return false;
        d->dwconv_rows->bound = q;
    }
    d->dwconv_rows->pitch = d->dwconv_rows->bound >= 0 ? step / along[d->dwconv_rows->bound]
                            : step < ahead             ? step
                                                       : ahead;
    if (d->dwconv_rows->pitch < d->of.n || step % d->dwconv_rows->pitch || ahead % d->dwconv_rows->pitch)
        return false;
    step /= d->dwconv_rows->pitch, ahead /= d->dwconv_rows->pitch;
    if (d->dwconv_rows->bound >= 0 &&
        (step != along[d->dwconv_rows->bound] || ahead != within[d->dwconv_rows->bound]))
        return false;
    if (d->of.k / across > HONE_DWCONV_ROWS_ROWS ||
        3 * step + ahead * (across - 1) + 1 > HONE_DWCONV_ROWS_COLUMNS)
        return false;
    if (s ? !ends_even(&s->out, d, &d->dwconv_rows->out_pitch)
          : !even(d->at_m_out, d->of.m, run, &d->dwconv_rows->out_pitch))
        return false;
    if (s && s->residual.tensor >= 0 && !ends_even(&s->residual, d, &d->dwconv_rows->residual_pitch))
        return false;
    d->dwconv_rows->kernel = hone_dwconv_nhwc_rows_best();
    d->dwconv_rows->across = (int)across, d->dwconv_rows->stride = (int)step,
    d->dwconv_rows->dilation = (int)ahead, d->dwconv_rows->down = (int)find_down(d);
    return true;
}
void hone_contract_dwconv_rows_choose(hone_contract *d) {
    if (!find_lines(d)) d->dwconv_rows->run = 0;
    /* a tile is whole lines, as many as a kernel takes at once */
    const int64_t some = HONE_DWCONV_ROWS_MANY * d->dwconv_rows->run;
    if (d->dwconv_rows->run && d->dwconv_rows->down && d->mt < d->of.m && d->mt >= some)
        d->mt = d->mt / some * some;
}
void hone_contract_dwconv_rows_fill(const hone_contract *d, const void *source, float *panels) {
    const int64_t all_n = hone_contract_columns(d);
    for (int64_t b = 0; b < d->of.batch_b; b++, panels += all_n * d->of.k)
        for (int64_t j = 0; j < d->of.n; j++) {
            const int64_t column =
                hone_contract_own(d, b, false) + d->at_row_b[j / d->of.run] + j % d->of.run * d->of.run_step;
            for (int64_t k = 0; k < d->of.k; k++)
                panels[k * all_n + j] = hone_contract_widened(d->of.stored_b, source, column + d->at_k_b[k]);
        }
}
bool hone_contract_dwconv_rows_takes(const hone_contract *d, uint64_t half) {
    hone_gemm_args is;
    hone_contract_halves(d, half, &is);
    return !half || (d->dwconv_rows->kernel->bf16_able && is.a_bf16);
}
static const float zeros[HONE_CONTRACT_KC]; /* what is outside */
enum { CHAIN = 16 /* results that an activation takes at once */, LINES_KEPT = 32768, LEAST_CHANNELS = 64 };
static void activate(const hone_cpu_epilogue *s, const hone_dwconv_rows_args *l) {
    float *row[CHAIN];
    if (l->to_pitch == l->channels) {
        row[0] = l->to;
        s->activate(row, 0, 1, l->results * l->channels, s->alpha, s->beta);
        return;
    }
    for (int64_t i = 0; i < l->results; i += CHAIN) {
        const int m = (int)(l->results - i < CHAIN ? l->results - i : CHAIN);
        for (int q = 0; q < m; q++) row[q] = l->to + (i + q) * l->to_pitch;
        s->activate(row, 0, m, l->channels, s->alpha, s->beta);
    }
}
/* Results m0 … m0+m-1, all of one line, and as many of the line below where l says two; channels from j
   on. */
static void line(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0, int64_t m,
                 int64_t j, hone_dwconv_rows_args l) {
    const hone_cpu_epilogue *s = d->epilogue;
    const int64_t all_n = hone_contract_columns(d), below = l.lines > 1 ? m0 + d->dwconv_rows->run : m0,
                  rows = d->of.k / l.across;
    const float *a = hone_element(at[d->a.tensor], l.row_bf16, d->a.at.c + w->a + j),
                *row[HONE_DWCONV_ROWS_MANY * HONE_DWCONV_ROWS_ROWS], *weight[HONE_DWCONV_ROWS_ROWS];
    const float *b = (const float *)at[d->packed_b] + w->own_b * all_n * d->of.k + j;
    for (int64_t r = 0; r < rows + (l.lines - 1) * l.down; r++) {
        const int64_t k = (r < rows ? r : r - l.down) * l.across, first = r < rows ? m0 : below;
        bool inside = true;
        for (int q = 0; q < d->a.n_bounded && inside; q++) {
            const int64_t i =
                d->a.bounded[q].c + w->edge[q] + d->at_m_a_bounded[q][first] + d->at_k_a_bounded[q][k];
            if (q == d->dwconv_rows->bound) l.lo = -i, l.hi = d->a.size[q] - i;
            else inside = i >= 0 && i < d->a.size[q];
        }
        row[r] = inside ? hone_element(a, l.row_bf16, d->at_m_a[first] + d->at_k_a[k]) : NULL;
        if (r < rows) weight[r] = b + k * all_n;
    }
    l.row = row, l.weight = weight, l.rows = (int)rows, l.weight_step = all_n, l.results = m;
#define AT(number, r) hone_epilogue_at(&(number), s->n_batch, w->index, r)
    l.to = hone_element(at[s ? s->out.tensor : d->out], l.to_bf16,
                        (s ? AT(s->out, m0) : w->out + d->at_m_out[m0]) + j);
    l.to_down = s ? AT(s->out, below) - AT(s->out, m0) : d->at_m_out[below] - d->at_m_out[m0];
    if (s && s->bias_n) l.bias = (const float *)at[s->bias.tensor] + AT(s->bias, m0) + j;
    if (s && s->residual.tensor >= 0) {
        l.residual = hone_element(at[s->residual.tensor], l.residual_bf16, AT(s->residual, m0) + j);
        l.residual_down = AT(s->residual, below) - AT(s->residual, m0);
    }
#undef AT
    d->dwconv_rows->kernel->run(&l);
    for (int k = 0; s && s->activate && k < l.lines; k++, l.to += l.to_down) activate(s, &l);
}
void hone_contract_dwconv_rows_tile(const hone_contract *d, void *const *at, uint64_t half, int64_t number) {
    const hone_cpu_epilogue *s = d->epilogue;
    const int64_t nb = hone_ceil_div(d->of.n, d->nt), mb = hone_ceil_div(d->of.m, d->mt),
                  run = d->dwconv_rows->run;
    const bool down = d->of.n > d->of.m; /* as in contract_run.c */
    const int64_t n0 = (down ? number / mb % nb : number % nb) * d->nt,
                  m0 = (down ? number % mb : number / nb % mb) * d->mt;
    const int64_t n = d->of.n - n0 < d->nt ? d->of.n - n0 : d->nt,
                  past = d->of.m - m0 < d->mt ? d->of.m : m0 + d->mt;
    const hone_standing w = hone_contract_stand(d, number / nb / mb);
    hone_dwconv_rows_args l = {
        .across = d->dwconv_rows->across,
        .stride = d->dwconv_rows->stride,
        .dilation = d->dwconv_rows->dilation,
        .down = d->dwconv_rows->down,
        .pitch = d->dwconv_rows->pitch,
        .to_pitch = d->dwconv_rows->out_pitch,
        .residual_pitch = d->dwconv_rows->residual_pitch,
        .zeros = zeros,
        .hi = INT64_MAX,
        .least = s ? hone_epilogue_number(&s->lo, s->n_batch, at, w.index, m0) : -INFINITY,
        .most = s ? hone_epilogue_number(&s->hi, s->n_batch, at, w.index, m0) : INFINITY};
    l.clamp = l.least != -INFINITY || l.most != INFINITY;
    hone_gemm_args is;
    hone_contract_halves(d, half, &is);
    l.row_bf16 = is.a_bf16, l.to_bf16 = is.c_bf16, l.residual_bf16 = is.residual_bf16;
    /* some channels at a time, so that lines stay in L1 until all rows of windows have passed; not too few:
       each time a result's columns are found anew */
    int64_t some =
        LINES_KEPT / (d->of.k / d->of.k_run * (run * l.stride + l.across) * (int64_t)sizeof(float));
    some = run * l.stride > 40 ? n : (some < LEAST_CHANNELS ? LEAST_CHANNELS : some) / 32 * 32;
    for (int64_t j = n0; j < n0 + n; j += some) {
        l.channels = n0 + n - j < some ? n0 + n - j : some;
        for (int64_t m = m0, end; m < past; m = end + (l.lines - 1) * run) {
            end = (m / run + 1) * run < past ? (m / run + 1) * run : past;
            l.lines = l.down && end - m == run && end + run <= past && follows(d, m, l.down) ? 2 : 1;
            line(d, at, &w, m, end - m, j, l);
        }
    }
}
