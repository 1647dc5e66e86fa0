/* SPDX-License-Identifier: Apache-2.0
   map: ai.onnx.ml's ZipMap, DictVectorizer and CastMap. A map value is two vectors, keys and values, of one
   length. */
#include "host/lookup.h"

/* Input 0 as a map, checked. */
static hone_status find_map(const hone_host_call *c, const hone_value **keys, const hone_value **values) {
    const hone_value *x;
    HONE_TRY(hone_call_tagged(c, 0, HONE_TAG_MAP, &x));
    *keys = x->item[0];
    *values = x->item[1];
    if ((*keys)->tag != HONE_TAG_TENSOR || (*values)->tag != HONE_TAG_TENSOR ||
        hone_value_count(*keys) != hone_value_count(*values))
        return hone_call_fail(c, HONE_BAD_INPUT, "the map must have as many tensor values as keys");
    return HONE_OK;
}

/* Each row of scores as a map from label to score. */
hone_status hone_host_zip_map(const hone_host_call *c) {
    const hone_value *x;
    hone_attr ints, strings;
    HONE_TRY(hone_call_typed(c, 0, HONE_DTYPE_F32, &x));
    HONE_TRY(hone_call_list(c, "classlabels_int64s", HONE_ATTR_INTS, &ints));
    HONE_TRY(hone_call_list(c, "classlabels_strings", HONE_ATTR_STRINGS, &strings));
    if (x->rank < 1 || x->rank > 2)
        return hone_call_fail(c, HONE_BAD_INPUT, "x has rank %d; it must be [C] or [N, C]", x->rank);
    int64_t columns = x->dim[x->rank - 1], rows = x->rank == 2 ? x->dim[0] : 1;
    if ((ints.n && strings.n) || ints.n + strings.n != columns)
        return hone_call_fail(
            c, HONE_BAD_INPUT,
            "x has %lld columns; one of classlabels_int64s and classlabels_strings must have as many labels",
            (long long)columns);
    if (rows > INT32_MAX)
        return hone_call_fail(c, HONE_NO_MEMORY, "a sequence of %lld maps is too long", (long long)rows);
    hone_value *keys = NULL, **maps = hone_alloc(sizeof *maps * (size_t)rows), *list = NULL;
    hone_status s = maps ? hone_value_tensor(ints.n ? HONE_DTYPE_I64 : HONE_DTYPE_STRING, &columns, 1, &keys)
                         : hone_call_no_memory(c);
    for (int64_t k = 0; k < columns && !s; k++) {
        const hone_string *label = strings.n ? strings.s + k : NULL;
        if (ints.n) ((int64_t *)keys->data)[k] = ints.i[k];
        else s = hone_call_copy_strings(c, (const hone_string **)keys->data + k, &label, 1);
    }
    if (!s && strings.n) hone_call_pool(keys, c->strings);
    for (int64_t r = 0; r < rows && !s; r++) {
        hone_value *row;
        s = hone_value_tensor(HONE_DTYPE_F32, &columns, 1, &row);
        if (s) break;
        if (row->bytes) memcpy(row->data, (const float *)x->data + r * columns, row->bytes);
        s = hone_value_list(HONE_TAG_MAP, (hone_value *[]){keys, row}, 2, maps + r);
        hone_value_drop(row);
    }
    if (!s) s = hone_value_list(HONE_TAG_SEQUENCE, maps, (int)rows, &list);
    if (!s) hone_call_set(c, 0, list);
    for (int64_t r = 0; r < rows && maps; r++) hone_value_drop(maps[r]);
    hone_free(maps);
    hone_value_drop(keys);
    return s;
}

/* The map's values at the places that the vocabulary gives to their keys; 0 or "" elsewhere. */
hone_status hone_host_dict_vectorizer(const hone_host_call *c) {
    const hone_value *keys, *values;
    hone_value *y;
    hone_attr words;
    HONE_TRY(find_map(c, &keys, &values));
    HONE_TRY(keys->dtype == HONE_DTYPE_STRING
                 ? hone_call_list(c, "string_vocabulary", HONE_ATTR_STRINGS, &words)
                 : hone_call_list(c, "int64_vocabulary", HONE_ATTR_INTS, &words));
    if (!words.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s is missing: it goes with the map's keys",
                              words.name);
    HONE_TRY(hone_host_out(c, 0, values->dtype, (int64_t[]){1, words.n}, 2, &y));
    size_t bytes = hone_call_bytes(values->dtype);
    memset(y->data, 0, y->bytes);
    if (values->dtype == HONE_DTYPE_STRING) {
        hone_call_pool(y, values->strings);
        for (int k = 0; k < words.n; k++) ((const hone_string **)y->data)[k] = &hone_string_empty;
    }
    hone_lookup lookup;
    HONE_TRY(hone_lookup_attr(c, &words, &lookup));
    for (int64_t k = 0, n = hone_value_count(keys); k < n; k++) {
        int64_t at = hone_lookup_element(&lookup, keys, k);
        if (at >= 0)
            memcpy((char *)y->data + (size_t)at * bytes, (const char *)values->data + (size_t)k * bytes,
                   bytes);
    }
    hone_lookup_free(&lookup);
    return HONE_OK;
}

static int by_key(const void *with, int64_t a, int64_t b) {
    int64_t ka = hone_value_i64(with, a), kb = hone_value_i64(with, b);
    return (ka > kb) - (ka < kb);
}

/* The map's values as a row: in the order of keys (DENSE), or each at its key (SPARSE, up to max_map). */
static hone_status spread(const hone_host_call *c, const hone_value *keys, const hone_value *values,
                          int64_t *order, bool sparse, bool numeric, hone_value **out) {
    int64_t n = hone_value_count(keys), width = sparse ? hone_call_int(c, "max_map", 1) : n;
    if (width < 0 || width > INT32_MAX)
        return hone_call_fail(c, HONE_BAD_INPUT, "max_map is %lld", (long long)width);
    for (int64_t k = 0; k < n; k++) order[k] = k;
    if (!hone_order_sort(order, n, by_key, keys)) return hone_call_no_memory(c);
    HONE_TRY(hone_value_tensor(values->dtype, (int64_t[]){1, width}, 2, out));
    hone_call_pool(*out, values->strings);
    static const hone_string zero = {1, "0"}; /* in gaps, where strings become numbers */
    for (int64_t k = 0; k < width && numeric && values->dtype == HONE_DTYPE_STRING; k++)
        ((const hone_string **)(*out)->data)[k] = &zero;
    size_t bytes = hone_call_bytes(values->dtype);
    for (int64_t k = 0; k < n; k++) {
        int64_t at = sparse ? hone_value_i64(keys, order[k]) : k;
        if (at < 0 || at >= width) continue;
        memcpy((char *)(*out)->data + (size_t)at * bytes,
               (const char *)values->data + (size_t)order[k] * bytes, bytes);
    }
    return HONE_OK;
}

hone_status hone_host_cast_string(const hone_host_call *);

hone_status hone_host_cast_map(const hone_host_call *c) {
    static const char *const forms[] = {"DENSE", "SPARSE", NULL}, *const types[] = {"TO_FLOAT", "TO_STRING",
                                                                                    "TO_INT64", NULL};
    static const hone_dtype dtypes[] = {HONE_DTYPE_F32, HONE_DTYPE_STRING, HONE_DTYPE_I64};
    const hone_value *keys, *values;
    int form, type;
    HONE_TRY(find_map(c, &keys, &values));
    HONE_TRY(hone_call_choice(c, "map_form", forms, 0, &form));
    HONE_TRY(hone_call_choice(c, "cast_to", types, 0, &type));
    if (keys->dtype != HONE_DTYPE_I64)
        return hone_call_fail(c, HONE_BAD_INPUT, "the map's keys are of type %s; they must be i64",
                              hone_dtypes[keys->dtype].name);
    size_t bytes;
    if (!hone_mul_size((size_t)hone_value_count(keys), sizeof(int64_t), &bytes))
        return hone_call_no_memory(c);
    int64_t *order = hone_alloc(bytes);
    hone_value *row = NULL, *y;
    hone_status s =
        order ? spread(c, keys, values, order, form == 1, type != 1, &row) : hone_call_no_memory(c);
    hone_dtype t = dtypes[type];
    /* the same call, on the row instead of the map */
    if (!s && (values->dtype == HONE_DTYPE_STRING || t == HONE_DTYPE_STRING)) {
        hone_node node = *c->node;
        hone_value *in[1] = {row};
        hone_host_call cast = *c;
        node.n_in = 1;
        node.n_capture = 0;
        cast.node = &node;
        cast.in = in;
        cast.out_dtype = &t;
        s = hone_host_cast_string(&cast);
    } else if (!s) {
        s = hone_host_out(c, 0, t, row->dim, 2, &y);
        size_t from = hone_call_bytes(row->dtype), to = hone_call_bytes(t);
        for (int64_t k = 0, n = hone_value_count(row); k < n && !s; k++)
            hone_dtype_store(t, (char *)y->data + (size_t)k * to, hone_dtypes[row->dtype].ctype,
                             hone_dtype_load(row->dtype, (const char *)row->data + (size_t)k * from), false);
    }
    hone_value_drop(row);
    hone_free(order);
    return s;
}
