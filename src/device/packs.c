/* SPDX-License-Identifier: Apache-2.0
   packs: see packs.h. */
#include "device/packs.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/file.h"
#include "base/round.h"
#include "base/thread.h"

typedef struct pack pack;
struct pack {
    hone_packing of;
    const int64_t *key;
    int n;
    void *data;
    int number;        /* among all */
    atomic_int left;   /* parts to fill */
    pack *next, *then; /* of its slot; of those to fill */
};
/* They lie in slabs, the larger the more there are: large fresh blocks come in large pages that are zero
   already, and a fault for every 4 KB is half the time of packing.
   Under a sanitizer each has a slab of its own, so that it sees the first byte past the end. */
enum { LEAST_SLAB = 1 << 22, MOST_SLAB = 1 << 23, LINE = 64 };
struct hone_packs {
    const hone_constants *constants;
    pthread_mutex_t lock, filling;
    pack *first, **last; /* to fill, in the order in which they were asked for */
    hone_arena *arena;
    pack *slot[256];
    hone_vec(pack *) all; /* by number */
    hone_vec(void *) slab;
    char *at;            /* in the last slab, */
    size_t left;         /* of which so much is free */
    atomic_size_t bytes; /* asked for while others pack */
};
static void *slab_alloc(hone_packs *p, size_t bytes) {
    const size_t whole = hone_round_up(bytes, LINE);
    if (whole < bytes) return NULL;
    if (whole > p->left) {
        size_t size = atomic_load(&p->bytes) < LEAST_SLAB  ? LEAST_SLAB
                      : atomic_load(&p->bytes) < MOST_SLAB ? atomic_load(&p->bytes)
                                                           : MOST_SLAB;
#if defined(__SANITIZE_ADDRESS__)
        size = 0;
#endif
        const bool own = whole > size / 2; /* the last slab goes on being filled */
        void *slab = hone_alloc(own ? bytes : size);
        if (!slab || !hone_push(&p->slab, slab)) {
            hone_free(slab);
            return NULL;
        }
        if (own) return slab;
        p->at = slab, p->left = size;
    }
    void *at = p->at;
    p->at += whole, p->left -= whole;
    return at;
}
hone_packs *hone_packs_create(const hone_constants *c) {
    hone_packs *p = hone_alloc(sizeof *p);
    if (!p || !(p->arena = hone_arena_create())) {
        hone_free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL), pthread_mutex_init(&p->filling, NULL);
    p->constants = c, p->last = &p->first;
    return p;
}
void hone_packs_empty(hone_packs *p) {
    for (int k = 0; k < p->slab.n; k++) hone_free(p->slab.at[k]);
    hone_vec_free(&p->slab);
    p->left = 0, p->first = NULL, p->last = &p->first, p->all.n = 0;
    memset(p->slot, 0, sizeof p->slot);
    hone_arena_reset(p->arena);
    atomic_store(&p->bytes, 0);
}
void hone_packs_destroy(hone_packs *p) {
    if (!p) return;
    hone_packs_empty(p);
    hone_vec_free(&p->all);
    pthread_mutex_destroy(&p->lock), pthread_mutex_destroy(&p->filling);
    hone_arena_destroy(p->arena);
    hone_free(p);
}
static pack *note(hone_packs *p, const int64_t *key, int n, const hone_packing *of) {
    pack *q = HONE_NEW(p->arena, pack);
    if (!q) return NULL;
    q->of = *of, q->n = n, atomic_init(&q->left, of->parts);
    q->key = hone_arena_copy(p->arena, key, sizeof *key * (size_t)n),
    q->of.arg = hone_arena_copy(p->arena, of->arg, of->arg_bytes);
    if (!q->key || !q->of.arg ||
        !hone_vec_grow((void **)&p->all.at, &p->all.room, p->all.n + 1, sizeof *p->all.at) ||
        !(q->data = slab_alloc(p, of->bytes)))
        return NULL;
    q->number = p->all.n, p->all.at[p->all.n++] = q;
    *p->last = q, p->last = &q->then;
    atomic_fetch_add(&p->bytes, of->bytes);
    return q;
}
int32_t hone_packs_get(hone_packs *p, const int64_t *key, int n, const hone_packing *of) {
    uint64_t h = (uint64_t)(uintptr_t)of->source >> 4;
    for (int k = 0; k < n; k++) h = (h ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15u;
    pthread_mutex_lock(&p->lock);
    pack **slot = p->slot + (h >> 56), *q = *slot;
    while (q && (q->of.source != of->source || q->n != n || memcmp(q->key, key, sizeof *key * (size_t)n)))
        q = q->next;
    if (!q && (q = note(p, key, n, of))) q->next = *slot, *slot = q;
    pthread_mutex_unlock(&p->lock);
    return q ? hone_base_constant(p->constants->n + q->number) : HONE_BASE_NONE;
}
int hone_packs_count(hone_packs *p) {
    pthread_mutex_lock(&p->lock);
    const int n = p->constants->n + p->all.n;
    pthread_mutex_unlock(&p->lock);
    return n;
}
void hone_packs_bases(hone_packs *p, int from, int to, void **base) {
    pthread_mutex_lock(&p->lock);
    for (int k = from; k < to; k++) {
        const int packed = k - p->constants->n;
        base[hone_base_constant(k)] = packed < 0          ? (void *)p->constants->at[k].at
                                      : packed < p->all.n ? p->all.at[packed]->data
                                                          : NULL;
    }
    pthread_mutex_unlock(&p->lock);
}
void *hone_packs_at(hone_packs *p, int32_t base) {
    const int k = hone_base_constant(base), packed = k - p->constants->n;
    pthread_mutex_lock(&p->lock);
    void *at = packed < 0          ? (void *)p->constants->at[k].at
               : packed < p->all.n ? p->all.at[packed]->data
                                   : NULL;
    pthread_mutex_unlock(&p->lock);
    return at;
}
const void *hone_packs_constant(const hone_packs *p, int32_t base) {
    return p->constants->at[hone_base_constant(base)].at;
}
size_t hone_packs_size(hone_packs *p, int32_t base) {
    const int k = hone_base_constant(base), packed = k - p->constants->n;
    if (packed < 0) return p->constants->at[k].bytes;
    pthread_mutex_lock(&p->lock);
    const size_t bytes = packed < p->all.n ? p->all.at[packed]->of.bytes : 0;
    pthread_mutex_unlock(&p->lock);
    return bytes;
}
/* What a team fills: each takes the next part that nobody has. */
typedef struct {
    pthread_mutex_t lock;
    pack *at;
    int part;
} queue;
enum { MANY_BYTES = 1 << 16 };
static void fill_parts(void *arg, int member, int members) {
    queue *all = arg;
    (void)member, (void)members;
    for (;;) {
        pthread_mutex_lock(&all->lock);
        pack *q = all->at;
        const int part = all->part++;
        if (q && all->part == q->of.parts) all->at = q->then, all->part = 0;
        pthread_mutex_unlock(&all->lock);
        if (!q) return;
        const size_t from = q->of.bytes / (size_t)q->of.parts * (size_t)part,
                     to = part + 1 < q->of.parts ? q->of.bytes / (size_t)q->of.parts * (size_t)(part + 1)
                                                 : q->of.bytes;
        if (q->of.bytes > MANY_BYTES) hone_bring_pages((char *)q->data + from, to - from);
        q->of.fill(q->of.arg, q->data, part, q->of.parts);
        if (atomic_fetch_sub(&q->left, 1) == 1 && q->of.bytes > MANY_BYTES)
            hone_file_forget(q->of.source, q->of.source_bytes); /* mapped weights are read once, here */
    }
}
void hone_packs_fill(hone_packs *p, int threads) {
    enum { WORTH = 1 << 20 }; /* bytes, for others to wake up */
    size_t bytes = 0;
    pthread_mutex_lock(&p->filling); /* of two who asked for the same one the second waits */
    pthread_mutex_lock(&p->lock);
    queue all = {.lock = PTHREAD_MUTEX_INITIALIZER, .at = p->first};
    p->first = NULL, p->last = &p->first;
    pthread_mutex_unlock(&p->lock);
    for (const pack *q = all.at; q; q = q->then) bytes += q->of.bytes;
    if (all.at) hone_team_run(bytes < WORTH ? 1 : threads, fill_parts, &all);
    pthread_mutex_destroy(&all.lock);
    pthread_mutex_unlock(&p->filling);
}
size_t hone_packs_bytes(const hone_packs *p) { return atomic_load(&p->bytes); }
