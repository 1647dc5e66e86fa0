/* SPDX-License-Identifier: Apache-2.0
   scale: ai.onnx.ml's Scaler and Imputer: rows of numbers, each changed by its column. */
#include <math.h>

#include "host/score.h"

/* A list with one entry for all columns, or one a column. */
static hone_status per_column(const hone_host_call *c, const char *name, int n, int64_t columns) {
    if (n == 1 || n == columns) return HONE_OK;
    return hone_call_fail(c, HONE_BAD_INPUT, "attribute %s has %d entries; 1 or %lld are needed", name, n,
                          (long long)columns);
}

hone_status hone_host_scaler(const hone_host_call *c) {
    const hone_value *x;
    hone_value *y;
    int64_t rows, columns;
    hone_attr offset, scale;
    HONE_TRY(hone_score_rows(c, &x, &rows, &columns));
    HONE_TRY(hone_call_list(c, "offset", HONE_ATTR_FLOATS, &offset));
    HONE_TRY(hone_call_list(c, "scale", HONE_ATTR_FLOATS, &scale));
    HONE_TRY(per_column(c, "offset", offset.n, columns));
    HONE_TRY(per_column(c, "scale", scale.n, columns));
    HONE_TRY(hone_host_out(c, 0, HONE_DTYPE_F32, x->dim, x->rank, &y));
    /* else in floats: what follows may compare with a split that lies very near */
    bool wide = x->dtype == HONE_DTYPE_F64;
    for (int64_t k = 0, n = hone_value_count(x); k < n; k++) {
        int64_t j = k % columns;
        float by = (float)scale.f[scale.n == 1 ? 0 : j], less = (float)offset.f[offset.n == 1 ? 0 : j];
        double v = hone_score_number(x, k);
        ((float *)y->data)[k] = wide ? (float)((v - less) * by) : ((float)v - less) * by;
    }
    return HONE_OK;
}

hone_status hone_host_imputer(const hone_host_call *c) {
    const hone_value *x;
    hone_value *y;
    int64_t rows, columns;
    hone_attr with;
    HONE_TRY(hone_score_rows(c, &x, &rows, &columns));
    bool real = hone_dtypes[x->dtype].kind == HONE_KIND_FLOAT;
    HONE_TRY(real ? hone_call_list(c, "imputed_value_floats", HONE_ATTR_FLOATS, &with)
                  : hone_call_list(c, "imputed_value_int64s", HONE_ATTR_INTS, &with));
    HONE_TRY(per_column(c, with.name, with.n, columns));
    double gone = hone_call_float(c, "replaced_value_float", 0);
    int64_t gone_int = hone_call_int(c, "replaced_value_int64", 0);
    HONE_TRY(hone_host_out(c, 0, x->dtype, x->dim, x->rank, &y));
    size_t bytes = hone_call_bytes(x->dtype);
    for (int64_t k = 0, n = hone_value_count(x); k < n; k++) {
        int64_t j = with.n == 1 ? 0 : k % columns;
        char *to = (char *)y->data + (size_t)k * bytes;
        double v = real ? hone_value_f64(x, k) : 0;
        bool missing = real ? v == gone || (isnan(v) && isnan(gone)) : hone_value_i64(x, k) == gone_int;
        if (!missing) memcpy(to, (const char *)x->data + (size_t)k * bytes, bytes);
        else if (real) hone_dtype_store(x->dtype, to, HONE_F64, (hone_scalar){.f64 = with.f[j]}, false);
        else hone_dtype_store(x->dtype, to, HONE_I64, (hone_scalar){.i64 = with.i[j]}, false);
    }
    return HONE_OK;
}
