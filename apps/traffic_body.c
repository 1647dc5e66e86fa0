/* SPDX-License-Identifier: Apache-2.0
   traffic_body: what goes into the requests: inputs as the server's metadata describes them, with files or
   random numbers, and the JSON that carries them. The server is not trusted: names are escaped, sizes are
   bounded. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "dims.h"
#include "net/random.h"
#include "traffic.h"

enum { RANK_MAX = 16, INPUTS_MAX = 256, REQUEST_MAX = 1 << 30 };

/* KServe's names of types, ours, and how random elements are made: bits, 0 or 1, or floats in [0.5, 1) with a
   sign. */
static const struct {
    char name[8];
    hone_dtype dtype;
    int bytes;
    uint64_t keep, set; /* of a float: the bits of a random number to keep, and those to set */
} types[] = {
    {"BOOL", HONE_DTYPE_BOOL, 1, 1, 0},
    {"UINT8", HONE_DTYPE_U8, 1, 1, 0},
    {"UINT16", HONE_DTYPE_U16, 2, 1, 0},
    {"UINT32", HONE_DTYPE_U32, 4, 1, 0},
    {"UINT64", HONE_DTYPE_U64, 8, 1, 0},
    {"INT8", HONE_DTYPE_I8, 1, 1, 0},
    {"INT16", HONE_DTYPE_I16, 2, 1, 0},
    {"INT32", HONE_DTYPE_I32, 4, 1, 0},
    {"INT64", HONE_DTYPE_I64, 8, 1, 0},
    {"FP16", HONE_DTYPE_F16, 2, 0x83ff, 0x3800},
    {"BF16", HONE_DTYPE_BF16, 2, 0x807f, 0x3f00},
    {"FP32", HONE_DTYPE_F32, 4, 0x807fffff, 0x3f000000},
    {"FP64", HONE_DTYPE_F64, 8, 0x800fffffffffffff, 0x3fe0000000000000},
    {"BYTES", HONE_DTYPE_STRING, 0, 0, 0},
};
enum { TYPES = sizeof types / sizeof *types };
static int type_of(const char *name) {
    for (int k = 0; k < TYPES; k++)
        if (!strcmp(types[k].name, name)) return k;
    return -1;
}

static char *copy(const char *text) {
    size_t n = strlen(text) + 1;
    return memcpy(hone_must_alloc(n), text, n);
}

int hone_traffic_describe(hone_traffic_model *m, const hone_json *metadata, const hone_json *config) {
    const hone_json *inputs = hone_json_get(metadata, "inputs");
    if (!inputs || inputs->type != HONE_JSON_ARRAY || inputs->n < 1 || inputs->n > INPUTS_MAX)
        return hone_args_wrong("--model %s: the server's metadata names no inputs", m->name);
    m->max_batch = (int64_t)hone_json_number(config, "max_batch_size", 0);
    m->input = hone_must_alloc(sizeof *m->input * (size_t)inputs->n);
    for (const hone_json *j = inputs->first; j; j = j->next) {
        hone_traffic_input *in = &m->input[m->n++];
        const hone_json *shape = hone_json_get(j, "shape");
        const char *datatype = hone_json_text(j, "datatype", "");
        int type = type_of(datatype);
        in->name = copy(hone_json_text(j, "name", ""));
        if (type < 0)
            return hone_args_wrong("input %s: datatype %s is none that can be sent", in->name, datatype);
        snprintf(in->datatype, sizeof in->datatype, "%s", datatype);
        in->dtype = types[type].dtype;
        if (!shape || shape->n > RANK_MAX)
            return hone_args_wrong("input %s: its shape is missing or too long", in->name);
        for (const hone_json *d = shape->first; d; d = d->next)
            in->dims[in->rank++] =
                d->type == HONE_JSON_NUMBER && d->number >= 0 && d->number < 1e15 ? (int64_t)d->number : -1;
        in->free_first = in->rank && in->dims[0] < 0;
    }
    return 0;
}

void hone_traffic_model_free(hone_traffic_model *m) {
    for (int k = 0; k < m->n; k++) {
        hone_traffic_input *in = &m->input[k];
        for (int r = 0; in->data && r < m->requests; r++) hone_octets_free(&in->data[r]);
        free(in->data), free(in->name);
    }
    free(m->input);
    m->input = NULL, m->n = 0;
}

/* ---- sizes ---- */

static hone_traffic_input *named(hone_traffic_model *m, const char *word, const char *option,
                                 const char **rest) {
    int n = 0;
    *rest = hone_args_after(word, &n);
    if (!*rest && m->n == 1) return *rest = word, &m->input[0];
    for (int k = 0; *rest && k < m->n; k++)
        if ((int)strlen(m->input[k].name) == n && !memcmp(m->input[k].name, word, (size_t)n))
            return &m->input[k];
    hone_args_wrong("%s %s: no input is called so; there is %s%s", option, word, m->input[0].name,
                    m->n > 1 ? ", …" : "");
    return NULL;
}

static int read_shape(hone_traffic_input *in, const char *word, const char *text) {
    int64_t dims[RANK_MAX];
    int rank = 0;
    for (const char *p = text; *p;) {
        char *end;
        errno = 0;
        long long d = strtoll(p, &end, 10);
        if (end == p || errno || d < 0 || rank == RANK_MAX || (*end && *end != 'x'))
            return hone_args_wrong("--shape %s: write it as 1x3x224x224", word);
        dims[rank++] = d;
        p = *end ? end + 1 : end;
    }
    bool fits = rank == in->rank;
    for (int d = 0; d < rank && fits; d++) fits = in->dims[d] < 0 || in->dims[d] == dims[d];
    if (!fits)
        return hone_args_wrong("--shape %s: that is not a shape that input %s may have", word, in->name);
    memcpy(in->dims, dims, sizeof *dims * (size_t)rank);
    return 0;
}

/* --dim batch=8 is the first dim of every input where that is free, --dim INPUT.2=100 one dim of one
   input. */
static int read_dim(hone_traffic_model *m, const char *word) {
    int n = 0, done = 0;
    const char *text = hone_args_after(word, &n);
    char *end;
    long long size = text ? strtoll(text, &end, 10) : -1;
    if (!text || end == text || *end || size < 0)
        return hone_args_wrong("--dim %s: write it as batch=8 or INPUT.2=100", word);
    for (int k = 0; k < m->n; k++) {
        hone_traffic_input *in = &m->input[k];
        for (int d = 0; d < in->rank; d++) {
            char name[HONE_DIM_NAME + 256];
            snprintf(name, sizeof name, "%s.%d", in->name, d);
            bool batch = d == 0 && n == 5 && !memcmp(word, "batch", 5);
            if (!batch && ((int)strlen(name) != n || memcmp(name, word, (size_t)n) != 0)) continue;
            if (in->dims[d] >= 0 && in->dims[d] != size) {
                if (batch) continue;
                return hone_args_wrong("--dim %s: that dim is %lld", word, (long long)in->dims[d]);
            }
            in->dims[d] = size, done++;
        }
    }
    return done ? 0
                : hone_args_wrong("--dim %s: no free dim is called so; they are batch, %s.0, …", word,
                                  m->input[0].name);
}

/* ---- elements ---- */

static void fill_random(hone_octets *to, int type, int64_t elements, uint64_t seed) {
    for (int64_t e = 0; e < elements; e++) {
        uint64_t z = hone_net_random(&seed);
        if (types[type].bytes) {
            z = (z & types[type].keep) | types[type].set;
            /* little-endian machines, as all that Hone runs on */
            hone_octets_add(to, &z, (size_t)types[type].bytes);
        } else {
            char text[16];
            uint32_t n = (uint32_t)snprintf(text, sizeof text, "%08x", (unsigned)z);
            hone_octets_add(to, &n, sizeof n), hone_octets_add(to, text, n);
        }
    }
}

static int fill_file(hone_traffic_input *in, const char *word, const char *path, hone_octets *to) {
    hone_value *v = NULL;
    hone_status s = hone_value_read(path, HONE_VALUE_TENSOR, in->dtype, in->dims, in->rank, &v);
    if (s) return hone_args_failed(s);
    bool fits = hone_value_dtype(v) == in->dtype && hone_value_rank(v) == in->rank;
    for (int d = 0; d < in->rank && fits; d++) fits = in->dims[d] < 0 || in->dims[d] == hone_value_dims(v)[d];
    if (!fits) {
        hone_value_free(v);
        return hone_args_wrong("--input %s: its type or shape is not that of input %s, %s", word, in->name,
                               in->datatype);
    }
    memcpy(in->dims, hone_value_dims(v), sizeof *in->dims * (size_t)in->rank);
    if (in->dtype != HONE_DTYPE_STRING) hone_octets_add(to, hone_value_data(v), hone_value_bytes(v));
    else
        for (int64_t e = 0; e < hone_value_elements(v); e++) {
            size_t n = 0;
            const char *text = hone_value_text(v, e, &n);
            uint32_t length = (uint32_t)n;
            hone_octets_add(to, &length, sizeof length), hone_octets_add(to, text, n);
        }
    snprintf(in->from, sizeof in->from, "%.150s", path);
    hone_value_free(v);
    return 0;
}

static int fill(hone_traffic_model *m, hone_traffic_input *in, const hone_traffic_wish *wish, int number) {
    int type = type_of(in->datatype);
    int64_t elements = 1;
    if (in->data) { /* a file's; each request has it */
        for (int r = 1; r < m->requests; r++) hone_octets_add(&in->data[r], in->data[0].at, in->data[0].n);
        return 0;
    }
    for (int d = 0; d < in->rank; d++) {
        if (in->dims[d] < 0) in->dims[d] = 1;
        if (__builtin_mul_overflow(elements, in->dims[d], &elements)) elements = REQUEST_MAX;
    }
    if (elements > REQUEST_MAX / 8)
        return hone_args_wrong("input %s: more than a gigabyte is no request", in->name);
    in->data = hone_must_alloc(sizeof *in->data * (size_t)m->requests);
    for (int r = 0; r < m->requests; r++)
        fill_random(&in->data[r], type, elements,
                    ((uint64_t)wish->seed << 32) + (uint64_t)(number * 1000 + r));
    snprintf(in->from, sizeof in->from, "random %s, seed %d",
             !types[type].bytes ? "texts"
             : types[type].set  ? "from -1 to 1"
                                : "0 or 1",
             wish->seed);
    return 0;
}

int hone_traffic_fill(hone_traffic_model *m, const hone_traffic_wish *wish) {
    const char *rest;
    int rc = 0;
    m->requests = wish->distinct;
    for (int k = 0; k < wish->shapes.n && !rc; k++) {
        hone_traffic_input *in = named(m, wish->shapes.at[k], "--shape", &rest);
        rc = in ? read_shape(in, wish->shapes.at[k], rest) : 1;
    }
    for (int k = 0; k < wish->dims.n && !rc; k++) rc = read_dim(m, wish->dims.at[k]);
    for (int k = 0; k < wish->inputs.n && !rc; k++) {
        hone_traffic_input *in = named(m, wish->inputs.at[k], "--input", &rest);
        if (in && in->data)
            rc = hone_args_wrong("--input %s: input %s was given already", wish->inputs.at[k], in->name);
        else if (in) {
            in->data = hone_must_alloc(sizeof *in->data * (size_t)m->requests);
            rc = fill_file(in, wish->inputs.at[k], rest, &in->data[0]);
        } else rc = 1;
    }
    m->batch = 1;
    if (!m->n || !m->input) return rc;
    bool batched = true; /* the first dim is the batch: the server says so, or it is free everywhere */
    for (int k = 0; k < m->n; k++)
        batched = batched && m->input[k].rank && (m->max_batch > 0 || m->input[k].free_first);
    for (int k = 0; k < m->n && !rc; k++) rc = fill(m, &m->input[k], wish, k);
    if (batched && !rc) m->batch = m->input[0].dims[0];
    return rc;
}

/* ---- JSON ---- */

static void put_text(hone_octets *o, const char *text, size_t n) {
    hone_octets_add(o, "\"", 1);
    for (size_t k = 0; k < n; k++) {
        unsigned char c = (unsigned char)text[k];
        if (c == '"' || c == '\\') hone_octets_print(o, "\\%c", c);
        else if (c < 0x20) hone_octets_print(o, "\\u%04x", c);
        else hone_octets_add(o, &text[k], 1);
    }
    hone_octets_add(o, "\"", 1);
}

/* Element by element: JSON has no bytes. Halves, which KServe's JSON cannot carry, were refused before. */
static void put_data(hone_octets *o, const hone_traffic_input *in, const hone_octets *data) {
    const uint8_t *at = data->at, *end = at + data->n;
    for (const char *comma = ""; at < end; comma = ",") {
        hone_octets_add(o, comma, strlen(comma));
        union {
            uint8_t u8;
            int8_t i8;
            uint16_t u16;
            int16_t i16;
            uint32_t u32;
            int32_t i32;
            uint64_t u64;
            int64_t i64;
            float f32;
            double f64;
        } v = {0};
        int type = type_of(in->datatype), width = types[type].bytes;
        memcpy(&v, at, width ? (size_t)width : 4);
        at += width ? width : 4;
        switch (in->dtype) {
        case HONE_DTYPE_BOOL: hone_octets_print(o, v.u8 ? "true" : "false"); break;
        case HONE_DTYPE_U8: hone_octets_print(o, "%d", v.u8); break;
        case HONE_DTYPE_I8: hone_octets_print(o, "%d", v.i8); break;
        case HONE_DTYPE_U16: hone_octets_print(o, "%d", v.u16); break;
        case HONE_DTYPE_I16: hone_octets_print(o, "%d", v.i16); break;
        case HONE_DTYPE_U32: hone_octets_print(o, "%u", v.u32); break;
        case HONE_DTYPE_I32: hone_octets_print(o, "%d", v.i32); break;
        case HONE_DTYPE_U64: hone_octets_print(o, "%llu", (unsigned long long)v.u64); break;
        case HONE_DTYPE_I64: hone_octets_print(o, "%lld", (long long)v.i64); break;
        case HONE_DTYPE_F32: hone_octets_print(o, "%.9g", v.f32); break;
        case HONE_DTYPE_F64: hone_octets_print(o, "%.17g", v.f64); break;
        default: put_text(o, (const char *)at, v.u32), at += v.u32;
        }
    }
}

size_t hone_traffic_json_body(const hone_traffic_model *m, int k, bool json, hone_octets *out) {
    hone_octets_print(out, "{\"inputs\":[");
    for (int i = 0; i < m->n; i++) {
        const hone_traffic_input *in = &m->input[i];
        hone_octets_print(out, i ? ",{\"name\":" : "{\"name\":");
        put_text(out, in->name, strlen(in->name));
        hone_octets_print(out, ",\"datatype\":\"%s\",\"shape\":[", in->datatype);
        for (int d = 0; d < in->rank; d++)
            hone_octets_print(out, d ? ",%lld" : "%lld", (long long)in->dims[d]);
        if (json) {
            hone_octets_print(out, "],\"data\":[");
            put_data(out, in, &in->data[k]);
            hone_octets_print(out, "]}");
        } else hone_octets_print(out, "],\"parameters\":{\"binary_data_size\":%zu}}", in->data[k].n);
    }
    hone_octets_print(out, json ? "]}" : "],\"parameters\":{\"binary_data_output\":true}}");
    size_t head = out->n;
    for (int i = 0; !json && i < m->n; i++)
        hone_octets_add(out, m->input[i].data[k].at, m->input[i].data[k].n);
    return head;
}
