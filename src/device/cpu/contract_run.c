/* SPDX-License-Identifier: Apache-2.0
   contract_run: matrix multiplications of floats, a tile at a time: its rows of A, its panels of B, what
   meets when. */
#include <math.h>
#include <string.h>

#include "base/round.h"
#include "device/cpu/contract_dwconv.h"
#include "device/cpu/contract_half.h"
#include "device/cpu/contract_int.h"
#include "device/cpu/direct_conv.h"

int64_t hone_contract_own(const hone_contract *d, int64_t number, bool a) {
    int64_t at = 0;
    for (int k = 0; k < d->of.n_batch; k++) {
        int64_t radix = a ? d->of.radix_a[k] : d->of.radix_b[k];
        if (radix) at += number / radix % d->of.batch_extent[k] * (a ? d->by[k].a : d->by[k].b);
    }
    return at;
}
hone_standing hone_contract_stand(const hone_contract *d, int64_t batch) {
    hone_standing s = {{0}, 0, 0, 0, 0, 0, 0, {0}};
    for (int k = d->of.n_batch - 1; k >= 0; k--)
        s.index[k] = batch % d->of.batch_extent[k], batch /= d->of.batch_extent[k];
    for (int k = 0; k < d->of.n_batch; k++) {
        int64_t i = s.index[k];
        s.a += i * d->by[k].a, s.b += i * d->by[k].b, s.domain += i * d->by[k].domain,
            s.out += i * d->by[k].out;
        s.own_a += i * d->of.radix_a[k], s.own_b += i * d->of.radix_b[k];
        for (int q = 0; q < d->a.n_bounded; q++) s.edge[q] += i * d->by[k].edge[q];
    }
    return s;
}
bool hone_contract_inside(const hone_contract *d, const hone_standing *w, int64_t m, int64_t k) {
    for (int q = 0; q < d->a.n_bounded; q++) {
        int64_t i = d->a.bounded[q].c + w->edge[q] + d->at_m_a_bounded[q][m] + d->at_k_a_bounded[q][k];
        if (i < 0 || i >= d->a.size[q]) return false;
    }
    return true;
}
bool hone_contract_all_inside(const hone_contract *d, const hone_standing *w, int64_t m) { /* wherever K is */
    for (int q = 0; q < d->a.n_bounded; q++) {
        int64_t i = d->a.bounded[q].c + w->edge[q] + d->at_m_a_bounded[q][m];
        if (i + d->of.low_k[q] < 0 || i + d->of.high_k[q] >= d->a.size[q]) return false;
    }
    return true;
}
uint32_t *hone_contract_outside(hone_arena *arena, const hone_contract *d) {
    const hone_standing w = {{0}, 0, 0, 0, 0, 0, 0, {0}};
    bool moves = false;
    for (int k = 0; k < d->of.n_batch; k++)
        for (int q = 0; q < d->a.n_bounded; q++) moves |= d->by[k].edge[q] != 0;
    if (!d->a.n_bounded || moves || d->of.k > 32 || d->of.m > 1 << 16) return NULL;
    uint32_t *out = hone_arena_raw(arena, sizeof *out * (size_t)d->of.m);
    for (int64_t m = 0; out && m < d->of.m; m++) {
        out[m] = 0;
        for (int64_t k = 0; k < d->of.k && !hone_contract_all_inside(d, &w, m); k++)
            out[m] |= (uint32_t)!hone_contract_inside(d, &w, m, k) << k;
    }
    return out;
}
/* n values that lie in a row, n small: four at a time, the last four again where they overlap. */
static inline void few(float *to, const float *from, int64_t n) {
    if (n < 4) {
        for (int64_t i = 0; i < n; i++) to[i] = from[i];
        return;
    }
    for (int64_t i = 0; i + 4 <= n; i += 4) memcpy(to + i, from + i, 4 * sizeof *to);
    memcpy(to + n - 4, from + n - 4, 4 * sizeof *to);
}
/* A row whose window is partly outside. Images have two such indices, and small images many such rows. */
static void edge_row(const hone_contract *d, const hone_standing *w, int64_t r, const float *row, float *to) {
    const int64_t *at = d->at_k_a, last = d->a.n_bounded - 1;
    if (last > 1) {
        for (int64_t p = 0; p < d->of.k; p++) to[p] = hone_contract_inside(d, w, r, p) ? row[at[p]] : 0;
        return;
    }
    const int64_t *y = d->at_k_a_bounded[0], *x = d->at_k_a_bounded[last],
                  y0 = d->a.bounded[0].c + w->edge[0] + d->at_m_a_bounded[0][r],
                  x0 = d->a.bounded[last].c + w->edge[last] + d->at_m_a_bounded[last][r];
    const uint64_t h = (uint64_t)d->a.size[0], v = (uint64_t)d->a.size[last];
    for (int64_t p = 0; p < d->of.k; p++)
        to[p] = (((uint64_t)(y0 + y[p]) < h) & ((uint64_t)(x0 + x[p]) < v)) ? row[at[p]] : 0;
}
void hone_contract_pack_a(const hone_contract *d, const void *from_a, const hone_standing *w, int64_t m0,
                          int64_t m, float *rows) {
    const int64_t *at = d->at_k_a;
    const float *a = from_a;
    for (int64_t r = m0; d->of.stored_a && r < m0 + m; r++, rows += d->of.k)
        for (int64_t p = 0; p < d->of.k; p++)
            rows[p] = hone_contract_widened(d->of.stored_a, from_a, d->at_m_a[r] + at[p]);
    if (d->of.stored_a) return;
    int64_t run = 1; /* values that lie in a row, wherever K is: the last index of K */
    while (run < d->of.k && at[run] == run) run++;
    if (d->of.k % run) run = 1;
    for (int64_t r = m0; r < m0 + m; r++, rows += d->of.k) {
        const float *row = a + d->at_m_a[r];
        if (!hone_contract_all_inside(d, w, r)) edge_row(d, w, r, row, rows);
        else if (run == 1)
            for (int64_t p = 0; p < d->of.k; p++) rows[p] = row[at[p]];
        else if (run == 3) /* the window of most networks' first layer: a pair and one */
            for (int64_t p = 0; p < d->of.k; p += 3) {
                const float *from = row + at[p];
                const float last = from[2];
                memcpy(rows + p, from, 2 * sizeof *from), rows[p + 2] = last;
            }
        else
            for (int64_t p = 0; p < d->of.k; p += run) few(rows + p, row + at[p], run);
    }
}
/* A few elements at the edges of a window; a call for each would cost more than the copy between them. */
static inline void edge(char *to, int64_t n, size_t size, int outside) {
    if (size == 1)
        for (int64_t i = 0; i < n; i++) to[i] = (char)outside;
    else
        for (int64_t i = 0; i < n; i++) ((float *)(void *)to)[i] = 0;
}
void hone_contract_gather(const hone_contract *d, const void *b, int64_t k, int64_t n0, int64_t n,
                          size_t size, int outside, void *to) {
    int64_t row = n0 / d->of.run, at = n0 % d->of.run, step = d->of.run_step;
    char *line = to;
    while (n > 0) {
        int64_t len = d->of.run - at < n ? d->of.run - at : n, lo = at, hi = at + len;
        for (int q = 0; q < d->b.n_bounded && lo < hi; q++) { /* inside: 0 <= p + i * s < size */
            int64_t p = d->b.bounded[q].c + d->at_k_bounded[q][k] + d->at_row_bounded[q][row],
                    s = d->run_bounded[q], many = d->b.size[q];
            if (s == 0) {
                if (p < 0 || p >= many) hi = lo;
                continue;
            }
            int64_t first, past;
            if (s > 0) first = p >= 0 ? 0 : (-p + s - 1) / s, past = p >= many ? 0 : (many - 1 - p) / s + 1;
            else first = p < many ? 0 : (p - many) / -s + 1, past = p < 0 ? 0 : p / -s + 1;
            lo = first > lo ? first : lo, hi = past < hi ? past : hi;
        }
        if (lo >= hi) memset(line, outside, size * (size_t)len);
        else {
            const char *src = (const char *)b + (int64_t)size * (d->at_row_b[row] + d->at_k_b[k]);
            edge(line, lo - at, size, outside);
            if (step == 1)
                memcpy(line + (int64_t)size * (lo - at), src + (int64_t)size * lo, size * (size_t)(hi - lo));
            else if (size == 1)
                for (int64_t i = lo; i < hi; i++) line[i - at] = src[i * step];
            else if (size == 2)
                for (int64_t i = lo; i < hi; i++)
                    ((uint16_t *)(void *)line)[i - at] = ((const uint16_t *)(const void *)src)[i * step];
            else
                for (int64_t i = lo; i < hi; i++)
                    ((float *)(void *)line)[i - at] = ((const float *)(const void *)src)[i * step];
            edge(line + (int64_t)size * (hi - at), at + len - hi, size, outside);
        }
        line += (int64_t)size * len, n -= len, at = 0, row++;
    }
}
/* A panel of constants that are halves: widened a column's values of K at a time, or a slice at a time,
   whichever lies in a row. */
static void pack_halves(const hone_contract *d, const void *b, int64_t n0, int64_t nt, int64_t k0, int64_t kc,
                        float *panel) {
    enum { SOME = 64, MOST = 128 /* columns of a panel */ };
    const int64_t have = d->of.n - n0 < nt ? d->of.n - n0 : nt, vector = d->kernel->vector,
                  wide = hone_round_up(have, vector);
    const int64_t *at = d->at_k_b + k0;
    float room[SOME * 16];
    uint16_t line[MOST];
    for (int64_t p = 0; p < kc && d->of.run_step == 1; p++) {
        hone_contract_gather(d, b, k0 + p, n0, have, sizeof *line, 0, line);
        hone_dtype_load_n(d->of.stored_b, panel + p * wide, line, (size_t)have);
        for (int64_t j = have; j < wide; j++) panel[p * wide + j] = 0;
    }
    for (int64_t p0 = 0; p0 < kc && d->of.run_step != 1; p0 += SOME) {
        const int64_t many = kc - p0 < SOME ? kc - p0 : SOME;
        const bool dense = at[p0 + many - 1] - at[p0] == many - 1 && (many < 2 || at[p0 + 1] - at[p0] == 1);
        for (int64_t j0 = 0; j0 < wide; j0 += 16) {
            const int64_t columns = wide - j0 < 16 ? wide - j0 : 16;
            for (int64_t j = 0; j < columns; j++) {
                const int64_t column = n0 + j0 + j;
                float *to = room + j * SOME;
                if (j0 + j >= have) {
                    memset(to, 0, sizeof room / 16);
                    continue;
                }
                const int64_t from = d->at_row_b[column / d->of.run] + column % d->of.run * d->of.run_step;
                if (dense)
                    hone_dtype_load_n(d->of.stored_b, to, hone_element(b, true, from + at[p0]), (size_t)many);
                else
                    for (int64_t p = 0; p < many; p++)
                        to[p] = hone_contract_widened(d->of.stored_b, b, from + at[p0 + p]);
            }
            hone_transpose_floats(columns, many, room, SOME, panel + p0 * wide + j0, wide);
        }
    }
}
void hone_contract_pack_b(const hone_contract *d, const void *from_b, int64_t n0, int64_t nt, int64_t k0,
                          int64_t kc, int64_t apart, float *panels, float *line) {
    if (d->of.stored_b) { /* always one panel */
        pack_halves(d, from_b, n0, nt, k0, kc, panels);
        return;
    }
    const float *b = from_b;
    const int64_t nr = d->nr, have = d->of.n - n0 < nt ? d->of.n - n0 : nt, vector = d->kernel->vector;
    const int64_t width = hone_round_up(have, vector), n_panel = hone_ceil_div(width, nr);
    float small[128];
    const int64_t *at = d->at_k_b + k0;
    /* N does not run along memory (weights, keys of attention): column by column, as many values of K at a
       time as stay in L1 */
    if (!d->b.n_bounded && d->of.run_step != 1 && kc > 1) {
        for (int64_t p0 = 0; p0 < kc; p0 += 64) {
            const int64_t p1 = p0 + 64 < kc ? p0 + 64 : kc;
            const bool dense =
                at[p1 - 1] - at[p0] == p1 - 1 - p0 && (p1 - p0 < 2 || at[p0 + 1] - at[p0] == 1);
            const float *first = b + d->at_row_b[n0 / d->of.run] + n0 % d->of.run * d->of.run_step + at[p0];
            const bool even = dense && n0 % d->of.run + have <= d->of.run; /* columns that lie evenly */
            for (int64_t j = 0; even && j < have; j += nr) {
                const int64_t wide = width - j < nr ? width - j : nr, many = have - j < nr ? have - j : nr;
                hone_transpose_floats(many, p1 - p0, first + j * d->of.run_step, d->of.run_step,
                                      panels + j * apart + p0 * wide, wide);
            }
            for (int64_t j = even ? have : 0; j < width; j++) {
                const int64_t from = j / nr * nr, wide = width - from < nr ? width - from : nr;
                float *to = panels + from * apart + j - from;
                if (j >= have) {
                    for (int64_t p = p0; p < p1; p++) to[p * wide] = 0;
                    continue;
                }
                const float *col =
                    b + d->at_row_b[(n0 + j) / d->of.run] + (n0 + j) % d->of.run * d->of.run_step;
                if (dense)
                    for (int64_t p = p0; p < p1; p++) to[p * wide] = col[at[p0] + p - p0];
                else
                    for (int64_t p = p0; p < p1; p++) to[p * wide] = col[at[p]];
            }
        }
        return;
    }
    if (!line) line = small; /* only for one panel */
    for (int64_t p = 0; p < kc; p++) {
        const float *from = line;
        if (!d->b.n_bounded && d->of.run_step == 1 && d->of.rows == 1 && have == width) from = b + at[p] + n0;
        else {
            hone_contract_gather(d, b, k0 + p, n0, have, sizeof *line, 0, line);
            for (int64_t j = have; j < width; j++) line[j] = 0;
        }
        for (int64_t j = 0; j < n_panel; j++) {
            const int64_t wide = width - j * nr < nr ? width - j * nr : nr;
            memcpy(panels + j * nr * apart + p * wide, from + j * nr, sizeof(float) * (size_t)wide);
        }
    }
}
/* Pieces t0 … t0+taps-1 of rows m0 …, each from its value p0 on, `apart` pointers a piece. */
static float zeros[HONE_CONTRACT_KC]; /* what lies outside a window; never written */
static void point(const hone_contract *d, const float *a, bool half, const hone_standing *w, int64_t m0,
                  int64_t m, int64_t t0, int64_t taps, int64_t p0, const float **at, int64_t apart) {
    const int64_t *from = d->at_m_a + m0;
    for (int64_t t = 0; t < taps; t++) {
        const int64_t place = d->at_k_a[(t0 + t) * d->of.piece] + p0;
        for (int64_t r = 0; r < m; r++) at[t * apart + r] = hone_element(a, half, place + from[r]);
    }
    for (int64_t r = 0; d->a.n_bounded && r < m; r++) {
        if (hone_contract_all_inside(d, w, m0 + r)) continue;
        for (int64_t t = 0; t < taps; t++)
            if (!hone_contract_inside(d, w, m0 + r, (t0 + t) * d->of.piece)) at[t * apart + r] = zeros;
    }
}
enum {
    EACH_ROWS = HONE_GEMM_ROWS /* of a depthwise convolution, at once */,
    ACTIVATED = 48 /* columns */,
    GATED = 256 /* rows, at most */
};
/* Rows i … of a tile where they lie; or, if one of them is partly outside, all of them copied, each once a
   tile. */
enum { UNSEEN, INSIDE, OUTSIDE, COPIED };
static void find_rows(const hone_contract *d, const float *a, const hone_standing *w, int64_t m0, int64_t i,
                      int64_t k0, float *room, uint8_t *seen, const float **rows, hone_gemm_args *part) {
    bool inside = true;
    for (int64_t r = i; r < i + part->m; r++) {
        if (seen[r] == UNSEEN)
            seen[r] = (d->outside ? !d->outside[m0 + r] : hone_contract_all_inside(d, w, m0 + r)) ? INSIDE
                                                                                                  : OUTSIDE;
        inside &= seen[r] == INSIDE;
        rows[r - i] = a + d->at_m_a[m0 + r];
    }
    for (int64_t r = i; !inside && r < i + part->m; r++) {
        if (seen[r] != COPIED) hone_contract_pack_a(d, a, w, m0 + r, 1, room + r * d->of.k);
        seen[r] = COPIED, rows[r - i] = room + r * d->of.k + k0;
    }
    part->a = rows, part->at = inside ? d->at_k_a + k0 : NULL;
}
/* Rows at a time, `most` at most: all about as high, because a low tile costs as much. */
static int64_t low_as(int64_t m, int64_t most) {
    const int64_t passes = hone_ceil_div(m, most);
    return hone_ceil_div(m, passes);
}
static hone_gemm_prologue scaled_by(const hone_contract *d, void *const *at, int64_t k0) {
    if (!d->prologue) return (hone_gemm_prologue){0};
    return (hone_gemm_prologue){
        (const float *)at[d->prologue->s] + d->prologue->s_c + k0,
        d->prologue->b < 0 ? NULL : (const float *)at[d->prologue->b] + d->prologue->b_c + k0,
        d->prologue->lo, d->prologue->hi};
}
/* Some rows of a tile, or all, and a part of K: what the panels of B meet. */
typedef struct {
    const hone_contract *d;
    void *const *at;
    const hone_standing *w;
    const float *a, *b, *packed_b; /* packed_b: of all columns; or NULL, then b has the tile's */
    hone_gemm_args whole;
    hone_contract_lists l;
    float *const *to, *packed_rows, *gates, *copied; /* to: where sums go now */
    uint8_t *seen;                                   /* gathered rows */
    int64_t m0, m, n0, n, k0, all_k;
    bool gated;
} band;
/* What is prefetched while rows pass this panel: the panel after it, once their first pass has brought this
   one in; past: where that ends. Of unpacked rows, by the first panel, the next band, or rows: to prefetch
   panels there, which are near, is 2 % slower. */
static const float *prefetch_of(const band *x, int64_t j, int64_t passes, ptrdiff_t *step,
                                const float **past) {
    const hone_contract *d = x->d;
    const int64_t left = hone_contract_columns(d) - x->n0 - j - d->nr, wide = left < d->nr ? left : d->nr,
                  k = x->all_k;
    *past = NULL;
    if (d->blocks && !x->packed_rows) {
        const float *const *a = x->l.a;
        if (j || x->m <= d->mr || a[1] - a[0] != k || d->prologue) return NULL;
        *step = 16 * d->mr;
        return a[0] + (d->band < d->mt ? x->m : d->mr) * k;
    }
    if (!x->packed_b || passes < 2 || left <= 0) return NULL;
    const float *next =
        x->packed_b + (x->w->own_b * hone_contract_columns(d) + x->n0 + j + d->nr) * d->of.k + x->k0 * wide;
    *past = next + k * wide,
    *step = d->blocks ? (16 * wide + passes - 1) / passes : (wide + passes - 2) / (passes - 1);
    return next;
}
static void multiply(const band *x) {
    const hone_contract *d = x->d;
    const hone_gemm_args *whole = &x->whole;
    const int64_t vector = d->kernel->vector, all_n = hone_contract_columns(d), m = x->m, n = x->n,
                  n0 = x->n0, all_k = x->all_k;
    const bool then = d->epilogue && d->epilogue->then, keeps = then && d->epilogue->later.tensor >= 0;
    /* what follows an activation is told a block at a time */
    const bool whole_rows = d->blocks && (!then || d->gate_bytes);
    const bool direct = d->blocks && !x->packed_rows;
    const bool beside =
        whole->small_m && x->packed_b && !d->dwconv_nhwc && !d->gathered && (!then || d->gate_bytes);
    const float *rows[HONE_GEMM_ROWS];
    float kept[HONE_GEMM_ROWS * HONE_CONTRACT_KEPT];
    for (int64_t j = 0, done = 0, took; j < n; j += took) {
        const int64_t wide = all_n - n0 - j < d->nr ? all_n - n0 - j : d->nr;
        const int v = (int)(wide / vector), most = d->dwconv_nhwc   ? EACH_ROWS
                                                   : x->packed_rows ? d->mr
                                                                    : d->kernel->direct_rows[v - 1];
        const int64_t mr = low_as(m, most), passes = hone_ceil_div(m, mr);
        hone_gemm_args part = *whole;
        part.n = (int)(n - j < wide ? n - j : wide), part.b_step = d->dwconv_nhwc ? all_n : wide,
        part.a_from = d->dwconv_nhwc ? n0 + j : 0;
        part.b = d->dwconv_nhwc ? x->packed_b + (x->w->own_b * d->of.k + x->k0) * all_n + n0 + j
                 : x->packed_b  ? x->packed_b + (x->w->own_b * all_n + n0 + j) * d->of.k + x->k0 * wide
                                : x->b + j * all_k;
        if (beside && wide == d->nr) { /* whole panels side by side; gates have room for some */
            const int64_t room_for =
                x->gated && n - done > HONE_CONTRACT_KEPT ? HONE_CONTRACT_KEPT + done - j : n - j;
            part.panels = (int)(room_for / d->nr), part.b_apart = wide * d->of.k;
        }
        const int64_t at_once = whole_rows ? m : mr;
        if (direct && whole_rows && wide == d->nr) { /* one after another, until they are activated */
            const int64_t until = (d->epilogue && d->epilogue->activate) || x->gated
                                      ? (done + ACTIVATED - j + d->nr - 1) / d->nr
                                      : n,
                          all = (n - j) / d->nr;
            part.panels = (int)(until < all ? until : all),
            part.b_apart = x->packed_b ? wide * d->of.k : wide * all_k;
        }
        took = (part.panels > 1 ? part.panels : 1) * d->nr;
        part.c_from = x->gated ? j - done : whole->epilogue ? n0 + j : j;
        part.sums_from = j, part.bias_n = whole->bias_n ? whole->bias_n + n0 + j : NULL;
        hone_gemm_f32_fn *run = d->dwconv_nhwc ? d->dwconv_nhwc->run : d->kernel->run[v - 1];
        const float *past, *next = prefetch_of(x, j, passes, &part.prefetch_step, &past);
        part.m_block = (int)mr;
        for (int64_t i = 0; i < m; i += at_once) {
            if (d->blocks)
                part.prefetch = next ? next + i / mr * ((all_k - 1) / 4) * part.prefetch_step / 4 : NULL;
            else if (next && i) part.prefetch = i == mr ? next : part.prefetch + all_k * part.prefetch_step;
            if (past && part.prefetch >= past) next = part.prefetch = NULL, part.prefetch_step = 0;
            part.m = (int)(m - i < at_once ? m - i : at_once), part.a = x->l.a + i, part.c = x->to + i,
            part.sums = (const float *const *)x->l.sums + i;
            part.bias_m = whole->bias_m ? whole->bias_m + i : NULL,
            part.residual = whole->residual ? whole->residual + i : NULL;
            if (x->packed_rows) part.packed_a = x->packed_rows + i / mr * HONE_GEMM_PACKED_M(mr) * all_k;
            else if (d->gathered) find_rows(d, x->a, x->w, x->m0, i, x->k0, x->copied, x->seen, rows, &part);
            if (keeps && whole->epilogue && !x->gated)
                hone_contract_keep(d, x->at, x->w, x->m0 + i, n0 + j, &part, kept);
            run(&part);
            if (whole->epilogue && !x->gated && (then || at_once < m)) hone_contract_activate(d, &part);
            if (then && whole->epilogue && !x->gated) hone_contract_then(d, x->at, x->w, &part, kept);
        }
        /* all rows of a panel at once: of several panels, because vectors side by side take an activation
           faster than a panel's few */
        /* activated as they came; a narrower panel behind may take all rows at once */
        if (at_once < m) done = j + took;
        else if (whole->epilogue && (!then || x->gated) && (j + took >= n || j + took - done >= ACTIVATED)) {
            part.c_from = n0 + done, part.n = (int)((j + took < n ? j + took : n) - done), done += part.n;
            if (x->gated && d->epilogue) hone_contract_gate(d, x->at, x->w, x->m0, &part, &x->l, x->gates);
            else hone_contract_activate(d, &part);
        }
    }
}
static void go_on(band *x, int64_t rows) {
    x->m0 += rows, x->l.a += rows, x->l.residual += rows, x->l.c += rows, x->l.sums += rows;
    x->to += x->gated ? 0 : rows; /* gates are made and met band by band */
    if (x->whole.bias_m) x->whole.bias_m += rows;
    if (x->whole.residual) x->whole.residual += rows;
}
hone_status hone_contract_tile(const hone_contract *d, void *const *at, uint64_t half, int64_t number,
                               int64_t over, void *scratch) {
    char *room = scratch;
    float *c = (float *)room, *pa = (float *)(room + d->c_bytes),
          *pb = (float *)(room + d->c_bytes + d->a_bytes),
          *line = (float *)(room + d->c_bytes + d->a_bytes + d->b_bytes);
    hone_contract_lists l;
    l.c = (float **)(room + d->c_bytes + d->a_bytes + d->b_bytes + d->line_bytes);
    l.sums = l.c + d->mt, l.residual = (const float **)(l.sums + d->mt),
    l.bias_m = (float *)(l.residual + d->mt), l.a = (const float **)(l.bias_m + (d->mt + 1) / 2 * 2);
    float *packed_rows = (float *)(void *)((char *)l.c + d->at_bytes);
    float *gates = (float *)(void *)((char *)packed_rows + d->packed_a_bytes),
          **at_gate = (float **)(void *)(gates + d->mt * HONE_CONTRACT_KEPT);
    void *rest = (char *)gates + d->gate_bytes;
    int64_t nb = hone_ceil_div(d->of.n, d->nt), mb = hone_ceil_div(d->of.m, d->mt);
    /* tiles that share the larger operand's part follow one another */
    const bool down = d->of.n > d->of.m;
    int64_t n0 = (down ? number / mb % nb : number % nb) * d->nt,
            m0 = (down ? number % mb : number / nb % mb) * d->mt, batch = number / nb / mb;
    int64_t n = d->of.n - n0 < d->nt ? d->of.n - n0 : d->nt, m = d->of.m - m0 < d->mt ? d->of.m - m0 : d->mt;
    const int64_t vector = d->kernel->vector, stride = hone_round_up(n, vector);
    const hone_standing w = hone_contract_stand(d, batch);
    bool first = over == 0 && d->of.first_tensor >= 0;
    const bool half_a = half >> d->a.tensor & 1;
    const float *a = hone_element(at[first ? d->of.first_tensor : d->a.tensor], half_a,
                                  (first ? d->of.first_at : d->a.at.c + over * d->of.over_a) + w.a),
                *b = (const float *)at[d->b.tensor] + d->b.at.c + w.b;
    const float *dense = NULL; /* A as rows of K values, one after another */
    if (d->packed_a) dense = (const float *)at[d->packed_a] + (w.own_a * d->of.m + m0) * d->of.k;
    else if (!d->of.piece && !d->gathered) hone_contract_pack_a(d, a, &w, m0, m, pa), dense = pa;
    const int64_t piece = dense || d->gathered ? d->of.k : d->of.piece;
    band x = {.d = d,
              .at = at,
              .w = &w,
              .a = a,
              .b = pb,
              .l = l,
              .packed_rows = d->packed_a_bytes && hone_contract_packs_a(d) ? packed_rows : NULL,
              .gates = gates,
              .copied = pa};
    /* gathered rows have no list */
    x.packed_b = d->packed_b ? at[d->packed_b] : d->shared ? at[d->shared] : NULL, x.seen = (uint8_t *)l.a;
    x.m0 = m0, x.m = m, x.n0 = n0, x.n = n,
    x.whole = (hone_gemm_args){.a_step = d->mt, .small_m = d->of.m <= HONE_GEMM_SMALL_M};
    hone_gemm_args *whole = &x.whole; /* the tile; a kernel takes a few rows of a panel at a time */
    hone_contract_halves(d, half, whole);
    const bool half_c = whole->c_bf16;
    if (d->gathered) memset(x.seen, UNSEEN, (size_t)m);
    if (d->direct) hone_contract_epilogue_args(d, at, over, &w, m0, m, whole, &l);
    for (int64_t i = 0; d->c_bytes && i < m; i++) l.sums[i] = c + i * stride;
    for (int64_t i = 0; d->gate_bytes && i < m; i++) at_gate[i] = gates + i * HONE_CONTRACT_KEPT;
    for (int64_t k0 = 0; k0 < d->of.k; k0 += x.all_k) { /* some pieces, or a part of one */
        int64_t p0 = k0 % piece, kc = piece - p0, taps = 1;
        if (kc > d->kc) kc = d->kc;
        if (piece <= d->kc) taps = d->kc / piece;
        if (taps > (d->of.k - k0) / piece) taps = (d->of.k - k0) / piece ? (d->of.k - k0) / piece : 1;
        const int64_t all_k = taps * kc;
        if (!x.packed_b) hone_contract_pack_b(d, b, n0, n, k0, all_k, all_k, pb, line);
        if (!dense && !d->gathered) point(d, a, half_a, &w, m0, m, k0 / piece, taps, p0, l.a, d->mt);
        for (int64_t r = 0; dense && r < m; r++) l.a[r] = dense + r * d->of.k + k0;
        whole->taps = taps, whole->k = kc, whole->more = k0 > 0,
        whole->epilogue = k0 + all_k == d->of.k && d->direct;
        whole->c_bf16 = half_c && whole->epilogue;
        x.k0 = k0, x.all_k = all_k, x.gated = whole->epilogue && d->gate_bytes;
        x.to = x.gated ? at_gate : whole->epilogue ? l.c : l.sums;
        const hone_gemm_prologue prologue = scaled_by(d, at, k0);
        if (x.packed_rows) { /* once for all panels */
            const int64_t mr = low_as(m, d->mr);
            const float *rows[HONE_GEMM_ROWS];
            hone_gemm_args part = *whole;
            part.m = (int)m, part.m_block = (int)mr, part.a = l.a,
            part.prologue = d->prologue ? &prologue : NULL;
            if (!d->gathered) d->kernel->pack_a(&part, packed_rows);
            for (int64_t i = 0; d->gathered && i < m; i += mr) {
                part.m = (int)(m - i < mr ? m - i : mr);
                find_rows(d, a, &w, m0, i, k0, pa, x.seen, rows, &part);
                d->kernel->pack_a(&part, packed_rows + i / mr * HONE_GEMM_PACKED_M(mr) * all_k);
            }
        }
        band some = x;
        for (int64_t left = m; left > 0; left -= some.m, go_on(&some, some.m)) {
            some.m = left < d->band ? left : d->band;
            if (d->prologue && !x.packed_rows) {
                hone_gemm_args part = {
                    .m = (int)some.m, .k = kc, .a = some.l.a, .prologue = &prologue, .copy_a = true};
                d->kernel->pack_a(&part, packed_rows);
                for (int64_t r = 0; r < some.m; r++) some.l.a[r] = packed_rows + r * kc;
            }
            multiply(&some);
        }
    }
    return d->direct ? HONE_OK : hone_contract_epilogue(d, at, over, &w, m0, m, n0, n, c, stride, NULL, rest);
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = s->data;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(s->ref[t], base);
    if (d->dwconv_rows && d->dwconv_rows->run && hone_contract_dwconv_rows_takes(d, s->half_stored)) {
        hone_contract_dwconv_rows_tile(d, at, s->half_stored, number);
        return HONE_OK;
    }
    return hone_contract_tile(d, at, s->half_stored, number, 0, scratch);
}
const hone_contract *hone_contract_plain(const hone_step *s) { return s->tile == tile ? s->data : NULL; }
/* All of B, once: a tile is a panel. */
static hone_status pack_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = s->data;
    int64_t panels = hone_ceil_div(d->of.n, d->nr), n0 = number % panels * d->nr, batch = number / panels;
    const float *b = (const float *)(const void *)hone_ref_at(s->ref[d->b.tensor], base) + d->b.at.c +
                     hone_contract_own(d, batch, false);
    float *to = (float *)(void *)hone_ref_at(s->ref[d->shared], base) +
                (batch * hone_contract_columns(d) + n0) * d->of.k;
    hone_contract_pack_b(d, b, n0, d->nr, 0, d->of.k, d->of.k, to, scratch);
    return HONE_OK;
}
void hone_contract_pack_step(const hone_contract *d, hone_step *s) {
    if (d->of.integers) {
        hone_contract_int_pack_step(d, s);
        return;
    }
    s->tactic = "pack", s->tile = pack_tile, s->data = d;
    s->tiles = d->of.batch_b * hone_ceil_div(d->of.n, d->nr);
    s->serial = s->tiles == 1 || d->of.batch_b * d->of.n * d->of.k < 100000;
    s->scratch_bytes = sizeof(float) * (size_t)d->nr;
}

void hone_contract_step(hone_contract *d, hone_step *s) {
    if (d->of.integers) {
        hone_contract_int_step(d, s);
        return;
    }
    if (d->half) {
        hone_contract_half_step(d, s);
        return;
    }
    if (d->direct_conv) {
        hone_direct_conv_step(d, s);
        return;
    }
    size_t epilogue = d->epilogue_code ? hone_tilecode_scratch(d->epilogue_code) : 0;
    if (d->dwconv_nchw) {
        hone_contract_dwconv_nchw_step(d, s);
        return;
    }
    const int64_t vector = d->kernel->vector, wide = hone_round_up(d->nt, vector);
    d->c_bytes = d->direct && d->of.k <= d->kc ? 0 : hone_round_up64(sizeof(float) * (size_t)(d->mt * wide));
    d->a_bytes = d->packed_a || d->of.piece ? 0 : hone_round_up64(sizeof(float) * (size_t)(d->mt * d->of.k));
    d->b_bytes = d->packed_b || d->shared ? 0 : hone_round_up64(sizeof(float) * (size_t)(wide * d->kc));
    d->line_bytes = d->packed_b || d->shared ? 0 : hone_round_up64(sizeof(float) * (size_t)wide);
    int64_t taps = d->packed_a || !d->of.piece || d->of.piece > d->kc ? 1 : d->kc / d->of.piece;
    /* rows of A, c, sums, residual, bias */
    d->at_bytes = hone_round_up64(sizeof(float *) *
                                  (size_t)(d->mt * ((taps < d->of.taps ? taps : d->of.taps) + 4) + 1));
    /* kernels that pack have all panels equally high */
    d->packed_a_bytes = 0;
    const bool packs =
        d->kernel->pack_a && !d->dwconv_nhwc && d->of.m > HONE_GEMM_SMALL_M && hone_contract_packs_a(d);
    d->blocks =
        packs || (d->kernel->pack_a && !d->dwconv_nhwc && !d->gathered && d->of.m > HONE_GEMM_SMALL_M);
    d->band = d->blocks && !packs ? hone_contract_band(d) : d->mt;
    if (d->prologue && !packs)
        d->packed_a_bytes =
            hone_round_up64(sizeof(float) * (size_t)(d->band * (d->of.k < d->kc ? d->of.k : d->kc)));
    if (packs)
        d->packed_a_bytes =
            hone_round_up64(sizeof(float) * (size_t)((d->mt + d->mr) * HONE_GEMM_PACKED_M(d->mr) / d->mr *
                                                     (d->of.k < d->kc ? d->of.k : d->kc)));
    /* an activation times a row: several panels at once too, beside the result, which may lie on that row */
    const hone_cpu_epilogue *e = d->epilogue;
    d->gate_bytes = 0;
    if (d->blocks && d->direct && e && e->then && e->then == e->kernel->gate && e->residual.tensor < 0 &&
        d->mt <= GATED)
        d->gate_bytes =
            hone_round_up64((sizeof(float) * HONE_CONTRACT_KEPT + sizeof(float *)) * (size_t)d->mt);
    if (d->dwconv_rows) hone_contract_dwconv_rows_choose(d);
    s->tactic = d->dwconv_nhwc ? "depthwise" : "contract", s->flush = true, s->tile = tile;
    if (d->dwconv_nhwc && d->direct)
        s->half_able =
            d->bf16_able &
            ~(d->epilogue && (d->epilogue->activate || d->epilogue->then) ? (uint64_t)1 << d->out : 0);
    s->tiles = d->of.batch * hone_ceil_div(d->of.m, d->mt) * hone_ceil_div(d->of.n, d->nt);
    s->serial = s->tiles == 1;
    s->scratch_bytes = d->c_bytes + d->a_bytes + d->b_bytes + d->line_bytes + d->at_bytes +
                       d->packed_a_bytes + d->gate_bytes + epilogue;
}
