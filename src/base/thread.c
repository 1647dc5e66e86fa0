/* SPDX-License-Identifier: Apache-2.0
   thread: the pool of workers, teams, and the barrier. Waiting is always: spin for a little, then sleep on a
   futex.

   A worker is idle (in the free list, waiting for `go`), or in exactly one team. The pool counts the threads
   that are in teams, callers included, and a team takes only as many workers as there are cores left; a
   caller with none runs alone, so nothing ever waits for a worker and nested teams cannot deadlock. */
#define _GNU_SOURCE
#include "base/thread.h"

#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "base/round.h"

/* ---- waiting ---- */

static inline void relax(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ volatile("yield");
#endif
}

static void sleep_while(atomic_uint *at, unsigned value) {
    syscall(SYS_futex, at, FUTEX_WAIT_PRIVATE, value, NULL, NULL, 0);
}
static void wake(atomic_uint *at, int sleepers) {
    syscall(SYS_futex, at, FUTEX_WAKE_PRIVATE, sleepers, NULL, NULL, 0);
}

/* Another process is busy on a core that we sent a worker to (see send): who yields there comes back late.
   It then sleeps as soon as it can, and all are left where the system wakes them for a tenth of a second,
   and twice as long each time that this was too short. */
enum { LATE_NS = 1000000 };
static const uint64_t LEFT_NS = 100000000, LEFT_MOST_NS = 16000000000, RECENT_NS = 1000000000;
static _Atomic uint64_t left_until, left_for;
static _Thread_local bool sent_here, late; /* this thread was, since it last slept; it came back late */
static void meet_others(uint64_t now) {
    const uint64_t until = atomic_load(&left_until), last = atomic_load(&left_for);
    if (now < until) return;
    const uint64_t again =
        now - until < RECENT_NS && last ? (2 * last < LEFT_MOST_NS ? 2 * last : LEFT_MOST_NS) : LEFT_NS;
    atomic_store(&left_for, again), atomic_store(&left_until, now + again);
}

/* Spins until *at differs from `value`, at most so long; false: time is up. With `crowded` (more threads than
   cores) the one we wait for may need our core, so give up almost at once. Inside a team somebody works for
   us meanwhile and going to sleep costs more than it saves: a sleeper is back some 50 us later, and its
   waker is held up by each. */
enum { SPIN_IDLE_NS = 50000, SPIN_TEAM_NS = 1000000, ALONE_NS = 3000 };
static bool spin_while(atomic_uint *at, unsigned value, uint64_t most_ns, bool crowded) {
    uint64_t begun = 0;
    for (int round = 0;; round++) {
        for (int i = 0; i < 32; i++) {
            if (atomic_load_explicit(at, memory_order_acquire) != value) return true;
            relax();
        }
        if (crowded) return false;
        uint64_t now = hone_clock_ns();
        if (round == 0) begun = now;
        else if (now - begun >= most_ns) return false;
        /* On a loaded machine two members may share a core. Yielding lets the late one run: 4 us a barrier
           instead of 23 with another process on one of 2 cores (Xeon, Linux 6). */
        if (now - begun > ALONE_NS) {
            sched_yield();
            uint64_t back = hone_clock_ns();
            if (sent_here && back - now > LATE_NS) late = true, meet_others(back);
        }
    }
}

int64_t hone_share_of(int64_t n, int64_t least, int64_t most, int threads) {
    int64_t pieces = hone_ceil_div(n, most);
    if (pieces >= threads) pieces = hone_round_up(pieces, threads);
    else if ((pieces = n / least) > threads) pieces = threads;
    return pieces > 1 ? hone_ceil_div(n, pieces) : n > 0 ? n : 1;
}

/* ---- barrier ---- */

/* The phase counts in twos; its lowest bit says that somebody sleeps, so that an awake team pays no system
   call. */
void hone_barrier_init(hone_barrier *b, int members) {
    atomic_init(&b->arrived, 0);
    atomic_init(&b->phase, 0);
    b->members = (unsigned)members;
}

void hone_wait_for(atomic_uint *at, unsigned least) {
    /* a host step may take long */
    for (unsigned seen; (seen = atomic_load_explicit(at, memory_order_acquire)) < least;)
        if (!spin_while(at, seen, SPIN_TEAM_NS, false)) nanosleep(&(struct timespec){0, 50000}, NULL);
}
void hone_barrier_wait(hone_barrier *b) {
    if (b->members <= 1) return;
    unsigned phase = atomic_load_explicit(&b->phase, memory_order_acquire) & ~1u;
    if (atomic_fetch_add_explicit(&b->arrived, 1, memory_order_acq_rel) + 1 == b->members) {
        atomic_store_explicit(&b->arrived, 0, memory_order_relaxed);
        if (atomic_exchange_explicit(&b->phase, phase + 2, memory_order_acq_rel) & 1)
            wake(&b->phase, INT_MAX);
        return;
    }
    unsigned seen = phase;
    spin_while(&b->phase, phase, SPIN_TEAM_NS, b->members > (unsigned)hone_cores());
    if (!atomic_compare_exchange_strong(&b->phase, &seen, phase | 1) && seen != (phase | 1)) return;
    while (atomic_load_explicit(&b->phase, memory_order_acquire) == (phase | 1))
        sleep_while(&b->phase, phase | 1);
}

/* ---- pool ---- */

enum { IDLE, ASLEEP, WORK, AT_WORK, QUIT };
#define CALLER_SLEEPS 0x80000000u

typedef struct worker worker;
typedef struct {
    void (*body)(void *, int, int);
    void *arg;
    int members;
    worker **out; /* those not back yet, by member, guarded by the pool's lock. NULL: nobody is called back */
    atomic_uint away; /* workers not back yet, and CALLER_SLEEPS */
} team;

struct worker {
    _Alignas(64) atomic_uint go; /* IDLE … QUIT; a worker makes WORK AT_WORK, unless it is called back */
    team *team;
    int member;
    pthread_t thread;
    bool moved;          /* kept off its caller's core until it runs; */
    cpu_set_t home;      /* then these are its cores again */
    uint64_t sent;       /* when it was told to run */
    struct worker *next; /* in the free list */
};

static struct {
    pthread_mutex_t lock;
    worker *free;
    int workers;  /* alive */
    int busy;     /* threads in teams */
    bool watched; /* fork handler installed */
} pool = {.lock = PTHREAD_MUTEX_INITIALIZER};
static _Thread_local bool in_team;

/* A child has none of its parent's threads: start with an empty pool. */
static void after_fork(void) {
    pthread_mutex_init(&pool.lock, NULL);
    pool.free = NULL;
    pool.workers = 0;
    pool.busy = in_team;
}

/* A thread that is woken often begins on the core of the one that wakes it, and stays there for milliseconds
   though another is idle: one first run in five took as long with two threads as with one, and a run after a
   pause twice as long. So a sleeper is told to keep off that core, and takes it back itself. That costs a
   microsecond each; where cores are many an idle one is found without. Where another process is busy on the
   other cores the system knows better, and who is sent there finds out: it begins late, or loses its core
   meanwhile. */
enum { FEW_CORES = 8 };
typedef struct {
    uint64_t clock, own; /* time, and this thread's */
    long lost;           /* how often its core was taken from it */
} moment;
static moment moment_now(void) {
    struct rusage u = {0};
    getrusage(RUSAGE_THREAD, &u);
    return (moment){hone_clock_ns(), hone_clock_thread_ns(), u.ru_nivcsw};
}
/* Its cores, now `home`, but for the one that this thread is on, where it should keep off that. */
static bool elsewhere(worker *w, pthread_t as, cpu_set_t *cores) {
    const int here = sched_getcpu();
    w->sent = hone_clock_ns();
    if (hone_cores() > FEW_CORES || w->sent < atomic_load(&left_until) ||
        pthread_getaffinity_np(as, sizeof w->home, &w->home))
        return false;
    *cores = w->home;
    if (here < 0 || here >= CPU_SETSIZE || !CPU_ISSET(here, cores)) return false;
    CPU_CLR(here, cores);
    return CPU_COUNT(cores) > 0;
}
static void send(worker *w, unsigned order) {
    cpu_set_t cores;
    if (atomic_load_explicit(&w->go, memory_order_acquire) == ASLEEP && !w->moved &&
        elsewhere(w, w->thread, &cores))
        w->moved = !pthread_setaffinity_np(w->thread, sizeof cores, &cores);
    if (atomic_exchange_explicit(&w->go, order, memory_order_acq_rel) == ASLEEP) wake(&w->go, 1);
}

static void *live(void *self) {
    worker *w = self;
    in_team = true; /* what it runs is always part of a team, and counted there */
    for (;;) {
        unsigned idle = IDLE;
        if ((late || !spin_while(&w->go, IDLE, SPIN_IDLE_NS, false)) &&
            atomic_compare_exchange_strong(&w->go, &idle, ASLEEP))
            while (atomic_load_explicit(&w->go, memory_order_acquire) == ASLEEP)
                sent_here = false, sleep_while(&w->go, ASLEEP);
        late = false;
        unsigned order = WORK;
        if (!atomic_compare_exchange_strong(&w->go, &order, AT_WORK)) {
            if (order == QUIT) return NULL;
            continue; /* called back */
        }
        const bool moved = w->moved;
        if (moved)
            pthread_setaffinity_np(pthread_self(), sizeof w->home, &w->home), w->moved = false,
                                                                              sent_here = true;
        const moment begun = moved ? moment_now() : (moment){0};
        team *t = w->team;
        t->body(t->arg, w->member, t->members);
        if (moved) {
            const moment done = moment_now();
            const bool lost =
                done.lost > begun.lost && done.clock - begun.clock > done.own - begun.own + LATE_NS;
            if (lost || begun.clock > w->sent + LATE_NS) meet_others(done.clock);
        }
        /* Be free before the caller knows it: its next team then finds the same workers. */
        atomic_store_explicit(&w->go, IDLE, memory_order_relaxed);
        pthread_mutex_lock(&pool.lock);
        if (t->out) t->out[w->member] = NULL;
        w->next = pool.free;
        pool.free = w;
        pool.busy--;
        pthread_mutex_unlock(&pool.lock);
        /* After the last decrement the team may be gone; waking its address then wakes at worst somebody who
           looks again. */
        if (atomic_fetch_sub_explicit(&t->away, 1, memory_order_acq_rel) == (1 | CALLER_SLEEPS))
            wake(&t->away, 1);
    }
}

static worker *hire(void) {
    worker *w = hone_alloc(sizeof *w);
    if (!w) return NULL;
    sigset_t all, before;
    sigfillset(&all); /* the program's signals are for the program's threads */
    pthread_attr_t how;
    cpu_set_t cores;
    pthread_attr_init(&how);
    if (elsewhere(w, pthread_self(), &cores))
        w->moved = !pthread_attr_setaffinity_np(&how, sizeof cores, &cores);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&w->thread, &how, live, w);
    if (failed && w->moved) w->moved = false, failed = pthread_create(&w->thread, NULL, live, w);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&how);
    if (failed) hone_free(w), w = NULL;
    else pool.workers++;
    return w;
}

/* Takes up to `want` workers out of the free list, hiring where it is empty. Called with the lock. */
static worker *take(int want, int *got) {
    worker *taken = NULL;
    for (*got = 0; *got < want; ++*got) {
        worker *w = pool.free;
        if (w) pool.free = w->next;
        else if (pool.workers >= hone_cores() || !(w = hire())) break;
        w->next = taken;
        taken = w;
    }
    return taken;
}

/* Those of a team that have not begun are free again; nobody is woken for it. */
static void call_back(team *t) {
    unsigned back = 0;
    pthread_mutex_lock(&pool.lock);
    for (int member = 1; member < t->members; member++) {
        worker *w = t->out[member];
        unsigned order = WORK;
        if (!w || !atomic_compare_exchange_strong(&w->go, &order, IDLE)) continue;
        w->next = pool.free;
        pool.free = w;
        pool.busy--, back++;
    }
    pthread_mutex_unlock(&pool.lock);
    atomic_fetch_sub_explicit(&t->away, back, memory_order_acq_rel);
}

static void run_team(int threads, bool shared, void (*body)(void *arg, int member, int members), void *arg) {
    int cores = hone_cores(), got = 0;
    if (threads <= 0 || threads > cores) threads = cores;
    bool outer = in_team; /* a team inside a team: this thread is counted already */
    in_team = true;
    pthread_mutex_lock(&pool.lock);
    if (!pool.watched) pool.watched = pthread_atfork(NULL, NULL, after_fork) == 0;
    pool.busy += !outer;
    int left = cores - pool.busy;
    worker *w = take(threads - 1 < left ? threads - 1 : left, &got);
    pool.busy += got;
    pthread_mutex_unlock(&pool.lock);

    worker *out[got + 1];
    team t = {.body = body, .arg = arg, .members = got + 1, .out = shared ? out : NULL};
    atomic_init(&t.away, (unsigned)got);
    int member = 1;
    for (worker *each = w; each; each = each->next) out[member++] = each; /* before the first may be back */
    for (member = 1; w; member++) {
        worker *next = w->next; /* read before it runs: at its end it writes this field */
        w->team = &t;
        w->member = member;
        send(w, WORK);
        w = next;
    }
    body(arg, 0, got + 1);
    if (shared && atomic_load_explicit(&t.away, memory_order_acquire)) call_back(&t);
    for (unsigned away; (away = atomic_load_explicit(&t.away, memory_order_acquire)) & ~CALLER_SLEEPS;) {
        if (!(away & CALLER_SLEEPS) && spin_while(&t.away, away, SPIN_TEAM_NS, false)) continue;
        away = atomic_fetch_or(&t.away, CALLER_SLEEPS) | CALLER_SLEEPS;
        if (away != CALLER_SLEEPS) sleep_while(&t.away, away);
    }

    in_team = outer;
    if (!outer) {
        pthread_mutex_lock(&pool.lock);
        pool.busy--;
        pthread_mutex_unlock(&pool.lock);
    }
}
void hone_team_run(int threads, void (*body)(void *arg, int member, int members), void *arg) {
    run_team(threads, false, body, arg);
}
void hone_team_share(int threads, void (*body)(void *arg, int member, int members), void *arg) {
    run_team(threads, true, body, arg);
}

void hone_pool_shutdown(void) {
    pthread_mutex_lock(&pool.lock);
    worker *w = pool.free;
    pool.free = NULL;
    for (worker *each = w; each; each = each->next) pool.workers--;
    pthread_mutex_unlock(&pool.lock);
    while (w) {
        worker *next = w->next;
        send(w, QUIT);
        pthread_join(w->thread, NULL);
        hone_free(w);
        w = next;
    }
}
