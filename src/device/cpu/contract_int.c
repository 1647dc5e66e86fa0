/* SPDX-License-Identifier: Apache-2.0
   contract_int: matrix multiplications of 8-bit factors, sums in i32. Exact: the same numbers as the program's, wrapping included.

   Each factor is less its zero point, but kernels multiply bytes as they are:
        sum (a - za)(b - zb)  =  sum a b  -  zb sum a  -  za sum b  +  K za zb
   so a row is less zb * (its sum - K za), one number, and where za is not 0 less za times the sum of each column. Sums of constants are kept behind their
   panels. A byte that is not what the kernel takes (u8 where it takes i8) is moved by 128, and its zero point with it. */
#include <string.h>

#include "device/cpu/contract.h"

static int32_t zero_at(const hone_zero_point *z, void *const *at, const hone_standing *w, int n_batch, int64_t k) {
    if (z->tensor < 0) return 0;
    int64_t i = z->c + (z->at ? z->at[k] : 0);
    for (int q = 0; q < n_batch; q++) i += z->by_batch[q] * w->index[q];
    return z->is_signed ? ((const int8_t *)at[z->tensor])[i] : ((const uint8_t *)at[z->tensor])[i];
}
static int32_t moved(int32_t zero, uint8_t flip, bool is_signed) { return !flip ? zero : is_signed ? zero + 128 : zero - 128; }
static int64_t deep_of(const hone_contract *d) { return (d->k + d->kernel_i8->deep - 1) / d->kernel_i8->deep * d->kernel_i8->deep; }
static int64_t groups_of(const hone_contract *d) { return deep_of(d) / 4; }

/* n bytes, n a multiple of 16, with `over` over each; the sum of what they are as i8. */
static uint32_t copy(const uint8_t *from, uint8_t over, int64_t n, uint8_t *to) {
    typedef uint8_t bytes __attribute__((vector_size(16)));
    typedef uint16_t pairs __attribute__((vector_size(16)));
    uint32_t all = 0;
    while (n) {
        const int64_t some = n < 2048 ? n : 2048; /* 128 times two bytes in 16 bits */
        pairs sum = {0};
        for (int64_t i = 0; i < some; i += 16) {
            bytes v;
            memcpy(&v, from + i, sizeof v);
            v ^= over;
            memcpy(to + i, &v, sizeof v);
            const pairs moved = (pairs)(v ^ 0x80);
            sum += (moved & 255) + (moved >> 8);
        }
        for (int q = 0; q < 8; q++) all += sum[q];
        all -= 128 * (uint32_t)some, n -= some, from += some, to += some;
    }
    return all;
}
/* Rows m0 … of A into one panel, and their sums; rows past M and slices past K are 0. */
static void pack_a(const hone_contract *d, const uint8_t *a, int64_t m0, uint8_t *panel, int32_t *sum) {
    const int mr = d->mr, rows = d->m - m0 < mr ? (int)(d->m - m0) : mr, deep = d->kernel_i8->deep;
    memset(panel, 0, (size_t)(groups_of(d) * 4 * mr));
    memset(sum, 0, sizeof *sum * (size_t)mr);
    const int64_t *at = d->at_k_a;
    bool dense = at[d->k - 1] - at[0] == d->k - 1 && (d->k < 2 || at[1] - at[0] == 1);
    for (int r = 0; r < rows; r++) {
        const uint8_t *row = a + d->at_m_a[m0 + r];
        uint32_t all = 0;
        int64_t p = 0;
        for (; dense && deep % 16 == 0 && p + deep <= d->k; p += deep)
            all += copy(row + at[0] + p, d->flip_a, deep, panel + (p / deep * mr + r) * deep);
        for (; p < d->k; p++) {
            const uint8_t v = row[dense ? at[0] + p : at[p]] ^ d->flip_a;
            panel[(p / deep * mr + r) * deep + p % deep] = v, all += (uint32_t)(int8_t)v;
        }
        sum[r] = (int32_t)all;
    }
}
/* Columns n0 … n0+nt-1 of B into panels, all of K. line: room for four rows of nt bytes. What is past K may be anything: A is 0
   there. */
static void pack_b(const hone_contract *d, const uint8_t *b, int64_t n0, int64_t nt, int outside, uint8_t *panels, uint8_t *line) {
    int64_t nr = d->nr, groups = groups_of(d), have = d->n - n0 < nt ? d->n - n0 : nt, n_panel = (nt + nr - 1) / nr;
    bool plain = !d->b.n_bounded && d->run_step == 1 && d->rows == 1;
    if (n_panel * nr > have) /* the columns that are not there */
        memset(panels + (n_panel - 1) * groups * 4 * nr, 0, (size_t)(groups * 4 * nr));
    for (int64_t p = 0; p < (d->k + 3) / 4; p++) {
        const uint8_t *row[4];
        for (int q = 0; q < 4; q++) {
            int64_t k = 4 * p + q < d->k ? 4 * p + q : d->k - 1;
            if (plain) row[q] = b + d->at_k_b[k] + n0;
            else {
                row[q] = line + q * nt;
                hone_contract_gather(d, b, k, n0, have, 1, outside, line + q * nt);
            }
        }
        for (int64_t j = 0; j < n_panel; j++) {
            const uint8_t *from[4] = {row[0] + j * nr, row[1] + j * nr, row[2] + j * nr, row[3] + j * nr};
            hone_interleave4(from, have - j * nr < nr ? have - j * nr : nr, d->flip_b, panels + (j * groups + p) * 4 * nr);
        }
    }
}
/* Sums of a panel's columns, as the kernel sees its bytes. */
static void column_sums(const hone_contract *d, const uint8_t *panel, int32_t *sum) {
    memset(sum, 0, sizeof *sum * (size_t)d->nr);
    for (int64_t k = 0; k < d->k; k++)
        for (int j = 0; j < d->nr; j++) {
            const uint8_t v = panel[(k / 4 * d->nr + j) * 4 + k % 4];
            sum[j] = (int32_t)((uint32_t)sum[j] + (d->kernel_i8->b_signed ? (uint32_t)(int8_t)v : v));
        }
}
void hone_contract_int_fill(const hone_contract *d, bool a, const uint8_t *source, void *dst) {
    int64_t each = groups_of(d) * 4 * (a ? d->mr : d->nr), n = a ? (d->m + d->mr - 1) / d->mr : (d->n + d->nr - 1) / d->nr;
    int64_t batches = a ? d->batch_a : d->batch_b;
    int32_t *sum = (int32_t *)(void *)((uint8_t *)dst + batches * n * each);
    uint8_t line[4 * 64];
    for (int64_t b = 0; b < batches; b++)
        for (int64_t p = 0; p < n; p++) {
            uint8_t *panel = (uint8_t *)dst + (b * n + p) * each;
            const uint8_t *own = source + hone_contract_own(d, b, a);
            if (a) pack_a(d, own, p * d->mr, panel, sum + (b * n + p) * d->mr);
            else {
                pack_b(d, own, p * d->nr, d->nr, 0, panel, line);
                column_sums(d, panel, sum + (b * n + p) * d->nr);
            }
        }
}
/* What zero points take away, beyond what is one number a row, which comes back in `less`. */
typedef struct {
    const int32_t *row_sum, *column_sum; /* column_sum NULL: to be found */
    const uint8_t *panels;
} known;
static void zero_points(const hone_contract *d, void *const *at, const hone_standing *w, int64_t m0, int64_t m, int64_t n0, int64_t n,
                        known s, int32_t *c, int64_t stride, int32_t *less, int32_t *room) {
    uint32_t zb = (uint32_t)moved(zero_at(&d->zero_b, at, w, d->n_batch, n0), d->flip_b, !d->kernel_i8->b_signed);
    bool several = d->zero_b.at != NULL;
    for (int64_t i = 0; i < m; i++) {
        uint32_t za = (uint32_t)moved(zero_at(&d->zero_a, at, w, d->n_batch, m0 + i), d->flip_a, false);
        uint32_t row = (uint32_t)s.row_sum[i] - (uint32_t)d->k * za, *sums = (uint32_t *)c + i * stride;
        less[i] = several ? 0 : (int32_t)(zb * row);
        if (several) /* one a column */
            for (int64_t j = 0; j < n; j++)
                sums[j] -= row * (uint32_t)moved(zero_at(&d->zero_b, at, w, d->n_batch, n0 + j), d->flip_b, !d->kernel_i8->b_signed);
        if (!za) continue;
        if (!s.column_sum) {
            for (int64_t j = 0; j < n; j += d->nr) column_sums(d, s.panels + j * groups_of(d) * 4, room + j);
            s.column_sum = room;
        }
        if (d->zero_a.at) {
            for (int64_t j = 0; j < n; j++) sums[j] -= za * (uint32_t)s.column_sum[j];
            continue;
        }
        for (int64_t j = 0; i == 0 && j < n; j++) room[j] = (int32_t)(za * (uint32_t)s.column_sum[j]); /* the same for all rows */
        for (int64_t j = 0; j < n; j++) sums[j] -= (uint32_t)room[j];
    }
}
static hone_status tile(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(step->ref[t], base);
    int64_t nb = (d->n + d->nt - 1) / d->nt, mb = (d->m + d->mt - 1) / d->mt, groups = groups_of(d);
    int64_t n0 = number % nb * d->nt, m0 = number / nb % mb * d->mt, batch = number / nb / mb;
    int64_t n = d->n - n0 < d->nt ? d->n - n0 : d->nt, m = d->m - m0 < d->mt ? d->m - m0 : d->mt;
    int64_t mr = d->mr, nr = d->nr, np = (n + nr - 1) / nr, mp = (m + mr - 1) / mr, stride = np * nr;
    int64_t all_mp = (d->m + mr - 1) / mr, all_np = (d->n + nr - 1) / nr;
    const hone_standing w = hone_contract_stand(d, batch);
    char *room = scratch;
    int32_t *c = (int32_t *)(void *)room;
    uint8_t *pa = (uint8_t *)room + d->c_bytes, *pb = pa + d->a_bytes, *line = pb + d->b_bytes;
    int32_t *less = (int32_t *)(void *)(line + d->line_bytes), *row_sum = less + d->mt, *column_sum = row_sum + (d->mt + mr);
    void *rest = column_sum + (d->nt + nr);

    known s = {row_sum, NULL, pb};
    const uint8_t *a = pa, *b = pb;
    if (d->packed_a) {
        const uint8_t *panels = at[d->packed_a];
        a = panels + (w.own_a * all_mp + m0 / mr) * mr * groups * 4;
        s.row_sum = (const int32_t *)(const void *)(panels + d->batch_a * all_mp * mr * groups * 4) + w.own_a * all_mp * mr + m0;
    } else
        for (int64_t i = 0; i < mp; i++)
            pack_a(d, (const uint8_t *)at[d->a.tensor] + d->a.at.c + w.a, m0 + i * mr, pa + i * mr * groups * 4, row_sum + i * mr);
    if (d->packed_b || d->shared) {
        const uint8_t *panels = at[d->packed_b ? d->packed_b : d->shared];
        s.panels = b = panels + (w.own_b * all_np + n0 / nr) * nr * groups * 4;
        if (d->packed_b)
            s.column_sum = (const int32_t *)(const void *)(panels + d->batch_b * all_np * nr * groups * 4) + w.own_b * all_np * nr + n0;
    } else pack_b(d, (const uint8_t *)at[d->b.tensor] + d->b.at.c + w.b, n0, n, zero_at(&d->zero_b, at, &w, d->n_batch, 0), pb, line);
    if (d->kernel_i8->begin) d->kernel_i8->begin();
    for (int64_t j = 0; j < np; j++)
        for (int64_t i = 0; i < mp; i++)
            d->kernel_i8->run(m - i * mr < mr ? (int)(m - i * mr) : (int)mr, groups, (const int8_t *)a + i * mr * groups * 4,
                              b + j * nr * groups * 4, c + i * mr * stride + j * nr, stride);
    if (d->kernel_i8->end) d->kernel_i8->end();
    zero_points(d, at, &w, m0, m, n0, n, s, c, stride, less, column_sum);
    return hone_contract_finish(d, at, 0, &w, m0, m, n0, n, c, stride, less, rest);
}
/* All of B, once: a tile is some columns. Its batches are numbered by B's own indices. */
static hone_status pack_tile(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    int64_t nb = (d->n + d->nt - 1) / d->nt, all_np = (d->n + d->nr - 1) / d->nr, n0 = number % nb * d->nt, batch = number / nb;
    int64_t n = d->n - n0 < d->nt ? d->n - n0 : d->nt;
    hone_standing w = {{0}, 0, 0, 0, 0, 0, 0, {0}}; /* B's zero point moves with B's own batches at most */
    for (int k = 0; k < d->n_batch; k++)
        if (d->by[k].radix_b) w.index[k] = batch / d->by[k].radix_b % d->batch_extent[k];
    int outside = 0;
    if (d->zero_b.tensor >= 0) {
        void *at[64] = {0};
        at[d->zero_b.tensor] = hone_ref_at(step->ref[d->zero_b.tensor], base);
        outside = zero_at(&d->zero_b, at, &w, d->n_batch, 0);
    }
    const uint8_t *b = (const uint8_t *)hone_ref_at(step->ref[d->b.tensor], base) + d->b.at.c + hone_contract_own(d, batch, false);
    uint8_t *to = (uint8_t *)hone_ref_at(step->ref[d->shared], base) + (batch * all_np + n0 / d->nr) * d->nr * groups_of(d) * 4;
    pack_b(d, b, n0, n, outside, to, scratch);
    return HONE_OK;
}
void hone_contract_int_pack_step(const hone_contract *d, hone_step *s) {
    s->tactic = "pack", s->tile = pack_tile, s->data = d;
    s->tiles = d->batch_b * ((d->n + d->nt - 1) / d->nt);
    s->serial = s->tiles == 1 || d->batch_b * d->n * d->k < 400000;
    s->scratch_bytes = 4 * (size_t)d->nt;
}

/* ---- depthwise: few taps, so sums of products of 8 bits are exact in f32, and the kernel of floats does it --------------------------- */
static hone_status plane(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const hone_contract *d = step->data;
    void *at[64];
    for (int t = 0; t < d->n_ref; t++) at[t] = hone_ref_at(step->ref[t], base);
    hone_depthwise_shape shape = d->shape;
    int64_t parts = (shape.oh + d->plane_rows - 1) / d->plane_rows, batch = number / parts, y0 = number % parts * d->plane_rows;
    int64_t y1 = y0 + d->plane_rows < shape.oh ? y0 + d->plane_rows : shape.oh;
    const hone_standing here = hone_contract_stand(d, batch);
    const uint8_t *w = (const uint8_t *)at[d->a.tensor] + d->a.at.c + here.a, *x = (const uint8_t *)at[d->b.tensor] + d->b.at.c + here.b;
    float *c = scratch, *taps = (float *)(void *)((char *)scratch + d->c_bytes), *rows = (float *)(void *)((char *)taps + d->a_bytes);
    /* the rows of x that it needs, as floats less their zero point; flips: a byte read as u8 is moved by 128 where it is i8 */
    int64_t top = y0 * shape.sh - shape.ph, past = (y1 - 1) * shape.sh + (shape.kh - 1) * shape.dh - shape.ph + 1;
    int64_t r0 = top > 0 ? top : 0, r1 = past < shape.h ? past : shape.h;
    bool signed_x = (d->flip_b != 0) != !!d->kernel_i8->b_signed, signed_w = !d->flip_a;
    uint8_t over_x = signed_x ? 0x80 : 0, over_w = signed_w ? 0x80 : 0;
    float zx = (float)(zero_at(&d->zero_b, at, &here, d->n_batch, 0) + (signed_x ? 128 : 0));
    float zw = (float)(zero_at(&d->zero_a, at, &here, d->n_batch, 0) + (signed_w ? 128 : 0));
    if (shape.xs == shape.w && r1 > r0) d->levels->widen(x + r0 * shape.xs, over_x, zx, rows, (r1 - r0) * shape.w);
    else
        for (int64_t r = r0; r < r1; r++) d->levels->widen(x + r * shape.xs, over_x, zx, rows + (r - r0) * shape.w, shape.w);
    for (int64_t i = 0; i < shape.kh * shape.kw; i++) taps[i] = (float)(int32_t)(w[i] ^ over_w) - zw;
    int64_t n0 = y0 * shape.ow, n = (y1 - y0) * shape.ow;
    shape.ph -= y0 * shape.sh - r0, shape.h = r1 > r0 ? r1 - r0 : 0, shape.oh = y1 - y0, shape.xs = (ptrdiff_t)shape.w;
    d->plane->run(&shape, rows, taps, c, 0, y1 - y0);
    d->levels->settle(c, scratch, n);
    return hone_contract_finish(d, at, 0, &here, 0, 1, n0, n, scratch, n, NULL, (char *)rows + d->b_bytes);
}
static size_t round64(size_t n) { return (n + 63) / 64 * 64; }
void hone_contract_int_step(hone_contract *d, hone_step *s) {
    size_t epilogue = d->epilogue ? hone_tilecode_scratch(d->epilogue) : 0;
    if (d->plane) {
        int64_t rows = (d->plane_rows - 1) * d->shape.sh + (d->shape.kh - 1) * d->shape.dh + 1;
        d->c_bytes = round64(sizeof(float) * (size_t)(d->plane_rows * d->shape.ow));
        d->a_bytes = round64(sizeof(float) * (size_t)(d->shape.kh * d->shape.kw));
        d->b_bytes = round64(sizeof(float) * (size_t)((rows < d->shape.h ? rows : d->shape.h) * d->shape.w));
        s->tactic = "depthwise int8", s->tile = plane;
        s->tiles = d->batch * ((d->shape.oh + d->plane_rows - 1) / d->plane_rows);
        s->serial = d->batch * d->n * d->k < 200000;
        s->scratch_bytes = d->c_bytes + d->a_bytes + d->b_bytes + epilogue;
        return;
    }
    int64_t np = (d->nt + d->nr - 1) / d->nr, mp = (d->mt + d->mr - 1) / d->mr, deep = groups_of(d) * 4;
    d->c_bytes = round64(sizeof(int32_t) * (size_t)(mp * d->mr * np * d->nr));
    d->a_bytes = d->packed_a ? 0 : round64((size_t)(mp * d->mr * deep));
    d->b_bytes = d->packed_b || d->shared ? 0 : round64((size_t)(np * d->nr * deep));
    d->line_bytes = d->packed_b || d->shared ? 0 : round64(4 * (size_t)d->nt);
    s->tactic = "contract int8", s->tile = tile;
    s->tiles = d->batch * ((d->m + d->mt - 1) / d->mt) * ((d->n + d->nt - 1) / d->nt);
    s->serial = s->tiles == 1 || d->batch * d->m * d->n * d->k < 1500000;
    s->scratch_bytes = d->c_bytes + d->a_bytes + d->b_bytes + d->line_bytes +
                       round64(sizeof(int32_t) * (size_t)(2 * d->mt + d->mr + d->nt + d->nr)) + epilogue;
}
