/* SPDX-License-Identifier: Apache-2.0
   front: the servers behind, by their addresses: which are ready, which gets the next request, what is told
   of them. Names are looked up once, when the front begins. */
#include "serve/front.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include "net/random.h"

/* An up server is asked for its health so often, one that is not so often; who is up may be late once. */
enum { MISSES = 2 };
static const uint64_t up_ns = 1000000000, down_ns = 200000000;

/* "HOST:PORT", "[::1]:PORT", "http://HOST", "grpc://HOST:PORT"; the usual ports are 8000 and 8001. */
static hone_status read_address(const char *at, size_t n, hone_front_backend *b) {
    char text[256], *host = text, *port = NULL;
    b->grpc = n > 7 && !strncmp(at, "grpc://", 7);
    if (b->grpc || (n > 7 && !strncmp(at, "http://", 7))) at += 7, n -= 7;
    if (n && at[n - 1] == '/') n--;
    if (!n || n >= sizeof text - 8 || memchr(at, '/', n))
        return hone_server_say(HONE_BAD_INPUT, "front: '%.*s' is no HOST:PORT", (int)(n < 200 ? n : 200), at);
    memcpy(text, at, n), text[n] = 0;
    char *bracket = *text == '[' ? strchr(text, ']') : NULL, *colon = strrchr(bracket ? bracket : text, ':');
    if (colon) *colon = 0, port = colon + 1;
    if (bracket) *bracket = 0, host++;
    if (!*host || (port && (!*port || strspn(port, "0123456789") != strlen(port))))
        return hone_server_say(HONE_BAD_INPUT, "front: '%.*s' is no HOST:PORT", (int)n, at);
    if (!port) port = b->grpc ? "8001" : "8000";
    struct addrinfo *found = NULL, hint = {.ai_socktype = SOCK_STREAM};
    const int rc = getaddrinfo(host, port, &hint, &found);
    if (rc || !found)
        return hone_server_say(HONE_BAD_INPUT, "front: %s:%s: %s", host, port, gai_strerror(rc));
    for (struct addrinfo *a = found; a && b->addresses < HONE_FRONT_ADDRESSES; a = a->ai_next, b->addresses++)
        memcpy(&b->address[b->addresses], a->ai_addr, a->ai_addrlen),
            b->address_bytes[b->addresses] = a->ai_addrlen;
    freeaddrinfo(found);
    const char *scheme = b->grpc ? "grpc://" : "";
    snprintf(b->name, sizeof b->name, bracket ? "%s[%s]:%s" : "%s%s:%s", scheme, host, port);
    b->authority = b->name + strlen(scheme);
    b->host_n = (size_t)snprintf(b->host, sizeof b->host, "Host: %.300s\r\n\r\n", b->authority);
    snprintf(b->why, sizeof b->why, "not asked yet");
    return HONE_OK;
}

hone_status hone_front_open(const hone_server_options *o, hone_front **out) {
    hone_front *f = calloc(1, sizeof *f);
    if (!f || !(f->backend = calloc(HONE_FRONT_MOST, sizeof *f->backend))) {
        free(f);
        return hone_server_say(HONE_NO_MEMORY, "no memory for a front");
    }
    f->o = o, f->poll = f->wake = -1, f->last = &f->posted, f->began = hone_serve_now();
    pthread_mutex_init(&f->lock, NULL);
    hone_status s = HONE_OK;
    for (const char *at = o->front; *at && !s; at += *at == ',') {
        const size_t n = strcspn(at, ",");
        if (f->n == HONE_FRONT_MOST)
            s = hone_server_say(HONE_BAD_INPUT, "front: at most %d servers", HONE_FRONT_MOST);
        else if (n && !(s = read_address(at, n, &f->backend[f->n])))
            for (int k = f->n++; k > 0; k--)
                if (!strcmp(f->backend[k - 1].name, f->backend[f->n - 1].name))
                    s = hone_server_say(HONE_BAD_INPUT, "front: %s is named twice", f->backend[k - 1].name);
        at += n;
    }
    for (int k = 0; k < f->n; k++) *(f->backend[k].grpc ? &f->grpc : &f->http) = true;
    if (!s && !f->n) s = hone_server_say(HONE_BAD_INPUT, "front: name servers: HOST:PORT,HOST:PORT");
    struct epoll_event ev = {.events = EPOLLIN, .data.ptr = NULL};
    if (!s && ((f->poll = epoll_create1(EPOLL_CLOEXEC)) < 0 ||
               (f->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) < 0 ||
               epoll_ctl(f->poll, EPOLL_CTL_ADD, f->wake, &ev) ||
               pthread_create(&f->thread, NULL, hone_front_run, f)))
        s = hone_server_say(HONE_NO_MEMORY, "no thread for a front");
    f->started = !s;
    if (s) hone_front_free(f);
    else *out = f;
    return s;
}
void hone_front_end(hone_front *f) {
    if (!f->started) return;
    pthread_mutex_lock(&f->lock);
    f->quit = true;
    pthread_mutex_unlock(&f->lock);
    const uint64_t one = 1;
    (void)!write(f->wake, &one, sizeof one);
    pthread_join(f->thread, NULL);
    f->started = false;
}
void hone_front_free(hone_front *f) {
    if (!f) return;
    hone_front_end(f);
    if (f->poll >= 0) close(f->poll);
    if (f->wake >= 0) close(f->wake);
    pthread_mutex_destroy(&f->lock);
    free(f->backend), free(f);
}

bool hone_front_ready(const hone_front *f, bool grpc) {
    if (!(grpc ? f->grpc : f->http))
        grpc = !grpc; /* there are none: whoever asks wants to know of the others */
    for (int k = 0; k < f->n; k++)
        if (f->backend[k].grpc == grpc && atomic_load(&f->backend[k].counts.up)) return true;
    return false;
}
int hone_front_connect(hone_front_backend *b) {
    const unsigned at = atomic_load(&b->at) % (unsigned)b->addresses;
    const int one = 1, fd = socket(b->address[at].ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    if (fd < 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!connect(fd, (const struct sockaddr *)&b->address[at], b->address_bytes[at]) || errno == EINPROGRESS)
        return fd;
    const int why = errno;
    close(fd), errno = why;
    return -1;
}
void hone_front_answered(hone_front_backend *b, uint64_t ns, uint64_t bytes_out, uint64_t bytes_in) {
    hone_front_counts *c = &b->counts;
    atomic_fetch_add(&c->requests, 1);
    atomic_fetch_add(&c->ns, ns);
    atomic_fetch_add(&c->took[hone_serve_bucket(ns)], 1);
    atomic_fetch_add(&c->bytes_out, bytes_out);
    atomic_fetch_add(&c->bytes_in, bytes_in);
}
void hone_front_checked(hone_front *f, hone_front_backend *b, const char *why, bool certain) {
    const uint64_t now = hone_serve_now();
    b->checking = false;
    if (!why) b->misses = 0, hone_front_up(f, b, NULL);
    else if (!atomic_load(&b->counts.up) || certain || ++b->misses >= MISSES) hone_front_up(f, b, why);
    atomic_store(&b->check_at, now + (atomic_load(&b->counts.up) && !b->misses ? up_ns : down_ns));
}
/* The least under way; of equals the next in turn. A sequence: by the highest of hashes of it and each
   server, so that a server that goes moves its own sequences and no others. */
hone_front_backend *hone_front_choose(hone_front *f, const hone_front_want *j) {
    hone_front_backend *best = NULL;
    uint64_t highest = 0;
    int least = 0;
    const unsigned turn = j->everywhere ? 0 : atomic_fetch_add(&f->turn, 1);
    for (int k = 0; k < f->n; k++) {
        const int at = (int)((turn + (unsigned)k) % (unsigned)f->n);
        hone_front_backend *b = &f->backend[at];
        if (b->grpc != j->grpc || !atomic_load(&b->counts.up) || j->tried >> at & 1) continue;
        const int busy = atomic_load(&b->counts.under_way);
        const uint64_t hash = hone_net_mix64(j->sequence + (uint64_t)(at + 1) * 0x9e3779b97f4a7c15u);
        if (best && (j->everywhere || (j->sequence ? hash <= highest : busy >= least))) continue;
        best = b, highest = hash, least = busy;
    }
    return best;
}
void hone_front_up(hone_front *f, hone_front_backend *b, const char *why) {
    const bool was = atomic_exchange(&b->counts.up, !why);
    char line[600];
    pthread_mutex_lock(&f->lock);
    if (why) snprintf(b->why, sizeof b->why, "%s", why);
    else *b->why = 0;
    const bool told = b->told;
    b->told = true;
    pthread_mutex_unlock(&f->lock);
    if (!f->o->tell || (was == !why && told)) return;
    snprintf(line, sizeof line, why ? "%s: not ready: %s" : "%s: ready", b->name, why);
    f->o->tell(f->o->arg, line);
}

static double quantile_us(const hone_front_counts *c, double q) {
    uint64_t all = 0, seen = 0;
    for (int k = 0; k < HONE_SERVE_BUCKETS; k++) all += atomic_load(&c->took[k]);
    for (int k = 0; all && k < HONE_SERVE_BUCKETS; k++)
        if ((double)(seen += atomic_load(&c->took[k])) >= q * (double)all)
            return (double)hone_serve_bucket_ns(k) / 1000;
    return 0;
}
json_t *hone_front_status(hone_front *f) {
    json_t *list = json_array();
    for (int k = 0; k < f->n; k++) {
        hone_front_backend *b = &f->backend[k];
        hone_front_counts *c = &b->counts;
        char why[sizeof b->why];
        pthread_mutex_lock(&f->lock);
        memcpy(why, b->why, sizeof why);
        pthread_mutex_unlock(&f->lock);
        json_array_append_new(
            list,
            json_pack("{s:s, s:b, s:s, s:i, s:i, s:I, s:I, s:I, s:I, s:I, s:I, s:f, s:f, s:f, s:f}", "server",
                      b->name, "ready", (int)atomic_load(&c->up), "reason", why, "under_way",
                      atomic_load(&c->under_way), "connections", atomic_load(&c->lines), "requests",
                      (json_int_t)atomic_load(&c->requests), "failed", (json_int_t)atomic_load(&c->failures),
                      "repeated", (json_int_t)atomic_load(&c->repeats), "refused",
                      (json_int_t)atomic_load(&c->refused), "bytes_in", (json_int_t)atomic_load(&c->bytes_in),
                      "bytes_out", (json_int_t)atomic_load(&c->bytes_out), "seconds",
                      (double)atomic_load(&c->ns) * 1e-9, "p50_us", quantile_us(c, 0.5), "p90_us",
                      quantile_us(c, 0.9), "p99_us", quantile_us(c, 0.99)));
    }
    return list;
}
