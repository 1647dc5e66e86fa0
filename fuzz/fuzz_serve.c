/* SPDX-License-Identifier: Apache-2.0
   fuzz_serve: texts that the server reads. The first byte says as what: a config.pbtxt, a tensor's JSON data of some type, or a BYTES tensor. */
#include <stdlib.h>
#include <string.h>

#include "serve/http.h"
#include "serve/inside.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

static void a_config(const char *text, size_t n) {
    hone_serve_error e = {0};
    json_t *j = hone_serve_pbtxt(text, n, &e);
    if (!j != (e.code != 0)) abort();
    if (!j) return;
    hone_serve_version v = {.name = (char *)"fuzzed", .config = j};
    hone_serve_way w = {0};
    e.code = 0;
    (void)hone_serve_config_way(&v, &w, &e);
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
        if (!hone_http_data_read(j, d, hone_value_data(v), v, count, "x", &e) && !hone_http_data_write(v, &t)) abort();
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
