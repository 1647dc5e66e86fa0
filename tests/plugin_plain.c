/* SPDX-License-Identifier: Apache-2.0
   plain: a device for tests, from outside: a plugin that knows hone/device.h and nothing else of Hone. It
   has no kernel but the definition, and is as unlike the host as it can be on one machine, so that whatever
   takes a device for the host fails:

   memory    pages of their own, full of a pattern, which nobody may touch but while a copy or a work of the
   device does; a byte past the end never
   handles   are numbers, not addresses
   queues    threads that are late on purpose, now and then
   numbers   there are two: plain:0 and plain:1 */
#include <hone/device.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { COUNT = 2, LINE = 256, PATTERN = 0xa5, MOST_TENSORS = 64, LATE_US = 60 };

/* ---- memory -------------------------------------------------------------------------------------------- */
typedef struct {
    /* pages, and where the memory begins in them, so that it ends with one; another one follows that stays
       shut */
    char *map, *at;
    size_t mapped, bytes;
    int open; /* who has opened it */
} memory;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static memory *all; /* by handle */
static int n_all;
/* odd: no address */
static void *handle_of(int number, int k) {
    return (void *)(((uintptr_t)number << 32) + 3 + 4 * (uintptr_t)k);
}
static memory *memory_of(int number, void *handle) { /* under the lock */
    const uintptr_t h = (uintptr_t)handle;
    const int k = (int)((h & 0xffffffff) / 4);
    return (h >> 32) == (uintptr_t)number && (h & 3) == 3 && k < n_all && all[k].map ? all + k : NULL;
}
static hone_status plain_alloc(void *self, int number, size_t bytes, void **out) {
    const size_t page = (size_t)sysconf(_SC_PAGESIZE), whole = (bytes + LINE - 1) / LINE * LINE,
                 mapped = (whole + page - 1) / page * page;
    (void)self;
    memory m = {.mapped = mapped + page, .bytes = bytes};
    m.map = whole < bytes || mapped + page < whole
                ? MAP_FAILED
                : mmap(NULL, m.mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m.map == MAP_FAILED) return hone_device_fail(HONE_NO_MEMORY, "no memory on the plain device");
    m.at = m.map + mapped - whole;
    memset(m.map, PATTERN, mapped);
    mprotect(m.map, m.mapped, PROT_NONE);
    pthread_mutex_lock(&lock);
    int k = 0;
    while (k < n_all && all[k].map) k++;
    memory *more = k < n_all ? all : realloc(all, sizeof *all * (size_t)(n_all + 1));
    if (more) all = more, n_all += k == n_all, all[k] = m, *out = handle_of(number, k);
    pthread_mutex_unlock(&lock);
    if (!more) munmap(m.map, m.mapped);
    return more ? HONE_OK : hone_device_fail(HONE_NO_MEMORY, "no memory on the plain device");
}
static void plain_free(void *self, int number, void *handle) {
    (void)self;
    pthread_mutex_lock(&lock);
    memory *m = memory_of(number, handle);
    if (!m || m->open) fprintf(stderr, "plain: a memory is freed that is not there, or in use\n"), abort();
    munmap(m->map, m->mapped);
    *m = (memory){0};
    pthread_mutex_unlock(&lock);
}
/* For a copy or a work: its address, until it is shut again. */
static char *plain_open(int number, void *handle, int64_t at, size_t bytes) {
    char *address = NULL;
    pthread_mutex_lock(&lock);
    memory *m = memory_of(number, handle);
    if (m && at >= 0 && (size_t)at <= m->bytes && bytes <= m->bytes - (size_t)at) {
        if (!m->open++) mprotect(m->map, m->mapped - (size_t)sysconf(_SC_PAGESIZE), PROT_READ | PROT_WRITE);
        address = m->at + at;
    }
    pthread_mutex_unlock(&lock);
    return address;
}
static void plain_shut(int number, void *handle) {
    pthread_mutex_lock(&lock);
    memory *m = memory_of(number, handle);
    if (m && !--m->open) mprotect(m->map, m->mapped, PROT_NONE);
    pthread_mutex_unlock(&lock);
}

/* ---- queues -------------------------------------------------------------------------------------------- */
typedef struct { /* bytes on their way: who has them says so, who wants them waits */
    pthread_mutex_t lock;
    pthread_cond_t come;
    bool there;
    atomic_int holders;
    size_t bytes;
    char data[];
} parcel;
typedef struct job job;
struct job {
    enum { WORK, PUT /* a parcel into memory */, TAKE /* memory into a parcel */, STOP } kind;
    const hone_work *work;
    hone_device_operand at[MOST_TENSORS];
    parcel *parcel;
    job *next;
};
typedef struct {
    int number;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t change;
    job *first, **last;
    int given, done;
    hone_status status; /* of the first that failed */
    char why[512];
    unsigned random;
} queue;

static parcel *parcel_make(const void *from, size_t bytes, int holders) {
    parcel *p = malloc(sizeof *p + bytes);
    if (!p) return NULL;
    pthread_mutex_init(&p->lock, NULL), pthread_cond_init(&p->come, NULL);
    p->there = from != NULL, p->bytes = bytes, atomic_init(&p->holders, holders);
    if (from) memcpy(p->data, from, bytes);
    return p;
}
static void parcel_wait(parcel *p) {
    pthread_mutex_lock(&p->lock);
    while (!p->there) pthread_cond_wait(&p->come, &p->lock);
    pthread_mutex_unlock(&p->lock);
}
static void parcel_drop(parcel *p) {
    if (atomic_fetch_sub(&p->holders, 1) > 1) return;
    pthread_mutex_destroy(&p->lock), pthread_cond_destroy(&p->come);
    free(p);
}
static void failed(queue *q, hone_status s, const char *why) {
    pthread_mutex_lock(&q->lock);
    if (!q->status) q->status = s, snprintf(q->why, sizeof q->why, "%s", why);
    pthread_mutex_unlock(&q->lock);
}
static void copy(queue *q, job *j) {
    char *at = plain_open(q->number, j->at[0].memory, j->at[0].offset, j->parcel->bytes);
    if (j->kind == PUT) parcel_wait(j->parcel);
    if (!at) failed(q, HONE_BUG, "plain: a copy outside of a memory");
    else if (j->kind == PUT) memcpy(at, j->parcel->data, j->parcel->bytes);
    else memcpy(j->parcel->data, at, j->parcel->bytes);
    if (at) plain_shut(q->number, j->at[0].memory);
    if (j->kind == TAKE) {
        pthread_mutex_lock(&j->parcel->lock);
        j->parcel->there = true;
        pthread_cond_broadcast(&j->parcel->come);
        pthread_mutex_unlock(&j->parcel->lock);
    }
    parcel_drop(j->parcel);
}
static void work(queue *q, const job *j) {
    void *at[MOST_TENSORS];
    const int n = hone_work_tensors(j->work);
    int k = 0;
    for (; k < n; k++)
        if (!(at[k] = plain_open(q->number, j->at[k].memory, j->at[k].offset, 0))) break;
    if (k < n) failed(q, HONE_BUG, "plain: a work on a memory that is not there");
    else if (!q->status) {
        hone_status s = hone_work_define(j->work, at);
        if (s) failed(q, s, hone_error());
    }
    while (--k >= 0) plain_shut(q->number, j->at[k].memory);
}
static void *serve(void *arg) {
    queue *q = arg;
    for (bool on = true; on;) {
        pthread_mutex_lock(&q->lock);
        while (!q->first) pthread_cond_wait(&q->change, &q->lock);
        job *j = q->first;
        if (!(q->first = j->next)) q->last = &q->first;
        pthread_mutex_unlock(&q->lock);
        q->random = q->random * 1664525 + 1013904223;
        if (q->random >> 29 == 0) usleep(LATE_US); /* whoever did not wait finds nothing */
        if (j->kind == WORK) work(q, j);
        else if (j->kind != STOP) copy(q, j);
        on = j->kind != STOP;
        free(j);
        pthread_mutex_lock(&q->lock);
        q->done++;
        pthread_cond_broadcast(&q->change);
        pthread_mutex_unlock(&q->lock);
    }
    return NULL;
}
static hone_status give(queue *q, job j) {
    job *own = malloc(sizeof *own);
    if (!own) return hone_device_fail(HONE_NO_MEMORY, "no memory on the plain device");
    *own = j, own->next = NULL;
    pthread_mutex_lock(&q->lock);
    *q->last = own, q->last = &own->next, q->given++;
    pthread_cond_broadcast(&q->change);
    pthread_mutex_unlock(&q->lock);
    return HONE_OK;
}
static hone_status plain_wait(void *queue_) {
    queue *q = queue_;
    pthread_mutex_lock(&q->lock);
    while (q->done < q->given) pthread_cond_wait(&q->change, &q->lock);
    hone_status s = q->status;
    if (s) hone_device_fail(s, q->why);
    q->status = HONE_OK;
    pthread_mutex_unlock(&q->lock);
    return s;
}
static hone_status plain_queue(void *self, int number, void **out) {
    queue *q = calloc(1, sizeof *q);
    (void)self;
    if (!q) return hone_device_fail(HONE_NO_MEMORY, "no memory on the plain device");
    pthread_mutex_init(&q->lock, NULL), pthread_cond_init(&q->change, NULL);
    q->number = number, q->last = &q->first, q->random = 12345u + (unsigned)number;
    if (pthread_create(&q->thread, NULL, serve, q)) {
        free(q);
        return hone_device_fail(HONE_IO, "plain: no thread for a queue");
    }
    *out = q;
    return HONE_OK;
}
static void plain_close(void *queue_) {
    queue *q = queue_;
    while (give(q, (job){.kind = STOP})) usleep(1000);
    pthread_join(q->thread, NULL);
    pthread_mutex_destroy(&q->lock), pthread_cond_destroy(&q->change);
    free(q);
}
static job job_of(int kind, void *memory_, int64_t at, parcel *p) {
    job j = {.kind = kind, .parcel = p};
    j.at[0] = (hone_device_operand){memory_, at};
    return j;
}
static hone_status plain_in(void *q, void *to, int64_t at, const void *from, size_t bytes) {
    parcel *p = parcel_make(from, bytes, 1);
    if (!p) return hone_device_fail(HONE_NO_MEMORY, "no memory on the plain device");
    hone_status s = give(q, job_of(PUT, to, at, p));
    if (s) parcel_drop(p);
    return s;
}
static hone_status plain_out(void *q, void *to, void *from, int64_t at, size_t bytes) {
    parcel *p = parcel_make(NULL, bytes, 2);
    hone_status s = p ? give(q, job_of(TAKE, from, at, p))
                      : hone_device_fail(HONE_NO_MEMORY, "no memory on the plain device");
    if (s) {
        free(p);
        return s;
    }
    s = plain_wait(q);
    if (!s) memcpy(to, p->data, bytes);
    parcel_drop(p);
    return s;
}
static hone_status plain_peer(void *to_queue, void *to, int64_t at, void *from_queue, void *from,
                              int64_t from_at, size_t bytes) {
    parcel *p = parcel_make(NULL, bytes, 2);
    hone_status s = p ? give(from_queue, job_of(TAKE, from, from_at, p))
                      : hone_device_fail(HONE_NO_MEMORY, "no memory on the plain device");
    if (s) free(p);
    else if ((s = give(to_queue, job_of(PUT, to, at, p)))) parcel_drop(p);
    return s;
}
static hone_status plain_work(void *q, const hone_work *w, const hone_device_operand *at) {
    job j = {.kind = WORK, .work = w};
    memcpy(j.at, at, sizeof *at * (size_t)hone_work_tensors(w));
    return give(q, j);
}
/* It has no streams but one, number 7, which somebody else would have: nothing was ever given to it. */
static hone_status plain_await(void *self, int number, int64_t stream) {
    (void)self, (void)number;
    return stream == 7 ? HONE_OK : hone_device_fail(HONE_BAD_INPUT, "the plain device knows no such stream");
}
/* It has no doubles, so that something always goes to the host. */
static const char *plain_refuses(void *self, const char *op, const hone_work_tensor *t, int n) {
    (void)self;
    for (int k = 0; k < n; k++)
        if (t[k].dtype == HONE_DTYPE_F64 && t[k].role != HONE_WORK_TEMP && strcmp(op, "Identity"))
            return "it has no doubles";
    return NULL;
}
HONE_API hone_status hone_plugin(void);
hone_status hone_plugin(void) {
    return hone_device_add(&(hone_device_table){.abi = HONE_DEVICE_ABI,
                                                .count = COUNT,
                                                .name = "plain",
                                                .alignment = LINE,
                                                .refuses = plain_refuses,
                                                .alloc = plain_alloc,
                                                .free = plain_free,
                                                .open = plain_queue,
                                                .close = plain_close,
                                                .copy_in = plain_in,
                                                .copy_out = plain_out,
                                                .copy_peer = plain_peer,
                                                .dlpack = 12, /* kDLExtDev */
                                                .await = plain_await,
                                                .enqueue = plain_work,
                                                .wait = plain_wait});
}
