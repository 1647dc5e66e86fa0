/* SPDX-License-Identifier: Apache-2.0
   steps: a plan in the making: steps, the arena blocks their operands lie in, and the cache of packed weights. */
#include <pthread.h>
#include <stdatomic.h>
#include <string.h>

#include "base/file.h"
#include "base/thread.h"
#include "device/step.h"

int hone_steps_block(hone_steps *s, int64_t bytes) {
    if (bytes < 0 || bytes > INT64_MAX / 4) return -1;
    hone_block b = {.bytes = (bytes + 63) / 64 * 64, .first = s->step.n, .last = s->step.n, .shares = -1};
    return hone_push(&s->block, b) ? s->block.n - 1 : -1;
}
hone_status hone_steps_add(hone_steps *s, hone_step step, hone_ref *refs, int n) {
    step.ref = refs;
    for (int k = 0; k < n; k++) {
        if (refs[k].base != HONE_BASE_ARENA) continue;
        s->block.at[refs[k].block].last = s->step.n, s->block.at[refs[k].block].plain = true;
        if (!hone_push(&s->patch, refs + k)) return hone_fail(HONE_NO_MEMORY, "no memory for a plan");
    }
    return hone_push(&s->step, step) ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a plan");
}

void hone_steps_halve(hone_steps *s) {
    for (int k = 0; k < s->step.n; k++) {
        hone_step *w = s->step.at + k;
        for (int t = 0; t < 64 && w->halves >> t; t++) {
            if (!(w->halves >> t & 1) || w->ref[t].base != HONE_BASE_ARENA) continue;
            hone_block *b = s->block.at + w->ref[t].block;
            if (!b->plain) w->half |= (uint64_t)1 << t, b->half = true;
        }
    }
    for (int k = 0; k < s->patch.n; k++)
        if (s->patch.at[k]->block >= 0 && s->block.at[s->patch.at[k]->block].half) s->patch.at[k]->offset /= 2;
    for (int k = 0; k < s->block.n; k++) {
        hone_block *b = s->block.at + k;
        if (b->half) b->bytes = (b->bytes / 2 + 63) / 64 * 64;
        if (b->shares >= 0 && s->block.at[b->shares].half != b->half) b->shares = -1; /* elements no longer lie on each other */
    }
}

typedef struct pack pack;
struct pack {
    hone_packing of;
    const int64_t *key;
    int n;
    void *data;
    atomic_int left;   /* parts to fill */
    pack *next, *then; /* of its slot; of those to fill */
};
/* They lie in slabs, the larger the more there are: large fresh blocks come in large pages that are zero already, and a fault for every 4 KB is half the time of packing.
   Under a sanitizer each has a slab of its own, so that it sees the first byte past the end. */
enum { LEAST_SLAB = 1 << 22, MOST_SLAB = 1 << 23, LINE = 64 };
struct hone_packs {
    pthread_mutex_t lock, filling;
    pack *first, **last; /* to fill, in the order in which they were asked for */
    hone_arena *arena;
    pack *slot[256];
    hone_vec(void *) slab;
    char *at;            /* in the last slab, */
    size_t left;         /* of which so much is free */
    atomic_size_t bytes; /* asked for while others pack */
};
static void *slab_alloc(hone_packs *p, size_t bytes) {
    const size_t whole = (bytes + LINE - 1) / LINE * LINE;
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
hone_packs *hone_packs_create(void) {
    hone_packs *p = hone_alloc(sizeof *p);
    if (!p || !(p->arena = hone_arena_create())) {
        hone_free(p);
        return NULL;
    }
    pthread_mutex_init(&p->lock, NULL), pthread_mutex_init(&p->filling, NULL);
    p->last = &p->first;
    return p;
}
void hone_packs_empty(hone_packs *p) {
    for (int k = 0; k < p->slab.n; k++) hone_free(p->slab.at[k]);
    hone_vec_free(&p->slab);
    p->left = 0, p->first = NULL, p->last = &p->first;
    memset(p->slot, 0, sizeof p->slot);
    hone_arena_reset(p->arena);
    atomic_store(&p->bytes, 0);
}
void hone_packs_destroy(hone_packs *p) {
    if (!p) return;
    hone_packs_empty(p);
    pthread_mutex_destroy(&p->lock), pthread_mutex_destroy(&p->filling);
    hone_arena_destroy(p->arena);
    hone_free(p);
}
static pack *note(hone_packs *p, const int64_t *key, int n, const hone_packing *of) {
    pack *q = HONE_NEW(p->arena, pack);
    if (!q) return NULL;
    q->of = *of, q->n = n, atomic_init(&q->left, of->parts);
    q->key = hone_arena_copy(p->arena, key, sizeof *key * (size_t)n), q->of.arg = hone_arena_copy(p->arena, of->arg, of->arg_bytes);
    if (!q->key || !q->of.arg || !(q->data = slab_alloc(p, of->bytes))) return NULL;
    *p->last = q, p->last = &q->then;
    atomic_fetch_add(&p->bytes, of->bytes);
    return q;
}
const void *hone_packs_get(hone_packs *p, const int64_t *key, int n, const hone_packing *of) {
    uint64_t h = (uint64_t)(uintptr_t)of->source >> 4;
    for (int k = 0; k < n; k++) h = (h ^ (uint64_t)key[k]) * 0x9e3779b97f4a7c15u;
    pthread_mutex_lock(&p->lock);
    pack **slot = p->slot + (h >> 56), *q = *slot;
    while (q && (q->of.source != of->source || q->n != n || memcmp(q->key, key, sizeof *key * (size_t)n))) q = q->next;
    if (!q && (q = note(p, key, n, of))) q->next = *slot, *slot = q;
    pthread_mutex_unlock(&p->lock);
    return q ? q->data : NULL;
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
                     to = part + 1 < q->of.parts ? q->of.bytes / (size_t)q->of.parts * (size_t)(part + 1) : q->of.bytes;
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
