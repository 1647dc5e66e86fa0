/* SPDX-License-Identifier: Apache-2.0
   fuzz_serve: what the server reads. The first byte says as what: a config.pbtxt, a tensor's JSON data of
   some type, a BYTES tensor, a hone.json, the body of a request over HTTP, which goes through a socket to a
   server that answers it, or that of a request to load a model from files. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "repository.h"
#include "serve/http.h"
#include "serve/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* A model of an input "x" and a state, "sum" to "sum_out", one number each. */
static hone_model *small(void) {
    static const unsigned char bytes[] = {
        0x08, 0x08, 0x3a, 0x79, 0x0a, 0x10, 0x0a, 0x01, 0x78, 0x0a, 0x03, 0x73, 0x75, 0x6d, 0x12, 0x01, 0x79,
        0x22, 0x03, 0x41, 0x64, 0x64, 0x0a, 0x16, 0x0a, 0x01, 0x79, 0x12, 0x07, 0x73, 0x75, 0x6d, 0x5f, 0x6f,
        0x75, 0x74, 0x22, 0x08, 0x49, 0x64, 0x65, 0x6e, 0x74, 0x69, 0x74, 0x79, 0x12, 0x01, 0x67, 0x5a, 0x0f,
        0x0a, 0x01, 0x78, 0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x01, 0x5a, 0x11,
        0x0a, 0x03, 0x73, 0x75, 0x6d, 0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x01,
        0x62, 0x0f, 0x0a, 0x01, 0x79, 0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01, 0x12, 0x04, 0x0a, 0x02, 0x08, 0x01,
        0x62, 0x15, 0x0a, 0x07, 0x73, 0x75, 0x6d, 0x5f, 0x6f, 0x75, 0x74, 0x12, 0x0a, 0x0a, 0x08, 0x08, 0x01,
        0x12, 0x04, 0x0a, 0x02, 0x08, 0x01, 0x42, 0x02, 0x10, 0x11,
    };
    static hone_model *m;
    if (!m && hone_model_load_memory(bytes, sizeof bytes, &m)) abort();
    return m;
}
/* What of a config concerns a model: states, and a mask. */
static void of_a_model(json_t *config) {
    hone_serve_error e = {0};
    hone_port port[4];
    hone_serve_version v = {.name = (char *)"fuzzed", .config = config, .model = small(), .port = port};
    v.inputs = hone_model_inputs(v.model), v.outputs = hone_model_outputs(v.model);
    for (int k = 0; k < v.inputs + v.outputs; k++)
        port[k] = k < v.inputs ? *hone_model_input(v.model, k) : *hone_model_output(v.model, k - v.inputs);
    if (!hone_serve_ragged_read(&v, &e) != !e.code) abort();
    e.code = 0;
    if (!hone_serve_sequences_read(&v, NULL, &e) != !e.code) abort();
    hone_serve_sequences_free(v.sequences);
}
static void as_config(json_t *j) {
    hone_serve_error e = {0};
    hone_serve_version v = {.name = (char *)"fuzzed", .config = j};
    hone_serve_way w = {0};
    (void)hone_serve_config_way(&v, &w, &e);
    e.code = 0;
    if (hone_serve_config_lengthen(j, "fuzzed", &e)) return;
    hone_serve_ensemble *g = hone_serve_ensemble_read("fuzzed", j, &e);
    if (!g != (e.code != 0)) abort();
    hone_serve_ensemble_free(g);
    of_a_model(j);
}
static void a_config(const char *text, size_t n) {
    hone_serve_error e = {0};
    json_t *j = hone_serve_pbtxt(text, n, &e);
    if (!j != (e.code != 0)) abort();
    if (j) as_config(j);
    json_decref(j);
}
static void a_json(const char *text, size_t n) {
    json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, NULL);
    if (json_is_object(j)) as_config(j);
    json_decref(j);
}
static void some_data(uint8_t type, const char *text, size_t n) {
    static const hone_dtype types[] = {HONE_DTYPE_F32,  HONE_DTYPE_I8,  HONE_DTYPE_U16,    HONE_DTYPE_I64,
                                       HONE_DTYPE_BOOL, HONE_DTYPE_F64, HONE_DTYPE_STRING, HONE_DTYPE_F16};
    const hone_dtype d = types[type % 8];
    const int64_t count = type / 8 % 8;
    json_error_t where;
    hone_serve_error e = {0};
    hone_value *v = NULL;
    json_t *j = json_loadb(text, n, JSON_REJECT_DUPLICATES, &where);
    if (j && !hone_tensor_create(d, &count, 1, &v)) {
        hone_http_text t = {0};
        if (!hone_http_data_read(j, d, hone_value_data(v), v, count, "x", &e) && !hone_http_data_write(v, &t))
            abort();
        free(t.at);
    }
    hone_value_free(v), json_decref(j);
}
static void some_texts(uint8_t type, const void *bytes, size_t n) {
    const int64_t count = type % 8;
    hone_serve_error e = {0};
    hone_value *v = NULL;
    if (hone_tensor_create(HONE_DTYPE_STRING, &count, 1, &v)) return;
    if (!hone_serve_text_unpack(v, bytes, n, &e)) {
        void *back = malloc(n + 1);
        if (hone_serve_text_packed(v) != n) abort();
        if (back) hone_serve_text_pack(v, back);
        if (back && n && memcmp(back, bytes, n) != 0) abort(); /* what was read is written as it was */
        free(back);
    }
    hone_value_free(v);
}
/* Files of a request to load, as routes.c takes them. */
static void some_files(const char *text, size_t n) {
    hone_serve_given files = {0};
    hone_serve_error e = {0};
    char *body = malloc(n + 1);
    const char *name;
    json_t *j = NULL, *value;
    if (!body) return;
    if (n) memcpy(body, text, n);
    size_t left = n;
    if (!hone_serve_given_cut(&files, body, &left, &e)) {
        if (left > n || body[left]) abort();
        j = json_loadb(body, left, JSON_REJECT_DUPLICATES, NULL);
    }
    json_object_foreach(j, name, value) if (!strncmp(name, "file:", 5) && !e.code)
        hone_serve_given_name(&files, name, value, &e);
    for (int k = 0; k < files.n && !e.code; k++)
        if (*files.file[k].path == '/' || strstr(files.file[k].path, "..")) abort();
    json_decref(j), hone_serve_given_free(&files), free(body);
}
/* ---- over HTTP ---- */

static int port; /* of a server; 0: it is not started yet */
static int connected(void) {
    const struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    const struct timeval most = {20, 0};
    const int fd = socket(AF_INET, SOCK_STREAM, 0), one = 1;
    if (fd < 0 || setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one) ||
        connect(fd, (const struct sockaddr *)&to, sizeof to) ||
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most))
        abort();
    return fd;
}
/* `how`: which model, and whether the body is JSON alone, JSON of half its length before tensors, or a
   tensor. Whatever it is, there is an answer. False: the connection was closed before one came. */
static bool ask(int fd, uint8_t how, const void *body, size_t n, bool *closes) {
    char head[300], answer[2048];
    int m =
        snprintf(head, sizeof head, "POST /v2/models/%c/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %zu\r\n",
                 "fbt"[how % 3], n);
    if (how / 3 % 3)
        m += snprintf(head + m, sizeof head - (size_t)m, "Inference-Header-Content-Length: %zu\r\n",
                      how / 3 % 3 == 1 ? n / 2 : 0);
    m += snprintf(head + m, sizeof head - (size_t)m, "\r\n");
    if (send(fd, head, (size_t)m, MSG_NOSIGNAL) != m || (n && send(fd, body, n, MSG_NOSIGNAL) != (ssize_t)n))
        return false;
    size_t got = 0, want = SIZE_MAX;
    while (got < want) {
        const size_t at = got < sizeof answer - 1 ? got : sizeof answer - 2; /* the rest is not kept */
        const ssize_t r = recv(fd, answer + at, sizeof answer - 1 - at, 0);
        if (r <= 0 && !got) return false;
        if (r <= 0) abort();
        got += (size_t)r;
        if (want != SIZE_MAX) continue;
        answer[at + (size_t)r] = 0;
        const char *end = strstr(answer, "\r\n\r\n"), *length = strstr(answer, "\r\nContent-Length: ");
        if (end) want = (size_t)(end + 4 - answer) + (length ? strtoul(length + 18, NULL, 10) : 0);
        if (end && (memcmp(answer, "HTTP/1.1 ", 9) != 0 || !strncmp(answer + 9, "500", 3))) abort();
        if (end) *closes = strstr(answer, "Connection: close") != NULL;
    }
    return true;
}
static void a_body(uint8_t how, const void *body, size_t n) {
    static int fd = -1;
    bool closes = false;
    if (!port) {
        hone_server_options o;
        hone_server *server;
        hone_server_options_default(&o);
        o.repository = hone_fuzz_repository(), o.http = 0, o.watch = 0, o.max_body_bytes = 1 << 20;
        if (hone_server_start(&o, &server)) abort();
        port = hone_server_port(server, "http");
    }
    if (fd < 0 || !ask(fd, how, body, n, &closes)) { /* it was idle for too long */
        close(fd);
        if (!ask(fd = connected(), how, body, n, &closes)) abort();
    }
    if (closes) close(fd), fd = -1;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 2) return 0;
    const char *text = (const char *)data + 2;
    switch (data[0] % 6) {
    case 0: a_config(text, n - 2); break;
    case 1: some_data(data[1], text, n - 2); break;
    case 2: some_texts(data[1], text, n - 2); break;
    case 3: a_json(text, n - 2); break;
    case 5: some_files(text, n - 2); break;
    default: a_body(data[1], text, n - 2);
    }
    return 0;
}
