/* SPDX-License-Identifier: Apache-2.0
   request: one inference: its inputs, checked against the model, and where their bytes land. Running it is
   run.c's. */
#include <stdlib.h>
#include <string.h>

#include "serve/inside.h"

enum { ALIGN = 64 };
static const int64_t MOST_ELEMENTS = (int64_t)1 << 40;

hone_serve_request *hone_serve_request_create(hone_serve_version *v, hone_serve_error *e) {
    const size_t in = (size_t)v->inputs, out = (size_t)v->outputs,
                 bytes = sizeof(hone_serve_request) + (2 * in + 2 * out) * sizeof(void *);
    hone_serve_request *r = calloc(1, bytes);
    if (!r) {
        hone_serve_fail(e, 503, "no memory for a request");
        return NULL;
    }
    void **room = (void **)(r + 1);
    r->in = (hone_value **)room, r->memory = room + in;
    r->out = (hone_value **)(room + 2 * in), r->kept = r->out + out;
    r->version = hone_serve_hold(v);
    r->times.received = hone_serve_now();
    return r;
}
void hone_serve_request_free(hone_serve_request *r) {
    if (!r) return;
    for (int k = 0; k < r->version->inputs; k++) hone_value_free(r->in[k]), free(r->memory[k]);
    for (int k = 0; k < r->version->outputs; k++) hone_value_free(r->out[k]), hone_value_free(r->kept[k]);
    hone_serve_release(r->version);
    free(r->id.text), free(r);
}

/* ---- inputs ---- */

static int port_of(hone_serve_request *r, const char *name, hone_serve_error *e) {
    for (int k = 0; k < r->version->inputs; k++) {
        if (strcmp(hone_serve_input_port(r->version, k)->name, name) != 0) continue;
        if (!r->in[k]) return k;
        hone_serve_fail(e, 400, "input '%.100s' is given twice", name);
        return -1;
    }
    hone_serve_fail(
        e, 400, "unexpected inference input '%.100s' for model '%s'; its inputs are listed at /v2/models/%s",
        name, r->version->name, r->version->name);
    return -1;
}
static int dims_wrong(hone_serve_request *r, const hone_port *p, const int64_t *dims, int rank,
                      int64_t *count, hone_serve_error *e) {
    const char *model = r->version->name;
    *count = 1;
    if (p->rank >= 0 && rank != p->rank)
        return hone_serve_fail(e, 400,
                               "input '%s' of model '%s' has %d dims, and the request gives %d; it is %s",
                               p->name, model, p->rank, rank, p->shape);
    for (int k = 0; k < rank; k++) {
        if (dims[k] < 0)
            return hone_serve_fail(e, 400, "input '%s': dim %d is %lld; dims of a request are 0 or more",
                                   p->name, k, (long long)dims[k]);
        if (p->rank >= 0 && p->dims[k] >= 0 && dims[k] != p->dims[k])
            return hone_serve_fail(
                e, 400, "input '%s' of model '%s': dim %d is %lld, and the model wants %lld; it is %s",
                p->name, model, k, (long long)dims[k], (long long)p->dims[k], p->shape);
        if (dims[k] && *count > MOST_ELEMENTS / dims[k])
            return hone_serve_fail(e, 400, "input '%s': its shape has too many elements", p->name);
        *count *= dims[k];
    }
    return 0;
}
/* A batch is of requests that all say the same about their first dim. */
static void note_rows(hone_serve_request *r, const int64_t *dims, int rank) {
    const int64_t rows = rank ? dims[0] : -1;
    if (r->rows == 0) r->rows = rows > 0 ? rows : -1;
    else if (r->rows != rows) r->rows = -1;
}

int hone_serve_input(hone_serve_request *r, const char *name, const char *type, const int64_t *dims, int rank,
                     void **at, size_t *bytes, hone_serve_error *e) {
    int64_t count;
    const int k = port_of(r, name, e);
    if (k < 0) return -1;
    const hone_port *p = hone_serve_input_port(r->version, k);
    const hone_dtype d = hone_serve_type(type);
    if (d == HONE_DTYPE_NONE)
        hone_serve_fail(e, 400, "input '%s': there is no datatype '%.20s'", p->name, type);
    else if (d != p->dtype)
        hone_serve_fail(e, 400, "inference input '%s' data-type is '%s', but model '%s' expects '%s'",
                        p->name, type, r->version->name, hone_serve_type_name(p->dtype));
    else if (!dims_wrong(r, p, dims, rank, &count, e)) {
        const size_t n = (size_t)count * hone_serve_type_bytes(d);
        if (n > (uint64_t)r->version->core->o.max_body_bytes)
            hone_serve_fail(e, 413, "input '%s' has %zu bytes, and a request at most %lld", p->name, n,
                            (long long)r->version->core->o.max_body_bytes);
        else if (!(r->memory[k] = aligned_alloc(ALIGN, (n + ALIGN) / ALIGN * ALIGN)))
            hone_serve_fail(e, 503, "no memory for input '%s'", p->name);
        else if (hone_tensor_borrow(d, dims, rank, r->memory[k], &r->in[k]))
            hone_serve_fail(e, 503, "input '%s': %s", p->name, hone_error());
        else {
            note_rows(r, dims, rank);
            *at = r->memory[k], *bytes = n;
            return k;
        }
        free(r->memory[k]), r->memory[k] = NULL;
    }
    return -1;
}
int hone_serve_input_value(hone_serve_request *r, int k, hone_value *v, hone_serve_error *e) {
    const hone_port *p = hone_serve_input_port(r->version, k);
    int64_t count;
    if (hone_value_kind_of(v) != HONE_VALUE_TENSOR || hone_value_dtype(v) != p->dtype)
        return hone_serve_fail(e, 400, "input '%s' of model '%s' is %s, and is given another type", p->name,
                               r->version->name, p->shape);
    if (dims_wrong(r, p, hone_value_dims(v), hone_value_rank(v), &count, e)) return e->code;
    if (p->dtype == HONE_DTYPE_STRING) r->rows = -1;
    else note_rows(r, hone_value_dims(v), hone_value_rank(v));
    r->in[k] = hone_value_share(v);
    return 0;
}
int hone_serve_input_text(hone_serve_request *r, const char *name, const int64_t *dims, int rank,
                          hone_value **out, hone_serve_error *e) {
    int64_t count;
    const int k = port_of(r, name, e);
    if (k < 0) return -1;
    const hone_port *p = hone_serve_input_port(r->version, k);
    if (p->dtype != HONE_DTYPE_STRING) {
        hone_serve_fail(e, 400, "inference input '%s' data-type is 'BYTES', but model '%s' expects '%s'",
                        p->name, r->version->name, hone_serve_type_name(p->dtype));
        return -1;
    }
    if (dims_wrong(r, p, dims, rank, &count, e)) return -1;
    if (count > r->version->core->o.max_body_bytes / 2) { /* each has a byte and a sign between at least */
        hone_serve_fail(e, 413, "input '%s' has more texts than a request may have bytes", p->name);
        return -1;
    }
    if (hone_tensor_create(HONE_DTYPE_STRING, dims, rank, &r->in[k])) {
        hone_serve_fail(e, 503, "input '%s': %s", p->name, hone_error());
        return -1;
    }
    r->rows = -1;
    *out = r->in[k];
    return k;
}

/* ---- texts ---- */

static uint32_t length_at(const uint8_t *p) {
    return p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

int hone_serve_text_unpack(hone_value *v, const void *bytes, size_t n, hone_serve_error *e) {
    const uint8_t *p = bytes;
    const int64_t count = hone_value_elements(v);
    for (int64_t k = 0; k < count; k++) {
        const uint32_t length = n >= 4 ? length_at(p) : 0;
        if (n < 4 || n - 4 < length)
            return hone_serve_fail(e, 400,
                                   "a BYTES tensor ends within element %lld of %lld: each is a length of 4 "
                                   "bytes, then so many bytes",
                                   (long long)k, (long long)count);
        if (hone_value_set_text(v, k, (const char *)p + 4, length))
            return hone_serve_fail(e, 503, "%s", hone_error());
        p += 4 + (size_t)length, n -= 4 + (size_t)length;
    }
    return n ? hone_serve_fail(e, 400, "a BYTES tensor has %zu bytes after its last element", n) : 0;
}
size_t hone_serve_text_packed(const hone_value *v) {
    size_t all = 0, n = 0;
    for (int64_t k = 0; k < hone_value_elements(v); k++) hone_value_text(v, k, &n), all += 4 + n;
    return all;
}
void hone_serve_text_pack(const hone_value *v, void *to) {
    uint8_t *p = to;
    for (int64_t k = 0; k < hone_value_elements(v); k++) {
        size_t n = 0;
        const char *text = hone_value_text(v, k, &n);
        for (int b = 0; b < 4; b++) *p++ = (uint8_t)(n >> (8 * b));
        memcpy(p, text, n), p += n;
    }
}
