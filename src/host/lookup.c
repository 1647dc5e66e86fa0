/* SPDX-License-Identifier: Apache-2.0
   lookup: see lookup.h. */
#include "host/lookup.h"

static int compare(const void *with, int64_t a, int64_t b) {
    const hone_lookup *l = with;
    return l->string ? hone_order_strings(l->string[a], l->string[b])
                     : (l->key[a] > l->key[b]) - (l->key[a] < l->key[b]);
}

static hone_status room(const hone_host_call *c, int64_t n, bool strings, hone_lookup *l) {
    *l = (hone_lookup){.n = n};
    size_t bytes;
    if (!hone_mul_size((size_t)n, sizeof(int64_t), &bytes)) return hone_call_no_memory(c);
    l->order = hone_alloc(bytes);
    if (strings) l->string = hone_alloc(bytes);
    else l->key = hone_alloc(bytes);
    if (l->order && (l->string || l->key)) return HONE_OK;
    hone_lookup_free(l);
    return hone_call_no_memory(c);
}

static hone_status sort(const hone_host_call *c, hone_lookup *l) {
    for (int64_t k = 0; k < l->n; k++) l->order[k] = k;
    if (hone_order_sort(l->order, l->n, compare, l)) return HONE_OK;
    hone_lookup_free(l);
    return hone_call_no_memory(c);
}

hone_status hone_lookup_attr(const hone_host_call *c, const hone_attr *a, hone_lookup *l) {
    HONE_TRY(room(c, a->n, a->kind == HONE_ATTR_STRINGS, l));
    for (int k = 0; k < a->n; k++) {
        float f = a->kind == HONE_ATTR_FLOATS ? (float)a->f[k] : 0;
        if (a->kind == HONE_ATTR_STRINGS) l->string[k] = a->s + k;
        else if (a->kind == HONE_ATTR_FLOATS) hone_order_keys(HONE_DTYPE_F32, l->key + k, &f, 1);
        else hone_order_keys(HONE_DTYPE_I64, l->key + k, a->i + k, 1);
    }
    return sort(c, l);
}

hone_status hone_lookup_tensor(const hone_host_call *c, const hone_value *v, hone_lookup *l) {
    int64_t n = hone_value_count(v);
    if (hone_order_width(v->dtype) > 1)
        return hone_call_fail(c, HONE_BAD_INPUT, "keys of type %s are not possible",
                              hone_dtypes[v->dtype].name);
    HONE_TRY(room(c, n, v->dtype == HONE_DTYPE_STRING, l));
    if (l->key) hone_order_keys(v->dtype, l->key, v->data, n);
    for (int64_t k = 0; k < n && l->string; k++) l->string[k] = hone_value_string(v, k);
    return sort(c, l);
}

void hone_lookup_free(hone_lookup *l) {
    hone_free(l->order);
    hone_free(l->key);
    hone_free(l->string);
    *l = (hone_lookup){0};
}

static int64_t find(const hone_lookup *l, uint64_t key, const hone_string *s) {
    int64_t lo = 0, hi = l->n; /* the first that is larger */
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2, at = l->order[mid];
        bool larger = s ? hone_order_strings(l->string[at], s) > 0 : l->key[at] > key;
        if (larger) hi = mid;
        else lo = mid + 1;
    }
    if (!lo) return -1;
    int64_t at = l->order[lo - 1];
    return (s ? !hone_order_strings(l->string[at], s) : l->key[at] == key) ? at : -1;
}

int64_t hone_lookup_key(const hone_lookup *l, uint64_t key) { return l->key ? find(l, key, NULL) : -1; }
int64_t hone_lookup_string(const hone_lookup *l, const hone_string *s) {
    return l->string ? find(l, 0, s) : -1;
}
int64_t hone_lookup_element(const hone_lookup *l, const hone_value *v, int64_t k) {
    if (v->dtype == HONE_DTYPE_STRING) return hone_lookup_string(l, hone_value_string(v, k));
    if (hone_order_width(v->dtype) != 1) return -1;
    uint64_t key;
    hone_order_keys(v->dtype, &key, (const char *)v->data + (size_t)k * hone_call_bytes(v->dtype), 1);
    return hone_lookup_key(l, key);
}
