/* SPDX-License-Identifier: Apache-2.0
   schedule: the rules that lay a stage over threads, and what makes a schedule illegal (schedule.h). */
#include "loops/schedule.h"

#include <string.h>

#include "base/round.h"
#include "loops/tile_know.h"

_Static_assert(HONE_GRID_INDICES == HONE_SLOTS, "what is known of a stage, and its grid");

enum {
    THREADS = 256,  /* of a work-group, where the device has so many */
    TILE = 32,      /* a side of a tile of shared memory */
    WARP = 32,      /* threads that a shuffle reaches */
    SERIAL = 32,    /* terms that one thread sums without thinking */
    CHUNK = 64,     /* terms of a sum before it is added to the others */
    LONG = 1 << 16, /* terms from which a sum is cut into slices where few sums are wanted */
    BUSY = 2048,    /* threads that keep one unit of the device busy */
    UNROLL = 4,     /* places a thread, where there are many */
    OWNERS = 1024   /* threads that share a scatter, at most */
};

static int64_t extent_of(const hone_instance *in, const hone_stage *s, const hone_param *p, int k) {
    const int32_t id = in->list[s->index0 + k];
    return s->over >= 0 && id == s->over_index ? 1 : p[in->index[id].extent].i;
}
static bool is_over(const hone_instance *in, const hone_stage *s, int k) {
    return s->over >= 0 && in->list[s->index0 + k] == s->over_index;
}
/* Products that do not fit count as the most there is. */
static int64_t times(int64_t a, int64_t b) {
    int64_t n;
    return a <= 0 || b <= 0 ? 0 : __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
}
static int64_t points_of(const hone_instance *in, const hone_stage *s, const hone_param *p) {
    int64_t n = 1;
    for (int k = 0; k < s->n_index; k++) n = times(n, extent_of(in, s, p, k));
    return n;
}
static int64_t terms_of(const hone_instance *in, const hone_stage *s, const hone_param *p) {
    int64_t n = 1;
    for (int k = 0; k < s->n_reduce; k++) n = times(n, extent_of(in, s, p, s->n_index + k));
    return n;
}
/* t - 1, t - 2 …: an earlier round. */
static bool is_earlier(const hone_instance *in, int32_t x, int32_t over) {
    const hone_x *e = in->x + x;
    if (e->kind != HONE_X_FN || (e->fn != HONE_FN_sub && e->fn != HONE_FN_add)) return false;
    const hone_x *a = in->x + e->a, *b = in->x + e->b;
    if (e->fn == HONE_FN_add && a->kind == HONE_X_CONST) {
        const hone_x *t = a;
        a = b, b = t;
    }
    if (a->kind != HONE_X_INDEX || a->a != over || b->kind != HONE_X_CONST || b->type != HONE_I64)
        return false;
    return e->fn == HONE_FN_sub ? b->k.i64 > 0 : b->k.i64 < 0;
}
static int32_t target_index(const hone_instance *in, const hone_stage *s,
                            int d) { /* the index that alone is subscript d of the target, or -1 */
    if (s->identity) return in->list[s->index0 + d];
    const hone_x *e = in->x + in->list[s->sub0 + d];
    return e->kind == HONE_X_INDEX ? e->a : -1;
}
static bool loads_apart(const hone_instance *in, const hone_stage *s, const hone_x *e) {
    const hone_tensor *w = in->tensor + s->tensor;
    bool same = true;
    if (e->flat) return false;
    for (int d = 0; d < w->rank; d++) {
        const int32_t sub = in->list[e->b + d], own = target_index(in, s, d);
        if (s->over >= 0 && own == s->over_index && is_earlier(in, sub, own)) return true;
        same = same && (s->identity ? in->x[sub].kind == HONE_X_INDEX && in->x[sub].a == own
                                    : sub == in->list[s->sub0 + d]);
    }
    return same;
}
/* Does a place read what another place of the same stage writes? Then only their order tells what it
   reads. */
static bool reads_itself(const hone_instance *in, const hone_stage *s) {
    uint8_t *mark = hone_alloc((size_t)in->n_x + 1);
    if (!mark) return true;
    bool found = false;
    mark[s->value] = 1;
    if (s->pick >= 0) mark[s->pick] = 1;
    for (int d = 0; !s->identity && d < in->tensor[s->tensor].rank; d++) mark[in->list[s->sub0 + d]] = 1;
    for (int32_t x = in->n_x - 1; x >= 0; x--) {
        const hone_x *e = in->x + x;
        if (!mark[x] || e->kind < HONE_X_LOAD) continue;
        if (e->kind == HONE_X_LOAD) {
            for (int k = 0; k < (e->flat ? 1 : in->tensor[e->a].rank); k++) mark[in->list[e->b + k]] = 1;
            found = found || (e->a == s->tensor && !loads_apart(in, s, e));
        } else {
            if (e->a >= 0) mark[e->a] = 1;
            if (e->b >= 0) mark[e->b] = 1;
        }
        if (e->c >= 0) mark[e->c] = 1;
    }
    hone_free(mark);
    return found;
}
static bool collides(const hone_instance *in, const hone_stage *s, const hone_param *p, const int64_t *stride,
                     int *order) {
    return !hone_stage_order(in, s, p, stride + s->tensor * HONE_MAX_RANK, order);
}
/* places that differ in it have different targets */
static bool is_safe(const hone_instance *in, const hone_stage *s, int k) {
    for (int d = 0; d < in->tensor[s->tensor].rank; d++)
        if (target_index(in, s, d) == in->list[s->index0 + k]) return true;
    return false;
}

/* Neighbouring places of the domain read neighbouring elements: then a thread a place reads as fast as the
   memory goes. */
static bool reads_across(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                         const int64_t *stride, int fastest) {
    hone_knows w;
    if (fastest < 0 || hone_know_stage(a, in, stage, p, &w)) return true;
    for (int x = 0; x < in->n_x; x++) {
        const hone_x *e = in->x + x;
        if (!w.x[x].live || e->kind != HONE_X_LOAD) continue;
        int64_t far = 0;
        bool affine = true;
        for (int k = 0; k < hone_know_subs(&w, e); k++) {
            const hone_know *s = hone_know_of(&w, hone_know_sub(&w, e, k));
            affine = affine && s->kind != HONE_KNOW_VALUE;
            if (s->kind == HONE_KNOW_AFFINE)
                far += s->affine[fastest] * (e->flat ? 1 : stride[e->a * HONE_MAX_RANK + k]);
        }
        if (affine && (far == 1 || far == -1)) return true;
    }
    return false;
}
/* Loads that cannot fail and lie in memory along another index than the target does: which ones, and along
   which. Loads that lie along yet another one stay. */
static int find_tiled(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                      const int64_t *stride, int fastest, bool wide, int32_t *tiled, int *across) {
    hone_knows w;
    const hone_stage *s = in->stage + stage;
    int n = 0;
    if (hone_know_stage(a, in, stage, p, &w)) return 0;
    for (int x = 0; x < in->n_x && n < HONE_TILED; x++) {
        const hone_x *e = in->x + x;
        int64_t far[HONE_SLOTS] = {0};
        bool affine = w.x[x].live && e->kind == HONE_X_LOAD && !w.x[x].fails && w.x[x].is == x;
        for (int k = 0; affine && k < hone_know_subs(&w, e); k++) {
            const hone_know *sub = hone_know_of(&w, hone_know_sub(&w, e, k));
            affine = sub->kind != HONE_KNOW_VALUE;
            for (int q = 0; affine && sub->kind == HONE_KNOW_AFFINE && q < s->n_index; q++)
                far[q] += sub->affine[q] * (e->flat ? 1 : stride[e->a * HONE_MAX_RANK + k]);
        }
        if (!affine || far[fastest] == 0 || far[fastest] == 1 || far[fastest] == -1) continue;
        for (int q = 0; q < s->n_index; q++) {
            if (q == fastest || is_over(in, s, q) || far[q] != 1 ||
                (extent_of(in, s, p, q) < TILE / 2 && wide))
                continue;
            if (n && *across != q) continue;
            *across = q, tiled[n++] = x;
            break;
        }
    }
    return n;
}
static bool choose_tiles(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                         const int64_t *stride, const hone_schedule_wish *wish, int threads,
                         hone_schedule *o) {
    const hone_stage *s = in->stage + stage;
    const int fastest = o->n_order ? o->order[o->n_order - 1] : -1;
    const bool wished = wish->kind - 1 == HONE_TILES;
    int across = -1;
    if (s->reduce || o->n_order < 2 || threads < TILE || (wish->kind && !wished)) return false;
    if (!wished && (extent_of(in, s, p, fastest) < TILE / 2 || points_of(in, s, p) < TILE * TILE * 4))
        return false;
    const int n = find_tiled(a, in, stage, p, stride, fastest, !wished, o->tiled, &across);
    if (!n) return false;
    o->kind = HONE_TILES, o->n_tiled = n, o->across = (int8_t)across, o->threads = threads;
    return true;
}
static int power(int64_t n, int most) { /* the least power of two that is n or more */
    int k = 1;
    while (k < n && k < most) k *= 2;
    return k;
}
static void choose_reduction(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                             const int64_t *stride, const hone_schedule_wish *wish, int threads,
                             hone_schedule *o) {
    const hone_stage *s = in->stage + stage;
    const int64_t points = points_of(in, s, p), terms = terms_of(in, s, p), units = wish->units;
    const bool arg = s->reduce >= HONE_REDUCE_ARGMAX;
    int kind = wish->kind - 1;
    if (kind == HONE_SLICES && arg) kind = HONE_LANES;
    if (kind != HONE_EACH && kind != HONE_LANES && kind != HONE_SLICES) {
        kind = HONE_LANES;
        if (terms <= SERIAL ||
            (points >= units * BUSY &&
             reads_across(a, in, stage, p, stride, o->n_order ? o->order[o->n_order - 1] : -1)))
            kind = HONE_EACH;
        else if (!arg && terms >= LONG && points < units) kind = HONE_SLICES;
    }
    o->kind = (uint8_t)kind, o->threads = threads, o->lanes = 1;
    if (kind == HONE_SLICES) {
        const int64_t most = terms / (4 * (int64_t)threads);
        o->lanes = threads, o->slices = 2 * units / (points > 0 ? points : 1);
        if (o->slices > most) o->slices = most;
        if (wish->slices) o->slices = wish->slices;
        if (o->slices < 2) o->slices = 2;
    } else if (kind == HONE_LANES)
        o->lanes = wish->lanes ? wish->lanes : terms <= 1024 || points >= units * 8 ? WARP : threads;
    if (o->lanes > threads) o->lanes = threads;
    o->chunked = terms / (o->lanes * (o->slices ? o->slices : 1)) > CHUNK;
}
static void choose_scatter(const hone_instance *in, const hone_stage *s, const hone_param *p, int units,
                           bool itself, hone_schedule *o) {
    int64_t safe = 1, targets = 1;
    o->kind = HONE_OWNERS, o->whole = itself, o->owners = 1;
    for (int k = 0; k < s->n_index && !itself; k++)
        if (!is_over(in, s, k) && is_safe(in, s, k))
            o->order[o->n_order++] = (int8_t)k, safe = times(safe, extent_of(in, s, p, k));
    for (int d = 0; d < in->tensor[s->tensor].rank; d++)
        targets = times(targets, p[in->tensor[s->tensor].dim[d]].i);
    if (safe > 0) {
        int64_t most = (int64_t)units * BUSY / safe;
        if (most > targets / safe) most = targets / safe;
        if (most > points_of(in, s, p) / safe) most = points_of(in, s, p) / safe;
        while (!itself && o->owners * 2 <= most && o->owners < OWNERS) o->owners *= 2;
    }
    o->threads = power(times(safe, o->owners), o->threads);
}
/* Neighbouring places for a thread: where threads are enough without it, what is read lies side by side or is
   one element for all of them, and rows begin where an access may. Wished: wherever it is legal. */
static void choose_vector(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                          const int64_t *stride, const hone_schedule_wish *wish, hone_schedule *o) {
    const hone_stage *s = in->stage + stage;
    const int fastest = o->n_order ? o->order[o->n_order - 1] : -1;
    hone_vectors v;
    if (fastest < 0 || s->reduce || wish->vector == 1 || (!wish->vector && wish->unroll > 1) ||
        !hone_vector_find(a, in, stage, o->n_stage, p, stride, fastest, 0, &v))
        return;
    int n = wish->vector && wish->vector < v.most ? wish->vector : v.most;
    while (n > 1 && extent_of(in, s, p, fastest) % n) n /= 2;
    const bool pays = v.across && v.even && points_of(in, s, p) >= times(times(wish->units, BUSY), n);
    if (n < 2 || (!wish->vector && !pays)) return;
    o->vector = n, o->n_vectored = v.n, o->unroll = 1;
    memcpy(o->vectored, v.load, sizeof v.load);
}
typedef struct {
    const hone_instance *in;
    const hone_param *param;
    const int64_t *stride;
} looking;
static bool stands_alone(const void *arg, int stage) {
    const looking *l = arg;
    int order[HONE_SLOTS];
    return !reads_itself(l->in, l->in->stage + stage) &&
           !collides(l->in, l->in->stage + stage, l->param, l->stride, order);
}
static bool choose_rows(const hone_instance *in, int stage, const hone_param *p, const int64_t *stride,
                        const hone_schedule_wish *wish, int threads, hone_schedule *o) {
    const looking l = {in, p, stride};
    const bool wished = wish->kind - 1 == HONE_ROWS;
    hone_rows rows;
    if ((wish->kind && !wished) ||
        !hone_rows_choose(in, stage, p, stands_alone, &l, wished ? 0 : wish->units, &rows))
        return false;
    o->kind = HONE_ROWS, o->n_stage = rows.n_stage, o->rows = rows, o->n_order = rows.n_outer;
    memcpy(o->order, rows.place[0], (size_t)rows.n_outer);
    /* a few elements a lane; rows that are short share a work-group */
    o->lanes = wish->lanes ? wish->lanes : power(hone_ceil_div(rows.most, 4), threads);
    if (o->lanes > threads) o->lanes = threads;
    o->threads = o->lanes < 64 && threads >= 64 ? 64 : o->lanes;
    o->chunked = rows.terms > CHUNK;
    return true;
}
static bool choose_blocks(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                          const int64_t *stride, const hone_schedule_wish *wish, int threads,
                          hone_schedule *o) {
    const bool wished = wish->kind - 1 == HONE_BLOCKS;
    if ((wish->kind && !wished) || in->stage[stage].reduce != HONE_REDUCE_SUM ||
        !hone_product_choose(a, in, stage, p, stride, wish->blocks, wished, threads, wish->units, &o->blocks))
        return false;
    o->kind = HONE_BLOCKS, o->threads = hone_product_threads(&o->blocks), o->chunked = true;
    return true;
}
/* do counts fit 32 bits? */
static void narrow(const hone_instance *in, const hone_stage *s, const hone_param *p, hone_schedule *o) {
    int64_t most = times(times(points_of(in, s, p), o->lanes), o->slices ? o->slices : 1);
    if (times(points_of(in, s, p), o->owners) > most) most = times(points_of(in, s, p), o->owners);
    for (int k = 0; k < o->n_stage; k++) {
        if (terms_of(in, s + k, p) > most) most = terms_of(in, s + k, p);
        if (points_of(in, s + k, p) > most) most = points_of(in, s + k, p);
    }
    o->narrow = most < INT32_MAX / 2;
}
hone_status hone_schedule_choose(hone_arena *a, const hone_instance *in, int stage, const hone_param *p,
                                 const int64_t *stride, const hone_schedule_wish *wish, hone_schedule *o) {
    const hone_stage *s = in->stage + stage;
    const int threads = power(THREADS, wish->max_threads < THREADS ? wish->max_threads : THREADS);
    int order[HONE_SLOTS];
    *o = (hone_schedule){
        .kind = HONE_EACH, .n_stage = 1, .threads = threads, .lanes = 1, .unroll = 1, .vector = 1};
    if (s->n_index + s->n_reduce > HONE_SLOTS)
        return hone_fail(HONE_NOT_SUPPORTED, "a stage of %d indices: at most %d", s->n_index + s->n_reduce,
                         HONE_SLOTS);
    for (int k = 0; k < s->n_index; k++) order[k] = k;
    const bool itself = reads_itself(in, s);
    if (itself || collides(in, s, p, stride, order)) choose_scatter(in, s, p, wish->units, itself, o);
    else if (!choose_rows(in, stage, p, stride, wish, threads, o)) {
        for (int k = 0; k < s->n_index; k++)
            if (!is_over(in, s, order[k])) o->order[o->n_order++] = (int8_t)order[k];
        if (choose_blocks(a, in, stage, p, stride, wish, threads, o)) o->lanes = 1;
        else if (s->reduce) choose_reduction(a, in, stage, p, stride, wish, threads, o);
        else if (choose_tiles(a, in, stage, p, stride, wish, threads, o)) return narrow(in, s, p, o), HONE_OK;
        if (o->kind == HONE_EACH && !s->reduce)
            o->unroll = wish->unroll                                                  ? wish->unroll
                        : points_of(in, s, p) >= (int64_t)wish->units * BUSY * UNROLL ? UNROLL
                                                                                      : 1;
        for (const hone_stage *n = s + 1; n < in->stage + in->n_stage && n->follows && s->over < 0;
             n++, o->n_stage++)
            if (reads_itself(in, n) || collides(in, n, p, stride, order)) break;
        if (o->kind == HONE_EACH) choose_vector(a, in, stage, p, stride, wish, o);
    }
    narrow(in, s, p, o);
    return HONE_OK;
}
static bool vectors_legal(const hone_instance *in, int stage, const hone_param *p, const int64_t *stride,
                          const hone_schedule *o) {
    const int fastest = o->order[o->n_order - 1];
    hone_arena *a = hone_arena_create();
    hone_vectors v;
    bool good = a && !(o->vector & (o->vector - 1)) &&
                extent_of(in, in->stage + stage, p, fastest) % o->vector == 0 &&
                hone_vector_find(a, in, stage, o->n_stage, p, stride, fastest, o->vector, &v);
    for (int k = 0; good && k < o->n_vectored; k++) {
        bool there = false;
        for (int q = 0; q < v.n; q++) there |= v.load[q] == o->vectored[k];
        good = there;
    }
    hone_arena_destroy(a);
    return good;
}
const char *hone_schedule_illegal(const hone_instance *in, int stage, const hone_param *p,
                                  const int64_t *stride, int max_threads, const hone_schedule *o) {
    const hone_stage *s = in->stage + stage;
    int order[HONE_SLOTS];
    uint64_t seen = 0;
    if (o->n_stage < 1 || stage + o->n_stage > in->n_stage) return "it has stages that are not there";
    if (o->threads < 1 || o->threads > max_threads || o->threads & (o->threads - 1))
        return "a work-group's threads are a power of two that the device has";
    if (o->lanes < 1 || o->lanes & (o->lanes - 1) || o->threads % o->lanes)
        return "lanes are a power of two that divides a work-group";
    for (int k = 0; k < o->n_order; k++) {
        if (o->order[k] < 0 || o->order[k] >= s->n_index || seen >> o->order[k] & 1)
            return "its order names an index twice, or none";
        if (is_over(in, s, o->order[k])) return "the index of a recurrence is walked by launches";
        seen |= (uint64_t)1 << o->order[k];
    }
    const bool itself = reads_itself(in, s), meet = collides(in, s, p, stride, order);
    if (itself && !o->whole) return "it reads what it writes: one thread must do it all";
    if (o->whole && (o->kind != HONE_OWNERS || o->owners != 1 || o->n_order))
        return "what one thread does has no grid";
    if (meet && o->kind != HONE_OWNERS) return "two values may meet in one target";
    if (o->kind == HONE_OWNERS) {
        for (int k = 0; k < o->n_order; k++)
            if (!is_safe(in, s, o->order[k]))
                return "places along an index that the grid walks may meet in one target";
        if (o->owners < 1 || (int64_t)o->threads > INT32_MAX / 2) return "a scatter has owners";
        return o->n_stage == 1 ? NULL : "a scatter runs by itself";
    }
    if (o->kind == HONE_ROWS) {
        const looking l = {in, p, stride};
        for (int k = 0; k < o->n_stage; k++)
            if (!stands_alone(&l, stage + k)) return "two values may meet in one target";
        if (o->rows.n_stage != o->n_stage || o->rows.n_outer != o->n_order ||
            memcmp(o->order, o->rows.place[0], (size_t)o->n_order))
            return "its rows are not its order";
        return hone_rows_legal(in, stage, p, &o->rows) ? NULL : "a stage reads another row than its own";
    }
    for (int k = 0; k < s->n_index; k++)
        if (!(seen >> k & 1) && !is_over(in, s, k)) return "its order leaves an index out";
    if (o->kind == HONE_TILES) {
        if (s->reduce || o->n_stage != 1 || o->n_order < 2 || o->threads < TILE)
            return "tiles are of a stage by itself, without a reduction";
        if (o->across < 0 || o->across >= s->n_index || !(seen >> o->across & 1) ||
            o->across == o->order[o->n_order - 1])
            return "a tile has two sides";
        for (int k = 0; k < o->n_tiled; k++)
            if (o->tiled[k] < 0 || o->tiled[k] >= in->n_x || in->x[o->tiled[k]].kind != HONE_X_LOAD)
                return "tiles are of loads";
        return o->n_tiled > 0 && o->n_tiled <= HONE_TILED ? NULL : "tiles are of loads";
    }
    if ((o->kind == HONE_LANES || o->kind == HONE_SLICES) && !s->reduce)
        return "lanes share a reduction, and there is none";
    if (o->kind == HONE_SLICES && (s->reduce >= HONE_REDUCE_ARGMAX || o->slices < 1))
        return "places are not found in slices";
    if (o->kind == HONE_EACH && o->lanes != 1) return "one thread is one lane";
    if (o->kind == HONE_BLOCKS) {
        const char *wrong = hone_product_illegal(in, stage, p, stride, o->threads, &o->blocks);
        if (wrong) return wrong;
    }
    if (o->unroll < 1 || o->unroll > 16) return "a thread has between 1 and 16 places";
    if (o->vector > 1 &&
        (o->kind != HONE_EACH || o->unroll > 1 || !o->n_order || !vectors_legal(in, stage, p, stride, o)))
        return "what a thread would read and write at once does not lie side by side";
    for (int k = 1; k < o->n_stage; k++)
        if (!s[k].follows || reads_itself(in, s + k) || collides(in, s + k, p, stride, order))
            return "a stage does not follow the one before it";
    return NULL;
}
