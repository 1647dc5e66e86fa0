/* SPDX-License-Identifier: Apache-2.0
   weights_solve: levels that lose least at the output of a layer, from the second moments H of what it reads.
   No graph is here.

   A row w of the matrix is replaced by q; with e = w - q the output loses e^T H e. Three steps, each row for
   itself:
   1. With H = L D L^T the loss is the sum of D[i] (e[i] + sum over j > i of L[j][i] e[j])^2. From the last
   element to the first each is rounded after what the later ones lost was added to it: GPTQ (Frantar and
      others, 2022) in the form of QuIP's LDLQ (Chee and others, 2023), which needs one factorization and no
      inverse. A block's scale is fitted when its first element's turn comes, D being what each is worth.
   2. Sweeps: the best value of one element, all others as they are, is q[i] + (H e)[i] / H[i][i], rounded.
   Rounds until nothing moves, or as often as asked.
   3. Between sweeps each block's scale becomes what least squares say of its levels.
   Steps 2 and 3 never add to the loss.

   Where earlier layers are quantized already, x is not what the float model has there: f. Then w · f, not w ·
   x, is wanted, and the row that comes nearest is w + (x^T x)^-1 x^T (f - x) w. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/thread.h"
#include "quant/weights.h"

static hone_status no_memory(void) {
    return hone_fail(HONE_NO_MEMORY, "no memory for the moments of a layer");
}
static void *square(int64_t k, size_t item) {
    size_t n;
    return hone_mul_size((size_t)k, (size_t)k, &n) && hone_mul_size(n, item, &n) ? hone_alloc(n) : NULL;
}
bool hone_weights_moments_make(hone_weights_moments *m, int64_t k, bool drift) {
    *m = (hone_weights_moments){
        .k = k, .h = square(k, sizeof *m->h), .drift = drift ? square(k, sizeof *m->drift) : NULL};
    if (m->h && (m->drift || !drift)) return true;
    hone_weights_moments_free(m);
    return false;
}
void hone_weights_moments_free(hone_weights_moments *m) {
    hone_free(m->h), hone_free(m->drift), hone_free(m->hf), hone_free(m->low), hone_free(m->diag);
    *m = (hone_weights_moments){0};
}

/* ---- sums ---------------------------------------------------------------------------------------------- */
enum { ROWS = 256 }; /* so many are summed in f32 before they are added to doubles */
typedef struct {
    hone_weights_moments *m;
    const float *x, *f;
    int64_t rows;
    atomic_llong next;
} summing;
/* One line of H at a time: sum[j] += x[r][i] * x[r][j]. */
static void sums(void *arg, int member, int members) {
    summing *s = arg;
    const int64_t k = s->m->k;
    (void)member, (void)members;
    for (int64_t i; (i = atomic_fetch_add(&s->next, 1)) < k;) {
        double *h = s->m->h + i * k, *d = s->m->drift ? s->m->drift + i * k : NULL;
        float part[256];
        for (int64_t j0 = 0; j0 < k; j0 += 256) {
            const int64_t many = k - j0 < 256 ? k - j0 : 256;
            if (j0 <= i) { /* the half below the diagonal; the rest mirrors it */
                memset(part, 0, sizeof part);
                for (int64_t r = 0; r < s->rows; r++) {
                    const float a = s->x[r * k + i], *b = s->x + r * k + j0;
                    for (int64_t j = 0; j < many; j++) part[j] += a * b[j];
                }
                for (int64_t j = 0; j < many; j++) h[j0 + j] += (double)part[j];
            }
            if (!d) continue;
            memset(part, 0, sizeof part);
            for (int64_t r = 0; r < s->rows; r++) {
                const float a = s->x[r * k + i], *b = s->f + r * k + j0, *c = s->x + r * k + j0;
                for (int64_t j = 0; j < many; j++) part[j] += a * (b[j] - c[j]);
            }
            for (int64_t j = 0; j < many; j++) d[j0 + j] += (double)part[j];
        }
    }
}
void hone_weights_moments_add(hone_weights_moments *m, const float *x, const float *f, int64_t rows,
                              int threads) {
    for (int64_t r = 0; r < rows; r += ROWS) {
        summing s = {.m = m,
                     .x = x + r * m->k,
                     .f = f ? f + r * m->k : NULL,
                     .rows = rows - r < ROWS ? rows - r : ROWS};
        hone_team_run(threads, sums, &s);
    }
    m->rows += rows;
}

/* ---- factors ------------------------------------------------------------------------------------------- */
typedef struct {
    double *a; /* [k][k] */
    int64_t k, from, to;
    atomic_llong next;
} panel;
/* Rows below a panel of finished columns, less what the panel says of them. */
static void update(void *arg, int member, int members) {
    panel *p = arg;
    (void)member, (void)members;
    for (int64_t i; (i = p->to + atomic_fetch_add(&p->next, 1)) < p->k;) {
        double *row = p->a + i * p->k;
        for (int64_t j = p->to; j <= i; j++) {
            const double *other = p->a + j * p->k;
            double sum = 0;
            for (int64_t c = p->from; c < p->to; c++) sum += row[c] * other[c];
            row[j] -= sum;
        }
    }
}
/* Cholesky in place, below the diagonal. false: not positive enough. */
static bool cholesky(double *a, int64_t k, int threads) {
    enum { PANEL = 48 };
    for (int64_t from = 0; from < k; from += PANEL) {
        const int64_t to = from + PANEL < k ? from + PANEL : k;
        for (int64_t j = from; j < to; j++) {
            double d = a[j * k + j];
            for (int64_t c = from; c < j; c++) d -= a[j * k + c] * a[j * k + c];
            if (!(d > 0) || !isfinite(d)) return false;
            a[j * k + j] = d = sqrt(d);
            for (int64_t i = j + 1; i < k; i++) {
                double v = a[i * k + j];
                for (int64_t c = from; c < j; c++) v -= a[i * k + c] * a[j * k + c];
                a[i * k + j] = v / d;
            }
        }
        panel p = {.a = a, .k = k, .from = from, .to = to};
        hone_team_run(threads, update, &p);
    }
    return true;
}
hone_status hone_weights_factor(hone_weights_moments *m, double damping, int threads) {
    const int64_t k = m->k;
    double *a = square(k, sizeof *a), mean = 0;
    m->hf = square(k, sizeof *m->hf), m->low = square(k, sizeof *m->low),
    m->diag = hone_alloc(sizeof *m->diag * (size_t)k);
    if (!a || !m->hf || !m->low || !m->diag) {
        hone_free(a);
        return no_memory();
    }
    for (int64_t i = 0; i < k; i++) {
        mean += m->h[i * k + i] / (double)k;
        for (int64_t j = 0; j < i; j++) m->h[j * k + i] = m->h[i * k + j];
    }
    /* the layer read nothing, or nonsense: every element is worth the same */
    if (!(mean > 0) || !isfinite(mean)) mean = 1;
    bool good = false;
    for (int turn = 0; turn < 12 && !good; turn++, damping = damping > 0 ? damping * 10 : 1e-6) {
        for (int64_t i = 0; i < k * k; i++) a[i] = isfinite(m->h[i]) ? m->h[i] : 0;
        for (int64_t i = 0; i < k; i++) a[i * k + i] += damping * mean;
        for (int64_t i = 0; i < k * k; i++) m->hf[i] = (float)a[i];
        good = cholesky(a, k, threads);
    }
    if (!good) { /* cannot be with finite numbers: then plain rounding */
        memset(a, 0, sizeof *a * (size_t)(k * k)), memset(m->hf, 0, sizeof *m->hf * (size_t)(k * k));
        for (int64_t i = 0; i < k; i++) a[i * k + i] = 1, m->hf[i * k + i] = 1;
    }
    for (int64_t i = 0; i < k; i++) {
        const double d = a[i * k + i];
        m->diag[i] = (float)(d * d);
        for (int64_t j = 0; j <= i; j++) m->low[i * k + j] = (float)(a[i * k + j] / a[j * k + j]);
    }
    hone_free(a);
    return HONE_OK;
}

/* ---- what drifted -------------------------------------------------------------------------------------- */
typedef struct {
    const hone_weights_moments *m;
    float *w;
    int64_t n;
    atomic_llong next;
    atomic_bool failed;
} following;
static void follows(void *arg, int member, int members) {
    following *f = arg;
    const int64_t k = f->m->k;
    double *v = hone_alloc(sizeof *v * (size_t)k);
    (void)member, (void)members;
    if (!v) f->failed = true;
    for (int64_t n; v && (n = atomic_fetch_add(&f->next, 1)) < f->n;) {
        float *w = f->w + n * k;
        for (int64_t i = 0; i < k; i++) {
            const double *d = f->m->drift + i * k;
            double sum = 0;
            for (int64_t j = 0; j < k; j++) sum += d[j] * (double)w[j];
            v[i] = isfinite(sum) ? sum : 0;
        }
        for (int64_t i = 0; i < k; i++) { /* L, D, L^T in turn */
            double s = v[i];
            for (int64_t j = 0; j < i; j++) s -= (double)f->m->low[i * k + j] * v[j];
            v[i] = s;
        }
        for (int64_t i = 0; i < k; i++) v[i] /= (double)f->m->diag[i];
        for (int64_t i = k - 1; i >= 0; i--)
            for (int64_t j = 0; j < i; j++) v[j] -= (double)f->m->low[i * k + j] * v[i];
        for (int64_t i = 0; i < k; i++)
            if (isfinite(v[i])) w[i] += (float)v[i];
    }
    hone_free(v);
}
hone_status hone_weights_follow(const hone_weights_moments *m, float *w, int64_t n, int threads) {
    following f = {.m = m, .w = w, .n = n};
    hone_team_run(threads, follows, &f);
    return f.failed ? no_memory() : HONE_OK;
}

/* ---- levels -------------------------------------------------------------------------------------------- */
typedef struct {
    hone_weights *q;
    const hone_weights_moments *m;
    const float *w;
    int sweeps;
    atomic_llong next;
    atomic_bool failed;
} solving;
typedef struct {
    hone_weights *q;
    const hone_weights_moments *m;
    int64_t n;
    const float *w;
    float *e, *g, *t; /* what is lost; H e; what an element should be now */
} line;
static void hand_on(const line *l) { /* step 1 */
    hone_weights *q = l->q;
    const int64_t k = q->k;
    memcpy(l->t, l->w, sizeof *l->t * (size_t)k);
    for (int64_t i = k - 1; i >= 0; i--) {
        const int64_t b = i / q->block, at = l->n * q->blocks + b, from = b * q->block;
        if (i == k - 1 || (i + 1) % q->block == 0)
            hone_weights_fit(q->kind, q->symmetric, l->t + from, l->m->diag + from, i + 1 - from,
                             q->scale + at, q->zero + at);
        const int level = hone_weights_level(q->kind, l->t[i], q->scale[at], q->zero[at]);
        q->level[l->n * k + i] = (uint8_t)level;
        const float e = l->e[i] = l->w[i] - hone_weights_code(q->kind, level, q->zero[at]) * q->scale[at],
                    *low = l->m->low + i * k;
        for (int64_t j = 0; j < i; j++) l->t[j] += e * low[j];
    }
}
static void gradient(const line *l) {
    const int64_t k = l->q->k;
    memset(l->g, 0, sizeof *l->g * (size_t)k);
    for (int64_t i = 0; i < k; i++) {
        const float e = l->e[i], *h = l->m->hf + i * k;
        for (int64_t j = 0; j < k; j++) l->g[j] += e * h[j];
    }
}
static int64_t sweep(const line *l) { /* step 2; how many moved */
    hone_weights *q = l->q;
    const int64_t k = q->k;
    int64_t moved = 0;
    for (int64_t i = 0; i < k; i++) {
        const int64_t at = l->n * q->blocks + i / q->block;
        uint8_t *level = q->level + l->n * k + i;
        const float *h = l->m->hf + i * k,
                    was = hone_weights_code(q->kind, *level, q->zero[at]) * q->scale[at];
        const int now = hone_weights_level(q->kind, was + l->g[i] / h[i], q->scale[at], q->zero[at]);
        if (now == *level) continue;
        const float d = was - hone_weights_code(q->kind, now, q->zero[at]) * q->scale[at];
        if (!(2 * d * l->g[i] + d * d * h[i] < 0)) continue; /* equal, or rounding of f32 */
        *level = (uint8_t)now, moved++;
        for (int64_t j = 0; j < k; j++) l->g[j] += d * h[j];
    }
    return moved;
}
static void rescale(const line *l) { /* step 3 */
    hone_weights *q = l->q;
    const int64_t k = q->k;
    for (int64_t b = 0; b < q->blocks; b++) {
        const int64_t from = b * q->block, to = from + q->block < k ? from + q->block : k,
                      at = l->n * q->blocks + b;
        double ug = 0, uhu = 0;
        for (int64_t i = from; i < to; i++) {
            const double u = (double)hone_weights_code(q->kind, q->level[l->n * k + i], q->zero[at]);
            const float *h = l->m->hf + i * k;
            double hu = 0;
            for (int64_t j = from; j < to; j++)
                hu += (double)h[j] * (double)hone_weights_code(q->kind, q->level[l->n * k + j], q->zero[at]);
            ug += u * (double)l->g[i], uhu += u * hu;
        }
        const double scale = (double)q->scale[at] + (uhu > 0 ? ug / uhu : 0);
        if (!(scale > 1e-30) || !isfinite(scale)) continue;
        const float d = q->scale[at] - (float)scale;
        q->scale[at] = (float)scale;
        for (int64_t i = from; i < to; i++) {
            const float u = d * hone_weights_code(q->kind, q->level[l->n * k + i], q->zero[at]),
                        *h = l->m->hf + i * k;
            for (int64_t j = 0; u != 0 && j < k; j++) l->g[j] += u * h[j];
        }
    }
}
static void solves(void *arg, int member, int members) {
    solving *s = arg;
    const int64_t k = s->q->k;
    float *room = hone_alloc(sizeof *room * (size_t)k * 3);
    (void)member, (void)members;
    if (!room) s->failed = true;
    for (int64_t n; room && (n = atomic_fetch_add(&s->next, 1)) < s->q->n;) {
        line l = {s->q, s->m, n, s->w + n * k, room, room + k, room + 2 * k};
        hand_on(&l);
        if (s->sweeps) gradient(&l);
        for (int turn = 0; turn < s->sweeps; turn++) {
            rescale(&l);
            if (!sweep(&l)) break;
        }
    }
    hone_free(room);
}
hone_status hone_weights_solve(hone_weights *q, const hone_weights_moments *m, const float *w, int sweeps,
                               int threads) {
    solving s = {.q = q, .m = m, .w = w, .sweeps = sweeps};
    hone_team_run(threads, solves, &s);
    return s.failed ? no_memory() : HONE_OK;
}

/* ---- what was lost ------------------------------------------------------------------------------------- */
typedef struct {
    const hone_weights *q;
    const hone_weights_moments *m;
    const float *w;
    double *lost, *all; /* one a row */
    atomic_llong next;
} losing;
static void loses(void *arg, int member, int members) {
    losing *s = arg;
    const int64_t k = s->q->k;
    float *e = hone_alloc(sizeof *e * (size_t)k * 2), *v = e + k;
    (void)member, (void)members;
    for (int64_t n; e && (n = atomic_fetch_add(&s->next, 1)) < s->q->n;) {
        memset(e, 0, sizeof *e * (size_t)k * 2);
        for (int64_t j = 0; j < k; j++) {
            const float *low = s->m->low + j * k, x = s->w[n * k + j], d = x - hone_weights_value(s->q, n, j);
            for (int64_t i = 0; i <= j; i++) v[i] += low[i] * x, e[i] += low[i] * d;
        }
        for (int64_t i = 0; i < k; i++) {
            s->lost[n] += (double)s->m->diag[i] * (double)e[i] * (double)e[i];
            s->all[n] += (double)s->m->diag[i] * (double)v[i] * (double)v[i];
        }
    }
    hone_free(e);
}
double hone_weights_loss(const hone_weights *q, const hone_weights_moments *m, const float *w) {
    losing s = {.q = q,
                .m = m,
                .w = w,
                .lost = hone_alloc(sizeof(double) * (size_t)q->n),
                .all = hone_alloc(sizeof(double) * (size_t)q->n)};
    double lost = 0, all = 0;
    if (s.lost && s.all) hone_team_run(0, loses, &s);
    for (int64_t n = 0; s.lost && s.all && n < q->n; n++) lost += s.lost[n], all += s.all[n];
    hone_free(s.lost), hone_free(s.all);
    return all > 0 ? lost / all : 0;
}
