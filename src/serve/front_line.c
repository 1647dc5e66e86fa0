/* SPDX-License-Identifier: Apache-2.0
   front_line: connections to the servers behind, and the one thread that has them all. A line carries one
   job at a time; between jobs it is kept. Each server is asked for its health, by a job of its own. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/uio.h>
#include <unistd.h>

#include "serve/front.h"

enum { EVENTS = 128, PIECE = 64 << 10, IDLE_MOST = 256, TICK_MS = 50, TRIES = 8 };
/* Patience with a connection that is being made, and with a check; how long a line is kept unused, below what
   servers allow; how long the thread sleeps when there is nothing to do. */
static const uint64_t ms_ns = 1000000, connect_ns = 2000000000, check_ns = 3000000000, keep_ns = 20000000000,
                      sleep_ns = 1000000000;

struct hone_front_line {
    hone_front *front;
    hone_front_backend *to;
    hone_front_job *job; /* NULL: it is idle, or dead */
    int fd;
    bool connecting, used; /* used: it carried one before */
    uint32_t asked;        /* of epoll */
    size_t sent;
    uint64_t since; /* it was opened; it became idle */
    hone_answer answer;
    hone_front_line *before, *after, *next; /* of all; of the idle or dead ones */
};

static void start(hone_front *, hone_front_job *);

/* ---- a job's end ---- */

static void forget_answer(hone_front_job *j) {
    free(j->answer_head), free(j->answer);
    j->answer_head = NULL, j->answer = NULL, j->answer_n = j->answer_room = 0, j->status = 0;
}
static void checked(hone_front *f, hone_front_backend *b) { /* its check has come to an end */
    hone_front_job *j = &b->check;
    char why[160] = "";
    if (j->error.code) snprintf(why, sizeof why, "%.150s", j->error.text);
    else if (j->status != 200) snprintf(why, sizeof why, "/v2/health/ready answers %d", j->status);
    hone_front_checked(f, b, *why ? why : NULL, !j->error.code || j->refused);
    forget_answer(j);
}
static void finish(hone_front *f, hone_front_job *j) {
    if (!j->check) j->done(j);
    else
        for (int k = 0; k < f->n; k++)
            if (j == &f->backend[k].check) checked(f, &f->backend[k]);
}

/* ---- lines ---- */

static void watch(hone_front_line *l, uint32_t want) {
    struct epoll_event ev = {.events = want, .data.ptr = l};
    if (want == l->asked) return;
    (void)epoll_ctl(l->front->poll, l->asked ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, l->fd, &ev);
    l->asked = want;
}
static void shut(hone_front_line *l) { /* it is freed when this turn ends: events may still name it */
    hone_front *f = l->front;
    if (l->fd < 0) return;
    for (hone_front_line **at = &l->to->idle; *at; at = &(*at)->next)
        if (*at == l) {
            *at = l->next, l->to->idle_n--;
            break;
        }
    close(l->fd), l->fd = -1;
    atomic_fetch_sub(&l->to->counts.lines, 1);
    if (l->before) l->before->after = l->after;
    else f->line = l->after;
    if (l->after) l->after->before = l->before;
    l->next = f->dead, f->dead = l;
}
static void keep(hone_front_line *l) {
    l->used = true, l->since = hone_serve_now(), l->job = NULL;
    if (l->answer.closes || l->to->idle_n >= IDLE_MOST) {
        shut(l);
        return;
    }
    watch(l, EPOLLIN | EPOLLRDHUP);
    l->next = l->to->idle, l->to->idle = l, l->to->idle_n++;
}

static bool take_head(void *line, const char *head) {
    hone_front_line *l = line;
    return (l->job->answer_head = strdup(head)) != NULL;
}
/* Room for so many bytes more, or false. */
static bool make_room(hone_front_line *l, size_t n) {
    hone_front_job *j = l->job;
    if (n > (size_t)l->front->o->max_body_bytes || j->answer_n > (size_t)l->front->o->max_body_bytes - n) {
        hone_serve_fail(&j->error, 502, "the answer of %s is larger than %lld bytes", l->to->name,
                        (long long)l->front->o->max_body_bytes);
        return false;
    }
    if (j->answer_room - j->answer_n >= n) return true;
    const size_t exact = j->answer_n + n, twice = j->answer_room * 2,
                 room = l->answer.stage == HONE_ANSWER_BODY || exact > twice ? exact : twice;
    uint8_t *more = realloc(j->answer, room);
    if (!more) return hone_serve_fail(&j->error, 503, "no memory for an answer"), false;
    j->answer = more, j->answer_room = room;
    return true;
}
static bool take_piece(void *line, const uint8_t *at, size_t n) {
    hone_front_line *l = line;
    hone_front_job *j = l->job;
    /* all of a body that says how long it is, at once; what it says is bounded, and touched as it comes */
    if (!make_room(l, l->answer.stage == HONE_ANSWER_BODY ? (size_t)l->answer.left : n)) return false;
    memcpy(j->answer + j->answer_n, at, n), j->answer_n += n;
    return true;
}

static hone_front_line *line_to(hone_front *f, hone_front_backend *b) { /* NULL: errno */
    hone_front_line *l = b->idle;
    if (l) {
        b->idle = l->next, l->next = NULL, b->idle_n--;
        return l;
    }
    const int fd = hone_front_connect(b);
    if (fd < 0) return NULL;
    if (!(l = calloc(1, sizeof *l))) {
        close(fd), errno = ENOMEM;
        return NULL;
    }
    *l = (hone_front_line){.front = f, .to = b, .fd = fd, .connecting = true, .since = hone_serve_now()};
    l->answer.headed = take_head, l->answer.body = take_piece, l->answer.arg = l;
    if ((l->after = f->line)) l->after->before = l;
    f->line = l;
    atomic_fetch_add(&b->counts.lines, 1);
    return l;
}

/* ---- a job on a line ---- */

/* It will not be answered by this server. */
static void failed(hone_front *f, hone_front_backend *b, hone_front_job *j, const char *why, bool unsent,
                   bool stale) {
    const uint64_t now = hone_serve_now();
    if (unsent && !stale) atomic_fetch_add(&b->at, 1); /* a name may have several, and not all be right */
    if (j->check) {
        hone_serve_fail(&j->error, 502, "%s", why);
        j->refused = unsent && !stale; /* nobody is there */
        finish(f, j);
        return;
    }
    const bool known = j->error.code != 0; /* it is the answer's own fault, and would be again */
    if (!stale) {
        atomic_fetch_add(&b->counts.failures, 1);
        j->want.tried |= (uint64_t)1 << (b - f->backend);
        if (atomic_load(&b->check_at) > now) atomic_store(&b->check_at, now);
        if (unsent) hone_front_up(f, b, why);
    }
    forget_answer(j);
    j->want.broken |= !unsent;
    if (!known) snprintf(j->error.text, sizeof j->error.text, "%s: %s", b->name, why);
    if (!known && (unsent || j->want.repeatable) && j->want.tries < TRIES) {
        atomic_fetch_add(&b->counts.repeats, 1);
        start(f, j);
        return;
    }
    if (!known)
        hone_serve_fail(&j->error, 502, "%s: %s%s", b->name, why,
                        j->want.repeatable ? ""
                                           : "; a request that changes a server's state is not repeated");
    finish(f, j);
}
static void broke(hone_front_line *l, const char *why) {
    hone_front_job *j = l->job;
    char text[160];
    snprintf(text, sizeof text, "%.150s", why);
    const bool unsent = l->connecting || !l->sent,
               stale = l->used && !l->answer.status && !l->answer.head_n; /* it was closed as we took it */
    l->job = NULL;
    shut(l);
    if (!j) return;
    if (!j->check) atomic_fetch_sub(&l->to->counts.under_way, 1);
    failed(l->front, l->to, j, text, unsent, stale);
}
static void answered(hone_front_line *l) {
    hone_front *f = l->front;
    hone_front_backend *b = l->to;
    hone_front_job *j = l->job;
    const uint64_t now = hone_serve_now();
    j->status = l->answer.status, j->by = b, j->answered = now;
    keep(l);
    if (j->check) {
        finish(f, j);
        return;
    }
    atomic_fetch_sub(&b->counts.under_way, 1);
    hone_front_answered(b, now - j->sent, j->head_n + j->body_n, j->answer_n);
    j->want.tried |= (uint64_t)1 << (b - f->backend);
    const bool full = j->status == 503 && j->want.repeatable && !j->want.everywhere;
    if (full) atomic_fetch_add(&b->counts.refused, 1);
    if (((full && j->want.tries < TRIES) || (j->want.everywhere && j->status / 100 == 2)) &&
        hone_front_choose(f, &j->want)) {
        forget_answer(j);
        start(f, j);
        return;
    }
    finish(f, j);
}

static void push(hone_front_line *l) {
    const hone_front_job *j = l->job;
    const size_t all = j->head_n + l->to->host_n + j->body_n;
    while (l->sent < all) {
        struct iovec v[3] = {{(void *)(uintptr_t)j->head, j->head_n},
                             {l->to->host, l->to->host_n},
                             {(void *)(uintptr_t)j->body, j->body_n}};
        size_t skip = l->sent;
        for (int k = 0; k < 3; k++) {
            const size_t n = skip < v[k].iov_len ? skip : v[k].iov_len;
            v[k].iov_base = (char *)v[k].iov_base + n, v[k].iov_len -= n, skip -= n;
        }
        const struct msghdr m = {.msg_iov = v, .msg_iovlen = 3};
        const ssize_t n = sendmsg(l->fd, &m, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) break;
        /* it may have answered before it closed: what is there is read first */
        if (n < 0) {
            if (l->sent) l->sent = all;
            break;
        }
        l->sent += (size_t)n;
    }
    watch(l, EPOLLIN | EPOLLRDHUP | (l->sent < all ? (uint32_t)EPOLLOUT : 0));
}
static void pull(hone_front_line *l) {
    static uint8_t scratch[PIECE]; /* one thread */
    hone_answer *a = &l->answer;
    for (int k = 0; k < 64; k++) { /* others wait, too */
        hone_front_job *j = l->job;
        const bool straight = j && a->stage == HONE_ANSWER_BODY && j->answer_n;
        const size_t room = straight ? (size_t)a->left : sizeof scratch;
        const ssize_t n = recv(l->fd, straight ? j->answer + j->answer_n : scratch, room, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno == EAGAIN) return;
        if (n < 0 || !j) {
            broke(l, n < 0 ? strerror(errno) : "it closed the connection");
            return;
        }
        if (!n) {
            if (hone_answer_end(a)) a->closes = true, answered(l);
            else broke(l, "it closed the connection before it had answered");
            return;
        }
        size_t used = (size_t)n;
        if (straight) j->answer_n += used, hone_answer_landed(a, used);
        else used = hone_answer_take(a, scratch, used);
        if (a->stage == HONE_ANSWER_BROKEN) {
            broke(l, "its answer is not HTTP");
            return;
        }
        if (a->stage != HONE_ANSWER_DONE) continue;
        /* more than it said, or before all was sent: then nobody knows what comes next */
        a->closes |= used < (size_t)n || l->sent < j->head_n + l->to->host_n + j->body_n;
        answered(l);
        return;
    }
}
static void event(hone_front_line *l, uint32_t events) {
    if (l->fd < 0) return;
    if (l->connecting) {
        int why = 0;
        socklen_t n = sizeof why;
        if (getsockopt(l->fd, SOL_SOCKET, SO_ERROR, &why, &n) || why) {
            broke(l, strerror(why ? why : errno));
            return;
        }
        if (!(events & EPOLLOUT)) return;
        l->connecting = false;
    }
    if (l->job && (events & EPOLLOUT)) push(l);
    if (events & (EPOLLIN | EPOLLRDHUP | EPOLLHUP | EPOLLERR)) pull(l);
}

static void carry(hone_front *f, hone_front_backend *b, hone_front_job *j) {
    hone_front_line *l = line_to(f, b);
    j->want.tries++, j->sent = hone_serve_now();
    if (!l) {
        failed(f, b, j, strerror(errno), true, false);
        return;
    }
    if (!j->check) atomic_fetch_add(&b->counts.under_way, 1);
    l->job = j, l->sent = 0;
    hone_answer_reset(&l->answer);
    if (l->connecting) watch(l, EPOLLOUT);
    else push(l);
}
static void start(hone_front *f, hone_front_job *j) {
    hone_front_backend *b = hone_front_choose(f, &j->want);
    if (b) {
        carry(f, b, j);
        return;
    }
    char last[sizeof j->error.text];
    memcpy(last, j->error.text, sizeof last);
    if (j->want.broken) hone_serve_fail(&j->error, 502, "%.300s (%d tries)", last, j->want.tries);
    else hone_serve_fail(&j->error, 503, "no server behind this front is ready"), j->error.retry_after = 1;
    finish(f, j);
}
void hone_front_post(hone_front *f, hone_front_job *j) {
    const uint64_t one = 1;
    j->posted = hone_serve_now();
    j->deadline = j->posted + (uint64_t)f->o->answer_seconds * 1000000000u;
    pthread_mutex_lock(&f->lock);
    const bool quit = f->quit, first = !f->posted;
    if (!quit) j->next = NULL, *f->last = j, f->last = &j->next;
    pthread_mutex_unlock(&f->lock);
    if (quit) {
        hone_serve_fail(&j->error, 503, "the server is stopping");
        j->done(j);
    } else if (first) (void)!write(f->wake, &one, sizeof one);
}

/* ---- the thread ---- */

static void check(hone_front *f, hone_front_backend *b, uint64_t now) {
    static const char ask[] = "GET /v2/health/ready HTTP/1.1\r\n";
    b->checking = true;
    b->check = (hone_front_job){.head = ask,
                                .head_n = sizeof ask - 1,
                                .body = "",
                                .check = true,
                                .posted = now,
                                .deadline = now + check_ns};
    carry(f, b, &b->check);
}
/* Checks that are due, and whoever takes too long. */
static void tick(hone_front *f, uint64_t now) {
    for (int k = 0; k < f->n; k++)
        if (!f->backend[k].grpc && !f->backend[k].checking && now >= atomic_load(&f->backend[k].check_at))
            check(f, &f->backend[k], now);
    for (hone_front_line *l = f->line, *after; l; l = after) {
        after = l->after;
        if (!l->job) {
            if (now > l->since + keep_ns) shut(l);
        } else if (l->connecting ? now > l->since + connect_ns : now > l->job->deadline) {
            if (!l->connecting && !l->job->check)
                hone_serve_fail(&l->job->error, 504, "%s did not answer in %d s", l->to->name,
                                f->o->answer_seconds);
            broke(l, l->connecting ? "it cannot be reached in time" : "it did not answer in time");
            after = f->line; /* what was repeated may have changed the list */
        }
    }
}
static int patience(const hone_front *f, uint64_t now) { /* ms until something is due */
    uint64_t next = now + sleep_ns;
    for (int k = 0; k < f->n; k++)
        if (!f->backend[k].grpc && !f->backend[k].checking && atomic_load(&f->backend[k].check_at) < next)
            next = atomic_load(&f->backend[k].check_at);
    bool busy = false;
    for (int k = 0; k < f->n && !busy; k++)
        busy =
            !f->backend[k].grpc && (f->backend[k].checking || atomic_load(&f->backend[k].counts.under_way));
    if (busy && next > now + TICK_MS * ms_ns) next = now + TICK_MS * ms_ns;
    return next > now ? (int)((next - now) / ms_ns) + 1 : 0;
}
void *hone_front_run(void *front) {
    hone_front *f = front;
    struct epoll_event ev[EVENTS];
    uint64_t ticked = 0;
    for (bool quit = false; !quit;) {
        const int n = epoll_wait(f->poll, ev, EVENTS, patience(f, hone_serve_now()));
        for (int k = 0; k < n; k++) {
            uint64_t count;
            if (ev[k].data.ptr) event(ev[k].data.ptr, ev[k].events);
            else (void)!read(f->wake, &count, sizeof count);
        }
        pthread_mutex_lock(&f->lock);
        hone_front_job *list = f->posted;
        f->posted = NULL, f->last = &f->posted, quit = f->quit;
        pthread_mutex_unlock(&f->lock);
        for (hone_front_job *next; list; list = next) next = list->next, start(f, list);
        const uint64_t now = hone_serve_now();
        if (now - ticked > 5 * ms_ns) ticked = now, tick(f, now);
        for (hone_front_line *next; f->dead; f->dead = next) next = f->dead->next, free(f->dead);
    }
    while (f->line) { /* the end: nothing is tried any more */
        hone_front_line *l = f->line;
        hone_front_job *j = l->job;
        l->job = NULL;
        shut(l);
        if (!j || j->check) continue;
        forget_answer(j);
        hone_serve_fail(&j->error, 503, "the server is stopping");
        finish(f, j);
    }
    for (hone_front_line *next; f->dead; f->dead = next) next = f->dead->next, free(f->dead);
    for (int k = 0; k < f->n; k++) forget_answer(&f->backend[k].check);
    return NULL;
}
