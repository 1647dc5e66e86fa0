/* SPDX-License-Identifier: Apache-2.0
   What tests of the server in this process share: a client of plain sockets, a repository in a folder of its
   own, and what its model says when it is run here. */
#ifndef TESTS_SERVE_HERE_H
#define TESTS_SERVE_HERE_H
#include <arpa/inet.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "hone/hone.h"
#include "hone/serve.h"
#include "random.h"

#include <cmocka.h>

enum { PIXELS = 28 * 28, ANSWER = 1 << 16 };

/* ---- a client ---- */

static inline int join_port(int port) {
    struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval patience = {20, 0};
    const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience),
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
    if (!connect(fd, (struct sockaddr *)&at, sizeof at)) return fd;
    close(fd);
    return -1;
}
static inline bool say(int fd, const void *bytes, size_t n) {
    for (const char *p = bytes; n;) {
        const ssize_t sent = send(fd, p, n, MSG_NOSIGNAL);
        if (sent <= 0) return false;
        p += sent, n -= (size_t)sent;
    }
    return true;
}
typedef struct {
    int code; /* 0: no whole answer came */
    char head[4096];
    char body[ANSWER];
    size_t n;
} answer;
/* One answer; what comes with it is all read, as Content-Length says. */
static inline int hear(int fd, answer *a) {
    char *end = NULL;
    size_t n = 0;
    memset(a, 0, sizeof *a);
    while (!end) { /* byte by byte: what follows stays for the next */
        if (n + 1 >= sizeof a->head || recv(fd, a->head + n, 1, 0) != 1) return 0;
        a->head[++n] = 0;
        if (n >= 4 && !memcmp(a->head + n - 4, "\r\n\r\n", 4)) end = a->head + n;
    }
    const char *length = strstr(a->head, "\r\nContent-Length: ");
    const size_t body = length ? strtoul(length + 18, NULL, 10) : 0;
    if (body >= sizeof a->body) return 0;
    while (a->n < body) {
        const ssize_t got = recv(fd, a->body + a->n, body - a->n, 0);
        if (got <= 0) return 0;
        a->n += (size_t)got;
    }
    return a->code = atoi(a->head + 9);
}
static inline int ask_with(int port, const char *verb, const char *path, const char *headers,
                           const void *body, size_t n, answer *a) {
    char head[1024];
    const int fd = join_port(port);
    assert_true(fd >= 0);
    const int length =
        snprintf(head, sizeof head, "%s %s HTTP/1.1\r\nHost: here\r\n%sContent-Length: %zu\r\n\r\n", verb,
                 path, headers, n);
    if (say(fd, head, (size_t)length)) say(fd, body, n);
    hear(fd, a);
    close(fd);
    return a->code;
}
static inline int get(int port, const char *path, answer *a) {
    return ask_with(port, "GET", path, "", "", 0, a);
}
static inline int post(int port, const char *path, const char *body, answer *a) {
    return ask_with(port, "POST", path, "", body, strlen(body), a);
}

/* ---- a repository, and what the model says here ---- */

static char folder[] = "/tmp/hone-serve-XXXXXX", model_file[512];
static hone_model *model;

static inline void copy_file(const char *from, const char *to) {
    char bytes[65536];
    FILE *in = fopen(from, "rb"), *out = fopen(to, "wb");
    assert_true(in && out);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    fclose(in), fclose(out);
}
static inline void put_model(const char *name, const char *version, const char *config) {
    char path[512], temp[512];
    snprintf(path, sizeof path, "%s/%s", folder, name), mkdir(path, 0700);
    if (config) {
        snprintf(path, sizeof path, "%s/%s/%s", folder, name, *config == '{' ? "hone.json" : "config.pbtxt");
        FILE *f = fopen(path, "w");
        assert_non_null(f);
        fputs(config, f), fclose(f);
    }
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, version), mkdir(path, 0700);
    snprintf(temp, sizeof temp, "%s/%s/%s/coming", folder, name, version), copy_file(model_file, temp);
    snprintf(path, sizeof path, "%s/%s/%s/model.onnx", folder, name, version), rename(temp, path);
}
static inline void picture(unsigned seed, float *x) {
    for (int k = 0; k < PIXELS; k++) {
        next_linear(&seed);
        x[k] = (float)(seed >> 8) / (float)(1 << 24);
    }
}
static inline void expect_of(const float *x, float *out) {
    const int64_t dims[] = {1, 1, 28, 28};
    hone_session *s = NULL;
    hone_value *in = NULL, *got = NULL;
    assert_int_equal(hone_session_create(model, NULL, &s), 0);
    assert_int_equal(hone_tensor_borrow(HONE_DTYPE_F32, dims, 4, x, &in), 0);
    assert_int_equal(hone_session_run(s, &in, &got), 0);
    memcpy(out, hone_value_data(got), 10 * sizeof *out);
    hone_value_free(in), hone_value_free(got), hone_session_free(s);
}
/* A binary request for one picture, whole, headers and all; its length. */
static inline size_t request_for(const char *name, const float *x, const char *more, char *out, size_t room) {
    char json[512];
    const int n = snprintf(json, sizeof json,
                           "{\"parameters\":{\"binary_data_output\":true%s},\"inputs\":[{\"name\":\"image\","
                           "\"shape\":[1,1,28,28],\"datatype\":\"FP32\","
                           "\"parameters\":{\"binary_data_size\":3136}}]}",
                           more);
    const int head = snprintf(out, room,
                              "POST /v2/models/%s/infer HTTP/1.1\r\nHost: "
                              "here\r\nInference-Header-Content-Length: %d\r\nContent-Length: %d\r\n\r\n%s",
                              name, n, n + 3136, json);
    memcpy(out + head, x, 3136);
    return (size_t)head + 3136;
}
static inline bool answers(const answer *a, const float *want) {
    float got[10];
    if (a->code != 200 || a->n < 40) return false;
    memcpy(got, a->body + a->n - 40, 40);
    for (int k = 0; k < 10; k++)
        if (!(got[k] - want[k] < 1e-4f && want[k] - got[k] < 1e-4f)) return false;
    return true;
}
static inline hone_server *start(hone_server_options *o) {
    hone_server *s = NULL;
    o->repository = o->repository ? o->repository : folder, o->http = 0;
    if (hone_server_start(o, &s)) fail_msg("%s", hone_server_error());
    return s;
}
static inline hone_server_options plain(void) {
    hone_server_options o;
    hone_server_options_default(&o);
    return o;
}

static inline int serve_begin(void **state) {
    signal(SIGPIPE, SIG_IGN);
    if (!mkdtemp(folder) || !getenv("HONE_SOURCE_DIR")) return -1;
    snprintf(model_file, sizeof model_file, "%s/examples/digits/model.onnx", getenv("HONE_SOURCE_DIR"));
    put_model("digits", "1", NULL);
    return hone_model_load(model_file, &model);
}
static inline int serve_end(void **state) {
    char line[64];
    hone_model_free(model);
    snprintf(line, sizeof line, "rm -rf %s", folder);
    return system(line);
}
#endif
