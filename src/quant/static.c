/* SPDX-License-Identifier: Apache-2.0
   static: weights and tensors in 8 bits by ranges that samples showed. From samples to a decision:

     1. histograms of all tensors, on the samples for calibration
     2. of the ranges that observers suggest, for each tensor the one with the least error behind the nodes
       that read it
     3. repairs of weights, each kept where the model's outputs come nearer to the float ones on the samples
       that judge
     4. each layer in integers alone: how far the model's outputs are off
     5. layers that hurt most for their work stay f32 until the model is as good as asked */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/random.h"
#include "quant/calibrate.h"
#include "quant/judge.h"
#include "quant/search.h"

enum { TUNE = 12 /* samples by which what was decided by parts is looked at again (polish.c) */ };

/* ---- samples ------------------------------------------------------------------------------------------- */
/* The first for calibration, those behind them to judge. */
static hone_status deal(const hone_quantizing *w, int64_t **out, int *calibrate, int *judge) {
    const int64_t n = w->data.n;
    int64_t j = w->judge > 0 ? w->judge : n / 4 < 22 ? n / 4 : 22, c = w->calibrate > 0 ? w->calibrate : 64;
    j = j < 1 ? 1 : j > n - 1 ? n - 1 : j;
    c = c > n - j ? n - j : c;
    uint64_t state = (uint64_t)w->seed;
    int64_t *at = hone_alloc(sizeof *at * (size_t)(c + j + 2));
    if (!at) return hone_quant_no_memory();
    /* c + j different numbers below n, in an order by chance (Floyd) */
    const int64_t k_all = n == 1 ? 1 : c + j;
    for (int64_t k = 0; k < k_all; k++) {
        const int64_t last = n - k_all + k;
        int64_t x = (int64_t)(hone_random(&state) % (uint64_t)(last + 1));
        for (int64_t i = 0; i < k; i++)
            if (at[i] == x) {
                x = last;
                break;
            }
        const int64_t place = (int64_t)(hone_random(&state) % (uint64_t)(k + 1));
        at[k] = at[place], at[place] = x;
    }
    if (n == 1) at[1] = at[0], c = j = 1;
    *out = at, *calibrate = (int)c, *judge = (int)j;
    return HONE_OK;
}

/* ---- what calibration depends on, as a number for its cache -------------------------------------------- */
static uint64_t mix(uint64_t h, const void *data, size_t n) {
    for (size_t k = 0; k < n; k++) h = (h ^ ((const uint8_t *)data)[k]) * 1099511628211u;
    return h;
}
static uint64_t key_of(const hone_quant_plan *p, const int64_t *sample, int n) {
    uint64_t h = 1469598103934665603u;
    for (int k = 0; k < p->n_node; k++)
        h = mix(h, p->graph->node.at[k]->program->name, strlen(p->graph->node.at[k]->program->name));
    for (int k = 0; k < p->class.n; k++)
        h = mix(h, p->graph->var.at[p->class.at[k].var].name,
                strlen(p->graph->var.at[p->class.at[k].var].name));
    for (int k = 0; k < p->layer.n; k++) {
        const hone_value *w = p->graph->var.at[p->layer.at[k].w].value;
        h = mix(h, w->data, w->bytes < 4096 ? w->bytes : 4096);
    }
    return mix(h, sample, sizeof *sample * (size_t)n);
}

/* ---- the report ---------------------------------------------------------------------------------------- */
static void put_number(hone_text *t, const char *name, double x) {
    if (x == x && fabs(x) < 1e300) hone_text_put(t, ", \"%s\": %.6g", name, x);
}
static void put_layers(const hone_quant_plan *p, bool detail, hone_text *t) {
    hone_text_put(t, ", \"layers\": [");
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        const hone_node *n = p->graph->node.at[l->node];
        const int class = p->class_of[l->x];
        const hone_quant_class *c = class >= 0 ? p->class.at + class : NULL;
        hone_text_put(t, "%s{\"node\": ", k ? ", " : "");
        hone_text_json(t, n->name);
        hone_text_put(t, ", \"op\": \"%s%s\", \"type\": \"%s\", \"why\": ", n->program->name,
                      l->depthwise ? " depthwise" : "", l->stays ? "f32" : "int8");
        hone_text_json(t, l->why ? l->why : "");
        put_number(t, "macs", l->macs);
        if (l->float_ns > 0)
            put_number(t, "float_us", l->float_ns / 1e3), put_number(t, "int_us", l->int_ns / 1e3);
        if (l->noise >= 0) put_number(t, "sqnr_db", hone_quant_decibel(l->noise));
        if (c) {
            hone_text_put(
                t, ", \"observer\": \"%s\", \"low\": %.6g, \"high\": %.6g, \"least\": %.6g, \"most\": %.6g",
                c->observer >= 0 ? hone_observer_names[c->observer] : "", c->range.low, c->range.high,
                c->seen->least, c->seen->most);
            if (detail) hone_quant_detail_put(t, p, l);
            if (!isnan(c->error[c->observer >= 0 ? c->observer : 0]))
                put_number(t, "input_sqnr_db",
                           hone_quant_decibel(c->error[c->observer >= 0 ? c->observer : 0]));
        }
        hone_text_put(t, "}");
    }
    hone_text_put(t, "]");
}
static int min_int(int a, int b) { return a < b ? a : b; }
static void put_report(const hone_quant_search *q, int calibrated, int judged) {
    hone_text *t = q->job->report;
    const hone_quant_plan *p = q->plan;
    double all = 0, whole = 0;
    int stays = 0;
    for (int k = 0; k < p->class.n; k++) /* some saw fewer where time was short */
        if (p->class.at[k].seen->samples > 0) calibrated = min_int(calibrated, p->class.at[k].seen->samples);
    for (int k = 0; k < p->layer.n; k++)
        all += p->layer.at[k].macs, whole += p->layer.at[k].stays ? 0 : p->layer.at[k].macs,
            stays += p->layer.at[k].stays;
    hone_text_put(t,
                  ", \"form\": \"static\", \"activations\": \"%s\", \"calibrated\": %d, \"judged\": %d, "
                  "\"layers_int8\": %d, \"layers_f32\": %d",
                  q->job->wish->activations ? q->job->wish->activations : "u8", calibrated, judged,
                  p->layer.n - stays, stays);
    hone_text_put(t, ", \"target\": \"%s\"", q->for_size ? "size" : "speed");
    put_number(t, "macs", all), put_number(t, "macs_int8", whole);
    hone_text_put(t, ", \"quality\": ");
    hone_quant_score_put(t, &q->score);
    hone_quant_metric_put(t, &q->metric, &q->score);
    put_number(t, "float_ms", q->float_ns / 1e6), put_number(t, "int_ms", q->int_ns / 1e6);
    hone_text_put(t, ", \"tried\": [%s]", q->tried.n ? q->tried.text : "");
    if (q->mixtures.n) hone_text_put(t, ", \"mixtures\": [%s]", q->mixtures.text);
    put_layers(p, q->job->wish->detail != 0, t);
}

/* ---- the form ------------------------------------------------------------------------------------------ */
static hone_status ranges(const hone_quant_job *job, hone_quant_plan *p, const int64_t *sample, int n) {
    const char *cache = job->wish->cache;
    const uint64_t key = key_of(p, sample, n);
    bool found = false;
    if (cache) HONE_TRY(hone_quant_cache_read(p, cache, key, &found));
    if (!found) HONE_TRY(hone_quant_calibrate(job, p, sample, n));
    /* what was cut short is not kept for the next one */
    if (cache && !found && !job->left->n) HONE_TRY(hone_quant_cache_write(p, cache, key));
    return hone_quant_choose(job, p, sample, n < 8 ? n : 8);
}
hone_status hone_quant_static(hone_quant_job *job) {
    hone_quant_plan p = {0};
    hone_quant_search q = {.job = job, .plan = &p};
    int64_t *sample = NULL;
    int calibrate = 0, judge = 0;
    hone_graph *made = NULL;
    HONE_TRY(hone_quant_metric_find(job->wish, &q.metric));
    HONE_TRY(hone_quant_plan_make(job->graph, job->wish, &p));
    hone_status s = deal(job->wish, &sample, &calibrate, &judge);
    if (!s) s = ranges(job, &p, sample, calibrate);
    if (!s)
        s = hone_quant_judge_open(job, p.graph, sample + (job->wish->data.n == 1 ? 0 : calibrate), judge,
                                  &q.judge);
    if (!s) s = hone_quant_judge_open(job, p.graph, sample, min_int(calibrate, TUNE), &q.tune);
    q.tune.noise_only = true;
    q.shown = sample, q.n_shown = calibrate;
    if (!s) s = hone_quant_tables(job); /* behind the float model's answers: all that is tried has them */
    if (!s) s = hone_quant_search_run(&q);
    if (!s) s = hone_quant_rewrite(&p, job->library, &made);
    if (!s) s = hone_graph_infer_by(made, job->instances);
    if (!s && q.plan->integer_ops) s = hone_quant_qoperator(job, made);
    if (!s) s = hone_quant_tell(job, 1, "writing");
    if (!s) put_report(&q, calibrate, judge);
    hone_text_free(&q.tried), hone_text_free(&q.mixtures);
    hone_quant_judge_close(&q.judge), hone_quant_judge_close(&q.tune);
    hone_quant_plan_free(&p);
    hone_free(sample);
    if (s) {
        hone_graph_destroy(made);
        return s;
    }
    job->result = made;
    return HONE_OK;
}
