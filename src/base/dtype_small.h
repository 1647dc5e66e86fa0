/* SPDX-License-Identifier: Apache-2.0
   dtype_small: what dtype.c and dtype_run.inc share: the rows of the floats narrower than f32, and float →
   integer. Private to base. */
#ifndef HONE_BASE_DTYPE_SMALL_H
#define HONE_BASE_DTYPE_SMALL_H
#include "base/dtype.h"

/* A code is sign, exponent, mantissa. Magnitudes above `max` are `inf` and NaNs; a type without inf overflows
   to `nan`. */
typedef struct {
    uint8_t mantissa; /* bits; 0 with bias 0: not a small float */
    uint8_t bias;
    uint16_t sign; /* its bit; e8m0 has none */
    uint16_t max;  /* code of the largest finite magnitude */
    uint16_t over; /* code of an overflow that does not saturate, and of inf */
    uint16_t nan;
    bool plain_zero; /* "fnuz": no negative zero; the sign bit alone is NaN, so no NaN has a sign */
} hone_small;

static const hone_small hone_smalls[HONE_DTYPE_COUNT] = {
    [HONE_DTYPE_F16] = {10, 15, 0x8000, 0x7bff, 0x7c00, 0x7e00, false},
    [HONE_DTYPE_BF16] = {7, 127, 0x8000, 0x7f7f, 0x7f80, 0x7fc0, false},
    [HONE_DTYPE_F8E4M3FN] = {3, 7, 0x80, 0x7e, 0x7f, 0x7f, false},
    [HONE_DTYPE_F8E4M3FNUZ] = {3, 8, 0x80, 0x7f, 0x80, 0x80, true},
    [HONE_DTYPE_F8E5M2] = {2, 15, 0x80, 0x7b, 0x7c, 0x7e, false},
    [HONE_DTYPE_F8E5M2FNUZ] = {2, 16, 0x80, 0x7f, 0x80, 0x80, true},
    /* neither inf nor NaN: always saturates; NaN is a zero of the other sign */
    [HONE_DTYPE_F4E2M1] = {1, 1, 0x8, 0x7, 0x7, 0x8, false},
    [HONE_DTYPE_F8E8M0] = {0, 127, 0, 0xfe, 0xff, 0xff, false},
};

/* Float → integer: truncate, saturate, NaN 0. Clamped before the conversion, so that it is defined and needs
   no branch. */
static inline int32_t hone_i32_of_f32(float v) {
    float c = v == v ? v : 0.0f;
    c = c < -2147483648.0f ? -2147483648.0f : c > 2147483520.0f ? 2147483520.0f : c;
    return v >= 2147483648.0f ? INT32_MAX : (int32_t)c;
}
static inline int32_t hone_i32_of_f64(double v) {
    double c = v == v ? v : 0.0;
    return (int32_t)(c < -2147483648.0 ? -2147483648.0 : c > 2147483647.0 ? 2147483647.0 : c);
}
static inline int64_t hone_i64_of_f64(double v) {
    double c = v == v ? v : 0.0;
    c = c < -9223372036854775808.0  ? -9223372036854775808.0
        : c > 9223372036854774784.0 ? 9223372036854774784.0
                                    : c;
    return v >= 9223372036854775808.0 ? INT64_MAX : (int64_t)c;
}
static inline uint64_t hone_u64_of_f64(double v) {
    double c = v == v ? v : 0.0;
    c = c < 0.0 ? 0.0 : c > 18446744073709549568.0 ? 18446744073709549568.0 : c;
    return v >= 18446744073709551616.0 ? UINT64_MAX : (uint64_t)c;
}
#endif
