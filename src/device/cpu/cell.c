/* SPDX-License-Identifier: Apache-2.0
   cell: the steps of recurrent networks by kernels of their own: LSTM, GRU and RNN with the usual functions,
   whatever op they come from.

   A step is a product of the state with constant weights, to which what comes from the input is added as a
   residual, and one pass over the gates. Its temporaries live in scratch. The form of an over group is
   compared with a table: each stage's value is written as text in which only

        A, B, …     what the group's first, second, … stage makes, here and now; B2: of its gate 2
        F'          the same a step ago, before the first step another tensor, or 0
        x, x2       what comes from the input at some step that t and the direction alone decide; of gate 2. 0
                    where there is no such step
        r, b        weights; a bias

   are left. All else (peepholes, clipping, other functions, backward sequences of several lengths) stays with
   the stages one by one (program.c). Directions never meet, and neither do rows of a batch: each has tiles of
   its own. Threads that are left share the columns of the weights, so each keeps its part in
   its own cache; they meet after every step, which pays where weights are large. */
#include <stdio.h>
#include <string.h>

#include "device/cpu/contract_half.h"
#include "kernels/cell.h"

enum {
    STAGES = 6,
    FORM = 48,
    BIASES = 2,
    BYTES_PER_NS = 100 /* of weights in a near cache */,
    MEET_NS = 700,
    MEMBER_NS = 80
};
typedef struct {
    int64_t c, k;
} along; /* c + k t */
typedef struct {
    int tensor; /* -1: zeros */
    int64_t c, way, row, each;
} walk;
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
    const along *when;                                    /* a direction: the step of x that step t reads */
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
                  passes = (rows + most - 1) / most, mr = (rows + passes - 1) / passes;
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
/* The stages' forms; which of them is c, and how many gates x has. The last one is h. */
#define GRU(x, c)                                                              \
    "mul(E',r)", "sigmoid(" x ")", "mul(E',r)", "tanh(add(x2,mul(B1," c ")))", \
        "add(mul(sub(1,B0),D),mul(B0,E'))"
#define GRU_RESET(x, c) \
    "mul(F',r)", "sigmoid(" x ")", "mul(B1,F')", "mul(C,r)", "tanh(" c ")", "add(mul(sub(1,B0),E),mul(B0,F'))"
static const struct {
    int n, c, gates;
    bool splits; /* columns of the state need no others of the same step */
    void (*step)(const cell *, const moment *);
    const char *stage[STAGES];
} forms[] = {{6,
              4,
              4,
              true,
              lstm,
              {"mul(F',r)", "add(x,A)", "sigmoid(B0)", "sigmoid(B2)", "add(mul(D,E'),mul(C,tanh(B3)))",
               "mul(sigmoid(B1),tanh(E))"}},
             {5, -1, 3, true, gru, {GRU("add(x,A)", "C")}},
             {5, -1, 3, true, gru, {GRU("add(add(x,A),b)", "add(C,b)")}},
             {6, -1, 3, false, gru_reset, {GRU_RESET("add(x,A)", "add(x2,D)")}},
             {6, -1, 3, false, gru_reset, {GRU_RESET("add(add(x,A),b)", "add(add(x2,D),b)")}},
             {2, -1, 1, true, rnn, {"mul(B',r)", "tanh(add(x,A))"}}};
#undef GRU
#undef GRU_RESET

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
                  parts = (d->rows + d->part - 1) / d->part;
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
typedef struct {
    const hone_cpu_call *c;
    int from, n;
    const hone_stage *s;     /* whose value is written */
    char text[STAGES][FORM]; /* so far */
    int length, x, n_bias;
    walk before[STAGES], bias[BIASES];
    bool known[STAGES]; /* before */
    along *when;        /* by direction; known where x >= 0 */
    int64_t ways;
} reading;
static const hone_x *at(const reading *r, int32_t x) { return r->c->instance->x + x; }
static bool put(reading *r, const char *word) {
    char *to = r->text[r->s - r->c->instance->stage - r->from];
    const int n = snprintf(to + r->length, (size_t)(FORM - r->length), "%s", word);
    return n >= 0 && (r->length += n) < FORM;
}
static int32_t own(const reading *r, int place) { return r->c->instance->list[r->s->index0 + place]; }
static bool is_index(const reading *r, int32_t x, int32_t index) {
    return at(r, x)->kind == HONE_X_INDEX && at(r, x)->a == index;
}
static bool is_zero(const reading *r, int32_t x) {
    return at(r, x)->kind == HONE_X_CONST && at(r, x)->k.f32 == 0;
}
/* A subscript as a line over t in one direction. */
static bool line(const reading *r, int32_t x, int64_t way, along *out) {
    const hone_x *e = at(r, x);
    along a, b = {0, 0};
    *out = (along){0, 0};
    switch ((hone_xkind)e->kind) {
    case HONE_X_CONST:
        out->c = e->type == HONE_I64 ? e->k.i64 : e->k.i32;
        return e->type == HONE_I64 || e->type == HONE_I32;
    case HONE_X_INDEX:
        if (e->a == own(r, 0)) out->k = 1;
        else out->c = way;
        return e->a == own(r, 0) || e->a == own(r, 1);
    case HONE_X_PARAM: out->c = r->c->param[e->a].i; return !r->c->instance->param_real[e->a];
    case HONE_X_SELECT: return line(r, e->a, way, &a) && a.k == 0 && line(r, a.c ? e->b : e->c, way, out);
    case HONE_X_FN: {
        const int arity = hone_fns[e->fn].arity;
        if (arity > 2 || !line(r, e->a, way, &a) || (arity == 2 && !line(r, e->b, way, &b))) return false;
        const hone_ctype type = at(r, e->a)->type;
        if (a.k || b.k) {
            const int64_t sign = e->fn == HONE_FN_add ? 1 : -1;
            *out = (along){a.c + sign * b.c, a.k + sign * b.k};
            return type == HONE_I64 && (e->fn == HONE_FN_add || e->fn == HONE_FN_sub);
        }
        hone_scalar arg[2] = {{.i64 = a.c}, {.i64 = b.c}};
        if (type == HONE_I32) arg[0].i32 = (int32_t)a.c, arg[1].i32 = (int32_t)b.c;
        if (type != HONE_I32 && type != HONE_I64) return false;
        const hone_scalar v = hone_fn_eval((hone_fn)e->fn, type, arg);
        out->c = e->type == HONE_I64 ? v.i64 : v.i32;
        return e->type == HONE_I64 || e->type == HONE_I32;
    }
    case HONE_X_LOAD:
    case HONE_X_CAST:
    case HONE_X_ROUND: return false;
    }
    return false;
}
/* A gate's number: the stage's own, perhaps so many further, or a fixed one. */
static bool gate(const reading *r, int32_t x, bool *fixed, int64_t *number) {
    const hone_x *e = at(r, x);
    const bool has = r->s->n_index == 5;
    *fixed = e->kind == HONE_X_CONST, *number = *fixed ? e->k.i64 : 0;
    if (*fixed || (has && is_index(r, x, own(r, 3)))) return true;
    if (!has || e->kind != HONE_X_FN || e->fn != HONE_FN_add || !is_index(r, e->a, own(r, 3)) ||
        at(r, e->b)->kind != HONE_X_CONST)
        return false;
    *number = at(r, e->b)->k.i64;
    return true;
}
static walk walk_of(const reading *r, int tensor, int way, int row, int each) {
    const int64_t *stride = r->c->stride[tensor];
    return (walk){tensor, 0, stride[way], row < 0 ? 0 : stride[row], stride[each]};
}
static bool same_walk(const walk *a, const walk *b) {
    return a->tensor == b->tensor && a->c == b->c && a->way == b->way && a->row == b->row &&
           a->each == b->each;
}
/* A state before the first step: 0, or an input by direction, row and place. */
static bool initial(reading *r, int32_t x, int32_t last, walk *out) {
    const hone_x *e = at(r, x);
    const int32_t *sub = r->c->instance->list + e->b;
    *out = (walk){.tensor = -1};
    if (is_zero(r, x)) return true;
    if (e->kind != HONE_X_LOAD || e->flat || r->c->instance->tensor[e->a].rank != 3 ||
        r->c->instance->tensor[e->a].role != HONE_ROLE_IN)
        return false;
    *out = walk_of(r, e->a, 0, 1, 2);
    return is_index(r, sub[0], own(r, 1)) && is_index(r, sub[1], own(r, 2)) && is_index(r, sub[2], last);
}
static bool write_load(reading *r, const hone_x *e) {
    const hone_instance *in = r->c->instance;
    const hone_tensor *t = in->tensor + e->a;
    const int32_t *sub = in->list + e->b;
    const int32_t last = own(r, r->s->n_reduce ? r->s->n_index : r->s->n_index - 1);
    char word[4] = "?";
    bool fixed = false;
    int64_t number = 0;
    if (e->flat || t->rank < 3) return false;
    /* contract_choose.c looks at it: weights may be halves */
    if (t->role == HONE_ROLE_IN && r->s->n_reduce) return put(r, "r");
    if (t->dtype != HONE_DTYPE_F32) return false;
    if (t->role == HONE_ROLE_IN) {
        if (t->rank != 3 || r->n_bias == BIASES || !is_index(r, sub[0], own(r, 1)) ||
            !gate(r, sub[1], &fixed, &number) || !is_index(r, sub[2], last))
            return false;
        walk *b = r->bias + r->n_bias++;
        *b = walk_of(r, e->a, 0, -1, 2), b->c = number * r->c->stride[e->a][1];
        return b->each == 1 && r->c->stride[e->a][1] == r->c->param[t->dim[2]].i && put(r, "b");
    }
    if (t->role != HONE_ROLE_TEMP || t->rank > 5 || !is_index(r, sub[1], own(r, 1)) ||
        !is_index(r, sub[2], own(r, 2)) || !is_index(r, sub[t->rank - 1], last) ||
        (t->rank == 5 && !gate(r, sub[3], &fixed, &number)) || number < 0 || number > 9 || (!fixed && number))
        return false;
    int k = 0;
    while (k < r->n && in->stage[r->from + k].tensor != e->a) k++;
    word[0] = k < r->n ? (char)('A' + k) : 'x';
    if (fixed) word[1] = (char)('0' + number);
    if (k == r->n) {
        if (!is_zero(r, e->c) || (r->x >= 0 && r->x != e->a)) return false;
        for (int64_t way = 0; way < r->ways; way++) {
            along now;
            if (!line(r, sub[0], way, &now) ||
                (r->x >= 0 && (now.c != r->when[way].c || now.k != r->when[way].k)))
                return false;
            r->when[way] = now;
        }
        r->x = e->a;
        return put(r, word);
    }
    along when;
    if (!line(r, sub[0], 0, &when) || when.k != 1 || (when.c != 0 && when.c != -1)) return false;
    if (when.c == 0) return put(r, word);
    walk before;
    if (fixed || e->c < 0 || !initial(r, e->c, last, &before) ||
        (r->known[k] && !same_walk(&before, r->before + k)))
        return false;
    r->before[k] = before, r->known[k] = true, word[1] = '\'';
    return put(r, word);
}
static bool write_x(reading *r, int32_t x) {
    const hone_x *e = at(r, x);
    if (e->type != HONE_F32) return false;
    if (e->kind == HONE_X_LOAD) return write_load(r, e);
    if (e->kind == HONE_X_CONST && e->k.f32 == 1) return put(r, "1");
    if (e->kind != HONE_X_FN || hone_fns[e->fn].arity > 2 || !put(r, hone_fns[e->fn].name) || !put(r, "(") ||
        !write_x(r, e->a))
        return false;
    return (hone_fns[e->fn].arity < 2 || (put(r, ",") && write_x(r, e->b))) && put(r, ")");
}
/* Stages in the domain (t, direction, row, [gate,] place), of the same extents, making temporaries of that
   shape. */
static bool shaped(const reading *r) {
    const hone_instance *in = r->c->instance;
    const hone_stage *first = in->stage + r->from;
    for (int k = 0; k < r->n; k++) {
        const hone_stage *s = first + k;
        if (!s->identity || s->how || s->pick >= 0 || s->tensor >= 63 ||
            (s->n_index != 4 && s->n_index != 5) || s->n_reduce > 1 ||
            s->reduce != (s->n_reduce ? HONE_REDUCE_SUM : HONE_REDUCE_NONE) ||
            in->list[s->index0] != s->over_index)
            return false;
        if (in->tensor[s->tensor].role != HONE_ROLE_TEMP || in->tensor[s->tensor].dtype != HONE_DTYPE_F32)
            return false;
        for (int d = 0; d < 4; d++) { /* t, direction, row; place */
            const int place = d < 3 ? d : s->n_index - 1, there = d < 3 ? d : first->n_index - 1;
            if (r->c->param[in->index[in->list[s->index0 + place]].extent].i !=
                r->c->param[in->index[in->list[first->index0 + there]].extent].i)
                return false;
        }
    }
    return true;
}
static int form_of(reading *r) {
    for (int k = 0; k < r->n; k++) {
        r->s = r->c->instance->stage + r->from + k, r->length = 0;
        if (!write_x(r, r->s->value)) return -1;
    }
    for (int f = 0; f < (int)(sizeof forms / sizeof *forms); f++) {
        bool same = forms[f].n == r->n;
        for (int k = 0; same && k < r->n; k++) same = !strcmp(r->text[k], forms[f].stage[k]);
        if (same) return f;
    }
    return -1;
}
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
            return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
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
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + from;
    const int to = *end;
    reading r = {.c = c, .from = from, .n = to - from, .x = -1};
    if (r.n > STAGES || s->n_index < 4 || !shaped(&r)) return HONE_OK;
    cell *d = HONE_NEW(m->arena, cell);
    if (!d) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    int64_t *const extent[] = {&d->steps, &d->ways, &d->rows};
    for (int k = 0; k < 3; k++) *extent[k] = c->param[in->index[in->list[s->index0 + k]].extent].i;
    d->width = c->param[in->index[in->list[s->index0 + s->n_index - 1]].extent].i, r.ways = d->ways;
    if (d->steps < 1 || d->ways < 1 || d->rows < 1 || d->width < 1 || d->ways > 64) return HONE_OK;
    if (!(r.when = HONE_NEW_N(m->arena, along, d->ways)))
        return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    const int f = form_of(&r), last = r.n - 1;
    if (f < 0 || r.x < 0) return HONE_OK;
    /* what the group makes only for itself is never stored */
    uint64_t own = 0, uses = 0, others = 0;
    for (int k = 0; k < in->n_stage; k++) {
        const bool here = k >= from && k < to;
        *(here ? &uses : &others) |= in->stage[k].uses;
        if (here && k - from != last) own |= (uint64_t)1 << in->stage[k].tensor;
    }
    d->gates = forms[f].gates, d->c = -1;
    if (forms[f].c >= 0 && others >> s[forms[f].c].tensor & 1)
        d->c = s[forms[f].c].tensor, own &= ~((uint64_t)1 << d->c);
    if (own & others || r.x >= 63) return HONE_OK;
    const int n_ref = m->n_ref, n_packed = m->packed.n;
    bool fit;
    HONE_TRY(products(m, c, from, r.n, d, &fit));
    if (!fit) {
        m->n_ref = n_ref, m->packed.n = n_packed;
        return HONE_OK;
    }
    d->step = forms[f].step, d->kernel = hone_cell_best(),
    d->tanh = hone_activate_best()->run[HONE_ACTIVATE_tanh];
    d->when = r.when, d->x = r.x, d->h = s[last].tensor, d->h0 = r.before[last];
    d->c0 = forms[f].c < 0 ? (walk){.tensor = -1} : r.before[forms[f].c];
    for (int k = 0; k < BIASES; k++) d->bias[k] = k < r.n_bias ? r.bias[k] : (walk){.tensor = -1};
    /* rows of a batch among the threads that directions leave idle; columns among those that rows leave */
    const int64_t threads = c->how.threads, most = (d->rows + 3) / 4, want = threads / d->ways,
                  parts = want < 1      ? 1
                          : want < most ? want
                                        : most;
    d->part = (d->rows + parts - 1) / parts;
    const int64_t pieces = d->ways * ((d->rows + d->part - 1) / d->part);
    d->slice = forms[f].splits ? slice_for(d, threads / pieces, threads) : d->width;
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
    if (d->slice < d->width && forms[f].c >= 0)
        d->c = s[forms[f].c].tensor, own &= ~((uint64_t)1 << d->c); /* whoever comes next reads it */
    step.scratch_bytes = lists_bytes(d) + floats_bytes(d) + halves_bytes(d);
    *done = true;
    return hone_cpu_add(m, (hone_step_template){.step = step, .uses = uses & ~own, .buffer = -1});
}
