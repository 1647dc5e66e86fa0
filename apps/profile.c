/* SPDX-License-Identifier: Apache-2.0
   hone profile: where the time of a run goes, node by node, against what the machine could do just now. The
   library measures each step (hone_options.profile), knows each node's work (hone_model_plan_with) and the
   machine's speed (hone_machine_speed); here they are joined. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "args.h"
#include "bench.h"
#include "commands.h"
#include "json.h"
#include "load.h"
#include "output.h"
#include "term.h"
#include "profile.h"

enum { SAMPLES = 1000, RUNS_REPLAYED = 5 };
const char *const hone_profile_groupings[] = {"node", "op", "tactic"};

/* ---- measuring ---- */

static int open_model(hone_profiled *j) {
    char why[4096];
    hone_options_default(&j->options);
    j->options.threads = j->threads, j->options.wisdom = j->wisdom, j->options.profile = 2;
    hone_where_set(&j->where, &j->options);
    if (j->precision && !(j->options.precision = hone_precision(j->precision, strlen(j->precision))))
        return hone_args_wrong("--precision %s: Hone computes in f32, bf16 or f16, on a GPU in tf32 too",
                               j->precision);
    hone_status s = hone_load_for(j->path, &j->inputs, &j->model, why, sizeof why);
    if (s) return hone_args_stopped(s, why);
    hone_where_doubt(&j->where, j->model);
    if (j->away) { /* a run as it is, and another in which each step is replayed by itself */
        hone_options plain = j->options;
        plain.profile = 0, plain.stay = 1, j->options.profile = 3;
        if ((s = hone_session_create(j->model, &plain, &j->plain))) return hone_args_failed(s);
    }
    if ((s = hone_session_create(j->model, &j->options, &j->session))) return hone_args_failed(s);
    j->n_in = hone_model_inputs(j->model), j->n_out = hone_model_outputs(j->model);
    j->fed = hone_must_alloc(sizeof *j->fed * (size_t)(j->n_in + 1));
    j->there = hone_must_alloc(sizeof *j->there * (size_t)(j->n_in + 1));
    j->in = hone_must_alloc(sizeof *j->in * (size_t)(j->n_in + 1));
    j->out = hone_must_alloc(sizeof *j->out * (size_t)(j->n_out + 1));
    return 0;
}

static hone_json *steps_of(const hone_profiled *j) {
    char *text = NULL;
    hone_json *r = hone_session_report(j->session, "steps", &text) ? NULL : hone_json_read(text);
    hone_text_release(text);
    return r;
}

/* What a run added to each step; false: these are not the same steps. Runs beyond the room take the place of
   the first ones. */
static bool add_sample(hone_profiled *j, const hone_json *before, const hone_json *after) {
    if (!before || !after || before->n != after->n) return false;
    if (!j->sample) j->sample = hone_must_alloc(sizeof *j->sample * SAMPLES * (size_t)(before->n + 1));
    double *to = j->sample + j->samples++ % SAMPLES;
    for (const hone_json *b = before->first, *a = after->first; a && b;
         a = a->next, b = b->next, to += SAMPLES)
        *to = hone_json_number(a, "ns", 0) - hone_json_number(b, "ns", 0);
    return true;
}

static void drop_outputs(hone_profiled *j) {
    for (int k = 0; k < j->n_out; k++) hone_value_free(j->out[k]), j->out[k] = NULL;
}
static int run_once(hone_profiled *j, hone_session *in, double *ms) {
    for (int k = 0; k < j->n_in; k++) j->in[k] = j->there[k] ? j->there[k] : j->fed[k].value;
    const double began = hone_clock_ms();
    hone_status s = hone_session_run(in, j->in, j->out);
    *ms = hone_clock_ms() - began;
    if (s && !j->times.n && hone_feed_again(j->model, &j->feed, s, j->fed)) return run_once(j, in, ms);
    return s ? hone_feed_failed(&j->feed, s) : 0;
}

static double share_done(const hone_profiled *j, int done, int fixed, double began) {
    return fixed ? (double)done / fixed : (hone_clock_ms() - began) / (j->seconds * 1000);
}
/* On a device: inputs and outputs lie there, where they can, and whole runs are timed; what their steps take
   is measured after that. */
static int measure_whole(hone_profiled *j, hone_progress *bar) {
    enum { WARM = 5, LEAST = 5, SHOWN = 100 };
    double ms = 0, share = 0;
    int rc = run_once(j, j->plain, &j->first_ms);
    for (int k = 0; k < j->n_in && !rc; k++) /* where one cannot, it is copied in each run */
        if (j->fed[k].value && hone_value_bring(j->fed[k].value, j->where.device, j->there + k))
            j->there[k] = NULL;
    if (!rc && run_once(j, j->plain, &ms)) { /* the numbers of some decide shapes: all stay on the host */
        for (int k = 0; k < j->n_in; k++) hone_value_free(j->there[k]), j->there[k] = NULL;
    }
    for (int k = 0; k < WARM && !rc; k++) rc = run_once(j, j->plain, &ms);
    const double began = hone_clock_ms();
    while (!rc && (share < 1 || (!j->runs && j->times.n < LEAST))) {
        if ((rc = run_once(j, j->plain, &ms))) break;
        hone_times_add(&j->times, ms);
        share = share_done(j, j->times.n, j->runs, began);
        hone_progress_show(bar, (int)(fmin(share, 1) * SHOWN), SHOWN, "% of the runs");
    }
    drop_outputs(j);
    return rc;
}
/* After each run its steps are read, and the median of the runs counts for each: something else that takes
   the core for a while is in few. */
static int measure(hone_profiled *j, hone_json **last) {
    enum { WARM = 3, LEAST = 5, SHOWN = 100 };
    hone_progress bar;
    double ms = 0, share = 0;
    hone_progress_begin(&bar, "the first run");
    int rc = j->away ? measure_whole(j, &bar) : 0, n = 0;
    const int fixed = j->away ? RUNS_REPLAYED : j->runs;
    if (!rc) rc = run_once(j, j->session, j->away ? &ms : &j->first_ms);
    for (int k = 0; k < WARM && !rc && !j->away && ms < j->seconds * 1000; k++)
        rc = run_once(j, j->session, &ms);
    *last = rc ? NULL : steps_of(j);
    const double began = hone_clock_ms();
    while (!rc && (share < 1 || (!fixed && n < LEAST && share < LEAST))) {
        if ((rc = run_once(j, j->session, &ms))) break;
        if (!j->away) hone_times_add(&j->times, ms);
        hone_json *now = steps_of(j);
        if (!add_sample(j, *last, now))
            rc = hone_args_wrong("the plan changed while it was measured: its shapes depend on its numbers, "
                                 "or there is no memory");
        hone_json_free(*last);
        *last = now;
        share = share_done(j, ++n, fixed, began);
        hone_progress_show(&bar, (int)(fmin(share, 1) * SHOWN), SHOWN,
                           j->away ? "% of the steps" : "% of the runs");
    }
    hone_progress_end(&bar);
    if (!rc) j->median_ms = hone_stats_median(j->times.ms, j->times.n);
    return rc;
}

/* ---- joining ---- */

/* What a run with these very shapes does, node by node; NULL: it cannot be said. */
static hone_json *plan_of(const hone_profiled *j) {
    hone_shape *in = hone_must_alloc(sizeof *in * (size_t)(j->n_in + 1));
    char *text = NULL;
    for (int k = 0; k < j->n_in; k++) {
        const hone_value *v = j->fed[k].value;
        const bool tensor = v && hone_value_kind_of(v) == HONE_VALUE_TENSOR;
        in[k] = (hone_shape){tensor ? hone_value_dims(v) : NULL, tensor ? hone_value_rank(v) : -1};
    }
    hone_json *r = hone_model_plan_with(j->model, &j->options, in, &text) ? NULL : hone_json_read(text);
    hone_text_release(text);
    free(in);
    return r;
}
static hone_profile_row *find_row(hone_profiled *j, const char *node) {
    for (int k = j->n - 1; k >= 0; k--) /* a node's steps stand together */
        if (!strcmp(j->row[k].node, node)) return j->row + k;
    hone_profile_row *r = j->row + j->n++;
    *r = (hone_profile_row){.flops = NAN, .bytes = NAN, .nodes = 1};
    snprintf(r->node, sizeof r->node, "%s", node);
    return r;
}
/* "Conv + Relu" */
void hone_profile_op(const hone_json *step, char *out, size_t room) {
    const hone_json *parts = hone_json_get(step, "parts");
    size_t n = 0;
    for (const hone_json *p = parts ? parts->first : NULL; p && n < room; p = p->next)
        n += (size_t)snprintf(out + n, room - n, "%s%s", n ? " + " : "", p->text ? p->text : "?");
    if (!n) snprintf(out, room, "%s", hone_json_text(step, "op", "copy"));
}
static void gather(hone_profiled *j, const hone_json *steps) {
    j->row = hone_must_alloc(sizeof *j->row * (size_t)(steps->n + 1));
    const double *sample = j->sample;
    for (const hone_json *s = steps->first; s; s = s->next, sample += SAMPLES) {
        const double ns = hone_stats_median(sample, j->samples < SAMPLES ? j->samples : SAMPLES);
        const char *node = hone_json_text(s, "node", ""), *tactic = hone_json_text(s, "tactic", "");
        hone_profile_row *r = find_row(j, *node ? node : "(between devices)");
        const double bytes = hone_json_number(s, "bytes", NAN);
        r->steps++, r->ns += ns, j->steps_ns += ns, r->launches += hone_json_number(s, "launches", 0);
        if (isfinite(bytes)) r->bytes = isfinite(r->bytes) ? r->bytes + bytes : bytes; /* as stored: halves */
        if (ns >= r->largest) {
            r->largest = ns;
            hone_profile_op(s, r->op, sizeof r->op);
            snprintf(r->tactic, sizeof r->tactic, "%s", tactic);
        }
        if (hone_json_get(s, "choice"))
            r->choice = true, r->wise |= !strcmp(hone_json_text(s, "by", ""), "wisdom");
    }
}
/* The work of each node: the plan's steps say which node has which number, its nodes are in the order of
   those. */
static void add_work(hone_profiled *j, const hone_json *plan) {
    const hone_json *nodes = hone_json_get(plan, "nodes"), *steps = hone_json_get(plan, "steps"),
                    *whole = hone_json_get(plan, "whole");
    const int n = nodes ? nodes->n : 0;
    const hone_json **at = hone_must_alloc(sizeof *at * (size_t)(n + 1));
    int k = 0, last = -1;
    j->whole = whole && whole->type == HONE_JSON_TRUE;
    for (const hone_json *w = n ? nodes->first : NULL; w; w = w->next) at[k++] = w;
    for (const hone_json *s = steps ? steps->first : NULL; s; s = s->next) {
        const int number = (int)hone_json_number(s, "number", -1);
        if (number < 0 || number >= n || number == last) continue;
        last = number;
        const hone_json *known = hone_json_get(at[number], "known");
        for (int r = 0; r < j->n; r++) {
            if (strcmp(j->row[r].node, hone_json_text(s, "node", "")) != 0) continue;
            if (known && known->type == HONE_JSON_TRUE)
                j->row[r].flops = hone_json_number(at[number], "flops", NAN);
            if (known && known->type == HONE_JSON_TRUE && !isfinite(j->row[r].bytes))
                j->row[r].bytes = hone_json_number(at[number], "bytes", NAN);
            break;
        }
    }
    free(at);
}
static int slower(const void *a, const void *b) {
    const hone_profile_row *x = a, *y = b;
    return (x->ns < y->ns) - (x->ns > y->ns);
}
/* Rows of one op or tactic become one. */
static void group(hone_profiled *j, hone_profile_grouping by) {
    int n = 0;
    for (int k = 0; k < j->n && by != HONE_PROFILE_BY_NODE; k++) {
        hone_profile_row one = j->row[k];
        const char *key = by == HONE_PROFILE_BY_OP ? one.op : one.tactic;
        int to = 0;
        while (to < n && strcmp(by == HONE_PROFILE_BY_OP ? j->row[to].op : j->row[to].tactic, key) != 0) to++;
        if (to == n) {
            j->row[n++] = one;
            continue;
        }
        hone_profile_row *r = j->row + to;
        r->steps += one.steps, r->nodes += one.nodes, r->ns += one.ns;
        /* NAN where one of them is */
        r->launches += one.launches, r->flops += one.flops, r->bytes += one.bytes;
        if (by == HONE_PROFILE_BY_OP && one.largest > r->largest)
            memcpy(r->tactic, one.tactic, sizeof r->tactic), r->largest = one.largest;
    }
    if (by != HONE_PROFILE_BY_NODE) j->n = n;
    qsort(j->row, (size_t)j->n, sizeof *j->row, slower);
}

/* ---- against the machine ---- */

/* ---- advice ---- */

typedef struct {
    double weight; /* how much of the time it is about */
    char text[256];
} remark;
static int heavier(const void *a, const void *b) {
    const remark *x = a, *y = b;
    return (x->weight < y->weight) - (x->weight > y->weight);
}
/* One or two sentences: what most of the time is about, and what may be done. Before rows are grouped. */
static void advise(hone_profiled *j, const char *path) {
    enum { REMARKS = 8 };
    static const double little = 0.1, near = 0.6;
    double host = 0, slow = 0, roof = 0, memory = 0, estimate = 0;
    const char *host_op = "", *slow_op = "";
    remark all[REMARKS] = {{0}};
    int n = 0, short_steps = 0, steps = 0;
    const double total = j->steps_ns;
    if (!(total > 0) || j->away) return;
    for (const hone_profile_row *r = j->row; r < j->row + j->n; r++) {
        const hone_roofs f = hone_profile_roofs(j, r);
        const double part = r->ns / total;
        steps += r->steps;
        if (r->ns / r->steps < 5000) short_steps += r->steps;
        if (!strcmp(r->tactic, "host")) host += part, host_op = *host_op ? host_op : r->op;
        else if (!strcmp(r->tactic, "interpret")) slow += part, slow_op = *slow_op ? slow_op : r->op;
        if (f.by == HONE_BOUND_ARITHMETIC && f.share > near) roof += part;
        if (f.by == HONE_BOUND_MEMORY && f.share > near) memory += part;
        if (r->choice && !r->wise && !(f.by != HONE_BOUND_CACHE && f.share > near)) estimate += part;
    }
    if (slow > little)
        all[n].weight = 2 * slow, snprintf(all[n++].text, sizeof all->text,
                                           "%.0f %% of the time is in ops that only the interpreter has, as "
                                           "%s: it is slow, please report the model",
                                           slow * 100, slow_op);
    if (host > little)
        all[n].weight = host, snprintf(all[n++].text, sizeof all->text,
                                       "%.0f %% of the time is in ops in plain C on one core, as %s: leaving "
                                       "them out of the model helps more than any option",
                                       host * 100, host_op);
    if (memory > little)
        all[n].weight = memory,
        snprintf(
            all[n++].text, sizeof all->text,
            "%.0f %% of the time nodes move bytes as fast as memory can: fewer bytes help (8-bit weights, "
            "--precision bf16), or a larger batch",
            memory * 100);
    if (roof > 0.5)
        all[n].weight = roof, snprintf(all[n++].text, sizeof all->text,
                                       "%.0f %% of the time nodes multiply near this CPU's limit: only less "
                                       "work helps, as 8-bit weights "
                                       "or --precision bf16 where the CPU multiplies it",
                                       roof * 100);
    if (estimate > little)
        all[n].weight = estimate * 0.5,
        snprintf(all[n++].text, sizeof all->text,
                 "%.0f %% of the time is in nodes that follow estimates, well below the limit: 'hone tune "
                 "%s' measures what suits them here",
                 estimate * 100, path);
    if (steps > 8 && short_steps > steps * 3 / 4 && j->speed.threads > 1)
        all[n].weight = 0.4, snprintf(all[n++].text, sizeof all->text,
                                      "most steps are shorter than 5 µs, too short to share out: --threads 1 "
                                      "may be as fast, and leaves the cores to others");
    qsort(all, (size_t)n, sizeof *all, heavier);
    for (; j->n_advice < n && j->n_advice < 2; j->n_advice++)
        memcpy(j->advice[j->n_advice], all[j->n_advice].text, sizeof all->text);
    if (!n && j->n) {
        snprintf(j->advice[0], sizeof j->advice[0],
                 "nothing stands out: '%.120s' (%.60s) takes most, %.0f %% of the time", j->row[0].node,
                 j->row[0].op, 100 * j->row[0].ns / total);
        j->n_advice = 1;
    }
}

/* ---- all of it ---- */

static void measure_roofs(hone_profiled *j) {
    j->speed.threads = j->threads;
    const hone_status s =
        j->away ? hone_device_speed(j->where.device,
                                    j->options.precision ? j->options.precision : HONE_DTYPE_F32, &j->speed)
                : hone_machine_speed(j->threads, &j->speed);
    if (s) j->speed = (hone_speed){0};
}
static int trace(const hone_profiled *j, const hone_json *steps) {
    double *ns = hone_must_alloc(sizeof *ns * (size_t)(steps->n + 1));
    for (int k = 0; k < steps->n; k++)
        ns[k] =
            hone_stats_median(j->sample + (size_t)k * SAMPLES, j->samples < SAMPLES ? j->samples : SAMPLES);
    const int rc = hone_profile_trace(j, steps, ns);
    free(ns);
    return rc;
}
static int do_job(hone_profiled *j, hone_profile_grouping by) {
    hone_json *steps = NULL, *plan = NULL;
    j->feed = (hone_feed_wish){
        .inputs = &j->inputs, .shapes = &j->shapes, .seed = j->seed, .dims = &j->dims, .cast = j->cast};
    j->away = j->where.device && strcmp(j->where.device, "cpu") != 0;
    int rc = j->trace ? hone_output_check("--trace", j->trace, &(hone_words){(const char **)&j->path, 1},
                                          &j->inputs)
                      : 0;
    if (!rc && j->trace && j->wisdom)
        rc = hone_output_check("--trace", j->trace, NULL, &(hone_words){&j->wisdom, 1});
    if (!rc && j->trace) rc = hone_output_try("--trace", j->trace);
    if (!rc) rc = open_model(j);
    if (!rc) rc = hone_feed(j->model, &j->feed, j->fed);
    if (!rc) rc = measure(j, &steps);
    if (!rc && j->trace) rc = trace(j, steps);
    if (!rc) {
        measure_roofs(j);
        gather(j, steps);
        if ((plan = plan_of(j))) add_work(j, plan);
        qsort(j->row, (size_t)j->n, sizeof *j->row, slower);
        advise(j, hone_model_shown(j->path));
        group(j, by);
        if (j->json) hone_profile_tell_json(j, by);
        else hone_profile_tell(j, by);
    }
    hone_json_free(steps), hone_json_free(plan);
    return rc;
}

int hone_cmd_profile(int argc, char **argv) {
    hone_profiled j = {.seconds = 2, .top = 20, .by = "node"};
    hone_words operands = {0};
    const hone_option options[] = {
        {"--by", "node|op|tactic",
         "what a row is: a node, all nodes of an op, or all that are computed in one way (node)",
         HONE_ARG_TEXT, &j.by, 0},
        {"--top", "K", "so many rows (20; 0: all)", HONE_ARG_INT, &j.top, 0},
        {"--runs", "N", "so many runs that count (else: as many as fit the time, at least 5)", HONE_ARG_INT,
         &j.runs, 1},
        {"--seconds", "S", "time for the runs (2)", HONE_ARG_NUMBER, &j.seconds, 0.001},
        {"--threads", "N", "at most so many (0: all cores)", HONE_ARG_THREADS, &j.threads, 0},
        {"--precision", "f32|bf16|f16|tf32", "what floats are computed in (f32)", HONE_ARG_TEXT, &j.precision,
         0},
        {"--wisdom", "FILE", "choices that hone tune measured (else: as hone run; '' for none)",
         HONE_ARG_TEXT, &j.wisdom, 0},
        {"--input", "[NAME=]FILE", "an input, as of hone run (else: random numbers)", HONE_ARG_LIST,
         &j.inputs, 0},
        {"--cast", NULL, "with --input: convert files of another type, where every number fits",
         HONE_ARG_FLAG, &j.cast, 0},
        {"--shape", "[NAME=]DIMS", "dims of a random or .bin input, as 1x3x224x224", HONE_ARG_LIST, &j.shapes,
         0},
        {"--dim", "NAME=SIZE", "a free dim of the inputs, as in batch=8; others are guessed", HONE_ARG_LIST,
         &j.dims, 0},
        {"--seed", "N", "of the random inputs (0)", HONE_ARG_INT, &j.seed, 0},
        HONE_WHERE_OPTIONS(&j.where),
        {"--json", NULL, "print JSON, all rows of it", HONE_ARG_FLAG, &j.json, 0},
        {"--trace", "FILE", "the steps of a run one after another, for ui.perfetto.dev", HONE_ARG_TEXT,
         &j.trace, 0},
        {0},
    };
    const hone_usage usage = {"profile",
                              "MODEL",
                              1,
                              1,
                              "Shows where the time of a run goes: nodes by time, how they are computed, and "
                              "how near that is to what this machine "
                              "can do, measured just before; with a sentence or two of advice.",
                              "hone profile model.onnx\nhone profile zoo:resnet50 --threads 1 --by op\nhone "
                              "profile model.onnx --dim batch=8 --top 0 --json",
                              options};
    int rc = hone_args_read(&usage, argc, argv, &operands);
    hone_profile_grouping by = HONE_PROFILE_BY_NODE;
    if (rc == HONE_ARGS_GO && !(rc = hone_where_begin(&j.where))) {
        j.path = operands.at[0];
        while (by <= HONE_PROFILE_BY_TACTIC && strcmp(j.by, hone_profile_groupings[by]) != 0) by++;
        rc = by > HONE_PROFILE_BY_TACTIC
                 ? hone_args_wrong("--by %s: a row is a node, an op or a tactic", j.by)
                 : do_job(&j, by);
    }
    for (int k = 0; k < j.n_out && j.out; k++) hone_value_free(j.out[k]);
    for (int k = 0; k < j.n_in && j.there; k++) hone_value_free(j.there[k]);
    if (j.fed) hone_feed_free(j.fed, j.n_in);
    hone_session_free(j.session);
    hone_session_free(j.plain);
    hone_model_free(j.model);
    hone_where_free(&j.where);
    free(j.there), free(j.in), free(j.out), free(j.row), free(j.sample), free(j.times.ms);
    hone_words_free(&j.inputs), hone_words_free(&j.shapes), hone_words_free(&j.dims),
        hone_words_free(&operands);
    return rc;
}
