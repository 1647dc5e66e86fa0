/* SPDX-License-Identifier: Apache-2.0
   encode: ai.onnx.ml's ops that map elements to elements: LabelEncoder, CategoryMapper, OneHotEncoder,
   FeatureVectorizer. */
#include "host/lookup.h"

/* A list given as ints, floats, strings or a tensor, under one of four names. */
typedef struct {
    hone_attr attr;
    const hone_value *tensor;
    hone_dtype dtype;
    int64_t n;
} list;

static hone_status find_list(const hone_host_call *c, const char *const names[4], list *out) {
    static const hone_attr_kind kinds[] = {HONE_ATTR_INTS, HONE_ATTR_FLOATS, HONE_ATTR_STRINGS,
                                           HONE_ATTR_TENSOR};
    static const hone_dtype types[] = {HONE_DTYPE_I64, HONE_DTYPE_F32, HONE_DTYPE_STRING, HONE_DTYPE_NONE};
    int found = -1;
    for (int k = 0; k < 4; k++) {
        if (!names[k] || !hone_call_attr(c, names[k])) continue;
        hone_attr a;
        HONE_TRY(hone_call_list(c, names[k], kinds[k], &a));
        if (!a.n) continue;
        if (found >= 0)
            return hone_call_fail(c, HONE_BAD_INPUT,
                                  "attributes %s and %s are both given; one of them must be", names[found],
                                  names[k]);
        found = k;
        *out = (list){.attr = a,
                      .dtype = types[k],
                      .n = a.n,
                      .tensor = kinds[k] == HONE_ATTR_TENSOR ? a.tensor[0] : NULL};
        if (out->tensor) out->dtype = out->tensor->dtype, out->n = hone_value_count(out->tensor);
    }
    return found < 0 ? hone_call_fail(c, HONE_BAD_INPUT, "none of the attributes %s … is given", names[0])
                     : HONE_OK;
}

/* Copies entry k of the list to an element of the list's type. */
static hone_status put_entry(const hone_host_call *c, const list *l, int64_t k, void *to) {
    if (l->tensor && l->dtype != HONE_DTYPE_STRING) {
        size_t bytes = hone_call_bytes(l->dtype);
        memcpy(to, (const char *)l->tensor->data + (size_t)k * bytes, bytes);
    } else if (l->dtype == HONE_DTYPE_STRING) {
        const hone_string *s = l->tensor ? hone_value_string(l->tensor, k) : l->attr.s + k;
        return hone_call_copy_strings(c, to, &s, 1);
    } else if (l->dtype == HONE_DTYPE_F32) *(float *)to = (float)l->attr.f[k];
    else *(int64_t *)to = l->attr.i[k];
    return HONE_OK;
}

static hone_status put_default(const hone_host_call *c, hone_dtype t, void *to) {
    const hone_attr *a = hone_call_attr(c, "default_tensor");
    if (a && a->kind == HONE_ATTR_TENSOR && a->tensor[0]->dtype == t && hone_value_count(a->tensor[0]) > 0)
        return put_entry(c, &(list){.tensor = a->tensor[0], .dtype = t}, 0, to);
    if (t == HONE_DTYPE_STRING) {
        const hone_attr *d = hone_call_attr(c, "default_string");
        hone_string unused = {7, "_Unused"};
        const hone_string *s = d && d->kind == HONE_ATTR_STRING ? d->s : &unused;
        return hone_call_copy_strings(c, to, &s, 1);
    }
    if (hone_dtypes[t].kind == HONE_KIND_FLOAT)
        hone_dtype_store(t, to, HONE_F64, (hone_scalar){.f64 = hone_call_float(c, "default_float", -0.0)},
                         false);
    else
        hone_dtype_store(t, to, HONE_I64, (hone_scalar){.i64 = hone_call_int(c, "default_int64", -1)}, false);
    return HONE_OK;
}

static hone_status map_elements(const hone_host_call *c, const hone_value *x, const hone_lookup *keys,
                                const list *values) {
    hone_value *y;
    HONE_TRY(hone_host_out(c, 0, values->dtype, x->dim, x->rank, &y));
    if (y->dtype == HONE_DTYPE_STRING) hone_call_pool(y, c->strings);
    _Alignas(16) char otherwise[16];
    size_t bytes = hone_call_bytes(y->dtype);
    HONE_TRY(put_default(c, y->dtype, otherwise));
    for (int64_t k = 0, n = hone_value_count(x); k < n; k++) {
        int64_t at = hone_lookup_element(keys, x, k);
        char *to = (char *)y->data + (size_t)k * bytes;
        if (at >= 0) HONE_TRY(put_entry(c, values, at, to));
        else memcpy(to, otherwise, bytes);
    }
    return HONE_OK;
}

/* Keys of the type of x; numbers of other types compare by value through the order of f64 only among floats,
   of i64 only among integers. */
static hone_status check_keys(const hone_host_call *c, const hone_value *x, hone_dtype keys) {
    hone_kind a = hone_dtypes[x->dtype].kind, b = hone_dtypes[keys].kind;
    if (a == b) return HONE_OK;
    return hone_call_fail(c, HONE_BAD_INPUT, "x is of type %s, the keys of type %s",
                          hone_dtypes[x->dtype].name, hone_dtypes[keys].name);
}

hone_status hone_host_label_encoder(const hone_host_call *c) {
    static const char *const key_names[] = {"keys_int64s", "keys_floats", "keys_strings", "keys_tensor"};
    static const char *const value_names[] = {"values_int64s", "values_floats", "values_strings",
                                              "values_tensor"};
    const hone_value *x;
    list keys, values;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    HONE_TRY(find_list(c, key_names, &keys));
    HONE_TRY(find_list(c, value_names, &values));
    if (keys.n != values.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "there are %lld keys and %lld values", (long long)keys.n,
                              (long long)values.n);
    HONE_TRY(check_keys(c, x, keys.dtype));
    hone_lookup lookup;
    HONE_TRY(keys.tensor ? hone_lookup_tensor(c, keys.tensor, &lookup)
                         : hone_lookup_attr(c, &keys.attr, &lookup));
    hone_status s = map_elements(c, x, &lookup, &values);
    hone_lookup_free(&lookup);
    return s;
}

/* Strings to their numbers, or numbers to their strings, by two parallel lists. */
hone_status hone_host_category_mapper(const hone_host_call *c) {
    const hone_value *x;
    hone_attr ints, strings;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    HONE_TRY(hone_call_list(c, "cats_int64s", HONE_ATTR_INTS, &ints));
    HONE_TRY(hone_call_list(c, "cats_strings", HONE_ATTR_STRINGS, &strings));
    if (ints.n != strings.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "cats_int64s has %d entries, cats_strings %d", ints.n,
                              strings.n);
    bool text = x->dtype == HONE_DTYPE_STRING;
    list values = {
        .attr = text ? ints : strings, .dtype = text ? HONE_DTYPE_I64 : HONE_DTYPE_STRING, .n = ints.n};
    HONE_TRY(check_keys(c, x, text ? HONE_DTYPE_STRING : HONE_DTYPE_I64));
    hone_lookup lookup;
    HONE_TRY(hone_lookup_attr(c, text ? &strings : &ints, &lookup));
    hone_status s = map_elements(c, x, &lookup, &values);
    hone_lookup_free(&lookup);
    return s;
}

hone_status hone_host_one_hot_encoder(const hone_host_call *c) {
    const hone_value *x;
    hone_attr cats;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    HONE_TRY(x->dtype == HONE_DTYPE_STRING ? hone_call_list(c, "cats_strings", HONE_ATTR_STRINGS, &cats)
                                           : hone_call_list(c, "cats_int64s", HONE_ATTR_INTS, &cats));
    if (!cats.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s is missing: it goes with the type of x",
                              cats.name);
    if (x->rank == HONE_MAX_RANK)
        return hone_call_fail(c, HONE_BAD_INPUT, "x has rank %d: no room for one more axis", x->rank);
    int64_t dims[HONE_MAX_RANK], n = hone_value_count(x);
    memcpy(dims, x->dim, sizeof *dims * (size_t)x->rank);
    dims[x->rank] = cats.n;
    hone_value *y;
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_F32, dims, x->rank + 1, &y));
    if (y->bytes) memset(y->data, 0, y->bytes);
    hone_lookup lookup;
    HONE_TRY(hone_lookup_attr(c, &cats, &lookup));
    bool zeros = hone_call_int(c, "zeros", 1) != 0, whole = hone_dtypes[x->dtype].kind != HONE_KIND_FLOAT;
    hone_status s = HONE_OK;
    for (int64_t k = 0; k < n && !s; k++) {
        int64_t at, v;
        if (whole) at = hone_lookup_element(&lookup, x, k);
        else { /* a float counts as the integer it is cut to */ double d = hone_value_f64(x, k);
            v = d > -9e18 && d < 9e18 ? (int64_t)d : INT64_MIN;
            uint64_t key;
            hone_order_keys(HONE_DTYPE_I64, &key, &v, 1);
            at = hone_lookup_key(&lookup, key);
        }
        if (at >= 0) ((float *)y->data)[k * cats.n + at] = 1;
        else if (!zeros)
            s = hone_call_fail(c, HONE_BAD_INPUT, "element %lld is none of the categories", (long long)k);
    }
    hone_lookup_free(&lookup);
    return s;
}

/* All inputs side by side, as f32; each is given as many columns as inputdimensions says, cut or filled with
   zeros. */
hone_status hone_host_feature_vectorizer(const hone_host_call *c) {
    hone_attr sizes;
    int n = hone_call_inputs(c);
    int64_t rows = 0, columns = 0;
    HONE_TRY(hone_call_list(c, "inputdimensions", HONE_ATTR_INTS, &sizes));
    for (int k = 0; k < n; k++) {
        const hone_value *x;
        HONE_TRY(hone_call_tensor(c, k, &x));
        int64_t r = x->rank > 1 ? x->dim[0] : 1, own = x->rank ? x->dim[x->rank - 1] : 1,
                size = k < sizes.n ? sizes.i[k] : own;
        if (x->rank > 2 || hone_order_width(x->dtype) != 1)
            return hone_call_fail(c, HONE_BAD_INPUT, "input %d must be a vector or matrix of numbers", k);
        if (k && r != rows)
            return hone_call_fail(c, HONE_BAD_INPUT, "input %d has %lld rows, input 0 has %lld", k,
                                  (long long)r, (long long)rows);
        rows = r;
        if (size < 0 || __builtin_add_overflow(columns, size, &columns))
            return hone_call_fail(c, HONE_BAD_INPUT, "inputdimensions[%d] is %lld", k, (long long)size);
    }
    hone_value *y;
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_F32, (int64_t[]){rows, columns}, 2, &y));
    if (y->bytes) memset(y->data, 0, y->bytes);
    for (int64_t k = 0, from = 0; k < n && hone_value_count(y); k++) {
        const hone_value *x = c->in[k];
        int64_t own = x->rank ? x->dim[x->rank - 1] : 1, size = k < sizes.n ? sizes.i[k] : own;
        for (int64_t r = 0; r < rows; r++)
            for (int64_t j = 0; j < own && j < size; j++) {
                hone_scalar v = hone_dtype_load(
                    x->dtype, (const char *)x->data + (size_t)(r * own + j) * hone_call_bytes(x->dtype));
                ((float *)y->data)[r * columns + from + j] =
                    (float)hone_scalar_f64(hone_dtypes[x->dtype].ctype, v);
            }
        from += size;
    }
    return HONE_OK;
}
