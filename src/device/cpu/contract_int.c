/* SPDX-License-Identifier: Apache-2.0
   contract_int: matrix multiplications of 8-bit factors, sums in i32. Exact: the same numbers as the
   program's, wrapping included.

   Each factor is less its zero point, but kernels multiply bytes as they are:
        sum (a - za)(b - zb)  =  sum a b  -  zb sum a  -  za sum b  +  K za zb
   so a row is less zb * (its sum - K za), one number, and where za is not 0 less za times the sum of each
   column. Sums of constants are kept behind their panels. A byte that is not what the kernel takes (u8 where
   it takes i8) is moved by 128, and its zero point with it. */
#include <string.h>

#include "base/round.h"
#include "device/cpu/contract_dwconv.h"
#include "device/cpu/contract_int.h"

static int32_t zero_at(const hone_zero_point *z, void *const *at, const hone_standing *w, int n_batch,
                       int64_t k) {
    if (z->tensor < 0) return 0;
    int64_t i = z->c + (z->at ? z->at[k] : 0);
    for (int q = 0; q < n_batch; q++) i += z->by_batch[q] * w->index[q];
    return z->is_signed ? ((const int8_t *)at[z->tensor])[i] : ((const uint8_t *)at[z->tensor])[i];
}
static int32_t moved(int32_t zero, uint8_t flip, bool wants_signed) {
    return !flip ? zero : wants_signed ? zero - 128 : zero + 128;
}
int32_t hone_contract_int_zero(const hone_contract *d, bool a, void *const *at, const hone_standing *w,
                               int64_t k) {
    return a ? moved(zero_at(&d->i8->zero_a, at, w, d->of.n_batch, k), d->i8->flip_a, d->i8->a_signed)
             : moved(zero_at(&d->i8->zero_b, at, w, d->of.n_batch, k), d->i8->flip_b, d->i8->b_signed);
}
int hone_contract_int_outside(const hone_contract *d, void *const *at, const hone_standing *w) {
    return zero_at(&d->i8->zero_a, at, w, d->of.n_batch, 0);
}
bool hone_contract_int_plain(const hone_contract *d, void *const *at, const hone_standing *w, int64_t n0,
                             int64_t n) {
    const hone_zero_point *z = &d->i8->zero_b;
    if (!z->at) return hone_contract_int_zero(d, false, at, w, 0) == 0;
    uint8_t any = 0;
    if (z->tensor >= 0 && z->in_row) {
        const uint8_t *byte = (const uint8_t *)at[z->tensor] + z->c + n0;
        for (int q = 0; q < d->of.n_batch; q++) byte += z->by_batch[q] * w->index[q];
        for (int64_t j = 0; j < n; j++) any |= byte[j] ^ d->i8->flip_b;
        return !any;
    }
    for (int64_t j = 0; j < n && !any; j++) any = hone_contract_int_zero(d, false, at, w, n0 + j) != 0;
    return !any;
}
/* What zero points take away, beyond what is one number a row, which comes back in `less`. */
typedef struct {
    const int32_t *row_sum,
        /* of the rows and columns at hand; row_sum NULL: B's zero point takes nothing away; column_sum NULL:
           to be found */
        *column_sum;
    const uint8_t *panels;
} known;
static void rows_less(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0, int64_t m,
                      int64_t n0, int64_t n, const int32_t *row_sum, int32_t *c, int64_t stride,
                      int32_t *less) {
    const uint32_t zb = (uint32_t)hone_contract_int_zero(d, false, at, w, n0);
    for (int64_t i = 0; i < m; i++) {
        less[i] = 0;
        if (!row_sum) continue;
        const uint32_t za = (uint32_t)hone_contract_int_zero(d, true, at, w, m0 + i),
                       row = (uint32_t)row_sum[i] - (uint32_t)d->of.k * za;
        if (!d->i8->zero_b.at) less[i] = (int32_t)(zb * row);
        else
            for (int64_t j = 0; j < n; j++)
                c[i * stride + j] =
                    (int32_t)((uint32_t)c[i * stride + j] -
                              row * (uint32_t)hone_contract_int_zero(d, false, at, w, n0 + j));
    }
}
static void zero_points(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0,
                        int64_t m, int64_t n0, int64_t n, known s, int32_t *c, int64_t stride, int32_t *less,
                        int32_t *room) {
    rows_less(d, at, w, m0, m, n0, n, s.row_sum, c, stride, less);
    for (int64_t i = 0; i < m; i++) {
        const uint32_t za = (uint32_t)hone_contract_int_zero(d, true, at, w, m0 + i);
        uint32_t *sums = (uint32_t *)c + i * stride;
        if (!za) continue;
        if (!s.column_sum) {
            for (int64_t j = 0; j < n; j += d->nr)
                hone_contract_int_column_sums(d, s.panels + j * hone_contract_int_groups(d) * 4, room + j);
            s.column_sum = room;
        }
        if (d->i8->zero_a.at) {
            for (int64_t j = 0; j < n; j++) sums[j] -= za * (uint32_t)s.column_sum[j];
            continue;
        }
        /* the same for all rows */
        for (int64_t j = 0; i == 0 && j < n; j++) room[j] = (int32_t)(za * (uint32_t)s.column_sum[j]);
        for (int64_t j = 0; j < n; j++) sums[j] -= (uint32_t)room[j];
    }
}
typedef struct { /* sums of some rows and columns of a tile */
    int64_t m0, m, n0, n;
    const int32_t *row_sum;
    int32_t *c;
} chunk;
typedef struct {
    int64_t m0, n0; /* the tile */
    known s;
    const uint8_t *b;
    const hone_requantize *requantize; /* or NULL */
    const int32_t *take;               /* of columns that go on as floats, all rows alike; or NULL */
    bool by_floats;
    int32_t *less, *column_sum;
    uint8_t **to, *bytes; /* bytes: that are read back at once */
    float *floats;
    void *rest;
} ends;
/* Where bytes of rows m0 … go, from column n0 on. */
static void bytes_to(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0, int64_t m,
                     int64_t n0, uint8_t **to) {
    const hone_cpu_epilogue *s = d->epilogue;
    const hone_row_number *out = &s->out;
    uint8_t *first =
        (uint8_t *)at[out->tensor] + hone_epilogue_at(out, s->n_batch, w->index, m0) - out->at_m[m0] + n0;
    if (d->i8->out_apart) hone_ladder((const uint8_t **)to, first + out->at_m[m0], d->i8->out_apart, m);
    for (int64_t i = 0; !d->i8->out_apart && i < m; i++) to[i] = first + out->at_m[m0 + i];
}
enum { READ_AT_ONCE = 1024 };
/* Rows m0 … that are bytes, n columns from n0 on, through what reads them. */
static void read_back(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0, int64_t m,
                      int64_t n0, int64_t n, const ends *f) {
    const hone_cpu_epilogue *s = d->epilogue;
    const bool one = s->one_piece && n == d->of.n; /* all rows as one */
    const int64_t rows = one ? 1 : m, many = one ? m * n : n;
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < many; j += READ_AT_ONCE)
            hone_epilogue_read(s, at, w->index, m0 + i, n0 + j,
                               many - j < READ_AT_ONCE ? many - j : READ_AT_ONCE, f->bytes + i * n + j,
                               f->floats);
}
static hone_status finish(const hone_contract *d, void *const *at, const hone_standing *w, const chunk *k,
                          const ends *f) {
    const int64_t stride = hone_round_up(k->n, d->nr), m0 = f->m0 + k->m0, n0 = f->n0 + k->n0;
    if (f->by_floats) {
        if (k->row_sum) rows_less(d, at, w, m0, k->m, n0, k->n, k->row_sum, k->c, stride, f->less);
        hone_epilogue_finish(d->epilogue, at, w->index, m0, k->m, n0, k->n, k->c, stride,
                             f->take ? f->take + k->n0 : NULL, k->row_sum ? f->less : NULL);
        return HONE_OK;
    }
    if (!f->requantize) {
        const known now = {k->row_sum, f->s.column_sum ? f->s.column_sum + k->n0 : NULL,
                           f->b + k->n0 * hone_contract_int_groups(d) * 4};
        zero_points(d, at, w, m0, k->m, n0, k->n, now, k->c, stride, f->less, f->column_sum);
        return hone_contract_epilogue(d, at, 0, w, m0, k->m, n0, k->n, k->c, stride, f->less, f->rest);
    }
    if (k->row_sum) rows_less(d, at, w, m0, k->m, n0, k->n, k->row_sum, k->c, stride, f->less);
    const hone_cpu_epilogue *s = d->epilogue;
    if (s->inner) hone_ladder((const uint8_t **)f->to, f->bytes, k->n, k->m);
    else bytes_to(d, at, w, m0, k->m, n0, f->to);
    hone_requantize part = *f->requantize;
    part.bias += k->n0, part.scale += k->n0;
    d->i8->requantize->requantize(&part, k->m, k->n, k->c, stride, k->row_sum ? f->less : NULL, f->to);
    if (s->inner) read_back(d, at, w, m0, k->m, n0, k->n, f);
    else if (s->table) hone_table_rows(s->table, f->to, k->m, k->n);
    return HONE_OK;
}
/* A tile: some rows and columns, all of K. Its sums wait in scratch, so many rows and columns at once that
   they stay in L1. */
static hone_status tile(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(step->ref[t], base);
    const int64_t nb = hone_ceil_div(d->of.n, d->nt), mb = hone_ceil_div(d->of.m, d->mt),
                  groups = hone_contract_int_groups(d);
    const int64_t n0 = number % nb * d->nt, m0 = number / nb % mb * d->mt, batch = number / nb / mb;
    const int64_t n = d->of.n - n0 < d->nt ? d->of.n - n0 : d->nt,
                  m = d->of.m - m0 < d->mt ? d->of.m - m0 : d->mt;
    const int64_t mr = d->mr, nr = d->nr, all_mp = hone_ceil_div(d->of.m, mr),
                  all_np = hone_ceil_div(d->of.n, nr);
    const hone_standing w = hone_contract_stand(d, batch);
    char *room = scratch;
    int32_t *room_c = (int32_t *)(void *)room;
    uint8_t *pa = (uint8_t *)room + d->c_bytes, *pb = pa + d->a_bytes, *line = pb + d->b_bytes,
            **to = (uint8_t **)(line + d->line_bytes);
    int32_t *less = (int32_t *)(void *)(to + d->i8->at_once_m), *row_sum = less + d->i8->at_once_m,
            *column_sum = row_sum + d->i8->packed_m, *bias = column_sum + d->nt;
    float *scale = (float *)(void *)(bias + d->nt + HONE_REQUANTIZE_BLOCK);
    float *floats = scale + d->nt + HONE_REQUANTIZE_BLOCK;
    uint8_t *bytes = (uint8_t *)(floats + 2 * READ_AT_ONCE);
    void *rest = d->epilogue ? NULL : (void *)floats;

    const hone_cpu_epilogue *sum = d->epilogue && d->epilogue->inner ? d->epilogue->inner : d->epilogue;
    const bool plain = hone_contract_int_plain(d, at, &w, n0, n),
               by_row = sum && sum->by_row && !d->i8->zero_a.at,
               by_floats = sum && sum->finish && !d->i8->zero_a.at;
    known s = {plain ? NULL : row_sum, NULL, pb};
    const uint8_t *a = pa, *b = pb, *rows = NULL;
    if (d->packed_a) {
        const uint8_t *panels = at[d->packed_a];
        a = panels + (w.own_a * all_mp + m0 / mr) * mr * groups * 4;
        s.row_sum = (const int32_t *)(const void *)(panels + d->of.batch_a * all_mp * mr * groups * 4) +
                    w.own_a * all_mp * mr + m0;
    } else {
        rows = (const uint8_t *)at[d->a.tensor] + d->a.at.c + w.a;
        memset(pa, 0, d->a_bytes);
    }
    if (d->packed_b || d->shared) {
        const uint8_t *panels = at[d->packed_b ? d->packed_b : d->shared];
        b = panels + (w.own_b * all_np + n0 / nr) * nr * groups * 4;
        if (d->packed_b)
            s.column_sum =
                (const int32_t *)(const void *)(panels + d->of.batch_b * all_np * nr * groups * 4) +
                w.own_b * all_np * nr + n0;
    } else
        hone_contract_int_pack_b(d, (const uint8_t *)at[d->b.tensor] + d->b.at.c + w.b, n0, n,
                                 zero_at(&d->i8->zero_b, at, &w, d->of.n_batch, 0), pb, line);
    s.panels = b;
    hone_requantize requantize = {0};
    const uint32_t za = by_row || by_floats ? (uint32_t)hone_contract_int_zero(d, true, at, &w, m0) : 0;
    for (int64_t j = 0; za && !s.column_sum && j < n; j += nr)
        hone_contract_int_column_sums(d, b + j * groups * 4, column_sum + j);
    const int32_t *sums = s.column_sum ? s.column_sum : column_sum;
    for (int64_t j = 0; by_floats && za && j < n; j++) column_sum[j] = (int32_t)(za * (uint32_t)sums[j]);
    if (by_row) {
        hone_epilogue_columns(sum, at, w.index, n0, n, bias, scale, &requantize);
        for (int64_t j = 0; za && j < n; j++) bias[j] = (int32_t)((uint32_t)bias[j] - za * (uint32_t)sums[j]);
        hone_requantize_bound(&requantize, n, 255.0 * 128 * (double)d->of.k);
    }
    const ends f = {m0,
                    n0,
                    s,
                    b,
                    by_row ? &requantize : NULL,
                    by_floats && za ? column_sum : NULL,
                    by_floats,
                    less,
                    column_sum,
                    to,
                    bytes,
                    floats,
                    rest};
    chunk last = {0};
    bool odd = false;
    hone_status done = HONE_OK;
    if (d->i8->kernel->begin) d->i8->kernel->begin(hone_contract_int_depth(d));
    const bool lie = rows && plain && d->i8->row_stride;
    const bool whole_bytes = by_row && plain && !requantize.nonfinite && d->i8->kernel->run_requantize &&
                             d->i8->run == d->i8->kernel->run_u;
    /* of a row */
    const int64_t read = d->of.k < d->i8->kernel->deep ? (d->of.k + 3) / 4 * 4 : 4 * groups;
    int64_t packed = 0; /* rows before this one are */
    const bool taps = rows && plain && d->i8->indirect_at;
    if (taps) memset(line, hone_contract_int_outside(d, at, &w), (size_t)d->of.piece);
    for (int64_t i = 0, high; i < m && !done; i += high) {
        high = m - i < d->i8->at_once_m ? m - i : d->i8->at_once_m;
        const uint8_t *here = a + i * groups * 4, *direct = NULL, *gathered = NULL;
        const bool lies = rows && plain && d->i8->direct_run && d->i8->direct_run[m0 + i];
        /* rows that may be taken as they lie: nothing past A's end is read */
        const int64_t whole = high / 16 * 16;
        known now = s;
        if (taps) now.row_sum = NULL; /* rows are found by their pieces */
        /* by dot4 groups: where rows lie, or copies of those that are partly outside */
        else if (rows && plain && d->i8->direct_run) {
            const int64_t most = high, outside = hone_contract_int_outside(d, at, &w);
            for (high = lies ? d->i8->direct_run[m0 + i] : 1;
                 !lies && high < most && !d->i8->direct_run[m0 + i + high];)
                high++;
            if (high > most) high = most;
            for (int64_t r = 0; !lies && r < high; r++)
                hone_contract_int_row(d, rows, &w, m0 + i + r, (int)outside, pa + r * 4 * d->i8->dot4_groups);
            gathered = lies ? rows + d->at_m_a[m0 + i] : pa;
        } else if (lie && whole && d->at_m_a[m0 + i + whole - 1] + read <= d->at_m_a[d->of.m - 1] + d->of.k)
            direct = rows + d->at_m_a[m0 + i] + d->at_k_a[0], high = whole;
        /* some more than are multiplied next: what was just written is slow to come back as a matrix unit
           wants it */
        else if (rows && i >= packed) {
            const int64_t some = m - i < d->i8->packed_m ? m - i : d->i8->packed_m;
            /* it may need the sums of the rows before */
            if (last.m) done = finish(d, at, &w, &last, &f), last.m = 0;
            hone_contract_int_pack_a(d, rows, &w, m0 + i, some, hone_contract_int_outside(d, at, &w), pa,
                                     plain ? NULL : row_sum, line);
            packed = i + some, a = pa - i * groups * 4, here = pa, s.row_sum = plain ? NULL : row_sum - i;
        }
        if (whole_bytes) {
            if (!d->epilogue->inner) {
                bytes_to(d, at, &w, m0 + i, high, n0, to);
                d->i8->kernel->run_requantize(high, groups, here, b, &requantize, 0, n, to);
                if (d->epilogue->table) hone_table_rows(d->epilogue->table, to, high, n);
            }
            for (int64_t j = 0; d->epilogue->inner && j < n; j += d->i8->at_once_n) {
                const int64_t some = n - j < d->i8->at_once_n ? n - j : d->i8->at_once_n;
                hone_requantize part = requantize;
                part.bias += j, part.scale += j;
                hone_ladder((const uint8_t **)to, bytes, some, high);
                d->i8->kernel->run_requantize(high, groups, here, b + j * groups * 4, &part, 0, some, to);
                read_back(d, at, &w, m0 + i, high, n0 + j, some, &f);
            }
            continue;
        }
        now.row_sum = plain ? NULL : s.row_sum + i;
        for (int64_t j = 0; j < n && !done; j += d->i8->at_once_n, odd = !odd) {
            const chunk new = {i,           high,
                               j,           n - j < d->i8->at_once_n ? n - j : d->i8->at_once_n,
                               now.row_sum, room_c + (odd ? d->c_bytes / 8 : 0)};
            const int64_t stride = hone_round_up(new.n, nr);
            if (taps)
                hone_contract_int_indirect_run(d, rows, m0 + i, high, line, b + j * groups * 4, new.n, new.c,
                                               stride);
            for (int64_t q = 0; direct && q < new.n; q += nr)
                d->i8->kernel->run_direct((int)high, groups, direct, (ptrdiff_t)d->i8->row_stride,
                                          b + (j + q) * groups * 4,
                                          new.n - q < nr ? (int)(new.n - q) : (int)nr, new.c + q, stride);
            for (int64_t q = 0; gathered && q < new.n; q += nr)
                d->i8->kernel->run_gathered(
                    high, d->i8->dot4_groups, gathered,
                    (ptrdiff_t)(lies ? d->at_m_a[1] - d->at_m_a[0] : 4 * d->i8->dot4_groups),
                    lies ? d->i8->dot4_at : d->i8->dot4_copied, b + (j + q) * groups * 4, new.c + q, stride);
            for (int64_t q = 0; !direct && !gathered && !taps && q < new.n; q += nr)
                for (int64_t p = 0; p < high; p += mr) {
                    const int tall = high - p < mr ? (int)(high - p) : (int)mr;
                    const int8_t *from = (const int8_t *)here + p * groups * 4;
                    int32_t *sums = new.c + p *stride + q;
                    if (new.n - q < nr && d->i8->kernel->run_edge)
                        d->i8->kernel->run_edge(tall, groups, from, b + (j + q) * groups * 4,
                                                (int)(new.n - q), sums, stride);
                    else d->i8->run(tall, groups, from, b + (j + q) * groups * 4, sums, stride);
                }
            /* sums that a matrix unit has just stored are slow to come back: those of the pass before are
               finished meanwhile */
            if (!d->i8->kernel->begin) last = new;
            if (last.m) done = finish(d, at, &w, &last, &f);
            last = new;
            if (!d->i8->kernel->begin) last.m = 0, odd = true;
        }
    }
    if (last.m && !done) done = finish(d, at, &w, &last, &f);
    if (d->i8->kernel->end) d->i8->kernel->end();
    return done;
}
/* All of B, once: a tile is some columns. Its batches are numbered by B's own indices. */
static hone_status pack_tile(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    int64_t nb = hone_ceil_div(d->of.n, d->nt), all_np = hone_ceil_div(d->of.n, d->nr),
            n0 = number % nb * d->nt, batch = number / nb;
    int64_t n = d->of.n - n0 < d->nt ? d->of.n - n0 : d->nt;
    hone_standing w = {{0}, 0, 0, 0, 0, 0, 0, {0}}; /* B's zero point moves with B's own batches at most */
    for (int k = 0; k < d->of.n_batch; k++)
        if (d->of.radix_b[k]) w.index[k] = batch / d->of.radix_b[k] % d->of.batch_extent[k];
    int outside = 0;
    if (d->i8->zero_b.tensor >= 0) {
        void *at[64] = {0};
        at[d->i8->zero_b.tensor] = hone_ref_at(step->ref[d->i8->zero_b.tensor], base);
        outside = zero_at(&d->i8->zero_b, at, &w, d->of.n_batch, 0);
    }
    const uint8_t *b = (const uint8_t *)hone_ref_at(step->ref[d->b.tensor], base) + d->b.at.c +
                       hone_contract_own(d, batch, false);
    uint8_t *to = (uint8_t *)hone_ref_at(step->ref[d->shared], base) +
                  (batch * all_np + n0 / d->nr) * d->nr * hone_contract_int_groups(d) * 4;
    hone_contract_int_pack_b(d, b, n0, n, outside, to, scratch);
    return HONE_OK;
}
void hone_contract_int_pack_step(const hone_contract *d, hone_step *s) {
    s->tactic = "pack", s->tile = pack_tile, s->data = d;
    s->tiles = d->of.batch_b * hone_ceil_div(d->of.n, d->nt);
    s->serial = s->tiles == 1 || d->of.batch_b * d->of.n * d->of.k < 400000;
    s->scratch_bytes = 4 * (size_t)d->nt;
}

/* ---- depthwise: few taps, so sums of products of 8 bits are exact in f32, and the kernel of floats does it
   --- */
static hone_status plane(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(step->ref[t], base);
    hone_dwconv_nchw_shape shape = d->dwconv_nchw->shape;
    int64_t parts = hone_ceil_div(shape.oh, d->dwconv_nchw->rows), batch = number / parts,
            y0 = number % parts * d->dwconv_nchw->rows;
    int64_t y1 = y0 + d->dwconv_nchw->rows < shape.oh ? y0 + d->dwconv_nchw->rows : shape.oh;
    const hone_standing here = hone_contract_stand(d, batch);
    const uint8_t *w = (const uint8_t *)at[d->a.tensor] + d->a.at.c + here.a,
                  *x = (const uint8_t *)at[d->b.tensor] + d->b.at.c + here.b;
    float *c = scratch, *taps = (float *)(void *)((char *)scratch + d->c_bytes),
          *rows = (float *)(void *)((char *)taps + d->a_bytes);
    /* the rows of x that it needs, as floats less their zero point; flips: a byte read as u8 is moved by 128
       where it is i8 */
    int64_t top = y0 * shape.sh - shape.ph,
            past = (y1 - 1) * shape.sh + (shape.kh - 1) * shape.dh - shape.ph + 1;
    int64_t r0 = top > 0 ? top : 0, r1 = past < shape.h ? past : shape.h;
    bool signed_x = (d->i8->flip_b != 0) != d->i8->b_signed,
         signed_w = (d->i8->flip_a != 0) != d->i8->a_signed;
    uint8_t over_x = signed_x ? 0x80 : 0, over_w = signed_w ? 0x80 : 0;
    float zx = (float)(zero_at(&d->i8->zero_b, at, &here, d->of.n_batch, 0) + (signed_x ? 128 : 0));
    float zw = (float)(zero_at(&d->i8->zero_a, at, &here, d->of.n_batch, 0) + (signed_w ? 128 : 0));
    uint8_t *line = (uint8_t *)rows + d->b_bytes - d->line_bytes;
    for (int64_t r = r0; d->dwconv_nchw->step > 1 && r < r1; r++) {
        for (int64_t i = 0; i < shape.w; i++) line[i] = x[r * shape.xs + i * d->dwconv_nchw->step];
        d->i8->requantize->dequantize(line, over_x, zx, 1, rows + (r - r0) * shape.w, shape.w);
    }
    if (d->dwconv_nchw->step == 1 && shape.xs == shape.w && r1 > r0)
        d->i8->requantize->dequantize(x + r0 * shape.xs, over_x, zx, 1, rows, (r1 - r0) * shape.w);
    else
        for (int64_t r = r0; d->dwconv_nchw->step == 1 && r < r1; r++)
            d->i8->requantize->dequantize(x + r * shape.xs, over_x, zx, 1, rows + (r - r0) * shape.w,
                                          shape.w);
    for (int64_t i = 0; i < shape.kh * shape.kw; i++) taps[i] = (float)(int32_t)(w[i] ^ over_w) - zw;
    int64_t n0 = y0 * shape.ow, n = (y1 - y0) * shape.ow;
    shape.ph -= y0 * shape.sh - r0, shape.h = r1 > r0 ? r1 - r0 : 0, shape.oh = y1 - y0,
                                    shape.xs = (ptrdiff_t)shape.w;
    d->dwconv_nchw->kernel->run(&shape, rows, taps, c, 0, y1 - y0);
    d->i8->requantize->settle(c, scratch, n);
    return hone_contract_epilogue(d, at, 0, &here, 0, 1, n0, n, scratch, n, NULL, (char *)rows + d->b_bytes);
}
/* Blocks by shape only. Bytes: a tile is mt rows by nt columns; its sums stay in L2 beside a slice of the
   packed operands. */
static void choose_rows_int(hone_contract *d, int threads) {
    const double work = (double)d->of.m * (double)d->of.n * (double)d->of.k * (double)d->of.batch;
    int64_t rows = d->dwconv_i8 ? 16 : 32;
    rows = hone_round_up(rows, d->mr);
    d->kc = d->of.k, d->nt = hone_round_up(d->of.n, d->nr);
    /* a few tiles a thread, where the work is worth it; columns are shared where rows are too few */
    const int64_t blocks = hone_ceil_div(d->of.m, rows),
                  want = threads > 1 && work > 1e6 ? (4 * threads + d->of.batch - 1) / d->of.batch : 1;
    const int64_t parts = want < blocks ? want : blocks;
    d->mt = hone_ceil_div(blocks, parts) * rows;
    if (d->dwconv_i8 && d->dwconv_i8->stride && d->mt > d->of.m_run && d->of.m_run <= 512)
        d->mt = d->mt / d->of.m_run * d->of.m_run;     /* whole rows of an image */
    else if (d->dwconv_i8 && d->mt > 256) d->mt = 256; /* a pointer a place of the window */
    if (d->dwconv_i8 || parts >= threads) return;
    const int64_t panels = d->nt / d->nr, more = hone_ceil_div(threads, parts);
    d->nt = hone_ceil_div(panels, more) * d->nr;
}
void hone_contract_int_blocks(hone_contract *d, int threads) {
    if (d->packed_b) {
        choose_rows_int(d, threads);
        return;
    }
    int64_t whole_m = hone_round_up(d->of.m, d->mr), whole_n = hone_round_up(d->of.n, d->nr);
    d->kc = d->of.k;
    d->nt = 512;
    while (d->nt > d->nr && d->nt * d->of.k > 1 << 19) d->nt /= 2; /* all of K at once: whole columns in L2 */
    if (d->nt > whole_n) d->nt = whole_n;
    d->nt = d->nt / d->nr * d->nr;
    if (!d->nt) d->nt = d->nr;
    d->mt = 65536 / d->nt / d->mr * d->mr;
    if (d->mt < d->mr) d->mt = d->mr;
    if (d->mt > whole_m) d->mt = whole_m;
    /* enough tiles to share, where the work is worth it */
    for (int tries = 0; tries < 8; tries++) {
        int64_t tiles = d->of.batch * hone_ceil_div(d->of.m, d->mt) * hone_ceil_div(d->of.n, d->nt);
        if (tiles >= 8 || (double)d->of.m * (double)d->of.n * (double)d->of.k * (double)d->of.batch < 2e6)
            break;
        if (d->nt > 2 * d->nr && (d->nt >= d->mt || d->mt <= d->mr))
            d->nt = (d->nt / 2 + d->nr - 1) / d->nr * d->nr;
        else if (d->mt > d->mr) d->mt = (d->mt / 2 + d->mr - 1) / d->mr * d->mr;
        else break;
    }
}
void hone_contract_int_step(hone_contract *d, hone_step *s) {
    if (d->dwconv_i8) {
        hone_dwconv_int_step(d, s);
        return;
    }
    size_t epilogue = d->epilogue_code ? hone_tilecode_scratch(d->epilogue_code) : 0;
    if (d->dwconv_nchw) {
        int64_t rows = (d->dwconv_nchw->rows - 1) * d->dwconv_nchw->shape.sh +
                       (d->dwconv_nchw->shape.kh - 1) * d->dwconv_nchw->shape.dh + 1;
        d->c_bytes =
            hone_round_up64(sizeof(float) * (size_t)(d->dwconv_nchw->rows * d->dwconv_nchw->shape.ow));
        d->a_bytes =
            hone_round_up64(sizeof(float) * (size_t)(d->dwconv_nchw->shape.kh * d->dwconv_nchw->shape.kw));
        /* a row, where pixels do not follow on */
        d->line_bytes = d->dwconv_nchw->step > 1 ? hone_round_up64((size_t)d->dwconv_nchw->shape.w) : 0;
        d->b_bytes =
            hone_round_up64(sizeof(float) *
                            (size_t)((rows < d->dwconv_nchw->shape.h ? rows : d->dwconv_nchw->shape.h) *
                                     d->dwconv_nchw->shape.w)) +
            d->line_bytes;
        s->tactic = "depthwise int8", s->tile = plane;
        s->tiles = d->of.batch * hone_ceil_div(d->dwconv_nchw->shape.oh, d->dwconv_nchw->rows);
        s->serial = d->of.batch * d->of.n * d->of.k < 200000;
        s->scratch_bytes = d->c_bytes + d->a_bytes + d->b_bytes + epilogue;
        return;
    }
    const int64_t np = hone_ceil_div(d->nt, d->nr), deep = hone_contract_int_groups(d) * 4;
    const int64_t *out = d->epilogue && d->epilogue->by_row ? d->epilogue->out.at_m : NULL;
    d->i8->out_apart = out && d->of.m > 1 ? out[1] - out[0] : 0;
    for (int64_t i = 1; out && i < d->of.m; i++)
        if (out[i] - out[i - 1] != d->i8->out_apart) d->i8->out_apart = 0;
    d->i8->at_once_m = d->mt, d->i8->at_once_n = d->nt;
    if (d->packed_b) { /* B is there, and rows of A are copied: a few at a time */
        /* two passes' sums, and what they are made of, stay in L1; bytes that are read back want whole rows:
           all that L2 has room for, where A takes none of it */
        const int64_t most = d->epilogue && d->epilogue->inner ? (d->i8->indirect_at ? 512 : 192)
                             : d->nt <= 128                    ? 128
                                                               : 64;
        /* that are bytes at once have no sums: what is read stays in L1, and panels of B are read less
           often */
        const int64_t fit = !d->epilogue || !d->i8->kernel->run_requantize || 49152 / deep < 32 ? 32
                            : 49152 / deep < 128                                                ? 49152 / deep
                                                                                                : 128;
        const int64_t rows = hone_round_up(fit, d->mr), columns = hone_round_up(most, d->nr);
        if (d->i8->at_once_m > rows) d->i8->at_once_m = rows;
        if (d->i8->indirect_at && d->mt >= 64)
            d->i8->at_once_m = 64; /* a panel stays in L1 while rows pass */
        if (d->epilogue && d->i8->at_once_n > columns) d->i8->at_once_n = columns;
    }
    const int64_t mp = hone_ceil_div(d->i8->at_once_m, d->mr), wide = hone_round_up(d->i8->at_once_n, d->nr);
    d->i8->at_once_m = mp * d->mr,
    d->i8->packed_m = d->packed_b && d->i8->at_once_m <= 32 ? 4 * d->i8->at_once_m : d->i8->at_once_m,
    d->i8->row_stride = 0;
    if (d->i8->packed_m > hone_round_up(d->mt, d->mr)) d->i8->packed_m = hone_round_up(d->mt, d->mr);
    if (d->packed_b && d->i8->kernel->run_direct && !d->i8->a_signed && !d->i8->flip_a && !d->a.n_bounded &&
        d->of.piece == d->of.k && d->i8->at_once_m == 32 && d->of.m > 1) {
        d->i8->row_stride = d->at_m_a[1] - d->at_m_a[0]; /* where rows are equally far apart */
        for (int64_t i = 0; i < d->of.m; i++)
            if (d->at_m_a[i] != d->at_m_a[0] + i * d->i8->row_stride || d->i8->row_stride < d->of.k)
                d->i8->row_stride = 0;
    }
    /* twice: in turns */
    d->c_bytes = 2 * hone_round_up64(sizeof(int32_t) * (size_t)(mp * d->mr * wide + HONE_REQUANTIZE_BLOCK));
    d->a_bytes = d->packed_a ? 0 : hone_round_up64((size_t)(d->i8->packed_m * deep));
    d->b_bytes = d->packed_b || d->shared ? 0 : hone_round_up64((size_t)(np * d->nr * deep));
    d->line_bytes = hone_round_up64((size_t)hone_contract_int_depth(d));
    s->tactic = "contract int8", s->tile = tile;
    s->tiles = d->of.batch * hone_ceil_div(d->of.m, d->mt) * hone_ceil_div(d->of.n, d->nt);
    s->serial = s->tiles == 1 || d->of.batch * d->of.m * d->of.n * d->of.k < 1500000;
    s->scratch_bytes =
        d->c_bytes + d->a_bytes + d->b_bytes + d->line_bytes +
        hone_round_up64(sizeof(int32_t) * (size_t)(3 * d->i8->at_once_m + d->i8->packed_m + 3 * d->nt +
                                                   d->nr + 2 * HONE_REQUANTIZE_BLOCK)) +
        epilogue;
    if (d->epilogue && d->epilogue->inner)
        s->scratch_bytes +=
            hone_round_up64(2 * READ_AT_ONCE * sizeof(float) + (size_t)(d->i8->at_once_m * wide));
}
