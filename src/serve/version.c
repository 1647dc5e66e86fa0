/* SPDX-License-Identifier: Apache-2.0
   version: one version of a model, from its file to where requests can run, and its end. It is made whole
   beside the one that serves; who holds one may use it to the end, whatever was loaded meanwhile. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <time.h>
#include <unistd.h>

#include "serve/inside.h"

enum { LABELS_BYTES = 16 << 20 };

hone_serve_version *hone_serve_hold(hone_serve_version *v) {
    atomic_fetch_add(&v->holders, 1);
    return v;
}
void hone_serve_release(hone_serve_version *v) {
    if (!v || atomic_fetch_sub(&v->holders, 1) != 1) return;
    /* the last holder may be one of its threads, which cannot wait for itself: the keeper ends it */
    hone_serve_core *c = v->core;
    pthread_mutex_lock(&c->keeping);
    v->next = c->dead, c->dead = v;
    hone_serve_wake(c);
    pthread_mutex_unlock(&c->keeping);
}
void hone_serve_version_end(hone_serve_version *v) {
    hone_serve_core *c = v->core;
    hone_serve_run_stop(v);
    hone_serve_ensemble_free(v->ensemble), hone_serve_sequences_free(v->sequences);
    hone_model_free(v->model);
    json_decref(v->config);
    for (int k = 0; k < v->n_labels; k++) free(v->labels[k]);
    pthread_cond_destroy(&v->more), pthread_mutex_destroy(&v->lock);
    free(v->port), free(v->why), free(v->labels), free(v->name), free(v->path), free(v);
    atomic_fetch_add(&c->changed, 1);
}
const char *hone_serve_version_name(const hone_serve_version *v) { return v->name; }
int64_t hone_serve_version_number(const hone_serve_version *v) { return v->number; }
int hone_serve_inputs(const hone_serve_version *v) { return v->inputs; }
int hone_serve_outputs(const hone_serve_version *v) { return v->outputs; }
const hone_port *hone_serve_input_port(const hone_serve_version *v, int k) { return &v->port[k]; }
const hone_port *hone_serve_output_port(const hone_serve_version *v, int k) {
    return &v->port[v->inputs + k];
}
const char *hone_serve_label(const hone_serve_version *v, int64_t k) {
    return k >= 0 && k < v->n_labels && *v->labels[k] ? v->labels[k] : NULL;
}

/* ---- labels: of hone.json's "labels", a list, or a file's name beside it with a name a line; or of an
   output's "label_filename" --- */

static bool label(hone_serve_version *v, const char *text, size_t n) {
    if (!(v->n_labels & (v->n_labels + 1)) || !v->labels) { /* 0, 1, 3, 7 …: grows */
        char **more = realloc(v->labels, sizeof *more * (size_t)(2 * v->n_labels + 2));
        if (!more) return false;
        v->labels = more;
    }
    if (!(v->labels[v->n_labels] = strndup(text, n))) return false;
    v->n_labels++;
    return true;
}
static int labels_file(hone_serve_version *v, const char *folder, const char *name, hone_serve_error *e) {
    char path[4096];
    if (strchr(name, '/') || *name == '.')
        return hone_serve_fail(e, 400, "labels '%.100s': name a file that lies in %s", name, folder);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *f = fopen(path, "rb");
    if (!f) return hone_serve_fail(e, 400, "labels: %s cannot be read", path);
    char *line = NULL;
    size_t room = 0, all = 0;
    bool good = true;
    for (ssize_t n; good && (n = getline(&line, &room, f)) >= 0; all += (size_t)n) {
        while (n > 0 && (line[n - 1] == '\n' || line[n - 1] == '\r')) n--;
        good = all < LABELS_BYTES && label(v, line, (size_t)n);
    }
    free(line), fclose(f);
    return good ? 0 : hone_serve_fail(e, 400, "labels: %s is too large", path);
}
static int read_labels(hone_serve_version *v, const char *folder, hone_serve_error *e) {
    const json_t *l = json_object_get(v->config, "labels"), *item,
                 *out = json_object_get(v->config, "output");
    size_t k;
    if (!l) l = json_object_get(json_array_get(out, 0), "label_filename");
    if (json_is_string(l) && *json_string_value(l)) return labels_file(v, folder, json_string_value(l), e);
    json_array_foreach(l, k, item) {
        const char *text = json_string_value(item);
        if (!text || !label(v, text, strlen(text)))
            return hone_serve_fail(e, 400, "hone.json: labels are a list of texts, or a file's name");
    }
    return 0;
}

/* ---- made whole ---- */

static int types_wrong(const hone_serve_version *v, hone_serve_error *e) {
    for (int k = 0; k < v->inputs; k++) {
        const hone_port *p = &v->port[k];
        if (p->kind != HONE_VALUE_TENSOR || !hone_serve_type_name(p->dtype))
            return hone_serve_fail(e, 501, "input '%s' is %s, which the protocol has no form for", p->name,
                                   p->shape);
    }
    return 0;
}
/* A copy in a folder of its own, for the moment that it takes to map it: a mapped file that is overwritten in
   place would end the process, and nobody writes to this one. */
static bool copy_to(const char *from_path, const char *to_path) {
    const int from = open(from_path, O_RDONLY | O_CLOEXEC),
              to = from < 0 ? -1 : open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    ssize_t n = to < 0 ? -1 : 1;
    while (n > 0) n = sendfile(to, from, NULL, 1 << 30);
    if (from >= 0) close(from);
    return to >= 0 && !close(to) && !n;
}
static hone_status load_model(const char *path, hone_model **out) {
    const char *temp = getenv("TMPDIR");
    char folder[512], copy[560];
    hone_status s = HONE_IO;
    if (!strncmp(path, "zoo:", 4)) return hone_model_load(path, out);
    snprintf(folder, sizeof folder, "%.400s/hone-serve-XXXXXX", temp && *temp ? temp : "/tmp");
    if (mkdtemp(folder)) {
        snprintf(copy, sizeof copy, "%s/model.onnx", folder);
        if (copy_to(path, copy)) s = hone_model_load(copy, out);
        unlink(copy), rmdir(folder);
    }
    /* external data lie beside the file itself; and messages name it */
    return s ? hone_model_load(path, out) : s;
}
/* All of the model's; what the server keeps or gives itself is taken out by hone_serve_sequences_read. */
static int read_ports(hone_serve_version *v, hone_serve_error *e) {
    v->inputs = hone_model_inputs(v->model), v->outputs = hone_model_outputs(v->model);
    if (!(v->port = calloc((size_t)(v->inputs + v->outputs) + 1, sizeof *v->port)))
        return hone_serve_fail(e, 503, "no memory for model '%s'", v->name);
    for (int k = 0; k < v->inputs + v->outputs; k++)
        v->port[k] =
            k < v->inputs ? *hone_model_input(v->model, k) : *hone_model_output(v->model, k - v->inputs);
    return 0;
}
static hone_serve_version *begin(hone_serve_core *c, const char *name, int64_t number, const char *path,
                                 json_t *config, hone_serve_error *e) {
    hone_serve_version *v = calloc(1, sizeof *v);
    pthread_condattr_t monotonic;
    e->code = 0;
    if (!v) {
        hone_serve_fail(e, 503, "no memory for model '%s'", name);
        return NULL;
    }
    atomic_init(&v->holders, 1);
    v->core = c, v->number = number, v->name = strdup(name), v->path = strdup(path);
    v->config = config ? json_incref(config) : json_object();
    pthread_mutex_init(&v->lock, NULL);
    pthread_condattr_init(&monotonic), pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&v->more, &monotonic), pthread_condattr_destroy(&monotonic);
    if (!v->name || !v->path || !v->config) hone_serve_fail(e, 503, "no memory for model '%s'", name);
    return v;
}
static hone_serve_version *whole(hone_serve_version *v, uint64_t from, const hone_serve_error *e) {
    if (!v) return NULL;
    v->counts.load_ns = hone_serve_now() - from;
    if (!e->code) return v;
    hone_serve_version_end(v);
    return NULL;
}
hone_serve_version *hone_serve_version_load(hone_serve_core *c, const char *name, int64_t number,
                                            const char *path, json_t *config, const char *folder,
                                            hone_serve_error *e) {
    const uint64_t from = hone_serve_now();
    hone_serve_version *v = begin(c, name, number, path, config, e);
    hone_status s;
    if (v && !e->code && (s = load_model(path, &v->model))) hone_serve_failed(e, s, hone_error());
    if (v && !e->code && !hone_serve_memory_begin(v, e) && !read_ports(v, e) && !types_wrong(v, e) &&
        !(folder && read_labels(v, folder, e)) && !hone_serve_sequences_read(v, folder, e) &&
        !hone_serve_measure(v, e))
        hone_serve_run_start(v, e);
    return whole(v, from, e);
}
hone_serve_version *hone_serve_version_of_members(hone_serve_core *c, const char *name, int64_t number,
                                                  json_t *config, const char *folder,
                                                  hone_serve_version *const *member, hone_serve_error *e) {
    const uint64_t from = hone_serve_now();
    hone_serve_version *v = begin(c, name, number, "", config, e);
    if (v && !e->code && (v->ensemble = hone_serve_ensemble_read(name, config, e)) &&
        !hone_serve_ensemble_bind(v, member, e) && folder)
        read_labels(v, folder, e);
    if (v) v->way = (hone_serve_way){.why = "an ensemble: its members make batches"};
    return whole(v, from, e);
}
