/* SPDX-License-Identifier: Apache-2.0
   config: what a model's folder says of it: config.pbtxt as Triton has it, or hone.json with the same names;
   and what of that decides how it is run. Both become one JSON object. What is not known is left alone: it is
   shown again by /config, and does nothing. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/inside.h"

enum { PATHS = 4096, MOST = 1 << 20 };

static char *whole(const char *path, size_t *n, hone_serve_error *e) { /* NULL: not there, or too large (e) */
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    char *text = malloc(MOST + 1);
    *n = text ? fread(text, 1, MOST + 1, f) : 0;
    fclose(f);
    if (text && *n <= MOST) return text;
    hone_serve_fail(e, 400, "%s: more than %d KiB", path, MOST >> 10);
    free(text);
    return NULL;
}
static int lengthen_state(json_t *config, const char *path, hone_serve_error *e) {
    json_t *sequences = json_object_get(config, "sequence_batching"), *output, *list = json_array();
    const char *input;
    json_object_foreach(json_object_get(sequences, "state"), input,
                        output) if (json_array_append_new(list, json_pack("{s:s, s:O}", "input_name", input,
                                                                          "output_name", output)))
        hone_serve_fail(e, 503, "no memory for %s", path);
    if (!e->code) json_object_set(sequences, "state", list);
    json_decref(list);
    return e->code;
}
/* What hone.json may say shortly, as Triton has it: "ensemble": [{"model": "a", "inputs": {"x": "t"},
   "outputs": {"y": "u"}}, …]; "sequence_batching": {"state": {"input": "output"}}. */
int hone_serve_config_lengthen(json_t *config, const char *path, hone_serve_error *e) {
    if (json_is_object(json_object_get(json_object_get(config, "sequence_batching"), "state")) &&
        lengthen_state(config, path, e))
        return e->code;
    const json_t *steps = json_object_get(config, "ensemble"), *one;
    json_t *list = json_array();
    size_t k;
    if (steps && !json_is_array(steps))
        hone_serve_fail(e, 400, "%s: \"ensemble\" is to be a list of steps", path);
    json_array_foreach(steps, k, one) {
        const json_t *version = json_object_get(one, "version"), *in = json_object_get(one, "inputs"),
                     *out = json_object_get(one, "outputs");
        const char *model = json_string_value(json_object_get(one, "model"));
        json_t *step = json_pack("{s:s, s:I, s:O?, s:O?}", "model_name", model ? model : "", "model_version",
                                 version ? json_integer_value(version) : (json_int_t)-1, "input_map", in,
                                 "output_map", out);
        if (!step || json_array_append_new(list, step))
            return json_decref(list), hone_serve_fail(e, 503, "no memory for %s", path);
    }
    if (steps && !e->code) {
        json_object_set_new(config, "platform", json_string("ensemble"));
        json_object_set_new(config, "ensemble_scheduling", json_pack("{s:O}", "step", list));
        json_object_del(config, "ensemble");
    }
    json_decref(list);
    return e->code;
}
json_t *hone_serve_config_read(const char *folder, hone_serve_error *e) {
    char path[PATHS];
    json_error_t where;
    json_t *out = NULL;
    size_t n = 0;
    if (!folder) return json_object();
    snprintf(path, sizeof path, "%.4000s/hone.json", folder);
    char *text = whole(path, &n, e);
    if (text) {
        out = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
        if (!out) hone_serve_fail(e, 400, "%s:%d:%d: %s", path, where.line, where.column, where.text);
        else if (!json_is_object(out)) hone_serve_fail(e, 400, "%s: it is to be an object: {…}", path);
        else hone_serve_config_lengthen(out, path, e);
    } else if (!e->code) {
        snprintf(path, sizeof path, "%.4000s/config.pbtxt", folder);
        if ((text = whole(path, &n, e))) {
            hone_serve_error own = {0};
            if (!(out = hone_serve_pbtxt(text, n, &own)))
                hone_serve_fail(e, own.code, "%s: %.300s", path, own.text);
        } else if (!e->code) out = json_object();
    }
    free(text);
    if (!e->code) return out;
    json_decref(out);
    return NULL;
}
int64_t hone_serve_config_int(const json_t *at, const char *path, int64_t otherwise) {
    char key[80];
    for (const char *p = path; *p;) {
        const size_t n = strcspn(p, ".");
        snprintf(key, sizeof key, "%.*s", (int)n, p);
        if (json_is_array(at)) at = json_array_get(at, 0);
        at = json_object_get(at, key);
        p += n + (p[n] == '.');
    }
    /* JSON made of protobuf has large integers as texts */
    if (json_is_string(at)) return strtoll(json_string_value(at), NULL, 10);
    return json_is_integer(at) ? json_integer_value(at) : otherwise;
}

static int within(const hone_serve_version *v, const char *path, int64_t otherwise, int64_t low, int64_t high,
                  int64_t *out, hone_serve_error *e) {
    *out = hone_serve_config_int(v->config, path, otherwise);
    return *out >= low && *out <= high
               ? 0
               : hone_serve_fail(e, 400, "the config of '%s': %s is %lld; from %lld to %lld will do", v->name,
                                 path, (long long)*out, (long long)low, (long long)high);
}
int hone_serve_devices(const char *list) {
    int n = list && *list;
    for (; list && *list; list++) n += *list == ',';
    return n;
}
const char *hone_serve_device(const char *list, int k, char out[64]) {
    const int n = hone_serve_devices(list);
    if (!n) return "cpu";
    for (k %= n; k > 0; k--) list += strcspn(list, ",") + 1;
    snprintf(out, 64, "%.*s", (int)strcspn(list, ","), list);
    return out;
}
const char *hone_serve_device_list(const hone_serve_version *v) {
    const char *own = json_string_value(json_object_get(v->config, "device"));
    return own ? own : v->core->o.device;
}

/* A field that is 0 was not said. */
int hone_serve_config_way(const hone_serve_version *v, hone_serve_way *w, hone_serve_error *e) {
    const json_t *batching = json_object_get(v->config, "dynamic_batching"), *sizes, *size;
    const json_t *said = json_object_get(v->config, "max_batch_size");
    int64_t batch, instances, threads, delay, queue, timeout, levels, level;
    size_t k;
    if (within(v, "max_batch_size", 0, 0, 4096, &batch, e) ||
        within(v, "instance_group.count", 0, 0, 256, &instances, e) ||
        within(v, "threads", 0, 0, 1024, &threads, e) ||
        within(v, "dynamic_batching.max_queue_delay_microseconds", 0, 0, 10000000, &delay, e) ||
        within(v, "dynamic_batching.default_queue_policy.max_queue_size", 0, 0, 1000000, &queue, e) ||
        within(v, "dynamic_batching.default_queue_policy.default_timeout_microseconds", 0, 0, 86400000000,
               &timeout, e) ||
        within(v, "dynamic_batching.priority_levels", 0, 0, 1000, &levels, e) ||
        within(v, "dynamic_batching.default_priority_level", levels ? (levels + 1) / 2 : 0, 0, 1000, &level,
               e))
        return e->code;
    w->max_batch = (int)batch, w->instances = (int)instances, w->threads = (int)threads,
    w->delay_ns = (uint64_t)delay * 1000;
    w->queue = (int)queue, w->timeout_us = (uint64_t)timeout, w->priorities = (int)levels,
    w->default_priority = (int)level;
    if (json_is_false(batching) || (said && batch == 1)) w->why = "its config says so";
    sizes = json_object_get(batching, "preferred_batch_size");
    json_array_foreach(sizes, k, size) {
        const json_int_t n = json_integer_value(size);
        if (n < 1 || n > (batch ? batch : 4096))
            return hone_serve_fail(
                e, 400, "the config of '%s': preferred_batch_size %lld is not from 1 to max_batch_size",
                v->name, (long long)n);
        if (w->n_sizes < HONE_SERVE_SIZES) w->sizes[w->n_sizes++] = (int)n;
    }
    return 0;
}
