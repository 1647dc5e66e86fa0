/* SPDX-License-Identifier: Apache-2.0
   score: see score.h. */
#include "host/score.h"

#include <math.h>

hone_status hone_score_attr(const hone_host_call *c, hone_score_kind *out) {
    static const char *const names[] = {"NONE", "SOFTMAX", "LOGISTIC", "SOFTMAX_ZERO", "PROBIT", NULL};
    int kind;
    HONE_TRY(hone_call_choice(c, "post_transform", names, 0, &kind));
    *out = (hone_score_kind)kind;
    return HONE_OK;
}

static double logistic(double v) { return v < 0 ? 1 - 1 / (1 + exp(v)) : 1 / (1 + exp(-v)); }

/* The quantile of the normal distribution: an approximation (Winitzki 2008), then Newton on erf. */
static double probit(double p) {
    double x = 2 * p - 1, inside = (1 - x) * (1 + x);
    if (!(inside > 0)) return x < 0 ? -INFINITY : x > 0 ? INFINITY : x;
    double l = log(inside), v = 2 / (3.14159265358979323846 * 0.147) + l / 2,
           root = sqrt(sqrt(v * v - l / 0.147) - v), y = x < 0 ? -root : root;
    for (int k = 0; k < 3; k++) y -= (erf(y) - x) / (1.12837916709551257390 * exp(-y * y));
    return 1.41421356237309504880 * y;
}

void hone_score_apply(hone_score_kind kind, double *row, int64_t n) {
    if (kind == HONE_SCORE_LOGISTIC || kind == HONE_SCORE_PROBIT)
        for (int64_t k = 0; k < n; k++)
            row[k] = kind == HONE_SCORE_LOGISTIC ? logistic(row[k]) : probit(row[k]);
    if ((kind != HONE_SCORE_SOFTMAX && kind != HONE_SCORE_SOFTMAX_ZERO) || !n) return;
    double top = row[0], sum = 0;
    for (int64_t k = 1; k < n; k++) top = row[k] > top ? row[k] : top;
    for (int64_t k = 0; k < n; k++) { /* SOFTMAX_ZERO: what is zero stays zero, or nearly */
        row[k] = kind == HONE_SCORE_SOFTMAX || fabs(row[k]) > 1e-7 ? exp(row[k] - top) : row[k] * exp(-top);
        sum += row[k];
    }
    for (int64_t k = 0; k < n; k++) row[k] = sum == 0 ? 0.5 : row[k] / sum;
}

hone_status hone_labels_find(const hone_host_call *c, const char *ints, const char *strings,
                             hone_labels *out) {
    HONE_TRY(hone_call_list(c, ints, HONE_ATTR_INTS, &out->ints));
    HONE_TRY(hone_call_list(c, strings, HONE_ATTR_STRINGS, &out->strings));
    if (out->ints.n && out->strings.n)
        return hone_call_fail(c, HONE_BAD_INPUT, "attributes %s and %s are both given; one of them must be",
                              ints, strings);
    out->n = out->ints.n ? out->ints.n : out->strings.n;
    return HONE_OK;
}

hone_status hone_labels_out(const hone_host_call *c, const hone_labels *l, int64_t rows, hone_value **out) {
    HONE_TRY(hone_host_out(c, 0, l->strings.n ? HONE_DTYPE_STRING : HONE_DTYPE_I64, &rows, 1, out));
    if (l->strings.n) hone_call_pool(*out, c->strings);
    return HONE_OK;
}

hone_status hone_labels_put(const hone_host_call *c, const hone_labels *l, hone_value *to, int64_t row,
                            int64_t class) {
    if (l->strings.n) {
        const hone_string *s = class < l->n ? l->strings.s + class : &hone_string_empty;
        return hone_call_copy_strings(c, (const hone_string **)to->data + row, &s, 1);
    }
    ((int64_t *)to->data)[row] = class < l->ints.n ? l->ints.i[class] : class;
    return HONE_OK;
}

hone_status hone_score_rows(const hone_host_call *c, const hone_value **x, int64_t *rows, int64_t *columns) {
    HONE_TRY(hone_call_tensor(c, 0, x));
    hone_kind kind = hone_dtypes[(*x)->dtype].kind;
    if ((*x)->rank < 1 || (*x)->rank > 2 ||
        (kind != HONE_KIND_FLOAT && kind != HONE_KIND_INT && kind != HONE_KIND_UINT &&
         kind != HONE_KIND_BOOL))
        return hone_call_fail(c, HONE_BAD_INPUT, "x must be a vector or a matrix of numbers");
    *rows = (*x)->rank == 2 ? (*x)->dim[0] : 1;
    *columns = (*x)->dim[(*x)->rank - 1];
    return HONE_OK;
}

double hone_score_number(const hone_value *x, int64_t k) {
    return hone_scalar_f64(
        hone_dtypes[x->dtype].ctype,
        hone_dtype_load(x->dtype, (const char *)x->data + (size_t)k * hone_call_bytes(x->dtype)));
}
