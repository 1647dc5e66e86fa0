/* SPDX-License-Identifier: Apache-2.0
   search: which layers are integers, which repairs are kept: by what the whole model says on the samples that
   judge. */
#ifndef HONE_QUANT_SEARCH_H
#define HONE_QUANT_SEARCH_H
#include "quant/judge.h"
#include "quant/plan.h"

typedef struct {
    const hone_quant_job *job;
    hone_quant_plan *plan;
    hone_quant_judge judge;
    hone_quant_judge tune; /* a few of the samples that showed ranges */
    hone_quant_metric metric;
    const int64_t *shown; /* numbers of the samples that showed ranges */
    int n_shown;
    hone_quant_score score;  /* out: of the plan as it is left */
    double float_ns, int_ns; /* out: the whole model */
    bool for_size;           /* --target size: time decides nothing */
    hone_text tried;         /* out: JSON objects, what was tried and what came of it */
    hone_text mixtures;      /* likewise, with wish->detail: from all layers in integers to none */
} hone_quant_search;
/* A layer or a class and what it is worth. For qsort: the most first, ties in order. */
typedef struct {
    int k;
    double worth;
} hone_quant_ranked;
int hone_quant_by_worth(const void *, const void *);
hone_status hone_quant_search_run(hone_quant_search *) HONE_CHECKED;
/* The plan as it stands, on the first `most` samples that judge; 0: all. */
hone_status hone_quant_search_judge(hone_quant_search *, int most, hone_quant_score *out) HONE_CHECKED;
/* What the plan as it stands loses by the metric; its score, which a command is asked for only here. */
hone_status hone_quant_search_loss(hone_quant_search *, hone_quant_score *, double *loss) HONE_CHECKED;
bool hone_quant_search_better(const hone_quant_search *, const hone_quant_score *a,
                              const hone_quant_score *b); /* a is nearer to the float model */
void hone_quant_search_note(hone_quant_search *, const char *what, const hone_quant_score *, bool kept);

/* pace.c: layers that integers make no faster stay f32. Judges again what has changed; `found`: how many. */
hone_status hone_quant_pace(hone_quant_search *, int *found) HONE_CHECKED;
/* Nanoseconds of all steps of the plan as it stands. */
hone_status hone_quant_pace_whole(hone_quant_search *, double *ns) HONE_CHECKED;
/* Of the float model and of the plan as it stands. */
hone_status hone_quant_pace_both(hone_quant_search *, double *floats, double *ints) HONE_CHECKED;
void hone_quant_pace_none(hone_quant_plan *); /* all layers stay f32 */

/* polish.c: ranges, and which layers stay f32 (with `most` multiply-adds), once more by the whole model. */
hone_status hone_quant_polish_ranges(hone_quant_search *) HONE_CHECKED;
hone_status hone_quant_polish_floats(hone_quant_search *, double most) HONE_CHECKED;

/* detail.c: how far each layer's result is off, all before it being as it was decided. */
hone_status hone_quant_behind(hone_quant_search *) HONE_CHECKED;
void hone_quant_detail_put(hone_text *, const hone_quant_plan *, const hone_quant_layer *);

/* repair.c: changes of weights that make rounding hurt less, each where it helps. */
hone_status hone_quant_repair(hone_quant_search *) HONE_CHECKED;
/* refit.c: rounding of weights by what layers read, and biases, where the whole model comes nearer. */
hone_status hone_quant_refit(hone_quant_search *) HONE_CHECKED;
/* shift.c: biases once more, by what the quantized model reads. */
hone_status hone_quant_shift(hone_quant_search *) HONE_CHECKED;
#endif
