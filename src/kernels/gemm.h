/* SPDX-License-Identifier: Apache-2.0
   gemm: micro-kernels of matrix multiplication on packed panels. Pure arithmetic: no graph, thread or allocator.

   A kernel row carries function, tile and CPU needs together, so they cannot drift apart. Blocking, packing from strided or
   convolution-shaped operands and the epilogue belong to the tactic that calls (device/cpu/contract.c).

        panel of A: k slices of mr values           panel of B: k slices of nr values
        a[p*mr + i]  =  A[i, p]                      b[p*nr + j]  =  B[p, j]
        c[i*c_stride + j]  (+)=  sum over p of a[p*mr + i] * b[p*nr + j],    i < m, j < nr

   Panels are padded with zeros to whole mr and nr; c has room for nr columns in each of its m rows. */
#ifndef HONE_KERNELS_GEMM_H
#define HONE_KERNELS_GEMM_H
#include <stddef.h>
#include <stdint.h>

/* m rows (1 … mr) are computed, the others untouched. accumulate: 0 sets c, 1 adds to it. a, b 64-byte aligned. */
typedef void hone_gemm_f32_fn(int m, int64_t k, const float *a, const float *b, float *c, ptrdiff_t c_stride, int accumulate);
typedef struct {
    const char *name; /* "hone_gemm_f32_6x16__avx2" */
    uint32_t cpu;     /* HONE_CPU_* bits it needs */
    int mr, nr;
    hone_gemm_f32_fn *run;
} hone_gemm_f32;
extern const hone_gemm_f32 hone_gemm_f32_list[]; /* slowest first; ends with a NULL name */
const hone_gemm_f32 *hone_gemm_f32_best(void);   /* the last row this CPU (as masked) can run */

/* 8-bit factors, sums in i32 that wrap. K comes in groups of four, padded with zeros:
        a[(p*mr + i)*4 + q]  =  A[i, 4p + q], signed      b[(p*nr + j)*4 + q]  =  B[4p + q, j], signed or not, as the kernel says
   m rows (1 … mr) are set, nr columns each. Zero points are the caller's: they need sums of rows and columns only. */
typedef void hone_gemm_i8_fn(int m, int64_t groups, const int8_t *a, const uint8_t *b, int32_t *c, ptrdiff_t c_stride);
typedef struct {
    const char *name; /* "hone_gemm_i8_14x32__vnni" */
    uint32_t cpu;
    int mr, nr;
    int b_signed; /* b holds int8_t */
    hone_gemm_i8_fn *run;
} hone_gemm_i8;
extern const hone_gemm_i8 hone_gemm_i8_list[];
const hone_gemm_i8 *hone_gemm_i8_best(void);
/* Four rows of n bytes as n groups of four, each byte with `flip` over it (0x80 moves u8 to i8 and back): to[4i + q] = row[q][i] ^ flip. */
void hone_interleave4(const uint8_t *const row[4], int64_t n, uint8_t flip, uint8_t *to);

/* Depthwise convolution of one channel, planes dense in their rows.
   x: [h, w] with row stride xs;  k: [kh, kw] dense;  y rows oy0 … oy1-1 of [oh, ow] with row stride ys
   y[oy, ox] = sum(i, j) x[oy*sh + i*dh - ph, ox*sw + j*dw - pw] * k[i, j], zero outside x */
typedef struct {
    int64_t h, w, oh, ow, kh, kw, sh, sw, dh, dw, ph, pw;
    ptrdiff_t xs, ys;
} hone_depthwise_shape;
typedef void hone_depthwise_f32_fn(const hone_depthwise_shape *, const float *x, const float *k, float *y, int64_t oy0, int64_t oy1);
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_depthwise_f32_fn *run;
} hone_depthwise_f32;
extern const hone_depthwise_f32 hone_depthwise_f32_list[];
const hone_depthwise_f32 *hone_depthwise_f32_best(void);
#endif
