/* SPDX-License-Identifier: Apache-2.0
   traffic_target: the address that the requests go to, sockets to it, and the bytes that they are made of. */
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "traffic.h"

void hone_octets_add(hone_octets *o, const void *from, size_t n) {
    if (n > o->room - o->n) {
        size_t room = o->room ? o->room : 256;
        while (room - o->n < n) room *= 2;
        uint8_t *more = hone_must_alloc(room);
        if (o->n) memcpy(more, o->at, o->n);
        free(o->at);
        o->at = more, o->room = room;
    }
    if (n) memcpy(o->at + o->n, from, n);
    o->n += n;
}

void hone_octets_print(hone_octets *o, const char *format, ...) {
    char small[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(small, sizeof small, format, args);
    va_end(args);
    if (n < (int)sizeof small) {
        hone_octets_add(o, small, (size_t)(n < 0 ? 0 : n));
        return;
    }
    char *large = hone_must_alloc((size_t)n + 1);
    va_start(args, format);
    vsnprintf(large, (size_t)n + 1, format, args);
    va_end(args);
    hone_octets_add(o, large, (size_t)n);
    free(large);
}

void hone_octets_free(hone_octets *o) {
    free(o->at);
    *o = (hone_octets){0};
}

void hone_socket_close(int fd) {
    int was = errno;
    if (fd >= 0) close(fd);
    errno = was;
}

/* wait: until it is there; else the socket may still be connecting. */
int hone_target_connect(const hone_target *t, bool wait) {
    int one = 1, error = 0, fd = socket(t->address.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    socklen_t size = sizeof error;
    if (fd < 0) return -1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    if (!connect(fd, (const struct sockaddr *)&t->address, t->address_bytes)) return fd;
    if (errno == EINPROGRESS && !wait) return fd;
    if (errno == EINPROGRESS) {
        struct pollfd p = {.fd = fd, .events = POLLOUT};
        int n = poll(&p, 1, (int)(t->timeout_s * 1000));
        if (n > 0 && !getsockopt(fd, SOL_SOCKET, SO_ERROR, &error, &size) && !error) return fd;
        errno = n > 0 && error ? error : ETIMEDOUT;
    }
    hone_socket_close(fd);
    return -1;
}

int hone_target_read(const char *url, bool grpc, hone_target *out) {
    const char *p = url, *usual = grpc ? "8001" : "8000";
    if (!strncmp(p, "https://", 8) || !strncmp(p, "grpcs://", 8))
        return hone_args_wrong("%s: TLS is not spoken here; give the address of a port without it", url);
    if (!strncmp(p, "http://", 7) || !strncmp(p, "grpc://", 7)) p += 7;
    const char *end = p + strcspn(p, "/"), *bracket = *p == '[' ? memchr(p, ']', (size_t)(end - p)) : NULL;
    const char *colon = memchr(bracket ? bracket : p, ':', (size_t)(end - (bracket ? bracket : p)));
    const char *host = bracket ? p + 1 : p, *host_end = bracket ? bracket : colon ? colon : end;
    size_t host_n = (size_t)(host_end - host), port_n = colon ? (size_t)(end - colon - 1) : 0;
    if (*end && strcmp(end, "/") != 0 && strcmp(end, "/v2") != 0)
        return hone_args_wrong(
            "%s: give the server alone, as in http://127.0.0.1:8000, and the model by --model", url);
    if (!host_n || host_n >= sizeof out->host || port_n >= sizeof out->port || (colon && !port_n))
        return hone_args_wrong("%s: that is no address; one is http://127.0.0.1:8000", url);
    snprintf(out->host, sizeof out->host, "%.*s", (int)host_n, host);
    snprintf(out->port, sizeof out->port, "%.*s", port_n ? (int)port_n : 5, port_n ? colon + 1 : usual);
    char *stop;
    const long port = strtol(out->port, &stop, 10);
    if (*stop || port < 1 || port > 65535)
        return hone_args_wrong("%s: '%s' is no port: a number from 1 to 65535", url, out->port);
    struct addrinfo *found = NULL, hint = {.ai_socktype = SOCK_STREAM};
    int bad = getaddrinfo(out->host, out->port, &hint, &found), fd = -1;
    if (bad) return hone_args_wrong("%s: %s", url, gai_strerror(bad));
    for (struct addrinfo *a = found; a && fd < 0; a = a->ai_next) { /* the first that answers */
        memcpy(&out->address, a->ai_addr, a->ai_addrlen), out->address_bytes = a->ai_addrlen;
        fd = hone_target_connect(out, true);
    }
    freeaddrinfo(found);
    hone_socket_close(fd);
    return fd < 0 ? hone_args_wrong("%s: %s; is a server running there?", url, strerror(errno)) : 0;
}
