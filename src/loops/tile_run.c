/* SPDX-License-Identifier: Apache-2.0
   tile_run: runs tile code over a part of its domain. Allocates nothing; all it writes besides the target is
   the caller's scratch. */
#include <stdlib.h>
#include <limits.h>
#include <string.h>

#include "base/thread.h"
#include "loops/tile_code.h"

typedef struct {
    const hone_tilecode *code;
    const hone_tile_ops *ops;
    void *const *base;
    void **reg;   /* where each register lies now */
    int64_t *now; /* each form: constant and fixed indices added up */
    int64_t *fixed;
    char *scratch, *spare;
    const char *acc;             /* the caller's values for the tile, four bytes each */
    const char *next, *next_end; /* memory of the next tile that is still to be asked for */
    const hone_walk *walk;
    int64_t x[HONE_SLOTS + 2]; /* coordinates of the tile's first element */
    /* a tile that is a box: this many elements of each of some rows; 0: the tile is a stretch of the walk */
    int64_t columns;
} run;

extern const hone_tile_ops hone_tile_ops__base;
#if defined(__x86_64__)
extern const hone_tile_ops hone_tile_ops__avx2, hone_tile_ops__avx512;
#endif
const hone_tile_ops *hone_tile_ops_best(void) {
    const hone_tile_ops *best = &hone_tile_ops__base;
#if defined(__x86_64__)
    if (hone_cpu() & HONE_CPU_AVX2) best = &hone_tile_ops__avx2;
    if (hone_cpu() & HONE_CPU_AVX512) best = &hone_tile_ops__avx512;
#endif
    return best;
}

/* ---- coordinates --------------------------------------------------------------------------------------- */
static void seek(const hone_walk *w, int64_t at, int64_t *x) {
    for (int d = w->nd - 1; d > 0; d--) {
        x[d] = at % w->ext[d];
        at /= w->ext[d];
    }
    x[0] = at;
}
static void advance(const hone_walk *w, int64_t n, int64_t *x) {
    for (int d = w->nd - 1; d > 0; d--) {
        x[d] += n;
        if (x[d] < w->ext[d]) return;
        n = 1, x[d] -= w->ext[d];
        if (x[d] >= w->ext[d]) n += x[d] / w->ext[d], x[d] %= w->ext[d];
    }
    x[0] += n;
}
static void next_row(const hone_walk *w, int outer, int64_t *x) {
    for (int d = outer - 1; d >= 0; d--) {
        if (++x[d] < w->ext[d]) return;
        x[d] = 0;
    }
}
static int64_t place(const run *r, int form, int outer, const int64_t *x) {
    const int64_t *coef = r->code->form[form].coef;
    int64_t at = r->now[form];
    for (int d = 0; d < outer; d++) at += coef[d] * x[d];
    return at;
}
static void set_forms(run *r) {
    const hone_tilecode *code = r->code;
    for (int f = 0; f < code->n_form; f++) {
        int64_t at = code->form[f].c;
        for (int k = 0; k < code->n_fixed; k++) at += code->form[f].fixed[k] * r->fixed[k];
        r->now[f] = at;
    }
}

/* A tile row by row: elements [pos, pos + len) lie in one row from its element j on, `row` counts rows, x are
   the row's coordinates. */
#define EACH_ROW(r, level, n)                                                                     \
    const hone_walk *const w_ = (r)->walk;                                                        \
    const int outer = w_->nd - 1 - (level);                                                       \
    const int64_t box_ = (level) ? 0 : (r)->columns;                                              \
    int64_t x[HONE_SLOTS + 2], j = (r)->x[outer], len, row = 0;                                   \
    memcpy(x, (r)->x, sizeof *x *(size_t)outer);                                                  \
    for (int64_t pos = 0; pos < (n) && (len = box_                           ? box_               \
                                              : w_->ext[outer] - j < (n)-pos ? w_->ext[outer] - j \
                                                                             : (n)-pos,           \
                                       true);                                                     \
         pos += len, j = box_ ? j : 0, row++, next_row(w_, outer, x))

/* ---- loads --------------------------------------------------------------------------------------------- */
static int width_of(int bytes) { return bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : 3; }

/* n elements from src, stride apart, into a register */
static void bring(const run *r, const hone_tile_ins *i, char *dst, const char *src, int64_t n,
                  int64_t stride) {
    const hone_tile_ops *ops = r->ops;
    if (!i->convert) {
        if (stride == i->bytes) memcpy(dst, src, (size_t)n << i->width);
        else if (!stride) ops->fill[i->width](n, dst, src);
        else ops->take[i->width](n, dst, src, stride);
    } else if (stride == i->bytes) hone_dtype_load_n((hone_dtype)i->dtype, dst, src, (size_t)n);
    else if (!stride) {
        hone_scalar one = {.u64 = 0};
        hone_dtype_load_n((hone_dtype)i->dtype, &one, src, 1);
        ops->fill[i->width](n, dst, &one);
    } else {
        ops->take[width_of(i->bytes)](n, r->spare, src, stride);
        hone_dtype_load_n((hone_dtype)i->dtype, dst, r->spare, (size_t)n);
    }
}
/* Short rows of bytes, each so much further: a call for each would take longer than what it moves. */
#define ROWS_OF(count) \
    for (int64_t k = 0; k < rows; k++, to += to_step, from += from_step) memcpy(to, from, (count))
static void short_rows(char *to, int64_t to_step, const char *from, int64_t from_step, int64_t bytes,
                       int64_t rows) {
    if (bytes == 4) ROWS_OF(4);
    else if (bytes == 8) ROWS_OF(8);
    else if (bytes == 12)
        for (int64_t k = 0; k < rows; k++, to += to_step, from += from_step)
            memcpy(to, from, 8), memcpy(to + 8, from + 8, 4);
    else if (bytes == 16) ROWS_OF(16);
    else if (bytes == 32) ROWS_OF(32);
    else ROWS_OF((size_t)bytes);
}
#undef ROWS_OF
enum { SHORT = 64 }; /* bytes */
/* What is there instead of elements outside. */
static void instead(const run *r, const hone_tile_ins *i, char *dst, int64_t pos, int64_t n) {
    if (n <= 0) return;
    if (i->c >= 0)
        memcpy(dst + (pos << i->width), (const char *)r->reg[i->c] + (pos << i->width),
               (size_t)n << i->width);
    else r->ops->fill[i->width](n, dst + (pos << i->width), &i->other);
}
/* The part [*from, *to) of a row's elements [j, j + n) for which 0 <= at + step * (its number) < dim. */
static void clip(int64_t at, int64_t step, int64_t dim, int64_t *from, int64_t *to) {
    int64_t lo = *from, hi = *to;
    if (!step) {
        if (at < 0 || at >= dim) lo = hi;
    } else if (step > 0) {
        if (at < 0) lo = (-at + step - 1) / step;
        hi = at >= dim ? 0 : (dim - 1 - at) / step + 1;
    } else {
        if (at >= dim) lo = (at - dim) / -step + 1;
        hi = at < 0 ? 0 : at / -step + 1;
    }
    if (lo > *from) *from = lo;
    if (hi < *to) *to = hi;
    if (*to < *from) *to = *from;
}

/* Asks for the memory behind this tile, where the next will be: a tile is about a page, and the machine's own
   prefetching ends there. What is to be read is asked for a few lines at a time, between instructions: a core
   has that many requests under way, and waits with more. */
static void reach_for(const char *at, size_t bytes) {
    for (size_t k = bytes; k < 2 * bytes; k += 64) __builtin_prefetch(at + k, 1);
}
static void reach_on(run *r, int lines) {
    for (; r->next < r->next_end && lines > 0; r->next += 64, lines--) __builtin_prefetch(r->next, 0);
}
static void reach_later(run *r, const char *at, size_t bytes) {
    reach_on(r, INT_MAX); /* of another load: nothing computed since */
    r->next = at + bytes, r->next_end = r->next + bytes;
}
/* Elements that are all inside, in stretches as long as this load's memory runs on: often several rows of the
   walk, whose rows are as short as the shortest of all its loads. Without a copy where one stretch is all
   there is. */
static void load_inside(run *r, const hone_tile_ins *i, int64_t n) {
    const hone_walk *w = r->walk;
    const int64_t *coef = r->code->form[i->form].coef;
    int outer = w->nd - 1 - i->level;
    int64_t x[HONE_SLOTS + 2], along = coef[outer], ext = w->ext[outer], at = r->x[outer], len;
    while (outer > 0 && (w->ext[outer - 1] == 1 || coef[outer - 1] == along * ext))
        outer--, at += ext * r->x[outer], ext *= w->ext[outer];
    memcpy(x, r->x, sizeof *x * (size_t)outer);
    const char *base = r->base[i->tensor], *src = base + place(r, i->form, outer, x) + along * at;
    char *dst = i->keep ? r->reg[i->dst] : r->scratch + r->code->buffer[i->dst];
    if (i->ahead && n <= ext - at) reach_later(r, src, (size_t)n * i->bytes);
    if (n <= ext - at && !i->convert && !i->keep && (along == i->bytes || n == 1)) {
        r->reg[i->dst] = (void *)src;
        return;
    }
    r->reg[i->dst] = dst;
    bool same = true; /* all stretches: the first one is repeated */
    for (int d = 0; same && d < outer; d++) same = !coef[d] || w->ext[d] == 1;
    const int64_t first = same && ext < n ? ext : n;
    const bool brief = !i->convert && along == i->bytes && outer && ext * i->bytes <= SHORT;
    for (int64_t pos = 0; pos < first; pos += len, at = 0) {
        len = ext - at < first - pos ? ext - at : first - pos;
        /* as many as follow on; the last of them is where this goes on from */
        if (brief && !at && first - pos >= 2 * ext && x[outer - 1] + 1 < w->ext[outer - 1]) {
            const int64_t left = w->ext[outer - 1] - x[outer - 1], want = (first - pos) / ext,
                          many = left < want ? left : want;
            short_rows(dst + (pos << i->width), ext << i->width, src, coef[outer - 1], ext * i->bytes, many);
            x[outer - 1] += many - 1, src += (many - 1) * coef[outer - 1], pos += (many - 1) * ext;
            if (pos + len >= first) break;
            if (x[outer - 1] + 1 < w->ext[outer - 1]) x[outer - 1]++, src += coef[outer - 1];
            else next_row(w, outer, x), src = base + place(r, i->form, outer, x);
            continue;
        }
        bring(r, i, dst + (pos << i->width), src, len, along);
        if (pos + len >= first) break;
        if (outer && x[outer - 1] + 1 < w->ext[outer - 1])
            x[outer - 1]++, src += coef[outer - 1] - along * at;
        else next_row(w, outer, x), src = base + place(r, i->form, outer, x);
    }
    for (int64_t done = first; done < n;) {
        /* an integer of periods is done: done is period, 2 period … */
        const int64_t more = done < n - done ? done : n - done;
        memcpy(dst + (done << i->width), dst, (size_t)more << i->width);
        done += more;
    }
}
static void load(run *r, const hone_tile_ins *i, int64_t n) {
    const int64_t columns = i->level ? 0 : r->columns;
    if (!i->n_bound && !columns) {
        load_inside(r, i, n);
        return;
    }
    char *const base = r->base[i->tensor],
                *dst = i->keep ? r->reg[i->dst] : r->scratch + r->code->buffer[i->dst];
    const hone_form *f = r->code->form + i->form;
    const int inner = r->walk->nd - 1 - i->level;
    const int64_t along = f->coef[inner];
    if (!i->n_bound && n <= columns) { /* one stretch */
        char *src = base + place(r, i->form, inner + 1, r->x);
        if (!i->convert && !i->keep && (along == i->bytes || n == 1)) r->reg[i->dst] = src;
        else bring(r, i, r->reg[i->dst] = dst, src, n, along);
        return;
    }
    r->reg[i->dst] = dst;
    if (!i->n_bound && llabs(along) > llabs(f->coef[inner - 1])) { /* memory runs across the rows */
        char *to = i->convert ? r->spare : dst;
        r->ops->across[width_of(i->bytes)](
            n / columns, columns, to, base + place(r, i->form, inner + 1, r->x), f->coef[inner - 1], along);
        if (i->convert) hone_dtype_load_n((hone_dtype)i->dtype, dst, to, (size_t)n);
        return;
    }
    EACH_ROW(r, i->level, n) {
        const int64_t at = place(r, i->form, outer, x);
        int64_t from = 0, to = len;
        for (int b = 0; b < i->n_bound; b++) {
            const int64_t step = r->code->form[i->bound[b].form].coef[inner];
            clip(place(r, i->bound[b].form, outer, x) + step * j, step, i->bound[b].dim, &from, &to);
        }
        if (to > from)
            bring(r, i, dst + ((pos + from) << i->width), base + at + along * (j + from), to - from, along);
        else from = to = 0;
        instead(r, i, dst, pos, from);
        instead(r, i, dst, pos + to, len - to);
    }
}
static void load_rows(run *r, const hone_tile_ins *i, int64_t n) {
    const int64_t *off = r->reg[i->a];
    const int32_t *ok = i->b >= 0 ? r->reg[i->b] : NULL;
    const char *base = r->base[i->tensor];
    char *dst = r->reg[i->dst];
    EACH_ROW(r, 0, n) {
        if (ok && !ok[row]) instead(r, i, dst, pos, len);
        else bring(r, i, dst + (pos << i->width), base + off[row] + i->k * j, len, i->k);
    }
}
static void gather(run *r, const hone_tile_ins *i, int64_t n) {
    const int32_t *ok = i->b >= 0 ? r->reg[i->b] : NULL;
    const void *other = i->c >= 0 ? r->reg[i->c] : NULL;
    const char *base = r->base[i->tensor];
    void *dst = r->reg[i->dst];
    if (!i->convert) {
        r->ops->gather[i->width](n, dst, base, r->reg[i->a], ok, other);
        return;
    }
    r->ops->gather[width_of(i->bytes)](n, r->spare, base, r->reg[i->a], ok, NULL);
    if (ok && other) {
        /* dst may be a buffer that `other` still needs */
        void *wide = r->spare + ((size_t)n * 8 + 63) / 64 * 64;
        hone_dtype_load_n((hone_dtype)i->dtype, wide, r->spare, (size_t)n);
        r->ops->select[i->width](n, dst, ok, wide, other);
    } else hone_dtype_load_n((hone_dtype)i->dtype, dst, r->spare, (size_t)n);
}

/* ---- stores -------------------------------------------------------------------------------------------- */
static void send(const run *r, const hone_tile_ins *i, char *dst, const char *src, int64_t n,
                 int64_t stride) {
    if (!i->convert && stride == i->bytes && r->code->streams)
        r->ops->stream((size_t)n << i->width, dst, src);
    else if (!i->convert && stride == i->bytes) memcpy(dst, src, (size_t)n << i->width);
    else if (!i->convert) r->ops->spread[i->width](n, dst, stride, src);
    else if (stride == i->bytes)
        hone_dtype_store_n((hone_dtype)i->dtype, dst, (hone_ctype)i->ctype, src, (size_t)n, i->saturate);
    else {
        hone_dtype_store_n((hone_dtype)i->dtype, r->spare, (hone_ctype)i->ctype, src, (size_t)n, i->saturate);
        r->ops->spread[width_of(i->bytes)](n, dst, stride, r->spare);
    }
}
static void store_short(const run *r, const hone_tile_ins *i, int64_t n, int inner) {
    const hone_walk *w = r->walk;
    const char *src = r->reg[i->a];
    const int64_t *coef = r->code->form[i->form].coef, ext = w->ext[inner];
    int64_t x[HONE_SLOTS + 2], j = r->x[inner], many;
    memcpy(x, r->x, sizeof *x * (size_t)inner);
    for (int64_t pos = 0, len; pos < n; pos += many * len, j = 0, next_row(w, inner, x)) {
        const int64_t left = w->ext[inner - 1] - x[inner - 1];
        len = ext - j < n - pos ? ext - j : n - pos, many = len < ext                ? 1
                                                            : left < (n - pos) / ext ? left
                                                                                     : (n - pos) / ext;
        short_rows(r->base[i->tensor] + place(r, i->form, inner, x) + coef[inner] * j, coef[inner - 1],
                   src + (pos << i->width), len << i->width, len * i->bytes, many);
        x[inner - 1] += many - 1;
    }
}
static void store(run *r, const hone_tile_ins *i, int64_t n) {
    char *base = r->base[i->tensor];
    const char *src = r->reg[i->a];
    const int inner = r->walk->nd - 1;
    const int64_t along = r->code->form[i->form].coef[inner];
    if (i->flat && !r->columns) {
        send(r, i, base + place(r, i->form, inner + 1, r->x), src, n, i->bytes);
        return;
    }
    if (!i->convert && along == i->bytes && !r->columns && !r->code->streams && inner > 0 &&
        r->walk->ext[inner] * i->bytes <= SHORT) {
        store_short(r, i, n, inner);
        return;
    }
    EACH_ROW(r, 0, n)
    send(r, i, base + place(r, i->form, outer, x) + along * j, src + (pos << i->width), len, along);
}
static void scatter(run *r, const hone_tile_ins *i, int64_t n) {
    const int64_t *off = r->reg[i->b];
    const int32_t *ok = i->c >= 0 ? r->reg[i->c] : NULL;
    const char *src = r->reg[i->a];
    char *base = r->base[i->tensor];
    if (i->how == HONE_STORE_SET) {
        if (i->convert)
            hone_dtype_store_n((hone_dtype)i->dtype, r->spare, (hone_ctype)i->ctype, src, (size_t)n,
                               i->saturate),
                src = r->spare;
        r->ops->scatter[width_of(i->bytes)](n, base, off, ok, src);
        return;
    }
    if (!i->convert) {
        r->ops->merge[i->how][i->ctype](n, base, off, ok, src);
        return;
    }
    static const hone_fn join[] = {HONE_FN_add, HONE_FN_add, HONE_FN_mul, HONE_FN_max, HONE_FN_min};
    for (int64_t k = 0; k < n; k++) {
        if (ok && !ok[k]) continue;
        hone_scalar v[2] = {hone_dtype_load((hone_dtype)i->dtype, base + off[k]), {.u64 = 0}};
        memcpy(&v[1], src + (k << i->width), (size_t)1 << i->width);
        hone_dtype_store((hone_dtype)i->dtype, base + off[k], (hone_ctype)i->ctype,
                         hone_fn_eval(join[i->how], (hone_ctype)i->ctype, v), i->saturate);
    }
}

/* ---- one tile ------------------------------------------------------------------------------------------ */
static hone_status check(const run *r, const hone_tile_ins *i, int64_t n) {
    const int64_t *at = r->reg[i->a];
    const int32_t *wanted = i->b >= 0 ? r->reg[i->b] : NULL;
    int64_t bad = 0;
    if (!wanted)
        for (int64_t k = 0; k < n; k++) bad |= (uint64_t)at[k] >= (uint64_t)i->k;
    else
        for (int64_t k = 0; k < n; k++) bad |= (wanted[k] != 0) & ((uint64_t)at[k] >= (uint64_t)i->k);
    if (!bad) return HONE_OK;
    int64_t k = 0;
    while ((wanted && !wanted[k]) || (uint64_t)at[k] < (uint64_t)i->k) k++;
    return hone_fail(HONE_BAD_INPUT, "index %lld is outside of '%s', whose dim %d is %lld", (long long)at[k],
                     r->code->instance->tensor[i->tensor].name, i->dim, (long long)i->k);
}
static void iota(run *r, const hone_tile_ins *i, int64_t n) {
    int64_t *dst = r->reg[i->dst];
    const int64_t step = r->code->form[i->form].coef[r->walk->nd - 1 - i->level];
    EACH_ROW(r, i->level, n) r->ops->iota(len, dst + pos, place(r, i->form, outer, x) + step * j, step);
}
static void expand(run *r, const hone_tile_ins *i, int64_t n) {
    char *dst = r->reg[i->dst];
    const char *src = r->reg[i->a];
    EACH_ROW(r, 0, n) {
        (void)j;
        r->ops->fill[i->width](len, dst + (pos << i->width), src + (row << i->width));
    }
}
static void round_to(run *r, const hone_tile_ins *i, int64_t n) {
    const hone_dtype t = (hone_dtype)i->dtype;
    hone_dtype_store_n(t, r->spare, (hone_ctype)i->ctype, r->reg[i->a], (size_t)n, false);
    if (hone_dtypes[t].ctype == i->ctype) {
        hone_dtype_load_n(t, r->reg[i->dst], r->spare, (size_t)n);
        return;
    }
    void *wide = r->spare + ((size_t)n * 8 + 63) / 64 * 64;
    hone_dtype_load_n(t, wide, r->spare, (size_t)n);
    r->ops->cast[hone_dtypes[t].ctype][i->ctype](n, r->reg[i->dst], wide, NULL, NULL);
}

static hone_status execute(run *r, int from, int to, int64_t elements) {
    const int last = r->walk->nd - 1;
    const int64_t end = r->x[last] + elements - 1;
    const int64_t rows = r->columns                 ? elements / r->columns
                         : end < r->walk->ext[last] ? 1
                                                    : end / r->walk->ext[last] + 1;
    for (const hone_tile_ins *i = r->code->ins + from; i < r->code->ins + to; i++) {
        const int64_t n = i->level ? rows : elements;
        switch ((hone_tile_kind)i->kind) {
        case HONE_TILE_OP:
            i->op(n, r->reg[i->dst], r->reg[i->a], i->b < 0 ? NULL : r->reg[i->b],
                  i->c < 0 ? NULL : r->reg[i->c]);
            reach_on(r, 16);
            break;
        case HONE_TILE_LOAD: load(r, i, n); break;
        case HONE_TILE_EXPAND: expand(r, i, n); break;
        case HONE_TILE_IOTA: iota(r, i, n); break;
        case HONE_TILE_ACC: r->reg[i->dst] = (void *)r->acc; break;
        case HONE_TILE_MULADD: r->ops->muladd(n, r->reg[i->dst], r->reg[i->a], r->reg[i->b], i->k); break;
        case HONE_TILE_INSIDE:
            r->ops->inside(n, r->reg[i->dst], i->a < 0 ? NULL : r->reg[i->a], r->reg[i->b], i->k);
            break;
        case HONE_TILE_CHECK: HONE_TRY(check(r, i, n)); break;
        case HONE_TILE_GATHER: gather(r, i, n); break;
        case HONE_TILE_ROWS: load_rows(r, i, n); break;
        case HONE_TILE_ROUND: round_to(r, i, n); break;
        case HONE_TILE_STORE: store(r, i, n); break;
        case HONE_TILE_SCATTER: scatter(r, i, n); break;
        }
    }
    return HONE_OK;
}

/* ---- reductions ---------------------------------------------------------------------------------------- */
static bool in_double(const hone_tilecode *code) {
    return code->ctype == HONE_F32 && (code->reduce == HONE_REDUCE_SUM || code->reduce == HONE_REDUCE_PROD);
}
static int acc_width(const hone_tilecode *code) {
    return in_double(code) || hone_ctype_bytes[code->ctype] == 8 ? 3 : 2;
}
/* What a reduction over nothing gives, as the accumulator holds it. */
static hone_scalar nothing(const hone_tilecode *code) {
    const hone_ctype c = in_double(code) ? HONE_F64 : code->ctype;
    const bool high = code->reduce == HONE_REDUCE_MIN;
    hone_scalar v = {.u64 = 0};
    if (code->reduce == HONE_REDUCE_PROD) return hone_ctype_cast(c, HONE_I64, (hone_scalar){.i64 = 1});
    if (code->reduce != HONE_REDUCE_MAX && code->reduce != HONE_REDUCE_MIN) return v;
    switch (c) {
    case HONE_F32: v.f32 = high ? __builtin_inff() : -__builtin_inff(); break;
    case HONE_F64: v.f64 = high ? __builtin_inf() : -__builtin_inf(); break;
    case HONE_I32: v.i32 = high ? INT32_MAX : INT32_MIN; break;
    case HONE_I64: v.i64 = high ? INT64_MAX : INT64_MIN; break;
    default: v.u64 = high ? UINT64_MAX : 0; break;
    }
    return v;
}

/* A sum of floats as they lie in memory: its last index is then walked by the sum itself. By how much the
   index goes on with a step. */
static int64_t at_once(const run *r) {
    const hone_tilecode *code = r->code;
    const hone_tile_ins *i = code->ins + code->head;
    if (code->reduce != HONE_REDUCE_SUM || code->ctype != HONE_F32 || code->tail != code->head + 1 ||
        code->n_fixed < 2)
        return 1;
    if (i->kind != HONE_TILE_LOAD || i->convert || i->n_bound || i->level || i->dst != code->value) return 1;
    return code->fixed_ext[code->n_fixed - 1];
}
static hone_status each_tile(run *r, int64_t n) {
    const hone_tilecode *code = r->code;
    const bool arg = code->reduce >= HONE_REDUCE_ARGMAX;
    char *acc = r->scratch + code->acc;
    void *result = r->reg[code->result];
    int32_t *win = (int32_t *)(r->scratch + code->win);
    hone_scalar start = nothing(code);
    r->ops->fill[acc_width(code)](n, acc, &start);
    if (arg) memset(result, 0, (size_t)n << code->pick_width);
    for (int k = 1; k < code->n_fixed; k++) r->fixed[k] = 0;
    set_forms(r);
    if (code->count) HONE_TRY(execute(r, 0, code->head, n));
    int64_t many = at_once(r);
    for (int64_t step = 0; step < code->count; step += many) {
        if (step) {
            int k = code->n_fixed - 1;
            for (r->fixed[k] += many; k > 1 && r->fixed[k] == code->fixed_ext[k]; k--)
                r->fixed[k] = 0, r->fixed[k - 1]++;
            set_forms(r);
        }
        HONE_TRY(execute(r, code->head, code->tail, n));
        if (many > 1 && r->reg[code->value] != r->scratch + code->buffer[code->value]) {
            r->ops->sum_rows(n, (double *)(void *)acc, r->reg[code->value], many,
                             code->form[code->ins[code->head].form].fixed[code->n_fixed - 1]);
            continue;
        }
        many = 1; /* a tile that is put together from pieces of memory */
        if (!arg) {
            r->ops->reduce[code->ctype].each[code->reduce](n, acc, r->reg[code->value]);
            continue;
        }
        r->ops->reduce[code->ctype].better[code->reduce - HONE_REDUCE_ARGMAX](n, win, acc,
                                                                              r->reg[code->value], step == 0);
        r->ops->select[code->pick_width](n, result, win, r->reg[code->pick], result);
    }
    if (!arg) {
        if (in_double(code)) r->ops->cast[HONE_F64][HONE_F32](n, result, acc, NULL, NULL);
        else memcpy(result, acc, (size_t)n << acc_width(code));
    }
    return execute(r, code->tail, code->n_ins, n);
}

/* One result of `all` mode is done. */
static void settle(const run *r, const hone_scalar *acc, int64_t at) {
    const hone_tilecode *code = r->code;
    if (in_double(code)) ((float *)r->reg[code->result])[at] = (float)acc->f64;
    else memcpy((char *)r->reg[code->result] + (at << acc_width(code)), acc, (size_t)1 << acc_width(code));
}
static void take_in(const run *r, hone_scalar *acc, int64_t from, int64_t n, bool first, int64_t at) {
    const hone_tilecode *code = r->code;
    const char *v = (const char *)r->reg[code->value] + from * hone_ctype_bytes[code->ctype];
    if (code->reduce < HONE_REDUCE_ARGMAX) {
        r->ops->reduce[code->ctype].all[code->reduce](n, acc, v);
        return;
    }
    const int64_t won = r->ops->reduce[code->ctype].find[code->reduce - HONE_REDUCE_ARGMAX](n, acc, v, first);
    const size_t bytes = (size_t)1 << code->pick_width;
    if (won >= 0)
        memcpy((char *)r->reg[code->result] + (size_t)at * bytes,
               (const char *)r->reg[code->pick] + (size_t)(from + won) * bytes, bytes);
}

static hone_status all_run(run *r, int64_t first, int64_t n) {
    const hone_tilecode *code = r->code;
    const bool arg = code->reduce >= HONE_REDUCE_ARGMAX;
    const int64_t count = code->count, piece = code->walk.piece;
    const hone_scalar start = nothing(code);
    int64_t x[HONE_SLOTS + 2], done = 0;
    seek(&code->walk, first * count, x);
    for (int64_t o = first; o < first + n;) {
        int64_t outs = count <= piece ? piece / count : 1;
        if (outs > first + n - o) outs = first + n - o;
        if (outs > code->out.piece - done) outs = code->out.piece - done;
        r->walk = &code->walk;
        if (count <= piece) { /* whole elements of the domain in one tile */
            memcpy(r->x, x, sizeof *x * (size_t)code->walk.nd);
            HONE_TRY(execute(r, 0, code->tail, outs * count));
            advance(&code->walk, outs * count, x);
            for (int64_t k = 0; k < outs; k++, done++) {
                hone_scalar acc = start;
                take_in(r, &acc, k * count, count, true, done);
                if (!arg) settle(r, &acc, done);
            }
        } else { /* several tiles for one */
            hone_scalar acc = start;
            for (int64_t k = 0; k < count; k += piece) {
                const int64_t m = count - k < piece ? count - k : piece;
                memcpy(r->x, x, sizeof *x * (size_t)code->walk.nd);
                HONE_TRY(execute(r, 0, code->tail, m));
                advance(&code->walk, m, x);
                take_in(r, &acc, 0, m, k == 0, done);
            }
            if (!arg) settle(r, &acc, done);
            done++;
        }
        o += outs;
        if (done < code->out.piece && o < first + n) continue;
        r->walk = &code->out;
        seek(&code->out, o - done, r->x);
        HONE_TRY(execute(r, code->tail, code->n_ins, done));
        done = 0;
    }
    return HONE_OK;
}

/* Some whole rows, as boxes: loads that run across the rows find what they touch in cache again. Returns how
   many elements. */
static hone_status boxes(run *r, int64_t n, int64_t *done) {
    const hone_tilecode *code = r->code;
    const int last = r->walk->nd - 1;
    const int64_t row = r->walk->ext[last], left = r->walk->ext[last - 1] - r->x[last - 1];
    int64_t rows = n / row < left ? n / row : left;
    if (rows > code->box_rows) rows = code->box_rows;
    *done = 0;
    if (r->x[last] || rows < 2) return HONE_OK;
    const int64_t columns = r->walk->piece / rows;
    if (code->direct >= 0) r->reg[code->direct] = r->scratch + code->buffer[code->direct];
    for (int64_t c = 0; c < row; c += columns) {
        r->columns = row - c < columns ? row - c : columns;
        r->x[last] = c;
        HONE_TRY(execute(r, 0, code->n_ins + (code->direct >= 0), rows * r->columns));
    }
    r->columns = 0, r->x[last] = 0;
    *done = rows * row;
    return HONE_OK;
}

/* ---- the run ------------------------------------------------------------------------------------------- */
hone_status hone_tilecode_run(const hone_tilecode *code, void *const *base, int64_t first, int64_t n,
                              int64_t over, const void *acc, void *scratch) {
    if (n <= 0 || code->elements == 0) return HONE_OK;
    run r;
    r.code = code, r.ops = code->ops, r.base = base, r.acc = acc, r.next = r.next_end = NULL,
    r.scratch = scratch, r.spare = r.scratch + code->spare, r.walk = &code->walk, r.columns = 0;
    r.reg = (void **)(r.scratch + code->regs);
    r.now = (int64_t *)(r.scratch + code->forms);
    r.fixed = (int64_t *)(r.scratch + code->fixed);
    for (int k = 0; k < code->n_reg; k++) r.reg[k] = r.scratch + code->buffer[k];
    const int64_t most = code->mode == HONE_TILE_ALL && code->walk.piece > code->out.piece ? code->walk.piece
                                                                                           : code->out.piece;
    for (int k = 0; k < code->n_constant; k++)
        code->ops->fill[code->constant[k].width](n < most && code->mode != HONE_TILE_ALL ? n : most,
                                                 r.reg[code->constant[k].reg], &code->constant[k].k);
    r.fixed[0] = over;
    for (int k = 1; k < code->n_fixed; k++) r.fixed[k] = 0;
    set_forms(&r);
    if (code->mode == HONE_TILE_ALL) return all_run(&r, first, n);
    seek(r.walk, first, r.x);
    const int last = r.walk->nd - 1;
    while (n > 0) {
        if (code->box_rows) {
            int64_t done;
            HONE_TRY(boxes(&r, n, &done));
            if (done) {
                advance(r.walk, done, r.x);
                n -= done;
                continue;
            }
        }
        /* whole rows where they are short, even parts of one where they are long */
        int64_t m = n < r.walk->piece ? n : r.walk->piece;
        if (r.walk->ext[last] > r.walk->piece && m > r.walk->ext[last] - r.x[last])
            m = r.walk->ext[last] - r.x[last];
        if (code->direct >= 0) {
            r.reg[code->direct] = (char *)base[code->direct_store->tensor] +
                                  place(&r, code->direct_store->form, r.walk->nd, r.x);
            if (code->direct_store->ahead)
                reach_for(r.reg[code->direct], (size_t)m * code->direct_store->bytes);
        }
        if (code->mode == HONE_TILE_MAP) HONE_TRY(execute(&r, 0, code->n_ins, m));
        else HONE_TRY(each_tile(&r, m));
        advance(r.walk, m, r.x);
        if (r.acc) r.acc += 4 * m;
        n -= m;
    }
    if (code->streams) code->ops->settle();
    return HONE_OK;
}
