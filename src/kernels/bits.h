/* SPDX-License-Identifier: Apache-2.0
   bits: rows of A times weights of 2, 4 or 8 bits in blocks along K, each block of a column with its own
   scale and zero point. Rows are quantized to 8 bits, a scale a block:

        c[r][j]  +=  sum over blocks g of  a_scale[r][g] * scale[g][j]
                     * (sum over k in g of a[r][k] * b[k][j]  -  zero[g][j] * sum over k in g of a[r][k])

   Inner sums are integers, exact; blocks are added in order. A panel is 16 columns. Its weights are
   units of 64 bytes, four bytes a column, that hold 32 / bits values of K:
   value 4*f + i of a unit is field f (lowest bits first) of byte i of its column. 8 bits are stored less 128,
   and so are their zero points. */
#ifndef HONE_KERNELS_BITS_H
#define HONE_KERNELS_BITS_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    HONE_BITS_COLUMNS = 16, /* of a panel */
    HONE_BITS_ROWS = 4,     /* that a call takes */
    HONE_BITS_UNIT = 64,    /* bytes: 4 for each column */
    HONE_BITS_MOST_BLOCK = 256,
    HONE_BITS_HIGH = 4 /* rows that `many` takes at most */
};
typedef struct {
    int m;                 /* rows, 1 … HONE_BITS_ROWS */
    int64_t block, blocks; /* values of K in a block, a multiple of 16; how many blocks */
    const int8_t *b;       /* 8-bit units; of `one` and `packed` 4-bit units */
    ptrdiff_t b_step;      /* bytes from block to block */
    const float *scale;    /* 16 a block, */
    ptrdiff_t scale_step;  /* so many floats apart */
    const int8_t *zero;    /* [blocks][16]; NULL: all are 0, of `packed` all are `all` */
    int all;
    const int8_t *a[HONE_BITS_ROWS];
    const float *a_scale[HONE_BITS_ROWS];
    /* of each block; `one`: two a block, of values in upper halves of bytes and of those in lower ones */
    const int32_t *a_sum[HONE_BITS_ROWS];
    /* `one`, where all zero points are 8: 4 numbers a block from which sums of upper values begin, then 4 of
       lower ones */
    const int32_t *start;
    float *c[HONE_BITS_ROWS]; /* 16 each */
} hone_bits_part;
typedef void hone_bits_fn(const hone_bits_part *);
/* Several rows: `high` of them, which stand in turn, times a panel. Its weights are 8-bit units without zero
   points, or with `packed` 4-bit units whose bytes have their top bit flipped and whose
   zero points are 8; other zero points, less that 8, times scales are `shift`. */
typedef struct {
    int high; /* rows: 2, 3 or 4 */
    bool packed;
    int64_t block, blocks;
    /* four values of K of each of the rows in turn; 12 bytes behind the last may be read */
    const int8_t *a;
    /* one a row, for each block in turn; so are the next two. Four of the last ones are read, too */
    const float *a_scale;
    const float *a_shift; /* with shift: a_scale times the sum of the row's values */
    /* with packed: four times the same, HONE_BITS_LOWER - 8 * the sum of values that meet lower halves of
       bytes */
    const int32_t *a_start;
    const int8_t *b;
    ptrdiff_t b_step;     /* bytes from block to block */
    const float *scale;   /* 16 a block, */
    ptrdiff_t scale_step; /* so many floats apart */
    const float *shift;   /* [blocks][16] or NULL */
    float *c;             /* [high][16], added to */
} hone_bits_many;
typedef void hone_bits_many_fn(const hone_bits_many *);
/* Blocks of units of 2 or 4 bits, so many bytes apart, as units of 8 without gaps, less zero points: `zero`
   has 16 a block, or all are `all`. flip: over every byte first. */
typedef void hone_bits_unpack_fn(int bits, int64_t blocks, int64_t units, ptrdiff_t step, uint8_t flip,
                                 const int8_t *zero, int all, const uint8_t *from, int8_t *to);
/* A block of 8-bit units as floats, (weight - zero[j]) * scale[j] - shift[j]; zero and shift where given.
   Columns 4q … 4q+3 of value k go to to[q] + k * step[q]. */
typedef void hone_bits_floats_fn(int64_t block, const int8_t *from, const float *scale, const int8_t *zero,
                                 const float *shift, float *const to[HONE_BITS_COLUMNS / 4],
                                 const ptrdiff_t step[HONE_BITS_COLUMNS / 4]);
/* n values as 8 bits: q[k] = round half even(a[k] / scale), the largest magnitude as 127, and the sum of q.
   What is left (a[k] - q[k] * scale) is written to `rest`, if given.
   False: some value is not finite, or all are too small for a scale. Zeros have scale 0. */
typedef int hone_bits_quantize_fn(const float *a, int64_t n, int8_t *q, float *scale, int32_t *sum,
                                  float *rest);

/* `one`: a row times 4-bit weights as they are packed, whose bytes x = 16 h + l have their top bit flipped,
   with two operations less than taking h and l apart:
        16 (h * u + l * v)  =  x * u  +  16 * l * (v - u / 16)
   so the value that meets l is rounded less a sixteenth of the one that meets h (`couple`), by the same half
   step at most. A's block is less fine by 127 / 119. */
enum { HONE_BITS_COUPLED = 119 };
typedef struct {
    const char *name;
    uint32_t cpu;
    hone_bits_fn *rows, *one; /* one: or NULL */
    /* as rows, of 4-bit units as they are packed, whose bytes have their top bit flipped; or NULL. Weights
       that are read once go from memory into products, without a turn as bytes through L1 */
    hone_bits_fn *packed;
    int few;                 /* rows that it is faster for than unpack and `rows` */
    hone_bits_many_fn *many; /* or NULL: `rows` takes many rows, too */
    hone_bits_unpack_fn *unpack;
    hone_bits_quantize_fn *quantize;
    hone_bits_floats_fn *floats;
} hone_bits;
const hone_bits *hone_bits_best(void);
/* The coupled form of n values (a multiple of 8), sums[2] and start[8] as `one` wants them; returns as
   quantize does. Not for a vector unit: a row's K is little beside its weights. */
int hone_bits_couple(const float *a, int64_t n, int8_t *q, float *scale, int32_t *sums, int32_t *start);
/* Sums of upper values begin at the bits of 1.5 * 2^19, those of lower ones at 1.5 * 2^23: read as floats
   they are these numbers plus a sixteenth of the sum, and the sum. */
#define HONE_BITS_UPPER 0x49400000
#define HONE_BITS_LOWER 0x4b400000
#endif
