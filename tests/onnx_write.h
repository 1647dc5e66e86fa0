/* SPDX-License-Identifier: Apache-2.0
   onnx_write: ONNX models written byte by byte, good and bad ones, without any library. For tests and for the
   seeds of fuzz/. */
#ifndef HONE_TESTS_ONNX_WRITE_H
#define HONE_TESTS_ONNX_WRITE_H
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- a writer of protobuf ------------------------------------------------------------------------------ */
typedef struct {
    uint8_t *at;
    size_t n, room;
} msg;
static inline void put(msg *m, const void *data, size_t n) {
    if (m->n + n > m->room) {
        m->room = (m->n + n) * 2 + 64;
        m->at = realloc(m->at, m->room);
        if (!m->at) abort();
    }
    if (n) memcpy(m->at + m->n, data, n);
    m->n += n;
}
static inline void varint(msg *m, uint64_t v) {
    for (; v > 127; v >>= 7) put(m, &(uint8_t){(uint8_t)(v | 128)}, 1);
    put(m, &(uint8_t){(uint8_t)v}, 1);
}
static inline void number(msg *m, int field, int64_t v) {
    varint(m, (uint64_t)field << 3), varint(m, (uint64_t)v);
}
static inline void fixed32(msg *m, int field, float v) { varint(m, (uint64_t)field << 3 | 5), put(m, &v, 4); }
static inline void bytes(msg *m, int field, const void *data, size_t n) {
    varint(m, (uint64_t)field << 3 | 2), varint(m, n), put(m, data, n);
}
static inline void text(msg *m, int field, const char *s) { bytes(m, field, s, strlen(s)); }
/* takes inner */
static inline void sub(msg *m, int field, msg inner) { bytes(m, field, inner.at, inner.n), free(inner.at); }

/* Words separated by blanks; "-" is an empty name. */
static inline void names(msg *m, int field, const char *list) {
    char copy[256];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) text(m, field, strcmp(w, "-") ? w : "");
}

/* ---- ONNX's messages ----------------------------------------------------------------------------------- */
static inline msg tensor_head(const char *name, int type, const char *dims) {
    msg t = {0};
    char copy[64];
    snprintf(copy, sizeof copy, "%s", dims);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) number(&t, 1, atoll(w));
    number(&t, 2, type);
    text(&t, 8, name);
    return t;
}
static inline msg tensor_raw(const char *name, int type, const char *dims, const void *data, size_t n) {
    msg t = tensor_head(name, type, dims);
    bytes(&t, 9, data, n);
    return t;
}
static inline msg floats(const char *name, const char *dims, const float *v, int n) {
    return tensor_raw(name, 1, dims, v, (size_t)n * 4);
}
static inline msg ints(const char *name, const char *dims, const int64_t *v, int n) {
    return tensor_raw(name, 7, dims, v, (size_t)n * 8);
}

/* dims: numbers, names, "?" for a dim that says nothing; NULL: no shape */
static inline msg value_info(const char *name, int type, const char *dims) {
    msg v = {0}, t = {0}, tt = {0}, shape = {0};
    number(&tt, 1, type);
    if (dims) {
        char copy[128];
        snprintf(copy, sizeof copy, "%s", dims);
        for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) {
            msg d = {0};
            if (*w >= '0' && *w <= '9') number(&d, 1, atoll(w));
            else if (*w != '?') text(&d, 2, w);
            sub(&shape, 1, d);
        }
        sub(&tt, 2, shape);
    }
    text(&v, 1, name);
    sub(&t, 1, tt);
    sub(&v, 2, t);
    return v;
}

static inline msg attr(const char *name, int type) {
    msg a = {0};
    text(&a, 1, name);
    if (type) number(&a, 20, type);
    return a;
}
static inline msg attr_int(const char *name, int64_t v) {
    msg a = attr(name, 2);
    number(&a, 3, v);
    return a;
}
static inline msg attr_float(const char *name, float v) {
    msg a = attr(name, 1);
    fixed32(&a, 2, v);
    return a;
}
static inline msg attr_text(const char *name, const char *v) {
    msg a = attr(name, 3);
    text(&a, 4, v);
    return a;
}
static inline msg attr_ints(const char *name, const char *list) {
    msg a = attr(name, 7);
    char copy[64];
    snprintf(copy, sizeof copy, "%s", list);
    for (char *w = strtok(copy, " "); w; w = strtok(NULL, " ")) number(&a, 8, atoll(w));
    return a;
}
static inline msg attr_sub(const char *name, int type, int field, msg inner) {
    msg a = attr(name, type);
    sub(&a, field, inner);
    return a;
}
static inline msg attr_ref(const char *name, int type, const char *of) {
    msg a = attr(name, type);
    text(&a, 21, of);
    return a;
}

static inline msg node(const char *op, const char *in, const char *out) {
    msg n = {0};
    names(&n, 1, in);
    names(&n, 2, out);
    text(&n, 4, op);
    return n;
}
static inline msg with(msg n, msg a) { /* takes both */
    sub(&n, 5, a);
    return n;
}
static inline msg in_domain(msg n, const char *domain) {
    text(&n, 7, domain);
    return n;
}
static inline void add_node(msg *g, msg n) { sub(g, 1, n); }
static inline void add_input(msg *g, const char *name, int type, const char *dims) {
    sub(g, 11, value_info(name, type, dims));
}
static inline void add_output(msg *g, const char *name) { sub(g, 12, value_info(name, 1, NULL)); }
static inline msg opset(const char *domain, int version) {
    msg o = {0};
    text(&o, 1, domain);
    number(&o, 2, version);
    return o;
}
static inline msg model_of(msg graph, int version) {
    msg m = {0};
    number(&m, 1, 8);
    sub(&m, 7, graph);
    sub(&m, 8, opset("", version));
    return m;
}
#endif
