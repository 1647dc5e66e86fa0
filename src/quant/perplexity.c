/* SPDX-License-Identifier: Apache-2.0
   perplexity: how well a language model foresees the next token: exp of the mean of -log of the share that
   its logits give to the token which came. Inputs and outputs say by their shapes which they are: tokens
   [..., T] of whole numbers beside logits [..., T, V]. */
#include <math.h>
#include <string.h>

#include "quant/judge.h"

static bool whole(const hone_value *v) {
    return v && v->tag == HONE_TAG_TENSOR && (v->dtype == HONE_DTYPE_I64 || v->dtype == HONE_DTYPE_I32);
}
static bool fits(const hone_value *tokens, const hone_value *logits) {
    return whole(tokens) && logits && logits->tag == HONE_TAG_TENSOR && tokens->rank >= 1 &&
           hone_dtypes[logits->dtype].kind == HONE_KIND_FLOAT && logits->rank == tokens->rank + 1 &&
           !memcmp(logits->dim, tokens->dim, sizeof *tokens->dim * (size_t)tokens->rank) &&
           logits->dim[tokens->rank] >= 2;
}
static bool ends_in_ids(const char *name) {
    const size_t n = strlen(name);
    return n >= 3 && !strcmp(name + n - 3, "ids") && !strstr(name, "type") && !strstr(name, "position");
}
/* Masks and kinds of tokens have the same shape: the input named for ids is meant where several have it. */
hone_status hone_quant_tokens_find(hone_quant_judge *j, const hone_graph *g, hone_value *const *in,
                                   hone_value *const *out) {
    for (int o = 0; o < j->n_out; o++) {
        int found = -1, n = 0;
        for (int i = 0; i < j->n_in; i++) {
            if (!fits(in[i], out[o])) continue;
            if (n++ == 0 ||
                (ends_in_ids(g->var.at[g->in.at[i]].name) && !ends_in_ids(g->var.at[g->in.at[found]].name)))
                found = i;
        }
        if (n > 1 && !ends_in_ids(g->var.at[g->in.at[found]].name)) continue;
        if (n) return j->tokens_in = found, j->logits_out = o, HONE_OK;
    }
    return hone_fail(HONE_BAD_INPUT, "metric perplexity: the model has no output of logits [..., tokens, "
                                     "words] beside an input of tokens, which are whole numbers");
}

hone_status hone_quant_tokens_loss(const hone_value *tokens, const hone_value *logits, double *sum,
                                   int64_t *n) {
    if (!fits(tokens, logits))
        return hone_fail(HONE_BAD_INPUT, "metric perplexity: a sample's logits are not a row for each token");
    const int64_t t = tokens->dim[tokens->rank - 1], v = logits->dim[tokens->rank],
                  rows = hone_value_count(tokens);
    for (int64_t r = 0; r < rows; r++) {
        if (r % t == t - 1) continue; /* nothing follows */
        const int64_t next = tokens->dtype == HONE_DTYPE_I64 ? ((const int64_t *)tokens->data)[r + 1]
                                                             : ((const int32_t *)tokens->data)[r + 1];
        double most = -INFINITY, all = 0;
        if (next < 0 || next >= v)
            return hone_fail(HONE_BAD_INPUT,
                             "metric perplexity: token %lld is none of the model's %lld words",
                             (long long)next, (long long)v);
        for (int64_t k = 0; k < v; k++) most = fmax(most, hone_value_f64(logits, r * v + k));
        for (int64_t k = 0; k < v; k++) all += exp(hone_value_f64(logits, r * v + k) - most);
        const double lost = log(all) + most - hone_value_f64(logits, r * v + next);
        *sum += isfinite(lost) ? lost : 1e3, ++*n;
    }
    return HONE_OK;
}
