/* SPDX-License-Identifier: Apache-2.0
   tile_ops: what tile code does to whole tiles, as one table of functions a CPU level. Internal to tile code.

   Every function works on n dense elements unless a stride is named. Destinations may be one of the
   arguments, exactly: element k of the result depends on element k of the arguments only. `w` in a table is
   the logarithm of an element's bytes: 1, 2, 4, 8. */
#ifndef HONE_LOOPS_TILE_OPS_H
#define HONE_LOOPS_TILE_OPS_H
#include "loops/instance.h"

/* Functions of f32 that two of in a row are one pass over a tile: the chains of element-wise ops are mostly
   made of these. */
#define HONE_TILE_PAIRS(make) make(add) make(sub) make(mul) make(max) make(min)
enum { HONE_TILE_PAIRED = 5 };
/* The ranges of quantized numbers that have a pass of their own. */
enum { HONE_TILE_RANGES = 4 };
#define HONE_TILE_RANGE                                      \
    {                                                        \
        {0, 255}, {-128, 127}, {0, 65535}, { -32768, 32767 } \
    }
typedef void hone_tile_op(int64_t n, void *d, const void *a, const void *b, const void *c);
typedef struct {
    hone_tile_op *fn[HONE_FN_COUNT][HONE_CTYPES];
    hone_tile_op *cast[HONE_CTYPES][HONE_CTYPES]; /* [from][to] */
    hone_tile_op *select[4];                      /* a: i32 */
    /* [first][second]: second(first(a, b), c), and second(c, first(a, b)) */
    hone_tile_op *pair[HONE_TILE_PAIRED][HONE_TILE_PAIRED][2];
    /* min(max(round(a / s) + z, least), most), by range, and f32(i32(a) - z) * s: s is b's first element, z
       that of c (NULL: 0), a float and an i32 */
    hone_tile_op *quantize[HONE_TILE_RANGES], *dequantize;
    void (*fill[4])(int64_t n, void *d, const void *value);
    void (*take[4])(int64_t n, void *d, const void *s, int64_t stride);   /* d dense, s strided (bytes) */
    void (*spread[4])(int64_t n, void *d, int64_t stride, const void *s); /* d strided, s dense */
    /* d[r, c] dense = element at s + r*row + c*column, read along r */
    void (*across[4])(int64_t rows, int64_t columns, void *d, const char *s, int64_t row, int64_t column);
    /* d[k] = element at base + off[k] where ok[k] (NULL: everywhere), else otherwise[k] (NULL: 0) */
    void (*gather[4])(int64_t n, void *d, const char *base, const int64_t *off, const int32_t *ok,
                      const void *otherwise);
    /* in order */
    void (*scatter[4])(int64_t n, char *base, const int64_t *off, const int32_t *ok, const void *s);
    /* the element at base + off[k] joined with s[k], in order; by hone_store (SET: none) and type, storage as
       the compute type's */
    void (*merge[HONE_STORE_MIN + 1][HONE_CTYPES])(int64_t n, char *base, const int64_t *off,
                                                   const int32_t *ok, const void *s);
    /* past the caches; visible to others after `settle` */
    void (*stream)(size_t bytes, void *d, const void *s);
    void (*settle)(void);
    void (*iota)(int64_t n, int64_t *d, int64_t start, int64_t step);
    /* a + b*k, wrapping */
    void (*muladd)(int64_t n, int64_t *d, const int64_t *a, const int64_t *b, int64_t k);
    /* ok (NULL: 1) and 0 <= at < dim */
    void (*inside)(int64_t n, int32_t *d, const int32_t *ok, const int64_t *at, int64_t dim);
    /* n accumulators of sums of f32, each and every row in order, rows `stride` bytes apart */
    void (*sum_rows)(int64_t n, double *d, const float *v, int64_t rows, int64_t stride);
    /* By hone_reduce. Accumulators are of the values' type; of f32 sums and products, double. */
    struct {
        void (*each[HONE_REDUCE_ARGMAX])(int64_t n, void *d, const void *v); /* n accumulators, n values */
        /* one accumulator, n values: in lanes, order by n only */
        void (*all[HONE_REDUCE_ARGMAX])(int64_t n, void *d, const void *v);
        /* ARGMAX, ARGMIN: d = v wins, and best is it */
        void (*better[2])(int64_t n, int32_t *d, void *best, const void *v, int first);
        /* the last winner's place among n, or -1 */
        int64_t (*find[2])(int64_t n, void *best, const void *v, int first);
    } reduce[HONE_CTYPES];
} hone_tile_ops;
const hone_tile_ops *hone_tile_ops_best(void); /* for this CPU, as masked now */
#endif
