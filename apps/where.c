/* SPDX-License-Identifier: Apache-2.0
   where: see where.h. */
#include "where.h"

#include <errno.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hone/device.h"
#include "hone/tools.h"
#include "json.h"

static const char DEVICE[] = "HONE_COMMAND_DEVICE", PLACE[] = "HONE_COMMAND_PLACE",
                  PLUGINS[] = "HONE_COMMAND_PLUGINS", OPS[] = "HONE_COMMAND_OPS";

static char *join(const hone_words *w) { /* a line each */
    size_t bytes = 1;
    for (int k = 0; k < w->n; k++) bytes += strlen(w->at[k]) + 1;
    char *text = hone_must_alloc(bytes), *at = text;
    for (int k = 0; k < w->n; k++) {
        const size_t n = strlen(w->at[k]);
        memcpy(at, w->at[k], n), at += n;
        *at++ = '\n';
    }
    return text;
}
static int add_ops(const char *path) {
    enum { MOST = 16 << 20 };
    FILE *f = fopen(path, "rb");
    if (!f) return hone_args_wrong("--ops %s: %s", path, strerror(errno));
    char *text = hone_must_alloc(MOST + 1);
    const size_t n = fread(text, 1, MOST + 1, f);
    const bool bad = ferror(f) != 0;
    fclose(f);
    hone_status s = bad || n > MOST ? HONE_OK : hone_ops_add(path, text, n);
    free(text);
    if (bad) return hone_args_wrong("--ops %s: the file cannot be read", path);
    if (n > MOST) return hone_args_wrong("--ops %s: more than %d MB of text", path, MOST >> 20);
    return s ? hone_args_failed(s) : 0;
}
int hone_where_begin(hone_where *w) {
    for (int k = 0; k < w->plugins.n; k++) {
        hone_status s = hone_plugin_load(w->plugins.at[k]);
        if (s) return hone_args_failed(s);
    }
    for (int k = 0; k < w->ops.n; k++) {
        int rc = add_ops(w->ops.at[k]);
        if (rc) return rc;
    }
    if (w->place.n && !w->lines) w->lines = join(&w->place);
    return 0;
}
static hone_status open_one(const char *device) {
    static const int64_t one = 1;
    hone_value *here = NULL, *there = NULL;
    hone_status s = hone_tensor_create(HONE_DTYPE_F32, &one, 1, &here);
    if (!s) s = hone_value_bring(here, device, &there);
    hone_value_free(there), hone_value_free(here);
    return s;
}
hone_status hone_where_open(const hone_where *w) {
    hone_status s = w->device ? open_one(w->device) : HONE_OK;
    for (int k = 0; k < w->place.n && !s; k++) {
        const char *equals = strrchr(w->place.at[k], '=');
        if (equals) s = open_one(equals + 1); /* without one it is no rule: sessions say so */
    }
    return s;
}
void hone_where_doubt(const hone_where *w, const hone_model *m) {
    char *text = NULL;
    if (!w->place.n || hone_model_report(m, "graph", &text)) return;
    hone_json *graph = hone_json_read(text);
    for (int k = 0; k < w->place.n && graph; k++) {
        const char *equals = strrchr(w->place.at[k], '=');
        bool fits = !equals;
        char pattern[256];
        snprintf(pattern, sizeof pattern, "%.*s", equals ? (int)(equals - w->place.at[k]) : 0,
                 w->place.at[k]);
        for (const hone_json *part = graph->first; part && !fits; part = part->next) { /* main, and bodies */
            const hone_json *nodes = hone_json_get(part, "nodes");
            for (const hone_json *n = nodes ? nodes->first : NULL; n && !fits; n = n->next)
                fits = fnmatch(pattern, hone_json_text(n, "name", ""), 0) == 0;
        }
        if (!fits)
            hone_args_warn("--place %s: no node has such a name; 'hone inspect MODEL --nodes' lists them",
                           w->place.at[k]);
    }
    hone_json_free(graph);
    hone_text_release(text);
}
void hone_where_set(const hone_where *w, hone_options *o) { o->device = w->device, o->place = w->lines; }
void hone_where_export(const hone_where *w) {
    char *plugins = join(&w->plugins), *ops = join(&w->ops);
    if (w->device) setenv(DEVICE, w->device, 1);
    char *lines = join(&w->place);
    if (w->place.n) setenv(PLACE, lines, 1);
    setenv(PLUGINS, plugins, 1);
    setenv(OPS, ops, 1);
    free(plugins), free(lines), free(ops);
}
/* The lines of a text; its copy, to be freed after them. */
static char *split(const char *text, hone_words *out) {
    const size_t length = text ? strlen(text) : 0;
    char *copy = hone_must_alloc(length + 1);
    int n = 0;
    if (text) snprintf(copy, length + 1, "%s", text);
    for (const char *p = copy; *p; p++) n += *p == '\n';
    out->at = hone_must_alloc(sizeof *out->at * (size_t)(n + 1));
    for (char *p = copy, *end; (end = strchr(p, '\n')); p = end + 1) *end = 0, out->at[out->n++] = p;
    return copy;
}
int hone_where_import(hone_where *w) {
    const char *place = getenv(PLACE), *list = getenv(PLUGINS);
    w->device = getenv(DEVICE);
    if (place) {
        w->lines = hone_must_alloc(strlen(place) + 1);
        memcpy(w->lines, place, strlen(place) + 1);
    }
    hone_words plugins = {0}, ops = {0};
    char *names = split(list, &plugins), *texts = split(getenv(OPS), &ops);
    hone_where all = {.plugins = plugins, .ops = ops};
    int rc = hone_where_begin(&all);
    hone_words_free(&plugins), hone_words_free(&ops);
    free(names), free(texts);
    return rc;
}
void hone_where_free(hone_where *w) {
    hone_words_free(&w->place), hone_words_free(&w->plugins), hone_words_free(&w->ops);
    free(w->lines);
}
