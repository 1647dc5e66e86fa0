/* SPDX-License-Identifier: Apache-2.0
   instances: the instances of a model (infer.h), each made once. What they are is loops/instance.h's. */
#include <pthread.h>
#include <string.h>

#include "ir/infer.h"

/* An instance is kept by its key, which is found by working out its ranks; and by each of the calls that
   were met: what ranks are worked out from, as numbers. Passes ask for the same nodes again and again. */
typedef struct {
    const char *key;
    const hone_instance *instance;
} kept;
typedef struct {
    const int64_t *call;
    int n;
    const hone_instance *instance;
} met;
struct hone_instances {
    pthread_mutex_t lock;
    hone_arena *arena;
    hone_vec(kept) table; /* open hash; key NULL is free */
    hone_vec(met) calls;  /* so too */
    int n, n_met;
    bool mixed; /* set while one thread has them */
};
void hone_instances_mix(hone_instances *t) { t->mixed = true; }
bool hone_instances_mixed(const hone_instances *t) { return t && t->mixed; }
hone_instances *hone_instances_create(void) {
    hone_instances *t = hone_alloc(sizeof *t);
    if (!t || !(t->arena = hone_arena_create())) {
        hone_free(t);
        return NULL;
    }
    pthread_mutex_init(&t->lock, NULL);
    return t;
}
void hone_instances_destroy(hone_instances *t) {
    if (!t) return;
    pthread_mutex_destroy(&t->lock);
    hone_vec_free(&t->table);
    hone_vec_free(&t->calls);
    hone_arena_destroy(t->arena);
    hone_free(t);
}
hone_arena *hone_instances_lock(hone_instances *t) {
    pthread_mutex_lock(&t->lock);
    return t->arena;
}
void hone_instances_unlock(hone_instances *t) { pthread_mutex_unlock(&t->lock); }
static uint32_t hash(const char *s) {
    uint32_t h = 2166136261u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 16777619u;
    return h;
}
static kept *place(hone_instances *t, const char *key) {
    uint32_t mask = (uint32_t)t->table.n - 1, h = hash(key) & mask;
    while (t->table.at[h].key && strcmp(t->table.at[h].key, key)) h = (h + 1) & mask;
    return t->table.at + h;
}
static bool grow(hone_instances *t) {
    kept *old = t->table.at;
    int n = t->table.n, size = n ? n * 2 : 128;
    kept *at = hone_alloc(sizeof *at * (size_t)size);
    if (!at) return false; /* the old table stays as it is */
    t->table.at = at, t->table.n = t->table.room = size;
    for (int k = 0; k < n; k++)
        if (old[k].key) *place(t, old[k].key) = old[k];
    hone_free(old);
    return true;
}
enum { MOST_OF_CALL = 256, MOST_MET = 1 << 12 };
/* A call as numbers; 0: it has too many. */
static int numbers_of(const hone_call *c, int64_t *to) {
    int n = 0;
#define ADD(x)                           \
    do {                                 \
        if (n == MOST_OF_CALL) return 0; \
        to[n++] = (int64_t)(x);          \
    } while (0)
    ADD((intptr_t)c->program);
    for (int k = 0; k < c->program->n_in + c->program->n_out; k++) {
        const hone_arg *a = c->arg + k;
        ADD(a->present | a->dtype << 1 | (a->rank + 1) << 16);
        if (!a->present || k >= c->program->n_in || !c->program->operand[k].contents) continue;
        ADD(a->n_content);
        ADD(a->content ? 2 : a->content_f ? 1 : 0);
        for (int64_t q = 0; a->content && q < a->n_content; q++) ADD(a->content[q]);
        for (int64_t q = 0; a->content_f && !a->content && q < a->n_content; q++) {
            int64_t bits;
            memcpy(&bits, a->content_f + q, sizeof bits);
            ADD(bits);
        }
    }
    for (int k = 0; k < c->n_attr; k++) { /* a name, a letter in a number */
        const hone_attr *a = c->attr + k;
        if (a->n > 0 && !a->i && !a->f && !a->s) return 0;
        ADD(strlen(a->name));
        for (const char *p = a->name; *p; p++) ADD(*p);
        ADD((int64_t)a->n * 4 + (a->i ? 1 : a->f ? 2 : 3));
        for (int q = 0; q < a->n && a->i; q++) ADD(a->i[q]);
        for (int q = 0; q < a->n && a->f; q++) {
            int64_t bits = 0;
            memcpy(&bits, a->f + q, sizeof a->f[q]);
            ADD(bits);
        }
        for (int q = 0; q < a->n && a->s; q++) {
            ADD(a->s[q].bytes);
            for (int64_t r = 0; r < a->s[q].bytes; r++) ADD(a->s[q].text[r]);
        }
    }
#undef ADD
    return n;
}
static met *call_at(const hone_instances *t, const int64_t *call, int n) {
    uint64_t h = 0;
    for (int k = 0; k < n; k++) h = (h ^ (uint64_t)call[k]) * 0x9e3779b97f4a7c15u, h ^= h >> 29;
    const uint32_t mask = (uint32_t)t->calls.n - 1;
    uint32_t at = (uint32_t)h & mask;
    while (t->calls.at[at].call &&
           (t->calls.at[at].n != n || memcmp(t->calls.at[at].call, call, sizeof *call * (size_t)n)))
        at = (at + 1) & mask;
    return t->calls.at + at;
}
static bool grow_calls(hone_instances *t) {
    met *old = t->calls.at;
    const int n = t->calls.n, size = n ? n * 2 : 128;
    met *at = hone_alloc(sizeof *at * (size_t)size);
    if (!at) return false; /* the old table stays as it is */
    t->calls.at = at, t->calls.n = t->calls.room = size;
    for (int k = 0; k < n; k++)
        if (old[k].call) *call_at(t, old[k].call, old[k].n) = old[k];
    hone_free(old);
    return true;
}
static const hone_instance *recall(hone_instances *t, const int64_t *call, int n) {
    pthread_mutex_lock(&t->lock);
    const hone_instance *in = t->calls.n ? call_at(t, call, n)->instance : NULL;
    pthread_mutex_unlock(&t->lock);
    return in;
}
/* Under the lock. What cannot be kept is worked out again. */
static void remember(hone_instances *t, const int64_t *call, int n, const hone_instance *in) {
    if (t->n_met * 2 >= t->calls.n && (t->n_met == MOST_MET || !grow_calls(t))) return;
    met *m = call_at(t, call, n);
    const int64_t *copy = m->call ? NULL : hone_arena_copy(t->arena, call, sizeof *call * (size_t)n);
    if (copy) *m = (met){copy, n, in}, t->n_met++;
}
hone_status hone_instances_get(hone_instances *t, const hone_call *c, const hone_instance **out) {
    const char *key = NULL;
    int64_t call[MOST_OF_CALL];
    const int n = numbers_of(c, call);
    if (n && (*out = recall(t, call, n))) return HONE_OK;
    hone_arena *scratch = hone_arena_create();
    if (!scratch) return hone_infer_no_memory();
    hone_status s = hone_instance_key(scratch, c, &key);
    if (!s && !key) *out = NULL;
    if (!s && key) {
        pthread_mutex_lock(&t->lock);
        if (t->n * 2 >= t->table.n && !grow(t)) s = hone_infer_no_memory();
        kept *p = s ? NULL : place(t, key);
        if (p && p->key) *out = p->instance;
        else if (p) {
            const hone_instance *made = NULL;
            s = hone_instance_make(t->arena, c, &made);
            if (!s && made) { /* "not yet" is not kept */
                p->key = hone_arena_text(t->arena, "%s", key), p->instance = made, t->n++;
                if (!p->key) s = hone_infer_no_memory();
            }
            if (!s) *out = made;
        }
        if (!s && *out && n) remember(t, call, n, *out);
        pthread_mutex_unlock(&t->lock);
    }
    hone_arena_destroy(scratch);
    return s;
}
