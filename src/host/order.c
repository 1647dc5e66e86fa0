/* SPDX-License-Identifier: Apache-2.0
   order: see order.h. */
#include "host/order.h"

#include <math.h>

int hone_order_width(hone_dtype t) {
    hone_kind kind = hone_dtypes[t].kind;
    return kind == HONE_KIND_STRING ? 0 : kind == HONE_KIND_COMPLEX ? 2 : 1;
}

static uint64_t of_double(double d) {
    if (isnan(d)) return UINT64_MAX;
    if (d == 0) d = 0; /* -0 too */
    uint64_t bits;
    memcpy(&bits, &d, sizeof bits);
    return bits >> 63 ? ~bits : bits | (uint64_t)1 << 63;
}
static uint64_t of_int(int64_t i) { return (uint64_t)i ^ (uint64_t)1 << 63; }

static uint64_t of_scalar(hone_ctype c, hone_scalar v) {
    switch (c) {
    case HONE_F32: return of_double(v.f32);
    case HONE_F64: return of_double(v.f64);
    case HONE_I32: return of_int(v.i32);
    case HONE_I64: return of_int(v.i64);
    default: return v.u64;
    }
}

void hone_order_keys(hone_dtype t, uint64_t *to, const void *from, int64_t n) {
    const char *at = from;
    size_t bytes = hone_call_bytes(t);
    if (hone_order_width(t) == 2) { /* complex: two floats of half the size */
        t = t == HONE_DTYPE_C64 ? HONE_DTYPE_F32 : HONE_DTYPE_F64;
        bytes /= 2;
        n *= 2;
    }
    hone_ctype c = hone_dtypes[t].ctype;
    if (t == HONE_DTYPE_F32)
        for (int64_t k = 0; k < n; k++) {
            float f;
            memcpy(&f, at + k * 4, 4);
            to[k] = of_double(f);
        }
    else
        for (int64_t k = 0; k < n; k++) to[k] = of_scalar(c, hone_dtype_load(t, at + (size_t)k * bytes));
}

int hone_order_strings(const hone_string *a, const hone_string *b) {
    if (!a) a = &hone_string_empty;
    if (!b) b = &hone_string_empty;
    int64_t n = a->bytes < b->bytes ? a->bytes : b->bytes;
    int d = n ? memcmp(a->text, b->text, (size_t)n) : 0;
    return d ? d : (a->bytes > b->bytes) - (a->bytes < b->bytes);
}

bool hone_order_sort(int64_t *at, int64_t n, int (*compare)(const void *, int64_t, int64_t),
                     const void *with) {
    if (n < 2) return true;
    int64_t *spare = hone_alloc_raw(sizeof *spare * (size_t)n), *from = at, *to = spare;
    if (!spare) return false;
    for (int64_t run = 1; run<n; run = run> n / 2 ? n : run * 2) { /* merge runs pairwise, bottom up */
        for (int64_t lo = 0; lo < n; lo += 2 * run) {
            int64_t mid = run < n - lo ? lo + run : n, hi = run < n - mid ? mid + run : n, a = lo, b = mid;
            for (int64_t k = lo; k < hi; k++)
                to[k] = b >= hi || (a < mid && compare(with, from[a], from[b]) <= 0) ? from[a++] : from[b++];
        }
        int64_t *swap = from;
        from = to;
        to = swap;
    }
    if (from != at) memcpy(at, from, sizeof *at * (size_t)n);
    hone_free(spare);
    return true;
}
