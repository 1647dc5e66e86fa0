/* SPDX-License-Identifier: Apache-2.0
   detail: what a report shows beyond what decided: how far each layer's result is off in the graph that is
   written, what numbers its operand has, and the ranges that were tried for it. */
#include <math.h>
#include <string.h>

#include "quant/calibrate.h"
#include "quant/search.h"

enum { SAMPLES = 6, BARS = 64 };

/* ---- results of layers, all together ------------------------------------------------------------------- */
typedef struct {
    double off, all;
} power;
/* The unit of each channel in which a layer's result is written; NULL: it is as it was. */
static const float *units_behind(const hone_quant_search *q, const hone_quant_layer *l, const hone_value *y) {
    const hone_quant_plan *p = q->plan;
    const int class = p->class_of[hone_quant_result(p, l)];
    const float *unit = class >= 0 && (l->units & 2) && l->scales ? p->class.at[class].unit : NULL;
    return unit && y->rank >= 2 && y->dim[1] == p->class.at[class].channels ? unit : NULL;
}
static power compare(const hone_value *want, const hone_value *got, const float *unit) {
    power r = {0};
    const int64_t n = hone_value_count(want);
    int64_t inner = 1;
    if (hone_value_count(got) != n || got->dtype != HONE_DTYPE_F32 || want->dtype != HONE_DTYPE_F32)
        return (power){1, 1};
    for (int d = 2; d < want->rank; d++) inner *= want->dim[d];
    const float *w = want->data, *g = got->data;
    for (int64_t k = 0; k < n; k++) {
        const double off =
            unit ? w[k] - (double)g[k] * (double)unit[k / inner % want->dim[1]] : (double)w[k] - (double)g[k];
        if (!isfinite(w[k])) continue;
        r.all += (double)w[k] * (double)w[k], r.off += isfinite(off) ? off * off : 1e30;
    }
    return r;
}
/* Layers `from` … `to` of both graphs on the samples that judge. */
static hone_status watch(hone_quant_search *q, const hone_graph *made, int from, int to) {
    hone_quant_plan *p = q->plan;
    const hone_quant_job *job = q->job;
    const int n = to - from, samples = q->judge.n < SAMPLES ? q->judge.n : SAMPLES;
    hone_vid *tap = hone_alloc(sizeof *tap * (size_t)n);
    hone_value **in = hone_alloc(sizeof *in * (size_t)(q->judge.n_in + 1)),
               **out = hone_alloc(sizeof *out * (size_t)n * 2);
    power *sum = hone_alloc(sizeof *sum * (size_t)n);
    hone_quant_run *run[2] = {NULL, NULL};
    hone_status s = tap && in && out && sum ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < n && !s; k++) tap[k] = p->layer.at[from + k].y;
    if (!s) s = hone_quant_open(job, p->graph, tap, n, run);
    if (!s) s = hone_quant_open(job, made, tap, n, run + 1);
    for (int i = 0; i < samples && !s; i++) {
        s = hone_quant_tell(job, 0.98, "layers, all together");
        if (!s) s = hone_quant_sample(job, q->judge.sample[i], in);
        for (int k = 0; k < 2 && !s; k++) s = job->runner.run(run[k], in, out + (size_t)k * (size_t)n);
        for (int k = 0; k < n && !s; k++) {
            const power one = compare(out[k], out[n + k], units_behind(q, p->layer.at + from + k, out[k]));
            sum[k].off += one.off, sum[k].all += one.all;
        }
        for (int k = 0; out && k < 2 * n; k++) hone_value_drop(out[k]), out[k] = NULL;
        for (int k = 0; in && k < q->judge.n_in; k++) hone_value_drop(in[k]), in[k] = NULL;
    }
    for (int k = 0; k < n && !s; k++)
        p->layer.at[from + k].behind = sum[k].all > 0 ? fmin(sum[k].off / sum[k].all, 1) : sum[k].off > 0;
    for (int k = 0; k < 2; k++)
        if (run[k]) job->runner.close(run[k]);
    hone_free(tap), hone_free(in), hone_free(out), hone_free(sum);
    return s;
}
hone_status hone_quant_behind(hone_quant_search *q) {
    const hone_quant_plan *p = q->plan;
    hone_graph *made = NULL;
    HONE_TRY(hone_quant_rewrite(q->plan, q->job->library, &made));
    const int64_t most = hone_quant_held(p->graph) / 2; /* of both graphs */
    hone_vid *y = hone_alloc(sizeof *y * (size_t)(p->layer.n + 1));
    int64_t *bytes = hone_alloc(sizeof *bytes * (size_t)(p->layer.n + 1));
    hone_status s = y && bytes ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < p->layer.n && !s; k++) y[k] = p->layer.at[k].y;
    if (!s) s = hone_quant_bytes(q->job, p->graph, y, p->layer.n, q->judge.sample[0], bytes);
    for (int from = 0, to = 0; from < p->layer.n && !s; from = to) {
        int64_t held = 0;
        while (to < p->layer.n && (to == from || held + bytes[to] <= most)) held += bytes[to++];
        s = watch(q, made, from, to);
    }
    hone_free(y), hone_free(bytes);
    hone_graph_destroy(made);
    return s;
}

/* ---- the report ---------------------------------------------------------------------------------------- */
static void put_bars(hone_text *t, const hone_histogram *h) {
    double bar[BARS] = {0};
    const double wide = (h->most - h->least) / BARS;
    for (int k = 0; k < HONE_QUANT_BINS && wide > 0; k++) {
        const int at = (int)((h->low + (k + 0.5) * h->width - h->least) / wide);
        bar[at < 0 ? 0 : at >= BARS ? BARS - 1 : at] += h->bin[k];
    }
    hone_text_put(t, ", \"zeros\": %.0f, \"numbers\": %.0f, \"histogram\": [", h->zeros, h->seen - h->odd);
    for (int k = 0; k < BARS && wide > 0; k++) hone_text_put(t, "%s%.0f", k ? ", " : "", bar[k]);
    hone_text_put(t, "]");
}
void hone_quant_detail_put(hone_text *t, const hone_quant_plan *p, const hone_quant_layer *l) {
    const hone_quant_class *c = p->class.at + p->class_of[l->x];
    const int levels = p->highest - p->lowest + 1;
    int n = 0;
    if (l->behind >= 0) hone_text_put(t, ", \"behind_db\": %.6g", hone_quant_decibel(l->behind));
    hone_text_put(t, ", \"operand\": ");
    hone_text_json(t, p->graph->var.at[l->x].name);
    hone_text_put(t, ", \"units\": %s, \"weights\": %lld", c->unit ? "true" : "false",
                  (long long)hone_value_count(p->graph->var.at[l->w].value));
    put_bars(t, c->seen);
    hone_text_put(t, ", \"ranges\": [");
    for (int o = 0; o < HONE_OBSERVERS; o++) {
        const hone_range r = hone_observer_range((hone_observer)o, c->seen, levels, p->symmetric);
        if (isnan(c->error[o])) continue; /* nearly that of another */
        hone_text_put(t, "%s{\"observer\": \"%s\", \"low\": %.6g, \"high\": %.6g, \"sqnr_db\": %.6g}",
                      n++ ? ", " : "", hone_observer_names[o], r.low, r.high,
                      hone_quant_decibel(c->error[o]));
    }
    hone_text_put(t, "]");
}
