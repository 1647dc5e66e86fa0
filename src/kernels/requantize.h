/* SPDX-License-Identifier: Apache-2.0
   requantize: sums of 8-bit products as bytes again, each column with its own bias and scale.

        t          =  f32(sum[i*step + j] - less[i] + bias[j]) * scale[j]                        i < m, j < n
        out[i][j]  =  clamp(round half even(t) + zero, 0, 255) ^ flip

   The same operations in the same order as the program's own, so the same bits; flip 0x80 and a zero point
   moved by 128 make it i8. Sums wrap. */
#ifndef HONE_KERNELS_REQUANTIZE_H
#define HONE_KERNELS_REQUANTIZE_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* sums, bias and scale are read up to whole blocks of so many columns; bytes are written up to n only */
enum { HONE_REQUANTIZE_BLOCK = 64 };
typedef struct hone_requantize {
    const int32_t *bias;
    const float *scale;
    int32_t zero;
    uint8_t flip;
    /* some scale is no finite number: each value is looked at; NaN becomes 0 before it is clamped */
    bool nonfinite;
    bool tame; /* no scale is above 1/2: no t is beyond an i32 */
    bool mild,
        /* no t is beyond HONE_REQUANTIZE_MILD, no sum with its bias beyond HONE_REQUANTIZE_SMALL: conversions
           can be had of additions */
        small;
} hone_requantize;
enum { HONE_REQUANTIZE_MILD = 32000, HONE_REQUANTIZE_SMALL = 1 << 22 };
/* the last two, where sums are at most that, up and down */
static inline void hone_requantize_bound(hone_requantize *l, int64_t n, double most) {
    /* no branches, and floats: bounds are short of what they stand for by more than these are off */
    int wild = 0, large = 0;
    for (int64_t j = 0; j < n; j++) {
        const float sum = (float)most + __builtin_fabsf((float)l->bias[j]),
                    t = sum * __builtin_fabsf(l->scale[j]);
        wild |= !(t < HONE_REQUANTIZE_MILD), large |= !(sum < HONE_REQUANTIZE_SMALL - 8);
    }
    l->mild = !wild, l->small = !large;
}
typedef void hone_requantize_fn(const hone_requantize *, int64_t m, int64_t n, const int32_t *sum,
                                ptrdiff_t step, const int32_t *less /* or NULL */, uint8_t *const *out);

/* Depthwise convolution of bytes over channels-last images: every column has its own window and its own
   weights. Places of the window come in groups of at most four, which the dot-product instructions take at
   once:

        sum[i][j]  =  sum over g < groups, q < high of                                    i < m, from <= j < n
                      (a[i*a_pixel + g*a_group + q*a_place][j] ^ flip) * b[g, q, j]

   then as bytes, c[i][j], or as they are, sums[i][j]. Where a_group is 1 a group is a column of the window,
   and pixels that follow on share columns: a_pixel is the stride. Bytes of a are u8 with flip over them, or
   i8 where the kernel says so; weights are i8, 0 where there is no place or column. Columns come in blocks
   of 16 * lanes, and there in the order of hone_dwconv_i8_position: that of vectors whose 16-byte lanes are
   interleaved each by itself. So do the bias and scale of `requantize`, which must be tame and not odd. */
enum { HONE_DWCONV_I8_ROWS = 4 }; /* pixels that a kernel takes together */
typedef struct {
    int m, high;             /* m: any; high: 1 … the kernel's group */
    int64_t from, n, groups; /* from: where a block begins */
    const uint8_t *const *a;
    ptrdiff_t a_pixel, a_group, a_place;
    uint8_t flip;
    const int8_t *b;                   /* b[((block * groups + g) * 16 * lanes + place) * group + q] */
    const hone_requantize *requantize; /* NULL: sums */
    uint8_t *const *c;
    /* or NULL. As many pixels more, to bytes: each one's places are one further than those of its pixel
       above, so that a has high + 1 a group */
    uint8_t *const *below;
    int32_t *const *sums;
} hone_dwconv_i8_args;
typedef void hone_dwconv_i8_fn(const hone_dwconv_i8_args *);
typedef struct {
    const char *name;
    uint32_t cpu;
    int group, lanes, a_signed, below; /* below: it takes such pixels */
    hone_dwconv_i8_fn *run;
} hone_dwconv_i8;
extern const hone_dwconv_i8 hone_dwconv_i8_list[]; /* slowest first; ends with a NULL name */
const hone_dwconv_i8 *hone_dwconv_i8_best(void);
static inline int64_t hone_dwconv_i8_position(int lanes, int64_t j) { /* of column j of a block */
    return j % 16 / 4 * 4 * lanes + j / 16 * 4 + j % 4;
}
#endif
