/* SPDX-License-Identifier: Apache-2.0
   repository: a folder of models, looked at again when it changes. NAME/VERSION/model.onnx, NAME/model.onnx,
   NAME.onnx; a lone file; zoo:NAME.

   What lies there, what a model's policy asks for and what is loaded are compared, version by version. A new
   version is made whole beside the old one, which then goes as soon as nobody holds it. A failure is kept
   with the version, as the reason why it is not there. */
#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>

#include "serve/inside.h"

enum { PATHS = 4096, VERSIONS = 512, MODELS = 4096 };

typedef struct {
    int64_t number, stamp;
    char path[PATHS];
} found;

/* ---- what lies there ---- */

static int64_t stamp_of(const char *path) { /* 0: there is no such regular file */
    struct stat s;
    if (stat(path, &s) || !S_ISREG(s.st_mode)) return 0;
    uint64_t h = (uint64_t)s.st_mtim.tv_sec * 1000000007u + (uint64_t)s.st_mtim.tv_nsec;
    h = (h ^ (uint64_t)s.st_size) * 0x9e3779b97f4a7c15u;
    h = (h ^ (uint64_t)s.st_ino) * 0x9e3779b97f4a7c15u;
    return (int64_t)(h >> 1 | 1);
}
static bool is_folder(const char *path) {
    struct stat s;
    return !stat(path, &s) && S_ISDIR(s.st_mode);
}
static bool a_version(const char *name, int64_t *number) {
    char *end;
    if (*name < '1' || *name > '9' || strlen(name) > 18) return false;
    *number = strtoll(name, &end, 10);
    return !*end;
}
static void watch(hone_serve_core *c, const char *folder) {
    if (c->watch >= 0)
        inotify_add_watch(c->watch, folder,
                          IN_CLOSE_WRITE | IN_MOVED_TO | IN_MOVED_FROM | IN_CREATE | IN_DELETE |
                              IN_DELETE_SELF | IN_MOVE_SELF | IN_ONLYDIR);
}
static int by_number(const void *a, const void *b) {
    const int64_t x = ((const found *)a)->number, y = ((const found *)b)->number;
    return (x > y) - (x < y);
}
static const char *folder_of(const hone_serve_entry *e) { return e->given ? e->given : e->folder; }
static int versions_in(hone_serve_core *c, const hone_serve_entry *e, found *out) {
    const char *from = folder_of(e);
    int n = 0;
    if (e->lone && !e->given) {
        out[0].number = 1, out[0].stamp = strncmp(e->lone, "zoo:", 4) ? stamp_of(e->lone) : 1;
        snprintf(out[0].path, PATHS, "%s", e->lone);
        return out[0].stamp != 0;
    }
    if (!from) return 0;
    DIR *d = opendir(from);
    if (!e->given) watch(c, from);
    if (e->graph) { /* its versions are folders with nothing in them, or the only one is 1 */
        for (struct dirent *at; d && n < VERSIONS && (at = readdir(d));)
            if (a_version(at->d_name, &out[n].number)) out[n].stamp = 1, *out[n].path = 0, n++;
        if (d) closedir(d);
        if (!n) out[n].number = out[n].stamp = 1, *out[n].path = 0, n++;
        qsort(out, (size_t)n, sizeof *out, by_number);
        return n;
    }
    for (struct dirent *at; d && n < VERSIONS && (at = readdir(d));) {
        char folder[PATHS];
        if (!a_version(at->d_name, &out[n].number)) continue;
        if (snprintf(folder, sizeof folder, "%s/%s", from, at->d_name) > PATHS - 16 || !is_folder(folder))
            continue;
        if (!e->given) watch(c, folder);
        snprintf(out[n].path, PATHS, "%.4080s/model.onnx", folder);
        if ((out[n].stamp = stamp_of(out[n].path))) n++;
    }
    if (d) closedir(d);
    qsort(out, (size_t)n, sizeof *out, by_number);
    return n;
}
/* Keeps those that the policy wants: the latest n (1), all, or those that are listed. */
static int by_policy(const json_t *config, found *f, int n) {
    const json_t *p = json_object_get(config, "version_policy"),
                 *list = json_object_get(json_object_get(p, "specific"), "versions"), *item;
    if (json_object_get(p, "all")) return n;
    if (list) {
        int kept = 0;
        size_t i;
        for (int k = 0; k < n; k++) {
            bool wanted = false;
            json_array_foreach(list, i, item) wanted |= json_integer_value(item) == f[k].number;
            if (wanted) f[kept++] = f[k];
        }
        return kept;
    }
    int64_t most = hone_serve_config_int(config, "version_policy.latest.num_versions", 1);
    if (json_object_get(config, "weights")) most = n; /* they are shared out among */
    if (most < 1) most = 1;
    if (n > most) memmove(f, f + (n - most), sizeof *f * (size_t)most), n = (int)most;
    return n;
}

/* ---- the table ---- */

static hone_serve_entry *entry_of(hone_serve_core *c, const char *name) {
    for (int k = 0; k < c->n_entries; k++)
        if (!strcmp(c->entry[k].name, name)) return &c->entry[k];
    return NULL;
}
static bool one_of(const char *const *list, const char *name) {
    for (; list && *list; list++)
        if (!strcmp(*list, name) || !strcmp(*list, "*")) return true;
    return false;
}
static hone_serve_entry *see(hone_serve_core *c, const char *name, const char *folder, const char *lone) {
    hone_serve_entry *e = entry_of(c, name), *more;
    if (!e && c->n_entries < MODELS) {
        hone_serve_entry fresh = {.name = strdup(name),
                                  .folder = folder ? strdup(folder) : NULL,
                                  .lone = lone ? strdup(lone) : NULL};
        fresh.wanted = !c->o.explicit_load || one_of(c->o.load, name);
        fresh.named = !is_folder(c->o.repository);
        for (const char *const *l = c->o.load; l && *l; l++) fresh.named |= !strcmp(*l, name);
        pthread_rwlock_wrlock(&c->lock);
        if (fresh.name && (fresh.folder || !folder) && (fresh.lone || !lone) &&
            (more = realloc(c->entry, sizeof *more * (size_t)(c->n_entries + 1)))) {
            c->entry = more;
            e = &c->entry[c->n_entries++];
            *e = fresh;
        } else free(fresh.name), free(fresh.folder), free(fresh.lone);
        pthread_rwlock_unlock(&c->lock);
    }
    if (e) e->seen = true;
    return e;
}
static hone_serve_slot *slot_of(hone_serve_core *c, hone_serve_entry *e, int64_t number) {
    int at = 0;
    while (at < e->n_slots && e->slot[at].number < number) at++;
    if (at < e->n_slots && e->slot[at].number == number) return &e->slot[at];
    hone_serve_slot *more = NULL;
    pthread_rwlock_wrlock(&c->lock);
    if ((more = realloc(e->slot, sizeof *more * (size_t)(e->n_slots + 1)))) {
        e->slot = more;
        memmove(more + at + 1, more + at, sizeof *more * (size_t)(e->n_slots++ - at));
        more[at] = (hone_serve_slot){.number = number};
    }
    pthread_rwlock_unlock(&c->lock);
    return more ? &e->slot[at] : NULL;
}
static void put(hone_serve_core *c, hone_serve_slot *s, hone_serve_state state, hone_serve_version *v,
                const char *reason) {
    char *copy = reason ? strdup(reason) : NULL;
    pthread_rwlock_wrlock(&c->lock);
    hone_serve_version *old = s->version;
    char *said = s->reason;
    s->version = v, s->state = state, s->reason = copy;
    pthread_rwlock_unlock(&c->lock);
    free(said);
    if (old != v) hone_serve_release(old);
}
void hone_serve_entry_empty(hone_serve_core *c, hone_serve_entry *e, const char *reason) {
    for (int k = 0; k < e->n_slots; k++) {
        if (e->slot[k].version)
            hone_serve_tell(c, "%s version %lld: unloaded", e->name, (long long)e->slot[k].number);
        put(c, &e->slot[k], HONE_SERVE_UNAVAILABLE, NULL, reason);
        e->slot[k].stamp = 0;
    }
}
static void tell_ready(hone_serve_core *c, const hone_serve_version *v) {
    const hone_serve_way *w = &v->way;
    const double ms = (double)v->counts.load_ns * 1e-6;
    char batches[400] = "", states[40] = "";
    if (v->ensemble) {
        hone_serve_tell(c, "%s version %lld: ready in %.0f ms; an ensemble", v->name, (long long)v->number,
                        ms);
        return;
    }
    if (w->max_batch) snprintf(batches, sizeof batches, "batches to %d", w->max_batch);
    else snprintf(batches, sizeof batches, "no batches (%s)", w->why ? w->why : "");
    if (v->sequences) snprintf(states, sizeof states, ", keeps state");
    hone_serve_tell(c, "%s version %lld: ready in %.0f ms; %.3f ms a run, %d instance%s of %d thread%s, %s%s",
                    v->name, (long long)v->number, ms, (double)w->ns[0] * 1e-6, w->instances,
                    w->instances == 1 ? "" : "s", w->threads, w->threads == 1 ? "" : "s", batches, states);
}
static bool told_by_start(hone_serve_core *c, const hone_serve_entry *e) { /* which fails, and says why */
    return e->named && hone_serve_health_of(c) == HONE_SERVE_STARTING;
}
/* `member`: of an ensemble; else NULL. */
static bool load_one(hone_serve_core *c, hone_serve_entry *e, const found *f, json_t *config,
                     hone_serve_version *const *member, hone_serve_error *err) {
    hone_serve_slot *s = slot_of(c, e, f->number);
    if (!s || (s->stamp == f->stamp && (s->version || s->state == HONE_SERVE_UNAVAILABLE))) {
        if (s && !s->version && s->reason) hone_serve_fail(err, 400, "%s", s->reason);
        return s && s->version;
    }
    hone_serve_error why = {0};
    s->stamp = f->stamp;
    put(c, s, s->version ? HONE_SERVE_LOADED : HONE_SERVE_LOADING, s->version, NULL);
    hone_serve_version *v =
        member ? hone_serve_version_of_members(c, e->name, f->number, config, folder_of(e), member, &why)
               : hone_serve_version_load(c, e->name, f->number, f->path, config, folder_of(e), &why);
    if (v) {
        v->stamp = f->stamp;
        put(c, s, HONE_SERVE_LOADED, v, NULL);
        atomic_fetch_add(&c->changed, 1);
        tell_ready(c, v);
    } else {
        for (char *p = why.text; *p; p++)
            if (*p == '\n') *p = ' ';
        if (!e->named ||
            hone_serve_health_of(c) != HONE_SERVE_STARTING) /* else the start fails, and says it */
            hone_serve_tell(c, "%s version %lld: refused: %s", e->name, (long long)f->number, why.text);
        if (s->version)
            hone_serve_tell(c, "%s version %lld: what was loaded before goes on", e->name,
                            (long long)f->number);
        put(c, s, s->version ? HONE_SERVE_LOADED : HONE_SERVE_UNAVAILABLE, s->version, why.text);
        *err = why;
    }
    return v != NULL;
}
static void refuse(hone_serve_core *c, hone_serve_entry *e, const hone_serve_error *err, bool drop) {
    hone_serve_slot *s = slot_of(c, e, e->n_slots ? e->slot[e->n_slots - 1].number : 1);
    const bool known = s && s->reason && !strcmp(s->reason, err->text);
    if (drop) hone_serve_entry_empty(c, e, err->text);
    if (s && !s->version && !known) {
        put(c, s, HONE_SERVE_UNAVAILABLE, NULL, err->text);
        if (!told_by_start(c, e)) hone_serve_tell(c, "%s: refused: %s", e->name, err->text);
    }
}
/* Brings what is loaded of one model to what lies there, and to this config. */
static void bring_with(hone_serve_core *c, hone_serve_entry *e, json_t *config,
                       hone_serve_version *const *member, int members, hone_serve_error *err) {
    found *f = malloc(sizeof *f * VERSIONS);
    char *text = json_dumps(config, JSON_COMPACT | JSON_SORT_KEYS);
    if (!f || !text) {
        free(f), free(text);
        hone_serve_fail(err, 503, "no memory for model '%s'", e->name);
        refuse(c, e, err, false);
        return;
    }
    int64_t own = 0;
    for (const char *p = text; *p; p++)
        own = (int64_t)((uint64_t)own * 31u + (unsigned char)*p); /* another config is another version */
    for (int k = 0; k < members; k++)                             /* and so are other members */
        own = (int64_t)((uint64_t)own * 31u + (uint64_t)member[k]->stamp + (uint64_t)member[k]->number);
    free(text);
    const int n = by_policy(config, f, versions_in(c, e, f));
    int good = 0;
    for (int k = 0; k < n; k++) {
        f[k].stamp ^= own;
        good += load_one(c, e, &f[k], config, member, err);
    }
    /* files that came with a request and do not load change nothing */
    for (int s = 0; s < e->n_slots && (good || !e->given); s++) {
        bool there = false;
        for (int k = 0; k < n; k++) there |= f[k].number == e->slot[s].number;
        if (there || (!e->slot[s].version && e->slot[s].state == HONE_SERVE_UNAVAILABLE)) continue;
        hone_serve_tell(c, "%s version %lld: unloaded", e->name, (long long)e->slot[s].number);
        put(c, &e->slot[s], HONE_SERVE_UNAVAILABLE, NULL, "unloaded");
        e->slot[s].stamp = 0;
    }
    if (!n && !err->code) hone_serve_fail(err, 400, "failed to load '%s', no version is available", e->name);
    free(f);
}
/* An ensemble waits for its members: bring_ensembles looks at it when those are there. */
static void bring(hone_serve_core *c, hone_serve_entry *e, hone_serve_error *err) {
    err->code = 0;
    if (!e->wanted) return;
    json_t *config = e->config ? json_incref(e->config) : hone_serve_config_read(folder_of(e), err);
    if (!config) {
        if (!err->code) hone_serve_fail(err, 503, "no memory for model '%s'", e->name);
        refuse(c, e, err, false);
        return;
    }
    json_decref(e->graph);
    e->graph = hone_serve_is_ensemble(config) ? json_incref(config) : NULL;
    if (!e->graph) bring_with(c, e, config, NULL, 0, err);
    json_decref(config);
}

/* ---- ensembles ---- */

static hone_serve_version *member_of(hone_serve_core *c, const hone_serve_entry *e, int64_t number) {
    hone_serve_version *v = NULL; /* the newest, or the one that is named. Held */
    pthread_rwlock_rdlock(&c->lock);
    for (int k = 0; k < e->n_slots; k++)
        if (e->slot[k].version && (number < 1 || e->slot[k].number == number)) v = e->slot[k].version;
    if (v) hone_serve_hold(v);
    pthread_rwlock_unlock(&c->lock);
    return v;
}
static bool member_ready(hone_serve_core *c, const hone_serve_entry *e) {
    hone_serve_version *v = member_of(c, e, 0);
    hone_serve_release(v);
    return v != NULL;
}
static void bring_ensemble(hone_serve_core *c, hone_serve_entry *e, hone_serve_error *err);
/* Finds the member of a step, which is brought first where it is an ensemble, too. */
static hone_serve_version *member_for(hone_serve_core *c, const hone_serve_entry *e, int step,
                                      const json_t *of, hone_serve_error *err) {
    const char *name = json_string_value(json_object_get(of, "model_name"));
    const int64_t number = hone_serve_config_int(of, "model_version", -1);
    hone_serve_entry *m = name ? entry_of(c, name) : NULL;
    hone_serve_error why = {0};
    hone_serve_version *v = NULL;
    char version[40] = "";
    if (m && m->graph && m->round < 0) {
        hone_serve_fail(err, 400, "ensemble '%s' contains itself, by step %d ('%.100s')", e->name, step,
                        name);
        return NULL;
    }
    if (m && m->graph && m->round != c->round) bring_ensemble(c, m, &why);
    if (m && (v = member_of(c, m, number))) return v;
    if (number > 0) snprintf(version, sizeof version, " version %lld", (long long)number);
    const char *reason = m && m->n_slots ? m->slot[m->n_slots - 1].reason : NULL;
    hone_serve_fail(err, 400, "ensemble '%s', step %d: model '%.100s'%s is not there%s%.250s", e->name, step,
                    name ? name : "", version, reason ? ": " : "", reason ? reason : "");
    return NULL;
}
static void bring_ensemble(hone_serve_core *c, hone_serve_entry *e, hone_serve_error *err) {
    const json_t *steps = hone_serve_steps(e->graph);
    const int n = (int)json_array_size(steps);
    hone_serve_version *member[HONE_SERVE_STEPS] = {NULL};
    err->code = 0, e->round = -1;
    json_t *config = json_incref(e->graph);
    /* what can be seen without the members is said first */
    hone_serve_ensemble *graph = hone_serve_ensemble_read(e->name, config, err);
    const bool sound = graph != NULL;
    hone_serve_ensemble_free(graph);
    for (int k = 0; k < n && !err->code; k++)
        member[k] = member_for(c, e, k + 1, json_array_get(steps, (size_t)k), err);
    if (!err->code) bring_with(c, e, config, member, n, err);
    else refuse(c, e, err, sound); /* one whose member went goes too; a broken config changes nothing */
    for (int k = 0; k < n && k < HONE_SERVE_STEPS; k++) hone_serve_release(member[k]);
    json_decref(config);
    e->round = c->round;
}
/* With explicit loading an ensemble asks for its members. */
static void want_members(hone_serve_core *c, const hone_serve_entry *e) {
    const json_t *one;
    size_t k;
    json_array_foreach(hone_serve_steps(e->graph), k, one) {
        const char *name = json_string_value(json_object_get(one, "model_name"));
        hone_serve_entry *m = name ? entry_of(c, name) : NULL;
        hone_serve_error none;
        if (!m || m->wanted) continue; /* then its own are wanted, too */
        m->wanted = true, bring(c, m, &none);
        want_members(c, m);
    }
}
static void bring_ensembles(hone_serve_core *c) {
    hone_serve_error err;
    c->round++;
    for (int k = 0; k < c->n_entries; k++)
        if (c->entry[k].graph && c->entry[k].wanted && c->entry[k].round != c->round)
            bring_ensemble(c, &c->entry[k], &err);
}
static bool uses(const hone_serve_entry *e, const char *name) {
    const json_t *one;
    size_t k;
    json_array_foreach(hone_serve_steps(e->graph), k, one) {
        const char *m = json_string_value(json_object_get(one, "model_name"));
        if (m && !strcmp(m, name)) return true;
    }
    return false;
}
/* The members of an ensemble that was unloaded, but for those that another one has. */
static void unload_members(hone_serve_core *c, const hone_serve_entry *e) {
    for (int k = 0; k < c->n_entries; k++) {
        bool used = false;
        for (int j = 0; j < c->n_entries; j++)
            used |= uses(&c->entry[j], c->entry[k].name) && member_ready(c, &c->entry[j]);
        if (used || !c->entry[k].wanted || !uses(e, c->entry[k].name)) continue;
        c->entry[k].wanted = false;
        hone_serve_entry_empty(c, &c->entry[k], "unloaded");
        unload_members(c, &c->entry[k]);
    }
}

static bool model_file(const char *name, size_t *stem) {
    const size_t n = strlen(name);
    *stem = n - 5;
    return n > 5 && !strcmp(name + n - 5, ".onnx");
}
static bool an_ensemble(const char *folder) { /* one without versions */
    hone_serve_error e = {0};
    json_t *config = hone_serve_config_read(folder, &e);
    const bool yes = e.code || hone_serve_is_ensemble(config); /* one that cannot be read says why */
    json_decref(config);
    return yes;
}
static void look(hone_serve_core *c, const char *root) {
    DIR *d = opendir(root);
    char path[PATHS], inner[PATHS + 16], name[256];
    size_t stem;
    watch(c, root);
    snprintf(path, sizeof path, "%s/model.onnx", root);
    if (stamp_of(path)) { /* the folder is itself a model's */
        char *whole = realpath(root, NULL);
        const char *last = whole ? strrchr(whole, '/') : NULL;
        see(c, last && last[1] ? last + 1 : "model", root, path);
        free(whole);
    }
    for (struct dirent *at; d && (at = readdir(d));) {
        if (*at->d_name == '.' || snprintf(path, sizeof path, "%s/%s", root, at->d_name) >= PATHS) continue;
        if (is_folder(path)) {
            snprintf(inner, sizeof inner, "%s/model.onnx", path);
            watch(c, path);
            if (stamp_of(inner)) see(c, at->d_name, path, inner);
            else {
                DIR *versions = opendir(path);
                int64_t number;
                bool any = false;
                for (struct dirent *v; versions && !any && (v = readdir(versions));)
                    any = a_version(v->d_name, &number);
                if (versions) closedir(versions);
                if (any || an_ensemble(path)) see(c, at->d_name, path, NULL);
            }
        } else if (model_file(at->d_name, &stem) && strcmp(at->d_name, "model.onnx") != 0 && stamp_of(path)) {
            snprintf(name, sizeof name, "%.*s", (int)stem, at->d_name);
            see(c, name, NULL, path);
        }
    }
    if (d) closedir(d);
}
hone_status hone_serve_scan(hone_serve_core *c, bool first) {
    const char *root = c->o.repository;
    hone_serve_error err = {0};
    for (int k = 0; k < c->n_entries; k++) c->entry[k].seen = false;
    if (!strncmp(root, "zoo:", 4)) {
        char name[256];
        snprintf(name, sizeof name, "%.*s", (int)strcspn(root + 4, "?"), root + 4);
        see(c, name, NULL, root);
    } else if (is_folder(root)) look(c, root);
    else if (stamp_of(root)) {
        const char *last = strrchr(root, '/');
        char name[256];
        size_t stem;
        last = last ? last + 1 : root;
        snprintf(name, sizeof name, "%.*s", (int)(model_file(last, &stem) ? stem : strlen(last)), last);
        see(c, name, NULL, root);
    }
    for (int k = 0; k < c->n_entries; k++) {
        hone_serve_entry *e = &c->entry[k];
        if (e->given) continue; /* not the folder's, until it is loaded from there again, or unloaded */
        if (e->seen) bring(c, e, &err);
        else {
            hone_serve_entry_empty(c, e, "it is not in the repository any more");
            json_decref(e->graph), e->graph = NULL;
        }
    }
    for (int k = 0; k < c->n_entries && first; k++)
        if (c->o.explicit_load && c->entry[k].graph) want_members(c, &c->entry[k]);
    bring_ensembles(c);
    if (first && !c->n_entries)
        hone_serve_tell(
            c, "no models in %s: NAME/VERSION/model.onnx, NAME/model.onnx or NAME.onnx are looked for", root);
    return HONE_OK;
}
/* Takes out rows that a load left which changed nothing; `before`: a row for each version there was. */
static void forget_new(hone_serve_core *c, hone_serve_entry *e, const int64_t *before, int n) {
    pthread_rwlock_wrlock(&c->lock);
    int kept = 0;
    for (int k = 0; k < e->n_slots; k++) {
        bool known = e->slot[k].version != NULL;
        for (int b = 0; b < n; b++) known |= before[b] == e->slot[k].number;
        if (known) e->slot[kept++] = e->slot[k];
        else free(e->slot[k].reason);
    }
    e->n_slots = kept;
    pthread_rwlock_unlock(&c->lock);
}
/* From files that came along, or from the repository with another config or its own. What cannot be loaded
   changes nothing of an entry whose files came with a request, or of one that they were to replace. */
static void load_entry(hone_serve_core *c, hone_serve_entry *entry, const hone_serve_task *t, json_t *config,
                       hone_serve_error *e) {
    char *before = entry->given, *folder = NULL;
    json_t *had = entry->config;
    int64_t numbers[VERSIONS];
    int n = 0;
    while (n < entry->n_slots && n < VERSIONS) numbers[n] = entry->slot[n].number, n++;
    if (!t->files.n && !entry->folder && !entry->lone) {
        hone_serve_fail(e, 400, "failed to load '%.200s', it is not in the repository", t->name);
        return;
    }
    if (t->files.n && !(folder = hone_serve_given_write(&t->files, e))) return;
    entry->given = folder, entry->config = json_incref(config);
    for (int k = 0; k < entry->n_slots; k++)
        if (!entry->slot[k].version) entry->slot[k].stamp = 0; /* what failed is tried again */
    const bool wanted = entry->wanted;
    entry->wanted = true;
    bring(c, entry, e);
    bool taken = !folder || !e->code;
    for (int k = 0; k < entry->n_slots && !taken; k++)
        taken = entry->slot[k].version && !strncmp(entry->slot[k].version->path, folder, strlen(folder));
    if (c->o.explicit_load && taken) want_members(c, entry);
    bring_ensembles(c);
    if (folder) hone_serve_given_remove(folder);
    if (taken) json_decref(had), free(before);
    else {
        if (n) forget_new(c, entry, numbers, n);
        json_decref(entry->config), free(folder);
        entry->given = before, entry->config = had, entry->wanted = wanted;
    }
    if (!e->code && entry->graph && !member_ready(c, entry))
        hone_serve_fail(e, 400, "failed to load '%s': %.400s", entry->name,
                        entry->n_slots && entry->slot[entry->n_slots - 1].reason
                            ? entry->slot[entry->n_slots - 1].reason
                            : "it is not available");
}
static void do_load(hone_serve_core *c, const hone_serve_task *t, hone_serve_error *e) {
    json_error_t where;
    hone_serve_entry *entry;
    if (!entry_of(c, t->name)) (void)hone_serve_scan(c, false); /* it may have come just now */
    if (!(entry = entry_of(c, t->name)) && t->files.n) entry = see(c, t->name, NULL, NULL);
    if (!entry) {
        hone_serve_fail(e, 400, "failed to load '%.200s', it is not in the repository", t->name);
        return;
    }
    json_t *config = t->config ? json_loads(t->config, JSON_REJECT_DUPLICATES, &where) : NULL;
    if (t->config && !json_is_object(config))
        hone_serve_fail(e, 400, "load '%.200s': its config is no JSON object%s%s", t->name,
                        config ? "" : ": ", config ? "" : where.text);
    else if (!config || !hone_serve_config_lengthen(config, "config", e)) load_entry(c, entry, t, config, e);
    json_decref(config);
}
void hone_serve_do(hone_serve_core *c, hone_serve_task *t) {
    hone_serve_error e = {0};
    hone_serve_entry *entry = entry_of(c, t->name);
    if (t->load) do_load(c, t, &e);
    else if (!entry)
        hone_serve_fail(&e, 400, "failed to unload '%.200s', it is not in the repository", t->name);
    else {
        entry->wanted = false;
        free(entry->given), entry->given = NULL;
        hone_serve_entry_empty(c, entry, "unloaded");
        if (t->members) unload_members(c, entry);
        bring_ensembles(c);
    }
    t->done(t->arg, &e);
}
