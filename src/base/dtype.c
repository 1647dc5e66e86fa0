/* SPDX-License-Identifier: Apache-2.0
   dtype: the table of element types, and one element's load, store and cast: the definition that
   dtype_run.inc and every kernel must equal. Written for exactness, not for speed.

   Complex types are moved, never computed with: c64 passes as its 8 bytes in a u64; c128 fits no scalar (it
   loads as 0 and stores zeros). */
#include "base/dtype.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/dtype_small.h"

const hone_dtype_row hone_dtypes[HONE_DTYPE_COUNT] = {
    [HONE_DTYPE_NONE] = {"none", "undefined", 0, 0, HONE_KIND_NONE, HONE_F32, 0, 0},
    [HONE_DTYPE_F32] = {"f32", "float", 4, 32, HONE_KIND_FLOAT, HONE_F32, -FLT_MAX, FLT_MAX},
    [HONE_DTYPE_U8] = {"u8", "uint8", 1, 8, HONE_KIND_UINT, HONE_I32, 0, UINT8_MAX},
    [HONE_DTYPE_I8] = {"i8", "int8", 1, 8, HONE_KIND_INT, HONE_I32, INT8_MIN, INT8_MAX},
    [HONE_DTYPE_U16] = {"u16", "uint16", 2, 16, HONE_KIND_UINT, HONE_I32, 0, UINT16_MAX},
    [HONE_DTYPE_I16] = {"i16", "int16", 2, 16, HONE_KIND_INT, HONE_I32, INT16_MIN, INT16_MAX},
    [HONE_DTYPE_I32] = {"i32", "int32", 4, 32, HONE_KIND_INT, HONE_I32, INT32_MIN, INT32_MAX},
    [HONE_DTYPE_I64] = {"i64", "int64", 8, 64, HONE_KIND_INT, HONE_I64, -0x1p63, 0x1p63},
    [HONE_DTYPE_STRING] = {"string", "string", 8, 64, HONE_KIND_STRING, HONE_U64, 0, 0},
    [HONE_DTYPE_BOOL] = {"bool", "bool", 1, 8, HONE_KIND_BOOL, HONE_I32, 0, 1},
    [HONE_DTYPE_F16] = {"f16", "float16", 2, 16, HONE_KIND_FLOAT, HONE_F32, -65504, 65504},
    [HONE_DTYPE_F64] = {"f64", "double", 8, 64, HONE_KIND_FLOAT, HONE_F64, -DBL_MAX, DBL_MAX},
    [HONE_DTYPE_U32] = {"u32", "uint32", 4, 32, HONE_KIND_UINT, HONE_I64, 0, UINT32_MAX},
    [HONE_DTYPE_U64] = {"u64", "uint64", 8, 64, HONE_KIND_UINT, HONE_U64, 0, 0x1p64},
    [HONE_DTYPE_C64] = {"c64", "complex64", 8, 64, HONE_KIND_COMPLEX, HONE_U64, 0, 0},
    [HONE_DTYPE_C128] = {"c128", "complex128", 16, 128, HONE_KIND_COMPLEX, HONE_U64, 0, 0},
    [HONE_DTYPE_BF16] = {"bf16", "bfloat16", 2, 16, HONE_KIND_FLOAT, HONE_F32, -0x1.fep127, 0x1.fep127},
    [HONE_DTYPE_F8E4M3FN] = {"f8e4m3fn", "float8e4m3fn", 1, 8, HONE_KIND_FLOAT, HONE_F32, -448, 448},
    [HONE_DTYPE_F8E4M3FNUZ] = {"f8e4m3fnuz", "float8e4m3fnuz", 1, 8, HONE_KIND_FLOAT, HONE_F32, -240, 240},
    [HONE_DTYPE_F8E5M2] = {"f8e5m2", "float8e5m2", 1, 8, HONE_KIND_FLOAT, HONE_F32, -57344, 57344},
    [HONE_DTYPE_F8E5M2FNUZ] = {"f8e5m2fnuz", "float8e5m2fnuz", 1, 8, HONE_KIND_FLOAT, HONE_F32, -57344,
                               57344},
    [HONE_DTYPE_U4] = {"u4", "uint4", 1, 4, HONE_KIND_UINT, HONE_I32, 0, 15},
    [HONE_DTYPE_I4] = {"i4", "int4", 1, 4, HONE_KIND_INT, HONE_I32, -8, 7},
    [HONE_DTYPE_F4E2M1] = {"f4e2m1", "float4e2m1", 1, 4, HONE_KIND_FLOAT, HONE_F32, -6, 6},
    [HONE_DTYPE_F8E8M0] = {"f8e8m0", "float8e8m0", 1, 8, HONE_KIND_FLOAT, HONE_F32, 0x1p-127, 0x1p127},
    [HONE_DTYPE_U2] = {"u2", "uint2", 1, 2, HONE_KIND_UINT, HONE_I32, 0, 3},
    [HONE_DTYPE_I2] = {"i2", "int2", 1, 2, HONE_KIND_INT, HONE_I32, -2, 1},
};
const uint8_t hone_ctype_bytes[HONE_CTYPES] = {4, 8, 4, 8, 8};
const char *const hone_ctype_names[HONE_CTYPES] = {"f32", "f64", "i32", "i64", "u64"};

hone_dtype hone_ctype_dtype(hone_ctype c) {
    static const uint8_t same[HONE_CTYPES] = {HONE_DTYPE_F32, HONE_DTYPE_F64, HONE_DTYPE_I32, HONE_DTYPE_I64,
                                              HONE_DTYPE_U64};
    return (hone_dtype)same[c];
}

hone_dtype hone_dtype_named(const char *name, size_t bytes) {
    for (int t = 1; t < HONE_DTYPE_COUNT; t++) {
        const hone_dtype_row *r = &hone_dtypes[t];
        if ((strlen(r->name) == bytes && !memcmp(r->name, name, bytes)) ||
            (strlen(r->onnx) == bytes && !memcmp(r->onnx, name, bytes)))
            return (hone_dtype)t;
    }
    return HONE_DTYPE_NONE;
}

size_t hone_dtype_file_bytes(hone_dtype t, size_t n) {
    size_t bits = hone_dtypes[t].bits, each = 8 / (bits ? bits : 8);
    if (bits < 8) return n / each + (n % each != 0);
    return bits / 8 > SIZE_MAX / (n ? n : 1) ? SIZE_MAX : n * (bits / 8);
}

/* ---- small floats ---- */

static float widen(hone_dtype t, uint32_t code) {
    const hone_small *f = &hone_smalls[t];
    uint32_t sign = code & f->sign, mag = code & (f->sign ? f->sign - 1u : 0xffu),
             m = mag & ((1u << f->mantissa) - 1);
    int e = (int)(mag >> f->mantissa);
    float v;
    if (f->plain_zero && mag == 0) return sign ? NAN : 0.0f;
    if (t == HONE_DTYPE_F8E8M0) return mag > f->max ? NAN : ldexpf(1.0f, e - f->bias);
    if (t == HONE_DTYPE_BF16) { /* the upper half of an f32, whatever it says */
        code <<= 16;
        memcpy(&v, &code, 4);
        return v;
    }
    if (mag > f->max && mag == f->over && f->over != f->nan) v = INFINITY;
    /* a NaN is quiet, and keeps the payload that fits, as the conversion instructions do */
    else if (mag > f->max) {
        uint32_t bits = 0x7fc00000u | m << (23 - f->mantissa);
        memcpy(&v, &bits, 4);
    } else if (e == 0) v = ldexpf((float)m, 1 - f->bias - f->mantissa);
    else v = ldexpf((float)(m | 1u << f->mantissa), e - f->bias - f->mantissa);
    return sign ? -v : v;
}

/* e8m0 holds powers of two only: no sign, no zero, no mantissa to make even, so a tie goes up. Between its
   two least codes everything goes up: ONNX rounds the bits of an f32, which is subnormal there. */
static uint32_t narrow_e8m0(double v, bool saturate) {
    if (v != v) return 0xff;
    if (v <= 0) return saturate ? 0 : 0xff;
    if (v >= 0x1.8p127) return saturate ? 0xfe : 0xff;
    if (v < 0x1p-126) return v > 0x1p-127;
    int e;
    double m = frexp(v, &e); /* v = m * 2^e, m in [0.5, 1) */
    return (uint32_t)(e - 1 + 127 + (m >= 0.75));
}

static uint32_t narrow(hone_dtype t, double v, bool saturate) {
    if (t == HONE_DTYPE_F8E8M0) return narrow_e8m0(v, saturate);
    const hone_small *f = &hone_smalls[t];
    uint64_t bits;
    memcpy(&bits, &v, 8);
    uint32_t sign = bits >> 63 ? f->sign : 0;
    uint64_t mantissa = bits & ((UINT64_C(1) << 52) - 1);
    int e = (int)(bits >> 52 & 0x7ff) - 1023, least = 1 - f->bias;
    if (e == 1024 && mantissa) {
        if (t == HONE_DTYPE_F16 || t == HONE_DTYPE_BF16)
            return sign | f->nan | (uint32_t)(mantissa >> (52 - f->mantissa));
        return f->plain_zero ? f->nan : sign ^ f->nan;
    }
    uint32_t code = f->max + 1u;
    if (e < 1024) {
        int shift = 52 - f->mantissa + (e < least ? least - e : 0);
        /* a subnormal double is far below half of any least code */
        uint64_t whole = mantissa | UINT64_C(1) << 52, kept = 0;
        if (shift < 54) {
            uint64_t rest = whole & ((UINT64_C(1) << shift) - 1), half = UINT64_C(1) << (shift - 1);
            kept = whole >> shift;
            kept += rest > half || (rest == half && (kept & 1));
        }
        /* A carry out of the mantissa runs into the exponent, which is just what rounding up means. */
        if (e < least) code = (uint32_t)kept;
        else if (e <= f->bias + 1) code = (uint32_t)kept + ((uint32_t)(e + f->bias - 1) << f->mantissa);
    }
    if (code > f->max) return f->plain_zero && !saturate ? f->nan : sign | (saturate ? f->max : f->over);
    return code == 0 && f->plain_zero ? 0 : sign | code;
}

/* ---- one element ---- */

double hone_scalar_f64(hone_ctype t, hone_scalar v) { return hone_ctype_cast(HONE_F64, t, v).f64; }

hone_scalar hone_ctype_cast(hone_ctype to, hone_ctype from, hone_scalar v) {
    hone_scalar r = {.u64 = 0};
    if (to == from) return v;
    bool floats = from == HONE_F32 || from == HONE_F64;
    double d = from == HONE_F32 ? (double)v.f32 : v.f64;
    uint64_t bits = from == HONE_I32 ? (uint64_t)v.i32 : v.u64;
    switch (to) {
    case HONE_F32: r.f32 = floats ? (float)d : from == HONE_U64 ? (float)v.u64 : (float)(int64_t)bits; break;
    case HONE_F64: r.f64 = floats ? d : from == HONE_U64 ? (double)v.u64 : (double)(int64_t)bits; break;
    case HONE_I32: r.i32 = floats ? hone_i32_of_f64(d) : (int32_t)(uint32_t)bits; break;
    case HONE_I64: r.i64 = floats ? hone_i64_of_f64(d) : (int64_t)bits; break;
    default: r.u64 = floats ? hone_u64_of_f64(d) : bits; break;
    }
    return r;
}

hone_scalar hone_dtype_load(hone_dtype t, const void *at) {
    hone_scalar v = {.u64 = 0};
    if (t == HONE_DTYPE_F32) { /* what most tensors are */
        memcpy(&v.f32, at, 4);
        return v;
    }
    const hone_dtype_row *r = &hone_dtypes[t];
    uint64_t raw = 0;
    /* little endian, as both our machines are; sizes that the compiler knows need no call */
    switch (r->bytes) {
    case 1: memcpy(&raw, at, 1); break;
    case 2: memcpy(&raw, at, 2); break;
    case 4: memcpy(&raw, at, 4); break;
    case 8: memcpy(&raw, at, 8); break;
    default: break;
    }
    if (r->kind == HONE_KIND_BOOL) v.i32 = raw != 0;
    else if (r->kind == HONE_KIND_FLOAT && hone_smalls[t].bias)
        v.f32 = widen(t, r->bits < 8 ? raw & 15 : (uint32_t)raw);
    else if (r->kind == HONE_KIND_INT || r->kind == HONE_KIND_UINT) {
        /* Keep the type's bits and extend its sign: what a hostile file left above them does not count. */
        uint64_t low = r->bits == 64 ? raw : raw & ((UINT64_C(1) << r->bits) - 1), top = UINT64_C(1)
                                                                                         << (r->bits - 1);
        if (r->kind == HONE_KIND_INT) low = (low ^ top) - top;
        v = hone_ctype_cast(r->ctype, HONE_U64, (hone_scalar){.u64 = low});
    } else memcpy(&v, &raw, 8);
    return v;
}

/* For rounding once: a double of an integer that has more than 53 bits keeps "something was cut off" in its
   last bit, which is far below what any small float keeps. */
static double sticky(uint64_t magnitude) {
    if (magnitude >> 53)
        magnitude = (magnitude & ~UINT64_C(0x7ff)) | (uint64_t)((magnitude & 0x7ff) != 0) << 11;
    return (double)magnitude;
}

static void store_float(hone_dtype t, void *at, hone_ctype from, hone_scalar v, bool saturate) {
    if (t == HONE_DTYPE_F64) {
        v = hone_ctype_cast(HONE_F64, from, v);
        memcpy(at, &v.f64, 8);
    } else if (t == HONE_DTYPE_F32) {
        hone_scalar r = hone_ctype_cast(HONE_F32, from, v);
        if (saturate && from == HONE_F64 && isinf(r.f32)) r.f32 = r.f32 > 0 ? FLT_MAX : -FLT_MAX;
        memcpy(at, &r.f32, 4);
    } else {
        double d = from == HONE_F32   ? (double)v.f32
                   : from == HONE_F64 ? v.f64
                   : from == HONE_U64 ? sticky(v.u64)
                                      : 0;
        if (from == HONE_I32) d = v.i32;
        if (from == HONE_I64) d = v.i64 < 0 ? -sticky(0 - (uint64_t)v.i64) : sticky((uint64_t)v.i64);
        uint16_t code = (uint16_t)narrow(t, d, saturate);
        memcpy(at, &code, hone_dtypes[t].bytes);
    }
}

static void store_int(hone_dtype t, void *at, hone_ctype from, hone_scalar v, bool saturate) {
    const hone_dtype_row *r = &hone_dtypes[t];
    if (from == HONE_F32 || from == HONE_F64) v = hone_ctype_cast(r->ctype, from, v), from = r->ctype;
    bool below = from == HONE_I32 ? v.i32 < 0 : from == HONE_I64 && v.i64 < 0;
    uint64_t u = hone_ctype_cast(HONE_U64, from, v).u64;
    if (saturate) {
        uint64_t high = UINT64_MAX >> (64 - r->bits + (r->kind == HONE_KIND_INT)),
                 low = r->kind == HONE_KIND_INT ? ~high : 0;
        if (below && (int64_t)u < (int64_t)low) u = low;
        if (!below && u > high) u = high;
    } else if (r->bits < 8) {
        uint64_t top = UINT64_C(1) << (r->bits - 1);
        u &= top * 2 - 1;
        if (r->kind == HONE_KIND_INT) u = (u ^ top) - top;
    }
    memcpy(at, &u, r->bytes);
}

void hone_dtype_store(hone_dtype t, void *at, hone_ctype from, hone_scalar v, bool saturate) {
    const hone_dtype_row *r = &hone_dtypes[t];
    switch (r->kind) {
    case HONE_KIND_FLOAT: store_float(t, at, from, v, saturate); break;
    case HONE_KIND_INT:
    case HONE_KIND_UINT: store_int(t, at, from, v, saturate); break;
    case HONE_KIND_BOOL:
        *(uint8_t *)at = from == HONE_F32   ? v.f32 != 0
                         : from == HONE_F64 ? v.f64 != 0
                         : from == HONE_I32 ? v.i32 != 0
                                            : v.u64 != 0;
        break;
    default: /* handles and complex numbers: bytes */
        memset(at, 0, r->bytes);
        if (r->bytes == 8) memcpy(at, &v.u64, 8);
    }
}
