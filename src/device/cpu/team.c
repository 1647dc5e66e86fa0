/* SPDX-License-Identifier: Apache-2.0
   team: the CPU's row of the table of devices, and how it runs a segment. The team enters it once: its
   members take tiles of each wide step and meet at a barrier; runs of small steps and host steps belong to
   the calling thread. */
#include <pthread.h>
#include <string.h>

#include "base/flush.h"
#include "base/thread.h"
#include "device/cpu/cpu.h"

enum { MAX_THREADS = 256 };
struct hone_queue {
    char *scratch;
    size_t bytes;
};
/* Each member has a share of a wide step's tiles, the same part of every step: what it wrote lies in its own
   cache for the next one. Who is done takes from the others. `taken` is there twice, because the next step's
   is set to 0 while the last one's is still read. */
typedef struct {
    _Alignas(64) _Atomic int64_t taken[2];
    uint64_t begun[2], done[2]; /* where steps are timed: the clock, before and after */
} share;
typedef struct {
    const hone_segment *of;
    int from, to; /* these steps of it */
    char *scratch;
    size_t scratch_bytes; /* a member's */
    share *share;
    hone_barrier barrier;
    atomic_int status;
    atomic_uint come; /* the wide step that the caller has come to, + 1 */
    pthread_mutex_t lock;
    char message[512];
} teaming;
static void failed(teaming *t, const hone_step *s, hone_status st) {
    hone_status full = s->of ? hone_fail_at(st, "node '%s' (%s): ", s->of->name, s->of->program->name) : st;
    pthread_mutex_lock(&t->lock);
    if (!atomic_load(&t->status)) {
        strncpy(t->message, hone_fail_text(), sizeof t->message - 1);
        atomic_store(&t->status, (int)full);
    }
    pthread_mutex_unlock(&t->lock);
}
static hone_status in_time(const hone_segment *g) {
    if (!g->until || hone_clock_ns() < g->until) return HONE_OK;
    return hone_fail(HONE_BAD_INPUT, "the run was stopped after its limit of %lld ms",
                     (long long)g->limit_ms);
}
static void took(hone_step *s, uint64_t ns, bool all) { s->ns += ns, s->runs += all; }
static int64_t rounds_of(const hone_step *s) { return s->rounds ? s->rounds : 1; }
static uint64_t now(const hone_segment *g) {
    return g->profile == HONE_PROFILE_BUSY ? hone_clock_thread_ns() : hone_clock_ns();
}
/* From the first member's begin to the last one's end: the caller may come late, when others have done it
   all. */
static void took_wide(const teaming *t, hone_step *s, int members, int turn, bool all) {
    uint64_t begun = UINT64_MAX, done = 0, busy = 0;
    for (int k = 0; k < members; k++) {
        const uint64_t ns = t->share[k].done[turn] - t->share[k].begun[turn];
        if (ns > busy) busy = ns;
        if (t->share[k].begun[turn] < begun) begun = t->share[k].begun[turn];
        if (t->share[k].done[turn] > done) done = t->share[k].done[turn];
    }
    /* clocks of threads are their own */
    took(s, t->of->profile == HONE_PROFILE_BUSY ? busy : done - begun, all);
}
static void serial_step(teaming *t, hone_step *s, void *scratch) {
    hone_status st = in_time(t->of);
    const bool timed = t->of->profile != 0;
    const uint64_t begun = timed ? now(t->of) : 0;
    if (!st && s->host)
        st = t->of->host ? t->of->host(t->of->arg, s) : hone_fail(HONE_BUG, "nobody runs host steps here");
    else
        for (int64_t k = 0; k < s->tiles * rounds_of(s) && !st; k++)
            if (!(st = in_time(t->of))) st = s->tile(s, t->of->base, k, scratch);
    if (st) failed(t, s, st);
    if (timed) took(s, now(t->of) - begun, true);
}
static void take(teaming *t, const hone_step *s, int64_t round, int from, int members, int turn,
                 void *scratch) {
    const int64_t first = s->tiles * from / members, n = s->tiles * (from + 1) / members - first;
    _Atomic int64_t *taken = &t->share[from].taken[turn];
    while (!atomic_load_explicit(&t->status, memory_order_relaxed) &&
           atomic_load_explicit(taken, memory_order_relaxed) < n) {
        int64_t k = atomic_fetch_add_explicit(taken, 1, memory_order_relaxed);
        if (k >= n) return;
        hone_status st = in_time(t->of);
        if (!st) st = s->tile(s, t->of->base, round * s->tiles + first + k, scratch);
        if (st) failed(t, s, st);
    }
}
static void member(void *arg, int me, int members) {
    teaming *t = arg;
    char *scratch = t->scratch + (size_t)me * t->scratch_bytes;
    if (me == 0) hone_barrier_init(&t->barrier, members);
    int turn = 0;
    bool alone = true; /* the caller was, since the last wide step */
    const uint64_t mode = hone_float_mode();
    bool flush = false;
    for (int k = t->from; k < t->to; k++) {
        hone_step *s = t->of->step + k;
        if (s->flush != flush) flush = s->flush, hone_float_set(flush ? mode | HONE_FLUSH : mode);
        if (s->serial || members == 1) {
            if (me == 0 && !atomic_load(&t->status)) serial_step(t, s, scratch);
            alone = true;
            continue; /* the others run ahead to the next wide step and wait there */
        }
        const bool timed = t->of->profile != 0;
        if (alone && me == 0) atomic_store_explicit(&t->come, (unsigned)k + 1, memory_order_release);
        else if (alone) hone_wait_for(&t->come, (unsigned)k + 1);
        alone = false;
        for (int64_t round = 0, rounds = rounds_of(s); round < rounds; round++) {
            if (timed) t->share[me].begun[turn] = now(t->of);
            for (int q = 0; q < members; q++) take(t, s, round, (me + q) % members, members, turn, scratch);
            if (timed) t->share[me].done[turn] = now(t->of);
            turn = !turn;
            atomic_store_explicit(&t->share[me].taken[turn], 0, memory_order_relaxed);
            hone_barrier_wait(&t->barrier);
            if (timed && me == 0) took_wide(t, s, members, !turn, round + 1 == rounds);
        }
    }
    if (flush) hone_float_set(mode);
}
/* Steps from..to with one team; alone where none of them is wide. */
static hone_status run_range(const hone_queue *q, const hone_segment *g, int from, int to, share *shares,
                             size_t scratch_bytes, int threads) {
    bool wide = false;
    for (int k = from; k < to && !wide; k++) wide = !g->step[k].serial;
    if (!wide) threads = 1;
    for (int k = 0; k < threads; k++)
        atomic_init(&shares[k].taken[0], 0), atomic_init(&shares[k].taken[1], 0);
    teaming t = {.of = g,
                 .from = from,
                 .to = to,
                 .share = shares,
                 .scratch = q->scratch,
                 .scratch_bytes = scratch_bytes};
    pthread_mutex_init(&t.lock, NULL);
    if (threads == 1) member(&t, 0, 1);
    else hone_team_run(threads, member, &t);
    pthread_mutex_destroy(&t.lock);
    hone_status s = (hone_status)atomic_load(&t.status);
    return s ? hone_fail(s, "%s", t.message) : HONE_OK;
}
/* A host step that spreads its work over threads stands between two teams: while it runs all threads are
   free. */
static hone_status run(hone_queue *q, const hone_segment *g) {
    int threads = g->threads;
    bool wide = false;
    for (int k = 0; k < g->n && !wide; k++) wide = !g->step[k].serial;
    if (!wide || g->profile == HONE_PROFILE_ALONE) threads = 1;
    if (threads > MAX_THREADS) threads = MAX_THREADS;
    /* no line of cache is shared */
    const size_t each = hone_round_up64(g->scratch_bytes), want = (each + sizeof(share)) * (size_t)threads;
    if (q->bytes < want) {
        hone_free(q->scratch);
        q->bytes = 0;
        if (!(q->scratch = hone_alloc_raw(want))) return hone_fail(HONE_NO_MEMORY, "no memory for a run");
        q->bytes = want;
    }
    share *shares = (share *)(void *)(q->scratch + each * (size_t)threads);
    for (int from = 0; from < g->n;) {
        int to = from;
        while (to < g->n && !(threads > 1 && g->step[to].spreads)) to++;
        if (to == from) to++;
        HONE_TRY(run_range(q, g, from, to, shares, each, threads));
        from = to;
    }
    return HONE_OK;
}

/* ---- the row ------------------------------------------------------------------------------------------- */
static hone_status join(hone_steps *s) {
    HONE_TRY(hone_cpu_prologue(s));
    hone_steps_halve(s);
    return HONE_OK;
}
static hone_status open_queue(const hone_device *d, int number, hone_queue **out) {
    (void)d, (void)number;
    return (*out = hone_alloc(sizeof **out)) ? HONE_OK : hone_fail(HONE_NO_MEMORY, "no memory for a session");
}
static void close_queue(hone_queue *q) {
    if (q) hone_free(q->scratch);
    hone_free(q);
}
static void target(const hone_device *d, int number, hone_target *out) {
    (void)d, (void)number;
    *out = (hone_target){.channels_last = 1ull << HONE_DTYPE_F32 | 1ull << HONE_DTYPE_U8 |
                                          1ull << HONE_DTYPE_I8 | 1ull << HONE_DTYPE_U16 |
                                          1ull << HONE_DTYPE_I16 | 1ull << HONE_DTYPE_I32};
}
const hone_device hone_device_cpu = {.name = "cpu",
                                     .target = target,
                                     .describe = hone_cpu_describe,
                                     .bind = hone_cpu_bind,
                                     .join = join,
                                     .open = open_queue,
                                     .close = close_queue,
                                     .run = run};
