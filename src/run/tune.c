/* SPDX-License-Identifier: Apache-2.0
   tune: measures choices and writes wisdom.

   A round gives each problem of the model one choice, binds the model with these as its wisdom, and runs it a
   few times with every step timed: so all problems are measured at once, each among its neighbours, with what
   they leave in the caches. The order is the cost model's (cost.h): fitted again each round to all
   that is known, it names the choice that should be fastest of those not tried; every third time it is one by
   lot, so that the fit sees more than its favourites.

        the estimate ─▶ rounds of new choices ─▶ the best few and the estimate, in turns ─▶ the best and the
        estimate, in turns, on fresh measurements ─▶ the whole model with and without, in turns */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/file.h"
#include "base/thread.h"
#include "device/resident.h"
#include "hone/tools.h"
#include "run/cost.h"
#include "run/model.h"

enum { MOST_CHOICES = 2048, FINALISTS = 4, LINES_KEPT = 20000 };
static const double CLEARLY = 0.97; /* of the estimate's time: what is not faster than this may be noise */
static const double SEARCH = 0.5, FINAL = 0.65,
                    /* shares of the time after which these are over; the rest is the whole model's */
    VERIFY = 0.85;
static const double HOPELESS = 1.6,
                    /* a choice that should take so many times the best one is not tried, after so many */
    TRIED_ENOUGH = 10;
typedef struct {
    hone_choice choice;
    double ns, final; /* measured, the least; 0: not yet. final: in the last rounds */
} candidate;
typedef struct {
    hone_problem problem;
    candidate *at;
    int n, estimate, tried, best, trying, lot;
    int finalist[FINALISTS + 1], n_final;
    int layers;
    const char *node; /* the first that has it */
} subject;
typedef struct {
    /* the caller's, but for the packed weights: those of choices that were tried go again */
    hone_compiled model;
    hone_exec_options options;
    hone_value *const *in;
    hone_value **out;
    int n_out;
    hone_arena *arena;
    hone_vec(subject) subject;
    hone_wisdom *trials, *kept, *trying;
    hone_cost cost[HONE_PROBLEM_KINDS];
    size_t packed; /* bytes, of the estimate alone */
    uint64_t begun, state;
    double seconds, run_ns;
    const hone_tuning *wish;
    bool stop, complete;
    int rounds, resumed;
    char note[384];
} tuner;

static hone_status no_memory(void) { return hone_fail(HONE_NO_MEMORY, "no memory to tune"); }
static double spent(const tuner *t) { return (double)(hone_clock_ns() - t->begun) * 1e-9; }
static bool over(const tuner *t, double share) { return t->stop || spent(t) > share * t->seconds; }
static uint64_t draw(tuner *t) {
    t->state ^= t->state << 13, t->state ^= t->state >> 7, t->state ^= t->state << 17;
    return t->state;
}

/* ---- one measurement ----------------------------------------------------------------------------------- */
static const hone_plan *first_plan(const hone_exec *e) { return hone_exec_last(e); }
static int steps_of(const hone_exec *e) {
    int n = 0;
    for (const hone_plan *p = first_plan(e); p; p = p->next_cut) n += p->n_step;
    return n;
}
static subject *subject_of(tuner *t, const hone_decision *d) {
    for (int k = 0; d && k < t->subject.n; k++)
        if (hone_problem_same(&t->subject.at[k].problem, &d->problem)) return t->subject.at + k;
    return NULL;
}
/* Runs a few times after a first one; least[k]: the least that step k took. */
static hone_status time_steps(tuner *t, hone_exec *e, bool fresh, int runs, double *least) {
    for (int r = 0; r < runs; r++) {
        for (const hone_plan *p = first_plan(e); p; p = p->next_cut)
            for (int k = 0; k < p->n_step; k++) p->step[k].ns = 0;
        HONE_TRY(hone_exec_run(e, t->in, t->out));
        int q = 0;
        for (const hone_plan *p = first_plan(e); p; p = p->next_cut)
            for (int k = 0; k < p->n_step; k++, q++)
                if ((fresh && !r) || (double)p->step[k].ns < least[q]) least[q] = (double)p->step[k].ns;
    }
    return HONE_OK;
}
/* ns[k] of subject k, layers together. */
static void add_up(tuner *t, const hone_exec *e, const double *least, double *ns) {
    int q = 0;
    for (const hone_plan *p = first_plan(e); p; p = p->next_cut)
        for (int k = 0; k < p->n_step; k++, q++) {
            const subject *of = subject_of(t, p->step[k].decision);
            if (of) ns[of - t->subject.at] += least[q];
        }
}
/* The same under this wisdom. */
static hone_status measure(tuner *t, const hone_wisdom *w, double *ns) {
    hone_exec *e = NULL;
    hone_exec_options o = t->options;
    o.wisdom = w, o.profile = HONE_BUSY;
    HONE_TRY(hone_exec_create(&t->model, &o, &e));
    hone_status s = hone_exec_run(e, t->in, t->out); /* binds, packs, touches its memory */
    const int n = s ? 0 : steps_of(e), runs = t->run_ns > 0 ? (int)fmin(20, fmax(2, 4e7 / t->run_ns)) : 2;
    double *least = hone_alloc(sizeof *least * (size_t)(n + 1));
    if (!s && !least) s = no_memory();
    if (!s) s = time_steps(t, e, true, runs, least);
    if (!s) add_up(t, e, least, ns);
    hone_free(least);
    hone_exec_destroy(e);
    if (hone_packs_bytes(t->model.packs) > 4 * t->packed + ((size_t)128 << 20))
        hone_residents_empty(t->model.residents), hone_packs_empty(t->model.packs);
    t->rounds++;
    return s;
}
/* Every subject's candidate `trying`, into ns or final. */
static hone_status measure_all(tuner *t, bool last) {
    double *ns = hone_alloc(sizeof *ns * (size_t)(t->subject.n + 1));
    hone_status s = ns ? HONE_OK : no_memory();
    t->trying->line.n = 0, t->trying->id = 0;
    for (int k = 0; k < t->subject.n && !s; k++) {
        subject *u = t->subject.at + k;
        if (u->trying != u->estimate)
            s = hone_wisdom_add(t->trying, &u->problem, &u->at[u->trying].choice, 0);
    }
    if (!s) s = measure(t, t->trying, ns);
    for (int k = 0; k < t->subject.n && !s; k++) {
        subject *u = t->subject.at + k;
        candidate *c = u->at + u->trying;
        double *to = last ? &c->final : &c->ns, before = *to;
        if (!(ns[k] > 0)) continue;
        if (!last && before == 0) u->tried++;
        if (before == 0 || ns[k] < before) *to = ns[k];
        if (!last && (u->best < 0 || c->ns < u->at[u->best].ns)) u->best = u->trying;
        if (last || before > 0) continue;
        double f[HONE_FEATURES];
        hone_choice_features(&u->problem, &c->choice, t->options.threads, f);
        hone_cost_learn(&t->cost[u->problem.kind], f, ns[k] / u->layers);
        s = hone_wisdom_add(t->trials, &u->problem, &c->choice, (int64_t)(ns[k] / u->layers));
    }
    hone_free(ns);
    return s;
}

/* ---- what there is to measure -------------------------------------------------------------------------- */
static hone_status add_subject(tuner *t, const hone_decision *d, const char *node) {
    hone_choice *all = hone_alloc(sizeof *all * MOST_CHOICES);
    subject u = {.problem = d->problem, .best = -1, .estimate = -1, .node = node};
    int n = all ? hone_choices(&d->problem, t->options.threads, all, MOST_CHOICES - 1) : 0;
    for (int k = 0; k < n; k++)
        if (hone_choice_same(&d->problem, all + k, &d->choice)) u.estimate = k;
    /* tiles have blocks of their own */
    for (int k = 0;
         k < n && u.estimate < 0 && d->choice.knob[HONE_KNOB_TILE] && d->problem.kind == HONE_PROBLEM_SUM;
         k++)
        if (all[k].knob[HONE_KNOB_TILE] == d->choice.knob[HONE_KNOB_TILE]) u.estimate = k;
    if (all && u.estimate < 0) all[u.estimate = n++] = d->choice;
    u.n = n, u.at = all ? HONE_NEW_N(t->arena, candidate, n) : NULL;
    for (int k = 0; u.at && k < n; k++) u.at[k].choice = all[k];
    hone_free(all);
    return u.at && hone_push(&t->subject, u) ? HONE_OK : no_memory();
}
static hone_status find_subjects(tuner *t) {
    hone_exec *e = NULL;
    HONE_TRY(hone_exec_create(&t->model, &t->options, &e));
    hone_status s = hone_exec_run(e, t->in, t->out);
    const void *last = NULL;
    const hone_node *of = NULL;
    for (const hone_plan *p = s ? NULL : first_plan(e); p && !s; p = p->next_cut)
        for (int k = 0; k < p->n_step && !s; k++) {
            const hone_step *q = p->step + k;
            if (!q->decision) continue;
            if (!subject_of(t, q->decision)) s = add_subject(t, q->decision, q->of ? q->of->name : "");
            subject *u = s ? NULL : subject_of(t, q->decision);
            /* a node's steps follow one another */
            if (u && (last != q->decision || of != q->of)) u->layers++;
            last = q->decision, of = q->of;
        }
    for (int r = 0; r < 2 && !s; r++) { /* how long a run takes, to know how many a round may have */
        uint64_t before = hone_clock_ns();
        s = hone_exec_run(e, t->in, t->out);
        t->run_ns = (double)(hone_clock_ns() - before);
    }
    hone_exec_destroy(e);
    t->packed = hone_packs_bytes(t->model.packs);
    return s;
}
static int candidate_of(const subject *u, const hone_choice *c) {
    for (int k = 0; k < u->n; k++)
        if (hone_choice_same(&u->problem, &u->at[k].choice, c)) return k;
    return -1;
}
/* What earlier calls measured: of these problems it counts, of all it teaches nothing that the fit would not
   see again. */
static void resume(tuner *t) {
    for (int k = 0; k < t->trials->line.n; k++) {
        const hone_wise *l = t->trials->line.at + k;
        for (int q = 0; q < t->subject.n; q++) {
            subject *u = t->subject.at + q;
            int at = hone_problem_same(&u->problem, &l->problem) ? candidate_of(u, &l->choice) : -1;
            if (at < 0 || l->ns < 1) continue;
            candidate *c = u->at + at;
            const double ns = (double)l->ns * u->layers;
            u->tried += c->ns == 0, t->resumed += c->ns == 0;
            if (c->ns == 0 || ns < c->ns) c->ns = ns;
            if (u->best < 0 || c->ns < u->at[u->best].ns) u->best = at;
            double f[HONE_FEATURES];
            hone_choice_features(&u->problem, &c->choice, t->options.threads, f);
            hone_cost_learn(&t->cost[u->problem.kind], f, (double)l->ns / u->layers);
        }
    }
}

/* ---- rounds -------------------------------------------------------------------------------------------- */
/* The next candidate to try; -1: none is worth it. */
static int next_of(tuner *t, subject *u) {
    const hone_cost *cost = &t->cost[u->problem.kind];
    double least = INFINITY, f[HONE_FEATURES];
    int next = -1, left = u->n - u->tried;
    if (left <= 0) return -1;
    for (int k = 0; k < u->n; k++) {
        if (u->at[k].ns > 0) continue;
        hone_choice_features(&u->problem, &u->at[k].choice, t->options.threads, f);
        double ns = hone_cost_of(cost, f);
        if (ns < least) least = ns, next = k;
    }
    const candidate *best = u->best < 0 ? NULL : u->at + u->best;
    if (best && u->tried >= TRIED_ENOUGH) { /* as the fit sees both */
        hone_choice_features(&u->problem, &best->choice, t->options.threads, f);
        if (least > HOPELESS * hone_cost_of(cost, f)) return -1;
    }
    if (u->lot++ % 3 != 2) return next;
    for (int k = 0, skip = (int)(draw(t) % (uint64_t)left); k < u->n; k++)
        if (u->at[k].ns == 0 && skip-- == 0) return k;
    return next;
}
static void tell(tuner *t, const char *what) {
    if (t->wish->progress && t->wish->progress(t->wish->arg, fmin(spent(t) / t->seconds, 1), what))
        t->stop = true;
}
static void count(const tuner *t, int *tried, int *all) {
    *tried = *all = 0;
    for (int k = 0; k < t->subject.n; k++) *tried += t->subject.at[k].tried, *all += t->subject.at[k].n;
}
static hone_status search(tuner *t) {
    char what[128];
    for (int k = 0; k < t->subject.n; k++) t->subject.at[k].trying = t->subject.at[k].estimate;
    HONE_TRY(measure_all(t, false));
    while (!over(t, SEARCH)) {
        int fresh = 0, tried, all;
        for (int k = 0; k < HONE_PROBLEM_KINDS; k++) hone_cost_fit(&t->cost[k]);
        for (int k = 0; k < t->subject.n; k++) {
            subject *u = t->subject.at + k;
            int next = next_of(t, u);
            fresh += next >= 0;
            u->trying = next >= 0 ? next : u->best >= 0 ? u->best : u->estimate;
        }
        if (!(t->complete = fresh == 0)) HONE_TRY(measure_all(t, false));
        else break;
        count(t, &tried, &all);
        snprintf(what, sizeof what, "%d problems, %d of %d choices tried", t->subject.n, tried, all);
        tell(t, what);
    }
    return HONE_OK;
}
/* The best few and the estimate, in turns, so that all see the same weather. */
static hone_status finals(tuner *t) {
    int most = 1;
    for (int k = 0; k < t->subject.n; k++) {
        subject *u = t->subject.at + k;
        u->finalist[u->n_final++] = u->estimate;
        for (int n = 0; n < FINALISTS; n++) {
            int best = -1;
            for (int q = 0; q < u->n; q++) {
                bool in = false;
                for (int i = 0; i < u->n_final; i++) in |= u->finalist[i] == q;
                if (!in && u->at[q].ns > 0 && (best < 0 || u->at[q].ns < u->at[best].ns)) best = q;
            }
            if (best >= 0 && u->at[best].ns < 1.1 * u->at[u->estimate].ns) u->finalist[u->n_final++] = best;
        }
        if (u->n_final > most) most = u->n_final;
    }
    for (int round = 0; round < 2 * most || !over(t, FINAL); round++) {
        if (round >= most && t->stop) break;
        if (round >= 40 * most) break;
        for (int k = 0; k < t->subject.n; k++) {
            subject *u = t->subject.at + k;
            u->trying = u->finalist[(round + round / most) % most % u->n_final];
        }
        HONE_TRY(measure_all(t, true));
        tell(t, "the best few again, in turns with the estimate");
    }
    for (int k = 0; k < t->subject.n; k++) {
        subject *u = t->subject.at + k;
        u->best = u->estimate;
        for (int i = 0; i < u->n_final; i++) {
            const candidate *c = u->at + u->finalist[i];
            if (c->final > 0 && c->final < u->at[u->best].final &&
                c->final < CLEARLY * u->at[u->estimate].final)
                u->best = u->finalist[i];
        }
    }
    return HONE_OK;
}

/* ---- the whole model, with and without ----------------------------------------------------------------- */
static int by_number(const void *a, const void *b) {
    return (*(const double *)a > *(const double *)b) - (*(const double *)a < *(const double *)b);
}
enum { WITHOUT, WITH, MOST_TURNS = 400, LEAST_TURNS = 7 };
typedef struct {
    double ms[2][MOST_TURNS], median[2];
    int n;
} turns;
/* ns: where steps are timed, what each subject took at least, without and with; NULL: they are not. */
static hone_status take_turns(tuner *t, double share, turns *w, double *ns[2]) {
    hone_exec *e[2] = {NULL, NULL};
    double *least[2] = {NULL, NULL};
    hone_exec_options o = t->options;
    hone_status s = HONE_OK;
    o.profile = ns ? HONE_BUSY : 0;
    for (int side = 0; side < 2 && !s; side++) {
        o.wisdom = side == WITH ? t->trying : NULL;
        s = hone_exec_create(&t->model, &o, &e[side]);
        if (!s) s = hone_exec_run(e[side], t->in, t->out);
        if (!s && ns && !(least[side] = hone_alloc(sizeof(double) * (size_t)(steps_of(e[side]) + 1))))
            s = no_memory();
    }
    for (w->n = 0; w->n < MOST_TURNS && (w->n < LEAST_TURNS || !over(t, share)) && !s; w->n++) {
        for (int i = 0; i < 2 && !s; i++) {
            const int side = (w->n + i) % 2;
            uint64_t before = hone_clock_ns();
            s = ns ? time_steps(t, e[side], w->n == 0, 1, least[side])
                   : hone_exec_run(e[side], t->in, t->out);
            w->ms[side][w->n] = (double)(hone_clock_ns() - before) * 1e-6;
        }
        if (w->n % 8 == 0)
            tell(t, ns ? "the best once more, in turns with the estimate"
                       : "the whole model, with and without, in turns");
    }
    for (int side = 0; side < 2 && !s; side++) {
        qsort(w->ms[side], (size_t)w->n, sizeof(double), by_number);
        w->median[side] = (w->ms[side][(w->n - 1) / 2] + w->ms[side][w->n / 2]) / 2;
    }
    for (int side = 0; side < 2; side++) {
        if (ns && !s) add_up(t, e[side], least[side], ns[side]);
        hone_free(least[side]);
        hone_exec_destroy(e[side]);
    }
    return s;
}
/* Who was best of several may have had luck: it must win again, against the estimate alone, on fresh
   measurements. These are what is told. */
static hone_status verify(tuner *t) {
    turns *w = hone_alloc(sizeof *w);
    double *ns[2];
    for (int side = 0; side < 2; side++) ns[side] = hone_alloc(sizeof(double) * (size_t)(t->subject.n + 1));
    hone_status s = w && ns[0] && ns[1] ? take_turns(t, VERIFY, w, ns) : no_memory();
    for (int k = 0; k < t->subject.n && !s; k++) {
        subject *u = t->subject.at + k;
        u->at[u->best].final = ns[WITH][k];
        if (!(ns[WITH][k] < CLEARLY * ns[WITHOUT][k])) u->best = u->estimate;
        u->at[u->estimate].final = ns[WITHOUT][k];
    }
    hone_free(w);
    for (int side = 0; side < 2; side++) hone_free(ns[side]);
    return s;
}

/* ---- files --------------------------------------------------------------------------------------------- */
/* What is there already is gone on with; what is of another machine or damaged is replaced, with a word; what
   is no wisdom is left alone. */
static hone_status open_file(tuner *t, const char *path, hone_wisdom **out) {
    hone_file f;
    *out = NULL;
    if (hone_file_open(path, &f) == HONE_OK) {
        const bool ours = f.bytes == 0 || (f.bytes >= 11 && !memcmp(f.data, "hone wisdom", 11));
        hone_status s = hone_wisdom_read((const char *)f.data, f.bytes, out);
        hone_file_close(&f);
        if (!ours)
            return hone_fail(HONE_BAD_INPUT, "'%s' is there and is no wisdom: name another file", path);
        if (s == HONE_NO_MEMORY) return s;
        if (s && !t->note[0])
            snprintf(t->note, sizeof t->note, "'%s' is not gone on with: %s", path, hone_fail_text());
    }
    return *out || (*out = hone_wisdom_create()) ? HONE_OK : no_memory();
}
static hone_status save_trials(tuner *t, const char *path) {
    if (t->trials->line.n > LINES_KEPT) { /* of other models: their wisdom stays */
        int n = 0;
        for (int k = 0; k < t->trials->line.n; k++) {
            bool ours = false;
            for (int q = 0; q < t->subject.n && !ours; q++)
                ours = hone_problem_same(&t->subject.at[q].problem, &t->trials->line.at[k].problem);
            if (ours && n < LINES_KEPT) t->trials->line.at[n++] = t->trials->line.at[k];
        }
        t->trials->line.n = n;
    }
    return hone_advice_write(t->trials, path);
}
/* The winners, in `trying`. */
static hone_status gather(tuner *t) {
    t->trying->line.n = 0, t->trying->id = 0;
    for (int k = 0; k < t->subject.n; k++) {
        const subject *u = t->subject.at + k;
        if (u->best != u->estimate)
            HONE_TRY(hone_wisdom_add(t->trying, &u->problem, &u->at[u->best].choice,
                                     (int64_t)(u->at[u->best].final / u->layers)));
    }
    return HONE_OK;
}
static hone_status keep(tuner *t, const char *path) {
    for (int k = 0; k < t->subject.n; k++) hone_wisdom_remove(t->kept, &t->subject.at[k].problem);
    for (int k = 0; k < t->trying->line.n; k++) {
        const hone_wise *l = t->trying->line.at + k;
        HONE_TRY(hone_wisdom_add(t->kept, &l->problem, &l->choice, l->ns));
    }
    return hone_advice_write(t->kept, path);
}

/* ---- the report ---------------------------------------------------------------------------------------- */
static void put_candidate(const subject *u, int k, const char *key, hone_text *t) {
    hone_text_put(t, ", \"%s\": {\"choice\": \"", key);
    hone_choice_print(&u->problem, &u->at[k].choice, t);
    hone_text_put(t, "\", \"ns\": %.0f}", u->at[k].final);
}
static void put_report(const tuner *t, const turns *w, bool kept, const char *path, hone_text *to) {
    int tried, all;
    count(t, &tried, &all);
    hone_text_put(to, "{\"file\": ");
    hone_text_json(to, path);
    hone_text_put(to,
                  ", \"seconds\": %.2f, \"threads\": %d, \"rounds\": %d, \"tried\": %d, \"candidates\": %d, "
                  "\"resumed\": %d, \"complete\": "
                  "%s, \"note\": ",
                  spent(t), t->options.threads, t->rounds, tried, all, t->resumed,
                  t->complete ? "true" : "false");
    hone_text_json(to, t->note);
    hone_text_put(to, ", \"problems\": [");
    for (int k = 0; k < t->subject.n; k++) {
        const subject *u = t->subject.at + k;
        const double was = u->at[u->estimate].final, now = u->at[u->best].final;
        hone_text_put(to, "%s{\"problem\": \"", k ? ", " : "");
        hone_problem_print(&u->problem, to);
        hone_text_put(to, "\", \"kernel\": \"%s\", \"node\": ", u->problem.kernel);
        hone_text_json(to, u->node);
        hone_text_put(to, ", \"layers\": %d", u->layers);
        put_candidate(u, u->estimate, "estimate", to);
        put_candidate(u, u->best, "best", to);
        hone_text_put(to, ", \"gain\": %.4f, \"tried\": %d, \"candidates\": %d}", was > 0 ? 1 - now / was : 0,
                      u->tried, u->n);
    }
    hone_text_put(to,
                  "], \"model\": {\"before_ms\": %.4f, \"after_ms\": %.4f, \"before_min_ms\": %.4f, "
                  "\"after_min_ms\": %.4f, \"gain\": "
                  "%.4f, \"runs\": %d}, \"choices\": %d, \"kept\": %s}",
                  w->median[WITHOUT], w->median[WITH], w->ms[WITHOUT][0], w->ms[WITH][0],
                  w->median[WITHOUT] > 0 ? 1 - w->median[WITH] / w->median[WITHOUT] : 0, w->n,
                  t->trying->line.n, kept ? "true" : "false");
}

static hone_status tune(tuner *t, const char *path, const char *trials, hone_text *to) {
    turns w = {.n = 0};
    double prior[HONE_FEATURES];
    HONE_TRY(open_file(t, path, &t->kept));
    HONE_TRY(open_file(t, trials, &t->trials));
    /* a place that cannot be written is told before the work */
    HONE_TRY(hone_advice_write(t->trials, trials));
    HONE_TRY(find_subjects(t));
    for (int k = 0; k < t->subject.n; k++) {
        const hone_problem *p = &t->subject.at[k].problem;
        if (t->cost[p->kind].prior[0] > 0) continue;
        hone_choice_weights(p, prior);
        hone_cost_begin(&t->cost[p->kind], prior);
    }
    resume(t);
    if (t->subject.n) HONE_TRY(search(t));
    HONE_TRY(save_trials(t, trials));
    if (t->subject.n) HONE_TRY(finals(t));
    HONE_TRY(gather(t));
    if (t->subject.n) HONE_TRY(verify(t));
    HONE_TRY(gather(t));
    HONE_TRY(take_turns(t, 1, &w, NULL));
    /* other work on the machine spoils either figure, seldom both the same way */
    const bool kept = w.median[WITH] <= 1.01 * w.median[WITHOUT] || w.ms[WITH][0] <= w.ms[WITHOUT][0];
    if (kept) HONE_TRY(keep(t, path));
    put_report(t, &w, kept, path, to);
    return HONE_OK;
}
hone_status hone_tune(const hone_model *m, hone_value *const *in, const hone_tuning *wish, char **out) {
    static const hone_tuning plain = {0};
    if (!m || !out || (!in && m->compiled->graph->in.n))
        return hone_fail(HONE_BAD_INPUT, "hone_tune: model, inputs and out must not be NULL");
    hone_text path = {0}, trials = {0}, report = {0};
    tuner t = {.in = in,
               .n_out = m->compiled->graph->out.n,
               .wish = wish ? wish : &plain,
               .begun = hone_clock_ns(),
               .state = 88172645463325252u};
    t.seconds = t.wish->seconds > 0 ? t.wish->seconds : 30;
    t.options.threads =
        t.wish->threads > 0 && t.wish->threads < hone_cores() ? t.wish->threads : hone_cores();
    hone_units *units = NULL;
    const hone_compiled *form = NULL;
    hone_forms *forms = &((hone_model *)m)->forms; /* it grows, nothing else changes */
    hone_status s = hone_units_make(t.wish->device, t.wish->place, &units);
    const hone_dtype precision = t.wish->precision;
    if (!s) s = hone_units_precision(units, precision);
    if (!s) s = hone_forms_get(forms, m->compiled, units, precision, &form);
    t.options.precision = precision;
    t.model = form ? *form : *m->compiled, t.options.units = units;
    t.arena = hone_arena_create(), t.trying = hone_wisdom_create(),
    t.model.packs = hone_packs_create(t.model.constants);
    t.model.residents = hone_residents_create(); /* packed constants have other numbers here */
    t.out = hone_alloc(sizeof *t.out * (size_t)(t.n_out + 1));
    if (t.wish->file) hone_text_put(&path, "%s", t.wish->file);
    else hone_advice_path(&path);
    hone_text_put(&trials, "%s.trials", path.text ? path.text : "");
    if (!s)
        s = t.arena && t.trying && t.model.packs && t.model.residents && t.out && !path.failed &&
                    !trials.failed
                ? HONE_OK
                : no_memory();
    if (!s && !path.n)
        s = hone_fail(HONE_BAD_INPUT,
                      "there is no place for wisdom: neither XDG_CACHE_HOME nor HOME is set; name a file");
    if (!s) s = tune(&t, path.text, trials.text, &report);
    for (int k = 0; t.out && k < t.n_out; k++) hone_value_drop(t.out[k]);
    hone_free(t.out);
    hone_vec_free(&t.subject);
    hone_wisdom_destroy(t.trials), hone_wisdom_destroy(t.kept), hone_wisdom_destroy(t.trying);
    hone_residents_destroy(t.model.residents);
    hone_packs_destroy(t.model.packs);
    hone_forms_drop(forms, form);
    hone_units_free(units);
    hone_arena_destroy(t.arena);
    hone_text_free(&path), hone_text_free(&trials);
    if (s) hone_text_free(&report);
    return s ? s : hone_text_give(&report, out);
}
