/* SPDX-License-Identifier: Apache-2.0
   fuzz_serve: texts that the server reads. The first byte says as what: a config.pbtxt, a tensor's JSON data
   of some type, or a BYTES tensor. */
#include <stdlib.h>
#include <string.h>

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
static void as_sequences(json_t *config) {
    hone_serve_error e = {0};
    hone_port port[4];
    hone_serve_version v = {.name = (char *)"fuzzed", .config = config, .model = small(), .port = port};
    v.inputs = hone_model_inputs(v.model), v.outputs = hone_model_outputs(v.model);
    for (int k = 0; k < v.inputs + v.outputs; k++)
        port[k] = k < v.inputs ? *hone_model_input(v.model, k) : *hone_model_output(v.model, k - v.inputs);
    if (!hone_serve_sequences_read(&v, NULL, &e) != !e.code) abort();
    hone_serve_sequences_free(v.sequences);
}
static void a_config(const char *text, size_t n) {
    hone_serve_error e = {0};
    json_t *j = hone_serve_pbtxt(text, n, &e);
    if (!j != (e.code != 0)) abort();
    if (!j) return;
    hone_serve_version v = {.name = (char *)"fuzzed", .config = j};
    hone_serve_way w = {0};
    e.code = 0;
    (void)hone_serve_config_way(&v, &w, &e);
    e.code = 0;
    if (!hone_serve_config_lengthen(j, "fuzzed", &e)) {
        hone_serve_ensemble *g = hone_serve_ensemble_read("fuzzed", j, &e);
        if (!g != (e.code != 0)) abort();
        hone_serve_ensemble_free(g);
        as_sequences(j);
    }
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
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n) {
    if (n < 2) return 0;
    if (data[0] % 3 == 0) a_config((const char *)data + 2, n - 2);
    else if (data[0] % 3 == 1) some_data(data[1], (const char *)data + 2, n - 2);
    else some_texts(data[1], data + 2, n - 2);
    return 0;
}
