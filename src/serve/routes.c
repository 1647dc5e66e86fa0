/* SPDX-License-Identifier: Apache-2.0
   routes: the paths there are, as a table, and what is done at those that are no inference. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/given.h"
#include "serve/http.h"
#include "serve/shared.h"

/* ---- what is told ---- */

/* Triton's clients look at the status alone, KServe's at the body. */
static void live(hone_http_call *c) { hone_http_answer_json(c, 200, json_pack("{s:b}", "live", 1)); }
static void ready(hone_http_call *c) {
    const bool yes = hone_serve_health_of(hone_http_core(c)) == HONE_SERVE_READY;
    hone_http_answer_json(c, yes ? 200 : 400, json_pack("{s:b}", "ready", yes));
}
static void server(hone_http_call *c) {
    json_t *extensions = json_array();
    for (const char *const *e = hone_serve_extensions(); *e; e++)
        json_array_append_new(extensions, json_string(*e));
    hone_http_answer_json(
        c, 200,
        json_pack("{s:s, s:s, s:o}", "name", "hone", "version", hone_version(), "extensions", extensions));
}
static hone_serve_version *asked(hone_http_call *c) {
    return hone_serve_find(hone_http_core(c), c->model, c->version, &c->error);
}
static void metadata(hone_http_call *c) {
    if ((c->held = asked(c))) hone_http_answer_json(c, 200, hone_serve_metadata(c->held));
}
static void model_ready(hone_http_call *c) {
    if ((c->held = asked(c))) hone_http_answer_empty(c, 200);
    else c->error.code = 400;
}
static void config(hone_http_call *c) {
    if ((c->held = asked(c))) hone_http_answer_json(c, 200, hone_serve_config(c->held));
}
static void statistics(hone_http_call *c) {
    json_t *j = hone_serve_statistics(hone_http_core(c), *c->model ? c->model : NULL, c->version, &c->error);
    if (j) hone_http_answer_json(c, 200, j);
}
static void metrics(hone_http_call *c) {
    hone_http_text t = {0};
    if (hone_serve_metrics_write(hone_http_core(c), &t))
        hone_http_answer(c, 200, "text/plain; version=0.0.4; charset=utf-8", &t);
    else hone_serve_fail(&c->error, 503, "no memory for metrics"), free(t.at);
}

/* ---- the repository ---- */

static bool body_json(hone_http_call *c) { /* an object, or nothing */
    json_error_t where;
    if (strspn(c->text.at ? c->text.at : "", " \t\r\n") == c->text.n) return true;
    c->document = json_loadb(c->text.at, c->text.n, JSON_REJECT_DUPLICATES, &where);
    if (!c->document)
        hone_serve_fail(&c->error, 400, "the body is no JSON: %s (line %d, column %d)", where.text,
                        where.line, where.column);
    else if (!json_is_object(c->document)) hone_serve_fail(&c->error, 400, "the body is to be a JSON object");
    return !c->error.code;
}
static void repository_index(hone_http_call *c) {
    if (body_json(c))
        hone_http_answer_json(
            c, 200, hone_serve_index(hone_http_core(c), json_is_true(json_object_get(c->document, "ready"))));
}
static void loaded(void *call, const hone_serve_error *e) {
    hone_http_call *c = call;
    c->error = *e;
    hone_http_release(c);
}
static void load_body(hone_http_call *c) { c->raw = true; } /* files make it larger than other JSON */
static void load(hone_http_call *c) {
    const int64_t most = hone_serve_options(hone_http_server(c))->max_json_bytes;
    hone_serve_given files = {0};
    const char *name;
    json_t *value;
    if (c->text.n) hone_serve_given_cut(&files, c->text.at, &c->text.n, &c->error);
    if (!c->error.code && c->text.n > (size_t)most)
        hone_serve_fail(&c->error, 413, "JSON of %zu bytes beside the files; at most %lld are taken",
                        c->text.n, (long long)most);
    const json_t *parameters =
        !c->error.code && body_json(c) ? json_object_get(c->document, "parameters") : NULL;
    json_object_foreach((json_t *)parameters, name, value) {
        if (c->error.code) break;
        if (!strncmp(name, "file:", 5)) hone_serve_given_name(&files, name, value, &c->error);
        else if (strcmp(name, "config") == 0 && !json_is_string(value))
            hone_serve_fail(&c->error, 400, "the parameter 'config' is JSON in a text");
    }
    if (!c->error.code) {
        c->waiting = true;
        hone_serve_load(hone_http_core(c), c->model, json_string_value(json_object_get(parameters, "config")),
                        &files, loaded, c);
    }
    hone_serve_given_free(&files);
}
static void unload(hone_http_call *c) {
    if (!body_json(c)) return;
    const json_t *parameters = json_object_get(c->document, "parameters");
    c->waiting = true;
    hone_serve_unload(hone_http_core(c), c->model,
                      json_is_true(json_object_get(parameters, "unload_dependents")), loaded, c);
}

/* ---- shared memory, of the system and of CUDA devices ---- */

static bool cuda(const hone_http_call *c) { return !strncmp(c->path, "/v2/cuda", 8); }
static void regions(hone_http_call *c) {
    json_t *list =
        hone_serve_shared_list(hone_serve_shared_of(hone_http_core(c)), cuda(c), c->model, &c->error);
    if (list) hone_http_answer_json(c, 200, list);
}
static void region_register(hone_http_call *c) {
    if (!body_json(c)) return;
    const char *key = json_string_value(json_object_get(c->document, "key"));
    const json_int_t offset = json_integer_value(json_object_get(c->document, "offset")),
                     bytes = json_integer_value(json_object_get(c->document, "byte_size"));
    if (!key || offset < 0 || bytes <= 0)
        hone_serve_fail(&c->error, 400,
                        "region '%.100s': 'key' and 'byte_size' are wanted, and 'offset' is 0 or more",
                        c->model);
    else if (!hone_serve_shared_add(hone_serve_shared_of(hone_http_core(c)), c->model, key, (uint64_t)offset,
                                    (uint64_t)bytes, &c->error))
        hone_http_answer_empty(c, 200);
}
static void region_register_cuda(hone_http_call *c) {
    uint8_t handle[128];
    if (!body_json(c)) return;
    const char *text = json_string_value(json_object_get(json_object_get(c->document, "raw_handle"), "b64"));
    const json_int_t device = json_integer_value(json_object_get(c->document, "device_id")),
                     bytes = json_integer_value(json_object_get(c->document, "byte_size"));
    const size_t length = text ? strlen(text) : 0;
    const int64_t n =
        length && length / 4 * 3 + 4 <= sizeof handle ? hone_serve_base64(text, length, handle) : 0;
    if (n <= 0 || bytes <= 0)
        hone_serve_fail(
            &c->error, 400,
            "region '%.100s': 'raw_handle' ({\"b64\": …}), 'device_id' and 'byte_size' are wanted", c->model);
    else if (!hone_serve_shared_add_cuda(hone_serve_shared_of(hone_http_core(c)), c->model, handle, (size_t)n,
                                         device, (uint64_t)bytes, &c->error))
        hone_http_answer_empty(c, 200);
}
static void region_unregister(hone_http_call *c) {
    if (!hone_serve_shared_remove(hone_serve_shared_of(hone_http_core(c)), cuda(c), c->model, &c->error))
        hone_http_answer_empty(c, 200);
}

/* ---- the table ---- */

/* M is a model's name, V its version, a number; [V] stands for both "" and "/versions/V". */
static const struct {
    const char *path;
    hone_http_route route;
} routes[] = {
    {"/v2/models/M[V]/infer", {"infer", true, false, hone_http_infer_body, hone_http_infer_finish}},
    {"/v2/health/live", {"live", false, true, NULL, live}},
    {"/v2/health/ready", {"ready", false, true, NULL, ready}},
    {"/v2", {"server", false, false, NULL, server}},
    {"/v2/models/stats", {"stats", false, false, NULL, statistics}},
    {"/v2/models/M[V]", {"metadata", false, false, NULL, metadata}},
    {"/v2/models/M[V]/ready", {"model ready", false, true, NULL, model_ready}},
    {"/v2/models/M[V]/config", {"config", false, false, NULL, config}},
    {"/v2/models/M[V]/stats", {"stats", false, false, NULL, statistics}},
    {"/v2/models/M[V]/classify",
     {"classify", true, false, hone_http_classify_body, hone_http_classify_finish}},
    {"/v2/repository/index", {"index", true, false, NULL, repository_index}},
    {"/v2/repository/models/M/load", {"load", true, false, load_body, load}},
    {"/v2/repository/models/M/unload", {"unload", true, false, NULL, unload}},
    {"/v2/systemsharedmemory/status", {"regions", false, false, NULL, regions}},
    {"/v2/systemsharedmemory/region/M/status", {"region", false, false, NULL, regions}},
    {"/v2/systemsharedmemory/region/M/register", {"register", true, false, NULL, region_register}},
    {"/v2/systemsharedmemory/region/M/unregister", {"unregister", true, false, NULL, region_unregister}},
    {"/v2/systemsharedmemory/unregister", {"unregister", true, false, NULL, region_unregister}},
    {"/v2/cudasharedmemory/status", {"regions", false, false, NULL, regions}},
    {"/v2/cudasharedmemory/region/M/status", {"region", false, false, NULL, regions}},
    {"/v2/cudasharedmemory/region/M/register", {"register", true, false, NULL, region_register_cuda}},
    {"/v2/cudasharedmemory/region/M/unregister", {"unregister", true, false, NULL, region_unregister}},
    {"/v2/cudasharedmemory/unregister", {"unregister", true, false, NULL, region_unregister}},
    {"/metrics", {"metrics", false, false, NULL, metrics}},
    {"/status", {"status", false, false, NULL, hone_http_status}},
    {"/", {"page", false, true, NULL, hone_http_page}},
};
enum { ROUTES = sizeof routes / sizeof *routes };

static int hex(char c) {
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}
/* A piece of the path, unescaped; false: it is empty, too long, or holds a zero. */
static bool piece(const char **at, char *out, size_t room) {
    size_t n = 0;
    const char *p = *at;
    for (; *p && *p != '/'; p++) {
        char c = *p;
        if (c == '%' && hex(p[1]) >= 0 && hex(p[2]) >= 0) c = (char)(hex(p[1]) * 16 + hex(p[2])), p += 2;
        if (!c || n + 1 >= room) return false;
        out[n++] = c;
    }
    out[n] = 0, *at = p;
    return n > 0;
}
static bool matches(const char *pattern, const char *url, char *model, size_t room, int64_t *version) {
    char number[20];
    for (*model = 0, *version = 0; *pattern; pattern++) {
        if (*pattern == 'M') {
            if (!piece(&url, model, room)) return false;
        } else if (*pattern == '[') {
            pattern += 2;
            if (strncmp(url, "/versions/", 10)) continue;
            url += 10;
            if (!piece(&url, number, sizeof number) || strspn(number, "0123456789") != strlen(number) ||
                strlen(number) > 18)
                return false;
            if (!(*version = strtoll(number, NULL, 10))) *version = -1; /* there is no version 0 */
        } else if (*pattern != *url++) return false;
    }
    return !*url;
}
const hone_http_route *hone_http_find(hone_http_call *c, const char *url, bool post, bool metrics_only);
const hone_http_route *hone_http_find(hone_http_call *c, const char *url, bool post, bool metrics_only) {
    bool other = false;
    char path[512];
    size_t n = strlen(url);
    while (n > 1 && url[n - 1] == '/') n--; /* /v2/ is /v2 */
    if (n < sizeof path) {
        memcpy(path, url, n), path[n] = 0;
        for (int k = 0; k < ROUTES; k++) {
            if (metrics_only && strcmp(routes[k].path, "/metrics") &&
                strncmp(routes[k].path, "/v2/health", 10))
                continue;
            if (!matches(routes[k].path, path, c->model, sizeof c->model, &c->version)) continue;
            if (routes[k].route.post == post) return &routes[k].route;
            other = true;
        }
    }
    if (other)
        hone_serve_fail(&c->error, 405, "%s %.200s: ask with %s", post ? "POST" : "GET", url,
                        post ? "GET" : "POST");
    else hone_serve_fail(&c->error, 404, "there is nothing at %.200s", url);
    return NULL;
}
