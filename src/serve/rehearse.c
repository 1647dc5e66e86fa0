/* SPDX-License-Identifier: Apache-2.0
   rehearse: a version under load before it serves: as many askers as make its batches, each with one request
   under way, for a moment. How many rows a second that makes, and how long requests take, decides between
   ways to run it: one instance of all cores or several of fewer, and whether waiting for others pays. The
   requests go the way of all requests; what they counted is forgotten. */
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "serve/inside.h"

enum { ASKERS = 64 };
static const uint64_t LEAST_NS = 60000000, MOST_NS = 400000000;

typedef struct {
    atomic_int stop, active, failed;
} stage;
static void done(hone_serve_request *r) {
    stage *s = r->arg;
    const hone_serve_version *v = r->version;
    for (int k = 0; k < v->outputs; k++) {
        hone_value_free(r->out[k]), hone_value_free(r->kept[k]);
        r->out[k] = r->kept[k] = NULL;
    }
    if (r->error.code) atomic_fetch_add(&s->failed, 1);
    if (r->error.code || atomic_load(&s->stop)) {
        atomic_fetch_sub(&s->active, 1);
        return;
    }
    r->times = (hone_serve_times){.received = hone_serve_now()};
    hone_serve_submit(r);
}
static double quantile_ns(const uint64_t *bucket, double q) {
    uint64_t all = 0, seen = 0;
    for (int k = 0; k < HONE_SERVE_BUCKETS; k++) all += bucket[k];
    for (int k = 0; k < HONE_SERVE_BUCKETS; k++)
        if (all && (double)(seen += bucket[k]) >= q * (double)all) return (double)hone_serve_bucket_ns(k);
    return 0;
}
/* The version runs its threads already. False: a request failed, or there is no memory. */
bool hone_serve_rehearse(hone_serve_version *v, hone_value *const *in, int askers, hone_serve_figures *out) {
    hone_serve_request *r[ASKERS] = {NULL};
    stage s = {0};
    hone_serve_error e = {0};
    bool good = true;
    if (askers > ASKERS) askers = ASKERS;
    if (askers > v->way.queue) askers = v->way.queue;
    for (int a = 0; a < askers && good; a++) {
        good = (r[a] = hone_serve_request_create(v, &e)) != NULL;
        for (int k = 0; k < v->inputs && good; k++) good = !hone_serve_input_value(r[a], k, in[k], &e);
        if (good) r[a]->done = done, r[a]->arg = &s, r[a]->timeout_us = 60000000;
    }
    uint64_t ns = v->way.ns[v->way.n_sizes - 1] * 8;
    ns = ns < LEAST_NS ? LEAST_NS : ns > MOST_NS ? MOST_NS : ns;
    const uint64_t from = hone_serve_now();
    for (int a = 0; a < askers && good; a++) atomic_fetch_add(&s.active, 1), hone_serve_submit(r[a]);
    if (good) nanosleep(&(struct timespec){.tv_nsec = (long)ns}, NULL);
    atomic_store(&s.stop, 1);
    pthread_mutex_lock(&v->lock);
    const hone_serve_counts c = v->counts;
    pthread_mutex_unlock(&v->lock);
    const uint64_t to = hone_serve_now();
    while (atomic_load(&s.active)) nanosleep(&(struct timespec){.tv_nsec = 200000}, NULL);
    for (int a = 0; a < askers; a++) hone_serve_request_free(r[a]);
    pthread_mutex_lock(&v->lock);
    memset(&v->counts, 0, sizeof v->counts);
    pthread_mutex_unlock(&v->lock);
    good = good && !atomic_load(&s.failed) && c.inferences;
    if (good)
        *out = (hone_serve_figures){.rows_a_second = (double)c.inferences / ((double)(to - from) * 1e-9),
                                    .p95_ns = quantile_ns(c.took, 0.95)};
    return good;
}
