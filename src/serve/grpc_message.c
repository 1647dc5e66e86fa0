/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/grpc_message.h"

#include <stdlib.h>
#include <string.h>

enum { RANK_MAX = 16, NAME_MAX_ = 512, KEY_MAX = 64, TENSORS_MAX = 4096 };

/* Fields of the messages that are read here. */
/* ModelInferRequest; …Response has the first four, */
enum { MODEL_NAME = 1, MODEL_VERSION, REQUEST_ID, PARAMETERS, INPUTS, OUTPUTS, RAW };
enum { ANSWER_OUTPUTS = 5, ANSWER_RAW = 6 };                            /* … where the two differ */
enum { TENSOR_NAME = 1, DATATYPE, SHAPE, TENSOR_PARAMETERS, CONTENTS }; /* InferInputTensor, …Output… */
enum { WANTED_NAME = 1, WANTED_PARAMETERS };                            /* InferRequestedOutputTensor */
enum { AS_BOOL = 1, AS_INT64, AS_STRING, AS_DOUBLE, AS_UINT64 };        /* InferParameter */

/* Where InferTensorContents has the numbers of a type, how wide they are there (0: varints), and what
   fits. */
static const struct {
    hone_dtype dtype;
    uint32_t field;
    int width, bytes;
    int64_t low, high;
} contents[] = {
    {HONE_DTYPE_BOOL, 1, 0, 1, 0, 1},
    {HONE_DTYPE_I8, 2, 0, 1, INT8_MIN, INT8_MAX},
    {HONE_DTYPE_I16, 2, 0, 2, INT16_MIN, INT16_MAX},
    {HONE_DTYPE_I32, 2, 0, 4, INT32_MIN, INT32_MAX},
    {HONE_DTYPE_I64, 3, 0, 8, INT64_MIN, INT64_MAX},
    {HONE_DTYPE_U8, 4, 0, 1, 0, UINT8_MAX},
    {HONE_DTYPE_U16, 4, 0, 2, 0, UINT16_MAX},
    {HONE_DTYPE_U32, 4, 0, 4, 0, UINT32_MAX},
    {HONE_DTYPE_U64, 5, 0, 8, INT64_MIN, INT64_MAX},
    {HONE_DTYPE_F32, 6, 4, 4, INT64_MIN, INT64_MAX},
    {HONE_DTYPE_F64, 7, 8, 8, INT64_MIN, INT64_MAX},
};
enum { KINDS = sizeof contents / sizeof *contents, TEXTS = 8 };

bool hone_serve_text_of(const hone_serve_field *f, char *out, size_t room) {
    if (f->type != HONE_SERVE_BYTES || f->bytes >= room || (f->bytes && memchr(f->data, 0, f->bytes)))
        return false;
    if (f->bytes) memcpy(out, f->data, f->bytes);
    out[f->bytes] = 0;
    return true;
}
bool hone_serve_version_of(const char *text, int64_t *out) {
    *out = 0;
    for (; *text >= '0' && *text <= '9' && *out < INT64_MAX / 10 - 9; text++)
        *out = *out * 10 + (*text - '0');
    return !*text;
}

/* ---- parameters ---- */

typedef struct {
    char key[KEY_MAX];
    int as; /* 0: none was given */
    uint64_t number;
    char text[NAME_MAX_];
} parameter;
/* An entry of a map of parameters. */
static bool read_parameter(const hone_serve_field *entry, parameter *p) {
    hone_serve_wire w = hone_serve_wire_of(entry);
    hone_serve_field f, v;
    p->as = 0, p->number = 0, *p->key = *p->text = 0;
    while (hone_serve_wire_next(&w, &f)) {
        if (f.number == 1 && !hone_serve_text_of(&f, p->key, sizeof p->key)) return false;
        if (f.number != 2 || f.type != HONE_SERVE_BYTES) continue;
        hone_serve_wire in = hone_serve_wire_of(&f);
        while (hone_serve_wire_next(&in, &v)) {
            p->as = (int)v.number, p->number = v.value;
            if (v.number == AS_STRING && !hone_serve_text_of(&v, p->text, sizeof p->text)) return false;
        }
        if (in.bad) return false;
    }
    return !w.bad;
}
static bool is_number(const parameter *p) {
    return p->as == AS_INT64 || p->as == AS_UINT64 || p->as == AS_BOOL;
}

/* shared_memory_region, …_offset, …_byte_size. False: malformed. */
static bool place_parameter(const parameter *p, hone_serve_place *to) {
    if (!strcmp(p->key, "shared_memory_region")) {
        const size_t n = strlen(p->text);
        if (p->as != AS_STRING || !n || n >= sizeof to->name) return false;
        memcpy(to->name, p->text, n + 1);
        return true;
    }
    uint64_t *number = !strcmp(p->key, "shared_memory_offset")      ? &to->offset
                       : !strcmp(p->key, "shared_memory_byte_size") ? &to->bytes
                                                                    : NULL;
    if (number && (!is_number(p) || (int64_t)p->number < 0)) return false;
    if (number) *number = p->number;
    return true;
}
static int request_parameter(const hone_serve_field *f, hone_serve_request *r, hone_serve_error *e) {
    parameter p;
    if (!read_parameter(f, &p))
        return hone_serve_fail(e, 400, "a parameter of the request is no InferParameter");
    bool *yes = !strcmp(p.key, "sequence_start") ? &r->id.start
                : !strcmp(p.key, "sequence_end") ? &r->id.end
                                                 : NULL;
    if (yes) *yes = p.number != 0;
    if (!strcmp(p.key, "sequence_id")) {
        free(r->id.text), r->id.text = NULL, r->id.number = 0;
        if (is_number(&p)) r->id.number = p.number;
        else if (p.as != AS_STRING)
            return hone_serve_fail(e, 400, "sequence_id is to be a whole number or a text");
        else if (*p.text && !(r->id.text = strdup(p.text)))
            return hone_serve_fail(e, 503, "no memory for a request");
    }
    uint64_t *to = !strcmp(p.key, "priority")  ? &r->priority
                   : !strcmp(p.key, "timeout") ? &r->timeout_us
                                               : NULL;
    if (to && (!is_number(&p) || (int64_t)p.number < 0))
        return hone_serve_fail(e, 400, "parameter '%s' must be a whole number, 0 or more", p.key);
    if (to) *to = p.number;
    return 0;
}

/* ---- inputs ---- */

typedef struct {
    uint8_t *at;
    size_t left;
    int kind;
} filling;
static bool fill(void *arg, uint64_t v) {
    filling *f = arg;
    const int bytes = contents[f->kind].bytes;
    const int64_t x = (int64_t)v;
    if (f->left < (size_t)bytes || x < contents[f->kind].low || x > contents[f->kind].high) return false;
    memcpy(f->at, &v, (size_t)bytes); /* little-endian machines, as all that Hone runs on */
    f->at += bytes, f->left -= (size_t)bytes;
    return true;
}
static int typed_numbers(const char *name, hone_dtype dtype, const hone_serve_field *from, void *at,
                         size_t bytes, hone_serve_error *e) {
    filling to = {at, bytes, 0};
    while (to.kind < KINDS && contents[to.kind].dtype != dtype) to.kind++;
    if (to.kind == KINDS)
        return hone_serve_fail(
            e, 400, "input '%s': %s has no typed contents in the protocol; send it as raw_input_contents",
            name, hone_serve_type_name(dtype));
    hone_serve_wire w = hone_serve_wire_of(from);
    hone_serve_field f;
    while (hone_serve_wire_next(&w, &f)) {
        if (f.number != contents[to.kind].field)
            return hone_serve_fail(e, 400,
                                   "input '%s': its contents are in another type's field than that of %s",
                                   name, hone_serve_type_name(dtype));
        if (!hone_serve_wire_numbers(&f, contents[to.kind].width, fill, &to))
            return hone_serve_fail(e, 400,
                                   "input '%s': its contents are more than its shape has, or do not fit %s",
                                   name, hone_serve_type_name(dtype));
    }
    if (w.bad || to.left)
        return hone_serve_fail(e, 400, "input '%s': its contents have %zu elements, and its shape %zu", name,
                               (bytes - to.left) / (size_t)contents[to.kind].bytes,
                               bytes / (size_t)contents[to.kind].bytes);
    return 0;
}
static int typed_texts(const char *name, const hone_serve_field *from, hone_value *to, hone_serve_error *e) {
    hone_serve_wire w = hone_serve_wire_of(from);
    hone_serve_field f;
    int64_t k = 0;
    for (; hone_serve_wire_next(&w, &f); k++) {
        if (f.number != TEXTS || f.type != HONE_SERVE_BYTES)
            return hone_serve_fail(
                e, 400, "input '%s': its contents are in another type's field than that of BYTES", name);
        if (k < hone_value_elements(to) && hone_value_set_text(to, k, (const char *)f.data, f.bytes))
            return hone_serve_fail(e, 503, "%s", hone_error());
    }
    return w.bad || k != hone_value_elements(to)
               ? hone_serve_fail(e, 400, "input '%s': its contents have %lld elements, and its shape %lld",
                                 name, (long long)k, (long long)hone_value_elements(to))
               : 0;
}

typedef struct {
    char name[NAME_MAX_], type[16];
    int64_t dims[RANK_MAX];
    int rank;
    hone_serve_field contents; /* number 0: none */
    hone_serve_place place;
} tensor;
static bool add_dim(void *arg, uint64_t v) {
    tensor *t = arg;
    if (t->rank == RANK_MAX) return false;
    t->dims[t->rank++] = (int64_t)v;
    return true;
}
static int read_tensor(const hone_serve_field *from, tensor *t, hone_serve_error *e) {
    hone_serve_wire w = hone_serve_wire_of(from);
    hone_serve_field f;
    parameter p;
    *t->name = *t->type = 0, t->rank = 0, t->contents.number = 0, t->place = (hone_serve_place){0};
    while (hone_serve_wire_next(&w, &f)) {
        bool good = true;
        switch (f.number) {
        case TENSOR_NAME: good = hone_serve_text_of(&f, t->name, sizeof t->name); break;
        case DATATYPE: good = hone_serve_text_of(&f, t->type, sizeof t->type); break;
        case SHAPE: good = hone_serve_wire_numbers(&f, 0, add_dim, t); break;
        case CONTENTS: good = f.type == HONE_SERVE_BYTES, t->contents = f; break;
        case TENSOR_PARAMETERS:
            good = f.type == HONE_SERVE_BYTES && read_parameter(&f, &p) && place_parameter(&p, &t->place);
        }
        if (!good)
            return hone_serve_fail(
                e, 400, "input '%.100s': field %u is malformed (a name below 512 bytes, at most 16 dims)",
                t->name, f.number);
    }
    return w.bad ? hone_serve_fail(e, 400, "an input of the request is no InferInputTensor") : 0;
}

static int placed_input(hone_serve_core *core, const tensor *t, hone_serve_request *r, hone_serve_error *e) {
    hone_value *text = NULL;
    void *at = NULL;
    size_t bytes = 0;
    const bool is_text = !strcmp(t->type, "BYTES");
    if (is_text ? hone_serve_input_text(r, t->name, t->dims, t->rank, &text, e) < 0
                : hone_serve_input(r, t->name, t->type, t->dims, t->rank, &at, &bytes, e) < 0)
        return e->code;
    return hone_serve_shared_input(hone_serve_shared_of(core), &t->place, t->name, at, bytes, text, e);
}
static int read_input(const tensor *given, const hone_serve_field *raw, hone_serve_request *r,
                      hone_serve_error *e) {
    const tensor t = *given;
    void *at;
    size_t bytes;
    const hone_serve_field none = {0}, *data = t.contents.number ? &t.contents : &none;
    if (raw && t.contents.number && t.contents.bytes)
        return hone_serve_fail(
            e, 400, "contents field must not be specified when using raw_input_contents for '%s'", t.name);
    if (!strcmp(t.type, "BYTES")) {
        hone_value *text;
        if (hone_serve_input_text(r, t.name, t.dims, t.rank, &text, e) < 0) return e->code;
        return raw ? hone_serve_text_unpack(text, raw->data, raw->bytes, e)
                   : typed_texts(t.name, data, text, e);
    }
    if (hone_serve_input(r, t.name, t.type, t.dims, t.rank, &at, &bytes, e) < 0) return e->code;
    if (!raw) return typed_numbers(t.name, hone_serve_type(t.type), data, at, bytes, e);
    if (raw->bytes != bytes)
        return hone_serve_fail(
            e, 400, "input '%s': raw_input_contents has %zu bytes, and its shape and type want %zu", t.name,
            raw->bytes, bytes);
    if (bytes) memcpy(at, raw->data, bytes);
    return 0;
}

/* ---- outputs ---- */

static int read_wanted(const hone_serve_field *from, hone_serve_inference *to, hone_serve_error *e) {
    const hone_serve_version *m = to->request->version;
    hone_serve_wire w = hone_serve_wire_of(from);
    hone_serve_field f;
    hone_serve_wanted *want = &to->wanted[to->n_wanted];
    char name[NAME_MAX_] = "";
    parameter p;
    *want = (hone_serve_wanted){0};
    while (hone_serve_wire_next(&w, &f)) {
        if (f.number == WANTED_NAME && !hone_serve_text_of(&f, name, sizeof name))
            return hone_serve_fail(e, 400, "the name of an output is malformed");
        if (f.number != WANTED_PARAMETERS) continue;
        if (f.type != HONE_SERVE_BYTES || !read_parameter(&f, &p))
            return hone_serve_fail(e, 400, "output '%s': a parameter is malformed", name);
        if (!place_parameter(&p, &want->place))
            return hone_serve_fail(e, 400, "output '%s': parameter '%s' is malformed", name, p.key);
        if (strcmp(p.key, "classification") != 0) continue;
        if (!is_number(&p) || p.number < 1 || p.number > INT32_MAX)
            return hone_serve_fail(e, 400, "output '%s': classification must be a whole number, 1 or more",
                                   name);
        want->classes = (int)p.number;
    }
    if (w.bad) return hone_serve_fail(e, 400, "an output of the request is no InferRequestedOutputTensor");
    want->output = -1;
    for (int k = 0; k < hone_serve_outputs(m); k++)
        if (!strcmp(hone_serve_output_port(m, k)->name, name)) want->output = k;
    if (want->output < 0)
        return hone_serve_fail(e, 400, "unexpected inference output '%.100s' for model '%s'", name,
                               hone_serve_version_name(to->request->version));
    for (int k = 0; k < to->n_wanted; k++)
        if (to->wanted[k].output == want->output)
            return hone_serve_fail(e, 400, "output '%.100s' is asked for twice", name);
    to->n_wanted++;
    return 0;
}
static bool can_be_sent(const hone_port *p) {
    return p->kind == HONE_VALUE_TENSOR && hone_serve_type_name(p->dtype);
}
static void want_all(hone_serve_inference *to) {
    const hone_serve_version *m = to->request->version;
    for (int k = 0; k < hone_serve_outputs(m); k++)
        if (can_be_sent(hone_serve_output_port(m, k)))
            to->wanted[to->n_wanted++] = (hone_serve_wanted){.output = k};
}

/* ---- the whole request ---- */

typedef struct {
    char model[NAME_MAX_], version[32];
    hone_serve_field id;
    int inputs, outputs, raws;
} outline;
static int read_outline(const uint8_t *message, size_t n, outline *o, hone_serve_error *e) {
    hone_serve_wire w = {message, message + n, false};
    hone_serve_field f;
    *o = (outline){{0}, {0}, {0}, 0, 0, 0};
    while (hone_serve_wire_next(&w, &f)) {
        bool good = f.type == HONE_SERVE_BYTES || f.number > RAW;
        switch (f.number) {
        case MODEL_NAME: good = hone_serve_text_of(&f, o->model, sizeof o->model); break;
        case MODEL_VERSION: good = hone_serve_text_of(&f, o->version, sizeof o->version); break;
        case REQUEST_ID: o->id = f; break;
        case INPUTS: o->inputs++; break;
        case OUTPUTS: o->outputs++; break;
        case RAW: o->raws++; break;
        default: break;
        }
        if (!good || o->inputs > TENSORS_MAX || o->outputs > TENSORS_MAX || o->raws > TENSORS_MAX)
            return hone_serve_fail(e, 400, "the request is no ModelInferRequest: field %u is malformed",
                                   f.number);
    }
    if (w.bad)
        return hone_serve_fail(
            e, 400, "the request is no ModelInferRequest: its bytes end within a field, or are no protobuf");
    if (o->raws && o->raws != o->inputs)
        return hone_serve_fail(
            e, 400, "the request has %d inputs and %d raw_input_contents: give one for each, or none",
            o->inputs, o->raws);
    return 0;
}
/* The next field of that number from *w on. */
static bool seek(hone_serve_wire *w, uint32_t number, hone_serve_field *f) {
    while (hone_serve_wire_next(w, f))
        if (f->number == number) return true;
    return false;
}

int hone_serve_inference_read(hone_serve_core *core, const uint8_t *message, size_t n,
                              hone_serve_inference *to, hone_serve_error *e) {
    outline o;
    int64_t number;
    *to = (hone_serve_inference){0};
    if (read_outline(message, n, &o, e)) return e->code;
    if (!hone_serve_version_of(o.version, &number))
        return hone_serve_fail(e, 400, "model version '%s' is no whole number", o.version);
    hone_serve_version *v = hone_serve_find(core, o.model, number, e);
    if (!v) return e->code;
    to->request = hone_serve_request_create(v, e);
    hone_serve_release(v); /* the request holds it */
    if (!to->request) return e->code;
    const hone_serve_version *m = v;
    const int outputs = hone_serve_outputs(m);
    to->wanted = malloc(sizeof *to->wanted * (size_t)(outputs + 1));
    to->id = o.id.bytes ? malloc(o.id.bytes + 1) : NULL;
    if (!to->wanted || (o.id.bytes && !to->id)) return hone_serve_fail(e, 503, "no memory for a request");
    if (o.id.bytes) memcpy(to->id, o.id.data, o.id.bytes), to->id[o.id.bytes] = 0;
    hone_serve_wire all = {message, message + n, false}, raws = all;
    hone_serve_field f, raw;
    while (hone_serve_wire_next(&all, &f)) {
        if (f.number == INPUTS) {
            tensor t;
            if (read_tensor(&f, &t, e)) return e->code;
            if (*t.place.name) { /* it has no contents here */
                if (placed_input(core, &t, to->request, e)) return e->code;
                continue;
            }
            if (o.raws && !seek(&raws, RAW, &raw))
                return hone_serve_fail(
                    e, 400, "the request has %d inputs and %d raw_input_contents: give one for each, or none",
                    o.inputs, o.raws);
            if (read_input(&t, o.raws ? &raw : NULL, to->request, e)) return e->code;
        }
        if (f.number == OUTPUTS && to->n_wanted == outputs)
            return hone_serve_fail(e, 400, "more outputs are asked for than the model has");
        if (f.number == OUTPUTS && read_wanted(&f, to, e)) return e->code;
        if (f.number == PARAMETERS && request_parameter(&f, to->request, e)) return e->code;
    }
    if (o.raws && seek(&raws, RAW, &raw))
        return hone_serve_fail(e, 400, "there are more raw_input_contents than inputs");
    if (!to->n_wanted) want_all(to);
    for (int k = 0; k < hone_serve_inputs(m); k++) {
        const hone_port *p = hone_serve_input_port(m, k);
        if (!to->request->in[k] && p->kind != HONE_VALUE_OPTIONAL)
            return hone_serve_fail(e, 400,
                                   "expected %d inputs but got %d inputs for model '%s'; '%s' is missing",
                                   hone_serve_inputs(m), o.inputs, hone_serve_version_name(v), p->name);
    }
    return 0;
}
void hone_serve_inference_end(hone_serve_inference *i) {
    hone_serve_request_free(i->request);
    free(i->wanted), free(i->id);
    *i = (hone_serve_inference){0};
}

/* ---- the answer ---- */

static void put_parameter(hone_serve_out *o, uint32_t map, const char *key, int as, const char *text,
                          uint64_t number) {
    const size_t entry = hone_serve_put_begin(o, map);
    hone_serve_put_text(o, 1, key);
    const size_t value = hone_serve_put_begin(o, 2);
    if (as == AS_STRING) hone_serve_put_text(o, AS_STRING, text);
    else hone_serve_put_number(o, (uint32_t)as, number);
    hone_serve_put_end(o, value);
    hone_serve_put_end(o, entry);
}
/* bytes: what it takes in the client's memory. */
static void put_tensor(hone_serve_out *o, const char *name, const hone_value *v,
                       const hone_serve_place *place, uint64_t bytes) {
    const size_t begun = hone_serve_put_begin(o, ANSWER_OUTPUTS);
    hone_serve_put_text(o, TENSOR_NAME, name);
    hone_serve_put_text(o, DATATYPE, hone_serve_type_name(hone_value_dtype(v)));
    const size_t shape = hone_serve_put_begin(o, SHAPE);
    for (int d = 0; d < hone_value_rank(v); d++) {
        uint64_t n = (uint64_t)hone_value_dims(v)[d];
        uint8_t code[10];
        size_t k = 0;
        for (; n > 127; n >>= 7) code[k++] = (uint8_t)(n | 128);
        code[k++] = (uint8_t)n;
        hone_serve_put(o, code, k);
    }
    hone_serve_put_end(o, shape);
    if (*place->name) {
        put_parameter(o, TENSOR_PARAMETERS, "shared_memory_region", AS_STRING, place->name, 0);
        if (place->offset)
            put_parameter(o, TENSOR_PARAMETERS, "shared_memory_offset", AS_INT64, NULL, place->offset);
        put_parameter(o, TENSOR_PARAMETERS, "shared_memory_byte_size", AS_INT64, NULL, bytes);
    }
    hone_serve_put_end(o, begun);
}
static void put_raw(hone_serve_out *o, hone_value *v) {
    const bool text = hone_value_dtype(v) == HONE_DTYPE_STRING;
    const size_t n = text ? hone_serve_text_packed(v) : hone_value_bytes(v);
    hone_serve_put_head(o, ANSWER_RAW, n);
    uint8_t *to = hone_serve_put_room(o, n);
    if (to && text) hone_serve_text_pack(v, to);
    else if (to && n) memcpy(to, hone_value_data(v), n);
}

int hone_serve_inference_write(const hone_serve_inference *i, hone_serve_shared *shared, bool stream,
                               hone_serve_out *o, hone_serve_error *e) {
    const hone_serve_request *r = i->request;
    const hone_serve_version *m = r->version;
    hone_value *small[16] = {0},
               **value = i->n_wanted <= 16 ? small : calloc((size_t)i->n_wanted, sizeof *value);
    char number[32];
    if (!value) return hone_serve_fail(e, 503, "no memory for an answer");
    size_t begun = 0;
    enum { INFER_RESPONSE = 2 };
    for (int k = 0; k < i->n_wanted && !e->code; k++) {
        const hone_serve_wanted *w = &i->wanted[k];
        if (!r->out[w->output] || !can_be_sent(hone_serve_output_port(m, w->output)))
            hone_serve_fail(e, 501, "output '%s' is no tensor that the protocol can carry",
                            hone_serve_output_port(m, w->output)->name);
        else if (w->classes) hone_serve_classes(r->version, r->out[w->output], w->classes, &value[k], e);
        else value[k] = hone_value_share(r->out[w->output]);
    }
    if (!e->code) {
        if (stream) begun = hone_serve_put_begin(o, INFER_RESPONSE);
        snprintf(number, sizeof number, "%lld", (long long)hone_serve_version_number(r->version));
        hone_serve_put_text(o, MODEL_NAME, hone_serve_version_name(r->version));
        hone_serve_put_text(o, MODEL_VERSION, number);
        hone_serve_put_text(o, REQUEST_ID, i->id);
        if (stream) { put_parameter(o, PARAMETERS, "triton_final_response", AS_BOOL, NULL, 1); }
        for (int k = 0; k < i->n_wanted && !e->code; k++) {
            const hone_serve_wanted *w = &i->wanted[k];
            const char *name = hone_serve_output_port(m, w->output)->name;
            uint64_t bytes = 0;
            if (*w->place.name) hone_serve_shared_output(shared, &w->place, name, value[k], &bytes, e);
            put_tensor(o, name, value[k], &w->place, bytes);
        }
        for (int k = 0; k < i->n_wanted; k++)
            if (!*i->wanted[k].place.name) put_raw(o, value[k]);
        if (stream) hone_serve_put_end(o, begun);
        if (o->failed && !e->code) hone_serve_fail(e, 503, "no memory for an answer");
    }
    for (int k = 0; k < i->n_wanted; k++) hone_value_free(value[k]);
    if (value != small) free(value);
    return e->code;
}
