/* SPDX-License-Identifier: Apache-2.0
   metrics: for Prometheus, under Triton's names; and the same numbers as JSON for the status page. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/http.h"
#include "serve/inside.h"

extern const char hone_status_page_text[];
extern const size_t hone_status_page_text_bytes;

typedef struct {
    hone_serve_version *version;
    hone_serve_counts counts;
    int waiting, running, sequences;
} row;

static row *rows_of(hone_serve_core *c, int *n) {
    int room = 0;
    *n = 0;
    pthread_rwlock_rdlock(&c->lock);
    for (int k = 0; k < c->n_entries; k++) room += c->entry[k].n_slots;
    row *all = calloc((size_t)room + 1, sizeof *all);
    for (int k = 0; all && k < c->n_entries; k++)
        for (int s = 0; s < c->entry[k].n_slots; s++)
            if (c->entry[k].slot[s].version)
                all[(*n)++].version = hone_serve_hold(c->entry[k].slot[s].version);
    pthread_rwlock_unlock(&c->lock);
    for (int k = 0; k < *n; k++) {
        hone_serve_version *v = all[k].version;
        pthread_mutex_lock(&v->lock);
        all[k].counts = v->counts, all[k].waiting = v->waiting, all[k].running = v->running;
        all[k].sequences = hone_serve_sequences_count(v);
        pthread_mutex_unlock(&v->lock);
    }
    return all;
}
static void rows_free(row *all, int n) {
    for (int k = 0; k < n; k++) hone_serve_release(all[k].version);
    free(all);
}
static double quantile(const uint64_t *bucket, double q) { /* in us */
    uint64_t all = 0, seen = 0;
    for (int k = 0; k < HONE_SERVE_BUCKETS; k++) all += bucket[k];
    if (!all) return 0;
    for (int k = 0; k < HONE_SERVE_BUCKETS; k++)
        if ((double)(seen += bucket[k]) >= q * (double)all) return (double)hone_serve_bucket_ns(k) / 1000;
    return 0;
}

/* ---- of this process ---- */

static uint64_t memory_used(void) {
    unsigned long long pages = 0, resident = 0;
    FILE *f = fopen("/proc/self/statm", "re");
    if (f && fscanf(f, "%llu %llu", &pages, &resident) != 2) resident = 0;
    if (f) fclose(f);
    return resident * (uint64_t)sysconf(_SC_PAGESIZE);
}
static double cpu_seconds(void) {
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* ---- Prometheus ---- */

typedef struct {
    const char *name, *help;
    uint64_t (*value)(const row *);
} counter;
static uint64_t successes(const row *r) { return r->counts.success.count; }
static uint64_t inferences(const row *r) { return r->counts.inferences; }
static uint64_t executions(const row *r) { return r->counts.executions; }
static uint64_t request_us(const row *r) { return (r->counts.success.ns + r->counts.fail.ns) / 1000; }
static uint64_t queue_us(const row *r) { return r->counts.queue.ns / 1000; }
static uint64_t input_us(const row *r) { return r->counts.input.ns / 1000; }
static uint64_t infer_us(const row *r) { return r->counts.infer.ns / 1000; }
static uint64_t output_us(const row *r) { return r->counts.output.ns / 1000; }
static const counter counters[] = {
    {"nv_inference_request_success", "Number of successful inference requests, all batch sizes", successes},
    {"nv_inference_count", "Number of inferences performed (a batch of n counts as n)", inferences},
    {"nv_inference_exec_count", "Number of model executions performed", executions},
    {"nv_inference_request_duration_us", "Cumulative inference request duration in microseconds", request_us},
    {"nv_inference_queue_duration_us", "Cumulative inference queuing duration in microseconds", queue_us},
    {"nv_inference_compute_input_duration_us", "Cumulative compute input duration in microseconds", input_us},
    {"nv_inference_compute_infer_duration_us", "Cumulative compute inference duration in microseconds",
     infer_us},
    {"nv_inference_compute_output_duration_us",
     "Cumulative inference compute output duration in microseconds", output_us},
};

static bool labels(hone_http_text *t, const row *r) { /* Prometheus escapes as JSON does */
    return hone_http_append(t, "{model=", 7) && hone_http_quoted(t, r->version->name) &&
           hone_http_printf(t, ",version=\"%lld\"", (long long)r->version->number);
}
static bool head(hone_http_text *t, const char *name, const char *help, const char *type) {
    return hone_http_printf(t, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, type);
}
static bool summary(hone_http_text *t, const row *all, int n, const char *name, bool waited) {
    static const double q[] = {0.5, 0.9, 0.95, 0.99, 0.999};
    bool good = head(t, name,
                     waited ? "Summary of inference queuing duration in microseconds"
                            : "Summary of inference request duration in microseconds",
                     "summary");
    for (int k = 0; k < n && good; k++) {
        const hone_serve_counts *c = &all[k].counts;
        for (size_t i = 0; i < sizeof q / sizeof *q && good; i++)
            good = hone_http_printf(t, "%s", name) && labels(t, &all[k]) &&
                   hone_http_printf(t, ",quantile=\"%g\"} %.0f\n", q[i],
                                    quantile(waited ? c->waited : c->took, q[i]));
        const hone_serve_span s =
            waited ? c->queue
                   : (hone_serve_span){c->success.count + c->fail.count, c->success.ns + c->fail.ns};
        good = good && hone_http_printf(t, "%s_count", name) && labels(t, &all[k]) &&
               hone_http_printf(t, "} %llu\n%s_sum", (unsigned long long)s.count, name) &&
               labels(t, &all[k]) && hone_http_printf(t, "} %llu\n", (unsigned long long)(s.ns / 1000));
    }
    return good;
}
bool hone_serve_metrics_process(hone_http_text *t) {
    return head(t, "nv_cpu_memory_total_bytes", "CPU total memory (RAM), in bytes", "gauge") &&
           hone_http_printf(t, "nv_cpu_memory_total_bytes %llu\n",
                            (unsigned long long)sysconf(_SC_PHYS_PAGES) *
                                (unsigned long long)sysconf(_SC_PAGESIZE)) &&
           head(t, "process_resident_memory_bytes", "Resident memory size in bytes", "gauge") &&
           hone_http_printf(t, "process_resident_memory_bytes %llu\n", (unsigned long long)memory_used()) &&
           head(t, "process_cpu_seconds_total", "Total user and system CPU time spent in seconds",
                "counter") &&
           hone_http_printf(t, "process_cpu_seconds_total %.6f\n", cpu_seconds());
}
bool hone_serve_metrics_write(hone_serve_core *c, hone_http_text *t) {
    int n;
    row *all = rows_of(c, &n);
    bool good = all != NULL;
    for (size_t i = 0; i < sizeof counters / sizeof *counters && good; i++) {
        good = head(t, counters[i].name, counters[i].help, "counter");
        for (int k = 0; k < n && good; k++)
            good = hone_http_printf(t, "%s", counters[i].name) && labels(t, &all[k]) &&
                   hone_http_printf(t, "} %llu\n", (unsigned long long)counters[i].value(&all[k]));
    }
    good = good && head(t, "nv_inference_request_failure",
                        "Number of failed inference requests, all batch sizes", "counter");
    for (int k = 0; k < n && good; k++) {
        const uint64_t rejected = all[k].counts.rejected, cancelled = all[k].counts.cancelled,
                       other = all[k].counts.fail.count - rejected - cancelled;
        good = hone_http_printf(t, "nv_inference_request_failure") && labels(t, &all[k]) &&
               hone_http_printf(t, ",reason=\"REJECTED\"} %llu\n", (unsigned long long)rejected) &&
               hone_http_printf(t, "nv_inference_request_failure") && labels(t, &all[k]) &&
               hone_http_printf(t, ",reason=\"CANCELED\"} %llu\n", (unsigned long long)cancelled) &&
               hone_http_printf(t, "nv_inference_request_failure") && labels(t, &all[k]) &&
               hone_http_printf(t, ",reason=\"OTHER\"} %llu\n", (unsigned long long)other);
    }
    good = good && head(t, "nv_inference_pending_request_count",
                        "Instantaneous number of pending requests awaiting execution per-model", "gauge");
    for (int k = 0; k < n && good; k++)
        good = hone_http_printf(t, "nv_inference_pending_request_count") && labels(t, &all[k]) &&
               hone_http_printf(t, "} %d\n", all[k].waiting);
    good = good && head(t, "hone_sequences", "Sequences that were started and have not ended", "gauge");
    for (int k = 0; k < n && good; k++)
        if (all[k].version->sequences)
            good = hone_http_printf(t, "hone_sequences") && labels(t, &all[k]) &&
                   hone_http_printf(t, "} %d\n", all[k].sequences);
    static const char *const memories[][2] = {
        {"hone_model_memory_bytes", "Bytes of weights and of the tensors of all instances"},
        {"hone_model_memory_limit_bytes", "Bytes that a model may take"}};
    for (int m = 0; m < 2 && good; m++) {
        good = head(t, memories[m][0], memories[m][1], "gauge");
        for (int k = 0; k < n && good; k++) {
            const hone_serve_version *v = all[k].version;
            if (v->ensemble || (m && !v->memory.limit)) continue;
            good =
                hone_http_printf(t, "%s", memories[m][0]) && labels(t, &all[k]) &&
                hone_http_printf(t, "} %lld\n", (long long)(m ? v->memory.limit : hone_serve_memory_all(v)));
        }
    }
    good = good && head(t, "nv_model_load_duration_secs", "Model load time in seconds", "gauge");
    for (int k = 0; k < n && good; k++)
        good = hone_http_printf(t, "nv_model_load_duration_secs") && labels(t, &all[k]) &&
               hone_http_printf(t, "} %.6f\n", (double)all[k].counts.load_ns * 1e-9);
    good = good && summary(t, all, n, "nv_inference_request_summary_us", false) &&
           summary(t, all, n, "nv_inference_queue_summary_us", true);
    good = good && hone_serve_metrics_process(t);
    if (all) rows_free(all, n);
    return good;
}

/* ---- the status page ---- */

void hone_http_page(hone_http_call *c) {
    hone_http_text t = {0};
    if (hone_http_append(&t, hone_status_page_text, hone_status_page_text_bytes))
        hone_http_answer(c, 200, "text/html; charset=utf-8", &t);
    else hone_serve_fail(&c->error, 503, "no memory for the page");
}
json_t *hone_serve_status_process(void) {
    return json_pack("{s:s, s:f, s:I}", "version", hone_version(), "cpu_s", cpu_seconds(), "memory_bytes",
                     (json_int_t)memory_used());
}
void hone_http_status(hone_http_call *c) {
    static const char *const healths[] = {"starting", "ready", "draining"};
    hone_serve_core *core = hone_http_core(c);
    int n;
    row *all = rows_of(core, &n);
    json_t *models = json_array();
    for (int k = 0; all && k < n; k++) {
        const hone_serve_counts *s = &all[k].counts;
        const hone_serve_way *w = &all[k].version->way;
        json_t *sizes = json_object();
        char number[32];
        for (int b = 1; b <= HONE_SERVE_COUNTED; b++) {
            snprintf(number, sizeof number, "%d", b);
            if (s->batch[b].infer.count)
                json_object_set_new(sizes, number, json_integer((json_int_t)s->batch[b].infer.count));
        }
        json_t *one = json_pack(
            "{s:s, s:I, s:i, s:i, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f, s:f, s:i, s:i, s:i, s:I, s:I, s:f, "
            "s:o}",
            "name", all[k].version->name, "version", (json_int_t)all[k].version->number, "waiting",
            all[k].waiting, "running", all[k].running, "requests", (json_int_t)s->success.count, "failed",
            (json_int_t)s->fail.count, "inferences", (json_int_t)s->inferences, "runs",
            (json_int_t)s->executions, "p50_us", quantile(s->took, 0.5), "p90_us", quantile(s->took, 0.9),
            "p99_us", quantile(s->took, 0.99), "queue_p99_us", quantile(s->waited, 0.99), "infer_us",
            s->infer.count ? (double)s->infer.ns / 1000 / (double)s->infer.count : 0.0, "instances",
            w->instances, "threads", w->threads, "max_batch", w->max_batch, "memory_bytes",
            (json_int_t)hone_serve_memory_all(all[k].version), "memory_limit_bytes",
            (json_int_t)all[k].version->memory.limit, "load_s", (double)s->load_ns * 1e-9, "batches", sizes);
        if (one) json_array_append_new(models, one);
    }
    if (all) rows_free(all, n);
    hone_http_answer_json(c, 200,
                          json_pack("{s:s, s:s, s:f, s:f, s:I, s:i, s:o, s:o}", "version", hone_version(),
                                    "health", healths[hone_serve_health_of(core)], "uptime_s",
                                    (double)(hone_serve_now() - core->began_ns) * 1e-9, "cpu_s",
                                    cpu_seconds(), "memory_bytes", (json_int_t)memory_used(), "under_way",
                                    atomic_load(&core->under_way), "models", models, "index",
                                    hone_serve_index(core, false)));
}
