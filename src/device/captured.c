/* SPDX-License-Identifier: Apache-2.0
   captured: see captured.h. */
#include "device/captured.h"

#include <stdlib.h>
#include <string.h>

enum { MOST_KEYS = 256 };
typedef struct {
    uint64_t *key;
    int n, runs;
    uint64_t used, before; /* its last run, and the one before that */
    bool never;            /* it could not be recorded */
    void *graph;
} entry;
struct hone_captured {
    const hone_capture *how;
    void *queue;
    uint64_t clock;
    int at_run; /* the run that records; 0: none */
    hone_vec(entry) all;
};

hone_captured *hone_captured_create(const hone_capture *how, void *queue) {
    hone_captured *c = hone_alloc(sizeof *c);
    const char *named = getenv("HONE_CAPTURE");
    if (!c) return NULL;
    c->how = how, c->queue = queue, c->at_run = 3;
    if (named && *named >= '0' && *named <= '9') c->at_run = atoi(named);
    return c;
}
static void drop(hone_captured *c, entry *e) {
    if (e->graph) c->how->free(c->queue, e->graph);
    e->graph = NULL, e->runs = 0;
}
void hone_captured_destroy(hone_captured *c) {
    if (!c) return;
    for (int k = 0; k < c->all.n; k++) drop(c, c->all.at + k), hone_free(c->all.at[k].key);
    hone_vec_free(&c->all);
    hone_free(c);
}
int hone_captured_graphs(const hone_captured *c) {
    int n = 0;
    for (int k = 0; k < c->all.n; k++) n += c->all.at[k].graph != NULL;
    return n;
}
/* The entry of a key, made where there is none; NULL: no memory, which only means that nothing is
   recorded. */
static entry *entry_of(hone_captured *c, const hone_capture_key *key) {
    const size_t bytes = sizeof *key->at * (size_t)key->n;
    entry *oldest = NULL;
    for (int k = 0; k < c->all.n; k++) {
        entry *e = c->all.at + k;
        if (e->n == key->n && !memcmp(e->key, key->at, bytes)) return e;
        if (!e->graph && (!oldest || e->used < oldest->used)) oldest = e;
    }
    uint64_t *copy = hone_alloc_raw(bytes);
    if (!copy) return NULL;
    memcpy(copy, key->at, bytes);
    if (c->all.n >= MOST_KEYS && oldest) {
        hone_free(oldest->key);
        *oldest = (entry){.key = copy, .n = key->n};
        return oldest;
    }
    if (hone_push(&c->all, ((entry){.key = copy, .n = key->n}))) return c->all.at + c->all.n - 1;
    hone_free(copy);
    return NULL;
}
/* Room for one graph more, for an entry that ran at `before`. */
static bool make_room(hone_captured *c, uint64_t before) {
    entry *oldest = NULL;
    int n = 0;
    for (int k = 0; k < c->all.n; k++) {
        entry *e = c->all.at + k;
        if (!e->graph) continue;
        n++;
        if (!oldest || e->used < oldest->used) oldest = e;
    }
    if (n < HONE_MOST_CAPTURED) return true;
    /* they are all met more often: a turn of more than 16 would throw out each before it is met again */
    if (oldest->used >= before && before) return false;
    drop(c, oldest);
    return true;
}
static void record(hone_captured *c, entry *e, hone_status (*launch)(void *), void *arg) {
    e->never = true;
    if (c->how->begin(c->queue)) return;
    /* if one fails it will fail again when it is launched plainly, and say so */
    const hone_status s = launch(arg);
    e->never = c->how->end(c->queue, &e->graph) || s || !e->graph;
    if (!e->never) return;
    if (e->graph) c->how->free(c->queue, e->graph);
    e->graph = NULL;
}
hone_status hone_captured_run(hone_captured *c, const hone_capture_key *key, hone_status (*launch)(void *),
                              void *arg) {
    entry *e = c->at_run > 0 ? entry_of(c, key) : NULL;
    if (!e) return launch(arg);
    e->before = e->used, e->used = ++c->clock;
    if (e->runs < c->at_run) e->runs++;
    if (!e->graph && !e->never && e->runs >= c->at_run && make_room(c, e->before)) record(c, e, launch, arg);
    return e->graph ? c->how->replay(c->queue, e->graph) : launch(arg);
}
