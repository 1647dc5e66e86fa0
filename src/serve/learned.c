/* SPDX-License-Identifier: Apache-2.0
   learned: what was measured of a model, kept beside the wisdom, so that the next start does not measure
   again. One JSON file a user, FILE.serve beside the file that HONE_WISDOM names, else serve.json in the
   cache's folder; an entry for each model's bytes, machine, version of Hone and everything else that the
   measurement depends on. An entry that is not whole is measured again; the file is written anew, and put in
   place whole. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "hone/tools.h"
#include "serve/inside.h"

enum { PATHS = 4096, ENTRIES = 1000 };

static bool path_of(char *out, size_t room) { /* false: nothing is kept */
    const char *named = getenv("HONE_WISDOM"), *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    int n = -1;
    if (named) {
        if (!*named || !strcmp(named, "none")) return false;
        n = snprintf(out, room, "%s.serve", named);
    } else if (cache && *cache == '/') n = snprintf(out, room, "%s/hone/serve.json", cache);
    else if (home && *home == '/') n = snprintf(out, room, "%s/.cache/hone/serve.json", home);
    return n > 0 && (size_t)n < room;
}
static uint64_t hash(uint64_t h, const void *bytes, size_t n) {
    const unsigned char *p = bytes;
    for (; n >= 8; p += 8, n -= 8) {
        uint64_t x;
        memcpy(&x, p, 8);
        h = (h ^ x) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    }
    for (; n; n--) h = (h ^ *p++) * 0x100000001b3u;
    return h;
}
static uint64_t hash_text(uint64_t h, const char *text) { return hash(h, text, strlen(text) + 1); }
static bool hash_file(const char *path, uint64_t *h) {
    enum { PIECE = 1 << 16 };
    FILE *f = fopen(path, "rb");
    char *piece = f ? malloc(PIECE) : NULL;
    for (size_t n; piece && (n = fread(piece, 1, PIECE, f)) > 0;) *h = hash(*h, piece, n);
    const bool good = piece && !ferror(f);
    if (f) fclose(f);
    free(piece);
    return good;
}
bool hone_serve_learned_key(const hone_serve_version *v, const hone_serve_way *told, char key[17]) {
    const hone_serve_core *c = v->core;
    char path[PATHS], *machine = NULL, numbers[200];
    uint64_t h = 0xcbf29ce484222325u;
    json_t *input = json_object_get(v->config, "input");
    if (!path_of(path, sizeof path) || hone_machine_report(0, &machine)) return false;
    json_t *report = json_loads(machine, 0, NULL);
    char *cpu = json_dumps(json_object_get(report, "cpu"), JSON_COMPACT | JSON_SORT_KEYS),
         *dims = input ? json_dumps(input, JSON_COMPACT | JSON_SORT_KEYS) : NULL;
    h = hash_text(hash_text(h, hone_version()), cpu ? cpu : "");
    h = hash_text(hash_text(h, dims ? dims : ""), c->o.precision ? c->o.precision : "");
    const char *devices = hone_serve_device_list(v);
    h = hash_text(h, devices ? devices : "");
    snprintf(numbers, sizeof numbers, "%lld %d %llu %d %d %d %d %llu %d", (long long)v->memory.limit,
             c->cores, (unsigned long long)c->latency_goal_ns, told->max_batch, told->instances,
             told->threads, told->n_sizes, (unsigned long long)told->delay_ns, v->sequences != NULL);
    h = hash_text(h, numbers);
    h = hash_text(h, told->why ? told->why : "");
    h = hash(h, told->sizes, sizeof *told->sizes * (size_t)told->n_sizes);
    free(cpu), free(dims), json_decref(report), hone_text_release(machine);
    if (!strncmp(v->path, "zoo:", 4)) h = hash_text(h, v->path);
    else if (!hash_file(v->path, &h)) return false;
    snprintf(key, 17, "%016llx", (unsigned long long)h);
    return true;
}

static json_t *whole_file(const char *path) {
    json_t *all = json_load_file(path, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(all)) return all;
    json_decref(all);
    return json_object();
}
static bool number(const json_t *o, const char *key, int64_t low, int64_t high, int64_t *out) {
    const json_t *n = json_object_get(o, key);
    *out = json_integer_value(n);
    return json_is_integer(n) && *out >= low && *out <= high;
}
bool hone_serve_learned_find(hone_serve_version *v, const char *key) {
    char path[PATHS];
    hone_serve_way w = v->way;
    if (!path_of(path, sizeof path)) return false;
    json_t *all = whole_file(path), *one = json_object_get(all, key), *sizes = json_object_get(one, "sizes"),
           *ns = json_object_get(one, "ns");
    const char *why = json_string_value(json_object_get(one, "why"));
    int64_t instances, threads, delay, alone;
    bool good = number(one, "instances", 1, 256, &instances) && number(one, "threads", 1, 1024, &threads) &&
                number(one, "delay_ns", 0, 10000000000, &delay) &&
                number(one, "alone_ns", 0, INT64_MAX, &alone) && json_array_size(sizes) >= 1 &&
                json_array_size(sizes) <= HONE_SERVE_SIZES && json_array_size(ns) == json_array_size(sizes);
    for (w.n_sizes = 0; good && w.n_sizes < (int)json_array_size(sizes); w.n_sizes++) {
        const json_int_t rows = json_integer_value(json_array_get(sizes, (size_t)w.n_sizes));
        good = rows >= 1 && rows <= 4096 && (w.n_sizes ? rows > w.sizes[w.n_sizes - 1] : rows == 1);
        w.sizes[w.n_sizes] = (int)rows;
        w.ns[w.n_sizes] = (uint64_t)json_integer_value(json_array_get(ns, (size_t)w.n_sizes));
    }
    if (good) {
        w.instances = (int)instances, w.threads = (int)threads, w.delay_ns = (uint64_t)delay;
        w.alone_ns = (uint64_t)alone, w.max_batch = why ? 0 : w.sizes[w.n_sizes - 1], w.kept = true;
        free(v->why);
        w.why = v->why = why ? strdup(why) : NULL;
        good = !why || w.why;
    }
    if (good) v->way = w;
    json_decref(all);
    return good;
}
static void forget_oldest(json_t *all) {
    const char *key, *oldest = NULL;
    json_t *one;
    json_int_t least = 0;
    json_object_foreach(all, key, one) {
        const json_int_t at = json_integer_value(json_object_get(one, "at"));
        if (!oldest || at < least) oldest = key, least = at;
    }
    if (oldest) json_object_del(all, oldest);
}
/* What cannot be kept is measured again: no failure. */
void hone_serve_learned_keep(const hone_serve_version *v, const char *key) {
    const hone_serve_way *w = &v->way;
    char path[PATHS], temp[PATHS + 32];
    if (!path_of(path, sizeof path)) return;
    json_t *all = whole_file(path), *sizes = json_array(), *ns = json_array();
    while (json_object_size(all) >= ENTRIES) forget_oldest(all);
    for (int k = 0; k < w->n_sizes; k++)
        json_array_append_new(sizes, json_integer(w->sizes[k])),
            json_array_append_new(ns, json_integer((json_int_t)w->ns[k]));
    json_object_set_new(all, key,
                        json_pack("{s:s, s:I, s:i, s:i, s:I, s:I, s:o, s:o, s:s?}", "model", v->name, "at",
                                  (json_int_t)time(NULL), "instances", w->instances, "threads", w->threads,
                                  "delay_ns", (json_int_t)w->delay_ns, "alone_ns", (json_int_t)w->alone_ns,
                                  "sizes", sizes, "ns", ns, "why",
                                  w->max_batch ? NULL
                                  : w->why     ? w->why
                                               : ""));
    for (char *at = strchr(path + 1, '/'); at; at = strchr(at + 1, '/'))
        *at = 0, (void)mkdir(path, 0777), *at = '/';
    snprintf(temp, sizeof temp, "%s.%ld", path, (long)getpid());
    if (json_dump_file(all, temp, JSON_INDENT(1) | JSON_SORT_KEYS) || rename(temp, path)) unlink(temp);
    json_decref(all);
}
