/* SPDX-License-Identifier: Apache-2.0
   choices: which choices a problem has, whether one fits, and what it costs in terms that a fit can weigh.
   Nothing is measured here. */
#include <string.h>

#include "device/cpu/contract.h"
#include "device/wisdom.h"
#include "kernels/winograd.h"
#include "loops/schedule.h"

_Static_assert((int)HONE_PROBLEM_WIDTHS == (int)HONE_GEMM_WIDTHS,
               "problems carry what kernels of floats can do");

enum { SCRATCH = 64 << 20 /* bytes a thread may be asked for */, MOST_THREADS = 4096 };
static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- does it fit? -------------------------------------------------------------------------------------- */
static bool among(int64_t n, int64_t low, int64_t high) { return n >= low && n <= high; }
/* of the tiles that a choice calls so; -1: the window has none */
static int size_of(int64_t window, int64_t tile) {
    const int taps = (int)(window % HONE_SUM_LINE);
    for (int size = 0; size < HONE_WINOGRAD_SIZES; size++)
        if (hone_winograd_has(size, taps) && hone_winograd_side(size, taps) == tile &&
            (window < HONE_SUM_LINE || size == HONE_WINOGRAD_LINES))
            return size;
    return -1;
}
static bool sum_fits(const hone_problem *p, const hone_choice *c) {
    const int64_t *q = p->number, v = c->knob[HONE_KNOB_VECTORS], rows = c->knob[HONE_KNOB_ROWS],
                  columns = c->knob[HONE_KNOB_COLUMNS], depth = c->knob[HONE_KNOB_DEPTH],
                  tile = c->knob[HONE_KNOB_TILE];
    if (!among(v, 1, p->widths)) return false;
    const int64_t nr = v * p->vector, mr = p->rows[v - 1];
    if (!among(rows, 1, hone_round_up(q[HONE_SUM_M], mr)) || (rows % mr && rows != q[HONE_SUM_M]))
        return false;
    if (!among(columns, nr, hone_round_up(q[HONE_SUM_N], nr)) || columns % nr) return false;
    if (!among(depth, 1, least(q[HONE_SUM_K], HONE_CONTRACT_KC)) ||
        (q[HONE_SUM_EACH] && depth != q[HONE_SUM_K]))
        return false;
    if (tile && size_of(q[HONE_SUM_WINDOW], tile) < 0) return false;
    if (!among(c->knob[HONE_KNOB_THREADS], 1, MOST_THREADS)) return false;
    const int64_t piece = q[HONE_SUM_PIECE],
                  taps = piece && depth >= piece ? least(depth / piece, q[HONE_SUM_TAPS]) : 1;
    const double sums =
                     q[HONE_SUM_DIRECT] && depth >= q[HONE_SUM_K] ? 0 : 4.0 * (double)rows * (double)columns,
                 a = q[HONE_SUM_A] || piece ? 0 : 4.0 * (double)rows * (double)q[HONE_SUM_K],
                 b = q[HONE_SUM_B] ? 0 : 4.0 * (double)columns * (double)(depth + 1),
                 packed = p->packs_a && !q[HONE_SUM_EACH] ? 4.0 * (double)(rows + mr) * (double)depth : 0;
    return sums + a + b + packed + 8.0 * (double)rows * (double)(taps + 4) <= SCRATCH;
}
static bool bytes_fit(const hone_problem *p, const hone_choice *c) {
    const int64_t *q = p->number, rows = c->knob[HONE_BYTES_ROWS], columns = c->knob[HONE_BYTES_COLUMNS];
    if (!among(rows, p->mr, hone_round_up(q[HONE_SUM_M], p->mr)) || rows % p->mr) return false;
    if (!among(columns, p->nr, hone_round_up(q[HONE_SUM_N], p->nr)) || columns % p->nr) return false;
    return 4.0 * (double)rows * (double)columns +
               (double)(q[HONE_SUM_A] ? 0 : rows) * (double)(q[HONE_SUM_K] + 4) +
               (double)(q[HONE_SUM_B] ? 0 : columns) * (double)(q[HONE_SUM_K] + 8) <=
           SCRATCH;
}
static bool power(int64_t n, int64_t least_, int64_t most) {
    return !n || (among(n, least_, most) && !(n & (n - 1)));
}
static bool schedule_fits(const int64_t *knob) {
    return among(knob[HONE_SCHEDULE_KIND], 0, 1 + HONE_BLOCKS) && power(knob[HONE_SCHEDULE_LANES], 32, 256) &&
           power(knob[HONE_SCHEDULE_UNROLL], 1, 8) && power(knob[HONE_SCHEDULE_THREADS], 32, 256) &&
           power(knob[HONE_SCHEDULE_VECTOR], 1, 8);
}
bool hone_choice_fits(const hone_problem *p, const hone_choice *c) {
    const int64_t *q = p->number, rows = c->knob[0];
    switch (p->kind) {
    case HONE_PROBLEM_SUM: return sum_fits(p, c);
    case HONE_PROBLEM_BYTES: return bytes_fit(p, c);
    case HONE_PROBLEM_PLANE:
        return among(rows, 1, q[HONE_PLANE_HEIGHT]) &&
               8.0 * (double)rows * (double)q[HONE_PLANE_WIDTH] <= SCRATCH;
    case HONE_PROBLEM_ATTENTION: /* scores; one block makes its own panels */
        return among(rows, 1, q[HONE_ATTEND_M]) && among(c->knob[1], 1, MOST_THREADS) &&
               4.0 * (double)q[HONE_ATTEND_N] *
                       (double)(rows + (rows == q[HONE_ATTEND_M] ? q[HONE_ATTEND_DEPTH] + q[HONE_ATTEND_WIDTH]
                                                                 : 0)) <=
                   SCRATCH;
    case HONE_PROBLEM_SCHEDULE: return schedule_fits(c->knob);
    case HONE_PROBLEM_PRODUCT: return among(c->knob[0], 0, 1);
    case HONE_PROBLEM_KINDS: break;
    }
    return false;
}

/* ---- which are there? ---------------------------------------------------------------------------------- */
static const int64_t parts[] = {1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 20, 24, 32, 48, 64, 96, 128, 192, 256, 512};
enum { PARTS = sizeof parts / sizeof *parts, TILES = 1024 /* no more are worth handing out */ };
/* Sizes of about n / 1, n / 2, …, in whole `by`, the larger ones first. */
static int sizes(int64_t n, int64_t by, int64_t *out) {
    int many = 0;
    for (int k = 0; k < PARTS; k++) {
        const int64_t size = hone_round_up(hone_ceil_div(n, parts[k]), by);
        if (!many || size < out[many - 1]) out[many++] = size;
    }
    return many;
}
typedef struct {
    const hone_problem *problem;
    hone_choice *out;
    int n, most, threads;
} offers;
static void offer(offers *o, hone_choice c) {
    if (o->n < o->most && hone_choice_fits(o->problem, &c)) o->out[o->n++] = c;
}
static void sum_choices(offers *o) {
    const hone_problem *p = o->problem;
    const int64_t *q = p->number, whole = least(q[HONE_SUM_K], HONE_CONTRACT_KC);
    static const int64_t depths[] = {HONE_CONTRACT_KC, 1024, 512, 256};
    int64_t rows[PARTS], columns[PARTS];
    for (int size = 0; size < HONE_WINOGRAD_SIZES; size++) { /* these take panels and blocks of their own */
        const int64_t v = p->widths, mr = p->rows[v - 1],
                      tile = hone_winograd_side(size, (int)(q[HONE_SUM_WINDOW] % HONE_SUM_LINE));
        if (size_of(q[HONE_SUM_WINDOW], tile) != size) continue;
        offer(o, (hone_choice){{v, least(q[HONE_SUM_M], mr),
                                hone_round_up(least(q[HONE_SUM_N], v * p->vector), v * p->vector), whole,
                                tile, o->threads}});
    }
    for (int64_t v = p->widths; v >= 1; v--) {
        /* the panel would be wider than all columns */
        if (v > 1 && q[HONE_SUM_N] <= (v - 1) * p->vector) continue;
        const int nm = sizes(q[HONE_SUM_M], p->rows[v - 1], rows),
                  nn = sizes(q[HONE_SUM_N], v * p->vector, columns);
        for (int d = 0; d < (int)(sizeof depths / sizeof *depths); d++) {
            if (d && (depths[d] >= whole || q[HONE_SUM_EACH])) continue;
            for (int i = 0; i < nm; i++)
                for (int j = 0; j < nn; j++) {
                    const int64_t tiles = q[HONE_SUM_BATCH] * hone_ceil_div(q[HONE_SUM_M], rows[i]) *
                                          hone_ceil_div(q[HONE_SUM_N], columns[j]);
                    if (tiles <= TILES || (!i && !j))
                        offer(o, (hone_choice){
                                     {v, rows[i], columns[j], least(whole, depths[d]), 0, o->threads}});
                }
        }
    }
}
/* kind, lanes, unroll, threads, vector: by rule first. */
static const hone_choice schedules[] = {{{0}},
                                        {{0, 0, 0, 64}},
                                        {{0, 0, 0, 128}},
                                        {{1 + HONE_EACH, 0, 1, 0}},
                                        {{1 + HONE_EACH, 0, 2, 0}},
                                        {{1 + HONE_EACH, 0, 4, 0}},
                                        {{1 + HONE_EACH, 0, 1, 64}},
                                        {{0, 0, 0, 0, 1}},
                                        {{0, 0, 0, 0, 2}},
                                        {{0, 0, 0, 0, 4}},
                                        {{0, 0, 0, 0, 8}},
                                        {{1 + HONE_LANES, 32, 0, 0}},
                                        {{1 + HONE_LANES, 128, 0, 0}},
                                        {{1 + HONE_LANES, 256, 0, 0}},
                                        {{1 + HONE_ROWS, 32, 0, 0}},
                                        {{1 + HONE_ROWS, 128, 0, 0}},
                                        {{1 + HONE_ROWS, 256, 0, 0}},
                                        {{1 + HONE_BLOCKS, 0, 0, 0}},
                                        {{1 + HONE_BLOCKS, 0, 0, 64}}};
int hone_choices(const hone_problem *p, int threads, hone_choice *out, int most) {
    offers o = {p, out, 0, most, threads};
    const int64_t *q = p->number;
    int64_t rows[PARTS], columns[PARTS];
    int nm, nn;
    switch (p->kind) {
    case HONE_PROBLEM_SUM: sum_choices(&o); break;
    case HONE_PROBLEM_BYTES:
        nm = sizes(q[HONE_SUM_M], p->mr, rows), nn = sizes(q[HONE_SUM_N], p->nr, columns);
        for (int i = 0; i < nm; i++)
            for (int j = 0; j < nn; j++)
                if (q[HONE_SUM_BATCH] * hone_ceil_div(q[HONE_SUM_M], rows[i]) *
                            hone_ceil_div(q[HONE_SUM_N], columns[j]) <=
                        TILES ||
                    (!i && !j))
                    offer(&o, (hone_choice){{rows[i], columns[j]}});
        break;
    case HONE_PROBLEM_PLANE:
        nm = sizes(q[HONE_PLANE_HEIGHT], 1, rows);
        for (int i = 0; i < nm; i++) offer(&o, (hone_choice){{rows[i]}});
        break;
    case HONE_PROBLEM_ATTENTION:
        nm = sizes(q[HONE_ATTEND_M], 1, rows);
        for (int i = 0; i < nm; i++) {
            const int64_t mr = p->rows[p->widths - 1],
                          block = least(q[HONE_ATTEND_M], hone_round_up(rows[i], mr));
            if (!o.n || o.out[o.n - 1].knob[0] != block) offer(&o, (hone_choice){{block, threads}});
        }
        break;
    case HONE_PROBLEM_SCHEDULE:
        for (size_t k = 0; k < sizeof schedules / sizeof *schedules; k++) offer(&o, schedules[k]);
        break;
    case HONE_PROBLEM_PRODUCT: offer(&o, (hone_choice){{0}}), offer(&o, (hone_choice){{1}}); break;
    case HONE_PROBLEM_KINDS: break;
    }
    return o.n;
}

/* ---- what does it cost? -------------------------------------------------------------------------------- */
enum {
    F_STEP,
    F_MADDS /* four, by the width of the panel */,
    F_OTHER = F_MADDS + HONE_GEMM_WIDTHS,
    F_A,
    F_B,
    F_SUMS,
    F_CALLS,
    F_TILES,
    F_BROUGHT,
    F_MOVED,
    F_USED
};
_Static_assert((int)F_USED <= (int)HONE_FEATURES, "features");
static double share(double tiles, int threads) { /* of the work, that the busiest thread has */
    if (tiles < 1) tiles = 1;
    return (double)(int64_t)((tiles + threads - 1) / threads) / tiles;
}
static void winograd_features(const int64_t *q, int64_t tile, int threads, double *f) {
    /* the image's sides are not known here: a square's edge stands for them; nor is what phases leave
       out */
    const bool line = q[HONE_SUM_WINDOW] >= HONE_SUM_LINE;
    const int size = size_of(q[HONE_SUM_WINDOW], tile), taps = (int)(q[HONE_SUM_WINDOW] % HONE_SUM_LINE);
    const int tall = line ? 1 : hone_winograd_tall(size), high = line ? 1 : tall - taps + 1;
    const double m = (double)q[HONE_SUM_M], places = tall * hone_winograd_edge(size),
                 tiles = m / (high * hone_winograd_out(size, taps)),
                 c = (double)q[HONE_SUM_K] / (double)(line ? taps : taps * taps), n = (double)q[HONE_SUM_N],
                 mine = 1.0 / threads;
    f[F_STEP] = 2, f[F_MADDS + HONE_GEMM_WIDTHS - 1] = places * tiles * c * n * mine;
    f[F_BROUGHT] = places * tiles * (c + n) * mine, f[F_B] = 4 * places * c * n * mine, f[F_TILES] = 16;
}
void hone_choice_features(const hone_problem *p, const hone_choice *c, int threads, double *f) {
    const int64_t *q = p->number;
    memset(f, 0, sizeof *f * HONE_FEATURES);
    f[F_STEP] = 1;
    /* nothing is known of these before they are measured */
    if (p->kind == HONE_PROBLEM_SCHEDULE || p->kind == HONE_PROBLEM_PRODUCT) return;
    if (p->kind == HONE_PROBLEM_PLANE) {
        const double tiles = (double)q[HONE_PLANE_COUNT] *
                             (double)hone_ceil_div(q[HONE_PLANE_HEIGHT], c->knob[0]),
                     work =
                         (double)q[HONE_PLANE_COUNT] * (double)(q[HONE_PLANE_HEIGHT] * q[HONE_PLANE_WIDTH]);
        f[F_OTHER] = work * (double)(q[HONE_PLANE_DOWN] * q[HONE_PLANE_ACROSS]) * share(tiles, threads),
        f[F_TILES] = tiles / threads;
        f[F_SUMS] = 4 * (double)c->knob[0] * (double)q[HONE_PLANE_WIDTH] * share(tiles, threads) * tiles;
        return;
    }
    if (p->kind == HONE_PROBLEM_ATTENTION) {
        const double tiles =
                         (double)q[HONE_ATTEND_BATCH] * (double)hone_ceil_div(q[HONE_ATTEND_M], c->knob[0]),
                     mine = share(tiles, threads);
        const double scores =
            (double)q[HONE_ATTEND_BATCH] * (double)q[HONE_ATTEND_M] * (double)q[HONE_ATTEND_N];
        f[F_OTHER] = scores * (double)(q[HONE_ATTEND_DEPTH] + q[HONE_ATTEND_WIDTH]) * mine,
        f[F_TILES] = tiles / threads;
        f[F_B] = 4 * (double)(q[HONE_ATTEND_DEPTH] + q[HONE_ATTEND_WIDTH]) * (double)q[HONE_ATTEND_N] *
                 tiles * mine;
        /* beyond L2 */
        f[F_SUMS] = (double)c->knob[0] * (double)q[HONE_ATTEND_N] > 1 << 18 ? 4 * scores * mine : 0;
        return;
    }
    const bool sum = p->kind == HONE_PROBLEM_SUM;
    if (sum && c->knob[HONE_KNOB_TILE]) {
        winograd_features(q, c->knob[HONE_KNOB_TILE], threads, f);
        return;
    }
    const int64_t v = sum ? c->knob[HONE_KNOB_VECTORS] : 1, nr = sum ? v * p->vector : p->nr,
                  mr = sum ? p->rows[v - 1] : p->mr,
                  rows = sum ? c->knob[HONE_KNOB_ROWS] : c->knob[HONE_BYTES_ROWS],
                  columns = sum ? c->knob[HONE_KNOB_COLUMNS] : c->knob[HONE_BYTES_COLUMNS],
                  depth = sum ? c->knob[HONE_KNOB_DEPTH] : q[HONE_SUM_K];
    const int64_t tm = hone_ceil_div(q[HONE_SUM_M], rows), tn = hone_ceil_div(q[HONE_SUM_N], columns);
    const double batch = (double)q[HONE_SUM_BATCH], k = (double)q[HONE_SUM_K], m = (double)q[HONE_SUM_M],
                 n = (double)q[HONE_SUM_N], tiles = batch * (double)tm * (double)tn,
                 mine = share(tiles, threads);
    /* rows and panels that are not full cost as if they were; the last panel has as many vectors as it
       needs */
    const double padded =
        batch * (double)hone_round_up(q[HONE_SUM_M], mr) *
        (double)(sum ? hone_round_up(q[HONE_SUM_N], p->vector) : hone_round_up(q[HONE_SUM_N], nr)) * k;
    const bool each = sum && q[HONE_SUM_EACH];
    f[each || !sum ? F_OTHER : F_MADDS + v - 1] = padded * mine;
    f[F_A] = (double)rows * (double)least(depth, q[HONE_SUM_K]) > 1 << 18
                 ? 4 * batch * m * k * (double)hone_ceil_div(columns, nr) * (double)tn * mine
                 : 4 * batch * m * k * (double)tn * mine;
    f[F_B] = 4 * batch * n * k * (double)tm * mine;
    f[F_SUMS] = sum && q[HONE_SUM_DIRECT] && depth >= q[HONE_SUM_K]
                    ? 0
                    : 4 * batch * m * n * (double)hone_ceil_div(q[HONE_SUM_K], depth) * mine;
    f[F_CALLS] = batch * (double)hone_ceil_div(q[HONE_SUM_M], mr) * (double)hone_ceil_div(q[HONE_SUM_N], nr) *
                 (double)hone_ceil_div(q[HONE_SUM_K], depth) * mine;
    f[F_TILES] = tiles / threads;
    /* once a tile, or once by a step before */
    if (!q[HONE_SUM_B]) f[F_MOVED] = batch * n * k * (tm > 1 ? 1.0 / threads : mine);
}
void hone_choice_weights(const hone_problem *p, double *w) {
    const double madd = 1.0 / (3 * (p->vector ? p->vector : 16));
    for (int k = 0; k < HONE_FEATURES; k++) w[k] = 1e-3;
    for (int v = 0; v < HONE_GEMM_WIDTHS; v++)
        w[F_MADDS + v] = madd * (1 + 0.15 * (HONE_GEMM_WIDTHS - 1 - v));
    w[F_STEP] = 1000, w[F_OTHER] = 2 * madd, w[F_A] = 0.004, w[F_B] = 0.01, w[F_SUMS] = 0.02, w[F_CALLS] = 8,
    w[F_TILES] = 300;
    w[F_BROUGHT] = 12 * madd, w[F_MOVED] = 0.2;
}
