/* SPDX-License-Identifier: Apache-2.0
   value: counted run-time values. Lists nest at most HONE_MAX_DEPTH deep, so recursion over a value is
   bounded. */
#include "base/value.h"

#include <limits.h>
#include <string.h>

/* ---- strings ---- */

struct hone_strings {
    int32_t holders; /* atomic */
    hone_arena *arena;
};
const hone_string hone_string_empty = {0, ""};

hone_strings *hone_strings_create(void) {
    hone_strings *s = hone_alloc(sizeof *s);
    if (!s) return NULL;
    s->holders = 1;
    s->arena = hone_arena_create();
    if (!s->arena) hone_free(s), s = NULL;
    return s;
}

hone_strings *hone_strings_hold(hone_strings *s) {
    if (s) __atomic_fetch_add(&s->holders, 1, __ATOMIC_RELAXED);
    return s;
}

void hone_strings_drop(hone_strings *s) {
    if (!s || __atomic_sub_fetch(&s->holders, 1, __ATOMIC_ACQ_REL) > 0) return;
    hone_arena_destroy(s->arena);
    hone_free(s);
}

const hone_string *hone_strings_add(hone_strings *s, const char *text, int64_t bytes) {
    if (bytes < 0) return NULL;
    if (bytes == 0) return &hone_string_empty;
    char *copy = hone_arena_textn(s->arena, text, (size_t)bytes);
    hone_string *made = copy ? HONE_NEW(s->arena, hone_string) : NULL;
    if (made) *made = (hone_string){bytes, copy};
    return made;
}

/* ---- values ---- */

/* A tensor without its data: dims and byte size checked. */
hone_status hone_value_shell(hone_dtype t, const int64_t *dims, int rank, hone_value **out) {
    int64_t count;
    size_t bytes;
    if (!hone_dtype_valid(t))
        return hone_fail(HONE_BAD_INPUT, "a tensor cannot have element type %d", (int)t);
    if (rank < 0 || rank > HONE_MAX_RANK)
        return hone_fail(HONE_NOT_SUPPORTED, "a tensor of rank %d: at most %d is supported", rank,
                         HONE_MAX_RANK);
    if (!hone_count_of(dims, rank, &count) || !hone_mul_size((size_t)count, hone_dtypes[t].bytes, &bytes) ||
        bytes > PTRDIFF_MAX)
        return hone_fail(HONE_BAD_INPUT,
                         "a tensor's dims must not be negative, nor its size above what memory can address");
    hone_value *v = hone_alloc(sizeof *v);
    if (!v) return hone_fail(HONE_NO_MEMORY, "no memory for a value");
    v->holders = 1;
    v->tag = HONE_TAG_TENSOR;
    v->dtype = t;
    v->rank = (int8_t)rank;
    if (rank) memcpy(v->dim, dims, sizeof *dims * (size_t)rank);
    v->bytes = bytes;
    *out = v;
    return HONE_OK;
}

hone_status hone_value_tensor(hone_dtype t, const int64_t *dims, int rank, hone_value **out) {
    hone_value *v = NULL;
    HONE_TRY(hone_value_shell(t, dims, rank, &v));
    if (v->bytes) {
        v->data = hone_alloc(v->bytes);
        if (!v->data) {
            hone_status s = hone_fail(HONE_NO_MEMORY, "no memory for a tensor of %zu bytes", v->bytes);
            hone_value_drop(v);
            return s;
        }
        v->free_data = hone_free;
    }
    if (t == HONE_DTYPE_STRING)
        for (int64_t k = 0, n = hone_value_count(v); k < n; k++)
            ((const hone_string **)v->data)[k] = &hone_string_empty;
    *out = v;
    return HONE_OK;
}

hone_status hone_value_view(hone_dtype t, const int64_t *dims, int rank, const void *data, hone_value **out) {
    hone_value *v = NULL;
    HONE_TRY(hone_value_shell(t, dims, rank, &v));
    if (v->bytes && !data) {
        hone_value_drop(v);
        return hone_fail(HONE_BAD_INPUT, "a tensor view with elements needs data");
    }
    v->data = v->bytes ? (void *)data : NULL;
    *out = v;
    return HONE_OK;
}

hone_status hone_value_list(hone_tag tag, hone_value *const *items, int n, hone_value **out) {
    int depth = 0;
    hone_dtype t = HONE_DTYPE_NONE;
    if (tag != HONE_TAG_SEQUENCE && tag != HONE_TAG_OPTIONAL && tag != HONE_TAG_MAP)
        return hone_fail(HONE_BUG, "tag %d is not a list", (int)tag);
    if (n < 0 || (tag == HONE_TAG_OPTIONAL && n > 1))
        return hone_fail(HONE_BAD_INPUT, "an optional holds no value or one, not %d", n);
    if (tag == HONE_TAG_MAP && n != 2)
        return hone_fail(HONE_BAD_INPUT, "a map is its keys and its values, not %d lists", n);
    for (int i = 0; i < n; i++) {
        if (!items[i]) return hone_fail(HONE_BAD_INPUT, "member %d of a list is missing", i);
        if (items[i]->away)
            return hone_fail(HONE_BAD_INPUT,
                             "member %d of a list lies on a device: bring it to the host first", i);
        if (items[i]->depth > depth) depth = items[i]->depth;
        t = i == 0 || t == items[i]->dtype ? items[i]->dtype : HONE_DTYPE_NONE;
    }
    if (depth >= HONE_MAX_DEPTH)
        return hone_fail(HONE_NOT_SUPPORTED, "lists nested deeper than %d are not supported", HONE_MAX_DEPTH);
    hone_value *v = hone_alloc(sizeof *v);
    hone_value **item = v && n ? hone_alloc(sizeof *item * (size_t)n) : NULL;
    if (!v || (n && !item)) {
        hone_free(v);
        return hone_fail(HONE_NO_MEMORY, "no memory for a list of %d values", n);
    }
    for (int i = 0; i < n; i++) item[i] = hone_value_hold(items[i]);
    *v = (hone_value){
        .holders = 1, .tag = tag, .dtype = t, .depth = (int8_t)(depth + 1), .item = item, .n_item = n};
    *out = v;
    return HONE_OK;
}

hone_value *hone_value_hold(hone_value *v) {
    if (v) __atomic_fetch_add(&v->holders, 1, __ATOMIC_RELAXED);
    return v;
}

bool hone_value_alone(const hone_value *v) { return __atomic_load_n(&v->holders, __ATOMIC_ACQUIRE) == 1; }
void hone_value_drop(hone_value *v) {
    if (!v || __atomic_sub_fetch(&v->holders, 1, __ATOMIC_ACQ_REL) > 0) return;
    for (int i = 0; i < v->n_item; i++) hone_value_drop(v->item[i]);
    hone_free(v->item);
    if (v->free_data) v->free_data(v->owner ? v->owner : v->data);
    hone_strings_drop(v->strings);
    if (v->from) {
        hone_value_drop(v->from->q), hone_value_drop(v->from->scale), hone_value_drop(v->from->zero);
        hone_free(v->from);
    }
    hone_free(v);
}
void hone_value_note(hone_value *v, hone_value *q, hone_value *scale, hone_value *zero, int64_t axis,
                     int64_t block_size) {
    if (v->from || !(v->from = hone_alloc(sizeof *v->from))) return;
    *v->from = (hone_quantized){hone_value_hold(q), hone_value_hold(scale),
                                zero ? hone_value_hold(zero) : NULL, axis, block_size};
}

static hone_status copy_strings(const hone_value *from, hone_value *to) {
    int64_t n = hone_value_count(from);
    if (n && !(to->strings = hone_strings_create()))
        return hone_fail(HONE_NO_MEMORY, "no memory for %lld strings", (long long)n);
    for (int64_t k = 0; k < n; k++) {
        const hone_string *s = hone_value_string(from, k),
                          *made = hone_strings_add(to->strings, s->text, s->bytes);
        if (!made) return hone_fail(HONE_NO_MEMORY, "no memory for %lld strings", (long long)n);
        ((const hone_string **)to->data)[k] = made;
    }
    return HONE_OK;
}

/* `left` bounds the work: a list that holds one value many times over, level upon level, would else copy
   without end. */
static hone_status copy(const hone_value *from, int64_t *left, hone_value **out) {
    hone_value *v = NULL;
    hone_status s = HONE_OK;
    if (from->away)
        return hone_fail(HONE_BAD_INPUT, "a tensor on a device must be brought to the host first");
    if (--*left < 0) return hone_fail(HONE_NO_MEMORY, "a list of too many values to copy");
    if (from->tag == HONE_TAG_TENSOR) {
        HONE_TRY(hone_value_tensor(from->dtype, from->dim, from->rank, &v));
        if (from->dtype == HONE_DTYPE_STRING) s = copy_strings(from, v);
        else if (v->bytes) memcpy(v->data, from->data, v->bytes);
    } else {
        hone_value **item = hone_alloc(sizeof *item * (size_t)from->n_item);
        if (!item) return hone_fail(HONE_NO_MEMORY, "no memory for a list of %d values", from->n_item);
        int made = 0;
        while (!s && made < from->n_item) s = copy(from->item[made], left, &item[made]), made += !s;
        if (!s) s = hone_value_list(from->tag, item, made, &v);
        if (!s) v->dtype = from->dtype; /* an empty list may know its type */
        while (made) hone_value_drop(item[--made]);
        hone_free(item);
    }
    if (s) hone_value_drop(v);
    else *out = v;
    return s;
}

hone_status hone_value_copy(const hone_value *from, hone_value **out) {
    int64_t left = INT32_MAX;
    return copy(from, &left, out);
}

/* ---- reading ---- */

int64_t hone_value_count(const hone_value *v) {
    int64_t n = 0;
    if (v->tag == HONE_TAG_TENSOR) hone_count_of(v->dim, v->rank, &n);
    return n;
}

static hone_scalar element(const hone_value *v, int64_t k) {
    return hone_dtype_load(v->dtype, (const char *)v->data + (size_t)k * hone_dtypes[v->dtype].bytes);
}

int64_t hone_value_i64(const hone_value *v, int64_t k) {
    return hone_ctype_cast(HONE_I64, hone_dtypes[v->dtype].ctype, element(v, k)).i64;
}
double hone_value_f64(const hone_value *v, int64_t k) {
    return hone_scalar_f64(hone_dtypes[v->dtype].ctype, element(v, k));
}

const hone_string *hone_value_string(const hone_value *v, int64_t k) {
    const hone_string *s = NULL;
    if (v->dtype == HONE_DTYPE_STRING && v->data)
        memcpy(&s, (const char *)v->data + (size_t)k * sizeof s, sizeof s);
    return s ? s : &hone_string_empty;
}

void hone_value_describe(const hone_value *v, hone_text *out) {
    static const char *const words[] = {
        [HONE_TAG_SEQUENCE] = "seq", [HONE_TAG_OPTIONAL] = "optional", [HONE_TAG_MAP] = "map"};
    if (v->tag == HONE_TAG_TENSOR) {
        hone_text_put(out, "%s[", hone_dtypes[v->dtype].name);
        for (int i = 0; i < v->rank; i++) hone_text_put(out, i ? ",%lld" : "%lld", (long long)v->dim[i]);
        hone_text_put(out, "]");
    } else if (v->tag == HONE_TAG_SEQUENCE) {
        hone_text_put(out, v->dtype ? "seq(%d x %s)" : "seq(%d)", v->n_item, hone_dtypes[v->dtype].name);
    } else {
        hone_text_put(out, "%s(", words[v->tag]);
        for (int i = 0; i < v->n_item; i++) {
            if (i) hone_text_put(out, ", ");
            hone_value_describe(v->item[i], out);
        }
        hone_text_put(out, ")");
    }
}
