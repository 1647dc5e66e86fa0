/* SPDX-License-Identifier: Apache-2.0
   cache: see cache.h. */
#define _GNU_SOURCE
#include "base/cache.h"

#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

enum { SLOTS = 8192, FULL = 8 << 20 /* bytes */ };
typedef struct kept kept;
struct kept {
    uint64_t hash;
    hone_cache_make *make;
    const int64_t *key;
    int n;
    const void *thing;
    kept *next;
};
struct hone_cache {
    atomic_int holders;
    pthread_mutex_t lock;
    hone_arena *arena;
    kept *slot[SLOTS];
};
struct hone_caches {
    pthread_mutex_t lock;
    hone_cache *now;
};

static hone_cache *fresh(void) {
    hone_cache *s = hone_alloc(sizeof *s);
    if (!s || !(s->arena = hone_arena_create())) {
        hone_free(s);
        return NULL;
    }
    pthread_mutexattr_t again; /* what is made of kept things asks for them while it is made */
    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->lock, &again);
    pthread_mutexattr_destroy(&again);
    atomic_init(&s->holders, 1);
    return s;
}
void hone_cache_drop(hone_cache *s) {
    if (!s || atomic_fetch_sub(&s->holders, 1) > 1) return;
    pthread_mutex_destroy(&s->lock);
    hone_arena_destroy(s->arena);
    hone_free(s);
}
hone_caches *hone_caches_create(void) {
    hone_caches *all = hone_alloc(sizeof *all);
    if (!all || !(all->now = fresh())) {
        hone_free(all);
        return NULL;
    }
    pthread_mutex_init(&all->lock, NULL);
    return all;
}
void hone_caches_destroy(hone_caches *all) {
    if (!all) return;
    hone_cache_drop(all->now);
    pthread_mutex_destroy(&all->lock);
    hone_free(all);
}
hone_cache *hone_caches_hold(hone_caches *all) {
    pthread_mutex_lock(&all->lock);
    pthread_mutex_lock(&all->now->lock);
    bool full = hone_arena_bytes(all->now->arena) > FULL;
    /* no plan holds it: emptied, its memory is as good as new and warm */
    if (full && atomic_load(&all->now->holders) == 1) {
        memset(all->now->slot, 0, sizeof all->now->slot);
        hone_arena_reset(all->now->arena);
        full = false;
    }
    pthread_mutex_unlock(&all->now->lock);
    hone_cache *s = full ? fresh() : NULL; /* without memory the full one grows on */
    if (s) hone_cache_drop(all->now), all->now = s;
    s = all->now;
    atomic_fetch_add(&s->holders, 1);
    pthread_mutex_unlock(&all->lock);
    return s;
}
hone_status hone_cache_get(hone_cache *s, const int64_t *key, int n, hone_cache_make *make, const void *arg,
                           const void **out) {
    uint64_t h = (uint64_t)n;
    for (int k = 0; k < n; k++) h = (h ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    pthread_mutex_lock(&s->lock);
    kept **slot = s->slot + h % SLOTS, *q = *slot;
    while (q &&
           (q->hash != h || q->make != make || q->n != n || memcmp(q->key, key, sizeof *key * (size_t)n)))
        q = q->next;
    hone_status status = HONE_OK;
    if (q) *out = q->thing;
    else if (!(status = make(s->arena, arg, out))) {
        const int64_t *copy = hone_arena_copy(s->arena, key, sizeof *key * (size_t)n);
        /* without memory it is not found again, no more */
        if ((q = copy ? HONE_NEW(s->arena, kept) : NULL))
            *q = (kept){h, make, copy, n, *out, *slot}, *slot = q;
    }
    pthread_mutex_unlock(&s->lock);
    return status;
}
