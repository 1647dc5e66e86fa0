/* SPDX-License-Identifier: Apache-2.0
   run: the queue of a version, the threads that serve it, and batches: requests that differ in their first
   dim only are gathered once, run together, and their outputs are parts of the batch's.

   A batch is of a size that was run before (way.sizes): a new one would have to be planned first. So the
   largest that the waiting requests can fill is taken, and nothing is padded. A batch that fails is run again
   one by one: what is wrong with one request is no other's trouble. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/inside.h"

enum { ALIGN = 64, TOGETHER = 256 };

/* ---- counting ---- */

int hone_serve_bucket(uint64_t ns) {
    int k = 0;
    /* in quarters of a us, to 4 … 7 */
    for (uint64_t us4 = ns / 250; us4 > 7 && k < HONE_SERVE_BUCKETS - 4; us4 >>= 1) k += 4;
    const int shift = k / 4;
    const uint64_t top = (ns / 250) >> shift;
    if (top >= 4 && top <= 7) k += (int)(top - 4);
    return k < HONE_SERVE_BUCKETS ? k : HONE_SERVE_BUCKETS - 1;
}
uint64_t hone_serve_bucket_ns(int k) { return ((uint64_t)(5 + k % 4) << (k / 4)) * 250; }

static void span(hone_serve_span *s, uint64_t ns) { s->count++, s->ns += ns; }
static uint64_t since(uint64_t from, uint64_t to) { return to > from && from ? to - from : 0; }

static void count_request(hone_serve_counts *c, const hone_serve_request *r) {
    const hone_serve_times *t = &r->times;
    const uint64_t took = since(t->received, t->done);
    c->took[hone_serve_bucket(took)]++;
    if (r->error.code) {
        span(&c->fail, took);
        return;
    }
    span(&c->success, took), span(&c->queue, since(t->queued, t->begun)),
        span(&c->input, since(t->begun, t->ready));
    span(&c->infer, since(t->ready, t->ran)), span(&c->output, since(t->ran, t->done));
    c->waited[hone_serve_bucket(since(t->queued, t->begun))]++;
    c->inferences += r->rows > 0 ? (uint64_t)r->rows : 1;
}
static void count_run(hone_serve_counts *c, const hone_serve_request *r, int rows) {
    const int k = rows < 1 ? 1 : rows > HONE_SERVE_COUNTED ? HONE_SERVE_COUNTED : rows;
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    c->last_ms = (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
    if (r->error.code) return;
    c->executions++;
    span(&c->batch[k].input, since(r->times.begun, r->times.ready));
    span(&c->batch[k].infer, since(r->times.ready, r->times.ran));
    span(&c->batch[k].output, since(r->times.ran, r->times.done));
}

void hone_serve_counted(hone_serve_version *v, const hone_serve_request *r) {
    pthread_mutex_lock(&v->lock);
    count_request(&v->counts, r), count_run(&v->counts, r, r->times.batch);
    pthread_mutex_unlock(&v->lock);
}

/* Requests that are over are answered outside of the lock: a list of them. */
void hone_serve_answer(hone_serve_core *core, hone_serve_request *r) {
    while (r) {
        hone_serve_request *next = r->next;
        r->next = NULL;
        r->done(r); /* it may be gone now */
        atomic_fetch_sub(&core->under_way, 1);
        r = next;
    }
}

/* ---- one run ---- */

static hone_status run_alone(hone_serve_instance *i, hone_serve_request *r) {
    r->times.ready = hone_serve_now(), r->times.batch = r->rows > 0 ? (int)r->rows : 1;
    const hone_status s =
        r->sequence ? hone_serve_sequence_run(i, r) : hone_session_run(i->session, r->in, r->out);
    r->times.ran = hone_serve_now();
    if (s && !r->error.code) hone_serve_failed(&r->error, s, hone_error());
    /* it is too large for its model, now and later */
    if (s == HONE_NO_MEMORY && i->version->memory.limit) r->error.code = 413;
    return s;
}
static bool gather(hone_serve_instance *i, hone_serve_request *list, int64_t rows, hone_value **in) {
    const hone_serve_version *v = i->version;
    for (int k = 0; k < v->inputs; k++) {
        if (!list->in[k]) continue;
        const int rank = hone_value_rank(list->in[k]);
        int64_t dims[16];
        const size_t a_row = hone_value_bytes(list->in[k]) / (size_t)list->rows, bytes = a_row * (size_t)rows;
        memcpy(dims, hone_value_dims(list->in[k]), sizeof *dims * (size_t)rank);
        dims[0] = rows;
        if (i->room[k] < bytes || !i->gather[k]) {
            free(i->gather[k]);
            i->gather[k] = aligned_alloc(ALIGN, (bytes + ALIGN) / ALIGN * ALIGN),
            i->room[k] = i->gather[k] ? bytes : 0;
        }
        if (!i->gather[k] ||
            hone_tensor_borrow(hone_value_dtype(list->in[k]), dims, rank, i->gather[k], &in[k]))
            return false;
        char *to = i->gather[k];
        for (hone_serve_request *r = list; r; to += hone_value_bytes(r->in[k]), r = r->next)
            memcpy(to, hone_value_data(r->in[k]), hone_value_bytes(r->in[k]));
    }
    return true;
}
/* Each request's rows of an output, as a value over the batch's. */
static bool part(hone_serve_request *list, int k, hone_value *whole, int64_t rows) {
    int64_t dims[16], at = 0;
    const int rank = hone_value_rank(whole);
    if (rank < 1 || hone_value_dims(whole)[0] != rows) return false;
    memcpy(dims, hone_value_dims(whole), sizeof *dims * (size_t)rank);
    const size_t a_row = hone_value_bytes(whole) / (size_t)rows;
    for (hone_serve_request *r = list; r; at += r->rows, r = r->next) {
        dims[0] = r->rows;
        if (hone_tensor_borrow(hone_value_dtype(whole), dims, rank,
                               (char *)hone_value_data(whole) + (size_t)at * a_row, &r->out[k]))
            return false;
        r->kept[k] = hone_value_share(whole);
    }
    return true;
}
static void forget(const hone_serve_version *v, hone_serve_request *list) {
    for (hone_serve_request *r = list; r; r = r->next)
        for (int k = 0; k < v->outputs; k++) {
            hone_value_free(r->out[k]), hone_value_free(r->kept[k]);
            r->out[k] = r->kept[k] = NULL;
        }
}
static bool run_together(hone_serve_instance *i, hone_serve_request *list, int64_t rows) {
    const hone_serve_version *v = i->version;
    const size_t n = (size_t)v->inputs + (size_t)v->outputs;
    hone_value **in = calloc(n + 1, sizeof *in), **out = in + v->inputs;
    if (!in) return false;
    bool good = gather(i, list, rows, in);
    const uint64_t ready = hone_serve_now();
    good = good && !hone_session_run(i->session, in, out);
    const uint64_t ran = hone_serve_now();
    for (int k = 0; good && k < v->outputs; k++) good = part(list, k, out[k], rows);
    if (!good) forget(v, list);
    for (hone_serve_request *r = list; r; r = r->next)
        r->times.ready = ready, r->times.ran = ran, r->times.batch = (int)rows;
    for (size_t k = 0; k < n; k++) hone_value_free(in[k]);
    free(in);
    return good;
}
/* Runs a list that was taken off the queue, counts it and answers it. */
static void execute(hone_serve_instance *i, hone_serve_request *list) {
    hone_serve_version *v = i->version;
    const uint64_t begun = hone_serve_now();
    int64_t rows = 0;
    for (hone_serve_request *r = list; r; r = r->next) r->times.begun = begun, rows += r->rows;
    const bool together = list->next && run_together(i, list, rows);
    for (hone_serve_request *r = list; r && !together; r = r->next) run_alone(i, r);
    for (hone_serve_request *r = list; r; r = r->next) hone_serve_ragged_cut(r);
    const uint64_t done = hone_serve_now();
    pthread_mutex_lock(&v->lock);
    if (together) list->times.done = done, count_run(&v->counts, list, (int)rows);
    for (hone_serve_request *r = list; r; r = r->next) {
        r->times.done = done;
        if (!together) count_run(&v->counts, r, r->times.batch);
        count_request(&v->counts, r);
        hone_serve_sequence_leave(r, true);
    }
    i->busy = false, v->running--;
    if (v->first) pthread_cond_signal(&v->more);
    pthread_mutex_unlock(&v->lock);
    hone_serve_answer(v->core, list);
}

/* ---- the queue ---- */

static bool alike(const hone_serve_version *v, const hone_serve_request *a, const hone_serve_request *b) {
    if (b->rows < 1) return false;
    for (int k = 0; k < v->inputs; k++) {
        if (!a->in[k] != !b->in[k]) return false;
        if (!a->in[k]) continue;
        const int rank = hone_value_rank(a->in[k]);
        if (rank != hone_value_rank(b->in[k])) return false;
        if (memcmp(hone_value_dims(a->in[k]) + 1, hone_value_dims(b->in[k]) + 1,
                   sizeof(int64_t) * (size_t)(rank - 1)) != 0)
            return false;
    }
    return true;
}
static bool a_size(const hone_serve_way *w, int64_t rows) {
    for (int k = 0; k < w->n_sizes; k++)
        if (w->sizes[k] == rows) return true;
    return false;
}
static int64_t rows_waiting(const hone_serve_version *v) {
    int64_t rows = 0;
    for (const hone_serve_request *r = v->first; r; r = r->next)
        if (alike(v, v->first, r)) rows += r->rows;
    return rows;
}
static void mend_last(hone_serve_version *v) {
    v->last = v->first;
    while (v->last && v->last->next) v->last = v->last->next;
}
/* The first request that can be run: not while another one of its sequence is. */
static hone_serve_request *next_of(hone_serve_version *v) {
    hone_serve_request *r = v->first;
    while (r && !hone_serve_sequence_free_now(r)) r = r->next;
    return r;
}
static hone_serve_request *take_one(hone_serve_version *v) {
    hone_serve_request **at = &v->first, *r;
    while (!hone_serve_sequence_free_now(*at)) at = &(*at)->next;
    r = *at;
    *at = r->next, r->next = NULL, v->waiting--;
    mend_last(v);
    hone_serve_sequence_take(r);
    return r;
}
/* The first request, and those that go with it, off the queue. */
static hone_serve_request *take(hone_serve_version *v) {
    if (v->sequences) return take_one(v);
    hone_serve_request *first = v->first, **pick[TOGETHER];
    const int most = first->rows < 1 ? 0 : v->way.max_batch;
    int64_t rows = 0;
    int n = 0, good = 1;
    for (hone_serve_request **at = &v->first; *at && n < TOGETHER && rows < most; at = &(*at)->next) {
        if (*at != first && (!alike(v, first, *at) || rows + (*at)->rows > most)) continue;
        rows += (*at)->rows;
        pick[n++] = at;
        if (a_size(&v->way, rows)) good = n;
    }
    hone_serve_request *out = NULL;
    for (int k = (n > good ? good : n) - 1; k > 0; k--) { /* from the back: links before it stay right */
        hone_serve_request *r = *pick[k];
        *pick[k] = r->next;
        r->next = out, out = r, v->waiting--;
    }
    v->first = first->next, first->next = out, v->waiting--;
    mend_last(v);
    return first;
}
/* Those that waited longer than they may, and those that nobody waits for; all, where the server's time to
   stop is over. */
static hone_serve_request *expired(hone_serve_version *v, uint64_t now) {
    hone_serve_request *late = NULL;
    const bool cut = atomic_load(&v->core->cut);
    for (hone_serve_request **at = &v->first; *at;) {
        hone_serve_request *r = *at;
        const bool cancelled = atomic_load(&r->cancelled);
        if (!cancelled && !cut && (!r->timeout_us || now - r->times.queued < r->timeout_us * 1000)) {
            at = &r->next;
            continue;
        }
        *at = r->next, v->waiting--;
        if (cancelled) hone_serve_fail(&r->error, 499, "the client does not wait for it");
        else if (cut) hone_serve_fail(&r->error, 503, "the server has stopped");
        else
            hone_serve_fail(&r->error, 503,
                            "request timeout expired: it waited %llu us in the queue of model '%s'",
                            (unsigned long long)((now - r->times.queued) / 1000), v->name);
        r->times.done = now, *(cancelled ? &v->counts.cancelled : &v->counts.rejected) += 1;
        count_request(&v->counts, r);
        hone_serve_sequence_leave(r, false);
        r->next = late, late = r;
    }
    if (late) mend_last(v);
    return late;
}
static hone_serve_instance *idle(hone_serve_version *v) {
    for (int k = 0; k < v->n_instances; k++)
        if (!v->instance[k].busy) return &v->instance[k];
    return NULL;
}
static void wait_until(hone_serve_version *v, uint64_t ns) {
    struct timespec t = {.tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u)};
    pthread_cond_timedwait(&v->more, &v->lock, &t);
}
static void *serve(void *arg) {
    hone_serve_version *v = arg;
    pthread_mutex_lock(&v->lock);
    for (;;) {
        hone_serve_instance *i = NULL;
        while (!(next_of(v) && (i = idle(v))) && !(v->closing && !v->first)) {
            const uint64_t sweep = hone_serve_sequences_sweep(v, hone_serve_now());
            if (sweep) wait_until(v, sweep);
            else pthread_cond_wait(&v->more, &v->lock);
        }
        if (!v->first) break;
        const uint64_t now = hone_serve_now(), until = v->first->times.queued + v->way.delay_ns;
        hone_serve_request *late = expired(v, now);
        if (late) {
            pthread_mutex_unlock(&v->lock);
            hone_serve_answer(v->core, late);
            pthread_mutex_lock(&v->lock);
            continue;
        }
        if (now < until && !v->closing && v->first->rows > 0 && rows_waiting(v) < v->way.max_batch) {
            wait_until(v, until);
            continue;
        }
        hone_serve_request *list = take(v);
        i->busy = true, v->running++;
        if (next_of(v)) pthread_cond_signal(&v->more);
        pthread_mutex_unlock(&v->lock);
        execute(i, list);
        pthread_mutex_lock(&v->lock);
    }
    pthread_mutex_unlock(&v->lock);
    return NULL;
}

/* Bytes that are neither 0 nor 1 would be numbers that no program expects. */
static void only_bools(hone_serve_request *r) {
    for (int k = 0; k < r->version->inputs; k++) {
        if (!r->in[k] || hone_value_dtype(r->in[k]) != HONE_DTYPE_BOOL) continue;
        uint8_t *b = hone_value_data(r->in[k]);
        for (size_t n = hone_value_bytes(r->in[k]), j = 0; j < n; j++) b[j] = b[j] != 0;
    }
}
static int retry_after(const hone_serve_version *v) { /* seconds until the queue will be empty */
    const hone_serve_span *s = &v->counts.infer;
    const uint64_t each = s->count ? s->ns / s->count : 0;
    const uint64_t all =
        each * (uint64_t)v->waiting / (uint64_t)(v->n_instances ? v->n_instances : 1) / 1000000000u;
    return all > 60 ? 60 : (int)all + 1;
}
void hone_serve_submit(hone_serve_request *r) {
    hone_serve_version *v = r->version;
    hone_serve_core *core = v->core;
    only_bools(r);
    atomic_fetch_add(&core->under_way, 1);
    r->times.queued = hone_serve_now();
    if (v->ensemble) {
        hone_serve_ensemble_submit(r);
        return;
    }
    if (!r->timeout_us) r->timeout_us = v->way.timeout_us;
    if (!r->priority) r->priority = (uint64_t)v->way.default_priority;
    if (!v->way.max_batch) r->rows = -1;
    if (v->ragged.on) hone_serve_ragged_fill(r);
    pthread_mutex_lock(&v->lock);
    hone_serve_instance *i;
    const bool cut = atomic_load(&core->cut), room = !cut && v->waiting < v->way.queue;
    if (room && hone_serve_sequence_enter(r)) {
        r->times.done = hone_serve_now();
        count_request(&v->counts, r);
        pthread_mutex_unlock(&v->lock);
        hone_serve_answer(core, r);
        return;
    }
    if (room && r->inline_ok && v->way.quick && !v->first && (i = idle(v)) &&
        hone_serve_sequence_free_now(r)) {
        i->busy = true, v->running++;
        hone_serve_sequence_take(r);
        pthread_mutex_unlock(&v->lock);
        execute(i, r);
        return;
    }
    if (!room) {
        if (cut) hone_serve_fail(&r->error, 503, "the server has stopped");
        else
            hone_serve_fail(&r->error, 503,
                            "the queue of model '%s' is full (%d requests wait); try again later", v->name,
                            v->waiting);
        r->error.retry_after = retry_after(v);
        r->times.done = hone_serve_now(), v->counts.rejected++;
        count_request(&v->counts, r);
        pthread_mutex_unlock(&v->lock);
        hone_serve_answer(core, r);
        return;
    }
    hone_serve_request **at = &v->first;
    if (v->way.priorities && !v->sequences) /* requests of a sequence stay as they came */
        while (*at && (*at)->priority <= r->priority) at = &(*at)->next;
    else if (v->first) at = &v->last->next;
    r->next = *at, *at = r;
    if (!r->next) v->last = r;
    v->waiting++;
    pthread_cond_signal(&v->more);
    pthread_mutex_unlock(&v->lock);
}

/* ---- threads ---- */

int hone_serve_run_start(hone_serve_version *v, hone_serve_error *e) {
    for (int k = 0; k < v->n_instances; k++) {
        hone_serve_instance *i = &v->instance[k];
        i->version = v;
        i->gather = calloc((size_t)v->inputs + 1, sizeof *i->gather);
        i->room = calloc((size_t)v->inputs + 1, sizeof *i->room);
        if (v->sequences)
            i->given = calloc((size_t)(hone_model_inputs(v->model) + hone_model_outputs(v->model)) + 1,
                              sizeof *i->given);
        if (!i->gather || !i->room || (v->sequences && !i->given) ||
            pthread_create(&i->thread, NULL, serve, v))
            return hone_serve_fail(e, 503, "no memory or thread for model '%s'", v->name);
        i->started = true;
    }
    return 0;
}
void hone_serve_run_stop(hone_serve_version *v) {
    pthread_mutex_lock(&v->lock);
    v->closing = true;
    pthread_cond_broadcast(&v->more);
    pthread_mutex_unlock(&v->lock);
    for (int k = 0; k < v->n_instances; k++) {
        hone_serve_instance *i = &v->instance[k];
        if (i->started) pthread_join(i->thread, NULL);
        hone_session_free(i->session);
        for (int b = 0; i->gather && b < v->inputs; b++) free(i->gather[b]);
        free(i->gather), free(i->room), free(i->given);
    }
    free(v->instance), v->instance = NULL, v->n_instances = 0;
}
