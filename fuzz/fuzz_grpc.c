/* SPDX-License-Identifier: Apache-2.0
   fuzz_grpc: what clients of the gRPC front send, and what servers behind a front answer. The first byte says
   as what: a ModelInferRequest, the bytes of a client's connection (HTTP/2's frames, HPACK and gRPC's own,
   behind the preface), which go through a socket to nghttp2 and all that it calls, or those of a server that
   has a call and a stream. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "repository.h"
#include "serve/grpc_front.h"

static hone_server *server, *before; /* before: a front */
static hone_grpc grpc, front;
static hone_grpc_loop loop, front_loop;

static bool begin(hone_grpc *g) {
    hone_grpc_loop *l = g->loop;
    g->o = hone_serve_options(g->server), g->listener = -1, g->n_loops = 1, g->at_core = 64;
    l->grpc = g;
    pthread_mutex_init(&l->lock, NULL);
    l->poll = epoll_create1(0);
    l->wake = open("/dev/null", O_WRONLY);
    return l->poll < 0 || l->wake < 0;
}
int LLVMFuzzerInitialize(int *argc, char ***argv) {
    hone_server_options o;
    hone_server_options_default(&o);
    o.repository = hone_fuzz_repository(), o.http = -1, o.watch = 0, o.max_body_bytes = 1 << 20;
    o.max_files_mib = -1; /* what models may be is fuzz_model's */
    if (hone_server_start(&o, &server)) fprintf(stderr, "%s\n", hone_server_error()), abort();
    grpc = (hone_grpc){.server = server, .core = hone_serve_core_of(server), .loop = &loop};
    hone_server_options_default(&o);
    o.front = "grpc://127.0.0.1:1", o.http = -1, o.max_body_bytes = 1 << 20;
    if (hone_server_start(&o, &before)) fprintf(stderr, "%s\n", hone_server_error()), abort();
    front = (hone_grpc){.server = before, .front = hone_serve_front_of(before), .loop = &front_loop};
    return begin(&grpc) || begin(&front);
}

static void a_request(const uint8_t *data, size_t n) {
    hone_serve_inference i;
    hone_serve_error e = {0};
    (void)hone_serve_inference_read(grpc.core, data, n, &i, &e);
    hone_serve_inference_end(&i);
}
/* One turn of the front's loop, without its thread. */
static void a_connection(const uint8_t *data, size_t n) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\4\0\0\0\0";
    int pair[2];
    char room[4096];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, pair)) abort();
    hone_grpc_connection *c = hone_grpc_connection_open(&loop, pair[0]);
    if (!c) abort();
    /* with the text's own zero: the stream's number */
    if (send(pair[1], preface, sizeof preface, 0) != sizeof preface) abort();
    if (n > 100000) n = 100000;
    bool good = hone_grpc_pipe_read(&c->pipe);
    while (n && good) {
        const size_t piece = n > 1000 ? 1000 : n;
        if (send(pair[1], data, piece, 0) != (ssize_t)piece) break;
        data += piece, n -= piece;
        good = hone_grpc_pipe_read(&c->pipe) && hone_grpc_pipe_write(&c->pipe);
        while (recv(pair[1], room, sizeof room, 0) > 0) continue;
    }
    while (loop.ready) { /* what ends lets others begin */
        hone_grpc_item *i = loop.ready;
        loop.ready = NULL, loop.n_ready = 0;
        for (hone_grpc_item *next; i; i = next) next = i->other, i->error.code = 499, hone_grpc_item_over(i);
    }
    while (loop.at_work) { /* loading and unloading, which the core's own thread does */
        pthread_mutex_lock(&loop.lock);
        hone_grpc_item *i = loop.posted;
        loop.posted = NULL, loop.nudged = false;
        pthread_mutex_unlock(&loop.lock);
        for (hone_grpc_item *next; i; i = next) next = i->other, loop.at_work--, hone_grpc_item_over(i);
        if (loop.at_work) usleep(200);
    }
    if (good) (void)hone_grpc_pipe_write(&c->pipe);
    hone_grpc_connection_close(c);
    close(pair[1]);
    if (loop.connection || atomic_load(&grpc.connections) || atomic_load(&grpc.held) ||
        atomic_load(&grpc.busy))
        abort();
}

static void send_frame(int fd, int kind, int flags, int stream, const void *data, size_t n) {
    const uint8_t head[9] = {
        (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n, (uint8_t)kind, (uint8_t)flags, 0, 0, 0,
        (uint8_t)stream};
    if (send(fd, head, 9, 0) != 9 || (n && send(fd, data, n, 0) != (ssize_t)n)) abort();
}
/* What a server answers to a call, stream 1 of ours, and to a stream, 3. */
static void a_server(const uint8_t *data, size_t n) {
    static const char preface[] = "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                      path[] = "\0\5:path\x2a/inference.GRPCInferenceService/ModelInfer",
                      path_of_stream[] = "\0\5:path\x30/inference.GRPCInferenceService/ModelStreamInfer",
                      rest[] = "\x83\x86\0\12:authority\1x\0\14content-type\20application/grpc",
                      message[] = "\0\0\0\0\3\12\1m";
    uint8_t heads[200];
    char room[4096];
    int client[2], peer[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, client) ||
        socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0, peer))
        abort();
    atomic_store(&front.front->backend[0].counts.up, true);
    hone_grpc_connection *c = hone_grpc_connection_open(&front_loop, client[0]);
    hone_grpc_link *l = hone_grpc_link_open(&front_loop, &front.front->backend[0], peer[0]);
    if (!c || !l) abort();
    l->connecting = false;
    if (send(client[1], preface, sizeof preface - 1, 0) < 0) abort();
    send_frame(client[1], 4, 0, 0, NULL, 0);
    for (int k = 0; k < 2; k++) {
        const size_t of_path = k ? sizeof path_of_stream - 1 : sizeof path - 1;
        memcpy(heads, rest, 2), memcpy(heads + 2, k ? path_of_stream : path, of_path);
        memcpy(heads + 2 + of_path, rest + 2, sizeof rest - 3);
        send_frame(client[1], 1, 4, 1 + 2 * k, heads, of_path + sizeof rest - 1);
        send_frame(client[1], 0, !k, 1 + 2 * k, message, sizeof message - 1);
    }
    bool good = hone_grpc_pipe_read(&c->pipe) && hone_grpc_pipe_write(&c->pipe);
    if (!good || !l->relay || !l->relay->after) abort(); /* both are on their way */
    hone_grpc_links_write(&front_loop);
    if (n > 100000) n = 100000;
    while (n && good && front_loop.link) {
        const size_t piece = n > 1000 ? 1000 : n;
        if (send(peer[1], data, piece, 0) != (ssize_t)piece) break;
        data += piece, n -= piece;
        hone_grpc_link *now = front_loop.link;
        while (now && now->pipe.fd != peer[0]) now = now->after;
        if (!now) break;
        now->pipe.event(&now->pipe, EPOLLIN);
        good = hone_grpc_pipe_write(&c->pipe);
        hone_grpc_links_write(&front_loop);
        while (recv(peer[1], room, sizeof room, 0) > 0) continue;
        while (recv(client[1], room, sizeof room, 0) > 0) continue;
    }
    hone_grpc_connection_close(c);
    hone_grpc_links_close(&front_loop);
    close(client[1]), close(peer[1]);
    if (front_loop.connection || front_loop.link || atomic_load(&front.held) || atomic_load(&front.busy) ||
        atomic_load(&front.front->backend[0].counts.under_way))
        abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size && *data % 3 == 2) a_server(data + 1, size - 1);
    else if (size && *data % 3) a_connection(data + 1, size - 1);
    else if (size) a_request(data + 1, size - 1);
    return 0;
}
