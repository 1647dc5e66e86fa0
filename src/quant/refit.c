/* SPDX-License-Identifier: Apache-2.0
   refit: weights rounded by what a layer reads, and biases that take away what rounding shifts.

   From rows of a layer's operand (windows of a convolution, by chance over the samples), as floats f and as
   they are rounded x, with w the weights and q those in integers:
        rounding    levels and scales for which q · x comes nearest to w · x, less its mean, because the bias
                    has that: weights_solve.c, as for weights alone, and for the same end as AdaRound
                    (Nagel and others, 2020), by descent over levels and not by gradients
        bias        w · mean(f) - q · mean(x), an output channel: what rounding of the operand and of the
                    weights
                    adds on average to each sum
   Both are the layer's own: rows are the float model's, so that no layer is told to mend what another does.
   Kept where the whole model comes nearer; else the biases alone are tried. */
#include <math.h>
#include <string.h>

#include "base/random.h"
#include "quant/calibrate.h"
#include "quant/search.h"
#include "quant/weights.h"

enum {
    SAMPLES = 32,
    MOST_K = 1152, /* weights of an output; its moments are a square of that */
    LEAST_ROWS = 256,
    MOST_ROWS = 3072,
    SWEEPS = 4,
    MOST_BYTES = 64 << 20 /* of a layer's rows */
};
#define DAMPING 0.05

typedef struct {
    hone_quant_layer *l;
    hone_value *w, *b;
    const float *unit;
    int64_t groups, k, n; /* n: outputs of a group */
    int64_t rows, room;   /* seen, and there is room for */
    float *x;             /* [groups][room][k]: as they are rounded */
    double *sum;          /* [groups][k]: of the floats */
    int64_t kernel[3], step[3], apart[3], before[3];
    int space;
} fitted;

/* ---- which layers, and their windows ------------------------------------------------------------------- */
static bool ints(const hone_node *n, const char *name, int64_t *to, int count, int64_t otherwise) {
    const hone_attr *a = hone_attr_find(n->attr, n->n_attr, name);
    for (int k = 0; k < count; k++) to[k] = a ? (k < a->n ? a->i[k] : -1) : otherwise;
    for (int k = 0; k < count; k++)
        if (to[k] < 0) return false;
    return true;
}
/* *fits false: not for this layer. */
static hone_status prepare(hone_quant_search *q, hone_quant_layer *l, fitted *to, bool *fits) {
    hone_quant_plan *p = q->plan;
    const hone_node *n = p->graph->node.at[l->node];
    fitted f = {.l = l};
    *fits = false;
    const hone_value *w = p->graph->var.at[l->w].value;
    f.groups = l->conv ? hone_attr_int(n->attr, n->n_attr, "group", 1) : 1;
    f.n = w->dim[l->axis] / (f.groups > 0 ? f.groups : 1), f.k = hone_value_count(w) / w->dim[l->axis];
    f.space = l->conv ? w->rank - 2 : 0;
    if (f.groups < 1 || w->dim[l->axis] % f.groups || f.k > MOST_K || f.space > 3) return HONE_OK;
    if (l->conv) {
        const char *pad = hone_attr_text(n->attr, n->n_attr, "auto_pad", "NOTSET");
        int64_t pads[6];
        if (strcmp(pad, "NOTSET") != 0 && strcmp(pad, "VALID") != 0) return HONE_OK;
        for (int d = 0; d < f.space; d++) f.kernel[d] = w->dim[d + 2];
        if (!ints(n, "strides", f.step, f.space, 1) || !ints(n, "dilations", f.apart, f.space, 1) ||
            !ints(n, "pads", pads, 2 * f.space, 0))
            return HONE_OK;
        for (int d = 0; d < f.space; d++) {
            f.before[d] = pads[d];
            if (f.step[d] < 1 || f.apart[d] < 1) return HONE_OK;
        }
    }
    f.room = 4 * f.k < LEAST_ROWS ? LEAST_ROWS : 4 * f.k > MOST_ROWS ? MOST_ROWS : 4 * f.k;
    if (f.groups * f.room * f.k * (int64_t)sizeof(float) > MOST_BYTES) return HONE_OK;
    HONE_TRY(hone_quant_weights_now(p, q->job->library, l, &f.w, &f.b, &f.unit));
    const size_t bytes = sizeof(float) * (size_t)(f.groups * f.room * f.k);
    f.x = hone_alloc(bytes), f.sum = hone_alloc(sizeof *f.sum * (size_t)(f.groups * f.k));
    *to = f, *fits = true;
    return f.x && f.sum ? HONE_OK : hone_quant_no_memory();
}
static void free_fitted(fitted *f) {
    hone_value_drop(f->w), hone_value_drop(f->b);
    hone_free(f->x), hone_free(f->sum);
    *f = (fitted){0};
}

/* ---- rows ---------------------------------------------------------------------------------------------- */
static void put(const hone_grid *grid, float v, float unit, float *x, double *sum) {
    const float f = v / unit;
    *sum += (double)f;
    *x = (float)(hone_grid_round(grid, f) - grid->zero) * grid->scale;
}
/* A window of a convolution: one row a group. `at`: where it begins, in each dim of space. */
static void see_window(fitted *f, const hone_value *x, const hone_grid *grid, int64_t sample,
                       const int64_t *at) {
    int64_t each = 1, kernel = 1;
    for (int d = 0; d < f->space; d++) each *= x->dim[d + 2], kernel *= f->kernel[d];
    const int64_t channels = x->dim[1], a_group = channels / f->groups;
    for (int64_t c = 0; c < channels; c++) {
        const float *plane = (const float *)x->data + (sample * channels + c) * each;
        const int64_t first = c % a_group * kernel, row = ((c / a_group) * f->room + f->rows) * f->k + first;
        double *sum = f->sum + c / a_group * f->k + first;
        for (int64_t t = 0; t < kernel; t++) {
            int64_t rest = t, offset = 0, step = 1;
            bool inside = true;
            for (int d = f->space - 1; d >= 0; d--) {
                const int64_t i = at[d] + rest % f->kernel[d] * f->apart[d];
                rest /= f->kernel[d], inside = inside && i >= 0 && i < x->dim[d + 2];
                offset += i * step, step *= x->dim[d + 2];
            }
            put(grid, inside ? plane[offset] : 0, f->unit ? f->unit[c] : 1, f->x + row + t, sum + t);
        }
    }
}
static void see(fitted *f, const hone_value *x, const hone_grid *grid, int64_t many, uint64_t *state) {
    int64_t lines = 1, out[3] = {1, 1, 1};
    const int space = f->space;
    if (!x || x->tag != HONE_TAG_TENSOR || x->dtype != HONE_DTYPE_F32 || hone_value_count(x) < 1) return;
    if (space) {
        if (x->rank != space + 2 || x->dim[1] % f->groups) return;
        int64_t kernel = 1;
        for (int d = 0; d < space; d++) kernel *= f->kernel[d];
        if (x->dim[1] / f->groups * kernel != f->k) return;
        /* windows that begin inside, and those at the borders before: what is behind them is alike */
        for (int d = 0; d < space; d++) {
            const int64_t span = (f->kernel[d] - 1) * f->apart[d];
            out[d] = (x->dim[d + 2] + 2 * f->before[d] - span - 1) / f->step[d] + 1;
            if (x->dim[d + 2] + 2 * f->before[d] <= span) return;
        }
    } else {
        if (x->rank < 1 || x->dim[x->rank - 1] != f->k) return;
        lines = hone_value_count(x) / f->k;
    }
    for (int64_t r = 0; r < many && f->rows < f->room; r++, f->rows++) {
        if (space) {
            int64_t at[3] = {0};
            for (int d = 0; d < space; d++)
                at[d] = (int64_t)(hone_random(state) % (uint64_t)out[d]) * f->step[d] - f->before[d];
            see_window(f, x, grid, (int64_t)(hone_random(state) % (uint64_t)x->dim[0]), at);
            continue;
        }
        const float *row = (const float *)x->data + (int64_t)(hone_random(state) % (uint64_t)lines) * f->k;
        for (int64_t k = 0; k < f->k; k++)
            put(grid, row[k], f->unit ? f->unit[k] : 1, f->x + f->rows * f->k + k, f->sum + k);
    }
}

/* ---- one layer ----------------------------------------------------------------------------------------- */
static int64_t weight_at(const fitted *f, int64_t m, int64_t k) {
    return f->l->axis ? k * f->w->dim[f->l->axis] + m : m * f->k + k;
}
static void means(const float *x, int64_t rows, int64_t k, double *to) {
    memset(to, 0, sizeof *to * (size_t)k);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++) to[i] += (double)x[r * k + i] / (double)rows;
}
static void less(float *x, int64_t rows, int64_t k, const double *mean) {
    for (int64_t r = 0; r < rows; r++)
        for (int64_t i = 0; i < k; i++) x[r * k + i] -= (float)mean[i];
}
/* How far an output of a group is off on rows that fitting did not see; d: by how much its weights are. */
static double off_by(const float *d, const float *x, int64_t rows, int64_t k) {
    enum { LANES = 16 };
    double sum = 0;
    for (int64_t r = 0; r < rows; r++) {
        const float *at = x + r * k;
        float off[LANES] = {0}, whole = 0;
        int64_t i = 0;
        for (; i + LANES <= k; i += LANES)
            for (int j = 0; j < LANES; j++) off[j] += d[i + j] * at[i + j];
        for (; i < k; i++) off[0] += d[i] * at[i];
        for (int j = 0; j < LANES; j++) whole += off[j];
        sum += (double)whole * (double)whole;
    }
    return sum;
}
/* Levels and scales of a group, of each output where they are nearer than plain ones: a part of the rows, of
   samples that fitting did not see, says so. */
static hone_status solve(const fitted *f, int64_t g, const float *x, int threads) {
    hone_quant_layer *l = f->l;
    const hone_weights_kind *kind = hone_weights_kind_find("int8");
    hone_weights q = {0};
    hone_weights_moments m = {0};
    const int64_t seen = f->rows - f->rows / 4, rest = f->rows - seen;
    float *wanted = hone_alloc(sizeof *wanted * (size_t)(f->n * f->k));
    float *off = hone_alloc(sizeof *off * (size_t)(2 * f->k)); /* fitted, plain */
    int8_t *level = hone_alloc((size_t)f->k);
    hone_status s = wanted && level && off && hone_weights_make(&q, kind, true, f->n, f->k, f->k) &&
                            hone_weights_moments_make(&m, f->k, false)
                        ? HONE_OK
                        : hone_quant_no_memory();
    for (int64_t n = 0; n < f->n && !s; n++)
        for (int64_t k = 0; k < f->k; k++)
            wanted[n * f->k + k] = ((const float *)f->w->data)[weight_at(f, g * f->n + n, k)];
    if (!s) hone_weights_moments_add(&m, x, NULL, seen, threads);
    if (!s) s = hone_weights_factor(&m, DAMPING, threads);
    if (!s) s = hone_weights_solve(&q, &m, wanted, SWEEPS, threads);
    for (int64_t n = 0; n < f->n && !s; n++) {
        const int64_t c = g * f->n + n;
        float *scale = (float *)l->scales->data + c;
        if (!(q.scale[n] > 1e-12f)) continue; /* a channel of nothing stays as it is */
        for (int64_t k = 0; k < f->k; k++) {
            const int v = q.level[n * f->k + k] - kind->middle;
            const float w = wanted[n * f->k + k];
            level[k] = (int8_t)(v < -127 ? -127 : v);
            off[k] = w - (float)level[k] * q.scale[n];
            off[f->k + k] = w - (float)((const int8_t *)l->bytes->data)[weight_at(f, c, k)] * *scale;
        }
        const float *unseen = x + seen * f->k;
        if (!(off_by(off, unseen, rest, f->k) < off_by(off + f->k, unseen, rest, f->k))) continue;
        *scale = q.scale[n];
        for (int64_t k = 0; k < f->k; k++) ((int8_t *)l->bytes->data)[weight_at(f, c, k)] = level[k];
    }
    hone_weights_free(&q), hone_weights_moments_free(&m), hone_free(wanted);
    hone_free(off), hone_free(level);
    return s;
}
static hone_status fit(const hone_quant_search *q, fitted *f, bool rounding) {
    hone_quant_layer *l = f->l;
    const int64_t all = f->groups * f->n;
    const int threads = f->groups > 1 ? 1 : q->job->wish->threads;
    double *mean = hone_alloc(sizeof *mean * (size_t)f->k);
    float *shift = f->b ? hone_alloc(sizeof *shift * (size_t)all) : NULL;
    hone_value *bytes = NULL, *scales = NULL;
    hone_status s = mean && (shift || !f->b) ? HONE_OK : hone_quant_no_memory();
    /* of this layer alone: others may hold the plain ones */
    if (!s) s = hone_value_copy(l->bytes, &bytes);
    if (!s) s = hone_value_copy(l->scales, &scales);
    if (s) {
        hone_value_drop(bytes), hone_value_drop(scales), hone_free(mean), hone_free(shift);
        return s;
    }
    hone_value_drop(l->bytes), hone_value_drop(l->scales);
    l->bytes = bytes, l->scales = scales;
    rounding = rounding && scales->rank == 1 && f->rows >= f->k;
    for (int64_t g = 0; g < f->groups && !s; g++) {
        float *x = f->x + g * f->room * f->k;
        const double *floats = f->sum + g * f->k;
        means(x, f->rows, f->k, mean);
        if (shift && rounding) less(x, f->rows, f->k, mean);
        if (rounding) s = solve(f, g, x, threads);
        for (int64_t m = g * f->n; shift && m < (g + 1) * f->n; m++) {
            const double scale = (double)((const float *)scales->data)[scales->rank ? m : 0];
            double sum = 0;
            for (int64_t k = 0; k < f->k; k++) {
                const int64_t at = weight_at(f, m, k);
                sum += (double)((const float *)f->w->data)[at] * floats[k] / (double)f->rows -
                       (double)((const int8_t *)bytes->data)[at] * scale * mean[k];
            }
            shift[m] = isfinite(sum) ? (float)sum : 0;
        }
    }
    hone_free(mean), hone_free(l->shift);
    l->shift = shift, l->fitted = true;
    return s;
}

/* ---- all of them --------------------------------------------------------------------------------------- */
/* Samples through the float model, for layers whose rows fit into memory together. */
static hone_status watch(hone_quant_search *q, fitted *f, int n, double done) {
    const hone_quant_job *job = q->job;
    const int samples = q->n_shown < SAMPLES ? q->n_shown : SAMPLES, n_in = q->plan->graph->in.n;
    hone_value **in = hone_alloc(sizeof *in * (size_t)(n_in + 1)),
               **out = hone_alloc(sizeof *out * (size_t)(n + 1));
    hone_vid *tap = hone_alloc(sizeof *tap * (size_t)(n + 1));
    hone_quant_run *run = NULL;
    uint64_t state = (uint64_t)job->wish->seed;
    hone_status s = in && out && tap ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < n && !s; k++) tap[k] = f[k].l->x;
    if (!s) s = hone_quant_open(job, q->plan->graph, tap, n, &run);
    for (int k = 0; k < samples && !s; k++) {
        s = hone_quant_tell(job, done, "rounding by what layers read");
        if (!s) s = hone_quant_sample(job, q->shown[k], in);
        if (!s) s = job->runner.run(run, in, out);
        for (int t = 0; t < n && !s; t++) {
            const hone_grid grid = hone_quant_plan_grid(q->plan, q->plan->class_of[f[t].l->x]);
            see(f + t, out[t], &grid, (f[t].room + samples - 1) / samples, &state);
        }
        for (int t = 0; out && t < n; t++) hone_value_drop(out[t]), out[t] = NULL;
        for (int i = 0; in && i < n_in; i++) hone_value_drop(in[i]), in[i] = NULL;
    }
    if (run) job->runner.close(run);
    hone_free(in), hone_free(out), hone_free(tap);
    return s;
}
/* Of layers that are not fitted; `done`: one a layer, those that are now. */
static hone_status refit(hone_quant_search *q, bool rounding, uint8_t *done, int *many) {
    hone_quant_plan *p = q->plan;
    const int64_t most = hone_quant_held(p->graph) / 2; /* its solving takes as much again */
    fitted *f = hone_alloc(sizeof *f * (size_t)(p->layer.n + 1));
    hone_status s = f ? HONE_OK : hone_quant_no_memory();
    for (int from = 0; from < p->layer.n && !s;) {
        int n = 0, k = from;
        int64_t held = 0;
        for (; k < p->layer.n && held < most && !s; k++) {
            bool fits = false;
            if (p->layer.at[k].stays || p->layer.at[k].fitted) continue;
            s = prepare(q, p->layer.at + k, f + n, &fits);
            if (fits) held += f[n].groups * f[n].room * f[n].k * (int64_t)sizeof(float), n++;
        }
        if (!s && n) s = watch(q, f, n, 0.96 + 0.03 * from / p->layer.n);
        for (int t = 0; t < n; t++) {
            if (!s && f[t].rows > 0 && f[t].l->bytes) {
                s = fit(q, f + t, rounding);
                done[f[t].l - p->layer.at] = 1, ++*many;
            }
            free_fitted(f + t);
        }
        from = k;
    }
    hone_free(f);
    return s;
}
static hone_status try_it(hone_quant_search *q, const char *what, double was, bool *kept) {
    hone_quant_score now;
    double loss;
    HONE_TRY(hone_quant_search_judge(q, 0, &now));
    *kept = hone_quant_search_better(q, &now, &q->score);
    /* with a metric of the caller's, that says what counts */
    if (q->metric.name && *kept) {
        HONE_TRY(hone_quant_search_loss(q, &now, &loss));
        *kept = loss <= was || loss <= q->metric.limit;
    }
    hone_quant_search_note(q, what, &now, *kept);
    if (*kept) q->score = now;
    return HONE_OK;
}
hone_status hone_quant_refit(hone_quant_search *q) {
    static const char *const what[] = {"weights rounded by what layers read, biases corrected",
                                       "biases corrected"};
    hone_quant_plan *p = q->plan;
    uint8_t *done = hone_alloc((size_t)p->layer.n + 1);
    bool kept = false;
    double was;
    hone_status s = done ? hone_quant_search_loss(q, &q->score, &was) : hone_quant_no_memory();
    for (int way = 0; way < 2 && !kept && !s; way++) {
        int many = 0;
        if (hone_quant_late(q->job, 0.9, what[way])) continue;
        memset(done, 0, (size_t)p->layer.n);
        s = refit(q, way == 0, done, &many);
        if (s || !many) break;
        s = try_it(q, what[way], was, &kept);
        for (int k = 0; k < p->layer.n && !kept; k++)
            if (done[k]) hone_quant_layer_forget(p->layer.at + k);
    }
    hone_free(done);
    return s;
}
