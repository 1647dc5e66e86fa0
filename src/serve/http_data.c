/* SPDX-License-Identifier: Apache-2.0
   http_data: tensors as JSON: nested or flat lists of numbers, texts or true and false, read into memory of a
   type and written from it. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http.h"

enum { DEEP = 20 };

typedef struct {
    hone_dtype dtype;
    void *at;
    hone_value *texts;
    int64_t count, n;
    const char *name;
    hone_serve_error *e;
} filling;

static const struct {
    hone_dtype dtype;
    int64_t low, high;
} ranges[] = {{HONE_DTYPE_U8, 0, UINT8_MAX},   {HONE_DTYPE_I8, INT8_MIN, INT8_MAX},
              {HONE_DTYPE_U16, 0, UINT16_MAX}, {HONE_DTYPE_I16, INT16_MIN, INT16_MAX},
              {HONE_DTYPE_U32, 0, UINT32_MAX}, {HONE_DTYPE_I32, INT32_MIN, INT32_MAX},
              {HONE_DTYPE_U64, 0, INT64_MAX},  {HONE_DTYPE_I64, INT64_MIN, INT64_MAX},
              {HONE_DTYPE_BOOL, 0, 1}};

static int element_wrong(filling *f, const char *why) {
    return hone_serve_fail(f->e, 400, "input '%s', element %lld: %s", f->name, (long long)f->n, why);
}
static int put_integer(filling *f, int64_t x) {
    for (size_t k = 0; k < sizeof ranges / sizeof *ranges; k++)
        if (ranges[k].dtype == f->dtype && (x < ranges[k].low || x > ranges[k].high))
            return element_wrong(f, "the number is outside of the type's range");
    switch (hone_serve_type_bytes(f->dtype)) {
    case 1: ((int8_t *)f->at)[f->n] = (int8_t)x; break;
    case 2: ((int16_t *)f->at)[f->n] = (int16_t)x; break;
    case 4: ((int32_t *)f->at)[f->n] = (int32_t)x; break;
    default: ((int64_t *)f->at)[f->n] = x; break;
    }
    return 0;
}
static int put(filling *f, const json_t *j) {
    if (f->n >= f->count)
        return hone_serve_fail(f->e, 400, "input '%s': its shape has %lld elements, and data has more",
                               f->name, (long long)f->count);
    const bool number = json_is_number(j), real = json_is_real(j);
    if (f->dtype == HONE_DTYPE_STRING) {
        if (!json_is_string(j)) return element_wrong(f, "BYTES are texts");
        return hone_value_set_text(f->texts, f->n, json_string_value(j), json_string_length(j))
                   ? hone_serve_fail(f->e, 503, "%s", hone_error())
                   : 0;
    }
    if (f->dtype == HONE_DTYPE_BOOL && json_is_boolean(j))
        return ((uint8_t *)f->at)[f->n] = json_is_true(j), 0;
    if (!number) return element_wrong(f, "it is no number");
    if (f->dtype == HONE_DTYPE_F32) return ((float *)f->at)[f->n] = (float)json_number_value(j), 0;
    if (f->dtype == HONE_DTYPE_F64) return ((double *)f->at)[f->n] = json_number_value(j), 0;
    const double x = json_number_value(j);
    if (real && (x != floor(x) || fabs(x) > 9e15)) return element_wrong(f, "the type wants a whole number");
    return put_integer(f, real ? (int64_t)x : (int64_t)json_integer_value(j));
}
static int fill(filling *f, const json_t *j, int deep) {
    size_t k;
    json_t *item;
    if (!json_is_array(j)) {
        const int code = put(f, j);
        f->n++;
        return code;
    }
    if (deep > DEEP) return hone_serve_fail(f->e, 400, "input '%s': data is nested too deep", f->name);
    json_array_foreach(j, k, item) if (fill(f, item, deep + 1)) return f->e->code;
    return 0;
}
int hone_http_data_read(const json_t *data, hone_dtype d, void *at, hone_value *texts, int64_t count,
                        const char *name, hone_serve_error *e) {
    filling f = {d, at, texts, count, 0, name, e};
    if (d == HONE_DTYPE_F16 || d == HONE_DTYPE_BF16)
        return hone_serve_fail(e, 400, "input '%s': %s has no form in JSON; send it as binary data", name,
                               hone_serve_type_name(d));
    if (!json_is_array(data)) return hone_serve_fail(e, 400, "input '%s': data is to be a list", name);
    if (fill(&f, data, 0)) return e->code;
    return f.n == count
               ? 0
               : hone_serve_fail(e, 400, "input '%s': its shape has %lld elements, and data has %lld", name,
                                 (long long)count, (long long)f.n);
}

/* ---- out ---- */

static bool write_text(hone_http_text *t, const char *text, size_t n) {
    json_t *j = json_stringn(text, n);
    char *dumped = j ? json_dumps(j, JSON_ENCODE_ANY) : NULL;
    /* it is no UTF-8 */
    const bool good = dumped ? hone_http_append(t, dumped, strlen(dumped)) : hone_http_append(t, "null", 4);
    free(dumped), json_decref(j);
    return good;
}
bool hone_http_data_write(const hone_value *v, hone_http_text *t) {
    const hone_dtype d = hone_value_dtype(v);
    const int64_t n = hone_value_elements(v);
    const void *at = hone_value_data((hone_value *)v);
    char text[48];
    bool good = hone_http_append(t, "[", 1);
    for (int64_t k = 0; good && k < n; k++) {
        int length;
        if (k) good = hone_http_append(t, ",", 1);
        if (d == HONE_DTYPE_STRING) {
            size_t bytes;
            const char *s = hone_value_text(v, k, &bytes);
            good = good && write_text(t, s, bytes);
            continue;
        }
        if (d == HONE_DTYPE_I64)
            length = snprintf(text, sizeof text, "%lld", (long long)((const int64_t *)at)[k]);
        else if (d == HONE_DTYPE_U64)
            length = snprintf(text, sizeof text, "%llu", (unsigned long long)((const uint64_t *)at)[k]);
        else if (d == HONE_DTYPE_BOOL)
            length = snprintf(text, sizeof text, "%s", ((const uint8_t *)at)[k] ? "true" : "false");
        else {
            const double x = d == HONE_DTYPE_F32 ? (double)((const float *)at)[k] : hone_value_number(v, k);
            length = !isfinite(x) ? snprintf(text, sizeof text, "null")
                                  : snprintf(text, sizeof text, "%.*g", d == HONE_DTYPE_F32 ? 9 : 17, x);
        }
        good = good && hone_http_append(t, text, (size_t)length);
    }
    return good && hone_http_append(t, "]", 1);
}
