/* SPDX-License-Identifier: Apache-2.0
   gemm: micro-kernels of matrix multiplication: rows of A as they lie in memory, panels of B. Pure
   arithmetic: no graph, thread or allocator.

   A kernel row carries functions, tiles and CPU needs together, so they cannot drift apart. Blocking, the
   pointers to A, packing B from strided or convolution-shaped operands and what the epilogue is belong to the
   tactic that calls (device/cpu/contract_choose.c).

   K is `taps` pieces of k values. Piece t of row i begins at a[t*a_step + i], so `a` is an indirection
   buffer: a matrix has one piece; a convolution over channels-last images has one a place of its window, and
   rows outside the image point to zeros. So nothing is copied to make a convolution a matrix product. Where
   rows do not lie even in pieces (few channels, channels first), `at` says where each value of K is:
   a[i][at[p]]; then there is one piece. A panel of B has for each value of K a slice of n values, b_step
   floats apart:

        b[(t*k + p)*b_step + j]  =  B[t*k + p, j]

        c[i][c_from + j]  =  sums[i][sums_from + j]
                             + sum over t, p of  a[t*a_step + i][p] * b[(t*k + p)*b_step + j]    i < m, j < n

   With `epilogue` the sums then get  + bias_m[i]  + bias_n[j]  + residual[i][c_from + j], each where given,
   and are clamped. */
#ifndef HONE_KERNELS_GEMM_H
#define HONE_KERNELS_GEMM_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* value p of each row is first clamp(value * scale[p] + shift[p]); shift NULL: nothing is added */
typedef struct {
    const float *scale, *shift;
    float lo, hi;
} hone_gemm_prologue;
typedef struct hone_gemm_args {
    int m; /* 1 … rows, or with m_block any number */
    int n; /* columns that are stored, of a panel of whole vectors: more than all vectors but one */
    int64_t taps, k;
    const float *const *a;
    /* or NULL. Instead of a and at: these rows as the kernel's `pack_a` made them. Not with small_m, nor
       panels wider than `packed_widths` */
    const float *packed_a;
    /* kernels with `pack_a`, not with small_m: of many rows so many at a time, at most `rows`, packed ones
       one block after another. 0: one block */
    int m_block;
    /* with small_m or m_block, and whole panels, but neither at nor at_b: so many, b_apart floats from one to
       the next. 0: one */
    int panels;
    /* of pack_a, or NULL: only of one piece, without at */
    const hone_gemm_prologue *prologue;
    bool copy_a;       /* of pack_a: rows are copied as they lie, one after another, and not packed */
    const int64_t *at; /* or NULL: p itself. Not with small_m */
    /* or NULL. Slice p begins at b[at_b[p]]: one piece, and nothing is prefetched */
    const int64_t *at_b;
    ptrdiff_t a_step, a_from, b_step, b_apart; /* a_from: depthwise only */
    const float *b;
    /* what will be read later, prefetched meanwhile, prefetch_step floats further with each value of K (with
       m_block: bytes, with each four; by the first of several panels). NULL, and step 0: nothing */
    const float *prefetch;
    ptrdiff_t prefetch_step;
    /* a pointer a row, to its column 0; this panel's are c_from further. So it is with residual */
    float *const *c;
    ptrdiff_t c_from;
    /* these are all the rows there are, at most HONE_GEMM_SMALL_M: sums in another order, and faster */
    bool small_m;
    bool more, epilogue;      /* there are sums of earlier values of K; these are the last ones */
    const float *const *sums; /* the former: a pointer a row, */
    ptrdiff_t sums_from;      /* and where this panel's begin. They may be c */
    const float *bias_m, *bias_n, *const *residual;
    bool clamp;
    float lo, hi;
    /* depthwise only: these are rows of bf16, whatever the pointers say */
    bool a_bf16, residual_bf16, c_bf16;
} hone_gemm_args;
typedef void hone_gemm_f32_fn(const hone_gemm_args *);
enum {
    HONE_GEMM_WIDTHS = 4,
    HONE_GEMM_ROWS = 8 /* the most of any kernel */,
    HONE_GEMM_SMALL_M = 4 /* fewer than the rows of any kernel */
};
typedef struct {
    const char *name; /* "hone_gemm_f32__avx2" */
    uint32_t cpu;     /* HONE_CPU_* bits it needs */
    int vector;       /* floats */
    /* panels of 1 … this many vectors; packed rows, and who prefetches as many columns as there are, take up
       to `packed_widths` */
    int widths, packed_widths;
    /* rows at a time, by vectors - 1; of rows as they lie, where kernels with `pack_a` take fewer of those */
    int mr[HONE_GEMM_WIDTHS], direct_rows[HONE_GEMM_WIDTHS];
    hone_gemm_f32_fn *run[HONE_GEMM_WIDTHS]; /* by vectors - 1 */
    /* NULL, or: the kernel is faster on rows that lie value by value of K, all rows' first values, then all
       second ones: to[p * HONE_GEMM_PACKED_M(m) + i] is value p of row i, p over all pieces. Packs the rows
       of a part, of which m, m_block, taps, k, a, a_step, at and prologue count; with `at` of one block. The
       same bits come out */
    void (*pack_a)(const hone_gemm_args *, float *to);
} hone_gemm_f32;
#define HONE_GEMM_PACKED_M(m) (((m) + 3) / 4 * 4)
extern const hone_gemm_f32 *const hone_gemm_f32_list[]; /* slowest first; ends with NULL */
const hone_gemm_f32 *hone_gemm_f32_best(void);          /* the last row this CPU (as masked) can run */

/* 8-bit factors, sums in i32 that wrap. K is padded with zeros to a multiple of `deep`, which is 4 or more,
   and counted in groups of four. A is signed; B is signed or not, as the kernel says, and lies in groups of
   its own, of 4 or 8:
        a[(p / deep * mr + i) * deep + p % deep]     =  A[i, p]
        b[(p / group * nr + j) * group + p % group]  =  B[p, j]
   m rows (1 … mr) are set, nr columns each. Zero points are the caller's: they need sums of rows and columns
   only. */
typedef void hone_gemm_i8_fn(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c,
                             ptrdiff_t c_stride);
/* (The next two: B in groups of four.) Rows of A as they lie, u8, a_step bytes apart, times a panel of i8: m
   is a multiple of 16. Whole groups of `deep` bytes of each row are read; what is past K counts as often as
   B says, which is 0 there. The first n of the panel's columns are wanted; some more may come. */
typedef void hone_gemm_u8_direct_fn(int m, int64_t groups, const uint8_t *a, ptrdiff_t a_step,
                                    const uint8_t *b, int n, int32_t *c, ptrdiff_t c_stride);
/* Rows of A as they lie, u8, a_step bytes apart, whose values of K come in groups of four, each group where
   `at` says; any m, a panel of i8. All four bytes of a group are read; those that are no values of K meet
   zeros in B. */
typedef void hone_gemm_i8_gathered_fn(int64_t m, int64_t groups, const uint8_t *a, ptrdiff_t a_step,
                                      const int64_t *at, const uint8_t *b, int32_t *c, ptrdiff_t c_stride);
/* The same of A that holds uint8_t and B that holds int8_t, then bytes (requantize.h): any m, rows in panels
   of mr one after another; columns j … j+n-1, those of as many panels as that takes, one after another:
   out[i][j + …]. `requantize` must not be odd, and its bias and scale are there for all panels. */
struct hone_requantize;
typedef void hone_gemm_i8_requantize_fn(int64_t m, int64_t groups, const uint8_t *a, const uint8_t *b,
                                        const struct hone_requantize *, int64_t j, int64_t n,
                                        uint8_t *const *out);
/* The same of a panel of which only the first n columns are wanted, rounded up to whole vectors: a last
   one. */
typedef void hone_gemm_i8_some_fn(int m, int64_t groups, const int8_t *a, const uint8_t *b, int n, int32_t *c,
                                  ptrdiff_t c_stride);
/* Rows of A as they lie: each is `taps` pieces (at most 32) of `piece` bytes, a multiple of four; piece t of
   row i is at a + row[i] + at[t], or, where bit t of outside[i] is set, at `beyond`. Times a panel of B, of
   which n columns are wanted: c[i * c_stride + j], rounded up to whole vectors. Any m. */
typedef struct {
    int64_t m, taps, piece;
    const uint8_t *a;
    const int64_t *row, *at;
    const uint32_t *outside; /* or NULL */
    const uint8_t *beyond;
    uint8_t flip; /* over every byte */
} hone_gemm_i8_indirect;
typedef void hone_gemm_i8_indirect_fn(const hone_gemm_i8_indirect *, const uint8_t *b, int n, int32_t *c,
                                      ptrdiff_t c_stride);
typedef struct {
    const char *name; /* "hone_gemm_i8_14x32__vnni" */
    uint32_t cpu;
    int mr, nr, deep, group;
    int b_signed; /* b holds int8_t */
    hone_gemm_i8_fn *run;
    /* the same of an A that holds uint8_t and a B that holds int8_t; NULL where b_signed */
    hone_gemm_i8_fn *run_u;
    hone_gemm_u8_direct_fn *run_direct;         /* or NULL */
    hone_gemm_i8_gathered_fn *run_gathered;     /* or NULL */
    hone_gemm_i8_requantize_fn *run_requantize; /* or NULL */
    void (*begin)(int64_t k),
        /* as in gemm_half.h. Where k is less than `deep` only the first k bytes of a row, in whole groups of
           four, are read */
        (*end)(void);
    hone_gemm_i8_indirect_fn *run_indirect; /* or NULL */
    hone_gemm_i8_some_fn *run_edge;         /* or NULL */
} hone_gemm_i8;
extern const hone_gemm_i8 hone_gemm_i8_list[];
const hone_gemm_i8 *hone_gemm_i8_best(void);
/* Kernels with `taps`, for few columns: to pack rows takes longer there than to multiply them. */
extern const hone_gemm_i8 hone_gemm_i8_indirect_list[];
const hone_gemm_i8 *hone_gemm_i8_indirect_best(void); /* NULL: none, or the best of the others needs none */
/* Four rows of n bytes as n groups of four, each byte with `flip` over it (0x80 moves u8 to i8 and back):
   to[4i + q] = row[q][i] ^ flip. */
void hone_interleave4(const uint8_t *const row[4], int64_t n, uint8_t flip, uint8_t *to);
/* m rows of n bytes, or floats, transposed: to[j*to_step + i] = from[i*from_step + j]. */
void hone_transpose_bytes(int64_t m, int64_t n, const uint8_t *from, ptrdiff_t from_step, uint8_t *to,
                          ptrdiff_t to_step);
void hone_transpose_floats(int64_t m, int64_t n, const float *from, ptrdiff_t from_step, float *to,
                           ptrdiff_t to_step);

/* Depthwise, channels last: every column has its own A. c[i][c_from + j] = sums[i][sums_from + j] + sum over
   t of a[t*a_step + i][a_from + j] * b[t*b_step + j], then as above; any m and n, k is 1. With no taps at all
   it finishes sums of others. Rows of A, of the residual and of c may be bf16. */
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_gemm_f32_fn *run;
} hone_dwconv_nhwc;
extern const hone_dwconv_nhwc hone_dwconv_nhwc_list[];
const hone_dwconv_nhwc *hone_dwconv_nhwc_best(void);

/* Depthwise convolution of one channel, planes dense in their rows.
   x: [h, w] with row stride xs;  k: [kh, kw] dense;  y rows oy0 … oy1-1 of [oh, ow] with row stride ys
   y[oy, ox] = sum(i, j) x[oy*sh + i*dh - ph, ox*sw + j*dw - pw] * k[i, j], zero outside x */
typedef struct {
    int64_t h, w, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
    ptrdiff_t xs, ys;
} hone_dwconv_nchw_shape;
typedef void hone_dwconv_nchw_fn(const hone_dwconv_nchw_shape *, const float *x, const float *k, float *y,
                                 int64_t oy0, int64_t oy1);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_dwconv_nchw_fn *run;
} hone_dwconv_nchw;
extern const hone_dwconv_nchw hone_dwconv_nchw_list[];
const hone_dwconv_nchw *hone_dwconv_nchw_best(void);
#endif
