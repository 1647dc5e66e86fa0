/* SPDX-License-Identifier: Apache-2.0
   attention: scores, softmax and the weighted sum of values as one step. The scores of a block of queries
   live in scratch and nowhere else.

   Recognised in the stages of an instance, whatever op they come from (the last index is t, a key, unless
   said):

        s     = sum(d) q * k                         two plain loads
        w     = anything of s at its own indices     s * number (+ a row of a mask) is the kernel's, all else
                                                     tile code's
        top   = max(t) w          m = max(top, number)
        x     = exp(w - m)
        sum   = sum(t) x          z = max(sum, number)
        o     = sum(t) x * v      y = o / z          in the domain of queries and e

   Indices that keys or values know are batches; those after them are rows: queries, and heads of queries
   that share a head of keys. A tile is a block of rows of one batch. Keys and values in panels are made once
   a batch: by the tile that has all rows of it, or by a "pack" step where there are several. What is not of
   this form stays with contractions and tile code. */
#include <math.h>
#include <string.h>

#include "base/round.h"
#include "loops/match_attention.h"
#include "device/cpu/cpu.h"
#include "kernels/gemm.h"
#include "kernels/softmax.h"

enum { STAGES = HONE_ATTENTION_STAGES, TEMPS = HONE_ATTENTION_TEMPS };
typedef struct {
    int tensor;
    int64_t c, batch[HONE_MAX_SLOTS], *row; /* offsets in elements: by a batch's indices, by the row */
} walk;
typedef struct {
    const hone_gemm_f32 *kernel;
    const hone_softmax *softmax;
    const hone_tilecode *code; /* of w; NULL: alpha and mask say it */
    walk q, k, v, y, mask;     /* k, v: no rows; mask.tensor -1: none */
    int w, n_ref, shared, n_batch;
    /* rows, keys; of a key, of a value */
    int64_t extent[HONE_MAX_SLOTS], batches, m, n, depth, width;
    int64_t period;        /* of the mask: so many rows later its rows come again; else m */
    int64_t k_t, k_d, v_t; /* steps of keys and values */
    int64_t block, blocks; /* rows of a tile */
    bool few_queries,
        direct_values;         /* keys as rows of A: no panels of them; values as they lie: nor of them */
    bool transposed;           /* scores lie transposed, as the kernel wants rows of A: see weights */
    float alpha, least, floor; /* of m, of z */
    size_t score_bytes, list_bytes, panel_bytes, packed_a_bytes;
} attending;

/* ---- what it is ---------------------------------------------------------------------------------------- */
/* Batches and rows of an affine load; `rows`: it has any. */
static bool walked(hone_template_builder *m, const hone_slots_of *w, const attending *d, const hone_affine *f,
                   int tensor, bool rows, walk *out) {
    int row[HONE_MAX_SLOTS], n = 0;
    out->tensor = tensor, out->c = f->c;
    for (int k = 0; k < d->n_batch; k++) out->batch[k] = f->k[k];
    for (int k = d->n_batch; k < w->n_domain - 1; k++) row[n++] = k;
    for (int k = 0; !rows && k < n; k++)
        if (f->k[row[k]]) return false;
    return !rows || (out->row = hone_affine_table(m->arena, w, row, n, f)) != NULL;
}
/* w as  s * alpha (+ mask); else tile code. */
static hone_status weigh(hone_template_builder *m, const hone_cpu_call *c, int k, const hone_slots_of *w,
                         const int *temp, attending *d, bool *fits) {
    const hone_stage *s = c->instance->stage + k + 1;
    int32_t x = s->value, given = -1;
    const hone_x *e = hone_match_fn(&c->sized, x, HONE_FN_add);
    hone_affine f;
    if (e) x = e->a, given = e->b;
    d->mask.tensor = -1, d->alpha = 1, d->period = d->m;
    if ((e = hone_match_fn(&c->sized, x, HONE_FN_mul))) {
        bool first = hone_match_f32(&c->sized, e->a, &d->alpha);
        if (first || hone_match_f32(&c->sized, e->b, &d->alpha)) x = first ? e->b : e->a;
    }
    bool simple = hone_match_reads(&c->sized, s, x, temp[0], 0);
    if (simple && given >= 0) {
        simple = hone_match_inside(&c->sized, w, given, temp, &f) && (f.k[w->n_domain - 1] == 1 || d->n == 1);
        if (simple && !walked(m, w, d, &f, hone_match_at(&c->sized, given)->a, true, &d->mask))
            return hone_steps_no_memory();
    }
    if (simple) {
        const int64_t queries = w->extent[w->n_domain - 2];
        bool again = d->mask.tensor >= 0 && w->n_domain - 2 >= d->n_batch;
        for (int64_t r = queries; again && r < d->m; r++) again = d->mask.row[r] == d->mask.row[r - queries];
        if (again) d->period = queries;
        return HONE_OK;
    }
    d->mask.tensor = -1, d->alpha = 1;
    /* Scores are rows in scratch, whatever order a temporary of their shape would have in memory: where there
       are as many keys as elements of a value, that of the result. */
    hone_cpu_call rows = *c;
    rows.sized.stride =
        hone_arena_copy(m->arena, c->stride, sizeof *c->stride * (size_t)c->instance->n_tensor);
    if (!rows.sized.stride) return hone_steps_no_memory();
    for (int t = 0; t < 2; t++) {
        const hone_tensor *score = c->instance->tensor + temp[t];
        int64_t n = 1;
        for (int q = score->rank - 1; q >= 0; q--)
            rows.sized.stride[temp[t]][q] = n, n *= c->param[score->dim[q]].i;
    }
    hone_status made = hone_cpu_tilecode(m, &rows, k + 1, temp[0], &d->code);
    if (made == HONE_NOT_SUPPORTED) {
        *fits = false;
        return HONE_OK;
    }
    return made;
}

/* ---- panels -------------------------------------------------------------------------------------------- */
/* Columns of a panel: all that the kernel can, or what divides most heads (NEON, where both are as fast). */
static int64_t panel_columns(const hone_gemm_f32 *g) {
    return (int64_t)(g->pack_a ? 2 : g->widths) * g->vector;
}
/* Rows that are packed together: as many as a panel has columns, so that a panel of keys is a block of
   packed rows too. */
static int m_block_of(const hone_gemm_f32 *g) { return (int)panel_columns(g); }
static void pack_rows(const hone_gemm_f32 *g, int64_t m, int64_t k, const float *const *a, float *to) {
    g->pack_a(&(hone_gemm_args){.m = (int)m, .m_block = m_block_of(g), .taps = 1, .k = k, .a = a}, to);
}
/* Panels of a matrix whose element (p, j) is at p * by_p + j * by_j; the last one has as many whole vectors
   as it needs. */
static void panels(const hone_gemm_f32 *g, const float *from, int64_t k, int64_t n, int64_t by_p,
                   int64_t by_j, float *to) {
    enum { EIGHT = 8 }; /* floats, copied without a call */
    const int64_t most = panel_columns(g), even = by_j == 1 && most % EIGHT == 0 ? n / most * most : 0;
    /* whole panels: a row goes to all of them, so that it is read in one go, for it may come from far away */
    for (int64_t p = 0; p < k && even; p++)
        for (int64_t j = 0; j < even; j += EIGHT)
            memcpy(to + j / most * most * k + p * most + j % most, from + p * by_p + j, EIGHT * sizeof *from);
    for (int64_t j0 = even; j0 < n; j0 += most) {
        const int64_t have = n - j0 < most ? n - j0 : most, wide = hone_round_up(have, g->vector);
        float *panel = to + j0 * k;
        const float *b = from + j0 * by_j;
        for (int64_t p = 0; p < k && wide > have; p++)
            for (int64_t j = have; j < wide; j++) panel[p * wide + j] = 0;
        if (by_j != 1 && by_p == 1 && g->pack_a) { /* columns are rows to pack */
            const float *column[HONE_GEMM_ROWS];
            for (int64_t j = 0; j < have; j++) column[j] = b + j * by_j;
            pack_rows(g, have, k, column, panel);
        } else if (by_j != 1 && by_p == 1) hone_transpose_floats(have, k, b, by_j, panel, wide);
        else
            for (int64_t p = 0; p < k; p++)
                for (int64_t j = 0; j < have; j++) panel[p * wide + j] = b[p * by_p + j * by_j];
    }
}
static int64_t key_floats(const attending *d) {
    return d->few_queries ? 0 : hone_round_up(d->n, d->kernel->vector) * d->depth;
}
static int64_t value_floats(const attending *d) {
    return d->direct_values ? 0 : hone_round_up(d->width, d->kernel->vector) * d->n;
}
static int64_t stand(const attending *d, const walk *w, int64_t batch) {
    int64_t to = w->c;
    for (int k = d->n_batch - 1; k >= 0; k--) to += batch % d->extent[k] * w->batch[k], batch /= d->extent[k];
    return to;
}
static void make_panels(const attending *d, const float *k, const float *v, float *to) {
    if (!d->few_queries) panels(d->kernel, k, d->depth, d->n, d->k_d, d->k_t, to);
    if (!d->direct_values) panels(d->kernel, v, d->n, d->width, d->v_t, 1, to + key_floats(d));
}
static hone_status pack_tile(const hone_step *s, void *const *base, int64_t number, void *scratch) {
    const attending *d = s->data;
    (void)scratch;
    make_panels(
        d, (const float *)(const void *)hone_ref_at(s->ref[d->k.tensor], base) + stand(d, &d->k, number),
        (const float *)(const void *)hone_ref_at(s->ref[d->v.tensor], base) + stand(d, &d->v, number),
        (float *)(void *)hone_ref_at(s->ref[d->shared], base) + number * (key_floats(d) + value_floats(d)));
    return HONE_OK;
}

/* ---- the tile ------------------------------------------------------------------------------------------ */
/* c[i][j] = sum over p < k of a[i][p] b[p, j]: columns in panels of `deep` p, or as they lie (b_step > 0).
   packed_a: room for all rows, which are to be packed, or (a NULL) have been; NULL: they are not. */
static void product(const hone_gemm_f32 *g, bool small_m, int64_t m, int64_t n, int64_t k, int64_t deep,
                    const float *const *a, const float *b, int64_t b_step, float *const *c, float *packed_a) {
    const int64_t most = panel_columns(g);
    hone_gemm_args part = {
        .taps = 1, .k = k, .small_m = small_m, .packed_a = packed_a, .m_block = packed_a ? m_block_of(g) : 0};
    if (packed_a && a) pack_rows(g, m, k, a, packed_a);
    for (int64_t j = 0; j < n; j += most) {
        const int64_t have = n - j < most ? n - j : most, wide = hone_round_up(have, g->vector);
        const int v = (int)(wide / g->vector), m_block = packed_a ? (int)m : g->mr[v - 1];
        part.n = (int)have, part.b_step = b_step ? b_step : wide, part.b = b_step ? b + j : b + j * deep,
        part.c_from = j;
        for (int64_t i = 0; i < m; i += m_block) {
            part.m = m - i < m_block ? (int)(m - i) : m_block, part.a = a ? a + i : NULL, part.c = c + i;
            g->run[v - 1](&part);
        }
    }
}
/* Few queries: they are the columns, a panel of one vector, and keys are the unpacked rows. */
static void score_few_queries(const attending *d, int64_t m, const float *const *q, const float *k,
                              float *room, float *scores) {
    const int64_t vector = d->kernel->vector;
    const int mr = d->kernel->mr[0];
    float *columns = room, *sums = room + d->depth * vector, *c[HONE_GEMM_ROWS];
    const float *a[HONE_GEMM_ROWS];
    for (int64_t p = 0; p < d->depth; p++)
        for (int64_t j = 0; j < vector; j++) columns[p * vector + j] = j < m ? q[j][p] : 0;
    for (int i = 0; i < mr; i++) c[i] = sums + i * vector;
    hone_gemm_args part = {.n = (int)m,
                           .taps = 1,
                           .k = d->depth,
                           .a = a,
                           .b_step = vector,
                           .b = columns,
                           .c = c,
                           .small_m = true};
    for (int64_t t = 0; t < d->n; t += mr) {
        part.m = d->n - t < mr ? (int)(d->n - t) : mr;
        for (int i = 0; i < part.m; i++) a[i] = k + (t + i) * d->k_t;
        d->kernel->run[0](&part);
        for (int64_t j = 0; j < m; j++)
            for (int i = 0; i < part.m; i++) scores[j * d->n + t + i] = sums[i * vector + j];
    }
}
/* The largest magnitude; NaN if there is one. */
static float largest(const float *x, int64_t n) {
    typedef uint32_t four __attribute__((vector_size(16)));
    typedef uint32_t anywhere __attribute__((vector_size(16), aligned(4), may_alias));
    /* without the sign */
    const four bits = {0x7fffffffu, 0x7fffffffu, 0x7fffffffu, 0x7fffffffu};
    four top[4] = {{0}, {0}, {0}, {0}}; /* side by side: each waits for itself */
    int64_t i = 0;
#define LARGER(k)                                                                 \
    {                                                                             \
        const four v = *(const anywhere *)(const void *)(x + i + 4 * (k)) & bits; \
        const four more = (four)(v > top[k]);                                     \
        top[k] = (v & more) | (top[k] & ~more);                                   \
    }
    for (; i + 16 <= n; i += 16) { LARGER(0) LARGER(1) LARGER(2) LARGER(3) }
    for (; i + 4 <= n; i += 4) LARGER(0)
#undef LARGER
    uint32_t most = 0;
    for (int q = 0; q < 16; q++) most = top[q / 4][q % 4] > most ? top[q / 4][q % 4] : most;
    for (; i < n; i++) {
        uint32_t v;
        memcpy(&v, x + i, sizeof v), v &= 0x7fffffffu;
        most = v > most ? v : most;
    }
    float y;
    memcpy(&y, &most, sizeof y);
    return y;
}
/* Of a row of a mask, up to where it still lets something be seen. What it takes off 128 more from than
   scores can differ by has e^(w - max) = 0: no score is wanted there, and no value. A mask of the past is
   half such, whatever number says so. */
static int64_t seen(const float *mask, int64_t n, float scores) {
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
    typedef int32_t said __attribute__((vector_size(16)));
    typedef uint64_t two __attribute__((vector_size(16)));
    const float limit = mask[0] - 2 * scores - 128;
    const four all = {limit, limit, limit, limit};
    for (; n >= 16; n -= 16) {
        const four *v = (const four *)(const void *)(mask + n - 16);
        const said hidden = (said)(v[0] < all) & (said)(v[1] < all) & (said)(v[2] < all) & (said)(v[3] < all);
        if ((((two)hidden)[0] & ((two)hidden)[1]) != UINT64_MAX) break;
    }
    while (n > 1 && mask[n - 1] < limit) n--;
    return n;
}
/* The same of several rows of a mask at once, in fours of keys: up to where one of them still sees
   something. */
static inline __attribute__((always_inline)) int64_t seen_by_rows(const float *const *mask, int m, int64_t n,
                                                                  float scores) {
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
    typedef int32_t said __attribute__((vector_size(16)));
    typedef uint64_t two __attribute__((vector_size(16)));
    four limit[HONE_GEMM_ROWS];
    const int64_t whole = n / 4 * 4;
    bool rest = false;
    for (int r = 0; r < m; r++) {
        const float least = mask[r][0] - 2 * scores - 128;
        limit[r] = (four){least, least, least, least};
        for (int64_t t = whole; t < n; t++) rest |= !(mask[r][t] < least);
    }
    if (rest) return n;
    for (n = whole; n > 4; n -= 4) {
        said hidden = {-1, -1, -1, -1};
        for (int r = 0; r < m; r++)
            hidden &= (said)(*(const four *)(const void *)(mask[r] + n - 4) < limit[r]);
        if ((((two)hidden)[0] & ((two)hidden)[1]) != UINT64_MAX) break;
    }
    return n;
}
/* nearly always eight: pointers in registers */
static int64_t seen_by(const float *const *mask, int m, int64_t n, float scores) {
    return m == 8 ? seen_by_rows(mask, 8, n, scores) : seen_by_rows(mask, m, n, scores);
}
/* How many of the first n keys, in fours, these rows of a mask let be seen as they are: all that they add
   there is 0. */
static inline __attribute__((always_inline)) int64_t plain_in_rows(const float *const *mask, int m,
                                                                   int64_t n) {
    typedef float four __attribute__((vector_size(16), aligned(4), may_alias));
    typedef int32_t said __attribute__((vector_size(16)));
    typedef uint64_t two __attribute__((vector_size(16)));
    int64_t t = 0;
    for (; t + 4 <= n; t += 4) {
        said none = {-1, -1, -1, -1};
        for (int r = 0; r < m; r++) none &= (said)(*(const four *)(const void *)(mask[r] + t) == 0);
        if ((((two)none)[0] & ((two)none)[1]) != UINT64_MAX) break;
    }
    return t;
}
static int64_t plainly(const float *const *mask, int m, int64_t n) {
    return m == 8 ? plain_in_rows(mask, 8, n) : plain_in_rows(mask, m, n);
}
/* Where rows go, and how far the scores of a query can be from 0 for each unit of it: INFINITY where nobody
   asks. */
typedef struct {
    float *y;
    const int64_t *y_row;
    const float *values;
    float reach;
} going;
/* Weights as transposed rows, and their sums. Queries are columns, a panel of them at a time, and keys are
   rows, which their panels are when transposed: so scores come out as the second product wants its rows,
   softmax has a query a lane, and nothing is transposed in between but what tile code made (code: `rows` are
   those). The scale is the queries': there are fewer of them than of scores. mask: of row 0, or NULL. room: a
   panel of queries and one of the mask; c: as many as keys. Where a mask may hide keys (to->reach), the
   second product is done here, with as many of them as one of a panel's queries sees. */
static void weights(const attending *d, int64_t m, const float *const *rows, const float *keys,
                    const float *mask, const int64_t *mask_row, float *room, float **c, float *x, float *z,
                    const going *to) {
    const hone_gemm_f32 *g = d->kernel;
    const int m_block = m_block_of(g);
    const bool parts = mask_row && to->reach < INFINITY;
    const float *hide[HONE_GEMM_ROWS];
    float *hidden = room + m_block * d->depth, *out[HONE_GEMM_ROWS];
    const int64_t period = d->period % m_block || m % d->period ? m : d->period, heads = m / period;
    float scores_before = -1;
    for (int64_t block = 0, before = 0, n_before = 0, plain = 0; block < hone_ceil_div(m, m_block); block++) {
        /* heads that have the same mask one after another */
        const int64_t i = block % heads * period + block / heads * m_block;
        const int some = (int)(m - i < m_block ? m - i : m_block), wide = HONE_GEMM_PACKED_M(some);
        bool same = mask && wide == before; /* most masks are the same for all queries, */
        /* and heads' are */
        for (int r = 0; mask && r < some && !(same && block % heads); r++) {
            const float *hides = mask + mask_row[i + r];
            same = same && hide[r] == hides, hide[r] = hides;
        }
        int64_t n = d->n;
        if (d->code) pack_rows(g, some, n, rows + i, x + i * n);
        else {
            pack_rows(g, some, d->depth, rows + i, room);
            const float scores = parts ? to->reach * largest(room, wide * d->depth) : 0;
            if (parts && same && scores <= scores_before) n = n_before;
            else if (parts) scores_before = 2 * scores, n = seen_by(hide, some, n, scores_before);
            if (d->alpha != 1) d->softmax->times(room, wide * d->depth, d->alpha);
            for (int64_t t = 0; t < d->n && wide != before; t++) c[t] = x + t * wide;
            /* panels of keys are taken as they were made */
            const int64_t whole = hone_round_up(n, m_block) < d->n ? hone_round_up(n, m_block) : d->n;
            hone_gemm_args part = {.m = (int)whole,
                                   .n = wide,
                                   .taps = 1,
                                   .k = d->depth,
                                   .packed_a = keys,
                                   .m_block = m_block,
                                   .b = room,
                                   .b_step = wide};
            part.c = c, part.c_from = i * d->n;
            g->run[wide / g->vector - 1](&part);
        }
        if (mask && !(same && n == n_before)) {
            const float *from[HONE_GEMM_ROWS];
            plain = plainly(hide, some, n);
            for (int r = 0; r < some; r++) from[r] = hide[r] + plain;
            if (plain < n) pack_rows(g, some, n - plain, from, hidden);
        }
        d->softmax->columns(x + i * d->n, mask && plain < n ? hidden : NULL, plain, n, wide, d->least, z + i);
        before = wide, n_before = n;
        for (int r = 0; parts && r < some; r++) out[r] = to->y + to->y_row[i + r];
        if (parts) product(g, false, some, d->width, n, d->n, NULL, to->values, 0, out, x + i * d->n);
    }
}
static hone_status tile(const hone_step *step, void *const *base, int64_t number, void *scratch) {
    const attending *d = step->data;
    void *to[HONE_MAX_REFS];
    for (int t = 0; t < d->n_ref; t++) to[t] = hone_ref_at(step->ref[t], base);
    const int64_t batch = number / d->blocks, m0 = number % d->blocks * d->block,
                  m = d->m - m0 < d->block ? d->m - m0 : d->block;
    char *room = scratch;
    float *scores = (float *)(void *)room, *own = (float *)(void *)(room + d->score_bytes + d->list_bytes);
    const float **a = (const float **)(void *)(room + d->score_bytes);
    float **c = (float **)(void *)(a + d->block),
          *z = (float *)(void *)(c + (d->block > d->n ? d->block : d->n));
    float *packed_a =
        d->packed_a_bytes ? (float *)(void *)(room + d->score_bytes + d->list_bytes + d->panel_bytes) : NULL;
    void *rest = room + d->score_bytes + d->list_bytes + d->panel_bytes + d->packed_a_bytes;
    const float *q = (const float *)to[d->q.tensor] + stand(d, &d->q, batch),
                *k = (const float *)to[d->k.tensor] + stand(d, &d->k, batch),
                *v = (const float *)to[d->v.tensor] + stand(d, &d->v, batch);
    const float *packed =
        d->shared ? (const float *)to[d->shared] + batch * (key_floats(d) + value_floats(d)) : own;
    if (!d->shared) make_panels(d, k, v, own);
    for (int64_t i = 0; i < m; i++) a[i] = q + d->q.row[m0 + i];
    for (int64_t i = 0; i < m && !(d->transposed && !d->code); i++) c[i] = scores + i * d->n;
    /* where rows are many, those that see only a part of the keys are worth telling apart; not where a value
       that is no number would meet a 0 */
    float reach = INFINITY; /* of scores, by the query's */
    if (d->mask.tensor >= 0 && d->n >= 32 && !d->code && !d->few_queries && !d->direct_values &&
        largest(packed + key_floats(d), value_floats(d)) < INFINITY)
        reach = largest(packed, key_floats(d)) * fabsf(d->alpha) * (float)d->depth;
    const bool parts = reach < INFINITY;
    if (d->few_queries) score_few_queries(d, m, a, k, own + value_floats(d), scores);
    else if (d->transposed ? d->code != NULL : !parts)
        product(d->kernel, d->m <= HONE_GEMM_SMALL_M, m, d->n, d->depth, d->depth, a, packed, 0, c, packed_a);
    if (d->code) { /* w takes the scores' place: its element 0 would lie so far before them */
        const int64_t first = (batch * d->m + m0) * d->n;
        to[d->w] = (void *)((uintptr_t)scores - sizeof(float) * (uintptr_t)first);
        HONE_TRY(hone_tilecode_run(d->code, to, first, m * d->n, 0, scores, rest));
    }
    const float *mask =
        d->mask.tensor < 0 ? NULL : (const float *)to[d->mask.tensor] + stand(d, &d->mask, batch);
    float *y = (float *)to[d->y.tensor] + stand(d, &d->y, batch);
    for (int64_t i = 0; i < m && d->transposed && d->code; i++) a[i] = scores + i * d->n;
    float *x = d->transposed && d->code ? packed_a : scores;
    if (d->transposed)
        weights(d, m, a, packed, mask, mask ? d->mask.row + m0 : NULL, packed_a, c, x, z,
                &(going){y, d->y.row + m0, packed + key_floats(d), reach});
    for (int64_t i = 0; i < m && d->transposed; i++) c[i] = y + d->y.row[m0 + i];
    if (d->transposed && !parts)
        product(d->kernel, false, m, d->width, d->n, d->n, NULL, packed + key_floats(d), 0, c, x);
    const int64_t vectors = hone_round_up(d->width, d->kernel->vector) / d->kernel->vector;
    const int widest = (int)(panel_columns(d->kernel) / d->kernel->vector),
              mr = d->kernel->mr[vectors < widest ? vectors - 1 : widest - 1];
    for (int64_t i = 0; i < m && !d->transposed; i += mr) { /* x is in L1 when it meets the values */
        const int64_t some = m - i < mr ? m - i : mr;
        /* keys that a row sees, and that one of these does */
        int64_t own_n[HONE_GEMM_ROWS], n = parts ? 1 : d->n;
        for (int64_t r = 0; r < some; r++) {
            own_n[r] = parts ? seen(mask + d->mask.row[m0 + i + r], d->n, reach * largest(a[i + r], d->depth))
                             : d->n;
            n = own_n[r] > n ? own_n[r] : n;
        }
        const int64_t whole =
            hone_round_up(n, panel_columns(d->kernel)); /* panels are taken as they were made */
        if (parts)
            product(d->kernel, d->m <= HONE_GEMM_SMALL_M, some, whole < d->n ? whole : d->n, d->depth,
                    d->depth, a + i, packed, 0, c + i, NULL);
        for (int64_t r = i; r < i + some; r++) {
            const int64_t own_row = own_n[r - i];
            z[r] = d->softmax->row(scores + r * d->n, mask ? mask + d->mask.row[m0 + r] : NULL, own_row,
                                   d->alpha, d->least);
            if (n > own_row) memset(scores + r * d->n + own_row, 0, sizeof *scores * (size_t)(n - own_row));
            a[r] = scores + r * d->n, c[r] = y + d->y.row[m0 + r];
        }
        product(d->kernel, d->m <= HONE_GEMM_SMALL_M, some, d->width, n, d->n, a + i,
                d->direct_values ? v : packed + key_floats(d), d->direct_values ? d->v_t : 0, c + i, NULL);
    }
    d->softmax->over(c, m, d->width, z, d->floor);
    return HONE_OK;
}

/* ---- the choice ---------------------------------------------------------------------------------------- */
static bool loads(hone_template_builder *m, const hone_cpu_call *c, int k, const int *temp, attending *d,
                  hone_slots_of *w) {
    const hone_instance *in = c->instance;
    const hone_stage *s = in->stage + k;
    hone_slots_of u;
    hone_match_slots(&c->sized, s, w), hone_match_slots(&c->sized, s + 7, &u);
    const int last = w->n_domain - 1, deep = w->n_domain;
    const hone_x *e = hone_match_fn(&c->sized, s->value, HONE_FN_mul),
                 *f = hone_match_fn(&c->sized, s[7].value, HONE_FN_mul);
    hone_affine q, key, v, y = {0};
    if (!e || !f || !hone_match_inside(&c->sized, w, e->a, temp, &q) ||
        !hone_match_inside(&c->sized, w, e->b, temp, &key))
        return false;
    int tq = hone_match_at(&c->sized, e->a)->a, tk = hone_match_at(&c->sized, e->b)->a;
    if (q.k[last]) { /* the other way round */
        hone_affine t = q;
        q = key, key = t, tq = hone_match_at(&c->sized, e->b)->a, tk = hone_match_at(&c->sized, e->a)->a;
    }
    const bool first = hone_match_reads(&c->sized, s + 7, f->a, temp[4], 1);
    const int32_t value = first ? f->b : f->a;
    if ((!first && !hone_match_reads(&c->sized, s + 7, f->b, temp[4], 1)) ||
        !hone_match_inside(&c->sized, &u, value, temp, &v))
        return false;
    d->m = d->batches = 1, d->n = w->extent[last], d->depth = w->extent[deep], d->width = u.extent[last];
    if (d->n < 1 || d->depth < 1 || d->width < 1 || q.k[last] || (q.k[deep] != 1 && d->depth > 1))
        return false;
    for (int x = 0; x < last; x++) {
        if (w->extent[x] < 1) return false;
        if (key.k[x] || v.k[x]) d->n_batch = x + 1;
        y.k[x] = c->stride[s[8].tensor][x];
    }
    for (int x = 0; x < last; x++) *(x < d->n_batch ? &d->batches : &d->m) *= w->extent[x];
    memcpy(d->extent, w->extent, sizeof d->extent);
    if ((v.k[last] != 1 || c->stride[s[8].tensor][last] != 1) && d->width > 1) return false;
    if (d->n > 1 << 20 || d->depth > 1 << 16 || d->width > 1 << 16 || d->m > 1 << 24 || d->batches > 1 << 24)
        return false;
    d->k_t = key.k[last], d->k_d = key.k[deep], d->v_t = v.k[u.n_domain];
    return walked(m, w, d, &q, tq, true, &d->q) && walked(m, w, d, &key, tk, false, &d->k) &&
           walked(m, &u, d, &v, hone_match_at(&c->sized, value)->a, false, &d->v) &&
           walked(m, w, d, &y, s[8].tensor, true, &d->y);
}
/* Blocks of rows: a quarter of a megabyte of scores, and enough tiles to share. */
static void choose(attending *d, int threads) {
    const hone_gemm_f32 *g = d->kernel;
    const int64_t mr = g->mr[g->packed_widths - 1];
    const double work = (double)d->batches * (double)d->m * (double)d->n * (double)(d->depth + d->width);
    d->few_queries = d->m < 4 && (d->k_d == 1 || d->depth == 1);
    d->direct_values = d->m < 16 && d->width % g->vector == 0;
    d->transposed = g->pack_a && !d->few_queries && !d->direct_values && d->m > HONE_GEMM_SMALL_M;
    d->block = 65536 / d->n < mr ? mr : 65536 / d->n;
    const int64_t want = work < 2e6    ? 1
                         : threads > 4 ? 2 * threads
                                       : 8,
                  share = hone_ceil_div(want, d->batches);
    if (d->block > hone_ceil_div(d->m, share)) d->block = hone_ceil_div(d->m, share);
    d->block = hone_round_up(d->block, mr);
    if (d->block > d->m) d->block = d->m;
    d->blocks = hone_ceil_div(d->m, d->block);
}
/* The same by wisdom, where there is some. */
static hone_status decide(hone_template_builder *m, const hone_cpu_call *c, attending *d) {
    hone_problem p = {.kind = HONE_PROBLEM_ATTENTION,
                      .number = {d->batches, d->m, d->n, d->depth, d->width},
                      .vector = d->kernel->vector,
                      .widths = d->kernel->widths};
    const hone_choice *choice;
    memcpy(p.rows, d->kernel->mr, sizeof p.rows);
    hone_problem_name(&p, d->kernel->name);
    HONE_TRY(hone_cpu_decide(m, c, &p, &choice));
    if (choice && choice->knob[1] == c->how.threads)
        d->block = choice->knob[0], d->blocks = hone_ceil_div(d->m, d->block);
    m->decision->choice = (hone_choice){{d->block, c->how.threads}};
    return HONE_OK;
}
hone_status hone_cpu_attention(hone_template_builder *m, const hone_cpu_call *c, int stage, int *end,
                               bool *done) {
    int temp[TEMPS];
    hone_slots_of w;
    if (c->instance->stage[stage].reduce != HONE_REDUCE_SUM ||
        !hone_match_attention_shaped(&c->sized, stage, temp))
        return HONE_OK;
    attending *d = HONE_NEW(m->arena, attending);
    if (!d) return hone_steps_no_memory();
    d->kernel = hone_gemm_f32_best(), d->softmax = hone_softmax_best(), d->w = temp[1];
    bool fits =
        hone_match_softmax(&c->sized, stage, temp, &d->least, &d->floor) && loads(m, c, stage, temp, d, &w);
    if (fits) HONE_TRY(weigh(m, c, stage, &w, temp, d, &fits));
    if (!fits) return HONE_OK;
    choose(d, c->how.threads);
    HONE_TRY(decide(m, c, d));
    const int64_t floats = key_floats(d) + value_floats(d), vector = d->kernel->vector;
    const double work = (double)d->batches * (double)d->m * (double)d->n * (double)(d->depth + d->width);
    uint64_t uses = 0, ours = 0;
    for (int k = 0; k < STAGES; k++) uses |= c->instance->stage[stage + k].uses;
    for (int k = 0; k < TEMPS; k++) ours |= (uint64_t)1 << temp[k];
    uses &= ~ours;
    if (d->blocks > 1 && floats) {
        const double bytes = (double)d->batches * (double)floats * sizeof(float);
        if (m->n_ref >= HONE_MAX_REFS || bytes > 1e12) {
            m->decision = NULL;
            return HONE_OK;
        }
        d->shared = m->n_ref++;
        hone_step_template pack = {
            .step = {.tactic = "pack", .tiles = d->batches, .tile = pack_tile, .data = d},
            .uses = (uint64_t)1 << d->k.tensor | (uint64_t)1 << d->v.tensor | (uint64_t)1 << d->shared,
            .buffer = d->shared,
            .bytes = d->batches * floats * (int64_t)sizeof(float)};
        pack.step.serial = d->batches == 1 || bytes < 400000;
        HONE_TRY(hone_cpu_add(m, pack));
        uses |= (uint64_t)1 << d->shared;
    }
    d->n_ref = m->n_ref;
    const int64_t rows = hone_round_up(d->block, vector); /* packed ones are whole vectors */
    d->score_bytes = hone_round_up64(sizeof(float) * (size_t)(rows * d->n));
    d->list_bytes =
        hone_round_up64(sizeof(float *) * (size_t)(d->block + (d->block > d->n ? d->block : d->n)) +
                        sizeof(float) * (size_t)rows);
    d->panel_bytes = d->shared ? 0 : sizeof(float) * (size_t)floats;
    if (d->few_queries) d->panel_bytes += sizeof(float) * (size_t)((d->depth + HONE_GEMM_ROWS) * vector);
    d->panel_bytes = hone_round_up64(d->panel_bytes);
    if (d->kernel->pack_a && d->m > HONE_GEMM_SMALL_M) {
        int64_t to_pack = rows * d->depth;
        if (d->transposed && d->code) to_pack = rows * (d->n > d->depth ? d->n : d->depth);
        else if (d->transposed)
            to_pack = m_block_of(d->kernel) * (d->depth + (d->mask.tensor < 0 ? 0 : d->n));
        d->packed_a_bytes = hone_round_up64(sizeof(float) * (size_t)to_pack);
    }
    hone_step_template part = {.step = {.tactic = "attention",
                                        .flush = true,
                                        .tiles = d->batches * d->blocks,
                                        .tile = tile,
                                        .data = d},
                               .uses = uses,
                               .buffer = -1};
    part.step.serial = part.step.tiles == 1 || work < 500000;
    part.step.scratch_bytes = d->score_bytes + d->list_bytes + d->panel_bytes + d->packed_a_bytes +
                              (d->code ? hone_tilecode_scratch(d->code) : 0);
    *done = true, *end = stage + STAGES;
    return hone_cpu_add(m, part);
}
