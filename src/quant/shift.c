/* SPDX-License-Identifier: Apache-2.0
   shift: what is left of a shift of a layer's sums when the quantized model itself runs. refit.c takes away
   what a layer's own rounding adds, on what the float model reads; behind activations noise without a mean
   gets one, and it adds up from layer to layer. Here layers are asked in order, each behind those that are
   mended already: the mean of each channel's sums, in floats less in integers, goes into the bias.

   It can be for worse, because what is added to a mean by one sample is another's error: kept where the whole
   model comes nearer on the samples that judge. */
#include <string.h>

#include "quant/calibrate.h"
#include "quant/search.h"

enum { SAMPLES = 12 };
#define BETTER 0.98 /* of the noise: less is chance */

typedef struct {
    hone_quant_layer *l;
    int64_t n;    /* outputs */
    double *mean; /* [n]: of the float model's sums */
    float *was;   /* [n]: its shift as it was */
} shifted;

/* The mean of each channel of a layer's result, at the end of g; -1: no memory. */
static hone_vid channel_means(const hone_quant_job *job, hone_graph *g, const hone_quant_layer *l, int rank) {
    hone_value *axes = NULL;
    const int64_t n = rank - 1, zero = 0;
    const int channel = l->conv ? 1 : rank - 1;
    if (hone_value_tensor(HONE_DTYPE_I64, &n, 1, &axes)) return -1;
    for (int d = 0, k = 0; d < rank; d++)
        if (d != channel) ((int64_t *)axes->data)[k++] = d;
    const hone_attr keep = {.name = "keepdims", .kind = HONE_ATTR_INT, .n = 1, .i = &zero};
    const hone_vid in[2] = {l->y, hone_graph_const(g, "axes", axes)};
    return in[1] < 0 ? -1 : hone_quant_emit(g, job->library, "ReduceMean", "means", in, 2, &keep, 1);
}
/* Means of the outputs of a graph over the samples; into[k]: where those of output k go. */
static hone_status sums(const hone_quant_search *q, hone_quant_run *run, int n_out, shifted *const *to,
                        double *const *into, int samples) {
    const hone_quant_job *job = q->job;
    const int n_in = q->plan->graph->in.n;
    hone_value **in = hone_alloc(sizeof *in * (size_t)(n_in + 1)),
               **out = hone_alloc(sizeof *out * (size_t)(n_out + 1));
    hone_status s = in && out ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < samples && !s; k++) {
        s = hone_quant_sample(job, q->shown[k], in);
        if (!s) s = job->runner.run(run, in, out);
        for (int o = 0; o < n_out && !s; o++)
            for (int64_t c = 0; c < to[o]->n && hone_value_count(out[o]) == to[o]->n; c++)
                into[o][c] += hone_value_f64(out[o], c) / samples;
        for (int o = 0; out && o < n_out; o++) hone_value_drop(out[o]), out[o] = NULL;
        for (int i = 0; in && i < n_in; i++) hone_value_drop(in[i]), in[i] = NULL;
    }
    hone_free(in), hone_free(out);
    return s;
}
/* Layers that have a bias and integers, and room for what is found of them. */
static hone_status gather(hone_quant_plan *p, shifted *all, int *n) {
    *n = 0;
    for (int k = 0; k < p->layer.n; k++) {
        hone_quant_layer *l = p->layer.at + k;
        const hone_value *w = p->graph->var.at[l->w].value;
        if (l->stays || !l->shift || p->graph->var.at[l->y].rank < 2) continue;
        shifted *one = all + (*n)++;
        *one = (shifted){.l = l, .n = w->dim[l->axis]};
        one->mean = hone_alloc(sizeof *one->mean * (size_t)one->n);
        one->was = hone_alloc(sizeof *one->was * (size_t)one->n);
        if (!one->mean || !one->was) return hone_quant_no_memory();
        memcpy(one->was, l->shift, sizeof *one->was * (size_t)one->n);
    }
    return HONE_OK;
}
static hone_status float_means(const hone_quant_search *q, shifted *all, int n, int samples) {
    const hone_quant_plan *p = q->plan;
    hone_graph *g = NULL;
    hone_quant_run *run = NULL;
    HONE_TRY(hone_graph_copy(p->graph, &g));
    int *after = hone_alloc(sizeof *after * (size_t)(n + 1));
    shifted **to = hone_alloc(sizeof *to * (size_t)(n + 1));
    double **into = hone_alloc(sizeof *into * (size_t)(n + 1));
    const int nodes = g->node.n;
    bool ok = after && to && into;
    g->out.n = 0;
    for (int k = 0; k < n && ok; k++) {
        const hone_vid y = channel_means(q->job, g, all[k].l, p->graph->var.at[all[k].l->y].rank);
        ok = y >= 0 && hone_push(&g->out, y);
        after[k] = all[k].l->node, to[k] = all + k, into[k] = all[k].mean;
    }
    ok = ok && hone_quant_settle_down(g, nodes, after);
    hone_status s = ok ? HONE_OK : hone_quant_no_memory();
    if (ok) hone_graph_index(g), s = q->job->runner.open(q->job->runner.context, g, &run);
    else hone_graph_destroy(g);
    if (!s) s = sums(q, run, n, to, into, samples);
    if (run) q->job->runner.close(run);
    hone_free(after), hone_free(to), hone_free(into);
    return s;
}
/* One layer behind those before it. */
static hone_status mend(hone_quant_search *q, shifted *one, int samples) {
    hone_quant_plan *p = q->plan;
    const hone_quant_layer *l = one->l;
    const int class = p->class_of[hone_quant_result(p, l)];
    const float *unit = (l->units & 2) && class >= 0 ? p->class.at[class].unit : NULL;
    hone_graph *g = NULL;
    hone_quant_run *run = NULL;
    double *now = hone_alloc(sizeof *now * (size_t)one->n);
    if (!now) return hone_quant_no_memory();
    hone_status s = hone_quant_rewrite(p, q->job->library, &g);
    if (!s) {
        const hone_vid y = channel_means(q->job, g, l, p->graph->var.at[l->y].rank);
        g->out.n = 0;
        if (y < 0 || !hone_push(&g->out, y)) hone_graph_destroy(g), s = hone_quant_no_memory();
        else hone_graph_index(g), s = q->job->runner.open(q->job->runner.context, g, &run);
    }
    if (!s) s = sums(q, run, 1, &one, &now, samples);
    if (run) q->job->runner.close(run);
    for (int64_t c = 0; c < one->n && !s; c++) {
        const double off = one->mean[c] / (unit ? (double)unit[c] : 1) - now[c];
        if (off - off == 0) one->l->shift[c] += (float)off;
    }
    hone_free(now);
    return s;
}
hone_status hone_quant_shift(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    static const char late[] = "biases by what the quantized model reads";
    const int samples = q->n_shown < SAMPLES ? q->n_shown : SAMPLES;
    int n = 0;
    bool keep = false;
    hone_quant_score now;
    if (hone_quant_late(q->job, 0.9, late)) return HONE_OK;
    shifted *all = hone_alloc(sizeof *all * (size_t)(p->layer.n + 1));
    hone_status s = all ? gather(p, all, &n) : hone_quant_no_memory();
    if (!s && n) s = float_means(q, all, n, samples);
    for (int k = 0; k < n && !s && !hone_quant_late(q->job, 0.95, late); k++) {
        s = hone_quant_tell(q->job, 0.98, late);
        if (!s) s = mend(q, all + k, samples);
    }
    if (!s && n) {
        s = hone_quant_search_judge(q, 0, &now);
        double was = 0, loss = 0;
        keep = !s && hone_quant_search_better(q, &now, &q->score) &&
               (q->job->wish->measure || now.noise < BETTER * q->score.noise);
        if (keep && q->metric.name) { /* the caller's says what counts */
            s = hone_quant_search_loss(q, &q->score, &was);
            if (!s) s = hone_quant_search_loss(q, &now, &loss);
            keep = !s && (loss <= was || loss <= q->metric.limit);
        }
        if (!s) hone_quant_search_note(q, late, &now, keep);
        if (keep) q->score = now;
    }
    for (int k = 0; k < n; k++) {
        if (!keep) memcpy(all[k].l->shift, all[k].was, sizeof *all[k].was * (size_t)all[k].n);
        hone_free(all[k].mean), hone_free(all[k].was);
    }
    hone_free(all);
    return s;
}
