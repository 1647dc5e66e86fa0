/* SPDX-License-Identifier: Apache-2.0
   pool: the largest value of a window (of floats or of bytes), or their sum, over images that lie channels
     last. Found in the program as  y[domain] = max(reduced) x[affine]
   else -inf (of bytes the least of their type),  or sum and 0, where the domain's last index runs along
   memory in both and moves no window: so a row of channels is the largest (the sum) of a few rows. What is
   outside is left out, which is what -inf and 0 come to. Large windows go in two ways: all of a row of
   pixels is the largest of a few rows, in scratch, and there each window's places along the row are
   compared: kh + kw values instead of kh * kw. Row-major images go so too, a pixel being one value: places
   along the row are then the row itself, moved. Everything else runs as tile code; so do long sums. */
#include "kernels/pool.h"

#include <math.h>
#include <string.h>

#include "base/round.h"
#include "base/thread.h"
#include "loops/match_affine.h"
#include "device/cpu/cpu.h"
#include "kernels/gemm_half.h"

enum {
    MAX_ROWS = 1 << 24,
    MAX_ROW = 1 << 24,
    MAX_TAPS = 1024,
    MOST_EVEN = 64,
    MAX_SUMMED = 64,
    LEAST_SUMS = 8,
    LEAST = 1 << 13,
    MOST = 1 << 16 /* values a tile reads */
};
typedef struct {
    hone_affine_load x;
    int out;
    int64_t rows, n, taps, grain;
    const int64_t *row_x, *row_out, *tap_x; /* in elements */
    const int64_t *row_edge[HONE_MAX_BOUNDED], *tap_edge[HONE_MAX_BOUNDED];
    const hone_pool *kernel;
    hone_pool_bytes_fn *bytes; /* of bytes; NULL: of floats */
    int lowest, size;          /* the least byte of the type; bytes of an element */
    const uint8_t *even;       /* see even_rows; or NULL */
    ptrdiff_t even_x, even_out;
    hone_narrow_fn *narrow;
    const float *ones; /* weights of a sum's rows; NULL: the largest is sought */
    /* two ways: rows are then rows of pixels, and taps the window's without its places along them. Place p of
       pixel i is at step * i + ahead * p, inside from lo up to hi */
    bool ways, lanes; /* lanes: row-major */
    int64_t run, places, pitch, step, ahead, lo, hi, out_step;
} pool;
static bool inside(const pool *d, int64_t r, int64_t t) {
    for (int q = 0; q < d->x.n_bounded; q++) {
        const int64_t i = d->x.bounded[q].c + d->row_edge[q][r] + d->tap_edge[q][t];
        if (i < 0 || i >= d->x.size[q]) return false;
    }
    return true;
}
static int64_t list_taps(const pool *d, const char *x, int size, int64_t r, const char **list) {
    int64_t many = 0;
    for (int64_t t = 0; t < d->taps; t++)
        if (inside(d, r, t)) list[many++] = x + (d->row_x[r] + d->tap_x[t]) * size;
    return many;
}
/* One row of so many in the list; of none what adds nothing. */
static void join(const pool *d, const char **list, int64_t many, int64_t n, char *y) {
    const void *rows = list;
    float *out = (float *)(void *)y;
    if (many && d->bytes) d->bytes(rows, many, n, 1, 0, 0, (uint8_t *)y);
    else if (many && d->ones) d->kernel->blend(rows, d->ones, many, n, out);
    else if (many) d->kernel->max(rows, many, n, 1, 0, 0, out);
    else if (d->bytes) memset(y, d->lowest, (size_t)n);
    else
        for (int64_t j = 0; j < n; j++) out[j] = d->ones ? 0 : -INFINITY;
}
static hone_status tile_ways(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const pool *d = s->data;
    const int size = d->size;
    const char *x = (const char *)hone_ref_at(s->ref[d->x.tensor], base) +
                    (d->x.at.c + d->lo * d->pitch) * size,
               **list = scratch;
    char *row = (char *)(list + d->taps + d->places), *y = hone_ref_at(s->ref[d->out], base);
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain;
    for (int64_t r = from; r < to; r++) {
        const int64_t many = list_taps(d, x, size, r, list);
        /* they may follow on */
        const int64_t pixels = !many ? 0 : d->hi - d->lo, once = d->pitch == d->n ? pixels : 1;
        for (int64_t i = 0; i < pixels; i += once) {
            join(d, list, many, once * d->n, row + i * d->n * size);
            for (int64_t t = 0; t < many; t++) list[t] += d->pitch * size;
        }
        for (int64_t i = 0; i < d->run; i++) {
            int64_t seen = 0;
            for (int64_t p = 0; p < d->places && many; p++) {
                const int64_t at = d->step * i + d->ahead * p;
                if (at >= d->lo && at < d->hi) list[seen++] = row + (at - d->lo) * d->n * size;
            }
            join(d, list, seen, d->n, y + (d->row_out[r] + i * d->out_step) * size);
        }
    }
    return HONE_OK;
}
/* One of so many values. */
static void every(const pool *d, const char *all, char *y) {
    const float *f = (const float *)(const void *)all;
    float *out = (float *)(void *)y;
    if (d->bytes && d->step == 2)
        for (int64_t i = 0; i < d->run; i++) y[i] = all[2 * i];
    else if (d->bytes)
        for (int64_t i = 0; i < d->run; i++) y[i] = all[d->step * i];
    else if (d->step == 2)
        for (int64_t i = 0; i < d->run; i++) out[i] = f[2 * i];
    else
        for (int64_t i = 0; i < d->run; i++) out[i] = f[d->step * i];
}
/* Row-major: in scratch the row reaches from the first place to the last, with what adds nothing where it is
   outside; a window's places are the row, moved. */
static hone_status tile_lanes(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const pool *d = s->data;
    const int size = d->size;
    const char *x = (const char *)hone_ref_at(s->ref[d->x.tensor], base) + (d->x.at.c + d->lo) * size,
               **list = scratch;
    const int64_t span = d->step * (d->run - 1) + 1, reach = span + d->ahead * (d->places - 1);
    char *row = (char *)(list + d->taps + d->places), *all = row + reach * size,
         *y = hone_ref_at(s->ref[d->out], base);
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain;
    join(d, NULL, 0, reach, row);
    for (int64_t r = from; r < to; r++) {
        char *out = y + d->row_out[r] * size;
        join(d, list, list_taps(d, x, size, r, list), d->hi - d->lo, row + d->lo * size);
        for (int64_t p = 0; p < d->places; p++) list[p] = row + d->ahead * p * size;
        join(d, list, d->places, span, d->step == 1 ? out : all);
        if (d->step > 1) every(d, all, out);
    }
    return HONE_OK;
}
/* The bound of the index ox of a row of pixels and kx of its window's places, both moving it as d says: it
   becomes lo and hi, and is taken out of those asked for each row.
   kx below 0: one place. False: bounded otherwise, or nothing is inside. */
static bool take_bound(pool *d, const hone_slots_of *slots, int ox, int kx) {
    const int64_t reach = d->step * (d->run - 1) + d->ahead * (d->places - 1) + 1;
    int bound = -1;
    d->lo = 0, d->hi = reach;
    for (int q = 0; q < d->x.n_bounded; q++) {
        const hone_affine *f = d->x.bounded + q;
        if (!f->k[ox] && !(kx >= 0 && f->k[kx])) continue;
        if (bound >= 0 || f->k[ox] != d->step || (kx >= 0 && f->k[kx] != d->ahead)) return false;
        for (int k = 0; k < slots->n; k++)
            if (k != ox && k != kx && f->k[k] && slots->extent[k] > 1) return false;
        bound = q, d->lo = f->c < 0 ? -f->c : 0,
        d->hi = d->x.size[q] - f->c < reach ? d->x.size[q] - f->c : reach;
    }
    if (d->hi <= d->lo) return false;
    if (bound >= 0)
        d->x.n_bounded--, d->x.bounded[bound] = d->x.bounded[d->x.n_bounded],
                          d->x.size[bound] = d->x.size[d->x.n_bounded];
    return true;
}
/* Is it row-major, and the index along memory moves the window? Takes the last index of the domain and of the
   window out of rows and taps. */
static bool in_lanes(pool *d, const hone_slots_of *slots, int last, int *taps) {
    const int kx = slots->n - 1;
    const bool moves = kx > last && d->x.at.k[kx] > 0 && d->x.at.k[kx] <= 16;
    d->run = slots->extent[last], d->places = moves ? slots->extent[kx] : 1, d->step = d->x.at.k[last],
    d->ahead = moves ? d->x.at.k[kx] : 1;
    if (d->step < 1 || d->step > 16) return false;
    if (!take_bound(d, slots, last, moves ? kx : -1)) return false;
    if (moves) --*taps, d->taps /= d->places;
    return d->lanes = true;
}
/* Does the window go two ways, and is that less work? Takes the last index of rows and of the window out of
   them. */
static void two_ways(pool *d, const hone_slots_of *slots, const hone_affine *out, int rows, int taps) {
    const int ox = rows - 1, kx = slots->n - 1;
    if (rows < 2 || taps < 2 || d->n < 1) return;
    const int64_t own = d->x.at.k[ox], its = d->x.at.k[kx];
    int64_t pitch = own < its ? own : its;
    for (int q = 0; q < d->x.n_bounded; q++)
        if (d->x.bounded[q].k[ox] > 0) pitch = own / d->x.bounded[q].k[ox];
    if (own <= 0 || its <= 0 || pitch < d->n || own % pitch || its % pitch) return;
    pool w = *d;
    w.ways = true, w.pitch = pitch, w.run = slots->extent[ox], w.places = slots->extent[kx],
    w.step = own / pitch, w.ahead = its / pitch;
    w.out_step = out->k[ox], w.taps = d->taps / w.places, w.rows = d->rows / w.run;
    if (w.ahead > 16 || !take_bound(&w, slots, ox, kx)) return;
    const int64_t reach = w.step * (w.run - 1) + w.ahead * (w.places - 1) + 1;
    if (4 * (w.taps * reach + w.places * w.run) <= 3 * d->taps * w.run) *d = w;
}
/* A row of tensors of which one or both are stored as bf16. */
typedef struct {
    bool x, y;
} stored;
static void join_halves(const pool *d, stored is, const char **list, int64_t many, char *y, float *room) {
    const void *rows = list;
    uint16_t *half = is.y ? (uint16_t *)(void *)y : (uint16_t *)(void *)room;
    if (!is.x) {
        join(d, list, many, d->n, (char *)room);
        d->narrow(room, half, d->n);
        return;
    }
    if (many) d->kernel->max_bf16(rows, many, d->n, 1, 0, 0, half);
    for (int64_t j = 0; j < d->n && !many; j++) half[j] = 0xff80; /* -infinity */
    for (int64_t j = 0; j < d->n && !is.y; j++) {
        const uint32_t bits = (uint32_t)half[j] << 16;
        memcpy(y + (size_t)j * sizeof bits, &bits, sizeof bits);
    }
}
static hone_status tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const pool *d = s->data;
    const stored is = {s->half_stored >> d->x.tensor & 1, s->half_stored >> d->out & 1};
    const int size = is.x ? 2 : d->size, out_size = is.y ? 2 : d->size;
    const char *x = (const char *)hone_ref_at(s->ref[d->x.tensor], base) + d->x.at.c * size, **list = scratch;
    const void *listed = list;
    char *y = hone_ref_at(s->ref[d->out], base);
    float *room = (float *)(void *)(list + d->taps);
    const int64_t from = number * d->grain, to = d->rows - from < d->grain ? d->rows : from + d->grain;
    for (int64_t r = from, rows; r < to; r += rows) {
        const int64_t many = list_taps(d, x, size, r, list);
        void *out = y + d->row_out[r] * out_size;
        rows = d->even && is.x == is.y ? d->even[r] < to - r ? d->even[r] : to - r : 1;
        if (rows > 1 && d->bytes) d->bytes(listed, many, d->n, rows, d->even_x, d->even_out, out);
        else if (is.x && is.y && rows > 1)
            d->kernel->max_bf16(listed, many, d->n, rows, d->even_x, d->even_out, out);
        else if (is.x || is.y) join_halves(d, is, list, many, out, room);
        else if (rows > 1) d->kernel->max(listed, many, d->n, rows, d->even_x, d->even_out, out);
        else join(d, list, many, d->n, out);
    }
    return HONE_OK;
}
/* Short rows: the largest of so many from each on may be found in one call: all of their windows are inside,
   and they lie evenly. */
static const uint8_t *even_rows(hone_arena *a, pool *d) {
    if (d->ones || d->n > MOST_EVEN || d->rows < 2 || d->rows * d->taps > MOST) return NULL;
    uint8_t *even = hone_arena_raw(a, (size_t)d->rows);
    d->even_x = d->row_x[1] - d->row_x[0], d->even_out = d->row_out[1] - d->row_out[0];
    for (int64_t r = d->rows - 1; even && r >= 0; r--) {
        bool all = true;
        for (int64_t t = 0; t < d->taps && all; t++) all = inside(d, r, t);
        const bool on = all && r + 1 < d->rows && even[r + 1] < UINT8_MAX && even[r + 1] &&
                        d->row_x[r + 1] - d->row_x[r] == d->even_x &&
                        d->row_out[r + 1] - d->row_out[r] == d->even_out;
        even[r] = on ? (uint8_t)(even[r + 1] + 1) : all;
    }
    /* a row that hangs over is by itself */
    for (int64_t r = 0; even && r < d->rows; r++) even[r] += !even[r];
    return even;
}
hone_status hone_cpu_pool(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end, bool *done) {
    const hone_instance *in = c->instance;
    const hone_stage *st = in->stage + stage;
    (void)end;
    const bool sums = st->reduce == HONE_REDUCE_SUM;
    const hone_dtype dtype = in->tensor[st->tensor].dtype;
    const bool bytes = dtype == HONE_DTYPE_U8 || dtype == HONE_DTYPE_I8;
    if ((st->reduce != HONE_REDUCE_MAX && !sums) || st->how != HONE_STORE_SET || !st->identity ||
        !(dtype == HONE_DTYPE_F32 || (bytes && !sums)))
        return HONE_OK;
    hone_slots_of slots;
    hone_affine_load first; /* of a recurrence, which this is not */
    pool *d = HONE_NEW(m->arena, pool);
    if (!d) return hone_steps_no_memory();
    if (!hone_affine_slots(&c->sized, stage, stage, &slots) || slots.n_domain < 2 ||
        !hone_affine_of_load(&c->sized, &slots, st->value, sums ? HONE_AFFINE_SUM : HONE_AFFINE_MAX, -1,
                             &d->x, &first) ||
        in->tensor[d->x.tensor].dtype != dtype)
        return HONE_OK;
    const int last = slots.n_domain - 1;
    hone_affine out = {0};
    for (int k = 0; k <= last; k++) out.k[k] = c->stride[st->tensor][slots.dim[k]];
    bool along = d->x.at.k[last] != 1; /* the last index moves the window */
    for (int q = 0; q < d->x.n_bounded; q++) along |= d->x.bounded[q].k[last] != 0;
    if (out.k[last] != 1 || slots.extent[last] < 4) return HONE_OK;
    int row[HONE_MAX_SLOTS], tap[HONE_MAX_SLOTS];
    d->rows = d->taps = 1, d->n = slots.extent[last], d->out = st->tensor, d->kernel = hone_pool_best(),
    d->size = bytes ? 1 : 4;
    if (bytes)
        d->bytes = dtype == HONE_DTYPE_I8 ? d->kernel->max_i8 : d->kernel->max_u8,
        d->lowest = dtype == HONE_DTYPE_I8 ? INT8_MIN : 0;
    for (int k = 0; k < last; k++) row[k] = k, d->rows *= slots.extent[k];
    for (int k = last + 1; k < slots.n; k++) {
        if (slots.extent[k] > MAX_TAPS / d->taps) return HONE_OK;
        tap[k - last - 1] = k, d->taps *= slots.extent[k];
    }
    if (d->n > MAX_ROW || d->rows > MAX_ROWS || (sums && (d->taps > MAX_SUMMED || d->rows < LEAST_SUMS)))
        return HONE_OK;
    if (sums) {
        float *ones = HONE_NEW_N(m->arena, float, d->taps);
        for (int64_t t = 0; ones && t < d->taps; t++) ones[t] = 1;
        if (!(d->ones = ones)) return hone_steps_no_memory();
    }
    int rows = last, taps = slots.n - last - 1;
    if (along && !in_lanes(d, &slots, last, &taps)) return HONE_OK;
    if (!along) two_ways(d, &slots, &out, rows, taps);
    if (d->ways) rows--, taps--;
    bool made = (d->row_x = hone_affine_table(m->arena, &slots, row, rows, &d->x.at)) &&
                (d->row_out = hone_affine_table(m->arena, &slots, row, rows, &out)) &&
                (d->tap_x = hone_affine_table(m->arena, &slots, tap, taps, &d->x.at));
    for (int q = 0; q < d->x.n_bounded && made; q++)
        made = (d->row_edge[q] = hone_affine_table(m->arena, &slots, row, rows, d->x.bounded + q)) &&
               (d->tap_edge[q] = hone_affine_table(m->arena, &slots, tap, taps, d->x.bounded + q));
    if (!made) return hone_steps_no_memory();
    if (!d->ways && !d->lanes) d->even = even_rows(m->arena, d);
    const int64_t wide = d->hi - d->lo, span = d->step * (d->run - 1) + 1,
                  each = d->lanes ? d->taps * wide + d->places * span
                                  : d->n * (d->ways ? d->taps * wide + d->places * d->run : d->taps),
                  kept = d->lanes ? 2 * span + d->ahead * (d->places - 1) : wide * d->n + 2 + d->n;
    d->grain = hone_share_of(d->rows, LEAST / each + 1, MOST / each + 1, c->how.threads);
    hone_step step = {.tactic = "pool",
                      .tiles = hone_ceil_div(d->rows, d->grain),
                      .scratch_bytes =
                          sizeof(float *) * (size_t)(d->taps + d->places) + (size_t)(d->size * kept),
                      .tile = d->lanes  ? tile_lanes
                              : d->ways ? tile_ways
                                        : tile,
                      .data = d};
    step.serial = step.tiles == 1, *done = true;
    /* the largest of numbers that are rounded is the largest, rounded */
    const hone_gemm_half *half = hone_gemm_half_best(HONE_DTYPE_BF16);
    if (c->how.precision == HONE_DTYPE_BF16 && half && !sums && !bytes && !d->ways && !d->lanes &&
        d->x.tensor != d->out)
        step.half_able = (uint64_t)1 << d->x.tensor | (uint64_t)1 << d->out, d->narrow = half->narrow;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = st->uses, .buffer = -1});
}
