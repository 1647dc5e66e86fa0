/* SPDX-License-Identifier: Apache-2.0
   means: averages of integers of 8 or 16 bits, from such integers to such integers: windows (AveragePool) and
   whole axes (ReduceMean, GlobalAveragePool). Found in the program as

        t[domain] = sum(reduced) i64(x[affine] else zero - zero)
        y[domain] = sat(round(f32(t) * (xs * share / ys)) + yz)        share: of indices alone

   Sums are exact, in i32 (what could go beyond that is left to tile code), and only they wait in scratch.
   Three ways, by how x lies:

        rows    the last index of the domain runs along memory in x (channels last): a row of sums is the sum
                of a few rows
        runs    it does not, and no place is outside: sums of pieces of memory, each by itself
        lines   it moves the window (row-major images): rows are added as they lie, and there the window's
                places along them */
#include <string.h>

#include "base/thread.h"
#include "device/cpu/cpu.h"
#include "kernels/epilogue.h"
#include "kernels/pool.h"
#include "loops/match_affine.h"

enum {
    AT_ONCE = 1024, /* columns: their sums stay in L1 */
    LANES = 64,     /* that a run is added in */
    LISTED = 128,   /* rows of a list */
    MAX_ROWS = 1 << 24,
    MAX_COLUMNS = 1 << 24,
    MAX_TAPS = 1 << 20,
    MOST_SHARES = 1 << 20,
    MOST_RUN = 1 << 20,
    LEAST = 1 << 14,
    MOST = 1 << 18 /* bytes a tile reads */
};
typedef struct {
    int tensor; /* where a number is */
    int64_t c;
} place;
typedef struct {
    hone_affine_load x;
    int out, size, out_size;
    bool lines, rows_of_columns; /* neither: runs */
    place xs, xz, ys, yz;        /* xz, yz: tensor -1: 0 */
    hone_dtype x_type, y_type;
    int64_t rows, n, grain, parts, wide;
    int64_t column; /* from one to the next, in x */
    int64_t taps, run;
    const int64_t *row_x, *row_out, *tap_x; /* in elements */
    const int64_t *row_edge[HONE_MAX_BOUNDED], *tap_edge[HONE_MAX_BOUNDED];
    const int64_t *row_share; /* NULL: one share for all */
    int64_t share_step;       /* from column to column */
    const float *share;
    int64_t places, step, ahead, lo, hi; /* lines */
    hone_sum_fn *sum;
    hone_requantize_by_row_fn *whole;
    float low, high;
} means;

static double number_at(const hone_step *s, void *const *base, place p, hone_dtype type) {
    if (p.tensor < 0) return 0;
    const char *at =
        (const char *)hone_ref_at(s->ref[p.tensor], base) + p.c * (int64_t)hone_dtypes[type].bytes;
    switch (type) {
    case HONE_DTYPE_U8: return *(const uint8_t *)at;
    case HONE_DTYPE_I8: return *(const int8_t *)at;
    case HONE_DTYPE_U16: return *(const uint16_t *)(const void *)at;
    case HONE_DTYPE_I16: return *(const int16_t *)(const void *)at;
    default: return (double)*(const float *)(const void *)at;
    }
}
static bool inside(const means *d, int64_t r, int64_t t) {
    for (int q = 0; q < d->x.n_bounded; q++) {
        const int64_t i = d->x.bounded[q].c + d->row_edge[q][r] + d->tap_edge[q][t];
        if (i < 0 || i >= d->x.size[q]) return false;
    }
    return true;
}
typedef struct {
    const means *d;
    const char *x;
    const void **list;
    int32_t *sums, *more;
    int32_t zero;
} adding;
/* n columns from j on of the places of row r: their sum, each less the zero point where `settled`; how many
   places there were. */
static int64_t add_rows(const adding *w, int64_t r, int64_t j, int64_t n) {
    const means *d = w->d;
    int64_t seen = 0, all = 0;
    for (int64_t t = 0; t < d->taps; t++) {
        if (inside(d, r, t)) w->list[seen++] = w->x + (d->row_x[r] + d->tap_x[t] + j) * d->size;
        if (seen < LISTED && (t + 1 < d->taps || !seen)) continue;
        d->sum(w->list, seen, n, all ? w->more : w->sums);
        for (int64_t i = 0; all && i < n; i++) w->sums[i] += w->more[i];
        all += seen, seen = 0;
    }
    if (!all) memset(w->sums, 0, sizeof *w->sums * (size_t)n);
    return all;
}
static int32_t add_run(const adding *w, const char *x) { /* of a piece of memory */
    const means *d = w->d;
    int32_t total = 0, lane[LANES];
    int64_t n = d->run;
    while (n >= LANES) {
        int64_t rows = 0;
        for (; rows < LISTED && n >= LANES; n -= LANES, x += LANES * d->size) w->list[rows++] = x;
        d->sum(w->list, rows, LANES, lane);
        for (int k = 0; k < LANES; k++) total += lane[k];
    }
    if (!n) return total;
    w->list[0] = x;
    d->sum(w->list, 1, n, lane);
    for (int64_t k = 0; k < n; k++) total += lane[k];
    return total;
}
static void add_lines(const adding *w, int64_t r) { /* all columns of row r, the zero point taken off */
    const means *d = w->d;
    const int64_t reach = d->step * (d->n - 1) + d->ahead * (d->places - 1) + 1;
    int32_t *line = w->more;
    memset(line, 0, sizeof *line * (size_t)reach);
    int64_t seen = 0, all = 0;
    for (int64_t t = 0; t < d->taps; t++) {
        if (inside(d, r, t)) w->list[seen++] = w->x + (d->row_x[r] + d->tap_x[t] + d->lo) * d->size;
        if (seen < LISTED && (t + 1 < d->taps || !seen)) continue;
        int32_t *to = all ? line + reach : line + d->lo;
        d->sum(w->list, seen, d->hi - d->lo, to);
        for (int64_t i = 0; all && i < d->hi - d->lo; i++) line[d->lo + i] += to[i];
        all += seen, seen = 0;
    }
    const int32_t less = (int32_t)all * w->zero;
    for (int64_t i = d->lo; i < d->hi && less; i++) line[i] -= less;
    for (int64_t p = 0; p < d->places; p++) {
        const int32_t *from = line + p * d->ahead;
        if (!p && d->step == 1) memcpy(w->sums, from, sizeof *from * (size_t)d->n);
        else if (!p)
            for (int64_t j = 0; j < d->n; j++) w->sums[j] = from[d->step * j];
        else if (d->step == 1)
            for (int64_t j = 0; j < d->n; j++) w->sums[j] += from[j];
        else if (d->step == 2)
            for (int64_t j = 0; j < d->n; j++) w->sums[j] += from[2 * j];
        else
            for (int64_t j = 0; j < d->n; j++) w->sums[j] += from[d->step * j];
    }
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const means *d = s->data;
    const int64_t from = number / d->parts * d->grain,
                  to = d->rows - from < d->grain ? d->rows : from + d->grain;
    const int64_t first = number % d->parts * d->wide, past = d->n - first < d->wide ? d->n : first + d->wide;
    const int64_t room = d->lines ? d->n : AT_ONCE;
    adding w = {.d = d,
                .x = (const char *)hone_ref_at(s->ref[d->x.tensor], base) + d->x.at.c * d->size,
                .list = scratch};
    w.sums = (int32_t *)(void *)(w.list + LISTED), w.more = w.sums + room,
    w.zero = (int32_t)number_at(s, base, d->xz, d->x_type);
    char *y = hone_ref_at(s->ref[d->out], base);
    const float xs = (float)number_at(s, base, d->xs, HONE_DTYPE_F32),
                ys = (float)number_at(s, base, d->ys, HONE_DTYPE_F32);
    hone_requantize_by_row row = {
        .zero = (float)number_at(s, base, d->yz, d->y_type), .low = d->low, .high = d->high};
    for (int64_t r = from; r < to; r++)
        for (int64_t j = first, n; j < past; j += n) {
            const float *share = d->share + (d->row_share ? d->row_share[r] + j * d->share_step : 0);
            n = d->lines ? d->n : past - j < AT_ONCE ? past - j : AT_ONCE;
            row.bias = 0;
            if (d->lines) add_lines(&w, r);
            else if (d->rows_of_columns) row.bias = (int32_t)(0 - add_rows(&w, r, j, n) * w.zero);
            else {
                row.bias = (int32_t)(0 - d->taps * d->run * w.zero);
                for (int64_t i = 0; i < n; i++) {
                    w.sums[i] = 0;
                    for (int64_t t = 0; t < d->taps; t++)
                        w.sums[i] +=
                            add_run(&w, w.x + (d->row_x[r] + (j + i) * d->column + d->tap_x[t]) * d->size);
                }
            }
            for (int64_t i = 0, k; i < n; i = k) { /* those of one share */
                for (k = d->share_step ? i + 1 : n;
                     k < n && share[k * d->share_step] == share[i * d->share_step];)
                    k++;
                row.scale = xs * share[i * d->share_step] / ys;
                d->whole(&row, w.sums + i, y + (d->row_out[r] + j + i) * d->out_size, k - i);
            }
        }
    return HONE_OK;
}

/* ---- finding it ---------------------------------------------------------------------------------------- */
typedef struct {
    hone_template_builder *m;
    const hone_cpu_call *c;
    hone_slots_of slots;
    means *d;
} finding;
static const hone_x *at(const finding *f, int32_t x) { return f->c->instance->x + x; }
static bool is_fn(const finding *f, int32_t x, hone_fn fn) {
    return at(f, x)->kind == HONE_X_FN && at(f, x)->fn == fn;
}
static bool is_cast(const finding *f, int32_t x, hone_ctype to) {
    return at(f, x)->kind == HONE_X_CAST && at(f, x)->type == to;
}
static bool one_number(const finding *f, int32_t x, hone_dtype type, place *out) {
    hone_affine where;
    if (!hone_affine_inside(&f->c->sized, &f->slots, x, &where) ||
        f->c->instance->tensor[at(f, x)->a].dtype != type)
        return false;
    for (int k = 0; k < f->slots.n; k++)
        if (where.k[k] && f->slots.extent[k] > 1) return false;
    *out = (place){at(f, x)->a, where.c};
    return true;
}
static bool is_whole(hone_dtype t) {
    return t == HONE_DTYPE_U8 || t == HONE_DTYPE_I8 || t == HONE_DTYPE_U16 || t == HONE_DTYPE_I16;
}
/* i64(x [- zero]), x with what is outside being the zero point */
static bool term(finding *f, int32_t x) {
    means *d = f->d;
    hone_affine_load none;
    d->xz.tensor = -1;
    if (is_cast(f, x, HONE_I64)) x = at(f, x)->a;
    int32_t zero = -1;
    if (is_fn(f, x, HONE_FN_sub)) zero = at(f, x)->b, x = at(f, x)->a;
    if (at(f, x)->kind != HONE_X_LOAD) return false;
    d->x_type = f->c->instance->tensor[at(f, x)->a].dtype;
    return is_whole(d->x_type) && (zero < 0 || one_number(f, zero, d->x_type, &d->xz)) &&
           hone_affine_of_load(&f->c->sized, &f->slots, x, HONE_AFFINE_WHOLE, zero, &d->x, &none);
}
static bool by_indices(const finding *f, int32_t x, uint32_t *slots) { /* false: it loads something */
    const hone_x *e = at(f, x);
    const int32_t arg[] = {e->a, e->b, e->c};
    int n = e->kind == HONE_X_FN ? hone_fns[e->fn].arity : e->kind == HONE_X_SELECT ? 3 : 1;
    if (e->kind == HONE_X_CONST || e->kind == HONE_X_PARAM) return true;
    if (e->kind == HONE_X_LOAD) return false;
    if (e->kind == HONE_X_INDEX) {
        for (int k = 0; k < f->slots.n_domain; k++)
            if (f->slots.id[k] == e->a) return *slots |= 1u << k, true;
        return false;
    }
    for (int k = 0; k < n; k++)
        if (!by_indices(f, arg[k], slots)) return false;
    return true;
}
/* A table of x over the indices that it knows; how each moves in it. */
static bool tabulate(finding *f, int32_t x, hone_affine *by) {
    const hone_instance *in = f->c->instance;
    uint32_t slots = 0;
    int64_t many = 1, *index = HONE_NEW_N(f->m->arena, int64_t, in->n_index + 1);
    *by = (hone_affine){0};
    if (at(f, x)->type != HONE_F32 || !by_indices(f, x, &slots) || !index) return false;
    for (int k = f->slots.n_domain - 1; k >= 0; k--) {
        if (!(slots >> k & 1)) continue;
        by->k[k] = many;
        if ((many *= f->slots.extent[k]) > MOST_SHARES) return false;
    }
    float *table = hone_arena_raw(f->m->arena, sizeof *table * (size_t)many);
    if (!table) return false;
    for (int64_t p = 0; p < many; p++) {
        int64_t rest = p;
        for (int k = f->slots.n_domain - 1; k >= 0; k--)
            if (slots >> k & 1) index[f->slots.id[k]] = rest % f->slots.extent[k], rest /= f->slots.extent[k];
        table[p] = hone_interpret_x(in, f->c->param, index, x).f32;
    }
    f->d->share = table;
    return true;
}
/* The second stage: reads the sum at its own indices. */
static bool finish(finding *f, int stage, hone_affine *share) {
    const hone_instance *in = f->c->instance;
    const hone_stage *z = in->stage + stage + 1;
    means *d = f->d;
    int32_t x = z->value;
    d->yz.tensor = -1, d->y_type = in->tensor[z->tensor].dtype, d->out = z->tensor;
    if (!z->saturate || !is_whole(d->y_type)) return false;
    if (is_fn(f, x, HONE_FN_add)) {
        const int32_t zero = is_cast(f, at(f, x)->b, HONE_F32) ? at(f, at(f, x)->b)->a : at(f, x)->b;
        if (!one_number(f, zero, d->y_type, &d->yz)) return false;
        x = at(f, x)->a;
    }
    if (!is_fn(f, x, HONE_FN_round) || !is_fn(f, at(f, x)->a, HONE_FN_mul)) return false;
    const hone_x *times = at(f, at(f, x)->a);
    const int32_t sum = times->a;
    if (!is_cast(f, sum, HONE_F32) || at(f, at(f, sum)->a)->kind != HONE_X_LOAD ||
        at(f, at(f, sum)->a)->a != in->stage[stage].tensor || !is_fn(f, times->b, HONE_FN_div))
        return false;
    const hone_x *over = at(f, times->b);
    return is_fn(f, over->a, HONE_FN_mul) && one_number(f, at(f, over->a)->a, HONE_DTYPE_F32, &d->xs) &&
           one_number(f, over->b, HONE_DTYPE_F32, &d->ys) && tabulate(f, at(f, over->a)->b, share);
}
/* Row-major: takes the last index of the domain, and of the window where that moves it too, out of what is
   asked for each row. */
static bool in_lines(means *d, const hone_slots_of *slots, int last, int *taps) {
    const int kx = slots->n - 1;
    const bool moves = kx > last && d->x.at.k[kx] > 0 && d->x.at.k[kx] <= 16;
    d->places = moves ? slots->extent[kx] : 1, d->step = d->x.at.k[last],
    d->ahead = moves ? d->x.at.k[kx] : 1;
    if (d->step < 1 || d->step > 16) return false;
    const int64_t reach = d->step * (d->n - 1) + d->ahead * (d->places - 1) + 1;
    int bound = -1;
    d->lo = 0, d->hi = reach;
    for (int q = 0; q < d->x.n_bounded; q++) {
        const hone_affine *f = d->x.bounded + q;
        if (!f->k[last] && !(moves && f->k[kx])) continue;
        if (bound >= 0 || f->k[last] != d->step || (moves && f->k[kx] != d->ahead)) return false;
        for (int k = 0; k < slots->n; k++)
            if (k != last && !(moves && k == kx) && f->k[k] && slots->extent[k] > 1) return false;
        bound = q, d->lo = f->c < 0 ? -f->c : 0,
        d->hi = d->x.size[q] - f->c < reach ? d->x.size[q] - f->c : reach;
    }
    if (d->hi <= d->lo || reach > MOST_RUN) return false;
    if (bound >= 0)
        d->x.n_bounded--, d->x.bounded[bound] = d->x.bounded[d->x.n_bounded],
                          d->x.size[bound] = d->x.size[d->x.n_bounded];
    if (moves) --*taps, d->taps /= d->places;
    return d->lines = true;
}
/* The innermost of the reduced indices as one piece of memory. */
static void in_runs(means *d, const hone_slots_of *slots, int last, int *taps) {
    d->run = 1;
    while (*taps && (slots->extent[last + *taps] == 1 || d->x.at.k[last + *taps] == d->run) &&
           d->run <= MAX_TAPS / slots->extent[last + *taps])
        d->run *= slots->extent[last + *taps], d->taps /= slots->extent[last + *taps], --*taps;
}
hone_status hone_cpu_means(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                           bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    finding f = {.m = m, .c = c, .d = HONE_NEW(m->arena, means)};
    means *d = f.d;
    hone_affine share, out = {0};
    if (!d) return hone_steps_no_memory();
    if (st->reduce != HONE_REDUCE_SUM || st->how || !st->identity || in->x[st->value].type != HONE_I64 ||
        stage + 1 == in->n_stage || !st[1].follows || !st[1].identity || st[1].reduce || st[1].how ||
        st[1].skip || st[1].n_index != st->n_index ||
        !hone_affine_slots(&c->sized, stage, stage + 1, &f.slots) || !f.slots.injective ||
        f.slots.n_domain < 1 || !term(&f, st->value) || !finish(&f, stage, &share))
        return HONE_OK;
    const hone_slots_of *slots = &f.slots;
    int last = slots->n_domain - 1, row[HONE_MAX_SLOTS], tap[HONE_MAX_SLOTS],
        taps = slots->n - slots->n_domain;
    for (int k = 0; k <= last; k++) out.k[k] = c->stride[d->out][slots->dim[k]], row[k] = k;
    d->rows = d->taps = d->run = 1, d->n = slots->extent[last], d->column = d->x.at.k[last];
    d->size = (int)hone_dtypes[d->x_type].bytes, d->out_size = (int)hone_dtypes[d->y_type].bytes;
    d->low = (float)hone_dtypes[d->y_type].lowest, d->high = (float)hone_dtypes[d->y_type].highest;
    for (int k = 0; k < last; k++) d->rows *= slots->extent[k];
    for (int k = last + 1; k < slots->n; k++) {
        if (slots->extent[k] > MAX_TAPS / d->taps) return HONE_OK;
        tap[k - last - 1] = k, d->taps *= slots->extent[k];
    }
    if (d->n > MAX_COLUMNS || d->rows > MAX_ROWS || (d->n > 1 && out.k[last] != 1) ||
        d->taps * ((int64_t)1 << (8 * d->size)) > INT32_MAX) /* exact, whatever the zero point */
        return HONE_OK;
    const int64_t each = d->taps;
    bool along = d->column != 1 || d->n == 1; /* the last index moves the window, or there is none */
    for (int q = 0; q < d->x.n_bounded; q++) along |= d->x.bounded[q].k[last] != 0;
    d->rows_of_columns = !along;
    if (along && !(d->x.n_bounded && in_lines(d, slots, last, &taps))) {
        bool window = false; /* places that overlap are added once for all who see them */
        for (int k = last + 1; k < slots->n; k++)
            window |= d->x.at.k[k] == 1 && d->column <= 16 && d->n > 1 && slots->extent[k] > 1;
        if (d->x.n_bounded) return HONE_OK;
        if (!window || !in_lines(d, slots, last, &taps)) in_runs(d, slots, last, &taps);
    }
    bool made = (d->row_x = hone_affine_table(m->arena, slots, row, last, &d->x.at)) &&
                (d->row_out = hone_affine_table(m->arena, slots, row, last, &out)) &&
                (d->tap_x = hone_affine_table(m->arena, slots, tap, taps, &d->x.at));
    bool shares = false;
    for (int k = 0; k <= last; k++) shares |= share.k[k] != 0;
    if (shares && made)
        made = (d->row_share = hone_affine_table(m->arena, slots, row, last, &share)) != NULL,
        d->share_step = share.k[last];
    for (int q = 0; q < d->x.n_bounded && made; q++)
        made = (d->row_edge[q] = hone_affine_table(m->arena, slots, row, last, d->x.bounded + q)) &&
               (d->tap_edge[q] = hone_affine_table(m->arena, slots, tap, taps, d->x.bounded + q));
    if (!made) return hone_steps_no_memory();
    const hone_epilogue *e = hone_epilogue_best();
    const hone_whole kind = d->x_type == HONE_DTYPE_U8    ? HONE_WHOLE_u8
                            : d->x_type == HONE_DTYPE_I8  ? HONE_WHOLE_i8
                            : d->x_type == HONE_DTYPE_U16 ? HONE_WHOLE_u16
                                                          : HONE_WHOLE_i16;
    d->sum = hone_pool_best()->sum[kind];
    d->whole = d->y_type == HONE_DTYPE_U8    ? e->requantize_u8
               : d->y_type == HONE_DTYPE_I8  ? e->requantize_i8
               : d->y_type == HONE_DTYPE_U16 ? e->requantize_u16
                                             : e->requantize_i16;
    const int64_t work = each * d->n * d->size, block = d->lines ? d->n : AT_ONCE;
    d->wide = d->n, d->parts = 1,
    d->grain = hone_share_of(d->rows, LEAST / work + 1, MOST / work + 1, c->how.threads);
    if (!d->lines && d->rows < c->how.threads && d->n > 1) {
        const int64_t own = each * d->size;
        d->wide =
            hone_round_up(hone_share_of(d->n * d->rows, LEAST / own + 1, MOST / own + 1, c->how.threads), 64);
        d->wide = d->wide > d->n ? d->n : d->wide, d->grain = 1, d->parts = hone_ceil_div(d->n, d->wide);
    }
    const int64_t reach = d->lines ? d->step * (d->n - 1) + d->ahead * (d->places - 1) + 1 : 0;
    hone_step step = {.tactic = "quantized mean",
                      .tiles = hone_ceil_div(d->rows, d->grain) * d->parts,
                      .scratch_bytes = sizeof(void *) * LISTED +
                                       sizeof(int32_t) * (size_t)(block + (d->lines ? 2 * reach : AT_ONCE)),
                      .tile = tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true, *end = stage + 2;
    const uint64_t uses = (st->uses | st[1].uses) & ~((uint64_t)1 << st->tensor);
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = uses, .buffer = -1});
}
