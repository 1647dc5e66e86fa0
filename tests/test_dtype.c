/* SPDX-License-Identifier: Apache-2.0
   Dtypes against their definition: small floats value by value, stores that saturate, runs of many at every
   CPU level, packed types. Random cases come from a fixed seed, so a failure repeats. */
#include <float.h>
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/dtype.h"
#include "base/mem.h"
#include "base/thread.h"
#include "random.h"

static uint64_t seed = 0x9e3779b97f4a7c15u;
static uint64_t draw(void) { return next_random_star(&seed); }
static int64_t draw_to(int64_t n) { return (int64_t)(draw() >> 1) % n; }

static const hone_dtype small_floats[] = {HONE_DTYPE_F16,        HONE_DTYPE_BF16,   HONE_DTYPE_F8E4M3FN,
                                          HONE_DTYPE_F8E4M3FNUZ, HONE_DTYPE_F8E5M2, HONE_DTYPE_F8E5M2FNUZ,
                                          HONE_DTYPE_F4E2M1,     HONE_DTYPE_F8E8M0};
enum { SMALL_FLOATS = sizeof small_floats / sizeof *small_floats };

static uint32_t code_of(hone_dtype t, double v, bool saturate) {
    uint16_t code = 0;
    hone_dtype_store(t, &code, HONE_F64, (hone_scalar){.f64 = v}, saturate);
    return code;
}
static float number_of(hone_dtype t, uint32_t code) {
    uint16_t c = (uint16_t)code;
    return hone_dtype_load(t, &c).f32;
}

static void test_dtype_table(void **state) {
    (void)state;
    for (int t = 1; t < HONE_DTYPE_COUNT; t++) {
        const hone_dtype_row *r = &hone_dtypes[t];
        assert_int_equal(hone_dtype_named(r->name, strlen(r->name)), t);
        assert_int_equal(hone_dtype_named(r->onnx, strlen(r->onnx)), t);
        assert_true(r->bytes * 8 >= r->bits && r->bits);
    }
    assert_int_equal(hone_dtype_named("f3", 2), HONE_DTYPE_NONE);
    assert_false(hone_dtype_valid(0) || hone_dtype_valid(HONE_DTYPE_COUNT) || hone_dtype_valid(-1));
    for (int c = 0; c < HONE_CTYPES; c++)
        assert_int_equal(hone_dtypes[hone_ctype_dtype((hone_ctype)c)].ctype, c);
    assert_int_equal(hone_dtype_file_bytes(HONE_DTYPE_I4, 5), 3);
    assert_int_equal(hone_dtype_file_bytes(HONE_DTYPE_U2, 5), 2);
    assert_int_equal(hone_dtype_file_bytes(HONE_DTYPE_F64, 5), 40);
    assert_int_equal(hone_dtype_file_bytes(HONE_DTYPE_F64, SIZE_MAX / 4), SIZE_MAX);
}

/* Every code loads and stores back to itself; a NaN to a NaN. And codes grow with their numbers, so rounding
   has one meaning. */
static void test_small_floats_round_trip(void **state) {
    (void)state;
    for (int f = 0; f < SMALL_FLOATS; f++) {
        hone_dtype t = small_floats[f];
        uint32_t codes = 1u << hone_dtypes[t].bits;
        float before = -INFINITY;
        for (uint32_t code = 0; code < codes; code++) {
            float v = number_of(t, code);
            uint32_t back = code_of(t, v, false);
            if (v != v && t != HONE_DTYPE_F4E2M1) assert_true(isnan(number_of(t, back)));
            else assert_int_equal(back, code);
            if (isfinite(v)) assert_int_equal(code_of(t, v, true), code);
            if (isfinite(v) && code < codes / 2) {
                assert_true(v > before);
                before = v;
            }
            if (isfinite(v)) assert_true(v >= hone_dtypes[t].lowest && v <= hone_dtypes[t].highest);
        }
        assert_true(number_of(t, code_of(t, hone_dtypes[t].highest, false)) == hone_dtypes[t].highest);
    }
}

/* Between two neighbours: below the middle down, above it up, in it to the even code. */
static void test_small_floats_ties(void **state) {
    (void)state;
    for (int f = 0; f < SMALL_FLOATS - 1; f++) { /* e8m0 has its own rule */
        hone_dtype t = small_floats[f];
        uint32_t sign = 1u << (hone_dtypes[t].bits - 1);
        for (uint32_t code = 0; code + 1 < sign; code++) {
            double a = number_of(t, code), b = number_of(t, code + 1), middle = (a + b) / 2;
            if (!isfinite(a) || !isfinite(b)) break;
            assert_int_equal(code_of(t, middle, false), code + (code & 1));
            assert_int_equal(code_of(t, nextafter(middle, INFINITY), false), code + 1);
            assert_int_equal(code_of(t, nextafter(middle, 0), false), code);
            bool no_sign = code_of(t, -0.0, false) == 0 && code + (code & 1) == 0;
            assert_int_equal(code_of(t, -middle, false), no_sign ? 0 : sign | (code + (code & 1)));
        }
    }
    assert_int_equal(code_of(HONE_DTYPE_F8E8M0, 1.5, false), 0x80);
    assert_int_equal(code_of(HONE_DTYPE_F8E8M0, 3, false), 0x81);
    assert_int_equal(code_of(HONE_DTYPE_F8E8M0, 1.49, false), 0x7f);
}

/* The tables of ONNX's Cast. */
static void test_small_floats_overflow(void **state) {
    (void)state;
    static const struct {
        hone_dtype t;
        double v;
        uint32_t saturated, plain;
    } rows[] = {{HONE_DTYPE_F8E4M3FN, INFINITY, 0x7e, 0x7f},
                {HONE_DTYPE_F8E4M3FN, -INFINITY, 0xfe, 0xff},
                {HONE_DTYPE_F8E4M3FN, 464, 0x7e, 0x7e},
                {HONE_DTYPE_F8E4M3FN, 464.1, 0x7e, 0x7f},
                {HONE_DTYPE_F8E4M3FN, -1e9, 0xfe, 0xff},
                {HONE_DTYPE_F8E4M3FN, NAN, 0x7f, 0x7f},
                {HONE_DTYPE_F8E4M3FNUZ, INFINITY, 0x7f, 0x80},
                {HONE_DTYPE_F8E4M3FNUZ, -1e9, 0xff, 0x80},
                {HONE_DTYPE_F8E4M3FNUZ, -0.0, 0, 0},
                {HONE_DTYPE_F8E4M3FNUZ, NAN, 0x80, 0x80},
                {HONE_DTYPE_F8E4M3FNUZ, -1e-9, 0, 0},
                {HONE_DTYPE_F8E5M2, INFINITY, 0x7b, 0x7c},
                {HONE_DTYPE_F8E5M2, -1e9, 0xfb, 0xfc},
                {HONE_DTYPE_F8E5M2, NAN, 0x7e, 0x7e},
                {HONE_DTYPE_F8E5M2FNUZ, INFINITY, 0x7f, 0x80},
                {HONE_DTYPE_F8E5M2FNUZ, 1e9, 0x7f, 0x80},
                {HONE_DTYPE_F4E2M1, INFINITY, 7, 7},
                {HONE_DTYPE_F4E2M1, -1e9, 15, 15},
                {HONE_DTYPE_F16, 65519, 0x7bff, 0x7bff},
                {HONE_DTYPE_F16, 65520, 0x7bff, 0x7c00},
                {HONE_DTYPE_F16, -INFINITY, 0xfbff, 0xfc00},
                {HONE_DTYPE_BF16, 1e300, 0x7f7f, 0x7f80},
                {HONE_DTYPE_F8E8M0, 0, 0, 0xff},
                {HONE_DTYPE_F8E8M0, INFINITY, 0xfe, 0xff},
                {HONE_DTYPE_F8E8M0, 3e38, 0xfe, 0xff},
                {HONE_DTYPE_F8E8M0, -1, 0, 0xff},
                {HONE_DTYPE_F8E8M0, NAN, 0xff, 0xff}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        assert_int_equal(code_of(rows[i].t, rows[i].v, true), rows[i].saturated);
        assert_int_equal(code_of(rows[i].t, rows[i].v, false), rows[i].plain);
    }
}

static void test_int_stores(void **state) {
    (void)state;
    static const struct {
        hone_dtype t;
        hone_ctype from;
        hone_scalar v;
        int64_t saturated, plain;
    } rows[] = {{HONE_DTYPE_U8, HONE_I32, {.i32 = 300}, 255, 44},
                {HONE_DTYPE_U8, HONE_I32, {.i32 = -1}, 0, 255},
                {HONE_DTYPE_I8, HONE_I64, {.i64 = 200}, 127, -56},
                {HONE_DTYPE_I8, HONE_U64, {.u64 = UINT64_MAX}, 127, -1},
                {HONE_DTYPE_U8, HONE_F32, {.f32 = -1.5f}, 0, 255},
                {HONE_DTYPE_U8, HONE_F32, {.f32 = 255.9f}, 255, 255},
                {HONE_DTYPE_I32, HONE_F32, {.f32 = 1e20f}, INT32_MAX, INT32_MAX},
                {HONE_DTYPE_I32, HONE_F32, {.f32 = -2147483648.0f}, INT32_MIN, INT32_MIN},
                {HONE_DTYPE_I64, HONE_F64, {.f64 = -1e300}, INT64_MIN, INT64_MIN},
                {HONE_DTYPE_I64, HONE_F64, {.f64 = NAN}, 0, 0},
                {HONE_DTYPE_I32, HONE_I64, {.i64 = (int64_t)1 << 33}, INT32_MAX, 0},
                {HONE_DTYPE_U64, HONE_I32, {.i32 = -1}, 0, -1},
                {HONE_DTYPE_U64, HONE_F32, {.f32 = 1e30f}, -1, -1},
                {HONE_DTYPE_U32, HONE_F64, {.f64 = -5}, 0, UINT32_MAX - 4},
                {HONE_DTYPE_I4, HONE_I32, {.i32 = 9}, 7, -7},
                {HONE_DTYPE_U4, HONE_I32, {.i32 = 17}, 15, 1},
                {HONE_DTYPE_I2, HONE_F32, {.f32 = 3}, 1, -1},
                {HONE_DTYPE_U2, HONE_I64, {.i64 = -1}, 0, 3},
                {HONE_DTYPE_BOOL, HONE_F32, {.f32 = 0.1f}, 1, 1},
                {HONE_DTYPE_BOOL, HONE_F64, {.f64 = -0.0}, 0, 0},
                {HONE_DTYPE_BOOL, HONE_I64, {.i64 = (int64_t)1 << 40}, 1, 1}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (int saturate = 0; saturate < 2; saturate++) {
            uint64_t at = 0;
            hone_dtype_store(rows[i].t, &at, rows[i].from, rows[i].v, saturate);
            hone_scalar back = hone_dtype_load(rows[i].t, &at);
            int64_t got = hone_ctype_cast(HONE_I64, hone_dtypes[rows[i].t].ctype, back).i64;
            assert_int_equal(got, saturate ? rows[i].saturated : rows[i].plain);
        }
}

/* A scalar of this compute type, often at an edge. */
static hone_scalar any_scalar(hone_ctype t) {
    static const double edges[] = {0,     -0.0,       1,          -1,           0.5,    127,
                                   128,   255,        256,        448,          464,    65504,
                                   65520, 2147483647, 2147483648, 4294967295.0, 0x1p63, 0x1p64};
    hone_scalar v = {.u64 = draw()};
    int kind = (int)draw_to(8);
    if (t == HONE_F32 || t == HONE_F64) {
        double d = kind == 0   ? NAN
                   : kind == 1 ? INFINITY
                   : kind < 4  ? edges[draw_to(18)]
                               : ldexp((double)draw_to(1 << 25), (int)draw_to(80) - 55);
        if (draw() & 1) d = -d;
        if (kind == 7) d = t == HONE_F32 ? v.f32 : v.f64; /* any bits */
        if (t == HONE_F32) v.u64 = 0, v.f32 = (float)d;
        else v.f64 = d;
    } else {
        if (kind < 6) v.u64 >>= draw_to(64);
        if (draw() & 1) v.u64 = 0 - v.u64;
        if (t == HONE_I32) v.u64 = (uint32_t)v.u64;
    }
    return v;
}

/* Runs are bit for bit the scalar definition, for all types, odd lengths and odd addresses; nothing past the
   end is written. */
static void test_runs(void **state) {
    (void)state;
    enum { MAX = 603 };
    uint32_t all = hone_cpu();
    for (int level = 0; level < 2; level++, hone_cpu_mask(0))
        for (int t = 1; t < HONE_DTYPE_COUNT; t++)
            for (int from = 0; from < HONE_CTYPES; from++)
                for (int trial = 0; trial < 24; trial++) {
                    size_t n = trial < 20 ? (size_t)trial : (size_t)(MAX - draw_to(20)),
                           bytes = hone_dtypes[t].bytes, wide = hone_ctype_bytes[from];
                    uint8_t src[MAX * 8 + 1], one[16], got[MAX * 16 + 17], back[MAX * 8 + 17];
                    uint8_t *in = src + trial % 2, *out = got + trial % 2, *loaded = back + trial % 2;
                    hone_scalar v[MAX];
                    for (size_t i = 0; i < n; i++) {
                        v[i] = any_scalar((hone_ctype)from);
                        memcpy(in + i * wide, &v[i], wide);
                    }
                    memset(got, 0xa5, sizeof got);
                    hone_dtype_store_n((hone_dtype)t, out, (hone_ctype)from, in, n, trial & 2);
                    for (size_t i = 0; i < n; i++) {
                        hone_dtype_store((hone_dtype)t, one, (hone_ctype)from, v[i], trial & 2);
                        assert_memory_equal(out + i * bytes, one, bytes);
                    }
                    assert_int_equal(out[n * bytes], 0xa5);
                    if (t == HONE_DTYPE_C128) continue;
                    /* any bits, out of range too */
                    if (bytes < 8)
                        for (size_t i = 0; i < n * bytes; i++) out[i] = (uint8_t)draw();
                    memset(back, 0xa5, sizeof back);
                    hone_dtype_load_n((hone_dtype)t, loaded, out, n);
                    size_t each = hone_ctype_bytes[hone_dtypes[t].ctype];
                    for (size_t i = 0; i < n; i++) {
                        hone_scalar want = hone_dtype_load((hone_dtype)t, out + i * bytes);
                        assert_memory_equal(loaded + i * each, &want, each);
                    }
                    assert_int_equal(loaded[n * each], 0xa5);
                }
    hone_cpu_mask(UINT32_MAX);
    assert_int_equal(hone_cpu(), all);
}

/* Every 16- and 8-bit code, and a dense sweep of f32 bits, through runs and scalars. */
static void test_runs_sweep(void **state) {
    (void)state;
    enum { N = 1 << 16 };
    float *v = malloc(N * sizeof *v), *back = malloc(N * sizeof *back);
    uint16_t *code = malloc(N * sizeof *code);
    for (int f = 0; f < SMALL_FLOATS; f++) {
        hone_dtype t = small_floats[f];
        size_t bytes = hone_dtypes[t].bytes;
        for (int i = 0; i < N; i++) code[i] = (uint16_t)i;
        hone_dtype_load_n(t, back, code, N);
        for (size_t i = 0; i < N; i++) {
            hone_scalar want = hone_dtype_load(t, (char *)code + i * bytes);
            assert_memory_equal(&back[i], &want, 4);
        }
        for (int part = 0; part < 4; part++) {
            for (uint32_t i = 0; i < N; i++) {
                uint32_t bits = i << 16 | (part == 0   ? 0
                                           : part == 1 ? 0x8000
                                           : part == 2 ? 0x7fff
                                                       : (uint32_t)draw() & 0xffff);
                memcpy(&v[i], &bits, 4);
            }
            for (int saturate = 0; saturate < 2; saturate++) {
                hone_dtype_store_n(t, code, HONE_F32, v, N, saturate);
                for (size_t i = 0; i < N; i++) {
                    uint16_t want = 0;
                    hone_dtype_store(t, &want, HONE_F32, (hone_scalar){.f32 = v[i]}, saturate);
                    assert_memory_equal((char *)code + i * bytes, &want, bytes);
                }
            }
        }
    }
    free(v), free(back), free(code);
}

static void test_pack(void **state) {
    (void)state;
    static const hone_dtype types[] = {HONE_DTYPE_I4, HONE_DTYPE_U4, HONE_DTYPE_I2, HONE_DTYPE_U2,
                                       HONE_DTYPE_F4E2M1};
    for (int k = 0; k < 5; k++)
        for (size_t n = 0; n < 20; n++) {
            uint8_t element[20], packed[21], back[21];
            memset(packed, 0xa5, sizeof packed);
            memset(back, 0xa5, sizeof back);
            for (size_t i = 0; i < n; i++)
                hone_dtype_store(types[k], &element[i], HONE_I32, (hone_scalar){.i32 = (int)draw_to(16) - 8},
                                 false);
            hone_dtype_pack(types[k], packed, element, n);
            assert_int_equal(packed[hone_dtype_file_bytes(types[k], n)], 0xa5);
            hone_dtype_unpack(types[k], back, packed, n);
            assert_memory_equal(back, element, n);
            assert_int_equal(back[n], 0xa5);
        }
    uint8_t two[2], packed[] = {0x8f};
    hone_dtype_unpack(HONE_DTYPE_I4, two, packed, 2); /* low bits first */
    assert_int_equal((int8_t)two[0], -1);
    assert_int_equal((int8_t)two[1], -8);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_dtype_table),       cmocka_unit_test(test_small_floats_round_trip),
        cmocka_unit_test(test_small_floats_ties), cmocka_unit_test(test_small_floats_overflow),
        cmocka_unit_test(test_int_stores),        cmocka_unit_test(test_runs),
        cmocka_unit_test(test_runs_sweep),        cmocka_unit_test(test_pack)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
