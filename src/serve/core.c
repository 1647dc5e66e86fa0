/* SPDX-License-Identifier: Apache-2.0
   core: the table of models, and the keeper: one thread that loads, unloads, follows the repository, and ends
   versions that nobody holds any more. Only the keeper changes the table; whoever looks something up holds
   its lock for that moment. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include "serve/inside.h"

enum { SETTLE_MS = 150 }; /* after a change: who copies files is not done with the first */

void hone_serve_tell(hone_serve_core *c, const char *format, ...) {
    char line[1024];
    va_list args;
    if (!c->o.tell) return;
    va_start(args, format);
    vsnprintf(line, sizeof line, format, args);
    va_end(args);
    c->o.tell(c->o.arg, line);
}
void hone_serve_wake(hone_serve_core *c) {
    const char byte = 0;
    (void)!write(c->wake[1], &byte, 1); /* a full pipe wakes it too */
}
hone_serve_health hone_serve_health_of(hone_serve_core *c) {
    return (hone_serve_health)atomic_load(&c->health);
}

/* ---- looking up ---- */

/* Where a model says how requests that name no version are shared out, by weights; else the newest. */
static hone_serve_version *choose(const hone_serve_entry *e) {
    static atomic_uint turn;
    hone_serve_version *newest = NULL;
    double all = 0, at = 0;
    const json_t *weights = NULL;
    for (int k = 0; k < e->n_slots; k++)
        if (e->slot[k].version) newest = e->slot[k].version;
    if (!newest || !(weights = json_object_get(newest->config, "weights"))) return newest;
    char number[32];
    for (int pass = 0; pass < 2; pass++) {
        /* spread evenly, without chance */
        if (pass) at = all * (double)((atomic_fetch_add(&turn, 1) * 2654435769u) >> 8) / (double)(1 << 24);
        for (int k = 0; k < e->n_slots; k++) {
            if (!e->slot[k].version) continue;
            snprintf(number, sizeof number, "%lld", (long long)e->slot[k].number);
            const double w = json_number_value(json_object_get(weights, number));
            if (w <= 0) continue;
            if (!pass) all += w;
            else if ((at -= w) < 0) return e->slot[k].version;
        }
        if (all <= 0) break;
    }
    return newest;
}
hone_serve_version *hone_serve_find(hone_serve_core *c, const char *name, int64_t version,
                                    hone_serve_error *e) {
    hone_serve_version *found = NULL;
    e->code = 0;
    pthread_rwlock_rdlock(&c->lock);
    const hone_serve_entry *entry = NULL;
    for (int k = 0; k < c->n_entries && !entry; k++)
        if (!strcmp(c->entry[k].name, name)) entry = &c->entry[k];
    if (!entry) hone_serve_fail(e, 404, "Request for unknown model: '%.200s' is not found", name);
    else if (!version) found = choose(entry);
    const hone_serve_slot *last = NULL;
    for (int k = 0; entry && k < entry->n_slots; k++) {
        last = &entry->slot[k];
        if (version && last->number == version && !(found = last->version)) break;
    }
    if (found) hone_serve_hold(found);
    else if (entry && last && (!version || last->number == version))
        hone_serve_fail(e, last->state == HONE_SERVE_LOADING ? 503 : 400,
                        "Request for unknown model: '%s' has no available versions: %s", name,
                        last->reason                        ? last->reason
                        : last->state == HONE_SERVE_LOADING ? "loading"
                                                            : "unloaded");
    else if (entry)
        hone_serve_fail(e, version ? 404 : 400, "Request for unknown model: '%s' version %lld is not found",
                        name, (long long)version);
    pthread_rwlock_unlock(&c->lock);
    if (e->code == 503) e->retry_after = 1;
    return found;
}

/* ---- the keeper ---- */

static void task_free(hone_serve_task *t) {
    if (!t) return;
    hone_serve_given_free(&t->files);
    free(t->name), free(t->config), free(t);
}
static void post(hone_serve_core *c, bool load, bool members, const char *name, const char *config,
                 hone_serve_given *files, hone_serve_loaded *done, void *arg) {
    hone_serve_task *t = calloc(1, sizeof *t);
    hone_serve_error e = {0};
    if (t)
        *t = (hone_serve_task){.name = strdup(name),
                               .config = config ? strdup(config) : NULL,
                               .load = load,
                               .members = members,
                               .done = done,
                               .arg = arg};
    if (!t || !t->name || (config && !t->config)) {
        task_free(t);
        hone_serve_fail(&e, 503, "no memory for a task");
        done(arg, &e);
        return;
    }
    if (files) t->files = *files, *files = (hone_serve_given){0};
    pthread_mutex_lock(&c->keeping);
    const bool quit = c->quit;
    if (!quit) {
        *c->last_task = t, c->last_task = &t->next;
        hone_serve_wake(c);
    }
    pthread_mutex_unlock(&c->keeping);
    if (!quit) return;
    task_free(t);
    hone_serve_fail(&e, 503, "the server is stopping");
    done(arg, &e);
}
void hone_serve_load(hone_serve_core *c, const char *name, const char *config, hone_serve_given *files,
                     hone_serve_loaded *done, void *arg) {
    const size_t most = c->o.max_files_mib < 0 ? 0 : (size_t)c->o.max_files_mib << 20;
    hone_serve_error e = {0};
    size_t all = 0;
    for (int k = 0; files && k < files->n; k++) all += files->file[k].bytes;
    if (all <= most) {
        post(c, true, false, name, config, files, done, arg);
        return;
    }
    if (!most) hone_serve_fail(&e, 400, "this server takes no files: models come from its repository");
    else
        hone_serve_fail(&e, 413, "the files of '%.200s' have %zu bytes; at most %zu are taken", name, all,
                        most);
    done(arg, &e);
}
void hone_serve_unload(hone_serve_core *c, const char *name, bool members, hone_serve_loaded *done,
                       void *arg) {
    post(c, false, members, name, NULL, NULL, done, arg);
}

/* Waits for something to do; true: the folder changed, and has been quiet for a moment. */
static bool idle_until(hone_serve_core *c, bool *stirred) {
    struct pollfd at[2] = {{.fd = c->wake[0], .events = POLLIN}, {.fd = c->watch, .events = POLLIN}};
    const bool watching = c->o.watch && c->watch >= 0, looking = c->o.watch && c->watch < 0;
    char bytes[4096];
    const int n = poll(at, watching ? 2 : 1, *stirred ? SETTLE_MS : looking ? c->o.poll_ms : -1);
    if (at[0].revents) (void)!read(c->wake[0], bytes, sizeof bytes);
    if (watching && at[1].revents) {
        while (read(c->watch, bytes, sizeof bytes) > 0) *stirred = true;
        return false;
    }
    if (n != 0) return false;
    *stirred = false;
    return true;
}
static void *keep(void *arg) {
    hone_serve_core *c = arg;
    bool stirred = false;
    pthread_mutex_lock(&c->keeping);
    while (!c->go && !c->quit) pthread_cond_wait(&c->kept_more, &c->keeping); /* the ports are opened first */
    const bool never = !c->go;
    pthread_mutex_unlock(&c->keeping);
    if (!never) (void)hone_serve_scan(c, true);
    int starting = HONE_SERVE_STARTING;
    atomic_compare_exchange_strong(&c->health, &starting, HONE_SERVE_READY);
    pthread_mutex_lock(&c->keeping);
    pthread_cond_broadcast(&c->kept_more);
    for (;;) {
        hone_serve_version *dead = c->dead;
        hone_serve_task *t = c->task;
        c->dead = NULL;
        if (t && !(c->task = t->next)) c->last_task = &c->task;
        if (!dead && !t && c->quit) break;
        pthread_mutex_unlock(&c->keeping);
        for (hone_serve_version *next; dead; dead = next) next = dead->next, hone_serve_version_end(dead);
        if (t) {
            hone_serve_do(c, t);
            task_free(t);
        } else if (idle_until(c, &stirred)) (void)hone_serve_scan(c, false);
        pthread_mutex_lock(&c->keeping);
    }
    pthread_mutex_unlock(&c->keeping);
    return NULL;
}

/* ---- start and end ---- */

hone_serve_shared *hone_serve_shared_of(hone_serve_core *c) { return c->shared; }

/* Each device takes a number. */
static hone_status try_devices(const char *list) {
    const int64_t one = 1;
    char name[64];
    hone_value *here = NULL, *there = NULL;
    if (hone_tensor_create(HONE_DTYPE_F32, &one, 1, &here))
        return hone_server_say(HONE_NO_MEMORY, "no memory for a server");
    hone_status s = HONE_OK;
    for (int k = 0; k < hone_serve_devices(list) && !s; k++) {
        if ((s = hone_value_bring(here, hone_serve_device(list, k, name), &there)))
            hone_server_say(s, "device '%s': %s", name, hone_error());
        hone_value_free(there), there = NULL;
    }
    hone_value_free(here);
    return s;
}
hone_status hone_serve_core_start(const hone_server_options *o, hone_serve_core **out) {
    const hone_status there = try_devices(o->device);
    if (there) return there;
    hone_serve_core *c = calloc(1, sizeof *c);
    if (!c) return hone_server_say(HONE_NO_MEMORY, "no memory for a server");
    c->o = *o, c->wake[0] = c->wake[1] = c->watch = -1, c->last_task = &c->task;
    c->began_ns = hone_serve_now();
    cpu_set_t set;
    c->cores = o->threads > 0 ? o->threads : !sched_getaffinity(0, sizeof set, &set) ? CPU_COUNT(&set) : 1;
    double ms;
    char end;
    if (o->goal && sscanf(o->goal, "latency=%lfm%c", &ms, &end) == 2 && end == 's' && ms > 0 && ms < 1e9)
        c->latency_goal_ns = (uint64_t)(ms * 1e6);
    else if (o->goal && strcmp(o->goal, "throughput") != 0) {
        free(c);
        return hone_server_say(HONE_BAD_INPUT, "goal '%.60s': say throughput, or latency=10ms", o->goal);
    }
    if (!(c->shared = hone_serve_shared_create())) {
        free(c);
        return hone_server_say(HONE_NO_MEMORY, "no memory for a server");
    }
    pthread_rwlock_init(&c->lock, NULL);
    pthread_mutex_init(&c->keeping, NULL), pthread_cond_init(&c->kept_more, NULL);
    atomic_init(&c->health, HONE_SERVE_STARTING), atomic_init(&c->under_way, 0);
    if (pipe2(c->wake, O_CLOEXEC | O_NONBLOCK)) {
        const int why = errno;
        hone_serve_core_free(c);
        return hone_server_say(HONE_IO, "no pipe for the server: %s", strerror(why));
    }
    if (o->watch) c->watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    const int rc = pthread_create(&c->keeper, NULL, keep, c);
    if (rc) {
        hone_serve_core_free(c);
        return hone_server_say(HONE_IO, "no thread for the server: %s", strerror(rc));
    }
    c->kept = true;
    *out = c;
    return HONE_OK;
}
void hone_serve_core_go(hone_serve_core *c) {
    pthread_mutex_lock(&c->keeping);
    c->go = true;
    pthread_cond_broadcast(&c->kept_more);
    while (hone_serve_health_of(c) == HONE_SERVE_STARTING) pthread_cond_wait(&c->kept_more, &c->keeping);
    pthread_mutex_unlock(&c->keeping);
}
/* What was named itself, a file, zoo:NAME or by `load`, must be there: who asked for it is told at once. */
hone_status hone_serve_core_named(hone_serve_core *c) {
    const char *one = NULL, *reason = NULL;
    struct stat s;
    hone_status status = HONE_OK;
    const bool folder = !stat(c->o.repository, &s) && S_ISDIR(s.st_mode);
    pthread_rwlock_rdlock(&c->lock);
    for (int k = -1; !status && (k < 0 || (c->o.load && c->o.load[k])); k++) {
        bool there = false;
        reason = NULL;
        if (k < 0 ? folder || c->o.explicit_load : !strcmp(c->o.load[k], "*")) continue;
        one = k < 0 ? c->o.repository : c->o.load[k];
        for (int e = 0; e < c->n_entries; e++)
            for (int v = 0; v < c->entry[e].n_slots && (k < 0 || !strcmp(c->entry[e].name, one)); v++) {
                there |= c->entry[e].slot[v].version != NULL;
                reason = c->entry[e].slot[v].reason;
            }
        if (!there)
            status = reason ? hone_server_say(HONE_BAD_INPUT, "%s cannot be loaded: %s", one, reason)
                            : hone_server_say(HONE_IO, "%s is not in %s", one, c->o.repository);
    }
    pthread_rwlock_unlock(&c->lock);
    return status;
}
/* After this no request is under way, and all models are gone. */
void hone_serve_core_drain(hone_serve_core *c) { atomic_store(&c->health, HONE_SERVE_DRAINING); }
void hone_serve_core_cut(hone_serve_core *c) { atomic_store(&c->cut, true); }
void hone_serve_core_free(hone_serve_core *c) {
    if (!c) return;
    hone_serve_core_drain(c);
    pthread_mutex_lock(&c->keeping);
    c->quit = true;
    pthread_cond_broadcast(&c->kept_more);
    if (c->kept) hone_serve_wake(c);
    pthread_mutex_unlock(&c->keeping);
    if (c->kept) pthread_join(c->keeper, NULL);
    for (int k = 0; k < c->n_entries; k++) {
        hone_serve_entry *e = &c->entry[k];
        hone_serve_entry_empty(c, e, NULL);
        json_decref(e->config), json_decref(e->graph);
        for (int s = 0; s < e->n_slots; s++) free(e->slot[s].reason);
        free(e->slot), free(e->name), free(e->folder), free(e->lone), free(e->given);
    }
    for (hone_serve_version *v; (v = c->dead);) /* ending an ensemble lets go of its members */
        c->dead = v->next, hone_serve_version_end(v);
    hone_serve_shared_free(c->shared);
    free(c->entry);
    for (int k = 0; k < 2; k++)
        if (c->wake[k] >= 0) close(c->wake[k]);
    if (c->watch >= 0) close(c->watch);
    pthread_cond_destroy(&c->kept_more), pthread_mutex_destroy(&c->keeping), pthread_rwlock_destroy(&c->lock);
    free(c);
}
