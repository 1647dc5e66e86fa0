/* SPDX-License-Identifier: Apache-2.0
   measure: how a version is run, found by running it: whether rows of the first dim are independent (then
   requests may be joined), which sizes of batch pay, how many sessions with how many threads, how long to
   wait for others. A config's word goes before a measurement; it is only checked. What was found is kept
   (learned.c). */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "hone/tools.h"
#include "serve/inside.h"

enum { FREE_DIM = 8, MOST_BATCH = 32, RUNS = 3 };
static const uint64_t PATIENCE_NS = 700000000, LEAST_NS = 4000000, QUICK_NS = 250000, SLOW_NS = 300000000;
static const double PAYS = 0.95; /* of the time a row took in a smaller batch */
static const double CALM = 0.9;  /* of the time, a thread that runs is on a core */

/* ---- inputs made up ---- */

/* A dim that the model leaves free, as its config has it; -1: it says nothing. */
static int64_t dim_said(const hone_serve_version *v, const hone_port *p, int k) {
    const json_t *list = json_object_get(v->config, "input"), *one;
    size_t at;
    json_array_foreach(list, at, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        const json_t *dims = json_object_get(one, "dims");
        const int skip = p->rank - (int)json_array_size(dims);
        if (!name || strcmp(name, p->name) != 0 || skip < 0 || skip > 1 || k < skip) continue;
        const json_int_t d = json_integer_value(json_array_get(dims, (size_t)(k - skip)));
        return d > 0 && d < 1 << 20 ? d : -1;
    }
    return -1;
}
static bool make_input(const hone_serve_version *v, const hone_port *p, int64_t rows, unsigned seed,
                       hone_value **out) {
    int64_t dims[16];
    if (p->rank < 0 || p->rank > 16 || p->kind != HONE_VALUE_TENSOR) return false;
    for (int k = 0; k < p->rank; k++) {
        const int64_t said = dim_said(v, p, k);
        dims[k] = p->dims[k] >= 0 ? p->dims[k] : said > 0 ? said : k || rows < 1 ? FREE_DIM : rows;
    }
    if (hone_tensor_create(p->dtype, dims, p->rank, out)) return false;
    const int64_t n = hone_value_elements(*out);
    void *at = hone_value_data(*out);
    for (int64_t k = 0; k < n; k++) {
        seed = seed * 1664525u + 1013904223u;
        const float x = (float)(seed >> 8) / (float)(1 << 24);
        switch (p->dtype) {
        case HONE_DTYPE_F32: ((float *)at)[k] = x; break;
        case HONE_DTYPE_F64: ((double *)at)[k] = x; break;
        case HONE_DTYPE_U8: ((uint8_t *)at)[k] = (uint8_t)(seed >> 24); break;
        case HONE_DTYPE_BOOL: ((uint8_t *)at)[k] = 1; break;
        /* a token that every vocabulary has */
        case HONE_DTYPE_I64: ((int64_t *)at)[k] = 1 + (seed >> 28 & 1); break;
        case HONE_DTYPE_I32: ((int32_t *)at)[k] = 1 + (int32_t)(seed >> 28 & 1); break;
        default: break; /* zeros */
        }
    }
    return true;
}
typedef struct {
    hone_value **in, **out;
    int inputs, outputs;
} trial;
static void trial_end(trial *t) {
    for (int k = 0; t->in && k < t->inputs + t->outputs; k++) hone_value_free(t->in[k]);
    free(t->in);
    *t = (trial){0};
}
static bool trial_begin(const hone_serve_version *v, int64_t rows, unsigned seed, trial *t) {
    *t = (trial){.inputs = hone_model_inputs(v->model), .outputs = hone_model_outputs(v->model)};
    if (!(t->in = calloc((size_t)(t->inputs + t->outputs) + 1, sizeof *t->in))) return false;
    t->out = t->in + t->inputs;
    for (int k = 0; k < t->inputs; k++)
        if (!(t->in[k] = hone_value_share(hone_serve_sequences_made(v, k))) &&
            !make_input(v, hone_model_input(v->model, k), rows, seed + (unsigned)k, &t->in[k])) {
            trial_end(t);
            return false;
        }
    return true;
}
hone_value **hone_serve_made_inputs(const hone_serve_version *v, int64_t rows) {
    trial t;
    return trial_begin(v, rows, 1, &t) ? t.in : NULL;
}
static uint64_t worked(void) { /* ns of this thread on a core */
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
/* The best of a few runs; 0: it cannot be run with made up inputs. */
static uint64_t time_runs(const hone_serve_version *v, hone_session *s, int64_t rows) {
    trial t;
    uint64_t best = 0, spent = 0;
    if (!trial_begin(v, rows, 1, &t)) return 0;
    bool good = !hone_session_run(s, t.in, t.out); /* makes the plan */
    for (int k = 0; good && (k < RUNS || spent < LEAST_NS) && (!k || spent < PATIENCE_NS / 4); k++) {
        const uint64_t from = hone_serve_now();
        good = !hone_session_run(s, t.in, t.out);
        const uint64_t ns = hone_serve_now() - from;
        spent += ns;
        if (!best || ns < best) best = ns;
    }
    trial_end(&t);
    return good ? best : 0;
}

/* ---- may requests be joined? ---- */

static const char *cannot_join(const hone_serve_version *v) {
    if (v->sequences) return "requests of sequences run one by one";
    if (!v->inputs) return "the model has no inputs";
    for (int k = 0; k < v->inputs + v->outputs; k++) {
        const hone_port *p = &v->port[k];
        if (p->kind != HONE_VALUE_TENSOR || !hone_serve_type_bytes(p->dtype))
            return "not all inputs and outputs are tensors of numbers";
        if (k < v->inputs ? p->rank < 1 || p->dims[0] >= 0 : p->rank == 0 || (p->rank > 0 && p->dims[0] >= 0))
            return "the first dim is not free in all inputs and outputs";
    }
    return NULL;
}
/* Rows `at` of `both` against all of `one`. */
static bool same_rows(hone_value *both, hone_value *one, int64_t at) {
    int64_t dims[16];
    hone_value *row = NULL;
    hone_difference d;
    const int rank = hone_value_rank(both);
    if (rank < 1 || hone_value_rank(one) != rank || hone_value_dims(both)[0] != 2 ||
        hone_value_dims(one)[0] != 1)
        return false;
    memcpy(dims, hone_value_dims(both), sizeof *dims * (size_t)rank);
    dims[0] = 1;
    const char *data = hone_value_data(both);
    if (hone_tensor_borrow(hone_value_dtype(both), dims, rank,
                           data ? data + (size_t)at * hone_value_bytes(both) / 2 : NULL, &row))
        return false;
    double largest = 0;
    for (int64_t k = 0, n = hone_value_elements(one); k < n; k++) {
        const double x = hone_value_number(one, k);
        if (x > largest) largest = x;
        else if (-x > largest) largest = -x;
    }
    hone_compare(row, one, 1e-3, 1e-3 * largest + 1e-6, &d);
    hone_value_free(row);
    return d.ok;
}
/* Two rows together, and each alone, give the same: then a row knows nothing of the others. */
static const char *not_independent(const hone_serve_version *v, hone_session *s) {
    trial both, one[2] = {{0}, {0}};
    const char *why = NULL;
    if (!trial_begin(v, 2, 7, &both)) return "there are no inputs to try it with";
    if (hone_session_run(s, both.in, both.out)) why = "a batch of two cannot be run";
    for (int r = 0; !why && r < 2; r++) {
        if (!trial_begin(v, 1, 7, &one[r])) why = "there are no inputs to try it with";
        for (int k = 0; !why && k < v->inputs; k++) {
            const size_t n = hone_value_bytes(one[r].in[k]);
            if (hone_value_bytes(both.in[k]) != 2 * n) why = "a row of two is not half of them";
            else if (n)
                memcpy(hone_value_data(one[r].in[k]), (char *)hone_value_data(both.in[k]) + (size_t)r * n, n);
        }
        if (!why && hone_session_run(s, one[r].in, one[r].out)) why = "a batch of one cannot be run";
        for (int k = 0; !why && k < v->outputs; k++)
            if (!same_rows(both.out[k], one[r].out[k], r))
                why = "rows of the first dim are not independent of each other";
    }
    trial_end(&both), trial_end(&one[0]), trial_end(&one[1]);
    return why;
}

/* ---- the way ---- */

/* For the k-th instance: each device has some. */
static int session(hone_serve_version *v, int k, int threads, hone_session **out, hone_serve_error *e) {
    hone_options o;
    char device[64];
    hone_options_default(&o);
    o.device = hone_serve_device(hone_serve_device_list(v), k, device);
    o.threads = threads, o.limit_ms = v->core->o.run_ms, o.limit_bytes = hone_serve_memory_room(v);
    const char *p = v->core->o.precision;
    if (p)
        o.precision = !strcmp(p, "bf16")   ? HONE_DTYPE_BF16
                      : !strcmp(p, "f16")  ? HONE_DTYPE_F16
                      : !strcmp(p, "tf32") ? HONE_PRECISION_TF32
                                           : HONE_DTYPE_F32;
    const hone_status s = hone_session_create(v->model, &o, out);
    return s ? hone_serve_failed(e, s, hone_error()) : 0;
}
static void told_sizes(hone_serve_version *v, hone_session *s, const hone_serve_way *told) {
    hone_serve_way *w = &v->way;
    for (int k = 0; k < told->n_sizes && w->n_sizes < HONE_SERVE_SIZES; k++)
        if (told->sizes[k] > w->sizes[w->n_sizes - 1])
            w->sizes[w->n_sizes] = told->sizes[k], w->ns[w->n_sizes++] = time_runs(v, s, told->sizes[k]);
    w->max_batch = w->sizes[w->n_sizes - 1];
}
static void find_sizes(hone_serve_version *v, hone_session *s, int most) {
    hone_serve_way *w = &v->way;
    double best = (double)w->ns[0];
    const uint64_t begun = hone_serve_now();
    for (int rows = 2, poor = 0; rows <= most && w->n_sizes < HONE_SERVE_SIZES && poor < 2; rows *= 2) {
        if (hone_serve_now() - begun > PATIENCE_NS) break;
        const uint64_t ns = time_runs(v, s, rows);
        if (!ns || (v->core->latency_goal_ns && ns > v->core->latency_goal_ns)) break;
        if ((double)ns / rows > best * PAYS) {
            poor++;
            continue;
        }
        best = (double)ns / rows, poor = 0;
        w->sizes[w->n_sizes] = rows, w->ns[w->n_sizes++] = ns;
    }
    w->max_batch = w->sizes[w->n_sizes - 1];
    if (w->max_batch == 1) w->max_batch = 0, w->why = "larger batches are not faster here";
}
/* Sessions for all instances, and their plans, before the first request. */
static int stage(hone_serve_version *v, hone_serve_error *e) {
    const hone_serve_way *w = &v->way;
    v->memory.tensors = 0;
    v->instance = calloc((size_t)w->instances, sizeof *v->instance);
    if (!v->instance) return hone_serve_fail(e, 503, "no memory for model '%s'", v->name);
    for (; v->n_instances < w->instances; v->n_instances++) {
        if (session(v, v->n_instances, w->threads, &v->instance[v->n_instances].session, e)) return e->code;
        for (int k = 0; k < w->n_sizes && w->alone_ns; k++) {
            trial t;
            if (!trial_begin(v, w->sizes[k], 1, &t)) continue;
            const hone_status s = hone_session_run(v->instance[v->n_instances].session, t.in, t.out);
            trial_end(&t);
            if (s == HONE_NO_MEMORY && v->memory.limit) hone_serve_memory_over(v, hone_error(), e);
        }
        if (!e->code && w->alone_ns) hone_serve_memory_note(v, v->instance[v->n_instances].session, true, e);
        if (e->code) return v->n_instances++, e->code;
    }
    if (w->alone_ns) hone_serve_ragged_try(v, v->instance[0].session);
    return 0;
}
/* Is the first better than the second? A goal that is kept goes before any throughput; more of that has to be
   clear, as other work on the machine is in both figures. */
static bool better(const hone_serve_core *c, const hone_serve_figures *a, const hone_serve_figures *b) {
    const double goal = (double)c->latency_goal_ns;
    if (goal > 0 && (a->p95_ns <= goal) != (b->p95_ns <= goal)) return a->p95_ns <= goal;
    if (goal > 0 && a->p95_ns > goal) return a->p95_ns < PAYS * b->p95_ns;
    return a->rows_a_second * PAYS > b->rows_a_second;
}
/* The way as it is, under load, and with other delays; the best stays in v->way. */
static bool rehearse(hone_serve_version *v, bool delays, hone_serve_figures *best) {
    hone_serve_way *w = &v->way;
    hone_serve_error e = {0};
    const int cores = v->core->cores, most = w->max_batch > cores ? w->max_batch : cores;
    const uint64_t delay[] = {w->delay_ns, w->ns[0] / 8, w->ns[0] / 2};
    uint64_t keep = w->delay_ns;
    trial t;
    bool good = trial_begin(v, 1, 1, &t);
    good = good && !stage(v, &e) && !hone_serve_run_start(v, &e);
    for (int k = 0; good && k < (delays && w->max_batch > 1 ? 3 : 1); k++) {
        hone_serve_figures f;
        pthread_mutex_lock(&v->lock);
        w->delay_ns = delay[k];
        pthread_mutex_unlock(&v->lock);
        good = hone_serve_rehearse(v, t.in, v->core->latency_goal_ns ? 2 * cores : 2 * most, &f);
        if (good && (!k || better(v->core, &f, best))) *best = f, keep = delay[k];
    }
    hone_serve_run_stop(v);
    v->closing = false, w->delay_ns = keep;
    trial_end(&t);
    return good;
}
/* Instances and threads: as many instances of one thread as there are cores, one of all, or between. */
static void choose(hone_serve_version *v, const hone_serve_way *told, bool joined) {
    const int cores = v->core->cores;
    const hone_serve_way first = v->way;
    const struct {
        int instances, threads;
    } others[] = {{cores, 1}, {1, cores}, {cores / 2, 2}, {2, cores / 2}};
    const bool free_choice = !told->instances && !told->threads && cores > 1 &&
                             !hone_serve_devices(hone_serve_device_list(v)),
               delays = !told->delay_ns;
    hone_serve_figures best, now;
    if (first.ns[0] > SLOW_NS || !rehearse(v, delays, &best)) {
        v->way = first;
        return;
    }
    hone_serve_way keep = v->way;
    for (size_t k = 0; free_choice && k < sizeof others / sizeof *others; k++) {
        const int instances = others[k].instances < 8 ? others[k].instances : 8, threads = others[k].threads;
        hone_serve_error e = {0};
        hone_session *s = NULL;
        bool tried =
            instances < 1 || threads < 1 || (instances == first.instances && threads == first.threads);
        for (size_t j = 0; j < k; j++)
            tried |= others[j].instances == others[k].instances && others[j].threads == threads;
        if (tried) continue;
        v->way = first, v->way.instances = instances, v->way.threads = threads;
        if (threads != first.threads) {
            v->way.n_sizes = 1;
            if (session(v, 0, threads, &s, &e)) continue;
            v->way.ns[0] = time_runs(v, s, 1);
            if (joined && told->n_sizes) told_sizes(v, s, told);
            else if (joined)
                v->way.why = NULL, find_sizes(v, s, told->max_batch > 0 ? told->max_batch : MOST_BATCH);
            hone_session_free(s);
        }
        if (v->way.ns[0] && rehearse(v, delays, &now) && better(v->core, &now, &best))
            best = now, keep = v->way;
    }
    v->way = keep;
}
/* A session that a run of one row fits into the memory of, if need be by having one instance. */
static int first_session(hone_serve_version *v, bool free_choice, hone_session **out, hone_serve_error *e) {
    for (trial t; !session(v, 0, 1, out, e);) {
        if (!v->memory.limit || !trial_begin(v, 1, 1, &t)) return 0;
        const hone_status s = hone_session_run(*out, t.in, t.out);
        trial_end(&t);
        if (s != HONE_NO_MEMORY) return s ? 0 : hone_serve_memory_note(v, *out, false, e);
        if (!free_choice || v->way.instances == 1) return hone_serve_memory_over(v, hone_error(), e);
        hone_session_free(*out), *out = NULL;
        v->way.instances = 1;
    }
    return e->code;
}
int hone_serve_measure(hone_serve_version *v, hone_serve_error *e) {
    hone_serve_way *w = &v->way, told = {0};
    hone_session *one = NULL, *all = NULL;
    char key[17];
    *w = (hone_serve_way){.sizes = {1}, .n_sizes = 1, .instances = v->core->cores, .queue = v->core->o.queue};
    if (w->instances > 8) w->instances = 8;
    if (hone_serve_config_way(v, &told, e) || hone_serve_ragged_read(v, e)) return e->code;
    const bool kept = hone_serve_learned_key(v, &told, key), known = kept && hone_serve_learned_find(v, key);
    if (told.queue) w->queue = told.queue;
    w->timeout_us = told.timeout_us, w->priorities = told.priorities,
    w->default_priority = told.default_priority;
    if (known) {
        w->quick = w->alone_ns && w->alone_ns < QUICK_NS && !w->delay_ns;
        return stage(v, e);
    }
    const int devices = hone_serve_devices(hone_serve_device_list(v));
    if (devices) w->instances = devices;
    if (told.instances) w->instances = told.instances * (devices ? devices : 1);
    if (first_session(v, !devices && !told.instances, &one, e)) goto out;
    const uint64_t from = hone_serve_now(), work = worked(), alone = w->alone_ns = time_runs(v, one, 1);
    /* a thread that had to wait for its core shares the machine: such figures are used, and not kept */
    const bool calm = (double)(worked() - work) > CALM * (double)(hone_serve_now() - from);
    uint64_t wide = 0;
    w->threads = 1, w->ns[0] = alone;
    if (alone > QUICK_NS && v->core->cores > 1 &&
        !devices) { /* below that a team costs more than it brings */
        if (session(v, 0, v->core->cores, &all, e)) goto out;
        wide = time_runs(v, all, 1);
        if (wide && (double)wide < 0.8 * (double)alone) w->threads = v->core->cores, w->ns[0] = wide;
    }
    if (told.threads) w->threads = told.threads;
    hone_session *use = w->threads > 1 && all ? all : one;
    w->delay_ns = told.delay_ns;
    /* who is to wait for others waits in the queue */
    w->quick = alone && alone < QUICK_NS && !w->delay_ns;
    w->why = told.why ? told.why : cannot_join(v);
    if (!w->why && !alone) w->why = "it could not be run with made up inputs";
    if (!w->why) w->why = not_independent(v, use);
    const bool joined = !w->why;
    if (joined && told.n_sizes) told_sizes(v, use, &told);
    else if (joined) find_sizes(v, use, told.max_batch > 0 ? told.max_batch : MOST_BATCH);
    hone_session_free(one), hone_session_free(all), one = all = NULL;
    if (alone && !w->quick && !v->sequences) choose(v, &told, joined);
    if (!stage(v, e) && kept && (calm || devices)) hone_serve_learned_keep(v, key);
out:
    hone_session_free(one), hone_session_free(all);
    return e->code;
}
