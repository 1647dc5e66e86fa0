/* SPDX-License-Identifier: Apache-2.0
   fn: the scalar functions of tensor programs, hone_<name>_<ctype> for every row of fn.def, and
   hone_cast_<from>_<to>.

   The one definition: the interpreter and the tile code are compiled with it, and every printer pastes its
   text in front of its output. So it keeps to the common subset of C11, OpenCL C and CUDA C, includes nothing
   of ours, and must be compiled without contraction.

   exp, log, tanh, erf and sigmoid of f32 are polynomials without branch, table or call, so that a loop over
   them becomes vector code. Greatest errors over every 51st float: exp 0.9, log 0.9, tanh 1.4, erf 1.4,
   sigmoid 1.7 ulp. No fused multiply-add is used in them: a CPU level without it must give the same bits. */
#ifndef HONE_LOOPS_FN_H
#define HONE_LOOPS_FN_H
#if defined(__OPENCL_VERSION__) /* its functions take any float type under one name */
typedef char int8_t;
typedef uchar uint8_t;
typedef short int16_t;
typedef ushort uint16_t;
typedef int int32_t;
typedef uint uint32_t;
typedef long int64_t;
typedef ulong uint64_t;
#define HONE_INLINE static inline
#define fabsf fabs
#define truncf trunc
#define fmodf fmod
#define powf pow
#define atan2f atan2
#define fmaf fma
#define copysignf copysign
#define floorf floor
#define ceilf ceil
#define rintf rint
#define sqrtf sqrt
#define log2f log2
#define sinf sin
#define cosf cos
#define tanf tan
#define asinf asin
#define acosf acos
#define atanf atan
#define sinhf sinh
#define coshf cosh
#define asinhf asinh
#define acoshf acosh
#define atanhf atanh
#elif defined(__CUDACC_RTC__) || defined(HONE_KERNEL) /* has no header but knows the functions */
typedef signed char int8_t;
typedef unsigned char uint8_t;
typedef short int16_t;
typedef unsigned short uint16_t;
typedef int int32_t;
typedef unsigned int uint32_t;
typedef long long int64_t;
typedef unsigned long long uint64_t;
#define INFINITY hone_from_bits_f32(0x7f800000u)
#define NAN hone_from_bits_f32(0x7fc00000u)
#define HONE_INLINE static __device__ inline
#else
#include <math.h>
#include <stdint.h>
#include <string.h>
#if defined(__CUDACC__)
#define HONE_INLINE static __device__ inline
#else
#define HONE_INLINE static inline
#endif
#endif
#if !defined(INT32_MAX)
#define INT8_MIN (-128)
#define INT8_MAX 127
#define UINT8_MAX 255
#define INT16_MIN (-32768)
#define INT16_MAX 32767
#define UINT16_MAX 65535
#define INT32_MAX 2147483647
#define INT32_MIN (-INT32_MAX - 1)
#define UINT32_MAX 4294967295u
#define INT64_MAX ((int64_t)0x7fffffffffffffff)
#define INT64_MIN (-INT64_MAX - 1)
#define UINT64_MAX ((uint64_t)0xffffffffffffffffu)
#endif
#if defined(HONE_NO_F64) /* a device without it: what takes or gives a double is left out */
#define HONE_IF_F64(text)
#else
#define HONE_IF_F64(text) text
#endif

#if defined(__OPENCL_VERSION__)
#define HONE_SAME_BITS(d, s) (d) = *(__private const __typeof__(d) *)&(s)
#else
#define HONE_SAME_BITS(d, s) memcpy(&(d), &(s), sizeof(d))
#endif
HONE_INLINE uint32_t hone_bits_f32(float x) {
    uint32_t u;
    HONE_SAME_BITS(u, x);
    return u;
}
HONE_INLINE float hone_from_bits_f32(uint32_t u) {
    float x;
    HONE_SAME_BITS(x, u);
    return x;
}
#if !defined(HONE_NO_F64)
HONE_INLINE uint64_t hone_bits_f64(double x) {
    uint64_t u;
    HONE_SAME_BITS(u, x);
    return u;
}
HONE_INLINE double hone_from_bits_f64(uint64_t u) {
    double x;
    HONE_SAME_BITS(x, u);
    return x;
}
#endif
#undef HONE_SAME_BITS

/* ---- casts: float → int truncates and saturates, NaN gives 0; integers wrap ---------------------------- */
#define HONE_CAST(from, F, to, T) \
    HONE_INLINE T hone_cast_##from##_##to(F x) { return (T)x; }
HONE_CAST(f32, float, f32, float)
HONE_IF_F64(HONE_CAST(f32, float, f64, double))
HONE_IF_F64(HONE_CAST(f64, double, f32, float))
HONE_IF_F64(HONE_CAST(f64, double, f64, double))
HONE_CAST(i32, int32_t, f32, float)
HONE_IF_F64(HONE_CAST(i32, int32_t, f64, double))
HONE_CAST(i32, int32_t, i32, int32_t)
HONE_CAST(i32, int32_t, i64, int64_t)
HONE_CAST(i32, int32_t, u64, uint64_t)
HONE_CAST(i64, int64_t, f32, float)
HONE_IF_F64(HONE_CAST(i64, int64_t, f64, double))
HONE_CAST(i64, int64_t, i32, int32_t)
HONE_CAST(i64, int64_t, i64, int64_t)
HONE_CAST(i64, int64_t, u64, uint64_t)
HONE_CAST(u64, uint64_t, f32, float)
HONE_IF_F64(HONE_CAST(u64, uint64_t, f64, double))
HONE_CAST(u64, uint64_t, i32, int32_t)
HONE_CAST(u64, uint64_t, i64, int64_t)
HONE_CAST(u64, uint64_t, u64, uint64_t)
#undef HONE_CAST
/* `high` is the largest F that T holds, `over` the first number above T: from there on it is `top`. The
   conversion itself never sees a number it could not hold, so it needs no branch. */
#define HONE_CAST(from, F, to, T, low, high, over, top) \
    HONE_INLINE T hone_cast_##from##_##to(F x) {        \
        F y = x < low ? low : x;                        \
        y = y > high ? high : y;                        \
        y = y == y ? y : (F)0;                          \
        const T r = (T)y;                               \
        return x >= over ? top : r;                     \
    }
HONE_CAST(f32, float, i32, int32_t, -0x1p31f, 0x1.fffffep30f, 0x1p31f, INT32_MAX)
HONE_CAST(f32, float, i64, int64_t, -0x1p63f, 0x1.fffffep62f, 0x1p63f, INT64_MAX)
HONE_CAST(f32, float, u64, uint64_t, 0.0f, 0x1.fffffep63f, 0x1p64f, UINT64_MAX)
HONE_IF_F64(HONE_CAST(f64, double, i32, int32_t, -0x1p31, 0x1.fffffffcp30, 0x1p31, INT32_MAX))
HONE_IF_F64(HONE_CAST(f64, double, i64, int64_t, -0x1p63, 0x1.fffffffffffffp62, 0x1p63, INT64_MAX))
HONE_IF_F64(HONE_CAST(f64, double, u64, uint64_t, 0.0, 0x1.fffffffffffffp63, 0x1p64, UINT64_MAX))
#undef HONE_CAST

/* ---- arithmetic ---------------------------------------------------------------------------------------- */
#define HONE_F1(name, expr32, expr64)                               \
    HONE_INLINE float hone_##name##_f32(float a) { return expr32; } \
    HONE_IF_F64(HONE_INLINE double hone_##name##_f64(double a) { return expr64; })
#define HONE_F2(name, expr32, expr64)                                        \
    HONE_INLINE float hone_##name##_f32(float a, float b) { return expr32; } \
    HONE_IF_F64(HONE_INLINE double hone_##name##_f64(double a, double b) { return expr64; })
/* U is the unsigned type of the same width: there overflow wraps. */
#define HONE_I1(name, expr)                              \
    HONE_INLINE int32_t hone_##name##_i32(int32_t a) {   \
        typedef int32_t T;                               \
        typedef uint32_t U;                              \
        return (T)(U)(expr);                             \
    }                                                    \
    HONE_INLINE int64_t hone_##name##_i64(int64_t a) {   \
        typedef int64_t T;                               \
        typedef uint64_t U;                              \
        return (T)(U)(expr);                             \
    }                                                    \
    HONE_INLINE uint64_t hone_##name##_u64(uint64_t a) { \
        typedef uint64_t T;                              \
        typedef uint64_t U;                              \
        return (T)(U)(expr);                             \
    }
#define HONE_I2(name, expr)                                          \
    HONE_INLINE int32_t hone_##name##_i32(int32_t a, int32_t b) {    \
        typedef int32_t T;                                           \
        typedef uint32_t U;                                          \
        return (T)(U)(expr);                                         \
    }                                                                \
    HONE_INLINE int64_t hone_##name##_i64(int64_t a, int64_t b) {    \
        typedef int64_t T;                                           \
        typedef uint64_t U;                                          \
        return (T)(U)(expr);                                         \
    }                                                                \
    HONE_INLINE uint64_t hone_##name##_u64(uint64_t a, uint64_t b) { \
        typedef uint64_t T;                                          \
        typedef uint64_t U;                                          \
        return (T)(U)(expr);                                         \
    }

HONE_F2(add, a + b, a + b)
HONE_F2(sub, a - b, a - b)
HONE_F2(mul, a *b, a *b)
HONE_F2(div, a / b, a / b)
HONE_F2(quot, truncf(a / b), trunc(a / b))
HONE_F2(rem, fmodf(a, b), fmod(a, b))
/* Equal numbers have equal bits but for the sign of 0: +0 is above -0, so that a reduction's order does not
   matter. */
#define HONE_EQUAL(t, op) hone_from_bits_##t(hone_bits_##t(a) op hone_bits_##t(b))
HONE_F2(min,
        a == b            ? HONE_EQUAL(f32, |)
        : a != a || a < b ? a
                          : b,
        a == b            ? HONE_EQUAL(f64, |)
        : a != a || a < b ? a
                          : b)
HONE_F2(max,
        a == b            ? HONE_EQUAL(f32, &)
        : a != a || a > b ? a
                          : b,
        a == b            ? HONE_EQUAL(f64, &)
        : a != a || a > b ? a
                          : b)
#undef HONE_EQUAL
HONE_F1(neg, -a, -a)
HONE_F1(abs, fabsf(a), fabs(a))
HONE_F1(sign, a != a ? a : (float)((a > 0) - (a < 0)), a != a ? a : (double)((a > 0) - (a < 0)))
HONE_I2(add, (U)a + (U)b)
HONE_I2(sub, (U)a - (U)b)
HONE_I2(mul, (U)a *(U)b)
HONE_I2(min, a < b ? a : b)
HONE_I2(max, a > b ? a : b)
HONE_I1(neg, (U)0 - (U)a)
HONE_INLINE int32_t hone_sign_i32(int32_t a) { return (a > 0) - (a < 0); }
HONE_INLINE int64_t hone_sign_i64(int64_t a) { return (a > 0) - (a < 0); }
HONE_INLINE uint64_t hone_sign_u64(uint64_t a) { return a != 0; }
HONE_INLINE int32_t hone_abs_i32(int32_t a) { return (int32_t)(a < 0 ? 0u - (uint32_t)a : (uint32_t)a); }
HONE_INLINE int64_t hone_abs_i64(int64_t a) {
    return (int64_t)(a < 0 ? (uint64_t)0 - (uint64_t)a : (uint64_t)a);
}
HONE_INLINE uint64_t hone_abs_u64(uint64_t a) { return a; }

/* Floats: the remainder takes the sign of the divisor. */
HONE_INLINE float hone_mod_f32(float a, float b) {
    const float r = fmodf(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
#if !defined(HONE_NO_F64)
HONE_INLINE double hone_mod_f64(double a, double b) {
    const double r = fmod(a, b);
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}
#endif
/* Integers. By 0 it is 0; by -1 it is the negation, which wraps where the machine's division would trap. */
#define HONE_DIVIDE(t, T)                                                                               \
    HONE_INLINE T hone_quot_##t(T a, T b) { return b == 0 ? 0 : b == (T)-1 ? hone_neg_##t(a) : a / b; } \
    HONE_INLINE T hone_rem_##t(T a, T b) { return b == 0 || b == (T)-1 ? 0 : a % b; }                   \
    HONE_INLINE T hone_mod_##t(T a, T b) {                                                              \
        const T r = hone_rem_##t(a, b);                                                                 \
        return r != 0 && (r < 0) != (b < 0) ? r + b : r;                                                \
    }                                                                                                   \
    HONE_INLINE T hone_div_##t(T a, T b) {                                                              \
        const T q = hone_quot_##t(a, b), r = hone_rem_##t(a, b);                                        \
        return r != 0 && (r < 0) != (b < 0) ? q - 1 : q;                                                \
    }
HONE_DIVIDE(i32, int32_t)
HONE_DIVIDE(i64, int64_t)
#undef HONE_DIVIDE
HONE_INLINE uint64_t hone_quot_u64(uint64_t a, uint64_t b) { return b == 0 ? 0 : a / b; }
HONE_INLINE uint64_t hone_rem_u64(uint64_t a, uint64_t b) { return b == 0 ? 0 : a % b; }
HONE_INLINE uint64_t hone_div_u64(uint64_t a, uint64_t b) { return hone_quot_u64(a, b); }
HONE_INLINE uint64_t hone_mod_u64(uint64_t a, uint64_t b) { return hone_rem_u64(a, b); }

/* Squares and cubes are what models mostly ask for: a product is as exact as powf and has no call. */
HONE_INLINE float hone_pow_f32(float a, float b) { return b == 2 ? a * a : b == 3 ? a * a * a : powf(a, b); }
#if !defined(HONE_NO_F64)
HONE_INLINE double hone_pow_f64(double a, double b) {
    return b == 2 ? a * a : b == 3 ? a * a * a : pow(a, b);
}
#endif
HONE_INLINE uint64_t hone_pow_u64(uint64_t a, uint64_t b) {
    uint64_t r = 1;
    for (; b; b >>= 1, a *= a) r *= b & 1 ? a : 1;
    return r;
}
/* 1/a^n truncates to 0 unless a is 1 or -1. Powers modulo 2^64 are powers modulo 2^32 too. */
HONE_INLINE int64_t hone_pow_i64(int64_t a, int64_t b) {
    if (b < 0) return a == 1 ? 1 : a == -1 ? (b & 1 ? -1 : 1) : 0;
    return (int64_t)hone_pow_u64((uint64_t)a, (uint64_t)b);
}
HONE_INLINE int32_t hone_pow_i32(int32_t a, int32_t b) { return (int32_t)hone_pow_i64(a, b); }

HONE_F2(atan2, atan2f(a, b), atan2(a, b))
HONE_INLINE float hone_fma_f32(float a, float b, float c) { return fmaf(a, b, c); }
#if !defined(HONE_NO_F64)
HONE_INLINE double hone_fma_f64(double a, double b, double c) { return fma(a, b, c); }
#endif

/* ---- f32 polynomials ----------------------------------------------------------------------------------- */
/* e^x = 2^n (1 + q), |ln(1 + q)| <= ln2/2, for |x| <= 104; returns n + 1.5*2^23: adding that number is what
   rounds to n. n ln2 is exact in its upper part (8 bits of n, 15 of the constant); `lost` is what the
   difference dropped. */
HONE_INLINE float hone_exp_parts_f32(float x, float *q) {
    const float big = 0x1.8p23f, t = x * 0x1.715476p0f + big, n = t - big;
    const float y = x - n * 0x1.62e4p-1f, l = n * 0x1.7f7d1cp-20f, r = y - l, lost = (y - r) - l;
    float p = 0x1.a24712p-13f;
    p = p * r + 0x1.6d5280p-10f;
    p = p * r + 0x1.111002p-7f;
    p = p * r + 0x1.5554e4p-5f;
    p = p * r + 0x1.555556p-3f;
    p = p * r + 0.5f;
    *q = (p * (r * r) + lost) + r;
    return t;
}
/* 2^n goes in by two factors, so that a result beyond either end of the exponent rounds once. */
HONE_INLINE float hone_exp_f32(float x) {
    x = x > 89.0f ? 89.0f : x;
    x = x < -104.0f ? -104.0f : x;
    float q;
    const float t = hone_exp_parts_f32(x, &q);
    const uint32_t k = hone_bits_f32(t) - 0x4b400000u + 2 * 127, middle = k >> 1;
    return (1.0f + q) * hone_from_bits_f32(middle << 23) * hone_from_bits_f32((k - middle) << 23);
}
/* x = 2^k m, m in [sqrt(1/2), sqrt(2)); with f = m - 1, s = f/(2 + f): ln m = 2s + s z P(z), z = s^2, written
   as f - (f^2/2 - s(f^2/2 + z P(z))) so that the leading term carries no rounding. */
HONE_INLINE float hone_log_f32(float x) {
    const int tiny = x < 0x1p-126f;
    const float y = tiny ? x * 0x1p23f : x;
    const uint32_t u = hone_bits_f32(y) + (0x3f800000u - 0x3f3504f3u);
    const float k = (float)((int32_t)(u >> 23) - 127 - (tiny ? 23 : 0));
    const float f = hone_from_bits_f32((u & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    const float s = f / (2.0f + f), z = s * s, h = 0.5f * f * f;
    float p = 0x1.f13b02p-3f;
    p = p * z + 0x1.23d3e0p-2f;
    p = p * z + 0x1.999c26p-2f;
    p = p * z + 0x1.555554p-1f;
    float r = k * 0x1.62e4p-1f + (f - (h - (s * (h + p * z) + k * 0x1.7f7d1cp-20f)));
    r = x == (float)INFINITY ? x : r;
    r = x == 0 ? -(float)INFINITY : r;
    return x >= 0 ? r : (float)NAN;
}
/* Near 0 an odd polynomial, else 1 - 2/(e^2|x| + 1). */
HONE_INLINE float hone_tanh_f32(float x) {
    const float a = fabsf(x), z = x * x;
    float p = 0x1.1aa266p-9f;
    p = p * z - 0x1.0c801ep-7f;
    p = p * z + 0x1.63abd6p-6f;
    p = p * z - 0x1.b9f212p-5f;
    p = p * z + 0x1.11107cp-3f;
    p = p * z - 0x1.555554p-2f;
    const float small = a + a * z * p;
    const float large = 1.0f - 2.0f / (hone_exp_f32(a + a) + 1.0f);
    return copysignf(a < 0.625f ? small : large, x);
}
/* Near 0 an odd polynomial; else 1 - erfc, whose logarithm is smooth. The last digits of erfc do not matter,
   it is below 0.16. */
HONE_INLINE float hone_erf_f32(float x) {
    const float a = fabsf(x), z = x * x, t = a > 4.0f ? 4.0f : a;
    float p = 0x1.4c27a2p-14f;
    p = p * z - 0x1.a507acp-11f;
    p = p * z + 0x1.542dc6p-8f;
    p = p * z - 0x1.b7fe8cp-6f;
    p = p * z + 0x1.ce2d50p-4f;
    p = p * z - 0x1.812740p-2f;
    p = p * z + 0x1.06eba8p-3f;
    float q = 0x1.87b426p-13f;
    q = q * t - 0x1.82e8f0p-9f;
    q = q * t + 0x1.661822p-6f;
    q = q * t - 0x1.a67e86p-4f;
    q = q * t - 0x1.46b432p-1f;
    q = q * t - 0x1.208b1ap0f;
    q = q * t - 0x1.5cd7bep-12f;
    const float small = x + x * p, large = 1.0f - hone_exp_f32(q);
    return a < 1.0f ? small : copysignf(large, x);
}
/* With e^|x| = 2^n (1 + q) and s = 2^-n: sigmoid(-|x|) = s / (1 + s + q), the sum rounded once: u is 1 + s,
   and q takes what u lost. The other side is 1 less that. */
HONE_INLINE float hone_sigmoid_f32(float x) {
    float a = fabsf(x), q;
    a = a > 104.0f ? 104.0f : a;
    const float t = hone_exp_parts_f32(a, &q);
    const uint32_t k = 2 * 127 + 0x4b400000u - hone_bits_f32(t), middle = k >> 1;
    const float s1 = hone_from_bits_f32(middle << 23), s2 = hone_from_bits_f32((k - middle) << 23);
    const float s = s1 * s2, u = 1.0f + s;
    const float low = 1.0f / (u + (q + (s - (u - 1.0f)))) * s1 * s2;
    return x < 0 ? low : 1.0f - low;
}
/* With e^x = 2^n (1 + q): below 4 as 2^n - 1 + 2^n q, where q is exact as a small number; above, 1 is
   small. */
HONE_INLINE float hone_expm1_f32(float x) {
    float y = x > 89.0f ? 89.0f : x, q;
    y = y < -80.0f ? -80.0f : y;
    const float t = hone_exp_parts_f32(y, &q);
    const uint32_t k = hone_bits_f32(t) - 0x4b400000u + 2 * 127, middle = k >> 1;
    const float s1 = hone_from_bits_f32(middle << 23), s2 = hone_from_bits_f32((k - middle) << 23),
                s = s1 * s2;
    const float small = (s - 1.0f) + s * q, large = (1.0f + q) * s1 * s2 - 1.0f;
    return copysignf(y < 1.0f ? small : large, x);
}
/* ln(1 + x), and of what 1 + x lost the share that counts. */
HONE_INLINE float hone_log1p_f32(float x) {
    const float u = 1.0f + x, c = (x - (u - 1.0f)) / u, l = hone_log_f32(u);
    return u > 0 && u < (float)INFINITY ? copysignf(l + c, x) : l;
}
#if !defined(HONE_NO_F64)
HONE_INLINE double hone_expm1_f64(double a) { return expm1(a); }
HONE_INLINE double hone_log1p_f64(double a) { return log1p(a); }
HONE_INLINE double hone_exp_f64(double a) { return exp(a); }
HONE_INLINE double hone_log_f64(double a) { return log(a); }
HONE_INLINE double hone_tanh_f64(double a) { return tanh(a); }
HONE_INLINE double hone_erf_f64(double a) { return erf(a); }
HONE_INLINE double hone_sigmoid_f64(double a) {
    const double e = exp(-fabs(a));
    return (a < 0 ? e : 1.0) / (1.0 + e);
}
#endif

/* ---- the other functions of one float ------------------------------------------------------------------ */
HONE_F1(floor, floorf(a), floor(a))
HONE_F1(ceil, ceilf(a), ceil(a))
HONE_F1(round, rintf(a), rint(a))
HONE_F1(trunc, truncf(a), trunc(a))
HONE_F1(sqrt, sqrtf(a), sqrt(a))
HONE_F1(rsqrt, 1.0f / sqrtf(a), 1.0 / sqrt(a))
HONE_F1(log2, log2f(a), log2(a))
HONE_F1(sin, sinf(a), sin(a))
HONE_F1(cos, cosf(a), cos(a))
HONE_F1(tan, tanf(a), tan(a))
HONE_F1(asin, asinf(a), asin(a))
HONE_F1(acos, acosf(a), acos(a))
HONE_F1(atan, atanf(a), atan(a))
HONE_F1(sinh, sinhf(a), sinh(a))
HONE_F1(cosh, coshf(a), cosh(a))
HONE_F1(asinh, asinhf(a), asinh(a))
HONE_F1(acosh, acoshf(a), acosh(a))
HONE_F1(atanh, atanhf(a), atanh(a))

/* ---- comparisons, logic, bits -------------------------------------------------------------------------- */
#define HONE_COMPARE(name, op)                                                                \
    HONE_INLINE int32_t hone_##name##_f32(float a, float b) { return a op b; }                \
    HONE_IF_F64(HONE_INLINE int32_t hone_##name##_f64(double a, double b) { return a op b; }) \
    HONE_INLINE int32_t hone_##name##_i32(int32_t a, int32_t b) { return a op b; }            \
    HONE_INLINE int32_t hone_##name##_i64(int64_t a, int64_t b) { return a op b; }            \
    HONE_INLINE int32_t hone_##name##_u64(uint64_t a, uint64_t b) { return a op b; }
HONE_COMPARE(lt, <)
HONE_COMPARE(le, <=)
HONE_COMPARE(eq, ==)
HONE_COMPARE(ne, !=)
#undef HONE_COMPARE
HONE_INLINE int32_t hone_and_i32(int32_t a, int32_t b) { return (a != 0) & (b != 0); }
HONE_INLINE int32_t hone_or_i32(int32_t a, int32_t b) { return (a != 0) | (b != 0); }
HONE_INLINE int32_t hone_not_i32(int32_t a) { return a == 0; }
HONE_INLINE int32_t hone_isnan_f32(float a) { return a != a; }
#if !defined(HONE_NO_F64)
HONE_INLINE int32_t hone_isnan_f64(double a) { return a != a; }
#endif
HONE_INLINE int32_t hone_isinf_f32(float a) { return fabsf(a) == (float)INFINITY; }
#if !defined(HONE_NO_F64)
HONE_INLINE int32_t hone_isinf_f64(double a) { return fabs(a) == (double)INFINITY; }
#endif
HONE_I2(band, (U)a &(U)b)
HONE_I2(bor, (U)a | (U)b)
HONE_I2(bxor, (U)a ^ (U)b)
HONE_I1(bnot, ~(U)a)
/* A shift is done modulo the width, and its result dropped where that was not what was asked. */
HONE_I2(shl, (U)b < 8 * sizeof(T) ? (U)a << ((U)b & (8 * sizeof(T) - 1)) : 0)
HONE_I2(shr, (U)b < 8 * sizeof(T) ? (U)(a >> ((U)b & (8 * sizeof(T) - 1))) : 0)
HONE_INLINE uint64_t hone_popcount_u64(uint64_t a) {
    a = a - (a >> 1 & 0x5555555555555555u);
    a = (a & 0x3333333333333333u) + (a >> 2 & 0x3333333333333333u);
    a = (a + (a >> 4)) & 0x0f0f0f0f0f0f0f0fu;
    return (a * 0x0101010101010101u) >> 56;
}
HONE_INLINE int64_t hone_popcount_i64(int64_t a) { return (int64_t)hone_popcount_u64((uint64_t)a); }
HONE_INLINE int32_t hone_popcount_i32(int32_t a) { return (int32_t)hone_popcount_u64((uint32_t)a); }
#undef HONE_F1
#undef HONE_F2
#undef HONE_I1
#undef HONE_I2

/* ---- random by counter: number n of the stream `seed`, in any order, on any device --------------------- */
/* Two rounds of multiply and fold a key mixed of both; each output bit depends on each input bit. */
HONE_INLINE uint64_t hone_mix_u64(uint64_t seed, uint64_t n) {
    uint64_t z = (seed + 0x9e3779b97f4a7c15u) * 0xd6e8feb86659fd93u;
    z = (z ^ z >> 32) + n * 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 32) * 0xd6e8feb86659fd93u;
    z = (z ^ z >> 29) * 0xa0761d6478bd642fu;
    return z ^ z >> 32;
}
HONE_INLINE float hone_uniform_i64(int64_t seed, int64_t n) {
    return (float)(int32_t)(hone_mix_u64((uint64_t)seed, (uint64_t)n) >> 40) * 0x1p-24f;
}
/* Box and Muller: the radius from the upper 32 bits (never ln 0), the angle from the lower. */
HONE_INLINE float hone_normal_i64(int64_t seed, int64_t n) {
    const uint64_t z = hone_mix_u64((uint64_t)seed, (uint64_t)n);
    const float u = ((float)(uint32_t)(z >> 32) + 0.5f) * 0x1p-32f,
                turn = (float)(uint32_t)(z >> 8 & 0xffffffu) * 0x1p-24f;
    return sqrtf(-2.0f * hone_log_f32(u)) * cosf(0x1.921fb6p2f * turn);
}
#undef HONE_IF_F64
#endif
