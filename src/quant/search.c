/* SPDX-License-Identifier: Apache-2.0
   search: see search.h. Every trial is the whole graph, rewritten, compiled and run on the samples that judge: nothing is assumed to add up but the order in which layers are tried. */
#include "quant/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/calibrate.h"

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory to quantize a model"); }
enum { SENSITIVE = 6 /* samples that show how much a layer hurts */ };
#define GOOD_NOISE 1e-3 /* where nobody says what is good: 30 dB, and the same class nearly throughout */
#define GOOD_TOP1 0.98

hone_status hone_quant_search_judge(hone_quant_search *q, int most, hone_quant_score *out) {
    hone_graph *g = NULL;
    HONE_TRY(hone_quant_rewrite(q->plan, q->job->library, &g));
    return hone_quant_judge_graph(&q->judge, g, most, out);
}
void hone_quant_search_note(hone_quant_search *q, const char *what, const hone_quant_score *s, bool kept) {
    hone_text_put(&q->tried, "%s{\"what\": ", q->tried.n ? ", " : "");
    hone_text_json(&q->tried, what);
    hone_text_put(&q->tried, ", \"kept\": %s, \"quality\": ", kept ? "true" : "false");
    hone_quant_score_put(&q->tried, s);
    hone_text_put(&q->tried, "}");
}
static bool good(const hone_quant_search *q, const hone_quant_score *s) {
    if (q->metric.name) return hone_quant_loss(&q->metric, s) <= q->metric.limit;
    return s->noise <= GOOD_NOISE && !(s->top1 < GOOD_TOP1);
}
/* Which of two is nearer to the float model. */
bool hone_quant_search_better(const hone_quant_search *q, const hone_quant_score *a, const hone_quant_score *b) {
    if (q->job->wish->measure && a->worth != b->worth) return a->worth > b->worth;
    return a->noise < b->noise;
}

/* ---- ranges, all at once --------------------------------------------------------------------------------------------------------------------------- */
typedef struct {
    hone_range range;
    int observer;
} kept_range;
static void keep_ranges(const hone_quant_plan *p, kept_range *to) {
    for (int k = 0; k < p->class.n; k++) to[k] = (kept_range){p->class.at[k].range, p->class.at[k].observer};
}
static void bring_ranges(hone_quant_plan *p, const kept_range *from) {
    for (int k = 0; k < p->class.n; k++) p->class.at[k].range = from[k].range, p->class.at[k].observer = from[k].observer;
}
static hone_status try_observers(hone_quant_search *q) {
    static const hone_observer whole[] = {HONE_OBSERVE_MINMAX, HONE_OBSERVE_PERCENTILE, HONE_OBSERVE_MSE};
    kept_range *best = hone_alloc(sizeof *best * (size_t)(q->plan->class.n + 1));
    if (!best) return no_memory();
    hone_status s = hone_quant_search_judge(q, 0, &q->score);
    keep_ranges(q->plan, best);
    if (!s) hone_quant_search_note(q, "ranges: a choice for each tensor", &q->score, true);
    for (size_t k = 0; k < sizeof whole / sizeof *whole && !s && !q->job->wish->observer; k++) {
        hone_quant_score now;
        char text[64];
        hone_quant_choose_all(q->plan, whole[k]);
        s = hone_quant_search_judge(q, 0, &now);
        if (s) break;
        const bool keep = hone_quant_search_better(q, &now, &q->score);
        snprintf(text, sizeof text, "ranges: %s for all", hone_observer_names[whole[k]]);
        hone_quant_search_note(q, text, &now, keep);
        if (keep) q->score = now, keep_ranges(q->plan, best);
    }
    bring_ranges(q->plan, best);
    hone_free(best);
    return s;
}

/* ---- layers ------------------------------------------------------------------------------------------------------------------------------------------ */
static hone_status sensitivity(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    hone_status s = HONE_OK;
    for (int k = 0; k < p->layer.n; k++) p->layer.at[k].stays = true;
    for (int k = 0; k < p->layer.n && !s; k++) {
        hone_quant_score one;
        s = hone_quant_tell(q->job, 0.4 + 0.5 * k / p->layer.n, "each layer alone");
        p->layer.at[k].stays = false;
        if (!s) s = hone_quant_search_judge(q, SENSITIVE, &one);
        p->layer.at[k].stays = true;
        if (!s) p->layer.at[k].noise = one.noise;
    }
    for (int k = 0; k < p->layer.n; k++) p->layer.at[k].stays = p->layer.at[k].why != NULL;
    return s;
}
typedef struct {
    int layer;
    double worth;
} place;
static int by_worth(const void *a, const void *b) {
    const place *x = a, *y = b;
    return x->worth != y->worth ? (x->worth < y->worth) - (x->worth > y->worth) : (x->layer > y->layer) - (x->layer < y->layer);
}
/* The first n of the order stay f32, as far as their work is allowed. */
static double float_first(hone_quant_plan *p, const place *order, int n, double most) {
    double spent = 0;
    for (int k = 0; k < p->layer.n; k++) {
        hone_quant_layer *l = p->layer.at + order[k].layer;
        const bool fits = k < n && spent + l->macs <= most;
        if (fits) spent += l->macs;
        l->stays = fits, l->why = fits ? "it hurts most for its work" : NULL;
    }
    return spent;
}
static hone_status choose_floats(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    double all = 0, share = q->job->wish->float_share;
    if (!(share > 0)) share = q->metric.name ? 1 : 0.15;
    place *order = hone_alloc(sizeof *order * (size_t)p->layer.n);
    if (!order) return no_memory();
    for (int k = 0; k < p->layer.n; k++) all += p->layer.at[k].macs;
    for (int k = 0; k < p->layer.n; k++)
        order[k] = (place){k, p->layer.at[k].noise /
                                  (p->layer.at[k].macs + all / 200)}; /* what hardly works costs something too: its neighbours' roundings */
    qsort(order, (size_t)p->layer.n, sizeof *order, by_worth);
    /* The fewest that are enough: by doubling, then between the last two. Where none is, as many as are best. */
    hone_status s = HONE_OK;
    int low = 0, high = 0, best_n = 0;
    hone_quant_score best = q->score;
    bool found = false;
    for (int n = 1; n < 2 * p->layer.n && !s && !found; n *= 2) {
        hone_quant_score now;
        high = n < p->layer.n ? n : p->layer.n;
        s = hone_quant_tell(q->job, 0.9, "which layers stay f32");
        float_first(p, order, high, all * share);
        if (!s) s = hone_quant_search_judge(q, 0, &now);
        if (s) break;
        found = good(q, &now);
        char text[64];
        snprintf(text, sizeof text, "the %d layers that hurt most in f32", high);
        hone_quant_search_note(q, text, &now, found || hone_quant_search_better(q, &now, &best));
        if (found || hone_quant_search_better(q, &now, &best)) best = now, best_n = high;
        if (!found) low = high;
    }
    while (found && high - low > 1 && !s) {
        hone_quant_score now;
        const int n = (low + high) / 2;
        float_first(p, order, n, all * share);
        s = hone_quant_search_judge(q, 0, &now);
        if (s) break;
        if (good(q, &now)) high = n, best = now, best_n = n;
        else low = n;
    }
    float_first(p, order, best_n, all * share);
    q->score = best;
    hone_free(order);
    if (!s && !found && q->metric.name && share >= 1)
        return hone_fail(HONE_BAD_INPUT, "the model in integers loses more than allowed, also with all layers in f32: %s %g, allowed %g",
                         q->metric.name, hone_quant_loss(&q->metric, &q->score), q->metric.limit);
    return s;
}

/* ---- time ---------------------------------------------------------------------------------------------------------------------------------------------- */
static hone_status time_graph(hone_quant_search *q, hone_graph *take, double *ns) {
    hone_quant_run *run = NULL;
    HONE_TRY(q->job->runner.open(q->job->runner.context, take, &run));
    hone_value **in = hone_alloc(sizeof *in * (size_t)(q->judge.n_in + 1));
    hone_status s = in ? hone_quant_sample(q->job, q->judge.sample[0], in) : no_memory();
    double first = 0;
    if (!s) s = q->job->runner.time(run, in, 1, &first);
    const int runs = first > 0 ? (int)fmin(fmax(3e8 / first, 3), 30) : 3;
    if (!s) s = q->job->runner.time(run, in, runs, ns);
    for (int i = 0; in && i < q->judge.n_in; i++) hone_value_drop(in[i]);
    hone_free(in);
    q->job->runner.close(run);
    return s;
}
static hone_status times(hone_quant_search *q) {
    hone_graph *g = NULL;
    HONE_TRY(hone_graph_copy(q->plan->graph, &g));
    HONE_TRY(time_graph(q, g, &q->float_ns));
    HONE_TRY(hone_quant_rewrite(q->plan, q->job->library, &g));
    return time_graph(q, g, &q->int_ns);
}

hone_status hone_quant_search_run(hone_quant_search *q) {
    HONE_TRY(hone_quant_tell(q->job, 0.3, "ranges, all together"));
    HONE_TRY(try_observers(q));
    if (!q->job->wish->no_repairs) HONE_TRY(hone_quant_repair(q));
    if (!good(q, &q->score)) {
        HONE_TRY(sensitivity(q));
        HONE_TRY(choose_floats(q));
    }
    return times(q);
}
