/* SPDX-License-Identifier: Apache-2.0
   sequence: lists of tensors, and optionals. Members are shared, never changed: an insert makes a new list of
   the same members. */
#include "host/call.h"

/* Makes a list of these members and gives it out as output 0. `t` is what it holds where it is empty. */
static hone_status give_list(const hone_host_call *c, hone_tag tag, hone_value *const *items, int n,
                             hone_dtype t) {
    hone_value *list;
    HONE_TRY(hone_value_list(tag, items, n, &list));
    if (!list->dtype) list->dtype = t;
    hone_call_set(c, 0, list);
    return HONE_OK;
}

/* The same, dropping the members' own references and the array. */
static hone_status give_owned(const hone_host_call *c, hone_value **items, int n, hone_dtype t,
                              hone_status s) {
    if (!s) s = give_list(c, HONE_TAG_SEQUENCE, items, n, t);
    for (int k = 0; k < n; k++) hone_value_drop(items[k]);
    hone_free(items);
    return s;
}

/* A place in [-n, last], below 0 counted from n. */
static hone_status place(const hone_host_call *c, int k, int n, int last, int otherwise, int *out) {
    int64_t p;
    HONE_TRY(hone_call_i64(c, k, otherwise, &p));
    if (p < -(int64_t)n || p > last)
        return hone_call_fail(c, HONE_BAD_INPUT,
                              "position %lld is outside [%d, %d]: the sequence has %d members", (long long)p,
                              -n, last, n);
    *out = (int)(p < 0 ? p + n : p);
    return HONE_OK;
}

hone_status hone_host_sequence_construct(const hone_host_call *c) {
    int n = hone_call_inputs(c);
    const hone_value *first = NULL;
    for (int k = 0; k < n; k++) {
        const hone_value *v;
        HONE_TRY(hone_call_tensor(c, k, &v));
        if (!first) first = v;
        if (v->dtype != first->dtype)
            return hone_call_fail(c, HONE_BAD_INPUT,
                                  "input %d is of type %s, input 0 of type %s; a sequence holds one type", k,
                                  hone_dtypes[v->dtype].name, hone_dtypes[first->dtype].name);
    }
    hone_value **items = hone_alloc(sizeof *items * (size_t)n);
    if (!items) return hone_call_no_memory(c);
    hone_status s = HONE_OK;
    for (int k = 0; k < n && !s; k++) s = hone_call_keep(c, c->in[k], items + k);
    return give_owned(c, items, n, first ? first->dtype : HONE_DTYPE_NONE, s);
}

hone_status hone_host_sequence_empty(const hone_host_call *c) {
    int64_t t = hone_call_int(c, "dtype", HONE_DTYPE_F32);
    if (!hone_dtype_valid(t))
        return hone_call_fail(c, HONE_BAD_INPUT, "attribute dtype is %lld, which is no type", (long long)t);
    return give_list(c, HONE_TAG_SEQUENCE, NULL, 0, (hone_dtype)t);
}

hone_status hone_host_sequence_insert(const hone_host_call *c) {
    const hone_value *list, *member;
    HONE_TRY(hone_call_tagged(c, 0, HONE_TAG_SEQUENCE, &list));
    HONE_TRY(hone_call_tensor(c, 1, &member));
    int n = list->n_item, at = 0;
    if (n == INT32_MAX) return hone_call_fail(c, HONE_NO_MEMORY, "the sequence is full");
    if (list->n_item && list->dtype && list->dtype != member->dtype)
        return hone_call_fail(c, HONE_BAD_INPUT, "the tensor is of type %s, the sequence holds %s",
                              hone_dtypes[member->dtype].name, hone_dtypes[list->dtype].name);
    HONE_TRY(place(c, 2, n, n, n, &at));
    hone_value **items = hone_alloc(sizeof *items * ((size_t)n + 1));
    if (!items) return hone_call_no_memory(c);
    hone_status s = HONE_OK;
    for (int k = 0; k <= n && !s; k++)
        s = hone_call_keep(c, k == at ? member : list->item[k - (k > at)], items + k);
    return give_owned(c, items, n + 1, member->dtype, s);
}

hone_status hone_host_sequence_erase(const hone_host_call *c) {
    const hone_value *list;
    int at = 0;
    HONE_TRY(hone_call_tagged(c, 0, HONE_TAG_SEQUENCE, &list));
    int n = list->n_item;
    if (!n) return hone_call_fail(c, HONE_BAD_INPUT, "the sequence is empty: nothing can be erased");
    HONE_TRY(place(c, 1, n, n - 1, n - 1, &at));
    hone_value **items = hone_alloc(sizeof *items * (size_t)n);
    if (!items) return hone_call_no_memory(c);
    hone_status s = HONE_OK;
    for (int k = 0; k < n - 1 && !s; k++) s = hone_call_keep(c, list->item[k + (k >= at)], items + k);
    return give_owned(c, items, n - 1, list->dtype, s);
}

hone_status hone_host_sequence_at(const hone_host_call *c) {
    const hone_value *list;
    int at = 0;
    HONE_TRY(hone_call_tagged(c, 0, HONE_TAG_SEQUENCE, &list));
    if (!hone_call_in(c, 1)) return hone_call_fail(c, HONE_BAD_INPUT, "input 1 (position) is missing");
    HONE_TRY(place(c, 1, list->n_item, list->n_item - 1, 0, &at));
    return hone_call_pass(c, 0, list->item[at]);
}

hone_status hone_host_sequence_length(const hone_host_call *c) {
    const hone_value *list;
    hone_value *y;
    HONE_TRY(hone_call_tagged(c, 0, HONE_TAG_SEQUENCE, &list));
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_I64, NULL, 0, &y));
    *(int64_t *)y->data = list->n_item;
    return HONE_OK;
}

/* Part [from, from + length) of x along the axis; `keep`: the axis stays. */
static hone_status part(const hone_value *x, int axis, int64_t from, int64_t length, bool keep,
                        hone_value **out) {
    int64_t dims[HONE_MAX_RANK];
    int rank = 0;
    for (int k = 0; k < x->rank; k++)
        if (k != axis || keep) dims[rank++] = k == axis ? length : x->dim[k];
    hone_value *y;
    HONE_TRY(hone_value_tensor(x->dtype, dims, rank, &y));
    hone_around a = hone_call_around(x->dim, x->rank, axis);
    size_t row = (size_t)a.inner * hone_call_bytes(x->dtype), bytes = row * (size_t)length;
    if (bytes)
        for (int64_t o = 0; o < a.outer; o++)
            memcpy((char *)y->data + (size_t)o * bytes,
                   (const char *)x->data + ((size_t)o * (size_t)a.n + (size_t)from) * row, bytes);
    hone_call_pool(y, x->strings);
    *out = y;
    return HONE_OK;
}

hone_status hone_host_split_to_sequence(const hone_host_call *c) {
    const hone_value *x, *split = NULL;
    int axis;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    if (hone_call_in(c, 1)) HONE_TRY(hone_call_tensor(c, 1, &split));
    HONE_TRY(hone_call_axis(c, hone_call_int(c, "axis", 0), x->rank, &axis));
    int64_t size = x->dim[axis], chunk = 1, n;
    bool keep = split || hone_call_int(c, "keepdims", 1);
    if (split && (split->rank > 1 || (split->dtype != HONE_DTYPE_I32 && split->dtype != HONE_DTYPE_I64)))
        return hone_call_fail(c, HONE_BAD_INPUT, "split must be a scalar or a vector of i32 or i64");
    if (split && split->rank == 1) {
        int64_t sum = 0;
        n = split->dim[0];
        for (int64_t k = 0; k < n; k++) {
            int64_t l = hone_value_i64(split, k);
            if (l < 0 || l > size - sum)
                return hone_call_fail(c, HONE_BAD_INPUT,
                                      "split[%lld] is %lld; the parts must be 0 or more and add up to %lld, "
                                      "the size of axis %d",
                                      (long long)k, (long long)l, (long long)size, axis);
            sum += l;
        }
        if (sum != size)
            return hone_call_fail(c, HONE_BAD_INPUT,
                                  "the parts in split add up to %lld, but axis %d has size %lld",
                                  (long long)sum, axis, (long long)size);
    } else {
        if (split) chunk = hone_value_i64(split, 0);
        if (chunk <= 0)
            return hone_call_fail(c, HONE_BAD_INPUT, "split is %lld; it must be above 0", (long long)chunk);
        n = size / chunk + (size % chunk != 0);
    }
    if (n > INT32_MAX)
        return hone_call_fail(c, HONE_NO_MEMORY, "a sequence of %lld members is too long", (long long)n);
    hone_value **items = hone_alloc(sizeof *items * (size_t)n);
    if (!items) return hone_call_no_memory(c);
    hone_status s = HONE_OK;
    int64_t from = 0;
    for (int64_t k = 0; k < n && !s; k++) {
        int64_t length = split && split->rank == 1 ? hone_value_i64(split, k)
                         : chunk < size - from     ? chunk
                                                   : size - from;
        s = part(x, axis, from, length, keep, items + k);
        from += length;
    }
    return give_owned(c, items, (int)n, x->dtype, s);
}

hone_status hone_host_concat_from_sequence(const hone_host_call *c) {
    const hone_value *list;
    HONE_TRY(hone_call_tagged(c, 0, HONE_TAG_SEQUENCE, &list));
    if (!list->n_item)
        return hone_call_fail(c, HONE_BAD_INPUT, "the sequence is empty: there is nothing to concatenate");
    const hone_value *first = list->item[0];
    if (first->tag != HONE_TAG_TENSOR)
        return hone_call_fail(c, HONE_BAD_INPUT, "the sequence does not hold tensors");
    bool fresh = hone_call_int(c, "new_axis", 0) != 0;
    int rank = first->rank + fresh, axis;
    if (rank > HONE_MAX_RANK)
        return hone_call_fail(c, HONE_BAD_INPUT, "the result would have rank %d; at most %d is possible",
                              rank, HONE_MAX_RANK);
    if (!hone_call_attr(c, "axis")) return hone_call_fail(c, HONE_BAD_INPUT, "attribute axis is missing");
    HONE_TRY(hone_call_axis(c, hone_call_int(c, "axis", 0), rank, &axis));
    int64_t dims[HONE_MAX_RANK], sum = 0, count;
    for (int k = 0; k < list->n_item; k++) {
        const hone_value *v = list->item[k];
        bool fits = v->tag == HONE_TAG_TENSOR && v->dtype == first->dtype && v->rank == first->rank;
        for (int d = 0; d < first->rank && fits; d++)
            fits = v->dim[d] == first->dim[d] || (!fresh && d == axis);
        if (!fits)
            return hone_call_fail(c, HONE_BAD_INPUT,
                                  "member %d differs from member 0 in type or shape; only axis %d may differ",
                                  k, axis);
        if (__builtin_add_overflow(sum, fresh ? 1 : v->dim[axis], &sum))
            return hone_call_fail(c, HONE_BAD_INPUT, "the result is too large");
    }
    for (int d = 0; d < rank; d++) dims[d] = d == axis ? sum : first->dim[d - (fresh && d > axis)];
    if (!hone_count_of(dims, rank, &count))
        return hone_call_fail(c, HONE_BAD_INPUT, "the result is too large");
    hone_value *y;
    HONE_TRY(hone_host_out(c, 0, first->dtype, dims, rank, &y));
    hone_around a = hone_call_around(dims, rank, axis);
    size_t row = (size_t)a.inner * hone_call_bytes(y->dtype), at = 0;
    if (y->dtype == HONE_DTYPE_STRING) hone_call_pool(y, c->strings);
    for (int k = 0; k < list->n_item && count; k++) {
        const hone_value *v = list->item[k];
        size_t bytes = row * (size_t)(fresh ? 1 : v->dim[axis]);
        for (int64_t o = 0; o < a.outer && bytes; o++) {
            char *to = (char *)y->data + (size_t)o * (size_t)sum * row + at;
            const char *from = (const char *)v->data + (size_t)o * bytes;
            if (y->dtype == HONE_DTYPE_STRING)
                HONE_TRY(hone_call_copy_strings(c, to, from, (int64_t)(bytes / sizeof(void *))));
            else memcpy(to, from, bytes);
        }
        at += bytes;
    }
    return HONE_OK;
}

/* ---- optionals ----------------------------------------------------------------------------------------- */
hone_status hone_host_optional(const hone_host_call *c) {
    hone_value *x = hone_call_in(c, 0), *kept = NULL;
    if (!x) return give_list(c, HONE_TAG_OPTIONAL, NULL, 0, c->out_dtype ? c->out_dtype[0] : HONE_DTYPE_NONE);
    HONE_TRY(hone_call_keep(c, x, &kept));
    hone_status s = give_list(c, HONE_TAG_OPTIONAL, &kept, 1, x->dtype);
    hone_value_drop(kept);
    return s;
}

hone_status hone_host_optional_get_element(const hone_host_call *c) {
    const hone_value *x = hone_call_in(c, 0);
    if (x && x->tag == HONE_TAG_OPTIONAL) x = x->n_item ? x->item[0] : NULL;
    if (!x) return hone_call_fail(c, HONE_BAD_INPUT, "the optional is empty: it has no element to get");
    return hone_call_pass(c, 0, x);
}

hone_status hone_host_optional_has_element(const hone_host_call *c) {
    const hone_value *x = hone_call_in(c, 0);
    hone_value *y;
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_BOOL, NULL, 0, &y));
    *(uint8_t *)y->data = x && (x->tag != HONE_TAG_OPTIONAL || x->n_item > 0);
    return HONE_OK;
}
