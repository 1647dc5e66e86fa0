/* SPDX-License-Identifier: Apache-2.0
   where: see where.h. */
#include "where.h"

#include <stdlib.h>
#include <string.h>

#include "hone/device.h"

static const char DEVICE[] = "HONE_COMMAND_DEVICE", PLACE[] = "HONE_COMMAND_PLACE", PLUGINS[] = "HONE_COMMAND_PLUGINS";

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
int hone_where_begin(hone_where *w) {
    for (int k = 0; k < w->plugins.n; k++) {
        hone_status s = hone_plugin_load(w->plugins.at[k]);
        if (s) return hone_args_failed(s);
    }
    if (w->place.n && !w->lines) w->lines = join(&w->place);
    return 0;
}
void hone_where_set(const hone_where *w, hone_options *o) { o->device = w->device, o->place = w->lines; }
void hone_where_export(const hone_where *w) {
    char *plugins = join(&w->plugins);
    if (w->device) setenv(DEVICE, w->device, 1);
    char *lines = join(&w->place);
    if (w->place.n) setenv(PLACE, lines, 1);
    setenv(PLUGINS, plugins, 1);
    free(plugins), free(lines);
}
int hone_where_import(hone_where *w) {
    const char *place = getenv(PLACE), *list = getenv(PLUGINS);
    w->device = getenv(DEVICE);
    if (place) {
        w->lines = hone_must_alloc(strlen(place) + 1);
        memcpy(w->lines, place, strlen(place) + 1);
    }
    while (list && *list) {
        const size_t n = strcspn(list, "\n");
        char *file = hone_must_alloc(n + 1);
        memcpy(file, list, n);
        hone_status s = hone_plugin_load(file);
        free(file);
        if (s) return hone_args_failed(s);
        list += n + (list[n] == '\n');
    }
    return 0;
}
void hone_where_free(hone_where *w) {
    hone_words_free(&w->place), hone_words_free(&w->plugins);
    free(w->lines);
}
