/* SPDX-License-Identifier: Apache-2.0
   select: NonZero, Compress, Unique and TopK: ops whose answer is a choice of elements. */
#include "host/order.h"

/* Handles to a string that is not empty count as nonzero; a complex number is nonzero if one of its parts
   is. */
static bool nonzero(hone_dtype t, const char *at, size_t bytes) {
    hone_kind kind = hone_dtypes[t].kind;
    if (kind == HONE_KIND_STRING)
        return *(const hone_string *const *)(const void *)at &&
               (*(const hone_string *const *)(const void *)at)->bytes;
    if (kind == HONE_KIND_COMPLEX) {
        hone_dtype half = t == HONE_DTYPE_C64 ? HONE_DTYPE_F32 : HONE_DTYPE_F64;
        return nonzero(half, at, bytes / 2) || nonzero(half, at + bytes / 2, bytes / 2);
    }
    hone_scalar v = hone_dtype_load(t, at);
    switch (hone_dtypes[t].ctype) {
    case HONE_F32: return v.f32 != 0;
    case HONE_F64: return v.f64 != 0;
    case HONE_I32: return v.i32 != 0;
    default: return v.u64 != 0;
    }
}

hone_status hone_host_nonzero(const hone_host_call *c) {
    const hone_value *x;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    int64_t n = hone_value_count(x), found = 0;
    size_t bytes = hone_call_bytes(x->dtype);
    for (int64_t k = 0; k < n; k++)
        found += nonzero(x->dtype, (const char *)x->data + (size_t)k * bytes, bytes);
    hone_value *y;
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_I64, (int64_t[]){x->rank, found}, 2, &y));
    int64_t at[HONE_MAX_RANK] = {0}, *to = y->data, place = 0; /* at: the indices of element k, counted up */
    for (int64_t k = 0; k < n && place < found; k++) {
        if (nonzero(x->dtype, (const char *)x->data + (size_t)k * bytes, bytes)) {
            for (int d = 0; d < x->rank; d++) to[d * found + place] = at[d];
            place++;
        }
        for (int d = x->rank - 1; d >= 0 && ++at[d] == x->dim[d]; d--) at[d] = 0;
    }
    return HONE_OK;
}

hone_status hone_host_compress(const hone_host_call *c) {
    const hone_value *x, *cond;
    int axis = 0, rank = 1;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    HONE_TRY(hone_call_typed(c, 1, HONE_DTYPE_BOOL, &cond));
    if (cond->rank != 1)
        return hone_call_fail(c, HONE_BAD_INPUT, "condition has rank %d; it must be a vector", cond->rank);
    hone_around a = {1, hone_value_count(x), 1};
    int64_t dims[HONE_MAX_RANK];
    if (hone_call_attr(c, "axis")) {
        HONE_TRY(hone_call_axis(c, hone_call_int(c, "axis", 0), x->rank, &axis));
        a = hone_call_around(x->dim, x->rank, axis);
        rank = x->rank;
        memcpy(dims, x->dim, sizeof *dims * (size_t)rank);
    }
    int64_t n = cond->dim[0] < a.n ? cond->dim[0] : a.n, kept = 0;
    const uint8_t *yes = cond->data;
    for (int64_t k = n; k < cond->dim[0]; k++)
        if (yes[k])
            return hone_call_fail(c, HONE_BAD_INPUT,
                                  "condition[%lld] is true, but there are only %lld places", (long long)k,
                                  (long long)a.n);
    for (int64_t k = 0; k < n; k++) kept += yes[k] != 0;
    dims[axis] = kept;
    hone_value *y;
    HONE_TRY(hone_host_out(c, 0, x->dtype, dims, rank, &y));
    hone_call_pool(y, x->strings);
    size_t row = (size_t)a.inner * hone_call_bytes(x->dtype);
    char *to = y->data;
    for (int64_t o = 0; o < a.outer && kept && row; o++)
        for (int64_t k = 0; k < n; k++)
            if (yes[k]) {
                memcpy(to, (const char *)x->data + (size_t)(o * a.n + k) * row, row);
                to += row;
            }
    return HONE_OK;
}

/* ---- Unique -------------------------------------------------------------------------------------------- */
typedef struct {
    hone_around a;       /* what is compared: slices at k of n */
    const uint64_t *key; /* width keys an element, or NULL for strings */
    const hone_string *const *string;
    int width;
} slices;

static int compare_slices(const void *with, int64_t a, int64_t b) {
    const slices *s = with;
    for (int64_t o = 0; o < s->a.outer; o++) {
        int64_t ra = (o * s->a.n + a) * s->a.inner, rb = (o * s->a.n + b) * s->a.inner;
        for (int64_t i = 0; i < s->a.inner; i++) {
            if (s->string) {
                int d = hone_order_strings(s->string[ra + i], s->string[rb + i]);
                if (d) return d;
                continue;
            }
            for (int w = 0; w < s->width; w++) {
                uint64_t ka = s->key[(ra + i) * s->width + w], kb = s->key[(rb + i) * s->width + w];
                if (ka != kb) return ka < kb ? -1 : 1;
            }
        }
    }
    return 0;
}

static int compare_numbers(const void *with, int64_t a, int64_t b) {
    const int64_t *v = with;
    return (v[a] > v[b]) - (v[a] < v[b]);
}

/* at, first, group, count: room for n each. *out: how many different slices there are; they stand in `first`,
   in output order. */
static hone_status group_slices(const hone_host_call *c, const slices *s, bool sorted, int64_t *at,
                                int64_t *first, int64_t *group, int64_t *count, int64_t *out) {
    int64_t n = s->a.n, m = 0;
    for (int64_t k = 0; k < n; k++) at[k] = k;
    if (!hone_order_sort(at, n, compare_slices, s)) return hone_call_no_memory(c);
    for (int64_t k = 0; k < n; k++) { /* equal ones stand together, the earliest first */
        if (!k || compare_slices(s, at[k - 1], at[k])) {
            first[m] = at[k];
            count[m++] = 0;
        }
        group[at[k]] = m - 1;
        count[m - 1]++;
    }
    if (!sorted && m > 1) { /* by first appearance: order of groups, then rename */
        int64_t *order = hone_alloc(sizeof *order * (size_t)m * 4);
        if (!order) return hone_call_no_memory(c);
        int64_t *name = order + m, *f = order + 2 * m, *q = order + 3 * m;
        for (int64_t k = 0; k < m; k++) order[k] = k;
        bool sorted_now = hone_order_sort(order, m, compare_numbers, first);
        for (int64_t k = 0; k < m && sorted_now; k++) {
            name[order[k]] = k;
            f[k] = first[order[k]];
            q[k] = count[order[k]];
        }
        if (sorted_now) {
            memcpy(first, f, sizeof *f * (size_t)m);
            memcpy(count, q, sizeof *q * (size_t)m);
            for (int64_t k = 0; k < n; k++) group[k] = name[group[k]];
        }
        hone_free(order);
        if (!sorted_now) return hone_call_no_memory(c);
    }
    *out = m;
    return HONE_OK;
}

static hone_status give_numbers(const hone_host_call *c, int k, const int64_t *from, int64_t n) {
    if (!hone_call_wants(c, k)) return HONE_OK;
    hone_value *y;
    HONE_TRY(hone_host_out(c, k, HONE_DTYPE_I64, &n, 1, &y));
    if (n) memcpy(y->data, from, sizeof *from * (size_t)n);
    return HONE_OK;
}

static hone_status give_unique(const hone_host_call *c, const hone_value *x, const slices *s, int axis,
                               int rank, bool sorted, int64_t *room) {
    int64_t n = s->a.n, m = 0, dims[HONE_MAX_RANK];
    int64_t *first = room + n, *group = room + 2 * n, *count = room + 3 * n;
    HONE_TRY(group_slices(c, s, sorted, room, first, group, count, &m));
    memcpy(dims, x->dim, sizeof dims);
    dims[axis] = m;
    hone_value *y;
    if (hone_call_wants(c, 0)) {
        HONE_TRY(hone_host_out(c, 0, x->dtype, dims, rank, &y));
        hone_call_pool(y, x->strings);
        size_t row = (size_t)s->a.inner * hone_call_bytes(x->dtype);
        for (int64_t o = 0; o < s->a.outer && row && m; o++)
            for (int64_t k = 0; k < m; k++)
                memcpy((char *)y->data + (size_t)(o * m + k) * row,
                       (const char *)x->data + (size_t)(o * n + first[k]) * row, row);
    }
    HONE_TRY(give_numbers(c, 1, first, m));
    HONE_TRY(give_numbers(c, 2, group, n));
    return give_numbers(c, 3, count, m);
}

hone_status hone_host_unique(const hone_host_call *c) {
    const hone_value *x;
    int axis = 0, rank = 1;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    int64_t total = hone_value_count(x);
    slices s = {.a = {1, total, 1}, .width = hone_order_width(x->dtype)};
    if (hone_call_attr(c, "axis")) {
        HONE_TRY(hone_call_axis(c, hone_call_int(c, "axis", 0), x->rank, &axis));
        s.a = hone_call_around(x->dim, x->rank, axis);
        rank = x->rank;
    }
    size_t keys, places;
    if (!hone_mul_size((size_t)total, sizeof(uint64_t) * (size_t)s.width, &keys) ||
        !hone_mul_size((size_t)s.a.n, 4 * sizeof(int64_t), &places))
        return hone_call_no_memory(c);
    uint64_t *key = hone_alloc_raw(keys);
    int64_t *room = hone_alloc_raw(places);
    hone_status status = HONE_OK;
    if (!key || !room) status = hone_call_no_memory(c);
    if (!status && s.width) hone_order_keys(x->dtype, key, x->data, total);
    s.key = key;
    if (!s.width) s.string = x->data;
    if (!status) status = give_unique(c, x, &s, axis, rank, hone_call_int(c, "sorted", 1) != 0, room);
    hone_free(key);
    hone_free(room);
    return status;
}

/* ---- TopK ---------------------------------------------------------------------------------------------- */
/* Wanted first: the larger key, then the smaller place. For the smallest, keys are turned round before. */
typedef struct {
    uint64_t key;
    int64_t at;
} candidate;
static bool before(candidate a, candidate b) { return a.key != b.key ? a.key > b.key : a.at < b.at; }

static void sift(candidate *heap, int64_t n, int64_t k) { /* the last wanted stands on top */
    candidate v = heap[k];
    for (int64_t child; (child = 2 * k + 1) < n; k = child) {
        if (child + 1 < n && before(heap[child], heap[child + 1])) child++;
        if (!before(v, heap[child])) break;
        heap[k] = heap[child];
    }
    heap[k] = v;
}

static void best(candidate *heap, int64_t k, const uint64_t *key, int64_t n) {
    if (!k) return;
    for (int64_t i = 0; i < k; i++) heap[i] = (candidate){key[i], i};
    for (int64_t i = k / 2 - 1; i >= 0; i--) sift(heap, k, i);
    for (int64_t i = k; i < n; i++)
        if (key[i] > heap[0].key) { /* at equal keys the earlier place stays */
            heap[0] = (candidate){key[i], i};
            sift(heap, k, 0);
        }
    for (int64_t left = k - 1; left > 0; left--) { /* the worst goes to the end */
        candidate last = heap[0];
        heap[0] = heap[left];
        heap[left] = last;
        sift(heap, left, 0);
    }
}

hone_status hone_host_topk(const hone_host_call *c) {
    const hone_value *x;
    int axis;
    int64_t k;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    if (hone_order_width(x->dtype) != 1)
        return hone_call_fail(c, HONE_BAD_INPUT, "x is of type %s, which has no order",
                              hone_dtypes[x->dtype].name);
    if (!hone_call_in(c, 1)) return hone_call_fail(c, HONE_BAD_INPUT, "input 1 (k) is missing");
    HONE_TRY(hone_call_i64(c, 1, 0, &k));
    HONE_TRY(hone_call_axis(c, hone_call_int(c, "axis", -1), x->rank, &axis));
    hone_around a = hone_call_around(x->dim, x->rank, axis);
    if (k < 0 || k > a.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "k is %lld; axis %d has size %lld", (long long)k, axis,
                              (long long)a.n);
    int64_t dims[HONE_MAX_RANK];
    memcpy(dims, x->dim, sizeof dims);
    dims[axis] = k;
    hone_value *values = NULL, *places = NULL;
    if (hone_call_wants(c, 0)) HONE_TRY(hone_host_out(c, 0, x->dtype, dims, x->rank, &values));
    if (hone_call_wants(c, 1)) HONE_TRY(hone_host_out(c, 1, HONE_DTYPE_I64, dims, x->rank, &places));
    size_t bytes = hone_call_bytes(x->dtype), keys, room;
    if (!hone_mul_size((size_t)a.n, sizeof(uint64_t) + bytes, &keys) ||
        !hone_mul_size((size_t)k, sizeof(candidate), &room))
        return hone_call_no_memory(c);
    uint64_t *key = hone_alloc_raw(keys);
    candidate *heap = hone_alloc_raw(room);
    hone_status s = key && heap ? HONE_OK : hone_call_no_memory(c);
    char *row = key ? (char *)(key + a.n) : NULL; /* one row, gathered */
    bool largest = hone_call_int(c, "largest", 1) != 0;
    for (int64_t o = 0; o < a.outer && !s && k; o++)
        for (int64_t i = 0; i < a.inner; i++) {
            const char *from = (const char *)x->data + (size_t)(o * a.n * a.inner + i) * bytes;
            for (int64_t j = 0; j < a.n && a.inner > 1; j++)
                memcpy(row + (size_t)j * bytes, from + (size_t)(j * a.inner) * bytes, bytes);
            const char *dense = a.inner > 1 ? row : from;
            hone_order_keys(x->dtype, key, dense, a.n);
            for (int64_t j = 0; j < a.n && !largest; j++) key[j] = ~key[j];
            best(heap, k, key, a.n);
            for (int64_t j = 0; j < k; j++) {
                int64_t to = (o * k + j) * a.inner + i;
                if (values)
                    memcpy((char *)values->data + (size_t)to * bytes, dense + (size_t)heap[j].at * bytes,
                           bytes);
                if (places) ((int64_t *)places->data)[to] = heap[j].at;
            }
        }
    hone_free(key);
    hone_free(heap);
    return s;
}
