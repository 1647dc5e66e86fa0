/* SPDX-License-Identifier: Apache-2.0
   weights_dynamic: products in bytes whose inputs are rounded during the run, each time by the range that
   they have: no ranges are learned, so that none can be wrong.

        MatMul(x, w)   ─▶   q, s, z = DynamicQuantizeLinear(x · u);  Cast(MatMulInteger(q, levels, z)) · (s ·
                                                                     scales)

   x has one range a run, so a column of it that is large takes the digits of all others. Samples show which
   columns are: with u = 1 / d they shrink and their weights grow (SmoothQuant, Xiao and others, 2023);
   d = |x|^a / |w|^(1 - a), the largest of each, with the a of those below that loses least at the output of
   the layers that read x, or none. LSTM, GRU and convolutions stay as they are: what a recurrent
   cell reads has no range of its own to be rounded by, and other tools' nets lost their answer so. */
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/thread.h"
#include "quant/weights_form.h"

enum { KEPT_ROWS = 192 };
static const float shares[] = {0.2F, 0.35F, 0.5F, 0.65F, 0.8F};

/* ---- what is read -------------------------------------------------------------------------------------- */
typedef struct {
    hone_vid x;
    int64_t k, rows, room;
    float *top;             /* [k]: the largest magnitude */
    float *kept;            /* [rows][k]: of the first samples, as a whole */
    hone_vec(int64_t) ends; /* where a sample's rows end: each had its own range */
} reading;
typedef hone_vec(reading) readings;

static hone_status find(const hone_weights_job *w, readings *all) {
    for (int k = 0; k < w->layer.n; k++) {
        const hone_weights_layer *a = w->layer.at + k;
        for (int r = 0; !a->table && r < a->reader.n; r++) {
            const hone_vid x = w->job->graph->node.at[a->reader.at[r]]->in[0];
            bool there = false;
            for (int j = 0; j < all->n; j++) there |= all->at[j].x == x;
            if (there) continue;
            reading made = {.x = x, .k = a->k, .top = hone_alloc(sizeof(float) * (size_t)a->k)};
            if (!made.top || !hone_push(all, made)) {
                hone_free(made.top);
                return hone_quant_no_memory();
            }
        }
    }
    return HONE_OK;
}
static hone_status see(const hone_weights_job *w, reading *r, const hone_value *v) {
    const int64_t rows = r->k ? hone_value_count(v) / r->k : 0;
    const float *at = v->data;
    if (v->dtype != HONE_DTYPE_F32 || v->rank < 1 || v->dim[v->rank - 1] != r->k)
        return hone_fail(HONE_BAD_INPUT,
                         "'%.100s' has another shape in the run than a product with %lld rows wants",
                         w->job->graph->var.at[r->x].name, (long long)r->k);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < r->k; k++) r->top[k] = fmaxf(r->top[k], fabsf(at[i * r->k + k]));
    /* of a long one, its beginning */
    const int64_t fits = rows < KEPT_ROWS - r->rows ? rows : KEPT_ROWS - r->rows;
    if (fits < 1) return HONE_OK;
    if (!r->kept && !(r->kept = hone_alloc(sizeof(float) * (size_t)(KEPT_ROWS * r->k))))
        return hone_quant_no_memory();
    memcpy(r->kept + r->rows * r->k, at, sizeof *at * (size_t)(fits * r->k));
    r->rows += fits;
    return hone_push(&r->ends, r->rows) ? HONE_OK : hone_quant_no_memory();
}
static hone_status watch(const hone_weights_job *w, readings *all) {
    const hone_quant_job *job = w->job;
    const int64_t most = job->wish->calibrate > 0 ? job->wish->calibrate : HONE_WEIGHTS_SAMPLES,
                  samples = most < job->wish->data.n ? most : job->wish->data.n;
    hone_quant_run *run = NULL;
    hone_vid *x = hone_alloc(sizeof *x * (size_t)(all->n + 1));
    hone_value **in = hone_alloc(sizeof *in * (size_t)(job->graph->in.n + 1)),
               **out = hone_alloc(sizeof *out * (size_t)(all->n + 1));
    hone_status s = x && in && out ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < all->n && !s; k++) x[k] = all->at[k].x;
    if (!s) s = hone_quant_open(job, job->graph, x, all->n, &run);
    for (int64_t k = 0; k < samples && !s; k++) {
        s = hone_quant_tell(job, 0.7 * (double)k / (double)samples, "which columns are large");
        if (!s) s = hone_quant_sample(job, k, in);
        if (!s) s = job->runner.run(run, in, out);
        for (int i = 0; i < all->n && !s; i++) s = see(w, all->at + i, out[i]);
        for (int i = 0; i < all->n; i++) hone_value_drop(out[i]), out[i] = NULL;
        for (int i = 0; i < job->graph->in.n; i++) hone_value_drop(in[i]), in[i] = NULL;
    }
    if (run) job->runner.close(run);
    hone_free(x), hone_free(in), hone_free(out);
    return s;
}

/* ---- what is lost -------------------------------------------------------------------------------------- */
/* as DynamicQuantizeLinear has it, and back */
static void rounded_rows(const reading *r, const float *by, float *to) {
    int64_t from = 0;
    for (int e = 0; e < r->ends.n; from = r->ends.at[e++]) {
        float low = 0, high = 0;
        for (int64_t i = from * r->k; i < r->ends.at[e] * r->k; i++) {
            const float v = to[i] = r->kept[i] * by[i % r->k];
            low = fminf(low, v), high = fmaxf(high, v);
        }
        const float scale = (high - low) / 255, zero = scale > 0 ? rintf(-low / scale) : 0;
        for (int64_t i = from * r->k; i < r->ends.at[e] * r->k; i++)
            if (scale > 0) to[i] = (fminf(fmaxf(rintf(to[i] / scale) + zero, 0), 255) - zero) * scale;
    }
}
typedef struct {
    const reading *r;
    const float *x, *w, *q; /* rounded rows; [k][n], as it is and rounded */
    int64_t n;
    double *lost; /* one a row */
    atomic_llong next;
    atomic_bool failed;
} judging;
static void judges(void *arg, int member, int members) {
    judging *j = arg;
    float *sum = hone_alloc(sizeof *sum * (size_t)j->n);
    (void)member, (void)members;
    if (!sum) j->failed = true;
    for (int64_t i; sum && (i = atomic_fetch_add(&j->next, 1)) < j->r->rows;) {
        memset(sum, 0, sizeof *sum * (size_t)j->n);
        for (int64_t k = 0; k < j->r->k; k++) {
            const float a = j->r->kept[i * j->r->k + k], b = j->x[i * j->r->k + k], *w = j->w + k * j->n,
                        *q = j->q + k * j->n;
            for (int64_t n = 0; n < j->n; n++) sum[n] += a * w[n] - b * q[n];
        }
        for (int64_t n = 0; n < j->n; n++) j->lost[i] += (double)sum[n] * (double)sum[n];
    }
    hone_free(sum);
}
static float *transposed(const float *w, int64_t n, int64_t k) {
    float *to = hone_alloc(sizeof *to * (size_t)(n * k));
    for (int64_t i = 0; to && i < n; i++)
        for (int64_t j = 0; j < k; j++) to[j * n + i] = w[i * k + j];
    return to;
}
/* Of one layer, with inputs multiplied by `by`. */
static hone_status loss(const hone_weights_job *w, hone_weights_layer *a, const reading *r, const float *by,
                        const float *x, double *out) {
    hone_status s = HONE_OK;
    float *rows = hone_weights_rows(w, a), *plain = rows ? transposed(rows, a->n, a->k) : NULL,
          *back = hone_alloc(sizeof *back * (size_t)(a->n * a->k));
    judging j = {.r = r,
                 .x = x,
                 .w = plain,
                 .q = back,
                 .n = a->n,
                 .lost = hone_alloc(sizeof(double) * (size_t)(r->rows + 1))};
    if (!rows || !plain || !back || !j.lost) s = hone_quant_no_memory();
    for (int64_t i = 0; !s && i < a->n * a->k; i++) rows[i] /= by[i % a->k];
    if (!s) hone_weights_round(&a->q, rows, w->job->wish->threads);
    for (int64_t n = 0; !s && n < a->n; n++)
        for (int64_t k = 0; k < a->k; k++) back[k * a->n + n] = hone_weights_value(&a->q, n, k);
    if (!s) hone_team_run(w->job->wish->threads, judges, &j);
    if (j.failed) s = hone_quant_no_memory();
    for (int64_t i = 0; !s && i < r->rows; i++) *out += j.lost[i];
    hone_free(rows), hone_free(plain), hone_free(back), hone_free(j.lost);
    return s;
}
static bool reads(const hone_weights_job *w, const hone_weights_layer *a, hone_vid x) { /* and nothing else */
    bool all = !a->table;
    for (int r = 0; r < a->reader.n; r++) all &= w->job->graph->node.at[a->reader.at[r]]->in[0] == x;
    return all;
}
static hone_status choose(hone_weights_job *w, const reading *r) {
    const size_t bytes = sizeof(float) * (size_t)r->k;
    float *top = hone_alloc(bytes), *by = hone_alloc(bytes), *best = hone_alloc(bytes),
          *x = hone_alloc(sizeof(float) * (size_t)(r->rows * r->k + 1));
    hone_status s = top && by && best && x ? HONE_OK : hone_quant_no_memory();
    double least = HUGE_VAL;
    int readers = 0, chosen = -1;
    for (int l = 0; l < w->layer.n && !s; l++) {
        const hone_weights_layer *a = w->layer.at + l;
        if (!reads(w, a, r->x)) continue;
        float *rows = hone_weights_rows(w, a);
        if (!rows) s = hone_quant_no_memory();
        for (int64_t i = 0; !s && i < a->n * a->k; i++) top[i % a->k] = fmaxf(top[i % a->k], fabsf(rows[i]));
        hone_free(rows), readers++;
    }
    for (int c = -1; c < (int)(sizeof shares / sizeof *shares) && !s && readers && r->rows; c++) {
        double lost = 0;
        for (int64_t k = 0; k < r->k; k++) {
            const float d =
                c < 0 ? 1 : powf(r->top[k], shares[c]) / powf(fmaxf(top[k], 1e-8F), 1 - shares[c]);
            by[k] = d > 1e-6F && d < 1e6F ? 1 / d : 1;
        }
        rounded_rows(r, by, x);
        for (int l = 0; l < w->layer.n && !s; l++)
            if (reads(w, w->layer.at + l, r->x)) s = loss(w, w->layer.at + l, r, by, x, &lost);
        if (!s && lost < least * (c < 0 ? 1 : 0.95)) least = lost, chosen = c, memcpy(best, by, bytes);
    }
    for (int l = 0; l < w->layer.n && !s && chosen >= 0; l++) {
        hone_weights_layer *a = w->layer.at + l;
        if (!reads(w, a, r->x)) continue;
        if (!(a->by = hone_alloc(bytes))) s = hone_quant_no_memory();
        else memcpy(a->by, best, bytes);
    }
    hone_free(top), hone_free(by), hone_free(best), hone_free(x);
    return s;
}
hone_status hone_weights_smooth(hone_weights_job *w) {
    readings all = {0};
    hone_status s = find(w, &all);
    if (!s) s = watch(w, &all);
    for (int k = 0; k < all.n && !s; k++) {
        s = hone_quant_tell(w->job, 0.7 + 0.3 * k / all.n, w->job->graph->var.at[all.at[k].x].name);
        if (!s) s = choose(w, all.at + k);
    }
    for (int k = 0; k < all.n; k++) {
        hone_free(all.at[k].top), hone_free(all.at[k].kept);
        hone_vec_free(&all.at[k].ends);
    }
    hone_vec_free(&all);
    return s;
}

/* ---- writing ------------------------------------------------------------------------------------------- */
static const hone_weights_bytes *bytes_of(hone_quant_edit *e, hone_weights_rounded *cache,
                                          const hone_weights_layer *a, hone_vid x) {
    for (int k = 0; k < cache->n; k++)
        if (cache->at[k].x == x && cache->at[k].smoothed == (a->by != NULL)) return cache->at + k;
    hone_weights_bytes b = {.x = x, .smoothed = a->by != NULL};
    hone_vid from = x, out[3];
    const char *name = e->graph->var.at[x].name;
    if (a->by) {
        hone_value *v = NULL;
        if (!hone_value_tensor(HONE_DTYPE_F32, &a->k, 1, &v))
            memcpy(v->data, a->by, sizeof(float) * (size_t)a->k);
        const hone_vid in[] = {x, hone_quant_constant(e, "smooth", v)};
        from = hone_quant_put(e, "Mul", name, in, 2, hone_quant_like(e, x, HONE_DTYPE_F32), NULL, 0);
    }
    for (int k = 0; k < 3; k++) out[k] = e->status ? -1 : hone_graph_var(e->graph, name);
    hone_quant_put_all(e, "DynamicQuantizeLinear", name, &from, 1, out, 3, NULL, 0);
    b.q = out[0], b.scale = out[1], b.zero = out[2];
    if (!e->status && !hone_push(cache, b)) e->status = hone_quant_no_memory();
    return e->status ? NULL : cache->at + cache->n - 1;
}
void hone_weights_put_dynamic(hone_quant_edit *e, const hone_weights_layer *a, const hone_node *n,
                              hone_vid levels, hone_vid scales, hone_weights_rounded *cache) {
    const hone_weights_bytes *b = bytes_of(e, cache, a, n->in[0]);
    const hone_vid bias = hone_quant_is(n, "Gemm") && n->n_in > 2 ? n->in[2] : -1;
    if (!b) return;
    const hone_vid sum =
                       hone_quant_put(e, "MatMulInteger", n->name, (const hone_vid[]){b->q, levels, b->zero},
                                      3, hone_quant_like(e, n->out[0], HONE_DTYPE_I32), NULL, 0),
                   floats =
                       hone_quant_cast(e, sum, hone_quant_like(e, n->out[0], HONE_DTYPE_F32), HONE_DTYPE_F32),
                   unit = hone_quant_put(e, "Mul", n->name, (const hone_vid[]){b->scale, scales}, 2, -1, NULL,
                                         0),
                   y = hone_quant_put(e, "Mul", n->name, (const hone_vid[]){floats, unit}, 2,
                                      bias < 0 ? n->out[0] : -1, NULL, 0);
    if (bias >= 0) hone_quant_put(e, "Add", n->name, (const hone_vid[]){y, bias}, 2, n->out[0], NULL, 0);
}
