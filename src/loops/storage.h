/* SPDX-License-Identifier: Apache-2.0
   storage: loads and stores of every element type, as text that printed C carries after fn.h.

   By value: hone_get_<dtype>(bits) widens what was loaded to the compute type; hone_put_<dtype>_<ctype>(v,
   sat) is what is stored; hone_as_<dtype>(v) is what storage would hold. Kernels use these, so that no
   address space is named here. C11 also has them by address: hone_load_<dtype>(at),
   hone_store_<dtype>_<ctype>(at, v, sat). The meaning is base/dtype.h's, bit for bit (a test compares them);
   here it is plain C without tables, so that a compiler sees through. Small floats are made from the bits of
   an f64, by integers: a device without f64 has them too. C11, CUDA C and OpenCL C (HONE_NO_F64 where the
   device has none). */
#ifndef HONE_LOOPS_STORAGE_H
#define HONE_LOOPS_STORAGE_H
#ifndef HONE_LOOPS_FN_H /* pasted: fn.h stands before it */
#include "loops/fn.h"
#endif

#if !defined(__OPENCL_VERSION__) && !defined(__CUDACC_RTC__) && !defined(HONE_KERNEL)
/* A load that is outside: says which tensor, and is 0. A call, so that several in one expression are in some
   order. */
HONE_INLINE int32_t hone_outside(int *bad, int tensor) { return *bad = tensor, 0; }
#define HONE_BY_ADDRESS(name, T, C)                                           \
    HONE_INLINE void hone_store_##name##_i32(void *at, int32_t v, int sat) {  \
        const T t = hone_put_##name##_i32(v, sat);                            \
        memcpy(at, &t, sizeof t);                                             \
    }                                                                         \
    HONE_INLINE void hone_store_##name##_i64(void *at, int64_t v, int sat) {  \
        const T t = hone_put_##name##_i64(v, sat);                            \
        memcpy(at, &t, sizeof t);                                             \
    }                                                                         \
    HONE_INLINE void hone_store_##name##_u64(void *at, uint64_t v, int sat) { \
        const T t = hone_put_##name##_u64(v, sat);                            \
        memcpy(at, &t, sizeof t);                                             \
    }                                                                         \
    HONE_INLINE void hone_store_##name##_f32(void *at, float v, int sat) {    \
        const T t = hone_put_##name##_f32(v, sat);                            \
        memcpy(at, &t, sizeof t);                                             \
    }                                                                         \
    HONE_INLINE void hone_store_##name##_f64(void *at, double v, int sat) {   \
        const T t = hone_put_##name##_f64(v, sat);                            \
        memcpy(at, &t, sizeof t);                                             \
    }                                                                         \
    HONE_INLINE C hone_load_##name(const void *at) {                          \
        T t;                                                                  \
        memcpy(&t, at, sizeof t);                                             \
        return hone_get_##name(t);                                            \
    }
#else
#define HONE_BY_ADDRESS(name, T, C)
#endif
#if defined(HONE_NO_F64) /* what takes or gives a double is left out */
#define HONE_IF_F64(text)
#else
#define HONE_IF_F64(text) text
#endif

/* ---- integers and bool: the type's bits are kept on a load, and what lies above them does not count ---- */
/* B: bits; W, C: compute type of a load; lo, hi: the range. A store comes from i64 or u64, after a float
   became the load's type. */
#define HONE_STORE_INT(name, T, B, W, C, lo, hi)                                                      \
    HONE_INLINE T hone_put_##name##_i64(int64_t v, int sat) {                                         \
        const int64_t low = lo;                                                                       \
        if (sat) v = v < low ? low : v > 0 && (uint64_t)v > (uint64_t)(hi) ? (int64_t)(hi) : v;       \
        return hone_keep_##name((uint64_t)v);                                                         \
    }                                                                                                 \
    HONE_INLINE T hone_put_##name##_u64(uint64_t v, int sat) {                                        \
        if (sat && v > (uint64_t)(hi)) v = (uint64_t)(hi);                                            \
        return hone_keep_##name(v);                                                                   \
    }                                                                                                 \
    HONE_INLINE T hone_put_##name##_i32(int32_t v, int sat) { return hone_put_##name##_i64(v, sat); } \
    HONE_INLINE T hone_put_##name##_f32(float v, int sat) {                                           \
        return hone_put_##name##_##W(hone_cast_f32_##W(v), sat);                                      \
    }                                                                                                 \
    HONE_IF_F64(HONE_INLINE T hone_put_##name##_f64(double v, int sat) {                              \
        return hone_put_##name##_##W(hone_cast_f64_##W(v), sat);                                      \
    })                                                                                                \
    HONE_INLINE C hone_get_##name(T t) { return (C)hone_keep_##name((uint64_t)t); }                   \
    HONE_INLINE C hone_as_##name(C v) { return hone_get_##name(hone_put_##name##_##W(v, 0)); }        \
    HONE_BY_ADDRESS(name, T, C)
#define HONE_KEEP(name, T) \
    HONE_INLINE T hone_keep_##name(uint64_t u) { return (T)u; }
#define HONE_KEEP_BITS(name, T, B) \
    HONE_INLINE T hone_keep_##name(uint64_t u) { return (T)(u & ((1u << B) - 1)); }
#define HONE_KEEP_SIGN(name, T, B)                                                 \
    HONE_INLINE T hone_keep_##name(uint64_t u) {                                   \
        return (T)((int)((u & ((1u << B) - 1)) ^ 1u << (B - 1)) - (1 << (B - 1))); \
    }
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
    HONE_INLINE uint8_t hone_put_bool_##from(F v, int sat) { return (void)sat, (uint8_t)(v != 0); }
HONE_STORE_BOOL(f32, float)
HONE_IF_F64(HONE_STORE_BOOL(f64, double))
HONE_STORE_BOOL(i32, int32_t)
HONE_STORE_BOOL(i64, int64_t)
HONE_STORE_BOOL(u64, uint64_t)
#undef HONE_STORE_BOOL
HONE_INLINE int32_t hone_get_bool(uint8_t t) { return t != 0; }
HONE_INLINE int32_t hone_as_bool(int32_t v) { return v != 0; }
HONE_BY_ADDRESS(bool, uint8_t, int32_t)

/* A string is a handle: 8 bytes that are only moved; so is a pair of two f32. */
HONE_INLINE uint64_t hone_as_string(uint64_t v) { return v; }
HONE_INLINE uint64_t hone_get_string(uint64_t v) { return v; }
HONE_INLINE uint64_t hone_put_string_u64(uint64_t v, int sat) { return (void)sat, v; }
#if !defined(__OPENCL_VERSION__) && !defined(__CUDACC_RTC__) && !defined(HONE_KERNEL)
HONE_INLINE void hone_store_string_u64(void *at, uint64_t v, int sat) { (void)sat, memcpy(at, &v, 8); }
HONE_INLINE uint64_t hone_load_string(const void *at) {
    uint64_t v;
    memcpy(&v, at, 8);
    return v;
}
#endif

/* ---- f32, f64 ------------------------------------------------------------------------------------------ */
#define HONE_STORE_FLOAT(name, T, from, F) \
    HONE_INLINE T hone_put_##name##_##from(F v, int sat) { return (void)sat, (T)v; }
HONE_STORE_FLOAT(f32, float, f32, float)
HONE_STORE_FLOAT(f32, float, i32, int32_t)
HONE_STORE_FLOAT(f32, float, i64, int64_t)
HONE_STORE_FLOAT(f32, float, u64, uint64_t)
HONE_INLINE float hone_get_f32(float v) { return v; }
HONE_INLINE float hone_as_f32(float v) { return v; }
#if !defined(HONE_NO_F64)
HONE_STORE_FLOAT(f64, double, f32, float)
HONE_STORE_FLOAT(f64, double, f64, double)
HONE_STORE_FLOAT(f64, double, i32, int32_t)
HONE_STORE_FLOAT(f64, double, i64, int64_t)
HONE_STORE_FLOAT(f64, double, u64, uint64_t)
HONE_INLINE float hone_put_f32_f64(double v, int sat) {
    const float t = (float)v;
    return sat && fabsf(t) == (float)INFINITY ? copysignf(0x1.fffffep127f, t) : t;
}
HONE_INLINE double hone_get_f64(double v) { return v; }
HONE_INLINE double hone_as_f64(double v) { return v; }
HONE_BY_ADDRESS(f32, float, float)
HONE_BY_ADDRESS(f64, double, double)
#endif
#undef HONE_STORE_FLOAT

/* ---- small floats: sign, exponent, M bits of mantissa -------------------------------------------------- */
/* The bits of an f64 that is this float, or rounds to any small float as this integer would: what is cut off
   leaves a mark in the last bit. */
HONE_INLINE uint64_t hone_wide_u64(uint64_t v) {
    if (!v) return 0;
    int e = 63;
    for (int k = 32; k; k >>= 1) /* the first bit comes to the top */
        if (!(v >> (64 - k))) v <<= k, e -= k;
    const uint64_t mark = (v & 0x7ffu) != 0;
    return ((uint64_t)(e + 1023) << 52) | ((v << 1) >> 12) | mark;
}
HONE_INLINE uint64_t hone_wide_i64(int64_t v) {
    return v < 0 ? (uint64_t)1 << 63 | hone_wide_u64((uint64_t)0 - (uint64_t)v) : hone_wide_u64((uint64_t)v);
}
HONE_INLINE uint64_t hone_wide_i32(int32_t v) { return hone_wide_i64(v); }
HONE_INLINE uint64_t hone_wide_f32(float v) {
    const uint32_t u = hone_bits_f32(v), m = u & 0x7fffffu, e = u >> 23 & 0xffu;
    const uint64_t sign = (uint64_t)(u >> 31) << 63;
    if (e == 0) return m ? sign | (hone_wide_u64(m) - ((uint64_t)149 << 52)) : sign;
    return sign | (uint64_t)(e == 0xffu ? 0x7ffu : e + 896u) << 52 | (uint64_t)m << 29;
}
HONE_IF_F64(HONE_INLINE uint64_t hone_wide_f64(double v) { return hone_bits_f64(v); })
/* Magnitudes above `max` are `over` (inf, or what overflows) and NaNs. `plain`: no negative zero, the sign
   bit alone is NaN; `keeps`: a NaN keeps its payload. Rounds to nearest even; a carry out of the mantissa
   runs into the exponent, which is just what rounding up means. */
HONE_INLINE uint32_t hone_narrow(uint64_t bits, int sat, int M, int bias, uint32_t sign_bit, uint32_t max,
                                 uint32_t over, uint32_t nan_bits, int plain, int keeps) {
    const uint64_t mantissa = bits & 0xfffffffffffffu;
    const uint32_t sign = bits >> 63 ? sign_bit : 0;
    const int e = (int)(bits >> 52 & 0x7ff) - 1023, least = 1 - bias;
    if (e == 1024 && mantissa)
        return keeps   ? sign | nan_bits | (uint32_t)(mantissa >> (52 - M))
               : plain ? nan_bits
                       : sign ^ nan_bits;
    uint32_t code = max + 1u;
    if (e < 1024) {
        const int shift = 52 - M + (e < least ? least - e : 0);
        const uint64_t whole = mantissa | (uint64_t)1 << 52;
        uint64_t kept = 0;
        if (shift < 54) {
            const uint64_t rest = whole & (((uint64_t)1 << shift) - 1), middle = (uint64_t)1 << (shift - 1);
            kept = whole >> shift;
            kept += rest > middle || (rest == middle && (kept & 1));
        }
        if (e < least) code = (uint32_t)kept;
        else if (e <= bias + 1) code = (uint32_t)kept + ((uint32_t)(e + bias - 1) << M);
    }
    if (code > max) return plain && !sat ? nan_bits : sign | (sat ? max : over);
    return code == 0 && plain ? 0 : sign | code;
}
/* 2^e times a mantissa of at most 24 bits, made of bits: no call, and no device that flushes small numbers is
   asked. */
HONE_INLINE float hone_scaled(uint32_t m, int e) {
    if (!m) return 0.0f;
    int top = 0;
    while (m >> top > 1) top++;
    if (e + top >= -126)
        return hone_from_bits_f32((uint32_t)(e + top + 127) << 23 | ((m << (23 - top)) & 0x7fffffu));
    return hone_from_bits_f32(m << (e + 149));
}
HONE_INLINE float hone_widen(uint32_t code, int M, int bias, uint32_t sign_bit, uint32_t max, uint32_t over,
                             uint32_t nan_bits, int plain) {
    const uint32_t sign = code & sign_bit, mag = code & (sign_bit - 1u), m = mag & ((1u << M) - 1);
    const int e = (int)(mag >> M);
    float v;
    if (plain && mag == 0) return sign ? hone_from_bits_f32(0x7fc00000u) : 0.0f;
    if (mag > max)
        v = mag == over && over != nan_bits ? (float)INFINITY
                                            : hone_from_bits_f32(0x7fc00000u | m << (23 - M));
    else if (e == 0) v = hone_scaled(m, 1 - bias - M);
    else v = hone_from_bits_f32((uint32_t)(e - bias + 127) << 23 | m << (23 - M));
    return sign ? -v : v;
}
/* Powers of two without sign; a tie goes up, and between the two least codes everything does: ONNX rounds the
   bits of an f32, which is subnormal there. */
HONE_INLINE uint32_t hone_narrow_e8m0(uint64_t bits, int sat) {
    const uint64_t mag = bits & 0x7fffffffffffffffu;
    if (mag > 0x7ff0000000000000u) return 0xff;
    if (!mag || bits >> 63) return sat ? 0 : 0xff;
    const int e = (int)(mag >> 52) - 1023;
    const int half_up = (int)(mag >> 51 & 1);
    if (e + half_up >= 128) return sat ? 0xfe : 0xff;
    if (e < -126) return mag > 0x3800000000000000u; /* 2^-127 */
    return (uint32_t)(e + 127 + half_up);
}
HONE_INLINE float hone_widen_e8m0(uint32_t code) {
    return code == 0xff ? hone_from_bits_f32(0x7fc00000u) : hone_scaled(1, (int)code - 127);
}
#define HONE_SMALL_PUT(name, T, from, F, narrow)           \
    HONE_INLINE T hone_put_##name##_##from(F v, int sat) { \
        const uint64_t bits = hone_wide_##from(v);         \
        return (T)narrow;                                  \
    }
#define HONE_SMALL_F32(name, T, mask, narrow, widen) \
    HONE_SMALL_PUT(name, T, f32, float, narrow)      \
    HONE_INLINE float hone_get_##name(T t) {         \
        const uint32_t code = t & mask;              \
        return widen;                                \
    }
#define HONE_SMALL_OTHERS(name, T, narrow)                                                             \
    HONE_IF_F64(HONE_SMALL_PUT(name, T, f64, double, narrow))                                          \
    HONE_SMALL_PUT(name, T, i32, int32_t, narrow)                                                      \
    HONE_SMALL_PUT(name, T, i64, int64_t, narrow)                                                      \
    HONE_SMALL_PUT(name, T, u64, uint64_t, narrow)                                                     \
    HONE_INLINE float hone_as_##name(float v) { return hone_get_##name(hone_put_##name##_f32(v, 0)); } \
    HONE_BY_ADDRESS(name, T, float)
#define HONE_STORE_SMALL(name, T, mask, narrow, widen) \
    HONE_SMALL_F32(name, T, mask, narrow, widen)       \
    HONE_SMALL_OTHERS(name, T, narrow)
#define HONE_SMALL(name, T, mask, M, bias, sign, max, over, nan_bits, plain, keeps)            \
    HONE_STORE_SMALL(name, T, mask,                                                            \
                     hone_narrow(bits, sat, M, bias, sign, max, over, nan_bits, plain, keeps), \
                     hone_widen(code, M, bias, sign, max, over, nan_bits, plain))
#define HONE_NARROW_F16 hone_narrow(bits, sat, 10, 15, 0x8000u, 0x7bffu, 0x7c00u, 0x7e00u, 0, 1)
#if defined(HONE_HALVES) /* the device's own instructions stand before this text */
HONE_INLINE float hone_get_f16(uint16_t t) { return hone_half_get(t); }
HONE_INLINE uint16_t hone_put_f16_f32(float v, int sat) {
    if (sat) v = v > 65504.0f ? 65504.0f : v < -65504.0f ? -65504.0f : v;
    return hone_half_put(v);
}
#else
HONE_SMALL_F32(f16, uint16_t, 0xffffu, HONE_NARROW_F16,
               hone_widen(code, 10, 15, 0x8000u, 0x7bffu, 0x7c00u, 0x7e00u, 0))
#endif
HONE_SMALL_OTHERS(f16, uint16_t, HONE_NARROW_F16)
#undef HONE_NARROW_F16
HONE_INLINE float hone_get_bf16(uint16_t t) { return hone_from_bits_f32((uint32_t)t << 16); }
HONE_INLINE uint16_t hone_put_bf16_f32(float v, int sat) { /* the upper half of an f32, rounded to even */
    const uint32_t u = hone_bits_f32(v), mag = u & 0x7fffffffu, r = (u + 0x7fffu + (u >> 16 & 1)) >> 16;
    if (mag > 0x7f800000u) return (uint16_t)(u >> 16 | 0x7fc0u);
    return (uint16_t)(sat && (r & 0x7fffu) > 0x7f7fu ? (r & 0x8000u) | 0x7f7fu : r);
}
HONE_SMALL_OTHERS(bf16, uint16_t, hone_narrow(bits, sat, 7, 127, 0x8000u, 0x7f7fu, 0x7f80u, 0x7fc0u, 0, 1))
HONE_SMALL(f8e4m3fn, uint8_t, 0xffu, 3, 7, 0x80u, 0x7eu, 0x7fu, 0x7fu, 0, 0)
HONE_SMALL(f8e4m3fnuz, uint8_t, 0xffu, 3, 8, 0x80u, 0x7fu, 0x80u, 0x80u, 1, 0)
HONE_SMALL(f8e5m2, uint8_t, 0xffu, 2, 15, 0x80u, 0x7bu, 0x7cu, 0x7eu, 0, 0)
HONE_SMALL(f8e5m2fnuz, uint8_t, 0xffu, 2, 16, 0x80u, 0x7fu, 0x80u, 0x80u, 1, 0)
/* neither inf nor NaN: always saturates; NaN is a zero of the other sign */
HONE_SMALL(f4e2m1, uint8_t, 0x0fu, 1, 1, 0x8u, 0x7u, 0x7u, 0x8u, 0, 0)
HONE_STORE_SMALL(f8e8m0, uint8_t, 0xffu, hone_narrow_e8m0(bits, sat), hone_widen_e8m0(code))
#undef HONE_SMALL
#undef HONE_SMALL_PUT
#undef HONE_STORE_SMALL
#undef HONE_SMALL_F32
#undef HONE_SMALL_OTHERS
#undef HONE_BY_ADDRESS
#undef HONE_IF_F64
#endif
