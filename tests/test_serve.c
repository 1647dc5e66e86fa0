/* SPDX-License-Identifier: Apache-2.0
   The server in this process, on a loopback port, asked through plain sockets: what good requests get, what
   hostile ones get, and that the good go on meanwhile. Answers of models are compared with runs in this
   process. */
#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "hone/hone.h"
#include "hone/serve.h"
#include "onnx_write.h"
#include "serve/given.h"
#include "serve_here.h"

/* ---- tests ---- */

static void good(void **state) {
    hone_server_options o = plain();
    o.metrics = 0;
    hone_server *s = start(&o);
    const int port = hone_server_port(s, "http");
    static answer a;
    float x[PIXELS], want[10];
    static char request[8192];
    static const char *const told[] = {"/v2/health/live",
                                       "/v2/health/ready",
                                       "/v2",
                                       "/v2/models/digits",
                                       "/v2/models/digits/versions/1",
                                       "/v2/models/digits/ready",
                                       "/v2/models/digits/config",
                                       "/v2/models/digits/stats",
                                       "/v2/models/stats",
                                       "/metrics",
                                       "/status",
                                       "/",
                                       "/v2/models/dig%69ts"};
    for (size_t k = 0; k < sizeof told / sizeof *told; k++)
        if (get(port, told[k], &a) != 200) fail_msg("%s: %d %s", told[k], a.code, a.body);
    assert_int_equal(get(hone_server_port(s, "metrics"), "/metrics", &a), 200);
    assert_non_null(strstr(a.body, "nv_inference_request_success{model=\"digits\",version=\"1\"} 0"));
    assert_int_equal(get(hone_server_port(s, "metrics"), "/v2", &a), 404);
    picture(1, x), expect_of(x, want);
    const int fd = join_port(port); /* one connection, binary, three times */
    for (int k = 0; k < 3; k++) {
        assert_true(say(fd, request, request_for("digits", x, "", request, sizeof request)));
        if (hear(fd, &a) != 200) fail_msg("%d %s", a.code, a.body);
        assert_true(answers(&a, want));
    }
    /* in pieces that end anywhere */
    const size_t whole = request_for("digits", x, "", request, sizeof request);
    for (size_t at = 0, step = 1; at < whole; at += step, step = step * 3 % 701 + 1)
        assert_true(say(fd, request + at, whole - at < step ? whole - at : step));
    assert_int_equal(hear(fd, &a), 200);
    assert_true(answers(&a, want));
    close(fd);
    /* JSON, nested, asking for one output and an id; a batch of two */
    static char json[65536];
    size_t n = (size_t)snprintf(json, sizeof json,
                                "{\"id\":\"é1\",\"inputs\":[{\"name\":\"image\",\"shape\":[2,1,28,28],"
                                "\"datatype\":\"FP32\",\"data\":[[");
    for (int k = 0; k < 2 * PIXELS; k++)
        n += (size_t)snprintf(json + n, sizeof json - n, "%s%.9g",
                              !k            ? ""
                              : k == PIXELS ? "],["
                                            : ",",
                              (double)x[k % PIXELS]);
    snprintf(json + n, sizeof json - n, "]]}],\"outputs\":[{\"name\":\"probability\"}]}");
    assert_int_equal(post(port, "/v2/models/digits/infer", json, &a), 200);
    assert_non_null(strstr(a.body, "\"id\":\"é1\"")),
        assert_non_null(strstr(a.body, "\"shape\":[2,10],\"data\":["));
    assert_true(strtof(strstr(a.body, "\"data\":[") + 8, NULL) - want[0] < 1e-4f);
    /* the same, compressed */
    static unsigned char small[65536];
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 1, Z_DEFLATED, 31, 8, Z_DEFAULT_STRATEGY), Z_OK);
    z.next_in = (unsigned char *)json, z.avail_in = (unsigned)strlen(json), z.next_out = small,
    z.avail_out = sizeof small;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    const size_t packed = z.total_out;
    deflateEnd(&z);
    assert_int_equal(
        ask_with(port, "POST", "/v2/models/digits/infer", "Content-Encoding: gzip\r\n", small, packed, &a),
        200);
    assert_int_equal(ask_with(port, "POST", "/v2/models/digits/infer", "Content-Encoding: gzip\r\n", small,
                              packed / 2, &a),
                     400);
    small[20] ^= 0x55;
    assert_int_equal(
        ask_with(port, "POST", "/v2/models/digits/infer", "Content-Encoding: gzip\r\n", small, packed, &a),
        400);
    /* a body that is the tensor, and classes */
    assert_int_equal(ask_with(port, "POST", "/v2/models/digits/infer",
                              "Inference-Header-Content-Length: 0\r\n", x, sizeof x, &a),
                     200);
    assert_true(answers(&a, want));
    int best = 0;
    for (int k = 1; k < 10; k++) best = want[k] > want[best] ? k : best;
    snprintf(json, sizeof json, ":%d", best);
    n = (size_t)snprintf((char *)small, sizeof small,
                         "{\"outputs\":[{\"name\":\"probability\",\"parameters\":{\"classification\":1}}],"
                         "\"inputs\":[{\"name\":\"image\","
                         "\"shape\":[1,1,28,28],"
                         "\"datatype\":\"FP32\",\"data\":[%g",
                         (double)x[0]);
    for (int k = 1; k < PIXELS; k++)
        n += (size_t)snprintf((char *)small + n, sizeof small - n, ",%.9g", (double)x[k]);
    snprintf((char *)small + n, sizeof small - n, "]}]}");
    assert_int_equal(post(port, "/v2/models/digits/infer", (char *)small, &a), 200);
    assert_non_null(strstr(a.body, "\"datatype\":\"BYTES\",\"shape\":[1,1]")),
        assert_non_null(strstr(a.body, json));
    /* a picture */
    char path[512];
    snprintf(path, sizeof path, "%s/examples/characters/h.png", getenv("HONE_SOURCE_DIR"));
    FILE *f = fopen(path, "rb");
    assert_non_null(f);
    n = fread(small, 1, sizeof small, f), fclose(f);
    const int code = ask_with(port, "POST", "/v2/models/digits/classify", "", small, n, &a);
    /* its library may be missing */
    if (code != 200 && !strstr(a.body, "libpng")) fail_msg("classify: %d %s", code, a.body);
    assert_int_equal(ask_with(port, "POST", "/v2/models/digits/classify", "", small + 1, n - 1, &a), 400);
    assert_int_equal(get(port, "/v2/models/digits/stats", &a), 200);
    assert_non_null(strstr(a.body, "\"success\":{\"count\":8") ? strstr(a.body, "\"success\"")
                                                               : strstr(a.body, "\"success\":{\"count\":9"));
    assert_int_equal(hone_server_stop(s, 5000), 0);
    assert_int_equal(join_port(port), -1);
    hone_server_free(s);
}

/* What is sent, and what comes back; 0: the connection is closed or an answer is not needed. BODY stands for
   a good request's headers. */
static const struct {
    const char *verb, *path, *headers, *body;
    int code;
} hostile[] = {
#define INFER "POST", "/v2/models/digits/infer", ""
#define WITH(SHAPE, MORE) \
    "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP32\",\"shape\":" SHAPE "," MORE "}]}"
    {"GET", "/v2/models/none", "", "", 404},
    {"GET", "/v2/models/digits/versions/7", "", "", 404},
    {"GET", "/v2/models/digits/versions/0", "", "", 404},
    {"GET", "/v2/models/digits/versions/99999999999999999999", "", "", 404},
    {"GET", "/v2/models//", "", "", 404},
    {"GET", "/v2/models/%00", "", "", 404},
    {"GET", "/v2/models/../../etc/passwd", "", "", 404},
    {"GET", "/v2/models/digits/infer", "", "", 405},
    {"POST", "/v2", "", "{}", 405},
    {"DELETE", "/v2", "", "", 405},
    {INFER, "", 400},
    {INFER, "{", 400},
    {INFER, "[]", 400},
    {INFER, "{}", 400},
    {INFER, "{\"inputs\":{}}", 400},
    {INFER, "{\"inputs\":[]}", 400},
    {INFER, "{\"inputs\":[1]}", 400},
    {INFER, "{\"inputs\":[{\"name\":\"image\"}]}", 400},
    {INFER, WITH("[1,1,28,28]", "\"data\":[1]"), 400},
    {INFER, WITH("[1,1,28,28]", "\"data\":5"), 400},
    {INFER, WITH("[1,1,28]", "\"data\":[1]"), 400},
    {INFER, WITH("[-1,1,28,28]", "\"data\":[1]"), 400},
    {INFER, WITH("[1,1,28,29]", "\"data\":[1]"), 400},
    {INFER, WITH("[9223372036854775807,1,28,28]", "\"data\":[1]"), 400},
    {INFER, WITH("[100000000000,1,28,28]", "\"data\":[1]"), 400},
    {INFER, WITH("[0,1,28,28]", "\"data\":[1]"), 400},
    {INFER, WITH("[1.5,1,28,28]", "\"data\":[1]"), 400},
    {INFER, WITH("\"x\"", "\"data\":[1]"), 400},
    {INFER, WITH("[1,1,28,28]", "\"data\":[\"a\"]"), 400},
    {INFER, WITH("[1,1,28,28]", "\"parameters\":{\"binary_data_size\":3136}"), 400},
    {INFER, WITH("[1,1,28,28]", "\"parameters\":{\"binary_data_size\":-1}"), 400},
    {INFER, WITH("[1,1,28,28]", "\"parameters\":{\"shared_memory_region\":\"r\"}"), 400},
    {INFER, "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"INT8\",\"shape\":[1],\"data\":[1]}]}", 400},
    {INFER, "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"BYTES\",\"shape\":[1],\"data\":[\"a\"]}]}", 400},
    {INFER, "{\"inputs\":[{\"name\":\"image\",\"datatype\":\"FP99\",\"shape\":[1],\"data\":[1]}]}", 400},
    {INFER, "{\"inputs\":[{\"name\":\"other\",\"datatype\":\"FP32\",\"shape\":[1],\"data\":[1]}]}", 400},
    {"POST", "/v2/models/digits/infer", "Inference-Header-Content-Length: 99\r\n", "{}", 400},
    {"POST", "/v2/models/digits/infer", "Inference-Header-Content-Length: -1\r\n", "{}", 400},
    {"POST", "/v2/models/digits/infer", "Inference-Header-Content-Length: x\r\n", "{}", 400},
    {"POST", "/v2/models/digits/infer", "Inference-Header-Content-Length: 0\r\n", "abc", 400},
    {"POST", "/v2/models/digits/infer", "Inference-Header-Content-Length: 13\r\n", "{\"inputs\":[]}abc", 400},
    {"POST", "/v2/models/digits/infer", "Content-Encoding: br\r\n", "abc", 415},
    {"POST", "/v2/models/digits/infer", "Content-Encoding: gzip\r\n", "abc", 400},
    {"POST", "/v2/models/none/infer", "", "{}", 404},
    {"POST", "/v2/models/digits/classify", "", "", 400},
    {"POST", "/v2/models/digits/classify", "", "GIF89a no picture", 400},
    {"POST", "/v2/repository/index", "", "[", 400},
    {"POST", "/v2/repository/models/none/load", "", "", 400},
    {"POST", "/v2/repository/models/none/unload", "", "", 400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"parameters\":{\"config\":\"{\"}}", 400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"parameters\":{\"config\":3}}", 400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"parameters\":{\"file:1/model.onnx\":\"AAAA\"}}",
     400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"parameters\":{\"file:1/model.onnx\":\"A?==\"}}",
     400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"parameters\":{\"file:1/model.onnx\":\"\"}}", 400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"parameters\":{\"file:1/model.onnx\":0}}", 400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"parameters\":{\"file:1/model.onnx\":\"AAAA", 400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"file:1/model.onnx\":\"AAAA\"}", 400},
    {"POST", "/v2/repository/models/digits/load", "", "{\"parameters\":{\"\\u0066ile:1/model.onnx\":\"0\"}}",
     400},
};
/* Sent as it stands, then the connection is closed, whatever the server says. */
static const char *const broken[] = {
    "",
    "\r\n\r\n",
    "GET",
    "GET / HTTP/1.1",
    "GET / HTTP/9.9\r\n\r\n",
    "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
    "POST /v2/models/digits/infer HTTP/1.1\r\n",
    "POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 100\r\n\r\n{\"inp",
    "POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\nContent-Length: -5\r\n\r\n{}",
    "POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 99999999999999999999999\r\n\r\n{}",
    "POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    "POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: "
    "chunked\r\n\r\nffffffffffffffffff\r\n{",
    "POST /v2/models/digits/infer HTTP/1.1\r\nHost: h\r\nContent-Length: 30\r\nContent-Length: 2\r\n\r\n{}",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
};
static void bad(void **state) {
    hone_server_options o = plain();
    hone_server *s = start(&o);
    const int port = hone_server_port(s, "http");
    static answer a;
    float x[PIXELS], want[10];
    static char request[8192];
    picture(2, x), expect_of(x, want);
    for (size_t k = 0; k < sizeof hostile / sizeof *hostile; k++) {
        const int code = ask_with(port, hostile[k].verb, hostile[k].path, hostile[k].headers, hostile[k].body,
                                  strlen(hostile[k].body), &a);
        if (code != hostile[k].code)
            fail_msg("%s %s %s: %d instead of %d: %s", hostile[k].verb, hostile[k].path, hostile[k].body,
                     code, hostile[k].code, a.body);
        if (a.n && !strstr(a.body, "\"error\":\""))
            fail_msg("%s %s: no error in '%s'", hostile[k].verb, hostile[k].path, a.body);
    }
    int waiting[sizeof broken / sizeof *broken];
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) {
        waiting[k] = join_port(port); /* left open, too */
        say(waiting[k], broken[k], strlen(broken[k]));
        const int fd = join_port(port);
        say(fd, broken[k], strlen(broken[k]));
        close(fd);
    }
    const size_t whole = request_for("digits", x, "", request, sizeof request);
    for (size_t n = 1; n < whole; n += 97) { /* cut anywhere */
        const int fd = join_port(port);
        say(fd, request, n);
        close(fd);
    }
    const int good_one = join_port(port);
    for (int k = 0; k < 5; k++) {
        assert_true(say(good_one, request, whole));
        assert_int_equal(hear(good_one, &a), 200);
        assert_true(answers(&a, want));
    }
    close(good_one);
    for (size_t k = 0; k < sizeof broken / sizeof *broken; k++) close(waiting[k]);
    assert_int_equal(hone_server_stop(s, 5000), 0);
    hone_server_free(s);
}

static void limits(void **state) {
    char keys[512];
    static answer a;
    snprintf(keys, sizeof keys, "%s/keys", folder);
    FILE *f = fopen(keys, "w");
    assert_non_null(f);
    fputs("alpha\nbeta-2\n", f), fclose(f);
    hone_server_options o = plain();
    o.api_keys = keys, o.max_body_bytes = 10000, o.max_json_bytes = 2000, o.max_header_bytes = 2000,
    o.request_seconds = 1, o.rate = 20;
    hone_server *s = start(&o);
    const int port = hone_server_port(s, "http");
    static char large[20000];
    memset(large, 'x', sizeof large - 1);
    assert_int_equal(get(port, "/v2", &a), 401);
    assert_int_equal(get(port, "/v2/health/live", &a), 200);
    assert_int_equal(ask_with(port, "GET", "/v2", "Authorization: Bearer alph\r\n", "", 0, &a), 401);
    assert_int_equal(ask_with(port, "GET", "/v2", "Authorization: Bearer alphaalpha\r\n", "", 0, &a), 401);
    assert_int_equal(ask_with(port, "GET", "/v2", "Authorization: Bearer \r\n", "", 0, &a), 401);
    assert_int_equal(ask_with(port, "GET", "/v2", "Authorization: Bearer beta-2\r\n", "", 0, &a), 200);
    assert_int_equal(
        ask_with(port, "POST", "/v2/models/digits/infer", "Authorization: Bearer alpha\r\n", large, 5000, &a),
        413);
    assert_int_equal(ask_with(port, "POST", "/v2/models/digits/infer", "Authorization: Bearer alpha\r\n",
                              large, sizeof large, &a),
                     413);
    char header[4000];
    memset(header, 'h', sizeof header), memcpy(header, "X: ", 3), memcpy(header + 3000, "\r\n", 3);
    char head[5000];
    snprintf(head, sizeof head, "GET /v2/health/live HTTP/1.1\r\nHost: h\r\n%s\r\n", header);
    int fd = join_port(port);
    say(fd, head, strlen(head));
    assert_int_equal(hear(fd, &a), 431);
    close(fd);
    int refused = 0;
    for (int k = 0; k < 60 && !refused; k++)
        refused = ask_with(port, "GET", "/v2", "Authorization: Bearer alpha\r\n", "", 0, &a) == 429;
    assert_true(refused);
    assert_non_null(strstr(a.head, "Retry-After:"));
    fd = join_port(port); /* headers that never end */
    assert_true(say(fd, "GET /v2 HTTP/1.1\r\nHost: h\r\nX: ", 30));
    assert_int_equal(recv(fd, head, 1, 0) > 0, 0);
    close(fd);
    hone_server_free(s);
    o.api_keys = "/none/such";
    assert_int_equal(hone_server_start(&o, &s), HONE_IO);
    o.api_keys = NULL, o.repository = "/none/such";
    assert_int_equal(hone_server_start(&o, &s), HONE_IO);
    o.repository = folder, o.goal = "fast";
    assert_int_equal(hone_server_start(&o, &s), HONE_BAD_INPUT);
    o.goal = NULL, o.certificate = keys, o.key = keys;
    assert_int_equal(hone_server_start(&o, &s), HONE_IO);
}

static void base64(void **state) { /* as files come over HTTP */
    const struct {
        const char *text, *bytes; /* NULL: it is none */
    } rows[] = {{"", ""},        {"QQ==", "A"},     {"QQ", "A"},          {"QUI=", "AB"},
                {"QUJD", "ABC"}, {"Pz8\\/", "???"}, {"QUJDRA==", "ABCD"}, {"QUJDREVG", "ABCDEF"},
                {"Q", NULL},     {"QUJDR", NULL},   {"QQ===", NULL},      {"QU=D", NULL},
                {"Q===", NULL},  {"QUJ?", NULL},    {"QUJD\\n", NULL}};
    uint8_t out[32];
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        const int64_t n = hone_serve_base64(rows[k].text, strlen(rows[k].text), out);
        assert_int_equal(n, rows[k].bytes ? (int64_t)strlen(rows[k].bytes) : -1);
        if (n > 0) assert_memory_equal(out, rows[k].bytes, (size_t)n);
    }
}
static void count_lines(void *n, const char *line) { ++*(int *)n; }
static void named(void **state) { /* what is named itself must be there, and one line says why it is not */
    hone_server_options o = plain();
    hone_server *s = NULL;
    char broken[512];
    int lines = 0;
    snprintf(broken, sizeof broken, "%s-broken.onnx", folder);
    FILE *f = fopen(broken, "w");
    assert_non_null(f);
    fputs("no model", f), fclose(f);
    const char *one[] = {"gone", NULL}, *both[] = {"digits", "bad", NULL};
    const struct {
        const char *repository, *const *load, *says;
        hone_status status;
    } rows[] = {{"zoo:nope", NULL, "zoo:nope cannot be loaded: ", HONE_BAD_INPUT},
                {broken, NULL, "-broken.onnx cannot be loaded: ", HONE_BAD_INPUT},
                {folder, one, "gone is not in ", HONE_IO},
                {folder, both, "bad cannot be loaded: ", HONE_BAD_INPUT}};
    put_model("digits", "1", NULL), put_model("bad", "1", "{ no config");
    o.http = 0, o.tell = count_lines, o.arg = &lines;
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        o.repository = rows[k].repository, o.load = rows[k].load, o.explicit_load = rows[k].load != NULL;
        assert_int_equal(hone_server_start(&o, &s), rows[k].status);
        if (!strstr(hone_server_error(), rows[k].says) || strchr(hone_server_error(), '\n'))
            fail_msg("row %zu: %s", k, hone_server_error());
    }
    assert_in_range(lines, 0, 2); /* the last row's: that digits are ready, and its end */
    o.repository = folder, o.load = NULL, o.explicit_load = 0; /* of a folder's others the rest goes on */
    s = start(&o);
    assert_true(lines > 2);
    hone_server_free(s), unlink(broken);
}

/* ---- many at once ---- */

typedef struct {
    int port, rounds;
    unsigned seed;
    const char *name;
    atomic_int *good, *wrong, *lost, *stop;
} client;
/* The server stops: a connection on which nothing was said while it looked is closed, so what is said on it
   afterwards was not accepted. Those that only the kernel has seen are serve_strained.py's. */
static atomic_bool stopping;
static void *keep_asking(void *arg) {
    client *c = arg;
    float x[PIXELS], want[10];
    char *request = malloc(8192);
    answer *a = malloc(sizeof *a);
    picture(c->seed, x), expect_of(x, want);
    int fd = join_port(c->port);
    bool fresh = true;
    const size_t n = request_for(c->name, x, "", request, 8192);
    for (int k = 0; fd >= 0 && k < c->rounds && !atomic_load(c->stop); k++) {
        if (!say(fd, request, n) || !hear(fd, a)) {
            atomic_fetch_add(c->lost, !(fresh && atomic_load(&stopping)));
            break;
        }
        fresh = false;
        atomic_fetch_add(answers(a, want) ? c->good : c->wrong, 1);
        if (strstr(a->head, "Connection: close")) {
            close(fd);
            fd = join_port(c->port), fresh = true;
        }
    }
    if (fd >= 0) close(fd);
    free(request), free(a);
    return NULL;
}
enum { CLIENTS = 8 };
typedef struct {
    pthread_t thread[CLIENTS];
    client c[CLIENTS];
    atomic_int good, wrong, lost, stop;
} crowd;
static void crowd_begin(crowd *all, int port, const char *name, int rounds) {
    atomic_init(&all->good, 0), atomic_init(&all->wrong, 0), atomic_init(&all->lost, 0),
        atomic_init(&all->stop, 0);
    for (int k = 0; k < CLIENTS; k++) {
        all->c[k] =
            (client){port, rounds, (unsigned)k + 10, name, &all->good, &all->wrong, &all->lost, &all->stop};
        assert_int_equal(pthread_create(&all->thread[k], NULL, keep_asking, &all->c[k]), 0);
    }
}
static void crowd_end(crowd *all) {
    for (int k = 0; k < CLIENTS; k++) pthread_join(all->thread[k], NULL);
}
static void batches(void **state) {
    put_model("joined", "1",
              "max_batch_size: 8 # a comment\ndynamic_batching {\n  preferred_batch_size: [2, 4, 8]\n  "
              "max_queue_delay_microseconds: 3000\n}\n"
              "instance_group [ { count: 1 kind: KIND_CPU } ]\n");
    hone_server_options o = plain();
    hone_server *s = start(&o);
    static crowd all;
    static answer a;
    const int port = hone_server_port(s, "http");
    if (get(port, "/v2/models/joined/config", &a) != 200) fail_msg("%s", a.body);
    assert_non_null(strstr(a.body, "\"preferred_batch_size\":[1,2,4,8]"));
    crowd_begin(&all, port, "joined", 20);
    crowd_end(&all);
    assert_int_equal(atomic_load(&all.good), CLIENTS * 20);
    assert_int_equal(atomic_load(&all.wrong) + atomic_load(&all.lost), 0);
    assert_int_equal(get(port, "/v2/models/joined/stats", &a), 200);
    const char *runs = strstr(a.body, "\"execution_count\":"),
               *count = strstr(a.body, "\"inference_count\":");
    assert_true(runs && count);
    assert_int_equal(atoi(count + 18), CLIENTS * 20);
    if (atoi(runs + 18) >= CLIENTS * 20) fail_msg("no batch was made: %s", a.body);
    hone_server_free(s);
}
/* Requests whose inputs disagree about rows, and a first dim that the model states: no batch is made of the
   ones, and the others are refused. The queue would wait ten seconds for company, or until there are
   8 rows, as many as four requests of two (or three of three) have: were they joined, all would be there. */
static void rows_of_inputs(void **state) {
    enum { MANY = 4 };
    static const char config[] =
        "{\"max_batch_size\": 8, \"dynamic_batching\": {\"max_queue_delay_microseconds\": 10000000, "
        "\"preferred_batch_size\": [6, 8]}, \"instance_group\": [{\"count\": 1}]}";
    const struct {
        const char *name, *dims, *config;
    } models[] = {{"pairs", "N 2", config}, {"three", "3 2", NULL}};
    for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
        char path[512];
        msg g = {0};
        text(&g, 2, "g");
        add_node(&g, node("Neg", "a", "p")), add_node(&g, node("Abs", "b", "q"));
        add_input(&g, "a", 1, models[k].dims), add_input(&g, "b", 1, k ? "3 2" : "M 2");
        add_output(&g, "p"), add_output(&g, "q");
        const msg m = model_of(g, 21);
        put_model(models[k].name, "1", models[k].config);
        snprintf(path, sizeof path, "%s/%s/1/model.onnx", folder, models[k].name);
        FILE *f = fopen(path, "wb");
        assert_non_null(f);
        assert_int_equal(fwrite(m.at, 1, m.n, f), m.n);
        fclose(f), free(m.at);
    }
    hone_server_options o = plain();
    hone_server *s = start(&o);
    static answer a;
    const int port = hone_server_port(s, "http");
    int fd[MANY];
    char body[512], request[1024];
    for (int k = 0; k < MANY; k++) { /* before any answer is read */
        const int v = 10 * k;
        const int n = snprintf(body, sizeof body,
                               "{\"inputs\":[{\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":["
                               "%d,%d,%d,%d]},{\"name\":"
                               "\"b\",\"shape\":[3,2],\"datatype\":\"FP32\",\"data\":[%d,%d,%d,%d,%d,%d]}]}",
                               v, v + 1, v + 2, v + 3, -v - 4, -v - 5, -v - 6, -v - 7, -v - 8, -v - 9);
        const int all = snprintf(request, sizeof request,
                                 "POST /v2/models/pairs/infer HTTP/1.1\r\nHost: here\r\nContent-Length: "
                                 "%d\r\n\r\n%s",
                                 n, body);
        fd[k] = join_port(port);
        assert_true(say(fd[k], request, (size_t)all));
    }
    for (int k = 0; k < MANY; k++) {
        const int v = 10 * k;
        char p[64], q[96];
        snprintf(p, sizeof p, "\"data\":[-%d,-%d,-%d,-%d]", v, v + 1, v + 2, v + 3);
        snprintf(q, sizeof q, "\"data\":[%d,%d,%d,%d,%d,%d]", v + 4, v + 5, v + 6, v + 7, v + 8, v + 9);
        assert_int_equal(hear(fd[k], &a), 200);
        if (!strstr(a.body, p) || !strstr(a.body, q)) fail_msg("%s and %s are due: %s", p, q, a.body);
        close(fd[k]);
    }
    assert_int_equal(get(port, "/v2/models/pairs/stats", &a), 200);
    const char *runs = strstr(a.body, "\"execution_count\":");
    assert_non_null(runs);
    if (atoi(runs + 18) != MANY) fail_msg("%d requests, each a run of its own: %s", MANY, a.body);
    const char *few =
        "{\"inputs\":[{\"name\":\"a\",\"shape\":[2,2],\"datatype\":\"FP32\",\"data\":[1,2,3,4]},"
        "{\"name\":\"b\",\"shape\":[3,2],\"datatype\":\"FP32\",\"data\":[1,2,3,4,5,6]}]}";
    assert_int_equal(ask_with(port, "POST", "/v2/models/three/infer", "", few, strlen(few), &a), 400);
    if (!strstr(a.body, "input 'a' of model 'three': dim 0 is 2, and the model wants 3"))
        fail_msg("%s", a.body);
    hone_server_free(s);
    (void)state;
}
static void full(void **state) {
    put_model("full", "1",
              "{\"dynamic_batching\": {\"max_queue_delay_microseconds\": 300000, \"preferred_batch_size\": "
              "[8], \"default_queue_policy\": "
              "{\"max_queue_size\": 2}}, \"max_batch_size\": 8, \"instance_group\": [{\"count\": 1}]}");
    put_model("late", "1",
              "{\"dynamic_batching\": {\"max_queue_delay_microseconds\": 100000, \"preferred_batch_size\": "
              "[8]}, \"max_batch_size\": 8}");
    hone_server_options o = plain();
    o.queue = 100;
    hone_server *s = start(&o);
    static answer a;
    static char request[8192];
    float x[PIXELS], want[10];
    const int port = hone_server_port(s, "http");
    picture(3, x), expect_of(x, want);
    int fd[4], got[4] = {0};
    for (int k = 0; k < 4; k++) { /* two wait for company, two find the queue full */
        fd[k] = join_port(port);
        assert_true(say(fd[k], request, request_for("full", x, "", request, sizeof request)));
        usleep(20000);
    }
    for (int k = 3; k >= 0; k--) {
        got[k] = hear(fd[k], &a);
        if (got[k] == 503) assert_non_null(strstr(a.head, "Retry-After: "));
        else assert_true(answers(&a, want));
        close(fd[k]);
    }
    assert_int_equal(got[0], 200), assert_int_equal(got[1], 200), assert_int_equal(got[2], 503),
        assert_int_equal(got[3], 503);
    fd[0] = join_port(port); /* it may wait 1 ms, and waits 100 */
    assert_true(say(fd[0], request, request_for("late", x, ",\"timeout\":1000", request, sizeof request)));
    assert_int_equal(hear(fd[0], &a), 503);
    assert_non_null(strstr(a.body, "timeout"));
    close(fd[0]);
    hone_server_free(s);
}
static void reloads(void **state) {
    put_model("moving", "1", "{\"version_policy\": {\"latest\": {\"num_versions\": 2}}}");
    hone_server_options o = plain();
    hone_server *s = start(&o);
    static crowd all;
    static answer a;
    const int port = hone_server_port(s, "http");
    char version[16], path[512];
    crowd_begin(&all, port, "moving", 1 << 30);
    for (int k = 2; k < 12; k++) {
        snprintf(version, sizeof version, "%d", k);
        put_model("moving", version, NULL);
        assert_int_equal(post(port, "/v2/repository/models/moving/load", "", &a), 200);
        snprintf(path, sizeof path, "/v2/models/moving/versions/%d/ready", k);
        assert_int_equal(get(port, path, &a), 200);
        snprintf(path, sizeof path, "/v2/models/moving/versions/%d/ready", k - 2);
        assert_int_equal(get(port, path, &a), 400);
    }
    atomic_store(&all.stop, 1);
    crowd_end(&all);
    assert_int_equal(atomic_load(&all.wrong) + atomic_load(&all.lost), 0);
    assert_true(atomic_load(&all.good) > 0);
    assert_int_equal(post(port, "/v2/repository/models/moving/unload", "", &a), 200);
    assert_int_equal(get(port, "/v2/models/moving/ready", &a), 400);
    /* the folder is followed: a new model comes by itself, a broken one says why */
    put_model("fresh", "3", NULL);
    int code = 0;
    for (int k = 0; k < 100 && code != 200; k++)
        usleep(50000), code = get(port, "/v2/models/fresh/versions/3/ready", &a);
    assert_int_equal(code, 200);
    snprintf(path, sizeof path, "%s/fresh/4", folder), mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/fresh/4/model.onnx", folder);
    FILE *f = fopen(path, "w");
    fputs("this is no model", f), fclose(f);
    for (int k = 0; k < 100; k++) {
        usleep(50000), post(port, "/v2/repository/index", "", &a);
        if (strstr(a.body, "\"name\":\"fresh\",\"version\":\"4\",\"state\":\"UNAVAILABLE\"")) break;
    }
    assert_non_null(strstr(a.body, "\"name\":\"fresh\",\"version\":\"4\",\"state\":\"UNAVAILABLE\""));
    hone_server_free(s);
}
/* What was measured is found again, and what is damaged is not believed. */
static void kept(void **state) {
    static answer a;
    char file[512];
    const char *was = getenv("HONE_WISDOM");
    char *before = was ? strdup(was) : NULL;
    snprintf(file, sizeof file, "%s/wisdom", folder), setenv("HONE_WISDOM", file, 1);
    snprintf(file, sizeof file, "%s/wisdom.serve", folder);
    static const char *const damage[] = {NULL, NULL, "", "{", "[]", "{\"a\": 1}"};
    bool found = false;
    const size_t n = sizeof damage / sizeof *damage;
    for (size_t k = 0; k < n + 8 && !(k >= n && found); k++) {
        const char *text = k < n ? damage[k] : NULL;
        FILE *f = fopen(file, text ? "w" : "r");
        char head[512] = "";
        if (f && text) fputs(text, f);
        if (f && !text) (void)!fread(head, 1, sizeof head - 1, f);
        if (f) fclose(f);
        hone_server_options o = plain();
        o.repository = model_file; /* alone: another of the same bytes would be measured for it */
        hone_server *s = start(&o);
        assert_int_equal(get(hone_server_port(s, "http"), "/v2/models/model/config", &a), 200);
        /* where the machine was busy nothing was kept */
        const bool now = strstr(a.body, "\"measured\":\"now\"") != NULL,
                   written = strstr(head, "alone_ns") != NULL;
        assert_int_equal(now, !written);
        found |= written;
        hone_server_free(s);
    }
    if (before) setenv("HONE_WISDOM", before, 1);
    else unsetenv("HONE_WISDOM");
    free(before);
}
static void stops(void **state) {
    for (int round = 0; round < 3; round++) {
        hone_server_options o = plain();
        hone_server *s = start(&o);
        static crowd all;
        crowd_begin(&all, hone_server_port(s, "http"), "digits", 1 << 30);
        usleep(100000);
        atomic_store(&stopping, true);
        assert_int_equal(hone_server_stop(s, 10000), 0);
        crowd_end(&all);
        atomic_store(&stopping, false);
        assert_int_equal(atomic_load(&all.lost) + atomic_load(&all.wrong), 0);
        assert_true(atomic_load(&all.good) > 0);
        hone_server_free(s);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(good),           cmocka_unit_test(bad),
                                       cmocka_unit_test(limits),         cmocka_unit_test(batches),
                                       cmocka_unit_test(rows_of_inputs), cmocka_unit_test(full),
                                       cmocka_unit_test(reloads),        cmocka_unit_test(kept),
                                       cmocka_unit_test(base64),         cmocka_unit_test(named),
                                       cmocka_unit_test(stops)};
    return cmocka_run_group_tests(tests, serve_begin, serve_end);
}
