/* SPDX-License-Identifier: Apache-2.0
   dtype: the element types, as rows of one table. The number of a row is ONNX's own number of the type.

   Storage types are many, compute types are five. A load widens to the narrowest compute type that holds the
   storage type, a store narrows. In memory every element has whole bytes: 4- and 2-bit types hold one element
   a byte (packed only in files). */
#ifndef HONE_BASE_DTYPE_H
#define HONE_BASE_DTYPE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hone/hone.h" /* hone_dtype, HONE_DTYPE_* */

typedef enum { HONE_F32, HONE_F64, HONE_I32, HONE_I64, HONE_U64, HONE_CTYPES } hone_ctype;
typedef enum {
    HONE_KIND_NONE,
    HONE_KIND_FLOAT,
    HONE_KIND_INT,
    HONE_KIND_UINT,
    HONE_KIND_BOOL,
    HONE_KIND_STRING,
    HONE_KIND_COMPLEX
} hone_kind;

typedef struct {
    const char *name; /* "f32": as programs and reports spell it */
    const char *onnx; /* "float" */
    uint8_t bytes;    /* in memory */
    uint8_t bits;     /* in a file; below 8: packed, low bits first */
    hone_kind kind;
    hone_ctype ctype;       /* what a load widens to. Strings are 8-byte handles: u64 */
    double lowest, highest; /* finite range; integers: exact where a double can say it */
} hone_dtype_row;
extern const hone_dtype_row hone_dtypes[HONE_DTYPE_COUNT]; /* row 0 is "none" */
/* by either name; HONE_DTYPE_NONE when unknown */
hone_dtype hone_dtype_named(const char *name, size_t bytes);
static inline bool hone_dtype_valid(int64_t t) { return t > 0 && t < HONE_DTYPE_COUNT; }
extern const uint8_t hone_ctype_bytes[HONE_CTYPES];
extern const char *const hone_ctype_names[HONE_CTYPES]; /* "f32" … */
hone_dtype hone_ctype_dtype(hone_ctype);                /* the storage type of the same meaning */

/* One element: the slow, exact definition of widening and narrowing. Fast paths are compared with these. */
typedef union {
    float f32;
    double f64;
    int32_t i32;
    int64_t i64;
    uint64_t u64;
} hone_scalar;
hone_scalar hone_dtype_load(hone_dtype, const void *at);
/* Narrow `v` of compute type `from` into storage. Floats round to nearest even; integers wrap; float → int
   truncates and saturates to the compute integer and then wraps; with `saturate` every narrowing clamps to
   the type's range (float8: to the largest finite number; otherwise a float8 overflow is inf, or NaN where
   the type has no inf). NaN → integer 0. Bool: nonzero is 1. */
void hone_dtype_store(hone_dtype, void *at, hone_ctype from, hone_scalar v, bool saturate);
/* float → int truncates, saturates, NaN 0 */
hone_scalar hone_ctype_cast(hone_ctype to, hone_ctype from, hone_scalar v);
double hone_scalar_f64(hone_ctype, hone_scalar);

/* Whole runs: the same meaning as the above, as loops a compiler vectorises. dst/src are dense. */
void hone_dtype_load_n(hone_dtype, void *dst_ctype, const void *src, size_t n);
void hone_dtype_store_n(hone_dtype, void *dst, hone_ctype from, const void *src, size_t n, bool saturate);

/* Packed 4- and 2-bit runs of a file ↔ one element a byte. `n` counts elements. */
void hone_dtype_unpack(hone_dtype, uint8_t *dst, const uint8_t *packed, size_t n);
void hone_dtype_pack(hone_dtype, uint8_t *packed, const uint8_t *src, size_t n);
size_t hone_dtype_file_bytes(hone_dtype, size_t n); /* bytes of n elements in a file; SIZE_MAX on overflow */
#endif
