/* SPDX-License-Identifier: Apache-2.0
   search: see search.h. Every trial is the whole graph, rewritten, compiled and run on the samples that
   judge: nothing is assumed to add up but the order in which layers are tried. */
#include "quant/search.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/calibrate.h"

enum { SENSITIVE = 6 /* samples that show how much a layer hurts */ };
#define GOOD_NOISE 1e-3 /* where nobody says what is good: 30 dB, and the same class nearly throughout */
#define GOOD_TOP1 0.99
#define NO_FASTER 1.03 /* of the float model's time; what lies between is the same */

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
hone_status hone_quant_search_loss(hone_quant_search *q, hone_quant_score *s, double *loss) {
    if (q->metric.name && !strcmp(q->metric.name, "command") && isnan(s->worth)) {
        hone_graph *g = NULL;
        HONE_TRY(hone_quant_rewrite(q->plan, q->job->library, &g));
        hone_status status = hone_graph_infer_by(g, q->job->instances);
        if (!status) status = q->job->runner.measure(q->job->runner.context, g, &s->worth);
        hone_graph_destroy(g);
        HONE_TRY(status);
    }
    *loss = hone_quant_loss(&q->metric, s);
    return HONE_OK;
}
/* The plan as it stands, whose score this is. */
static hone_status good(hone_quant_search *q, hone_quant_score *s, bool *is) {
    double loss;
    *is = s->noise <= GOOD_NOISE && !(s->top1 < GOOD_TOP1);
    if (!q->metric.name) return HONE_OK;
    HONE_TRY(hone_quant_search_loss(q, s, &loss));
    *is = loss <= q->metric.limit;
    return HONE_OK;
}
/* Which of two is nearer to the float model. */
bool hone_quant_search_better(const hone_quant_search *q, const hone_quant_score *a,
                              const hone_quant_score *b) {
    if (q->job->wish->measure && a->worth != b->worth) return a->worth > b->worth;
    return a->noise < b->noise;
}

/* ---- ranges, all at once ------------------------------------------------------------------------------- */
typedef struct {
    hone_range range;
    int observer;
} kept_range;
static void keep_ranges(const hone_quant_plan *p, kept_range *to) {
    for (int k = 0; k < p->class.n; k++) to[k] = (kept_range){p->class.at[k].range, p->class.at[k].observer};
}
static void bring_ranges(hone_quant_plan *p, const kept_range *from) {
    for (int k = 0; k < p->class.n; k++)
        p->class.at[k].range = from[k].range, p->class.at[k].observer = from[k].observer;
}
static hone_status try_observers(hone_quant_search *q) {
    static const hone_observer whole[] = {HONE_OBSERVE_MINMAX, HONE_OBSERVE_PERCENTILE, HONE_OBSERVE_MSE};
    kept_range *best = hone_alloc(sizeof *best * (size_t)(q->plan->class.n + 1));
    if (!best) return hone_quant_no_memory();
    hone_status s = hone_quant_search_judge(q, 0, &q->score);
    keep_ranges(q->plan, best);
    if (!s) hone_quant_search_note(q, "ranges: a choice for each tensor", &q->score, true);
    for (size_t k = 0; k < sizeof whole / sizeof *whole && !s && !q->job->wish->observer; k++) {
        hone_quant_score now;
        char text[64];
        if (hone_quant_late(q->job, 0.75, "one observer for all ranges")) break;
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

/* What residual sums add is not rounded on the way, where that comes nearer and takes no longer. */
static hone_status try_sums(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    hone_quant_score now;
    double with = 0, without = 0;
    bool keep = false;
    if (p->rounds_sums || hone_quant_late(q->job, 0.75, "sums of floats")) return HONE_OK;
    p->sums_go_on = true;
    HONE_TRY(hone_quant_search_judge(q, 0, &now));
    if (now.noise == q->score.noise) return p->sums_go_on = false, HONE_OK; /* there are none */
    if (now.noise < 0.95 * q->score.noise) {
        for (int turn = 0; turn < 2 && !q->for_size; turn++) {
            double a = 0, b = 0;
            HONE_TRY(hone_quant_pace_whole(q, &a));
            p->sums_go_on = false;
            HONE_TRY(hone_quant_pace_whole(q, &b));
            p->sums_go_on = true;
            with = turn ? fmin(with, a) : a, without = turn ? fmin(without, b) : b;
        }
        keep = with <= 1.02 * without;
    }
    hone_quant_search_note(q, "sums of floats, not of what is rounded", &now, keep);
    p->sums_go_on = keep;
    if (keep) q->score = now;
    return HONE_OK;
}

/* ---- layers -------------------------------------------------------------------------------------------- */
static hone_status sensitivity(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    hone_status s = HONE_OK;
    for (int k = 0; k < p->layer.n; k++) p->layer.at[k].stays = true;
    for (int k = 0; k < p->layer.n && !s; k++) {
        hone_quant_score one;
        if (p->layer.at[k].slow && !q->job->wish->detail) continue;
        if (hone_quant_late(q->job, 0.85, "how much some layers hurt")) {
            p->layer.at[k].noise = 1; /* all alike: then what a layer saves decides */
            continue;
        }
        s = hone_quant_tell(q->job, 0.4 + 0.5 * k / p->layer.n, "each layer alone");
        p->layer.at[k].stays = false;
        if (!s) s = hone_quant_search_judge(q, SENSITIVE, &one);
        p->layer.at[k].stays = true;
        if (!s) p->layer.at[k].noise = one.noise;
    }
    for (int k = 0; k < p->layer.n; k++) p->layer.at[k].stays = p->layer.at[k].why != NULL;
    return s;
}
int hone_quant_by_worth(const void *a, const void *b) {
    const hone_quant_ranked *x = a, *y = b;
    return x->worth != y->worth ? (x->worth < y->worth) - (x->worth > y->worth) : x->k - y->k;
}
/* The first n of the order stay f32, as far as their work is allowed; whether any layer changed sides. */
static bool float_first(hone_quant_plan *p, const hone_quant_ranked *order, int n, double most) {
    double spent = 0;
    bool changed = false;
    for (int k = 0; k < p->layer.n; k++) {
        hone_quant_layer *l = p->layer.at + order[k].k;
        if (l->slow) continue; /* and costs nothing */
        const bool fits = k < n && spent + l->macs <= most;
        if (fits) spent += l->macs;
        changed |= l->stays != fits;
        l->stays = fits, l->why = fits ? "it hurts most for its work" : NULL;
    }
    return changed;
}
/* What a layer in integers is worth: the time that it saves, or its weights; its work where neither is known,
   or where its share of that is what runs out. */
static double saves(const hone_quant_search *q, const hone_quant_layer *l, bool work) {
    if (q->for_size && !work) return (double)hone_value_count(q->plan->graph->var.at[l->w].value);
    return l->float_ns > 0 && !work ? fmax(l->float_ns - l->int_ns, 0) : l->macs;
}
/* Those that hurt most for what they save come first; NULL: no memory. */
static hone_quant_ranked *order_of(const hone_quant_search *q, bool work) {
    const hone_quant_plan *p = q->plan;
    hone_quant_ranked *order = hone_alloc(sizeof *order * (size_t)p->layer.n);
    double saved = 0;
    if (!order) return NULL;
    for (int k = 0; k < p->layer.n; k++) saved += p->layer.at[k].slow ? 0 : saves(q, p->layer.at + k, work);
    /* what hardly saves anything costs something too: its neighbours' roundings */
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        order[k] = (hone_quant_ranked){k, l->slow ? -1 : l->noise / (saves(q, l, work) + saved / 200 + 1e-9)};
    }
    qsort(order, (size_t)p->layer.n, sizeof *order, hone_quant_by_worth);
    return order;
}
/* The fewest of an order that are enough: by doubling, then between the last two. Where none is, as many as
   are best; *best_n stays as it is where none is better than `best`. */
static hone_status fewest(hone_quant_search *q, const hone_quant_ranked *order, double most,
                          hone_quant_score *best, int *best_n, bool *found) {
    hone_quant_plan *p = q->plan;
    static const char late[] = "which layers stay f32, to the fewest";
    hone_quant_score now;
    int low = 0, high = 0;
    for (int n = 1; n < 2 * p->layer.n && !*found; n *= 2) {
        char text[64];
        high = n < p->layer.n ? n : p->layer.n;
        if (!q->metric.name && hone_quant_late(q->job, 0.9, late)) return HONE_OK;
        HONE_TRY(hone_quant_tell(q->job, 0.9, "which layers stay f32"));
        if (!float_first(p, order, high, most) && n > 1) { /* no more fit: that was judged */
            low = high;
            continue;
        }
        HONE_TRY(hone_quant_search_judge(q, 0, &now));
        HONE_TRY(good(q, &now, found));
        const bool better = *found || hone_quant_search_better(q, &now, best);
        snprintf(text, sizeof text, "the %d layers that hurt most in f32", high);
        hone_quant_search_note(q, text, &now, better);
        if (better) *best = now, *best_n = high;
        if (!*found) low = high;
    }
    while (*found && high - low > 1) {
        const int n = (low + high) / 2;
        bool is = false;
        if (hone_quant_late(q->job, 0.9, late)) return HONE_OK;
        float_first(p, order, n, most);
        HONE_TRY(hone_quant_search_judge(q, 0, &now));
        HONE_TRY(good(q, &now, &is));
        if (is) high = n, *best = now, *best_n = n;
        else low = n;
    }
    return HONE_OK;
}
static hone_status choose_floats(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    double all = 0, share = q->job->wish->float_share;
    if (!(share > 0)) share = q->metric.name ? 1 : 0.15;
    for (int k = 0; k < p->layer.n; k++) all += p->layer.at[k].macs;
    hone_quant_ranked *order[2] = {order_of(q, false), order_of(q, true)};
    hone_status s = order[0] && order[1] ? HONE_OK : hone_quant_no_memory();
    hone_quant_score best = q->score;
    int n = 0, which = 0;
    bool found = false;
    /* By what they save; where that is not enough, by how much of the allowed work they take. */
    for (int k = 0; k < (share < 1 ? 2 : 1) && !found && !s; k++) {
        int now = -1;
        s = fewest(q, order[k], all * share, &best, &now, &found);
        if (now >= 0) n = now, which = k;
    }
    if (!s) float_first(p, order[which], n, all * share);
    q->score = best;
    hone_free(order[0]), hone_free(order[1]);
    if (!s && !found && share < 1) s = hone_quant_polish_floats(q, all * share);
    if (!s && !found && q->metric.name && share >= 1)
        return hone_fail(
            HONE_BAD_INPUT,
            "the model in integers loses more than allowed, also with all layers in f32: %s %g, allowed %g",
            q->metric.name, hone_quant_loss(&q->metric, &q->score), q->metric.limit);
    return s;
}

/* ---- mixtures, to be shown ----------------------------------------------------------------------------- */
static hone_status put_mixture(hone_quant_search *q, const char *what) {
    const hone_quant_plan *p = q->plan;
    hone_quant_score score;
    double ns = 0, bytes = 0;
    int floats = 0;
    HONE_TRY(hone_quant_search_judge(q, 0, &score));
    HONE_TRY(hone_quant_pace_whole(q, &ns));
    for (int k = 0; k < p->layer.n; k++) {
        const double n = (double)hone_value_count(p->graph->var.at[p->layer.at[k].w].value);
        floats += p->layer.at[k].stays, bytes += p->layer.at[k].stays ? 4 * n : n;
    }
    hone_text_put(&q->mixtures,
                  "%s{\"what\": \"%s\", \"layers_f32\": %d, \"steps_us\": %.6g, \"weight_bytes\": "
                  "%.0f, \"quality\": ",
                  q->mixtures.n ? ", " : "", what, floats, ns / 1e3, bytes);
    hone_quant_score_put(&q->mixtures, &score);
    hone_text_put(&q->mixtures, "}");
    return HONE_OK;
}
/* From all layers in integers to none, twice as many floats each time, and back to where the plan was. */
static hone_status mixtures(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    hone_quant_ranked *order = order_of(q, false);
    hone_quant_layer *was = hone_alloc(sizeof *was * (size_t)p->layer.n);
    hone_status s = order && was ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < p->layer.n && !s; k++) was[k] = p->layer.at[k], p->layer.at[k].slow = false;
    for (int n = 0; !s; n = n ? 2 * n : 1) {
        s = hone_quant_tell(q->job, 0.92, "mixtures of integers and floats");
        float_first(p, order, n < p->layer.n ? n : p->layer.n, INFINITY);
        if (!s) s = put_mixture(q, "mixture");
        if (n >= p->layer.n) break;
    }
    for (int k = 0; k < p->layer.n && was; k++)
        p->layer.at[k].slow = was[k].slow, p->layer.at[k].stays = was[k].stays,
        p->layer.at[k].why = was[k].why;
    hone_free(order), hone_free(was);
    return s;
}

/* ---- time ---------------------------------------------------------------------------------------------- */
/* Both models in turns, the least of each. */
static hone_status time_both(hone_quant_search *q, hone_quant_run *const *run) {
    const hone_quant_runner *by = &q->job->runner;
    hone_value **in = hone_alloc(sizeof *in * (size_t)(q->judge.n_in + 1));
    hone_status s = in ? hone_quant_sample(q->job, q->judge.sample[0], in) : hone_quant_no_memory();
    double first = 0, *const to[2] = {&q->float_ns, &q->int_ns};
    for (int k = 0; k < 2 && !s; k++) s = by->time(run[k], in, 1, &first);
    const int runs = first > 0 ? (int)fmin(fmax(3e8 / first, 3), 30) : 3;
    for (int turn = 0; turn < runs && !s; turn++)
        for (int k = 0; k < 2 && !s; k++) {
            double now = 0;
            s = by->time(run[k], in, 1, &now);
            if (turn == 0 || now < *to[k]) *to[k] = now;
        }
    for (int i = 0; in && i < q->judge.n_in; i++) hone_value_drop(in[i]);
    hone_free(in);
    return s;
}
static hone_status times(hone_quant_search *q) {
    const hone_quant_runner *by = &q->job->runner;
    hone_quant_run *run[2] = {NULL, NULL};
    hone_graph *g = NULL;
    hone_status s = hone_graph_copy(q->plan->graph, &g);
    if (!s) s = by->open(by->context, g, run);
    if (!s) s = hone_quant_rewrite(q->plan, q->job->library, &g);
    if (!s) s = by->open(by->context, g, run + 1);
    if (!s) s = time_both(q, run);
    for (int k = 0; k < 2; k++)
        if (run[k]) by->close(run[k]);
    return s;
}

/* Layers that integers do not make faster, as the others stand. */
static hone_status pace(hone_quant_search *q, double done) {
    int found = 0;
    if (q->for_size || hone_quant_late(q->job, done < 0.5 ? 0.6 : 0.9, "how long each layer takes"))
        return HONE_OK;
    HONE_TRY(hone_quant_tell(q->job, done, "how long each layer takes"));
    HONE_TRY(hone_quant_pace(q, &found));
    if (!found) return HONE_OK;
    char text[64];
    HONE_TRY(hone_quant_search_judge(q, 0, &q->score));
    snprintf(text, sizeof text, "%d layers in f32 that integers do not make faster", found);
    hone_quant_search_note(q, text, &q->score, true);
    return HONE_OK;
}
/* Whether the whole is faster at last; else all layers go back to f32. */
static hone_status faster(hone_quant_search *q) {
    HONE_TRY(times(q));
    if (q->for_size || q->int_ns <= NO_FASTER * q->float_ns) return HONE_OK;
    /* Measured once more before all of it is for nothing. */
    const double was[2] = {q->float_ns, q->int_ns};
    HONE_TRY(times(q));
    q->float_ns = fmin(q->float_ns, was[0]), q->int_ns = fmin(q->int_ns, was[1]);
    if (q->int_ns <= NO_FASTER * q->float_ns) return HONE_OK;
    /* Nor for what other work on the machine did to both: what their threads had of a core says so, too. */
    double floats = 0, ints = 0;
    HONE_TRY(hone_quant_pace_both(q, &floats, &ints));
    if (ints <= NO_FASTER * floats) return q->float_ns = floats, q->int_ns = ints, HONE_OK;
    hone_quant_pace_none(q->plan);
    HONE_TRY(hone_quant_search_judge(q, 0, &q->score));
    hone_quant_search_note(q, "all layers in f32: the model in integers is not faster here", &q->score, true);
    q->int_ns = q->float_ns;
    return HONE_OK;
}
hone_status hone_quant_search_run(hone_quant_search *q) {
    const char *target = q->job->wish->target;
    if (target && strcmp(target, "speed") != 0 && strcmp(target, "size") != 0)
        return hone_fail(HONE_BAD_INPUT, "target '%s': there are speed and size", target);
    q->for_size = target && !strcmp(target, "size");
    HONE_TRY(hone_quant_metric_base(&q->judge, &q->metric));
    HONE_TRY(pace(q, 0.29));
    HONE_TRY(hone_quant_tell(q->job, 0.3, "ranges, all together"));
    HONE_TRY(try_observers(q));
    if (!q->job->wish->no_repairs) {
        HONE_TRY(try_sums(q));
        HONE_TRY(hone_quant_repair(q));
        HONE_TRY(hone_quant_polish_ranges(q));
        HONE_TRY(hone_quant_refit(q)); /* before it is asked which layers hurt */
    }
    const bool detail = q->job->wish->detail != 0;
    bool enough = false;
    HONE_TRY(good(q, &q->score, &enough));
    const bool floats = !enough;
    if (!enough || detail) HONE_TRY(sensitivity(q));
    if (detail && !hone_quant_late(q->job, 0.9, "mixtures")) HONE_TRY(mixtures(q));
    if (!enough) {
        /* Layers go back to f32 for their time, too, which may be for worse: then once more without them. */
        for (int turn = 0; turn < 3 && !enough; turn++) {
            if (turn) q->score.noise = INFINITY, q->score.worth = -INFINITY; /* of other floats */
            HONE_TRY(choose_floats(q));
            HONE_TRY(pace(q, 0.95));
            HONE_TRY(good(q, &q->score, &enough));
            if (!q->metric.name) break;
        }
    }
    if (!q->job->wish->no_repairs) {
        if (floats) HONE_TRY(hone_quant_refit(q)); /* of those whose neighbours have changed since */
        HONE_TRY(hone_quant_shift(q));
    }
    HONE_TRY(faster(q));
    double loss;
    HONE_TRY(hone_quant_search_loss(q, &q->score, &loss)); /* a command's number of what is written */
    if (!detail || hone_quant_late(q->job, 1, "what the report shows beyond what decided")) return HONE_OK;
    HONE_TRY(hone_quant_behind(q));
    return put_mixture(q, "written");
}
