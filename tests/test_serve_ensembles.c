/* SPDX-License-Identifier: Apache-2.0
   Ensembles and sequences by config: what is taken, what is refused and why, what they answer. */
#include "serve_here.h"

/* A model's folder with only a config in it; NULL: no config. */
static void put_config(const char *name, const char *config) {
    char path[512];
    snprintf(path, sizeof path, "%s/%s", folder, name), mkdir(path, 0700);
    snprintf(path, sizeof path, "%s/%s/%s", folder, name, *config == '{' ? "hone.json" : "config.pbtxt");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(config, f), fclose(f);
}
#define STEP(MODEL, IN, OUT)                                                                                \
    "{\"model\": \"" MODEL "\", \"inputs\": {\"image\": \"" IN "\"}, \"outputs\": {\"probability\": \"" OUT \
    "\"}"                                                                                                   \
    "}"
static void ensembles(void **state) {
    static const struct {
        const char *name, *config, *why; /* why NULL: it is loaded */
    } rows[] = {
        {"one", "{\"ensemble\": [" STEP("digits", "picture", "scores") "]}", NULL},
        {"fork",
         "{\"ensemble\": [" STEP("digits", "picture", "a") ", "
                                                           "{\"model\": \"one_\", \"inputs\": {\"image\": "
                                                           "\"picture\"}, \"outputs\": {\"scores\": \"b\"}}"
                                                           "]}",
         NULL},
        {"one_",
         "{\"ensemble\": [{\"model\": \"one\", \"inputs\": {\"picture\": \"image\"}, \"outputs\": "
         "{\"scores\": \"scores\"}}]}",
         NULL},
        {"no steps", "platform: \"ensemble\"", "has 0 steps"},
        {"no model",
         "platform: \"ensemble\" ensemble_scheduling { step { model_version: -1 output_map { key: "
         "\"a\" value: \"b\" } } }",
         "step 1 names no model"},
        {"not a list", "{\"ensemble\": 7}", "is to be a list"},
        {"not a map", "{\"ensemble\": [{\"model\": \"digits\", \"inputs\": [1]}]}", "maps are to be objects"},
        {"not a name", "{\"ensemble\": [{\"model\": \"digits\", \"inputs\": {\"image\": 3}}]}",
         "without a name"},
        {"no outputs", "{\"ensemble\": [{\"model\": \"digits\", \"inputs\": {\"image\": \"x\"}}]}",
         "has no outputs"},
        {"chained", "{\"ensemble\": [" STEP("digits", "picture", "t") ", " STEP("digits", "t", "u") "]}",
         "step 2 ('digits'): 'image' has 4 dims, and tensor 't' has 2"},
        {"me", "{\"ensemble\": [" STEP("me", "a", "b") "]}", "contains itself, by step 1 ('me')"},
    };
    const size_t n = sizeof rows / sizeof *rows;
    for (size_t k = 0; k < n; k++) put_config(rows[k].name, rows[k].config);
    put_model("stateful", "1", "{\"sequence_batching\": {}}");
    put_model("stateless", "1", "{\"sequence_batching\": {\"state\": {\"image\": \"probability\"}}}");
    hone_server_options o = plain();
    hone_server *s = start(&o);
    const int port = hone_server_port(s, "http");
    static answer a;
    static char body[3 * PIXELS * 16];
    char path[512];
    float x[PIXELS], want[10];
    assert_int_equal(post(port, "/v2/repository/index", "", &a), 200);
    for (size_t k = 0; k < n; k++) {
        snprintf(path, sizeof path, "\"name\":\"%s\",\"version\":\"1\",\"state\":\"%s\"", rows[k].name,
                 rows[k].why ? "UNAVAILABLE" : "READY");
        const char *at = strstr(a.body, path);
        if (!at) fail_msg("%s: %s", rows[k].name, a.body);
        if (rows[k].why && (!(at = strstr(at, rows[k].why)) || at > strstr(a.body, path) + 300))
            fail_msg("%s: %s", rows[k].name, strstr(a.body, path));
    }
    assert_non_null(strstr(a.body, "has not the same rank as input and as output")); /* stateless */
    picture(3, x), expect_of(x, want);
    size_t at = 0; /* the request of "digits", with another name of its input */
    at += (size_t)snprintf(
        body, sizeof body,
        "{\"inputs\":[{\"name\":\"picture\",\"shape\":[1,1,28,28],\"datatype\":\"FP32\",\"data\":[");
    for (int k = 0; k < PIXELS; k++)
        at += (size_t)snprintf(body + at, sizeof body - at, "%s%.9g", k ? "," : "", (double)x[k]);
    snprintf(body + at, sizeof body - at, "]}],\"parameters\":{\"binary_data_output\":true}}");
    assert_int_equal(post(port, "/v2/models/one/infer", body, &a), 200);
    assert_true(answers(&a, want));
    assert_int_equal(post(port, "/v2/models/fork/infer", body, &a), 200);
    assert_true(answers(&a, want)); /* its last output, by two ensembles */
    assert_int_equal(post(port, "/v2/models/one/infer", "{\"inputs\":[]}", &a), 400);
    /* a sequence of a model without states: only order, and the rules */
    static char request[8192];
    static const struct {
        const char *more;
        int code;
    } parts[] = {{",\"sequence_id\":4", 400},
                 {"", 400},
                 {",\"sequence_id\":\"\",\"sequence_start\":true", 400},
                 {",\"sequence_id\":-4.5", 400},
                 {",\"sequence_id\":4,\"sequence_start\":true", 200},
                 {",\"sequence_id\":4", 200},
                 {",\"sequence_id\":\"4\"", 400},
                 {",\"sequence_id\":4,\"sequence_end\":true", 200},
                 {",\"sequence_id\":4", 400}};
    for (size_t k = 0; k < sizeof parts / sizeof *parts; k++) {
        const int fd = join_port(port);
        const size_t length = request_for("stateful", x, parts[k].more, request, sizeof request);
        assert_true(say(fd, request, length));
        if (hear(fd, &a) != parts[k].code) fail_msg("%s: %d %s", parts[k].more, a.code, a.body);
        if (a.code == 200 && get(port, "/metrics", &a) == 200)
            assert_non_null(strstr(a.body, strstr(parts[k].more, "end")
                                               ? "hone_sequences{model=\"stateful\",version=\"1\"} 0\n"
                                               : "hone_sequences{model=\"stateful\",version=\"1\"} 1\n"));
        close(fd);
    }
    hone_server_free(s);
    for (size_t k = 0; k < n; k++) { /* the others' tests wait for what is here */
        snprintf(path, sizeof path, "rm -rf '%s/%s'", folder, rows[k].name);
        assert_int_equal(system(path), 0);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(ensembles)};
    return cmocka_run_group_tests(tests, serve_begin, serve_end);
}
