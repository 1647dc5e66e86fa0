/* SPDX-License-Identifier: Apache-2.0
   pace: which layers integers make faster, on this machine: nothing is assumed. The float graph and the one
   in integers run with every step timed (hone_quant_runner.profile), and a step belongs to the layer that it
   stands for: a layer pays for what follows it up to the next one, and for the rounding of its own operand
   where that is a step of its own.

   What a layer costs depends on its neighbours: between two in integers bytes go on, beside one in floats
   they are rounded once more. So the slow ones go back to f32 together, the whole is measured again, and it
   is kept where the sum of all steps falls; else with the half of them that lose most, and so on. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "quant/search.h"

enum { LEAST_RUNS = 5, MOST_RUNS = 30, TRIALS = 8 };
#define LONG 4e8  /* ns: so long a graph is measured, where that is no fewer runs */
#define PAYS 0.99 /* of the time in f32; above it a layer is slow */

/* ---- whose a step is ----------------------------------------------------------------------------------- */
typedef struct {
    const hone_quant_plan *p;
    const int32_t *layer; /* of each node of the plan's graph, -1: none */
    double *ns;           /* of each layer; behind them what is no layer's */
} pacing;
/* The layer that each node follows. */
static int32_t *layers_by_node(const hone_quant_plan *p) {
    const hone_graph *g = p->graph;
    int32_t *of = hone_alloc(sizeof *of * (size_t)(p->n_node + 1));
    for (int k = 0; of && k < p->n_node; k++) {
        const hone_node *n = g->node.at[k];
        of[k] = p->layer_of[k];
        for (int i = 0; of[k] < 0 && i < n->n_in; i++)
            if (n->in[i] >= 0 && g->var.at[n->in[i]].producer >= 0) of[k] = of[g->var.at[n->in[i]].producer];
    }
    return of;
}
/* Whether `made` is `name` with an ending that rewriting adds. */
static bool named(const char *made, const char *name, const char *end) {
    const size_t n = strlen(name);
    return !strncmp(made, name, n) && !strcmp(made + n, end);
}
static int layer_of_name(const pacing *p, const hone_node *of) {
    static const char *const ends[] = {"_q", "_dq", "_units"};
    const hone_graph *g = p->p->graph;
    const bool rounds = !strcmp(of->program->name, "QuantizeLinear") && !of->n_part;
    for (int k = 0; k < p->p->n_node; k++)
        if (!strcmp(g->node.at[k]->name, of->name)) return p->layer[k];
    for (size_t e = 0; e < sizeof ends / sizeof *ends; e++)
        for (int v = 0; v < p->p->n_var; v++) {
            if (!named(of->name, g->var.at[v].name, ends[e])) continue;
            for (int k = 0; k < p->p->layer.n && (rounds || g->var.at[v].producer < 0); k++)
                if (p->p->layer.at[k].x == v && !p->p->layer.at[k].stays) return k;
            return g->var.at[v].producer < 0 ? -1 : p->layer[g->var.at[v].producer];
        }
    return -1;
}
static void see(void *arg, const hone_node *of, double ns) {
    pacing *p = arg;
    int layer = -1;
    for (int k = 0; k < of->n_part && layer < 0; k++) layer = layer_of_name(p, of->part[k]);
    if (layer < 0) layer = layer_of_name(p, of);
    p->ns[layer < 0 ? p->p->layer.n : layer] += ns;
}

/* ---- measuring ----------------------------------------------------------------------------------------- */
static hone_status measure(const hone_quant_search *q, hone_graph *take, pacing *p, double *total) {
    const hone_quant_runner *by = &q->job->runner;
    hone_quant_run *run = NULL;
    HONE_TRY(by->open(by->context, take, &run));
    hone_value **in = hone_alloc(sizeof *in * (size_t)(q->judge.n_in + 1));
    hone_status s = in ? hone_quant_sample(q->job, q->judge.sample[0], in) : hone_quant_no_memory();
    memset(p->ns, 0, sizeof *p->ns * (size_t)(q->plan->layer.n + 1));
    double one = 0;
    if (!s) s = by->time(run, in, 2, &one);
    /* a hundredth of the time that there is, where that is short */
    const double limit = 1e9 * q->job->wish->seconds, most = limit > 0 ? fmin(LONG, limit / 100) : LONG,
                 least = most < LONG ? 1 : LEAST_RUNS;
    if (!s)
        s = by->profile(run, in, one > 0 ? (int)fmin(fmax(most / one, least), MOST_RUNS) : MOST_RUNS, see, p);
    for (int k = 0; in && k < q->judge.n_in; k++) hone_value_drop(in[k]);
    hone_free(in);
    by->close(run);
    *total = 0;
    for (int k = 0; k <= q->plan->layer.n; k++) *total += p->ns[k];
    return s;
}
static hone_status measure_plan(const hone_quant_search *q, pacing *p, double *total) {
    hone_graph *g = NULL;
    HONE_TRY(hone_quant_rewrite(q->plan, q->job->library, &g));
    return measure(q, g, p, total);
}

/* ---- choosing ------------------------------------------------------------------------------------------ */
typedef struct {
    int layer;
    double loses; /* ns */
} slow_layer;
static int by_loss(const void *a, const void *b) {
    const slow_layer *x = a, *y = b;
    return x->loses != y->loses ? (x->loses < y->loses) - (x->loses > y->loses) : x->layer - y->layer;
}
static int find_slow(const hone_quant_plan *p, slow_layer *to) {
    int n = 0;
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        if (!l->stays && l->int_ns > PAYS * l->float_ns) to[n++] = (slow_layer){k, l->int_ns - l->float_ns};
    }
    qsort(to, (size_t)n, sizeof *to, by_loss);
    return n;
}
static void turn_back(hone_quant_plan *p, const slow_layer *at, int n, bool floats) {
    for (int k = 0; k < n; k++) {
        hone_quant_layer *l = p->layer.at + at[k].layer;
        l->stays = l->slow = floats, l->why = floats ? "integers are not faster here" : NULL;
    }
}
/* The least that was seen of each layer, as it stands: what disturbed one measuring hardly disturbs the next
   one at the same place. */
static void least_times(hone_quant_plan *p, const double *ns) {
    for (int k = 0; k < p->layer.n; k++) {
        hone_quant_layer *l = p->layer.at + k;
        double *to = l->stays ? &l->float_ns : &l->int_ns;
        if (!(*to > 0) || ns[k] < *to) *to = ns[k];
    }
}
static hone_status descend(hone_quant_search *q, pacing *p, slow_layer *slow, double *best, int *found) {
    int trials = 0;
    for (bool news = true; news;) {
        const int n = find_slow(q->plan, slow);
        news = false;
        for (int some = n; some > 0 && !news && trials < TRIALS; some /= 2, trials++) {
            double now;
            if (hone_quant_late(q->job, 0.7, "some mixtures of layers by time")) return HONE_OK;
            turn_back(q->plan, slow, some, true);
            HONE_TRY(measure_plan(q, p, &now));
            news = now < 0.998 * *best;
            if (!news) turn_back(q->plan, slow, some, false);
            else *best = now, *found += some, least_times(q->plan, p->ns);
        }
    }
    return HONE_OK;
}
/* Floats and integers in turns, each twice: the least of both. */
static hone_status measure_both(hone_quant_search *q, pacing *p, double *best) {
    hone_quant_plan *plan = q->plan;
    *best = NAN;
    for (int turn = 0; turn < 2; turn++) {
        hone_graph *g = NULL;
        double now;
        HONE_TRY(hone_graph_copy(plan->graph, &g));
        HONE_TRY(measure(q, g, p, &now));
        for (int k = 0; k < plan->layer.n; k++) {
            hone_quant_layer *l = plan->layer.at + k;
            if (!(l->float_ns > 0) || p->ns[k] < l->float_ns) l->float_ns = p->ns[k];
        }
        HONE_TRY(measure_plan(q, p, &now));
        least_times(plan, p->ns);
        if (!(*best < now)) *best = now;
    }
    return HONE_OK;
}
hone_status hone_quant_pace(hone_quant_search *q, int *found) {
    hone_quant_plan *p = q->plan;
    int32_t *of = layers_by_node(p);
    slow_layer *slow = hone_alloc(sizeof *slow * (size_t)(p->layer.n + 1));
    pacing at = {p, of, hone_alloc(sizeof(double) * (size_t)(p->layer.n + 1))};
    double best = 0;
    hone_status s = of && slow && at.ns ? HONE_OK : hone_quant_no_memory();
    *found = 0;
    if (!s) s = measure_both(q, &at, &best);
    if (!s) s = descend(q, &at, slow, &best, found);
    hone_free(of), hone_free(slow), hone_free(at.ns);
    return s;
}
hone_status hone_quant_pace_whole(hone_quant_search *q, double *ns) {
    int32_t *of = layers_by_node(q->plan);
    pacing at = {q->plan, of, hone_alloc(sizeof(double) * (size_t)(q->plan->layer.n + 1))};
    hone_status s = of && at.ns ? measure_plan(q, &at, ns) : hone_quant_no_memory();
    hone_free(of), hone_free(at.ns);
    return s;
}
/* The whole of both in turns, the least of each: what else runs on the machine hardly shows, as it does in
   the time that passes. */
hone_status hone_quant_pace_both(hone_quant_search *q, double *floats, double *ints) {
    int32_t *of = layers_by_node(q->plan);
    pacing at = {q->plan, of, hone_alloc(sizeof(double) * (size_t)(q->plan->layer.n + 1))};
    hone_status s = of && at.ns ? HONE_OK : hone_quant_no_memory();
    for (int turn = 0; turn < 2 && !s; turn++) {
        double f = 0, i = 0;
        hone_graph *g = NULL;
        s = hone_graph_copy(q->plan->graph, &g);
        if (!s) s = measure(q, g, &at, &f);
        if (!s) s = measure_plan(q, &at, &i);
        *floats = turn ? fmin(*floats, f) : f, *ints = turn ? fmin(*ints, i) : i;
    }
    hone_free(of), hone_free(at.ns);
    return s;
}
void hone_quant_pace_none(hone_quant_plan *p) {
    for (int k = 0; k < p->layer.n; k++) {
        hone_quant_layer *l = p->layer.at + k;
        l->stays = l->slow = true, l->why = "the model in integers is not faster here";
    }
}
