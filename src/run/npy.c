/* SPDX-License-Identifier: Apache-2.0
   npy: a magic word, a version, the length of a header, the header, the elements. The header is a Python dict
   written out:

       \x93NUMPY 1 0 <u16> {'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }

   It comes from anywhere, so it is read by a small grammar of its own: three keys, in any order, each once,
   nothing else. */
#include "run/npy.h"

#include <string.h>

static const char magic[6] = "\x93NUMPY";
enum {
    PREFIX = 10 /* magic, version, u16 */,
    ALIGN = 64 /* the elements begin at a multiple */,
    HEADER_MAX = 1 << 16
};

/* What NumPy calls each type: a letter and a count of bytes. */
static const struct {
    char letter;
    uint8_t bytes;
    hone_dtype dtype;
} names[] = {{'b', 1, HONE_DTYPE_BOOL}, {'i', 1, HONE_DTYPE_I8},   {'i', 2, HONE_DTYPE_I16},
             {'i', 4, HONE_DTYPE_I32},  {'i', 8, HONE_DTYPE_I64},  {'u', 1, HONE_DTYPE_U8},
             {'u', 2, HONE_DTYPE_U16},  {'u', 4, HONE_DTYPE_U32},  {'u', 8, HONE_DTYPE_U64},
             {'f', 2, HONE_DTYPE_F16},  {'f', 4, HONE_DTYPE_F32},  {'f', 8, HONE_DTYPE_F64},
             {'c', 8, HONE_DTYPE_C64},  {'c', 16, HONE_DTYPE_C128}};
enum { NAMES = sizeof names / sizeof *names };

/* ---- reading ---- */

typedef struct {
    const char *at, *end;
    hone_dtype dtype;
    bool swap, transposed; /* big endian; column-major */
    int64_t dim[HONE_MAX_RANK];
    int rank;
} header;

static void skip(header *h) {
    while (h->at < h->end && (*h->at == ' ' || *h->at == '\t' || *h->at == '\n' || *h->at == '\r')) h->at++;
}

static bool take(header *h, const char *word) {
    skip(h);
    size_t n = strlen(word);
    if ((size_t)(h->end - h->at) < n || memcmp(h->at, word, n) != 0) return false;
    h->at += n;
    return true;
}

/* 'text' or "text", without escapes; false when there is none or it does not fit. */
static bool quoted(header *h, char *out, size_t room) {
    skip(h);
    if (h->at == h->end || (*h->at != '\'' && *h->at != '"')) return false;
    char quote = *h->at++;
    size_t n = 0;
    while (h->at < h->end && *h->at != quote && n + 1 < room) out[n++] = *h->at++;
    out[n] = 0;
    return h->at < h->end && *h->at++ == quote;
}

static hone_status read_descr(header *h) {
    char text[32];
    if (!quoted(h, text, sizeof text))
        return hone_fail(HONE_NOT_SUPPORTED,
                         "npy: the array's elements are records; only numbers and bools can be read");
    const char *p = text;
    char order = strchr("<>=|", *p) && *p ? *p++ : '=';
    char letter = *p == '?' ? 'b' : *p;
    int bytes = *p == '?' ? 1 : 0;
    if (*p) p++;
    while (*p >= '0' && *p <= '9' && bytes < 1000) bytes = bytes * 10 + (*p++ - '0');
    for (int k = 0; k < NAMES && !*p; k++)
        if (names[k].letter == letter && names[k].bytes == bytes) h->dtype = names[k].dtype;
    if (!h->dtype)
        return hone_fail(HONE_NOT_SUPPORTED,
                         "npy: elements of type '%s' cannot be read; save numbers (f2, f4, f8, c8, c16, i1 "
                         "to i8, u1 to u8) or bools",
                         text);
    union {
        uint16_t word;
        uint8_t first;
    } probe = {1};
    bool big_host = !probe.first;
    h->swap = order == '>' ? !big_host : order == '<' && big_host;
    return HONE_OK;
}

static hone_status read_shape(header *h) {
    const hone_status bad = HONE_BAD_INPUT;
    if (!take(h, "(")) return hone_fail(bad, "npy: the header's shape is not a tuple");
    while (!take(h, ")")) {
        int64_t n = 0;
        skip(h);
        const char *first = h->at;
        for (; h->at < h->end && *h->at >= '0' && *h->at <= '9'; h->at++)
            if (__builtin_mul_overflow(n, 10, &n) || __builtin_add_overflow(n, *h->at - '0', &n))
                return hone_fail(bad, "npy: a dim of the shape is too large");
        if (h->at == first) return hone_fail(bad, "npy: the header's shape holds something that is no dim");
        if (h->at < h->end && *h->at == 'L') h->at++; /* Python 2 wrote it */
        if (h->rank == HONE_MAX_RANK)
            return hone_fail(HONE_NOT_SUPPORTED, "npy: more than %d dims are not supported", HONE_MAX_RANK);
        h->dim[h->rank++] = n;
        if (take(h, ",")) continue;
        if (!take(h, ")")) return hone_fail(bad, "npy: the header's shape does not end");
        break;
    }
    return HONE_OK;
}

static hone_status read_order(header *h) {
    if (take(h, "True")) h->transposed = true;
    else if (!take(h, "False")) return hone_fail(HONE_BAD_INPUT, "npy: fortran_order must be True or False");
    return HONE_OK;
}

static hone_status read_header(header *h) {
    static const struct {
        const char *key;
        hone_status (*read)(header *);
    } keys[] = {{"descr", read_descr}, {"fortran_order", read_order}, {"shape", read_shape}};
    unsigned seen = 0;
    if (!take(h, "{")) return hone_fail(HONE_BAD_INPUT, "npy: the header is not a dict");
    while (!take(h, "}")) {
        char key[32];
        int k = 0;
        if (!quoted(h, key, sizeof key) || !take(h, ":"))
            return hone_fail(HONE_BAD_INPUT, "npy: the header is not a dict of named fields");
        while (k < 3 && strcmp(key, keys[k].key) != 0) k++;
        if (k == 3 || seen & 1u << k)
            return hone_fail(HONE_BAD_INPUT, "npy: the header's key '%s' is unknown or there twice", key);
        seen |= 1u << k;
        HONE_TRY(keys[k].read(h));
        if (take(h, ",")) continue;
        if (!take(h, "}")) return hone_fail(HONE_BAD_INPUT, "npy: the header does not end");
        break;
    }
    if (seen != 7)
        return hone_fail(HONE_BAD_INPUT, "npy: the header must name descr, fortran_order and shape");
    return HONE_OK;
}

static void reverse(uint8_t *at, size_t bytes) {
    for (size_t i = 0; i < bytes / 2; i++) {
        uint8_t keep = at[i];
        at[i] = at[bytes - 1 - i];
        at[bytes - 1 - i] = keep;
    }
}

/* Column-major elements in `from` become row-major in v: walk the output in order, with the input's offset
   counted along. */
static void transpose(hone_value *v, const uint8_t *from, size_t item) {
    int64_t at[HONE_MAX_RANK] = {0}, offset = 0, stride[HONE_MAX_RANK + 1] = {1};
    int64_t n = hone_value_count(v);
    for (int i = 0; i < v->rank; i++) stride[i + 1] = stride[i] * v->dim[i];
    for (int64_t k = 0; k < n; k++) {
        memcpy((uint8_t *)v->data + (size_t)k * item, from + (size_t)offset * item, item);
        for (int i = v->rank - 1; i >= 0; i--) {
            offset += stride[i];
            if (++at[i] < v->dim[i]) break;
            offset -= stride[i] * v->dim[i];
            at[i] = 0;
        }
    }
}

hone_status hone_npy_read(const void *data, size_t bytes, hone_value **out) {
    const uint8_t *p = data;
    if (bytes < PREFIX || memcmp(p, magic, sizeof magic) != 0)
        return hone_fail(HONE_BAD_INPUT, "npy: not a NumPy array file");
    int version = p[6];
    if (version < 1 || version > 3)
        return hone_fail(HONE_NOT_SUPPORTED, "npy: version %d is not known (1 to 3 are)", version);
    size_t prefix = version == 1 ? PREFIX : PREFIX + 2, length = p[8] | (size_t)p[9] << 8;
    if (version > 1 && bytes >= prefix) length |= (size_t)p[10] << 16 | (size_t)p[11] << 24;
    if (bytes < prefix || length > bytes - prefix || length > HEADER_MAX)
        return hone_fail(HONE_BAD_INPUT, "npy: a header of %zu bytes does not fit (the file has %zu)", length,
                         bytes);
    header h = {.at = (const char *)p + prefix, .end = (const char *)p + prefix + length};
    HONE_TRY(read_header(&h));

    size_t item = hone_dtypes[h.dtype].bytes, there = bytes - prefix - length, need;
    int64_t count;
    if (!hone_count_of(h.dim, h.rank, &count) || !hone_mul_size((size_t)count, item, &need))
        return hone_fail(HONE_BAD_INPUT, "npy: the shape is larger than memory can address");
    if (need != there)
        return hone_fail(HONE_BAD_INPUT, "npy: the shape needs %zu bytes of elements, the file has %zu", need,
                         there);
    hone_value *v = NULL;
    HONE_TRY(hone_value_tensor(h.dtype, h.dim, h.rank, &v));
    const uint8_t *from = p + prefix + length;
    if (h.transposed && h.rank > 1) transpose(v, from, item);
    else if (need) memcpy(v->data, from, need);
    size_t word = hone_dtypes[h.dtype].kind == HONE_KIND_COMPLEX ? item / 2 : item;
    for (size_t k = 0; h.swap && k < need; k += word) reverse((uint8_t *)v->data + k, word);
    for (size_t k = 0; h.dtype == HONE_DTYPE_BOOL && k < need; k++)
        ((uint8_t *)v->data)[k] = ((uint8_t *)v->data)[k] != 0;
    *out = v;
    return HONE_OK;
}

/* ---- writing ---- */

static hone_dtype written_as(hone_dtype t) {
    for (int k = 0; k < NAMES; k++)
        if (names[k].dtype == t) return t;
    switch (hone_dtypes[t].kind) {
    case HONE_KIND_FLOAT: return HONE_DTYPE_F32;
    case HONE_KIND_INT: return HONE_DTYPE_I8;
    case HONE_KIND_UINT: return HONE_DTYPE_U8;
    default: return HONE_DTYPE_NONE;
    }
}

hone_status hone_npy_write(const hone_value *v, void **out, size_t *bytes) {
    if (v->tag != HONE_TAG_TENSOR || !written_as(v->dtype))
        return hone_fail(HONE_NOT_SUPPORTED, "npy: only tensors of numbers and bools can be written, not "
                                             "strings, sequences, optionals or maps");
    hone_dtype t = written_as(v->dtype);
    size_t n = (size_t)hone_value_count(v), item = hone_dtypes[t].bytes, body, whole;
    int row = 0;
    while (names[row].dtype != t) row++;
    union {
        uint16_t word;
        uint8_t first;
    } probe = {1};
    hone_text text = {0};
    hone_text_put(&text, "{'descr': '%c%c%d', 'fortran_order': False, 'shape': (",
                  item == 1     ? '|'
                  : probe.first ? '<'
                                : '>',
                  names[row].letter, names[row].bytes);
    for (int i = 0; i < v->rank; i++)
        hone_text_put(&text, v->rank > 1 && i + 1 == v->rank ? "%lld" : "%lld, ", (long long)v->dim[i]);
    hone_text_put(&text, "), }");
    while (!text.failed && (PREFIX + text.n + 1) % ALIGN) hone_text_put(&text, " ");
    hone_text_put(&text, "\n");
    uint8_t *p = NULL;
    bool fits = !text.failed && hone_mul_size(n, item, &body) && hone_add_size(body, PREFIX + text.n, &whole);
    if (fits) p = hone_alloc_raw(whole);
    if (!p) {
        hone_text_free(&text);
        return hone_fail(HONE_NO_MEMORY, "npy: no memory to write an array of %zu elements", n);
    }
    memcpy(p, magic, sizeof magic);
    p[6] = 1, p[7] = 0, p[8] = (uint8_t)text.n, p[9] = (uint8_t)(text.n >> 8);
    memcpy(p + PREFIX, text.text, text.n);
    uint8_t *to = p + PREFIX + text.n;
    hone_text_free(&text);
    const uint8_t *from = v->data;
    if (t == v->dtype) {
        if (n) memcpy(to, from, body);
    } else {
        for (size_t k = 0; k < n; k++)
            hone_dtype_store(t, to + k * item, hone_dtypes[v->dtype].ctype,
                             hone_dtype_load(v->dtype, from + k * hone_dtypes[v->dtype].bytes), false);
    }
    *out = p;
    *bytes = whole;
    return HONE_OK;
}
