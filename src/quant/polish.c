/* SPDX-License-Identifier: Apache-2.0
   polish: what was decided by parts is looked at again in the whole. A range was chosen by the nodes that
   read it, all before them in floats; which layers stay f32 by how much each hurts alone. Both change once
   all the others are integers, too.

        ranges      those whose layers lose most: the other observers' ranges, and the one that is there a
                    little narrower and wider, each in the model as it stands, one after the other
        floats      each layer changes sides alone, in the model as it stands: what that brings or costs for
                    its work says anew which of them are worth floats

   Samples that showed ranges say what is better here, a few of them; those that judge say whether all of it
   together is kept. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "quant/calibrate.h"
#include "quant/search.h"

enum { TRIALS = 48, ROUNDS = 2, FEW = 6 /* samples, for floats */ };
#define BETTER 0.97 /* of the noise: less is chance */

/* On the samples that tune, the first `most` of them; 0: all. */
static hone_status noise_now(hone_quant_search *q, int most, double *noise) {
    hone_graph *g = NULL;
    hone_quant_score score;
    HONE_TRY(hone_quant_rewrite(q->plan, q->job->library, &g));
    HONE_TRY(hone_quant_judge_graph(&q->tune, g, most, &score));
    *noise = score.noise;
    return HONE_OK;
}

/* ---- ranges -------------------------------------------------------------------------------------------- */
/* Classes that layers in integers read, those that lose most first; how many. */
static int worst(const hone_quant_plan *p, hone_quant_ranked *to) {
    int n = 0;
    for (int k = 0; k < p->class.n; k++) {
        const hone_quant_class *c = p->class.at + k;
        bool read = false;
        for (int l = 0; l < p->layer.n; l++)
            read |= !p->layer.at[l].stays && p->class_of[p->layer.at[l].x] == k;
        const double e = c->observer >= 0 ? c->error[c->observer] : NAN;
        if (read) to[n++] = (hone_quant_ranked){k, e == e ? e : 0};
    }
    qsort(to, (size_t)n, sizeof *to, hone_quant_by_worth);
    return n;
}
static bool alike(hone_range a, hone_range b) {
    const double span = 0.01 * (a.high - a.low);
    return fabs(a.low - b.low) <= span && fabs(a.high - b.high) <= span;
}
/* Ranges that are worth a look beside the one that is there, and whose they are. */
static int others(const hone_quant_plan *p, const hone_quant_class *c, hone_range *to, int *observer) {
    static const double wider[] = {0.85, 0.93, 1.1};
    int n = 0;
    for (int o = 0; o < HONE_OBSERVERS && !c->unit; o++) {
        const hone_range r =
            hone_observer_range((hone_observer)o, c->seen, p->highest - p->lowest + 1, p->symmetric);
        bool known = !(r.high > r.low) || alike(c->range, r);
        for (int k = 0; k < n; k++) known |= alike(to[k], r);
        if (!known) to[n] = r, observer[n++] = o;
    }
    for (size_t k = 0; k < sizeof wider / sizeof *wider; k++) {
        hone_range r = {c->range.low * wider[k], c->range.high * wider[k]};
        if (!c->unit) r.low = fmax(r.low, c->seen->least), r.high = fmin(r.high, c->seen->most);
        if (r.high > r.low && !alike(c->range, r)) to[n] = r, observer[n++] = c->observer;
    }
    return n;
}
hone_status hone_quant_polish_ranges(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    double best = 0;
    if (q->job->wish->observer) return HONE_OK; /* the caller's */
    hone_quant_ranked *order = hone_alloc(sizeof *order * (size_t)(p->class.n + 1));
    hone_range *was = hone_alloc(sizeof *was * (size_t)(p->class.n + 1));
    int *from = hone_alloc(sizeof *from * (size_t)(p->class.n + 1)), changed = 0, tried = 0;
    hone_status s = order && was && from ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < p->class.n && !s; k++)
        was[k] = p->class.at[k].range, from[k] = p->class.at[k].observer;
    const int n = s ? 0 : worst(p, order);
    if (!s) s = noise_now(q, 0, &best);
    for (int k = 0; k < n && tried < TRIALS && best > 0 && !s; k++) {
        hone_quant_class *c = p->class.at + order[k].k;
        hone_range range[HONE_OBSERVERS + 4];
        int whose[HONE_OBSERVERS + 4];
        const int some = others(p, c, range, whose);
        bool moved = false;
        for (int i = 0; i < some && !s; i++, tried++) {
            const hone_range kept = c->range;
            const int kept_from = c->observer;
            double now = 0;
            if (hone_quant_late(q->job, 0.8, "some ranges, in the whole model")) break;
            s = hone_quant_tell(q->job, 0.4, "ranges, in the whole model");
            c->range = range[i], c->observer = whose[i];
            if (!s) s = noise_now(q, 0, &now);
            if (!s && now < BETTER * best) best = now, moved = true;
            else c->range = kept, c->observer = kept_from;
        }
        changed += moved;
    }
    if (!s && changed) {
        hone_quant_score now;
        char text[96];
        s = hone_quant_search_judge(q, 0, &now);
        const bool keep = !s && hone_quant_search_better(q, &now, &q->score);
        snprintf(text, sizeof text, "ranges, in the whole model, for %d tensors", changed);
        if (!s) hone_quant_search_note(q, text, &now, keep);
        if (keep) q->score = now;
        for (int k = 0; k < p->class.n && !keep; k++)
            p->class.at[k].range = was[k], p->class.at[k].observer = from[k];
    }
    hone_free(order), hone_free(was), hone_free(from);
    return s;
}

/* ---- floats -------------------------------------------------------------------------------------------- */
/* What each layer in integers adds to the noise as the others stand. */
static hone_status in_the_whole(hone_quant_search *q, double *adds) {
    hone_quant_plan *p = q->plan;
    double now = 0;
    HONE_TRY(noise_now(q, FEW, &now));
    for (int k = 0; k < p->layer.n; k++) {
        hone_quant_layer *l = p->layer.at + k;
        double other = 0;
        if (l->slow) continue;
        if (hone_quant_late(q->job, 0.9, "how much some layers hurt in the whole model")) {
            adds[k] = -1; /* not known */
            continue;
        }
        HONE_TRY(hone_quant_tell(q->job, 0.9, "each layer in the whole model"));
        l->stays = !l->stays;
        const hone_status s = noise_now(q, FEW, &other);
        l->stays = !l->stays;
        if (s) return s;
        adds[k] = l->stays ? other - now : now - other;
    }
    return HONE_OK;
}
/* The layers that add most for their work stay f32, as many as `most` allows. */
static bool choose(hone_quant_plan *p, const double *adds, double most, hone_quant_ranked *order) {
    bool changed = false;
    double spent = 0, all = 0;
    for (int k = 0; k < p->layer.n; k++) all += p->layer.at[k].macs;
    for (int k = 0; k < p->layer.n; k++)
        order[k] = (hone_quant_ranked){k, adds[k] / (p->layer.at[k].macs + all / 500 + 1e-9)};
    qsort(order, (size_t)p->layer.n, sizeof *order, hone_quant_by_worth);
    for (int k = 0; k < p->layer.n; k++) {
        hone_quant_layer *l = p->layer.at + order[k].k;
        if (l->slow) continue;
        const bool stays = adds[order[k].k] > 0 && spent + l->macs <= most;
        if (stays) spent += l->macs;
        changed |= stays != l->stays;
        l->stays = stays, l->why = stays ? "it hurts most for its work" : NULL;
    }
    return changed;
}
hone_status hone_quant_polish_floats(hone_quant_search *q, double most) {
    hone_quant_plan *p = q->plan;
    double *adds = hone_alloc(sizeof *adds * (size_t)(p->layer.n + 1));
    hone_quant_ranked *order = hone_alloc(sizeof *order * (size_t)(p->layer.n + 1));
    const char **was = hone_alloc(sizeof *was * (size_t)(p->layer.n + 1));
    hone_status s = adds && order && was ? HONE_OK : hone_quant_no_memory();
    for (int round = 0; round < ROUNDS && !s; round++) {
        hone_quant_score now;
        if (hone_quant_late(q->job, 0.9, "which layers stay f32, in the whole model")) break;
        for (int k = 0; k < p->layer.n; k++) was[k] = p->layer.at[k].stays ? p->layer.at[k].why : NULL;
        s = in_the_whole(q, adds);
        if (s || !choose(p, adds, most, order)) break;
        s = hone_quant_search_judge(q, 0, &now);
        const bool keep = !s && hone_quant_search_better(q, &now, &q->score);
        if (!s) hone_quant_search_note(q, "other layers in f32, by the whole model", &now, keep);
        if (keep) q->score = now;
        for (int k = 0; k < p->layer.n && !keep; k++)
            p->layer.at[k].stays = was[k] != NULL, p->layer.at[k].why = was[k];
        if (!keep) break;
    }
    hone_free(adds), hone_free(order), hone_free(was);
    return s;
}
