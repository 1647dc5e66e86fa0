/* SPDX-License-Identifier: Apache-2.0
   memory: what a version takes: weights, the forms that kernels want them in, and the tensors of a run on
   each of its instances; and a limit for it, of the server or of the model's config. Whoever has none of it
   left is refused with the figures. What requests bring and take away is limited by their size. */
#include <stdio.h>

#include "serve/inside.h"

static double mib(int64_t bytes) { return (double)bytes / 1048576; }
static int64_t number(const json_t *report, const char *key) {
    return json_integer_value(json_object_get(report, key));
}
static json_t *parsed(hone_status s, char *const *text) { /* the text is there once the report is */
    json_t *out = s ? NULL : json_loads(*text, 0, NULL);
    if (!s) hone_text_release(*text);
    return out;
}
int64_t hone_serve_memory_all(const hone_serve_version *v) {
    return v->memory.weights + v->memory.packed + v->memory.tensors;
}
int hone_serve_memory_over(const hone_serve_version *v, const char *why, hone_serve_error *e) {
    return hone_serve_fail(
        e, 400, "'%.100s' may take %.1f MiB (memory_mib): weights take %.1f, packed %.1f%s%.200s", v->name,
        mib(v->memory.limit), mib(v->memory.weights), mib(v->memory.packed), why ? "; " : "", why ? why : "");
}
/* The server's limit, or the config's where that is lower; in config.pbtxt a parameter. */
int hone_serve_memory_begin(hone_serve_version *v, hone_serve_error *e) {
    const int64_t most = 1 << 30, server = v->core->o.max_model_mib,
                  own = hone_serve_config_int(
                      v->config, "memory_mib",
                      hone_serve_config_int(v->config, "parameters.memory_mib.string_value", 0));
    char *text = NULL;
    if (own < 0 || own > most)
        return hone_serve_fail(e, 400, "the config of '%s': memory_mib is %lld; from 1 to %lld will do",
                               v->name, (long long)own, (long long)most);
    v->memory.limit = (own && (server <= 0 || own < server) ? own : server > 0 ? server : 0) << 20;
    json_t *summary = parsed(hone_model_report(v->model, "summary", &text), &text);
    v->memory.weights = number(summary, "parameter_bytes");
    json_decref(summary);
    return v->memory.limit && v->memory.weights > v->memory.limit ? hone_serve_memory_over(v, NULL, e) : 0;
}
int64_t hone_serve_memory_room(const hone_serve_version *v) {
    const int64_t left = v->memory.limit - v->memory.weights - v->memory.packed,
                  each = left / (v->way.instances > 0 ? v->way.instances : 1);
    return !v->memory.limit ? 0 : each > 0 ? each : 1;
}
int hone_serve_memory_note(hone_serve_version *v, const hone_session *s, bool stays, hone_serve_error *e) {
    char *text = NULL, why[100];
    json_t *report = parsed(hone_session_report(s, "memory", &text), &text);
    const int64_t tensors = number(report, "arena_bytes") + number(report, "device_bytes");
    v->memory.packed = number(report, "packed_bytes");
    if (stays) v->memory.tensors += tensors;
    json_decref(report);
    if (!v->memory.limit || hone_serve_memory_all(v) <= v->memory.limit) return 0;
    snprintf(why, sizeof why, "tensors of %d instance%s %.1f", v->way.instances,
             v->way.instances == 1 ? "" : "s", mib(v->memory.tensors));
    return hone_serve_memory_over(v, why, e);
}
