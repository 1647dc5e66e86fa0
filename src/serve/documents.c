/* SPDX-License-Identifier: Apache-2.0
   documents: what the protocol tells of models, as JSON: metadata, config, statistics, the repository's
   index. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "serve/cuda.h"
#include "serve/inside.h"

const char *const *hone_serve_extensions(void) {
    static const char *const all[] = {"cuda_shared_memory",
                                      "classification",
                                      "sequence",
                                      "model_repository",
                                      "model_repository(unload_dependents)",
                                      "schedule_policy",
                                      "model_configuration",
                                      "binary_tensor_data",
                                      "parameters",
                                      "statistics",
                                      "system_shared_memory",
                                      NULL};
    return all + !hone_serve_cuda_there();
}

static json_t *dims_of(const hone_port *p, int from) {
    json_t *dims = json_array();
    for (int k = from; k < p->rank; k++)
        json_array_append_new(dims, json_integer(p->dims[k] >= 0 ? p->dims[k] : -1));
    return dims;
}
static bool shown(const hone_port *p) {
    return p->kind == HONE_VALUE_TENSOR && hone_serve_type_name(p->dtype);
}

static json_t *ports(const hone_serve_version *v, bool outputs, int from, bool config) {
    json_t *all = json_array();
    for (int k = 0; k < (outputs ? v->outputs : v->inputs); k++) {
        const hone_port *p = &v->port[outputs ? v->inputs + k : k];
        if (!shown(p)) continue;
        const char *type = hone_serve_type_name(p->dtype);
        json_t *one;
        if (config) {
            char name[40];
            snprintf(name, sizeof name, "TYPE_%s", p->dtype == HONE_DTYPE_STRING ? "STRING" : type);
            one = json_pack("{s:s, s:s, s:o}", "name", p->name, "data_type", name, "dims", dims_of(p, from));
        } else one = json_pack("{s:s, s:s, s:o}", "name", p->name, "datatype", type, "shape", dims_of(p, 0));
        if (one) json_array_append_new(all, one);
    }
    return all;
}
json_t *hone_serve_metadata(hone_serve_version *v) {
    hone_serve_core *c = v->core;
    json_t *versions = json_array();
    char number[32];
    pthread_rwlock_rdlock(&c->lock);
    for (int k = 0; k < c->n_entries; k++)
        for (int s = 0; s < c->entry[k].n_slots && !strcmp(c->entry[k].name, v->name); s++) {
            if (!c->entry[k].slot[s].version) continue;
            snprintf(number, sizeof number, "%lld", (long long)c->entry[k].slot[s].number);
            json_array_append_new(versions, json_string(number));
        }
    pthread_rwlock_unlock(&c->lock);
    return json_pack("{s:s, s:o, s:s, s:o, s:o}", "name", v->name, "versions", versions, "platform",
                     v->ensemble ? "ensemble" : "onnx_onnxv1", "inputs", ports(v, false, 0, false), "outputs",
                     ports(v, true, 0, false));
}

/* The folder's own, and what was measured, in Triton's names. */
static json_t *config_of_ensemble(hone_serve_version *v) {
    json_t *out = json_copy(v->config);
    const int64_t batch = hone_serve_config_int(v->config, "max_batch_size", 0);
    json_t *own = json_pack("{s:s, s:s, s:I, s:o, s:o}", "name", v->name, "platform", "ensemble",
                            "max_batch_size", (json_int_t)batch, "input", ports(v, false, batch > 0, true),
                            "output", ports(v, true, batch > 0, true));
    if (!json_object_get(v->config, "version_policy"))
        json_object_set_new(own, "version_policy", json_pack("{s:{s:i}}", "latest", "num_versions", 1));
    if (out && own) json_object_update(out, own);
    json_decref(own);
    return out;
}
json_t *hone_serve_config(hone_serve_version *v) {
    if (v->ensemble) return config_of_ensemble(v);
    const hone_serve_way *w = &v->way;
    const int batch = w->max_batch > 1 ? w->max_batch : 0, from = batch ? 1 : 0;
    const char *list = hone_serve_device_list(v), *devices = list && *list ? list : "cpu";
    json_t *sizes = json_array(), *out = json_copy(v->config);
    for (int k = 0; k < w->n_sizes; k++) json_array_append_new(sizes, json_integer(w->sizes[k]));
    json_t *own = json_pack("{s:s, s:s, s:s, s:i, s:o, s:o, s:[{s:s, s:i, s:s}]}", "name", v->name,
                            "platform", "onnx_onnxv1", "backend", "hone", "max_batch_size", batch, "input",
                            ports(v, false, from, true), "output", ports(v, true, from, true),
                            "instance_group", "name", v->name, "count", w->instances, "kind",
                            strncmp(devices, "cpu", 3) ? "KIND_GPU" : "KIND_CPU");
    if (!json_object_get(v->config, "version_policy"))
        json_object_set_new(own, "version_policy", json_pack("{s:{s:i}}", "latest", "num_versions", 1));
    json_object_set_new(own, "default_model_filename", json_string("model.onnx"));
    json_t *hone =
        json_pack("{s:s, s:i, s:b, s:s, s:s}", "device", devices, "threads", w->threads, "inline", w->quick,
                  "batching", w->why ? w->why : "measured", "measured", w->kept ? "before" : "now");
    json_object_set_new(hone, "memory_bytes", json_integer((json_int_t)hone_serve_memory_all(v)));
    if (v->memory.limit)
        json_object_set_new(hone, "memory_limit_bytes", json_integer((json_int_t)v->memory.limit));
    if (v->ragged.n) json_object_set_new(hone, "ragged", json_string(v->ragged.on ? "on" : v->ragged.why));
    json_object_set_new(hone, "run_ns", json_array());
    for (int k = 0; k < w->n_sizes; k++)
        json_array_append_new(json_object_get(hone, "run_ns"), json_integer((json_int_t)w->ns[k]));
    json_object_set_new(own, "hone", hone);
    if (batch)
        json_object_set_new(own, "dynamic_batching",
                            json_pack("{s:o, s:I, s:i, s:i}", "preferred_batch_size", sizes,
                                      "max_queue_delay_microseconds", (json_int_t)(w->delay_ns / 1000),
                                      "priority_levels", w->priorities, "default_priority_level",
                                      w->default_priority));
    else json_decref(sizes);
    if (out && own) json_object_update(out, own);
    json_decref(own);
    return out;
}

/* ---- statistics ---- */

static json_t *span_of(const hone_serve_span *s) {
    return json_pack("{s:I, s:I}", "count", (json_int_t)s->count, "ns", (json_int_t)s->ns);
}
static json_t *statistics_of(hone_serve_version *v) {
    hone_serve_counts *c = malloc(sizeof *c);
    if (!c) return NULL;
    pthread_mutex_lock(&v->lock);
    *c = v->counts;
    pthread_mutex_unlock(&v->lock);
    const hone_serve_span none = {0};
    json_t *batches = json_array();
    for (int k = 1; k <= HONE_SERVE_COUNTED; k++)
        if (c->batch[k].infer.count)
            json_array_append_new(batches, json_pack("{s:i, s:o, s:o, s:o}", "batch_size", k, "compute_input",
                                                     span_of(&c->batch[k].input), "compute_infer",
                                                     span_of(&c->batch[k].infer), "compute_output",
                                                     span_of(&c->batch[k].output)));
    char number[32];
    snprintf(number, sizeof number, "%lld", (long long)v->number);
    json_t *inside =
        json_pack("{s:o, s:o, s:o, s:o, s:o, s:o, s:o, s:o}", "success", span_of(&c->success), "fail",
                  span_of(&c->fail), "queue", span_of(&c->queue), "compute_input", span_of(&c->input),
                  "compute_infer", span_of(&c->infer), "compute_output", span_of(&c->output), "cache_hit",
                  span_of(&none), "cache_miss", span_of(&none));
    json_t *out =
        json_pack("{s:s, s:s, s:I, s:I, s:I, s:o, s:{}, s:o, s:[{s:s, s:i, s:I}]}", "name", v->name,
                  "version", number, "last_inference", (json_int_t)c->last_ms, "inference_count",
                  (json_int_t)c->inferences, "execution_count", (json_int_t)c->executions, "inference_stats",
                  inside, "response_stats", "batch_stats", batches, "memory_usage", "type", "CPU", "id", 0,
                  "byte_size", (json_int_t)hone_serve_memory_all(v));
    free(c);
    return out;
}
/* Those that are loaded, held; the caller frees the list. */
static hone_serve_version **loaded(hone_serve_core *c, const char *name, int64_t version, int *n) {
    int room = 0;
    *n = 0;
    pthread_rwlock_rdlock(&c->lock);
    for (int k = 0; k < c->n_entries; k++) room += c->entry[k].n_slots;
    hone_serve_version **all = malloc(sizeof *all * (size_t)(room + 1));
    for (int k = 0; all && k < c->n_entries; k++)
        for (int s = 0; s < c->entry[k].n_slots; s++) {
            const hone_serve_slot *slot = &c->entry[k].slot[s];
            if (slot->version && (!name || !strcmp(name, c->entry[k].name)) &&
                (!version || version == slot->number))
                all[(*n)++] = hone_serve_hold(slot->version);
        }
    pthread_rwlock_unlock(&c->lock);
    return all;
}
json_t *hone_serve_statistics(hone_serve_core *c, const char *name, int64_t version, hone_serve_error *e) {
    int n = 0;
    hone_serve_version *one = NULL;
    if (name && !(one = hone_serve_find(c, name, version, e))) return NULL;
    hone_serve_release(one);
    hone_serve_version **all = loaded(c, name, version, &n);
    json_t *list = json_array();
    for (int k = 0; all && k < n; k++) {
        json_t *s = statistics_of(all[k]);
        if (s) json_array_append_new(list, s);
        hone_serve_release(all[k]);
    }
    free(all);
    return json_pack("{s:o}", "model_stats", list);
}
json_t *hone_serve_index(hone_serve_core *c, bool ready_only) {
    static const char *const states[] = {"UNAVAILABLE", "LOADING", "READY"};
    json_t *list = json_array();
    char number[32];
    pthread_rwlock_rdlock(&c->lock);
    for (int k = 0; k < c->n_entries; k++) {
        const hone_serve_entry *e = &c->entry[k];
        for (int s = 0; s < e->n_slots; s++) {
            const hone_serve_slot *at = &e->slot[s];
            if (ready_only && at->state != HONE_SERVE_LOADED) continue;
            snprintf(number, sizeof number, "%lld", (long long)at->number);
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", e->name, "version", number,
                                                  "state", states[at->state], "reason",
                                                  at->reason ? at->reason : ""));
        }
        if (!e->n_slots && !ready_only) json_array_append_new(list, json_pack("{s:s}", "name", e->name));
    }
    pthread_rwlock_unlock(&c->lock);
    return list;
}

/* ---- classes ---- */

int hone_serve_classes(const hone_serve_version *v, const hone_value *scores, int k, hone_value **out,
                       hone_serve_error *e) {
    const int rank = hone_value_rank(scores);
    const int64_t n = rank ? hone_value_dims(scores)[rank - 1] : 0,
                  rows = n ? hone_value_elements(scores) / n : 0;
    if (!n || rank > 2 || !hone_serve_type_bytes(hone_value_dtype(scores)))
        return hone_serve_fail(e, 400, "classification wants an output of numbers, of one or two dims");
    if (k < 1 || rows > 100000)
        return hone_serve_fail(e, 400, "classification of %d classes; say 1 or more", k);
    if (k > n) k = (int)n;
    if ((double)n * k * (double)rows > 1e8)
        return hone_serve_fail(e, 400, "classification of %d out of %lld classes: ask for fewer", k,
                               (long long)n);
    const int64_t dims[2] = {rank == 2 ? rows : k, k};
    if (hone_tensor_create(HONE_DTYPE_STRING, dims, rank, out))
        return hone_serve_fail(e, 503, "%s", hone_error());
    char text[600];
    for (int64_t r = 0; r < rows; r++)
        for (int64_t place = 0, last = -1; place < k; place++) {
            int64_t best = -1;
            double most = 0, before = last < 0 ? 0 : hone_value_number(scores, r * n + last);
            for (int64_t c = 0; c < n; c++) { /* the next after the last one: no memory, and k is small */
                const double x = hone_value_number(scores, r * n + c);
                if (last >= 0 && !(x < before || (x == before && c > last))) continue;
                if (best < 0 || x > most) best = c, most = x;
            }
            if (best < 0) break; /* not numbers */
            const char *label = hone_serve_label(v, best);
            const int length = snprintf(text, sizeof text, "%f:%lld%s%.500s", most, (long long)best,
                                        label ? ":" : "", label ? label : "");
            if (hone_value_set_text(*out, r * k + place, text, (size_t)length))
                return hone_serve_fail(e, 503, "%s", hone_error());
            last = best;
        }
    return 0;
}
