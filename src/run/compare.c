/* SPDX-License-Identifier: Apache-2.0
   compare: how far one value is from another, as ONNX's own tests ask it: |got - want| <= atol + rtol *
   |want|, element by element; and, of what two programs computed, over the largest magnitude. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/value.h"
#include "hone/tools.h"

typedef struct {
    double rtol, atol;
    hone_difference *out;
    char where[64]; /* "[1][0]": the member of a list that is being compared */
} scale;

/* The first difference is the one told; every one counts. */
static void wrong(scale *s, const char *format, ...) HONE_PRINTF(2, 3);
static void wrong(scale *s, const char *format, ...) {
    s->out->wrong++;
    if (s->out->why[0]) return;
    int n = snprintf(s->out->why, sizeof s->out->why, "%s%s", s->where, s->where[0] ? ": " : "");
    va_list args;
    va_start(args, format);
    vsnprintf(s->out->why + n, sizeof s->out->why - (size_t)n, format, args);
    va_end(args);
}

static void index_text(const hone_value *v, int64_t k, char *out, size_t room) {
    int64_t at[HONE_MAX_RANK];
    size_t n = 0;
    for (int i = v->rank - 1; i >= 0; i--) at[i] = k % v->dim[i], k /= v->dim[i];
    out[0] = 0;
    for (int i = 0; i < v->rank && n < room; i++)
        n += (size_t)snprintf(out + n, room - n, i ? ",%lld" : "%lld", (long long)at[i]);
}

/* Distance of element k, and the size it is measured by. 64-bit integers are subtracted as integers: a double
   cannot hold them. */
static double distance(const hone_value *got, const hone_value *want, int64_t k, double *size) {
    const hone_dtype_row *row = &hone_dtypes[want->dtype];
    const char *a = (const char *)got->data + (size_t)k * row->bytes,
               *b = (const char *)want->data + (size_t)k * row->bytes;
    if (row->kind == HONE_KIND_COMPLEX) {
        hone_dtype part = row->bytes == 8 ? HONE_DTYPE_F32 : HONE_DTYPE_F64;
        double g[2], w[2];
        for (int i = 0; i < 2; i++) {
            g[i] = hone_scalar_f64(hone_dtypes[part].ctype, hone_dtype_load(part, a + i * row->bytes / 2));
            w[i] = hone_scalar_f64(hone_dtypes[part].ctype, hone_dtype_load(part, b + i * row->bytes / 2));
        }
        *size = hypot(w[0], w[1]);
        bool same[2];
        for (int i = 0; i < 2; i++) same[i] = g[i] == w[i] || (isnan(g[i]) && isnan(w[i]));
        return hypot(same[0] ? 0 : g[0] - w[0], same[1] ? 0 : g[1] - w[1]);
    }
    hone_scalar x = hone_dtype_load(want->dtype, a), y = hone_dtype_load(want->dtype, b);
    double g = hone_scalar_f64(row->ctype, x), w = hone_scalar_f64(row->ctype, y);
    *size = fabs(w);
    if (row->ctype == HONE_I64) return (double)(x.i64 > y.i64 ? x.u64 - y.u64 : y.u64 - x.u64);
    if (row->ctype == HONE_U64) return (double)(x.u64 > y.u64 ? x.u64 - y.u64 : y.u64 - x.u64);
    return g == w || (isnan(g) && isnan(w)) ? 0 : g - w < 0 ? w - g : g - w;
}

static void compare_numbers(scale *s, const hone_value *got, const hone_value *want, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        double size = 0, d = distance(got, want, k, &size);
        if (d == 0) continue;
        if (isnan(d) || isinf(d)) d = INFINITY; /* one of them is NaN or infinite, the other is not */
        double rel = isinf(d) ? INFINITY : size > 0 ? d / size : 0;
        if (d > s->out->max_abs) s->out->max_abs = d;
        if (rel > s->out->max_rel) s->out->max_rel = rel;
        if (isinf(d) || !(d <= s->atol + s->rtol * size)) {
            char at[128] = "";
            if (!s->out->why[0]) index_text(want, k, at, sizeof at);
            wrong(s, "element [%s]: got %.9g, want %.9g", at, hone_value_number(got, k),
                  hone_value_number(want, k));
        }
    }
}

static void compare_strings(scale *s, const hone_value *got, const hone_value *want, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        const hone_string *g = hone_value_string(got, k), *w = hone_value_string(want, k);
        if (g->bytes == w->bytes && !memcmp(g->text, w->text, (size_t)w->bytes)) continue;
        char at[128] = "";
        if (!s->out->why[0]) index_text(want, k, at, sizeof at);
        int a = g->bytes < 40 ? (int)g->bytes : 40, b = w->bytes < 40 ? (int)w->bytes : 40;
        wrong(s, "element [%s]: got \"%.*s\", want \"%.*s\"", at, a, g->text, b, w->text);
    }
}

static bool same_dims(const hone_value *a, const hone_value *b) {
    return a->rank == b->rank && (!a->rank || !memcmp(a->dim, b->dim, sizeof *a->dim * (size_t)a->rank));
}

static bool same_key(const hone_value *a, int64_t i, const hone_value *b, int64_t k) {
    if (a->dtype != HONE_DTYPE_STRING) return hone_value_i64(a, i) == hone_value_i64(b, k);
    const hone_string *x = hone_value_string(a, i), *y = hone_value_string(b, k);
    return x->bytes == y->bytes && !memcmp(x->text, y->text, (size_t)y->bytes);
}

static bool is_integers(const hone_value *v) {
    return hone_dtypes[v->dtype].kind == HONE_KIND_INT || hone_dtypes[v->dtype].kind == HONE_KIND_UINT;
}

/* Maps have no order: the values of `got` in the order of `want`'s keys. NULL where that is not possible or
   not needed. */
static hone_value *in_order(const hone_value *got, const hone_value *want) {
    const hone_value *a = got->item[0], *b = want->item[0], *v = got->item[1];
    int64_t n = a->tag == HONE_TAG_TENSOR ? hone_value_count(a) : 0, moved = 0;
    hone_value *out = NULL;
    if (!n || b->tag != HONE_TAG_TENSOR || a->dtype != b->dtype || hone_value_count(b) != n ||
        !(is_integers(a) || a->dtype == HONE_DTYPE_STRING) || v->tag != HONE_TAG_TENSOR ||
        v->dtype == HONE_DTYPE_STRING || hone_value_count(v) != n || hone_value_copy(v, &out))
        return NULL;
    size_t bytes = hone_dtypes[v->dtype].bytes;
    for (int64_t k = 0; k < n; k++) {
        int64_t at = k;
        /* the same place is the likely one */
        for (int64_t t = 0; t < n && !same_key(a, at, b, k); t++) at = t;
        if (!same_key(a, at, b, k)) {
            hone_value_drop(out);
            return NULL;
        }
        moved += at != k;
        memcpy((char *)out->data + (size_t)k * bytes, (const char *)v->data + (size_t)at * bytes, bytes);
    }
    if (moved) return out;
    hone_value_drop(out);
    return NULL;
}

static void compare(scale *s, const hone_value *got, const hone_value *want) {
    if (got->tag == HONE_TAG_MAP && want->tag == HONE_TAG_MAP && got->n_item == 2 && want->n_item == 2) {
        hone_value *values = in_order(got, want);
        if (values) {
            compare(s, values, want->item[1]);
            hone_value_drop(values);
            return;
        }
    }
    bool tensors = got->tag == HONE_TAG_TENSOR && want->tag == HONE_TAG_TENSOR;
    if (got->tag != want->tag ||
        (tensors ? got->dtype != want->dtype || !same_dims(got, want) : got->n_item != want->n_item)) {
        hone_text a = {0}, b = {0};
        hone_value_describe(got, &a);
        hone_value_describe(want, &b);
        wrong(s, "got %s, want %s", a.text ? a.text : "", b.text ? b.text : "");
        hone_text_free(&a);
        hone_text_free(&b);
    } else if (tensors) {
        int64_t n = hone_value_count(want);
        s->out->elements += n;
        (want->dtype == HONE_DTYPE_STRING ? compare_strings : compare_numbers)(s, got, want, n);
    } else {
        size_t used = strlen(s->where);
        for (int i = 0; i < want->n_item; i++) {
            snprintf(s->where + used, sizeof s->where - used, "[%d]", i);
            compare(s, got->item[i], want->item[i]);
        }
        s->where[used] = 0;
    }
}

void hone_compare(const hone_value *got, const hone_value *want, double rtol, double atol,
                  hone_difference *out) {
    *out = (hone_difference){0};
    scale s = {.rtol = rtol, .atol = atol, .out = out};
    if (got && want && (got->away || want->away))
        wrong(&s, "%s lies on a device", got->away ? "it" : "what is wanted");
    else if (got && want) compare(&s, got, want);
    else if (got || want)
        wrong(&s, "got %s, want %s", got ? "a value" : "nothing", want ? "a value" : "nothing");
    out->ok = !out->wrong;
}

void hone_compare_answers(const hone_value *got, const hone_value *want, double tolerance,
                          hone_difference *out) {
    scale s = {.out = out};
    int64_t n = hone_value_elements(want);
    double largest = 0;
    *out = (hone_difference){.elements = n};
    if (hone_value_elements(got) != n) out->max_abs = INFINITY;
    for (int64_t k = 0; k < n && hone_value_elements(got) == n; k++) {
        double x = hone_value_number(got, k), y = hone_value_number(want, k), by = fabs(x - y);
        if (x == y || (isnan(x) && isnan(y))) by = 0;
        else if (!isfinite(by)) by = INFINITY; /* one of them is NaN or infinite, the other is not */
        if (by > out->max_abs) out->max_abs = by;
        if (isfinite(y) && fabs(y) > largest) largest = fabs(y);
    }
    out->max_rel = out->max_abs > 0 ? out->max_abs / largest : 0;
    if (!(out->max_rel <= tolerance))
        wrong(&s, "%.3g of the largest magnitude, and %.3g is allowed", out->max_rel, tolerance);
    out->ok = !out->wrong;
}
