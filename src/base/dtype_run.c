/* SPDX-License-Identifier: Apache-2.0
   dtype_run: load, store and cast of whole runs, bit for bit what dtype.c says of one element.

   Every loop is straight-line code on one element, so that the compiler makes vectors of it; memory may be unaligned (constants lie in a
   mapped file wherever the writer put them). A store goes in two moves of a small chunk: cast to the type's own compute type, then
   narrow. */
#include <float.h>
#include <string.h>

#include "base/dtype_small.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "base/thread.h"
#endif

typedef void run(void *restrict dst, const void *restrict src, size_t n);
#define LOOP(name, to, from, expression)                                             \
    static void name(void *restrict dst, const void *restrict src, size_t n) {       \
        for (size_t i = 0; i < n; i++) {                                             \
            from v;                                                                  \
            memcpy(&v, (const char *)src + i * sizeof v, sizeof v);                  \
            to r = (to)(expression);                                                 \
            memcpy((char *)dst + i * sizeof r, &r, sizeof r);                        \
        }                                                                            \
    }

/* ---- small floats by bit arithmetic on f32 ---- */

static inline float as_float(uint32_t bits) {
    float f;
    memcpy(&f, &bits, 4);
    return f;
}
static inline uint32_t as_bits(float f) {
    uint32_t bits;
    memcpy(&bits, &f, 4);
    return bits;
}

/* Widen: move exponent and mantissa into place and correct the bias; a subnormal code is made normal by subtracting the implied one.
   No step meets a subnormal f32, so a thread that flushes those to zero gets the same result. */
static inline uint32_t widen(uint32_t code, const hone_small f) {
    uint32_t mag = code & (f.sign - 1u), sign = code & f.sign ? 0x80000000u : 0;
    uint32_t up = 23u - f.mantissa, rebias = (127u - f.bias) << 23;
    uint32_t normal = (mag << up) + rebias;
    uint32_t tiny = as_bits(as_float((mag << up) + rebias + (1u << 23)) - as_float(rebias + (1u << 23)));
    uint32_t r = mag >> f.mantissa ? normal : tiny;
    uint32_t special = f.over != f.nan && mag == f.over ? 0x7f800000u : 0x7fc00000u | mag << up;
    r = mag > f.max ? special : r;
    if (f.plain_zero) return mag == 0 ? (sign ? 0x7fc00000u : 0) : r | sign;
    return r | sign;
}

/* Narrow: round in the integer for normal codes; for subnormal ones add a number whose last bit is the least code, and let the adder
   round. */
static inline uint32_t narrow(float v, const hone_small f, bool saturate) {
    uint32_t bits = as_bits(v), a = bits & 0x7fffffffu, sign = bits >> 31 ? f.sign : 0;
    uint32_t down = 23u - f.mantissa, least = 128u - f.bias;
    uint32_t normal = ((a + (1u << (down - 1)) - 1 + (a >> down & 1)) >> down) - ((127u - f.bias) << f.mantissa);
    uint32_t magic = (least + down) << 23;
    uint32_t tiny = as_bits(as_float(a) + as_float(magic)) - magic;
    uint32_t code = a < least << 23 ? tiny : normal;
    uint32_t over = f.plain_zero && !saturate ? f.nan : sign | (saturate ? f.max : f.over);
    uint32_t r = code > f.max || a == 0x7f800000u ? over : f.plain_zero && code == 0 ? 0 : sign | code;
    uint32_t nan = f.mantissa >= 7 ? sign | f.nan | (a >> down & ((1u << f.mantissa) - 1)) : f.plain_zero ? f.nan : sign ^ f.nan;
    return a > 0x7f800000u ? nan : r;
}

/* bf16 is the upper half of an f32. A NaN keeps its upper half, made quiet. */
static inline uint32_t narrow_bf16(float v, bool saturate) {
    uint32_t bits = as_bits(v), a = bits & 0x7fffffffu, sign = bits >> 16 & 0x8000u;
    uint32_t code = (a + 0x7fff + (a >> 16 & 1)) >> 16;
    code = saturate && code > 0x7f7f ? 0x7f7f : code;
    return sign | (a > 0x7f800000u ? a >> 16 | 0x40 : code);
}

static inline uint32_t narrow_e8m0(float v, bool saturate) {
    uint32_t bits = as_bits(v);
    uint32_t code = bits >> 23 ? (bits >> 23) + (bits >> 22 & 1) : bits > 0x400000u;
    code = code >= 0xff ? (saturate ? 0xfe : 0xff) : code;
    code = bits == 0 || bits >> 31 ? (saturate ? 0 : 0xff) : code;
    return (bits & 0x7fffffffu) > 0x7f800000u ? 0xff : code;
}

#define SMALL(type, code_t, name)                                                         \
    LOOP(load_##name, uint32_t, code_t, widen(v, hone_smalls[type]))                      \
    LOOP(store_##name, code_t, float, narrow(v, hone_smalls[type], false))                \
    LOOP(clamp_##name, code_t, float, narrow(v, hone_smalls[type], true))
SMALL(HONE_DTYPE_F8E4M3FN, uint8_t, e4m3fn)
SMALL(HONE_DTYPE_F8E4M3FNUZ, uint8_t, e4m3fnuz)
SMALL(HONE_DTYPE_F8E5M2, uint8_t, e5m2)
SMALL(HONE_DTYPE_F8E5M2FNUZ, uint8_t, e5m2fnuz)
SMALL(HONE_DTYPE_F4E2M1, uint8_t, e2m1)
LOOP(load_bf16, uint32_t, uint16_t, (uint32_t)v << 16)
LOOP(store_bf16, uint16_t, float, narrow_bf16(v, false))
LOOP(clamp_bf16, uint16_t, float, narrow_bf16(v, true))
LOOP(load_e8m0, uint32_t, uint8_t, v == 0xff ? 0x7fc00000u : v ? (uint32_t)v << 23 : 0x400000u)
LOOP(store_e8m0, uint8_t, float, narrow_e8m0(v, false))
LOOP(clamp_e8m0, uint8_t, float, narrow_e8m0(v, true))

/* f16 has instructions everywhere that matters. */
#if defined(__aarch64__)
LOOP(load_f16, float, __fp16, v)
LOOP(store_f16, __fp16, float, v)
LOOP(clamp_f16_plain, uint16_t, float, narrow(v, hone_smalls[HONE_DTYPE_F16], true))
#else
SMALL(HONE_DTYPE_F16, uint16_t, f16_plain)
#endif
#if defined(__x86_64__)
__attribute__((target("avx,f16c"))) static void load_f16_fast(void *restrict dst, const void *restrict src, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm256_storeu_ps((float *)dst + i, _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)((const char *)src + i * 2))));
    if (i < n) load_f16_plain((char *)dst + i * 4, (const char *)src + i * 2, n - i);
}
__attribute__((target("avx,f16c"))) static void store_f16_fast(void *restrict dst, const void *restrict src, size_t n) {
    size_t i = 0;
    for (; i + 8 <= n; i += 8)
        _mm_storeu_si128((__m128i *)((char *)dst + i * 2), _mm256_cvtps_ph(_mm256_loadu_ps((const float *)src + i), 0)); /* to nearest */
    if (i < n) store_f16_plain((char *)dst + i * 2, (const char *)src + i * 4, n - i);
}
static void load_f16(void *restrict dst, const void *restrict src, size_t n) {
    (hone_cpu() & HONE_CPU_AVX2 ? load_f16_fast : load_f16_plain)(dst, src, n);
}
static void store_f16(void *restrict dst, const void *restrict src, size_t n) {
    (hone_cpu() & HONE_CPU_AVX2 ? store_f16_fast : store_f16_plain)(dst, src, n);
}
#elif !defined(__aarch64__)
#define load_f16 load_f16_plain
#define store_f16 store_f16_plain
#endif

/* ---- integers and bool ---- */

#define CLAMP(low, high) (v < (low) ? (low) : v > (high) ? (high) : v)
/* The lowest bits, with their sign extended. */
#define NARROW_BITS(v, bits) ((((uint32_t)(v) & ((1u << (bits)) - 1)) ^ (1u << ((bits) - 1))) - (1u << ((bits) - 1)))
LOOP(load_u8, int32_t, uint8_t, v)
LOOP(load_i8, int32_t, int8_t, v)
LOOP(load_u16, int32_t, uint16_t, v)
LOOP(load_i16, int32_t, int16_t, v)
LOOP(load_u32, int64_t, uint32_t, v)
LOOP(load_bool, int32_t, uint8_t, v != 0)
LOOP(load_u4, int32_t, uint8_t, v & 15)
LOOP(load_i4, int32_t, uint8_t, NARROW_BITS(v, 4))
LOOP(load_u2, int32_t, uint8_t, v & 3)
LOOP(load_i2, int32_t, uint8_t, NARROW_BITS(v, 2))
LOOP(store_8, uint8_t, int32_t, v)
LOOP(store_16, uint16_t, int32_t, v)
LOOP(store_u32, uint32_t, int64_t, v)
LOOP(store_u4, uint8_t, int32_t, v & 15)
LOOP(store_i4, uint8_t, int32_t, NARROW_BITS(v, 4))
LOOP(store_u2, uint8_t, int32_t, v & 3)
LOOP(store_i2, uint8_t, int32_t, NARROW_BITS(v, 2))
LOOP(clamp_u8, uint8_t, int32_t, CLAMP(0, UINT8_MAX))
LOOP(clamp_i8, int8_t, int32_t, CLAMP(INT8_MIN, INT8_MAX))
LOOP(clamp_u16, uint16_t, int32_t, CLAMP(0, UINT16_MAX))
LOOP(clamp_i16, int16_t, int32_t, CLAMP(INT16_MIN, INT16_MAX))
LOOP(clamp_u32, uint32_t, int64_t, CLAMP(0, (int64_t)UINT32_MAX))
LOOP(clamp_u4, uint8_t, int32_t, CLAMP(0, 15))
LOOP(clamp_i4, int8_t, int32_t, CLAMP(-8, 7))
LOOP(clamp_u2, uint8_t, int32_t, CLAMP(0, 3))
LOOP(clamp_i2, int8_t, int32_t, CLAMP(-2, 1))

static void copy_4(void *restrict dst, const void *restrict src, size_t n) { memcpy(dst, src, n * 4); }
static void copy_8(void *restrict dst, const void *restrict src, size_t n) { memcpy(dst, src, n * 8); }
static void zero_8(void *restrict dst, const void *restrict src, size_t n) { (void)src, memset(dst, 0, n * 8); }
static void zero_16(void *restrict dst, const void *restrict src, size_t n) { (void)src, memset(dst, 0, n * 16); }

static const struct { run *load, *store, *clamp; } moves[HONE_DTYPE_COUNT] = { /* from and to the row's own compute type */
    [HONE_DTYPE_F32] = {copy_4, copy_4, copy_4},
    [HONE_DTYPE_U8] = {load_u8, store_8, clamp_u8},
    [HONE_DTYPE_I8] = {load_i8, store_8, clamp_i8},
    [HONE_DTYPE_U16] = {load_u16, store_16, clamp_u16},
    [HONE_DTYPE_I16] = {load_i16, store_16, clamp_i16},
    [HONE_DTYPE_I32] = {copy_4, copy_4, copy_4},
    [HONE_DTYPE_I64] = {copy_8, copy_8, copy_8},
    [HONE_DTYPE_STRING] = {copy_8, copy_8, copy_8},
    [HONE_DTYPE_BOOL] = {load_bool, NULL, NULL}, /* stored from any compute type by `truths` */
    [HONE_DTYPE_F16] = {load_f16, store_f16, clamp_f16_plain},
    [HONE_DTYPE_F64] = {copy_8, copy_8, copy_8},
    [HONE_DTYPE_U32] = {load_u32, store_u32, clamp_u32},
    [HONE_DTYPE_U64] = {copy_8, copy_8, copy_8},
    [HONE_DTYPE_C64] = {copy_8, copy_8, copy_8},
    [HONE_DTYPE_C128] = {zero_8, zero_16, zero_16},
    [HONE_DTYPE_BF16] = {load_bf16, store_bf16, clamp_bf16},
    [HONE_DTYPE_F8E4M3FN] = {load_e4m3fn, store_e4m3fn, clamp_e4m3fn},
    [HONE_DTYPE_F8E4M3FNUZ] = {load_e4m3fnuz, store_e4m3fnuz, clamp_e4m3fnuz},
    [HONE_DTYPE_F8E5M2] = {load_e5m2, store_e5m2, clamp_e5m2},
    [HONE_DTYPE_F8E5M2FNUZ] = {load_e5m2fnuz, store_e5m2fnuz, clamp_e5m2fnuz},
    [HONE_DTYPE_U4] = {load_u4, store_u4, clamp_u4},
    [HONE_DTYPE_I4] = {load_i4, store_i4, clamp_i4},
    [HONE_DTYPE_F4E2M1] = {load_e2m1, store_e2m1, clamp_e2m1},
    [HONE_DTYPE_F8E8M0] = {load_e8m0, store_e8m0, clamp_e8m0},
    [HONE_DTYPE_U2] = {load_u2, store_u2, clamp_u2},
    [HONE_DTYPE_I2] = {load_i2, store_i2, clamp_i2},
};

/* ---- compute type to compute type ---- */

LOOP(f32_of_f64, float, double, v)
LOOP(f32_of_i32, float, int32_t, v)
LOOP(f32_of_i64, float, int64_t, v)
LOOP(f32_of_u64, float, uint64_t, v)
LOOP(f64_of_f32, double, float, v)
LOOP(f64_of_i32, double, int32_t, v)
LOOP(f64_of_i64, double, int64_t, v)
LOOP(f64_of_u64, double, uint64_t, v)
LOOP(i32_of_f32, int32_t, float, hone_i32_of_f32(v))
LOOP(i32_of_f64, int32_t, double, hone_i32_of_f64(v))
LOOP(i32_of_64, uint32_t, uint64_t, v)
LOOP(i64_of_f32, int64_t, float, hone_i64_of_f64(v))
LOOP(i64_of_f64, int64_t, double, hone_i64_of_f64(v))
LOOP(i64_of_i32, int64_t, int32_t, v)
LOOP(u64_of_f32, uint64_t, float, hone_u64_of_f64(v))
LOOP(u64_of_f64, uint64_t, double, hone_u64_of_f64(v))
LOOP(f32_clamp_f64, float, double, v < -FLT_MAX ? -FLT_MAX : v > FLT_MAX ? FLT_MAX : v)
LOOP(i32_clamp_i64, int32_t, int64_t, CLAMP(INT32_MIN, INT32_MAX))
LOOP(i32_clamp_u64, int32_t, uint64_t, v > INT32_MAX ? INT32_MAX : v)
LOOP(i64_clamp_u64, int64_t, uint64_t, v > INT64_MAX ? INT64_MAX : v)
LOOP(u64_clamp_i32, uint64_t, int32_t, v < 0 ? 0 : v)
LOOP(u64_clamp_i64, uint64_t, int64_t, v < 0 ? 0 : v)
LOOP(truth_f32, uint8_t, float, v != 0)
LOOP(truth_f64, uint8_t, double, v != 0)
LOOP(truth_32, uint8_t, uint32_t, v != 0)
LOOP(truth_64, uint8_t, uint64_t, v != 0)

static run *const casts[HONE_CTYPES][HONE_CTYPES] = { /* [to][from] */
    [HONE_F32] = {copy_4, f32_of_f64, f32_of_i32, f32_of_i64, f32_of_u64},
    [HONE_F64] = {f64_of_f32, copy_8, f64_of_i32, f64_of_i64, f64_of_u64},
    [HONE_I32] = {i32_of_f32, i32_of_f64, copy_4, i32_of_64, i32_of_64},
    [HONE_I64] = {i64_of_f32, i64_of_f64, i64_of_i32, copy_8, copy_8},
    [HONE_U64] = {u64_of_f32, u64_of_f64, i64_of_i32, copy_8, copy_8},
};
static run *const clamping[HONE_CTYPES][HONE_CTYPES] = { /* where saturating differs; from float to integer it never does */
    [HONE_F32] = {[HONE_F64] = f32_clamp_f64},
    [HONE_I32] = {[HONE_I64] = i32_clamp_i64, [HONE_U64] = i32_clamp_u64},
    [HONE_I64] = {[HONE_U64] = i64_clamp_u64},
    [HONE_U64] = {[HONE_I32] = u64_clamp_i32, [HONE_I64] = u64_clamp_i64},
};
static run *const truths[HONE_CTYPES] = {truth_f32, truth_f64, truth_32, truth_64, truth_64};

void hone_dtype_load_n(hone_dtype t, void *dst, const void *src, size_t n) {
    if (n && moves[t].load) moves[t].load(dst, src, n);
}

void hone_dtype_store_n(hone_dtype t, void *dst, hone_ctype from, const void *src, size_t n, bool saturate) {
    const hone_dtype_row *r = &hone_dtypes[t];
    run *move = saturate ? moves[t].clamp : moves[t].store;
    if (n == 0 || t == HONE_DTYPE_NONE) return;
    if (r->kind == HONE_KIND_BOOL) {
        truths[from](dst, src, n);
    } else if (from == r->ctype) {
        move(dst, src, n);
    } else if (r->kind == HONE_KIND_STRING || r->kind == HONE_KIND_COMPLEX || hone_smalls[t].bias) {
        /* Rare: a cast to f32 first would round twice. */
        for (size_t i = 0; i < n; i++) {
            hone_scalar v = {.u64 = 0};
            memcpy(&v, (const char *)src + i * hone_ctype_bytes[from], hone_ctype_bytes[from]);
            hone_dtype_store(t, (char *)dst + i * r->bytes, from, v, saturate);
        }
    } else {
        uint64_t chunk[256];
        run *cast = saturate && clamping[r->ctype][from] ? clamping[r->ctype][from] : casts[r->ctype][from];
        for (size_t i = 0; i < n; i += 256) {
            size_t m = n - i < 256 ? n - i : 256;
            cast(chunk, (const char *)src + i * hone_ctype_bytes[from], m);
            move((char *)dst + i * r->bytes, chunk, m);
        }
    }
}

/* ---- packed files ---- */

void hone_dtype_unpack(hone_dtype t, uint8_t *dst, const uint8_t *packed, size_t n) {
    if (hone_dtypes[t].bits >= 8) memcpy(dst, packed, n * hone_dtypes[t].bytes);
    if (hone_dtypes[t].bits >= 8 || t == HONE_DTYPE_NONE) return;
    unsigned bits = hone_dtypes[t].bits, each = 8 / bits, mask = (1u << bits) - 1;
    unsigned top = hone_dtypes[t].kind == HONE_KIND_INT ? 1u << (bits - 1) : 0;
    for (size_t i = 0; i < n; i++) dst[i] = (uint8_t)(((packed[i / each] >> i % each * bits & mask) ^ top) - top);
}

void hone_dtype_pack(hone_dtype t, uint8_t *packed, const uint8_t *src, size_t n) {
    if (hone_dtypes[t].bits >= 8) memcpy(packed, src, n * hone_dtypes[t].bytes);
    if (hone_dtypes[t].bits >= 8 || t == HONE_DTYPE_NONE) return;
    unsigned bits = hone_dtypes[t].bits, each = 8 / bits, mask = (1u << bits) - 1;
    for (size_t i = 0; i < n; i += each) {
        unsigned byte = 0;
        for (unsigned k = 0; k < each && i + k < n; k++) byte |= (src[i + k] & mask) << k * bits;
        packed[i / each] = (uint8_t)byte;
    }
}
