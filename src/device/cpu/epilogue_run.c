/* SPDX-License-Identifier: Apache-2.0
   epilogue_run: what loops/match_epilogue.h recognised, on rows. */
#include <math.h>
#include <string.h>

#include "base/round.h"
#include "device/cpu/epilogue.h"

int64_t hone_epilogue_at(const hone_row_number *r, int n_batch, const int64_t *batch, int64_t m) {
    int64_t k = r->c + r->at_m[m];
    for (int q = 0; q < n_batch; q++) k += r->by_batch[q] * batch[q];
    return k;
}
float hone_epilogue_number(const hone_row_number *r, int n_batch, void *const *at, const int64_t *batch,
                           int64_t m) {
    if (r->tensor < 0) return r->k;
    int64_t k = hone_epilogue_at(r, n_batch, batch, m);
    if (r->dtype == HONE_DTYPE_F32) return ((const float *)at[r->tensor])[k];
    return r->dtype == HONE_DTYPE_U8 ? (float)((const uint8_t *)at[r->tensor])[k]
                                     : (float)((const int8_t *)at[r->tensor])[k];
}
static hone_epilogue_row numbers(const hone_cpu_epilogue *s, void *const *at, const int64_t *batch,
                                 int64_t m) {
#define NUMBER(which) hone_epilogue_number(&s->which, s->n_batch, at, batch, m)
    return (hone_epilogue_row){NUMBER(bias), NUMBER(lo), NUMBER(hi),        NUMBER(scale),     NUMBER(zero),
                               s->low,       s->high,    NUMBER(back_zero), NUMBER(back_scale)};
#undef NUMBER
}
void hone_epilogue_read(const hone_cpu_epilogue *s, void *const *at, const int64_t *batch, int64_t m,
                        int64_t n0, int64_t n, const uint8_t *bytes, float *room) {
    if (s->table) {
        hone_table_floats(s->table->floats, bytes,
                          (float *)at[s->out.tensor] + hone_epilogue_at(&s->out, s->n_batch, batch, m) + n0,
                          n);
        return;
    }
    const hone_read_rows *all[] = {&s->source, &s->more};
    hone_seen_row seen[2] = {0};
    for (int k = 0; k < 2; k++) {
        const hone_row_number *from = k ? &s->residual : &s->source.at;
        const bool own = k || !bytes, is_signed = from->dtype == HONE_DTYPE_I8;
        if (own && from->tensor < 0) continue; /* no residual */
        const char *row =
            own ? (const char *)at[from->tensor] +
                      (hone_epilogue_at(from, s->n_batch, batch, m) + n0) * hone_dtypes[from->dtype].bytes
                : (const char *)bytes;
        if (k ? s->reads_more : s->reads)
            seen[k] = (hone_seen_row){(const uint8_t *)row, is_signed ? 0x80 : 0,
                                      hone_epilogue_number(&all[k]->zero, s->n_batch, at, batch, m) +
                                          (is_signed ? 128.0f : 0.0f),
                                      hone_epilogue_number(&all[k]->scale, s->n_batch, at, batch, m), NULL};
        else seen[k].floats = (const float *)(const void *)row;
    }
    hone_epilogue_row row = numbers(s, at, batch, m);
    if (s->bias_n)
        row.bias = -0.0f,
        seen[1] = (hone_seen_row){.floats = (const float *)at[s->bias.tensor] +
                                            hone_epilogue_at(&s->bias, s->n_batch, batch, m) + n0};
    char *out = (char *)at[s->out.tensor] +
                (hone_epilogue_at(&s->out, s->n_batch, batch, m) + n0) * hone_dtypes[s->out.dtype].bytes;
    const bool nothing = row.bias == 0 && signbit(row.bias), two = seen[1].bytes || seen[1].floats;
    hone_joint_fn *joint = !nothing || !two            ? NULL
                           : s->run == s->kernel->f32  ? s->kernel->joint_f32
                           : s->run != s->kernel->back ? s->kernel->joint_bytes
                                                       : NULL;
    if (!joint || !joint(&row, seen, seen + 1, out, n)) {
        for (int k = 0; k < 2; k++)
            if (seen[k].bytes)
                s->kernel->dequantize(seen[k].bytes, seen[k].over, seen[k].zero, seen[k].scale, room + k * n,
                                      n),
                    seen[k].floats = room + k * n;
        s->run(&row, seen[0].floats, seen[1].floats, out, n);
    }
    float *finished = (float *)(void *)out;
    if (s->activate) s->activate(&finished, 0, 1, n, s->alpha, s->beta);
}
void hone_epilogue_columns(const hone_cpu_epilogue *s, void *const *at, const int64_t *batch, int64_t n0,
                           int64_t n, int32_t *bias, float *scale, hone_requantize *out) {
#define NUMBER(which) hone_epilogue_number(&s->which, s->n_batch, at, batch, 0)
    const int32_t *more = s->bias.tensor < 0 ? NULL
                                             : (const int32_t *)at[s->bias.tensor] +
                                                   hone_epilogue_at(&s->bias, s->n_batch, batch, 0);
    const float *each = s->scale_n ? (const float *)at[s->scale_b.tensor] +
                                         hone_epilogue_at(&s->scale_b, s->n_batch, batch, 0) + n0
                                   : NULL;
    const float left = NUMBER(scale), right = each ? 0 : NUMBER(scale_b), over = NUMBER(scale_y),
                all = left * right / over;
    const bool is_signed = s->out.dtype == HONE_DTYPE_I8;
    const int64_t whole = hone_round_up(n, HONE_REQUANTIZE_BLOCK);
    *out = (hone_requantize){
        bias,  scale, (int32_t)NUMBER(zero) + (is_signed ? 128 : 0), is_signed ? 0x80 : 0, false, true,
        false, false};
    if (s->bias_n && more) memcpy(bias, more + n0, sizeof *bias * (size_t)n);
    for (int64_t j = 0; !s->bias_n && j < n; j++) bias[j] = more ? *more : 0;
    for (int64_t j = 0; each && j < n; j++) scale[j] = left * each[j] / over;
    for (int64_t j = 0; !each && j < n; j++) scale[j] = all;
    int odd = 0, wild = 0;
    for (int64_t j = 0; j < n; j++) odd |= !(scale[j] - scale[j] == 0), wild |= !(fabsf(scale[j]) <= 0.5f);
    out->nonfinite = odd, out->tame = !wild;
    for (int64_t j = n; j < whole; j++) bias[j] = 0, scale[j] = 0;
#undef NUMBER
}
void hone_epilogue_finish(const hone_cpu_epilogue *s, void *const *at, const int64_t *batch, int64_t m0,
                          int64_t m, int64_t n0, int64_t n, const int32_t *sum, ptrdiff_t step,
                          const int32_t *take, const int32_t *less) {
#define NUMBER(which, row) hone_epilogue_number(&s->which, s->n_batch, at, batch, row)
#define COLUMNS(which) \
    ((const float *)at[s->which.tensor] + hone_epilogue_at(&s->which, s->n_batch, batch, m0) + n0)
    enum { ROWS = 64 }; /* at once */
    const bool is_signed = s->more.at.dtype == HONE_DTYPE_I8, more = s->residual.tensor >= 0;
    hone_finish w = {.take = take,
                     .scale = s->scale_n ? COLUMNS(scale_b) : NULL,
                     .bias = s->bias_n ? COLUMNS(bias) : NULL,
                     .each = s->each.tensor >= 0 ? COLUMNS(each) : NULL,
                     .activate = s->activate ? s->which : HONE_ACTIVATE_COUNT,
                     .alpha = s->alpha,
                     .beta = s->beta,
                     .then = s->then != NULL,
                     .bytes = s->out.dtype != HONE_DTYPE_F32};
    if (w.then) w.times = NUMBER(times, m0), w.plus = NUMBER(plus, m0);
    if (s->reads_more) {
        w.residual.bytes = true, w.residual.over = is_signed ? 0x80 : 0;
        w.residual.zero = NUMBER(more.zero, m0) + (is_signed ? 128.0f : 0.0f);
        w.residual.scale = NUMBER(more.scale, m0);
    }
    const size_t out_bytes = hone_dtypes[s->out.dtype].bytes,
                 more_bytes = more ? hone_dtypes[s->residual.dtype].bytes : 0;
    const int64_t out_0 = hone_epilogue_at(&s->out, s->n_batch, batch, m0) - s->out.at_m[m0] + n0,
                  more_0 =
                      more ? hone_epilogue_at(&s->residual, s->n_batch, batch, m0) - s->residual.at_m[m0] + n0
                           : 0;
    for (int64_t i = 0, many; i < m; i += many) {
        void *out[ROWS];
        const void *residual[ROWS];
        const int64_t row = m0 + i;
        many = !s->alike ? 1 : m - i < ROWS ? m - i : ROWS;
        for (int64_t q = 0; q < many; q++) {
            out[q] = (char *)at[s->out.tensor] + (out_0 + s->out.at_m[row + q]) * (int64_t)out_bytes;
            if (more)
                residual[q] = (const char *)at[s->residual.tensor] +
                              (more_0 + s->residual.at_m[row + q]) * (int64_t)more_bytes;
        }
        if (!i || !s->alike) {
            w.end = numbers(s, at, batch, row);
            w.by = s->scale_n ? 0 : NUMBER(scale_b, row);
        }
        s->finish(&w, many, n, sum + i * step, step, less ? less + i : NULL, more ? residual : NULL, out);
    }
#undef NUMBER
#undef COLUMNS
}
/* A row of sums of floats: out in floats, or as bytes. */
static void floats_row(const hone_cpu_epilogue *s, void *const *at, const int64_t *batch, int64_t m,
                       int64_t n0, int64_t n, float *acc, void *out) {
    const float *residual = NULL;
    if (s->residual.tensor >= 0)
        residual =
            (const float *)at[s->residual.tensor] + hone_epilogue_at(&s->residual, s->n_batch, batch, m) + n0;
    hone_epilogue_row row = numbers(s, at, batch, m);
    /* one a column: in the residual's place, or added to the sums first where that is taken */
    if (s->bias_n) {
        const float *bias =
            (const float *)at[s->bias.tensor] + hone_epilogue_at(&s->bias, s->n_batch, batch, m) + n0;
        row.bias = -0.0f;
        for (int64_t j = 0; residual && j < n; j++) acc[j] += bias[j];
        if (!residual) residual = bias;
    }
    s->run(&row, acc, residual, out, n);
    float *finished = out;
    if (s->activate) s->activate(&finished, 0, 1, n, s->alpha, s->beta);
}
/* Rows of sums of floats that become bytes behind an activation. Short rows of numbers that are alike are
   made floats of side by side, so that the activation has a long one. */
static void behind(const hone_cpu_epilogue *s, void *const *at, const int64_t *batch, int64_t m0, int64_t m,
                   int64_t n0, int64_t n, float *acc, int64_t stride) {
    enum { ROOM = 512, ROWS = 32 };
    const hone_cpu_epilogue *b = s->before;
    const int64_t wide = !s->alike || n > ROOM / 2 ? 1 : ROOM / n < ROWS ? ROOM / n : ROWS;
    const bool bias = b->bias_n, more = b->residual.tensor >= 0;
    hone_epilogue_row sum, row;
    float room[ROOM], *there = room, times = 0, plus = 0;
    for (int64_t i = 0, many; i < m; i += many) {
        many = m - i < wide ? m - i : wide;
        if (!i || !s->alike) {
            sum = numbers(b, at, batch, m0 + i), row = numbers(s, at, batch, m0 + i);
            if (bias) sum.bias = -0.0f;
            if (b->then)
                times = hone_epilogue_number(&b->times, s->n_batch, at, batch, m0 + i),
                plus = hone_epilogue_number(&b->plus, s->n_batch, at, batch, m0 + i);
        }
#define COLUMNS(which) \
    ((const float *)at[which.tensor] + hone_epilogue_at(&which, s->n_batch, batch, m0 + i) + n0)
        const float *columns = bias ? COLUMNS(b->bias) : NULL,
                    *each = s->each.tensor < 0 ? NULL : COLUMNS(s->each);
#undef COLUMNS
        for (int64_t j = 0, some; j < n; j += some) {
            some = n - j < ROOM ? n - j : ROOM;
            for (int64_t q = 0; q < many; q++) {
                float *from = acc + (i + q) * stride + j;
                const float *residual =
                    more ? (const float *)at[b->residual.tensor] +
                               hone_epilogue_at(&b->residual, s->n_batch, batch, m0 + i + q) + n0 + j
                         : NULL;
                /* one a column: in the residual's place, or added to the sums first where that is taken */
                for (int64_t k = 0; bias && more && k < some; k++) from[k] += columns[j + k];
                b->run(&sum, from, more || !bias ? residual : columns + j, room + q * some, some);
            }
            b->activate(&there, 0, 1, many * some, b->alpha, b->beta);
            if (b->then) b->then(&there, 0, 1, many * some, times, plus, NULL, 0);
            for (int64_t q = 0; each && q < many; q++)
                for (int64_t k = 0; k < some; k++) room[q * some + k] *= each[j + k];
            /* rows that follow on are one */
            for (int64_t q = 0, rows; q < many; q += rows) {
                const int64_t to = hone_epilogue_at(&s->out, s->n_batch, batch, m0 + i + q) + n0 + j,
                              *at_m = s->out.at_m + m0 + i + q;
                for (rows = 1; q + rows < many && at_m[rows] == at_m[rows - 1] + some; rows++) {}
                s->run(&row, room + q * some, NULL, (char *)at[s->out.tensor] + to, rows * some);
            }
        }
    }
}
void hone_epilogue_run(const hone_cpu_epilogue *s, void *const *at, const int64_t *batch, int64_t m,
                       int64_t n0, int64_t n, void *acc, int32_t less) {
#define NUMBER(which) hone_epilogue_number(&s->which, s->n_batch, at, batch, m)
    if (s->finish) {
        hone_epilogue_finish(s, at, batch, m, 1, n0, n, acc, n, NULL, &less);
        return;
    }
    int64_t to = hone_epilogue_at(&s->out, s->n_batch, batch, m) + n0;
    void *out = (char *)at[s->out.tensor] + to * hone_dtypes[s->out.dtype].bytes;
    if (s->requantize) {
        int32_t bias =
            s->bias.tensor < 0
                ? 0
                : ((const int32_t *)at[s->bias.tensor])[hone_epilogue_at(&s->bias, s->n_batch, batch, m)];
        hone_requantize_by_row row = {(int32_t)((uint32_t)bias - (uint32_t)less),
                                      NUMBER(scale) * NUMBER(scale_b) / NUMBER(scale_y), NUMBER(zero), s->low,
                                      s->high};
        s->requantize(&row, acc, out, n);
        if (s->table) hone_table_bytes(s->table->bytes, out, out, n);
        return;
    }
#undef NUMBER
    if (s->before) behind(s, at, batch, m, 1, n0, n, acc, n);
    else floats_row(s, at, batch, m, n0, n, acc, out);
}
void hone_epilogue_rows(const hone_cpu_epilogue *s, void *const *at, const int64_t *batch, int64_t m0,
                        int64_t m, int64_t n0, int64_t n, void *acc, int64_t stride, const int32_t *less) {
    if (s->before && !less) behind(s, at, batch, m0, m, n0, n, acc, stride);
    else
        for (int64_t i = 0; i < m; i++)
            hone_epilogue_run(s, at, batch, m0 + i, n0, n, (char *)acc + i * stride * 4, less ? less[i] : 0);
}
