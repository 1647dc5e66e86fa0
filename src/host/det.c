/* SPDX-License-Identifier: Apache-2.0
   det: determinants, by elimination with the largest pivot of each column. In f64 whatever the type. */
#include <math.h>

#include "host/call.h"

static double determinant(double *a, int64_t n) {
    double det = 1;
    for (int64_t k = 0; k < n; k++) {
        int64_t best = k;
        for (int64_t r = k + 1; r < n; r++)
            if (fabs(a[r * n + k]) > fabs(a[best * n + k])) best = r;
        double pivot = a[best * n + k];
        det *= best == k ? pivot : -pivot;
        if (pivot == 0) return 0;
        for (int64_t j = k; j < n && best != k; j++) {
            double swap = a[k * n + j];
            a[k * n + j] = a[best * n + j];
            a[best * n + j] = swap;
        }
        for (int64_t r = k + 1; r < n; r++) {
            double f = a[r * n + k] / pivot;
            for (int64_t j = k + 1; j < n && f != 0; j++) a[r * n + j] -= f * a[k * n + j];
        }
    }
    return det;
}

hone_status hone_host_det(const hone_host_call *c) {
    const hone_value *x;
    hone_value *y;
    HONE_TRY(hone_call_tensor(c, 0, &x));
    if (hone_dtypes[x->dtype].kind != HONE_KIND_FLOAT)
        return hone_call_fail(c, HONE_BAD_INPUT, "x is of type %s; it must be a float",
                              hone_dtypes[x->dtype].name);
    if (x->rank < 2 || x->dim[x->rank - 1] != x->dim[x->rank - 2])
        return hone_call_fail(c, HONE_BAD_INPUT, "x must hold square matrices in its last two dims");
    int64_t n = x->dim[x->rank - 1], bytes = (int64_t)hone_call_bytes(x->dtype);
    HONE_TRY(hone_host_out(c, 0, x->dtype, x->dim, x->rank - 2, &y));
    size_t square;
    if (!hone_mul_size((size_t)n, (size_t)n, &square) || !hone_mul_size(square, sizeof(double), &square))
        return hone_call_no_memory(c);
    double *a = hone_alloc_raw(square);
    if (!a) return hone_call_no_memory(c);
    for (int64_t k = 0, count = hone_value_count(y); k < count; k++) {
        for (int64_t j = 0; j < n * n; j++) a[j] = hone_value_f64(x, k * n * n + j);
        hone_dtype_store(y->dtype, (char *)y->data + k * bytes, HONE_F64,
                         (hone_scalar){.f64 = determinant(a, n)}, false);
    }
    hone_free(a);
    return HONE_OK;
}
