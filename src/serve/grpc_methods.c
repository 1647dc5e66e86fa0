/* SPDX-License-Identifier: Apache-2.0
   grpc_methods: the methods, a function each: read the message, ask the core, write the answer. */
#include <stdlib.h>
#include <string.h>

#include "serve/grpc_front.h"

enum { NAME_ROOM = 512 };

/* Fields 1 … of a message as texts; the others are left alone. False: malformed. */
typedef struct {
    char text[3][NAME_ROOM];
    bool yes[3];
} simple;
static bool read_simple(hone_grpc_item *i, const uint8_t *at, size_t n, simple *s) {
    hone_serve_wire w = {at, at + n, false};
    hone_serve_field f;
    *s = (simple){0};
    while (hone_serve_wire_next(&w, &f)) {
        if (f.number > 3) continue;
        if (f.type == HONE_SERVE_VARINT) s->yes[f.number - 1] = f.value != 0;
        else if (f.type == HONE_SERVE_BYTES && f.number < 3 &&
                 !hone_serve_text_of(&f, s->text[f.number - 1], NAME_ROOM))
            w.bad = true;
    }
    if (w.bad) hone_serve_fail(&i->error, 400, "the message is malformed");
    return !w.bad;
}
/* Name and version, as most messages have them. */
static bool read_version(hone_grpc_item *i, const uint8_t *at, size_t n, simple *s, int64_t *number) {
    if (!read_simple(i, at, n, s)) return false;
    if (hone_serve_version_of(s->text[1], number)) return true;
    hone_serve_fail(&i->error, 400, "model version '%.30s' is no whole number", s->text[1]);
    return false;
}
static hone_serve_core *core_of(const hone_grpc_item *i) { return i->call->loop->grpc->core; }

static bool say_yes(hone_grpc_item *i, uint64_t yes) {
    size_t begun;
    hone_serve_out *o = hone_grpc_answer(i, &begun);
    if (yes) hone_serve_put_number(o, 1, yes);
    hone_grpc_answered(i, begun);
    return true;
}
/* Takes `document`. */
static bool say_json(hone_grpc_item *i, const hone_serve_row *rows, json_t *document) {
    if (!document) {
        if (!i->error.code) hone_serve_fail(&i->error, 503, "no memory for the answer");
        return true;
    }
    size_t begun;
    hone_serve_out *o = hone_grpc_answer(i, &begun);
    hone_serve_put_json(o, rows, document);
    json_decref(document);
    hone_grpc_answered(i, begun);
    return true;
}

/* ---- the server ---- */

static bool ready(const hone_grpc_item *i) {
    const hone_grpc *g = i->call->loop->grpc;
    return g->front ? !atomic_load(&g->draining) && hone_front_ready(g->front, true)
                    : hone_serve_health_of(g->core) == HONE_SERVE_READY;
}
static bool server_live(hone_grpc_item *i, const uint8_t *at, size_t n) { return say_yes(i, 1); }
static bool server_ready(hone_grpc_item *i, const uint8_t *at, size_t n) { return say_yes(i, ready(i)); }
static bool server_metadata(hone_grpc_item *i, const uint8_t *at, size_t n) {
    size_t begun;
    hone_serve_out *o = hone_grpc_answer(i, &begun);
    hone_serve_put_text(o, 1, "hone");
    hone_serve_put_text(o, 2, hone_version());
    for (const char *const *e = hone_serve_extensions(); *e; e++) hone_serve_put_text(o, 3, *e);
    hone_grpc_answered(i, begun);
    return true;
}

/* ---- models ---- */

static bool model_ready(hone_grpc_item *i, const uint8_t *at, size_t n) {
    simple s;
    int64_t number;
    hone_serve_error none;
    if (!read_version(i, at, n, &s, &number)) return true;
    hone_serve_version *v = hone_serve_find(core_of(i), s.text[0], number, &none);
    hone_serve_release(v);
    return say_yes(i, v != NULL);
}
static bool of_version(hone_grpc_item *i, const uint8_t *at, size_t n,
                       json_t *(*document)(hone_serve_version *), const hone_serve_row *rows,
                       const char *within) {
    simple s;
    int64_t number;
    if (!read_version(i, at, n, &s, &number)) return true;
    hone_serve_version *v = hone_serve_find(core_of(i), s.text[0], number, &i->error);
    if (!v) return true;
    json_t *j = document(v);
    if (j && within) j = json_pack("{s:o}", within, j);
    hone_serve_release(v);
    return say_json(i, rows, j);
}
static bool model_metadata(hone_grpc_item *i, const uint8_t *at, size_t n) {
    return of_version(i, at, n, hone_serve_metadata, hone_serve_metadata_rows, NULL);
}
static bool model_config(hone_grpc_item *i, const uint8_t *at, size_t n) {
    return of_version(i, at, n, hone_serve_config, hone_serve_config_rows, "config");
}
static bool model_statistics(hone_grpc_item *i, const uint8_t *at, size_t n) {
    simple s;
    int64_t number;
    if (!read_version(i, at, n, &s, &number)) return true;
    return say_json(i, hone_serve_statistics_rows,
                    hone_serve_statistics(core_of(i), *s.text[0] ? s.text[0] : NULL, number, &i->error));
}
static bool infer(hone_grpc_item *i, const uint8_t *at, size_t n) {
    if (hone_serve_health_of(core_of(i)) == HONE_SERVE_DRAINING && i->call->connection->leaving &&
        i->call->method->stream) {
        hone_serve_fail(&i->error, 503, "the server is stopping");
        return true;
    }
    if (hone_serve_inference_read(core_of(i), at, n, &i->inference, &i->error)) return true;
    i->other = i->call->loop->ready, i->call->loop->ready = i, i->call->loop->n_ready++;
    return false;
}

/* ---- the repository ---- */

static bool repository_index(hone_grpc_item *i, const uint8_t *at, size_t n) {
    simple s;
    if (!read_simple(i, at, n, &s)) return true;
    json_t *models = hone_serve_index(core_of(i), s.yes[1]);
    return say_json(i, hone_serve_index_rows, models ? json_pack("{s:o}", "models", models) : NULL);
}
static void loaded(void *arg, const hone_serve_error *e) { /* the core's thread */
    hone_grpc_item *i = arg;
    if (e->code) i->error = *e;
    hone_grpc_post(i);
}
/* Out: the config, malloc'd, NULL: none; files. False: a parameter that is not there here, or wrong. */
static bool load_parameters(hone_grpc_item *i, const uint8_t *at, size_t n, char **config,
                            hone_serve_given *files, bool *members) {
    enum { PARAMETERS = 3, YES = 1, STRING = 3, CONTENTS = 4 };
    hone_serve_wire w = {at, at + n, false};
    hone_serve_field f, v;
    while (hone_serve_wire_next(&w, &f)) {
        if (f.number != PARAMETERS || f.type != HONE_SERVE_BYTES) continue;
        hone_serve_wire entry = hone_serve_wire_of(&f);
        char key[NAME_ROOM] = "";
        bool file = false;
        while (hone_serve_wire_next(&entry, &v)) {
            if (v.number == 1 && !hone_serve_text_of(&v, key, sizeof key)) *key = 0;
            if (v.number != 2 || v.type != HONE_SERVE_BYTES) continue;
            hone_serve_wire value = hone_serve_wire_of(&v);
            while (hone_serve_wire_next(&value, &f))
                if (f.number == YES && !strcmp(key, "unload_dependents")) *members = f.value != 0;
                else if (!strncmp(key, "file:", 5) && f.number == CONTENTS && f.type == HONE_SERVE_BYTES) {
                    void *copy = malloc(f.bytes + 1);
                    if (copy && f.bytes) memcpy(copy, f.data, f.bytes);
                    if (!copy) hone_serve_fail(&i->error, 503, "no memory for '%.80s'", key);
                    if (!copy || hone_serve_given_add(files, key, copy, f.bytes, &i->error)) return false;
                    file = true;
                } else if (strcmp(key, "config") == 0 && f.number == STRING && f.type == HONE_SERVE_BYTES &&
                           f.bytes && !*config && (*config = malloc(f.bytes + 1)))
                    memcpy(*config, f.data, f.bytes), (*config)[f.bytes] = 0;
        }
        if (!file && strcmp(key, "config") != 0 && strcmp(key, "unload_dependents") != 0) {
            hone_serve_fail(&i->error, 501,
                            "parameter '%.80s' is not taken here: a text 'config' and bytes 'file:…' are",
                            key);
            return false;
        }
    }
    return true;
}
static bool load_or_unload(hone_grpc_item *i, const uint8_t *at, size_t n, bool load) {
    simple s;
    char *config = NULL;
    bool members = false;
    hone_serve_given files = {0};
    if (!read_simple(i, at, n, &s) || !load_parameters(i, at, n, &config, &files, &members)) {
        hone_serve_given_free(&files), free(config);
        return true;
    }
    size_t begun;
    hone_grpc_answer(i, &begun); /* an empty message, in case that it goes well; an error takes its place */
    hone_grpc_answered(i, begun);
    i->call->loop->at_work++;
    if (load) hone_serve_load(core_of(i), s.text[1], config, &files, loaded, i);
    else hone_serve_unload(core_of(i), s.text[1], members, loaded, i);
    hone_serve_given_free(&files), free(config);
    return false;
}
static bool model_load(hone_grpc_item *i, const uint8_t *at, size_t n) {
    return load_or_unload(i, at, n, true);
}
static bool model_unload(hone_grpc_item *i, const uint8_t *at, size_t n) {
    return load_or_unload(i, at, n, false);
}

/* ---- shared memory, of the system and of CUDA devices ---- */

static bool shared_register(hone_grpc_item *i, const uint8_t *at, size_t n) {
    enum { NAME = 1, KEY, OFFSET, BYTES };
    hone_serve_wire w = {at, at + n, false};
    hone_serve_field f;
    char name[NAME_ROOM] = "", key[NAME_ROOM] = "";
    uint64_t offset = 0, bytes = 0;
    while (hone_serve_wire_next(&w, &f)) {
        if (f.number == NAME) w.bad |= !hone_serve_text_of(&f, name, sizeof name);
        else if (f.number == KEY) w.bad |= !hone_serve_text_of(&f, key, sizeof key);
        else if (f.number == OFFSET) offset = f.value;
        else if (f.number == BYTES) bytes = f.value;
    }
    if (w.bad) hone_serve_fail(&i->error, 400, "the message is malformed");
    else if (!hone_serve_shared_add(hone_serve_shared_of(core_of(i)), name, key, offset, bytes, &i->error))
        say_yes(i, 0);
    return true;
}
static bool cuda_register(hone_grpc_item *i, const uint8_t *at, size_t n) {
    enum { NAME = 1, HANDLE, DEVICE, BYTES };
    hone_serve_wire w = {at, at + n, false};
    hone_serve_field f, handle = {0};
    char name[NAME_ROOM] = "";
    uint64_t device = 0, bytes = 0;
    while (hone_serve_wire_next(&w, &f)) {
        if (f.number == NAME) w.bad |= !hone_serve_text_of(&f, name, sizeof name);
        else if (f.number == HANDLE && f.type == HONE_SERVE_BYTES) handle = f;
        else if (f.number == DEVICE) device = f.value;
        else if (f.number == BYTES) bytes = f.value;
    }
    if (w.bad) hone_serve_fail(&i->error, 400, "the message is malformed");
    else if (!hone_serve_shared_add_cuda(hone_serve_shared_of(core_of(i)), name, handle.data, handle.bytes,
                                         (int64_t)device, bytes, &i->error))
        say_yes(i, 0);
    return true;
}
static bool is_cuda(const hone_grpc_item *i) { return strstr(i->call->method->path, "/Cuda") != NULL; }
static bool shared_unregister(hone_grpc_item *i, const uint8_t *at, size_t n) {
    simple s;
    if (read_simple(i, at, n, &s) &&
        !hone_serve_shared_remove(hone_serve_shared_of(core_of(i)), is_cuda(i), s.text[0], &i->error))
        say_yes(i, 0);
    return true;
}
static bool shared_status(hone_grpc_item *i, const uint8_t *at, size_t n) {
    simple s;
    size_t k;
    json_t *one, *list, *by_name = json_object();
    if (!read_simple(i, at, n, &s) || !(list = hone_serve_shared_list(hone_serve_shared_of(core_of(i)),
                                                                      is_cuda(i), s.text[0], &i->error))) {
        json_decref(by_name);
        return true;
    }
    json_array_foreach(list, k, one)
        json_object_set(by_name, json_string_value(json_object_get(one, "name")), one);
    json_decref(list);
    return say_json(i, is_cuda(i) ? hone_serve_cuda_regions_rows : hone_serve_regions_rows,
                    json_pack("{s:o}", "regions", by_name));
}

/* ---- health ---- */

enum { UNKNOWN, SERVING, NOT_SERVING, SERVICE_UNKNOWN };
static uint64_t health_of(const hone_grpc_item *i, const char *service) {
    static const char own[] = "inference.GRPCInferenceService";
    return *service && strcmp(service, own) ? SERVICE_UNKNOWN : ready(i) ? SERVING : NOT_SERVING;
}
static bool health_check(hone_grpc_item *i, const uint8_t *at, size_t n) {
    simple s;
    if (!read_simple(i, at, n, &s)) return true;
    const uint64_t is = health_of(i, s.text[0]);
    if (is != SERVICE_UNKNOWN) return say_yes(i, is);
    hone_serve_fail(&i->error, 404, "there is no service '%.100s'", s.text[0]);
    return true;
}
static bool health_watch(hone_grpc_item *i, const uint8_t *at, size_t n) {
    simple s;
    if (read_simple(i, at, n, &s)) return say_yes(i, i->call->told = health_of(i, s.text[0]));
    hone_grpc_call_fail(i->call, HONE_GRPC_INVALID,
                        i->error.text); /* its messages have no place for errors */
    i->error.code = 0;
    return true;
}
static void health_look(hone_grpc_call *a) {
    hone_grpc_item i = {.call = a};
    const uint64_t is = health_of(&i, "");
    if (!a->told || a->told == SERVICE_UNKNOWN || a->told == is) return;
    say_yes(&i, a->told = is);
    hone_grpc_call_send(a);
}

#define SERVICE "/inference.GRPCInferenceService/"
#define HEALTH "/grpc.health.v1.Health/"
#define REFLECTION(v) "/grpc.reflection." v ".ServerReflection/ServerReflectionInfo"
#define EVERY_SERVER                                                                              \
    {HEALTH "Check", .run = health_check, .open = true},                                          \
        {HEALTH "Watch", .run = health_watch, .look = health_look, .open = true, .stream = true}, \
        {REFLECTION("v1"), .run = hone_grpc_reflect, .stream = true}, {                           \
        REFLECTION("v1alpha"), .run = hone_grpc_reflect, .stream = true                           \
    }
const hone_grpc_method hone_grpc_methods[] = {
    {SERVICE "ModelInfer", .run = infer}, /* the most asked for first */
    {SERVICE "ModelStreamInfer", .run = infer, .stream = true},
    {SERVICE "ServerLive", .run = server_live, .open = true},
    {SERVICE "ServerReady", .run = server_ready, .open = true},
    {SERVICE "ModelReady", .run = model_ready, .open = true},
    {SERVICE "ServerMetadata", .run = server_metadata},
    {SERVICE "ModelMetadata", .run = model_metadata},
    {SERVICE "ModelConfig", .run = model_config},
    {SERVICE "ModelStatistics", .run = model_statistics},
    {SERVICE "RepositoryIndex", .run = repository_index},
    {SERVICE "RepositoryModelLoad", .run = model_load},
    {SERVICE "RepositoryModelUnload", .run = model_unload},
    {SERVICE "SystemSharedMemoryStatus", .run = shared_status},
    {SERVICE "SystemSharedMemoryRegister", .run = shared_register},
    {SERVICE "SystemSharedMemoryUnregister", .run = shared_unregister},
    {SERVICE "CudaSharedMemoryStatus", .run = shared_status},
    {SERVICE "CudaSharedMemoryRegister", .run = cuda_register},
    {SERVICE "CudaSharedMemoryUnregister", .run = shared_unregister},
    EVERY_SERVER,
    {0},
};
const hone_grpc_method hone_grpc_front_methods[] = {
    {SERVICE "ServerLive", .run = server_live, .open = true},
    {SERVICE "ServerReady", .run = server_ready, .open = true},
    EVERY_SERVER,
    {SERVICE "ModelReady", .run = hone_grpc_forward, .raw = true, .open = true},
    {SERVICE "ModelStreamInfer", .run = hone_grpc_forward, .raw = true, .stream = true},
    {SERVICE, .run = hone_grpc_forward, .raw = true},
    {0},
};
