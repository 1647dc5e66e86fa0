/* SPDX-License-Identifier: Apache-2.0
   storage: loads and stores of every element type, as text that printed C carries after fn.h.

   hone_load_<dtype>(at) widens to the compute type; hone_store_<dtype>_<ctype>(at, v, sat) narrows; hone_as_<dtype>(v) is what storage
   would hold. The meaning is base/dtype.h's, bit for bit (a test compares them); here it is plain C without tables, so that a compiler sees
   through. Plain C11 or CUDA C; OpenCL C's address spaces need a text of their own. */
#ifndef HONE_LOOPS_STORAGE_H
#define HONE_LOOPS_STORAGE_H
#ifndef HONE_LOOPS_FN_H /* pasted: fn.h stands before it */
#include "loops/fn.h"
#endif

/* A load that is outside: says which tensor, and is 0. A call, so that several in one expression are in some order. */
HONE_INLINE int32_t hone_outside(int *bad, int tensor) { return *bad = tensor, 0; }

/* ---- integers and bool: the type's bits are kept on a load, and what lies above them does not count --------------------------------- */
/* B: bits; W, C: compute type of a load; lo, hi: the range. A store comes from i64 or u64, after a float became the load's type. */
#define HONE_STORE_INT(name, T, B, W, C, lo, hi)                                                                                      \
    HONE_INLINE void hone_store_##name##_i64(void *at, int64_t v, int sat) {                                                          \
        const int64_t low = lo;                                                                                                       \
        if (sat) v = v < low ? low : v > 0 && (uint64_t)v > (uint64_t)(hi) ? (int64_t)(hi) : v;                                       \
        const T t = hone_keep_##name((uint64_t)v);                                                                                    \
        memcpy(at, &t, sizeof t);                                                                                                     \
    }                                                                                                                                 \
    HONE_INLINE void hone_store_##name##_u64(void *at, uint64_t v, int sat) {                                                         \
        if (sat && v > (uint64_t)(hi)) v = (uint64_t)(hi);                                                                            \
        const T t = hone_keep_##name(v);                                                                                              \
        memcpy(at, &t, sizeof t);                                                                                                     \
    }                                                                                                                                 \
    HONE_INLINE void hone_store_##name##_i32(void *at, int32_t v, int sat) { hone_store_##name##_i64(at, v, sat); }                   \
    HONE_INLINE void hone_store_##name##_f32(void *at, float v, int sat) { hone_store_##name##_##W(at, hone_cast_f32_##W(v), sat); }  \
    HONE_INLINE void hone_store_##name##_f64(void *at, double v, int sat) { hone_store_##name##_##W(at, hone_cast_f64_##W(v), sat); } \
    HONE_INLINE C hone_load_##name(const void *at) {                                                                                  \
        T t;                                                                                                                          \
        memcpy(&t, at, sizeof t);                                                                                                     \
        return (C)hone_keep_##name((uint64_t)t);                                                                                      \
    }                                                                                                                                 \
    HONE_INLINE C hone_as_##name(C v) {                                                                                               \
        T t;                                                                                                                          \
        hone_store_##name##_##W(&t, v, 0);                                                                                            \
        return hone_load_##name(&t);                                                                                                  \
    }
#define HONE_KEEP(name, T) \
    HONE_INLINE T hone_keep_##name(uint64_t u) { return (T)u; }
#define HONE_KEEP_BITS(name, T, B) \
    HONE_INLINE T hone_keep_##name(uint64_t u) { return (T)(u & ((1u << B) - 1)); }
#define HONE_KEEP_SIGN(name, T, B) \
    HONE_INLINE T hone_keep_##name(uint64_t u) { return (T)((int)((u & ((1u << B) - 1)) ^ 1u << (B - 1)) - (1 << (B - 1))); }
HONE_KEEP(i8, int8_t)
HONE_KEEP(i16, int16_t)
HONE_KEEP(i32, int32_t)
HONE_KEEP(i64, int64_t)
HONE_KEEP(u8, uint8_t)
HONE_KEEP(u16, uint16_t)
HONE_KEEP(u32, uint32_t)
HONE_KEEP(u64, uint64_t)
HONE_KEEP_BITS(u4, uint8_t, 4)
HONE_KEEP_BITS(u2, uint8_t, 2)
HONE_KEEP_SIGN(i4, int8_t, 4)
HONE_KEEP_SIGN(i2, int8_t, 2)
#undef HONE_KEEP
#undef HONE_KEEP_BITS
#undef HONE_KEEP_SIGN
HONE_STORE_INT(i8, int8_t, 8, i32, int32_t, INT8_MIN, INT8_MAX)
HONE_STORE_INT(i16, int16_t, 16, i32, int32_t, INT16_MIN, INT16_MAX)
HONE_STORE_INT(i32, int32_t, 32, i32, int32_t, INT32_MIN, INT32_MAX)
HONE_STORE_INT(i64, int64_t, 64, i64, int64_t, INT64_MIN, INT64_MAX)
HONE_STORE_INT(u8, uint8_t, 8, i32, int32_t, 0, UINT8_MAX)
HONE_STORE_INT(u16, uint16_t, 16, i32, int32_t, 0, UINT16_MAX)
HONE_STORE_INT(u32, uint32_t, 32, i64, int64_t, 0, UINT32_MAX)
HONE_STORE_INT(u64, uint64_t, 64, u64, uint64_t, 0, UINT64_MAX)
HONE_STORE_INT(i4, int8_t, 4, i32, int32_t, -8, 7)
HONE_STORE_INT(u4, uint8_t, 4, i32, int32_t, 0, 15)
HONE_STORE_INT(i2, int8_t, 2, i32, int32_t, -2, 1)
HONE_STORE_INT(u2, uint8_t, 2, i32, int32_t, 0, 3)
#undef HONE_STORE_INT

#define HONE_STORE_BOOL(from, F) \
    HONE_INLINE void hone_store_bool_##from(void *at, F v, int sat) { (void)sat, *(uint8_t *)at = v != 0; }
HONE_STORE_BOOL(f32, float)
HONE_STORE_BOOL(f64, double)
HONE_STORE_BOOL(i32, int32_t)
HONE_STORE_BOOL(i64, int64_t)
HONE_STORE_BOOL(u64, uint64_t)
#undef HONE_STORE_BOOL
HONE_INLINE int32_t hone_load_bool(const void *at) { return *(const uint8_t *)at != 0; }
HONE_INLINE int32_t hone_as_bool(int32_t v) { return v != 0; }

/* A string is a handle: 8 bytes that are only moved. */
HONE_INLINE void hone_store_string_u64(void *at, uint64_t v, int sat) { (void)sat, memcpy(at, &v, 8); }
HONE_INLINE uint64_t hone_load_string(const void *at) {
    uint64_t v;
    memcpy(&v, at, 8);
    return v;
}
HONE_INLINE uint64_t hone_as_string(uint64_t v) { return v; }

/* ---- f32, f64 ------------------------------------------------------------------------------------------------------------------------ */
#define HONE_STORE_FLOAT(name, T, from, F)                                \
    HONE_INLINE void hone_store_##name##_##from(void *at, F v, int sat) { \
        const T t = (T)v;                                                 \
        (void)sat, memcpy(at, &t, sizeof t);                              \
    }
HONE_STORE_FLOAT(f32, float, f32, float)
HONE_STORE_FLOAT(f32, float, i32, int32_t)
HONE_STORE_FLOAT(f32, float, i64, int64_t)
HONE_STORE_FLOAT(f32, float, u64, uint64_t)
HONE_STORE_FLOAT(f64, double, f32, float)
HONE_STORE_FLOAT(f64, double, f64, double)
HONE_STORE_FLOAT(f64, double, i32, int32_t)
HONE_STORE_FLOAT(f64, double, i64, int64_t)
HONE_STORE_FLOAT(f64, double, u64, uint64_t)
#undef HONE_STORE_FLOAT
HONE_INLINE void hone_store_f32_f64(void *at, double v, int sat) {
    float t = (float)v;
    if (sat && fabsf(t) == (float)INFINITY) t = copysignf(0x1.fffffep127f, t);
    memcpy(at, &t, 4);
}
HONE_INLINE float hone_load_f32(const void *at) {
    float v;
    memcpy(&v, at, 4);
    return v;
}
HONE_INLINE double hone_load_f64(const void *at) {
    double v;
    memcpy(&v, at, 8);
    return v;
}
HONE_INLINE float hone_as_f32(float v) { return v; }
HONE_INLINE double hone_as_f64(double v) { return v; }

/* ---- small floats: sign, exponent, M bits of mantissa ------------------------------------------------------------------------------ */
/* Magnitudes above `max` are `over` (inf, or what overflows) and NaNs. `plain`: no negative zero, the sign bit alone is NaN; `keeps`: a NaN
   keeps its payload. Rounds to nearest even; a carry out of the mantissa runs into the exponent, which is just what rounding up means. */
HONE_INLINE uint32_t hone_narrow(double v, int sat, int M, int bias, uint32_t sign_bit, uint32_t max, uint32_t over, uint32_t nan,
                                 int plain, int keeps) {
    const uint64_t bits = hone_bits_f64(v), mantissa = bits & 0xfffffffffffffu;
    const uint32_t sign = bits >> 63 ? sign_bit : 0;
    const int e = (int)(bits >> 52 & 0x7ff) - 1023, least = 1 - bias;
    if (e == 1024 && mantissa) return keeps ? sign | nan | (uint32_t)(mantissa >> (52 - M)) : plain ? nan : sign ^ nan;
    uint32_t code = max + 1u;
    if (e < 1024) {
        const int shift = 52 - M + (e < least ? least - e : 0);
        const uint64_t whole = mantissa | (uint64_t)1 << 52;
        uint64_t kept = 0;
        if (shift < 54) {
            const uint64_t rest = whole & (((uint64_t)1 << shift) - 1), half = (uint64_t)1 << (shift - 1);
            kept = whole >> shift;
            kept += rest > half || (rest == half && (kept & 1));
        }
        if (e < least) code = (uint32_t)kept;
        else if (e <= bias + 1) code = (uint32_t)kept + ((uint32_t)(e + bias - 1) << M);
    }
    if (code > max) return plain && !sat ? nan : sign | (sat ? max : over);
    return code == 0 && plain ? 0 : sign | code;
}
HONE_INLINE float hone_widen(uint32_t code, int M, int bias, uint32_t sign_bit, uint32_t max, uint32_t over, uint32_t nan, int plain) {
    const uint32_t sign = code & sign_bit, mag = code & (sign_bit - 1u), m = mag & ((1u << M) - 1);
    const int e = (int)(mag >> M);
    float v;
    if (plain && mag == 0) return sign ? hone_from_bits_f32(0x7fc00000u) : 0.0f;
    if (mag > max) v = mag == over && over != nan ? (float)INFINITY : hone_from_bits_f32(0x7fc00000u | m << (23 - M));
    else if (e == 0) v = ldexpf((float)m, 1 - bias - M);
    else v = ldexpf((float)(m | 1u << M), e - bias - M);
    return sign ? -v : v;
}
/* Powers of two without sign; a tie goes up, and between the two least codes everything does: ONNX rounds the bits of an f32, which is
   subnormal there. */
HONE_INLINE uint32_t hone_narrow_e8m0(double v, int sat) {
    if (v != v) return 0xff;
    if (v <= 0) return sat ? 0 : 0xff;
    if (v >= 0x1.8p127) return sat ? 0xfe : 0xff;
    if (v < 0x1p-126) return v > 0x1p-127;
    int e;
    const double m = frexp(v, &e);
    return (uint32_t)(e - 1 + 127 + (m >= 0.75));
}
HONE_INLINE float hone_widen_bf16(uint32_t code) { return hone_from_bits_f32(code << 16); }
HONE_INLINE float hone_widen_e8m0(uint32_t code) { return code == 0xff ? hone_from_bits_f32(0x7fc00000u) : ldexpf(1.0f, (int)code - 127); }
/* An integer as a double that rounds to any small float as the integer would: what is cut off leaves a mark in the last bit. */
HONE_INLINE double hone_sticky_u64(uint64_t v) {
    if (v >> 53) v = (v & ~(uint64_t)0x7ff) | (uint64_t)((v & 0x7ff) != 0) << 11;
    return (double)v;
}
HONE_INLINE double hone_sticky_i64(int64_t v) { return v < 0 ? -hone_sticky_u64(0 - (uint64_t)v) : hone_sticky_u64((uint64_t)v); }
#define HONE_STORE_SMALL(name, T, mask, narrow, widen)                                                                                \
    HONE_INLINE void hone_store_##name##_f64(void *at, double v, int sat) {                                                           \
        const T t = (T)narrow;                                                                                                        \
        memcpy(at, &t, sizeof t);                                                                                                     \
    }                                                                                                                                 \
    HONE_INLINE void hone_store_##name##_f32(void *at, float v, int sat) { hone_store_##name##_f64(at, (double)v, sat); }             \
    HONE_INLINE void hone_store_##name##_i32(void *at, int32_t v, int sat) { hone_store_##name##_f64(at, (double)v, sat); }           \
    HONE_INLINE void hone_store_##name##_i64(void *at, int64_t v, int sat) { hone_store_##name##_f64(at, hone_sticky_i64(v), sat); }  \
    HONE_INLINE void hone_store_##name##_u64(void *at, uint64_t v, int sat) { hone_store_##name##_f64(at, hone_sticky_u64(v), sat); } \
    HONE_INLINE float hone_load_##name(const void *at) {                                                                              \
        T t;                                                                                                                          \
        memcpy(&t, at, sizeof t);                                                                                                     \
        const uint32_t code = t & mask;                                                                                               \
        return widen;                                                                                                                 \
    }                                                                                                                                 \
    HONE_INLINE float hone_as_##name(float v) {                                                                                       \
        T t;                                                                                                                          \
        hone_store_##name##_f32(&t, v, 0);                                                                                            \
        return hone_load_##name(&t);                                                                                                  \
    }
#define HONE_SMALL(name, T, mask, M, bias, sign, max, over, nan, plain, keeps)                        \
    HONE_STORE_SMALL(name, T, mask, hone_narrow(v, sat, M, bias, sign, max, over, nan, plain, keeps), \
                     hone_widen(code, M, bias, sign, max, over, nan, plain))
HONE_SMALL(f16, uint16_t, 0xffffu, 10, 15, 0x8000u, 0x7bffu, 0x7c00u, 0x7e00u, 0, 1)
HONE_STORE_SMALL(bf16, uint16_t, 0xffffu, hone_narrow(v, sat, 7, 127, 0x8000u, 0x7f7fu, 0x7f80u, 0x7fc0u, 0, 1), hone_widen_bf16(code))
HONE_SMALL(f8e4m3fn, uint8_t, 0xffu, 3, 7, 0x80u, 0x7eu, 0x7fu, 0x7fu, 0, 0)
HONE_SMALL(f8e4m3fnuz, uint8_t, 0xffu, 3, 8, 0x80u, 0x7fu, 0x80u, 0x80u, 1, 0)
HONE_SMALL(f8e5m2, uint8_t, 0xffu, 2, 15, 0x80u, 0x7bu, 0x7cu, 0x7eu, 0, 0)
HONE_SMALL(f8e5m2fnuz, uint8_t, 0xffu, 2, 16, 0x80u, 0x7fu, 0x80u, 0x80u, 1, 0)
/* neither inf nor NaN: always saturates; NaN is a zero of the other sign */
HONE_SMALL(f4e2m1, uint8_t, 0x0fu, 1, 1, 0x8u, 0x7u, 0x7u, 0x8u, 0, 0)
HONE_STORE_SMALL(f8e8m0, uint8_t, 0xffu, hone_narrow_e8m0(v, sat), hone_widen_e8m0(code))
#undef HONE_SMALL
#undef HONE_STORE_SMALL
#endif
