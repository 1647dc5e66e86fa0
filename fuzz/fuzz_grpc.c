/* SPDX-License-Identifier: Apache-2.0
   fuzz_grpc: what clients of the gRPC front send. The first byte says as what: a ModelInferRequest, a message
   of any method, or the bytes of a connection (HTTP/2's frames, HPACK and gRPC's own, behind the preface),
   which go through a socket to nghttp2 and all that it calls. */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "../tests/onnx_write.h"
#include "serve/grpc.h"

static hone_server *server;
static hone_grpc grpc;
static hone_grpc_loop loop;

static void write_model(const char *folder, const char *name, int elem) {
    char path[300];
    msg g = {0};
    snprintf(path, sizeof path, "%s/%s", folder, name), mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/1", folder, name), mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/1/model.onnx", folder, name);
    add_node(&g, node("Identity", "x", "y"));
    add_input(&g, "x", elem, "n m"), sub(&g, 12, value_info("y", elem, "n m"));
    msg m = model_of(g, 17);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(m.at, 1, m.n, f) != m.n || fclose(f)) abort();
    free(m.at);
}

int LLVMFuzzerInitialize(int *argc, char ***argv) {
    static char folder[] = "/tmp/hone-fuzz-grpc-XXXXXX";
    if (!mkdtemp(folder)) abort();
    write_model(folder, "f", 1), write_model(folder, "b", 3), write_model(folder, "t", 8);
    hone_server_options o;
    hone_server_options_default(&o);
    o.repository = folder, o.http = -1, o.watch = 0, o.max_body_bytes = 1 << 20;
    if (hone_server_start(&o, &server)) fprintf(stderr, "%s\n", hone_server_error()), abort();
    grpc = (hone_grpc){.server = server,
                       .core = hone_serve_core_of(server),
                       .o = hone_serve_options(server),
                       .listener = -1,
                       .n_loops = 1,
                       .loop = &loop};
    loop.grpc = &grpc;
    pthread_mutex_init(&loop.lock, NULL);
    loop.poll = epoll_create1(0);
    loop.wake = open("/dev/null", O_WRONLY);
    return loop.poll < 0 || loop.wake < 0;
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
    for (hone_grpc_item *i = loop.ready, *next; i; i = next)
        next = i->other, i->error.code = 499, hone_grpc_item_over(i);
    loop.ready = NULL;
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    if (size && *data % 2) a_connection(data + 1, size - 1);
    else if (size) a_request(data + 1, size - 1);
    return 0;
}
