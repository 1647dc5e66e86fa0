/* SPDX-License-Identifier: Apache-2.0
   http_infer: an inference over HTTP: JSON, then raw tensors, which land where the model reads them as they
   come; and its answer, whose raw tensors are sent from where the model wrote them. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "serve/http.h"
#include "serve/shared.h"

enum { PARTS = 256, RANK = 16, ONE_PIECE = 8 << 10, HEAD_ROOM = 600 };

/* ---- before the body ---- */

void hone_http_infer_body(hone_http_call *c) {
    const char *header = hone_http_header(c, "Inference-Header-Content-Length");
    const hone_server_options *o = hone_serve_options(hone_http_server(c));
    if (header) {
        char *end;
        const long long n = strtoll(header, &end, 10);
        if (!*header || *end || n < 0 || (c->length >= 0 && !c->unpack && n > c->length)) {
            hone_serve_fail(
                &c->error, 400,
                "Inference-Header-Content-Length '%.40s' is not a number from 0 to the body's length",
                header);
            return;
        }
        c->json_bytes = n;
    }
    if ((c->json_bytes < 0 ? c->length : c->json_bytes) > o->max_json_bytes && !(c->json_bytes == 0))
        hone_serve_fail(
            &c->error, 413, "JSON of %lld bytes; at most %lld are taken: send tensors as binary data",
            (long long)(c->json_bytes < 0 ? c->length : c->json_bytes), (long long)o->max_json_bytes);
    else if ((c->held = hone_serve_find(hone_http_core(c), c->model, c->version, &c->error)))
        c->request = hone_serve_request_create(c->held, &c->error);
    if (c->request) c->request->times.received = c->began;
}

/* ---- JSON ---- */

static bool dims_of(const json_t *shape, int64_t *dims, int *rank) {
    *rank = (int)json_array_size(shape);
    if (!json_is_array(shape) || json_array_size(shape) > RANK) return false;
    for (int k = 0; k < *rank; k++) {
        const json_t *d = json_array_get(shape, (size_t)k);
        if (!json_is_integer(d)) return false;
        dims[k] = json_integer_value(d);
    }
    return true;
}
static int64_t integer_of(const json_t *o, const char *name, int64_t otherwise) {
    const json_t *v = json_object_get(o, name);
    return json_is_integer(v) ? json_integer_value(v) : otherwise;
}
static int add_part(hone_http_call *c, uint8_t *at, size_t bytes, hone_value *texts) {
    c->part[c->parts++] = (hone_http_part){at, bytes, texts};
    return 0;
}
/* In shared memory, where its parameters say so; false: they are wrong. */
static bool place_of(hone_http_call *c, const json_t *parameters, const char *tensor, hone_serve_place *p) {
    const json_t *region = json_object_get(parameters, "shared_memory_region");
    const int64_t offset = integer_of(parameters, "shared_memory_offset", 0),
                  bytes = integer_of(parameters, "shared_memory_byte_size", -1);
    *p = (hone_serve_place){0};
    if (!region) return true;
    const char *name = json_string_value(region);
    const size_t n = json_string_length(region);
    if (!name || !n || n >= sizeof p->name || offset < 0 || bytes < 0)
        return hone_serve_fail(
                   &c->error, 400,
                   "'%.100s': shared_memory_region is a name, and comes with shared_memory_byte_size",
                   tensor),
               false;
    memcpy(p->name, name, n + 1);
    p->offset = (uint64_t)offset, p->bytes = (uint64_t)bytes;
    return true;
}
static int placed_input(hone_http_call *c, const char *name, const char *type, const int64_t *dims, int rank,
                        const hone_serve_place *place) {
    const bool text = !strcmp(type, "BYTES");
    void *at = NULL;
    size_t bytes = 0;
    hone_value *texts = NULL;
    if (place->bytes > (uint64_t)hone_serve_options(hone_http_server(c))->max_body_bytes)
        return hone_serve_fail(&c->error, 413,
                               "input '%s': shared_memory_byte_size is larger than a request may be", name);
    const int k = text ? hone_serve_input_text(c->request, name, dims, rank, &texts, &c->error)
                       : hone_serve_input(c->request, name, type, dims, rank, &at, &bytes, &c->error);
    return k < 0 ? c->error.code
                 : hone_serve_shared_input(hone_serve_shared_of(hone_http_core(c)), place, name, at, bytes,
                                           texts, &c->error);
}
static int one_input(hone_http_call *c, const json_t *input) {
    const json_t *data = json_object_get(input, "data"), *parameters = json_object_get(input, "parameters");
    const char *name = json_string_value(json_object_get(input, "name")),
               *type = json_string_value(json_object_get(input, "datatype"));
    const json_t *shape = json_object_get(input, "shape"),
                 *size = json_object_get(parameters, "binary_data_size");
    int64_t dims[RANK];
    int rank;
    void *at = NULL;
    size_t bytes = 0;
    hone_value *texts = NULL;
    if (!name || !type || !shape)
        return hone_serve_fail(&c->error, 400, "an input wants 'name', 'shape' and 'datatype'");
    if (!dims_of(shape, dims, &rank))
        return hone_serve_fail(&c->error, 400, "input '%s': shape is a list of at most %d whole numbers",
                               name, RANK);
    hone_serve_place place;
    if (!place_of(c, parameters, name, &place)) return c->error.code;
    if (*place.name) return placed_input(c, name, type, dims, rank, &place);
    if (size && (!json_is_integer(size) || json_integer_value(size) < 0))
        return hone_serve_fail(&c->error, 400, "input '%s': binary_data_size is no number of bytes", name);
    if (!size == !data)
        return hone_serve_fail(&c->error, 400,
                               "input '%s' wants either 'data' or the parameter 'binary_data_size'", name);
    const int64_t n = size ? json_integer_value(size) : 0;
    if (size && n > hone_serve_options(hone_http_server(c))->max_body_bytes)
        return hone_serve_fail(&c->error, 413, "input '%s': binary_data_size is too large", name);
    const bool text = !strcmp(type, "BYTES");
    int64_t count = 1; /* of hostile dims: only compared, before memory is asked for */
    for (int k = 0; k < rank; k++)
        count = dims[k] <= 0 || count > INT64_MAX / 64 / dims[k] ? (dims[k] == 0 ? 0 : INT64_MAX / 64)
                                                                 : count * dims[k];
    if (text && size && count > n / 4)
        return hone_serve_fail(&c->error, 400,
                               "input '%s': its shape has more elements than its bytes can hold", name);
    if (!size && count > (int64_t)c->text.n)
        return hone_serve_fail(&c->error, 400, "input '%s': its shape has more elements than 'data'", name);
    const int k = text ? hone_serve_input_text(c->request, name, dims, rank, &texts, &c->error)
                       : hone_serve_input(c->request, name, type, dims, rank, &at, &bytes, &c->error);
    if (k < 0) return c->error.code;
    if (data) return hone_http_data_read(data, hone_serve_type(type), at, texts, count, name, &c->error);
    if (text) {
        uint8_t *room = malloc((size_t)n + 1);
        return room ? add_part(c, room, (size_t)n, texts)
                    : hone_serve_fail(&c->error, 503, "no memory for input '%s'", name);
    }
    if ((size_t)n != bytes)
        return hone_serve_fail(
            &c->error, 400, "input '%s': binary_data_size is %lld, and its shape and datatype have %zu bytes",
            name, (long long)n, bytes);
    return add_part(c, at, bytes, NULL);
}
static void sequence_of(hone_http_call *c, const json_t *parameters) {
    const json_t *id = json_object_get(parameters, "sequence_id");
    hone_serve_id *to = &c->request->id;
    to->start = json_is_true(json_object_get(parameters, "sequence_start"));
    to->end = json_is_true(json_object_get(parameters, "sequence_end"));
    if (json_is_integer(id)) to->number = (uint64_t)json_integer_value(id);
    else if (json_is_string(id) && json_string_length(id)) {
        if (!(to->text = strdup(json_string_value(id)))) hone_serve_fail(&c->error, 503, "no memory");
    } else if (id && !json_is_string(id))
        hone_serve_fail(&c->error, 400, "sequence_id is to be a whole number or a text");
}
static int output_known(const hone_http_call *c, const char *name) { /* -1: there is none of that name */
    const hone_serve_version *m = c->held;
    for (int k = 0; k < hone_serve_outputs(m); k++)
        if (!strcmp(hone_serve_output_port(m, k)->name, name)) return k;
    return -1;
}
static void read_json(hone_http_call *c) {
    json_error_t where;
    c->parsed = true;
    c->document = hone_http_seen_read(c->json_bytes > 0 ? c->seen : NULL, c->text.at ? c->text.at : "",
                                      c->text.n, &where);
    const json_t *inputs = json_object_get(c->document, "inputs"),
                 *outputs = json_object_get(c->document, "outputs"), *one;
    const json_t *parameters = json_object_get(c->document, "parameters");
    size_t k;
    if (!c->document)
        hone_serve_fail(&c->error, 400, "the request is no JSON: %s (line %d, column %d)", where.text,
                        where.line, where.column);
    else if (!json_is_object(c->document))
        hone_serve_fail(&c->error, 400, "the request is to be a JSON object");
    else if (!json_is_array(inputs) || json_array_size(inputs) > PARTS)
        hone_serve_fail(&c->error, 400, "the request wants 'inputs', a list of at most %d", PARTS);
    else if (outputs && (!json_is_array(outputs) || json_array_size(outputs) > PARTS))
        hone_serve_fail(&c->error, 400, "'outputs' is to be a list of at most %d", PARTS);
    else if (!(c->part = calloc(json_array_size(inputs) + 1, sizeof *c->part)))
        hone_serve_fail(&c->error, 503, "no memory for a request");
    if (c->error.code) return;
    json_array_foreach(inputs, k, one) if (one_input(c, one)) return;
    json_array_foreach(outputs, k, one) {
        const char *name = json_string_value(json_object_get(one, "name"));
        if (!name) hone_serve_fail(&c->error, 400, "an output wants 'name'");
        else if (!place_of(c, json_object_get(one, "parameters"), name, &(hone_serve_place){0})) return;
        else if (output_known(c, name) < 0)
            hone_serve_fail(&c->error, 400, "unexpected inference output '%.100s' for model '%s'", name,
                            c->model);
        if (c->error.code) return;
    }
    const json_t *id = json_object_get(c->document, "id");
    if (id && !json_is_string(id)) hone_serve_fail(&c->error, 400, "'id' is to be a text");
    const int64_t priority = integer_of(parameters, "priority", 0),
                  timeout = integer_of(parameters, "timeout", 0);
    if (priority < 0 || timeout < 0) hone_serve_fail(&c->error, 400, "priority and timeout are 0 or more");
    if (!c->error.code) sequence_of(c, parameters);
    c->request->priority = (uint64_t)priority, c->request->timeout_us = (uint64_t)timeout;
    /* Parts without bytes are full before the first byte. */
    while (c->at_part < c->parts && !c->part[c->at_part].bytes && !c->part[c->at_part].texts) c->at_part++;
}

/* ---- the body ---- */

static void part_full(hone_http_call *c) {
    hone_http_part *p = &c->part[c->at_part++];
    if (p->texts && !c->error.code) hone_serve_text_unpack(p->texts, p->at, p->bytes, &c->error);
    c->at_byte = 0;
}
void hone_http_infer_take(hone_http_call *c, const char *bytes, size_t n) {
    const int64_t json = c->json_bytes;
    const hone_server_options *o = hone_serve_options(hone_http_server(c));
    if (!c->request || json <= 0) { /* no place of its own: all of it is kept */
        if (c->text.n + n > (size_t)(json == 0 || c->picture_wanted ? o->max_body_bytes : o->max_json_bytes))
            hone_serve_fail(
                &c->error, 413, "the body is larger than %lld bytes",
                (long long)(json == 0 || c->picture_wanted ? o->max_body_bytes : o->max_json_bytes));
        else if (!hone_http_append(&c->text, bytes, n))
            hone_serve_fail(&c->error, 503, "no memory for the body");
        return;
    }
    if (c->text.n < (size_t)json) {
        const size_t take = (size_t)json - c->text.n < n ? (size_t)json - c->text.n : n;
        if (!hone_http_append(&c->text, bytes, take))
            hone_serve_fail(&c->error, 503, "no memory for the body");
        bytes += take, n -= take;
    }
    if (c->text.n == (size_t)json && !c->parsed && !c->error.code) read_json(c);
    while (n && !c->error.code) {
        if (c->at_part >= c->parts) {
            hone_serve_fail(&c->error, 400, "the body has bytes after the last input's");
            return;
        }
        hone_http_part *p = &c->part[c->at_part];
        const size_t take = p->bytes - c->at_byte < n ? p->bytes - c->at_byte : n;
        memcpy(p->at + c->at_byte, bytes, take);
        c->at_byte += take, bytes += take, n -= take;
        while (c->at_part < c->parts && c->at_byte == c->part[c->at_part].bytes) part_full(c);
    }
}
/* A body that is one tensor and nothing else: its shape follows from its length. */
static void read_raw(hone_http_call *c) {
    const hone_serve_version *m = c->held;
    const hone_port *p = hone_serve_input_port(m, 0);
    int64_t dims[RANK], rest = 1;
    int free_dim = -1;
    void *at;
    size_t bytes, each;
    if (hone_serve_inputs(m) != 1 || p->rank < 0 || p->rank > RANK) {
        hone_serve_fail(&c->error, 400, "raw binary requests are for models with one input, and '%s' has %d",
                        c->model, hone_serve_inputs(m));
        return;
    }
    for (int k = 0; k < p->rank; k++) {
        dims[k] = p->dims[k] >= 0 ? p->dims[k] : 1;
        if (p->dims[k] < 0 && k > 0 && free_dim > 0)
            hone_serve_fail(&c->error, 400, "a raw binary request leaves more than one dim open: %s",
                            p->shape);
        if (p->dims[k] < 0 && (k > 0 || p->rank == 1 || free_dim < 0)) free_dim = k;
    }
    if (c->error.code) return;
    if (p->dtype == HONE_DTYPE_STRING) {
        hone_value *texts;
        if (hone_serve_input_text(c->request, p->name, dims, p->rank, &texts, &c->error) < 0) return;
        hone_serve_text_unpack(texts, c->text.at ? c->text.at : "", c->text.n, &c->error);
        return;
    }
    each = hone_serve_type_bytes(p->dtype);
    for (int k = 0; k < p->rank; k++)
        if (k != free_dim) rest *= dims[k];
    if (free_dim >= 0) dims[free_dim] = rest > 0 ? (int64_t)(c->text.n / each) / rest : 0;
    if (hone_serve_input(c->request, p->name, hone_serve_type_name(p->dtype), dims, p->rank, &at, &bytes,
                         &c->error) < 0)
        return;
    if (bytes != c->text.n)
        hone_serve_fail(&c->error, 400, "the body has %zu bytes, which %s cannot be", c->text.n, p->shape);
    else if (bytes) memcpy(at, c->text.at, bytes);
}

/* ---- the run ---- */

static void done(hone_serve_request *r) { hone_http_release(r->arg); }
void hone_http_submit(hone_http_call *c) {
    c->request->done = done, c->request->arg = c, c->request->inline_ok = true;
    c->waiting = true;
    hone_serve_submit(c->request);
}
void hone_http_infer_finish(hone_http_call *c) {
    if (c->json_bytes == 0) read_raw(c);
    else if (!c->parsed) {
        if (c->json_bytes > 0 && c->text.n < (size_t)c->json_bytes)
            hone_serve_fail(&c->error, 400, "the body ends within its JSON");
        else read_json(c);
    }
    if (!c->error.code && c->at_part < c->parts) {
        while (c->at_part < c->parts && c->at_byte == c->part[c->at_part].bytes) part_full(c);
        if (!c->error.code && c->at_part < c->parts)
            hone_serve_fail(&c->error, 400, "the body ends within input %d of %d with binary data",
                            c->at_part + 1, c->parts);
    }
    if (!c->error.code) hone_http_submit(c);
}

/* ---- the answer ---- */

typedef struct {
    int output; /* of the model */
    bool binary;
    int classes;
    hone_value *value; /* to be sent: the request's, or ours */
    bool ours;
    size_t bytes;
    void *packed;           /* texts */
    hone_serve_place place; /* where the client wants it; name "": in the answer */
} reply_output;
typedef struct { /* lives until the answer was sent */
    hone_http_text head;
    hone_serve_request *request;
    reply_output *output;
    int outputs;
} reply;

static void reply_free(void *arg) {
    reply *r = arg;
    if (!r) return;
    for (int k = 0; k < r->outputs; k++) {
        if (r->output[k].ours) hone_value_free(r->output[k].value);
        free(r->output[k].packed);
    }
    hone_serve_request_free(r->request);
    free(r->head.at), free(r->output), free(r);
}
static bool chosen(hone_http_call *c, reply *r) {
    const hone_serve_version *m = c->held;
    const json_t *outputs = json_object_get(c->document, "outputs"), *one;
    const bool binary =
        !c->json_bytes ||
        json_is_true(json_object_get(json_object_get(c->document, "parameters"), "binary_data_output"));
    const int all = hone_serve_outputs(m);
    size_t k;
    r->output = calloc((size_t)all + json_array_size(outputs) + 1, sizeof *r->output);
    if (!r->output) return false;
    if (!json_array_size(outputs))
        for (int o = 0; o < all; o++) {
            const hone_port *p = hone_serve_output_port(m, o);
            if (p->kind == HONE_VALUE_TENSOR && hone_serve_type_name(p->dtype))
                r->output[r->outputs++] = (reply_output){.output = o, .binary = binary};
        }
    json_array_foreach(outputs, k, one) {
        const json_t *parameters = json_object_get(one, "parameters"),
                     *own = json_object_get(parameters, "binary_data");
        const int64_t classes = integer_of(parameters, "classification", 0);
        r->output[r->outputs++] =
            (reply_output){.output = output_known(c, json_string_value(json_object_get(one, "name"))),
                           .binary = own ? json_is_true(own) : binary,
                           .classes = classes < 0 || classes > 100000 ? 100000 : (int)classes};
        /* read_json has looked at it */
        (void)place_of(c, parameters, "output", &r->output[r->outputs - 1].place);
    }
    return true;
}
static bool one_output(hone_http_call *c, reply *r, reply_output *o) {
    const hone_port *p = hone_serve_output_port(c->held, o->output);
    hone_http_text *t = &r->head;
    o->value = r->request->out[o->output];
    if (!o->value || hone_value_kind_of(o->value) != HONE_VALUE_TENSOR ||
        !hone_serve_type_name(hone_value_dtype(o->value))) {
        hone_serve_fail(&c->error, 501, "output '%s' is %s, which the protocol has no form for", p->name,
                        p->shape);
        return false;
    }
    if (o->classes) {
        hone_value *classes = NULL;
        if (hone_serve_classes(c->held, o->value, o->classes, &classes, &c->error))
            return hone_value_free(classes), false;
        o->value = classes, o->ours = true;
    }
    const hone_dtype d = hone_value_dtype(o->value);
    uint64_t taken = 0;
    if (*o->place.name && hone_serve_shared_output(hone_serve_shared_of(hone_http_core(c)), &o->place,
                                                   p->name, o->value, &taken, &c->error))
        return false;
    if (!*o->place.name && (d == HONE_DTYPE_F16 || d == HONE_DTYPE_BF16) && !o->binary) {
        hone_serve_fail(&c->error, 400, "output '%s' is %s, which has no form in JSON; ask for binary data",
                        p->name, hone_serve_type_name(d));
        return false;
    }
    bool good = hone_http_append(t, "{\"name\":", 8) && hone_http_quoted(t, p->name) &&
                hone_http_text_append(t, ",\"datatype\":\"") &&
                hone_http_text_append(t, hone_serve_type_name(d)) &&
                hone_http_text_append(t, "\",\"shape\":[");
    for (int k = 0; good && k < hone_value_rank(o->value); k++)
        good = (!k || hone_http_append(t, ",", 1)) && hone_http_number(t, hone_value_dims(o->value)[k]);
    good = good && hone_http_append(t, "],", 2);
    if (*o->place.name) {
        o->binary = false;
        return good && hone_http_printf(t, "\"parameters\":{\"shared_memory_region\":") &&
               hone_http_quoted(t, o->place.name) &&
               hone_http_printf(t, ",\"shared_memory_offset\":%llu,\"shared_memory_byte_size\":%llu}}",
                                (unsigned long long)o->place.offset, (unsigned long long)taken);
    }
    if (!o->binary)
        return good && hone_http_append(t, "\"data\":", 7) && hone_http_data_write(o->value, t) &&
               hone_http_append(t, "}", 1);
    if (d == HONE_DTYPE_STRING) {
        o->bytes = hone_serve_text_packed(o->value);
        if (!(o->packed = malloc(o->bytes + 1))) return false;
        hone_serve_text_pack(o->value, o->packed);
    } else o->bytes = hone_value_bytes(o->value);
    return good && hone_http_text_append(t, "\"parameters\":{\"binary_data_size\":") &&
           hone_http_number(t, (int64_t)o->bytes) && hone_http_append(t, "}}", 2);
}
static void send_pieces(hone_http_call *c, reply *r) {
    struct MHD_IoVec *pieces = calloc((size_t)r->outputs + 1, sizeof *pieces);
    unsigned n = 0;
    const size_t head = r->head.n;
    const char *accepted = hone_http_header(c, "Accept-Encoding");
    uint64_t all = head;
    for (int k = 0; k < r->outputs; k++) all += r->output[k].binary ? r->output[k].bytes : 0;
    if (!pieces) {
        reply_free(r);
        hone_serve_fail(&c->error, 503, "no memory for an answer");
        return;
    }
    /* one write; or to be compressed */
    if (all < ONE_PIECE || (accepted && (strstr(accepted, "gzip") || strstr(accepted, "deflate")))) {
        hone_http_text t = r->head;
        bool good = true;
        r->head = (hone_http_text){0};
        for (int k = 0; good && k < r->outputs; k++)
            if (r->output[k].binary)
                good = hone_http_append(
                    &t, r->output[k].packed ? r->output[k].packed : hone_value_data(r->output[k].value),
                    r->output[k].bytes);
        if (good) hone_http_answer(c, 200, all > head ? "application/octet-stream" : "application/json", &t);
        free(t.at);
        reply_free(r);
    } else if (all == head) {
        hone_http_text t = r->head;
        r->head = (hone_http_text){0};
        hone_http_answer(c, 200, "application/json", &t);
        reply_free(r);
    } else {
        pieces[n++] = (struct MHD_IoVec){r->head.at, head};
        for (int k = 0; k < r->outputs; k++)
            if (r->output[k].binary && r->output[k].bytes)
                pieces[n++] = (struct MHD_IoVec){r->output[k].packed ? r->output[k].packed
                                                                     : hone_value_data(r->output[k].value),
                                                 r->output[k].bytes};
        c->code = 200, c->out = all;
        c->reply = MHD_create_response_from_iovec(pieces, n, reply_free, r);
        if (!c->reply) reply_free(r);
        else (void)MHD_add_response_header(c->reply, "Content-Type", "application/octet-stream");
    }
    free(pieces);
    char number[24];
    if (c->reply && all > head)
        (void)MHD_add_response_header(c->reply, "Inference-Header-Content-Length",
                                      hone_http_digits((int64_t)head, number));
}
void hone_http_infer_reply(hone_http_call *c) {
    if (c->request->error.code) {
        c->error = c->request->error;
        hone_http_answer_error(c);
        return;
    }
    if (c->picture_wanted) {
        hone_http_classify_reply(c);
        return;
    }
    reply *r = calloc(1, sizeof *r);
    const char *id = json_string_value(json_object_get(c->document, "id"));
    if (!r || !chosen(c, r)) {
        reply_free(r);
        hone_serve_fail(&c->error, 503, "no memory for an answer");
        return;
    }
    c->times = c->request->times;
    r->request = c->request, c->request = NULL;    /* its values live until they were sent */
    r->head.at = malloc(r->head.room = HEAD_ROOM); /* most fit */
    if (!r->head.at) r->head.room = 0;
    bool good = hone_http_append(&r->head, "{", 1);
    if (id && *id)
        good = good && hone_http_append(&r->head, "\"id\":", 5) && hone_http_quoted(&r->head, id) &&
               hone_http_append(&r->head, ",", 1);
    good = good && hone_http_append(&r->head, "\"model_name\":", 13) &&
           hone_http_quoted(&r->head, c->model) && hone_http_text_append(&r->head, ",\"model_version\":\"") &&
           hone_http_number(&r->head, hone_serve_version_number(c->held)) &&
           hone_http_text_append(&r->head, "\",\"outputs\":[");
    for (int k = 0; good && k < r->outputs; k++)
        good = (!k || hone_http_append(&r->head, ",", 1)) && one_output(c, r, &r->output[k]);
    good = good && hone_http_append(&r->head, "]}", 2);
    if (good) {
        send_pieces(c, r);
        return;
    }
    if (!c->error.code) hone_serve_fail(&c->error, 503, "no memory for an answer");
    reply_free(r);
}
void hone_http_infer_free(hone_http_call *c) {
    for (int k = 0; k < c->parts; k++)
        if (c->part[k].texts) free(c->part[k].at);
    free(c->part);
    hone_value_free(c->picture);
    hone_serve_request_free(c->request);
    hone_serve_release(c->held);
}
