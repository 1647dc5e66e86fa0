/* SPDX-License-Identifier: Apache-2.0
   judge: see judge.h. */
#include "quant/judge.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_KINDS =
        128, /* columns of an output that are measured each by itself: boxes and scores beside each other */
    MOST_KEPT = 64 << 10 /* bytes of an output that are kept in memory for every sample */
};

/* ---- one output of one sample -------------------------------------------------------------------------- */
typedef struct {
    double noise, cosine, mse;
    int64_t rows, same; /* of rows of classes */
} compared;
static double at(const hone_value *v, int64_t k) {
    return v->dtype == HONE_DTYPE_F32 ? ((const float *)v->data)[k] : hone_value_f64(v, k);
}
static int64_t largest(const hone_value *v, int64_t row, int64_t n) {
    int64_t best = 0;
    for (int64_t k = 1; k < n; k++)
        if (at(v, row * n + k) > at(v, row * n + best)) best = k;
    return best;
}
/* Rows of shares that add up to 1, as Softmax makes them: an answer at each place. */
static bool are_shares(const hone_value *v, int64_t rows, int64_t n) {
    for (int64_t r = 0; r < rows; r++) {
        double sum = 0;
        for (int64_t k = 0; k < n; k++) {
            const double x = at(v, r * n + k);
            if (!(x >= 0)) return false;
            sum += x;
        }
        if (!(fabs(sum - 1) < 1e-3)) return false;
    }
    return rows > 1;
}
/* Most places say the same (nothing is here; a blank), which any model gets right: what counts is the others,
   found in both (twice) or in one alone. Fewer than MOST_KINDS classes. */
static void agree(const hone_value *want, const hone_value *got, int64_t rows, int64_t n, compared *c) {
    int64_t times[MOST_KINDS] = {0}, often = 0;
    for (int64_t r = 0; r < rows; r++) times[largest(want, r, n)]++;
    for (int64_t k = 1; k < n; k++)
        if (times[k] > times[often]) often = k;
    for (int64_t r = 0; r < rows; r++) {
        const int64_t a = largest(want, r, n), b = largest(got, r, n);
        c->rows += (a != often) + (b != often), c->same += a == b && a != often ? 2 : 0;
    }
}
static compared compare(const hone_value *want, const hone_value *got) {
    compared c = {.noise = 1};
    if (!want || !got || want->tag != HONE_TAG_TENSOR || got->tag != HONE_TAG_TENSOR ||
        want->dtype == HONE_DTYPE_STRING || want->rank != got->rank ||
        memcmp(want->dim, got->dim, sizeof *want->dim * (size_t)want->rank) != 0)
        return c;
    const int64_t n = hone_value_count(want), last = want->rank ? want->dim[want->rank - 1] : 1;
    const int64_t kinds = want->rank >= 3 && last >= 2 && last <= MOST_KINDS && n / last >= 32 ? last : 1;
    double power[MOST_KINDS] = {0}, off[MOST_KINDS] = {0}, dot = 0, ww = 0, gg = 0, sum = 0;
    for (int64_t k = 0; k < n; k++) {
        const double w = at(want, k), g = at(got, k), d = w == g ? 0 : w - g; /* infinities that agree */
        const int64_t kind = kinds > 1 ? k % last : 0;
        if (!isfinite(w)) continue;
        power[kind] += w * w, off[kind] += isfinite(d) ? d * d : 1e30, dot += w * g, ww += w * w, gg += g * g;
    }
    /* Kinds of like size are one: coordinates beside probabilities are two. */
    double most = 0, large[2] = {0}, small[2] = {0};
    for (int64_t k = 0; k < kinds; k++) most = power[k] > most ? power[k] : most;
    for (int64_t k = 0; k < kinds; k++) {
        double *to = power[k] * 100 < most ? small : large;
        to[0] += power[k], to[1] += off[k], sum += off[k];
    }
    c.noise = large[0] > 0 ? large[1] / large[0] : large[1] > 0;
    if (small[0] > 0) c.noise = (c.noise + small[1] / small[0]) / 2;
    if (!(c.noise < 1)) c.noise = 1;
    c.mse = n > 0 ? sum / (double)n : 0;
    c.cosine = ww > 0 && gg > 0 ? dot / sqrt(ww) / sqrt(gg) : ww == gg;
    /* classes; words of a vocabulary */
    if ((want->rank == 2 && last >= 3) || (want->rank == 3 && last >= MOST_KINDS))
        for (int64_t r = 0; r < n / last; r++)
            c.rows++, c.same += largest(want, r, last) == largest(got, r, last);
    else if (want->rank == 3 && last >= 2 && are_shares(want, n / last, last))
        agree(want, got, n / last, last, &c);
    return c;
}

/* ---- the float graph's answers ------------------------------------------------------------------------- */
static void drop(hone_value **v, int n) {
    for (int k = 0; k < n; k++) hone_value_drop(v[k]), v[k] = NULL;
}
static hone_status run_sample(const hone_quant_judge *j, hone_quant_run *run, int k, hone_value **in,
                              hone_value **out) {
    hone_status s = hone_quant_sample(j->job, j->sample[k], in);
    if (!s) s = j->job->runner.run(run, in, out);
    if (s) s = hone_fail_at(s, "sample %lld: ", (long long)j->sample[k] + 1);
    return s;
}
/* Answers of many numbers go to a file without a name; where there can be none they stay in memory. */
static hone_status put_away(hone_quant_judge *j, int k) {
    for (int i = k * j->n_out; i < (k + 1) * j->n_out; i++) {
        hone_value *v = j->want[i], *shell = NULL;
        if (v->tag != HONE_TAG_TENSOR || v->dtype == HONE_DTYPE_STRING || v->bytes <= MOST_KEPT) continue;
        if (!j->file && !(j->file = tmpfile())) return HONE_OK;
        if (fseeko(j->file, 0, SEEK_END) || (j->place[i] = (int64_t)ftello(j->file)) < 0 ||
            fwrite(v->data, 1, v->bytes, j->file) != v->bytes || fflush(j->file))
            return HONE_OK; /* it is full, perhaps */
        HONE_TRY(hone_value_shell(v->dtype, v->dim, v->rank, &shell));
        hone_value_drop(v);
        j->want[i] = shell;
    }
    return HONE_OK;
}
static hone_status bring(const hone_quant_judge *j, int i, hone_value **out) {
    hone_value *v = j->want[i];
    *out = NULL;
    if (v->tag != HONE_TAG_TENSOR || v->data || !v->bytes) return *out = hone_value_hold(v), HONE_OK;
    HONE_TRY(hone_value_tensor(v->dtype, v->dim, v->rank, out));
    if (!fseeko(j->file, (off_t)j->place[i], SEEK_SET) &&
        fread((*out)->data, 1, v->bytes, j->file) == v->bytes)
        return HONE_OK;
    hone_value_drop(*out), *out = NULL;
    return hone_fail(HONE_IO, "the float model's answers cannot be read back from a temporary file");
}
/* The tokens of sample k, kept for every graph that is judged. */
static hone_status keep_tokens(hone_quant_judge *j, const hone_graph *g, int k, hone_value *const *in) {
    if (!j->tokens) return HONE_OK;
    if (k == 0) HONE_TRY(hone_quant_tokens_find(j, g, in, j->want));
    j->tokens[k] = hone_value_hold(in[j->tokens_in]);
    return HONE_OK;
}
hone_status hone_quant_judge_open(const hone_quant_job *job, const hone_graph *g, const int64_t *sample,
                                  int n, hone_quant_judge *out) {
    hone_quant_judge j = {.job = job, .sample = sample, .n = n, .n_in = g->in.n, .n_out = g->out.n};
    hone_value **in = hone_alloc(sizeof *in * (size_t)(j.n_in + 1));
    hone_quant_run *run = NULL;
    const bool tokens = job->wish->metric && !strcmp(job->wish->metric, "perplexity");
    j.want = hone_alloc(sizeof *j.want * ((size_t)n * (size_t)j.n_out + 1));
    j.place = hone_alloc(sizeof *j.place * ((size_t)n * (size_t)j.n_out + 1));
    if (tokens) j.tokens = hone_alloc(sizeof *j.tokens * (size_t)n);
    hone_status s = in && j.want && j.place && (j.tokens || !tokens) ? HONE_OK : hone_quant_no_memory();
    if (!s) s = hone_quant_open(job, g, NULL, 0, &run);
    for (int k = 0; k < n && !s; k++) {
        s = run_sample(&j, run, k, in, j.want + (size_t)k * (size_t)j.n_out);
        if (!s) s = keep_tokens(&j, g, k, in);
        if (!s) s = put_away(&j, k);
        drop(in, j.n_in);
    }
    if (run) job->runner.close(run);
    hone_free(in);
    if (s) hone_quant_judge_close(&j);
    else *out = j;
    return s;
}
void hone_quant_judge_close(hone_quant_judge *j) {
    if (j->want) drop(j->want, j->n * j->n_out);
    if (j->tokens) drop(j->tokens, j->n);
    hone_free(j->want), hone_free(j->place), hone_free(j->tokens);
    if (j->file) fclose(j->file);
    *j = (hone_quant_judge){0};
}
hone_status hone_quant_judge_graph(const hone_quant_judge *j, hone_graph *take, int most,
                                   hone_quant_score *out) {
    const hone_quantizing *wish = j->job->wish;
    hone_quant_run *run = NULL;
    hone_quant_score total = {0};
    int64_t rows = 0, same = 0, words = 0;
    double lost = 0;
    const int n = most > 0 && most < j->n ? most : j->n;
    HONE_TRY(j->job->runner.open(j->job->runner.context, take, &run));
    hone_value **in = hone_alloc(sizeof *in * (size_t)(j->n_in + 1)),
               **got = hone_alloc(sizeof *got * (size_t)(j->n_out + 1)),
               **want = hone_alloc(sizeof *want * (size_t)(j->n_out + 1));
    hone_status s = in && got && want ? HONE_OK : hone_quant_no_memory();
    for (int k = 0; k < n && !s; k++) {
        s = run_sample(j, run, k, in, got);
        drop(in, j->n_in);
        for (int o = 0; o < j->n_out && !s; o++) s = bring(j, k * j->n_out + o, want + o);
        if (!s && j->tokens) s = hone_quant_tokens_loss(j->tokens[k], got[j->logits_out], &lost, &words);
        for (int o = 0; o < j->n_out && !s; o++) {
            const compared c = compare(want[o], got[o]);
            const double share = 1.0 / (n * j->n_out);
            total.noise += c.noise * share, total.cosine += c.cosine * share, total.mse += c.mse * share;
            if (o == 0) rows += c.rows, same += c.same;
        }
        if (!s && wish->measure && !j->noise_only)
            total.worth += wish->measure(wish->arg, want, got, j->n_out) / n;
        drop(got, j->n_out), drop(want, j->n_out);
    }
    j->job->runner.close(run);
    if (got) drop(got, j->n_out);
    if (want) drop(want, j->n_out);
    hone_free(in), hone_free(got), hone_free(want);
    if (s) return s;
    total.top1 = rows ? (double)same / (double)rows : NAN;
    if (!wish->measure || j->noise_only) total.worth = NAN;
    total.perplexity = words ? exp(lost / (double)words) : NAN;
    *out = total;
    return HONE_OK;
}

/* ---- metrics ------------------------------------------------------------------------------------------- */
hone_status hone_quant_metric_find(const hone_quantizing *wish, hone_quant_metric *out) {
    static const char *const names[] = {"top1", "cosine", "mse", "sqnr", "perplexity"};
    *out = (hone_quant_metric){.name = NULL, .limit = wish->max_drop};
    if ((wish->measure != NULL) + (wish->measure_file != NULL) + (wish->metric != NULL) > 1)
        return hone_fail(HONE_BAD_INPUT, "metric, measure and measure_file: one of them says what is good");
    if (wish->measure) out->name = "measure";
    if (wish->measure_file) out->name = "command";
    for (size_t k = 0; k < sizeof names / sizeof *names && wish->metric; k++)
        if (!strcmp(names[k], wish->metric)) out->name = names[k];
    if (wish->metric && !out->name)
        return hone_fail(HONE_BAD_INPUT, "metric '%s': there are top1, cosine, mse, sqnr and perplexity",
                         wish->metric);
    if (!(wish->max_drop == wish->max_drop)) return hone_fail(HONE_BAD_INPUT, "max_drop is not a number");
    if (out->name && !strcmp(out->name, "sqnr")) out->limit = -wish->max_drop;
    return HONE_OK;
}
hone_status hone_quant_metric_base(const hone_quant_judge *j, hone_quant_metric *m) {
    double lost = 0;
    int64_t words = 0;
    if (!m->name) return HONE_OK;
    if (!strcmp(m->name, "command")) return j->job->runner.measure(j->job->runner.context, NULL, &m->base);
    for (int k = 0; k < j->n && j->tokens; k++) {
        hone_value *logits;
        HONE_TRY(bring(j, k * j->n_out + j->logits_out, &logits));
        const hone_status s = hone_quant_tokens_loss(j->tokens[k], logits, &lost, &words);
        hone_value_drop(logits);
        HONE_TRY(s);
    }
    if (j->tokens && !words)
        return hone_fail(HONE_BAD_INPUT,
                         "metric perplexity: no sample has two tokens, one to follow another");
    if (words) m->base = exp(lost / (double)words);
    return HONE_OK;
}
double hone_quant_loss(const hone_quant_metric *m, const hone_quant_score *s) {
    if (!m->name) return s->noise;
    if (!strcmp(m->name, "measure")) return -s->worth;
    if (!strcmp(m->name, "perplexity")) return s->perplexity / m->base - 1;
    if (!strcmp(m->name, "command"))
        return isnan(s->worth) ? INFINITY : (m->base - s->worth) / (m->base != 0 ? fabs(m->base) : 1);
    if (!strcmp(m->name, "top1")) return s->top1 == s->top1 ? 1 - s->top1 : 1;
    if (!strcmp(m->name, "cosine")) return 1 - s->cosine;
    if (!strcmp(m->name, "mse")) return s->mse;
    return -hone_quant_decibel(s->noise);
}
void hone_quant_score_put(hone_text *t, const hone_quant_score *s) {
    hone_text_put(t, "{\"sqnr_db\": %.2f, \"cosine\": %.6f, \"mse\": %.6g", hone_quant_decibel(s->noise),
                  s->cosine, s->mse);
    if (s->top1 == s->top1) hone_text_put(t, ", \"top1\": %.5f", s->top1);
    if (s->perplexity == s->perplexity) hone_text_put(t, ", \"perplexity\": %.6g", s->perplexity);
    if (s->worth == s->worth) hone_text_put(t, ", \"measure\": %.6g", s->worth);
    hone_text_put(t, "}");
}
void hone_quant_metric_put(hone_text *t, const hone_quant_metric *m, const hone_quant_score *s) {
    if (!m->name) return;
    hone_text_put(t, ", \"metric\": \"%s\"", m->name);
    const double loss = hone_quant_loss(m, s);
    if (isfinite(loss)) hone_text_put(t, ", \"loss\": %.6g", loss);
    hone_text_put(t, ", \"allowed\": %.6g", m->limit);
    const bool command = !strcmp(m->name, "command");
    if (command || !strcmp(m->name, "perplexity"))
        hone_text_put(t, ", \"%s_f32\": %.6g", command ? "measure" : "perplexity", m->base);
}

/* ---- forms that do not judge themselves ---------------------------------------------------------------- */
static hone_status look(hone_quant_job *job, const hone_quant_judge *j, hone_quant_metric *m) {
    hone_graph *made = NULL;
    hone_quant_score score = {.noise = NAN, .worth = NAN, .perplexity = NAN};
    const hone_graph *g = job->result ? job->result : job->graph;
    HONE_TRY(hone_quant_tell(job, 0.95, "what is lost"));
    if (j->n) {
        HONE_TRY(hone_graph_copy(g, &made));
        hone_graph_index(made);
        HONE_TRY(hone_quant_judge_graph(j, made, 0, &score));
    }
    if (!strcmp(m->name, "command")) HONE_TRY(job->runner.measure(job->runner.context, g, &score.worth));
    const double loss = hone_quant_loss(m, &score);
    if (!(loss <= m->limit))
        return hone_fail(HONE_BAD_INPUT, "the model loses more than allowed in this form: %s %g, allowed %g",
                         m->name, loss, m->limit);
    if (j->n) hone_text_put(job->report, ", \"judged\": %d, \"quality\": ", j->n);
    if (j->n) hone_quant_score_put(job->report, &score);
    else hone_text_put(job->report, ", \"measure\": %.6g", score.worth);
    hone_quant_metric_put(job->report, m, &score);
    return HONE_OK;
}
hone_status hone_quant_judged(hone_quant_job *job, hone_quant_form *form) {
    const hone_quantizing *wish = job->wish;
    hone_quantizing rest = *wish; /* the form sees samples that do not judge it */
    hone_quant_judge j = {.job = job};
    hone_quant_metric m;
    hone_graph *was = NULL;
    int64_t *sample = NULL;
    HONE_TRY(hone_quant_metric_find(wish, &m));
    if (!m.name) return form(job);
    const int64_t given = wish->data.get ? wish->data.n : 0;
    const bool command = !strcmp(m.name, "command");
    if (!given && !command)
        return hone_fail(HONE_BAD_INPUT, "metric '%s' needs samples of what the model is given", m.name);
    int64_t n = wish->judge > 0 ? wish->judge : given / 4 < 22 ? given / 4 : 22;
    n = given < 2 ? given : n < 1 ? 1 : n > given - 1 ? given - 1 : n;
    if (given > 1) rest.data.n = given - n;
    sample = hone_alloc(sizeof *sample * (size_t)(n + 1));
    hone_status s = sample ? hone_graph_copy(job->graph, &was) : hone_quant_no_memory();
    for (int64_t k = 0; k < n && !s; k++) sample[k] = given - n + k;
    if (!s && n) s = hone_quant_judge_open(job, was, sample, (int)n, &j);
    if (!s) s = hone_quant_metric_base(&j, &m);
    job->wish = &rest;
    if (!s) s = form(job);
    job->wish = wish;
    if (!s) s = look(job, &j, &m);
    hone_quant_judge_close(&j);
    hone_graph_destroy(was);
    hone_free(sample);
    return s;
}
