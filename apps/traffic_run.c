/* SPDX-License-Identifier: Apache-2.0
   traffic_run: one level of load: so many requests under way at once (a closed loop), or so many a second
   whether the server keeps up or not (an open loop, whose latencies count from the moment a request was due,
   so that a server that stalls cannot hide the requests it kept from being sent). One thread, one epoll.
   Windows of time are measured until three in a row agree, or as many as may be. */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/timerfd.h>
#include <time.h>
#include <unistd.h>

#include "net/random.h"
#include "stats.h"
#include "term.h"
#include "traffic.h"

/* AGREE: windows that must agree. LEAST: answers that make a window, which is stretched for them up to
   STRETCH times. BEHIND_S: so much work left undone means that a rate is beyond the server. DEAD: connections
   in a row that came to nothing. */
enum {
    AGREE = 3,
    LEAST = 20,
    STRETCH = 5,
    BEHIND_S = 2,
    DEAD = 20,
    EVENTS = 256,
    LATE_MAX = 1 << 20,
    TIMER = -1
};
static const uint64_t second = 1000000000;

typedef struct {
    void *self; /* NULL: not open */
    int fd, number, busy;
    uint32_t asked; /* events of epoll */
} connection;

typedef struct {
    uint64_t from; /* when it was due; 0: idle */
} slot;

typedef struct {
    const hone_traffic *t;
    hone_traffic_level *level;
    hone_traffic_link link;
    int poll, timer, connections, streams, busy, failed_in_a_row, next_request;
    connection *connection;
    slot *slot;
    int *idle, n_idle; /* slots without a request, the last used first */
    /* open loop */
    uint64_t due, random;
    uint64_t *queue; /* moments at which requests were due that found no slot: a ring */
    size_t queue_at, queue_n, queue_room;
    /* what came */
    bool counting;
    double *ms, *late;
    int n, room, n_late, late_room;
    int64_t sent, limit, errors, answers; /* limit: no more than that are sent */
    char why[256];
} engine;

static uint64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * second + (uint64_t)t.tv_nsec;
}

static void record(double **v, int n, int *room, double x) {
    if (n == *room) {
        int more = *room ? *room * 2 : 4096;
        double *w = hone_must_alloc(sizeof *w * (size_t)more);
        if (n) memcpy(w, *v, sizeof *w * (size_t)n);
        free(*v);
        *v = w, *room = more;
    }
    (*v)[n] = x;
}

static void done(void *cookie, int number, const char *why) {
    engine *e = cookie;
    slot *s = &e->slot[number];
    if (!s->from) return; /* an answer to what was told already */
    double ms = (double)(now_ns() - s->from) / 1e6;
    s->from = 0;
    e->busy--, e->connection[number / e->streams].busy--;
    e->idle[e->n_idle++] = number;
    e->answers++;
    if (why) {
        if (!e->errors++) snprintf(e->why, sizeof e->why, "%s", why);
    } else {
        e->failed_in_a_row = 0;
        if (e->counting) record(&e->ms, e->n, &e->room, ms), e->n++;
    }
}

/* ---- connections ---- */

static void watch(engine *e, connection *c) {
    uint32_t want = EPOLLIN | (e->t->protocol->waits(c->self) ? (uint32_t)EPOLLOUT : 0);
    if (want == c->asked) return;
    struct epoll_event ev = {.events = want, .data.fd = c->number};
    epoll_ctl(e->poll, c->asked ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, c->fd, &ev);
    c->asked = want;
}

static void shut(engine *e, connection *c) {
    if (!c->self) return;
    e->t->protocol->close(c->self);
    close(c->fd);
    for (int k = 0; k < e->streams; k++)
        if (e->slot[c->number * e->streams + k].from)
            done(e, c->number * e->streams + k, "the connection broke");
    c->self = NULL, c->asked = 0;
}

static bool reach(engine *e, connection *c) {
    if (c->self) return true;
    int fd = hone_target_connect(&e->t->target, false);
    if (fd < 0) {
        snprintf(e->why, sizeof e->why, "%s", strerror(errno));
        return e->failed_in_a_row++, false;
    }
    c->fd = fd;
    c->self = e->t->protocol->open(&e->link, fd, c->number * e->streams);
    if (!c->self) hone_socket_close(fd);
    return c->self != NULL;
}

/* Sends one request, due at `from`, by an idle slot. */
static void begin(engine *e, uint64_t from) {
    int number = e->idle[--e->n_idle];
    connection *c = &e->connection[number / e->streams];
    if (!reach(e, c)) {
        e->idle[e->n_idle++] = number, e->errors++;
        return;
    }
    e->slot[number].from = from;
    e->busy++, c->busy++, e->sent++;
    int request = e->next_request++ % e->t->requests;
    if (!e->t->protocol->send(c->self, number, request)) e->failed_in_a_row++, shut(e, c);
    else watch(e, c);
}

/* ---- when ---- */

static double draw(engine *e) { /* from 0 to 1, neither of them */
    return ((double)(hone_net_random(&e->random) >> 11) + 0.5) / 9007199254740992.0;
}

static void queue_add(engine *e, uint64_t from) {
    if (e->queue_n == e->queue_room) {
        size_t room = e->queue_room ? e->queue_room * 2 : 1024;
        uint64_t *more = hone_must_alloc(sizeof *more * room);
        for (size_t k = 0; k < e->queue_n; k++) more[k] = e->queue[(e->queue_at + k) % e->queue_room];
        free(e->queue);
        e->queue = more, e->queue_room = room, e->queue_at = 0;
    }
    e->queue[(e->queue_at + e->queue_n++) % e->queue_room] = from;
}

/* Sends what is to be sent now, and sets the timer for what comes next. */
static void dispatch(engine *e) {
    const hone_traffic_level *l = e->level;
    if (l->clients) {
        /* one that fails at once is tried again in the next round, after a look at the clock */
        int tries = e->n_idle;
        while (tries-- > 0 && e->n_idle && e->busy < l->clients && e->sent < e->limit) begin(e, now_ns());
        return;
    }
    bool more = e->sent + (int64_t)e->queue_n < e->limit;
    uint64_t now = now_ns();
    for (; more && e->due <= now; now = now_ns(), more = e->sent + (int64_t)e->queue_n < e->limit) {
        queue_add(e, e->due);
        if (e->counting && e->n_late < LATE_MAX) { /* how late the generator itself is */
            record(&e->late, e->n_late, &e->late_room, (double)(now - e->due) / 1e6), e->n_late++;
        }
        double wait = e->t->steady ? 1 : -log(draw(e));
        e->due += (uint64_t)(wait / l->rate * 1e9) + 1;
        if (e->queue_n > 1000 && (double)e->queue_n > l->rate * 2 * BEHIND_S) break;
    }
    while (e->queue_n && e->n_idle) {
        uint64_t from = e->queue[e->queue_at];
        e->queue_at = (e->queue_at + 1) % e->queue_room, e->queue_n--;
        begin(e, from);
    }
    struct itimerspec at = {.it_value = {(time_t)(e->due / second), (long)(e->due % second)}};
    if (more) timerfd_settime(e->timer, TFD_TIMER_ABSTIME, &at, NULL);
}

/* One look at the sockets. */
static void turn(engine *e) {
    struct epoll_event ev[EVENTS];
    dispatch(e);
    int n = epoll_wait(e->poll, ev, EVENTS, e->n_idle && e->failed_in_a_row ? 1 : 50);
    for (int k = 0; k < n; k++) {
        if (ev[k].data.fd == TIMER) {
            uint64_t times;
            if (read(e->timer, &times, sizeof times) < 0) continue;
            dispatch(e);
            continue;
        }
        connection *c = &e->connection[ev[k].data.fd];
        if (!c->self) continue;
        bool in = ev[k].events & (EPOLLIN | EPOLLHUP | EPOLLERR), out = ev[k].events & EPOLLOUT;
        int64_t errors = e->errors;
        if (!e->t->protocol->ready(c->self, in, out)) {
            shut(e, c); /* no failure where the server only closed what it had answered */
            e->failed_in_a_row += e->errors > errors;
        } else watch(e, c);
        dispatch(e);
    }
}

static bool engine_open(engine *e) {
    const hone_traffic_level *l = e->level;
    int most = l->clients ? l->clients : e->t->connections;
    e->streams = e->t->protocol->streams;
    e->connections = (most + e->streams - 1) / e->streams;
    e->link = (hone_traffic_link){done, e, e->t->request, e->t->requests, &e->t->target};
    e->connection = hone_must_alloc(sizeof *e->connection * (size_t)e->connections);
    e->slot = hone_must_alloc(sizeof *e->slot * (size_t)e->connections * (size_t)e->streams);
    e->idle = hone_must_alloc(sizeof *e->idle * (size_t)e->connections * (size_t)e->streams);
    /* Slots of different connections in turn; the first is on top. */
    for (int s = e->streams - 1; s >= 0; s--)
        for (int c = e->connections - 1; c >= 0; c--) e->idle[e->n_idle++] = c * e->streams + s;
    for (int c = 0; c < e->connections; c++) e->connection[c].number = c;
    e->poll = epoll_create1(EPOLL_CLOEXEC),
    e->timer = timerfd_create(CLOCK_MONOTONIC, TFD_NONBLOCK | TFD_CLOEXEC);
    struct epoll_event ev = {.events = EPOLLIN, .data.fd = TIMER};
    e->random = (uint64_t)e->t->seed, e->due = now_ns();
    return e->poll >= 0 && e->timer >= 0 && !epoll_ctl(e->poll, EPOLL_CTL_ADD, e->timer, &ev);
}

static void engine_close(engine *e) {
    for (int c = 0; c < e->connections; c++) shut(e, &e->connection[c]);
    if (e->poll >= 0) close(e->poll);
    if (e->timer >= 0) close(e->timer);
    free(e->connection), free(e->slot), free(e->idle), free(e->queue), free(e->ms), free(e->late);
}

/* ---- the server's process ---- */

static void process(int pid, double *cpu_s, double *bytes) {
    char path[64], text[1024] = "";
    unsigned long long user = 0, system = 0;
    long pages = 0;
    *cpu_s = *bytes = NAN;
    if (!pid) return;
    snprintf(path, sizeof path, "/proc/%d/stat", pid);
    FILE *f = fopen(path, "r");
    if (f && fread(text, 1, sizeof text - 1, f)) {
        const char *after = strrchr(text, ')'); /* the name may hold anything */
        if (after &&
            sscanf(
                after,
                ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %llu %llu %*d %*d %*d %*d %*d %*d %*u %*u %ld",
                &user, &system, &pages) == 3) {
            *cpu_s = (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
            *bytes = (double)pages * (double)sysconf(_SC_PAGESIZE);
        }
    }
    if (f) fclose(f);
}

/* ---- windows ---- */

static bool agree(const hone_traffic_level *l, double within) {
    int n = l->windows;
    if (n < AGREE) return false;
    for (int kind = 0; kind < 2; kind++) {
        double v[AGREE], mean = 0;
        for (int k = 0; k < AGREE; k++)
            v[k] = kind ? l->window[n - AGREE + k].p50 : l->window[n - AGREE + k].per_s, mean += v[k] / AGREE;
        for (int k = 0; k < AGREE; k++)
            if (fabs(v[k] - mean) > within * mean) return false;
    }
    return true;
}

static bool stalled(const engine *e, uint64_t since, char *why, size_t room) {
    if (e->failed_in_a_row >= DEAD) return snprintf(why, room, "%s", e->why), true;
    if ((double)(now_ns() - since) / 1e9 < e->t->target.timeout_s) return false;
    snprintf(why, room, "no answer for %g s", e->t->target.timeout_s);
    return true;
}

/* Goes on until `seconds` are over (and LEAST answers are there, or STRETCH times the seconds), or `answers`
   have come. False: the server is gone, and `why` says how. */
static bool go(engine *e, double seconds, int64_t answers, void (*share)(void *, double), void *cookie,
               double from, double to) {
    uint64_t begin = now_ns(), end = begin + (uint64_t)(seconds * 1e9), last = begin, shown = begin;
    int64_t before = e->answers, seen = before, errors = e->errors;
    for (;;) {
        uint64_t now = now_ns();
        int64_t got = e->answers - before;
        if (e->answers != seen) seen = e->answers, last = now;
        if (answers ? got >= answers
                    : now >= end && (got >= LEAST || (double)(now - begin) >= seconds * STRETCH * 1e9))
            return true;
        if (e->level->rate > 0 && (double)e->queue_n > 1000 && (double)e->queue_n > e->level->rate * BEHIND_S)
            return e->level->overloaded = true;
        if (stalled(e, last, e->level->why, sizeof e->level->why)) return false;
        if (got > 1000 && e->errors - errors == got) { /* it answers, and never as it should */
            snprintf(e->level->why, sizeof e->level->why, "%s", e->why);
            return false;
        }
        if (share && now - shown > second / 5) {
            double part = answers ? (double)got / (double)answers : (double)(now - begin) / (seconds * 1e9);
            share(cookie, from + fmin(part, 1) * (to - from)), shown = now;
        }
        turn(e);
    }
}

static void measure(engine *e, void (*share)(void *, double), void *cookie, double *seconds, int *start,
                    bool *ok) {
    const hone_traffic *t = e->t;
    hone_traffic_level *l = e->level;
    double all = t->warmup_s + t->window_s * t->windows_most, part = t->warmup_s / all;
    *ok = t->warmup_s <= 0 || t->exactly || go(e, t->warmup_s, 0, share, cookie, 0, part);
    e->counting = true;
    int began[64] = {0};
    double took[64] = {0};
    int most = t->exactly ? 1 : t->windows_most;
    l->stable = t->exactly > 0;
    while (*ok && l->windows < most && !l->overloaded && !(l->stable && !t->exactly)) {
        double at = (t->warmup_s + t->window_s * l->windows) / all, next = at + t->window_s / all;
        uint64_t begin = now_ns();
        int before = e->n;
        *ok = go(e, t->window_s, t->exactly, share, cookie, t->exactly ? 0 : at, t->exactly ? 1 : next);
        double s = (double)(now_ns() - begin) / 1e9;
        began[l->windows] = before, took[l->windows] = s;
        l->window[l->windows].per_s = (e->n - before) / s;
        hone_stats w = {0};
        if (e->n > before) hone_stats_of(e->ms + before, e->n - before, &w);
        l->window[l->windows].p50 = w.median, l->window[l->windows].p99 = w.p99;
        l->windows++;
        if (!t->exactly) l->stable = agree(l, t->stable);
    }
    /* Figures are those of the windows that agree; of all, where none do. */
    int from = l->stable && !t->exactly ? l->windows - AGREE : 0;
    *start = l->windows ? began[from] : 0, *seconds = 0;
    for (int k = from; k < l->windows; k++) *seconds += took[k];
}

int hone_traffic_run(const hone_traffic *t, hone_traffic_level *l, void (*share)(void *, double),
                     void *cookie) {
    engine e = {.t = t, .level = l, .poll = -1, .timer = -1, .limit = t->exactly ? t->exactly : INT64_MAX};
    hone_traffic_served before, after;
    double cpu_before, cpu_after, bytes, seconds = 0;
    int start = 0;
    bool ok = false;
    if (!engine_open(&e)) {
        engine_close(&e);
        return hone_args_wrong("%s", strerror(errno));
    }
    t->protocol->served(&t->target, &t->model, &before);
    process(t->pid, &cpu_before, &bytes);
    measure(&e, share, cookie, &seconds, &start, &ok);
    process(t->pid, &cpu_after, &bytes);
    int64_t answers = e.answers; /* those of the warm-up too: what the server's CPU did */
    t->protocol->served(&t->target, &t->model, &after);
    /* What is under way is waited for: a server must not take its end for that of its clients. */
    e.counting = false, e.limit = 0, e.queue_n = 0;
    uint64_t until = now_ns() + (uint64_t)(fmin(t->target.timeout_s, 10) * 1e9);
    while (e.busy && now_ns() < until && e.failed_in_a_row < DEAD) turn(&e);
    l->n = e.n - start, l->seconds = seconds, l->errors = e.errors;
    l->cpu_us = answers ? (cpu_after - cpu_before) * 1e6 / (double)answers : NAN, l->memory_bytes = bytes;
    if (l->n > 0 && seconds > 0) {
        l->per_s = (double)l->n / seconds;
        hone_traffic_sum(e.ms + start, (int)l->n, l);
    } else if (ok) ok = false;
    if (e.n_late) {
        hone_stats late;
        hone_stats_of(e.late, e.n_late, &late);
        l->late_ms = late.p99;
    }
    if (e.errors && !*l->why) snprintf(l->why, sizeof l->why, "%s", e.why);
    l->served =
        (hone_traffic_served){before.there && after.there,          after.total - before.total,
                              after.executions - before.executions, after.inferences - before.inferences,
                              after.queue - before.queue,           after.input - before.input,
                              after.infer - before.infer,           after.output - before.output,
                              after.requests - before.requests};
    engine_close(&e);
    return ok ? 0 : hone_args_wrong("%s", *l->why ? l->why : "no request was answered as it should be");
}
