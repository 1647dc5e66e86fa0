/* SPDX-License-Identifier: Apache-2.0
   ensemble_run: one request of an ensemble. A step becomes a request of its member as soon as its tensors are
   there, so branches run beside each other, and members make batches of what all their askers bring. Tensors
   are handed on as the values that the members made: they are shared, not copied, and end with their last
   reader.

   A step that fails fails the request, with its name; steps that run by then are waited for. */
#include <stdlib.h>
#include <string.h>

#include "serve/ensemble.h"

typedef struct run run;
typedef struct {
    run *of;
    int number;
    int missing; /* tensors it waits for */
    bool begun;
} at_step;
struct run {
    hone_serve_request *request;
    const hone_serve_ensemble *graph;
    pthread_mutex_t lock;
    at_step *step;
    hone_value **value, **whole; /* one a tensor; whole: what it is a part of, or NULL */
    int *left;                   /* readers that are not done */
    int at_work;
};

static void finish(run *a) {
    hone_serve_request *r = a->request;
    hone_serve_core *core = r->version->core;
    const hone_serve_ensemble *g = a->graph;
    for (int k = 0; k < g->outputs && !r->error.code; k++) {
        r->out[k] = hone_value_share(a->value[g->output[k]]);
        r->kept[k] = hone_value_share(a->whole[g->output[k]]);
    }
    for (int t = 0; t < g->tensors; t++) hone_value_free(a->value[t]), hone_value_free(a->whole[t]);
    r->times.ran = r->times.done = hone_serve_now();
    hone_serve_counted(r->version, r);
    pthread_mutex_destroy(&a->lock);
    free(a);
    hone_serve_answer(core, r);
}
static void advance(run *, bool inline_ok);

/* With the lock: a link of a step that is done with its tensor. */
static void read_by(run *a, const hone_serve_link *l) {
    if (--a->left[l->tensor] || a->graph->tensor[l->tensor].kept) return;
    hone_value_free(a->value[l->tensor]), hone_value_free(a->whole[l->tensor]);
    a->value[l->tensor] = a->whole[l->tensor] = NULL;
}
static void arrived(run *a, int tensor) { /* with the lock */
    for (int s = 0; s < a->graph->steps; s++)
        for (int k = 0; k < a->graph->step[s].ins; k++)
            a->step[s].missing -= a->graph->step[s].in[k].tensor == tensor;
}
static void fail(run *a, int step, const hone_serve_error *e) { /* with the lock */
    hone_serve_error *to = &a->request->error;
    if (to->code) return;
    hone_serve_fail(to, e->code, "ensemble '%s', step %d ('%s'): %.350s", a->graph->name, step + 1,
                    a->graph->step[step].model, e->text);
    to->retry_after = e->retry_after;
}
/* A step is over, well or not; `sub` may be NULL. */
static void over(run *a, int number, hone_serve_request *sub, const hone_serve_error *e) {
    const hone_serve_step *s = &a->graph->step[number];
    bool inline_ok = false;
    pthread_mutex_lock(&a->lock);
    if (e->code) fail(a, number, e);
    else {
        /* where it ran alone its thread has nothing better to do than the next step; those of a batch go to
           the next member's queue, and become a batch there */
        inline_ok = sub->times.batch <= (sub->rows > 0 ? sub->rows : 1);
        for (int k = 0; k < s->outs; k++) {
            const int t = s->out[k].tensor, o = s->out[k].number;
            if (!a->left[t] && !a->graph->tensor[t].kept) continue;
            a->value[t] = hone_value_share(sub->out[o]), a->whole[t] = hone_value_share(sub->kept[o]);
            arrived(a, t);
        }
        a->request->times.batch = sub->times.batch;
    }
    pthread_mutex_unlock(&a->lock);
    hone_serve_request_free(sub); /* before what its inputs are parts of */
    pthread_mutex_lock(&a->lock);
    for (int k = 0; k < s->ins; k++) read_by(a, &s->in[k]);
    pthread_mutex_unlock(&a->lock);
    advance(a, inline_ok);
}
static void step_done(hone_serve_request *sub) {
    at_step *at = sub->arg;
    const hone_serve_error e = sub->error;
    over(at->of, at->number, sub, &e);
}
static uint64_t time_left(const hone_serve_request *r) { /* us; 0: no limit */
    const uint64_t spent = (hone_serve_now() - r->times.queued) / 1000;
    return !r->timeout_us ? 0 : spent < r->timeout_us ? r->timeout_us - spent : 1;
}
static void begin(run *a, int number, bool inline_ok) {
    const hone_serve_step *s = &a->graph->step[number];
    const hone_serve_request *r = a->request;
    hone_serve_error e = {0};
    hone_serve_request *sub = hone_serve_request_create(s->version, &e);
    for (int k = 0; k < s->ins && !e.code; k++)
        hone_serve_input_value(sub, s->in[k].number, a->value[s->in[k].tensor], &e);
    if (!e.code && (s->version->sequences || (s->version->ensemble && s->version->ensemble->stateful))) {
        sub->id = r->id;
        if (r->id.text && !(sub->id.text = strdup(r->id.text))) hone_serve_fail(&e, 503, "no memory");
    }
    if (e.code) {
        over(a, number, sub, &e);
        return;
    }
    sub->priority = r->priority, sub->timeout_us = time_left(r);
    sub->done = step_done, sub->arg = &a->step[number], sub->inline_ok = inline_ok;
    hone_serve_submit(sub);
}
/* Begins what can begin; ends the run where nothing is left to wait for. */
static void advance(run *a, bool inline_ok) {
    int ready[HONE_SERVE_STEPS], n = 0;
    pthread_mutex_lock(&a->lock);
    for (int s = 0; s < a->graph->steps && !a->request->error.code; s++)
        if (!a->step[s].begun && !a->step[s].missing) a->step[s].begun = true, ready[n++] = s;
    a->at_work += n - 1; /* less the one that called, whose place those take */
    const bool last = !a->at_work;
    pthread_mutex_unlock(&a->lock);
    if (last) finish(a);
    /* the last of them may run here; those before it must not keep it waiting */
    for (int k = 0; k < n; k++) begin(a, ready[k], inline_ok && k == n - 1);
}
void hone_serve_ensemble_submit(hone_serve_request *r) {
    const hone_serve_ensemble *g = r->version->ensemble;
    const size_t tensors = (size_t)g->tensors, steps = (size_t)g->steps;
    const bool named = r->id.number || (r->id.text && *r->id.text);
    run *a = NULL;
    for (int k = 0; k < g->inputs && !r->error.code; k++)
        if (!r->in[k])
            hone_serve_fail(&r->error, 400, "input '%s' of ensemble '%s' is missing",
                            r->version->port[k].name, g->name);
    if (!r->error.code && named && !g->stateful)
        hone_serve_fail(&r->error, 400,
                        "ensemble '%s' takes no sequences: a request with sequence_id would be mistaken for "
                        "a part of one",
                        g->name);
    if (!r->error.code && !(a = calloc(1, sizeof *a + steps * sizeof *a->step +
                                              tensors * (2 * sizeof *a->value + sizeof *a->left))))
        hone_serve_fail(&r->error, 503, "no memory for a request");
    if (!a) {
        r->times.done = hone_serve_now();
        hone_serve_counted(r->version, r);
        hone_serve_answer(r->version->core, r);
        return;
    }
    r->times.begun = r->times.ready = r->times.queued;
    a->request = r, a->graph = g;
    a->value = (hone_value **)(a + 1), a->whole = a->value + tensors;
    a->step = (at_step *)(a->whole + tensors), a->left = (int *)(a->step + steps);
    pthread_mutex_init(&a->lock, NULL);
    for (int t = 0; t < g->tensors; t++) a->left[t] = g->tensor[t].readers;
    for (int s = 0; s < g->steps; s++) a->step[s] = (at_step){a, s, g->step[s].ins, false};
    for (int k = 0; k < g->inputs; k++) {
        a->value[g->input[k]] = hone_value_share(r->in[k]);
        arrived(a, g->input[k]);
    }
    a->at_work = 1; /* this call */
    advance(a, r->inline_ok);
}
