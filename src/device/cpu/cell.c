/* SPDX-License-Identifier: Apache-2.0
   cell: the steps of recurrent networks by kernels of their own: LSTM, GRU and RNN with the usual functions,
   whatever op they come from (loops/match_cell.h).

   A step is a product of the state with constant weights, to which what comes from the input is added as a
   residual, and one pass over the gates. Its temporaries live in scratch. Directions never meet, and neither
   do rows of a batch: each has tiles of its own. Threads that are left share the columns of the weights, so
   each keeps its part in its own cache; they meet after every step, which pays where weights are large. */
#include <string.h>

#include "base/round.h"
#include "device/cpu/contract_half.h"
#include "kernels/cell.h"
#include "loops/match_cell.h"

enum {
    BIASES = HONE_CELL_BIASES,
    BYTES_PER_NS = 100 /* of weights in a near cache */,
    MEET_NS = 700,
    MEMBER_NS = 80
};
typedef hone_cell_walk walk;
typedef struct cell cell;
typedef struct {     /* a step of some rows of one direction: pointers a row */
    int64_t from, n; /* columns of the state: all, or a slice */
    int rows;
    const float **x, **late, **before, **c_before, *bias[BIASES];
    const void *panels[2];
    /* wide: products by halves, before what is added to them */
    float **h, **c, **sums, **more, **wide;
    uint16_t *halves; /* rows to be multiplied; behind them there is as much room again */
} moment;
struct cell {
    void (*step)(const cell *, const moment *);
    const hone_cell *kernel;
    hone_activate_fn *tanh;
    hone_contract *product[2];
    walk h0, c0, bias[BIASES];
    const hone_cell_line *when;                           /* a direction: the step of x that step t reads */
    int x, h, c, n_ref;                                   /* c: -1 where nobody asks for it afterwards */
    int64_t steps, ways, rows, width, gates, part, slice; /* rows and columns of a tile */
};

/* ---- steps --------------------------------------------------------------------------------------------- */
typedef struct {
    const float **a, **residual, *bias, *panels;
    float **to;
} operands; /* to[i] = a[i] R + residual[i] + bias */
static void columns(const hone_contract *p, const operands *o, int rows, hone_gemm_args part, int64_t k0,
                    int64_t from, int64_t to) {
    const int64_t vector = p->kernel->vector, all_n = hone_contract_columns(p);
    for (int64_t j = from, next; j < to; j = next) {
        const int64_t wide = all_n - j < p->nr ? all_n - j : p->nr;
        const int v = (int)(wide / vector), most = p->kernel->direct_rows[v - 1],
                  passes = hone_ceil_div(rows, most), mr = hone_ceil_div(rows, passes);
        /* whole ones together */
        part.panels = part.small_m ? (int)(((to < p->of.n ? to : p->of.n) - j) / p->nr) : 0;
        next = j + (part.panels > 1 ? part.panels : 1) * p->nr;
        part.n = (int)(p->of.n - j < wide ? p->of.n - j : wide), part.b_step = wide,
        part.b_apart = wide * p->of.k, part.b = o->panels + j * p->of.k + k0 * wide;
        part.c_from = part.sums_from = j, part.bias_n = o->bias ? o->bias + j : NULL;
        for (int i = 0; i < rows; i += mr) {
            part.m = rows - i < mr ? rows - i : mr, part.a = o->a + i, part.c = o->to + i,
            part.sums = (const float *const *)o->to + i;
            part.residual = o->residual ? o->residual + i : NULL;
            p->kernel->run[v - 1](&part);
        }
    }
}
/* rows a power of two apart would meet in the cache */
static int64_t wide_step(const cell *d) { return d->gates * d->width + 16; }
static int64_t tall(const hone_contract *p, int64_t rows) { return hone_round_up(rows, p->half->kernel->mr); }
/* The same by halves, where those are asked for: rows are rounded, and their sums end as those of a
   convolution do. */
static void multiply_halves(const cell *d, int which, const moment *m, const float **a,
                            const float **residual, float **to) {
    const hone_contract *p = d->product[which];
    const hone_gemm_half *h = p->half->kernel;
    const int64_t k = p->of.k, rows = tall(p, m->rows), step = wide_step(d);
    uint16_t *plain = m->halves, *laid = plain + rows * k;
    for (int i = 0; i < m->rows; i++) h->narrow(a[i], plain + i * k, k);
    memset(plain + m->rows * k, 0, sizeof *plain * (size_t)((rows - m->rows) * k));
    for (int64_t i = 0, high; h->pack_a && i < rows; i += high)
        high = hone_gemm_half_high(h->m_block, h->mr, rows - i),
        h->pack_a(high, k, plain + i * k, k, laid + i * k);
    if (h->begin) h->begin(m->rows, k);
    for (int64_t g = m->from; g < p->of.n; g += d->width)
        for (int64_t j = g; j < g + m->n; j += p->nr)
            h->run(rows, k, h->pack_a ? laid : plain, k, (const uint16_t *)m->panels[which] + j * k,
                   m->wide[0] + j, step, false);
    if (h->end) h->end();
    for (int64_t g = m->from; g < p->of.n; g += d->width) {
        hone_gemm_args ends = {
            .m = m->rows, .n = (int)m->n, .c = to, .c_from = g, .more = true, .epilogue = true};
        ends.sums = (const float *const *)m->wide, ends.sums_from = g, ends.residual = residual;
        ends.bias_n = m->bias[which] ? m->bias[which] + g : NULL;
        p->half->epilogue->run(&ends);
    }
}
static void multiply(const cell *d, int which, const moment *m, const float **a, const float **residual,
                     float **to) {
    const hone_contract *p = d->product[which];
    if (p->half) {
        multiply_halves(d, which, m, a, residual, to);
        return;
    }
    const operands o = {a, residual, m->bias[which], m->panels[which], to};
    hone_gemm_args part = {.taps = 1, .small_m = p->of.m <= HONE_GEMM_SMALL_M};
    for (int64_t k0 = 0; k0 < p->of.k; k0 += part.k) {
        part.k = p->of.k - k0 < HONE_CONTRACT_KC ? p->of.k - k0 : HONE_CONTRACT_KC;
        part.more = k0 > 0, part.epilogue = k0 + part.k == p->of.k;
        if (m->n == d->width) columns(p, &o, m->rows, part, k0, 0, p->of.n);
        else /* a slice of each gate: whole panels */
            for (int64_t g = m->from; g < p->of.n; g += d->width)
                columns(p, &o, m->rows, part, k0, g, g + m->n);
        for (int i = 0; i < m->rows; i++) a[i] += part.k;
    }
    for (int i = 0; i < m->rows; i++) a[i] -= p->of.k;
}
static void lstm(const cell *d, const moment *m) {
    const int64_t n = d->width, j = m->from;
    multiply(d, 0, m, m->before, m->x, m->sums);
    for (int i = 0; i < m->rows; i++) {
        const float *s = m->sums[i] + j;
        d->kernel->lstm(m->n, s, s + n, s + 2 * n, s + 3 * n, m->c_before[i] + j, m->c[i] + j, m->h[i] + j);
    }
}
static void gru(const cell *d, const moment *m) { /* the state is multiplied, then reset */
    const int64_t n = d->width, j = m->from;
    multiply(d, 0, m, m->before, m->x, m->sums);
    multiply(d, 1, m, m->before, NULL, m->more);
    for (int i = 0; i < m->rows; i++) {
        const float *s = m->sums[i] + j;
        d->kernel->gru(m->n, s, s + n, m->late[i] + j, m->more[i] + j, m->before[i] + j, m->h[i] + j);
    }
}
static void gru_reset(const cell *d, const moment *m) { /* the state is reset, all of it, then multiplied */
    const int64_t n = d->width;
    multiply(d, 0, m, m->before, m->x, m->sums);
    for (int i = 0; i < m->rows; i++) {
        m->c[i] = m->sums[i] + n;
        d->kernel->reset(n, m->c[i], m->before[i], m->c[i]);
    }
    multiply(d, 1, m, (const float **)m->c, m->late, m->more);
    for (int i = 0; i < m->rows; i++)
        d->kernel->gru(n, m->sums[i], NULL, NULL, m->more[i], m->before[i], m->h[i]);
}
static void rnn(const cell *d, const moment *m) {
    multiply(d, 0, m, m->before, m->x, m->h);
    d->tanh(m->h, m->from, m->rows, m->n, 0, 0);
}
/* By the kind of a cell. */
static const struct {
    void (*step)(const cell *, const moment *);
    bool splits; /* columns of the state need no others of the same step */
} kinds[] = {[HONE_CELL_LSTM] = {lstm, true},
             [HONE_CELL_GRU] = {gru, true},
             [HONE_CELL_GRU_RESET] = {gru_reset, false},
             [HONE_CELL_RNN] = {rnn, true}};

/* ---- running ------------------------------------------------------------------------------------------- */
enum { LISTS = 9 };
static size_t lists_bytes(const cell *d) {
    return hone_round_up64(sizeof(float *) * LISTS * (size_t)d->part);
}
static size_t floats_bytes(const cell *d) {
    return hone_round_up64(sizeof(float) *
                           (size_t)(d->gates * d->width + d->part * d->width * (2 + d->gates)));
}
/* sums of as many rows as the kernel takes, and the rows, twice */
static size_t halves_bytes(const cell *d) {
    const hone_contract *p = d->product[0];
    return p->half ? (size_t)tall(p, d->part) *
                         (sizeof(float) * (size_t)wide_step(d) + 2 * sizeof(uint16_t) * (size_t)p->of.k)
                   : 0;
}
static float *of(const hone_step *s, void *const *base, int ref) {
    return (float *)(void *)hone_ref_at(s->ref[ref], base);
}
static void gather(const walk *w, const hone_step *s, void *const *base, int64_t way, int64_t row, int64_t n,
                   float *to) {
    if (w->tensor < 0) {
        memset(to, 0, sizeof *to * (size_t)n);
        return;
    }
    const float *from = of(s, base, w->tensor) + w->c + way * w->way + row * w->row;
    for (int64_t j = 0; j < n; j++) to[j] = from[j * w->each];
}
static hone_status run(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const cell *d = s->data;
    const int64_t n = d->width, all = d->gates * n, slices = n / d->slice,
                  parts = hone_ceil_div(d->rows, d->part);
    /* a step a round, or all */
    const int64_t tile = number % s->tiles, t0 = number / s->tiles, t1 = s->rounds ? t0 + 1 : d->steps;
    const int64_t way = tile / slices / parts, b0 = tile / slices % parts * d->part;
    const int rows = (int)(d->rows - b0 < d->part ? d->rows - b0 : d->part);
    void **list = scratch;
    float *room = (float *)(void *)((char *)scratch + lists_bytes(d)), *zero = room, *h0 = zero + all,
          *c0 = h0 + rows * n, *sums = c0 + rows * n;
    moment m = {.from = tile % slices * d->slice, .n = d->slice, .rows = rows};
    m.x = (void *)list, m.late = m.x + d->part, m.before = m.late + d->part, m.c_before = m.before + d->part;
    m.h = (void *)(list + 4 * d->part), m.c = m.h + d->part, m.sums = m.c + d->part,
    m.more = m.sums + d->part, m.wide = m.more + d->part;
    float *wide = (float *)(void *)((char *)scratch + lists_bytes(d) + floats_bytes(d));
    if (d->product[0]->half)
        m.halves = (uint16_t *)(void *)(wide + tall(d->product[0], d->part) * wide_step(d));
    for (int k = 0; k < 2 && d->product[k]; k++)
        m.panels[k] = hone_element(of(s, base, d->product[k]->packed_b), d->product[k]->half,
                                   way * hone_contract_columns(d->product[k]) * d->product[k]->of.k);
    for (int k = 0; k < BIASES; k++)
        if (d->bias[k].tensor >= 0)
            m.bias[k] = of(s, base, d->bias[k].tensor) + d->bias[k].c + way * d->bias[k].way;
    for (int i = 0; i < rows; i++) {
        m.sums[i] = sums + i * all, m.more[i] = m.sums[i] + 2 * n, m.wide[i] = wide + i * wide_step(d);
        if (t0 == 0)
            gather(&d->h0, s, base, way, b0 + i, n, h0 + i * n),
                gather(&d->c0, s, base, way, b0 + i, n, c0 + i * n);
    }
    /* rows from one step to the next; of these */
    const int64_t apart = d->ways * d->rows, from = way * d->rows + b0;
    for (int64_t t = t0; t < t1; t++) {
        const int64_t u = d->when[way].c + d->when[way].k * t;
        const float *x = u < 0 || u >= d->steps ? NULL : of(s, base, d->x) + (u * apart + from) * all;
        float *h = of(s, base, d->h) + (t * apart + from) * n,
              *c = d->c < 0 ? NULL : of(s, base, d->c) + (t * apart + from) * n;
        if (!x) memset(zero, 0, sizeof *zero * (size_t)all);
        for (int i = 0; i < rows; i++) {
            m.x[i] = x ? x + i * all : zero, m.late[i] = m.x[i] + (d->gates - 1) * n;
            m.before[i] = t ? h - apart * n + i * n : h0 + i * n, m.h[i] = h + i * n;
            m.c[i] = c ? c + i * n : c0 + i * n, m.c_before[i] = t && c ? c - apart * n + i * n : c0 + i * n;
        }
        d->step(d, &m);
    }
    return HONE_OK;
}

/* ---- what it is ---------------------------------------------------------------------------------------- */
/* Products of the state, or of what the stage before makes of it, with constant weights in panels. */
static hone_status products(hone_template_builder *m, const hone_cpu_call *c, int from, int n, cell *d,
                            bool *fit) {
    int made = 0;
    int64_t columns = 0;
    *fit = true;
    for (int k = 0; k < n && *fit; k++) {
        hone_contract *p;
        int64_t tiles;
        size_t bytes;
        if (!c->instance->stage[from + k].n_reduce) continue;
        HONE_TRY(hone_contract_over(m, c, from + k, true, &p, &tiles, &bytes));
        *fit = made < 2 && p && p->direct && p->of.m == d->rows && p->of.k == d->width &&
               p->of.batch == d->ways && p->of.batch_b == d->ways && p->of.n_batch <= 1 &&
               p->of.piece == p->of.k;
        if (*fit) columns += p->of.n, d->product[made++] = p;
    }
    *fit &= columns == d->gates * d->width;
    /* where halves are faster than floats: panels of whole gates, K of whole steps */
    const hone_gemm_half *h =
        c->how.precision == HONE_DTYPE_BF16 ? hone_gemm_half_best(HONE_DTYPE_BF16) : NULL;
    for (int k = 0; k < made && *fit && h && h->times > 1 && d->width % h->nr == 0 && d->width % h->deep == 0;
         k++) {
        if (!(d->product[k]->half = HONE_NEW(m->arena, struct hone_contract_half)))
            return hone_steps_no_memory();
        d->product[k]->half->kernel = h, d->product[k]->nr = h->nr,
        d->product[k]->half->epilogue = hone_dwconv_nhwc_best();
    }
    return HONE_OK;
}
/* Columns of the state for each of the free threads, of all there are: whole panels of every product, equally
   many, where a step is worth meeting for. */
static int64_t slice_for(const cell *d, int64_t free, int64_t threads) {
    const double step_ns =
        (double)(d->gates * d->width * d->width) * sizeof(float) / BYTES_PER_NS * (double)(1 + d->part / 4);
    int64_t best = d->width;
    double least = 0.75 * step_ns;
    for (int64_t k = 2; k <= free && k <= d->width; k++) {
        /* all members of the team meet */
        const double ns = step_ns / (double)k + MEET_NS + MEMBER_NS * (double)threads;
        if (d->width % k || ns >= least) continue;
        bool whole = true;
        for (int q = 0; q < 2 && d->product[q]; q++) whole &= d->width / k % d->product[q]->nr == 0;
        if (whole) least = ns, best = d->width / k;
    }
    return best;
}
hone_status hone_cpu_cell(hone_template_builder *m, const hone_cpu_call *c, int from, int *end, bool *done) {
    const int to = *end;
    hone_match_cell of;
    if (!hone_match_cell_of(&c->sized, from, to, &of)) return HONE_OK;
    cell *d = HONE_NEW(m->arena, cell);
    if (!d) return hone_steps_no_memory();
    d->steps = of.steps, d->ways = of.ways, d->rows = of.rows, d->width = of.width, d->gates = of.gates;
    d->x = of.x, d->h = of.h, d->c = of.c_read ? of.c : -1, d->h0 = of.h0, d->c0 = of.c0;
    for (int k = 0; k < BIASES; k++) d->bias[k] = of.bias[k];
    if (!(d->when = hone_arena_copy(m->arena, of.when, sizeof *of.when * (size_t)of.ways)))
        return hone_steps_no_memory();
    const int n_ref = m->n_ref, n_packed = m->packed.n;
    bool fit;
    HONE_TRY(products(m, c, from, to - from, d, &fit));
    if (!fit) {
        m->n_ref = n_ref, m->packed.n = n_packed;
        return HONE_OK;
    }
    d->step = kinds[of.kind].step, d->kernel = hone_cell_best(),
    d->tanh = hone_activate_best()->run[HONE_ACTIVATE_tanh];
    /* rows of a batch among the threads that directions leave idle; columns among those that rows leave */
    const int64_t threads = c->how.threads, most = (d->rows + 3) / 4, want = threads / d->ways,
                  parts = want < 1      ? 1
                          : want < most ? want
                                        : most;
    d->part = hone_ceil_div(d->rows, parts);
    const int64_t pieces = d->ways * hone_ceil_div(d->rows, d->part);
    d->slice = kinds[of.kind].splits ? slice_for(d, threads / pieces, threads) : d->width;
    const int64_t tiles = pieces * (d->width / d->slice);
    const double work =
        (double)d->steps * (double)(d->ways * d->rows) * (double)(d->width * d->width * d->gates);
    hone_step step = {.tactic = "cell",
                      .flush = true,
                      .serial = tiles == 1 || work < 100000,
                      .tiles = tiles,
                      .tile = run,
                      .data = d};
    if (d->slice < d->width) step.rounds = d->steps;
    if (d->slice < d->width && of.c >= 0)
        d->c = of.c, of.own &= ~((uint64_t)1 << d->c); /* whoever comes next reads it */
    step.scratch_bytes = lists_bytes(d) + floats_bytes(d) + halves_bytes(d);
    *done = true;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = of.uses & ~of.own, .buffer = -1});
}
