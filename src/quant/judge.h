/* SPDX-License-Identifier: Apache-2.0
   judge: how far a quantized graph's outputs are from the float one's, on samples that showed no ranges. */
#ifndef HONE_QUANT_JUDGE_H
#define HONE_QUANT_JUDGE_H
#include "quant/quant.h"

typedef struct {
    /* power of the difference as a share of the outputs' power: the mean over outputs; columns far smaller
       than the largest count by themselves */
    double noise;
    double cosine; /* mean over samples and outputs */
    double mse;    /* likewise, in the outputs' own units */
    /* share of rows of the first output whose largest element is the same; where each sample has many rows of
       shares, twice those that both have of a rarer class, of all that one of them has (F1); NaN: it has no
       rows of classes */
    double top1;
    /* by the caller's measure, mean over samples, or by their command; NaN: there is none, or it was not
       asked yet */
    double worth;
    double perplexity; /* of next tokens; NaN: not asked for */
} hone_quant_score;
static inline double hone_quant_decibel(double noise);

typedef struct {
    const hone_quant_job *job;
    const int64_t *sample; /* numbers of the caller's samples */
    int n;
    /* n times one an output; where they are large their numbers lie in a file, and these have none */
    hone_value **want;
    int64_t *place; /* in it */
    void *file;
    int n_in, n_out;
    bool noise_only; /* the caller's measure is not asked */
    /* metric perplexity: the input that is tokens and the output that has a row for each, and every sample's
       tokens; NULL: not asked for */
    int tokens_in, logits_out;
    hone_value **tokens;
} hone_quant_judge;
/* The float graph's answers. */
hone_status hone_quant_judge_open(const hone_quant_job *, const hone_graph *, const int64_t *sample, int n,
                                  hone_quant_judge *out) HONE_CHECKED;
void hone_quant_judge_close(hone_quant_judge *);
/* Takes the graph. On the first `most` samples; 0: all. */
hone_status hone_quant_judge_graph(const hone_quant_judge *, hone_graph *take, int most,
                                   hone_quant_score *out) HONE_CHECKED;

typedef struct { /* the caller's metric: what it costs, and what it may cost */
    const char *name;
    double limit;
    double base; /* of the float model, where the limit is a share of that */
} hone_quant_metric;
hone_status hone_quant_metric_find(const hone_quantizing *, hone_quant_metric *out) HONE_CHECKED;
/* Asks what it costs the float model, where the limit is a share of that. */
hone_status hone_quant_metric_base(const hone_quant_judge *, hone_quant_metric *) HONE_CHECKED;
/* What is lost by a metric: 0 is nothing. sqnr: decibels with the sign turned. */
double hone_quant_loss(const hone_quant_metric *, const hone_quant_score *);
void hone_quant_score_put(hone_text *, const hone_quant_score *); /* as a JSON object */
/* What it costs and may cost, and what the float model has, as members of an object. */
void hone_quant_metric_put(hone_text *, const hone_quant_metric *, const hone_quant_score *);

/* perplexity.c: which input is tokens and which output has a row of logits for each. */
hone_status hone_quant_tokens_find(hone_quant_judge *, const hone_graph *, hone_value *const *in,
                                   hone_value *const *out) HONE_CHECKED;
/* Adds -log of the share that each next token has, and how many they are. */
hone_status hone_quant_tokens_loss(const hone_value *tokens, const hone_value *logits, double *sum,
                                   int64_t *n) HONE_CHECKED;

#include <math.h>
static inline double hone_quant_decibel(double noise) { return noise > 1e-20 ? -10 * log10(noise) : 200; }
#endif
