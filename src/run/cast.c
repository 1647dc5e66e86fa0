/* SPDX-License-Identifier: Apache-2.0
   cast: a tensor of another type, where every number fits. Unlike ONNX's Cast nothing wraps, is cut off or
   becomes infinite unsaid. */
#include <math.h>

#include "base/value.h"
#include "hone/tools.h"

static bool is_number(hone_dtype t) {
    const hone_kind k = hone_dtypes[t].kind;
    return k == HONE_KIND_FLOAT || k == HONE_KIND_INT || k == HONE_KIND_UINT || k == HONE_KIND_BOOL;
}
/* Whether it is still the number that it was; floats may round, as long as they stay finite. */
static bool kept(hone_dtype from, hone_scalar was, hone_dtype to, hone_scalar is) {
    const hone_ctype a = hone_dtypes[from].ctype, b = hone_dtypes[to].ctype;
    const double x = hone_scalar_f64(a, was), y = hone_scalar_f64(b, is);
    if (hone_dtypes[to].kind == HONE_KIND_FLOAT) return isnan(x) ? isnan(y) : isfinite(x) == isfinite(y);
    /* what is too large becomes the largest, which rounds to just that */
    if (hone_dtypes[from].kind == HONE_KIND_FLOAT && x >= (b == HONE_U64 ? 0x1p64 : 0x1p63)) return false;
    /* what a double cannot tell apart is told by the sign below, or is the same 64 bits */
    if (x != y) return false;
    return (a != HONE_U64 || b != HONE_I64 || is.i64 >= 0) &&
           (a != HONE_I64 || b != HONE_U64 || was.i64 >= 0);
}
hone_status hone_value_cast(const hone_value *v, hone_dtype to, hone_value **out) {
    if (!v || !out || !hone_dtype_valid(to))
        return hone_fail(HONE_BAD_INPUT, "hone_value_cast: value and out must not be NULL, and the type one");
    if (v->tag != HONE_TAG_TENSOR || v->away || !is_number(v->dtype) || !is_number(to))
        return hone_fail(
            HONE_BAD_INPUT,
            "only tensors of numbers, on the host, can be converted, to another type of numbers");
    hone_value *made = NULL;
    HONE_TRY(hone_value_tensor(to, v->dim, v->rank, &made));
    const size_t a = hone_dtypes[v->dtype].bytes, b = hone_dtypes[to].bytes;
    const int64_t n = hone_value_count(v);
    for (int64_t k = 0; k < n; k++) {
        const hone_scalar was = hone_dtype_load(v->dtype, (const char *)v->data + (size_t)k * a);
        char *at = (char *)made->data + (size_t)k * b;
        hone_dtype_store(to, at, hone_dtypes[v->dtype].ctype, was, false);
        if (kept(v->dtype, was, to, hone_dtype_load(to, at))) continue;
        hone_value_drop(made);
        return hone_fail(HONE_BAD_INPUT, "element %lld is %.9g, which is no %s", (long long)k,
                         hone_scalar_f64(hone_dtypes[v->dtype].ctype, was), hone_dtypes[to].name);
    }
    *out = made;
    return HONE_OK;
}
