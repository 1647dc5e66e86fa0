/* SPDX-License-Identifier: Apache-2.0
   repair: units of channels. Where the channels of a layer's operand are of very different sizes, one grid is
   too coarse for the small ones: each channel is divided by a unit of its own before it
   is rounded, and the layer's weights for it are multiplied by that unit. Where a Conv makes the operand, its
   weights take the division; else a product with a constant does, which is fused with
   what is there.

        depthwise   the unit is the channel's extreme: each channel has weights of its own, so nothing is lost
                    on their side (cross-layer equalization)
        others      the root of the operand's extreme over the weights': what is hard to round is shared
                    between both (SmoothQuant, a half to each)

   A unit is tried where all readers of the operand are layers, on the layer alone, and kept where the model's
   outputs come nearer. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "quant/calibrate.h"
#include "quant/search.h"

enum { SAMPLES = 4 };

/* The largest weight for an input channel, over all that read the class. */
static void weights_by_channel(const hone_quant_plan *p, int class, float *most, bool *depthwise) {
    const hone_quant_class *c = p->class.at + class;
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        const hone_value *w = p->graph->var.at[l->w].value;
        if (l->stays || p->class_of[l->x] != class) continue;
        *depthwise = l->depthwise;
        int64_t step = 1;
        for (int d = l->conv ? l->depthwise ? 1 : 2 : l->axis ? 1 : 2; d < w->rank; d++) step *= w->dim[d];
        if (l->depthwise) step *= w->dim[0] / c->channels;
        for (int64_t i = 0, n = hone_value_count(w); i < n; i++) {
            float *m = most + i / step % c->channels;
            *m = fmaxf(*m, fabsf(((const float *)w->data)[i]));
        }
    }
}
/* Whether the weights of all readers have that many input channels: groups other than 1 and depthwise do
   not. */
static bool fits(const hone_quant_plan *p, int class) {
    const hone_quant_class *c = p->class.at + class;
    /* who else reads it would see units, unless it takes floats */
    const bool floats = hone_quant_goes_on(p, c->var);
    if (c->channels < 2 || !c->least || !(floats || hone_quant_layers_alone(p, c->var))) return false;
    for (int k = 0; k < p->layer.n; k++) {
        const hone_quant_layer *l = p->layer.at + k;
        const hone_value *w = p->graph->var.at[l->w].value;
        if (p->class_of[l->x] != class) continue;
        if ((l->stays && !floats) || l->x != c->var) return false;
        if (l->depthwise ? w->dim[0] % c->channels != 0 ||
                               hone_attr_int(p->graph->node.at[l->node]->attr,
                                             p->graph->node.at[l->node]->n_attr, "group", 1) != c->channels
            : l->conv ? w->dim[1] != c->channels
                      : w->dim[l->axis ? 0 : 1] != c->channels)
            return false;
    }
    return true;
}
/* *made false: there is nothing to even out. */
static hone_status make_units(hone_quant_plan *p, int class, bool *made) {
    hone_quant_class *c = p->class.at + class;
    float *weights = hone_alloc(sizeof *weights * (size_t)c->channels),
          *unit = hone_alloc(sizeof *unit * (size_t)c->channels), least = INFINITY, most = 0;
    bool depthwise = false;
    *made = false;
    if (!weights || !unit) {
        hone_free(weights), hone_free(unit);
        return hone_quant_no_memory();
    }
    weights_by_channel(p, class, weights, &depthwise);
    for (int64_t k = 0; k < c->channels; k++) {
        const float x = fmaxf(-c->least[k], c->most[k]);
        unit[k] = depthwise ? x : sqrtf(x / fmaxf(weights[k], 1e-8f));
        if (x > 0 && weights[k] > 0) least = fminf(least, unit[k]), most = fmaxf(most, unit[k]);
    }
    double low = 0, high = 0;
    for (int64_t k = 0; k < c->channels; k++) {
        if (!(unit[k] > most * 1e-4f)) unit[k] = fmaxf(most * 1e-4f, 1e-20f); /* a channel of nothing */
        low = fmin(low, c->least[k] / (double)unit[k]), high = fmax(high, c->most[k] / (double)unit[k]);
    }
    hone_free(weights);
    if (!(most > 1.5f * least) || !(high > low)) {
        hone_free(unit);
        return HONE_OK;
    }
    c->unit = unit, c->plain = c->range, c->range = (hone_range){low, high};
    hone_quant_plan_forget(p, class);
    *made = true;
    return HONE_OK;
}
static void take_back(hone_quant_plan *p, int class) {
    hone_quant_class *c = p->class.at + class;
    hone_quant_plan_forget(p, class);
    hone_free(c->unit);
    c->unit = NULL, c->range = c->plain;
}
/* The layers of a class in integers, all others not. */
static void alone(hone_quant_plan *p, int class) {
    for (int k = 0; k < p->layer.n; k++)
        p->layer.at[k].stays = p->layer.at[k].slow || p->class_of[p->layer.at[k].x] != class;
}
static void together(hone_quant_plan *p) {
    for (int k = 0; k < p->layer.n; k++) p->layer.at[k].stays = p->layer.at[k].why != NULL;
}
hone_status hone_quant_repair(hone_quant_search *q) {
    hone_quant_plan *p = q->plan;
    hone_status s = HONE_OK;
    int kept = 0, tried = 0;
    for (int class = 0; class < p->class.n && !s; class ++) {
        hone_quant_score without = {0}, with = {0};
        bool made = false;
        alone(p, class);
        s = hone_quant_tell(q->job, 0.32 + 0.08 * class / p->class.n, "units of channels");
        if (s || !fits(p, class)) continue;
        if (hone_quant_late(q->job, 0.8, "units of some channels")) break;
        s = hone_quant_search_judge(q, SAMPLES, &without);
        if (!s) s = make_units(p, class, &made);
        if (s || !made) continue;
        tried++;
        s = hone_quant_search_judge(q, SAMPLES, &with);
        if (s || !(with.noise < 0.9 * without.noise)) take_back(p, class);
        else kept++;
    }
    together(p);
    if (s || !kept) return s;
    /* All of them at once must help too. */
    hone_quant_score now;
    char text[96];
    HONE_TRY(hone_quant_search_judge(q, 0, &now));
    const bool better = hone_quant_search_better(q, &now, &q->score);
    snprintf(text, sizeof text, "units of channels, for %d of %d tensors", kept, tried);
    hone_quant_search_note(q, text, &now, better);
    if (better) q->score = now;
    for (int k = 0; k < p->class.n && !better; k++)
        if (p->class.at[k].unit) take_back(p, k);
    return HONE_OK;
}
